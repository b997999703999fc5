//! One command at a time works on the directory of a private server.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::error::PrivateError;
use super::files::{Files, file_error};
use super::owner::Owner;
use super::process::is_alive;
use targets::TargetError;

/// How often who holds it is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// A lock that this process itself seems to hold is waited for so long.
const OWN_LOCK_PATIENCE: Duration = Duration::from_secs(1);

impl Files {
    /// Takes the directory. A server that a killed command has left is still being ended: that is waited for.
    ///
    /// # Errors
    /// When another command works on it, or the system refuses; [`TargetError::Interrupted`] when `stop` ended the wait.
    pub(crate) fn take(&self, owner: &Owner, notify: &dyn Fn(&str), stop: &AtomicBool) -> Result<Hold, TargetError> {
        let mut reported = false;
        let begun = Instant::now();
        loop {
            let holder = match self.lock(owner)? {
                Ok(hold) => return Ok(hold),
                Err(holder) => holder,
            };
            // What this process has let go of is held for another instant by each program that another of its threads starts.
            if holder.pid == Some(std::process::id()) && begun.elapsed() < OWN_LOCK_PATIENCE {
                thread::sleep(LOOK_EVERY);
                continue;
            }
            if !holder.has_ended() {
                return Err(self.in_use(&holder.to_string()).into());
            }
            if stop.load(Ordering::Relaxed) {
                return Err(TargetError::Interrupted);
            }
            if !reported {
                notify("waiting for the end of a server that an earlier command has left");
                reported = true;
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Takes the directory for this process.
    ///
    /// # Errors
    /// The system's error. A directory that somebody else holds is no error but `Err` inside, with who it is.
    fn lock(&self, owner: &Owner) -> Result<Result<Hold, Holder>, PrivateError> {
        let path = self.lock_path();
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o644).custom_flags(libc::O_NOFOLLOW);
        let mut file = loop {
            let mut file = options.open(&path).map_err(file_error("open", &path))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(Err(Holder::read(&mut file))),
                Err(TryLockError::Error(error)) => return Err(file_error("lock", &path)(error)),
            }
            // Whoever held it may have removed it together with the server: then this is nobody's lock any more.
            let held = file.metadata().map_err(file_error("look at", &path))?;
            if fs::metadata(&path).is_ok_and(|named| (named.dev(), named.ino()) == (held.dev(), held.ino())) {
                break file;
            }
        };
        owner.adopt(&path)?;
        let named = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| write!(file, "{}", std::process::id()));
        named.map_err(file_error("write", &path))?;
        Ok(Ok(Hold { file, path }))
    }

    /// Who holds the directory; nobody if none.
    pub(crate) fn holder(&self) -> Option<Holder> {
        let mut file = File::open(self.lock_path()).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Some(Holder::read(&mut file)),
            _ => None,
        }
    }
}

/// The lock of a directory. It goes with the value and with every process that was given a share in it.
#[derive(Debug)]
pub(crate) struct Hold {
    file: File,
    path: PathBuf,
}

impl Hold {
    /// Lets a process that we start hold the lock with us, as one of its three standard files, which it should not use:
    /// should we be killed, nobody works on the directory before that process has ended too.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn share(&self) -> Result<Stdio, PrivateError> {
        let shared = self.file.try_clone();
        shared.map(Stdio::from).map_err(file_error("share", &self.path))
    }
}

/// Who holds a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Holder {
    /// The command's process number, as far as it is known.
    pub(crate) pid: Option<u32>,
}

impl Holder {
    fn read(lock: &mut File) -> Self {
        let mut text = String::new();
        let _ = lock.read_to_string(&mut text);
        Self { pid: text.trim().parse().ok() }
    }

    /// Whether the command has ended, and only what it has left holds the directory: a server that is being stopped.
    pub(crate) fn has_ended(self) -> bool {
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
