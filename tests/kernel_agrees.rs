//! Reported physical reads and writes are those that the kernel counts. A program of its own, because the kernel counts by
//! process; for the same reason, one test at a time.

mod common;

use std::sync::{Mutex, MutexGuard, PoisonError};

use common::skip::skip;
use common::{open_with, raw, run, scratch, set_up, small, step};
use plimsoll::target::block::{Persistence, VolumeLayout};
use plimsoll::target::io::IoEngine;
use plimsoll::units::{Bytes, Nanos};

fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn physical_read_bytes_agree_with_the_kernels_within_one_percent() {
    let _alone = alone();
    let dir = scratch();
    let request = small();
    set_up(dir.path(), &request);
    let (best, refused) = IoEngine::best_available();
    if let Some(reason) = refused {
        skip(format_args!("io_uring, which is refused here: {reason}"));
    }
    for (io, scan_pct) in [(best, 0), (best, 20), (IoEngine::Psync, 0)] {
        let (engine, clock) = open_with(dir.path(), Bytes::mib(2), io);
        let mut plan = step(&request);
        plan.shape.scan_pct = scan_pct;
        plan.duration = Nanos::seconds(3);
        let outcome = run(&engine, clock, &plan);
        assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
        engine.close().unwrap();
        let ours = outcome.step.counters.physical_read_bytes.unwrap() as f64;
        let Some(kernel) = outcome.step.process_io else {
            skip("/proc/self/io cannot be read here");
            return;
        };
        let ratio = ours / kernel.read_bytes as f64;
        assert!(ours > 10e6, "only {ours} bytes were read: the test shows nothing");
        assert!(
            (ratio - 1.0).abs() < 0.01,
            "{io}, {scan_pct} % scans: {ours} bytes where the kernel counts {}",
            kernel.read_bytes
        );
    }
}

#[test]
fn bytes_of_raw_storage_agree_with_the_kernels() {
    let _alone = alone();
    for (layout, members) in raw::layouts() {
        let dir = scratch();
        let wanted = raw::wanted(dir.path(), layout, members, 8);
        for engine in raw::engines() {
            let block = raw::open_as(&wanted, engine, Persistence::Unasked);
            let mut plan = raw::step(&block, 60);
            plan.duration = Nanos::seconds(2);
            let outcome = raw::run(&block, &plan);
            assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
            let Some(kernel) = outcome.step.process_io else {
                skip("/proc/self/io cannot be read here");
                return;
            };
            // Everything that is written to a mirror is written twice; a write is counted once.
            let copies = if matches!(layout, VolumeLayout::Mirror { .. }) { 2 } else { 1 };
            let counters = &outcome.step.counters;
            let each_way = [
                ("read", counters.physical_read_bytes.unwrap(), kernel.read_bytes),
                ("written", counters.physical_write_bytes.unwrap() * copies, kernel.write_bytes),
            ];
            for (way, ours, kernel) in each_way {
                // What is in flight at either end of the window belongs to one of the two only.
                let in_flight = 8 * 2 * u64::from(raw::BLOCK) * copies;
                let allowed = kernel / 100 + 2 * in_flight;
                assert!(
                    ours.abs_diff(kernel) <= allowed,
                    "{layout}, {engine}: {ours} bytes {way} where the kernel counts {kernel}"
                );
                assert!(ours > 4 * allowed, "only {ours} bytes were {way}: the test shows nothing");
            }
        }
    }
}
