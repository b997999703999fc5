//! `plimsoll io soak`.

use clap::{Arg, Args};

use super::arguments::{OutputArgs, ShapeArgs, TimeArgs, VolumeArgs};
use super::measure::{self, Job};
use crate::cli::arguments::{Rate, Seconds};
use crate::cli::exit::{Exit, Failure};
use crate::cli::second_look::Experiments;
use crate::plan::io::open_loop_depth;
use model::config::io::{DepthList, RateRange};
use model::units::Nanos;

pub(super) const EXAMPLES: &str = "\
Examples:
  plimsoll io soak --path /dev/sdb --duration 2h
  plimsoll io soak --path /u01/test.dat --size 256G --pattern randrw \\
    --read-pct 70 --depth 64 --duration 45m
  plimsoll io soak --path /u01/test.dat --rate 3000 \\
    --limit p99=5ms --duration 8h
  plimsoll io soak --path /dev/sdb --pattern randwrite --destroy sdb \\
    --duration 4h --round 5m
  plimsoll io soak --path sim:iops_cap=500,burst=3000:30m,clock=simulated \\
    --duration 2h

A full burst credit of an AWS gp2 or Azure Premium volume lasts about half an hour at full rate. A shorter soak \
cannot show that it ends. docs/workloads/storage.md explains the report.";

/// Requests outstanding in a closed loop unless the user says otherwise.
const DEFAULT_DEPTH: u32 = 32;
/// A round of the specification that the steady-state rule comes from, and the rounds that a shorter load has instead.
const LONGEST_ROUND: Nanos = Nanos::seconds(60);
const ROUNDS: u64 = 20;
/// The steady-state rule judges five rounds.
const MIN_ROUNDS: u64 = 5;
const SECOND: Nanos = Nanos::seconds(1);

/// Arguments of `plimsoll io soak`.
#[derive(Debug, Args)]
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

    /// Length of a round, in whole seconds [default: 60s, or a twentieth of a shorter soak]
    ///
    /// The report has a line for each round. The steady-state rule judges five of them.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Load")]
    round: Option<Seconds>,

    #[command(flatten)]
    time: TimeArgs,

    #[command(flatten)]
    output: OutputArgs,
}

// Flags that mean something else in a soak than in other commands.

pub(super) fn pattern(flag: Arg) -> Arg {
    flag.required(false).default_value("randread")
}

pub(super) fn duration(flag: Arg) -> Arg {
    flag.default_value("1h")
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let Arguments { volume, shape, depth, rate, round, time, output } = arguments;
    let round = length_of_round(round.map(|Seconds(round)| round), time.duration.0)?;
    let (storage, fleet) = (volume.storage()?, time.fleet.join()?);
    let threads = shape.jobs.get().saturating_mul(fleet.share().parts);
    let usual = if rate.is_some() { open_loop_depth(shape.block_size.bytes()) } else { DEFAULT_DEPTH.max(threads) };
    let depths = DepthList(vec![depth.unwrap_or(usual)]);
    let rates = rate.map(|Rate(per_s)| RateRange::Each(vec![per_s]));
    let (seed, kernel_client) = (time.seed.given(), None);
    let asked = shape.asked(volume, &storage, depths, rates);
    let round = Some(round);
    let (storage, fleet, experiments) = (&storage, &fleet, Experiments::Never);
    measure::run(Job { round, volume, storage, asked, time, seed, kernel_client, fleet, experiments, output })
}

/// The round that is asked for or the usual one, in whole seconds, as intervals are.
fn length_of_round(asked: Option<Nanos>, duration: Nanos) -> Result<Nanos, Failure> {
    let usual = || Nanos((duration.0 / ROUNDS).clamp(SECOND.0, LONGEST_ROUND.0));
    let round = Nanos(asked.unwrap_or_else(usual).0.div_ceil(SECOND.0).saturating_mul(SECOND.0));
    if round == Nanos(0) {
        return Err(Failure::new("a round of 0 s has nothing in it").with_hint("use `--round 60`".to_owned()));
    }
    if duration.0 / MIN_ROUNDS < round.0 {
        let failure = Failure::new(format_args!(
            "a soak of {duration} has fewer than {MIN_ROUNDS} rounds of {round}, and steady state is judged by {MIN_ROUNDS}"
        ));
        let hint = format!("use a longer `--duration`{}", if asked.is_some() { " or a shorter `--round`" } else { "" });
        return Err(failure.with_hint(hint));
    }
    Ok(round)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(asked: Option<Nanos>, duration: Nanos) -> Option<u64> {
        length_of_round(asked, duration).ok().map(|round| round.0 / SECOND.0)
    }

    #[test]
    fn a_round_is_a_minute_or_a_twentieth_of_the_soak_in_whole_seconds() {
        assert_eq!(round(None, Nanos::seconds(7_200)), Some(60));
        assert_eq!(round(None, Nanos::seconds(600)), Some(30));
        assert_eq!(round(None, Nanos::seconds(50)), Some(3));
        assert_eq!(round(None, Nanos::seconds(5)), Some(1));
        assert_eq!(round(Some(Nanos::millis(2_500)), Nanos::seconds(60)), Some(3));
    }

    #[test]
    fn fewer_than_five_rounds_are_refused() {
        assert_eq!(round(None, Nanos::seconds(4)), None);
        assert_eq!(round(Some(Nanos::seconds(60)), Nanos::seconds(299)), None);
        assert_eq!(round(Some(Nanos(0)), Nanos::seconds(299)), None);
        assert_eq!(round(Some(Nanos(u64::MAX)), Nanos(u64::MAX)), None);
    }
}
