//! `plimsoll host sweep`.

use clap::Args;

use super::arguments::WorkArgs;
use super::measure;
use crate::cli::arguments::Seconds;
use crate::cli::exit::{Exit, Failure};
use crate::plan::host::HostRequest;
use model::config::host::{ProcessorChoice, WorkList};
use model::config::io::DepthList;
use model::record::HostLoad;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll host sweep --threads 1,2,4,…,32
  plimsoll host sweep --work memory-triad --size 256M --threads 1..8
  plimsoll host sweep --work logical-read --cache 4G --threads 1,8,16

Threads are put on different cores first, and on second hardware threads of the same cores only then.";

/// Arguments of `plimsoll host sweep`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// Kinds of work, each by every number of threads [default: processor]
    #[arg(long, value_name = "KIND,KIND,...", help_heading = "Load")]
    work: Option<WorkList>,

    /// Threads at work at once, each on a processor of its own: 1,2,4 or 1,2,4,…,64 or 1..64
    #[arg(long, value_name = "N,N,...", help_heading = "Load")]
    threads: DepthList,

    /// Length of each measured window, in seconds or with a unit
    #[arg(long, value_name = "TIME", default_value = "5", allow_hyphen_values = true, help_heading = "Load")]
    duration: Seconds,

    #[command(flatten)]
    common: WorkArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let Arguments { work, threads, duration: Seconds(duration), common } = arguments;
    let request = common.request(work.as_ref(), ProcessorChoice::All);
    let request = HostRequest {
        load: HostLoad { threads: Some(threads.clone()), ..request.load },
        duration: Some(*duration),
        ..request
    };
    measure::run(&request, common)
}
