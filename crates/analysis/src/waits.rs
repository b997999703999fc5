//! Where sessions spent their time.

use super::message::list;
use super::{
    Figures, Finding, Message, SINGLE_BLOCK_READ, foreground_waits, is_on_servers, measured, operations_are_requests,
    worst,
};
use crate::Rule;
use model::record::{Run, Step};
use model::units::{Nanos, percent};

const FREE_BUFFER: &str = "free buffer waits";
const CHECKPOINT: &str = "log file switch (checkpoint incomplete)";
const COMMIT: &str = "log file sync";

/// Shares of waited time from which the engine's own writers are worth naming.
const WRITERS: f64 = 0.05;
const LOG_SWITCH: f64 = 0.02;

/// Sessions waited long for what the engine writes.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct WaitedForWriters {
    /// What they waited for.
    pub wait: WriterWait,
    /// Labels of the steps.
    pub steps: Vec<String>,
    /// The largest share of the waited time of a step, 0 to 1.
    pub share: f64,
}

/// What sessions wait for that the engine writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WriterWait {
    /// A clean buffer, from the database writers.
    Buffer,
    /// A checkpoint that frees a log file.
    Checkpoint,
    /// Commits, and for these more than for anything else.
    Commit,
}

/// What the sessions of the largest load waited for most.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct TopWait {
    /// Label of the step.
    pub step: String,
    /// The wait event.
    pub event: String,
    /// Its share of the waited time, 0 to 1.
    pub share: f64,
    /// Mean of one wait.
    #[serde(rename = "mean_ns")]
    pub mean: Nanos,
}

pub(super) fn find(run: &Run) -> Vec<Finding> {
    let share = |step: &Step, event| Figures(step).share_of_waiting(event);
    let is_top = |step: &Step| foreground_waits(step).first().is_some_and(|wait| wait.event == COMMIT);
    let found = [
        (WriterWait::Buffer, worst(run, |step| share(step, FREE_BUFFER).filter(|share| *share > WRITERS))),
        (WriterWait::Checkpoint, worst(run, |step| share(step, CHECKPOINT).filter(|share| *share > LOG_SWITCH))),
        (WriterWait::Commit, worst(run, |step| share(step, COMMIT).filter(|_| is_top(step)))),
    ];
    let writers = found.into_iter().filter_map(|(wait, found)| {
        let (steps, share) = found?;
        Some(Finding::WaitedForWriters(WaitedForWriters { wait, steps, share }))
    });
    writers.chain(top_wait(run).map(Finding::TopWait)).collect()
}

/// The top wait of the step with the most sessions; not reported where it is what a read load must wait for anyway.
fn top_wait(run: &Run) -> Option<TopWait> {
    // Requests wait for what they were sent to do, and of what sessions of a server wait for, commits alone are timed.
    if operations_are_requests(run) || is_on_servers(run) {
        return None;
    }
    let step = measured(run).max_by_key(|step| step.load.sessions)?;
    let wait = *foreground_waits(step).first()?;
    if [SINGLE_BLOCK_READ, FREE_BUFFER, CHECKPOINT, COMMIT].contains(&wait.event.as_str()) {
        return None;
    }
    let share = Figures(step).share_of_waiting(&wait.event)?;
    let mean = Nanos(wait.of_sessions()?.mean_ns()? as u64);
    Some(TopWait { step: step.label.clone(), event: wait.event.clone(), share, mean })
}

impl Message for WaitedForWriters {
    fn rule(&self) -> Rule {
        Rule::WaitsWriters
    }

    fn sentence(&self) -> String {
        let (steps, share) = (list(&self.steps), percent(self.share));
        match self.wait {
            WriterWait::Buffer => format!(
                "Sessions waited for a clean buffer for {share} % of their waiting time in {steps}: the database writers were the \
                 limit, not reads."
            ),
            WriterWait::Checkpoint => format!(
                "Sessions waited for a checkpoint to free a log file for {share} % of their waiting time in {steps}. \
                 The redo logs are too small for this rate of change, or writers too slow."
            ),
            WriterWait::Commit => format!(
                "Sessions waited for commits more than for anything else in {steps}: `log file sync` is {share} % of their waiting \
                 time."
            ),
        }
    }

    fn advice(&self) -> Option<String> {
        let advice = match self.wait {
            WriterWait::Buffer => "Lower UPDATE_PCT to judge reads; a larger cache only postpones it.",
            WriterWait::Checkpoint => "Use larger redo logs, as on the database being modelled.",
            WriterWait::Commit => {
                "Put redo on storage with faster durable writes; judge it by `log file parallel write`."
            }
        };
        Some(advice.to_owned())
    }
}

impl Message for TopWait {
    fn rule(&self) -> Rule {
        Rule::WaitsTop
    }

    fn sentence(&self) -> String {
        let Self { step, event, share, mean } = self;
        format!(
            "Sessions of {step} waited most for `{event}`: {} % of their waiting time, {mean} each.",
            percent(*share)
        )
    }
}
