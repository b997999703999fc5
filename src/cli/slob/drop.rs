//! `plimsoll slob drop`.

use clap::Args;

use crate::cli::arguments::TargetArgs;
use crate::cli::exit::{Exit, Failure};
use crate::cli::interrupt::Interrupt;
use crate::cli::removal::RemovalArgs;
use crate::cli::servers::ServerArgs;
use crate::cli::sheets;
use crate::databases;
use targets::database::DropScope;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll slob drop --dry-run                    only say what would go
  plimsoll slob drop --target dir:/u01/plimsoll --yes
  plimsoll slob drop --target postgres://bench@db1/bench

Only what set-up made is removed, and the directory if nothing else is in it. A private server (`pg:DIR`, `my:DIR`) is removed \
whole, unless order entry is in it too; on a server of yours, only the tables that set-up made.";

/// Arguments of `plimsoll slob drop`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    removal: RemovalArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let address = arguments.target.address();
    let options = arguments.server.options(address)?;
    let interrupt = Interrupt::listen()?;
    interrupt.judge(sheets::with(databases::slob(address, &options)?, |database| {
        let plan = database.plan_drop(DropScope::Everything, interrupt.flag())?;
        arguments.removal.run(plan, &interrupt)
    }))
}
