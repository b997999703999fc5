//! What fio reports, whichever way it is printed.

use std::collections::BTreeMap;

use super::assemble::LAYER;
use crate::draft::{Began, reported_figure};
use model::record::{Metric, ReportedBucket, ReportedFigure, Timestamp};

/// One start of fio.
#[derive(Debug, Default)]
pub struct Invocation {
    /// Its version, such as `3.36`; empty where that is not reported.
    pub version: String,
    /// The command line, where a shell shows it, secrets left out.
    pub command: Vec<String>,
    /// Options of all jobs, by fio's names.
    pub globals: BTreeMap<String, String>,
    /// Its jobs, as they are listed.
    pub jobs: Vec<Job>,
    /// When it began, or was to have begun by the time that it ran.
    pub began: Option<Began>,
    /// When it printed its results.
    pub ended: Option<Timestamp>,
    /// What it reports on the disks below, in all its time.
    pub disks: Vec<ReportedFigure>,
    /// What it reports on all jobs together.
    pub sums: Vec<ReportedFigure>,
    /// What it said as it was ended by a signal.
    pub signal: Option<String>,
    /// What the user should know.
    pub notes: Vec<String>,
    /// Whether all options that were set are reported, so that the others have fio's defaults.
    pub has_all_options: bool,
}

/// One job, or a group of them that is reported as one.
#[derive(Debug, Default)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// The machine that it ran on, where that is reported.
    pub host: Option<String>,
    /// The number of its group.
    pub group: u64,
    /// Its process.
    pub pid: Option<u64>,
    /// The error that ended it.
    pub failure: Option<String>,
    /// Its code, 0 where there was none.
    pub error: Option<i64>,
    /// Requests that failed.
    pub errors: Option<u64>,
    /// How many processes it sums up, where that is reported.
    pub processes: Option<u64>,
    /// How long its processes ran, all added up, in milliseconds.
    pub processes_ms: Option<f64>,
    /// Its own options, by fio's names; absent where the output has no place for them.
    pub options: Option<BTreeMap<String, String>>,
    /// What it did in each direction in which it did something.
    pub directions: Vec<Direction>,
    /// How many seconds fio had been running when it was printed.
    pub elapsed_s: Option<f64>,
    /// When it began, in milliseconds since 1970.
    pub start_ms: Option<f64>,
    /// All else that is kept, by fio's names.
    pub reported: Vec<ReportedFigure>,
    /// Whether its counts had to be computed from whole requests per second.
    pub counts_from_rate: bool,
    /// Whether the end of its results is missing, so that it may have done more than stands here.
    pub is_partial: bool,
    /// Whether its bytes are rounded to the digits that were printed.
    pub bytes_rounded: bool,
}

impl Job {
    /// Whether it did anything.
    pub fn did_something(&self) -> bool {
        !self.directions.is_empty()
    }

    /// What it did in one direction.
    pub fn direction(&self, way: Way) -> Option<&Direction> {
        self.directions.iter().find(|direction| direction.way == way)
    }
}

/// Which way requests went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Trims (discards).
    Trim,
    /// All of them together: `unified_rw_reporting`.
    Mixed,
    /// `fsync`, `fdatasync` or `sync_file_range`.
    Sync,
}

impl Way {
    /// fio's name of it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
            Self::Mixed => "mixed",
            Self::Sync => "sync",
        }
    }

    /// Its place in lists of reads, writes and trims.
    pub const fn place(self) -> Option<usize> {
        match self {
            Self::Read => Some(0),
            Self::Write => Some(1),
            Self::Trim => Some(2),
            Self::Mixed | Self::Sync => None,
        }
    }
}

/// What a job did in one direction.
#[derive(Debug)]
pub struct Direction {
    /// Which.
    pub way: Way,
    /// Requests.
    pub requests: Option<u64>,
    /// Bytes.
    pub bytes: Option<u64>,
    /// How long it took, in milliseconds.
    pub runtime_ms: Option<f64>,
    /// How long each request took.
    pub latency: Option<Latency>,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// From submission to completion: `clat`.
    Completion,
    /// Submission and completion: `lat`.
    Total,
}

/// How long requests took.
#[derive(Debug, Default, Clone)]
pub struct Latency {
    /// What is measured; absent of syncs, of which fio has one measure.
    pub measure: Option<Measure>,
    /// How many were measured, where that is reported.
    pub samples: Option<u64>,
    /// Mean, in nanoseconds.
    pub mean_ns: Option<f64>,
    /// Shortest.
    pub min_ns: Option<u64>,
    /// Longest.
    pub max_ns: Option<u64>,
    /// Percentages, in rising order, and the duration in nanoseconds that each did not exceed.
    pub percentiles: Vec<(f64, f64)>,
    /// Counts, where fio reports them.
    pub bins: Vec<ReportedBucket>,
    /// Shares of durations in percent, in buckets as wide as fio's tables of latency have them.
    pub shares: Vec<(u64, Option<u64>, f64)>,
}

impl Latency {
    /// Whether it says how durations are distributed.
    pub fn is_distribution(&self) -> bool {
        !self.percentiles.is_empty() || !self.bins.is_empty()
    }
}

/// A figure of one direction, in `unit`, of which one is so many bytes where it is one of bytes.
pub fn figure_of(way: Way, figure: &str, (unit, bytes): (&str, f64), value: f64) -> ReportedFigure {
    let metric = match (way, figure) {
        (Way::Read, "iops") => Some((Metric::Reads, 1.0)),
        (Way::Write, "iops") => Some((Metric::Writes, 1.0)),
        (Way::Read, "bw") => Some((Metric::ReadMegabytes, bytes / 1e6)),
        (Way::Write, "bw") => Some((Metric::WriteMegabytes, bytes / 1e6)),
        _ => None,
    };
    let reported = reported_figure(LAYER, format!("{} {figure}", way.name()), unit, value);
    match metric {
        Some((metric, factor)) => reported.is(metric, factor),
        None => reported,
    }
}
