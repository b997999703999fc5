use proptest::prelude::*;

use super::*;
use crate::import::oracle::table::{HEADER, Table};
use crate::record::Timestamp;

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
fn a_report_is_the_same_however_it_was_spooled() {
    let expected = only(&whole());
    let junk = "SQL> @?/rdbms/admin/awrrpt\nEnter value for report_type: text\n\n";
    let spooled = format!("{junk}{}\nSQL> spool off\n", whole());
    let later = only(&spooled);
    assert_eq!(later.last_line, expected.last_line + 3);
    assert_eq!(rows(&later.tables[5]), rows(&expected.tables[5]));
    let crlf = whole().replace('\n', "   \r\n");
    assert_eq!(only(&crlf), expected);
    let pages = whole().replace("\nForeground Wait", "\n\u{c}Foreground Wait");
    assert_eq!(only(&pages), expected);
    // SQL*Plus writes tabs where eight blanks end at a tab stop.
    let with_tabs: String = whole()
        .lines()
        .map(|line| {
            let chunks: Vec<String> =
                line.as_bytes().chunks(8).map(|chunk| String::from_utf8_lossy(chunk).into_owned()).collect();
            chunks
                .into_iter()
                .map(|chunk| if chunk == "        " { "\t".to_owned() } else { chunk })
                .collect::<String>()
                + "\n"
        })
        .collect();
    assert!(with_tabs.contains('\t'));
    assert_eq!(only(&with_tabs), expected);
}

#[test]
fn a_report_is_the_same_in_a_listing_or_a_reply() {
    let expected = only(&whole());
    let with = |margin: &str| {
        whole().lines().map(|line| format!("{margin}{line}").trim_end().to_owned() + "\n").collect::<String>()
    };
    for margin in ["    ", "> ", "  > > "] {
        assert_eq!(only(&with(margin)), expected, "{margin:?}");
        assert!(recognises(&with(margin)));
    }
    let (all, notes) = read(&[with("    "), whole(), with("> ")].concat());
    assert_eq!((all.len(), notes.len()), (3, 0));
    assert!(all.iter().all(|report| rows(&report.tables[5]) == rows(&expected.tables[5])));
    // Only the first line stands further to the right.
    assert_eq!(only(&format!("   {}", whole())), expected);
}

#[test]
fn blank_lines_that_were_lost_between_the_tables_of_the_header_are_not_missed() {
    let expected = only(&whole());
    let dense: String = whole().lines().filter(|line| !line.is_empty()).map(|line| line.to_owned() + "\n").collect();
    let found = only(&dense);
    let told = |report: &Report| {
        let rows = |table: &Table| rows(table).concat().join(" ");
        report.tables.iter().map(|table| format!("{} {:?} {}", table.title, table.columns, rows(table))).collect()
    };
    let (found, expected): (Vec<String>, Vec<String>) = (told(&found), told(&expected));
    assert_eq!(found, expected);
}

#[test]
fn several_reports_in_a_file_are_several() {
    let (reports, notes) = read(&format!("{}\n\n{}", whole(), whole().replace("SHOP ", "YARD ")));
    let names: Vec<&str> = reports.iter().map(|report| report.tables[0].rows[0].cell(0)).collect();
    assert_eq!((names, notes.len()), (vec!["SHOP", "YARD"], 0));
}

#[test]
fn a_report_that_was_cut_off_says_so_and_one_without_snapshots_is_damaged() {
    let text = whole();
    let cut = &text[..text.find("300     0").unwrap() + 2];
    let (reports, notes) = read(cut);
    assert!(!reports[0].ended);
    assert_eq!(rows(reports[0].table("Foreground Wait Events").unwrap()).len(), 1, "half a row is none");
    assert_eq!(notes, ["the report ends here; `End of Report` was expected, and what stands before it"]);
    let source = source(&text[..text.find("  End Snap").unwrap()]);
    let error = reports_of(&source).unwrap_err().to_string();
    assert!(error.ends_with("the report that begins at line 1 ends before it tells its snapshots"), "{error}");
}

fn reports_of(source: &Source) -> Result<Vec<Report>, ImportError> {
    reports(source, &mut Notes::new(source))
}

#[test]
fn forms_with_pairs_and_titles_with_underlines_are_read() {
    let forms = "\
Instance Efficiency Percentages (Target 100%)
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
            Buffer Nowait %:  100.00       Redo NoWait %:  100.00
            Buffer  Hit   %:   58.66    In-memory Sort %:

Host CPU (CPUs:    4 Cores:    2 Sockets:    1)
~~~~~~~~         Load Average
               Begin       End     %User   %System      %WIO     %Idle
           --------- --------- --------- --------- --------- ---------
                1.03      1.91       4.5       2.1       6.7      93.0

Instance CPU
~~~~~~~~~~~~
              % of total CPU for Instance:      28.7

IO Profile                  Read+Write/Second     Read/Second    Write/Second
~~~~~~~~~~                  ----------------- --------------- ---------------
            Total Requests:           4,154.4         3,489.6           664.7

Cache Sizes                       Begin        End
~~~~~~~~~~~                  ---------- ----------
               Buffer Cache:     8,000M     8,000M  Std Block Size:         8K

";
    let report = only(&[HEAD, forms, EVENTS, HISTOGRAM].concat());
    let efficiency = report.table("Instance Efficiency Percentages (Target 100%)").unwrap();
    assert_eq!(rows(efficiency)[2..], [["Buffer Hit %", "58.66"], ["In-memory Sort %", ""]]);
    let host = report.table("Host CPU").unwrap();
    assert_eq!((host.column("CPUs"), host.column("Sockets")), (Some(7), Some(9)));
    assert_eq!(host.cell(&host.rows[0], "%Idle"), Some("93.0"));
    assert_eq!(host.cell(&host.rows[0], "Load Average Begin"), Some("1.03"));
    assert_eq!(host.cell(&host.rows[0], "Cores"), Some("2"));
    assert_eq!(rows(report.table("Instance CPU").unwrap()), [["%Total CPU", "28.7"]]);
    let profile = report.table("IO Profile").unwrap();
    assert_eq!(profile.columns[1..], ["Read+Write Per Second", "Read per Second", "Write Per Second"]);
    assert_eq!(
        rows(report.table("Cache Sizes").unwrap()),
        [["Buffer Cache", "8,000M", "8,000M"], ["Std Block Size", "8K", ""]]
    );
}

#[test]
fn forms_of_early_releases_have_fewer_rules() {
    let forms = "\
Load Profile              Per Second    Per Transaction   Per Exec   Per Call
~~~~~~~~~~~~         ---------------    --------------- ---------- ----------
      DB Time(s):               23.5                0.9       0.09       0.68
   Logical reads:            2,021.9               81.3

  % Blocks changed per Read:   26.72    Recursive Call %:    45.99

Top 5 Timed Events                                         Avg %Total
~~~~~~~~~~~~~~~~~~                                        wait   Call
Event                                 Waits    Time (s)   (ms)   Time Wait Class
------------------------------ ------------ ----------- ------ ------ ----------
CPU time                                          1,405          92.9
db file sequential read              40,533         181      4   12.0   User I/O
          -------------------------------------------------------------
Memory Statistics
~~~~~~~~~~~~~~~~~                       Begin          End
                  Host Mem (MB):      2,002.5      2,002.5

";
    let report = only(&[HEAD, forms, EVENTS, HISTOGRAM].concat());
    let load: Vec<&Table> = report.tables("Load Profile").collect();
    assert_eq!(rows(load[0])[4], ["Logical reads", "2,021.9", "81.3", "", ""]);
    assert_eq!(rows(load[1]), [["% Blocks changed per Read", "26.72"], ["Recursive Call %", "45.99"]]);
    let top = report.table("Top 5 Timed Events").unwrap();
    assert_eq!(top.columns[2..5], ["Time (s)", "Avg wait (ms)", "%Total Call Time"]);
    assert_eq!(rows(top)[1], ["db file sequential read", "40,533", "181", "4", "12.0", "User I/O"]);
    assert_eq!(rows(report.table("Memory Statistics").unwrap()), [["Host Mem (MB)", "2,002.5"]]);
}

#[test]
fn rows_of_two_lines_become_one() {
    let files = "\
Tablespace IO Stats                    DB/Inst: SHOP/shop1  Snaps: 11-12
-> ordered by IOs (Reads + Writes) desc

Tablespace
------------------------------
          Av       Av     Av      1-bk  Av 1-bk          Writes   Buffer  Av Buf
  Reads   Rds/s  Rd(ms) Blks/Rd   Rds/s  Rd(ms)  Writes   avg/s    Waits  Wt(ms)
------- ------- ------- ------- ------- ------- ------- ------- -------- -------
GOODS
     39       0     3.3     1.0     348     0.0       4       0        0     0.0
ORDERS
 123456       4     1.3     1.0      12     0.0       9       0        0     0.0
                          ------------------------------------------------------

";
    let report = only(&[HEAD, files, EVENTS, HISTOGRAM].concat());
    let table = report.table("Tablespace IO Stats").unwrap();
    assert_eq!(table.columns[..3], ["Tablespace", "Reads", "Av Rds/s"]);
    assert_eq!(
        table.rows.iter().map(|row| &row.cells[..2]).collect::<Vec<_>>(),
        [["GOODS", "39"], ["ORDERS", "123456"]]
    );
}

#[test]
fn units_that_did_not_fit_into_their_column_come_back() {
    let files = "\
IOStat by Filetype summary             DB/Inst: SHOP/shop1  Snaps: 11-12
-> 'Data' columns suffixed with M,G,T,P are in multiples of 1024

                Reads:  Reqs    Data      Small    Large
Filetype Name     Data per sec per sec     Read     Read
--------------- ------- ------- ------- -------- --------
Data File        67.1G  2114.8 110.665   2.52ms   9.00ms
Archive Log Bac   1.31G     2.4  2.172M  22.22us 1810.45m
Log File        123.456     2.4  2.172M  22.22us 181.45ms
Control File        64M     6.6   .103M
                          ------------------------------------------------------

";
    let report = only(&[HEAD, files, EVENTS, HISTOGRAM].concat());
    let table = report.table("IOStat by Filetype summary").unwrap();
    assert_eq!(table.columns[1..4], ["Reads: Data", "Reqs per sec", "Data per sec"]);
    assert_eq!(rows(table)[0], ["Data File", "67.1G", "2114.8", "110.665M", "2.52ms", "9.00ms"]);
    assert_eq!(rows(table)[1], ["Archive Log Backup", "1.31G", "2.4", "2.172M", "22.22us", "1810.45ms"]);
    assert_eq!(rows(table)[2][1], "", "it may be of several units");
}

#[test]
fn reports_of_a_cluster_have_groups_and_blank_lines() {
    let text = "\
WORKLOAD REPOSITORY REPORT (RAC)

Database Summary
~~~~~~~~~~~~~~~~
                  Database                      Snapshot Ids
--------------------------------------------  -----------------
         Id Name      Unique Name Role           Begin      End
----------- --------- ----------- ----------  -------- --------
   77000111 SHOP      shop        PRIMARY           11       12
Database Instances Included In Report
-> Listed in order of instance number, I#
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
  I# Instance  Host       Begin Snap Time
---- --------- ---------- ---------------
   1 shop1     boxone     01-Mar-21 10:00
   2 shop2     boxtwo     01-Mar-21 10:00

Top Timed Events                       DB/Inst: SHOP/shop1  Snaps: 11-12
-> Instance '*'  - cluster wide summary

                      Wait                      Event
       -----------------------------------   ------------
  I#   Class      Event                             Waits
----   ---------- ------------------------   ------------
   *   User I/O   db file sequential read           9,876
       Concurrenc buffer busy waits                    12

   1   User I/O   db file sequential read           4,321
 ~~~                                         ~~~~~~~~~~~~
 Sum                                                4,321
                          ------------------------------------------------------

End of Report
";
    let report = only(text);
    assert_eq!(report.kind, ReportKind::AwrGlobal);
    let summary = report.table("Database Summary").unwrap();
    assert_eq!(summary.columns[3..], ["Database: Role", "Snapshot Ids: Begin", "Snapshot Ids: End"]);
    assert_eq!(rows(summary)[0][4..], ["11", "12"]);
    assert_eq!(rows(report.table("Database Instances Included In Report").unwrap()).len(), 2);
    let events = report.table("Top Timed Events").unwrap();
    assert_eq!(events.columns, ["I#", "Wait: Class", "Wait: Event", "Event: Waits"]);
    assert_eq!(
        rows(events),
        [
            ["*", "User I/O", "db file sequential read", "9,876"],
            ["", "Concurrency", "buffer busy waits", "12"],
            ["1", "User I/O", "db file sequential read", "4,321"],
            ["Sum", "", "", "4,321"],
        ]
    );
}

#[test]
fn numbers_that_are_too_wide_keep_all_their_digits() {
    let wide =
        EVENTS.replace("db file sequential read         70,001      ", "db file sequential read 12,345,670,001      ");
    let report = only(&[HEAD, &wide, HISTOGRAM].concat());
    let events = report.table("Foreground Wait Events").unwrap();
    assert_eq!(rows(events)[0][..2], ["db file sequential read", "12,345,670,001"]);
}

#[test]
fn statements_are_no_tables() {
    let statements = "\
SQL ordered by Gets                    DB/Inst: SHOP/shop1  Snaps: 11-12

     Buffer
      Gets    Executions
----------- ------------
      1,234           10
select 'a secret' from t
~~~~~~~~~~~~~~~~~~~~~~~~
----------- ------------

";
    let report = only(&[HEAD, statements, EVENTS, HISTOGRAM].concat());
    assert!(!format!("{report:?}").contains("secret"));
    assert_eq!(rows(report.table("Foreground Wait Events").unwrap()).len(), 2);
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
fn lines_that_were_broken_when_they_were_printed_are_refused() {
    let rule = "---- ".repeat(16);
    let broken = format!("{HEAD}{EVENTS}\nA B C\nD E F\n{rule}\n---- ----\n1 2 3\n4 5\n{HISTOGRAM}");
    let error = reports_of(&source(&broken)).unwrap_err().to_string();
    assert!(error.contains("broken after 79 characters"), "{error}");
}

#[test]
fn endless_rules_and_rows_end() {
    // A million columns are none, and a row has no more cells than its table has columns.
    let rule = "- ".repeat(1 << 20);
    let narrow = "- ".repeat(120);
    let text = format!("{HEAD}{EVENTS}\n{rule}\n{narrow}\n{}{HISTOGRAM}", "x\n".repeat(100_000));
    let (reports, notes) = read(&text);
    let cells: usize = reports[0].tables.iter().flat_map(|table| &table.rows).map(|row| row.cells.len()).sum();
    assert!(cells < 5 << 20, "{cells}");
    assert_eq!(notes.len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn damage_of_any_kind_gives_reports_or_an_error(
        at in 0usize..4_000, length in 0usize..400, kind in 0u8..5, byte in any::<u8>(), seed in 0usize..200,
    ) {
        let mut bytes = whole().into_bytes();
        let at = at % bytes.len();
        let end = (at + length).min(bytes.len());
        match kind {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => bytes[at] = byte.max(1),
            3 => {
                let run = vec![byte.max(1); length * 50];
                bytes.splice(at..at, run);
            }
            _ => {
                let text = String::from_utf8(bytes).unwrap();
                let mut lines: Vec<&str> = text.lines().collect();
                let (from, to) = (seed % lines.len(), (seed * 7) % lines.len());
                lines.swap(from, to);
                lines.insert(from, lines[to]);
                bytes = lines.join("\n").into_bytes();
            }
        }
        if let Ok(source) = Source::new("report.txt", bytes, Timestamp(jiff::Timestamp::UNIX_EPOCH)) {
            let _ = recognises(source.head());
            let _ = reports_of(&source);
        }
    }
}
