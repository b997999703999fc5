//! Files of one folder that report on one thing become one run: a cluster's report and those of its instances, text and HTML of
//! one report, and what SLOB leaves beside them (`iostat`, `vmstat`, `mpstat`, `slob.conf`, `tm.out`).

mod beside;
mod reports;

use std::path::PathBuf;

use super::{Began, Draft, naming, slob_files};
use model::record::{
    Clock, DatabaseFacts, FORMAT, Imported, ImportedFile, Load, NotUnderstood, Outcome, Run, Step, Timestamp, Workload,
};

/// Joins what belongs together, in the order of the files.
pub(super) fn join(files: Vec<FileRead>) -> Vec<Made> {
    let mut reports: Vec<(String, Vec<Made>)> = Vec::new();
    let (mut hosts, mut context, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for made in files.into_iter().flat_map(Made::of) {
        if let Some(of) = interval_of(&made) {
            match reports.iter_mut().find(|(known, _)| *known == of) {
                Some((_, same)) => same.push(made),
                None => reports.push((of, vec![made])),
            }
        } else if made.draft.workload == Workload::Host {
            hosts.push(made);
        } else if made.files.iter().all(|file| [slob_files::CONF, slob_files::TM].contains(&file.kind.as_str())) {
            context.push(made);
        } else {
            others.push(made);
        }
    }
    let mut joined: Vec<Made> = reports.into_iter().flat_map(|(_, same)| one_interval(same)).collect();
    // What was measured beside belongs to the only run that it can belong to.
    match (joined.as_mut_slice(), others.as_mut_slice()) {
        ([only], []) | ([], [only]) => {
            context.into_iter().for_each(|settings| add_context(only, settings));
            hosts = beside::add(only, hosts);
        }
        _ => {}
    }
    joined.extend(others);
    joined.extend(hosts);
    joined
}

/// Which interval of which database a report is of: its database and its snapshots.
fn interval_of(made: &Made) -> Option<String> {
    let DatabaseFacts { id, snapshots, .. } = &made.draft.target.facts.database;
    Some(format!("{} {}", (*id)?, snapshots.as_ref()?))
}

/// Whether a report is of a whole database, and not of one of its instances.
fn is_cluster(made: &Made) -> bool {
    !made.draft.target.address.contains('/')
}

/// How much a report reports: of two of one thing the fuller is taken.
fn content_size(made: &Made) -> usize {
    let of_step = |step: &Step| {
        let own: usize = step.instances.iter().map(|instance| instance.own.len()).sum();
        own + step.waits.len() + step.reported.len()
    };
    made.draft.steps.iter().map(of_step).sum()
}

/// Reports of one interval: the cluster's with those of its instances in it, or else one for each instance.
fn one_interval(reports: Vec<Made>) -> Vec<Made> {
    let mut by_address: Vec<Made> = Vec::new();
    for made in reports {
        match by_address.iter_mut().find(|known| reports::is_same_report(known, &made)) {
            Some(known) => {
                let mut other = made;
                if content_size(&other) > content_size(known) {
                    std::mem::swap(known, &mut other);
                }
                reports::add_twin(known, other);
            }
            None => by_address.push(made),
        }
    }
    let Some(at) = by_address.iter().position(is_cluster) else { return by_address };
    let mut cluster = by_address.remove(at);
    let (of_it, apart): (Vec<Made>, Vec<Made>) =
        by_address.into_iter().partition(|made| !is_cluster(made) && reports::is_of_cluster(&cluster, made));
    of_it.into_iter().for_each(|instance| reports::add_instance(&mut cluster, instance));
    reports::add_histograms(&mut cluster);
    std::iter::once(cluster).chain(apart).collect()
}

/// Settings of a run, and the time it took.
fn add_context(run: &mut Made, settings: Made) {
    run.files.extend(settings.files);
    run.not_understood.extend(settings.not_understood);
    for (name, value) in settings.draft.parameters {
        run.draft.parameters.entry(name).or_insert(value);
    }
    let figures = settings.draft.steps.into_iter().flat_map(|step| step.reported);
    match run.draft.steps.as_mut_slice() {
        [step] => step.reported.extend(figures),
        _ => run.draft.notes.extend(figures.map(|figure| {
            format!("{}: {} {}, of which of its steps is not reported.", figure.name, figure.value, figure.unit)
        })),
    }
}

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
pub(crate) struct Made {
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
    join(files).into_iter().map(Made::into_run).collect()
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
mod tests;

#[cfg(test)]
mod run_tests {
    use super::*;
    use crate::draft::step;

    fn run(workload: Workload, path: &str) -> Run {
        let mut draft = Draft::new(workload, "program", "title");
        draft.steps.push(step(0, "step", 0));
        let file = ImportedFile {
            path: path.to_owned(),
            kind: "kind".into(),
            bytes: 1,
            crc64: String::new(),
            part: 0,
            lines: None,
        };
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
