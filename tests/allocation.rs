//! The hot path allocates nothing: what is allocated does not grow with the operations done. One test at a time, because
//! the allocator counts for all threads but the one that runs the test: that is the coordinator of a step, which makes a
//! record of each second and of the system.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use common::{open, raw, run, run_until, scratch, set_up, small, step};
use plimsoll::load::{Pace, StepOutcome, StepPlan};
use plimsoll::record::Step;
use plimsoll::targets::block::{Persistence, VolumeLayout};
use plimsoll::targets::io::IoEngine;
use plimsoll::units::{Bytes, Nanos};
use plimsoll::workload::Arrival;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static IS_COORDINATOR: Cell<bool> = const { Cell::new(false) };
}

// SAFETY: every call is handed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(u64::from(!IS_COORDINATOR.get()), Ordering::Relaxed);
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    IS_COORDINATOR.set(true);
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the plan until one allocation for every second operation would be more than what else there is.
fn assert_no_growth<S>(plan: &mut StepPlan<S>, run: impl Fn(&StepPlan<S>) -> StepOutcome, start: u64, what: &str) {
    let allocations = Cell::new(0);
    let counted = |plan: &StepPlan<S>| {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        let outcome = run(plan);
        allocations.set(ALLOCATIONS.load(Ordering::Relaxed) - before);
        outcome
    };
    // ExternalStats `start`, which opening a lane takes, some thirty histograms are handed over at the end of each second.
    let allowed = |step: &Step| start + 50 * (1 + step.window.duration_ns / 1_000_000_000);
    let outcome = run_until(plan, counted, |step| step.counters.operations.unwrap() > 2 * allowed(step));
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    let (allocations, allowed, step) = (allocations.get(), allowed(&outcome.step), &outcome.step);
    assert!(allocations < allowed, "{what}: {allocations} allocations for {:?}", step.counters.operations);
}

#[test]
fn allocations_do_not_grow_with_operations() {
    let _alone = alone();
    let dir = scratch();
    let request = small();
    set_up(dir.path(), &request);
    for (update_pct, cache) in [(0, Bytes::mib(64)), (0, Bytes::mib(2)), (50, Bytes::mib(16)), (100, Bytes(1_100_000))]
    {
        let (engine, clock) = open(dir.path(), cache);
        let mut plan = step(&request);
        (plan.load.sessions, plan.lanes) = (Some(60), 1);
        plan.shape.threads_per_schema = 30;
        plan.shape.update_pct = update_pct;
        plan.shape.work_unit = 1;
        (plan.work_loop, plan.duration) = (None, Nanos::seconds(1));
        assert_no_growth(&mut plan, |plan| run(&engine, clock, plan), 700, &format!("{update_pct} % updates"));
        engine.close().unwrap();
    }
}

#[test]
fn allocations_do_not_grow_with_requests_to_raw_storage() {
    let _alone = alone();
    let open_loop = Pace::Open { rate_per_s: 8_000.0, arrival: Arrival::Poisson };
    for layout in [VolumeLayout::Single, VolumeLayout::Stripe { unit_bytes: 4096 }] {
        let dir = scratch();
        let members = if layout == VolumeLayout::Single { 1 } else { 2 };
        let checked = raw::checked(dir.path(), layout, members, 16);
        let plain = raw::wanted(dir.path(), layout, members, 16);
        for engine in raw::engines() {
            for (wanted, read_pct, pace) in [
                (&plain, 100, Pace::Closed),
                (&plain, 0, Pace::Closed),
                (&checked, 50, Pace::Closed),
                (&plain, 70, open_loop),
            ] {
                // A pool starts threads.
                let start = if engine == IoEngine::Psync { 1_600 } else { 700 };
                let block = raw::open_as(wanted, engine, Persistence::Unasked);
                let mut plan = raw::wide(raw::step(&block, read_pct), 32, 1);
                (plan.pace, plan.work_loop, plan.duration) = (pace, None, Nanos::seconds(1));
                assert_no_growth(
                    &mut plan,
                    |plan| raw::run(&block, plan),
                    start,
                    &format!("{engine}, {read_pct} % reads"),
                );
            }
        }
    }
}
