use super::read;
use model::record::Workload;

struct Expected {
    file: &'static str,
    version: &'static str,
    workload: Workload,
    threads: u32,
    events: u64,
    average_ms: f64,
    percentile: Option<(f64, f64)>,
    figure: (&'static str, f64),
    intervals: usize,
}

fn check(expected: &Expected) {
    let file = expected.file;
    let Some(drafts) = read("sysbench", &format!("sysbench/{file}")) else { return };
    let (draft, step) = (&drafts[0], &drafts[0].steps[0]);
    assert_eq!(
        (drafts.len(), draft.version.as_str(), draft.workload),
        (1, expected.version, expected.workload),
        "{file}"
    );
    assert_eq!(
        (step.load.sessions, step.counters.operations),
        (Some(expected.threads), Some(expected.events)),
        "{file}"
    );
    let response = &step.operations[0].response;
    // The mean that is reported and that of the sum differ by a hundredth in one file.
    assert!((response.mean_ns().unwrap() / 1e6 - expected.average_ms).abs() < 0.011, "{file}: {response:?}");
    let average = step.reported.iter().find(|figure| figure.name == "latency avg").unwrap();
    assert_eq!(average.value, expected.average_ms, "{file}");
    if let Some((share, value_ms)) = expected.percentile {
        assert_eq!(response.quantile_ns(share), Some((value_ms * 1e6_f64).round() as u64), "{file}");
    }
    let (name, value) = expected.figure;
    assert!(
        step.reported.iter().any(|figure| figure.name == name && figure.value == value),
        "{file}: {:?}",
        step.reported
    );
    assert_eq!(step.intervals.len(), expected.intervals, "{file}");
}

#[test]
fn every_file_gives_its_values() {
    [
        Expected {
            file: "arcalot_cpu.txt",
            version: "1.0.20",
            workload: Workload::Processor,
            threads: 2,
            events: 29_281,
            average_ms: 0.68,
            percentile: Some((0.95, 0.70)),
            figure: ("events per second", 2_927.61),
            intervals: 0,
        },
        Expected {
            file: "arcalot_io.txt",
            version: "1.0.20",
            workload: Workload::Io,
            threads: 2,
            events: 36_776,
            average_ms: 3.26,
            percentile: Some((0.95, 5.09)),
            figure: ("writes/s", 600.89),
            intervals: 0,
        },
        Expected {
            file: "mdcallag_pg_pointquery_dop40.txt",
            version: "1.1.0-9072687",
            workload: Workload::Transactions,
            threads: 40,
            events: 324_151_438,
            average_ms: 0.04,
            percentile: Some((0.95, 0.05)),
            figure: ("queries per sec.", 982_242.36),
            intervals: 0,
        },
        Expected {
            file: "pkb_long_report_interval.txt",
            version: "0.5",
            workload: Workload::Transactions,
            threads: 2,
            events: 182_218,
            average_ms: 13.17,
            percentile: Some((0.99, 17.73)),
            figure: ("transactions per sec.", 151.85),
            intervals: 600,
        },
        Expected {
            file: "pkb_oltp.txt",
            version: "1.0.12",
            workload: Workload::Transactions,
            threads: 16,
            events: 29_611,
            average_ms: 16.21,
            percentile: None,
            figure: ("queries per sec.", 19_730.45),
            intervals: 15,
        },
        Expected {
            file: "vc_oltp_1.txt",
            version: "1.1.0-df89d34",
            workload: Workload::Transactions,
            threads: 16,
            events: 257_521,
            average_ms: 28.97,
            percentile: Some((0.95, 68.05)),
            figure: ("queries", 6_584_298.0),
            intervals: 0,
        },
        Expected {
            file: "yokogawa_sample.log",
            version: "1.0.19",
            workload: Workload::Transactions,
            threads: 8,
            events: 103_832,
            average_ms: 23.11,
            percentile: Some((0.95, 50.11)),
            figure: ("transactions per sec.", 346.07),
            intervals: 60,
        },
    ]
    .iter()
    .for_each(check);
}

#[test]
fn intervals_have_their_rates_and_the_rate_that_was_asked_for_is_known() {
    let Some(drafts) = read("sysbench", "sysbench/yokogawa_sample.log") else { return };
    let first = &drafts[0].steps[0].intervals[0];
    assert_eq!((first.reported["tps"], first.reported["err/s"], first.reported["r"]), (355.03, 1.20, 4_550.27));
    assert_eq!((first.counters.operations, first.duration_ns), (Some(1_775), 5_000_000_000));
    assert_eq!(first.response.quantile_ns(0.95), Some(48_340_000));
    let drafts = read("sysbench", "sysbench/vc_oltp_1.txt").unwrap();
    assert_eq!(drafts[0].steps[0].load.rate_operations_per_s, Some(143.0));
    let drafts = read("sysbench", "sysbench/mdcallag_pg_pointquery_dop40.txt").unwrap();
    assert_eq!(drafts[0].title, "oltp_point_select");
}
