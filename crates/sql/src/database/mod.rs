//! SQL servers as a database for SLOB's method: reached when something is asked of them, and left as they were found.

pub mod dialect;
mod load;
pub(crate) mod orders;
mod orders_load;
mod reached;
pub(crate) mod removal;
mod setup;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use serde_json::json;

use self::dialect::{AddressOf, Dialect};
use self::reached::{Reached, unfit};
use self::removal::{ServerToRemove, TablesToRemove};
use self::setup::{NewServer, TablesPlan};
use super::data::catalog;
use super::data::content::Content;
use super::data::descriptor::{DataSet, Found, Stage};
use super::data::verify::{VerifyReport, verify};
use super::private::{PrivateServer, Programs as _, ServerRequest, check_memory, inspect};
use model::units::{Bytes, Nanos, group_thousands};
use targets::database::{
    Caching, DataFacts, Database, DatabaseOptions, DropPlan, DropScope, OpenDatabase, OpenRequest, PlannedLoad,
    Progress, Sending, SetupPlan, SetupRequest, Sheet, There, Timing, Verified, data_words,
};
use targets::{DatabaseError as _, TargetError};

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
        let most = reached.facts()?.get(&format!("setting.{setting}")).and_then(|text| text.parse().ok());
        let short = most.zip(reached.room()).filter(|(most, (_, room)): &(Bytes, _)| most > room);
        let words = short.map(|(most, (at, room))| {
            let at = at.display();
            format!("the {log} may grow to {most} between checkpoints, and {room} are left in `{at}`")
        });
        Ok(words.into_iter().collect())
    }

    fn block_bytes(&mut self, asked: Option<Bytes>, streams: u32, stop: &AtomicBool) -> Result<u64, TargetError> {
        if let Some(asked) = asked {
            // Servers are made with blocks of one size, which is said before one is made in vain.
            let is_new = self.directory().map(inspect::<D::Programs>).transpose()?.is_some_and(|there| there.is_none());
            let own = Bytes(D::DEFAULT_BLOCK_BYTES);
            if is_new && asked != own {
                let what = format!("blocks of {asked} were asked for, and a private server has blocks of {own}");
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
        Ok(Verified { sheet: verify_sheet(&report, D::SOUND), is_sound: report.is_sound(), notes: report.notes })
    }

    fn info(&mut self, stop: &AtomicBool) -> Result<Sheet, TargetError> {
        D::info(&self.reach(false, None, stop)?.access())
    }

    fn plan_drop(&mut self, scope: DropScope, stop: &AtomicBool) -> Result<Box<dyn DropPlan + '_>, TargetError> {
        if let (Some(directory), DropScope::Everything) = (self.directory().map(Path::to_owned), scope) {
            let whole = ServerToRemove::<D::Programs>::find(&directory, self.options.say)?;
            let others = match self.reach(false, None, stop) {
                Ok(reached) => orders::holds_orders(&reached.access())?,
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
                    "the private server in `{}` holds order entry, and no data of SLOB's method",
                    directory.display()
                );
                let hint = format!("`plimsoll orders drop --target {}` removes it", self.address);
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
        load::open(reached, address, &options, sending, data, request.load.schemas)
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
        sheet.add("not sound", "the data are not what was loaded");
    }
    sheet
}
