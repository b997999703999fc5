//! `plimsoll slob run`.

use clap::Args;

use super::load::LoadArgs;
use super::measure;
use crate::cli::exit::{Exit, Failure};
use crate::config::{Axes, MAX_SESSIONS};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll slob run -s 8 -t 4 RUN_TIME=60 UPDATE_PCT=20 \\
    --tag vm=d8s --tag disk=p30x2
  plimsoll slob run -c slob.conf                      an existing slob.conf
  plimsoll slob run -c slob.conf 8 WORK_UNIT=16       one value overridden
  plimsoll slob run 4 --rate 500/s --limit p99=10ms   open loop, with a limit
  plimsoll slob run -s 64 --target sim:service=200us,servers=8";

/// Arguments of `plimsoll slob run`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// Sessions for each schema; overrides THREADS_PER_SCHEMA
    #[arg(
        short,
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_SESSIONS)),
        help_heading = "Load"
    )]
    threads: Option<u32>,

    #[command(flatten)]
    load: LoadArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let request = arguments.load.request(arguments.threads, Axes::default())?;
    measure::run(&arguments.load, &request)
}
