//! `plimsoll io run`.

use clap::Args;

use super::arguments::{OutputArgs, ShapeArgs, TimeArgs, VolumeArgs};
use super::like::{self, Job};
use super::measure;
use crate::cli::arguments::{Measured, Rate};
use crate::cli::exit::{Exit, Failure};
use crate::cli::like::{LikeArgs, Shape, read_times};
use crate::cli::runner;
use crate::cli::second_look::Experiments;
use crate::plan::io::open_loop_depth;
use model::config::io::{DepthList, RateRange};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll io run --path /u01/test.dat --size 16G --pattern randread --depth 32
  plimsoll io run --path /u01/test.dat --pattern randrw --read-pct 70 \\
    --depth 64 --jobs 4 --duration 60
  plimsoll io run --path /u01/test.dat --pattern write --block-size 1M \\
    --depth 4 --durable dsync
  plimsoll io run --path /u01/test.dat --pattern randread --rate 5000 \\
    --limit p99=5ms
  plimsoll io run --path /dev/sdb --path /dev/sdc --stripe 1M \\
    --pattern randread --depth 64
  plimsoll io run --path /dev/sdb --pattern randwrite --depth 16 \\
    --destroy sdb --verify
  plimsoll io run --like 202610 --path /dev/sdb --duration 60
  plimsoll io run --path sim:service=200us,servers=8 --pattern randread \\
    --depth 16 --duration 5";

/// Requests outstanding in a closed loop unless the user says otherwise.
const DEFAULT_DEPTH: u32 = 32;

/// Arguments of `plimsoll io run`.
#[derive(Debug, Args)]
#[command(mut_arg("pattern", |pattern| pattern.required(false).required_unless_present("like")))]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    volume: VolumeArgs,

    #[command(flatten)]
    shape: ShapeArgs,

    /// Outstanding requests of all jobs together [default: 32]
    ///
    /// With --rate it is the maximum [default: 1024, or as many as fit in 1 GiB].
    #[arg(long, value_name = "N", help_heading = "Load")]
    depth: Option<u32>,

    /// Start operations at this rate, whether or not earlier ones are done (open loop)
    #[arg(long, value_name = "N[/s]", allow_hyphen_values = true, help_heading = "Load")]
    rate: Option<Rate>,

    #[command(flatten)]
    like: LikeArgs,

    /// Multiple of production's load [default: 1]
    #[arg(long, value_name = "N", requires = "like", value_parser = read_times, help_heading = "Like production")]
    times: Option<f64>,

    /// Run a whole day of production, in steps of --duration each
    #[arg(
        long = "shape",
        value_enum,
        value_name = "SHAPE",
        requires = "like",
        conflicts_with = "at",
        help_heading = "Like production"
    )]
    day: Option<Shape>,

    #[command(flatten)]
    time: TimeArgs,

    #[command(flatten)]
    output: OutputArgs,
}

impl Arguments {
    /// Whether it is one load, and not one an hour of a production's day.
    pub(in crate::cli) fn is_one_load(&self) -> bool {
        self.day.is_none()
    }

    /// When the load is measured.
    pub(in crate::cli) fn measured(&self) -> Measured {
        Measured { warmup: self.time.warmup.0, duration: self.time.duration.0 }
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let Arguments { volume, shape, depth, rate, like, times, day, time, output } = arguments;
    let (storage, fleet) = (volume.storage()?, time.fleet.join()?);
    if like.is_asked() {
        let of_production = [
            ("--pattern", shape.pattern.is_some()),
            ("--rate", rate.is_some()),
            ("--depth", depth.is_some()),
            ("--read-pct", shape.read_pct.is_some()),
            ("--verify", shape.verify),
        ];
        like::refuse(of_production.into_iter().find(|(_, is_given)| *is_given).map(|(flag, _)| flag))?;
        let production = like.production(*day, &output.keeping.runs)?;
        let job = Job {
            volume,
            storage: &storage,
            shape,
            production,
            times: times.unwrap_or(1.0),
            time,
            fleet: &fleet,
            output,
        };
        return runner::run(like::plan(job)?);
    }
    let threads = shape.jobs.get().saturating_mul(fleet.share().parts);
    let usual = if rate.is_some() { open_loop_depth(shape.block_size.bytes()) } else { DEFAULT_DEPTH.max(threads) };
    let depths = DepthList(vec![depth.unwrap_or(usual)]);
    let rates = rate.map(|Rate(per_s)| RateRange::Each(vec![per_s]));
    let (seed, kernel_client) = (time.seed.given(), None);
    let asked = shape.asked(volume, &storage, depths, rates);
    measure::run(measure::Job {
        round: None,
        volume,
        storage: &storage,
        asked,
        time,
        seed,
        kernel_client,
        fleet: &fleet,
        experiments: Experiments::Never,
        output,
    })
}
