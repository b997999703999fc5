//! Putting the lanes' parts together: intervals for the record, and the step's totals.

use std::collections::BTreeMap;

use measure::os::Difference;
use measure::{
    Counter, FailedConnects, IntervalId, OPERATION_KINDS, Recorded, Tally, Timeline, WaitEvent, counters_from,
};
use model::record::{
    CONNECT, ChannelStats, Counters, Histogram, HostStats, Interval, Looks, Moments, NetworkEnd, OperationStats,
    ServerStats, SlowOperations, TraceStats, WaitStats,
};

/// Servers whose readings are of times that differ by more than this share, and by more than this long, have no sum. A report doubts
/// the figures of one that misses so much of its window.
const APART: f64 = 0.02;
const APART_NS: u64 = 500_000_000;

/// What was seen in one interval.
pub(super) struct Seen {
    /// Each lane's part, and what the target's own writers recorded.
    pub(super) parts: Vec<Recorded>,
    /// What others counted.
    pub(super) besides: ExternalStats,
    /// What the system did in shorter spans.
    pub(super) moments: Option<Moments>,
    /// What database servers were seen doing.
    pub(super) looks: Vec<Looks>,
    /// Operations that took far longer than most.
    pub(super) slow: Option<SlowOperations>,
}

/// What others than lanes and writers counted.
#[derive(Default)]
pub(super) struct ExternalStats {
    pub(super) counters: Counters,
    pub(super) servers: Vec<ServerStats>,
    pub(super) traces: Vec<TraceStats>,
    pub(super) host: Option<HostStats>,
    pub(super) network: Vec<NetworkEnd>,
    pub(super) channels: Vec<ChannelStats>,
}

impl ExternalStats {
    /// What servers timed, all of them together. What one did not say in time comes with its next answer.
    fn waits(&self) -> Vec<WaitStats> {
        let mut waits = Vec::new();
        self.servers.iter().for_each(|server| WaitStats::add_to(&mut waits, &server.waits));
        waits
    }

    /// What several servers counted together, if they are several. Sums of intervals would lack those in which one of them was late,
    /// whose counts come with its next answer. It is unknown where one was never read, or of another time than the others: it went,
    /// or came, or was started again.
    fn together(&self) -> Option<Counters> {
        let [first, others @ ..] = self.servers.as_slice() else { return None };
        let shortest_ns = others.iter().fold(first.elapsed_ns, |ns, server| ns.min(server.elapsed_ns));
        let longest_ns = others.iter().map(|server| server.elapsed_ns).max()?.max(first.elapsed_ns);
        let apart_ns = longest_ns - shortest_ns;
        let are_apart = apart_ns > APART_NS && apart_ns as f64 > APART * longest_ns as f64;
        // An interval has a sum only if all servers answered.
        if are_apart || self.counters == Counters::default() {
            return Some(Counters::default());
        }
        Some(others.iter().fold(first.counters.clone(), |sum, server| sum.with(&server.counters)))
    }

    /// The servers, each with its own waits only where they are several: those of an only one are all there are.
    pub(super) fn into_servers(mut self) -> Vec<ServerStats> {
        if let [only] = self.servers.as_mut_slice() {
            only.waits.clear();
        }
        self.servers
    }

    /// Adds what was seen after it.
    pub(super) fn add(&mut self, other: &Self) {
        let Self { counters, servers, traces, host, network, channels } = other;
        self.counters.add(counters);
        for more in servers {
            match self.servers.iter_mut().find(|sum| sum.node == more.node) {
                Some(sum) => {
                    sum.add(more);
                    sum.counters.settle_page_cache_hits();
                }
                None => self.servers.push(more.clone()),
            }
        }
        for more in traces {
            match self.traces.iter_mut().find(|sum| sum.is_same_kind(more)) {
                Some(sum) => sum.add(more),
                None => self.traces.push(more.clone()),
            }
        }
        match (&mut self.host, host) {
            (Some(sum), Some(more)) => sum.add(more),
            (None, Some(more)) => self.host = Some(more.clone()),
            (_, None) => {}
        }
        NetworkEnd::add_to(&mut self.network, network);
        ChannelStats::add_to(&mut self.channels, channels);
    }
}

/// Sums of the measured window.
pub(super) struct Totals {
    counts: [u64; Counter::ALL.len()],
    waits: Vec<Histogram>,
    operations: [OperationTotals; OPERATION_KINDS],
    /// Attempts at a connection that failed.
    pub(super) failed_connects: FailedConnects,
    schedule_lag: Histogram,
    own_lag: Histogram,
    /// Processor time of each lane's thread, in the window.
    pub(super) lane_cpu_ns: Vec<u64>,
    /// The same with the time that it waited for a processor; unknown once a part of it is.
    pub(super) lane_wanted_ns: Vec<Option<u64>>,
    /// What others counted.
    pub(super) besides: ExternalStats,
}

#[derive(Default)]
struct OperationTotals {
    count: u64,
    errors: u64,
    block_touches: u64,
    transactions: Option<Tally>,
    service: Histogram,
    response: Histogram,
    failed: Histogram,
}

impl Totals {
    pub(super) fn new(lanes: usize) -> Self {
        Self {
            counts: [0; Counter::ALL.len()],
            waits: WaitEvent::ALL.iter().map(|_| Histogram::default()).collect(),
            operations: Default::default(),
            failed_connects: FailedConnects::default(),
            schedule_lag: Histogram::default(),
            own_lag: Histogram::default(),
            lane_cpu_ns: vec![0; lanes],
            lane_wanted_ns: vec![Some(0); lanes],
            besides: ExternalStats::default(),
        }
    }

    /// Adds what one thread recorded in an interval of the window.
    pub(super) fn add(&mut self, recorded: &Recorded) {
        for (sum, count) in self.counts.iter_mut().zip(recorded.counts) {
            *sum += count;
        }
        for (sum, waits) in self.waits.iter_mut().zip(&recorded.waits) {
            if let Some(waits) = waits {
                waits.merge_into(sum);
            }
        }
        for (sum, operations) in self.operations.iter_mut().zip(&recorded.operations) {
            if let Some(operations) = operations {
                sum.count += operations.count;
                sum.errors += operations.errors;
                sum.block_touches += operations.block_touches;
                if let Some(tally) = &operations.transactions {
                    sum.transactions.get_or_insert_default().add(tally);
                }
                operations.merge_service_into(&mut sum.service);
                operations.merge_response_into(&mut sum.response);
                operations.merge_failed_into(&mut sum.failed);
            }
        }
        self.failed_connects.add(&recorded.failed_connects);
        if let Some(lag) = &recorded.schedule_lag {
            lag.merge_into(&mut self.schedule_lag);
        }
        if let Some(lag) = &recorded.own_lag {
            lag.merge_into(&mut self.own_lag);
        }
    }

    /// The document's counters.
    pub(super) fn counters(&self, known: &[Counter]) -> Counters {
        let mut counters = counters_from(&self.counts, known);
        counters.add(&self.besides.counters);
        counters.settle_page_cache_hits();
        counters
    }

    /// The same of the whole window.
    pub(super) fn counters_of_window(&self, known: &[Counter]) -> Counters {
        let Some(together) = self.besides.together() else { return self.counters(known) };
        let mut counters = counters_from(&self.counts, known);
        // What our own sessions count is theirs; that of servers is everybody's, and stays with them.
        counters.fill(&together);
        counters.settle_page_cache_hits();
        counters
    }

    /// Wait events that happened: those that servers timed, and where they do not, those that sessions and writers of ours timed, at
    /// `layer`.
    pub(super) fn waits(&self, layer: &str) -> Vec<WaitStats> {
        let timed = self.besides.waits();
        let is_ours = timed.is_empty();
        let happened = WaitEvent::ALL.iter().zip(&self.waits).filter(|(_, waits)| waits.count() > 0);
        // A server that times its waits has those of commits among them, which would count twice. None times how long its clients
        // take to reach it.
        let ours =
            happened.filter(|(event, _)| is_ours || **event == WaitEvent::Connect).map(|(event, waits)| WaitStats {
                event: event.name().to_owned(),
                class: event.class().name().to_owned(),
                layer: if *event == WaitEvent::Connect { "client" } else { layer }.to_owned(),
                foreground: event.is_foreground(),
                waits: waits.clone(),
                reported: Vec::new(),
            });
        ours.chain(timed).collect()
    }

    /// The same of an interval, by event. Where `servers_time` waits, an interval without an answer of theirs has none: they come with
    /// the next answer, and ours would stand for them twice.
    fn waits_of_interval(&self, servers_time: bool) -> BTreeMap<String, Histogram> {
        let mut waits = self.waits("");
        if servers_time && self.besides.servers.is_empty() {
            waits.retain(|wait| wait.event == CONNECT);
        }
        waits.into_iter().map(|wait| (wait.event.clone(), wait.times().into_owned())).collect()
    }

    /// Whether any server has timed a wait.
    pub(super) fn have_servers_timed(&self) -> bool {
        self.besides.servers.iter().any(|server| !server.waits.is_empty())
    }

    /// From due to sent; absent where nothing had a due instant.
    pub(super) fn schedule_lag(&self) -> Option<Histogram> {
        (self.schedule_lag.count() > 0).then(|| self.schedule_lag.clone())
    }

    /// From due and free to sent; absent where nothing had a due instant.
    pub(super) fn own_lag(&self) -> Option<Histogram> {
        (self.own_lag.count() > 0).then(|| self.own_lag.clone())
    }

    /// Operation types that happened, by the words that the workload has for them.
    pub(super) fn operations(self, kinds: &[&str]) -> Vec<OperationStats> {
        kinds
            .iter()
            .zip(self.operations)
            .filter(|(_, totals)| totals.count > 0)
            .map(|(kind, totals)| {
                let OperationTotals { count, errors, block_touches, transactions, service, response, failed } = totals;
                let transactions = transactions.map(|tally| tally.stats());
                OperationStats {
                    kind: (*kind).to_owned(),
                    count,
                    errors,
                    block_touches,
                    service,
                    response,
                    failed,
                    transactions,
                }
            })
            .collect()
    }
}

/// The document's form of one interval. `servers_time` if servers have timed waits in others.
pub(super) fn interval(
    step: u32,
    id: IntervalId,
    timeline: &Timeline,
    seen: Seen,
    (known, servers_time): (&[Counter], bool),
    system: Difference,
) -> Interval {
    let mut totals = Totals::new(0);
    seen.parts.iter().for_each(|part| totals.add(part));
    totals.besides = seen.besides;
    let (moments, looks, slow) = (seen.moments, seen.looks, seen.slow);
    let mut response = Histogram::default();
    totals.operations.iter().for_each(|operations| response.merge(&operations.response));
    let waits = totals.waits_of_interval(servers_time);
    let begin = timeline.begin_ns(id);
    Interval {
        step,
        offset_ns: begin - timeline.start_ns(),
        duration_ns: timeline.end_ns(id).saturating_sub(begin),
        warmup: timeline.is_warmup(id),
        counters: totals.counters(known),
        waits,
        response,
        process_cpu: system.process_cpu,
        devices: system.devices,
        servers: totals.besides.servers.into_iter().map(|server| ServerStats { waits: Vec::new(), ..server }).collect(),
        traces: totals.besides.traces,
        host: totals.besides.host.map(|host| HostStats { processors: Vec::new(), ..host }),
        network: totals.besides.network.into_iter().map(NetworkEnd::of_interval).collect(),
        channels: totals.besides.channels.into_iter().map(ChannelStats::of_interval).collect(),
        slow,
        moments,
        looks,
        reported: BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::Waited;

    /// Servers that timed as many waits in one second, each 100 ns long.
    fn second(waits: &[(&str, u64)]) -> ExternalStats {
        let server = |(node, count): &(&str, u64)| ServerStats {
            node: (*node).to_owned(),
            waits: vec![WaitStats {
                event: "log file sync".to_owned(),
                class: "Commit".to_owned(),
                layer: "server".to_owned(),
                foreground: true,
                waits: Histogram::counted(*count, Some(count * 100)),
                reported: Vec::new(),
            }],
            ..ServerStats::default()
        };
        ExternalStats { servers: waits.iter().map(server).collect(), ..ExternalStats::default() }
    }

    #[test]
    fn a_second_that_servers_were_silent_in_has_no_waits_of_ours_in_the_place_of_theirs() {
        let mut late = Totals::new(0);
        late.waits[0] = Histogram::counted(5, Some(500));
        assert_eq!(late.waits_of_interval(false).len(), 1, "where no server times waits");
        assert!(late.waits_of_interval(true).is_empty());
        assert!(!late.have_servers_timed());
        late.besides.add(&second(&[("db1", 3)]));
        assert!(late.have_servers_timed());
        let waits = late.waits_of_interval(true);
        assert_eq!(waits.values().map(Histogram::count).collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn several_servers_have_a_sum_of_the_window_only_if_all_were_read_for_all_of_it() {
        let server = |node: &str, seconds: u64, reads: u64| ServerStats {
            node: node.to_owned(),
            elapsed_ns: seconds * 1_000_000_000,
            counters: Counters { physical_reads: Some(reads), commits: Some(reads), ..Counters::default() },
            ..ServerStats::default()
        };
        // An interval has a sum where both answered.
        let add = |totals: &mut Totals, servers: Vec<ServerStats>| {
            let sum = match servers.as_slice() {
                [one, two] => Counters { commits: None, ..one.counters.with(&two.counters) },
                _ => Counters::default(),
            };
            totals.besides.add(&ExternalStats { counters: sum, servers, ..ExternalStats::default() });
        };
        let counted = |totals: &Totals| {
            let counters = totals.counters_of_window(&[Counter::Commits]);
            (counters.physical_reads, counters.commits)
        };
        let mut late = Totals::new(0);
        late.counts[Counter::Commits as usize] = 7;
        add(&mut late, vec![server("one", 1, 10)]);
        assert_eq!(counted(&late), (None, Some(7)), "the other has not said anything yet");
        add(&mut late, vec![server("one", 1, 11), server("two", 2, 300)]);
        assert_eq!(
            counted(&late),
            (Some(321), Some(7)),
            "what came late is in it, and so is what the other said in time"
        );
        for _ in 0..8 {
            add(&mut late, vec![server("one", 1, 10)]);
        }
        assert_eq!(counted(&late), (None, Some(7)), "the other has gone, and what it had counted would pass for all");
    }

    #[test]
    fn what_servers_timed_is_the_steps_and_of_each_by_itself_where_they_are_several() {
        let mut totals = Totals::new(0);
        totals.waits[0] = Histogram::counted(5, Some(500));
        assert_eq!(totals.waits("client").len(), 1, "what we timed, where no server did");
        for waits in [[("db1", 3), ("db2", 4)].as_slice(), &[("db1", 10)]] {
            totals.besides.add(&second(waits));
        }
        let waits = totals.waits("client");
        let [only] = waits.as_slice() else { panic!("{waits:?}") };
        assert_eq!((only.sum(), only.layer.as_str()), (Waited { count: 17, total_ns: Some(1_700) }, "server"));
        let own = |servers: Vec<ServerStats>| -> Vec<u64> {
            servers.iter().flat_map(|server| &server.waits).map(|wait| wait.waits.count()).collect()
        };
        assert_eq!(own(totals.besides.into_servers()), [13, 4]);
        assert_eq!(own(second(&[("db1", 3)]).into_servers()), [0_u64; 0]);
    }
}
