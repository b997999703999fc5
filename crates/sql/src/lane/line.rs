//! Many sessions on one thread: asking without waiting, and hearing the answers as they come.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use std::{io, mem};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::net::unix::pipe::Receiver;
use tokio::runtime::{Builder, Runtime};

use super::{FIRST_PAUSE, PATIENCE, SideJob, Slot};
use crate::ServerError;
use crate::data::TableId;
use crate::session::{SessionId, SqlServers, SqlSession as _};
use crate::target::{SlobTables, SqlTarget};
use measure::{Clock, ConnectFailure};
use model::workload::{OperationKind, SlobOperation};
use targets::{SessionRange, TargetError};

/// Connections that a lane makes at a time: some servers start a process for each.
const CONNECTING: usize = 16;
/// A session has the server's counters reported what it did this often. Sooner would cost more than it reports.
const FLUSH_NS: u64 = 200_000_000;
/// Longest wait for what was cancelled to end, and for connections to close.
const CANCEL_PATIENCE_NS: u64 = 2_000_000_000;
/// An answer may be this long on its way from a server that does not know of its session any more.
const ON_ITS_WAY_NS: u64 = 500_000_000;
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
    /// When it does not end: [`TargetError::StillAtWork`] where the servers report that they still work on it, such as on a commit that
    /// storage holds up.
    pub(super) fn abandon(&mut self) -> Result<(), TargetError> {
        self.cancel();
        let clock = self.range.clock;
        let begun_ns = clock.now_ns();
        if self.hear_all(begun_ns + CANCEL_PATIENCE_NS, &|_, _| false)? == 0 {
            return Ok(());
        }
        let words = self.ask_servers();
        let vouches = |node: usize, id: Option<SessionId>| match (words.get(&node), id) {
            (Some(Ok(Some(at_work))), Some(id)) => at_work.contains(&id),
            // It answers and does not say, or the session has no connection that it could know of.
            (Some(Ok(_)), _) => true,
            (Some(Err(Silence)) | None, _) => false,
        };
        let unknown = self.hear_all(clock.now_ns() + ON_ITS_WAY_NS, &vouches)?;
        let (waiting, waited_ns) = (self.watch.waiting().count() as u64, clock.now_ns() - begun_ns);
        match (waiting, unknown) {
            (0, _) => Ok(()),
            (sessions, 0) => {
                self.target.note_late();
                Err(TargetError::StillAtWork { sessions, waited_ns })
            }
            _ => Err(TargetError::Silent { sessions: unknown, waited_ns }),
        }
    }

    /// Hears answers until then, or until all sessions have answered but those that `vouches` knows of, by their server and its number
    /// for them. Returns how many others have not answered.
    fn hear_all(
        &mut self,
        until_ns: u64,
        vouches: &impl Fn(usize, Option<SessionId>) -> bool,
    ) -> Result<u64, TargetError> {
        let mut answers = Vec::new();
        loop {
            let now = self.range.clock.now_ns();
            // What came meanwhile is heard first.
            answers.append(&mut self.mailbox.lock().0);
            answers.drain(..).for_each(|answer: Answer<J::Answer>| self.watch.answered(answer.session));
            let slots = self.watch.waiting().map(|session| &self.slots[session as usize]);
            let others = slots.filter(|slot| !vouches(slot.node(), slot.id())).count() as u64;
            if others == 0 || now >= until_ns {
                return Ok(others);
            }
            self.hear(now, until_ns, &mut answers)?;
        }
    }

    /// Asks the servers of all sessions that wait whether they work for them.
    fn ask_servers(&mut self) -> BTreeMap<usize, Word> {
        let mut waiting: BTreeMap<usize, Vec<SessionId>> = BTreeMap::new();
        for session in self.watch.waiting() {
            let slot = &self.slots[session as usize];
            waiting.entry(slot.node()).or_default().extend(slot.id());
        }
        let patience = WORD_PATIENCE.min(Duration::from_nanos(self.target.patience_ns()));
        self.runtime.block_on(async {
            let asking: Vec<_> = waiting
                .into_iter()
                .map(|(node, sessions)| {
                    let servers = Arc::clone(self.target.servers());
                    let word = async move { tokio::time::timeout(patience, servers.at_work(node, sessions)).await };
                    (node, tokio::spawn(word))
                })
                .collect();
            let mut words = BTreeMap::new();
            for (node, asked) in asking {
                let word = asked.await.unwrap_or_else(|failed| std::panic::resume_unwind(failed.into_panic()));
                words.insert(node, word.map_err(|_| Silence));
            }
            words
        })
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
            let patience = if target.was_late() { PATIENCE } else { Duration::ZERO };
            tokio::spawn(async move { Ok(Slot::new(&servers, node, open_session(&*servers, node, patience).await?)) })
        }));
        let Some(first) = connecting.pop_front() else { return Ok(slots) };
        match first.await {
            Ok(opened) => slots.push(Arc::new(opened?)),
            Err(failed) => std::panic::resume_unwind(failed.into_panic()),
        }
    }
}

/// Connects a session. A server that still works for sessions of an earlier step may have no room for it: that is waited for.
pub(super) async fn open_session<D: SqlServers>(
    servers: &D,
    node: usize,
    patience: Duration,
) -> Result<D::Session, ServerError> {
    let begun = Instant::now();
    loop {
        match servers.open_session(node).await {
            Err(error)
                if error.connect_failure() == Some(ConnectFailure::OutOfConnections) && begun.elapsed() < patience =>
            {
                tokio::time::sleep(FIRST_PAUSE).await;
            }
            opened => return opened,
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

// Waking up on time: the runtime's own timers only know milliseconds, which operations that fall due at a rate would feel.

/// A timer of the kernel that a runtime waits for as for a socket.
struct Timer {
    clock: Clock,
    /// To the runtime it is like a pipe: something to read comes out of it when it rings.
    descriptor: Receiver,
    /// What it is set to.
    until_ns: u64,
}

impl Timer {
    /// A timer that is not set. Must be made in the runtime that waits for it.
    pub(super) fn new(clock: Clock) -> io::Result<Self> {
        let descriptor = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        Ok(Self { clock, descriptor: Receiver::from_owned_fd_unchecked(descriptor)?, until_ns: u64::MAX })
    }

    /// Waits until an instant of the clock. May be given up at any time; costs no system call where it is set to that instant
    /// already.
    pub(super) async fn wait_until(&mut self, until_ns: u64) -> io::Result<()> {
        if until_ns != self.until_ns {
            // Nothing at all would unset it.
            let left_ns = until_ns.saturating_sub(self.clock.now_ns()).max(1);
            let it_value =
                Timespec { tv_sec: (left_ns / 1_000_000_000) as i64, tv_nsec: (left_ns % 1_000_000_000) as _ };
            let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
            timerfd_settime(&self.descriptor, TimerfdTimerFlags::empty(), &once)?;
            self.until_ns = until_ns;
        }
        loop {
            self.descriptor.readable().await?;
            match self.descriptor.try_read(&mut [0; 8]) {
                // It may have rung for what it was set to before.
                Ok(_) if self.clock.now_ns() < until_ns => {}
                Ok(_) => {
                    self.until_ns = u64::MAX;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

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
struct Inbox<J>(Mutex<InboxInside<J>>);

#[derive(Debug, Default)]
struct InboxInside<J> {
    /// Room for a job; once it is given, the job.
    job: J,
    /// A job was given and not yet taken: whether the session's counters are to be reported after it.
    given: Option<bool>,
    waiting: Option<Waker>,
    /// No more jobs will come.
    is_closed: bool,
}

impl<J> Inbox<J> {
    fn lock(&self) -> MutexGuard<'_, InboxInside<J>> {
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
async fn work<D: SqlServers, J: Job<D>>(
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

// Servers that say nothing: are they at work, or gone without a word?
//
// A scan of a large table may take an hour, and nothing is heard of it meanwhile. So silence alone condemns nobody: after a
// while the server is asked, over another connection, whether it still works on what it was asked. Only one that answers
// nothing, or that knows nothing of it any more, is given up.

/// Silences are looked at this often.
const LOOK_NS: u64 = 1_000_000_000;
/// Longest wait for a server's word on whether it works. Less than a connection may take, so that one that does not come about
/// in time is distinguished from one that is refused: who refuses is alive.
const WORD_PATIENCE: Duration = Duration::from_secs(5);

/// A server's word: which of its sessions are at work; nothing when it refused to say.
type Word = Result<Option<Vec<SessionId>>, Silence>;
/// Where a word is put once it has come.
type WatchMailbox = Arc<Mutex<Option<Word>>>;

/// The server said nothing at all.
#[derive(Debug, Clone, Copy)]
struct Silence;

struct Watched<D: SqlServers> {
    slot: Arc<Slot<D>>,
    asked_ns: Option<u64>,
    /// When the server last said that it works on it.
    vouched_ns: u64,
    /// It paused inside a transaction when the server was last asked: it is not at work there, and yet not lost.
    rested: bool,
    /// The server did not know of it when it was last asked. The answer may have been on its way.
    doubted: bool,
}

impl<D: SqlServers> Watched<D> {
    fn silent_since_ns(&self) -> Option<u64> {
        self.asked_ns.map(|asked_ns| asked_ns.max(self.vouched_ns))
    }
}

/// Watches over the sessions of one lane.
struct Watch<'t, D: SqlServers, W> {
    target: &'t SqlTarget<D, W>,
    sessions: Vec<Watched<D>>,
    next_look_ns: u64,
    /// Servers that were asked, and their words.
    words: BTreeMap<usize, WatchMailbox>,
}

impl<'t, D: SqlServers, W> Watch<'t, D, W> {
    /// Over the sessions at these slots, whoever has them at the time.
    pub(super) fn new(target: &'t SqlTarget<D, W>, slots: &[Arc<Slot<D>>]) -> Self {
        let watched = |slot: &Arc<Slot<D>>| Watched {
            slot: Arc::clone(slot),
            asked_ns: None,
            vouched_ns: 0,
            rested: false,
            doubted: false,
        };
        Self { target, sessions: slots.iter().map(watched).collect(), next_look_ns: 0, words: BTreeMap::new() }
    }

    /// A session was asked something.
    pub(super) fn asked(&mut self, session: u32, now_ns: u64) {
        let session = &mut self.sessions[session as usize];
        (session.asked_ns, session.vouched_ns, session.doubted) = (Some(now_ns), 0, false);
    }

    /// It answered.
    pub(super) fn answered(&mut self, session: u32) {
        self.sessions[session as usize].asked_ns = None;
    }

    /// Sessions that wait for an answer.
    pub(super) fn waiting(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.sessions).filter(|(_, waiting)| waiting.asked_ns.is_some()).map(|(session, _)| session)
    }

    /// Whether it is time to [`look`](Self::look).
    pub(super) fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.next_look_ns
    }

    /// Looks for sessions that have been silent for too long, and gives what asks their servers.
    ///
    /// # Errors
    /// When a server must be taken for gone.
    pub(super) fn look(&mut self, now_ns: u64) -> Result<Vec<SideJob>, TargetError> {
        self.next_look_ns = now_ns + LOOK_NS.min(self.target.patience_ns());
        self.hear_words(now_ns)?;
        let mut silent: BTreeMap<usize, Vec<SessionId>> = BTreeMap::new();
        for session in &self.sessions {
            // Who is being connected has a patience of its own.
            let Some(id) = session.slot.id() else { continue };
            if session
                .silent_since_ns()
                .is_some_and(|since_ns| now_ns.saturating_sub(since_ns) >= self.target.patience_ns())
            {
                silent.entry(session.slot.node()).or_default().push(id);
            }
        }
        silent.retain(|node, _| !self.words.contains_key(node));
        for session in self.sessions.iter_mut().filter(|session| silent.contains_key(&session.slot.node())) {
            session.rested = session.slot.alarm().is_resting();
        }
        let asking = silent.into_iter().map(|(node, sessions)| {
            let word = WatchMailbox::default();
            self.words.insert(node, Arc::clone(&word));
            let servers = Arc::clone(self.target.servers());
            let patience = WORD_PATIENCE.min(Duration::from_nanos(self.target.patience_ns()));
            Box::pin(async move {
                let reported = tokio::time::timeout(patience, servers.at_work(node, sessions)).await;
                let reported = reported.map_err(|_| Silence);
                *word.lock().unwrap_or_else(PoisonError::into_inner) = Some(reported);
            }) as SideJob
        });
        Ok(asking.collect())
    }

    fn hear_words(&mut self, now_ns: u64) -> Result<(), TargetError> {
        let mut reported = Vec::new();
        self.words.retain(|node, word| match word.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(word) => {
                reported.push((*node, word));
                false
            }
            None => true,
        });
        for (node, word) in reported {
            for session in self.sessions.iter_mut().filter(|session| session.slot.node() == node) {
                let Some(since_ns) = session.silent_since_ns() else { continue };
                let silent_ns = now_ns.saturating_sub(since_ns);
                if silent_ns < self.target.patience_ns() {
                    continue;
                }
                let is_at_work = match (&word, session.slot.id()) {
                    (Ok(Some(at_work)), Some(id)) => session.rested || at_work.contains(&id),
                    (Ok(_), _) => true,
                    (Err(Silence), _) => false,
                };
                if is_at_work {
                    session.vouched_ns = now_ns;
                    session.doubted = false;
                } else if word.is_err() || session.doubted {
                    let asked_ns = session.asked_ns.unwrap_or(since_ns);
                    let waited_s = now_ns.saturating_sub(asked_ns) / 1_000_000_000;
                    let name = &self.target.nodes()[node];
                    return Err(self.target.product().timed_out(name, "execute operations", waited_s).into());
                } else {
                    session.doubted = true;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;

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

    #[test]
    fn it_rings_at_its_instant_and_not_for_an_earlier_one() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let clock = Clock::start();
            let mut timer = Timer::new(clock).unwrap();
            // It rings while nobody waits for it any more.
            let mut given_up = Box::pin(timer.wait_until(clock.now_ns() + 500_000));
            assert!(poll_fn(|task| Poll::Ready(given_up.as_mut().poll(task).is_pending())).await);
            drop(given_up);
            std::thread::sleep(std::time::Duration::from_millis(2));
            let mut soonest = u64::MAX;
            for _ in 0..50 {
                let until_ns = clock.now_ns() + 300_000;
                timer.wait_until(until_ns).await.unwrap();
                let now = clock.now_ns();
                assert!(now >= until_ns, "{} ns too soon", until_ns - now);
                soonest = soonest.min(now - until_ns);
            }
            assert!(soonest < 300_000, "at best {soonest} ns late");
        });
    }
}
