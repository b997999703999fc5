//! `plimsoll export`.

mod walk;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::{Args, ValueEnum};
use files::How;
use serde::Serialize;

use super::arguments::RunsArgs;
use super::dry_run::DryRun;
use super::exit::{Exit, Failure};
use super::live::{ByteProgress, Verbosity};
use super::{Interrupt, say};
use analysis;
use model::record::{Run, store};
use model::units::group_thousands;
use report::export::{Exported, Form, Known, Sink, TABLES, begin, is_ours, known};
use report::plain;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll export -o tables                    all runs that are kept
  plimsoll export ~/fleet/host* -o tables      all below these directories
  plimsoll export ~/new -o tables --append     more of them, nothing twice
  plimsoll export last -o tables --format csv  comma-separated values

Tables: runs, steps, intervals, waits, buckets, counters, findings, parts. Each is a file, and with --append one more: \
`tables/steps-*.parquet` is what an engine such as DuckDB reads. What is not known is NULL. The columns are in \
docs/reference/tables.md, questions in examples/queries.

A run that cannot be read is named and left out; the exit code is 1 then.";

/// Arguments of `plimsoll export`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Directories to search for runs, or ids, names and tags of runs [default: all runs]
    #[arg(value_name = "DIR|RUN")]
    runs_of: Vec<String>,

    /// Directory for the tables, created if missing
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    out: PathBuf,

    /// Output format
    #[arg(long, value_name = "FORM", value_enum, default_value = "parquet", help_heading = "Output")]
    format: Format,

    /// Add files with the runs that the existing files lack
    #[arg(long, help_heading = "Output")]
    append: bool,

    /// Print what would be done, and exit
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    dry_run: bool,

    /// Print JSON instead of text
    ///
    /// The document lists files and rows.
    #[arg(long, help_heading = "Output")]
    json: bool,

    /// Show no progress
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,

    #[command(flatten)]
    runs: RunsArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// Apache Parquet, compressed
    Parquet,
    /// Comma-separated values
    Csv,
}

impl From<Format> for Form {
    fn from(format: Format) -> Self {
        match format {
            Format::Parquet => Self::Parquet,
            Format::Csv => Self::Csv,
        }
    }
}

/// What was done, as it is printed with `--json`.
#[derive(Debug, Serialize)]
struct Summary {
    /// Runs that were written.
    runs: usize,
    /// Runs that were there already, or were given twice.
    known: usize,
    /// Runs that could not be read.
    broken: Vec<Broken>,
    /// Files that were written; none where there was no run for them.
    files: Vec<Written>,
}

#[derive(Debug, Serialize)]
struct Broken {
    path: PathBuf,
    error: String,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let interrupt = Interrupt::listen()?;
    let (found, problems) = walk::runs(&arguments.runs.store(), &arguments.runs_of)?;
    let broken = problems.into_iter().map(|(path, error)| Broken { path, error: error.to_string() }).collect();
    let mut summary = Summary { runs: 0, known: 0, broken, files: Vec::new() };
    summary.broken.iter().for_each(|it| say::error(plain(&it.error)));
    if found.is_empty() && summary.broken.is_empty() {
        let places = if arguments.runs_of.is_empty() { "it".to_owned() } else { arguments.runs_of.join(", ") };
        let failure = Failure::new(format_args!("there is no run in {places}"));
        return Err(failure
            .with_hint("`--runs DIR` says where runs are kept, `plimsoll import` makes runs of reports".to_owned()));
    }
    if arguments.dry_run {
        let described = DryRun::default().fact("into", arguments.out.display());
        return described.facts("run", found.iter().map(|run| run.directory.display())).print(None, false);
    }
    let (mut output, known) = Output::open(&arguments.out, arguments.format.into(), arguments.append)?;
    let mut names = Names::of(known);
    let progress = ByteProgress::new("exporting", if arguments.quiet { Verbosity::Quiet } else { Verbosity::Normal });
    let all: u64 = found.iter().map(|run| run.bytes).sum();
    let mut done = 0;
    for run in &found {
        if let Some(exit) = interrupt.exit() {
            progress.end();
            say::note("stopped: nothing was written");
            say::hint("the same command starts again");
            return Ok(exit);
        }
        match export(&run.directory, &mut output, &mut names) {
            Ok(true) => summary.runs += 1,
            Ok(false) => summary.known += 1,
            Err(Problem::Broken(error)) => {
                say::error(plain(&error.to_string()));
                error.hint().iter().for_each(say::hint);
                summary.broken.push(Broken { path: run.directory.clone(), error: error.to_string() });
            }
            Err(Problem::Unwritten(failure)) => {
                progress.end();
                return Err(failure);
            }
        }
        done += run.bytes;
        progress.update(done, all);
    }
    progress.end();
    if summary.runs > 0 {
        summary.files = output.keep()?;
    }
    print(arguments, &summary)
}

/// What ended the export of one run: the run, or all of it.
enum Problem {
    Broken(store::StoreError),
    Unwritten(Failure),
}

/// Writes a run into all tables; says whether it was not there before.
fn export(directory: &Path, output: &mut Output, names: &mut Names) -> Result<bool, Problem> {
    let run = store::load(directory).map_err(Problem::Broken)?;
    let Some(key) = names.take(&run) else { return Ok(false) };
    let findings = analysis::analyse_asked(&run, None);
    let place = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let directory = place.display().to_string();
    let exported = Exported { key: &key, directory: &directory, run: &run, findings: &findings };
    output.write(&exported).map_err(Problem::Unwritten)?;
    Ok(true)
}

fn print(arguments: &Arguments, summary: &Summary) -> Result<Exit, Failure> {
    if arguments.json {
        say::json(summary)?;
    } else if !arguments.quiet {
        let counted =
            |count: usize| format!("{} run{}", group_thousands(count as f64), if count == 1 { "" } else { "s" });
        let mut parts = vec![format!("{} written into `{}`", counted(summary.runs), arguments.out.display())];
        if summary.known > 0 {
            parts.push(format!("{} there already", counted(summary.known)));
        }
        if !summary.broken.is_empty() {
            parts.push(format!("{} could not be read", counted(summary.broken.len())));
        }
        say::line(parts.join("; "));
        for Written { file, rows, bytes, .. } in &summary.files {
            let (rows, bytes) = (group_thousands(*rows as f64), model::units::Bytes(*bytes));
            say::line(format_args!("  {}: {rows} rows, {bytes}", file.display()));
        }
    }
    Ok(if summary.broken.is_empty() { Exit::Done } else { Exit::NotMet })
}

/// Stands before what tells two runs of one name apart; no id has it.
const ANOTHER: char = '~';

/// Names that are taken. Two hosts may give one id in the same second, so a run is the same if it began at the same instant on the
/// same host as well.
#[derive(Default)]
struct Names(BTreeMap<String, Vec<Identity>>);

/// When a run began, in microseconds since 1970, and on which host.
type Identity = (Option<i64>, Option<String>);

impl Names {
    /// Those of runs that files have.
    fn of(known: Vec<Known>) -> Self {
        let mut names = Self::default();
        for Known { key, started_us, host } in known {
            let base = key.split(ANOTHER).next().unwrap_or_default().to_owned();
            names.0.entry(base).or_default().push((started_us, host));
        }
        names
    }

    /// A name for a run; none if it has one.
    fn take(&mut self, run: &Run) -> Option<String> {
        let base = match &run.part {
            Some(part) => format!("{}#{}", run.id, part.number),
            None => run.id.clone(),
        };
        let identity = (Some(run.started_at.0.as_microsecond()), run.environment.hostname.clone());
        let taken = self.0.entry(base.clone()).or_default();
        if taken.contains(&identity) {
            return None;
        }
        taken.push(identity);
        Some(if taken.len() == 1 { base } else { format!("{base}{ANOTHER}{}", taken.len()) })
    }
}

/// A file that is in its place.
#[derive(Debug, Serialize)]
struct Written {
    /// The table.
    table: &'static str,
    /// Its path.
    file: PathBuf,
    /// Rows that it has.
    rows: u64,
    /// Its size.
    bytes: u64,
}

/// Files that are being written. What is not kept is removed.
struct Output {
    files: Vec<Begun>,
}

struct Begun {
    table: &'static str,
    sink: Option<Box<dyn Sink>>,
    rows: u64,
    temporary: PathBuf,
    place: PathBuf,
}

impl Drop for Begun {
    fn drop(&mut self) {
        // Of one that is in its place nothing is there any more.
        let _ = files::remove(&self.temporary);
    }
}

impl Output {
    /// Begins a file of each table in `directory`, and says which runs the files there have. They bear the first number of which
    /// there is no complete set.
    fn open(directory: &Path, form: Form, append: bool) -> Result<(Self, Vec<Known>), Failure> {
        files::make_directories(directory).map_err(|error| cannot("make directory", directory, &error))?;
        let (last, sets) = sets(directory, form)?;
        if let Some(set) = sets.first().filter(|_| !append) {
            let failure = Failure::new(format_args!("`{}` is there already", set.display()));
            return Err(failure.with_hint("`--append` adds to it; or name another directory: `-o DIR`".to_owned()));
        }
        let mut runs = Vec::new();
        for set in &sets {
            let read = known(set, form).map_err(|error| {
                cannot("read", set, &error)
                    .with_hint("remove the files of this number, or name another directory".to_owned())
            })?;
            runs.extend(read);
        }
        let number = last + 1;
        let mut files = Vec::with_capacity(TABLES.len());
        for table in &TABLES {
            let place = directory.join(format!("{}-{number:04}.{}", table.name, form.ending()));
            // Without `runs` of the same number they were left by an export that was killed between two of its files.
            if place.symlink_metadata().is_ok() && !is_ours(&place, table, form) {
                let message = format_args!("`{}` is not overwritten: this program did not make it", place.display());
                return Err(Failure::new(message).with_hint("name another directory: `-o DIR`".to_owned()));
            }
            let temporary = directory.join(format!(".{}-{number:04}.{}.tmp", table.name, std::process::id()));
            let file =
                files::make_new(&temporary, How::default()).map_err(|error| cannot("write", &temporary, &error))?;
            let mut begun = Begun { table: table.name, sink: None, rows: 0, temporary, place };
            let sink = begin(table, form, BufWriter::new(file));
            begun.sink = Some(sink.map_err(|error| cannot("write", &begun.place, &error))?);
            files.push(begun);
        }
        Ok((Self { files }, runs))
    }

    /// Writes a run into all tables.
    fn write(&mut self, exported: &Exported<'_>) -> Result<(), Failure> {
        for (table, begun) in TABLES.iter().zip(&mut self.files) {
            let Begun { sink: Some(sink), rows, place, .. } = begun else { continue };
            let mut row = |cells: &[_]| {
                *rows += 1;
                sink.row(cells)
            };
            let written = table.rows(exported, &mut row).and_then(|()| sink.end_of_run());
            written.map_err(|error| cannot("write", place, &error))?;
        }
        Ok(())
    }

    /// Puts all files in their places, that of `runs` last: as long as it is missing, the others of its number do not count.
    fn keep(mut self) -> Result<Vec<Written>, Failure> {
        for begun in &mut self.files {
            let finished =
                begun.sink.take().map_or(Ok(()), Sink::finish).and_then(|()| File::open(&begun.temporary)?.sync_all());
            finished.map_err(|error| cannot("write", &begun.place, &error))?;
        }
        let mut written = Vec::new();
        for begun in &self.files {
            let size = fs::metadata(&begun.temporary).and_then(|status| {
                files::rename(&begun.temporary, &begun.place)?;
                Ok(status.len())
            });
            let bytes = size.map_err(|error| cannot("write", &begun.place, &error))?;
            written.push(Written { table: begun.table, file: begun.place.clone(), rows: begun.rows, bytes });
        }
        Ok(written)
    }
}

/// The largest number of a file of `runs` there, and all of these files in the order of their numbers.
fn sets(directory: &Path, form: Form) -> Result<(u32, Vec<PathBuf>), Failure> {
    let number = |name: &str| -> Option<u32> {
        name.strip_prefix("runs-")?.strip_suffix(form.ending())?.strip_suffix('.')?.parse().ok()
    };
    let entries = fs::read_dir(directory).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let entries = entries.map_err(|error| cannot("list", directory, &error))?;
    let mut sets: Vec<(u32, PathBuf)> =
        entries.iter().filter_map(|entry| Some((number(entry.file_name().to_str()?)?, entry.path()))).collect();
    sets.sort();
    Ok((sets.last().map_or(0, |(number, _)| *number), sets.into_iter().map(|(_, path)| path).collect()))
}

fn cannot(doing: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::of_file(doing, path, error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::{FleetPart, sample};

    #[test]
    fn a_run_has_one_name_and_a_name_one_run() {
        let mut names = Names::default();
        let run = sample::sweep(10);
        assert_eq!((names.take(&run), names.take(&run)), (Some(run.id.clone()), None));

        let mut elsewhere = run.clone();
        elsewhere.environment.hostname = Some("other".to_owned());
        assert_eq!(names.take(&elsewhere), Some(format!("{}~2", run.id)));

        let mut part = run.clone();
        part.part = Some(FleetPart {
            number: 3,
            parts: 16,
            source: "--part".to_owned(),
            configuration: "c".to_owned(),
            start_at_ns: None,
            start_error_ns: None,
            clock: None,
        });
        assert_eq!(names.take(&part), Some(format!("{}#3", run.id)));

        let known = |key: &str, run: &Run| Known {
            key: key.to_owned(),
            started_us: Some(run.started_at.0.as_microsecond()),
            host: run.environment.hostname.clone(),
        };
        let mut again = Names::of(vec![known(&run.id, &run), known(&format!("{}~2", run.id), &elsewhere)]);
        assert_eq!((again.take(&run), again.take(&elsewhere)), (None, None));
        elsewhere.environment.hostname = None;
        assert_eq!(again.take(&elsewhere), Some(format!("{}~3", run.id)));
    }
}
