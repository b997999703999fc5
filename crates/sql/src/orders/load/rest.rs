//! Pauses inside transactions: whoever pauses is not at work on the server, and yet not lost.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::Notify;

/// The sessions of a run that pause just now.
#[derive(Debug)]
pub struct Resting<I>(Mutex<Vec<I>>);

impl<I> Default for Resting<I> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<I: Copy + PartialEq> Resting<I> {
    fn lock(&self) -> MutexGuard<'_, Vec<I>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those of `sessions` that pause.
    pub fn of(&self, sessions: &[I]) -> Vec<I> {
        let resting = self.lock();
        sessions.iter().copied().filter(|session| resting.contains(session)).collect()
    }

    fn add(&self, session: I) {
        self.lock().push(session);
    }

    fn remove(&self, session: I) {
        self.lock().retain(|other| *other != session);
    }
}

/// Ends the pauses of one session once it is cancelled.
#[derive(Debug, Default)]
pub struct Alarm {
    is_set: AtomicBool,
    rung: Notify,
}

impl Alarm {
    /// Ends the pause that goes on, and all to come.
    pub fn ring(&self) {
        self.is_set.store(true, Ordering::Release);
        self.rung.notify_waiters();
    }

    /// Whether it has rung.
    pub fn has_rung(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// Does something, unless it rings before that is done.
    pub async fn unless_rung<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        // Listens before it looks, so that no ringing in between is missed.
        let mut rung = pin!(self.rung.notified());
        rung.as_mut().enable();
        if self.has_rung() {
            return None;
        }
        let mut work = pin!(work);
        poll_fn(|task| match rung.as_mut().poll(task) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => work.as_mut().poll(task).map(Some),
        })
        .await
    }

    /// Pauses for so long, or until it rings. Returns how long that was, in nanoseconds.
    pub(super) async fn rest<I: Copy + PartialEq>(&self, session: I, resting: &Resting<I>, ns: u64) -> u64 {
        let begun = std::time::Instant::now();
        resting.add(session);
        self.unless_rung(tokio::time::sleep(Duration::from_nanos(ns))).await;
        resting.remove(session);
        begun.elapsed().as_nanos() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_NS: u64 = 3_600_000_000_000;

    #[test]
    fn a_pause_ends_when_it_is_over_or_when_the_alarm_rings() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (alarm, resting) = (Alarm::default(), Resting::default());
        assert!(runtime.block_on(alarm.rest(7, &resting, 2_000_000)) >= 2_000_000);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while resting.of(&[6, 7, 8]) != [7] {
                    std::thread::yield_now();
                }
                alarm.ring();
            });
            assert!(runtime.block_on(alarm.rest(7, &resting, HOUR_NS)) < HOUR_NS);
        });
        assert!(resting.of(&[7]).is_empty());
        assert!(runtime.block_on(alarm.rest(7, &resting, HOUR_NS)) < HOUR_NS, "it has rung before");
    }
}
