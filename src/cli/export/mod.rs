//! `plimsoll export`.

mod names;
mod output;
mod walk;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::arguments::RunsArgs;
use super::dry_run::DryRun;
use super::exit::{Exit, Failure};
use super::interrupt::Interrupt;
use super::live::{ByteProgress, Verbosity};
use super::say;
use analysis;
use model::record::store;
use model::units::group_thousands;
use names::Names;
use output::{Output, Written};
use report::export::{Exported, Form};
use report::plain;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll export -o tables                    all runs that are kept
  plimsoll export ~/fleet/host* -o tables      all below these directories
  plimsoll export ~/new -o tables --append     more of them, nothing twice
  plimsoll export last -o tables --format csv  comma-separated values

Tables: runs, steps, intervals, waits, buckets, counters, findings, parts. Each is a file, and with --append one more: \
`tables/steps-*.parquet` is what an engine such as DuckDB is asked to read. What is not known is NULL. The columns are in \
docs/export.md, questions in examples/queries.

A run that cannot be read is named and left out; the exit code is 1 then.";

/// Arguments of `plimsoll export`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Directories with runs in them and below, ids, names or tags; all that are kept without one
    #[arg(value_name = "DIR|RUN")]
    runs_of: Vec<String>,

    /// Directory for the tables; it is made if it is missing
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    out: PathBuf,

    /// Form of the files
    #[arg(long, value_name = "FORM", value_enum, default_value = "parquet", help_heading = "Output")]
    format: Format,

    /// Add files to those that are there, with the runs that they do not have
    #[arg(long, help_heading = "Output")]
    append: bool,

    /// Only say which runs would be written
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    dry_run: bool,

    /// Print files and rows as JSON
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
