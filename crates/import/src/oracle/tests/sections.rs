//! Sections that become tables of the run, and snapshots that become intervals.

use proptest::prelude::*;

use super::*;
use model::record::{Covers, ReportedTable};

type Reader = fn(&Source, &mut Notes) -> Result<Vec<Draft>, ImportError>;

fn text(read: Reader, body: &str) -> Draft {
    let source = Source::new("report.txt", body.as_bytes().to_vec(), Timestamp(jiff::Timestamp::UNIX_EPOCH)).unwrap();
    let mut notes = Notes::new(&source);
    let mut drafts = read(&source, &mut notes).unwrap_or_else(|error| panic!("{error}"));
    assert!(notes.is_empty(), "{:?}", notes.into_list());
    drafts.pop().unwrap()
}

fn subject<'a>(draft: &'a Draft, name: &str) -> &'a ReportedTable {
    let mut found = draft.steps[0].tables.iter().filter(|table| table.subject == name);
    let table = found.next().unwrap_or_else(|| {
        let all: Vec<&str> = draft.steps[0].tables.iter().map(|table| table.subject.as_str()).collect();
        panic!("{name} is none of {all:?}")
    });
    assert!(found.next().is_none(), "{name} twice");
    table
}

/// The figure of a row in a column, with its unit.
fn value<'a>(table: &'a ReportedTable, row: &[&str], column: &str) -> Option<(f64, &'a str)> {
    let row = table.rows.iter().find(|found| found.names == row).unwrap_or_else(|| panic!("{row:?}: {table:?}"));
    let at = table.columns.iter().position(|found| found.name == column)?;
    Some((row.values[at]?, table.unit(row, at)))
}

/// The header of a report of one instance over ten minutes.
const HEAD: &str = "\
WORKLOAD REPOSITORY report for

DB Name         DB Id    Instance     Inst Num Startup Time    Release     RAC
------------ ----------- ------------ -------- --------------- ----------- ---
SHOP            77000111 shop1               1 01-Mar-21 08:00 11.2.0.4.0  YES

              Snap Id      Snap Time      Sessions Curs/Sess
            --------- ------------------- -------- ---------
Begin Snap:        11 31-Dec-20 23:55:00        40        .9
  End Snap:        12 01-Jan-21 00:05:00        41       1.1
   Elapsed:               10.00 (mins)
   DB Time:            1,234.50 (mins)

";
const TAIL: &str = "\nEnd of Report\n";

fn awr(body: &str) -> Draft {
    text(read_text, &format!("{HEAD}{body}{TAIL}"))
}

#[test]
fn efficiency_classes_and_memory_are_tables_of_the_instance() {
    let draft = awr("\
Instance Efficiency Percentages (Target 100%)
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
            Buffer Nowait %:   99.25       Redo NoWait %:  100.00
            Buffer  Hit   %:   87.50    In-memory Sort %:
          Flash Cache Hit %:   12.75

Wait Classes by Total Wait Time
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
                                                        Avg             Avg
                                        Total Wait     Wait   % DB   Active
Wait Class                  Waits       Time (sec)     (ms)   time Sessions
---------------- ---------------- ---------------- -------- ------ --------
User I/O                  250,000            1,500        6   70.5      2.5
DB CPU                                         600           28.2      1.0
Other                         500                5        9 1.E+03      0.0

Memory Statistics
~~~~~~~~~~~~~~~~~                       Begin          End
                                 ------------ ------------
                  Host Mem (MB):     64,000.5     64,000.5
                   SGA use (MB):      9,664.0      9,664.0
    % Host Mem used for SGA+PGA:        17.25        18.00

Cache Sizes                       Begin        End
~~~~~~~~~~~                  ---------- ----------
               Buffer Cache:     7,872M     7,900M  Std Block Size:         8K
           Shared Pool Size:     1,063M     1,066M      Log Buffer:    20,612K

SGA Memory Summary                             DB/Inst: SHOP/shop1  Snaps: 11-12

                                                      End Size (Bytes)
SGA regions                     Begin Size (Bytes)      (if different)
------------------------------ ------------------- -------------------
Database Buffers                     8,388,608,000       8,400,000,000
Fixed Size                              12,445,928
                               -------------------
sum                                  8,401,053,928
          -------------------------------------------------------------

Memory Dynamic Components                     DB/Inst: SHOP/shop1  Snaps: 11-12

                 Begin Snap     Current         Min         Max   Oper Last Op
Component         Size (Mb)   Size (Mb)   Size (Mb)   Size (Mb)  Count Typ/Mod
--------------- ----------- ----------- ----------- ----------- ------ -------
KEEP buffer cac         .00         .00         .00         .00      0 STA/
SGA Target         9,664.00    9,664.00    9,664.00    9,664.00      0 STA/
          -------------------------------------------------------------
");
    let efficiency = subject(&draft, "Instance efficiency");
    assert_eq!(value(efficiency, &["Buffer Hit %"], "value"), Some((87.5, "%")));
    assert_eq!(value(efficiency, &["Flash Cache Hit %"], "value"), Some((12.75, "%")));
    assert_eq!((efficiency.rows.len(), efficiency.covers), (4, Covers::Window), "one ratio is not reported");
    assert_eq!((efficiency.node.as_deref(), efficiency.layer.as_str()), (Some("shop1"), "engine"));

    let classes = subject(&draft, "Wait classes");
    assert_eq!(value(classes, &["User I/O"], "waits"), Some((250_000.0, "")));
    assert_eq!(value(classes, &["User I/O"], "total"), Some((1_500.0, "s")));
    assert_eq!(value(classes, &["User I/O"], "mean"), Some((6.0, "ms")));
    assert_eq!(value(classes, &["DB CPU"], "waits"), None);
    assert_eq!(value(classes, &["Other"], "DB time"), None, "one digit is no figure");

    let memory = subject(&draft, "Memory");
    assert_eq!(value(memory, &["Host Mem"], "begin"), Some((67_109_388_288.0, "B")));
    assert_eq!(value(memory, &["% Host Mem used for SGA+PGA"], "end"), Some((18.0, "%")));
    assert_eq!(memory.covers, Covers::Edges);
    let caches = subject(&draft, "Caches");
    assert_eq!(value(caches, &["Buffer Cache"], "end"), Some((8_283_750_400.0, "B")));
    assert_eq!(value(caches, &["Log Buffer"], "end"), Some((21_106_688.0, "B")), "it has not changed");
    let sga = subject(&draft, "SGA");
    assert_eq!(value(sga, &["Database Buffers"], "end"), Some((8_400_000_000.0, "B")));
    assert_eq!(value(sga, &["Fixed Size"], "end"), Some((12_445_928.0, "B")), "blank is the same");
    assert_eq!(value(sga, &["sum"], "begin"), Some((8_401_053_928.0, "B")));
    let components = subject(&draft, "Memory components");
    assert_eq!(components.rows.len(), 1, "what is not used is left out");
    assert_eq!(value(components, &["SGA Target"], "end"), Some((10_133_438_464.0, "B")));
}

const FILES: &str = "\
Tablespace IO Stats                           DB/Inst: SHOP/shop1  Snaps: 11-12
-> ordered by IOs (Reads + Writes) desc

Tablespace
------------------------------
          Av       Av     Av      1-bk  Av 1-bk          Writes   Buffer  Av Buf
  Reads   Rds/s  Rd(ms) Blks/Rd   Rds/s  Rd(ms)  Writes   avg/s    Waits  Wt(ms)
------- ------- ------- ------- ------- ------- ------- ------- -------- -------
ORDERS
 60,000     100     2.5     1.5      80     1.5   6,000      10       30     4.0
EMPTY
      0       0     0.0      .0       0     0.0       0       0        0     N/A
          -------------------------------------------------------------

File IO Stats                                 DB/Inst: SHOP/shop1  Snaps: 11-12
-> ordered by Tablespace, File

Tablespace               Filename
------------------------ ----------------------------------------------------
          Av       Av     Av      1-bk  Av 1-bk          Writes   Buffer  Av Buf
  Reads   Rds/s  Rd(ms) Blks/Rd   Rds/s  Rd(ms)  Writes   avg/s    Waits  Wt(ms)
------- ------- ------- ------- ------- ------- ------- ------- -------- -------
ORDERS                   /data/orders01.dbf
 60,000     100     2.5     1.5      80     1.5   6,000      10       30     4.0
          -------------------------------------------------------------
";

#[test]
fn files_have_their_rates_and_times() {
    let draft = awr(FILES);
    let spaces = subject(&draft, "Tablespace I/O");
    assert_eq!(value(spaces, &["ORDERS"], "read mean"), Some((2.5, "ms")));
    assert_eq!(value(spaces, &["ORDERS"], "1-block reads/s"), Some((80.0, "/s")));
    assert_eq!(value(spaces, &["ORDERS"], "writes"), Some((6_000.0, "")));
    assert!(spaces.remarks.is_empty() && spaces.rows.len() == 2, "{spaces:?}");
    let files = subject(&draft, "File I/O");
    assert_eq!(value(files, &["ORDERS", "/data/orders01.dbf"], "blocks per read"), Some((1.5, "")));
}

#[test]
fn columns_that_contradict_others_are_left_out() {
    // As release 11.2 prints it: writes, single-block reads and their time, each below the heading of another.
    let shifted = FILES.replacen(
        " 60,000     100     2.5     1.5      80     1.5   6,000      10       30     4.0",
        " 60,000     100     2.5     1.5   6,000    80.0       2      10       30     4.0",
        1,
    );
    let draft = awr(&shifted);
    let spaces = subject(&draft, "Tablespace I/O");
    let names: Vec<&str> = spaces.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(
        names,
        ["reads", "reads/s", "read mean", "blocks per read", "writes/s", "buffer waits", "buffer wait mean"]
    );
    assert!(spaces.remarks[0].starts_with("Left out: 1-block reads/s, 1-block read mean, writes."), "{spaces:?}");
    assert_eq!(value(subject(&draft, "File I/O"), &["ORDERS", "/data/orders01.dbf"], "writes"), Some((6_000.0, "")));
    // A count that its rate does not allow.
    let other = awr(&FILES.replacen("   6,000      10", "     600      10", 1));
    let spaces = subject(&other, "Tablespace I/O");
    assert_eq!((value(spaces, &["ORDERS"], "writes"), spaces.remarks.len()), (None, 1));
}

#[test]
fn pings_are_reported_in_the_unit_that_the_report_names() {
    let pings = |unit: &str| {
        format!(
            "\
Interconnect Ping Latency Stats                DB/Inst: SHOP/shop1  Snaps: 11-12
-> Average and standard deviation of ping latency is given in {unit}

   Target 500B Pin Avg Latency      Stddev  8K Ping Avg Latency      Stddev
 Instance    Count    500B msg    500B msg    Count      8K msg      8K msg
--------- -------- ----------- ----------- -------- ----------- -----------
        1      283        1.25         .92      283        1.50         .91
        2      283        2.50        1.13      283        4.00        1.63
          -------------------------------------------------------------

Interconnect Throughput by Client              DB/Inst: SHOP/shop1  Snaps: 11-12

                        Send     Receive
Used By           Mbytes/sec  Mbytes/sec
---------------- ----------- -----------
Global Cache            3.25         .50
DB Streams               N/A         N/A
          -------------------------------------------------------------

Global Cache and Enqueue Services - Workload Characteristics
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
          Avg global cache cr block receive time (us):          1,250.0
                               Avg LMS process busy %:             24.5

"
        )
    };
    let old = awr(&pings("miliseconds"));
    let ping = subject(&old, "Interconnect ping");
    assert_eq!(value(ping, &["2"], "8 KB mean"), Some((4.0, "ms")));
    assert_eq!(value(ping, &["2"], "500 B deviation"), Some((1.13, "ms")));
    assert_eq!((value(ping, &["1"], "500 B pings"), ping.layer.as_str()), (Some((283.0, "")), "network"));
    let clients = subject(&old, "Interconnect by client");
    assert_eq!((value(clients, &["Global Cache"], "sent"), clients.rows.len()), (Some((3.25, "MB/s")), 1));
    let times = subject(&old, "Global cache and enqueue times");
    assert_eq!(value(times, &["Avg global cache cr block receive time"], "value"), Some((1.25, "ms")));
    assert_eq!(value(times, &["Avg LMS process busy %"], "value"), Some((24.5, "%")));

    let new = awr(&pings("microseconds"));
    let ping = subject(&new, "Interconnect ping");
    assert_eq!(value(ping, &["2"], "500 B mean"), Some((0.002_5, "ms")));
    assert_eq!(value(ping, &["2"], "500 B deviation"), None, "it is in fractions of something else");
    assert!(ping.remarks[0].contains("500 B deviation"), "{ping:?}");
    let unknown = awr(&pings("fortnights"));
    let ping = subject(&unknown, "Interconnect ping");
    assert_eq!((ping.columns.len(), value(ping, &["1"], "8 KB pings")), (2, Some((283.0, ""))), "counts alone");
}

#[test]
fn snapshots_within_the_window_become_intervals() {
    let detail = "\
Operating System Statistics - Detail           DB/Inst: SHOP/shop1  Snaps: 11-13

Snap Time           Load    %busy    %user     %sys    %idle  %iowait
--------------- -------- -------- -------- -------- -------- --------
31-Dec 23:55:00      1.5      N/A      N/A      N/A      N/A      N/A
31-Dec 23:59:00      2.5     20.0     15.0      5.0     80.0      1.0
01-Jan 00:05:00      0.5     10.0      6.0      4.0     90.0      N/A
          ------------------------------------------------------
";
    let step = &awr(detail).steps[0];
    let times: Vec<(u64, u64)> =
        step.intervals.iter().map(|one| (one.offset_ns / 1_000_000_000, one.duration_ns / 1_000_000_000)).collect();
    assert_eq!(times, [(0, 240), (240, 360)], "over the end of the year");
    assert_eq!(step.intervals[0].reported["%User"], 15.0);
    assert_eq!((step.intervals[1].reported["Load Average End"], step.intervals[1].reported.get("%WIO")), (0.5, None));
    let only_two = detail.replace("31-Dec 23:59:00      2.5     20.0     15.0      5.0     80.0      1.0\n", "");
    assert!(awr(&only_two).steps[0].intervals.is_empty(), "the step itself says that");
    let elsewhere = detail.replace("31-Dec 23:55:00", "30-Dec 23:55:00");
    assert!(awr(&elsewhere).steps[0].intervals.is_empty(), "they do not begin with the report");
    let set_back = detail.replace("01-Jan 00:05:00", "31-Dec 23:58:30");
    assert!(awr(&set_back).steps[0].intervals.is_empty(), "nobody knows how long the last one was");
}

#[test]
fn a_day_of_statspack_has_its_hours() {
    let draft = text(
        read_text,
        "\
STATSPACK report for

Database    DB Id    Instance     Inst Num  Startup Time   Release     RAC
~~~~~~~~ ----------- ------------ -------- --------------- ----------- ---
            77000111 shop1               1 01-Mar-21 08:00 11.2.0.4.0  NO

Snapshot       Snap Id     Snap Time      Sessions Curs/Sess Comment
~~~~~~~~    ---------- ------------------ -------- --------- ------------------
Begin Snap:         11 31-Jan-21 22:00:01       40       5.5
  End Snap:         13 01-Feb-21 00:00:02       41       5.5
   Elapsed:     120.02 (mins) Av Act Sess:       2.0

Instance Efficiency Indicators
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
            Buffer Nowait %:  100.00       Redo NoWait %:  100.00

Tablespace IO Stats  DB/Inst: SHOP/shop1  Snaps: 11-13
->ordered by IOs (Reads + Writes) desc

Tablespace
------------------------------
                 Av      Av     Av                    Av        Buffer Av Buf
         Reads Reads/s Rd(ms) Blks/Rd       Writes Writes/s      Waits Wt(ms)
-------------- ------- ------ ------- ------------ -------- ---------- ------
ORDERS
       720,120     100    1.5     7.5       72,012       10          0    0.0
          -------------------------------------------------------------
OS Statistics - detail  DB/Inst: SHOP/shop1  Snaps: 11-13

  Snap Snapshot
    Id Day Time          Load  %Busy  %User %System   %WIO  %WCPU
------ --------------- ------ ------ ------ ------- ------ ------
    11 Sun 31 22:00:01     .0
    12 Sun 31 23:00:01     .5   12.0   10.0     2.0    0.0
    13 Mon 01 00:00:02    1.5   22.0   17.0     5.0    1.0
          -------------------------------------------------------------
End of Report ( sp_11_13.lst )
",
    );
    let step = &draft.steps[0];
    assert_eq!(step.intervals.len(), 2);
    assert_eq!((step.intervals[1].offset_ns, step.intervals[1].duration_ns), (3_600_000_000_000, 3_601_000_000_000));
    assert_eq!((step.intervals[1].reported["%System"], step.intervals[1].reported["%WIO"]), (5.0, 1.0));
    assert_eq!(value(subject(&draft, "Instance efficiency"), &["Redo NoWait %"], "value"), Some((100.0, "%")));
    assert_eq!(value(subject(&draft, "Tablespace I/O"), &["ORDERS"], "writes/s"), Some((10.0, "/s")));
}

fn html(sections: &str) -> Draft {
    read(&single_12().replace("<br /><a class=\"awr\" href=\"#top\">", &format!("{sections}<br /><a href=\"#top\">")))
}

/// A list below a title, as reports in HTML have their remarks.
fn listed(section: &str, remark: &str) -> String {
    let list = format!("<li class=\"awr\"> {remark} </li>\n</ul>");
    section.replacen("</ul>", &list, 1)
}

#[test]
fn pages_tell_the_same_as_texts() {
    let pairs = "Buffer Nowait %:|99.25|Redo NoWait %:|100.00\nBuffer  Hit   %:|87.50|In-memory Sort %:|";
    let pairs = super::specimens::part("Instance Efficiency Percentages (Target 100%)", pairs)
        .replace("th ", "td ")
        .replace("</th>", "</td>");
    let ping = section(
        "Interconnect Ping Latency Statistics",
        "Target Instance|500B Ping Count|Avg Latency 500B msg|Stddev 500B msg|8K Ping Count|Avg Latency 8K msg|Stddev 8K msg\n\
         1|55|558|0.23|60|539|0.22\n2|55|811|0.25|60|945|0.35",
    );
    let ping = listed(&ping, "Average and standard deviation of ping latency is given in microseconds");
    let files = section(
        "File IO Stats",
        "Tablespace|Filename|Reads|Av Rds/s|Av Rd(ms)|Av Blks/Rd|1-bk Rds/s|Av 1-bk Rd(ms)|% Opt Reads|Writes|Writes avg/s|Av  Writes(ms)|Buffer Waits|Av Buf Wt(ms)|PDB Name\n\
         USERS|/data/a.dbf|122,020|100|0.25|1.00|100|0.25|12.50|12,202|10|0.50|0|0.00|SALES\n\
         USERS|/data/b.dbf|0|0||||||0|0||0|0.00|",
    );
    let draft = html(&format!("{pairs}{ping}{files}"));
    let efficiency = subject(&draft, "Instance efficiency");
    assert_eq!(value(efficiency, &["Buffer Nowait %"], "value"), Some((99.25, "%")), "it stands in the first line");
    assert_eq!(value(efficiency, &["Buffer Hit %"], "value"), Some((87.5, "%")));
    assert_eq!(value(subject(&draft, "Interconnect ping"), &["2"], "8 KB mean"), Some((0.945, "ms")));
    let files = subject(&draft, "File I/O");
    assert_eq!(value(files, &["USERS", "/data/a.dbf", "SALES"], "optimized reads"), Some((12.5, "%")));
    assert_eq!(value(files, &["USERS", "/data/a.dbf", "SALES"], "write mean"), Some((0.5, "ms")));
    assert_eq!(value(files, &["USERS", "/data/b.dbf", ""], "reads"), Some((0.0, "")), "its container is not reported");
}

#[test]
fn storage_cells_are_reported_where_headings_tell_units() {
    let statistics = "physical read IO requests|9,500|1|1\nphysical read requests optimized|9,000|1|1\n\
                      cell flash cache read hits|8,900|1|1\ncell physical IO interconnect bytes|819,200|1|1";
    let activity = section("Instance Activity Stats", &format!("Statistic|Total|per Second|per Trans\n{statistics}"));
    let reads = section(
        "Flash Cache User Reads Per Second",
        "^|Read Requests*2|Read MB*1|Other*1\nCell Name|Hits|Misses|OLTP|Puzzle\nAll|1,500|20|12.5|7\ncel01|750|10|6.25|3",
    );
    let times =
        section("Exadata Cell Server Latency", "Cell Name|Small Reads|IOPs\nAll|213.50us|1,500.5\ncel01|1.25ms|750.5");
    let draft = html(&format!("{activity}{reads}{times}"));
    let database = subject(&draft, "Exadata storage, as the database counts it");
    assert_eq!(value(database, &["cell flash cache read hits"], "total"), Some((8_900.0, "")));
    assert_eq!(value(database, &["cell physical IO interconnect bytes"], "total"), Some((819_200.0, "B")));
    let reads = subject(&draft, "Flash Cache User Reads Per Second");
    assert_eq!((reads.layer.as_str(), reads.keys.as_slice()), ("storage cell", &["Cell Name".to_owned()][..]));
    assert_eq!(value(reads, &["All"], "Read Requests: Hits"), Some((1_500.0, "/s")), "the title says per second");
    assert_eq!(value(reads, &["cel01"], "Read MB: OLTP"), Some((6.25, "MB/s")));
    assert_eq!(value(reads, &["cel01"], "Other: Puzzle"), None);
    assert!(reads.remarks.iter().any(|remark| remark.contains("Other: Puzzle")), "{reads:?}");
    let times = subject(&draft, "Exadata Cell Server Latency");
    assert_eq!(value(times, &["All"], "Small Reads"), Some((0.213_5, "ms")));
    assert_eq!(value(times, &["cel01"], "IOPs"), Some((750.5, "/s")));
    // A database without cells counts what goes over its interconnect too, and nothing else of them.
    let elsewhere = html(&activity.replace("8,900", "0"));
    assert!(elsewhere.steps[0].tables.iter().all(|table| !table.subject.contains("Exadata")));
}

proptest! {
    /// Whatever stands where figures, names and headings should: an answer comes back.
    #[test]
    fn scrambled_sections_end_no_program(from in 0_usize..4_000, length in 0_usize..200, what in "[0-9A-Za-z .:%()/-]{0,20}") {
        let detail = "Operating System Statistics - Detail  DB/Inst: SHOP/shop1  Snaps: 1-2\n\nSnap Time           Load    %busy\n\
                      --------------- -------- --------\n31-Dec 23:55:00      1.5      N/A\n31-Dec 23:59:00      9e307     20\n";
        let whole = format!("{HEAD}{FILES}{}{detail}{TAIL}", FILES.replace("File IO Stats", "Ping Statistics"));
        let from = from.min(whole.len());
        let to = (from + length).min(whole.len());
        if whole.is_char_boundary(from) && whole.is_char_boundary(to) {
            let text = format!("{}{what}{}", &whole[..from], &whole[to..]);
            let source = Source::new("report.txt", text.into_bytes(), Timestamp(jiff::Timestamp::UNIX_EPOCH)).unwrap();
            let _ = read_text(&source, &mut Notes::new(&source));
        }
    }
}
