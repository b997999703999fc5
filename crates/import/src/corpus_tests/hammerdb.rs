use super::read;
use model::record::Step;

fn rates(step: &Step) -> (f64, f64) {
    let value_of = |name: &str| step.reported.iter().find(|figure| figure.name == name).unwrap().value;
    (value_of("NOPM"), value_of("TPM"))
}

#[test]
fn each_test_is_a_step() {
    let Some(drafts) = read("hammerdb", "hammerdb/josmera_ejecucion210509.txt") else { return };
    let steps = &drafts[0].steps;
    assert_eq!((drafts.len(), drafts[0].version.as_str(), drafts[0].target.kind_name()), (1, "4.1", "mysql"));
    let rates: Vec<(f64, f64)> = steps.iter().map(rates).collect();
    assert_eq!(rates, [(155.0, 474.0), (239.0, 717.0), (346.0, 1_020.0), (369.0, 1_149.0)]);
    assert_eq!(steps.iter().map(|step| step.load.sessions.unwrap()).collect::<Vec<_>>(), [1, 2, 4, 8]);
    assert_eq!((steps[0].window.duration_ns, steps[0].window.warmup_ns), (300_000_000_000, 120_000_000_000));

    let drafts = read("hammerdb", "hammerdb/josmera_ejecucion.txt").unwrap();
    let steps = &drafts[0].steps;
    assert_eq!(steps.len(), 7);
    let highest = steps.iter().map(self::rates).max_by(|left, right| left.0.total_cmp(&right.0));
    assert_eq!(highest, Some((752.0, 2_259.0)));
    assert_eq!(steps.iter().map(|step| step.load.sessions.unwrap()).collect::<Vec<_>>(), [1, 2, 4, 8, 16, 32, 64]);
}

#[test]
fn logs_of_single_tests() {
    let files = [
        ("pkb_hammerdbcli_tpcc.log", "", 4, (8_153.0, 24_772.0), 600),
        ("pkb_hammerdbcli_tpcc_timeprofile.log", "", 4, (5_614.0, 17_145.0), 600),
        ("vc_mysql_tpcc.txt", "4.12", 1, (11.0, 25.0), 300),
    ];
    for (file, version, users, expected, seconds) in files {
        let Some(drafts) = read("hammerdb", &format!("hammerdb/{file}")) else { return };
        let step = &drafts[0].steps[0];
        assert_eq!(
            (drafts[0].version.as_str(), step.load.sessions, rates(step)),
            (version, Some(users), expected),
            "{file}"
        );
        assert_eq!(step.window.duration_ns, seconds * 1_000_000_000, "{file}");
        assert!(drafts[0].parameters.keys().all(|name| !name.contains("pass")), "{file}");
    }
}

#[test]
fn a_time_profile_within_a_log() {
    let Some(drafts) = read("hammerdb", "hammerdb/pkb_hammerdbcli_tpcc_timeprofile.log") else { return };
    let step = &drafts[0].steps[0];
    let counts: Vec<(&str, u64)> = step.operations.iter().map(|one| (one.kind.as_str(), one.count)).collect();
    assert_eq!(counts, [("neword", 6_877), ("payment", 6_666), ("delivery", 680), ("ostat", 675), ("slev", 638)]);
    assert_eq!(step.operations[0].response.total_ns(), Some(94_996_164_000));
    assert_eq!(step.intervals.len(), 90);
    assert_eq!((step.intervals[0].reported["neword P95%"], step.intervals[0].duration_ns), (25_786.0, 10_000_000_000));
    assert_eq!(step.intervals.iter().filter(|interval| interval.warmup).count(), 30);
}

#[test]
fn a_log_of_the_transaction_counter() {
    let Some(drafts) = read("hammerdb-tcount", "hammerdb/pkb_hammerdbcli_tpcc_tpm_per_second_4_3.log") else { return };
    let step = &drafts[0].steps[0];
    let first = &step.intervals[0];
    assert_eq!((first.reported["TPM"], first.counters.operations), (324_540.0, Some(5_409)));
    assert_eq!(drafts[0].began.unwrap().timestamp().0.to_string(), "2022-06-30T22:43:40Z");
    assert_eq!(drafts[0].title, "PostgreSQL transaction counter");
}

#[test]
fn times_of_queries() {
    let Some(drafts) = read("hammerdb", "hammerdb/pkb_hammerdbcli_tpch.log") else { return };
    let step = &drafts[0].steps[0];
    let query = |kind: &str| step.operations.iter().find(|operation| operation.kind == kind).unwrap();
    assert_eq!((step.operations.len(), step.load.sessions, step.window.duration_ns), (22, Some(1), 91_000_000_000));
    assert_eq!(query("query 1").response.total_ns(), Some(17_681_000_000));
    assert_eq!(query("query 19").response.max_ns(), Some(190_000_000));
}
