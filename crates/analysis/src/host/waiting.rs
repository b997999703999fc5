//! Timers that end late.

use crate::Rule;
use crate::{Message, measured};
use model::record::{Run, Step};
use model::units::{Nanos, percent};

/// A sleep that ends later than this is reported: as long again as was asked for.
const LATE_NS: u64 = 1_000_000;
/// Share of sleeps from which it is no single accident.
const OFTEN: f64 = 0.001;
/// Fewest sleeps that say anything.
const SLEEPS: u64 = 200;

/// Sleeps of a millisecond ended more than another millisecond late.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct LateTimers {
    /// Labels of the steps.
    pub steps: Vec<String>,
    /// The largest share of sleeps, 0 to 1.
    pub share: f64,
    /// The longest lateness.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
}

impl LateTimers {
    pub(super) fn of(run: &Run) -> Option<Self> {
        let late: Vec<(&Step, f64, u64)> =
            measured(run).filter_map(|step| late(step).map(|(share, longest)| (step, share, longest))).collect();
        let share = late.iter().map(|(_, share, _)| *share).reduce(f64::max)?;
        let longest = late.iter().map(|(.., longest)| *longest).max()?;
        Some(Self { steps: late.iter().map(|(step, ..)| step.label.clone()).collect(), share, longest: Nanos(longest) })
    }
}

fn late(step: &Step) -> Option<(f64, u64)> {
    let sleeps = step.operations.iter().find(|kind| kind.kind == "timer")?;
    let count = sleeps.service.count();
    let late = count.checked_sub(sleeps.service.below_ns(LATE_NS).1)?;
    let share = late as f64 / count.max(1) as f64;
    (count >= SLEEPS && share >= OFTEN).then_some((share, sleeps.service.max_ns()?))
}

impl Message for LateTimers {
    fn rule(&self) -> Rule {
        Rule::HostTimers
    }

    fn sentence(&self) -> String {
        format!(
            "{} % of the sleeps of 1 ms ended more than another millisecond late, at most {}.",
            percent(self.share),
            self.longest
        )
    }

    fn advice(&self) -> Option<String> {
        Some(
            "Log writers and heartbeats of clusters feel this: look at steal, at power saving, and at who \
             else runs here."
                .to_owned(),
        )
    }

    fn steps(&self) -> Option<&[String]> {
        Some(&self.steps)
    }
}
