//! `plimsoll orders drop`.

use clap::Args;

use super::with::with;
use crate::cli::arguments::TargetArgs;
use crate::cli::exit::{Exit, Failure};
use crate::cli::interrupt::Interrupt;
use crate::cli::removal::RemovalArgs;
use crate::cli::servers::ServerArgs;
use crate::databases;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll orders drop --target pg:/u01/pgdata --dry-run
  plimsoll orders drop --target postgres://bench@db1/bench

Only what set-up made is removed. A private server (`pg:DIR`, `my:DIR`) is removed whole if it holds no other data of \
Plimsoll.";

/// Arguments of `plimsoll orders drop`.
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
    interrupt.judge(with(databases::orders(address, &options)?, |database| {
        let plan = database.plan_drop(interrupt.flag())?;
        arguments.removal.run(plan, &interrupt)
    }))
}
