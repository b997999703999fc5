//! What an experiment found: every combination of values with what it carries, and what that comes to in five sentences.

mod failures;
mod summary;

use std::collections::BTreeSet;

use super::{Compared, LatencyTarget, LimitAnswer, Repeats};
use model::record::{ExperimentMark, Run};

pub use failures::FailureReading;
pub use summary::{Against, Bound, Case, CaseRate, CaseReading};

/// Change from which a difference between combinations matters, as a share.
const THRESHOLD: f64 = 0.05;

/// What an experiment found.
#[derive(Debug, Clone, PartialEq)]
pub struct ExperimentFound {
    /// What stands above it.
    pub title: String,
    /// How many runs were asked for.
    pub asked: usize,
    /// Every combination that has a run, in the order of the steps.
    pub cases: Vec<Case>,
    /// Names of tags in which cases differ, in the order of their names.
    pub varied: Vec<String>,
    /// Combinations of one load against the first of them, where any was measured more than once.
    pub compared: Vec<Compared>,
    /// Why some runs are no repeats of each other although one step made them.
    pub not_compared: Vec<String>,
}

impl ExperimentFound {
    /// Of whole runs, in the order of steps and of rounds, each with the limits of its command. Runs that have no place in an
    /// experiment are passed over.
    pub fn of(title: String, asked: usize, runs: Vec<(Run, Vec<LatencyTarget>)>) -> Self {
        let mut groups: Vec<(ExperimentMark, Vec<LatencyTarget>, Vec<Run>)> = Vec::new();
        for (run, limits) in runs {
            let Some(mark) = ExperimentMark::of_tags(&run.tags) else { continue };
            match groups.last_mut() {
                Some((known, _, runs)) if known.step == mark.step => runs.push(run),
                _ => groups.push((mark, limits, vec![run])),
            }
        }
        let cases: Vec<Case> =
            groups.into_iter().filter_map(|(mark, limits, runs)| Case::of(&mark, &limits, runs)).collect();
        let names: BTreeSet<&String> = cases.iter().flat_map(|case| case.tags.keys()).collect();
        let is_varied = |name: &&&String| {
            let values: BTreeSet<_> = cases.iter().map(|case| case.tags.get(**name)).collect();
            values.len() > 1
        };
        let varied = names.iter().filter(is_varied).map(|name| (*name).clone()).collect();
        let (compared, not_compared) = compare(&cases);
        Self { title, asked, cases, varied, compared, not_compared }
    }

    /// The worst answer to the limits of all commands and the demands of all failures: one that was not kept, else one that is not known.
    pub fn verdict(&self) -> LimitAnswer {
        let any = |answer: LimitAnswer| {
            self.cases.iter().flat_map(|case| &case.readings).any(|reading| reading.answers().any(|one| one == answer))
        };
        let worse = [LimitAnswer::No, LimitAnswer::NoVerdict].into_iter().find(|answer| any(*answer));
        worse.unwrap_or(LimitAnswer::Yes)
    }

    /// Runs that are there.
    pub fn runs(&self) -> usize {
        self.cases.iter().map(|case| case.readings.len()).sum()
    }

    /// What distinguishes a case: its load where there are several, and the tags that vary.
    pub fn name(&self, case: &Case) -> String {
        let load = Some(case.load.clone()).filter(|_| self.has_loads() || self.varied.is_empty());
        let tags = self.varied.iter().filter_map(|name| Some(format!("{name}={}", case.tags.get(name)?)));
        load.into_iter().chain(tags).collect::<Vec<_>>().join(" ")
    }

    /// Whether there is more than one load.
    pub fn has_loads(&self) -> bool {
        self.cases.iter().any(|case| case.load != self.cases[0].load)
    }

    /// Its loads, in the order of their first case.
    pub fn loads(&self) -> Vec<&str> {
        let mut loads: Vec<&str> = Vec::new();
        for case in &self.cases {
            if !loads.contains(&case.load.as_str()) {
                loads.push(&case.load);
            }
        }
        loads
    }
}

/// Combinations of each load against its first one; figures of single runs would be compared by seconds, which do not know how runs
/// differ.
fn compare(cases: &[Case]) -> (Vec<Compared>, Vec<String>) {
    let (mut compared, mut problems) = (Vec::new(), Vec::new());
    for load in cases.iter().map(|case| case.load.as_str()).collect::<BTreeSet<_>>() {
        let of_load: Vec<&Case> = cases.iter().filter(|case| case.load == load).collect();
        problems.extend(of_load.iter().filter_map(|case| case.not_repeats.as_ref().map(ToString::to_string)));
        if of_load.len() < 2 || of_load.iter().any(|case| case.readings.len() < 2 || case.not_repeats.is_some()) {
            continue;
        }
        let sides: Vec<Repeats> = of_load.iter().map(|case| case.side.clone()).collect();
        compared.extend(Compared::of_repeats(&sides, 0, THRESHOLD));
    }
    (compared, problems)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use model::record::sample::{Level, run};

    /// One run: its step, its round, its tags, and thousands of reads per second.
    fn made((step, round): (u32, u32), tags: &[(&str, &str)], operations_per_s: u64) -> (Run, Vec<LatencyTarget>) {
        let mut run = run(&[Level { sessions: 16, operations_per_s, read_ns: 1_000_000, seconds: 20, update_pct: 0 }]);
        run.tags = tags.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let (experiment, load) = ("e".to_owned(), "slob run".to_owned());
        run.tags.extend(ExperimentMark { experiment, load, step, round }.tags());
        run.id = format!("run-{step}-{round}");
        (run, Vec::new())
    }

    fn found(asked: usize, runs: Vec<(Run, Vec<LatencyTarget>)>) -> ExperimentFound {
        ExperimentFound::of("e".to_owned(), asked, runs)
    }

    #[test]
    fn the_largest_difference_is_that_of_one_thing_alone() {
        let found = found(
            4,
            vec![
                made((1, 1), &[("vm", "small"), ("cache", "none")], 100),
                made((2, 1), &[("vm", "small"), ("cache", "read")], 150),
                made((3, 1), &[("vm", "large"), ("cache", "none")], 400),
            ],
        );
        assert_eq!(found.varied, ["cache", "vm"]);
        let [measured, most, difference, against, trust] = found.summary();
        assert_eq!(
            measured,
            "3 combinations of cache and vm were measured by `slob run`, once each; 1 of 4 requested runs are missing."
        );
        assert!(most.starts_with("`cache=none vm=large` sustains most, 25,200 reads/s"), "{most}");
        assert!(most.ends_with("`cache=none vm=small` sustains least, 6,300 reads/s, 4.0 times less."), "{most}");
        assert_eq!(
            difference,
            "The largest single difference is vm: with `cache=none` `large` sustains 4.0 times what `small` does; next \
         is cache, with up to 1.5 times."
        );
        assert!(against.starts_with("No tags name a machine and volumes"), "{against}");
        assert!(trust.starts_with("No combination was measured more than once"), "{trust}");
    }

    #[test]
    fn repeats_say_how_much_may_be_chance_and_are_compared() {
        let mut runs = Vec::new();
        for (step, vm, rates) in [(1, "a", [400, 404, 396]), (2, "b", [500, 500, 500])] {
            runs.extend((1..).zip(rates).map(|(round, rate)| made((step, round), &[("vm", vm)], rate)));
        }
        let found = found(6, runs.clone());
        assert_eq!((found.cases.len(), found.runs(), found.compared.len()), (2, 6, 1));
        let [measured, _, _, _, trust] = found.summary();
        assert_eq!(measured, "2 combinations of vm were measured by `slob run`, 3 times each.");
        assert!(trust.starts_with("Repeats of one combination differ by 2.0 % at most (`vm=a`)"), "{trust}");
        let verdict = found.compared[0].verdict(&found.compared[0].pairs[0]);
        assert!(verdict.contains("vm=b (3 runs)") && verdict.contains("better"), "{verdict}");

        runs[1].0.parameters.insert("UPDATE_PCT".to_owned(), "50".to_owned());
        let found = super::tests::found(6, runs);
        assert_eq!((found.compared.len(), found.not_compared.len()), (0, 1), "{:?}", found.not_compared);
        assert!(found.not_compared[0].contains("UPDATE_PCT"), "{:?}", found.not_compared);
    }

    #[test]
    fn what_is_published_stands_beside_what_was_measured() {
        // P30 x 2 allow 10,000, of which 9,450 are 94 %; two machines allow 80,000 past their cache, of which 25,200 are 32 %.
        let found = found(
            2,
            vec![
                made((1, 1), &[("vm", "D8s_v3"), ("disk", "p30x2"), ("nodes", "2")], 150),
                made((2, 1), &[("vm", "M64s"), ("disk", "p30x32"), ("nodes", "2")], 400),
                made((3, 1), &[("vm", "D8s_v3"), ("disk", "p30x2"), ("nodes", "2"), ("cache", "read")], 400),
            ],
        );
        let [.., against, _] = found.summary();
        assert_eq!(
            against,
            "Of 3 whose limits are published, 1 reaches 90 % of them or more; 1 does more than volumes and machines allow past a cache, \
         perhaps from the host's cache; furthest below is `disk=p30x32 vm=M64s` with 25,200 of 80,000 requests/s that the machines allow."
        );
    }

    /// A sweep of two levels, each with so many thousands of reads per second and its latency in milliseconds, within 5 ms.
    fn swept(step: u32, vm: &str, levels: [(u64, u64); 2]) -> (Run, Vec<LatencyTarget>) {
        let level = |sessions: u32, (operations_per_s, ms): (u64, u64)| Level {
            sessions,
            operations_per_s,
            read_ns: ms * 1_000_000,
            seconds: 20,
            update_pct: 0,
        };
        let [low, high] = levels;
        let tagged = made((step, 1), &[("vm", vm)], 1).0;
        let mut run = run(&[level(4, low), level(16, high)]);
        (run.tags, run.id) = (tagged.tags, tagged.id);
        (run, vec!["p99=5ms".parse().unwrap()])
    }

    #[test]
    fn whoever_misses_the_limit_with_every_load_carries_least_and_who_met_it_with_the_highest_may_carry_more() {
        let misses = || swept(1, "a", [(700, 40), (800, 60)]);
        let is_met = || swept(2, "b", [(100, 1), (200, 2)]);
        let between = || swept(3, "c", [(50, 1), (60, 60)]);
        let all = found(3, vec![misses(), is_met(), between()]);
        let rates: Vec<_> = all.cases.iter().map(|case| case.rate().unwrap()).collect();
        assert_eq!(
            rates.iter().map(|rate| rate.bound).collect::<Vec<_>>(),
            [Bound::LessThan, Bound::AtLeast, Bound::Is]
        );
        let [_, most, difference, ..] = all.summary();
        assert!(most.starts_with("`vm=b` sustains most, at least 12,600 reads/s at p99"), "{most}");
        assert!(
            most.contains(". `vm=a` sustains least, less than 44,100 reads/s; one of them may sustain more"),
            "{most}"
        );
        assert!(difference.contains("`b` sustains at least 4.0 times what `c` does."), "{difference}");
        let [_, most, difference, ..] = found(2, vec![misses(), swept(2, "b", [(900, 40), (950, 60)])]).summary();
        assert!(most.starts_with("None met its limit at any tested load; `vm=b` sustains less than"), "{most}");
        assert!(
            difference.starts_with("No two combinations differ in one thing only and by a known factor"),
            "{difference}"
        );
        let mut runs = vec![misses(), is_met()];
        runs[1].0.tags = runs[0].0.tags.clone();
        let mixed = found(2, runs);
        assert_eq!((mixed.cases[0].rate(), mixed.cases[0].spread()), (None, None), "one met it, the other did not");
    }

    #[test]
    fn what_lasts_as_long_as_credit_does_is_no_wonder_of_a_cache() {
        // P20 allows 2,300, and 3,500 on credit for half an hour; 3,150 were measured.
        let tags = [("vm", "D8s_v3"), ("disk", "p20"), ("cache", "read")];
        let [.., against, _] = found(1, vec![made((1, 1), &tags, 50)]).summary();
        assert_eq!(
            against,
            "Of 1 whose limits are published, 0 reach 90 % of them or more; 1 does more than lasts, as burst credits allow for a time."
        );
    }

    #[test]
    fn the_worst_answer_to_any_limit_is_that_of_all() {
        let with = |limit: &str, step: u32| (made((step, 1), &[], 100).0, vec![limit.parse().unwrap()]);
        assert_eq!(found(1, vec![made((1, 1), &[], 100)]).verdict(), LimitAnswer::Yes, "no limit was asked for");
        assert_eq!(found(1, vec![with("p99=10s", 1)]).verdict(), LimitAnswer::Yes);
        assert_eq!(found(2, vec![with("p99=1us", 1), with("p99=10s", 2)]).verdict(), LimitAnswer::No);
    }

    #[test]
    fn of_nothing_and_of_one_there_are_five_sentences_too() {
        let nothing = found(3, Vec::new()).summary();
        assert_eq!(nothing[0], "Nothing was measured.");
        let one = found(1, vec![made((1, 1), &[], 100)]);
        assert_eq!(one.summary()[0], "1 combination was measured by `slob run`, once each.");
        assert!(one.summary()[1].starts_with("`slob run` sustains 6,300 reads/s"), "{:?}", one.summary());
        assert!(one.summary().iter().chain(&nothing).all(|sentence| sentence.ends_with('.')));
        let (mut unmarked, limits) = made((1, 1), &[], 100);
        unmarked.tags = BTreeMap::new();
        assert_eq!(found(1, vec![(unmarked, limits)]).runs(), 0, "a run without a mark belongs to none");
    }
}
