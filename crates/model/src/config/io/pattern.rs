//! In which order and direction requests go.

use std::fmt;
use std::str::FromStr;

use crate::config::ConfigError;

use super::IoProblem;

/// The order and direction of requests, by fio's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// `randread`: reads at random places.
    RandRead,
    /// `randwrite`: writes at random places.
    RandWrite,
    /// `randrw`: both at random places.
    RandRw,
    /// `read`: reads from block to block.
    Read,
    /// `write`: writes from block to block.
    Write,
    /// `rw`: both from block to block, at one cursor.
    Rw,
}

/// Reads in each hundred requests of a mixed pattern unless the user says otherwise; fio's default.
const DEFAULT_READ_PCT: u8 = 50;

impl Pattern {
    /// Every pattern.
    pub const ALL: [Self; 6] = [Self::RandRead, Self::RandWrite, Self::RandRw, Self::Read, Self::Write, Self::Rw];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RandRead => "randread",
            Self::RandWrite => "randwrite",
            Self::RandRw => "randrw",
            Self::Read => "read",
            Self::Write => "write",
            Self::Rw => "rw",
        }
    }

    /// Whether requests go from block to block.
    pub const fn is_sequential(self) -> bool {
        matches!(self, Self::Read | Self::Write | Self::Rw)
    }

    /// Whether it is made of reads and writes, so that the share of reads can be chosen.
    pub const fn is_mixed(self) -> bool {
        matches!(self, Self::RandRw | Self::Rw)
    }

    /// Reads in each hundred requests, from 0 to 100: what was asked, or the pattern's own.
    ///
    /// # Errors
    /// [`ConfigError::Io`] for what is no percentage, or contradicts a pattern of one direction.
    pub fn read_pct(self, asked: Option<u8>) -> Result<u8, ConfigError> {
        let own = self.own_read_pct();
        match asked {
            Some(read_pct) if read_pct > 100 => Err(ConfigError::Io(IoProblem::ReadPct { read_pct })),
            Some(read_pct) if !self.is_mixed() && read_pct != own => {
                Err(ConfigError::Io(IoProblem::OneWay { pattern: self, read_pct }))
            }
            asked => Ok(asked.unwrap_or(own)),
        }
    }

    /// Reads in each hundred requests where nothing is asked.
    pub(super) const fn own_read_pct(self) -> u8 {
        match self {
            Self::RandRead | Self::Read => 100,
            Self::RandWrite | Self::Write => 0,
            Self::RandRw | Self::Rw => DEFAULT_READ_PCT,
        }
    }

    /// The pattern of the same order that reads and writes.
    pub(super) const fn mixed(self) -> Self {
        if self.is_sequential() { Self::Rw } else { Self::RandRw }
    }

    /// The pattern of the same directions that goes to random places.
    pub(super) const fn random(self) -> Self {
        match self {
            Self::RandRead | Self::Read => Self::RandRead,
            Self::RandWrite | Self::Write => Self::RandWrite,
            Self::RandRw | Self::Rw => Self::RandRw,
        }
    }
}

impl FromStr for Pattern {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|pattern| pattern.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| ConfigError::Io(IoProblem::Pattern { text: text.to_owned() }))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::super::assert_refused;
    use super::*;

    #[test]
    fn what_is_printed_is_read_back() {
        for pattern in Pattern::ALL {
            assert_eq!(pattern.to_string().parse::<Pattern>().unwrap(), pattern);
        }
    }

    #[test]
    fn says_which_patterns_there_are() {
        assert_refused::<Pattern>(
            "randtrim",
            "`randtrim` is not a pattern",
            "write `randread`, `randwrite`, `randrw`, `read`, `write` or `rw`",
        );
    }

    #[test]
    fn a_mixed_pattern_takes_the_share_of_reads_and_defaults_to_half() {
        for pattern in [Pattern::RandRw, Pattern::Rw] {
            assert_eq!(pattern.read_pct(None).unwrap(), 50);
            for read_pct in [0, 70, 100] {
                assert_eq!(pattern.read_pct(Some(read_pct)).unwrap(), read_pct);
            }
        }
    }

    #[test]
    fn a_pattern_of_one_direction_takes_only_its_own_share() {
        assert_eq!(Pattern::RandRead.read_pct(None).unwrap(), 100);
        assert_eq!(Pattern::Read.read_pct(Some(100)).unwrap(), 100);
        assert_eq!(Pattern::Write.read_pct(Some(0)).unwrap(), 0);
        let cases = [
            (Pattern::RandRead, 70, "`randread` only reads, but `--read-pct 70` was asked", "use `randrw`"),
            (Pattern::Write, 100, "`write` only writes, but `--read-pct 100` was asked", "use `rw`"),
            (Pattern::Rw, 101, "`--read-pct 101` is not a percentage", "write a whole number from 0 to 100"),
        ];
        for (pattern, read_pct, message, hint) in cases {
            let error = pattern.read_pct(Some(read_pct)).unwrap_err();
            assert_eq!((error.to_string().as_str(), error.hint().unwrap().as_str()), (message, hint));
        }
    }
}
