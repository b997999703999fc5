//! How far the answers of a calibration can be trusted.

use super::{Calibrated, REPEATS};
use crate::traffic::{inside, requests};
use crate::{Finding, LatencyTarget, Severity, analyse, rate};
use model::record::{Run, Step};
use model::units::Nanos;

/// How far answers can be trusted.
#[derive(Debug, Clone, PartialEq)]
pub struct CalibrationConfidence {
    /// Repeats that the weaker answer comes from.
    pub repeats: usize,
    /// The largest distance between repeats, as a share of their median.
    pub spread: f64,
    /// How far the rate of single seconds ranged within a repeat, at most, as a share of its mean; absent where no second
    /// was seen.
    pub range_of_seconds: Option<f64>,
    /// Load on the storage in all, first to last step. A burst credit that lasts longer was not seen to end.
    pub watched: Nanos,
    /// What makes the answers doubtful, in sentences.
    pub doubts: Vec<String>,
}

impl CalibrationConfidence {
    pub(super) fn of(run: &Run, answers: [&Option<Calibrated>; 2]) -> Self {
        let answers: Vec<&Calibrated> = answers.into_iter().flatten().collect();
        let deciding = |label: &String| answers.iter().any(|answer| answer.steps.contains(label));
        let steps: Vec<&Step> = run.steps.iter().filter(|step| deciding(&step.label)).collect();
        let bears = |finding: &Finding| match finding.steps() {
            Some(labels) => labels.iter().any(deciding),
            None => true,
        };
        let weighty =
            |finding: &Finding| finding.severity() == Severity::Doubt || matches!(finding, Finding::CacheTrap(_));
        let doubts =
            analyse(run, &LatencyTarget::default()).into_iter().filter(|finding| weighty(finding) && bears(finding));
        Self {
            repeats: answers.iter().map(|answer| answer.rate.runs).min().unwrap_or(0),
            spread: answers.iter().map(|answer| answer.rate.spread()).fold(0.0, f64::max),
            range_of_seconds: steps.iter().filter_map(|step| range_of_seconds(step)).reduce(f64::max),
            watched: Nanos(run.steps.iter().map(|step| step.window.warmup_ns + step.window.duration_ns).sum()),
            doubts: doubts.map(|finding| finding.sentence()).collect(),
        }
    }

    /// Whether the answers were repeated as often as they should be.
    pub fn is_repeated(&self) -> bool {
        self.repeats >= REPEATS
    }
}

/// Fewer seconds than this have no range worth telling.
const FEWEST_SECONDS: usize = 3;

fn range_of_seconds(step: &Step) -> Option<f64> {
    let rates: Vec<f64> =
        inside(step).filter_map(|second| rate(requests(&second.counters), second.duration_ns)).collect();
    if rates.len() < FEWEST_SECONDS {
        return None;
    }
    let low = rates.iter().copied().reduce(f64::min)?;
    let high = rates.iter().copied().reduce(f64::max)?;
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    (mean > 0.0).then(|| (high - low) / mean)
}
