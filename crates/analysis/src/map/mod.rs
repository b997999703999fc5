//! What storage carries of reads and writes together: the line over both rates at which a limit is still kept.
//!
//! Points lie on *mixes*, rays from the origin on which the share of reads is the same. On each the rate is searched at which the limit
//! is missed (`search`), and the next mix is that where neighbours say least about the line between them (`line`). Only what was measured
//! is called carried or missed.

mod line;
mod search;
#[cfg(test)]
mod tests;

use model::record::{IoMap, IoMapLevel, Level, Load, MapDemand, Outcome, Run, Step};
use model::units::{group_thousands, percent};

use crate::levels::median_of;
use crate::load_line::judge_all;
use crate::{Figures, LatencyTarget, LimitAnswer, Subject, VerdictOutcome};
pub use line::MapPlace;
use line::{Edge, Line};
use model::workload::mix64;
use search::MixSearch;

/// The first point of a mix, as a multiple of what it may do at most by its neighbours: what is finished then is all that can be.
const MORE: f64 = 1.4;
/// A mix whose search goes on has a line where it lies between rates that are no farther apart than this.
const NARROW: f64 = 1.2;
/// Kinds of requests of a map.
const KINDS: [&str; 2] = ["read", "write"];
/// No line is believed before so many mixes lie on it: those between show whether it bends.
const FEWEST_MIXES: usize = 7;
/// After so many points the first mix is measured again, where it kept the limit: whether storage is still what it was.
const ANCHOR_EVERY: usize = 8;
/// Mixes that are measured at the same time, so that what changes with time changes both.
const AT_ONCE: usize = 2;

/// A point as it was judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Judged {
    level: IoMapLevel,
    outcome: VerdictOutcome,
    /// Requests that were finished, per second.
    finished_per_s: f64,
}

/// What one mix came to.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct MappedMix {
    /// The share of reads, 0 to 1.
    pub read_share: f64,
    /// The largest rate of all requests that kept the limit, per second; `null` where none did.
    pub carried_per_s: Option<f64>,
    /// The least that did not; `null` where the largest that was tried kept it, or the load generator could send no more.
    pub missed_per_s: Option<f64>,
    /// The line between the two, per second, or the largest that kept the limit; `null` where none did, or the two are far apart.
    pub line_per_s: Option<f64>,
    /// The judged percentile of reads at the largest rate that kept the limit, in nanoseconds.
    pub read_ns: Option<u64>,
    /// The same of writes.
    pub write_ns: Option<u64>,
    /// Whether the load generator was the limit.
    pub is_generators: bool,
    /// Points on it.
    pub points: usize,
}

impl MappedMix {
    /// Reads and writes per second on the line.
    pub fn on_line(&self) -> Option<[f64; 2]> {
        self.line_per_s.map(|per_s| of_share(self.read_share, per_s))
    }
}

/// Reads and writes per second of so many requests.
fn of_share(read_share: f64, per_s: f64) -> [f64; 2] {
    [per_s * read_share, per_s * (1.0 - read_share)]
}

/// Why no further point is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MapEnded {
    /// The line is known as well as requested.
    Found,
    /// All points were used.
    OutOfPoints,
    /// It was cut short.
    CutShort,
}

/// A map as its points show it.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct MapAnswer {
    /// The limit that reads and writes each kept.
    pub limit: String,
    /// Bytes of a request.
    pub block_bytes: u32,
    /// Mixes, reads alone first.
    pub mixes: Vec<MappedMix>,
    /// How far the line may be off to either side, as a share of the rate: the widest of all mixes and of what lies between them;
    /// `null` before there are two mixes.
    pub within: Option<f64>,
    /// Points that were judged.
    pub points: usize,
    /// Why there are no more.
    pub ended: MapEnded,
    /// How often the first mix was measured again at the rate that it kept.
    pub anchors: usize,
    /// How often it missed the limit then.
    pub anchors_missed: usize,
    /// What was to be inside of the line; `null` where nothing was demanded.
    pub demand: Option<MapDemand>,
    /// Where it lies; `null` where nothing was demanded.
    pub place: Option<MapPlace>,
    #[serde(skip)]
    line: Line,
}

impl MapAnswer {
    /// What a run of a map shows; absent for another run.
    pub fn of(run: &Run) -> Option<Self> {
        let Load::IoMap(load) = &run.load else { return None };
        let mapping = Mapping::of(run, load)?;
        let ended = match (run.outcome == Outcome::Completed, mapping.is_found()) {
            (_, true) => MapEnded::Found,
            (true, false) if mapping.points.len() >= load.most_points as usize => MapEnded::OutOfPoints,
            _ => MapEnded::CutShort,
        };
        let limits = limits(load)?;
        let mut mixes: Vec<MappedMix> = mapping.mixes.iter().map(|mix| mix.mapped(run, &limits)).collect();
        mixes.sort_by(|one, other| other.read_share.total_cmp(&one.read_share));
        let (anchors, anchors_missed) = mapping.anchors();
        let line = mapping.line();
        Some(Self {
            demand: load.demand,
            place: load.demand.map(|demand| line.place([demand.reads_per_s, demand.writes_per_s])),
            limit: load.limit.clone(),
            block_bytes: load.block.bytes(),
            mixes,
            within: mapping.within(),
            points: mapping.points.len(),
            ended,
            anchors,
            anchors_missed,
            line,
        })
    }

    /// Whether the demand is carried; absent where nothing was demanded.
    pub fn is_carried(&self) -> Option<LimitAnswer> {
        self.place.map(|place| match place {
            MapPlace::Inside { .. } => LimitAnswer::Yes,
            MapPlace::Outside { .. } => LimitAnswer::No,
            MapPlace::Unknown { .. } => LimitAnswer::NoVerdict,
        })
    }

    /// Where the demand lies, in words; absent where nothing was demanded.
    pub fn place_words(&self) -> Option<String> {
        Some(self.place?.words(self.demand?))
    }

    /// The answer in one sentence without a full stop.
    pub fn sentence(&self) -> String {
        let carried = self.is_carried().zip(self.place_words());
        let carried = carried.map_or_else(String::new, |(answer, words)| format!("{}: {words}; ", answer.word()));
        format!("{carried}{}", self.line_words())
    }

    /// The line at both ends and where it bends most evenly between them.
    fn line_words(&self) -> String {
        let known: Vec<&MappedMix> = self.mixes.iter().filter(|mix| mix.line_per_s.is_some()).collect();
        let (Some(most), Some(least)) = (known.first(), known.last()) else {
            return format!("no mix of reads and writes keeps {} at any rate that was tried", self.limit);
        };
        let words = |mix: &MappedMix| {
            let [reads, writes] = mix.on_line().unwrap_or_default();
            let at_least = if mix.missed_per_s.is_none() { "at least " } else { "" };
            match mix.read_share {
                1.0 => format!("{at_least}{} reads/s alone", group_thousands(reads)),
                0.0 => format!("{at_least}{} writes/s alone", group_thousands(writes)),
                _ => format!("{at_least}{} reads/s with {} writes/s", group_thousands(reads), group_thousands(writes)),
            }
        };
        let middle = known
            .iter()
            .filter(|mix| mix.read_share < most.read_share && mix.read_share > least.read_share)
            .min_by(|one, other| self.line.tilt(one).total_cmp(&self.line.tilt(other)));
        let parts: Vec<String> =
            [Some(most), middle, Some(least)].into_iter().flatten().map(|mix| words(mix)).collect();
        let sure = match self.within {
            Some(within) => format!(", to {} % either way", percent(within)),
            None => String::new(),
        };
        format!("{} within {}{sure}", parts.join("; "), self.limit)
    }
}

impl MapPlace {
    fn words(self, demand: MapDemand) -> String {
        let [reads, writes] = [demand.reads_per_s, demand.writes_per_s].map(group_thousands);
        let demand = format!("{reads} reads/s with {writes} writes/s");
        match self {
            Self::Inside { times } => format!("{demand} is inside of the line, which is at {times:.2} times that"),
            Self::Outside { times } => format!("{demand} is outside of the line, which is at {times:.2} times that"),
            Self::Unknown { times: Some(times) } => {
                format!("{demand} is too close to the line, which is at {times:.2} times that")
            }
            Self::Unknown { times: None } => format!("no mix like {demand} was measured"),
        }
    }
}

/// The limit of each kind; absent where the recorded text is none.
fn limits(load: &IoMap) -> Option<[LatencyTarget; 2]> {
    let limit: LatencyTarget = load.limit.parse().ok()?;
    Some(KINDS.map(|kind| LatencyTarget {
        subject: Some(Subject::Response(Some(kind.to_owned()))),
        errors: Some(0.0),
        ..limit.clone()
    }))
}

/// Each kind that is frequent enough for its percentile must keep the limit, or all requests together where none is.
fn judged(run: &Run, step: &Step, limits: &[LatencyTarget; 2]) -> Option<Judged> {
    let Some(Level::IoMap(level)) = step.level else { return None };
    if step.outcome != Outcome::Completed {
        return None;
    }
    let seconds = step.window.duration_ns as f64 / 1e9;
    let expected = [level.reads_per_s(), level.writes_per_s()].map(|per_s| per_s * seconds);
    let of_kinds = limits.iter().zip(expected);
    let mut wanted: Vec<LatencyTarget> = of_kinds
        .filter(|(limit, expected)| *expected >= limit.durations_wanted() as f64)
        .map(|(limit, _)| limit.clone())
        .collect();
    wanted.push(LatencyTarget { subject: Some(Subject::Response(None)), ..limits[0].clone() });
    let outcome = judge_all(run.workload(), step, &wanted)?;
    Some(Judged { level, outcome, finished_per_s: Figures(step).operations_per_s().unwrap_or(0.0) })
}

/// The points so far, and what follows from them.
struct Mapping<'a> {
    load: &'a IoMap,
    seed: u64,
    points: Vec<Judged>,
    mixes: Vec<MixSearch>,
    /// The line as a part of what is finished under more, as mixes have it so far; 1 before there is one.
    of_capacity: f64,
}

impl<'a> Mapping<'a> {
    fn of(run: &Run, load: &'a IoMap) -> Option<Self> {
        let limits = limits(load)?;
        let points: Vec<Judged> = run.steps.iter().filter_map(|step| judged(run, step, &limits)).collect();
        Some(Self::new(load, run.seed.unwrap_or(0), points))
    }

    fn new(load: &'a IoMap, seed: u64, points: Vec<Judged>) -> Self {
        let mut mixes: Vec<MixSearch> = Vec::new();
        for point in &points {
            let place = match mixes.iter().position(|mix| mix.number == point.level.mix) {
                Some(place) => place,
                None => {
                    mixes.push(MixSearch::new(load, point.level.mix, point.level.read_share));
                    mixes.len() - 1
                }
            };
            mixes[place].record(point);
        }
        let known: Vec<f64> = mixes.iter().filter_map(MixSearch::of_capacity).collect();
        let of_capacity = median_of(&known).unwrap_or(1.0);
        mixes.iter_mut().for_each(|mix| mix.expect(of_capacity));
        Self { load, seed, points, mixes, of_capacity }
    }

    /// The point to measure next; absent where the line is known, or no point is left.
    fn next(&self) -> Option<IoMapLevel> {
        if self.points.len() >= self.load.most_points as usize {
            return None;
        }
        let open: Vec<IoMapLevel> = self.mixes.iter().filter_map(MixSearch::next).collect();
        let is_anchor_due = self.points.len() % ANCHOR_EVERY == ANCHOR_EVERY - 1;
        if let Some(anchor) = self.anchor().filter(|_| is_anchor_due && (!open.is_empty() || !self.is_found())) {
            return Some(anchor);
        }
        // The second begins where the first shows how far latency keeps the line from what can be finished.
        let at_once = if self.mixes.len() < 2 { 1 } else { AT_ONCE };
        let begun = if open.len() < at_once { self.new_mix() } else { None };
        let mut choice: Vec<IoMapLevel> = open.into_iter().chain(begun).collect();
        // In any order, so that what changes with time is not taken for a property of some mixes.
        let chance = mix64(self.seed ^ mix64(self.points.len() as u64)) as usize;
        (!choice.is_empty()).then(|| choice.swap_remove(chance % choice.len()))
    }

    /// The first mix where it kept the limit.
    fn anchor(&self) -> Option<IoMapLevel> {
        let first = self.mixes.first().filter(|mix| mix.next().is_none())?;
        first.carried().map(|per_s| first.level(per_s))
    }

    /// Measurements of the anchor after the search of its mix had ended, and those that missed the limit.
    fn anchors(&self) -> (usize, usize) {
        let Some(first) = self.points.first() else { return (0, 0) };
        let of_first: Vec<&Judged> = self.points.iter().filter(|point| point.level.mix == first.level.mix).collect();
        let known = (1..=of_first.len()).find(|count| {
            let points = of_first[..*count].iter().map(|point| **point).collect();
            Mapping::new(self.load, self.seed, points).mixes.iter().all(|mix| mix.next().is_none())
        });
        let after = known.map_or(&[][..], |count| &of_first[count..]);
        (after.len(), after.iter().filter(|point| point.outcome == VerdictOutcome::Failed).count())
    }

    /// The first point of a mix that has none yet.
    fn new_mix(&self) -> Option<IoMapLevel> {
        let number = self.mixes.len() as u32;
        let ends = [self.load.most_read_pct, self.load.least_read_pct].map(|pct| f64::from(pct) / 100.0);
        if let Some(share) = ends.get(self.mixes.len()) {
            // Nothing is known yet, so the first rate is more than there can be: what is finished of it shows what there is.
            let most = self.mixes.first().and_then(MixSearch::capacity).map_or(f64::MAX, |per_s| per_s * 4.0);
            return Some(MixSearch::new(self.load, number, *share).first(most));
        }
        let (share, expected_per_s) = self.line().widest(&self.open_shares())?;
        Some(MixSearch::new(self.load, number, share).first(expected_per_s / self.of_capacity * MORE))
    }

    /// Shares of mixes whose search goes on.
    fn open_shares(&self) -> Vec<f64> {
        self.mixes.iter().filter(|mix| mix.next().is_some()).map(|mix| mix.read_share).collect()
    }

    fn line(&self) -> Line {
        let edges = self.mixes.iter().filter(|mix| mix.next().is_none()).filter_map(|mix| {
            let (low, high) = mix.bounds()?;
            Some(Edge { read_share: mix.read_share, low, high })
        });
        Line::new(edges.collect(), self.load.within, FEWEST_MIXES)
    }

    fn is_found(&self) -> bool {
        let is_begun = self.mixes.len() >= 2 && self.mixes.iter().all(|mix| mix.next().is_none());
        is_begun && self.new_mix().is_none()
    }

    fn within(&self) -> Option<f64> {
        self.line().off()
    }
}

/// The next point of a map that is being measured; absent where it is known, or no point is left.
pub fn next_of_map(run: &Run) -> Option<IoMapLevel> {
    let Load::IoMap(load) = &run.load else { return None };
    Mapping::of(run, load)?.next()
}

impl MixSearch {
    fn mapped(&self, run: &Run, limits: &[LatencyTarget; 2]) -> MappedMix {
        let carried_per_s = self.carried();
        let step = carried_per_s.and_then(|per_s| {
            run.steps.iter().find(|step| {
                matches!(step.level, Some(Level::IoMap(level)) if level.mix == self.number && level.per_s == per_s)
            })
        });
        let time = |limit: &LatencyTarget| Some(limit.value(run.workload(), step?)?.0);
        let missed_per_s = self.missed();
        let known = self.bounds().filter(|(low, high)| self.next().is_none() || *high <= low * NARROW);
        let line_per_s = known.map(|(low, high)| (low * high).sqrt());
        MappedMix {
            read_share: self.read_share,
            carried_per_s,
            missed_per_s,
            line_per_s,
            read_ns: time(&limits[0]),
            write_ns: time(&limits[1]),
            is_generators: self.is_generators(),
            points: self.points(),
        }
    }
}
