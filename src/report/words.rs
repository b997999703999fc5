//! How single values read in text.

use crate::record::Histogram;
use crate::units::{Nanos, group_thousands, percent};

/// The source does not report.
pub(super) const UNKNOWN: &str = "?";
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
    if mean.is_none() && waits.count() > 0 { UNKNOWN.to_owned() } else { duration(mean) }
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

/// Text from outside with control characters replaced: a tag must not move the reader's cursor.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
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
