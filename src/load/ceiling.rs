//! What the load generator itself can do: the same loop, with no device behind it.

use super::step::run_load;
use super::{Begin, Pace, StepPlan, Stop};
use measure::{Clock, Counter};
use model::record;
use model::units::Nanos;
use model::workload::Shape;
use targets::{Background, Lane, SessionRange, Target, TargetError, TargetFor};

/// Long enough for some hundred thousand operations, short enough not to be noticed.
const WARMUP: Nanos = Nanos::millis(20);
const DURATION: Nanos = Nanos::millis(150);

/// Operations per second that the load of `plan` reaches when nothing is moved; `None` where the target cannot do without
/// moving anything, where time is only simulated, or where it cannot be found out.
pub fn generator_ceiling<S: Shape + Clone>(
    target: &dyn TargetFor<S::Operation>,
    plan: &StepPlan<S>,
    clock: Clock,
    stop: &Stop,
) -> Option<f64> {
    let range = SessionRange { lane: 0, first_session: 0, sessions: 1, clock };
    if clock.is_simulated() || target.open_idle_lane(range).ok()?.is_none() {
        return None;
    }
    let plan = StepPlan { pace: Pace::Closed, work_loop: None, warmup: WARMUP, duration: DURATION, ..plan.clone() };
    let outcome = run_load(&Idle(target), &plan, 0, &[], clock, stop, None, &mut || Begin::AtOnce, &mut |_| {});
    let window = outcome.step.window.duration_ns;
    let whole = outcome.failure.is_none() && window == DURATION.0;
    whole.then(|| outcome.step.counters.operations.unwrap_or(0) as f64 * 1e9 / window as f64)
}

/// A target whose lanes move nothing.
struct Idle<'t, O>(&'t dyn TargetFor<O>);

impl<O> Target for Idle<'_, O> {
    fn describe(&self) -> record::Target {
        self.0.describe()
    }

    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    fn layer(&self) -> &'static str {
        self.0.layer()
    }

    fn known_counters(&self) -> &'static [Counter] {
        &[Counter::Operations]
    }

    fn take_background(&self) -> Background {
        Background::default()
    }

    fn check_health(&self) -> Result<(), TargetError> {
        Ok(())
    }
}

impl<O> TargetFor<O> for Idle<'_, O> {
    fn open_lane(&self, range: SessionRange) -> Result<Box<dyn Lane<O> + '_>, TargetError> {
        self.0.open_idle_lane(range)?.ok_or(TargetError::Stopped)
    }
}
