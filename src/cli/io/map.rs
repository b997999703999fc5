//! `plimsoll io map`.

use std::str::FromStr;

use clap::Args;

use super::arguments::{Storage, VolumeArgs};
use super::volume::{Intended, OpenStorage, Prospect};
use crate::cli::arguments::{KeepingArgs, Rate, RateError, Seconds, SeedArg};
use crate::cli::dry_run::DryRun;
use crate::cli::exit::{Exit, Failure};
use crate::cli::live::Steps;
use crate::cli::processors;
use crate::cli::recording::{NextStep, Recorded};
use crate::cli::runner::{self, Beginning, Outline, Work};
use crate::cli::supervisor::Supervisor;
use crate::plan::map::{MapPlan, MapRequest};
use analysis::{LatencyTarget, LimitAnswer, MapAnswer, next_of_map};
use model::config::io::{BlockSize, DepthList, Durable, IoOptions, Pattern, RateRange};
use model::record::{IoMap, IoMapLevel, MapDemand};
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

/// Points at most: what 8 minutes hold.
const POINTS: u32 = 40;

/// Arguments of `plimsoll io map`.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    volume: VolumeArgs,

    /// Size of a request
    #[arg(long, value_name = "SIZE", default_value = "8K", help_heading = "Load")]
    block_size: BlockSize,

    /// Latency limit that reads and writes must each meet
    #[arg(long, value_name = "pQ=TIME", default_value = "p99=5ms", help_heading = "Load")]
    limit: LatencyTarget,

    /// Range of the share of reads, in percent of the requests
    #[arg(long, value_name = "PCT..PCT", default_value = "0..100", help_heading = "Load")]
    read_pct: Percents,

    /// Lowest and highest rate to try
    ///
    /// The highest may be more than the storage sustains.
    #[arg(long, value_name = "N..N", default_value = "10..200k", help_heading = "Load")]
    rate: RateRange,

    /// When a write counts as durable: none, dsync (each) or fsync:N (after every N of a job)
    #[arg(long, value_name = "WHEN", default_value = "none", help_heading = "Load")]
    durable: Durable,

    /// How far the line may be off, on either side
    #[arg(long, value_name = "PERCENT", default_value = "5%", help_heading = "Load")]
    within: Within,

    /// Points to measure at most
    #[arg(long, value_name = "N", default_value_t = POINTS, value_parser = clap::value_parser!(u32).range(5..=1_000), help_heading = "Load")]
    points: u32,

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

/// A rate of one kind, of which a demand may have none.
fn rate_or_zero(text: &str) -> Result<Rate, RateError> {
    let number = text.trim();
    let is_none = number.strip_suffix("/s").unwrap_or(number).parse() == Ok(0.0_f64);
    if is_none { Ok(Rate(0.0)) } else { text.parse() }
}

/// Two shares in percent, the lower one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Percents {
    least: u8,
    most: u8,
}

impl FromStr for Percents {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let read = |text: &str| text.trim().parse::<u8>().ok().filter(|percent| *percent <= 100);
        let ends = text.split_once("..").and_then(|(least, most)| Some((read(least)?, read(most)?)));
        match ends.filter(|(least, most)| least < most) {
            Some((least, most)) => Ok(Self { least, most }),
            None => Err("not two shares from 0 to 100, the lower one first, such as `50..95`".to_owned()),
        }
    }
}

/// A share of a rate, from 1 to 50 %.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Within(f64);

impl FromStr for Within {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.trim();
        match number.strip_suffix('%').unwrap_or(number).trim_end().parse::<f64>() {
            Ok(percent) if (1.0..=50.0).contains(&percent) => Ok(Self(percent / 100.0)),
            _ => Err("not a share from 1% to 50%, such as `5%`".to_owned()),
        }
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let storage = arguments.volume.storage()?;
    let asked = asked(arguments, &storage);
    asked.check()?;
    let map = map(arguments)?;
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
    let work = Planned { arguments, plan, storage, asked, prospect };
    runner::run_with(work, None, |recorded, outline, interrupt| {
        let answer = MapAnswer::of(recorded.run());
        let exit = recorded.report(outline, interrupt)?;
        // What a supervised process ends with is about its data.
        if exit != Exit::Done || Supervisor::of_this_process().is_some() {
            return Ok(exit);
        }
        let Some(answer) = answer else { return Ok(Exit::NoVerdict) };
        Ok(match answer.is_carried() {
            Some(LimitAnswer::Yes) => Exit::Done,
            Some(LimitAnswer::No) => Exit::NotMet,
            Some(LimitAnswer::NoVerdict) => Exit::NoVerdict,
            None if answer.has_met() => Exit::Done,
            None => Exit::NotMet,
        })
    })
}

fn map(arguments: &Arguments) -> Result<IoMap, Failure> {
    let Arguments { block_size, limit: asked, read_pct, rate, durable, within, points, reads, writes, .. } = arguments;
    if asked.subject.is_some() {
        let failure = Failure::new("--limit: a map judges reads and writes, each by the same limit");
        return Err(failure.with_hint("write only the percentile and the time: `--limit p99=5ms`".to_owned()));
    }
    let RateRange::Between { lowest, highest } = *rate else {
        let failure = Failure::new(format_args!("--rate: `{rate}` is not a range, and a map finds the rates itself"));
        return Err(failure.with_hint("name the lowest and the highest: `--rate 100..50k`".to_owned()));
    };
    let limit = limit_text(asked);
    if limit.parse::<LatencyTarget>().ok().as_ref() != Some(asked) {
        let failure = Failure::new("--limit: a map records percentiles to four digits behind the point, and no more");
        return Err(failure.with_hint(format!("use `--limit {limit}` or a lower percentile")));
    }
    let demand =
        reads.zip(*writes).map(|(Rate(reads_per_s), Rate(writes_per_s))| MapDemand { reads_per_s, writes_per_s });
    if let Some(MapDemand { reads_per_s, writes_per_s }) = demand {
        let per_s = reads_per_s + writes_per_s;
        if per_s == 0.0 {
            let failure = Failure::new("--reads, --writes: both are 0, so every line is beyond them");
            return Err(failure.with_hint("name at least one rate: `--reads 12k --writes 0`".to_owned()));
        }
        let percent = 100.0 * reads_per_s / per_s;
        let (least, most) = (f64::from(read_pct.least), f64::from(read_pct.most));
        if percent < least || percent > most || per_s < lowest || per_s > highest {
            let failure = Failure::new(format_args!(
                "--reads, --writes: {per_s} requests/s with {percent:.1} % of reads lie outside of what is measured"
            ));
            return Err(failure.with_hint("widen `--read-pct` and `--rate`, or ask about another demand".to_owned()));
        }
    }
    Ok(IoMap {
        block: *block_size,
        limit,
        least_read_pct: read_pct.least,
        most_read_pct: read_pct.most,
        lowest_per_s: lowest,
        highest_per_s: highest,
        within: within.0,
        most_points: *points,
        durable: *durable,
        demand,
    })
}

/// As limits are written; a whole second has no unit of its own there.
fn limit_text(limit: &LatencyTarget) -> String {
    let Nanos(ns) = limit.limit;
    let units = [("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
    let (unit, scale) = units.into_iter().find(|(_, scale)| ns.is_multiple_of(*scale)).unwrap_or(("ns", 1));
    format!("{}={}{unit}", limit.quantile_name(), ns / scale)
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
        let points = arguments.points as usize;
        let time = Nanos(plan.step_time().0.saturating_mul(points as u64));
        let is_simulated = prospect.clock().is_simulated();
        let outline = Outline::new(&plan.head, &arguments.keeping, Steps::UpTo(points));
        Outline { time: Some(time), is_simulated, ..outline }
    }

    fn described(self) -> Result<DryRun, Failure> {
        let Self { arguments, plan, storage, prospect, .. } = self;
        let paths = storage.paths().iter().map(|path| path.display());
        let described = DryRun::named(&plan.head.name).facts("path", paths);
        let (warmup, duration) = (arguments.warmup.0, arguments.duration.0);
        Ok(prospect
            .describe_fills(described)
            .fact("touch", Bytes(plan.region_bytes))
            .fact("seed", plan.head.seed)
            .settings(&plan.head.tags, &plan.head.parameters)
            .gap()
            .line(format_args!(
                "up to {} points, each {warmup} of warm-up and {duration} measured, until the line is known within {}",
                arguments.points, plan.head.parameters["WITHIN"]
            )))
    }

    fn carry_out(self, beginning: Beginning<'_>) -> Result<Recorded, Failure> {
        let Self { arguments, plan, storage, asked, prospect } = self;
        let (clock, verbosity) = (prospect.clock(), arguments.keeping.progress.verbosity());
        let block_bytes = arguments.block_size.bytes();
        let intended = Intended { region_bytes: plan.region_bytes, largest_bytes: block_bytes, seed: plan.head.seed };
        let opened: OpenStorage = prospect.open(&asked, intended, clock, beginning.interrupt, verbosity)?;
        let landing = opened.landing(clock, Bytes(block_bytes.into()), plan.region_bytes, storage.local());
        let mut recording = beginning.record(landing)?;
        let mut measured: Vec<IoMapLevel> = Vec::new();
        let mut wanted = 0;
        while let Some(level) = next_of_map(recording.run()) {
            // A point that nothing can be said of is tried twice.
            let is_judged =
                measured.last() != Some(&level) || measured.len() < 2 || measured[measured.len() - 2] != level;
            if measured.len() >= arguments.points as usize || !is_judged {
                break;
            }
            measured.push(level);
            wanted += 1;
            let reading = measured.iter().filter(|known| **known == level).count();
            let step = match plan.step(wanted - 1, level, reading) {
                Ok(step) => step,
                Err(error) => {
                    recording.fail(error);
                    break;
                }
            };
            if recording.step(opened.target(), &step) == NextStep::Stop {
                break;
            }
        }
        recording.progress().end();
        opened.note_of_the_load().into_iter().for_each(|note| recording.note(note));
        drop(opened);
        Ok(recording.end(wanted as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_recorded_so_that_they_can_be_read_again() {
        for text in ["p99=5ms", "p99=1s", "p99.9=1500us", "p50=2s", "p99.99=7ns"] {
            let limit: LatencyTarget = text.parse().unwrap();
            assert_eq!(limit_text(&limit).parse::<LatencyTarget>().as_ref(), Ok(&limit), "{text}");
        }
    }

    #[test]
    fn ranges_and_shares_that_mean_nothing_are_refused() {
        assert_eq!("50..95".parse(), Ok(Percents { least: 50, most: 95 }));
        for wrong in ["", "50", "95..50", "50..50", "0..101", "-1..5", "a..b", "1..2..3"] {
            assert!(wrong.parse::<Percents>().is_err(), "{wrong}");
        }
        assert_eq!(["5%", "2.5"].map(|text| text.parse()), [Ok(Within(0.05)), Ok(Within(0.025))]);
        for wrong in ["", "0", "0.5%", "51%", "nan", "inf", "-5%"] {
            assert!(wrong.parse::<Within>().is_err(), "{wrong}");
        }
    }
}
