//! Where latency starts to rise faster than load, by rules that do not depend on how far a sweep went.

use crate::load_line::{ResponseShape, Scalability};
use crate::message::of_series;

use crate::{
    Figures, Finding, GeneratorVerdict, LatencyTarget, LimitedBy, Message, Rule, Series, VerdictOutcome, Vocabulary,
    judge, steadiness,
};
use model::record::{Run, Step};
use model::units::{Nanos, group_thousands};

/// A knee is reported only if the sweep went this far beyond it; else the bound is an artefact of where the sweep ended.
const BEYOND_KNEE: f64 = 1.3;
/// An open loop's knee: where the mean response is this many times the least mean service time.
const RISEN: f64 = 2.0;
/// An open loop that reached this share of its rate kept up.
const KEPT_UP: f64 = 0.97;
/// A rate is carried comfortably if its latency is at most this share of the limit.
const COMFORTABLE: f64 = 0.5;

/// The rate of an open loop at which requests have come to wait as long as they are served.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct RateKnee {
    /// Name of the series.
    pub series: String,
    /// The rate, in operations per second, interpolated between two steps.
    pub per_s: f64,
    /// Label of the last step below it.
    pub below: String,
    /// Label of the first step above it.
    pub above: String,
    /// Least mean service time of any step.
    #[serde(rename = "min_service_ns")]
    pub min_service: Nanos,
    /// What load and work are called.
    #[serde(skip)]
    pub words: Vocabulary,
}

/// What the universal scalability law says about a closed loop that it describes.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Scales {
    /// Name of the series.
    pub series: String,
    /// The law.
    pub law: Scalability,
    /// The most sessions of any step.
    pub max_sessions: u32,
    /// What load and work are called.
    #[serde(skip)]
    pub words: Vocabulary,
}

/// How the response of an open loop grows with the rate.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Responds {
    /// Name of the series.
    pub series: String,
    /// The shape that fits; `None` if neither of them does.
    pub shape: Option<ResponseShape>,
    /// What load and work are called.
    #[serde(skip)]
    pub words: Vocabulary,
}

/// Where latency starts to rise faster than load, in a closed loop.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Knee {
    /// Of which series; empty where the run has one only.
    pub series: String,
    /// The operational bound, in sessions or requests outstanding.
    pub bound: f64,
    /// The highest rate of any step, in operations per second.
    pub max_operations_per_s: f64,
    /// Time of one operation at the least load.
    #[serde(rename = "cycle_ns")]
    pub cycle: Nanos,
    /// That load.
    pub min_sessions: u32,
    /// Label of the step at which throughput over latency was best.
    pub measured_step: String,
    /// Its load.
    pub measured_sessions: u32,
    /// What loads and rates are called.
    #[serde(skip)]
    pub words: Vocabulary,
}

impl Message for Knee {
    fn rule(&self) -> Rule {
        Rule::LoadLineKnee
    }

    fn sentence(&self) -> String {
        let Self { series, bound, max_operations_per_s, cycle, min_sessions, measured_step, measured_sessions, words } =
            self;
        format!(
            "Knee{}: about {bound:.1} {}. That is the operational bound, the highest rate of {} times {cycle} for {} at {}; \
                 throughput over latency was best at {} ({measured_step}).",
            of_series(series),
            words.slots(),
            words.rate(*max_operations_per_s),
            match words {
                Vocabulary::Sessions => "an operation",
                Vocabulary::Users => "a transaction",
                Vocabulary::Requests => "a request",
            },
            words.closed_load(*min_sessions),
            words.closed_load(*measured_sessions)
        )
    }
}

/// Steps that show the load generator's limit, or its lateness, say nothing of where the target's knee is; nor do rates that
/// were not steady.
pub(crate) fn find(series: &Series<'_>) -> Vec<Finding> {
    let is_judged = |step: &Step| step.load.rate_operations_per_s.is_none() || steadiness::unsteady(step).is_none();
    let is_the_targets =
        |step: &&&Step| GeneratorVerdict::of(step).is_none_or(|verdict| verdict.limited_by == LimitedBy::Device);
    let series = &Series {
        name: series.name.clone(),
        steps: series.steps.iter().filter(is_the_targets).copied().filter(|step| is_judged(step)).collect(),
        common: series.common.clone(),
        words: series.words,
    };
    if series.is_closed_loop() {
        closed(series).into_iter().chain(scales(series).map(Finding::Scales)).collect()
    } else {
        rate_knee(series).map(Finding::RateKnee).into_iter().chain(responds(series).map(Finding::Responds)).collect()
    }
}

/// The operational bound of a closed loop, `N* = Xmax x (R0 + Z)`: below it sessions do not stand in each other's way,
/// above it throughput cannot grow (Denning and Buzen, 1978). `R0 + Z` is what a session takes for one operation at
/// the least load. The measured knee is where throughput over latency is highest (Kleinrock's power).
fn closed(series: &Series<'_>) -> Option<Finding> {
    if series.steps.len() < 3 {
        return None;
    }
    let least = series.steps[0];
    let cycle_s = Figures(least).cycle_s()?;
    let mut max_rate = 0.0_f64;
    let mut best: Option<(f64, &Step)> = None;
    for step in &series.steps {
        let rate = Figures(step).operations_per_s()?;
        max_rate = max_rate.max(rate);
        let power = rate / Figures(step).cycle_s()?;
        if best.is_none_or(|(highest, _)| power > highest) {
            best = Some((power, step));
        }
    }
    let bound = max_rate * cycle_s;
    let max_sessions = series.steps.last()?.load.sessions?;
    if bound * BEYOND_KNEE > f64::from(max_sessions) {
        return None;
    }
    let measured = best?.1;
    Some(Finding::Knee(Knee {
        series: series.name.clone(),
        bound,
        max_operations_per_s: max_rate,
        cycle: Nanos((cycle_s * 1e9) as u64),
        min_sessions: least.load.sessions?,
        measured_step: measured.label.clone(),
        measured_sessions: measured.load.sessions?,
        words: series.words,
    }))
}

/// Whether an open loop kept up with what was asked.
fn kept_up(step: &Step) -> Option<bool> {
    Some(Figures(step).ended_per_s()? >= KEPT_UP * step.load.rate_operations_per_s?)
}

fn mean_s(times: Option<model::record::Histogram>) -> Option<f64> {
    Some(times?.mean_ns()? / 1e9)
}

/// The rate from which on the mean response, from due to finished, exceeds twice the least mean service time of any
/// step; on a straight line between the last step below and the first above. Steps at higher rates cannot move it, as
/// they are not served faster; one that is answered as fast as those below shows that what came before it was no knee.
fn rate_knee(series: &Series<'_>) -> Option<RateKnee> {
    let points: Vec<(&Step, f64, f64)> = series
        .steps
        .iter()
        .map(|step| Some((*step, step.load.rate_operations_per_s?, mean_s(Figures(step).response())?)))
        .collect::<Option<_>>()?;
    let least = series.steps.iter().filter_map(|step| mean_s(Figures(step).service())).reduce(f64::min)?;
    let limit = RISEN * least;
    let below = points.iter().rposition(|(_, _, response)| *response <= limit)?;
    let ((below, low, short), (above, high, long)) = (points.get(below)?, points.get(below + 1)?);
    Some(RateKnee {
        series: series.name.clone(),
        per_s: low + (high - low) * (limit - short) / (long - short),
        below: below.label.clone(),
        above: above.label.clone(),
        min_service: Nanos((least * 1e9) as u64),
        words: series.words,
    })
}

impl RateKnee {
    /// Whether a larger rate was carried comfortably within limits that were asked for: then nobody needs to stay below it.
    pub(crate) fn is_passed_by(&self, run: &Run, limits: &[LatencyTarget]) -> bool {
        let Some(series) = Series::of(run).into_iter().find(|series| series.name == self.series) else { return false };
        let is_comfortable = |step: &Step, limit: &LatencyTarget| {
            let limit = limit.of_step(run.workload(), step);
            let half = Nanos((limit.limit.0 as f64 * COMFORTABLE) as u64);
            judge(step, &limit) == Some(VerdictOutcome::Passed)
                && limit.value(run.workload(), step).is_some_and(|value| value <= half)
        };
        series.steps.iter().any(|step| {
            step.load.rate_operations_per_s.is_some_and(|rate| rate > self.per_s)
                && limits.iter().all(|limit| is_comfortable(step, limit))
        })
    }
}

fn responds(series: &Series<'_>) -> Option<Responds> {
    let open: Vec<&Step> =
        series.steps.iter().copied().filter(|step| step.load.rate_operations_per_s.is_some()).collect();
    let carried: Vec<(f64, f64)> = open
        .iter()
        .take_while(|step| kept_up(step) == Some(true))
        .filter_map(|step| Some((Figures(step).operations_per_s()?, mean_s(Figures(step).response())?)))
        .collect();
    let not_carried = open.get(carried.len()).and_then(|step| step.load.rate_operations_per_s);
    let shape = ResponseShape::of(&carried, not_carried);
    // Without a limit in sight, no shape is expected.
    (carried.len() >= 3 && (shape.is_some() || not_carried.is_some())).then(|| Responds {
        series: series.name.clone(),
        shape,
        words: series.words,
    })
}

fn scales(series: &Series<'_>) -> Option<Scales> {
    let points: Vec<(f64, f64)> = series
        .steps
        .iter()
        .map(|step| Some((f64::from(step.load.sessions?), Figures(step).operations_per_s()?)))
        .collect::<Option<_>>()?;
    let max_sessions = series.steps.last()?.load.sessions?;
    let law = Scalability::fit(&points).filter(Scalability::explains)?;
    Some(Scales { series: series.name.clone(), law, max_sessions, words: series.words })
}

impl Scales {
    /// Sessions at the peak; one that lies beyond the sweep would be a guess.
    fn peak_within_sweep(&self) -> Option<f64> {
        self.law.peak_sessions().filter(|peak| *peak <= f64::from(self.max_sessions))
    }
}

impl Message for RateKnee {
    fn rule(&self) -> Rule {
        Rule::LoadLineKneeOfRates
    }

    fn sentence(&self) -> String {
        format!(
            "Knee{}: about {}, between {} and {}. There the mean response from due to finished is twice {}, \
             the least mean time of service.",
            of_series(&self.series),
            self.words.rate(self.per_s),
            self.below,
            self.above,
            self.min_service
        )
    }

    fn advice(&self) -> Option<String> {
        Some("Plan for less than this rate; near it, small bursts make long queues.".to_owned())
    }
}

impl Message for Scales {
    fn rule(&self) -> Rule {
        Rule::LoadLineScales
    }

    fn sentence(&self) -> String {
        let Scalability { one_per_s, contention, r_squared, .. } = self.law;
        let limit = match (self.law.peak_sessions(), self.law.asymptote_per_s()) {
            (Some(peak), _) if self.peak_within_sweep().is_some() => {
                format!("a peak at about {} {} and less beyond it", group_thousands(peak), self.words.slots())
            }
            (Some(_), _) => {
                format!("a slowing that grows with {}, whose peak lies beyond this sweep", self.words.slots())
            }
            (None, Some(most)) => {
                format!("no retrograde behaviour: no peak, and never more than {}", self.words.rate(most))
            }
            (None, None) => match self.words {
                Vocabulary::Sessions => "no slowing: every session adds as much as the first".to_owned(),
                Vocabulary::Users => "no slowing: every user adds as much as the first".to_owned(),
                Vocabulary::Requests => "no slowing: every request outstanding adds as much as the first".to_owned(),
            },
        };
        format!(
            "Scaling{} follows the universal scalability law (R2 {r_squared:.3}): {} for {}, {:.1} % of the work in \
             line, {limit}.",
            of_series(&self.series),
            self.words.rate(one_per_s),
            match self.words {
                Vocabulary::Sessions => "one session",
                Vocabulary::Users => "one user",
                Vocabulary::Requests => "one outstanding",
            },
            contention * 100.0
        )
    }

    fn advice(&self) -> Option<String> {
        let peak = self.peak_within_sweep()?;
        Some(format!("Do not run more than {} {}.", group_thousands(peak), self.words.slots()))
    }
}

impl Message for Responds {
    fn rule(&self) -> Rule {
        Rule::LoadLineResponds
    }

    fn sentence(&self) -> String {
        let series = of_series(&self.series);
        match self.shape {
            Some(ResponseShape::Queue(queue)) => format!(
                "Responses{series} grow with the rate as those of a queue (M/M/1) of {} that serves in {}.",
                self.words.rate(queue.capacity_per_s),
                Nanos((queue.service_s * 1e9) as u64)
            ),
            Some(ResponseShape::Step { response_s, carried_per_s, not_carried_per_s }) => format!(
                "Responses{series} stay at {} up to {}, and {} are not sustained. This is a step (D/D/1), as behind \
                 a limit that paces requests evenly.",
                Nanos((response_s * 1e9) as u64),
                self.words.rate(carried_per_s),
                self.words.rate(not_carried_per_s)
            ),
            None => format!(
                "Responses{series} grow with the rate neither as those of a queue (M/M/1) nor in one step (D/D/1)."
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::judge::tests::open;
    use super::*;
    use crate::{analyse, analyse_asked};
    use model::record::{Load, Workload, sample};

    fn run(steps: &[(u64, u64)]) -> Run {
        let mut run = sample::sweep(60);
        run.load = Load::foreign(Workload::Io);
        run.steps = steps.iter().map(|(rate, us)| open(*rate, *us)).collect();
        // All are served as fast as the first.
        let service = run.steps[0].operations[0].service.clone();
        run.steps.iter_mut().for_each(|step| {
            step.operations[0].service = service.clone();
            // What a machine of eight processors would need for such rates is not the matter here.
            step.process_cpu = None;
        });
        run
    }

    fn knee(findings: &[Finding]) -> Option<f64> {
        findings.iter().find_map(|finding| match finding {
            Finding::RateKnee(knee) => Some(knee.per_s),
            _ => None,
        })
    }

    #[test]
    fn a_hiccup_below_a_rate_that_is_answered_fast_is_no_knee() {
        let usual = LatencyTarget::default();
        assert_eq!(knee(&analyse(&run(&[(1_000, 400), (14_000, 2_000), (49_000, 500)]), &usual)), None);
        let later = knee(&analyse(&run(&[(1_000, 400), (14_000, 2_000), (49_000, 500), (60_000, 9_000)]), &usual));
        assert!(later.is_some_and(|rate| rate > 49_000.0 && rate < 60_000.0), "{later:?}");
    }

    #[test]
    fn steps_that_show_the_load_generator_do_not_move_it() {
        let mut run = run(&[(1_000, 400), (14_000, 2_000), (20_000, 3_000)]);
        let with = |run: &Run| knee(&analyse(run, &LatencyTarget::default()));
        assert!(with(&run).is_some_and(|rate| rate < 14_000.0));
        run.steps[1].generator.as_mut().unwrap().busiest_share = 0.97;
        assert!(with(&run).is_some_and(|rate| rate > 1_000.0 && rate < 20_000.0));
        run.steps[2].generator.as_mut().unwrap().busiest_share = 0.97;
        assert_eq!(with(&run), None);
    }

    #[test]
    fn nobody_is_reported_to_stay_below_a_rate_when_a_larger_one_keeps_half_the_limit() {
        let run = run(&[(1_000, 400), (14_000, 900), (49_000, 950)]);
        assert!(knee(&analyse_asked(&run, None)).is_some());
        assert_eq!(knee(&analyse_asked(&run, Some(&"p99=5ms".parse().unwrap()))), None);
        assert!(knee(&analyse_asked(&run, Some(&"p99=3ms".parse().unwrap()))).is_some(), "2.3 ms are not comfortable");
    }
}
