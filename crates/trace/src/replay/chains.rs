//! Streams of a trace that issue a request only after an answer, such as a log writer or a scan.
//!
//! A sequential stream (as the profile of a trace finds them) is such a chain if it is long, and nearly each of its requests was issued when
//! the one before it had completed. Flushes belong to the log that completed last before them, if its next write then waited for them, too.
//! What is found depends on the requests alone: each reading of the same part of the trace finds the same.

use std::collections::{HashMap, VecDeque};

use crate::profile::streams::{RunCounts, Streams};
use model::trace::{TraceKind, TraceRequest};

/// A chain has as many requests.
const LONG: u64 = 64;
/// Of its requests so many of each hundred were issued when the one before had completed. The latencies of a trace are not exact.
const SERIAL_PCT: u64 = 99;
/// Logs that a flush can be of, of each device.
const RECENT: usize = 8;
/// Chains that are kept at most.
const MAX_CHAINS: usize = 1 << 16;

/// A stream of a device: its kind, and its number among the streams of that kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    device: u16,
    kind: TraceKind,
    number: u64,
}

/// The chains of a part of a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chains {
    /// Those that are kept, and whether flushes belong to them.
    kept: HashMap<Key, bool>,
    /// Their requests, flushes among them.
    pub requests: u64,
}

impl Chains {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.kept.len()
    }
}

/// A request that belongs to a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) key: Key,
    /// From the end of what was before it to its issue: without flushes, and with them; negative times are 0. Absent at the first.
    gap_ns: [Option<u64>; 2],
    is_flush: bool,
}

/// What is known of a stream while it goes on.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    requests: u64,
    flushes: u64,
    /// When its last request completed: without flushes, and with them.
    completed_ns: [u64; 2],
    /// Requests of which it is known whether what was before had completed, and those where it had.
    judged: u64,
    serial: [u64; 2],
}

impl Known {
    fn is_serial(&self, with_flushes: bool) -> bool {
        self.judged > 0 && self.serial[usize::from(with_flushes)] * 100 >= self.judged * SERIAL_PCT
    }
}

/// Finds the streams of requests that come in the order of their issue.
#[derive(Debug)]
pub(super) struct Follower {
    streams: HashMap<(u16, TraceKind), Streams>,
    /// Not looked at: streams count their runs there.
    runs: RunCounts,
    known: HashMap<Key, Known>,
    /// Streams of writes that went on last, by device.
    recent: HashMap<u16, VecDeque<Key>>,
    /// Whether all that are known are long, and no more are taken.
    is_full: bool,
}

impl Default for Follower {
    fn default() -> Self {
        Self {
            streams: HashMap::new(),
            runs: RunCounts::new(false),
            known: HashMap::new(),
            recent: HashMap::new(),
            is_full: false,
        }
    }
}

impl Follower {
    /// Takes the next request. Absent where it belongs to no stream of at least two requests.
    pub(super) fn add(&mut self, request: &TraceRequest) -> Option<Link> {
        let TraceRequest { at_ns, device, kind, .. } = *request;
        let completed_ns = request.latency_ns.map(|latency_ns| at_ns.saturating_add(latency_ns));
        if kind == TraceKind::Flush {
            return self.flush(request, completed_ns?);
        }
        let continued = self.streams.entry((device, kind)).or_default().add(at_ns, request, &mut self.runs)?;
        let key = Key { device, kind, number: continued.number };
        if self.known.len() >= MAX_CHAINS && !self.known.contains_key(&key) {
            if !self.is_full {
                self.known.retain(|_, known| known.requests >= LONG);
                self.is_full = self.known.len() >= MAX_CHAINS;
            }
            if self.is_full {
                return None;
            }
        }
        let known = self.known.entry(key).or_default();
        // The first request of a stream was seen before it was one.
        let before_ns = [continued.completed_ns, continued.completed_ns.map(|ns| ns.max(known.completed_ns[1]))];
        if continued.completed_ns.is_some() {
            known.judged += 1;
            for (serial, before_ns) in known.serial.iter_mut().zip(before_ns) {
                *serial += u64::from(before_ns.is_some_and(|before_ns| before_ns <= at_ns));
            }
        }
        known.requests += 1;
        if let Some(completed_ns) = completed_ns {
            known.completed_ns = [completed_ns, completed_ns];
        }
        if kind == TraceKind::Write {
            let recent = self.recent.entry(device).or_default();
            recent.retain(|other| *other != key);
            recent.push_front(key);
            recent.truncate(RECENT);
        }
        let gap_ns = before_ns.map(|before_ns| before_ns.map(|before_ns| at_ns.saturating_sub(before_ns)));
        Some(Link { key, gap_ns, is_flush: false })
    }

    /// A flush: of the log whose last write completed last before it.
    fn flush(&mut self, request: &TraceRequest, completed_ns: u64) -> Option<Link> {
        let ended = |key: &&Key| {
            let completed_ns = self.known.get(key)?.completed_ns[0];
            (completed_ns <= request.at_ns).then_some(completed_ns)
        };
        let recent = self.recent.get(&request.device)?;
        let (before_ns, key) = recent.iter().filter_map(|key| Some((ended(&key)?, *key))).max()?;
        let known = self.known.get_mut(&key)?;
        known.flushes += 1;
        let before_ns = before_ns.max(known.completed_ns[1].min(request.at_ns));
        known.completed_ns[1] = known.completed_ns[1].max(completed_ns);
        let gap_ns = request.at_ns - before_ns;
        Some(Link { key, gap_ns: [None, Some(gap_ns)], is_flush: true })
    }

    /// The chains of all requests that were taken.
    pub(super) fn finish(self) -> Chains {
        let mut chains = Chains::default();
        for (key, known) in self.known.into_iter().filter(|(_, known)| known.requests >= LONG) {
            let with_flushes = known.is_serial(true);
            if with_flushes || known.is_serial(false) {
                chains.kept.insert(key, with_flushes);
                chains.requests += known.requests + if with_flushes { known.flushes } else { 0 };
            }
        }
        chains
    }
}

impl Chains {
    /// The gap before a request that belongs to one of the chains, in nanoseconds; absent for any other.
    pub(super) fn gap_ns(&self, link: &Link) -> Option<u64> {
        let with_flushes = *self.kept.get(&link.key)?;
        if link.is_flush && !with_flushes {
            return None;
        }
        Some(link.gap_ns[usize::from(with_flushes)].unwrap_or(0))
    }
}

impl Key {
    /// A number that no other chain of a copy has, but by a chance of 1 in 2^64 for each pair. A lap goes on with the chains of the one before.
    pub(super) fn number(&self, copy: u64) -> u64 {
        use model::workload::mix64;
        let place = u64::from(self.device) << 8 | self.kind.index() as u64;
        mix64(mix64(mix64(self.number ^ 0x5851_f42d_4c95_7f2d).wrapping_add(place)).wrapping_add(copy))
    }

    /// Which of so many lanes has it.
    pub(super) fn lane(&self, copy: u64, lanes: u64) -> u64 {
        self.number(copy) % lanes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(at_ns: u64, kind: TraceKind, offset_bytes: u64, latency_ns: u64) -> TraceRequest {
        let bytes = if kind == TraceKind::Flush { 0 } else { 8_192 };
        TraceRequest { at_ns, device: 0, kind, is_fua: false, offset_bytes, bytes, latency_ns: Some(latency_ns) }
    }

    /// A log of 100 writes 1 ms apart, each with a flush behind it, among random reads; `latency_ns` is that of a write.
    fn requests(latency_ns: u64, flush_ns: u64) -> Vec<TraceRequest> {
        let one = |number: u64| {
            let at_ns = number * 1_000_000;
            let read = request(at_ns + 3, TraceKind::Read, (number * 7_919 % 1_000) * 65_536, 100_000);
            let write = request(at_ns + 5, TraceKind::Write, (1 << 40) + number * 8_192, latency_ns);
            [read, write, request(at_ns + latency_ns.min(400_000) + 10, TraceKind::Flush, 0, flush_ns)]
        };
        (0..100).flat_map(one).collect()
    }

    fn followed(requests: &[TraceRequest]) -> (Chains, Vec<Link>) {
        let mut follower = Follower::default();
        let links = requests.iter().filter_map(|request| follower.add(request)).collect();
        (follower.finish(), links)
    }

    #[test]
    fn a_log_that_waits_for_its_flushes_is_a_chain_with_them() {
        let (chains, links) = followed(&requests(400_000, 500_000));
        assert_eq!(
            (chains.count(), chains.requests),
            (1, 198),
            "all but the first write and its flush, which could be anything's"
        );
        let gaps: Vec<Option<u64>> = links.iter().take(3).map(|link| chains.gap_ns(link)).collect();
        // The second write comes 0.6 ms after the first ended, a flush 5 ns after its write, and a write 0.1 ms after that flush.
        assert_eq!(gaps, [Some(600_000), Some(5), Some(99_995)]);
    }

    #[test]
    fn a_flush_that_nothing_waits_for_is_left_out_and_a_log_in_parallel_is_no_chain() {
        let (chains, links) = followed(&requests(400_000, 5_000_000));
        assert_eq!((chains.count(), chains.requests), (1, 99));
        assert!(links.iter().filter(|link| link.is_flush).all(|link| chains.gap_ns(link).is_none()));
        assert_eq!(followed(&requests(2_000_000, 1_000)).0.count(), 0);
    }

    #[test]
    fn a_stream_that_is_short_is_no_chain() {
        assert_eq!(followed(&requests(400_000, 500_000)[..150]).0.count(), 0);
    }
}
