//! What a target made of a load that was not measured, by which the load is corrected.

use crate::record::{LikeMoment, Step, WorkFigure};
use crate::workload::{OperationKind, SlobBlend, SlobPart};

/// More of the touches than this may not be left to the cache: then nothing is known of what reaches storage.
pub(super) const MOST_HITS: f64 = 0.9;
/// A touch makes no more reads than this besides its own.
const MOST_READS: f64 = 4.0;
/// A trial did what was asked for if it is no further from it.
const TRIAL_MET: f64 = 0.03;

/// What a target made of a load that was not measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observed {
    /// Share of the touches of cold blocks that were no physical reads: at most 0.9, and less than 0 where a touch makes more than one
    /// read, such as one of an index.
    pub hits: f64,
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
    /// A block that is changed may be written with others that are, and not at all for a while.
    const PER_EXPECTED: std::ops::RangeInclusive<f64> = 0.1..=10.0;

    /// Of so many writes per second in which `expected` are of changed cold blocks. `before` is what an earlier trial showed.
    ///
    /// Where no hot blocks are changed, all writes come of the changes, and are as many times those. Where some are, nobody can tell
    /// whose writes they are: what hot blocks make does not follow the changes of cold ones. It follows how busy the writers are,
    /// so two trials in turn show too much and too little, and their mean is closer.
    fn of(per_s: f64, expected: f64, changes_hot_blocks: bool, before: Option<Self>) -> Self {
        if !changes_hot_blocks && expected > 0.0 {
            let (least, most) = Self::PER_EXPECTED.into_inner();
            return Self { per_expected: (per_s / expected).clamp(least, most), other: 0.0 };
        }
        let Self { per_expected, other: other_before } = before.unwrap_or(Self::EXPECTED);
        let other = per_s - expected * per_expected;
        Self { per_expected, other: if other_before == 0.0 { other } else { (other + other_before) / 2.0 } }
    }
}

impl Observed {
    /// From what `step` did, which had this shape and asked for `scan_requests` per second once; `before` is what an earlier trial showed.
    /// Absent where the step does not count its reads.
    pub fn of(step: &Step, shape: &SlobBlend, scan_requests: f64, before: Option<&Self>) -> Option<Self> {
        let once_s = once_s(step, shape)?;
        let per_s = |count: Option<u64>| count.map(|count| count as f64 / once_s);
        let touches_of = |wanted: &dyn Fn(&SlobPart) -> bool| -> f64 {
            shape.parts.iter().filter(|part| wanted(part)).map(|part| part.per_s * part.blocks).sum()
        };
        let is_update = |part: &SlobPart| part.kind == OperationKind::Update;
        let changed = touches_of(&|part| is_update(part) && part.from_block > 0);
        let all_changed = touches_of(&is_update);
        let touches = changed + touches_of(&|part| part.kind == OperationKind::Read && part.from_block > 0);
        let has_scans = shape.parts.iter().any(|part| part.kind == OperationKind::Scan);
        let all_touches = Some(touches_of(&|_| true)).filter(|touches| *touches > 0.0 && !has_scans);
        let reads = per_s(step.counters.physical_reads)? - scan_requests;
        let hits = if touches > 0.0 { (1.0 - reads / touches).clamp(-MOST_READS, MOST_HITS) } else { 0.0 };
        let expected = changed * written_share(hits, changed, touches * (1.0 - hits));
        let before = before.and_then(|before| before.writes);
        Some(Self {
            hits,
            writes: per_s(step.counters.physical_writes)
                .map(|per_s| SeenWrites::of(per_s, expected, all_changed > changed, before)),
            redo_bytes_per_change: per_s(step.counters.redo_bytes)
                .filter(|_| all_changed > 0.0)
                .map(|redo| redo / all_changed),
            logical_per_touch: per_s(step.counters.logical_reads)
                .zip(all_touches)
                .map(|(logical, touches)| logical / touches),
        })
    }
}

/// Share of the changes of cold blocks that a write of its own follows, where `hits` of the touches find their block in the cache, and
/// `changes` of `reads` blocks are changed: of changes to a block that is in the cache, and changed already, there is one write.
pub(super) fn written_share(hits: f64, changes: f64, reads: f64) -> f64 {
    1.0 - hits.max(0.0) * share(changes, reads)
}

/// Seconds in which this load, once, has as many operations as `step` had: those that fell due by chance are more or fewer than the
/// rate, and a step may ask for a multiple. Absent where the step had none.
fn once_s(step: &Step, shape: &SlobBlend) -> Option<f64> {
    let seconds = step.counters.operations? as f64 / shape.per_s();
    (seconds > 0.0 && seconds.is_finite()).then_some(seconds)
}

/// Whether `step` did what is asked for in `moment`, once, as far as it counts it; within 3 % or what may be chance.
pub(super) fn is_met(step: &Step, shape: &SlobBlend, moment: &LikeMoment) -> bool {
    let Some(once_s) = once_s(step, shape) else { return false };
    let has_updates = shape.parts.iter().any(|part| part.kind == OperationKind::Update);
    let counters = &step.counters;
    // Bytes of redo are no number of things that happen by chance; the commits that make them are.
    let counted = [
        (WorkFigure::Reads, counters.physical_reads, counters.physical_reads),
        (WorkFigure::Writes, counters.physical_writes, counters.physical_writes),
        (WorkFigure::RedoBytes, counters.redo_bytes, counters.commits),
    ];
    counted.into_iter().all(|(figure, count, things)| match (count, moment.asked.get(&figure)) {
        (None, _) => true,
        (Some(_), None) => !(has_updates && moment.work.contains_key(&figure)),
        (Some(count), Some(asked)) => {
            let chance = 3.0 / (things.unwrap_or(0).max(1) as f64).sqrt();
            (count as f64 / once_s - asked).abs() <= asked * TRIAL_MET.max(chance)
        }
    })
}

/// The part that one is of another, 0 to 1.
fn share(part: f64, of: f64) -> f64 {
    if of > 0.0 { (part / of).min(1.0) } else { 0.0 }
}
