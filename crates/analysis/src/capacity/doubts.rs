//! What makes an answer doubtful.

use super::super::{Finding, LatencyTarget, Severity, analyse_asked};
use super::{Demand, Fit, Platform, Resource, SAME_MIX, SAME_SIZE, Verdict};
use model::record::Run;

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
    NotLoaded(Vec<Resource>),
    /// Levels whose buckets are too wide to be judged.
    TooWide(Vec<String>),
    /// A smaller load missed the target that a larger one met.
    NotMonotonic {
        /// Level that missed it.
        missed: String,
        /// Level that met it.
        met: String,
    },
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

pub(super) fn find(
    fit: &Fit,
    demand: &Demand,
    platform: &Platform,
    run: &Run,
    target: &LatencyTarget,
) -> Vec<FitDoubt> {
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
        {
            doubts.push(FitDoubt::OtherMix(asked, measured));
        }
        if let (Some(asked), Some(measured)) = (demand.rates.request_bytes(), level.rates.request_bytes())
            && (asked.max(measured) > SAME_SIZE * asked.min(measured))
        {
            doubts.push(FitDoubt::OtherSize(asked, measured));
        }
    }
    let idle: Vec<Resource> = [Resource::Redo, Resource::Commits]
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
    let met = platform.levels.iter().find(|level| Some(&level.label) == fit.level.as_ref())?;
    let io = |level: &super::Level| level.rates.io.or(level.rates.reads);
    let missed = platform
        .levels
        .iter()
        .filter(|level| level.verdict == Verdict::Missed)
        .find(|level| io(level).zip(io(met)).is_some_and(|(missed, met)| missed < 0.97 * met))?;
    Some(FitDoubt::NotMonotonic { missed: missed.label.clone(), met: met.label.clone() })
}
