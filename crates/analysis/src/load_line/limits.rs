//! How much load is carried, and what the curve of a sweep looks like.

use super::judge::outcome;
use super::step_line::{Failing, Point};
use super::{knee, open_line};
use crate::Rule;
use crate::measured::is_one_load;
use crate::message::list;
use crate::{
    Ceiling, Figures, Finding, LatencyTarget, Message, Series, StepLine, Subject, VerdictOutcome, Vocabulary, burst,
    ceiling, sizes,
};
use model::record::Workload;
use model::record::{Run, Step};
use model::units::group_thousands;

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

pub(crate) fn find(run: &Run, target: &LatencyTarget) -> Vec<Finding> {
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

/// Lines of a run by another limit than the one that [`find`] was asked about.
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
    let point = Point {
        step: step.label.clone(),
        load: series.words.load(step),
        value,
        reads_per_s: figures.physical_reads_per_s(),
        operations_per_s: figures.operations_per_s(),
        megabytes_per_s: figures.megabytes_per_s(),
        words: series.words,
    };
    Some((point, outcome(workload, step, target)? == VerdictOutcome::Passed))
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
