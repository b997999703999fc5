//! Bytes, nanoseconds and rates: one parser and one printer each; and words as a shell takes them.
//!
//! Sizes are binary (`1K` = 1024 bytes) as in `slob.conf`; throughput is printed in MB/s of 1,000,000 bytes, as `fio`
//! and iostat's users quote device limits. Durations are kept as whole nanoseconds.

mod alike;
mod bytes;
mod nanos;
mod quantity;
mod shell;

pub use alike::edit_distance;
pub use bytes::Bytes;
pub use nanos::Nanos;
pub use quantity::{awr_count, group_thousands, percent, short_count};
pub use shell::{shell_command, shell_lines, shell_split, shell_word};

/// Why a size, duration or rate could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{input}` is not {wanted}: {reason}")]
pub struct UnitError {
    /// The text as the user gave it.
    pub input: String,
    /// What was expected, with an example.
    pub wanted: &'static str,
    /// What is wrong with it.
    pub reason: &'static str,
}
