//! What is known of a data set without reading its blocks.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::control::Control;
use super::descriptor::Descriptor;
use super::directory::{Directory, DirectoryState};
use crate::error::TargetError;

/// What is known of a data set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Info {
    /// Its directory.
    pub directory: PathBuf,
    /// What it is; none before its set-up is finished.
    pub descriptor: Option<Descriptor>,
    /// Its state.
    pub state: State,
    /// Where recovery would begin; none when the control file cannot be read.
    pub checkpoint: Option<LastCheckpoint>,
    /// Its files.
    pub files: Vec<FileInfo>,
    /// Length of all files.
    pub bytes: u64,
    /// Space that they take on the file system.
    pub allocated_bytes: u64,
}

/// The state of a data set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum State {
    /// Closed, with nothing to recover.
    ClosedCleanly,
    /// Its last user was killed: whoever opens it next recovers it.
    NeedsRecovery,
    /// Its set-up never came to its end, or goes on just now.
    UnfinishedSetUp {
        /// Who is at it, as far as it is known.
        in_use_by: Option<String>,
    },
    /// Another process works on it.
    InUse {
        /// Who, such as `process 123`.
        by: String,
    },
    /// It cannot be opened.
    Damaged {
        /// Why.
        why: String,
    },
}

/// Where recovery would begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LastCheckpoint {
    /// Everything before this redo position, in bytes, is in the data files.
    pub redo_position: u64,
    /// Number of the log that holds it, counted from the first ever.
    pub log_number: u64,
}

/// One file of a data set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileInfo {
    /// Its name in the directory.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Space that it takes on the file system.
    pub allocated_bytes: u64,
}

/// Space that a file takes on its file system.
pub(super) fn allocated_bytes(metadata: &Metadata) -> u64 {
    // The unit of `st_blocks`, whatever the file system's own block size is.
    const UNIT: u64 = 512;
    metadata.blocks() * UNIT
}

/// Looks at a data set, also while another process works on it; changes nothing.
///
/// # Errors
/// [`TargetError::NotSetUp`] when there is none, or the system's error.
pub fn info(path: &Path) -> Result<Info, TargetError> {
    let not_set_up = || TargetError::NotSetUp { path: path.to_owned() };
    match Directory::look(path) {
        Ok(DirectoryState::Ours) => {}
        Ok(DirectoryState::Free) | Err(TargetError::NotOurs { .. }) => return Err(not_set_up()),
        Err(error) => return Err(error),
    }
    let files: Vec<FileInfo> = Directory::files_at(path)?
        .into_iter()
        .map(|(path, metadata)| FileInfo {
            name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            bytes: metadata.len(),
            allocated_bytes: allocated_bytes(&metadata),
        })
        .collect();
    let holder = Directory::holder(path)?;
    let (mut descriptor, mut checkpoint) = (None, None);
    let state = if Directory::is_half_set_up_at(path) {
        State::UnfinishedSetUp { in_use_by: holder }
    } else {
        let opened = Descriptor::load(path).and_then(|found| {
            let database = found.database;
            descriptor = Some(found);
            Control::open(path, database)
        });
        match (opened, holder) {
            (Err(TargetError::NotSetUp { .. }), _) => return Err(not_set_up()),
            (Err(error), _) => State::Damaged { why: error.to_string() },
            (Ok((_, last)), holder) => {
                checkpoint = Some(LastCheckpoint { redo_position: last.redo_position, log_number: last.log_number });
                match holder {
                    Some(by) => State::InUse { by },
                    None if last.clean => State::ClosedCleanly,
                    None => State::NeedsRecovery,
                }
            }
        }
    };
    let bytes = files.iter().map(|file| file.bytes).sum();
    let allocated_bytes = files.iter().map(|file| file.allocated_bytes).sum();
    Ok(Info { directory: path.to_owned(), descriptor, state, checkpoint, files, bytes, allocated_bytes })
}
