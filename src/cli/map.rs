//! A map: its search, as `io map` and `slob map` have it.

use std::str::FromStr;

use clap::Args;

use super::arguments::{Rate, RateError};
use super::exit::{Exit, Failure};
use super::recording::{NextStep, Recorded, Recording};
use super::runner::{self, Outline, Work};
use super::supervisor::Supervisor;
use super::{Interrupt, dry_run::DryRun};
use analysis::{LatencyTarget, LimitAnswer, MapAnswer, next_of_map};
use load::{Compiled, StepPlan};
use model::config::io::RateRange;
use model::record::{MapDemand, MapLevel, MapOf, MapSearch};
use model::units::Nanos;
use targets::TargetFor;

/// Points at most: what 8 minutes hold.
const POINTS: u32 = 40;

/// Which points are looked for.
#[derive(Debug, Args)]
pub(super) struct SearchArgs {
    /// Range of the share of reads, in percent
    #[arg(long, value_name = "PCT..PCT", default_value = "0..100", help_heading = "Load")]
    read_pct: Percents,

    /// Lowest and highest rate to try
    ///
    /// The highest may be more than the target sustains.
    #[arg(long, value_name = "N..N", default_value = "10..200k", help_heading = "Load")]
    rate: RateRange,

    /// How far the line may be off, on either side
    #[arg(long, value_name = "PERCENT", default_value = "5%", help_heading = "Load")]
    within: Within,

    /// Points to measure at most
    #[arg(long, value_name = "N", default_value_t = POINTS, value_parser = clap::value_parser!(u32).range(5..=1_000), help_heading = "Load")]
    points: u32,
}

/// A rate of one kind, of which a demand may have none.
pub(super) fn rate_or_zero(text: &str) -> Result<Rate, RateError> {
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

impl SearchArgs {
    /// Points that are measured at most.
    pub(super) const fn points(&self) -> usize {
        self.points as usize
    }

    /// The search for where reads and changes each keep the limit `asked`, with the `demand` that is to be inside of the line: both per
    /// second.
    ///
    /// # Errors
    /// Of what cannot be searched for, or lies outside of what is searched.
    pub(super) fn search(
        &self,
        of: MapOf,
        asked: &LatencyTarget,
        demand: Option<(Rate, Rate)>,
    ) -> Result<MapSearch, Failure> {
        let Self { read_pct, rate, within, points } = self;
        let changes = of.changes();
        let [reads_flag, changes_flag] = match of {
            MapOf::Requests => ["--reads", "--writes"],
            // `--reads` is how Oracle is read.
            MapOf::Operations => ["--demand-reads", "--demand-updates"],
        };
        if asked.subject.is_some() {
            let failure =
                Failure::new(format_args!("--limit: a map judges reads and {changes}, each by the same limit"));
            return Err(failure.with_hint("write only the percentile and the time: `--limit p99=5ms`".to_owned()));
        }
        let RateRange::Between { lowest, highest } = *rate else {
            let failure =
                Failure::new(format_args!("--rate: `{rate}` is not a range, and a map finds the rates itself"));
            return Err(failure.with_hint("name the lowest and the highest: `--rate 100..50k`".to_owned()));
        };
        let limit = limit_text(asked);
        if limit.parse::<LatencyTarget>().ok().as_ref() != Some(asked) {
            let failure =
                Failure::new("--limit: a map records percentiles to four digits behind the point, and no more");
            return Err(failure.with_hint(format!("use `--limit {limit}` or a lower percentile")));
        }
        let demand = demand.map(|(Rate(reads_per_s), Rate(writes_per_s))| MapDemand { reads_per_s, writes_per_s });
        if let Some(MapDemand { reads_per_s, writes_per_s }) = demand {
            let per_s = reads_per_s + writes_per_s;
            if per_s == 0.0 {
                let failure = Failure::new(format_args!(
                    "{reads_flag}, {changes_flag}: both are 0, so every line is beyond them"
                ));
                return Err(failure.with_hint(format!("name at least one rate: `{reads_flag} 12k {changes_flag} 0`")));
            }
            let percent = 100.0 * reads_per_s / per_s;
            let (least, most) = (f64::from(read_pct.least), f64::from(read_pct.most));
            if percent < least || percent > most || per_s < lowest || per_s > highest {
                let all = of.all();
                let failure = Failure::new(format_args!(
                    "{reads_flag}, {changes_flag}: {per_s} {all}/s with {percent:.1} % of reads lie outside of what is measured"
                ));
                let hint = "widen `--read-pct` and `--rate`, or ask about another demand";
                return Err(failure.with_hint(hint.to_owned()));
            }
        }
        Ok(MapSearch {
            of,
            limit,
            least_read_pct: read_pct.least,
            most_read_pct: read_pct.most,
            lowest_per_s: lowest,
            highest_per_s: highest,
            within: within.0,
            most_points: *points,
            demand,
        })
    }

    /// What the points of a dry run are.
    pub(super) fn described(&self, dry_run: DryRun, warmup: Nanos, duration: Nanos) -> DryRun {
        dry_run.line(format_args!(
            "up to {} points, each {warmup} of warm-up and {duration} measured, until the line is known within {}%",
            self.points,
            self.within.0 * 100.0
        ))
    }
}

/// Carries out a planned map and reports it. The exit code is about the demand, and without one about whether any mix meets the limit.
pub(super) fn run<'a>(work: impl Work<'a>, interrupt: Option<&Interrupt>) -> Result<Exit, Failure> {
    runner::run_with(work, interrupt, |recorded: Recorded, outline: &Outline<'_>, interrupt: &Interrupt| {
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
            None if answer.has_missed() => Exit::NotMet,
            None => Exit::NoVerdict,
        })
    })
}

/// Measures points until the line is known, or `most` of them: `step_of` makes a step of its number, a point, and how often that is measured
/// then. Returns how many steps a whole run has.
pub(super) fn measure<S: Compiled, E>(
    recording: &mut Recording,
    target: &dyn TargetFor<S::Operation>,
    most: usize,
    step_of: &mut dyn FnMut(u32, MapLevel, usize) -> Result<StepPlan<S>, E>,
) -> usize
where
    Failure: From<E>,
{
    let judged = |recording: &Recording| MapAnswer::of(recording.run()).map_or(0, |map| map.points);
    let mut measured: Vec<MapLevel> = Vec::new();
    let (mut wanted, mut in_vain) = (0, 0);
    while let Some(level) = next_of_map(recording.run()) {
        // A point that nothing can be said of is tried twice.
        if measured.len() >= most {
            break;
        }
        if in_vain > 1 {
            let label = recording.steps().last().map_or_else(String::new, |step| step.label.clone());
            recording.note(format!(
                "nothing of what is judged was timed in {label} and the point before it, so the map ends there"
            ));
            break;
        }
        let known = judged(recording);
        measured.push(level);
        wanted += 1;
        let reading = measured.iter().filter(|known| **known == level).count();
        let step = match step_of(wanted - 1, level, reading) {
            Ok(step) => step,
            Err(error) => {
                recording.fail(error);
                break;
            }
        };
        if recording.step(target, &step) == NextStep::Stop {
            break;
        }
        in_vain = if judged(recording) > known { 0 } else { in_vain + 1 };
    }
    wanted as usize
}

/// As limits are written; a whole second has no unit of its own there.
fn limit_text(limit: &LatencyTarget) -> String {
    let Nanos(ns) = limit.limit;
    let units = [("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
    let (unit, scale) = units.into_iter().find(|(_, scale)| ns.is_multiple_of(*scale)).unwrap_or(("ns", 1));
    format!("{}={}{unit}", limit.quantile_name(), ns / scale)
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
