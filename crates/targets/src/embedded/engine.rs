//! Opening and closing the engine.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::cache::Cache;
use super::changes::ChangeMap;
use super::control::{Checkpoint, Control};
use super::dbwriter::DbWriter;
use super::descriptor::Descriptor;
use super::destination::Destinations;
use super::directory::Directory;
use super::flash::{self, Flash, FlashOptions};
use super::lane::EngineLane;
use super::ledger::Ledger;
use super::recovery::{self, Recovery, lost_commits};
use super::redo::{LogWriter, Redo};
use super::scan::{self, SCAN_READ_BYTES};
use super::shared::{Shared, open_data_files};
use super::writers::Writers;
use crate::database::MAX_SESSIONS;
use crate::error::{FileContext, TargetError};
use crate::io::{Arena, Caching, Features, IoEngine, StorageFile, VirtualDirectory};
use crate::watch::Watch;
use crate::{Background, Lane, SessionRange, Target, TargetFor};
use measure::{Clock, Counter};
use model::record::{self, ChannelStats};
use model::units::Bytes;
use model::workload::SlobOperation;

/// How to open a data set.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// Memory of the buffer cache, its bookkeeping included.
    pub cache: Bytes,
    /// Database writers; by default one for every eight processors, as Oracle has it.
    pub writers: Option<u32>,
    /// Sessions that will work at the same time at most. Each pins a buffer.
    pub max_sessions: u32,
    /// How requests reach the kernel; by default the best that works.
    pub io_engine: Option<IoEngine>,
    /// Second level of the buffer cache; its memory is taken from `cache`.
    pub flash: Option<FlashOptions>,
    /// Directory of the ledger, where that is another one than the data say.
    pub ledger: Option<String>,
}

/// An open data set.
pub struct Engine {
    directory: Directory,
    descriptor: Descriptor,
    shared: Arc<Shared>,
    arena: Arc<Arena>,
    recovery: Option<Recovery>,
    cache_bytes: Bytes,
    notes: Vec<String>,
    redo_files: Vec<Arc<StorageFile>>,
    /// Those who look after files of servers.
    watches: Vec<Watch>,
    /// Virtual directories that files lie in, and which files.
    places: Vec<(&'static str, Arc<dyn VirtualDirectory>)>,
    log_writer: Option<JoinHandle<()>>,
    db_writers: Vec<JoinHandle<()>>,
    flash_writer: Option<JoinHandle<()>>,
    features: Mutex<Option<Features>>,
}

impl Engine {
    /// Takes the directory for this process, recovers it if its last user was killed (telling `progress` the redo bytes
    /// read so far), and starts the writers.
    ///
    /// # Errors
    /// When the data set is missing, in use, damaged, or does not go with the options.
    pub fn open(
        path: &Path,
        options: &EngineOptions,
        clock: Clock,
        progress: &dyn Fn(u64),
    ) -> Result<Self, TargetError> {
        let directory = Directory::lock(path)?;
        if directory.is_half_set_up() {
            return Err(TargetError::HalfSetUp { path: path.to_owned() });
        }
        let descriptor = Descriptor::load(path)?.with_ledger(options.ledger.as_deref());
        let layout = descriptor.layout(path)?;
        let shape = layout.shape();
        // Before anything is written: what does not fit must change nothing.
        let sessions = u64::from(options.max_sessions.min(MAX_SESSIONS));
        options.flash.as_ref().map_or(Ok(()), |flash| flash.check(&layout))?;
        let besides = Bytes(options.flash.as_ref().map_or(0, |flash| flash.memory_bytes(&layout)));
        let frames = Cache::frames_in(options.cache, shape, (layout.row_blocks(), besides), sessions)?;
        let recovery = recovery::recover(&directory, &descriptor, progress)?;

        let (control, checkpoint) = Control::open(path, descriptor.database)?;
        if let Some(lost) =
            lost_commits(&Ledger::open(&descriptor.ledger(path))?.read()?.commits, &checkpoint.commits).first()
        {
            let (session, acknowledged, found) = (lost.session, lost.acknowledged, lost.found);
            return Err(TargetError::LostCommits { path: path.to_owned(), session, acknowledged, found });
        }
        let changes = ChangeMap::load(path, checkpoint.change_map, layout.row_blocks())?;
        let files = descriptor.files(path, &layout)?;
        let data_files = open_data_files(&files)?;
        let log_writer = LogWriter::open(&files.redo)?;
        let redo_files = log_writer.files().to_vec();
        let watched = |file: &Arc<StorageFile>, bytes: u64| file.virtual_file().map(|_| Watch::begin(file, bytes));
        let data = data_files.iter().zip(&files.data).filter_map(|(file, placed)| watched(file, placed.bytes));
        let redo = redo_files.iter().zip(&files.redo).filter_map(|(file, placed)| watched(file, placed.bytes));
        let watches = data.chain(redo).collect::<Result<Vec<_>, _>>();
        let watches = watches
            .map_err(|source| TargetError::Kernel { action: "start a thread that looks after files", source })?;
        let places = files.directories();
        let (io_engine, mut notes) = choose_io(options.io_engine, &data_files);
        let flash = options.flash.as_ref().map(|flash| Flash::open(flash, &layout, &data_files)).transpose()?;
        notes.extend(flash.as_ref().and_then(Flash::note));

        let buffers = frames * shape.bytes() as u64;
        let scan_memory = if layout.scan_blocks() > 0 { scan::memory_after(buffers) } else { Vec::new() };
        let arena_bytes = scan_memory.last().map_or(buffers, |last| last + SCAN_READ_BYTES);
        let arena = Arena::new(arena_bytes as usize)
            .map_err(|source| TargetError::Kernel { action: "map memory for the buffer cache", source })?;
        let arena = Arc::new(arena);
        let cache = Cache::new(frames, shape, Arc::clone(&arena));
        let cache = if flash.is_some() { cache.with_epochs() } else { cache };

        // A fresh log file, so that whatever a torn write left in the last one is never read again.
        let (ledger, reach) = Ledger::open_for_load(&descriptor.ledger(path), &checkpoint.commits)?;
        notes.extend(reach.warning().map(|what| format!("before this run {what}")));
        let begun = Checkpoint { log_number: checkpoint.log_number + 1, clean: false, ..checkpoint };
        let redo = Redo::new(descriptor.log_shape(), begun.redo_position, begun.log_number);
        let commits = begun.commits.clone();
        let mut control = control;
        control.save(&begun)?;
        let writers = Writers::new(options.writers.unwrap_or_else(default_writers).max(1), control, begun);
        let shared = Arc::new(Shared::new(
            layout,
            data_files,
            cache,
            flash,
            changes,
            redo,
            ledger,
            &commits,
            writers,
            scan_memory,
            io_engine,
            clock,
        ));
        let mut engine = Self {
            directory,
            descriptor,
            shared,
            arena,
            recovery,
            cache_bytes: options.cache,
            notes,
            redo_files,
            watches,
            places,
            log_writer: None,
            db_writers: Vec::new(),
            flash_writer: None,
            features: Mutex::new(None),
        };
        engine.start_writers(log_writer)?;
        Ok(engine)
    }

    fn start_writers(&mut self, log_writer: LogWriter) -> Result<(), TargetError> {
        let kernel = |source| TargetError::Kernel { action: "start a writer thread", source };
        let shared = Arc::clone(&self.shared);
        let log = std::thread::Builder::new().name("log writer".into()).spawn(move || {
            let _guard = StopOnPanic(&shared);
            let wakers = || shared.wakers.ring(super::wakers::LOG);
            let result = log_writer.run(&shared.redo, shared.io_engine, shared.clock, &shared.background, wakers);
            if let Err(error) = result {
                shared.fail(error);
            }
        });
        self.log_writer = Some(log.map_err(kernel)?);
        for number in 0..self.shared.writers.count() {
            let (shared, path) = (Arc::clone(&self.shared), self.directory.path().to_owned());
            let writer = std::thread::Builder::new().name(format!("db writer {number}")).spawn(move || {
                let _guard = StopOnPanic(&shared);
                if let Err(error) = DbWriter::new(&shared, &path, number).and_then(DbWriter::run) {
                    shared.fail(error);
                }
            });
            self.db_writers.push(writer.map_err(kernel)?);
        }
        if self.shared.flash.is_some() {
            let shared = Arc::clone(&self.shared);
            let writer = std::thread::Builder::new().name("flash writer".into()).spawn(move || {
                let _guard = StopOnPanic(&shared);
                if let Some(flash) = &shared.flash {
                    flash::writer::run(&shared, flash);
                }
            });
            self.flash_writer = Some(writer.map_err(kernel)?);
        }
        Ok(())
    }

    /// What the data set is.
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// What recovery did, if the last user of the data was killed.
    pub fn recovery(&self) -> Option<&Recovery> {
        self.recovery.as_ref()
    }

    /// What came of the flash cache, where its user should know.
    pub fn notes_on_flash(&self) -> Vec<String> {
        self.shared.flash.iter().filter_map(Flash::given_up).collect()
    }

    /// Writes everything that is dirty, so that nothing needs to be recovered, and lets go of the directory.
    ///
    /// # Errors
    /// When a writer failed, now or before: then the next opening recovers.
    pub fn close(mut self) -> Result<(), TargetError> {
        let done = self.shared.writers.checkpoint(&self.shared);
        self.stop_writers();
        if let Some(failure) = self.shared.take_failure() {
            return Err(failure);
        }
        if !done {
            return Err(TargetError::Stopped);
        }
        // First, so that data which count as closed have a ledger that reaches to their end.
        self.shared.ledger.make_durable()?;
        self.shared.writers.mark_clean()
    }

    fn stop_writers(&mut self) {
        if let Some(flash) = &self.shared.flash {
            flash.stop();
        }
        if let Some(writer) = self.flash_writer.take() {
            let _ = writer.join();
        }
        self.shared.writers.stop();
        for writer in self.db_writers.drain(..) {
            // A panic in it was reported by the panic hook, and its failure is in `shared`.
            let _ = writer.join();
        }
        self.shared.redo.close();
        if let Some(writer) = self.log_writer.take() {
            let _ = writer.join();
        }
    }
}

/// Stops the engine when a writer's thread panics: sessions and other writers would wait for it for ever.
struct StopOnPanic<'s>(&'s Shared);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.redo.fail();
            self.0.fail(TargetError::Stopped);
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop_writers();
    }
}

/// What is counted without a flash cache: so many of those that are counted with one.
const KNOWN: usize = 17;
/// What is counted: all but what only a database has that reads through the page cache.
const KNOWN_WITH_FLASH: [Counter; 24] = [
    Counter::Operations,
    Counter::Errors,
    Counter::LogicalReads,
    Counter::CacheHits,
    Counter::PhysicalReads,
    Counter::PhysicalReadBytes,
    Counter::DirectReads,
    Counter::DirectReadBytes,
    Counter::PhysicalWrites,
    Counter::PhysicalWriteBytes,
    Counter::BlockChanges,
    Counter::Commits,
    Counter::RedoBytes,
    Counter::RedoWrites,
    Counter::RedoWriteBytes,
    Counter::LogSwitches,
    Counter::Checkpoints,
    Counter::FlashCacheReads,
    Counter::FlashCacheReadBytes,
    Counter::FlashCacheWrites,
    Counter::FlashCacheWriteBytes,
    Counter::FlashCacheSkipped,
    Counter::FlashCacheFallbacks,
    Counter::FlashCacheGivenUp,
];

impl Target for Engine {
    fn describe(&self) -> record::Target {
        let layout = &self.shared.layout;
        let features = *self.features.lock().unwrap_or_else(PoisonError::into_inner);
        let yes_no = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
        let mut files = record::FileFacts {
            io_engine: Some(match self.shared.data_files.first().and_then(|file| file.virtual_file()) {
                Some(file) => file.protocol().to_owned(),
                None => self.shared.io_engine.to_string(),
            }),
            direct_io: Some(is_direct(&self.shared.data_files)),
            ..record::FileFacts::default()
        };
        let mut other: std::collections::BTreeMap<String, String> = [
            ("schemas", self.descriptor.schemas.to_string()),
            ("scale_blocks", self.descriptor.scale_blocks.to_string()),
            ("scan_blocks", self.descriptor.scan_blocks.to_string()),
            ("db_writers", self.shared.writers.count().to_string()),
            ("redo_files", self.descriptor.redo_files.to_string()),
            ("redo_file_bytes", self.descriptor.redo_file_bytes.to_string()),
            ("incompressible", yes_no(self.descriptor.filling == crate::database::Filling::Incompressible)),
            ("created_at", self.descriptor.created_at.clone()),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
        let Destinations { data, redo, ledger } = &self.descriptor.destinations;
        for (name, destination) in [("data_dest", data), ("redo_dest", redo), ("ledger_dest", ledger)] {
            other.extend(destination.clone().map(|destination| (name.to_owned(), destination)));
        }
        for (of, place) in &self.places {
            let mut facts = place.facts();
            let protocol = facts.files.protocol.take();
            match *of {
                "redo" => files.redo_protocol = protocol,
                _ => files.data_protocol = protocol,
            }
            other.extend(facts.shown().into_iter().map(|(name, value)| (format!("{of}_{name}"), value)));
        }
        if let Some(flash) = &self.shared.flash {
            other.extend(flash.facts());
        }
        if let Some(features) = features {
            other.insert("registered_buffers".to_owned(), yes_no(features.registered_buffers));
            other.insert("registered_files".to_owned(), yes_no(features.registered_files));
        }
        record::Target {
            kind: Some(record::TargetKind::Embedded),
            address: format!("dir:{}", self.directory.path().display()),
            block_bytes: Some(layout.shape().bytes() as u64),
            data_bytes: Some(layout.row_blocks() * layout.shape().bytes() as u64),
            cache_bytes: Some(self.cache_bytes.0),
            cache_blocks: Some(self.shared.cache.len()),
            facts: record::TargetFacts { files, other, ..record::TargetFacts::default() },
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.notes.clone();
        notes.extend(self.places.iter().flat_map(|(_, place)| place.notes()));
        if let Some(recovery) = &self.recovery {
            notes.push(format!(
                "the last process on this data was killed: {} changes and {} commits of its redo were checked, {} \
                 changes were made again",
                recovery.changes, recovery.commits, recovery.changes_made_again
            ));
        }
        notes
    }

    fn layer(&self) -> &'static str {
        "engine"
    }

    fn known_counters(&self) -> &'static [Counter] {
        if self.shared.flash.is_some() { &KNOWN_WITH_FLASH } else { KNOWN_WITH_FLASH.split_at(KNOWN).0 }
    }

    fn take_background(&self) -> Background {
        let mut background = Background::from(self.shared.background.take());
        for file in self.shared.data_files.iter().chain(&self.redo_files).filter_map(|file| file.virtual_file()) {
            ChannelStats::add_to(&mut background.channels, &file.take_channels());
        }
        background
    }

    fn take_cache_curve(&self) -> Option<record::CacheCurve> {
        let reused = self.shared.reuse.take()?;
        let (shape, row_blocks) = (self.shared.layout.shape(), self.shared.layout.row_blocks());
        let besides = self.shared.flash.as_ref().map_or(0, Flash::memory_bytes);
        let sizes = curve_sizes(self.cache_bytes, row_blocks * shape.bytes() as u64);
        let sizes: Vec<(Bytes, u64)> = sizes
            .into_iter()
            .map(|bytes| (bytes, Cache::frames_of(Bytes(bytes.0.saturating_sub(besides)), shape, row_blocks)))
            .filter(|(_, frames)| *frames >= MIN_CURVE_BLOCKS)
            .collect();
        let ratios = reused.hit_ratios(&sizes.iter().map(|(_, frames)| *frames).collect::<Vec<_>>());
        let point = |((bytes, frames), hit_ratio): (&(Bytes, u64), f64)| record::CachePoint {
            cache_bytes: bytes.0,
            cache_blocks: *frames,
            hit_ratio,
        };
        let points = sizes.iter().zip(ratios).map(point).collect();
        Some(record::CacheCurve { samples: reused.samples(), reused: reused.reused(), points })
    }

    fn check_health(&self) -> Result<(), TargetError> {
        if let Some(failure) = self.shared.take_failure() {
            return Err(failure);
        }
        self.shared.check_files()?;
        self.watches.iter().try_for_each(Watch::seen)?;
        for file in self.redo_files.iter().filter(|file| file.virtual_file().is_none()) {
            if !file.is_linked().of_file("inspect", file.path())? {
                return Err(TargetError::Vanished { path: file.path().to_owned() });
            }
        }
        Ok(())
    }
}

impl TargetFor<SlobOperation> for Engine {
    fn open_lane(&self, range: SessionRange) -> Result<Box<dyn Lane<SlobOperation> + '_>, TargetError> {
        let lane = EngineLane::new(&self.shared, &self.arena, range)?;
        *self.features.lock().unwrap_or_else(PoisonError::into_inner) = Some(lane.queue.features());
        Ok(Box::new(lane))
    }
}

/// Fewest blocks that a cache is worth a point of the curve with.
const MIN_CURVE_BLOCKS: u64 = 64;

/// Sizes of the points of a curve, rising: round ones, two for each doubling, up to one that holds all data, and that of the cache
/// itself.
fn curve_sizes(cache: Bytes, data_bytes: u64) -> Vec<Bytes> {
    let round = (0..32).flat_map(|doublings| [Bytes::mib(1).0 << doublings, Bytes::mib(3).0 << doublings >> 1]);
    // Bookkeeping takes a little besides the data.
    let enough = data_bytes + data_bytes / 16;
    let below = round.clone().take_while(|bytes| *bytes < enough);
    let mut sizes: Vec<u64> = below.chain(round.clone().find(|bytes| *bytes >= enough)).chain([cache.0]).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes.into_iter().map(Bytes).collect()
}

fn is_direct(files: &[Arc<StorageFile>]) -> bool {
    files.iter().all(|file| file.caching() == Caching::Direct)
}

pub(super) fn choose_io(asked: Option<IoEngine>, data_files: &[Arc<StorageFile>]) -> (IoEngine, Vec<String>) {
    let mut notes = Vec::new();
    let engine = asked.unwrap_or_else(|| {
        let (engine, refused) = IoEngine::best_available();
        if let Some(reason) = refused {
            notes.push(format!(
                "io_uring is refused here ({reason}): reads and writes use pread and pwrite on helper threads, which \
                 costs more processor time"
            ));
        }
        engine
    });
    if !is_direct(data_files) {
        notes.push(
            "the file system refuses O_DIRECT: reads may come from the kernel's page cache rather than from storage"
                .to_owned(),
        );
    }
    (engine, notes)
}

fn default_writers() -> u32 {
    std::thread::available_parallelism().map_or(1, |cpus| (cpus.get() / 8).max(1) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_has_round_sizes_up_to_all_data_and_the_cache_itself() {
        let sizes = |cache, data: u64| curve_sizes(Bytes::mib(cache), data << 20).into_iter().map(|size| size.0 >> 20);
        assert_eq!(sizes(5, 9).collect::<Vec<_>>(), [1, 1, 2, 3, 4, 5, 6, 8, 12], "1.5 MiB is cut here");
        assert_eq!(sizes(64, 1).collect::<Vec<_>>(), [1, 1, 64]);
        assert_eq!(sizes(64, 4_096).next_back(), Some(6_144));
    }
}
