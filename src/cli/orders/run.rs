//! `plimsoll orders run`.

use std::path::{Path, PathBuf};

use clap::Args;

use super::load::LoadArgs;
use crate::cli::arguments::{Measured, Rate};
use crate::cli::exit::{Exit, Failure};
use model::config::MAX_SESSIONS;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll orders run --users 16 --target pg:/u01/pgdata --duration 60
  plimsoll orders run --users 200 --think 100ms..500ms \\
    --target postgres://bench@db1/bench
  plimsoll orders run --users 64 --rate 500/s --limit p99=20ms
  plimsoll orders run --users 16 --mix OP=40,BP=50,PO=5";

/// Arguments of `plimsoll orders run`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// Users, each with a connection of its own
    #[arg(
        short,
        long,
        value_name = "N",
        default_value_t = 16,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_SESSIONS)),
        help_heading = "Load"
    )]
    users: u32,

    /// Start transactions at this rate over all users, whether or not earlier ones are done (open loop)
    #[arg(long, value_name = "N[/s]", allow_hyphen_values = true, help_heading = "Load")]
    rate: Option<Rate>,

    /// Write the results as Swingbench does, for tools that read its files
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    results: Option<PathBuf>,

    #[command(flatten)]
    load: LoadArgs,
}

impl Arguments {
    /// The directory that nobody else can use at the same time, if the data are in one.
    pub(in crate::cli) fn directory(&self) -> Option<&Path> {
        self.load.directory()
    }

    /// When the load is measured.
    pub(in crate::cli) fn measured(&self) -> Measured {
        self.load.measured()
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let rates = arguments.rate.iter().map(|Rate(per_s)| *per_s).collect();
    arguments.load.run(vec![arguments.users], rates, arguments.results.as_deref())
}
