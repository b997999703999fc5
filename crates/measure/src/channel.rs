//! What is counted about each channel: a connection to a server, or a member of a disk group.
//!
//! Whoever opens files on a server or a disk group keeps a [`Channels`]; each of its queues takes a [`ChannelWriter`] from it for every
//! channel that it uses. Only the writer's thread changes what is counted, so it does that by plain loads and stores, without a lock
//! and without waiting for another's cache line. The collector reads at the edges of intervals and takes differences, so every request
//! is in one interval: that in which its thread learnt of its end.

use std::array;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use model::record::{ChannelKind, ChannelStats, Counts, Histogram};

/// With more names of connections than this in one server, only paths are told apart: a table or a document of more helps nobody.
pub const MAX_CONNECTIONS_APART: usize = 64;

/// Kinds of work that are timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelWork {
    /// A read.
    Read,
    /// A write.
    Write,
    /// A call that asks for nothing.
    Nothing,
}

const WORKS: usize = 3;

/// What some kinds of channel count besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelCounter {
    /// Requests that had to wait in this program until the channel had room for them.
    Queued,
    /// How long they waited, in nanoseconds.
    QueuedNs,
    /// Requests that this channel was given because another one had not answered.
    Retries,
    /// Times that its connection was made again.
    Reconnects,
    /// Segments that TCP sent again.
    SegmentsResent,
    /// Time for which TCP had something to send, in nanoseconds.
    BusyNs,
    /// Of it, time for which the receiver's window held TCP back, in nanoseconds.
    RwndLimitedNs,
    /// COMMITs that nobody asked for, sent since no more could be kept of what was not durable.
    RoomCommits,
    /// Writes that were sent again since the server had lost them.
    ResentWrites,
    /// Bytes of these.
    ResentBytes,
    /// Blocks that were wrong or unreadable here and were written again from another copy.
    Repairs,
    /// Times that it was dropped because it failed.
    Drops,
    /// Bytes written to it to make up for writes that it had missed.
    ResyncedBytes,
}

const COUNTERS: usize = 13;

/// Which channel it is, and what is counted about it.
#[derive(Debug, Clone)]
pub struct ChannelName {
    /// What it is.
    pub kind: ChannelKind,
    /// The server or disk group that it belongs to.
    pub of: String,
    /// The path of a connection, or the failure group of a member.
    pub within: Option<String>,
    /// Its own name: a number of a connection, the path of a member. Channels of different threads with the same name are counted
    /// together.
    pub name: String,
    /// The counters that its writer keeps; the others are unknown.
    pub keeps: &'static [ChannelCounter],
}

/// Buckets of the histograms' layout (`record::histogram`): 128 linear ones for each power of two.
const BUCKETS: usize = 36 * 128;
const HALF: u32 = 128;
/// What is longer counts in the last bucket; see `record::Histogram`.
const LONGEST_NS: u64 = 3_600 * 1_000_000_000;

#[inline]
fn bucket_of(ns: u64) -> usize {
    let ns = ns.min(LONGEST_NS);
    let power = 56 - (ns | 255).leading_zeros();
    (power * HALF) as usize + (ns >> power) as usize
}

fn least_in(bucket: usize) -> u64 {
    let half = HALF as usize;
    if bucket < 2 * half {
        return bucket as u64;
    }
    let power = bucket / half - 1;
    ((bucket - power * half) as u64) << power
}

/// Adds to what only the calling thread changes.
#[inline]
fn add(to: &AtomicU64, by: u64) {
    to.store(to.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}

/// Requests of one kind.
#[derive(Debug)]
struct Timed {
    count: AtomicU64,
    bytes: AtomicU64,
    total_ns: AtomicU64,
    /// Since the collector last looked.
    least_ns: AtomicU64,
    most_ns: AtomicU64,
    buckets: OnceLock<Box<[AtomicU32]>>,
}

impl Default for Timed {
    fn default() -> Self {
        let zero = AtomicU64::default;
        let (count, bytes, total_ns, most_ns) = (zero(), zero(), zero(), zero());
        Self { count, bytes, total_ns, least_ns: AtomicU64::new(u64::MAX), most_ns, buckets: OnceLock::new() }
    }
}

impl Timed {
    #[inline]
    fn record(&self, bytes: u64, ns: u64) {
        add(&self.count, 1);
        add(&self.bytes, bytes);
        add(&self.total_ns, ns);
        if ns < self.least_ns.load(Ordering::Relaxed) {
            self.least_ns.fetch_min(ns, Ordering::Relaxed);
        }
        if ns > self.most_ns.load(Ordering::Relaxed) {
            self.most_ns.fetch_max(ns, Ordering::Relaxed);
        }
        let buckets = self.buckets.get_or_init(|| (0..BUCKETS).map(|_| AtomicU32::new(0)).collect());
        let bucket = &buckets[bucket_of(ns)];
        bucket.store(bucket.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }
}

/// What one thread counts about one channel.
#[derive(Debug, Default)]
struct Cell {
    works: [Timed; WORKS],
    errors: AtomicU64,
    outstanding_ns: AtomicU64,
    outstanding: AtomicU32,
    /// Since the collector last looked.
    most_outstanding: AtomicU32,
    counters: [AtomicU64; COUNTERS],
}

/// The right to count about one channel: belongs to one thread.
#[derive(Debug)]
pub struct ChannelWriter {
    cell: Arc<Cell>,
    outstanding: u32,
    changed_ns: u64,
}

impl ChannelWriter {
    /// Requests outstanding by this writer.
    #[inline]
    pub fn outstanding(&self) -> u32 {
        self.outstanding
    }

    #[inline]
    fn at(&mut self, now_ns: u64, outstanding: u32) {
        let since_ns = now_ns.saturating_sub(self.changed_ns);
        self.changed_ns += since_ns;
        add(&self.cell.outstanding_ns, since_ns.saturating_mul(u64::from(self.outstanding)));
        self.outstanding = outstanding;
        self.cell.outstanding.store(outstanding, Ordering::Relaxed);
        if outstanding > self.cell.most_outstanding.load(Ordering::Relaxed) {
            self.cell.most_outstanding.fetch_max(outstanding, Ordering::Relaxed);
        }
    }

    /// A request goes out by this channel. `now_ns` is of any clock that does not run backwards, the same one for all calls.
    #[inline]
    pub fn sent(&mut self, now_ns: u64) {
        self.at(now_ns, self.outstanding + 1);
    }

    /// One of its requests ended well: it moved `bytes` bytes, `service_ns` after it went out.
    #[inline]
    pub fn finished(&mut self, work: ChannelWork, bytes: u64, service_ns: u64, now_ns: u64) {
        self.at(now_ns, self.outstanding.saturating_sub(1));
        self.cell.works[work as usize].record(bytes, service_ns);
    }

    /// One of its requests ended in an error, or was given up to be sent by another channel.
    pub fn failed(&mut self, now_ns: u64) {
        self.at(now_ns, self.outstanding.saturating_sub(1));
        add(&self.cell.errors, 1);
    }

    /// One of its requests, which moves no data of a caller such as a flush, is over.
    #[inline]
    pub fn ended(&mut self, now_ns: u64) {
        self.at(now_ns, self.outstanding.saturating_sub(1));
    }

    /// Adds to a counter, which must be among those that the channel was opened with.
    #[inline]
    pub fn count(&mut self, counter: ChannelCounter, by: u64) {
        add(&self.cell.counters[counter as usize], by);
    }
}

/// What a cell had counted when the collector last looked.
#[derive(Debug, Default)]
struct Seen {
    counts: [u64; WORKS],
    bytes: [u64; WORKS],
    total_ns: [u64; WORKS],
    buckets: [Vec<u32>; WORKS],
    errors: u64,
    outstanding_ns: u64,
    counters: [u64; COUNTERS],
}

#[derive(Debug)]
struct Registered {
    name: ChannelName,
    cell: Arc<Cell>,
    seen: Seen,
}

/// What was counted since the last look: the present value takes the place of the one before.
fn difference(now: &AtomicU64, before: &mut u64) -> u64 {
    let now = now.load(Ordering::Relaxed);
    now.wrapping_sub(std::mem::replace(before, now))
}

impl Registered {
    fn take(&mut self) -> ChannelStats {
        let Self { name, cell, seen } = self;
        let timed: [(u64, u64, Histogram); WORKS] = array::from_fn(|at| {
            let work = &cell.works[at];
            let count = difference(&work.count, &mut seen.counts[at]);
            let bytes = difference(&work.bytes, &mut seen.bytes[at]);
            let total_ns = difference(&work.total_ns, &mut seen.total_ns[at]);
            let mut histogram = Histogram::default();
            if let Some(buckets) = work.buckets.get() {
                let mut narrow = Counts::default();
                seen.buckets[at].resize(BUCKETS, 0);
                for ((bucket, before), index) in buckets.iter().zip(&mut seen.buckets[at]).zip(0..) {
                    let now = bucket.load(Ordering::Relaxed);
                    let more = now.wrapping_sub(std::mem::replace(before, now));
                    if more > 0 {
                        narrow.record_n(least_in(index), more);
                    }
                }
                let least_ns = work.least_ns.swap(u64::MAX, Ordering::Relaxed);
                let most_ns = work.most_ns.swap(0, Ordering::Relaxed);
                histogram.merge_counts(&narrow, total_ns, least_ns, most_ns);
            }
            (count, bytes, histogram)
        });
        let [(reads, read_bytes, read), (writes, write_bytes, write), (_, _, nothing)] = timed;
        let outstanding = cell.outstanding.load(Ordering::Relaxed);
        let counters: [u64; COUNTERS] = array::from_fn(|at| difference(&cell.counters[at], &mut seen.counters[at]));
        let counted = |counter: ChannelCounter| name.keeps.contains(&counter).then_some(counters[counter as usize]);
        ChannelStats {
            kind: name.kind,
            of: name.of.clone(),
            within: name.within.clone(),
            name: name.name.clone(),
            channels: 1,
            reads,
            read_bytes,
            writes,
            write_bytes,
            errors: difference(&cell.errors, &mut seen.errors),
            read,
            write,
            nothing,
            outstanding_ns: difference(&cell.outstanding_ns, &mut seen.outstanding_ns),
            most_outstanding: cell.most_outstanding.swap(outstanding, Ordering::Relaxed).max(outstanding),
            queued: counted(ChannelCounter::Queued),
            queued_ns: counted(ChannelCounter::QueuedNs),
            retries: counted(ChannelCounter::Retries),
            reconnects: counted(ChannelCounter::Reconnects),
            segments_resent: counted(ChannelCounter::SegmentsResent),
            busy_ns: counted(ChannelCounter::BusyNs),
            rwnd_limited_ns: counted(ChannelCounter::RwndLimitedNs),
            room_commits: counted(ChannelCounter::RoomCommits),
            resent_writes: counted(ChannelCounter::ResentWrites),
            resent_bytes: counted(ChannelCounter::ResentBytes),
            repairs: counted(ChannelCounter::Repairs),
            drops: counted(ChannelCounter::Drops),
            resynced_bytes: counted(ChannelCounter::ResyncedBytes),
        }
    }

    /// Whether nobody counts here any more.
    fn is_over(&self) -> bool {
        let is_over = Arc::strong_count(&self.cell) == 1;
        // What the writer stored before it went is seen after this.
        fence(Ordering::Acquire);
        is_over
    }
}

/// All channels of a server or a disk group.
#[derive(Debug, Default)]
pub struct Channels(Mutex<Vec<Registered>>);

impl Channels {
    /// Begins to count about a channel. Its histograms get their memory with the first request of a kind.
    pub fn open(&self, name: ChannelName) -> ChannelWriter {
        let cell = Arc::new(Cell::default());
        let writer = ChannelWriter { cell: Arc::clone(&cell), outstanding: 0, changed_ns: 0 };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Registered { name, cell, seen: Seen::default() });
        writer
    }

    /// What each of them carried since the last call, in the order in which they were first opened; those of the same name together.
    pub fn take(&self) -> Vec<ChannelStats> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken: Vec<ChannelStats> = Vec::new();
        all.retain_mut(|registered| {
            let is_over = registered.is_over();
            ChannelStats::add_beside(&mut taken, registered.take());
            !is_over
        });
        let apart = taken.iter().filter(|channel| channel.kind == ChannelKind::Connection).count();
        if apart <= MAX_CONNECTIONS_APART {
            return taken;
        }
        let mut paths = Vec::new();
        for channel in taken {
            let path = match channel.kind {
                ChannelKind::Connection => {
                    let name = channel.within.clone().unwrap_or_else(|| channel.of.clone());
                    ChannelStats { kind: ChannelKind::Path, within: None, name, ..channel }
                }
                ChannelKind::Path | ChannelKind::Member => channel,
            };
            ChannelStats::add_beside(&mut paths, path);
        }
        paths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> ChannelName {
        let (of, within) = ("filer".to_owned(), Some("10.0.0.1".to_owned()));
        let keeps = &[ChannelCounter::Retries];
        ChannelName { kind: ChannelKind::Connection, of, within, name: name.to_owned(), keeps }
    }

    #[test]
    fn buckets_are_those_of_the_record() {
        let mut writer_ns: Vec<u64> = vec![0, 1, 255, 256, 257, 999, 1_000, 123_456, 1 << 30, LONGEST_NS, u64::MAX / 2];
        writer_ns.extend((0..2_000_u64).map(|at| at * at * 7_919));
        let channels = Channels::default();
        let mut writer = channels.open(name("1"));
        let mut expected = Histogram::default();
        for ns in writer_ns {
            writer.finished(ChannelWork::Read, 1, ns, 0);
            expected.record(ns);
        }
        let taken = channels.take().remove(0);
        assert_eq!(taken.read, expected);
        assert!(least_in(bucket_of(LONGEST_NS)) <= LONGEST_NS && bucket_of(LONGEST_NS) < BUCKETS);
    }

    #[test]
    fn every_request_is_in_one_interval_and_outstanding_is_an_integral() {
        let channels = Channels::default();
        let mut writer = channels.open(name("1"));
        writer.sent(100);
        writer.sent(100);
        writer.finished(ChannelWork::Read, 8_192, 50, 150);
        writer.count(ChannelCounter::Retries, 3);
        let first = channels.take().remove(0);
        assert_eq!((first.reads, first.read_bytes, first.outstanding_ns), (1, 8_192, 100));
        assert_eq!((first.most_outstanding, first.retries, first.repairs), (2, Some(3), None));
        writer.finished(ChannelWork::Write, 512, 150, 250);
        writer.sent(300);
        writer.failed(320);
        let second = channels.take().remove(0);
        assert_eq!((second.reads, second.read.count(), second.writes, second.write.max_ns()), (0, 0, 1, Some(150)));
        assert_eq!((second.outstanding_ns, second.errors, second.retries), (120, 1, Some(0)));
        assert_eq!(second.most_outstanding, 1);
    }

    #[test]
    fn what_a_thread_counted_before_it_went_is_taken_and_then_forgotten() {
        let channels = Channels::default();
        let mut here = channels.open(name("1"));
        let mut gone = channels.open(name("1"));
        here.finished(ChannelWork::Read, 1, 10, 10);
        gone.finished(ChannelWork::Read, 1, 20, 20);
        drop(gone);
        let both = channels.take();
        assert_eq!((both.len(), both[0].reads, both[0].channels), (1, 2, 2));
        let one = channels.take();
        assert_eq!((one[0].reads, one[0].channels), (0, 1));
    }

    #[test]
    fn very_many_connections_are_told_apart_by_path_only() {
        let channels = Channels::default();
        let mut writers: Vec<_> = (0..100).map(|at| channels.open(name(&at.to_string()))).collect();
        writers.iter_mut().for_each(|writer| writer.finished(ChannelWork::Read, 1, 10, 10));
        let taken = channels.take();
        let seen: Vec<_> = taken.iter().map(|one| (one.kind, one.name.as_str(), one.reads, one.channels)).collect();
        assert_eq!(seen, [(ChannelKind::Path, "10.0.0.1", 100, 100)]);
    }
}
