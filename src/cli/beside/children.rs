//! The processes of loads that run at the same time: each is this program with one load, supervised.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, PipeWriter, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child as Process, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::loads::Load;
use crate::cli::exit::{Exit, Failure};
use crate::cli::supervisor::{Kept, Order, Said, Ticket, VARIABLE, pipe_name};
use crate::record::beside::BesideMark;

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

    /// Starts the process of a load.
    pub(super) fn start(&mut self, index: usize, load: &Load, mark: &BesideMark) -> Result<(), Failure> {
        let cannot = |error: std::io::Error| Failure::new(format_args!("cannot start a process of its own: {error}"));
        let (reader, orders) = std::io::pipe().map_err(cannot)?;
        let pipe = pipe_name(reader.as_raw_fd())
            .ok_or_else(|| Failure::new("`/proc` does not say what is behind a pipe, which loads need to know"))?;
        let ticket = serde_json::to_string(&Ticket { pipe, tags: mark.tags() })?;
        let mut process = Command::new(PROGRAM)
            .arg0("plimsoll")
            .args(&load.arguments)
            .env(VARIABLE, ticket)
            .stdin(reader)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(cannot)?;
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
        let last: Vec<&str> = lines.iter().map(String::as_str).collect();
        let failure = Failure::new(format_args!("its process ended without a word: {status}"));
        let failure = failure.with_hint((!last.is_empty()).then(|| format!("its last lines: {}", last.join(" / "))));
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
