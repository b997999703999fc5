//! The change map: for every row block the last byte of its change number.
//!
//! A block carries its own address, key and checksum, but an old version of it is sound in itself. Only knowledge kept
//! elsewhere says that a later write was lost. One byte for each block is that knowledge: a stale block is found unless
//! it is a whole multiple of 256 changes old. The map is kept in memory and written with each checkpoint, to two files
//! in turn.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};

use crc_fast::CrcAlgorithm;
use files::How;

use crate::error::{FileContext, TargetError};
use model::plain::{self, Links};

/// Names of the two copies on disk.
pub const FILE_NAMES: [&str; 2] = ["changes-a.map", "changes-b.map"];

const MAGIC: u64 = u64::from_le_bytes(*b"PLIMMAP1");
const HEADER_BYTES: usize = 24;

/// The change map in memory. Shared by all threads.
pub struct ChangeMap(Vec<AtomicU8>);

impl std::fmt::Debug for ChangeMap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ChangeMap of {} blocks", self.0.len())
    }
}

impl ChangeMap {
    /// The map of data that were never changed.
    pub fn unchanged(row_blocks: u64) -> Self {
        Self((0..row_blocks).map(|_| AtomicU8::new(0)).collect())
    }

    /// Memory of a map for `row_blocks` blocks.
    pub const fn bytes(row_blocks: u64) -> u64 {
        row_blocks
    }

    /// Last byte of the change number of `block`; none for blocks that never change.
    #[inline]
    pub fn get(&self, block: u64) -> Option<u8> {
        self.0.get(block as usize).map(|low| low.load(Ordering::Relaxed))
    }

    /// Brings the byte of `block` near.
    #[inline]
    pub fn prefetch(&self, block: u64) {
        if let Some(low) = self.0.get(block as usize) {
            crate::io::prefetch(low);
        }
    }

    /// Notes the change number of `block`. The caller holds the block's latch.
    #[inline]
    pub fn set(&self, block: u64, changes: u64) {
        self.0[block as usize].store(changes as u8, Ordering::Relaxed);
    }

    /// Writes copy `copy` (0 or 1) durably. Changes made meanwhile may or may not be in it: the caller makes their redo
    /// durable before it lets the copy count.
    ///
    /// # Errors
    /// The system's error; the other copy is untouched.
    pub fn save(&self, directory: &Path, copy: u8) -> Result<(), TargetError> {
        let path = directory.join(FILE_NAMES[usize::from(copy)]);
        let mut file = files::open_or_make_own(&path, How::default()).of_file("open", &path)?;
        let mut digest = crc_fast::Digest::new(CrcAlgorithm::Crc64Nvme);
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(&MAGIC.to_le_bytes());
        header[8..16].copy_from_slice(&(self.0.len() as u64).to_le_bytes());
        file.write_all(&header).of_file("write", &path)?;
        let mut chunk = Vec::with_capacity(1 << 20);
        for part in self.0.chunks(1 << 20) {
            chunk.clear();
            chunk.extend(part.iter().map(|low| low.load(Ordering::Relaxed)));
            digest.update(&chunk);
            file.write_all(&chunk).of_file("write", &path)?;
        }
        header[16..].copy_from_slice(&digest.finalize().to_le_bytes());
        std::os::unix::fs::FileExt::write_all_at(&file, &header, 0).of_file("write", &path)?;
        file.sync_data().of_file("sync", &path)
    }

    /// Reads copy `copy` (0 or 1).
    ///
    /// # Errors
    /// [`TargetError::Damaged`] when it is not the map of `row_blocks` blocks, or the system's error.
    pub fn load(directory: &Path, copy: u8, row_blocks: u64) -> Result<Self, TargetError> {
        let path = directory.join(FILE_NAMES[usize::from(copy)]);
        let damaged = |what: &str| TargetError::Damaged { path: path.clone(), what: what.to_owned() };
        let mut file = plain::open(&path, Links::Refused).of_file("open", &path)?;
        let mut header = [0; HEADER_BYTES];
        file.read_exact(&mut header).map_err(|_| damaged("it is too short"))?;
        let word = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
        if word(0) != MAGIC || word(8) != row_blocks {
            return Err(damaged("it is not the change map of this data set"));
        }
        let mut bytes = vec![0; row_blocks as usize];
        file.read_exact(&mut bytes).map_err(|_| damaged("it is too short"))?;
        if crc_fast::checksum(CrcAlgorithm::Crc64Nvme, &bytes) != word(16) {
            return Err(damaged("its checksum is wrong"));
        }
        Ok(Self(bytes.into_iter().map(AtomicU8::new).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_map_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let map = ChangeMap::unchanged(3_000_000);
        map.set(2_999_999, 0x1ff);
        map.set(0, 7);
        map.save(dir.path(), 1).unwrap();
        let back = ChangeMap::load(dir.path(), 1, 3_000_000).unwrap();
        assert_eq!(
            (back.get(0), back.get(1), back.get(2_999_999), back.get(3_000_000)),
            (Some(7), Some(0), Some(255), None)
        );
    }

    #[test]
    fn a_damaged_map_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        ChangeMap::unchanged(100).save(dir.path(), 0).unwrap();
        assert!(ChangeMap::load(dir.path(), 0, 101).is_err(), "of another size");
        let path = dir.path().join(FILE_NAMES[0]);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[50] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert!(ChangeMap::load(dir.path(), 0, 100).is_err(), "a flipped bit");
        std::fs::write(&path, &bytes[..60]).unwrap();
        assert!(ChangeMap::load(dir.path(), 0, 100).is_err(), "truncated");
    }
}
