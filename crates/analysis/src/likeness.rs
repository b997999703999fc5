//! A load beside the production that it was made like: what that did, what was asked for, and what was reached.

use super::message::list;
use super::replay::times_recorded;
use super::trend::work;
use super::{Finding, Message, measured, sending};
use crate::Rule;
use model::record::{Like, LikeMoment, Load, Run, Step, WorkFigure};

/// What was reached counts as what was asked for if it is no further from it.
const LIKE: f64 = 0.05;
/// Of a number of things that happen by chance, so many of its standard deviations are chance.
const BY_CHANCE: f64 = 3.0;

/// One figure of one step beside production.
#[derive(Debug, Clone, PartialEq)]
pub struct LikeRow {
    /// Label of the step.
    pub step: String,
    /// Which moment of production it is like, where a run has several.
    pub moment: Option<String>,
    /// How many times production it asks for.
    pub times: f64,
    /// What.
    pub figure: WorkFigure,
    /// What production did.
    pub production: f64,
    /// What was asked for in this step; absent where it is not reproduced.
    pub asked: Option<f64>,
    /// What was reached; absent where the target does not count it.
    pub reached: Option<f64>,
    /// How far from what was asked for it may be by chance, as a share of it.
    chance: f64,
}

impl LikeRow {
    /// What was reached beside so many times production, as a share of that: 0.02 is 2 % more. Absent where either is not known.
    pub fn difference(&self) -> Option<f64> {
        let wanted = self.production * self.times;
        self.reached.filter(|_| wanted > 0.0).map(|reached| reached / wanted - 1.0)
    }

    /// What was reached beside what was asked for, likewise.
    pub fn missed_by(&self) -> Option<f64> {
        let (asked, reached) = self.asked.filter(|asked| *asked > 0.0).zip(self.reached)?;
        Some(reached / asked - 1.0)
    }

    /// Whether what was asked for was reached; absent where nobody knows.
    pub fn is_reached(&self) -> Option<bool> {
        self.missed_by().map(|missed| missed.abs() <= LIKE.max(self.chance))
    }
}

/// Every figure of every step that a run asked for, in the order in which they ran; nothing of a run that is like no production.
pub fn like_rows(run: &Run) -> Vec<LikeRow> {
    measured(run).flat_map(|step| of_step(run, step)).collect()
}

fn moment_of<'a>(run: &'a Run, step: &Step) -> Option<(&'a LikeMoment, f64)> {
    run.like.as_ref()?.moment_of(step)
}

fn of_step(run: &Run, step: &Step) -> Vec<LikeRow> {
    let Some((moment, times)) = moment_of(run, step) else { return Vec::new() };
    let has_several = run.like.as_ref().is_some_and(|like| like.moments.len() > 1);
    let reached = work(run, step);
    let seconds = step.window.duration_ns as f64 / 1e9;
    let row = |figure: WorkFigure| {
        let asked = moment.asked.get(&figure).map(|asked| asked * times);
        // Few large reads decide over most of the bytes.
        let counted = match figure {
            WorkFigure::ReadBytes => {
                moment.asked.get(&WorkFigure::LargeReads).filter(|large| **large > 0.0).map(|large| large * times)
            }
            figure if figure.is_counted() => asked,
            _ => None,
        };
        let count = counted.unwrap_or(0.0) * seconds;
        Some(LikeRow {
            step: step.label.clone(),
            moment: has_several.then(|| moment.name.clone()),
            times,
            figure,
            production: *moment.work.get(&figure)?,
            asked,
            reached: reached.get(&figure).copied(),
            chance: if count > 0.0 { BY_CHANCE / count.sqrt() } else { 0.0 },
        })
    };
    WorkFigure::ALL.into_iter().filter_map(row).collect()
}

/// A load that did not do what was asked of it, although it was not too much for the target.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct NotLike {
    /// Labels of the steps.
    pub steps: Vec<String>,
    /// The figure that is furthest off.
    pub figure: WorkFigure,
    /// By how much, as a share of what was asked for.
    pub missed_by: f64,
}

pub(super) fn find(run: &Run) -> Vec<Finding> {
    let mut found: Vec<NotLike> = Vec::new();
    for step in measured(run).filter(|step| sending::behind(step).is_none()) {
        for row in of_step(run, step).into_iter().filter(|row| row.is_reached() == Some(false)) {
            let Some(missed_by) = row.missed_by() else { continue };
            match found.iter_mut().find(|known| known.figure == row.figure) {
                Some(known) => {
                    known.steps.push(row.step);
                    if missed_by.abs() > known.missed_by.abs() {
                        known.missed_by = missed_by;
                    }
                }
                None => found.push(NotLike { steps: vec![row.step], figure: row.figure, missed_by }),
            }
        }
    }
    found.into_iter().map(Finding::NotLike).collect()
}

impl Message for NotLike {
    fn rule(&self) -> Rule {
        Rule::RunNotLike
    }

    fn sentence(&self) -> String {
        let Self { steps, figure, missed_by } = self;
        let most = if steps.len() > 1 { "by up to" } else { "by" };
        format!(
            "Not as requested: {} missed its target {most} {:+.1} % in {}.",
            figure.name(),
            missed_by * 100.0,
            list(steps)
        )
    }

    fn advice(&self) -> Option<String> {
        let advice = match self.figure {
            WorkFigure::Writes => {
                "Blocks that are changed are written later: give it a longer warm-up, until the cache is full of them, or a smaller \
                 cache."
            }
            WorkFigure::Reads | WorkFigure::ReadBytes | WorkFigure::LargeReads => {
                "Something before the storage answered reads, or the cache was not warm yet: give it a longer warm-up, or data of many \
                 times the cache."
            }
            WorkFigure::RedoBytes => {
                "How much redo a change makes is the target's own; take the other figures as they are."
            }
            _ => "Measure for longer, and read the other figures as they are.",
        };
        Some(advice.to_owned())
    }

    fn steps(&self) -> Option<&[String]> {
        Some(&self.steps)
    }
}

/// A load as a multiple of production.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Multiple {
    /// Of what, such as `the peak of PROD`.
    pub of: String,
    /// What was carried.
    pub times: f64,
    /// The least that was not, where the load line lies between the two.
    pub not_times: Option<f64>,
}

impl Multiple {
    /// Of the step of this label, where `not_per_s` is the rate of one that was not carried.
    pub(super) fn of(run: &Run, label: &str, not_per_s: Option<f64>) -> Option<Self> {
        let step = measured(run).find(|step| step.label == label)?;
        let (of, times) = Self::of_step(run, step)?;
        let above = measured(run).find(|step| step.load.rate_operations_per_s == not_per_s && not_per_s.is_some());
        let not_times = above.and_then(|step| Self::of_step(run, step)).map(|(_, times)| times);
        Some(Self { of, times, not_times })
    }

    /// Of what a step is a multiple, and how many times that.
    fn of_step(run: &Run, step: &Step) -> Option<(String, f64)> {
        if let Load::Replay(load) = &run.load {
            return Some((format!("the load of {}", load.trace), times_recorded(load, step)?));
        }
        let (moment, times) = moment_of(run, step)?;
        Some((moment_words(run.like.as_ref()?, &moment.name), times))
    }
}

/// `the peak of PROD`.
fn moment_words(like: &Like, name: &str) -> String {
    let what = match name {
        "peak" => "the peak".to_owned(),
        "mean" => "the mean".to_owned(),
        name if name.starts_with('p') => format!("the {name}"),
        hour => format!("hour {hour}"),
    };
    format!("{what} of {}", like.database)
}

/// In which figures the step of this label was as it was asked to be, in words; absent of a run that is like no production.
pub(super) fn likeness(run: &Run, label: &str) -> Option<String> {
    let step = measured(run).find(|step| step.label == label)?;
    let rows = of_step(run, step);
    let of = |rows: &[(&LikeRow, f64)]| {
        let name = |(row, missed): &(&LikeRow, f64)| {
            let name = row.figure.name();
            if missed.abs() <= LIKE { name.to_owned() } else { format!("{name} ({:+.0} %)", missed * 100.0) }
        };
        rows.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    let known: Vec<(&LikeRow, f64)> = rows.iter().filter_map(|row| Some((row, row.missed_by()?))).collect();
    let (within, others): (Vec<_>, Vec<_>) = known.into_iter().partition(|(_, missed)| missed.abs() <= LIKE);
    let (by_chance, missed): (Vec<_>, Vec<_>) = others.into_iter().partition(|(row, _)| row.is_reached() == Some(true));
    let mut text = match (within.is_empty(), by_chance.is_empty() && missed.is_empty()) {
        (true, true) => return None,
        (false, true) => return Some(format!("all requested metrics came within 5 %: {}", of(&within))),
        (true, false) => "no requested metric came within 5 %".to_owned(),
        (false, false) => format!("within 5 % of the request were {}", of(&within)),
    };
    if !missed.is_empty() {
        text.push_str(&format!("{}{}", if within.is_empty() { ": " } else { ", but not " }, of(&missed)));
    }
    if !by_chance.is_empty() {
        text.push_str(&format!("; no further than chance of few events allows: {}", of(&by_chance)));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::{LikeMoment, Work, sample};

    /// A step of the sample at `times`, which did so many times the reads that its rate was asked for.
    fn run(steps: &[(f64, f64)]) -> Run {
        let mut run = sample::sweep(60);
        let origin = run.steps[2].clone();
        let reads = origin.counters.physical_reads.unwrap() as f64 / 60.0;
        let work: Work = [(WorkFigure::Reads, reads), (WorkFigure::Commits, 3.0), (WorkFigure::RedoWrites, 9.0)].into();
        let asked = [(WorkFigure::Reads, reads), (WorkFigure::Commits, 3.0)].into();
        let moment = LikeMoment { name: "peak".to_owned(), words: String::new(), work, asked };
        run.like = Some(Like {
            database: "PROD".to_owned(),
            runs: vec!["a".to_owned()],
            at: "peak".to_owned(),
            moments: vec![moment],
            aspects: Vec::new(),
        });
        run.steps = steps
            .iter()
            .zip(0..)
            .map(|((times, reached), index)| {
                let mut step = origin.clone();
                step.index = index;
                step.label = format!("x{times}");
                step.like = Some(model::record::LikeLevel { times: *times, moment: None });
                step.counters.physical_reads = Some((reads * times * reached * 60.0) as u64);
                step
            })
            .collect();
        run
    }

    #[test]
    fn each_figure_of_production_has_a_row_with_what_was_asked_and_reached() {
        let run = run(&[(2.0, 1.02)]);
        let rows = like_rows(&run);
        let [reads, commits, redo] = &rows[..] else { panic!("{rows:?}") };
        assert!((reads.difference().unwrap() - 0.02).abs() < 1e-3 && reads.is_reached() == Some(true), "{reads:?}");
        assert_eq!(commits.asked, Some(6.0));
        assert_eq!((redo.figure, redo.asked, redo.is_reached()), (WorkFigure::RedoWrites, None, None));
        assert_eq!(like_rows(&sample::sweep(5)), []);
    }

    #[test]
    fn what_was_not_reached_is_noticed_with_the_steps() {
        let found = find(&run(&[(1.0, 1.01), (2.0, 0.8), (3.0, 0.9)]));
        let reads: Vec<&NotLike> = found
            .iter()
            .filter_map(|finding| match finding {
                Finding::NotLike(found) if found.figure == WorkFigure::Reads => Some(found),
                _ => None,
            })
            .collect();
        let [reads] = reads[..] else { panic!("{found:?}") };
        assert_eq!(reads.sentence(), "Not as requested: reads/s missed its target by up to -20.0 % in x2 and x3.");
        assert!(find(&run(&[(1.0, 1.01)])).iter().all(|it| !it.sentence().contains("reads/s")));
    }

    #[test]
    fn few_events_may_stray_by_chance() {
        let row = |count: f64| LikeRow {
            step: String::new(),
            moment: None,
            times: 1.0,
            figure: WorkFigure::Commits,
            production: 1.0,
            asked: Some(1.0),
            reached: Some(0.8),
            chance: BY_CHANCE / f64::sqrt(count),
        };
        assert_eq!((row(100.0).is_reached(), row(1_000.0).is_reached()), (Some(true), Some(false)));
    }

    #[test]
    fn a_step_is_a_multiple_of_the_moment_that_it_is_like() {
        let mut run = run(&[(1.0, 1.0), (2.0, 1.0), (4.0, 0.5)]);
        for (step, rate) in run.steps.iter_mut().zip([100.0, 200.0, 400.0]) {
            step.load.rate_operations_per_s = Some(rate);
        }
        let multiple = Multiple::of(&run, "x2", Some(400.0)).unwrap();
        assert_eq!(multiple, Multiple { of: "the peak of PROD".to_owned(), times: 2.0, not_times: Some(4.0) });
        assert!(likeness(&run, "x2").unwrap().contains("reads/s"));
    }

    #[test]
    fn what_chance_explains_is_not_called_within_five_percent() {
        let mut run = run(&[(1.0, 1.0)]);
        // 180 were asked for in the window, of which three deviations are 22 %.
        run.steps[0].counters.commits = Some(150);
        assert_eq!(
            likeness(&run, "x1").unwrap(),
            "within 5 % of the request were reads/s; no further than chance of few events allows: commits/s (-17 %)"
        );
        run.steps[0].counters.commits = Some(90);
        assert_eq!(likeness(&run, "x1").unwrap(), "within 5 % of the request were reads/s, but not commits/s (-50 %)");
        run.steps[0].counters.commits = Some(180);
        assert!(likeness(&run, "x1").unwrap().starts_with("all requested metrics came within 5 %: "));
    }
}
