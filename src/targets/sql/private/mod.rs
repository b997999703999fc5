//! Private servers: what it takes to make, hold and remove a server of any kind in a directory of its own.
//!
//! A server that a command has started ends with that command, whatever ends it, unless it is to be kept. One command at a
//! time works on a directory. A server's own room says how its data are made and with which parameters it is started.

mod error;
mod files;
mod inspect;
mod lock;
mod memory;
#[cfg(feature = "oracle")]
mod none;
mod owner;
mod page_cache;
mod process;
mod program;
mod programs;
mod server;
mod sockets;
mod supervisor;

use rustix::process::Signal;

use crate::units::Bytes;

pub use error::PrivateError;
pub use files::OurFile;
pub(in crate::targets) use files::{DirectoryState, Files, damaged, file_error};
pub(in crate::targets) use inspect::{inspect, remove};
#[cfg(feature = "oracle")]
pub(in crate::targets) use none::NoPrograms;
pub(in crate::targets) use owner::Owner;
pub use page_cache::{Dropped, drop_page_cache};
pub(in crate::targets) use process::{is_alive, works_in};
pub(in crate::targets) use programs::{Programs, Running, ServerRequest, Starting};
pub(in crate::targets) use server::{PrivateServer, check_memory};

#[cfg(test)]
pub(in crate::targets) use server::tests as server_tests;

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
    /// What its buffers are called, and by which setting.
    pub(in crate::targets) buffers: &'static str,
    pub(in crate::targets) buffers_setting: &'static str,
    /// The least of them that it takes.
    pub(in crate::targets) min_db_cache: Bytes,
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
    buffers: "shared buffers",
    buffers_setting: "shared_buffers",
    min_db_cache: Bytes::kib(128),
    stop: [Signal::INT, Signal::QUIT],
};
