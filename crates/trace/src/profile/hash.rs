//! Hashes of places on devices: what sampling in space draws by.

use std::hash::{BuildHasherDefault, Hasher};

use model::workload::mix64;

/// An odd number without a pattern: 2^64 over the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A hash of a block or chunk of a device, by its number. Two places have the same one by a chance of one in 2^64 only.
#[inline]
pub(super) fn place_hash(device: u16, number: u64) -> u64 {
    // Twice: of a million consecutive numbers once put up to 3.8 standard errors too many below a limit, and twice not.
    mix64(GOLDEN ^ mix64(number.wrapping_add(u64::from(device).wrapping_add(1).wrapping_mul(GOLDEN))))
}

/// For tables whose keys are hashes already, or few.
pub(super) type ByHash = BuildHasherDefault<Spread>;

/// Multiplies: the leading bits of a hash that was drawn are zero, and the table wants all of them to differ.
#[derive(Debug, Default)]
pub(super) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(self.0 ^ u64::from(*byte)));
    }

    #[inline]
    fn write_u64(&mut self, key: u64) {
        let product = key.wrapping_mul(GOLDEN);
        self.0 = product ^ (product >> 32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_64_consecutive_numbers_is_below_a_64th() {
        for start in (0..8).map(|million| million * 1_000_000) {
            let below = (start..start + 200_000).filter(|number| place_hash(0, *number) < 1 << 58).count();
            // 3,125 and a standard error of 55.
            assert!((2_940..3_310).contains(&below), "{below} from {start}");
        }
    }
}
