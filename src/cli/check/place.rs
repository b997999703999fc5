//! Where a check is made, and what is made there for it and removed again.

use std::path::{Path, PathBuf};

use crate::cli::exit::Failure;
use crate::cli::say;
use measure::environment;
use model::config::TargetAddress;
use model::record::Demands;
use model::units::{Bytes, shell_command};
use targets::block::layout::unfinished_path;
use targets::embedded::Descriptor;

/// What is made in a directory: a file for raw storage, a directory for the engine's data.
const MADE: &str = "plimsoll-check";

/// Where a check is made.
pub(super) enum CheckTarget {
    /// A file or device for raw storage.
    Storage {
        /// It.
        path: PathBuf,
        /// How much is used; all of it where nobody says.
        size: Option<Bytes>,
        /// Removes it at the end, if it was made for the check.
        made: Option<Made>,
    },
    /// A database.
    Database(Subject),
    /// Simulated storage.
    Simulated {
        /// What is planted.
        pairs: Vec<(String, String)>,
        /// Its size.
        size: Option<Bytes>,
    },
}

/// A database that a check is made on.
pub(super) struct Subject {
    /// Where it is.
    pub(super) address: TargetAddress,
    /// How large data are made there, if that is known already.
    pub(super) size: Option<Bytes>,
    /// Whether what is there under this name is the rest of a check that was killed.
    pub(super) is_ours: bool,
}

/// A file that is made for a check. From when it begins to be made it is removed when this is dropped, whatever ends the check.
pub(super) struct Made {
    path: PathBuf,
    has_begun: bool,
}

impl Made {
    /// In `directory`. The name says whose it is, so that a later check knows whether that still runs.
    fn of(directory: &Path) -> Self {
        Self { path: directory.join(made_name(std::process::id())), has_begun: false }
    }

    /// What to say where it could not be removed. It has another name until it is complete.
    pub(super) fn left_behind(&self, is_complete: bool) -> String {
        let path = if is_complete { self.path.clone() } else { unfinished_path(&self.path) };
        let word = shell_command(&[path.to_string_lossy().into_owned()]);
        format!("left behind: `{}`; the next check there removes it, or remove it with `rm {word}`", path.display())
    }

    /// It begins to be made; those of checks of this machine that were killed go before.
    pub(super) fn begin(&mut self) {
        self.has_begun = true;
        for path in self.path.parent().map(left_by_others).unwrap_or_default() {
            match std::fs::remove_file(&path) {
                Ok(()) => say::note(format_args!("removed `{}`, which an earlier check left behind", path.display())),
                Err(error) => say::note(format_args!("an earlier check left `{}` behind: {error}", path.display())),
            }
        }
    }
}

/// How the file of a check's process is called.
fn made_name(process: u32) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host: String = host.trim().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    format!("{MADE}-{host}-{process}.dat")
}

/// Files of checks of this machine whose process is no more.
fn left_by_others(directory: &Path) -> Vec<PathBuf> {
    let is_left = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let process = name.split_once(".dat").and_then(|(name, _)| name.rsplit_once('-')?.1.parse::<u32>().ok());
        process.is_some_and(|process| {
            let made = directory.join(made_name(process));
            let is_ours = *path == made || *path == unfinished_path(&made);
            is_ours && !Path::new(&format!("/proc/{process}")).exists() && path.is_file()
        })
    };
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(is_left).collect()
}

impl Drop for Made {
    fn drop(&mut self) {
        let Self { path, has_begun } = self;
        if *has_begun
            && path.exists()
            && let Err(error) = std::fs::remove_file(&*path)
        {
            say::note(format_args!("`{}` was made for the check and could not be removed: {error}", path.display()));
        }
    }
}

impl CheckTarget {
    /// What the user's word means. Nothing is made yet.
    pub(super) fn look(word: &str, demands: &Demands, size: Option<Bytes>) -> Result<Self, Failure> {
        let is_database = demands.commits.is_some();
        // A word before a colon is the kind of an address, unless there is a file of that name.
        let has_kind = word
            .split_once(':')
            .is_some_and(|(kind, _)| kind.len() > 1 && kind.chars().all(|c| c.is_ascii_alphanumeric()));
        let is_address = has_kind && !Path::new(word).exists();
        let path = match is_address.then(|| word.parse::<TargetAddress>()).transpose()? {
            None => PathBuf::from(word),
            Some(TargetAddress::Directory(path)) => path,
            Some(TargetAddress::Simulated(pairs)) if !is_database => return Ok(Self::Simulated { pairs, size }),
            Some(address) => {
                if demands.writes.is_some() && address.is_server() {
                    let failure = Failure::new("a server writes when it likes: `--writes` cannot be asked of it");
                    return Err(failure.with_hint("ask for commits: `--commits 200@10ms`".to_owned()));
                }
                return Ok(Self::Database(Subject { address, size, is_ours: false }));
            }
        };
        let found = std::fs::metadata(&path).map_err(|error| {
            let failure = Failure::new(format_args!("cannot look at `{}`: {error}", path.display()));
            failure.with_hint("name a directory on the storage in question, a file, or a device".to_owned())
        })?;
        match (found.is_dir(), is_database) {
            (true, true) => Self::engine(path, size),
            (true, false) => {
                let size = made_size(&path, size)?;
                let made = Made::of(&path);
                Ok(Self::Storage { path: made.path.clone(), size: Some(size), made: Some(made) })
            }
            (false, false) => Ok(Self::Storage { path, size, made: None }),
            (false, true) => {
                let failure =
                    Failure::new(format_args!("commits need files, and `{}` is no directory", path.display()));
                let hint = "name a directory on the same storage, or leave `--commits` out to load the device itself";
                Err(failure.with_hint(hint.to_owned()))
            }
        }
    }

    fn engine(path: PathBuf, size: Option<Bytes>) -> Result<Self, Failure> {
        if Descriptor::load(&path).is_ok() {
            if size.is_some() {
                let failure =
                    Failure::new(format_args!("`{}` holds data already, of a size of their own", path.display()));
                return Err(failure.with_hint("leave `--size` out, or name another directory".to_owned()));
            }
            let address = TargetAddress::Directory(path);
            return Ok(Self::Database(Subject { address, size: None, is_ours: false }));
        }
        let size = Some(made_size(&path, size)?);
        let address = TargetAddress::Directory(path.join(MADE));
        Ok(Self::Database(Subject { address, size, is_ours: true }))
    }
}

/// How large data are made in a directory: what is asked for, else the usual, and half of what is free at most.
fn made_size(directory: &Path, asked: Option<Bytes>) -> Result<Bytes, Failure> {
    if let Some(size) = asked {
        return Ok(size);
    }
    let Some(free) =
        environment::capture(Some(directory)).file_system.and_then(|found| found.available_bytes).map(Bytes)
    else {
        let failure = Failure::new(format_args!("how much is free in `{}` is not known", directory.display()));
        return Err(failure.with_hint("say how large the data may be: `--size 4G`".to_owned()));
    };
    let half = Bytes(free.0 / 2 / (1 << 20) * (1 << 20));
    if half < Bytes::mib(64) {
        let failure = Failure::new(format_args!("only {free} are free in `{}`", directory.display()));
        return Err(failure.with_hint("make room, or say how large the data may be: `--size 100M`".to_owned()));
    }
    Ok(super::DEFAULT_SIZE.min(half))
}
