//! What database servers reported on themselves: rates and shares of it, and what it means for the figures of a run.

mod checkpoints;
mod classes;
mod figures;
mod finding;
mod own_report;
mod stops;
#[cfg(test)]
mod stops_tests;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use checkpoints::LogCheckpoints;
pub(crate) use classes::Classes;
pub use figures::{Served, imbalance, is_on_server, is_on_servers};
pub use finding::ServerFinding;
pub use own_report::{Beside, BesideLine, BesideUnit, MAX_AGREEING, Why as BesideWhy};
pub use stops::{Stops, UsedBy};

use super::Finding;
use crate::generator::own_wanted_share;
use crate::{Figures, ThreadsFlag, Vocabulary, measured, sending, traffic, worst};
use finding::CheckpointTerms;
use model::record::{Activity, Counters, CpuTime, Metric, Run, ServerFacts, ServerStats, SessionState, Step, Term};
use model::units::Bytes;

/// Everything that is to be said about servers.
pub(super) fn find(run: &Run) -> Vec<Finding> {
    if !is_on_servers(run) {
        return Vec::new();
    }
    let found = loses_commits(run)
        .into_iter()
        .chain(find_exhausted(run))
        .chain(find_shape(run))
        .chain(find_cache(run))
        .chain(find_activity(run));
    found.map(Finding::Server).collect()
}

/// Whether anything was committed on a server.
pub(crate) fn has_commits(run: &Run) -> bool {
    let committed = |step: &Step| {
        let counted = Served::of(run, step).transactions().map(|(commits, _)| commits).or(step.counters.commits);
        is_on_server(step) && counted.is_some_and(|commits| commits > 0)
    };
    // Operations of users write, and so do updates; others read, within transactions that servers count as well.
    let writes = |step: &Step| step.operations.iter().any(|operation| operation.kind == UPDATE && operation.count > 0);
    run.steps.iter().any(|step| committed(step) && (Vocabulary::of(run) == Vocabulary::Users || writes(step)))
}

/// A load that commits, on a server that may lose what it has acknowledged.
fn loses_commits(run: &Run) -> Option<ServerFinding> {
    let settings = run.target.facts.server.loses_commits();
    (!settings.is_empty() && has_commits(run)).then_some(ServerFinding::LosesCommits { settings })
}

// Servers that used up the processors of this machine, so that nothing is learnt about storage.

/// Whether the server used up the processors of this machine.
pub(crate) fn are_exhausted(run: &Run, step: &Step) -> bool {
    is_on_server(step) && Processors::of(run, step).is_some_and(|processors| processors.are_exhausted_by_server())
}

fn find_exhausted(run: &Run) -> Option<ServerFinding> {
    // For transactions processors are a limit as any other.
    if Vocabulary::of(run) == Vocabulary::Users {
        return None;
    }
    let exhausted = |step: &Step| {
        let processors = Processors::of(run, step).filter(|_| are_exhausted(run, step))?;
        Some((processors.busy?, processors.server?, processors.generator))
    };
    let (steps, (busy, server, generator)) = worst(run, exhausted)?;
    Some(ServerFinding::ProcessorsExhausted { steps, busy, server, generator })
}

/// Shares of buffer misses that the page cache answered, from which that is reported.
const SERVED: f64 = 0.1;
/// Fewer buffer misses than this say nothing.
const ENOUGH_MISSES: u64 = 1_000;

fn find_cache(run: &Run) -> Option<ServerFinding> {
    if run.target.reads_directly() {
        return None;
    }
    let share = |step: &Step| enough(run, step)?.page_cache_share().filter(|share| *share >= SERVED);
    if let Some((steps, share)) = worst(run, share) {
        let ServerFacts { is_private, memory_limit_bytes, .. } = run.target.facts.server;
        let (is_private, limited_to) =
            (is_private == Some(true), memory_limit_bytes.map(|limit| Bytes(limit).to_string()));
        return Some(ServerFinding::PageCacheServed { steps, share, is_private, limited_to });
    }
    let is_unknown = |step: &&Step| enough(run, step).is_some_and(|served| served.page_cache_share().is_none());
    let steps: Vec<String> = measured(run).filter(is_unknown).map(|step| step.label.clone()).collect();
    let data = run.target.data_bytes.map(Bytes);
    let direct = run.target.facts.server.terms.get(&Term::DirectReads).cloned();
    (!steps.is_empty()).then_some(ServerFinding::PageCacheUnknown { steps, data, direct })
}

/// What servers reported on a step, if blocks were missed in numbers.
fn enough<'a>(run: &Run, step: &'a Step) -> Option<Served<'a>> {
    let served = Served::of(run, step);
    served.buffer_misses().is_some_and(|misses| misses >= ENOUGH_MISSES).then_some(served)
}

/// A machine that was idle for less than the rest had no processor time left.
pub(crate) const EXHAUSTED: f64 = 0.95;
/// Below this share of the time used, it was not the server that used it up.
const MOSTLY_SERVER: f64 = 0.5;

/// The processors of the machine that the load generator runs on, over one window. Shares are 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Processors {
    /// Processors in use, as a mean.
    pub used: f64,
    /// Share of the time that processors were not idle; time that the hypervisor took counts as not idle.
    pub busy: Option<f64>,
    /// Share of the time that the hypervisor took while processors were wanted.
    pub stolen: Option<f64>,
    /// Share of the time that processors were idle while storage was waited for.
    pub io_wait: Option<f64>,
    /// Share of the time used that the load generator used.
    pub generator: Option<f64>,
    /// Share of the time used that the servers used; absent where they run elsewhere, or do not let us see.
    pub server: Option<f64>,
}

impl Processors {
    /// Of one step; absent where the machine's processor time is not known.
    pub fn of(run: &Run, step: &Step) -> Option<Self> {
        let figures = Figures(step);
        let cpu = step.host_cpu?;
        let CpuTime { iowait_ns, steal_ns, idle_ns, .. } = cpu;
        let seconds = Some(figures.seconds()).filter(|seconds| *seconds > 0.0)?;
        let used = cpu.busy_ns() as f64 / 1e9 / seconds;
        let share = |part: f64| (used > 0.0).then_some(part / used);
        let all = cpu.busy_ns() as f64 + iowait_ns.unwrap_or(0) as f64 + steal_ns.unwrap_or(0) as f64;
        let of_all = |ns: u64| idle_ns.map(|idle| ns as f64 / (all + idle as f64));
        Some(Self {
            used,
            busy: cpu.free_ns().and_then(of_all).map(|idle| 1.0 - idle),
            stolen: steal_ns.and_then(of_all),
            io_wait: iowait_ns.and_then(of_all),
            generator: figures.processors_busy().and_then(share),
            server: Served::of(run, step).processors().and_then(share),
        })
    }

    fn are_exhausted_by_server(&self) -> bool {
        self.busy.is_some_and(|busy| busy >= EXHAUSTED) && self.server.is_some_and(|share| share >= MOSTLY_SERVER)
    }
}

// Whether the tables still have the shape that was proven before the run: one row in one block, and as many blocks.

/// Growth of a table, as a share of its pages, beyond which it is not the table that was set up.
const GROWN: f64 = 0.01;
/// Below this share of updates whose new version stays on its page, rows move to other pages and indexes grow.
const HOT: f64 = 0.95;
/// The share of fewer updated rows than this says nothing.
const ENOUGH_ROWS: u64 = 1_000;

/// Growth adds up from step to step, so a step is distinguished from where the limit was crossed.
fn find_shape(run: &Run) -> Option<ServerFinding> {
    let (mut steps, mut max_grown, mut min_hot) = (Vec::new(), None::<(u64, f64)>, None::<f64>);
    let mut grown_of: BTreeMap<&str, u64> = BTreeMap::new();
    for step in measured(run) {
        for (node, grown) in growth(step) {
            *grown_of.entry(node).or_default() += grown;
        }
        let served = Served::of(run, step);
        let grown =
            grown_of.values().max().zip(served.pages()).map(|(grown, pages)| (*grown, *grown as f64 / pages as f64));
        let grown = grown.filter(|(_, share)| *share > GROWN);
        let hot = served.hot_share().filter(|share| {
            *share < HOT && served.activity(Activity::RowsUpdated).is_some_and(|rows| rows >= ENOUGH_ROWS)
        });
        if grown.is_some() || hot.is_some() {
            steps.push(step.label.clone());
            // Growth only adds up, so the last is the largest.
            max_grown = grown.or(max_grown);
            min_hot = hot.into_iter().chain(min_hot).reduce(f64::min);
        }
    }
    let (grown, hot_share) = (max_grown, min_hot);
    (!steps.is_empty()).then_some(ServerFinding::ShapeChanged { steps, grown, hot_share })
}

/// Pages by which each node's tables grew, the warm-up included: it writes as the window does.
fn growth(step: &Step) -> impl Iterator<Item = (&str, u64)> {
    let warmup = step.intervals.iter().filter(|interval| interval.warmup).flat_map(|interval| &interval.servers);
    let grown = |server: &'_ ServerStats| server.activity.get(&Activity::TableBlocksGrown).copied();
    warmup.chain(&step.servers).filter_map(move |server| Some((server.node.as_str(), grown(server)?)))
}

/// Operations that write.
const UPDATE: &str = "update";
/// Operations that read many neighbouring blocks at once.
const SCAN: &str = "scan";
/// Nodes whose rates differ by more than this share of their mean are not loaded alike.
const UNEVEN: f64 = 0.1;
/// Rolled-back transactions for each committed one, above which they are no accident.
const ROLLED_BACK: f64 = 0.01;
/// Time that the readings of a server miss of the window, or have beyond it, as a share.
const MISSED: f64 = 0.02;
/// Shorter than this, readings are only not quite at the edges.
const MISSED_NS: u64 = 500_000_000;
/// Fewer looks at sessions than this say little.
const ENOUGH_LOOKS: u64 = 10;
/// Share of reads of several blocks from which they are among the percentiles that reads are judged by.
const SEVERAL_BLOCKS: f64 = 0.01;
/// Blocks read past the cache are those of scans where they are at least this part of what scans asked for.
const SCANS_PART: u64 = 2;
/// Fewer reads than this say little of how the others were made.
const ENOUGH_READS: u64 = 100;
/// What sessions of a read load do anyway.
const EXPECTED: [SessionState; 3] = [SessionState::Processor, SessionState::ProcessorOrRead, SessionState::Read];

fn find_activity(run: &Run) -> Vec<ServerFinding> {
    let found = [
        unread(run),
        rolled_back(run),
        log_checkpoints(run).or_else(|| checkpoints(run)),
        vacuums(run),
        not_single_block(run),
        scans_cached(run),
        uneven(run),
        found_in(run),
        idle(run),
    ];
    found.into_iter().flatten().collect()
}

/// Labels of the steps for which `rule` answers, with the answers.
fn all<T>(run: &Run, rule: impl Fn(&Step) -> Option<T>) -> (Vec<String>, Vec<T>) {
    measured(run).filter_map(|step| Some((step.label.clone(), rule(step)?))).unzip()
}

/// A server that did not answer when it was to be read.
fn unread(run: &Run) -> Option<ServerFinding> {
    let of_step = |step: &Step| {
        let of_server = |server: &ServerStats| {
            let off = server.elapsed_ns.abs_diff(step.window.duration_ns);
            let missed = off as f64 / step.window.duration_ns as f64;
            let missed = if off > MISSED_NS && missed > MISSED { missed } else { 0.0 };
            let silent = traffic::inside(step).filter(|second| !answered(&second.servers, &server.node)).count();
            (missed > 0.0 || silent > 0).then(|| (missed, silent, server.node.clone()))
        };
        step.servers.iter().filter_map(of_server).reduce(|a, b| if a >= b { a } else { b })
    };
    let (steps, (missed, silent, node)) = worst(run, of_step)?;
    Some(ServerFinding::Unread { steps, node, silent, missed })
}

fn answered(servers: &[ServerStats], node: &str) -> bool {
    servers.iter().any(|server| server.node == node && server.counters != Counters::default())
}

fn rolled_back(run: &Run) -> Option<ServerFinding> {
    let (steps, counts) = all(run, |step| {
        let served = Served::of(run, step);
        let deadlocks = served.activity(Activity::Deadlocks).unwrap_or(0);
        let (committed, rolled_back) = served.transactions().unwrap_or((0, 0));
        (deadlocks > 0 || rolled_back as f64 > ROLLED_BACK * committed as f64).then_some((deadlocks, rolled_back))
    });
    let (deadlocks, rollbacks) = counts.iter().fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
    (!steps.is_empty()).then_some(ServerFinding::RolledBack { steps, deadlocks, rollbacks })
}

fn checkpoints(run: &Run) -> Option<ServerFinding> {
    let (steps, counts) = all(run, |step| {
        let served = Served::of(run, step);
        let (timed, requested) = (
            served.activity(Activity::CheckpointsTimed).unwrap_or(0),
            served.activity(Activity::CheckpointsRequested).unwrap_or(0),
        );
        let images = served.activity(Activity::LogBlockImages).unwrap_or(0);
        // A timed checkpoint of a load that writes nothing has nothing to do.
        (requested > 0 || (timed > 0 && images > 0)).then_some((timed, requested, images, served.page_image_share()))
    });
    let timed = counts.iter().map(|(timed, ..)| timed).sum();
    let requested = counts.iter().map(|(_, requested, ..)| requested).sum();
    let images = counts.iter().map(|(.., images, _)| images).sum();
    let image_share = counts.iter().filter_map(|(.., share)| *share).reduce(f64::max);
    let terms = CheckpointTerms::of(run);
    let is_found = !steps.is_empty();
    is_found.then_some(ServerFinding::CheckpointInWindow { steps, timed, requested, images, image_share, terms })
}

/// Those that the limit of the log requested too often: of the step in which they cost most, or came most often.
fn log_checkpoints(run: &Run) -> Option<ServerFinding> {
    let (steps, mut found): (Vec<String>, Vec<(LogCheckpoints, Option<f64>)>) = all(run, |step| {
        let image_share = Served::of(run, step).page_image_share();
        Some((LogCheckpoints::of(run, step)?, image_share))
    });
    let cost = |found: &LogCheckpoints| (found.slower.unwrap_or(0.0), 1.0 / found.every.0.max(1) as f64);
    let worst = (0..found.len()).max_by(|one, other| {
        let (one, other) = (cost(&found[*one].0), cost(&found[*other].0));
        one.partial_cmp(&other).unwrap_or(std::cmp::Ordering::Equal)
    })?;
    let (found, image_share) = found.swap_remove(worst);
    let log = run.target.term(Term::Log).to_owned();
    Some(ServerFinding::LogCheckpoints { step: steps[worst].clone(), steps, found, image_share, log })
}

fn vacuums(run: &Run) -> Option<ServerFinding> {
    let (steps, counts) = all(run, |step| {
        let served = Served::of(run, step);
        let counts =
            (served.activity(Activity::Vacuums).unwrap_or(0), served.activity(Activity::Analyses).unwrap_or(0));
        (counts != (0, 0)).then_some(counts)
    });
    let (vacuums, analyses) = counts.iter().fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
    (!steps.is_empty()).then_some(ServerFinding::VacuumInWindow { steps, vacuums, analyses })
}

/// Sessions that read rows were given several blocks at once. Reads of neighbours, and those past the cache, are what a scan asks for.
fn not_single_block(run: &Run) -> Option<ServerFinding> {
    let of_step = |step: &Step| {
        let served = Served::of(run, step);
        let [single, batched, neighbours] = served.reads_by_blocks()?;
        let of_scans = neighbours.saturating_add(served.activity(Activity::ReadsPastCache).unwrap_or(0));
        let several = if scanned_blocks(step) > 0 { batched } else { batched.saturating_add(of_scans) };
        let all = single.saturating_add(several);
        let share = several as f64 / all.max(1) as f64;
        (all >= ENOUGH_READS && share > SEVERAL_BLOCKS).then_some(share)
    };
    let (steps, share) = worst(run, of_step)?;
    let cure = run.target.term(Term::SingleBlockReads).to_owned();
    Some(ServerFinding::NotSingleBlock { steps, share, cure })
}

/// Blocks that scans have asked for.
fn scanned_blocks(step: &Step) -> u64 {
    let scans = step.operations.iter().filter(|operation| operation.kind == SCAN);
    scans.map(|scans| scans.block_touches.max(scans.count)).sum()
}

/// Scans that were to be reads past the cache, on a server that says of its reads which are.
fn scans_cached(run: &Run) -> Option<ServerFinding> {
    let (steps, neighbours) = all(run, |step| {
        let served = Served::of(run, step);
        let asked = scanned_blocks(step);
        // Others may read past the cache as well, and sessions need not wait for what was read in time.
        let past_cache = served.activity(Activity::BlocksReadPastCache).unwrap_or(0);
        let [.., neighbours] = served.reads_by_blocks()?;
        let is_cached = asked > 0 && served.activity(Activity::ReadsPastCache)? == 0 && past_cache < asked / SCANS_PART;
        is_cached.then_some(neighbours)
    });
    let cure = run.target.term(Term::ScansPastCache).to_owned();
    let neighbours = neighbours.into_iter().sum();
    (!steps.is_empty()).then_some(ServerFinding::ScansCached { steps, neighbours, cure })
}

/// The logical reads of each node are the load that it had.
fn uneven(run: &Run) -> Option<ServerFinding> {
    let of_step = |step: &Step| {
        let rates: Option<Vec<f64>> =
            Served::each(run, step).map(|(_, node)| node.value(Metric::LogicalReads)).collect();
        imbalance(&rates?).filter(|apart| *apart > UNEVEN)
    };
    let (steps, imbalance) = worst(run, of_step)?;
    Some(ServerFinding::NodesUneven { steps, imbalance })
}

/// Where the sessions of the largest load were found most often, if it is not what a read load must do anyway.
fn found_in(run: &Run) -> Option<ServerFinding> {
    let step = measured(run).max_by_key(|step| step.load.sessions)?;
    if Vocabulary::of(run) == Vocabulary::Users {
        let stops = Stops::of(run, step)?;
        return Some(ServerFinding::Stopped { step: step.label.clone(), stops });
    }
    let served = Served::of(run, step);
    let doing = served.doing();
    let all: f64 = doing.values().sum();
    let (what, sessions) = doing.iter().max_by(|left, right| left.1.total_cmp(right.1))?;
    let is_reported = served.looks() >= ENOUGH_LOOKS && all > 0.0 && !EXPECTED.contains(&served.state(what));
    is_reported.then(|| ServerFinding::SessionsFoundIn {
        step: step.label.clone(),
        doing: (*what).to_owned(),
        share: sessions / all,
        looks: served.looks(),
        state: served.state(what),
        log: run.target.term(Term::Log).to_owned(),
    })
}

fn idle(run: &Run) -> Option<ServerFinding> {
    let (steps, share) = worst(run, |step| sending::idle(step).filter(|_| is_on_server(step)))?;
    let worst = measured(run).find(|step| is_on_server(step) && sending::idle(step) == Some(share))?;
    Some(ServerFinding::Idle { steps, share, wanted: own_wanted_share(worst), threads: ThreadsFlag::of(run) })
}
