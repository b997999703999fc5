//! A slow observer at the door of a simulated device: it keeps every operation by itself, and adds up nothing before the end.
//!
//! It knows when each operation was due, was sent, and ended, and how. What it says of a step comes from that list alone: no histogram,
//! no interval and no counter of the load has a part in it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use plimsoll::analysis::LimitAnswer;
use plimsoll::load::{Begin, Pace, Stop, Surroundings, run_any_step};
use plimsoll::measure::{Clock, Counter, LaneRecorder};
use plimsoll::record::{self, Step};
use plimsoll::targets::simulated::{Model, SimulatedRequest};
use plimsoll::targets::{Background, Finished, Lane, OperationResult, SessionRange, Target, TargetError, TargetFor};
use plimsoll::units::Nanos;
use plimsoll::workload::Arrivals;
use plimsoll::workload::io::IoOperation;

use crate::making::{Load, Plan, step_plan};

/// What goes wrong with the operations that are sent in a span of time, in nanoseconds of the load's clock.
#[derive(Debug, Clone)]
pub struct Trouble {
    pub sent_ns: Range<u64>,
    /// By so much later they end.
    pub later_ns: u64,
    pub result: OperationResult,
}

/// One operation.
#[derive(Debug, Clone, Copy)]
struct Seen {
    sent_ns: u64,
    /// When it ended, and how; nothing where it was given up before.
    ended: Option<(u64, OperationResult)>,
}

/// A device with an observer.
struct Device {
    model: Mutex<Model>,
    trouble: Vec<Trouble>,
    seen: Mutex<Vec<Seen>>,
}

impl Device {
    fn seen(&self) -> MutexGuard<'_, Vec<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Target for Device {
    fn describe(&self) -> record::Target {
        record::Target { kind: Some(record::TargetKind::Simulated), ..record::Target::default() }
    }

    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    fn layer(&self) -> &'static str {
        "simulation"
    }

    fn known_counters(&self) -> &'static [Counter] {
        &[Counter::Operations, Counter::Errors]
    }

    fn take_background(&self) -> Background {
        Background::default()
    }

    fn check_health(&self) -> Result<(), TargetError> {
        Ok(())
    }
}

impl TargetFor<IoOperation> for Device {
    fn open_lane(&self, range: SessionRange) -> Result<Box<dyn Lane<IoOperation> + '_>, TargetError> {
        let places = vec![0; range.sessions as usize];
        Ok(Box::new(Door { device: self, clock: range.clock, under_way: BinaryHeap::new(), places }))
    }
}

struct Door<'t> {
    device: &'t Device,
    clock: Clock,
    under_way: BinaryHeap<Reverse<(u64, u32, OperationResult)>>,
    /// Where the operation of each session is in the list.
    places: Vec<usize>,
}

impl Lane<IoOperation> for Door<'_> {
    fn start(
        &mut self,
        session: u32,
        operation: &IoOperation,
        sent_ns: u64,
        _: &mut LaneRecorder,
    ) -> Result<(), TargetError> {
        let &IoOperation { kind, offset_bytes, bytes, .. } = operation;
        let request = SimulatedRequest { offset_bytes, bytes, is_write: kind.is_write() };
        let served = self.device.model.lock().unwrap_or_else(PoisonError::into_inner).serve(sent_ns, request);
        let (mut ends_ns, mut result) = (served.done_at_ns, served.result);
        for trouble in self.device.trouble.iter().filter(|trouble| trouble.sent_ns.contains(&sent_ns)) {
            ends_ns += trouble.later_ns;
            result = if trouble.result == OperationResult::Failed { trouble.result } else { result };
        }
        self.under_way.push(Reverse((ends_ns, session, result)));
        let mut seen = self.device.seen();
        self.places[session as usize] = seen.len();
        seen.push(Seen { sent_ns, ended: None });
        Ok(())
    }

    fn poll(&mut self, until_ns: u64, _: &mut LaneRecorder, finished: &mut Vec<Finished>) -> Result<(), TargetError> {
        let next_ns = self.under_way.peek().map_or(u64::MAX, |Reverse((at_ns, ..))| *at_ns);
        self.clock.sleep_until(next_ns.min(until_ns));
        let now_ns = self.clock.now_ns();
        let mut seen = self.device.seen();
        while let Some(&Reverse((at_ns, session, result))) = self.under_way.peek()
            && at_ns <= now_ns
        {
            self.under_way.pop();
            seen[self.places[session as usize]].ended = Some((at_ns, result));
            finished.push(Finished { session, at_ns, paused_ns: 0, connecting_ns: 0, block_touches: 1, result });
        }
        Ok(())
    }

    fn abandon(&mut self) -> Result<(), TargetError> {
        self.under_way.clear();
        Ok(())
    }
}

/// A step, and every operation of it.
pub struct Observed {
    pub step: Step,
    depth: u32,
    pace: Pace,
    window_ns: Range<u64>,
    /// When the load gave up what had not ended.
    given_up_ns: u64,
    /// When each was due, and what became of it.
    operations: Vec<(u64, Seen)>,
    /// When those were due that were never sent, of those that fell due in the window.
    unsent_ns: Vec<u64>,
}

/// Loads a device that `model` describes and `trouble` befalls.
pub fn observe(model: Model, trouble: Vec<Trouble>, load: Load, plan: &Plan, drain: Nanos) -> Observed {
    let clock = Clock::simulated();
    let device = Device { model: Mutex::new(model), trouble, seen: Mutex::default() };
    let stop = Stop::new();
    let surroundings = Surroundings { drain, ..Surroundings::new(clock, &stop) };
    let plan = step_plan(0, load, plan);
    let outcome = run_any_step(&device, &plan, surroundings, &mut || Begin::AtOnce, &mut |_| {});
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    let step = outcome.step;
    let begins_ns = step.window.offset_ns;
    let window_ns = begins_ns..begins_ns + step.window.duration_ns;
    assert_eq!(step.window.duration_ns, plan.duration.0);
    let seen = device.seen().clone();
    assert!(seen.iter().all(|one| one.sent_ns < window_ns.end), "something was sent after the window");
    let mut due_ns: Vec<u64> = seen.iter().map(|one| one.sent_ns).collect();
    let mut unsent_ns = Vec::new();
    if let Pace::Open { rate_per_s, arrival } = load.pace {
        let start_ns = begins_ns - step.window.warmup_ns;
        let mut arrivals = Arrivals::new(rate_per_s, arrival, 0, 1, plan.seed);
        let mut next_ns = || start_ns + arrivals.next_ns();
        // One slot is as good as another, so they are sent in the order in which they fall due.
        due_ns.iter_mut().for_each(|due_ns| *due_ns = next_ns());
        unsent_ns.extend(std::iter::from_fn(|| Some(next_ns())).take_while(|due_ns| *due_ns < window_ns.end));
        unsent_ns.retain(|due_ns| window_ns.contains(due_ns));
    }
    assert!(due_ns.iter().zip(&seen).all(|(due_ns, one)| *due_ns <= one.sent_ns), "something was sent early");
    let operations = due_ns.into_iter().zip(seen).collect();
    let given_up_ns = window_ns.end + drain.0;
    Observed { step, depth: load.depth, pace: load.pace, window_ns, given_up_ns, operations, unsent_ns }
}

/// How many, and their times together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    pub count: u64,
    pub total_ns: u64,
}

impl Sum {
    fn add(&mut self, ns: u64) {
        self.count += 1;
        self.total_ns += ns;
    }

    fn of(histograms: &mut dyn Iterator<Item = &record::Histogram>) -> Self {
        histograms.fold(Self::default(), |Self { count, total_ns }, more| Self {
            count: count + more.count(),
            total_ns: total_ns + more.total_ns().unwrap_or(0),
        })
    }
}

/// What became of all that was under way or fell due in a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Account {
    /// Done and failed within it.
    pub done: Sum,
    pub failed: Sum,
    /// Under way at its end: done later, failed later, never ended.
    pub late: Sum,
    pub late_failed: u64,
    pub unended: Sum,
    /// Fell due in it and was never sent.
    pub unsent: u64,
    /// Fell due in it, of an open loop.
    pub due: Option<u64>,
}

impl Account {
    /// As the record has it.
    pub fn of(step: &Step) -> Self {
        let generator = step.generator.as_ref().unwrap();
        let (operations, outstanding) = (&step.operations, &step.outstanding);
        let account = Self {
            done: Sum::of(&mut operations.iter().map(|kind| &kind.response)),
            failed: Sum::of(&mut operations.iter().map(|kind| &kind.failed)),
            late: Sum::of(&mut outstanding.iter().map(|kind| &kind.response)),
            late_failed: outstanding.iter().map(|kind| kind.errors).sum(),
            unended: Sum::of(&mut outstanding.iter().map(|kind| &kind.unended)),
            unsent: generator.backlog_operations.unwrap_or(0),
            due: generator.due_operations,
        };
        // What counts in one place counts in all of them.
        assert_eq!(step.counters.operations, Some(account.done.count));
        assert_eq!(step.counters.errors, Some(account.failed.count));
        assert_eq!(step.unended.map_or(0, |unended| unended.operations), account.unended.count);
        assert_eq!(generator.backlog_ages.as_ref().map_or(0, |ages| ages.count()), account.unsent);
        let in_window = step.intervals.iter().filter(|interval| !interval.warmup);
        assert_eq!(in_window.map(|interval| interval.counters.operations.unwrap()).sum::<u64>(), account.done.count);
        account
    }

    /// All that had an end of any kind, or none.
    fn all(&self) -> u64 {
        let Self { done, failed, late, late_failed, unended, unsent, .. } = self;
        done.count + failed.count + late.count + late_failed + unended.count + unsent
    }
}

/// A limit as a user sets it.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    pub per_mille: u64,
    pub ns: u64,
    /// Share of operations that may fail.
    pub errors: f64,
}

/// A rate is reached if so large a share of what was due ended, and no more than this waits for a slot.
const REACHED: f64 = 0.97;
const WAITING: f64 = 0.01;
/// Times are recorded to 0.8 %: what is so close to a limit may be on either side of it.
const CLOSE: f64 = 0.01;

impl Observed {
    /// As the observer has it, from one operation after the other.
    pub fn account(&self) -> Account {
        let mut account = Account::default();
        let mut carried_in = 0;
        for &(due_ns, Seen { ended, .. }) in &self.operations {
            match ended {
                Some((at_ns, _)) if at_ns < self.window_ns.start => continue,
                Some((at_ns, OperationResult::Done)) if at_ns < self.window_ns.end => account.done.add(at_ns - due_ns),
                Some((at_ns, OperationResult::Failed)) if at_ns < self.window_ns.end => {
                    account.failed.add(at_ns - due_ns);
                }
                Some((at_ns, OperationResult::Done)) => account.late.add(at_ns - due_ns),
                Some((_, OperationResult::Failed)) => account.late_failed += 1,
                None => account.unended.add(self.given_up_ns - due_ns),
            }
            carried_in += u64::from(due_ns < self.window_ns.start);
        }
        account.unsent = self.unsent_ns.len() as u64;
        let due = self.operations.iter().filter(|(due_ns, _)| self.window_ns.contains(due_ns)).count() as u64;
        let due = due + account.unsent;
        account.due = self.pace.is_open().then_some(due);
        // Nothing that fell due is missing, and nothing is there twice.
        assert_eq!(account.all(), due + carried_in);
        account
    }

    /// Whether a limit was kept; `None` where it is too close to say.
    pub fn answer(&self, limit: Limit) -> Option<LimitAnswer> {
        let exactly = self.answer_within(limit, limit.ns);
        let around = [1.0 - CLOSE, 1.0 + CLOSE].map(|near| self.answer_within(limit, (limit.ns as f64 * near) as u64));
        around.iter().all(|near| *near == exactly).then_some(exactly)
    }

    fn answer_within(&self, limit: Limit, ns: u64) -> LimitAnswer {
        let account = self.account();
        let failed = account.failed.count + account.late_failed;
        let ended = account.done.count + account.late.count + failed;
        if failed as f64 > limit.errors * ended as f64 || !self.reaches_its_rate(&account) {
            return LimitAnswer::No;
        }
        let (mut all, mut within, mut perhaps) = (0, 0, 0);
        for &(due_ns, Seen { ended, .. }) in &self.operations {
            match ended {
                Some((at_ns, result)) if at_ns < self.window_ns.start || result == OperationResult::Failed => continue,
                Some((at_ns, _)) => within += u64::from(at_ns - due_ns <= ns),
                // It would have taken longer, and by how much is not known.
                None => perhaps += u64::from(self.given_up_ns - due_ns <= ns),
            }
            all += 1;
        }
        // What was never sent would have had to wait for a slot at least.
        let frees = self.operations.iter().filter_map(|(_, one)| Some(one.ended?.0));
        let frees_ns = frees.filter(|at_ns| *at_ns >= self.window_ns.end).min().unwrap_or(self.given_up_ns);
        let (all_sent, waits) = (all, self.unsent_ns.iter().filter(|due_ns| frees_ns - **due_ns > ns).count() as u64);
        all += waits;
        let is_kept = |within: u64| 1_000 * within >= limit.per_mille * all;
        match () {
            () if all_sent == 0 => LimitAnswer::NoVerdict,
            () if is_kept(within) => LimitAnswer::Yes,
            () if is_kept(within + perhaps) => LimitAnswer::NoVerdict,
            () => LimitAnswer::No,
        }
    }

    fn reaches_its_rate(&self, account: &Account) -> bool {
        let (Some(rate_per_s), Some(due)) = (self.pace.rate_per_s(), account.due) else { return true };
        let wanted = (rate_per_s * self.step.window.duration_ns as f64 / 1e9).min(due as f64);
        let ended = (account.done.count + account.failed.count) as f64;
        ended >= REACHED * wanted && account.unsent as f64 <= (WAITING * due as f64).max(f64::from(self.depth))
    }
}
