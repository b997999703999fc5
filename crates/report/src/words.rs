//! How single values read in text.

use model::record::Histogram;
use model::shown::shown;
use model::units::{Nanos, group_thousands, percent};

/// The source does not report.
pub(super) const UNKNOWN: &str = "?";
/// Behind a value that breaks a rule; a page strikes the value through instead.
pub(super) const DOUBTED: &str = " (doubted)";
/// It is known that there was none.
pub(super) const NONE: &str = "-";

/// A rate or count with grouped thousands; small ones keep a decimal.
pub(super) fn number(value: Option<f64>) -> String {
    match value {
        None => UNKNOWN.to_owned(),
        Some(0.0) => NONE.to_owned(),
        Some(value) if value < 99.95 => format!("{value:.1}"),
        Some(value) => group_thousands(value),
    }
}

/// A share of one as a percentage.
pub(super) fn share(value: Option<f64>) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), percent)
}

pub(super) fn duration(ns: Option<u64>) -> String {
    ns.map_or_else(|| NONE.to_owned(), |ns| Nanos(ns).to_string())
}

pub(super) fn mean(waits: &Histogram) -> String {
    let mean = waits.mean_ns().map(|ns| ns.round() as u64);
    if let Some(ns) = mean.filter(|_| is_of_few_seconds(waits)) {
        return about(ns);
    }
    if mean.is_none() && waits.count() > 0 { UNKNOWN.to_owned() } else { duration(mean) }
}

/// Whether the sum was reported in so few whole seconds that their rounding alone is more than the second digit of a mean.
fn is_of_few_seconds(waits: &Histogram) -> bool {
    const SECOND_NS: u64 = 1_000_000_000;
    const FEW: u64 = 10;
    let is_whole = |ns: u64| ns > 0 && ns.is_multiple_of(SECOND_NS) && ns <= FEW * SECOND_NS;
    waits.is_reported() && waits.count() > 1 && waits.total_ns().is_some_and(is_whole)
}

/// A duration with one digit: `~4 us`.
fn about(ns: u64) -> String {
    let power = 10_u64.pow(ns.max(1).ilog10());
    let words = Nanos((ns + power / 2) / power * power).to_string();
    let (number, unit) = words.split_once(' ').unwrap_or((&words, ""));
    format!("~{} {unit}", number.split('.').next().unwrap_or(number)).trim_end().to_owned()
}

/// The duration that a share of waits did not exceed. Buckets that another program reported give no more than an upper bound.
pub(super) fn quantile(waits: &Histogram, quantile: f64) -> String {
    match waits.quantile_ns(quantile) {
        Some(ns) if !waits.knows_quantile(quantile) => format!("<={}", Nanos(ns)),
        None if waits.count() > 0 => UNKNOWN.to_owned(),
        ns => duration(ns),
    }
}

pub(super) fn longest(waits: &Histogram) -> String {
    let longest = waits.max_ns();
    if longest.is_none() && waits.count() > 0 { UNKNOWN.to_owned() } else { duration(longest) }
}

/// Text from outside on one line, with what acts on a terminal shown: a tag must not move the reader's cursor.
pub fn plain(text: &str) -> String {
    shown(text).into_owned()
}

/// Breaks `text` into lines of at most `width` characters between words; a longer word stays whole.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("it starts with one line and only grows");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_of_a_second_that_was_rounded_has_one_digit() {
        let of = |count, total_ns| mean(&Histogram::counted(count, Some(total_ns)));
        assert_eq!(of(237_810, 1_000_000_000), "~4 us");
        assert_eq!(of(7, 3_000_000_000), "~400 ms");
        assert_eq!([of(237_810, 1_000_000_001), of(237_810, 60_000_000_000)], ["4.21 us", "252 us"]);
        assert_eq!(of(2, 0), "0 ns", "nothing is not about nothing");
    }
}
