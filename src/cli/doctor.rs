//! `plimsoll doctor`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use owo_colors::{OwoColorize, Style};
use serde_json::json;

use super::arguments::{Format, FormatArgs, TargetArgs};
use super::dry_run::{DryRun, DryRunArg};
use super::exit::{Exit, Failure};
use super::first_contact::FirstContactArgs;
use super::{results, say};
use measure::doctor::{self, Ability, Capabilities, Check, Demand, Status};
use measure::environment;
use model::shown::shown;
use model::units::Bytes;
use targets::database::Examination;
use targets::io::{Caching, Durability, IoEngine, StorageFile};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll doctor
  plimsoll doctor --target dir:/u01/plimsoll --cache 8G
  plimsoll doctor --json
  plimsoll doctor --first-contact oracle://bench@db1/orclpdb
  plimsoll doctor --first-contact --script > first-contact.sql

The first contact tries on an Oracle database what could not be tested without one. It asks before each step, \
creates one table of 32 MiB, and removes it. It writes a file without secrets, to be sent to us. It needs no pack.";

/// Arguments of `plimsoll doctor`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    target: TargetArgs,

    /// Buffer cache size that you plan to use
    #[arg(long, value_name = "SIZE", help_heading = "Target")]
    cache: Option<Bytes>,

    #[command(flatten)]
    first_contact: FirstContactArgs,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten)]
    dry_run: DryRunArg,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let is_dry_run = arguments.dry_run.is_set();
    if let Some(contact) = arguments.first_contact.run(arguments.format.format(), is_dry_run) {
        return contact;
    }
    let path = arguments.target.address().directory();
    if is_dry_run {
        let tried = path.and_then(nearest_directory);
        let tried = tried.map(|directory| format!("a file of 4 KiB in `{}`, and remove it", directory.display()));
        return DryRun::default().fact("look at", "this machine").facts("write", tried).print(None, false);
    }
    let environment = environment::capture(path);
    let capabilities = Capabilities {
        io_uring: match IoEngine::best_available() {
            (IoEngine::Uring, _) => Ability::Usable,
            (IoEngine::Psync, reason) => Ability::Refused { reason: reason.unwrap_or_default() },
        },
        direct_io: path.map_or(Ability::Untried, try_direct_io),
        limits: doctor::limits(),
    };
    let demand = Demand { cache_bytes: arguments.cache.map(|cache| cache.0), data_bytes: None };
    let mut checks = doctor::diagnose(&environment, &capabilities, &demand);
    checks.splice(0..0, path.and_then(missing));
    checks.extend(trace::record::left_behind().iter().map(|instance| killed_recording(instance)));
    match arguments.format.format() {
        Format::Json => say::json(&json!({ "checks": checks, "environment": environment }))?,
        Format::Text => {
            let mut out = anstream::stdout().lock();
            write_checks(&mut out, &checks)?;
            out.flush()?;
        }
    }
    let has_problem = checks.iter().any(|check| check.status == Status::Problem);
    Ok(if has_problem { Exit::NotMet } else { Exit::Done })
}

/// What is looked at in place of a path that does not exist.
fn missing(path: &Path) -> Option<Check> {
    let found = nearest_directory(path).filter(|_| !path.exists())?;
    let finding = format!("`{}` does not exist, so `{}` is looked at", path.display(), found.display());
    Some(Check::advice("target", finding, "if something should be mounted there, mount it first"))
}

/// A recording that was killed: the kernel goes on tracing for it.
fn killed_recording(instance: &Path) -> Check {
    let instance = instance.display();
    Check::advice(
        "recording",
        format!("`plimsoll record` was killed, and the kernel still traces for it in `{instance}`"),
        format!("each request costs a little more until the next `plimsoll record`, or as root: `rmdir {instance}`"),
    )
}

/// Writes each check on a line, and what to do on the next.
pub(super) fn write_checks(out: &mut impl Write, checks: &[Check]) -> io::Result<()> {
    for Check { topic, status, finding, advice } in checks {
        let finding = shown(finding);
        let (word, style) = match status {
            Status::Good => ("good", Style::new().green()),
            Status::Advice => ("advice", Style::new().yellow()),
            Status::Problem => ("problem", Style::new().red().bold()),
        };
        writeln!(out, "{:<7}  {topic}: {finding}", word.style(style))?;
        if let Some(advice) = advice.as_deref().map(shown) {
            writeln!(out, "{:<7}  -> {advice}", "")?;
        }
    }
    Ok(())
}

/// Writes a file of what was seen of a database, never over one that somebody else made. `head` is what every such file begins with.
pub(super) fn keep(path: &Path, head: &str, found: &Examination, now: jiff::Timestamp) -> Result<(), Failure> {
    let (directory, name) = (path.parent().unwrap_or(Path::new("")), path.file_name().unwrap_or_default());
    results::write_all(
        if directory.as_os_str().is_empty() { Path::new(".") } else { directory },
        &[(name, |out: &mut dyn Write| write_file(out, head, found, now))],
        head,
        "name another file: `-o FILE`",
    )
}

fn write_file(out: &mut dyn Write, head: &str, found: &Examination, now: jiff::Timestamp) -> io::Result<()> {
    writeln!(out, "{head}, version {}, {}", env!("CARGO_PKG_VERSION"), now.strftime("%Y-%m-%d %H:%M:%S UTC"))?;
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

/// Writes and reads one small file past the page cache, in the directory or its nearest parent that exists.
fn try_direct_io(path: &Path) -> Ability {
    let Some(directory) = nearest_directory(path) else { return Ability::Untried };
    let file = directory.join(format!(".plimsoll-doctor-{}", std::process::id()));
    let opened = StorageFile::create(&file, Durability::OnSync);
    let ability = match &opened {
        Ok(opened) if opened.caching() == Caching::PageCache => {
            Ability::Refused { reason: "the file system does not know O_DIRECT".to_owned() }
        }
        Ok(opened) => match write_and_read(opened) {
            Ok(()) => Ability::Usable,
            Err(error) => Ability::Refused { reason: error.to_string() },
        },
        // A directory that cannot be written to says nothing about direct I/O.
        Err(_) => return Ability::Untried,
    };
    // Left behind only where removing is refused, and then there is nobody to tell who could do better.
    let _ = files::remove(&file);
    ability
}

fn write_and_read(file: &StorageFile) -> std::io::Result<()> {
    const BLOCK: usize = 4_096;
    // O_DIRECT wants memory that is aligned as the file is.
    let mut memory = vec![0; 2 * BLOCK];
    let begin = memory.as_ptr().align_offset(BLOCK);
    let block = &mut memory[begin..begin + BLOCK];
    file.write_all_at(block, 0)?;
    file.read_exact_at(block, 0)
}

fn nearest_directory(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    path.ancestors().find(|ancestor| ancestor.is_dir()).map(Path::to_owned)
}
