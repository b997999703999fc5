//! The kinds of work that are asked for, and what came of each in one step.

use super::{READS_REACHED, Unmeasured, WRITES_REACHED};
use crate::ceiling::SLOTS_IN_USE;
use crate::doubts::hung;
use crate::generator::own_lag_p99_ns;
use crate::{
    Figures, LatencyTarget, QuantileValue, SINGLE_BLOCK_READ, Subject, VerdictOutcome, is_on_server, judge,
    operations_are_requests, wait,
};
use model::record::{Demand, Demands, Metric, OperationStats, Run, Step, Unended, Within};
use model::units::{Bytes, Nanos};

/// Bytes of one request of a scan of raw storage, where the run does not say.
const SCAN_REQUEST_BYTES: f64 = 1_048_576.0;
/// Work without a limit is done in time if it takes no longer than this: a device that cannot follow takes longer.
const NO_LIMIT: Within = Within { quantile: 0.99, limit: Nanos::millis(20) };
/// Wait by which databases time a commit.
const COMMIT: &str = "log file sync";

/// A kind of work that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Reads of one block.
    Reads,
    /// Writes of one block.
    Writes,
    /// Durable commits.
    Commits,
    /// Large reads one after the other, in bytes.
    Scan,
}

/// What came of a kind of work in one step.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Reached {
    /// Which.
    pub kind: Kind,
    /// What was asked for in this step, per second; of a scan in bytes.
    pub asked_per_s: f64,
    /// What was finished per second, in the same unit; absent where it is not counted.
    pub per_s: Option<f64>,
    /// Value of the percentile that is asked for, or of the 99th; absent where nothing was timed.
    pub value: Option<QuantileValue>,
    /// The same from when it was sent, which a wait behind stalled work is not in; absent where that is not timed by itself.
    pub service: Option<QuantileValue>,
    /// How soon it should be done.
    pub within: Option<Within>,
}

impl Reached {
    /// Whether it took longer than was asked for.
    pub fn is_late(&self) -> bool {
        self.within.zip(self.value).is_some_and(|(within, value)| value.ns > within.limit)
    }
}

impl Kind {
    fn demand(self, demands: &Demands) -> Option<Demand> {
        match self {
            Self::Reads => demands.reads,
            Self::Writes => demands.writes,
            Self::Commits => demands.commits,
            Self::Scan => demands.scan.map(|scan| Demand { per_s: scan.0, within: None }),
        }
    }

    /// The operations that are of this kind alone, by their name in the record.
    fn operations(self, run: &Run) -> Option<&'static str> {
        match (operations_are_requests(run), self) {
            (_, Self::Reads) => Some("read"),
            (true, Self::Writes) => Some("write"),
            (true, Self::Scan) => Some("large read"),
            (false, Self::Scan) => Some("scan"),
            (false, Self::Commits) => Some("update"),
            // A database writes in the background.
            (false, Self::Writes) | (true, Self::Commits) => None,
        }
    }

    /// What its time is measured by. Reads and writes of storage from when they are due, so that a wait for a slot is
    /// counted; a commit as databases do, by the wait for its redo, where that is timed.
    fn subject(self, run: &Run, step: &Step) -> Option<Subject> {
        let operations = self.operations(run)?;
        let done = step.operations.iter().any(|kind| kind.kind == operations && kind.response.count() > 0);
        match self {
            Self::Commits if wait(step, COMMIT).is_some() => Some(Subject::Event(COMMIT.to_owned())),
            Self::Reads if !done && wait(step, SINGLE_BLOCK_READ).is_some() => {
                Some(Subject::Event(SINGLE_BLOCK_READ.to_owned()))
            }
            _ => done.then(|| Subject::Response(Some(operations.to_owned()))),
        }
    }

    /// What was finished of it per second; of a scan in bytes.
    fn per_s(self, run: &Run, step: &Step) -> Option<f64> {
        let figures = Figures(step);
        let of_kind = |name: &str| {
            let finished = |kind: &&OperationStats| kind.kind == name;
            let count = step.operations.iter().find(finished).map_or(0, |kind| kind.response.count());
            (figures.seconds() > 0.0).then(|| count as f64 / figures.seconds())
        };
        let is_raw = operations_are_requests(run);
        match self {
            Self::Reads if !is_raw => wait(step, SINGLE_BLOCK_READ)
                .map(|reads| reads.waits.count() as f64 / figures.seconds())
                // A server reads what its buffers lack, from the page cache or from storage.
                .or_else(|| figures.value(Metric::BufferMisses).filter(|_| is_on_server(step)))
                .or_else(|| figures.value(Metric::Reads)),
            Self::Writes if !is_raw => figures.value(Metric::Writes),
            Self::Scan => {
                let bytes = run.check.as_ref().and_then(|check| check.scan_bytes).map(|bytes| bytes as f64);
                Some(of_kind(self.operations(run)?)? * bytes.unwrap_or(SCAN_REQUEST_BYTES))
            }
            _ => of_kind(self.operations(run)?),
        }
    }
}

pub(super) fn asked(demands: &Demands) -> impl Iterator<Item = (Kind, Demand)> + '_ {
    let kinds = [Kind::Reads, Kind::Writes, Kind::Commits, Kind::Scan];
    kinds.into_iter().filter_map(|kind| Some((kind, kind.demand(demands)?)))
}

fn target(run: &Run, step: &Step, kind: Kind, within: Option<Within>) -> Option<LatencyTarget> {
    let within = within.unwrap_or(Within { quantile: 0.99, limit: Nanos(u64::MAX) });
    let subject = Some(kind.subject(run, step)?);
    Some(LatencyTarget { subject, quantile: within.quantile, limit: within.limit, errors: None })
}

/// What came of each kind in a step at a multiple of what is asked.
pub(super) fn reached(run: &Run, step: &Step, demands: &Demands, times: f64) -> Vec<Reached> {
    let of = |(kind, demand): (Kind, Demand)| Reached {
        kind,
        asked_per_s: demand.per_s * times,
        per_s: kind.per_s(run, step),
        value: target(run, step, kind, demand.within).and_then(|target| target.quantile_value(run.workload(), step)),
        service: target(run, step, kind, demand.within)
            .filter(|target| matches!(target.subject, Some(Subject::Response(_))))
            .and_then(|target| once_sent(target).quantile_value(run.workload(), step)),
        within: demand.within,
    };
    asked(demands).map(of).collect()
}

/// The limit of the first kind that has one.
pub(super) fn first_limit(run: &Run, step: &Step, demands: &Demands) -> Option<LatencyTarget> {
    asked(demands).find_map(|(kind, demand)| target(run, step, kind, Some(demand.within?)))
}

/// The same limit from when work was sent.
fn once_sent(target: LatencyTarget) -> LatencyTarget {
    let subject = target.subject.map(|subject| match subject {
        Subject::Response(kind) => Subject::Service(kind),
        other => other,
    });
    LatencyTarget { subject, ..target }
}

/// Operations that failed.
pub(super) fn errors(step: &Step) -> u64 {
    step.counters.errors.unwrap_or(0)
}

/// The number of slots, if nearly all were busy all the time although what had one was done in time: then more of them may have
/// carried more, and what waited says nothing of the storage.
pub(super) fn busy_slots(run: &Run, step: &Step, demands: &Demands) -> Option<u32> {
    let slots = step.load.sessions.filter(|slots| *slots > 0)?;
    let is_timed = |(kind, _): &(Kind, Demand)| *kind != Kind::Scan && kind.operations(run).is_some();
    let mut timed: Vec<(Kind, Demand)> = asked(demands).filter(is_timed).collect();
    if timed.iter().any(|(_, demand)| demand.within.is_some()) {
        timed.retain(|(_, demand)| demand.within.is_some());
    }
    let in_time = |(kind, demand): &(Kind, Demand)| {
        let target = target(run, step, *kind, Some(demand.within.unwrap_or(NO_LIMIT))).map(once_sent);
        target.is_some_and(|target| {
            target.quantile_value(run.workload(), step).is_some_and(|value| value.ns <= target.limit)
        })
    };
    let busy = Figures(step).busy_sessions()?;
    (busy >= SLOTS_IN_USE * f64::from(slots) && !timed.is_empty() && timed.iter().all(in_time)).then_some(slots)
}

/// Whether a kind of work took longer than its limit even from when it was sent, by more than the lateness of this machine can
/// explain: who has no time to send has none to look at answers either.
fn is_late_once_sent(run: &Run, step: &Step, demands: &Demands) -> bool {
    let Some(lag) = own_lag_p99_ns(step).filter(|_| !judge::is_generator_busy(step)) else { return false };
    asked(demands).any(|(kind, demand)| {
        let Some(target) = demand.within.and_then(|within| target(run, step, kind, Some(within))) else { return false };
        let (limit, value) = (target.limit, once_sent(target).quantile_value(run.workload(), step));
        value.is_some_and(|value| value.ns.0 > limit.0.saturating_add(lag))
    })
}

/// What never ended and was given up before its limit had passed, where nothing else misses a limit.
pub(super) fn given_up(run: &Run, step: &Step, demands: &Demands) -> Option<Unended> {
    let late = step.unended.filter(|_| hung(step).is_none())?;
    let is_open = |kind: Kind, demand: Demand| {
        let target = demand.within.and_then(|within| target(run, step, kind, Some(within)));
        target.is_some_and(|target| judge::leaves_open(step, &target))
    };
    let is_kept = |kind: Kind, demand: Demand| {
        let target = target(run, step, kind, demand.within);
        target.is_none_or(|target| judge::judge(step, &target) == Some(VerdictOutcome::Passed))
    };
    let is_any_open = asked(demands).any(|(kind, demand)| is_open(kind, demand));
    if !is_any_open || !asked(demands).all(|(kind, demand)| is_open(kind, demand) || is_kept(kind, demand)) {
        return None;
    }
    // A queue that grew, or a lack of steadiness, is an answer whatever they took.
    let mut as_if_kept = step.clone();
    as_if_kept.unended = None;
    as_if_kept.outstanding.iter_mut().for_each(|kind| kind.unended.clear());
    (judged(run, &as_if_kept, demands) == VerdictOutcome::Passed).then_some(late)
}

/// The verdict on a step: that of all kinds together, unless operations were given up too early to say. Like a load that was not sent in time
/// that says nothing of the target.
pub(super) fn verdict(run: &Run, step: &Step, demands: &Demands) -> VerdictOutcome {
    match judged(run, step, demands) {
        VerdictOutcome::Failed | VerdictOutcome::Unsteady if given_up(run, step, demands).is_some() => {
            VerdictOutcome::GeneratorBound
        }
        outcome => outcome,
    }
}

/// The verdict on a step by all kinds that are asked for. Lateness of the generator is in all response times, so it excuses
/// all that it can explain, and so do slots that were all busy. Errors are not excused: a database stops at them.
fn judged(run: &Run, step: &Step, demands: &Demands) -> VerdictOutcome {
    let judged = |(kind, demand): (Kind, Demand)| {
        // Writes of a database have no time that anybody waits for.
        let target = match kind.operations(run) {
            None => LatencyTarget { limit: Nanos(u64::MAX), ..LatencyTarget::default() },
            Some(_) => target(run, step, kind, demand.within)?,
        };
        judge::judge(step, &target)
    };
    let outcomes: Vec<_> = asked(demands).map(judged).collect();
    let is = |outcome| outcomes.contains(&Some(outcome));
    let is_missed = [VerdictOutcome::Failed, VerdictOutcome::Unsteady].into_iter().any(is);
    let is_late = is_late_once_sent(run, step, demands);
    if errors(step) > 0 {
        VerdictOutcome::Failed
    } else if is(VerdictOutcome::GeneratorBound) && !is_late || is_missed && busy_slots(run, step, demands).is_some() {
        VerdictOutcome::GeneratorBound
    } else if is(VerdictOutcome::Failed) || is(VerdictOutcome::GeneratorBound) {
        VerdictOutcome::Failed
    } else if is(VerdictOutcome::Unsteady) || outcomes.contains(&None) {
        VerdictOutcome::Unsteady
    } else {
        VerdictOutcome::Passed
    }
}

/// Whether something before the storage has done a part of the work.
pub(super) fn not_on_storage(run: &Run, step: &Step, demands: &Demands) -> Option<Unmeasured> {
    if operations_are_requests(run) {
        return None;
    }
    if let (Some(data), Some(cache)) = (run.target.data_bytes, run.target.cache_bytes)
        && data <= cache
    {
        let sentence = format!("the data ({}) fit into the cache ({})", Bytes(data), Bytes(cache));
        return Some(Unmeasured::Doubt { sentence, advice: Some("use a larger `--size`".to_owned()) });
    }
    let less = |kind: Kind, share: f64| {
        let asked = kind.demand(demands)?.per_s;
        let reached = kind.per_s(run, step)?;
        (reached < share * asked).then_some((reached, asked))
    };
    let cached = less(Kind::Reads, READS_REACHED)
        .map(|(reads_per_s, asked_per_s)| Unmeasured::Cached { reads_per_s, asked_per_s });
    cached.or_else(|| {
        let (writes_per_s, asked_per_s) = less(Kind::Writes, WRITES_REACHED)?;
        Some(Unmeasured::WrittenLater { writes_per_s, asked_per_s })
    })
}

/// The kind of work of which there was too little for its percentile.
pub(super) fn too_few(run: &Run, step: &Step, demands: &Demands) -> Option<Unmeasured> {
    asked(demands).find_map(|(kind, demand)| {
        let within = demand.within?;
        let target = target(run, step, kind, Some(within))?;
        let wanted = within.count();
        let count = target.subject.as_ref()?.times(step).map_or(0, |times| times.count());
        let seconds = Figures(step).seconds();
        let per_s = if count > 0 && seconds > 0.0 { count as f64 / seconds } else { demand.per_s };
        let needs = Nanos((wanted as f64 / per_s * 1e9) as u64);
        let of_updates = kind == Kind::Reads && !operations_are_requests(run) && demands.commits.is_some();
        (count < wanted).then_some(Unmeasured::TooFew { kind, count, wanted, of_updates, needs })
    })
}
