//! What stands in each sector that we write, so that a read can tell whether it got the right data.
//!
//! Each sector of 512 bytes begins with a stamp of 32 bytes: four little-endian words. Behind it stands filling that
//! does not compress. Since the stamp holds the sector's own place, no two sectors are alike, and storage that removes
//! duplicates finds none, although a buffer's filling may be written many times.
//!
//! | word | holds |
//! | --- | --- |
//! | 0 | `PLS`, what the check word covers in one byte (see [`Cover`]), the file's number in four |
//! | 1 | offset of the sector in its file, in bytes |
//! | 2 | generation of the write |
//! | 3 | check word over the other three, and over the filling where it covers that |

use std::fmt;

use crc_fast::CrcAlgorithm;

use model::workload::{Rng, mix64};

/// Bytes that carry a stamp each: no device writes less at once.
pub const SECTOR_BYTES: usize = 512;
const WORD: usize = 8;
const STAMPED: u32 = u32::from_le_bytes(*b"PLS\x01");
const SEALED: u32 = u32::from_le_bytes(*b"PLS\x02");
const STAMP_BYTES: usize = 4 * WORD;
/// Keeps the check word of a sector of zeroes from being zero.
const SALT: u64 = 0x5f0e_83d1_c2b7_496b;

/// What the check word of a sector covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cover {
    /// The stamp: some nanoseconds a sector, so that load which nobody checks is not slowed down.
    Stamp,
    /// The whole sector: a changed bit anywhere is found.
    Sector,
}

/// Number of a file or device, drawn when its data were laid out, by which its sectors are known from those of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId(u32);

impl FileId {
    /// A number from a seed: different files need different seeds.
    pub const fn new(seed: u64) -> Self {
        Self((mix64(seed ^ SALT) >> 32) as u32)
    }

    /// The number that the first sector of `sectors` carries; none if that has no sound stamp.
    pub fn found_in(sectors: &[u8]) -> Option<Self> {
        let sector = sectors.get(..SECTOR_BYTES)?;
        let stamp = Stamp::read(sector);
        (stamp.cover().is_some() && stamp.is_sound(sector)).then(|| stamp.id())
    }
}

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// What is wrong with data that were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StampFault {
    /// A sector of zeroes.
    #[error("the sector at offset {offset} was never written: it holds zeroes")]
    NeverWritten {
        /// Where it was read, in bytes.
        offset: u64,
    },
    /// Data that Plimsoll did not write, or whose stamp is damaged beyond recognition.
    #[error("the sector at offset {offset} has no stamp of Plimsoll")]
    Unstamped {
        /// Where it was read, in bytes.
        offset: u64,
    },
    /// The sector contradicts its own check word.
    #[error("the sector at offset {offset} is corrupt: its check word does not fit what it holds")]
    Corrupt {
        /// Where it was read, in bytes.
        offset: u64,
    },
    /// Data of another file.
    #[error("the sector at offset {offset} belongs to file {found}, not to this one, {wanted}")]
    Foreign {
        /// Where it was read, in bytes.
        offset: u64,
        /// The file that it carries.
        found: FileId,
        /// This file.
        wanted: FileId,
    },
    /// Data of another place in this file.
    #[error("the sector at offset {offset} holds the data of offset {found}")]
    Misplaced {
        /// Where it was read, in bytes.
        offset: u64,
        /// The place that it carries, in bytes.
        found: u64,
    },
    /// Sectors of two writes side by side.
    #[error("the write is torn: generation {first} before offset {offset}, generation {second} from there on")]
    Torn {
        /// Where the second write's data begin, in bytes.
        offset: u64,
        /// Generation of the sectors before.
        first: u64,
        /// Generation of the sector at `offset`.
        second: u64,
    },
}

struct Stamp([u64; 4]);

impl Stamp {
    #[inline]
    fn new(offset: u64, generation: u64, id: FileId, cover: Cover, sector: &[u8]) -> Self {
        let (mark, sum) = match cover {
            Cover::Stamp => (STAMPED, 0),
            Cover::Sector => (SEALED, sum_of_filling(sector)),
        };
        let head = u64::from(mark) | u64::from(id.0) << 32;
        Self([head, offset, generation, check_word(head, offset, generation) ^ sum])
    }

    #[inline]
    fn read(sector: &[u8]) -> Self {
        let (words, _) = sector.as_chunks::<WORD>();
        Self(std::array::from_fn(|word| u64::from_le_bytes(words[word])))
    }

    #[inline]
    fn write(&self, sector: &mut [u8]) {
        let (places, _) = sector.as_chunks_mut::<WORD>();
        for (place, word) in places.iter_mut().zip(self.0) {
            *place = word.to_le_bytes();
        }
    }

    /// What its check word covers; none if this is no stamp.
    #[inline]
    fn cover(&self) -> Option<Cover> {
        match self.0[0] as u32 {
            STAMPED => Some(Cover::Stamp),
            SEALED => Some(Cover::Sector),
            _ => None,
        }
    }

    fn is_sound(&self, sector: &[u8]) -> bool {
        let Self([_, offset, generation, check]) = *self;
        let wanted = self.cover().map(|cover| Self::new(offset, generation, self.id(), cover, sector));
        wanted.is_some_and(|wanted| wanted.0[3] == check)
    }

    fn id(&self) -> FileId {
        FileId((self.0[0] >> 32) as u32)
    }
}

#[inline]
fn check_word(head: u64, offset: u64, generation: u64) -> u64 {
    mix64(mix64(head ^ SALT) ^ mix64(offset ^ SALT.rotate_left(23)) ^ mix64(generation ^ SALT.rotate_left(46)))
}

/// CRC-64/NVME of what stands behind the stamp.
#[inline]
fn sum_of_filling(sector: &[u8]) -> u64 {
    crc_fast::checksum(CrcAlgorithm::Crc64Nvme, &sector[STAMP_BYTES..])
}

/// Fills a buffer with data that do not compress, to be stamped before each write. `stream` distinguishes buffers.
pub fn fill(buffer: &mut [u8], seed: u64, stream: u64) {
    Rng::new(seed, stream).fill(buffer);
}

/// Stamps every sector of `buffer`, which will be written at `offset` bytes of the file `id`. Leaves the filling as it
/// is.
///
/// # Panics
/// When buffer or offset are no whole sectors: a bug in the caller.
#[inline]
pub fn write_stamps(buffer: &mut [u8], offset: u64, generation: u64, id: FileId, cover: Cover) {
    let (sectors, rest) = buffer.as_chunks_mut::<SECTOR_BYTES>();
    assert!(rest.is_empty() && offset.is_multiple_of(SECTOR_BYTES as u64), "a stamped range is whole sectors");
    for (index, sector) in sectors.iter_mut().enumerate() {
        Stamp::new(offset + (index * SECTOR_BYTES) as u64, generation, id, cover, sector).write(sector);
    }
}

/// Checks every sector of `buffer`, which was read at `offset` bytes of the file `id` and was written by one write.
/// Gives that write's generation.
///
/// # Errors
/// What is wrong with the first sector that is not as it should be.
///
/// # Panics
/// When `buffer` holds no sector or part of one: a bug in the caller.
#[inline]
pub fn check(buffer: &[u8], offset: u64, id: FileId) -> Result<u64, StampFault> {
    let (sectors, rest) = buffer.as_chunks::<SECTOR_BYTES>();
    assert!(rest.is_empty() && !sectors.is_empty(), "a stamped range is whole sectors");
    let first = Stamp::read(&sectors[0]).0[2];
    for (index, sector) in sectors.iter().enumerate() {
        let offset = offset + (index * SECTOR_BYTES) as u64;
        let found = Stamp::read(sector);
        let second = found.0[2];
        // Comparing words rather than arrays keeps the usual case in registers.
        let cover = found.cover().unwrap_or(Cover::Stamp);
        let [head, place, generation, check] = Stamp::new(offset, first, id, cover, sector).0;
        let differs = (found.0[0] ^ head) | (found.0[1] ^ place) | (second ^ generation) | (found.0[3] ^ check);
        if differs != 0 {
            return Err(fault(sector, offset, id).unwrap_or(StampFault::Torn { offset, first, second }));
        }
    }
    Ok(first)
}

/// What is wrong with one sector, by itself.
#[cold]
fn fault(sector: &[u8], offset: u64, wanted: FileId) -> Option<StampFault> {
    let stamp = Stamp::read(sector);
    let fault = match () {
        () if sector.iter().all(|byte| *byte == 0) => StampFault::NeverWritten { offset },
        () if stamp.cover().is_none() => StampFault::Unstamped { offset },
        () if !stamp.is_sound(sector) => StampFault::Corrupt { offset },
        () if stamp.id() != wanted => StampFault::Foreign { offset, found: stamp.id(), wanted },
        () if stamp.0[1] != offset => StampFault::Misplaced { offset, found: stamp.0[1] },
        () => return None,
    };
    Some(fault)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    const ID: FileId = FileId::new(7);

    fn stamped(offset: u64, generation: u64) -> Vec<u8> {
        let mut buffer = vec![0; 8192];
        fill(&mut buffer, 1, offset);
        write_stamps(&mut buffer, offset, generation, ID, Cover::Stamp);
        buffer
    }

    fn sealed(offset: u64, generation: u64) -> Vec<u8> {
        let mut buffer = stamped(offset, generation);
        write_stamps(&mut buffer, offset, generation, ID, Cover::Sector);
        buffer
    }

    proptest! {
        #[test]
        fn what_was_written_is_found_sound(sector in 0..1u64 << 50, generation: u64) {
            let offset = sector * SECTOR_BYTES as u64;
            prop_assert_eq!(check(&stamped(offset, generation), offset, ID), Ok(generation));
            prop_assert_eq!(check(&sealed(offset, generation), offset, ID), Ok(generation));
        }

        #[test]
        fn no_changed_bit_of_a_stamp_passes(bit in 0..256usize, sector in 0..16usize) {
            let mut buffer = stamped(1 << 20, 9);
            buffer[sector * SECTOR_BYTES + bit / 8] ^= 1 << (bit % 8);
            prop_assert!(check(&buffer, 1 << 20, ID).is_err());
        }
    }

    proptest! {
        #[test]
        fn no_changed_bit_of_a_sealed_sector_passes(bit in 0..8 * 8192usize) {
            let mut buffer = sealed(1 << 20, 9);
            buffer[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(check(&buffer, 1 << 20, ID).is_err());
        }
    }

    #[test]
    fn each_fault_has_its_name() {
        let offset = 1 << 20;
        let third = offset + 1024;
        let with = |change: &dyn Fn(&mut [u8])| {
            let mut buffer = stamped(offset, 5);
            change(&mut buffer[1024..1536]);
            check(&buffer, offset, ID).unwrap_err()
        };
        assert_eq!(with(&|sector| sector.fill(0)), StampFault::NeverWritten { offset: third });
        assert_eq!(with(&|sector| sector.fill(0xdb)), StampFault::Unstamped { offset: third });
        assert_eq!(with(&|sector| sector[16] ^= 1), StampFault::Corrupt { offset: third });
        let other = FileId::new(8);
        assert_eq!(
            with(&|sector| write_stamps(sector, third, 5, other, Cover::Stamp)),
            StampFault::Foreign { offset: third, found: other, wanted: ID }
        );
        assert_eq!(
            with(&|sector| write_stamps(sector, 512, 5, ID, Cover::Stamp)),
            StampFault::Misplaced { offset: third, found: 512 }
        );
        assert_eq!(
            with(&|sector| write_stamps(sector, third, 4, ID, Cover::Stamp)),
            StampFault::Torn { offset: third, first: 5, second: 4 }
        );
    }

    #[test]
    fn the_first_sector_is_judged_like_the_others() {
        let mut buffer = stamped(4096, 5);
        buffer[..512].fill(0);
        assert_eq!(check(&buffer, 4096, ID), Err(StampFault::NeverWritten { offset: 4096 }));
        assert_eq!(check(&stamped(8192, 5), 4096, ID), Err(StampFault::Misplaced { offset: 4096, found: 8192 }));
    }

    #[test]
    fn stamping_keeps_the_filling_and_makes_no_two_sectors_alike() {
        let (mut one, mut two) = (vec![0; 8192], vec![0; 8192]);
        fill(&mut one, 1, 0);
        two.copy_from_slice(&one);
        write_stamps(&mut one, 0, 3, ID, Cover::Stamp);
        write_stamps(&mut two, 8192, 3, ID, Cover::Stamp);
        assert_eq!(one[32..512], two[32..512]);
        let sectors: HashSet<&[u8]> = one.chunks(SECTOR_BYTES).chain(two.chunks(SECTOR_BYTES)).collect();
        assert_eq!(sectors.len(), 32);
    }

    #[test]
    fn a_files_number_is_read_from_its_first_sector() {
        assert_eq!(FileId::found_in(&stamped(0, 1)), Some(ID));
        assert_eq!(FileId::found_in(&[0; 512]), None);
        assert_eq!(FileId::found_in(&[]), None);
        assert_ne!(FileId::new(1), FileId::new(2));
    }
}
