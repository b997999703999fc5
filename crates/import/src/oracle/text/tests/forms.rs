//! Tables and forms of all kinds, as they lie on the page.

use super::*;

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
