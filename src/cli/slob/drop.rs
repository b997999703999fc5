//! `plimsoll slob drop`.

use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;

use clap::Args;

use super::server::drop::Asking;
use super::server::{self, Nodes, Purpose, Reached, ServerArgs};
use crate::cli::arguments::TargetArgs;
use crate::cli::exit::{Exit, Failure};
use crate::cli::interrupt::Interrupt;
use crate::cli::say;
use crate::config::TargetAddress;
use crate::targets::embedded::Directory;
use crate::units::Bytes;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll slob drop --dry-run                    only say what would go
  plimsoll slob drop --target dir:/u01/plimsoll --yes
  plimsoll slob drop --target postgres://bench@db1/bench

Only what set-up made is removed, and the directory if nothing else is in it. A private cluster (`pg:DIR`) is removed \
whole; on a server of yours, only the tables that set-up made.";

/// Arguments of `plimsoll slob drop`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    server: ServerArgs,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let address = arguments.target.address();
    arguments.server.check(address)?;
    let asking = match (arguments.dry_run, arguments.yes) {
        (true, _) => Asking::DryRun,
        (false, true) => Asking::Yes,
        (false, false) => Asking::Ask,
    };
    match address {
        TargetAddress::PrivateCluster(directory) => {
            let interrupt = Interrupt::listen()?;
            server::drop::private_cluster(directory, asking, &interrupt)
        }
        TargetAddress::Postgres(_) => {
            let interrupt = Interrupt::listen()?;
            let (server, stop) = (&arguments.server, interrupt.flag());
            let reached = Reached::reach(address, server, Nodes::FirstThatAccepts, Purpose::Use, None, stop)?;
            reached.expect("the address is that of a server").with(|at| server::drop::tables(at, asking, &interrupt))
        }
        TargetAddress::Directory(_) | TargetAddress::Simulated(_) => files(arguments.target.directory()?, asking),
    }
}

/// Removes the files of the embedded engine.
fn files(path: &Path, asking: Asking) -> Result<Exit, Failure> {
    let directory = Directory::lock(path)?;
    let files = directory.our_files()?;
    let bytes = Bytes(files.iter().map(|(_, bytes)| bytes).sum());
    if asking == Asking::DryRun {
        let mut out = say::output();
        for (file, bytes) in &files {
            writeln!(out, "{:>10}  {}", Bytes(*bytes).to_string(), file.display())?;
        }
        out.flush()?;
        say::line(format_args!("would remove {} files, {bytes}", files.len()));
        return Ok(Exit::Done);
    }
    if asking == Asking::Ask {
        confirm(&format!("{bytes} of data, {} files, in `{}`", files.len(), path.display()))?;
    }
    directory.remove()?;
    say::line(format_args!("removed {} files, {bytes}, from `{}`", files.len(), path.display()));
    Ok(Exit::Done)
}

/// Asks on a terminal whether `what` may be removed; without one, nobody can have meant it.
pub(super) fn confirm(what: &str) -> Result<(), Failure> {
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        let failure = Failure::new(format_args!("removing {what} must be confirmed"));
        return Err(failure.with_hint("add `--yes`; `--dry-run` shows what would go".to_owned()));
    }
    let _ = write!(anstream::stderr(), "Remove {what}? [y/N] ");
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    if read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
        Ok(())
    } else {
        Err(Failure::new("nothing was removed"))
    }
}
