//! The turns of a measurement: each load alone, and all together, round by round.

use crate::cli::dry_run::DryRun;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::loads::Load;
use crate::cli::Interrupt;
use crate::cli::arguments::Measured;
use crate::cli::children::{Children, State};
use crate::cli::exit::{Exit, Failure};
use crate::cli::live::{Verbosity, Watch, left, warmup_words};
use crate::cli::supervisor::Kept;
use crate::plan::turns;
use measure::monotonic_ns;
use model::config::io::Chosen;
use model::record::{BesideMark, Company, Run, store};
use model::units::Nanos;

/// From the moment when all loads are ready to their start: long enough for every process to hear of it.
const START_DELAY_NS: u64 = 250_000_000;
/// How often a plain line says how things go.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// What is to be measured.
pub(super) struct Measurement {
    /// What its runs have in common.
    pub(super) group: String,
    pub(super) loads: Vec<Load>,
    /// When all of them are measured.
    pub(super) measured: Measured,
    pub(super) rounds: u32,
}

/// A round, and who has the turn.
pub(super) type Turn = (u32, Chosen);

impl Measurement {
    /// All turns in their order.
    pub(super) fn turns(&self) -> Vec<Turn> {
        turns(self.loads.len(), self.rounds)
    }

    /// How long load is on in a turn.
    pub(super) fn turn_time(&self) -> Nanos {
        Nanos(self.measured.warmup.0.saturating_add(self.measured.duration.0))
    }

    /// The letters of all loads.
    pub(super) fn letters(&self) -> Vec<char> {
        self.loads.iter().map(|load| load.letter).collect()
    }

    /// `round 2, A+B together`.
    pub(super) fn words(&self, (round, chosen): Turn) -> String {
        format!("round {round}, {chosen} {}", company(chosen).word())
    }

    fn chosen(&self, chosen: Chosen) -> Vec<usize> {
        match chosen {
            Chosen::One(load) => vec![load],
            Chosen::All { .. } => (0..self.loads.len()).collect(),
        }
    }
}

fn company(chosen: Chosen) -> Company {
    match chosen {
        Chosen::One(_) => Company::Alone,
        Chosen::All { .. } => Company::Together,
    }
}

/// What came of all turns.
pub(super) struct Turned {
    /// The runs that are kept whole.
    pub(super) runs: Vec<Run>,
    /// What ended it, if an error did.
    pub(super) failure: Option<Failure>,
    pub(super) limits: Limits,
}

/// Whether loads kept the limits that they have: the load, its company, and the answer of each turn.
#[derive(Debug, Default)]
pub(super) struct Limits(Vec<(usize, Company, Kept)>);

impl Limits {
    /// The worst answer.
    pub(super) fn exit(&self) -> Exit {
        self.0.iter().map(|(.., kept)| *kept).max().map_or(Exit::Done, Kept::exit)
    }

    /// For each load that did not always keep its limits, how often it did.
    pub(super) fn words(&self, letters: &[char]) -> Vec<String> {
        let of_load = |load: usize, letter: &char| {
            let answers = |wanted: Company| {
                let of_it = self.0.iter().filter(|(index, company, _)| (*index, *company) == (load, wanted));
                let all: Vec<Kept> = of_it.map(|(.., kept)| *kept).collect();
                (all.iter().filter(|kept| **kept == Kept::Yes).count(), all.len())
            };
            let [(alone, of_alone), (together, of_together)] = [Company::Alone, Company::Together].map(answers);
            (alone < of_alone || together < of_together).then(|| {
                format!(
                    "{letter} kept its limits in {alone} of {of_alone} rounds alone, and in {together} of {of_together} together"
                )
            })
        };
        letters.iter().enumerate().filter_map(|(load, letter)| of_load(load, letter)).collect()
    }
}

/// Runs one turn after the other, until all are done or something ends it.
pub(super) fn run(measurement: &Measurement, interrupt: &Interrupt, verbosity: Verbosity) -> Turned {
    let mut turned = Turned { runs: Vec::new(), failure: None, limits: Limits::default() };
    let mut display = Display::new(measurement, verbosity);
    for (number, turn) in (0..).zip(measurement.turns()) {
        if interrupt.stop().is_asked() {
            break;
        }
        display.begin(number, turn);
        match run_turn(measurement, turn, interrupt, &mut display) {
            Ok(ended) => {
                for (load, directory, kept) in ended {
                    turned.limits.0.push((load, company(turn.1), kept));
                    match store::load(&directory) {
                        Ok(run) => turned.runs.push(run),
                        Err(error) => turned.failure = turned.failure.or(Some(error.into())),
                    }
                }
            }
            Err(failure) => turned.failure = Some(failure),
        }
        if turned.failure.is_some() {
            break;
        }
    }
    display.watch.end();
    turned
}

/// One turn: every load of it is made ready, one after the other so that none disturbs another's preparation, then all begin.
fn run_turn(
    measurement: &Measurement,
    turn: Turn,
    interrupt: &Interrupt,
    display: &mut Display<'_>,
) -> Result<Vec<(usize, PathBuf, Kept)>, Failure> {
    let (round, chosen) = turn;
    let mut children = Children::new();
    let place = |load: usize, failure| of_load(measurement, turn, load, failure);
    let listen = |children: &mut Children, display: &mut Display<'_>| {
        children.listen();
        if interrupt.stop().is_asked() {
            children.stop();
        }
        display.show(children);
    };
    for index in measurement.chosen(chosen) {
        let load = &measurement.loads[index];
        let (group, letter) = (measurement.group.clone(), load.letter.to_string());
        let mark = BesideMark { group, load: letter, round, company: company(chosen) };
        children.start(index, &load.arguments, mark.tags(), true).map_err(|failure| place(index, failure))?;
        while !children.is_last_decided() {
            listen(&mut children, display);
        }
        if children.is_stopped() {
            break;
        }
    }
    if !children.is_stopped() {
        children.begin(monotonic_ns() + START_DELAY_NS);
    }
    while !children.are_gone() {
        listen(&mut children, display);
    }
    if let Some((load, failure)) = children.failure() {
        return Err(place(load, failure));
    }
    let ended = children.all.iter().filter_map(|child| match &child.state {
        State::Ended { run, limits } => Some((child.load, run.clone(), *limits)),
        _ => None,
    });
    Ok(ended.collect())
}

fn of_load(measurement: &Measurement, turn: Turn, load: usize, failure: Failure) -> Failure {
    let Load { letter, typed, .. } = &measurement.loads[load];
    match failure {
        Failure::Reported(mut reported) => {
            reported.message = format!("load {letter} (`{typed}`), {}: {}", measurement.words(turn), reported.message);
            Failure::Reported(reported)
        }
        Failure::PipeClosed => failure,
    }
}

/// How far everything is, in one line.
struct Display<'a> {
    measurement: &'a Measurement,
    watch: Watch,
    number: usize,
    all: usize,
    turn: Turn,
    last_line: Instant,
}

impl<'a> Display<'a> {
    fn new(measurement: &'a Measurement, verbosity: Verbosity) -> Self {
        let all = measurement.turns().len();
        let turn = (1, Chosen::One(0));
        Self { measurement, watch: Watch::new(verbosity), number: 0, all, turn, last_line: Instant::now() }
    }

    fn begin(&mut self, number: usize, turn: Turn) {
        (self.number, self.turn, self.last_line) = (number, turn, Instant::now());
        let Measured { warmup, duration } = self.measurement.measured;
        let words = format!("turn {} of {}, {}", number + 1, self.all, self.measurement.words(turn));
        let line = format!("{words}: {}, {duration} measured", warmup_words(warmup));
        self.watch.show(|_| words, || vec![line]);
    }

    fn show(&mut self, children: &Children) {
        let is_time = self.last_line.elapsed() >= LINE_EVERY;
        if is_time {
            self.last_line = Instant::now();
        }
        let figures: Vec<String> =
            children.all.iter().filter_map(|child| self.figures(child.load, &child.state)).collect();
        let figures = figures.join("; ");
        let each = self.measurement.turn_time().0;
        let over = children.all.iter().map(|child| match &child.state {
            State::Loading { over_ns, .. } => *over_ns,
            State::Ended { .. } => each,
            State::Preparing | State::Ready | State::Failed => 0,
        });
        let later = each.saturating_mul((self.all - self.number) as u64).saturating_sub(over.min().unwrap_or(0));
        let place = format!("{}/{}, {}: ", self.number + 1, self.all, left(Nanos(later)));
        let fitting = |width: usize| (place + &figures).chars().take(width).collect();
        self.watch.show(fitting, || if is_time && !figures.is_empty() { vec![figures.clone()] } else { Vec::new() });
    }

    fn figures(&self, load: usize, state: &State) -> Option<String> {
        let letter = self.measurement.loads[load].letter;
        match state {
            State::Preparing => Some(format!("{letter} is made ready")),
            State::Ready => Some(format!("{letter} is ready")),
            State::Loading { words, .. } => Some(format!("{letter} {words}")),
            State::Ended { .. } => Some(format!("{letter} has ended")),
            State::Failed => None,
        }
    }
}

impl Measurement {
    /// How long load is on in all turns.
    pub(super) fn time(&self) -> Nanos {
        let each = self.turn_time().0;
        Nanos(each.saturating_mul(self.turns().len() as u64))
    }

    /// Which load runs when, and for how long.
    pub(super) fn described(&self) -> DryRun {
        let described = self
            .loads
            .iter()
            .fold(DryRun::default(), |it, load| it.fact(&format!("load {}", load.letter), &load.typed))
            .fact("rounds", self.rounds)
            .fact("load for", format_args!("{}, and what it takes to make each load ready", self.time()))
            .gap();
        let (warmup, duration) = (warmup_words(self.measured.warmup), self.measured.duration);
        (1..).zip(self.turns()).fold(described, |it, (number, turn)| {
            it.line(format_args!("turn {number:<3} {}: {warmup}, {duration} measured", self.words(turn)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measurement() -> Measurement {
        let load = |letter| Load { letter, typed: "io run".to_owned(), arguments: Vec::new() };
        let measured = Measured { warmup: Nanos::seconds(1), duration: Nanos::seconds(4) };
        Measurement { group: "g".to_owned(), loads: vec![load('A'), load('B')], measured, rounds: 2 }
    }

    #[test]
    fn every_other_round_goes_backwards() {
        let measurement = measurement();
        let words: Vec<String> = measurement.turns().into_iter().map(|turn| measurement.words(turn)).collect();
        let expected = [
            "round 1, A alone",
            "round 1, B alone",
            "round 1, A+B together",
            "round 2, A+B together",
            "round 2, B alone",
            "round 2, A alone",
        ];
        assert_eq!(words, expected);
        assert_eq!(measurement.time(), Nanos::seconds(30));
    }

    #[test]
    fn the_worst_answer_on_limits_is_the_exit_code_and_is_said_of_whose_it_is() {
        let kept = |load, company, kept| (load, company, kept);
        let mut limits = Limits(vec![kept(0, Company::Alone, Kept::Yes), kept(1, Company::Alone, Kept::Yes)]);
        assert_eq!((limits.exit(), limits.words(&['A', 'B']).len()), (Exit::Done, 0));
        limits.0.push(kept(0, Company::Together, Kept::Unknown));
        assert_eq!(limits.exit(), Exit::NoVerdict);
        limits.0.push(kept(1, Company::Together, Kept::No));
        assert_eq!(limits.exit(), Exit::NotMet);
        let words = limits.words(&['A', 'B']);
        assert_eq!(words[1], "B kept its limits in 1 of 1 rounds alone, and in 0 of 1 together");
    }
}
