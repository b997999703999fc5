//! Private servers: what it takes to make, hold and remove a server of any kind in a directory of its own.
//!
//! A server that a command has started ends with that command, whatever ends it, unless it is to be kept. One command at a
//! time works on a directory. A server's own room says how its data are made and with which parameters it is started.

mod error;
mod files;
mod lock;
mod memory;
mod owner;
mod page_cache;
mod process;
mod program;
mod sockets;
mod supervisor;

use rustix::process::Signal;

pub use error::PrivateError;
pub use files::OurFile;
pub(in crate::targets) use files::{DirectoryState, Files, damaged, file_error, private_directory, remove};
pub(in crate::targets) use lock::Hold;
pub(in crate::targets) use memory::{MemoryLimit, effective_limit, is_held_to, limit_of};
pub(in crate::targets) use owner::Owner;
pub use page_cache::{Dropped, drop_page_cache};
pub(in crate::targets) use process::{end, is_alive, works_in};
pub(in crate::targets) use program::{await_end, await_ready, log_or};
pub(in crate::targets) use sockets::Sockets;
pub(in crate::targets) use supervisor::{Start, Supervisor};

/// What distinguishes private servers of one kind from those of others.
#[derive(Debug)]
pub(in crate::targets) struct ServerKind {
    /// Its product, such as `PostgreSQL`.
    pub(in crate::targets) product: &'static str,
    /// What a server with its data is called, such as `cluster`. Files of ours are named after it.
    pub(in crate::targets) noun: &'static str,
    /// The user that packages make for it.
    pub(in crate::targets) user: &'static str,
    /// How variables begin by which the environment speaks to its programs, perhaps of passwords.
    pub(in crate::targets) environment: &'static [&'static str],
    /// A file in the data of such servers.
    pub(in crate::targets) data_file: &'static str,
    /// How addresses of servers and of private servers begin, such as `postgres://` and `pg:`.
    pub(in crate::targets) schemes: [&'static str; 2],
    /// Name of its socket.
    pub(in crate::targets) socket: &'static str,
    /// The signals that ask it to shut down in order, and then at once.
    pub(in crate::targets) stop: [Signal; 2],
}

/// As the tests of this folder know servers.
#[cfg(test)]
const TESTED: ServerKind = ServerKind {
    product: "PostgreSQL",
    noun: "cluster",
    user: "postgres",
    environment: &["PG"],
    data_file: "PG_VERSION",
    schemes: ["postgres://", "pg:"],
    socket: ".s.PGSQL.5432",
    stop: [Signal::INT, Signal::QUIT],
};
