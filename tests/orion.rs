//! Our output against ORION's own, as far as specimens of it lie beside this repository; and the way there, from ORION's
//! command line to its files.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

use model::record::Level;
use model::record::Load;
use model::record::OrionLevel;
use test_support::skip;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use plimsoll::config::orion::{OrionCommand, OrionOptions, parse};
use plimsoll::plan::orion::{Lun, walk};
use plimsoll::record::{
    Ending, Environment, FORMAT, FileFacts, Histogram, Intensity, OperationStats, Outcome, Run, Step, Target,
    TargetFacts, Timestamp, Tool, Window,
};
use plimsoll::report::orion::texts;
use plimsoll::units::Bytes;
use skip::skip;

const WINDOW_S: u64 = 100;

/// Requests of one kind that finished in the window.
struct Finished {
    kind: &'static str,
    times: Histogram,
}

fn finished(kind: &'static str, count: u64, ns: u64) -> Finished {
    let mut times = Histogram::default();
    times.record_n(ns, count);
    Finished { kind, times }
}

fn options(command_line: &str) -> OrionOptions {
    let words: Vec<String> = command_line.split_whitespace().map(str::to_owned).collect();
    match parse(&words).unwrap() {
        OrionCommand::Run(options) => options,
        OrionCommand::Help => panic!("no help was asked for"),
    }
}

/// The run that a command line makes, with what `seen` says of each point (small and large load).
fn run(command_line: &str, luns: &[Lun], seen: impl Fn(u32, u32) -> Vec<Finished>) -> Run {
    let options = options(command_line);
    let walk = walk(&options, luns).unwrap();
    let steps = (0..).zip(&walk.points).map(|(index, point)| Step {
        load: Intensity { sessions: Some(point.small + point.large), ..Intensity::default() },
        level: Some(Level::Orion(OrionLevel { small: point.small, large: point.large })),
        window: Window { offset_ns: 0, warmup_ns: 0, duration_ns: WINDOW_S * 1_000_000_000, ending: Ending::Time },
        outcome: Outcome::Completed,
        operations: seen(point.small, point.large)
            .into_iter()
            .map(|Finished { kind, times }| OperationStats {
                kind: kind.to_owned(),
                count: times.count(),
                errors: 0,
                block_touches: times.count(),
                service: times.clone(),
                response: times,
                transactions: None,
                failed: Default::default(),
            })
            .collect(),
        ..Step::new(index, point.label())
    });
    let words = ["plimsoll", "io", "orion"].into_iter().chain(command_line.split_whitespace());
    Run {
        format: FORMAT,
        id: "20261120-103000-orion".to_owned(),
        name: "orion".to_owned(),
        tool: Tool { name: "plimsoll".to_owned(), version: "0.1.0".to_owned() },
        load: Load::Orion(walk.load(&options)),
        check: None,
        command: words.map(str::to_owned).collect(),
        started_at: Timestamp("2026-11-20T10:30:00Z".parse().unwrap()),
        ended_at: None,
        outcome: Outcome::Completed,
        tags: BTreeMap::new(),
        seed: Some(1),
        parameters: Load::Orion(walk.load(&options)).parameters(),
        target: Target {
            facts: TargetFacts {
                files: FileFacts { luns: luns.iter().map(Lun::facts).collect(), ..FileFacts::default() },
                ..TargetFacts::default()
            },
            ..Target::default()
        },
        environment: Environment::default(),
        notes: Vec::new(),
        imported: None,
        part: None,
        like: None,
        merged: None,
        parts: Vec::new(),
        steps: steps.collect(),
    }
}

fn text_of(run: &Run, suffix: &str) -> String {
    texts(run).unwrap().into_iter().find(|(name, _)| *name == suffix).unwrap().1
}

/// A specimen of ORION's output; `None`, and a word on stderr, where there are none.
fn specimen(name: &str) -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus/orion").join(name);
    let text = fs::read_to_string(&path).ok();
    if text.is_none() {
        skip(format_args!("there is no specimen {}", path.display()));
    }
    text
}

/// What stands after `before` in the line that begins with it, up to a blank.
fn figure<'a>(text: &'a str, before: &str) -> &'a str {
    let rest = text.lines().find_map(|line| line.strip_prefix(before)).unwrap();
    rest.split_whitespace().next().unwrap()
}

/// Small and large load at the end of the line that begins with `before`.
fn place(text: &str, before: &str) -> (u32, u32) {
    let line = text.lines().find(|line| line.starts_with(before)).unwrap();
    let (_, place) = line.split_once(" @ Small=").unwrap();
    let (small, large) = place.split_once(" and Large=").unwrap();
    (small.parse().unwrap(), large.parse().unwrap())
}

/// A hundredfold of a figure with two decimals.
fn hundredfold(figure: &str) -> u64 {
    (figure.parse::<f64>().unwrap() * 100.0).round() as u64
}

const MBPS: &str = "Maximum Large MBPS=";
const IOPS: &str = "Maximum Small IOPS=";
const LATENCY: &str = "Minimum Small Latency=";

/// What each point of a run must have finished for the figures of a summary to come out.
fn as_in(summary: &str) -> impl Fn(u32, u32) -> Vec<Finished> {
    let (mbps, mbps_at) = (hundredfold(figure(summary, MBPS)), place(summary, MBPS));
    let (iops, iops_at) = (figure(summary, IOPS).parse::<u64>().unwrap(), place(summary, IOPS));
    let latency_at = place(summary, LATENCY);
    move |small, large| {
        let at = (small, large);
        if small == 0 {
            // 100 seconds, so that the hundredfold is the count of 1 MiB requests.
            return vec![finished("large read", if at == mbps_at { mbps } else { 1 }, 5_000_000)];
        }
        let count = if at == iops_at { iops * WINDOW_S } else { WINDOW_S };
        vec![finished("read", count, if at == latency_at { 190_000 } else { 500_000 })]
    }
}

#[test]
fn summaries_are_those_of_orion_11_1_but_for_release_and_unit() {
    for name in ["orion_11.1_simple_sdb.txt", "orion_11.1_simple_vdb.txt", "orion_11.1_simple_vdd.txt"] {
        let Some(theirs) = specimen(name) else { return };
        let device = theirs.lines().find_map(|line| line.strip_prefix("Name: ")).unwrap();
        let (path, bytes) = device.split_once("  Size: ").unwrap();
        let luns = [Lun { path: path.into(), bytes: Bytes(bytes.parse().unwrap()) }];
        let ours = text_of(&run(command_line_of(&theirs), &luns, as_in(&theirs)), "_summary.txt");
        let mut lines = ours.lines();
        for line in theirs.lines().skip(1).filter(|line| !line.is_empty() && !line.starts_with(LATENCY)) {
            assert!(lines.any(|ours| ours == line), "{name}: `{line}` is not there, or not in its place:\n{ours}");
        }
        assert_eq!(place(&ours, LATENCY), place(&theirs, LATENCY), "{name}");
    }
}

/// The command line that a summary reports.
fn command_line_of(summary: &str) -> &str {
    summary.lines().skip_while(|line| *line != "Commandline:").nth(1).unwrap()
}

#[test]
fn the_best_points_are_reported_as_11_2_on_windows_tells_them() {
    let Some(theirs) = specimen("orion_11.2_windows_simple_results.txt") else { return };
    let luns = [Lun { path: "/dev/sdb".into(), bytes: Bytes::gib(20) }];
    let ours = text_of(&run("-run simple", &luns, as_in(&theirs)), "_summary.txt");
    for line in theirs.lines().filter(|line| !line.starts_with(LATENCY)) {
        assert!(ours.lines().any(|ours| ours == line), "`{line}` is not in\n{ours}");
    }
}

/// Bounds and count of reads of a row of a histogram.
fn row(line: &str) -> Option<(u64, u64, u64)> {
    let mut words = line.split_whitespace();
    let from = words.next()?.parse().ok()?;
    let to = words.nth(1)?.parse().ok()?;
    (words.next()? == "us:").then_some(())?;
    Some((from, to, words.next()?.parse().ok()?))
}

#[test]
fn best_points_and_histogram_are_those_of_19_3() {
    let Some(theirs) = specimen("orion_19.3_simple_acfs_console_histogram.txt") else { return };
    let luns: Vec<Lun> = (0..6).map(|n| Lun { path: format!("/acfs/{n}").into(), bytes: Bytes::gib(1) }).collect();
    let usual = as_in(&theirs);
    let latency_at = place(&theirs, LATENCY);
    let rows: Vec<(u64, u64, u64)> = theirs.lines().filter_map(row).collect();
    assert_eq!(rows.len(), 9);
    // Reads in their buckets, the extremes as reported, and the fullest bucket where the mean comes out.
    let (min_ns, mean_ns, max_ns) = (63_652, 97_677, 2_133_198);
    let total: u64 = rows.iter().map(|(.., count)| count).sum();
    let fullest = rows.iter().map(|(.., count)| *count).max().unwrap();
    let time_of = |(from, to, _): &(u64, u64, u64)| match (*from, *to) {
        (32, 64) => min_ns,
        (2_048, 4_096) => max_ns,
        (from, to) => (from + to) * 500,
    };
    let of_others: u64 = rows.iter().filter(|row| row.2 != fullest).map(|row| time_of(row) * row.2).sum();
    let mut times = Histogram::default();
    for row in &rows {
        let ns = if row.2 == fullest { (mean_ns * total - of_others) / fullest } else { time_of(row) };
        times.record_n(ns, row.2);
    }
    let run = run("-run simple -testname bmtfile-acfs -hugenotneeded", &luns, |small, large| {
        if (small, large) == latency_at {
            vec![Finished { kind: "read", times: times.clone() }]
        } else {
            usual(small, large)
        }
    });
    let ours = text_of(&run, "_summary.txt");
    let theirs_from = theirs.find(MBPS).unwrap();
    // A standard deviation and the mean at the most IOPS do not follow from the figures that are reported.
    let known = |text: &str| -> Vec<String> {
        text.lines()
            .filter(|line| !(line.starts_with("Small Read Latency") && line.ends_with("Small=10 and Large=0")))
            .map(|line| line.split(", std dev").next().unwrap().to_owned())
            .collect()
    };
    assert_eq!(known(&ours[ours.find(MBPS).unwrap()..]), known(&theirs[theirs_from..]));
}

#[test]
fn a_command_line_of_orions_becomes_its_files() {
    let luns = [Lun { path: "/dev/sdb".into(), bytes: Bytes::gib(20) }];
    let command_line = "-run advanced -matrix row -num_large 1 -type seq -num_streamIO 2 -write 100 -testname san";
    let run = run(command_line, &luns, |small, _| {
        let mut seen = vec![finished("large write", WINDOW_S * 3, 9_000_000)];
        if small > 0 {
            seen.push(finished("write", u64::from(small) * WINDOW_S * 7, 140_000));
        }
        seen
    });
    let summary = text_of(&run, "_summary.txt");
    for line in [
        command_line,
        "IO Types: Small Random IOs, Large Sequential Streams",
        "Number of Concurrent IOs Per Stream: 2",
        "Write: 100%",
        "Small Columns:,      0,      1,      2,      3,      4,      5",
        "Large Columns:,      1",
        "Total Data Points: 6",
        "Name: /dev/sdb  Size: 21474836480",
        "Maximum Large MBPS=3.00 @ Small=0 and Large=1",
        "Maximum Small IOPS=35 @ Small=5 and Large=1",
        "Minimum Small Latency=140.000 usecs @ Small=1 and Large=1",
    ] {
        assert!(summary.lines().any(|ours| ours == line), "`{line}` is not in\n{summary}");
    }
    assert!(!summary.contains("Small Read Latency"), "{summary}");
    assert!(text_of(&run, "_iops.csv").ends_with("\n          1,      7,     14,     21,     28,     35\n"));
    assert!(text_of(&run, "_mbps.csv").ends_with("\n          1,   3.00,   3.00,   3.00,   3.00,   3.00,   3.00\n"));
}
