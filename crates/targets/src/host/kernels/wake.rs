//! Two threads that wake each other: what it takes from the moment when one is woken until it has answered.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;

use rustix::thread::futex::{self, Flags};

use crate::host::pin::pin;
use measure::os::{start_thread, thread_cpu_ns};

/// Whose turn it is.
const MINE: u32 = 0;
const PARTNERS: u32 = 1;
const OVER: u32 = 2;
/// The partner says so often how much processor time it has used: asking costs more than a round trip does otherwise.
const TRIPS_PER_READING: u32 = 64;

/// A thread that answers whenever it is woken. Ends when it is dropped.
pub(in crate::host) struct Partner {
    pair: Arc<Pair>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Pair {
    turn: AtomicU32,
    cpu_ns: AtomicU64,
}

impl Pair {
    /// Sleeps while it is `turn`'s turn; whose it is then.
    fn wait_while(&self, turn: u32) -> u32 {
        loop {
            let now = self.turn.load(Ordering::Acquire);
            if now != turn {
                return now;
            }
            // Woken for nothing, or because the turn has changed meanwhile: looked at again either way.
            let _ = futex::wait(&self.turn, Flags::PRIVATE, turn, None);
        }
    }

    fn give(&self, turn: u32) {
        self.turn.store(turn, Ordering::Release);
        let _ = futex::wake(&self.turn, Flags::PRIVATE, 1);
    }
}

impl Partner {
    /// Starts one on this processor, or on any.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(in crate::host) fn start(processor: Option<u32>) -> io::Result<Self> {
        let pair = Arc::new(Pair::default());
        let its = Arc::clone(&pair);
        let thread = start_thread(|begun| {
            std::thread::Builder::new().name("partner".to_owned()).spawn(move || {
                begun.say();
                // Where it cannot be moved, it answers from another processor: slower, and no less true.
                let _ = processor.map(pin);
                for trip in (0..=u32::MAX).cycle() {
                    if its.wait_while(MINE) == OVER {
                        return;
                    }
                    if trip.is_multiple_of(TRIPS_PER_READING) {
                        its.cpu_ns.store(thread_cpu_ns(), Ordering::Relaxed);
                    }
                    its.give(MINE);
                }
            })
        })?;
        Ok(Self { pair, thread: Some(thread) })
    }

    /// Wakes it and sleeps until it has answered. False if it has ended.
    pub(in crate::host) fn round_trip(&self) -> bool {
        self.pair.give(PARTNERS);
        self.pair.wait_while(PARTNERS) == MINE
    }

    /// Processor time that it has used, as of some round trips ago.
    pub(in crate::host) fn cpu_ns(&self) -> u64 {
        self.pair.cpu_ns.load(Ordering::Relaxed)
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        self.pair.give(OVER);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_trip_is_answered_and_the_partner_ends() {
        let partner = Partner::start(None).unwrap();
        assert!((0..500).all(|_| partner.round_trip()));
        let pair = Arc::clone(&partner.pair);
        drop(partner);
        assert_eq!(Arc::strong_count(&pair), 1, "its thread has gone");
    }
}
