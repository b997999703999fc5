//! Whether throughput has settled: the steady-state rule of SNIA's Solid State Storage Performance Test Specification,
//! for the window of one step and for a soak of many rounds.

use super::message::list;
use super::{Finding, Message, Series, Vocabulary, replay};
use crate::Rule;
use crate::Severity;
use crate::levels::{median, median_of};
use model::record::Workload;
use model::record::{Interval, Run, Step};
use model::units::{Nanos, percent};

/// Rounds of the measurement window of the rule.
pub(super) const ROUNDS: usize = 5;
/// Limits of the rule: the range of the rounds, and the rise or fall of the straight line through them, as shares of
/// their mean.
const STEADY_RANGE: f64 = 0.20;
const STEADY_DRIFT: f64 = 0.10;
/// Below so many operations a round, chance alone moves its rate.
const OPERATIONS_PER_ROUND: f64 = 200.0;

/// Load of at least this length is judged as a soak; `soak` runs always are.
const SOAK: Nanos = Nanos::seconds(300);
/// The specification allows 25 rounds of one minute to reach steady state; a shorter soak has shorter rounds.
const MAX_ROUNDS: u64 = 25;
const LONGEST_ROUND: Nanos = Nanos::seconds(60);
/// A drift for an hour is not distinguished from less than this.
const ENOUGH_FOR_DRIFT: Nanos = Nanos::seconds(600);
/// Seconds farther than this many median absolute deviations from the median are outliers.
const OUTLIER_DEVIATIONS: f64 = 6.0;
/// A rate that is counted scatters by its square root; the median absolute deviation of that is this part of it.
const DEVIATION_OF_CHANCE: f64 = 0.6745;
/// Seconds that are closer to the median than this share of it are never outliers.
const SAME_RATE: f64 = 0.05;

/// How far five rounds stray, as shares of their mean.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, serde::Serialize)]
pub struct Excursion {
    /// Largest minus smallest.
    pub range: f64,
    /// Rise (or fall, if negative) of the best straight line from the first round to the last.
    pub drift: f64,
}

impl Excursion {
    /// Of five rounds; absent if their mean is not above zero.
    pub fn of(rounds: &[f64; ROUNDS]) -> Option<Self> {
        let mean = rounds.iter().sum::<f64>() / ROUNDS as f64;
        if !(mean > 0.0 && mean.is_finite()) {
            return None;
        }
        let (low, high) = rounds.iter().fold((f64::MAX, f64::MIN), |(low, high), y| (low.min(*y), high.max(*y)));
        Some(Self { range: (high - low) / mean, drift: slope(rounds) * (ROUNDS - 1) as f64 / mean })
    }

    /// Whether both limits of the rule are kept.
    pub fn is_steady(self) -> bool {
        self.range <= STEADY_RANGE && self.drift.abs() <= STEADY_DRIFT
    }

    /// The drift in percent, with its sign.
    pub(super) fn drift_percent(self) -> String {
        format!("{}{}", if self.drift > 0.0 { "+" } else { "" }, percent(self.drift))
    }
}

/// Slope of the least-squares line through values that are one apart; zero for fewer than two.
fn slope(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    if values.len() < 2 {
        return 0.0;
    }
    let (middle, mean) = ((count - 1.0) / 2.0, values.iter().sum::<f64>() / count);
    let (products, squares) = values.iter().enumerate().fold((0.0, 0.0), |(products, squares), (x, y)| {
        let x = x as f64 - middle;
        (products + x * (y - mean), squares + x * x)
    });
    products / squares
}

/// The whole seconds inside the window.
pub(super) fn seconds_inside(step: &Step) -> Vec<&Interval> {
    let longest = step.intervals.iter().map(|interval| interval.duration_ns).max().unwrap_or(0);
    step.intervals.iter().filter(|interval| !interval.warmup && interval.duration_ns > longest / 2).collect()
}

/// Cuts seconds into five rounds; absent if there are not two seconds for each.
pub(super) fn in_rounds<T>(seconds: &[T]) -> Option<[&[T]; ROUNDS]> {
    let count = seconds.len();
    let cut = |round: usize| &seconds[round * count / ROUNDS..(round + 1) * count / ROUNDS];
    (count >= 2 * ROUNDS).then(|| std::array::from_fn(cut))
}

/// Operations and nanoseconds of each second in which operations were counted.
pub(super) fn operations_of(seconds: &[&Interval]) -> Vec<(u64, u64)> {
    seconds.iter().filter_map(|second| Some((second.counters.operations?, second.duration_ns))).collect()
}

pub(super) fn rate_of(seconds: &[(u64, u64)]) -> Option<f64> {
    let (operations, ns) = seconds.iter().fold((0, 0), |(n, ns), (more, longer)| (n + more, ns + longer));
    super::rate(Some(operations), ns)
}

/// How far the rate of operations strays inside the window of a step, if it is beyond the limits; absent too where too little
/// was counted to tell, and where a trace says how it changes.
pub(super) fn unsteady(step: &Step) -> Option<Excursion> {
    if replay::is_of_trace(step) {
        return None;
    }
    let seconds = operations_of(&seconds_inside(step));
    let total: u64 = seconds.iter().map(|(operations, _)| operations).sum();
    if (total as f64) < OPERATIONS_PER_ROUND * ROUNDS as f64 {
        return None;
    }
    let mut rates = [0.0; ROUNDS];
    for (rate, round) in rates.iter_mut().zip(in_rounds(&seconds)?) {
        *rate = rate_of(round)?;
    }
    Excursion::of(&rates).filter(|excursion| !excursion.is_steady())
}

/// The longest stretch of seconds in which no operation finished, if any, of those that are no longer than `most`.
pub(super) fn longest_pause(seconds: &[(u64, u64)], most: Nanos) -> Option<Nanos> {
    let stretches = seconds.split(|(operations, _)| *operations > 0);
    let lengths = stretches.map(|stretch| stretch.iter().map(|(_, ns)| ns).sum::<u64>());
    lengths.filter(|ns| (1..=most.0).contains(ns)).max().map(Nanos)
}

/// What came of a long load.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct SteadyState {
    /// Labels of the steps that it consisted of.
    pub on: Vec<String>,
    /// Length of a round.
    #[serde(rename = "round_ns")]
    pub round: Nanos,
    /// Whether and when the rule was met.
    pub reached: Reached,
    /// Change of the rate in an hour, as a share of it, from then to the end; absent if that is too short a time.
    pub drift_per_hour: Option<f64>,
    /// Seconds whose rate lay far outside, of all.
    pub outliers: (usize, usize),
    /// The longest stretch of whole seconds without a finished operation.
    #[serde(rename = "longest_pause_ns")]
    pub longest_pause: Option<Nanos>,
    /// What work is called.
    #[serde(skip)]
    pub words: Vocabulary,
}

/// Whether and when steady state was reached.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reached {
    /// Any five rounds one after another from here to the end keep the rule.
    From {
        /// From the start of the measured load.
        #[serde(rename = "from_ns")]
        from: Nanos,
        /// Mean rate from there to the end.
        operations_per_s: f64,
    },
    /// It was reached once, but the last five rounds do not keep the rule.
    Lost {
        /// From the start of the measured load.
        #[serde(rename = "from_ns")]
        from: Nanos,
        /// How far the last five rounds stray.
        last: Excursion,
    },
    /// No five rounds keep it.
    Never {
        /// How far the last five stray.
        last: Excursion,
    },
}

pub(super) fn find(run: &Run) -> Vec<Finding> {
    let mut findings = Vec::new();
    for series in Series::of(run) {
        let same_load = |a: &&Step, b: &&Step| {
            a.load.sessions == b.load.sessions && a.load.rate_operations_per_s == b.load.rate_operations_per_s
        };
        for steps in series.steps.chunk_by(same_load) {
            let length: u64 = steps.iter().map(|step| step.window.duration_ns).sum();
            if run.workload() == Workload::Soak || length >= SOAK.0 {
                findings.extend(SteadyState::of(steps, super::round_of(run), Vocabulary::of(run)).map(Finding::Steady));
            }
        }
    }
    findings
}

impl SteadyState {
    /// Judges steps of one load, in the order in which they ran, as one long load; absent if it has too few seconds or
    /// operations to be judged. Without a length of rounds, the specification's is taken, or a shorter one where the load
    /// was short. Rounds that would hold too few operations are longer than asked.
    pub fn of(steps: &[&Step], round: Option<Nanos>, words: Vocabulary) -> Option<Self> {
        let seconds: Vec<(u64, u64)> = steps.iter().flat_map(|step| operations_of(&seconds_inside(step))).collect();
        let length: u64 = seconds.iter().map(|(_, ns)| ns).sum();
        let second = length.checked_div(seconds.len() as u64).filter(|ns| *ns > 0)?;
        let enough_operations = OPERATIONS_PER_ROUND / rate_of(&seconds).filter(|rate| *rate > 0.0)?;
        let usual = || (length / MAX_ROUNDS).clamp(second, LONGEST_ROUND.0.max(second));
        let round = round.map_or_else(usual, |round| round.0).max((enough_operations * 1e9) as u64);
        let per_round = usize::try_from(round.div_ceil(second)).ok()?;
        let rates: Vec<f64> = seconds.chunks_exact(per_round).map(rate_of).collect::<Option<_>>()?;
        let windows: Vec<Excursion> = rates
            .windows(ROUNDS)
            .map(|window| window.try_into().ok().and_then(Excursion::of).unwrap_or(NOTHING_DONE))
            .collect();
        let last = *windows.last()?;
        let first = if last.is_steady() {
            // A state that was lost and came back, as when a credit ends, is steady from when it came back.
            Some(windows.iter().rposition(|window| !window.is_steady()).map_or(0, |unsteady| unsteady + 1))
        } else {
            windows.iter().position(|window| window.is_steady())
        };
        let settled = &seconds[first.unwrap_or(0) * per_round..];
        let from = Nanos((first.unwrap_or(0) * per_round) as u64 * second);
        let reached = match first {
            None => Reached::Never { last },
            Some(_) if !last.is_steady() => Reached::Lost { from, last },
            Some(_) => Reached::From { from, operations_per_s: rate_of(settled)? },
        };
        let steady_rates = &rates[first.unwrap_or(0)..];
        let enough = first.is_some() && length.saturating_sub(from.0) >= ENOUGH_FOR_DRIFT.0;
        let per_hour = 3.6e12 / (per_round as u64 * second) as f64;
        let mean = steady_rates.iter().sum::<f64>() / steady_rates.len() as f64;
        Some(Self {
            on: steps.iter().map(|step| step.label.clone()).collect(),
            round: Nanos(per_round as u64 * second),
            reached,
            drift_per_hour: enough.then(|| slope(steady_rates) * per_hour / mean),
            outliers: (outliers(settled), settled.len()),
            longest_pause: longest_pause(&seconds, Nanos(u64::MAX)),
            words,
        })
    }
}

/// Rounds in which nothing finished keep no rule.
const NOTHING_DONE: Excursion = Excursion { range: f64::INFINITY, drift: 0.0 };

/// Seconds whose rate is far from the median.
fn outliers(seconds: &[(u64, u64)]) -> usize {
    let rates: Vec<f64> = seconds.iter().filter_map(|second| rate_of(&[*second])).collect();
    let Some(middle) = median_of(&rates) else { return 0 };
    let distances: Vec<f64> = rates.iter().map(|rate| (rate - middle).abs()).collect();
    let scatter = median(&distances).max(DEVIATION_OF_CHANCE * middle.sqrt());
    let far = (OUTLIER_DEVIATIONS * scatter).max(SAME_RATE * middle);
    distances.iter().filter(|distance| **distance > far).count()
}

fn strayed(last: Excursion) -> String {
    if last.range.is_finite() {
        let (range, drift) = (percent(last.range), last.drift_percent());
        format!("its last {ROUNDS} rounds range over {range} % and drift by {drift} %")
    } else {
        format!("nothing finished in its last {ROUNDS} rounds")
    }
}

impl Message for SteadyState {
    fn rule(&self) -> Rule {
        Rule::SteadinessLong
    }

    fn severity(&self) -> Severity {
        if matches!(self.reached, Reached::From { .. }) { Severity::Answer } else { Severity::Doubt }
    }

    fn sentence(&self) -> String {
        let (on, round) = (list(&self.on), self.round);
        let verdict = match self.reached {
            Reached::From { from: Nanos(0), operations_per_s } => {
                format!("{on} is steady from the start at {}", self.words.rate(operations_per_s))
            }
            Reached::From { from, operations_per_s } => {
                format!("{on} is steady after {from}, at {}", self.words.rate(operations_per_s))
            }
            Reached::Lost { from, last } => {
                let when = if from == Nanos(0) { "from the start".to_owned() } else { format!("after {from}") };
                format!("{on} was steady {when} but did not stay so: {}", strayed(last))
            }
            Reached::Never { last } => format!("{on} reached no steady state: {}", strayed(last)),
        };
        let drift = self.drift_per_hour.map_or(String::new(), |drift| {
            format!(", drifting by {}{} % an hour", if drift > 0.0 { "+" } else { "" }, percent(drift))
        });
        let outliers = match self.outliers {
            (0, _) => String::new(),
            (seconds, of) => format!("; {seconds} of {of} seconds lay far outside"),
        };
        let pause = self.longest_pause.map_or(String::new(), |pause| format!("; the longest pause was {pause}"));
        format!("{verdict} (rounds of {round}){drift}{outliers}{pause}.")
    }

    fn advice(&self) -> Option<String> {
        let advice = match self.reached {
            Reached::From { from: Nanos(0), .. } => return None,
            Reached::From { .. } => "Use figures from there on only; give later runs that much warm-up.",
            Reached::Lost { .. } => "Look at the seconds for when it changed, and at what else ran then.",
            Reached::Never { .. } => "Run longer; fill the whole device first if it is flash that is written to.",
        };
        Some(advice.to_owned())
    }

    fn steps(&self) -> Option<&[String]> {
        (!matches!(self.reached, Reached::From { .. })).then_some(&self.on)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Chance;
    use model::record::sample::{self, Level};
    use proptest::prelude::*;

    /// A soak of `seconds` whose rate in each second is given.
    fn soak(seconds: u64, rate: impl Fn(u64) -> u64) -> Step {
        let level = Level { sessions: 8, operations_per_s: 1_000, read_ns: 100_000, seconds, update_pct: 0 };
        let mut step = sample::run(&[level]).steps.swap_remove(0);
        let measured = step.intervals.iter_mut().filter(|interval| !interval.warmup);
        for (interval, second) in measured.zip(0..) {
            interval.counters.operations = Some(rate(second));
        }
        step
    }

    fn judged(step: &Step) -> SteadyState {
        SteadyState::of(&[step], None, Vocabulary::Sessions).unwrap()
    }

    #[test]
    fn a_constant_rate_is_steady_from_the_start() {
        let state = judged(&soak(900, |_| 1_000));
        assert_eq!(state.reached, Reached::From { from: Nanos(0), operations_per_s: 1_000.0 });
        assert_eq!((state.outliers, state.longest_pause, state.drift_per_hour), ((0, 900), None, Some(0.0)));
        assert_eq!(
            state.sentence(),
            "s8_t1 is steady from the start at 1,000 operations/s (rounds of 36.0 s), drifting by 0.0 % an hour."
        );
    }

    #[test]
    fn rounds_are_as_long_as_asked_unless_they_would_hold_too_little() {
        let round = |operations| {
            SteadyState::of(&[&soak(900, |_| operations)], Some(Nanos::seconds(20)), Vocabulary::Sessions)
                .unwrap()
                .round
        };
        assert_eq!((round(1_000), round(5)), (Nanos::seconds(20), Nanos::seconds(40)));
    }

    #[test]
    fn the_first_steady_round_is_found_after_a_planted_decline() {
        let state = judged(&soak(1_500, |second| if second < 480 { 3_000 - 4 * second } else { 1_080 }));
        let Reached::From { from, operations_per_s } = state.reached else { panic!("{state:?}") };
        assert!((300..=540).contains(&(from.0 / 1_000_000_000)), "{from}");
        assert!((operations_per_s - 1_080.0).abs() < 60.0, "{operations_per_s}");
    }

    #[test]
    fn a_decline_that_goes_on_is_never_steady() {
        let state = judged(&soak(1_500, |second| 4_000 - 2 * second));
        assert!(matches!(state.reached, Reached::Never { last } if last.drift < -0.1), "{state:?}");
        assert!(state.steps().is_some() && state.drift_per_hour.is_none());
    }

    #[test]
    fn a_state_that_was_lost_is_said_to_be_lost() {
        let state = judged(&soak(1_500, |second| if second < 1_350 { 1_000 } else { 400 }));
        assert!(matches!(state.reached, Reached::Lost { from: Nanos(0), .. }), "{state:?}");
        assert!(state.sentence().contains("was steady from the start but did not stay so"), "{}", state.sentence());
    }

    #[test]
    fn a_state_that_gave_way_to_another_is_steady_from_the_second() {
        let state = judged(&soak(1_500, |second| if second < 600 { 3_000 } else { 1_000 }));
        let Reached::From { from, operations_per_s } = state.reached else { panic!("{state:?}") };
        assert_eq!((from, operations_per_s), (Nanos::seconds(600), 1_000.0));
        assert_eq!(state.outliers, (0, 900));
    }

    #[test]
    fn planted_outliers_and_pauses_are_counted() {
        let state = judged(&soak(900, |second| match second {
            100 | 400 => 300,
            500..503 => 0,
            _ => 1_000 + second % 7,
        }));
        assert_eq!((state.outliers.0, state.longest_pause), (5, Some(Nanos::seconds(3))));
    }

    #[test]
    fn drift_is_reported_by_the_hour() {
        let state = judged(&soak(3_600, |second| 10_000 + second / 10));
        assert!((state.drift_per_hour.unwrap() - 0.0354).abs() < 0.001, "{state:?}");
    }

    #[test]
    fn steps_of_one_load_are_one_soak() {
        let steps: Vec<Step> = (0..6).map(|_| soak(60, |_| 1_000)).collect();
        let state = SteadyState::of(&steps.iter().collect::<Vec<_>>(), None, Vocabulary::Sessions).unwrap();
        assert_eq!((state.on.len(), state.outliers.1), (6, 360));
    }

    #[test]
    fn too_few_seconds_or_operations_are_not_judged() {
        assert_eq!(SteadyState::of(&[&soak(4, |_| 1_000)], None, Vocabulary::Sessions), None);
        assert_eq!(SteadyState::of(&[&soak(60, |_| 1)], None, Vocabulary::Sessions), None);
        assert_eq!(SteadyState::of(&[&soak(60, |_| 0)], None, Vocabulary::Sessions), None);
        assert_eq!(SteadyState::of(&[], None, Vocabulary::Sessions), None);
    }

    #[test]
    fn chance_alone_makes_no_outlier_and_no_drift() {
        let mut outliers = 0;
        for seed in 0..40 {
            let mut chance = Chance::new(seed);
            let rates: Vec<u64> = (0..900).map(|_| (2_500.0 + 50.0 * chance.normal()) as u64).collect();
            let state = judged(&soak(900, |second| rates[second as usize]));
            assert!(matches!(state.reached, Reached::From { from: Nanos(0), .. }), "seed {seed}: {state:?}");
            outliers += state.outliers.0;
        }
        assert!(outliers < 10, "{outliers} of 36,000 seconds");
    }

    proptest! {
        #[test]
        fn the_rule_does_not_depend_on_the_scale(rounds in prop::array::uniform5(1.0..1e6_f64), scale in 0.1..1e3_f64) {
            let one = Excursion::of(&rounds).unwrap();
            let other = Excursion::of(&rounds.map(|y| y * scale)).unwrap();
            prop_assert!((one.range - other.range).abs() < 1e-9 && (one.drift - other.drift).abs() < 1e-9);
            prop_assert!(one.drift.abs() <= 1.2 * one.range + 1e-12, "{one:?}");
        }
    }
}
