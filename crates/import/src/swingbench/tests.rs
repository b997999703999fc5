use proptest::prelude::*;

use super::charbench;
use crate::specimens::{damaged, source, survives};
use crate::{Began, Draft, ImportError, Notes};
use model::record::{Ending, Outcome};

const RESULTS: &str = r#"<?xml version="1.0"?>
<!-- <Config> -->
<sb:Results xmlns:sb="http://www.dominicgiles.com/swingbench">
 <sb:Overview>
  <sb:BenchmarkName>"Two &amp; more"</sb:BenchmarkName><sb:Comment/>
  <sb:TimeOfRun>Jul 3, 2024 5:00:00 PM</sb:TimeOfRun>
  <sb:TotalRunTime>0:00:10</sb:TotalRunTime>
  <sb:TotalCompletedTransactions>1,010</sb:TotalCompletedTransactions>
  <sb:TotalFailedTransactions>3</sb:TotalFailedTransactions>
  <sb:AverageTransactionsPerSecond>101.0</sb:AverageTransactionsPerSecond>
 </sb:Overview>
 <sb:Configuration>
  <sb:NumberOfUsers>7</sb:NumberOfUsers>
  <sb:ConnectString>scott/tiger@//db1:1521/pdb</sb:ConnectString>
  <sb:Password>tiger</sb:Password>
 </sb:Configuration>
 <sb:DMLResults><sb:SelectStatements>4000</sb:SelectStatements></sb:DMLResults>
 <sb:TransactionResults>
  <sb:Result id="Pay">
   <sb:AverageResponse>2.5</sb:AverageResponse><sb:MinimumResponse>1</sb:MinimumResponse>
   <sb:MaximumResponse>90</sb:MaximumResponse><sb:TransactionCount>1000</sb:TransactionCount>
   <sb:FailedTransactionCount>3</sb:FailedTransactionCount>
   <sb:TenthPercentile>1</sb:TenthPercentile><sb:TwentiethPercentile>1</sb:TwentiethPercentile>
   <sb:ThirtiethPercentile>1</sb:ThirtiethPercentile><sb:FortiethPrecentile>1</sb:FortiethPrecentile>
   <sb:FiftiethPercentile>2</sb:FiftiethPercentile><sb:SixtiethPercentile>2</sb:SixtiethPercentile>
   <sb:SeventiethPercentile>2</sb:SeventiethPercentile><sb:EightiethPercentile>2</sb:EightiethPercentile>
   <sb:NinetiethPercentile>2</sb:NinetiethPercentile>
  </sb:Result>
  <sb:Result id="Ship">
   <sb:AverageResponse>6</sb:AverageResponse><sb:MinimumResponse>2</sb:MinimumResponse>
   <sb:MaximumResponse>12</sb:MaximumResponse><sb:TransactionCount>10</sb:TransactionCount>
   <sb:StdDeviation>1.5</sb:StdDeviation>
   <sb:ResultsHistogram>4, 0, 5, 0, 1</sb:ResultsHistogram>
  </sb:Result>
 </sb:TransactionResults>
 <sb:BenchmarkMetrics><sb:TPSReadings>1720011601000, 90,1720011602500, 120,</sb:TPSReadings></sb:BenchmarkMetrics>
</sb:Results>"#;

const LOG: &str = "[2024-07-03 23:59:58] starting\n\u{1b}[33mSwingbench \u{1b}[m\nAuthor  :\tDominic Giles\nVersion :\t2.6.1\nExpected Benchmark Runtime is set to 4 seconds.\n\n\
Time     Users  TPM  TPS  Errors\n23:59:59 [0/8] 0 0 0\n00:00:00 [8/8] 40 40 0\n00:00:01 [8/8] 90 50 1 \r\nTime     Users  TPM  TPS  Errors\n\
00:00:03 [8/8] 140 50 1\nCompleted Run.\nTime Users TPM TPS Errors Pay\n00:10:00 [2/2] 7 7 0 3\n00:10:01 [2/2] 7 0 0 0\n";

fn results(text: &str) -> Result<Vec<Draft>, ImportError> {
    assert!(super::recognises_xml(text));
    super::read_xml(&source(text), &mut Notes::default())
}

#[test]
fn results_in_any_namespace_and_spelling_are_read() {
    let draft = results(RESULTS).unwrap().remove(0);
    let step = &draft.steps[0];
    assert_eq!(
        (draft.title.as_str(), step.load.sessions, step.counters.operations),
        ("Two & more", Some(7), Some(1_010))
    );
    assert_eq!((step.counters.errors, step.window.duration_ns), (Some(3), 10_000_000_000));
    let (pay, ship) = (&step.operations[0], &step.operations[1]);
    assert_eq!((pay.kind.as_str(), pay.count, pay.errors), ("Pay", 1_003, 3));
    assert_eq!(
        pay.response.quantiles_ns(&[0.4, 0.5, 0.9, 1.0]),
        [1_000_000, 2_000_000, 2_000_000, 90_000_000].map(Some)
    );
    assert_eq!(pay.response.total_ns(), Some(2_500_000_000));
    let value_of = |name: &str| step.reported.iter().find(|figure| figure.name == name).map(|figure| figure.value);
    assert_eq!((value_of("SelectStatements"), value_of("Ship StdDeviation")), (Some(4_000.0), Some(1.5)));
    let bins: Vec<(u64, u64, u64)> = ship.response.buckets_ns().collect();
    assert_eq!(
        bins.iter().map(|bin| (bin.0, bin.2)).collect::<Vec<_>>(),
        [(2_000_000, 4), (6_000_000, 5), (10_000_000, 1)]
    );
    assert!(draft.notes.iter().any(|note| note.contains("90th percentile of Pay")), "{:?}", draft.notes);
}

#[test]
fn the_zone_of_a_run_comes_from_its_readings() {
    let draft = results(RESULTS).unwrap().remove(0);
    assert_eq!(draft.began.map(|began| began.timestamp().0.to_string()).as_deref(), Some("2024-07-03T13:00:00Z"));
    assert!(matches!(draft.began, Some(Began::Utc(_))));
    let seconds: Vec<(u64, u64, Option<u64>)> = draft.steps[0]
        .intervals
        .iter()
        .map(|interval| (interval.offset_ns, interval.duration_ns, interval.counters.operations))
        .collect();
    assert_eq!(seconds, [(0, 1_000_000_000, Some(90)), (1_000_000_000, 1_500_000_000, Some(120))]);
    let alone = RESULTS.replace("TPSReadings", "Other");
    let draft = results(&alone).unwrap().remove(0);
    assert!(matches!(draft.began, Some(Began::Wall(_))), "{:?}", draft.began);
}

#[test]
fn decimal_commas_are_no_thousands() {
    let text = RESULTS.replace(">101.0<", ">1.101,5<").replace(">2.5<", ">2,25<");
    let step = results(&text).unwrap().remove(0).steps.remove(0);
    let rate = step.reported.iter().find(|figure| figure.name == "AverageTransactionsPerSecond").unwrap();
    assert_eq!((rate.value, step.operations[0].response.mean_ns()), (1_101.5, Some(2.25e6)));
}

#[test]
fn dates_that_can_be_read_in_two_ways_are_left_out() {
    let text = RESULTS.replace("TPSReadings", "Other").replace("Jul 3, 2024 5:00:00 PM", "03/07/2024 17:00");
    let mut notes = Notes::default();
    let draft = super::read_xml(&source(&text), &mut notes).unwrap().remove(0);
    assert!(draft.began.is_none() && !notes.is_empty());
}

#[test]
fn passwords_stay_where_they_are() {
    let draft = results(RESULTS).unwrap().remove(0);
    assert!(!format!("{draft:?}").contains("tiger"), "{draft:?}");
    assert_eq!(draft.target.address, "//db1:1521/pdb");
}

#[test]
fn addresses_of_ours_say_what_kind_of_target_it_was_and_keep_no_secret() {
    let target = |connect: &str| {
        let draft = results(&RESULTS.replace("scott/tiger@//db1:1521/pdb", connect)).unwrap().remove(0);
        (draft.target.kind_name().to_owned(), draft.target.address)
    };
    let same = |kind: &str, address: &str| assert_eq!(target(address), (kind.to_owned(), address.to_owned()));
    same("postgres", "postgres://app@db1,db2:5433/shop");
    same("mysql", "mysql://db1:3307/shop");
    same("oracle", "oracle://soe@scan/orcl?services=2");
    same("postgres", "pg:/u01/@home/pg");
    same("simulated", "sim:service=200us,servers=8");
    same("oracle", "//db1:1521/pdb");
    assert_eq!(target("postgres://app:tiger@db1/shop").1, "postgres://db1/shop");
    assert_eq!(target("postgres://app:ti@ger@db1/shop").1, "postgres://db1/shop");
    assert_eq!(target("oracle:thin:scott/tiger@//db1/pdb").1, "//db1/pdb");
    assert_eq!(target("postgres://db1/shop?password=tiger").1, "");
}

#[test]
fn files_of_our_own_are_not_taken_for_those_of_swingbench() {
    let ours = RESULTS.replace("<sb:Password>tiger</sb:Password>", "<sb:Driver>plimsoll 0.1.0</sb:Driver>");
    let (ours, theirs) = (results(&ours).unwrap().remove(0), results(RESULTS).unwrap().remove(0));
    assert_eq!((ours.program, ours.version.as_str(), theirs.program), ("plimsoll", "0.1.0", "Swingbench"));
    let simple = RESULTS.replace("StdDeviation", "Other");
    let theirs = results(&simple).unwrap().remove(0);
    let ours = results(&simple.replace("<sb:Password>tiger</sb:Password>", "<sb:Driver>plimsoll 1</sb:Driver>"));
    let estimates = |draft: &Draft| draft.notes.iter().any(|note| note.contains("Swingbench estimates them"));
    assert!(estimates(&theirs) && !estimates(&ours.unwrap()[0]));
}

#[test]
fn entities_are_neither_expanded_nor_fetched() {
    let bomb = RESULTS
        .replace("<!-- <Config> -->", "<!DOCTYPE x [<!ENTITY a \"aa\"><!ENTITY b SYSTEM \"file:///etc/passwd\">]>");
    assert!(results(&bomb).unwrap_err().to_string().contains("declares entities"));
    let unknown = RESULTS.replace("&amp;", "&b;");
    assert!(results(&unknown).unwrap_err().to_string().contains("refers to an entity"));
}

#[test]
fn results_that_are_cut_off_are_damaged() {
    for end in [600, 1_200, RESULTS.len() - 20] {
        assert!(matches!(results(&RESULTS[..end]), Err(ImportError::Damaged { line: Some(_), .. })), "{end}");
    }
}

#[test]
fn a_histogram_that_lost_transactions_gives_way_to_the_deciles() {
    let draft = results(&RESULTS.replace("4, 0, 5, 0, 1", "4, 0, 5")).unwrap().remove(0);
    assert_eq!(draft.steps[0].operations[1].response.count(), 10);
    assert!(draft.notes.iter().any(|note| note.contains("does not hold 10 transactions")), "{:?}", draft.notes);
}

#[test]
fn a_configuration_and_pages_about_results_are_not_results() {
    assert!(!super::recognises_xml(
        "<SwingBenchConfiguration xmlns=\"http://www.dominicgiles.com/swingbench\"><Results/>"
    ));
    assert!(!super::recognises_xml("see <Results> of http://www.dominicgiles.com/swingbench"));
    assert!(!charbench::recognises("Time spent by Users: TPM TPS\nTime goes by\n"));
}

#[test]
fn deep_nesting_takes_no_stack() {
    let text = RESULTS.replace("<sb:Comment/>", &"<a>".repeat(300_000));
    assert!(results(&text).is_err());
}

#[test]
fn json_tells_the_same() {
    let text = r#"{"Results": {"Overview": {"BenchmarkName": "\"One\"", "TotalCompletedTransactions": "20",
        "TotalRunTime": "0:01:00"}, "Configuration": {"NumberOfUsers": 3},
        "TransactionResults": {"Result": [{"id": "Pay", "TransactionCount": "20", "AverageResponse": "4"}]},
        "BenchmarkMetrics": {"TPSReadings": "1720011601000, 9,"}}}"#;
    assert!(super::recognises_json(text));
    let draft = super::read_json(&source(text), &mut Notes::default()).unwrap().remove(0);
    let step = &draft.steps[0];
    assert_eq!((draft.title.as_str(), step.load.sessions, step.operations[0].count), ("One", Some(3), 20));
    assert_eq!((step.operations[0].response.mean_ns(), step.intervals.len()), (Some(4e6), 1));
    assert!(super::read_json(&source(&text[..200]), &mut Notes::default()).is_err());
}

#[test]
fn a_log_of_several_runs_goes_past_midnight() {
    assert!(charbench::recognises(LOG));
    let mut notes = Notes::default();
    let drafts = charbench::read(&source(LOG), &mut notes).unwrap();
    assert!(notes.is_empty(), "{:?}", notes.into_list());
    assert_eq!((drafts.len(), drafts[0].version.as_str()), (2, "2.6.1"));
    let step = &drafts[0].steps[0];
    assert_eq!(
        (step.load.sessions, step.window.ending, step.window.duration_ns),
        (Some(8), Ending::Time, 4_000_000_000)
    );
    assert_eq!(step.counters.operations, Some(40 + 50 + 50));
    assert_eq!(drafts[0].began.map(|began| began.timestamp().0.to_string()).as_deref(), Some("2024-07-03T23:59:59Z"));
    let cut = &drafts[1].steps[0];
    assert_eq!(
        (&cut.outcome, cut.window.ending, cut.intervals[0].reported["Pay"]),
        (&Outcome::Unfinished, Ending::Unknown, 3.0)
    );
}

#[test]
fn transactions_of_slow_rows_are_made_of_their_rates() {
    let text = "Swingbench\nTime Users TPM TPS\n10:00:00 [0/2] 0 0\n10:00:05 [2/2] 10 3\n10:00:10 [2/2] 20 4\n";
    let step = charbench::read(&source(text), &mut Notes::default()).unwrap().remove(0).steps.remove(0);
    assert_eq!(step.counters.operations, Some(5 * 3 + 5 * 4));
}

#[test]
fn rows_that_were_written_over_are_read_and_one_alone_tells_no_total() {
    let text = "Author :\tDominic Giles\nTime\t\tUsers\tTPM\tTPS\n\n9:00:01 AM  3  0  0\r9:00:02 AM  3  20  20\r9:00:03 AM  3  50  30\n";
    assert!(charbench::recognises(text));
    let step = |text: &str| charbench::read(&source(text), &mut Notes::default()).unwrap().remove(0).steps.remove(0);
    assert_eq!((step(text).counters.operations, step(text).load.sessions), (Some(50), Some(3)));
    let last = step(&text.replace("9:00:01 AM  3  0  0\r9:00:02 AM  3  20  20\r", ""));
    assert_eq!((last.counters.operations, last.window.duration_ns, last.intervals.len()), (None, 0, 0));
    assert_eq!(last.load.sessions, Some(3));
}

#[test]
fn a_report_at_the_end_has_the_totals() {
    let text = "Swingbench\nVersion :\t2.8.1\nTime\tUsers\tTPM\tTPS\n9:00:03 AM  3  50  30\n----\n|Results of Charbench Run |\n----\n\
|Benchmark Name |Shop|\n|Time of Run | Mar 3, 2026, 9:00:00 AM|\n|Length of Benchmark | 0:00:04|\n|Total Completed Transactions | 70|\n\
|Total Failed Transactions | 2|\n|Total Commit Statements | 71|\n----\n|Transaction :  Pay |\n----\n|Minimum Response Time | 2|\n\
|Maximum Response Time | 9|\n|Average Response Time | 3.5|\n|Median Response Time | 3.25|\n|Number of Transactions | 70|\n\
|Failed Transactions | 2|\nCompleted Run.\n";
    assert!(charbench::recognises(text));
    let draft = charbench::read(&source(text), &mut Notes::default()).unwrap().remove(0);
    let step = &draft.steps[0];
    assert_eq!(
        (draft.title.as_str(), draft.version.as_str(), step.window.duration_ns),
        ("Shop", "2.8.1", 4_000_000_000)
    );
    assert_eq!((step.counters.operations, step.counters.errors), (Some(70), Some(2)));
    let pay = &step.operations[0];
    assert_eq!((pay.kind.as_str(), pay.count, pay.errors, pay.response.mean_ns()), ("Pay", 72, 2, Some(3.5e6)));
    assert_eq!(pay.response.quantiles_ns(&[0.5, 1.0]), [Some(3_250_000), Some(9_000_000)]);
    assert!(step.reported.iter().any(|figure| figure.name == "CommitStatements" && figure.value == 71.0));
}

#[test]
fn a_header_with_one_known_column_needs_the_signature_or_users() {
    let rows = "Time NCR UCD Users\n10:00:00 0 0 [0/4]\n10:00:02 3 1 [4/4]\n";
    assert!(charbench::recognises(rows));
    let step = charbench::read(&source(rows), &mut Notes::default()).unwrap().remove(0).steps.remove(0);
    assert_eq!((step.load.sessions, step.counters.operations), (Some(4), None));
    assert!(!charbench::recognises("Time TPS Latency\n10:00:00 5 3\n10:00:01 6 3\n"));
}

#[test]
fn rows_that_do_not_fit_their_header_are_noted() {
    let text = LOG.replace("00:00:03 [8/8] 140 50 1", "00:00:03 [8/8] 140 50");
    let mut notes = Notes::default();
    charbench::read(&source(&text), &mut notes).unwrap();
    assert_eq!(notes.into_list()[0].what, "a row of 4 columns below a header of 5");
}

proptest! {
    #[test]
    fn damaged_files_give_runs_or_errors(file in damaged(&[RESULTS, LOG])) {
        survives(file);
    }
}
