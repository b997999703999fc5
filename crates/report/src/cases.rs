//! What is judged, as programs that run tests know it: suites of cases, each passed, failed or without a verdict.

use crate::experiment::NotMeasured;
use crate::html::Reported;
use analysis::check::{Carries, Check, Reached};
use analysis::history::{Histories, Today};
use analysis::{Compared, Difference, ExperimentFound, Finding, LimitAnswer, MapAnswer};
use model::record::Run;
use model::shown::shown;

/// What came of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Answer {
    /// A limit that was missed, a demand that was not carried, a figure that is worse.
    Failed,
    /// A limit or a demand that has no verdict.
    NoVerdict,
    /// A figure of which nothing is shown, so that nothing can be said against it either.
    NotShown,
    /// The others.
    Passed,
}

impl From<LimitAnswer> for Answer {
    fn from(answer: LimitAnswer) -> Self {
        match answer {
            LimitAnswer::Yes => Self::Passed,
            LimitAnswer::No => Self::Failed,
            LimitAnswer::NoVerdict => Self::NoVerdict,
        }
    }
}

/// Something that is judged, and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) answer: Answer,
    /// Why, with its figures.
    pub(crate) because: String,
}

/// The cases of a run, a comparison or a history.
#[derive(Debug, Clone, PartialEq)]
pub struct Suite {
    pub(crate) name: String,
    pub(crate) id: String,
    /// What came of all of it, in a sentence; empty for a run, whose first screen says it.
    pub(crate) result: String,
    /// Seconds that were measured; absent where none were for this.
    pub(crate) seconds: Option<f64>,
    pub(crate) cases: Vec<Case>,
}

impl Suite {
    /// Limits of a run, and demands of a check.
    pub fn of_run(one: &Reported<'_>) -> Self {
        let run = one.run;
        let simulated = if run.target.is_simulated() { " (simulated)" } else { "" };
        let ns = run.steps.iter().map(|step| step.window.duration_ns as f64).sum::<f64>();
        Self {
            name: format!("{}{simulated}", shown(&run.name)),
            id: shown(&run.id).into_owned(),
            result: String::new(),
            seconds: Some(ns / 1e9),
            cases: of_run(one),
        }
    }

    /// Each pair of a comparison, with a case for each figure of each load. `runs` are those that were compared, in the same order.
    pub fn of_comparison(compared: &Compared, runs: &[&Run]) -> Vec<Self> {
        let simulated = if runs.iter().any(|run| run.target.is_simulated()) { " (simulated)" } else { "" };
        let of_pair = |pair: &analysis::Pair| {
            let names = compared.names_of(pair);
            let cases = pair.comparisons().map(|(load, measure, comparison)| {
                let name = format!("{measure} at {}", load.name);
                let answer = match comparison.difference() {
                    Difference::Worse => Answer::Failed,
                    Difference::NotShown | Difference::Unknown => Answer::NotShown,
                    Difference::Better | Difference::RealButSmall | Difference::NoneThatMatters => Answer::Passed,
                };
                let because = shown(&comparison.sentence(&name, names)).into_owned();
                Case { name: shown(&name).into_owned(), because, answer }
            });
            Self {
                name: format!("{} against {}{simulated}", shown(names[1]), shown(names[0])),
                id: shown(names[1]).into_owned(),
                result: shown(&compared.verdict(pair)).into_owned(),
                seconds: None,
                cases: cases.collect(),
            }
        };
        compared.pairs.iter().map(of_pair).collect()
    }

    /// Each history, with a case for each of its series.
    pub fn of_histories(histories: &Histories) -> Vec<Self> {
        let of_history = |history: &analysis::history::History| {
            let cases = histories.series_of(history).map(|(series, today)| Case {
                name: shown(&crate::history::name(series)).into_owned(),
                answer: match today {
                    _ if !history.is_current => Answer::NotShown,
                    Today::Worse(..) => Answer::Failed,
                    Today::TooFew | Today::Missing => Answer::NoVerdict,
                    Today::Level | Today::Changed(_) => Answer::Passed,
                },
                because: shown(&crate::history::sentence(histories, history, series, today)).into_owned(),
            });
            let missing = history.missing.iter().map(|load| Case {
                name: shown(load).into_owned(),
                answer: Answer::NoVerdict,
                because: "The latest run has it not, and the run before it has.".to_owned(),
            });
            let latest = history.runs.last();
            Self {
                name: shown(&crate::history::title(history)).into_owned(),
                id: latest.map_or_else(String::new, |run| shown(&run.id).into_owned()),
                result: shown(&crate::history::answer(histories, history)).into_owned(),
                seconds: None,
                cases: missing.chain(cases).collect(),
            }
        };
        histories.histories.iter().map(of_history).collect()
    }

    /// An experiment: each run with a limit or a demand, and each that is missing. One platform may be slower than another.
    pub fn of_experiment(found: &ExperimentFound, missing: &[NotMeasured]) -> Self {
        let of_reading = |(case, reading): (&analysis::Case, &analysis::CaseReading)| {
            let worst = reading.answers().map(Answer::from).min()?;
            let name = shown(&format!("{} {}, round {}", case.step, case.load, reading.round)).into_owned();
            Some(Case { name, answer: worst, because: shown(&reading.sentence).into_owned() })
        };
        let readings = found.cases.iter().flat_map(|case| case.readings.iter().map(move |reading| (case, reading)));
        let missing = missing.iter().map(|missing| Case {
            name: shown(&format!("{}, round {}", missing.step, missing.round)).into_owned(),
            answer: Answer::NoVerdict,
            because: shown(&missing.why).into_owned(),
        });
        let is_simulated = found.cases.iter().any(|case| case.side.run.target.is_simulated());
        let title = shown(&found.title).into_owned();
        Self {
            name: format!("{title}{}", if is_simulated { " (simulated)" } else { "" }),
            id: title,
            result: shown(&found.summary().join(" ")).into_owned(),
            seconds: None,
            cases: readings.filter_map(of_reading).chain(missing).collect(),
        }
    }

    /// How many cases there are.
    pub fn count(&self) -> usize {
        self.cases.len()
    }

    /// How many cases have this answer.
    pub(crate) fn count_of(&self, answer: Answer) -> usize {
        self.cases.iter().filter(|case| case.answer == answer).count()
    }

    /// The cases, what failed first.
    pub(crate) fn worst_first(&self) -> Vec<&Case> {
        let mut cases: Vec<&Case> = self.cases.iter().collect();
        cases.sort_by_key(|case| case.answer);
        cases
    }
}

fn of_run(one: &Reported<'_>) -> Vec<Case> {
    let of_limits = one.findings.iter().filter_map(|finding| match finding {
        Finding::Verdict(verdict) => Some(&verdict.limits),
        _ => None,
    });
    let of_limits = of_limits.flatten().map(|limit| Case {
        name: shown(&limit.target.to_string()).into_owned(),
        answer: limit.answer.into(),
        because: shown(&limit.words()).trim().to_owned(),
    });
    let check = Check::of(one.run, one.findings);
    of_limits.chain(check.iter().flat_map(of_check)).chain(of_map(one.run)).collect()
}

/// What was to be inside of the line of a map.
fn of_map(run: &Run) -> Option<Case> {
    let map = MapAnswer::of(run)?;
    let because = shown(&map.place_words()?).into_owned();
    Some(Case {
        name: format!("inside of the line within {}", shown(&map.limit)),
        answer: map.is_carried()?.into(),
        because,
    })
}

/// All that was asked at the same time, and each kind with a limit by itself.
fn of_check(check: &Check) -> Vec<Case> {
    let answer = match check.answer {
        Carries::Yes => Answer::Passed,
        Carries::No(_) => Answer::Failed,
        Carries::Unknown(_) => Answer::NoVerdict,
    };
    let lines: Vec<String> =
        check.before.iter().cloned().chain(check.lines()).map(|line| shown(line.trim()).into_owned()).collect();
    let whole = Case {
        name: shown(&format!("{} at the same time", analysis::check::words(&check.demands))).into_owned(),
        answer,
        because: lines.join("\n"),
    };
    let of_kind = |reached: &Reached| {
        let (_, value) = reached.within.zip(reached.value)?;
        let answer = match (answer, reached.is_late()) {
            (Answer::NoVerdict, _) => Answer::NoVerdict,
            (_, true) => Answer::Failed,
            (_, false) => Answer::Passed,
        };
        Some(Case { name: shown(&reached.with_limit()).into_owned(), answer, because: format!("it took {value}") })
    };
    std::iter::once(whole).chain(check.kinds.iter().filter_map(of_kind)).collect()
}
