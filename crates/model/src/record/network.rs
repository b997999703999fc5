//! What the two ends of a network test saw of themselves: their sockets, their kernels and their processors.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::CpuTime;

/// Which end of a network test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NetworkSide {
    /// The one that asked for the test, and whose run this is.
    #[default]
    Client,
    /// The one that was asked.
    Server,
}

impl NetworkSide {
    /// The word that reports use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// What one end saw of itself in a window or an interval; while it is on its way, since its beginning. Counts are sums and
/// can be subtracted; the least and the most of a [`Spread`] are those since the reading before.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct NetworkEnd {
    /// Which end.
    pub side: NetworkSide,
    /// Name of its host, or its address.
    pub node: String,
    /// The server as the run calls it, where a run has several: then an end is what one of both hosts saw of the connections between
    /// that server and the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Time that the counts are of.
    pub elapsed_ns: u64,
    /// Bytes that the program handed to the kernel, of all connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_bytes: Option<u64>,
    /// Bytes that the program took from the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_bytes: Option<u64>,
    /// What the kernel says of its TCP connections, all of them together; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpStats>,
    /// Counters of its kernel and of its interface by their own names, such as `tcpext.ListenDrops` or
    /// `eth0.bw_in_allowance_exceeded`; everybody's, not only the test's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, u64>,
    /// Processor time of its process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_cpu: Option<CpuTime>,
    /// Processor time of its host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_cpu: Option<CpuTime>,
    /// The thread of its process that had the most to do, in each reading the busiest one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest_thread: Option<ThreadTime>,
    /// Time for which a limit on its control group kept the process from running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled_ns: Option<u64>,
    /// Its processors; of an interval only the busiest one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processors: Vec<ProcessorTime>,
    /// What does not change while a test goes on. Not in intervals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<NetworkFacts>,
}

/// What the kernel says of the TCP connections of one end (`tcp_info`), all of them together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct TcpStats {
    /// Connections that were looked at in the latest reading.
    pub flows: u32,
    /// Time for which there was something on its way or to be sent, summed over connections.
    pub busy_ns: u64,
    /// Of it, time for which the receiver's window held the sender back.
    pub rwnd_limited_ns: u64,
    /// Of it, time for which the send buffer held it back.
    pub sndbuf_limited_ns: u64,
    /// Segments sent, those without data included.
    pub segments_sent: u64,
    /// Segments sent again.
    pub segments_resent: u64,
    /// Bytes sent, those sent again included.
    pub bytes_sent: u64,
    /// Bytes sent again.
    pub bytes_resent: u64,
    /// Bytes that the other end has acknowledged.
    pub bytes_acked: u64,
    /// Bytes received in order.
    pub bytes_received: u64,
    /// Segments that came out of order; absent where the kernel does not count them (before Linux 5.4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segments_out_of_order: Option<u64>,
    /// Segments that the other end had already when they came again (RFC 2883, DSACK): they were sent again for nothing. Absent where
    /// the kernel does not count them (before Linux 4.19).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segments_duplicate: Option<u64>,
    /// Readings of a connection.
    pub readings: u64,
    /// Of these, those in which the latest rate was limited by what the program sent, not by the network.
    pub app_limited_readings: u64,
    /// Smoothed round trip, in nanoseconds.
    pub rtt_ns: Spread,
    /// Least round trip of all connections since they were made; absent before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_rtt_ns: Option<u64>,
    /// Congestion window, in segments.
    pub cwnd_segments: Spread,
    /// Latest rate at which the other end received, in bytes per second.
    pub delivery_bytes_per_s: Spread,
    /// Rate at which the kernel lets a connection send, in bytes per second; connections without such a rate are left out.
    pub pacing_bytes_per_s: Spread,
    /// Largest segment that is sent, in bytes.
    pub mss_bytes: Spread,
    /// Largest packet that the path carries, as far as the kernel knows, in bytes.
    pub path_mtu_bytes: Spread,
    /// Window that the other end offers, in bytes; without readings before Linux 5.4.
    pub peer_window_bytes: Spread,
    /// Bytes that wait in the send buffer and were not sent yet.
    pub unsent_bytes: Spread,
    /// Bytes that have come and wait for the program to take them.
    pub unread_bytes: Spread,
}

/// Values that were read at several instants or of several connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct Spread {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
    /// The least; 0 without any.
    pub least: u64,
    /// The largest; 0 without any.
    pub most: u64,
}

/// Processor time of one thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct ThreadTime {
    /// Running.
    pub running_ns: u64,
    /// Ready to run, while its processor did something else.
    pub waiting_ns: u64,
}

/// What one processor did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct ProcessorTime {
    /// Its number.
    pub number: u32,
    /// Not idle, everybody's work and interrupts included. Time stolen by a hypervisor is not in it.
    pub busy_ns: u64,
    /// Of it, in soft interrupts, where packets are received.
    pub softirq_ns: u64,
    /// Taken by the hypervisor for others.
    pub stolen_ns: u64,
}

/// What does not change at one end while a test goes on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct NetworkFacts {
    /// Interface that holds the end's address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Its largest packet, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu_bytes: Option<u32>,
    /// Its speed in megabits per second, where its driver says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_mbit_per_s: Option<u64>,
    /// Its driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Its queueing discipline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qdisc: Option<String>,
    /// Congestion control of the connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<String>,
    /// Smallest send buffer of a connection in the latest reading, in bytes, as the kernel counts it: twice what was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer_bytes: Option<u64>,
    /// Smallest receive buffer likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer_bytes: Option<u64>,
    /// Settings of the kernel by their names, such as `net.ipv4.tcp_wmem`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
}

impl Spread {
    /// Takes a value in.
    pub fn note(&mut self, value: u64) {
        self.add(&Self { count: 1, sum: value, least: value, most: value });
    }

    /// Mean; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The least; `None` without values.
    pub fn lowest(&self) -> Option<u64> {
        (self.count > 0).then_some(self.least)
    }

    /// The largest; `None` without values.
    pub fn highest(&self) -> Option<u64> {
        (self.count > 0).then_some(self.most)
    }

    /// Takes in the values of another.
    pub fn add(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.least = if self.count == 0 { other.least } else { self.least.min(other.least) };
        self.most = self.most.max(other.most);
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// Those read since `earlier`, whose least and most are this one's own.
    fn since(&self, earlier: &Self) -> Self {
        match self.count.saturating_sub(earlier.count) {
            0 => Self::default(),
            count => Self { count, sum: self.sum.saturating_sub(earlier.sum), ..*self },
        }
    }
}

/// Does the same with every sum, and with every spread, so that one that is added cannot be forgotten.
macro_rules! tcp_fields {
    ($do:ident) => {
        $do! {
            sums: busy_ns rwnd_limited_ns sndbuf_limited_ns segments_sent segments_resent bytes_sent bytes_resent
                bytes_acked bytes_received readings app_limited_readings;
            spreads: rtt_ns cwnd_segments delivery_bytes_per_s pacing_bytes_per_s mss_bytes path_mtu_bytes
                peer_window_bytes unsent_bytes unread_bytes;
        }
    };
}

impl TcpStats {
    /// Adds another part: what was read later, or of other connections. The number of connections is the larger one.
    pub fn add(&mut self, other: &Self) {
        macro_rules! add {
            (sums: $($sum:ident)*; spreads: $($spread:ident)*;) => {
                $(self.$sum = self.$sum.saturating_add(other.$sum);)*
                $(self.$spread.add(&other.$spread);)*
            };
        }
        tcp_fields!(add);
        self.flows = self.flows.max(other.flows);
        self.segments_out_of_order = sum(self.segments_out_of_order, other.segments_out_of_order);
        self.segments_duplicate = sum(self.segments_duplicate, other.segments_duplicate);
        self.min_rtt_ns = self.min_rtt_ns.into_iter().chain(other.min_rtt_ns).min();
    }

    fn since(&self, earlier: &Self) -> Self {
        let mut differences = Self { flows: self.flows, min_rtt_ns: self.min_rtt_ns, ..Self::default() };
        macro_rules! subtract {
            (sums: $($sum:ident)*; spreads: $($spread:ident)*;) => {
                $(differences.$sum = self.$sum.saturating_sub(earlier.$sum);)*
                $(differences.$spread = self.$spread.since(&earlier.$spread);)*
            };
        }
        tcp_fields!(subtract);
        differences.segments_out_of_order = difference(self.segments_out_of_order, earlier.segments_out_of_order);
        differences.segments_duplicate = difference(self.segments_duplicate, earlier.segments_duplicate);
        differences
    }

    /// Begins least and most anew, so that those of the next readings are their own.
    pub fn forget_extremes(&mut self) {
        macro_rules! forget {
            (sums: $($sum:ident)*; spreads: $($spread:ident)*;) => {
                $((self.$spread.least, self.$spread.most) = (u64::MAX, 0);)*
            };
        }
        tcp_fields!(forget);
    }

    /// Its connections' share of time in which `part` of what held them back did; `None` where they had nothing to send.
    pub fn share_of_busy(&self, part: u64) -> Option<f64> {
        (self.busy_ns > 0).then(|| (part as f64 / self.busy_ns as f64).min(1.0))
    }

    /// Share of bytes that were sent again; `None` where none were sent.
    pub fn resent_share(&self) -> Option<f64> {
        (self.bytes_sent > 0).then(|| self.bytes_resent as f64 / self.bytes_sent as f64)
    }
}

impl NetworkEnd {
    /// What happened since `earlier`, both counted since the beginning of the test. What either did not know is unknown.
    pub fn since(&self, earlier: &Self) -> Self {
        let counted = |(name, count): (&String, &u64)| {
            Some((name.clone(), count.checked_sub(earlier.counters.get(name).copied().unwrap_or(0))?))
        };
        let processors = self.processors.iter().map(|processor| {
            let before = earlier.processors.iter().find(|before| before.number == processor.number);
            let before = before.copied().unwrap_or_default();
            ProcessorTime {
                number: processor.number,
                busy_ns: processor.busy_ns.saturating_sub(before.busy_ns),
                softirq_ns: processor.softirq_ns.saturating_sub(before.softirq_ns),
                stolen_ns: processor.stolen_ns.saturating_sub(before.stolen_ns),
            }
        });
        Self {
            side: self.side,
            node: self.node.clone(),
            server: self.server.clone(),
            elapsed_ns: self.elapsed_ns.saturating_sub(earlier.elapsed_ns),
            sent_bytes: difference(self.sent_bytes, earlier.sent_bytes),
            received_bytes: difference(self.received_bytes, earlier.received_bytes),
            // The first reading of connections is all since their beginning.
            tcp: self.tcp.as_ref().map(|tcp| earlier.tcp.as_ref().map_or_else(|| tcp.clone(), |past| tcp.since(past))),
            counters: self.counters.iter().filter_map(counted).collect(),
            process_cpu: self.process_cpu.zip(earlier.process_cpu).map(|(now, past)| cpu_since(&now, &past)),
            host_cpu: self.host_cpu.zip(earlier.host_cpu).map(|(now, past)| cpu_since(&now, &past)),
            busiest_thread: self.busiest_thread.zip(earlier.busiest_thread).map(|(now, past)| ThreadTime {
                running_ns: now.running_ns.saturating_sub(past.running_ns),
                waiting_ns: now.waiting_ns.saturating_sub(past.waiting_ns),
            }),
            throttled_ns: difference(self.throttled_ns, earlier.throttled_ns),
            processors: processors.collect(),
            facts: self.facts.clone(),
        }
    }

    /// Adds what followed, of the same end.
    pub fn add(&mut self, other: &Self) {
        let Self {
            side: _,
            node: _,
            server: _,
            elapsed_ns,
            sent_bytes,
            received_bytes,
            tcp,
            counters,
            process_cpu,
            host_cpu,
            busiest_thread,
            throttled_ns,
            processors,
            facts,
        } = other;
        self.elapsed_ns = self.elapsed_ns.saturating_add(*elapsed_ns);
        self.sent_bytes = sum(self.sent_bytes, *sent_bytes);
        self.received_bytes = sum(self.received_bytes, *received_bytes);
        if let Some(more) = tcp {
            self.tcp.get_or_insert_default().add(more);
        }
        for (name, count) in counters {
            let sum = self.counters.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
        add_cpu(&mut self.process_cpu, process_cpu.as_ref());
        add_cpu(&mut self.host_cpu, host_cpu.as_ref());
        if let Some(more) = busiest_thread {
            let sum = self.busiest_thread.get_or_insert_default();
            sum.running_ns = sum.running_ns.saturating_add(more.running_ns);
            sum.waiting_ns = sum.waiting_ns.saturating_add(more.waiting_ns);
        }
        self.throttled_ns = sum(self.throttled_ns, *throttled_ns);
        for more in processors {
            match self.processors.iter_mut().find(|sum| sum.number == more.number) {
                Some(sum) => {
                    sum.busy_ns = sum.busy_ns.saturating_add(more.busy_ns);
                    sum.softirq_ns = sum.softirq_ns.saturating_add(more.softirq_ns);
                    sum.stolen_ns = sum.stolen_ns.saturating_add(more.stolen_ns);
                }
                None => self.processors.push(*more),
            }
        }
        self.facts = facts.clone().or_else(|| self.facts.take());
    }

    /// Whether both are of the same end.
    pub fn is_same_end(&self, other: &Self) -> bool {
        (self.side, &self.node, &self.server) == (other.side, &other.node, &other.server)
    }

    /// Adds ends that were seen later to those that were seen before.
    pub fn add_to(sums: &mut Vec<Self>, more: &[Self]) {
        for end in more {
            match sums.iter_mut().find(|sum| sum.is_same_end(end)) {
                Some(sum) => sum.add(end),
                None => sums.push(end.clone()),
            }
        }
    }

    /// The same as an interval keeps it: without facts, and of processors only the busiest.
    pub fn of_interval(mut self) -> Self {
        self.facts = None;
        let busiest = self.processors.iter().copied().max_by_key(|processor| processor.busy_ns);
        self.processors = busiest.into_iter().collect();
        self
    }

    /// A rate of all ends of one side together; `None` where none of them knows it.
    pub fn sum_of(ends: &[Self], side: NetworkSide, rate: fn(&Self) -> Option<f64>) -> Option<f64> {
        ends.iter().filter(|end| end.side == side).filter_map(rate).reduce(|sum, more| sum + more)
    }

    /// Bits per second that its program received.
    pub fn received_bits_per_s(&self) -> Option<f64> {
        self.per_s(self.received_bytes?).map(|bytes| bytes * 8.0)
    }

    /// Bits per second that its program sent.
    pub fn sent_bits_per_s(&self) -> Option<f64> {
        self.per_s(self.sent_bytes?).map(|bytes| bytes * 8.0)
    }

    /// A count of its as a rate per second; `None` where no time passed.
    pub fn per_s(&self, count: u64) -> Option<f64> {
        (self.elapsed_ns > 0).then(|| count as f64 * 1e9 / self.elapsed_ns as f64)
    }
}

fn difference(now: Option<u64>, past: Option<u64>) -> Option<u64> {
    now?.checked_sub(past?)
}

/// What is known of both.
fn sum(left: Option<u64>, right: Option<u64>) -> Option<u64> {
    match (left, right) {
        (Some(left), Some(right)) => Some(left.saturating_add(right)),
        (left, right) => left.or(right),
    }
}

fn cpu_since(now: &CpuTime, past: &CpuTime) -> CpuTime {
    CpuTime {
        user_ns: now.user_ns.saturating_sub(past.user_ns),
        system_ns: now.system_ns.saturating_sub(past.system_ns),
        iowait_ns: difference(now.iowait_ns, past.iowait_ns),
        steal_ns: difference(now.steal_ns, past.steal_ns),
        idle_ns: difference(now.idle_ns, past.idle_ns),
    }
}

fn add_cpu(total: &mut Option<CpuTime>, more: Option<&CpuTime>) {
    let Some(more) = more else { return };
    let total = total.get_or_insert_default();
    total.user_ns = total.user_ns.saturating_add(more.user_ns);
    total.system_ns = total.system_ns.saturating_add(more.system_ns);
    total.iowait_ns = sum(total.iowait_ns, more.iowait_ns);
    total.steal_ns = sum(total.steal_ns, more.steal_ns);
    total.idle_ns = sum(total.idle_ns, more.idle_ns);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(values: &[u64]) -> Spread {
        let mut spread = Spread::default();
        values.iter().for_each(|value| spread.note(*value));
        spread
    }

    #[test]
    fn a_spread_has_the_least_and_the_most_of_both_and_nothing_of_none() {
        let mut all = spread(&[5, 3]);
        all.add(&Spread::default());
        all.add(&spread(&[9]));
        assert_eq!((all.lowest(), all.highest(), all.mean()), (Some(3), Some(9), Some(17.0 / 3.0)));
        assert_eq!((Spread::default().lowest(), Spread::default().mean()), (None, None));
    }

    /// An end as it is after so many readings, counted since its beginning.
    fn end(readings: u64) -> NetworkEnd {
        NetworkEnd {
            node: "db1".to_owned(),
            elapsed_ns: readings * 100,
            sent_bytes: Some(readings * 1_000),
            tcp: Some(TcpStats {
                flows: 2,
                busy_ns: readings * 90,
                rwnd_limited_ns: readings * 45,
                readings: readings * 2,
                rtt_ns: Spread { count: readings * 2, sum: readings * 20, least: 9, most: 10 + readings },
                min_rtt_ns: Some(8),
                ..TcpStats::default()
            }),
            counters: [("ip.ReasmFails".to_owned(), readings * 3)].into(),
            processors: vec![
                ProcessorTime { number: 0, busy_ns: readings * 10, ..ProcessorTime::default() },
                ProcessorTime { number: 1, busy_ns: readings * 70, softirq_ns: readings * 7, stolen_ns: 0 },
            ],
            busiest_thread: Some(ThreadTime { running_ns: readings * 60, waiting_ns: readings }),
            facts: Some(NetworkFacts { mtu_bytes: Some(1_500), ..NetworkFacts::default() }),
            ..NetworkEnd::default()
        }
    }

    #[test]
    fn differences_add_up_to_the_whole_and_the_unknown_stays_unknown() {
        let start = end(1);
        let mut sum = end(2).since(&start);
        sum.add(&end(5).since(&end(2)));
        let whole = end(5).since(&start);
        let tcp = sum.tcp.clone().unwrap();
        assert_eq!(
            (tcp.rtt_ns.least, tcp.rtt_ns.most, tcp.rtt_ns.count),
            (9, 15, 8),
            "each reading has its own extremes"
        );
        assert_eq!(tcp.share_of_busy(tcp.rwnd_limited_ns), Some(0.5));
        assert_eq!(sum, whole);
        assert_eq!(whole.received_bytes, None);
        assert_eq!(whole.per_s(whole.sent_bytes.unwrap()), Some(4_000.0 * 1e9 / 400.0));
    }

    #[test]
    fn an_interval_keeps_the_busiest_processor_and_no_facts() {
        let kept = end(1).of_interval();
        assert_eq!(kept.processors, [ProcessorTime { number: 1, busy_ns: 70, softirq_ns: 7, stolen_ns: 0 }]);
        assert_eq!(kept.facts, None);
    }

    #[test]
    fn it_goes_over_the_wire_and_back() {
        let text = serde_json::to_string(&end(3)).unwrap();
        assert_eq!(serde_json::from_str::<NetworkEnd>(&text).unwrap(), end(3));
    }
}
