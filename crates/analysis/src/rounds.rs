//! A long load in rounds of equal length.

use super::steadiness::{operations_of, rate_of, seconds_inside};
use super::traffic::bytes;
use super::{measured, rate};
use model::record::{Counters, Histogram, Interval, Load, Run, Step};
use model::units::Nanos;

/// A part of the measured window of a step, in whole seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    /// From the start of the step's window to the start of the round.
    pub begins: Nanos,
    /// Length.
    pub length: Nanos,
    /// Operations finished per second; absent where they were not counted.
    pub operations_per_s: Option<f64>,
    /// The least and the most of any second in it.
    pub seconds_range: Option<(f64, f64)>,
    /// Megabytes (10^6) read and written per second.
    pub megabytes_per_s: Option<f64>,
    /// Response times of all operations.
    pub response: Histogram,
}

/// How long the rounds of `run` were to be, if it says so.
pub fn round_of(run: &Run) -> Option<Nanos> {
    match &run.load {
        Load::Soak(soak) => Some(soak.round_ns).filter(|round| *round > Nanos(0)),
        _ => None,
    }
}

/// The rounds of each measured step, each of `join` rounds as the run says how long they are; empty if it does not. What
/// is left at the end of a step is a round if it is at least half as long.
pub fn rounds(run: &Run, join: usize) -> Vec<(&Step, Vec<Round>)> {
    let Some(length) = round_of(run) else { return Vec::new() };
    let wanted_ns = length.0.saturating_mul(join.max(1) as u64);
    measured(run).map(|step| (step, of_step(step, wanted_ns))).collect()
}

fn of_step(step: &Step, wanted_ns: u64) -> Vec<Round> {
    let seconds = seconds_inside(step);
    let Some(second_ns) = seconds.first().map(|second| second.duration_ns).filter(|ns| *ns > 0) else {
        return Vec::new();
    };
    let per_round = usize::try_from(wanted_ns.div_ceil(second_ns)).unwrap_or(usize::MAX).max(1);
    let begins = |round: usize| Nanos((round * per_round) as u64 * second_ns);
    let chunks = seconds.chunks(per_round).enumerate();
    chunks.filter(|(_, chunk)| 2 * chunk.len() >= per_round).map(|(at, chunk)| Round::of(begins(at), chunk)).collect()
}

impl Round {
    fn of(begins: Nanos, seconds: &[&Interval]) -> Self {
        let (mut counters, mut response) = (Counters::default(), Histogram::default());
        for second in seconds {
            counters.add(&second.counters);
            response.merge(&second.response);
        }
        let length_ns = seconds.iter().map(|second| second.duration_ns).sum();
        let operations = operations_of(seconds);
        let each = operations.iter().filter_map(|second| rate_of(&[*second]));
        let seconds_range = each.fold(None, |range: Option<(f64, f64)>, rate| {
            let (low, high) = range.unwrap_or((rate, rate));
            Some((low.min(rate), high.max(rate)))
        });
        Self {
            begins,
            length: Nanos(length_ns),
            operations_per_s: rate(counters.operations, length_ns),
            seconds_range,
            megabytes_per_s: rate(bytes(&counters), length_ns).map(|bytes| bytes / 1e6),
            response,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::sample::{self, Level};

    fn soak(seconds: u64, round: &str) -> Run {
        let mut run =
            sample::run(&[Level { sessions: 8, operations_per_s: 1_000, read_ns: 100_000, seconds, update_pct: 0 }]);
        run.load = Load::Soak(sample::requests::soak(round.parse().unwrap()));
        run
    }

    fn of(run: &Run, join: usize) -> Vec<Round> {
        rounds(run, join).swap_remove(0).1
    }

    #[test]
    fn rounds_are_as_long_as_the_run_says_and_share_all_that_was_measured() {
        let run = soak(120, "30s");
        let all = of(&run, 1);
        assert_eq!(all.iter().map(|round| round.begins).collect::<Vec<_>>(), [0, 30, 60, 90].map(Nanos::seconds));
        let operations: f64 = all.iter().map(|round| round.operations_per_s.unwrap() * round.length.as_seconds()).sum();
        assert_eq!(operations as u64, run.steps[0].counters.operations.unwrap());
        let (least, most) = all[0].seconds_range.unwrap();
        assert!(least < all[0].operations_per_s.unwrap() && all[0].operations_per_s.unwrap() < most);
    }

    #[test]
    fn joined_rounds_are_longer() {
        let joined = of(&soak(120, "30s"), 2);
        assert_eq!(joined.iter().map(|round| round.length).collect::<Vec<_>>(), [Nanos::seconds(60); 2]);
    }

    #[test]
    fn a_short_rest_is_no_round_and_half_of_one_is() {
        assert_eq!(of(&soak(70, "30s"), 1).len(), 2);
        assert_eq!(of(&soak(80, "30s"), 1).last().unwrap().length, Nanos::seconds(20));
    }

    #[test]
    fn a_run_that_names_no_round_has_none() {
        assert_eq!(rounds(&sample::sweep(60), 1), []);
        assert_eq!(rounds(&soak(60, "0s"), 1), []);
    }
}
