//! `plimsoll slob run`.

use std::path::Path;

use clap::Args;

use super::load::LoadArgs;
use super::{like, measure};
use crate::cli::arguments::Measured;
use crate::cli::exit::{Exit, Failure};
use crate::cli::like::{LikeArgs, Shape, read_times};
use crate::plan::slob::SlobPlanRequest;
use model::config::io::RateRange;
use model::config::{Axes, MAX_SESSIONS, SlobParameters};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll slob run -s 8 -t 4 RUN_TIME=60 UPDATE_PCT=20 \\
    --tag vm=d8s --tag disk=p30x2
  plimsoll slob run -c slob.conf                      an existing slob.conf
  plimsoll slob run -c slob.conf 8 WORK_UNIT=16       one value overridden
  plimsoll slob run 4 --rate 500/s --limit p99=10ms   open loop, with a limit
  plimsoll slob run -s 64 --target sim:service=200us,servers=8
  plimsoll slob run --like 202610 --dry-run           as production's peak
  plimsoll slob run --like 202610 --times 2 RUN_TIME=60
  plimsoll slob run --like 202610 --shape day RUN_TIME=30";

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
    like: LikeArgs,

    /// How many times what production did [default: 1]
    #[arg(long, value_name = "N", requires = "like", value_parser = read_times, help_heading = "Like production")]
    times: Option<f64>,

    /// Run a whole day of production, in steps of RUN_TIME each
    #[arg(
        long,
        value_enum,
        value_name = "SHAPE",
        requires = "like",
        conflicts_with = "at",
        help_heading = "Like production"
    )]
    shape: Option<Shape>,

    #[command(flatten)]
    load: LoadArgs,
}

impl Arguments {
    /// The directory that nobody else can use at the same time, if the data are in one.
    pub(in crate::cli) fn directory(&self) -> Option<&Path> {
        self.load.target.address().directory()
    }

    /// When the load is measured.
    ///
    /// # Errors
    /// If the parameters cannot be read, or may end the window before its time.
    pub(in crate::cli) fn measured(&self) -> Result<Measured, Failure> {
        if self.shape.is_some() {
            let failure = Failure::new("a day of production is several loads, and one is to run beside others");
            return Err(failure.with_hint("choose one moment: `--at peak`, or an hour".to_owned()));
        }
        let request = self.load.request(self.threads, Axes::default())?;
        let SlobParameters { run_time, work_loop, .. } = SlobParameters::from_settings(&request.settings)?;
        if work_loop > 0 {
            let failure = Failure::new(format_args!("`WORK_LOOP={work_loop}` ends a load when its work is done"));
            return Err(failure.with_hint("leave it out; loads that are measured together end at one time".to_owned()));
        }
        let warmup = request.warmup.unwrap_or_else(|| SlobPlanRequest::default_warmup(run_time));
        Ok(Measured { warmup, duration: run_time })
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let Arguments { threads, like, times, shape, load } = arguments;
    let request = load.request(*threads, Axes::default())?;
    if !like.is_asked() {
        return measure::run(load, &request);
    }
    let times = RateRange::Each(vec![times.unwrap_or(1.0)]);
    like::run(load, &request, like.production(*shape, &load.keeping.runs)?, &times)
}
