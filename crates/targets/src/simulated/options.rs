//! What is planted in a simulated target.

use super::keys;
use crate::TargetError;
use measure::Clock;
use model::units::{Bytes, Nanos};

/// How service times are spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Spread {
    /// All alike.
    Fixed,
    /// Exponentially distributed around their mean, as memoryless servers have it.
    Exponential,
    /// Log-normally distributed around their median.
    Lognormal {
        /// Standard deviation of the natural logarithm.
        sigma: f64,
    },
}

/// One speed of a device that has several.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tier {
    /// Share of requests that it serves, 0 to 1.
    pub share: f64,
    /// Its service time.
    pub service: Nanos,
}

/// A rate that is never exceeded for long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cap {
    /// Requests, or MB of 1,000,000 bytes, a second in the long run.
    pub per_s: f64,
    /// What lifts it for a while.
    pub burst: Option<Burst>,
}

/// A bucket of credit, full at first, that the unused part of a cap refills.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Burst {
    /// Rate while there is credit, in the cap's unit.
    pub per_s: f64,
    /// How long a full bucket lasts at that rate.
    pub length: Nanos,
}

/// A cache in front of everything else.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cache {
    /// What it holds.
    pub size: Bytes,
    /// Service time of a read that it answers.
    pub service: Nanos,
}

impl Cache {
    /// Service time where none is given.
    pub const DEFAULT_SERVICE: Nanos = Nanos(20_000);
}

/// A time in which nothing begins to be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    /// When it begins, after opening.
    pub at: Nanos,
    /// How long it lasts.
    pub length: Nanos,
}

/// How time passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Time {
    /// As on the wall.
    Real,
    /// Only in the simulation, as fast as it can be calculated.
    Simulated,
}

/// What is planted. [`super::KEYS`] says how it is written in an address.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedOptions {
    /// Service time of a request, without queueing: the mean, or the median where the spread is log-normal.
    pub service: Nanos,
    /// Where not empty, these take the place of `service`. Their shares add up to 1.
    pub tiers: Vec<Tier>,
    /// How service times are spread.
    pub spread: Spread,
    /// Requests served at the same time; at least 1.
    pub servers: u32,
    /// Bytes that one server moves in a second: a request's share of that is added to its service time.
    pub bandwidth: Option<Bytes>,
    /// Requests a second.
    pub iops: Option<Cap>,
    /// Bytes that count as one request against the cap of requests; `None` for any number.
    pub io_unit: Option<Bytes>,
    /// MB of 1,000,000 bytes a second.
    pub mbps: Option<Cap>,
    /// Volumes of raw storage, each with caps and servers of its own; at least 1.
    pub volumes: u32,
    /// Length of each of them; absent if there is only one.
    pub volume_bytes: Option<Bytes>,
    /// Requests a second of all volumes.
    pub machine_iops: Option<Cap>,
    /// MB of 1,000,000 bytes a second of all volumes.
    pub machine_mbps: Option<Cap>,
    /// A cache in front of caps and servers.
    pub cache: Option<Cache>,
    /// Stalls, in the order in which they begin.
    pub stalls: Vec<Stall>,
    /// Growth of service times, in percent of the first ones for each hour since opening.
    pub drift_pct_per_h: f64,
    /// Share of requests that fail, 0 to 1.
    pub errors: f64,
    /// Seed of service times, tiers and errors.
    pub seed: u64,
    /// How time passes.
    pub time: Time,
}

impl Default for SimulatedOptions {
    fn default() -> Self {
        Self {
            service: Nanos(200_000),
            tiers: Vec::new(),
            spread: Spread::Fixed,
            servers: 8,
            bandwidth: None,
            iops: None,
            io_unit: None,
            mbps: None,
            volumes: 1,
            volume_bytes: None,
            machine_iops: None,
            machine_mbps: None,
            cache: None,
            stalls: Vec::new(),
            drift_pct_per_h: 0.0,
            errors: 0.0,
            seed: 1,
            time: Time::Real,
        }
    }
}

impl SimulatedOptions {
    /// Options from the `key=value` pairs of a `sim:` address; [`super::KEYS`] lists the keys.
    ///
    /// # Errors
    /// [`TargetError::Shape`] naming the pair that cannot be understood.
    pub fn from_pairs(pairs: &[(String, String)]) -> Result<Self, TargetError> {
        keys::read(pairs)
    }

    /// A clock of the kind on which this target is to be driven. Make one for a run.
    pub fn clock(&self) -> Clock {
        match self.time {
            Time::Real => Clock::start(),
            Time::Simulated => Clock::simulated(),
        }
    }
}
