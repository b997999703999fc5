//! A check on the embedded engine, which reads, changes, logs and writes blocks as a database does.

use std::path::{Path, PathBuf};

use super::place::Made;
use super::session::{Opened, Session};
use crate::analysis::check::SCAN_BYTES;
use crate::cli::exit::Failure;
use crate::cli::live::ByteProgress;
use crate::cli::recording::Recorded;
use crate::cli::say;
use crate::measure::Clock;
use crate::plan::check::{EngineCheck, EngineFacts, MAX_SESSIONS, SCAN_TABLE};
use crate::targets::embedded::setup::{self, Replace, SetupRequest};
use crate::targets::embedded::{Descriptor, Engine, EngineOptions, Filling};
use crate::targets::simulated::{Simulated, SimulatedOptions};
use crate::targets::{TargetError, TargetFor};
use crate::units::Bytes;
use crate::workload::SlobOperation;

/// Buffer cache: small, so that storage answers.
const CACHE: Bytes = Bytes::mib(64);
/// Redo logs: room for seconds of heavy load, so that they switch as a database's do, and not much beside the data.
const REDO_FILE: std::ops::RangeInclusive<Bytes> = Bytes::mib(16)..=Bytes::mib(128);
const REDO_FILES: u32 = 4;
const REDO_SHARE: u64 = 16;
const LOADERS: u32 = 2;
/// Simulated data are as large as this.
const SIMULATED_SIZE: Bytes = Bytes::gib(64);

/// On data of the engine in a directory, which are made if `size` says how large.
pub(super) fn on_data(
    session: &Session<'_>,
    path: PathBuf,
    size: Option<Bytes>,
    made: Option<Made>,
) -> Result<Option<Recorded>, Failure> {
    // Removed after the engine is closed, however this function ends.
    let mut made = made;
    let what = size.map(|size| format!("{size} of data"));
    if session.is_dry_run(what.as_deref(), "the embedded engine") {
        return Ok(None);
    }
    let facts = match size {
        Some(size) => make(session, &path, size, made.as_mut())?,
        None => facts_of(&Descriptor::load(&path)?),
    };
    let check = EngineCheck::new(session.demands, &facts)?;
    let io_engine = session.arguments.handling.engine();
    let options = EngineOptions { cache: CACHE, writers: None, max_sessions: check.sessions(), io_engine };
    let clock = Clock::start();
    let engine = Engine::open(&path, &options, clock, &|_| {})?;
    let opened = opened(&engine, clock, vec![path], &facts);
    let recording = session.run(&opened, |multiple, pacing| check.step(multiple, pacing, session.seed));
    drop(opened);
    let closed = engine.close();
    let mut recording = recording?;
    if let Err(error) = closed {
        recording.fail(error);
    }
    let steps = recording.steps().len();
    Ok(Some(recording.end(steps)))
}

/// On a simulated database.
pub(super) fn simulated(
    session: &Session<'_>,
    pairs: &[(String, String)],
    size: Option<Bytes>,
) -> Result<Option<Recorded>, Failure> {
    let options = SimulatedOptions::from_pairs(pairs)?;
    let block_bytes = session.arguments.block_size.bytes();
    let facts = EngineFacts {
        schemas: 1,
        scale_blocks: size.unwrap_or(SIMULATED_SIZE).0 / u64::from(block_bytes),
        scan_blocks: SCAN_TABLE.0 / u64::from(block_bytes),
        block_bytes,
        cache: Bytes(0),
        processors: 1,
        max_sessions: MAX_SESSIONS,
    };
    let check = EngineCheck::new(session.demands, &facts)?;
    if session.is_dry_run(None, "a simulated database") {
        return Ok(None);
    }
    let clock = options.clock();
    let target = Simulated::open(options, clock);
    let opened = opened(&target, clock, Vec::new(), &facts);
    let recording = session.run(&opened, |multiple, pacing| check.step(multiple, pacing, session.seed))?;
    let steps = recording.steps().len();
    Ok(Some(recording.end(steps)))
}

pub(super) fn opened<'t>(
    target: &'t dyn TargetFor<SlobOperation>,
    clock: Clock,
    paths: Vec<PathBuf>,
    facts: &EngineFacts,
) -> Opened<'t, SlobOperation> {
    let scan_bytes = facts.scan_blocks * u64::from(facts.block_bytes);
    Opened {
        workload: "slob",
        target,
        described: target.describe(),
        clock,
        paths,
        parameters: vec![(SCAN_BYTES, scan_bytes.to_string())],
    }
}

fn facts_of(data: &Descriptor) -> EngineFacts {
    EngineFacts {
        schemas: data.schemas,
        scale_blocks: data.scale_blocks,
        scan_blocks: data.scan_blocks,
        block_bytes: data.block_bytes,
        cache: CACHE,
        processors: std::thread::available_parallelism().map_or(1, |processors| processors.get() as u32),
        max_sessions: MAX_SESSIONS,
    }
}

/// Size of one redo log beside data of this size, in whole MiB.
fn redo_file(size: Bytes) -> Bytes {
    Bytes(size.0 / REDO_SHARE / (1 << 20) * (1 << 20)).clamp(*REDO_FILE.start(), *REDO_FILE.end())
}

/// Makes data of about `size` in a directory of their own.
fn make(session: &Session<'_>, path: &Path, size: Bytes, made: Option<&mut Made>) -> Result<EngineFacts, Failure> {
    let block_bytes = session.arguments.block_size.bytes();
    let blocks = |bytes: u64| bytes / u64::from(block_bytes);
    let scan_blocks = if session.demands.scan.is_some() { blocks(SCAN_TABLE.0) } else { 0 };
    let request = SetupRequest {
        schemas: 1,
        scale_blocks: blocks(size.0).max(1),
        scan_blocks,
        block_bytes,
        filling: Filling::Incompressible,
        redo_file_bytes: redo_file(size).0,
        redo_files: REDO_FILES,
        loaders: LOADERS,
        seed: session.data_seed(),
        // What lies there under this name is the rest of a check that was killed.
        replace: Replace::Replace,
        io_engine: session.arguments.handling.engine(),
    };
    let plan = setup::plan(path, &request)?;
    say::line(format_args!(
        "making {} of data in `{}`, which are removed at the end",
        Bytes(plan.total_bytes),
        path.display()
    ));
    plan.notes.iter().for_each(say::note);
    made.into_iter().for_each(Made::begin);
    let progress = ByteProgress::new("making data", session.arguments.keeping.progress.verbosity());
    let report = |now: setup::Progress| progress.update(now.done_bytes, now.total_bytes);
    let outcome = setup::run(plan, &report, session.interrupt.flag());
    progress.end();
    outcome.map_err(|error| match (error, session.interrupt.exit()) {
        (TargetError::Interrupted, Some(exit)) => {
            Failure::new("interrupted; everything that was made has been removed").with_exit(exit)
        }
        (error, _) => Failure::from(error),
    })?;
    Ok(facts_of(&Descriptor::load(path)?))
}
