//! A run from its plan to its report: what `run` and `sweep` have in common.

use std::path::{Path, PathBuf};

use super::load::LoadArgs;
use super::plan_text;
use super::script::{Moment, Script};
use crate::cli::arguments::Reader;
use crate::cli::exit::{Exit, Failure};
use crate::cli::interrupt::Interrupt;
use crate::cli::live::RunProgress;
use crate::cli::{report, say};
use crate::config::{TargetAddress, without_secrets};
use crate::load::{StepPlan, run_step};
use crate::measure::{Clock, environment};
use crate::plan::slob::{Facts, Request, RunPlan, plan};
use crate::record::store::{self, RunWriter, StoreError};
use crate::record::{self, Counters, Ending, Environment, FORMAT, Outcome, Run, Step, Timestamp, Tool, Window};
use crate::report::Detail;
use crate::target::embedded::{Descriptor, Engine, EngineOptions};
use crate::target::simulated::{Simulated, SimulatedOptions};
use crate::target::{Target, TargetError};
use crate::units::Bytes;

/// Plans and checks everything, carries it out, keeps it and tells it.
pub(super) fn carry_out(arguments: &LoadArgs, request: &Request) -> Result<Exit, Failure> {
    let address = arguments.target.address();
    let facts = match address {
        TargetAddress::Directory(path) => Facts::of(&Descriptor::load(path)?, available_memory()),
        TargetAddress::Simulated(_) => Facts::as_asked(request)?,
    };
    let plan = plan(request, &facts)?;
    let script = plan.script.as_ref().map(|(path, origin)| Script::check(path, origin)).transpose()?;
    plan.notes.iter().for_each(say::note);
    if arguments.dry_run {
        let mut out = say::output();
        plan_text::write(&mut out, &plan, &address.to_string())?;
        std::io::Write::flush(&mut out)?;
        return Ok(Exit::Done);
    }
    let interrupt = Interrupt::listen()?;
    let clock = Clock::start();
    let progress = RunProgress::new(plan.steps.len(), plan.duration(), arguments.progress.loudness());
    let (ground, opening_notes) = Ground::open(address, arguments, &plan, clock, &progress)?;
    let mut recorder = Recorder { arguments, plan: &plan, script, interrupt, clock, progress, failure: None };
    let (run, directory) = recorder.record(ground, opening_notes)?;
    recorder.tell(&run, &directory)
}

/// Memory that can be taken without driving somebody out of it.
fn available_memory() -> Option<Bytes> {
    let Environment { memory_available_bytes, memory_limit_bytes, .. } = environment::capture(None);
    memory_available_bytes.into_iter().chain(memory_limit_bytes).min().map(Bytes)
}

/// The open target.
enum Ground<'a> {
    Embedded { engine: Box<Engine>, path: &'a Path },
    Simulated(Simulated),
}

impl<'a> Ground<'a> {
    /// Opens the target; also what the user should know about that.
    fn open(
        address: &'a TargetAddress,
        arguments: &LoadArgs,
        plan: &RunPlan,
        clock: Clock,
        progress: &RunProgress,
    ) -> Result<(Self, Vec<String>), Failure> {
        match address {
            TargetAddress::Simulated(pairs) => {
                let simulated = Simulated::open(SimulatedOptions::from_pairs(pairs)?, clock);
                let notes = simulated.notes();
                Ok((Self::Simulated(simulated), notes))
            }
            TargetAddress::Directory(path) => {
                let options = EngineOptions {
                    cache: plan.cache,
                    writers: None,
                    most_sessions: plan.most_sessions(),
                    io_engine: arguments.io.engine(),
                };
                let opened = Engine::open(path, &options, clock, &|redo_bytes| progress.recovering(redo_bytes));
                let engine = opened.inspect_err(|_| progress.end())?;
                let notes = engine.notes();
                Ok((Self::Embedded { engine: Box::new(engine), path }, notes))
            }
        }
    }

    fn target(&self) -> &dyn Target {
        match self {
            Self::Embedded { engine, .. } => engine.as_ref(),
            Self::Simulated(simulated) => simulated,
        }
    }

    fn path(&self) -> Option<&Path> {
        match self {
            Self::Embedded { path, .. } => Some(path),
            Self::Simulated(_) => None,
        }
    }

    fn close(self) -> Result<(), TargetError> {
        match self {
            Self::Embedded { engine, .. } => engine.close(),
            Self::Simulated(_) => Ok(()),
        }
    }
}

/// Carries out a plan and writes down what happens.
struct Recorder<'a> {
    arguments: &'a LoadArgs,
    plan: &'a RunPlan,
    script: Option<Script>,
    interrupt: Interrupt,
    clock: Clock,
    progress: RunProgress,
    /// The first error that ended the run, or that keeps it from being kept.
    failure: Option<Failure>,
}

impl Recorder<'_> {
    /// Records the run and returns it with the directory in which it is kept. From here on the target is always closed, so
    /// that nothing has to be recovered.
    fn record(&mut self, ground: Ground<'_>, opening_notes: Vec<String>) -> Result<(Run, PathBuf), Failure> {
        let begun = self.begin(&ground, opening_notes);
        let (mut run, mut writer) = match begun {
            Ok(begun) => begun,
            Err(failure) => {
                self.progress.end();
                // The first failure is the one to tell.
                let _ = ground.close();
                return Err(failure);
            }
        };
        self.steps(&ground, &mut run, &mut writer);
        self.progress.end();
        self.call(Moment::Post, &mut run);
        if let Err(error) = ground.close() {
            self.fail(&mut run, error);
        }
        self.call(Moment::End, &mut run);
        run.ended_at = Some(now());
        if run.outcome == Outcome::Unfinished {
            let cut_short = run.steps.len() < self.plan.steps.len()
                || run.steps.iter().any(|step| step.outcome == Outcome::Interrupted);
            run.outcome = if cut_short { Outcome::Interrupted } else { Outcome::Completed };
        }
        let directory = writer.directory().to_owned();
        if let Err(error) = writer.finish(&run) {
            self.failure.get_or_insert(not_kept(error));
        }
        Ok((run, directory))
    }

    /// Writes down what is about to be done, before any load.
    fn begin(&mut self, ground: &Ground<'_>, opening_notes: Vec<String>) -> Result<(Run, RunWriter), Failure> {
        opening_notes.iter().for_each(|note| self.progress.note(note));
        let store = self.arguments.runs.store();
        let mut run = self.document(ground.target().describe(), ground.path());
        run.id = store.new_id(run.started_at, &run.workload);
        run.notes.extend(opening_notes);
        let writer = RunWriter::create(&store, &run)?;
        if let Some(Err(why)) = self.script.as_ref().map(|script| script.call(Moment::Pre)) {
            // Nothing was measured, so there is nothing to keep.
            let _ = store::remove(writer.directory());
            return Err(Failure::new(why).with_hint("nothing was run; see what the script printed".to_owned()));
        }
        Ok((run, writer))
    }

    fn document(&self, target: record::Target, path: Option<&Path>) -> Run {
        Run {
            format: FORMAT,
            id: String::new(),
            name: self.plan.name.clone(),
            tool: Tool { name: "plimsoll".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
            workload: "slob".to_owned(),
            command: command_line(),
            started_at: now(),
            ended_at: None,
            outcome: Outcome::Unfinished,
            tags: self.plan.tags.clone(),
            seed: self.plan.seed,
            parameters: self.plan.parameters.clone(),
            target,
            environment: environment::capture(path),
            notes: self.plan.notes.clone(),
            steps: Vec::new(),
        }
    }

    fn steps(&mut self, ground: &Ground<'_>, run: &mut Run, writer: &mut RunWriter) {
        let devices = ground.path().map(environment::devices_below).unwrap_or_default();
        let run_started_ns = self.clock.now_ns();
        let stop = self.interrupt.stop().clone();
        for plan in &self.plan.steps {
            if stop.is_asked() {
                return;
            }
            self.progress.begin_step(plan);
            // A killed run is read back from its intervals, which need a step to belong to.
            run.steps.push(begun(plan));
            let mut unwritten = writer.update(run).err();
            let progress = &self.progress;
            let outcome =
                run_step(ground.target(), plan, run_started_ns, &devices, self.clock, &stop, &mut |interval| {
                    // Kept before it is told: what the user has seen is there even if the next instant kills us.
                    if let Err(error) = writer.append(interval) {
                        unwritten.get_or_insert(error);
                    }
                    progress.interval(interval);
                });
            run.steps.pop();
            run.steps.push(outcome.step);
            if let Err(error) = writer.update(run) {
                unwritten.get_or_insert(error);
            }
            if let Some(error) = unwritten {
                self.failure.get_or_insert(not_kept(error));
            }
            if let Some(error) = outcome.failure {
                return self.fail(run, error);
            }
        }
    }

    /// Calls the script; if it fails, that is a note and no more.
    fn call(&self, moment: Moment, run: &mut Run) {
        if let Some(Err(why)) = self.script.as_ref().map(|script| script.call(moment)) {
            self.progress.note(&why);
            run.notes.push(why);
        }
    }

    fn fail(&mut self, run: &mut Run, error: TargetError) {
        if run.outcome == Outcome::Unfinished {
            run.outcome = Outcome::Failed { error: error.to_string() };
            self.failure = Some(Failure::from(error));
        }
    }

    /// Tells the run and how it ended.
    fn tell(mut self, run: &Run, directory: &Path) -> Result<Exit, Failure> {
        let written = match self.arguments.format.reader() {
            Reader::Program => say::json(run),
            Reader::Person => {
                let findings = report::findings(run, self.arguments.limit.as_ref());
                report::write_text(run, &findings, Detail::Brief)
            }
        };
        // Somebody may have removed it meanwhile; the failure to come says so.
        if directory.exists() {
            let shown = directory.display();
            say::line(format_args!("\nKept in `{shown}`. More: `plimsoll report {shown} --full`"));
        }
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        match written {
            // Nobody reads it, but the run went as it went.
            Ok(()) | Err(Failure::PipeClosed) => {}
            Err(failure) => return Err(failure),
        }
        if run.outcome == Outcome::Interrupted {
            say::note("the run was cut short; what was measured is kept");
            return Ok(self.interrupt.exit().unwrap_or(Exit::CouldNot));
        }
        let exit = report::exit_for_limit(run, self.arguments.limit.as_ref());
        if let (Exit::NotMet, Some(limit)) = (exit, &self.arguments.limit) {
            say::note(format_args!("no step kept the limit: {}", limit.of_run(run)));
        }
        Ok(exit)
    }
}

/// A step whose load is about to start.
fn begun(plan: &StepPlan) -> Step {
    Step {
        index: plan.index,
        label: plan.label.clone(),
        load: plan.load.clone(),
        parameters: plan.parameters.clone(),
        window: Window { offset_ns: 0, warmup_ns: plan.warmup.0, duration_ns: 0, ending: Ending::Failure },
        outcome: Outcome::Unfinished,
        counters: Counters::default(),
        operations: Vec::new(),
        waits: Vec::new(),
        process_cpu: None,
        host_cpu: None,
        process_io: None,
        peak_memory_bytes: None,
        devices: Vec::new(),
        generator: None,
        intervals: Vec::new(),
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
