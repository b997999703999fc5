//! Whether a figure is the target's or our own: the load generator's verdict on itself.

use crate::Rule;
use crate::Severity;
use serde::Serialize;

use super::message::list;
use super::sending::{self, SATURATED};
use super::server::EXHAUSTED;
use super::{Figures, LatencyTarget, Message, ThreadsFlag, measured, operations_are_requests};
use model::record::{Histogram, Run, Step, Throttled};
use model::units::Nanos;

/// A rate above this share of what the loop reaches without a device may be the loop's own.
const AT_CEILING: f64 = 0.9;
/// A thread that was busy for less than this share of its time could have sent more.
const BUSY: f64 = 0.7;
/// Slots that sit in the generator for more than this share of their time make a smaller load than was asked for.
const MOSTLY_OURS: f64 = 0.5;
/// Lateness above this share of the mean response, or of the latency that is judged, is part of the answer.
pub(super) const LATE: f64 = 0.1;
/// Below this share of its slots in use, an operation that was sent late waited for the generator and not for a slot.
const SLOTS_IN_USE: f64 = 0.5;
/// A device that has requests for more than this share of the time has no room for idleness that a sender made.
const NEVER_IDLE: f64 = 0.95;
/// Operations that take longer than this share of the window are many at its edges, where Little's law does not see them.
const SHORT: f64 = 0.1;
const LAG_QUANTILE: f64 = 0.99;

/// Whose limit the figures of a step show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LimitedBy {
    /// The target's: the generator had time and room left.
    Device,
    /// The generator's: it had no processor time left, came near what it reaches with no device at all, or kept the slots
    /// to itself for most of their time.
    Generator,
    /// The target's, but with a lateness of the generator in the response times that is not small against them.
    Schedule,
}

impl LimitedBy {
    /// As tables have it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Generator => "generator",
            Self::Schedule => "schedule",
        }
    }
}

/// What the load generator says of itself over the window of one step. Shares are 0 to 1.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct GeneratorVerdict {
    /// Label of the step.
    pub step: String,
    /// Processor time of the busiest of its threads.
    pub busiest_share: f64,
    /// Closed loop: share of the time of all slots that an operation sat in the generator rather than in the target,
    /// (N - X R) / N for N slots, X operations per second and R seconds of mean service (Little's law). Counted errors
    /// are not in it. Absent for an open loop, where a free slot waits for the next operation to fall due.
    pub slots_in_generator: Option<f64>,
    /// The same as the loop itself counted it, from a slot's being free to its being used again.
    pub slots_in_generator_counted: Option<f64>,
    /// Open loop: median of the time from due to sent.
    pub lag_p50_ns: Option<u64>,
    /// Open loop: its 99th percentile.
    pub lag_p99_ns: Option<u64>,
    /// Open loop: the longest.
    pub lag_max_ns: Option<u64>,
    /// Operations per second that the same loop reaches with no device at all.
    pub ceiling_operations_per_s: Option<f64>,
    /// Operations per second that it reached.
    pub reached_operations_per_s: Option<f64>,
    /// How many times faster it is without a device.
    pub headroom: Option<f64>,
    /// Whose limit the step shows.
    pub limited_by: LimitedBy,
}

impl GeneratorVerdict {
    /// The verdict on one step; absent where it does not report on its generator, or nothing was measured.
    pub fn of(step: &Step) -> Option<Self> {
        let generator = step.generator.as_ref().filter(|_| step.window.duration_ns > 0)?;
        let figures = Figures(step);
        let is_closed = step.load.rate_operations_per_s.is_none();
        let slots = f64::from(step.load.sessions?);
        let reached = figures.operations_per_s();
        // X times R is the mean number of operations in the target.
        let by_littles_law = || Some(((slots - figures.busy_sessions()?) / slots).clamp(0.0, 1.0));
        let counted = || (generator.idle_session_ns as f64 / (slots * step.window.duration_ns as f64)).min(1.0);
        let slots_in_generator = (is_closed && slots > 0.0).then(by_littles_law).flatten();
        let lag = generator.schedule_lag.as_ref();
        let headroom = generator.ceiling_operations_per_s.zip(reached.filter(|rate| *rate > 0.0));
        let mut verdict = Self {
            step: step.label.clone(),
            busiest_share: generator.busiest_share,
            slots_in_generator,
            slots_in_generator_counted: (is_closed && slots > 0.0).then(counted),
            lag_p50_ns: lag.and_then(|lag| lag.quantile_ns(0.5)),
            lag_p99_ns: lag.and_then(|lag| lag.quantile_ns(LAG_QUANTILE)),
            lag_max_ns: lag.and_then(Histogram::max_ns),
            ceiling_operations_per_s: generator.ceiling_operations_per_s,
            reached_operations_per_s: reached,
            headroom: headroom.map(|(ceiling, reached)| ceiling / reached),
            limited_by: LimitedBy::Device,
        };
        let is_short = own_wanted_share(step).is_some_and(|share| share > SATURATED)
            || is_held_back(step)
            || uses_all_processors(step);
        verdict.limited_by = if is_short || verdict.is_generators_limit() {
            LimitedBy::Generator
        } else if is_late_against(own_lag_p99_ns(step), mean_response_ns(step)) {
            LimitedBy::Schedule
        } else {
            LimitedBy::Device
        };
        Some(verdict)
    }

    /// Whether the rate comes so near to what the loop reaches without a device that it is the loop's own. That was measured at another
    /// moment, and on NFS against the server: only a thread that had little time left says so of this step.
    pub fn is_at_ceiling(&self) -> bool {
        self.headroom.is_some_and(|headroom| headroom <= 1.0 / AT_CEILING) && self.busiest_share >= BUSY
    }

    fn is_generators_limit(&self) -> bool {
        self.is_at_ceiling()
            // Little's law alone takes slots whose operation has not come back for idle ones. The loop sees none idle of which the thread
            // waits for a processor, so that it need confirm only half.
            || (self.slots_in_generator.is_some_and(|share| share > MOSTLY_OURS)
                && self.slots_in_generator_counted.is_some_and(|share| share > MOSTLY_OURS / 2.0))
    }
}

/// Share of the time in which the generator's busiest thread used a processor or was ready to and got none, 0 to 1.
pub(super) fn wanted_share(step: &Step) -> Option<f64> {
    let generator = step.generator.as_ref()?;
    Some(generator.wanted_share.unwrap_or(0.0).max(generator.busiest_share))
}

/// The same as far as it is the generator's own: what it waits for on a machine whose processors are used up is theirs.
pub(super) fn own_wanted_share(step: &Step) -> Option<f64> {
    let has_free = step.host_cpu.is_some_and(|cpu| {
        let (busy, free) = (cpu.busy_ns() as f64 + cpu.steal_ns.unwrap_or(0) as f64, cpu.free_ns());
        free.is_some_and(|free| busy < EXHAUSTED * (busy + free as f64))
    });
    if has_free { wanted_share(step) } else { step.generator.as_ref().map(|generator| generator.busiest_share) }
}

/// A load generator that a quota held back for this share of the time or more is the limit, even where its thread slept the rest of it: it
/// does in a part of each period what it may.
const HELD_BACK: f64 = 0.25;

/// Share of the periods of a quota in which it held back its group, 0 to 1.
pub(super) fn throttled_share(throttled: Throttled) -> f64 {
    throttled.throttled_periods as f64 / throttled.periods.max(1) as f64
}

/// Share of the time for which a quota held back the generator's busiest thread, at most, 0 to 1; absent where that is not known.
///
/// The kernel adds up the time of all processors and of the whole group, so that the share of periods and what the thread missed bound it.
pub(super) fn held_back_share(step: &Step) -> Option<f64> {
    let generator = step.generator.as_ref()?;
    let throttled = generator.throttled?;
    let counted = throttled.throttled_ns as f64 / step.window.duration_ns.max(1) as f64;
    let missed = (generator.wanted_share? - generator.busiest_share).max(0.0);
    Some(throttled_share(throttled).min(counted).min(missed))
}

/// Whether a quota held back the generator for so long that it is the limit.
pub(super) fn is_held_back(step: &Step) -> bool {
    held_back_share(step).is_some_and(|share| share >= HELD_BACK)
}

/// Whether this process used up the machine's processors by itself: many threads do, of which each is hardly busy.
fn uses_all_processors(step: &Step) -> bool {
    let share = step.process_cpu.zip(step.host_cpu).and_then(|(process, host)| {
        let all = host.busy_ns().saturating_add(host.free_ns()?);
        (all > 0).then(|| process.busy_ns() as f64 / all as f64)
    });
    share.is_some_and(|share| share > SATURATED)
}

/// The 99th percentile of the lateness that was the generator's own: it is recorded, or else reported by [`is_own_lateness`].
pub(super) fn own_lag_p99_ns(step: &Step) -> Option<u64> {
    let generator = step.generator.as_ref()?;
    match &generator.own_lag {
        Some(own) => own.quantile_ns(LAG_QUANTILE).filter(|_| !is_kept_by_device(step)),
        None => generator.schedule_lag.as_ref()?.quantile_ns(LAG_QUANTILE).filter(|_| is_own_lateness(step)),
    }
}

/// Whether a device that was never idle fell behind, so that the kernel kept the sender until there was room in its queue.
fn is_kept_by_device(step: &Step) -> bool {
    let never_idle =
        step.devices.iter().any(|device| device.busy_ns as f64 >= NEVER_IDLE * device.elapsed_ns.max(1) as f64);
    never_idle && sending::behind(step).is_some()
}

fn mean_response_ns(step: &Step) -> Option<f64> {
    Figures(step).response()?.mean_ns()
}

fn is_late_against(lag_ns: Option<u64>, ns: Option<f64>) -> bool {
    lag_ns.zip(ns).is_some_and(|(lag, ns)| lag as f64 > LATE * ns)
}

/// Whether operations that were sent late waited for the generator, where that was not recorded. They did not while the target held the slots, nor
/// while a device that was never idle fell behind: then its queue is full, and the kernel keeps the sender until there is
/// room in it.
fn is_own_lateness(step: &Step) -> bool {
    let is_short = |times: Histogram| times.mean_ns().is_some_and(|ns| ns <= SHORT * step.window.duration_ns as f64);
    let slots_free = Figures(step).service().is_some_and(is_short)
        && Figures(step)
            .busy_sessions()
            .zip(step.load.sessions)
            .is_some_and(|(busy, slots)| busy < SLOTS_IN_USE * f64::from(slots));
    slots_free && !is_kept_by_device(step)
}

/// Requests were sent later than they were due, and not because the target held all slots.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct SentLate {
    /// Labels of the steps.
    pub steps: Vec<String>,
    /// The 99th percentile of the lateness in the one that was latest, relative to what it is compared with.
    #[serde(rename = "lag_p99_ns")]
    pub lag_p99: Nanos,
    /// What that is.
    pub against: LateAgainst,
    /// By which flag the generator is given more threads.
    #[serde(skip)]
    pub threads: ThreadsFlag,
}

/// What a lateness is compared with.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LateAgainst {
    /// The limit of the latency target, which can be missed by it alone.
    Limit(Nanos),
    /// The mean response time of a step that keeps its limit all the same.
    MeanResponse(Nanos),
}

impl SentLate {
    /// Whether the answer itself can be wrong by it.
    pub(super) fn is_doubt(&self) -> bool {
        matches!(self.against, LateAgainst::Limit(_))
    }
}

/// Steps that the generator's lateness can decide, and those in which it is only seen.
pub(super) fn sent_late(run: &Run, target: &LatencyTarget) -> Vec<SentLate> {
    if !operations_are_requests(run) {
        return Vec::new();
    }
    let (mut deciding, mut seen) = (Vec::new(), Vec::new());
    for step in measured(run) {
        let Some(lag) = own_lag_p99_ns(step) else { continue };
        let Some(mean) = mean_response_ns(step) else { continue };
        if lag as f64 > LATE * target.limit.0 as f64 && misses_by_lateness(step, target) {
            deciding.push((step.label.clone(), lag, target.limit));
        } else if lag as f64 > LATE * mean {
            seen.push((step.label.clone(), lag, Nanos(mean as u64)));
        }
    }
    let threads = ThreadsFlag::of(run);
    let deciding = latest(&deciding, LateAgainst::Limit, threads);
    let seen = latest(&seen, LateAgainst::MeanResponse, threads);
    deciding.into_iter().chain(seen).collect()
}

/// Whether a limit is missed from due to finished and kept from sent to finished. What keeps it does so with the lateness in it.
fn misses_by_lateness(step: &Step, target: &LatencyTarget) -> bool {
    let figures = Figures(step);
    let is_beyond = |times: &Histogram| times.quantile_ns(target.quantile).is_some_and(|ns| ns > target.limit.0);
    figures.response().is_some_and(|times| is_beyond(&times))
        && figures.service().is_some_and(|times| !is_beyond(&times))
}

fn latest(steps: &[(String, u64, Nanos)], against: fn(Nanos) -> LateAgainst, threads: ThreadsFlag) -> Option<SentLate> {
    let share = |(_, lag, of): &(String, u64, Nanos)| *lag as f64 / of.0.max(1) as f64;
    let (_, lag, of) = steps.iter().max_by(|left, right| share(left).total_cmp(&share(right)))?;
    let labels = steps.iter().map(|(label, ..)| label.clone()).collect();
    Some(SentLate { steps: labels, lag_p99: Nanos(*lag), against: against(*of), threads })
}

impl Message for SentLate {
    fn rule(&self) -> Rule {
        Rule::GeneratorLate
    }

    fn severity(&self) -> Severity {
        if self.is_doubt() { Severity::Doubt } else { Severity::Note }
    }

    fn sentence(&self) -> String {
        let steps = list(&self.steps);
        let lag = self.lag_p99;
        match self.against {
            LateAgainst::Limit(limit) => format!(
                "The load generator sent requests late in {steps}: p99 from due to sent is {lag}, against a limit of {limit}, although \
                 it had slots free."
            ),
            LateAgainst::MeanResponse(mean) => format!(
                "One request in 100 was sent {lag} late or more in {steps}, where the mean response is {mean}. \
                 Response times contain that, service times do not."
            ),
        }
    }

    fn advice(&self) -> Option<String> {
        let advice = match self.against {
            LateAgainst::Limit(_) => {
                format!(
                    "Judge the storage by service times, or give the load generator idle processors{}.",
                    self.threads.or(" or ")
                )
            }
            LateAgainst::MeanResponse(_) => "Compare service times where tens of microseconds matter.".to_owned(),
        };
        Some(advice)
    }

    fn steps(&self) -> Option<&[String]> {
        Some(&self.steps)
    }
}

#[cfg(test)]
mod tests {
    use super::super::load_line::judge::tests::open;
    use super::*;
    use crate::{Finding, Severity, analyse};
    use model::record::sample;
    use model::record::{CpuTime, Load, Workload};

    fn verdict(change: impl Fn(&mut Step)) -> GeneratorVerdict {
        let mut step = sample::sweep(10).steps.swap_remove(4);
        change(&mut step);
        GeneratorVerdict::of(&step).unwrap()
    }

    fn generator(step: &mut Step) -> &mut model::record::Generator {
        step.generator.as_mut().unwrap()
    }

    fn tripled(step: &mut Step) {
        step.load.sessions = step.load.sessions.map(|sessions| 3 * sessions);
    }

    #[test]
    fn slots_that_are_always_in_the_target_leave_the_limit_to_the_device() {
        let seen = verdict(|_| {});
        assert_eq!(seen.limited_by, LimitedBy::Device);
        assert!(seen.slots_in_generator.unwrap() < 0.1, "{seen:?}");
        assert_eq!((seen.headroom, seen.lag_p99_ns), (None, None));
    }

    #[test]
    fn what_littles_law_leaves_is_what_the_loop_counted() {
        let seen = verdict(|step| {
            let operation = &mut step.operations[0];
            // 16 slots of 10 s, of which 12 s are not in the target.
            operation.service = Histogram::default();
            operation.service.record_n(148_000_000_000 / operation.count, operation.count);
            generator(step).idle_session_ns = 12_000_000_000;
        });
        let (law, counted) = (seen.slots_in_generator.unwrap(), seen.slots_in_generator_counted.unwrap());
        assert!((counted - 0.075).abs() < 1e-9 && (law - counted).abs() < 1e-3, "{law} {counted}");
    }

    #[test]
    fn each_way_of_being_the_limit_is_the_generators() {
        let limited_by = |change: fn(&mut Step)| verdict(change).limited_by;
        assert_eq!(limited_by(|step| generator(step).busiest_share = 0.95), LimitedBy::Generator);
        // Under a quota it wants a processor, and the machine has some; else it waits for those who used them up.
        fn waiting(step: &mut Step, idle_ns: u64) {
            generator(step).wanted_share = Some(0.95);
            let used = CpuTime { user_ns: 10_000_000_000, iowait_ns: Some(0), ..CpuTime::default() };
            step.host_cpu = Some(CpuTime { idle_ns: Some(idle_ns), ..used });
        }
        assert_eq!(limited_by(|step| waiting(step, 10_000_000_000)), LimitedBy::Generator);
        assert_eq!(limited_by(|step| waiting(step, 100_000_000)), LimitedBy::Device);
        // 2,000 threads on two processors, none of them busy by itself.
        fn together(step: &mut Step, used_ns: u64) {
            let used =
                |user_ns| Some(CpuTime { user_ns, idle_ns: Some(20_000_000_000 - user_ns), ..CpuTime::default() });
            (step.process_cpu, step.host_cpu) = (used(used_ns), used(19_900_000_000));
        }
        assert_eq!(limited_by(|step| together(step, 19_000_000_000)), LimitedBy::Generator);
        assert_eq!(limited_by(|step| together(step, 16_000_000_000)), LimitedBy::Device);
        // 636 operations a second.
        fn alone(step: &mut Step, per_s: f64, busiest_share: f64) {
            let generator = generator(step);
            (generator.ceiling_operations_per_s, generator.busiest_share) = (Some(per_s), busiest_share);
        }
        assert_eq!(limited_by(|step| alone(step, 700.0, 0.8)), LimitedBy::Generator);
        assert_eq!(limited_by(|step| alone(step, 720.0, 0.8)), LimitedBy::Device);
        // On NFS even the loop alone asks the server: a thread that had most of its time left was not the limit.
        assert_eq!(limited_by(|step| alone(step, 600.0, 0.3)), LimitedBy::Device);
        let half_idle = |step: &mut Step| {
            tripled(step);
            generator(step).idle_session_ns = u64::from(step.load.slots()) * step.window.duration_ns * 2 / 3;
        };
        assert_eq!(limited_by(half_idle), LimitedBy::Generator);
    }

    #[test]
    fn most_slots_idle_are_the_generators_though_the_loop_saw_only_half_of_it() {
        let with = |counted_share: f64| {
            verdict(|step| {
                tripled(step);
                let slots_ns = f64::from(step.load.slots()) * step.window.duration_ns as f64;
                generator(step).idle_session_ns = (slots_ns * counted_share) as u64;
            })
        };
        assert!(with(0.4).slots_in_generator.unwrap() > 0.6);
        assert_eq!(with(0.4).limited_by, LimitedBy::Generator);
        assert_eq!(with(0.2).limited_by, LimitedBy::Device);
    }

    #[test]
    fn slots_whose_operation_does_not_come_back_are_not_the_generators() {
        // Nothing finishes any more from the middle of the window on: Little's law finds most slots empty.
        let seen = verdict(tripled);
        assert!(seen.slots_in_generator.unwrap() > 0.6 && seen.slots_in_generator_counted.unwrap() < 0.01);
        assert_eq!(seen.limited_by, LimitedBy::Device);
    }

    #[test]
    fn lateness_behind_operations_as_long_as_the_window_is_the_devices() {
        let mut step = open(1_000, 500);
        step.operations[0].service = sample::latencies(200, 25_000_000_000);
        step.operations[0].response = sample::latencies(200, 30_000_000_000);
        step.operations[0].count = 200;
        step.counters.operations = Some(200);
        step.load.sessions = Some(1_024);
        generator(&mut step).schedule_lag = Some(sample::latencies(200, 5_000_000_000));
        step.devices.clear();
        assert_eq!(GeneratorVerdict::of(&step).unwrap().limited_by, LimitedBy::Device);
        assert_eq!(super::super::judge(&step, &LatencyTarget::default()), Some(super::super::VerdictOutcome::Failed));
    }

    #[test]
    fn lateness_counts_only_while_slots_are_free() {
        let late = |sessions: u32, lag_us: u64| {
            let mut step = open(1_000, 500);
            step.load.sessions = Some(sessions);
            generator(&mut step).schedule_lag = Some(sample::latencies(60_000, lag_us * 1_000));
            GeneratorVerdict::of(&step).unwrap()
        };
        assert_eq!(late(64, 10).limited_by, LimitedBy::Device);
        assert_eq!(late(64, 100).limited_by, LimitedBy::Schedule);
        assert_eq!(late(1, 100).limited_by, LimitedBy::Device, "its slot was in use");
        let mut full = open(1_000, 500);
        full.load.rate_operations_per_s = Some(2_000.0);
        generator(&mut full).due_operations = Some(120_000);
        generator(&mut full).schedule_lag = Some(sample::latencies(60_000, 100_000_000));
        let limit = |step: &Step| GeneratorVerdict::of(step).unwrap().limited_by;
        assert_eq!(limit(&full), LimitedBy::Device, "its queue was full, and the kernel held the sender");
        full.devices[0].busy_ns /= 2;
        assert_eq!(limit(&full), LimitedBy::Schedule, "the device could have taken more");
        assert_eq!(late(64, 100).slots_in_generator, None, "an open loop's free slots wait for nothing");
    }

    #[test]
    fn lateness_leads_only_where_it_can_decide() {
        let severities = |response_us: u64, lag_us: u64| -> Vec<Severity> {
            let mut run = sample::sweep(60);
            run.load = Load::foreign(Workload::Io);
            let mut step = open(1_000, response_us);
            step.operations[0].service = sample::latencies(60_000, 500_000);
            generator(&mut step).schedule_lag = Some(sample::latencies(60_000, lag_us * 1_000));
            run.steps = vec![step];
            let found = analyse(&run, &LatencyTarget::default());
            let late = |finding: &&Finding| matches!(finding, Finding::SentLate(_));
            if response_us > 2_000 {
                assert!(matches!(found[0], Finding::SentLate(_)), "{found:#?}");
            }
            found.iter().filter(late).map(Finding::severity).collect()
        };
        assert_eq!(severities(500, 5), []);
        assert_eq!(severities(500, 100), [Severity::Note]);
        assert_eq!(severities(500, 400), [Severity::Note], "the limit is kept with it");
        assert_eq!(severities(4_000, 3_500), [Severity::Doubt]);
    }
}
