//! A thread for each session: the driver waits for every answer, and the thread of a lane must not.
//!
//! The two meet in one place that holds what is asked and what was answered, so nothing is allocated for an operation.

use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use super::connect::Connector;
use super::driver::STACK_BYTES;
use super::error::ORACLE;
use ::sql::{ServerError, SessionId, SqlSession};

/// What does a session's work, on the session's thread.
pub trait Work: Sized {
    /// What it is asked, in room that both sides use again and again.
    type Request: Default + Send + 'static;
    /// What it answers.
    type Reply: Send + 'static;

    /// Begins, on that thread.
    fn open(self) -> Result<(Self, Opened), ServerError>;
    /// Does what is asked.
    fn work(&mut self, asked: &Self::Request) -> Result<Self::Reply, ServerError>;
}

/// What is known of a session once it is open.
pub type Opened = SessionId;

/// The lane's end of a session's thread. The thread ends, and closes the connection, when this is dropped and what was asked last
/// has been answered.
#[derive(Debug)]
pub(super) struct Worker<W: Work>(Arc<Shared<W>>);

struct Shared<W: Work> {
    state: Mutex<State<W>>,
    asked: Condvar,
}

impl<W: Work> fmt::Debug for Shared<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

struct State<W: Work> {
    asked: W::Request,
    /// The thread has not begun with it.
    is_asked: bool,
    opened: Option<Result<Opened, ServerError>>,
    reply: Option<Result<W::Reply, ServerError>>,
    waiting: Option<Waker>,
    /// Nobody asks any more.
    is_left: bool,
    /// Nobody answers any more.
    is_over: bool,
}

impl<W: Work> Shared<W> {
    fn new() -> Self {
        let state = State {
            asked: W::Request::default(),
            is_asked: false,
            opened: None,
            reply: None,
            waiting: None,
            is_left: false,
            is_over: false,
        };
        Self { state: Mutex::new(state), asked: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State<W>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, change: impl FnOnce(&mut State<W>)) {
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
struct Over<'a, W: Work>(&'a Shared<W>);

impl<W: Work> Drop for Over<'_, W> {
    fn drop(&mut self) {
        self.0.put(|state| state.is_over = true);
    }
}

impl<W: Work + Send + 'static> Worker<W> {
    /// Starts the thread, and waits until the session is open.
    pub(super) async fn start(work: W, node: &str) -> Result<(Self, Opened), ServerError> {
        let shared = Arc::new(Shared::new());
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
        started.map_err(|error| ServerError::Unfit {
            what: format!("this system gives no thread for another session: {error}"),
            hint: Some("use fewer sessions, or allow more processes: `ulimit -u`".to_owned()),
        })?;
        let opened = worker.wait(node, |state| state.opened.take()).await?;
        Ok((worker, opened))
    }

    /// Asks the session what `ask` puts into the room for it. It must have answered what it was asked before.
    pub(super) fn ask(&self, ask: impl FnOnce(&mut W::Request)) {
        let mut state = self.0.lock();
        ask(&mut state.asked);
        (state.reply, state.is_asked) = (None, true);
        drop(state);
        self.0.asked.notify_one();
    }

    /// Waits for the answer.
    ///
    /// # Errors
    /// Those of the session, which is on `node`.
    pub(super) async fn answer(&self, node: &str) -> Result<W::Reply, ServerError> {
        self.wait(node, |state| state.reply.take()).await
    }

    async fn wait<T>(
        &self,
        node: &str,
        mut take: impl FnMut(&mut State<W>) -> Option<Result<T, ServerError>>,
    ) -> Result<T, ServerError> {
        poll_fn(|task| {
            let mut state = self.0.lock();
            match take(&mut state) {
                Some(taken) => Poll::Ready(taken),
                None if state.is_over => {
                    Poll::Ready(Err(ORACLE.lost(node, "the driver gave up on what the server sent")))
                }
                None => {
                    state.waiting = Some(task.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl<W: Work> Drop for Worker<W> {
    fn drop(&mut self) {
        self.0.lock().is_left = true;
        self.0.asked.notify_one();
    }
}

/// One session, and its thread. The driver has no way to cancel what another thread waits for: a batch ends by itself within a fraction
/// of a second, an operation within five minutes.
pub struct ThreadSession<W: Work> {
    worker: Worker<W>,
    id: SessionId,
    node: String,
}

impl<W: Work> fmt::Debug for ThreadSession<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("node", &self.node).field("id", &self.id).finish_non_exhaustive()
    }
}

impl<W: Work + Send + 'static> ThreadSession<W> {
    /// Opens it at a node, for this work.
    pub(super) async fn open(work: W, connector: &Connector, node: usize) -> Result<Self, ServerError> {
        let node = connector.nodes().swap_remove(node);
        let (worker, id) = Worker::start(work, &node).await?;
        Ok(Self { worker, id, node })
    }

    /// Asks it what `ask` puts into the room for it, and waits for the answer.
    pub(super) async fn asked(&self, ask: impl FnOnce(&mut W::Request)) -> Result<W::Reply, ServerError> {
        self.worker.ask(ask);
        self.worker.answer(&self.node).await
    }
}

impl<W: Work + Send + 'static> SqlSession for ThreadSession<W> {
    fn id(&self) -> SessionId {
        self.id
    }
}

fn serve<W: Work>(mut work: W, shared: &Shared<W>) {
    let mut asked = W::Request::default();
    loop {
        let mut state = shared.lock();
        while !std::mem::take(&mut state.is_asked) {
            if state.is_left {
                return;
            }
            state = shared.asked.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        // Both sides keep their room: what was asked goes one way, the room of the last time the other.
        std::mem::swap(&mut asked, &mut state.asked);
        drop(state);
        let reply = work.work(&asked);
        shared.put(|state| state.reply = Some(reply));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Echo {
        calls: u64,
    }

    impl Work for Echo {
        type Request = Vec<u64>;
        type Reply = u64;

        fn open(self) -> Result<(Self, Opened), ServerError> {
            Ok((self, SessionId { number: 7, serial: Some(1) }))
        }

        fn work(&mut self, asked: &Vec<u64>) -> Result<u64, ServerError> {
            self.calls += 1;
            assert!(!asked.is_empty(), "as the driver panics");
            Ok(asked.iter().sum::<u64>() * 1000 + self.calls)
        }
    }

    fn block_on<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
    }

    #[test]
    fn answers_belong_to_what_was_asked_and_a_panic_ends_only_its_session() {
        block_on(async {
            let (worker, id) = Worker::start(Echo { calls: 0 }, "db1").await.unwrap();
            assert_eq!(id, SessionId { number: 7, serial: Some(1) });
            let ask = |numbers: &[u64]| {
                worker.ask(|asked| {
                    asked.clear();
                    asked.extend(numbers);
                });
            };
            ask(&[60, 7]);
            assert_eq!(worker.answer("db1").await.unwrap(), 67_001);
            ask(&[3]);
            assert_eq!(worker.answer("db1").await.unwrap(), 3_002);
            ask(&[]);
            let error = worker.answer("db1").await.unwrap_err();
            assert!(matches!(error, ServerError::Lost { .. }), "{error}");
        });
    }
}
