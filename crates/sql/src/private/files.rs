//! The directory of a private server: whose it is, who works on it, and what in it is ours.
//!
//! ```text
//! plimsoll-NOUN.json      says that the directory is ours; written first, removed last
//! plimsoll-NOUN.lock      held by the command that works here, and by the supervisor of its server
//! data.new/               data that are still being made
//! data/                   the server's data; they get this name when they are whole
//! run/                    the server's socket
//! log                     what servers said, one after the other
//! ```

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use files::How;
use serde::{Deserialize, Serialize};

use super::{MAX_FILE, Owner, PrivateError, ServerKind};
use model::plain::{self, Links};
use model::units::Bytes;

/// Version of the directory's layout.
const FORMAT_VERSION: u32 = 1;
const MADE_BY: &str = "plimsoll";

/// What the marker says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marker {
    made_by: String,
    format_version: u32,
    /// When the server was made, RFC 3339 in UTC.
    pub(crate) created_at: String,
    /// Version of the programs that made it.
    pub(crate) server_version: String,
}

/// What a directory is to us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DirectoryState {
    /// It is not there, or empty.
    Free,
    /// A private server of ours, whole or not.
    Ours(Marker),
}

/// Paths in the directory of a private server.
#[derive(Debug, Clone)]
pub struct Files {
    kind: &'static ServerKind,
    directory: PathBuf,
}

/// Something of ours in the directory of a private server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OurFile {
    /// A file, or a directory with all that is in it.
    pub path: PathBuf,
    /// Length of all files in it.
    pub bytes: Bytes,
}

impl Files {
    /// Of the server in `directory`, which need not exist.
    ///
    /// # Errors
    /// When the path is no UTF-8, as addresses are, or has control characters, which the server's own files cannot hold.
    pub(crate) fn new(kind: &'static ServerKind, directory: &Path) -> Result<Self, PrivateError> {
        if directory.to_str().is_none_or(|text| text.chars().any(char::is_control)) {
            return Err(PrivateError::Unfit {
                what: format!("{directory:?} has characters that no directory of {}'s may have", kind.product),
                hint: Some("name another directory".to_owned()),
            });
        }
        let directory = std::path::absolute(directory).map_err(file_error("find", directory))?;
        // The server compares paths and shows them: it gets the one without links as soon as there is one.
        let directory = directory.canonicalize().unwrap_or(directory);
        Ok(Self { kind, directory })
    }

    pub(crate) fn kind(&self) -> &'static ServerKind {
        self.kind
    }

    fn marker_path(&self) -> PathBuf {
        self.directory.join(format!("plimsoll-{}.json", self.kind.noun))
    }

    fn new_marker_path(&self) -> PathBuf {
        self.directory.join(format!("plimsoll-{}.json.new", self.kind.noun))
    }

    pub(super) fn lock_path(&self) -> PathBuf {
        self.directory.join(format!("plimsoll-{}.lock", self.kind.noun))
    }

    /// All that we make, in the order in which it is removed.
    fn all(&self) -> [PathBuf; 7] {
        let [new_marker, marker, lock] = [self.new_marker_path(), self.marker_path(), self.lock_path()];
        [self.unfinished_data(), self.run(), self.data(), self.log(), new_marker, marker, lock]
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    pub(crate) fn unfinished_data(&self) -> PathBuf {
        self.directory.join("data.new")
    }

    pub(crate) fn run(&self) -> PathBuf {
        self.directory.join("run")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.directory.join("log")
    }

    /// Looks whose the directory is, and changes nothing.
    ///
    /// # Errors
    /// When it holds anything that is not ours, or cannot be read.
    pub(crate) fn look(&self) -> Result<DirectoryState, PrivateError> {
        let directory = &self.directory;
        let entries = match fs::read_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(DirectoryState::Free),
            listed => listed.map_err(file_error("list", directory))?,
        };
        if let Some(marker) = self.marker()? {
            return Ok(DirectoryState::Ours(marker));
        }
        for entry in entries {
            let name = entry.map_err(file_error("list", directory))?.file_name().to_string_lossy().into_owned();
            // A freshly made file system has the first, and a command that was killed at its very beginning leaves the others.
            let harmless = [directory.join("lost+found"), self.new_marker_path(), self.lock_path()];
            if !harmless.contains(&directory.join(&name)) {
                return Err(self.not_ours(&name));
            }
        }
        Ok(DirectoryState::Free)
    }

    fn not_ours(&self, file: &str) -> PrivateError {
        let ServerKind { product, noun, data_file, schemes: [address, private], .. } = self.kind;
        let hint = if self.directory.join(data_file).exists() {
            format!(
                "these are other {product} data. To load that server, start it yourself and give its address: \
                `--target {address}…`"
            )
        } else {
            format!("name an empty or a new directory: `--target {private}DIR`")
        };
        let shown = self.directory.display();
        let what = format!("`{shown}` is not empty and no private {noun} of Plimsoll: it holds `{file}`");
        PrivateError::Unfit { what, hint: Some(hint) }
    }

    /// Nothing is there.
    pub(crate) fn nothing_there(&self) -> PrivateError {
        let ServerKind { noun, schemes: [_, private], .. } = self.kind;
        let shown = self.directory.display();
        PrivateError::Unfit {
            what: format!("there is no private {noun} in `{shown}`"),
            hint: Some(format!("make one, with data: `plimsoll slob setup -s 1 SCALE=1G --target {private}{shown}`")),
        }
    }

    /// A set-up was begun and never finished.
    pub(crate) fn unfinished(&self) -> PrivateError {
        PrivateError::Unfit {
            what: format!("the private {} in `{}` was never finished", self.kind.noun, self.directory.display()),
            hint: Some("run `plimsoll slob setup` again; it starts over".to_owned()),
        }
    }

    /// Another command works on it.
    pub(super) fn in_use(&self, holder: &str) -> PrivateError {
        let ServerKind { noun, schemes: [_, private], .. } = self.kind;
        PrivateError::Unfit {
            what: format!("the private {noun} in `{}` is in use by {holder}", self.directory.display()),
            hint: Some(format!("wait until it ends, or use another directory: `--target {private}DIR`")),
        }
    }

    fn marker(&self) -> Result<Option<Marker>, PrivateError> {
        let path = self.marker_path();
        let text = match plain::read_text(&path, Links::Refused, MAX_FILE) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(file_error("read", &path))?,
        };
        let marker: Marker = serde_json::from_str(&text).map_err(|error| damaged(&path, &error.to_string()))?;
        if marker.made_by != MADE_BY || marker.format_version != FORMAT_VERSION {
            let Marker { made_by, format_version, .. } = marker;
            return Err(damaged(&path, &format!("it is of format {format_version} of `{made_by}`")));
        }
        Ok(Some(marker))
    }

    /// Makes the directory if needed, as the server's user's, so that it can enter. Gives the same files by the path that the
    /// directory has now.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn make(self, owner: &Owner) -> Result<Self, PrivateError> {
        let directory = &self.directory;
        if !directory.exists() {
            files::make_directories(directory).map_err(file_error("create", directory))?;
            owner.adopt(directory)?;
        }
        Self::new(self.kind, directory)
    }

    /// Marks the directory as ours.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn mark(&self, server_version: String) -> Result<Marker, PrivateError> {
        let created_at = jiff::Timestamp::now().to_string();
        let marker = Marker { made_by: MADE_BY.to_owned(), format_version: FORMAT_VERSION, created_at, server_version };
        let (new, path) = (self.new_marker_path(), self.marker_path());
        let text = serde_json::to_string_pretty(&marker).expect("a marker has no value that JSON lacks");
        // What a killed command left is not written to: in the meantime the name may have become a link to anywhere.
        remove(&new)?;
        let written = files::make_new(&new, How::default()).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        written.map_err(file_error("write", &new))?;
        files::rename(&new, &path).map_err(file_error("rename", &new))?;
        self.sync()?;
        Ok(marker)
    }

    /// Gives finished data their name, so that they are there whole or not at all.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn finish_data(&self) -> Result<(), PrivateError> {
        let unfinished = self.unfinished_data();
        files::rename(&unfinished, &self.data()).map_err(file_error("rename", &unfinished))?;
        self.sync()
    }

    fn sync(&self) -> Result<(), PrivateError> {
        files::sync_directory(&self.directory).map_err(file_error("sync", &self.directory))
    }

    /// Opens the log for its server to append to, and reports its length. It is the server's user's.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn open_log(&self, owner: &Owner) -> Result<(File, u64), PrivateError> {
        let path = self.log();
        let how = How { append: true, mode: 0o600, also: Some(owner.uid), ..How::default() };
        let log = files::open_or_make_own(&path, how).map_err(file_error("open", &path))?;
        owner.adopt(&path)?;
        let length = log.metadata().map_err(file_error("look at", &path))?.len();
        Ok((log, length))
    }

    /// The last lines of the log behind `offset`, joined to one line; empty where it says nothing.
    pub(crate) fn log_tail(&self, offset: u64, lines: usize) -> String {
        // More than that is no end of a log but an essay.
        const LONGEST: u64 = 64 << 10;
        let read = || -> io::Result<Vec<u8>> {
            let mut log = plain::open(&self.log(), Links::Refused)?;
            let length = log.metadata()?.len();
            log.seek(SeekFrom::Start(offset.max(length.saturating_sub(LONGEST))))?;
            let mut text = Vec::new();
            log.take(LONGEST).read_to_end(&mut text)?;
            Ok(text)
        };
        let text = read().unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let all: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        all[all.len().saturating_sub(lines)..].join(" | ")
    }

    /// What is there of all that we make.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn ours(&self) -> Result<Vec<OurFile>, PrivateError> {
        let mut found = Vec::new();
        for path in self.all() {
            if fs::symlink_metadata(&path).is_ok() {
                let bytes = Bytes(length(&path)?);
                found.push(OurFile { path, bytes });
            }
        }
        Ok(found)
    }

    /// Removes all that is ours, and the directory if nothing else is in it and it can be removed.
    ///
    /// # Errors
    /// The system's error; what was removed before stays removed.
    pub(crate) fn remove(&self) -> Result<(), PrivateError> {
        for path in self.all() {
            remove(&path)?;
        }
        // Somebody else's files, a mount point, or a parent that we may not write to: the directory itself stays.
        let _ = files::remove_directory(&self.directory);
        Ok(())
    }
}

/// Makes an empty directory that only its owner may enter; one that is there already stays.
///
/// # Errors
/// The system's error, also when something else has the name.
pub(crate) fn private_directory(path: &Path, owner: &Owner) -> Result<(), PrivateError> {
    match files::make_directory(path, 0o700) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // A symbolic link is no directory of ours, wherever it leads.
            if !fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()) {
                return Err(file_error("create", path)(error));
            }
        }
        made => made.map_err(file_error("create", path))?,
    }
    owner.adopt(path)
}

/// Removes a file, or a directory with all that is in it, without following symbolic links. Nothing there is no error.
///
/// # Errors
/// The system's error.
pub(crate) fn remove(path: &Path) -> Result<(), PrivateError> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => files::remove_tree(path),
        Ok(_) => files::remove(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(file_error("remove", path)),
    }
}

/// Length of a file, or of all files in a directory.
fn length(path: &Path) -> Result<u64, PrivateError> {
    let found = match fs::symlink_metadata(path) {
        // The server may remove files while we count.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        found => found.map_err(file_error("look at", path))?,
    };
    if !found.is_dir() {
        return Ok(found.len());
    }
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        listed => listed.map_err(file_error("list", path))?,
    };
    let mut sum = 0;
    for entry in entries {
        sum += length(&entry.map_err(file_error("list", path))?.path())?;
    }
    Ok(sum)
}

/// A file of ours that somebody changed, or another version of Plimsoll made.
pub(crate) fn damaged(path: &Path, what: &str) -> PrivateError {
    PrivateError::Unfit {
        what: format!("`{}` cannot be used: {what}", path.display()),
        hint: Some("use the version of Plimsoll that made it, or another directory".to_owned()),
    }
}

/// Adds the file and the action to a system error.
pub(crate) fn file_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> PrivateError {
    let path = path.to_owned();
    move |source| PrivateError::File { action, path, source }
}
