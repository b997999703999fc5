//! A number of bytes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::UnitError;

/// A number of bytes. Parsed from `64M`, `1.5G`, `8k`, `4096`, with or without `B` or `iB`; all suffixes are binary.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

const WANTED: &str = "a size such as `8K`, `64M` or `1.5G`";
const UNITS: [(&str, u64); 5] = [("T", 1 << 40), ("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10), ("", 1)];

impl Bytes {
    /// `n` KiB.
    pub const fn kib(n: u64) -> Self {
        Self(n << 10)
    }

    /// `n` MiB.
    pub const fn mib(n: u64) -> Self {
        Self(n << 20)
    }

    /// `n` GiB.
    pub const fn gib(n: u64) -> Self {
        Self(n << 30)
    }
}

impl FromStr for Bytes {
    type Err = UnitError;

    fn from_str(input: &str) -> Result<Self, Self::Err> {
        let fail = |reason| UnitError { input: input.to_owned(), wanted: WANTED, reason };
        let text = input.trim();
        let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
        let (number, suffix) = text.split_at(split);
        if number.is_empty() {
            return Err(fail("it does not start with a number"));
        }
        let suffix = suffix.trim().to_ascii_uppercase();
        let suffix = suffix.strip_suffix("IB").or_else(|| suffix.strip_suffix('B')).unwrap_or(&suffix);
        let (_, scale) = UNITS
            .iter()
            .find(|(unit, _)| *unit == suffix)
            .ok_or_else(|| fail("its suffix is none of K, M, G and T"))?;
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(*scale).map(Self).ok_or_else(|| fail("it is too large"));
        }
        let fraction: f64 = number.parse().map_err(|_| fail("its number cannot be read"))?;
        let bytes = fraction * *scale as f64;
        if bytes >= u64::MAX as f64 {
            return Err(fail("it is too large"));
        }
        Ok(Self(bytes.round() as u64))
    }
}

/// Prints with the largest unit that keeps at least one whole digit: `8 KiB`, `1.5 GiB`, `512 B`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, scale) = UNITS.iter().find(|(_, scale)| self.0 >= *scale).unwrap_or(&("", 1));
        let unit = if name.is_empty() { "B".to_owned() } else { format!("{name}iB") };
        let text = if self.0.is_multiple_of(*scale) {
            format!("{} {unit}", self.0 / scale)
        } else {
            format!("{:.1} {unit}", self.0 as f64 / *scale as f64)
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_every_suffix_in_any_case() {
        for (text, bytes) in [
            ("0", 0),
            ("8192", 8192),
            ("8k", 8192),
            ("8KiB", 8192),
            ("64M", 64 << 20),
            ("1.5g", 3 << 29),
            ("2TB", 2 << 40),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_not_a_size() {
        for text in ["", "G", "1Q", "-1", "1.2.3", "99999999999999999999", "18446744073709551615K", "1e9"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }

    #[test]
    fn prints_the_largest_whole_unit() {
        assert_eq!(Bytes(512).to_string(), "512 B");
        assert_eq!(Bytes::kib(8).to_string(), "8 KiB");
        assert_eq!(Bytes(3 << 29).to_string(), "1.5 GiB");
    }

    proptest! {
        #[test]
        fn never_panics_on_any_text(text in ".*") {
            let _ = text.parse::<Bytes>();
        }

        #[test]
        fn whole_units_survive_printing_and_parsing(n in 1u64..1024, unit in 0usize..5) {
            let bytes = Bytes(n * UNITS[unit].1);
            prop_assert_eq!(bytes.to_string().parse(), Ok(bytes));
        }
    }
}
