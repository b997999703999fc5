//! The hot path allocates nothing: what is allocated does not grow with the operations done. One test at a time, because
//! the allocator counts for all.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use common::{open, raw, run, scratch, set_up, small, step};
use plimsoll::load::Pace;
use plimsoll::target::block::{Persistence, VolumeLayout};
use plimsoll::units::{Bytes, Nanos};
use plimsoll::workload::Arrival;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is handed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
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
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
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
        plan.load.sessions = Some(60);
        plan.shape.threads_per_schema = 30;
        plan.shape.update_pct = update_pct;
        plan.shape.work_unit = 1;
        plan.duration = Nanos::millis(1_900);
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        let outcome = run(&engine, clock, &plan);
        let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
        let operations = outcome.step.counters.operations.unwrap();
        // Recorders, snapshots of the system and threads are a few hundred a second, whatever is done meanwhile.
        let few = 6_000;
        assert!(allocations < few, "{allocations} allocations for {operations} operations with {update_pct} % updates");
        assert!(operations > 2 * few || update_pct > 0, "only {operations} operations: the test shows nothing");
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
                let block = raw::open_as(wanted, engine, Persistence::Unasked);
                let mut plan = raw::wide(raw::step(&block, read_pct), 32, 2);
                (plan.pace, plan.duration) = (pace, Nanos::millis(900));
                let before = ALLOCATIONS.load(Ordering::Relaxed);
                let outcome = raw::run(&block, &plan);
                let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
                assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
                // Most were done without a device, to find out what the loop itself can do: for at least 150 ms.
                let ceiling = outcome.step.generator.and_then(|generator| generator.ceiling_operations_per_s);
                let operations = outcome.step.counters.operations.unwrap() + (ceiling.unwrap() * 0.15) as u64;
                assert!(allocations < 2_500, "{engine}, {read_pct} % reads: {allocations} for {operations} operations");
                assert!(operations > 5_000, "only {operations} operations: the test shows nothing");
            }
        }
    }
}
