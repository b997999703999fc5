//! `plimsoll import`.

mod crew;
mod walk;

use model::record::{ImportedFile, NotUnderstood, Run, TRACE_FILE, Workload};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use super::arguments::RunsArgs;
use super::exit::{Exit, Failure};
use super::fleet::PartArgs;
use super::live::{ByteProgress, Verbosity};
use super::{Interrupt, say};
use import::{ImportError, distinct_names, importers};
use model::config::Tag;
use model::config::fleet::PartNumber;
use model::record::store::{Store, Summary, load};
use model::units::group_thousands;
use report::plain;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll import awrrpt_1_171_172.html        one AWR report
  plimsoll import ~/slob-results               everything below a folder
  plimsoll import awr_p30x2_d8s_s64_t1_wu64    a directory of SLOB, as one run
  plimsoll import fio.json --tag disk=p30      with a tag, as for own runs
  plimsoll import monday.trace                 what `plimsoll record` recorded
  plimsoll import archive --dry-run            only say what would be imported
  plimsoll import archive --part 0/16          a sixteenth, on each of 16 hosts
  plimsoll import --list                       the kinds of files that are read

Files are recognised by their content, gzip or not, and not by their names. In folders, files that are no results are \
passed over; a file that is named must be one. Then: `plimsoll report ID`, `plimsoll table ID... --style matrix`, \
`plimsoll compare ID ID`.";

/// Places that were not understood which are reported for each run; the rest is in the run.
const MAX_REPORTED: usize = 3;
/// Copies that are named; the rest is counted.
const MAX_COPIES_NAMED: usize = 20;
/// Files passed over that are named in the end.
const MAX_PASSED_OVER: usize = 5;

/// Arguments of `plimsoll import`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Files, and folders to search
    #[arg(value_name = "FILE|DIR", required_unless_present = "list")]
    paths: Vec<PathBuf>,

    /// Tag that says what varies between runs, such as `vm=d8s` (repeatable)
    ///
    /// Every imported run gets it. It overrides a tag that a name contains.
    #[arg(long = "tag", value_name = "KEY=VALUE", help_heading = "Runs")]
    tags: Vec<Tag>,

    /// Import again what was imported before
    #[arg(long, help_heading = "Runs")]
    again: bool,

    /// Print what would be done, and exit
    #[arg(long, help_heading = "Runs")]
    dry_run: bool,

    /// List the types of files that can be read, and exit
    #[arg(long, help_heading = "Output")]
    list: bool,

    /// Print JSON instead of text
    ///
    /// The document lists the runs, and what could not be parsed.
    #[arg(long, help_heading = "Output")]
    json: bool,

    /// Show no progress
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,

    #[command(flatten)]
    part: PartArgs,

    #[command(flatten)]
    runs: RunsArgs,
}

/// A run that was made, as it is reported.
#[derive(Debug, Serialize)]
struct Reported {
    /// Absent where nothing was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    name: String,
    tags: BTreeMap<String, String>,
    workload: Workload,
    program: String,
    steps: usize,
    files: Vec<ImportedFile>,
    not_understood: Vec<NotUnderstood>,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    if arguments.list {
        return list(arguments.json);
    }
    let place = arguments.part.place()?;
    let interrupt = Interrupt::listen()?;
    let (mut units, problems) = walk::units(&arguments.paths);
    if let Some(PartNumber { number, parts, source, note }) = &place {
        let all = units.len();
        walk::keep_part(&mut units, *number, *parts);
        note.iter().for_each(say::note);
        if !arguments.quiet {
            let (own, all) = (group_thousands(units.len() as f64), group_thousands(all as f64));
            say::line(format_args!("part {number} of {parts}, by {source}: {own} of {all} files and folders"));
        }
    }
    let store = arguments.runs.store();
    let mut importing = Importing::new(arguments, &store);
    problems.iter().for_each(|problem| importing.refuse(problem));
    let all: u64 = units.iter().map(|unit| unit.bytes).sum();
    let found: usize = units.iter().map(|unit| unit.files.len()).sum();
    let progress = ByteProgress::new("importing", if arguments.quiet { Verbosity::Quiet } else { Verbosity::Normal });
    let taken = crew::read(&units, interrupt.flag(), |outcome| {
        importing.files += outcome.files;
        importing.bytes += outcome.bytes;
        outcome.problems.iter().for_each(|problem| importing.refuse(problem));
        importing.passed_over.extend(outcome.passed_over);
        for (path, first) in outcome.repeated {
            importing.leave_out(&path.display().to_string(), &first.display().to_string());
        }
        outcome.runs.into_iter().try_for_each(|run| importing.keep(run))?;
        progress.update(importing.bytes, all);
        Ok(())
    });
    progress.end();
    taken.and_then(|()| importing.report(found, interrupt.exit()))
}

/// Takes what was read, and remembers what is to be said in the end.
struct Importing<'a> {
    arguments: &'a Arguments,
    store: &'a Store,
    /// Results that the store has, and the runs that they are.
    known: BTreeMap<String, String>,
    /// Results that this import has taken, and the files that they are from.
    taken: BTreeMap<String, String>,
    reported: Vec<Reported>,
    again: usize,
    left_out: usize,
    passed_over: Vec<PathBuf>,
    refused: usize,
    files: usize,
    bytes: u64,
}

impl<'a> Importing<'a> {
    fn new(arguments: &'a Arguments, store: &'a Store) -> Self {
        let sources = |run: Summary| run.sources.into_iter().map(move |source| (source, run.id.clone()));
        let known =
            if arguments.again { BTreeMap::new() } else { store.list().0.into_iter().flat_map(sources).collect() };
        let (taken, reported, passed_over) = (BTreeMap::new(), Vec::new(), Vec::new());
        Self {
            arguments,
            store,
            known,
            taken,
            reported,
            again: 0,
            left_out: 0,
            passed_over,
            refused: 0,
            files: 0,
            bytes: 0,
        }
    }

    /// Says that the file at `path` holds the same as that at `first`, which is taken.
    fn leave_out(&mut self, path: &str, first: &str) {
        self.left_out += 1;
        if !self.arguments.quiet && self.left_out <= MAX_COPIES_NAMED {
            say::note(plain(&format!("{path} is left out: it holds the same as {first}")));
        }
    }

    fn refuse(&mut self, problem: &ImportError) {
        self.refused += 1;
        match problem {
            ImportError::NotRecognised { path, .. }
            | ImportError::NotText { path, .. }
            | ImportError::TooLarge { path, .. }
                if trace::open(&[Path::new(path)]).is_ok() =>
            {
                say::error(plain(&format!("{path} is a trace of requests of another program, not a result")));
                say::hint("`plimsoll trace convert` makes a trace of it that is imported, with all files of blktrace");
            }
            problem => {
                say::error(plain(&problem.to_string()));
                problem.hint().iter().for_each(say::hint);
            }
        }
    }

    fn keep(&mut self, mut run: Run) -> Result<(), Failure> {
        let Some(imported) = run.imported.clone() else { return Ok(()) };
        let Some(first) = imported.files.first() else { return Ok(()) };
        let source = Summary::source(first);
        if let Some(taken) = self.taken.get(&source).cloned() {
            // Of a file with several results it is said once.
            if first.part == 0 {
                self.leave_out(&first.path, &taken);
            }
            return Ok(());
        }
        if let Some(id) = self.known.get(&source) {
            self.again += 1;
            if !self.arguments.quiet && self.again <= MAX_REPORTED {
                say::note(format_args!("{} was imported before, as {id}", plain(&first.path)));
            }
            return Ok(());
        }
        for Tag { key, value } in &self.arguments.tags {
            run.tags.insert(key.clone(), value.clone());
        }
        let id = if self.arguments.dry_run {
            None
        } else {
            let kind = first.kind.split('-').next().unwrap_or("import");
            run.id = self.store.new_id(run.started_at, kind);
            self.store.save(&run)?;
            Some(run.id.clone())
        };
        // A report that was joined to another one is no run of its own elsewhere either.
        self.taken.extend(imported.files.iter().map(|file| (Summary::source(file), file.path.clone())));
        if !self.arguments.quiet {
            not_understood(&imported.not_understood);
        }
        self.reported.push(Reported {
            id,
            workload: run.workload(),
            name: run.name,
            tags: run.tags,
            program: format!("{} {}", run.tool.name, run.tool.version).trim_end().to_owned(),
            steps: run.steps.len(),
            files: imported.files,
            not_understood: imported.not_understood,
        });
        Ok(())
    }

    /// Gives runs that have one name and the same tags a tag by which their folders differ.
    fn name_apart(&mut self) -> Result<(), Failure> {
        let mut alike: BTreeMap<(String, BTreeMap<String, String>), Vec<usize>> = BTreeMap::new();
        for (at, run) in self.reported.iter().enumerate() {
            alike.entry((run.name.clone(), run.tags.clone())).or_default().push(at);
        }
        for places in alike.into_values().filter(|places| places.len() > 1) {
            let folder = |at: &usize| {
                let file =
                    self.reported.get(*at).and_then(|run| run.files.first()).map_or("", |file| file.path.as_str());
                let path = std::path::absolute(file).unwrap_or_else(|_| PathBuf::from(file));
                path.parent().map(PathBuf::from).unwrap_or_default()
            };
            let folders: Vec<PathBuf> = places.iter().map(folder).collect();
            let Some(tags) = distinct_names(&folders) else { continue };
            for (at, (key, value)) in places.into_iter().zip(tags) {
                let Some(reported) = self.reported.get_mut(at).filter(|run| !run.tags.contains_key(&key)) else {
                    continue;
                };
                reported.tags.insert(key.clone(), value.clone());
                if let Some(id) = &reported.id {
                    let mut run = load(&self.store.find(id)?)?;
                    run.tags.insert(key, value);
                    self.store.replace(&run)?;
                }
            }
        }
        Ok(())
    }

    /// Says what came of the `found` files.
    fn report(mut self, found: usize, signal: Option<Exit>) -> Result<Exit, Failure> {
        self.name_apart()?;
        if self.arguments.json {
            say::json(&self.reported)?;
        } else {
            let mut out = say::output();
            self.reported.iter().try_for_each(|run| writeln!(out, "{}", line(run)))?;
            out.flush()?;
        }
        if !self.arguments.quiet && self.files > 0 {
            self.summary();
        }
        if let Some(exit) = signal {
            if self.files < found {
                let left = group_thousands((found - self.files) as f64);
                say::note(format_args!(
                    "stopped: {left} of {} files were not looked at",
                    group_thousands(found as f64)
                ));
                if !self.arguments.again && !self.arguments.dry_run {
                    say::hint("the same command takes the rest, and nothing twice");
                }
            }
            return Ok(exit);
        }
        let is_part_of_nothing = found == 0 && self.arguments.part.is_asked();
        if self.reported.is_empty() && self.again == 0 && self.refused == 0 && !is_part_of_nothing {
            let failure = Failure::new("there is no result that is known here");
            return Err(failure.with_hint("`plimsoll import --list` says what is read".to_owned()));
        }
        Ok(if self.refused > 0 { Exit::CouldNot } else { Exit::Done })
    }

    fn summary(&self) {
        let counted = |count: usize, one: &str| {
            format!("{} {one}{}", group_thousands(count as f64), if count == 1 { "" } else { "s" })
        };
        let mut parts = vec![format!(
            "{} {} from {}",
            counted(self.reported.len(), "run"),
            if self.arguments.dry_run { "would be imported" } else { "imported" },
            counted(self.files, "file")
        )];
        if self.again > 0 {
            parts.push(format!("{} imported before (`--again` imports once more)", counted(self.again, "result")));
        }
        if self.left_out > 0 {
            parts.push(format!("{} left out as copies", counted(self.left_out, "file")));
        }
        if !self.passed_over.is_empty() {
            let named: Vec<String> =
                self.passed_over.iter().take(MAX_PASSED_OVER).map(|path| plain(&path.display().to_string())).collect();
            let more = self.passed_over.len() - named.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            parts.push(format!("{} passed over: {}{more}", counted(self.passed_over.len(), "file"), named.join(", ")));
        }
        if self.refused > 0 {
            parts.push(format!("{} could not be imported", counted(self.refused, "file")));
        }
        say::line(parts.join("; "));
    }
}

/// Says where something was not understood, of each run a few places.
fn not_understood(places: &[NotUnderstood]) {
    for place in places.iter().take(MAX_REPORTED) {
        let line = place.line.map_or_else(String::new, |line| format!(", line {line}"));
        say::note(plain(&format!("{}{line}: {}", place.path, place.what)));
    }
    if places.len() > MAX_REPORTED {
        say::note(format_args!(
            "{} more places were not understood; the report of the run names them",
            places.len() - MAX_REPORTED
        ));
    }
}

fn line(run: &Reported) -> String {
    let id = run.id.as_deref().map_or_else(String::new, |id| format!("{id}  "));
    let file = run.files.first().map_or("", |file| file.path.as_str());
    let more = if run.files.len() > 1 { format!(" (+{})", run.files.len() - 1) } else { String::new() };
    plain(&format!("{id}{}  {}  {file}{more}", run.name, run.program))
}

/// What stands in the list for traces, which no importer of texts reads.
const TRACES: (&str, &str) = (TRACE_FILE, "traces of `plimsoll record` and `plimsoll trace convert`");

/// The kinds of files that are read.
fn list(json: bool) -> Result<Exit, Failure> {
    let kinds = || importers().iter().map(|importer| (importer.kind, importer.name)).chain([TRACES]);
    if json {
        let kinds: Vec<BTreeMap<&str, &str>> =
            kinds().map(|(kind, name)| BTreeMap::from([("kind", kind), ("name", name)])).collect();
        say::json(&kinds)?;
        return Ok(Exit::Done);
    }
    let mut out = say::output();
    kinds().try_for_each(|(kind, name)| writeln!(out, "{kind:<18} {name}"))?;
    out.flush()?;
    Ok(Exit::Done)
}
