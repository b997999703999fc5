//! Histograms of block I/O that kernel tracing made: `biolatency` of bcc and of its C version, as text and as dictionaries
//! (`-j`), `biolatency.bt` of bpftrace, and `iolatency` of perf-tools.
//!
//! Each prints tables of counts, one for each disk or kind of request if asked, once or every few seconds. bcc and perf-tools begin to
//! count anew with each print; a map of bpftrace goes on unless its script clears it.

pub(super) mod bcc;
pub(super) mod bpftrace;
pub(super) mod dictionary;
pub(super) mod iolatency;

use model::record::Workload;
use std::collections::BTreeMap;

use super::draft::step;
use super::{Began, Draft};
use model::record::{Histogram, Interval, ReportedBucket, WaitStats};

/// How the traced requests are called, without the queue before the device.
const EVENT: &str = "block I/O";
/// Tables of one file: four disks every second for a day.
const MAX_TABLES: usize = 400_000;
/// Disks or kinds of requests of one file.
const MAX_EVENTS: usize = 1_000;
const DAY_S: i64 = 86_400;

/// What a line says that begins a trace of block I/O, of all these programs.
const BEGINS: [&str; 2] = ["Tracing block device I/O", "Tracing block I/O"];

/// Whether a line says what is traced, and whether that is block I/O.
fn traces_block_io(line: &str) -> Option<bool> {
    if line.trim_start().starts_with("Tracing ") {
        return Some(BEGINS.iter().any(|begin| line.contains(begin)));
    }
    command(line).is_some().then_some(true)
}

/// The words of a command that runs one of these programs, as a shell shows it.
fn command(line: &str) -> Option<Vec<String>> {
    let line = line.trim_start().trim_start_matches(['#', '$', '+', '>', ' ']);
    let words: Vec<&str> = line.split_whitespace().take(24).collect();
    let is_tool = |word: &&str| {
        let name = word.rsplit('/').next().unwrap_or(word);
        ["biolatency", "iolatency"].iter().any(|tool| name.strip_prefix(tool).is_some_and(is_ending))
    };
    let at = words.iter().take(3).position(is_tool)?;
    // A sentence about it has other words before or after it.
    let are_options = |word: &&str| word.starts_with('-') || word.bytes().all(|byte| byte.is_ascii_digit());
    let before = words.get(..at)?.iter().all(|word| ["sudo", "bpftrace"].contains(word));
    (before && words.get(at + 1..)?.iter().all(are_options))
        .then(|| words.iter().map(|word| (*word).to_owned()).collect())
}

fn is_ending(rest: &str) -> bool {
    ["", ".py", ".bt", "-bpfcc"].contains(&rest)
}

/// One table of counts.
#[derive(Debug, Default)]
struct Table {
    /// When it was printed, in seconds of some clock.
    at_s: Option<i64>,
    /// The disk or the kind of requests, if it is of one.
    of: String,
    buckets: Vec<ReportedBucket>,
    /// The sum of all durations, where it is reported, and of how many.
    sum: Option<(u64, u64)>,
}

impl Table {
    fn histogram(&self) -> Histogram {
        let histogram = Histogram::reported(self.buckets.iter().copied(), None, None, None);
        match self.sum {
            Some((total_ns, count)) if count == histogram.count() => {
                Histogram::reported(self.buckets.iter().copied(), Some(total_ns), None, None)
            }
            _ => histogram,
        }
    }
}

/// What was printed of one trace.
#[derive(Debug, Default)]
struct Trace {
    program: &'static str,
    command: Vec<String>,
    tables: Vec<Table>,
    /// The time between two prints, where it is reported.
    every_s: Option<u64>,
    /// Date and time of the first print, where they are reported.
    first_at: Option<Began>,
    notes: Vec<String>,
}

/// Everything that was printed at one time.
#[derive(Debug, Default)]
struct Print {
    at_s: Option<i64>,
    tables: BTreeMap<String, Histogram>,
}

impl Trace {
    fn new(program: &'static str) -> Self {
        Self { program, ..Self::default() }
    }

    /// Adds a table; false if there are too many.
    fn add(&mut self, table: Table) -> bool {
        let fits = self.tables.len() < MAX_TABLES;
        if fits {
            self.tables.push(table);
        }
        fits
    }

    /// The run that it was; nothing if it counted nothing.
    fn draft(self) -> Option<Draft> {
        let Self { program, command, tables, every_s, first_at, notes } = self;
        let mut draft = Draft::new(Workload::Io, program, format!("{EVENT} by {program}"));
        // `-Q` begins to count when a request enters the queue of the kernel.
        let is_queued =
            command.iter().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains('Q'))
                || command.iter().any(|word| word == "--queued");
        let layer = if is_queued { "OS file" } else { "device" };
        let event = |of: &str| match (is_queued, of) {
            (true, "") => format!("{EVENT} with its queue"),
            (false, "") => EVENT.to_owned(),
            (true, of) => format!("{EVENT} of {of} with its queue"),
            (false, of) => format!("{EVENT} of {of}"),
        };
        draft.command = command;
        draft.notes = notes;
        draft.notes.push("All block I/O of the machine is counted, whoever asked for it.".to_owned());
        let mut prints: Vec<Print> = Vec::new();
        let mut all: BTreeMap<String, Histogram> = BTreeMap::new();
        for table in &tables {
            let histogram = table.histogram();
            let is_next = |print: &Print| print.at_s != table.at_s || print.tables.contains_key(&table.of);
            if prints.last().is_none_or(is_next) {
                prints.push(Print { at_s: table.at_s, ..Print::default() });
            }
            if all.len() < MAX_EVENTS || all.contains_key(&table.of) {
                all.entry(table.of.clone())
                    .or_insert_with(|| Histogram::reported([], None, None, None))
                    .merge(&histogram);
                if let Some(print) = prints.last_mut() {
                    print.tables.insert(table.of.clone(), histogram);
                }
            }
        }
        if all.values().all(|histogram| histogram.count() == 0) {
            return None;
        }
        let mut step = step(0, "all", 0);
        let between = |before: i64, now: i64| if now < before { now + DAY_S - before } else { now - before };
        let mut lengths: Vec<Option<u64>> = vec![every_s];
        lengths.extend(prints.iter().zip(prints.iter().skip(1)).map(|(before, now)| {
            let between_prints =
                before.at_s.zip(now.at_s).and_then(|(before, now)| u64::try_from(between(before, now)).ok());
            between_prints.filter(|length_s| *length_s > 0).or(every_s)
        }));
        if prints.len() > 1 && every_s.is_none() {
            // The first print has none before it; all are as far apart.
            lengths[0] = lengths.get(1).copied().flatten();
        }
        let lengths: Option<Vec<u64>> = lengths.into_iter().collect();
        match lengths {
            Some(lengths) => {
                for (print, length_s) in prints.into_iter().zip(&lengths) {
                    let (offset_ns, duration_ns) = (step.window.duration_ns, length_s.saturating_mul(1_000_000_000));
                    step.window.duration_ns = offset_ns.saturating_add(duration_ns);
                    let counted = print.tables.into_iter().filter(|(_, histogram)| histogram.count() > 0);
                    let waits = counted.map(|(of, histogram)| (event(&of), histogram)).collect();
                    step.intervals.push(Interval { offset_ns, duration_ns, waits, ..Interval::default() });
                }
                let first_s = lengths.first().copied().and_then(|length_s| i64::try_from(length_s).ok()).unwrap_or(0);
                draft.began = first_at.and_then(|at| before(at, first_s));
            }
            None if prints.len() > 1 => draft.notes.push(format!(
                "Its {} prints are added up: how far they lie apart is not reported, so there are no rates.",
                prints.len()
            )),
            None => draft.notes.push("How long it traced is not reported, so there are no rates.".to_owned()),
        }
        let waits = all.into_iter().filter(|(_, histogram)| histogram.count() > 0).map(|(of, waits)| WaitStats {
            event: event(&of),
            class: String::new(),
            layer: layer.to_owned(),
            foreground: true,
            waits,
            reported: Vec::new(),
        });
        step.waits = waits.collect();
        draft.steps.push(step);
        Some(draft)
    }
}

/// The same clock, `seconds` earlier.
fn before(at: Began, seconds: i64) -> Option<Began> {
    let earlier = at.timestamp().0.checked_sub(jiff::SignedDuration::from_secs(seconds)).ok()?;
    Some(match at {
        Began::Utc(_) => Began::Utc(model::record::Timestamp(earlier)),
        Began::Wall(_) => Began::Wall(model::record::Timestamp(earlier)),
    })
}

/// `06:20:16` as seconds since midnight.
fn time_of_day(text: &str) -> Option<i64> {
    let time = jiff::civil::Time::strptime("%H:%M:%S", text.trim()).ok()?;
    Some(i64::from(time.hour()) * 3_600 + i64::from(time.minute()) * 60 + i64::from(time.second()))
}

/// The unit of a table in nanoseconds.
fn unit_ns(unit: &str) -> Option<u64> {
    Some(match unit {
        "nsecs" => 1,
        "usecs" => 1_000,
        "msecs" => 1_000_000,
        _ => return None,
    })
}

/// The bucket from `from` up to, not including, `to`, in a unit.
fn bucket(from: u64, to: u64, unit_ns: u64, count: u64) -> Option<ReportedBucket> {
    (from < to).then(|| ReportedBucket { from_ns: from.saturating_mul(unit_ns), to_ns: to.checked_mul(unit_ns), count })
}

#[cfg(test)]
mod tests;
