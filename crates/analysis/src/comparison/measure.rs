//! Which figures are compared, and where each is read from.

use model::record::{Better, CONNECT, Histogram, Interval, Metric, MetricUnit, Run, Step, Workload};
use std::borrow::Cow;
use std::fmt;

use super::change::{Comparison, Evidence};
use super::{Durations, Sample};
use crate::{
    BusiestDevice, FailureCost, Figures, LatencyTarget, Pause, SINGLE_BLOCK_READ, Subject, Vocabulary, counted_per_s,
    is_on_server, is_on_servers, operations_are_requests, steadiness, wait,
};
use model::units::Nanos;

/// Quantiles that are compared where there are enough durations for them.
const QUANTILES: [f64; 3] = [0.5, 0.99, 0.999];
/// Waits by which databases are compared beside single-block reads: of many blocks at once, and of the log.
const OTHER_WAITS: [&str; 4] =
    ["db file scattered read", "direct path read", "log file sync", "log file parallel write"];
/// From so many repeats on each side on, they are the evidence.
const REPEATS: usize = 3;

/// A figure of a load.
#[derive(Debug, Clone, PartialEq)]
pub enum Measure {
    /// Operations, or requests, finished per second.
    Operations(Vocabulary),
    /// What is counted, of the catalogue.
    Rate(Metric),
    /// Mean of a time, in nanoseconds.
    Mean(Subject),
    /// A quantile (0 to 1) of a time, in nanoseconds.
    Quantile(Subject, f64),
    /// What the device that was busiest did.
    Busiest(Metric),
    /// What failures cost, in nanoseconds: of fewer than three the median, of which nothing says how much it scatters.
    Failure(FailureTime),
}

/// A time that a failure cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureTime {
    /// Without a completed operation.
    Pause,
    /// Of the operation of the window that waited longest.
    Longest,
    /// From the failure until seconds are as before.
    Recovery,
    /// No time: how many operations failed, or were not sent or ended.
    Lost,
}

impl FailureTime {
    const ALL: [Self; 4] = [Self::Pause, Self::Longest, Self::Recovery, Self::Lost];

    fn of(self, cost: &FailureCost) -> Option<u64> {
        match (self, cost.pause) {
            (Self::Pause, Pause::Seen { length_ns, .. } | Pause::AtLeast { length_ns }) => Some(length_ns),
            // None was seen, and one shorter than a second may have been.
            (Self::Pause, Pause::None) => None,
            (Self::Longest, _) => cost.longest_ns,
            (Self::Recovery, _) => cost.as_before_ns.map(|at_ns| at_ns.saturating_sub(cost.failed_ns)),
            (Self::Lost, _) => Some(cost.lost()),
        }
    }
}

/// What is compared of a machine that was only looked at.
const OF_DEVICES: [Metric; 6] = [
    Metric::DeviceReads,
    Metric::DeviceWrites,
    Metric::DeviceReadMegabytes,
    Metric::DeviceWriteMegabytes,
    Metric::DeviceAwait,
    Metric::DeviceBusy,
];

/// In the unit of its measure.
fn of_device(metric: Metric, device: &BusiestDevice<'_>) -> Option<f64> {
    match metric {
        Metric::DeviceAwait => device.await_ms().map(|ms| ms * 1e6),
        other => device.value(other),
    }
}

/// What the figures of a measure are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureUnit {
    /// So many a second.
    PerSecond,
    /// Nanoseconds.
    Nanoseconds,
    /// Percent.
    Percent,
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operations(words) => write!(f, "{}/s", words.work()),
            Self::Rate(metric) => f.write_str(metric.heading()),
            Self::Mean(subject) => write!(f, "mean of {subject}"),
            Self::Quantile(subject, quantile) => f.write_str(&judged(subject, *quantile).what()),
            Self::Busiest(metric) => write!(f, "{} of the busiest device", metric.heading()),
            Self::Failure(FailureTime::Pause) => f.write_str("pause of the failure"),
            Self::Failure(FailureTime::Longest) => f.write_str("longest wait of the window"),
            Self::Failure(FailureTime::Recovery) => f.write_str("from failure until as before"),
            Self::Failure(FailureTime::Lost) => f.write_str("operations lost by the failure"),
        }
    }
}

/// A quantile as latency targets write and judge it.
fn judged(subject: &Subject, quantile: f64) -> LatencyTarget {
    LatencyTarget { subject: Some(subject.clone()), quantile, limit: Nanos(0), errors: None }
}

/// One figure of one load in both runs.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedFigure {
    /// Which figure.
    pub measure: Measure,
    /// The baseline's and the other run's, per second or in nanoseconds; absent where a run does not report. Of repeats the
    /// geometric mean where they are the evidence, else the figure of all of them together.
    pub values: [Option<f64>; 2],
    /// Absent where one of the two does not report, or the baseline's is zero.
    pub comparison: Option<Comparison>,
}

/// A figure before it is known how many others are compared with it.
pub(super) struct Prepared {
    pub(super) measure: Measure,
    values: [Option<f64>; 2],
    /// Of all repeats of a side together.
    whole: [Option<f64>; 2],
    samples: Option<([Sample; 2], Evidence)>,
}

impl Prepared {
    /// Whether the comparison will have an interval.
    pub(super) fn has_interval(&self) -> bool {
        self.samples.is_some() && self.values[0].is_some_and(|value| value > 0.0)
    }

    /// The figure with an interval that misses the true change in a share `error_rate` of all comparisons.
    pub(super) fn finish(self, threshold: f64, error_rate: f64) -> ComparedFigure {
        let Self { measure, values, samples, .. } = self;
        let both = values[0].zip(values[1]);
        let plain = both.and_then(|(a, b)| Comparison::without_interval([a, b], threshold, measure.better()));
        let comparison = plain.map(|plain| match &samples {
            Some((samples, evidence)) => plain.with_interval(samples, *evidence, error_rate),
            None => plain,
        });
        ComparedFigure { measure, values, comparison }
    }
}

impl Measure {
    /// Which way it gets better.
    pub fn better(&self) -> Better {
        self.metric().map_or(Better::Less, |metric| metric.better().unwrap_or(Better::More))
    }

    /// What its figures are in.
    pub fn unit(&self) -> FigureUnit {
        match self.metric().map(Metric::unit) {
            None if *self == Self::Failure(FailureTime::Lost) => FigureUnit::PerSecond,
            None | Some(MetricUnit::Milliseconds) => FigureUnit::Nanoseconds,
            Some(MetricUnit::Percent) => FigureUnit::Percent,
            Some(_) => FigureUnit::PerSecond,
        }
    }

    /// The figures of a load that both runs have. In an open loop the rate is what was asked, so it is no result.
    pub(super) fn of_load(runs: [&Run; 2], sides: &[Vec<&Step>; 2]) -> Vec<Prepared> {
        let steps = || sides.iter().flatten();
        if runs.iter().all(|run| run.workload() == Workload::Host) {
            let of_sides = |metric| {
                let of_side = |side: &Vec<&Step>| of_device(metric, &BusiestDevice::of(side.iter().copied())?);
                let values = sides.each_ref().map(of_side);
                Prepared { measure: Self::Busiest(metric), values, whole: values, samples: None }
            };
            let known = OF_DEVICES.into_iter().map(of_sides);
            return known.filter(|prepared| prepared.values.iter().any(Option::is_some)).collect();
        }
        let costs = [0, 1].map(|side: usize| {
            let place = |step: &&Step| runs[side].steps.iter().position(|one| one.index == step.index);
            let of_step = |step: &&Step| FailureCost::of_step(runs[side], place(step)?);
            sides[side].iter().map(of_step).collect::<Option<Vec<FailureCost>>>()
        });
        if let [Some(one), Some(other)] = costs {
            // Percentiles of what comes before, during and after it together are those of none of them.
            let of = |time: FailureTime| Self::Failure(time).of_failures(time, [&one, &other]);
            let times = FailureTime::ALL.into_iter().map(of);
            return times.filter(|prepared| prepared.values.iter().any(Option::is_some)).collect();
        }
        let is_closed = steps().all(|step| step.load.rate_operations_per_s.is_none());
        let on_servers = runs.iter().any(|run| is_on_servers(run));
        let (mut measures, mut other_waits) = (Vec::new(), Vec::new());
        if is_closed {
            measures.push(Self::Operations(Vocabulary::of(runs[0])));
            if on_servers {
                measures.push(Self::Rate(Metric::BufferMisses));
            }
            if !runs.iter().any(|run| operations_are_requests(run)) {
                measures.push(Self::Rate(Metric::Reads));
                // What another program knows of a database it mostly reports in full, and of one window each.
                if runs.iter().any(|run| run.imported.is_some()) {
                    let counts_no_requests = |step: &&Step| Figures(step).value(Metric::Reads).is_none();
                    measures.extend(steps().any(counts_no_requests).then_some(Self::Rate(Metric::BlocksRead)));
                    measures.extend([Metric::Writes, Metric::Megabytes, Metric::RedoMegabytes].map(Self::Rate));
                    other_waits.extend(OTHER_WAITS.map(|event| Subject::Event(event.to_owned())));
                }
            }
        }
        let seconds = sides.each_ref().map(|side| seconds_of(side));
        let mut subjects = vec![Subject::Response(None)];
        if is_closed
            && runs.iter().all(|run| run.workload().is_judged_by_reads())
            && !steps().any(|step| is_on_server(step))
        {
            subjects.push(Subject::Event(SINGLE_BLOCK_READ.to_owned()));
        }
        if steps().any(|step| wait(step, CONNECT).is_some()) {
            subjects.push(Subject::Event(CONNECT.to_owned()));
        }
        let with_quantiles = subjects.len();
        subjects.extend(other_waits);
        let read: Vec<Read> = subjects.into_iter().map(|subject| Read::of(subject, sides, &seconds)).collect();
        for (place, Read { subject, whole, .. }) in read.iter().enumerate() {
            measures.push(Self::Mean(subject.clone()));
            if place >= with_quantiles {
                continue;
            }
            let enough = |quantile: &f64| {
                let wanted = judged(subject, *quantile).durations_wanted();
                whole.iter().all(|times| times.as_ref().is_some_and(|times| times.count() >= wanted))
            };
            let quantiles = QUANTILES.into_iter().filter(enough);
            measures.extend(quantiles.map(|quantile| Self::Quantile(subject.clone(), quantile)));
        }
        let prepared = measures.into_iter().map(|measure| {
            let read = read.iter().find(|read| measure.subject() == Some(&read.subject));
            measure.prepare(sides, &seconds, read)
        });
        prepared.filter(|prepared| prepared.values.iter().any(|value| value.is_some_and(|value| value > 0.0))).collect()
    }

    /// The figures of a load above zero, of all repeats together. Not the operations that failures lost, of which none is the usual number.
    pub(crate) fn values_of_load(run: &Run, steps: &[&Step]) -> Vec<(Self, f64)> {
        let known = Self::of_load([run, run], &[steps.to_vec(), steps.to_vec()]).into_iter();
        let above_zero = |value: Option<f64>| value.filter(|value| *value > 0.0);
        let is_lost = |measure: &Self| *measure == Self::Failure(FailureTime::Lost);
        known
            .filter_map(|one| Some((one.measure, above_zero(one.whole[1])?)))
            .filter(|(one, _)| !is_lost(one))
            .collect()
    }

    /// A time that failures cost: of several the geometric mean, with their scatter.
    fn of_failures(self, time: FailureTime, costs: [&[FailureCost]; 2]) -> Prepared {
        let times =
            costs.map(|costs| costs.iter().map(|cost| Some(time.of(cost)? as f64)).collect::<Option<Vec<f64>>>());
        let sample = |times: &Option<Vec<f64>>| {
            let times = times.as_ref().filter(|times| times.len() >= REPEATS)?;
            Sample::of_repeats(times, 1.0 / times[0].max(1.0))
        };
        let samples = match times.each_ref().map(sample) {
            [Some(one), Some(other)] => Some(([one, other], Evidence::Repeats(costs[0].len(), costs[1].len()))),
            _ => None,
        };
        let middle = |times: &Option<Vec<f64>>| {
            let mut times = times.clone()?;
            times.sort_by(f64::total_cmp);
            times.get(times.len() / 2).copied()
        };
        let values = match &samples {
            Some(([a, b], _)) => [Some(a.value), Some(b.value)],
            None => times.each_ref().map(middle),
        };
        Prepared { measure: self, values, whole: values, samples }
    }

    /// The time that it is a figure of.
    fn subject(&self) -> Option<&Subject> {
        match self {
            Self::Mean(subject) | Self::Quantile(subject, _) => Some(subject),
            _ => None,
        }
    }

    /// What it is in the catalogue; absent of times, which are of a subject.
    pub fn metric(&self) -> Option<Metric> {
        match self {
            Self::Operations(_) => Some(Metric::Operations),
            Self::Rate(metric) | Self::Busiest(metric) => Some(*metric),
            Self::Mean(_) | Self::Quantile(..) | Self::Failure(_) => None,
        }
    }

    /// How many of what is counted are one of its unit.
    fn scale(&self) -> f64 {
        self.metric().map_or(1.0, Metric::scale)
    }

    fn prepare(self, sides: &[Vec<&Step>; 2], seconds: &[Vec<&Interval>; 2], read: Option<&Read>) -> Prepared {
        let whole = [0, 1].map(|side: usize| match (self.subject(), read) {
            (Some(_), Some(read)) => read.whole[side].as_ref().and_then(|times| self.of_times(times)),
            _ => self.of_rates(&sides[side]),
        });
        let repeated = || {
            let [a, b] = [0, 1].map(|side: usize| self.of_repeats(&sides[side]));
            Some(([a?, b?], Evidence::Repeats(sides[0].len(), sides[1].len())))
        };
        let by_seconds = || {
            let [a, b] = [0, 1].map(|side: usize| {
                let durations = read.and_then(|read| read.seconds[side].as_ref());
                self.of_seconds(whole[side]?, &sides[side], &seconds[side], durations)
            });
            Some(([a?, b?], Evidence::Seconds(seconds[0].len(), seconds[1].len())))
        };
        let samples = repeated().or_else(by_seconds);
        let values = samples.as_ref().map_or(whole, |([a, b], _)| [Some(a.value), Some(b.value)]);
        Prepared { measure: self, values, whole, samples }
    }

    fn of_times(&self, times: &Histogram) -> Option<f64> {
        match self {
            // The edge of a wide bucket that another program reported is no percentile to compare.
            Self::Quantile(_, quantile) => {
                times.quantile_ns(*quantile).filter(|_| times.knows_quantile(*quantile)).map(|ns| ns as f64)
            }
            _ => times.mean_ns(),
        }
    }

    /// The rate of all steps of a side together.
    fn of_rates(&self, steps: &[&Step]) -> Option<f64> {
        let seconds = |step: &Step| Figures(step).seconds();
        let counts: Option<f64> = steps.iter().map(|step| Some(self.rate(step)? * seconds(step))).sum();
        let length: f64 = steps.iter().map(|step| seconds(step)).sum();
        (length > 0.0).then_some(counts? / length)
    }

    fn of_step(&self, step: &Step) -> Option<f64> {
        let value = match self.subject() {
            Some(subject) => self.of_times(&*subject.times(step)?),
            None => self.rate(step),
        };
        value.filter(|value| *value > 0.0)
    }

    fn rate(&self, step: &Step) -> Option<f64> {
        Figures(step).value(self.metric()?)
    }

    fn of_repeats(&self, steps: &[&Step]) -> Option<Sample> {
        if steps.len() < REPEATS {
            return None;
        }
        let values: Vec<f64> = steps.iter().map(|step| self.of_step(step)).collect::<Option<_>>()?;
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Sample::of_repeats(&values, self.resolution(mean, steps))
    }

    fn of_seconds(
        &self,
        value: f64,
        steps: &[&Step],
        seconds: &[&Interval],
        durations: Option<&Durations>,
    ) -> Option<Sample> {
        let counted = |second: &&Interval| match self.subject() {
            Some(subject) => match subject.times_of_interval(second) {
                Some(times) => Some((times.total_ns()? as f64, times.count() as f64)),
                // An event that did not happen in a second is not among its waits.
                None => matches!(subject, Subject::Event(_)).then_some((0.0, 0.0)),
            },
            None => {
                let ns = second.duration_ns;
                let per_s =
                    counted_per_s(&second.counters, &second.servers, ns, |counters| self.metric()?.count(counters))?;
                Some((per_s / self.scale() * ns as f64 / 1e9, ns as f64 / 1e9))
            }
        };
        match self {
            Self::Quantile(_, quantile) => Sample::of_quantile(value, durations?, *quantile),
            _ => {
                let seconds: Vec<(f64, f64)> = seconds.iter().map(counted).collect::<Option<_>>()?;
                Sample::of_ratio(value, &seconds, self.resolution(value, steps))
            }
        }
    }

    /// The share of a figure that one count more at the edge of a window is, or one nanosecond; of a quantile one bucket.
    fn resolution(&self, value: f64, steps: &[&Step]) -> f64 {
        match self {
            Self::Quantile(..) => super::BUCKET,
            Self::Mean(_) => 1.0 / value.max(1.0),
            _ => {
                let length: f64 = steps.iter().map(|step| Figures(step).seconds()).sum();
                1.0 / (value * self.scale() * length).max(1.0)
            }
        }
    }
}

/// One kind of time, of both sides.
struct Read {
    subject: Subject,
    /// Of all steps of a side together; absent where one of them does not report.
    whole: [Option<Histogram>; 2],
    /// Of each second; absent where seconds are not kept.
    seconds: [Option<Durations>; 2],
}

impl Read {
    fn of(subject: Subject, sides: &[Vec<&Step>; 2], seconds: &[Vec<&Interval>; 2]) -> Self {
        let whole = sides.each_ref().map(|side| times(&subject, side));
        let seconds = seconds.each_ref().map(|side| {
            let by_second: Vec<_> = side.iter().map(|second| subject.times_of_interval(second)).collect();
            Durations::of(&by_second)
        });
        Self { subject, whole, seconds }
    }
}

/// Durations of all steps of a side together; absent where one of them does not report.
fn times(subject: &Subject, steps: &[&Step]) -> Option<Histogram> {
    let mut all = Histogram::default();
    for step in steps {
        let times: Cow<'_, Histogram> = subject.times(step)?;
        all.merge(&times);
    }
    (all.count() > 0).then_some(all)
}

/// Whole seconds inside the windows, one step after the other.
fn seconds_of<'a>(steps: &[&'a Step]) -> Vec<&'a Interval> {
    steps.iter().flat_map(|step| steadiness::seconds_inside(step)).collect()
}
