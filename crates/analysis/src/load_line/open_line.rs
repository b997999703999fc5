//! The load line of open loops, as the interval that it lies in.

use super::Verdicts;
use super::judge::{Crowd, crowd, deciding_lateness_ns, fails_too_often, is_generator_busy, outcome};
use crate::doubts::hung;
use crate::message::{list, of_series};
use crate::{
    Ended, Figures, Finding, LatencyTarget, Message, Point, QuantileValue, Rule, Series, StepLine, VerdictOutcome,
    Vocabulary, sending,
};
use model::record::{Step, Workload};
use model::units::{Nanos, group_thousands};

/// Between which rates the load line lies.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct OpenLoadLine {
    /// The series, if there are several.
    pub series: String,
    /// What the rates were judged by.
    pub target: LatencyTarget,
    /// The largest rate that passed below every one that did not.
    pub passing: Option<RatePoint>,
    /// The least rate that failed.
    pub failing: Option<RatePoint>,
    /// The least rate that the load generator could not send.
    pub generator_bound: Option<RatePoint>,
    /// Labels of steps that passed although a lower rate did not.
    pub passing_above: Vec<String>,
    /// What load and work are called.
    #[serde(skip)]
    pub words: Vocabulary,
}

/// One rate of an open loop and what came of it.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct RatePoint {
    /// Label of the step.
    pub step: String,
    /// The rate that was asked for.
    pub asked_operations_per_s: f64,
    /// The rate that was reached.
    pub reached_operations_per_s: Option<f64>,
    /// Value of the target's quantile.
    pub value: Option<QuantileValue>,
    /// What decided.
    pub why: Why,
}

/// What decided over a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Its latency.
    Latency,
    /// Less was finished than fell due, or a queue grew.
    FellBehind,
    /// Too many operations failed.
    Errors,
    /// Nothing was answered for so long.
    Hung(Nanos),
    /// It was not steady.
    NotSteady,
    /// The load generator had no processor time left to send it, or was near what it reaches without a device.
    GeneratorBound,
    /// The load generator had time, and was woken so late all the same (p99).
    SentLate(Nanos),
    /// This machine had no idle processor, and not by the load generator.
    Crowded(Crowd),
}

/// What helps where the hypervisor took the processors.
pub(crate) const NOT_SHARED: &str =
    "Measure when other machines on this host do less, or generate the load on a machine with CPUs of its own.";

impl Why {
    /// Whether it says nothing of the target.
    pub(crate) fn is_of_this_machine(self) -> bool {
        matches!(self, Self::GeneratorBound | Self::SentLate(_) | Self::Crowded(_))
    }
}

/// The load line of a series of open loops. `largest` is the point with the highest rate, reported if all of them pass.
pub(crate) fn find(
    workload: Workload,
    series: &Series<'_>,
    target: &LatencyTarget,
    largest: Option<&Point>,
) -> Finding {
    let judged: Vec<(f64, VerdictOutcome, &Step)> = series
        .steps
        .iter()
        .filter_map(|step| Some((step.load.rate_operations_per_s?, outcome(workload, step, target)?, *step)))
        .collect();
    let mut verdicts = Verdicts::default();
    judged.iter().for_each(|(rate, outcome, step)| verdicts.add_step(*rate, *outcome, step));
    let line = verdicts.final_line(Ended::Found);
    // Of several steps with one rate, the first that came out as the rate did.
    let point = |rate: Option<f64>, passes: bool| {
        let same = |known: &&&(f64, VerdictOutcome, &Step)| Some(known.0) == rate;
        let as_reported = judged.iter().filter(|known| (known.1 == VerdictOutcome::Passed) == passes);
        as_reported
            .clone()
            .find(|known| same(&known))
            .map(|(rate, outcome, step)| RatePoint::of(*rate, *outcome, step, target))
    };
    let (passing, failing) = (point(line.highest_passing, true), point(line.lowest_failing, false));
    let generator_bound = point(line.generator_bound, false);
    let (series_name, target) = (series.name.clone(), target.clone());
    match (&passing, &failing, &generator_bound, largest) {
        (None, None, None, _) => {
            Finding::StepLine(StepLine::NotJudged { series: series_name, target, too_wide: false })
        }
        (Some(_), None, None, Some(most)) => Finding::StepLine(StepLine::AllMeet {
            series: series_name,
            target,
            most: most.clone(),
            steps: judged.len(),
        }),
        _ => {
            let passed = |known: &&(f64, VerdictOutcome, &Step)| line.passing_above.contains(&known.0);
            let passing_above = judged.iter().filter(passed).map(|(_, _, step)| step.label.clone()).collect();
            Finding::OpenLoadLine(OpenLoadLine {
                series: series_name,
                target,
                passing,
                failing,
                generator_bound,
                passing_above,
                words: series.words,
            })
        }
    }
}

impl RatePoint {
    fn of(rate: f64, outcome: VerdictOutcome, step: &Step, target: &LatencyTarget) -> Self {
        let value = target.subject.as_ref().and_then(|subject| subject.times(step));
        let value = value.and_then(|times| QuantileValue::of(&times, target.quantile));
        let within = value.is_some_and(|value| value.ns <= target.limit);
        let why = match outcome {
            VerdictOutcome::GeneratorBound => match (crowd(step), deciding_lateness_ns(step, target)) {
                _ if is_generator_busy(step) => Why::GeneratorBound,
                (Some(by), _) => Why::Crowded(by),
                (None, Some(lag_ns)) => Why::SentLate(Nanos(lag_ns)),
                (None, None) => Why::GeneratorBound,
            },
            VerdictOutcome::Unsteady => Why::NotSteady,
            _ if outcome != VerdictOutcome::Passed
                && let Some(longest) = hung(step) =>
            {
                Why::Hung(longest)
            }
            VerdictOutcome::Failed if sending::behind(step).is_none() && fails_too_often(step, target) => Why::Errors,
            // Within the limit and failed all the same: its queue grew.
            VerdictOutcome::Failed if within || sending::behind(step).is_some() => Why::FellBehind,
            VerdictOutcome::Failed | VerdictOutcome::Passed => Why::Latency,
        };
        let reached_operations_per_s = Figures(step).operations_per_s();
        Self { step: step.label.clone(), asked_operations_per_s: rate, reached_operations_per_s, value, why }
    }

    fn rate(&self) -> String {
        group_thousands(self.asked_operations_per_s)
    }

    /// What happened there, after "at 5,000".
    pub(crate) fn outcome_words(&self, words: Vocabulary) -> String {
        let value = self.value.map_or("unknown".to_owned(), |value| value.to_string());
        match self.why {
            Why::Latency => format!("it is {value}"),
            Why::FellBehind => {
                let reached =
                    self.reached_operations_per_s.map_or("a rate unknown".to_owned(), |rate| words.rate(rate));
                format!("a queue grew ({reached} finished, {value})")
            }
            Why::Errors => format!("too many {} failed", words.work()),
            Why::Hung(longest) => format!("nothing was answered for {longest}"),
            Why::NotSteady => format!("it was not steady ({value})"),
            Why::GeneratorBound => "the load generator was the limit".to_owned(),
            Why::SentLate(lag_p99) => format!("this machine sent late (p99 {lag_p99})"),
            Why::Crowded(by) => by.words(),
        }
    }
}

impl OpenLoadLine {
    /// The rate that bounds the line from above.
    pub(crate) fn ceiling(&self) -> Option<&RatePoint> {
        let points = self.failing.iter().chain(&self.generator_bound);
        points.min_by(|a, b| a.asked_operations_per_s.total_cmp(&b.asked_operations_per_s))
    }

    /// Whether the target is missed at every rate.
    pub(crate) fn is_missed(&self) -> bool {
        self.passing.is_none() && self.generator_bound.is_none() && self.passing_above.is_empty()
    }
}

impl Message for OpenLoadLine {
    fn rule(&self) -> Rule {
        Rule::LoadLineRates
    }

    fn sentence(&self) -> String {
        let (what, limit, of) = (self.target.what(), self.target.limit, of_series(&self.series));
        let work = self.words.work();
        let line = match (&self.passing, self.ceiling()) {
            (Some(passing), Some(ceiling)) if ceiling.why.is_of_this_machine() => format!(
                "Load line{of}: at least {} {work}/s ({}). There {what} is {}, against a limit of {limit}; at {} ({}) {}.",
                passing.rate(),
                passing.step,
                passing.value.unwrap_or_default(),
                ceiling.rate(),
                ceiling.step,
                ceiling.outcome_words(self.words)
            ),
            (Some(passing), Some(ceiling)) => format!(
                "Load line{of}: between {} (passes) and {} {work}/s (fails). At {} ({}) {what} is {}, against a limit of {limit}; \
                 at {} ({}) {}.",
                passing.rate(),
                ceiling.rate(),
                passing.rate(),
                passing.step,
                passing.value.unwrap_or_default(),
                ceiling.rate(),
                ceiling.step,
                ceiling.outcome_words(self.words)
            ),
            (None, Some(ceiling)) if ceiling.why.is_of_this_machine() => format!(
                "Load line{of}: unknown. At {} {work}/s ({}) already, {}.",
                ceiling.rate(),
                ceiling.step,
                ceiling.outcome_words(self.words)
            ),
            (None, Some(ceiling)) => format!(
                "Load line{of}: below {} {work}/s ({}). At that rate {}, against a limit of {limit} for {what}.",
                ceiling.rate(),
                ceiling.step,
                ceiling.outcome_words(self.words)
            ),
            (_, None) => format!("Load line{of}: unknown. No rate was judged by {what}."),
        };
        if self.passing_above.is_empty() {
            return line;
        }
        format!("{line} The curve is not monotonic: {} above the line passed.", list(&self.passing_above))
    }

    fn advice(&self) -> Option<String> {
        let advice = match (&self.passing, self.ceiling().map(|point| point.why)) {
            (_, Some(Why::GeneratorBound)) => {
                "Give the load generator more processor time or threads, and search again: `plimsoll doctor` names a quota."
            }
            (_, Some(Why::Crowded(Crowd::Hypervisor))) => NOT_SHARED,
            (_, Some(Why::SentLate(_) | Why::Crowded(_))) => {
                "Stop other programs on this machine, and search again: `plimsoll doctor` names what delays it."
            }
            (_, Some(Why::Errors)) => "Find out what failed; a rate with errors is not sustained.",
            (_, Some(Why::Hung(_))) => "Find out why it stood still (kernel log, paths, failover), then measure again.",
            _ if !self.passing_above.is_empty() => "Repeat the search: something disturbed the smaller rates.",
            (None, _) => "Start with a lower rate, or set a target that this storage can meet.",
            (Some(_), Some(Why::NotSteady)) => "Measure longer at each rate, so that noise decides less.",
            (Some(_), _) => "A narrower answer takes rates between the two; stay below the one that passes.",
        };
        Some(advice.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::super::judge::tests::open;
    use super::*;
    use crate::{Opening, analyse};
    use model::record::{CpuTime, Load, Run, sample};

    fn run(steps: Vec<Step>) -> Run {
        let mut run = sample::sweep(60);
        run.load = Load::foreign(Workload::Io);
        run.steps = steps;
        run
    }

    fn line(run: &Run) -> Finding {
        let is_line = |finding: &Finding| {
            matches!(
                finding,
                Finding::OpenLoadLine(_)
                    | Finding::StepLine(StepLine::AllMeet { .. })
                    | Finding::StepLine(StepLine::NotJudged { .. })
            )
        };
        analyse(run, &LatencyTarget::default()).into_iter().find(is_line).unwrap()
    }

    #[test]
    fn a_sweep_of_rates_gives_an_interval() {
        let run = run([(1_000, 400), (2_000, 600), (4_000, 3_000), (3_000, 1_000)].map(|(r, us)| open(r, us)).into());
        let Finding::OpenLoadLine(found) = line(&run) else { panic!() };
        assert_eq!(
            found.sentence(),
            "Load line: between 3,000 (passes) and 4,000 requests/s (fails). At 3,000 (r3000) p99 of response time is \
             2.41 ms, against a limit of 5.00 ms; at 4,000 (r4000) it is 7.21 ms."
        );
    }

    #[test]
    fn a_rate_that_fell_behind_bounds_the_line_and_says_so() {
        let mut late = open(2_000, 600);
        late.load.rate_operations_per_s = Some(3_000.0);
        late.generator.as_mut().unwrap().due_operations = Some(180_000);
        let Finding::OpenLoadLine(found) = line(&run(vec![open(1_000, 400), late])) else { panic!() };
        assert!(found.sentence().contains("a queue grew (2,000 requests/s finished"), "{}", found.sentence());
        assert_eq!(found.ceiling().unwrap().why, Why::FellBehind);
    }

    #[test]
    fn a_rate_with_errors_bounds_the_line_and_no_queue_is_blamed() {
        let mut failing = open(2_000, 600);
        failing.counters.operations = Some(114_000);
        failing.counters.errors = Some(6_000);
        let run = run(vec![open(1_000, 400), failing]);
        let Finding::OpenLoadLine(found) = line(&run) else { panic!() };
        assert!(found.sentence().ends_with("at 2,000 (r2000) too many requests failed."), "{}", found.sentence());
        let behind = |finding: &Finding| matches!(finding, Finding::RateNotReached(_));
        assert!(!analyse(&run, &LatencyTarget::default()).iter().any(behind));
    }

    #[test]
    fn the_generators_limit_gives_a_least_value_only() {
        let mut bound = open(4_000, 3_000);
        bound.generator.as_mut().unwrap().busiest_share = 0.99;
        let Finding::OpenLoadLine(found) = line(&run(vec![open(1_000, 400), bound])) else { panic!() };
        assert!(found.sentence().contains("at least 1,000 requests/s"), "{}", found.sentence());
        assert!(found.advice().unwrap().contains("load generator") && !found.is_missed());
    }

    #[test]
    fn who_took_the_processors_of_this_machine_is_named_and_not_the_load_generator() {
        let cpu = |user_ns, stolen_ns| {
            Some(CpuTime { user_ns, idle_ns: Some(0), steal_ns: Some(stolen_ns), ..CpuTime::default() })
        };
        let cases = [
            (20, 0, "other programs or the kernel", "Stop other programs"),
            (5, 15, "the hypervisor", "CPUs of its own"),
            (12, 8, "other programs and the hypervisor", "Stop other programs"),
        ];
        for (busy, stolen, who, advice) in cases {
            let mut taken = open(4_000, 3_000);
            (taken.host_cpu, taken.process_cpu) = (cpu(busy, stolen), cpu(3, 0));
            let run = run(vec![open(1_000, 400), taken]);
            let Finding::OpenLoadLine(found) = line(&run) else { panic!() };
            assert!(found.sentence().contains(&format!("{who} took this machine's CPUs")), "{}", found.sentence());
            assert!(found.advice().unwrap().contains(advice) && !found.is_missed());
            let opening = Opening::of(&run, &analyse(&run, &LatencyTarget::default())).sentence();
            let stopped = format!("stopped by {who}, which took this machine's CPUs: the target may carry more");
            assert!(opening.contains(&stopped), "{opening}");
        }
    }

    #[test]
    fn all_none_or_nothing_to_judge_are_distinguished() {
        let all = line(&run(vec![open(500, 400), open(1_000, 400)]));
        assert!(matches!(&all, Finding::StepLine(StepLine::AllMeet { most, .. }) if most.step == "r1000"));
        let words = "Load line: at least 1,000 requests/s (r1000), 1,000 requests/s";
        assert!(all.sentence().starts_with(words), "{}", all.sentence());
        let missed = line(&run(vec![open(1_000, 9_000), open(2_000, 9_000)]));
        assert!(missed.sentence().contains("below 1,000"), "{}", missed.sentence());
        let mut empty = [open(1_000, 400), open(2_000, 400)];
        empty.iter_mut().for_each(|step| step.operations.clear());
        assert!(matches!(line(&run(empty.into())), Finding::StepLine(StepLine::NotJudged { .. })));
    }

    #[test]
    fn repeats_of_a_rate_are_one_point_by_majority() {
        let steps = [(1_000, 400), (2_000, 3_000), (2_000, 600), (2_000, 600), (4_000, 3_000)];
        let Finding::OpenLoadLine(found) = line(&run(steps.map(|(r, us)| open(r, us)).into())) else { panic!() };
        assert_eq!(found.passing.as_ref().unwrap().asked_operations_per_s, 2_000.0);
        assert!(found.passing.unwrap().value.unwrap().ns < model::units::Nanos::millis(5));
    }

    #[test]
    fn a_pass_above_the_line_is_named() {
        let steps = [(1_000, 400), (2_000, 3_000), (4_000, 600)];
        let Finding::OpenLoadLine(found) = line(&run(steps.map(|(r, us)| open(r, us)).into())) else { panic!() };
        assert_eq!(found.passing_above, ["r4000"]);
        assert!(found.sentence().ends_with("r4000 above the line passed."), "{}", found.sentence());
    }
}
