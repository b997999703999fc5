//! One block: its header, its row, and the checks on it.
//!
//! ```text
//! offset  bytes  field
//!      0      8  checksum: CRC-64/NVME of everything after it
//!      8      4  magic
//!     12      4  identity of the data set
//!     16      8  address: number of the block in the data set
//!     24      8  key of its row in the schema
//!     32      4  schema
//!     36      4  kind: row or scan
//!     40      8  change number: how often the row was changed
//!     48      8  redo position after the last change
//!     56      8  session of the last change
//!     64         19 columns c2..c20, then filler up to the end of the block
//! ```
//!
//! All integers are little-endian. The checksum is brought up to date when a block leaves the cache.

use std::fmt;

use crc_fast::CrcAlgorithm;

use crate::database::Filling;
use crate::io::Arena;
use model::workload::Rng;

/// Bytes before the first column.
pub const HEADER_BYTES: usize = 64;
/// Columns of the row besides its key: SLOB's c2 to c20.
pub const COLUMNS: usize = 19;
/// Width of a column in blocks that have room for it.
const FULL_COLUMN_BYTES: usize = 128;
const MAGIC: u32 = u32::from_le_bytes(*b"PLMB");

const CHECKSUM: u64 = 0;
const IDENTITY: u64 = 8;
const ADDRESS: u64 = 16;
const KEY: u64 = 24;
const OWNER: u64 = 32;
const CHANGES: u64 = 40;
const REDO: u64 = 48;
const SESSION: u64 = 56;

/// What a block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum BlockKind {
    /// A row that operations read and change.
    Row = 1,
    /// A part of the table that scans read.
    Scan = 2,
}

/// What a block must say about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockIdentity {
    /// Data set.
    pub database: u32,
    /// Number of the block in the data set.
    pub address: u64,
    /// Row key in the schema; for a scan block its position in the scan table.
    pub key: u64,
    /// Schema, from 0.
    pub schema: u32,
    /// Row or scan.
    pub kind: BlockKind,
}

impl BlockIdentity {
    fn magic_and_database(self) -> u64 {
        u64::from(MAGIC) | u64::from(self.database) << 32
    }

    fn owner(self) -> u64 {
        u64::from(self.schema) | (self.kind as u64) << 32
    }
}

/// What is wrong with a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockFault {
    /// Its contents do not match its checksum: a flipped bit or a torn write.
    Checksum {
        /// As stored.
        stored: u64,
        /// Of the contents.
        computed: u64,
    },
    /// It is no block of ours at all.
    NotABlock,
    /// It belongs to another data set.
    OtherDatabase,
    /// It is a sound block, but not the one that belongs there.
    Misplaced {
        /// Number that it claims.
        address: u64,
    },
    /// Its row has another key or owner than belongs there.
    WrongRow {
        /// Key that it claims.
        key: u64,
        /// Schema that it claims.
        schema: u32,
    },
    /// It is an old version: a later write was lost.
    Stale {
        /// Its change number.
        changes: u64,
        /// Last eight bits of the change number that was written last.
        expected_low: u8,
    },
}

impl fmt::Display for BlockFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Checksum { stored, computed } => {
                write!(f, "checksum is {computed:016x} where {stored:016x} is stored (a flipped bit or a torn write)")
            }
            Self::NotABlock => f.write_str("it does not begin as a block does (overwritten or never written)"),
            Self::OtherDatabase => f.write_str("it belongs to another data set"),
            Self::Misplaced { address } => write!(f, "it is block {address} (written or read at the wrong place)"),
            Self::WrongRow { key, schema } => write!(f, "its row has key {key} of schema {}", schema + 1),
            Self::Stale { changes, expected_low } => write!(
                f,
                "it is stale: its change number is {changes}, the last one written ends in {expected_low:#04x} \
                 (a write was lost)"
            ),
        }
    }
}

/// Where things are in a block of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockShape {
    bytes: usize,
    column_bytes: usize,
}

impl BlockShape {
    /// The shape of blocks of `bytes` bytes: a power of two from 2 to 32 KiB.
    pub fn new(bytes: usize) -> Option<Self> {
        let valid = bytes.is_power_of_two() && (2 << 10..=32 << 10).contains(&bytes);
        let column_bytes = FULL_COLUMN_BYTES.min((bytes.saturating_sub(HEADER_BYTES) / COLUMNS) & !7);
        valid.then_some(Self { bytes, column_bytes })
    }

    /// Size of a block.
    pub const fn bytes(self) -> usize {
        self.bytes
    }

    /// Size of a column: SLOB's 128 bytes, less in blocks that cannot hold 19 of them.
    pub const fn column_bytes(self) -> usize {
        self.column_bytes
    }

    /// Offset of column `index`, from 0.
    pub const fn column_offset(self, index: usize) -> usize {
        HEADER_BYTES + index * self.column_bytes
    }

    /// Builds a fresh block in `block`, checksum included.
    pub fn build(self, block: &mut [u8], identity: BlockIdentity, filling: Filling, rng: &mut Rng) {
        assert_eq!(block.len(), self.bytes, "a block has the shape's size");
        match filling {
            Filling::Incompressible => rng.fill(&mut block[HEADER_BYTES..]),
            Filling::Compressible => fill_with_text(&mut block[HEADER_BYTES..]),
        }
        let mut put = |at: u64, word: u64| block[at as usize..at as usize + 8].copy_from_slice(&word.to_le_bytes());
        put(IDENTITY, identity.magic_and_database());
        put(ADDRESS, identity.address);
        put(KEY, identity.key);
        put(OWNER, identity.owner());
        put(CHANGES, 0);
        put(REDO, 0);
        put(SESSION, 0);
        seal(block);
    }
}

fn fill_with_text(bytes: &mut [u8]) {
    let (words, tail) = bytes.as_chunks_mut::<8>();
    words.fill(*b"PLIMSOLL");
    tail.copy_from_slice(&b"PLIMSOLL"[..tail.len()]);
}

fn checksum(block: &[u8]) -> u64 {
    crc_fast::checksum(CrcAlgorithm::Crc64Nvme, &block[IDENTITY as usize..])
}

fn word(block: &[u8], at: u64) -> u64 {
    let at = at as usize;
    u64::from_le_bytes(block[at..at + 8].try_into().expect("eight bytes of a block"))
}

/// Brings the checksum of a block up to date.
pub fn seal(block: &mut [u8]) {
    let sum = checksum(block);
    block[CHECKSUM as usize..CHECKSUM as usize + 8].copy_from_slice(&sum.to_le_bytes());
}

/// Change number of a block.
pub fn changes(block: &[u8]) -> u64 {
    word(block, CHANGES)
}

/// Checks everything that a block says about itself. `expected_low` is the last byte of the change number that was
/// written last, where it is known.
///
/// # Errors
/// The first fault found, the most telling first.
pub fn check(block: &[u8], identity: BlockIdentity, expected_low: Option<u8>) -> Result<(), BlockFault> {
    let (stored, computed) = (word(block, CHECKSUM), checksum(block));
    let begin = word(block, IDENTITY);
    if begin as u32 != MAGIC {
        return Err(BlockFault::NotABlock);
    }
    if stored != computed {
        return Err(BlockFault::Checksum { stored, computed });
    }
    if begin != identity.magic_and_database() {
        return Err(BlockFault::OtherDatabase);
    }
    if word(block, ADDRESS) != identity.address {
        return Err(BlockFault::Misplaced { address: word(block, ADDRESS) });
    }
    if word(block, KEY) != identity.key || word(block, OWNER) != identity.owner() {
        return Err(BlockFault::WrongRow { key: word(block, KEY), schema: word(block, OWNER) as u32 });
    }
    match expected_low {
        Some(expected_low) if changes(block) as u8 != expected_low => {
            Err(BlockFault::Stale { changes: changes(block), expected_low })
        }
        _ => Ok(()),
    }
}

/// Whether the header of the cached block at `at` says that it is the block and row asked for: the touch of a logical
/// read. All four words lie in one cache line.
#[inline]
pub fn is_row_at(arena: &Arena, at: u64, address: u64, key: u64) -> bool {
    arena.load(at + ADDRESS) == address && arena.load(at + KEY) == key
}

/// Address that the cached block at `at` claims.
pub fn cached_address(arena: &Arena, at: u64) -> u64 {
    arena.load(at + ADDRESS)
}

/// Change number of the cached block at `at`.
#[inline]
pub fn cached_changes(arena: &Arena, at: u64) -> u64 {
    arena.load(at + CHANGES)
}

/// Notes a change in the header of the cached block at `at`. The caller holds the block's latch.
#[inline]
pub fn note_change(arena: &Arena, at: u64, changes: u64, redo: u64, session: u32) {
    arena.store(at + CHANGES, changes);
    arena.store(at + REDO, redo);
    arena.store(at + SESSION, u64::from(session));
}

/// The same on a block in ordinary memory, for recovery.
pub fn note_change_in(block: &mut [u8], changes: u64, redo: u64, session: u32) {
    for (at, value) in [(CHANGES, changes), (REDO, redo), (SESSION, u64::from(session))] {
        block[at as usize..at as usize + 8].copy_from_slice(&value.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::workload::Rng;
    use proptest::prelude::*;

    const SAMPLE: BlockIdentity =
        BlockIdentity { database: 7, address: 1234, key: 99, schema: 3, kind: BlockKind::Row };

    fn built(bytes: usize, filling: Filling) -> Vec<u8> {
        let mut block = vec![0; bytes];
        BlockShape::new(bytes).unwrap().build(&mut block, SAMPLE, filling, &mut Rng::new(1, 2));
        block
    }

    #[test]
    fn sizes_from_2_to_32_kib_are_blocks_and_hold_19_columns() {
        for kib in [2, 4, 8, 16, 32] {
            let shape = BlockShape::new(kib << 10).unwrap();
            assert!(shape.column_offset(COLUMNS) <= shape.bytes());
            assert_eq!(shape.column_bytes() % 8, 0);
            assert_eq!(shape.column_bytes() == 128, kib > 2, "{kib} KiB");
        }
        for bytes in [0, 1024, 3 << 10, 12 << 10, 64 << 10] {
            assert_eq!(BlockShape::new(bytes), None);
        }
    }

    #[test]
    fn a_built_block_is_sound_in_both_fillings() {
        for filling in [Filling::Incompressible, Filling::Compressible] {
            assert_eq!(check(&built(8192, filling), SAMPLE, Some(0)), Ok(()));
        }
    }

    #[test]
    fn each_wrong_claim_is_named() {
        let block = built(8192, Filling::Incompressible);
        let expect = |identity, fault| assert_eq!(check(&block, identity, Some(0)), Err(fault));
        expect(BlockIdentity { database: 8, ..SAMPLE }, BlockFault::OtherDatabase);
        expect(BlockIdentity { address: 5, ..SAMPLE }, BlockFault::Misplaced { address: 1234 });
        expect(BlockIdentity { key: 5, ..SAMPLE }, BlockFault::WrongRow { key: 99, schema: 3 });
        expect(BlockIdentity { kind: BlockKind::Scan, ..SAMPLE }, BlockFault::WrongRow { key: 99, schema: 3 });
        assert_eq!(check(&vec![0; 8192], SAMPLE, None), Err(BlockFault::NotABlock));
    }

    #[test]
    fn an_older_version_is_stale() {
        let old = built(8192, Filling::Incompressible);
        let fault = check(&old, SAMPLE, Some(1)).unwrap_err();
        assert_eq!(fault, BlockFault::Stale { changes: 0, expected_low: 1 });
    }

    #[test]
    fn incompressible_filling_has_no_repeated_word() {
        let block = built(8192, Filling::Incompressible);
        let mut words: Vec<&[u8]> = block[HEADER_BYTES..].chunks(8).collect();
        let all = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), all);
    }

    proptest! {
        #[test]
        fn any_flipped_bit_is_found(bit in 0usize..8192 * 8) {
            let mut block = built(8192, Filling::Incompressible);
            block[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(check(&block, SAMPLE, Some(0)).is_err());
        }

        #[test]
        fn a_torn_write_is_found(sectors in 1usize..16) {
            let mut block = built(8192, Filling::Incompressible);
            let mut newer = block.clone();
            note_change_in(&mut newer, 1, 512, 3);
            newer[HEADER_BYTES..].fill(9);
            seal(&mut newer);
            block[..sectors * 512].copy_from_slice(&newer[..sectors * 512]);
            prop_assert!(check(&block, SAMPLE, None).is_err());
        }
    }
}
