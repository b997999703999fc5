//! Loads that are given as the words of a command, as somebody would type it, to a command that runs others.

use std::ffi::OsString;

use model::config::without_secrets;
use model::units::shell_command;

/// Commands that measure one load in one window.
pub(super) const ONE_LOAD: [&str; 5] = ["host run", "io run", "net run", "orders run", "slob run"];
/// Commands that measure several loads in turn, or one over a long time.
pub(super) const SEVERAL_LOADS: [&str; 9] = [
    "host sweep",
    "io calibrate",
    "io map",
    "io soak",
    "io sweep",
    "net sweep",
    "orders sweep",
    "slob map",
    "slob sweep",
];

/// The command that measures one load while something fails; the load stands behind `--`.
pub(super) const FAILURE: &str = "failure run";

/// What is said once for all loads.
const OF_ALL: [(&str, &str); 3] = [
    ("--runs", "all runs of a measurement are kept in one place"),
    ("--json", "the report is one for all loads"),
    ("--dry-run", "the plan is one for all loads"),
];
/// What writes a file that every turn would write again.
const WRITTEN_AGAIN: &str = "--results";

/// Why a flag cannot stand among the words of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// It is said once for all loads, because.
    OfAll(&'static str),
    /// It names a file that every turn would write.
    WrittenAgain,
}

/// The words without the program's own name, which may stand before them.
pub(super) fn without_program(words: &[OsString]) -> &[OsString] {
    match words {
        [program, rest @ ..] if program == "plimsoll" => rest,
        words => words,
    }
}

/// The words as they can be typed again, secrets removed.
pub(super) fn shown(words: &[OsString]) -> String {
    shell_command(words.iter().map(|word| without_secrets(&word.to_string_lossy())))
}

/// The words with options of the command itself: before `--`, behind which the words of another command stand.
pub(super) fn with_options(mut words: Vec<OsString>, options: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    words.splice(end..end, options);
    words
}

/// Whether the words are one of these commands.
pub(super) fn is_one_of(words: &[OsString], commands: &[&str]) -> bool {
    let first: Vec<&str> = words.iter().take(2).filter_map(|word| word.to_str()).collect();
    commands.contains(&first.join(" ").as_str())
}

/// The first flag that cannot stand among them, and why.
pub(super) fn forbidden(words: &[OsString]) -> Option<(&'static str, Why)> {
    let of = |word: &OsString| {
        let word = word.to_str()?;
        let name = word.split('=').next().unwrap_or(word);
        let of_all = OF_ALL.iter().find(|(flag, _)| *flag == name).map(|(flag, why)| (*flag, Why::OfAll(why)));
        of_all.or_else(|| (name == WRITTEN_AGAIN).then_some((WRITTEN_AGAIN, Why::WrittenAgain)))
    };
    words.iter().find_map(of)
}
