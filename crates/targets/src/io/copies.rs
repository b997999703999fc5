//! What is asked of storage that keeps several copies, when all of them are compared.

use std::ops::AddAssign;
use std::sync::atomic::AtomicBool;

use serde::Serialize;

/// What a scrub found and did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Scrubbed {
    /// Bytes of the file that were compared.
    pub bytes: u64,
    /// Copies that were compared, in bytes.
    pub copies_bytes: u64,
    /// Grains whose copies were not all readable, right and alike.
    pub faulty: u64,
    /// Copies of grains that were written again.
    pub repaired: u64,
    /// Grains whose copies differed and were equally right: the primary was taken.
    pub unsure: u64,
    /// Grains of which no copy is right.
    pub lost: u64,
    /// Grains that could not be repaired, because the group is open for reads only, a member failed, or load wrote there all
    /// the time.
    pub left: u64,
}

/// How a scrub compares.
pub struct Scrub<'a> {
    /// What is compared and written as a whole: whole pages of 4 KiB that divide 128 KiB.
    pub grain_bytes: u32,
    /// What is judged by itself, and may be sound in another copy than its neighbour: a grain, or a part of one.
    pub block_bytes: u32,
    /// How right the data at an offset are: none where they are wrong, and of two the higher is the newer.
    pub judge: &'a dyn Fn(u64, &[u8]) -> Option<u64>,
    /// Reported after each step: bytes done, and in all.
    pub progress: &'a dyn Fn(u64, u64),
    /// Ends it early.
    pub stop: &'a AtomicBool,
}

impl AddAssign for Scrubbed {
    fn add_assign(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.copies_bytes += other.copies_bytes;
        self.faulty += other.faulty;
        self.repaired += other.repaired;
        self.unsure += other.unsure;
        self.lost += other.lost;
        self.left += other.left;
    }
}
