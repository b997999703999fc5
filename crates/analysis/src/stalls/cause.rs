//! The rules by which an episode gets its cause. Each says what must be seen and what must not.
//!
//! They stand in the order in which one excludes the others: who did not run cannot tell what storage did, and what is known of the
//! device says more than what is known of the way to it.

use model::record::{Interval, Moment, SessionState, Step};
use model::units::Nanos;

/// Why operations were slow for a while.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StallCause {
    /// Nothing of this program ran although CPUs were free: it, its control group, or the whole virtual machine was stopped.
    Stopped,
    /// The CPU quota of the control group stopped the threads of the load.
    Quota,
    /// The hypervisor took the CPUs.
    Stolen,
    /// Threads of the load were ready to run, and other programs had the CPUs.
    Processors,
    /// Tasks waited for memory.
    Memory,
    /// Packets were lost, and sent again.
    Retransmission,
    /// Sessions waited for this event, such as a checkpoint or a lock.
    Wait(String),
    /// The device held requests and completed none.
    DeviceSilent,
    /// Requests were held before the device, which was idle: a frozen file system, a suspended mapping, a limit.
    BeforeDevice,
    /// Others used the device.
    Neighbour,
    /// The device was busy with many more writes or flushes than usual.
    Writes,
    /// The device took longer for all requests, and nothing else happened.
    DeviceSlow,
}

/// A cause, and what speaks for it.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct Blame {
    /// The cause.
    pub cause: StallCause,
    /// What was seen, in words.
    pub evidence: String,
}

/// A cause must cover so much of the time in which operations were held up,
const COVERS: f64 = 0.5;
/// or, where it is counted only while it goes on, so much.
const COVERS_COUNTED: f64 = 0.4;
/// and be so many times what is usual.
const TIMES_USUAL: f64 = 4.0;
/// Requests take so many times as long as usual at a device that is slow.
const SLOW_TIMES: f64 = 2.0;
/// A device that takes less than this, as a multiple of what is usual, is not slow.
const NOT_SLOW_TIMES: f64 = 1.5;
/// Writes, flushes or bytes of others, as a multiple of what is usual.
const MANY_TIMES: f64 = 3.0;
/// A device does few requests if it does less than this share of its usual ones.
const FEW: f64 = 0.6;
/// Others' share of the bytes of a device, for a neighbour.
const OTHERS: f64 = 0.3;
/// CPUs are free if they were idle for so much of the time of one of them.
const IDLE: f64 = 0.2;

/// Of all session time in an episode, the share in one state of the server's sessions.
const STATE_SHARE: f64 = 0.4;
/// States in which a session waits for something but storage, and those in which it waits for storage that may be out of sight.
const NOT_STORAGE: [SessionState; 3] = [SessionState::Lock, SessionState::Log, SessionState::Other];
const STORAGE: [SessionState; 3] = [SessionState::LogWrite, SessionState::Read, SessionState::ReadElsewhere];

/// What is usual outside of episodes, by the second.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Usual {
    waited_us: Option<f64>,
    memory_stall_us: Option<f64>,
    retransmitted: Option<f64>,
    completed: Option<f64>,
    flushes: Option<f64>,
    written_bytes: Option<f64>,
    others_bytes: Option<f64>,
    /// Time of one request at the devices.
    device_us: Option<f64>,
}

impl Usual {
    /// Of all moments that are not part of an episode. Means, not medians: what comes now and then is usual, too.
    pub(super) fn of<'a>(moments: impl Iterator<Item = &'a Moment> + Clone) -> Self {
        let per_s = |value: fn(&Moment) -> Option<u64>| {
            let (mut sum, mut us) = (0.0, 0.0);
            for moment in moments.clone() {
                sum += value(moment)? as f64;
                us += moment.length_us as f64;
            }
            (us > 0.0).then(|| sum / us * 1e6)
        };
        let completed = per_s(|moment| moment.completed);
        let device_us = per_s(|moment| moment.device_us);
        Self {
            waited_us: per_s(|moment| moment.waited_us),
            memory_stall_us: per_s(|moment| moment.memory_stall_us),
            retransmitted: per_s(|moment| moment.retransmitted),
            completed,
            flushes: per_s(|moment| moment.flushes),
            written_bytes: per_s(|moment| moment.written_bytes),
            others_bytes: per_s(|moment| moment.others_bytes),
            device_us: device_us.zip(completed).filter(|(_, count)| *count > 0.0).map(|(us, count)| us / count),
        }
    }
}

/// What holds for all episodes of a step.
pub(super) struct About<'a> {
    pub(super) usual: &'a Usual,
    /// Requests go to the device past the page cache, and this process sends them.
    pub(super) is_direct: bool,
    /// Operations are requests.
    pub(super) is_raw: bool,
    pub(super) step: &'a Step,
}

/// Sums over the moments around one span.
struct Around<'a> {
    moments: Vec<&'a Moment>,
    /// Length of the span in which operations were held up.
    span_us: f64,
    /// Length of the moments that touch it.
    seen_us: f64,
}

impl Around<'_> {
    fn sum(&self, value: fn(&Moment) -> Option<u64>) -> Option<f64> {
        self.moments.iter().map(|moment| value(moment).map(|value| value as f64)).sum()
    }

    fn per_s(&self, value: fn(&Moment) -> Option<u64>) -> Option<f64> {
        self.sum(value).map(|sum| sum / self.seen_us * 1e6)
    }

    /// The value as a share of the span, where it is far above what is usual.
    fn covers(&self, value: fn(&Moment) -> Option<u64>, least: f64, usual_per_s: Option<f64>) -> Option<f64> {
        let sum = self.sum(value)?;
        let usual = usual_per_s.unwrap_or(0.0) * self.seen_us / 1e6;
        (sum >= least * self.span_us && sum >= TIMES_USUAL * usual).then(|| sum / self.span_us)
    }

    /// Time of moments for which this holds.
    fn time_us(&self, is: impl Fn(&Moment) -> bool) -> f64 {
        self.moments.iter().filter(|moment| is(moment)).map(|moment| moment.length_us as f64).sum()
    }
}

impl About<'_> {
    /// What held operations up in this span, from the start of the load.
    pub(super) fn blame(&self, (from_ns, until_ns): (u64, u64), moments: &[(u64, Moment)]) -> Option<Blame> {
        let ends_ns =
            |(begin_ns, moment): &(u64, Moment)| begin_ns.saturating_add(moment.length_us.saturating_mul(1_000));
        let first = moments.partition_point(|one| ends_ns(one) <= from_ns);
        let touching = moments[first..].iter().take_while(|(begin_ns, _)| *begin_ns < until_ns);
        let around: Vec<&Moment> = touching.map(|(_, moment)| moment).collect();
        let seen_us: f64 = around.iter().map(|moment| moment.length_us as f64).sum();
        let span_us = (until_ns - from_ns) as f64 / 1e3;
        // Moments that cover too little of the span show too little of it.
        if seen_us < COVERS * span_us {
            return None;
        }
        let around = Around { moments: around, span_us, seen_us };
        let not_running = self.not_running(&around);
        // Threads that did not run although CPUs were free cannot tell what storage did meanwhile.
        if not_running.is_none() && self.waited(&around).is_some() {
            return None;
        }
        not_running
            .or_else(|| self.memory(&around))
            .or_else(|| self.retransmission(&around))
            .or_else(|| self.wait(from_ns, until_ns))
            .or_else(|| self.states((from_ns, until_ns), &NOT_STORAGE))
            .or_else(|| self.device(&around))
            .or_else(|| self.states((from_ns, until_ns), &STORAGE))
    }

    fn not_running(&self, around: &Around<'_>) -> Option<Blame> {
        let blame = |cause, evidence| Some(Blame { cause, evidence });
        let time = |share: f64| Nanos((share * around.span_us * 1e3) as u64);
        let throttled = around.covers(|moment| moment.throttled_us, COVERS_COUNTED, None);
        if let Some(share) = throttled {
            let stopped = time(share);
            return blame(StallCause::Quota, format!("the quota stopped threads for {stopped} in all"));
        }
        if let Some(share) = around.covers(|moment| moment.stolen_us, COVERS_COUNTED, None) {
            let stolen = time(share);
            return blame(StallCause::Stolen, format!("the hypervisor took {stolen} of CPU time"));
        }
        let idle = around.sum(|moment| moment.idle_us).map(|us| us / around.seen_us);
        if let Some(share) = self.waited(around).filter(|_| idle.is_some_and(|idle| idle < IDLE)) {
            let waited = time(share);
            return blame(
                StallCause::Processors,
                format!("the threads of the load were ready and got no CPU for {waited} in all, and no CPU was idle"),
            );
        }
        // A thread that comes before all others was late, too, and the kernel counts no wait for a CPU.
        let overslept = around.covers(|moment| Some(moment.overslept_us), COVERS, None)?;
        let is_waiting = around.sum(|moment| moment.waited_us).is_some_and(|us| us >= 0.25 * around.span_us);
        let late = time(overslept);
        (!is_waiting).then(|| Blame {
            cause: StallCause::Stopped,
            evidence: format!("no thread of this program ran for {late}, and none waited for a CPU"),
        })
    }

    /// Time for which threads of the load waited for a CPU, as a share of the span.
    fn waited(&self, around: &Around<'_>) -> Option<f64> {
        around.covers(|moment| moment.waited_us, COVERS, self.usual.waited_us)
    }

    fn memory(&self, around: &Around<'_>) -> Option<Blame> {
        let share = around.covers(|moment| moment.memory_stall_us, COVERS_COUNTED, self.usual.memory_stall_us)?;
        let stalled = Nanos((share * around.span_us * 1e3) as u64);
        Some(Blame {
            cause: StallCause::Memory,
            evidence: format!("tasks waited {stalled} for memory (`/proc/pressure/memory`)"),
        })
    }

    /// Only where operations cross a network.
    fn retransmission(&self, around: &Around<'_>) -> Option<Blame> {
        let crosses = !self.step.network.is_empty() || !self.step.channels.is_empty() || !self.step.servers.is_empty();
        let count = around.sum(|moment| moment.retransmitted).filter(|count| crosses && *count >= 1.0)?;
        let usual = self.usual.retransmitted.unwrap_or(0.0) * around.seen_us / 1e6;
        (count >= TIMES_USUAL * usual).then(|| Blame {
            cause: StallCause::Retransmission,
            evidence: format!("{count:.0} TCP segments were sent again"),
        })
    }

    /// An event that sessions waited for far longer than in other seconds. Reads and writes of storage are the device's.
    fn wait(&self, from_ns: u64, until_ns: u64) -> Option<Blame> {
        let is_of_storage = |event: &str| {
            let wait = self.step.waits.iter().find(|wait| wait.event == event);
            wait.is_none_or(|wait| !wait.foreground || wait.class == "User I/O" || wait.class == "System I/O")
        };
        let inside = || self.step.intervals.iter().filter(|interval| !interval.warmup);
        let is_near =
            |offset_ns: u64, length_ns: u64| offset_ns < until_ns && offset_ns.saturating_add(length_ns) > from_ns;
        let span_ns = (until_ns - from_ns) as f64;
        let events = self.step.waits.iter().map(|wait| wait.event.as_str()).filter(|event| !is_of_storage(event));
        let longest = events.filter_map(|event| {
            let (mut near_ns, mut other_ns, mut others) = (0.0, 0.0, 0.0);
            let mut longest_ns = 0;
            for interval in inside() {
                let waits = interval.waits.get(event);
                let total_ns = waits.and_then(|waits| waits.total_ns()).unwrap_or(0) as f64;
                if is_near(interval.offset_ns, interval.duration_ns) {
                    near_ns += total_ns;
                    longest_ns = longest_ns.max(waits.and_then(|waits| waits.max_ns()).unwrap_or(0));
                } else {
                    (other_ns, others) = (other_ns + total_ns, others + 1.0);
                }
            }
            let usual_ns = if others > 0.0 { other_ns / others } else { 0.0 };
            let fits = longest_ns as f64 >= COVERS * span_ns && near_ns >= TIMES_USUAL * usual_ns;
            fits.then_some((longest_ns, event))
        });
        let (longest_ns, event) = longest.max()?;
        let longest = Nanos(longest_ns);
        Some(Blame {
            cause: StallCause::Wait(event.to_owned()),
            evidence: format!("a session waited {longest} for `{event}`"),
        })
    }

    /// A state in which a server's sessions were found for most of the time, and far more often than in other seconds.
    fn states(&self, (from_ns, until_ns): (u64, u64), wanted: &[SessionState]) -> Option<Blame> {
        let is_near = |interval: &Interval| {
            interval.offset_ns < until_ns && interval.offset_ns.saturating_add(interval.duration_ns) > from_ns
        };
        let inside = || self.step.intervals.iter().filter(|interval| !interval.warmup);
        // Session seconds in this state, and seconds.
        let spent = |event: &str, near: bool| {
            let (mut sessions_s, mut seconds) = (0.0, 0.0);
            for interval in inside().filter(|interval| is_near(interval) == near) {
                let length_s = interval.duration_ns as f64 / 1e9;
                seconds += length_s;
                for server in interval.servers.iter().filter(|server| server.sampled_times > 0) {
                    let samples = server.session_samples.get(event).copied().unwrap_or(0);
                    sessions_s += samples as f64 / server.sampled_times as f64 * length_s;
                }
            }
            (sessions_s, seconds)
        };
        let events = self.step.servers.iter().flat_map(|server| &server.session_states);
        let events = events.filter(|(_, state)| wanted.contains(state)).map(|(event, _)| event.as_str());
        let all_s = f64::from(self.step.load.sessions?) * (until_ns - from_ns) as f64 / 1e9;
        let most = events
            .filter_map(|event| {
                let (near_s, near) = spent(event, true);
                let (other_s, other) = spent(event, false);
                let usual_s = if other > 0.0 { other_s / other * near } else { 0.0 };
                (near_s >= STATE_SHARE * all_s && near_s >= TIMES_USUAL * usual_s).then_some((near_s / near, event))
            })
            .max_by(|one, other| one.0.total_cmp(&other.0))?;
        let (sessions, event) = most;
        Some(Blame {
            cause: StallCause::Wait(event.to_owned()),
            evidence: format!("{sessions:.1} sessions on average were found in `{event}` in these seconds"),
        })
    }

    fn device(&self, around: &Around<'_>) -> Option<Blame> {
        let blame = |cause, evidence| Some(Blame { cause, evidence });
        let usual = self.usual;
        around.sum(|moment| moment.completed)?;
        let time = |us: f64| Nanos((us.min(around.span_us) * 1e3) as u64);
        let is_silent = |moment: &Moment| moment.completed == Some(0);
        let holding = around.time_us(|moment| is_silent(moment) && moment.in_flight.is_some_and(|count| count > 0));
        if holding >= COVERS * around.span_us {
            let length = time(holding);
            return blame(
                StallCause::DeviceSilent,
                format!("the device held requests and completed none for {length}"),
            );
        }
        let empty = around.time_us(|moment| is_silent(moment) && moment.in_flight == Some(0));
        if empty >= COVERS * around.span_us && self.is_direct && usual.completed.is_some_and(|per_s| per_s > 0.0) {
            let length = time(empty);
            return blame(
                StallCause::BeforeDevice,
                format!("requests were outstanding, and the device had none for {length}"),
            );
        }
        let each_us = around.sum(|moment| moment.device_us)? / around.sum(|moment| moment.completed)?.max(1.0);
        let times = each_us / usual.device_us.filter(|us| *us > 0.0)?;
        let others = around.sum(|moment| moment.others_bytes).filter(|_| self.is_direct);
        let others_per_s = around.per_s(|moment| moment.others_bytes);
        let many = |now: Option<f64>, usual: Option<f64>| {
            let (now, usual) = (now?, usual?);
            (now >= MANY_TIMES * usual && now > 0.0).then_some(now)
        };
        if times >= NOT_SLOW_TIMES && self.is_raw {
            let all = others.and_then(|others| Some(others / (others + self.own_bytes(around)?)));
            let more = many(others_per_s, usual.others_bytes);
            if let (Some(share), Some(_)) = (all.filter(|share| *share >= OTHERS), more) {
                let percent = (share * 100.0).round();
                return blame(StallCause::Neighbour, format!("{percent} % of the device's bytes were others'"));
            }
        }
        let done = around.per_s(|moment| moment.completed)? / usual.completed.filter(|per_s| *per_s > 0.0)?;
        if times < NOT_SLOW_TIMES && done < FEW && self.is_raw && self.is_direct {
            let percent = (done * 100.0).round();
            let words = format!("the device did {percent} % of its usual requests, none of them slower than usual");
            return blame(StallCause::BeforeDevice, words);
        }
        if times < SLOW_TIMES {
            return None;
        }
        let words = format!(
            "a request took {} at the device, {times:.1} times as long as usual",
            Nanos((each_us * 1e3) as u64)
        );
        let writes = many(around.per_s(|moment| moment.written_bytes), usual.written_bytes);
        let flushes = many(around.per_s(|moment| moment.flushes), usual.flushes);
        if writes.is_some() || flushes.is_some() {
            let what = if writes.is_some() { "written bytes" } else { "flushes" };
            return blame(StallCause::Writes, format!("{words}, with {MANY_TIMES:.0} times the usual {what} or more"));
        }
        blame(StallCause::DeviceSlow, words)
    }

    /// Bytes of ours in these moments, from what we moved in the window.
    fn own_bytes(&self, around: &Around<'_>) -> Option<f64> {
        let counters = &self.step.counters;
        let bytes = counters.physical_read_bytes.unwrap_or(0) + counters.physical_write_bytes.unwrap_or(0);
        let window_us = self.step.window.duration_ns as f64 / 1e3;
        (window_us > 0.0 && bytes > 0).then(|| bytes as f64 / window_us * around.seen_us)
    }
}
