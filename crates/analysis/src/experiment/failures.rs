//! What the failures of an experiment cost: combinations side by side by their pauses, and which demands were met.

use super::{Case, ExperimentFound};
use crate::{FailureCost, FailureDemand, Pause};
use model::record::Run;
use model::units::Nanos;

/// What the failure of one run cost, and what was demanded of it.
#[derive(Debug, Clone, PartialEq)]
pub struct FailureReading {
    /// What it cost.
    pub cost: FailureCost,
    /// The demands with their answers.
    pub demands: Vec<FailureDemand>,
}

impl FailureReading {
    pub(super) fn of(run: &Run) -> Option<Self> {
        let marks = run.steps.first()?.failure?;
        let cost = FailureCost::of(run)?;
        Some(Self { demands: cost.demands(marks), cost })
    }

    /// Whether all demands were met; absent where there are none or one is unknown.
    pub fn are_met(&self) -> Option<bool> {
        let answers = || self.demands.iter().map(|demand| demand.met);
        if answers().any(|met| met == Some(false)) {
            return Some(false);
        }
        (!self.demands.is_empty() && answers().all(|met| met == Some(true))).then_some(true)
    }

    /// Its pause, and whether it may have been longer.
    fn pause_ns(&self) -> (u64, bool) {
        match self.cost.pause {
            Pause::None => (0, false),
            Pause::Seen { length_ns, .. } => (length_ns, false),
            Pause::AtLeast { length_ns } => (length_ns, true),
        }
    }
}

/// The longest pause of a case: of repeats the worst is what users will remember.
fn longest(case: &Case) -> Option<(u64, bool)> {
    case.readings.iter().filter_map(|reading| Some(reading.failure.as_ref()?.pause_ns())).max()
}

impl ExperimentFound {
    /// Whether each of its combinations had a failure.
    pub(super) fn is_of_failures(&self) -> bool {
        let has_failure = |case: &Case| case.readings.iter().any(|reading| reading.failure.is_some());
        !self.cases.is_empty() && self.cases.iter().all(has_failure)
    }

    fn failures(&self) -> impl Iterator<Item = (&Case, &FailureReading)> {
        self.cases
            .iter()
            .flat_map(|case| case.readings.iter().filter_map(move |reading| Some((case, reading.failure.as_ref()?))))
    }

    /// Which failure made the longest pause, and which the shortest.
    pub(super) fn longest_and_shortest(&self) -> String {
        let mut paused: Vec<(&Case, (u64, bool))> =
            self.cases.iter().filter_map(|case| Some((case, longest(case)?))).collect();
        paused.sort_by_key(|(_, pause)| std::cmp::Reverse(*pause));
        let words = |(ns, is_at_least): (u64, bool)| match (ns, is_at_least) {
            (0, _) => "no pause was seen".to_owned(),
            (ns, false) => Nanos(ns).to_string(),
            (ns, true) => format!("{} or longer", Nanos(ns)),
        };
        let name = |case: &Case| format!("`{}`", self.name(case));
        match paused[..] {
            [] => "What the failures cost is unknown.".to_owned(),
            [(case, pause)] => format!("{}: {}.", name(case), words(pause)),
            [(_, (0, _)), ..] => "No pause was seen of any.".to_owned(),
            // At least as long is perhaps longer.
            [_, ref others @ ..] if others.iter().any(|(_, (_, is_at_least))| *is_at_least) => {
                let each = paused.iter().map(|(case, pause)| format!("{} {}", name(case), words(*pause)));
                format!("Which paused longest cannot be told: {}.", each.collect::<Vec<_>>().join(", "))
            }
            [(worst, most), .., (best, least)] => format!(
                "{} paused longest: {}. {} paused least: {}.",
                name(worst),
                words(most),
                name(best),
                words(least)
            ),
        }
    }

    /// How far pauses of repeats differ.
    pub(super) fn trust_in_pauses(&self) -> String {
        // A pause that was not seen, or is at least so long, has no length that could be compared.
        let spread = |case: &Case| {
            let seen = case.readings.iter().map(|reading| match reading.failure.as_ref()?.cost.pause {
                Pause::Seen { length_ns, .. } => Some(length_ns),
                Pause::None | Pause::AtLeast { .. } => None,
            });
            let seen: Vec<u64> = seen.collect::<Option<_>>()?;
            (seen.len() > 1)
                .then(|| seen.iter().max().zip(seen.iter().min()).map(|(most, least)| most - least))
                .flatten()
        };
        let spreads = self.cases.iter().filter_map(|case| Some((case, spread(case)?)));
        match spreads.max_by_key(|(_, spread)| *spread) {
            None if self.cases.iter().all(|case| case.readings.len() < 2) => {
                "No failure was repeated, so what pauses differ by may be chance.".to_owned()
            }
            None => "No repeated failure has pauses of known length, so how far they differ is unknown.".to_owned(),
            Some((case, spread)) => format!(
                "Pauses of one failure differ by {} at most (`{}`), and what differs by less may be chance.",
                Nanos(spread),
                self.name(case)
            ),
        }
    }

    /// How many runs met what was demanded of their failure, and who did not.
    pub(super) fn demands_met(&self) -> String {
        let demanding: Vec<_> = self.failures().filter(|(_, failure)| !failure.demands.is_empty()).collect();
        if demanding.is_empty() {
            return "Nothing was demanded of the failures: `--max-pause` and `--no-errors` do that.".to_owned();
        }
        let of = |answer: Option<bool>| {
            let mut names: Vec<String> = Vec::new();
            for (case, _) in demanding.iter().filter(|(_, failure)| failure.are_met() == answer) {
                let name = format!("`{}`", self.name(case));
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            names
        };
        let met = demanding.iter().filter(|(_, failure)| failure.are_met() == Some(true)).count();
        let mut words = format!("{met} of {} runs met their demands", demanding.len());
        for (names, said) in [(of(Some(false)), "missed by"), (of(None), "unknown of")] {
            if !names.is_empty() {
                words.push_str(&format!("; {said} {}", names.join(", ")));
            }
        }
        format!("{words}.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LimitAnswer;
    use crate::failure::tests::{SECOND, failed_for};
    use model::record::ExperimentMark;

    fn made(step: u32, kind: &str, length_ns: u64) -> (Run, Vec<crate::LatencyTarget>) {
        let (mut run, marks) = failed_for(length_ns);
        run.steps[0].failure = Some(marks);
        let (experiment, load) = ("e".to_owned(), "failure run".to_owned());
        run.tags = ExperimentMark { experiment, load, step, round: 1 }.tags();
        run.tags.insert("failure".to_owned(), kind.to_owned());
        (run, Vec::new())
    }

    #[test]
    fn failures_are_ranked_by_their_pause_and_judged_by_their_demands() {
        let found = |runs| ExperimentFound::of("e".to_owned(), 2, runs);
        let both = found(vec![made(1, "path", SECOND / 2), made(2, "server", 3 * SECOND)]);
        let [_, pauses, demands, ..] = both.summary();
        assert_eq!(pauses, "`failure=server` paused longest: 3.00 s. `failure=path` paused least: 500 ms.");
        assert_eq!(demands, "1 of 2 runs met their demands; missed by `failure=server`.");
        assert_eq!(both.verdict(), LimitAnswer::No);
        assert_eq!(found(vec![made(1, "path", SECOND / 2)]).verdict(), LimitAnswer::Yes);
        let mut unknown = made(1, "path", SECOND / 2);
        unknown.0.steps[0].failure = unknown.0.steps[0].failure.map(|marks| model::record::FailureMarks {
            max_pause_ns: None,
            no_errors: false,
            ..marks
        });
        let calm = found(vec![unknown]);
        assert!(calm.summary()[2].starts_with("Nothing was demanded"), "{:?}", calm.summary());
        assert!(calm.summary()[4].starts_with("No failure was repeated"), "{:?}", calm.summary());
        assert_eq!(calm.verdict(), LimitAnswer::Yes);
        let again = |second: u64| found(vec![made(1, "path", SECOND), made(1, "path", second)]).summary()[4].clone();
        assert!(
            again(3 * SECOND).starts_with("Pauses of one failure differ by 2.00 s at most"),
            "{}",
            again(3 * SECOND)
        );
        let mut unseen = made(1, "path", SECOND);
        unseen.0.steps[0].intervals = model::record::sample::stalls::quiet().steps[0].intervals.clone();
        let both = found(vec![made(1, "path", SECOND), unseen]);
        assert!(both.summary()[4].ends_with("how far they differ is unknown."), "{:?}", both.summary());
    }
}
