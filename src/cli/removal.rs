//! Removing what a plan lists: shown, asked about, or done.

use std::io::{BufRead, IsTerminal, Write};

use clap::Args;

use super::exit::{Exit, Failure};
use super::interrupt::Interrupt;
use super::say;
use model::units::Bytes;
use targets::database::DropPlan;

/// Whether something is removed, and whether that is asked about.
#[derive(Debug, Args)]
pub(super) struct RemovalArgs {
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
}

impl RemovalArgs {
    /// Removes what the plan lists, or says what that is.
    pub(super) fn run(&self, plan: Box<dyn DropPlan + '_>, interrupt: &Interrupt) -> Result<Exit, Failure> {
        let what = plan.what();
        if self.dry_run {
            let mut out = say::output();
            for (bytes, name) in plan.items() {
                writeln!(out, "{:>10}  {name}", Bytes(bytes).to_string())?;
            }
            out.flush()?;
            say::line(format_args!("would remove {what}"));
            return Ok(Exit::Done);
        }
        if !self.yes {
            confirm(&what)?;
        }
        let also = plan.run(interrupt.flag())?.map_or_else(String::new, |also| format!(", and {also}"));
        say::line(format_args!("removed {what}{also}"));
        Ok(Exit::Done)
    }
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
