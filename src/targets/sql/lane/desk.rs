//! Where a lane leaves what a session is to do next, and the session's task finds it: nothing is allocated for an operation.

use std::future::poll_fn;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use super::seat::Seat;
use crate::targets::sql::session::{SqlServers, SqlSession as _};

/// Something that a session does, again and again, in the same room.
pub(super) trait Job<D: SqlServers>: Default + Send + 'static {
    /// What comes of it.
    type Answer: Send + 'static;

    /// Has the session at a seat do it.
    fn done_at(&mut self, seat: &Seat<D>) -> impl Future<Output = Result<Self::Answer, D::Error>> + Send;
}

/// One session's place for its next job.
#[derive(Debug, Default)]
pub(super) struct Desk<J>(Mutex<Inside<J>>);

#[derive(Debug, Default)]
struct Inside<J> {
    /// Room for a job; once it is laid, the job.
    job: J,
    /// A job was laid and not yet taken: whether the session's counters are to be reported after it.
    laid: Option<bool>,
    waiting: Option<Waker>,
    /// No more jobs will come.
    is_closed: bool,
}

impl<J> Desk<J> {
    fn lock(&self) -> MutexGuard<'_, Inside<J>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lays a job, written by `write` into the room of an earlier one. It is taken when the session's task is woken.
    pub(super) fn lay(&self, is_flushing: bool, write: impl FnOnce(&mut J)) {
        let mut inside = self.lock();
        write(&mut inside.job);
        inside.laid = Some(is_flushing);
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
    /// nothing once the desk is closed.
    async fn take(&self, job: &mut J) -> Option<bool> {
        poll_fn(|task| {
            let mut inside = self.lock();
            if inside.is_closed {
                return Poll::Ready(None);
            }
            if let Some(is_flushing) = inside.laid.take() {
                mem::swap(job, &mut inside.job);
                return Poll::Ready(Some(is_flushing));
            }
            inside.waiting = Some(task.waker().clone());
            Poll::Pending
        })
        .await
    }
}

/// Does a session's jobs until its desk is closed, and hands over what comes of each.
pub(super) async fn work<D: SqlServers, J: Job<D>>(
    seat: Arc<Seat<D>>,
    desk: Arc<Desk<J>>,
    hand_over: impl Fn(Result<J::Answer, D::Error>) + Send,
) {
    let mut job = J::default();
    while let Some(is_flushing) = desk.take(&mut job).await {
        hand_over(job.done_at(&seat).await);
        // Sent at once, so before the session's next operation, and not waited for by it.
        if is_flushing && let Some(session) = seat.taken() {
            session.flush_statistics().await;
        }
    }
}
