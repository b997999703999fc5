use super::read;
use model::record::Outcome;

#[test]
fn summaries() {
    let files = [
        ("felipe_pg13_prepared.log", "18beta3", 20, 1_005_889, 5.956, 3_352.985_575, 300, 10),
        ("felipe_pg13_readonly.log", "18beta3", 20, 10_713_378, 0.548, 35_711.265_833, 300, 10),
        ("felipe_pg18_prepared.log", "18beta3", 20, 982_989, 6.094, 3_277.251_880, 300, 10),
        ("felipe_pg18_readonly.log", "18beta3", 20, 9_989_048, 0.589, 33_298.309_551, 300, 10),
        ("gregs_old_results-normal.txt", "", 12, 32_484, 22.203, 540.479_109, 60, 0),
        ("serverscamp_aws_scale1000_run2.txt", "18.3 (Ubuntu 18.3-1)", 32, 1_656_687, 11.587, 2_761.722_292, 600, 0),
    ];
    for (file, version, clients, count, average_ms, tps, seconds, intervals) in files {
        let Some(drafts) = read("pgbench", &format!("pgbench/{file}")) else { return };
        let step = &drafts[0].steps[0];
        let value_of = |start: &str| step.reported.iter().find(|figure| figure.name.starts_with(start)).unwrap().value;
        assert_eq!((drafts.len(), drafts[0].version.as_str()), (1, version), "{file}");
        assert_eq!((step.load.sessions, step.counters.operations), (Some(clients), Some(count)), "{file}");
        assert_eq!((value_of("latency average"), value_of("tps (")), (average_ms, tps), "{file}");
        // Longer than was asked for, by its count and rate.
        assert_eq!(step.intervals.len(), intervals, "{file}");
        let took_s = step.window.duration_ns as f64 / 1e9;
        assert!(
            (took_s - count as f64 / tps).abs() < 1e-6 && (took_s - f64::from(seconds)).abs() < 0.6,
            "{file}: {took_s}"
        );
        assert!((step.operations[0].response.mean_ns().unwrap() / 1e6 - average_ms).abs() < 1e-6, "{file}");
    }
    let drafts = read("pgbench", "pgbench/felipe_pg13_prepared.log").unwrap();
    assert_eq!(drafts[0].target.facts.other["server_version"], "13.22");
    assert!(drafts[0].steps[0].reported.iter().any(|figure| figure.name == "latency stddev" && figure.value == 10.405));
}

#[test]
fn a_run_that_was_killed_has_only_its_progress() {
    let Some(drafts) = read("pgbench", "pgbench/pkb_pgbench.stderr.txt") else { return };
    let step = &drafts[0].steps[0];
    assert_eq!((step.intervals.len(), &step.outcome, step.load.sessions), (5, &Outcome::Unfinished, None));
    assert_eq!((step.intervals[4].reported["lat"], step.intervals[4].counters.operations), (1_358.214, Some(13)));
}

#[test]
fn an_aggregated_log() {
    let Some(drafts) = read("pgbench-aggregate", "pgbench/serverscamp_aws_aggregate_interval_log.run1.9026") else {
        return;
    };
    let step = &drafts[0].steps[0];
    assert_eq!(drafts[0].began.unwrap().timestamp().0.as_second(), 1_777_879_493);
    let first = &step.intervals[0];
    assert_eq!((first.duration_ns, first.counters.operations), (10_000_000_000, Some(8_610)));
    assert_eq!((first.response.total_ns(), first.response.max_ns()), (Some(75_754_786_000), Some(190_722_000)));
}
