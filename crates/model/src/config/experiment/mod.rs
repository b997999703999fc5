//! Experiments: an evening of measurements in one file (`docs/recipes/compare.md` shows its keys).
//!
//! What is read here is what the user wrote, typed and checked. What follows from it, step by step, is a plan.

mod read;

use std::fmt;
use std::str::FromStr;

use super::ConfigError;

pub use read::{Around, Entry, Experiment, ExperimentError, MAX_REPEATS, is_hidden};

// What the user calls the things that vary between runs.

/// A tag of a run, such as `vm=d8s`: a key of letters, digits, `_`, `.` and `-`, and any printable value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag {
    /// What varies, such as `vm`.
    pub key: String,
    /// What it was in this run, such as `d8s`.
    pub value: String,
}

impl FromStr for Tag {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let key_is_plain = |key: &str| {
            !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
        };
        match text.split_once('=') {
            Some((key, value)) if key_is_plain(key) && !value.is_empty() && !value.chars().any(char::is_control) => {
                Ok(Self { key: key.to_owned(), value: value.to_owned() })
            }
            _ => Err(ConfigError::Tag { text: text.to_owned() }),
        }
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

#[cfg(test)]
mod tag_tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_value_may_hold_spaces_and_equal_signs() {
        let tag: Tag = "disk=p30 x 2, cache=read".parse().unwrap();
        assert_eq!((tag.key.as_str(), tag.value.as_str()), ("disk", "p30 x 2, cache=read"));
    }

    #[test]
    fn refuses_what_is_not_key_and_value() {
        for text in ["", "vm", "=d8s", "vm=", "v m=d8s", "vm=d8s\n", "größe=1"] {
            assert!(text.parse::<Tag>().is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(text in "[a-z_.-]{1,8}=[ -~]{1,20}") {
            let tag: Tag = text.parse().unwrap();
            prop_assert_eq!(tag.to_string(), text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Nanos;

    const WHOLE: &str = r#"
title = "Disks"
budget = "6h"
before = "make ready"

[each]
repeats = 2
pause = 30
drop_caches = true
before = "clear {vm}"
tags = { site = "lab" }

[matrix]
threads = [8, 16]
cache = ["none", "read"]

[[step]]
run = """plimsoll slob run -s 4 -t {threads}
  --target {_target} 'a b'"""
cases = [
  { vm = "D8s_v3", disk = "p30x2", _target = "sim:" },
  { vm = "E32_v3", disk = "p60x2", _target = "sim:" },
]

[[step]]
name = "scan"
run = "io run --path /dev/sdb --pattern read"
repeats = 1
pause = "2m"
drop_caches = false
after = "true"
matrix = { ratio = [0.5, true] }
tags = { site = "field", kind = "scan" }
"#;

    #[test]
    fn a_whole_file_is_read_and_steps_inherit_what_they_do_not_say() {
        let read = Experiment::parse("evening.toml", WHOLE).unwrap();
        assert_eq!((read.title.as_deref(), read.budget), (Some("Disks"), Some(Nanos::seconds(21_600))));
        assert_eq!((read.before.as_deref(), read.after.as_deref()), (Some("make ready"), None));
        let [slob, scan] = &read.entries[..] else { panic!("{} entries", read.entries.len()) };
        assert_eq!((slob.line, slob.name.as_str(), scan.line, scan.name.as_str()), (17, "slob run", 25, "scan"));
        assert_eq!(slob.words, ["slob", "run", "-s", "4", "-t", "{threads}", "--target", "{_target}", "a b"]);
        assert_eq!((slob.cases.len(), slob.cases[0]["disk"].as_str()), (2, "p30x2"));
        let names = |entry: &Entry| entry.axes.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        assert_eq!(
            (names(slob), names(scan)),
            (vec!["threads".into(), "cache".into()], vec!["threads".into(), "cache".into(), "ratio".into()])
        );
        assert_eq!(scan.axes[2].1, ["0.5", "true"]);
        let of = |entry: &Entry| (entry.around.repeats, entry.around.pause, entry.around.drop_caches);
        assert_eq!((of(slob), of(scan)), ((2, Nanos::seconds(30), true), (1, Nanos::seconds(120), false)));
        assert_eq!((scan.around.before.as_deref(), scan.around.after.as_deref()), (Some("clear {vm}"), Some("true")));
        assert_eq!(slob.around.tags["site"], "lab");
        assert_eq!((scan.around.tags["site"].as_str(), scan.around.tags["kind"].as_str()), ("field", "scan"));
        assert_eq!((scan.cases.len(), scan.cases[0].len()), (1, 0));
    }

    #[test]
    fn whatever_is_wrong_is_an_error_with_its_line_and_a_hint() {
        let step = "[[step]]\nrun = \"slob run 8\"\n";
        for (text, line, says) in [
            ("", 1, "there is no `[[step]]`"),
            ("title = 3\n[[step]]\nrun = \"slob run 8\"", 1, "invalid type"),
            ("[[step]]\nrum = \"slob run 8\"", 2, "unknown field `rum`"),
            (&format!("\nbugdet = \"1h\"\n{step}"), 2, "unknown field `bugdet`"),
            (&format!("budget = \"soon\"\n{step}"), 1, "`budget` is not a time"),
            (&format!("budget = 0\n{step}"), 1, "`budget` is 0"),
            (&format!("[each]\npause = -1\n{step}"), 2, "`pause` is not a time"),
            (&format!("[each]\nrepeats = 0\n{step}"), 2, "`repeats` is 0"),
            (&format!("{step}repeats = 100"), 3, "`repeats` is 100"),
            (&format!("[matrix]\nvm = []\n{step}"), 2, "`vm` has no values"),
            (&format!("[matrix]\nvm = [\"a\", \"a\"]\n{step}"), 2, "the value `a` twice"),
            (&format!("[matrix]\nvm = [[1]]\n{step}"), 2, "neither text nor a number"),
            (&format!("[matrix]\nvm = [\"\"]\n{step}"), 2, "`vm=` cannot be a tag"),
            (&format!("[matrix]\n\"v m\" = [1]\n{step}"), 2, "`v m` cannot be the name"),
            (&format!("[matrix]\nexperiment = [1]\n{step}"), 2, "a name of the program's own"),
            (
                &format!("[matrix]\nvm = [1]\n{step}matrix = {{ vm = [2] }}"),
                5,
                "in the matrix of the file and of the step",
            ),
            (&format!("[matrix]\nvm = [1]\n{step}cases = [{{ vm = 2 }}]"), 5, "in `cases` and in a matrix"),
            (&format!("{step}cases = [{{ vm = 2 }},\n{{ vm = 2 }}]"), 4, "this case stands here twice"),
            ("[[step]]\nrun = \"slob 'run\"", 2, "a quotation mark that is not closed"),
            ("[[step]]\nrun = \"plimsoll\"", 2, "`run` is empty"),
            (&format!("{step}{step}"), 3, "two steps are called `slob run`"),
            (&format!("{step}{step}name = \"slob run\""), 3, "two steps are called `slob run`"),
            ("[[step]]\n[", 2, ""),
        ] {
            let error = Experiment::parse("e.toml", text).unwrap_err();
            assert!(error.problem.contains(says), "{text}\n{error}");
            assert_eq!(error.line, line, "{text}\n{error}");
            assert!(
                error.to_string().starts_with(&format!("e.toml, line {line}: ")) && !error.hint.is_empty(),
                "{error:?}"
            );
        }
    }
}
