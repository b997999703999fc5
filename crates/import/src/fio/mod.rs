//! What fio prints: its JSON ([`json`]), its normal output ([`text`]) and its terse rows ([`terse`]); and what it logs of latencies
//! ([`histogram_log`]).
//!
//! Each of the first three is read into the same few things ([`job`]): an invocation, its jobs, and what each did in each direction;
//! [`assemble`] makes a draft of them, so that a run reads the same whichever way it was printed.
//!
//! Decisions that hold for all three:
//! - One step for each job as fio lists it: a process, or a group of them with `group_reporting`. Steps of one group ran at the
//!   same time, which a note says; their sum is reported only where fio reports one itself.
//! - Latency is that of completion (`clat`) unless only the total (`lat`) has percentiles. Of that the histogram is made, from
//!   bins where there are any, else from percentiles.
//! - Status reports of one invocation are cumulative: only the last counts.
//! - Where a file holds several forms of one result, only one of them is taken: JSON, else terse rows, else normal output.

mod assemble;
mod at_once;
pub(super) mod json;
mod latency;
mod options;
pub(super) mod terse;
#[cfg(test)]
mod tests;
pub(super) mod text;
#[cfg(test)]
mod unusual_tests;

use std::collections::BTreeMap;

use crate::draft::{self, Began, reported_figure, step};
use crate::{Draft, ImportError, Notes, Source, interval};
use assemble::LAYER;
use model::record::invariants::{descending, is_beyond_whole};
use model::record::{Histogram, Metric, OperationStats, ReportedBucket, ReportedFigure, Step, Timestamp, Workload};
use model::units::Nanos;

/// What to say of status reports that a later one replaced.
fn of_earlier_reports(left_out: usize) -> Option<String> {
    let said = || {
        format!(
            "fio reported {left_out} times before on the same jobs; reports are cumulative, and only the last counts."
        )
    };
    (left_out > 0).then(said)
}

/// One start of fio.
#[derive(Debug, Default)]
pub struct Invocation {
    /// Its version, such as `3.36`; empty where that is not reported.
    pub version: String,
    /// The command line, where a shell shows it, secrets left out.
    pub command: Vec<String>,
    /// Options of all jobs, by fio's names.
    pub globals: BTreeMap<String, String>,
    /// Its jobs, as they are listed.
    pub jobs: Vec<Job>,
    /// When it began, or was to have begun by the time that it ran.
    pub began: Option<Began>,
    /// When it printed its results.
    pub ended: Option<Timestamp>,
    /// What it reports on the disks below, in all its time.
    pub disks: Vec<ReportedFigure>,
    /// What it reports on all jobs together.
    pub sums: Vec<ReportedFigure>,
    /// What it said as it was ended by a signal.
    pub signal: Option<String>,
    /// What the user should know.
    pub notes: Vec<String>,
    /// Whether all options that were set are reported, so that the others have fio's defaults.
    pub has_all_options: bool,
}

/// One job, or a group of them that is reported as one.
#[derive(Debug, Default)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// The machine that it ran on, where that is reported.
    pub host: Option<String>,
    /// The number of its group.
    pub group: u64,
    /// Its process.
    pub pid: Option<u64>,
    /// The error that ended it.
    pub failure: Option<String>,
    /// Its code, 0 where there was none.
    pub error: Option<i64>,
    /// Requests that failed.
    pub errors: Option<u64>,
    /// Requests that each of its processes had outstanding at most, where that stands among its results.
    pub depth: Option<u64>,
    /// How many processes it sums up, where that is reported.
    pub processes: Option<u64>,
    /// How long its processes ran, all added up, in milliseconds.
    pub processes_ms: Option<f64>,
    /// Its own options, by fio's names; absent where the output has no place for them.
    pub options: Option<BTreeMap<String, String>>,
    /// What it did in each direction in which it did something.
    pub directions: Vec<Direction>,
    /// How many seconds fio had been running when it was printed.
    pub elapsed_s: Option<f64>,
    /// When it began, in milliseconds since 1970.
    pub start_ms: Option<f64>,
    /// All else that is kept, by fio's names.
    pub reported: Vec<ReportedFigure>,
    /// Whether its counts had to be computed from whole requests per second.
    pub counts_from_rate: bool,
    /// Whether the end of its results is missing, so that it may have done more than stands here.
    pub is_partial: bool,
    /// Whether its bytes are rounded to the digits that were printed.
    pub bytes_rounded: bool,
    /// What cannot be of its figures.
    pub doubts: Vec<String>,
}

impl Job {
    /// Whether it did anything.
    pub fn did_something(&self) -> bool {
        !self.directions.is_empty()
    }

    /// What it did in one direction.
    pub fn direction(&self, way: Way) -> Option<&Direction> {
        self.directions.iter().find(|direction| direction.way == way)
    }
}

/// Which way requests went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Trims (discards).
    Trim,
    /// All of them together: `unified_rw_reporting`.
    Mixed,
    /// `fsync`, `fdatasync` or `sync_file_range`.
    Sync,
}

impl Way {
    /// fio's name of it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
            Self::Mixed => "mixed",
            Self::Sync => "sync",
        }
    }

    /// Its place in lists of reads, writes and trims.
    pub const fn place(self) -> Option<usize> {
        match self {
            Self::Read => Some(0),
            Self::Write => Some(1),
            Self::Trim => Some(2),
            Self::Mixed | Self::Sync => None,
        }
    }
}

/// What a job did in one direction.
#[derive(Debug)]
pub struct Direction {
    /// Which.
    pub way: Way,
    /// Requests.
    pub requests: Option<u64>,
    /// Bytes.
    pub bytes: Option<u64>,
    /// How long it took, in milliseconds.
    pub runtime_ms: Option<f64>,
    /// How long each request took.
    pub latency: Option<Latency>,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// From submission to completion: `clat`.
    Completion,
    /// Submission and completion: `lat`.
    Total,
}

/// How long requests took.
#[derive(Debug, Default, Clone)]
pub struct Latency {
    /// What is measured; absent of syncs, of which fio has one measure.
    pub measure: Option<Measure>,
    /// How many were measured, where that is reported.
    pub samples: Option<u64>,
    /// Mean, in nanoseconds.
    pub mean_ns: Option<f64>,
    /// Shortest.
    pub min_ns: Option<u64>,
    /// Longest.
    pub max_ns: Option<u64>,
    /// Percentages, in rising order, and the duration in nanoseconds that each did not exceed.
    pub percentiles: Vec<(f64, f64)>,
    /// Counts, where fio reports them.
    pub bins: Vec<ReportedBucket>,
    /// Shares of durations in percent, in buckets as wide as fio's tables of latency have them.
    pub shares: Vec<(u64, Option<u64>, f64)>,
}

impl Latency {
    /// The latency of a direction: that of completion unless only the total is distributed, or was measured. A part that is reported as
    /// longer than its whole cannot be: then the whole counts, which has no percentiles as a rule.
    pub fn chosen(completion: Self, total: Self, takes_total: bool, way: Way, doubts: &mut Vec<String>) -> Self {
        let crossing = |times: &Self| {
            let show = |ns: f64| Nanos(ns as u64).to_string();
            descending(&format!("the latency of {}", way.name()), &times.percentiles, show)
        };
        let is_beyond = is_beyond_whole(completion.mean_ns.unwrap_or(0.0), total.mean_ns.unwrap_or(0.0));
        let mut chosen = if is_beyond || takes_total { total } else { completion };
        if let Some(found) = crossing(&chosen) {
            doubts.push(found.to_string());
            chosen.percentiles.clear();
        }
        chosen
    }

    /// Whether it says how durations are distributed.
    pub fn is_distribution(&self) -> bool {
        !self.percentiles.is_empty() || !self.bins.is_empty()
    }
}

/// A figure of one direction, in `unit`, of which one is so many bytes where it is one of bytes.
fn figure_of(way: Way, figure: &str, (unit, bytes): (&str, f64), value: f64) -> ReportedFigure {
    let metric = match (way, figure) {
        (Way::Read, "iops") => Some((Metric::Reads, 1.0)),
        (Way::Write, "iops") => Some((Metric::Writes, 1.0)),
        (Way::Read, "bw") => Some((Metric::ReadMegabytes, bytes / 1e6)),
        (Way::Write, "bw") => Some((Metric::WriteMegabytes, bytes / 1e6)),
        (Way::Mixed, "bw") => Some((Metric::Megabytes, bytes / 1e6)),
        _ => None,
    };
    let reported = reported_figure(LAYER, format!("{} {figure}", way.name()), unit, value);
    match metric {
        Some((metric, factor)) => reported.is(metric, factor),
        None => reported,
    }
}

/// What stands before the counts: time, direction, block size.
const BEFORE: usize = 3;
const MS: u64 = 1_000_000;
/// Intervals of one log: two days of one each second.
const MAX_INTERVALS: usize = 200_000;
const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];
/// How files of such logs end.
const ENDINGS: [&str; 2] = ["_clat_hist", "_hist"];

/// Whether its first line has a time, a direction, a size, and as many counts as fio writes.
pub(crate) fn recognises_histogram_log(head: &str) -> bool {
    let Some(line) = head.lines().find(|line| !line.trim().is_empty()) else { return false };
    let is_count = |cell: &str| !cell.trim().is_empty() && cell.trim().bytes().all(|byte| byte.is_ascii_digit());
    line.split(',').all(is_count) && latency::columns_of_log(line.split(',').count().saturating_sub(BEFORE)).is_some()
}

/// One line.
struct Row {
    at_ms: u64,
    direction: usize,
    block_bytes: u64,
    counts: Vec<u64>,
}

fn row(line: &str, columns: usize) -> Option<Row> {
    let mut cells = line.split(',').map(|cell| cell.trim().parse::<u64>().ok());
    let (at_ms, direction, block_bytes) = (cells.next()??, cells.next()??, cells.next()??);
    let direction = usize::try_from(direction).ok().filter(|direction| *direction < DIRECTIONS.len())?;
    let counts: Vec<u64> = cells.collect::<Option<_>>()?;
    (counts.len() == columns).then_some(Row { at_ms, direction, block_bytes, counts })
}

/// The run in it: a job's requests.
pub(crate) fn read_histogram_log(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let first = source.lines().find(|(_, line)| !line.trim().is_empty()).map_or("", |(_, line)| line);
    let columns = first.split(',').count().saturating_sub(BEFORE);
    let Some(edges) = latency::columns_of_log(columns) else {
        return Err(ImportError::no_result(source, "it has not as many columns as a log of fio's histograms"));
    };
    let histogram_of = |counts: &[u64]| {
        let buckets = edges.iter().zip(counts).filter(|(_, count)| **count > 0);
        let buckets =
            buckets.map(|((from_ns, to_ns), count)| ReportedBucket { from_ns: *from_ns, to_ns: *to_ns, count: *count });
        Histogram::reported(buckets, None, None, None)
    };
    let mut step = step(0, "all", 0);
    let mut sums: [Vec<u64>; DIRECTIONS.len()] = Default::default();
    let mut block_bytes = Vec::new();
    let mut seen = [false; DIRECTIONS.len()];
    for (number, line) in source.lines().filter(|(_, line)| !line.trim().is_empty()) {
        let Some(row) = row(line, columns) else {
            notes.not_understood(number, format!("a time, a direction, a size and {columns} counts were expected"));
            continue;
        };
        let ended_ns = row.at_ms.saturating_mul(MS);
        let began_ns = step.window.duration_ns;
        // Lines of one time may be a millisecond apart.
        if step.intervals.is_empty() || seen.get(row.direction).copied().unwrap_or(false) {
            if ended_ns < began_ns {
                return Err(ImportError::damaged(source, number, "its time is before that of the line before"));
            }
            if step.intervals.len() == MAX_INTERVALS {
                let what = format!("it has more than {MAX_INTERVALS} intervals");
                return Err(ImportError::damaged(source, number, what));
            }
            step.intervals.push(interval::of(&step, began_ns, ended_ns - began_ns));
            step.window.duration_ns = ended_ns;
            seen = Default::default();
        }
        if let (Some(seen), Some(sum)) = (seen.get_mut(row.direction), sums.get_mut(row.direction)) {
            *seen = true;
            sum.resize(columns, 0);
            sum.iter_mut().zip(&row.counts).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
        }
        if !block_bytes.contains(&row.block_bytes) && block_bytes.len() < 2 {
            block_bytes.push(row.block_bytes);
        }
        if let Some(interval) = step.intervals.last_mut() {
            let histogram = histogram_of(&row.counts);
            let count = histogram.count();
            interval.response.merge(&histogram);
            interval.reported.insert(format!("{} requests", DIRECTIONS[row.direction]), count as f64);
            let counters = &mut interval.counters;
            counters.operations = Some(counters.operations.unwrap_or(0).saturating_add(count));
            match row.direction {
                0 => counters.physical_reads = Some(count),
                1 => counters.physical_writes = Some(count),
                _ => {}
            }
        }
    }
    for (kind, sum) in DIRECTIONS.iter().zip(&sums) {
        add(&mut step, kind, histogram_of(sum));
    }
    if step.operations.is_empty() {
        return Err(ImportError::no_result(source, "it is a log of fio's histograms that counted nothing"));
    }
    let (title, job) = named(source.path());
    let mut draft = Draft::new(Workload::Io, "fio", title);
    draft.parameters.extend(job.map(|job| ("job".to_owned(), job.to_owned())));
    if let [block_bytes] = block_bytes[..] {
        draft.target.block_bytes = Some(block_bytes);
    }
    draft.notes.push("These are completion latencies, without the time that submission takes.".to_owned());
    draft.notes.push(
        "fio logs no histogram of the time after its last line, so a run goes on for up to one interval more."
            .to_owned(),
    );
    draft.steps.push(step);
    Ok(vec![draft])
}

/// Adds what was counted of one direction.
fn add(step: &mut Step, kind: &str, response: Histogram) {
    let count = response.count();
    if count == 0 {
        return;
    }
    step.reported.push(reported_figure(LAYER, format!("{kind} requests"), "", count as f64));
    let counters = &mut step.counters;
    counters.operations = Some(counters.operations.unwrap_or(0).saturating_add(count));
    match kind {
        "read" => counters.physical_reads = Some(count),
        "write" => counters.physical_writes = Some(count),
        _ => {}
    }
    step.operations.push(OperationStats { count, ..draft::operations(kind, response.clone(), response) });
}

/// What fio was asked to call the log, and the number of the job: `randread_clat_hist.2.log` is `randread` and `2`.
fn named(path: &str) -> (&str, Option<&str>) {
    let name = path.rsplit('/').next().unwrap_or(path);
    let name = ["gz", "log"]
        .iter()
        .fold(name, |name, ending| name.strip_suffix(ending).and_then(|name| name.strip_suffix('.')).unwrap_or(name));
    let (name, job) = match name.rsplit_once('.') {
        Some((rest, job)) if !job.is_empty() && job.bytes().all(|byte| byte.is_ascii_digit()) => (rest, Some(job)),
        _ => (name, None),
    };
    (ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name), job)
}

#[cfg(test)]
mod histogram_log_tests {
    use proptest::prelude::*;

    use super::*;
    use crate::specimens::{damaged, only, source, survives};
    use crate::{read as read_any, recognise};

    /// A line with these counts by column.
    fn line(at_ms: u64, direction: u64, counts: &[(usize, u64)], columns: usize) -> String {
        let mut cells = vec![0; columns];
        counts.iter().for_each(|(at, count)| cells[*at] = *count);
        let cells: Vec<String> = cells.iter().map(u64::to_string).collect();
        format!("{at_ms}, {direction}, 4096, {}\n", cells.join(", "))
    }

    #[test]
    fn lines_are_intervals_and_directions_operations() {
        let text = line(1_003, 0, &[(130, 7)], 1_856)
            + &line(1_004, 1, &[(127, 1)], 1_856)
            + &line(2_003, 0, &[(130, 2), (1_855, 1)], 1_856);
        let draft = only("fio-hist-log", &text);
        let step = &draft.steps[0];
        assert_eq!(
            (step.window.duration_ns, step.intervals.len(), draft.target.block_bytes),
            (2_003 * MS, 2, Some(4_096))
        );
        assert_eq!(
            (step.counters.operations, step.counters.physical_reads, step.counters.physical_writes),
            (Some(11), Some(10), Some(1))
        );
        let reads = &step.operations[0];
        assert_eq!((reads.kind.as_str(), reads.response.quantiles_ns(&[0.9, 1.0])), ("read", vec![Some(134), None]));
        assert_eq!(step.intervals[0].response.below_ns(128), (1, 1));
        assert_eq!((step.intervals[1].offset_ns, step.intervals[1].duration_ns), (1_003 * MS, 1_000 * MS));
        assert_eq!(step.intervals[1].counters.physical_reads, Some(3));
    }

    #[test]
    fn other_logs_of_fio_and_other_tables_are_not_taken_for_one() {
        assert!(recognise("1003, 4096, 0, 4096\n").is_none());
        assert!(recognise(&line(1, 0, &[(1, 1)], 1_855)).is_none());
        assert!(recognise(&line(1, 0, &[(1, 1)], 232).replace("4096", "4.1")).is_none());
    }

    #[test]
    fn cut_lines_are_noted_and_times_that_go_back_are_damage() {
        let (first, second) = (line(500, 0, &[(3, 1)], 29), line(1_000, 0, &[(3, 1)], 29));
        let (_, drafts, notes) = read_any(&source(&format!("{first}{}", &second[..40]))).unwrap();
        assert_eq!((drafts[0].steps[0].counters.operations, notes.into_list().len()), (Some(1), 1));
        assert!(
            read_any(&source(&(second + &first))).unwrap_err().to_string().contains("before that of the line before")
        );
        assert!(read_any(&source(&line(500, 0, &[], 29))).unwrap_err().to_string().contains("counted nothing"));
    }

    #[test]
    fn names_of_logs_are_those_of_runs() {
        let names = ["/a/randread_clat_hist.2.log", "x_clat_hist.1.log.gz", "my.log", "hist"].map(named);
        assert_eq!(names, [("randread", Some("2")), ("x", Some("1")), ("my", None), ("hist", None)]);
    }

    static SPECIMEN: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
        line(500, 0, &[(3, 1), (20, 9)], 29) + &line(500, 1, &[(28, 4)], 29) + &line(1_000, 0, &[(7, 2)], 29)
    });

    proptest! {
        #[test]
        fn damaged_files_give_runs_or_errors(file in damaged(&[SPECIMEN.as_str()])) {
            survives(file);
        }
    }
}

#[cfg(test)]
mod mangled {
    //! What damage does to fio's output.

    use proptest::prelude::*;

    use super::tests::{JSON_2, JSON_3, TERSE, TEXT_2, TEXT_3};
    use crate::Source;
    use model::record::Timestamp;

    /// What happens to files on their way.
    #[derive(Debug, Clone)]
    enum Damage {
        Cut(usize),
        Flip(usize, u8),
        Repeat(usize),
        Drop(usize),
        Insert(usize, &'static str, usize),
    }

    fn damage() -> impl Strategy<Value = Damage> {
        let junk = prop::sample::select(vec![
            "9", "{", "[", ";", ",", "th=[", "e308", "-", "%=", "\u{1b}[", "\r", "K", "é", "\"", ": io=", "(",
        ]);
        prop_oneof![
            any::<usize>().prop_map(Damage::Cut),
            (any::<usize>(), 9_u8..127).prop_map(|(at, byte)| Damage::Flip(at, byte)),
            any::<usize>().prop_map(Damage::Repeat),
            any::<usize>().prop_map(Damage::Drop),
            (any::<usize>(), junk, 1_usize..2_000).prop_map(|(at, what, times)| Damage::Insert(at, what, times)),
        ]
    }

    fn damaged(text: &str, damages: &[Damage]) -> Vec<u8> {
        let mut bytes = text.as_bytes().to_vec();
        for damage in damages {
            let length = bytes.len().max(1);
            match damage {
                Damage::Cut(at) => bytes.truncate(at % length),
                Damage::Flip(at, byte) => {
                    if let Some(place) = bytes.get_mut(at % length) {
                        *place = *byte;
                    }
                }
                Damage::Insert(at, what, times) => {
                    let at = (at % length).min(bytes.len());
                    drop(bytes.splice(at..at, what.repeat(*times).into_bytes()));
                }
                Damage::Repeat(at) | Damage::Drop(at) => {
                    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
                    let at = at % lines.len();
                    if matches!(damage, Damage::Drop(_)) {
                        lines.remove(at);
                    } else {
                        lines.insert(at, lines[at]);
                    }
                    bytes = lines.join(&b'\n');
                }
            }
        }
        bytes
    }

    proptest! {
        #[test]
        fn damaged_files_give_runs_or_an_error(
            specimen in prop::sample::select(vec![JSON_3, JSON_2, TEXT_3, TEXT_2, TERSE]),
            damages in prop::collection::vec(damage(), 1..6),
        ) {
            let bytes = damaged(specimen, &damages);
            let Ok(source) = Source::new("file", bytes, Timestamp(jiff::Timestamp::UNIX_EPOCH)) else { return Ok(()) };
            if let Ok((_, drafts, _)) = crate::read(&source) {
                prop_assert!(!drafts.is_empty() && drafts.iter().all(|draft| !draft.steps.is_empty()));
                for step in drafts.iter().flat_map(|draft| &draft.steps) {
                    for operation in &step.operations {
                        prop_assert!(operation.service.count() > 0);
                    }
                }
            }
        }
    }
}
