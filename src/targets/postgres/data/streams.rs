//! Several connections that work through a list of jobs side by side.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};

use super::session::{Access, Halt, LOOK_AROUND, Session};
use crate::measure::os::start_thread;
use crate::targets::error::TargetError;

/// Who works.
pub(super) struct Streams<'a> {
    pub(super) access: Access<'a>,
    /// How many connections, at most one for each job.
    pub(super) count: u32,
    /// Ends the work early.
    pub(super) stop: &'a AtomicBool,
    /// Reported about ten times a second, on the calling thread, how much was added to [`Stream::done`].
    pub(super) tell: &'a dyn Fn(u64),
}

/// What one stream shares with the others.
pub(super) struct Stream<'a> {
    pub(super) halt: Halt<'a>,
    done: &'a AtomicU64,
}

impl Stream<'_> {
    /// Counts work that was done.
    pub(super) fn done(&self, amount: u64) {
        self.done.fetch_add(amount, Ordering::Relaxed);
    }
}

/// Jobs in their order, for [`Streams::run`].
pub(super) struct Queue<J>(Mutex<VecDeque<J>>);

impl<J> Queue<J> {
    pub(super) fn new(jobs: impl IntoIterator<Item = J>) -> Self {
        Self(Mutex::new(jobs.into_iter().collect()))
    }

    pub(super) fn next(&self, _ended: Option<J>) -> Option<J> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

impl Streams<'_> {
    /// Works until `next` has no more jobs; it is handed the job that the stream has ended. Each stream begins by having
    /// `settings` executed, and keeps what `make` gives it from job to job.
    ///
    /// # Errors
    /// The first failure of any stream; [`TargetError::Interrupted`] when it was stopped before its end.
    pub(super) fn run<J, S>(
        &self,
        settings: &str,
        make: impl Fn() -> S + Sync,
        next: impl Fn(Option<J>) -> Option<J> + Sync,
        work: impl Fn(&Session<'_>, &mut S, &J, &Stream<'_>) -> Result<(), TargetError> + Sync,
    ) -> Result<(), TargetError> {
        let (done, failed) = (AtomicU64::new(0), AtomicBool::new(false));
        let failure = Mutex::new(None);
        let fail = |error| {
            failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            failed.store(true, Ordering::Relaxed);
        };
        let (access, halt) = (self.access, Halt { stop: self.stop, failed: &failed });
        let serve = || {
            let Some(mut job) = next(None) else { return Ok(()) };
            let session = Session::open(access)?;
            session.execute("set up a session", settings, halt)?;
            let (stream, mut kept) = (Stream { halt, done: &done }, make());
            loop {
                halt.check()?;
                work(&session, &mut kept, &job, &stream)?;
                let Some(following) = next(Some(job)) else { return Ok(()) };
                job = following;
            }
        };
        // Nothing is ever sent: the channel ends when the last thread drops its sender.
        let (sender, ended) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            for _ in 0..self.count.max(1) {
                let (sender, serve, fail) = (sender.clone(), &serve, &fail);
                let spawned = start_thread(|begun| {
                    std::thread::Builder::new().spawn_scoped(scope, move || {
                        begun.say();
                        if let Err(error) = serve() {
                            fail(error);
                        }
                        drop(sender);
                    })
                });
                if let Err(source) = spawned {
                    fail(TargetError::Kernel { action: "start a thread", source });
                    break;
                }
            }
            drop(sender);
            while ended.recv_timeout(LOOK_AROUND) == Err(mpsc::RecvTimeoutError::Timeout) {
                (self.tell)(done.load(Ordering::Relaxed));
            }
        });
        (self.tell)(done.load(Ordering::Relaxed));
        match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}
