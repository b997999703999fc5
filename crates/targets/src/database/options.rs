//! How a database is reached and used, as far as the user said.

use std::path::PathBuf;

use crate::block::safety::Permission;
use crate::embedded::FlashOptions;
use crate::io::IoEngine;
use crate::{OwnReportKind, TargetError};
use model::units::Bytes;

/// How operations reach a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sending {
    /// One prepared statement for each, timed by the client.
    Statement,
    /// In batches that a procedure on the server executes and times, so that the client costs next to nothing.
    Batch,
}

/// Whose tables are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// Those of `plimsoll slob setup`, with keys from 0 on.
    #[default]
    Plimsoll,
    /// Those of SLOB's own `setup.sh` on Oracle: `cf1` of `user1`, `user2`, …, with keys from 1 on.
    Slob,
}

/// How updates in batches are committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Commits {
    /// Each waits until its redo is on storage.
    #[default]
    Wait,
    /// As SLOB's on Oracle, by a plain `COMMIT`: within PL/SQL the server goes on at once, and waits when the batch ends.
    Slob,
}

/// How a range of keys is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reads {
    /// By one statement on the range, as SLOB does. The server may read several blocks ahead at once.
    #[default]
    Range,
    /// By a statement for each key, in a loop on the server: no statement has more than one block to ask for.
    KeyByKey,
}

/// How load is put on Oracle, where there is a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Method {
    /// Whose tables are used.
    pub layout: Layout,
    /// How updates are committed.
    pub commits: Commits,
    /// How ranges are read.
    pub reads: Reads,
}

/// What the user said about a database. Whoever reads the command line has refused what means nothing to the kind of database
/// that was named, so each takes what it knows.
#[derive(Debug, Clone)]
pub struct DatabaseOptions {
    /// How requests reach the kernel, of the embedded engine.
    pub io_engine: Option<IoEngine>,
    /// Buffer cache of the embedded engine.
    pub cache: Bytes,
    /// Second level of that cache, on flash.
    pub flash: Option<FlashOptions>,
    /// Size of each redo log file of the embedded engine.
    pub redo_file: Bytes,
    /// Number of its redo log files.
    pub redo_files: u32,
    /// Where its data files lie, if not in its directory: an absolute path, or what `targets::places` knows.
    pub data_dest: Option<String>,
    /// Where its redo log files lie.
    pub redo_dest: Option<String>,
    /// What may be overwritten where they lie on a disk group that is to be made.
    pub permission: Permission,
    /// Whether verifying also compares all copies of its files that a disk group keeps.
    pub scrub: bool,
    /// Schema of a server's database that holds the data.
    pub schema: String,
    /// Buffers of a private server.
    pub db_cache: Bytes,
    /// Most memory of a private server, page cache included.
    pub host_memory: Option<Bytes>,
    /// Whether a private server outlives the command.
    pub keep_running: bool,
    /// Where the programs of a private server are; the newest that are installed where `None`.
    pub programs: Option<PathBuf>,
    /// How operations are sent; batches in a closed loop and statements in an open one where `None`.
    pub sending: Option<Sending>,
    /// How load is put on Oracle; the others have no choice.
    pub method: Method,
    /// Whether operations fall due at a rate.
    pub is_open_loop: bool,
    /// Whether the hosts of an address are servers of their own, over which sessions are spread.
    pub per_node: bool,
    /// Whether a server's reads and writes are traced in the kernel where that is allowed.
    pub trace: bool,
    /// Which reports a server is asked to make of itself on the measured windows, if any.
    pub own_report: Option<OwnReportKind>,
    /// Whether only what would be done is asked for: no private server is made for it.
    pub dry_run: bool,
    /// Hears what takes long.
    pub say: fn(&str),
}

impl DatabaseOptions {
    /// How operations are sent to a server: as asked, else in batches, and as statements where they fall due at a rate.
    ///
    /// # Errors
    /// [`TargetError::SendingAtRate`] when batches were asked for at a rate.
    pub fn sending(&self) -> Result<Sending, TargetError> {
        match (self.sending, self.is_open_loop) {
            (Some(Sending::Batch), true) => Err(TargetError::SendingAtRate),
            (Some(sending), _) => Ok(sending),
            (None, true) => Ok(Sending::Statement),
            (None, false) => Ok(Sending::Batch),
        }
    }
}
