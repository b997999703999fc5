//! A failure while load went on.

use serde::{Deserialize, Serialize};

/// When the target failed and recovered, and what was demanded of that. Times are from the start of the load, its warm-up included.
/// Commands are not kept: they may hold passwords.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct FailureMarks {
    /// When the failure was caused, in nanoseconds.
    pub failed_ns: u64,
    /// When it was ended, if that was noted, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovered_ns: Option<u64>,
    /// The p99 of seconds that are as before, in nanoseconds; else it follows from the seconds before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<u64>,
    /// Longest time without a completed operation that was allowed, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_pause_ns: Option<u64>,
    /// Whether no operation was allowed to fail, to be due and never sent, or never to end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_errors: bool,
}
