//! From what was read to runs: files that report on one thing are joined, and each result becomes a [`Run`].

use model::record::Load;
use model::record::Workload;
use std::path::PathBuf;

use super::{Began, Draft, naming};
use model::record::{Clock, FORMAT, Imported, ImportedFile, NotUnderstood, Outcome, Run, Timestamp};

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
            load: Load::foreign(draft.workload),
            check: None,
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
            part: None,
            like: None,
            merged: None,
            parts: Vec::new(),
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

/// The runs of some files. Those of one `folder` that report on one thing are joined: give it the files of a folder that is the
/// directory of one run, such as SLOB's. The runs have no id yet.
pub fn runs(files: Vec<FileRead>) -> Vec<Run> {
    super::join::join(files).into_iter().map(Made::into_run).collect()
}

/// SLOB's parameter of that name.
const UPDATE_PCT: &str = "UPDATE_PCT";

/// Reads what the names of the file and of its folders say: of the nearest that is named as SLOB's users do.
///
/// `s100` and `t16` mean other things to users of other programs, such as a scale: the name of a result that is not Oracle's is
/// read only if it has a work unit, which nobody else has.
fn name_it(run: &mut Run) {
    let Some(first) = run.imported.as_ref().and_then(|imported| imported.files.first()) else { return };
    // Within its folder, a file was perhaps named without it.
    let path = std::path::absolute(&first.path).unwrap_or_else(|_| PathBuf::from(&first.path));
    let names = || path.ancestors().filter_map(|part| Some(part.file_name()?.to_string_lossy()));
    for (tag, value) in names().skip(1).take(3).filter_map(|folder| naming::of_folder(&folder)) {
        run.tags.entry(tag.to_owned()).or_insert(value);
    }
    if run.workload().is_judged_by_reads()
        && let Some(update_pct) = names().skip(1).take(3).find_map(|folder| naming::updates(&folder))
    {
        run.parameters.entry(UPDATE_PCT.to_owned()).or_insert_with(|| update_pct.to_string());
    }
    if let (Workload::Database, [step], Some(file)) = (run.workload(), run.steps.as_mut_slice(), names().next()) {
        step.load.sessions = step.load.sessions.or_else(|| naming::sessions(&file));
    }
    // Only a file's own name and that of its directory: farther ones are of many runs.
    let named = names().take(2).find_map(|name| naming::read(naming::stem(&name)));
    let is_slobs = |named: &naming::Named| run.workload().is_judged_by_reads() || named.work_unit.is_some();
    let Some(named) = named.filter(is_slobs) else { return };
    run.name = named.name;
    for (tag, value) in named.tags {
        run.tags.entry(tag.to_owned()).or_insert(value);
    }
    let sessions = named.schemas.zip(named.threads).and_then(|(schemas, threads)| schemas.checked_mul(threads));
    let settings =
        [("THREADS_PER_SCHEMA", named.threads), ("WORK_UNIT", named.work_unit), (UPDATE_PCT, named.update_pct)];
    for (name, value) in settings.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        run.parameters.entry(name.to_owned()).or_insert_with(|| value.to_string());
    }
    if let [step] = run.steps.as_mut_slice() {
        step.load.sessions = step.load.sessions.or(sessions);
        step.load.schemas = step.load.schemas.or(named.schemas);
        step.load.threads_per_schema = step.load.threads_per_schema.or(named.threads);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::step;

    fn run(workload: Workload, path: &str) -> Run {
        let mut draft = Draft::new(workload, "program", "title");
        draft.steps.push(step(0, "step", 0));
        let file = ImportedFile { path: path.to_owned(), kind: "kind".into(), bytes: 1, crc64: String::new(), part: 0 };
        let changed = Timestamp(jiff::Timestamp::UNIX_EPOCH);
        let read = FileRead { file, changed, drafts: vec![draft], not_understood: Vec::new() };
        runs(vec![read]).remove(0)
    }

    #[test]
    fn schemas_and_threads_are_those_of_oracle() {
        let of = |run: &Run| (run.name.clone(), run.steps[0].load.sessions, run.tags.len());
        assert_eq!(of(&run(Workload::Database, "/a/awr_m64_s8_t2/awr.txt")), ("m64_s8_t2".into(), Some(16), 1));
        assert_eq!(of(&run(Workload::Transactions, "/a/pgbench_s100_t16.log")), ("title".into(), None, 0));
        assert_eq!(of(&run(Workload::Host, "/a/awr_s8_t2_wu64/iostat.out")), ("s8_t2_wu64".into(), Some(16), 0));
    }

    #[test]
    fn updates_and_sessions_are_reported_by_folders_and_names_of_reports() {
        let of = |path: &str| {
            let run = run(Workload::Database, path);
            (run.parameters.get("UPDATE_PCT").cloned(), run.steps[0].load.sessions)
        };
        assert_eq!(of("/a/upd5/awr_s8_t2/awr.txt"), (Some("5".to_owned()), Some(16)));
        assert_eq!(of("/a/awr_s8_t2_update3/awr.txt"), (Some("3".to_owned()), Some(16)));
        assert_eq!(of("/a/b/awr.txt.128"), (None, Some(128)));
        assert_eq!(run(Workload::Io, "/a/upd5/fio.json").parameters.len(), 0, "it means something else there");
    }

    #[test]
    fn folders_tell_of_the_cache_and_files_do_not() {
        assert_eq!(run(Workload::Io, "/cache-off/a/b/fio.json").tags["cache"], "off");
        assert!(run(Workload::Io, "/a/b/cache-misses.json").tags.is_empty());
        assert!(run(Workload::Io, "/cache-off/a/b/c/fio.json").tags.is_empty(), "farther ones are of many runs");
    }

    #[test]
    fn a_file_that_was_named_within_its_folder_is_named_after_it() {
        let folder = std::env::current_dir().unwrap().file_name().unwrap().to_string_lossy().into_owned();
        let expected = naming::read(&folder).map_or("title".to_owned(), |named| named.name);
        assert_eq!(run(Workload::Database, "awr.txt").name, expected);
        assert_eq!(run(Workload::Database, "./s8_t2/awr.txt").name, "s8_t2");
    }
}
