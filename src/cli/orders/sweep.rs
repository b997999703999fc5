//! `plimsoll orders sweep`.

use clap::Args;

use super::load::LoadArgs;
use crate::cli::exit::{Exit, Failure};
use model::config::ThreadList;
use model::config::io::RateRange;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll orders sweep --users 1,2,4,8,16,32 --duration 30
  plimsoll orders sweep --users 1..64 --limit p99=20ms
  plimsoll orders sweep --users 64 --rate 100,200,400";

/// Arguments of `plimsoll orders sweep`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// Users, one step each: 1,2,4 or 1,2,…,64 or 1..64
    #[arg(short, long, value_name = "N,N,...", help_heading = "Load")]
    users: ThreadList,

    /// Start transactions at each of these rates over all users (open loop), one step each: 100,200,400
    #[arg(long, value_name = "N,N,...", help_heading = "Load")]
    rate: Option<RateRange>,

    #[command(flatten)]
    load: LoadArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let ThreadList(users) = &arguments.users;
    let rates = match &arguments.rate {
        Some(RateRange::Between { lowest, highest }) => {
            let failure = Failure::new("`--rate`: order entry is not searched for the rate that it carries");
            return Err(failure.with_hint(format!("write the rates to be measured: `--rate {lowest},{highest}`")));
        }
        Some(RateRange::Each(rates)) => rates.clone(),
        None => Vec::new(),
    };
    arguments.load.run(users.clone(), rates, None)
}
