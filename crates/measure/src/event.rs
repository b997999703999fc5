//! What targets count and wait for; the waits of our own engines under the names that Oracle gave them.

use model::record::{CONNECT, Counters};

/// Wait events that are timed one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum WaitEvent {
    /// One block read into the cache.
    DbFileSequentialRead,
    /// Many blocks read past the cache.
    DirectPathRead,
    /// Blocks written past the cache by the session itself.
    DirectPathWrite,
    /// A session waits for its commit.
    LogFileSync,
    /// Another session is reading the block already.
    ReadByOtherSession,
    /// Another session is changing the block, or a writer is copying it.
    BufferBusyWaits,
    /// No clean buffer is free.
    FreeBufferWaits,
    /// No room in the log buffer.
    LogBufferSpace,
    /// The next log file is still needed for recovery.
    LogFileSwitchCheckpoint,
    /// One batch of a database writer.
    DbFileParallelWrite,
    /// One write of the log writer.
    LogFileParallelWrite,
    /// The commit of an update in a database that has no such names, as its own server timed it.
    Commit,
    /// A session of a server that came about while load ran, from its first packet until it could be asked. The client times it, even
    /// where the server times all else.
    Connect,
    /// What an answer over a network took besides what the other end needed for it.
    NetworkRoundTrip,
    /// What the other end needed for an answer, writing durably left out, on its own clock.
    RemoteService,
    /// The other end wrote redo durably, on its own clock; Oracle's name on a standby.
    RfsWrite,
    /// One block read into the cache from the flash cache.
    DbFlashCacheSingleBlockPhysicalRead,
    /// One batch of blocks written to the flash cache.
    DbFlashCacheWrite,
}

/// The largest block of a database.
const LARGEST_BLOCK_BYTES: u32 = 32 << 10;

/// Oracle's wait classes, as far as they are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitClass {
    /// Sessions' own I/O.
    UserIo,
    /// Writers' I/O.
    SystemIo,
    /// Commits.
    Commit,
    /// Sessions in each other's way.
    Concurrency,
    /// Settings too small for the load.
    Configuration,
    /// Sessions that are made.
    Connection,
    /// Messages between hosts.
    Network,
}

impl WaitClass {
    /// Oracle's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::UserIo => "User I/O",
            Self::SystemIo => "System I/O",
            Self::Commit => "Commit",
            Self::Concurrency => "Concurrency",
            Self::Configuration => "Configuration",
            Self::Connection => "Connection",
            Self::Network => "Network",
        }
    }
}

impl WaitEvent {
    /// Every event, in the order of its number.
    pub const ALL: [Self; 18] = [
        Self::DbFileSequentialRead,
        Self::DirectPathRead,
        Self::DirectPathWrite,
        Self::LogFileSync,
        Self::ReadByOtherSession,
        Self::BufferBusyWaits,
        Self::FreeBufferWaits,
        Self::LogBufferSpace,
        Self::LogFileSwitchCheckpoint,
        Self::DbFileParallelWrite,
        Self::LogFileParallelWrite,
        Self::Commit,
        Self::Connect,
        Self::NetworkRoundTrip,
        Self::RemoteService,
        Self::RfsWrite,
        Self::DbFlashCacheSingleBlockPhysicalRead,
        Self::DbFlashCacheWrite,
    ];

    /// Oracle's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DbFileSequentialRead => "db file sequential read",
            Self::DirectPathRead => "direct path read",
            Self::DirectPathWrite => "direct path write",
            Self::LogFileSync => "log file sync",
            Self::ReadByOtherSession => "read by other session",
            Self::BufferBusyWaits => "buffer busy waits",
            Self::FreeBufferWaits => "free buffer waits",
            Self::LogBufferSpace => "log buffer space",
            Self::LogFileSwitchCheckpoint => "log file switch (checkpoint incomplete)",
            Self::DbFileParallelWrite => "db file parallel write",
            Self::LogFileParallelWrite => "log file parallel write",
            Self::Commit => "commit",
            Self::Connect => CONNECT,
            Self::NetworkRoundTrip => "network round trip",
            Self::RemoteService => "remote service",
            Self::RfsWrite => "RFS write",
            Self::DbFlashCacheSingleBlockPhysicalRead => "db flash cache single block physical read",
            Self::DbFlashCacheWrite => "db flash cache write",
        }
    }

    /// Oracle's wait class.
    pub const fn class(self) -> WaitClass {
        match self {
            Self::DbFileSequentialRead
            | Self::DirectPathRead
            | Self::DirectPathWrite
            | Self::ReadByOtherSession
            | Self::DbFlashCacheSingleBlockPhysicalRead => WaitClass::UserIo,
            Self::LogFileSync | Self::Commit => WaitClass::Commit,
            Self::BufferBusyWaits => WaitClass::Concurrency,
            Self::FreeBufferWaits | Self::LogBufferSpace | Self::LogFileSwitchCheckpoint => WaitClass::Configuration,
            Self::DbFileParallelWrite | Self::LogFileParallelWrite | Self::RfsWrite | Self::DbFlashCacheWrite => {
                WaitClass::SystemIo
            }
            Self::Connect => WaitClass::Connection,
            Self::NetworkRoundTrip | Self::RemoteService => WaitClass::Network,
        }
    }

    /// Of one raw read: databases tell those of a single block from those of many, and no block is larger than 32 KiB.
    pub const fn of_read(bytes: u32) -> Self {
        if bytes <= LARGEST_BLOCK_BYTES { Self::DbFileSequentialRead } else { Self::DirectPathRead }
    }

    /// Whether sessions wait in it, rather than the engine's writers.
    pub const fn is_foreground(self) -> bool {
        // Of a standby's write its primary waits.
        matches!(self, Self::RfsWrite) || !matches!(self.class(), WaitClass::SystemIo)
    }

    /// Number, from 0 to `ALL.len() - 1`.
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Declares the counters of the hot path next to the document's fields, so that the two cannot drift apart.
macro_rules! counters {
    ($($(#[$doc:meta])* $variant:ident => $field:ident,)*) => {
        /// Counters kept while load runs; each has its twin in [`Counters`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Counter {
            $(#[doc = concat!("See [`Counters::", stringify!($field), "`].")] $variant,)*
        }

        impl Counter {
            /// Every counter, in the order of its number.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];
        }

        /// The document's form of `counts`, which is indexed by [`Counter`]; counters not in `known` stay unknown.
        pub fn counters_from(counts: &[u64; Counter::ALL.len()], known: &[Counter]) -> Counters {
            let mut out = Counters::default();
            for counter in known {
                let count = Some(counts[*counter as usize]);
                match counter {
                    $(Counter::$variant => out.$field = count,)*
                }
            }
            out
        }
    };
}

counters! {
    Operations => operations,
    Errors => errors,
    LogicalReads => logical_reads,
    CacheHits => cache_hits,
    BufferMisses => buffer_misses,
    PageCacheHits => page_cache_hits,
    PhysicalReads => physical_reads,
    PhysicalReadBytes => physical_read_bytes,
    DirectReads => direct_reads,
    DirectReadBytes => direct_read_bytes,
    PhysicalWrites => physical_writes,
    PhysicalWriteBytes => physical_write_bytes,
    BlockChanges => block_changes,
    Commits => commits,
    RedoBytes => redo_bytes,
    RedoWrites => redo_writes,
    RedoWriteBytes => redo_write_bytes,
    LogSwitches => log_switches,
    Checkpoints => checkpoints,
    FlashCacheReads => flash_cache_reads,
    FlashCacheReadBytes => flash_cache_read_bytes,
    FlashCacheWrites => flash_cache_writes,
    FlashCacheWriteBytes => flash_cache_write_bytes,
    FlashCacheSkipped => flash_cache_skipped,
    FlashCacheFallbacks => flash_cache_fallbacks,
    FlashCacheGivenUp => flash_cache_given_up,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_numbered_in_their_order() {
        for (index, event) in WaitEvent::ALL.iter().enumerate() {
            assert_eq!(event.index(), index, "{}", event.name());
        }
    }

    #[test]
    fn counters_that_a_target_does_not_keep_stay_unknown() {
        let mut counts = [0; Counter::ALL.len()];
        counts[Counter::Commits as usize] = 7;
        let counters = counters_from(&counts, &[Counter::Commits, Counter::Operations]);
        assert_eq!(counters, Counters { commits: Some(7), operations: Some(0), ..Counters::default() });
    }
}
