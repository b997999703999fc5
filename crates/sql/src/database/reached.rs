//! Servers that answer.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::dialect::Dialect;
use crate::ServerError;
use crate::data::access::Access;
use crate::data::catalog;
use crate::data::descriptor::DataSet;
use crate::private::PrivateServer;
use measure::{environment, os};
use model::units::Bytes;
use targets::TargetError;
use targets::database::{Cache, DatabaseOptions};

/// A private server that runs now, or somebody else's servers.
pub(super) struct Reached<D: Dialect> {
    pub(super) server: Option<PrivateServer<D::Programs>>,
    pub(super) connector: D,
    pub(super) namespace: String,
}

impl<D: Dialect> Reached<D> {
    /// The data on the first server.
    pub(super) fn access(&self) -> Access<'_, D> {
        Access::new(&self.connector, &self.namespace)
    }

    /// The data on each server.
    pub(super) fn nodes(&self) -> impl Iterator<Item = Access<'_, D>> {
        (0..self.connector.node_names().len()).map(|node| Access { node, ..self.access() })
    }

    /// What is worth knowing of it: its version and settings, and who started it.
    pub(super) fn facts(&self) -> Result<BTreeMap<String, String>, TargetError> {
        self.server.as_ref().map_or_else(|| self.connector.facts(), |server| Ok(server.facts().clone()))
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let of_server = self.server.iter().flat_map(|server| server.notes().iter().cloned());
        self.connector.remarks().into_iter().chain(of_server).collect()
    }

    /// Number and data of the first process of a private server.
    pub(super) fn process(&self) -> Option<(u32, PathBuf)> {
        self.server.as_ref().map(|server| (server.pid(), server.data_directory()))
    }

    /// The largest cache between the load and storage, as far as it is known: the memory of a private server whose files are
    /// cached besides, else the server's buffers.
    pub(super) fn cache(&self, host_memory: Option<Bytes>) -> Result<Option<Cache>, TargetError> {
        let facts = self.facts()?;
        let fact = |name: &str| facts.get(name).and_then(|text| text.parse::<Bytes>().ok());
        if self.server.is_some() && !D::READS_PAST_PAGE_CACHE {
            return Ok(memory(host_memory.or_else(|| fact("host_memory"))));
        }
        let bytes = fact(&format!("setting.{}", D::BUFFERS.1));
        Ok(bytes.map(|bytes| buffers::<D>(bytes, self.server.is_some())))
    }

    /// Room that is left where the data are, if that is on this machine and known.
    pub(super) fn room(&self) -> Option<(PathBuf, Bytes)> {
        let (_, directory) = self.process()?;
        let space = os::space(&directory)?;
        Some((directory, Bytes(space.available_bytes)))
    }

    /// The data set, which must be whole, and the same on every server.
    pub(super) fn load(&self) -> Result<DataSet, TargetError> {
        let first = catalog::load(&self.access())?;
        for access in self.nodes().skip(1) {
            let other = catalog::load(&access)?;
            // Two servers may hold the same data from two set-ups; only when they were made differs then.
            let (created_at, plimsoll_version) = (first.created_at.clone(), first.plimsoll_version.clone());
            if (DataSet { created_at, plimsoll_version, ..other }) != first {
                let first = self.access().node_name();
                let what = format!("the data on `{}` differ from those on `{first}`", access.node_name());
                return Err(access.unfit(what, "set both up with the same parameters and the same `--seed`"));
            }
        }
        Ok(first)
    }

    pub(super) fn leave(self) -> Result<(), TargetError> {
        self.server.map_or(Ok(()), PrivateServer::stop)
    }
}

/// What a private server that is not there yet will have as its cache.
pub(super) fn planned_cache<D: Dialect>(options: &DatabaseOptions) -> Option<Cache> {
    if !D::READS_PAST_PAGE_CACHE {
        return memory(options.host_memory);
    }
    let bytes = environment::available_memory().map_or(options.db_cache, |free| options.db_cache.min(free));
    Some(buffers::<D>(bytes, true))
}

fn buffers<D: Dialect>(bytes: Bytes, is_private: bool) -> Cache {
    let what = format!("the server's {}", D::BUFFERS.0);
    Cache { bytes, what, cure: is_private.then_some("use a smaller `--db-cache`") }
}

/// The memory of a private server that is limited so, or by what this machine has.
fn memory(limit: Option<Bytes>) -> Option<Cache> {
    let (bytes, what, cure) = match limit {
        Some(limit) => {
            (limit, "the memory that the server may take, page cache included", "use a smaller `--host-memory`")
        }
        None => {
            let free = environment::available_memory()?;
            (free, "the memory that is free here for shared buffers and page cache", "limit it with `--host-memory`")
        }
    };
    Some(Cache { bytes, what: what.to_owned(), cure: Some(cure) })
}

/// What stands against a request.
pub(super) fn unfit(what: String, hint: String) -> TargetError {
    ServerError::unfit(what, Some(hint)).into()
}
