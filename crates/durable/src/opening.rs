//! What is known of a run when it begins, and on which machine that is.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use targets::durable::{Made, Shape};

/// How a commit in a file is made durable before it is taken for acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Means {
    /// `fdatasync` after the write.
    #[default]
    Fdatasync,
    /// The file is opened with `O_DSYNC`.
    Dsync,
    /// Nothing. Such commits promise nothing; only their order can be looked at.
    None,
}

impl Means {
    /// All of them, as they are written.
    pub const ALL: [(&'static str, Self); 3] =
        [("fdatasync", Self::Fdatasync), ("dsync", Self::Dsync), ("none", Self::None)];

    /// For a reader.
    pub fn words(self) -> &'static str {
        match self {
            Self::Fdatasync => "a direct write, then fdatasync",
            Self::Dsync => "a direct write with O_DSYNC",
            Self::None => "a direct write and no flush, which promises nothing",
        }
    }
}

impl fmt::Display for Means {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL.iter().find(|(_, means)| means == self).map_or("", |(name, _)| name))
    }
}

/// What a commit in a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileCommits {
    /// How it is made durable.
    pub means: Means,
    /// What it writes at once, of [`BLOCK_SIZES`].
    pub block_bytes: u32,
}

/// Sizes that a block may have: powers of two.
pub const BLOCK_SIZES: RangeInclusive<u32> = 4096..=1 << 20;

impl FileCommits {
    /// Whether there can be such a load.
    pub fn is_sensible(&self) -> bool {
        BLOCK_SIZES.contains(&self.block_bytes) && self.block_bytes.is_power_of_two()
    }
}

impl Default for FileCommits {
    fn default() -> Self {
        Self { means: Means::default(), block_bytes: 8192 }
    }
}

/// A word that names no means.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is unknown: write fdatasync, dsync or none")]
pub struct NoMeans(String);

impl FromStr for Means {
    type Err = NoMeans;

    fn from_str(text: &str) -> Result<Self, NoMeans> {
        Self::ALL
            .iter()
            .find(|(name, _)| *name == text)
            .map(|(_, means)| *means)
            .ok_or_else(|| NoMeans(text.to_owned()))
    }
}

/// A machine, and one boot of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// `/etc/machine-id`, or the host's name where there is none.
    pub machine: String,
    /// The kernel's number of this boot; empty where it is unknown.
    pub boot: String,
}

impl Machine {
    /// This one, now.
    pub fn here() -> Self {
        let line = |path: &str| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
        let known = |text: &String| !text.is_empty();
        let id = line("/etc/machine-id").filter(known);
        let host = || line("/proc/sys/kernel/hostname").filter(known).map(|name| format!("host {name}"));
        Self {
            machine: id.or_else(host).unwrap_or_default(),
            boot: line("/proc/sys/kernel/random/boot_id").unwrap_or_default(),
        }
    }
}

/// How notes come to the witness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Each is answered before its session goes on.
    Answered,
    /// None is answered: those that are on the way when the power fails are lost.
    OneWay,
}

/// What a load says of itself when it begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opening {
    /// Its commits.
    pub shape: Shape,
    /// The target as its user named it, without a password.
    pub target: String,
    /// What is known of the target.
    pub made: Made,
    /// What a commit in a file is; none on a server.
    pub files: Option<FileCommits>,
    /// How its notes come.
    pub way: Way,
    /// The machine of the load.
    pub load: Machine,
}

impl Opening {
    /// Whether there can be such a load.
    pub fn is_sensible(&self) -> bool {
        self.shape.is_sensible() && self.files.is_none_or(|files| files.is_sensible())
    }

    /// Whether its commits are acknowledged without a flush.
    pub fn flushes_nothing(&self) -> bool {
        self.files.is_some_and(|files| files.means == Means::None)
    }
}

/// The first line of notes after their heading.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opened {
    /// What the load said.
    pub opening: Opening,
    /// When, in nanoseconds since 1970 by the witness's clock. For display alone.
    pub at_wall_ns: u64,
}

/// How the notes of a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The load said that it is over.
    Done,
    /// The load said that it ended by an error.
    Failed,
    /// The load said that its target does not answer any more.
    TargetGone,
    /// The load said nothing for so long that the witness stopped waiting.
    Silent,
    /// The connection or the pipe was closed without a word.
    Closed,
    /// The witness was told to end.
    Stopped,
}

/// The last line of notes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Closing {
    /// How it ended.
    pub how: How,
    /// The reason of an error.
    pub why: String,
    /// For how long the load had said nothing, in milliseconds of the witness's monotonic clock.
    pub silent_ms: u64,
    /// When it was written, in microseconds since the opening.
    pub at_us: u64,
    /// How many notes there are.
    pub notes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_read_as_they_are_written() {
        for (name, means) in Means::ALL {
            assert_eq!((name.parse::<Means>().unwrap(), means.to_string().as_str()), (means, name));
        }
        assert!("FUA".parse::<Means>().unwrap_err().to_string().contains("fdatasync"));
    }

    #[test]
    fn this_machine_is_known() {
        let here = Machine::here();
        assert!(!here.machine.is_empty() && !here.boot.is_empty() && here == Machine::here());
    }
}
