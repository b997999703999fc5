//! The redo log: what was changed, written before the blocks are.
//!
//! Redo is one endless stream of records, and a *redo position* counts its bytes. The log writer cuts the stream into
//! writes, each with a header and a checksum and padded to whole sectors, and puts them one after the other into a
//! circular set of log files. Log files are numbered without end; number `n` lives in file `n modulo count`.

mod log;
mod reader;
mod record;
mod writer;

pub(super) use log::{Redo, Refusal};
pub(super) use reader::RedoReader;
pub(super) use record::{Change, NotARecord, Record, RecordReader, sizes};
use record::{write_change, write_commit};
pub(super) use writer::LogWriter;

use crc_fast::CrcAlgorithm;

/// Names of log files are this, a number, and [`FILE_SUFFIX`].
pub const FILE_PREFIX: &str = "redo-";
/// See [`FILE_PREFIX`].
pub const FILE_SUFFIX: &str = ".log";

/// Bytes of a write's header.
const HEADER_BYTES: usize = 40;
/// Largest write, header and padding included.
const MAX_WRITE_BYTES: usize = 1 << 20;
const MAGIC: u64 = u64::from_le_bytes(*b"PLIMREDO");

/// The log files of a data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogShape {
    /// How many files.
    pub(super) files: u32,
    /// Size of each, in bytes: a multiple of the sector.
    pub(super) file_bytes: u64,
    /// Unit of writes, in bytes.
    pub(super) sector_bytes: u64,
    /// Identity of the data set.
    pub(super) database: u32,
}

impl LogShape {
    /// Index of the file that log `number` lives in.
    pub(super) fn file_of(self, number: u64) -> u32 {
        (number % u64::from(self.files)) as u32
    }
}

/// Name of log file `index`.
pub(super) fn file_name(index: u32) -> String {
    format!("{FILE_PREFIX}{:02}{FILE_SUFFIX}", index + 1)
}

/// Header of one write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WriteHeader {
    database: u32,
    payload_bytes: u32,
    log_number: u64,
    position: u64,
}

impl WriteHeader {
    /// Fills in the header of `write`, whose payload is in place already.
    fn seal(self, write: &mut [u8]) {
        let mut put = |at: usize, word: u64| write[at..at + 8].copy_from_slice(&word.to_le_bytes());
        put(8, MAGIC);
        put(16, u64::from(self.database) | u64::from(self.payload_bytes) << 32);
        put(24, self.log_number);
        put(32, self.position);
        let end = HEADER_BYTES + self.payload_bytes as usize;
        let sum = crc_fast::checksum(CrcAlgorithm::Crc64Nvme, &write[8..end]);
        write[..8].copy_from_slice(&sum.to_le_bytes());
    }

    /// Reads the header at the start of `bytes`, unless there is none.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        if word(8)? != MAGIC {
            return None;
        }
        let (database, payload_bytes) = (word(16)? as u32, (word(16)? >> 32) as u32);
        let fits = payload_bytes > 0 && payload_bytes as usize <= MAX_WRITE_BYTES - HEADER_BYTES;
        fits.then_some(Self { database, payload_bytes, log_number: word(24)?, position: word(32)? })
    }

    /// Whether the write that begins `bytes` is whole.
    fn is_sound(self, bytes: &[u8]) -> bool {
        let end = HEADER_BYTES + self.payload_bytes as usize;
        bytes.len() >= end && bytes[..8] == crc_fast::checksum(CrcAlgorithm::Crc64Nvme, &bytes[8..end]).to_le_bytes()
    }

    /// Bytes of the write in its file.
    fn write_bytes(self, sector_bytes: u64) -> u64 {
        (HEADER_BYTES as u64 + u64::from(self.payload_bytes)).next_multiple_of(sector_bytes)
    }
}
