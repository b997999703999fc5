//! `plimsoll orders`.

mod audit;
mod drop;
mod info;
mod load;
mod run;
mod setup;
mod sweep;
mod verify;
mod with;

use clap::Subcommand;

pub(super) use load::by_name;

use super::exit::{Exit, Failure};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll orders setup --scale 0.1 --target pg:/u01/pgdata
  plimsoll orders setup --scale 10 --target postgres://bench@db1/bench
  plimsoll orders run --users 16 --duration 60 --target pg:/u01/pgdata
  plimsoll orders verify --target pg:/u01/pgdata
  plimsoll orders drop --target postgres://bench@db1/bench --dry-run";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make the data: customers, products, stocks and orders
    #[command(after_long_help = setup::EXAMPLES)]
    Setup(setup::Arguments),
    /// Measure one load of users
    #[command(after_long_help = run::EXAMPLES)]
    Run(run::Arguments),
    /// Measure several loads in turn and find the largest that the target carries
    #[command(after_long_help = sweep::EXAMPLES)]
    Sweep(sweep::Arguments),
    /// Audit the data: totals, stock, keys, and that nothing is missing that was acknowledged
    #[command(after_long_help = verify::EXAMPLES)]
    Verify(verify::Arguments),
    /// Show what data are there
    #[command(after_long_help = info::EXAMPLES)]
    Info(info::Arguments),
    /// Remove the data
    #[command(after_long_help = drop::EXAMPLES)]
    Drop(drop::Arguments),
}

impl Command {
    pub(super) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Setup(arguments) => setup::run(&arguments),
            Self::Run(arguments) => run::run(&arguments),
            Self::Sweep(arguments) => sweep::run(&arguments),
            Self::Verify(arguments) => verify::run(&arguments),
            Self::Info(arguments) => info::run(&arguments),
            Self::Drop(arguments) => drop::run(&arguments),
        }
    }
}
