//! Carrying out: one turn after the other, each a process of its own, until all are done, time is up, or somebody ends it.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::asked::Asked;
use super::{folder, surroundings};
use crate::cli::children::{self, Child, Children, Planned, State};
use crate::cli::exit::Failure;
use crate::cli::live::{Verbosity, Watch, left};
use crate::cli::{Interrupt, say};
use crate::plan::experiment::{Step, Turn, fits};
use model::record::ExperimentMark;
use model::units::Nanos;

/// Where the runs of an experiment go, for what its scripts call.
const RUNS_VARIABLE: &str = "PLIMSOLL_RUNS";
/// The run that a script follows.
const RUN_VARIABLE: &str = "PLIMSOLL_RUN";
/// How often a plain line says how things go.
const LINE_EVERY: Duration = Duration::from_secs(60);

/// What is carried out, and where.
pub(super) struct Evening<'a> {
    pub(super) asked: &'a Asked,
    pub(super) folder: &'a Path,
    /// Arguments of each step's process.
    pub(super) loads: &'a [Vec<OsString>],
    pub(super) interrupt: &'a Interrupt,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Came {
    /// Turns that failed, and why.
    pub(super) failed: Vec<(Turn, String)>,
    /// How many turns have no whole run.
    pub(super) unmeasured: usize,
    /// Whether the budget was used up before all was done.
    pub(super) is_out_of_time: bool,
    /// Whether the script at the end of the sitting failed.
    pub(super) is_end_failed: bool,
}

/// Carries out every turn that has no whole run yet. `planned` is what is known of each step's time.
pub(super) fn run(evening: &Evening<'_>, mut planned: Vec<Option<Planned>>, verbosity: Verbosity) -> Came {
    let Evening { asked, folder, interrupt, .. } = evening;
    let plan = &asked.plan;
    let mut done = folder::done(asked, folder);
    let mut came = Came { failed: Vec::new(), unmeasured: 0, is_out_of_time: false, is_end_failed: false };
    let begun = Instant::now();
    let mut display = Display::new(plan.turns.len(), verbosity);
    if !done.is_empty() && done.len() < plan.turns.len() {
        display.line(&format!("{} of {} runs are there already", done.len(), plan.turns.len()));
    }
    let is_anything_to_do = done.len() < plan.turns.len();
    let first = if is_anything_to_do { evening.script(plan.before.as_deref(), None) } else { Ok(()) };
    if let Err(failure) = first {
        // Without what it makes no step measures what was meant.
        let all = plan.turns.iter().filter(|turn| !done.contains(*turn));
        came.failed = all.map(|turn| (*turn, words(&failure))).collect();
        report_failure(failure);
    } else {
        let mut is_first = true;
        for (number, turn) in (1..).zip(&plan.turns).filter(|(_, turn)| !done.contains(*turn)).collect::<Vec<_>>() {
            let step = &plan.steps[turn.step];
            let pause = if is_first { Nanos(0) } else { step.pause };
            let time = planned[turn.step].map_or(Nanos(0), real_time);
            let spent = Nanos::from(begun.elapsed());
            if interrupt.stop().is_asked() {
                break;
            }
            if !fits(plan.budget, spent, Nanos(pause.0.saturating_add(time.0))) {
                came.is_out_of_time = true;
                break;
            }
            let later = later(asked, &done, &planned, *turn);
            display.begin(number, *turn, step, planned[turn.step], later);
            let rest = plan.budget.map(|budget| Nanos(budget.0.saturating_sub(spent.0)));
            match evening.turn(*turn, pause, &mut planned, rest, &mut display) {
                Ok(Turned::Whole) => {
                    done.insert(*turn);
                }
                Ok(Turned::OutOfTime) => {
                    came.is_out_of_time = true;
                    break;
                }
                Ok(Turned::Stopped) => break,
                Err(failure) => {
                    display.watch.end();
                    let failure = asked.of_step(step, failure);
                    // Its run may be whole, and what follows it not.
                    done = folder::done(asked, folder);
                    came.failed.push((*turn, words(&failure)));
                    report_failure(failure);
                    display.watch = Watch::new(verbosity);
                    if asked.has_failure(turn.step) {
                        // What it did to the target may not be over.
                        say::note(
                            "nothing more is measured: look whether the failure is over, then the same command goes on",
                        );
                        break;
                    }
                }
            }
            is_first = false;
        }
        display.watch.end();
        if is_anything_to_do && !interrupt.stop().is_asked() {
            let last = evening.script(plan.after.as_deref(), None);
            came.is_end_failed = last.is_err();
            last.unwrap_or_else(report_failure);
        }
    }
    display.watch.end();
    came.unmeasured = plan.turns.iter().filter(|turn| !done.contains(*turn)).count();
    came
}

/// What came of one turn.
enum Turned {
    /// Its run is whole.
    Whole,
    /// An end was asked for.
    Stopped,
    /// It would have ended after the budget, which was not known before its script had run.
    OutOfTime,
}

impl Evening<'_> {
    /// One turn with what surrounds it. `rest` is what is left of the budget.
    fn turn(
        &self,
        turn: Turn,
        pause: Nanos,
        planned: &mut [Option<Planned>],
        rest: Option<Nanos>,
        display: &mut Display,
    ) -> Result<Turned, Failure> {
        let (step, load) = (&self.asked.plan.steps[turn.step], &self.loads[turn.step]);
        let (stop, begun) = (self.interrupt.stop(), Instant::now());
        surroundings::pause(pause, self.interrupt, &mut |time| display.pause(time));
        if !stop.is_asked() {
            self.script(step.before.as_deref(), None)?;
        }
        // Behind the script, which may have filled them.
        if step.drop_caches && !stop.is_asked() {
            surroundings::drop_caches()?;
        }
        if stop.is_asked() {
            return Ok(Turned::Stopped);
        }
        if planned[turn.step].is_none() {
            let found = children::planned(load)?;
            planned[turn.step] = Some(found);
            if !fits(rest, Nanos::from(begun.elapsed()), real_time(found)) {
                return Ok(Turned::OutOfTime);
            }
        }
        let mark = ExperimentMark {
            experiment: self.asked.name.clone(),
            load: step.load.clone(),
            step: step.number,
            round: turn.round,
        };
        let mut children = Children::new();
        children.start(0, load, mark.tags(), false)?;
        while !children.are_gone() {
            children.listen();
            if stop.is_asked() {
                children.stop();
            }
            display.show(&children.all);
        }
        if stop.is_asked() {
            return Ok(Turned::Stopped);
        }
        if let Some((_, failure)) = children.failure() {
            return Err(failure);
        }
        let ended = children.all.iter().find_map(|child| match &child.state {
            State::Ended { run, .. } => Some(run.clone()),
            _ => None,
        });
        let Some(run) = ended else { return Ok(Turned::Stopped) };
        self.script(step.after.as_deref(), Some(&run)).map_err(|failure| {
            let by_hand = format!(
                "its run is whole and is not measured again: call it by hand with `{RUN_VARIABLE}={}`",
                run.display()
            );
            failure.with_hint(by_hand)
        })?;
        Ok(Turned::Whole)
    }

    /// A script, if there is one; `run` is the run that it follows.
    fn script(&self, script: Option<&str>, run: Option<&PathBuf>) -> Result<(), Failure> {
        let Some(script) = script.filter(|script| !script.trim().is_empty()) else { return Ok(()) };
        let mut variables: Vec<(&str, &OsStr)> = vec![(RUNS_VARIABLE, self.folder.as_os_str())];
        variables.extend(run.map(|run| (RUN_VARIABLE, run.as_os_str())));
        surroundings::script(script.trim(), &variables, self.interrupt)
    }
}

/// How much of the user's time a load takes.
fn real_time(planned: Planned) -> Nanos {
    planned.time.filter(|_| !planned.is_simulated).unwrap_or(Nanos(0))
}

/// Load and pauses of the turns that come after this one.
fn later(asked: &Asked, done: &BTreeSet<Turn>, planned: &[Option<Planned>], now: Turn) -> Nanos {
    let plan = &asked.plan;
    let after = plan.turns.iter().skip_while(|turn| **turn != now).skip(1).filter(|turn| !done.contains(*turn));
    let time = |turn: &Turn| {
        let load = planned[turn.step].map_or(Nanos(0), real_time);
        load.0.saturating_add(plan.steps[turn.step].pause.0)
    };
    Nanos(after.map(time).fold(0, u64::saturating_add))
}

fn words(failure: &Failure) -> String {
    match failure {
        Failure::Reported(reported) => reported.message.clone(),
        Failure::PipeClosed => String::new(),
    }
}

/// Says what went wrong with one step; the others go on.
fn report_failure(failure: Failure) {
    if let Failure::Reported(reported) = failure {
        say::error(&reported.message);
        reported.hint.iter().for_each(say::hint);
    }
}

/// How far everything is, in one line.
struct Display {
    watch: Watch,
    all: usize,
    /// What the turn is called, how long its load is on, and how much comes after it.
    now: (String, Nanos, Nanos),
    last_line: Instant,
}

impl Display {
    fn new(all: usize, verbosity: Verbosity) -> Self {
        let now = (String::new(), Nanos(0), Nanos(0));
        Self { watch: Watch::new(verbosity), all, now, last_line: Instant::now() }
    }

    fn line(&self, line: &str) {
        self.watch.show(|_| line.to_owned(), || vec![line.to_owned()]);
    }

    fn begin(&mut self, number: usize, turn: Turn, step: &Step, planned: Option<Planned>, later: Nanos) {
        let round =
            if turn.round == 1 && step.repeats == 1 { String::new() } else { format!(", round {}", turn.round) };
        let place = format!("run {number} of {}{round}", self.all);
        let time = planned.map_or(Nanos(0), real_time);
        let takes = if time > Nanos(0) { format!(", {time}") } else { String::new() };
        self.line(&format!("{place}: {}{takes}", step.name()));
        self.now = (format!("{place}, {}: ", step.name()), time, later);
        self.last_line = Instant::now();
    }

    fn pause(&mut self, time: Nanos) {
        let words = format!("{}a pause, {}", self.now.0, left(time));
        self.watch.show(|width| fitting(words, width), Vec::new);
    }

    fn show(&mut self, children: &[Child]) {
        let Some(child) = children.last() else { return };
        let (name, time, later) = &self.now;
        let (over, words) = match &child.state {
            State::Preparing | State::Ready => (0, "is made ready".to_owned()),
            State::Loading { over_ns, words } => (*over_ns, words.clone()),
            State::Ended { .. } | State::Failed => return,
        };
        let is_time = self.last_line.elapsed() >= LINE_EVERY;
        if is_time {
            self.last_line = Instant::now();
        }
        let rest = left(Nanos(time.0.saturating_sub(over).saturating_add(later.0)));
        let line = format!("{name}{words}; {rest}");
        self.watch.show(|width| fitting(line.clone(), width), || if is_time { vec![line.clone()] } else { Vec::new() });
    }
}

/// As much of a line as there is room for.
fn fitting(line: String, width: usize) -> String {
    line.chars().take(width).collect()
}
