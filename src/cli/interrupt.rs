//! Ctrl-C and SIGTERM: the first asks the work to end, the second ends the program at once.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::exit::{Exit, Failure, exit_code_of_signal};
use crate::load::Stop;

/// What the user's signals are told to.
#[derive(Debug, Clone)]
pub(super) struct Interrupt {
    stop: Stop,
    /// The first signal, or 0.
    signal: Arc<AtomicI32>,
}

impl Interrupt {
    /// Takes over the signals for the rest of the program.
    pub(super) fn listen() -> Result<Self, Failure> {
        let cannot = |error: std::io::Error| Failure::new(format_args!("cannot listen for signals: {error}"));
        let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(cannot)?;
        let this = Self { stop: Stop::new(), signal: Arc::new(AtomicI32::new(0)) };
        let told = this.clone();
        let listener = std::thread::Builder::new().name("signals".into());
        listener.spawn(move || signals.forever().for_each(|number| told.receive(number))).map_err(cannot)?;
        Ok(this)
    }

    fn receive(&self, number: i32) {
        if self.signal.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            signal_hook::low_level::exit(i32::from(exit_code_of_signal(number)));
        }
        self.stop.ask();
        // The terminal has just echoed `^C` into whatever line was there.
        let _ = writeln!(std::io::stderr(), "\nstopping; once more to abort at once");
    }

    /// The wish to end, for load.
    pub(super) fn stop(&self) -> &Stop {
        &self.stop
    }

    /// The wish to end, for set-up and verification.
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
