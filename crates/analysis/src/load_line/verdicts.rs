//! Verdicts on rates, and the interval that they leave for the load line.

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
        if passed > against {
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
        self.tried.insert(at, Tried { rate, outcomes: vec![outcome] });
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
