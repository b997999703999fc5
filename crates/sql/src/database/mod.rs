//! SQL servers as a database for SLOB's method: reached when something is asked of them, and left as they were found.

pub mod durable;
pub(crate) mod orders;
mod setup;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use serde_json::json;

use self::setup::{NewServer, TablesPlan};
use super::data::{Content, DataSet, Found, Stage, VerifyReport, catalog, verify};
use super::private::{MemoryKills, PrivateServer, ServerRequest, check_memory, inspect};
use super::{Monitor, Reported, ServerReader};
use crate::data::catalog::{Dropped, Keeps};
use crate::data::setup::SetUp;
use crate::data::{Access, Proven, Shape, TableId, Verify, drop};
use crate::private::{OurFile, Programs, remove};
use crate::target::WhyGone;
use crate::{ServerError, SlobSession, SqlServers};
use measure::trace::{TraceRequest, Tracer, files_of};
use measure::{environment, os};
use model::record::{ServerFacts, TargetFacts};
use model::units::{Bytes, Nanos, group_thousands};
use targets::database::{
    Cache, Caching, DataFacts, Database, DatabaseOptions, DropPlan, DropScope, Method, OpenDatabase, OpenRequest,
    PlannedLoad, Progress, Sending, SetupPlan, SetupRequest, Sheet, There, Timing, Verified, data_words,
};
use targets::{Background, DatabaseError as _, OwnReportKind, OwnReporter, TargetError};

/// Sessions that a private server takes where it is not known how many are needed.
const DEFAULT_SESSIONS: u32 = 64;
/// Data of so many times a cache leave it little to answer.
const AMPLE_TIMES: u64 = 4;

/// Where the servers are.
pub enum Place<A> {
    /// A private one in this directory.
    Private(PathBuf),
    /// Somebody's.
    Servers(A),
}

/// A private server, or somebody's servers.
pub struct SqlDatabase<D: Dialect> {
    place: Place<AddressOf<D>>,
    /// The address as it is shown.
    address: String,
    options: DatabaseOptions,
    reached: Option<Reached<D>>,
    data: Option<DataSet>,
}

impl<D: Dialect> SqlDatabase<D> {
    /// `address` is how the place is shown.
    pub fn new(place: Place<AddressOf<D>>, address: String, options: &DatabaseOptions) -> Self {
        Self { place, address, options: options.clone(), reached: None, data: None }
    }

    /// The directory of a private server.
    fn directory(&self) -> Option<&Path> {
        match &self.place {
            Place::Private(directory) => Some(directory),
            Place::Servers(_) => None,
        }
    }

    /// Starts a private server, or makes ready to connect, unless that was done. `sessions` are those that are known to come.
    fn reach(&mut self, create: bool, sessions: Option<u32>, stop: &AtomicBool) -> Result<&Reached<D>, TargetError> {
        if self.reached.is_none() {
            self.reached = Some(self.start(create, sessions, stop)?);
        }
        Ok(self.reached.as_ref().expect("it was reached just now"))
    }

    fn start(&self, create: bool, sessions: Option<u32>, stop: &AtomicBool) -> Result<Reached<D>, TargetError> {
        let options = &self.options;
        let (server, address) = match &self.place {
            Place::Servers(address) => (None, address.clone()),
            Place::Private(directory) => {
                let request = ServerRequest {
                    directory: directory.clone(),
                    create,
                    db_cache: options.db_cache,
                    host_memory: options.host_memory,
                    max_sessions: sessions.unwrap_or(0).max(DEFAULT_SESSIONS),
                    sessions: sessions.unwrap_or(1),
                    page_protection: options.page_protection,
                    keep_running: options.keep_running,
                    binaries: options.programs.clone(),
                };
                let server = PrivateServer::<D::Programs>::start(&request, &options.say, stop)?;
                let address = server.address().clone();
                (Some(server), address)
            }
        };
        let connector = D::connector(&address, options.per_node || server.is_some(), options.method)?;
        Ok(Reached { server, connector, namespace: D::namespace(&address, options) })
    }

    /// The data set, which must be whole, and the same on every server.
    fn data(&mut self, stop: &AtomicBool) -> Result<DataSet, TargetError> {
        if self.data.is_none() {
            self.data = Some(self.reach(false, None, stop)?.load()?);
        }
        Ok(self.data.clone().expect("it was read just now"))
    }

    /// The directory of a private server that is not there yet, where only the words are asked for.
    fn planned(&self) -> Result<Option<&Path>, TargetError> {
        match self.directory().filter(|_| self.options.dry_run) {
            Some(directory) => Ok(inspect::<D::Programs>(directory)?.is_none().then_some(directory)),
            None => Ok(None),
        }
    }
}

impl<D: Dialect> Database for SqlDatabase<D> {
    fn there(&mut self, stop: &AtomicBool) -> Result<There, TargetError> {
        if let Some(directory) = self.directory()
            && inspect::<D::Programs>(directory)?.is_none()
        {
            return Ok(There::Nothing);
        }
        let found: Option<Found> = catalog::find(&self.reach(false, None, stop)?.access())?;
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
            redo: None,
        }))
    }

    fn timing(&self) -> Result<Timing, TargetError> {
        Ok(match self.options.sending()? {
            Sending::Batch => Timing::ServerInBatches,
            Sending::Statement => Timing::Client,
        })
    }

    /// Refuses more sessions than the memory of a private server does for, and reports a log that may have too little room.
    fn check_load(&mut self, load: &PlannedLoad, stop: &AtomicBool) -> Result<Vec<String>, TargetError> {
        let (limit, buffers) = (self.options.host_memory, self.options.db_cache);
        if let Some(limit) = limit.filter(|_| self.directory().is_some()) {
            check_memory::<D::Programs>(limit, buffers, load.sessions, Bytes(0)).map_err(|error| {
                let mut hint = error.hint().unwrap_or_default();
                // Where that memory is the cache, more of it takes more data.
                if !D::READS_PAST_PAGE_CACHE {
                    let needed = D::Programs::needed_memory(buffers, load.sessions);
                    let ample = Bytes(needed.0.saturating_mul(AMPLE_TIMES));
                    hint.push_str(&format!("; data of four times that are {ample} in all"));
                }
                unfit(error.to_string(), hint)
            })?;
        }
        let (log, Some(setting)) = D::LOG else { return Ok(Vec::new()) };
        if !load.has_updates {
            return Ok(Vec::new());
        }
        let reached = self.reach(false, None, stop)?;
        let most = reached.facts()?.server.settings.get(setting).and_then(|text| text.parse().ok());
        let short = most.zip(reached.room()).filter(|(most, (_, room)): &(Bytes, _)| most > room);
        let words = short.map(|(most, (at, room))| {
            let at = at.display();
            format!("the {log} may grow to {most} between checkpoints, and {room} are left in `{at}`")
        });
        Ok(words.into_iter().collect())
    }

    fn least_memory(&self, sessions: u32) -> Option<Bytes> {
        self.directory().map(|_| D::Programs::needed_memory(self.options.db_cache, sessions))
    }

    fn block_bytes(&mut self, asked: Option<Bytes>, streams: u32, stop: &AtomicBool) -> Result<u64, TargetError> {
        if let Some(asked) = asked {
            // Servers are made with blocks of one size, which is said before one is made in vain.
            let is_new = self.directory().map(inspect::<D::Programs>).transpose()?.is_some_and(|there| there.is_none());
            let own = Bytes(D::DEFAULT_BLOCK_BYTES);
            if is_new && asked != own {
                let what = format!("blocks of {asked} were requested, but a private server has blocks of {own}");
                return Err(unfit(what, format!("leave the block size out, or ask for {own}")));
            }
            return Ok(asked.0);
        }
        if self.planned()?.is_some() {
            return Ok(D::DEFAULT_BLOCK_BYTES);
        }
        Ok(u64::from(catalog::block_bytes(&self.reach(true, Some(streams), stop)?.access())?))
    }

    fn plan_setup(
        &mut self,
        request: &SetupRequest,
        stop: &AtomicBool,
    ) -> Result<Box<dyn SetupPlan + '_>, TargetError> {
        if self.planned()?.is_none() {
            self.reach(true, Some(request.streams), stop)?;
        }
        let Self { reached, options, place, .. } = self;
        Ok(match (reached, place) {
            (Some(reached), _) => Box::new(TablesPlan::new(reached, options, request)?),
            (None, Place::Private(directory)) => Box::new(NewServer::<D, _>::new(directory, options, request)),
            (None, Place::Servers(_)) => return Err(TargetError::NoData { address: self.address.clone() }),
        })
    }

    fn verify(&mut self, progress: &(dyn Fn(Progress) + Sync), stop: &AtomicBool) -> Result<Verified, TargetError> {
        let report = verify(&self.reach(false, None, stop)?.access(), progress, stop)?;
        Ok(Verified {
            sheet: verify_sheet(&report, D::SOUND),
            is_sound: report.is_sound(),
            is_proven: true,
            notes: report.notes,
        })
    }

    fn info(&mut self, stop: &AtomicBool) -> Result<Sheet, TargetError> {
        D::info(&self.reach(false, None, stop)?.access())
    }

    fn plan_drop(&mut self, scope: DropScope, stop: &AtomicBool) -> Result<Box<dyn DropPlan + '_>, TargetError> {
        if let (Some(directory), DropScope::Everything) = (self.directory().map(Path::to_owned), scope) {
            let whole = ServerToRemove::<D::Programs>::find(&directory, self.options.say)?;
            let others = match self.reach(false, None, stop) {
                Ok(reached) => orders::holds_others(&reached.access())?,
                Err(TargetError::Interrupted) => return Err(TargetError::Interrupted),
                // It has to be possible to remove one that is broken.
                Err(error) => return Ok(Box::new(whole.unseen(&error))),
            };
            if !others {
                self.reached.take().map_or(Ok(()), Reached::leave)?;
                return Ok(Box::new(whole));
            }
            if catalog::find(&self.reach(false, None, stop)?.access())?.is_none() {
                let what = format!(
                    "the private server in `{}` holds other data of Plimsoll, and none of SLOB's method",
                    directory.display()
                );
                let hint = format!(
                    "`plimsoll orders drop --target {0}` removes order entry, `plimsoll durable drop --target {0}` commits",
                    self.address
                );
                return Err(unfit(what, hint));
            }
        }
        Ok(Box::new(TablesToRemove::<_, DataSet>::find(self.reach(false, None, stop)?.access())?))
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
        orders::open_load(reached, address, &options, sending, data, request.load.schemas)
    }

    fn notes(&self) -> Vec<String> {
        self.reached.as_ref().map(Reached::notes).unwrap_or_default()
    }

    fn close(self: Box<Self>) -> Result<(), TargetError> {
        self.reached.map_or(Ok(()), Reached::leave)
    }
}

/// How far data have come.
fn state_words<D: Content>(stage: Stage, in_use_by: Option<&str>) -> String {
    let command = D::COMMAND.trim_start_matches("plimsoll ");
    match (stage, in_use_by) {
        (Stage::Ready, _) => "whole".to_owned(),
        (Stage::Loading, Some(by)) => format!("being set up by {by}"),
        (Stage::Loading, None) => format!("its set-up was never finished; the same `{command} setup` goes on"),
        (Stage::Dropping, Some(by)) => format!("being removed by {by}"),
        (Stage::Dropping, None) => format!("half removed; `{command} drop` removes the rest"),
    }
}

/// Adds to what is known of data how far they have come, what they are and who made them.
pub fn add_state(sheet: &mut Sheet, data: &DataSet, stage: Stage, in_use_by: Option<&str>) {
    sheet.add("state", state_words::<DataSet>(stage, in_use_by));
    sheet.add("made", format!("{}, format {}", data.created_at, data.format_version));
    let words = data_words(data.schemas, data.scale_blocks, data.scan_blocks, data.block_bytes);
    sheet.add("data", format!("{words}, seed {}", data.seed));
}

fn verify_sheet(report: &VerifyReport, sound: &str) -> Sheet {
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
        sheet.add("sound", sound);
    } else {
        sheet.add("not sound", "the data is not what was loaded");
    }
    sheet
}

// Who looks at servers while load runs: the monitor of their counters, and tracing in the kernel.

/// Monitor and tracer of a run.
pub struct Observers<R: ServerReader> {
    monitor: Monitor<R>,
    tracer: Option<Tracer>,
}

impl<R: ServerReader> Observers<R> {
    /// Both together.
    pub fn new(monitor: Monitor<R>, tracer: Option<Tracer>) -> Self {
        Self { monitor, tracer }
    }

    /// What the servers do not report, and what happened to them that figures do not show.
    pub fn notes(&self) -> Vec<String> {
        self.monitor.notes()
    }

    /// What they saw since the last call.
    pub fn take(&self) -> Background {
        let Reported { counters, servers, looks } = self.monitor.take();
        let traces = self.tracer.as_ref().map(Tracer::take).unwrap_or_default();
        Background { counters, servers, traces, looks, ..Background::default() }
    }

    /// Whether the servers still answer.
    ///
    /// # Errors
    /// [`TargetError::ServerSilent`] when one has not answered for [`ServerReader::SILENCE`].
    pub fn check(&self) -> Result<(), TargetError> {
        match self.monitor.silent_for() {
            Some(silent) if silent > R::SILENCE => Err(TargetError::ServerSilent { waited_s: silent.as_secs() }),
            _ => Ok(()),
        }
    }
}

/// The first process of a server that runs on this machine, and its files.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LocalFiles {
    /// The process.
    pid: u32,
    /// Directories and files of its database; the data directory first, then logs and tables that may be on devices of their own.
    files: Vec<PathBuf>,
}

impl LocalFiles {
    /// Of a process whose data directory may be known.
    fn of((pid, data_directory): (u32, Option<PathBuf>)) -> Self {
        Self { pid, files: data_directory.into_iter().chain(files_of(pid)).collect() }
    }
}

/// Begins to trace the reads and writes of a server's process and of the devices below its files, where that is possible; says in
/// `notes` why it is not. `servers` is how many there are.
fn trace(servers: usize, local: Option<&LocalFiles>, notes: &mut Vec<String>) -> Option<Tracer> {
    if servers > 1 {
        notes.push("reads and writes are not traced in the kernel where there are several servers".to_owned());
        return None;
    }
    let Some(LocalFiles { pid, files }) = local else {
        notes.push(
            "reads and writes are not traced: the server's processes cannot be seen from this machine".to_owned(),
        );
        return None;
    };
    let devices = environment::devices_below_all(files);
    match Tracer::start(&TraceRequest { process: Some(*pid), devices }) {
        Ok(tracer) => Some(tracer),
        Err(missing) => {
            let hint = missing.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
            notes.push(format!("reads and writes are not traced in the kernel: {missing}{hint}"));
            None
        }
    }
}

/// Name under which the sessions of the load are known to the server.
pub const APPLICATION: &str = "plimsoll";

/// Where servers of one kind are reached.
pub type AddressOf<D> = <<D as Dialect>::Programs as Programs>::Address;

/// Servers of one kind, by what connects to them.
pub trait Dialect: SetUp + Verify {
    /// Name of the field that names the holder of the data in the document of a set-up.
    const HOLDER_FIELD: &'static str = Self::HOLDER;
    /// Size of a block of a server as it is made everywhere.
    const DEFAULT_BLOCK_BYTES: u64 = 8192;
    /// What its log is called, and the setting that limits how far it grows between checkpoints.
    const LOG: (&'static str, Option<&'static str>) = ("redo log", None);
    /// What is to be known of data that were loaded just now.
    const AFTER_LOADING: Option<&'static str> = None;
    /// The setting by which commits of a private server do not wait for its log, with the statements that set it for sessions to come and
    /// that put it back; none where servers are never private.
    const UNWAITED: Option<[&'static str; 3]> = None;
    /// Whether data files of a private server are read past the page cache.
    const READS_PAST_PAGE_CACHE: bool = true;
    /// What its buffers are called, and by which setting.
    const BUFFERS: (&'static str, &'static str) = (Self::Programs::KIND.buffers, Self::Programs::KIND.buffers_setting);
    /// What is said of data in which nothing is wrong.
    const SOUND: &'static str = "every row is there once, in a block of its own, and as long as it was loaded";

    /// What private servers are made of, and where servers are reached; [`NoPrograms`](crate::private::NoPrograms) where there are none.
    type Programs: Programs;
    /// What load is put on.
    type Servers: SqlServers<Session: SlobSession>;
    /// Reads what servers count.
    type Reader: ServerReader;

    /// What connects to the servers of an address: to each of them, or to the first that accepts a connection. `method` is for those
    /// that have a choice.
    ///
    /// # Errors
    /// When something that the address needs is missing, or none accepts a connection.
    fn connector(address: &AddressOf<Self>, per_node: bool, method: Method) -> Result<Self, TargetError>;

    /// What holds the data there, by its name without quotes.
    fn namespace(_address: &AddressOf<Self>, options: &DatabaseOptions) -> String {
        options.schema.clone()
    }

    /// What the user should know about how the address was understood.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Which database a node leads to, where several may lead to one: what is in it is proven once.
    ///
    /// # Errors
    /// When it cannot be asked.
    fn database_of(_access: &Access<'_, Self>) -> Result<Option<String>, TargetError> {
        Ok(None)
    }

    /// What is worth knowing of the first server: `server_version`, and the settings that matter to results.
    ///
    /// # Errors
    /// When it cannot be asked.
    fn facts(&self) -> Result<TargetFacts, TargetError>;

    /// What is known of the data without reading them.
    ///
    /// # Errors
    /// When there are none, or the server cannot be asked.
    fn info(access: &Access<'_, Self>) -> Result<Sheet, TargetError>;

    /// Proves how the tables of the first `schemas` schemas lie, in a session as the load's are.
    ///
    /// # Errors
    /// The reason and the cure if they lie otherwise; or why the server cannot be asked.
    fn prove(access: &Access<'_, Self>, data: &DataSet, schemas: u32) -> Result<Proven, TargetError>;

    /// What to know of a server with such settings before its figures are believed.
    fn doubts(_server: &ServerFacts, _data: &DataSet) -> Vec<String> {
        Vec::new()
    }

    /// Who reads what the servers count.
    fn reader(&self, watched: &Watched<'_>) -> Self::Reader;

    /// Who has the servers report on windows by themselves.
    ///
    /// # Errors
    /// When the servers have no such reports, or do not let the user have them.
    fn own_reporter(&self, kind: OwnReportKind) -> Result<Box<dyn OwnReporter>, TargetError> {
        let what = format!("{} does not make reports of {}", Self::PRODUCT.kind, kind.name());
        Err(ServerError::unfit(what, Some("leave `--awr` and `--statspack` out".to_owned())).into())
    }

    /// A table of SLOB's in a namespace, as it stands in SQL.
    fn table_name(&self, namespace: &str, table: TableId) -> String {
        Self::qualified(namespace, &table.name())
    }

    /// What opens sessions for the data on the servers.
    fn servers(&self, namespace: &str, data: &DataSet) -> Self::Servers;

    /// Number and data of the first process of the only server, if it is not a private one and runs on this machine.
    ///
    /// # Errors
    /// When the server cannot be asked.
    fn process(&self) -> Result<Option<(u32, Option<PathBuf>)>, TargetError> {
        Ok(None)
    }

    /// Reads how large the tables of the first `schemas` schemas are, where a load may change that.
    ///
    /// # Errors
    /// When the server cannot be asked.
    fn shape(_access: &Access<'_, Self>, _data: &DataSet, _schemas: u32) -> Result<Option<Shape>, TargetError> {
        Ok(None)
    }
}

/// What is watched while load runs.
pub struct Watched<'a> {
    pub(crate) namespace: &'a str,
    /// Size of a block of the servers, in bytes.
    pub(crate) block_bytes: u32,
    /// SLOB's schemas that are under load.
    pub(crate) schemas: u32,
    /// What is known of the server.
    pub(crate) server: &'a ServerFacts,
    /// Number and data of the first process of a private server.
    pub(crate) process: Option<(u32, PathBuf)>,
}

/// The tables of data on somebody's server.
pub(crate) struct TablesToRemove<'a, C, D>(drop::TablesToDrop<'a, C, D>);

impl<'a, C: Keeps<D>, D: Dropped<C>> TablesToRemove<'a, C, D> {
    pub(crate) fn find(access: Access<'a, C>) -> Result<Self, TargetError> {
        Ok(Self(drop::plan(&access)?))
    }
}

impl<C: Keeps<D>, D: Content> DropPlan for TablesToRemove<'_, C, D> {
    fn what(&self) -> String {
        let drop::TablesToDrop { access, objects, procedures, bytes, .. } = &self.0;
        let procedures = match procedures.len() {
            0 => String::new(),
            count => format!(" and {count} procedures"),
        };
        format!("{} {}{procedures}, {}, in {}", objects.len(), D::DROPPED, Bytes(*bytes), access.place())
    }

    fn items(&self) -> Vec<(u64, String)> {
        let procedures = self.0.procedures.iter().map(|name| (0, name.clone()));
        self.0.objects.iter().map(|(name, bytes)| (*bytes, name.clone())).chain(procedures).collect()
    }

    fn run(self: Box<Self>, stop: &AtomicBool) -> Result<Option<String>, TargetError> {
        Ok(drop::run(self.0, stop)?.then(|| format!("the {} itself", C::HOLDER)))
    }
}

/// A private server with everything in its directory.
struct ServerToRemove<P> {
    directory: PathBuf,
    files: Vec<OurFile>,
    say: fn(&str),
    /// Why nobody knows what is in it.
    unseen: Option<String>,
    programs: std::marker::PhantomData<P>,
}

impl<P: Programs> ServerToRemove<P> {
    fn find(directory: &Path, say: fn(&str)) -> Result<Self, TargetError> {
        let path = directory.to_owned();
        match inspect::<P>(directory)? {
            Some(found) => {
                let files = found.files;
                Ok(Self { directory: path, files, say, unseen: None, programs: std::marker::PhantomData })
            }
            None => Err(TargetError::NoPrivateServer { path }),
        }
    }

    /// The same, of a server that could not be asked what is in it.
    fn unseen(self, error: &TargetError) -> Self {
        Self { unseen: Some(error.to_string()), ..self }
    }
}

impl<P: Programs> DropPlan for ServerToRemove<P> {
    fn what(&self) -> String {
        let bytes = Bytes(self.files.iter().map(|file| file.bytes.0).sum());
        let unseen = self.unseen.as_ref().map(|why| format!(" (its contents are not known: {why})"));
        format!("the private {} in `{}`, {bytes}{}", P::KIND.noun, self.directory.display(), unseen.unwrap_or_default())
    }

    fn items(&self) -> Vec<(u64, String)> {
        self.files.iter().map(|file| (file.bytes.0, file.path.display().to_string())).collect()
    }

    fn run(self: Box<Self>, stop: &AtomicBool) -> Result<Option<String>, TargetError> {
        remove::<P>(&self.directory, &self.say, stop)?;
        Ok(None)
    }
}

/// A private server that runs now, or somebody else's servers.
struct Reached<D: Dialect> {
    server: Option<PrivateServer<D::Programs>>,
    connector: D,
    namespace: String,
}

impl<D: Dialect> Reached<D> {
    /// The data on the first server.
    fn access(&self) -> Access<'_, D> {
        Access::new(&self.connector, &self.namespace)
    }

    /// The data on each server.
    fn nodes(&self) -> impl Iterator<Item = Access<'_, D>> {
        (0..self.connector.node_names().len()).map(|node| Access { node, ..self.access() })
    }

    /// What is worth knowing of it: its version and settings, and who started it.
    fn facts(&self) -> Result<TargetFacts, TargetError> {
        self.server.as_ref().map_or_else(|| self.connector.facts(), |server| Ok(server.facts().clone()))
    }

    fn notes(&self) -> Vec<String> {
        let of_server = self.server.iter().flat_map(|server| server.notes().iter().cloned());
        self.connector.remarks().into_iter().chain(of_server).collect()
    }

    /// Number and data of the first process of a private server.
    fn process(&self) -> Option<(u32, PathBuf)> {
        self.server.as_ref().map(|server| (server.pid(), server.data_directory()))
    }

    /// Says whether the kernel killed a private server for its memory from now on.
    fn why_gone(&self) -> Option<WhyGone> {
        let kills = MemoryKills::watch(self.server.as_ref()?.pid())?;
        let node = self.access().node_name().to_string();
        Some(Box::new(move || {
            let limit = kills.limit_that_killed()?;
            Some(ServerError::KilledForMemory { product: D::PRODUCT, node: node.clone(), limit }.into())
        }))
    }

    /// The largest cache between the load and storage, as far as it is known: the memory of a private server whose files are
    /// cached besides, else the server's buffers.
    fn cache(&self, host_memory: Option<Bytes>) -> Result<Option<Cache>, TargetError> {
        let ServerFacts { memory_limit_bytes, settings, .. } = self.facts()?.server;
        if self.server.is_some() && !D::READS_PAST_PAGE_CACHE {
            return Ok(memory(host_memory.or_else(|| memory_limit_bytes.map(Bytes))));
        }
        let bytes = settings.get(D::BUFFERS.1).and_then(|text| text.parse::<Bytes>().ok());
        Ok(bytes.map(|bytes| buffers::<D>(bytes, self.server.is_some())))
    }

    /// Room that is left where the data are, if that is on this machine and known.
    fn room(&self) -> Option<(PathBuf, Bytes)> {
        let (_, directory) = self.process()?;
        let space = os::space(&directory)?;
        Some((directory, Bytes(space.available_bytes)))
    }

    /// The data set, which must be whole, and the same on every server.
    fn load(&self) -> Result<DataSet, TargetError> {
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

    fn leave(self) -> Result<(), TargetError> {
        self.server.map_or(Ok(()), PrivateServer::stop)
    }
}

/// What a private server that is not there yet will have as its cache.
fn planned_cache<D: Dialect>(options: &DatabaseOptions) -> Option<Cache> {
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
fn unfit(what: String, hint: String) -> TargetError {
    ServerError::unfit(what, Some(hint)).into()
}
