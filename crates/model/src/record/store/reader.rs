//! Reading a run back, whoever wrote it and however its writing ended.

use crate::record::{
    ASKED, Clock, FORMAT, ImportedFile, Interval, JobsAtOnce, Load, Outcome, Run, Step, Timestamp, WaitStats, Workload,
    at_once, known_sum,
};
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::limits::{Allowance, MAX_INTERVALS, MAX_LINE};
use super::{INTERVALS_FILE, RUN_FILE, StoreError};
use crate::plain::{self, Links};
use crate::units::{Nanos, group_thousands};

/// What a list of runs shows, read without decoding any histogram. Written as JSON it is the same everywhere.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Id of the run.
    pub id: String,
    /// Name built from its tags and load.
    pub name: String,
    /// Workload.
    pub workload: Workload,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended; absent while it goes on, or when it was killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// How it ended.
    pub outcome: Outcome,
    /// What the user calls the things that vary.
    pub tags: BTreeMap<String, String>,
    /// Address of the target.
    pub target: String,
    /// Steps recorded.
    pub steps: usize,
    /// Label of the step with the largest load: by rate, then by sessions; the first of equals. Of a check, of the step at exactly
    /// what was asked; of several of these the one with the middle percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_load: Option<String>,
    /// What that step did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headline: Option<Headline>,
    /// Whether it gave a verdict: a check, or a run of ours with a limit.
    #[serde(skip)]
    pub is_judged: bool,
    /// Whether it is a part of a fleet's experiment.
    #[serde(skip)]
    pub is_part: bool,
    /// What its times are reported in, if it was imported.
    #[serde(skip)]
    pub clock: Option<Clock>,
    /// Checksums and parts of the files that it was imported from, as [`Summary::source`] writes them.
    #[serde(skip)]
    pub sources: Vec<String>,
    /// Its directory.
    pub path: PathBuf,
}

impl Summary {
    /// What distinguishes a result in a file from all others: the file's content, and which of its results it is.
    pub fn source(file: &ImportedFile) -> String {
        format!("{}-{}", file.crc64, file.part)
    }

    /// The order in which runs began.
    pub(super) fn in_time(&self, other: &Self) -> std::cmp::Ordering {
        (self.started_at, &self.id).cmp(&(other.started_at, &other.id))
    }
}

/// The part of the document that every format has.
#[derive(Deserialize)]
struct Head {
    format: u32,
    #[serde(rename = "id")]
    _id: String,
    /// Only records from before the first release have it.
    #[serde(default)]
    workload: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Outline {
    format: u32,
    id: String,
    name: String,
    load: Load,
    #[serde(default)]
    command: Vec<String>,
    started_at: Timestamp,
    #[serde(default)]
    ended_at: Option<Timestamp>,
    outcome: Outcome,
    tags: BTreeMap<String, String>,
    #[serde(default)]
    check: Option<serde::de::IgnoredAny>,
    target: OutlineTarget,
    #[serde(default)]
    imported: Option<OutlineImported>,
    #[serde(default)]
    part: Option<serde::de::IgnoredAny>,
    steps: Vec<OutlineStep>,
}

#[derive(Deserialize)]
struct OutlineImported {
    clock: Clock,
    files: Vec<ImportedFile>,
}

#[derive(Deserialize)]
pub(super) struct OutlineStep {
    pub(super) label: String,
    pub(super) load: OutlineLoad,
    #[serde(default)]
    pub(super) window: OutlineWindow,
    #[serde(default)]
    pub(super) counters: OutlineCounters,
    #[serde(default)]
    pub(super) operations: Vec<OutlineOperation>,
    #[serde(default)]
    pub(super) waits: Vec<OutlineWait>,
    #[serde(default)]
    pub(super) servers: Vec<serde::de::IgnoredAny>,
    #[serde(default)]
    pub(super) unended: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    outstanding: Vec<OutlineOutstanding>,
    #[serde(default)]
    generator: Option<OutlineGenerator>,
    #[serde(default)]
    pub(super) outcome: Option<Outcome>,
}

#[derive(Deserialize)]
pub(super) struct OutlineLoad {
    #[serde(default)]
    pub(super) sessions: Option<u32>,
    #[serde(default)]
    pub(super) rate_operations_per_s: Option<f64>,
}

#[derive(Deserialize)]
struct OutlineTarget {
    address: String,
    #[serde(default)]
    facts: crate::record::TargetFacts,
}

/// Reads the run at `path`, a run directory or its `run.json`, with its intervals attached to their steps. What was
/// wrong with the intervals is added to the run's notes: they are a record made while something may have been killed. A step
/// that was never closed gets its counts from its intervals.
///
/// # Errors
/// If there is no run, it cannot be read, it is larger than any run, or a later version of the program made it.
pub fn load(path: &Path) -> Result<Run, StoreError> {
    load_within(path, &mut Allowance::default())
}

/// Reads a run as [`load`] does, of what `allowance` still allows.
///
/// # Errors
/// As [`load`]; if the run has more than that, or there is no time left.
pub fn load_within(path: &Path, allowance: &mut Allowance) -> Result<Run, StoreError> {
    let directory = directory_of_run(path)?;
    let mut run = read_document(&directory, |run: &Run| run.format, allowance)?;
    allowance.take_steps(&directory, run.steps.len())?;
    attach_intervals(&mut run, &directory, allowance)?;
    unfinished_steps(&mut run);
    Ok(run)
}

/// Reads the document of the run at `path` alone, without its intervals, for whoever reads those by
/// [`IntervalLines`]. A step that was never closed has no counts then.
///
/// # Errors
/// If there is no run, it cannot be read, or a later version of the program made it.
pub fn document(path: &Path) -> Result<(PathBuf, Run), StoreError> {
    let directory = directory_of_run(path)?;
    let mut allowance = Allowance::default();
    let run = read_document(&directory, |run: &Run| run.format, &mut allowance)?;
    allowance.take_steps(&directory, run.steps.len())?;
    Ok((directory, run))
}

pub(super) fn summarise(directory: &Path, mut allowance: Allowance) -> Result<Summary, StoreError> {
    let outline = read_document(directory, |outline: &Outline| outline.format, &mut allowance)?;
    allowance.take_steps(directory, outline.steps.len())?;
    let (steps, workload) = (outline.steps.len(), outline.load.workload());
    let jobs = outline.imported.as_ref().and(outline.target.facts.jobs_at_once.as_ref());
    let of_jobs = jobs.and_then(|jobs| Headline::of_jobs(jobs, &outline.steps));
    let is_check = outline.check.is_some();
    let asked = if is_check { asked(&outline.steps) } else { None };
    let shown = asked.or_else(|| largest_load(&outline.steps));
    Ok(Summary {
        id: outline.id,
        name: outline.name,
        started_at: outline.started_at,
        ended_at: outline.ended_at,
        outcome: outline.outcome,
        tags: outline.tags,
        target: outline.target.address,
        clock: outline.imported.as_ref().map(|imported| imported.clock),
        sources: outline.imported.iter().flat_map(|imported| &imported.files).map(Summary::source).collect(),
        steps,
        headline: of_jobs.or_else(|| shown.and_then(|step| Headline::of(workload, step, &outline.command))),
        largest_load: shown.map(|step| step.label.clone()),
        is_judged: is_check || (outline.imported.is_none() && Limit::of(&outline.command, None).is_some()),
        is_part: outline.part.is_some(),
        workload,
        path: directory.to_owned(),
    })
}

fn largest_load(steps: &[OutlineStep]) -> Option<&OutlineStep> {
    let load = |step: &OutlineStep| (step.load.rate_operations_per_s.unwrap_or(0.0), step.load.sessions);
    steps.iter().reduce(|one, other| if load(other) > load(one) { other } else { one })
}

/// Of the steps at exactly what a check asked for the one in the middle, as most of them decide; of two the slower.
fn asked(steps: &[OutlineStep]) -> Option<&OutlineStep> {
    let is_asked = |step: &&OutlineStep| step.label.starts_with(ASKED) && step.outcome == Some(Outcome::Completed);
    let mut asked: Vec<&OutlineStep> = steps.iter().filter(is_asked).collect();
    asked.sort_by_key(|step| of_all(&step.operations).0);
    asked.get(asked.len() / 2).copied()
}

/// Whether the directory's `run.json` is a run of ours, of whichever format.
pub(super) fn check_head(directory: &Path) -> Result<(), StoreError> {
    let (path, text) = text_of(directory, &mut Allowance::default())?;
    parse::<Head>(&path, &text).map(|_| ())
}

/// The text of the directory's `run.json`, and its path.
pub(super) fn text_of(directory: &Path, allowance: &mut Allowance) -> Result<(PathBuf, Vec<u8>), StoreError> {
    let path = directory.join(RUN_FILE);
    let most = allowance.document();
    let text = plain::read(&path, Links::Refused, most).map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => allowance.too_long(directory, most),
        _ => StoreError::io(&path, "read", error),
    })?;
    allowance.take_document(directory, &text)?;
    Ok((path, text))
}

pub(super) fn directory_of_run(path: &Path) -> Result<PathBuf, StoreError> {
    if path.join(RUN_FILE).is_file() {
        return Ok(path.to_owned());
    }
    match path.parent() {
        Some(parent) if path.file_name().is_some_and(|name| name == RUN_FILE) && path.is_file() => {
            Ok(parent.to_owned())
        }
        _ => Err(StoreError::NoRunThere { path: path.to_owned() }),
    }
}

/// A later format gives that answer and not a missing field: where the document cannot be read, its version is looked at
/// before the reason.
fn read_document<T: DeserializeOwned>(
    directory: &Path,
    format_of: fn(&T) -> u32,
    allowance: &mut Allowance,
) -> Result<T, StoreError> {
    let (path, text) = text_of(directory, allowance)?;
    let read = parse(&path, &text);
    let format = match &read {
        Ok(document) => format_of(document),
        Err(_) => match parse::<Head>(&path, &text)? {
            Head { workload: Some(_), .. } => return Err(StoreError::OlderFormat { path }),
            Head { format, .. } => format,
        },
    };
    if format > FORMAT {
        return Err(StoreError::NewerFormat { path, format, newest: FORMAT });
    }
    read
}

fn parse<T: DeserializeOwned>(path: &Path, text: &[u8]) -> Result<T, StoreError> {
    serde_json::from_slice(text).map_err(|e| StoreError::json(path, &e))
}

fn attach_intervals(run: &mut Run, directory: &Path, allowance: &mut Allowance) -> Result<(), StoreError> {
    let Some(mut lines) = IntervalLines::open(directory)? else { return Ok(()) };
    let mut orphans = 0_u64;
    // Of several steps with the same number the first has them.
    let places: HashMap<u32, usize> = run.steps.iter().enumerate().rev().map(|(at, step)| (step.index, at)).collect();
    while let Some(mut interval) = lines.read::<Interval>()? {
        allowance.take_interval(directory, lines.line.len())?;
        interval.pack();
        match places.get(&interval.step) {
            Some(at) => run.steps[*at].intervals.push(interval),
            None => orphans += 1,
        }
    }
    if lines.is_cut_short() {
        run.notes.push(format!("the last line of {INTERVALS_FILE} was half-written and is left out"));
    }
    if orphans > 0 {
        run.notes.push(format!("{orphans} intervals in {INTERVALS_FILE} belong to a step that was never recorded"));
    }
    Ok(())
}

/// Events in which the engine's own writers wait, where no closed step of the run reports.
const BACKGROUND: [&str; 2] = ["db file parallel write", "log file parallel write"];

/// Sums the measured intervals of every step that was written down when it began and not again: its process was killed.
/// Such a step stays unfinished, and a note says how its figures came to be.
fn unfinished_steps(run: &mut Run) {
    let never_closed = |step: &Step| step.outcome == Outcome::Unfinished && step.window.duration_ns == 0;
    if !run.steps.iter().any(never_closed) {
        return;
    }
    let known: Vec<WaitStats> = run.steps.iter().flat_map(|step| step.waits.clone()).collect();
    let mut notes = Vec::new();
    for step in run.steps.iter_mut().filter(|step| never_closed(step)) {
        sum_intervals(step, &known);
        if step.window.duration_ns > 0 {
            notes.push(format!("{} was never closed; its figures are the sum of its intervals", step.label));
        }
    }
    run.notes.extend(notes);
}

fn sum_intervals(step: &mut Step, known: &[WaitStats]) {
    let Step { intervals, window, counters, waits, .. } = step;
    for interval in intervals.iter().filter(|interval| !interval.warmup) {
        window.duration_ns += interval.duration_ns;
        counters.add(&interval.counters);
        for (event, histogram) in &interval.waits {
            match waits.iter_mut().find(|wait| wait.event == *event) {
                Some(wait) => wait.waits.merge(histogram),
                None => waits.push(WaitStats { waits: histogram.clone(), ..description(event, known) }),
            }
        }
    }
}

fn description(event: &str, known: &[WaitStats]) -> WaitStats {
    let same = known.iter().find(|wait| wait.event == event);
    WaitStats {
        event: event.to_owned(),
        class: same.map_or_else(|| "unknown".to_owned(), |wait| wait.class.clone()),
        layer: same.map_or_else(|| "engine".to_owned(), |wait| wait.layer.clone()),
        foreground: same.map_or_else(|| !BACKGROUND.contains(&event), |wait| wait.foreground),
        waits: crate::record::Histogram::default(),
        reported: Vec::new(),
    }
}

// The intervals of a run, one line after the other, for whoever cannot hold them all.

/// The interval file of a run, read line by line.
#[derive(Debug)]
pub struct IntervalLines {
    path: PathBuf,
    reader: BufReader<File>,
    line: Vec<u8>,
    /// Lines read so far.
    number: usize,
    is_cut_short: bool,
}

impl IntervalLines {
    /// Opens that of the run in `directory`; none if the run has no intervals.
    ///
    /// # Errors
    /// If it cannot be opened, or is no plain file in that directory.
    pub fn open(directory: &Path) -> Result<Option<Self>, StoreError> {
        let path = directory.join(INTERVALS_FILE);
        match plain::open(&path, Links::Refused) {
            Ok(file) => {
                let reader = BufReader::new(file);
                Ok(Some(Self { path, reader, line: Vec::new(), number: 0, is_cut_short: false }))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError::io(&path, "open", error)),
        }
    }

    /// The next line as an [`Interval`](crate::record::Interval), or as a type that has some of its fields; none at the end, or at
    /// a last line that was half-written.
    ///
    /// # Errors
    /// If it cannot be read, or is no interval.
    pub fn read<T: DeserializeOwned>(&mut self) -> Result<Option<T>, StoreError> {
        if !self.skip()? {
            return Ok(None);
        }
        match serde_json::from_slice(&self.line) {
            Ok(interval) => Ok(Some(interval)),
            Err(_) if self.line.last() != Some(&b'\n') => {
                self.is_cut_short = true;
                Ok(None)
            }
            Err(error) => Err(self.at_line(StoreError::json(&self.path, &error))),
        }
    }

    /// Passes over a line; false at the end.
    ///
    /// # Errors
    /// If it cannot be read, is longer than a line of any run, or follows as many lines as no run has.
    pub fn skip(&mut self) -> Result<bool, StoreError> {
        self.line.clear();
        let read = (&mut self.reader).take(MAX_LINE.0 + 1).read_until(b'\n', &mut self.line);
        let bytes = read.map_err(|error| StoreError::io(&self.path, "read", error))?;
        self.number += usize::from(bytes > 0);
        let too_much = |what| StoreError::TooMuch { path: self.path.clone(), what, is_page: false };
        if bytes as u64 > MAX_LINE.0 {
            return Err(too_much(format!("a line (number {}) longer than {MAX_LINE}", self.number)));
        }
        if self.number > MAX_INTERVALS {
            return Err(too_much(format!("more than {} lines", group_thousands(MAX_INTERVALS as f64))));
        }
        Ok(bytes > 0)
    }

    /// Whether the last line was half-written, and left out.
    pub fn is_cut_short(&self) -> bool {
        self.is_cut_short
    }

    /// Each interval is parsed by itself, so the parser counts from its own line.
    fn at_line(&self, error: StoreError) -> StoreError {
        match error {
            StoreError::Unreadable { path, column, reason, cut_short, .. } => {
                StoreError::Unreadable { path, line: self.number, column, reason, cut_short }
            }
            other => other,
        }
    }
}

// What a list of runs shows of one load of each, the largest or what was asked: how much, and how fast. Read from what documents say beside each histogram, so that
// none is decoded.

/// By this event databases are judged whose reads are timed.
const SINGLE_BLOCK_READ: &str = "db file sequential read";

/// The figures of one step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Headline {
    /// Operations finished per second: of raw storage requests, of SLOB operations of many blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations_per_s: Option<f64>,
    /// Read requests sent to storage per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads_per_s: Option<f64>,
    /// The 99th percentile of what `p99_of` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<u64>,
    /// Whether it is at most that.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub p99_is_bound: bool,
    /// `read` for single-block reads of a database, `response` for the response time of all operations.
    pub p99_of: &'static str,
    /// The limit that the command had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
}

/// A limit, and whether this latency is within it. That is no verdict on the run: a report has that.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Limit {
    /// As it was given, such as `p99=5ms`.
    pub limit: String,
    /// Absent where it is a limit on something else than this 99th percentile, or where that is only bounded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_within: Option<bool>,
}

impl Limit {
    /// The first of a command.
    fn of(command: &[String], p99: Option<(u64, bool)>) -> Option<Self> {
        const FLAGS: [&str; 2] = ["--limit", "--target-latency"];
        let value = |(place, word): (usize, &String)| match word.split_once('=') {
            Some((flag, value)) if FLAGS.contains(&flag) => Some(value.to_owned()),
            _ if FLAGS.contains(&word.as_str()) => command.get(place + 1).cloned(),
            _ => None,
        };
        let limit = command.iter().enumerate().find_map(value)?;
        let longest: Option<Nanos> = limit.strip_prefix("p99=").and_then(|time| time.parse().ok());
        let is_within = longest.zip(p99).and_then(|(longest, (ns, is_bound))| match ns <= longest.0 {
            false if is_bound => None,
            is_within => Some(is_within),
        });
        Some(Self { limit, is_within })
    }
}

impl Headline {
    /// The percentile in words: `read 1.20 ms`, `<=5.00 ms`, or `?`.
    pub fn p99_words(&self) -> String {
        let of = if self.p99_of == "read" { "read " } else { "" };
        let bound = if self.p99_is_bound { "<=" } else { "" };
        self.p99_ns.map_or_else(|| "?".to_owned(), |ns| format!("{of}{bound}{}", Nanos(ns)))
    }

    /// A rate in words.
    pub fn rate_words(rate: Option<f64>) -> String {
        rate.map_or_else(
            || "?".to_owned(),
            |rate| match rate {
                rate if rate < 99.95 => format!("{rate:.1}"),
                rate => group_thousands(rate),
            },
        )
    }
}

/// Where more than one in so many operations ended late or never, the 99th percentile of the others is not that of all.
const FEW_LATE: u64 = 1_000;

/// Share of the asked rate that counts as done.
const REACHED: f64 = 0.97;

/// Length of a step's window.
#[derive(Default, Deserialize)]
pub(super) struct OutlineWindow {
    #[serde(default)]
    offset_ns: u64,
    #[serde(default)]
    duration_ns: u64,
}

/// Counts of a step.
#[derive(Default, Deserialize)]
pub(super) struct OutlineCounters {
    #[serde(default)]
    operations: Option<u64>,
    #[serde(default)]
    errors: Option<u64>,
    #[serde(default)]
    physical_reads: Option<u64>,
}

/// Operations of one kind.
#[derive(Deserialize)]
pub(super) struct OutlineOperation {
    #[serde(default)]
    count: u64,
    response: OutlineTimes,
}

/// Waits in one event.
#[derive(Deserialize)]
pub(super) struct OutlineWait {
    event: String,
    #[serde(default)]
    class: String,
    #[serde(default)]
    layer: String,
    #[serde(default)]
    foreground: bool,
    waits: OutlineTimes,
}

/// Operations of one kind that had not ended when the window closed.
#[derive(Deserialize)]
struct OutlineOutstanding {
    response: OutlineTimes,
    unended: OutlineTimes,
}

/// What the load generator did not send.
#[derive(Deserialize)]
struct OutlineGenerator {
    #[serde(default)]
    backlog_operations: Option<u64>,
}

/// What stands beside a histogram.
#[derive(Deserialize)]
struct OutlineTimes {
    #[serde(default)]
    count: u64,
    #[serde(default)]
    p99_ns: Option<u64>,
    /// There where another program reported it, in buckets that may be wide.
    #[serde(default)]
    reported: Option<serde::de::IgnoredAny>,
}

impl Headline {
    /// Of a step of `workload`; absent if it has no figure.
    pub(super) fn of(workload: Workload, step: &OutlineStep, command: &[String]) -> Option<Self> {
        let per_s = |count: Option<u64>| {
            let seconds = step.window.duration_ns as f64 / 1e9;
            count.filter(|_| seconds > 0.0).map(|count| count as f64 / seconds)
        };
        // As latency targets judge where nobody says what.
        let is_on_server = !step.servers.is_empty() || step.waits.iter().any(|wait| wait.layer == "server");
        let is_by_reads = workload.is_judged_by_reads() && step.load.rate_operations_per_s.is_none() && !is_on_server;
        let reads = step.waits.iter().find(|wait| is_by_reads && wait.event == SINGLE_BLOCK_READ);
        let (p99_ns, p99_is_bound) = match reads {
            // A percentile of few reads says nothing about the rate of all.
            Some(wait) if step.waits.iter().any(|other| other.is_read() && other.waits.count > wait.waits.count) => {
                (None, false)
            }
            Some(wait) => (wait.waits.p99_ns, wait.waits.reported.is_some()),
            None => of_all(&step.operations),
        };
        let late: u64 = step.outstanding.iter().map(|late| late.response.count + late.unended.count).sum();
        let late = late.saturating_add(step.generator.as_ref().and_then(|it| it.backlog_operations).unwrap_or(0));
        let is_of_all = late.saturating_mul(FEW_LATE) <= step.counters.operations.unwrap_or(0);
        let p99_ns = p99_ns.filter(|_| is_of_all);
        let headline = Self {
            operations_per_s: per_s(step.counters.operations),
            reads_per_s: per_s(step.counters.physical_reads),
            p99_ns,
            p99_is_bound: p99_is_bound && p99_ns.is_some(),
            p99_of: if reads.is_some() { "read" } else { "response" },
            limit: Limit::of(command, p99_ns.map(|ns| (ns, p99_is_bound))),
        };
        // What failed, or was asked for and not done, has no latency: that of the rest keeps no limit.
        let is_behind = step
            .load
            .rate_operations_per_s
            .zip(headline.operations_per_s)
            .is_some_and(|(asked, done)| done < REACHED * asked);
        let is_part = is_behind || step.unended.is_some() || step.counters.errors > Some(0);
        let limit = headline
            .limit
            .clone()
            .map(|limit| Limit { is_within: limit.is_within.filter(|is_within| !(*is_within && is_part)), ..limit });
        let headline = Self { limit, ..headline };
        let has_figures = headline.operations_per_s.or(headline.reads_per_s).is_some() || headline.p99_ns.is_some();
        has_figures.then_some(headline)
    }
}

impl OutlineWait {
    /// Whether sessions waited in it for reads of any kind.
    fn is_read(&self) -> bool {
        self.foreground && self.class == "User I/O" && self.event.contains(" read")
    }
}

impl Headline {
    /// What jobs of one group did together, of several groups of that which did most, as reports open with it; absent where no
    /// jobs are known to have run at the same time. `which` says so.
    pub(super) fn of_jobs(which: &JobsAtOnce, steps: &[OutlineStep]) -> Option<Self> {
        let group = |(places, is_reported): (Vec<usize>, bool)| {
            let jobs: Vec<&OutlineStep> = places.into_iter().filter_map(|place| steps.get(place)).collect();
            let are_whole = is_reported && jobs.iter().all(|job| job.outcome == Some(Outcome::Completed));
            let windows: Vec<(u64, u64)> =
                jobs.iter().map(|job| (job.window.offset_ns, job.window.duration_ns)).collect();
            let (from_ns, to_ns) = at_once::together(&windows).filter(|_| are_whole && jobs.len() > 1)?;
            let per_s = |count: fn(&OutlineCounters) -> Option<u64>| {
                let sum = known_sum(jobs.iter().map(|job| count(&job.counters)))?;
                Some(sum as f64 / (to_ns.saturating_sub(from_ns) as f64 / 1e9))
            };
            let (p99_ns, p99_is_bound) = of_all(jobs.iter().flat_map(|job| &job.operations));
            Some(Self {
                operations_per_s: Some(per_s(|counters| counters.operations)?),
                reads_per_s: per_s(|counters| counters.physical_reads),
                p99_ns,
                p99_is_bound: p99_is_bound && p99_ns.is_some(),
                p99_of: "response",
                limit: None,
            })
        };
        let groups = at_once::groups(Some(which), steps.len()).into_iter().filter_map(group);
        groups.max_by(|one, other| one.operations_per_s.partial_cmp(&other.operations_per_s).unwrap_or(Ordering::Equal))
    }
}

/// Of several kinds the longest of their percentiles bounds that of all: in each, no more than a hundredth took longer.
fn of_all<'a>(operations: impl IntoIterator<Item = &'a OutlineOperation>) -> (Option<u64>, bool) {
    let kinds: Vec<&OutlineTimes> =
        operations.into_iter().filter(|operation| operation.count > 0).map(|operation| &operation.response).collect();
    let known: Option<Vec<u64>> = kinds.iter().map(|times| times.p99_ns).collect();
    let is_bound = kinds.len() > 1 || kinds.iter().any(|times| times.reported.is_some());
    (known.and_then(|known| known.into_iter().max()), is_bound)
}

#[cfg(test)]
mod tests;
