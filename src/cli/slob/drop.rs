//! `plimsoll slob drop`.

use std::io::{BufRead, IsTerminal, Write};

use clap::Args;

use super::arguments::ServerArgs;
use super::sheets;
use crate::cli::arguments::TargetArgs;
use crate::cli::exit::{Exit, Failure};
use crate::cli::interrupt::Interrupt;
use crate::cli::say;
use crate::targets::database::{self, Database, DropScope};
use crate::units::Bytes;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll slob drop --dry-run                    only say what would go
  plimsoll slob drop --target dir:/u01/plimsoll --yes
  plimsoll slob drop --target postgres://bench@db1/bench

Only what set-up made is removed, and the directory if nothing else is in it. A private server (`pg:DIR`, `my:DIR`) is removed \
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
    let options = arguments.server.options(address)?;
    let interrupt = Interrupt::listen()?;
    sheets::with(database::at(address, &options)?, |database| remove(arguments, database, &interrupt))
}

fn remove(arguments: &Arguments, database: &mut dyn Database, interrupt: &Interrupt) -> Result<Exit, Failure> {
    let plan = database.plan_drop(DropScope::Everything, interrupt.flag())?;
    let what = plan.what();
    if arguments.dry_run {
        let mut out = say::output();
        for (bytes, name) in plan.items() {
            writeln!(out, "{:>10}  {name}", Bytes(bytes).to_string())?;
        }
        out.flush()?;
        say::line(format_args!("would remove {what}"));
        return Ok(Exit::Done);
    }
    if !arguments.yes {
        confirm(&what)?;
    }
    let also = plan.run(interrupt.flag())?.map_or_else(String::new, |also| format!(", and {also}"));
    say::line(format_args!("removed {what}{also}"));
    Ok(Exit::Done)
}

/// Asks on a terminal whether `what` may be removed; without one, nobody can have meant it.
fn confirm(what: &str) -> Result<(), Failure> {
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
