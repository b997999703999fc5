//! A check on raw storage.

use model::record::{IoMix, Load};
use std::path::PathBuf;

use super::Made;
use super::session::{Opened, Session};
use crate::cli::exit::Failure;
use crate::cli::io::arguments::Storage;
use crate::cli::io::volume::{Intended, Prospect};
use crate::cli::recording::Recorded;
use crate::cli::second_look::pulse;
use crate::cli::{processors, say};
use crate::plan::check::StorageCheck;
use model::config::io::{Connections, DepthList, Durable, IoOptions, PageCache, Pattern, Redundancy, Verify, Volumes};
use model::units::{Bytes, Nanos};

/// On a file or a device; `made` is what is removed at the end.
pub(super) fn on_paths(
    session: &Session<'_>,
    path: PathBuf,
    size: Option<Bytes>,
    made: Option<Made>,
) -> Result<Option<Recorded>, Failure> {
    // Removed after everything else is closed, however this function ends.
    let mut made = made;
    on(session, &Storage::Paths(vec![path]), size, made.as_mut())
}

/// On simulated storage.
pub(super) fn simulated(
    session: &Session<'_>,
    pairs: Vec<(String, String)>,
    size: Option<Bytes>,
) -> Result<Option<Recorded>, Failure> {
    on(session, &Storage::Simulated(pairs), size, None)
}

fn on(
    session: &Session<'_>,
    storage: &Storage,
    size: Option<Bytes>,
    made: Option<&mut Made>,
) -> Result<Option<Recorded>, Failure> {
    let asked = asked(session, storage, size);
    let prospect = Prospect::look(storage, &session.arguments.handling, &asked)?;
    let capacity = prospect.facts(&asked)?.capacity_bytes;
    let region_bytes = size.map_or(capacity, |size| size.0.min(capacity));
    let check = StorageCheck::new(session.demands, region_bytes, asked.block.bytes(), processors())?;
    let at_once = check.reads_at_once(session.seed);
    let words = made.is_some().then(|| format!("a file of {}", Bytes(region_bytes)));
    let load = format!("raw storage, {:.0} requests/s of all kinds together", check.per_s());
    let second_look = session.second_look(at_once.is_some());
    if session.is_dry_run(words.as_deref(), &load, second_look)? {
        return Ok(None);
    }
    let left_behind = made.as_deref().map(|made| [false, true].map(|is_complete| made.left_behind(is_complete)));
    let mut note = None;
    let [while_made, once_made] = left_behind.map_or([None, None], |words| words.map(Some));
    if let (Some(made), Some(words)) = (made, words) {
        say::line(format_args!("making {words}, which is removed at the end"));
        note = while_made.as_ref().and_then(|left| session.leaves(left));
        made.begin();
    }
    let (clock, verbosity) = (prospect.clock(), session.arguments.keeping.progress.verbosity());
    let intended = Intended { region_bytes, largest_bytes: check.largest_bytes(), seed: session.data_seed() };
    let volume = prospect.open(&asked, intended, clock, &session.interrupt, verbosity)?;
    drop(note);
    let _note = once_made.as_ref().and_then(|left| session.leaves(left));
    let opened = Opened {
        load: Load::IoMix(IoMix { block: asked.block }),
        target: volume.target(),
        landing: volume.landing(clock, Bytes(asked.block.bytes().into()), region_bytes, &asked.paths),
        reads_alone_per_s: None,
        scan_bytes: None,
        second_look,
    };
    let mut recording = session.run(opened, |multiple, pacing| check.step(multiple, pacing, session.seed))?;
    if let Some(plan) = at_once.filter(|_| second_look > Nanos(0)) {
        pulse(&mut recording, volume.target(), &plan);
    }
    volume.note_of_the_load().into_iter().for_each(|note| recording.note(note));
    drop(volume);
    let steps = recording.steps().len();
    Ok(Some(recording.end(steps)))
}

/// What storage is opened for. Each write is durable by itself, as a database needs it.
fn asked(session: &Session<'_>, storage: &Storage, size: Option<Bytes>) -> IoOptions {
    let demands = session.demands;
    let reads = demands.reads.is_some() || demands.scan.is_some();
    let pattern = match (reads, demands.writes.is_some()) {
        (true, true) => Pattern::RandRw,
        (false, true) => Pattern::RandWrite,
        (_, false) => Pattern::RandRead,
    };
    IoOptions {
        paths: storage.paths().to_vec(),
        pattern,
        block: session.arguments.block_size,
        read_pct: None,
        distribution: None,
        depths: DepthList(vec![1]),
        jobs: 1,
        rates: None,
        arrival: None,
        volumes: Volumes::One,
        connections: Connections::Addressed,
        size,
        durable: if demands.writes.is_some() { Durable::Dsync } else { Durable::None },
        page_cache: PageCache::Bypassed,
        stripe: None,
        redundancy: Redundancy::None,
        verify: Verify::Nothing,
    }
}
