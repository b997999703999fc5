//! What iperf3 reports before a test begins.

use crate::Began;
use model::record::Timestamp;

/// What stands before a test begins; the most of it with `-V`.
#[derive(Debug, Default)]
pub(super) struct Before {
    pub(super) version: String,
    pub(super) began: Option<Began>,
    /// In a file the error may come before all that was buffered.
    pub(super) interrupted: bool,
}

impl Before {
    /// Takes a line; whether it is one of these.
    pub(super) fn line(&mut self, line: &str) -> bool {
        let line = line.trim();
        if let Some(version) = line.strip_prefix("iperf 3") {
            self.version = format!("3{}", version.split_whitespace().next().unwrap_or(""));
            return true;
        }
        if let Some(time) = line.strip_prefix("Time: ") {
            // `GMT` is a zone of RFC 2822 by its old name.
            let at = jiff::fmt::rfc2822::parse(&time.replace("GMT", "+0000").replace("UTC", "+0000"));
            self.began = at.ok().map(|at| Began::Utc(Timestamp(at.timestamp())));
            return true;
        }
        false
    }
}
