//! Load on an open database, from its first step to the run that is kept: alike for every workload.

use super::arguments::KeepingArgs;
use super::exit::Failure;
use super::fleet::Joined;
use super::live::RunProgress;
use super::recording::{Header, Recorded, Recording};
use super::{Interrupt, in_turn};
use crate::plan::RunHead;
use analysis::LatencyTarget;
use load::{Compiled, StepPlan};
use targets::database::OpenDatabase;
use targets::{Target, TargetFor};

/// Moments of a run at which others may want to do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// Before the first step.
    Pre,
    /// After the last one, before the database is closed.
    Post,
    /// After it was closed.
    End,
}

/// Chooses steps and carries them out on a target; says how many steps a whole run has.
pub(super) type RunSteps<'f, O> = dyn FnMut(&mut Recording, &dyn TargetFor<O>) -> usize + 'f;

/// What is to be done and kept.
pub(super) struct DatabaseLoad<'a, S> {
    /// What the run is before its first step.
    pub(super) head: RunHead,
    /// The steps in the order in which they run.
    pub(super) steps: Vec<StepPlan<S>>,
    /// What the user has read before.
    pub(super) notes: Vec<String>,
    /// Limits that are asked for.
    pub(super) limits: &'a [LatencyTarget],
    /// What it has to do with other processes.
    pub(super) joined: &'a Joined,
    /// How the run is kept.
    pub(super) keeping: &'a KeepingArgs,
}

impl<S: Compiled> DatabaseLoad<'_, S> {
    /// Runs it. The database is always closed, so that nothing has to be recovered. `call` hears of each moment; what it fails with is
    /// a note, but before the first step it ends the run.
    pub(super) fn record(
        &self,
        opened: Box<dyn OpenDatabase<S::Operation> + '_>,
        call: &mut dyn FnMut(Moment, &mut Recording) -> Result<(), String>,
        interrupt: &Interrupt,
        progress: RunProgress,
    ) -> Result<Recorded, Failure> {
        let repeated = if self.joined.may_repeat() { self.limits } else { &[] };
        let mut each = |recording: &mut Recording, target: &dyn TargetFor<S::Operation>| {
            in_turn::run(recording, target, &self.steps, repeated)
        };
        self.record_by(opened, call, &mut each, interrupt, progress)
    }

    /// The same with steps that `run_steps` chooses and carries out.
    pub(super) fn record_by(
        &self,
        opened: Box<dyn OpenDatabase<S::Operation> + '_>,
        call: &mut dyn FnMut(Moment, &mut Recording) -> Result<(), String>,
        run_steps: &mut RunSteps<'_, S::Operation>,
        interrupt: &Interrupt,
        progress: RunProgress,
    ) -> Result<Recorded, Failure> {
        let mut recording = match self.begin(&*opened, call, interrupt, progress) {
            Ok(recording) => recording,
            Err(failure) => {
                // The first failure is the one to report.
                let _ = opened.close();
                return Err(failure);
            }
        };
        let steps = run_steps(&mut recording, opened.target());
        recording.progress().end();
        let mut called = |moment, recording: &mut Recording| {
            if let Err(why) = call(moment, recording) {
                recording.note(why);
            }
        };
        called(Moment::Post, &mut recording);
        opened.notes_of_the_load().into_iter().for_each(|note| recording.note(note));
        if let Err(error) = opened.close() {
            recording.fail(error);
        }
        called(Moment::End, &mut recording);
        Ok(recording.end(steps))
    }

    fn begin(
        &self,
        opened: &dyn OpenDatabase<S::Operation>,
        call: &mut dyn FnMut(Moment, &mut Recording) -> Result<(), String>,
        interrupt: &Interrupt,
        progress: RunProgress,
    ) -> Result<Recording, Failure> {
        let target: &dyn Target = opened.target();
        let opening_notes = target.notes();
        opening_notes.iter().for_each(|note| progress.note(note));
        let header = Header {
            head: self.head.clone(),
            check: None,
            target: target.describe(),
            paths: &opened.paths(),
            notes: self.notes.iter().cloned().chain(opening_notes).collect(),
            fleet: Some(self.joined),
        };
        let mut recording = Recording::begin(&self.keeping.runs.store(), header, opened.clock(), interrupt, progress)?;
        if let Err(why) = call(Moment::Pre, &mut recording) {
            recording.forget();
            return Err(Failure::new(why).with_hint("nothing was run; see what the script printed".to_owned()));
        }
        Ok(recording)
    }
}
