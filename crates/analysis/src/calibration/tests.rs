use super::*;
use model::record::sample;

/// A run of small reads: depth, reads per second and latency in microseconds of each step, in the order in which they ran.
fn run(steps: &[(u32, u64, u64)]) -> Run {
    let mut run = sample::run(&[]);
    run.load = Load::Calibrate(sample::requests::calibration("mean=10ms"));
    run.steps = (0..)
        .zip(steps)
        .map(|(index, (depth, per_s, us))| {
            let level =
                sample::Level { sessions: *depth, operations_per_s: *per_s, read_ns: 1, seconds: 10, update_pct: 0 };
            let mut step = sample::step(index, level);
            step.label = format!("8K_d{depth}_{index}");
            step.level = Some(sample::requests::reading("8K", *depth));
            step.counters.physical_reads = Some(per_s * 10);
            step.operations[0].service = Histogram::default();
            step.operations[0].service.record_n(us * 1_000, per_s * 10);
            step
        })
        .collect();
    run
}

fn answered(steps: &[(u32, u64, u64)]) -> Calibrated {
    Calibration::of(&run(steps)).unwrap().max_iops.unwrap()
}

#[test]
fn the_reading_that_chose_a_depth_is_not_among_its_repeats() {
    let found =
        answered(&[(1, 1_000, 1_000), (2, 2_200, 900), (2, 2_000, 1_000), (2, 1_900, 1_050), (2, 2_010, 1_000)]);
    assert_eq!(found.rate, Estimate { value: 2_000.0, low: 1_900.0, high: 2_010.0, runs: 3 });
    assert_eq!(found.depth, 2);
    assert!((found.rate.spread() - 0.055).abs() < 1e-9);
    assert!((found.mean.0 as f64 / 1_016_000.0 - 1.0).abs() < 0.01, "{:?}", found.mean);
}

#[test]
fn a_depth_whose_repeats_break_the_limit_is_no_answer() {
    let below = (15, 1_450, 9_900);
    let above = (16, 1_500, 10_700);
    let found = answered(&[below, (16, 1_700, 9_400), above, above, above, below, below, below]);
    assert_eq!((found.depth, found.rate.runs), (15, 3));
    assert_eq!(found.stopped, Stopped::LatencyLimit { depth: 16 });
}

#[test]
fn what_was_measured_once_is_reported_as_that() {
    let calibration = Calibration::of(&run(&[(1, 1_000, 1_000), (2, 2_000, 1_000)])).unwrap();
    assert_eq!(calibration.max_iops.unwrap().rate.runs, 1);
    assert_eq!(calibration.max_bytes, None, "nothing is known of what was not measured");
    assert!(!calibration.confidence.is_repeated());
}

#[test]
fn a_latency_that_nothing_keeps_leaves_no_answer() {
    let calibration = Calibration::of(&run(&[(1, 50, 20_000)])).unwrap();
    assert_eq!(calibration.max_iops, None);
    assert_eq!(calibration.confidence.repeats, 0);
}

#[test]
fn other_runs_and_steps_that_were_cut_short_say_nothing() {
    assert_eq!(Calibration::of(&sample::run(&[])), None);
    let mut cut = run(&[(1, 1_000, 1_000), (2, 2_000, 1_000)]);
    cut.steps[1].outcome = Outcome::Interrupted;
    assert_eq!(Calibration::of(&cut).unwrap().max_iops.unwrap().depth, 1);
}

#[test]
fn a_quantile_can_be_what_is_limited() {
    let mut run = run(&[(1, 1_000, 1_000), (2, 2_000, 1_000)]);
    run.steps[1].operations[0].service.record_n(50_000_000, 600);
    let depth = |run: &Run| Calibration::of(run).unwrap().max_iops.unwrap().depth;
    assert_eq!(depth(&run), 2, "the mean is within the limit");
    run.load = Load::Calibrate(sample::requests::calibration("p99=10ms"));
    assert_eq!(depth(&run), 1);
}

#[test]
fn limits_are_read_and_written_exactly() {
    for (text, written) in [
        ("10ms", "mean=10ms"),
        ("mean=1500us", "mean=1500us"),
        (" p99=10ms ", "p99=10ms"),
        ("p99.9=2s", "p99.9=2s"),
        ("1.5ms", "mean=1500us"),
    ] {
        let cap: LatencyCap = text.parse().unwrap();
        assert_eq!(cap.to_string(), written);
        assert_eq!(written.parse(), Ok(cap));
    }
    for text in ["", "0ms", "5", "mean=5", "p99=5", "fast", "log file sync:p99=10ms", "p0=1ms", "mean=", "-1ms"] {
        assert!(text.parse::<LatencyCap>().is_err(), "{text}");
    }
}
