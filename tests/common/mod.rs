//! Small data sets and steps for the tests of the embedded engine, and of raw storage in `raw`.

#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

pub mod raw;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use plimsoll::load::{Pace, Share, StepOutcome, StepPlan, Stop, Surroundings, run_step};
use plimsoll::measure::Clock;
use plimsoll::record;
use plimsoll::targets::block::safety::Permission;
use plimsoll::targets::database::{Filling, Replace, SetupRequest};
use plimsoll::targets::embedded::setup::{self, EngineRequest};
use plimsoll::targets::embedded::verify::{VerifyReport, verify};
use plimsoll::targets::embedded::{Destinations, Engine, EngineOptions};
use plimsoll::targets::io::IoEngine;
use plimsoll::units::{Bytes, Nanos};
use plimsoll::workload::{RedoStress, SlobShape};

pub use test_support::scratch::scratch;

/// Loads end when they have done enough; one that has not after this time hangs.
pub const LIMIT: Nanos = Nanos::seconds(300);

/// A set-up of two schemas that takes well under a second.
pub fn small() -> EngineRequest {
    EngineRequest {
        data: SetupRequest {
            schemas: 2,
            scale_blocks: 2_000,
            scan_blocks: 300,
            block_bytes: 8192,
            filling: Filling::Incompressible,
            streams: 2,
            seed: 11,
            is_seed_asked: true,
            replace: Replace::Refuse,
        },
        redo_file_bytes: 8 << 20,
        redo_files: 3,
        destinations: Destinations::default(),
        permission: Permission::default(),
        io_engine: None,
    }
}

pub fn set_up(path: &Path, request: &EngineRequest) {
    let plan = setup::plan(path, request).unwrap();
    setup::run(plan, &|_| (), &AtomicBool::new(false)).unwrap();
}

pub fn options(cache: Bytes) -> EngineOptions {
    EngineOptions { cache, writers: None, max_sessions: 64, io_engine: None, flash: None, ledger: None }
}

pub fn open(path: &Path, cache: Bytes) -> (Engine, Clock) {
    let clock = Clock::start();
    (Engine::open(path, &options(cache), clock, &|_| ()).unwrap(), clock)
}

pub fn open_with(path: &Path, cache: Bytes, io: IoEngine) -> (Engine, Clock) {
    let clock = Clock::start();
    let options = EngineOptions { io_engine: Some(io), ..options(cache) };
    (Engine::open(path, &options, clock, &|_| ()).unwrap(), clock)
}

/// Reads of eight blocks by eight sessions, on all of `request`'s data, until one session has done a hundred.
pub fn step(request: &EngineRequest) -> StepPlan<SlobShape> {
    StepPlan {
        index: 0,
        label: "test".to_owned(),
        load: record::Intensity { sessions: Some(8), ..record::Intensity::default() },
        level: None,
        like: None,
        shape: SlobShape {
            schemas: request.data.schemas,
            threads_per_schema: 8 / request.data.schemas,
            scale_blocks: request.data.scale_blocks,
            work_unit: 8,
            update_pct: 0,
            update_share: None,
            scan_pct: 0,
            redo_stress: RedoStress::Lite,
            hot_spot: None,
            hot_schema_frequency: 0,
            think: None,
        },
        seed: 3,
        work_loop: Some(100),
        warmup: Nanos::millis(200),
        duration: LIMIT,
        pace: Pace::Closed,
        lanes: 2,
        share: Share::WHOLE,
    }
}

/// Runs a plan for longer and longer windows until enough has happened in one, however fast the machine is.
pub fn run_until<S>(
    plan: &mut StepPlan<S>,
    run: impl Fn(&StepPlan<S>) -> StepOutcome,
    is_enough: impl Fn(&record::Step) -> bool,
) -> StepOutcome {
    loop {
        let outcome = run(plan);
        if outcome.failure.is_some() || is_enough(&outcome.step) {
            return outcome;
        }
        assert!(plan.duration < LIMIT, "too little in {}: {:?}", plan.duration, outcome.step.counters);
        plan.duration = Nanos(plan.duration.0 * 4);
    }
}

pub fn run(engine: &Engine, clock: Clock, plan: &StepPlan<SlobShape>) -> StepOutcome {
    run_step(engine, plan, Surroundings::new(clock, &Stop::new()), &mut |_| {})
}

pub fn verified(path: &Path) -> VerifyReport {
    verify(path, None, None, false, &|_| (), &AtomicBool::new(false)).unwrap()
}
