//! Reading a run back, whoever wrote it and however its writing ended.

use crate::record::Workload;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::headline::{Headline, OutlineCounters, OutlineOperation, OutlineWait, OutlineWindow};
use super::lines::IntervalLines;
use super::{INTERVALS_FILE, RUN_FILE, StoreError, headline, recover};
use crate::record::facts::JOBS_AT_ONCE;
use crate::record::{ASKED, Clock, FORMAT, ImportedFile, Interval, Load, Outcome, Run, Timestamp};

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
    /// Whether it was asked if it carries something.
    #[serde(skip)]
    pub is_check: bool,
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
    facts: BTreeMap<String, String>,
}

/// Reads the run at `path`, a run directory or its `run.json`, with its intervals attached to their steps. What was
/// wrong with the intervals is added to the run's notes: they are a record made while something may have been killed. A step
/// that was never closed gets its counts from its intervals.
///
/// # Errors
/// If there is no run, it cannot be read, or a later version of the program made it.
pub fn load(path: &Path) -> Result<Run, StoreError> {
    let directory = directory_of_run(path)?;
    let mut run = read_document(&directory, |run: &Run| run.format)?;
    attach_intervals(&mut run, &directory)?;
    recover::unfinished_steps(&mut run);
    Ok(run)
}

/// Reads the document of the run at `path` alone, without its intervals, for whoever reads those by
/// [`IntervalLines`]. A step that was never closed has no counts then.
///
/// # Errors
/// If there is no run, it cannot be read, or a later version of the program made it.
pub fn document(path: &Path) -> Result<(PathBuf, Run), StoreError> {
    let directory = directory_of_run(path)?;
    let run = read_document(&directory, |run: &Run| run.format)?;
    Ok((directory, run))
}

pub(super) fn summarise(directory: &Path) -> Result<Summary, StoreError> {
    let outline = read_document(directory, |outline: &Outline| outline.format)?;
    let (steps, workload) = (outline.steps.len(), outline.load.workload());
    let fact = outline.imported.as_ref().and(outline.target.facts.get(JOBS_AT_ONCE));
    let of_jobs = fact.and_then(|fact| Headline::of_jobs(fact, &outline.steps));
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
        is_check,
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
    asked.sort_by_key(|step| headline::of_all(&step.operations).0);
    asked.get(asked.len() / 2).copied()
}

/// Whether the directory's `run.json` is a run of ours, of whichever format.
pub(super) fn check_head(directory: &Path) -> Result<(), StoreError> {
    let path = directory.join(RUN_FILE);
    let text = fs::read(&path).map_err(|e| StoreError::io(&path, "read", e))?;
    parse::<Head>(&path, &text).map(|_| ())
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
fn read_document<T: DeserializeOwned>(directory: &Path, format_of: fn(&T) -> u32) -> Result<T, StoreError> {
    let path = directory.join(RUN_FILE);
    let text = fs::read(&path).map_err(|e| StoreError::io(&path, "read", e))?;
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

fn attach_intervals(run: &mut Run, directory: &Path) -> Result<(), StoreError> {
    let Some(mut lines) = IntervalLines::open(directory)? else { return Ok(()) };
    let mut orphans = 0_u64;
    while let Some(mut interval) = lines.read::<Interval>()? {
        interval.pack();
        match run.steps.iter_mut().find(|step| step.index == interval.step) {
            Some(step) => step.intervals.push(interval),
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
