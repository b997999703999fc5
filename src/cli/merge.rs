//! `plimsoll merge`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use super::arguments::{Format, FormatArgs, RunsArgs};
use super::dry_run::DryRun;
use super::exit::{Exit, Failure};
use super::limits::LimitArgs;
use super::{Interrupt, limits, report, say};
use crate::merge::{Differences, MergeError, MergeOptions, Merging, Missing, Part};
use ::report::Detail;
use ::report::document::RunReport;
use analysis::Judgeable;
use model::record::store::{RUN_FILE, RunWriter, Store, load};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll merge host1/plimsoll-runs host2/plimsoll-runs    all parts in these
  plimsoll merge part0 part1 part2 part3 -o together        into `./together`
  plimsoll merge /shared/runs --limit p99=5ms    yes or no, of all together
  plimsoll merge /shared/runs --partial    although a part is missing

Each part is a run that was made with `--part`. Counts and histograms add exactly, over the time in which all parts were \
under load. Afterwards `plimsoll report`, `compare` and all others take the merged run as any.";

const _: () = assert!(
    crate::merge::MAX_PARTS == model::config::fleet::MAX_PARTS,
    "what can be measured can be merged, and nothing else"
);

/// Arguments of `plimsoll merge`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Parts: directories of their runs, directories that contain such, or ids, names and tags
    #[arg(value_name = "DIR", required = true)]
    names: Vec<String>,

    /// Directory to create for the merged run [default: its id, among the stored runs]
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    output: Option<PathBuf>,

    /// Merge what there is, even if parts are missing or incomplete
    ///
    /// The report says what share is missing.
    #[arg(long)]
    partial: bool,

    /// Merge parts that do not belong together, and mark the merged run
    #[arg(long)]
    force: bool,

    /// Print what would be done, and exit
    ///
    /// The parts are read first, and refused if they do not belong together.
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    dry_run: bool,

    #[command(flatten)]
    limits: LimitArgs,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten)]
    runs: RunsArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let interrupt = Interrupt::listen()?;
    let store = arguments.runs.store();
    let paths = places(&store, &arguments.names)?;
    let output = arguments.output.as_deref().map(output).transpose()?;
    let merged = merge(arguments, &interrupt, &paths, &store, output);
    let directory = match (merged, interrupt.exit()) {
        (Ok(Some(directory)), _) => directory,
        (Ok(None), _) => return Ok(Exit::Done),
        (Err(_), Some(exit)) => {
            say::note("the merge was ended early; nothing is kept");
            return Ok(exit);
        }
        (Err(failure), None) => return Err(failure),
    };
    let run = load(&directory)?;
    let asked = arguments.limits.asked();
    // Parts that were made with a limit are judged by it together.
    let limits = if asked.is_empty() { analysis::requested_limits(&run) } else { asked };
    let findings = report::findings(&run, &limits);
    limits::check(&limits, &Judgeable::of_run(&run))?;
    match arguments.format.format() {
        Format::Json => say::json(&RunReport::new(&run, &findings))?,
        Format::Text => report::write_text(&run, &findings, Detail::Brief)?,
    }
    let shown = directory.display();
    say::line(format_args!("\nKept in `{shown}`. More: `plimsoll report {shown} --full`"));
    Ok(report::exit_for_limits(&findings))
}

/// The directories of the parts that are named, each once.
fn places(store: &Store, names: &[String]) -> Result<Vec<PathBuf>, Failure> {
    let mut places: Vec<PathBuf> = Vec::new();
    for name in names {
        let path = Path::new(name);
        let found = if path.is_dir() && !path.join(RUN_FILE).is_file() {
            parts_in(path)?
        } else if path.exists() {
            vec![path.to_owned()]
        } else {
            store.find_all(name)?
        };
        for place in found {
            let place = match place.file_name() {
                Some(file) if file == OsStr::new(RUN_FILE) => place.parent().unwrap_or(Path::new(".")).to_owned(),
                _ => place,
            };
            // One run by two names is one run.
            let same = |known: &PathBuf| fs::canonicalize(known).ok() == fs::canonicalize(&place).ok();
            if !places.iter().any(same) {
                places.push(place);
            }
        }
    }
    Ok(places)
}

/// The parts that a directory of runs holds.
fn parts_in(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let (runs, problems) = Store::new(directory).list();
    if let Some(problem) = problems.into_iter().next() {
        return Err(problem.into());
    }
    let others = runs.iter().filter(|run| !run.is_part).count();
    let parts: Vec<PathBuf> = runs.into_iter().filter(|run| run.is_part).map(|run| run.path).collect();
    if parts.is_empty() {
        let failure = Failure::new(format_args!("`{}` holds no part of a fleet", directory.display()));
        return Err(failure.with_hint(MergeError::NoParts.hint()));
    }
    if others > 0 {
        let runs = if others == 1 { "run" } else { "runs" };
        say::note(format_args!("`{}`: {others} {runs} without a part number passed over", directory.display()));
    }
    Ok(parts)
}

/// Where the merged run goes, as the store that it would be in and its id there.
fn output(path: &Path) -> Result<(Store, String), Failure> {
    if path.symlink_metadata().is_ok() {
        let failure = Failure::new(format_args!("`{}` is there already", path.display()));
        return Err(failure.with_hint("name a directory that is not there yet: `-o DIR`".to_owned()));
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Some(id) = path.file_name().and_then(OsStr::to_str) else {
        let failure = Failure::new(format_args!("`{}` names no directory", path.display()));
        return Err(failure.with_hint("name one that is not there yet: `-o together`".to_owned()));
    };
    Ok((Store::new(parent), id.to_owned()))
}

/// Merges in a directory of its own beside its place, which gets it by renaming: whole or not at all. A dry run makes nothing.
fn merge(
    arguments: &Arguments,
    interrupt: &Interrupt,
    paths: &[PathBuf],
    store: &Store,
    output: Option<(Store, String)>,
) -> Result<Option<PathBuf>, Failure> {
    let wanted = MergeOptions {
        missing: if arguments.partial { Missing::Noted } else { Missing::Refused },
        differences: if arguments.force { Differences::Marked } else { Differences::Refused },
    };
    let parts = Part::open_all(paths, interrupt.flag())?;
    let count = parts.len();
    let merging = Merging::new(parts, &wanted, output.as_ref().map_or("", |(_, id)| id))?;
    let (store, id) = match output {
        Some(named) => named,
        None => (store.clone(), store.new_id(merging.run().started_at, merging.run().workload().name())),
    };
    let merging = merging.with_id(&id);
    if arguments.dry_run {
        let described = DryRun::default().fact("into", store.path().join(&id).display());
        return described.facts("part", paths.iter().map(|path| path.display())).print(None, false).map(|_| None);
    }
    let workshop = store.path().join(format!(".plimsoll-merge-{}", std::process::id()));
    let cannot = |doing: &str, path: &Path, error: &std::io::Error| {
        let failure = Failure::new(format_args!("cannot {doing} `{}`: {error}", path.display()));
        failure.with_hint("choose another place: `-o DIR`, or `--runs DIR`".to_owned())
    };
    let made = (|| {
        let mut writer = RunWriter::create(&Store::new(&workshop), merging.run())?;
        say::line(format_args!("merging {count} part{}", if count == 1 { "" } else { "s" }));
        let run = merging.merge::<Failure>(interrupt.flag(), |interval| Ok(writer.append(interval)?))?;
        let whole = writer.finish(&run)?;
        let place = store.path().join(&id);
        files::rename(&whole, &place).map_err(|error| cannot("make", &place, &error))?;
        Ok(place)
    })();
    // What is half done is nobody's, and the place of what was done is another one.
    let _ = files::remove_tree(&workshop);
    made.map(Some)
}

impl From<MergeError> for Failure {
    fn from(error: MergeError) -> Self {
        Self::new(&error).with_hint(error.hint())
    }
}
