//! ORION's list of devices, `TESTNAME.lun`.

use std::collections::HashMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::problem::OrionProblem;
use super::reading::line_of;
use crate::config::ConfigError;
use crate::config::slob_conf::is_plain_text;
use crate::units::Bytes;

/// Such lists have some lines; what is far larger is something else, such as the device itself.
const LARGEST_FILE: Bytes = Bytes::mib(1);

/// The devices and files of one test, in the order of its list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LunFile {
    /// The list.
    pub path: PathBuf,
    /// Devices and files: at least one, none twice. Whether they exist is not looked at.
    pub luns: Vec<PathBuf>,
    /// What the user should know: lines that ORION itself would not tolerate.
    pub notes: Vec<String>,
}

/// The list of the test that `testname` means: `TESTNAME.lun`.
pub fn lun_file(testname: &str) -> PathBuf {
    PathBuf::from(format!("{testname}.lun"))
}

/// Reads the list of the test that `testname` means.
///
/// # Errors
///
/// [`ConfigError::Orion`] if it is not there, cannot be read, or as [`LunFile::parse`].
pub fn read_luns(testname: &str) -> Result<LunFile, ConfigError> {
    let path = lun_file(testname);
    let unreadable = |reason: std::io::Error| match reason.kind() {
        ErrorKind::NotFound => OrionProblem::NoLunFile { path: path.clone() },
        _ => OrionProblem::LunFileUnreadable { path: path.clone(), reason },
    };
    let mut bytes = Vec::new();
    let file = File::open(&path).map_err(unreadable)?;
    file.take(LARGEST_FILE.0 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > LARGEST_FILE.0 {
        return Err(OrionProblem::LunFileTooLarge { path, limit: LARGEST_FILE }.into());
    }
    LunFile::parse(&String::from_utf8_lossy(&bytes), &path)
}

impl LunFile {
    /// Reads the text of a list: one path a line, blanks around it taken off. Blank lines and lines that begin with `#` are
    /// passed over with a note, since ORION takes every line for a path.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Orion`] if a path is there twice or is not printable text, or if there is none.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let file = path.display().to_string();
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut luns = Vec::new();
        let mut lines: HashMap<&str, usize> = HashMap::new();
        let (mut blank, mut comments) = (0_usize, 0_usize);
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() {
                blank += 1;
            } else if line.starts_with('#') {
                comments += 1;
            } else if !is_plain_text(line) {
                return Err(OrionProblem::LunUnprintable { origin: line_of(&file, index) }.into());
            } else if let Some(first) = lines.insert(line, index) {
                let (origin, first_line) = (line_of(&file, index), first + 1);
                return Err(OrionProblem::LunTwice { origin, lun: line.to_owned(), first_line }.into());
            } else {
                luns.push(PathBuf::from(line));
            }
        }
        if luns.is_empty() {
            return Err(OrionProblem::NoLuns { path: path.to_owned() }.into());
        }
        let mut notes = Vec::new();
        for (count, kind) in [(blank, "blank"), (comments, "comment")] {
            if count > 0 {
                let lines = if count == 1 { "line" } else { "lines" };
                notes.push(format!("`{file}`: {count} {kind} {lines} passed over; ORION itself wants paths only"));
            }
        }
        Ok(Self { path: path.to_owned(), luns, notes })
    }
}
