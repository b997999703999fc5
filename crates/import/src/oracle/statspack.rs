//! What is Statspack's own. Its reports have the form of AWR's as text.

use super::table::{HEADER, Table};

/// Puts the name of the database into the header, which has none: only titles of sections have it.
pub(super) fn name_database(tables: &mut [Table], database: &str) {
    let is_header = |table: &&mut Table| table.title == HEADER && table.column("DB Id").is_some();
    let Some(table) = tables.iter_mut().find(is_header) else { return };
    let Some(name) = table.columns.first_mut().filter(|name| name.is_empty()) else { return };
    "DB Name".clone_into(name);
    for row in &mut table.rows {
        if let Some(cell) = row.cells.first_mut().filter(|cell| cell.is_empty()) {
            database.clone_into(cell);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::oracle::read_text;
    use crate::{Draft, Notes, Source};
    use model::record::Timestamp;

    fn read(text: &str) -> Draft {
        let changed = Timestamp(jiff::Timestamp::UNIX_EPOCH);
        let source = Source::new("sp.lst", text.as_bytes().to_vec(), changed).unwrap();
        let mut notes = Notes::new(&source);
        let mut drafts = read_text(&source, &mut notes).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(notes.into_list().into_iter().map(|note| note.what).collect::<Vec<_>>(), Vec::<String>::new());
        drafts.pop().unwrap()
    }

    const REPORT: &str = "\
STATSPACK report for

Database    DB Id    Instance     Inst Num  Startup Time   Release     RAC
~~~~~~~~ ----------- ------------ -------- --------------- ----------- ---
            77000111 shop1               1 01-Mar-21 08:00 11.2.0.4.0  NO

Host Name             Platform                CPUs Cores Sockets   Memory (G)
~~~~ ---------------- ---------------------- ----- ----- ------- ------------
     box.one          Linux x86 64-bit           4     2       1          7.5

Snapshot       Snap Id     Snap Time      Sessions Curs/Sess Comment
~~~~~~~~    ---------- ------------------ -------- --------- ------------------
Begin Snap:         11 01-Mar-21 10:00:01       40       5.5
  End Snap:         12 01-Mar-21 11:00:02       41       5.5
   Elapsed:      60.02 (mins) Av Act Sess:       2.0
   DB time:     120.30 (mins)      DB CPU:      19.78 (mins)

Host CPU  (CPUs: 4  Cores: 2  Sockets: 1)
~~~~~~~~              Load Average
                      Begin     End      User  System    Idle     WIO     WCPU
                    ------- -------   ------- ------- ------- ------- --------
                       0.25    3.50     10.50    2.25   87.25    1.50

Instance CPU
~~~~~~~~~~~~                                       % Time (seconds)
                                            -------- --------------
                     Host: Total time (s):                 14,404.0
                  Host: Busy CPU time (s):                  1,836.5
                   % of time Host is Busy:      12.8
             Instance: Total CPU time (s):                  1,186.8
          % of Busy CPU used for Instance:      64.6
        Instance: Total Database time (s):                  7,218.0
  %DB time waiting for CPU (Resource Mgr):       0.0

Instance Activity Stats  DB/Inst: SHOP/shop1  Snaps: 11-12

Statistic                                      Total     per Second    per Trans
--------------------------------- ------------------ -------------- ------------
physical read IO requests                     36,010           10.0          1.0
          -------------------------------------------------------------

Instance Activity Stats  DB/Inst: SHOP/shop1  Snaps: 11-12
-> Statistics identified by '(derived)' come from sources other than SYSSTAT

Statistic                                      Total  per Hour
--------------------------------- ------------------ ---------
log switches (derived)                             3      3.00
          -------------------------------------------------------------

OS Statistics  DB/Inst: SHOP/shop1  Snaps: 11-12
-> ordered by statistic type (CPU use, Virtual Memory, Hardware Config), Name

Statistic                                  Total
-------------------------- ----------------------
BUSY_TIME                                183,651
IDLE_TIME                              1,256,749
IOWAIT_TIME                               21,606
SYS_TIME                                  32,409
USER_TIME                                151,242
PHYSICAL_MEMORY_BYTES              8,053,063,680
          -------------------------------------------------------------

IO Stat by Function - summary  DB/Inst: SHOP/shop1  Snaps: 11-12
->Data Volume values suffixed with   M,G,T,P are in multiples of 1024,

               ---------- Read --------- --------- Write -------- --- Wait ----
                 Data  Requests    Data   Data  Requests    Data          Avg
Function        Volume     /sec  Vol/sec Volume     /sec  Vol/sec  Count Tm(ms)
--------------- ------ -------- -------- ------ -------- -------- ------ ------
Buffer Cache Re   300M     10.0      .5M                             36K    2.5
          -------------------------------------------------------------

IO Stat by Function - detail  DB/Inst: SHOP/shop1  Snaps: 11-12

                   ----------- Read ---------- ----------- Write ---------
                    Small  Large  Small  Large  Small  Large  Small  Large
                     Read   Read   Data   Data  Write  Write   Data   Data
Function             Reqs   Reqs   Read   Read   Reqs   Reqs  Writn  Writn
------------------ ------ ------ ------ ------ ------ ------ ------ ------
Buffer Cache Reads    36K     12   288M    12M
          -------------------------------------------------------------

End of Report ( sp_11_12.lst )
";

    #[test]
    fn its_machine_is_reported_as_that_of_awr() {
        let draft = read(REPORT);
        let step = &draft.steps[0];
        let cpu = step.host_cpu.as_ref().unwrap();
        assert_eq!((cpu.user_ns, cpu.system_ns), (1_512_420_000_000, 324_090_000_000));
        assert_eq!((cpu.iowait_ns, cpu.idle_ns), (Some(216_060_000_000), Some(12_351_430_000_000)));
        assert_eq!(draft.environment.memory_bytes, Some(8_053_063_680));
        assert_eq!((step.counters.physical_reads, step.counters.log_switches), (Some(36_010), Some(3)));
    }

    #[test]
    fn release_9_tells_its_caches_without_a_table() {
        let draft = read(
            "\
STATSPACK report for

DB Name         DB Id    Instance     Inst Num Release     Cluster Host
------------ ----------- ------------ -------- ----------- ------- ------------
SHOP            77000111 shop1               1 9.2.0.6.0   NO      box.one

              Snap Id     Snap Time      Sessions Curs/Sess Comment
              ------- ------------------ -------- --------- -------------------
  Begin Snap:      41 01-Jan-05 10:00:05       85       9.2
    End Snap:      42 01-Jan-05 11:00:08       90       9.0
     Elapsed:               60.05 (mins)

Cache Sizes (end)
~~~~~~~~~~~~~~~~~
               Buffer Cache:     1,024M      Std Block Size:          8K
           Shared Pool Size:       304M          Log Buffer:        512K

Wait Events for DB: SHOP  Instance: shop1  Snaps: 41 -42
-> cs - centisecond -     100th of a second

                                                                   Avg
                                                     Total Wait   wait    Waits
Event                               Waits   Timeouts  Time (cs)   (ms)     /txn
---------------------------- ------------ ---------- ---------- ------ --------
db file sequential read           130,123          0     51,230      4     16.5
          -------------------------------------------------------------
End of Report
",
        );
        assert_eq!((draft.target.cache_bytes, draft.target.block_bytes), (Some(1 << 30), Some(8_192)));
        assert_eq!(draft.target.facts.database.is_clustered, Some(false));
        let waits = &draft.steps[0].waits[0].waits;
        assert_eq!((waits.count(), waits.total_ns()), (130_123, Some(512_300_000_000)));
    }

    #[test]
    fn its_figures_have_their_own_names_and_units() {
        let draft = read(REPORT);
        let figures = &draft.steps[0].reported;
        let figure = |name: &str| {
            let mut found = figures.iter().filter(|figure| figure.name == name);
            let figure = found.next().unwrap_or_else(|| panic!("{name}: {figures:?}"));
            assert!(found.next().is_none(), "{name} twice");
            (figure.value, figure.unit.as_str())
        };
        assert_eq!([figure("%User"), figure("%System"), figure("%WIO")], [(10.5, "%"), (2.25, "%"), (1.5, "%")]);
        assert_eq!((figure("%Idle"), figure("Load Average End")), ((87.25, "%"), (3.5, "")));
        assert_eq!((figure("Host: Total time"), figure("%Busy CPU")), ((14_404.0, "s"), (64.6, "%")));
        assert_eq!(figure("% of time Host is Busy"), (12.8, "%"));
        let of_cache = |name: &str| figure(&format!("function Buffer Cache Reads: {name}"));
        assert_eq!(of_cache("Read: Requests /sec"), (10.0, "/s"));
        assert_eq!(of_cache("Read: Data Vol/sec"), (524_288.0, "B/s"));
        assert_eq!(of_cache("Read: Data Volume"), (314_572_800.0, "B"));
        assert_eq!(of_cache("Wait: Avg Tm(ms)"), (2.5, "ms"));
        assert_eq!(of_cache("Read: Small Read Reqs"), (36_000.0, ""));
        assert_eq!(of_cache("Read: Large Read Reqs"), (12.0, ""));
    }
}
