//! The load's end: says what was acknowledged, and waits until that is noted.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::brief;
use crate::opening::Opening;
use crate::witness::{ALIVE_EVERY, End, FromLoad, FromWitness, PIPE_HEADING};
use targets::ending::EndSignal;
use targets::network::wire::{Control, Token, Version, WireError, prove_load};

/// How long a connection and its handshake may take.
const CONNECTS_IN: Duration = Duration::from_secs(10);
/// How long an answer may take before the witness is taken for gone.
const ANSWERS_IN: Duration = Duration::from_secs(10);
/// How long a user who ends a load waits for a pipe that takes nothing.
const TAKES_IN: Duration = Duration::from_secs(2);
/// A pipe that takes anything takes so much at once (`PIPE_BUF`, see pipe(7)).
const NEVER_BLOCKS: usize = 4096;
/// How often threads look whether they are to end.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Why a witness cannot be had, or not any more.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum LinkError {
    /// Its name has no address.
    #[error("the witness `{name}` has no address: {source}")]
    #[diagnostic(help("check the name, or give an IP address: `--witness 10.0.0.2:7018`"))]
    NoAddress {
        /// As the user named it.
        name: String,
        /// The system's reason.
        source: io::Error,
    },
    /// Nothing takes connections there.
    #[error("cannot connect to the witness `{name}`: {source}")]
    #[diagnostic(help("start it there first: `plimsoll durable witness --listen HOST:PORT --notes FILE`"))]
    Connect {
        /// As the user named it.
        name: String,
        /// The system's reason.
        source: io::Error,
    },
    /// It could not be agreed on who is who.
    #[error("`{name}` is not a witness that can be used: {}", of_wire(source))]
    #[diagnostic(help("{}", hint_of_wire(source)))]
    Wire {
        /// As the user named it.
        name: String,
        /// What went wrong.
        source: WireError,
    },
    /// It refuses the load.
    #[error("the witness `{name}` refuses: {why}")]
    #[diagnostic(help(
        "start a new witness, of the same version of Plimsoll: each load has one, with a file of notes of its own"
    ))]
    Refused {
        /// As the user named it.
        name: String,
        /// Its reason.
        why: String,
    },
    /// It went away, or does not answer.
    #[error("the witness `{name}` is gone: {why}")]
    #[diagnostic(help(
        "look at the witness and the network to it, remove what the load made (`plimsoll durable drop`), and repeat"
    ))]
    Gone {
        /// As the user named it.
        name: String,
        /// What is known of it.
        why: String,
    },
    /// Standard output takes nothing.
    #[error("standard output takes nothing, so nothing more can be noted: {0}")]
    #[diagnostic(help("pipe it into a witness: `plimsoll durable witness --stdin --notes FILE`"))]
    Pipe(io::Error),
    /// There is no thread for it.
    #[error("no thread can be started: {0}")]
    Thread(io::Error),
}

/// The words of the wire speak of servers and tests of `net`.
fn of_wire(error: &WireError) -> String {
    match error {
        WireError::TokenRefused => "it has another token".to_owned(),
        WireError::Closed { .. } | WireError::NoTest => "it closed the connection".to_owned(),
        error => error.to_string(),
    }
}

fn hint_of_wire(error: &WireError) -> String {
    match error {
        WireError::TokenRefused => {
            "set PLIMSOLL_WITNESS_TOKEN, or name a file with --token-file, to the token that the witness shows"
        }
        WireError::OtherProtocol { .. } => "run the same version of plimsoll on both hosts",
        WireError::Silent { .. } => "a firewall may drop what is sent, or another program listens there",
        _ => "look what listens there; a witness is `plimsoll durable witness --listen HOST:PORT --notes FILE`",
    }
    .to_owned()
}

/// What notes acknowledged commits, for several sessions at once.
pub trait Notebook: Sync {
    /// Says that a session's commit was acknowledged; the session may go on once this returns.
    ///
    /// # Errors
    /// When that is not known to be noted: no further commit may be made.
    fn note(&self, session: u32, seq: u64) -> Result<(), LinkError>;
}

/// A connection to a witness.
#[derive(Debug)]
pub struct Link {
    name: String,
    shared: Arc<Shared>,
    stream: TcpStream,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Something was answered, or the witness is gone.
    answered: Condvar,
    /// Something is to be said.
    queued: Condvar,
}

#[derive(Debug, Default)]
struct State {
    words: VecDeque<FromLoad>,
    commits: Vec<(u32, u64)>,
    /// The last noted commit of each session.
    noted: Vec<u64>,
    /// Commits that were said and are not noted, and since when the first of them, or of those after the last answer.
    unanswered: u64,
    since: Option<Instant>,
    answers: VecDeque<FromWitness>,
    gone: Option<String>,
    is_ending: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lose(&self, why: String) {
        self.state().gone.get_or_insert(why);
        self.answered.notify_all();
        self.queued.notify_all();
    }
}

impl Link {
    /// Comes to the witness at `host`, and proves that both know the token. `name` is how it is shown.
    ///
    /// # Errors
    /// When it is not there, or is none that takes a load.
    pub fn connect(name: &str, (host, port): (&str, u16), token: &Token) -> Result<Self, LinkError> {
        let no_address = |source| LinkError::NoAddress { name: name.to_owned(), source };
        let addresses: Vec<SocketAddr> = (host, port).to_socket_addrs().map_err(no_address)?.collect();
        let (mut first_error, end) = (None, EndSignal::from_now_on());
        let mut connect = |address: &SocketAddr| {
            end.connect(*address, CONNECTS_IN).map_err(|error| first_error.get_or_insert(error).kind()).ok()
        };
        let stream = addresses.iter().find_map(&mut connect);
        let none = || io::Error::from(io::ErrorKind::AddrNotAvailable);
        let refused = |source| LinkError::Connect { name: name.to_owned(), source };
        let stream = stream.ok_or_else(|| refused(first_error.unwrap_or_else(none)))?;
        let wire = |source| LinkError::Wire { name: name.to_owned(), source };
        let socket = |source| wire(WireError::Io { action: "prepare a connection", source });
        stream.set_nodelay(true).map_err(socket)?;
        let watched = stream.try_clone().map_err(socket)?;
        let deadline = Instant::now() + CONNECTS_IN;
        let (hears, says) = (stream.try_clone().map_err(socket)?, stream.try_clone().map_err(socket)?);
        let mut hears = Control::<FromWitness, FromLoad>::new(hears);
        let says = Control::<FromWitness, FromLoad>::new(says);
        let met = end.during(&watched, || {
            prove_load(&stream, &token.key(), deadline)?;
            says.send(&FromLoad::Hello(Version::ours()))?;
            hears.expect(deadline)
        });
        match met.map_err(wire)? {
            FromWitness::Welcome => {}
            FromWitness::Refused(why) => return Err(LinkError::Refused { name: name.to_owned(), why: brief(&why) }),
            _ => return Err(wire(WireError::malformed("the first answer", "it is not a welcome"))),
        }
        let shared = Arc::new(Shared::default());
        let mut link = Self { name: name.to_owned(), shared: Arc::clone(&shared), stream, threads: Vec::new() };
        let sender = Arc::clone(&shared);
        link.start("witness say", move || say(&sender, &says))?;
        link.start("witness hear", move || hear(&shared, hears))?;
        Ok(link)
    }

    fn start(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), LinkError> {
        let started = std::thread::Builder::new().name(name.to_owned()).spawn(work);
        self.threads.push(started.map_err(LinkError::Thread)?);
        Ok(())
    }

    /// Tells the witness that load begins, and waits until it has written that down.
    ///
    /// # Errors
    /// When it refuses or is gone.
    pub fn open(&self, opening: &Opening) -> Result<(), LinkError> {
        self.shared.state().noted = vec![0; opening.shape.sessions as usize];
        match self.ask(FromLoad::Open(Box::new(opening.clone())))? {
            FromWitness::Opened => Ok(()),
            FromWitness::Refused(why) => Err(LinkError::Refused { name: self.name.clone(), why: brief(&why) }),
            other => Err(self.gone(&format!("it answers {other:?}"))),
        }
    }

    /// Tells the witness how the load ended, and waits until it has written that down.
    ///
    /// # Errors
    /// When it is gone.
    pub fn end(&self, end: End) -> Result<(), LinkError> {
        match self.ask(FromLoad::End(end))? {
            FromWitness::Closed => Ok(()),
            other => Err(self.gone(&format!("it answers {other:?}"))),
        }
    }

    fn gone(&self, why: &str) -> LinkError {
        LinkError::Gone { name: self.name.clone(), why: brief(why) }
    }

    fn ask(&self, word: FromLoad) -> Result<FromWitness, LinkError> {
        let deadline = Instant::now() + ANSWERS_IN;
        let mut state = self.shared.state();
        state.words.push_back(word);
        self.shared.queued.notify_all();
        loop {
            if let Some(answer) = state.answers.pop_front() {
                return Ok(answer);
            }
            if let Some(why) = &state.gone {
                return Err(self.gone(why));
            }
            if Instant::now() >= deadline {
                return Err(self.gone("it does not answer"));
            }
            state = wait(&self.shared.answered, state, LOOK_EVERY);
        }
    }
}

impl Notebook for Link {
    fn note(&self, session: u32, seq: u64) -> Result<(), LinkError> {
        let mut state = self.shared.state();
        state.commits.push((session, seq));
        state.unanswered += 1;
        state.since.get_or_insert_with(Instant::now);
        self.shared.queued.notify_one();
        loop {
            if state.noted.get(session as usize).is_some_and(|noted| *noted >= seq) {
                return Ok(());
            }
            if let Some(why) = &state.gone {
                return Err(self.gone(why));
            }
            state = wait(&self.shared.answered, state, LOOK_EVERY);
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.shared.state().is_ending = true;
        self.shared.queued.notify_all();
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
        for thread in self.threads.drain(..) {
            // A panic in it has been printed, and the witness sees the connection end.
            let _ = thread.join();
        }
    }
}

fn wait<'a>(on: &Condvar, state: MutexGuard<'a, State>, patience: Duration) -> MutexGuard<'a, State> {
    on.wait_timeout(state, patience).unwrap_or_else(PoisonError::into_inner).0
}

/// Says what is to be said, and twice a second that the load is there.
fn say(shared: &Shared, says: &Control<FromWitness, FromLoad>) {
    let mut said = Instant::now();
    let mut state = shared.state();
    loop {
        if state.is_ending || state.gone.is_some() {
            return;
        }
        let commits = std::mem::take(&mut state.commits);
        let word = if commits.is_empty() { state.words.pop_front() } else { Some(FromLoad::Notes(commits)) };
        let word = word.or_else(|| (said.elapsed() >= ALIVE_EVERY).then_some(FromLoad::Alive));
        let Some(word) = word else {
            let patience = ALIVE_EVERY.saturating_sub(said.elapsed()).max(Duration::from_millis(1));
            state = wait(&shared.queued, state, patience);
            continue;
        };
        drop(state);
        if let Err(error) = says.send(&word) {
            return shared.lose(of_wire(&error));
        }
        said = Instant::now();
        state = shared.state();
    }
}

fn hear(shared: &Shared, mut hears: Control<FromWitness, FromLoad>) {
    loop {
        let heard = hears.receive(Instant::now() + LOOK_EVERY);
        let mut state = shared.state();
        if state.is_ending {
            return;
        }
        match heard {
            Ok(Some(FromWitness::Noted(commits))) => {
                for (session, seq) in commits {
                    let Some(noted) = state.noted.get_mut(session as usize) else {
                        drop(state);
                        return shared.lose("it answers for a session that there is not".to_owned());
                    };
                    *noted = seq.max(*noted);
                    state.unanswered = state.unanswered.saturating_sub(1);
                }
                state.since = (state.unanswered > 0).then(Instant::now);
            }
            Ok(Some(FromWitness::Failed(why))) => {
                drop(state);
                return shared.lose(brief(&why));
            }
            Ok(Some(answer)) => {
                // There is one question at a time.
                state.answers.truncate(1);
                state.answers.push_back(answer);
            }
            Ok(None) => {
                if state.since.is_some_and(|since| since.elapsed() >= ANSWERS_IN) {
                    drop(state);
                    return shared.lose("it does not answer".to_owned());
                }
            }
            Err(error) => {
                drop(state);
                return shared.lose(of_wire(&error));
            }
        }
        drop(state);
        shared.answered.notify_all();
    }
}

/// Standard output, read by a witness at the other end of a pipe. Nothing answers.
#[derive(Debug)]
pub struct Pipe<'a> {
    out: Mutex<Out>,
    stop: &'a AtomicBool,
}

#[derive(Debug)]
struct Out {
    file: File,
    /// Half a line may have been written, so that no other can follow.
    is_broken: bool,
}

impl<'a> Pipe<'a> {
    /// Begins to write to `out`. Once `stop` is set, one that takes nothing is given up.
    ///
    /// # Errors
    /// When nothing reads it.
    pub fn begin(out: impl AsFd, stop: &'a AtomicBool) -> Result<Self, LinkError> {
        let file = File::from(out.as_fd().try_clone_to_owned().map_err(LinkError::Pipe)?);
        let pipe = Self { out: Mutex::new(Out { file, is_broken: false }), stop };
        pipe.write(&format!("{PIPE_HEADING}{}", Version::ours().program))?;
        Ok(pipe)
    }

    fn write(&self, line: &str) -> Result<(), LinkError> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        if out.is_broken {
            return Err(LinkError::Pipe(io::ErrorKind::BrokenPipe.into()));
        }
        let written = self.write_all(&out.file, format!("{line}\n").as_bytes());
        out.is_broken = written.is_err();
        written.map_err(LinkError::Pipe)
    }

    /// A line in one request as far as that cannot block, so that none waits for others.
    fn write_all(&self, mut file: &File, mut bytes: &[u8]) -> io::Result<()> {
        let mut waited = Duration::ZERO;
        while !bytes.is_empty() {
            let patience = Timespec { tv_sec: 0, tv_nsec: LOOK_EVERY.subsec_nanos().into() };
            match poll(&mut [PollFd::new(file, PollFlags::OUT)], Some(&patience)) {
                Ok(0) if self.stop.load(Ordering::Relaxed) && waited >= TAKES_IN => {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "its reader takes nothing"));
                }
                Ok(0) => waited += LOOK_EVERY,
                Err(Errno::INTR) => {}
                Ok(_) => match file.write(&bytes[..bytes.len().min(NEVER_BLOCKS)]) {
                    Ok(written) => bytes = &bytes[written..],
                    Err(error) if [io::ErrorKind::Interrupted, io::ErrorKind::WouldBlock].contains(&error.kind()) => {}
                    Err(error) => return Err(error),
                },
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Says that load begins.
    ///
    /// # Errors
    /// When nothing reads it.
    pub fn open(&self, opening: &Opening) -> Result<(), LinkError> {
        let text = serde_json::to_string(opening).map_err(|error| LinkError::Pipe(error.into()))?;
        self.write(&format!("open {text}"))
    }

    /// Says that the load is there, to be repeated twice a second.
    ///
    /// # Errors
    /// When nothing reads it.
    pub fn alive(&self) -> Result<(), LinkError> {
        self.write("alive")
    }

    /// Says how the load ended.
    ///
    /// # Errors
    /// When nothing reads it.
    pub fn end(&self, end: &End) -> Result<(), LinkError> {
        let text = serde_json::to_string(end).map_err(|error| LinkError::Pipe(error.into()))?;
        self.write(&format!("end {text}"))
    }
}

impl Notebook for Pipe<'_> {
    fn note(&self, session: u32, seq: u64) -> Result<(), LinkError> {
        self.write(&format!("{session} {seq}"))
    }
}
