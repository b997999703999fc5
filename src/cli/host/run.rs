//! `plimsoll host run`.

use clap::Args;

use super::arguments::WorkArgs;
use super::measure;
use crate::cli::arguments::{Measured, Seconds};
use crate::cli::exit::{Exit, Failure};
use crate::plan::host::{DEFAULT_DURATION, DEFAULT_WARMUP, HostRequest};
use model::config::host::{ProcessorChoice, WorkList};
use model::record::HostLoad;
use model::workload::HostKind;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll host run
  plimsoll host run --duration 10m --tag vm=d8s
  plimsoll host run --work logical-read,checksum --processors 4
  plimsoll host run --work memory-latency --size 1G --duration 5
  plimsoll host run --work checksum --processors each --duration 2

Without --work and --duration it looks at everything for about a minute: work on one processor and on all, memory by \
size, wake-ups, timers. With them it is one load: what is asked for, or the first five kinds in turn.

Kinds of work (docs/host.md says what each is):
  logical-read, checksum, compare, sort, hash-join   `processor` for all five
  memory-copy, memory-triad, memory-latency          `memory` for all three
  wake, timer";

/// Arguments of `plimsoll host run`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// What is done, in turn where it is several: checksum, sort, … or `processor` or `memory` for several
    #[arg(long, value_name = "KIND,KIND,...", help_heading = "Load")]
    work: Option<WorkList>,

    /// Which processors: all at once, each by itself, one thread of each of the cores, a number of them, or a list such as 0,2-3
    #[arg(long, value_name = "all|each|cores|N|LIST", default_value = "all", help_heading = "Load")]
    processors: ProcessorChoice,

    /// Length of the measured window, in seconds or with a unit [default: 30s; without --work a look at everything]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Load")]
    duration: Option<Seconds>,

    #[command(flatten)]
    common: WorkArgs,
}

impl Arguments {
    fn request(&self) -> HostRequest {
        let request = self.common.request(self.work.as_ref(), self.processors.clone());
        let duration = self.duration.map(|Seconds(duration)| duration);
        // Whoever says how long, and not what, wants processors busy.
        let work = request.load.work.or_else(|| duration.map(|_| WorkList(HostKind::PROCESSOR.to_vec())));
        HostRequest { load: HostLoad { work, ..request.load }, duration, ..request }
    }

    /// When the only load is measured.
    pub(in crate::cli) fn measured(&self) -> Result<Measured, Failure> {
        let request = self.request();
        if request.load.work.is_none() || self.processors == ProcessorChoice::Each {
            let failure =
                Failure::new("`host run` is several loads in turn as it stands, and one is to run beside others");
            return Err(
                failure.with_hint("say what it does on which processors: `host run --work processor`".to_owned())
            );
        }
        Ok(Measured {
            warmup: request.warmup.unwrap_or(DEFAULT_WARMUP),
            duration: request.duration.unwrap_or(DEFAULT_DURATION),
        })
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    measure::run(&arguments.request(), &arguments.common)
}
