//! MySQL and MariaDB as a database for SLOB's method: reached when something is asked of it, and left as it was found.

mod load;
mod removal;
mod setup;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use serde_json::json;

use super::data::{self, Access, Info, VerifyReport};
use super::server::{self, Binaries};
use super::{Connector, MysqlError};
use crate::config::TargetAddress;
use crate::measure::{environment, os};
use crate::targets::TargetError;
use crate::targets::database::{
    Cache, Caching, DataFacts, Database, DatabaseOptions, DropPlan, DropScope, OpenDatabase, OpenRequest, PlannedLoad,
    Progress, Sending, SetupPlan, SetupRequest, Sheet, There, Timing, Verified, data_words,
};
use crate::targets::sql::data::descriptor::{DataSet, Stage};
use crate::targets::sql::private::{PrivateServer, Programs, ServerRequest, inspect};
use crate::units::{Bytes, Nanos, group_thousands};
use removal::{ServerToRemove, TablesToRemove};
use setup::{NewServer, TablesPlan};

/// Name under which the sessions of the load are known to the server.
const APPLICATION: &str = "plimsoll";
/// Database that holds the data where the address names none.
const DEFAULT_DATABASE: &str = "plimsoll";
/// Sessions that a private server takes where it is not known how many are needed.
const DEFAULT_SESSIONS: u32 = 64;
/// Size of a page of a server as it is made everywhere.
const DEFAULT_PAGE_BYTES: u64 = 16_384;

/// A private server (`my:DIR`), or somebody's servers.
pub(in crate::targets) struct MysqlDatabase {
    address: TargetAddress,
    options: DatabaseOptions,
    reached: Option<Reached>,
    data: Option<DataSet>,
}

/// A server that answers: a private one that runs now, or somebody else's.
struct Reached {
    server: Option<PrivateServer<Binaries>>,
    connector: Connector,
    database: String,
}

impl MysqlDatabase {
    pub(in crate::targets) fn new(address: TargetAddress, options: &DatabaseOptions) -> Self {
        Self { address, options: options.clone(), reached: None, data: None }
    }

    /// The directory of a private server.
    fn directory(&self) -> Option<&Path> {
        match &self.address {
            TargetAddress::PrivateMysql(directory) => Some(directory),
            _ => None,
        }
    }

    /// Starts a private server, or makes ready to connect, unless that was done. `sessions` are those that are known to come.
    fn reach(&mut self, create: bool, sessions: Option<u32>, stop: &AtomicBool) -> Result<&Reached, TargetError> {
        if self.reached.is_none() {
            self.reached = Some(self.start(create, sessions, stop)?);
        }
        Ok(self.reached.as_ref().expect("it was reached just now"))
    }

    fn start(&self, create: bool, sessions: Option<u32>, stop: &AtomicBool) -> Result<Reached, TargetError> {
        let options = &self.options;
        match &self.address {
            TargetAddress::PrivateMysql(directory) => {
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
                let server = PrivateServer::<Binaries>::start(&request, &options.say, stop)?;
                let address = server.address().clone();
                let connector = Connector::new(&address, APPLICATION)?;
                let database = address.database.unwrap_or_else(|| DEFAULT_DATABASE.to_owned());
                Ok(Reached { server: Some(server), connector, database })
            }
            TargetAddress::Mysql(address) => {
                let connector = Connector::new(address, APPLICATION)?;
                let connector = if options.per_node { connector } else { connector.single()? };
                let database = address.database.clone().unwrap_or_else(|| DEFAULT_DATABASE.to_owned());
                Ok(Reached { server: None, connector, database })
            }
            address => Err(TargetError::NoData { address: address.to_string() }),
        }
    }

    /// The data set, which must be whole, and the same on every server.
    fn data(&mut self, stop: &AtomicBool) -> Result<DataSet, TargetError> {
        if self.data.is_none() {
            self.data = Some(load_everywhere(self.reach(false, None, stop)?)?);
        }
        Ok(self.data.clone().expect("it was read just now"))
    }

    /// Whether only the words are asked for of a private server that is not there yet.
    fn is_new_server_planned(&self) -> Result<bool, TargetError> {
        match self.directory().filter(|_| self.options.dry_run) {
            Some(directory) => Ok(inspect::<Binaries>(directory)?.is_none()),
            None => Ok(false),
        }
    }
}

impl Reached {
    fn access(&self) -> Access<'_> {
        Access::new(&self.connector, &self.database)
    }

    /// What is worth knowing of it: its version and settings, and who started it.
    fn facts(&self) -> Result<BTreeMap<String, String>, MysqlError> {
        match &self.server {
            Some(server) => Ok(server.facts().clone()),
            None => server::facts(&self.connector, 0),
        }
    }

    fn notes(&self) -> Vec<String> {
        let of_server = self.server.iter().flat_map(|server| server.notes().iter().cloned());
        self.connector.notes().iter().cloned().chain(of_server).collect()
    }

    /// The largest cache between the load and storage, as far as it is known: the buffer pool, since data files are read past the
    /// page cache.
    fn cache(&self) -> Result<Option<Cache>, MysqlError> {
        let bytes = self.facts()?.get("setting.innodb_buffer_pool_size").and_then(|text| text.parse::<Bytes>().ok());
        let cure = self.server.is_some().then_some("use a smaller `--db-cache`");
        Ok(bytes.map(|bytes| Cache { bytes, what: "the server's buffer pool".to_owned(), cure }))
    }

    /// Room that is left where the data are, if that is on this machine and known.
    fn room(&self) -> Option<(PathBuf, Bytes)> {
        let directory = self.server.as_ref()?.data_directory();
        let space = os::space(&directory)?;
        Some((directory, Bytes(space.available_bytes)))
    }

    fn leave(self) -> Result<(), TargetError> {
        self.server.map_or(Ok(()), PrivateServer::stop)
    }
}

fn load_everywhere(reached: &Reached) -> Result<DataSet, TargetError> {
    let first = data::load(&reached.access())?;
    for node in 1..reached.connector.nodes().len() {
        let access = Access { node, ..reached.access() };
        let other = data::load(&access)?;
        // Two servers may hold the same data from two set-ups; only when they were made differs then.
        let (created_at, plimsoll_version) = (first.created_at.clone(), first.plimsoll_version.clone());
        if (DataSet { created_at, plimsoll_version, ..other }) != first {
            let first = reached.access().node_name();
            let what = format!("the data on `{}` differ from those on `{first}`", access.node_name());
            let hint = "set both up with the same parameters and the same `--seed`".to_owned();
            return Err(MysqlError::Unfit { what, hint: Some(hint) }.into());
        }
    }
    Ok(first)
}

impl Database for MysqlDatabase {
    fn there(&mut self, stop: &AtomicBool) -> Result<There, TargetError> {
        if let Some(directory) = self.directory()
            && inspect::<Binaries>(directory)?.is_none()
        {
            return Ok(There::Nothing);
        }
        let found = data::find(&self.reach(false, None, stop)?.access())?;
        Ok(if found.is_some() { There::Data } else { There::NoData })
    }

    fn facts(&mut self, stop: &AtomicBool) -> Result<Option<DataFacts>, TargetError> {
        let DataSet { schemas, scale_blocks, scan_blocks, block_bytes, filling, .. } = self.data(stop)?;
        let caching = self.reach(false, None, stop)?.cache()?.map_or(Caching::Unknown, Caching::There);
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

    /// Refuses more sessions than the memory of a private server does for.
    fn check_load(&mut self, load: &PlannedLoad, _stop: &AtomicBool) -> Result<Vec<String>, TargetError> {
        let needed = Binaries::needed_memory(self.options.db_cache, load.sessions);
        if let Some(limit) = self.options.host_memory.filter(|limit| *limit < needed && self.directory().is_some()) {
            let what = format!("`--host-memory {limit}` is too little for {} sessions", load.sessions);
            let hint = format!("give the server at least {needed}, or use fewer sessions or a smaller `--db-cache`");
            return Err(MysqlError::Unfit { what, hint: Some(hint) }.into());
        }
        Ok(Vec::new())
    }

    fn block_bytes(&mut self, asked: Option<Bytes>, streams: u32, stop: &AtomicBool) -> Result<u64, TargetError> {
        if let Some(asked) = asked {
            return Ok(asked.0);
        }
        if self.is_new_server_planned()? {
            return Ok(DEFAULT_PAGE_BYTES);
        }
        Ok(u64::from(data::page_bytes(&self.reach(true, Some(streams), stop)?.access())?))
    }

    fn plan_setup(
        &mut self,
        request: &SetupRequest,
        stop: &AtomicBool,
    ) -> Result<Box<dyn SetupPlan + '_>, TargetError> {
        if self.is_new_server_planned()? {
            return Ok(Box::new(NewServer {
                address: &self.address,
                options: &self.options,
                request: request.clone(),
            }));
        }
        Ok(Box::new(TablesPlan::new(self.reach(true, Some(request.streams), stop)?, request)?))
    }

    fn verify(&mut self, progress: &(dyn Fn(Progress) + Sync), stop: &AtomicBool) -> Result<Verified, TargetError> {
        let report = data::verify(&self.reach(false, None, stop)?.access(), progress, stop)?;
        Ok(Verified { sheet: verify_sheet(&report), is_sound: report.is_sound(), notes: report.notes })
    }

    fn info(&mut self, stop: &AtomicBool) -> Result<Sheet, TargetError> {
        Ok(info_sheet(&data::info(&self.reach(false, None, stop)?.access())?))
    }

    fn plan_drop(&mut self, scope: DropScope, stop: &AtomicBool) -> Result<Box<dyn DropPlan + '_>, TargetError> {
        if let (Some(directory), DropScope::Everything) = (self.directory(), scope) {
            return Ok(Box::new(ServerToRemove::find(directory, self.options.say)?));
        }
        Ok(Box::new(TablesToRemove::find(self.reach(false, None, stop)?.access())?))
    }

    fn open(mut self: Box<Self>, request: &OpenRequest<'_>) -> Result<Box<dyn OpenDatabase>, TargetError> {
        let data = self.data(request.stop)?;
        let sessions = request.load.sessions;
        // It was started before anybody knew how many sessions there will be.
        if sessions > DEFAULT_SESSIONS && self.reached.as_ref().is_some_and(|reached| reached.server.is_some()) {
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

fn info_sheet(info: &Info) -> Sheet {
    let data = &info.descriptor;
    let mut sheet = Sheet::of(json!(info));
    sheet.add("server", format!("{}, {}", info.node, info.server_version));
    sheet.add("database", format!("{}, user {}", info.database, info.user));
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
    sheet.add("tables", format!("{}, {} with their indexes", info.tables.len(), Bytes(info.bytes)));
    sheet.add("buffer pool", Bytes(info.buffer_pool_bytes).to_string());
    sheet
}

fn verify_sheet(report: &VerifyReport) -> Sheet {
    let mut document = json!(report);
    document["sound"] = json!(report.is_sound());
    let mut sheet = Sheet::of(document);
    let (rows, tables) = (group_thousands(report.rows as f64), report.tables);
    let (bytes, took) = (Bytes(report.bytes), Nanos(report.elapsed_ns));
    let mb_per_s = report.bytes as f64 * 1e3 / report.elapsed_ns.max(1) as f64;
    sheet.add("read", format!("{rows} rows of {tables} tables, {bytes} in {took}, {mb_per_s:.0} MB/s"));
    for fault in &report.faults {
        sheet.add("fault", fault.clone());
    }
    let unnamed = report.fault_count.saturating_sub(report.faults.len() as u64);
    if unnamed > 0 {
        sheet.add("", format!("and {} more", group_thousands(unnamed as f64)));
    }
    if report.is_sound() {
        sheet.add("sound", "every row is there once, and as long as it was loaded");
    } else {
        sheet.add("not sound", "the data are not what was loaded");
    }
    sheet
}

/// What a private server will have as its cache.
fn planned_cache(options: &DatabaseOptions) -> Cache {
    let bytes = environment::available_memory().map_or(options.db_cache, |free| options.db_cache.min(free));
    Cache { bytes, what: "the server's buffer pool".to_owned(), cure: Some("use a smaller `--db-cache`") }
}
