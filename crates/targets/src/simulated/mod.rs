//! A target with planted behaviour: service times, servers, caps, bursts, tiers, a cache, stalls, drift and errors.
//!
//! [`Model`] says when a request would be done; [`Simulated`] makes a target of it, on which time passes as on the wall
//! or only in the simulation. Every block touch of an operation of the SLOB method is one read; a request to raw storage
//! is one request. Nothing is read or written anywhere.

mod cache;
mod database;
mod keys;
mod lane;
mod model;
mod options;
mod pacer;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use keys::{KEYS, Key};
pub use model::{Model, Served, SimulatedRequest};
pub use options::{Burst, Cache, Cap, SimulatedOptions, Spread, Stall, Tier, Time};

pub use self::database::SimulatedDatabase;
use self::lane::{IoLane, Line, SlobLane};
use super::{Background, Lane, SessionRange, Target, TargetError, TargetFor};
use ::model::record;
use ::model::workload::SlobOperation;
use ::model::workload::io::IoOperation;
use measure::{Clock, Counter};

/// The simulated target.
#[derive(Debug)]
pub struct Simulated {
    role: Role,
    opened_ns: u64,
    model: Mutex<Box<Model>>,
}

/// What a simulated target stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Database,
    Volume,
}

impl Simulated {
    /// A database that behaves as `options` say, from now on `clock`, which [`SimulatedOptions::clock`] made.
    pub fn open(options: SimulatedOptions, clock: Clock) -> Self {
        Self::with_role(Role::Database, options, clock)
    }

    /// The same for raw storage: it counts requests and bytes rather than logical reads.
    pub fn open_volume(options: SimulatedOptions, clock: Clock) -> Self {
        Self::with_role(Role::Volume, options, clock)
    }

    fn with_role(role: Role, options: SimulatedOptions, clock: Clock) -> Self {
        Self { role, opened_ns: clock.now_ns(), model: Mutex::new(Box::new(Model::new(options))) }
    }

    fn model(&self) -> MutexGuard<'_, Box<Model>> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves a request that is sent at `at_ns` on the run's clock, and reports on that clock when it is done.
    fn serve(&self, at_ns: u64, request: SimulatedRequest) -> Served {
        let served = self.model().serve(at_ns.saturating_sub(self.opened_ns), request);
        Served { done_at_ns: served.done_at_ns.saturating_add(self.opened_ns), ..served }
    }
}

impl Target for Simulated {
    fn describe(&self) -> record::Target {
        let planted: Vec<(&str, String)> = keys::written(self.model().options()).collect();
        let pairs: Vec<String> = planted.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let address = format!("sim:{}", pairs.join(","));
        let facts: BTreeMap<String, String> = planted.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        record::Target { kind: "simulated".to_owned(), address, facts, ..record::Target::default() }
    }

    fn notes(&self) -> Vec<String> {
        vec!["the target is simulated: its figures say nothing about this machine".to_owned()]
    }

    fn layer(&self) -> &'static str {
        "simulation"
    }

    fn known_counters(&self) -> &'static [Counter] {
        match self.role {
            Role::Database => &[Counter::Operations, Counter::Errors, Counter::LogicalReads, Counter::PhysicalReads],
            Role::Volume => &[
                Counter::Operations,
                Counter::Errors,
                Counter::PhysicalReads,
                Counter::PhysicalReadBytes,
                Counter::PhysicalWrites,
                Counter::PhysicalWriteBytes,
            ],
        }
    }

    fn take_background(&self) -> Background {
        Background::default()
    }

    fn check_health(&self) -> Result<(), TargetError> {
        Ok(())
    }
}

impl TargetFor<SlobOperation> for Simulated {
    fn open_lane(&self, range: SessionRange) -> Result<Box<dyn Lane<SlobOperation> + '_>, TargetError> {
        Ok(Box::new(SlobLane::new(Line::new(self, range), range.sessions)))
    }
}

impl TargetFor<IoOperation> for Simulated {
    fn open_lane(&self, range: SessionRange) -> Result<Box<dyn Lane<IoOperation> + '_>, TargetError> {
        Ok(Box::new(IoLane::new(Line::new(self, range), range.sessions)))
    }
}

#[cfg(test)]
mod tests;
