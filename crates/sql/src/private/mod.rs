//! Private servers: what it takes to make, hold and remove a server of any kind in a directory of its own.
//!
//! A server that a command has started ends with that command, whatever ends it, unless it is to be kept. One command at a
//! time works on a directory. A server's own folder says how its data are made and with which parameters it is started.

mod error;
mod files;
mod inspect;
mod lock;
mod memory;

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

use model::units::Bytes;

pub use error::PrivateError;
pub use files::Files;
pub use files::OurFile;
pub(crate) use files::{DirectoryState, damaged, file_error};
pub(crate) use inspect::{inspect, remove};

pub use none::NoPrograms;
pub(crate) use owner::Owner;
pub use page_cache::{Dropped, drop_page_cache};
pub(crate) use process::{is_alive, works_in};
pub(crate) use programs::ServerRequest;
pub use programs::{Programs, Running, Starting};
pub(crate) use server::{PrivateServer, check_memory};

#[cfg(test)]
pub(crate) use server::tests as server_tests;

/// What distinguishes private servers of one kind from those of others.
#[derive(Debug)]
pub struct ServerKind {
    /// Its product, such as `PostgreSQL`.
    pub(crate) product: &'static str,
    /// What a server with its data is called, such as `cluster`. Files of ours are named after it.
    pub(crate) noun: &'static str,
    /// The user that packages make for it.
    pub(crate) user: &'static str,
    /// How variables begin by which the environment speaks to its programs, perhaps of passwords.
    pub(crate) environment: &'static [&'static str],
    /// A file in the data of such servers.
    pub(crate) data_file: &'static str,
    /// How addresses of servers and of private servers begin, such as `postgres://` and `pg:`.
    pub(crate) schemes: [&'static str; 2],
    /// Name of its socket.
    pub(crate) socket: &'static str,
    /// What its buffers are called, and by which setting.
    pub(crate) buffers: &'static str,
    pub(crate) buffers_setting: &'static str,
    /// The least of them that it takes.
    pub(crate) min_db_cache: Bytes,
    /// The signals that ask it to shut down in order, and then at once.
    pub(crate) stop: [Signal; 2],
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
