use super::*;
use crate::oracle::table::ReportKind;
use model::record::Step;

fn report(tables: Vec<Table>) -> Report {
    Report { kind: ReportKind::AwrSingle, is_on_pdb: false, tables, ended: true, last_line: 9 }
}

fn load_profile(reads: &str, megabytes: &str) -> Table {
    Table::of("Load Profile", &["", "Per Second"], &[&["Read IO requests", reads], &["Read IO (MB)", megabytes]])
}

fn io_profile(reads: &str, megabytes: &str) -> Table {
    let columns = ["", "Read+Write Per Second", "Read per Second", "Write Per Second"];
    Table::of("IO Profile", &columns, &[&["Database Requests", "", reads, ""], &["Database (MB)", "", megabytes, ""]])
}

fn notes_of(tables: Vec<Table>) -> Vec<String> {
    notes(&report(tables), &Step::new(0, "step"))
}

#[test]
fn figures_that_agree_within_their_rounding_need_no_note() {
    assert!(notes_of(vec![load_profile("1,000.5", "7.8"), io_profile("1,000.5", "7.8")]).is_empty());
    assert!(notes_of(vec![load_profile("1,000.5", "7.8"), io_profile("1,000", "7.82")]).is_empty(), "fewer digits");
    assert!(notes_of(vec![load_profile("1,000.5", "7.8")]).is_empty(), "it is stated once");
    assert!(notes_of(vec![load_profile("N/A", "7.8"), io_profile("1,000", "7.8")]).is_empty());
}

#[test]
fn what_contradicts_another_table_is_reported_with_both_figures_and_tables() {
    let notes = notes_of(vec![load_profile("1,000.5", "7.8"), io_profile("1,100.5", "7.9")]);
    let first = "The report states one figure in two ways. Read requests per second: 1,000.5 in `Load Profile` (`Read IO \
                 requests`), and 1,100.5 in `IO Profile` (`Database Requests`).";
    assert_eq!((notes.len(), notes[0].as_str()), (1, first), "7.8 and 7.9 may both be 7.85: {notes:?}");
}

#[test]
fn figures_that_were_rounded_before_they_were_summed_need_no_note() {
    // 8,331,291.36 bytes are 7.945 MB, which some profiles print as 8.0.
    let rows: [&[&str]; 1] = [&["physical read total bytes", "1", "8,331,291.36", "1"]];
    let activity = Table::of("Instance Activity Stats", &["Statistic", "Total", "per Second", "per Trans"], &rows);
    let profile = |megabytes: &str| {
        let columns = ["", "Read+Write Per Second", "Read per Second", "Write Per Second"];
        Table::of("IO Profile", &columns, &[&["Total (MB)", "", megabytes, ""]])
    };
    assert!(notes_of(vec![profile("8.0"), activity.clone()]).is_empty());
    assert_eq!(notes_of(vec![profile("8.3"), activity]).len(), 1);
}

#[test]
fn more_processor_time_than_db_time_is_doubted() {
    let with = |processors: f64| {
        let mut step = Step::new(0, "step");
        let figure = |name: &str, value| crate::draft::reported_figure("engine", name, "s", value);
        step.reported = vec![figure("DB time", 617.8), figure("DB CPU", processors)];
        notes(&report(Vec::new()), &step)
    };
    assert!(with(620.0).is_empty(), "both are sampled a little apart");
    assert!(with(1186.7)[0].starts_with("The report has 1186.7 s of DB CPU in 617.8 s of DB time"));
}

#[test]
fn totals_of_bytes_and_megabytes_are_held_against_each_other() {
    let activity = |bytes: &str| {
        let rows: [&[&str]; 1] = [&["physical read bytes", "9,000,000,000", bytes, "1"]];
        Table::of("Other Instance Activity Stats", &["Statistic", "Total", "per Second", "per Trans"], &rows)
    };
    assert!(notes_of(vec![load_profile("1", "7.8"), activity("8,178,892.80")]).is_empty(), "7.8 x 2^20");
    let decimal = notes_of(vec![load_profile("1", "7.8"), activity("7,800,000.00")]);
    assert!(decimal[0].contains("Bytes read per second: 7.8 in `Load Profile`"), "{decimal:?}");
}

#[test]
fn functions_whose_unit_is_not_printed_are_held_against_the_profile() {
    let mut step = Step::new(0, "step");
    let total =
        |mb: f64| crate::draft::reported_figure("engine", "function TOTAL:: Reads: Data per sec", "B/s", mb * MB);
    let profile = || {
        let columns = ["", "Read+Write Per Second", "Read per Second", "Write Per Second"];
        report(vec![Table::of("IO Profile", &columns, &[&["Total (MB)", "", "20.1", ""]])])
    };
    step.reported = vec![total(19.9)];
    assert!(notes(&profile(), &step).is_empty());
    step.reported = vec![total(19.9 / 1_024.0)];
    assert!(
        notes(&profile(), &step)[0].contains("All bytes read per second: 0.019 MB in `IOStat by Function summary`")
    );
}

#[test]
fn snapshots_and_times_are_held_against_each_other() {
    let snapshots = |end: &str, elapsed: &str, db_time: &str| {
        let rows: [&[&str]; 4] = [
            &["Begin Snap", "11", "03-May-21 09:00:10"],
            &["End Snap", "12", end],
            &["Elapsed", "", elapsed],
            &["DB Time", "", db_time],
        ];
        Table::of(SNAPSHOTS, &["", "Snap Id", "Snap Time"], &rows)
    };
    let model = || Table::of("Time Model Statistics", &["Statistic Name", "Time (s)"], &[&["DB time", "6,030.12"]]);
    assert!(notes_of(vec![snapshots("03-May-21 09:20:30", "20.33 (mins)", "100.50 (mins)"), model()]).is_empty());
    let notes = notes_of(vec![snapshots("03-May-21 10:20:30", "20.33 (mins)", "90.50 (mins)"), model()]);
    assert!(notes[0].contains("4820 s in `snapshots`") && notes[0].contains("20.33 (mins)"), "{notes:?}");
    assert!(notes[1].contains("DB time: 90.50 (mins) in `snapshots` (`DB Time`), and 6,030.12 s"), "{notes:?}");
}

#[test]
fn top_events_are_held_against_all_events() {
    let all = Table::of(
        "Foreground Wait Events",
        &["Event", "Waits", "Total Wait Time (s)"],
        &[&["tape read", "6,904,693", "26,366"], &["tape write", "5", "1"]],
    );
    let top = |waits: &str, time: &str| {
        Table::of(
            "Top 10 Foreground Events by Total Wait Time",
            &["Event", "Waits", "Total Wait Time (sec)"],
            &[&["tape read", waits, time], &["DB CPU", "", "489.7"]],
        )
    };
    assert!(notes_of(vec![top("6,904,693", "26.4K"), all.clone()]).is_empty());
    let notes = notes_of(vec![top("6,904,600", "27.4K"), all]);
    assert!(notes[0].contains("Waits: 6,904,600 in `Top 10 Foreground Events by Total Wait Time` (`tape read`)"));
    assert!(notes[1].contains("Seconds waited: 27.4K") && notes[1].contains("26,366"), "{notes:?}");
}

#[test]
fn of_very_many_the_rest_is_counted() {
    let rows: Vec<Vec<String>> = (0..20).map(|n| vec![format!("event {n}"), "1".to_owned()]).collect();
    let other: Vec<Vec<String>> = (0..20).map(|n| vec![format!("event {n}"), "2".to_owned()]).collect();
    let of = |title: &str, rows: &[Vec<String>]| {
        let rows: Vec<Vec<&str>> = rows.iter().map(|row| row.iter().map(String::as_str).collect()).collect();
        let rows: Vec<&[&str]> = rows.iter().map(Vec::as_slice).collect();
        Table::of(title, &["Event", "Waits"], &rows)
    };
    let notes = notes_of(vec![of("Top 20 Timed Foreground Events", &rows), of("Foreground Wait Events", &other)]);
    assert_eq!(notes.len(), MAX_NOTES + 1);
    assert_eq!(notes[MAX_NOTES], "The report states 12 more figures in two ways.");
}
