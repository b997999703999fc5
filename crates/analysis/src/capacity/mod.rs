//! Can this platform carry that database? A database's demand held against what a platform was measured to carry.
//!
//! Nothing is extrapolated. A platform *carries* a demand if it met the latency target at a level that asked for at least as
//! much in every respect that is compared, or if each of the database's windows is within some such level. It does *not* if it
//! missed the target at a level that asked for no more in any respect, while the database had as much at one time. Else the
//! answer is not known: why is said, and which command decides.
//!
//! A platform that was mapped is judged by its line instead, each window of the database by itself.

mod by_map;
mod deciding;
mod demand;
mod platform;
mod reported;
#[cfg(test)]
mod reported_tests;
#[cfg(test)]
mod tests;

pub use by_map::{MapFit, NotPlaced, PlacedWindow};
pub use deciding::shell_word;
pub use demand::{Demand, Share, is_one_of_cluster};
pub use platform::{Level, Platform, Verdict};

use super::{Finding, LatencyTarget, MapAnswer, QuantileValue, Severity, analyse_asked, limit_of_map};
use model::record::{Metric, Run};

/// Shares of reads that differ by more than this are worth a doubt.
const SAME_MIX: f64 = 0.1;
/// Sizes of requests of which the larger is at most so many times the smaller are one size.
const SAME_SIZE: f64 = 1.25;
/// Reads or writes that are a smaller share of all requests than this are not asked for by themselves.
const NEGLIGIBLE: f64 = 0.01;
/// A demand that is at most this share of the least level in every respect is trivial, if that level met the target with room.
const TRIVIAL: f64 = 0.01;
/// A level had room if the latency that is judged took at most this share of the limit.
const WITH_ROOM: f64 = 0.5;

/// What is compared, in the order in which it is reported.
pub const RESPECTS: [Metric; 6] =
    [Metric::Io, Metric::Reads, Metric::Writes, Metric::Megabytes, Metric::RedoMegabytes, Metric::Commits];

/// Rates of a demand or of a level, each absent where it is not known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rates {
    /// Read requests per second.
    pub reads: Option<f64>,
    /// Write requests for data per second.
    pub writes: Option<f64>,
    /// Both together.
    pub io: Option<f64>,
    /// Megabytes read and written per second.
    pub megabytes: Option<f64>,
    /// Megabytes of redo per second.
    pub redo: Option<f64>,
    /// Commits per second.
    pub commits: Option<f64>,
}

impl Rates {
    /// The rate in one of [`RESPECTS`].
    pub fn of(&self, respect: Metric) -> Option<f64> {
        match respect {
            Metric::Io => self.io,
            Metric::Reads => self.reads,
            Metric::Writes => self.writes,
            Metric::Megabytes => self.megabytes,
            Metric::RedoMegabytes => self.redo,
            Metric::Commits => self.commits,
            _ => None,
        }
    }

    /// Reads as a share of all requests, 0 to 1.
    pub fn read_share(&self) -> Option<f64> {
        let (reads, writes) = (self.reads?, self.writes?);
        (reads + writes > 0.0).then(|| reads / (reads + writes))
    }

    /// Mean size of a request, in bytes.
    pub fn request_bytes(&self) -> Option<f64> {
        Some(self.megabytes? * 1e6 / self.io.filter(|io| *io > 0.0)?)
    }
}

/// One respect in numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compared {
    /// What is compared.
    pub respect: Metric,
    /// What the database asks for.
    pub demand: f64,
    /// What the platform did at the level that the answer rests on.
    pub capacity: Option<f64>,
    /// Whether the answer depends on it.
    pub is_decisive: bool,
}

impl Compared {
    /// Capacity over demand: 2 is twice what is asked for.
    pub fn headroom(&self) -> Option<f64> {
        self.capacity.filter(|_| self.demand > 0.0).map(|capacity| capacity / self.demand)
    }
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The platform met the target at a level that asked for as much or more.
    Carries,
    /// It missed the target at a level that asked for no more.
    DoesNot,
    /// Nobody measured it.
    Unknown(NotKnown),
}

impl Answer {
    /// How bad it is: of several answers the worst is that of all.
    pub fn badness(self) -> u8 {
        match self {
            Self::Carries => 0,
            Self::Unknown(_) => 1,
            Self::DoesNot => 2,
        }
    }
}

/// What an answer rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Basis {
    /// One level that was held against the demand.
    Level,
    /// Each window of the database is within some level that met the target, though no level has the peaks of all of them.
    Windows,
    /// The line of a map: each window of the database was held against it.
    Map,
    /// The demand is next to nothing beside the least level, which has this label and met the target with room.
    Trivial(String),
}

/// Why it is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotKnown {
    /// The demand reports neither requests nor bytes.
    NoDemand,
    /// The demand does not report this, which storage has to carry too.
    NotReported(Metric),
    /// No level of the platform can be judged by the target.
    NotJudged,
    /// No level reports something that is asked for, or has none of it.
    NotMeasured(Metric),
    /// The levels went through the page cache of the machine that made the load, and report on its memory.
    FromMemory,
    /// Every judged level met the target, and none asked for so much.
    BeyondLevels,
    /// A smaller load met the target and a larger one missed it, or those that missed it asked for more in some respect.
    Between,
    /// No level met the target, and those that missed it asked for more in some respect.
    BelowLevels,
    /// Windows lie where the map does not say, each for its own reason.
    OnMap,
    /// The map's storage changed while it was measured.
    MapChanged,
    /// Each respect was reached at some level that did not miss the target, but no level is known to have done all at once.
    Apart,
}

/// A platform's latency at the demand's rate.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyThere {
    /// The target's quantile; absent where levels do not report it, a bound where one of them only bounds it.
    pub quantile: Option<QuantileValue>,
    /// The mean, in milliseconds.
    pub mean_ms: Option<f64>,
    /// The levels between which it was read off a straight line; one alone where the demand lies at it, or below the least.
    pub levels: Vec<String>,
    /// Whether the demand lies below the least level that was measured: then this is the latency there.
    pub is_below: bool,
}

/// A demand held against a platform.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// The answer.
    pub answer: Answer,
    /// Every respect in which something is asked for.
    pub compared: Vec<Compared>,
    /// The decisive respect with the least headroom.
    pub binding: Option<Metric>,
    /// Whether no level missed the target, so that capacity is at least what was measured.
    pub is_at_least: bool,
    /// Label of the level that capacity is read from: of those that met the target the one with the most headroom in the
    /// respect that has the least; where none met it, absent.
    pub level: Option<String>,
    /// The latency of the platform at the demand's rate; absent outside of what was measured.
    pub latency: Option<LatencyThere>,
    /// What the answer rests on.
    pub basis: Basis,
    /// The command whose result would decide, where the answer is not known and a measurement can decide it.
    pub command: Option<String>,
    /// Where the windows lie on the platform's map; absent where it is none.
    pub map: Option<MapFit>,
    /// What makes the answer doubtful.
    pub doubts: Vec<FitDoubt>,
}

impl Basis {
    /// Whether windows were held against the platform one by one.
    fn is_of_windows(&self) -> bool {
        matches!(self, Self::Windows | Self::Map)
    }
}

impl Fit {
    /// Holds `demand` against what `run` measured.
    pub fn of(demand: &Demand, platform: &Platform, run: &Run, target: &LatencyTarget) -> Self {
        let decisive = decisive(&demand.rates, platform);
        let map = platform.map.as_ref().map(|map| MapFit::of(demand, map));
        let (answer, basis) = answer(demand, platform, &decisive, map.as_ref());
        let met: Vec<&Level> = platform.levels.iter().filter(|level| level.verdict == Verdict::Met).collect();
        let missed = || platform.levels.iter().filter(|level| level.verdict == Verdict::Missed);
        // What no level has any of ranks none of them.
        let ranked: Vec<Metric> = decisive.iter().copied().filter(|respect| platform.is_loaded(*respect)).collect();
        let best = met.iter().copied().reduce(|best, level| {
            let least = |level: &Level| min_headroom(&demand.rates, level, &ranked).map_or(0.0, |(_, least)| least);
            if least(level) > least(best) { level } else { best }
        });
        let compare = |respect| {
            let demand = demand.rates.of(respect).filter(|demand| *demand > 0.0)?;
            // Windows are held against the level nearest to each: there the most of any level counts.
            let most = || met.iter().filter_map(|level| level.rates.of(respect)).reduce(f64::max);
            let of_best = || best.and_then(|level| level.rates.of(respect));
            let capacity = if basis.is_of_windows() { most() } else { of_best() };
            // On a map no respect decides by itself.
            let is_by_itself = basis != Basis::Map;
            let capacity = capacity.filter(|capacity| *capacity > 0.0 && is_by_itself);
            Some(Compared { respect, demand, capacity, is_decisive: is_by_itself && decisive.contains(&respect) })
        };
        let of_level = best.filter(|_| !basis.is_of_windows());
        let command = match answer {
            Answer::Unknown(_) => deciding::command(demand, platform, run, target, &decisive),
            Answer::Carries | Answer::DoesNot => None,
        };
        let fit = Self {
            answer,
            compared: RESPECTS.into_iter().filter_map(compare).collect(),
            binding: of_level.and_then(|level| min_headroom(&demand.rates, level, &ranked)).map(|(respect, _)| respect),
            is_at_least: missed().next().is_none(),
            level: of_level.map(|level| level.label.clone()),
            latency: platform.latency_at(&demand.rates),
            basis,
            command,
            map,
            doubts: Vec::new(),
        };
        let doubts = find_doubts(&fit, demand, platform, run, target);
        Self { doubts, ..fit }
    }

    /// Headroom in the respect that binds; on a map of the window that decides.
    pub fn headroom(&self) -> Option<f64> {
        if let (Some(map), Basis::Map) = (&self.map, &self.basis) {
            return match self.answer {
                Answer::Carries => map.times(true),
                Answer::DoesNot => map.times(false),
                Answer::Unknown(_) => None,
            };
        }
        self.compared.iter().find(|compared| Some(compared.respect) == self.binding)?.headroom()
    }
}

/// In which respects a level must be as large as the demand. Reads and writes each by itself: how much more of one makes up for less
/// of the other nobody knows. Bytes always, since they are what limits large requests; redo and commits if the platform's load made
/// any.
fn decisive(demand: &Rates, platform: &Platform) -> Vec<Metric> {
    let is_asked = |respect: &Metric| demand.of(*respect).is_some_and(|rate| rate > spared(demand, *respect));
    let mut respects = vec![Metric::Reads, Metric::Writes, Metric::Megabytes];
    respects.retain(is_asked);
    respects.extend(
        [Metric::RedoMegabytes, Metric::Commits].into_iter().filter(|it| is_asked(it) && platform.is_loaded(*it)),
    );
    respects
}

/// What is not asked for by itself in a load of these rates: reads among very many writes, or writes among very many reads.
fn spared(rates: &Rates, respect: Metric) -> f64 {
    let io = rates.io.or(rates.reads).or(rates.writes).unwrap_or(0.0);
    if matches!(respect, Metric::Reads | Metric::Writes) { NEGLIGIBLE * io } else { 0.0 }
}

/// The decisive respect in which a level has the least headroom; none where it does not report one of them.
fn min_headroom(demand: &Rates, level: &Level, decisive: &[Metric]) -> Option<(Metric, f64)> {
    let headroom = |respect: &Metric| Some((*respect, level.rates.of(*respect)? / demand.of(*respect)?));
    let known: Vec<(Metric, f64)> = decisive.iter().filter_map(headroom).collect();
    known.into_iter().reduce(|least, other| if other.1 < least.1 { other } else { least })
}

/// Whether `level` asked storage for no more than `window` did, in any respect that storage feels: requests no larger, reads
/// and writes each by itself, and what else is `decisive`.
fn is_no_more(level: &Rates, window: &Rates, decisive: &[Metric]) -> bool {
    let is_within = |respect: &Metric| {
        let spared = spared(level, *respect);
        level.of(*respect).zip(window.of(*respect)).is_some_and(|(done, asked)| done <= asked.max(spared))
    };
    let is_larger = match (level.request_bytes(), window.request_bytes()) {
        (Some(done), Some(asked)) => done > SAME_SIZE * asked,
        _ => true,
    };
    !is_larger && [Metric::Reads, Metric::Writes].iter().chain(decisive).all(is_within)
}

/// Whether `level` did at least as much as `asked` in every decisive respect.
fn is_enough(level: &Rates, asked: &Rates, decisive: &[Metric]) -> bool {
    decisive.iter().all(|respect| match (level.of(*respect), asked.of(*respect)) {
        (done, Some(asked_for)) => done.is_some_and(|done| done >= asked_for) || asked_for <= spared(asked, *respect),
        (_, None) => false,
    })
}

/// The least level that can be judged, if it met the target with room and `demand` is next to nothing beside it: all its
/// requests, bytes and commits together, also of kinds that the load on the platform had none of.
fn trivial_beside<'a>(demand: &Rates, platform: &'a Platform) -> Option<&'a Level> {
    let judged = |level: &&Level| matches!(level.verdict, Verdict::Met | Verdict::Missed);
    let least = platform.levels.iter().find(judged).filter(|level| level.verdict == Verdict::Met)?;
    let is_roomy = least.quantile?.ns.0 as f64 <= WITH_ROOM * platform.target.limit.0 as f64;
    let (io, megabytes) = (TRIVIAL * least.rates.io?, TRIVIAL * least.rates.megabytes?);
    let is_small = demand.reads? + demand.writes? + demand.commits.unwrap_or(0.0) <= io
        && demand.megabytes? + demand.redo.unwrap_or(0.0) <= megabytes;
    (is_roomy && is_small).then_some(least)
}

fn answer(demand: &Demand, platform: &Platform, decisive: &[Metric], map: Option<&MapFit>) -> (Answer, Basis) {
    let at_most = |level: &Level| demand.is_reached(|window| is_no_more(&level.rates, window, decisive));
    let with = |verdict: Verdict| platform.levels.iter().filter(move |level| level.verdict == verdict);
    let unknown = |why| (Answer::Unknown(why), Basis::Level);
    let asks_for_storage = decisive.iter().any(|it| !matches!(it, Metric::RedoMegabytes | Metric::Commits));
    if !asks_for_storage {
        return unknown(NotKnown::NoDemand);
    }
    let resources = [Metric::Reads, Metric::Writes, Metric::Megabytes];
    if let Some(respect) = resources.into_iter().find(|respect| demand.rates.of(*respect).is_none()) {
        return unknown(NotKnown::NotReported(respect));
    }
    // The line says more than any of its points.
    if let Some(map) = map {
        let has_changed = platform.map.as_ref().is_some_and(MapAnswer::has_changed);
        let answer = match map.answer(demand.share) {
            _ if has_changed => Answer::Unknown(NotKnown::MapChanged),
            Some(true) if platform.is_memory => Answer::Unknown(NotKnown::FromMemory),
            Some(true) => Answer::Carries,
            Some(false) => Answer::DoesNot,
            None => Answer::Unknown(NotKnown::OnMap),
        };
        return (answer, Basis::Map);
    }
    let is_carried = |asked: &Rates| with(Verdict::Met).any(|level| is_enough(&level.rates, asked, decisive));
    let basis = if is_carried(&demand.rates) {
        Some(Basis::Level)
    } else if let Some(least) = trivial_beside(&demand.rates, platform) {
        Some(Basis::Trivial(least.label.clone()))
    } else {
        demand.is_covered(is_carried).then_some(Basis::Windows)
    };
    match basis {
        Some(_) if platform.is_memory => return unknown(NotKnown::FromMemory),
        Some(basis) => return (Answer::Carries, basis),
        None => {}
    }
    if with(Verdict::Missed).any(at_most) {
        return (Answer::DoesNot, Basis::Level);
    }
    let reaches = |respect: &Metric| {
        let levels = platform.levels.iter().filter(|level| level.verdict != Verdict::Missed);
        let mut rates = levels.filter_map(|level| level.rates.of(*respect));
        demand.rates.of(*respect).is_some_and(|asked| rates.any(|rate| rate >= asked))
    };
    let is_distinguished = platform.levels.iter().any(|level| level.seconds.is_none());
    unknown(match decisive.iter().find(|respect| !platform.is_loaded(**respect)) {
        Some(respect) => NotKnown::NotMeasured(*respect),
        None if is_distinguished && with(Verdict::Met).next().is_some() && decisive.iter().all(reaches) => {
            NotKnown::Apart
        }
        None if with(Verdict::Met).next().is_none() && with(Verdict::Missed).next().is_none() => NotKnown::NotJudged,
        None if with(Verdict::Missed).next().is_none() => NotKnown::BeyondLevels,
        None if with(Verdict::Met).next().is_none() => NotKnown::BelowLevels,
        None => NotKnown::Between,
    })
}

/// Windows from this length on hide peaks that storage feels.
const HIDES_PEAKS_S: f64 = 60.0;
/// Levels shorter than this say nothing about a load that stays: burst credits and caches last longer.
const SHORT_LEVEL_S: f64 = 600.0;
/// Windows that cover less of their time than this may have missed the peak.
const COVERS_MOST: f64 = 0.9;
/// With fewer windows than a day has hours nobody knows the busiest one.
const FEW_WINDOWS: usize = 24;

/// What makes an answer doubtful.
#[derive(Debug, Clone, PartialEq)]
pub enum FitDoubt {
    /// Demand is the mean of windows of this length, in seconds, and was higher within.
    MeansOf(f64),
    /// So many windows, or so much of the time, are all that is known of the database.
    LittleKnown {
        /// Windows.
        windows: usize,
        /// Share of the time from the first to the last that they cover.
        covered_share: f64,
    },
    /// The demand is that of one instance of a cluster.
    OneInstance(String),
    /// The longest level of the platform lasted so many seconds.
    ShortLevels(f64),
    /// How long levels lasted is not reported: each is one reading.
    UnreportedLengths,
    /// Levels of which no more is reported than a mean latency, or a rate that bounds it.
    OnlyMeans(Vec<String>),
    /// Shares of reads of the demand and of the level that the answer rests on.
    OtherMix(f64, f64),
    /// Mean bytes of a request of the demand and of that level.
    OtherSize(f64, f64),
    /// What the load on the platform made none of, or does not report.
    NotLoaded(Vec<Metric>),
    /// Levels whose buckets are too wide to be judged.
    TooWide(Vec<String>),
    /// A smaller load missed the target that a larger one met.
    NotMonotonic {
        /// Level that missed it.
        missed: String,
        /// Level that met it.
        met: String,
    },
    /// The platform is a map by this limit, whose line says nothing of another one.
    OtherLimit(String),
    /// What is judged on the platform is not what the database timed.
    OtherSubject {
        /// In the database.
        demand: String,
        /// On the platform.
        platform: String,
    },
    /// What the analysis of the platform's run found doubtful, and its advice.
    OfRun(String, Option<String>),
}

fn find_doubts(fit: &Fit, demand: &Demand, platform: &Platform, run: &Run, target: &LatencyTarget) -> Vec<FitDoubt> {
    let mut doubts = Vec::new();
    if demand.lengths_s.1 >= HIDES_PEAKS_S {
        doubts.push(FitDoubt::MeansOf(demand.lengths_s.1));
    }
    if demand.windows < FEW_WINDOWS || demand.covered_share < COVERS_MOST {
        doubts.push(FitDoubt::LittleKnown { windows: demand.windows, covered_share: demand.covered_share });
    }
    if demand.is_of_cluster {
        doubts.push(FitDoubt::OneInstance(demand.database.clone()));
    }
    let longest = platform.levels.iter().filter_map(|level| level.seconds).reduce(f64::max);
    doubts.extend(longest.filter(|longest| *longest < SHORT_LEVEL_S).map(FitDoubt::ShortLevels));
    if platform.levels.iter().any(|level| level.seconds.is_none()) {
        doubts.push(FitDoubt::UnreportedLengths);
    }
    let level =
        platform.levels.iter().find(|level| Some(&level.label) == fit.level.as_ref()).or(platform.levels.last());
    if let Some(level) = level {
        if let (Some(asked), Some(measured)) =
            (demand.read_share.or(demand.rates.read_share()), level.rates.read_share())
            && (asked - measured).abs() > SAME_MIX
            && fit.map.is_none()
        {
            doubts.push(FitDoubt::OtherMix(asked, measured));
        }
        if let (Some(asked), Some(measured)) = (demand.rates.request_bytes(), level.rates.request_bytes())
            && (asked.max(measured) > SAME_SIZE * asked.min(measured))
        {
            doubts.push(FitDoubt::OtherSize(asked, measured));
        }
    }
    let idle: Vec<Metric> = [Metric::RedoMegabytes, Metric::Commits]
        .into_iter()
        .filter(|respect| demand.rates.of(*respect).is_some_and(|rate| rate > 0.0) && !platform.is_loaded(*respect))
        .collect();
    if !idle.is_empty() {
        doubts.push(FitDoubt::NotLoaded(idle));
    }
    let of_verdict = |verdict: Verdict| -> Vec<String> {
        platform.levels.iter().filter(|level| level.verdict == verdict).map(|level| level.label.clone()).collect()
    };
    let (wide, means) = (of_verdict(Verdict::TooWide), of_verdict(Verdict::OnlyMean));
    if !wide.is_empty() {
        doubts.push(FitDoubt::TooWide(wide));
    }
    if !means.is_empty() {
        doubts.push(FitDoubt::OnlyMeans(means));
    }
    doubts.extend(not_monotonic(fit, platform));
    let is_of_other = |limit: &LatencyTarget| limit.quantile != target.quantile || limit.limit != target.limit;
    doubts.extend(limit_of_map(run).filter(is_of_other).map(|limit| FitDoubt::OtherLimit(limit.to_string())));
    if let (Some(window), Some(subject)) = (&demand.window, &platform.target.subject)
        && (window.mean_ms.is_some() || window.quantile.is_some())
        && window.subject != subject.to_string()
    {
        doubts.push(FitDoubt::OtherSubject { demand: window.subject.clone(), platform: subject.to_string() });
    }
    let findings = analyse_asked(run, Some(target));
    let of_run = |finding: &Finding| finding.severity() == Severity::Doubt || matches!(finding, Finding::CacheTrap(_));
    let of_platform = findings.iter().filter(|finding| of_run(finding));
    doubts.extend(of_platform.map(|finding| FitDoubt::OfRun(finding.sentence(), finding.advice())));
    doubts
}

/// The level that the answer rests on met the target, and one that asked for less in requests missed it.
fn not_monotonic(fit: &Fit, platform: &Platform) -> Option<FitDoubt> {
    let is_met = |level: &&Level| !platform.is_map && Some(&level.label) == fit.level.as_ref();
    let met = platform.levels.iter().find(is_met)?;
    let io = |level: &Level| level.rates.io.or(level.rates.reads);
    let missed = platform
        .levels
        .iter()
        .filter(|level| level.verdict == Verdict::Missed)
        .find(|level| io(level).zip(io(met)).is_some_and(|(missed, met)| missed < 0.97 * met))?;
    Some(FitDoubt::NotMonotonic { missed: missed.label.clone(), met: met.label.clone() })
}
