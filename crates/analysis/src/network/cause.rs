//! Which of all that can stop bulk data did. docs/workloads/host-network.md says how they are distinguished.

use super::{Way, stray};
use crate::levels::median;
use model::record::{NetworkEnd, NetworkSide, ProcessorTime, ThreadTime};
use model::units::Nanos;

/// Connections that had something to send for less than this share were not stopped by anything below the program.
const MIN_BUSY: f64 = 0.5;
/// A thread that ran, or was ready to and found no processor, for this share had no more to give.
const THREAD_FULL: f64 = 0.9;
/// Such a share of waiting means that others had the processor. Each time that it waits the other end may have to wait for it, so
/// that less than the whole time is seen here. Nor is the whole time seen of a receiver that always had something to take: what is
/// missing then went to soft interrupts and to other machines on the same host.
const OTHERS_RAN: f64 = 0.25;
const THREAD_FULL_BESIDE_OTHERS: f64 = 0.75;
/// A host whose processors were idle for less than this share of the time had none to spare.
const FEW_IDLE: f64 = 0.1;
/// A limit on processor time that kept the process from running for this share of time decides how fast it is.
const THROTTLED: f64 = 0.1;
/// A processor that is busy for this share is full, and with this share of interrupts it is so by receiving.
const PROCESSOR_FULL: f64 = 0.95;
const BY_INTERRUPTS: f64 = 0.7;
/// What held connections back for this share of the time in which they had something to send is what stopped them: the
/// kernel books each instant under one cause alone.
const HELD_BACK: f64 = 0.5;
/// Where what was on its way filled a window, in round trips that no queue made longer than this many times the least one, less is
/// enough: while acknowledgements come late, since a processor is busy, the kernel books the time elsewhere.
const WINDOW_FILLED: f64 = 0.75;
const UNQUEUED: f64 = 1.5;
/// The send buffer, likewise: as soon as a part of it is acknowledged the program fills it again, and that part is not counted.
const BUFFER_HELD_BACK: f64 = 0.3;
/// It is enough if what was on its way, rate × round trip, filled the buffer as far as it can: the rest holds the kernel's own data.
/// A buffer that the kernel sizes itself holds twice of what is on its way, so only one at its largest is filled like that. Where a
/// queue makes the round trip longer, the queue may be what fills it.
const BUFFER_HELD_BACK_AT_TIMES: f64 = 0.03;
const BUFFER_FILLED: f64 = 0.75;
/// A program that leaves unread half of what its window offers is late, also while the window is not closed: each time that it
/// reads, the sender hears of it.
const LATE: f64 = 0.2;
const LEFT_UNREAD: f64 = 0.5;
/// Such a share of bytes sent again halves windows all the time. TCP's rate under loss falls below what 10 Gbit/s over a millisecond
/// need from a ten-thousandth on (Mathis et al. 1997: MSS/RTT × 1.22/√p).
const LOSSY: f64 = 0.0005;
/// A queue: the round trip is this many times the least one, and longer by this much at least.
const QUEUED: f64 = 3.0;
const QUEUED_NS: f64 = 300e3;
/// Where what is sent again is dropped again, a queue has to hold this many segments at the rate: less are packets that wait for
/// a processor of an end. Routers and clouds let far more wait before they drop.
const QUEUED_SEGMENTS: f64 = 16.0;
/// Rates that stray by less from second to second, disturbed ones left aside, may be held by something that counts.
const FLAT: f64 = 0.2;
/// What is dropped at a rate makes a sender stop and start: its seconds stray more, around that rate.
const STOP_AND_START: f64 = 0.5;
/// Who drops what is above a rate drops what is sent again too; those who lose packets by chance do so in the share in which they
/// lose any. So many times that share, and so many packets, are no chance: of losses by chance that few would be lost again that
/// one is expected, six are in fewer than one run of a thousand (Poisson).
const LOST_AGAIN: f64 = 5.0;
const MIN_LOST_AGAIN: f64 = 6.0;
/// Fewer packets sent again than these say nothing of how they were lost.
const MIN_RESENT: u64 = 20;
/// A burst is this many times what came after it, for this many seconds at least.
const BURST: f64 = 1.5;
const MIN_BASE_SECONDS: usize = 3;
/// A rate so near to what the interface has is the interface's: what is missing are headers of packets.
const LINE_LOW: f64 = 0.90;
const LINE_HIGH: f64 = 1.005;
/// Interfaces that say a speed that means nothing.
const NO_WIRE: &[&str] = &["veth", "virtio_net", "tun", "bridge", "ifb", "dummy"];

/// What had no processor left, and how that shows.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct NoProcessor {
    /// Share of time in which the busiest thread ran.
    pub running: f64,
    /// Share of time in which it was ready and found no processor.
    pub waiting: f64,
    /// Share of time in which a limit of its control group kept it from running.
    pub throttled: f64,
    /// Whether other programs, rather than threads of its own process, had the processors of a busy host; absent where that is not clear.
    pub by_others: Option<bool>,
    /// Busiest processor: its number, its busy share, and the share of interrupts; where it was what is full.
    pub interrupts: Option<(u32, f64, f64)>,
}

/// A rate that fell when a credit had been used up.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct NetworkBurst {
    /// Bits per second before, at most.
    pub burst_bits_per_s: f64,
    /// Bits per second after.
    pub base_bits_per_s: f64,
    /// Time until the change, from the beginning of the load on.
    #[serde(rename = "after_ns")]
    pub after: Nanos,
    /// Bytes above the later rate until then: the least that the credit was.
    pub credit_bytes: f64,
}

/// What stopped bulk data.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkCause {
    /// The sender had no processor left.
    SenderProcessor(NoProcessor),
    /// The receiver had none.
    ReceiverProcessor(NoProcessor),
    /// The receiving program takes bytes later than they come.
    SlowReceiver {
        /// Share of time in which its window held the sender back.
        share: f64,
        /// Bytes that waited to be taken, on average of a connection.
        unread_bytes: f64,
    },
    /// The receiver offers a window that is too small for the round trip.
    ReceiveWindow {
        /// Share of time in which it held the sender back.
        share: f64,
        /// The window, in bytes.
        window_bytes: f64,
        /// The round trip.
        #[serde(rename = "round_trip_ns")]
        round_trip: Nanos,
    },
    /// The sender's buffer is too small for the round trip.
    SendBuffer {
        /// Share of time in which it held the sender back.
        share: f64,
        /// The buffer, in bytes, as the kernel counts it.
        buffer_bytes: Option<u64>,
        /// The round trip.
        #[serde(rename = "round_trip_ns")]
        round_trip: Nanos,
    },
    /// Nothing comes through at all, though connections can be made: a path that drops large packets without a word.
    BlackHole {
        /// What the sender takes for the largest packet of the path, in bytes.
        packet_bytes: Option<u64>,
    },
    /// A credit was used up, and a lower rate is left.
    TokenBucket(NetworkBurst),
    /// Something that lets packets wait and go at a rate.
    Shaper {
        /// Round trip under load, and without.
        #[serde(rename = "round_trip_ns")]
        round_trip: Nanos,
        /// Without.
        #[serde(rename = "least_ns")]
        least: Nanos,
    },
    /// Something that drops what is above a rate.
    Policer {
        /// Share of bytes that were lost and sent again.
        resent: f64,
        /// Round trip under load.
        #[serde(rename = "round_trip_ns")]
        round_trip: Nanos,
    },
    /// Packets are lost, and the congestion window stays small.
    Loss {
        /// Share of bytes that were lost and sent again.
        resent: f64,
        /// Congestion window, in segments, on average.
        window_segments: f64,
    },
    /// The interface has no more.
    Interface {
        /// Which end's.
        side: NetworkSide,
        /// Its speed in megabits per second.
        mbit_per_s: u64,
    },
}

impl NetworkCause {
    /// What stopped it; `None` where nothing did that can be known: above all where the program had not more to send.
    pub(super) fn of(way: &Way<'_>) -> Option<Self> {
        black_hole(way).or_else(|| processors(way)).or_else(|| {
            if way.busy_share() < MIN_BUSY {
                return None;
            }
            token_bucket(way).or_else(|| buffers(way)).or_else(|| interface(way)).or_else(|| network(way))
        })
    }
}

/// A thread of `end` that had no more to give. `has_always_work` where there was something to do for it all the time.
fn no_processor(end: &NetworkEnd, has_always_work: bool) -> Option<NoProcessor> {
    let elapsed = end.elapsed_ns as f64;
    if elapsed <= 0.0 {
        return None;
    }
    let share = |ns: u64| ns as f64 / elapsed;
    let thread = end.busiest_thread.unwrap_or_default();
    let busiest = end.processors.iter().max_by_key(|processor| processor.busy_ns);
    let interrupts = busiest
        .map(|it| (it.number, share(it.busy_ns), share(it.softirq_ns)))
        .filter(|(_, busy, interrupts)| *busy >= PROCESSOR_FULL && *interrupts >= BY_INTERRUPTS);
    let found = NoProcessor {
        running: share(thread.running_ns),
        waiting: share(thread.waiting_ns),
        // The kernel adds up the time of all processors: the busiest thread was held back at most while it did not run.
        throttled: share(end.throttled_ns.unwrap_or(0)).min((1.0 - share(thread.running_ns)).max(0.0)),
        by_others: had_by_others(end, thread),
        interrupts,
    };
    let beside_others = if has_always_work { 1.0 } else { (found.waiting / OTHERS_RAN).min(1.0) };
    let limit = THREAD_FULL - beside_others * (THREAD_FULL - THREAD_FULL_BESIDE_OTHERS);
    let is_full = found.running + found.waiting >= limit;
    (is_full || found.throttled >= THROTTLED || interrupts.is_some()).then_some(found)
}

/// Whether others used as much processor time as a thread waited for, or its own process did besides it. A host with idle processors says
/// nothing of those on which the thread may run, and soft interrupts are nobody's program.
fn had_by_others(end: &NetworkEnd, thread: ThreadTime) -> Option<bool> {
    let (host, own_ns) = (end.host_cpu?, end.process_cpu?.busy_ns());
    let (busy_ns, free_ns) = (host.busy_ns(), host.free_ns()?);
    let is_busy = free_ns as f64 <= FEW_IDLE * (busy_ns as f64 + free_ns as f64);
    let in_interrupts = end.processors.iter().fold(0_u64, |sum, one| sum.saturating_add(one.softirq_ns));
    let others_ns = busy_ns.saturating_sub(own_ns).saturating_sub(in_interrupts);
    let besides_ns = own_ns.saturating_sub(thread.running_ns);
    match (others_ns >= thread.waiting_ns, besides_ns >= thread.waiting_ns) {
        (true, false) if is_busy => Some(true),
        (false, true) if is_busy => Some(false),
        _ => None,
    }
}

impl NoProcessor {
    /// Whether something had the processor that it wanted: other programs, or other threads of its own process.
    pub(super) fn is_taken(&self) -> bool {
        self.throttled < THROTTLED && self.waiting >= OTHERS_RAN
    }

    /// Whether a limit kept it from running.
    pub(super) fn is_throttled(&self) -> bool {
        self.throttled >= THROTTLED
    }

    /// How much it lacked one, to say which of two ends was short of it.
    fn lack(&self) -> f64 {
        (self.running + self.waiting).max(self.throttled).max(self.interrupts.map_or(0.0, |(_, busy, _)| busy))
    }
}

/// Of both ends the one that is shorter of processor time. A receiver stops a sender by its window alone, or where its processor
/// has no time for packets: one that only waits at times, and always has room, stops nobody.
fn processors(way: &Way<'_>) -> Option<NetworkCause> {
    let by_window = way.tcp.share_of_busy(way.tcp.rwnd_limited_ns).unwrap_or(0.0);
    let stops = |receiver: &NoProcessor| by_window >= LATE || receiver.interrupts.is_some() || receiver.is_throttled();
    let has_always_work = by_window >= HELD_BACK && leaves_unread(way).is_some();
    // Of a full processor what a hypervisor and interrupts take is time in which the thread neither runs nor waits. That the thread is
    // the one which fills it shows in that nothing of what it sends waits for the network.
    let is_full = |it: &ProcessorTime| {
        it.busy_ns.saturating_add(it.stolen_ns) as f64 >= PROCESSOR_FULL * way.sender.elapsed_ns as f64
    };
    let keeps_up = way.busy_share() < MIN_BUSY && way.sender.processors.iter().any(is_full);
    match (no_processor(way.sender, keeps_up), no_processor(way.receiver, has_always_work).filter(stops)) {
        (Some(sender), Some(receiver)) if by_window < HELD_BACK && sender.lack() >= receiver.lack() => {
            Some(NetworkCause::SenderProcessor(sender))
        }
        (_, Some(receiver)) => Some(NetworkCause::ReceiverProcessor(receiver)),
        (Some(sender), None) if by_window < HELD_BACK => Some(NetworkCause::SenderProcessor(sender)),
        (_, None) => None,
    }
}

/// Nothing came, though connections had something to send all the time and sent it again.
fn black_hole(way: &Way<'_>) -> Option<NetworkCause> {
    let segment = way.tcp.mss_bytes.lowest()?;
    let received = way.receiver.received_bytes?;
    let is_silent = received < segment * u64::from(way.flows()) && way.tcp.bytes_acked < segment;
    let is_trying = way.busy_share() >= MIN_BUSY && way.tcp.segments_resent > 0;
    (is_silent && is_trying).then(|| NetworkCause::BlackHole { packet_bytes: way.tcp.path_mtu_bytes.highest() })
}

/// A high rate at first, from which it fell at once to one that is even.
fn token_bucket(way: &Way<'_>) -> Option<NetworkCause> {
    let seconds = way.seconds_from_the_start();
    // A flow begins fast and is slower from the first loss on: no credit ran out there.
    if seconds.len() < MIN_BASE_SECONDS + 2 || is_lossy(way) && !is_lost_again(way) && !is_queued(way) {
        return None;
    }
    let base = median(&seconds[seconds.len() / 2..]);
    let fallen = seconds.iter().position(|rate| *rate < base * (1.0 + (BURST - 1.0) / 2.0))?;
    // The second in which it fell is a part of each.
    let (burst, after) = (&seconds[..fallen], seconds.get(fallen + 1..).unwrap_or_default());
    let before = burst.iter().copied().fold(0.0, f64::max);
    let is_even = after.len() >= MIN_BASE_SECONDS && stray(after).is_some_and(|stray| stray <= FLAT);
    // No second without credit comes near one with it. Where one does, the rate swings: a sender that feels for what is dropped.
    let highest_after = after.iter().copied().fold(0.0, f64::max);
    if burst.is_empty() || !is_even || before < base * BURST || before < highest_after * BURST / (1.0 + FLAT) {
        return None;
    }
    let rest = after.iter().sum::<f64>() / after.len() as f64;
    let above: f64 = seconds[..=fallen].iter().map(|rate| (rate - rest).max(0.0)).sum();
    let second_ns = way.step.intervals.iter().map(|interval| interval.duration_ns).max()?;
    Some(NetworkCause::TokenBucket(NetworkBurst {
        burst_bits_per_s: before,
        base_bits_per_s: rest,
        after: Nanos(second_ns * fallen as u64),
        credit_bytes: above * second_ns as f64 / 1e9 / 8.0,
    }))
}

/// What the receiver left unread on average, where that is much of what its window offers.
fn leaves_unread(way: &Way<'_>) -> Option<f64> {
    let unread_bytes = way.receiver.tcp.as_ref()?.unread_bytes.mean()?;
    (unread_bytes >= LEFT_UNREAD * way.tcp.peer_window_bytes.mean()?).then_some(unread_bytes)
}

/// Windows and buffers of the two ends.
fn buffers(way: &Way<'_>) -> Option<NetworkCause> {
    let tcp = way.tcp;
    let round_trip = Nanos(tcp.rtt_ns.mean().unwrap_or(0.0) as u64);
    let on_its_way = way.bits_per_s().unwrap_or(0.0) / 8.0 / f64::from(way.flows()) * round_trip.0 as f64 / 1e9;
    let by_window = tcp.share_of_busy(tcp.rwnd_limited_ns)?;
    let holds_back = |window_bytes: f64| {
        let is_unqueued = way.round_trip_ns().is_some_and(|(mean_ns, least_ns)| mean_ns < UNQUEUED * least_ns as f64);
        let is_filled = on_its_way >= WINDOW_FILLED * window_bytes && is_unqueued;
        by_window >= if is_filled { LATE } else { HELD_BACK }
    };
    match (leaves_unread(way), tcp.peer_window_bytes.mean()) {
        (Some(unread_bytes), _) if by_window >= LATE => {
            return Some(NetworkCause::SlowReceiver { share: by_window, unread_bytes });
        }
        (_, Some(window_bytes)) if holds_back(window_bytes) => {
            return Some(NetworkCause::ReceiveWindow { share: by_window, window_bytes, round_trip });
        }
        _ => {}
    }
    let by_buffer = tcp.share_of_busy(tcp.sndbuf_limited_ns)?;
    let buffer_bytes = way.sender.facts.as_ref().and_then(|facts| facts.send_buffer_bytes);
    let is_filled = buffer_bytes.is_some_and(|buffer| on_its_way >= BUFFER_FILLED * buffer as f64);
    let enough = match is_filled {
        true if is_queued(way) => BUFFER_HELD_BACK_AT_TIMES,
        true => 0.0,
        false => BUFFER_HELD_BACK,
    };
    let is_held_back = by_buffer >= enough;
    is_held_back.then_some(NetworkCause::SendBuffer { share: by_buffer, buffer_bytes, round_trip })
}

/// An end whose interface is used up: by this way alone, or else by all that goes through it the same way, as a client's by what it sends to
/// several servers.
fn interface(way: &Way<'_>) -> Option<NetworkCause> {
    let all = Way::all(way.step);
    let through = |end: &NetworkEnd| -> Option<f64> {
        let name = end.facts.as_ref()?.interface.as_ref()?;
        let is_there = |one: &NetworkEnd| {
            (one.side, &one.node) == (end.side, &end.node)
                && one.facts.as_ref().is_some_and(|facts| facts.interface.as_ref() == Some(name))
        };
        let ways = all.iter().filter(|one| one.from == way.from && (is_there(one.sender) || is_there(one.receiver)));
        Some(ways.filter_map(Way::bits_per_s).sum())
    };
    let is_used_up = |end: &NetworkEnd, bits_per_s: f64| {
        let facts = end.facts.as_ref()?;
        let mbit_per_s = facts.speed_mbit_per_s?;
        let is_wire = facts.driver.as_deref().is_none_or(|driver| !NO_WIRE.contains(&driver));
        let share = bits_per_s / (mbit_per_s as f64 * 1e6);
        (is_wire && (LINE_LOW..=LINE_HIGH).contains(&share))
            .then_some(NetworkCause::Interface { side: end.side, mbit_per_s })
    };
    let ends = [way.sender, way.receiver];
    let own = way.bits_per_s()?;
    let alone = ends.iter().find_map(|end| is_used_up(end, own));
    alone.or_else(|| ends.iter().find_map(|end| is_used_up(end, through(end)?)))
}

/// Queues and losses on the way.
fn network(way: &Way<'_>) -> Option<NetworkCause> {
    let (mean_ns, least_ns) = way.round_trip_ns()?;
    let (round_trip, least) = (Nanos(mean_ns as u64), Nanos(least_ns));
    let stray = way.stray();
    let is_within = |limit: f64| stray.is_none_or(|stray| stray <= limit);
    let resent = way.lost();
    let is_dropped_at_a_rate = is_lossy(way) && is_lost_again(way);
    // A drop costs far less than the queue before it where both are there: the queue is full.
    if is_queued(way) && is_within(FLAT) && (!is_dropped_at_a_rate || queued_segments(way) >= QUEUED_SEGMENTS) {
        return Some(NetworkCause::Shaper { round_trip, least });
    }
    if !is_lossy(way) {
        return None;
    }
    Some(if is_within(STOP_AND_START) && is_dropped_at_a_rate {
        NetworkCause::Policer { resent, round_trip }
    } else {
        NetworkCause::Loss { resent, window_segments: way.tcp.cwnd_segments.mean().unwrap_or(0.0) }
    })
}

/// Whether packets wait on the way.
fn is_queued(way: &Way<'_>) -> bool {
    way.round_trip_ns().is_some_and(|(mean_ns, least_ns)| {
        mean_ns >= QUEUED * least_ns as f64 && mean_ns - least_ns as f64 >= QUEUED_NS
    })
}

/// Segments that wait on the way, as rate × what the round trip is longer than the least one (Little's law).
fn queued_segments(way: &Way<'_>) -> f64 {
    let wait_ns = way.round_trip_ns().map_or(0.0, |(mean_ns, least_ns)| mean_ns - least_ns as f64);
    let segment_bits = way.tcp.mss_bytes.mean().unwrap_or(1_460.0) * 8.0;
    way.bits_per_s().unwrap_or(0.0) * wait_ns / 1e9 / segment_bits
}

/// Whether so much was lost that it matters. What was sent again too early, since a processor was late, says nothing of the way.
fn is_lossy(way: &Way<'_>) -> bool {
    way.lost() >= LOSSY && way.segments_lost() >= MIN_RESENT
}

/// Whether packets that were sent again were lost again far more often than any packet. Each of them may be, also those that were sent
/// again too early; which share of packets is lost on the way is known by those that were needed.
fn is_lost_again(way: &Way<'_>) -> bool {
    let count = |name: &str| way.sender.counters.get(name).copied().unwrap_or(0);
    let again = (count("tcpext.TCPLostRetransmit") + count("tcpext.TCPTimeouts")) as f64;
    let resent = way.tcp.segments_resent as f64;
    let lost = way.segments_lost() as f64 / way.tcp.segments_sent.max(1) as f64;
    again >= (LOST_AGAIN * lost * resent).max(MIN_LOST_AGAIN)
}
