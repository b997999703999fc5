//! A test that goes on: what its connections share.

use std::collections::BTreeSet;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Files;
use crate::network::wire::{Flow, Open, Seen, Session, WireError};
use measure::os::EndWatch;
use model::units::Bytes;

/// Connections that bytes still come over are waited for so long when a test ends.
const SETTLES_IN: Duration = Duration::from_secs(2);
/// A connection over which nothing came for so long has nothing more to give.
const SETTLED_FOR: Duration = Duration::from_millis(50);
/// Most memory that requests which are written may take, all of them at once.
pub(super) const MAX_HELD_BYTES: u64 = 1 << 30;
/// How long threads may take to leave after their connections were closed.
const LEAVES_IN: Duration = Duration::from_secs(5);

/// What connections count. Each is written by many threads and read ten times a second.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) received_bytes: AtomicU64,
    pub(super) sent_bytes: AtomicU64,
    pub(super) requests: AtomicU64,
    pub(super) datagrams: AtomicU64,
    pub(super) strange_datagrams: AtomicU64,
    pub(super) writes: AtomicU64,
    pub(super) written_bytes: AtomicU64,
    pub(super) write_ns: AtomicU64,
}

/// Adds to a count.
pub(super) fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}

/// One test.
#[derive(Debug)]
pub(super) struct Test {
    pub(super) number: u64,
    /// Whose it is.
    pub(super) from: SocketAddr,
    pub(super) session: Session,
    pub(super) open: Open,
    pub(super) since: Instant,
    pub(super) files: Option<Files>,
    pub(super) up: Pace,
    pub(super) down: Pace,
    pub(super) counts: Counts,
    flows: Mutex<Flows>,
    /// What this end sees of itself.
    watch: Mutex<EndWatch>,
    live: AtomicU32,
    /// Memory of all its connections for requests that are to be written.
    pub(super) held_bytes: AtomicU64,
    is_over: AtomicBool,
    trouble: Mutex<Option<String>>,
}

/// Memory of a connection for requests that are to be written, until it ends.
#[derive(Debug)]
pub(super) struct Held<'t> {
    /// That of all connections.
    all: &'t AtomicU64,
    bytes: u64,
}

impl<'t> Held<'t> {
    /// What a connection holds before it has a request to write; `all` counts what all of them hold.
    pub(super) fn nothing(all: &'t AtomicU64) -> Self {
        Self { all, bytes: 0 }
    }

    /// Makes room for a request of `bytes`.
    ///
    /// # Errors
    /// When all connections would hold too much together.
    pub(super) fn grow_to(&mut self, bytes: u64) -> Result<(), WireError> {
        let more = bytes.saturating_sub(self.bytes);
        let before = self.all.fetch_add(more, Ordering::Relaxed);
        self.bytes += more;
        if before.saturating_add(more) > MAX_HELD_BYTES {
            let why =
                format!("requests that are to be written would take more than {} of memory", Bytes(MAX_HELD_BYTES));
            return Err(WireError::Malformed { what: "a request", why });
        }
        Ok(())
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
struct Flows {
    /// Held until the test has ended, so that what the kernel says of them can be read.
    streams: Vec<Arc<TcpStream>>,
    numbers: BTreeSet<u32>,
}

/// Says that a connection is there, for as long as it lives.
#[derive(Debug)]
pub(super) struct Attending<'t>(&'t Test);

impl Drop for Attending<'_> {
    fn drop(&mut self) {
        self.0.live.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Test {
    pub(super) fn new(
        number: u64,
        from: SocketAddr,
        session: Session,
        open: Open,
        files: Option<Files>,
        max_bytes_per_s: Option<u64>,
        watch: EndWatch,
    ) -> Self {
        let down = Pace::lowest([max_bytes_per_s, open.down_bytes_per_s]);
        Self {
            number,
            from,
            session,
            open,
            since: Instant::now(),
            files,
            up: Pace::lowest([max_bytes_per_s, None]),
            down,
            counts: Counts::default(),
            flows: Mutex::default(),
            watch: Mutex::new(watch),
            live: AtomicU32::new(0),
            held_bytes: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            trouble: Mutex::default(),
        }
    }

    fn flows(&self) -> MutexGuard<'_, Flows> {
        self.flows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nothing more is to be done.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Takes a connection in; absent where there are as many as were asked for, or one of this number.
    pub(super) fn attend(&self, flow: Flow, stream: &Arc<TcpStream>) -> Option<Attending<'_>> {
        let mut flows = self.flows();
        if self.is_over() || flow.number >= self.open.connections || !flows.numbers.insert(flow.number) {
            return None;
        }
        // What its kernel counts from here on is the test's.
        self.watch().add(stream);
        flows.streams.push(Arc::clone(stream));
        self.live.fetch_add(1, Ordering::Relaxed);
        Some(Attending(self))
    }

    /// What this end sees of itself.
    pub(super) fn watch(&self) -> MutexGuard<'_, EndWatch> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the first thing that went wrong.
    pub(super) fn has_trouble(&self, what: &str) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        trouble.get_or_insert_with(|| what.to_owned());
    }

    /// Ends all connections, those over which bytes still come after these have come.
    pub(super) fn end(&self, is_hurried: bool) {
        let begun = Instant::now();
        let moved = || self.counts.received_bytes.load(Ordering::Relaxed);
        let mut last = (moved(), begun);
        while !is_hurried && self.live.load(Ordering::Relaxed) > 0 && begun.elapsed() < SETTLES_IN {
            std::thread::sleep(Duration::from_millis(1));
            if moved() != last.0 {
                last = (moved(), Instant::now());
            } else if last.1.elapsed() > SETTLED_FOR {
                break;
            }
        }
        self.is_over.store(true, Ordering::Relaxed);
        for stream in &self.flows().streams {
            let _ = stream.shutdown(Shutdown::Both);
        }
        let closed = Instant::now();
        while self.live.load(Ordering::Relaxed) > 0 && closed.elapsed() < LEAVES_IN {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// What was counted until now; without what the kernel says.
    pub(super) fn seen(&self, begun: Option<Instant>) -> Seen {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Seen {
            at_ns: begun.map_or(0, |begun| u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX)),
            connections: self.live.load(Ordering::Relaxed),
            requests: of(&self.counts.requests),
            datagrams: of(&self.counts.datagrams),
            strange_datagrams: of(&self.counts.strange_datagrams),
            writes: of(&self.counts.writes),
            written_bytes: of(&self.counts.written_bytes),
            write_ns: of(&self.counts.write_ns),
            trouble: self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            ..Seen::default()
        }
    }

    /// Bytes sent and received until now.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (of(&self.counts.sent_bytes), of(&self.counts.received_bytes))
    }
}

// Keeps what all connections move together below a rate.

/// What may be made up for after a pause.
const BURST_NS: u64 = 10_000_000;
/// Shortest and longest piece that is moved at once.
const PIECE_BYTES: (u64, u64) = (4 << 10, 1 << 20);
/// A pause that is longer looks in between whether the test is over.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A rate, or none.
#[derive(Debug)]
pub(super) struct Pace {
    bytes_per_s: Option<u64>,
    begun: Instant,
    /// When what has been moved so far is paid for.
    paid_ns: AtomicU64,
}

impl Pace {
    /// The lower of two rates; of none, none.
    pub(super) fn lowest(rates: [Option<u64>; 2]) -> Self {
        let bytes_per_s = rates.into_iter().flatten().min().map(|rate| rate.max(1));
        Self { bytes_per_s, begun: Instant::now(), paid_ns: AtomicU64::new(0) }
    }

    /// How much is moved at once, so that connections share fairly.
    pub(super) fn piece_bytes(&self) -> usize {
        let (least, most) = PIECE_BYTES;
        let piece = self.bytes_per_s.map_or(most, |rate| (rate / 50).clamp(least, most));
        usize::try_from(piece).unwrap_or(usize::MAX)
    }

    /// Books `bytes` that were moved, and waits until they are paid for or `is_over`.
    pub(super) fn pass(&self, bytes: usize, is_over: impl Fn() -> bool) {
        let Some(rate) = self.bytes_per_s else { return };
        let cost_ns = (bytes as u128 * 1_000_000_000 / u128::from(rate)).try_into().unwrap_or(u64::MAX);
        let now = self.now_ns();
        let paid = |paid: u64| paid.max(now.saturating_sub(BURST_NS)).saturating_add(cost_ns);
        let before = self.paid_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |before| Some(paid(before)));
        let until = before.map_or(now, paid);
        while !is_over() {
            let left = until.saturating_sub(self.now_ns());
            if left == 0 {
                return;
            }
            std::thread::sleep(LOOK_EVERY.min(Duration::from_nanos(left)));
        }
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_faster_than_the_lower_rate_and_nobody_waits_without_one() {
        let begun = Instant::now();
        let pace = Pace::lowest([Some(50_000_000), Some(1_000_000)]);
        assert_eq!(pace.piece_bytes(), 20_000);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..5).for_each(|_| pace.pass(10_000, || false)));
            }
        });
        assert!(begun.elapsed() >= Duration::from_millis(190), "{:?}", begun.elapsed());
        // Waits for a year, and is over.
        Pace::lowest([Some(1), None]).pass(1 << 30, || true);
        Pace::lowest([None, None]).pass(usize::MAX, || false);
    }

    #[test]
    fn memory_for_requests_is_counted_where_it_is_used() {
        let all = AtomicU64::new(0);
        let [mut one, mut other] = [Held::nothing(&all), Held::nothing(&all)];
        one.grow_to(MAX_HELD_BYTES - 8).unwrap();
        one.grow_to(100).unwrap();
        other.grow_to(8).unwrap();
        let error = other.grow_to(9).unwrap_err().to_string();
        assert!(error.contains("more than 1 GiB of memory"), "{error}");
        drop(one);
        Held::nothing(&all).grow_to(MAX_HELD_BYTES - 9).unwrap();
        drop(other);
        assert_eq!(all.load(Ordering::Relaxed), 0);
    }
}
