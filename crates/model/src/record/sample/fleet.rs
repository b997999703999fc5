//! A made-up merged run.

use super::{Level, run};
use crate::record::{ClockOffset, Merged, MergedPart, MergedStep, MergedWindows, Outcome, PartStep, Run};

/// Four parts on three hosts, two load levels, everything as it should be.
pub fn merged() -> Run {
    let level =
        |sessions, operations_per_s| Level { sessions, operations_per_s, read_ns: 420_000, seconds: 20, update_pct: 0 };
    let mut run = run(&[level(8, 400), level(16, 760)]);
    run.id = "20261120-121500-slob".to_owned();
    let merged_step = |step| MergedStep {
        step,
        parts: 4,
        windows: MergedWindows::Whole,
        apart_ns: Some(900_000),
        clock_uncertainty_ns: Some(60_000),
        has_intervals: true,
    };
    run.merged = Some(Merged {
        parts: 4,
        configuration: "c0ffee".to_owned(),
        steps: vec![merged_step(0), merged_step(1)],
        ..Merged::default()
    });
    let part_step = |step: u32, number: u32| PartStep {
        step,
        sessions: Some(2 * (step + 1)),
        window_ns: 20_000_000_000,
        operations: Some(2_000 * u64::from(step + 1)),
        errors: Some(0),
        operations_per_s: Some(100.0 * f64::from(step + 1) - f64::from(number)),
        deviation_per_s: Some(2.0),
        p50_ns: Some(20_000_000),
        p99_ns: Some(31_000_000 + u64::from(number) * 200_000),
        busy_processors: Some(0.4),
        busiest_share: Some(0.31),
        peak_memory_bytes: Some(151 << 20),
        ..PartStep::default()
    };
    run.parts = (0..4)
        .map(|number| MergedPart {
            number,
            host: Some(["db1", "db2", "db2", "db3"][number as usize].to_owned()),
            cpus: Some(8),
            cpu_model: None,
            memory_bytes: Some(32 << 30),
            kernel: None,
            run: format!("20261120-121500-slob-p{number}"),
            outcome: Outcome::Completed,
            clock: Some(ClockOffset { before_ns: i64::from(number) * 30_000, after_ns: None, bound_ns: 60_000 }),
            start_error_ns: Some(180_000),
            steps: vec![part_step(0, number), part_step(1, number)],
        })
        .collect();
    run
}
