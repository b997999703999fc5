//! A target with planted behaviour: seeded service times behind a fixed number of servers.
//!
//! Every block touch of an operation is one read. A read takes the first server that is free, so with more sessions than
//! servers reads queue: throughput stops at `servers / service` and latency grows in proportion, as on a real device.
//! Nothing is read or written anywhere.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::{Finished, Lane, OperationResult, Seat, Target, TargetError, TargetFor};
use crate::measure::{Clock, Counter, LaneRecorder, Recorded, WaitEvent};
use crate::record;
use crate::units::Nanos;
use crate::workload::{Rng, SlobOperation};

/// Touches of a scan, whose table has no size here.
const SCAN_TOUCHES: u64 = 128;

/// How service times are spread around their mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// All alike.
    Fixed,
    /// Exponentially distributed, as memoryless servers have it.
    Exponential,
}

/// What is planted.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedOptions {
    /// Mean service time of a read, without queueing.
    pub service: Nanos,
    /// How service times are spread.
    pub spread: Spread,
    /// Reads served at the same time.
    pub servers: u32,
    /// A stall: from this instant after opening, nothing is served for this long.
    pub stall: Option<(Nanos, Nanos)>,
    /// Seed of service times.
    pub seed: u64,
}

impl Default for SimulatedOptions {
    fn default() -> Self {
        Self { service: Nanos(200_000), spread: Spread::Fixed, servers: 8, stall: None, seed: 1 }
    }
}

impl SimulatedOptions {
    /// Options from the `key=value` pairs of a `sim:` address: `service=200us`, `spread=fixed|exponential`, `servers=8`,
    /// `stall=10s:500ms` (when and how long), `seed=1`.
    ///
    /// # Errors
    /// [`TargetError::Shape`] naming the pair that cannot be understood.
    pub fn from_pairs(pairs: &[(String, String)]) -> Result<Self, TargetError> {
        let mut options = Self::default();
        for (key, value) in pairs {
            let wrong =
                |wanted: &str| TargetError::Shape(format!("`sim:` does not understand `{key}={value}`: {wanted}"));
            let duration = |text: &str| text.parse::<Nanos>().map_err(|error| wrong(&error.to_string()));
            match key.as_str() {
                "service" => options.service = duration(value)?,
                "servers" => {
                    let servers = value.parse().ok().filter(|servers| *servers > 0);
                    options.servers = servers.ok_or_else(|| wrong("a whole number from 1 is needed"))?;
                }
                "seed" => options.seed = value.parse().map_err(|_| wrong("a whole number is needed"))?,
                "spread" => {
                    options.spread = match value.as_str() {
                        "fixed" => Spread::Fixed,
                        "exponential" => Spread::Exponential,
                        _ => return Err(wrong("it is `fixed` or `exponential`")),
                    }
                }
                "stall" => {
                    let (at, length) = value.split_once(':').ok_or_else(|| wrong("write `stall=10s:500ms`"))?;
                    options.stall = Some((duration(at)?, duration(length)?));
                }
                _ => return Err(wrong("its keys are service, spread, servers, stall and seed")),
            }
        }
        Ok(options)
    }
}

/// The simulated target.
#[derive(Debug)]
pub struct Simulated {
    options: SimulatedOptions,
    opened_ns: u64,
    servers: Mutex<Servers>,
}

#[derive(Debug)]
struct Servers {
    /// When each server is free again, soonest first.
    free_at: BinaryHeap<Reverse<u64>>,
    rng: Rng,
}

impl Simulated {
    /// A target that behaves as `options` say, from now on `clock`.
    pub fn open(options: SimulatedOptions, clock: Clock) -> Self {
        let free_at = (0..options.servers).map(|_| Reverse(0)).collect();
        let servers = Mutex::new(Servers { free_at, rng: Rng::new(options.seed, 0) });
        Self { opened_ns: clock.now_ns(), servers, options }
    }

    /// When a read that is sent at `now` will be done.
    fn serve(&self, now: u64) -> u64 {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let mean = self.options.service.0;
        let service = match self.options.spread {
            Spread::Fixed => mean,
            Spread::Exponential => (-(1.0 - servers.rng.unit_f64()).ln() * mean as f64) as u64,
        };
        let Reverse(free_ns) = servers.free_at.pop().expect("there is at least one server");
        let mut begin = now.max(free_ns);
        if let Some((at, length)) = self.options.stall {
            let stalled = self.opened_ns + at.0..self.opened_ns + at.0 + length.0;
            if stalled.contains(&begin) {
                begin = stalled.end;
            }
        }
        servers.free_at.push(Reverse(begin + service));
        begin + service
    }
}

impl Target for Simulated {
    fn describe(&self) -> record::Target {
        let SimulatedOptions { service, spread, servers, stall, seed } = &self.options;
        let mut facts = BTreeMap::from([
            ("service_ns".to_owned(), service.0.to_string()),
            ("spread".to_owned(), format!("{spread:?}").to_lowercase()),
            ("servers".to_owned(), servers.to_string()),
            ("seed".to_owned(), seed.to_string()),
        ]);
        if let Some((at, length)) = stall {
            facts.insert("stall".to_owned(), format!("{length} at {at}"));
        }
        record::Target { kind: "simulated".to_owned(), address: "sim:".to_owned(), facts, ..record::Target::default() }
    }

    fn notes(&self) -> Vec<String> {
        vec!["the target is simulated: its figures say nothing about this machine".to_owned()]
    }

    fn layer(&self) -> &'static str {
        "simulation"
    }

    fn known_counters(&self) -> &'static [Counter] {
        &[Counter::Operations, Counter::LogicalReads, Counter::PhysicalReads]
    }

    fn take_background(&self) -> Recorded {
        Recorded::default()
    }

    fn check_health(&self) -> Result<(), TargetError> {
        Ok(())
    }
}

impl TargetFor<SlobOperation> for Simulated {
    fn open_lane(&self, seat: Seat) -> Result<Box<dyn Lane<SlobOperation> + '_>, TargetError> {
        Ok(Box::new(SimulatedLane {
            target: self,
            clock: seat.clock,
            sessions: vec![(0, 0, 0); seat.sessions as usize],
            done_at: BinaryHeap::new(),
        }))
    }
}

struct SimulatedLane<'t> {
    target: &'t Simulated,
    clock: Clock,
    /// For each session: touches of its operation, touches left, and when the present read was sent.
    sessions: Vec<(u64, u64, u64)>,
    done_at: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Lane<SlobOperation> for SimulatedLane<'_> {
    fn start(&mut self, session: u32, operation: &SlobOperation, _: &mut LaneRecorder) -> Result<(), TargetError> {
        let touches = if operation.keys == 0 { SCAN_TOUCHES } else { u64::from(operation.keys) };
        let now = self.clock.now_ns();
        self.sessions[session as usize] = (touches, touches, now);
        self.done_at.push(Reverse((self.target.serve(now), session)));
        Ok(())
    }

    fn poll(
        &mut self,
        until_ns: u64,
        recorder: &mut LaneRecorder,
        finished: &mut Vec<Finished>,
    ) -> Result<(), TargetError> {
        let next = self.done_at.peek().map_or(u64::MAX, |Reverse((at, _))| *at);
        let sleep = next.min(until_ns).saturating_sub(self.clock.now_ns());
        if sleep > 0 {
            std::thread::sleep(Duration::from_nanos(sleep));
        }
        let now = self.clock.now_ns();
        while let Some(Reverse((at_ns, session))) = self.done_at.peek().copied().filter(|Reverse((at, _))| *at <= now) {
            self.done_at.pop();
            let (touches, left, sent_ns) = &mut self.sessions[session as usize];
            // The simulated instant counts, not the one when this thread woke up.
            recorder.advance(at_ns);
            recorder.wait(WaitEvent::DbFileSequentialRead, at_ns - *sent_ns);
            recorder.count(Counter::LogicalReads, 1);
            recorder.count(Counter::PhysicalReads, 1);
            *left -= 1;
            if *left == 0 {
                let result = OperationResult::Done;
                finished.push(Finished { session, at_ns, block_touches: *touches, result });
            } else {
                *sent_ns = at_ns;
                self.done_at.push(Reverse((self.target.serve(at_ns), session)));
            }
        }
        Ok(())
    }

    fn abandon(&mut self) -> Result<(), TargetError> {
        self.done_at.clear();
        Ok(())
    }
}
