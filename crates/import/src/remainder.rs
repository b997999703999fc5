//! Lines that no reader knows: what holds a value is not dropped without a remark.

use super::console;

/// Lines of one file that are shown; the rest is counted.
const MAX_SHOWN: usize = 3;
const MAX_CHARS: usize = 60;

/// Words of lines that readers leave out on purpose, by the kind of file: they hold a number, and no result.
const IGNORED: [(&str, &[&str]); 13] = [
    ("biolatency", &["Attaching "]),
    // The page of a title.
    ("event-histogram", &[" page "]),
    ("pylatencymap", &[" rows selected", ":tick-"]),
    ("fio", &["Laying out IO file", "fio: ", "Jobs: "]),
    // The last one is what the scripts of its manual say before each test.
    (
        "hammerdb",
        &[
            "created - WAIT IDLE",
            "created MONITOR - WAIT IDLE",
            "Timer: ",
            "delay for ",
            "Initialized Jobs",
            " VU TEST",
        ],
    ),
    ("iperf3", &["OUT OF ORDER", "Server listening on ", " SMP ", "iperf 3", "Time: ", "Accepted connection"]),
    ("oratcptest", &["Mbyte = "]),
    ("orion", &["FILEs found", "Setting ftype=", "Calibration will take"]),
    ("pgbench", &["Permanently added"]),
    ("pgio", &["Launching sessions."]),
    // The kernel, where both write to one log.
    ("stress-ng", &["kern  :", " kernel: "]),
    ("slob", &["runit.sh: line "]),
    (
        "sysbench",
        &[
            "multi-threaded system evaluation benchmark",
            "Report intermediate results every ",
            "LuaJIT",
            "Warming up for ",
            "Random number generator seed",
            "Periodic FSYNC enabled",
            "MiB total file size",
            " files, ",
        ],
    ),
];
/// How lines of any kind begin that authors and OSWatcher write.
const OF_ALL: [&str; 7] = ["Copyright", "#", "--", "(C)", "SNAP_INTERVAL", "CPU_CO", "VCPUS"];
/// Kinds that SQL*Plus spools, with statements and the numbers of their lines.
const SPOOLED: [&str; 3] = ["calibrate-io", "event-histogram", "pylatencymap"];
/// A line of at least so many words, of which few are values, is prose.
const WORDS_OF_PROSE: usize = 8;

/// Lines that were not known and hold a value.
#[derive(Debug, Clone, Default)]
pub(super) struct Remainder {
    shown: Vec<(u64, String)>,
    count: u64,
    ignored: u64,
}

impl Remainder {
    /// Takes a line of a file of this kind that its reader does not know.
    pub(super) fn add(&mut self, kind: &str, is_private: bool, line: u64, text: &str) {
        let text = text.trim();
        if !holds_value(text) || is_ignored(kind, text) {
            self.ignored += 1;
            return;
        }
        self.count += 1;
        if self.shown.len() < MAX_SHOWN {
            let shown = if is_private || may_be_secret(text) {
                "not shown, since it may hold a secret".to_owned()
            } else {
                format!("{:?}", text.chars().take(MAX_CHARS).collect::<String>())
            };
            self.shown.push((line, shown));
        }
    }

    /// How many lines hold no value or are left out on purpose, and how many hold one.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.ignored, self.count)
    }

    /// What to say of each that is shown, with its line, and of the rest together.
    pub(super) fn into_words(self) -> impl Iterator<Item = (Option<u64>, String)> {
        let more = self.count - self.shown.len() as u64;
        let rest = (more > 0).then(|| (None, format!("{more} more lines that hold values are in no known form")));
        let words = |(line, shown)| (Some(line), format!("a line that holds a value is in no known form: {shown}"));
        self.shown.into_iter().map(words).chain(rest)
    }
}

/// Whether a line has a number, also with a unit behind it, and is no prose.
fn holds_value(text: &str) -> bool {
    let is_value = |word: &str| {
        let word = word.trim_matches(|char: char| !char.is_alphanumeric());
        let digits = word.trim_end_matches(|char: char| char.is_alphabetic() || matches!(char, '%' | '/'));
        let is_number = |char: char| char.is_ascii_digit() || matches!(char, '.' | ',');
        let begins = digits.starts_with(|char: char| char.is_ascii_digit());
        begins && word.len() - digits.len() <= 5 && digits.chars().all(is_number)
    };
    let words = || text.split([' ', '\t', ',', ';', '=', '|', '(', ')']).filter(|word| !word.is_empty());
    let (all, values) = (words().count(), words().filter(|word| is_value(word)).count());
    values > 0 && (all < WORDS_OF_PROSE || values * 4 >= all)
}

fn is_ignored(kind: &str, text: &str) -> bool {
    let mut of_kind = IGNORED.iter().filter(|(of, _)| kind.starts_with(of)).flat_map(|(_, words)| *words);
    // An option of a job file of fio, and one of its terse rows.
    let is_one_word = kind.starts_with("fio") && !text.contains(' ') && text.contains(['=', ';']);
    of_kind.any(|words| text.contains(words))
        || OF_ALL.iter().any(|beginning| text.starts_with(beginning))
        || is_one_word
        || (SPOOLED.contains(&kind) && is_statement(text))
        || console::after_prompt(text).is_some()
}

/// Whether it is a statement of SQL*Plus or a further line of one: `  2  from v$event_histogram`.
fn is_statement(text: &str) -> bool {
    let digits = text.len() - text.trim_start_matches(|char: char| char.is_ascii_digit()).len();
    text.starts_with("SQL>")
        || ((1..=3).contains(&digits) && text.get(digits..).is_some_and(|rest| rest.starts_with("  ")))
}

fn may_be_secret(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["pass", "pwd", "secret", "token", "identified by", "://", "@", "key"].iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_hold_values_are_shown_and_the_rest_is_counted() {
        let mut remainder = Remainder::default();
        for (line, text) in (1..).zip([
            "a word alone",
            "real 0m10.2s",
            "latency\u{1b}[31m p97 = 12.5ms",
            "connect user/hush@db7 12",
            "$ time pgbench -T 60",
            "Copyright 2004",
            "other 17",
            "other 18",
        ]) {
            remainder.add("pgbench", false, line, text);
        }
        assert_eq!(remainder.counts(), (4, 4));
        let words: Vec<(Option<u64>, String)> = remainder.into_words().collect();
        assert_eq!(words.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [Some(3), Some(4), Some(7), None]);
        assert!(words[0].1.ends_with("\"latency\\u{1b}[31m p97 = 12.5ms\""), "{words:?}");
        assert!(words[1].1.contains("may hold a secret") && words[3].1.starts_with("1 more lines"), "{words:?}");
    }
}
