//! The flash cache answers what it holds, never with an old version, and costs time and nothing else when it fails.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

mod common;

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{options, run, run_until, scratch, set_up, small, step, verified};
use plimsoll::load::{StepOutcome, StepPlan};
use plimsoll::measure::Clock;
use plimsoll::record::{Counters, Step};
use plimsoll::targets::Target;
use plimsoll::targets::embedded::{Engine, EngineOptions, FlashOptions};
use plimsoll::targets::io::IoEngine;
use plimsoll::units::{Bytes, Nanos};
use plimsoll::workload::SlobShape;
use test_support::loop_device::LoopDevice;
use test_support::skip::skip;

const READ: &str = "db flash cache single block physical read";
/// The map and the copies on their way take some three of these.
const CACHE: Bytes = Bytes::mib(6);

fn open_with(data: &Path, flash: FlashOptions, io_engine: Option<IoEngine>) -> (Engine, Clock) {
    let clock = Clock::start();
    let options = EngineOptions { flash: Some(flash), io_engine, ..options(CACHE) };
    (Engine::open(data, &options, clock, &|_| ()).unwrap(), clock)
}

fn waits(step: &Step, event: &str) -> u64 {
    step.waits.iter().find(|wait| wait.event == event).map_or(0, |wait| wait.waits.count())
}

/// Runs until flash has answered some reads, and what else was counted is enough.
fn run_until_answered(
    engine: &Engine,
    clock: Clock,
    plan: &mut StepPlan<SlobShape>,
    is_enough: impl Fn(&Counters) -> bool,
) -> StepOutcome {
    (plan.work_loop, plan.duration) = (None, Nanos::millis(500));
    let is_enough = |step: &Step| step.counters.flash_cache_reads.unwrap() > 100 && is_enough(&step.counters);
    let outcome = run_until(plan, |plan| run(engine, clock, plan), is_enough);
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    outcome
}

#[test]
fn what_left_the_buffer_cache_is_read_from_flash() {
    let dir = scratch();
    let request = small();
    let (data, flash) = (dir.path().join("data"), dir.path().join("flash"));
    set_up(&data, &request);
    for io_engine in [IoEngine::best_available().0, IoEngine::Psync] {
        let (engine, clock) = open_with(&data, FlashOptions::new(flash.clone(), Bytes::mib(16)), Some(io_engine));
        let facts = engine.describe().facts.other;
        assert_eq!(
            (facts["flash_cache_blocks"].as_str(), facts["flash_cache"].as_str()),
            ("2048", flash.to_str().unwrap())
        );
        let outcome = run_until_answered(&engine, clock, &mut step(&request), |_| true);
        let counters = &outcome.step.counters;
        let (answered, fell_back) = (counters.flash_cache_reads.unwrap(), counters.flash_cache_fallbacks.unwrap());
        assert_eq!(answered + fell_back, waits(&outcome.step, READ), "each is timed by itself");
        assert_eq!(counters.flash_cache_read_bytes, Some(answered * 8192));
        let of_data = waits(&outcome.step, "db file sequential read");
        assert_eq!(counters.physical_reads, Some(of_data + answered), "they are reads of storage");
        assert!(counters.flash_cache_writes.unwrap() > 100);
        assert_eq!(engine.notes_on_flash(), [""; 0]);
        engine.close().unwrap();
        assert!(!flash.exists(), "the file goes with its engine");
    }
    assert!(verified(&data).is_sound());
}

#[test]
fn without_a_flash_cache_nothing_is_counted_of_one() {
    let dir = scratch();
    let request = small();
    set_up(dir.path(), &request);
    let (engine, clock) = common::open(dir.path(), CACHE);
    let outcome = run(&engine, clock, &step(&request));
    assert_eq!(outcome.step.counters.flash_cache_reads, None);
    assert_eq!(waits(&outcome.step, READ), 0);
    engine.close().unwrap();
}

#[test]
fn no_old_version_is_read_while_everything_changes() {
    let dir = scratch();
    let request = small();
    let (data, flash) = (dir.path().join("data"), dir.path().join("flash"));
    set_up(&data, &request);
    let (engine, clock) = open_with(&data, FlashOptions::new(flash, Bytes::mib(24)), None);
    let mut plan = step(&request);
    (plan.shape.update_pct, plan.shape.work_unit) = (60, 4);
    (plan.load.sessions, plan.shape.threads_per_schema) = (Some(40), 20);
    // A short window on a busy machine may see more copies that are being written anew.
    run_until_answered(&engine, clock, &mut plan, |counters| {
        let (answered, fell_back) = (counters.flash_cache_reads.unwrap(), counters.flash_cache_fallbacks.unwrap());
        counters.block_changes > Some(1_000) && fell_back * 20 <= answered
    });
    // A version that the change map does not know would have been refused, and the flash be given up in the end.
    assert_eq!(engine.notes_on_flash(), [""; 0]);
    engine.close().unwrap();
    assert!(verified(&data).is_sound());
}

#[test]
fn schemas_are_kept_or_left_out() {
    let dir = scratch();
    let request = small();
    let (data, flash) = (dir.path().join("data"), dir.path().join("flash"));
    set_up(&data, &request);
    // Nothing of the first schema comes to flash; load on the first alone writes nothing there.
    let (engine, clock) =
        open_with(&data, FlashOptions { none: vec![0], ..FlashOptions::new(flash.clone(), Bytes::mib(16)) }, None);
    let mut plan = step(&request);
    (plan.shape.schemas, plan.shape.threads_per_schema) = (1, 8);
    let outcome = run(&engine, clock, &plan);
    assert_eq!((outcome.step.counters.flash_cache_writes, outcome.step.counters.flash_cache_reads), (Some(0), Some(0)));
    engine.close().unwrap();
    // What is kept stays though all else passes through the rest of the flash.
    let keep = FlashOptions { keep: vec![0], ..FlashOptions::new(flash, Bytes::mib(20)) };
    let (engine, clock) = open_with(&data, keep, None);
    (plan.work_loop, plan.warmup) = (Some(1_000), Nanos(0));
    for _ in 0..2 {
        assert!(run(&engine, clock, &plan).failure.is_none());
    }
    let others = step(&request);
    assert!(run(&engine, clock, &others).failure.is_none());
    plan.seed += 1;
    let again = run(&engine, clock, &plan).step.counters;
    let (answered, all) = (again.flash_cache_reads.unwrap(), again.physical_reads.unwrap());
    assert!(answered * 10 > all * 8, "{answered} of {all} reads of the kept schema came from flash");
    engine.close().unwrap();
}

/// Loads while `harm` is done to the flash again and again, and returns what the load came to.
fn harmed(data: &Path, flash: FlashOptions, harm: impl Fn() + Sync) -> (StepOutcome, Vec<String>) {
    harmed_until(data, flash, harm, |step| step.counters.flash_cache_fallbacks.unwrap() > 0)
}

/// The same, until the load came to enough.
fn harmed_until(
    data: &Path,
    flash: FlashOptions,
    harm: impl Fn() + Sync,
    is_enough: impl Fn(&Step) -> bool,
) -> (StepOutcome, Vec<String>) {
    let request = small();
    let (engine, clock) = open_with(data, flash, None);
    let mut plan = step(&request);
    plan.shape.update_pct = 20;
    run_until_answered(&engine, clock, &mut plan, |_| true);
    // What fails at once must not be over before anything is counted.
    plan.warmup = Nanos(0);
    let is_over = AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                harm();
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        let outcome = run_until(&mut plan, |plan| run(&engine, clock, plan), is_enough);
        is_over.store(true, Ordering::Relaxed);
        outcome
    });
    let notes = engine.notes_on_flash();
    engine.close().unwrap();
    (outcome, notes)
}

fn assert_unharmed(data: &Path, outcome: &StepOutcome) {
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    assert!(outcome.step.counters.operations.unwrap() > 0);
    assert!(verified(data).is_sound());
}

#[test]
fn flash_that_is_overwritten_or_cut_costs_time_only() {
    let dir = scratch();
    let (data, flash) = (dir.path().join("data"), dir.path().join("flash"));
    set_up(&data, &small());
    let garbage = || {
        let file = OpenOptions::new().write(true).open(&flash).unwrap();
        (0..16).for_each(|at| file.write_all_at(&[0xa5; 64 << 10], at << 20).unwrap());
    };
    let (outcome, _) = harmed(&data, FlashOptions::new(flash.clone(), Bytes::mib(16)), garbage);
    assert_unharmed(&data, &outcome);
    let cut = || OpenOptions::new().write(true).open(&flash).unwrap().set_len(0).unwrap();
    let (outcome, _) = harmed(&data, FlashOptions::new(flash.clone(), Bytes::mib(16)), cut);
    assert_unharmed(&data, &outcome);
    // Another file in its place is not ours to remove.
    let gone = || {
        let _ = std::fs::rename(&flash, dir.path().join("elsewhere"));
        cut_open(&dir.path().join("elsewhere"));
    };
    let (outcome, _) = harmed(&data, FlashOptions::new(flash.clone(), Bytes::mib(16)), gone);
    assert_unharmed(&data, &outcome);
}

fn cut_open(path: &Path) {
    if let Ok(file) = OpenOptions::new().write(true).open(path) {
        file.set_len(0).unwrap();
    }
}

#[test]
fn a_device_that_fails_every_request_is_given_up() {
    let dir = scratch();
    let (data, backing) = (dir.path().join("data"), dir.path().join("backing"));
    set_up(&data, &small());
    std::fs::write(&backing, vec![0; 17 << 20]).unwrap();
    let Some(device) = LoopDevice::over(&backing) else { return };
    let mut flash = FlashOptions::new(device.path().to_owned(), Bytes::mib(16));
    flash.permission.destroy = vec![device.name()];
    // A loop device fails what lies behind the end of its file: the kernel answers EIO.
    let is_in_memory = test_support::scratch::is_in_memory(dir.path());
    let is_enough = |step: &Step| {
        let counters = &step.counters;
        counters.flash_cache_fallbacks.unwrap() > 0 && (is_in_memory || counters.flash_cache_given_up.unwrap() > 0)
    };
    let (outcome, notes) = harmed_until(&data, flash, || cut_open(&backing), is_enough);
    assert_unharmed(&data, &outcome);
    if is_in_memory {
        return skip("a loop device over a file on tmpfs answers with zeroes");
    }
    assert!(outcome.step.counters.flash_cache_fallbacks.unwrap() > 0);
    assert!(outcome.step.counters.flash_cache_given_up.unwrap() > 0, "{:?}", outcome.step.counters);
    assert!(notes[0].contains("was given up after 16 consecutive failures"), "{notes:?}");
}
