use super::read;

#[test]
fn results_and_logs_of_three_runs() {
    let runs = [
        ("15", 449_863, 1_499.54, 93_291.0, 300, 2.1662),
        ("17", 126_939, 2_115.65, 126_939.0, 60, 1.702_69),
        ("18", 1_824_805, 2_027.56, 131_322.0, 900, 1.902_67),
    ];
    for (sprint, transactions, per_s, most_per_min, seconds, registration_ms) in runs {
        let Some(drafts) = read("swingbench-xml", &format!("swingbench/oci_sprint{sprint}_results.xml")) else {
            return;
        };
        let step = &drafts[0].steps[0];
        let value_of = |name: &str| step.reported.iter().find(|figure| figure.name == name).unwrap().value;
        assert_eq!((step.load.sessions, step.counters.operations), (Some(4), Some(transactions)));
        assert_eq!(step.window.duration_ns, seconds * 1_000_000_000);
        assert_eq!(
            (value_of("AverageTransactionsPerSecond"), value_of("MaximumTransactionRate")),
            (per_s, most_per_min)
        );
        let registration = step.operations.iter().find(|operation| operation.kind == "Customer Registration").unwrap();
        assert!((registration.response.mean_ns().unwrap() / 1e6 - registration_ms).abs() < 1e-4);
        assert_eq!(step.operations.iter().map(|operation| operation.count).sum::<u64>(), transactions);
        assert_eq!(step.intervals.len() as u64, seconds - 1, "one reading a second, and none for the last");

        let Some(drafts) = read("charbench", &format!("swingbench/oci_sprint{sprint}_charbench.log")) else { return };
        assert_eq!((drafts.len(), drafts[0].version.as_str()), (1, "2.7.0.1561"));
        let step = &drafts[0].steps[0];
        assert_eq!((step.load.sessions, step.window.ending), (Some(4), model::record::Ending::Time));
        assert!(step.intervals.len() as u64 >= seconds);
    }
}

#[test]
fn the_time_of_a_run_is_known_in_universal_time() {
    let Some(drafts) = read("swingbench-xml", "swingbench/oci_sprint17_results.xml") else { return };
    let began = drafts[0].began.unwrap();
    assert!(matches!(began, crate::Began::Utc(_)));
    assert_eq!(began.timestamp().0.to_string(), "2026-04-23T16:24:34Z");
}
