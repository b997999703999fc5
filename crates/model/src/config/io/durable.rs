//! How writes are made to survive a power cut.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use crate::config::ConfigError;

use super::IoProblem;

/// When a write counts as durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durable {
    /// `none`: nobody asks the device to empty its volatile cache.
    #[default]
    None,
    /// `dsync`: every write is durable when it has finished (O_DSYNC).
    Dsync,
    /// `fsync:N`: the file is synchronised after every so many writes.
    Fsync {
        /// Writes between two of them.
        every: NonZeroU32,
    },
}

impl FromStr for Durable {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let lower = text.to_ascii_lowercase();
        let every = lower.strip_prefix("fsync:").and_then(|count| count.parse().ok());
        match (lower.as_str(), every) {
            ("none", _) => Ok(Self::None),
            ("dsync", _) => Ok(Self::Dsync),
            (_, Some(every)) => Ok(Self::Fsync { every }),
            _ => Err(ConfigError::Io(IoProblem::Durable { text: text.to_owned() })),
        }
    }
}

impl fmt::Display for Durable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.pad("none"),
            Self::Dsync => f.pad("dsync"),
            Self::Fsync { every } => f.pad(&format!("fsync:{every}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::assert_refused;
    use super::Durable;

    #[test]
    fn what_is_printed_is_read_back() {
        for text in ["none", "dsync", "fsync:1", "fsync:32"] {
            assert_eq!(text.parse::<Durable>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn refuses_others_and_says_what_to_write() {
        for text in ["", "fsync", "fsync:", "fsync:0", "fsync:-1", "osync"] {
            assert_refused::<Durable>(
                text,
                &format!("`{text}` is not a way to make writes durable"),
                "write `none`, `dsync`, or `fsync:32` for an fsync after every 32 writes",
            );
        }
    }
}
