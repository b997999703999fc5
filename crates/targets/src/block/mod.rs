//! Raw files and block devices as one volume.

mod error;
mod lane;
pub mod layout;
mod place;
mod prepare;
mod raw;
mod read_back;
pub mod safety;
pub mod signature;
pub mod stamp;
mod usage;
mod users;
mod volume;

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{FileContext, TargetError};
use crate::io::{Arena, Claim, Durability, FileUse, FoundFile, Opening, StorageFile, VirtualDirectory};
use crate::watch::{Watch, look};
use measure::environment;
use model::workload::Rng;
use safety::{Checked, Guard, PathKind};
use stamp::FileId;

pub use error::BlockError;
pub use place::MemberLocation;
pub use prepare::{Preparation, PrepareOptions};
pub use raw::{Block, BlockOptions, Checking};
pub use usage::Usage;
pub use users::Process;
pub use volume::{Segment, Segments, Volume, VolumeLayout};

/// A request must not cross a multiple of this in the arena.
const CHUNK_BYTES: u64 = 1 << 30;
const PAGE_BYTES: u64 = 4096;

/// An arena cut into equal pieces, none of which crosses a chunk.
struct SlotMemory {
    arena: Arc<Arena>,
    slot_bytes: u64,
    slots_per_chunk: u64,
}

impl SlotMemory {
    /// Memory for `slots` slots of `slot_bytes` bytes, 1 GiB at most, each beginning on a page.
    ///
    /// # Errors
    /// When the system has no such memory.
    fn new(slots: u32, slot_bytes: u64) -> io::Result<Self> {
        let slot_bytes = slot_bytes.max(1).next_multiple_of(PAGE_BYTES);
        if slot_bytes > CHUNK_BYTES {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let slots_per_chunk = CHUNK_BYTES / slot_bytes;
        let last = u64::from(slots.max(1)) - 1;
        let bytes = last / slots_per_chunk * CHUNK_BYTES + (last % slots_per_chunk + 1) * slot_bytes;
        let arena = Arena::new(usize::try_from(bytes).map_err(|_| io::ErrorKind::OutOfMemory)?)?;
        Ok(Self { arena: Arc::new(arena), slot_bytes, slots_per_chunk })
    }

    fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// Where the piece of a slot begins.
    #[inline]
    fn offset(&self, slot: u32) -> u64 {
        let slot = u64::from(slot);
        slot / self.slots_per_chunk * CHUNK_BYTES + slot % self.slots_per_chunk * self.slot_bytes
    }

    /// Has the system give all of it now, rather than while requests are being timed.
    fn touch(&self) {
        for offset in (0..self.arena.len() as u64).step_by(PAGE_BYTES as usize) {
            self.arena.store(offset, 0);
        }
    }

    /// Fills everything with incompressible data.
    fn fill(&self, rng: &mut Rng) {
        const PIECE: usize = 4096;
        let mut piece = [0; PIECE];
        for offset in (0..self.arena.len() as u64).step_by(PIECE) {
            rng.fill(&mut piece);
            self.arena.store_bytes(offset, &piece);
        }
    }
}

/// What `BlockDevice::layer` says of a part of a disk.
const PARTITION: &str = "partition";

/// What lies below a path.
struct Below<'a> {
    path: &'a Path,
    /// The device, or the file system where that has none which the kernel shows: two paths with the same are one storage.
    place: String,
    /// All devices down to the disks, partitions left out.
    devices: Vec<String>,
}

/// The devices, by kernel name, that lie below at least two of the paths.
///
/// # Errors
/// [`BlockError::OneDevice`] where two paths are on one device, or on one file system.
pub fn devices_shared(paths: &[PathBuf]) -> Result<Vec<String>, BlockError> {
    let all: Vec<Below<'_>> = paths.iter().map(|path| Below::of(path)).collect();
    let mut shared: Vec<String> = Vec::new();
    for (at, second) in all.iter().enumerate() {
        for first in &all[..at] {
            if first.place == second.place {
                let (first, second, place) = (first.path.to_owned(), second.path.to_owned(), second.place.clone());
                return Err(BlockError::OneDevice { first, second, place });
            }
            let both = second.devices.iter().filter(|device| first.devices.contains(device));
            for device in both {
                if !shared.contains(device) {
                    shared.push(device.clone());
                }
            }
        }
    }
    Ok(shared)
}

impl<'a> Below<'a> {
    fn of(path: &'a Path) -> Self {
        let found = environment::capture(Some(path)).devices;
        let whole = found.into_iter().filter(|device| device.layer.as_deref() != Some(PARTITION));
        let devices: Vec<String> = whole.map(|device| device.name).collect();
        let place = match devices.first() {
            Some(device) => format!("`{device}`"),
            None => file_system(path),
        };
        Self { path, place, devices }
    }
}

/// A file system, or device, by its number: of a path that is not there yet, that of the nearest directory above it.
fn file_system(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let known = absolute.ancestors().find_map(|ancestor| ancestor.metadata().ok());
    let number = known.map_or(0, |found| if found.file_type().is_block_device() { found.rdev() } else { found.dev() });
    format!("file system {}:{}", libc::major(number), libc::minor(number))
}

/// A file in a virtual directory, whether or not it is there yet.
#[derive(Debug, Clone)]
pub struct VirtualPlace {
    directory: Arc<dyn VirtualDirectory>,
    name: String,
    address: PathBuf,
}

impl VirtualPlace {
    /// The file of that name.
    pub fn new(directory: Arc<dyn VirtualDirectory>, name: String) -> Self {
        let address = directory.address_of(&name);
        Self { directory, name, address }
    }

    /// Its address, for messages and the record.
    pub fn address(&self) -> &Path {
        &self.address
    }

    /// Where it lies.
    pub fn directory(&self) -> &Arc<dyn VirtualDirectory> {
        &self.directory
    }

    /// What is there under its name, if anything is.
    fn find(&self) -> Result<Option<FoundFile>, TargetError> {
        self.directory.find(&self.name).of_file("find", &self.address)
    }

    /// Opens it, if it is the file that was found before.
    fn open(&self, opening: Opening, identity: Option<(u64, u64)>) -> Result<StorageFile, TargetError> {
        let file =
            self.directory.open(&self.name, opening.access, opening.durability).of_file("open", &self.address)?;
        let found = self.find()?;
        if identity.is_some() && found.map(|found| found.identity) != identity {
            return Err(BlockError::Replaced { path: self.address.clone() }.into());
        }
        Ok(StorageFile::virtual_at(self.address.clone(), file))
    }

    /// Has it for this run alone.
    fn claim(&self) -> Result<Claim, TargetError> {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let holder = format!("process {} on {}", std::process::id(), host.trim());
        self.directory.claim(&self.name, &holder).of_file("have for this run alone", &self.address)
    }

    /// Creates the file, which must not exist and is to have so many bytes.
    pub(crate) fn create(&self, bytes: u64) -> Result<StorageFile, TargetError> {
        let file = self.directory.create(&self.name, bytes, FileUse::Data, Durability::OnSync);
        Ok(StorageFile::virtual_at(self.address.clone(), file.of_file("create", &self.address)?))
    }

    /// Removes it; that it is not there is no error.
    fn remove(&self) -> Result<(), TargetError> {
        self.directory.remove(&self.name).of_file("remove", &self.address)
    }
}

/// A file or device that has passed the checks and is open. Others are kept away as long as it lives.
#[derive(Debug)]
pub struct Member {
    file: Arc<StorageFile>,
    kind: PathKind,
    id: Option<FileId>,
    length_bytes: u64,
    /// Keeps the lock or the exclusive claim; never read or written.
    _guard: Guard,
    /// Looks at a file that only a server can be asked about.
    watch: Option<Watch>,
}

impl Member {
    /// Opens what has been checked. The exclusive claim on a device that is to be written to is that of the check.
    ///
    /// # Errors
    /// [`BlockError::Replaced`] when the path leads elsewhere by now, or the system's error.
    pub fn open(checked: Checked, opening: Opening) -> Result<Self, TargetError> {
        let path = checked.path().to_owned();
        let (kind, id, guard) = (checked.kind(), checked.id(), checked.into_guard());
        let file = match &guard {
            Guard::Local(guard) => {
                let file = StorageFile::open_as(&path, opening).of_file("open", &path)?;
                if !file.is_same_as(guard).of_file("look at", &path)? {
                    return Err(BlockError::Replaced { path }.into());
                }
                file
            }
            Guard::Virtual { place, identity, .. } => place.open(opening, Some(*identity))?,
        };
        let file = Arc::new(file);
        let length_bytes = file.length().of_file("find the size of", &path)?;
        let watch = file.virtual_file().map(|_| Watch::begin(&file, length_bytes)).transpose();
        let watch =
            watch.map_err(|source| TargetError::Kernel { action: "start a thread that looks after files", source })?;
        Ok(Self { file, kind, id, length_bytes, _guard: guard, watch })
    }

    /// The open file.
    pub fn file(&self) -> &Arc<StorageFile> {
        &self.file
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// What it is.
    pub fn kind(&self) -> PathKind {
        self.kind
    }

    /// The number that its first sector carried when it was checked; none if Plimsoll did not lay it out.
    pub fn id(&self) -> Option<FileId> {
        self.id
    }

    /// Length when it was opened, in bytes.
    pub fn length_bytes(&self) -> u64 {
        self.length_bytes
    }

    /// Smallest request that it takes without the kernel reading or writing more, in bytes.
    pub fn request_unit_bytes(&self) -> u32 {
        self.file.direct_unit_bytes().max(self.file.logical_sector_bytes().unwrap_or(0))
    }

    /// Looks whether it is still there and as long as it was; of a virtual file, what was seen of it last.
    ///
    /// # Errors
    /// [`TargetError::Vanished`], [`TargetError::Truncated`], or the system's error.
    pub fn check_health(&self) -> Result<(), TargetError> {
        match &self.watch {
            Some(watch) => watch.seen(),
            None => self.look_now(),
        }
    }

    /// Looks whether it is still there and as long as it was, however long that takes.
    ///
    /// # Errors
    /// As [`Member::check_health`].
    fn look_now(&self) -> Result<(), TargetError> {
        look(&self.file, self.kind != PathKind::BlockDevice, self.length_bytes)
    }
}

// Which write of each block was acknowledged last, so that a lost write is noticed when the block is read.
//
// All lanes share one map without locks: a word a block, half a GiB for a volume of 1 TiB in blocks of 8 KiB. A block
// has at most one write in flight. Generations of a run begin above those of every run before it, so that a block that
// still carries an older run's data is known as older, too.

/// Set while a write is in flight.
const BUSY: u32 = 1 << 31;
const COUNT: u32 = BUSY - 1;

/// The last acknowledged generation of each block.
#[derive(Debug)]
pub struct Generations {
    /// Writes of this run that were acknowledged, and [`BUSY`].
    blocks: Box<[AtomicU32]>,
    base: u64,
}

/// What was known of a block when a read of it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Floor(u32);

/// What the generation found in a block says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is what was acknowledged last or, where a write was in flight, its old or new state.
    Sound,
    /// The data are older than a write that was acknowledged before the read was sent.
    Lost {
        /// Generation found.
        found: u64,
        /// Oldest that may be there.
        acknowledged: u64,
    },
    /// The data carry a generation that this run has not yet given to this block: another program writes here.
    Unknown {
        /// Generation found.
        found: u64,
        /// Newest that may be there.
        newest: u64,
    },
}

impl Generations {
    /// A map of `blocks` blocks whose writes get generations above `base`: see [`base_at`].
    pub fn new(blocks: usize, base: u64) -> Self {
        Self { blocks: (0..blocks).map(|_| AtomicU32::new(0)).collect(), base }
    }

    /// Claims a block for a write, and gives the generation to stamp. None while another write of the block is in
    /// flight, or after 2^31 writes of it.
    ///
    /// A write that fails is not acknowledged: its block stays claimed, since nobody knows what is in it now.
    #[inline]
    pub fn try_begin_write(&self, block: usize) -> Option<u64> {
        let word = &self.blocks[block];
        let before = word.load(Ordering::Relaxed);
        if before & BUSY != 0 || before == COUNT {
            return None;
        }
        word.compare_exchange(before, before | BUSY, Ordering::Acquire, Ordering::Relaxed).ok()?;
        Some(self.base + u64::from(before) + 1)
    }

    /// Says that the write of a claimed block is done: from now on, no read may find older data.
    #[inline]
    pub fn acknowledge(&self, block: usize) {
        let word = &self.blocks[block];
        let before = word.load(Ordering::Relaxed);
        debug_assert!(before & BUSY != 0, "only a claimed block can be acknowledged");
        word.store((before & COUNT) + 1, Ordering::Release);
    }

    /// To be noted when a read of the block is sent.
    #[inline]
    pub fn floor(&self, block: usize) -> Floor {
        Floor(self.blocks[block].load(Ordering::Acquire))
    }

    /// Whether any write of the block was acknowledged.
    pub fn was_acknowledged(&self, block: usize) -> bool {
        self.blocks[block].load(Ordering::Acquire) & COUNT > 0
    }

    /// Whether a write of the block was in flight at some time since `floor` was noted. Such a read may find the old
    /// data, the new, or sectors of both, and none of these is a fault.
    #[inline]
    pub fn was_written_since(&self, block: usize, floor: Floor) -> bool {
        let now = self.blocks[block].load(Ordering::Acquire);
        floor.0 & BUSY != 0 || now != floor.0
    }

    /// Judges the generation that a read found, given the floor noted when it was sent.
    #[inline]
    pub fn check(&self, block: usize, found: u64, floor: Floor) -> Verdict {
        let acknowledged = floor.0 & COUNT;
        let now = self.blocks[block].load(Ordering::Acquire);
        let newest = self.base + u64::from(now & COUNT) + u64::from(now & BUSY != 0);
        // A block that this run has not written may hold data of any earlier run.
        if acknowledged > 0 && found < self.base + u64::from(acknowledged) {
            return Verdict::Lost { found, acknowledged: self.base + u64::from(acknowledged) };
        }
        if found > newest { Verdict::Unknown { found, newest } } else { Verdict::Sound }
    }

    /// Blocks in the map.
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }
}

/// Where the generations of a run begin that starts at `unix_ms` milliseconds since 1970. Later runs begin above all
/// that this one can give out, unless it writes one block more than a million times a millisecond.
pub const fn base_at(unix_ms: u64) -> u64 {
    unix_ms << 20
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_piece_meets_another_or_crosses_a_chunk(slots in 1..3_000_u32, slot_bytes in 1..80_000_000_u64) {
            let slots = slots.min((8 << 30) / slot_bytes as u32 + 1);
            let memory = SlotMemory::new(slots, slot_bytes).unwrap();
            let mut end = 0;
            for slot in 0..slots {
                let begin = memory.offset(slot);
                prop_assert!(begin >= end && begin.is_multiple_of(PAGE_BYTES));
                end = begin + slot_bytes;
                prop_assert_eq!(begin / CHUNK_BYTES, (end - 1) / CHUNK_BYTES);
            }
            prop_assert!(end <= memory.arena().len() as u64);
        }
    }

    #[test]
    fn no_two_sectors_are_alike() {
        let memory = SlotMemory::new(3, 8192).unwrap();
        memory.fill(&mut model::workload::Rng::new(1, 2));
        let words: std::collections::BTreeSet<u64> =
            (0..memory.arena().len() as u64).step_by(512).map(|at| memory.arena().load(at)).collect();
        assert_eq!(words.len(), 48);
    }
}

#[cfg(test)]
mod below_tests {
    use super::*;

    #[test]
    fn two_files_in_one_directory_are_on_one_device_though_one_is_not_there_yet() {
        for directory in [tempfile::tempdir(), tempfile::tempdir_in("/dev/shm")] {
            let Ok(directory) = directory else { continue };
            let paths = ["one", "two"].map(|name| directory.path().join(name));
            std::fs::write(&paths[0], "1").unwrap();
            let error = devices_shared(&paths).unwrap_err();
            assert!(matches!(error, BlockError::OneDevice { .. }), "{error}");
            assert!(devices_shared(&paths[..1]).unwrap().is_empty());
        }
    }

    #[test]
    fn memory_and_the_disk_have_nothing_in_common() {
        let paths = [PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from("/proc")];
        assert_eq!(devices_shared(&paths).unwrap(), [""; 0]);
    }
}

#[cfg(test)]
mod member_tests {
    use std::fs::{self, File};

    use super::*;
    use crate::block::safety::{Permission, Purpose, check};
    use crate::io::Caching;

    fn file_of(bytes: usize) -> (tempfile::TempDir, Checked) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        fs::write(&path, vec![3; bytes]).unwrap();
        let permission = Permission { destroy: vec!["data".to_owned()], destroy_signature: false };
        let checked = check(&[path], Purpose::Write(&permission)).unwrap().remove(0);
        (directory, checked)
    }

    #[test]
    fn a_member_knows_its_size_and_keeps_its_lock() {
        let (_directory, checked) = file_of(12_288);
        let path = checked.path().to_owned();
        let member = Member::open(checked, Opening::WRITE).unwrap();
        assert_eq!((member.length_bytes(), member.kind(), member.id()), (12_288, PathKind::File, None));
        assert!(member.request_unit_bytes() >= 512);
        assert!(check(std::slice::from_ref(&path), Purpose::Read).is_err());
        drop(member);
        check(&[path], Purpose::Read).unwrap();
    }

    #[test]
    fn the_page_cache_is_used_when_asked_for() {
        let (_directory, checked) = file_of(4096);
        let member = Member::open(checked, Opening { caching: Caching::PageCache, ..Opening::READ }).unwrap();
        assert_eq!(member.file().caching(), Caching::PageCache);
        assert!(member.file().write_all_at(&[0; 512], 0).is_err(), "opened for reads only");
    }

    #[test]
    fn a_file_that_shrinks_or_vanishes_is_noticed() {
        let (directory, checked) = file_of(8192);
        let path = checked.path().to_owned();
        let member = Member::open(checked, Opening::READ).unwrap();
        member.check_health().unwrap();
        File::options().write(true).open(&path).unwrap().set_len(4096).unwrap();
        assert!(matches!(member.check_health(), Err(TargetError::Truncated { length: 4096, expected: 8192, .. })));
        File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
        let as_device = crate::watch::look(member.file(), false, 8192);
        assert!(matches!(as_device, Err(TargetError::Unplugged { .. })), "{as_device:?}");
        drop(directory);
        assert!(matches!(member.check_health(), Err(TargetError::Vanished { .. })));
    }

    #[test]
    fn a_file_that_was_replaced_after_its_check_is_not_opened() {
        let (directory, checked) = file_of(4096);
        let other = directory.path().join("other");
        fs::write(&other, vec![1; 4096]).unwrap();
        fs::rename(&other, checked.path()).unwrap();
        let said = Member::open(checked, Opening::WRITE).unwrap_err().to_string();
        assert!(said.ends_with("was replaced by another file meanwhile"), "{said}");
    }
}

#[cfg(test)]
mod generations_tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    const BASE: u64 = base_at(1_000);

    #[test]
    fn a_block_has_one_write_in_flight() {
        let map = Generations::new(2, BASE);
        assert_eq!(map.try_begin_write(0), Some(BASE + 1));
        assert_eq!(map.try_begin_write(0), None);
        assert_eq!(map.try_begin_write(1), Some(BASE + 1), "blocks do not share a claim");
        map.acknowledge(0);
        assert_eq!(map.try_begin_write(0), Some(BASE + 2));
    }

    #[test]
    fn a_lost_write_is_noticed() {
        let map = Generations::new(1, BASE);
        map.try_begin_write(0).unwrap();
        map.acknowledge(0);
        map.try_begin_write(0).unwrap();
        map.acknowledge(0);
        let floor = map.floor(0);
        assert_eq!(map.check(0, BASE + 2, floor), Verdict::Sound);
        assert_eq!(map.check(0, BASE + 1, floor), Verdict::Lost { found: BASE + 1, acknowledged: BASE + 2 });
        // Data of an earlier run are older than anything that this run wrote.
        assert!(matches!(map.check(0, base_at(999) + 77, floor), Verdict::Lost { .. }));
    }

    #[test]
    fn a_write_in_flight_may_be_found_or_not() {
        let map = Generations::new(1, BASE);
        map.try_begin_write(0).unwrap();
        map.acknowledge(0);
        let floor = map.floor(0);
        assert!(!map.was_written_since(0, floor));
        map.try_begin_write(0).unwrap();
        assert!(map.was_written_since(0, floor));
        assert_eq!(map.check(0, BASE + 1, floor), Verdict::Sound);
        assert_eq!(map.check(0, BASE + 2, floor), Verdict::Sound);
        map.acknowledge(0);
        assert!(map.was_written_since(0, floor), "it began and ended while the read was under way");
        assert_eq!(map.check(0, BASE + 1, floor), Verdict::Sound);
        assert!(matches!(map.check(0, BASE + 1, map.floor(0)), Verdict::Lost { .. }));
    }

    #[test]
    fn a_block_that_was_not_written_may_hold_what_earlier_runs_left() {
        let map = Generations::new(1, BASE);
        let floor = map.floor(0);
        assert_eq!(map.check(0, 1, floor), Verdict::Sound);
        assert_eq!(map.check(0, BASE, floor), Verdict::Sound);
        assert_eq!(map.check(0, BASE + 1, floor), Verdict::Unknown { found: BASE + 1, newest: BASE });
    }

    #[test]
    fn a_failed_write_keeps_its_block_claimed() {
        let map = Generations::new(1, BASE);
        map.try_begin_write(0).unwrap();
        let floor = map.floor(0);
        assert_eq!(map.try_begin_write(0), None);
        assert!(map.was_written_since(0, floor));
        assert_eq!(map.check(0, BASE + 1, floor), Verdict::Sound);
        assert_eq!(map.check(0, 1, floor), Verdict::Sound);
    }

    #[test]
    fn lanes_share_the_map_without_losing_a_write() {
        const WRITES: u64 = 20_000;
        let map = Generations::new(4, BASE);
        // Stands for the device: the data of each block.
        let stored: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(0)).collect();
        let written = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for lane in 0..3 {
                let (map, stored, written) = (&map, &stored, &written);
                scope.spawn(move || {
                    let mut block = lane;
                    while written.load(Ordering::Relaxed) < WRITES {
                        block = (block + 1) % 4;
                        if let Some(generation) = map.try_begin_write(block) {
                            stored[block].store(generation, Ordering::Relaxed);
                            map.acknowledge(block);
                            written.fetch_add(1, Ordering::Relaxed);
                        }
                        let floor = map.floor(block);
                        let found = stored[block].load(Ordering::Relaxed);
                        let verdict = map.check(block, found, floor);
                        assert_eq!(verdict, Verdict::Sound, "block {block}");
                    }
                });
            }
        });
        let given: u64 = stored.iter().map(|found| found.load(Ordering::Relaxed) - BASE).sum();
        assert_eq!(given, written.into_inner());
    }
}
