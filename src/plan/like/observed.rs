//! What a target made of a load that was not measured, by which the load is corrected.

use model::record::{Counters, LikeMoment, Step, WorkFigure, counted_per_s};
use model::units::Bytes;
use model::workload::{OperationKind, SlobBlend, SlobPart};

/// More of the touches than this may not be left to the cache: then nothing is known of what reaches storage.
pub(super) const MOST_HITS: f64 = 0.9;
/// A touch makes no more reads than this besides its own.
const MOST_READS: f64 = 4.0;
/// A trial did what was asked for if it is no further from it.
const TRIAL_MET: f64 = 0.03;
/// Nor do so few things, more or less, say anything.
const FEW: f64 = 10.0;
/// Nothing that is as far as this from what was asked for is put down to chance.
const MOST_CHANCE: f64 = 0.5;

/// What a target made of a load that was not measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observed {
    /// Share of the touches of cold blocks that were no physical reads: at most 0.9, and as little as -4 where a touch makes more than one
    /// read, such as one of an index. Absent where reads are not counted, or those of scans are among them in a unit that is not known.
    pub hits: Option<f64>,
    /// What was written; absent where writes are not counted.
    pub writes: Option<SeenWrites>,
    /// Bytes of redo for each block that was changed, commits with it. Absent where redo is not counted or nothing was changed.
    pub redo_bytes_per_change: Option<f64>,
    /// Logical reads for each touch; absent where they are not counted, or scans made some.
    pub logical_per_touch: Option<f64>,
}

/// Writes that were seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeenWrites {
    /// For each write of a changed cold block that was expected.
    pub per_expected: f64,
    /// Per second, once, besides those, such as those of hot blocks that are written again and again; less than 0 where fewer were
    /// written.
    pub other: f64,
}

impl SeenWrites {
    /// As expected.
    pub(super) const EXPECTED: Self = Self { per_expected: 1.0, other: 0.0 };
    /// A server writes more for a change than one block. It writes less where it puts writes off, until a checkpoint or until its cache is
    /// full: those come later, so no more than twice the changes are asked for to make up for them.
    const PER_EXPECTED: std::ops::RangeInclusive<f64> = 0.5..=10.0;

    /// Of so many writes per second in which `expected` are of changed cold blocks. `before` is what an earlier trial showed.
    ///
    /// Where no hot blocks are changed, all writes come of the changes, and are as many times those. Where some are, nobody can tell
    /// whose writes they are: what hot blocks make does not follow the changes of cold ones. It follows how busy the writers are,
    /// so two trials in turn show too much and too little, and their mean is closer.
    fn of(per_s: f64, expected: f64, changes_hot_blocks: bool, before: Option<Self>) -> Self {
        let (least, most) = Self::PER_EXPECTED.into_inner();
        if !changes_hot_blocks && expected > 0.0 {
            return Self { per_expected: (per_s / expected).clamp(least, most), other: 0.0 };
        }
        let Self { per_expected, other: other_before } = before.unwrap_or(Self::EXPECTED);
        let other = (per_s - expected * per_expected).max(-least * expected);
        Self { per_expected, other: if other_before == 0.0 { other } else { (other + other_before) / 2.0 } }
    }
}

impl Observed {
    /// From what `step` did, which had this shape. `scan_requests` are among its reads, per second once; absent where the target counts scans
    /// in another unit. `before` is what an earlier trial showed. Absent where the step did nothing or counts nothing of use.
    pub fn of(step: &Step, shape: &SlobBlend, scan_requests: Option<f64>, before: Option<&Self>) -> Option<Self> {
        let trial = Trial::of(step, shape)?;
        let touches_of = |wanted: &dyn Fn(&SlobPart) -> bool| -> f64 {
            shape.parts.iter().filter(|part| wanted(part)).map(|part| part.per_s * part.blocks).sum()
        };
        let is_update = |part: &SlobPart| part.kind == OperationKind::Update;
        let changed = touches_of(&|part| is_update(part) && part.from_block > 0);
        let all_changed = touches_of(&is_update);
        let touches = changed + touches_of(&|part| part.kind == OperationKind::Read && part.from_block > 0);
        let has_scans = shape.parts.iter().any(|part| part.kind == OperationKind::Scan);
        let all_touches = Some(touches_of(&|_| true)).filter(|touches| *touches > 0.0 && !has_scans);
        let of_scans = if has_scans { scan_requests } else { Some(0.0) };
        let reads = trial.per_s(|it| it.physical_reads).zip(of_scans).map(|(reads, of_scans)| reads - of_scans);
        let seen = reads.filter(|_| touches > 0.0).map(|reads| (1.0 - reads / touches).clamp(-MOST_READS, MOST_HITS));
        let hits = seen.or(before.and_then(|before| before.hits));
        let at = hits.unwrap_or(0.0);
        let expected = changed * written_share(at, changed, touches * (1.0 - at));
        let before = before.and_then(|before| before.writes);
        let observed = Self {
            hits,
            writes: trial
                .per_s(|it| it.physical_writes)
                .map(|per_s| SeenWrites::of(per_s, expected, all_changed > changed, before)),
            redo_bytes_per_change: trial
                .per_s(|it| it.redo_bytes)
                .filter(|_| all_changed > 0.0)
                .map(|redo| redo / all_changed),
            logical_per_touch: trial
                .per_s(|it| it.logical_reads)
                .zip(all_touches)
                .map(|(logical, touches)| logical / touches),
        };
        let Self { hits, writes, redo_bytes_per_change, logical_per_touch } = observed;
        let is_seen =
            hits.is_some() || writes.is_some() || redo_bytes_per_change.is_some() || logical_per_touch.is_some();
        is_seen.then_some(observed)
    }

    /// What was seen, in words.
    pub(super) fn words(&self) -> String {
        let reads = self.hits.map(|hits| {
            // At its bounds it is no more than a bound.
            let bound = match hits {
                hits if hits >= MOST_HITS => "at most ",
                hits if hits <= -MOST_READS => "at least ",
                _ => "",
            };
            format!("each visit to a cold block made {bound}{:.3} physical reads", 1.0 - hits)
        });
        let (least, most) = SeenWrites::PER_EXPECTED.into_inner();
        let writes = self.writes.map(|SeenWrites { per_expected, other }| match per_expected {
            _ if other != 0.0 => format!("{other:+.0} writes/s were not those of changed cold blocks"),
            it if it <= least => {
                "no more than half of the expected writes were seen, so the others may come later".to_owned()
            }
            it if it >= most => format!("there were at least {most} times the expected writes"),
            it => format!("there were {it:.2} times the expected writes"),
        });
        let redo =
            self.redo_bytes_per_change.map(|bytes| format!("each changed block made {} of redo", Bytes(bytes as u64)));
        let all: Vec<String> = [reads, writes, redo].into_iter().flatten().collect();
        if all.is_empty() { "the target counted logical reads alone".to_owned() } else { all.join(", ") }
    }
}

/// Share of the changes of cold blocks that a write of its own follows, where `hits` of the touches find their block in the cache, and
/// `changes` of `reads` blocks are changed: of changes to a block that is in the cache, and changed already, there is one write.
pub(super) fn written_share(hits: f64, changes: f64, reads: f64) -> f64 {
    1.0 - hits.max(0.0) * share(changes, reads)
}

/// A step that was not measured, beside the load that it had once.
struct Trial<'a> {
    step: &'a Step,
    /// Seconds in which the load, once, has as many operations as the step had: those that fell due by chance are more or fewer than the
    /// rate, and a step may ask for a multiple.
    once_s: f64,
}

impl<'a> Trial<'a> {
    /// Absent where the step had no operations.
    fn of(step: &'a Step, shape: &SlobBlend) -> Option<Self> {
        let once_s = step.counters.operations? as f64 / shape.per_s();
        (once_s > 0.0 && once_s.is_finite()).then_some(Self { step, once_s })
    }

    /// What was counted, per second once. What servers count, they count between two readings of their own.
    fn per_s(&self, count: impl Fn(&Counters) -> Option<u64>) -> Option<f64> {
        let Step { counters, servers, window, .. } = self.step;
        let counted = counted_per_s(counters, servers, window.duration_ns, count)?;
        Some(counted * window.duration_ns as f64 / 1e9 / self.once_s)
    }

    /// Whether the target did what fell due, within 3 % or what may be chance.
    fn is_carried(&self) -> bool {
        let Step { counters, load, window, .. } = self.step;
        let due = load.rate_operations_per_s.map(|per_s| per_s * window.duration_ns as f64 / 1e9);
        due.zip(counters.operations).is_none_or(|(due, done)| done as f64 >= due * (1.0 - tolerance(due)))
    }
}

/// How far from a number of things may be that is expected and comes by chance, as a share of it.
fn tolerance(expected: f64) -> f64 {
    TRIAL_MET.max(3.0 / expected.max(1.0).sqrt()).min(MOST_CHANCE)
}

/// What a trial came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It did what is asked for, as far as that is counted.
    Met,
    /// It did other things, or in other proportions.
    NotMet,
    /// The target did not do the operations that fell due, so that proportions are all that can be said.
    NotCarried,
}

/// Whether `step` did what is asked for in `moment`, once; within 3 %, what may be chance, or a few. `can_tell_reads` where reads of scans are
/// counted in requests.
pub(super) fn judge(step: &Step, shape: &SlobBlend, moment: &LikeMoment, can_tell_reads: bool) -> Verdict {
    let Some(trial) = Trial::of(step, shape).filter(Trial::is_carried) else { return Verdict::NotCarried };
    let has = |kind: OperationKind| shape.parts.iter().any(|part| part.kind == kind);
    let (has_updates, has_scans) = (has(OperationKind::Update), has(OperationKind::Scan));
    let is_met = |figure: WorkFigure, seen: Option<f64>| {
        let Some(seen) = seen.filter(|_| moment.work.contains_key(&figure)) else { return true };
        let asked = |figure: WorkFigure| moment.asked.get(&figure).copied();
        let Some(asked_per_s) = asked(figure) else { return false };
        // Bytes of redo are no number of things that come by chance; the commits that make them are.
        let (things_per_s, few) = match figure {
            WorkFigure::RedoBytes => (asked(WorkFigure::Commits), 0.0),
            _ => (Some(asked_per_s), FEW),
        };
        let tolerance = things_per_s.map_or(TRIAL_MET, |per_s| tolerance(per_s * trial.once_s));
        (seen - asked_per_s).abs() <= (asked_per_s * tolerance).max(few / trial.once_s)
    };
    let reads = trial.per_s(|it| it.physical_reads).filter(|_| can_tell_reads || !has_scans);
    let logical = trial.per_s(|it| it.logical_reads).filter(|_| !has_scans);
    let logical = logical.filter(|_| moment.asked.contains_key(&WorkFigure::LogicalReads));
    // Without updates, what is written is not this load's.
    let writes = trial.per_s(|it| it.physical_writes).filter(|_| has_updates);
    let redo = trial.per_s(|it| it.redo_bytes).filter(|_| has_updates);
    let all = is_met(WorkFigure::Reads, reads)
        && is_met(WorkFigure::LogicalReads, logical)
        && is_met(WorkFigure::Writes, writes)
        && is_met(WorkFigure::RedoBytes, redo);
    if all { Verdict::Met } else { Verdict::NotMet }
}

/// The part that one is of another, 0 to 1.
fn share(part: f64, of: f64) -> f64 {
    if of > 0.0 { (part / of).min(1.0) } else { 0.0 }
}
