//! A commit as a block in a file: sectors, each of which says by itself whose it is.
//!
//! | bytes of a sector | what |
//! | --- | --- |
//! | 0 to 7 | `PLIMDUR1` |
//! | 8 to 15 | number of the run |
//! | 16 to 23 | number of the commit |
//! | 24 to 27, 28 to 31 | session, slot |
//! | 32 to 35, 36 to 39 | number of the sector in its block, 0 |
//! | 40 to 47 | when, in nanoseconds since 1970 |
//! | 48 to 503 | filling that differs from commit to commit |
//! | 504 to 511 | CRC-64/NVME of all before |
//!
//! All numbers are little endian. A sector of zeroes was never written.

use crc_fast::CrcAlgorithm;

use targets::durable::{Found, Owner, Shape, Torn};

/// What is checked as one.
pub const SECTOR_BYTES: usize = 512;

const MAGIC: &[u8; 8] = b"PLIMDUR1";
const FILLING: std::ops::Range<usize> = 48..SUM;
const SUM: usize = 504;
/// Odd numbers without a pattern, from the golden ratio and its square root.
const BY_COMMIT: u64 = 0x9e37_79b9_7f4a_7c15;
const BY_PLACE: u64 = 0xc2b2_ae3d_27d4_eb4f;

/// Writes commit `owner` into a block.
pub fn fill(block: &mut [u8], owner: &Owner, wall_ns: u64) {
    for (number, sector) in (0_u32..).zip(block.chunks_exact_mut(SECTOR_BYTES)) {
        sector[..8].copy_from_slice(MAGIC);
        sector[8..16].copy_from_slice(&owner.run.to_le_bytes());
        sector[16..24].copy_from_slice(&owner.seq.to_le_bytes());
        sector[24..28].copy_from_slice(&owner.session.to_le_bytes());
        sector[28..32].copy_from_slice(&owner.slot.to_le_bytes());
        sector[32..36].copy_from_slice(&number.to_le_bytes());
        sector[36..40].fill(0);
        sector[40..48].copy_from_slice(&wall_ns.to_le_bytes());
        let of_commit = owner.seq.wrapping_mul(BY_COMMIT);
        for (place, word) in (u64::from(number)..).zip(sector[FILLING].chunks_exact_mut(8)) {
            word.copy_from_slice(&(of_commit ^ place.wrapping_mul(BY_PLACE)).to_le_bytes());
        }
        let sum = crc_fast::checksum(CrcAlgorithm::Crc64Nvme, &sector[..SUM]);
        sector[SUM..].copy_from_slice(&sum.to_le_bytes());
    }
}

enum Sector {
    Blank,
    Of(Owner),
    Strange,
}

fn read_sector(number: usize, sector: &[u8]) -> Sector {
    let u64_at = |at: usize| sector[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let u32_at = |at: usize| sector[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    if sector[..8] != *MAGIC {
        return if sector.iter().all(|byte| *byte == 0) { Sector::Blank } else { Sector::Strange };
    }
    let is_whole = crc_fast::checksum(CrcAlgorithm::Crc64Nvme, &sector[..SUM]) == u64_at(SUM);
    // A sector elsewhere in its own block is not a part of it.
    if !is_whole || usize::try_from(u32_at(32)) != Ok(number) {
        return Sector::Strange;
    }
    Sector::Of(Owner { run: u64_at(8), session: u32_at(24), slot: u32_at(28), seq: u64_at(16) })
}

/// What the block in a slot of a session holds.
pub fn read(block: &[u8], shape: &Shape, session: u32, slot: u32) -> Found {
    let is_own = |owner: &Owner| {
        (owner.run, owner.session, owner.slot) == (shape.run, session, slot)
            && owner.seq > 0
            && shape.slot_of(owner.seq) == slot
    };
    let (mut oldest, mut newest, mut blanks, mut strange) = (None::<u64>, None::<u64>, 0_u32, 0_u32);
    let (mut stranger, mut same_stranger) = (None, 0_u32);
    let mut sectors = 0_u32;
    for (number, sector) in block.chunks_exact(SECTOR_BYTES).enumerate() {
        sectors += 1;
        match read_sector(number, sector) {
            Sector::Blank => blanks += 1,
            Sector::Of(owner) if is_own(&owner) => {
                oldest = Some(oldest.map_or(owner.seq, |seq| seq.min(owner.seq)));
                newest = newest.max(Some(owner.seq));
            }
            Sector::Of(owner) => {
                strange += 1;
                same_stranger += u32::from(*stranger.get_or_insert(owner) == owner);
            }
            Sector::Strange => strange += 1,
        }
    }
    match (newest, oldest) {
        (Some(seq), Some(lowest)) if seq == lowest && blanks + strange == 0 => Found::Whole { seq },
        (None, _) if blanks == sectors => Found::Blank,
        (None, _) if same_stranger == sectors => stranger.map_or(Found::Blank, Found::Foreign),
        _ => Found::Torn(Torn { oldest: if blanks > 0 { Some(0) } else { oldest }, newest, strange }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK_BYTES: usize = 8192;
    const SHAPE: Shape = Shape { run: 77, sessions: 4, blocks: 8 };

    fn owner(seq: u64) -> Owner {
        Owner { run: 77, session: 2, slot: SHAPE.slot_of(seq), seq }
    }

    fn block(owner: Owner) -> Vec<u8> {
        let mut block = vec![0; BLOCK_BYTES];
        fill(&mut block, &owner, 1);
        block
    }

    #[test]
    fn a_block_is_read_as_it_was_written() {
        assert_eq!(read(&block(owner(13)), &SHAPE, 2, 4), Found::Whole { seq: 13 });
        assert_eq!(read(&vec![0; BLOCK_BYTES], &SHAPE, 2, 4), Found::Blank);
    }

    #[test]
    fn a_block_in_the_place_of_another_is_foreign() {
        let here = block(owner(13));
        for (session, slot) in [(2, 5), (1, 4)] {
            assert_eq!(read(&here, &SHAPE, session, slot), Found::Foreign(owner(13)));
        }
        let other = Shape { run: 78, ..SHAPE };
        assert_eq!(read(&here, &other, 2, 4), Found::Foreign(owner(13)));
        // A number that this slot never has.
        let wrong = Owner { seq: 14, ..owner(13) };
        assert_eq!(read(&block(wrong), &SHAPE, 2, 4), Found::Foreign(wrong));
    }

    #[test]
    fn a_torn_block_says_of_which_commits_it_is() {
        let (old, new) = (block(owner(5)), block(owner(13)));
        let mut torn = [&new[..4096], &old[4096..]].concat();
        assert_eq!(read(&torn, &SHAPE, 2, 4), Found::Torn(Torn { oldest: Some(5), newest: Some(13), strange: 0 }));
        torn[4096 + 300] ^= 1;
        assert_eq!(read(&torn, &SHAPE, 2, 4), Found::Torn(Torn { oldest: Some(5), newest: Some(13), strange: 1 }));
        let begun = [&new[..512], &vec![0; BLOCK_BYTES - 512]].concat();
        assert_eq!(read(&begun, &SHAPE, 2, 4), Found::Torn(Torn { oldest: Some(0), newest: Some(13), strange: 0 }));
        let noise = vec![0x5a; BLOCK_BYTES];
        assert_eq!(read(&noise, &SHAPE, 2, 4), Found::Torn(Torn { oldest: None, newest: None, strange: 16 }));
    }

    #[test]
    fn every_changed_bit_shows() {
        let whole = block(owner(13));
        for at in (0..BLOCK_BYTES).step_by(7) {
            let mut changed = whole.clone();
            changed[at] ^= 0x10;
            assert!(matches!(read(&changed, &SHAPE, 2, 4), Found::Torn(Torn { strange: 1, .. })), "byte {at}");
        }
        // Sectors of one block that have changed places.
        let mut moved = whole.clone();
        let (one, other) = moved.split_at_mut(SECTOR_BYTES);
        one.swap_with_slice(&mut other[..SECTOR_BYTES]);
        assert!(matches!(read(&moved, &SHAPE, 2, 4), Found::Torn(Torn { strange: 2, .. })));
    }

    #[test]
    fn no_noise_makes_it_panic() {
        proptest::proptest!(|(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..2 * SECTOR_BYTES))| {
            let mut block = block(owner(13));
            let length = bytes.len();
            block[..length].copy_from_slice(&bytes);
            let _ = read(&block, &SHAPE, 2, 4);
            let _ = read(&bytes, &SHAPE, u32::MAX, u32::MAX);
        });
    }
}
