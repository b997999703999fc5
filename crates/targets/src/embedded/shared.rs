//! What sessions, database writers and the log writer share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::block::{self, BlockFault, BlockIdentity};
use super::cache::Cache;
use super::changes::ChangeMap;
use super::destination::Files;
use super::flash::Flash;
use super::layout::Layout;
use super::ledger::Ledger;
use super::redo::Redo;
use super::reuse::Reuse;
use super::wakers::{FAILURE, Wakers};
use super::writers::Writers;
use crate::error::{FileContext, TargetError};
use crate::io::{Durability, IoEngine, StorageFile};
use crate::watch;
use measure::{Clock, SharedRecorder};

/// The parts of an open engine.
pub(super) struct Shared {
    pub(super) layout: Layout,
    pub(super) data_files: Vec<Arc<StorageFile>>,
    pub(super) cache: Cache,
    /// The second level of the cache, if there is one.
    pub(super) flash: Option<Flash>,
    pub(super) changes: ChangeMap,
    /// How soon sessions touch blocks again.
    pub(super) reuse: Reuse,
    pub(super) redo: Redo,
    pub(super) ledger: Ledger,
    /// For every session, how many commits it has made, durable or not.
    pub(super) commits: Vec<AtomicU64>,
    pub(super) writers: Writers,
    pub(super) wakers: Wakers,
    /// What the engine's own writers record.
    pub(super) background: SharedRecorder,
    /// Parts of the arena behind the buffers that scans read into and that are free just now.
    pub(super) scan_memory: Mutex<Vec<u64>>,
    pub(super) io_engine: IoEngine,
    pub(super) clock: Clock,
    failed: AtomicBool,
    failure: Mutex<Option<TargetError>>,
}

impl Shared {
    #[expect(clippy::too_many_arguments, reason = "called once; a builder would only repeat the fields")]
    pub(super) fn new(
        layout: Layout,
        data_files: Vec<Arc<StorageFile>>,
        cache: Cache,
        flash: Option<Flash>,
        changes: ChangeMap,
        redo: Redo,
        ledger: Ledger,
        commits: &[u64],
        writers: Writers,
        scan_memory: Vec<u64>,
        io_engine: IoEngine,
        clock: Clock,
    ) -> Self {
        Self {
            reuse: Reuse::new(layout.row_blocks()),
            layout,
            data_files,
            cache,
            flash,
            changes,
            redo,
            ledger,
            commits: commits.iter().map(|made| AtomicU64::new(*made)).collect(),
            writers,
            wakers: Wakers::default(),
            background: SharedRecorder::default(),
            scan_memory: Mutex::new(scan_memory),
            io_engine,
            clock,
            failed: AtomicBool::new(false),
            failure: Mutex::new(None),
        }
    }

    /// The files that sessions read: those of data, and behind them that of the flash cache.
    pub(super) fn files_to_read(&self) -> Vec<Arc<StorageFile>> {
        self.data_files.iter().chain(self.flash.as_ref().map(Flash::storage)).map(Arc::clone).collect()
    }

    /// Stops the engine: the first failure is the one that counts.
    pub(super) fn fail(&self, error: TargetError) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.failed.store(true, Ordering::SeqCst);
        self.wakers.ring(FAILURE | !0);
    }

    /// Whether the engine has stopped.
    #[inline]
    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// The failure, once.
    pub(super) fn take_failure(&self) -> Option<TargetError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The error for a bad block.
    pub(super) fn bad_block(&self, block: u64, fault: BlockFault) -> TargetError {
        let place = self.layout.place(block);
        let path = self.data_files[place.file as usize].path().to_owned();
        TargetError::BadBlock { path, block, offset: place.offset, fault }
    }

    /// A block that was read is bad: takes it from another copy where the storage has one that is sound, which is then written
    /// over the bad one. Blocks.
    ///
    /// # Errors
    /// [`TargetError::BadBlock`] where no copy is sound.
    #[cold]
    pub(super) fn read_sound_copy(
        &self,
        identity: BlockIdentity,
        expected: Option<u8>,
        fault: BlockFault,
        contents: &mut [u8],
    ) -> Result<(), TargetError> {
        let place = self.layout.place(identity.address);
        let is_sound = |copy: &[u8]| block::check(copy, identity, expected).is_ok();
        match self.data_files[place.file as usize].read_sound(contents, place.offset, &is_sound) {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(self.bad_block(identity.address, fault)),
        }
    }

    /// The error for a data request that failed, or came back short.
    pub(super) fn bad_request(
        &self,
        action: &'static str,
        block: u64,
        bytes: u32,
        result: std::io::Result<u32>,
    ) -> TargetError {
        let place = self.layout.place(block);
        let file = &self.data_files[place.file as usize];
        let expected = self.layout.file_bytes(place.file);
        let path = file.path().to_owned();
        // Why storage is of no use says more than which request met that.
        if let Err(known) = watch::known(file) {
            return known;
        }
        match (result, file.length()) {
            (_, Ok(length)) if length < expected => TargetError::Truncated { path, length, expected },
            (Err(source), _) => TargetError::Request { action, path, offset: place.offset, bytes, source },
            (Ok(_), _) => {
                let source = std::io::ErrorKind::UnexpectedEof.into();
                TargetError::Request { action, path, offset: place.offset, bytes, source }
            }
        }
    }

    /// Finds data files that were deleted or cut.
    pub(super) fn check_files(&self) -> Result<(), TargetError> {
        // Virtual ones are watched: an answer may take long.
        for (index, file) in self.data_files.iter().enumerate().filter(|(_, file)| file.virtual_file().is_none()) {
            let path = file.path().to_owned();
            if !file.is_linked().of_file("inspect", file.path())? {
                return Err(TargetError::Vanished { path });
            }
            let (length, expected) =
                (file.length().of_file("inspect", file.path())?, self.layout.file_bytes(index as u32));
            if length < expected {
                return Err(TargetError::Truncated { path, length, expected });
            }
        }
        Ok(())
    }
}

/// Opens the data files of a layout.
///
/// # Errors
/// When one is missing or too short, or the system's error.
pub(super) fn open_data_files(files: &Files) -> Result<Vec<Arc<StorageFile>>, TargetError> {
    files.data.iter().map(|file| file.open(Durability::OnSync).map(Arc::new)).collect()
}
