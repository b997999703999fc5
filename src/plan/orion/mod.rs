//! ORION's walk: which loads, in which order, for how long.
//!
//! A load is a pair of numbers: small random requests outstanding, and large ones. What is known of ORION's walks comes
//! from its output, and the tests hold it fast:
//!
//! - `simple` on one disk: 1 to 5 small, 1 to 2 large, "Total Data Points: 8", "approximately 9 minutes"; on six disks
//!   44 minutes, which is 30 small and 12 large points. So small load rises to five requests a disk and large load to two.
//! - `normal` on one disk: 19 minutes, which is every combination of 0 to 5 small with 0 to 2 large.
//! - `oltp` on one disk: 1 to 20 small, 21 data points; on three 24 minutes; on four the best points are 4 and 68. That is
//!   every load up to one request a disk, then one request a disk more each time, up to twenty a disk.
//! - The point without load counts among the data points though nothing runs there, and ORION allows a minute more.
//!
//! No output of `dss`, nor of any walk on many disks, was at hand. There the choice is Plimsoll's own: `dss` does for large
//! requests what `oltp` does for small ones, up to fifteen a disk (they fill a path with fewer outstanding); and from seven
//! disks on steps are wider, so that no row has more than 31 loads and no column more than 13 (`oltp` and `dss`: no more than
//! seven up to one request a disk).

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::PlanError;
use crate::plan::RunHead;
use crate::plan::io::{Facts, check_buffers};
use crate::plan::steps::seed_of_step;
use load::{Pace, Share, StepPlan};
use model::config::orion::{ArrayCache, LargePattern, Matrix, OrionOptions, RunType};
use model::config::{MAX_SESSIONS, Tag};
use model::record::{Intensity, Level, Load, LunFacts, OrionLevel, OrionLoad};
use model::units::{Bytes, Nanos};
use model::workload::io::{Access, Distribution, IoClass, IoShape, RequestSize};

#[cfg(test)]
mod tests;

/// Requests a disk at the top of a walk.
const SMALL_PER_DISK: u32 = 5;
const LARGE_PER_DISK: u32 = 2;
const OLTP_SMALL_PER_DISK: u32 = 20;
const DSS_LARGE_PER_DISK: u32 = 15;

/// Most steps from the lowest load to the top: those of six disks, the largest walk that is known to take every load.
const MAX_SMALL_STEPS: u32 = 6 * SMALL_PER_DISK;
const MAX_LARGE_STEPS: u32 = 6 * LARGE_PER_DISK;

/// What ORION does where no cache size was entered.
const DEFAULT_WARMING: Nanos = Nanos::seconds(120);

/// One device or file of ORION's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lun {
    /// Its path.
    pub path: PathBuf,
    /// Its size.
    pub bytes: Bytes,
}

/// One data point: so much load for the length of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrionPoint {
    /// Small random requests outstanding.
    pub small: u32,
    /// Large requests outstanding; with sequential ones, streams. Not 0 if `small` is.
    pub large: u32,
    /// What the point is for.
    pub role: PointRole,
    /// What goes before it, unmeasured.
    pub warming: Warming,
}

/// What a data point is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PointRole {
    /// Requests per second and their latency.
    SmallAlone,
    /// Bytes per second.
    LargeAlone,
    /// What each does to the other.
    Mixed,
}

/// Random requests of the large size before a point, not measured, with the point's own share of writes: they push out of
/// the array's cache what the point before has left there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Warming {
    /// None.
    None,
    /// For so long.
    For(Nanos),
    /// So many bytes in all.
    Bytes(Bytes),
}

/// Everything that will be walked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrionWalk {
    /// Disks that the loads were scaled by.
    pub num_disks: u32,
    /// The points in the order in which they run: small alone, then large alone, then the rest, the large load rising
    /// slowly and the small one within it.
    pub points: Vec<OrionPoint>,
    /// Small loads in rising order: the columns of the matrix.
    pub small_loads: Vec<u32>,
    /// Large loads in rising order: its rows.
    pub large_loads: Vec<u32>,
    /// Data points as ORION counts them: with the one that has no load, if the walk passes it.
    pub data_points: u32,
}

/// How long a walk takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// The points themselves, and warming that has a length.
    pub time: Nanos,
    /// Warming that has a size, which takes as long as it takes.
    pub warming_bytes: Bytes,
    /// Whole minutes, as ORION would announce them.
    pub orion_minutes: u64,
}

/// The walk that `options` ask for on these devices.
///
/// # Errors
///
/// [`PlanError::NoLuns`], [`PlanError::LunTooSmall`] if a device cannot hold one request, and
/// [`PlanError::TooManyOutstanding`] if a point would have more requests outstanding than there may be sessions.
pub fn walk(options: &OrionOptions, luns: &[Lun]) -> Result<OrionWalk, PlanError> {
    if luns.is_empty() {
        return Err(PlanError::NoLuns);
    }
    let num_disks = options.num_disks.unwrap_or(u32::try_from(luns.len()).unwrap_or(u32::MAX));
    let part = Part::of(options.run, num_disks);
    let mut points: Vec<OrionPoint> = part
        .large_loads
        .iter()
        .flat_map(|large| part.small_loads.iter().map(move |small| (*small, *large)))
        .filter(|load| *load != (0, 0) && (part.combinations == Combinations::All || load.0 == 0 || load.1 == 0))
        .map(|(small, large)| OrionPoint::new(small, large, options))
        .collect();
    points.sort_by_key(|point| (point.role, point.large, point.small));
    check(options, &points, luns)?;
    let data_points = points.len() + usize::from(part.no_load == NoLoad::Counted);
    Ok(OrionWalk {
        num_disks,
        points,
        small_loads: part.small_loads,
        large_loads: part.large_loads,
        data_points: u32::try_from(data_points).unwrap_or(u32::MAX),
    })
}

fn check(options: &OrionOptions, points: &[OrionPoint], luns: &[Lun]) -> Result<(), PlanError> {
    let asked = points.iter().map(|point| point.outstanding(options.pattern)).max().unwrap_or(0);
    if asked > u64::from(MAX_SESSIONS) {
        return Err(PlanError::TooManyOutstanding { asked, most: MAX_SESSIONS });
    }
    let request = match points.iter().any(|point| point.large > 0) {
        true => options.size_small.max(options.size_large),
        false => options.size_small,
    };
    match luns.iter().find(|lun| lun.bytes < request) {
        Some(Lun { path, bytes }) => Err(PlanError::LunTooSmall { path: path.clone(), bytes: *bytes, request }),
        None => Ok(()),
    }
}

impl OrionPoint {
    fn new(small: u32, large: u32, options: &OrionOptions) -> Self {
        let role = match (small, large) {
            (_, 0) => PointRole::SmallAlone,
            (0, _) => PointRole::LargeAlone,
            _ => PointRole::Mixed,
        };
        let warming = match (options.pattern, options.cache) {
            (LargePattern::Random, _) | (_, ArrayCache::Absent) => Warming::None,
            _ if large == 0 => Warming::None,
            (_, ArrayCache::NotEntered) => Warming::For(DEFAULT_WARMING),
            (_, ArrayCache::Size(bytes)) => Warming::Bytes(bytes),
        };
        Self { small, large, role, warming }
    }

    /// Requests outstanding in all.
    pub fn outstanding(&self, pattern: LargePattern) -> u64 {
        u64::from(self.small) + u64::from(self.large_requests(pattern))
    }

    /// Large requests outstanding, those of all streams together.
    pub fn large_requests(&self, pattern: LargePattern) -> u32 {
        match pattern {
            LargePattern::Random => self.large,
            LargePattern::Sequential { requests_per_stream } => self.large.saturating_mul(requests_per_stream),
        }
    }

    /// Name of the point's step.
    pub fn label(&self) -> String {
        format!("small{}_large{}", self.small, self.large)
    }
}

impl OrionWalk {
    /// How long it takes.
    pub fn estimate(&self, options: &OrionOptions) -> Estimate {
        let mut warming_ns = 0_u64;
        let mut warming_bytes = 0_u64;
        for point in &self.points {
            match point.warming {
                Warming::None => {}
                Warming::For(time) => warming_ns += time.0,
                Warming::Bytes(bytes) => warming_bytes = warming_bytes.saturating_add(bytes.0),
            }
        }
        let of_points = |points: u64| points.saturating_mul(options.duration.0).saturating_add(warming_ns);
        Estimate {
            time: Nanos(of_points(self.points.len() as u64)),
            warming_bytes: Bytes(warming_bytes),
            orion_minutes: of_points(u64::from(self.data_points)).div_ceil(Nanos::seconds(60).0) + 1,
        }
    }

    /// The same as a load of the record, from which ORION's own files are made.
    pub fn load(&self, options: &OrionOptions) -> OrionLoad {
        OrionLoad {
            options: options.clone(),
            num_disks: self.num_disks,
            small_loads: self.small_loads.clone(),
            large_loads: self.large_loads.clone(),
            data_points: self.data_points,
        }
    }
}

impl Lun {
    /// As the record has it.
    pub fn facts(&self) -> LunFacts {
        LunFacts { path: self.path.display().to_string(), bytes: self.bytes.0 }
    }
}

/// The part of the matrix that a run walks.
struct Part {
    small_loads: Vec<u32>,
    large_loads: Vec<u32>,
    combinations: Combinations,
    no_load: NoLoad,
}

#[derive(PartialEq, Eq)]
enum Combinations {
    /// Only those with a 0.
    FirstRowAndColumn,
    All,
}

/// Whether the point without load counts among the data points.
#[derive(PartialEq, Eq)]
enum NoLoad {
    Counted,
    NotPassed,
}

impl Part {
    fn of(run: RunType, disks: u32) -> Self {
        let small_top = disks.saturating_mul(SMALL_PER_DISK);
        let large_top = disks.saturating_mul(LARGE_PER_DISK);
        let small = || rising(small_top, MAX_SMALL_STEPS);
        let large = || rising(large_top, MAX_LARGE_STEPS);
        let part =
            |small_loads, large_loads, combinations, no_load| Self { small_loads, large_loads, combinations, no_load };
        let (all, counted) = (Combinations::All, NoLoad::Counted);
        match run {
            RunType::Simple | RunType::Advanced(Matrix::Basic) => {
                part(from_zero(small()), from_zero(large()), Combinations::FirstRowAndColumn, counted)
            }
            RunType::Normal | RunType::Advanced(Matrix::Detailed) => {
                part(from_zero(small()), from_zero(large()), all, counted)
            }
            RunType::Oltp => part(by_disks(disks, OLTP_SMALL_PER_DISK), vec![0], all, counted),
            RunType::Dss => part(vec![0], by_disks(disks, DSS_LARGE_PER_DISK), all, counted),
            RunType::Advanced(Matrix::Point { small, large }) => part(vec![small], vec![large], all, NoLoad::NotPassed),
            RunType::Advanced(Matrix::Col { small: 0 }) => part(vec![0], large(), all, counted),
            RunType::Advanced(Matrix::Row { large: 0 }) => part(small(), vec![0], all, counted),
            RunType::Advanced(Matrix::Col { small }) => part(vec![small], from_zero(large()), all, NoLoad::NotPassed),
            RunType::Advanced(Matrix::Row { large }) => part(from_zero(small()), vec![large], all, NoLoad::NotPassed),
            RunType::Advanced(Matrix::Max { small, large }) => {
                part(from_zero(rising(small, MAX_SMALL_STEPS)), from_zero(rising(large, MAX_LARGE_STEPS)), all, counted)
            }
        }
    }
}

/// 1, then equal steps up to `top`, which is always there: every load if that is at most `max_steps` of them. None for a
/// top of 0.
fn rising(top: u32, max_steps: u32) -> Vec<u32> {
    if top == 0 {
        return Vec::new();
    }
    let step = top.div_ceil(max_steps);
    let whole = (1..=top / step).map(|count| count * step);
    [1, top].into_iter().chain(whole).collect::<BTreeSet<u32>>().into_iter().collect()
}

/// Up to one request a disk, then one more a disk each time.
fn by_disks(disks: u32, most_per_disk: u32) -> Vec<u32> {
    let mut loads = rising(disks, 6);
    loads.extend((2..=most_per_disk).map(|per_disk| disks.saturating_mul(per_disk)));
    loads
}

fn from_zero(mut loads: Vec<u32>) -> Vec<u32> {
    loads.insert(0, 0);
    loads
}

/// Warming that has a size takes as long as it takes; this only keeps it from taking for ever.
const LONGEST_WARMING: Nanos = Nanos::seconds(24 * 3_600);

/// What was asked for.
#[derive(Debug, Clone)]
pub struct OrionRequest {
    /// ORION's options.
    pub options: OrionOptions,
    /// What the volume is made of.
    pub luns: Vec<Lun>,
    /// Load of each point before its window.
    pub warmup: Nanos,
    /// Seed of every random choice.
    pub seed: u64,
    /// What the user calls the things that vary between runs.
    pub tags: Vec<Tag>,
}

/// What will be done.
#[derive(Debug, Clone)]
pub struct OrionPlan {
    /// What the run is before its first step.
    pub head: RunHead,
    /// Bytes of the volume that requests touch.
    pub region_bytes: u64,
    /// The points.
    pub walk: OrionWalk,
    options: OrionOptions,
    warmup: Nanos,
}

/// Plans a walk over a volume.
///
/// # Errors
/// As [`walk`], and [`PlanError::BuffersTooLarge`], [`PlanError::TagTwice`].
pub fn plan(request: &OrionRequest, facts: &Facts) -> Result<OrionPlan, PlanError> {
    let OrionRequest { options, luns, warmup, seed, tags } = request;
    let walk = walk(options, luns)?;
    let words = ["orion".to_owned(), options.run.name().to_owned()];
    let plan = OrionPlan {
        head: RunHead::new(tags, words, *seed, Load::Orion(walk.load(options)), [])?,
        region_bytes: facts.capacity_bytes,
        walk,
        options: options.clone(),
        warmup: *warmup,
    };
    for point in &plan.walk.points {
        check_buffers(plan.slots(point), plan.largest(point), Bytes(0), facts.available_memory)?;
    }
    Ok(plan)
}

impl OrionPlan {
    /// Point number `index` as a step.
    pub fn step(&self, index: u32, point: &OrionPoint) -> StepPlan<IoShape> {
        let classes = [self.small(point.small), self.large(point)];
        StepPlan {
            index,
            label: point.label(),
            load: Intensity { sessions: Some(self.slots(point)), ..Intensity::default() },
            level: Some(Level::Orion(OrionLevel { small: point.small, large: point.large })),
            like: None,
            shape: IoShape { classes: classes.into_iter().filter(|class| class.slots > 0).collect() },
            seed: seed_of_step(self.head.seed, index),
            work_loop: None,
            warmup: self.warmup,
            duration: self.options.duration,
            pace: Pace::Closed,
            // One thread, as ORION is: a stream that two threads shared would read everything twice.
            lanes: 1,
            share: Share::WHOLE,
        }
    }

    /// What goes before point number `index`, unmeasured.
    pub fn warming(&self, index: u32, point: &OrionPoint) -> Option<StepPlan<IoShape>> {
        let slots = point.large_requests(self.options.pattern).max(1);
        let (duration, work_loop) = match point.warming {
            Warming::None => return None,
            Warming::For(time) => (time, None),
            Warming::Bytes(Bytes(bytes)) => {
                let round = u64::from(slots).saturating_mul(self.options.size_large.0);
                (LONGEST_WARMING, Some(bytes.div_ceil(round.max(1)).max(1)))
            }
        };
        let anywhere = IoClass { access: ANYWHERE, streams: 1, slots, ..self.large(point) };
        Some(StepPlan {
            label: format!("warming before {}", point.label()),
            load: Intensity { sessions: Some(slots), ..Intensity::default() },
            level: None,
            shape: IoShape::of(anywhere),
            // What the point itself will ask for must not be in the cache.
            seed: seed_of_step(self.head.seed, u32::MAX - index),
            work_loop,
            warmup: Nanos(0),
            duration,
            ..self.step(index, point)
        })
    }

    /// The longest request of a point, in bytes.
    pub fn largest_bytes(&self, point: &OrionPoint) -> u32 {
        request_bytes(self.largest(point))
    }

    /// The longest request of all points, in bytes.
    pub fn largest_bytes_of_all(&self) -> u32 {
        self.walk.points.iter().map(|point| self.largest_bytes(point)).max().unwrap_or(0)
    }

    /// How long all points take, with each point's own warm-up and without warming.
    pub fn time_of_points(&self) -> Nanos {
        let of_one = self.warmup.0.saturating_add(self.options.duration.0);
        Nanos(of_one.saturating_mul(self.walk.points.len() as u64))
    }

    fn slots(&self, point: &OrionPoint) -> u32 {
        point.small.saturating_add(point.large_requests(self.options.pattern))
    }

    fn largest(&self, point: &OrionPoint) -> Bytes {
        match (point.small, point.large) {
            (_, 0) => self.options.size_small,
            (0, _) => self.options.size_large,
            _ => self.options.size_small.max(self.options.size_large),
        }
    }

    fn small(&self, slots: u32) -> IoClass {
        IoClass {
            size: RequestSize::Small,
            block_bytes: request_bytes(self.options.size_small),
            from_bytes: 0,
            region_bytes: self.region_bytes,
            access: ANYWHERE,
            read_pct: 100 - self.options.write_pct.min(100),
            streams: 1,
            slots,
        }
    }

    fn large(&self, point: &OrionPoint) -> IoClass {
        let (access, streams) = match self.options.pattern {
            LargePattern::Random => (ANYWHERE, 1),
            LargePattern::Sequential { .. } => (Access::Sequential, point.large.max(1)),
        };
        IoClass {
            size: RequestSize::Large,
            block_bytes: request_bytes(self.options.size_large),
            access,
            streams,
            slots: point.large_requests(self.options.pattern),
            ..self.small(0)
        }
    }
}

const ANYWHERE: Access = Access::Random(Distribution::Uniform);

fn request_bytes(Bytes(bytes): Bytes) -> u32 {
    u32::try_from(bytes).expect("ORION's options allow no request that large")
}
