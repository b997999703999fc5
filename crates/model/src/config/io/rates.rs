//! The rates of an open loop.

use std::fmt;
use std::str::FromStr;

use crate::config::ConfigError;
use crate::config::list::{Gap, numbers, one_ellipsis};

use super::IoProblem;

/// The lowest rate that may be asked for, in operations a second.
pub const MIN_RATE: f64 = 0.001;

/// The highest rate that may be asked for, in operations a second.
pub const MAX_RATE: f64 = 1e9;

/// Rates to run at, in operations a second, each from [`MIN_RATE`] to [`MAX_RATE`].
#[derive(Debug, Clone, PartialEq)]
pub enum RateRange {
    /// `1000..60000`: whichever rates between the two show the load line.
    Between {
        /// The lowest rate; less than the highest.
        lowest: f64,
        /// The highest rate.
        highest: f64,
    },
    /// `1000,2000,5000`, or `1000,2000,…,64000` with the doublings between left out: one step each, every rate there once.
    Each(Vec<f64>),
}

impl RateRange {
    /// The rates that the user named.
    pub fn named(&self) -> Vec<f64> {
        match self {
            Self::Between { lowest, highest } => vec![*lowest, *highest],
            Self::Each(rates) => rates.clone(),
        }
    }
}

impl FromStr for RateRange {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        read(text).map_err(ConfigError::Io)
    }
}

fn read(text: &str) -> Result<RateRange, IoProblem> {
    let order = |lowest, highest| IoProblem::RateOrder { lowest, highest };
    let text = one_ellipsis(text);
    // With a comma it is a list, whatever is left out of it.
    if let Some((lowest, highest)) = text.split_once('…').filter(|_| !text.contains(',')) {
        let (lowest, highest) = (rate_or_problem(lowest)?, rate_or_problem(highest)?);
        return if lowest < highest { Ok(RateRange::Between { lowest, highest }) } else { Err(order(lowest, highest)) };
    }
    let rates = numbers(&text, rate_or_problem, |gap| match gap {
        Gap::Twice(rate) => IoProblem::RateTwice { rate },
        Gap::Down { first, last } => order(first, last),
        Gap::NoDoubling { before, first } => IoProblem::NoDoubling { before, first },
    })?;
    Ok(RateRange::Each(rates))
}

fn rate_or_problem(text: &str) -> Result<f64, IoProblem> {
    read_rate(text).ok_or_else(|| IoProblem::Rate { text: text.to_owned() })
}

/// Units of thousands, which are decimal as everywhere where something is counted: only sizes are binary.
const THOUSANDS: [(&str, &str); 3] = [("k", "e3"), ("M", "e6"), ("G", "e9")];

/// Reads one rate: `5000`, `5k`, `2.5k/s` or `1M`, from [`MIN_RATE`] to [`MAX_RATE`]. `None` for anything else.
pub fn read_rate(text: &str) -> Option<f64> {
    let number = text.trim();
    let number = number.strip_suffix("/s").unwrap_or(number).trim_end();
    let scaled = THOUSANDS.iter().find_map(|(unit, exponent)| {
        // A capital K, since nobody asks for a rate of kelvins; but no small m, which is a thousandth.
        let bare = number.strip_suffix(unit).or_else(|| number.strip_suffix('K').filter(|_| *unit == "k"))?;
        Some(format!("{}{exponent}", bare.trim_end()))
    });
    scaled.as_deref().unwrap_or(number).parse().ok().filter(|rate| is_rate(*rate))
}

/// Whether a load can be asked for at this rate.
pub(super) fn is_rate(rate: f64) -> bool {
    (MIN_RATE..=MAX_RATE).contains(&rate)
}

impl fmt::Display for RateRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Between { lowest, highest } => f.pad(&format!("{lowest}..{highest}")),
            Self::Each(rates) => f.pad(&rates.iter().map(f64::to_string).collect::<Vec<_>>().join(",")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::assert_refused;
    use super::{RateRange, read_rate};

    #[test]
    fn reads_ranges_and_lists() {
        let range = RateRange::Between { lowest: 1_000.0, highest: 60_000.0 };
        for text in ["1000..60000", "1000…60000", "1000 ... 60000", "1000/s..60000/s"] {
            assert_eq!(text.parse::<RateRange>().unwrap(), range, "{text}");
        }
        assert_eq!(range.named(), [1_000.0, 60_000.0]);
        let list = "1000, 2500.5,5000".parse::<RateRange>().unwrap();
        assert_eq!(list.named(), [1_000.0, 2_500.5, 5_000.0]);
        assert_eq!("5000".parse::<RateRange>().unwrap(), RateRange::Each(vec![5_000.0]));
        for text in ["1000,2000,…,8000", "1k,2k,...,8k", "1k,2k..8k/s"] {
            assert_eq!(text.parse::<RateRange>().unwrap().named(), [1_000.0, 2_000.0, 4_000.0, 8_000.0], "{text}");
        }
    }

    #[test]
    fn thousands_are_decimal_and_exact() {
        for (text, rate) in [
            ("20k", 20_000.0),
            ("20K", 20_000.0),
            ("1M", 1e6),
            ("2.5k/s", 2_500.0),
            ("2.5 k /s", 2_500.0),
            ("1.001k", 1_001.0),
            ("1G", 1e9),
            ("0.5", 0.5),
        ] {
            assert_eq!(read_rate(text), Some(rate), "{text}");
        }
        for text in ["k", "2m", "2KiB", "1e3k", "2kk", "2G", "/s", "-1k", "infk", "2k/m"] {
            assert_eq!(read_rate(text), None, "{text}");
        }
    }

    #[test]
    fn refuses_others_and_says_what_to_write() {
        let hint = "write operations a second from 0.001 to 1000000000, such as `1000..60000` or `1k,2k,5k`";
        for (text, item) in
            [("", ""), ("0", "0"), ("-5", "-5"), ("nan", "nan"), ("1e10", "1e10"), ("1,,2", ""), ("9q", "9q")]
        {
            assert_refused::<RateRange>(text, &format!("`{item}` is not a rate"), hint);
        }
        for (text, item) in [("1..", ""), ("0..5", "0"), ("1..5..9", "5…9"), ("1,2..", "")] {
            assert_refused::<RateRange>(text, &format!("`{item}` is not a rate"), hint);
        }
        assert_refused::<RateRange>("5,5", "rate 5 is there twice", "give each rate once");
        let message = "the range from 60000 to 1000 operations a second has nothing in it";
        assert_refused::<RateRange>("60000..1000", message, "write the lower rate first, such as `1000..60000`");
        assert!("7..7".parse::<RateRange>().is_err());
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(lowest in 0.001..1e4_f64, highest in 1e5..1e9_f64) {
            for rates in [RateRange::Between { lowest, highest }, RateRange::Each(vec![highest, lowest])] {
                prop_assert_eq!(rates.to_string().parse::<RateRange>().unwrap(), rates);
            }
        }

        #[test]
        fn never_panics_on_any_text(text in "[0-9.,…/s]*|.*") {
            let _ = text.parse::<RateRange>();
        }
    }
}
