//! PostgreSQL as the ground of SLOB's load: reached for one command, and left as it was found.

mod arguments;
pub(super) mod drop;
mod ground;
pub(super) mod info;
pub(super) mod setup;
pub(super) mod verify;

use arguments::SendChoice;
pub(super) use arguments::is_server;
pub(in crate::cli) use arguments::{SendArgs, ServerArgs};
pub(in crate::cli) use ground::{ServerGround, ServerSite};

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use super::ground::available_memory;
use crate::cli::exit::Failure;
use crate::cli::say;
use crate::config::TargetAddress;
use crate::measure::os;
use crate::plan::caches::Cache;
use crate::targets::TargetError;
use crate::targets::postgres::cluster::{Cluster, ClusterRequest, facts_of};
use crate::targets::postgres::data::Access;
use crate::targets::postgres::{Connector, LocalServer, PostgresError};
use crate::units::Bytes;

/// Name under which the sessions of the load are known to the server.
const APPLICATION: &str = "plimsoll";
/// Sessions that a private cluster takes where it is not known how many are needed.
const DEFAULT_SESSIONS: u32 = 64;

/// Which of the servers of an address are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Nodes {
    /// The first that accepts a connection, as libpq has it.
    FirstThatAccepts,
    /// Each, as a server of its own.
    Each,
}

/// What a command needs of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Purpose {
    /// Data are made, and a private cluster if there is none.
    SetUp,
    /// Data are there already.
    Use,
}

/// A server that answers: a private cluster that runs now, or somebody else's server.
pub(in crate::cli) struct Reached<'a> {
    cluster: Option<Cluster>,
    connector: Connector,
    address: &'a TargetAddress,
    arguments: &'a ServerArgs,
    /// What was reported when it was reached.
    notes: Vec<String>,
}

impl<'a> Reached<'a> {
    /// Starts a private cluster, or makes ready to connect; `None` if the address is not that of a server.
    pub(in crate::cli) fn reach(
        address: &'a TargetAddress,
        arguments: &'a ServerArgs,
        nodes: Nodes,
        purpose: Purpose,
        sessions: Option<u32>,
        stop: &AtomicBool,
    ) -> Result<Option<Self>, Failure> {
        arguments.check(address)?;
        let (cluster, connector) = match address {
            TargetAddress::Directory(_) | TargetAddress::Simulated(_) => return Ok(None),
            TargetAddress::Postgres(address) => {
                let connector = Connector::new(address, APPLICATION)?;
                (None, if nodes == Nodes::Each { connector } else { connector.single()? })
            }
            TargetAddress::PrivateCluster(directory) => {
                let request = ClusterRequest {
                    directory: directory.clone(),
                    create: purpose == Purpose::SetUp,
                    db_cache: arguments.db_cache(),
                    host_memory: arguments.host_memory(),
                    max_sessions: sessions.unwrap_or(0).max(DEFAULT_SESSIONS),
                    sessions: sessions.unwrap_or(1),
                    keep_running: arguments.keeps_running(),
                    binaries: arguments.binaries().cloned(),
                };
                let cluster = Cluster::start(&request, &|words| say::line(words), stop)?;
                let connector = Connector::new(cluster.address(), APPLICATION)?;
                (Some(cluster), connector)
            }
        };
        let mut notes: Vec<String> = connector.notes().to_vec();
        notes.extend(cluster.iter().flat_map(|cluster| cluster.notes().iter().cloned()));
        Ok(Some(Self { cluster, connector, address, arguments, notes }))
    }

    /// How to connect.
    pub(super) fn connector(&self) -> &Connector {
        &self.connector
    }

    /// The cluster, if it is a private one.
    pub(super) fn cluster(&self) -> Option<&Cluster> {
        self.cluster.as_ref()
    }

    /// What the user should know about how it was reached.
    pub(super) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Its address, as the user gave it and without a password.
    pub(super) fn address(&self) -> &TargetAddress {
        self.address
    }

    /// What is worth knowing of it: its version and settings, and who started it.
    pub(super) fn facts(&self) -> Result<BTreeMap<String, String>, PostgresError> {
        match &self.cluster {
            Some(cluster) => Ok(cluster.facts()),
            None => facts_of(&self.connector, 0),
        }
    }

    /// The data.
    pub(in crate::cli) fn access(&self) -> Access<'_> {
        Access::new(&self.connector, self.arguments.schema())
    }

    /// The server's processes, where they run here and are known.
    pub(super) fn local(&self) -> Option<LocalServer> {
        self.cluster.as_ref().map(Cluster::local)
    }

    /// The largest cache between the load and storage, as far as it is known: the memory of a private cluster, the shared buffers
    /// of another server.
    pub(super) fn cache(&self) -> Result<Option<Cache>, PostgresError> {
        let facts = self.facts()?;
        let reported = |name: &str| facts.get(name).and_then(|text| text.parse::<Bytes>().ok());
        if self.cluster.is_some() {
            return Ok(private_cache(self.arguments.host_memory().or_else(|| reported("host_memory"))));
        }
        let what = "the server's shared buffers".to_owned();
        Ok(reported("setting.shared_buffers").map(|bytes| Cache { bytes, what, cure: None }))
    }

    /// Room that is left where the data are, if that is on this machine and known.
    pub(super) fn room(&self) -> Option<(PathBuf, Bytes)> {
        let directory = self.local()?.data_directory?;
        let space = os::space(&directory)?;
        Some((directory, Bytes(space.available_bytes)))
    }

    /// Stops a private cluster, unless it is to go on.
    pub(in crate::cli) fn leave(self) -> Result<(), PostgresError> {
        self.cluster.map_or(Ok(()), Cluster::stop)
    }

    /// Does something with the server and leaves it however that ends. The first failure is the one to tell.
    pub(in crate::cli) fn with<T>(self, work: impl FnOnce(&Self) -> Result<T, Failure>) -> Result<T, Failure> {
        self.notes.iter().for_each(say::note);
        let outcome = work(&self);
        let left = self.leave();
        let done = outcome?;
        left?;
        Ok(done)
    }
}

/// The cache of a private cluster whose memory is limited so, or by what this machine has.
fn private_cache(limit: Option<Bytes>) -> Option<Cache> {
    let of_machine = || {
        let what = "the memory that is free here for shared buffers and page cache".to_owned();
        Some(Cache { bytes: available_memory()?, what, cure: Some("limit it with `--host-memory`") })
    };
    let limited = |bytes| {
        let what = "the memory that the server may take, page cache included".to_owned();
        Cache { bytes, what, cure: Some("use a smaller `--host-memory`") }
    };
    limit.map(limited).or_else(of_machine)
}

impl From<PostgresError> for Failure {
    fn from(error: PostgresError) -> Self {
        Self::from(TargetError::from(error))
    }
}
