//! A target with planted behaviour: service times, servers, caps, bursts, tiers, a cache, stalls, drift and errors.
//!
//! [`Model`] says when a request would be done; [`Simulated`] makes a target of it, on which time passes as on the wall
//! or only in the simulation. Every block touch of an operation of the SLOB method is one read; a request to raw storage
//! is one request. Nothing is read or written anywhere.

mod keys;
mod lane;
mod model;

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use keys::{KEYS, Key};
pub use model::{Model, Served, SimulatedRequest};

use self::lane::{IoLane, Line, SlobLane};
use super::{Background, Lane, SessionRange, Target, TargetError, TargetFor};
use crate::database::{
    DataFacts, Database, DropPlan, DropScope, OpenDatabase, OpenRequest, Progress, SetupPlan, SetupRequest, Sheet,
    There, Timing, Verified,
};
use ::model::record;
use ::model::units::{Bytes, Nanos};
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
        let other = planted.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let facts = record::TargetFacts { other, ..record::TargetFacts::default() };
        record::Target { kind: Some(record::TargetKind::Simulated), address, facts, ..record::Target::default() }
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

/// A simulated database with what is planted in it.
pub struct SimulatedDatabase {
    options: SimulatedOptions,
    address: String,
}

impl SimulatedDatabase {
    /// # Errors
    /// When a pair is no option of a simulation.
    pub fn new(pairs: &[(String, String)], address: String) -> Result<Self, TargetError> {
        Ok(Self { options: SimulatedOptions::from_pairs(pairs)?, address })
    }

    fn holds_nothing<T>(&self) -> Result<T, TargetError> {
        Err(TargetError::NoData { address: self.address.clone() })
    }
}

impl Database for SimulatedDatabase {
    fn there(&mut self, _stop: &AtomicBool) -> Result<There, TargetError> {
        Ok(There::Data)
    }

    fn facts(&mut self, _stop: &AtomicBool) -> Result<Option<DataFacts>, TargetError> {
        Ok(None)
    }

    fn timing(&self) -> Result<Timing, TargetError> {
        Ok(Timing::Simulated)
    }

    fn block_bytes(&mut self, _asked: Option<Bytes>, _streams: u32, _stop: &AtomicBool) -> Result<u64, TargetError> {
        self.holds_nothing()
    }

    fn plan_setup(
        &mut self,
        _request: &SetupRequest,
        _stop: &AtomicBool,
    ) -> Result<Box<dyn SetupPlan + '_>, TargetError> {
        self.holds_nothing()
    }

    fn verify(&mut self, _progress: &(dyn Fn(Progress) + Sync), _stop: &AtomicBool) -> Result<Verified, TargetError> {
        self.holds_nothing()
    }

    fn info(&mut self, _stop: &AtomicBool) -> Result<Sheet, TargetError> {
        self.holds_nothing()
    }

    fn plan_drop(&mut self, _scope: DropScope, _stop: &AtomicBool) -> Result<Box<dyn DropPlan + '_>, TargetError> {
        self.holds_nothing()
    }

    fn open(self: Box<Self>, _request: &OpenRequest<'_>) -> Result<Box<dyn OpenDatabase>, TargetError> {
        let clock = self.options.clock();
        Ok(Box::new(OpenSimulation { simulated: Simulated::open(self.options, clock), clock }))
    }
}

struct OpenSimulation {
    simulated: Simulated,
    clock: Clock,
}

impl OpenDatabase for OpenSimulation {
    fn target(&self) -> &dyn TargetFor<SlobOperation> {
        &self.simulated
    }

    fn clock(&self) -> Clock {
        self.clock
    }

    fn close(self: Box<Self>) -> Result<(), TargetError> {
        Ok(())
    }
}

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

/// What is planted. [`KEYS`] says how it is written in an address.
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
    /// Reads a second.
    pub read_iops: Option<Cap>,
    /// Writes a second.
    pub write_iops: Option<Cap>,
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
            read_iops: None,
            write_iops: None,
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
    /// Options from the `key=value` pairs of a `sim:` address; [`KEYS`] lists the keys.
    ///
    /// # Errors
    /// [`TargetError::Shape`] naming the pair that cannot be understood.
    pub fn from_pairs(pairs: &[(String, String)]) -> Result<Self, TargetError> {
        keys::read(pairs)
    }

    /// As how many requests one of this length counts against a cap of requests.
    fn requests_of(&self, bytes: u32) -> u64 {
        self.io_unit.map_or(1, |unit| u64::from(bytes).div_ceil(unit.0).max(1))
    }

    /// A clock of the kind on which this target is to be driven. Make one for a run.
    pub fn clock(&self) -> Clock {
        match self.time {
            Time::Real => Clock::start(),
            Time::Simulated => Clock::simulated(),
        }
    }
}

#[cfg(test)]
mod tests {
    //! The model by itself, and how it is written in an address.

    use proptest::prelude::*;

    use super::*;
    use crate::OperationResult;
    use ::model::units::{Bytes, Nanos};

    fn pairs(address: &str) -> Vec<(String, String)> {
        let options = address.split(',').filter_map(|option| option.split_once('='));
        options.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    fn read(address: &str) -> Result<SimulatedOptions, String> {
        SimulatedOptions::from_pairs(&pairs(address)).map_err(|error| error.to_string())
    }

    fn model(address: &str) -> Model {
        Model::new(read(address).unwrap())
    }

    fn read_of(bytes: u32) -> SimulatedRequest {
        SimulatedRequest { offset_bytes: 0, bytes, is_write: false }
    }

    /// Seconds until `count` requests of `bytes` are done that all came at once.
    fn seconds(address: &str, count: u64, bytes: u32) -> f64 {
        let mut model = model(address);
        let done = (0..count).map(|_| model.serve(0, read_of(bytes)).done_at_ns).max();
        done.unwrap() as f64 / 1e9
    }

    /// Service times of requests that never meet.
    fn service_times(address: &str, count: u64) -> Vec<f64> {
        let mut model = model(address);
        let apart_ns = 1_000_000_000;
        (0..count).map(|n| (model.serve(n * apart_ns, read_of(8_192)).done_at_ns - n * apart_ns) as f64).collect()
    }

    fn quantile(mut values: Vec<f64>, quantile: f64) -> f64 {
        values.sort_by(f64::total_cmp);
        values[(quantile * (values.len() - 1) as f64) as usize]
    }

    #[test]
    fn writes_that_wait_for_their_cap_hold_up_no_reads() {
        let mut model = model("service=1ms,servers=8,read_iops_cap=2000,write_iops_cap=100");
        let mut done = |is_write| {
            let request = SimulatedRequest { offset_bytes: 0, bytes: 8_192, is_write };
            model.serve(0, request).done_at_ns as f64 / 1e9
        };
        let writes = (0..200).map(|_| done(true)).fold(0.0, f64::max);
        let reads = (0..1_000).map(|_| done(false)).fold(0.0, f64::max);
        assert!((writes - 2.0).abs() < 0.05 && (reads - 0.5).abs() < 0.2, "{writes} {reads}");
        // A few slow reads take nothing from the cap of all.
        let mut model = self::model("tiers=0.99:200us+0.01:20ms,servers=1000,read_iops_cap=8000");
        let ended = (0..16_000).map(|_| model.serve(0, read_of(8_192)).done_at_ns).max().unwrap_or(0) as f64 / 1e9;
        assert!((ended - 2.0).abs() < 0.05, "{ended}");
    }

    #[test]
    fn servers_serve_as_many_at_the_same_time() {
        assert_eq!(seconds("service=1ms,servers=4", 4_000, 8_192), 1.0);
        assert_eq!(seconds("service=1ms,servers=4000", 4_000, 8_192), 0.001);
    }

    #[test]
    fn a_transfer_takes_its_share_of_the_bandwidth() {
        assert_eq!(seconds("service=1ms,bandwidth=1G,servers=1", 1, 1 << 20), 0.001 + 1.0 / 1024.0 - 0.000_000_000_5);
    }

    #[test]
    fn caps_hold_to_the_request_and_large_requests_count_as_several() {
        // A request begins once what came before it is paid for.
        let near = |seconds: f64, expected: f64| (seconds / expected - 1.0).abs() < 0.0015;
        for (address, count, bytes, expected) in [
            ("iops_cap=5000", 10_000, 8_192, 2.0),
            ("iops_cap=5000,io_unit=256K", 10_000, 256 << 10, 2.0),
            ("iops_cap=5000,io_unit=256K", 10_000, (256 << 10) + 1, 4.0),
            ("iops_cap=5000,io_unit=256K", 10_000, 1 << 20, 8.0),
            ("mbps_cap=200", 1_000, 1_000_000, 5.0),
            ("mbps_cap=200,iops_cap=5000", 10_000, 8_000, 2.0),
            ("mbps_cap=200,iops_cap=5000", 10_000, 80_000, 4.0),
            ("mbps_cap=100,burst_mbps=400:5s", 3_000, 1_000_000, 5.0 + 10.0),
            ("iops_cap=5000,burst=20000:1s", 25_000, 8_192, 2.0),
        ] {
            let address = format!("service=1us,servers=1000,{address}");
            let took = seconds(&address, count, bytes);
            assert!(near(took, expected), "{address}: {count} of {bytes} bytes took {took} s, not {expected}");
        }
    }

    #[test]
    fn a_stall_holds_up_what_would_have_begun_in_it_and_caps_do_not_make_up_for_it() {
        let mut model = model("service=1ms,servers=1000,iops_cap=1000,stall=1s:500ms+3s:1s");
        let done: Vec<u64> = (0..3_000).map(|_| model.serve(0, read_of(8_192)).done_at_ns).collect();
        let begun_in = |from_ms: u64, to_ms: u64| {
            done.iter().filter(|at| (from_ms..to_ms).contains(&(**at / 1_000_000 - 1))).count()
        };
        assert_eq!(
            [(0, 1_000), (1_000, 1_500), (1_500, 3_000)].map(|(from, to)| begun_in(from, to)),
            [1_000, 0, 1_500]
        );
        assert_eq!([(3_000, 4_000), (4_000, 4_500)].map(|(from, to)| begun_in(from, to)), [0, 500]);
    }

    #[test]
    fn service_times_are_spread_as_reported() {
        assert!(service_times("service=200us", 100).iter().all(|ns| *ns == 200_000.0));
        let exponential = service_times("service=200us,spread=exponential", 50_000);
        let mean = exponential.iter().sum::<f64>() / exponential.len() as f64;
        assert!((mean / 200_000.0 - 1.0).abs() < 0.02, "mean {mean}");
        assert!((quantile(exponential, 0.5) / 200_000.0 - 2f64.ln()).abs() < 0.02);
        let lognormal = || service_times("service=200us,spread=lognormal:0.5", 50_000);
        assert!((quantile(lognormal(), 0.5) / 200_000.0 - 1.0).abs() < 0.02);
        // One standard deviation above the median.
        assert!((quantile(lognormal(), 0.841_345) / 200_000.0 - 0.5f64.exp()).abs() < 0.04);
    }

    #[test]
    fn tiers_errors_and_drift_come_in_their_measure() {
        let tiers = service_times("tiers=0.3:90us+0.7:600us", 20_000);
        let fast = tiers.iter().filter(|ns| **ns == 90_000.0).count();
        assert!((5_800..6_200).contains(&fast), "{fast} of 20000 were fast");
        assert!(tiers.iter().all(|ns| [90_000.0, 600_000.0].contains(ns)));

        let mut failing = model("errors=0.01");
        let failed =
            (0..100_000).filter(|_| failing.serve(0, read_of(8_192)).result == OperationResult::Failed).count();
        assert!((900..1_100).contains(&failed), "{failed} of 100000 failed");

        let drifting = service_times("service=100us,drift=10%/h", 7_201);
        assert_eq!([drifting[0], drifting[3_600], drifting[7_200]].map(f64::round), [100_000.0, 110_000.0, 120_000.0]);
    }

    #[test]
    fn what_was_touched_lately_is_read_from_the_cache_and_writes_go_through_it() {
        let mut model = model("service=1ms,cache=1M,cache_service=10us,servers=100");
        let mut took = |offset_bytes, is_write| {
            model.serve(0, SimulatedRequest { offset_bytes, bytes: 8_192, is_write }).done_at_ns / 1_000
        };
        assert_eq!([took(0, false), took(0, false), took(8_192, true), took(8_192, false)], [1_000, 10, 1_000, 10]);
        assert_eq!(took(0, true), 1_000);
    }

    #[test]
    fn planting_one_thing_more_leaves_the_others_as_they_were() {
        let plain = service_times("service=200us,spread=lognormal:1", 1_000);
        assert_eq!(service_times("service=200us,spread=lognormal:1,errors=0.5", 1_000), plain);
        assert_eq!(service_times("tiers=1:200us,spread=lognormal:1,iops_cap=100", 1_000), plain);
        assert_ne!(service_times("service=200us,spread=lognormal:1,seed=2", 1_000), plain);
    }

    #[test]
    fn an_address_plants_what_it_says() {
        let options = read("burst=20000:20s,iops_cap=5000,stall=3s:1s+1s:500ms,clock=simulated,io_unit=256K").unwrap();
        let burst = Some(Burst { per_s: 20_000.0, length: Nanos::seconds(20) });
        let stall = |at, length| Stall { at: Nanos::millis(at), length: Nanos::millis(length) };
        let planted = SimulatedOptions {
            iops: Some(Cap { per_s: 5_000.0, burst }),
            io_unit: Some(Bytes::kib(256)),
            stalls: vec![stall(1_000, 500), stall(3_000, 1_000)],
            time: Time::Simulated,
            ..SimulatedOptions::default()
        };
        assert_eq!(options, planted);
        assert!(options.clock().is_simulated());
        assert!(!SimulatedOptions::default().clock().is_simulated());
        let description = Simulated::open(options.clone(), options.clock()).describe();
        assert_eq!(description.facts.other["burst"], "20000:20s");
        assert_eq!(description.facts.other["stall"], "1s:500ms+3s:1s");
        assert_eq!(read(description.address.strip_prefix("sim:").unwrap()), Ok(planted));
    }

    #[test]
    fn what_cannot_be_planted_is_refused_with_what_is_wanted() {
        for (address, wanted) in [
            ("service=0s", "a duration above 0 is needed"),
            (
                "service=fast",
                "`fast` is not a duration such as `30s`, `250ms` or `10m`: it does not start with a number",
            ),
            ("servers=0", "a whole number from 1 to 1000000 is needed"),
            ("spread=wide", "it is `fixed`, `exponential` or `lognormal:SIGMA`"),
            ("spread=lognormal:9", "a number from 0 to 5 is needed"),
            ("iops_cap=0", "a number from 0.000001 to 1000000000 is needed"),
            ("mbps_cap=NaN", "a number from 0.000001 to 1000000000 is needed"),
            ("burst=20000:20s", "it needs `iops_cap=RATE`, to which it falls back"),
            ("burst_mbps=2:20s", "it needs `mbps_cap=RATE`, to which it falls back"),
            ("burst=20:20s,iops_cap=20", "its rate must be above `iops_cap=20`"),
            ("tiers=0.3:90us", "its shares add up to 0.3, not to 1"),
            ("tiers=1:90us,service=1ms", "it takes the place of `service`, so give one of them"),
            ("volumes=27", "a whole number from 1 to 26 is needed"),
            ("cache_service=10us", "it needs `cache=SIZE`"),
            ("stall=10s", "`10s` has no `:` between its two parts"),
            ("drift=10", "write `drift=10%/h`"),
            ("errors=2", "a number from 0 to 1 is needed"),
            ("clock=sun", "it is `real` or `simulated`"),
            (
                "colour=blue",
                "its keys are service, tiers, spread, servers, bandwidth, iops_cap, io_unit, burst, mbps_cap, burst_mbps, \
             read_iops_cap, write_iops_cap, volumes, machine_iops_cap, machine_mbps_cap, cache, cache_service, stall, drift, errors, seed and clock",
            ),
        ] {
            let pair = address.split(',').next().unwrap();
            assert_eq!(read(address), Err(format!("`sim:` does not understand `{pair}`: {wanted}")));
        }
    }

    #[test]
    fn the_book_tells_of_every_key() {
        let book = include_str!("../../../../docs/workloads/simulator.md");
        for Key { name, value, meaning, .. } in KEYS {
            let row = format!("| `{name}` | `{}` | {meaning} |", value.replace('|', "\\|"));
            assert!(book.contains(&row), "docs/workloads/simulator.md lacks the row\n{row}");
        }
    }

    proptest! {
        #[test]
        fn no_value_makes_it_fail_and_what_is_read_is_written_as_the_same(
            key in 0..KEYS.len(), value in "[0-9a-z.:+%/]{0,20}|[0-9]{1,4}(us|ms|s|M)?(:[0-9]{1,3}ms)?|[01]\\.[0-9]{1,3}",
        ) {
            let given = [(KEYS[key].name.to_owned(), value), ("iops_cap".to_owned(), "10".to_owned())];
            if let Ok(options) = SimulatedOptions::from_pairs(&given) {
                let written: Vec<_> = keys::written(&options).map(|(key, value)| (key.to_owned(), value)).collect();
                prop_assert_eq!(SimulatedOptions::from_pairs(&written).unwrap(), options);
            }
        }

        #[test]
        fn time_never_stands_still(address in "(service=1ns|spread=exponential|cache=8K),spread=lognormal:5", seed: u64) {
            let mut model = model(&format!("{address},seed={seed}"));
            let mut now = 0;
            for _ in 0..100 {
                let done = model.serve(now, read_of(1)).done_at_ns;
                prop_assert!(done > now);
                now = done;
            }
        }
    }
}
