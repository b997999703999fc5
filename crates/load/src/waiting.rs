//! What a step waits for after its window. A thread says so that asks nothing of the storage: every other one may sleep in the kernel
//! until storage answers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Duration;

use measure::{Clock, Timeline};
use model::units::Nanos;

/// So long a wait is worth a word.
const FIRST: Nanos = Nanos::seconds(2);
/// After it, a wait is worth another one so often.
const AGAIN: Nanos = Nanos::seconds(5);
/// How often the thread looks whether the window was closed early.
const LOOK: Duration = Duration::from_millis(500);

/// What a step waits for after its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// How long ago the window closed.
    pub since: Nanos,
    /// Requests that are under way. Without any, it is this process itself that gets no answer, as when it looks at a file.
    pub requests: u64,
}

/// Requests that a lane has under way, as its thread last counted them.
#[derive(Debug, Default)]
pub(super) struct UnderWay(AtomicU64);

impl UnderWay {
    /// Tells others.
    #[inline]
    pub(super) fn set(&self, requests: usize) {
        self.0.store(requests as u64, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Ends the watch when it is dropped: a step that panics must not leave a thread behind that its scope waits for.
pub(super) struct Over<'a> {
    flag: &'a AtomicBool,
    watcher: Option<Thread>,
}

impl<'a> Over<'a> {
    pub(super) fn new(flag: &'a AtomicBool, watcher: Option<Thread>) -> Self {
        Self { flag, watcher }
    }
}

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.flag.store(true, Ordering::Release);
        self.watcher.iter().for_each(Thread::unpark);
    }
}

/// Reports for how long, and for how many `requests`, the step waits after its window, until it is `over`.
pub(super) fn watch(
    clock: Clock,
    timeline: &OnceLock<Arc<Timeline>>,
    over: &AtomicBool,
    requests: &dyn Fn() -> u64,
    on_wait: &dyn Fn(Waiting),
) {
    let mut next_ns = FIRST.0;
    while !over.load(Ordering::Acquire) {
        // A step that never began has no window.
        let begun = timeline.get().filter(|timeline| timeline.closed_at_ns() > timeline.start_ns());
        let closed_at_ns = begun.map_or(u64::MAX, |timeline| timeline.closed_at_ns());
        let waited_ns = clock.now_ns().saturating_sub(closed_at_ns);
        if waited_ns >= next_ns {
            on_wait(Waiting { since: Nanos(waited_ns), requests: requests() });
            next_ns = (waited_ns / AGAIN.0 + 1) * AGAIN.0;
        }
        std::thread::park_timeout(LOOK);
    }
}
