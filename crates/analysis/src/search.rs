//! Finding the load line by trying rates: which to try next, and what the verdicts so far say. Does no I/O.

use super::load_line::{Ended, LoadLine, MAX_VERDICTS, Verdict, Verdicts, ceiling_of};

/// Growth from one coarse point to the next, unless the range is so wide that it would take too many.
const COARSE_GROWTH: f64 = 2.0;
const MAX_COARSE_POINTS: f64 = 6.0;
/// Finer than this, neighbours are the same rate.
const FINEST_RESOLUTION: f64 = 1e-4;
/// One operation in eleven days, and more than any storage does: the range of rates that make sense.
const MIN_RATE: f64 = 1e-6;
const MAX_RATE: f64 = 1e12;

/// What to search for, and how thoroughly.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchPlan {
    /// Least rate to try, in operations per second; above zero.
    pub low: f64,
    /// Largest rate to try.
    pub high: f64,
    /// Width of the interval at which the search is content, as a share of the rate.
    pub resolution: f64,
    /// Points to measure at most, repeats included.
    pub max_points: usize,
    /// Verdicts that each end of the interval shall have, 1 to 3: 1 trusts a single measurement.
    pub repeats: usize,
}

/// Two per cent, in at most 20 points, each end measured twice. `low` and `high` have to be given.
impl Default for SearchPlan {
    fn default() -> Self {
        Self { low: 1.0, high: 1e9, resolution: 0.02, max_points: 20, repeats: 2 }
    }
}

/// The search for the load line over open-loop rates: coarse points that grow by a factor until one does not pass, then
/// bisection of the interval between. Ask [`Search::next`], measure, [`Search::record`], until there is no next rate.
#[derive(Debug, Clone)]
pub struct Search {
    plan: SearchPlan,
    verdicts: Verdicts,
    /// Verdicts reported, those on impossible rates included, so that even they bring it to an end.
    reported: usize,
}

enum Move {
    Try(f64),
    End(Ended),
}

impl Search {
    /// A search that has not measured anything yet. A plan that makes no sense is mended: the range is put in order,
    /// above zero and below a million million, the resolution is at least 0.01 %, and an end is measured once to three times.
    pub fn new(plan: SearchPlan) -> Self {
        let low = plan.low.min(plan.high).clamp(MIN_RATE, MAX_RATE);
        let high = plan.high.max(plan.low).clamp(low, MAX_RATE);
        let plan = SearchPlan {
            low,
            high,
            resolution: plan.resolution.max(FINEST_RESOLUTION),
            repeats: plan.repeats.clamp(1, MAX_VERDICTS),
            ..plan
        };
        Self { plan, verdicts: Verdicts::default(), reported: 0 }
    }

    /// The rate to measure next; `None` when there is nothing more to find out. The same until a verdict is reported.
    pub fn next(&self) -> Option<f64> {
        match self.step() {
            Move::Try(rate) => Some(rate),
            Move::End(_) => None,
        }
    }

    /// Takes a verdict into account. It may be on any rate, also one measured before the search.
    pub fn record(&mut self, verdict: Verdict) {
        self.verdicts.add(verdict);
        self.reported += 1;
    }

    /// Lets no further verdict on a rate count: it failed in a way that another measurement does not undo.
    pub fn settle(&mut self, rate: f64) {
        self.verdicts.settle(rate);
    }

    /// What is known so far.
    pub fn answer(&self) -> LoadLine {
        match self.step() {
            Move::Try(_) => self.verdicts.line(),
            Move::End(ended) => self.verdicts.final_line(ended),
        }
    }

    fn step(&self) -> Move {
        if self.reported >= self.plan.max_points {
            return Move::End(self.ended_by_interval().unwrap_or(Ended::OutOfPoints));
        }
        if let Some(rate) = self.verdicts.open() {
            return Move::Try(rate);
        }
        let line = self.verdicts.line();
        let ceiling = ceiling_of(&line);
        // A pass above a failure: one of the two was noise, and the failure is the one that hides load.
        if !line.passing_above.is_empty()
            && let Some(rate) = ceiling.and_then(|rate| self.unsure(rate, MAX_VERDICTS))
        {
            return Move::Try(rate);
        }
        match (line.highest_passing, ceiling) {
            (None, None) => Move::Try(self.plan.low),
            (Some(passing), None) if passing >= self.plan.high => Move::End(Ended::HighestPasses),
            (Some(passing), None) => Move::Try(self.coarser(passing)),
            // A rate distinguished from outside may fail above the least one, which then has yet to be tried.
            (None, Some(failing)) if failing > self.plan.low => Move::Try(self.plan.low),
            (None, Some(failing)) => {
                self.unsure(failing, self.plan.repeats).map_or(Move::End(Ended::LowestFails), Move::Try)
            }
            (Some(passing), Some(failing)) if failing > passing * (1.0 + self.plan.resolution) => {
                Move::Try(between(passing, failing))
            }
            (Some(passing), Some(failing)) => [failing, passing]
                .into_iter()
                .find_map(|rate| self.unsure(rate, self.plan.repeats))
                .map_or(Move::End(Ended::Found), Move::Try),
        }
    }

    /// The rate itself, if it has fewer than `wanted` verdicts.
    fn unsure(&self, rate: f64, wanted: usize) -> Option<f64> {
        (self.verdicts.count_at(rate) < wanted).then_some(rate)
    }

    fn coarser(&self, passing: f64) -> f64 {
        let SearchPlan { low, high, .. } = self.plan;
        let growth = (high / low).powf(1.0 / MAX_COARSE_POINTS).max(COARSE_GROWTH);
        let rate = readable(passing * growth);
        // Too close to the end to be worth a point of its own.
        if rate * (1.0 + self.plan.resolution) < high { rate } else { high }
    }

    fn ended_by_interval(&self) -> Option<Ended> {
        let line = self.verdicts.final_line(Ended::OutOfPoints);
        match (line.highest_passing, ceiling_of(&line)) {
            (Some(passing), Some(failing)) if failing <= passing * (1.0 + self.plan.resolution) => Some(Ended::Found),
            (Some(passing), None) if passing >= self.plan.high => Some(Ended::HighestPasses),
            (None, Some(failing)) if failing <= self.plan.low => Some(Ended::LowestFails),
            _ => None,
        }
    }
}

/// A rate in four digits, for people will read it.
fn readable(rate: f64) -> f64 {
    let unit = 10_f64.powi(rate.log10().floor() as i32 - 3);
    (rate / unit).round() * unit
}

/// The geometric middle, readable where that still lies between.
fn between(low: f64, high: f64) -> f64 {
    let middle = (low.sqrt() * high.sqrt()).clamp(low, high);
    let rounded = readable(middle);
    // Rounding must not cost the bisection its progress.
    let halves = |rate: f64| rate > low + (middle - low) / 2.0 && rate < high - (high - middle) / 2.0;
    if halves(rounded) { rounded } else { middle }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VerdictOutcome::{self, Failed, GeneratorBound, Passed, Unsteady};
    use crate::chance::Chance;
    use proptest::prelude::*;

    fn plan(low: f64, high: f64) -> SearchPlan {
        SearchPlan { low, high, ..SearchPlan::default() }
    }

    /// Runs a search against a storage; gives its answer and the rates that were tried.
    fn search(plan: SearchPlan, mut storage: impl FnMut(f64) -> VerdictOutcome) -> (LoadLine, Vec<f64>) {
        let most = plan.max_points;
        let mut search = Search::new(plan);
        let mut rates = Vec::new();
        while let Some(rate) = search.next() {
            assert!(rates.len() < most, "it goes on after {rates:?}");
            rates.push(rate);
            search.record(Verdict { rate, outcome: storage(rate) });
        }
        (search.answer(), rates)
    }

    fn truthful(threshold: f64) -> impl Fn(f64) -> VerdictOutcome {
        move |rate| if rate <= threshold { Passed } else { Failed }
    }

    #[test]
    fn it_grows_then_bisects_then_confirms_both_ends() {
        let (line, rates) = search(plan(1_000.0, 64_000.0), truthful(12_345.0));
        assert_eq!(&rates[..5], [1_000.0, 2_000.0, 4_000.0, 8_000.0, 16_000.0]);
        let (passing, failing) = (line.highest_passing.unwrap(), line.lowest_failing.unwrap());
        assert!(passing <= 12_345.0 && 12_345.0 < failing && failing <= passing * 1.02, "{line:?}");
        assert_eq!((line.ended, line.points), (Ended::Found, rates.len()));
        assert_eq!(rates.iter().filter(|rate| **rate == failing).count(), 2);
        assert_eq!(rates.iter().filter(|rate| **rate == passing).count(), 2);
        assert!(rates.len() <= 15, "{rates:?}");
    }

    #[test]
    fn a_line_outside_the_range_is_said_to_lie_outside() {
        let (line, rates) = search(plan(1_000.0, 8_000.0), truthful(100.0));
        assert_eq!((line.highest_passing, line.lowest_failing, line.ended), (None, Some(1_000.0), Ended::LowestFails));
        assert_eq!(rates, [1_000.0, 1_000.0]);
        let (line, _) = search(plan(1_000.0, 9_000.0), truthful(1e6));
        assert_eq!(
            (line.highest_passing, line.lowest_failing, line.ended),
            (Some(9_000.0), None, Ended::HighestPasses)
        );
    }

    #[test]
    fn a_point_that_is_not_steady_is_repeated_once_and_then_fails() {
        let mut unsteady = 0;
        let storage = |rate: f64| {
            if rate > 3_000.0 {
                unsteady += 1;
                Unsteady
            } else {
                Passed
            }
        };
        let (line, rates) = search(plan(1_000.0, 4_000.0), storage);
        assert_eq!(&rates[..4], [1_000.0, 2_000.0, 4_000.0, 4_000.0]);
        assert!(line.unsteady.contains(&line.lowest_failing.unwrap()), "{line:?}");
        assert_eq!(unsteady, 2 * line.unsteady.len());
    }

    #[test]
    fn a_point_that_was_unsteady_once_is_judged_by_its_repeat() {
        let mut first = true;
        let (line, _) = search(plan(1_000.0, 2_000.0), |rate| {
            if rate == 2_000.0 && std::mem::take(&mut first) { Unsteady } else { Passed }
        });
        assert_eq!((line.highest_passing, line.unsteady), (Some(2_000.0), vec![]));
    }

    #[test]
    fn a_pass_above_a_failure_makes_it_repeat_the_failure() {
        let mut search = Search::new(plan(1_000.0, 16_000.0));
        for (rate, outcome) in [(1_000.0, Passed), (2_000.0, Failed), (4_000.0, Passed)] {
            search.record(Verdict { rate, outcome });
        }
        assert_eq!(search.next(), Some(2_000.0));
        search.record(Verdict { rate: 2_000.0, outcome: Passed });
        search.record(Verdict { rate: 2_000.0, outcome: Passed });
        assert_eq!(search.next(), Some(8_000.0), "it was noise, so the search goes on above");

        let mut stubborn = Search::new(plan(1_000.0, 16_000.0));
        for (rate, outcome) in [(1_000.0, Passed), (2_000.0, Failed), (4_000.0, Passed)] {
            stubborn.record(Verdict { rate, outcome });
        }
        stubborn.record(Verdict { rate: 2_000.0, outcome: Failed });
        stubborn.record(Verdict { rate: 2_000.0, outcome: Failed });
        assert!(stubborn.next().is_some_and(|rate| rate > 1_000.0 && rate < 2_000.0));
        let line = stubborn.answer();
        assert_eq!((line.highest_passing, line.lowest_failing), (Some(1_000.0), Some(2_000.0)));
        assert_eq!(line.passing_above, [4_000.0]);
    }

    #[test]
    fn a_failure_by_bad_luck_is_found_out_when_it_is_confirmed() {
        let mut bad_luck = true;
        let (line, _) = search(plan(1_000.0, 64_000.0), |rate| {
            if rate == 8_000.0 && std::mem::take(&mut bad_luck) { Failed } else { truthful(20_000.0)(rate) }
        });
        let (passing, failing) = (line.highest_passing.unwrap(), line.lowest_failing.unwrap());
        assert!(passing <= 20_000.0 && failing > 20_000.0, "{line:?}");
    }

    #[test]
    fn the_generators_limit_bounds_the_search_but_is_no_failure() {
        let (line, _) = search(plan(1_000.0, 64_000.0), |rate| if rate > 5_000.0 { GeneratorBound } else { Passed });
        assert_eq!((line.lowest_failing, line.ended), (None, Ended::Found));
        let (passing, bound) = (line.highest_passing.unwrap(), line.generator_bound.unwrap());
        assert!(passing <= 5_000.0 && bound > 5_000.0 && bound <= passing * 1.02, "{line:?}");
    }

    #[test]
    fn points_that_run_out_are_said_to_have_run_out() {
        let (line, rates) = search(SearchPlan { max_points: 6, ..plan(1_000.0, 64_000.0) }, truthful(12_345.0));
        assert_eq!((rates.len(), line.ended), (6, Ended::OutOfPoints));
        assert_eq!((line.highest_passing.is_some(), line.lowest_failing), (true, Some(16_000.0)));
        let (line, rates) = search(SearchPlan { max_points: 0, ..plan(1.0, 2.0) }, truthful(1.0));
        assert_eq!((line.highest_passing, line.lowest_failing, rates.len()), (None, None, 0));
    }

    #[test]
    fn a_plan_without_sense_is_mended() {
        let odd = SearchPlan { low: 500.0, high: -3.0, resolution: 0.0, repeats: 99, max_points: 300 };
        let (line, _) = search(odd, truthful(200.0));
        assert!(line.highest_passing.unwrap() <= 200.0 && line.lowest_failing.unwrap() > 200.0, "{line:?}");
        let (line, _) = search(SearchPlan { low: f64::NAN, ..plan(1.0, 100.0) }, truthful(10.0));
        assert!(line.points <= 20);
    }

    proptest! {
        #[test]
        fn truthful_verdicts_bracket_the_truth(
            low in 1.0..1e5_f64, span in 1.0..1e4_f64, place in -0.2..1.2_f64, resolution in 0.005..0.2_f64,
        ) {
            let high = low * span;
            let threshold = low * span.powf(place);
            let plan = SearchPlan { resolution, max_points: 60, ..plan(low, high) };
            let (line, _) = search(plan, truthful(threshold));
            if let Some(passing) = line.highest_passing {
                prop_assert!(passing <= threshold);
            }
            if let Some(failing) = line.lowest_failing {
                prop_assert!(failing > threshold);
            }
            match line.ended {
                Ended::Found => {
                    let (passing, failing) = (line.highest_passing.unwrap(), line.lowest_failing.unwrap());
                    prop_assert!(failing <= passing * (1.0 + resolution) * 1.000_001);
                }
                Ended::LowestFails => prop_assert!(threshold < low),
                Ended::HighestPasses => prop_assert!(threshold >= high),
                Ended::OutOfPoints | Ended::Searching => prop_assert!(false, "60 points are enough: {line:?}"),
            }
        }

        #[test]
        fn whatever_it_is_reported_it_ends_and_never_inverts_the_interval(
            low in 1.0..1e5_f64, span in 1.0..1e4_f64, max_points in 0..40_usize, repeats in 0..5_usize, seed: u64,
            order in prop::collection::vec(0..4_u8, 40),
        ) {
            let plan = SearchPlan { low, high: low * span, max_points, repeats, ..SearchPlan::default() };
            let mut search = Search::new(plan);
            let mut chance = Chance::new(seed);
            let mut points = 0;
            while let Some(rate) = search.next() {
                prop_assert!(points < max_points && rate >= low * 0.999_999 && rate <= low * span * 1.000_001);
                let outcome = [Passed, Failed, Unsteady, GeneratorBound][usize::from(order[chance.below(order.len())])];
                search.record(Verdict { rate, outcome });
                points += 1;
                let line = search.answer();
                let above = ceiling_of(&line).unwrap_or(f64::INFINITY);
                prop_assert!(line.highest_passing.unwrap_or(0.0) < above, "{line:?}");
            }
            prop_assert!(search.answer().ended != Ended::Searching);
        }

        #[test]
        fn a_soft_threshold_is_found_within_its_softness(threshold in 2e3..5e4_f64, seed: u64) {
            // One in ten verdicts within 5 % of the line is wrong, further away none.
            let mut chance = Chance::new(seed);
            let (line, _) = search(SearchPlan { max_points: 40, ..plan(1_000.0, 64_000.0) }, |rate| {
                let near = (rate / threshold - 1.0).abs() < 0.05;
                let lies = near && chance.share() < 0.1;
                if (rate <= threshold) != lies { Passed } else { Failed }
            });
            let (passing, failing) = (line.highest_passing.unwrap(), line.lowest_failing.unwrap());
            prop_assert!(passing < threshold * 1.05 && failing > threshold * 0.95, "{line:?} for {threshold}");
        }

        #[test]
        fn a_storage_that_is_not_monotone_still_gets_an_interval_that_was_seen(
            passing in prop::collection::vec(any::<bool>(), 16), seed in 1.0..10.0_f64,
        ) {
            let storage = |rate: f64| if passing[(rate * seed) as usize % 16] { Passed } else { Failed };
            let (line, rates) = search(plan(1_000.0, 64_000.0), storage);
            for (end, outcome) in [(line.highest_passing, Passed), (line.lowest_failing, Failed)] {
                if let Some(rate) = end {
                    prop_assert!(rates.contains(&rate) && storage(rate) == outcome);
                }
            }
        }
    }
}
