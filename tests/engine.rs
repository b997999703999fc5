//! The embedded engine as a whole: what it reads, keeps, changes, and says when its files are damaged.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

mod common;

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use common::{open, open_with, options, run, run_until, scratch, set_up, small, step, verified};
use plimsoll::load::{Pace, Stop, Surroundings, run_step};
use plimsoll::measure::Clock;
use plimsoll::record::{Outcome, Step};
use plimsoll::targets::embedded::{Engine, EngineOptions};
use plimsoll::targets::io::IoEngine;
use plimsoll::targets::{Target, TargetError};
use plimsoll::units::{Bytes, Nanos};
use plimsoll::workload::{RedoStress, Think};

fn waits(step: &Step, event: &str) -> u64 {
    step.waits.iter().find(|waits| waits.event == event).map_or(0, |waits| waits.waits.count())
}

#[test]
fn uniform_reads_hit_as_often_as_the_cache_is_large() {
    let dir = scratch();
    let request = small();
    set_up(dir.path(), &request);
    let (engine, clock) = open(dir.path(), Bytes::mib(4));
    let mut plan = step(&request);
    // On one thread: while one of several stands still, the sessions of its schema do too, and the cache is the other schema's.
    (plan.shape.work_unit, plan.lanes, plan.work_loop, plan.duration) = (1, 1, None, Nanos::seconds(1));
    let is_enough = |step: &Step| step.counters.logical_reads.unwrap() > 10_000;
    let outcome = run_until(&mut plan, |plan| run(&engine, clock, plan), is_enough);
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    let counters = &outcome.step.counters;
    let (logical, hits) = (counters.logical_reads.unwrap(), counters.cache_hits.unwrap());
    let cached = engine.describe().cache_blocks.unwrap() as f64 / 4_000.0;
    let ratio = hits as f64 / logical as f64;
    assert!((ratio - cached).abs() < 0.02, "hit ratio {ratio:.4} where the cache holds {cached:.4} of the data");
    assert_eq!(counters.physical_reads.unwrap() * 8192, counters.physical_read_bytes.unwrap());
    let reads = waits(&outcome.step, "db file sequential read");
    assert!(reads.abs_diff(counters.physical_reads.unwrap()) <= 64, "each read is one wait");
    assert!(logical.abs_diff(hits + reads) <= 64);
    engine.close().unwrap();
}

#[test]
fn everything_cached_needs_no_reads() {
    let dir = scratch();
    let request = small();
    set_up(dir.path(), &request);
    let (engine, clock) = open(dir.path(), Bytes::mib(64));
    let mut plan = step(&request);
    (plan.warmup, plan.work_loop) = (Nanos(0), Some(500));
    let mut reads = 0;
    loop {
        let counters = run(&engine, clock, &plan).step.counters;
        if counters.physical_reads == Some(0) {
            assert_eq!(counters.cache_hits, counters.logical_reads);
            break;
        }
        reads += counters.physical_reads.unwrap();
        assert!(reads <= 4_000, "{reads} reads of 4,000 blocks: one was read again");
    }
    engine.close().unwrap();
}

#[test]
fn updates_are_there_after_closing_and_after_being_killed() {
    let dir = scratch();
    let request = small();
    set_up(dir.path(), &request);
    for (stress, close) in [(RedoStress::Lite, true), (RedoStress::Heavy, true), (RedoStress::Lite, false)] {
        let (engine, clock) = open(dir.path(), Bytes::mib(4));
        let mut plan = step(&request);
        plan.shape.update_pct = 100;
        plan.shape.redo_stress = stress;
        let outcome = run(&engine, clock, &plan);
        assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
        let counters = &outcome.step.counters;
        assert!(counters.commits.unwrap() > 10);
        assert!(waits(&outcome.step, "log file sync") > 10);
        let each = counters.redo_bytes.unwrap() as f64 / counters.block_changes.unwrap() as f64;
        let columns = if stress == RedoStress::Heavy { 19.0 } else { 2.0 };
        assert!((each / (columns * 128.0 + 26.0) - 1.0).abs() < 0.2, "{each} redo bytes for each {stress:?} change");
        if close {
            engine.close().unwrap();
        } else {
            // Dropped without a checkpoint: as if killed, but for what the page cache holds.
            drop(engine);
        }
        let report = verified(dir.path());
        assert!(report.is_sound() && report.is_proven(), "{report:?}");
        assert_eq!(report.recovery.is_some(), !close);
        assert!(report.commits_acknowledged.unwrap() > 10);
    }
}

#[test]
fn a_log_too_small_makes_sessions_wait_for_checkpoints_and_loses_nothing() {
    let dir = scratch();
    let request = small();
    set_up(dir.path(), &request);
    let (engine, clock) = open(dir.path(), Bytes::mib(16));
    let mut plan = step(&request);
    plan.shape.update_pct = 100;
    plan.shape.work_unit = 64;
    plan.shape.redo_stress = RedoStress::Heavy;
    // Each of the eight sessions changes 64 blocks at a time, some 150 KiB of redo: three times what all log files hold.
    plan.work_loop = Some(60);
    let outcome = run(&engine, clock, &plan);
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    let counters = &outcome.step.counters;
    assert!(counters.checkpoints.unwrap() >= 1, "{counters:?}");
    assert!(counters.log_switches.unwrap() >= 3, "{counters:?}");
    assert!(counters.physical_writes.unwrap() > 100, "{counters:?}");
    engine.close().unwrap();
    assert!(verified(dir.path()).is_sound());
}

#[test]
fn a_cache_full_of_changes_makes_sessions_wait_for_clean_buffers() {
    let dir = scratch();
    let request = small();
    set_up(dir.path(), &request);
    let (engine, clock) = open(dir.path(), Bytes(1_100_000));
    let mut plan = step(&request);
    plan.shape.update_pct = 100;
    plan.shape.work_unit = 64;
    (plan.load.sessions, plan.work_loop) = (Some(60), Some(2));
    plan.shape.threads_per_schema = 30;
    let outcome = run(&engine, clock, &plan);
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    assert!(waits(&outcome.step, "free buffer waits") > 0, "{:?}", outcome.step.waits);
    assert!(outcome.step.counters.block_changes.unwrap() > 1_000);
    engine.close().unwrap();
    assert!(verified(dir.path()).is_sound());
}

#[test]
fn sessions_that_share_a_row_wait_for_each_other_and_lose_no_change() {
    let dir = scratch();
    let mut request = small();
    request.data.schemas = 1;
    request.data.scale_blocks = 100;
    request.data.scan_blocks = 0;
    set_up(dir.path(), &request);
    let (engine, clock) = open(dir.path(), Bytes::mib(4));
    let mut plan = step(&request);
    plan.shape.update_pct = 50;
    plan.shape.work_unit = 4;
    plan.shape.threads_per_schema = 8;
    let outcome = run(&engine, clock, &plan);
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    engine.close().unwrap();
    assert!(verified(dir.path()).is_sound());
}

#[test]
fn scans_read_past_the_cache_in_large_pieces() {
    let dir = scratch();
    let request = small();
    set_up(dir.path(), &request);
    let (engine, clock) = open(dir.path(), Bytes::mib(4));
    let mut plan = step(&request);
    (plan.shape.scan_pct, plan.work_loop) = (50, Some(10));
    let outcome = run(&engine, clock, &plan);
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    let scans = outcome.step.operations.iter().find(|operations| operations.kind == "scan").unwrap();
    assert_eq!(scans.block_touches, 300 * scans.count);
    let counters = &outcome.step.counters;
    assert!(counters.direct_read_bytes.unwrap() / counters.direct_reads.unwrap() > 256 << 10);
    let reads = waits(&outcome.step, "direct path read");
    assert!(reads.abs_diff(counters.direct_reads.unwrap()) <= 64);
    engine.close().unwrap();
}

#[test]
fn every_block_size_works() {
    for kib in [2, 4, 16, 32] {
        let dir = scratch();
        let mut request = small();
        request.data.block_bytes = kib << 10;
        request.data.scale_blocks = 500;
        set_up(dir.path(), &request);
        let (engine, clock) = open(dir.path(), Bytes::mib(8));
        let mut plan = step(&request);
        plan.shape.update_pct = 30;
        plan.shape.scan_pct = 10;
        plan.work_loop = Some(40);
        let outcome = run(&engine, clock, &plan);
        assert!(outcome.failure.is_none(), "{kib} KiB: {:?}", outcome.failure);
        engine.close().unwrap();
        assert!(verified(dir.path()).is_sound(), "{kib} KiB");
    }
}

#[test]
fn the_plain_engine_does_the_same_and_loses_nothing() {
    let dir = scratch();
    let request = small();
    set_up(dir.path(), &request);
    let (engine, clock) = open_with(dir.path(), Bytes::mib(4), IoEngine::Psync);
    assert_eq!(engine.describe().facts.files.io_engine.as_deref(), Some("psync"));
    let mut plan = step(&request);
    plan.shape.update_pct = 30;
    let outcome = run(&engine, clock, &plan);
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    assert!(outcome.step.counters.physical_reads.unwrap() > 100);
    assert!(outcome.step.counters.commits.unwrap() > 5);
    engine.close().unwrap();
    assert!(verified(dir.path()).is_sound());
}

#[test]
fn four_thousand_sessions_work_and_think() {
    let dir = scratch();
    let mut request = small();
    request.data.scale_blocks = 10_000;
    set_up(dir.path(), &request);
    let clock = Clock::start();
    let wide = EngineOptions { max_sessions: 4096, ..options(Bytes::mib(80)) };
    let engine = Engine::open(dir.path(), &wide, clock, &|_| ()).unwrap();
    let mut plan = step(&request);
    plan.load.sessions = Some(4096);
    plan.shape.threads_per_schema = 2048;
    plan.shape.update_pct = 10;
    plan.shape.work_unit = 4;
    plan.shape.think = Some(Think { frequency: 1, min_ns: 10_000_000, max_ns: 300_000_000 });
    (plan.work_loop, plan.duration) = (None, Nanos::millis(1_000));
    let is_enough = |step: &Step| step.counters.operations.unwrap() > 4_096;
    let outcome = run_until(&mut plan, |plan| run(&engine, clock, plan), is_enough);
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    engine.close().unwrap();
    assert!(verified(dir.path()).is_sound());
}

#[test]
fn an_open_loop_keeps_its_rate() {
    let dir = scratch();
    let request = small();
    set_up(dir.path(), &request);
    let (engine, clock) = open(dir.path(), Bytes::mib(4));
    let mut plan = step(&request);
    plan.pace = Pace::Open { rate_per_s: 200.0, arrival: plimsoll::workload::Arrival::Fixed };
    (plan.work_loop, plan.duration) = (None, Nanos::seconds(1));
    let outcome = run(&engine, clock, &plan);
    // Storage that stalls leaves operations to be done after the window, and those of the warm-up to be done in it; none is
    // forgotten, and none is sent before its time.
    let of_warmup = 200 * plan.warmup.0 / 1_000_000_000;
    let (done, generator) = (outcome.step.counters.operations.unwrap(), outcome.step.generator.unwrap());
    let (due, backlog) = (generator.due_operations.unwrap(), generator.backlog_operations.unwrap());
    assert!((199..=201).contains(&due), "{due} operations were due where 200 are");
    let sessions = u64::from(outcome.step.load.slots());
    assert!(
        done <= due + of_warmup + sessions && done + backlog + sessions >= due,
        "{done} done and {backlog} left of {due}"
    );
    engine.close().unwrap();
}

/// Spoils block `block` of the first data file and lets sessions find it.
fn damaged(spoil: impl FnOnce(&std::fs::File)) -> (Outcome, TargetError) {
    let dir = scratch();
    let request = small();
    set_up(dir.path(), &request);
    let file = OpenOptions::new().read(true).write(true).open(dir.path().join("data-0001.dbf")).unwrap();
    spoil(&file);
    let (engine, clock) = open(dir.path(), Bytes::mib(2));
    let mut plan = step(&request);
    plan.work_loop = None;
    let outcome = run(&engine, clock, &plan);
    (outcome.step.outcome, outcome.failure.expect("the damage is found"))
}

#[test]
fn a_flipped_bit_ends_the_run_and_names_file_block_and_fault() {
    let (outcome, error) = damaged(|file| {
        let mut byte = [0];
        file.read_exact_at(&mut byte, 77 * 8192 + 4000).unwrap();
        file.write_all_at(&[byte[0] ^ 4], 77 * 8192 + 4000).unwrap();
    });
    let reported = error.to_string();
    assert!(reported.contains("bad block 77 at offset 630784 of") && reported.contains("data-0001.dbf"), "{reported}");
    assert!(reported.contains("checksum"), "{reported}");
    assert!(error.is_data_fault());
    assert_eq!(outcome, Outcome::Failed { error: reported });
}

#[test]
fn swapped_blocks_are_found() {
    let (_, error) = damaged(|file| {
        let (mut one, mut other) = (vec![0; 8192], vec![0; 8192]);
        file.read_exact_at(&mut one, 10 * 8192).unwrap();
        file.read_exact_at(&mut other, 20 * 8192).unwrap();
        file.write_all_at(&other, 10 * 8192).unwrap();
        file.write_all_at(&one, 20 * 8192).unwrap();
    });
    let reported = error.to_string();
    assert!(reported.contains("it is block 20") || reported.contains("it is block 10"), "{reported}");
}

#[test]
fn a_lost_write_is_found_as_a_stale_block() {
    let dir = scratch();
    let mut request = small();
    request.data.schemas = 1;
    request.data.scale_blocks = 64;
    request.data.scan_blocks = 0;
    set_up(dir.path(), &request);
    let path = dir.path().join("data-0001.dbf");
    let before = std::fs::read(&path).unwrap();
    let (engine, clock) = open(dir.path(), Bytes::mib(4));
    let mut plan = step(&request);
    plan.shape.update_pct = 100;
    plan.shape.threads_per_schema = 8;
    plan.work_loop = Some(3);
    run(&engine, clock, &plan);
    engine.close().unwrap();
    // A sound block, of the right place, but from before it was changed.
    let now = std::fs::read(&path).unwrap();
    let block = (0..64).find(|block| before[block * 8192..][..8192] != now[block * 8192..][..8192]).unwrap();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(&before[block * 8192..][..8192], block as u64 * 8192).unwrap();

    let report = verified(dir.path());
    assert_eq!(report.bad_block_count, 1);
    assert!(report.bad_blocks[0].fault.contains("stale"), "{:?}", report.bad_blocks);
    let (engine, clock) = open(dir.path(), Bytes::mib(4));
    plan.work_loop = None;
    let error = run(&engine, clock, &plan).failure.expect("sessions find it too");
    assert!(
        error.to_string().contains(&format!("bad block {block} ")) && error.to_string().contains("stale"),
        "{error}"
    );
}

#[test]
fn a_file_truncated_behind_our_back_ends_the_run() {
    let dir = scratch();
    let request = small();
    set_up(dir.path(), &request);
    let (engine, clock) = open(dir.path(), Bytes::mib(2));
    let path = dir.path().join("data-0001.dbf");
    let mut plan = step(&request);
    plan.work_loop = None;
    let mut reads = 0;
    let outcome = run_step(&engine, &plan, Surroundings::new(clock, &Stop::new()), &mut |interval| {
        if !interval.warmup {
            reads += interval.counters.physical_reads.unwrap();
        }
        if reads > 0 {
            OpenOptions::new().write(true).open(&path).unwrap().set_len(8192 * 100).unwrap();
        }
    });
    let error = outcome.failure.expect("it is noticed");
    assert!(matches!(&error, TargetError::Truncated { length: 819_200, .. }), "{error}");
    assert!(outcome.step.counters.physical_reads.unwrap() > 0, "what was measured is kept");
    drop(engine);
    let error = Engine::open(dir.path(), &options(Bytes::mib(2)), Clock::start(), &|_| ()).err().unwrap();
    assert!(matches!(error, TargetError::Truncated { .. }), "{error}");
}

#[test]
fn a_deleted_file_ends_the_run() {
    let dir = scratch();
    let request = small();
    set_up(dir.path(), &request);
    let (engine, clock) = open(dir.path(), Bytes::mib(2));
    std::fs::remove_file(dir.path().join("data-0001.dbf")).unwrap();
    let mut plan = step(&request);
    plan.work_loop = None;
    let error = run(&engine, clock, &plan).failure.expect("it is noticed");
    assert!(matches!(&error, TargetError::Vanished { .. }), "{error}");
}

#[test]
fn a_directory_is_opened_by_one_process_and_only_with_a_fitting_cache() {
    let dir = scratch();
    set_up(dir.path(), &small());
    let (engine, _) = open(dir.path(), Bytes::mib(4));
    let error = Engine::open(dir.path(), &options(Bytes::mib(4)), Clock::start(), &|_| ()).err().unwrap();
    assert!(matches!(error, TargetError::Locked { .. }), "{error}");
    engine.close().unwrap();
    let error = Engine::open(dir.path(), &options(Bytes::kib(100)), Clock::start(), &|_| ()).err().unwrap();
    assert!(matches!(error, TargetError::CacheTooSmall { .. }), "{error}");
    let empty = scratch();
    let error = Engine::open(empty.path(), &options(Bytes::mib(4)), Clock::start(), &|_| ()).err().unwrap();
    assert!(matches!(error, TargetError::NotSetUp { .. }), "{error}");
}

#[test]
fn another_format_version_is_refused() {
    let dir = scratch();
    set_up(dir.path(), &small());
    let path = dir.path().join("database.json");
    let text = std::fs::read_to_string(&path).unwrap().replace("\"format_version\": 1", "\"format_version\": 9");
    std::fs::write(&path, text).unwrap();
    let error = Engine::open(dir.path(), &options(Bytes::mib(4)), Clock::start(), &|_| ()).err().unwrap();
    assert!(matches!(error, TargetError::FormatVersion { found: 9, supported: 2, .. }), "{error}");
}
