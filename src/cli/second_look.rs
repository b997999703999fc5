//! Experiments after the steps of a sweep: pulses tell a limiter from the device, and requests of another size a limit on requests from
//! one on bytes.

use super::dry_run::DryRun;
use super::recording::{PulseEnd, Recording};
use crate::plan::again;
use analysis::{PulseWanted, SizeWanted, other_size, pulse_wanted, size_wanted};
use load::StepPlan;
use model::config::io::{Connections, IoOptions, PageCache, Volumes};
use model::record::{PulseTest, SizeTest};
use model::units::{Bytes, Nanos};
use model::workload::io::{IoOperation, IoShape};
use targets::TargetFor;

/// Longer than the slice of the kernel's throttle, and than the queues that it leaves take to empty.
const PAUSE: Nanos = Nanos::millis(700);
/// The throttle lets a tenth of a second's requests through at once, so a pulse is a small part of that. Of a slow load too few requests
/// end in the usual window: the longer one shows five times the rate still.
const WINDOW: Nanos = Nanos::millis(10);
const WINDOW_OF_FEW: Nanos = Nanos::millis(20);
const FEW_REQUESTS: f64 = 10.0;
const PULSES: usize = 5;
/// Those that a busy machine holds up are repeated, within reason.
const MAX_TRIES: usize = 15;
/// Pulses wait for no processor, as steps may have to. So the steady rate is the higher one of the step's and that of the same load without a
/// pause and in that way: else a busy machine would make a burst.
const REFERENCE: (Nanos, Nanos) = (Nanos::millis(500), Nanos::millis(1_000));
/// A pause, opening what the load needs, and what the load generator can do, which is measured before each.
const TIME_OF_EACH: Nanos = Nanos::millis(1_000);

/// Warm-up and window of requests of another size: what a limiter saved meanwhile has gone by then.
const OTHER_SIZE: (Nanos, Nanos) = (Nanos::millis(1_000), Nanos::millis(1_500));

/// Which experiments may follow the last step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Experiments {
    /// All, where the steps leave open what holds the rate.
    WhereNeeded,
    /// The same without pulses.
    WithoutPulses,
    /// None.
    Never,
}

impl Experiments {
    /// The same for this load. Only a sweep of depths with random reads past the page cache can tell: a rate of an open loop is no more
    /// after a pause, a write-back cache takes a burst of writes, and sequential reads begin at places that caches may still hold.
    pub(super) fn of(self, asked: &IoOptions) -> Self {
        let IoOptions { pattern, depths, rates, volumes, connections, page_cache, .. } = asked;
        let is_sweep = rates.is_none() && depths.0.len() > 1;
        let is_one = *volumes == Volumes::One && *connections == Connections::Addressed;
        let reads_storage = !asked.writes() && !pattern.is_sequential() && *page_cache == PageCache::Bypassed;
        if is_sweep && is_one && reads_storage { self } else { Self::Never }
    }

    /// The longest request of a load of this block size and of what may follow it.
    pub(super) fn largest_bytes(self, block_bytes: u32) -> u32 {
        let other = (self != Self::Never).then(|| other_size(block_bytes)).flatten();
        other.map_or(block_bytes, |other| other.max(block_bytes))
    }

    /// What a dry run says of them.
    pub(super) fn describe(self, described: DryRun) -> DryRun {
        let described = match self {
            Self::WhereNeeded => {
                let time = Nanos(PULSES as u64 * TIME_OF_EACH.0 + REFERENCE.0.0 + REFERENCE.1.0);
                described.fact("pulses", words(time))
            }
            Self::WithoutPulses | Self::Never => described,
        };
        match self {
            Self::WhereNeeded | Self::WithoutPulses => described.fact(
                "other size",
                format_args!(
                    "{} of requests of another size, if the steps do not show whether a limit counts requests or bytes",
                    Nanos(OTHER_SIZE.0.0 + OTHER_SIZE.1.0)
                ),
            ),
            Self::Never => described,
        }
    }
}

/// What pulses are and when they are sent, for a dry run.
pub(super) fn words(time: Nanos) -> String {
    format!(
        "{PULSES} after pauses of {PAUSE}, about {time} in all, if the steps do not show whether a limiter or the device holds the rate"
    )
}

/// Carries out the experiments that the steps so far call for, and writes down what came of them.
pub(super) fn run(
    experiments: Experiments,
    recording: &mut Recording,
    target: &dyn TargetFor<IoOperation>,
    steps: &[StepPlan<IoShape>],
) {
    if experiments == Experiments::WhereNeeded
        && let Some(wanted) = pulse_wanted(recording.run())
        && let Some(plan) = plan_of(recording, wanted.step, steps)
    {
        send_pulses(recording, target, wanted, plan, steps.len());
    }
    if experiments != Experiments::Never {
        try_other_size(recording, target, steps);
    }
}

/// The plan of the same load as a recorded step.
fn plan_of<'p>(recording: &Recording, step: usize, steps: &'p [StepPlan<IoShape>]) -> Option<&'p StepPlan<IoShape>> {
    let sessions = recording.steps().get(step)?.load.sessions;
    steps.iter().find(|plan| plan.load.sessions == sessions)
}

/// Puts the largest load on with requests of another size, if the limit that its steps show may count requests or bytes.
fn try_other_size(recording: &mut Recording, target: &dyn TargetFor<IoOperation>, steps: &[StepPlan<IoShape>]) {
    if !recording.is_going_well() || !recording.is_alone() {
        return;
    }
    let Some(SizeWanted { step, request_bytes }) = size_wanted(recording.run()) else { return };
    let Some(plan) = plan_of(recording, step, steps) else { return };
    recording.progress().line(&format!("{}: requests of {}", plan.label, Bytes(request_bytes.into())));
    let (warmup, duration) = OTHER_SIZE;
    let mut other = StepPlan { warmup, duration, ..again(plan, plan.index, steps.len() + MAX_TRIES + 1) };
    other.shape.classes.iter_mut().for_each(|class| class.block_bytes = request_bytes);
    match recording.pulse(target, &other, Nanos(0)) {
        Ok(PulseEnd::Whole { requests }) => {
            recording.keep_size_test(step, SizeTest { request_bytes, requests, window_ns: duration.0 });
        }
        Ok(PulseEnd::HeldUp | PulseEnd::Stopped) => {}
        Err(error) => {
            recording.note(format!("{}: requests of another size after the last step failed: {error}", plan.label));
        }
    }
}

/// Sends pulses of a load, if the steps so far leave open what holds their rate. No step had this load, so that it has a place of its own
/// among the choices of the seed.
pub(super) fn pulse(recording: &mut Recording, target: &dyn TargetFor<IoOperation>, plan: &StepPlan<IoShape>) {
    if let Some(wanted) = pulse_wanted(recording.run()) {
        send_pulses(recording, target, wanted, plan, plan.index as usize + 1);
    }
}

/// Sends pulses of a load after `steps` others, and writes down what came of them.
fn send_pulses(
    recording: &mut Recording,
    target: &dyn TargetFor<IoOperation>,
    PulseWanted { step, steady_requests_per_s }: PulseWanted,
    plan: &StepPlan<IoShape>,
    steps: usize,
) {
    if !recording.is_going_well() || !recording.is_alone() {
        return;
    }
    recording.progress().line(&format!("{}: {PULSES} pulses after pauses of {PAUSE}", plan.label));
    let (warmup, duration) = REFERENCE;
    let reference = StepPlan { warmup, duration, ..again(plan, plan.index, steps) };
    let requests = match recording.pulse(target, &reference, Nanos(0)) {
        Ok(PulseEnd::Whole { requests }) => requests,
        ended => {
            if let Err(error) = ended {
                recording.note(format!("{}: no pulse was sent, since its load failed before: {error}", plan.label));
            }
            recording.keep_pulses(step, PulseTest::new(PAUSE.0, WINDOW.0, steady_requests_per_s));
            return;
        }
    };
    let steady_requests_per_s = steady_requests_per_s.max(requests as f64 / duration.as_seconds());
    let is_slow = steady_requests_per_s * WINDOW.as_seconds() < FEW_REQUESTS;
    let window = if is_slow { WINDOW_OF_FEW } else { WINDOW };
    let mut test = PulseTest::new(PAUSE.0, window.0, steady_requests_per_s);
    for number in 1..=MAX_TRIES {
        // Other places each time: a cache may hold what the last one read.
        let pulse = StepPlan { warmup: Nanos(0), duration: window, ..again(plan, plan.index, steps + number) };
        match recording.pulse(target, &pulse, PAUSE) {
            Ok(PulseEnd::Whole { requests }) => test.push(requests),
            Ok(PulseEnd::HeldUp) => {}
            Ok(PulseEnd::Stopped) => break,
            Err(error) => {
                recording.note(format!("{}: a pulse after the last step failed: {error}", plan.label));
                break;
            }
        }
        if test.pulses.len() == PULSES {
            break;
        }
    }
    recording.keep_pulses(step, test);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(pattern: &str, depths: &str) -> IoOptions {
        IoOptions {
            paths: Vec::new(),
            pattern: pattern.parse().unwrap(),
            block: "8K".parse().unwrap(),
            read_pct: None,
            distribution: None,
            depths: depths.parse().unwrap(),
            jobs: 1,
            rates: None,
            arrival: None,
            volumes: Volumes::One,
            connections: Connections::Addressed,
            size: None,
            durable: model::config::io::Durable::None,
            page_cache: PageCache::Bypassed,
            stripe: None,
            redundancy: model::config::io::Redundancy::None,
            verify: model::config::io::Verify::Nothing,
        }
    }

    #[test]
    fn only_a_sweep_of_random_reads_of_storage_itself_has_pulses() {
        let of = |asked: &IoOptions| Experiments::WhereNeeded.of(asked);
        let plain = asked("randread", "1,8");
        assert_eq!(of(&plain), Experiments::WhereNeeded);
        assert_eq!(Experiments::Never.of(&plain), Experiments::Never);
        for other in [asked("randread", "8"), asked("randwrite", "1,8"), asked("randrw", "1,8"), asked("read", "1,8")] {
            assert_eq!(of(&other), Experiments::Never, "{:?}", other.pattern);
        }
        assert_eq!(of(&IoOptions { page_cache: PageCache::Used, ..plain.clone() }), Experiments::Never);
        assert_eq!(of(&IoOptions { volumes: Volumes::Each { rounds: 2 }, ..plain.clone() }), Experiments::Never);
        assert_eq!(of(&IoOptions { rates: Some("100,200".parse().unwrap()), ..plain }), Experiments::Never);
    }
}
