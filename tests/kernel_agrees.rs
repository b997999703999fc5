//! Reported physical reads and writes are those that the kernel counts. A program of its own, because the kernel counts by
//! process; for the same reason, one test at a time.

mod common;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use common::{open_with, raw, run, run_until, scratch, set_up, small, step};
use plimsoll::config::io::Durable;
use plimsoll::record::Step;
use plimsoll::targets::block::VolumeLayout;
use plimsoll::targets::io::IoEngine;
use plimsoll::units::{Bytes, Nanos};
use test_support::skip::skip;

const UNREADABLE: &str = "/proc/self/io cannot be read here";

const IN_MEMORY: &str = "the kernel counts no bytes of files in memory, on which tests have their data here";

fn lies_in_memory(path: &Path) -> bool {
    const TMPFS: i64 = 0x0102_1994;
    rustix::fs::statfs(path).is_ok_and(|found| found.f_type == TMPFS)
}

fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn physical_read_bytes_agree_with_the_kernels_within_one_percent() {
    let _alone = alone();
    let dir = scratch();
    if lies_in_memory(dir.path()) {
        return skip(IN_MEMORY);
    }
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
        // What the kernel has counted before is read before the load begins: whoever reads it in between may come late.
        (plan.work_loop, plan.warmup, plan.duration) = (None, Nanos(0), Nanos::seconds(1));
        // What is in flight at either end of the window belongs to one of the two only: of each session an operation at most.
        let operation = 8_192 * if scan_pct > 0 { request.data.scan_blocks } else { 8 };
        let allowed = |kernel: u64| kernel / 100 + 2 * 8 * operation;
        let is_enough = |step: &Step| {
            let kernel = step.process_io.as_ref().map(|kernel| kernel.read_bytes);
            kernel.is_none_or(|kernel| step.counters.physical_read_bytes.unwrap() > 4 * allowed(kernel))
        };
        let outcome = run_until(&mut plan, |plan| run(&engine, clock, plan), is_enough);
        assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
        engine.close().unwrap();
        let ours = outcome.step.counters.physical_read_bytes.unwrap();
        let Some(kernel) = outcome.step.process_io.map(|kernel| kernel.read_bytes) else { return skip(UNREADABLE) };
        let differs = ours.abs_diff(kernel) > allowed(kernel);
        assert!(!differs, "{io}, {scan_pct} % scans: {ours} bytes where the kernel counts {kernel}");
    }
}

#[test]
fn bytes_of_raw_storage_agree_with_the_kernels() {
    let _alone = alone();
    for (layout, members) in raw::layouts() {
        let dir = scratch();
        if lies_in_memory(dir.path()) {
            return skip(IN_MEMORY);
        }
        let wanted = raw::wanted(dir.path(), layout, members, 8);
        for engine in raw::engines() {
            let block = raw::open_as(&wanted, engine, Durable::None);
            // Everything that is written to a mirror is written twice; a write is counted once.
            let copies = if matches!(layout, VolumeLayout::Mirror { .. }) { 2 } else { 1 };
            let each_way = |step: &Step| {
                let (counters, kernel) = (&step.counters, step.process_io.as_ref()?);
                Some([
                    ("read", counters.physical_read_bytes.unwrap(), kernel.read_bytes),
                    ("written", counters.physical_write_bytes.unwrap() * copies, kernel.write_bytes),
                ])
            };
            // What is in flight at either end of the window belongs to one of the two only.
            let in_flight = 8 * 2 * u64::from(raw::BLOCK) * copies;
            let allowed = |kernel: u64| kernel / 100 + 2 * in_flight;
            let mut plan = raw::step(&block, 60);
            (plan.work_loop, plan.duration) = (None, Nanos::seconds(1));
            let is_enough = |step: &Step| {
                each_way(step).is_none_or(|ways| ways.iter().all(|(_, ours, kernel)| *ours > 4 * allowed(*kernel)))
            };
            let outcome = run_until(&mut plan, |plan| raw::run(&block, plan), is_enough);
            assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
            let Some(each_way) = each_way(&outcome.step) else { return skip(UNREADABLE) };
            for (way, ours, kernel) in each_way {
                assert!(
                    ours.abs_diff(kernel) <= allowed(kernel),
                    "{layout}, {engine}: {ours} bytes {way} where the kernel counts {kernel}"
                );
            }
        }
    }
}
