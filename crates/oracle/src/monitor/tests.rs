//! Golden rows of the views, as the server gives them, and what is made of two readings.

use super::cluster;
use super::reading::{InstanceReading, compare};
use super::views::{Part, Reach, Row, Scope};
use super::*;
use crate::sql::{Need, grants};
use model::record::{Activity, ReportedBucket, ServerStats, SessionState, WaitStats, Waited};

/// Rows as they are printed: a name, for waits its class, and numbers, `-` for NULL.
fn rows(text: &str) -> Vec<Row> {
    let row = |line: &str| {
        let mut cells = line.split('|').map(str::trim);
        let name = cells.next().unwrap().to_owned();
        let mut rest: Vec<&str> = cells.collect();
        let numbers = rest.pop().unwrap().split_whitespace().map(|number| number.parse().ok()).collect();
        Row { instance: 0, name, class: rest.pop().unwrap_or_default().to_owned(), numbers }
    };
    text.lines().filter(|line| !line.trim().is_empty()).map(row).collect()
}

/// A reading of the rows of some parts, each in its form of this number.
fn reading(scope: Scope, parts: &[(Part, usize, &str)]) -> InstanceReading {
    let mut reading = InstanceReading::new(scope);
    for (part, form, text) in parts {
        reading.take(*part, &part.forms(scope, Reach::One)[*form], &rows(text));
    }
    reading
}

fn difference(earlier: &InstanceReading, later: &mut InstanceReading) -> (ServerStats, Vec<String>) {
    let mut stats = ServerStats { elapsed_ns: 1_000_000_000, ..ServerStats::default() };
    let set_back = compare(earlier, later, &mut stats);
    (stats, set_back)
}

const STATISTICS: [&str; 2] = [
    "user commits | 100
     session logical reads | 5000
     consistent gets from cache | 4000
     db block gets from cache | 900
     physical reads cache | 1000
     physical reads | 1100
     physical read IO requests | 1000
     physical read bytes | 9011200
     physical read total bytes | 10000000
     physical write IO requests | 50
     redo size | 4294967290
     redo writes | 7
     execute count | 300",
    "user commits | 160
     session logical reads | 15000
     consistent gets from cache | 12000
     db block gets from cache | 2900
     physical reads cache | 4000
     physical reads | 4300
     physical read IO requests | 4000
     physical read bytes | 35225600
     physical read total bytes | 40000000
     physical write IO requests | 90
     redo size | 4295967290
     redo writes | 27
     execute count | 450",
];
const EVENTS: [&str; 2] = [
    "db file sequential read | User I/O | 1000 400000 990 396000
     log file sync | Commit | 90 90000 90 90000",
    "db file sequential read | User I/O | 4000 2200000 3980 2191000
     log file sync | Commit | 150 240000 150 240000
     log file parallel write | System I/O | 20 10000 0 0
     enq: TX - row lock contention | Application | 3 60000 3 60000",
];
const HISTOGRAMS: [&str; 2] = [
    "db file sequential read | 256 100
     db file sequential read | 512 900
     SQL*Net message from client | 1024 5000",
    "db file sequential read | 256 400
     db file sequential read | 512 2900
     db file sequential read | 1024 699
     db file sequential read | 4294967295 1
     log file parallel write | 512 20
     SQL*Net message from client | 1024 9000",
];

fn instance(at: usize) -> InstanceReading {
    let times = ["DB time | 1000000\nDB CPU | 300000", "DB time | 4500000\nDB CPU | 900000"];
    let machine = ["BUSY_TIME | 1000\nIDLE_TIME | 5000", "BUSY_TIME | 1100\nIDLE_TIME | 5300"];
    let functions = ["LGWR | 0 0 7 0 0 0 1 0 7 3", "LGWR | 0 0 27 0 0 0 3 0 27 13"];
    reading(
        Scope::Instance,
        &[
            (Part::Statistics, 0, STATISTICS[at]),
            (Part::Times, 0, times[at]),
            (Part::Machine, 0, machine[at]),
            (Part::Functions, 0, functions[at]),
            (Part::Events, 0, EVENTS[at]),
            (Part::Histograms, 0, HISTOGRAMS[at]),
        ],
    )
}

fn wait<'a>(stats: &'a ServerStats, event: &str) -> &'a WaitStats {
    stats.waits.iter().find(|wait| wait.event == event).unwrap_or_else(|| panic!("no `{event}` in {:?}", stats.waits))
}

#[test]
fn what_was_counted_between_two_readings_has_the_names_of_a_report() {
    let (stats, set_back) = difference(&instance(0), &mut instance(1));
    assert_eq!(set_back, Vec::<String>::new());
    let counters = &stats.counters;
    assert_eq!((counters.logical_reads, counters.cache_hits), (Some(10_000), Some(7_000)));
    assert_eq!((counters.physical_reads, counters.physical_read_blocks), (Some(3_000), Some(3_200)));
    assert_eq!((counters.physical_read_bytes, counters.physical_writes), (Some(26_214_400), Some(40)));
    assert_eq!((counters.commits, counters.redo_bytes, counters.redo_writes), (Some(60), Some(1_000_000), Some(20)));
    assert_eq!(counters.physical_write_bytes, None, "what is not among the rows is unknown");
    let own = |name: &str| stats.own.get(name).copied();
    assert_eq!((own("DB time_ns"), own("DB CPU_ns")), (Some(3_500_000_000), Some(600_000_000)));
    assert_eq!((own("execute count"), own("physical read total bytes")), (Some(150), Some(30_000_000)));
    assert_eq!((own("BUSY_TIME_ns"), own("IDLE_TIME_ns")), (Some(1_000_000_000), Some(3_000_000_000)));
    assert_eq!((own("function LGWR: small writes"), own("function LGWR: wait_ns")), (Some(20), Some(10_000_000)));
    assert_eq!(own("function LGWR: small write bytes"), Some(2 << 20));
    let activity = |what: Activity| stats.activity.get(&what).copied();
    assert_eq!((activity(Activity::Commits), activity(Activity::LogWrites)), (Some(60), Some(20)));
    assert_eq!(activity(Activity::LogWriteNs), Some(10_000_000));
    assert_eq!((activity(Activity::LockWaits), activity(Activity::LockWaitNs)), (Some(3), Some(60_000_000)));
    assert_eq!(activity(Activity::BlockReadNs), Some(1_795_000_000), "those of sessions alone");
    assert_eq!(activity(Activity::Deadlocks), None);
}

#[test]
fn waits_are_of_sessions_and_of_the_servers_own_processes_and_have_histograms() {
    let (stats, _) = difference(&instance(0), &mut instance(1));
    let reads = wait(&stats, "db file sequential read");
    assert_eq!((reads.class.as_str(), reads.layer.as_str(), reads.foreground), ("User I/O", "server", true));
    let waited = |count, ns| Some(Waited { count, total_ns: Some(ns) });
    assert_eq!(reads.of_sessions(), waited(2_990, 1_795_000_000));
    assert_eq!(reads.of_background(), waited(10, 5_000_000));
    let bucket = |from_us: u64, to_us: Option<u64>, count| ReportedBucket {
        from_ns: from_us * 1_000,
        to_ns: to_us.map(|us| us * 1_000),
        count,
    };
    let buckets = [
        bucket(128, Some(256), 300),
        bucket(256, Some(512), 2_000),
        bucket(512, Some(1_024), 699),
        // The largest number of 32 bits is no edge.
        bucket(1 << 31, None, 1),
    ];
    assert_eq!(reads.waits.reported_buckets(), buckets);
    assert_eq!(reads.waits.total_ns(), Some(1_800_000_000), "both views have the same waits");
    let writes = wait(&stats, "log file parallel write");
    assert!(!writes.foreground);
    assert_eq!((writes.of_sessions(), writes.of_background()), (None, waited(20, 10_000_000)));
    let commits = wait(&stats, "log file sync");
    assert!(!commits.waits.is_distribution() && commits.waits.count() == 60, "{commits:?}");
    assert!(stats.waits.iter().all(|wait| !wait.event.starts_with("SQL*Net")), "nobody waited for anything there");
}

#[test]
fn sessions_that_are_counted_a_moment_before_all_are_still_told_apart() {
    let read = |row: &str| reading(Scope::Instance, &[(Part::Events, 0, &format!("log file sync | Commit | {row}"))]);
    let [first, mut second, mut third] = ["10 100 10 100", "109 1090 110 1100", "200 2000 200 2000"].map(read);
    let mut sums = difference(&first, &mut second).0.waits;
    WaitStats::add_to(&mut sums, &difference(&second, &mut third).0.waits);
    let [sync] = sums.as_slice() else { panic!("{sums:?}") };
    let all = Waited { count: 190, total_ns: Some(1_900_000) };
    assert_eq!((sync.of_sessions(), sync.sum().count), (Some(all), 191), "and not those of one second alone");
}

#[test]
fn histograms_in_milliseconds_have_their_own_edges() {
    let then = reading(Scope::Instance, &[(Part::Events, 1, ""), (Part::Histograms, 1, "")]);
    let events = "direct path read | User I/O | 12 30000";
    let histograms = "direct path read | 1 4\ndirect path read | 4 7";
    let mut now = reading(Scope::Instance, &[(Part::Events, 1, events), (Part::Histograms, 1, histograms)]);
    let (stats, _) = difference(&then, &mut now);
    let reads = wait(&stats, "direct path read");
    let edges: Vec<_> = reads.waits.reported_buckets().iter().map(|bucket| (bucket.from_ns, bucket.to_ns)).collect();
    assert_eq!(edges, [(0, Some(1_000_000)), (2_000_000, Some(4_000_000))]);
    // Nobody knows whose they were, and the histogram has one less.
    assert_eq!(reads.sum(), Waited { count: 12, total_ns: Some(30_000_000) });
    assert_eq!((reads.waits.count(), reads.waits.total_ns()), (11, None));
    assert_eq!(reads.of_background(), None);
}

#[test]
fn waits_that_a_server_counts_and_does_not_time_took_an_unknown_time() {
    let events = |reads: u64, syncs: u64| {
        let rows = format!(
            "db file sequential read | User I/O | {reads} 7000 {reads} 7000\nlog file sync | Commit | {syncs} 900 {syncs} 900"
        );
        reading(Scope::Instance, &[(Part::Events, 0, &rows)])
    };
    let total = |then: &InstanceReading, mut now: InstanceReading| {
        wait(&difference(then, &mut now).0, "db file sequential read").sum()
    };
    assert_eq!(total(&events(100, 10), events(190, 15)), Waited { count: 90, total_ns: None });
    // A few may have been shorter than the server's clock can say.
    assert_eq!(total(&events(100, 10), events(103, 15)), Waited { count: 3, total_ns: Some(0) });
}

#[test]
fn a_counter_that_was_set_back_is_unknown_and_its_view_is_named() {
    let then = reading(
        Scope::Instance,
        &[
            (Part::Statistics, 0, "user commits | 100\nredo size | 500"),
            (Part::Events, 0, "log file sync | Commit | 90 900 90 900\nread by other session | User I/O | 5 50 5 50"),
            (Part::Histograms, 0, "log file sync | 16 90\nread by other session | 16 5"),
        ],
    );
    let mut now = reading(
        Scope::Instance,
        &[
            (Part::Statistics, 0, "user commits | 3\nredo size | 700"),
            (Part::Events, 0, "log file sync | Commit | 2 20 2 20\nread by other session | User I/O | 7 70 7 70"),
            (Part::Histograms, 0, "log file sync | 16 2\nread by other session | 16 1"),
        ],
    );
    let (stats, set_back) = difference(&then, &mut now);
    assert_eq!(set_back, ["v$sysstat", "v$system_event"]);
    assert_eq!((stats.counters.commits, stats.counters.redo_bytes), (None, Some(200)));
    let [only] = stats.waits.as_slice() else { panic!("{:?}", stats.waits) };
    assert_eq!((only.event.as_str(), only.sum().count), ("read by other session", 2));
    assert!(!only.waits.is_distribution(), "its histogram is not known");
}

#[test]
fn what_cannot_be_a_count_is_unknown() {
    let then = reading(Scope::Instance, &[(Part::Statistics, 0, "user commits | 5\nredo size | -\nuser calls | 7")]);
    let text = "user commits | 4294967295\nredo size | 9\nuser calls | -8";
    let (stats, set_back) = difference(&then, &mut reading(Scope::Instance, &[(Part::Statistics, 0, text)]));
    assert_eq!((stats.own.len(), set_back.len()), (0, 0), "{:?}", stats.own);
}

#[test]
fn views_that_are_not_there_leave_everything_else() {
    let only = |text| reading(Scope::Instance, &[(Part::Statistics, 0, text)]);
    let (stats, set_back) = difference(&only("user commits | 5"), &mut only("user commits | 8"));
    assert_eq!((stats.counters.commits, stats.waits.len(), set_back.len()), (Some(3), 0, 0));
    assert_eq!(stats.activity.get(&Activity::LockWaits), None, "no waits are counted, not none");
}

#[test]
fn a_pluggable_database_does_not_say_that_nothing_was_written() {
    let events = "db file sequential read | User I/O | 10 100 10 100";
    let counted = |written: u64, from_cache: u64| {
        format!(
            "user commits | 5\nredo writes | 0\nphysical writes | {written}\nphysical writes from cache | {from_cache}"
        )
    };
    let read = |statistics: &str, times: &str, events: &str| {
        let parts = [(Part::Statistics, 0, statistics), (Part::Times, 0, times), (Part::Events, 0, events)];
        reading(Scope::Container, &parts)
    };
    let then = read(&counted(3, 1), "DB CPU | 5\nbackground cpu time | 0", events);
    let more = "db file sequential read | User I/O | 30 500 30 500";
    let mut now = read(&counted(9, 7), "DB CPU | 9\nbackground cpu time | 0", more);
    let (stats, _) = difference(&then, &mut now);
    assert_eq!((stats.counters.commits, stats.counters.redo_writes), (Some(0), None));
    assert_eq!(stats.counters.physical_write_blocks, Some(6), "it does show these");
    assert_eq!((stats.own.get("DB CPU_ns"), stats.own.get("background cpu time_ns")), (Some(&4_000), None));
    let reads = wait(&stats, "db file sequential read");
    assert_eq!((reads.of_sessions().map(|waited| waited.count), reads.of_background()), (Some(20), None));
    // Set-up has loaded past the cache: that is counted here, and what the database writers do is not.
    let loaded = |written| read(&counted(written, 0), "DB CPU | 5\nbackground cpu time | 7", events);
    let (stats, _) = difference(&loaded(4096), &mut loaded(4100));
    assert_eq!((stats.counters.physical_write_blocks, stats.own.get("background cpu time_ns")), (None, None));
    // An instance as a whole does say it.
    let idle = |text| reading(Scope::Instance, &[(Part::Statistics, 0, text)]);
    let (stats, _) = difference(&idle("redo writes | 0"), &mut idle("redo writes | 0"));
    assert_eq!(stats.counters.redo_writes, Some(0));
}

/// Reads of the load's own sessions between two readings: of one block, of several, of neighbours and past the cache.
fn ours(earlier: &InstanceReading, later: &mut InstanceReading) -> Option<[u64; 4]> {
    let activity = difference(earlier, later).0.activity;
    let count = |what: Activity| activity.get(&what).copied();
    Some([
        count(Activity::SingleBlockReads)?,
        count(Activity::BatchedReads)?,
        count(Activity::MultiBlockReads)?,
        count(Activity::ReadsPastCache)?,
    ])
}

#[test]
fn the_loads_reads_are_known_by_how_many_blocks_they_were_of() {
    let of = |text| reading(Scope::Instance, &[(Part::Ours, 0, text)]);
    let before = "sessions | 8\ndb file sequential read | 100";
    let after = "sessions | 8\ndb file sequential read | 1000\ndb file parallel read | 40\ndb file scattered read | 2\n\
                 read by other session | 9\ndirect path read | 11\ndirect path read temp | 3";
    assert_eq!(ours(&of(before), &mut of(after)), Some([900, 40, 2, 11]));
    let cells = "sessions | 8\ncell single block physical read: flash cache | 70\ndb file sequential read | 100\n\
                 cell list of blocks physical read: RDMA | 5\ncell smart table scan | 6";
    assert_eq!(ours(&of(before), &mut of(cells)), Some([70, 5, 0, 6]));
    assert_eq!(ours(&of(before), &mut of("sessions | 6\ndb file sequential read | 800")), None, "some have left");
    assert_eq!(ours(&of("sessions | 0"), &mut of(before)), Some([100, 0, 0, 0]), "all have come");
}

#[test]
fn the_loads_reads_are_of_the_whole_time_where_they_are_not_read_every_time() {
    let of = |text| reading(Scope::Instance, &[(Part::Ours, 0, text)]);
    let first = of("sessions | 8\ndb file sequential read | 100");
    let mut second = InstanceReading::new(Scope::Instance);
    let mut third = InstanceReading::new(Scope::Instance);
    assert_eq!(ours(&first, &mut second), None);
    assert_eq!(ours(&second, &mut third), None);
    let mut fourth = of("sessions | 8\ndb file sequential read | 400");
    assert_eq!(ours(&third, &mut fourth), Some([300, 0, 0, 0]));
    let mut fifth = of("sessions | 8\ndb file sequential read | 450");
    assert_eq!(ours(&fourth, &mut fifth), Some([50, 0, 0, 0]));
}

#[test]
fn sessions_that_were_seen_have_a_meaning() {
    let mut stats = ServerStats::default();
    stats.session_samples.insert("User I/O:db file sequential read".to_owned(), 7);
    compare(&instance(0), &mut instance(1), &mut stats);
    assert_eq!(stats.session_states["User I/O:db file sequential read"], SessionState::Read);
}

/// Rows of several instances, each with its number before it.
fn rows_of_all(text: &str) -> Vec<Row> {
    let row = |line: &str| {
        let (instance, rest) = line.trim().split_once(' ').unwrap();
        rows(rest).into_iter().map(|row| Row { instance: instance.parse().unwrap(), ..row }).collect::<Vec<_>>()
    };
    text.lines().filter(|line| !line.trim().is_empty()).flat_map(row).collect()
}

/// What the instances of a cluster counted, by their names.
fn members(named: &str, parts: &[(Part, &str)]) -> Vec<(String, InstanceReading)> {
    let named: Vec<Row> = named
        .lines()
        .map(|line| {
            let mut cells = line.trim().split(' ');
            let instance = cells.next().unwrap().parse().unwrap();
            Row { instance, name: cells.next().unwrap().to_owned(), class: "then".to_owned(), numbers: Vec::new() }
        })
        .collect();
    let forms: Vec<_> = parts.iter().map(|(part, _)| part.forms(Scope::Instance, Reach::All).remove(0)).collect();
    let answers = parts.iter().zip(&forms).map(|((part, text), form)| (*part, form, rows_of_all(text))).collect();
    let counted = cluster::members(Scope::Instance, &named, answers);
    counted.into_iter().map(|counted| (counted.member.unwrap().name, counted.reading)).collect()
}

#[test]
fn each_instance_of_a_cluster_has_its_own_rows_and_no_other_s() {
    let parts = |commits: [u64; 3], reads: [u64; 2]| {
        let statistics = format!(
            "2 user commits | {}\n1 user commits | {}\n3 user commits | {}",
            commits[1], commits[0], commits[2]
        );
        let events = format!(
            "1 db file sequential read | User I/O | {0} {0} {0} {0}\n2 db file sequential read | User I/O | {1} {1} {1} {1}",
            reads[0], reads[1]
        );
        let histograms = format!("2 db file sequential read | 256 {}", reads[1]);
        let ours = format!("2 sessions | 4\n2 db file sequential read | {}", reads[1]);
        (statistics, events, histograms, ours)
    };
    let read = |(statistics, events, histograms, ours): &(String, String, String, String)| {
        // Nobody knows a name of the third.
        members(
            "2 two\n1 one",
            &[
                (Part::Statistics, statistics),
                (Part::Events, events),
                (Part::Histograms, histograms),
                (Part::Ours, ours),
            ],
        )
    };
    let then = read(&parts([100, 1_000, 7], [50, 500]));
    let mut now = read(&parts([101, 1_020, 9], [53, 560]));
    let names: Vec<&str> = now.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["one", "two"], "each once, by their numbers");
    let stats: Vec<ServerStats> =
        then.iter().zip(&mut now).map(|((_, then), (_, now))| difference(then, now).0).collect();
    assert_eq!([stats[0].counters.commits, stats[1].counters.commits], [Some(1), Some(20)]);
    let reads = |at: usize| wait(&stats[at], "db file sequential read");
    assert_eq!([reads(0).sum().count, reads(1).sum().count], [3, 60]);
    assert!(!reads(0).waits.is_distribution() && reads(1).waits.is_distribution());
    let singles = |at: usize| stats[at].activity.get(&Activity::SingleBlockReads).copied();
    assert_eq!([singles(0), singles(1)], [Some(0), Some(60)], "none of our sessions are on the first, which is known");
}

#[test]
fn another_instance_does_not_silently_stand_for_the_one_that_was_watched() {
    let of = |identity: [&str; 3]| super::Instance {
        identity: identity.map(str::to_owned),
        scope: Scope::Instance,
        container: (String::new(), 0),
        user: "SLOB".to_owned(),
    };
    let first = of(["orcl", "ONE1", "host1"]);
    assert_eq!(first.instead_of(&of(["orcl", "ONE1", "host1"])), None);
    for other in [["orcl", "ONE2", "host1"], ["orcl", "ONE1", "host2"], ["shop", "ONE1", "host1"]] {
        let note = of(other).instead_of(&first).unwrap();
        assert!(
            note.contains("ONE1 on host1, and") && note.contains(&format!("{} on {}", other[1], other[2])),
            "{note}"
        );
    }
    assert_eq!(first.instead_of(&of(["", "", ""])), None, "what never said its name cannot be told");
}

#[test]
fn an_instance_that_shows_no_statistics_is_not_there() {
    let of = |statistics: &str| {
        let found =
            members("1 one\n2 two", &[(Part::Statistics, statistics), (Part::Times, "1 DB time | 5\n2 DB time | 5")]);
        found.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(of("1 user commits | 1\n2 user commits | 1"), ["one", "two"]);
    assert_eq!(of("2 user commits | 1"), ["two"]);
    assert_eq!(of(""), Vec::<String>::new());
}

#[test]
fn every_table_that_is_asked_can_be_granted() {
    let granted: Vec<String> = grants("U", "T")
        .into_iter()
        .filter(|grant| grant.need == Need::Statspack)
        .map(|grant| grant.statement.to_lowercase().replace("v_$", "v$").replace("sys.", ""))
        .collect();
    for (_, form) in forms() {
        let tables = form.sql.split([' ', '(']).filter(|word| word.starts_with("perfstat.") || word.starts_with("v$"));
        assert!(tables.clone().count() > 0, "{}", form.sql);
        for table in tables {
            assert!(granted.contains(&format!("grant select on {table} to \"u\"")), "{table}");
        }
    }
}

#[test]
fn each_placeholder_stands_once_and_in_the_order_in_which_it_is_bound() {
    for (_, form) in forms() {
        let bound: Vec<&str> = form.sql.match_indices(':').map(|(at, _)| &form.sql[at..at + 2]).collect();
        assert_eq!(bound, [":1", ":2", ":3"], "{}", form.sql);
    }
}
