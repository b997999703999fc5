mod forms;
mod spooled;

use super::*;
use crate::oracle::table::{HEADER, Table};
use model::record::Timestamp;

fn source(text: &str) -> Source {
    Source::new("report.txt", text.as_bytes().to_vec(), Timestamp(jiff::Timestamp::UNIX_EPOCH)).unwrap()
}

fn read(text: &str) -> (Vec<Report>, Vec<String>) {
    let source = source(text);
    let mut notes = Notes::new(&source);
    let reports = reports(&source, &mut notes).unwrap_or_else(|error| panic!("{error}"));
    (reports, notes.into_list().into_iter().map(|note| note.what).collect())
}

/// The only report of a text, of which all was understood.
fn only(text: &str) -> Report {
    let (mut reports, notes) = read(text);
    assert_eq!((reports.len(), notes), (1, Vec::new()));
    reports.pop().unwrap()
}

fn rows(table: &Table) -> Vec<Vec<&str>> {
    table.rows.iter().map(|row| row.cells.iter().map(String::as_str).collect()).collect()
}

const HEAD: &str = "\
WORKLOAD REPOSITORY report for

DB Name         DB Id    Unique Name DB Role          Edition Release    RAC CDB
------------ ----------- ----------- ---------------- ------- ---------- --- ---
SHOP            77000111 shop        PRIMARY          EE      19.0.0.0.0 NO  NO

Instance     Inst Num Startup Time
------------ -------- ---------------
shop1               1 01-Mar-21 08:00

Host Name        Platform                         CPUs Cores Sockets Memory(GB)
---------------- -------------------------------- ---- ----- ------- ----------
verylonghostname Linux x86 64-bit                    4                     7.50

              Snap Id      Snap Time      Sessions Curs/Sess  PDBs
            --------- ------------------- -------- --------- -----
Begin Snap:        11 01-Mar-21 10:00:01        40        .9     2
  End Snap:        12 01-Mar-21 11:00:02        41       1.1     2
   Elapsed:               60.02 (mins)
   DB Time:            1,234.50 (mins)

Load Profile                    Per Second   Per Transaction  Per Exec  Per Call
~~~~~~~~~~~~~~~            ---------------   --------------- --------- ---------
             DB Time(s):              20.6               1.1      0.02     20.18
      Redo size (bytes):         501,347.9           2,789.1
           Transactions:              18.0

";

const EVENTS: &str = "\
Foreground Wait Events                 DB/Inst: SHOP/shop1  Snaps: 11-12
-> s  - second, ms - millisecond
-> %Timeouts: value of 0 indicates value was < .5%.
   Value of null is truly 0

                                                Total
                                       %Time     Wait              Waits   % DB
Event                            Waits -outs Time (s)  Avg wait     /txn   time
-------------------------- ----------- ----- -------- --------- -------- ------
db file sequential read         70,001            561    5.56ms      0.8   51.0
control file parallel writ         300     0        2    6.00ms      0.0     .1
";

const MORE_EVENTS: &str = "\n\
Foreground Wait Events                 DB/Inst: SHOP/shop1  Snaps: 11-12
-> s  - second, ms - millisecond

                                                Total
                                       %Time     Wait              Waits   % DB
Event                            Waits -outs Time (s)  Avg wait     /txn   time
-------------------------- ----------- ----- -------- --------- -------- ------
made up tape wait               ######     9    ##### 1140.96 s
                          ------------------------------------------------------

";

const HISTOGRAM: &str = "\
Wait Event Histogram                   DB/Inst: SHOP/shop1  Snaps: 11-12
-> Ordered by Event (idle events last)

                                                 % of Total Waits
                                 -----------------------------------------------
                           Total
Event                      Waits  <8us <16us <32us <64us <128u <256u <512u >=512
------------------------- ------ ----- ----- ----- ----- ----- ----- ----- -----
control file parallel wri    300                                           100.0
db file sequential read      70K                       1.0  99.0
                          ------------------------------------------------------

Buffered Queues                        DB/Inst: SHOP/shop1  Snaps: 11-12

                  No data exists for this section of the report.
                          ------------------------------------------------------

End of Report
";

fn whole() -> String {
    [HEAD, EVENTS, MORE_EVENTS, HISTOGRAM].concat()
}

#[test]
fn the_head_of_a_report_becomes_tables() {
    let report = only(&whole());
    assert_eq!((report.kind, report.ended), (ReportKind::AwrSingle, true));
    let header: Vec<&Table> = report.tables(HEADER).collect();
    assert_eq!(header.len(), 3);
    assert_eq!(header[0].columns, ["DB Name", "DB Id", "Unique Name", "Role", "Edition", "Release", "RAC", "CDB"]);
    assert_eq!(rows(header[0]), [["SHOP", "77000111", "shop", "PRIMARY", "EE", "19.0.0.0.0", "NO", "NO"]]);
    assert_eq!(rows(header[2]), [["verylonghostname", "Linux x86 64-bit", "4", "", "", "7.50"]]);
    let snapshots = report.table(SNAPSHOTS).unwrap();
    assert_eq!(snapshots.columns, ["", "Snap Id", "Snap Time", "Sessions", "Curs/Sess", "PDBs"]);
    assert_eq!(snapshots.rows[0].cells[..4], ["Begin Snap", "11", "01-Mar-21 10:00:01", "40"]);
    assert_eq!(snapshots.rows[3].cells[..3], ["DB Time", "", "1,234.50 (mins)"]);
    let load = report.table("Load Profile").unwrap();
    assert_eq!(load.columns, ["", "Per Second", "Per Transaction", "Per Exec", "Per Call"]);
    assert_eq!(rows(load)[1], ["Redo size (bytes)", "501,347.9", "2,789.1", "", ""]);
}

#[test]
fn a_table_goes_on_after_a_page_and_keeps_its_blanks() {
    let report = only(&whole());
    assert_eq!(report.tables("Foreground Wait Events").count(), 1);
    let events = report.table("Foreground Wait Events").unwrap();
    assert_eq!(
        events.columns,
        ["Event", "Waits", "%Time -outs", "Total Wait Time (s)", "Avg wait", "Waits /txn", "% DB time"]
    );
    assert_eq!(events.remarks[1], "%Timeouts: value of 0 indicates value was < .5%. Value of null is truly 0");
    assert_eq!(
        rows(events),
        [
            ["db file sequential read", "70,001", "", "561", "5.56ms", "0.8", "51.0"],
            ["control file parallel write", "300", "0", "2", "6.00ms", "0.0", ".1"],
            ["made up tape wait", "######", "9", "#####", "1140.96 s", "", ""],
        ]
    );
    let line = whole().lines().position(|line| line.starts_with("made up")).unwrap() as u64 + 1;
    assert_eq!(events.rows[2].line, line);
}

#[test]
fn headings_over_several_columns_go_before_those_of_each() {
    let report = only(&whole());
    let histogram = report.table("Wait Event Histogram").unwrap();
    assert_eq!(histogram.columns[1..4], ["Total Waits", "% of Total Waits: <8us", "% of Total Waits: <16us"]);
    assert_eq!(rows(histogram)[1], ["db file sequential read", "70K", "", "", "", "1.0", "99.0", "", "", ""]);
    assert_eq!(histogram.rows[0].cells[0], "control file parallel write");
    assert!(report.table("Buffered Queues").is_none());
}

#[test]
fn several_reports_in_a_file_are_several() {
    let (reports, notes) = read(&format!("{}\n\n{}", whole(), whole().replace("SHOP ", "YARD ")));
    let names: Vec<&str> = reports.iter().map(|report| report.tables[0].rows[0].cell(0)).collect();
    assert_eq!((names, notes.len()), (vec!["SHOP", "YARD"], 0));
}

fn reports_of(source: &Source) -> Result<Vec<Report>, ImportError> {
    reports(source, &mut Notes::new(source))
}

#[test]
fn statspack_of_old_and_new_versions_is_read() {
    let text = "\
STATSPACK report for

Database    DB Id    Instance     Inst Num  Startup Time   Release     RAC
~~~~~~~~ ----------- ------------ -------- --------------- ----------- ---
            77000111 shop1               1 01-Mar-21 08:00 11.2.0.4.0  NO

Host Name             Platform                CPUs Cores Sockets   Memory (G)
~~~~ ---------------- ---------------------- ----- ----- ------- ------------
     box.one          Linux x86 64-bit           4     2       1          7.5

Snapshot       Snap Id     Snap Time      Sessions Curs/Sess Comment
~~~~~~~~    ---------- ------------------ -------- --------- ------------------
Begin Snap:         11 01-Mar-21 10:00:01       40       5.5 before the load
  End Snap:         12 01-Mar-21 11:00:02       41       5.5
   Elapsed:      60.02 (mins) Av Act Sess:       2.0
   DB time:     120.30 (mins)      DB CPU:      19.78 (mins)

Wait Events for DB: SHOP  Instance: shop1  Snaps: 11 -12
-> s  - second

                                                                   Avg
                                                     Total Wait   wait    Waits
Event                               Waits   Timeouts   Time (s)   (ms)     /txn
---------------------------- ------------ ---------- ---------- ------ --------
db file sequential read           121,513          0          9      1      2.5
          -------------------------------------------------------------
Wait Event Histogram  DB/Inst: SHOP/shop1  Snaps: 11-12
-> Total Waits - units: K is 1000, M is 1000000, G is 1000000000

                           Total ----------------- % of Waits ------------------
Event                      Waits  <1ms  <2ms  <4ms  <8ms <16ms <32ms  <=1s   >1s
-------------------------- ----- ----- ----- ----- ----- ----- ----- ----- -----
db file sequential read     121K 100.0
          -------------------------------------------------------------

End of Report ( sp_11_12.lst )
";
    assert!(recognises_statspack(text) && !recognises(text));
    let report = only(text);
    let header: Vec<&Table> = report.tables(HEADER).collect();
    assert_eq!(header[0].columns[..3], ["DB Name", "DB Id", "Instance"]);
    assert_eq!(rows(header[0])[0][..3], ["SHOP", "77000111", "shop1"]);
    assert_eq!(header[1].cell(&header[1].rows[0], "Host Name"), Some("box.one"));
    let snapshots: Vec<Vec<&str>> = rows(report.table(SNAPSHOTS).unwrap());
    assert_eq!(snapshots[0], ["Begin Snap", "11", "01-Mar-21 10:00:01", "40", "5.5", "before the load"]);
    assert_eq!(snapshots[3][..3], ["Av Act Sess", "", "2.0"]);
    assert_eq!(snapshots[5][..3], ["DB CPU", "", "19.78 (mins)"]);
    assert_eq!(rows(report.table("Wait Events").unwrap())[0][..2], ["db file sequential read", "121,513"]);
    let histogram = report.table("Wait Event Histogram").unwrap();
    assert_eq!(histogram.columns[1..3], ["Total Waits", "% of Waits: <1ms"]);
}

#[test]
fn what_only_speaks_of_a_report_is_none() {
    assert!(recognises(HEAD) && !recognises_statspack(HEAD));
    assert!(recognises_statspack("STATSPACK Statistics Report for\n\nDB Name\n------- ------\n"));
    assert!(!recognises("WORKLOAD REPOSITORY report for\n\nsee the attachment\n"));
    assert!(!recognises("He sent a WORKLOAD REPOSITORY report for\n---- ----\n"));
    assert!(!recognises("WORKLOAD REPOSITORY COMPARE PERIOD REPORT\n\n-----\n"));
    assert!(!recognises("<h1 class=\"awr\">\nWORKLOAD REPOSITORY report for\n\n</h1>\n<p>\n"));
}

#[test]
fn tabs_stand_for_blanks_and_pages_for_nothing() {
    let mut lines = Lines::new("\u{c}a\tb\r\n12345678\tc  \n");
    assert_eq!(lines.peek(1).unwrap().text, "12345678        c");
    assert_eq!(lines.next().unwrap().text, "a       b");
    assert_eq!((lines.next().unwrap().number, lines.next().is_none()), (2, true));
}

#[test]
fn endless_lines_are_none_of_a_report() {
    let endless = "x".repeat(1 << 20);
    assert_eq!(Lines::new(&endless).next().unwrap().text, "");
}
