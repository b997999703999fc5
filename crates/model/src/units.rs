//! Bytes, nanoseconds and rates: one parser and one printer each; and words as a shell takes them.
//!
//! Sizes are binary (`1K` = 1024 bytes) as in `slob.conf`; throughput is printed in MB/s of 1,000,000 bytes, as `fio`
//! and iostat's users quote device limits. Durations are kept as whole nanoseconds.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Why a size, duration or rate could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{input}` is not {wanted}: {reason}")]
pub struct UnitError {
    /// The text as the user gave it.
    pub input: String,
    /// What was expected, with an example.
    pub wanted: &'static str,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// Letters to insert, delete or replace to make one word of the other (Levenshtein). For short words: the cost is the
/// product of both lengths, so a word far longer than any name is not measured.
pub fn edit_distance(known: &str, other: &str) -> usize {
    if other.len() > 2 * known.len() {
        return other.len();
    }
    let mut row: Vec<usize> = (0..=known.len()).collect();
    for (i, b) in other.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, a) in known.bytes().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[known.len()]
}

/// Groups digits by thousands: `1234567` becomes `1,234,567`. Negative or fractional parts are rounded to whole numbers.
pub fn group_thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut out = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    if value < 0.0 && digits != "0" {
        out.push('-');
    }
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count or rate in up to five characters, with K, M, G or T of thousands: `4.2M`, `61K`, `862`.
pub fn short_count(value: f64) -> String {
    let magnitude = value.abs();
    let (scaled, suffix) = match magnitude {
        m if m < 999.5 => return format!("{value:.0}"),
        m if m < 999_500.0 => (value / 1e3, "K"),
        m if m < 999_500_000.0 => (value / 1e6, "M"),
        m if m < 999_500_000_000.0 => (value / 1e9, "G"),
        _ => (value / 1e12, "T"),
    };
    if scaled.abs() < 9.95 { format!("{scaled:.1}{suffix}") } else { format!("{scaled:.0}{suffix}") }
}

/// A count of waits as AWR prints it, with K, M, G or T of thousands, rounded to at most one decimal: `5M` for 4,982,227, `61K`, `862`.
pub fn awr_count(value: f64) -> String {
    let value = value.round();
    let (unit, suffix) = match value.abs() {
        m if m < 1e3 => return format!("{value:.0}"),
        m if m < 999_950.0 => (1e3, "K"),
        m if m < 999_950_000.0 => (1e6, "M"),
        m if m < 999_950_000_000.0 => (1e9, "G"),
        _ => (1e12, "T"),
    };
    let tenths = (value / (unit / 10.0)).round();
    if tenths % 10.0 == 0.0 { format!("{:.0}{suffix}", tenths / 10.0) } else { format!("{:.1}{suffix}", tenths / 10.0) }
}

/// A share of one as a percentage with one decimal: `0.123` becomes `12.3`.
pub fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

/// One word that a shell reads back as `text`: as it is where nothing in it means anything to a shell, else in single quotes.
pub fn shell_word(text: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "._/-:,+@%=".contains(c);
    // A word that begins with `=` means something to zsh.
    if !text.is_empty() && !text.starts_with('=') && text.chars().all(is_bare) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// A command that can be pasted into a shell.
pub fn shell_command<T: AsRef<str>>(words: impl IntoIterator<Item = T>) -> String {
    words.into_iter().map(|word| shell_word(word.as_ref())).collect::<Vec<_>>().join(" ")
}

/// The same in lines of at most `width` characters, which are pasted together: a line ends between words with a backslash, and a
/// longer word stays whole.
pub fn shell_lines<T: AsRef<str>>(words: impl IntoIterator<Item = T>, width: usize) -> Vec<String> {
    const GOES_ON: &str = " \\";
    let mut lines = vec![String::new()];
    for word in words {
        let word = shell_word(word.as_ref());
        let line = lines.last_mut().expect("it starts with one line and only grows");
        if line.is_empty() {
            line.push_str(&word);
        } else if line.chars().count() + 1 + word.chars().count() + GOES_ON.len() <= width {
            line.push(' ');
            line.push_str(&word);
        } else {
            line.push_str(GOES_ON);
            lines.push(word);
        }
    }
    lines
}

/// The words of a line as a shell takes them: blanks and ends of lines between words, quotation marks and backslashes understood,
/// nothing expanded. Absent where a quotation mark is not closed, or nothing follows a backslash.
pub fn shell_split(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None::<char>);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(mark), letter) if letter == mark => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            // Between double quotes a backslash stands for itself before all but these.
            (None | Some('"'), '\\') => match letters.next()? {
                '\n' => {}
                next if quote.is_none() || "\"\\$`".contains(next) => word.get_or_insert_default().push(next),
                next => word.get_or_insert_default().extend(['\\', next]),
            },
            (None, letter) if letter.is_ascii_whitespace() => words.extend(word.take()),
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// A number of bytes. Parsed from `64M`, `1.5G`, `8k`, `4096`, with or without `B` or `iB`; all suffixes are binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
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

/// A duration in whole nanoseconds. Parsed from `30` (seconds), `250ms`, `1.5s`, `10m`, `2h`, `100us`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Nanos(pub u64);

const NANOS_WANTED: &str = "a duration such as `30s`, `250ms` or `10m`";
const SECOND: u64 = 1_000_000_000;
const NANOS_UNITS: [(&str, u64); 8] = [
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
        let fail = |reason| UnitError { input: input.to_owned(), wanted: NANOS_WANTED, reason };
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
        let (_, scale) = NANOS_UNITS
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
    use std::process::Command;

    use super::*;

    #[test]
    fn edit_distance_counts_letters() {
        for (a, b, distance) in [("SCALE", "SCALE", 0), ("SCALE", "SCALES", 1), ("SCALE", "SALE", 1), ("SCALE", "", 5)]
        {
            assert_eq!(edit_distance(a, b), distance, "{a} {b}");
        }
    }

    #[test]
    fn groups_thousands() {
        for (value, text) in
            [(0.0, "0"), (999.0, "999"), (1_000.0, "1,000"), (1_234_567.4, "1,234,567"), (-1_234.0, "-1,234")]
        {
            assert_eq!(group_thousands(value), text);
        }
    }

    #[test]
    fn shortens_counts_to_five_characters() {
        for (value, text) in
            [(862.0, "862"), (4_200_000.0, "4.2M"), (61_000.0, "61K"), (999_600.0, "1.0M"), (9_960.0, "10K")]
        {
            assert_eq!(short_count(value), text);
        }
    }

    #[test]
    fn shortens_counts_as_awr_does() {
        for (value, text) in [
            (862.0, "862"),
            (999.7, "1K"),
            (4_200_000.0, "4.2M"),
            (4_853_007.0, "4.9M"),
            (4_982_227.0, "5M"),
            (13_345_000.0, "13.3M"),
            (999_949.0, "999.9K"),
            (999_950.0, "1M"),
            (61_000.0, "61K"),
            (999_600.0, "999.6K"),
        ] {
            assert_eq!(awr_count(value), text);
        }
    }

    #[test]
    fn words_that_mean_nothing_to_a_shell_stay_as_they_are() {
        let words = ["plimsoll", "slob", "run", "UPDATE_PCT=20", "--target", "dir:/u01/a_b-c.d", "--threads=1,2,4"];
        assert_eq!(shell_command(words), words.join(" "));
    }

    #[test]
    fn a_shell_reads_back_what_was_written() {
        let words = [
            "",
            "a b",
            "1,2,…,64",
            "$HOME",
            "*",
            "(x)",
            "it's",
            "a\"b",
            "`id`",
            "!",
            "~",
            "=ls",
            "\\",
            "#",
            ";&|<>",
            "\t",
        ];
        let said =
            Command::new("sh").arg("-c").arg(format!("printf '%s\\0' {}", shell_command(words))).output().unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        assert_eq!(said.split_terminator('\0').collect::<Vec<_>>(), words);
    }

    #[test]
    fn a_line_is_split_as_a_shell_splits_it() {
        let line = r#"a  'b c' "d \"e\" \f" g\ h '' i'j'"k" \\ l"#;
        let split = shell_split(line).unwrap();
        assert_eq!(split, ["a", "b c", r#"d "e" \f"#, "g h", "", "ijk", r"\", "l"]);
        let said = Command::new("sh").arg("-c").arg(format!("printf '%s\\0' {line}")).output().unwrap();
        assert_eq!(String::from_utf8(said.stdout).unwrap().split_terminator('\0').collect::<Vec<_>>(), split);
        assert_eq!(shell_split("\n a \\\n b\n").unwrap(), ["a", "b"]);
        assert_eq!(shell_split(&shell_command(["it's", "", "$x"])).unwrap(), ["it's", "", "$x"]);
        for open in ["'a", "a \"b", "a\\"] {
            assert_eq!(shell_split(open), None, "{open}");
        }
    }

    #[test]
    fn lines_are_pasted_together_and_no_word_is_broken() {
        let words = ["printf", "%s\\0", "a  b", "c", "1,2,…,64", "a long word with blanks in it", "d"];
        let lines = shell_lines(words, 20);
        assert!(lines.iter().all(|line| line.chars().count() <= 20 || !line.contains(' ') || line.contains("long")));
        assert!(lines.len() > 2 && lines[..lines.len() - 1].iter().all(|line| line.ends_with(" \\")), "{lines:?}");
        let said = Command::new("sh").arg("-c").arg(lines.join("\n         ")).output().unwrap();
        assert_eq!(String::from_utf8(said.stdout).unwrap().split_terminator('\0').collect::<Vec<_>>(), words[2..]);
        assert_eq!(shell_lines(["a", "b"], 80), ["a b"]);
    }
}

#[cfg(test)]
mod bytes_tests {
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

#[cfg(test)]
mod nanos_tests {
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
