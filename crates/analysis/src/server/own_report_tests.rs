use super::*;
use model::record::{Counters, Histogram, ReportedWaits, Waiters};

fn waits(event: &str, by: Waiters, count: u64, total_ns: u64) -> WaitStats {
    WaitStats {
        event: event.to_owned(),
        class: "User I/O".to_owned(),
        layer: "server".to_owned(),
        foreground: by != Waiters::Background,
        waits: Histogram::counted(count, Some(total_ns)),
        reported: vec![ReportedWaits {
            by,
            count,
            total_ns: Some(total_ns),
            layer: "server".to_owned(),
            source: "v$system_event".to_owned(),
        }],
    }
}

/// A server that has counted for so many seconds, under a steady load.
fn stats(seconds: u64) -> ServerStats {
    ServerStats {
        node: "db1".to_owned(),
        elapsed_ns: seconds * 1_000_000_000,
        counters: Counters {
            logical_reads: Some(seconds * 70_000),
            physical_reads: Some(seconds * 5_000),
            physical_read_bytes: Some(seconds * 5_000 * 8192),
            redo_bytes: Some(seconds * 1_000_000),
            commits: Some(seconds * 200),
            ..Counters::default()
        },
        own: [("execute count", 1_000), ("DB time_ns", 4_000_000_000), ("DB CPU_ns", 900_000_000)]
            .map(|(name, each)| (name.to_owned(), each * seconds))
            .into(),
        waits: vec![
            waits("db file sequential read", Waiters::Foreground, seconds * 5_000, seconds * 2_500_000_000),
            waits("log file parallel write", Waiters::Background, seconds * 190, seconds * 100_000_000),
        ],
        ..ServerStats::default()
    }
}

/// A step of 60 seconds with a report on it.
fn step(counted: Option<ServerStats>, ours: Option<ServerStats>) -> Step {
    let mut step = Step::new(0, "s8_t1");
    step.window.duration_ns = 60_000_000_000;
    step.servers = ours.into_iter().collect();
    // As they are recorded: what an only server timed is the step's.
    if let [only] = step.servers.as_mut_slice() {
        step.waits = std::mem::take(&mut only.waits);
    }
    let node = "db1".to_owned();
    step.own_reports = vec![OwnReport { kind: "AWR".to_owned(), node, counted, ..OwnReport::default() }];
    step
}

fn find<'a>(beside: &'a Beside<'_>, what: &str) -> &'a BesideLine {
    beside.lines.iter().find(|line| line.what == what).unwrap_or_else(|| panic!("{what} of {:?}", beside.lines))
}

#[test]
fn a_longer_time_explains_a_difference_that_is_as_large_on_every_line() {
    let step = step(Some(stats(66)), Some(stats(60)));
    let [beside] = &Beside::of(&step)[..] else { panic!("one report") };
    assert_eq!(beside.elapsed_ns, (66_000_000_000, 60_000_000_000));
    assert_eq!(beside.lines.len(), 8 + 4, "{:?}", beside.lines);
    for line in &beside.lines {
        assert!((line.difference().unwrap() - 0.1).abs() < 1e-9, "{line:?}");
        assert_eq!(line.why, Some(Why::Longer), "{line:?}");
    }
    assert_eq!(beside.agreeing(), (12, 12));
}

#[test]
fn what_agrees_needs_no_reason() {
    let step = step(Some(stats(61)), Some(stats(60)));
    let beside = &Beside::of(&step)[0];
    assert!(beside.lines.iter().all(|line| line.why.is_none()), "{:?}", beside.lines);
}

#[test]
fn more_than_the_longer_time_brings_has_another_reason_and_less_has_none() {
    let mut own_stats = stats(66);
    own_stats.counters.redo_bytes = Some(90_000_000);
    own_stats.counters.logical_reads = Some(1_000_000);
    own_stats.own.insert("execute count".to_owned(), 90_000);
    own_stats.waits.push(waits("direct path read", Waiters::Foreground, 9, 1_000_000));
    let step = step(Some(own_stats), Some(stats(60)));
    let beside = &Beside::of(&step)[0];
    assert_eq!(find(beside, "redo").why, Some(Why::WrittenLater));
    assert_eq!(find(beside, "execute count").why, Some(Why::Snapshots));
    assert_eq!(find(beside, "logical reads").why, Some(Why::Unknown));
    let few = find(beside, "direct path read");
    assert_eq!((few.counted, few.difference()), (Some(0.0), None), "nothing is no base for a share");
    assert_eq!(beside.agreeing(), (9, 12));
}

#[test]
fn what_nobody_counted_here_is_unknown_but_for_the_commits_of_the_load() {
    let mut step = step(Some(stats(60)), None);
    step.counters.commits = Some(9_000);
    let beside = &Beside::of(&step)[0];
    let commits = find(beside, "commits");
    assert_eq!((commits.counted, commits.why), (Some(9_000.0), Some(Why::OtherSessions)));
    assert!(beside.lines.iter().all(|line| line.what == "commits" || line.counted.is_none()));
    assert_eq!(beside.agreeing(), (0, 1));
}

#[test]
fn processes_that_nobody_shows_are_unknown_and_not_idle() {
    let mut ours = stats(60);
    ours.waits.retain(|wait| wait.foreground);
    let step = step(Some(stats(60)), Some(ours));
    let beside = &Beside::of(&step)[0];
    assert_eq!(find(beside, "db file sequential read").counted, Some(300_000.0));
    assert_eq!(find(beside, "log file parallel write").counted, None);
}

#[test]
fn a_report_that_nobody_has_read_has_no_lines() {
    assert!(Beside::of(&step(None, Some(stats(60)))).is_empty());
}
