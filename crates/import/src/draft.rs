//! A run in the making.

use model::record::Workload;
use std::collections::BTreeMap;

use model::record::{Environment, Histogram, OperationStats, Outcome, ReportedFigure, Step, Target, Timestamp, Tool};

/// When something began or ended, and what that was reported in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Began {
    /// Universal time, or a time with its zone.
    Utc(Timestamp),
    /// Time of the clock on the wall, written as if it were UTC.
    Wall(Timestamp),
}

impl Began {
    /// The time of a clock on the wall in a zone that is not reported.
    pub fn wall(time: jiff::civil::DateTime) -> Option<Self> {
        Some(Self::Wall(Timestamp(time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())))
    }

    /// Seconds since 1970 in UTC.
    pub fn epoch_s(seconds: i64) -> Option<Self> {
        jiff::Timestamp::from_second(seconds).ok().map(|time| Self::Utc(Timestamp(time)))
    }

    /// The instant, as it is written.
    pub fn timestamp(self) -> Timestamp {
        match self {
            Self::Utc(timestamp) | Self::Wall(timestamp) => timestamp,
        }
    }
}

/// A run in the making: what an importer read, before it has an id and a place. Everything that the file does not report stays
/// as it is here.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    /// As [`model::record::Run::workload`] has it.
    pub workload: Workload,
    /// What it was, in few words, such as `P30DB snapshots 171 to 172` or the name of a job; a run's name if nothing else is.
    pub title: String,
    /// The program that measured it; its version is empty where that is not reported.
    pub program: &'static str,
    /// Its version.
    pub version: String,
    /// The command line, where the file has it, secrets left out.
    pub command: Vec<String>,
    /// When it began.
    pub began: Option<Began>,
    /// When it ended; in the same clock.
    pub ended: Option<Timestamp>,
    /// What was set, by the names of the program.
    pub parameters: BTreeMap<String, String>,
    /// What its name reports.
    pub tags: BTreeMap<String, String>,
    /// Where load landed.
    pub target: Target,
    /// The machine that was measured.
    pub environment: Environment,
    /// What the user should know to read it rightly.
    pub notes: Vec<String>,
    /// Load levels, at least one.
    pub steps: Vec<Step>,
}

impl Draft {
    /// An empty one.
    pub fn new(workload: Workload, program: &'static str, title: impl Into<String>) -> Self {
        Self { workload, program, title: title.into(), ..Self::default() }
    }

    /// Its program with its version.
    pub fn tool(&self) -> Tool {
        Tool { name: self.program.to_owned(), version: self.version.clone() }
    }
}

/// A step of which nothing is known yet; `duration_ns` is 0 where the length of its window is not reported.
pub(super) fn step(index: usize, label: impl Into<String>, duration_ns: u64) -> Step {
    let mut step = Step::new(index as u32, label);
    step.window.duration_ns = duration_ns;
    step.outcome = Outcome::Completed;
    step
}

/// Operations of one kind, of which no more is known than their times: as many as were timed, and none failed.
pub(super) fn operations(kind: impl Into<String>, service: Histogram, response: Histogram) -> OperationStats {
    let (kind, count) = (kind.into(), response.count());
    let failed = Histogram::default();
    OperationStats { kind, count, errors: 0, block_touches: 0, service, response, failed, transactions: None }
}

/// A figure by the name that its program uses; `layer` as [`ReportedFigure::layer`] has it.
pub(super) fn reported_figure(layer: &str, name: impl Into<String>, unit: &str, value: f64) -> ReportedFigure {
    ReportedFigure::new(layer, name, unit, value)
}

/// A rate over a time as a count, rounded; absent if it is not a number that a counter holds.
pub(super) fn count_of(per_s: f64, duration_ns: u64) -> Option<u64> {
    whole(per_s * duration_ns as f64 / 1e9)
}

/// The nearest whole number, if it is one that a counter holds.
pub(super) fn whole(value: f64) -> Option<u64> {
    (value.is_finite() && (0.0..1.8e19).contains(&value)).then(|| value.round() as u64)
}
