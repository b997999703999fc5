//! Pauses inside transactions: whoever pauses is not at work on the server, and yet not lost.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::Notify;

/// Ends the pauses of one session once it is cancelled.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    is_set: AtomicBool,
    is_resting: AtomicBool,
    rung: Notify,
}

impl Alarm {
    /// Ends the pause that goes on, and all to come.
    pub(crate) fn ring(&self) {
        self.is_set.store(true, Ordering::Release);
        self.rung.notify_waiters();
    }

    /// Whether it has rung.
    pub(crate) fn has_rung(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// Does something, unless it rings before that is done.
    pub(crate) async fn unless_rung<T>(&self, work: impl Future<Output = T>) -> Option<T> {
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

    /// Whether its session pauses just now.
    pub(crate) fn is_resting(&self) -> bool {
        self.is_resting.load(Ordering::Acquire)
    }

    /// Pauses for so long, or until it rings. Returns how long that was, in nanoseconds.
    pub(super) async fn rest(&self, ns: u64) -> u64 {
        let begun = std::time::Instant::now();
        self.is_resting.store(true, Ordering::Release);
        self.unless_rung(tokio::time::sleep(Duration::from_nanos(ns))).await;
        self.is_resting.store(false, Ordering::Release);
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
        let alarm = Alarm::default();
        assert!(runtime.block_on(alarm.rest(2_000_000)) >= 2_000_000);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !alarm.is_resting() {
                    std::thread::yield_now();
                }
                alarm.ring();
            });
            assert!(runtime.block_on(alarm.rest(HOUR_NS)) < HOUR_NS);
        });
        assert!(!alarm.is_resting());
        assert!(runtime.block_on(alarm.rest(HOUR_NS)) < HOUR_NS, "it has rung before");
    }
}
