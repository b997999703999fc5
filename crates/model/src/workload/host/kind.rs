//! The kinds of work.

/// A kind of work for a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HostKind {
    /// Logical reads of blocks in a buffer cache that all sessions share.
    LogicalRead,
    /// Checksums of blocks of 8 KiB.
    Checksum,
    /// Comparisons of blocks of 8 KiB.
    Compare,
    /// Sorting of keys with the rows that they belong to.
    Sort,
    /// A hash join: a table is built and probed.
    HashJoin,
    /// Copies through memory.
    MemoryCopy,
    /// STREAM's triad through memory: two arrays read, one written.
    MemoryTriad,
    /// Loads of which each says where the next one is.
    MemoryLatency,
    /// A thread wakes another, which wakes it in turn.
    Wake,
    /// A sleep of one millisecond.
    Timer,
}

impl HostKind {
    /// Every kind, in the order of [`index`](Self::index).
    pub const ALL: [Self; 10] = [
        Self::LogicalRead,
        Self::Checksum,
        Self::Compare,
        Self::Sort,
        Self::HashJoin,
        Self::MemoryCopy,
        Self::MemoryTriad,
        Self::MemoryLatency,
        Self::Wake,
        Self::Timer,
    ];

    /// Their words, in the same order.
    pub const NAMES: [&'static str; 10] = [
        "logical-read",
        "checksum",
        "compare",
        "sort",
        "hash-join",
        "memory-copy",
        "memory-triad",
        "memory-latency",
        "wake",
        "timer",
    ];

    /// What keeps a processor busy as a database's work does: what is done where nothing else is asked for.
    pub const PROCESSOR: [Self; 5] = [Self::LogicalRead, Self::Checksum, Self::Compare, Self::Sort, Self::HashJoin];

    /// How long a [`Timer`](Self::Timer) sleeps, in nanoseconds.
    pub const SLEEP_NS: u64 = 1_000_000;

    /// Bytes of a block that is checked or compared.
    pub const BLOCK_BYTES: usize = 8_192;

    /// Probes for each key of the table that a hash join builds.
    pub const PROBES: u64 = 8;

    /// Its place in [`ALL`](Self::ALL).
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Its word.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self.index()]
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether it goes through memory of a size that can be chosen.
    pub const fn is_of_memory(self) -> bool {
        matches!(self, Self::MemoryCopy | Self::MemoryTriad | Self::MemoryLatency)
    }

    /// The least memory that work goes through: a page, in bytes.
    pub const MIN_MEMORY_BYTES: u64 = 4 << 10;

    /// How much one slice does, where memory of `size_bytes` is gone through: logical reads, blocks, pairs of blocks, keys, rows
    /// probed, bytes moved, loads, round trips, sleeps.
    pub const fn units(self, size_bytes: u64) -> u64 {
        match self {
            Self::LogicalRead => 32_768,
            Self::Checksum => 2_048,
            Self::Compare => 2_048,
            Self::Sort => 16_384,
            Self::HashJoin => 65_536,
            // STREAM counts what is read and what is written.
            Self::MemoryCopy | Self::MemoryTriad => 16 << 20,
            Self::MemoryLatency => match size_bytes {
                0..=262_144 => 262_144,
                262_145..=4_194_304 => 65_536,
                _ => 16_384,
            },
            Self::Wake | Self::Timer => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_stands_at_its_place_and_has_its_word() {
        for (place, kind) in HostKind::ALL.into_iter().enumerate() {
            assert_eq!((kind.index(), HostKind::named(kind.name())), (place, Some(kind)));
            assert!(kind.units(1 << 20) > 0);
        }
        assert_eq!(HostKind::named("nothing"), None);
    }
}
