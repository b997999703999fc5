//! What servers report on themselves while load runs on them: their counters, by difference, and what the load's sessions
//! wait for, by sampling.
//!
//! A thread of its own keeps two connections to each server: one reads the counters when asked, the other looks at the
//! sessions many times a second. A cluster that reports on all of its servers at once has two as well. How that is asked is a
//! [`ServerReader`]'s; what a server does not report stays unknown.

pub(crate) mod process;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::sync::Notify;

use super::error::ServerError;
use measure::monotonic_ns;
use model::record::{Counters, Look, ServerStats, ServerWork};
use targets::{ServerLooks, TargetError};

/// How often sessions are looked at.
pub const SAMPLE_EVERY: Duration = Duration::from_millis(50);
/// The same while one of them takes far longer than usual.
const CLOSELY_EVERY: Duration = Duration::from_millis(10);
/// Longest wait for the servers' answers at the edge of an interval.
pub const TAKE_LIMIT: Duration = Duration::from_secs(1);

/// Reads servers of one kind.
pub trait ServerReader: Send + Sync + 'static {
    /// A server's counters at one instant. Only the difference of two means something.
    type Reading: Send + 'static;
    /// A connection that reads counters.
    type CounterLine: Send + 'static;
    /// A connection that looks at sessions.
    type SampleLine: Send + 'static;
    /// A server that has not answered for so long, on connections that are still open, is taken for gone.
    const SILENCE: Duration = Duration::from_secs(30);

    /// Names of what is connected to: of a server each, or of a cluster whose servers are read together.
    fn nodes(&self) -> Vec<String>;

    /// How often the sessions are looked at. Looking costs at most a twentieth of the time: where a server answers slowly, it
    /// is done less often.
    fn sample_every(&self) -> Duration {
        SAMPLE_EVERY
    }

    /// Connects to node number `node` and finds out what it reports. Says as well what it does not report, and how it could.
    fn open_counters(
        &self,
        node: usize,
    ) -> impl Future<Output = Result<(Self::CounterLine, Vec<String>), ServerError>> + Send;

    /// Reads all counters of each server that is there, at least of one, and says of which instant they are.
    fn read(
        &self,
        line: &mut Self::CounterLine,
    ) -> impl Future<Output = Result<Readings<Self::Reading>, ServerError>> + Send;

    /// Connects to node number `node` to look at the load's sessions.
    fn open_samples(&self, node: usize) -> impl Future<Output = Result<Self::SampleLine, ServerError>> + Send;

    /// What sessions at work are doing now; `closely` says that one of them takes far longer than usual, so that it is worth more to
    /// find out why.
    fn sample(
        &self,
        line: &mut Self::SampleLine,
        closely: bool,
    ) -> impl Future<Output = Result<Sampled, ServerError>> + Send;

    /// Writes into `stats` what happened between two readings of one server; what the sessions were seen doing is there
    /// already. `later` will be the earlier one of the next pair, and may take over from `earlier` what must be remembered.
    /// Gives the server's views that are unknown because their counters were set back meanwhile.
    fn compare(&self, earlier: &Self::Reading, later: &mut Self::Reading, stats: &mut ServerStats) -> Vec<String>;
}

/// What one server counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted<G> {
    /// Which of a cluster's servers; `None` for an only one, which is called as its node is.
    pub member: Option<Member>,
    /// Its counters.
    pub reading: G,
}

/// What the servers of a node counted, and of which instant that is.
pub type Readings<G> = (Instant, Vec<Counted<G>>);

/// A server of a cluster, as long as it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// What differs once it was started again. As long as it does not, its counters go on, over whatever connection they are read.
    pub started: String,
}

/// What some of a server's sessions are doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doing {
    /// Name of the cluster's server; `None` for an only one.
    pub member: Option<String>,
    /// What they do, in the server's words.
    pub what: String,
    /// How many of them.
    pub sessions: u64,
}

/// What was seen in one look at the servers of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sampled {
    /// What the load's sessions do.
    pub doing: Vec<Doing>,
    /// Who holds up those that wait for a lock, and how many; empty unless looked at closely. Of an only server.
    pub blockers: BTreeMap<String, u32>,
    /// Sessions in locks, where what they do does not say so: they are among those of `doing` as well. Of an only server.
    pub in_locks: Option<Doing>,
    /// What the server itself does, where it lets us see. Of an only server.
    pub work: Option<BTreeMap<ServerWork, u32>>,
    /// How long the statement of the load goes on that began first; absent where that is not known.
    pub oldest: Option<Duration>,
    /// When the server had said what sessions do, on the kernel's monotonic clock, if more was asked after that.
    pub answered_ns: Option<u64>,
}

impl From<Vec<Doing>> for Sampled {
    fn from(doing: Vec<Doing>) -> Self {
        Self { doing, ..Self::default() }
    }
}

/// Of an only server.
impl<G> From<G> for Counted<G> {
    fn from(reading: G) -> Self {
        Self { member: None, reading }
    }
}

/// Of an only server.
impl From<(String, u64)> for Doing {
    fn from((what, sessions): (String, u64)) -> Self {
        Self { member: None, what, sessions }
    }
}

/// What the servers reported on one interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reported {
    /// Sums over all servers. What is not known of every one of them is unknown.
    pub counters: Counters,
    /// Each server that answered, in the order of the address.
    pub servers: Vec<ServerStats>,
    /// Looks at each server.
    pub looks: Vec<ServerLooks>,
}

/// Watches all servers of an address, until it is dropped.
#[derive(Debug)]
pub struct Monitor<R: ServerReader> {
    reader: Arc<R>,
    shared: Arc<Shared<R::Reading>>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread and its owner share.
#[derive(Debug)]
struct Shared<G> {
    nodes: Mutex<Vec<Node<G>>>,
    answered: Condvar,
    /// Asks for a reading of each node.
    asked: Vec<Notify>,
    stop: Notify,
}

/// What is connected to: a server, or several of a cluster.
#[derive(Debug)]
struct Node<G> {
    name: String,
    answer: Answer<G>,
    servers: Vec<Server<G>>,
    /// Questions that have no answer yet, on both connections together.
    owed: u32,
    last_answer: Instant,
    notes: Vec<String>,
}

/// One server.
#[derive(Debug)]
struct Server<G> {
    name: String,
    /// Where the current interval began; `None` while that is not known.
    base: Option<Read<G>>,
    samples: BTreeMap<String, u64>,
    sampled_times: u64,
    /// Looks that were not taken yet.
    looks: VecDeque<(u64, Look)>,
}

/// Counters that were read.
#[derive(Debug)]
struct Read<G> {
    at: Instant,
    run: ServerRun,
    reading: G,
}

/// From one start of a server to its end, as far as that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ServerRun {
    /// It says when it was started.
    Started(String),
    /// Over which connection it was read, from 0: what two connections report may be from before and after a restart.
    Connection(u64),
}

/// What became of the question for a reading.
#[derive(Debug)]
enum Answer<G> {
    None,
    Awaited,
    Failed,
    /// Each server that was there, by its name.
    Here(Vec<(String, Read<G>)>),
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
            asked: names.iter().map(|_| Notify::new()).collect(),
            nodes: Mutex::new(names.into_iter().map(Node::new).collect()),
            answered: Condvar::new(),
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
            .spawn(move || run_watch(runtime, &watcher, &watching, &opened))
            .map_err(|source| TargetError::Kernel { action: "start a thread that watches the server", source })?;
        let monitor = Self { reader, shared, thread: Some(thread) };
        match opening.recv() {
            Ok(Ok(())) => Ok(monitor),
            Ok(Err(error)) => Err(error.into()),
            // It panicked; dropping it says so no more than the panic did.
            Err(mpsc::RecvError) => Err(TargetError::Stopped),
        }
    }

    /// How many servers are known to be there.
    pub fn servers(&self) -> usize {
        self.shared.lock().iter().map(|node| node.servers.len()).sum()
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
        let compare = |earlier: &_, later: &mut _, stats: &mut _| self.reader.compare(earlier, later, stats);
        let servers: Vec<ServerStats> = nodes.iter_mut().flat_map(|node| node.take(compare)).collect();
        let all = nodes.iter().map(|node| node.servers.len()).sum();
        let looks = nodes.iter_mut().flat_map(|node| &mut node.servers).map(Server::take_looks);
        let looks = looks.filter(|server| !server.looks.is_empty()).collect();
        Reported { counters: sum(&servers, all), servers, looks }
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
        for node in nodes.iter() {
            for note in &node.notes {
                match notes.iter_mut().find(|(known, _)| known == note) {
                    Some((_, names)) => names.push(&node.name),
                    None => notes.push((note, vec![&node.name])),
                }
            }
        }
        let single = nodes.len() == 1;
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

/// What `servers` counted together; unknown unless that is all that there are: adding up those that know something would pass for
/// the whole.
fn sum(servers: &[ServerStats], all: usize) -> Counters {
    let sum = servers.iter().map(|server| server.counters.clone()).reduce(|sum, more| sum.with(&more));
    sum.filter(|_| servers.len() == all).unwrap_or_default()
}

impl<G> Shared<G> {
    fn lock(&self) -> MutexGuard<'_, Vec<Node<G>>> {
        // What a panic left behind is only counts.
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<G> Node<G> {
    fn new(name: String) -> Self {
        Self {
            name,
            answer: Answer::None,
            servers: Vec::new(),
            owed: 0,
            last_answer: Instant::now(),
            notes: Vec::new(),
        }
    }

    /// Readings by the names of their servers.
    fn read(&self, at: Instant, connection: u64, counted: Vec<Counted<G>>) -> Vec<(String, Read<G>)> {
        let read = |Counted { member, reading }| match member {
            Some(Member { name, started }) => (name, Read { at, run: ServerRun::Started(started), reading }),
            None => (self.name.clone(), Read { at, run: ServerRun::Connection(connection), reading }),
        };
        counted.into_iter().map(read).collect()
    }

    /// What happened on each server since its last reading, if there is a new one that goes with it.
    fn take(&mut self, compare: impl Fn(&G, &mut G, &mut ServerStats) -> Vec<String>) -> Vec<ServerStats> {
        let read = match std::mem::replace(&mut self.answer, Answer::None) {
            Answer::Here(read) => read,
            Answer::Awaited => {
                self.answer = Answer::Awaited;
                return Vec::new();
            }
            Answer::None | Answer::Failed => return Vec::new(),
        };
        let gone = self.servers.iter().filter(|server| !read.iter().any(|(name, _)| *name == server.name));
        let gone = gone.map(|server| {
            format!("`{}` is not there any more: what it counted after its last reading is unknown", server.name)
        });
        let mut notes: Vec<String> = gone.collect();
        let mut reported = Vec::new();
        for (name, later) in read {
            let Some(server) = self.servers.iter_mut().find(|server| server.name == name) else {
                notes.push(format!("`{name}` came during the load: what it counts is known from then on"));
                self.servers.push(Server::new(name, later));
                continue;
            };
            let (stats, more) = server.take(later, &compare);
            reported.extend(stats);
            notes.extend(more);
        }
        notes.into_iter().for_each(|note| self.note(note));
        reported
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

impl<G> Server<G> {
    /// That is read for the first time.
    fn new(name: String, base: Read<G>) -> Self {
        Self { name, base: Some(base), samples: BTreeMap::new(), sampled_times: 0, looks: VecDeque::new() }
    }

    fn take_looks(&mut self) -> ServerLooks {
        ServerLooks { node: self.name.clone(), looks: std::mem::take(&mut self.looks).into() }
    }

    fn looked(&mut self, at_ns: u64, look: Look) {
        if self.looks.len() == MAX_LOOKS {
            self.looks.pop_front();
        }
        self.looks.push_back((at_ns, look));
    }

    /// What happened since the last reading, if that is of the same run of it; and what there is to know.
    fn take(
        &mut self,
        mut later: Read<G>,
        compare: impl Fn(&G, &mut G, &mut ServerStats) -> Vec<String>,
    ) -> (Option<ServerStats>, Vec<String>) {
        let mut stats = ServerStats {
            node: self.name.clone(),
            session_samples: std::mem::take(&mut self.samples),
            sampled_times: std::mem::take(&mut self.sampled_times),
            ..ServerStats::default()
        };
        let mut notes = Vec::new();
        let earlier = self.base.take();
        if let (Some(ServerRun::Started(then)), ServerRun::Started(now)) =
            (earlier.as_ref().map(|earlier| &earlier.run), &later.run)
            && then != now
        {
            notes.push(format!("`{}` was started again during the load: its counters began anew", self.name));
        }
        let set_back = earlier.filter(|earlier| earlier.run == later.run).map(|earlier| {
            let elapsed = later.at.duration_since(earlier.at);
            stats.elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
            compare(&earlier.reading, &mut later.reading, &mut stats)
        });
        self.base = Some(later);
        let is_known = set_back.is_some();
        notes.extend(set_back.into_iter().flatten().map(|view| {
            format!("the counters in `{view}` were set back during the load: they are unknown where it happened")
        }));
        (is_known.then_some(stats), notes)
    }
}

// The monitor's thread: connections to all servers, and what is asked over them.

/// Between attempts to connect again.
const RECONNECT_PAUSE: Duration = Duration::from_millis(500);
/// Looking at sessions may take one part in so many of the time,
pub(crate) const SAMPLING_SHARE: u32 = 20;
/// and where they are looked at closely.
const CLOSELY_SHARE: u32 = 4;
/// Looks at a server that wait to be taken, as they are every second.
const MAX_LOOKS: usize = 2_000;
/// How long connections have to take their leave.
const FAREWELL: Duration = Duration::from_millis(20);

/// Watches until it is asked to stop. Says to `opened` whether all servers could be asked.
fn run_watch<R: ServerReader>(
    runtime: Runtime,
    shared: &Arc<Shared<R::Reading>>,
    reader: &Arc<R>,
    opened: &mpsc::Sender<Result<(), ServerError>>,
) {
    runtime.block_on(async {
        let mut tasks = Vec::new();
        for node in 0..reader.nodes().len() {
            match Watch::open(shared, reader, node).await {
                Ok((watch, counters, samples)) => {
                    let watch = Arc::new(watch);
                    tasks.push(tokio::spawn(Arc::clone(&watch).answer(counters)));
                    tasks.push(tokio::spawn(watch.sample(samples)));
                }
                Err(error) => {
                    // Nobody waits only where the owner is gone, and then nothing is to be reported.
                    let _ = opened.send(Err(error));
                    return;
                }
            }
        }
        let _ = opened.send(Ok(()));
        shared.stop.notified().await;
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
        tokio::time::sleep(FAREWELL).await;
    });
    // A name that is being looked up is not waited for.
    runtime.shutdown_background();
}

/// One node, as its two tasks see it.
struct Watch<R: ServerReader> {
    shared: Arc<Shared<R::Reading>>,
    reader: Arc<R>,
    node: usize,
}

impl<R: ServerReader> Watch<R> {
    async fn open(
        shared: &Arc<Shared<R::Reading>>,
        reader: &Arc<R>,
        node: usize,
    ) -> Result<(Self, R::CounterLine, R::SampleLine), ServerError> {
        let watch = Self { shared: Arc::clone(shared), reader: Arc::clone(reader), node };
        let (mut counters, notes) = reader.open_counters(node).await?;
        let samples = reader.open_samples(node).await?;
        let (at, counted) = reader.read(&mut counters).await?;
        let mut nodes = shared.lock();
        let read = nodes[node].read(at, 0, counted);
        nodes[node].servers = read.into_iter().map(|(name, read)| Server::new(name, read)).collect();
        nodes[node].notes = notes;
        nodes[node].last_answer = Instant::now();
        drop(nodes);
        Ok((watch, counters, samples))
    }

    /// Reads the counters whenever they are asked for.
    async fn answer(self: Arc<Self>, mut line: R::CounterLine) {
        let mut connection = 0;
        loop {
            self.shared.asked[self.node].notified().await;
            self.ask();
            let answer = self.reader.read(&mut line).await;
            let lost = matches!(&answer, Err(error) if error.refusal().is_none());
            {
                let node = &mut self.shared.lock()[self.node];
                node.answer = match answer {
                    Ok((at, counted)) => Answer::Here(node.read(at, connection, counted)),
                    Err(_) => Answer::Failed,
                };
            }
            self.shared.answered.notify_all();
            if lost {
                self.shared.lock()[self.node].note(
                    "the connection that reads the server's counters broke: they are unknown until it was made again"
                        .to_owned(),
                );
                let (again, notes) = loop {
                    match self.reader.open_counters(self.node).await {
                        Ok(opened) => break opened,
                        Err(_) => tokio::time::sleep(RECONNECT_PAUSE).await,
                    }
                };
                // What is there now need not be what was there before.
                let node = &mut self.shared.lock()[self.node];
                notes.into_iter().for_each(|note| node.note(note));
                line = again;
                connection += 1;
            }
            self.answered();
        }
    }

    /// Looks at the sessions again and again. Averages are of looks at even distances; those in between are for stalls.
    async fn sample(self: Arc<Self>, mut line: R::SampleLine) {
        let mut usual = Usual::default();
        let mut is_close = false;
        let mut counts_from = Instant::now();
        let mut pace = Pace::default();
        loop {
            let (begun, begun_ns) = (Instant::now(), monotonic_ns());
            let is_counted = begun >= counts_from;
            self.ask();
            match self.reader.sample(&mut line, is_close).await {
                Ok(sampled) => {
                    is_close = usual.is_exceeded(sampled.oldest, is_counted);
                    let answered_ns = sampled.answered_ns.unwrap_or_else(monotonic_ns);
                    self.seen(sampled, is_counted, (begun_ns, answered_ns));
                }
                Err(error) if error.refusal().is_some() => {}
                Err(_) => {
                    line = loop {
                        match self.reader.open_samples(self.node).await {
                            Ok(line) => break line,
                            Err(_) => tokio::time::sleep(RECONNECT_PAUSE).await,
                        }
                    };
                }
            }
            self.answered();
            if is_counted {
                counts_from = begun + pace.period(begun.elapsed(), self.reader.sample_every(), SAMPLING_SHARE);
            }
            let closely = begun + CLOSELY_EVERY.max(begun.elapsed() * CLOSELY_SHARE);
            let next = if is_close { counts_from.min(closely) } else { counts_from };
            tokio::time::sleep_until(next.into()).await;
        }
    }

    /// Keeps what was seen between two instants: for the averages of the interval if it counts there, and as a look.
    fn seen(&self, sampled: Sampled, is_counted: bool, (begun_ns, ended_ns): (u64, u64)) {
        let Sampled { doing, blockers, in_locks, work, .. } = sampled;
        let mut nodes = self.shared.lock();
        let servers = &mut nodes[self.node].servers;
        let took_us = ended_ns.saturating_sub(begun_ns) / 1_000;
        let mut looks: Vec<Look> = servers.iter().map(|_| Look { took_us, ..Look::default() }).collect();
        if let [look] = &mut looks[..] {
            (look.blockers, look.work) = (blockers, work);
            let in_locks =
                in_locks.map(|Doing { what, sessions, .. }| (what, u32::try_from(sessions).unwrap_or(u32::MAX)));
            look.sessions.extend(in_locks);
        }
        for Doing { member, what, sessions } in doing {
            // An only server is called as its node is.
            let place = servers.iter().position(|server| member.as_ref().is_none_or(|name| *name == server.name));
            let Some(place) = place else { continue };
            let count = looks[place].sessions.entry(what.clone()).or_default();
            *count = count.saturating_add(u32::try_from(sessions).unwrap_or(u32::MAX));
            // What was seen at all has a name in the interval, so that its meaning is known.
            *servers[place].samples.entry(what).or_default() += if is_counted { sessions } else { 0 };
        }
        for (server, look) in servers.iter_mut().zip(looks) {
            server.sampled_times += u64::from(is_counted);
            // It was at an unknown instant between the two.
            let look = if look.is_late() { Look { took_us, ..Look::default() } } else { look };
            server.looked(begun_ns.midpoint(ended_ns), look);
        }
    }

    fn ask(&self) {
        let mut nodes = self.shared.lock();
        let node = &mut nodes[self.node];
        // A server that was asked nothing was not silent.
        if node.owed == 0 {
            node.last_answer = Instant::now();
        }
        node.owed += 1;
    }

    fn answered(&self) {
        let mut nodes = self.shared.lock();
        nodes[self.node].owed -= 1;
        nodes[self.node].last_answer = Instant::now();
    }
}

/// How long looks take at least, of late. One that a stall held up costs the server nothing: the next follows soon.
#[derive(Debug, Default)]
pub(crate) struct Pace(VecDeque<Duration>);

impl Pace {
    const LOOKS: usize = 5;

    /// From the beginning of a look that took so long to the next one: `least`, and so long that looking costs at most one part in `share` of the
    /// time.
    pub(crate) fn period(&mut self, took: Duration, least: Duration, share: u32) -> Duration {
        if self.0.len() == Self::LOOKS {
            self.0.pop_front();
        }
        self.0.push_back(took);
        least.max(self.0.iter().min().copied().unwrap_or(took) * share)
    }
}

/// How long the oldest statement of the load usually goes on.
#[derive(Debug, Default)]
struct Usual {
    /// Of the last looks.
    oldest: VecDeque<Duration>,
    /// For so many looks it was exceeded without an end.
    exceeded: u32,
}

impl Usual {
    /// So many looks say what is usual.
    const LOOKS: usize = 128;
    /// A stall does not make itself usual until it has lasted for so many, a minute at their usual distance: then load has become slower.
    const PATIENCE: u32 = 1_200;
    /// Before that many nothing is usual.
    const LEAST: usize = 8;
    /// A statement takes far longer than usual beyond so many times the median of the oldest,
    const TIMES: u32 = 3;
    /// and this long: shorter ones are of no episode.
    const LONG: Duration = Duration::from_nanos(model::record::LONG_NS);

    /// Whether a statement goes on far longer than usual. Learns from looks at even distances.
    fn is_exceeded(&mut self, oldest: Option<Duration>, is_counted: bool) -> bool {
        // Without a session at work nothing goes on.
        let oldest = oldest.unwrap_or_default();
        let mut sorted: Vec<Duration> = self.oldest.iter().copied().collect();
        sorted.sort_unstable();
        let median = sorted.get(sorted.len() / 2).filter(|_| sorted.len() >= Self::LEAST);
        let is_exceeded = median.is_some_and(|median| oldest >= Self::LONG.max(*median * Self::TIMES));
        if is_counted {
            self.exceeded = if is_exceeded { self.exceeded.saturating_add(1) } else { 0 };
            if !is_exceeded || self.exceeded > Self::PATIENCE {
                if self.oldest.len() == Self::LOOKS {
                    self.oldest.pop_front();
                }
                self.oldest.push_back(oldest);
            }
        }
        is_exceeded
    }
}

#[cfg(test)]
pub(crate) mod tests;
