//! Statspack reports.

use super::read;

#[test]
fn a_report_of_a_day_is_read_though_pages_break_within_its_tables() {
    let Some(runs) = read("statspack", "statspack/igt_11204_24h_interval.txt") else { return };
    assert_eq!((runs.len(), runs[0].steps.len()), (1, 1));
    let (run, step) = (&runs[0], &runs[0].steps[0]);
    assert_eq!((run.title.as_str(), run.version.as_str()), ("IGT/igt snapshots 6693-6723", "11.2.0.4.0"));
    assert_eq!(run.target.facts.database.id, Some(1_066_102_538));
    assert_eq!(run.environment.hostname.as_deref(), Some("my_server-aps-1"));
    assert_eq!(run.began.unwrap().timestamp().0.to_string(), "2016-01-31T00:00:03Z");
    assert_eq!(run.ended.unwrap().0.to_string(), "2016-02-01T00:00:02Z");
    assert!((step.window.duration_ns as f64 / 60e9 - 1_439.98).abs() < 0.006);
    let figure = |name: &str| {
        let found: Vec<f64> =
            step.reported.iter().filter(|figure| figure.name == name).map(|figure| figure.value).collect();
        assert_eq!(found.len(), 1, "{name}");
        found[0]
    };
    assert!((figure("DB time") / 60.0 - 10.30).abs() < 0.005);
    assert!((figure("DB CPU") / 60.0 - 19.78).abs() < 0.005);
    assert_eq!((figure("Physical reads"), figure("Physical writes")), (17.5, 2.0));
    assert_eq!(figure("physical read total IO requests"), 641_372.0);
    assert_eq!(figure("physical write total IO requests"), 440_701.0);
    let reads = step.waits.iter().find(|wait| wait.event == "db file sequential read").unwrap();
    assert_eq!(reads.of_sessions().map(|waited| waited.count), Some(121_513));
    assert_eq!((figure("%User"), figure("% of time Host is Busy")), (0.93, 1.4));
    assert_eq!(step.host_cpu.as_ref().map(|cpu| cpu.user_ns), Some(9_601_970_000_000));
    for (event, waits, shares) in [
        ("log file sync", 27_068, [99.9, 0.1, 0.0, 0.0]),
        ("control file parallel write", 74_394, [98.8, 0.4, 0.8, 0.0]),
    ] {
        let found: Vec<_> = step.waits.iter().filter(|wait| wait.event == event).collect();
        assert_eq!((found.len(), found[0].sum().count), (1, waits), "{event}");
        let mut below = 0;
        for (limit_ms, share) in [1, 2, 4, 8].into_iter().zip(shares) {
            let upto = found[0].waits.below_ns(limit_ms * 1_000_000).0;
            // Of what the histogram counts, which it cuts to thousands.
            let found = (upto - below) as f64 / found[0].waits.count() as f64 * 100.0;
            assert!((found - share).abs() < 0.1, "{event} <{limit_ms}ms {found}");
            below = upto;
        }
    }
}
