//! What can be wrong with ORION's command line and its list of devices.

use std::io;
use std::path::{Path, PathBuf};

use miette::Diagnostic;

use super::option::OPTIONS;
use crate::config::Origin;

/// Why ORION's words cannot be followed.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[expect(missing_docs, reason = "each variant's message says what its fields are")]
pub enum OrionProblem {
    /// A word where an option should stand.
    #[error("ORION has no option `{word}`")]
    #[diagnostic(help("{}", hint_for_unknown(word)))]
    UnknownOption { word: String },
    /// An option at the end, or before another one, that should have a value.
    #[error("`-{option}` has no value")]
    #[diagnostic(help("{}", meaning_of(option)))]
    NoValue { option: &'static str },
    /// An option that is there twice.
    #[error("`-{option}` is given twice")]
    #[diagnostic(help("{}", meaning_of(option)))]
    Twice { option: &'static str },
    /// A value that its option does not accept.
    #[error("`-{option} {value}` is not {wanted}")]
    #[diagnostic(help("{}", meaning_of(option)))]
    BadValue { option: &'static str, value: String, wanted: String },
    /// No `-run`.
    #[error("`-run` is missing, so there is nothing to walk")]
    #[diagnostic(help("write `-run simple` for a first look, or `-help` for all that there is"))]
    NoRun,
    /// An option that belongs to another kind of run.
    #[error("`-{option}` does not go with `-run {run}`, which sets it by itself")]
    #[diagnostic(help("leave it out, or write `-run advanced {}` and every option is free", same_as(run)))]
    NotForRun { option: &'static str, run: &'static str },
    /// A number that this part of the matrix needs.
    #[error("`-matrix {matrix}` needs `-{option}`")]
    #[diagnostic(help("{}", meaning_of(option)))]
    MatrixNeeds { matrix: &'static str, option: &'static str },
    /// A number that this part of the matrix has no use for.
    #[error("`-{option}` does not go with `-matrix {matrix}`, which varies it")]
    #[diagnostic(help("leave it out, or write `-matrix max` for all up to both numbers"))]
    MatrixVaries { matrix: &'static str, option: &'static str },
    /// A matrix of the one point at which nothing happens.
    #[error("`-matrix {matrix}` with `-num_small 0` and `-num_large 0` asks for no load at all")]
    #[diagnostic(help("give one of them a number from 1 on"))]
    NothingToDo { matrix: &'static str },
    /// The list of devices is not there.
    #[error("there is no `{}`, which lists the devices to load", path.display())]
    #[diagnostic(help("{}", hint_for_missing(path)))]
    NoLunFile { path: PathBuf },
    /// The list of devices cannot be read.
    #[error("cannot read the list of devices `{}`: {reason}", path.display())]
    #[diagnostic(help("look at its permissions; it is a text file"))]
    LunFileUnreadable { path: PathBuf, reason: io::Error },
    /// The list of devices is far too long to be one.
    #[error("`{}` is no list of devices: it is larger than {limit}", path.display())]
    #[diagnostic(help("{WHAT_A_LIST_HOLDS}"))]
    LunFileTooLarge { path: PathBuf, limit: crate::units::Bytes },
    /// A list without a device.
    #[error("`{}` lists no device", path.display())]
    #[diagnostic(help("{WHAT_A_LIST_HOLDS}"))]
    NoLuns { path: PathBuf },
    /// A device that is listed twice, and would be loaded twice.
    #[error("{origin}: `{lun}` is there twice, first in line {first_line}")]
    #[diagnostic(help("list each device once: it would get twice the load of the others"))]
    LunTwice { origin: Origin, lun: String, first_line: usize },
    /// Bytes that are no text.
    #[error("{origin}: the line holds a character that is not printable text")]
    #[diagnostic(help("save the list as UTF-8 text and type the line again"))]
    LunUnprintable { origin: Origin },
}

const WHAT_A_LIST_HOLDS: &str =
    "write into it one device or file a line, with its full path such as `/dev/mapper/data1`";

fn same_as(run: &str) -> &'static str {
    match run {
        "normal" => "-matrix detailed",
        "oltp" => "-matrix row -num_large 0",
        "dss" => "-matrix col -num_small 0",
        _ => "-matrix basic",
    }
}

fn hint_for_missing(list: &Path) -> String {
    match list.to_string_lossy().strip_suffix(".lun.lun") {
        Some(name) => format!("`-testname` is the name without its ending: write `-testname {name}`"),
        None => WHAT_A_LIST_HOLDS.to_owned(),
    }
}

fn meaning_of(option: &str) -> String {
    OPTIONS
        .iter()
        .find(|row| row.name == option)
        .map(|row| match row.value {
            Some(value) => format!("`-{option} {value}`: {}", row.meaning),
            None => format!("`-{option}`: {}", row.meaning),
        })
        .expect("only names of the table are reported")
}

fn hint_for_unknown(word: &str) -> String {
    // Pages on the web print a dash longer than the one that is typed.
    if let Some(bare) = word.strip_prefix(['\u{2010}', '\u{2011}', '\u{2012}', '\u{2013}', '\u{2014}', '\u{2212}']) {
        return format!("it begins with a long dash: type `-{bare}`");
    }
    let bare = word.trim_start_matches('-');
    let plain = |name: &str| name.replace('_', "").to_ascii_lowercase();
    if let Some(row) = OPTIONS.iter().find(|row| plain(row.name) == plain(bare)) {
        return format!("did you mean `-{}`? ORION's options have one dash and these very letters", row.name);
    }
    if word.starts_with("--") {
        return "ORION's options have one dash; options of Plimsoll's own stand before the first of them".to_owned();
    }
    "`-help` lists the options".to_owned()
}
