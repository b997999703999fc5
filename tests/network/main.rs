//! Planted truths: what stops a network is put between two ends of our own, and has to be found and named; where nothing was
//! planted nothing is named. As root, in network namespaces; says that it was skipped elsewhere.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]
#![expect(clippy::print_stderr, reason = "a truth that was planted many times says how often it was found")]

mod commands;
mod load;
use test_support::skip;
mod spaces;
mod wire;

use std::cell::Cell;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use load::{Load, Pause, found, run};
use plimsoll::analysis::{Message, NetworkCause, NetworkFinding, NetworkSeen};
use plimsoll::record::{Interval, NetworkSide, ProcessorTime, Step};
use skip::skip;
use spaces::{Between, Spaces};
use wire::Wire;

/// Truths that leave the processors free go on beside each other; one that uses them goes on by itself.
static PROCESSORS: RwLock<()> = RwLock::new(());

/// Threads that wait for a processor for more of the time than this say that others use the machine.
const MAX_WAITING: f64 = 0.15;
/// A thread that runs, or waits for a processor, for more of the time computes all the time.
const FULL: f64 = 0.9;
const ATTEMPTS: u32 = 3;
/// Fewer segments sent again say nothing.
const MIN_RESENT: u64 = 20;

/// How often each truth is planted: once, and twenty times by `make torture`.
fn times() -> u32 {
    if std::env::var_os("PLIMSOLL_TORTURE_SECONDS").is_some() { 20 } else { 1 }
}

thread_local! {
    /// Others had the processors whenever the load was put on.
    static IS_DISTURBED: Cell<bool> = const { Cell::new(false) };
}

/// Plants a truth as often as asked for. All must be found; those that were not are said in words. Where others had the processors all
/// the time, that is what was found, and nothing is known of what was planted.
fn each_time(between: Between, plant: impl Fn(&Spaces) -> Result<(), String>) {
    let (mut right, mut wrong) = (0, Vec::new());
    for _ in 0..times() {
        let spaces = match Spaces::new(between) {
            Ok(spaces) => spaces,
            Err(why) => return skip(format!("no network namespaces: {why}")),
        };
        IS_DISTURBED.set(false);
        match plant(&spaces) {
            Ok(()) => right += 1,
            Err(said) if IS_DISTURBED.get() => skip(format!("others had the processors: {said}")),
            Err(said) => wrong.push(said),
        }
    }
    if times() > 1 {
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        eprintln!("{name}: right {right} of {}", times());
    }
    assert!(wrong.is_empty(), "wrong {} of {}:\n{}", wrong.len(), times(), wrong.join("\n"));
}

/// A load that leaves the processors free, on a machine whose processors are free enough: where threads wait for one, that is what
/// stops a network, and the load is put on again. After some times it is taken as it is.
fn calm(spaces: &Spaces, label: &str, load: Load) -> Step {
    calm_if(|put_on| beside(put_on), spaces, label, load)
}

/// The same, put on beside others or alone.
fn calm_if(put: impl Fn(&dyn Fn() -> Step) -> Step, spaces: &Spaces, label: &str, load: Load) -> Step {
    until(is_calm, || put(&|| run(spaces, label, load)))
}

fn is_calm(step: &Step) -> bool {
    step.network.iter().all(|end| {
        end.busiest_thread.is_none_or(|thread| (thread.waiting_ns as f64) < MAX_WAITING * end.elapsed_ns as f64)
    })
}

/// Whether the kernel sent segments again that were still in a queue of this machine: others had the processors that empty it.
fn has_full_queues(step: &Step) -> bool {
    step.network.iter().any(|end| end.counters.get("tcpext.TCPSpuriousRtxHostQueues").is_some_and(|count| *count > 0))
}

/// Puts a load on until it `is_as_planted`, at most as often as is worth it; then others disturbed it.
fn until(is_as_planted: impl Fn(&Step) -> bool, put: impl Fn() -> Step) -> Step {
    let mut steps = (0..ATTEMPTS).map(|_| put()).map(|step| (is_as_planted(&step), step));
    let mut last = steps.next().expect("at least one attempt");
    while !last.0
        && let Some(step) = steps.next()
    {
        last = step;
    }
    IS_DISTURBED.set(!last.0);
    last.1
}

/// A load whose end `side` computes all the time. On a busy machine packets come late, and its thread waits for the network instead:
/// then nothing was planted, and the load is put on again.
fn full(spaces: &Spaces, side: NetworkSide, load: Load) -> Step {
    let is_full = |step: &Step| {
        let of_side = step.network.iter().find(|end| end.side == side);
        of_side.is_some_and(|end| {
            end.busiest_thread
                .is_some_and(|thread| (thread.running_ns + thread.waiting_ns) as f64 > FULL * end.elapsed_ns as f64)
        })
    };
    until(is_full, || alone(|| run(spaces, "c1", load)))
}

fn beside<T>(what: impl FnOnce() -> T) -> T {
    let _others = PROCESSORS.read().unwrap_or_else(PoisonError::into_inner);
    what()
}

fn alone<T>(what: impl FnOnce() -> T) -> T {
    let _alone = PROCESSORS.write().unwrap_or_else(PoisonError::into_inner);
    what()
}

/// What stopped the step, in one direction; or all that was said instead.
fn cause(step: &Step) -> Result<NetworkCause, String> {
    let said = found(vec![step.clone()]);
    match said.first() {
        Some(NetworkFinding::Stop(stop)) => Ok(stop.cause),
        _ => Err(format!("nothing was named, only {said:?}; seen: {}", seen(step))),
    }
}

/// What both ends saw, as far as it decides.
fn seen(step: &Step) -> String {
    let shares = step.network.iter().map(|end| {
        let share = |ns: u64| ns as f64 / end.elapsed_ns as f64;
        let thread = end.busiest_thread.unwrap_or_default();
        let processor = |it: &ProcessorTime| {
            format!("{:.2}/{:.2}/{:.2}", share(it.busy_ns), share(it.softirq_ns), share(it.stolen_ns))
        };
        let processors: Vec<String> = end.processors.iter().map(processor).collect();
        let tcp = end.tcp.clone().unwrap_or_default();
        format!(
            "{} runs {:.2} waits {:.2}, processors {}, busy {:.2} rwnd {:.2} sndbuf {:.2}, rtt {:?} least {:?}, window {:?}, \
             unread {:?}, sent {} again {}",
            end.side.name(),
            share(thread.running_ns),
            share(thread.waiting_ns),
            processors.join(" "),
            share(tcp.busy_ns),
            share(tcp.rwnd_limited_ns),
            share(tcp.sndbuf_limited_ns),
            tcp.rtt_ns.mean(),
            tcp.min_rtt_ns,
            tcp.peer_window_bytes.mean(),
            tcp.unread_bytes.mean(),
            tcp.segments_sent,
            tcp.segments_resent,
        )
    });
    let rate = |interval: &Interval| interval.network[1].received_bits_per_s().unwrap_or(0.0) / 1e6;
    let seconds: Vec<String> = step.intervals.iter().map(|interval| format!("{:.0}", rate(interval))).collect();
    let counters = step.network[0]
        .counters
        .iter()
        .filter(|(name, count)| (name.starts_with("tcpext") || name.starts_with("softnet")) && **count > 0);
    let counters: Vec<String> = counters.map(|(name, count)| format!("{name} {count}")).collect();
    format!("{}; Mbit/s {}; {}", shares.collect::<Vec<_>>().join("; "), seconds.join(" "), counters.join(" "))
}

/// That it is the one that was planted.
fn is(step: &Step, planted: impl FnOnce(&NetworkCause) -> bool) -> Result<(), String> {
    let cause = cause(step)?;
    if planted(&cause) { Ok(()) } else { Err(format!("{cause:?} was named; seen: {}", seen(step))) }
}

fn rate_is(step: &Step, mbit: std::ops::Range<f64>) -> Result<(), String> {
    let rate = step.network[1].received_bits_per_s().unwrap() / 1e6;
    if mbit.contains(&rate) { Ok(()) } else { Err(format!("{rate} Mbit/s were received")) }
}

#[test]
fn nothing_is_named_where_nothing_was_planted() {
    each_time(Between::Router, |spaces| {
        let load = Load { sender: Pause::Rest(Duration::from_millis(20)), ..Load::default() };
        // Alone: a processor's queue of packets that come in is one for all namespaces, and drops what others leave no room for.
        let is_free = |step: &Step| is_calm(step) && !has_full_queues(step);
        let step = until(is_free, || alone(|| run(spaces, "c1", load)));
        let said = found(vec![step.clone()]);
        if said.is_empty() { Ok(()) } else { Err(format!("{said:?}; seen: {}", seen(&step))) }
    });
}

#[test]
fn a_shaper_is_named_by_its_queue() {
    each_time(Between::Router, |spaces| {
        spaces.shape("200mbit", "32kb");
        let step = calm(spaces, "c1", Load::default());
        rate_is(&step, 100.0..210.0)?;
        is(&step, |cause| matches!(cause, NetworkCause::Shaper { .. }))
    });
}

#[test]
fn a_policer_is_named_by_what_it_drops_at_a_flat_rate() {
    each_time(Between::Router, |spaces| {
        spaces.rule("r", "forward", "ip daddr 10.77.2.2 limit rate over 20 mbytes/second burst 64 kbytes drop");
        // The rule's own bucket holds what may pass in a second, and is a token bucket as long as that lasts.
        let load = Load { congestion: "bbr", lead: Duration::from_secs(1), ..Load::default() };
        let step = calm(spaces, "c1", load);
        rate_is(&step, 80.0..185.0)?;
        is(&step, |cause| matches!(cause, NetworkCause::Policer { .. }))
    });
}

#[test]
fn a_token_bucket_is_named_with_both_rates_and_its_credit() {
    each_time(Between::Router, |spaces| {
        // Long enough for a machine that needs seconds to use its credit up, and then seconds without it.
        let load = Load { intervals: 16, ..Load::default() };
        let with_credit = |put_on: &dyn Fn() -> Step| {
            spaces.shape("160mbit", "40mb");
            beside(put_on)
        };
        let step = calm_if(with_credit, spaces, "c1", load);
        is(&step, |cause| match cause {
            NetworkCause::TokenBucket(burst) => {
                (100e6..200e6).contains(&burst.base_bits_per_s) && (20e6..50e6).contains(&burst.credit_bytes)
            }
            _ => false,
        })
    });
}

#[test]
fn losses_by_chance_are_named_as_losses() {
    each_time(Between::Wire, |spaces| {
        let _wire = Wire::lay(spaces, Duration::from_millis(5));
        spaces.rule("s", "input", "ip saddr 10.77.1.1 numgen random mod 1000 < 10 drop");
        // How long it takes until so many packets were lost that they say how depends on the machine.
        let intervals = [6, 12, 24, 48].into_iter();
        let mut steps = intervals.map(|intervals| calm(spaces, "c1", Load { intervals, ..Load::default() }));
        let has_lost =
            |step: &Step| step.network[0].tcp.as_ref().is_some_and(|tcp| tcp.segments_resent >= 2 * MIN_RESENT);
        let step = steps.find(has_lost).ok_or("no packets were lost")?;
        is(&step, |cause| matches!(cause, NetworkCause::Loss { .. }))
    });
}

#[test]
fn a_small_receive_window_is_named_where_the_way_is_long() {
    each_time(Between::Wire, |spaces| {
        let _wire = Wire::lay(spaces, Duration::from_millis(10));
        let load = Load { receive_buffer: Some(64 << 10), ..Load::default() };
        let step = calm(spaces, "c1", load);
        is(&step, |cause| matches!(cause, NetworkCause::ReceiveWindow { .. }))
    });
}

#[test]
fn a_small_send_buffer_is_named_where_the_way_is_long() {
    each_time(Between::Wire, |spaces| {
        let _wire = Wire::lay(spaces, Duration::from_millis(5));
        let load = Load { send_buffer: Some(64 << 10), ..Load::default() };
        let step = calm(spaces, "c1", load);
        is(&step, |cause| matches!(cause, NetworkCause::SendBuffer { buffer_bytes: Some(131_072), .. }))
    });
}

#[test]
fn a_program_that_takes_bytes_late_is_named() {
    each_time(Between::Router, |spaces| {
        let load = Load { receiver: Pause::Rest(Duration::from_millis(20)), ..Load::default() };
        let step = calm(spaces, "c1", load);
        is(&step, |cause| matches!(cause, NetworkCause::SlowReceiver { .. }))
    });
}

#[test]
fn a_processor_that_is_full_is_named_with_its_end() {
    each_time(Between::Router, |spaces| {
        let busy = Pause::Compute(Duration::from_millis(10));
        let sends = full(spaces, NetworkSide::Client, Load { sender: busy, ..Load::default() });
        is(&sends, |cause| matches!(cause, NetworkCause::SenderProcessor(_)))?;
        let takes = full(spaces, NetworkSide::Server, Load { receiver: busy, ..Load::default() });
        is(&takes, |cause| matches!(cause, NetworkCause::ReceiverProcessor(_)))
    });
}

#[test]
fn a_path_with_smaller_packets_is_found_where_routers_say_so_and_is_a_black_hole_where_not() {
    each_time(Between::Router, |spaces| {
        spaces.run_in("r", "ip", &["link", "set", "r1", "mtu", "1300"]);
        let load = Load { sender: Pause::Rest(Duration::from_millis(5)), ..Load::default() };
        let step = calm(spaces, "c1", load);
        let said = found(vec![step]);
        let is_small =
            |seen: &NetworkSeen| matches!(seen, NetworkSeen::PathMtu { path_bytes: 1_300, interface_bytes: 1_500, .. });
        let is_found = said.iter().any(|found| matches!(found, NetworkFinding::Seen(seen) if is_small(seen)));
        if !is_found {
            return Err(format!("{said:?}"));
        }
        spaces.run_in("c", "ip", &["route", "flush", "cache"]);
        spaces.rule("r", "output", "meta l4proto icmp drop");
        let step = calm(spaces, "c1", Load::default());
        is(&step, |cause| matches!(cause, NetworkCause::BlackHole { .. }))
    });
}

#[test]
fn a_limit_of_each_flow_is_found_where_several_go_on() {
    each_time(Between::Router, |spaces| {
        let each = "add @flows { tcp sport limit rate over 5 mbytes/second burst 64 kbytes } drop";
        spaces.run_in(
            "r",
            "nft",
            &["add table inet t; add set inet t flows { type inet_service; flags dynamic; size 64; }; \
                                     add chain inet t c { type filter hook forward priority 0; };"],
        );
        spaces.run_in("r", "nft", &[&format!("add rule inet t c ip daddr 10.77.2.2 {each}")]);
        let load = |flows| Load { flows, congestion: "bbr", ..Load::default() };
        let mut is_disturbed = false;
        let steps = [("c1", 1), ("c4", 4)].map(|(label, flows)| {
            let step = calm(spaces, label, load(flows));
            is_disturbed |= IS_DISTURBED.get();
            step
        });
        IS_DISTURBED.set(is_disturbed);
        let said = found(steps.into());
        let is_found = |found: &NetworkFinding| {
            matches!(found, NetworkFinding::Seen(NetworkSeen::OneFlow { flows: 4, .. }))
                && found.sentence().contains("a limit of each flow")
        };
        if said.iter().any(is_found) { Ok(()) } else { Err(format!("{said:?}")) }
    });
}
