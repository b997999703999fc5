//! Runs to monitoring, while they go on and when they end.
//!
//! Load never waits for it: the recorder adds each second to what is known, and a thread for each destination copies that under the same
//! lock, then encodes and sends. What cannot be delivered is counted and said, and fails no run. Counts and histograms are sent as they
//! stand, so a lost request is made good by the next one. Results of steps are kept until they are accepted.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod destination;
mod endpoint;
mod otlp;
mod remote_write;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant, SystemTime};

use destination::{Delivery, Sending};
use model::record::{Interval, Outcome, Run, Step};
use report::openmetrics::{Family, Identity, SoFar, families, of_step};

pub use destination::Destinations;
pub use endpoint::PushError;

/// Between two requests to a destination, unless the environment has another time.
const EVERY: Duration = Duration::from_secs(10);
/// A finished step is sent at once, but no sooner than this after the last request.
const AT_ONCE: Duration = Duration::from_secs(1);
/// Attempts at the end of a run, and the pause before the second; the next pauses are twice as long each.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(500);
/// When the end of a run says that it waits.
const QUIET: Duration = Duration::from_secs(1);

/// A run that is sent to monitoring.
#[derive(Debug)]
pub struct Push {
    shared: Arc<Shared>,
    ended: mpsc::Receiver<Delivery>,
    /// Where it is sent.
    addresses: Vec<String>,
    identity: Identity,
    clock: WallClock,
    is_simulated: bool,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

/// What is known of the run by now.
#[derive(Debug, Default)]
struct State {
    so_far: SoFar,
    /// Whether there was any load.
    has_begun: bool,
    finished: Vec<Arc<Finished>>,
    end: Option<End>,
    /// Whether what is left need not be sent.
    is_given_up: bool,
    /// What went wrong first at each destination, until it is taken.
    troubles: Vec<String>,
}

/// A finished step.
#[derive(Debug)]
struct Finished {
    label: String,
    /// When its load began and when its window ended, in nanoseconds since 1970.
    from_unix_ns: u64,
    to_unix_ns: u64,
    outcome: Outcome,
    /// What it came to; empty where it did not end as it should.
    results: Vec<Family>,
}

/// How the run ended.
#[derive(Debug, Clone)]
struct End {
    unix_ns: u64,
    outcome: Outcome,
    /// Until when it is sent.
    until: Instant,
}

/// What does not change while the run goes on.
#[derive(Debug, Clone)]
struct About {
    identity: Identity,
    name: String,
    began_unix_ns: u64,
    version: String,
    host: Option<String>,
}

/// What is sent at one time.
struct Batch<'a> {
    about: &'a About,
    /// What the run counts, as it stands.
    current: &'a [Family],
    /// Steps whose results this destination has not accepted yet.
    finished: &'a [Arc<Finished>],
    end: Option<&'a End>,
    now_unix_ns: u64,
}

/// The time of day, which never goes back.
#[derive(Debug, Clone, Copy)]
struct WallClock {
    began: Instant,
    began_unix_ns: u64,
}

impl WallClock {
    fn new() -> Self {
        Self { began: Instant::now(), began_unix_ns: unix_ns(SystemTime::now()) }
    }

    fn now_unix_ns(&self) -> u64 {
        self.began_unix_ns.saturating_add(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Push {
    /// Begins to send `run`, as soon as there is load. The times of a simulated run are those at which its steps were finished here.
    ///
    /// # Errors
    /// If a destination cannot be set up, such as by a certificate that cannot be read. Whether anything listens there is not looked at.
    pub fn begin(destinations: &Destinations, run: &Run, is_simulated: bool) -> Result<Self, PushError> {
        let sending = destinations.open()?;
        let clock = WallClock::new();
        let about = About {
            identity: Identity::new(&run.id, &run.name, run.workload(), &run.target.address, &run.tags),
            name: run.name.clone(),
            began_unix_ns: unix_ns(run.started_at.0.into()),
            version: run.tool.version.clone(),
            host: run.environment.hostname.clone(),
        };
        let shared = Arc::new(Shared::default());
        let (tell, ended) = mpsc::channel();
        let every = destinations.every().unwrap_or(EVERY);
        let addresses = sending.iter().map(Sending::address).collect();
        let push = Self { shared, ended, addresses, identity: about.identity.clone(), clock, is_simulated };
        for to in sending {
            let (shared, tell, about) = (Arc::clone(&push.shared), tell.clone(), about.clone());
            let send = move || {
                if let Some(delivery) = send_all(&shared, to, &about, clock, every) {
                    // The end of the run may have given up waiting.
                    let _ = tell.send(delivery);
                }
            };
            std::thread::Builder::new().name("push".to_owned()).spawn(send).map_err(PushError::Thread)?;
        }
        Ok(push)
    }

    /// Adds a second of load.
    pub fn interval(&self, interval: &Interval) {
        let mut state = self.shared.state();
        state.so_far.add(interval);
        if !std::mem::replace(&mut state.has_begun, true) {
            self.shared.wake.notify_all();
        }
    }

    /// Adds the last step of `run`, which has ended.
    pub fn step(&self, run: &Run) {
        let Some(step) = run.steps.last() else { return };
        let finished = Arc::new(self.finished(run, step));
        self.shared.state().finished.push(finished);
        self.shared.wake.notify_all();
    }

    fn finished(&self, run: &Run, step: &Step) -> Finished {
        let (began, window, now) = (unix_ns(run.started_at.0.into()), &step.window, self.clock.now_unix_ns());
        let (from, to) = if self.is_simulated || window.duration_ns == 0 {
            (now, now)
        } else {
            let begins = began.saturating_add(window.offset_ns);
            (begins.saturating_sub(window.warmup_ns), begins.saturating_add(window.duration_ns))
        };
        let results = if step.outcome == Outcome::Completed { of_step(&self.identity, step) } else { Vec::new() };
        Finished {
            label: step.label.clone(),
            from_unix_ns: from,
            to_unix_ns: to,
            outcome: step.outcome.clone(),
            results,
        }
    }

    /// What went wrong since this was last called, once for each destination.
    pub fn troubles(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.state().troubles)
    }

    /// Sends what is left, for no longer than `patience`, and says what was not delivered. Calls `waits` if that takes more than a second.
    pub fn end(self, run: &Run, patience: Duration, waits: &dyn Fn()) -> Vec<String> {
        let began = Instant::now();
        let end = End {
            unix_ns: self.clock.now_unix_ns(),
            outcome: run.outcome.clone(),
            until: began.checked_add(patience).unwrap_or(began),
        };
        self.shared.state().end = Some(end);
        self.shared.wake.notify_all();
        let mut left = self.addresses.clone();
        let mut notes = Vec::new();
        let mut has_said = false;
        while !left.is_empty() {
            let quiet = if has_said { patience } else { QUIET.min(patience) };
            match self.ended.recv_timeout(quiet.saturating_sub(began.elapsed())) {
                Ok(delivery) => {
                    left.retain(|address| *address != delivery.address);
                    notes.extend(delivery.words());
                }
                Err(mpsc::RecvTimeoutError::Timeout) if !has_said && quiet < patience => {
                    waits();
                    has_said = true;
                }
                Err(_) => break,
            }
        }
        notes.extend(
            left.iter()
                .map(|address| format!("{address}: what was left was not accepted within {} s", patience.as_secs())),
        );
        notes
    }
}

impl Drop for Push {
    /// What is left after that is not sent.
    fn drop(&mut self) {
        self.shared.state().is_given_up = true;
        self.shared.wake.notify_all();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // What is in it is whole after each change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it is time to send: at first until there is load, then for so long since the `last` time.
    fn wait(&self, finished: usize, last: Option<Instant>, every: Duration) {
        let mut state = self.state();
        loop {
            if state.end.is_some() || state.is_given_up {
                return;
            }
            let due = if state.finished.len() > finished { AT_ONCE } else { every };
            let left = match last {
                Some(last) => due.saturating_sub(last.elapsed()),
                None if state.has_begun => return,
                None => every,
            };
            if left.is_zero() {
                return;
            }
            state = self.wake.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Sends to one destination until the run has ended; gives what came of it, or nothing where that was given up.
fn send_all(shared: &Shared, mut to: Sending, about: &About, clock: WallClock, every: Duration) -> Option<Delivery> {
    let (mut known, mut last, mut attempts, mut pause) = (0, None, 0, PAUSE);
    loop {
        shared.wait(known, last, every);
        last = Some(Instant::now());
        let (so_far, finished, end) = {
            let state = shared.state();
            if state.is_given_up {
                return None;
            }
            (state.so_far.clone(), state.finished.clone(), state.end.clone())
        };
        known = finished.len();
        let current = families(&[(about.identity.clone(), &so_far)]);
        let now_unix_ns = clock.now_unix_ns();
        let batch = Batch { about, current: &current, finished: &finished, end: end.as_ref(), now_unix_ns };
        if let Some(trouble) = to.send(&batch) {
            shared.state().troubles.push(trouble);
        }
        let Some(end) = end else { continue };
        attempts += 1;
        if !to.is_retryable() || attempts == ATTEMPTS || Instant::now() + pause >= end.until {
            return Some(to.delivery(known));
        }
        std::thread::sleep(pause);
        pause *= 2;
    }
}

fn unix_ns(at: SystemTime) -> u64 {
    at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
