//! The hot path allocates nothing: what is allocated does not grow with the operations done.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use common::{open, run, scratch, set_up, small, step};
use plimsoll::units::{Bytes, Nanos};

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

#[test]
fn allocations_do_not_grow_with_operations() {
    let dir = scratch();
    let request = small();
    set_up(dir.path(), &request);
    for (update_pct, cache) in [(0, Bytes::mib(64)), (0, Bytes::mib(2)), (50, Bytes::mib(16)), (100, Bytes(1_100_000))]
    {
        let (engine, clock) = open(dir.path(), cache);
        let mut plan = step(&request);
        plan.load.sessions = 60;
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
