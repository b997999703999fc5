//! Decimal commas: a result that was printed in a locale with them is read as if it had points.
//!
//! Readers of single programs know the numbers of their program. What no reader can know from one number is which sign is the point:
//! `1,234` is either. A whole text says so, by the numbers in it that are of one form alone.

use std::ops::Range;

/// Kinds whose numbers have points only. Others have commas between their fields, or read the commas themselves.
pub(super) const KINDS: [&str; 17] = [
    "awr-html",
    "awr-text",
    "statspack",
    "charbench",
    "fio-terse",
    "fio-text",
    "hammerdb",
    "hammerdb-profile",
    "hammerdb-tcount",
    "iperf3-text",
    "orion-console",
    "orion-histogram",
    "orion-summary",
    "pgio",
    "slob-console",
    "stress-ng-yaml",
    "sysbench",
];
/// So many numbers with commas alone are no list, even where another such as `1,500` may be a count.
const MIN_SURE: u64 = 3;
/// So many beside points are no list or statement.
const MIN_MIXED: u64 = 8;

/// Which sign is the point in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decimals {
    /// A point, or nothing says that it is another.
    Points,
    /// A comma: the same text with points.
    Commas(String),
    /// Both: so many numbers have commas, and so many points.
    Mixed(u64, u64),
}

/// Which sign is the point in a text.
pub(super) fn of(text: &str) -> Decimals {
    let (mut commas, mut points, mut either) = (0_u64, 0_u64, 0_u64);
    for run in runs(text.as_bytes()) {
        let run = text.get(run).unwrap_or_default();
        commas += u64::from(is_number(run, ',', '.') == Some(true));
        either += u64::from(is_number(run, ',', '.') == Some(false));
        points += u64::from(is_number(run, '.', ',') == Some(true));
    }
    match () {
        () if (commas >= MIN_SURE || (commas > 0 && either == 0)) && commas > points.saturating_mul(2) => {
            exchanged(text, ',').map_or(Decimals::Points, Decimals::Commas)
        }
        () if commas > 0 && points == 0 => Decimals::Mixed(commas, points),
        () if commas >= MIN_MIXED && commas.saturating_mul(4) > points => Decimals::Mixed(commas, points),
        () => Decimals::Points,
    }
}

/// A text with the signs of its numbers exchanged, of which this one is the point.
fn exchanged(text: &str, point: char) -> Option<String> {
    let group = if point == ',' { '.' } else { ',' };
    let mut bytes = text.as_bytes().to_vec();
    for run in runs(text.as_bytes()) {
        if text.get(run.clone()).and_then(|run| is_number(run, point, group)).is_some() {
            for byte in bytes.get_mut(run).unwrap_or_default() {
                *byte = match *byte {
                    b',' => b'.',
                    b'.' => b',',
                    digit => digit,
                };
            }
        }
    }
    String::from_utf8(bytes).ok()
}

/// Where digits with commas and points stand that are no part of a word.
fn runs(text: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = text.get(at..)?;
            let from = at + rest.iter().position(|byte| is_of_run(*byte))?;
            let length = text.get(from..)?.iter().position(|byte| !is_of_run(*byte));
            let to = length.map_or(text.len(), |length| from + length);
            at = to;
            let is_word =
                from > 0 && text.get(from - 1).is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
            // What ends a sentence does not belong to its number.
            let run = text.get(from..to)?;
            let end = run.iter().rposition(u8::is_ascii_digit).map_or(0, |last| last + 1);
            if !is_word && run.get(..end)?.iter().any(|byte| !byte.is_ascii_digit()) {
                return Some(from..from + end);
            }
        }
    })
}

fn is_of_run(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b',' | b'.')
}

/// Whether it is certain that a number has this point, and this sign between its thousands; nothing if it cannot.
fn is_number(run: &str, point: char, group: char) -> Option<bool> {
    let (whole, fraction) = run.split_once(point).map_or((run, None), |(whole, fraction)| (whole, Some(fraction)));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let mut groups = whole.split(group);
    let (first, mut grouped) = (groups.next()?, 0);
    let fits = groups.all(|group| {
        grouped += 1;
        group.len() == 3 && is_digits(group)
    });
    let begins = match first.len() {
        0 => grouped == 0 && fraction.is_some(),
        length => is_digits(first) && (grouped == 0 || length <= 3),
    };
    if !fits || !begins || fraction.is_some_and(|fraction| !is_digits(fraction)) {
        return None;
    }
    match fraction {
        None if grouped == 0 || run.parse::<std::net::Ipv4Addr>().is_ok() => None,
        None => Some(grouped > 1),
        Some(fraction) => {
            Some(grouped > 0 || fraction.len() != 3 || first.is_empty() || first == "0" || first.len() > 3)
        }
    }
}

/// The same text as a locale with decimal commas prints it.
#[cfg(test)]
pub(super) fn with_commas(text: &str) -> String {
    exchanged(text, '.').unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_says_which_sign_is_its_point() {
        let commas = "reads 1.234,5 writes 12,75, 0,5 and 1.234 of 7,125 in 11.2.0.4.0, at 10:00:01; lists 1,2,3.";
        let points = "reads 1,234.5 writes 12.75, 0.5 and 1,234 of 7.125 in 11.2.0.4.0, at 10:00:01; lists 1,2,3.";
        assert_eq!(of(commas), Decimals::Commas(points.to_owned()));
        assert_eq!((of(points), with_commas(points).as_str()), (Decimals::Points, commas));
        assert_eq!(of(&format!("{}{}", "1,5 ".repeat(8), "2.5 ".repeat(8))), Decimals::Mixed(8, 8));
        assert_eq!(of("achieved 1,500 of 12,5"), Decimals::Mixed(1, 0));
        assert_eq!(of("in (1,2) or 1,234 of number(10,2) at 0.5 and 0.25"), Decimals::Points);
    }

    #[test]
    fn numbers_that_may_be_either_decide_nothing() {
        let read = ["1,234", "1.234", "1,5", ",5", "0,125", "1.234.567", "12345,678", "1.2.3", "5", "192.168.178.181"];
        let expected =
            [Some(false), Some(false), Some(true), Some(true), Some(true), Some(true), Some(true), None, None, None];
        assert_eq!(read.map(|run| is_number(run, ',', '.')), expected);
    }
}
