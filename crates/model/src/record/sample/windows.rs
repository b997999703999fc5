//! Made-up reports of a database in production: one hour each, over days.

use crate::record::{Load, Workload};
use std::collections::BTreeMap;

use super::{SECOND, SEQUENTIAL_READ, wait};
use crate::record::{
    Clock, Counters, DatabaseFacts, Ending, FORMAT, Histogram, Imported, Metric, Outcome, ReportedBucket,
    ReportedFigure, Run, Step, Target, TargetFacts, TargetKind, Timestamp, Tool,
};

/// Requests of 8 KiB.
const BLOCK: u64 = 8_192;
/// The day on which the samples begin: a Monday.
pub const FIRST_DAY: &str = "2026-11-02T00:00:00Z";

/// What a report of an hour reports.
#[derive(Clone, Copy)]
pub struct Hour {
    /// Hours since [`FIRST_DAY`].
    pub at: i64,
    pub minutes: u64,
    pub reads_per_s: u64,
    pub writes_per_s: u64,
    /// Shares of reads within 1, 2, 4, 8, 16 and 32 ms, in percent; they add up to 100.
    pub within_ms: [u64; 6],
}

/// The usual shape of reads.
pub const QUICK: [u64; 6] = [80, 15, 4, 1, 0, 0];

/// A report of one instance of the database `PROD`.
pub fn report(hour: Hour) -> Run {
    let begin: jiff::Timestamp = FIRST_DAY.parse().unwrap();
    let began = begin + jiff::SignedDuration::from_hours(hour.at);
    let seconds = hour.minutes * 60;
    let (reads, writes) = (hour.reads_per_s * seconds, hour.writes_per_s * seconds);
    let mut step = Step::new(0, format!("snapshots {} to {}", 100 + hour.at, 101 + hour.at));
    step.outcome = Outcome::Completed;
    step.window.duration_ns = seconds * SECOND;
    step.window.ending = Ending::Unknown;
    step.counters = Counters {
        physical_reads: Some(reads),
        physical_read_bytes: Some(reads * BLOCK),
        physical_writes: Some(writes),
        physical_write_bytes: Some(writes * BLOCK),
        redo_bytes: Some(writes * 1_000),
        commits: Some(writes / 10),
        ..Counters::default()
    };
    let edge = |k: u32| (1_u64 << k) * 1_024_000;
    let bucket = |(k, share): (u32, u64)| ReportedBucket {
        from_ns: if k == 0 { 0 } else { edge(k - 1) },
        to_ns: Some(edge(k)),
        count: reads * share / 100,
    };
    let buckets = (0..).zip(hour.within_ms).map(bucket);
    let total_ns: u64 = (0..).zip(hour.within_ms).map(|(k, share)| edge(k) * 3 / 4 * (reads * share / 100)).sum();
    step.waits =
        vec![wait(SEQUENTIAL_READ, "User I/O", true, Histogram::reported(buckets, Some(total_ns), None, None))];
    step.reported = vec![
        ReportedFigure::new("engine", "DB Time", "min", hour.minutes as f64 * hour.reads_per_s as f64 / 500.0)
            .is(Metric::DbTime, 60.0),
        ReportedFigure::new("host", "%Idle", "%", 100.0 - hour.reads_per_s as f64 / 100.0).is(Metric::HostIdle, 1.0),
    ];
    Run {
        format: FORMAT,
        id: format!("{}-awr", began.strftime("%Y%m%d-%H%M%S")),
        name: format!("PROD snapshots {} to {}", 100 + hour.at, 101 + hour.at),
        tool: Tool { name: "awr".to_owned(), version: "19.0.0.0.0".to_owned() },
        load: Load::foreign(Workload::Database),
        check: None,
        command: Vec::new(),
        started_at: Timestamp(began),
        ended_at: Some(Timestamp(began + jiff::SignedDuration::from_secs(seconds as i64))),
        outcome: Outcome::Completed,
        tags: BTreeMap::new(),
        seed: None,
        parameters: BTreeMap::new(),
        target: Target {
            kind: Some(TargetKind::Oracle),
            address: "PROD/PROD1".to_owned(),
            block_bytes: Some(BLOCK),
            facts: TargetFacts {
                database: DatabaseFacts { id: Some(1_234_567_890), ..DatabaseFacts::default() },
                ..TargetFacts::default()
            },
            ..Target::default()
        },
        environment: crate::record::Environment::default(),
        notes: Vec::new(),
        imported: Some(Imported { files: Vec::new(), clock: Clock::Wall, not_understood: Vec::new() }),
        part: None,
        like: None,
        merged: None,
        parts: Vec::new(),
        steps: vec![step],
    }
}

/// Reads a second in an hour of the planted history: quiet nights, busy days, 100 more each day.
pub fn planted_reads(at: i64) -> u64 {
    let (day, hour) = (at.div_euclid(24), at.rem_euclid(24));
    let shape = match hour {
        0..=6 => 200,
        7..=8 => 1_000,
        9..=11 => 3_000,
        12..=13 => 2_000,
        14..=17 => 2_500,
        _ => 800,
    };
    (shape + 100 * day) as u64
}

/// Ten days of hours with a batch at 02:00 of the sixth day, a gap from a restart on the fourth day, and a report that is there
/// twice.
pub fn history() -> Vec<Run> {
    let mut runs: Vec<Run> = (0..240)
        .filter(|at| !(80..83).contains(at))
        .map(|at| {
            let is_batch = at == 5 * 24 + 2;
            let reads_per_s = if is_batch { 6_000 } else { planted_reads(at) };
            let within_ms = if is_batch { [40, 20, 20, 10, 8, 2] } else { QUICK };
            report(Hour { at, minutes: 60, reads_per_s, writes_per_s: reads_per_s / 4, within_ms })
        })
        .collect();
    // Up again at 11:20: the first report after the restart is a short one.
    runs[80] =
        report(Hour { at: 83, minutes: 40, reads_per_s: planted_reads(83), writes_per_s: 800, within_ms: QUICK });
    runs[80].started_at.0 += jiff::SignedDuration::from_mins(20);
    let mut twice = runs[10].clone();
    twice.id.push_str("-2");
    runs.push(twice);
    runs
}
