//! `plimsoll check`: is this load carried here? Yes or no, in a few lines.

mod database;
mod demands;
mod place;
mod session;
mod storage;

use crate::cli::arguments::SeedArg;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;

use super::arguments::{Format, KeepingArgs, Seconds};
use super::exit::{Exit, Failure};
use super::interrupt::Interrupt;
use super::io::arguments::HandlingArgs;
use super::recording::Recorded;
use super::servers::ServerArgs;
use super::{page_file, report, say};
use ::report::document::RunReport;
use ::report::html::Reported;
use analysis::check::{Carries, Check};
use demands::DemandArgs;
use model::config::io::BlockSize;
use model::units::Bytes;
use place::CheckTarget;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll check --reads 20000@5ms --commits 200@10ms /u01
  plimsoll check --reads 20k@p99.9=5ms --writes 4k@10ms --for 30m /dev/sdb \\
    --destroy sdb
  plimsoll check --scan 800MB/s --reads 5000@5ms --size 200G /u01
  plimsoll check --like 202610 --for 10m /u01
  plimsoll check --reads 2000@20ms --commits 100@20ms pg:/u01/pgdata \\
    --host-memory 256M
  plimsoll check --reads 3000@5ms sim:iops_cap=8000,clock=simulated

Reads and writes alone are put on raw storage. With commits they are put on the
embedded engine, which reads, changes, logs and writes blocks as a database
does. All of them run at the same time, at the rates asked, whether or not
earlier ones are done.

Exit codes: 0 yes, 1 no, 2 not measurable.";

/// Data that are made for a check unless the user says how large.
const DEFAULT_SIZE: Bytes = Bytes::gib(4);

/// Arguments of `plimsoll check`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// What is asked about: a directory, a file, a block device, data of the engine (`dir:PATH`), a private PostgreSQL
    /// (`pg:DIR`), a server (`postgres://USER@HOST/DATABASE`), or `sim:` for simulated storage
    #[arg(value_name = "WHERE")]
    place: String,

    #[command(flatten)]
    demands: DemandArgs,

    /// Time for everything, the making of data included: 2m or 30m; a bare number is seconds
    #[arg(long = "for", value_name = "TIME", default_value = "2m", help_heading = "Load")]
    time: Seconds,

    /// How large the data are that are made in a directory and removed at the end [default: 4G, half of what is free at most]; of
    /// a file or device, how much is used [default: all of it]
    #[arg(long, value_name = "SIZE", help_heading = "Load")]
    size: Option<Bytes>,

    /// Length of a read or write
    #[arg(long, value_name = "SIZE", default_value = "8K", help_heading = "Load")]
    block_size: BlockSize,

    #[command(flatten)]
    seed: SeedArg,

    #[command(flatten)]
    handling: HandlingArgs,

    #[command(flatten)]
    server: ServerArgs,

    /// Page for a browser that is written at the end
    #[arg(short, long, value_name = "FILE", default_value = "check.html", help_heading = "Output")]
    output: PathBuf,

    #[command(flatten)]
    keeping: KeepingArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let demands = arguments.demands.read(&arguments.keeping.runs, arguments.block_size.bytes())?;
    let place = CheckTarget::look(&arguments.place, &demands, arguments.size)?;
    if !arguments.keeping.dry_run {
        page_file::check_page(&arguments.output)?;
    }
    let Some((recorded, interrupt)) = session::measure(arguments, &demands, place)? else { return Ok(Exit::Done) };
    say(arguments, recorded, &interrupt)
}

/// Writes the page and the answer, and says by the exit code which it is.
fn say(arguments: &Arguments, recorded: Recorded, interrupt: &Interrupt) -> Result<Exit, Failure> {
    let Recorded { run, failure, directory } = recorded;
    let findings = report::findings(&run, &[]);
    let page = report::page(&[Reported { run: &run, findings: &findings }])?;
    let written = page_file::replace(&arguments.output, &page);
    let check = Check::of(&run, &findings).ok_or_else(|| Failure::new("nothing was asked"))?;
    match arguments.keeping.format.format() {
        Format::Json => say::json(&RunReport::new(&run, &findings))?,
        Format::Text => {
            let mut out = say::output();
            for line in check.lines() {
                writeln!(out, "{line}")?;
            }
            let page = if written.is_ok() { format!("Page: {}   ", shown(&arguments.output)) } else { String::new() };
            writeln!(out, "{page}Run: {}", run.id)?;
            out.flush()?;
        }
    }
    if !directory.exists() {
        say::note("the run could not be kept");
    }
    if let Some(failure) = failure {
        return Err(failure);
    }
    written?;
    if let Some(exit) = interrupt.exit() {
        say::note("the check was cut short; what was measured is kept");
        return Ok(exit);
    }
    Ok(match check.answer {
        Carries::Yes => Exit::Done,
        Carries::No(_) => Exit::NotMet,
        Carries::Unknown(_) => Exit::CouldNot,
    })
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
