//! What load and work are called, so that each kind of user reads his own words.

use super::traffic::operations_are_requests;
use crate::record::{Run, Step};
use crate::units::group_thousands;

/// The words of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vocabulary {
    /// Sessions do operations, each of many reads.
    Sessions,
    /// Requests are outstanding, and each is an operation.
    Requests,
}

impl Vocabulary {
    /// The words of `run`.
    pub fn of(run: &Run) -> Self {
        if operations_are_requests(run) { Self::Requests } else { Self::Sessions }
    }

    /// What is finished: `operations` or `requests`.
    pub(super) fn work(self) -> &'static str {
        match self {
            Self::Sessions => "operations",
            Self::Requests => "requests",
        }
    }

    /// What a closed loop has more of when its load is larger.
    pub(super) fn slots(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::Requests => "requests outstanding",
        }
    }

    /// A closed loop's load: `8 sessions` or `8 outstanding`.
    pub fn closed_load(self, slots: u32) -> String {
        match (self, slots) {
            (Self::Sessions, 1) => "1 session".to_owned(),
            (Self::Sessions, _) => format!("{} sessions", group_thousands(f64::from(slots))),
            (Self::Requests, _) => format!("{} outstanding", group_thousands(f64::from(slots))),
        }
    }

    /// `5,000 operations/s` or `5,000 requests/s`.
    pub fn rate(self, per_s: f64) -> String {
        format!("{} {}/s", group_thousands(per_s), self.work())
    }

    /// The load of a step: its rate in an open loop, else how much is at work at once.
    pub(super) fn load(self, step: &Step) -> String {
        match step.load.rate_operations_per_s {
            Some(rate) => self.rate(rate),
            None => step
                .load
                .sessions
                .map_or_else(|| "load that is not reported".to_owned(), |sessions| self.closed_load(sessions)),
        }
    }
}
