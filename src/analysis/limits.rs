//! How much load is carried, and what the curve of a sweep looks like.

use super::{
    Ceiling, Figures, Finding, LatencyTarget, QuantileValue, Series, Vocabulary, burst, ceiling, knee, open_line, sizes,
};
use crate::record::{Run, Step};

/// One step seen against the latency target.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Label of the step.
    pub step: String,
    /// Its load in words, such as `8 sessions` or `32 outstanding`.
    pub load: String,
    /// Value of the target's quantile.
    pub value: QuantileValue,
    /// Physical reads per second.
    pub reads_per_s: Option<f64>,
    /// Operations per second.
    pub operations_per_s: Option<f64>,
    /// Megabytes (10^6) read and written per second.
    pub megabytes_per_s: Option<f64>,
    /// What its load and work are called.
    pub words: Vocabulary,
}

/// Steps that do not meet the target.
#[derive(Debug, Clone, PartialEq)]
pub struct Failing {
    /// The least load above the load line.
    pub above: Point,
    /// Labels of steps below the load line that do not meet the target either.
    pub below: Vec<String>,
}

pub(super) fn find(run: &Run, target: &LatencyTarget) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (sizes, bursts) = (sizes::find(run), burst::bursts(run));
    // Caps told over request sizes are not told again for each size, and a mean of two levels is no limit.
    let explained = |found: &Ceiling| {
        let told = |label: &String| sizes.iter().any(|limits| limits.steps.contains(label));
        let mixed = |label: &String| bursts.iter().any(|burst| burst.steps.contains(label));
        (found.is_cap() && found.steps.iter().any(told)) || found.steps.iter().any(mixed)
    };
    for series in Series::of(run) {
        findings.extend(load_line(&run.workload, &series, target));
        findings.extend(knee::find(&series));
        findings.extend(ceiling::find(run, &series).filter(|found| !explained(found)).map(Finding::Ceiling));
    }
    findings.extend(sizes.into_iter().map(Finding::SizeLimits));
    findings
}

fn load_line(workload: &str, series: &Series<'_>, target: &LatencyTarget) -> Vec<Finding> {
    let target = series.steps.first().map_or_else(|| target.clone(), |step| target.of_step(workload, step));
    let judged: Vec<(Point, bool)> = series
        .steps
        .iter()
        .filter_map(|step| {
            let figures = Figures(step);
            let value = target.told(workload, step)?;
            let point = Point {
                step: step.label.clone(),
                load: series.words.load(step),
                value,
                reads_per_s: figures.physical_reads_per_s(),
                operations_per_s: figures.operations_per_s(),
                megabytes_per_s: figures.megabytes_per_s(),
                words: series.words,
            };
            Some((point, target.is_met(workload, step)?))
        })
        .collect();
    let name = series.name.clone();
    let mut findings = Vec::new();
    let thin = |step: &&Step| target.waits_wanted(workload, step).map(|wanted| (step.label.clone(), wanted));
    let few: Vec<_> = series.steps.iter().filter_map(thin).collect();
    if let Some((_, wanted)) = few.first() {
        let (wanted, steps) = (*wanted, few.iter().map(|(label, _)| label.clone()).collect());
        findings.push(Finding::FewWaits { steps, target: target.clone(), wanted });
    }
    if series.is_open_loop() {
        findings.push(open_line::find(series, &target, judged.last().map(|(point, _)| point)));
        return findings;
    }
    let verdict = match judged.iter().rposition(|(_, met)| *met) {
        _ if judged.is_empty() => {
            let too_wide = series.steps.iter().any(|step| target.value(workload, step).is_some());
            Finding::TargetNotJudged { series: name, target, too_wide }
        }
        None => Finding::NoStepMeetsTarget { series: name, target, least: judged[0].0.clone() },
        Some(last) if last + 1 == judged.len() && judged.iter().all(|(_, met)| *met) => {
            Finding::AllStepsMeetTarget { series: name, target, most: judged[last].0.clone(), steps: judged.len() }
        }
        Some(last) => {
            let below = judged[..last].iter().filter(|(_, met)| !met).map(|(point, _)| point.step.clone()).collect();
            let failing = judged.get(last + 1).map(|(point, _)| point.clone());
            let passing = judged[last].0.clone();
            match failing {
                Some(above) => Finding::LoadLine { series: name, target, passing, failing: Failing { above, below } },
                None => Finding::TargetMetOnlyAbove { series: name, target, passing, below },
            }
        }
    };
    findings.push(verdict);
    findings
}
