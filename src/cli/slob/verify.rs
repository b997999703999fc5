//! `plimsoll slob verify`.

use std::io::Write;

use clap::Args;

use crate::cli::arguments::{Format, FormatArgs, IoArgs, ProgressArgs, TargetArgs};
use crate::cli::exit::{Exit, Failure};
use crate::cli::interrupt::Interrupt;
use crate::cli::live::ByteProgress;
use crate::cli::say;
use crate::cli::servers::ServerArgs;
use crate::cli::sheets;
use crate::databases;
use model::config::TargetAddress;
use targets::TargetError;
use targets::database::{DatabaseOptions, Progress};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll slob verify
  plimsoll slob verify --target dir:/u01/plimsoll --json
  plimsoll slob verify --target dir:/u01/plimsoll --scrub

Redo is replayed first if the last run was killed. Exit code 1: a block is not what was written, or a commit that was \
acknowledged is missing.";

/// Arguments of `plimsoll slob verify`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    target: TargetArgs,
    /// Also compare all copies that a disk group keeps of the files, and make them alike
    #[arg(long, help_heading = "Data")]
    scrub: bool,

    #[command(flatten)]
    io: IoArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    progress: ProgressArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let interrupt = Interrupt::listen()?;
    let address = arguments.target.address();
    let options = arguments.server.options(address)?;
    if arguments.scrub && !matches!(address, TargetAddress::Directory(_)) {
        let failure = Failure::new(format_args!("`--scrub` is for the embedded engine, not for `{address}`"));
        return Err(failure.with_hint(
            "leave it out: it compares the copies of a disk group, and no other target has files on one".to_owned(),
        ));
    }
    let options = DatabaseOptions { io_engine: arguments.io.engine(), scrub: arguments.scrub, ..options };
    let verified = sheets::with(databases::slob(address, &options)?, |database| {
        let progress = ByteProgress::new("verifying", arguments.progress.verbosity());
        let show = |now: Progress| progress.update(now.done_bytes, now.total_bytes);
        let outcome = database.verify(&show, interrupt.flag());
        progress.end();
        database.notes().iter().for_each(say::note);
        outcome.map_err(|error| match (error, interrupt.exit()) {
            (TargetError::Interrupted, Some(exit)) => {
                Failure::new("interrupted; not all data were read").with_exit(exit)
            }
            (error, _) => Failure::from(error),
        })
    })?;
    match arguments.format.format() {
        Format::Json => say::json(&verified.sheet.document)?,
        Format::Text => {
            verified.notes.iter().for_each(say::note);
            let mut out = say::output();
            sheets::write(&mut out, &verified.sheet)?;
            out.flush()?;
        }
    }
    Ok(if verified.is_sound { Exit::Done } else { Exit::NotMet })
}
