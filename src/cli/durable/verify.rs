//! `plimsoll durable verify`.

use std::path::PathBuf;

use clap::Args;

use super::{CommitTargetArgs, say_notes, with};
use crate::cli::arguments::FormatArgs;
use crate::cli::dry_run::DryRun;
use crate::cli::exit::{Exit, Failure};
use crate::cli::{Interrupt, sheets};
use ::durable::judge::Judge;
use ::durable::notes;
use ::durable::opening::Machine;
use ::durable::verdict::{Judged, Verdict};
use targets::TargetError;
use targets::block::safety::Permission;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll durable verify --target dir:/u01/durable --notes cut1.notes
  plimsoll durable verify --target raw:/dev/sdb --notes cut3.notes \\
    --json > cut3.json

Exit code 0: every acknowledged commit that must be there is there, after what looks like a power cut under load. 1: acknowledged \
commits are lost. 2: no verdict, with each reason, or it could not be done. Verify on the machine of the load, before anything else \
writes there.";

/// Arguments of `plimsoll durable verify`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    target: CommitTargetArgs,

    /// File with the notes of the witness
    #[arg(long, value_name = "FILE", help_heading = "Notes")]
    notes: PathBuf,

    #[command(flatten)]
    format: FormatArgs,

    /// Print what would be done, and exit
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    dry_run: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let noted = notes::read(&arguments.notes)
        .map_err(|error| Failure::from(error).named(&format!("`{}`", arguments.notes.display())))?;
    let opening = &noted.opened.opening;
    let shape = opening.shape;
    if arguments.dry_run {
        let slots = format!("{} sessions of {} slots", shape.sessions, shape.blocks);
        return DryRun::default()
            .fact("target", &arguments.target.target)
            .fact("read", slots)
            .fact("notes", format!("{} commits", noted.notes))
            .print(None, false);
    }
    let interrupt = Interrupt::listen()?;
    let target = arguments.target.open(opening.files.unwrap_or_default(), Permission::default())?;
    let (presence, findings) = with(target, |target| {
        let mut judge = Judge::new(shape, &noted.sessions, noted.last_us);
        let read = target.read(&shape, &opening.made, interrupt.flag(), &mut |session, slot, found| {
            judge.slot(session, slot, found);
        });
        say_notes(target);
        let presence = read.map_err(|error| match (error, interrupt.exit()) {
            (TargetError::Interrupted, Some(exit)) => {
                Failure::new("interrupted; not everything was read, so there is no verdict").with_exit(exit)
            }
            // Whatever it says of data: without a comparison nothing is shown.
            (error, _) => Failure::from(error).with_exit(Exit::CouldNot),
        })?;
        Ok((presence, judge.findings()))
    })?;
    let here = Machine::here();
    let judged = Judged { noted: &noted, presence: &presence, findings: &findings, here: &here };
    let exit = match judged.verdict() {
        Verdict::Kept => Exit::Done,
        Verdict::Lost => Exit::NotMet,
        Verdict::None(_) => Exit::NoVerdict,
    };
    match sheets::show(&judged.sheet(), arguments.format.format()) {
        // Its reader has gone, and the exit code says the same.
        Ok(_) | Err(Failure::PipeClosed) => Ok(exit),
        Err(failure) => Err(failure),
    }
}
