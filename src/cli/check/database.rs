//! A check on a database: the embedded engine, a simulation, a server.

use load::Pace;
use model::record::{Load, ReliefTest, SlobLoad};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::Subject;
use super::left_behind::LeftBehind;
use super::session::{Opened, Session};
use crate::cli::exit::Failure;
use crate::cli::live::ByteProgress;
use crate::cli::recording::{PulseEnd, Recorded, Recording};
use crate::cli::report;
use crate::cli::runner::Landing;
use crate::cli::{processors, say, setting_up, sheets};
use crate::databases;
use crate::plan::check::{EngineCheck, EngineFacts, MAX_SERVER_SESSIONS, MAX_SESSIONS, Multiple, Pacing, SCAN_TABLE};
use analysis::check::relief_wanted;
use measure::environment;
use model::config::TargetAddress;
use model::units::{Bytes, Nanos};
use targets::TargetError;
use targets::database::{
    Cache, DataFacts, Database, DatabaseOptions, DropScope, Filling, OpenDatabase, OpenRequest, PlannedLoad, Replace,
    SetupRequest, There,
};

/// Buffer cache of the engine: small, so that storage answers.
const CACHE: Bytes = Bytes::mib(64);
/// Redo logs of the engine: room for seconds of heavy load, so that they switch as a database's do, and not much beside the data.
const REDO_FILE: std::ops::RangeInclusive<Bytes> = Bytes::mib(16)..=Bytes::mib(128);
const REDO_SHARE: u64 = 16;
/// Without `--db-cache` a private server's buffers are this part of the data. They answer 1.6 % of reads, and a check wants 95 % of them to
/// reach storage.
const SERVER_CACHE_PART: u64 = 64;
const SERVER_CACHE: std::ops::RangeInclusive<Bytes> = Bytes::mib(16)..=Bytes::mib(128);
/// Streams that make data.
const STREAMS: u32 = 2;
/// Data that are made on a server unless the user says how large: no more than a busy disk loads in the time that there is, and so much that
/// the least buffers answer 5 % of reads.
const SERVER_SIZE: std::ops::RangeInclusive<Bytes> = Bytes::mib(320)..=Bytes::gib(1);
/// Bytes per second at which a server makes them on a busy disk: MariaDB took 53 s for 1 GiB.
const SERVER_MAKES_PER_S: f64 = 20e6;
/// Bytes per second at which data are made at best, for what has to be known before.
const MADE_PER_S: f64 = 100e6;
/// Data of fewer times a page cache are answered by it in good part.
const SMALL_CACHE: u64 = 4;
/// Simulated data are as large as this.
const SIMULATED_SIZE: Bytes = Bytes::gib(64);

/// On data that are there, or that are made and removed again.
pub(super) fn on(session: &Session<'_>, subject: &Subject) -> Result<Option<Recorded>, Failure> {
    let Subject { address, size, is_ours } = subject;
    let usual = usual_size(session.time_to_make());
    let options = options(session, address, size.unwrap_or(usual))?;
    let least_memory = databases::slob(address, &options)?.least_memory(MAX_SERVER_SESSIONS);
    refuse_little_memory(&options, least_memory)?;
    let there = sheets::with(databases::slob(address, &options)?, |found| Ok(found.there(session.interrupt.flag())?))?;
    let size = (*is_ours || there != There::Data).then(|| size.unwrap_or(usual));
    let words = size.map(|size| format!("{size} of data"));
    // What cannot be asked of the data is known before they are made.
    let described = match size {
        Some(size) => {
            let check = EngineCheck::new(session.demands, &planned(session, address, size))?;
            let to_make = Nanos((size.0 as f64 / MADE_PER_S * 1e9) as u64);
            let time = Nanos(session.time_left().0.saturating_sub(to_make.0));
            // A first guess of the time may not refuse what the disk makes sooner.
            if session.needs_long_window(check.reads_alone_per_s()) {
                session.pacing(time, Some(check.reads_alone_per_s()))?;
            }
            format!("{}, {}", load_words(address), check.words())
        }
        None => load_words(address),
    };
    let has_page_cache = address.is_postgres() && address.is_private_server();
    if let Some(size) = size.filter(|_| has_page_cache && options.host_memory.is_none()) {
        // Before anything is made: what it comes to is known now, and making takes most of the time.
        let what = "the memory that is free here for the page cache".to_owned();
        let cache = environment::available_memory().map(|bytes| Cache { bytes, what, cure: None });
        cache.iter().for_each(|cache| note_on_cache(address, cache, size, least_memory));
    }
    if session.is_dry_run(words.as_deref(), &described, Nanos(0))? {
        return Ok(None);
    }
    let Some(size) = size else { return load(session, address, &options).map(Some) };
    let note = session.leaves(&left_behind(address, *is_ours));
    let made = sheets::with(databases::slob(address, &options)?, |found| make(session, address, found, size));
    let recorded = made.and_then(|()| load(session, address, &options));
    // Whatever became of it, what was made for it goes.
    let scope = if there == There::Nothing { DropScope::Everything } else { DropScope::Data };
    if let Err(failure) = sheets::with(databases::slob(address, &options)?, |found| remove(found, scope)) {
        say::note(format_args!("what was made on `{address}` for the check could not be removed"));
        if let Some(note) = note {
            note.stays();
        }
        recorded?;
        return Err(failure);
    }
    session.interrupt.leaves(None);
    drop(note);
    recorded.map(Some)
}

/// How large data are made on a server in so much time.
fn usual_size(time: Nanos) -> Bytes {
    let makes = time.as_seconds() * SERVER_MAKES_PER_S;
    Bytes((makes as u64) >> 20 << 20).clamp(*SERVER_SIZE.start(), *SERVER_SIZE.end())
}

/// What to say if the program ends before the data are removed.
fn left_behind(address: &TargetAddress, is_ours: bool) -> LeftBehind {
    let next = if is_ours { "the next check there replaces them, or " } else { "" };
    let words =
        format!("left behind: the data in `{address}`; {next}remove them with `plimsoll slob drop --target {address}`");
    LeftBehind { words, file: None, directory: address.directory().and_then(|path| std::path::absolute(path).ok()) }
}

fn load_words(address: &TargetAddress) -> String {
    match address {
        TargetAddress::Directory(_) => "the embedded engine".to_owned(),
        TargetAddress::Simulated(_) => "a simulated database".to_owned(),
        address => address.to_string(),
    }
}

fn options(session: &Session<'_>, address: &TargetAddress, size: Bytes) -> Result<DatabaseOptions, Failure> {
    let redo = Bytes(size.0 / REDO_SHARE / (1 << 20) * (1 << 20)).clamp(*REDO_FILE.start(), *REDO_FILE.end());
    let (cache, io_engine) = (CACHE, session.arguments.handling.engine());
    let server = &session.arguments.server;
    let asked = server.options(address)?;
    let db_cache = if address.is_private_server() && server.has_no_db_cache() {
        Bytes(size.0 / SERVER_CACHE_PART).clamp(*SERVER_CACHE.start(), *SERVER_CACHE.end())
    } else {
        asked.db_cache
    };
    Ok(DatabaseOptions { cache, io_engine, redo_file: redo, is_open_loop: true, db_cache, ..asked })
}

fn make(
    session: &Session<'_>,
    address: &TargetAddress,
    database: &mut dyn Database,
    size: Bytes,
) -> Result<(), Failure> {
    let (arguments, stop) = (session.arguments, session.interrupt.flag());
    let asked = (!address.is_server()).then(|| Bytes(u64::from(arguments.block_size.bytes())));
    let block_bytes = database.block_bytes(asked, STREAMS, stop)?;
    let blocks = |bytes: u64| bytes / block_bytes.max(1);
    let request = SetupRequest {
        schemas: 1,
        scale_blocks: blocks(size.0).max(1),
        scan_blocks: if session.demands.scan.is_some() { blocks(SCAN_TABLE.0) } else { 0 },
        block_bytes: u32::try_from(block_bytes).unwrap_or(u32::MAX),
        filling: Filling::Incompressible,
        streams: STREAMS,
        seed: session.data_seed(),
        is_seed_asked: true,
        replace: if address.is_server() { Replace::Refuse } else { Replace::Replace },
    };
    let plan = database.plan_setup(&request, stop)?;
    let is_said = address.is_postgres() && address.is_private_server() && arguments.server.has_no_host_memory();
    if let Some(cache) = plan.cache().filter(|_| address.is_server() && !is_said) {
        note_on_cache(address, &cache, size, None);
    }
    say::line(format_args!("making {size} of data in {}, which are removed at the end", place_words(address)));
    plan.notes().iter().for_each(say::note);
    let progress = ByteProgress::new("making data", arguments.keeping.progress.verbosity());
    setting_up::load(plan, &progress, &session.interrupt).map(drop)
}

/// Refuses a limit of memory in which the kernel would kill the server as soon as a check's sessions are connected.
fn refuse_little_memory(options: &DatabaseOptions, least: Option<Bytes>) -> Result<(), Failure> {
    let Some((limit, least)) = options.host_memory.zip(least).filter(|(limit, least)| limit < least) else {
        return Ok(());
    };
    let buffers = options.db_cache;
    let message = format!(
        "`--host-memory` of {limit} is too little for a check: {MAX_SERVER_SESSIONS} connections and {buffers} of buffers need \
         {least}"
    );
    Err(Failure::new(message).with_hint(format!("use `--host-memory {}`", in_mib(least))))
}

/// As a flag takes it.
fn in_mib(size: Bytes) -> String {
    format!("{}M", size.0.div_ceil(1 << 20))
}

/// Says where a cache may answer many reads. Whether it does is seen once there is load.
fn note_on_cache(address: &TargetAddress, cache: &Cache, size: Bytes, least_memory: Option<Bytes>) {
    if cache.bytes.0 <= size.0 / SMALL_CACHE {
        return;
    }
    let ample_gib = cache.bytes.0.saturating_mul(SMALL_CACHE).div_ceil(1 << 30);
    // Past the page cache there is only the server's own, which is as large as is asked for.
    let cure = match (address.is_private_server(), address.is_postgres(), least_memory) {
        (true, true, Some(least)) => format!(", or as root `--host-memory {}`", in_mib(least)),
        (true, false, _) => ", or a smaller `--db-cache`".to_owned(),
        _ => String::new(),
    };
    say::note(format_args!(
        "the data ({size}) is less than {SMALL_CACHE} times {} ({}), which may answer many reads. Where it does, there is no verdict on \
         storage. To measure storage: `--size {ample_gib}G`{cure}",
        cache.what, cache.bytes
    ));
}

fn place_words(address: &TargetAddress) -> String {
    let in_directory = |path: &Path| format!("`{}`", path.display());
    match address {
        TargetAddress::Directory(path) => in_directory(path),
        address => format!("`{address}`"),
    }
}

/// Removes what was made. An interrupt has no say in it.
fn remove(database: &mut dyn Database, scope: DropScope) -> Result<(), Failure> {
    let go_on = AtomicBool::new(false);
    if scope == DropScope::Data && database.there(&go_on)? != There::Data {
        return Ok(());
    }
    match database.plan_drop(scope, &go_on) {
        // It was never made, or whoever failed to make it has removed it.
        Err(TargetError::NotSetUp { .. } | TargetError::NoPrivateServer { .. }) => Ok(()),
        plan => Ok(plan?.run(&go_on).map(drop)?),
    }
}

fn load(session: &Session<'_>, address: &TargetAddress, options: &DatabaseOptions) -> Result<Recorded, Failure> {
    let stop = session.interrupt.flag();
    let mut database = databases::slob(address, options)?;
    let facts = facts(session, address, database.facts(stop)?);
    let check = EngineCheck::new(session.demands, &facts)?;
    let load = PlannedLoad {
        sessions: check.sessions(),
        schemas: Some(facts.schemas),
        has_updates: session.demands.commits.is_some(),
    };
    let database = database.open(&OpenRequest { load, recovering: &|_| {}, stop })?;
    let proof = if session.arguments.prove { PROOF } else { Nanos(0) };
    let opened = Opened { second_look: proof, ..opened(&*database, &facts, check.reads_alone_per_s()) };
    let mut recording = session.run(opened, |multiple, pacing| check.step(multiple, pacing, session.seed));
    if let Ok(recording) = &mut recording
        && session.arguments.prove
    {
        prove(session, recording, &*database, &check);
    }
    let notes = if recording.is_ok() { database.notes_of_the_load() } else { Vec::new() };
    let closed = database.close();
    let mut recording = recording?;
    notes.into_iter().for_each(|note| recording.note(note));
    if let Err(error) = closed {
        recording.fail(error);
    }
    let steps = recording.steps().len();
    Ok(recording.end(steps))
}

/// Time that is kept for proving a cause.
const PROOF: Nanos = Nanos::seconds(6);
/// What is requested once the cause is relieved, as a multiple of what was not carried.
const RELIEVED_TIMES: f64 = 8.0;
/// Warm-up and window of that load.
const RELIEVED: (Nanos, Nanos) = (Nanos::millis(1_000), Nanos::millis(2_000));

/// Relieves what stopped the load, if that is possible, and writes down what the server does then. What goes wrong is a note: the answer
/// stands without it.
fn prove(session: &Session<'_>, recording: &mut Recording, database: &dyn OpenDatabase, check: &EngineCheck) {
    if !recording.is_going_well() {
        return;
    }
    let findings = report::findings(recording.run(), &[]);
    let Some(wanted) = relief_wanted(recording.run(), &findings) else {
        return recording.note("--prove: nothing was relieved, since it is not commits that stop this load".to_owned());
    };
    let ended = database.have_commits_wait(false).and_then(|setting| {
        let Some(setting) = setting else { return Ok(()) };
        recording.progress().line(&format!("the same load with `{setting}`"));
        let (warmup, duration) = RELIEVED;
        let multiple =
            Multiple { times: wanted.times * RELIEVED_TIMES, index: recording.steps().len() as u32, repeat: 0 };
        let pacing = Pacing { warmup, asked: duration, multiple: duration };
        let plan = check.step(multiple, &pacing, session.seed);
        let Pace::Open { rate_per_s: asked_per_s, .. } = plan.pace else { return Ok(()) };
        match recording.pulse(database.target(), &plan, Nanos(0))? {
            PulseEnd::Whole { requests } => recording.keep_relief_test(
                wanted.step,
                ReliefTest { setting: setting.to_owned(), asked_per_s, operations: requests, window_ns: duration.0 },
            ),
            PulseEnd::HeldUp => recording.note("--prove: this machine was too busy".to_owned()),
            PulseEnd::Stopped => {}
        }
        Ok(())
    });
    let back = database.have_commits_wait(true);
    if let Err(error) = ended.and(back.map(drop)) {
        recording.note(format!("--prove: {error}"));
    }
}

fn opened<'t>(
    database: &'t dyn OpenDatabase,
    facts: &EngineFacts,
    reads_alone_per_s: f64,
) -> Opened<'t, model::workload::SlobOperation> {
    let scan_bytes = facts.scan_blocks * u64::from(facts.block_bytes);
    Opened {
        load: Load::Slob(SlobLoad::default()),
        target: database.target(),
        landing: Landing { paths: database.paths(), ..Landing::on(database.target(), database.clock()) },
        reads_alone_per_s: Some(reads_alone_per_s),
        scan_bytes: Some(scan_bytes),
        second_look: Nanos(0),
    }
}

/// What is known of data before they are made.
fn planned(session: &Session<'_>, address: &TargetAddress, size: Bytes) -> EngineFacts {
    let block_bytes = session.arguments.block_size.bytes();
    let blocks = |bytes: Bytes| bytes.0 / u64::from(block_bytes.max(1));
    let scan_blocks = if session.demands.scan.is_some() { blocks(SCAN_TABLE) } else { 0 };
    let is_server = address.is_server();
    EngineFacts {
        schemas: 1,
        scale_blocks: blocks(size).max(1),
        scan_blocks,
        block_bytes,
        cache: if is_server { Bytes(0) } else { CACHE },
        processors: 1,
        max_sessions: if is_server { MAX_SERVER_SESSIONS } else { MAX_SESSIONS },
    }
}

/// What a plan needs to know of data, or of a simulation, which has none.
fn facts(session: &Session<'_>, address: &TargetAddress, data: Option<DataFacts>) -> EngineFacts {
    let Some(data) = data else {
        let block_bytes = session.arguments.block_size.bytes();
        return EngineFacts {
            schemas: 1,
            scale_blocks: session.arguments.size.unwrap_or(SIMULATED_SIZE).0 / u64::from(block_bytes),
            scan_blocks: SCAN_TABLE.0 / u64::from(block_bytes),
            block_bytes,
            cache: Bytes(0),
            processors: 1,
            max_sessions: MAX_SESSIONS,
        };
    };
    EngineFacts {
        schemas: data.schemas,
        scale_blocks: data.scale_blocks,
        scan_blocks: data.scan_blocks,
        block_bytes: data.block_bytes,
        // How much of the data the buffers of a server hold is seen in what it counts.
        cache: if address.is_server() { Bytes(0) } else { CACHE },
        processors: processors(),
        max_sessions: if address.is_server() { MAX_SERVER_SESSIONS } else { MAX_SESSIONS },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_of_a_server_are_as_large_as_the_time_allows() {
        let sizes = [0, 10, 30, 60, 600].map(|seconds| usual_size(Nanos::seconds(seconds)));
        assert_eq!(sizes, [Bytes::mib(320), Bytes::mib(320), Bytes::mib(572), Bytes::gib(1), Bytes::gib(1)]);
    }
}
