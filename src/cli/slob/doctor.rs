//! `plimsoll slob doctor`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::arguments::{Format, FormatArgs, TargetArgs};
use crate::cli::doctor::write_checks;
use crate::cli::exit::{Exit, Failure};
use crate::cli::interrupt::Interrupt;
use crate::cli::{files, say};
use crate::databases::examine;
use targets::database::Examination;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll slob doctor --target oracle://slob@db1/orclpdb
  plimsoll slob doctor --target oracle://slob@db1/orclpdb -o doctor.txt

It changes nothing: with data of ours it reads for two seconds and commits ten times without a change. The file is for those who \
help: names of machines are masked in it, names of users, services and tables are not. Send it to us, since nobody has run \
Plimsoll on a real Oracle database yet. Exit code 1: something spoils a test.";

/// What every such file begins with.
const HEAD: &str = "plimsoll slob doctor";

/// Arguments of `plimsoll slob doctor`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    target: TargetArgs,

    /// File to write [default: ./plimsoll-doctor-TIME.txt]
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,

    #[command(flatten)]
    format: FormatArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let interrupt = Interrupt::listen()?;
    let found = examine(arguments.target.address(), &|words| say::line(words), interrupt.flag());
    let found = interrupt.judge(found.map_err(Failure::from))?;
    let now = jiff::Timestamp::now();
    let path = arguments
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("plimsoll-doctor-{}.txt", now.strftime("%Y%m%d-%H%M%S"))));
    keep(&path, &found, now)?;
    match arguments.format.format() {
        Format::Json => say::json(&found)?,
        Format::Text => {
            let mut out = anstream::stdout().lock();
            write_checks(&mut out, &found.checks)?;
            out.flush()?;
        }
    }
    say::line(format_args!("wrote `{}`: machines are masked in it, users and services are not", path.display()));
    Ok(if found.has_problem() { Exit::NotMet } else { Exit::Done })
}

/// Writes the file, never over one that somebody else made.
fn keep(path: &Path, found: &Examination, now: jiff::Timestamp) -> Result<(), Failure> {
    let (directory, name) = (path.parent().unwrap_or(Path::new("")), path.file_name().unwrap_or_default());
    files::write_all(
        if directory.as_os_str().is_empty() { Path::new(".") } else { directory },
        &[(name, |out: &mut dyn Write| write_file(out, found, now))],
        HEAD,
        "name another file: `-o FILE`",
    )
}

fn write_file(out: &mut dyn Write, found: &Examination, now: jiff::Timestamp) -> io::Result<()> {
    writeln!(out, "{HEAD}, version {}, {}", env!("CARGO_PKG_VERSION"), now.strftime("%Y-%m-%d %H:%M:%S UTC"))?;
    writeln!(out, "target {}", found.target)?;
    writeln!(
        out,
        "Names and addresses of machines are masked. Names of users, services, instances and tables are not.\n"
    )?;
    let mut plain = anstream::StripStream::new(Vec::new());
    write_checks(&mut plain, &found.checks)?;
    out.write_all(&plain.into_inner())?;
    writeln!(out, "\nWhat this comes from:")?;
    found.facts.iter().try_for_each(|(name, value)| writeln!(out, "{name} = {value}"))
}
