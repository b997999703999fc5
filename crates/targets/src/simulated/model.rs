//! When a request would be done: planted behaviour, without a clock and without threads.
//!
//! A request goes through the cache, then through the caps in the order in which requests came, then to the first server
//! that is free. All that is random is drawn from the seed, each choice from a stream of its own, so that planting one
//! thing more leaves the others as they were.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::cache::{BlockCache, Lookup};
use super::options::{Cap, SimulatedOptions, Spread, Stall};
use super::pacer::Pacer;
use crate::OperationResult;
use ::model::workload::Rng;

const NS_PER_HOUR: f64 = 3.6e12;
const BYTES_PER_MB: f64 = 1e6;

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimulatedRequest {
    /// Where it begins; decides only what a cache knows.
    pub offset_bytes: u64,
    /// Its length.
    pub bytes: u32,
    /// Whether it writes: a write goes through the cache to the device, and leaves its blocks in both.
    pub is_write: bool,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Served {
    /// When it is done, since opening: later than it was asked.
    pub done_at_ns: u64,
    /// How it ended.
    pub result: OperationResult,
}

/// The planted behaviour and its state.
#[derive(Debug)]
pub struct Model {
    options: SimulatedOptions,
    volumes: Vec<Volume>,
    machine: Caps,
    cache: Option<BlockCache>,
    service_times: Rng,
    tiers: Rng,
    failures: Rng,
}

/// Limits on the rate of requests, on that of bytes, or on both.
#[derive(Debug)]
struct Caps {
    iops: Option<Pacer>,
    mbps: Option<Pacer>,
}

impl Caps {
    fn new(iops: Option<Cap>, mbps: Option<Cap>) -> Self {
        Self { iops: iops.map(|cap| Pacer::new(cap, 1.0)), mbps: mbps.map(|cap| Pacer::new(cap, BYTES_PER_MB)) }
    }

    fn is_none(&self) -> bool {
        self.iops.is_none() && self.mbps.is_none()
    }

    fn earliest_ns(&self, at_ns: u64) -> u64 {
        [&self.iops, &self.mbps].into_iter().flatten().fold(at_ns, |at, cap| cap.earliest_ns(at))
    }

    fn take(&mut self, at_ns: u64, requests: u64, bytes: u32) {
        if let Some(iops) = &mut self.iops {
            iops.take(at_ns, requests as f64);
        }
        if let Some(mbps) = &mut self.mbps {
            mbps.take(at_ns, f64::from(bytes));
        }
    }
}

/// The end of the stall in which `at_ns` lies, or else `at_ns` itself.
fn after_stalls(stalls: &[Stall], at_ns: u64) -> u64 {
    stalls.iter().fold(at_ns, |at_ns, stall| {
        let end_ns = stall.at.0.saturating_add(stall.length.0);
        if (stall.at.0..end_ns).contains(&at_ns) { end_ns } else { at_ns }
    })
}

/// What each volume has for itself.
#[derive(Debug)]
struct Volume {
    /// When each server is free again, soonest first.
    free_at_ns: BinaryHeap<Reverse<u64>>,
    caps: Caps,
}

impl Model {
    /// A model at rest: buckets full, cache empty.
    pub fn new(options: SimulatedOptions) -> Self {
        let stream = |choice| Rng::new(options.seed, choice);
        let volume = |_| Volume {
            free_at_ns: (0..options.servers.max(1)).map(|_| Reverse(0)).collect(),
            caps: Caps::new(options.iops, options.mbps),
        };
        Self {
            volumes: (0..options.volumes.max(1)).map(volume).collect(),
            machine: Caps::new(options.machine_iops, options.machine_mbps),
            cache: options.cache.map(|cache| BlockCache::new(cache.size.0)),
            service_times: stream(0),
            tiers: stream(1),
            failures: stream(2),
            options,
        }
    }

    /// What is planted.
    pub fn options(&self) -> &SimulatedOptions {
        &self.options
    }

    /// Serves a request that comes at `now_ns` since opening. Requests are served in the order of calls, so instants should
    /// not run backwards.
    pub fn serve(&mut self, now_ns: u64, request: SimulatedRequest) -> Served {
        let result = if self.options.errors > 0.0 && self.failures.unit_f64() < self.options.errors {
            OperationResult::Failed
        } else {
            OperationResult::Done
        };
        let lookup = self.cache.as_mut().map(|cache| cache.touch(request.offset_bytes, request.bytes));
        let done_at_ns = match (lookup, self.options.cache) {
            (Some(Lookup::Hit), Some(cache)) if !request.is_write => {
                self.after_stalls(now_ns).saturating_add(self.spread(cache.service.0 as f64))
            }
            _ => self.serve_by_device(now_ns, request),
        };
        Served { done_at_ns, result }
    }

    /// The volume that holds a request, counted from 0.
    fn volume_of(&self, offset_bytes: u64) -> usize {
        let volume = self.options.volume_bytes.map_or(0, |length| offset_bytes / length.0.max(1));
        usize::try_from(volume).unwrap_or(usize::MAX).min(self.volumes.len() - 1)
    }

    fn serve_by_device(&mut self, now_ns: u64, SimulatedRequest { offset_bytes, bytes, .. }: SimulatedRequest) -> u64 {
        let volume = self.volume_of(offset_bytes);
        let allowed_ns = self.pass_caps(volume, now_ns, bytes);
        let service_ns = self.service_ns(now_ns, bytes);
        let Reverse(free_ns) = self.volumes[volume].free_at_ns.pop().expect("there is at least one server");
        let done_at_ns = self.after_stalls(allowed_ns.max(free_ns)).saturating_add(service_ns);
        self.volumes[volume].free_at_ns.push(Reverse(done_at_ns));
        done_at_ns
    }

    /// When the caps let a request through. A stall holds them up too: what could not go then is not let through at once
    /// afterwards.
    fn pass_caps(&mut self, volume: usize, now_ns: u64, bytes: u32) -> u64 {
        if self.volumes[volume].caps.is_none() && self.machine.is_none() {
            return now_ns;
        }
        let requests = self.options.io_unit.map_or(1, |unit| u64::from(bytes).div_ceil(unit.0).max(1));
        let mut at_ns = now_ns;
        // The machine's first: what waits for its volume does not hold up the others' requests.
        let stalls = &self.options.stalls;
        for caps in [&mut self.machine, &mut self.volumes[volume].caps] {
            at_ns = after_stalls(stalls, caps.earliest_ns(at_ns));
            caps.take(at_ns, requests, bytes);
        }
        at_ns
    }

    fn after_stalls(&self, at_ns: u64) -> u64 {
        after_stalls(&self.options.stalls, at_ns)
    }

    fn service_ns(&mut self, now_ns: u64, bytes: u32) -> u64 {
        let planted = self.planted_ns();
        let drift = 1.0 + self.options.drift_pct_per_h / 100.0 * (now_ns as f64 / NS_PER_HOUR);
        let transfer = self.options.bandwidth.map_or(0.0, |bandwidth| f64::from(bytes) * 1e9 / bandwidth.0 as f64);
        self.spread(planted * drift).saturating_add(transfer as u64)
    }

    /// Service time of the tier that a request falls on.
    fn planted_ns(&mut self) -> f64 {
        if self.options.tiers.is_empty() {
            return self.options.service.0 as f64;
        }
        let mut place = self.tiers.unit_f64();
        for tier in &self.options.tiers {
            place -= tier.share;
            if place < 0.0 {
                return tier.service.0 as f64;
            }
        }
        // Only rounding of the shares leads here.
        self.options.tiers.last().map_or(0.0, |tier| tier.service.0 as f64)
    }

    /// A service time around `centre_ns`; never nothing, for then time could not pass.
    fn spread(&mut self, centre_ns: f64) -> u64 {
        let mut unit = || 1.0 - self.service_times.unit_f64();
        let service_ns = match self.options.spread {
            Spread::Fixed => centre_ns,
            Spread::Exponential => -unit().ln() * centre_ns,
            // Box and Muller (1958): two uniform numbers make a normal one.
            Spread::Lognormal { sigma } => {
                let normal = (-2.0 * unit().ln()).sqrt() * (std::f64::consts::TAU * unit()).cos();
                centre_ns * (sigma * normal).exp()
            }
        };
        (service_ns as u64).max(1)
    }
}
