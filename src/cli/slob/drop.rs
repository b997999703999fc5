//! `plimsoll slob drop`.

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::arguments::TargetArgs;
use crate::cli::exit::{Exit, Failure};
use crate::cli::say;
use crate::target::embedded::Directory;
use crate::units::Bytes;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll slob drop --dry-run                             only say what would go
  plimsoll slob drop --target dir:/u01/plimsoll --yes

Only files that set-up made are removed, and the directory if nothing else is in it.";

/// Arguments of `plimsoll slob drop`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    target: TargetArgs,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn carry_out(arguments: &Arguments) -> Result<Exit, Failure> {
    let path = arguments.target.directory()?;
    let directory = Directory::lock(path)?;
    let files = directory.our_files()?;
    let bytes = Bytes(files.iter().map(|(_, bytes)| bytes).sum());
    if arguments.dry_run {
        let mut out = say::output();
        for (file, bytes) in &files {
            writeln!(out, "{:>10}  {}", Bytes(*bytes).to_string(), file.display())?;
        }
        out.flush()?;
        say::line(format_args!("would remove {} files, {bytes}", files.len()));
        return Ok(Exit::Done);
    }
    if !arguments.yes {
        ask(path, &files, bytes)?;
    }
    directory.remove()?;
    say::line(format_args!("removed {} files, {bytes}, from `{}`", files.len(), path.display()));
    Ok(Exit::Done)
}

/// Asks on a terminal; without one, nobody can have meant it.
fn ask(path: &Path, files: &[(PathBuf, u64)], bytes: Bytes) -> Result<(), Failure> {
    let shown = path.display();
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        let failure = Failure::new(format_args!("removing {bytes} of data in `{shown}` must be confirmed"));
        return Err(failure.with_hint("add `--yes`; `--dry-run` shows what would go".to_owned()));
    }
    let _ = write!(anstream::stderr(), "Remove {} files, {bytes}, from `{shown}`? [y/N] ", files.len());
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    if read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
        Ok(())
    } else {
        Err(Failure::new("nothing was removed"))
    }
}
