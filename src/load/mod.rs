//! Doing it: pacing, sessions, the start barrier, stopping.
//!
//! A step's sessions are shared out among threads, the *lanes*. When every lane has connected its sessions, all start at
//! The same instant. Load then goes on through the warm-up and the whole measured window, and ends only after the window
//! has closed: no moment of the window is without load.

mod batch;
mod ceiling;
mod collect;
mod drive;
mod in_order;
mod share;
mod step;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use ceiling::generator_ceiling;
pub use share::Share;
pub use step::{StepOutcome, run_step, run_step_when};

use model::record;
use model::units::Nanos;
use model::workload::Arrival;

/// One load level to run.
#[derive(Debug, Clone)]
pub struct StepPlan<S> {
    /// Position in the run, from 0.
    pub index: u32,
    /// What distinguishes it, such as `s8_t4`.
    pub label: String,
    /// How much load to put on, for the record. Its sessions are those that work.
    pub load: record::Intensity,
    /// The point of the run's load at which it is, for the record; absent where steps differ in nothing but how intense they are.
    pub level: Option<record::Level>,
    /// How much of a production it is like, for the record.
    pub like: Option<record::LikeLevel>,
    /// What sessions do.
    pub shape: S,
    /// Seed of every choice.
    pub seed: u64,
    /// Operations of each session after the warm-up; `None` for no limit. The window closes with the first session that
    /// has done them.
    pub work_loop: Option<u64>,
    /// Load before the window.
    pub warmup: Nanos,
    /// Longest window.
    pub duration: Nanos,
    /// When operations are sent.
    pub pace: Pace,
    /// Threads that drive the sessions of all parts; at least 1, and no more than sessions.
    pub lanes: u32,
    /// Which of its lanes this process drives.
    pub share: Share,
}

impl<S> StepPlan<S> {
    /// What its load is, for display: with it the parameters of the run, or those of them that differ from `common`.
    pub fn parameters(&self, common: &record::Parameters) -> record::Parameters {
        let mut own = self.level.as_ref().map(record::Level::parameters).unwrap_or_default();
        own.extend(self.like.iter().flat_map(record::LikeLevel::parameters));
        own.retain(|name, value| common.get(name) != Some(value));
        own
    }

    /// The same load shared out among several processes, each with as many threads as this plan has: the step of one of them.
    pub fn of_part(self, share: Share) -> Self {
        let lanes = self.lanes.saturating_mul(share.parts).min(self.load.slots().max(1));
        Self { lanes, share, ..self }
    }

    /// The load that this process puts on, of `lanes` that drive the whole.
    fn own_load(&self, lanes: u32) -> record::Intensity {
        let own = self.share.of(lanes).len();
        let rate = |per_s: f64| if self.share == Share::WHOLE { per_s } else { per_s * own as f64 / f64::from(lanes) };
        record::Intensity {
            sessions: self.load.sessions.map(|sessions| self.share.of(sessions).len() as u32),
            rate_operations_per_s: self.load.rate_operations_per_s.map(rate),
            ..self.load.clone()
        }
    }
}

/// When operations are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// Each session sends its next operation when the last one is done (and thought about).
    Closed,
    /// Operations fall due at a rate, whether or not earlier ones are done.
    Open {
        /// Operations per second over all sessions.
        rate_per_s: f64,
        /// How instants are spread.
        arrival: Arrival,
    },
}

impl Pace {
    /// Operations per second over all sessions; absent for a closed loop.
    pub fn rate_per_s(self) -> Option<f64> {
        match self {
            Self::Closed => None,
            Self::Open { rate_per_s, .. } => Some(rate_per_s),
        }
    }

    /// How instants are spread; absent for a closed loop.
    pub fn arrival(self) -> Option<Arrival> {
        match self {
            Self::Closed => None,
            Self::Open { arrival, .. } => Some(arrival),
        }
    }
}

/// When a load begins whose sessions are ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// As soon as every thread has woken up.
    AtOnce,
    /// At an instant on the clock of the step, together with loads of other processes.
    At(u64),
    /// Not at all: what it was to begin with has gone, or somebody asked to end.
    NotAtAll,
}

/// A request to end, which may come from any thread at any time.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Nobody has asked to end yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the load to end.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody has asked.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The flag behind it, for signal handlers and for functions that only look.
    pub fn flag(&self) -> &Arc<AtomicBool> {
        &self.0
    }
}

#[cfg(test)]
mod net_tests;
#[cfg(test)]
mod postgres_tests;
#[cfg(test)]
mod share_tests;
#[cfg(test)]
mod tests;
