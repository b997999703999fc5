//! Where virtual files lie: a directory of a server, or a disk group.

use std::any::Any;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::{Access, Durability, VirtualFile};

/// What is known of a file without opening it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundFile {
    /// Length in bytes.
    pub length_bytes: u64,
    /// What makes it itself, whatever its name.
    pub identity: (u64, u64),
}

/// What a file is made for: where its pieces lie may depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileUse {
    /// Blocks at any place.
    Data,
    /// A log, written from its beginning to its end.
    Redo,
}

/// That nobody else writes to a file, until it is dropped.
pub type Claim = Box<dyn Any + Send + Sync>;

/// Where files can be found, made, renamed and removed by name. All calls block. Errors say what was asked and what the answer was.
pub trait VirtualDirectory: fmt::Debug + Send + Sync {
    /// What a file in it is, for the record: `NFS file`.
    fn kind(&self) -> &'static str;

    /// Address of a file in it, for messages and the record. Two with the same address are the same file.
    fn address_of(&self, name: &str) -> PathBuf;

    /// Looks for a file. That there is none is no error.
    ///
    /// # Errors
    /// The answer, or why there is none.
    fn find(&self, name: &str) -> io::Result<Option<FoundFile>>;

    /// Opens a file that exists.
    ///
    /// # Errors
    /// The answer, or why there is none.
    fn open(&self, name: &str, access: Access, durability: Durability) -> io::Result<Arc<dyn VirtualFile>>;

    /// Creates a file that must not exist, which is to have `bytes` bytes; until they are written it may be shorter.
    ///
    /// # Errors
    /// `AlreadyExists`, and whatever the answer was.
    fn create(&self, name: &str, bytes: u64, of: FileUse, durability: Durability) -> io::Result<Arc<dyn VirtualFile>>;

    /// Gives a file another name; one that had it is gone then.
    ///
    /// # Errors
    /// The answer, or why there is none.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file. That there is none is no error.
    ///
    /// # Errors
    /// The answer, or why there is none.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Refuses where nothing may be written, before anything is. Nothing is written.
    ///
    /// # Errors
    /// What the user has not allowed.
    fn check_writable(&self) -> io::Result<()> {
        Ok(())
    }

    /// Space that is free, in bytes; `None` where that is not known.
    ///
    /// # Errors
    /// The answer, or why there is none.
    fn free_bytes(&self) -> io::Result<Option<u64>>;

    /// Keeps other runs of this program from writing to a file, whether or not it is there yet. `holder` says who asks.
    ///
    /// # Errors
    /// That somebody else has it, and who; or the answer.
    fn claim(&self, name: &str, holder: &str) -> io::Result<Claim>;

    /// Whether somebody has a claim on a file.
    ///
    /// # Errors
    /// The answer, or why there is none.
    fn is_claimed(&self, name: &str) -> io::Result<bool>;

    /// What the user should know about it, such as members that are missing.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Facts of its own for the record: `protocol`, `connections`, …
    fn facts(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }
}
