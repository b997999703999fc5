//! What else went on in the servers while they were measured.

use super::finding::CheckpointTerms;
use super::{Served, ServerFinding, Stops, imbalance, is_on_server};
use crate::{Vocabulary, measured, traffic};
use crate::{sending, worst};
use model::record::facts::Term;
use model::record::{Counters, Run, ServerStats, SessionState, Step};

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

pub(super) fn find(run: &Run) -> Vec<ServerFinding> {
    let found = [
        unread(run),
        rolled_back(run),
        checkpoints(run),
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
        let deadlocks = served.deadlocks().unwrap_or(0);
        let (committed, rolled_back) = served.transactions().unwrap_or((0, 0));
        (deadlocks > 0 || rolled_back as f64 > ROLLED_BACK * committed as f64).then_some((deadlocks, rolled_back))
    });
    let (deadlocks, rollbacks) = counts.iter().fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
    (!steps.is_empty()).then_some(ServerFinding::RolledBack { steps, deadlocks, rollbacks })
}

fn checkpoints(run: &Run) -> Option<ServerFinding> {
    let (steps, counts) = all(run, |step| {
        let served = Served::of(run, step);
        let (timed, requested) = (served.timed_checkpoints().unwrap_or(0), served.requested_checkpoints().unwrap_or(0));
        let images = served.page_images().unwrap_or(0);
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

fn vacuums(run: &Run) -> Option<ServerFinding> {
    let (steps, counts) = all(run, |step| {
        let served = Served::of(run, step);
        let counts = (served.vacuums().unwrap_or(0), served.analyses().unwrap_or(0));
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
        let of_scans = neighbours.saturating_add(served.reads_past_cache().unwrap_or(0));
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
        let past_cache = served.blocks_read_past_cache().unwrap_or(0);
        let [.., neighbours] = served.reads_by_blocks()?;
        let is_cached = asked > 0 && served.reads_past_cache()? == 0 && past_cache < asked / SCANS_PART;
        is_cached.then_some(neighbours)
    });
    let cure = run.target.term(Term::ScansPastCache).to_owned();
    let neighbours = neighbours.into_iter().sum();
    (!steps.is_empty()).then_some(ServerFinding::ScansCached { steps, neighbours, cure })
}

/// The logical reads of each node are the load that it had.
fn uneven(run: &Run) -> Option<ServerFinding> {
    let of_step = |step: &Step| {
        let rates: Option<Vec<f64>> = Served::each(run, step).map(|(_, node)| node.logical_reads_per_s()).collect();
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
    Some(ServerFinding::Idle { steps, share })
}
