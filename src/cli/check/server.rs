//! A check on a database server.

use std::sync::atomic::AtomicBool;

use super::engine::opened;
use super::session::Session;
use crate::cli::exit::Failure;
use crate::cli::live::ByteProgress;
use crate::cli::recording::Recorded;
use crate::cli::say;
use crate::cli::slob::server::{Nodes, Purpose, Reached, SendArgs, ServerSite};
use crate::config::TargetAddress;
use crate::measure::Clock;
use crate::plan::check::{EngineCheck, EngineFacts, SCAN_TABLE};
use crate::targets::TargetError;
use crate::targets::embedded::Filling;
use crate::targets::postgres::cluster;
use crate::targets::postgres::data::setup::{self, Phase, Progress, Replace, SetupRequest};
use crate::targets::postgres::data::{self, drop as removal};
use crate::units::Bytes;

/// Data that are made where nobody says how large: what a busy disk loads in a fraction of the time.
const DEFAULT_SIZE: Bytes = Bytes::gib(1);
/// Sessions at most: a server's usual limit leaves as many.
const MAX_SESSIONS: u32 = 64;
const STREAMS: u32 = 2;

/// On data that are there, or that are made and removed again.
pub(super) fn on_server(
    session: &Session<'_>,
    address: &TargetAddress,
    size: Option<Bytes>,
) -> Result<Option<Recorded>, Failure> {
    session.arguments.server.check(address)?;
    let is_new = match address {
        TargetAddress::PrivateCluster(directory) => cluster::inspect(directory).map_err(TargetError::from)?.is_none(),
        _ => false,
    };
    let there = if is_new { false } else { reach(session, address, Purpose::Use)?.with(|at| has_data(at))? };
    let size = (!there).then(|| size.unwrap_or(DEFAULT_SIZE));
    let words = size.map(|size| format!("{size} of tables"));
    if session.is_dry_run(words.as_deref(), &address.to_string()) {
        return Ok(None);
    }
    let Some(size) = size else { return load(session, address).map(Some) };
    let made = reach(session, address, Purpose::SetUp)?.with(|at| make(session, at, size));
    let recorded = made.and_then(|()| load(session, address));
    // Whatever became of it, what was made for it goes.
    if let Err(failure) = remove(session, address, is_new) {
        say::note(format_args!("what was made on `{address}` for the check could not be removed"));
        recorded?;
        return Err(failure);
    }
    recorded.map(Some)
}

fn reach<'a>(session: &'a Session<'_>, address: &'a TargetAddress, purpose: Purpose) -> Result<Reached<'a>, Failure> {
    let (server, stop) = (&session.arguments.server, session.interrupt.flag());
    let reached = Reached::reach(address, server, Nodes::FirstThatAccepts, purpose, None, stop)?;
    Ok(reached.expect("the address is that of a server"))
}

fn has_data(reached: &Reached<'_>) -> Result<bool, Failure> {
    Ok(data::find(&reached.access())?.is_some())
}

fn make(session: &Session<'_>, reached: &Reached<'_>, size: Bytes) -> Result<(), Failure> {
    let access = reached.access();
    let block_bytes = data::block_bytes(&access)?;
    let blocks = |bytes: u64| bytes / u64::from(block_bytes);
    let request = SetupRequest {
        schemas: 1,
        scale_blocks: blocks(size.0).max(1),
        scan_blocks: if session.demands.scan.is_some() { blocks(SCAN_TABLE.0) } else { 0 },
        block_bytes,
        filling: Filling::Incompressible,
        streams: STREAMS,
        seed: session.data_seed(),
        replace: Replace::Refuse,
    };
    let plan = setup::plan(&access, &request)?;
    say::line(format_args!(
        "making {size} of tables in the schema `{}`, which are removed at the end",
        access.namespace
    ));
    let progress = ByteProgress::new("making data", session.arguments.keeping.progress.verbosity());
    let report = |phase: Phase, now: Progress| progress.update_phase(phase, now.done_bytes, now.total_bytes);
    let outcome = setup::run(plan, &report, session.interrupt.flag());
    progress.end();
    outcome.map(drop).map_err(|error| match (error, session.interrupt.exit()) {
        (TargetError::Interrupted, Some(exit)) => Failure::new("interrupted while data were made").with_exit(exit),
        (error, _) => Failure::from(error),
    })
}

fn load(session: &Session<'_>, address: &TargetAddress) -> Result<Recorded, Failure> {
    let (server, sending, stop) = (&session.arguments.server, SendArgs::default(), session.interrupt.flag());
    let site = ServerSite::reach(address, server, &sending, true, stop)?.expect("the address is that of a server");
    let facts = site.facts()?;
    let facts = EngineFacts {
        schemas: facts.schemas,
        scale_blocks: facts.scale_blocks,
        scan_blocks: facts.scan_blocks,
        block_bytes: facts.block_bytes,
        // How much of the data its buffers hold is seen in what it counts.
        cache: Bytes(0),
        processors: std::thread::available_parallelism().map_or(1, |processors| processors.get() as u32),
        max_sessions: MAX_SESSIONS,
    };
    let check = match EngineCheck::new(session.demands, &facts) {
        Ok(check) => check,
        Err(error) => {
            // The first failure is the one to report.
            let _ = site.leave();
            return Err(error.into());
        }
    };
    let ground = site.open(check.sessions(), facts.schemas, stop)?;
    let recording = session
        .run(&opened(ground.target(), Clock::start(), ground.paths(), &facts), |multiple, pacing| {
            check.step(multiple, pacing, session.seed)
        });
    let notes = if recording.is_ok() { ground.notes_of_the_load() } else { Vec::new() };
    let closed = ground.close();
    let mut recording = recording?;
    notes.into_iter().for_each(|note| recording.note(note));
    if let Err(error) = closed {
        recording.fail(error);
    }
    let steps = recording.steps().len();
    Ok(recording.end(steps))
}

/// Removes a cluster that was made for the check, or the tables in somebody else's. An interrupt has no say in it.
fn remove(session: &Session<'_>, address: &TargetAddress, is_new: bool) -> Result<(), Failure> {
    let go_on = AtomicBool::new(false);
    match address {
        TargetAddress::PrivateCluster(directory) if is_new => {
            if cluster::inspect(directory).map_err(TargetError::from)?.is_some() {
                cluster::remove(directory, &|_| {}, &go_on)?;
            }
            Ok(())
        }
        _ => {
            let (server, nodes) = (&session.arguments.server, Nodes::FirstThatAccepts);
            let reached = Reached::reach(address, server, nodes, Purpose::Use, None, &go_on)?;
            reached.expect("the address is that of a server").with(|at| {
                if has_data(at)? {
                    removal::run(removal::plan(&at.access())?, &go_on)?;
                }
                Ok(())
            })
        }
    }
}
