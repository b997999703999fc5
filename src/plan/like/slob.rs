//! The SLOB method like a production: single reads, updates and scans at rates of their own, on cold blocks and on a hot set.
//!
//! A *touch* is one block that an operation visits. Touches of the cold blocks, which are all but the hot set, find a share of them in
//! the cache, so a little more of them than reads are asked for. Touches of the hot set find their blocks in the cache: they make up
//! for logical reads that are no physical ones, and for redo and commits that write no further blocks.

use super::split::split;
use super::updates::{Asked, OnData, Updates, updates};
use super::words::{by, mean_size, not, partly, rate};
use crate::plan::check::SCAN_REQUEST;
use crate::record::{Aspect, LikeMoment, Step, Work, WorkFigure};
use crate::targets::database::RedoSizes;
use crate::units::{Bytes, percent};
use crate::workload::{OperationKind, SlobBlend, SlobPart};

/// Blocks of the hot set of each schema. Few, so that each is touched long before the cache would need its place.
pub const HOT_SET: u64 = 128;
/// Of these, so many are changed, or as many as one update needs. Each is written again and again as the writers please, and the fewer they are the less that decides
/// how much is written in all.
pub const HOT_CHANGED: u64 = 32;
/// The hot sets of all schemas take no more than one in so many blocks of a cache.
const HOT_SHARE: u64 = 16;
/// More of the touches than this may not be left to the cache: then nothing is known of what reaches storage.
const MOST_HITS: f64 = 0.9;
/// A touch makes no more reads than this besides its own.
const MOST_READS: f64 = 4.0;
/// What is asked for counts as what production did if it is no further from it.
const SAME: f64 = 0.02;
/// A trial did what was asked for if it is no further from it.
const TRIAL_MET: f64 = 0.03;

/// What is known of the data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlobFacts {
    /// Schemas under load.
    pub schemas: u32,
    /// Blocks of each that may be touched.
    pub scale_blocks: u64,
    /// Blocks of each scan table.
    pub scan_blocks: u64,
    /// Size of a block.
    pub block_bytes: u32,
    /// Memory between the load and storage; absent where that is not known.
    pub cache: Option<Bytes>,
    /// Whether the target is known to have a buffer cache at all.
    pub has_buffers: bool,
    /// Whether a scan reads storage whatever the cache holds.
    pub scans_past_cache: bool,
    /// Redo of a change; absent where that is not known.
    pub redo: Option<RedoSizes>,
    /// Sessions that there may be.
    pub max_sessions: u32,
    /// What was seen of this load before; absent where nobody looked.
    pub observed: Option<Observed>,
}

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
    const EXPECTED: Self = Self { per_expected: 1.0, other: 0.0 };
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
fn written_share(hits: f64, changes: f64, reads: f64) -> f64 {
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

/// A load on a database that is like a moment of production, once.
#[derive(Debug, Clone, PartialEq)]
pub struct SlobLike {
    /// What is done.
    pub shape: SlobBlend,
    /// What is asked for by that.
    pub asked: Work,
    /// What is reproduced, and what is not.
    pub aspects: Vec<Aspect>,
}

/// The load that is like `work` on data of which `facts` are known. It has no part where nothing that it needs is reported.
pub fn slob(work: &Work, facts: &SlobFacts) -> SlobLike {
    Planned::new(work, facts).like()
}

struct Planned<'a> {
    work: &'a Work,
    facts: &'a SlobFacts,
    /// Blocks of each hot set, and those of them that are changed; 0 for none.
    hot_set: u64,
    hot_changed: u64,
    /// Share of the touches of cold blocks that a cache answers, 0 to 1.
    hits: f64,
    /// Reads of one block, and requests of scans, per second.
    single: f64,
    scan_requests: f64,
    scans: f64,
    /// Whether scans are wanted and there is nothing to scan.
    lacks_scan_table: bool,
    /// Writes that are asked for.
    writes: f64,
    /// Bytes of redo per second, as far as it is known what a change makes.
    redo: Option<f64>,
    updates: Updates,
    /// Touches of cold blocks that change nothing, and reads of the hot set.
    cold_reads: f64,
    hot_reads: f64,
    hot_read_blocks: f64,
    /// Logical reads of a touch.
    logical_per_touch: f64,
}

impl<'a> Planned<'a> {
    fn new(work: &'a Work, facts: &'a SlobFacts) -> Self {
        let of = |figure: WorkFigure| work.get(&figure).copied();
        let schemas = u64::from(facts.schemas.max(1));
        let block = f64::from(facts.block_bytes.max(1));
        let cached = facts.cache.map(|cache| (cache.0 as f64 / block) as u64);
        let hot_set = match cached {
            _ if !facts.has_buffers => 0,
            Some(blocks) => HOT_SET.min(blocks / HOT_SHARE / schemas).max(1),
            None => HOT_SET,
        };
        let hot_set = hot_set.min(facts.scale_blocks / 2);
        let cold = schemas * (facts.scale_blocks.max(1) - hot_set).max(1);
        let room = cached.unwrap_or(0).saturating_sub(hot_set * schemas) as f64;
        let estimate = (room / cold as f64).min(MOST_HITS);
        let hits = facts.observed.map_or(estimate, |observed| observed.hits);

        let (single, scan) = split(of(WorkFigure::Reads), of(WorkFigure::ReadBytes), facts.block_bytes);
        let single = single.unwrap_or(0.0);
        let scan_bytes = facts.scan_blocks as f64 * block;
        // A table that is scanned through a cache has to be larger than that, or storage is not read.
        let is_cached =
            !facts.scans_past_cache && facts.cache.is_some_and(|it| scan_bytes * schemas as f64 <= it.0 as f64);
        let can_scan = scan_bytes > 0.0 && !is_cached;
        let lacks_scan_table = scan.is_some() && !can_scan;
        let scans = scan.filter(|_| can_scan).map_or(0.0, |bytes| bytes / scan_bytes);
        let scan_requests = scans * (scan_bytes / SCAN_REQUEST.0 as f64).ceil();

        // A changed block is written when its place is needed, so there are no more of these writes than reads.
        let seen_writes = facts.observed.and_then(|observed| observed.writes).unwrap_or(SeenWrites::EXPECTED);
        let SeenWrites { per_expected, other: other_writes } = seen_writes;
        let writes = ((of(WorkFigure::Writes).unwrap_or(0.0) - other_writes) / per_expected).clamp(0.0, single);
        let written = written_share(hits, writes, single);
        let cold_touches = single / (1.0 - hits);
        let changes = (writes / written).min(cold_touches);
        let commits = of(WorkFigure::Commits).unwrap_or(0.0);
        let asked = Asked { commits, changes, redo: of(WorkFigure::RedoBytes) };
        // A server that moves a row when it changes writes more blocks for each change, so none are made there for redo alone.
        let on =
            OnData { cold_blocks: facts.scale_blocks.saturating_sub(hot_set), hot_blocks: hot_set, redo: facts.redo };
        let updates = updates(asked, on);
        let seen = facts.observed.and_then(|observed| observed.redo_bytes_per_change);
        let redo = match facts.redo {
            Some(sizes) => Some(updates.redo(sizes)),
            None => seen.map(|bytes| bytes * (updates.cold_touches() + updates.hot_touches())),
        };
        let hot_changed = HOT_CHANGED.max(updates.hot_blocks.ceil() as u64).min(hot_set);
        let cold_reads = (cold_touches - updates.cold_touches()).max(0.0);
        let touched = cold_reads + updates.cold_touches() + updates.hot_touches();
        let logical_per_touch =
            facts.observed.and_then(|observed| observed.logical_per_touch).filter(|per_touch| *per_touch > 0.0);
        let logical_per_touch = logical_per_touch.unwrap_or(1.0);
        let missing =
            of(WorkFigure::LogicalReads).map_or(0.0, |logical| (logical / logical_per_touch - touched).max(0.0));
        let hot_read_blocks = hot_set as f64;
        let hot_reads = if hot_set > 0 { missing / hot_read_blocks } else { 0.0 };
        Self {
            work,
            facts,
            hot_set,
            hot_changed,
            hits,
            single,
            scan_requests,
            scans,
            lacks_scan_table,
            // A commit changes a block at least, and no more than some.
            writes: if updates.per_s() > 0.0 {
                updates.cold_touches() * written * per_expected + other_writes
            } else {
                0.0
            },
            logical_per_touch,
            redo,
            updates,
            cold_reads,
            hot_reads,
            hot_read_blocks,
        }
    }

    fn like(self) -> SlobLike {
        SlobLike { shape: self.shape(), asked: self.asked(), aspects: self.aspects() }
    }

    fn shape(&self) -> SlobBlend {
        let Self { facts, hot_set, hot_changed, updates, .. } = *self;
        let (scale, heavy_share) = (facts.scale_blocks.max(1), updates.heavy_share);
        let cold = |kind, per_s, blocks| SlobPart {
            from_block: hot_set,
            heavy_share,
            ..SlobPart::on_all(kind, per_s, blocks, scale - hot_set)
        };
        let hot = |kind, per_s, blocks, of| SlobPart { heavy_share, ..SlobPart::on_all(kind, per_s, blocks, of) };
        let parts = [
            cold(OperationKind::Read, self.cold_reads, 1.0),
            cold(OperationKind::Update, updates.cold_per_s, updates.cold_blocks),
            hot(OperationKind::Update, updates.hot_per_s, updates.hot_blocks, hot_changed),
            hot(OperationKind::Read, self.hot_reads, self.hot_read_blocks, hot_set),
            cold(OperationKind::Scan, self.scans, 0.0),
        ];
        SlobBlend { schemas: facts.schemas, parts: parts.into_iter().filter(|part| part.per_s > 0.0).collect() }
    }

    fn known(&self, figure: WorkFigure) -> Option<f64> {
        self.work.get(&figure).copied()
    }

    fn logical_reads(&self) -> f64 {
        let touched = self.cold_reads + self.updates.cold_touches() + self.updates.hot_touches();
        (touched + self.hot_reads * self.hot_read_blocks) * self.logical_per_touch
    }

    fn redo(&self) -> Option<f64> {
        self.redo.filter(|_| self.updates.per_s() > 0.0)
    }

    fn asked(&self) -> Work {
        let block = f64::from(self.facts.block_bytes);
        let scan_bytes = self.scans * self.facts.scan_blocks as f64 * block;
        let of = |figure: WorkFigure| match figure {
            WorkFigure::Reads => Some(self.single + self.scan_requests),
            WorkFigure::LargeReads => Some(self.scan_requests),
            WorkFigure::ReadBytes => Some(self.single * block + scan_bytes),
            WorkFigure::Writes => Some(self.writes),
            WorkFigure::Commits => Some(self.updates.per_s()),
            WorkFigure::RedoBytes => self.redo(),
            WorkFigure::LogicalReads => Some(self.logical_reads()).filter(|_| self.hot_set > 0),
            WorkFigure::WriteBytes | WorkFigure::RedoWrites | WorkFigure::ActiveSessions | WorkFigure::ClientBytes => {
                None
            }
        };
        WorkFigure::ALL
            .into_iter()
            .filter(|figure| self.work.contains_key(figure))
            .filter_map(|figure| Some((figure, of(figure)?)))
            .collect()
    }

    fn aspects(&self) -> Vec<Aspect> {
        WorkFigure::ALL.into_iter().filter(|figure| self.work.contains_key(figure)).map(|it| self.aspect(it)).collect()
    }

    fn aspect(&self, figure: WorkFigure) -> Aspect {
        match figure {
            WorkFigure::Reads => self.aspect_of_reads(),
            WorkFigure::LogicalReads => self.aspect_of_logical_reads(),
            WorkFigure::LargeReads => self.aspect_of_large_reads(),
            WorkFigure::ReadBytes => self.aspect_of_read_bytes(),
            WorkFigure::Writes => self.aspect_of_writes(),
            WorkFigure::WriteBytes => not(figure, self.why_no_write_bytes()),
            WorkFigure::Commits => self.aspect_of_commits(),
            WorkFigure::RedoBytes => self.aspect_of_redo(),
            WorkFigure::RedoWrites => {
                not(figure, "how many commits share one write of the log is the platform's doing, and is measured")
            }
            WorkFigure::ActiveSessions => not(
                figure,
                format!(
                    "work is due at its rate, and how much of it is under way follows from the platform's latency; at most {} sessions",
                    self.facts.max_sessions
                ),
            ),
            WorkFigure::ClientBytes => {
                not(figure, "operations carry no results to clients; `plimsoll net run --like` asks for a network")
            }
        }
    }

    fn aspect_of_reads(&self) -> Aspect {
        let hits = match self.hits {
            0.0 => String::new(),
            hits if hits < 0.0 => format!("; each touch was seen to make {:.2} reads", 1.0 - hits),
            hits => {
                let answers =
                    if self.facts.observed.is_some() { "was seen to answer" } else { "is expected to answer" };
                format!("; a cache {answers} {} % of these touches, which are asked for besides", percent(hits))
            }
        };
        let updates = match self.updates.cold_touches() {
            0.0 => String::new(),
            touches => format!(", and {} blocks/s of updates", rate(touches)),
        };
        let alone = match self.cold_reads {
            0.0 => "no reads by themselves".to_owned(),
            reads => format!("{} reads/s of one block at random", rate(reads)),
        };
        let words = format!("{alone}{updates}{hits}");
        let gap = (self.hits >= MOST_HITS).then(|| {
            "nearly all data fit into the cache, so that how many reads reach storage is not known; a larger SCALE or a smaller cache \
             decides it"
                .to_owned()
        });
        partly(WorkFigure::Reads, words, gap)
    }

    fn aspect_of_large_reads(&self) -> Aspect {
        let figure = WorkFigure::LargeReads;
        if self.lacks_scan_table && self.facts.scan_blocks > 0 {
            return not(
                figure,
                "the scan tables fit into the target's cache, so scans would read no storage; a larger SCAN_TABLE_SZ does",
            );
        }
        if self.lacks_scan_table {
            return not(figure, "the data have no scan table; `plimsoll slob setup SCAN_TABLE_SZ=1M` makes one");
        }
        let production = self.known(figure).unwrap_or(0.0);
        let is_same = (self.scan_requests - production).abs() <= SAME * production;
        let gap = (!is_same).then(|| {
            let reads = self.known(WorkFigure::Reads).unwrap_or(0.0).max(f64::MIN_POSITIVE);
            let (production, asked) = (percent(production / reads), percent(self.scan_requests / reads));
            format!(
                "requests are of one block or of 1 MiB, so that requests and bytes are production's, and {asked} % of the requests \
                 are large in place of {production} %"
            )
        });
        if self.scan_requests == 0.0 {
            return Aspect {
                figure,
                by: None,
                gap: gap.or_else(|| Some("the reads are of one block in the mean".to_owned())),
            };
        }
        partly(figure, format!("{} scans/s of the scan table past the cache (SCAN_TABLE_SZ)", rate(self.scans)), gap)
    }

    fn aspect_of_read_bytes(&self) -> Aspect {
        let (asked, production) = (self.asked(), self.known(WorkFigure::ReadBytes).unwrap_or(0.0));
        let asked = asked.get(&WorkFigure::ReadBytes).copied().unwrap_or(0.0);
        let words = if self.scan_requests > 0.0 { "scans besides single blocks" } else { "single blocks" };
        let gap = ((asked - production).abs() > SAME * production).then(|| {
            let reads = self.known(WorkFigure::Reads).unwrap_or(0.0).max(f64::MIN_POSITIVE);
            format!("production's requests are of {} in the mean", mean_size(production, reads))
        });
        partly(WorkFigure::ReadBytes, words.to_owned(), gap)
    }

    fn aspect_of_logical_reads(&self) -> Aspect {
        let figure = WorkFigure::LogicalReads;
        if self.hot_set == 0 {
            return not(figure, "the target has no buffer cache that is known");
        }
        let production = self.known(figure).unwrap_or(0.0);
        let gap = (self.logical_reads() > production * (1.0 + SAME)).then(|| {
            "storage is read as often as blocks are touched: there are no fewer logical reads than that".to_owned()
        });
        if self.hot_reads == 0.0 {
            return partly(figure, "the touches that bring the reads".to_owned(), gap);
        }
        let words = format!(
            "{} reads/s of {} blocks each from a hot set of {} in each schema, which stays in the cache",
            rate(self.hot_reads),
            self.hot_read_blocks,
            Bytes(self.hot_set * u64::from(self.facts.block_bytes))
        );
        partly(figure, words, gap)
    }

    fn aspect_of_writes(&self) -> Aspect {
        let figure = WorkFigure::Writes;
        let production = self.known(figure).unwrap_or(0.0);
        if production == 0.0 && self.writes == 0.0 {
            return by(figure, "no updates of cold blocks".to_owned());
        }
        if self.updates.per_s() == 0.0 {
            return not(figure, "a block is changed by a commit, and commits are not reported or none");
        }
        let Updates { cold_per_s, cold_blocks, .. } = self.updates;
        let words = format!(
            "{} updates/s of {cold_blocks:.2} cold blocks each, of which each is written later",
            rate(cold_per_s)
        );
        let why = match self.writes {
            asked if asked > production * (1.0 + SAME) => {
                Some("each commit changes a block, and blocks of a hot set are not known")
            }
            asked if asked >= production * (1.0 - SAME) => None,
            _ if production > self.single || self.updates.hot_per_s > 0.0 => {
                Some("a database reads a block before it changes it, and more is written than is read in single blocks")
            }
            _ => Some("a commit changes 1,024 blocks at most"),
        };
        let gap = why.map(|why| format!("{} of {} are asked for: {why}", rate(self.writes), rate(production)));
        partly(figure, words, gap)
    }

    fn why_no_write_bytes(&self) -> String {
        let mean =
            self.known(WorkFigure::WriteBytes).zip(self.known(WorkFigure::Writes)).filter(|(_, writes)| *writes > 0.0);
        match mean {
            Some((bytes, writes)) => format!(
                "how many blocks go out in one request is the writer's doing; production's requests are of {} in the mean",
                mean_size(bytes, writes)
            ),
            None => "how many blocks go out in one request is the writer's doing".to_owned(),
        }
    }

    fn aspect_of_commits(&self) -> Aspect {
        let figure = WorkFigure::Commits;
        let Updates { cold_per_s, hot_per_s, .. } = self.updates;
        if self.updates.per_s() == 0.0 {
            return by(figure, "no updates".to_owned());
        }
        let hot = if hot_per_s > 0.0 { format!(", {} of them on hot blocks", rate(hot_per_s)) } else { String::new() };
        by(figure, format!("{} updates/s with a commit each{hot}", rate(cold_per_s + hot_per_s)))
    }

    fn aspect_of_redo(&self) -> Aspect {
        let figure = WorkFigure::RedoBytes;
        let production = self.known(figure).unwrap_or(0.0);
        let Some(redo) = self.redo() else {
            return match self.updates.per_s() {
                0.0 => not(figure, "redo is made by updates, and there are none"),
                _ => not(figure, "how much redo a change makes on this target is not known before: a trial shows it"),
            };
        };
        let Updates { heavy_share, hot_blocks, hot_per_s, .. } = self.updates;
        let is_known = self.facts.redo.is_some();
        let mut words = match is_known {
            true => format!("REDO_STRESS=HEAVY for {} % of the updates", percent(heavy_share)),
            false => "what the updates were seen to make".to_owned(),
        };
        if hot_per_s > 0.0 && is_known {
            words += &format!(", and {hot_blocks:.2} hot blocks in each of the updates of hot blocks");
        }
        let gap = match redo {
            redo if redo > production * (1.0 + SAME) => {
                Some("the changes that the writes need make more redo than production did")
            }
            redo if redo < production * (1.0 - SAME) && !is_known => {
                Some("no blocks are changed for redo alone on a server, where each change may write more of them")
            }
            redo if redo < production * (1.0 - SAME) => {
                Some("a commit changes no more hot blocks than there are to change")
            }
            _ => None,
        };
        let gap =
            gap.map(|why| format!("{} kB/s of {} are asked for: {why}", rate(redo / 1e3), rate(production / 1e3)));
        partly(figure, words, gap)
    }
}
