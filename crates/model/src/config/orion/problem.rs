//! What can be wrong with ORION's command line and its list of devices.

use std::io;
use std::path::PathBuf;

use super::option::OPTIONS;
use crate::config::Origin;

/// Why ORION's words cannot be followed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what its fields are")]
pub enum OrionProblem {
    /// A word where an option should stand.
    #[error("ORION has no option `{word}`")]
    UnknownOption { word: String },
    /// An option at the end, or before another one, that should have a value.
    #[error("`-{option}` has no value")]
    NoValue { option: &'static str },
    /// An option that is there twice.
    #[error("`-{option}` is given twice")]
    Twice { option: &'static str },
    /// A value that its option does not accept.
    #[error("`-{option} {value}` is not {wanted}")]
    BadValue { option: &'static str, value: String, wanted: String },
    /// No `-run`.
    #[error("`-run` is missing, so there is nothing to walk")]
    NoRun,
    /// An option that belongs to another kind of run.
    #[error("`-{option}` does not go with `-run {run}`, which sets it by itself")]
    NotForRun { option: &'static str, run: &'static str },
    /// A number that this part of the matrix needs.
    #[error("`-matrix {matrix}` needs `-{option}`")]
    MatrixNeeds { matrix: &'static str, option: &'static str },
    /// A number that this part of the matrix has no use for.
    #[error("`-{option}` does not go with `-matrix {matrix}`, which varies it")]
    MatrixVaries { matrix: &'static str, option: &'static str },
    /// A matrix of the one point at which nothing happens.
    #[error("`-matrix {matrix}` with `-num_small 0` and `-num_large 0` asks for no load at all")]
    NothingToDo { matrix: &'static str },
    /// The list of devices is not there.
    #[error("there is no `{}`, which lists the devices to load", path.display())]
    NoLunFile { path: PathBuf },
    /// The list of devices cannot be read.
    #[error("cannot read the list of devices `{}`: {reason}", path.display())]
    LunFileUnreadable { path: PathBuf, reason: io::Error },
    /// The list of devices is far too long to be one.
    #[error("`{}` is no list of devices: it is larger than {limit}", path.display())]
    LunFileTooLarge { path: PathBuf, limit: crate::units::Bytes },
    /// A list without a device.
    #[error("`{}` lists no device", path.display())]
    NoLuns { path: PathBuf },
    /// A device that is listed twice, and would be loaded twice.
    #[error("{origin}: `{lun}` is there twice, first in line {first_line}")]
    LunTwice { origin: Origin, lun: String, first_line: usize },
    /// Bytes that are no text.
    #[error("{origin}: the line holds a character that is not printable text")]
    LunUnprintable { origin: Origin },
}

const WHAT_A_LIST_HOLDS: &str =
    "write into it one device or file a line, with its full path such as `/dev/mapper/data1`";

impl OrionProblem {
    /// What to do next.
    pub(in crate::config) fn hint(&self) -> String {
        match self {
            Self::UnknownOption { word } => hint_for_unknown(word),
            Self::NoValue { option } | Self::Twice { option } | Self::BadValue { option, .. } => meaning_of(option),
            Self::NoRun => "write `-run simple` for a first look, or `-help` for all that there is".to_owned(),
            Self::NotForRun { run, .. } => {
                let same = match *run {
                    "normal" => "-matrix detailed",
                    "oltp" => "-matrix row -num_large 0",
                    "dss" => "-matrix col -num_small 0",
                    _ => "-matrix basic",
                };
                format!("leave it out, or write `-run advanced {same}` and every option is free")
            }
            Self::MatrixNeeds { option, .. } => meaning_of(option),
            Self::MatrixVaries { .. } => "leave it out, or write `-matrix max` for all up to both numbers".to_owned(),
            Self::NothingToDo { .. } => "give one of them a number from 1 on".to_owned(),
            Self::NoLunFile { path } => {
                let name = path.to_string_lossy();
                match name.strip_suffix(".lun.lun") {
                    Some(name) => format!("`-testname` is the name without its ending: write `-testname {name}`"),
                    None => WHAT_A_LIST_HOLDS.to_owned(),
                }
            }
            Self::NoLuns { .. } | Self::LunFileTooLarge { .. } => WHAT_A_LIST_HOLDS.to_owned(),
            Self::LunFileUnreadable { .. } => "look at its permissions; it is a text file".to_owned(),
            Self::LunTwice { .. } => "list each device once: it would get twice the load of the others".to_owned(),
            Self::LunUnprintable { .. } => "save the list as UTF-8 text and type the line again".to_owned(),
        }
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
