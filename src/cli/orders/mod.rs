//! `plimsoll orders`.

mod drop;
mod info;
mod setup;

use clap::Subcommand;

use super::exit::{Exit, Failure};
use super::sheets;
use crate::targets::orders::OrdersDatabase;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll orders setup --scale 0.1 --target pg:/u01/pgdata
  plimsoll orders setup --scale 10 --target postgres://bench@db1/bench
  plimsoll orders info --target postgres://bench@db1/bench
  plimsoll orders drop --target postgres://bench@db1/bench --dry-run";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make the data: customers, products, stocks and orders
    #[command(after_long_help = setup::EXAMPLES)]
    Setup(setup::Arguments),
    /// Tell what data are there
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
            Self::Info(arguments) => info::run(&arguments),
            Self::Drop(arguments) => drop::run(&arguments),
        }
    }
}

/// Does something with a database and leaves it however that ends.
fn with<T>(
    database: Box<dyn OrdersDatabase>,
    work: impl FnOnce(&mut dyn OrdersDatabase) -> Result<T, Failure>,
) -> Result<T, Failure> {
    sheets::then_leave(database, |database| work(database), OrdersDatabase::close)
}
