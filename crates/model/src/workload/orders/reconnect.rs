//! How long a connection serves its user.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

/// How long a connection serves its user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reconnect {
    /// As long as the load goes on.
    #[default]
    Never,
    /// So many transactions; then it is closed, and the next transaction makes another.
    After(NonZeroU32),
}

/// The golden ratio as a fraction of 2^32: its multiples lie evenly, however many are taken.
const GOLDEN: u32 = 0x9e37_79b9;

impl Reconnect {
    /// For how many transactions a connection serves.
    pub fn lasts(self) -> u64 {
        match self {
            Self::Never => u64::MAX,
            Self::After(transactions) => u64::from(transactions.get()),
        }
    }

    /// For how many the first connection of user number `user` serves. They differ, so that users who began together do not make
    /// their connections anew together.
    pub fn first_lasts(self, user: u32) -> u64 {
        match self {
            Self::Never => u64::MAX,
            Self::After(transactions) => {
                1 + ((u64::from(user.wrapping_mul(GOLDEN)) * u64::from(transactions.get())) >> 32)
            }
        }
    }

    /// Whether a connection serves one transaction only, so that it is not worth while to prepare anything in it.
    pub fn is_each(self) -> bool {
        self.lasts() == 1
    }
}

/// As it is read: `never`, `every` or a number.
impl fmt::Display for Reconnect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("never"),
            Self::After(transactions) if transactions.get() == 1 => f.write_str("every"),
            Self::After(transactions) => transactions.fmt(f),
        }
    }
}

/// Text says nothing about how long connections last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a connection is made anew for `every` transaction, after a number of them from 1 to {max}, or `never`", max = u32::MAX)]
pub struct ReconnectError;

impl FromStr for Reconnect {
    type Err = ReconnectError;

    fn from_str(text: &str) -> Result<Self, ReconnectError> {
        match text.trim() {
            "never" => Ok(Self::Never),
            "every" => Ok(Self::After(NonZeroU32::MIN)),
            number => number.parse().map(Self::After).map_err(|_| ReconnectError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_nonsense_is_refused() {
        for (text, lasts) in [("never", u64::MAX), ("every", 1), ("100", 100)] {
            let read: Reconnect = text.parse().unwrap();
            assert_eq!((read.lasts(), read.to_string().as_str()), (lasts, text));
        }
        assert_eq!("1".parse::<Reconnect>().unwrap().to_string(), "every");
        for text in ["", "0", "-1", "each", "1.5", "4294967296"] {
            assert_eq!(text.parse::<Reconnect>(), Err(ReconnectError), "{text}");
        }
    }

    #[test]
    fn first_connections_end_one_after_the_other() {
        let hundred: Reconnect = "100".parse().unwrap();
        let mut ends: Vec<u64> = (0..20).map(|user| hundred.first_lasts(user)).collect();
        ends.sort_unstable();
        assert!(ends[0] >= 1 && ends[19] <= 100, "{ends:?}");
        assert!(ends.windows(2).all(|pair| (2..=10).contains(&(pair[1] - pair[0]))), "{ends:?}");
        let every: Reconnect = "every".parse().unwrap();
        assert!((0..1_000).all(|user| every.first_lasts(user) == 1));
    }
}
