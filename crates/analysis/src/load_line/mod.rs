//! Where the load line is decided: the highest load that keeps a limit on latency.
//!
//! - A [`LatencyTarget`] is the limit: which quantile of which times may be how long. [`judgeable`] says beforehand which limits a run
//!   can judge at all.
//! - [`judge`] gives the verdict on one step: carried, not carried, or no verdict, since the load generator or an error was in the way.
//! - [`limits`] puts the verdicts on the steps of each series together. In a closed loop, where sessions wait for their answers, the line
//!   lies between the largest load that passes and the next one that fails, a [`StepLine`]. [`open_line`] does the same for rates, where repeats of one
//!   rate are counted by [`verdicts`], as they are in a search for the line.
//! - [`knee`] needs no limit: it says where latency begins to rise faster than load.
//!
//! What is made of it stands above: `limit_verdict` answers yes or no to the limits that were asked for, `opening` chooses the
//! sentence that a report begins with, and `search` chooses the next rate to try.

pub(crate) mod judge;
pub(crate) mod knee;
pub(crate) mod latency_target;
pub(crate) mod open_line;
mod step_line;

use crate::doubts::hung;
use crate::limit_verdict::missed_within;
use crate::measured::is_one_load;
use crate::message::list;
use crate::{Ceiling, Figures, Finding, Message, Rule, Series, Vocabulary, burst, ceiling, sizes};
use judge::outcome;
use model::record::{Metric, Run, Step, Workload};
use model::units::group_thousands;

pub use judge::{Crowd, judge, judge_all};
pub use knee::{Knee, RateKnee, Responds, Scales};
pub use latency_target::{Judgeable, LatencyTarget, NotJudgeable, QuantileValue, Subject};
pub use open_line::{OpenLoadLine, RatePoint, Why};
pub use step_line::{Failing, Point, StepLine};

// How much load is carried, and what the curve of a sweep looks like.

/// Steps have too few waits, or operations, for the quantile of a latency target.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct FewWaits {
    /// Labels of the steps.
    pub steps: Vec<String>,
    /// The target, its subject said.
    pub target: LatencyTarget,
    /// What work is called.
    #[serde(skip)]
    pub words: Vocabulary,
}

pub(crate) fn find_limits(run: &Run, target: &LatencyTarget) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (sizes, bursts) = (sizes::find(run), burst::bursts(run));
    // Caps reported over request sizes are not reported again for each size, and a mean of two levels is no limit.
    let explained = |found: &Ceiling| {
        let is_limited_by_size = |label: &String| sizes.iter().any(|limits| limits.steps.contains(label));
        let mixed = |label: &String| bursts.iter().any(|burst| burst.steps.contains(label));
        (found.is_cap() && found.steps.iter().any(is_limited_by_size)) || found.steps.iter().any(mixed)
    };
    let is_one_load = is_one_load(run);
    for series in Series::of(run) {
        findings.extend(few_waits(run.workload(), &series, target).map(Finding::FewWaits));
        // One load has a verdict, and no line.
        findings.extend((!is_one_load).then(|| load_line(run.workload(), &series, target)));
        findings.extend(knee::find(&series));
        findings.extend(ceiling::find(run, &series).filter(|found| !explained(found)).map(Finding::Ceiling));
    }
    findings.extend(sizes.into_iter().map(Finding::SizeLimits));
    findings
}

/// Lines of a run by another limit than the one that [`find_limits`] was asked about.
pub(crate) fn more_lines(run: &Run, target: &LatencyTarget) -> Vec<Finding> {
    let is_one_load = is_one_load(run);
    let of_series = |series: &Series<'_>| {
        let line = (!is_one_load).then(|| load_line(run.workload(), series, target));
        few_waits(run.workload(), series, target).map(Finding::FewWaits).into_iter().chain(line).collect::<Vec<_>>()
    };
    Series::of(run).iter().flat_map(of_series).collect()
}

/// The target with its subject said, as the first step of a series is judged.
fn of_series(workload: Workload, series: &Series<'_>, target: &LatencyTarget) -> LatencyTarget {
    series.steps.first().map_or_else(|| target.clone(), |step| target.of_step(workload, step))
}

fn few_waits(workload: Workload, series: &Series<'_>, target: &LatencyTarget) -> Option<FewWaits> {
    let target = of_series(workload, series, target);
    let has_few = |step: &&&Step| target.has_few(workload, step);
    let steps: Vec<_> = series.steps.iter().filter(has_few).map(|step| step.label.clone()).collect();
    (!steps.is_empty()).then_some(FewWaits { steps, target, words: series.words })
}

impl Message for FewWaits {
    fn rule(&self) -> Rule {
        Rule::LimitsFewOperations
    }

    fn sentence(&self) -> String {
        format!(
            "{} {} fewer than the {} {} that {} needs to mean something.",
            list(&self.steps),
            if self.steps.len() == 1 { "has" } else { "have" },
            group_thousands(self.target.durations_wanted() as f64),
            match self.target.subject.as_ref().map_or("waits", Subject::things) {
                "operations" => self.words.work(),
                things => things,
            },
            self.target.quantile_name()
        )
    }

    fn advice(&self) -> Option<String> {
        Some("Run longer.".to_owned())
    }
}

/// One measurement, and whether the target was met in it.
fn judged(workload: Workload, series: &Series<'_>, step: &Step, target: &LatencyTarget) -> Option<(Point, bool)> {
    let figures = Figures(step);
    let value = target.quantile_value(workload, step)?;
    let outcome = outcome(workload, step, target)?;
    let point = Point {
        step: step.label.clone(),
        load: series.words.load(step),
        value,
        reads_per_s: figures.value(Metric::Reads),
        operations_per_s: figures.operations_per_s(),
        megabytes_per_s: figures.megabytes_per_s(),
        missed: missed_within(step, target, outcome, value, series.words.work()),
        words: series.words,
    };
    Some((point, outcome == VerdictOutcome::Passed))
}

/// Each load once: of one that was measured more often, the first measurement that came out as most of them did.
fn each_load(workload: Workload, series: &Series<'_>, target: &LatencyTarget) -> Vec<(Point, bool)> {
    let is_same = |a: &&Step, b: &&Step| {
        (a.load.sessions, a.load.rate_operations_per_s) == (b.load.sessions, b.load.rate_operations_per_s)
            && a.load.sessions.is_some()
    };
    let of_load = |steps: &[&Step]| {
        let measured: Vec<_> = steps.iter().filter_map(|step| judged(workload, series, step, target)).collect();
        let met = 2 * measured.iter().filter(|(_, met)| *met).count() > measured.len();
        measured.into_iter().find(|(_, was_met)| *was_met == met)
    };
    series.steps.chunk_by(is_same).filter_map(of_load).collect()
}

fn load_line(workload: Workload, series: &Series<'_>, target: &LatencyTarget) -> Finding {
    let target = of_series(workload, series, target);
    let judged = each_load(workload, series, &target);
    let name = series.name.clone();
    if series.is_open_loop() {
        return open_line::find(workload, series, &target, judged.last().map(|(point, _)| point));
    }
    match judged.iter().rposition(|(_, met)| *met) {
        _ if judged.is_empty() => {
            let too_wide = series.steps.iter().any(|step| target.value(workload, step).is_some());
            Finding::StepLine(StepLine::NotJudged { series: name, target, too_wide })
        }
        None => Finding::StepLine(StepLine::NoneMeets { series: name, target, least: judged[0].0.clone() }),
        Some(last) if last + 1 == judged.len() && judged.iter().all(|(_, met)| *met) => {
            Finding::StepLine(StepLine::AllMeet {
                series: name,
                target,
                most: judged[last].0.clone(),
                steps: judged.len(),
            })
        }
        Some(last) => {
            let below = judged[..last].iter().filter(|(_, met)| !met).map(|(point, _)| point.step.clone()).collect();
            let failing = judged.get(last + 1).map(|(point, _)| point.clone());
            let passing = judged[last].0.clone();
            match failing {
                Some(above) => Finding::StepLine(StepLine::Between {
                    series: name,
                    target,
                    passing,
                    failing: Failing { above, below },
                }),
                None => Finding::StepLine(StepLine::OnlyAbove { series: name, target, passing, below }),
            }
        }
    }
}

/// Verdicts on one rate after which it is decided: noise that three do not settle is not settled by more.
pub const MAX_VERDICTS: usize = 3;
/// Rates this close, relatively, are one.
const SAME_RATE: f64 = 1e-9;

/// What came of one rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerdictOutcome {
    /// It was carried, within the latency target.
    Passed,
    /// It was not carried, or only with a latency beyond the target.
    Failed,
    /// It changed too much while it was measured to say which.
    Unsteady,
    /// The load generator could not send it in time, so it says nothing about the target.
    GeneratorBound,
}

/// One measurement of one rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict {
    /// The rate that was asked for, in operations per second.
    pub rate: f64,
    /// What came of it.
    pub outcome: VerdictOutcome,
}

/// Why no further rate is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It goes on.
    Searching,
    /// The interval is as narrow as asked for.
    Found,
    /// Even the least rate does not pass.
    LowestFails,
    /// Even the largest rate passes.
    HighestPasses,
    /// All points were used.
    OutOfPoints,
}

/// What is known of the load line. `highest_passing < lowest_failing` wherever both are known.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadLine {
    /// The largest rate that passed below every one that did not.
    pub highest_passing: Option<f64>,
    /// The least rate that failed.
    pub lowest_failing: Option<f64>,
    /// The least rate that the load generator could not send; above it nothing is known of the target.
    pub generator_bound: Option<f64>,
    /// Rates that count as failing because they were not steady in any measurement that was to decide.
    pub unsteady: Vec<f64>,
    /// Rates that passed although a lower one did not, even when repeated.
    pub passing_above: Vec<f64>,
    /// Measurements that it rests on.
    pub points: usize,
    /// Why the search ended.
    pub ended: Ended,
}

/// The verdicts on one rate.
#[derive(Debug, Clone)]
struct Tried {
    rate: f64,
    outcomes: Vec<VerdictOutcome>,
    /// One verdict against it is not to be outvoted.
    is_settled: bool,
}

/// What the verdicts on one rate come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Passes,
    Fails,
    /// Counts as failing.
    NotSteady,
    GeneratorBound,
    /// To be measured again.
    Open,
}

impl Tried {
    fn count(&self, outcome: VerdictOutcome) -> usize {
        self.outcomes.iter().filter(|known| **known == outcome).count()
    }

    /// Verdicts for and against. What was not steady decides nothing at first, and speaks against it when it is not
    /// steady again.
    fn votes(&self) -> (usize, usize) {
        if self.is_settled {
            return (0, MAX_VERDICTS);
        }
        let unsteady = self.count(VerdictOutcome::Unsteady);
        let against = self.count(VerdictOutcome::Failed) + self.count(VerdictOutcome::GeneratorBound);
        (self.count(VerdictOutcome::Passed), against + if unsteady > 1 { unsteady } else { 0 })
    }

    /// The majority, if there is one or has been time for one.
    fn standing(&self) -> Standing {
        let (passed, against) = self.votes();
        if passed == against && self.outcomes.len() < MAX_VERDICTS { Standing::Open } else { self.final_standing() }
    }

    /// The majority; without one, it does not pass.
    fn final_standing(&self) -> Standing {
        let (passed, against) = self.votes();
        let (failed, bound) = (self.count(VerdictOutcome::Failed), self.count(VerdictOutcome::GeneratorBound));
        if self.is_settled {
            Standing::Fails
        } else if passed > against {
            Standing::Passes
        } else if failed == 0 && bound == 0 {
            Standing::NotSteady
        } else if bound > failed {
            Standing::GeneratorBound
        } else {
            Standing::Fails
        }
    }
}

/// Whether nothing was answered for long in a step that did not pass.
pub fn is_hung(outcome: VerdictOutcome, step: &Step) -> bool {
    outcome != VerdictOutcome::Passed && hung(step).is_some()
}

/// Rates tried so far, in rising order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Verdicts {
    tried: Vec<Tried>,
}

impl Verdicts {
    pub(crate) fn add(&mut self, verdict: Verdict) {
        let Verdict { rate, outcome } = verdict;
        if !(rate > 0.0 && rate.is_finite()) {
            return;
        }
        let same = |known: &Tried| (known.rate - rate).abs() <= SAME_RATE * rate;
        if let Some(known) = self.tried.iter_mut().find(|known| same(known)) {
            known.outcomes.push(outcome);
            return;
        }
        let at = self.tried.partition_point(|known| known.rate < rate);
        self.tried.insert(at, Tried { rate, outcomes: vec![outcome], is_settled: false });
    }

    /// Adds what came of a step. One in which nothing was answered for long fails, however often its rate is carried later.
    pub(crate) fn add_step(&mut self, rate: f64, outcome: VerdictOutcome, step: &Step) {
        self.add(Verdict { rate, outcome });
        if is_hung(outcome, step) {
            self.settle(rate);
        }
    }

    /// Lets no further verdict on a rate that failed count.
    pub(crate) fn settle(&mut self, rate: f64) {
        let tried = self.tried.iter_mut().find(|tried| (tried.rate - rate).abs() <= SAME_RATE * rate);
        if let Some(tried) = tried {
            tried.is_settled = true;
        }
    }

    fn points(&self) -> usize {
        self.tried.iter().map(|tried| tried.outcomes.len()).sum()
    }

    /// Verdicts on this rate.
    pub(crate) fn count_at(&self, rate: f64) -> usize {
        self.tried.iter().find(|tried| tried.rate == rate).map_or(0, |tried| tried.outcomes.len())
    }

    /// The least rate that needs another verdict.
    pub(crate) fn open(&self) -> Option<f64> {
        self.tried.iter().find(|tried| tried.standing() == Standing::Open).map(|tried| tried.rate)
    }

    /// The least rate that has not passed although a larger one has, and on which another verdict can still change that.
    pub(crate) fn hiccup(&self) -> Option<f64> {
        let largest_passing = self.tried.iter().rfind(|tried| tried.standing() == Standing::Passes)?.rate;
        let is_settled = |tried: &Tried| tried.votes().1 > MAX_VERDICTS / 2 || tried.outcomes.len() >= MAX_VERDICTS;
        let below = self.tried.iter().filter(|tried| tried.rate < largest_passing);
        below
            .filter(|tried| tried.standing() != Standing::Passes)
            .find(|tried| !is_settled(tried))
            .map(|tried| tried.rate)
    }

    /// Whether this rate passes, if it was tried.
    pub(crate) fn passes(&self, rate: f64) -> Option<bool> {
        let tried = self.tried.iter().find(|tried| (tried.rate - rate).abs() <= SAME_RATE * rate)?;
        Some(tried.final_standing() == Standing::Passes)
    }

    /// The interval as it stands while rates are still tried.
    pub(crate) fn line(&self) -> LoadLine {
        self.line_by(Tried::standing, Ended::Searching)
    }

    /// The interval when no further verdict is to come.
    pub(crate) fn final_line(&self, ended: Ended) -> LoadLine {
        self.line_by(Tried::final_standing, ended)
    }

    fn line_by(&self, standing: impl Fn(&Tried) -> Standing, ended: Ended) -> LoadLine {
        let stands = |wanted: &[Standing]| -> Vec<f64> {
            let chosen = self.tried.iter().filter(|tried| wanted.contains(&standing(tried)));
            chosen.map(|tried| tried.rate).collect()
        };
        let failing = stands(&[Standing::Fails, Standing::NotSteady]);
        let bound = stands(&[Standing::GeneratorBound]);
        let ceiling = failing.first().into_iter().chain(bound.first()).copied().fold(f64::INFINITY, f64::min);
        let (below, above): (Vec<f64>, Vec<f64>) =
            stands(&[Standing::Passes]).into_iter().partition(|rate| *rate < ceiling);
        LoadLine {
            highest_passing: below.last().copied(),
            lowest_failing: failing.first().copied(),
            generator_bound: bound.first().copied(),
            unsteady: stands(&[Standing::NotSteady]),
            passing_above: above,
            points: self.points(),
            ended,
        }
    }
}

/// The least rate that does not pass, for whatever reason.
pub(crate) fn ceiling_of(line: &LoadLine) -> Option<f64> {
    line.lowest_failing.into_iter().chain(line.generator_bound).reduce(f64::min)
}

// Curves through the steps of a sweep, for those who want to see or draw the shape behind the words.
//
// A fit explains or it does not: one that strays from the data is kept for its parameters and says so.

/// The least that a fit strays from exact data, as a share: rates of real windows are not better known.
const NOISE: f64 = 0.005;
/// A fit explains the data if no step strays from it by more, as a share.
const EXPLAINS: f64 = 0.1;
/// And if it leaves this share of the variance at most.
const UNEXPLAINED: f64 = 0.02;
/// Quantiles 0.99 of the F distribution with 1 and `n` degrees of freedom, from `n` = 1; the last stands for all above.
const F_99: [f64; 10] = [4_052.0, 98.5, 34.1, 21.2, 16.3, 13.7, 12.2, 11.3, 10.6, 10.0];
/// A queue is distinguished from a flat response only if its growth was seen: by this much from least to most rate.
const GREW: f64 = 1.3;
/// A flat response stays within this, as a share of its mean.
const FLAT: f64 = 0.15;
/// Root mean square of the logarithms by which a queueing curve may miss the measured responses.
const QUEUE_MISS: f64 = 0.12;

/// The universal scalability law (Gunther, 2007): `X(N) = g N / (1 + a (N - 1) + b N (N - 1))`.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Scalability {
    /// Rate of one session, `g`.
    pub one_per_s: f64,
    /// Share of the work in which sessions stand in line, `a`; 0 unless the data show clearly that there is one.
    pub contention: f64,
    /// Cost of each pair of sessions keeping each other informed, `b`; 0 unless the data show clearly that the rate falls
    /// again.
    pub coherence: f64,
    /// Share of the variance of the rates that the fit explains, at most 1.
    pub r_squared: f64,
    /// The most by which a measured rate differs from the fit, as a share of the fit.
    pub worst_miss: f64,
}

impl Scalability {
    /// The law that fits (sessions, rate) best, with `a` and `b` not below 0; `None` with fewer than four different
    /// numbers of sessions. The squares are those of relative errors, so that small loads count as much as large ones.
    pub fn fit(points: &[(f64, f64)]) -> Option<Self> {
        let mut sessions: Vec<f64> = points.iter().map(|(sessions, _)| *sessions).collect();
        sessions.sort_by(f64::total_cmp);
        sessions.dedup();
        if sessions.len() < 4 || points.iter().any(|(sessions, rate)| *sessions < 1.0 || *rate <= 0.0) {
            return None;
        }
        let models: [&[&[usize]]; 3] = [&[&[0]], &[&[0], &[0, 1]], &[&[0], &[0, 1], &[0, 2], &[0, 1, 2]]];
        let [linear, lined, full] = models.map(|choices| best(points, choices));
        let (linear, lined, full) = (linear?, lined?, full?);
        let (n, freedom) = (points.len() as f64, points.len().saturating_sub(3).max(1));
        let left = full.0.max(n * NOISE * NOISE) / freedom as f64;
        let critical = F_99[(freedom - 1).min(F_99.len() - 1)];
        let [one, contention, coherence] = match (lined.0 - full.0, linear.0 - lined.0) {
            (falls, _) if falls / left > critical => full.1,
            (_, slows) if slows / left > critical => lined.1,
            _ => linear.1,
        };
        let law = Self {
            one_per_s: 1.0 / one,
            contention: contention / one,
            coherence: coherence / one,
            r_squared: 0.0,
            worst_miss: 0.0,
        };
        let mean = points.iter().map(|(_, rate)| rate).sum::<f64>() / n;
        let squares = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(|point| of(point).powi(2)).sum::<f64>();
        let missed = squares(&|(sessions, rate)| rate - law.rate_per_s(*sessions));
        let varied = squares(&|(_, rate)| rate - mean);
        let miss = |(sessions, rate): &(f64, f64)| (rate / law.rate_per_s(*sessions) - 1.0).abs();
        Some(Self {
            r_squared: if varied > 0.0 { 1.0 - missed / varied } else { 0.0 },
            worst_miss: points.iter().map(miss).fold(0.0, f64::max),
            ..law
        })
    }

    /// Rate at `sessions`, 1 or more.
    pub fn rate_per_s(&self, sessions: f64) -> f64 {
        let others = sessions - 1.0;
        self.one_per_s * sessions / (1.0 + self.contention * others + self.coherence * sessions * others)
    }

    /// Whether the law describes the data: a hard cap, for one, it does not.
    pub fn explains(&self) -> bool {
        self.worst_miss <= EXPLAINS && self.r_squared >= 1.0 - UNEXPLAINED
    }

    /// Sessions at which the rate is highest, `sqrt((1 - a) / b)`; `None` where it never falls again.
    pub fn peak_sessions(&self) -> Option<f64> {
        (self.coherence > 0.0).then(|| ((1.0 - self.contention) / self.coherence).max(1.0).sqrt())
    }

    /// Rate that no number of sessions exceeds, `g / a`; `None` where there is a peak instead, or no limit.
    pub fn asymptote_per_s(&self) -> Option<f64> {
        (self.coherence == 0.0 && self.contention > 0.0).then(|| self.one_per_s / self.contention)
    }
}

/// `1 = (c0 + c1 (N - 1) + c2 N (N - 1)) X / N`, which is linear: the coefficients of the columns in `choices` that
/// leave the least sum of squares with none below 0, and that sum. One of all choices of columns is the nonnegative
/// least-squares solution, because in that the others are 0.
fn best(points: &[(f64, f64)], choices: &[&[usize]]) -> Option<(f64, [f64; 3])> {
    let rows: Vec<[f64; 3]> = points
        .iter()
        .map(|(sessions, rate)| [1.0, sessions - 1.0, sessions * (sessions - 1.0)].map(|term| term * rate / sessions))
        .collect();
    let mut least: Option<(f64, [f64; 3])> = None;
    for columns in choices {
        let Some(found) = solve(&rows, columns) else { continue };
        if found[0] <= 0.0 || found.iter().any(|coefficient| *coefficient < 0.0) {
            continue;
        }
        let miss = |row: &[f64; 3]| 1.0 - row.iter().zip(found).map(|(term, by)| term * by).sum::<f64>();
        let squares = rows.iter().map(|row| miss(row).powi(2)).sum();
        if least.is_none_or(|(fewest, _)| squares < fewest) {
            least = Some((squares, found));
        }
    }
    least
}

/// Least squares of `row . c = 1` over `columns`, by the normal equations; the other coefficients are 0.
fn solve(rows: &[[f64; 3]], columns: &[usize]) -> Option<[f64; 3]> {
    let size = columns.len();
    let mut system: Vec<Vec<f64>> = columns
        .iter()
        .map(|left| {
            let products = columns.iter().map(|right| rows.iter().map(|row| row[*left] * row[*right]).sum());
            products.chain([rows.iter().map(|row| row[*left]).sum()]).collect()
        })
        .collect();
    for pivot in 0..size {
        let largest = (pivot..size).max_by(|a, b| system[*a][pivot].abs().total_cmp(&system[*b][pivot].abs()))?;
        system.swap(pivot, largest);
        let row = system[pivot].clone();
        if row[pivot] == 0.0 {
            return None;
        }
        for (index, other) in system.iter_mut().enumerate() {
            if index != pivot {
                let times = other[pivot] / row[pivot];
                other.iter_mut().zip(&row).for_each(|(value, by)| *value -= times * by);
            }
        }
    }
    let mut found = [0.0; 3];
    for (index, column) in columns.iter().enumerate() {
        found[*column] = system[index][size] / system[index][index];
    }
    Some(found)
}

/// How the response of an open loop grows with the rate.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseShape {
    /// It grows as the queue of one server with random arrivals and service does (M/M/1): `R = S / (1 - rate / C)`.
    Queue(Queue),
    /// It stays flat up to a capacity and is without limit above (D/D/1), as behind a cap.
    Step {
        /// The flat response in seconds.
        response_s: f64,
        /// The highest rate that was carried.
        carried_per_s: f64,
        /// The least rate that was asked and not carried.
        not_carried_per_s: f64,
    },
}

/// The curve `R = S / (1 - rate / C)`.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Queue {
    /// Response without a queue, `S`, in seconds.
    pub service_s: f64,
    /// Rate at which the queue grows without limit, `C`.
    pub capacity_per_s: f64,
    /// Root mean square of the logarithms by which the fit misses the data: 0.1 is about 10 %.
    pub miss: f64,
}

impl Queue {
    /// Response in seconds at a rate; `None` from the capacity on, where it has no bound.
    pub fn response_s(&self, rate_per_s: f64) -> Option<f64> {
        (rate_per_s < self.capacity_per_s).then(|| self.service_s / (1.0 - rate_per_s / self.capacity_per_s))
    }

    /// The curve that misses the logarithms of the responses least, for points of (rate, seconds), three or more.
    fn fit(points: &[(f64, f64)]) -> Option<Self> {
        let most = points.iter().map(|(rate, _)| *rate).fold(0.0, f64::max);
        if points.len() < 3 || most <= 0.0 {
            return None;
        }
        // Headroom above the highest rate, evenly in logarithms from 0.1 % to a hundred times: fine enough, because the
        // response depends on it smoothly.
        (0..=1_000)
            .map(|step| {
                let capacity_per_s = most * (1.0 + 1e-3 * 1e5_f64.powf(f64::from(step) / 1_000.0));
                let service = |(rate, response): &(f64, f64)| (response * (1.0 - rate / capacity_per_s)).ln();
                let mean = points.iter().map(service).sum::<f64>() / points.len() as f64;
                let squares = points.iter().map(|point| (service(point) - mean).powi(2)).sum::<f64>();
                Self { service_s: mean.exp(), capacity_per_s, miss: (squares / points.len() as f64).sqrt() }
            })
            .min_by(|left, right| left.miss.total_cmp(&right.miss))
    }
}

impl ResponseShape {
    /// The shape of an open-loop sweep, if it is one of these: `carried` are points of (rate, mean response in seconds)
    /// at which the target kept up, least rate first; `not_carried_per_s` is the least asked rate at which it did not.
    pub fn of(carried: &[(f64, f64)], not_carried_per_s: Option<f64>) -> Option<Self> {
        if carried.len() < 3 || carried.iter().any(|(rate, response)| *rate <= 0.0 || *response <= 0.0) {
            return None;
        }
        let mean = carried.iter().map(|(_, response)| response).sum::<f64>() / carried.len() as f64;
        let (first, last) = (carried.first()?.1, carried.last()?.1);
        let flat = carried.iter().all(|(_, response)| (response / mean - 1.0).abs() <= FLAT);
        match not_carried_per_s {
            Some(not_carried_per_s) if flat => {
                Some(Self::Step { response_s: mean, carried_per_s: carried.last()?.0, not_carried_per_s })
            }
            _ => Queue::fit(carried)
                .filter(|queue| queue.miss <= QUEUE_MISS && last >= GREW * first)
                .filter(|queue| not_carried_per_s.is_none_or(|rate| queue.capacity_per_s <= 1.5 * rate))
                .map(Self::Queue),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSIONS: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

    fn law(one_per_s: f64, contention: f64, coherence: f64) -> Scalability {
        Scalability { one_per_s, contention, coherence, r_squared: 1.0, worst_miss: 0.0 }
    }

    #[test]
    fn the_law_is_recovered_from_its_own_curve() {
        let planted = law(17_400.0, 0.05, 0.001);
        let found = Scalability::fit(&SESSIONS.map(|n| (n, planted.rate_per_s(n)))).unwrap();
        assert!((found.one_per_s / 17_400.0 - 1.0).abs() < 1e-6, "{found:?}");
        assert!((found.contention - 0.05).abs() < 1e-6 && (found.coherence - 0.001).abs() < 1e-6, "{found:?}");
        assert!((found.peak_sessions().unwrap() - 0.95_f64.sqrt() * 1_000.0_f64.sqrt()).abs() < 0.01);
        assert!(found.explains());
    }

    /// Random 8 KiB reads of a virtual disk, measured with fio.
    #[test]
    fn a_measured_sweep_without_a_fall_has_an_asymptote_and_no_peak() {
        let rates = [17_500.0, 26_900.0, 42_600.0, 53_700.0, 59_700.0, 69_900.0, 71_800.0];
        let points: Vec<_> = SESSIONS.into_iter().zip(rates).collect();
        let found = Scalability::fit(&points).unwrap();
        assert_eq!(found.peak_sessions(), None, "{found:?}");
        assert!((found.asymptote_per_s().unwrap() / 75_600.0 - 1.0).abs() < 0.05, "{found:?}");
        assert!(found.explains(), "{found:?}");
    }

    #[test]
    fn a_hard_cap_is_not_explained() {
        let found = Scalability::fit(&SESSIONS.map(|n| (n, f64::min(n * 1_000.0, 8_000.0)))).unwrap();
        assert!(!found.explains(), "{found:?}");
    }

    #[test]
    fn three_loads_are_too_few() {
        assert_eq!(Scalability::fit(&[(1.0, 10.0), (2.0, 19.0), (4.0, 35.0), (4.0, 36.0)]), None);
        assert_eq!(Scalability::fit(&[(1.0, 10.0), (2.0, 0.0), (4.0, 35.0), (8.0, 36.0)]), None);
    }

    #[test]
    fn a_queue_is_recovered_from_its_own_curve() {
        let planted = Queue { service_s: 0.5e-3, capacity_per_s: 10_000.0, miss: 0.0 };
        let points: Vec<_> =
            (1..=9).map(|k| 1_000.0 * f64::from(k)).map(|rate| (rate, planted.response_s(rate).unwrap())).collect();
        let Some(ResponseShape::Queue(found)) = ResponseShape::of(&points, Some(11_000.0)) else { panic!() };
        assert!((found.capacity_per_s / 10_000.0 - 1.0).abs() < 0.01, "{found:?}");
        assert!((found.service_s / 0.5e-3 - 1.0).abs() < 0.01, "{found:?}");
        assert_eq!(found.response_s(20_000.0), None);
    }

    #[test]
    fn a_flat_response_below_a_capacity_is_a_step_and_without_one_is_nothing() {
        let points: Vec<_> = (1..=5).map(|k| (1_000.0 * f64::from(k), 1e-3)).collect();
        assert!(matches!(
            ResponseShape::of(&points, Some(6_000.0)),
            Some(ResponseShape::Step { carried_per_s: 5_000.0, not_carried_per_s: 6_000.0, .. })
        ));
        assert_eq!(ResponseShape::of(&points, None), None, "no limit was reached");
    }

    #[test]
    fn a_response_that_jumps_about_has_no_shape() {
        let points = [(1e3, 1e-3), (2e3, 3e-3), (3e3, 1e-3), (4e3, 5e-3), (5e3, 2e-3)];
        assert_eq!(ResponseShape::of(&points, Some(6e3)), None);
    }
}
