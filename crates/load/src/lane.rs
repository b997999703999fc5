//! The thread of one lane, and what the coordinator sees of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};

use super::batch::BatchDriver;
use super::drive::{Driver, LaneReport, Part};
use super::waiting::UnderWay;
use super::{Pace, StepPlan, Stop};
use measure::os::{precise_timers, thread_number};
use measure::{Clock, Outbox, Timeline};
use model::units::Nanos;
use model::workload::{Shape, Stream};
use targets::{BatchLane, Lane, SessionRange, TargetError, TargetFor};

/// Operations of each session that a lane may look at before load starts. Kinds are drawn in shares of a hundred.
const FORESEEN: usize = 100;

/// A lane as the coordinator sees it.
#[derive(Default)]
pub(super) struct LaneHandle {
    pub(super) outbox: Arc<Outbox>,
    pub(super) under_way: UnderWay,
    /// The kernel's number of its thread, once it runs.
    pub(super) thread: OnceLock<i32>,
    /// The lane's thread hands nothing over any more.
    pub(super) gone: AtomicBool,
}

/// Tells the coordinator that a lane's thread is gone, also when it panicked: then the step ends, rather than going on
/// with a part of its load.
pub(super) struct Leaving<'a> {
    pub(super) handle: &'a LaneHandle,
    pub(super) timeline: &'a OnceLock<Arc<Timeline>>,
    pub(super) clock: Clock,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if let Some(timeline) = self.timeline.get().filter(|_| std::thread::panicking()) {
            timeline.close(self.clock.now_ns());
        }
        self.handle.gone.store(true, Ordering::Release);
    }
}

/// Drives a lane on this thread, from opening it until what it sent has ended.
///
/// # Errors
/// Those of the target, and that another lane could not be opened.
#[expect(clippy::too_many_arguments, reason = "what a lane's thread is given, once for each step")]
pub(super) fn run_lane<S: Shape>(
    target: &dyn TargetFor<S::Operation>,
    plan: &StepPlan<S>,
    part: Part,
    clock: Clock,
    (stop, drain): (&Stop, Nanos),
    ready: mpsc::Sender<bool>,
    timeline: &OnceLock<Arc<Timeline>>,
    handle: &LaneHandle,
) -> Result<LaneReport, TargetError> {
    precise_timers();
    let _ = handle.thread.set(thread_number());
    let Part { lane, first_session, sessions, .. } = part;
    let opened = open(target, plan, SessionRange { lane, first_session, sessions, clock });
    // A lane that could not be opened says so too: the others wait for it. The coordinator never goes before it has heard.
    let _ = ready.send(opened.is_ok());
    drop(ready);
    let timeline = timeline.wait();
    let line = match opened {
        Ok(line) => line,
        Err(error) => {
            timeline.close(timeline.start_ns());
            return Err(error);
        }
    };
    if timeline.closed_at_ns() <= timeline.start_ns() {
        // Another lane could not be opened: memory may be short, so nothing more is made.
        return Ok(LaneReport::default());
    }
    match line {
        Line::OneByOne(mut lane) => {
            let driver = Driver::new(plan, part, clock, timeline, (&handle.outbox, &handle.under_way));
            let late_ns = sleep_until_start(clock, timeline);
            driver.run(lane.as_mut(), stop, drain).map(|report| LaneReport { late_ns, ..report })
        }
        Line::InBatches(mut lane) => {
            let driver = BatchDriver::new(plan, part, clock, timeline, (&handle.outbox, &handle.under_way));
            let late_ns = sleep_until_start(clock, timeline);
            driver.run(lane.as_mut()).map(|report| LaneReport { late_ns, ..report })
        }
    }
}

/// Sleeps until the load begins. Returns how much later it is then.
fn sleep_until_start(clock: Clock, timeline: &Timeline) -> Option<u64> {
    clock.sleep_until(timeline.start_ns());
    Some(clock.now_ns().saturating_sub(timeline.start_ns()))
}

/// How a lane takes its operations.
enum Line<'t, O> {
    OneByOne(Box<dyn Lane<O> + 't>),
    InBatches(Box<dyn BatchLane<O> + 't>),
}

/// Opens a lane that is ready for its first operations.
fn open<'t, S: Shape>(
    target: &'t dyn TargetFor<S::Operation>,
    plan: &StepPlan<S>,
    range: SessionRange,
) -> Result<Line<'t, S::Operation>, TargetError> {
    let mut upcoming = |session| {
        let mut stream = plan.shape.stream(plan.seed, plan.shape.stream_of(range.first_session + session));
        (0..FORESEEN).map(|_| stream.draw().operation).collect()
    };
    let in_batches = match plan.pace {
        Pace::Closed => target.open_batch_lane(range)?,
        Pace::Open { .. } => None,
    };
    if let Some(mut lane) = in_batches {
        lane.prepare(&mut upcoming)?;
        return Ok(Line::InBatches(lane));
    }
    let mut lane = target.open_lane(range)?;
    lane.prepare(&mut upcoming)?;
    Ok(Line::OneByOne(lane))
}
