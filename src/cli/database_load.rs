//! Load on an open database, from its first step to the run that is kept: alike for every workload.

use super::exit::Failure;
use super::recording::{Recorded, Recording};
use super::runner::{Beginning, Landing};
use targets::TargetFor;
use targets::database::OpenDatabase;

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

/// Has `run_steps` carry out steps on a database, of which it says how many a whole run has. The database is always closed, so that
/// nothing has to be recovered. `said` are notes that the user has read. `call` hears of each moment; what it fails with is a note, but
/// before the first step it ends the run.
pub(super) fn record<O>(
    beginning: Beginning<'_>,
    opened: Box<dyn OpenDatabase<O> + '_>,
    said: Vec<String>,
    call: &mut dyn FnMut(Moment, &mut Recording) -> Result<(), String>,
    run_steps: &mut dyn FnMut(&mut Recording, &dyn TargetFor<O>) -> usize,
) -> Result<Recorded, Failure> {
    let landing = Landing { paths: opened.paths(), said, ..Landing::on(opened.target(), opened.clock()) };
    let mut recording = match begin(beginning, landing, call) {
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
    beginning: Beginning<'_>,
    landing: Landing,
    call: &mut dyn FnMut(Moment, &mut Recording) -> Result<(), String>,
) -> Result<Recording, Failure> {
    let mut recording = beginning.record(landing)?;
    if let Err(why) = call(Moment::Pre, &mut recording) {
        recording.forget();
        return Err(Failure::new(why).with_hint("nothing was run; see what the script printed".to_owned()));
    }
    Ok(recording)
}
