//! Parts of lines of normal output, which may have anything before them: a log's time, a container's name.

use std::borrow::Cow;

use crate::numbers;

/// Text without the escape sequences that colour a terminal.
pub fn without_colours(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut parts = text.split('\u{1b}');
    plain.push_str(parts.next().unwrap_or(""));
    for part in parts {
        // `ESC [ parameters letter`
        let rest = match part.strip_prefix('[') {
            Some(sequence) => match sequence.find(|c: char| !c.is_ascii_digit() && !";?".contains(c)) {
                Some(at) => sequence.get(at + 1..).unwrap_or(""),
                None => "",
            },
            None => part,
        };
        plain.push_str(rest);
    }
    Cow::Owned(plain)
}

/// What stands before a word of a line and what follows it; the word begins where no letter or digit stands before it.
pub fn around<'a>(line: &'a str, word: &str) -> Option<(&'a str, &'a str)> {
    line.match_indices(word).find_map(|(at, _)| {
        let before = line.get(..at)?;
        let is_word = !before.chars().next_back().is_some_and(char::is_alphanumeric);
        is_word.then(|| Some((before, line.get(at + word.len()..)?))).flatten()
    })
}

/// What follows a word of a line.
pub fn after<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    around(line, word).map(|(_, after)| after)
}

/// The value of `name=value` in a line, up to a comma or blank; blanks after `=` are for alignment.
pub fn value<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let rest = after(line, name)?.strip_prefix('=')?.trim_start();
    let end = rest.find([',', ' ', '\t', ')', ';']).unwrap_or(rest.len());
    rest.get(..end)
}

/// The number of `name=12.3k` in a line.
pub fn figure(line: &str, name: &str) -> Option<f64> {
    numbers::scaled(value(line, name)?.trim_end_matches('%'))
}

/// The name of a job, whose line begins with `words` words of a log.
pub fn without_words(text: &str, words: usize) -> &str {
    let mut rest = text.trim_start();
    for _ in 0..words {
        match rest.find(char::is_whitespace) {
            Some(at) => rest = rest.get(at..).unwrap_or("").trim_start(),
            None => return rest,
        }
    }
    rest
}

/// A number with a unit of bytes: `1969MiB`, `119MB`, `557417B`, or of bits, as rates have it with `unit_base=1`: `15.4Mibit`;
/// the unit by which fio names it now, and how many bytes one is. Up to 2.17 fio wrote `KB` for what it calls `KiB` now.
pub fn bytes(text: &str, is_old: bool) -> Option<(f64, String, f64)> {
    let text = text.trim();
    let at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (digits, unit) = text.split_at(at);
    let number = numbers::number(digits)?;
    let unit = unit.trim().trim_end_matches("/s");
    let (prefix, name, bytes) = match unit.strip_suffix("bit") {
        Some(prefix) => (prefix, "bit", 1.0 / 8.0),
        None => (unit.trim_end_matches(['B', 'b']), "B", 1.0),
    };
    let letter = prefix.chars().next().map(|c| c.to_ascii_uppercase());
    let power = letter.map_or(Some(0), |letter| "KMGTP".find(letter).map(|power| power + 1))?;
    let is_iec = prefix.contains('i') || (is_old && !prefix.starts_with('k'));
    let scale = if is_iec { 1_024_f64 } else { 1_000.0 }.powi(power as i32) * bytes;
    let name = match letter {
        None => name.to_owned(),
        Some(letter) if is_iec => format!("{letter}i{name}"),
        Some('K') => format!("k{name}"),
        Some(letter) => format!("{letter}{name}"),
    };
    Some((number, name, scale))
}

/// A unit of time as fio's normal output names it, in nanoseconds, and its short name.
pub fn time_unit(text: &str) -> Option<(f64, &'static str)> {
    match text.trim() {
        "nsec" => Some((1.0, "ns")),
        "usec" => Some((1e3, "us")),
        "msec" => Some((1e6, "ms")),
        "sec" => Some((1e9, "s")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_behind_whatever_stands_before() {
        assert_eq!(after("vm1 |   clat (usec): min=1", "clat ("), Some("usec): min=1"));
        assert_eq!(after("  clat (usec): min=1", "lat ("), None);
        assert_eq!(value("min=   17, max=1474.2K, avg=7", "max"), Some("1474.2K"));
        assert_eq!(figure("min=   17, max=1474.2K, avg=7", "min"), Some(17.0));
        assert_eq!(without_words("2026-01-01T00:00:00Z  my job", 1), "my job");
    }

    #[test]
    fn units_of_bytes_have_changed() {
        let read = |text, is_old| bytes(text, is_old).map(|(number, unit, scale)| (number * scale, unit));
        assert_eq!(read("2KB", true), Some((2_048.0, "KiB".to_owned())));
        assert_eq!(read("2kB", false), Some((2_000.0, "kB".to_owned())));
        assert_eq!(read("1.5MiB/s", false), Some((1_572_864.0, "MiB".to_owned())));
        assert_eq!(read("7B/s", true), Some((7.0, "B".to_owned())));
        assert_eq!(read("x", true), None);
        assert_eq!(read("8.0Mibit/s", false), Some((1_048_576.0, "Mibit".to_owned())), "unit_base=1");
        assert_eq!(read("8.0kbit/s", false), Some((1_000.0, "kbit".to_owned())));
        assert_eq!(read("16bit/s", false), Some((2.0, "bit".to_owned())));
    }

    #[test]
    fn colours_are_taken_off() {
        assert_eq!(without_colours("\u{1b}[1;32mgreen\u{1b}[0m job"), "green job");
    }
}
