//! Storage that answers nothing for a while, wherever that begins in the window: what it holds up is in the verdict.

use crate::making::{Load, Plan, Storage, closed, open};
use plimsoll::analysis::{Finding, LatencyTarget, LimitAnswer, analyse, analyse_limits};
use plimsoll::record::{Run, Step};
use plimsoll::units::Nanos;
use plimsoll::workload::Rng;

const SECOND_MS: u64 = 1_000;
const WARMUP_MS: u64 = 200;
const WINDOW_MS: u64 = 2_000;
/// Nothing else takes so long.
const LIMIT_MS: u64 = 200;

fn plan(seed: u64) -> Plan {
    Plan { seed, warmup: Nanos::millis(WARMUP_MS), duration: Nanos::millis(WINDOW_MS), ..Plan::default() }
}

/// The step of a load on a device that stands still from `at_ms` of the window on.
fn stalled(seed: u64, load: Load, at_ms: u64, length_ms: u64) -> Run {
    let sim = format!("service=4ms,servers=8,stall={}ms:{length_ms}ms", WARMUP_MS + at_ms);
    let mut storage = Storage::open(&sim, &plan(seed));
    let step = storage.step(load);
    storage.run(vec![step])
}

fn answer(run: &Run, quantile: f64) -> LimitAnswer {
    let target = LatencyTarget { quantile, limit: Nanos::millis(LIMIT_MS), ..LatencyTarget::default() };
    let found = analyse_limits(run, &[target]).into_iter().find_map(|finding| match finding {
        Finding::Verdict(verdict) => Some(verdict.answer),
        _ => None,
    });
    found.unwrap()
}

/// Finished in the window, outstanding at its end, and due but not sent by then.
fn counted(step: &Step) -> [u64; 3] {
    let outstanding = step.outstanding.iter().map(|late| late.count()).sum();
    let backlog = step.generator.as_ref().and_then(|generator| generator.backlog_operations).unwrap_or(0);
    [step.counters.operations.unwrap() + step.counters.errors.unwrap_or(0), outstanding, backlog]
}

/// How many operations took longer than the limit, as whoever sees each of them counts: at least so many.
fn late_at_least(load: Load, at_ms: u64, length_ms: u64) -> f64 {
    match load.pace.rate_per_s() {
        // What is being served then is served to its end, and whoever sends the next one finds that nothing begins.
        None if at_ms + 10 > WINDOW_MS => 0.0,
        None => f64::from(load.depth),
        // What falls due in the window and at least the limit before the stall ends; some of it may find no slot.
        Some(rate_per_s) => {
            let until_ms = WINDOW_MS.min(at_ms + length_ms.saturating_sub(LIMIT_MS));
            (until_ms.saturating_sub(at_ms) as f64 / SECOND_MS as f64 * rate_per_s - 2.0).max(0.0)
        }
    }
}

#[test]
fn a_hang_is_never_a_yes_wherever_it_begins() {
    let times = if std::env::var_os("PLIMSOLL_TORTURE_SECONDS").is_some() { 10_000 } else { 600 };
    let mut rng = Rng::new(7, 0);
    let mut judged = 0;
    for number in 0..times {
        // The edge of the window most of all.
        let at_ms = if rng.below(3) > 0 { WINDOW_MS - 1 - rng.below(150) } else { rng.below(WINDOW_MS) };
        let length_ms = LIMIT_MS + 50 + rng.below(8_000);
        let load = match rng.below(3) {
            0 => closed(1 + rng.below(16) as u32),
            1 => open(50.0 + rng.below(400) as f64, 1_024),
            _ => open(50.0 + rng.below(400) as f64, 4),
        };
        let run = stalled(number, load, at_ms, length_ms);
        let step = &run.steps[0];
        let what = format!("{load:?}, {at_ms} ms of {WINDOW_MS} ms, for {length_ms} ms: {:?}", counted(step));
        let [finished, outstanding, backlog] = counted(step);
        let all = finished + outstanding + backlog;
        if let Some(due) = step.generator.as_ref().and_then(|generator| generator.due_operations) {
            // What was under way when the window began is among what finished in it.
            assert!((due..=due + u64::from(load.depth)).contains(&all), "{what}: {due} fell due");
        } else {
            assert!(outstanding <= u64::from(load.depth), "{what}");
        }
        let late = late_at_least(load, at_ms, length_ms);
        if late < 1.0 {
            continue;
        }
        judged += 1;
        let quantile = 1.0 - 0.5 * late / all as f64;
        assert_ne!(answer(&run, quantile), LimitAnswer::Yes, "{what}: p{} of {late} late", 100.0 * quantile);
    }
    assert!(judged > times / 2, "{judged} of {times}");
}

#[test]
fn what_a_hang_held_up_is_in_the_percentiles_with_its_own_time() {
    let run = stalled(1, closed(4), WINDOW_MS - 100, 6_000);
    let step = &run.steps[0];
    assert_eq!(counted(step)[1..], [4, 0]);
    let longest = step.outstanding[0].response.max_ns().unwrap();
    assert!((5_900_000_000..6_100_000_000).contains(&longest), "{longest}");
    let stalled = analyse(&run, &LatencyTarget::default()).into_iter().find_map(|finding| match finding {
        Finding::Stalled(stalled) => Some(stalled.longest),
        _ => None,
    });
    assert!(stalled.is_some_and(|stalled| stalled.0 > 5_900_000_000), "{stalled:?}");
}

#[test]
fn where_nothing_hangs_the_answer_is_yes() {
    for load in [closed(1), closed(16), open(300.0, 1_024)] {
        let run = stalled(3, load, 100 * WINDOW_MS, 1_000);
        assert_eq!(answer(&run, 0.999), LimitAnswer::Yes, "{load:?}");
        let [_, outstanding, backlog] = counted(&run.steps[0]);
        assert!(outstanding <= u64::from(load.depth) && backlog == 0, "{load:?}");
    }
}
