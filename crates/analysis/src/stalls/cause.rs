//! The rules by which an episode gets its cause. Each says what must be seen and what must not.
//!
//! They stand in the order in which one excludes the others: who did not run cannot tell what storage did, and what is known of the
//! device says more than what is known of the way to it.

use std::collections::BTreeMap;

use super::servers::{Average, Found, ServersSeen, state_of};
use crate::is_on_server;
use model::record::{
    Activity, ChannelKind, ChannelStats, Interval, Look, Moment, ServerWork, SessionState, Step, WaitStats,
};
use model::units::Nanos;

/// Why operations were slow for a while.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StallCause {
    /// Nothing of this program ran although CPUs were free, and memory was not seen to be short: it, its control group, or the whole virtual machine was stopped.
    Stopped,
    /// The CPU quota of the control group stopped the threads of the load.
    Quota,
    /// The hypervisor took the CPUs.
    Stolen,
    /// Threads of the load were ready to run, and no CPU was idle: other programs, or the load itself, had them.
    Processors,
    /// Tasks waited for memory.
    Memory,
    /// Packets were lost, and sent again.
    Retransmission,
    /// The server answered nothing, not even a question that needs neither storage nor locks.
    ServerSilent,
    /// Sessions waited for locks that this one held.
    HeldLock(String),
    /// A checkpoint of the server wrote, or made durable what it had written, and sessions waited for storage.
    Checkpoint,
    /// The server vacuumed tables by itself, and sessions waited for storage.
    Autovacuum,
    /// Sessions waited for this event.
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
/// Fewer TCP segments than this are sent again now and then on every machine.
const FEW_SEGMENTS: f64 = 3.0;
/// What is usual is known from so many microseconds on.
const USUAL_KNOWN_US: f64 = 500_000.0;
/// Spans shorter than this are too short for moments.
const SHORTEST_NS: u64 = 8_000_000;
/// Events that are looked at, those with most time.
const MAX_EVENTS: usize = 64;
/// CPUs are free if they were idle for so much of the time of one of them.
const IDLE: f64 = 0.2;

/// Of all session time in an episode, the share in one state of the server's sessions.
pub(super) const STATE_SHARE: f64 = 0.4;
/// States in which a session waits for something but storage, and those in which it waits for storage that may be out of sight.
const NOT_STORAGE: [SessionState; 3] = [SessionState::Lock, SessionState::Log, SessionState::Other];
pub(super) const STORAGE: [SessionState; 3] = [SessionState::LogWrite, SessionState::Read, SessionState::ReadElsewhere];
/// Fewer looks than this say nothing of a span.
pub(super) const FEWEST_LOOKS: usize = 3;
/// Work of the server is in the way of sessions only where its devices write so much of what is usual.
const AS_MUCH: f64 = 0.8;
/// How soon servers report what a checkpoint wrote.
const SECOND_NS: u64 = 1_000_000_000;
/// So large a part of the slow sessions is nearly all of them.
const NEARLY_ALL: f64 = 0.8;
/// Parts of a checkpoint that press on storage: one that pauses goes on most of the time.
const CHECKPOINT: [ServerWork; 2] = [ServerWork::CheckpointWrite, ServerWork::CheckpointSync];

/// What is usual outside of episodes, by the second; absent where too little of it was seen.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Usual {
    throttled_us: Option<f64>,
    stolen_us: Option<f64>,
    waited_us: Option<f64>,
    memory_stall_us: Option<f64>,
    retransmitted: Option<f64>,
    completed: Option<f64>,
    flushes: Option<f64>,
    written_bytes: Option<f64>,
    others_bytes: Option<f64>,
    /// Requests that the devices held, on average.
    in_flight: Option<f64>,
    /// Time of one request at the devices.
    device_us: Option<f64>,
}

impl Usual {
    /// Of all moments that are not part of an episode. Means, not medians: what comes now and then is usual, too.
    pub(super) fn of<'a>(moments: impl Iterator<Item = &'a Moment> + Clone) -> Self {
        let per_s = |value: fn(&Moment) -> Option<u64>| {
            let (mut sum, mut us) = (0.0, 0.0);
            for moment in moments.clone() {
                let Some(value) = value(moment) else { continue };
                sum += value as f64;
                us += moment.length_us as f64;
            }
            (us >= USUAL_KNOWN_US).then(|| sum / us * 1e6)
        };
        let (mut held, mut looks) = (0.0, 0.0);
        for in_flight in moments.clone().filter_map(|moment| moment.in_flight) {
            (held, looks) = (held + in_flight as f64, looks + 1.0);
        }
        let completed = per_s(|moment| moment.completed);
        let device_us = per_s(|moment| moment.device_us);
        Self {
            throttled_us: per_s(|moment| moment.throttled_us),
            stolen_us: per_s(|moment| moment.stolen_us),
            waited_us: per_s(|moment| moment.waited_us),
            memory_stall_us: per_s(|moment| moment.memory_stall_us),
            retransmitted: per_s(|moment| moment.retransmitted),
            completed,
            flushes: per_s(|moment| moment.flushes),
            written_bytes: per_s(|moment| moment.written_bytes),
            others_bytes: per_s(|moment| moment.others_bytes),
            in_flight: (looks > 0.0).then(|| held / looks),
            device_us: device_us.zip(completed).filter(|(_, count)| *count > 0.0).map(|(us, count)| us / count),
        }
    }
}

/// What holds for all episodes of a step.
pub(super) struct About<'a> {
    usual: &'a Usual,
    /// Requests go to the device past the page cache, and this process sends them.
    is_direct: bool,
    /// Operations are requests.
    is_raw: bool,
    step: &'a Step,
    /// Looks at database servers, and what they show outside of episodes.
    servers: &'a ServersSeen,
    usual_each: Vec<Average>,
    usual_looks: Option<Average>,
    /// When the window ended: after that nothing more was sent, so that devices and servers are idle for no other reason.
    window_end_ns: u64,
    /// The window's intervals.
    inside: Vec<&'a Interval>,
    /// Events that sessions wait for, each with its total time in the window and whether it is of storage, the longest first.
    events: Vec<(&'a str, f64, EventKind)>,
    /// States of servers' sessions, each with session seconds in the window.
    states: Vec<(&'a str, SessionState, f64)>,
}

/// What an event is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventKind {
    /// Of storage, or the operation itself.
    Storage,
    /// A commit, which waits for storage and for others.
    Commit,
    /// Of anything else.
    Other,
}

impl EventKind {
    fn of(wait: &WaitStats) -> Self {
        match wait.class.as_str() {
            _ if !wait.foreground => Self::Storage,
            "User I/O" | "System I/O" | "Network" => Self::Storage,
            "Commit" => Self::Commit,
            _ => Self::Other,
        }
    }
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

    /// Time that covers so large a share of all these moments and of the span, and is far above what is usual.
    fn covers(&self, value: fn(&Moment) -> Option<u64>, least: f64, usual_per_s: Option<f64>) -> Option<Nanos> {
        let sum = self.sum(value)?;
        let usual = usual_per_s? * self.seen_us / 1e6;
        let covers = sum >= least * self.seen_us.max(self.span_us) && sum >= TIMES_USUAL * usual;
        covers.then_some(Nanos((sum * 1e3) as u64))
    }

    /// Time of moments for which this holds.
    fn time_us(&self, is: impl Fn(&Moment) -> bool) -> f64 {
        self.moments.iter().filter(|moment| is(moment)).map(|moment| moment.length_us as f64).sum()
    }
}

impl<'a> About<'a> {
    pub(super) fn new(
        (usual, usual_each): (&'a Usual, Vec<Average>),
        (is_direct, is_raw): (bool, bool),
        (step, servers): (&'a Step, &'a ServersSeen),
    ) -> Self {
        let inside: Vec<&Interval> = step.intervals.iter().filter(|interval| !interval.warmup).collect();
        let all = |event: &str| {
            let waits = inside.iter().filter_map(|interval| interval.waits.get(event)?.total_ns());
            waits.map(|ns| ns as f64).sum::<f64>()
        };
        let mut waits: Vec<&WaitStats> = step.waits.iter().collect();
        waits.sort_by_key(|wait| std::cmp::Reverse(wait.sum().total_ns));
        let events = waits.into_iter().take(MAX_EVENTS);
        let events = events.map(|wait| (wait.event.as_str(), all(&wait.event), EventKind::of(wait))).collect();
        let named: BTreeMap<&str, SessionState> = step
            .servers
            .iter()
            .flat_map(|server| &server.session_states)
            .map(|(event, state)| (event.as_str(), state_of(event, *state)))
            .collect();
        let session_s = |event: &str| inside.iter().map(|interval| session_s(interval, event)).sum::<f64>();
        let states =
            named.into_iter().take(MAX_EVENTS).map(|(event, state)| (event, state, session_s(event))).collect();
        let usual_looks = Average::of_all(&usual_each);
        let window_end_ns = step.window.warmup_ns.saturating_add(step.window.duration_ns);
        Self { usual, is_direct, is_raw, step, servers, usual_each, usual_looks, window_end_ns, inside, events, states }
    }

    /// What held operations of so many sessions up in this span, from the start of the load.
    pub(super) fn blame(&self, span: (u64, u64), sessions: usize, moments: &[(u64, Moment)]) -> Option<Blame> {
        let (from_ns, until_ns) = (span.0, span.1.min(self.window_end_ns));
        let span = (from_ns, until_ns);
        if until_ns.saturating_sub(from_ns) < SHORTEST_NS {
            return None;
        }
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
        let each = self.servers.during(span);
        let all = Average::of_all(&each).filter(|all| all.covered_ns as f64 >= COVERS * span_us * 1e3);
        let looked = all.filter(|all| all.looks >= FEWEST_LOOKS);
        let looked = looked.map(|average| Looked::of(self, (average, each), sessions));
        let states = |wanted: &[SessionState]| match &looked {
            Some(looked) => self.states_in_looks(looked, wanted),
            None => self.states(span, wanted),
        };
        not_running
            .or_else(|| self.retransmission(&around, sessions))
            .or_else(|| self.silent_server(span))
            .or_else(|| self.silent(&around))
            .or_else(|| self.idle(&around).filter(|_| self.is_raw))
            .or_else(|| self.wait(span, EventKind::Other))
            .or_else(|| looked.as_ref()?.held_lock())
            .or_else(|| states(&NOT_STORAGE))
            .or_else(|| self.idle(&around))
            .or_else(|| self.server_work(span, looked.as_ref()?, &around))
            .or_else(|| self.slow(&around))
            .or_else(|| self.wait(span, EventKind::Commit))
            .or_else(|| states(&STORAGE))
            .or_else(|| looked.as_ref()?.own_locks())
    }

    fn not_running(&self, around: &Around<'_>) -> Option<Blame> {
        let blame = |cause, evidence| Some(Blame { cause, evidence });
        // The kernel adds up the time of all processors and of the whole group. Its wait for a CPU contains the time for which the quota
        // stopped a thread, so that one that waited little was not stopped.
        let waited_us = around.sum(|moment| moment.waited_us);
        let may_be_stopped = waited_us.is_none_or(|waited_us| waited_us >= 0.25 * around.span_us);
        let of_ours = |moment: &Moment| Some(moment.throttled_us?.min(moment.waited_us.unwrap_or(u64::MAX)));
        let throttled = around.covers(of_ours, COVERS_COUNTED, self.usual.throttled_us);
        if let Some(time) = throttled.filter(|_| may_be_stopped) {
            return blame(StallCause::Quota, format!("the quota stopped threads for {time} in all"));
        }
        if let Some(time) = around.covers(|moment| moment.stolen_us, COVERS_COUNTED, self.usual.stolen_us) {
            return blame(StallCause::Stolen, format!("the hypervisor took {time} from each CPU on average"));
        }
        let idle = around.sum(|moment| moment.idle_us).map(|us| us / around.seen_us);
        if let Some(time) = self.waited(around).filter(|_| idle.is_some_and(|idle| idle < IDLE)) {
            return blame(
                StallCause::Processors,
                format!("a thread of the load was ready and got no CPU for {time}, and no CPU was idle"),
            );
        }
        // A thread that waits for memory is late as well, and waits for no CPU.
        if let Some(memory) = self.memory(around).filter(|_| self.waited(around).is_none()) {
            return Some(memory);
        }
        let is_short_of_memory = around.sum(|moment| moment.memory_stall_us);
        if is_short_of_memory.is_some_and(|us| us >= COVERS_COUNTED * around.seen_us) {
            return None;
        }
        // A thread that comes before all others was late, too, and the kernel counts no wait for a CPU.
        let late = around.covers(|moment| Some(moment.overslept_us), COVERS, Some(0.0))?;
        let waited_us = around.sum(|moment| moment.waited_us)?;
        (waited_us < 0.25 * around.span_us).then(|| Blame {
            cause: StallCause::Stopped,
            evidence: format!("no thread of this program ran for {late}, and none waited for a CPU"),
        })
    }

    /// Time for which a thread of the load waited for a CPU.
    fn waited(&self, around: &Around<'_>) -> Option<Nanos> {
        around.covers(|moment| moment.waited_us, COVERS, self.usual.waited_us)
    }

    fn memory(&self, around: &Around<'_>) -> Option<Blame> {
        let stalled = around.covers(|moment| moment.memory_stall_us, COVERS_COUNTED, self.usual.memory_stall_us)?;
        Some(Blame {
            cause: StallCause::Memory,
            evidence: format!("tasks waited {stalled} for memory (`/proc/pressure/memory`)"),
        })
    }

    /// Only where operations cross a network. The kernel counts for the whole machine.
    /// TCP segments were sent again. Of a load on servers it is not known whether it crosses a network: then each session that was held up must
    /// have sent one.
    fn retransmission(&self, around: &Around<'_>, sessions: usize) -> Option<Blame> {
        let is_network = |channel: &ChannelStats| channel.kind != ChannelKind::Member;
        let crosses = !self.step.network.is_empty() || self.step.channels.iter().any(is_network);
        let is_to_servers = !self.usual_each.is_empty();
        let count = around.sum(|moment| moment.retransmitted).filter(|_| crosses || is_to_servers)?;
        let least = if crosses { FEW_SEGMENTS } else { FEW_SEGMENTS.max(sessions as f64) };
        let usual = self.usual.retransmitted? * around.seen_us / 1e6;
        (count >= least && count >= TIMES_USUAL * usual).then(|| Blame {
            cause: StallCause::Retransmission,
            evidence: format!("{count:.0} TCP segments were sent again"),
        })
    }

    /// Intervals of the window that touch a span. They are in their order in every record of ours.
    fn near(&self, (from_ns, until_ns): (u64, u64)) -> &[&'a Interval] {
        let ends_ns = |interval: &&Interval| interval.offset_ns.saturating_add(interval.duration_ns);
        let first = self.inside.partition_point(|interval| ends_ns(interval) <= from_ns);
        let count = self.inside[first..].iter().take_while(|interval| interval.offset_ns < until_ns).count();
        &self.inside[first..first + count]
    }

    /// An event of this kind that a session waited for during most of the span, and far longer than in other seconds.
    fn wait(&self, span: (u64, u64), kind: EventKind) -> Option<Blame> {
        let near = self.near(span);
        let others = (self.inside.len() - near.len()) as f64;
        let span_ns = (span.1 - span.0) as f64;
        let longest = self.events.iter().filter(|(.., of)| *of == kind).filter_map(|(event, all_ns, _)| {
            let waits = || near.iter().filter_map(|interval| interval.waits.get(*event));
            let near_ns: f64 = waits().filter_map(|waits| waits.total_ns()).map(|ns| ns as f64).sum();
            let longest_ns = waits().filter_map(|waits| waits.max_ns()).max()?;
            let usual_ns = if others > 0.0 { (all_ns - near_ns).max(0.0) / others } else { 0.0 };
            let fits = longest_ns as f64 >= COVERS * span_ns && near_ns >= TIMES_USUAL * usual_ns * near.len() as f64;
            fits.then_some((longest_ns, *event))
        });
        let (longest_ns, event) = longest.max()?;
        let longest = Nanos(longest_ns);
        Some(Blame {
            cause: StallCause::Wait(event.to_owned()),
            evidence: format!("a session waited {longest} for `{event}`"),
        })
    }

    /// A state in which a server's sessions were found for most of the time, and far more often than in other seconds.
    fn states(&self, span: (u64, u64), wanted: &[SessionState]) -> Option<Blame> {
        let near = self.near(span);
        let seconds =
            |intervals: &[&Interval]| intervals.iter().map(|interval| interval.duration_ns as f64 / 1e9).sum::<f64>();
        let (near_length_s, all_length_s) = (seconds(near), seconds(&self.inside));
        let stalled_s = f64::from(self.step.load.sessions?) * (span.1 - span.0) as f64 / 1e9;
        let most = self.states.iter().filter(|(_, state, _)| wanted.contains(state)).filter_map(|(event, _, all_s)| {
            let near_s: f64 = near.iter().map(|interval| session_s(interval, event)).sum();
            let other_length_s = all_length_s - near_length_s;
            let usual_s =
                if other_length_s > 0.0 { (all_s - near_s).max(0.0) / other_length_s * near_length_s } else { 0.0 };
            // What is usual was also found outside of the span.
            let fits = near_s - usual_s >= STATE_SHARE * stalled_s && near_s >= TIMES_USUAL * usual_s;
            fits.then_some((near_s / near_length_s, *event))
        });
        let (sessions, event) = most.max_by(|one, other| one.0.total_cmp(&other.0))?;
        Some(Blame {
            cause: StallCause::Wait(event.to_owned()),
            evidence: format!("{sessions:.1} sessions on average were found in `{event}` in these seconds"),
        })
    }

    /// The same by looks: in the span that many of the stalled sessions were in one of these states, and far fewer usually are.
    fn states_in_looks(&self, looked: &Looked, wanted: &[SessionState]) -> Option<Blame> {
        let groups: Vec<&[SessionState]> = match wanted == STORAGE.as_slice() {
            true => vec![wanted],
            // Waits for each other among sessions of the load follow from what holds up the first of them.
            false => wanted
                .chunks(1)
                .filter(|state| looked.lock_waiters == 0.0 || state != &[SessionState::Lock].as_slice())
                .collect(),
        };
        let most = groups.into_iter().filter_map(|states| {
            let found = self.servers.found(&looked.average, states)?;
            self.is_unusual(&found, states, looked).then_some(found)
        });
        let found = most.max_by(|one, other| one.sessions.total_cmp(&other.sessions))?;
        Some(Blame {
            cause: StallCause::Wait(found.event.to_owned()),
            evidence: format!("{:.1} of {} sessions were found in `{}`", found.sessions, looked.sessions, found.event),
        })
    }

    /// Whether many of the stalled sessions were in these states, far more than usual, and more than a few looks show by chance: counts
    /// scatter by the square root of their mean (Poisson).
    fn is_unusual(&self, found: &Found<'_>, states: &[SessionState], looked: &Looked) -> bool {
        let Some(usual) = &self.usual_looks else { return false };
        let usual = self.servers.found(usual, states).map_or(0.0, |usual| usual.sessions);
        let more = found.sessions - usual;
        more >= STATE_SHARE * looked.stalled()
            && found.sessions >= TIMES_USUAL * usual
            && more >= 3.0 * ((usual + 1.0) / looked.average.looks as f64).sqrt()
    }

    /// The server did something by itself that presses on storage, as it usually does not, while sessions waited for storage.
    fn server_work(&self, span: (u64, u64), looked: &Looked, around: &Around<'_>) -> Option<Blame> {
        let is_writing = self.device_writes(around);
        if is_writing == Some(false) {
            return None;
        }
        looked.each.iter().zip(&self.usual_each).find_map(|(now, usual)| {
            let waiting = |average| self.servers.found(average, &STORAGE).map_or(0.0, |found| found.sessions);
            let waiting_now = waiting(now);
            // Sessions behind locks of others of the load would wait for storage as well.
            let usual_waiting = waiting(usual) * looked.stalled() / (looked.sessions as f64).max(1.0);
            let (least, all) = (STATE_SHARE * looked.stalled(), NEARLY_ALL * looked.stalled());
            if waiting_now < all && waiting_now - usual_waiting < least {
                return None;
            }
            let unusual = |wanted: &[ServerWork]| {
                let (share, usual) = (now.work(wanted)?, usual.work(wanted)?);
                (share >= COVERS && share >= TIMES_USUAL * usual).then_some((share * 100.0).round())
            };
            let of_sessions = format!("{waiting_now:.1} of {} sessions waited for storage", looked.sessions);
            let of_checkpoint = unusual(&CHECKPOINT);
            if let Some(percent) = of_checkpoint.filter(|_| is_writing.unwrap_or_else(|| self.checkpoint_writes(span)))
            {
                let is_sync = now.work(&[ServerWork::CheckpointSync]) >= now.work(&[ServerWork::CheckpointWrite]);
                let did = if is_sync { "made durable what it had written" } else { "wrote without a pause" };
                let evidence = format!("a checkpoint {did} for {percent} % of the time, and {of_sessions}");
                return Some(Blame { cause: StallCause::Checkpoint, evidence });
            }
            unusual(&[ServerWork::Autovacuum]).filter(|_| is_writing.is_some()).map(|percent| Blame {
                cause: StallCause::Autovacuum,
                evidence: format!("the server's own vacuum was at work for {percent} % of the time, and {of_sessions}"),
            })
        })
    }

    /// Whether the devices went on writing: sessions stand still, so what is written is not theirs. A volume at its limit writes no more than
    /// usual, and one that hangs far less. Unknown where devices are out of sight.
    fn device_writes(&self, around: &Around<'_>) -> Option<bool> {
        let (now, usual) = around.per_s(|moment| moment.written_bytes).zip(self.usual.written_bytes)?;
        Some(now >= AS_MUCH * usual && now > 0.0)
    }

    /// The same by the servers' own counts of blocks that checkpoints wrote, which they may report only at the end: far more than usual in these
    /// seconds and the next.
    fn checkpoint_writes(&self, (from_ns, until_ns): (u64, u64)) -> bool {
        let near = self.near((from_ns, until_ns.saturating_add(SECOND_NS)));
        let blocks = |intervals: &[&Interval]| {
            let servers = intervals.iter().flat_map(|interval| &interval.servers);
            let counts = servers.filter_map(|server| server.activity.get(&Activity::BlocksWrittenByCheckpoints));
            counts.map(|count| *count as f64).sum::<f64>()
        };
        let (now, others) = (blocks(near), self.inside.len() - near.len());
        let usual = (blocks(&self.inside) - now) / others.max(1) as f64;
        now > 0.0 && now >= TIMES_USUAL * usual * near.len() as f64
    }

    /// The server did not say what its sessions do for most of the span, which it knows without reading or locking anything.
    fn silent_server(&self, span: (u64, u64)) -> Option<Blame> {
        let silent_ns = self.servers.silent_ns(span, self.usual_looks.as_ref()?);
        (silent_ns as f64 >= COVERS * (span.1 - span.0) as f64 && silent_ns > 0).then(|| Blame {
            cause: StallCause::ServerSilent,
            evidence: format!("the server did not even say what its sessions do for {}", Nanos(silent_ns)),
        })
    }

    /// The device held requests and completed none.
    fn silent(&self, around: &Around<'_>) -> Option<Blame> {
        let holds = |moment: &Moment| moment.completed == Some(0) && moment.in_flight.is_some_and(|count| count > 0);
        let us = around.time_us(holds).min(around.span_us);
        let length = Nanos((us * 1e3) as u64);
        (us >= COVERS * around.span_us).then(|| Blame {
            cause: StallCause::DeviceSilent,
            evidence: format!("the device held requests and completed none for {length}"),
        })
    }

    /// The device had nothing to do, although operations were under way and the load keeps it busy otherwise.
    fn idle(&self, around: &Around<'_>) -> Option<Blame> {
        let is_empty = |moment: &Moment| moment.completed == Some(0) && moment.in_flight == Some(0);
        let us = around.time_us(is_empty).min(around.span_us);
        let length = Nanos((us * 1e3) as u64);
        let is_used = self.is_direct && self.usual.completed.is_some_and(|per_s| per_s > 0.0);
        (us >= COVERS * around.span_us && is_used).then(|| Blame {
            cause: StallCause::BeforeDevice,
            evidence: format!("requests were outstanding, and the device had none for {length}"),
        })
    }

    /// The device did less or took longer than usual.
    fn slow(&self, around: &Around<'_>) -> Option<Blame> {
        let blame = |cause, evidence| Some(Blame { cause, evidence });
        let usual = self.usual;
        let completed = around.sum(|moment| moment.completed)?;
        let each_us = around.sum(|moment| moment.device_us)? / completed.max(1.0);
        let times = each_us / usual.device_us.filter(|us| *us > 0.0)?;
        let many = |now: Option<f64>, usual: Option<f64>| {
            let (now, usual) = (now?, usual?);
            (now >= MANY_TIMES * usual && now > 0.0).then_some(now)
        };
        if times >= NOT_SLOW_TIMES && self.is_raw && self.is_direct {
            let others = around.sum(|moment| moment.others_bytes);
            let all = others.and_then(|others| Some(others / (others + self.own_bytes(around)?)));
            let more = many(around.per_s(|moment| moment.others_bytes), usual.others_bytes);
            if let (Some(share), Some(_)) = (all.filter(|share| *share >= OTHERS), more) {
                let percent = (share * 100.0).round();
                return blame(StallCause::Neighbour, format!("{percent} % of the device's bytes were others'"));
            }
        }
        let done = around.per_s(|moment| moment.completed)? / usual.completed.filter(|per_s| *per_s > 0.0)?;
        // Requests that a device still holds are in no time of it.
        let held = around.sum(|moment| moment.in_flight)? / around.moments.len().max(1) as f64;
        let is_emptier = usual.in_flight.is_some_and(|usual| held <= FEW * usual);
        if times < NOT_SLOW_TIMES && done < FEW && is_emptier && self.is_raw && self.is_direct {
            let percent = (done * 100.0).round();
            let words = format!("the device did {percent} % of its usual requests, none of them slower than usual");
            return blame(StallCause::BeforeDevice, words);
        }
        // One that mostly has nothing to do does not hold anything up, however long its few requests take.
        let busy = around.sum(|moment| moment.device_us)? / around.seen_us;
        if times < SLOW_TIMES || busy.max(held) < COVERS {
            return None;
        }
        let each = Nanos((each_us * 1e3) as u64);
        let words = format!("a request took {each} at the device, {times:.1} times as long as usual");
        let writes = many(around.per_s(|moment| moment.written_bytes), usual.written_bytes);
        let flushes = many(around.per_s(|moment| moment.flushes), usual.flushes);
        if writes.is_some() || flushes.is_some() {
            let what = if writes.is_some() { "written bytes" } else { "flushes" };
            if !is_on_server(self.step) && self.step.counters.physical_write_bytes == Some(0) {
                let words =
                    format!("{words}, with {MANY_TIMES:.0} times the usual {what} or more, of which none were ours");
                return blame(StallCause::Neighbour, words);
            }
            return blame(StallCause::Writes, format!("{words}, with {MANY_TIMES:.0} times the usual {what} or more"));
        }
        blame(StallCause::DeviceSlow, words)
    }

    /// Bytes of ours in these moments, from what we moved in the window.
    fn own_bytes(&self, around: &Around<'_>) -> Option<f64> {
        let counters = &self.step.counters;
        let [read, written] =
            [counters.physical_read_bytes, counters.physical_write_bytes].map(Option::unwrap_or_default);
        let bytes = read.saturating_add(written);
        let window_us = self.step.window.duration_ns as f64 / 1e3;
        (window_us > 0.0 && bytes > 0).then(|| bytes as f64 / window_us * around.seen_us)
    }
}

/// What looks at servers show of one span.
struct Looked {
    /// Of all servers together.
    average: Average,
    each: Vec<Average>,
    /// Sessions whose operations were slow.
    sessions: usize,
    /// Sessions that waited for locks, on average, where that is unusual.
    in_locks: Option<f64>,
    /// Of these, those that waited for others of the load alone.
    lock_waiters: f64,
}

impl Looked {
    fn of(about: &About<'_>, (average, each): (Average, Vec<Average>), sessions: usize) -> Self {
        let mut looked = Self { average, each, sessions, in_locks: None, lock_waiters: 0.0 };
        let states = [SessionState::Lock];
        let found = about.servers.found(&looked.average, &states);
        looked.in_locks = found.filter(|found| about.is_unusual(found, &states, &looked)).map(|found| found.sessions);
        if looked.average.blocker() == Some(Look::OWN) {
            looked.lock_waiters = looked.in_locks.unwrap_or(0.0);
        }
        looked
    }

    /// Sessions that were held up by something else than by each other, at least one.
    fn stalled(&self) -> f64 {
        (self.sessions as f64 - self.lock_waiters).max(1.0)
    }

    /// Another than the load's own sessions held locks.
    fn held_lock(&self) -> Option<Blame> {
        self.locked(|by| by != Look::OWN)
    }

    /// The load's sessions waited for each other, and nothing is known of what held up the first.
    fn own_locks(&self) -> Option<Blame> {
        self.locked(|by| by == Look::OWN)
    }

    fn locked(&self, is_meant: impl Fn(&str) -> bool) -> Option<Blame> {
        let by = self.average.blocker().filter(|by| is_meant(by))?;
        let (waiting, sessions) = (self.in_locks?, self.sessions);
        Some(Blame {
            cause: StallCause::HeldLock(by.to_owned()),
            evidence: format!("{waiting:.1} of {sessions} sessions waited for a lock, held by {by}"),
        })
    }
}

/// Session seconds that servers' sessions spent in a state in an interval, from samples.
fn session_s(interval: &Interval, event: &str) -> f64 {
    let length_s = interval.duration_ns as f64 / 1e9;
    let sampled = interval.servers.iter().filter(|server| server.sampled_times > 0);
    let sessions = sampled
        .map(|server| server.session_samples.get(event).copied().unwrap_or(0) as f64 / server.sampled_times as f64);
    sessions.sum::<f64>() * length_s
}
