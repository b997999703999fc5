//! A violation of each rule, planted.

use super::*;
use crate::record::{CpuTime, DeviceStats, OperationStats, ReportedBucket};
use crate::workload::Arrival;

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;

const OF_RUN: Measured<'_> =
    Measured { program: "pgbench", load_ns: Some(10 * S), cpus: Some(4), request_bytes: Some(8_192) };

/// 10 s with four sessions and 1,000 reads of 2 ms.
fn step() -> Step {
    let mut step = Step::new(0, "all");
    step.window.duration_ns = 10 * S;
    step.load.sessions = Some(4);
    step.counters.operations = Some(1_000);
    step.operations.push(reads(2 * MS, MS, 9 * MS));
    step
}

fn reads(mean_ns: u64, min_ns: u64, max_ns: u64) -> OperationStats {
    let buckets = [(min_ns, 3 * MS, 990), (3 * MS, max_ns.max(3 * MS), 10)];
    let buckets = buckets.map(|(from_ns, to_ns, count)| ReportedBucket { from_ns, to_ns: Some(to_ns), count });
    let response = Histogram::reported(buckets, Some(1_000 * mean_ns), Some(min_ns), Some(max_ns));
    OperationStats {
        kind: "read".to_owned(),
        count: 1_000,
        errors: 0,
        block_touches: 0,
        service: response.clone(),
        response,
        transactions: None,
        failed: Default::default(),
    }
}

fn found(plant: impl FnOnce(&mut Step)) -> Vec<String> {
    let mut step = step();
    plant(&mut step);
    let mut found: Vec<String> = violations(&step, OF_RUN).iter().map(ToString::to_string).collect();
    found.dedup();
    found
}

fn named(figures: &[(&str, &str, &str, f64)]) -> Vec<String> {
    let of = |(layer, name, unit, value): &(&str, &str, &str, f64)| ReportedFigure::new(layer, *name, unit, *value);
    found(|step| step.reported = figures.iter().map(of).collect())
}

#[test]
fn a_violation_of_each_rule_is_named_with_both_values() {
    let device = DeviceStats {
        name: "sda".to_owned(),
        elapsed_ns: 10 * S,
        read_time_ns: 90 * S,
        weighted_ns: 10 * S,
        ..DeviceStats::default()
    };
    let halves = |step: &mut Step| {
        for second in 0..10 {
            let counters = Counters { operations: Some(50), ..Counters::default() };
            let interval = Interval { counters, offset_ns: second * S, duration_ns: S, ..Interval::default() };
            step.intervals.push(interval);
        }
    };
    let planted: [(Invariant, Vec<String>, &str); 12] = [
        (
            Invariant::PartWithinWhole,
            named(&[("OS file", "read clat mean", "us", 5_100.0), ("OS file", "read lat mean", "us", 18.5)]),
            "`read clat mean` cannot be 5,100 us: `read lat mean` is 18.5 us",
        ),
        (
            Invariant::WithinLoad,
            found(|step| step.operations[0] = reads(2 * MS, MS, 3_600 * S)),
            "The longest latency of read cannot be 1h00m: the load lasted 10.0 s",
        ),
        (
            Invariant::PercentileWithinLongest,
            named(&[("client", "latency 99th percentile", "ms", 12.0), ("client", "latency max", "ms", 9.5)]),
            "`latency 99th percentile` cannot be 12 ms: `latency max` is 9.5 ms",
        ),
        (
            Invariant::PercentilesAscend,
            named(&[("client", "vu1 NEWORD P99", "us", 800.0), ("client", "vu1 NEWORD P95", "us", 900.0)]),
            "p99 of `vu1 NEWORD` cannot be 800: p95 is 900",
        ),
        (
            Invariant::MeanWithinExtremes,
            found(|step| step.operations[0] = reads(9_123_456, 123_456, 8_765_432)),
            "The mean latency of read cannot be 9.12 ms: the longest is 8.77 ms",
        ),
        (
            Invariant::ShareOfWhole,
            named(&[("client", "host total CPU", "%", 402.0)]),
            "`host total CPU` cannot be 402 %: the most is 401 %",
        ),
        (
            Invariant::CounterWrapped,
            named(&[("device", "sda r/s", "1/s", 1.8e17)]),
            "`sda r/s` cannot be 180,000,000,000,000,000 1/s: no machine reaches 100,000,000 1/s",
        ),
        (
            Invariant::RateTimesTime,
            named(&[("client", "tps (without initial connection time)", "1/s", 200.0)]),
            "`tps (without initial connection time)` cannot be 200 1/s: 1,000 transactions in 10.0 s are 100/s",
        ),
        (
            Invariant::BytesOfRequests,
            found(|step| {
                (step.counters.physical_reads, step.counters.physical_read_bytes) = (Some(1_000), Some(4_096_000));
            }),
            "The count of bytes read cannot be 4,096,000: 1,000 requests of 8192 bytes are 8,192,000",
        ),
        (
            Invariant::LittlesLaw,
            found(|step| step.operations[0] = reads(90 * MS, MS, 99 * MS)),
            "The time of all operations together (rate x latency) cannot be 1m30s: a depth of 4 has less time in 10.0 s",
        ),
        (
            Invariant::DepthOfDevice,
            found(|step| step.devices.push(device)),
            "The queue of sda cannot be 1.00: its requests times their mean time are 9.00",
        ),
        (
            Invariant::IntervalsAddUp,
            found(halves),
            "The count of operations cannot be 1,000: all intervals together have 500",
        ),
    ];
    assert!(planted.iter().map(|(rule, ..)| rule).eq(Invariant::ALL), "a rule is not planted");
    for (rule, found, sentence) in planted {
        assert_eq!(found, [format!("{sentence} (rule `{}`).", rule.id())]);
    }
}

#[test]
fn what_can_be_is_not_doubted() {
    assert_eq!(found(|_| {}), Vec::<String>::new());
    // Rounded to the digits that programs print.
    let rounded = [
        ("client", "latency min", "ms", 1.0),
        ("client", "latency avg", "ms", 0.5),
        ("client", "latency 95th percentile", "ms", 9.7),
        ("client", "latency 99th percentile", "ms", 9.5),
        ("client", "latency max", "ms", 9.4),
        ("client", "latency sum", "ms", 900_000.0),
        ("client", "tps (without initial connection time)", "1/s", 101.0),
        ("client", "tps (excluding connections establishing)", "1/s", 200.0),
        ("host", "%commit", "%", 250.0),
        ("device", "sda %util", "%", 400.0),
        ("client", "sent bits/s", "bits/s", 0.81e9),
        ("client", "sent bytes", "bytes", 1e9),
    ];
    assert_eq!(named(&rounded), Vec::<String>::new());
    assert_eq!(found(|step| step.operations[0] = reads(600_000, MS, 8 * MS)), Vec::<String>::new());
    assert_eq!(found(|step| step.operations[0] = reads(2 * MS, MS, 10 * S + S / 2)), Vec::<String>::new());
    let open = |step: &mut Step| {
        step.load.arrival = Some(Arrival::Poisson);
        step.operations[0] = reads(90 * MS, MS, 99 * MS);
    };
    assert_eq!(found(open), Vec::<String>::new(), "in an open loop operations wait without a session");
}

#[test]
fn other_forms_of_the_same_rules_are_named_too() {
    let rules = |plant: &dyn Fn(&mut Step)| found(|step| plant(step));
    let ends = |plant: &dyn Fn(&mut Step), rule: Invariant| {
        let found = rules(plant);
        assert!(found.iter().any(|found| found.contains(&format!("(rule `{}`)", rule.id()))), "{found:?}");
    };
    ends(&|step| step.operations[0] = reads(2 * MS, MS, MS + MS / 2), Invariant::PercentileWithinLongest);
    ends(&|step| step.operations[0] = reads(100_001, 123_456, 9 * MS), Invariant::MeanWithinExtremes);
    ends(&|step| step.operations[0].service = reads(8 * MS, MS, 9 * MS).response, Invariant::PartWithinWhole);
    let busy = CpuTime { user_ns: 60 * S, system_ns: 0, iowait_ns: None, steal_ns: None, idle_ns: None };
    ends(&|step| step.host_cpu = Some(busy), Invariant::ShareOfWhole);
    let transfer = [("network", "sent bits/s", "bits/s", 8e9), ("network", "sent bytes", "bytes", 1e9)];
    assert!(named(&transfer)[0].contains("`sent bytes` over 10.0 s are 800,000,000 bits/s"));
    assert!(named(&[("client", "latency max", "ms", 20_000.0)])[0].contains("20,000 ms: the load lasted 10.0 s"));
    assert!(named(&[("host", "kbmemfree", "KiB", -900.0)])[0].contains("it is negative"));
}

#[test]
fn the_book_lists_every_rule_with_its_tolerance() {
    let book = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/imports.md");
    let book = std::fs::read_to_string(book).unwrap();
    for rule in Invariant::ALL {
        let row = format!("| `{}` | {} | {} |\n", rule.id(), rule.meaning(), rule.tolerance());
        assert!(book.contains(&row), "{row}");
    }
}
