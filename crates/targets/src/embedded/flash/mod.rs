//! The flash cache: a second level of the buffer cache on local flash, as Oracle's database smart flash cache.
//!
//! A clean block that leaves the buffer cache is copied into memory, and a thread of its own writes such copies to flash, many with
//! one request. A block that is not in the buffer cache is looked for in a map in memory, and read from flash where it is there.
//! Sessions never wait for the writing: where the writer is behind, a block is left out and counted.
//!
//! Slots are written in a ring, the oldest first. That makes every write a long one at rising offsets, which costs the processor a
//! fraction of a write for each block and is what flash takes best, and no slot is lost to a copy that another one replaced. What is
//! used most stays in the buffer cache above, so the second level sees little of what a cleverer order could exploit.
//!
//! No version but the newest is ever read. A block that is changed is declared void, whether it lies on flash or is on its way; and
//! what was read is checked in every respect, its change number included, as a block of a data file is. What fails the check, or
//! cannot be read, is read from the data file. So flash that is lost, corrupt or cut costs time and nothing else. A flash cache begins
//! empty: what a file has from an earlier process is not looked at.

mod map;
mod options;
mod pending;
mod place;
mod session;
pub(super) mod writer;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::Thread;

use map::SlotMap;
use options::PENDING_BYTES;
use pending::Pending;
use place::{FlashFile, HEAD_BYTES};

pub(super) use map::Slot;
pub use options::FlashOptions;

use super::layout::Layout;
use crate::error::TargetError;
use crate::io::{Arena, Caching, StorageFile};

/// Bytes of one write: long enough that it costs next to nothing for each block, short enough that a read behind it waits little.
const BATCH_BYTES: u64 = 512 << 10;
/// Failures one after the other after which the flash is given up: a device that is gone fails every request.
const MAX_FAILURES: u32 = 16;

impl FlashOptions {
    /// Looks whether it can be had for data of this layout, and changes nothing.
    ///
    /// # Errors
    /// When the path may not be used, a schema does not exist, or the size makes no sense.
    pub(super) fn check(&self, layout: &Layout) -> Result<(), TargetError> {
        self.check_words(layout)?;
        place::judge(self)
    }
}

/// A part of the slots that is written in a circle.
struct Ring {
    slots: Range<u64>,
    pending: Pending,
    /// Where its copies lie in memory.
    memory: u64,
}

/// An open flash cache, shared by all threads.
pub(super) struct Flash {
    options: FlashOptions,
    file: FlashFile,
    map: SlotMap,
    rings: Vec<Ring>,
    ring_of: Vec<Option<usize>>,
    scale_blocks: u64,
    block_bytes: u64,
    memory: Arc<Arena>,
    memory_bytes: u64,
    /// Blocks that were left out since the writer last looked.
    skipped: AtomicU64,
    failures: AtomicU32,
    is_off: AtomicBool,
    /// Why it was given up.
    given_up: Mutex<Option<String>>,
    is_stopping: AtomicBool,
    writer: OnceLock<Thread>,
}

impl Flash {
    /// Makes an empty cache for data of a layout.
    ///
    /// # Errors
    /// As [`FlashOptions::check`]; or when its file or its memory cannot be had, or the data files are on a server.
    pub(super) fn open(
        options: &FlashOptions,
        layout: &Layout,
        data_files: &[Arc<StorageFile>],
    ) -> Result<Self, TargetError> {
        options.check(layout)?;
        // Sessions read both through one queue.
        if data_files.iter().any(|file| file.virtual_file().is_some()) {
            let what = "cannot be put before data files that this program reads from a server itself".to_owned();
            return Err(options.refused(what, "leave out `--flash-cache`, or mount the server's files"));
        }
        let block_bytes = layout.shape().bytes() as u64;
        let (sizes, ring_of) = options.rings(layout);
        let memory = Arena::new(sizes.len() * PENDING_BYTES as usize)
            .map_err(|source| TargetError::Kernel { action: "map memory for the flash cache", source })?;
        let mut first = 0;
        let ring = |(number, slots): (u64, &u64)| {
            let slots = first..first + slots;
            first = slots.end;
            let places = (PENDING_BYTES / block_bytes) as usize;
            Ring { slots, pending: Pending::new(places), memory: number * PENDING_BYTES }
        };
        let rings = (0..).zip(&sizes).map(ring).collect();
        Ok(Self {
            file: FlashFile::open(options)?,
            map: SlotMap::new(options.slots(layout)),
            rings,
            ring_of,
            scale_blocks: layout.scale_blocks(),
            block_bytes,
            memory: Arc::new(memory),
            memory_bytes: options.memory_bytes(layout),
            skipped: AtomicU64::new(0),
            failures: AtomicU32::new(0),
            is_off: AtomicBool::new(false),
            given_up: Mutex::new(None),
            is_stopping: AtomicBool::new(false),
            writer: OnceLock::new(),
            options: options.clone(),
        })
    }

    /// Memory that it takes from the buffer cache, in bytes.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Facts for the record.
    pub(super) fn facts(&self) -> Vec<(String, String)> {
        let of = |schemas: &[u32]| schemas.iter().map(|schema| (schema + 1).to_string()).collect::<Vec<_>>().join(",");
        let slots: u64 = self.rings.iter().map(|ring| ring.slots.end - ring.slots.start).sum();
        let direct = if self.storage().caching() == Caching::Direct { "on" } else { "off" };
        let mut facts = vec![
            ("flash_cache", self.options.path.display().to_string()),
            ("flash_cache_bytes", self.options.size.0.to_string()),
            ("flash_cache_blocks", slots.to_string()),
            ("flash_cache_memory_bytes", self.memory_bytes.to_string()),
            ("flash_cache_direct_io", direct.to_owned()),
        ];
        let treated = [("flash_cache_keep", &self.options.keep), ("flash_cache_none", &self.options.none)];
        facts.extend(treated.into_iter().filter(|(_, schemas)| !schemas.is_empty()).map(|(name, all)| (name, of(all))));
        facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// What the user should know about how it was opened.
    pub(super) fn note(&self) -> Option<String> {
        (self.storage().caching() == Caching::PageCache).then(|| {
            format!(
                "the file system of the flash cache `{}` refuses O_DIRECT: reads of it may come from the kernel's page cache rather \
                 than from flash",
                self.options.path.display()
            )
        })
    }

    /// Its file or device.
    pub(super) fn storage(&self) -> &Arc<StorageFile> {
        &self.file.storage
    }

    /// Where a slot lies, in bytes.
    fn offset(&self, slot: u64) -> u64 {
        HEAD_BYTES + slot * self.block_bytes
    }

    /// The slot that holds the newest version of a block, while the flash can be used.
    fn find(&self, block: u64) -> Option<Slot> {
        if self.is_off.load(Ordering::Relaxed) { None } else { self.map.find(block) }
    }

    /// The slots that a block can lie in; none if its schema was left out.
    fn ring(&self, block: u64) -> Option<&Ring> {
        let ring = self.ring_of.get((block / self.scale_blocks) as usize).copied().flatten();
        ring.map(|ring| &self.rings[ring])
    }

    /// Whether a block could have been found here, had the flash not been given up.
    fn is_missed(&self, block: u64) -> bool {
        self.is_off.load(Ordering::Relaxed) && self.ring(block).is_some()
    }

    /// A block is about to be changed that was the same as in its data file: no copy of it counts any more. Its epoch has been counted on
    /// before, so that a copy which is on its way does not count either.
    pub(super) fn invalidate(&self, block: u64) {
        self.map.invalidate(block);
    }

    /// Takes a copy of a clean block that leaves the buffer cache, if it is wanted and there is room. Its epoch is that of before it left.
    fn offer(&self, block: u64, epoch: u32, contents: &[u8]) {
        let Some(ring) = self.ring(block).filter(|_| self.find(block).is_none()) else { return };
        if self.is_off.load(Ordering::Relaxed) {
            return;
        }
        let Some(filling) = ring.pending.put() else {
            self.skipped.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let turn = filling.turn();
        self.memory.store_bytes(ring.memory + filling.number as u64 * self.block_bytes, contents);
        filling.fill(block, epoch);
        if (turn + 1).is_multiple_of(self.batch_blocks() as u64)
            && let Some(writer) = self.writer.get()
        {
            writer.unpark();
        }
    }

    fn batch_blocks(&self) -> usize {
        (BATCH_BYTES / self.block_bytes) as usize
    }

    /// A request to flash was answered as it should be.
    fn succeeded(&self) {
        if self.failures.load(Ordering::Relaxed) != 0 {
            self.failures.store(0, Ordering::Relaxed);
        }
    }

    /// A request to flash failed, or brought what was not written there.
    #[cold]
    fn failed(&self, action: &str, why: &dyn std::fmt::Display) {
        if self.failures.fetch_add(1, Ordering::Relaxed) + 1 < MAX_FAILURES {
            return;
        }
        self.is_off.store(true, Ordering::Relaxed);
        let mut given_up = self.given_up.lock().unwrap_or_else(PoisonError::into_inner);
        given_up.get_or_insert_with(|| {
            format!(
                "the flash cache `{}` was given up after {MAX_FAILURES} consecutive failures. All reads went to the \
                data files from then on. The last failure: cannot {action}: {why}",
                self.options.path.display()
            )
        });
    }

    /// Why it was given up, if it was.
    pub(super) fn given_up(&self) -> Option<String> {
        self.given_up.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lets its writer end.
    pub(super) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        if let Some(writer) = self.writer.get() {
            writer.unpark();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::block::BlockShape;
    use model::units::Bytes;

    fn layout() -> Layout {
        Layout::new(BlockShape::new(8192).unwrap(), 1, 1, 4, 1_000, 0)
    }

    fn options(mib: u64) -> FlashOptions {
        FlashOptions::new(std::env::temp_dir().join("plimsoll-flash-that-is-not-there"), Bytes::mib(mib))
    }

    #[test]
    fn schemas_that_are_kept_have_a_ring_of_their_own_and_leave_the_others_some() {
        let rings = |keep: &[u32], none: &[u32], mib| {
            FlashOptions { keep: keep.to_vec(), none: none.to_vec(), ..options(mib) }.rings(&layout())
        };
        assert_eq!(rings(&[], &[], 16), (vec![2_048], vec![Some(0); 4]));
        assert_eq!(rings(&[1], &[3], 16), (vec![923, 1_125], vec![Some(0), Some(1), Some(0), None]));
        assert_eq!(rings(&[0, 1, 2], &[], 16), (vec![256, 1_792], vec![Some(1), Some(1), Some(1), Some(0)]));
        assert_eq!(rings(&[0, 1], &[2, 3], 16), (vec![2_048], vec![Some(0), Some(0), None, None]));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_a_cure() {
        let refused = |options: FlashOptions| {
            let error = options.check(&layout()).unwrap_err();
            assert!(error.hint().is_some(), "{error}");
            error.to_string()
        };
        assert!(refused(FlashOptions { size: Bytes(500_000), ..options(1) }).contains("at least 512 KiB"));
        assert!(refused(FlashOptions { size: Bytes(1 << 60), ..options(1) }).contains("too large"));
        assert!(refused(FlashOptions { keep: vec![4], ..options(1) }).contains("schema 5"));
        assert!(refused(FlashOptions { keep: vec![1], none: vec![1], ..options(1) }).contains("both keeps schema 2"));
        assert!(refused(FlashOptions { none: vec![0, 1, 2, 3], ..options(1) }).contains("nothing"));
        options(1).check(&layout()).unwrap();
    }
}
