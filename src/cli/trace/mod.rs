//! `plimsoll trace`.

mod convert;
mod show;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::json;

use super::arguments::{Format, FormatArgs};
use super::exit::{Exit, Failure};
use super::live::{ByteProgress, Verbosity};
use super::{Interrupt, say};
use crate::observed;
use ::trace::profile::Profile;
use ::trace::readers::FORMATS;
use ::trace::{BATCH, TraceSource};
use model::trace::{TraceHeader, TraceRequest};
use model::units::Nanos;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll trace show monday.trace
  plimsoll trace show sda.blktrace.*            what blktrace recorded
  plimsoll trace show monday.trace --machine Standard_E8s_v3 --volume p30x4
  plimsoll trace convert sda.blktrace.* -o monday.trace
  plimsoll trace formats";

const FORMATS_EXAMPLES: &str = "\
Examples:
  plimsoll trace formats
  plimsoll trace formats --json";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Show what a trace's load is like: rates, bursts, sizes, hot spots, and what a cache would answer
    #[command(after_long_help = show::EXAMPLES)]
    Show(Box<show::Arguments>),
    /// Make a trace of one that another program recorded
    #[command(after_long_help = convert::EXAMPLES)]
    Convert(convert::Arguments),
    /// List the formats of traces that are read
    #[command(after_long_help = FORMATS_EXAMPLES)]
    Formats(FormatArgs),
}

impl Command {
    pub(super) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Show(arguments) => show::run(&arguments),
            Self::Convert(arguments) => convert::run(&arguments),
            Self::Formats(format) => formats(&format),
        }
    }
}

fn formats(format: &FormatArgs) -> Result<Exit, Failure> {
    let own = ("plimsoll", "what `plimsoll record` and `plimsoll trace convert` write: Parquet");
    let all = std::iter::once(own).chain(FORMATS.iter().map(|format| (format.name, format.about)));
    match format.format() {
        Format::Json => {
            let all: Vec<_> = all.map(|(name, about)| json!({ "name": name, "about": about })).collect();
            say::json(&all)?;
        }
        Format::Text => {
            let mut out = say::output();
            for (name, about) in all {
                writeln!(out, "{name:<13} {about}")?;
            }
            out.flush()?;
        }
    }
    Ok(Exit::Done)
}

/// Takes batches of requests, and their source for what it says of itself.
pub(in crate::cli) type Each<'a> = dyn FnMut(&[TraceRequest], &dyn TraceSource) -> Result<(), Failure> + 'a;

/// Reads all requests of a trace, with progress on the terminal.
/// Returns the source at its end, or how the user ended it.
pub(in crate::cli) fn read_all(
    paths: &[PathBuf],
    verbosity: Verbosity,
    each: &mut Each<'_>,
) -> Result<Result<Box<dyn TraceSource>, Exit>, Failure> {
    let interrupt = Interrupt::listen()?;
    let mut source = ::trace::open(paths)?;
    let progress = ByteProgress::new("reading", verbosity);
    let all: u64 = paths.iter().filter_map(|path| path.metadata().ok()).map(|found| found.len()).sum();
    let mut batch = Vec::with_capacity(BATCH);
    let read = loop {
        if let Some(exit) = interrupt.exit() {
            break Ok(Err(exit));
        }
        batch.clear();
        if let Err(error) = source.next_batch(&mut batch) {
            break Err(error.into());
        }
        if batch.is_empty() {
            break Ok(Ok(()));
        }
        if let Err(failure) = each(&batch, source.as_ref()) {
            break Err(failure);
        }
        if let Some(read) = source.read_bytes() {
            progress.update(read.min(all), all);
        }
    };
    progress.end();
    Ok(read?.map(|()| source))
}

/// Names of a trace's files, for messages.
pub(in crate::cli) fn names(paths: &[PathBuf]) -> String {
    let name = |path: &Path| {
        path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
    };
    match paths {
        [only] => name(only),
        [first, rest @ ..] => format!("{} and {} more", name(first), rest.len()),
        [] => String::new(),
    }
}

/// Refuses what limits of a platform cannot be held against: calls that a page cache may answer, and less than one interval.
pub(in crate::cli) fn check_judged(name: &str, header: &TraceHeader, profile: &Profile) -> Result<(), Failure> {
    if observed::is_of_calls(header) {
        let failure = Failure::new(format_args!(
            "`{name}` has the calls of a process on its files: the page cache answers some of them, so devices are not judged by them"
        ));
        return Err(failure.with_hint("record the devices instead: `plimsoll record --device NAME`".to_owned()));
    }
    if profile.duration_ns < profile.series.interval_ns {
        let failure = Failure::new(format_args!(
            "`{name}` is too short: it covers {}, and rates need at least {}",
            Nanos(profile.duration_ns),
            Nanos(profile.series.interval_ns)
        ));
        return Err(failure.with_hint("use a longer trace: `plimsoll record --duration 10m` makes one".to_owned()));
    }
    Ok(())
}

/// What stands with results that know only the mean of a cache's hits.
pub(in crate::cli) const MEAN_HITS: &str =
    "the hit share is the mean over the trace: seconds that read what is not in the cache are harder";

/// That the end of a trace is not judged; absent where it is.
pub(in crate::cli) fn left_over(profile: &Profile) -> Option<String> {
    let left_ns = observed::left_over_ns(profile);
    (left_ns > 0).then(|| format!("the last {} are not judged: they are not a whole interval", Nanos(left_ns)))
}
