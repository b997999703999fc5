//! A thread for each session: the driver waits for every answer, and the thread of a lane must not.
//!
//! The two meet in one place that holds what is asked and what was answered, so nothing is allocated for an operation.

use std::future::poll_fn;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use super::driver::STACK_BYTES;
use super::error::OracleError;
use crate::targets::sql::ServerTimes;
use crate::workload::SlobOperation;

/// What a session is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Job {
    /// Execute an operation.
    Operation(SlobOperation),
    /// Prepare for operations like this one.
    Rehearsal(SlobOperation),
    /// Have the server execute the operations that go with it.
    Batch,
}

/// What it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reply {
    /// Rows that an operation touched; none in a rehearsal.
    Touched(u64),
    /// What a batch took.
    Times(ServerTimes),
}

/// What does a session's work, on the session's thread.
pub(super) trait Work: Sized {
    /// Begins, on that thread.
    fn open(self) -> Result<(Self, Opened), OracleError>;
    /// Does a job. `operations` go with a batch, `filling` with updates.
    fn work(&mut self, job: Job, operations: &[SlobOperation], filling: &[u8]) -> Result<Reply, OracleError>;
}

/// What is known of a session once it is open.
pub(super) type Opened = super::connect::SessionId;

/// The lane's end of a session's thread. The thread ends, and closes the connection, when this is dropped and what was asked last
/// has been answered.
#[derive(Debug)]
pub(super) struct Worker(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    asked: Condvar,
}

#[derive(Debug, Default)]
struct State {
    job: Option<Job>,
    operations: Arc<[SlobOperation]>,
    filling: Vec<u8>,
    opened: Option<Result<Opened, OracleError>>,
    reply: Option<Result<Reply, OracleError>>,
    waiting: Option<Waker>,
    /// Nobody asks any more.
    is_left: bool,
    /// Nobody answers any more.
    is_over: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        let waiting = state.waiting.take();
        drop(state);
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }
}

/// Tells the lane when the thread ends, however it does.
struct Over<'a>(&'a Shared);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.put(|state| state.is_over = true);
    }
}

impl Worker {
    /// Starts the thread, and waits until the session is open.
    pub(super) async fn start(work: impl Work + Send + 'static, node: &str) -> Result<(Self, Opened), OracleError> {
        let shared = Arc::new(Shared::default());
        let worker = Self(Arc::clone(&shared));
        let thread = std::thread::Builder::new().name("oracle-session".to_owned()).stack_size(STACK_BYTES);
        let started = thread.spawn(move || {
            let _over = Over(&shared);
            match work.open() {
                Err(error) => shared.put(|state| state.opened = Some(Err(error))),
                Ok((work, opened)) => {
                    shared.put(|state| state.opened = Some(Ok(opened)));
                    serve(work, &shared);
                }
            }
        });
        started.map_err(|error| OracleError::Unfit {
            what: format!("this system gives no thread for another session: {error}"),
            hint: Some("use fewer sessions, or allow more processes: `ulimit -u`".to_owned()),
        })?;
        let opened = worker.wait(node, |state| state.opened.take()).await?;
        Ok((worker, opened))
    }

    /// Asks the session something. It must have answered what it was asked before.
    pub(super) fn ask(&self, job: Job, operations: Arc<[SlobOperation]>, filling: &[u8]) {
        let mut state = self.0.lock();
        state.operations = operations;
        state.filling.clear();
        state.filling.extend_from_slice(filling);
        state.reply = None;
        state.job = Some(job);
        drop(state);
        self.0.asked.notify_one();
    }

    /// Waits for the answer.
    ///
    /// # Errors
    /// Those of the session, which is on `node`.
    pub(super) async fn answer(&self, node: &str) -> Result<Reply, OracleError> {
        self.wait(node, |state| state.reply.take()).await
    }

    async fn wait<T>(
        &self,
        node: &str,
        mut take: impl FnMut(&mut State) -> Option<Result<T, OracleError>>,
    ) -> Result<T, OracleError> {
        poll_fn(|task| {
            let mut state = self.0.lock();
            match take(&mut state) {
                Some(taken) => Poll::Ready(taken),
                None if state.is_over => Poll::Ready(Err(OracleError::Lost {
                    node: node.to_owned(),
                    reason: "the driver gave up on what the server sent".to_owned(),
                })),
                None => {
                    state.waiting = Some(task.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.lock().is_left = true;
        self.0.asked.notify_one();
    }
}

fn serve(mut work: impl Work, shared: &Shared) {
    let mut filling = Vec::new();
    loop {
        let mut state = shared.lock();
        let job = loop {
            match state.job.take() {
                Some(job) => break job,
                None if state.is_left => return,
                None => state = shared.asked.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        };
        let operations = std::mem::take(&mut state.operations);
        // Both sides keep their room: what was asked goes one way, the room of the last time the other.
        std::mem::swap(&mut filling, &mut state.filling);
        drop(state);
        let reply = work.work(job, &operations, &filling);
        shared.put(|state| state.reply = Some(reply));
    }
}

#[cfg(test)]
mod tests {
    use super::super::connect::SessionId;
    use super::*;
    use crate::workload::{OperationKind, RedoStress};

    struct Echo {
        calls: u64,
    }

    impl Work for Echo {
        fn open(self) -> Result<(Self, Opened), OracleError> {
            Ok((self, SessionId { sid: 7, serial: Some(1) }))
        }

        fn work(&mut self, job: Job, operations: &[SlobOperation], filling: &[u8]) -> Result<Reply, OracleError> {
            self.calls += 1;
            match job {
                Job::Operation(operation) => Ok(Reply::Touched(u64::from(operation.keys) + filling.len() as u64)),
                Job::Rehearsal(_) => panic!("as the driver does"),
                Job::Batch => Ok(Reply::Touched(operations.len() as u64 * 1000 + self.calls)),
            }
        }
    }

    fn block_on<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
    }

    #[test]
    fn answers_belong_to_what_was_asked_and_a_panic_ends_only_its_session() {
        let operation = SlobOperation {
            kind: OperationKind::Read,
            schema: 0,
            first_key: 1,
            keys: 64,
            redo_stress: RedoStress::Lite,
        };
        block_on(async {
            let (worker, id) = Worker::start(Echo { calls: 0 }, "db1").await.unwrap();
            assert_eq!(id, SessionId { sid: 7, serial: Some(1) });
            worker.ask(Job::Operation(operation), Arc::default(), b"abc");
            assert_eq!(worker.answer("db1").await.unwrap(), Reply::Touched(67));
            worker.ask(Job::Batch, [operation; 3].into(), &[]);
            assert_eq!(worker.answer("db1").await.unwrap(), Reply::Touched(3002));
            worker.ask(Job::Rehearsal(operation), Arc::default(), &[]);
            let error = worker.answer("db1").await.unwrap_err();
            assert!(matches!(error, OracleError::Lost { .. }), "{error}");
        });
    }
}
