//! The hot path allocates nothing: what is allocated does not grow with the operations done. One test at a time, because
//! the allocator counts for all threads but the one that runs the test: that is the coordinator of a step, which makes a
//! record of each second and of the system.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use common::{open, options, raw, run, run_until, scratch, set_up, small, step};
use plimsoll::config::io::Durable;
use plimsoll::load::{Pace, StepOutcome, StepPlan, Stop, Surroundings, run_step};
use plimsoll::measure::Clock;
use plimsoll::record::{self, Step, TargetKind};
use plimsoll::sql::data::TableId;
use plimsoll::sql::{
    Product, ServerError, ServerTimes, SessionId, SlobSession, SlobTables, SqlOptions, SqlServers, SqlSession,
    SqlTarget, TimedOperation,
};
use plimsoll::targets::block::VolumeLayout;
use plimsoll::targets::database::Sending;
use plimsoll::targets::embedded::{Engine, EngineOptions, FlashOptions};
use plimsoll::targets::io::IoEngine;
use plimsoll::units::{Bytes, Nanos};
use plimsoll::workload::{Arrival, SlobOperation};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
/// Batches of operations that were answered. Each is laid down four times, whatever its length: as it is sent, as the server answers,
/// as its operations are placed in time, and as they wait for their turn.
static BATCHES: AtomicU64 = AtomicU64::new(0);

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
        let beyond_batches = || ALLOCATIONS.load(Ordering::Relaxed) - 4 * BATCHES.load(Ordering::Relaxed);
        let before = beyond_batches();
        let outcome = run(plan);
        allocations.set(beyond_batches().saturating_sub(before));
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
fn allocations_do_not_grow_with_reads_of_the_flash_cache() {
    let _alone = alone();
    let dir = scratch();
    let (request, data) = (small(), dir.path().join("data"));
    set_up(&data, &request);
    let flash = FlashOptions::new(dir.path().join("flash"), Bytes::mib(16));
    let (clock, options) = (Clock::start(), EngineOptions { flash: Some(flash), ..options(Bytes::mib(6)) });
    let engine = Engine::open(&data, &options, clock, &|_| ()).unwrap();
    let mut plan = step(&request);
    (plan.lanes, plan.shape.update_pct, plan.shape.work_unit) = (1, 20, 1);
    (plan.work_loop, plan.duration) = (None, Nanos::seconds(1));
    assert_no_growth(&mut plan, |plan| run(&engine, clock, plan), 700, "a flash cache");
    engine.close().unwrap();
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
                // A pool starts threads: as many as requests wait at once, which on a busy machine is all 32, each with some thirty.
                let start = if engine == IoEngine::Psync { 2_500 } else { 700 };
                let block = raw::open_as(wanted, engine, Durable::None);
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

/// Servers that do nothing: what is allocated is what drives their sessions.
#[derive(Debug, Clone, Copy)]
struct Prompt {
    /// How long a batch takes; without it answers come at once.
    batch_takes: Option<Duration>,
}

/// Answers come later than the lane asks. The runtime's own way to yield allocates.
async fn elsewhere_first() {
    let mut was_polled = false;
    poll_fn(|task| {
        if std::mem::replace(&mut was_polled, true) {
            return Poll::Ready(());
        }
        task.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Refuses nothing.
const PROMPT: &Product = &Product {
    name: "prompt",
    kind: TargetKind::Other(String::new()),
    code: "error",
    meaning: |_| unreachable!("it refuses nothing"),
};

impl SqlServers for Prompt {
    type Session = Self;

    async fn open_session(&self, _: usize) -> Result<Self, ServerError> {
        Ok(*self)
    }

    async fn at_work(&self, _: usize, sessions: Vec<SessionId>) -> Option<Vec<SessionId>> {
        Some(sessions)
    }
}

impl SqlSession for Prompt {
    fn id(&self) -> SessionId {
        0.into()
    }

    async fn cancel(&self) {}
}

impl SlobSession for Prompt {
    fn statement_timeout_ms(&self) -> Option<u64> {
        None
    }

    async fn execute(&self, operation: SlobOperation, _: &[u8]) -> Result<u64, ServerError> {
        elsewhere_first().await;
        Ok(operation.keys.into())
    }

    async fn rehearse(&self, _: SlobOperation) -> Result<(), ServerError> {
        Ok(())
    }

    async fn execute_batch(&self, operations: &Arc<[SlobOperation]>, _: &[u8]) -> Result<ServerTimes, ServerError> {
        match self.batch_takes {
            Some(batch_takes) => tokio::time::sleep(batch_takes).await,
            None => elsewhere_first().await,
        }
        BATCHES.fetch_add(1, Ordering::Relaxed);
        let batch_us = self.batch_takes.map_or(0, |batch_takes| batch_takes.as_micros() as i64);
        let each_us = (batch_us / operations.len().max(1) as i64).max(1);
        let timed = (1..).zip(operations.iter()).map(|(number, operation)| TimedOperation {
            committing_us: None,
            ended_us: number * each_us,
            touched: operation.keys.into(),
        });
        Ok(ServerTimes { began_us: 0, operations: timed.collect() })
    }
}

#[test]
fn allocations_do_not_grow_with_operations_of_sessions_on_servers() {
    let _alone = alone();
    // When the window closes, batches that take long are under way, and many of their operations are late.
    for (sending, update_pct, batch_ms) in [
        (Sending::Statement, 0, None),
        (Sending::Statement, 60, None),
        (Sending::Batch, 60, None),
        (Sending::Batch, 60, Some(40)),
    ] {
        let description = record::Target::default();
        let (notes, background, health) = (Vec::new(), None, None);
        let (nodes, servers) = (vec!["prompt".to_owned()], Prompt { batch_takes: batch_ms.map(Duration::from_millis) });
        let name = Box::new(|table: TableId| table.name());
        let work = SlobTables { namespace: "prompt".to_owned(), name, column_bytes: 128 };
        let target = SqlTarget::open(SqlOptions {
            product: PROMPT,
            nodes,
            servers,
            work,
            sending,
            description,
            notes,
            background,
            health,
        });
        let mut plan = step(&small());
        // No more than are started at a time: a look at the sockets in between is an allocation of the runtime's.
        (plan.load.sessions, plan.lanes) = (Some(8), 1);
        (plan.shape.threads_per_schema, plan.shape.update_pct) = (4, update_pct);
        (plan.work_loop, plan.duration) = (None, Nanos::seconds(1));
        let run =
            |plan: &StepPlan<_>| run_step(&target, plan, Surroundings::new(Clock::start(), &Stop::new()), &mut |_| {});
        assert_no_growth(&mut plan, run, 2_000, &format!("{sending:?}, {update_pct} % updates, {batch_ms:?} ms"));
    }
}
