//! What is planted in a simulated device shows in the runs made on it, as physics has it.

use plimsoll::load::Pace;
use plimsoll::record::{Histogram, Interval, Run, Step};
use plimsoll::units::{Bytes, Nanos};
use plimsoll::workload::Arrival;

use crate::making::{Load, Plan, Requests, closed, open, planted, planted_as};

fn rate(step: &Step) -> f64 {
    step.counters.operations.unwrap() as f64 * 1e9 / step.window.duration_ns as f64
}

fn mean_ns(step: &Step) -> f64 {
    step.operations[0].response.mean_ns().unwrap()
}

/// Operations in each second of the window.
fn by_second(step: &Step) -> Vec<u64> {
    let in_window = step.intervals.iter().filter(|interval| !interval.warmup);
    in_window.map(|interval| interval.counters.operations.unwrap()).collect()
}

fn share_below(histogram: &Histogram, bound_ns: u64) -> f64 {
    let below: u64 = histogram.buckets_ns().filter(|(low, ..)| *low < bound_ns).map(|(.., count)| count).sum();
    below as f64 / histogram.count() as f64
}

fn assert_near(what: &str, value: f64, expected: f64, tolerance: f64) {
    assert!((value / expected - 1.0).abs() <= tolerance, "{what} is {value}, not {expected}");
}

#[test]
fn throughput_stops_at_the_cap_and_latency_follows_littles_law() {
    for (cap, sim) in [
        (5_000.0, "iops_cap=5000"),
        (3_000.0, "iops_cap=3000,spread=lognormal:0.5,service=300us,servers=64"),
        (2_441.4, "mbps_cap=20,spread=exponential"),
        (1_234.5, "iops_cap=1234.5,service=500us"),
    ] {
        for step in &planted(sim, &[16, 64, 256].map(closed)).steps {
            assert_near(&format!("{sim}: rate of {}", step.label), rate(step), cap, 0.005);
            let depth = f64::from(step.load.slots());
            assert_near(&format!("{sim}: latency of {}", step.label), mean_ns(step), depth / cap * 1e9, 0.01);
        }
    }
}

#[test]
fn a_volume_has_one_cap_for_small_requests_and_another_for_large_ones() {
    let sim = "iops_cap=3000,mbps_cap=125,io_unit=256K,servers=256";
    for (kib, expected) in [(4, 3_000.0), (16, 3_000.0), (64, 125e6 / 65_536.0), (1_024, 125e6 / 1_048_576.0)] {
        let requests = Requests { bytes: kib << 10, ..Plan::default().requests };
        let run = planted_as(sim, &Plan { requests, duration: Nanos::seconds(40), ..Plan::default() }, &[closed(32)]);
        assert_near(&format!("rate at {kib} KiB"), rate(&run.steps[0]), expected, 0.01);
    }
}

#[test]
fn a_burst_lasts_its_length_and_comes_back_with_rest() {
    let plan = Plan { warmup: Nanos(0), duration: Nanos::seconds(12), ..Plan::default() };
    let sim = "iops_cap=500,burst=2000:5s,servers=64";
    // Three idle steps let the bucket fill again: at 500/s it takes 15 s.
    let idle = open(1.0, 1);
    let run = planted_as(sim, &plan, &[closed(64), idle, idle, closed(64)]);
    for step in [&run.steps[0], &run.steps[3]] {
        let seconds = by_second(step);
        let fast = seconds.iter().filter(|count| **count > 1_250).count();
        assert!((4..=6).contains(&fast), "{fast} s of burst: {seconds:?}");
        assert!(seconds[..4].iter().all(|count| count.abs_diff(2_000) <= 1), "{seconds:?}");
        assert!(seconds[7..].iter().all(|count| count.abs_diff(500) <= 1), "{seconds:?}");
    }
}

#[test]
fn a_bucket_of_twenty_seconds_empties_after_twenty_seconds() {
    let plan = Plan { warmup: Nanos(0), duration: Nanos::seconds(25), ..Plan::default() };
    let seconds = by_second(&planted_as("iops_cap=5000,burst=20000:20s", &plan, &[closed(64)]).steps[0]);
    assert_eq!(seconds.iter().filter(|count| **count > 12_500).count(), 20, "{seconds:?}");
}

#[test]
fn a_stall_is_in_the_response_time_of_every_operation_that_fell_due_in_it() {
    let plan = Plan { warmup: Nanos(0), duration: Nanos::seconds(10), ..Plan::default() };
    let sim = "service=100us,servers=64,stall=5s:500ms";
    for depth in [4, 1_000] {
        let run = planted_as(sim, &plan, &[open(1_000.0, depth)]);
        let step = &run.steps[0];
        let reads = &step.operations[0];
        // 500 fell due in the stall and waited 250 ms on average. With few slots, those after it wait for a slot as well.
        let delayed = reads.response.count() as f64 * (1.0 - share_below(&reads.response, 1_000_000));
        assert!((495.0..=525.0).contains(&delayed), "{delayed} operations were delayed at depth {depth}");
        let waited_s = (reads.response.total_ns().unwrap() - 100_000 * reads.count) as f64 / 1e9;
        assert_near("time waited", waited_s, 125.0, 0.03);
        assert_near("longest response", reads.response.max_ns().unwrap() as f64, 500e6, 0.01);
        assert_eq!(step.generator.as_ref().unwrap().backlog_operations, Some(0));
        let slow_in_service = reads.service.count() as f64 * (1.0 - share_below(&reads.service, 1_000_000));
        if depth == 4 {
            assert!(slow_in_service <= 4.0, "a closed eye sees {slow_in_service}");
        }
        let lag = step.generator.as_ref().unwrap().schedule_lag.as_ref().unwrap();
        assert_eq!(lag.count(), 10_000);
    }
}

#[test]
fn tiers_and_a_cache_have_their_shares() {
    let run = planted("tiers=0.3:90us+0.7:600us,spread=lognormal:0.2,servers=1000", &[closed(8)]);
    let share = share_below(&run.steps[0].waits[0].waits, 250_000);
    assert!((share - 0.3).abs() < 0.01, "{share} were fast");

    let requests = Requests { data: Bytes::mib(64), ..Plan::default().requests };
    let plan = Plan { requests, ..Plan::default() };
    let run = planted_as("service=500us,cache=16M,cache_service=50us", &plan, &[closed(8)]);
    let share = share_below(&run.steps[0].waits[0].waits, 250_000);
    assert!((share - 0.25).abs() < 0.015, "{share} came from the cache");
}

#[test]
fn errors_are_counted_and_not_timed() {
    let run = planted("errors=0.02,service=1ms,servers=8", &[closed(8)]);
    let (step, reads) = (&run.steps[0], &run.steps[0].operations[0]);
    let share = reads.errors as f64 / reads.count as f64;
    assert!((share - 0.02).abs() < 0.002, "{share} failed");
    assert_eq!(step.counters.errors, Some(reads.errors));
    assert_eq!(step.counters.operations, Some(reads.count - reads.errors));
    assert_eq!(reads.response.count(), reads.count - reads.errors);
    assert_eq!(step.counters.physical_reads, step.counters.operations);
}

#[test]
fn the_knee_is_where_as_many_are_outstanding_as_there_are_servers() {
    let run = planted("service=500us,servers=8", &[1, 2, 4, 8, 16, 32].map(closed));
    for step in &run.steps {
        let depth = f64::from(step.load.slots());
        assert_near(&step.label, rate(step), depth.min(8.0) * 2_000.0, 0.002);
        assert_near(&step.label, mean_ns(step), (depth / 8.0).max(1.0) * 500_000.0, 0.002);
    }
}

#[test]
fn requests_and_bytes_are_counted_by_direction_and_size() {
    for (bytes, event) in [(32 << 10, "db file sequential read"), (64 << 10, "direct path read")] {
        let requests = Requests { bytes, write_pct: 30, ..Plan::default().requests };
        let step = &planted_as("", &Plan { requests, ..Plan::default() }, &[closed(8)]).steps[0];
        let counters = &step.counters;
        let (reads, writes) = (counters.physical_reads.unwrap(), counters.physical_writes.unwrap());
        assert_eq!(reads + writes, counters.operations.unwrap());
        assert_near("writes", writes as f64, 0.3 * (reads + writes) as f64, 0.02);
        assert_eq!(counters.physical_read_bytes, Some(reads * u64::from(bytes)));
        assert_eq!(counters.physical_write_bytes, Some(writes * u64::from(bytes)));
        assert_eq!(counters.logical_reads, None);
        let waits: Vec<_> = step.waits.iter().map(|waits| (waits.event.as_str(), waits.waits.count())).collect();
        assert_eq!(waits, [(event, reads), ("direct path write", writes)]);
    }
}

#[test]
fn service_times_drift_through_an_hour_that_passes_in_a_moment() {
    let plan = Plan { warmup: Nanos(0), duration: Nanos::seconds(3_600), ..Plan::default() };
    let step = &planted_as("service=10ms,drift=10%/h,servers=1", &plan, &[closed(1)]).steps[0];
    assert_eq!(step.window.duration_ns, 3_600_000_000_000);
    assert_eq!(step.intervals.len(), 3_600);
    let mean_of = |interval: &Interval| interval.response.mean_ns().unwrap();
    assert_near("the first second", mean_of(&step.intervals[0]), 10e6, 0.001);
    assert_near("the last second", mean_of(&step.intervals[3_599]), 11e6, 0.001);
}

#[test]
fn every_second_has_exactly_its_operations_and_the_window_is_their_sum() {
    let run = planted("service=1ms,servers=4", &[closed(4), closed(2)]);
    for (step, each) in run.steps.iter().zip([4_000, 2_000]) {
        assert_eq!(by_second(step), [each; 10]);
        assert_eq!(step.counters.operations, Some(10 * each));
        let lengths: Vec<u64> = step.intervals.iter().map(|interval| interval.duration_ns).collect();
        assert_eq!(lengths, [1_000_000_000; 12]);
        assert_eq!(step.generator.as_ref().unwrap().idle_session_ns, 0);
    }
}

#[test]
fn equal_seeds_give_equal_runs_to_the_last_bit() {
    let sim = "tiers=0.5:100us+0.5:900us,spread=lognormal:0.7,iops_cap=6000,burst=9000:3s,mbps_cap=50,cache=64M,\
               stall=4s:300ms,drift=50%/h,errors=0.001";
    let run = |seed| {
        let plan = Plan { seed, requests: Requests { write_pct: 20, ..Plan::default().requests }, ..Plan::default() };
        let poisson = Pace::Open { rate_per_s: 4_000.0, arrival: Arrival::Poisson };
        planted_as(sim, &plan, &[closed(32), Load { depth: 64, pace: poisson }])
    };
    let as_text = |run: &Run| {
        let intervals = run.steps.iter().map(|step| serde_json::to_string(&step.intervals).unwrap());
        (serde_json::to_string(run).unwrap(), intervals.collect::<Vec<_>>())
    };
    let first = run(7);
    assert_eq!(as_text(&first), as_text(&run(7)));
    assert_ne!(as_text(&first).1, as_text(&run(8)).1);
}
