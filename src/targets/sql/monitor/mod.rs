//! What servers report on themselves while load runs on them: their counters, by difference, and what the load's sessions
//! wait for, by sampling.
//!
//! A thread of its own keeps two connections to each server: one reads the counters when asked, the other looks at the
//! sessions many times a second. How that is asked is a [`ServerReader`]'s; what a server does not report stays unknown.

mod watch;

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::session::SqlError;
use crate::record::{Counters, ServerStats};
use crate::targets::TargetError;

/// Longest wait for the servers' answers at the edge of an interval.
pub const TAKE_LIMIT: Duration = Duration::from_secs(1);

/// Reads servers of one kind.
pub trait ServerReader: Send + Sync + 'static {
    /// Why a server could not be read.
    type Error: SqlError;
    /// A server's counters at one instant. Only the difference of two means something.
    type Reading: Send + 'static;
    /// A connection that reads counters.
    type CounterLine: Send + 'static;
    /// A connection that looks at sessions.
    type SampleLine: Send + 'static;

    /// The servers' names.
    fn nodes(&self) -> Vec<String>;

    /// How often the sessions are looked at. Looking costs at most a twentieth of the time: where a server answers slowly, it
    /// is done less often.
    fn sample_every(&self) -> Duration;

    /// Connects to server number `node` and finds out what it reports. Says as well what it does not report, and how it could.
    fn open_counters(
        &self,
        node: usize,
    ) -> impl Future<Output = Result<(Self::CounterLine, Vec<String>), Self::Error>> + Send;

    /// Reads all counters, and says of which instant they are.
    fn read(
        &self,
        line: &mut Self::CounterLine,
    ) -> impl Future<Output = Result<(Instant, Self::Reading), Self::Error>> + Send;

    /// Connects to server number `node` to look at the load's sessions.
    fn open_samples(&self, node: usize) -> impl Future<Output = Result<Self::SampleLine, Self::Error>> + Send;

    /// What sessions at work are doing now, and how many of them do it.
    fn sample(
        &self,
        line: &mut Self::SampleLine,
    ) -> impl Future<Output = Result<Vec<(String, u64)>, Self::Error>> + Send;

    /// Whether an error is a refusal, after which its connection can be used as before.
    fn is_refusal(error: &Self::Error) -> bool;

    /// Writes into `stats` what happened between two readings over one connection; what the sessions were seen doing is there
    /// already. `later` will be the earlier one of the next pair, and may take over from `earlier` what must be remembered.
    /// Gives the server's views that are unknown because their counters were set back meanwhile.
    fn compare(&self, earlier: &Self::Reading, later: &mut Self::Reading, stats: &mut ServerStats) -> Vec<String>;
}

/// What the servers reported on one interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reported {
    /// Sums over all servers. What is not known of every one of them is unknown.
    pub counters: Counters,
    /// Each server that answered, in the order of the address.
    pub servers: Vec<ServerStats>,
}

/// Watches all servers of an address, until it is dropped.
#[derive(Debug)]
pub struct Monitor<R: ServerReader> {
    reader: Arc<R>,
    shared: Arc<Shared<R::Reading>>,
    names: Vec<String>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread and its owner share.
#[derive(Debug)]
struct Shared<G> {
    nodes: Mutex<Vec<Node<G>>>,
    answered: Condvar,
    /// Asks for a reading of each server.
    asked: Vec<Notify>,
    stop: Notify,
}

/// One server.
#[derive(Debug)]
struct Node<G> {
    answer: Answer<G>,
    /// Where the current interval began; `None` while that is not known.
    base: Option<Read<G>>,
    samples: BTreeMap<String, u64>,
    sampled_times: u64,
    /// Questions that have no answer yet, on both connections together.
    owed: u32,
    last_answer: Instant,
    notes: Vec<String>,
}

/// Counters that were read.
#[derive(Debug)]
struct Read<G> {
    at: Instant,
    /// Over which connection, from 0: what two connections report may be from before and after a restart.
    connection: u64,
    reading: G,
}

/// What became of the question for a reading.
#[derive(Debug)]
enum Answer<G> {
    None,
    Awaited,
    Failed,
    Here(Box<Read<G>>),
}

impl<R: ServerReader> Monitor<R> {
    /// Connects to all servers, reads their counters for the first time and goes on watching them. Takes as long as connecting
    /// does.
    ///
    /// # Errors
    /// When a server cannot be connected or asked, or no thread can be started.
    pub fn start(reader: R) -> Result<Self, TargetError> {
        let names = reader.nodes();
        let reader = Arc::new(reader);
        let shared = Arc::new(Shared {
            nodes: Mutex::new(names.iter().map(|_| Node::new()).collect()),
            answered: Condvar::new(),
            asked: names.iter().map(|_| Notify::new()).collect(),
            stop: Notify::new(),
        });
        let (opened, opening) = mpsc::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| TargetError::Kernel { action: "start a runtime that watches the server", source })?;
        let (watcher, watching) = (Arc::clone(&shared), Arc::clone(&reader));
        let thread = std::thread::Builder::new()
            .name("monitor".to_owned())
            .spawn(move || watch::run(runtime, &watcher, &watching, &opened))
            .map_err(|source| TargetError::Kernel { action: "start a thread that watches the server", source })?;
        let monitor = Self { reader, shared, names, thread: Some(thread) };
        match opening.recv() {
            Ok(Ok(())) => Ok(monitor),
            Ok(Err(error)) => Err(error.into()),
            // It panicked; dropping it says so no more than the panic did.
            Err(mpsc::RecvError) => Err(TargetError::Stopped),
        }
    }

    /// Reads all servers and says what happened since the last time that each was read. Waits for at most a second: a server
    /// that has not answered by then is not among those reported, and what it counted meanwhile is reported when it answers again.
    pub fn take(&self) -> Reported {
        let mut nodes = self.shared.lock();
        let mut waited_for = vec![false; nodes.len()];
        for ((node, asked), waited_for) in nodes.iter_mut().zip(&self.shared.asked).zip(&mut waited_for) {
            // A server that did not answer the last time is not waited for again.
            if !matches!(node.answer, Answer::Awaited) {
                node.answer = Answer::Awaited;
                *waited_for = true;
                asked.notify_one();
            }
        }
        let outstanding = |nodes: &mut Vec<Node<R::Reading>>| {
            nodes
                .iter()
                .zip(&waited_for)
                .any(|(node, waited_for)| *waited_for && matches!(node.answer, Answer::Awaited))
        };
        let waited = self.shared.answered.wait_timeout_while(nodes, TAKE_LIMIT, outstanding);
        nodes = waited.unwrap_or_else(PoisonError::into_inner).0;
        let all = nodes.len();
        let compare = |earlier: &_, later: &mut _, stats: &mut _| self.reader.compare(earlier, later, stats);
        let reported = nodes.iter_mut().zip(&self.names).filter_map(|(node, name)| node.take(name, compare));
        let servers: Vec<ServerStats> = reported.collect();
        // Adding up those that know something would pass for the whole.
        let sum = servers.iter().map(|server| server.counters.clone()).reduce(|sum, more| sum.with(&more));
        let counters = sum.filter(|_| servers.len() == all).unwrap_or_default();
        Reported { counters, servers }
    }

    /// How long ago the server that has been silent for longest said something, of those that owe an answer.
    pub fn silent_for(&self) -> Option<Duration> {
        let nodes = self.shared.lock();
        nodes.iter().filter(|node| node.owed > 0).map(|node| node.last_answer.elapsed()).max()
    }

    /// What the servers do not report, and which right or setting would have them do so.
    pub fn notes(&self) -> Vec<String> {
        let nodes = self.shared.lock();
        let mut notes: Vec<(&str, Vec<&str>)> = Vec::new();
        for (node, name) in nodes.iter().zip(&self.names) {
            for note in &node.notes {
                match notes.iter_mut().find(|(known, _)| known == note) {
                    Some((_, names)) => names.push(name),
                    None => notes.push((note, vec![name])),
                }
            }
        }
        let single = self.names.len() == 1;
        let worded = notes
            .into_iter()
            .map(|(note, names)| if single { note.to_owned() } else { format!("{}: {note}", names.join(", ")) });
        worded.collect()
    }
}

impl<R: ServerReader> Drop for Monitor<R> {
    fn drop(&mut self) {
        self.shared.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing to clean up.
            let _ = thread.join();
        }
    }
}

impl<G> Shared<G> {
    fn lock(&self) -> MutexGuard<'_, Vec<Node<G>>> {
        // What a panic left behind is only counts.
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<G> Node<G> {
    fn new() -> Self {
        Self {
            answer: Answer::None,
            base: None,
            samples: BTreeMap::new(),
            sampled_times: 0,
            owed: 0,
            last_answer: Instant::now(),
            notes: Vec::new(),
        }
    }

    /// What happened since the last reading, if there is a new one that goes with it.
    fn take(
        &mut self,
        name: &str,
        compare: impl FnOnce(&G, &mut G, &mut ServerStats) -> Vec<String>,
    ) -> Option<ServerStats> {
        let mut later = match std::mem::replace(&mut self.answer, Answer::None) {
            Answer::Here(read) => *read,
            Answer::Awaited => {
                self.answer = Answer::Awaited;
                return None;
            }
            Answer::None | Answer::Failed => return None,
        };
        let mut stats = ServerStats {
            node: name.to_owned(),
            session_samples: std::mem::take(&mut self.samples),
            sampled_times: std::mem::take(&mut self.sampled_times),
            ..ServerStats::default()
        };
        let earlier = self.base.take().filter(|earlier| earlier.connection == later.connection);
        let reset = earlier.map(|earlier| {
            let elapsed = later.at.duration_since(earlier.at);
            stats.elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
            compare(&earlier.reading, &mut later.reading, &mut stats)
        });
        self.base = Some(later);
        for view in reset? {
            self.note(format!(
                "the counters in `{view}` were set back during the load: they are unknown where it happened"
            ));
        }
        Some(stats)
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

#[cfg(test)]
mod tests;
