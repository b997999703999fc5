//! What all threads of a server share.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::event::Event;
use super::options::{Report, ServerOptions};
use super::test::Test;
use crate::network::wire::Key;

/// Those that are turned away are reported one by one up to here in a period.
const REPORTED_AWAY: u64 = 10;
const AWAY_PERIOD: Duration = Duration::from_secs(10);

/// A server that is serving.
pub(super) struct Shared<'s> {
    pub(super) options: &'s ServerOptions,
    pub(super) address: SocketAddr,
    pub(super) key: Key,
    asked_to_stop: &'s AtomicBool,
    report: Report<'s>,
    place: Mutex<TestSlot>,
    away: Mutex<Away>,
    tests: AtomicU64,
    /// Control connections.
    pub(super) controls: AtomicU32,
    is_done: AtomicBool,
}

/// Where there is room for one test.
struct TestSlot {
    test: Option<Arc<Test>>,
    /// Whoever prepares one, and since when.
    taken: Option<(SocketAddr, Instant)>,
    empty_since: Instant,
}

struct Away {
    since: Instant,
    reported: u64,
    silent: u64,
}

/// Keeps the one place for a test, until it is dropped.
pub(super) struct Taken<'h, 's>(&'h Shared<'s>);

impl Drop for Taken<'_, '_> {
    fn drop(&mut self) {
        let mut place = self.0.place();
        *place = TestSlot { test: None, taken: None, empty_since: Instant::now() };
    }
}

impl Taken<'_, '_> {
    /// From now on data connections may come.
    pub(super) fn open(&self, test: &Arc<Test>) {
        self.0.place().test = Some(Arc::clone(test));
    }
}

impl<'s> Shared<'s> {
    pub(super) fn new(
        options: &'s ServerOptions,
        address: SocketAddr,
        asked_to_stop: &'s AtomicBool,
        report: Report<'s>,
    ) -> Self {
        let now = Instant::now();
        Self {
            options,
            address,
            key: options.token.key(),
            asked_to_stop,
            report,
            place: Mutex::new(TestSlot { test: None, taken: None, empty_since: now }),
            away: Mutex::new(Away { since: now, reported: 0, silent: 0 }),
            tests: AtomicU64::new(0),
            controls: AtomicU32::new(0),
            is_done: AtomicBool::new(false),
        }
    }

    fn place(&self) -> MutexGuard<'_, TestSlot> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn report(&self, event: &Event) {
        (self.report)(event);
    }

    /// Reports somebody who was turned away, as long as there are few: nobody fills a log who has no token.
    pub(super) fn turned_away(&self, from: IpAddr, why: &dyn std::fmt::Display) {
        let mut away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        if away.since.elapsed() > AWAY_PERIOD {
            (away.since, away.reported) = (Instant::now(), 0);
        }
        if away.reported == REPORTED_AWAY {
            away.silent += 1;
            return;
        }
        away.reported += 1;
        let more = std::mem::take(&mut away.silent);
        drop(away);
        self.report(&Event::TurnedAway { from: from.to_canonical(), why: why.to_string(), more });
    }

    /// Whether the server is to end.
    pub(super) fn is_ending(&self) -> bool {
        self.asked_to_stop.load(Ordering::Relaxed) || self.is_done.load(Ordering::Relaxed)
    }

    /// Whether nobody has had a test for as long as the server waits.
    pub(super) fn is_idle(&self) -> bool {
        let place = self.place();
        let waits = self.options.idle;
        place.taken.is_none() && waits.is_some_and(|waits| place.empty_since.elapsed() >= waits)
    }

    /// Ends the server, since what it was there for is done.
    pub(super) fn is_done(&self) {
        self.is_done.store(true, Ordering::Relaxed);
    }

    /// The test that goes on.
    pub(super) fn test(&self) -> Option<Arc<Test>> {
        self.place().test.clone()
    }

    /// Takes the one place for a test, or says who has it.
    pub(super) fn take_place(&self, from: SocketAddr) -> Result<Taken<'_, 's>, String> {
        let mut place = self.place();
        if let Some((who, since)) = place.taken {
            let seconds = since.elapsed().as_secs();
            return Err(format!("a test of {} goes on, since {seconds} s", who.ip().to_canonical()));
        }
        place.taken = Some((from, Instant::now()));
        Ok(Taken(self))
    }

    pub(super) fn next_test(&self) -> u64 {
        self.tests.fetch_add(1, Ordering::Relaxed) + 1
    }
}
