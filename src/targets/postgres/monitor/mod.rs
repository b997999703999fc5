//! What PostgreSQL servers report on themselves while load runs on them: their counters, by difference, and what the load's
//! sessions wait for, by sampling.
//!
//! A thread of its own keeps two connections to each server: one reads the counters when asked, the other looks at the
//! sessions many times a second. Everything works as an ordinary role; what a server does not report stays unknown.

mod line;
mod processes;
mod query;
mod reading;
mod watch;

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use self::reading::{Difference, Reading};
use super::connect::Connector;
use super::error::PostgresError;
use super::local::LocalServer;
use crate::record::{Counters, ServerStats};
use crate::targets::TargetError;

/// Longest wait for the servers' answers at the edge of an interval.
const TAKE_LIMIT: Duration = Duration::from_secs(1);

/// What to watch.
#[derive(Debug, Clone)]
pub struct MonitorRequest {
    /// Connects to the servers.
    pub connector: Connector,
    /// The schema of the database that holds the data, not quoted.
    pub schema: String,
    /// Schemas of SLOB's in it.
    pub schemas: u32,
    /// Size of the servers' blocks.
    pub block_bytes: u32,
    /// The name by which the servers know the load's sessions.
    pub application: String,
    /// For each server what is known of its processes on this machine. A server that is reached from here and runs here is
    /// found without it.
    pub local: Vec<Option<LocalServer>>,
    /// How often the sessions are looked at. Looking costs at most a twentieth of the time: where a server answers slowly, it is
    /// done less often.
    pub sample_every: Duration,
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
pub struct Monitor {
    shared: Arc<Shared>,
    names: Vec<String>,
    block_bytes: u32,
    thread: Option<JoinHandle<()>>,
}

/// What the thread and its owner share.
#[derive(Debug)]
struct Shared {
    nodes: Mutex<Vec<Node>>,
    answered: Condvar,
    /// Asks for a reading of each server.
    asked: Vec<Notify>,
    stop: Notify,
}

/// One server.
#[derive(Debug)]
struct Node {
    answer: Answer,
    /// Where the current interval began; `None` while that is not known.
    base: Option<Reading>,
    samples: BTreeMap<String, u64>,
    sampled_times: u64,
    /// Questions that have no answer yet, on both connections together.
    owed: u32,
    last_answer: Instant,
    notes: Vec<String>,
}

/// What became of the question for a reading.
#[derive(Debug)]
enum Answer {
    None,
    Awaited,
    Failed,
    Here(Box<Reading>),
}

impl Monitor {
    /// Connects to all servers, reads their counters for the first time and goes on watching them. Takes as long as connecting
    /// does.
    ///
    /// # Errors
    /// When a server cannot be connected or asked, or no thread can be started.
    pub fn start(request: MonitorRequest) -> Result<Self, TargetError> {
        let names: Vec<String> = request.connector.nodes().iter().map(ToString::to_string).collect();
        let node = || Node {
            answer: Answer::None,
            base: None,
            samples: BTreeMap::new(),
            sampled_times: 0,
            owed: 0,
            last_answer: Instant::now(),
            notes: Vec::new(),
        };
        let shared = Arc::new(Shared {
            nodes: Mutex::new(names.iter().map(|_| node()).collect()),
            answered: Condvar::new(),
            asked: names.iter().map(|_| Notify::new()).collect(),
            stop: Notify::new(),
        });
        let block_bytes = request.block_bytes;
        let (opened, opening) = mpsc::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| TargetError::Kernel { action: "start a runtime that watches the server", source })?;
        let watcher = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("monitor".to_owned())
            .spawn(move || watch::run(runtime, &watcher, request, &opened))
            .map_err(|source| TargetError::Kernel { action: "start a thread that watches the server", source })?;
        let monitor = Self { shared, names, block_bytes, thread: Some(thread) };
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
        let outstanding = |nodes: &mut Vec<Node>| {
            nodes
                .iter()
                .zip(&waited_for)
                .any(|(node, waited_for)| *waited_for && matches!(node.answer, Answer::Awaited))
        };
        let waited = self.shared.answered.wait_timeout_while(nodes, TAKE_LIMIT, outstanding);
        nodes = waited.unwrap_or_else(PoisonError::into_inner).0;
        let all = nodes.len();
        let reported = nodes.iter_mut().zip(&self.names).filter_map(|(node, name)| node.take(name, self.block_bytes));
        let servers: Vec<ServerStats> = reported.collect();
        let counters = if servers.len() == all { sum_of_all(&servers) } else { Counters::default() };
        Reported { counters, servers }
    }

    /// How long ago the server that has been silent for longest said something, of those that owe an answer.
    pub fn silent_for(&self) -> Option<Duration> {
        let nodes = self.shared.lock();
        nodes.iter().filter(|node| node.owed > 0).map(|node| node.last_answer.elapsed()).max()
    }

    /// What the servers do not report, and which right or setting would have them tell it.
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

impl Drop for Monitor {
    fn drop(&mut self) {
        self.shared.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing to clean up.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Vec<Node>> {
        // What a panic left behind is only counts.
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Node {
    /// What happened since the last reading, if there is a new one that goes with it.
    fn take(&mut self, name: &str, block_bytes: u32) -> Option<ServerStats> {
        let reading = match std::mem::replace(&mut self.answer, Answer::None) {
            Answer::Here(reading) => reading,
            Answer::Awaited => {
                self.answer = Answer::Awaited;
                return None;
            }
            Answer::None | Answer::Failed => return None,
        };
        let (session_samples, sampled_times) =
            (std::mem::take(&mut self.samples), std::mem::take(&mut self.sampled_times));
        let mut reading = *reading;
        let reported = self.base.as_ref().and_then(|base| {
            let difference = reading.since(base, block_bytes)?;
            reading.remember_size(base);
            Some((difference, reading.at.duration_since(base.at)))
        });
        self.base = Some(reading);
        let (Difference { own, counters, cpu, reset }, elapsed) = reported?;
        for view in reset {
            self.note(format!(
                "the counters in `{view}` were set back during the load: they are unknown where it happened"
            ));
        }
        let elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        Some(ServerStats {
            node: name.to_owned(),
            elapsed_ns,
            counters,
            own,
            session_samples,
            sampled_times,
            cpu,
            waits: Vec::new(),
        })
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// Sums over servers. Adding up those that know something would pass for the whole.
fn sum_of_all(servers: &[ServerStats]) -> Counters {
    let sum = |of: fn(&Counters) -> Option<u64>| servers.iter().map(|server| of(&server.counters)).sum();
    Counters {
        logical_reads: sum(|counters| counters.logical_reads),
        cache_hits: sum(|counters| counters.cache_hits),
        buffer_misses: sum(|counters| counters.buffer_misses),
        page_cache_hits: sum(|counters| counters.page_cache_hits),
        physical_reads: sum(|counters| counters.physical_reads),
        physical_read_bytes: sum(|counters| counters.physical_read_bytes),
        physical_writes: sum(|counters| counters.physical_writes),
        physical_write_bytes: sum(|counters| counters.physical_write_bytes),
        redo_bytes: sum(|counters| counters.redo_bytes),
        checkpoints: sum(|counters| counters.checkpoints),
        ..Counters::default()
    }
}

#[cfg(test)]
mod tests;
