//! Many sessions on one thread: asking without waiting, and hearing the answers as they come.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use super::SideJob;
use super::inbox::{Inbox, Job, work};
use super::slot::Slot;
use super::timer::Timer;
use super::watch::Watch;
use crate::ServerError;
use crate::data::descriptor::TableId;
use crate::session::SqlServers;
use crate::target::{SlobTables, SqlTarget};
use model::workload::{OperationKind, SlobOperation};
use targets::{SessionRange, TargetError};

/// Connections that a lane makes at a time: some servers start a process for each.
const CONNECTING: usize = 16;
/// A session has the server's counters reported what it did this often. Sooner would cost more than it reports.
const FLUSH_NS: u64 = 200_000_000;
/// Longest wait for what was cancelled to end, and for connections to close.
const CANCEL_PATIENCE_NS: u64 = 2_000_000_000;
const CLOSE_PATIENCE: Duration = Duration::from_millis(500);

/// What came of something that a session was asked.
#[derive(Debug)]
pub(super) struct Answer<A> {
    pub(super) session: u32,
    /// When it was taken from the socket, on the run's clock.
    pub(super) at_ns: u64,
    pub(super) result: Result<A, ServerError>,
}

/// Answers that have come, and who waits for the first of them.
struct Mailbox<A>(Mutex<Inside<A>>);
type Inside<A> = (Vec<Answer<A>>, Option<Waker>);

impl<A> Mailbox<A> {
    fn lock(&self) -> MutexGuard<'_, Inside<A>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, answer: Answer<A>) {
        let mut inside = self.lock();
        inside.0.push(answer);
        if let Some(waker) = inside.1.take() {
            waker.wake();
        }
    }

    fn poll(&self, task: &mut Context<'_>) -> Poll<()> {
        let mut inside = self.lock();
        if inside.0.is_empty() {
            inside.1 = Some(task.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    }
}

/// The sessions of one lane.
pub(super) struct Line<'t, D: SqlServers, J: Job<D>> {
    pub(super) target: &'t SqlTarget<D, J::Work>,
    pub(super) range: SessionRange,
    slots: Vec<Arc<Slot<D>>>,
    /// Where each of them finds its next job.
    inboxes: Vec<Arc<Inbox<J>>>,
    timer: Timer,
    mailbox: Arc<Mailbox<J::Answer>>,
    /// Sessions that were asked and do not know it yet: they learn it while the thread waits.
    asked: Vec<u32>,
    /// What else is to be done then.
    requests: Vec<SideJob>,
    /// When the counters of each session were last reported.
    flushed_ns: Vec<u64>,
    watch: Watch<'t, D, J::Work>,
    /// Dropped last: what waits in it belongs to the others.
    runtime: Runtime,
}

impl<'t, D: SqlServers, J: Job<D>> Line<'t, D, J> {
    /// Connects all sessions of a range, to the servers in turn.
    pub(super) fn open(target: &'t SqlTarget<D, J::Work>, range: SessionRange) -> Result<Self, TargetError> {
        let kernel = |source| TargetError::Kernel { action: "set up the connections of a lane of sessions", source };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(kernel)?;
        let timer = runtime.block_on(async { Timer::new(range.clock) }).map_err(kernel)?;
        let slots = runtime.block_on(connect(target, range))?;
        let mailbox = Arc::new(Mailbox(Mutex::new((Vec::new(), None))));
        let inboxes: Vec<Arc<Inbox<J>>> = slots.iter().map(|_| Arc::default()).collect();
        for ((number, slot), inbox) in (0..).zip(&slots).zip(&inboxes) {
            let (mailbox, clock) = (Arc::clone(&mailbox), range.clock);
            let hand_over = move |result| mailbox.put(Answer { session: number, at_ns: clock.now_ns(), result });
            runtime.spawn(work(Arc::clone(slot), Arc::clone(inbox), hand_over));
        }
        Ok(Self {
            target,
            range,
            timer,
            inboxes,
            mailbox,
            asked: Vec::new(),
            requests: Vec::new(),
            flushed_ns: vec![0; slots.len()],
            watch: Watch::new(target, &slots),
            slots,
            runtime,
        })
    }

    /// The sessions that are connected now.
    pub(super) fn sessions(&self) -> impl Iterator<Item = Arc<D::Session>> + '_ {
        self.slots.iter().filter_map(|slot| slot.taken())
    }

    /// The name of the server that a session is on.
    pub(super) fn node_of(&self, session: u32) -> String {
        let nodes = self.target.nodes();
        nodes[node_of(self.range, nodes.len(), session)].clone()
    }

    /// Asks a session to do a job, at `now_ns`, which `write` writes into the room of an earlier one. The answer comes through
    /// [`wait`](Self::wait).
    pub(super) fn ask(&mut self, session: u32, now_ns: u64, write: impl FnOnce(&mut J)) {
        let flushed_ns = &mut self.flushed_ns[session as usize];
        let is_flushing = now_ns.saturating_sub(*flushed_ns) >= FLUSH_NS;
        if is_flushing {
            *flushed_ns = now_ns;
        }
        self.watch.asked(session, now_ns);
        self.inboxes[session as usize].put(is_flushing, write);
        self.asked.push(session);
    }

    /// Appends the answers that have come to `into`. Returns at the latest soon after `until_ns`, and as soon as there is an
    /// answer.
    ///
    /// # Errors
    /// When a server has been silent for too long.
    pub(super) fn wait(&mut self, until_ns: u64, into: &mut Vec<Answer<J::Answer>>) -> Result<(), TargetError> {
        let now = self.range.clock.now_ns();
        if self.watch.is_due(now) {
            self.requests.extend(self.watch.look(now)?);
        }
        let before = into.len();
        self.hear(now, until_ns, into)?;
        into[before..].iter().for_each(|answer| self.watch.answered(answer.session));
        Ok(())
    }

    fn hear(&mut self, now: u64, until_ns: u64, into: &mut Vec<Answer<J::Answer>>) -> Result<(), TargetError> {
        let Self { runtime, timer, mailbox, inboxes, asked, requests, .. } = self;
        let heard = runtime.block_on(async {
            asked.drain(..).for_each(|session| inboxes[session as usize].wake());
            requests.drain(..).for_each(|request| drop(tokio::spawn(request)));
            if until_ns <= now {
                // Once to look at the sockets, and once for what they brought.
                tokio::task::yield_now().await;
                tokio::task::yield_now().await;
                return Ok(());
            }
            let mut rings = pin!(timer.wait_until(until_ns));
            poll_fn(|task| match mailbox.poll(task) {
                Poll::Ready(()) => Poll::Ready(Ok(())),
                Poll::Pending => rings.as_mut().poll(task),
            })
            .await
        });
        heard.map_err(|source| TargetError::Kernel { action: "wait for the answers of a server", source })?;
        into.append(&mut self.mailbox.lock().0);
        Ok(())
    }

    /// Has something done by every session at once, before load starts, and waits for them all.
    ///
    /// # Errors
    /// The first that a session has.
    pub(super) fn with_each<W>(&self, mut work: impl FnMut(u32, Arc<D::Session>) -> W) -> Result<(), TargetError>
    where
        W: Future<Output = Result<(), ServerError>> + Send + 'static,
    {
        self.runtime.block_on(async {
            let working: Vec<_> =
                (0..).zip(self.sessions()).map(|(number, session)| tokio::spawn(work(number, session))).collect();
            for work in working {
                work.await.unwrap_or_else(|failed| std::panic::resume_unwind(failed.into_panic()))?;
            }
            Ok(())
        })
    }

    /// Asks the servers to cancel what is under way; that still ends through [`wait`](Self::wait).
    pub(super) fn cancel(&mut self) {
        for session in self.watch.waiting() {
            let asked = Arc::clone(&self.slots[session as usize]);
            self.requests.push(Box::pin(async move {
                // A server that cannot be reached is noticed by the answer that does not come.
                let _ = tokio::time::timeout(Duration::from_nanos(CANCEL_PATIENCE_NS), asked.cancel()).await;
            }));
        }
    }

    /// Cancels what is under way and waits until it has ended, so that no server goes on with it after we left.
    ///
    /// # Errors
    /// When it does not end.
    pub(super) fn abandon(&mut self) -> Result<(), TargetError> {
        self.cancel();
        let begun_ns = self.range.clock.now_ns();
        let mut answers = Vec::new();
        loop {
            let now = self.range.clock.now_ns();
            let silent = self.watch.waiting().count() as u64;
            if silent == 0 {
                return Ok(());
            }
            let until_ns = begun_ns + CANCEL_PATIENCE_NS;
            if now >= until_ns {
                return Err(TargetError::Silent { sessions: silent, waited_ns: now - begun_ns });
            }
            self.hear(now, until_ns, &mut answers)?;
            answers.drain(..).for_each(|answer| self.watch.answered(answer.session));
        }
    }
}

impl<D: SqlServers, J: Job<D, Work = SlobTables>> Line<'_, D, J> {
    /// The rows that an operation of a session touched.
    ///
    /// # Errors
    /// When it cannot have been these: the data are damaged.
    pub(super) fn checked(&self, session: u32, operation: &SlobOperation, rows: u64) -> Result<u64, TargetError> {
        let name = || (self.target.work().name)(TableId::of(operation));
        let damaged = |what| ServerError::damaged(self.node_of(session), name(), what);
        check_rows(operation, rows).map_err(damaged)?;
        Ok(rows)
    }
}

/// Closes the connections in the way that servers expect.
impl<D: SqlServers, J: Job<D>> Drop for Line<'_, D, J> {
    fn drop(&mut self) {
        self.slots.clear();
        self.requests.clear();
        self.inboxes.iter().for_each(|inbox| inbox.close());
        let Self { runtime, .. } = self;
        let closed = async {
            while tokio::runtime::Handle::current().metrics().num_alive_tasks() > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        // What does not close by itself is closed with the runtime.
        runtime.block_on(async {
            let _ = tokio::time::timeout(CLOSE_PATIENCE, closed).await;
        });
    }
}

/// The server that a session of a range is on: all sessions of a step go to the servers in turn.
fn node_of(range: SessionRange, nodes: usize, session: u32) -> usize {
    (range.first_session + session) as usize % nodes
}

async fn connect<D: SqlServers, W>(
    target: &SqlTarget<D, W>,
    range: SessionRange,
) -> Result<Vec<Arc<Slot<D>>>, ServerError> {
    let nodes = target.nodes().len();
    let mut slots = Vec::with_capacity(range.sessions as usize);
    let mut connecting = VecDeque::new();
    let mut numbers = 0..range.sessions;
    loop {
        let more = numbers.by_ref().take(CONNECTING - connecting.len());
        connecting.extend(more.map(|session| {
            let (servers, node) = (Arc::clone(target.servers()), node_of(range, nodes, session));
            tokio::spawn(async move { Ok(Slot::new(&servers, node, servers.open_session(node).await?)) })
        }));
        let Some(first) = connecting.pop_front() else { return Ok(slots) };
        match first.await {
            Ok(opened) => slots.push(Arc::new(opened?)),
            Err(failed) => std::panic::resume_unwind(failed.into_panic()),
        }
    }
}

/// Checks that an operation touched what it was to touch. Every key is there once, and a scan table is not empty: else the
/// data are not what was loaded, and what is measured on them means nothing.
///
/// # Errors
/// What is wrong with its table.
fn check_rows(operation: &SlobOperation, rows: u64) -> Result<(), String> {
    let SlobOperation { kind, first_key, keys, .. } = *operation;
    match kind {
        OperationKind::Scan if rows == 0 => Err("it is empty".to_owned()),
        OperationKind::Read | OperationKind::Update if rows != u64::from(keys) => {
            let did = if kind == OperationKind::Read { "a read found" } else { "an update changed" };
            let last_key = first_key + u64::from(keys).saturating_sub(1);
            Err(format!("{did} {rows} rows of the {keys} with keys {first_key} to {last_key}"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::workload::RedoStress;

    #[test]
    fn rows_that_are_missing_or_too_many_are_damage_and_an_empty_scan_table_is() {
        let checked = |kind, keys, rows| {
            let operation = SlobOperation { kind, schema: 2, first_key: 100, keys, redo_stress: RedoStress::Lite };
            check_rows(&operation, rows)
        };
        assert!(checked(OperationKind::Read, 8, 8).is_ok() && checked(OperationKind::Update, 8, 8).is_ok());
        assert!(checked(OperationKind::Scan, 0, 1).is_ok() && checked(OperationKind::Scan, 0, 0).is_err());
        assert!(checked(OperationKind::Update, 8, 9).is_err());
        assert_eq!(
            checked(OperationKind::Read, 8, 7).unwrap_err(),
            "a read found 7 rows of the 8 with keys 100 to 107"
        );
    }
}
