//! Ctrl-C, SIGTERM and a terminal that closes: the first signal asks the work to end, the second ends the program at once.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::exit::{Exit, Failure, exit_code_of_signal};
use super::supervisor::Supervisor;
use crate::load::Stop;
use sql::end_connecting_on;

/// What the user's signals are sent to.
#[derive(Debug, Clone)]
pub(super) struct Interrupt {
    stop: Stop,
    /// The first signal, or 0.
    signal: Arc<AtomicI32>,
    /// What stays behind if the program ends at once, in words.
    left_behind: Arc<Mutex<Option<String>>>,
}

impl Interrupt {
    /// Takes over the signals for the rest of the program.
    pub(super) fn listen() -> Result<Self, Failure> {
        let mut signals = signals()?;
        let this = Self { stop: Stop::new(), signal: Arc::new(AtomicI32::new(0)), left_behind: Arc::default() };
        if let Some(supervisor) = Supervisor::of_this_process() {
            supervisor.listen(this.stop.clone()).map_err(|error| cannot_listen(&error))?;
        }
        end_connecting_on(this.stop.flag());
        let receiver = this.clone();
        let listener = std::thread::Builder::new().name("signals".into());
        listener
            .spawn(move || signals.forever().for_each(|number| receiver.receive(number)))
            .map_err(|error| cannot_listen(&error))?;
        Ok(this)
    }

    /// Has `end` called by the first signal that asks for an end, for work that has nothing to keep.
    pub(super) fn end_with(end: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
        let mut signals = signals()?;
        let listener = std::thread::Builder::new().name("signals".into());
        let wait = move || {
            if signals.forever().next().is_some() {
                end();
            }
        };
        listener.spawn(wait).map(|_| ()).map_err(|error| cannot_listen(&error))
    }

    fn receive(&self, number: i32) {
        if self.signal.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            // Who holds the lock is about to change the words; nothing waits for that.
            if let Ok(words) = self.left_behind.try_lock() {
                words.iter().for_each(|words| {
                    let _ = writeln!(std::io::stderr(), "{words}");
                });
            }
            signal_hook::low_level::exit(i32::from(exit_code_of_signal(number)));
        }
        self.stop.ask();
        // The terminal has just echoed `^C` into whatever line was there.
        let fresh_line = if std::io::stderr().is_terminal() { "\r\u{1b}[2K" } else { "\n" };
        let _ = writeln!(std::io::stderr(), "{fresh_line}stopping; once more to abort at once");
    }

    /// Has it said, if a second signal ends the program at once, what stays behind; nothing from now on without words.
    pub(super) fn leaves(&self, words: Option<String>) {
        if let Ok(mut left) = self.left_behind.lock() {
            *left = words;
        }
    }

    /// The request to end, for load.
    pub(super) fn stop(&self) -> &Stop {
        &self.stop
    }

    /// The request to end, for set-up and verification.
    pub(super) fn flag(&self) -> &AtomicBool {
        self.stop.flag()
    }

    /// How the program ends if a signal ended its work.
    pub(super) fn exit(&self) -> Option<Exit> {
        match self.signal.load(Ordering::Relaxed) {
            0 => None,
            number => Some(Exit::Signal(number)),
        }
    }
}

impl Interrupt {
    /// An outcome whose exit code is that of the signal, if one came: whatever it ended, it was the signal.
    pub(super) fn judge<T>(&self, outcome: Result<T, Failure>) -> Result<T, Failure> {
        outcome.map_err(|failure| match self.exit() {
            Some(exit) => failure.with_exit(exit),
            None => failure,
        })
    }
}

/// The signals that ask for an end. Under `nohup` a terminal that closes is to be ignored, and it stays so.
fn signals() -> Result<Signals, Failure> {
    let hang_up = (!is_ignored(SIGHUP)).then_some(SIGHUP);
    Signals::new([SIGINT, SIGTERM].into_iter().chain(hang_up)).map_err(|error| cannot_listen(&error))
}

fn cannot_listen(error: &std::io::Error) -> Failure {
    Failure::new(format_args!("cannot listen for signals: {error}"))
}

/// Whether this process was started with `signal` ignored. The kernel reports in a mask of which bit 0 is signal 1.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}
