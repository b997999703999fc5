//! What storage or a database carries of reads and changes together: the line over both rates at which a limit is still kept.
//!
//! Points lie on *mixes*, rays from the origin on which the share of reads is the same. On each the rate is searched at which the limit
//! is missed (`search`), and the next mix is that where neighbours say least about the line between them (`line`). Only what was measured
//! is called carried or missed.

mod line;
mod search;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::{BTreeMap, BTreeSet};

use model::record::{Load, MapDemand, MapLevel, MapOf, MapSearch, Outcome, Run, Step, Workload};
use model::units::{group_thousands, percent};

use crate::levels::median_of;
use crate::load_line::{is_hung, judge_all};
use crate::{Figures, LatencyTarget, LimitAnswer, Subject, VerdictOutcome};
pub use line::MapPlace;
use line::{Edge, Line};
use model::workload::mix64;
use search::MixSearch;

/// The first point of a mix, as a multiple of what it may do at most by its neighbours: what is finished then is all that can be.
const MORE: f64 = 1.4;
/// A mix whose search goes on has a line where it lies between rates that are no farther apart than this.
const NARROW: f64 = 1.2;
/// No line is believed before so many mixes lie on it: those between show whether it bends.
const FEWEST_MIXES: usize = 7;
/// After so many points the first mix is measured again, where it kept the limit: whether storage is still what it was.
const ANCHOR_EVERY: usize = 8;
/// Mixes that are measured at the same time, so that what changes with time changes both.
const AT_ONCE: usize = 2;

/// A point as it was judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Judged {
    level: MapLevel,
    outcome: VerdictOutcome,
    /// Requests or operations that were finished, per second.
    finished_per_s: f64,
    /// Whether nothing was answered for long, so that a pass of another measurement does not count against it.
    has_hung: bool,
    /// Whether too few requests of a kind were due for its percentile, so that only a clear miss of that kind counts.
    has_few: bool,
}

/// What one mix came to.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct MappedMix {
    /// The share of reads, 0 to 1; the rest are writes or updates.
    pub read_share: f64,
    /// The largest rate of both together that kept the limit, per second; `null` where none did.
    pub carried_per_s: Option<f64>,
    /// The least that did not, or was not steady; `null` where the largest that was tried kept it, or the load generator could send no
    /// more.
    pub missed_per_s: Option<f64>,
    /// The line between the two, per second, or the largest that kept the limit; `null` where none did, or the two are far apart.
    pub line_per_s: Option<f64>,
    /// The judged percentile of reads at the largest rate that kept the limit, in nanoseconds.
    pub read_ns: Option<u64>,
    /// The same of writes or updates.
    pub write_ns: Option<u64>,
    /// Whether the load generator was the limit.
    pub is_generators: bool,
    /// Whether the least rate that did not keep the limit was only not steady: requests were not too slow there.
    pub is_unsteady: bool,
    /// Whether all sessions were busy at the least rate that did not keep the limit: then more of them may move the line.
    pub is_full: bool,
    /// Whether a kind was so rare at the largest rate that kept the limit that only clear misses of it count.
    pub has_few: bool,
    /// Points on it.
    pub points: usize,
}

impl MappedMix {
    /// Reads, and writes or updates, per second on the line.
    pub fn on_line(&self) -> Option<[f64; 2]> {
        self.line_per_s.map(|per_s| of_share(self.read_share, per_s))
    }
}

/// Both rates of so many requests or operations per second.
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
    /// There is no line: fewer than two mixes kept the limit at any rate.
    NoLine,
    /// All points were used.
    OutOfPoints,
    /// It was cut short.
    CutShort,
}

/// A map as its points show it.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct MapAnswer {
    /// What is counted.
    pub of: MapOf,
    /// The limit that reads and changes each kept.
    pub limit: String,
    /// Bytes of a request; `null` where operations of a database are counted.
    pub block_bytes: Option<u32>,
    /// Sessions that did what was due; `null` where requests to storage are counted.
    pub sessions: Option<u32>,
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
        let mapping = Mapping::of(run)?;
        let load = mapping.load;
        let line = mapping.line();
        let measured = run.steps.iter().filter(|step| level_of(step).is_some()).count();
        let ended = match run.outcome == Outcome::Completed {
            _ if mapping.is_found() => {
                if line.count() < 2 {
                    MapEnded::NoLine
                } else {
                    MapEnded::Found
                }
            }
            true if measured >= load.most_points as usize => MapEnded::OutOfPoints,
            _ => MapEnded::CutShort,
        };
        let limit = limit_of(run)?;
        let mut mixes: Vec<MappedMix> = mapping.mixes.iter().map(|mix| mix.mapped(run, load.of, &limit)).collect();
        mixes.sort_by(|one, other| other.read_share.total_cmp(&one.read_share));
        let Anchors { times: anchors, missed: anchors_missed, .. } = mapping.anchors;
        Some(Self {
            demand: load.demand,
            place: load.demand.map(|demand| line.place([demand.reads_per_s, demand.writes_per_s])),
            of: load.of,
            limit: load.limit.clone(),
            block_bytes: match &run.load {
                Load::IoMap(map) => Some(map.block.bytes()),
                _ => None,
            },
            sessions: run.steps.iter().filter(|_| load.of == MapOf::Operations).find_map(|step| step.load.sessions),
            mixes,
            within: mapping.within(),
            points: mapping.points.len(),
            ended,
            anchors,
            anchors_missed,
            line,
        })
    }

    /// Whether there is a line: at least two mixes kept the limit at some rate.
    pub fn has_line(&self) -> bool {
        self.line.count() > 1
    }

    /// Where so many reads and changes per second lie.
    pub fn place_of(&self, reads_per_s: f64, writes_per_s: f64) -> MapPlace {
        self.line.place([reads_per_s, writes_per_s])
    }

    /// Whether a mix kept the limit at any rate.
    pub fn has_met(&self) -> bool {
        self.mixes.iter().any(|mix| mix.carried_per_s.is_some())
    }

    /// Whether what was measured missed the limit, rather than the load generator, or a rate that was not steady.
    pub fn has_missed(&self) -> bool {
        self.mixes.iter().any(|mix| mix.missed_per_s.is_some() && !mix.is_generators && !mix.is_unsteady)
    }

    /// Whether storage became another while it was measured, so that points of different times do not make one line.
    pub fn has_changed(&self) -> bool {
        2 * self.anchors_missed >= self.anchors.max(1)
    }

    /// Whether the demand is carried; absent where nothing was demanded.
    pub fn is_carried(&self) -> Option<LimitAnswer> {
        self.place.map(|place| match place {
            _ if self.has_changed() => LimitAnswer::NoVerdict,
            MapPlace::Inside { .. } => LimitAnswer::Yes,
            MapPlace::Outside { .. } => LimitAnswer::No,
            MapPlace::Unknown { .. } => LimitAnswer::NoVerdict,
        })
    }

    /// Where the demand lies, in words; absent where nothing was demanded.
    pub fn place_words(&self) -> Option<String> {
        Some(self.place?.words(self.demand?, self.of))
    }

    /// The answer in one sentence without a full stop.
    pub fn sentence(&self) -> String {
        let carried = self.is_carried().zip(self.place_words());
        let carried = carried.map_or_else(String::new, |(answer, words)| format!("{}: {words}; ", answer.word()));
        let has_changed = || format!("; {} changed meanwhile", self.of.carrier());
        let changed = if self.has_changed() { has_changed() } else { String::new() };
        format!("{carried}{}{changed}", self.line_words())
    }

    /// The line at both ends and where it bends most evenly between them.
    fn line_words(&self) -> String {
        let changes = self.of.changes();
        let known: Vec<&MappedMix> = self.mixes.iter().filter(|mix| mix.line_per_s.is_some()).collect();
        let (Some(most), Some(least)) = (known.first(), known.last()) else {
            return match self.has_missed() {
                true => format!("no mix of reads and {changes} keeps {} at any rate that was tried", self.limit),
                false => format!("no rate of reads and {changes} could be judged within {}", self.limit),
            };
        };
        let words = |mix: &MappedMix| {
            let [reads, writes] = mix.on_line().unwrap_or_default();
            let at_least = if mix.missed_per_s.is_none() { "at least " } else { "" };
            match mix.read_share {
                1.0 => format!("{at_least}{} reads/s alone", group_thousands(reads)),
                0.0 => format!("{at_least}{} {changes}/s alone", group_thousands(writes)),
                _ => {
                    format!("{at_least}{} reads/s with {} {changes}/s", group_thousands(reads), group_thousands(writes))
                }
            }
        };
        let middle = known
            .iter()
            .filter(|mix| mix.read_share < most.read_share && mix.read_share > least.read_share)
            .min_by(|one, other| self.line.tilt(one).total_cmp(&self.line.tilt(other)));
        let last = (least.read_share < most.read_share).then_some(least);
        let parts: Vec<String> = [Some(most), middle, last].into_iter().flatten().map(|mix| words(mix)).collect();
        let sure = self.within.map_or_else(String::new, |within| format!(", ±{} %", percent(within)));
        let none = self.mixes.iter().find(|mix| mix.carried_per_s.is_none() && mix.missed_per_s.is_some());
        let none = none.map_or_else(String::new, |mix| {
            let least = group_thousands(mix.missed_per_s.unwrap_or_default());
            format!("; with {} % of reads not even {least} {}/s", percent(mix.read_share), self.of.all())
        });
        let sessions = match self.sessions {
            Some(1) => " with 1 session".to_owned(),
            Some(sessions) => format!(" with {sessions} sessions"),
            None => String::new(),
        };
        format!("{} within {}{sessions}{sure}{none}", parts.join(", "), self.limit)
    }
}

impl MapPlace {
    /// How many times that the line has; absent where no line is near.
    pub fn times(self) -> Option<f64> {
        match self {
            Self::Inside { times } | Self::Outside { times } | Self::Unknown { times } => times,
        }
    }

    fn words(self, demand: MapDemand, of: MapOf) -> String {
        let [reads, writes] = [demand.reads_per_s, demand.writes_per_s].map(group_thousands);
        let demand = format!("{reads} reads/s with {writes} {}/s", of.changes());
        let at = |times: Option<f64>| times.map_or_else(String::new, |times| format!(" ({times:.2} times that)"));
        match self {
            Self::Inside { times } => format!("{demand} is inside of the line{}", at(times)),
            Self::Outside { times } => format!("{demand} is outside of the line{}", at(times)),
            Self::Unknown { times: times @ Some(_) } => {
                format!("{demand} may be on either side of the line{}", at(times))
            }
            Self::Unknown { times: None } => format!("no mix like {demand} was measured"),
        }
    }
}

/// The verdict of a step of a map by `limit`, which reads and changes must each keep.
///
/// A kind that is too rare for its percentile is judged by clear misses alone: so many slow requests as chance makes less than once in a
/// thousand times where the limit is kept.
pub(crate) fn outcome(workload: Workload, step: &Step, limit: &LatencyTarget) -> Option<(VerdictOutcome, bool)> {
    let (of, level) = step.level.as_ref()?.map()?;
    let seconds = step.window.duration_ns as f64 / 1e9;
    let due = [level.reads_per_s(), level.writes_per_s()].map(|per_s| per_s * seconds);
    let of_kind =
        |kind: &str| LatencyTarget { subject: Some(Subject::Response(Some(kind.to_owned()))), ..limit.clone() };
    let mut wanted = vec![LatencyTarget { subject: Some(Subject::Response(None)), ..limit.clone() }];
    let (mut has_few, mut is_clear) = (false, false);
    for (kind, due) in of.kinds().into_iter().zip(due).filter(|(_, due)| *due > 0.0) {
        let limit = of_kind(kind);
        if due >= limit.durations_wanted() as f64 {
            wanted.push(limit);
        } else {
            has_few = true;
            is_clear |= is_clear_miss(step, &limit);
        }
    }
    let outcome = judge_all(workload, step, &wanted)?;
    let fails = is_clear && outcome == VerdictOutcome::Passed;
    Some((if fails { VerdictOutcome::Failed } else { outcome }, has_few))
}

/// Whether more requests exceed the limit than chance explains.
fn is_clear_miss(step: &Step, limit: &LatencyTarget) -> bool {
    let Some(times) = limit.subject.as_ref().and_then(|subject| subject.times(step)) else { return false };
    let slow = times.count().saturating_sub(times.below_ns(limit.limit.0.saturating_add(1)).1);
    is_beyond_chance(slow, times.count() as f64 * (1.0 - limit.quantile))
}

/// Whether chance makes so many where so many are expected less than once in a thousand times: by Poisson's distribution, of many by the
/// normal one.
fn is_beyond_chance(seen: u64, expected: f64) -> bool {
    const CHANCE: f64 = 0.001;
    const DEVIATIONS: f64 = 3.09;
    const MANY: u64 = 100;
    if seen > MANY {
        return seen as f64 > expected + DEVIATIONS * expected.sqrt();
    }
    let mut term = (-expected).exp();
    let mut fewer = 0.0;
    for count in 0..seen {
        fewer += term;
        term *= expected / (count + 1) as f64;
    }
    seen > 0 && 1.0 - fewer < CHANCE
}

/// The limit of a map; absent where the recorded text is none. No request to storage may fail; of operations of a database, which may time out
/// or be in each other's way, as few as of any other load.
pub fn limit_of(run: &Run) -> Option<LatencyTarget> {
    let load = run.load.map()?;
    let limit: LatencyTarget = load.limit.parse().ok()?;
    Some(LatencyTarget { errors: (load.of == MapOf::Requests).then_some(0.0), ..limit })
}

fn judged(run: &Run, step: &Step, limit: &LatencyTarget) -> Option<Judged> {
    let level = level_of(step)?;
    let is_possible = level.per_s.is_finite() && level.per_s > 0.0 && (0.0..=1.0).contains(&level.read_share);
    if step.outcome != Outcome::Completed || !is_possible {
        return None;
    }
    let (outcome, has_few) = outcome(run.workload(), step, limit)?;
    let finished_per_s = Figures(step).operations_per_s().unwrap_or(0.0);
    Some(Judged { level, outcome, finished_per_s, has_hung: is_hung(outcome, step), has_few })
}

fn level_of(step: &Step) -> Option<MapLevel> {
    step.level.as_ref()?.map().map(|(_, level)| level)
}

/// Labels of the steps that the line of a map rests on: the largest rate of each mix that kept the limit.
pub(crate) fn met_steps(run: &Run) -> BTreeSet<String> {
    let Some(mapping) = Mapping::of(run) else { return BTreeSet::new() };
    let is_met =
        |level: MapLevel| mapping.mixes.iter().any(|mix| mix.number == level.mix && mix.carried() == Some(level.per_s));
    run.steps.iter().filter(|step| level_of(step).is_some_and(is_met)).map(|step| step.label.clone()).collect()
}

/// The points so far, and what follows from them.
struct Mapping<'a> {
    load: &'a MapSearch,
    seed: u64,
    points: Vec<Judged>,
    mixes: Vec<MixSearch>,
    /// The line as a part of what is finished under more, as mixes have it so far; 1 before there is one.
    of_capacity: f64,
    anchors: Anchors,
}

/// Measurements of the first mix after its search had ended, at the rate that it kept.
#[derive(Debug, Clone, Copy, Default)]
struct Anchors {
    /// That rate, once it is known.
    per_s: Option<f64>,
    times: usize,
    /// Those that did not keep the limit.
    missed: usize,
}

impl Anchors {
    /// Counts a point of the first mix, which has not taken it into account yet.
    fn see(&mut self, first: &MixSearch, point: &Judged) {
        if self.per_s.is_none() && first.next().is_none() {
            self.per_s = first.carried();
        }
        // Where the load generator was the limit, or the point was not steady, it shows nothing of what is measured.
        let is_judged = matches!(point.outcome, VerdictOutcome::Passed | VerdictOutcome::Failed);
        if self.per_s == Some(point.level.per_s) && is_judged {
            self.times += 1;
            self.missed += usize::from(point.outcome == VerdictOutcome::Failed);
        }
    }
}

impl<'a> Mapping<'a> {
    /// Of a run of a map; absent for another one, or where what is recorded of it is not in order.
    fn of(run: &'a Run) -> Option<Self> {
        let load = run.load.map()?;
        let limit = limit_of(run)?;
        let is_in_order =
            load.lowest_per_s > 0.0 && load.lowest_per_s < load.highest_per_s && load.highest_per_s.is_finite();
        let is_possible = is_in_order && (0.001..=1.0).contains(&load.within);
        let points = run.steps.iter().filter_map(|step| judged(run, step, &limit)).take(load.most_points as usize);
        is_possible.then(|| Self::new(load, run.seed.unwrap_or(0), points.collect()))
    }

    fn new(load: &'a MapSearch, seed: u64, points: Vec<Judged>) -> Self {
        let mut mixes: Vec<MixSearch> = Vec::new();
        let mut places = BTreeMap::new();
        let mut anchors = Anchors::default();
        for point in &points {
            let level = point.level;
            let place = *places.entry(level.mix).or_insert_with(|| {
                mixes.push(MixSearch::new(load, level.mix, level.read_share));
                mixes.len() - 1
            });
            if place == 0 {
                anchors.see(&mixes[0], point);
            }
            mixes[place].record(point);
        }
        let known: Vec<f64> = mixes.iter().filter_map(MixSearch::of_capacity).collect();
        let of_capacity = median_of(&known).unwrap_or(1.0);
        mixes.iter_mut().for_each(|mix| mix.expect(of_capacity));
        Self { load, seed, points, mixes, of_capacity, anchors }
    }

    /// The point to measure next; absent where the line is known, or no point is left.
    fn next(&self) -> Option<MapLevel> {
        if self.points.len() >= self.load.most_points as usize {
            return None;
        }
        let open: Vec<MapLevel> = self.mixes.iter().filter_map(MixSearch::next).collect();
        let is_anchor_due = self.points.len() % ANCHOR_EVERY == ANCHOR_EVERY - 1;
        if let Some(anchor) = self.anchor().filter(|_| is_anchor_due && (!open.is_empty() || !self.is_found())) {
            return Some(anchor);
        }
        // The second begins where the first shows how far latency keeps the line from what can be finished.
        let at_once = if self.mixes.len() < 2 { 1 } else { AT_ONCE };
        let begun = if open.len() < at_once { self.new_mix() } else { None };
        let mut choice: Vec<MapLevel> = open.into_iter().chain(begun).collect();
        // In any order, so that what changes with time is not taken for a property of some mixes.
        let chance = mix64(self.seed ^ mix64(self.points.len() as u64)) as usize;
        (!choice.is_empty()).then(|| choice.swap_remove(chance % choice.len()))
    }

    /// The first mix where it kept the limit.
    fn anchor(&self) -> Option<MapLevel> {
        let first = self.mixes.first().filter(|mix| mix.next().is_none())?;
        first.carried().map(|per_s| first.level(per_s))
    }

    /// The first point of a mix that has none yet.
    fn new_mix(&self) -> Option<MapLevel> {
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
        let ended = || self.mixes.iter().filter(|mix| mix.next().is_none());
        let edges = ended().filter_map(|mix| {
            let (low, high) = mix.bounds()?;
            Some(Edge { read_share: mix.read_share, low, high, has_failed: mix.has_failed() })
        });
        let voids = ended().filter(|mix| mix.carried().is_none()).map(|mix| mix.read_share).collect();
        let known: Vec<([f64; 2], bool)> = self
            .mixes
            .iter()
            .flat_map(|mix| {
                mix.known().map(|(per_s, is_met)| (of_share(mix.read_share, per_s), is_met)).collect::<Vec<_>>()
            })
            .collect();
        let those = |met: bool| known.iter().filter(|(_, is_met)| *is_met == met).map(|(point, _)| *point).collect();
        Line::new(edges.collect(), self.load.within, FEWEST_MIXES).with(voids, those(true), those(false))
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
pub fn next_of_map(run: &Run) -> Option<MapLevel> {
    Mapping::of(run)?.next()
}

/// Sessions of which this part or more was busy on average leave none for what is due.
const FULL: f64 = 0.95;

impl MixSearch {
    /// Whether all sessions were busy at a rate, by Little's law.
    fn is_full(&self, run: &Run, per_s: f64) -> bool {
        let is_it = |step: &&Step| level_of(step).is_some_and(|level| level.mix == self.number && level.per_s == per_s);
        let mut busy = run.steps.iter().filter(is_it).filter_map(|step| {
            Some(Figures(step).busy_sessions()? / f64::from(step.load.sessions.filter(|sessions| *sessions > 0)?))
        });
        busy.any(|share| share >= FULL)
    }

    fn mapped(&self, run: &Run, of: MapOf, limit: &LatencyTarget) -> MappedMix {
        let carried_per_s = self.carried();
        let is_it = |level: MapLevel| level.mix == self.number && Some(level.per_s) == carried_per_s;
        let step = run.steps.iter().find(|step| level_of(step).is_some_and(is_it));
        let time = |kind: &str| {
            let subject = Some(Subject::Response(Some(kind.to_owned())));
            LatencyTarget { subject, ..limit.clone() }.value(run.workload(), step?).map(|time| time.0)
        };
        let known =
            self.bounds().filter(|(low, high)| self.next().is_none() || high.is_some_and(|high| high <= low * NARROW));
        MappedMix {
            read_share: self.read_share,
            carried_per_s,
            missed_per_s: self.missed(),
            line_per_s: known.map(|(low, high)| low.sqrt() * high.unwrap_or(low).sqrt()),
            read_ns: time(of.kinds()[0]),
            write_ns: time(of.kinds()[1]),
            is_generators: self.is_generators(),
            is_unsteady: self.missed().is_some() && !self.has_failed(),
            is_full: of == MapOf::Operations && self.missed().is_some_and(|per_s| self.is_full(run, per_s)),
            has_few: self.has_few(),
            points: self.points(),
        }
    }
}
