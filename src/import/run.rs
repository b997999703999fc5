//! From what was read to runs: files that tell of one thing are joined, and each result becomes a [`Run`].

use std::path::Path;

use super::{Began, Draft, naming};
use crate::record::{Clock, FORMAT, Imported, ImportedFile, NotUnderstood, Outcome, Run, Timestamp};

/// A file that was read.
#[derive(Debug)]
pub struct FileRead {
    /// What it is.
    pub file: ImportedFile,
    /// When it was changed last.
    pub changed: Timestamp,
    /// The results in it.
    pub drafts: Vec<Draft>,
    /// What was not understood in it.
    pub not_understood: Vec<NotUnderstood>,
}

/// A result with the files that it was made from.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) draft: Draft,
    pub(super) files: Vec<ImportedFile>,
    pub(super) changed: Timestamp,
    pub(super) not_understood: Vec<NotUnderstood>,
}

impl Made {
    /// Each result of a file by itself.
    pub(super) fn of(read: FileRead) -> impl Iterator<Item = Self> {
        let FileRead { file, changed, drafts, not_understood } = read;
        drafts.into_iter().zip(0..).map(move |(draft, part)| Self {
            draft,
            files: vec![ImportedFile { part, ..file.clone() }],
            changed,
            not_understood: not_understood.clone(),
        })
    }

    /// The run, without an id.
    fn into_run(self) -> Run {
        let Self { draft, files, changed, not_understood } = self;
        let (started_at, clock) = match draft.began {
            Some(Began::Utc(began)) => (began, Clock::Utc),
            Some(Began::Wall(began)) => (began, Clock::Wall),
            None => (changed, Clock::FileTime),
        };
        let failed = draft.steps.iter().find_map(|step| match &step.outcome {
            Outcome::Failed { error } => Some(error.clone()),
            _ => None,
        });
        let tool = draft.tool();
        let mut run = Run {
            format: FORMAT,
            id: String::new(),
            name: draft.title,
            tool,
            workload: draft.workload.to_owned(),
            command: draft.command,
            started_at,
            ended_at: draft.ended,
            outcome: failed.map_or(Outcome::Completed, |error| Outcome::Failed { error }),
            tags: draft.tags,
            seed: None,
            parameters: draft.parameters,
            target: draft.target,
            environment: draft.environment,
            notes: draft.notes,
            imported: Some(Imported { files, clock, not_understood }),
            steps: draft.steps,
        };
        for (step, index) in run.steps.iter_mut().zip(0..) {
            step.index = index;
            step.intervals.iter_mut().for_each(|interval| interval.step = index);
        }
        name_it(&mut run);
        run
    }
}

/// The runs of some files. Those of one `folder` that tell of one thing are joined: give it the files of a folder that is the
/// directory of one run, such as SLOB's. The runs have no id yet.
pub fn runs(files: Vec<FileRead>) -> Vec<Run> {
    super::join::join(files).into_iter().map(Made::into_run).collect()
}

/// Reads what the names of the file and of its folders tell: of the nearest that is named as SLOB's users do.
fn name_it(run: &mut Run) {
    let Some(first) = run.imported.as_ref().and_then(|imported| imported.files.first()) else { return };
    let path = first.path.clone();
    let stem = |path: &Path| {
        path.file_name().map(|name| name.to_string_lossy().split('.').next().unwrap_or_default().to_owned())
    };
    for part in Path::new(&path).ancestors().take(4).filter_map(stem) {
        if let Some((tag, value)) = naming::of_folder(&part) {
            run.tags.entry(tag.to_owned()).or_insert(value);
        }
    }
    // Only a file's own name and that of its directory: farther ones are of many runs.
    let Some(named) = Path::new(&path).ancestors().take(2).filter_map(stem).find_map(|part| naming::read(&part)) else {
        return;
    };
    run.name = named.name;
    for (tag, value) in named.tags {
        run.tags.entry(tag.to_owned()).or_insert(value);
    }
    let sessions = named.schemas.zip(named.threads).and_then(|(schemas, threads)| schemas.checked_mul(threads));
    let told = [("THREADS_PER_SCHEMA", named.threads), ("WORK_UNIT", named.work_unit)];
    for (name, value) in told.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        run.parameters.entry(name.to_owned()).or_insert_with(|| value.to_string());
    }
    if let [step] = run.steps.as_mut_slice() {
        step.load.sessions = step.load.sessions.or(sessions);
        step.load.schemas = step.load.schemas.or(named.schemas);
        step.load.threads_per_schema = step.load.threads_per_schema.or(named.threads);
    }
}
