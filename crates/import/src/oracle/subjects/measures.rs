//! What figures are, and in which unit: by the heading of their column, the name of their row, or their own letters.

use crate::numbers::{duration_ns, scaled};
use crate::oracle::header::bytes;
use crate::oracle::times;

/// A kind of figure, and how its cells are read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Measure {
    /// A number of something, with `K`, `M` and so on for thousands and millions.
    Count,
    /// The same per second.
    PerSecond,
    /// A share of a hundred.
    Percent,
    /// A time in the unit of so many nanoseconds, kept in milliseconds.
    Time(f64),
    /// A time whose cells have a unit each; those that have none are not known.
    TimeWithUnit,
    /// A sum of times in seconds.
    Seconds,
    /// Data in the unit of so many bytes.
    Data(f64),
    /// Data whose cells may have a unit each, such as `292M`.
    DataWithUnit,
    /// In the unit that the source reports, such as `MB/s`: how many bytes an MB of it has is not known.
    As(&'static str),
}

const KIB: f64 = 1_024.0;

impl Measure {
    /// Times of a column: in the unit that its heading reports, or with one in each cell.
    pub(super) fn time(heading: &str) -> Self {
        times::unit_of_column(heading).map_or(Self::TimeWithUnit, Self::Time)
    }

    /// The unit in which figures are kept.
    pub(super) fn unit(self) -> &'static str {
        match self {
            Self::Count => "",
            Self::PerSecond => "/s",
            Self::Percent => "%",
            Self::Time(_) | Self::TimeWithUnit => "ms",
            Self::Seconds => "s",
            Self::Data(_) | Self::DataWithUnit => "B",
            Self::As(unit) => unit,
        }
    }

    /// The figure in a cell, in that unit; nothing for blanks, `N/A` and what is rounded beyond use.
    pub(super) fn value(self, cell: &str) -> Option<f64> {
        let cell = cell.trim();
        // `1.E+03` stands where a number is too wide for its column.
        let number = || scaled(cell).filter(|_| !cell.contains(['E', 'e']));
        let value = match self {
            Self::Percent => scaled(cell.trim_end_matches('%')).filter(|_| !cell.contains(['E', 'e']))?,
            Self::Count | Self::PerSecond | Self::Seconds | Self::As(_) => number()?,
            Self::Time(unit_ns) => number()? * unit_ns / 1e6,
            Self::TimeWithUnit => duration_ns(cell)? / 1e6,
            Self::Data(unit_bytes) => number()? * unit_bytes,
            Self::DataWithUnit => bytes(cell)? as f64,
        };
        // Sizes of memory with one decimal of a megabyte are whole bytes all the same.
        let value = if matches!(self, Self::Data(_)) { value.round() } else { value };
        value.is_finite().then_some(value)
    }

    /// What a heading or the name of a row says of its figures; nothing if it does not.
    pub(super) fn of_heading(heading: &str) -> Option<Self> {
        let lower = heading.to_lowercase();
        if lower.contains('%') {
            return Some(Self::Percent);
        }
        if let Some(unit_ns) = times::unit_of_column(heading) {
            return Some(if unit_ns >= 1e9 { Self::Seconds } else { Self::Time(unit_ns) });
        }
        let rates = [("mb", "MB/s"), ("mbytes", "MB/s"), ("megabytes", "MB/s"), ("gb", "GB/s"), ("kb", "KB/s")];
        let is_rate = ["/s", "per sec", "/sec"].iter().any(|words| lower.contains(words));
        let words = || lower.split(|c: char| !c.is_alphanumeric());
        let data = rates.iter().find(|(word, _)| words().any(|one| one == *word)).map(|(_, unit)| *unit);
        if is_rate || words().any(|word| word == "mbps") {
            let data = data.or_else(|| words().any(|word| word == "mbps").then_some("MB/s"));
            return Some(data.map_or(Self::PerSecond, Self::As));
        }
        if words().any(|word| word == "iops") {
            return Some(Self::PerSecond);
        }
        let bracket = lower.rsplit_once('(').and_then(|(_, rest)| rest.split(')').next()).unwrap_or_default();
        match bracket.trim() {
            "bytes" => return Some(Self::Data(1.0)),
            "kb" | "k" => return Some(Self::Data(KIB)),
            "mb" | "m" => return Some(Self::Data(KIB * KIB)),
            "gb" | "g" => return Some(Self::Data(KIB * KIB * KIB)),
            "tb" | "t" => return Some(Self::Data(KIB * KIB * KIB * KIB)),
            _ => {}
        }
        let counts = ["requests", "reqs", "count", "waits", "errors", "packets", "ios", "misses", "hits"];
        (data.is_none() && words().any(|word| counts.contains(&word))).then_some(Self::Count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_tell_what_figures_are_or_nothing_is_known() {
        let mib = KIB * KIB;
        for (heading, expected) in [
            ("Buffer Hit %", Some(Measure::Percent)),
            ("Avg global enqueue get time (us)", Some(Measure::Time(1e3))),
            ("CR Avg Time (us): All", Some(Measure::Time(1e3))),
            ("Host Mem (MB)", Some(Measure::Data(mib))),
            ("Begin Size (Bytes)", Some(Measure::Data(1.0))),
            ("Send Mbytes/sec", Some(Measure::As("MB/s"))),
            ("Read Requests per Second: OLTP", Some(Measure::PerSecond)),
            ("Reads MB per Second", Some(Measure::As("MB/s"))),
            ("IOPs", Some(Measure::PerSecond)),
            ("Total Requests", Some(Measure::Count)),
            ("DB CPU (s)", Some(Measure::Seconds)),
            ("Std Dev", None),
            ("OLTP", None),
        ] {
            assert_eq!(Measure::of_heading(heading), expected, "{heading}");
        }
    }

    #[test]
    fn figures_are_kept_in_one_unit() {
        assert_eq!(Measure::Time(1e3).value("1,113.0"), Some(1.113));
        assert_eq!(Measure::TimeWithUnit.value(".96ms"), Some(0.96));
        assert_eq!(Measure::TimeWithUnit.value("7"), None, "its unit is reported nowhere");
        assert_eq!(Measure::Data(KIB * KIB).value("2,006.9"), Some(2_104_387_174.0));
        assert_eq!(Measure::DataWithUnit.value("3,692K"), Some(3_780_608.0));
        assert_eq!(Measure::Percent.value("1.E+03"), None, "it is rounded to one digit");
        assert_eq!(Measure::Count.value("N/A"), None);
    }
}
