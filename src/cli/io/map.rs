//! `plimsoll io map`.

use clap::Args;

use super::arguments::{Storage, VolumeArgs};
use super::volume::{Intended, OpenStorage, Prospect};
use crate::cli::arguments::{KeepingArgs, Rate, Seconds, SeedArg};
use crate::cli::dry_run::DryRun;
use crate::cli::exit::{Exit, Failure};
use crate::cli::live::Steps;
use crate::cli::map::{self, SearchArgs, rate_or_zero};
use crate::cli::processors;
use crate::cli::recording::Recorded;
use crate::cli::runner::{Beginning, Outline, Work};
use crate::plan::map::{MapPlan, MapRequest};
use analysis::LatencyTarget;
use model::config::io::{BlockSize, DepthList, Durable, IoOptions, Pattern};
use model::record::{IoMap, MapOf};
use model::units::{Bytes, Nanos};

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll io map --path /dev/sdb --destroy sdb --limit p99=5ms
  plimsoll io map --path /u01/test.dat --size 64G --durable dsync
  plimsoll io map --path /u01/test.dat --size 64G --read-pct 50..95 \\
    --rate 500..80k --duration 30
  plimsoll io map --path /u01/test.dat --size 64G --reads 12k --writes 900
  plimsoll io map --rate 100..50k --limit p99=50ms \\
    --path sim:read_iops_cap=8000,write_iops_cap=3000,clock=simulated

The line is the rates of reads and writes at which the limit is still met. About 30 points show it where a grid takes \
400. With --reads and --writes, the exit code is 0 inside of the line, 1 outside, and 2 where that is not known. Without \
them it is 1 if no mix meets the limit at any rate.";

/// Arguments of `plimsoll io map`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    volume: VolumeArgs,

    /// Size of a request
    #[arg(long, value_name = "SIZE", default_value = "8K", help_heading = "Load")]
    block_size: BlockSize,

    /// Latency limit that both kinds of operations must each meet
    #[arg(long, value_name = "pQ=TIME", default_value = "p99=5ms", help_heading = "Load")]
    limit: LatencyTarget,

    #[command(flatten)]
    search: SearchArgs,

    /// When a write counts as durable: none, dsync (each) or fsync:N (after every N of a job)
    #[arg(long, value_name = "WHEN", default_value = "none", help_heading = "Load")]
    durable: Durable,

    /// Length of each measured window, in seconds or with a unit
    #[arg(long, value_name = "TIME", default_value = "10", allow_hyphen_values = true, help_heading = "Load")]
    duration: Seconds,

    /// Load before each measured window, recorded and marked
    #[arg(long, value_name = "TIME", default_value = "2", allow_hyphen_values = true, help_heading = "Load")]
    warmup: Seconds,

    #[command(flatten)]
    seed: SeedArg,

    /// Reads per second of a demand: is it inside of the line?
    #[arg(long, value_name = "N[/s]", requires = "writes", value_parser = rate_or_zero, help_heading = "Output")]
    reads: Option<Rate>,

    /// Writes per second of that demand
    #[arg(long, value_name = "N[/s]", requires = "reads", value_parser = rate_or_zero, help_heading = "Output")]
    writes: Option<Rate>,

    #[command(flatten)]
    keeping: KeepingArgs,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let storage = arguments.volume.storage()?;
    let asked = asked(arguments, &storage);
    asked.check()?;
    let Arguments { block_size, durable, limit, search, reads, writes, .. } = arguments;
    let search = search.search(MapOf::Requests, limit, reads.zip(*writes))?;
    let map = IoMap { block: *block_size, durable: *durable, search };
    let prospect = Prospect::look(&storage, &arguments.volume.handling, &asked)?;
    let request = MapRequest {
        map,
        size: arguments.volume.size,
        duration: arguments.duration.0,
        warmup: arguments.warmup.0,
        seed: arguments.seed.or_fresh(),
        tags: arguments.keeping.tags.clone(),
        processors: processors(),
    };
    let plan = MapPlan::new(&request, &prospect.facts(&asked)?)?;
    map::run(Planned { arguments, plan, storage, asked, prospect }, None)
}

fn asked(arguments: &Arguments, storage: &Storage) -> IoOptions {
    let asked = arguments.volume.asked(storage, Pattern::RandRw, arguments.block_size, DepthList(vec![1]));
    IoOptions { durable: arguments.durable, ..asked }
}

/// A map that is planned and checked.
struct Planned<'a> {
    arguments: &'a Arguments,
    plan: MapPlan,
    storage: Storage,
    asked: IoOptions,
    prospect: Prospect,
}

impl<'a> Work<'a> for Planned<'a> {
    fn outline(&self) -> Outline<'a> {
        let Self { plan, arguments, prospect, .. } = self;
        let points = arguments.search.points();
        let time = Nanos(plan.step_time().0.saturating_mul(points as u64));
        let is_simulated = prospect.clock().is_simulated();
        let outline = Outline::new(&plan.head, &arguments.keeping, Steps::UpTo(points));
        Outline { time: Some(time), is_simulated, ..outline }
    }

    fn described(self) -> Result<DryRun, Failure> {
        let Self { arguments, plan, storage, prospect, .. } = self;
        let paths = storage.paths().iter().map(|path| path.display());
        let described = DryRun::named(&plan.head.name).facts("path", paths);
        let described = prospect
            .describe_fills(described)
            .fact("touch", Bytes(plan.region_bytes))
            .fact("seed", plan.head.seed)
            .settings(&plan.head.tags, &plan.head.parameters)
            .gap();
        Ok(arguments.search.described(described, arguments.warmup.0, arguments.duration.0))
    }

    fn carry_out(self, beginning: Beginning<'_>) -> Result<Recorded, Failure> {
        let Self { arguments, plan, storage, asked, prospect } = self;
        let (clock, verbosity) = (prospect.clock(), arguments.keeping.progress.verbosity());
        let block_bytes = arguments.block_size.bytes();
        let intended = Intended { region_bytes: plan.region_bytes, largest_bytes: block_bytes, seed: plan.head.seed };
        let opened: OpenStorage = prospect.open(&asked, intended, clock, beginning.interrupt, verbosity)?;
        let landing = opened.landing(clock, Bytes(block_bytes.into()), plan.region_bytes, storage.local());
        let mut recording = beginning.record(landing)?;
        let points = arguments.search.points();
        let mut step_of = |index, level, reading| plan.step(index, level, reading);
        let steps = map::measure(&mut recording, opened.target(), points, &mut step_of);
        recording.progress().end();
        opened.note_of_the_load().into_iter().for_each(|note| recording.note(note));
        drop(opened);
        Ok(recording.end(steps))
    }
}
