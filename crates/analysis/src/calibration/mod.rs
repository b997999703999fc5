//! What CALIBRATE_IO asks, answered from a run of workload `calibrate`: the most small random reads a second within a
//! latency, the most bytes a second, and how sure both are.
//!
//! Each depth was measured once while the best was looked for, and the best ones again. The first reading of a depth is not
//! counted among its repeats: it was chosen for being high, and what is chosen for being high is on average too high.

use model::record::{CalibrateLoad, Histogram, Level, Load, Metric, Outcome, Run, Step};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::{Figures, measured};
use crate::load_line::latency_target::latency;
use crate::traffic::{inside, requests};
use crate::{Finding, LatencyTarget, Severity, analyse, rate};
use model::units::{Bytes, Nanos, UnitError};

/// The workload whose runs can be read so.
/// Repeats of a best point that make an answer.
pub const REPEATS: usize = 3;

/// Growth that two doublings of the depth must bring, and how near to the highest rate is near enough.
const REQUEST_GROWTH: f64 = 0.01;
const REQUEST_NEAR: f64 = 0.005;
const BYTE_GROWTH: f64 = 0.03;
const BYTE_NEAR: f64 = 0.01;

/// Which of the two questions a step belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// Small reads a second within a latency.
    Requests,
    /// Bytes of large reads a second.
    Bytes,
}

impl Question {
    /// How its best depth is looked for, among at most so many outstanding.
    pub fn rule(self, most: u32) -> SearchRule {
        match self {
            Self::Requests => SearchRule { most, growth: REQUEST_GROWTH, near: REQUEST_NEAR },
            Self::Bytes => SearchRule { most, growth: BYTE_GROWTH, near: BYTE_NEAR },
        }
    }

    /// What a step brought to it; absent where nothing was measured.
    pub fn reading(self, step: &Step, cap: &LatencyCap) -> Option<DepthMeasurement> {
        let figures = Figures(step);
        let rate = match self {
            Self::Requests => figures.value(Metric::Reads)?,
            Self::Bytes => figures.value(Metric::ReadMegabytes)? * 1e6,
        };
        let latency_ns = cap.value_ns(&times(&[step]))?;
        let keeps_limit = self == Self::Bytes || cap.is_kept_by(latency_ns);
        Some(DepthMeasurement { depth: step.load.sessions?, rate, keeps_limit })
    }
}

/// A figure from repeats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Their median.
    pub value: f64,
    /// The least of them.
    pub low: f64,
    /// The highest of them.
    pub high: f64,
    /// How many there are.
    pub runs: usize,
}

impl Estimate {
    fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (low, high) = (*values.first()?, *values.last()?);
        let (upper, lower) = (values[values.len() / 2], values[(values.len() - 1) / 2]);
        Some(Self { value: f64::midpoint(upper, lower), low, high, runs: values.len() })
    }

    /// The distance between the least and the highest, as a share of the value; 0 for one run alone.
    pub fn spread(&self) -> f64 {
        if self.value > 0.0 { (self.high - self.low) / self.value } else { 0.0 }
    }
}

/// The answer to one question.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibrated {
    /// Length of a request.
    pub request: Bytes,
    /// Requests outstanding.
    pub depth: u32,
    /// Requests or bytes per second.
    pub rate: Estimate,
    /// Mean latency over the repeats together.
    pub mean: Nanos,
    /// 99th percentile of it.
    pub p99: Nanos,
    /// Labels of the steps that it comes from.
    pub steps: Vec<String>,
    /// Why the rate is no higher.
    pub stopped: Stopped,
}

/// The answers of a calibration.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// The latency limit.
    pub cap: LatencyCap,
    /// Most reads a second within it; absent if not even one request at a time keeps it, or nothing was measured.
    pub max_iops: Option<Calibrated>,
    /// Most bytes a second; absent if nothing was measured.
    pub max_bytes: Option<Calibrated>,
    /// How far the answers can be trusted.
    pub confidence: CalibrationConfidence,
}

impl Calibration {
    /// What a run answers; `None` for a run of another workload.
    pub fn of(run: &Run) -> Option<Self> {
        let Load::Calibrate(load) = &run.load else { return None };
        let cap = load.max_latency.parse().ok()?;
        let [max_iops, max_bytes] =
            [Question::Requests, Question::Bytes].map(|question| answer(run, load, question, &cap));
        let confidence = CalibrationConfidence::of(run, [&max_iops, &max_bytes]);
        Some(Self { cap, max_iops, max_bytes, confidence })
    }
}

/// The steps of one depth that count: its repeats, or the first reading where there are none.
fn counted<'a, 's>(steps: &'a [&'s Step]) -> &'a [&'s Step] {
    if steps.len() > 1 { &steps[1..] } else { steps }
}

fn answer(run: &Run, load: &CalibrateLoad, question: Question, cap: &LatencyCap) -> Option<Calibrated> {
    let (size, most) = match question {
        Question::Requests => (load.small, load.max_small),
        Question::Bytes => (load.large, load.max_large),
    };
    let mut depths: BTreeMap<u32, Vec<&Step>> = BTreeMap::new();
    let whole = measured(run).filter(|step| step.outcome == Outcome::Completed);
    let is_of_size = |step: &&Step| matches!(step.level, Some(Level::Calibrate(level)) if level.block == size);
    for step in whole.filter(is_of_size) {
        if let Some(depth) = step.load.sessions {
            depths.entry(depth).or_default().push(step);
        }
    }
    let mut search = DepthSearch::new(question.rule(most));
    for (depth, steps) in &depths {
        let repeats = counted(steps);
        let Some(Estimate { value: rate, .. }) = Estimate::of(rates(question, repeats, cap)) else { continue };
        search.record(DepthMeasurement { depth: *depth, rate, keeps_limit: keeps_limit(question, repeats, cap) });
    }
    let settled = repeated(&depths, question, cap);
    let depth = settled.or_else(|| search.best().map(|best| best.depth))?;
    let steps = counted(&depths[&depth]);
    let times = times(steps);
    Some(Calibrated {
        request: size.into(),
        depth,
        rate: Estimate::of(rates(question, steps, cap))?,
        mean: Nanos(times.mean_ns()?.round() as u64),
        p99: Nanos(times.quantile_ns(0.99)?),
        steps: steps.iter().map(|step| step.label.clone()).collect(),
        stopped: stopped(&search, settled, depths.keys().next_back().copied()),
    })
}

/// Why the rate is no higher. Repeats differ from the first readings, by which the search was led; once a best depth has
/// been repeated, what they would still make it look for is no search cut short.
fn stopped(search: &DepthSearch, settled: Option<u32>, deepest: Option<u32>) -> Stopped {
    match (search.stopped(), settled, deepest) {
        (Stopped::CutShort, Some(settled), Some(deepest)) if deepest > settled => Stopped::RateFlat,
        (Stopped::CutShort, Some(_), _) => Stopped::MostOutstanding,
        (stopped, ..) => stopped,
    }
}

/// The depth whose repeats answer the question: the fastest of those that were repeated often enough.
fn repeated(depths: &BTreeMap<u32, Vec<&Step>>, question: Question, cap: &LatencyCap) -> Option<u32> {
    depths
        .iter()
        .map(|(depth, steps)| (*depth, counted(steps)))
        .filter(|(_, steps)| steps.len() >= REPEATS && keeps_limit(question, steps, cap))
        .filter_map(|(depth, steps)| Some((depth, Estimate::of(rates(question, steps, cap))?.value)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(depth, _)| depth)
}

/// Whether the median of the repeats keeps the limit.
fn keeps_limit(question: Question, steps: &[&Step], cap: &LatencyCap) -> bool {
    let latencies = steps.iter().filter_map(|step| cap.value_ns(&times(&[step]))).collect();
    question == Question::Bytes || Estimate::of(latencies).is_some_and(|latency| cap.is_kept_by(latency.value))
}

fn rates(question: Question, steps: &[&Step], cap: &LatencyCap) -> Vec<f64> {
    steps.iter().filter_map(|step| question.reading(step, cap)).map(|reading| reading.rate).collect()
}

/// Latencies of all reads of some steps.
fn times(steps: &[&Step]) -> Histogram {
    let mut all = Histogram::default();
    for operations in steps.iter().flat_map(|step| &step.operations) {
        all.merge(&operations.service);
    }
    all
}

/// How far answers can be trusted.
#[derive(Debug, Clone, PartialEq)]
pub struct CalibrationConfidence {
    /// Repeats that the weaker answer comes from.
    pub repeats: usize,
    /// The largest distance between repeats, as a share of their median.
    pub spread: f64,
    /// How far the rate of single seconds ranged within a repeat, at most, as a share of its mean; absent where no second
    /// was seen.
    pub range_of_seconds: Option<f64>,
    /// Load on the storage in all, first to last step. A burst credit that lasts longer was not seen to end.
    pub watched: Nanos,
    /// What makes the answers doubtful, in sentences.
    pub doubts: Vec<String>,
}

impl CalibrationConfidence {
    fn of(run: &Run, answers: [&Option<Calibrated>; 2]) -> Self {
        let answers: Vec<&Calibrated> = answers.into_iter().flatten().collect();
        let deciding = |label: &String| answers.iter().any(|answer| answer.steps.contains(label));
        let steps: Vec<&Step> = run.steps.iter().filter(|step| deciding(&step.label)).collect();
        let bears = |finding: &Finding| match finding.steps() {
            Some(labels) => labels.iter().any(deciding),
            None => true,
        };
        let weighty =
            |finding: &Finding| finding.severity() == Severity::Doubt || matches!(finding, Finding::CacheTrap(_));
        let doubts =
            analyse(run, &LatencyTarget::default()).into_iter().filter(|finding| weighty(finding) && bears(finding));
        Self {
            repeats: answers.iter().map(|answer| answer.rate.runs).min().unwrap_or(0),
            spread: answers.iter().map(|answer| answer.rate.spread()).fold(0.0, f64::max),
            range_of_seconds: steps.iter().filter_map(|step| range_of_seconds(step)).reduce(f64::max),
            watched: Nanos(
                run.steps
                    .iter()
                    .map(|step| step.window.warmup_ns.saturating_add(step.window.duration_ns))
                    .fold(0, u64::saturating_add),
            ),
            doubts: doubts.map(|finding| finding.sentence()).collect(),
        }
    }

    /// Whether the answers were repeated as often as they should be.
    pub fn is_repeated(&self) -> bool {
        self.repeats >= REPEATS
    }
}

/// Fewer seconds than this have no range worth telling.
const FEWEST_SECONDS: usize = 3;

fn range_of_seconds(step: &Step) -> Option<f64> {
    let rates: Vec<f64> =
        inside(step).filter_map(|second| rate(requests(&second.counters), second.duration_ns)).collect();
    if rates.len() < FEWEST_SECONDS {
        return None;
    }
    let low = rates.iter().copied().reduce(f64::min)?;
    let high = rates.iter().copied().reduce(f64::max)?;
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    (mean > 0.0).then(|| (high - low) / mean)
}

/// Which latency is held against the limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Statistic {
    /// The mean, as CALIBRATE_IO does.
    Mean,
    /// A quantile, 0 to 1, both excluded.
    Quantile(f64),
}

/// A limit of the latency of reads: `10ms` or `mean=10ms` for their mean, `p99=10ms` for a quantile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyCap {
    /// Which latency.
    pub statistic: Statistic,
    /// The most that it may be.
    pub limit: Nanos,
}

impl LatencyCap {
    /// The latency in nanoseconds that is held against the limit; absent where nothing was read.
    pub fn value_ns(&self, times: &Histogram) -> Option<f64> {
        match self.statistic {
            Statistic::Mean => times.mean_ns(),
            Statistic::Quantile(quantile) => times.quantile_ns(quantile).map(|ns| ns as f64),
        }
    }

    /// Whether so many nanoseconds are within the limit.
    pub fn is_kept_by(&self, ns: f64) -> bool {
        ns <= self.limit.0 as f64
    }

    /// The statistic as users write it.
    pub fn name(&self) -> String {
        match self.statistic {
            Statistic::Mean => "mean".to_owned(),
            Statistic::Quantile(quantile) => {
                LatencyTarget { quantile, limit: self.limit, ..LatencyTarget::default() }.quantile_name()
            }
        }
    }
}

impl Default for LatencyCap {
    fn default() -> Self {
        Self { statistic: Statistic::Mean, limit: Nanos::millis(10) }
    }
}

impl FromStr for LatencyCap {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = |reason| UnitError {
            input: text.to_owned(),
            wanted: "a latency limit such as `10ms` (mean) or `p99=10ms`",
            reason,
        };
        let trimmed = text.trim();
        let mean = |words: &str| {
            let limit = latency(words).ok_or_else(|| bad("its time is not a number with a unit"))?;
            Ok(Self { statistic: Statistic::Mean, limit })
        };
        let cap = match trimmed.split_once('=') {
            None => mean(trimmed)?,
            Some((name, limit)) if name.trim().eq_ignore_ascii_case("mean") => mean(limit)?,
            Some(_) => {
                let LatencyTarget { subject, quantile, limit, .. } = trimmed.parse()?;
                if subject.is_some() {
                    return Err(bad("only the latency of the reads themselves is judged"));
                }
                Self { statistic: Statistic::Quantile(quantile), limit }
            }
        };
        if cap.limit == Nanos(0) { Err(bad("no request takes no time")) } else { Ok(cap) }
    }
}

/// Written so that it is read back to the nanosecond.
impl fmt::Display for LatencyCap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Nanos(ns) = self.limit;
        let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
        let (scale, unit) = units.into_iter().find(|(scale, _)| ns.is_multiple_of(*scale)).unwrap_or((1, "ns"));
        write!(f, "{}={}{unit}", self.name(), ns / scale)
    }
}

/// What a search looks for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchRule {
    /// Most requests that may be outstanding.
    pub most: u32,
    /// Growth of the rate, as a share, that two doublings together must bring for the search to go on.
    pub growth: f64,
    /// How far below the highest rate, as a share, a smaller depth still counts as reaching it.
    pub near: f64,
}

/// What one depth brought.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DepthMeasurement {
    /// Requests outstanding.
    pub depth: u32,
    /// Requests or bytes per second.
    pub rate: f64,
    /// Whether latency stayed within its limit.
    pub keeps_limit: bool,
}

/// Why a search found no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// More outstanding requests bring no higher rate.
    RateFlat,
    /// The next larger depth that was tried breaks the limit of latency.
    LatencyLimit {
        /// That depth.
        depth: u32,
    },
    /// There may not be more outstanding, and the rate was still growing.
    MostOutstanding,
    /// It did not come to an end.
    CutShort,
}

/// Finds the depth with the highest rate whose latency stays within a limit: doubling until the rate does not grow any more
/// or latency breaks the limit, then halving the distance between the depths that keep and break it.
#[derive(Debug, Clone)]
pub struct DepthSearch {
    rule: SearchRule,
    /// One for each depth, least first.
    readings: Vec<DepthMeasurement>,
}

/// Depths and rates on both sides of the limit that lie so near to each other need no depth between them.
const CLOSE_DEPTHS: u32 = 100;
const CLOSE_RATES: f64 = 0.005;

impl DepthSearch {
    /// Nothing is known yet.
    pub fn new(rule: SearchRule) -> Self {
        Self { rule, readings: Vec::new() }
    }

    /// The depth to try next; `None` when the answer is known.
    pub fn next(&self) -> Option<u32> {
        match (self.keeping().last(), self.breaking(), self.readings.last()) {
            (None, None, _) => Some(1),
            (None, Some(breaking), _) => (breaking.depth > 1).then_some(breaking.depth / 2),
            (Some(keeps), Some(breaks), _) => {
                let between = breaks.depth - keeps.depth;
                let close = between <= (keeps.depth / CLOSE_DEPTHS).max(1);
                let same_rate = breaks.rate <= keeps.rate * (1.0 + CLOSE_RATES);
                (!close && !same_rate).then_some(keeps.depth + between / 2)
            }
            (Some(keeps), None, _) => {
                let more = keeps.depth.saturating_mul(2).min(self.rule.most);
                (more > keeps.depth && !self.is_flat()).then_some(more)
            }
        }
    }

    /// Takes in what a depth brought; a later reading of a depth replaces the earlier one.
    pub fn record(&mut self, reading: DepthMeasurement) {
        match self.readings.binary_search_by_key(&reading.depth, |known| known.depth) {
            Ok(place) => self.readings[place] = reading,
            Err(place) => self.readings.insert(place, reading),
        }
    }

    /// The least depth that comes near the highest rate within the limit; `None` if no depth keeps it.
    pub fn best(&self) -> Option<DepthMeasurement> {
        let highest = self.keeping().map(|reading| reading.rate).reduce(f64::max)?;
        self.keeping().find(|reading| reading.rate >= highest * (1.0 - self.rule.near)).copied()
    }

    /// Why it ended.
    pub fn stopped(&self) -> Stopped {
        match (self.next(), self.best(), self.breaking()) {
            (Some(_), ..) | (None, None, None) => Stopped::CutShort,
            (None, Some(best), Some(breaking)) if breaking.rate <= best.rate * (1.0 + self.rule.growth) => {
                Stopped::RateFlat
            }
            (None, _, Some(DepthMeasurement { depth, .. })) => Stopped::LatencyLimit { depth: *depth },
            // Deeper loops were tried and are no faster.
            (None, Some(best), None) if self.readings.last().is_some_and(|last| last.depth > best.depth) => {
                Stopped::RateFlat
            }
            (None, Some(_), None) => Stopped::MostOutstanding,
        }
    }

    /// The least depth that breaks the limit. What lies above is not looked at, whatever it brought.
    fn breaking(&self) -> Option<&DepthMeasurement> {
        self.readings.iter().find(|reading| !reading.keeps_limit)
    }

    fn keeping(&self) -> impl Iterator<Item = &DepthMeasurement> {
        self.readings.iter().take_while(|reading| reading.keeps_limit)
    }

    /// Whether the last two depths brought no growth. One alone may have had bad luck.
    fn is_flat(&self) -> bool {
        let rates: Vec<f64> = self.keeping().map(|reading| reading.rate).collect();
        let Some((earlier, last)) = rates.split_at_checked(rates.len().saturating_sub(2)) else { return false };
        let highest = |rates: &[f64]| rates.iter().copied().reduce(f64::max);
        match (highest(earlier), highest(last)) {
            (Some(before), Some(after)) => after <= before * (1.0 + self.rule.growth),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod depth_search_tests {
    use proptest::prelude::*;

    use super::*;

    const RULE: SearchRule = SearchRule { most: 1024, growth: 0.01, near: 0.005 };

    /// Storage that serves so many requests a second at most, each in a second's fraction.
    fn search(cap: f64, service_s: f64, limit_s: f64, rule: SearchRule) -> DepthSearch {
        let mut search = DepthSearch::new(rule);
        for _ in 0..40 {
            let Some(depth) = search.next() else { return search };
            let rate = (f64::from(depth) / service_s).min(cap);
            search.record(DepthMeasurement {
                depth,
                rate,
                keeps_limit: f64::from(depth) / rate <= limit_s * 1.000_001,
            });
        }
        panic!("the search does not end");
    }

    #[test]
    fn a_cap_is_found_at_the_least_depth_that_reaches_it() {
        let search = search(5_000.0, 0.000_5, 0.01, RULE);
        let best = search.best().unwrap();
        assert_eq!((best.depth, best.rate), (4, 5_000.0));
        assert_eq!(search.stopped(), Stopped::RateFlat);
    }

    #[test]
    fn where_nothing_keeps_the_limit_there_is_no_answer() {
        let search = search(5_000.0, 0.02, 0.01, RULE);
        assert_eq!(search.best(), None);
        assert_eq!(search.stopped(), Stopped::LatencyLimit { depth: 1 });
    }

    #[test]
    fn what_still_grows_at_the_most_that_may_be_outstanding_is_no_ceiling() {
        let search = search(1e9, 0.000_5, 0.01, RULE);
        assert_eq!((search.best().unwrap().depth, search.stopped()), (1024, Stopped::MostOutstanding));
    }

    #[test]
    fn a_reading_that_is_taken_back_brings_the_next_one_below() {
        let mut search = search(5_000.0, 0.000_5, 0.01, RULE);
        search.record(DepthMeasurement { depth: 4, rate: 5_000.0, keeps_limit: false });
        assert_eq!(search.best().unwrap().depth, 2);
    }

    proptest! {
        #[test]
        fn the_highest_rate_within_the_limit_is_found(
            cap in 500.0..200_000.0_f64, service_us in 50.0..20_000.0_f64, limit_ms in 1.0..40.0_f64,
        ) {
            let (service_s, limit_s) = (service_us / 1e6, limit_ms / 1e3);
            let rule = SearchRule { most: 1 << 20, ..RULE };
            let found = search(cap, service_s, limit_s, rule).best().map(|best| best.rate);
            // The deepest loop within the limit; one request at a time is the least there is.
            let depth = (cap * limit_s * 1.000_001).floor();
            let planted = if service_s > limit_s * 1.000_001 || depth < 1.0 {
                None
            } else {
                Some(cap.min(depth / service_s))
            };
            match (found, planted) {
                (Some(found), Some(planted)) => prop_assert!((found / planted - 1.0).abs() < 0.011, "{found} {planted}"),
                (found, planted) => prop_assert!(found.is_none() && planted.is_none(), "{found:?} {planted:?}"),
            }
        }
    }
}
