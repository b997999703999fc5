//! What a kind of server gives, so that private servers of it can be made.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

use super::ServerKind;
use super::error::PrivateError;
use super::files::Files;
use super::owner::Owner;
use model::units::Bytes;
use targets::TargetError;

/// Connections beyond those of the load: set-up, monitoring, and a person who looks.
const SPARE_CONNECTIONS: u32 = 20;

/// The programs of one server on this machine, and what a private server of its kind is made of.
pub trait Programs: Debug + Sized {
    /// What distinguishes such servers.
    const KIND: &'static ServerKind;
    /// Where a server is reached.
    type Address: Clone + Debug + PartialEq;

    /// The programs in the directory `chosen`, else those that are installed; they must suit the data that `files` hold, if any.
    ///
    /// # Errors
    /// When there are none, with the package to install.
    fn find(chosen: Option<&Path>, files: &Files) -> Result<Self, PrivateError>;

    /// Version of the programs, in their own words.
    fn version(&self) -> String;

    /// The program that makes data in an empty directory, and its parameters.
    fn initializing(&self, data: &Path) -> (PathBuf, Vec<String>);

    /// The server and the parameters that it is started with.
    ///
    /// # Errors
    /// When something about this machine cannot be found out.
    fn starting(&self, start: &Starting<'_>) -> Result<(PathBuf, Vec<String>), PrivateError>;

    /// The server itself.
    fn server(&self) -> PathBuf;

    /// The server that runs on `data`; none after a crash, which leaves its file and no such process.
    ///
    /// # Errors
    /// When that cannot be found out.
    fn running(data: &Path) -> Result<Option<Running<Self::Address>>, PrivateError>;

    /// How a server is reached whose socket is in the directory `sockets`.
    fn address(sockets: &str) -> Self::Address;

    /// Whether a server that says that it runs takes connections.
    fn answers(_address: &Self::Address) -> bool {
        true
    }

    /// What is worth knowing of a server: `server_version`, and `setting.NAME` of the settings that matter. `is_new` says that it
    /// was started just now, so what connections need may have to be made.
    ///
    /// # Errors
    /// When it cannot be connected to, or refuses.
    fn facts(address: &Self::Address, is_new: bool) -> Result<BTreeMap<String, String>, TargetError>;

    /// The least memory in which a server can live with so many sessions, in whole MiB: with less it would be killed.
    fn needed_memory(db_cache: Bytes, sessions: u32) -> Bytes;

    /// What just these programs need beyond that.
    fn more_memory(&self) -> Bytes {
        Bytes(0)
    }

    /// What to do about what a program said when it failed.
    fn hint(_said: &str) -> Option<String> {
        None
    }
}

/// What a server is started with.
pub struct Starting<'a> {
    pub(crate) owner: &'a Owner,
    pub(crate) files: &'a Files,
    /// Directory of its socket.
    pub(crate) sockets: &'a str,
    pub(crate) db_cache: Bytes,
    pub(crate) max_connections: u32,
}

/// A private server that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running<A> {
    /// Number of its first process.
    pub(crate) pid: u32,
    /// Whether Plimsoll has started it.
    pub(crate) is_ours: bool,
    /// Directory of its socket, as far as it is known.
    pub(crate) sockets: Option<PathBuf>,
    /// Where it is reached; none while it starts.
    pub(crate) address: Option<A>,
}

/// What a private server is asked for.
#[derive(Debug, Clone)]
pub(crate) struct ServerRequest {
    /// Its directory.
    pub(crate) directory: PathBuf,
    /// Whether it may be made if it is not there.
    pub(crate) create: bool,
    /// Its buffers.
    pub(crate) db_cache: Bytes,
    /// Most memory that the server may use, page cache of its files included; `None` for no limit.
    pub(crate) host_memory: Option<Bytes>,
    /// Sessions for which there is to be room.
    pub(crate) max_sessions: u32,
    /// Sessions that are known to come: the memory must do for them.
    pub(crate) sessions: u32,
    /// Whether the server goes on running when we end.
    pub(crate) keep_running: bool,
    /// Directory of the server's programs; those that are found where `None`.
    pub(crate) binaries: Option<PathBuf>,
}

impl ServerRequest {
    /// What the server must take, a person who looks included.
    pub(super) fn max_connections(&self) -> u32 {
        self.max_sessions.saturating_add(SPARE_CONNECTIONS)
    }
}
