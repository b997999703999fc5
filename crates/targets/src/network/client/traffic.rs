//! Counts that all lanes of a test keep together.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// What crossed the network, as the lanes saw it. Each lane has one of its own, so that none waits for another's cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Traffic {
    /// Bytes handed to the kernel.
    sent_bytes: AtomicU64,
    /// Bytes taken from it.
    received_bytes: AtomicU64,
    datagrams: [AtomicU64; Datagrams::ALL.len()],
}

/// What can become of datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Datagrams {
    /// Asked.
    Asked,
    /// Answered in time.
    Answered,
    /// Not answered in time.
    Lost,
    /// Answered before one that was asked earlier.
    Reordered,
    /// Answered more than once.
    Duplicated,
    /// Answered after it was taken for lost.
    Late,
    /// Not what an answer looks like.
    Strange,
}

impl Datagrams {
    const ALL: [Self; 7] =
        [Self::Asked, Self::Answered, Self::Lost, Self::Reordered, Self::Duplicated, Self::Late, Self::Strange];

    /// The name among the counters of an end.
    const fn name(self) -> &'static str {
        match self {
            Self::Asked => "udp.asked",
            Self::Answered => "udp.answered",
            Self::Lost => "udp.lost",
            Self::Reordered => "udp.reordered",
            Self::Duplicated => "udp.duplicated",
            Self::Late => "udp.late",
            Self::Strange => "udp.strange",
        }
    }
}

impl Traffic {
    #[inline]
    pub(super) fn sent(&self, bytes: usize) {
        self.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn received(&self, bytes: usize) {
        self.received_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn datagram(&self, what: Datagrams) {
        self.datagrams[what as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Bytes sent and received so far.
    pub(super) fn bytes(&self) -> (u64, u64) {
        (self.sent_bytes.load(Ordering::Relaxed), self.received_bytes.load(Ordering::Relaxed))
    }

    /// Datagrams that were sent, or tried to.
    pub(super) fn asked(&self) -> u64 {
        self.datagrams[Datagrams::Asked as usize].load(Ordering::Relaxed)
    }

    /// Adds what became of datagrams to the counters of an end.
    pub(super) fn add_datagrams(&self, counters: &mut BTreeMap<String, u64>) {
        for what in Datagrams::ALL {
            let count = self.datagrams[what as usize].load(Ordering::Relaxed);
            *counters.entry(what.name().to_owned()).or_default() += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_has_a_place_and_a_name_of_its_own() {
        let traffic = Traffic::default();
        for (place, what) in Datagrams::ALL.into_iter().enumerate() {
            assert_eq!(place, what as usize);
            (0..=place).for_each(|_| traffic.datagram(what));
        }
        let mut counters = BTreeMap::new();
        traffic.add_datagrams(&mut counters);
        assert_eq!(counters.len(), 7);
        assert_eq!((counters["udp.asked"], counters["udp.lost"], counters["udp.strange"]), (1, 3, 7));
    }
}
