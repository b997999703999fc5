//! Reading every block and checking it.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::{BadBlock, LISTED_BAD_BLOCKS, is_loss};
use crate::crew::{Job, Piece};
use crate::embedded::block;
use crate::embedded::changes::ChangeMap;
use crate::embedded::destination::Files;
use crate::embedded::layout::Layout;
use crate::error::{FileContext, TargetError};
use crate::io::{Direction, Durability, StorageFile};

/// Size of a read. Data files are whole multiples of it but for the last.
const PIECE_BYTES: u64 = 2 << 20;

/// The data files, as far as they are there.
pub(super) struct DirectoryState {
    pub(super) files: Vec<Arc<StorageFile>>,
    /// What is wrong with whole files.
    pub(super) faults: Vec<String>,
    /// What can be read, by file.
    stretches: Vec<Stretch>,
    /// What cannot.
    gaps: Vec<Gap>,
}

/// Blocks that can be read, from the beginning of a file.
struct Stretch {
    first_block: u64,
    blocks: u64,
}

/// Blocks that are not there, at the end of a file or all of it.
struct Gap {
    path: PathBuf,
    first_block: u64,
    blocks: u64,
    fault: &'static str,
}

impl DirectoryState {
    /// Opens the data files and compares their lengths with the layout.
    pub(super) fn open(files: &Files, layout: &Layout) -> Result<Self, TargetError> {
        let block_bytes = layout.shape().bytes() as u64;
        let mut state = Self { files: Vec::new(), faults: Vec::new(), stretches: Vec::new(), gaps: Vec::new() };
        let mut first_block = 0;
        for file in &files.data {
            let (path, expected) = (file.path(), file.bytes);
            let blocks = expected / block_bytes;
            let (there, fault) = match file.store.open(&file.name, Durability::OnSync) {
                Ok(file) => {
                    let length = file.length().of_file("inspect", &path)?;
                    if length < expected {
                        let path = path.clone();
                        state.faults.push(TargetError::Truncated { path, length, expected }.to_string());
                    }
                    let there = blocks.min(length / block_bytes);
                    state.files.push(Arc::new(file));
                    state.stretches.push(Stretch { first_block, blocks: there });
                    (there, "the file ends before it (truncated)")
                }
                Err(error) if is_loss(&error) => {
                    let path = path.clone();
                    state.faults.push(TargetError::File { action: "open", path, source: error }.to_string());
                    (0, "its file cannot be opened")
                }
                Err(error) => return Err(error).of_file("open", &path),
            };
            if there < blocks {
                state.gaps.push(Gap { path, first_block: first_block + there, blocks: blocks - there, fault });
            }
            first_block += blocks;
        }
        Ok(state)
    }

    /// Files that are there, each with its first block and how many can be read.
    pub(super) fn readable(&self) -> impl Iterator<Item = (&Arc<StorageFile>, u64, u64)> {
        self.files.iter().zip(&self.stretches).map(|(file, stretch)| (file, stretch.first_block, stretch.blocks))
    }

    /// Bytes that are there to be read.
    pub(super) fn readable_bytes(&self, layout: &Layout) -> u64 {
        self.stretches.iter().map(|stretch| stretch.blocks).sum::<u64>() * layout.shape().bytes() as u64
    }
}

/// All reads of a verification.
pub(super) struct VerificationReads<'a> {
    layout: &'a Layout,
    changes: Option<&'a ChangeMap>,
    state: &'a DirectoryState,
    stop: &'a AtomicBool,
    bad: Mutex<Bad>,
}

#[derive(Default)]
struct Bad {
    count: u64,
    listed: Vec<BadBlock>,
}

impl<'a> VerificationReads<'a> {
    /// `changes` says what was written last, where that is known.
    pub(super) fn new(
        layout: &'a Layout,
        changes: Option<&'a ChangeMap>,
        state: &'a DirectoryState,
        stop: &'a AtomicBool,
    ) -> Self {
        let mut bad = Bad::default();
        for gap in &state.gaps {
            bad.count += gap.blocks;
            let left = LISTED_BAD_BLOCKS - bad.listed.len();
            bad.listed.extend((gap.first_block..gap.first_block + gap.blocks).take(left).map(|block| {
                let offset = layout.place(block).offset;
                BadBlock { path: gap.path.clone(), block, offset, fault: gap.fault.to_owned() }
            }));
        }
        Self { layout, changes, state, stop, bad: Mutex::new(bad) }
    }

    /// The first bad blocks, in order, and how many there are.
    pub(super) fn into_bad_blocks(self) -> (Vec<BadBlock>, u64) {
        let mut bad = self.bad.into_inner().unwrap_or_else(PoisonError::into_inner);
        bad.keep_first();
        (bad.listed, bad.count)
    }

    fn note(&self, file: u32, block: u64, fault: String) {
        let path = self.state.files[file as usize].path().to_owned();
        let offset = self.layout.place(block).offset;
        let mut bad = self.bad.lock().unwrap_or_else(PoisonError::into_inner);
        bad.count += 1;
        bad.listed.push(BadBlock { path, block, offset, fault });
        if bad.listed.len() >= 2 * LISTED_BAD_BLOCKS {
            bad.keep_first();
        }
    }

    fn blocks_in_piece(&self) -> u64 {
        PIECE_BYTES / self.layout.shape().bytes() as u64
    }

    fn first_block(&self, piece: &Piece) -> u64 {
        let in_file = piece.offset / self.layout.shape().bytes() as u64;
        self.state.stretches[piece.file as usize].first_block + in_file
    }

    /// A block of which another copy is sound is not bad.
    fn check(&self, file: u32, block: u64, contents: &mut [u8]) -> Result<(), TargetError> {
        let (expected, identity) = (self.changes.and_then(|changes| changes.get(block)), self.layout.identity(block));
        let Err(fault) = block::check(contents, identity, expected) else { return Ok(()) };
        let (file_of, offset) = (&self.state.files[file as usize], self.layout.place(block).offset);
        let is_sound = |copy: &[u8]| block::check(copy, identity, expected).is_ok();
        if !file_of.read_sound(contents, offset, &is_sound).of_file("read", file_of.path())? {
            self.note(file, block, fault.to_string());
        }
        Ok(())
    }
}

impl Bad {
    /// Pieces finish in no strict order, so more than needed are gathered and the first are kept.
    fn keep_first(&mut self) {
        self.listed.sort_unstable_by_key(|bad| bad.block);
        self.listed.truncate(LISTED_BAD_BLOCKS);
    }
}

impl Job for VerificationReads<'_> {
    const DIRECTION: Direction = Direction::Read;
    const BUFFER_BYTES: usize = PIECE_BYTES as usize;

    fn piece(&self, number: u64) -> Option<Piece> {
        let mut number = number;
        for (file, stretch) in self.state.stretches.iter().enumerate() {
            let pieces = stretch.blocks.div_ceil(self.blocks_in_piece());
            if number < pieces {
                let block_bytes = self.layout.shape().bytes() as u64;
                let first = number * self.blocks_in_piece();
                let blocks = self.blocks_in_piece().min(stretch.blocks - first);
                let (offset, bytes) = (first * block_bytes, (blocks * block_bytes) as u32);
                return Some(Piece { file: file as u32, offset, bytes });
            }
            number -= pieces;
        }
        None
    }

    fn prepare(&self, _number: u64, _buffer: &mut [u8]) {}

    fn finish(
        &self,
        piece: &Piece,
        _number: u64,
        buffer: &mut [u8],
        moved: io::Result<u32>,
    ) -> Result<(), TargetError> {
        let block_bytes = self.layout.shape().bytes();
        let whole = matches!(moved, Ok(moved) if moved == piece.bytes);
        let file = &self.state.files[piece.file as usize];
        for (index, contents) in buffer.chunks_exact_mut(block_bytes).enumerate() {
            let block = self.first_block(piece) + index as u64;
            if !whole {
                // The request failed as a whole or in part: find out which of its blocks can be read.
                if self.stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                let offset = piece.offset + (index * block_bytes) as u64;
                match file.read_exact_at(contents, offset) {
                    Ok(()) => {}
                    Err(error) if is_loss(&error) => {
                        self.note(piece.file, block, format!("it cannot be read: {error}"));
                        continue;
                    }
                    Err(source) => {
                        let (path, bytes) = (file.path().to_owned(), block_bytes as u32);
                        return Err(TargetError::Request { action: "read", path, offset, bytes, source });
                    }
                }
            }
            self.check(piece.file, block, contents)?;
        }
        Ok(())
    }
}
