//! The embedded engine as a database: its directory, and what is said about it.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use serde_json::{Map, json};

use super::block::{BlockShape, COLUMNS};
use super::descriptor::Descriptor;
use super::destination::Destinations;
use super::directory::Directory;
use super::engine::{Engine, EngineOptions};
use super::info::{self, Info, State};
use super::ledger::LedgerReach;
use super::recovery::Recovery;
use super::redo;
use super::setup::{self, Existing};
use super::verify::{self, VerifyReport};
use crate::database::{
    Cache, Caching, DataFacts, Database, DatabaseOptions, DropPlan, DropScope, Filling, OpenDatabase, OpenRequest,
    Phase, PlannedLoad, Progress, SetupPlan, SetupReport, SetupRequest, Sheet, There, Timing, Verified, data_words,
};
use crate::io::Scrubbed;
use crate::{TargetError, TargetFor};
use measure::{Clock, environment};
use model::units::{Bytes, Nanos, group_thousands};
use model::workload::SlobOperation;

/// Size of a block where nobody says otherwise, as databases have it.
const DEFAULT_BLOCK: Bytes = Bytes::kib(8);
/// Bad blocks that are named to a reader; the document has more of them.
const MAX_NAMED_BAD_BLOCKS: usize = 20;

/// Data of the embedded engine in a directory.
pub struct EngineDirectory {
    path: PathBuf,
    options: DatabaseOptions,
}

impl EngineDirectory {
    /// The directory at `path`. Nothing is opened yet.
    pub fn new(path: PathBuf, options: &DatabaseOptions) -> Self {
        Self { path, options: options.clone() }
    }
}

impl Database for EngineDirectory {
    fn there(&mut self, _stop: &AtomicBool) -> Result<There, TargetError> {
        match Descriptor::load(&self.path) {
            Ok(_) => Ok(There::Data),
            Err(TargetError::NotSetUp { .. }) => Ok(There::Nothing),
            Err(error) => Err(error),
        }
    }

    fn facts(&mut self, _stop: &AtomicBool) -> Result<Option<DataFacts>, TargetError> {
        let Descriptor { schemas, scale_blocks, scan_blocks, block_bytes, filling, .. } = Descriptor::load(&self.path)?;
        let (available_memory, caching) = (environment::available_memory(), Caching::Asked);
        let redo = BlockShape::new(block_bytes as usize).map(|shape| redo::sizes(shape.column_bytes(), COLUMNS));
        Ok(Some(DataFacts {
            schemas,
            scale_blocks,
            scan_blocks,
            block_bytes,
            filling,
            available_memory,
            caching,
            redo,
        }))
    }

    fn timing(&self) -> Result<Timing, TargetError> {
        Ok(Timing::Engine)
    }

    fn check_load(&mut self, _load: &PlannedLoad, _stop: &AtomicBool) -> Result<Vec<String>, TargetError> {
        let Some(flash) = &self.options.flash else { return Ok(Vec::new()) };
        flash.check(&Descriptor::load(&self.path)?.layout(&self.path)?)?;
        Ok(Vec::new())
    }

    fn block_bytes(&mut self, asked: Option<Bytes>, _streams: u32, _stop: &AtomicBool) -> Result<u64, TargetError> {
        Ok(asked.unwrap_or(DEFAULT_BLOCK).0)
    }

    fn plan_setup(
        &mut self,
        request: &SetupRequest,
        _stop: &AtomicBool,
    ) -> Result<Box<dyn SetupPlan + '_>, TargetError> {
        let there = Descriptor::load(&self.path).ok().map(|data| data.seed);
        let request = setup::EngineRequest {
            data: request.beside(there),
            redo_file_bytes: self.options.redo_file.0,
            redo_files: self.options.redo_files,
            destinations: Destinations {
                data: self.options.data_dest.clone(),
                redo: self.options.redo_dest.clone(),
                ledger: self.options.ledger.clone(),
            },
            permission: self.options.permission.clone(),
            io_engine: self.options.io_engine,
        };
        Ok(Box::new(DirectoryPlan { plan: setup::plan(&self.path, &request)?, cache: self.options.cache }))
    }

    fn verify(&mut self, progress: &(dyn Fn(Progress) + Sync), stop: &AtomicBool) -> Result<Verified, TargetError> {
        let (io, scrub, ledger) = (self.options.io_engine, self.options.scrub, self.options.ledger.as_deref());
        let report = verify::verify(&self.path, ledger, io, scrub, progress, stop)?;
        let (is_sound, is_proven) = (report.is_sound(), report.is_proven());
        Ok(Verified { sheet: verify_sheet(&report), notes: Vec::new(), is_sound, is_proven })
    }

    fn info(&mut self, _stop: &AtomicBool) -> Result<Sheet, TargetError> {
        Ok(info_sheet(&info::info(&self.path)?))
    }

    fn plan_drop(&mut self, _scope: DropScope, _stop: &AtomicBool) -> Result<Box<dyn DropPlan + '_>, TargetError> {
        let directory = Directory::lock(&self.path)?;
        let mut files = directory.our_files()?;
        for elsewhere in directory.elsewhere()? {
            files.extend(elsewhere.elsewhere().map(|file| (file.path(), file.bytes)));
        }
        Ok(Box::new(FilesToRemove { directory, files }))
    }

    fn open(self: Box<Self>, request: &OpenRequest<'_>) -> Result<Box<dyn OpenDatabase>, TargetError> {
        let options = EngineOptions {
            cache: self.options.cache,
            writers: None,
            max_sessions: request.load.sessions,
            io_engine: self.options.io_engine,
            flash: self.options.flash.clone(),
            ledger: self.options.ledger.clone(),
        };
        let clock = Clock::start();
        let engine = Engine::open(&self.path, &options, clock, request.recovering)?;
        let flash = self.options.flash.map(|flash| flash.path);
        let paths = [self.path].into_iter().chain(flash).collect();
        Ok(Box::new(OpenEngine { engine, clock, paths }))
    }
}

/// The engine, open for load.
struct OpenEngine {
    engine: Engine,
    clock: Clock,
    /// Of the data, and of the flash cache.
    paths: Vec<PathBuf>,
}

impl OpenDatabase for OpenEngine {
    fn target(&self) -> &dyn TargetFor<SlobOperation> {
        &self.engine
    }

    fn clock(&self) -> Clock {
        self.clock
    }

    fn paths(&self) -> Vec<PathBuf> {
        self.paths.clone()
    }

    fn notes_of_the_load(&self) -> Vec<String> {
        self.engine.notes_on_flash()
    }

    fn close(self: Box<Self>) -> Result<(), TargetError> {
        self.engine.close()
    }
}

/// The files of a data set, which nobody else can use until they are gone.
struct FilesToRemove {
    directory: Directory,
    files: Vec<(PathBuf, u64)>,
}

impl DropPlan for FilesToRemove {
    fn what(&self) -> String {
        let bytes = Bytes(self.files.iter().map(|(_, bytes)| bytes).sum());
        format!("{bytes} of data, {} files, in `{}`", self.files.len(), self.directory.path().display())
    }

    fn items(&self) -> Vec<(u64, String)> {
        self.files.iter().map(|(path, bytes)| (*bytes, path.display().to_string())).collect()
    }

    fn run(self: Box<Self>, _stop: &AtomicBool) -> Result<Option<String>, TargetError> {
        self.directory.remove()?;
        Ok(None)
    }
}

/// Files that are to be made.
struct DirectoryPlan {
    plan: setup::EnginePlan,
    /// Of the runs that come, unless they are given another.
    cache: Bytes,
}

impl SetupPlan for DirectoryPlan {
    fn sheet(&self) -> Sheet {
        let plan = &self.plan;
        let mut sheet = Sheet::default();
        let there = match plan.existing {
            Existing::Nothing => "no data",
            Existing::SameData => "the requested data",
            Existing::Unfinished => "an unfinished set-up, which would be removed",
            Existing::OtherData => "other data, which would be removed",
        };
        sheet.add("directory", plan.directory.display().to_string());
        sheet.add("there now", there);
        sheet.add("data", plan.request.data.words());
        sheet.add("seed", plan.request.data.seed.to_string());
        sheet.add("written by", plan.io_engine.to_string());
        for (label, place) in
            [("data files in", &plan.request.destinations.data), ("redo files in", &plan.request.destinations.redo)]
        {
            place.iter().for_each(|place| sheet.add(label, place.clone()));
        }
        if plan.has_work() {
            sheet.add("space", format!("{}, {} of it data", Bytes(plan.total_bytes), Bytes(plan.data_bytes)));
            for (number, (name, bytes)) in plan.files.iter().enumerate() {
                let label = if number == 0 { "files" } else { "" };
                sheet.add(label, format!("{name:<24} {:>10}", Bytes(*bytes)));
            }
        }
        sheet
    }

    fn makes_data(&self) -> bool {
        self.plan.has_work()
    }

    fn notes(&self) -> Vec<String> {
        self.plan.notes.clone()
    }

    fn cache(&self) -> Option<Cache> {
        let what = "the buffer cache that a run has unless `--cache` says otherwise".to_owned();
        Some(Cache { bytes: self.cache, what, cure: None })
    }

    fn run(
        self: Box<Self>,
        progress: &(dyn Fn(Option<Phase>, Progress) + Sync),
        stop: &AtomicBool,
    ) -> Result<SetupReport, TargetError> {
        let (directory, seed) = (self.plan.directory.clone(), self.plan.request.data.seed);
        let place = format!("`{}`", directory.display());
        let written = setup::run(self.plan, &|now| progress(None, now), stop)?;
        Ok(SetupReport {
            place,
            bytes_written: written.bytes_written,
            rows: None,
            elapsed_ns: written.elapsed_ns,
            phases: Vec::new(),
            seed,
            created: written.created,
            notes: written.notes,
            document: Map::from_iter([("directory".to_owned(), json!(directory))]),
        })
    }

    fn after_interrupt(&self) -> &'static str {
        "everything that was made has been removed"
    }
}

fn info_sheet(info: &Info) -> Sheet {
    let mut sheet = Sheet::of(json!(info));
    sheet.add("directory", info.directory.display().to_string());
    sheet.add("state", state_sentence(&info.state));
    if let Some(data) = &info.descriptor {
        let filling = match data.filling {
            Filling::Incompressible => "incompressible",
            Filling::Compressible => "compressible",
        };
        sheet.add("made", format!("{}, format {}", data.created_at, data.format_version));
        sheet.add("data", data_words(data.schemas, data.scale_blocks, data.scan_blocks, data.block_bytes));
        sheet.add("rows", format!("{filling}, seed {}", data.seed));
        sheet.add("redo", format!("{} log files of {}", data.redo_files, Bytes(data.redo_file_bytes)));
        for (label, place) in [("data files in", &data.destinations.data), ("redo files in", &data.destinations.redo)] {
            place.iter().for_each(|place| sheet.add(label, place.clone()));
        }
    }
    let (bytes, allocated) = (Bytes(info.bytes), Bytes(info.allocated_bytes));
    sheet.add("files", format!("{}, {bytes}, {allocated} on the file system", info.files.len()));
    sheet
}

fn state_sentence(state: &State) -> String {
    match state {
        State::ClosedCleanly => "closed cleanly".to_owned(),
        State::NeedsRecovery => "its last user was killed; the next run or `verify` recovers it".to_owned(),
        State::UnfinishedSetUp { in_use_by: None } => "its set-up was never finished; set it up again".to_owned(),
        State::UnfinishedSetUp { in_use_by: Some(by) } => format!("being set up by {by}"),
        State::InUse { by } => format!("in use by {by}"),
        State::Damaged { why } => format!("damaged: {why}"),
    }
}

fn verify_sheet(report: &VerifyReport) -> Sheet {
    let mut document = json!(report);
    document["sound"] = json!(report.is_sound());
    document["proven"] = json!(report.is_proven());
    let mut sheet = Sheet::of(document);
    if let Some(recovery) = &report.recovery {
        sheet.add("recovered", recovery_sentence(recovery));
        if let Some((path, offset)) = &recovery.torn_tail {
            let at = path.display();
            sheet.add("", format!("the last write to `{at}`, at offset {offset}, was torn; it was never acknowledged"));
        }
    }
    sheet.add(
        "read",
        format!(
            "{} blocks, {} in {}, {:.0} MB/s",
            group_thousands(report.blocks as f64),
            Bytes(report.bytes),
            Nanos(report.elapsed_ns),
            report.bytes as f64 * 1e3 / report.elapsed_ns.max(1) as f64
        ),
    );
    let count = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |count| group_thousands(count as f64));
    let (acknowledged, found) = (count(report.commits_acknowledged), count(report.commits_found));
    sheet.add("commits", format!("{acknowledged} acknowledged, {found} found"));
    if let Some(scrub) = &report.scrub {
        sheet.add("copies", scrub_sentence(scrub));
    }
    for fault in &report.faults {
        sheet.add("fault", fault.clone());
    }
    for lost in &report.lost {
        let missing = lost.acknowledged.saturating_sub(lost.found);
        sheet.add("lost", format!("session {} misses {missing} of {} commits", lost.session, lost.acknowledged));
    }
    for bad in report.bad_blocks.iter().take(MAX_NAMED_BAD_BLOCKS) {
        let path = bad.path.display();
        sheet.add("bad block", format!("{} at offset {} of `{path}`: {}", bad.block, bad.offset, bad.fault));
    }
    let unnamed = report.bad_block_count.saturating_sub(report.bad_blocks.len().min(MAX_NAMED_BAD_BLOCKS) as u64);
    if unnamed > 0 {
        sheet.add("", format!("and {} more bad blocks", group_thousands(unnamed as f64)));
    }
    if !report.is_sound() {
        sheet.add("not sound", "the data is not what was written");
    } else if report.is_proven() {
        sheet.add("sound", "every block is what was written last, and no acknowledged commit is missing");
    } else {
        sheet.add("blocks", "every block is what was written last");
        let why = report.ledger.and_then(LedgerReach::warning);
        sheet.add("not proven", why.unwrap_or_else(|| "which commits were acknowledged cannot be read".to_owned()));
    }
    sheet
}

/// What comparing copies found and did, in a sentence.
fn scrub_sentence(scrub: &Scrubbed) -> String {
    let mut sentence = format!("{} in all copies compared: ", Bytes(scrub.copies_bytes));
    if scrub.faulty == 0 && scrub.left == 0 {
        sentence.push_str("all are right and alike");
        return sentence;
    }
    let count = |count: u64| group_thousands(count as f64);
    sentence.push_str(&format!(
        "{} places differed, {} copies written again",
        count(scrub.faulty),
        count(scrub.repaired)
    ));
    let others = [
        (scrub.unsure, "where nothing says which is right, the primary copy was taken"),
        (scrub.left, "could not be made alike"),
        (scrub.lost, "without any right copy"),
    ];
    for (places, what) in others.into_iter().filter(|(places, _)| *places > 0) {
        sentence.push_str(&format!("; {} {what}", count(places)));
    }
    sentence
}

/// What a recovery did, in a sentence.
fn recovery_sentence(recovery: &Recovery) -> String {
    format!(
        "the last user of the data was killed: {} of redo with {} commits was read again, {} changes were missing and \
         made again",
        Bytes(recovery.redo_bytes),
        group_thousands(recovery.commits as f64),
        group_thousands(recovery.changes_made_again as f64)
    )
}
