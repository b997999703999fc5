//! What was seen at the same time, added up.
//!
//! Counts, errors, bytes, histograms, lateness, backlog and processor time of processes add. What several parts saw of the same server,
//! device or machine counts once, as their [`Voice`] says. Levels do not add: of memory and of what a whole machine waited for it is
//! the largest. What one part does not know is unknown of all.

use std::collections::BTreeMap;

use super::Voice;
use model::record::{
    ChannelKind, ChannelStats, Counters, CpuTime, DeviceStats, Histogram, HostStats, Interval, NetworkEnd,
    OperationStats, ServerStats, TraceStats, TransactionStats,
};

/// Both numbers, where both are known.
pub(super) fn both(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.zip(other).map(|(one, other)| one.saturating_add(other))
}

/// Processor time of both.
pub(super) fn processor_time(one: Option<CpuTime>, other: Option<CpuTime>) -> Option<CpuTime> {
    let (one, other) = (one?, other?);
    Some(CpuTime {
        user_ns: one.user_ns.saturating_add(other.user_ns),
        system_ns: one.system_ns.saturating_add(other.system_ns),
        iowait_ns: both(one.iowait_ns, other.iowait_ns),
        steal_ns: both(one.steal_ns, other.steal_ns),
        idle_ns: both(one.idle_ns, other.idle_ns),
    })
}

/// Adds operations kind by kind.
pub(super) fn operations(sums: &mut Vec<OperationStats>, more: &[OperationStats]) {
    for more in more {
        let OperationStats { kind, count, errors, block_touches, service, response, failed, transactions } = more;
        let Some(sum) = sums.iter_mut().find(|sum| sum.kind == *kind) else {
            sums.push(more.clone());
            continue;
        };
        sum.count += count;
        sum.errors += errors;
        sum.block_touches += block_touches;
        sum.service.merge(service);
        sum.response.merge(response);
        sum.failed.merge(failed);
        match (&mut sum.transactions, transactions) {
            (Some(sum), Some(more)) => add_transactions(sum, more),
            (sum, _) => *sum = None,
        }
    }
}

fn add_transactions(sum: &mut TransactionStats, more: &TransactionStats) {
    let TransactionStats {
        statements,
        round_trips,
        rows_read,
        rows_changed,
        commits,
        rollbacks,
        retries,
        failures,
        paused_ns,
    } = more;
    sum.statements += statements;
    sum.round_trips += round_trips;
    sum.rows_read += rows_read;
    sum.rows_changed += rows_changed;
    sum.commits += commits;
    sum.rollbacks += rollbacks;
    by_name(&mut sum.retries, retries);
    by_name(&mut sum.failures, failures);
    sum.paused_ns += paused_ns;
}

/// Adds counts by their names.
pub(super) fn by_name(sums: &mut BTreeMap<String, u64>, more: &BTreeMap<String, u64>) {
    for (name, count) in more {
        *sums.entry(name.clone()).or_default() += count;
    }
}

/// The devices that a part speaks for, by their names in the merged run.
pub(super) fn devices(sums: &mut Vec<DeviceStats>, more: &[DeviceStats], voice: &Voice) {
    let known =
        |device: &DeviceStats| Some(DeviceStats { name: voice.devices.get(&device.name)?.clone(), ..device.clone() });
    sums.extend(more.iter().filter_map(known));
    sums.sort_by(|one, other| one.name.cmp(&other.name));
}

/// The servers that a part speaks for.
pub(super) fn servers(sums: &mut Vec<ServerStats>, more: &[ServerStats], voice: &Voice) {
    sums.extend(more.iter().filter(|server| voice.nodes.contains(&server.node)).cloned());
    sums.sort_by(|one, other| one.node.cmp(&other.node));
}

/// What servers counted, in the place of what every part says that they did. `of_servers` has a number for each such counter.
pub(super) fn settle(counters: &mut Counters, servers: &[ServerStats], of_servers: &Counters) {
    let sum = servers.iter().map(|server| server.counters.clone()).reduce(|sum, more| sum.with(&more));
    counters.take(&sum.unwrap_or_default(), of_servers);
}

/// Ways to storage: connections to one server add up, and members of a disk group are of one host.
pub(super) fn channels(sums: &mut Vec<ChannelStats>, more: &[ChannelStats], voice: &Voice) {
    for more in more {
        let of = match more.kind {
            ChannelKind::Member => format!("{}{}", voice.before, more.of),
            ChannelKind::Connection | ChannelKind::Path => more.of.clone(),
        };
        ChannelStats::add_beside(sums, ChannelStats { of, ..more.clone() });
    }
}

/// What kernel tracing saw on the hosts that are spoken for.
pub(super) fn traces(sums: &mut Vec<TraceStats>, more: &[TraceStats], voice: &Voice) {
    for more in more.iter().filter(|_| voice.host) {
        let device = more.device.as_ref().map(|device| format!("{}{device}", voice.before));
        let more = TraceStats { device, ..more.clone() };
        match sums.iter_mut().find(|sum| sum.is_same_kind(&more)) {
            Some(sum) => {
                let elapsed_ns = sum.elapsed_ns.max(more.elapsed_ns);
                sum.add(&more);
                sum.elapsed_ns = elapsed_ns;
            }
            None => sums.push(more),
        }
    }
}

/// What processors did. Their numbers are of one host, so there is no list of those of several.
pub(super) fn host(sum: &mut Option<HostStats>, more: &HostStats, voice: &Voice) {
    let Some(known) = sum else {
        let processors = if voice.before.is_empty() { more.processors.clone() } else { Vec::new() };
        *sum = Some(HostStats { processors, ..more.clone() });
        return;
    };
    let HostStats {
        elapsed_ns,
        work,
        loaded,
        processors,
        quota_processors,
        throttled,
        thermal_throttles,
        frequency_hz,
        temperature_celsius,
        cpu_pressure_ns,
        memory_pressure_ns,
    } = more;
    known.elapsed_ns = known.elapsed_ns.max(*elapsed_ns);
    by_name(&mut known.work, work);
    known.loaded.add(loaded);
    if voice.before.is_empty() {
        known.processors.extend(processors.iter().cloned());
        known.processors.sort_by_key(|processor| processor.number);
    } else {
        known.processors.clear();
    }
    known.quota_processors = known.quota_processors.into_iter().chain(*quota_processors).reduce(f64::min);
    known.throttled = known.throttled.zip(*throttled).map(|(mut both, other)| {
        both.add(&other);
        both
    });
    let largest = |one: Option<u64>, other: Option<u64>| one.zip(other).map(|(one, other)| one.max(other));
    known.thermal_throttles = largest(known.thermal_throttles, *thermal_throttles);
    // The slowest decides.
    known.frequency_hz = known.frequency_hz.zip(*frequency_hz).map(|(one, other)| one.min(other));
    known.temperature_celsius = known.temperature_celsius.into_iter().chain(*temperature_celsius).reduce(f64::max);
    known.cpu_pressure_ns = largest(known.cpu_pressure_ns, *cpu_pressure_ns);
    known.memory_pressure_ns = largest(known.memory_pressure_ns, *memory_pressure_ns);
}

/// Ends of networks: all of one side become one end, since a run has two of them.
///
/// Each part counts the bytes and connections of its own test. What a kernel, a process or a host counted is the same for all tests
/// that it had part in: of one node it is the largest, of several nodes their sum.
pub(super) fn network(ends: &[&NetworkEnd]) -> Vec<NetworkEnd> {
    let mut nodes: Vec<NetworkEnd> = Vec::new();
    for end in ends {
        match nodes.iter_mut().find(|node| node.is_same_end(end)) {
            Some(node) => one_node(node, end),
            None => nodes.push((*end).clone()),
        }
    }
    nodes.sort_by(|one, other| (one.side, &one.node).cmp(&(other.side, &other.node)));
    let mut sides: Vec<(NetworkEnd, usize)> = Vec::new();
    for node in nodes {
        match sides.iter_mut().find(|(side, _)| side.side == node.side) {
            Some((side, others)) => {
                two_nodes(side, &node);
                *others += 1;
            }
            None => sides.push((node, 0)),
        }
    }
    let named = |(end, others): (NetworkEnd, usize)| match others {
        0 => end,
        _ => NetworkEnd { node: format!("{} and {others} more", end.node), ..end },
    };
    sides.into_iter().map(named).collect()
}

fn one_node(sum: &mut NetworkEnd, more: &NetworkEnd) {
    let before = sum.clone();
    let flows = flows(sum, more);
    sum.add(more);
    sum.elapsed_ns = before.elapsed_ns.max(more.elapsed_ns);
    sum.sent_bytes = both(before.sent_bytes, more.sent_bytes);
    sum.received_bytes = both(before.received_bytes, more.received_bytes);
    give_flows(sum, flows);
    // The whole of a process, a kernel and a host, each seen twice.
    sum.counters = before.counters.clone();
    for (name, count) in &more.counters {
        let largest = sum.counters.entry(name.clone()).or_default();
        *largest = (*largest).max(*count);
    }
    let time = CpuTime::busy_ns;
    let longest = |one: Option<CpuTime>, other: Option<CpuTime>| one.into_iter().chain(other).max_by_key(time);
    // Parts are processes of their own; the other end is one for all of them.
    let is_client = sum.side == model::record::NetworkSide::Client;
    sum.process_cpu = match is_client {
        true => processor_time(before.process_cpu, more.process_cpu),
        false => longest(before.process_cpu, more.process_cpu),
    };
    sum.host_cpu = longest(before.host_cpu, more.host_cpu);
    sum.busiest_thread =
        before.busiest_thread.into_iter().chain(more.busiest_thread).max_by_key(|time| time.running_ns);
    sum.throttled_ns = before.throttled_ns.max(more.throttled_ns);
    sum.processors = before.processors;
    for processor in &more.processors {
        match sum.processors.iter_mut().find(|known| known.number == processor.number) {
            Some(known) if known.busy_ns < processor.busy_ns => *known = *processor,
            Some(_) => {}
            None => sum.processors.push(*processor),
        }
    }
}

fn two_nodes(sum: &mut NetworkEnd, more: &NetworkEnd) {
    let before = sum.clone();
    let flows = flows(sum, more);
    sum.add(more);
    sum.elapsed_ns = before.elapsed_ns.max(more.elapsed_ns);
    sum.sent_bytes = both(before.sent_bytes, more.sent_bytes);
    sum.received_bytes = both(before.received_bytes, more.received_bytes);
    give_flows(sum, flows);
    sum.process_cpu = processor_time(before.process_cpu, more.process_cpu);
    sum.host_cpu = processor_time(before.host_cpu, more.host_cpu);
    sum.busiest_thread =
        before.busiest_thread.into_iter().chain(more.busiest_thread).max_by_key(|time| time.running_ns);
    // Numbers of processors are of one host: the busiest one of all is the one that may be at its end.
    let all = before.processors.into_iter().chain(more.processors.iter().copied());
    sum.processors = all.max_by_key(|processor| processor.busy_ns).into_iter().collect();
    sum.facts = before.facts;
}

/// Connections of both: those of two tests are not the same ones.
fn flows(one: &NetworkEnd, other: &NetworkEnd) -> Option<u32> {
    let flows = |end: &NetworkEnd| end.tcp.as_ref().map(|tcp| tcp.flows);
    flows(one).into_iter().chain(flows(other)).reduce(u32::saturating_add)
}

fn give_flows(end: &mut NetworkEnd, flows: Option<u32>) {
    if let (Some(tcp), Some(flows)) = (&mut end.tcp, flows) {
        tcp.flows = flows;
    }
}

/// Intervals of one instant on their way to one.
#[derive(Debug, Clone, Default)]
pub(super) struct Gathered {
    sum: Interval,
    ends: Vec<NetworkEnd>,
    /// How many are in it.
    parts: usize,
}

impl Gathered {
    /// Adds that of one more part.
    pub(super) fn add(&mut self, more: Interval, voice: &Voice, server_waits: &[String]) {
        let Interval {
            step: _,
            offset_ns: _,
            duration_ns,
            warmup: _,
            counters,
            waits,
            response,
            process_cpu,
            devices: of_devices,
            servers: of_servers,
            traces: of_traces,
            host: of_host,
            network: of_network,
            channels: of_channels,
            // Of one process on one machine, and at instants of its own.
            slow: _,
            moments: _,
            looks: _,
            reported: _,
        } = more;
        let sum = &mut self.sum;
        let is_first = self.parts == 0;
        self.parts += 1;
        sum.duration_ns = sum.duration_ns.max(duration_ns);
        sum.counters = if is_first { counters } else { sum.counters.with(&counters) };
        sum.process_cpu = if is_first { process_cpu } else { processor_time(sum.process_cpu, process_cpu) };
        sum.response.merge(&response);
        merge_waits(
            &mut sum.waits,
            waits.into_iter().filter(|(event, _)| voice.waits || !server_waits.contains(event)),
        );
        devices(&mut sum.devices, &of_devices, voice);
        servers(&mut sum.servers, &of_servers, voice);
        traces(&mut sum.traces, &of_traces, voice);
        if let Some(more) = &of_host {
            host(&mut sum.host, more, voice);
        }
        channels(&mut sum.channels, &of_channels, voice);
        self.ends.extend(of_network);
    }

    /// Adds what was gathered of other parts.
    pub(super) fn join(&mut self, other: Self, hosts: &Voice) {
        let Self { sum: more, ends, parts } = other;
        if parts == 0 {
            return;
        }
        if self.parts == 0 {
            *self = Self { sum: more, ends, parts };
            return;
        }
        let sum = &mut self.sum;
        self.parts += parts;
        sum.duration_ns = sum.duration_ns.max(more.duration_ns);
        sum.counters = sum.counters.with(&more.counters);
        sum.process_cpu = processor_time(sum.process_cpu, more.process_cpu);
        sum.response.merge(&more.response);
        merge_waits(&mut sum.waits, more.waits);
        sum.devices.extend(more.devices);
        sum.devices.sort_by(|one, other| one.name.cmp(&other.name));
        sum.servers.extend(more.servers);
        sum.servers.sort_by(|one, other| one.node.cmp(&other.node));
        // Names were given and voices heard when they were added.
        traces(&mut sum.traces, &more.traces, &Voice { host: true, ..Voice::default() });
        if let Some(more) = &more.host {
            host(&mut sum.host, more, hosts);
        }
        more.channels.into_iter().for_each(|channel| ChannelStats::add_beside(&mut sum.channels, channel));
        self.ends.extend(ends);
    }

    /// The merged interval, but for its place.
    pub(super) fn finish(self, of_servers: &Counters) -> Interval {
        let Self { mut sum, ends, parts: _ } = self;
        settle(&mut sum.counters, &sum.servers, of_servers);
        sum.network = network(&ends.iter().collect::<Vec<_>>());
        sum
    }
}

fn merge_waits(sums: &mut BTreeMap<String, Histogram>, more: impl IntoIterator<Item = (String, Histogram)>) {
    for (event, waits) in more {
        match sums.get_mut(&event) {
            Some(sum) => sum.merge(&waits),
            None => {
                sums.insert(event, waits);
            }
        }
    }
}
