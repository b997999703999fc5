//! `plimsoll orders sweep`.

use clap::Args;

use super::load::LoadArgs;
use crate::cli::arguments::Rate;
use crate::cli::exit::{Exit, Failure};
use model::config::ThreadList;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll orders sweep --users 1,2,4,8,16,32 --duration 30
  plimsoll orders sweep --users 1..64 --limit p99=20ms
  plimsoll orders sweep --users 64 --rate 100 --rate 200 --rate 400";

/// Arguments of `plimsoll orders sweep`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// Users, one step each: 1,2,4 or 1,2,…,64 or 1..64
    #[arg(short, long, value_name = "N,N,...", help_heading = "Load")]
    users: ThreadList,

    /// Start transactions at this rate over all users (open loop); given several times, each is a step
    #[arg(long, value_name = "N[/s]", allow_hyphen_values = true, help_heading = "Load")]
    rate: Vec<Rate>,

    #[command(flatten)]
    load: LoadArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let ThreadList(users) = &arguments.users;
    let rates = arguments.rate.iter().map(|Rate(per_s)| *per_s).collect();
    arguments.load.run(users.clone(), rates, None)
}
