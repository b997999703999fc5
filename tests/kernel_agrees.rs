//! Reported physical reads are those that the kernel counts. A program of its own, because the kernel counts by process.

mod common;

use common::{open_with, run, scratch, set_up, small, step};
use plimsoll::target::io::IoEngine;
use plimsoll::units::{Bytes, Nanos};

#[test]
fn physical_read_bytes_agree_with_the_kernels_within_one_percent() {
    let dir = scratch();
    let request = small();
    set_up(dir.path(), &request);
    let (best, refused) = IoEngine::best_available();
    if let Some(reason) = refused {
        println!("skipped for io_uring, which is refused here: {reason}");
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
            println!("skipped: /proc/self/io cannot be read here");
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
