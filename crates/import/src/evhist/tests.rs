use model::record::Workload;
use proptest::prelude::*;

use super::super::{self as import, Draft, ImportError, Notes};
use super::*;
use crate::specimens::{damaged, source, survives};
use model::record::{Histogram, Step};

fn read_text(text: &str) -> Result<(Draft, usize), ImportError> {
    let source = source(text);
    assert_eq!(import::recognise(source.head()).map(|importer| importer.kind), Some("event-histogram"), "{text}");
    let mut notes = Notes::new(&source);
    notes.of_kind("event-histogram", true, &source);
    let drafts = read(&source, &mut notes)?;
    Ok((drafts.into_iter().next().unwrap(), notes.into_list().len()))
}

fn draft(text: &str) -> Draft {
    let (draft, notes) = read_text(text).unwrap();
    assert_eq!(notes, 0, "everything is understood");
    draft
}

/// Buckets in microseconds.
fn buckets(waits: &Histogram) -> Vec<(u64, Option<u64>, u64)> {
    let document = serde_json::to_value(waits).unwrap();
    let bucket = |bucket: &serde_json::Value| {
        let us = |key: &str| bucket[key].as_u64().map(|ns| ns / 1_000);
        (us("from_ns").unwrap(), us("to_ns"), bucket["count"].as_u64().unwrap())
    };
    document["reported"].as_array().unwrap().iter().map(bucket).collect()
}

fn waits<'a>(step: &'a Step, event: &str) -> &'a Histogram {
    &step.waits.iter().find(|wait| wait.event == event).unwrap().waits
}

const MICRO: &str = "\
SQL> select event, wait_time_micro, wait_count from v$event_histogram_micro;\n\n\
EVENT                          WAIT_TIME_MICRO WAIT_COUNT\n\
------------------------------ --------------- ----------\n\
log file sync                                1          0\n\
log file sync                              256        300\n\
log file sync                             1024         20\n\
log file sync                       4294967295          1\n\n\
4 rows selected.\n";

#[test]
fn buckets_are_as_wide_as_powers_of_two_though_rows_are_missing() {
    let draft = draft(MICRO);
    assert_eq!((draft.workload, draft.target.kind_name()), (Workload::Database, "oracle"));
    let [step] = draft.steps.as_slice() else { panic!("{} steps", draft.steps.len()) };
    let expected = [(128, Some(256), 300), (512, Some(1_024), 20), (2_147_483_648, None, 1)];
    assert_eq!(buckets(waits(step, "log file sync")), expected);
    assert_eq!((step.waits[0].class.as_str(), step.waits[0].foreground), ("Commit", true));
    assert_eq!((step.window.duration_ns, step.load.sessions), (0, None), "neither is reported");
    assert!(draft.notes.iter().any(|note| note.contains("from the start of the instance")), "{:?}", draft.notes);
}

#[test]
fn a_statement_that_names_the_view_is_no_histogram() {
    let text = "select event, wait_time_micro, wait_count from v$event_histogram_micro;\n\nno rows selected\n";
    assert!(import::recognise(text).is_none());
    assert!(import::recognise("WAIT_COUNT and WAIT_TIME_MICRO are columns of v$event_histogram_micro.").is_none());
}

#[test]
fn tables_with_text_between_them_are_steps_with_their_captions() {
    let text = format!("On flash\n\n{MICRO}\nThis was fast.\n\nOn disks\n\nIt takes longer:\n\n{MICRO}\n");
    let labels: Vec<String> = draft(&text).steps.iter().map(|step| step.label.clone()).collect();
    assert_eq!(labels, ["On flash", "On disks"]);
}

#[test]
fn a_table_goes_on_over_its_pages_and_begins_again_with_a_bucket_that_was_there() {
    let page =
        |rows: &str| format!("EVENT      WAIT_TIME_MILLI WAIT_COUNT\n---------- --------------- ----------\n{rows}\n");
    let first = page("file read                1          5\nfile read                2          6\n");
    let second = page("file read                4          7\n");
    let pages = draft(&format!("{first}{second}"));
    assert_eq!(pages.steps.len(), 1);
    assert_eq!(waits(&pages.steps[0], "file read").count(), 18);
    let twice = draft(&format!("{first}{second}{first}"));
    let counts: Vec<u64> = twice.steps.iter().map(|step| waits(step, "file read").count()).collect();
    assert_eq!(counts, [18, 11]);
    assert_eq!(buckets(waits(&twice.steps[1], "file read")), [(0, Some(1_000), 5), (1_000, Some(2_000), 6)]);
}

#[test]
fn instances_that_a_table_does_not_tell_apart_are_added_up_over_its_pages() {
    let page =
        |rows: &str| format!("EVENT      WAIT_TIME_MILLI WAIT_COUNT\n---------- --------------- ----------\n{rows}\n");
    let first = page("file read                1          5\nfile read                2          6\n");
    let second = page("file read                4          7\nfile read                1          1\n");
    let draft = draft(&format!("{first}{second}"));
    assert_eq!(draft.steps.len(), 1);
    assert_eq!(buckets(waits(&draft.steps[0], "file read"))[0], (0, Some(1_000), 6));
    assert!(draft.notes.iter().any(|note| note.contains("does not distinguish")), "{:?}", draft.notes);
}

#[test]
fn snapshots_are_differenced_and_a_restart_is_reported() {
    let table = |counts: [[u64; 2]; 4]| {
        let mut text = "\"SNAP_ID\",\"BEGIN_INTERVAL_TIME\",\"INSTANCE_NUMBER\",\"EVENT_NAME\",\"WAIT_TIME_MILLI\",\"WAIT_COUNT\"\n".to_owned();
        for (snapshot, counts) in counts.iter().enumerate() {
            for (instance, count) in counts.iter().enumerate() {
                let (id, hour, instance) = (70 + snapshot, 8 + snapshot, instance + 1);
                text += &format!("{id},\"05-MAY-21 {hour:02}.00.00.000 AM\",{instance},\"file read\",8,{count}\n");
            }
        }
        text
    };
    let draft = draft(&table([[10, 100], [15, 130], [40, 150], [50, 7]]));
    let steps: Vec<(&str, u64, u64)> = draft
        .steps
        .iter()
        .map(|step| (step.label.as_str(), waits(step, "file read").count(), step.window.duration_ns / 1_000_000_000))
        .collect();
    assert_eq!(
        steps,
        [("snapshots 70 to 71", 35, 3_600), ("snapshots 71 to 72", 45, 3_600), ("snapshots 72 to 73", 10, 0)]
    );
    assert!(
        draft
            .notes
            .iter()
            .any(|note| note == "snapshots 72 to 73: instance 2 is left out: counts fall, so it was restarted")
    );
    assert_eq!(draft.steps[0].reported[1].name, "file read waits of instance 2");
    assert_eq!(draft.began.map(|began| began.timestamp().0.to_string()), Some("2021-05-05T09:00:00Z".to_owned()));
}

#[test]
fn counts_that_fall_again_and_again_are_differences_already() {
    let text = "SNAP_ID EVENT_NAME WAIT_TIME_MILLI WAIT_COUNT\n7 file read 1 50\n8 file read 1 20\n9 file read 1 10\n";
    let draft = draft(text);
    let steps: Vec<(&str, u64)> =
        draft.steps.iter().map(|step| (step.label.as_str(), waits(step, "file read").count())).collect();
    assert_eq!(steps, [("snapshot 7", 50), ("snapshot 8", 20), ("snapshot 9", 10)]);
    assert!(draft.notes.iter().any(|note| note.starts_with("counts fall from most snapshots")));
}

#[test]
fn rows_that_a_column_of_another_name_tells_apart_are_not_added_up() {
    let text = "SNAP_BEGIN EVENT_NAME   WAIT_TIME_MILLI WAIT_COUNT PCT\n---------- ------------ --------------- ---------- -----\n\
                05 10:00   file read                  1         40 a\n           file read                  2          3 b\n\
                05 11:00   file read                  1          2 c\n";
    let draft = draft(text);
    let steps: Vec<(&str, u64)> =
        draft.steps.iter().map(|step| (step.label.as_str(), waits(step, "file read").count())).collect();
    assert_eq!(steps, [("05 10:00", 43), ("05 11:00", 2)]);
    assert!(draft.notes[0].starts_with("snapshots cannot be distinguished"), "{:?}", draft.notes);
}

#[test]
fn a_connect_string_is_no_caption_and_the_release_is_kept() {
    let banner =
        "sqlplus scott/tiger@db\nOracle Database 12c Enterprise Edition Release 12.1.0.2.0 - 64bit Production\n";
    let draft = draft(&format!("{banner}{MICRO}"));
    assert_eq!((draft.version.as_str(), draft.steps[0].label.as_str()), ("12.1.0.2.0", "reading 1"));
    assert!(!format!("{draft:?}").contains("tiger"));
}

#[test]
fn rows_broken_at_the_line_size_are_read() {
    let text = "    EVENT# EVENT\n---------- ------------------------------\nWAIT_TIME_MILLI WAIT_COUNT\n--------------- ----------\n\
                \x20      156 file read\n              1       4000\n\n       156 file read\n              2         30\n\n\
                2 rows selected.\n";
    assert_eq!(waits(&draft(text).steps[0], "file read").count(), 4_030);
}

#[test]
fn an_event_that_only_the_statement_names_is_found_there() {
    let text = "SQL> select wait_time_milli, wait_count from v$event_histogram where event = 'log file sync';\n\n\
                WAIT_TIME_MILLI WAIT_COUNT\n--------------- ----------\n              1         12\n";
    assert_eq!(waits(&draft(text).steps[0], "log file sync").count(), 12);
}

#[test]
fn the_event_of_one_statement_is_not_that_of_the_next() {
    let table =
        "\nWAIT_TIME_MILLI WAIT_COUNT\n--------------- ----------\n              1         12\n\n1 row selected.\n\n";
    let text = format!(
        "SQL> select wait_time_milli, wait_count from v$event_histogram where event = 'log file sync';\n{table}\
         SQL> select wait_time_milli, wait_count from v$event_histogram where event = :event;\n{table}"
    );
    let events: Vec<String> = draft(&text).steps.iter().map(|step| step.waits[0].event.clone()).collect();
    assert_eq!(events, ["log file sync", "event that the file does not name"]);
}

#[test]
fn rows_without_a_count_and_too_few_rows_are_reported() {
    let short = MICRO.replace("                 1024         20", "                 1024 ##########");
    let (draft, notes) = read_text(&short).unwrap();
    assert_eq!((waits(&draft.steps[0], "log file sync").count(), notes), (301, 1));
    let few = MICRO.replace("4 rows selected", "9 rows selected");
    assert_eq!(read_text(&few).unwrap().1, 1);
    assert!(read_text("EVENT,WAIT_TIME_MICRO,WAIT_COUNT\na,1,##\n").is_err());
}

/// A page of SQL*Plus.
fn page(rows: &[(&str, &str, &str)]) -> String {
    let rows: String =
        rows.iter().map(|(event, bucket, waits)| format!("{event:<10} {bucket:>15} {waits:>10}\n")).collect();
    format!("EVENT      WAIT_TIME_MICRO WAIT_COUNT\n---------- --------------- ----------\n{rows}\n")
}

#[test]
fn points_and_blanks_between_thousands_are_no_decimals() {
    for mark in [".", " ", "\u{a0}", "'", ","] {
        let (bucket, waits) = (format!("4{mark}096"), format!("12{mark}345"));
        let draft = draft(&page(&[("file read", "8", "7"), ("file read", &bucket, &waits)]));
        assert_eq!(buckets(waits_of(&draft)), [(4, Some(8), 7), (2_048, Some(4_096), 12_345)], "{mark:?}");
    }
}

fn waits_of(draft: &Draft) -> &Histogram {
    waits(&draft.steps[0], "file read")
}

#[test]
fn a_reading_that_begins_with_a_lower_bucket_is_not_added_to_the_one_before() {
    let first = [("file read", "256", "10"), ("file read", "512", "100")];
    let second = [("file read", "128", "1"), ("file read", "256", "15"), ("file read", "512", "130")];
    let draft = draft(&(page(&first) + &page(&second)));
    let counts: Vec<u64> = draft.steps.iter().map(|step| waits(step, "file read").count()).collect();
    assert_eq!(counts, [110, 146]);
}

#[test]
fn instances_that_a_table_does_not_tell_apart_stay_together_over_its_pages() {
    let pages = [
        page(&[("file read", "1", "1"), ("file read", "2", "2"), ("file read", "4", "3"), ("file read", "1", "10")]),
        page(&[("file read", "2", "20"), ("file read", "4", "30")]),
    ];
    let draft = draft(&pages.concat());
    assert_eq!(draft.steps.len(), 1);
    assert_eq!(buckets(waits_of(&draft)), [(0, Some(1), 11), (1, Some(2), 22), (2, Some(4), 33)]);
    assert!(draft.notes.iter().any(|note| note.contains("they are added up")));
}

#[test]
fn rows_in_falling_order_are_one_reading() {
    let pages = [
        page(&[("file read", "64", "1"), ("file read", "32", "2")]),
        page(&[("file read", "16", "3"), ("file read", "8", "4")]),
    ];
    assert_eq!(draft(&pages.concat()).steps.len(), 1);
}

#[test]
fn a_title_on_each_page_does_not_cut_a_table() {
    let title = "Mon Sep 07                       page    1\n                 Waits\n\n";
    let first = page(&[("file read", "1", "1"), ("file read", "2", "2")]);
    let second = page(&[("file read", "4", "3"), ("file write", "1", "4")]);
    let whole = draft(&format!("{title}{first}{title}{second}4 rows selected.\n"));
    assert_eq!((whole.steps.len(), waits_of(&whole).count()), (1, 6));
    let twice = draft(&format!("{title}{first}2 rows selected.\n\n{title}{second}2 rows selected.\n"));
    assert_eq!(twice.steps.len(), 2, "what was counted is whole");
}

#[test]
fn headings_that_were_cut_to_the_width_of_their_columns_are_known() {
    let text = "WAIT_CL EVENT_NA WAIT_TIME_MICRO WAIT_COUNT LAST_UPDATE_T\n------- -------- --------------- ---------- -------------\n\
                System  log file               1          4 soon\nI/O      paralle\n        l write\n\
                Commit  log file               2          5 soon\n         sync\n";
    let draft = draft(text);
    let [step] = draft.steps.as_slice() else { panic!("{} steps", draft.steps.len()) };
    let waits: Vec<(&str, &str)> = step.waits.iter().map(|wait| (wait.event.as_str(), wait.class.as_str())).collect();
    assert_eq!(waits, [("log file parallel write", "System I/O"), ("log file sync", "Commit")]);
}

#[test]
fn rows_that_end_a_table_since_they_make_no_sense_are_reported() {
    let text = page(&[("file read", "1", "1"), ("file read", "2", "1 2"), ("file read", "4", "7")]);
    let (draft, notes) = read_text(&text).unwrap();
    assert_eq!((waits_of(&draft).count(), notes), (1, 2));
}

const BARE: &str = "\
file read              1          0 1 microsecond
file read            512         40 512 microseconds
file read          65536          2 65 milliseconds
";

#[test]
fn rows_without_headings_are_read_where_words_tell_their_edges() {
    let wanted = [(256, Some(512), 40), (32_768, Some(65_536), 2)];
    assert_eq!(buckets(waits_of(&draft(BARE))), wanted);
    let delimited: String = BARE
        .lines()
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            format!("\"file read\",{},{},\"{} {}\"\n", words[2], words[3], words[4], words[5])
        })
        .collect();
    assert_eq!(buckets(waits_of(&draft(&delimited))), wanted);
    // Two readings, with nothing between them.
    let twice = draft(&(BARE.to_owned() + &BARE.replace("40", "90")));
    let counts: Vec<u64> = twice.steps.iter().map(|step| waits(step, "file read").count()).collect();
    assert_eq!(counts, [42, 92]);
    let other = BARE.replace("65 milliseconds", "64 milliseconds");
    assert_eq!(waits_of(&read_text(&other).unwrap().0).count(), 40, "a row that contradicts itself");
}

#[test]
fn rows_without_headings_are_read_where_the_statement_tells_their_columns() {
    let rows = "file read           1       5\nfile read           2       7\n\n2 rows selected.\n";
    let asked = |columns: &str| format!("SQL> select {columns} from v$event_histogram;\n\n{rows}");
    let milliseconds = draft(&asked("event, wait_time_milli, wait_count"));
    assert_eq!(buckets(waits_of(&milliseconds)), [(0, Some(1_000), 5), (1_000, Some(2_000), 7)]);
    for unreported in ["*", "event, wait_time_milli ms, wait_count", "event, wait_time_milli, wait_count/2"] {
        let refused = read_text(&asked(unreported)).unwrap_err();
        assert!(refused.to_string().contains("set heading on"), "{refused}");
    }
    let two = format!(
        "{}SQL> select event, wait_time_micro, wait_count from v$event_histogram_micro;\n{rows}",
        asked("event, wait_time_milli, wait_count")
    );
    assert!(read_text(&two).is_err(), "of which statement a row is is reported by its place alone");
}

#[test]
fn markup_is_read() {
    let row = |cells: [&str; 4], tag: &str| {
        let cells: String = cells.iter().map(|cell| format!("<{tag}>\n{cell}\n</{tag}>\n")).collect();
        format!("<tr>\n{cells}</tr>\n")
    };
    let rows = [
        ["file read", "        1", "        5", "1 microsecond"],
        ["file read", "        2", "       70", "2 microseconds"],
    ];
    let headings = ["EVENT", "WAIT_TIME_MICRO", "WAIT_COUNT", "WAIT_TIME_FORMAT"];
    let body: String = rows.iter().map(|cells| row(*cells, "td")).collect();
    let html = format!(
        "<html>\n<body>\nSQL&gt; select * from v$event_histogram_micro;\n<br>\n<p>\n<table border='1'>\n{}{body}</table>\n<p>\n\n2 rows selected.<br>\n",
        row(headings, "th")
    );
    let wanted = [(0, Some(1), 5), (1, Some(2), 70)];
    assert_eq!(buckets(waits_of(&draft(&html))), wanted);
    assert_eq!(buckets(waits_of(&draft(&html.replace('\n', "")))), wanted, "on one line");
    let csv: String = [headings]
        .iter()
        .chain(&rows)
        .map(|cells| {
            cells
                .map(|cell| cell.trim().parse::<u64>().map_or(format!("\"{cell}\""), |number| number.to_string()))
                .join(",")
                + "\n"
        })
        .collect();
    assert_eq!(buckets(waits_of(&draft(&format!("\n{csv}\n2 rows selected.\n")))), wanted);
    let broken = html.replace("       70", "##########");
    assert_eq!(read_text(&broken).unwrap().1, 1);
}

const MARKUP: &str = "<table>\n<tr><th>EVENT</th><th>WAIT_TIME_MICRO</th><th>WAIT_COUNT</th></tr>\n\
<tr>\n<td>a</td><td>1&nbsp;</td>\n<td>7</td></tr>\n</table>\n";

proptest! {
    #[test]
    fn damaged_spools_give_runs_or_errors(file in damaged(&[MICRO, BARE, MARKUP])) {
        survives(file);
    }

    #[test]
    fn nothing_that_is_cut_or_changed_makes_it_fall(at in 0usize..600, byte in 1u8..127, times in 1usize..4, line in 0usize..9) {
        let mut text = MICRO.repeat(times);
        let at = at.min(text.len() - 1);
        text.replace_range(at..=at, &char::from(byte).to_string());
        let mut lines: Vec<&str> = text.lines().collect();
        lines.swap(line, 0);
        lines.remove(line);
        let source = source(&format!("x{}", lines.join("\n")));
        let _ = recognises(source.head());
        let _ = read(&source, &mut Notes::new(&source));
    }
}
