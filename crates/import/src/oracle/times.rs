//! Dates and durations as Oracle's reports print them.

use jiff::civil::DateTime;

use crate::calendar;
use crate::numbers::{duration_ns, multiple, number, scaled};

/// A time such as `10-Feb-20 20:33:02` or `10-Feb-20 20:33`, and whether it has seconds.
pub(super) fn time(text: &str) -> Option<(DateTime, bool)> {
    // Names of months are padded to the longest of their language: `10-2\u{6708} -20 20:33`.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace(" -", "-");
    let (date, clock) = text.split_once(' ')?;
    let mut parts = date.split('-');
    let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
    let month = calendar::month(month)?;
    let year: i16 = year.parse().ok()?;
    let year = if year < 100 { year + 2_000 } else { year };
    let mut clock = clock.trim().splitn(3, ':').map(|part| part.trim().parse::<i8>());
    let (hour, minute) = (clock.next()?.ok()?, clock.next()?.ok()?);
    let second = match clock.next() {
        Some(second) => Some(second.ok()?),
        None => None,
    };
    let time = DateTime::new(year, month, day.trim().parse().ok()?, hour, minute, second.unwrap_or(0), 0).ok()?;
    Some((time, second.is_some()))
}

/// A duration in minutes, such as `10.08 (mins)` or `10.08`, in nanoseconds.
pub(super) fn minutes_ns(text: &str) -> Option<u64> {
    let figure = text.split('(').next()?.split_whitespace().next()?;
    crate::draft::whole(number(figure)? * 60e9)
}

/// A figure, and how far the true one may be away because it was rounded: half of its last digit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rounded {
    /// As it is printed.
    pub value: f64,
    /// Half of its last digit.
    pub off: f64,
}

impl Rounded {
    /// The same in other units.
    pub(super) fn scaled(self, factor: f64) -> Self {
        Self { value: self.value * factor, off: self.off * factor }
    }
}

/// A number such as `9,440`, `.1` or `26.4K`.
pub(super) fn rounded(text: &str) -> Option<Rounded> {
    let text = text.trim();
    let value = scaled(text)?;
    let digits = text.trim_end_matches(|c: char| c.is_alphabetic());
    let unit = multiple(text).unwrap_or(1.0);
    // `1.69E+05` has two decimals of a hundred thousand.
    let (mantissa, exponent) = digits.split_once(['E', 'e']).unwrap_or((digits, ""));
    let exponent = exponent.parse::<i32>().map_or(0, |exponent| exponent.clamp(-300, 300));
    let decimals = mantissa.split_once('.').map_or(0, |(_, rest)| rest.len().min(12));
    Some(Rounded { value, off: unit * 0.5 * 10_f64.powi(exponent - decimals as i32) })
}

/// A duration with a unit of its own (`4.03ms`) or in that of its column, in nanoseconds.
pub(super) fn rounded_ns(text: &str, unit_ns: Option<f64>) -> Option<Rounded> {
    if let Some(unit_ns) = unit_ns {
        return rounded(text).map(|figure| figure.scaled(unit_ns));
    }
    let ns = duration_ns(text)?;
    let digits = text.trim().trim_end_matches(|c: char| c.is_alphabetic() || c.is_whitespace());
    let figure = rounded(digits)?;
    Some(if figure.value == 0.0 {
        Rounded { value: 0.0, off: figure.off * ns_of_unit(text) }
    } else {
        figure.scaled(ns / figure.value)
    })
}

fn ns_of_unit(text: &str) -> f64 {
    let unit: String = text.chars().filter(|c| c.is_alphabetic()).collect();
    duration_ns(&format!("1{unit}")).unwrap_or(1.0)
}

/// What stands in parentheses in the name of a column, as the nanoseconds of its unit.
pub(super) fn unit_of_column(name: &str) -> Option<f64> {
    let unit = name.rsplit_once('(')?.1.split(')').next()?;
    match unit.trim() {
        "us" => Some(1e3),
        "ms" => Some(1e6),
        "s" | "sec" => Some(1e9),
        "cs" => Some(1e7),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_and_without_seconds() {
        let read = |text: &str| time(text).map(|(time, exact)| (time.to_string(), exact));
        let expected = |text: &str, exact| Some((text.to_owned(), exact));
        assert_eq!(read("03-Mar-21 07:08:09"), expected("2021-03-03T07:08:09", true));
        assert_eq!(read(" 3-Mar-2021 07:08"), expected("2021-03-03T07:08:00", false));
        assert_eq!(read("03-M\u{c4}R-21 07:08:09"), expected("2021-03-03T07:08:09", true));
        assert_eq!(read("11-JUIL.-21 07:08:09"), expected("2021-07-11T07:08:09", true));
        assert_eq!(read("11-JUIN -21 07:08:09"), expected("2021-06-11T07:08:09", true));
        assert_eq!(read("11-2\u{6708} -21 07:08:09"), expected("2021-02-11T07:08:09", true));
        assert_eq!(read("11-12\u{c6d4}-21 07:08:09"), expected("2021-12-11T07:08:09", true));
        assert_eq!(read("11-MEI-21 07:08:09"), expected("2021-05-11T07:08:09", true));
        assert_eq!(read("11-\u{41c}\u{410}\u{42f}-21 07:08:09"), expected("2021-05-11T07:08:09", true));
        for wrong in ["", "03-Mar-21", "03/04/21 07:08", "99-Mar-21 07:08", "03-Xyz-21 07:08", "03-Mar-21 07:aa"] {
            assert_eq!(time(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn figures_know_how_rounded_they_are() {
        assert_eq!(rounded("9,440"), Some(Rounded { value: 9_440.0, off: 0.5 }));
        assert_eq!(rounded("26.4K"), Some(Rounded { value: 26_400.0, off: 50.0 }));
        assert_eq!(rounded("1.69E+05"), Some(Rounded { value: 169_000.0, off: 500.0 }));
        let near = |text: &str, unit, value: f64, off: f64| {
            let read = rounded_ns(text, unit).unwrap();
            assert!((read.value - value).abs() < 1e-3 && (read.off - off).abs() < 1e-3, "{text}: {read:?}");
        };
        near("4.03ms", None, 4_030_000.0, 5_000.0);
        near(".00ns", None, 0.0, 0.005);
        near("49", unit_of_column("Avg wait (ms)"), 49e6, 0.5e6);
        assert_eq!(minutes_ns("10.5 (mins)"), Some(630_000_000_000));
        assert_eq!(unit_of_column("Avg wait"), None);
    }
}
