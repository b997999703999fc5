//! Files and block devices as a target.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::lane::{BlockLane, Device};
use super::stamp::{self, FileId, SECTOR_BYTES, StampFault};
use super::volume::{Segment, Volume};
use super::{Floor, Generations, Member, Verdict};
use crate::block::BlockError;
use crate::error::{FileContext, TargetError};
use crate::io::{Caching, Direction, Features, IoEngine, StorageFile};
use crate::{Background, Lane, SessionRange, Target, TargetFor};
use measure::Counter;
use model::config::io::Durable;
use model::record::{self, FileFacts, TargetFacts};
use model::units::Bytes;
use model::workload::io::IoOperation;

/// What is done about the content of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checking {
    /// Nothing: data are moved and not looked at.
    Off,
    /// Every read must bring what was last written there. Writes of a block that is being written already are moved to
    /// the next one that is not.
    On {
        /// Length of a block: every request is one, and begins at a multiple of it.
        block_bytes: u32,
    },
}

/// How a volume is used.
#[derive(Debug, Clone)]
pub struct BlockOptions {
    /// How requests reach the kernel.
    pub io_engine: IoEngine,
    /// Usual length of a request, for the record.
    pub block_bytes: u32,
    /// Longest request.
    pub largest_bytes: u32,
    /// Data that requests can touch, for the record.
    pub region_bytes: u64,
    /// Whether any request writes.
    pub writes: bool,
    /// When writes are durable.
    pub durable: Durable,
    /// Whether data are checked.
    pub checking: Checking,
    /// Seed of what is written.
    pub seed: u64,
    /// Where the generations of this run begin: see [`super::base_at`].
    pub generation_base: u64,
    /// What else the record is to say of the storage: of virtual directories how they are reached.
    pub facts: TargetFacts,
}

/// One logical volume over open files and devices.
pub struct Block {
    volume: Volume,
    members: Vec<Member>,
    /// The members' files, as queues want them.
    files: Vec<Arc<StorageFile>>,
    ids: Vec<FileId>,
    options: BlockOptions,
    generations: Option<Generations>,
    features: Mutex<Option<Features>>,
    first_failure: OnceLock<String>,
}

impl Block {
    /// A volume over `members`, in order.
    pub fn new(volume: Volume, members: Vec<Member>, options: BlockOptions) -> Self {
        let generations = match options.checking {
            Checking::Off => None,
            Checking::On { block_bytes } => {
                let blocks = options.region_bytes / u64::from(block_bytes.max(1));
                let blocks = usize::try_from(blocks).unwrap_or(usize::MAX);
                Some(Generations::new(blocks, options.generation_base))
            }
        };
        let files = members.iter().map(|member| Arc::clone(member.file())).collect();
        let new_id = |number: usize| FileId::new(options.seed.wrapping_add(number as u64));
        let ids = members.iter().enumerate().map(|(number, member)| member.id().unwrap_or_else(|| new_id(number)));
        let (ids, features, first_failure) = (ids.collect(), Mutex::new(None), OnceLock::new());
        Self { volume, files, ids, members, options, generations, features, first_failure }
    }

    /// The first request that failed and ended no load: what it was, where, and what the kernel said of it.
    pub fn first_failure(&self) -> Option<&str> {
        self.first_failure.get().map(String::as_str)
    }

    #[cold]
    pub(super) fn note_failure(&self, error: &TargetError) {
        self.first_failure.get_or_init(|| error.to_string());
    }

    /// How it was opened.
    pub fn options(&self) -> &BlockOptions {
        &self.options
    }

    /// Says how long the longest request of lanes to come is.
    pub fn set_largest_bytes(&mut self, bytes: u32) {
        self.options.largest_bytes = bytes;
    }

    /// Whether every member takes discards. None is sent.
    ///
    /// # Errors
    /// The first that does not, and why.
    pub fn check_discards(&self) -> Result<(), TargetError> {
        self.files.iter().try_for_each(|file| file.check_discards().of_file("discard ranges of", file.path()))
    }

    /// Has lanes to come make so many connections to each path of a server, instead of what its address says.
    pub fn use_connections(&self, each: u32) {
        self.files.iter().filter_map(|file| file.virtual_file()).for_each(|file| file.use_connections(each));
    }

    /// Whether data are checked.
    pub fn is_checked(&self) -> bool {
        self.generations.is_some()
    }

    pub(super) fn volume(&self) -> &Volume {
        &self.volume
    }

    pub(super) fn files(&self) -> &[Arc<StorageFile>] {
        &self.files
    }

    /// The number that sectors of a member carry.
    #[inline]
    pub(super) fn id(&self, member: u32) -> FileId {
        self.ids[member as usize]
    }

    /// Which writes were acknowledged, if data are checked.
    #[inline]
    pub(super) fn generations(&self) -> Option<&Generations> {
        self.generations.as_ref()
    }

    /// Memory that one operation needs: each copy of a mirrored write has stamps of its own.
    pub(super) fn slot_bytes(&self) -> u64 {
        let copies = if self.options.writes { self.volume.copies() } else { 1 };
        u64::from(self.options.largest_bytes) * u64::from(copies)
    }

    /// Requests that one operation may have in flight.
    pub(super) fn max_requests(&self) -> u32 {
        let segments = self.volume.max_segments(self.options.largest_bytes) as u32;
        segments.max(self.files.len() as u32)
    }

    pub(super) fn note_features(&self, features: Features) {
        *self.features.lock().unwrap_or_else(PoisonError::into_inner) = Some(features);
    }

    /// How requests reach storage, for the record.
    fn engine(&self) -> String {
        self.protocol().map_or_else(|| self.options.io_engine.to_string(), str::to_owned)
    }

    /// The protocol of virtual files; none where the kernel has them. A queue has files of one kind only.
    fn protocol(&self) -> Option<&'static str> {
        self.files.first()?.virtual_file().map(|file| file.protocol())
    }

    /// Looks whether all members are still there and as long as they were, however long that takes.
    ///
    /// # Errors
    /// As [`Member::check_health`].
    pub(super) fn look_now(&self) -> Result<(), TargetError> {
        self.members.iter().try_for_each(Member::look_now)
    }

    fn is_direct(&self) -> bool {
        self.files.iter().all(|file| file.caching() == Caching::Direct)
    }
}

impl Target for Block {
    fn describe(&self) -> record::Target {
        let paths: Vec<String> = self.files.iter().map(|file| file.path().display().to_string()).collect();
        let mut classes: Vec<&str> = self.members.iter().map(|member| member.kind().name()).collect();
        classes.sort_unstable();
        classes.dedup();
        let address = paths.first().cloned().unwrap_or_default();
        let mut facts = TargetFacts {
            files: FileFacts {
                direct_io: Some(self.is_direct()),
                durable: Some(self.options.durable),
                layout: Some(self.volume.layout()),
                io_engine: Some(self.engine()),
                paths,
                ..FileFacts::default()
            },
            other: [
                ("device_class".to_owned(), classes.join(" and ")),
                ("volume".to_owned(), Bytes(self.volume.capacity_bytes()).to_string()),
            ]
            .into(),
            ..TargetFacts::default()
        };
        facts.fill(&self.options.facts);
        record::Target {
            kind: Some(record::TargetKind::Block),
            address,
            block_bytes: Some(u64::from(self.options.block_bytes)),
            data_bytes: Some(self.options.region_bytes),
            cache_bytes: None,
            cache_blocks: None,
            facts,
        }
    }

    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    fn layer(&self) -> &'static str {
        match self.protocol() {
            None => "os file",
            Some(protocol) if protocol.starts_with("nfs") => "NFS client",
            Some(_) => "disk group",
        }
    }

    fn known_counters(&self) -> &'static [Counter] {
        &[
            Counter::Operations,
            Counter::Errors,
            Counter::PhysicalReads,
            Counter::PhysicalReadBytes,
            Counter::PhysicalWrites,
            Counter::PhysicalWriteBytes,
        ]
    }

    fn take_background(&self) -> Background {
        let mut channels = Vec::new();
        for file in self.files.iter().filter_map(|file| file.virtual_file()) {
            record::ChannelStats::add_to(&mut channels, &file.take_channels());
        }
        Background { channels, ..Background::default() }
    }

    fn check_health(&self) -> Result<(), TargetError> {
        self.members.iter().try_for_each(Member::check_health)
    }
}

impl TargetFor<IoOperation> for Block {
    fn open_lane(&self, range: SessionRange) -> Result<Box<dyn Lane<IoOperation> + '_>, TargetError> {
        Ok(Box::new(BlockLane::open(self, range, Device::Used)?))
    }

    fn open_idle_lane(&self, range: SessionRange) -> Result<Option<Box<dyn Lane<IoOperation> + '_>>, TargetError> {
        // What checks data cannot do without them, and without that it is another loop.
        if self.is_checked() {
            return Ok(None);
        }
        Ok(Some(Box::new(BlockLane::open(self, range, Device::Spared)?)))
    }
}

/// How often all blocks are looked at before none counts as free.
const CLAIM_ROUNDS: u32 = 1_000;

impl Block {
    /// Number of the block that an operation is about, where data are checked.
    #[inline]
    pub(super) fn number(&self, operation: IoOperation) -> usize {
        (operation.offset_bytes / u64::from(operation.bytes)) as usize
    }

    /// Claims the first block from `wanted` on that nobody writes to just now.
    ///
    /// # Errors
    /// [`BlockError::NoBlockFree`] when there is none, however often one looks: blocks whose write failed are never free
    /// again.
    pub(super) fn claim(&self, map: &Generations, wanted: usize) -> Result<(usize, u64), TargetError> {
        for _ in 0..CLAIM_ROUNDS {
            for block in (wanted..map.blocks()).chain(0..wanted) {
                if let Some(generation) = map.try_begin_write(block) {
                    return Ok((block, generation));
                }
            }
            // Other lanes' writes come and go behind the one who looks.
            std::thread::yield_now();
        }
        Err(BlockError::NoBlockFree { blocks: map.blocks() as u64 }.into())
    }

    /// Checks data that were read at an offset of the volume.
    ///
    /// # Errors
    /// [`BlockError::BadData`] for the first sector that is not what was written.
    pub(super) fn check(&self, offset_bytes: u64, found: &[u8], floor: Floor) -> Result<(), TargetError> {
        let (Some(map), Checking::On { block_bytes }) = (self.generations(), self.options().checking) else {
            return Ok(());
        };
        let block = (offset_bytes / u64::from(block_bytes)) as usize;
        for segment in self.volume().segments(offset_bytes, found.len() as u32, Direction::Read) {
            let part = &found[segment.at as usize..][..segment.bytes as usize];
            self.check_segment(map, block, segment, part, floor)?;
        }
        Ok(())
    }

    /// Checks the part of a block that was read from one place of one member.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub(super) fn check_segment(
        &self,
        map: &Generations,
        block: usize,
        segment: Segment,
        part: &[u8],
        floor: Floor,
    ) -> Result<(), TargetError> {
        let offset = segment.offset_bytes;
        let bad = |why: String| {
            let path = self.files()[segment.member as usize].path().to_owned();
            TargetError::from(BlockError::BadData { path, why })
        };
        let seen = match examine(part, offset, self.id(segment.member)) {
            Ok(seen) => seen,
            // A server's page cache takes a write piece by piece, so that a read meanwhile may find both within one sector.
            Err(StampFault::Corrupt { .. }) if map.was_written_since(block, floor) => return Ok(()),
            Err(fault) => return Err(bad(fault.to_string())),
        };
        let of_this_run = seen.newest > self.options().generation_base;
        if of_this_run && seen.oldest != seen.newest && !map.was_written_since(block, floor) {
            return Err(bad(format!(
                "the write of {} bytes at offset {offset} is torn: it holds generations {} and {}",
                segment.bytes, seen.oldest, seen.newest
            )));
        }
        match map.check(block, seen.newest, floor) {
            Verdict::Sound => Ok(()),
            Verdict::Lost { found, acknowledged } => Err(bad(format!(
                "an acknowledged write at offset {offset} is lost: generation {found} is there, {acknowledged} was \
                 acknowledged"
            ))),
            Verdict::Unknown { found, .. } => Err(bad(format!(
                "offset {offset} holds generation {found}, which this run never wrote: another program writes here"
            ))),
        }
    }
}

/// Generations found in a range.
struct Seen {
    oldest: u64,
    newest: u64,
}

/// Looks at each sector by itself: earlier runs may have written requests of other sizes.
fn examine(part: &[u8], offset_bytes: u64, id: FileId) -> Result<Seen, StampFault> {
    let mut seen = Seen { oldest: u64::MAX, newest: 0 };
    for (index, sector) in part.chunks(SECTOR_BYTES).enumerate() {
        let generation = stamp::check(sector, offset_bytes + (index * SECTOR_BYTES) as u64, id)?;
        seen.oldest = seen.oldest.min(generation);
        seen.newest = seen.newest.max(generation);
    }
    Ok(seen)
}
