//! One command at a time works on the directory of a cluster.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::process::Stdio;

use super::super::error::PostgresError;
use super::files::{Files, LOCK, file_error};
use super::owner::Owner;
use super::postmaster::is_alive;

impl Files {
    /// Takes the directory for this process.
    ///
    /// # Errors
    /// The system's error. A directory that somebody else holds is no error but `Err` inside, with who it is.
    pub(super) fn lock(&self, owner: &Owner) -> Result<Result<Hold, Holder>, PostgresError> {
        let path = self.directory().join(LOCK);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o644).custom_flags(libc::O_NOFOLLOW);
        let mut file = loop {
            let mut file = options.open(&path).map_err(file_error("open", &path))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(Err(Holder::read(&mut file))),
                Err(TryLockError::Error(error)) => return Err(file_error("lock", &path)(error)),
            }
            // Whoever held it may have removed it together with the cluster: then this is nobody's lock any more.
            let held = file.metadata().map_err(file_error("look at", &path))?;
            if fs::metadata(&path).is_ok_and(|named| (named.dev(), named.ino()) == (held.dev(), held.ino())) {
                break file;
            }
        };
        owner.adopt(&path)?;
        let named = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| write!(file, "{}", std::process::id()));
        named.map_err(file_error("write", &path))?;
        Ok(Ok(Hold { file }))
    }

    /// Who holds the directory; nobody if none.
    pub(super) fn holder(&self) -> Option<Holder> {
        let mut file = File::open(self.directory().join(LOCK)).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Some(Holder::read(&mut file)),
            _ => None,
        }
    }
}

/// The lock of a directory. It goes with the value and with every process that was given a share in it.
#[derive(Debug)]
pub(super) struct Hold {
    file: File,
}

impl Hold {
    /// Lets a process that we start hold the lock with us, as one of its three standard files, which it should not use:
    /// should we be killed, nobody works on the directory before that process has ended too.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn share(&self) -> Result<Stdio, PostgresError> {
        let shared = self.file.try_clone();
        shared.map(Stdio::from).map_err(file_error("share", Path::new(LOCK)))
    }
}

/// Who holds a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Holder {
    /// The command's process number, as far as it is known.
    pub(super) pid: Option<u32>,
}

impl Holder {
    fn read(lock: &mut File) -> Self {
        let mut text = String::new();
        let _ = lock.read_to_string(&mut text);
        Self { pid: text.trim().parse().ok() }
    }

    /// Whether the command has ended, and only what it has left holds the directory: a server that is being stopped.
    pub(super) fn has_ended(self) -> bool {
        self.pid.is_some_and(|pid| !is_alive(pid))
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            Some(pid) => write!(f, "process {pid}"),
            None => f.write_str("another process"),
        }
    }
}
