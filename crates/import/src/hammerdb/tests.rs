use proptest::prelude::*;

use super::{counter, log, report, timing};
use crate::specimens::{damaged, source, survives};
use crate::{Began, Draft, ImportError, Notes};
use model::record::{Outcome, Step};

const LOG: &str = "HammerDB CLI v5.0\nDatabase set to PostgreSQL\nBenchmark set to TPC-C for PostgreSQL\n\
Changed tpcc:pg_superuserpass from postgres to hush for PostgreSQL\nChanged tpcc:pg_rampup from 2 to 1 for PostgreSQL\n\
Value 20 for tpcc:pg_count_ware is the same as existing value 20, no change made\n3 Virtual Users Created with Monitor VU\n\
Vuser 1:Beginning rampup time of 1 minutes\nVuser 2:|PERCENTILES 2024-02-03 10:00:00 to 2024-02-03 10:00:10\n\
Vuser 2:|neword|MIN-100|P50%-200.5|P95%-400|P99%-700|MAX-900|SAMPLES-50\nVuser 2:|gettimestamp|MIN-1|P50%-2|P95%-3|P99%-4|MAX-5|SAMPLES-99\n\
Vuser 1:Rampup complete, Taking start Transaction Count.\nVuser 1:Timing test period of 3 in minutes\n\
Vuser 1:2 Active Virtual Users configured\nVuser 1:TEST RESULT : System achieved 1,500 NOPM from 3500 PostgreSQL TPM\n\
Vuser 2:|PROCNAME | EXCLUSIVETOT| %| CALLNUM| AVGPERCALL| CUMULTOT|\nVuser 2:|neword | 10000|90.00%| 50| 200| 11000|\n\
Vuser 2:|gettimestamp | 99|1.00%| 99| 1| 99|\nVuser 3:FINISHED FAILED\nVuser 1:FINISHED SUCCESS\n3 Virtual Users Created with Monitor VU\r\n\
Vuser 1:Beginning rampup time of 1 minutes\nVuser 1:2 Active Virtual Users configured\nVuser 1:TEST RESULT : System achieved 1600 NOPM from 3600 PostgreSQL TPM\n\
5 Virtual Users Created with Monitor VU\nVuser 1:Beginning rampup time of 1 minutes\n";

const QUERIES: &str = "Vuser 1 created - WAIT IDLE\n2 Virtual Users Created\nVuser 1:RUNNING\nVuser 2:RUNNING\nVuser 1:Executing Query 14 (1 of 22)\n\
Vuser 1:query 14 completed in 1.5 seconds\nVuser 2:query 2 completed in 0.25 seconds\nVuser 2:query 14 completed in 2.5 seconds\n\
Vuser 1:Completed 1 query set(s) in 4 seconds\nVuser 2:Completed 1 query set(s) in 5 seconds\n\
Vuser 2:Geometric mean of query times returning rows (21) is 0.79057\n";

const REPORT: &str = "Oracle Hammerdb Time Profile Report @ Sat Feb 03 10:05:00 GMT 2024\n+-+-+\n>>>>> VIRTUAL USER 2 : ELAPSED TIME : 60000ms\n\
>>>>> PROC: NEWORD\nCALLS: 5MIN: 1.000msAVG: 2.000msMAX: 4.000msTOTAL: 10.000ms\nP99: 4.000msP95: 3.000msP50: 1.500msSD: 800.250RATIO: 60.000%\n\
+-+-+\n>>>>> SUMMARY OF 2 ACTIVE VIRTUAL USERS : MEDIAN ELAPSED TIME : 61000ms\n>>>>> PROC: NEWORD\n\
CALLS: 100\tMIN: 1.000ms\tAVG: 2.000ms\tMAX: 9.000ms\tTOTAL: 201.000ms\t\nP99: 8.000ms\tP95: 3.000ms\tP50: 1.500ms\tSD: 810.500\tRATIO: 61.000%\t\n";

const COUNTER: &str = "Hammerdb Transaction Counter Log @ Sat Feb 03 10:00:00 GMT 2024\n+-+-+\n0 Oracle tpm @ Sat Feb 03 10:00:00 GMT 2024\n\
6000 Oracle tpm @ Sat Feb 03 10:00:10 GMT 2024\n12000 Oracle tpm @ Sat Feb 03 10:00:20 GMT 2024\n";

fn read(text: &str) -> Result<Vec<Draft>, ImportError> {
    assert!(log::recognises(text), "{text}");
    log::read(&source(text), &mut Notes::default())
}

fn figure_value(step: &Step, name: &str) -> Option<f64> {
    step.reported.iter().find(|figure| figure.name == name).map(|figure| figure.value)
}

#[test]
fn each_result_is_a_step_with_its_users() {
    let draft = read(LOG).unwrap().remove(0);
    assert_eq!((draft.version.as_str(), draft.title.as_str()), ("5.0", "PostgreSQL TPROC-C"));
    assert_eq!((draft.parameters["pg_rampup"].as_str(), draft.parameters["pg_count_ware"].as_str()), ("1", "20"));
    let steps: Vec<_> = draft
        .steps
        .iter()
        .map(|step| (step.label.as_str(), figure_value(step, "NOPM"), figure_value(step, "TPM")))
        .collect();
    assert_eq!(steps, [("vu2", Some(1_500.0), Some(3_500.0)), ("vu2_2", Some(1_600.0), Some(3_600.0))]);
    let step = &draft.steps[0];
    assert_eq!(
        (step.window.duration_ns, step.window.warmup_ns, step.load.sessions),
        (180_000_000_000, 60_000_000_000, Some(2))
    );
    let error = "1 virtual users finished with an error: 3".to_owned();
    assert_eq!(step.outcome, Outcome::Failed { error });
    assert!(draft.notes.iter().any(|note| note.starts_with("1 tests were begun")), "{:?}", draft.notes);
    assert!(!format!("{draft:?}").contains("hush"));
}

#[test]
fn procedures_of_a_profile_are_operations_without_those_inside() {
    let step = read(LOG).unwrap().remove(0).steps.remove(0);
    assert_eq!(step.operations.len(), 1);
    assert_eq!((step.operations[0].count, step.operations[0].response.total_ns()), (50, Some(10_000_000)));
    let interval = &step.intervals[0];
    assert_eq!((interval.warmup, interval.response.count(), interval.reported["gettimestamp MAX"]), (true, 50, 5.0));
    assert_eq!(interval.response.quantiles_ns(&[0.5, 0.95]), [Some(200_500), Some(400_000)]);
}

#[test]
fn results_of_version_3_and_of_jobs_are_read() {
    let old = "Vuser 1:TEST RESULT : System achieved 21410 Oracle TPM at 7075 NOPM\n";
    let step = read(old).unwrap().remove(0).steps.remove(0);
    assert_eq!(
        (figure_value(&step, "NOPM"), figure_value(&step, "TPM"), step.load.sessions),
        (Some(7_075.0), Some(21_410.0), None)
    );
    let job = "[\n  \"6A0\",\n  \"3 Active Virtual Users configured\",\n  \"TEST RESULT : System achieved 70 NOPM from 210 MariaDB TPM\"\n]\n";
    let draft = read(job).unwrap().remove(0);
    assert_eq!((draft.steps[0].load.sessions, draft.target.kind.as_str()), (Some(3), "mariadb"));
}

#[test]
fn jobs_tell_of_their_times() {
    let job = "[\n  \"1\",\n  \"Beginning rampup time of 2 minutes\",\n  \"1\",\n  \"Timing test period of 7 in minutes\",\n  \"1\",\n\
  \"5 Active Virtual Users configured\",\n  \"1\",\n  \"TEST RESULT : System achieved 900 SQL Server TPM at 400 NOPM\",\n  \"0\"\n]\n";
    let step = read(job).unwrap().remove(0).steps.remove(0);
    assert_eq!((step.window.duration_ns, step.window.warmup_ns), (420_000_000_000, 120_000_000_000));
    assert_eq!(
        (figure_value(&step, "NOPM"), figure_value(&step, "TPM"), step.load.sessions),
        (Some(400.0), Some(900.0), Some(5))
    );
}

#[test]
fn quartiles_of_version_6_leave_the_other_percentiles_as_they_are() {
    let newer =
        REPORT.replace("P95: 3.000ms\tP50: 1.500ms\t", "P95: 3.000ms\tP75: 2.500ms\tP50: 1.500ms\tP25: 1.250ms\t");
    let step = report::read(&source(&newer), &mut Notes::default()).unwrap().remove(0).steps.remove(0);
    let quantiles = step.operations[0].response.quantiles_ns(&[0.25, 0.5, 0.75, 0.95, 0.99]);
    assert_eq!(quantiles, [1_250_000, 1_500_000, 2_500_000, 3_000_000, 8_000_000].map(Some));
    let text = r#"{ "NEWORD": { "elapsed_ms": "6.5", "calls": "8", "p99_ms": "8.0", "p75_ms": "2.5", "p25_ms": "1.25", "ratio_pct": "61.0" } }"#;
    let step = timing::read(&source(text), &mut Notes::default()).unwrap().remove(0).steps.remove(0);
    assert_eq!(step.operations[0].response.quantiles_ns(&[0.25, 0.75]), [Some(1_250_000), Some(2_500_000)]);
}

#[test]
fn query_times_are_operations() {
    let draft = read(QUERIES).unwrap().remove(0);
    let step = &draft.steps[0];
    let seen: Vec<_> =
        step.operations.iter().map(|one| (one.kind.as_str(), one.count, one.response.total_ns())).collect();
    assert_eq!(seen, [("query 2", 1, Some(250_000_000)), ("query 14", 2, Some(4_000_000_000))]);
    assert_eq!((step.load.sessions, step.window.duration_ns), (Some(2), 5_000_000_000));
    assert_eq!(figure_value(step, "vu2 geometric mean of query times"), Some(0.79057));
    let of_users =
        ["vu1 1 query set(s)", "vu2 1 query set(s)", "vu1 query 14 mean", "vu2 query 14 mean", "vu1 query 2 mean"];
    assert_eq!(of_users.map(|name| figure_value(step, name)), [Some(4.0), Some(5.0), Some(1.5), Some(2.5), None]);
    let alone = QUERIES.replace("Vuser 2", "Vuser 1");
    let step = read(&alone).unwrap().remove(0).steps.remove(0);
    assert_eq!(
        (figure_value(&step, "geometric mean of query times"), figure_value(&step, "query 14 mean")),
        (Some(0.79057), None)
    );
}

#[test]
fn refreshes_of_a_power_test_are_figures() {
    let refresh = "Vuser 1:New Sales refresh\nVuser 1:New Sales refresh complete in 4.25 seconds\nVuser 1:query 2";
    let step = read(&QUERIES.replacen("Vuser 2:query 2", refresh, 1)).unwrap().remove(0).steps.remove(0);
    assert_eq!(figure_value(&step, "New Sales refresh"), Some(4.25));
}

#[test]
fn building_a_schema_and_ending_too_early_are_no_results() {
    let build = "HammerDB CLI v4.9\nSETTING CONFIGURATION\nDatabase set to Oracle\nVuser 1:CREATING TPCC SCHEMA\nVuser 1:TPCC SCHEMA COMPLETE\n";
    assert!(read(build).unwrap_err().to_string().contains("built or set up a schema"));
    let early = &LOG[..LOG.find("Vuser 1:TEST RESULT").unwrap()];
    assert!(read(early).unwrap_err().to_string().contains("ends before"));
}

#[test]
fn the_report_of_a_profile_is_its_summary() {
    assert!(report::recognises(REPORT) && !log::recognises(REPORT) && !counter::recognises(REPORT));
    let mut notes = Notes::default();
    let draft = report::read(&source(REPORT), &mut notes).unwrap().remove(0);
    assert!(notes.is_empty(), "{:?}", notes.into_list());
    let step = &draft.steps[0];
    let response = &step.operations[0].response;
    assert_eq!((step.load.sessions, step.window.duration_ns, response.count()), (Some(2), 61_000_000_000, 100));
    assert_eq!(response.quantiles_ns(&[0.5, 0.95, 0.99, 1.0]), [1_500_000, 3_000_000, 8_000_000, 9_000_000].map(Some));
    assert_eq!(
        (response.total_ns(), figure_value(step, "NEWORD SD"), figure_value(step, "NEWORD RATIO")),
        (Some(201_000_000), Some(810.5), Some(61.0))
    );
    let of_user =
        ["vu2 elapsed", "vu2 NEWORD CALLS", "vu2 NEWORD AVG", "vu2 NEWORD P99", "vu2 NEWORD TOTAL", "vu2 NEWORD SD"];
    let values = [60_000.0, 5.0, 2.0, 4.0, 10.0, 800.25];
    assert_eq!(of_user.map(|name| figure_value(step, name)), values.map(Some), "{:?}", step.reported);
    assert_eq!(draft.began.map(Began::timestamp).map(|at| at.0.to_string()).as_deref(), Some("2024-02-03T10:03:59Z"));
    let cut = &REPORT[..REPORT.find(">>>>> SUMMARY").unwrap()];
    assert!(report::read(&source(cut), &mut Notes::default()).is_err());
    // Figures run together must be distinguished as well.
    let together = REPORT.replace('\t', "");
    assert_eq!(report::read(&source(&together), &mut notes).unwrap()[0].steps[0].operations[0].response, *response);
}

#[test]
fn the_timing_of_a_job_is_a_profile_too() {
    let text = r#"{ "NEWORD": { "elapsed_ms": "60000.5", "calls": "100", "min_ms": "1.000", "avg_ms": "2.0", "max_ms": "9.0",
        "total_ms": "201.0", "p99_ms": "8.0", "p95_ms": "3.0", "p50_ms": "1.5", "sd": "810.5", "ratio_pct": "61.0" } }"#;
    assert!(timing::recognises(text) && !log::recognises(text) && !report::recognises(text));
    let step = timing::read(&source(text), &mut Notes::default()).unwrap().remove(0).steps.remove(0);
    let of_report = report::read(&source(REPORT), &mut Notes::default()).unwrap().remove(0).steps.remove(0);
    assert_eq!(step.operations, of_report.operations);
    assert_eq!((step.window.duration_ns, step.load.sessions), (60_000_500_000, None));
    assert_eq!((figure_value(&step, "NEWORD SD"), figure_value(&step, "NEWORD RATIO")), (Some(810.5), Some(61.0)));
    assert!(timing::read(&source(&text[..150]), &mut Notes::default()).is_err());
}

#[test]
fn the_counter_gives_intervals() {
    assert!(counter::recognises(COUNTER) && !log::recognises(COUNTER));
    let draft = counter::read(&source(COUNTER), &mut Notes::default()).unwrap().remove(0);
    let step = &draft.steps[0];
    let seen: Vec<_> =
        step.intervals.iter().map(|one| (one.offset_ns, one.counters.operations, one.reported["TPM"])).collect();
    assert_eq!(seen, [(0, Some(1_000), 6_000.0), (10_000_000_000, Some(2_000), 12_000.0)]);
    assert_eq!((step.window.duration_ns, figure_value(step, "highest TPM")), (20_000_000_000, Some(12_000.0)));
    assert!(counter::read(&source("Hammerdb Transaction Counter Log @ now\n"), &mut Notes::default()).is_err());
}

#[test]
fn a_refresh_that_came_late_counted_no_more_than_its_rate_says() {
    let late = COUNTER.replace("10:00:20", "10:00:21") + "6000 Oracle tpm @ Sat Feb 03 10:00:31 GMT 2024\n";
    let draft = counter::read(&source(&late), &mut Notes::default()).unwrap().remove(0);
    let seen: Vec<_> =
        draft.steps[0].intervals.iter().map(|one| (one.duration_ns / 1_000_000_000, one.counters.operations)).collect();
    assert_eq!(seen, [(10, Some(1_000)), (11, Some(2_000)), (10, Some(1_000))]);
}

#[test]
fn counters_of_queries_and_those_without_times_are_read() {
    let queries = COUNTER.replace(" tpm @", " qph @");
    assert!(counter::recognises(&queries));
    let step = counter::read(&source(&queries), &mut Notes::default()).unwrap().remove(0).steps.remove(0);
    assert_eq!(
        (step.intervals[1].counters.operations, step.intervals[1].reported["QPH"]),
        (Some(12_000 / 360), 12_000.0)
    );
    let bare = "Hammerdb Transaction Counter Log @ Sat Feb 03 10:00:00 GMT 2024\n+-+-+\n0 SQL Server tpm\n700 SQL Server tpm\n";
    let mut notes = Notes::default();
    let draft = counter::read(&source(bare), &mut notes).unwrap().remove(0);
    assert!(notes.is_empty());
    let step = &draft.steps[0];
    assert_eq!((figure_value(step, "highest TPM"), step.intervals.len(), step.window.duration_ns), (Some(700.0), 0, 0));
    assert!(!counter::recognises("we measured 3000 Oracle tpm\n"));
}

proptest! {
    #[test]
    fn damaged_files_give_runs_or_errors(file in damaged(&[LOG, QUERIES, REPORT, COUNTER])) {
        survives(file);
    }
}
