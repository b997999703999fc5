//! Levels of programs that report rates in place of counts: ORION's points and the answers of CALIBRATE_IO. What they do not report
//! stays unknown; of latency they report at most a mean and the longest one.

use super::Rates;
use crate::Figures;
use model::record::Level;
use model::record::OrionLevel;
use model::record::Workload;
use model::record::{Metric, Run, Step};

/// What is reported on one level.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ReportedDemand {
    /// What it is called, where that is not the step's label.
    pub(super) label: Option<&'static str>,
    /// Its rates.
    pub(super) rates: Rates,
    /// Mean time of its requests, in milliseconds.
    pub(super) mean_ms: Option<f64>,
    /// What that mean surely did not exceed.
    pub(super) mean_below_ms: Option<f64>,
    /// The longest time of them.
    pub(super) max_ms: Option<f64>,
}

/// The levels that figures of `step` report; none of a program whose figures are no rates of storage.
pub(super) fn levels(run: &Run, step: &Step) -> Vec<ReportedDemand> {
    match (&run.imported, run.workload()) {
        (Some(_), Workload::Orion) => of_point(run, step).into_iter().collect(),
        (Some(_), Workload::Calibrate) => of_calibration(step),
        _ => Vec::new(),
    }
}

fn figure(step: &Step, metric: Metric) -> Option<f64> {
    Figures(step).reported(metric).filter(|value| value.is_finite() && *value > 0.0)
}

/// A point of ORION. With loads of small and of large requests at once each of its rates is of one of them, so that all requests
/// and all bytes are not known.
fn of_point(run: &Run, step: &Step) -> Option<ReportedDemand> {
    let Some(Level::Orion(OrionLevel { small, large })) = step.level else { return None };
    let writes = write_share(run);
    let none_written = (writes == Some(0.0)).then_some(0.0);
    if small == 0 {
        let megabytes = Figures(step).megabytes_per_s().filter(|rate| *rate > 0.0)?;
        let rates = Rates { megabytes: Some(megabytes), writes: none_written, ..Rates::default() };
        return Some(ReportedDemand { rates, ..ReportedDemand::default() });
    }
    let io = Figures(step).operations_per_s().filter(|rate| *rate > 0.0 && large == 0)?;
    let rates = Rates {
        reads: writes.map(|share| io * (1.0 - share)),
        writes: writes.map(|share| io * share),
        io: Some(io),
        megabytes: run.target.block_bytes.map(|bytes| io * bytes as f64 / 1e6),
        ..Rates::default()
    };
    // Of reads and writes that are timed apart neither is the mean of all.
    let only_reads = none_written.is_some();
    let mean_ms = figure(step, Metric::RequestTime).or_else(|| figure(step, Metric::ReadTime).filter(|_| only_reads));
    Some(ReportedDemand {
        label: None,
        rates,
        mean_ms,
        // By Little's law: no more than `small` requests were outstanding.
        mean_below_ms: mean_ms.or(Some(f64::from(small) / io * 1e3)),
        max_ms: figure(step, Metric::ReadTimeMax).filter(|_| only_reads),
    })
}

/// The share of writes that ORION was asked for: it reports it, or a whole command line has no option for it, which is none.
fn write_share(run: &Run) -> Option<f64> {
    let parameter = run.parameters.get("WRITE_PCT").map(String::as_str);
    let option = || {
        let at = run.command.iter().position(|word| word == "-write");
        let of_command = at.map_or(Some("0"), |at| run.command.get(at + 1).map(String::as_str));
        of_command.filter(|_| !run.command.is_empty())
    };
    let percent = parameter.or_else(option)?.parse::<f64>().ok()?;
    (0.0..=100.0).contains(&percent).then_some(percent / 100.0)
}

/// CALIBRATE_IO reports the most small reads a second with their mean latency, and the most bytes a second of large reads, of which
/// it reports no latency. It only reads, and does not say how large its small reads were.
fn of_calibration(step: &Step) -> Vec<ReportedDemand> {
    let mean_ms = Figures(step).reported(Metric::RequestTime);
    // A whole number of milliseconds may be what is left of nearly one more.
    let below = |ms: f64| if ms.fract() == 0.0 { ms + 1.0 } else { ms };
    let reads = figure(step, Metric::Reads).map(|io| ReportedDemand {
        label: Some("max_iops"),
        rates: Rates { reads: Some(io), writes: Some(0.0), io: Some(io), ..Rates::default() },
        mean_ms: mean_ms.filter(|ms| *ms > 0.0),
        mean_below_ms: mean_ms.map(below),
        max_ms: None,
    });
    let bytes = figure(step, Metric::ReadMegabytes).map(|megabytes| ReportedDemand {
        label: Some("max_mbps"),
        rates: Rates { megabytes: Some(megabytes), writes: Some(0.0), ..Rates::default() },
        ..ReportedDemand::default()
    });
    reads.into_iter().chain(bytes).collect()
}

impl ReportedDemand {
    /// Whether what is reported proves that a share of at least `quantile` of the requests took no longer than `limit_ms`: none took
    /// longer, or by Markov's inequality so few that the others would make the mean larger than it is.
    pub(super) fn proves(&self, quantile: f64, limit_ms: f64) -> bool {
        let by_mean = |mean_ms: f64| mean_ms <= (1.0 - quantile) * limit_ms * (1.0 + 1e-12);
        self.max_ms.is_some_and(|max_ms| max_ms <= limit_ms) || self.mean_below_ms.is_some_and(by_mean)
    }
}
