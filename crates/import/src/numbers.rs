//! Numbers as reports print them.

/// A number with or without thousands commas, also `1.69E+05`, `.5` and `-3`; nothing for blanks, `N/A`, `#####` and the like,
/// nor for `0,75` and `18,9`: there a comma stands for the point.
pub(super) fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    if text.contains(GROUPS) {
        return grouped(text);
    }
    let is_number = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
    if text.contains(',') && !has_thousands(text) {
        return None;
    }
    let plain: String = text.chars().filter(|c| *c != ',').collect();
    // `inf` and `NaN` are words to us.
    if plain.is_empty() || !plain.chars().all(is_number) {
        return None;
    }
    plain.parse().ok().filter(|value: &f64| value.is_finite())
}

/// What only ever holds thousands apart: apostrophes, and blanks that break no line.
const GROUPS: [char; 5] = ['\'', '’', '\u{a0}', '\u{202f}', '\u{2009}'];

/// A number whose thousands one of these signs holds apart: then a comma is the point.
fn grouped(text: &str) -> Option<f64> {
    let (whole, fraction) = text.split_once([',', '.']).unwrap_or((text, "0"));
    let mut groups = whole.trim_start_matches('-').split(GROUPS);
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let fits = groups.next().is_some_and(|first| is_digits(first) && first.len() <= 3)
        && groups.all(|group| is_digits(group) && group.len() == 3)
        && is_digits(fraction);
    if fits { format!("{}.{fraction}", whole.replace(GROUPS, "")).parse().ok() } else { None }
}

/// A number of a program that never holds thousands apart: its comma is the point of a locale.
pub(super) fn ungrouped(text: &str) -> Option<f64> {
    let text = text.trim();
    match text.split_once(',') {
        Some((whole, fraction)) if !whole.contains('.') && !fraction.contains(['.', ',']) => {
            let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
            if fraction.is_empty() || !digits(fraction.split(['e', 'E']).next()?) {
                return number(text);
            }
            number(&format!("{whole}.{fraction}"))
        }
        _ => number(text),
    }
}

/// Whether the commas of a number hold thousands apart; one at its end belongs to the sentence around it.
fn has_thousands(text: &str) -> bool {
    let whole = text.trim_start_matches(['+', '-']).trim_end_matches(',');
    let (whole, fraction) = whole.split_once('.').unwrap_or((whole, ""));
    match whole.split_once(',') {
        _ if fraction.contains(',') => false,
        None => true,
        Some((first, _)) => {
            // Groups of two are those of India; the last one has three digits everywhere.
            let last = whole.rsplit(',').next().unwrap_or_default();
            !first.is_empty() && !first.starts_with('0') && last.len() == 3 && !whole.contains(",,")
        }
    }
}

/// A number that may end in `K`, `M`, `G` or `T` for thousands, millions and so on; `16.4K` is 16400.
pub(super) fn scaled(text: &str) -> Option<f64> {
    let text = text.trim();
    match multiple(text) {
        Some(factor) => Some(number(&text[..text.len() - 1])? * factor),
        None => number(text),
    }
}

/// What the letter at the end of such a number stands for; absent where there is none.
pub(super) fn multiple(text: &str) -> Option<f64> {
    Some(match text.trim_end().chars().last()? {
        'K' | 'k' => 1e3,
        'M' | 'm' => 1e6,
        'G' | 'g' => 1e9,
        'T' | 't' => 1e12,
        _ => return None,
    })
}

/// A whole number with or without thousands commas.
pub(super) fn whole_number(text: &str) -> Option<u64> {
    super::draft::whole(number(text)?)
}

/// A count: a whole number, whatever the locale puts between its thousands (a comma, a point, a blank, an apostrophe, or a sign
/// that was no UTF-8). Nothing for one with decimals: it is no count.
pub(super) fn count(text: &str) -> Option<u64> {
    let text = text.trim();
    let marks = ['.', ',', ' ', '\'', '’', '\u{a0}', '\u{202f}', char::REPLACEMENT_CHARACTER];
    let is_digits = |group: &str| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit());
    if is_digits(text) {
        return text.parse().ok();
    }
    let is_first = |group: &str| is_digits(group) && group.len() <= 3 && !group.starts_with('0');
    let is_group = |group: &str| is_digits(group) && group.len() == 3;
    if text.split_once(marks).is_some_and(|(first, rest)| is_first(first) && rest.split(marks).all(is_group)) {
        return text.replace(marks, "").parse().ok();
    }
    // `1.2346E+10`, of a column that was too narrow.
    let value = number(text).filter(|value| value.fract() == 0.0)?;
    super::draft::whole(value)
}

/// A duration with its unit, such as `4.66ms`, `757.40us`, `.96ms`, `124.71us`, `1.2s`, `3.5 min`, in nanoseconds; nothing
/// without a unit.
pub(super) fn duration_ns(text: &str) -> Option<f64> {
    let text = text.trim();
    let at = text.find(|c: char| c.is_alphabetic() && c != 'E' && c != 'e')?;
    let factor = match text[at..].trim() {
        "ns" | "nsec" | "nsecs" => 1.0,
        "us" | "usec" | "usecs" | "µs" | "μs" => 1e3,
        "ms" | "msec" | "msecs" => 1e6,
        "s" | "sec" | "secs" => 1e9,
        "m" | "min" | "mins" => 60e9,
        "h" | "hr" | "hrs" => 3_600e9,
        _ => return None,
    };
    Some(number(&text[..at])? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_reports_are_read() {
        let read: Vec<Option<f64>> =
            ["1,234.5", ".9", "1.69E+05", " 7 ", "-3", "", "N/A", "#####", "inf", "1 2"].map(number).into();
        let expected = [Some(1_234.5), Some(0.9), Some(169_000.0), Some(7.0), Some(-3.0), None, None, None, None, None];
        assert_eq!(read, expected);
        assert_eq!(
            ["16.4K", "4.2M", "359K", "12", "K", "x"].map(scaled),
            [Some(16_400.0), Some(4_200_000.0), Some(359_000.0), Some(12.0), None, None]
        );
    }

    #[test]
    fn a_decimal_comma_makes_no_number_ten_times_as_large() {
        assert_eq!(["0,75", "18,9", "1,5", ",009", "0,125", "1,2345", "1.234,5"].map(number), [None; 7]);
        assert_eq!(
            ["1,234", "12,34,567", "-1,234.5", "17,"].map(number),
            [1_234.0, 1_234_567.0, -1_234.5, 17.0].map(Some)
        );
    }

    #[test]
    fn thousands_may_be_held_apart_by_apostrophes_and_narrow_blanks() {
        let written = ["1'234'567,5", "1\u{a0}234\u{a0}567,5", "1\u{202f}234\u{202f}567.5", "1’234’567,5"];
        assert_eq!(written.map(number), [Some(1_234_567.5); 4]);
        assert_eq!(
            ["-12\u{a0}345", "12'34", "1'2345", "'", "1'234,"].map(number),
            [Some(-12_345.0), None, None, None, None]
        );
    }

    #[test]
    fn where_nothing_is_grouped_a_comma_is_the_point() {
        assert_eq!(
            ["30,553", ",52", "-1,5", "3270,779946", "1,5E+3", "7", "1.5", "12,"].map(ungrouped),
            [30.553, 0.52, -1.5, 3_270.779_946, 1_500.0, 7.0, 1.5, 12.0].map(Some)
        );
        assert_eq!(["1.234,5", "1,234,5", ",", "x", ""].map(ungrouped), [None; 5]);
    }

    #[test]
    fn counts_are_whole_whatever_stands_between_thousands() {
        let written =
            ["1.234.567", "1,234,567", "1 234 567", "1'234'567", "1\u{a0}234\u{202f}567", "1234567", "1.234567E+6"];
        assert_eq!(written.map(count), [Some(1_234_567); 7]);
        assert_eq!(["4.096", "0", "18446744073709551615"].map(count), [Some(4_096), Some(0), Some(u64::MAX)]);
        assert_eq!(["1.5", "0.125", "1 2", "12 34", "1..234", "", "-1", "####", "1,5"].map(count), [None; 9]);
    }

    #[test]
    fn durations_have_units() {
        let read = ["4.66ms", "757.40us", ".96ms", "1.2s", "3 min", "12", "5 apples"].map(duration_ns);
        assert_eq!(read, [Some(4.66e6), Some(757_400.0), Some(0.96e6), Some(1.2e9), Some(180e9), None, None]);
    }
}
