//! What a database's own report says of a window, laid beside what was counted in it line by line.

use model::record::{OwnReport, ServerStats, Step, WaitStats, Waited};

/// Two counts of one thing that differ by less are taken for the same: readings of a busy server's counters are not taken at one
/// instant, and reports round.
pub const MAX_AGREEING: f64 = 0.03;
/// Counts below this say nothing by their difference: one more at an edge would be more than [`MAX_AGREEING`].
const MIN_COUNT: f64 = 50.0;

/// A report and its lines.
#[derive(Debug)]
pub struct Beside<'a> {
    /// The report.
    pub report: &'a OwnReport,
    /// How long it counted, and how long we did, in nanoseconds.
    pub elapsed_ns: (u64, u64),
    /// What either of them knows.
    pub lines: Vec<BesideLine>,
}

/// One thing that both may have counted.
#[derive(Debug, Clone, PartialEq)]
pub struct BesideLine {
    /// What it is called there.
    pub what: String,
    /// What its values are in.
    pub unit: BesideUnit,
    /// The report's value.
    pub reported: Option<f64>,
    /// Ours.
    pub counted: Option<f64>,
    /// Why they differ, where they do.
    pub why: Option<Why>,
}

/// What a value is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BesideUnit {
    /// A number of times.
    Count,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Time,
}

/// Why a report and we differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The report is of a longer time, and that is all.
    Longer,
    /// There is more in it than its longer time brings, and our figure is the load's alone.
    OtherSessions,
    /// There is more in it than its longer time brings: taking snapshots is work, too.
    Snapshots,
    /// The same of what the server's own processes write: they go on when the load has ended.
    WrittenLater,
    /// There are too few to say.
    Few,
    /// Nothing that we know of explains it.
    Unknown,
}

/// Whose work a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    Sessions,
    Writers,
}

/// How a line is read, of the report and of ours alike.
type Get = fn(&ServerStats) -> Option<u64>;

const LINES: [(&str, BesideUnit, Whose, Get); 11] = [
    ("execute count", BesideUnit::Count, Whose::Sessions, |stats| own(stats, "execute count")),
    ("logical reads", BesideUnit::Count, Whose::Sessions, |stats| stats.counters.logical_reads),
    ("read requests", BesideUnit::Count, Whose::Sessions, |stats| stats.counters.physical_reads),
    ("read", BesideUnit::Bytes, Whose::Sessions, |stats| stats.counters.physical_read_bytes),
    ("write requests", BesideUnit::Count, Whose::Writers, |stats| stats.counters.physical_writes),
    ("written", BesideUnit::Bytes, Whose::Writers, |stats| stats.counters.physical_write_bytes),
    ("redo", BesideUnit::Bytes, Whose::Writers, |stats| stats.counters.redo_bytes),
    (COMMITS, BesideUnit::Count, Whose::Sessions, |stats| stats.counters.commits),
    ("DB time", BesideUnit::Time, Whose::Sessions, |stats| own(stats, "DB time_ns")),
    ("DB CPU", BesideUnit::Time, Whose::Sessions, |stats| own(stats, "DB CPU_ns")),
    ("background CPU", BesideUnit::Time, Whose::Writers, |stats| own(stats, "background cpu time_ns")),
];
const COMMITS: &str = "commits";

/// The events that decide about storage, those of sessions first.
const EVENTS: [(&str, Whose); 7] = [
    ("db file sequential read", Whose::Sessions),
    ("db file parallel read", Whose::Sessions),
    ("db file scattered read", Whose::Sessions),
    ("direct path read", Whose::Sessions),
    ("log file sync", Whose::Sessions),
    ("db file parallel write", Whose::Writers),
    ("log file parallel write", Whose::Writers),
];

fn own(stats: &ServerStats, name: &str) -> Option<u64> {
    stats.own.get(name).copied()
}

/// What the server of a report timed itself, as we read it. An only server's waits are the step's.
fn timed<'a>(step: &'a Step, ours: &'a ServerStats) -> Vec<&'a WaitStats> {
    match step.servers.as_slice() {
        // Those that sessions of ours timed have no source besides.
        [only] if only.node == ours.node => step.waits.iter().filter(|wait| !wait.reported.is_empty()).collect(),
        _ => ours.waits.iter().collect(),
    }
}

/// Waits of sessions, or of the server's own processes, in an event. None at all of it are none where any waits of theirs are known: a
/// pluggable database shows none of the processes, which work nevertheless.
fn waited(waits: &[&WaitStats], event: &str, whose: Whose) -> Option<Waited> {
    let of = |wait: &&WaitStats| match whose {
        Whose::Sessions => wait.of_sessions(),
        Whose::Writers => wait.of_background(),
    };
    let none = waits.iter().any(|wait| of(wait).is_some()).then_some(Waited { count: 0, total_ns: Some(0) });
    waits.iter().find(|wait| wait.event == event).and_then(of).or(none)
}

impl Beside<'_> {
    /// Each report of a step that was read, beside what was counted on its server.
    pub fn of(step: &Step) -> Vec<Beside<'_>> {
        let read = step.own_reports.iter().filter_map(|report| Some((report, report.counted.as_ref()?)));
        read.map(|(report, reported)| beside(step, report, reported)).collect()
    }

    /// Of the lines that both know, how many agree, and how many there are.
    pub fn agreeing(&self) -> (usize, usize) {
        let known = self.lines.iter().filter_map(|line| Some((line, line.difference()?)));
        let agrees = |(line, difference): &(&BesideLine, f64)| {
            difference.abs() <= MAX_AGREEING || matches!(line.why, Some(Why::Longer | Why::Few))
        };
        (known.clone().filter(agrees).count(), known.count())
    }
}

impl BesideLine {
    /// By what share of ours the report's value differs; unknown where either is, or where nothing was counted.
    pub fn difference(&self) -> Option<f64> {
        match (self.reported?, self.counted?) {
            (reported, counted) if reported == counted => Some(0.0),
            (reported, counted) => (counted > 0.0).then(|| reported / counted - 1.0),
        }
    }
}

impl Why {
    /// In few words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Longer => "the report is of a longer time",
            Self::OtherSessions => "a longer time, and other sessions than the load's",
            Self::Snapshots => "a longer time, and the work of taking snapshots",
            Self::WrittenLater => "a longer time, and what was written after the load",
            Self::Few => "too few to compare",
            Self::Unknown => "not explained",
        }
    }
}

fn beside<'a>(step: &Step, report: &'a OwnReport, reported: &ServerStats) -> Beside<'a> {
    let nobody = ServerStats { elapsed_ns: step.window.duration_ns, ..ServerStats::default() };
    let ours = step.servers.iter().find(|server| server.node == report.node).unwrap_or(&nobody);
    let elapsed_ns = (reported.elapsed_ns, ours.elapsed_ns);
    let longer =
        if elapsed_ns.0 > 0 && elapsed_ns.1 > 0 { (elapsed_ns.0 as f64 / elapsed_ns.1 as f64).max(1.0) } else { 1.0 };
    let line = |what: String, unit, whose, [reported, counted]: [Option<u64>; 2], is_of_load| {
        let (reported, counted) = (reported.map(|value| value as f64), counted.map(|value| value as f64));
        let line = BesideLine { what, unit, reported, counted, why: None };
        BesideLine { why: why(&line, longer, whose, is_of_load), ..line }
    };
    let mut lines = Vec::new();
    for (what, unit, whose, get) in LINES {
        // Where there is one server, all of the load's commits are on it.
        let of_load = step.counters.commits.filter(|_| what == COMMITS && step.servers.len() <= 1);
        let is_of_load = get(ours).is_none() && of_load.is_some();
        lines.push(line(what.to_owned(), unit, whose, [get(reported), get(ours).or(of_load)], is_of_load));
    }
    let (theirs, timed) = (reported.waits.iter().collect::<Vec<_>>(), timed(step, ours));
    for (event, whose) in EVENTS {
        let both = [&theirs, &timed].map(|waits| waited(waits, event, whose));
        if both.iter().flatten().all(|waited| waited.count == 0) {
            continue;
        }
        let counts = both.map(|waited| Some(waited?.count));
        lines.push(line(event.to_owned(), BesideUnit::Count, whose, counts, false));
        let times = both.map(|waited| waited?.total_ns);
        lines.push(line(format!("{event}, time"), BesideUnit::Time, whose, times, false));
    }
    lines.retain(|line| line.reported.is_some() || line.counted.is_some());
    Beside { report, elapsed_ns, lines }
}

/// Why a line's values differ. `longer` is how many times our time the report is of.
fn why(line: &BesideLine, longer: f64, whose: Whose, is_of_load: bool) -> Option<Why> {
    let difference = line.difference()?;
    if difference.abs() <= MAX_AGREEING {
        return None;
    }
    let largest = line.reported.unwrap_or(0.0).max(line.counted.unwrap_or(0.0));
    if line.unit == BesideUnit::Count && largest < MIN_COUNT {
        return Some(Why::Few);
    }
    // What is left once both are of the same time.
    let beyond = (1.0 + difference) / longer - 1.0;
    Some(match whose {
        // Load need not be as heavy before and after the window as in it, so the longer time may bring less.
        _ if difference > 0.0 && beyond <= MAX_AGREEING => Why::Longer,
        _ if difference < 0.0 => Why::Unknown,
        Whose::Sessions if is_of_load => Why::OtherSessions,
        Whose::Sessions => Why::Snapshots,
        Whose::Writers => Why::WrittenLater,
    })
}

#[cfg(test)]
mod tests {
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
}
