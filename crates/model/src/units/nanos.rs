//! A duration in nanoseconds.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::UnitError;

/// A duration in whole nanoseconds. Parsed from `30` (seconds), `250ms`, `1.5s`, `10m`, `2h`, `100us`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct Nanos(pub u64);

const WANTED: &str = "a duration such as `30s`, `250ms` or `10m`";
const SECOND: u64 = 1_000_000_000;
const UNITS: [(&str, u64); 8] = [
    ("", SECOND),
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND),
    ("m", 60 * SECOND),
    ("h", 3_600 * SECOND),
];

impl Nanos {
    /// `n` whole seconds.
    pub const fn seconds(n: u64) -> Self {
        Self(n * SECOND)
    }

    /// `n` whole milliseconds.
    pub const fn millis(n: u64) -> Self {
        Self(n * 1_000_000)
    }

    /// The duration in seconds.
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / SECOND as f64
    }

    /// The same duration in the standard library's type.
    pub const fn as_duration(self) -> Duration {
        Duration::from_nanos(self.0)
    }
}

impl From<Duration> for Nanos {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl FromStr for Nanos {
    type Err = UnitError;

    fn from_str(input: &str) -> Result<Self, Self::Err> {
        let fail = |reason| UnitError { input: input.to_owned(), wanted: WANTED, reason };
        let text = input.trim();
        let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
        let (number, suffix) = text.split_at(split);
        if number.is_empty() {
            return Err(fail("it does not start with a number"));
        }
        let suffix = match suffix.trim() {
            "sec" => "s",
            "min" => "m",
            suffix => suffix,
        };
        let (_, scale) = UNITS
            .iter()
            .find(|(unit, _)| *unit == suffix)
            .ok_or_else(|| fail("its unit is none of ns, us, ms, s, m and h"))?;
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(*scale).map(Self).ok_or_else(|| fail("it is too long"));
        }
        let fraction: f64 = number.parse().map_err(|_| fail("its number cannot be read"))?;
        let nanos = fraction * *scale as f64;
        if nanos >= u64::MAX as f64 {
            return Err(fail("it is too long"));
        }
        Ok(Self(nanos.round() as u64))
    }
}

/// Prints three significant digits with the unit that suits: `850 ns`, `61.3 us`, `4.02 ms`, `1.50 s`, `2m05s`, `1h30m`.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0;
        let text = match n {
            0..1_000 => format!("{n} ns"),
            1_000..999_500 => three_digits(n as f64 / 1e3, "us"),
            999_500..999_500_000 => three_digits(n as f64 / 1e6, "ms"),
            999_500_000..60_000_000_000 => three_digits(n as f64 / 1e9, "s"),
            _ => {
                let seconds = n / SECOND;
                if seconds < 3_600 {
                    format!("{}m{:02}s", seconds / 60, seconds % 60)
                } else {
                    format!("{}h{:02}m", seconds / 3_600, seconds % 3_600 / 60)
                }
            }
        };
        f.pad(&text)
    }
}

fn three_digits(value: f64, unit: &str) -> String {
    // The bounds are where rounding would add a digit: 9.996 prints as 10.0, not as 10.00.
    let decimals = if value < 9.995 {
        2
    } else if value < 99.95 {
        1
    } else {
        0
    };
    format!("{value:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_bare_number_is_seconds() {
        assert_eq!("30".parse(), Ok(Nanos::seconds(30)));
        assert_eq!("0.25".parse(), Ok(Nanos::millis(250)));
    }

    #[test]
    fn reads_every_unit() {
        for (text, nanos) in [
            ("5ns", 5),
            ("7us", 7_000),
            ("7 µs", 7_000),
            ("250ms", 250_000_000),
            ("10m", 600 * SECOND),
            ("2h", 7_200 * SECOND),
        ] {
            assert_eq!(text.parse(), Ok(Nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_not_a_duration() {
        for text in ["", "s", "5 parsecs", "-1s", "1..2s", "99999999999h"] {
            assert!(text.parse::<Nanos>().is_err(), "{text}");
        }
    }

    #[test]
    fn prints_three_digits_and_a_fitting_unit() {
        for (nanos, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 us"),
            (61_300, "61.3 us"),
            (99_960, "100 us"),
            (999_499, "999 us"),
            (999_500, "1.00 ms"),
            (4_020_000, "4.02 ms"),
            (1_500_000_000, "1.50 s"),
            (125 * SECOND, "2m05s"),
            (5_400 * SECOND, "1h30m"),
        ] {
            assert_eq!(Nanos(nanos).to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn never_panics_on_any_text(text in ".*") {
            let _ = text.parse::<Nanos>();
        }
    }
}
