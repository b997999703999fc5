//! Runs to monitoring, while they go on and when they end.
//!
//! Load never waits for it: the recorder adds to what is known under a lock that is held for as long as it takes to add a second of
//! counters, and a thread of its own encodes and sends. What cannot be delivered is counted and said, and fails no run. Counts and histograms
//! are sent as they stand, so a lost request is made good by the next one. Results of steps are kept until they are accepted.

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
/// How long the end of a run waits for what is still to be sent.
const END: Duration = Duration::from_secs(10);
/// Attempts at the end of a run, and the pause before the second; the next pauses are twice as long each.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(500);

/// A run that is sent to monitoring.
#[derive(Debug)]
pub struct Push {
    shared: Arc<Shared>,
    ended: mpsc::Receiver<Vec<Delivery>>,
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
    finished: Vec<Finished>,
    end: Option<End>,
    /// Whether what is left need not be sent.
    is_given_up: bool,
    /// What went wrong first, until it is taken.
    trouble: Option<String>,
}

/// A finished step.
#[derive(Debug, Clone)]
struct Finished {
    label: String,
    /// When its load began and when its window ended, in nanoseconds since 1970.
    from_unix_ns: u64,
    to_unix_ns: u64,
    outcome: Outcome,
    results: Vec<Family>,
}

/// How the run ended.
#[derive(Debug, Clone)]
struct End {
    unix_ns: u64,
    outcome: Outcome,
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
    finished: &'a [Finished],
    end: Option<&'a End>,
    now_unix_ns: u64,
}

impl Push {
    /// Begins to send `run`, of which nothing is known yet but what it is.
    ///
    /// # Errors
    /// If a destination cannot be set up, such as by a certificate that cannot be read. Whether anything listens there is not looked at.
    pub fn begin(destinations: &Destinations, run: &Run) -> Result<Self, PushError> {
        let sending = destinations.open()?;
        let about = About {
            identity: Identity::new(&run.id, &run.name, run.workload(), &run.target.address, &run.tags),
            name: run.name.clone(),
            began_unix_ns: unix_ns(run.started_at.0.into()),
            version: run.tool.version.clone(),
            host: run.environment.hostname.clone(),
        };
        let shared = Arc::new(Shared::default());
        let (tell, ended) = mpsc::sync_channel(1);
        let (of_thread, every) = (Arc::clone(&shared), destinations.every().unwrap_or(EVERY));
        std::thread::Builder::new()
            .name("push".to_owned())
            .spawn(move || {
                // The end of the run may have given up waiting.
                let _ = tell.send(send_all(&of_thread, sending, &about, every));
            })
            .map_err(PushError::Thread)?;
        Ok(Self { shared, ended })
    }

    /// Adds a second of load.
    pub fn interval(&self, interval: &Interval) {
        self.shared.state().so_far.add(interval);
    }

    /// Adds the last step of `run`, which has ended.
    pub fn step(&self, run: &Run) {
        let Some(step) = run.steps.last() else { return };
        let identity = Identity::new(&run.id, &run.name, run.workload(), &run.target.address, &run.tags);
        let finished = Finished::of(run, step, &identity);
        self.shared.state().finished.push(finished);
        self.shared.wake.notify_all();
    }

    /// What went wrong since this was last called, at most once for each destination.
    pub fn trouble(&self) -> Option<String> {
        self.shared.state().trouble.take()
    }

    /// Sends what is left, for no longer than ten seconds, and says what was not delivered.
    pub fn end(self, run: &Run) -> Vec<String> {
        let unix_ns = run.ended_at.map_or_else(|| unix_ns(SystemTime::now()), |at| unix_ns(at.0.into()));
        self.shared.state().end = Some(End { unix_ns, outcome: run.outcome.clone() });
        self.shared.wake.notify_all();
        match self.ended.recv_timeout(END) {
            Ok(deliveries) => deliveries.iter().filter_map(Delivery::words).collect(),
            Err(_) => {
                let seconds = END.as_secs();
                vec![format!("what was left to send to monitoring was not delivered within {seconds} s")]
            }
        }
    }
}

impl Drop for Push {
    /// A run that never began sends nothing more.
    fn drop(&mut self) {
        self.shared.state().is_given_up = true;
        self.shared.wake.notify_all();
    }
}

impl Finished {
    fn of(run: &Run, step: &Step, identity: &Identity) -> Self {
        let began = unix_ns(run.started_at.0.into());
        let window = &step.window;
        let from_unix_ns = began.saturating_add(window.offset_ns.saturating_sub(window.warmup_ns));
        let to_unix_ns = began.saturating_add(window.offset_ns).saturating_add(window.duration_ns);
        let results = of_step(identity, step);
        Self { label: step.label.clone(), from_unix_ns, to_unix_ns, outcome: step.outcome.clone(), results }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // What is in it is whole after each change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it is time to send again.
    fn wait(&self, finished: usize, last: Instant, every: Duration) {
        let mut state = self.state();
        loop {
            if state.end.is_some() || state.is_given_up {
                return;
            }
            let due = if state.finished.len() > finished { AT_ONCE } else { every };
            let left = due.saturating_sub(last.elapsed());
            if left.is_zero() {
                return;
            }
            state = self.wake.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Sends until the run has ended; gives what came of each destination.
fn send_all(shared: &Shared, mut sending: Vec<Sending>, about: &About, every: Duration) -> Vec<Delivery> {
    loop {
        let began = Instant::now();
        let (current, finished, end) = {
            let state = shared.state();
            if state.is_given_up {
                return Vec::new();
            }
            let current = families(&[(about.identity.clone(), &state.so_far)]);
            (current, state.finished.clone(), state.end.clone())
        };
        let batch = Batch {
            about,
            current: &current,
            finished: &finished,
            end: end.as_ref(),
            now_unix_ns: unix_ns(SystemTime::now()),
        };
        for to in &mut sending {
            if let Some(trouble) = to.send(&batch) {
                shared.state().trouble.get_or_insert(trouble);
            }
        }
        if end.is_some() {
            let mut pause = PAUSE;
            for _ in 1..ATTEMPTS {
                if sending.iter().all(|to| !to.is_retryable()) {
                    break;
                }
                std::thread::sleep(pause);
                pause *= 2;
                sending.iter_mut().filter(|to| to.is_retryable()).for_each(|to| drop(to.send(&batch)));
            }
            return sending.into_iter().map(|to| to.delivery(finished.len())).collect();
        }
        shared.wait(finished.len(), began, every);
    }
}

fn unix_ns(at: SystemTime) -> u64 {
    at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
