//! `plimsoll slob sweep`.

use clap::Args;

use super::load::LoadArgs;
use super::{like, measure};
use crate::cli::exit::{Exit, Failure};
use crate::cli::like::LikeArgs;
use model::config::io::RateRange;
use model::config::{Axes, ThreadList, Vary};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll slob sweep -s 8 --threads 1,2,4,8,16,32 RUN_TIME=30
  plimsoll slob sweep -s 8 --threads 1..64 --duration 30
  plimsoll slob sweep -s 8 --threads 1,4,16 --vary WORK_UNIT=4,16,64
  plimsoll slob sweep -s 8 --vary UPDATE_PCT=0,20,50,100 --dry-run
  plimsoll slob sweep --threads 1,2,4 --target sim: --limit p99=2ms
  plimsoll slob sweep --like 202610 --times 1..8 --limit p99=10ms";

/// clap's own is one line that does not fit a terminal.
const USAGE: &str = "\
plimsoll slob sweep [OPTIONS] --threads <N,N,...> [N | KEY=VALUE]...
       plimsoll slob sweep [OPTIONS] --vary <KEY=V,V,...> [N | KEY=VALUE]...
       plimsoll slob sweep [OPTIONS] --like <RUN> --times <N..N> [KEY=VALUE]...";

/// Arguments of `plimsoll slob sweep`.
#[derive(Debug, Args)]
#[command(
    group = clap::ArgGroup::new("axes").args(["threads", "vary", "times"]).required(true).multiple(true),
    override_usage = USAGE
)]
pub(in crate::cli) struct Arguments {
    /// Sessions for each schema, one step each: 1,2,4 or 1,2,…,64 or 1..64
    #[arg(short, long, value_name = "N,N,...", help_heading = "Load")]
    threads: Option<ThreadList>,

    /// Values of one parameter, one step each, as in WORK_UNIT=4,16,64 or WORK_UNIT=4..64; several are multiplied
    #[arg(long, value_name = "KEY=V,V,...", help_heading = "Load")]
    vary: Vec<Vary>,

    #[command(flatten)]
    like: LikeArgs,

    /// Multiples of what production did: `1,2,4` is one step each, `1..8` finds the multiple that the target carries
    #[arg(
        long,
        value_name = "N..N",
        requires = "like",
        conflicts_with_all = ["threads", "vary"],
        help_heading = "Like production"
    )]
    times: Option<RateRange>,

    #[command(flatten)]
    load: LoadArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    if let Some(times) = &arguments.times {
        let request = arguments.load.request(None, Axes::default())?;
        let production = arguments.like.production(None, &arguments.load.keeping.runs)?;
        return like::run(&arguments.load, &request, production, times);
    }
    if arguments.like.is_asked() {
        let failure = Failure::new("`--like` sweeps multiples of what production did, and none are given");
        return Err(failure.with_hint("say which: `--times 1..8`, or `--times 1,2,4`".to_owned()));
    }
    let axes = Axes::new(arguments.threads.clone(), arguments.vary.clone())?;
    let request = arguments.load.request(None, axes)?;
    measure::run(&arguments.load, &request)
}
