//! Where a lane leaves what a session is to do next, and the session's task finds it: nothing is allocated for an operation.

use std::future::poll_fn;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use super::slot::Slot;
use crate::ServerError;
use crate::session::{SqlServers, SqlSession as _};

/// Something that a session does, again and again, in the same room.
pub(super) trait Job<D: SqlServers>: Default + Send + 'static {
    /// What a lane has to know of such work.
    type Work: Sync;
    /// What comes of it.
    type Answer: Send + 'static;

    /// Has the session at a slot do it.
    fn run_on(&mut self, slot: &Slot<D>) -> impl Future<Output = Result<Self::Answer, ServerError>> + Send;
}

/// One session's place for its next job.
#[derive(Debug, Default)]
pub(super) struct Inbox<J>(Mutex<Inside<J>>);

#[derive(Debug, Default)]
struct Inside<J> {
    /// Room for a job; once it is given, the job.
    job: J,
    /// A job was given and not yet taken: whether the session's counters are to be reported after it.
    given: Option<bool>,
    waiting: Option<Waker>,
    /// No more jobs will come.
    is_closed: bool,
}

impl<J> Inbox<J> {
    fn lock(&self) -> MutexGuard<'_, Inside<J>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves a job, written by `write` into the room of an earlier one. It is taken when the session's task is woken.
    pub(super) fn put(&self, is_flushing: bool, write: impl FnOnce(&mut J)) {
        let mut inside = self.lock();
        write(&mut inside.job);
        inside.given = Some(is_flushing);
    }

    /// Wakes the session's task. Costs a system call outside of the runtime that drives it.
    pub(super) fn wake(&self) {
        let waiting = self.lock().waiting.take();
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }

    /// No more jobs come: the session's task ends after what it does.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.wake();
    }

    /// Takes the next job, in exchange for the room of the last one, and gives whether the counters are to be reported after it;
    /// nothing once the inbox is closed.
    async fn take(&self, job: &mut J) -> Option<bool> {
        poll_fn(|task| {
            let mut inside = self.lock();
            if inside.is_closed {
                return Poll::Ready(None);
            }
            if let Some(is_flushing) = inside.given.take() {
                mem::swap(job, &mut inside.job);
                return Poll::Ready(Some(is_flushing));
            }
            inside.waiting = Some(task.waker().clone());
            Poll::Pending
        })
        .await
    }
}

/// Does a session's jobs until its inbox is closed, and hands over what comes of each.
pub(super) async fn work<D: SqlServers, J: Job<D>>(
    slot: Arc<Slot<D>>,
    inbox: Arc<Inbox<J>>,
    hand_over: impl Fn(Result<J::Answer, ServerError>) + Send,
) {
    let mut job = J::default();
    while let Some(is_flushing) = inbox.take(&mut job).await {
        hand_over(job.run_on(&slot).await);
        // Sent at once, so before the session's next operation, and not waited for by it.
        if is_flushing && let Some(session) = slot.taken() {
            session.flush_statistics().await;
        }
    }
}
