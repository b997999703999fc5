//! `plimsoll orders info`.

use clap::Args;

use super::with::with;
use crate::cli::arguments::{FormatArgs, TargetArgs};
use crate::cli::exit::{Exit, Failure};
use crate::cli::interrupt::Interrupt;
use crate::cli::servers::ServerArgs;
use crate::cli::{say, sheets};
use crate::databases;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll orders info --target pg:/u01/pgdata
  plimsoll orders info --target mysql://bench@db1/bench --json

It only looks, so it works while a run goes on; a private server (`pg:DIR`, `my:DIR`) is started for it and stopped again.";

/// Arguments of `plimsoll orders info`.
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
    let database = databases::orders(address, &arguments.server.options(address)?)?;
    let sheet = interrupt.judge(with(database, |database| {
        let sheet = database.info(interrupt.flag())?;
        database.notes().iter().for_each(say::note);
        Ok(sheet)
    }))?;
    sheets::show(&sheet, arguments.format.format())
}
