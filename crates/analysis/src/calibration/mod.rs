//! What CALIBRATE_IO asks, answered from a run of workload `calibrate`: the most small random reads a second within a
//! latency, the most bytes a second, and how sure both are.
//!
//! Each depth was measured once while the best was looked for, and the best ones again. The first reading of a depth is not
//! counted among its repeats: it was chosen for being high, and what is chosen for being high is on average too high.

mod confidence;
mod depth_search;
mod latency_cap;

use model::record::CalibrateLoad;
use model::record::Level;
use model::record::Load;
use std::collections::BTreeMap;

pub use confidence::CalibrationConfidence;
pub use depth_search::{DepthMeasurement, DepthSearch, SearchRule, Stopped};
pub use latency_cap::{LatencyCap, Statistic};

use super::{Figures, measured};
use model::record::{Histogram, Outcome, Run, Step};
use model::units::{Bytes, Nanos};

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
            Self::Requests => figures.physical_reads_per_s()?,
            Self::Bytes => figures.read_megabytes_per_s()? * 1e6,
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

#[cfg(test)]
mod tests;
