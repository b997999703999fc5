//! Several connections that work through a list of jobs side by side.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use measure::os::start_thread;
use targets::TargetError;

/// How soon whoever waits for the server notices that it should end.
pub const LOOK_AROUND: Duration = Duration::from_millis(100);
/// How long a server may take to cancel a statement, and how long asking it to may take.
pub(crate) const CANCEL_PATIENCE: Duration = Duration::from_secs(3);

/// What ends work early: the user, or the failure of another stream.
#[derive(Clone, Copy)]
pub struct Halt<'a> {
    pub(crate) stop: &'a AtomicBool,
    pub(crate) failed: &'a AtomicBool,
}

/// Nobody asks short work to end.
static NEVER: AtomicBool = AtomicBool::new(false);

impl<'a> Halt<'a> {
    pub(crate) const NEVER: Halt<'static> = Halt { stop: &NEVER, failed: &NEVER };

    pub(crate) fn on(stop: &'a AtomicBool) -> Self {
        Self { stop, failed: &NEVER }
    }

    /// Whether the user ended it or a stream failed.
    pub fn is_set(self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed)
    }

    /// # Errors
    /// [`TargetError::Interrupted`] if work should end.
    pub fn check(self) -> Result<(), TargetError> {
        if self.is_set() { Err(TargetError::Interrupted) } else { Ok(()) }
    }

    /// Waits for work of a session. When it should end, work that has begun is given `patience`; then `cancel` has the server break it
    /// off, and nothing comes of it.
    pub(crate) async fn unless_set<T>(
        self,
        patience: Duration,
        work: impl Future<Output = T>,
        cancel: impl Future,
    ) -> Option<T> {
        let mut work = pin!(work);
        while !self.is_set() {
            if let Ok(done) = timeout(LOOK_AROUND, work.as_mut()).await {
                return Some(done);
            }
        }
        if let Ok(done) = timeout(patience, work.as_mut()).await {
            return Some(done);
        }
        // Neither of the two is worth an error: the server also gives up when the connection is closed.
        let _ = timeout(CANCEL_PATIENCE, cancel).await;
        let _ = timeout(CANCEL_PATIENCE, work).await;
        None
    }
}

/// What drives one connection.
///
/// # Errors
/// When the system has none.
pub(crate) fn runtime() -> Result<Runtime, TargetError> {
    let kernel = |source| TargetError::Kernel { action: "make a runtime for a connection", source };
    Builder::new_current_thread().enable_all().build().map_err(kernel)
}

/// Who works.
pub(crate) struct Streams<'a> {
    /// How many connections, at most one for each job.
    pub(crate) count: u32,
    /// Ends the work early.
    pub(crate) stop: &'a AtomicBool,
    /// Reported about ten times a second, on the calling thread, how much was added to [`Stream::done`].
    pub(crate) notify: &'a dyn Fn(u64),
}

/// What one stream shares with the others.
pub struct Stream<'a> {
    /// When it is to end.
    pub halt: Halt<'a>,
    done: &'a AtomicU64,
}

impl Stream<'_> {
    /// Counts work that was done.
    pub fn done(&self, amount: u64) {
        self.done.fetch_add(amount, Ordering::Relaxed);
    }
}

/// Jobs in their order, for [`Streams::run`].
pub(crate) struct Queue<J>(Mutex<VecDeque<J>>);

impl<J> Queue<J> {
    pub(crate) fn new(jobs: impl IntoIterator<Item = J>) -> Self {
        Self(Mutex::new(jobs.into_iter().collect()))
    }

    pub(crate) fn next(&self, _ended: Option<J>) -> Option<J> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

impl Streams<'_> {
    /// Works until `next` has no more jobs; it is handed the job that the stream has ended. Each stream connects by `open` and
    /// keeps what that gives it from job to job.
    ///
    /// # Errors
    /// The first failure of any stream; [`TargetError::Interrupted`] when it was stopped before its end.
    pub(crate) fn run<J, S>(
        &self,
        open: impl Fn(Halt<'_>) -> Result<S, TargetError> + Sync,
        next: impl Fn(Option<J>) -> Option<J> + Sync,
        work: impl Fn(&mut S, &J, &Stream<'_>) -> Result<(), TargetError> + Sync,
    ) -> Result<(), TargetError> {
        let (done, failed) = (AtomicU64::new(0), AtomicBool::new(false));
        let failure = Mutex::new(None);
        let fail = |error| {
            failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            failed.store(true, Ordering::Relaxed);
        };
        let halt = Halt { stop: self.stop, failed: &failed };
        let serve = || {
            let Some(mut job) = next(None) else { return Ok(()) };
            let mut session = open(halt)?;
            let stream = Stream { halt, done: &done };
            loop {
                halt.check()?;
                work(&mut session, &job, &stream)?;
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
                (self.notify)(done.load(Ordering::Relaxed));
            }
        });
        (self.notify)(done.load(Ordering::Relaxed));
        match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}
