//! Building blocks and writing them, then the redo log files.

use std::io;
use std::sync::Arc;

use super::EngineRequest;
use crate::crew::{Job, Piece};
use crate::database::Filling;
use crate::embedded::layout::Layout;
use crate::error::TargetError;
use crate::io::{Direction, StorageFile};
use model::workload::{Rng, mix64};

/// Size of a write: large enough to run at a disk's sequential rate, small enough to stay in a processor's cache while
/// it is built. A whole number of blocks of any size, and data files are whole multiples of it but for the last.
const PIECE_BYTES: u64 = 1 << 20;
/// Keeps the filling's numbers apart from those that place rows, which have the same seed.
const FILLING_STREAMS: u64 = u64::from_le_bytes(*b"filling\0");

/// All writes of one part of a set-up.
pub(super) struct Loading<'a> {
    layout: &'a Layout,
    files: &'a [Arc<StorageFile>],
    filling: Filling,
    seed: u64,
    redo_files: u32,
    redo_file_bytes: u64,
    part: Part,
}

/// What is written together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The data files, in physical order.
    Data,
    /// The log files.
    Redo,
}

impl<'a> Loading<'a> {
    /// `files` are those of the part.
    pub(super) fn new(layout: &'a Layout, request: &EngineRequest, files: &'a [Arc<StorageFile>], part: Part) -> Self {
        let EngineRequest { redo_files, redo_file_bytes, .. } = *request;
        let seed = mix64(request.data.seed ^ FILLING_STREAMS);
        Self { layout, files, filling: request.data.filling, seed, redo_files, redo_file_bytes, part }
    }

    fn blocks_in_piece(&self) -> u64 {
        PIECE_BYTES / self.layout.shape().bytes() as u64
    }

    fn data_pieces(&self) -> u64 {
        self.layout.blocks().div_ceil(self.blocks_in_piece())
    }

    /// Log files are filled with zeros, so that a log write later on changes no file system metadata.
    fn redo_piece(&self, number: u64) -> Option<Piece> {
        let in_file = self.redo_file_bytes.div_ceil(PIECE_BYTES);
        let (index, offset) = (number / in_file, number % in_file * PIECE_BYTES);
        let bytes = PIECE_BYTES.min(self.redo_file_bytes - offset) as u32;
        let file = u32::try_from(index).ok()?;
        (index < u64::from(self.redo_files)).then_some(Piece { file, offset, bytes })
    }
}

impl Job for Loading<'_> {
    const DIRECTION: Direction = Direction::Write;
    const BUFFER_BYTES: usize = PIECE_BYTES as usize;

    fn piece(&self, number: u64) -> Option<Piece> {
        match self.part {
            Part::Redo => return self.redo_piece(number),
            Part::Data if number >= self.data_pieces() => return None,
            Part::Data => {}
        }
        let first = number * self.blocks_in_piece();
        let place = self.layout.place(first);
        let blocks = self.layout.contiguous(first, self.blocks_in_piece());
        let bytes = (blocks * self.layout.shape().bytes() as u64) as u32;
        Some(Piece { file: place.file, offset: place.offset, bytes })
    }

    fn prepare(&self, number: u64, buffer: &mut [u8]) {
        if self.part == Part::Redo {
            buffer.fill(0);
            return;
        }
        // One stream for each piece: the data are the same whichever thread builds them.
        let mut rng = Rng::new(self.seed, number);
        let first = number * self.blocks_in_piece();
        let shape = self.layout.shape();
        for (block, contents) in (first..).zip(buffer.chunks_exact_mut(shape.bytes())) {
            shape.build(contents, self.layout.identity(block), self.filling, &mut rng);
        }
    }

    fn finish(
        &self,
        piece: &Piece,
        _number: u64,
        _buffer: &mut [u8],
        moved: io::Result<u32>,
    ) -> Result<(), TargetError> {
        let source = match moved {
            Ok(moved) if moved == piece.bytes => return Ok(()),
            Ok(moved) => io::Error::new(io::ErrorKind::WriteZero, format!("only {moved} bytes were written")),
            Err(error) => error,
        };
        let path = self.files[piece.file as usize].path().to_owned();
        Err(TargetError::Request { action: "write", path, offset: piece.offset, bytes: piece.bytes, source })
    }
}
