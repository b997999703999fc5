//! A run as it is made: written down from before its first step to its end, whatever ends it, and reported.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::arguments::Format;
use super::exit::{Exit, Failure};
use super::fleet::{Company, Joined, StepStart};
use super::live::RunProgress;
use super::runner::{Landing, Outline};
use super::supervisor::{Kept, Said, Supervisor};
use super::{Interrupt, own_reports, report, say};
use crate::fleet::{FleetError, Started};
use crate::plan::RunHead;
use ::measure::os::PromptThread;
use ::measure::{Clock, environment, wall_at_monotonic};
use ::report::Detail;
use ::report::document::RunReport;
use analysis::{Figures, Finding, LatencyTarget, LimitAnswer, VerdictOutcome};
use load::{Begin, Compiled, StepPlan, Stop, Surroundings, Waiting, run_step};
use model::config::without_secrets;
use model::record::store::{self, RunWriter, StoreError};
use model::record::{
    self, Ending, FORMAT, Outcome, Parameters, PulseTest, ReliefTest, Run, SizeTest, Step, Timestamp, Tool, Window,
    Workload,
};
use model::units::Nanos;
use push::Push;
use targets::{TargetError, TargetFor};

/// What to do about a part that was not ready in time.
const LATE_HINT: &str =
    "give parts more time before the start, and between steps: a later `--start-at`, a longer `--step-gap`";

/// How long the end of a run waits for monitoring, and how long where its user has wanted an end.
const PATIENT: Duration = Duration::from_secs(10);
const HURRIED: Duration = Duration::from_secs(2);

/// A run that is being made.
pub(super) struct Recording {
    run: Run,
    writer: RunWriter,
    clock: Clock,
    stop: Stop,
    /// How long after its window a step waits for what is under way.
    drain: Nanos,
    progress: RunProgress,
    devices: Vec<String>,
    run_started_ns: u64,
    fleet: Option<Joined>,
    /// The other parts, where they meet.
    company: Option<Company>,
    /// Who is told how it goes.
    push: Option<Push>,
    /// The first error that ended the run, or that keeps it from being kept.
    failure: Option<Failure>,
}

/// A run that has ended.
pub(super) struct Recorded {
    pub(super) run: Run,
    pub(super) directory: PathBuf,
    pub(super) failure: Option<Failure>,
}

/// Whether the run goes on after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextStep {
    /// The next step can begin.
    Go,
    /// The user or an error ended the run.
    Stop,
}

/// What came of a pulse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PulseEnd {
    /// So many requests ended in its window.
    Whole {
        /// That many.
        requests: u64,
    },
    /// This machine held its load up, so that it shows nothing.
    HeldUp,
    /// The user wants an end.
    Stopped,
}

/// A pulse whose threads waited for a processor for more than this part of its window shows nothing.
const MOST_HELD_UP: u64 = 5;

/// What a step waits for after its window, and how its user ends that.
fn waiting_words(Waiting { since, requests }: Waiting, drain: Nanos, is_ending: bool) -> String {
    let plural = if requests == 1 { "" } else { "s" };
    let is_drained = since >= drain;
    let what = match requests {
        0 => format!("the target to answer since {since}"),
        _ if is_drained || is_ending => format!("{requests} request{plural} since {since}: the kernel still has them"),
        _ => format!("{requests} request{plural} since {since}, {drain} at most (--drain)"),
    };
    let end = match (is_ending, requests) {
        (true, _) => "Ctrl-C ends the program at once",
        (false, 1..) if !is_drained => "Ctrl-C ends the wait",
        (false, _) => "Ctrl-C twice ends the program",
    };
    format!("waiting for {what}; {end}")
}

impl Recording {
    /// Writes down what is about to be done, before any load.
    pub(super) fn begin(
        outline: Outline<'_>,
        landing: Landing,
        interrupt: &Interrupt,
        progress: RunProgress,
    ) -> Result<Self, Failure> {
        let (store, clock, fleet) = (outline.keeping.runs.store(), landing.clock, outline.joined.clone());
        let drain = outline.keeping.drain.0;
        fleet.iter().try_for_each(|fleet| fleet.check(clock))?;
        let push = outline.keeping.push.clone();
        let devices = environment::devices_below_all(&landing.paths);
        let run_started_ns = clock.now_ns();
        fleet.iter().flat_map(Joined::notes).for_each(|note| progress.note(&note));
        let mut run = document(outline, landing);
        // Parts on hosts that share the directory begin in the same second.
        let part = run.part.as_ref().map(|part| format!("{}-part{}", run.workload(), part.number));
        run.id = store.new_id(run.started_at, part.as_deref().unwrap_or(run.workload().name()));
        run.tags.extend(Supervisor::of_this_process().into_iter().flat_map(|supervisor| supervisor.tags().clone()));
        let stop = interrupt.stop().clone();
        let met = fleet.as_ref().map_or(Ok(None), |fleet| fleet.meet(&stop));
        let company = met.inspect_err(|_| progress.end())?;
        let writer = match RunWriter::create(&store, &run) {
            Ok(writer) => writer,
            Err(error) => {
                progress.end();
                return Err(error.into());
            }
        };
        let push = push.begin(&run, clock.is_simulated()).inspect_err(|_| progress.end())?;
        Ok(Self {
            run,
            writer,
            clock,
            stop,
            drain,
            progress,
            devices,
            run_started_ns,
            fleet,
            company,
            push,
            failure: None,
        })
    }

    /// Writes down which production the load is made like.
    pub(super) fn be_like(&mut self, like: record::Like) {
        self.run.like = Some(like);
    }

    /// Removes what was written: nothing was measured.
    pub(super) fn forget(self) {
        self.progress.end();
        // Whoever is reported why the run did not begin need not hear that an empty directory stays.
        let _ = store::remove(self.writer.directory());
    }

    /// Carries out one step, unless the run has been ended.
    pub(super) fn step<S: Compiled>(&mut self, target: &dyn TargetFor<S::Operation>, plan: &StepPlan<S>) -> NextStep {
        if self.stop.is_asked() || self.run.outcome != Outcome::Unfinished {
            return NextStep::Stop;
        }
        self.progress.begin_step(plan);
        // A killed run is read back from its intervals, which need a step to belong to.
        self.run.steps.push(begun(plan, &self.run.parameters));
        let mut unwritten = self.writer.update(&self.run).err();
        let (writer, progress, push) = (&mut self.writer, &self.progress, &self.push);
        let mut on_interval = |interval: &record::Interval| {
            // Kept before it is reported: what the user has seen is there even if the next instant kills us.
            if let Err(error) = writer.append(interval) {
                unwritten.get_or_insert(error);
            }
            progress.interval(interval);
            if let Some(push) = push {
                push.interval(interval);
                push.troubles().iter().for_each(|trouble| progress.note(trouble));
            }
            Supervisor::of_this_process().into_iter().for_each(|supervisor| supervisor.second(interval));
        };
        let (clock, stop, mut late) = (self.clock, &self.stop, None);
        let (fleet, mut too_late) = (self.fleet.as_ref(), None);
        let (company, mut met) = (self.company.as_ref(), None);
        let mut when_ready = || {
            if let Some(company) = company {
                let begin = company.ready(plan.index, &plan.label, stop);
                let begin = met.insert(begin);
                return match begin {
                    Ok(Some(started)) => Begin::At(clock.instant_of(started.at_monotonic_ns)),
                    Ok(None) | Err(_) => Begin::NotAtAll,
                };
            }
            let waits = |supervisor: &&'static Supervisor| supervisor.has_company();
            let Some(supervisor) = Supervisor::of_this_process().filter(waits) else {
                return match fleet.and_then(|fleet| fleet.wait_for_start(plan.index, clock, stop)) {
                    None => Begin::AtOnce,
                    Some(StepStart::Begins(begin)) => begin,
                    Some(StepStart::TooLate(why)) => {
                        too_late = Some(why);
                        Begin::NotAtAll
                    }
                };
            };
            // What has gone by then is found as soon as load runs.
            let (begin, how_late) = supervisor.wait_for_start(clock, stop, &mut || drop(target.check_health()));
            late = how_late;
            begin
        };
        let drain = self.drain;
        let on_wait = |waiting: Waiting| progress.note(&waiting_words(waiting, drain, stop.is_asked()));
        let surroundings = Surroundings {
            run_started_ns: self.run_started_ns,
            devices: &self.devices,
            clock,
            stop,
            drain,
            on_wait: &on_wait,
        };
        let outcome = S::run_step(target, plan, surroundings, &mut when_ready, &mut on_interval);
        self.run.steps.pop();
        let mut step = Step { parameters: plan.parameters(&self.run.parameters), ..outcome.step };
        if let Some(why) = &too_late {
            (step.outcome, step.window.ending) = (Outcome::Failed { error: why.clone() }, Ending::Failure);
        }
        let (notes, unkept) = own_reports::keep(outcome.own_reports, &mut step, &self.writer);
        unwritten = unwritten.or(unkept);
        self.run.steps.push(step);
        notes.into_iter().for_each(|note| self.note(note));
        self.push.iter().for_each(|push| push.step(&self.run));
        let parted = self.note_meeting(met);
        if let Some(late_ns) = outcome.late_ns {
            self.note_start(&plan.label, late_ns);
        }
        if let Some(late) = late {
            self.note(format!("the load began {} ms after those beside it", late.as_millis().max(1)));
        }
        if let Err(error) = self.writer.update(&self.run) {
            unwritten.get_or_insert(error);
        }
        if let Some(error) = unwritten {
            self.failure.get_or_insert(not_kept(error));
        }
        if let Some(why) = too_late {
            self.fail(Failure::new(why).with_hint(LATE_HINT.to_owned()));
        }
        if let Some(error) = parted {
            self.part_with(error);
        }
        if let Some(error) = outcome.failure {
            self.fail_unless_stopped(error);
        }
        let cut_short = self.stop.is_asked() || self.run.outcome != Outcome::Unfinished;
        if cut_short { NextStep::Stop } else { NextStep::Go }
    }

    /// Puts load on that no figure is made of, unless the run has been ended.
    pub(super) fn unmeasured<S: Compiled>(
        &mut self,
        target: &dyn TargetFor<S::Operation>,
        plan: &StepPlan<S>,
    ) -> NextStep {
        self.tried(target, plan).0
    }

    /// The same, with what was seen of it, which is not kept.
    pub(super) fn tried<S: Compiled>(
        &mut self,
        target: &dyn TargetFor<S::Operation>,
        plan: &StepPlan<S>,
    ) -> (NextStep, Option<Step>) {
        if self.stop.is_asked() || self.run.outcome != Outcome::Unfinished {
            return (NextStep::Stop, None);
        }
        let time = plan.time();
        self.progress.line(&format!("{}: load that is not measured, for {time}", plan.label));
        let outcome = run_step(target, plan, self.surroundings(), &mut |_| {});
        if let Some(error) = outcome.failure {
            self.fail_unless_stopped(error);
        }
        let cut_short = self.stop.is_asked() || self.run.outcome != Outcome::Unfinished;
        (if cut_short { NextStep::Stop } else { NextStep::Go }, Some(outcome.step))
    }

    /// Puts load on after `pause` without any, for the window of `plan`, by threads that wait for no processor.
    ///
    /// # Errors
    /// What the target reported, which ends no run: its steps are whole.
    pub(super) fn pulse<S: Compiled>(
        &self,
        target: &dyn TargetFor<S::Operation>,
        plan: &StepPlan<S>,
        pause: Nanos,
    ) -> Result<PulseEnd, TargetError> {
        // The threads of the load are like the one that makes them: of a window so short nothing is left if they wait for a processor.
        let _prompt = PromptThread::begin();
        let clock = self.clock;
        // Everything is open by then, and nothing is under way: each step waits for what it has sent.
        let mut when_ready = || match pause {
            Nanos(0) => Begin::AtOnce,
            Nanos(pause_ns) => Begin::At(clock.now_ns() + pause_ns),
        };
        let outcome = S::run_step(target, plan, self.surroundings(), &mut when_ready, &mut |_| {});
        let Step { window, counters, generator, .. } = outcome.step;
        let stopped_ns = generator.and_then(|generator| generator.stopped_ns);
        let held_up_ns = outcome.late_ns.unwrap_or(0).max(stopped_ns.unwrap_or(0));
        match (outcome.failure, counters.operations) {
            _ if self.stop.is_asked() => Ok(PulseEnd::Stopped),
            (Some(error), _) => Err(error),
            (None, Some(requests)) => {
                // With many threads load begins before the window, which is then no first moment.
                let is_as_planned = window.warmup_ns == plan.warmup.0 && window.duration_ns == plan.duration.0;
                let is_whole = is_as_planned && held_up_ns <= plan.duration.0 / MOST_HELD_UP;
                Ok(if is_whole { PulseEnd::Whole { requests } } else { PulseEnd::HeldUp })
            }
            (None, None) => Ok(PulseEnd::HeldUp),
        }
    }

    /// Writes down what pulses of the load of a step came to; `step` is its position.
    pub(super) fn keep_pulses(&mut self, step: usize, test: PulseTest) {
        if let Some(step) = self.run.steps.get_mut(step) {
            step.pulse_test = Some(test);
        }
        self.write_down();
    }

    /// The same of what came of relieving its cause.
    pub(super) fn keep_relief_test(&mut self, step: usize, test: ReliefTest) {
        if let Some(step) = self.run.steps.get_mut(step) {
            step.relief_test = Some(test);
        }
        self.write_down();
    }

    /// The same of requests of another size.
    pub(super) fn keep_size_test(&mut self, step: usize, test: SizeTest) {
        if let Some(step) = self.run.steps.get_mut(step) {
            step.size_test = Some(test);
        }
        self.write_down();
    }

    /// Writes the run down as it is by now.
    fn write_down(&mut self) {
        if let Err(error) = self.writer.update(&self.run) {
            self.failure.get_or_insert(not_kept(error));
        }
    }

    /// Whether no other process puts load on at the same time, as far as this one was told.
    pub(super) fn is_alone(&self) -> bool {
        self.run.part.is_none() && !Supervisor::of_this_process().is_some_and(Supervisor::has_company)
    }

    /// What every step has around it.
    fn surroundings(&self) -> Surroundings<'_> {
        let Self { run_started_ns, devices, clock, stop, drain, .. } = self;
        Surroundings { run_started_ns: *run_started_ns, devices, drain: *drain, ..Surroundings::new(*clock, stop) }
    }

    /// There is one more step than was thought.
    pub(super) fn one_more<S>(&mut self, plan: &StepPlan<S>) {
        self.progress.one_more(plan);
    }

    /// Whether a step may be measured again by what was seen of it here.
    pub(super) fn may_repeat(&self) -> bool {
        self.fleet.as_ref().is_none_or(Joined::may_repeat)
    }

    /// Whether nothing has ended the run.
    pub(super) fn is_going_well(&self) -> bool {
        self.run.outcome == Outcome::Unfinished
    }

    /// The run so far.
    pub(super) fn run(&self) -> &Run {
        &self.run
    }

    /// The steps so far.
    pub(super) fn steps(&self) -> &[Step] {
        &self.run.steps
    }

    /// The progress display.
    pub(super) fn progress(&self) -> &RunProgress {
        &self.progress
    }

    /// Tells the user something and writes it down.
    pub(super) fn note(&mut self, note: String) {
        self.progress.note(&note);
        self.run.notes.push(note);
    }

    /// Keeps a text beside the run.
    pub(super) fn keep(&mut self, name: &str, text: &str) {
        if let Err(error) = self.writer.keep_text(name, text) {
            self.failure.get_or_insert(not_kept(error));
        }
    }

    /// Whether an error has ended the run.
    pub(super) fn has_failed(&self) -> bool {
        matches!(self.run.outcome, Outcome::Failed { .. })
    }

    /// Writes down how far a load began from the start that was agreed on: that of the first step for the run.
    fn note_start(&mut self, label: &str, late_ns: u64) {
        let note = self.fleet.as_ref().and_then(|fleet| fleet.note_on_start(label, late_ns));
        if let Some(part) = self.run.part.as_mut().filter(|part| part.start_at_ns.is_some()) {
            part.start_error_ns.get_or_insert(i64::try_from(late_ns).unwrap_or(i64::MAX));
        }
        note.into_iter().for_each(|note| self.note(note));
    }

    /// Writes down what the parts agreed on: of the first step for the run. Returns why they do not go on together.
    fn note_meeting(&mut self, met: Option<Result<Option<Started>, FleetError>>) -> Option<FleetError> {
        for note in self.company.iter().flat_map(Company::take_notes).collect::<Vec<_>>() {
            self.note(note);
        }
        let started = match met? {
            Ok(started) => started?,
            Err(error) => return Some(error),
        };
        let part = self.run.part.as_mut()?;
        let clock = part.clock.get_or_insert_with(|| started.offset.recorded());
        clock.bound_ns = clock.bound_ns.max(started.offset.bound_ns);
        part.start_at_ns.get_or_insert_with(|| wall_at_monotonic(started.at_monotonic_ns));
        None
    }

    /// The parts do not go on together: what was measured is kept, and without anything it is an error.
    fn part_with(&mut self, error: FleetError) {
        if self.run.steps.iter().any(|step| step.window.duration_ns > 0) {
            self.stop.ask();
        } else {
            self.fail(error);
        }
    }

    /// What came of a step over all parts, where they meet; else what came of it here.
    pub(super) fn judged(&mut self, index: u32, own: Option<VerdictOutcome>) -> Option<VerdictOutcome> {
        let Some(company) = &self.company else { return own };
        match company.judged(index, own, &self.stop) {
            Ok(worst) => worst,
            Err(error) => {
                self.part_with(error);
                None
            }
        }
    }

    /// Ends the run with an error. Only the first one counts.
    pub(super) fn fail(&mut self, error: impl Into<Failure>) {
        let failure = error.into();
        if self.run.outcome == Outcome::Unfinished {
            if let Failure::Reported(reported) = &failure {
                self.run.outcome = Outcome::Failed { error: reported.message.clone() };
            }
            self.failure = Some(failure);
        }
    }

    /// The same, but sessions whose answer was not waited for because the user wanted an end are no error.
    fn fail_unless_stopped(&mut self, error: TargetError) {
        if matches!(error, TargetError::Silent { .. }) && self.stop.is_asked() {
            self.note(format!("{error}; a server may still work on their requests"));
        } else {
            self.fail(error);
        }
    }

    /// The user has ended work that belongs to the run after its last step.
    pub(super) fn cut_short(&mut self) {
        if self.run.outcome == Outcome::Unfinished {
            self.run.outcome = Outcome::Interrupted;
        }
    }

    /// Writes down how it ended. `steps_wanted` is how many a whole run has.
    pub(super) fn end(mut self, steps_wanted: usize) -> Recorded {
        self.progress.end();
        let Self { mut run, mut writer, company, push, .. } = self;
        run.ended_at = Some(now());
        if run.outcome == Outcome::Unfinished {
            let cut_short =
                run.steps.len() < steps_wanted || run.steps.iter().any(|step| step.outcome == Outcome::Interrupted);
            run.outcome = if cut_short { Outcome::Interrupted } else { Outcome::Completed };
        }
        if company.is_some() || push.is_some() {
            // A launcher that ends all parts gives them little time: what was measured is kept before others are waited for.
            if let Err(error) = writer.update(&run) {
                self.failure.get_or_insert(not_kept(error));
            }
        }
        company.into_iter().for_each(|company| part_from(company, &mut run));
        let patience = if self.stop.is_asked() { HURRIED } else { PATIENT };
        let waits = || say::note("waiting for monitoring to take what is left");
        let undelivered = push.map_or_else(Vec::new, |push| push.end(&run, patience, &waits));
        undelivered.iter().for_each(say::note);
        run.notes.extend(undelivered);
        let directory = writer.directory().to_owned();
        if let Err(error) = writer.finish(&run) {
            self.failure.get_or_insert(not_kept(error));
        }
        Recorded { run, directory, failure: self.failure }
    }
}

impl Recorded {
    /// The run as it was kept.
    pub(super) fn run(&self) -> &Run {
        &self.run
    }

    /// The run and where it is kept, for who reports it together with others.
    pub(super) fn kept(self) -> Result<(Run, PathBuf), Failure> {
        match self.failure {
            Some(failure) => Err(failure),
            None => Ok((self.run, self.directory)),
        }
    }

    /// Tells the run and how it ended.
    pub(super) fn report(self, outline: &Outline<'_>, interrupt: &Interrupt) -> Result<Exit, Failure> {
        self.report_with(&outline.limits, interrupt, |run, findings| match outline.keeping.format.format() {
            Format::Json => say::json(&RunReport::new(run, findings)),
            Format::Text => report::write_text(run, findings, Detail::Brief),
        })
    }

    /// The same with a report that `write` writes.
    pub(super) fn report_with(
        self,
        limits: &[LatencyTarget],
        interrupt: &Interrupt,
        write: impl FnOnce(&Run, &[Finding]) -> Result<(), Failure>,
    ) -> Result<Exit, Failure> {
        let Self { run, directory, failure } = self;
        let findings = report::findings(&run, limits);
        if let Some(supervisor) = Supervisor::of_this_process() {
            return match failure {
                Some(failure) => Err(failure),
                None => {
                    let limits = match report::verdict(&findings).map(|verdict| verdict.answer) {
                        None | Some(LimitAnswer::Yes) => Kept::Yes,
                        Some(LimitAnswer::No) => Kept::No,
                        Some(_) => Kept::Unknown,
                    };
                    supervisor.say(&Said::Ended { run: directory, limits });
                    Ok(Exit::Done)
                }
            };
        }
        let written = write(&run, &findings);
        // Somebody may have removed it meanwhile; the failure to come says so.
        if let Some(failure) = failure {
            return Err(failure);
        }
        if directory.exists() {
            let shown = directory.display();
            say::line(format_args!("\nKept in `{shown}`. More: `plimsoll report {shown} --full`"));
        }
        match written {
            // Nobody reads it, but the run went as it went.
            Ok(()) | Err(Failure::PipeClosed) => {}
            Err(failure) => return Err(failure),
        }
        // A launcher may end all parts when one says that a limit was not kept: who merges them judges.
        let has_data = run.steps.iter().any(|step| step.window.duration_ns > 0);
        let is_recorded_part = run.part.is_some() && has_data;
        if run.outcome == Outcome::Interrupted {
            say::note("the run was cut short; what was measured is kept");
            let exit = interrupt.exit().unwrap_or(Exit::CouldNot);
            return Ok(if is_recorded_part { Exit::Done } else { exit });
        }
        if let Some(verdict) = report::verdict(&findings).filter(|verdict| verdict.answer != LimitAnswer::Yes) {
            let limits: Vec<String> = verdict
                .limits
                .iter()
                .filter(|limit| limit.answer != LimitAnswer::Yes)
                .map(|limit| limit.target.to_string())
                .collect();
            let what =
                if verdict.answer == LimitAnswer::No { "the limit was not kept" } else { "no verdict on the limit" };
            say::note(format_args!("{what}: {}", limits.join("; ")));
        }
        // Do not use figures of requests that failed, but for the share that `--errors` allows.
        let may_fail = limits.iter().filter_map(|limit| limit.errors).reduce(f64::min).unwrap_or(0.0);
        let fails = |step: &Step| Figures(step).failed_share().is_some_and(|share| share > may_fail);
        let have_failed = matches!(run.workload(), Workload::Io | Workload::Map) && run.steps.iter().any(fails);
        Ok(match report::exit_for_limits(&findings) {
            _ if is_recorded_part => Exit::Done,
            Exit::Done if have_failed => Exit::NotMet,
            exit => exit,
        })
    }
}

/// Leaves the other parts, and writes down what is known of them.
fn part_from(company: Company, run: &mut Run) {
    run.notes.extend(company.take_notes());
    let stopped = company.stopped();
    let early = match &run.outcome {
        _ if stopped.is_some() => None,
        Outcome::Completed => None,
        Outcome::Failed { error } => Some(error.clone()),
        Outcome::Interrupted | Outcome::Unfinished => Some("it was interrupted".to_owned()),
    };
    run.notes.extend(stopped.map(|error| error.to_string()));
    let (after_ns, away) = company.leave(early);
    if let Some(clock) = run.part.as_mut().and_then(|part| part.clock.as_mut()) {
        clock.after_ns = after_ns;
    }
    run.notes.extend(away.into_iter().map(|who| format!("turned away at the meeting point: {who}")));
}

fn document(outline: Outline<'_>, landing: Landing) -> Run {
    let Outline { head, joined, check, like, .. } = outline;
    let Landing { target, paths, said, notes, .. } = landing;
    let RunHead { name, tags, seed, load, parameters } = head;
    let of_fleet = joined.iter().flat_map(Joined::notes);
    let notes = said.into_iter().chain(notes).chain(of_fleet).collect();
    Run {
        format: FORMAT,
        id: String::new(),
        name,
        tool: Tool { name: Tool::OWN.to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
        load,
        check,
        command: command_line(),
        started_at: now(),
        ended_at: None,
        outcome: Outcome::Unfinished,
        tags,
        seed: Some(seed),
        parameters,
        target,
        environment: environment::capture(paths.first().map(PathBuf::as_path)),
        notes,
        imported: None,
        part: joined.as_ref().and_then(Joined::part),
        like,
        merged: None,
        parts: Vec::new(),
        steps: Vec::new(),
    }
}

/// A step whose load is about to start.
fn begun<S>(plan: &StepPlan<S>, common: &Parameters) -> Step {
    Step {
        load: plan.load.clone(),
        level: plan.level.clone(),
        like: plan.like.clone(),
        parameters: plan.parameters(common),
        window: Window { offset_ns: 0, warmup_ns: plan.warmup.0, duration_ns: 0, ending: Ending::Failure },
        ..Step::new(plan.index, &plan.label)
    }
}

fn not_kept(error: StoreError) -> Failure {
    Failure::new(format_args!("the run could not be kept whole: {error}")).with_hint(error.hint())
}

fn now() -> Timestamp {
    Timestamp(jiff::Timestamp::now())
}

/// The command line, secrets removed, with the program's bare name.
fn command_line() -> Vec<String> {
    let mut words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let program = words.next().unwrap_or_default();
    let name = Path::new(&program).file_name().map(|name| name.to_string_lossy().into_owned());
    name.into_iter().chain(words.map(|word| without_secrets(&word))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_says_for_what_and_how_to_end_it() {
        let words = |requests, seconds, is_ending| {
            waiting_words(Waiting { since: Nanos::seconds(seconds), requests }, Nanos::seconds(30), is_ending)
        };
        assert_eq!(
            words(4, 5, false),
            "waiting for 4 requests since 5.00 s, 30.0 s at most (--drain); Ctrl-C ends the wait"
        );
        let kept = "waiting for 1 request since 35.0 s: the kernel still has them; Ctrl-C twice ends the program";
        assert_eq!(words(1, 35, false), kept);
        assert_eq!(
            words(0, 10, true),
            "waiting for the target to answer since 10.0 s; Ctrl-C ends the program at once"
        );
    }
}
