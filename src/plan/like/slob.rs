//! The SLOB method like a production: single reads, updates and scans at rates of their own, on cold blocks and on a hot set.
//!
//! A *touch* is one block that an operation visits. Touches of the cold blocks, which are all but the hot set, find a share of them in
//! the cache, so a little more of them than reads are asked for. Touches of the hot set find their blocks in the cache: they make up
//! for logical reads that are no physical ones, and for redo and commits that write no further blocks.

use super::observed::{MOST_HITS, Observed, SeenWrites, written_share};
use super::split;
use crate::plan::check::SCAN_REQUEST;
use model::record::{Aspect, Work, WorkFigure};
use model::units::Bytes;
use model::workload::{OperationKind, SlobBlend, SlobPart};
use targets::database::RedoSizes;

/// Blocks of the hot set of each schema. Few, so that each is touched long before the cache would need its place.
pub const HOT_SET: u64 = 128;
/// Of these, so many are changed, or as many as one update needs. Each is written again and again as the writers please, and the fewer
/// they are the less that decides how much is written in all.
pub const HOT_CHANGED: u64 = 32;
/// The hot sets of all schemas take no more than one in so many blocks of a cache.
const HOT_SHARE: u64 = 16;

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

/// What is asked for, and how it comes about.
pub(super) struct Planned<'a> {
    pub(super) work: &'a Work,
    pub(super) facts: &'a SlobFacts,
    /// Blocks of each hot set, and those of them that are changed; 0 for none.
    pub(super) hot_set: u64,
    pub(super) hot_changed: u64,
    /// Share of the touches of cold blocks that are no physical reads, -4 to 0.9.
    pub(super) hits: f64,
    /// Reads of one block, and requests of scans, per second.
    pub(super) single: f64,
    pub(super) scan_requests: f64,
    pub(super) scans: f64,
    /// Whether scans are wanted and there is nothing to scan.
    pub(super) lacks_scan_table: bool,
    /// Writes that are asked for.
    pub(super) writes: f64,
    /// Bytes of redo per second, as far as it is known what a change makes.
    pub(super) redo: Option<f64>,
    pub(super) updates: Updates,
    /// Touches of cold blocks that change nothing, and reads of the hot set.
    pub(super) cold_reads: f64,
    pub(super) hot_reads: f64,
    pub(super) hot_read_blocks: f64,
    /// Logical reads of a touch.
    pub(super) logical_per_touch: f64,
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
        let hits = facts.observed.and_then(|observed| observed.hits).unwrap_or(estimate);

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
                (updates.cold_touches() * written * per_expected + other_writes).max(0.0)
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

    pub(super) fn known(&self, figure: WorkFigure) -> Option<f64> {
        self.work.get(&figure).copied()
    }

    pub(super) fn logical_reads(&self) -> f64 {
        let touched = self.cold_reads + self.updates.cold_touches() + self.updates.hot_touches();
        (touched + self.hot_reads * self.hot_read_blocks) * self.logical_per_touch
    }

    pub(super) fn redo(&self) -> Option<f64> {
        self.redo.filter(|_| self.updates.per_s() > 0.0)
    }

    pub(super) fn asked(&self) -> Work {
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
}

/// Blocks that one update changes at most.
const MAX_UPDATE: f64 = 1_024.0;

/// Updates that make a production's commits, writes and redo.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Updates {
    /// On cold blocks, per second: each of their changes is written once.
    pub(super) cold_per_s: f64,
    pub(super) cold_blocks: f64,
    /// On hot blocks, per second.
    pub(super) hot_per_s: f64,
    pub(super) hot_blocks: f64,
    pub(super) heavy_share: f64,
}

impl Updates {
    pub(super) fn per_s(&self) -> f64 {
        self.cold_per_s + self.hot_per_s
    }

    pub(super) fn hot_touches(&self) -> f64 {
        self.hot_per_s * self.hot_blocks
    }

    pub(super) fn cold_touches(&self) -> f64 {
        self.cold_per_s * self.cold_blocks
    }

    /// Bytes of redo that they make per second.
    pub(super) fn redo(&self, sizes: RedoSizes) -> f64 {
        let change = change_bytes(sizes, self.heavy_share);
        (self.cold_touches() + self.hot_touches()) * change + self.per_s() * sizes.commit_bytes as f64
    }
}

fn change_bytes(sizes: RedoSizes, heavy_share: f64) -> f64 {
    let (lite, heavy) = (sizes.lite_bytes as f64, sizes.heavy_bytes as f64);
    lite + (heavy - lite) * heavy_share
}

/// What updates are asked for, per second.
#[derive(Debug, Clone, Copy)]
struct Asked {
    pub(super) commits: f64,
    /// Cold blocks that are changed.
    pub(super) changes: f64,
    /// Bytes of redo; absent where they are not reported.
    pub(super) redo: Option<f64>,
}

/// What is known of the data.
#[derive(Debug, Clone, Copy)]
struct OnData {
    /// Cold blocks of each schema.
    pub(super) cold_blocks: u64,
    /// Hot blocks of each that may be changed; 0 for none.
    pub(super) hot_blocks: u64,
    pub(super) redo: Option<RedoSizes>,
}

/// The updates that do what is asked, as far as data have the blocks for it.
fn updates(asked: Asked, data: OnData) -> Updates {
    let (Asked { commits, changes, redo }, OnData { cold_blocks, hot_blocks: hot_set, redo: sizes }) = (asked, data);
    if commits <= 0.0 {
        return Updates::default();
    }
    let most = MAX_UPDATE.min(cold_blocks.max(1) as f64);
    // What no hot set takes goes to cold blocks.
    let all_cold = |per_s: f64| {
        let blocks = (changes / per_s).clamp(1.0, most);
        Updates { cold_per_s: per_s, cold_blocks: blocks, ..Updates::default() }
    };
    let updates = match hot_set {
        0 => all_cold(commits),
        _ if changes >= commits => all_cold(commits),
        _ => {
            let cold = if changes > 0.0 { all_cold(changes) } else { Updates::default() };
            Updates { hot_per_s: commits - cold.cold_per_s, hot_blocks: 1.0, ..cold }
        }
    };
    let (Some(sizes), Some(redo)) = (sizes, redo) else { return updates };
    let least = updates.redo(sizes);
    let heavy = Updates { heavy_share: 1.0, ..updates }.redo(sizes);
    if redo <= least {
        return updates;
    }
    if redo <= heavy {
        return Updates { heavy_share: (redo - least) / (heavy - least), ..updates };
    }
    if hot_set == 0 {
        return Updates { heavy_share: 1.0, ..updates };
    }
    // More than these changes can make: blocks that are hot are changed besides, and written no more often for that.
    let updates = match updates.hot_per_s {
        0.0 => {
            let half = all_cold(commits / 2.0);
            Updates { hot_per_s: commits / 2.0, ..half }
        }
        _ => updates,
    };
    let bytes = change_bytes(sizes, 1.0);
    let rest = redo - updates.per_s() * sizes.commit_bytes as f64 - updates.cold_touches() * bytes;
    let hot_blocks = (rest / bytes / updates.hot_per_s).clamp(1.0, hot_set as f64);
    Updates { heavy_share: 1.0, hot_blocks, ..updates }
}
