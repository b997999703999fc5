//! Reports that databases make of themselves, on the measured window of a step.

use std::ops::Range;
use std::time::Duration;

use measure::Clock;
use model::record::OwnReport;

/// Which of its reports a database is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnReportKind {
    /// Oracle's AWR, which is licensed besides the database.
    Awr,
    /// Statspack, which has to be installed.
    Statspack,
}

impl OwnReportKind {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Awr => "AWR",
            Self::Statspack => "Statspack",
        }
    }
}

/// What came of asking for reports on a window.
#[derive(Debug, Default)]
pub struct OwnReports {
    /// Each report as it is recorded, but for its file, and its text where it can be had. What it counted is still to be read from
    /// that text, unless it is known already.
    pub reports: Vec<(OwnReport, Option<String>)>,
    /// What the user should know: why a report is missing, or how to make it.
    pub notes: Vec<String>,
}

/// Has databases report on a window by themselves.
pub trait OwnReporter: Send + Sync {
    /// All sessions are ready. Load begins when this returns, and the window `warmup` later.
    fn load_begins(&self, clock: Clock, warmup: Duration);

    /// The load has ended; its window was so on the clock. `None` where nothing is to be reported, since it was cut short.
    fn load_ended(&self, clock: Clock, window_ns: Option<Range<u64>>) -> OwnReports;
}
