//! How load on raw storage ends before its time, and that what was measured until then is kept.

use std::fs::File;
use std::path::Path;

use crate::common::raw::{checked, engines, open, open_as, read_back, run, step, wanted, wide};
use crate::common::{LIMIT, run_until, scratch};
use plimsoll::config::io::Durable;
use plimsoll::load::{StepOutcome, Stop, Surroundings, run_step};
use plimsoll::measure::Clock;
use plimsoll::record::{Ending, Outcome, Step};
use plimsoll::targets::TargetError;
use plimsoll::targets::block::{Block, BlockError, PrepareOptions, VolumeLayout};
use plimsoll::units::Nanos;
use test_support::loop_device::LoopDevice;
use test_support::scratch::is_in_memory;
use test_support::skip::skip;

/// Reads of a loop device whose file was cut to `left` bytes behind its back, which the kernel answers with EIO.
fn reads_of_a_failing_device(left: u64) -> Vec<StepOutcome> {
    engines()
        .into_iter()
        .filter_map(|engine| {
            let dir = scratch();
            let file = dir.path().join("member-0");
            drop(open(&wanted(dir.path(), VolumeLayout::Single, 1, 8)));
            let device = LoopDevice::over(&file)?;
            let reads = PrepareOptions {
                paths: vec![device.path().to_owned()],
                permission: None,
                size: None,
                ..wanted(dir.path(), VolumeLayout::Single, 1, 8)
            };
            let block = open_as(&reads, engine, Durable::None);
            File::options().write(true).open(&file).unwrap().set_len(left).unwrap();
            let mut plan = step(&block, 100);
            plan.work_loop = None;
            let outcome = if left == 0 {
                run(&block, &plan)
            } else {
                plan.duration = Nanos::millis(300);
                let both = |step: &Step| {
                    step.counters.errors.is_some_and(|errors| errors > 10)
                        && step.counters.operations.is_some_and(|done| done > 10)
                };
                run_until(&mut plan, |plan| run(&block, plan), both)
            };
            drop(block);
            Some(outcome)
        })
        .collect()
}

#[test]
fn a_failed_request_is_an_error_and_the_load_goes_on() {
    for outcome in reads_of_a_failing_device(4 << 20) {
        let step = &outcome.step;
        // The device may fail so fast that the most errors are reached.
        assert!(matches!(outcome.failure, None | Some(TargetError::TooManyErrors { .. })), "{:?}", outcome.failure);
        let (errors, done) = (step.counters.errors.unwrap(), step.counters.operations.unwrap());
        assert!(errors > 10 && done > 10, "{errors} errors, {done} operations");
        let reads = &step.operations[0];
        assert_eq!((reads.errors, reads.count), (errors, errors + done));
        assert_eq!(reads.service.count(), done, "what failed has no latency");
        assert_eq!(step.counters.physical_reads, Some(done));
    }
}

#[test]
fn nothing_but_errors_ends_the_load() {
    for outcome in reads_of_a_failing_device(0) {
        let error = outcome.failure.expect("it ends");
        assert!(matches!(error, TargetError::TooManyErrors { .. }), "{error}");
        assert!(error.hint().unwrap().contains("dmesg"));
        assert_eq!(outcome.step.outcome, Outcome::Failed { error: error.to_string() });
        assert!(outcome.step.counters.errors.unwrap() > 1_000);
    }
}

/// Load that something is done to when an interval has ended and more than ten operations are done.
fn disturbed(block: &Block, read_pct: u8, disturb: impl FnOnce()) -> StepOutcome {
    let mut plan = step(block, read_pct);
    plan.work_loop = None;
    let (mut done, mut disturb) = (0, Some(disturb));
    run_step(block, &plan, Surroundings::new(Clock::start(), &Stop::new()), &mut |interval| {
        done += interval.counters.operations.unwrap();
        if let Some(disturb) = disturb.take_if(|_| done > 10) {
            disturb();
        }
    })
}

fn cut(path: &Path) {
    File::options().write(true).open(path).unwrap().set_len(1 << 20).unwrap();
}

#[test]
fn a_file_that_is_truncated_ends_the_load_and_what_was_measured_is_kept() {
    for engine in engines() {
        for read_pct in [100, 0] {
            let dir = scratch();
            let wanted = wanted(dir.path(), VolumeLayout::Single, 1, 64);
            let block = open_as(&wanted, engine, Durable::None);
            let outcome = disturbed(&block, read_pct, || cut(&wanted.paths[0]));
            let error = outcome.failure.expect("it is noticed");
            assert!(matches!(error, TargetError::Truncated { .. }), "{engine}, {read_pct} % reads: {error}");
            assert!(error.hint().is_some_and(|hint| hint.contains("plimsoll io")), "{:?}", error.hint());
            assert!(outcome.step.counters.operations.unwrap() > 10, "what was measured is kept");
            assert_eq!(outcome.step.window.ending, Ending::Failure);
            assert!((1_000_000_000..LIMIT.0).contains(&outcome.step.window.duration_ns));
        }
    }
}

#[test]
fn a_file_that_is_deleted_ends_the_load_and_what_was_measured_is_kept() {
    let dir = scratch();
    let wanted = wanted(dir.path(), VolumeLayout::Concat, 2, 8);
    let block = open(&wanted);
    let outcome = disturbed(&block, 50, || std::fs::remove_file(&wanted.paths[1]).unwrap());
    let error = outcome.failure.expect("it is noticed");
    assert!(matches!(&error, TargetError::Vanished { path } if *path == wanted.paths[1]), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("plimsoll io")), "{:?}", error.hint());
    assert!(outcome.step.counters.operations.unwrap() > 10);
    assert!((1_000_000_000..LIMIT.0).contains(&outcome.step.window.duration_ns));
}

#[test]
fn a_wish_to_stop_ends_the_load_at_once_and_leaves_sound_data() {
    for engine in engines() {
        let dir = scratch();
        let block = open_as(&checked(dir.path(), VolumeLayout::Single, 1, 4), engine, Durable::None);
        let mut plan = wide(step(&block, 50), 32, 2);
        plan.work_loop = None;
        let (stop, mut intervals) = (Stop::new(), 0);
        let outcome = run_step(&block, &plan, Surroundings::new(Clock::start(), &stop), &mut |_| {
            intervals += 1;
            if intervals == 2 {
                stop.ask();
            }
        });
        assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
        assert_eq!((outcome.step.outcome, outcome.step.window.ending), (Outcome::Interrupted, Ending::Interrupt));
        assert!(outcome.step.window.duration_ns < LIMIT.0 && intervals >= 2, "{intervals} intervals");
        let sum: u64 = outcome.step.intervals.iter().map(|interval| interval.counters.operations.unwrap()).sum();
        assert_eq!(Some(sum), outcome.step.counters.operations, "the intervals hold all that was measured");
        read_back(&block).unwrap();
    }
}

#[test]
fn more_writes_than_blocks_end_with_an_error_where_data_are_checked() {
    let dir = scratch();
    let mut wanted = checked(dir.path(), VolumeLayout::Single, 1, 1);
    wanted.size = Some(plimsoll::units::Bytes::kib(64));
    let block = open(&wanted);
    // One lane sends all sixteen at once, whatever else the machine does: a second lane might start when the first is done.
    let outcome = run(&block, &wide(step(&block, 0), 16, 1));
    if outcome.failure.is_none() && is_in_memory(dir.path()) {
        return skip("on tmpfs a write is done when it is sent, so that no block has one under way");
    }
    let error = outcome.failure.expect("eight blocks cannot take sixteen writes");
    assert!(matches!(error, TargetError::Block(BlockError::NoBlockFree { blocks: 8 })), "{error}");
    assert!(error.hint().is_some());
}
