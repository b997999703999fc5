//! Processes that are this program with one load, supervised: several that run at the same time, one after the other, or asked what they
//! would do.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child as Process, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::exit::{Exit, Failure};
use super::supervisor::{Kept, Order, Said, Ticket, VARIABLE, pipe_name};
use super::typed;
use model::units::Nanos;

/// This very program, also if its file was replaced meanwhile.
const PROGRAM: &str = "/proc/self/exe";
/// How often it is looked whether a child has gone without a word.
const LOOK_AROUND: Duration = Duration::from_millis(50);
/// How long what a child said last is waited for once it has gone: what it started may hold its output open.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Exit codes from here on are those of signals.
const SIGNALS: u8 = 128;
/// Lines of its standard error that are kept, for a child that goes without a word.
const TAIL: usize = 8;

/// How far a child is.
#[derive(Debug)]
pub(super) enum State {
    /// It connects and prepares.
    Preparing,
    /// All of its sessions can begin.
    Ready,
    /// Its load is on: for so long, and what its last second was.
    Loading { over_ns: u64, words: String },
    /// It has ended and is kept.
    Ended { run: PathBuf, limits: Kept },
    /// It could not be done.
    Failed,
}

/// One load's process.
#[derive(Debug)]
pub(super) struct Child {
    /// Index of the load.
    pub(super) load: usize,
    pub(super) state: State,
    process: Process,
    /// Closed when this process ends, however it ends: then the child ends too.
    orders: PipeWriter,
    last_lines: Arc<Mutex<VecDeque<String>>>,
    exited: Option<(ExitStatus, Instant)>,
    is_silent: bool,
    is_gone: bool,
}

/// What a load would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Planned {
    /// How long it is on; unknown where that follows from what is measured.
    pub(super) time: Option<Nanos>,
    /// Whether that is simulated time, which passes in a moment.
    pub(super) is_simulated: bool,
}

/// Has a load plan what it would do, in a process of its own, so that whatever is wrong with it is found.
pub(super) fn planned(arguments: &[OsString]) -> Result<Planned, Failure> {
    let arguments = typed::with_options(arguments.to_vec(), ["--dry-run".into()]);
    let (mut command, orders) = supervised(&arguments, BTreeMap::new(), false)?;
    let output = command.output().map_err(cannot_start)?;
    drop(orders);
    let lines = String::from_utf8_lossy(&output.stdout);
    // The plan in words stands there too.
    let said = lines.lines().rev().filter_map(|line| serde_json::from_str(line).ok());
    let mut answers = said.filter(|said| matches!(said, Said::Planned { .. } | Said::Failed { .. }));
    match answers.next() {
        Some(Said::Planned { time_ns, is_simulated }) if output.status.success() => {
            Ok(Planned { time: time_ns.map(Nanos), is_simulated })
        }
        Some(Said::Failed { message, hint, .. }) => Err(Failure::new(message).with_hint(hint)),
        _ => Err(without_a_word(output.status, String::from_utf8_lossy(&output.stderr).lines())),
    }
}

/// This program with a supervisor, and the pipe for its orders.
fn supervised(
    arguments: &[OsString],
    tags: BTreeMap<String, String>,
    has_company: bool,
) -> Result<(Command, PipeWriter), Failure> {
    let (reader, orders): (PipeReader, PipeWriter) = std::io::pipe().map_err(cannot_start)?;
    let pipe = pipe_name(reader.as_raw_fd())
        .ok_or_else(|| Failure::new("`/proc` does not say what is behind a pipe, which loads need to know"))?;
    let ticket = serde_json::to_string(&Ticket { pipe, tags, has_company })?;
    let mut command = Command::new(PROGRAM);
    command.arg0("plimsoll").args(arguments).env(VARIABLE, ticket).stdin(reader);
    Ok((command, orders))
}

fn cannot_start(error: std::io::Error) -> Failure {
    Failure::new(format_args!("cannot start a process of its own: {error}"))
}

fn without_a_word<'a>(status: ExitStatus, last: impl Iterator<Item = &'a str>) -> Failure {
    let last: Vec<&str> = last.collect();
    let failure = Failure::new(format_args!("its process ended without a word: {status}"));
    failure.with_hint((!last.is_empty()).then(|| format!("its last lines: {}", last.join(" / "))))
}

enum Event {
    Said(Said),
    Silent,
}

/// Children that run at the same time. None of them outlives it.
pub(super) struct Children {
    pub(super) all: Vec<Child>,
    events: Sender<(usize, Event)>,
    hear: Receiver<(usize, Event)>,
    is_stopped: bool,
    /// The first failure, with the load whose it is.
    failure: Option<(usize, Failure)>,
}

impl Children {
    pub(super) fn new() -> Self {
        let (events, hear) = mpsc::channel();
        Self { all: Vec::new(), events, hear, is_stopped: false, failure: None }
    }

    /// Starts the process of load number `index`, whose record gets `tags`. With company it waits for [`begin`](Self::begin).
    pub(super) fn start(
        &mut self,
        index: usize,
        arguments: &[OsString],
        tags: BTreeMap<String, String>,
        has_company: bool,
    ) -> Result<(), Failure> {
        let (mut command, orders) = supervised(arguments, tags, has_company)?;
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(cannot_start)?;
        let last_lines: Arc<Mutex<VecDeque<String>>> = Arc::default();
        if let Some(stderr) = process.stderr.take() {
            let kept = Arc::clone(&last_lines);
            let keep = move |line: String| {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.len() == TAIL {
                    kept.pop_front();
                }
                kept.push_back(line);
            };
            std::thread::spawn(move || BufReader::new(stderr).lines().map_while(Result::ok).for_each(keep));
        }
        if let Some(stdout) = process.stdout.take() {
            let (events, place) = (self.events.clone(), self.all.len());
            std::thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    // What a program that a load calls may print is nothing for us.
                    if let Ok(said) = serde_json::from_str(&line) {
                        let _ = events.send((place, Event::Said(said)));
                    }
                }
                let _ = events.send((place, Event::Silent));
            });
        }
        let state = State::Preparing;
        let (exited, is_silent, is_gone) = (None, false, false);
        self.all.push(Child { load: index, state, process, orders, last_lines, exited, is_silent, is_gone });
        Ok(())
    }

    /// Waits a moment for what the children have to say.
    pub(super) fn listen(&mut self) {
        match self.hear.recv_timeout(LOOK_AROUND) {
            Ok((place, event)) => self.take(place, event),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        while let Ok((place, event)) = self.hear.try_recv() {
            self.take(place, event);
        }
        for place in 0..self.all.len() {
            self.look_after(place);
        }
    }

    fn take(&mut self, place: usize, event: Event) {
        let child = &mut self.all[place];
        let said = match event {
            Event::Silent => {
                child.is_silent = true;
                return;
            }
            Event::Said(said) => said,
        };
        match said {
            // A plan is no run, and is not started here.
            Said::Planned { .. } => {}
            Said::Ready => child.state = State::Ready,
            Said::Second { over_ns, words } => child.state = State::Loading { over_ns, words },
            Said::Ended { run, limits } => child.state = State::Ended { run, limits },
            Said::Failed { code, .. } if code > SIGNALS => {
                // The user's signal may be heard there first.
                child.state = State::Failed;
                self.stop();
            }
            Said::Failed { message, hint, code } => {
                child.state = State::Failed;
                let exit = if code == 1 { Exit::NotMet } else { Exit::CouldNot };
                self.fail(place, Failure::new(message).with_hint(hint).with_exit(exit));
            }
        }
    }

    /// Notices a child that has gone.
    fn look_after(&mut self, place: usize) {
        let child = &mut self.all[place];
        if child.is_gone {
            return;
        }
        if child.exited.is_none() {
            child.exited = child.process.try_wait().ok().flatten().map(|status| (status, Instant::now()));
        }
        let Some((status, since)) = child.exited else { return };
        if !child.is_silent && since.elapsed() < LAST_WORDS {
            return;
        }
        child.is_gone = true;
        if matches!(child.state, State::Failed) || (matches!(child.state, State::Ended { .. }) && status.success()) {
            return;
        }
        if let State::Ended { run, .. } = &child.state {
            // Its load went well, and what it left did not: an audit found data that are not sound.
            let words = format!("what the load left is not sound ({status})");
            let failure = Failure::new(words).with_exit(Exit::NotMet);
            let failure = failure.with_hint(format!("`plimsoll report {}` says why", run.display()));
            self.fail(place, failure);
            return;
        }
        child.state = State::Failed;
        let lines = child.last_lines.lock().unwrap_or_else(PoisonError::into_inner);
        let failure = without_a_word(status, lines.iter().map(String::as_str));
        drop(lines);
        self.fail(place, failure);
    }

    fn fail(&mut self, place: usize, failure: Failure) {
        let load = self.all[place].load;
        // What fails once an end was asked for failed because of that.
        if !self.is_stopped {
            self.failure.get_or_insert((load, failure));
        }
        self.stop();
    }

    /// Begins the load of all at one reading of the monotonic clock.
    pub(super) fn begin(&mut self, at_ns: u64) {
        self.order(&Order::Start { at_ns });
    }

    /// Asks all to end and to keep what they have.
    pub(super) fn stop(&mut self) {
        if !self.is_stopped {
            self.is_stopped = true;
            self.order(&Order::Stop);
        }
    }

    fn order(&mut self, order: &Order) {
        let Ok(line) = serde_json::to_string(order) else { return };
        for child in &mut self.all {
            // One that hears nothing has gone, which is noticed elsewhere.
            let _ = writeln!(child.orders, "{line}");
        }
    }

    /// Whether they have been asked to end.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Whether the last one started is ready, or will never be.
    pub(super) fn is_last_decided(&self) -> bool {
        self.all.last().is_none_or(|child| child.is_gone || !matches!(child.state, State::Preparing))
    }

    /// Whether every process is gone.
    pub(super) fn are_gone(&self) -> bool {
        self.all.iter().all(|child| child.is_gone)
    }

    /// The first failure and whose it is, if there was one.
    pub(super) fn failure(&mut self) -> Option<(usize, Failure)> {
        self.failure.take()
    }
}

impl Drop for Children {
    /// A process that is left here was not waited for; it hears that nobody listens any more, and ends.
    fn drop(&mut self) {
        self.stop();
        for child in self.all.iter_mut().filter(|child| !child.is_gone) {
            let _ = child.process.wait();
        }
    }
}
