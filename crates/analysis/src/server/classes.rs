//! How many sessions of the load a server was doing what for, and how far chance may have moved that.

use super::figures::Served;
use crate::time_parts::Range;
use model::record::{CpuTime, SessionState, Step};

/// Standard errors that bounds of a sample are wide.
const ERRORS: f64 = 2.0;
/// Sessions that wait in a state which may be a read are taken to read if by their number each read takes no longer than this, in seconds.
const SLOW_READ_S: f64 = 1.0;
/// And if for this share of those sessions, or of the processors that were free, a processor stood still for storage: who waits for a latch
/// leaves it idle.
const FOR_STORAGE: f64 = 0.5;

/// Mean numbers of sessions by what they were seen doing.
///
/// A state in which `k` sessions were seen in `n` looks has `k / n` sessions on average. Looks are taken for independent of each other, and
/// sessions too: then the variance of `k` is `k (1 - k / n / sessions)`, and at least 1, since a state that was never seen may still exist.
/// Bounds are two standard errors wide. Sessions that wait for the same lock are not independent, so that bounds of locks are narrow.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Classes {
    /// Reading data blocks, or waiting for another session that does.
    pub(crate) reads: Range,
    /// Waiting for the log.
    pub(crate) log: Range,
    /// Waiting for locks of other transactions.
    pub(crate) locks: Range,
    /// Waiting for anything else.
    pub(crate) other: Range,
    /// Using a processor, or wanting one.
    pub(crate) processor: Range,
    /// One of both: using a processor or reading, where a server does not distinguish them. Waits for row locks that it timed are not in it.
    pub(crate) either: Range,
}

impl Classes {
    /// What servers' sessions were seen doing, of a load of so many sessions; nothing of servers at which nothing looked.
    pub(crate) fn of(served: &Served<'_>, sessions: f64) -> Self {
        let sum = |states: &[SessionState]| {
            let (mut mean, mut variance) = (0.0, 0.0);
            for (looks, samples) in served.samples(states) {
                let (looks, samples) = (looks as f64, samples as f64);
                let alone = if sessions > 0.0 { (1.0 - samples / looks / sessions).max(0.0) } else { 1.0 };
                mean += samples / looks;
                variance += (samples * alone).max(1.0) / (looks * looks);
            }
            let error = ERRORS * variance.sqrt();
            Range::new(mean - error, mean, mean + error)
        };
        let either = sum(&[SessionState::ProcessorOrRead]);
        // Most servers distinguish them, and then it is no state that chance missed.
        let mut either = if either.likely > 0.0 { either } else { Range::default() };
        let mut locks = sum(&[SessionState::Lock]);
        // InnoDB says of a session that waits for a row only that it updates, and times these waits.
        if either.likely > 0.0
            && let Some(timed) = served.lock_seconds_per_s()
        {
            let waited = |sessions: f64| sessions.min(timed);
            let rest = |sessions: f64| (sessions - timed).max(0.0);
            locks = locks.and(Range::new(waited(either.least), waited(either.likely), waited(either.most)));
            either = Range::new(rest(either.least), rest(either.likely), rest(either.most));
        }
        Self {
            reads: sum(&[SessionState::Read, SessionState::ReadElsewhere]),
            log: sum(&[SessionState::LogWrite, SessionState::Log]),
            locks,
            other: sum(&[SessionState::Other]),
            processor: sum(&[SessionState::Processor]),
            either,
        }
    }

    /// How many sessions read, of those that use a processor or read: as long as the server timed reads, or else those that neither run nor
    /// are ready to, of a server whose processes can be seen. Threads that are no sessions run as well, so that it is at least so many. 0 where
    /// that is not known, where there were too few reads to wait for, or where the machine's processors did not wait for storage.
    pub(crate) fn reading(&self, served: &Served<'_>, step: &Step) -> f64 {
        let either = self.either.likely;
        let untimed = || {
            let waiting = either - served.processors()? - served.ready()?;
            let CpuTime { iowait_ns, idle_ns, .. } = step.host_cpu?;
            let processors = |ns: u64| ns as f64 / step.window.duration_ns.max(1) as f64;
            let stood_still = processors(iowait_ns?);
            // A processor stands still for storage once, however many sessions of it wait.
            let most = waiting.min(stood_still + processors(idle_ns?));
            let is_for_storage = stood_still > 0.0 && stood_still >= FOR_STORAGE * most;
            (is_for_storage && waiting <= served.reads_per_s()? * SLOW_READ_S).then_some(waiting)
        };
        served.read_seconds_per_s().map(|timed| timed.min(either)).or_else(untimed).unwrap_or(0.0).max(0.0)
    }

    /// Sessions that waited for something which the server names.
    pub(crate) fn waiting(&self) -> f64 {
        [self.reads, self.log, self.locks, self.other].iter().map(|range| range.likely).sum()
    }
}
