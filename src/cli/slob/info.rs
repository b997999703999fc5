//! `plimsoll slob info`.

use clap::Args;

use crate::cli::arguments::{FormatArgs, TargetArgs};
use crate::cli::exit::{Exit, Failure};
use crate::cli::interrupt::Interrupt;
use crate::cli::say;
use crate::cli::servers::ServerArgs;
use crate::cli::sheets;
use crate::databases;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll slob info
  plimsoll slob info --target dir:/u01/plimsoll --json

It only looks, so it works while a run goes on; a private server (`pg:DIR`, `my:DIR`) is started for it and stopped again.";

/// Arguments of `plimsoll slob info`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    format: FormatArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let interrupt = Interrupt::listen()?;
    let address = arguments.target.address();
    let database = databases::slob(address, &arguments.server.options(address)?)?;
    let sheet = interrupt.judge(sheets::with(database, |database| {
        let sheet = database.info(interrupt.flag())?;
        database.notes().iter().for_each(say::note);
        Ok(sheet)
    }))?;
    sheets::show(&sheet, arguments.format.format())
}
