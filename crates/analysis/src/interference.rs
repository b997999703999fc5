//! What loads cost each other: each of them alone against itself beside the others, from runs that were made in turns.
//!
//! A load's rate and its p99 are held against each other as any two runs are: the rounds are repeats, so that the interval contains
//! how one round differs from the next. Only whole rounds count, in which every load was measured alone and all of them together.

use std::collections::{BTreeMap, BTreeSet};

use super::message::list;
use super::{Compared, ComparedFigure, Comparison, Difference, Doubt, ERROR_RATE, Figures, Measure, Repeats, Subject};
use model::record::{BesideMark, Company, Outcome, Run, Step, at_once};
use model::units::{percent, shell_command};

/// The quantile of response times that is looked at.
const QUANTILE: f64 = 0.99;
/// Options behind the words of a load that say where its run goes, and nothing about the load.
const WHERE_KEPT: &str = "--runs";

/// What loads cost each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Interference {
    /// The measurement, as the tag of its runs has it.
    pub group: String,
    /// Numbers of the rounds that count.
    pub rounds: Vec<u32>,
    /// Rounds that were begun and do not count: cut short, failed, or with windows that did not lie together.
    pub left_out: usize,
    /// Change from which a difference matters, as a share.
    pub threshold: f64,
    /// Every load, by its letter.
    pub loads: Vec<LoadBeside>,
}

/// One load alone and together with the others.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadBeside {
    /// Its letter.
    pub letter: String,
    /// What was asked, as it can be typed.
    pub command: String,
    /// Where it landed.
    pub target: String,
    /// The first run of each side, alone and together, with the steps of every round in their order.
    pub runs: [Run; 2],
    /// Ids of the runs of each side, a round each.
    pub ids: [Vec<String>; 2],
    /// What its runs have to say about how they were made, each once.
    pub notes: Vec<String>,
    /// Its figures, each alone and together.
    pub compared: Compared,
}

/// Why runs do not say what loads cost each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotBeside {
    /// There is no round in which everything was measured.
    #[error(
        "of `{group}` no round is whole: none has every load alone and all of them together, in windows of the same time"
    )]
    NoWholeRound {
        /// The measurement.
        group: String,
    },
    /// One load alone costs nobody anything.
    #[error("`{group}` has fewer than two loads")]
    TooFew {
        /// The measurement.
        group: String,
    },
}

impl Interference {
    /// From the runs of one measurement, in any order. A change matters beyond `threshold`, a share.
    ///
    /// # Errors
    /// If they are not of two loads or more, or no round of them is whole.
    pub fn of(group: &str, runs: Vec<Run>, threshold: f64) -> Result<Self, NotBeside> {
        let group = group.to_owned();
        let mut placed: BTreeMap<(u32, Company, String), Run> = BTreeMap::new();
        for run in runs {
            if let Some(mark) = BesideMark::of(&run).filter(|mark| mark.group == group) {
                placed.entry((mark.round, mark.company, mark.load)).or_insert(run);
            }
        }
        let letters: BTreeSet<String> = placed.keys().map(|(.., letter)| letter.clone()).collect();
        let begun: BTreeSet<u32> = placed.keys().map(|(round, ..)| *round).collect();
        if letters.len() < 2 {
            return Err(NotBeside::TooFew { group });
        }
        let of_round = |round: u32, company: Company| -> Option<Vec<&Run>> {
            let run = |letter: &String| placed.get(&(round, company, letter.clone())).filter(|run| is_whole(run));
            letters.iter().map(run).collect()
        };
        let counts = |round: &u32| {
            of_round(*round, Company::Alone).is_some() && of_round(*round, Company::Together).is_some_and(lay_together)
        };
        let rounds: Vec<u32> = begun.iter().copied().filter(counts).collect();
        if rounds.is_empty() {
            return Err(NotBeside::NoWholeRound { group });
        }
        // The intervals of all loads are to hold at once.
        let error_rate = ERROR_RATE / letters.len() as f64;
        let mut load = |letter: &String| {
            let mut notes: Vec<String> = Vec::new();
            for (_, run) in placed.iter().filter(|((round, _, load), _)| rounds.contains(round) && load == letter) {
                let fresh: Vec<String> = run.notes.iter().filter(|note| !notes.contains(note)).cloned().collect();
                notes.extend(fresh);
            }
            let mut side = |company: Company| {
                let of_side = rounds.iter().filter_map(|round| placed.remove(&(*round, company, letter.clone())));
                Repeats::of_one_command(of_side.collect())
            };
            let sides = [side(Company::Alone)?, side(Company::Together)?];
            let names = [Company::Alone, Company::Together].map(|company| format!("{letter} {}", company.word()));
            let compared = Compared::of_turns(&sides, names, threshold, (is_looked_at, error_rate))?;
            let [alone, together] = sides;
            Some(LoadBeside {
                letter: letter.clone(),
                command: command(&alone.run),
                target: alone.run.target.address.clone(),
                ids: [alone.ids, together.ids],
                runs: [alone.run, together.run],
                notes,
                compared,
            })
        };
        let loads: Vec<LoadBeside> = letters.iter().filter_map(&mut load).collect();
        let left_out = begun.len() - rounds.len();
        Ok(Self { group, rounds, left_out, threshold, loads })
    }

    /// What each load pays, in a sentence each.
    pub fn sentence(&self) -> String {
        let letters: Vec<&str> = self.loads.iter().map(|load| load.letter.as_str()).collect();
        let parts: Vec<String> = self.loads.iter().map(|load| load.price(self.threshold)).collect();
        format!("{} together: {}.", letters.join("+"), parts.join("; "))
    }
}

impl LoadBeside {
    /// Its figures, each alone and together: the rate of a closed loop, and p99 where there are enough operations for it.
    pub fn figures(&self) -> impl Iterator<Item = &ComparedFigure> {
        self.compared.pairs.iter().flat_map(|pair| &pair.loads).flat_map(|load| &load.figures)
    }

    /// Why the two may not be comparable.
    pub fn doubts(&self) -> &[Doubt] {
        self.compared.pairs.first().map_or(&[], |pair| &pair.doubts)
    }

    /// The same in sentences, with what to do about each. What was seen in several rounds is said once.
    pub fn doubts_in_words(&self) -> Vec<(String, Option<String>)> {
        let mut words: Vec<(String, Option<String>)> = Vec::new();
        for pair in &self.compared.pairs {
            for doubt in &pair.doubts {
                let sentence = doubt.sentence(self.compared.names_of(pair));
                if !words.iter().any(|(known, _)| *known == sentence) {
                    words.push((sentence, doubt.advice(pair.grounds)));
                }
            }
        }
        words
    }

    /// Operations per second that were asked for, of an open loop.
    pub fn asked_per_s(&self) -> Option<f64> {
        self.runs[0].steps.first()?.load.rate_operations_per_s
    }

    /// Operations per second of every round of a side (alone 0, together 1).
    pub fn rates_per_s(&self, side: usize) -> impl Iterator<Item = Option<f64>> + '_ {
        self.runs[side].steps.iter().map(|step| Figures(step).operations_per_s())
    }

    /// p99 of the response times of every round of a side, in nanoseconds.
    pub fn p99s_ns(&self, side: usize) -> impl Iterator<Item = Option<u64>> + '_ {
        let p99 = |step: &Step| {
            let times = Figures(step).response()?;
            times.quantile_ns(QUANTILE).filter(|_| times.knows_quantile(QUANTILE))
        };
        self.runs[side].steps.iter().map(p99)
    }

    /// What it pays for its company.
    fn price(&self, threshold: f64) -> String {
        let letter = &self.letter;
        let compared: Vec<(&Measure, &Comparison)> =
            self.figures().filter_map(|figure| Some((&figure.measure, figure.comparison.as_ref()?))).collect();
        let is_any = |wanted: &[Difference]| compared.iter().any(|(_, it)| wanted.contains(&it.difference()));
        let beyond = compared.iter().filter(|(_, it)| it.is_real() && it.matters());
        let changes: Vec<String> = beyond.map(|(measure, it)| change(measure, it)).collect();
        match () {
            () if compared.is_empty() => format!("of {letter} too little was measured to say what it pays"),
            () if !changes.is_empty() => format!("{letter} {}", list(&changes)),
            () if is_any(&[Difference::NotShown]) => {
                format!("no effect on {letter} shows, but its results scatter too much to exclude one")
            }
            () if is_any(&[Difference::Unknown]) => {
                format!("the effect on {letter} is unknown: how much its results scatter is unknown")
            }
            () => format!("{letter} pays no more than {} %", percent(threshold)),
        }
    }
}

/// One figure that is another beside other loads.
fn change(measure: &Measure, comparison: &Comparison) -> String {
    let ratio = 1.0 + comparison.change;
    match measure {
        Measure::Operations(_) => format!("sustains {} % of its rate alone", percent(ratio)),
        _ => format!("has a p99 of {ratio:.2} times that alone"),
    }
}

/// Whether a figure is one of those that a load is held to.
fn is_looked_at(measure: &Measure) -> bool {
    match measure {
        Measure::Operations(_) => true,
        Measure::Quantile(Subject::Response(None), quantile) => *quantile == QUANTILE,
        _ => false,
    }
}

/// Whether a run measured what it was asked to.
fn is_whole(run: &Run) -> bool {
    run.outcome == Outcome::Completed && run.steps.len() == 1
}

/// Whether windows of runs were there at the same time; simulated time is nobody else's.
fn lay_together(runs: Vec<&Run>) -> bool {
    let window = |run: &&Run| {
        let window = &run.steps.first()?.window;
        let begun_ns = u64::try_from(run.started_at.0.as_nanosecond()).ok()?;
        Some((begun_ns.checked_add(window.offset_ns)?, window.duration_ns))
    };
    let real = runs.iter().filter(|run| !run.target.is_simulated());
    match real.map(window).collect::<Option<Vec<_>>>() {
        Some(windows) => windows.len() < 2 || at_once::together(&windows).is_some(),
        None => false,
    }
}

/// What was asked of a load, without where its runs are kept.
fn command(run: &Run) -> String {
    let words = run.command.iter().skip(1).take_while(|word| *word != WHERE_KEPT);
    shell_command(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::TargetKind;
    use model::record::Timestamp;
    use model::record::sample::beside::{GROUP, rounds};

    #[test]
    fn who_pays_is_told_from_who_does_not() {
        let found = Interference::of(GROUP, rounds(3, 0.5), 0.05).unwrap();
        assert_eq!((found.rounds.as_slice(), found.left_out), (&[1, 2, 3][..], 0));
        let [a, b] = &found.loads[..] else { panic!("{} loads", found.loads.len()) };
        assert_eq!((a.command.as_str(), a.ids[1].len()), ("slob run 8", 3));
        assert!(a.figures().all(|figure| figure.comparison.unwrap().difference() == Difference::NoneThatMatters));
        let rate = b.figures().next().and_then(|figure| figure.comparison).unwrap();
        let (low, high) = rate.interval.unwrap();
        assert!(low < -0.49 && high > -0.51 && rate.difference() == Difference::Worse, "{rate:?}");
        let sentence = found.sentence();
        assert!(sentence.starts_with("A+B together: A pays no more than 5.0 %; B sustains 50."), "{sentence}");
        assert!(sentence.contains("and has a p99 of "), "{sentence}");
    }

    #[test]
    fn rounds_that_are_not_whole_are_left_out_and_said() {
        let mut runs = rounds(4, 0.5);
        runs.iter_mut().find(|run| run.id == "A-together-2").unwrap().outcome = Outcome::Interrupted;
        runs.retain(|run| run.id != "B-alone-3");
        let found = Interference::of(GROUP, runs.clone(), 0.05).unwrap();
        assert_eq!((found.rounds.as_slice(), found.left_out), (&[1, 4][..], 2));
        runs.retain(|run| !run.id.contains("together"));
        assert_eq!(
            Interference::of(GROUP, runs.clone(), 0.05),
            Err(NotBeside::NoWholeRound { group: GROUP.to_owned() })
        );
        runs.retain(|run| run.id.starts_with('A'));
        assert_eq!(Interference::of(GROUP, runs.clone(), 0.05), Err(NotBeside::TooFew { group: GROUP.to_owned() }));
        assert_eq!(Interference::of("h", runs, 0.05), Err(NotBeside::TooFew { group: "h".to_owned() }));
    }

    #[test]
    fn windows_that_did_not_lie_together_are_no_load_together() {
        let mut runs = rounds(2, 0.5);
        let late = runs.iter_mut().find(|run| run.id == "B-together-1").unwrap();
        late.started_at = Timestamp(late.started_at.0 + jiff::SignedDuration::from_secs(7));
        let found = Interference::of(GROUP, runs.clone(), 0.05).unwrap();
        assert_eq!((found.rounds.as_slice(), found.left_out), (&[2][..], 1));
        runs.iter_mut().for_each(|run| run.target.kind = Some(TargetKind::Simulated));
        assert_eq!(Interference::of(GROUP, runs, 0.05).unwrap().left_out, 0, "simulated time has no other beside it");
    }

    #[test]
    fn the_rate_of_an_open_loop_is_no_result() {
        let mut runs = rounds(3, 1.0);
        runs.iter_mut().for_each(|run| run.steps[0].load.rate_operations_per_s = Some(500.0));
        let found = Interference::of(GROUP, runs, 0.05).unwrap();
        let measures: Vec<String> = found.loads[1].figures().map(|figure| figure.measure.to_string()).collect();
        assert_eq!((measures.len(), found.loads[1].asked_per_s()), (1, Some(500.0)), "{measures:?}");
        assert!(measures[0].starts_with("p99"), "{measures:?}");
    }

    #[test]
    fn windows_too_short_to_scatter_say_nothing() {
        let mut runs = rounds(1, 0.5);
        runs.iter_mut().flat_map(|run| &mut run.steps).for_each(|step| step.intervals.clear());
        let sentence = Interference::of(GROUP, runs, 0.05).unwrap().sentence();
        assert!(sentence.contains("the effect on B is unknown: how much its results scatter is unknown"), "{sentence}");
    }
}
