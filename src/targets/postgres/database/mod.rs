//! PostgreSQL as a database for SLOB's method: reached when something is asked of it, and left as it was found.

mod load;
mod removal;
mod setup;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use serde_json::json;

use super::cluster::{Binaries, facts_of};
use super::data::info::Info;
use super::data::verify::VerifyReport;
use super::data::{self, Access, DataSet, Stage, info, verify};
use super::{Connector, LocalServer, PostgresError};
use crate::config::TargetAddress;
use crate::measure::{environment, os};
use crate::targets::TargetError;
use crate::targets::database::{
    Cache, Caching, DataFacts, Database, DatabaseOptions, DropPlan, DropScope, OpenDatabase, OpenRequest, PlannedLoad,
    Progress, Sending, SetupPlan, SetupRequest, Sheet, There, Timing, Verified, data_words,
};
use crate::targets::sql::private::{PrivateServer, Programs, ServerRequest, check_memory, inspect};
use crate::units::{Bytes, Nanos, group_thousands};
use removal::{ClusterToRemove, TablesToRemove};
use setup::{NewCluster, TablesPlan};

/// Name under which the sessions of the load are known to the server.
const APPLICATION: &str = "plimsoll";
/// Sessions that a private cluster takes where it is not known how many are needed.
const DEFAULT_SESSIONS: u32 = 64;
/// Size of a block of a server as it is built everywhere.
const DEFAULT_BLOCK_BYTES: u64 = 8192;
/// Data of so many times a cache leave it little to answer.
const AMPLE_TIMES: u64 = 4;

/// A private cluster (`pg:DIR`), or somebody's servers.
pub(in crate::targets) struct PostgresDatabase {
    address: TargetAddress,
    options: DatabaseOptions,
    reached: Option<Reached>,
    data: Option<DataSet>,
}

/// A server that answers: a private cluster that runs now, or somebody else's server.
struct Reached {
    cluster: Option<PrivateServer<Binaries>>,
    connector: Connector,
}

impl PostgresDatabase {
    pub(in crate::targets) fn new(address: TargetAddress, options: &DatabaseOptions) -> Self {
        Self { address, options: options.clone(), reached: None, data: None }
    }

    /// The directory of a private cluster.
    fn directory(&self) -> Option<&Path> {
        match &self.address {
            TargetAddress::PrivateCluster(directory) => Some(directory),
            _ => None,
        }
    }

    /// Starts a private cluster, or makes ready to connect, unless that was done. `sessions` are those that are known to come.
    fn reach(&mut self, create: bool, sessions: Option<u32>, stop: &AtomicBool) -> Result<&Reached, TargetError> {
        if self.reached.is_none() {
            self.reached = Some(self.start(create, sessions, stop)?);
        }
        Ok(self.reached.as_ref().expect("it was reached just now"))
    }

    fn start(&self, create: bool, sessions: Option<u32>, stop: &AtomicBool) -> Result<Reached, TargetError> {
        let options = &self.options;
        match &self.address {
            TargetAddress::PrivateCluster(directory) => {
                let request = ServerRequest {
                    directory: directory.clone(),
                    create,
                    db_cache: options.db_cache,
                    host_memory: options.host_memory,
                    max_sessions: sessions.unwrap_or(0).max(DEFAULT_SESSIONS),
                    sessions: sessions.unwrap_or(1),
                    keep_running: options.keep_running,
                    binaries: options.programs.clone(),
                };
                let cluster = PrivateServer::<Binaries>::start(&request, &options.say, stop)?;
                let connector = Connector::new(cluster.address(), APPLICATION)?;
                Ok(Reached { cluster: Some(cluster), connector })
            }
            TargetAddress::Postgres(address) => {
                let connector = Connector::new(address, APPLICATION)?;
                Ok(Reached { cluster: None, connector: if options.per_node { connector } else { connector.single()? } })
            }
            address => Err(TargetError::NoData { address: address.to_string() }),
        }
    }

    /// The data set, which must be whole, and the same on every server.
    fn data(&mut self, stop: &AtomicBool) -> Result<DataSet, TargetError> {
        if self.data.is_none() {
            let schema = self.options.schema.clone();
            let reached = self.reach(false, None, stop)?;
            self.data = Some(load_everywhere(reached, &schema)?);
        }
        Ok(self.data.clone().expect("it was read just now"))
    }
}

impl Reached {
    fn access<'a>(&'a self, schema: &'a str) -> Access<'a> {
        Access::new(&self.connector, schema)
    }

    /// What is worth knowing of it: its version and settings, and who started it.
    fn facts(&self) -> Result<BTreeMap<String, String>, PostgresError> {
        match &self.cluster {
            Some(cluster) => Ok(cluster.facts().clone()),
            None => facts_of(&self.connector, 0),
        }
    }

    /// The server's processes, where they run here and are known.
    fn local(&self) -> Option<LocalServer> {
        self.cluster.as_ref().map(|cluster| LocalServer {
            postmaster_pid: cluster.pid(),
            data_directory: Some(cluster.data_directory()),
        })
    }

    fn notes(&self) -> Vec<String> {
        let of_cluster = self.cluster.iter().flat_map(|cluster| cluster.notes().iter().cloned());
        self.connector.notes().iter().cloned().chain(of_cluster).collect()
    }

    /// The largest cache between the load and storage, as far as it is known: the memory of a private cluster, the shared buffers
    /// of another server.
    fn cache(&self, host_memory: Option<Bytes>) -> Result<Option<Cache>, PostgresError> {
        let facts = self.facts()?;
        let fact = |name: &str| facts.get(name).and_then(|text| text.parse::<Bytes>().ok());
        if self.cluster.is_some() {
            return Ok(private_cache(host_memory.or_else(|| fact("host_memory"))));
        }
        let what = "the server's shared buffers".to_owned();
        Ok(fact("setting.shared_buffers").map(|bytes| Cache { bytes, what, cure: None }))
    }

    /// Room that is left where the data are, if that is on this machine and known.
    fn room(&self) -> Option<(PathBuf, Bytes)> {
        let directory = self.local()?.data_directory?;
        let space = os::space(&directory)?;
        Some((directory, Bytes(space.available_bytes)))
    }

    fn leave(self) -> Result<(), TargetError> {
        self.cluster.map_or(Ok(()), PrivateServer::stop)
    }
}

/// The cache of a private cluster whose memory is limited so, or by what this machine has.
fn private_cache(limit: Option<Bytes>) -> Option<Cache> {
    let of_machine = || {
        let what = "the memory that is free here for shared buffers and page cache".to_owned();
        Some(Cache { bytes: environment::available_memory()?, what, cure: Some("limit it with `--host-memory`") })
    };
    let limited = |bytes| {
        let what = "the memory that the server may take, page cache included".to_owned();
        Cache { bytes, what, cure: Some("use a smaller `--host-memory`") }
    };
    limit.map(limited).or_else(of_machine)
}

fn load_everywhere(reached: &Reached, schema: &str) -> Result<DataSet, TargetError> {
    let first = data::load(&reached.access(schema))?;
    for node in 1..reached.connector.nodes().len() {
        let access = Access { node, ..reached.access(schema) };
        let other = data::load(&access)?;
        // Two servers may hold the same data from two set-ups; only when they were made differs then.
        let (created_at, plimsoll_version) = (first.created_at.clone(), first.plimsoll_version.clone());
        if (DataSet { created_at, plimsoll_version, ..other }) != first {
            let first = reached.access(schema).node_name();
            let what = format!("the data on `{}` differ from those on `{first}`", access.node_name());
            let hint = "set both up with the same parameters and the same `--seed`".to_owned();
            return Err(PostgresError::Unfit { what, hint: Some(hint) }.into());
        }
    }
    Ok(first)
}

impl Database for PostgresDatabase {
    fn there(&mut self, stop: &AtomicBool) -> Result<There, TargetError> {
        if let Some(directory) = self.directory()
            && inspect::<Binaries>(directory)?.is_none()
        {
            return Ok(There::Nothing);
        }
        let schema = self.options.schema.clone();
        let found = data::find(&self.reach(false, None, stop)?.access(&schema))?;
        Ok(if found.is_some() { There::Data } else { There::NoData })
    }

    fn facts(&mut self, stop: &AtomicBool) -> Result<Option<DataFacts>, TargetError> {
        let DataSet { schemas, scale_blocks, scan_blocks, block_bytes, filling, .. } = self.data(stop)?;
        let host_memory = self.options.host_memory;
        let cache = self.reach(false, None, stop)?.cache(host_memory)?;
        let caching = cache.map_or(Caching::Unknown, Caching::There);
        Ok(Some(DataFacts {
            schemas,
            scale_blocks,
            scan_blocks,
            block_bytes,
            filling,
            available_memory: None,
            caching,
        }))
    }

    fn timing(&self) -> Result<Timing, TargetError> {
        Ok(match self.options.sending()? {
            Sending::Batch => Timing::ServerInBatches,
            Sending::Statement => Timing::Client,
        })
    }

    /// Refuses more sessions than the memory of a private cluster does for, and reports a log that may have too little room.
    fn check_load(&mut self, load: &PlannedLoad, stop: &AtomicBool) -> Result<Vec<String>, TargetError> {
        let (limit, buffers) = (self.options.host_memory, self.options.db_cache);
        let reached = self.reach(false, None, stop)?;
        if let (Some(limit), true) = (limit, reached.cluster.is_some()) {
            check_memory::<Binaries>(limit, buffers, load.sessions).map_err(|error| {
                let ample = Bytes(Binaries::needed_memory(buffers, load.sessions).0.saturating_mul(AMPLE_TIMES));
                let ample = format!("data of four times that are {ample} in all");
                let hint = error.hint().map_or_else(|| ample.clone(), |hint| format!("{hint}; {ample}"));
                PostgresError::Unfit { what: error.to_string(), hint: Some(hint) }
            })?;
        }
        if !load.has_updates {
            return Ok(Vec::new());
        }
        let log = reached.facts()?.get("setting.max_wal_size").and_then(|text| text.parse().ok());
        let short = log.zip(reached.room()).filter(|(log, (_, room)): &(Bytes, _)| log > room);
        let words = short.map(|(log, (at, room))| {
            let at = at.display();
            format!("the write-ahead log may grow to {log} between checkpoints, and {room} are left in `{at}`")
        });
        Ok(words.into_iter().collect())
    }

    fn block_bytes(&mut self, asked: Option<Bytes>, streams: u32, stop: &AtomicBool) -> Result<u64, TargetError> {
        if let Some(asked) = asked {
            return Ok(asked.0);
        }
        if self.is_new_cluster_planned()? {
            return Ok(DEFAULT_BLOCK_BYTES);
        }
        let schema = self.options.schema.clone();
        Ok(u64::from(data::block_bytes(&self.reach(true, Some(streams), stop)?.access(&schema))?))
    }

    fn plan_setup(
        &mut self,
        request: &SetupRequest,
        stop: &AtomicBool,
    ) -> Result<Box<dyn SetupPlan + '_>, TargetError> {
        if self.is_new_cluster_planned()? {
            return Ok(Box::new(NewCluster {
                address: &self.address,
                options: &self.options,
                request: request.clone(),
            }));
        }
        self.reach(true, Some(request.streams), stop)?;
        let Self { reached, options, .. } = self;
        let reached = reached.as_ref().expect("it was reached just now");
        Ok(Box::new(TablesPlan::new(reached, options, request)?))
    }

    fn verify(&mut self, progress: &(dyn Fn(Progress) + Sync), stop: &AtomicBool) -> Result<Verified, TargetError> {
        let schema = self.options.schema.clone();
        let report = verify::verify(&self.reach(false, None, stop)?.access(&schema), progress, stop)?;
        Ok(Verified { sheet: verify_sheet(&report), is_sound: report.is_sound(), notes: report.notes })
    }

    fn info(&mut self, stop: &AtomicBool) -> Result<Sheet, TargetError> {
        let schema = self.options.schema.clone();
        Ok(info_sheet(&info::info(&self.reach(false, None, stop)?.access(&schema))?))
    }

    fn plan_drop(&mut self, scope: DropScope, stop: &AtomicBool) -> Result<Box<dyn DropPlan + '_>, TargetError> {
        if let (Some(directory), DropScope::Everything) = (self.directory(), scope) {
            return Ok(Box::new(ClusterToRemove::find(directory, self.options.say)?));
        }
        self.reach(false, None, stop)?;
        let Self { reached, options, .. } = self;
        let reached = reached.as_ref().expect("it was reached just now");
        Ok(Box::new(TablesToRemove::find(reached.access(&options.schema))?))
    }

    fn open(mut self: Box<Self>, request: &OpenRequest<'_>) -> Result<Box<dyn OpenDatabase>, TargetError> {
        let data = self.data(request.stop)?;
        let sessions = request.load.sessions;
        // It was started before anybody knew how many sessions there will be.
        if sessions > DEFAULT_SESSIONS && self.reached.as_ref().is_some_and(|reached| reached.cluster.is_some()) {
            self.reached.take().map_or(Ok(()), Reached::leave)?;
        }
        self.reach(false, Some(sessions), request.stop)?;
        let sending = self.options.sending()?;
        let Self { reached, options, address, .. } = *self;
        let reached = reached.expect("it was reached just now");
        load::open(reached, &address, &options, sending, data, request.load.schemas)
    }

    fn notes(&self) -> Vec<String> {
        self.reached.as_ref().map(Reached::notes).unwrap_or_default()
    }

    fn close(self: Box<Self>) -> Result<(), TargetError> {
        self.reached.map_or(Ok(()), Reached::leave)
    }
}

impl PostgresDatabase {
    /// Whether only the words are asked for of a private cluster that is not there yet.
    fn is_new_cluster_planned(&self) -> Result<bool, TargetError> {
        match self.directory().filter(|_| self.options.dry_run) {
            Some(directory) => Ok(inspect::<Binaries>(directory)?.is_none()),
            None => Ok(false),
        }
    }
}

fn info_sheet(info: &Info) -> Sheet {
    let data = &info.descriptor;
    let mut sheet = Sheet::of(json!(info));
    sheet.add("server", format!("{}, PostgreSQL {}", info.node, info.server_version));
    sheet.add("database", format!("{}, schema {}, role {}", info.database, info.namespace, info.role));
    let state = match (info.stage, &info.in_use_by) {
        (Stage::Ready, _) => "whole".to_owned(),
        (Stage::Loading, Some(by)) => format!("being set up by {by}"),
        (Stage::Loading, None) => "its set-up was never finished; the same `slob setup` goes on".to_owned(),
        (Stage::Dropping, Some(by)) => format!("being removed by {by}"),
        (Stage::Dropping, None) => "half removed; `slob drop` removes the rest".to_owned(),
    };
    sheet.add("state", state);
    sheet.add("made", format!("{}, format {}", data.created_at, data.format_version));
    let words = data_words(data.schemas, data.scale_blocks, data.scan_blocks, data.block_bytes);
    sheet.add("data", format!("{words}, seed {}", data.seed));
    let (bytes, index_bytes) = (Bytes(info.bytes), Bytes(info.index_bytes));
    sheet.add("tables", format!("{}, {bytes} and {index_bytes} of indexes", info.tables.len()));
    sheet.add("checksums", if info.data_checksums { "on" } else { "off" });
    for right in &info.missing {
        sheet.add("missing", format!("{}: {}; {}", right.name, right.gives, right.cure));
    }
    sheet
}

fn verify_sheet(report: &VerifyReport) -> Sheet {
    let mut document = json!(report);
    document["sound"] = json!(report.is_sound());
    let mut sheet = Sheet::of(document);
    sheet.add(
        "read",
        format!(
            "{} rows of {} tables, {} in {}, {:.0} MB/s",
            group_thousands(report.rows as f64),
            report.tables,
            Bytes(report.bytes),
            Nanos(report.elapsed_ns),
            report.bytes as f64 * 1e3 / report.elapsed_ns.max(1) as f64
        ),
    );
    for fault in &report.faults {
        sheet.add("fault", fault.clone());
    }
    let unnamed = report.fault_count.saturating_sub(report.faults.len() as u64);
    if unnamed > 0 {
        sheet.add("", format!("and {} more", group_thousands(unnamed as f64)));
    }
    if report.is_sound() {
        sheet.add("sound", "every row is there once, in a block of its own, and as long as it was loaded");
    } else {
        sheet.add("not sound", "the data are not what was loaded");
    }
    sheet
}
