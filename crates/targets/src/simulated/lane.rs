//! Lanes to a simulated target: they sleep until what was sent is done.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Simulated, SimulatedRequest};
use crate::{Finished, Lane, OperationResult, SessionRange, TargetError};
use ::model::workload::SlobOperation;
use ::model::workload::io::IoOperation;
use measure::{Clock, Counter, LaneRecorder, WaitEvent};

/// Touches of a scan, whose table has no size here.
const SCAN_TOUCHES: u64 = 128;

/// Bytes of a block that an operation of the SLOB method touches.
const BLOCK_BYTES: u32 = 8_192;

/// Blocks between the tables of two schemas, so that none overlap.
const SCHEMA_BLOCKS: u64 = 1 << 36;

/// Requests of one lane that are under way.
pub(super) struct Line<'t> {
    target: &'t Simulated,
    clock: Clock,
    /// When each is done, of which session it is, and how it ends; soonest first.
    under_way: BinaryHeap<Reverse<(u64, u32, OperationResult)>>,
}

impl<'t> Line<'t> {
    pub(super) fn new(target: &'t Simulated, range: SessionRange) -> Self {
        Self { target, clock: range.clock, under_way: BinaryHeap::with_capacity(range.sessions as usize) }
    }

    fn send(&mut self, session: u32, at_ns: u64, request: SimulatedRequest) {
        let served = self.target.serve(at_ns, request);
        self.under_way.push(Reverse((served.done_at_ns, session, served.result)));
    }

    /// Sleeps until something is done, though not past `until_ns`. Returns what time it is then.
    fn sleep(&self, until_ns: u64) -> u64 {
        let next_ns = self.under_way.peek().map_or(u64::MAX, |Reverse((at_ns, ..))| *at_ns);
        self.clock.sleep_until(next_ns.min(until_ns));
        self.clock.now_ns()
    }

    /// The next request that is done by `now_ns`.
    fn done(&mut self, now_ns: u64) -> Option<(u64, u32, OperationResult)> {
        let Reverse((at_ns, ..)) = self.under_way.peek()?;
        if *at_ns > now_ns {
            return None;
        }
        self.under_way.pop().map(|Reverse(done)| done)
    }

    /// Where waiting costs nothing, what is under way is awaited as on a real device: the next step finds it at rest.
    fn abandon(&mut self) {
        if self.clock.is_simulated() {
            let last_ns = self.under_way.iter().map(|Reverse((at_ns, ..))| *at_ns).max();
            self.clock.sleep_until(last_ns.unwrap_or(0));
        }
        self.under_way.clear();
    }
}

/// An operation of the SLOB method: its touches, one after the other.
#[derive(Debug, Clone, Copy)]
struct Visit {
    touches: u64,
    left: u64,
    /// Block of the next touch.
    next_block: u64,
    /// When the present read was sent.
    sent_ns: u64,
    result: OperationResult,
}

impl Visit {
    fn next_read(&mut self, at_ns: u64) -> SimulatedRequest {
        let offset_bytes = self.next_block.wrapping_mul(u64::from(BLOCK_BYTES));
        self.next_block = self.next_block.wrapping_add(1);
        self.sent_ns = at_ns;
        SimulatedRequest { offset_bytes, bytes: BLOCK_BYTES, is_write: false }
    }
}

pub(super) struct SlobLane<'t> {
    line: Line<'t>,
    visits: Vec<Visit>,
}

impl<'t> SlobLane<'t> {
    pub(super) fn new(line: Line<'t>, sessions: u32) -> Self {
        let idle = Visit { touches: 0, left: 0, next_block: 0, sent_ns: 0, result: OperationResult::Done };
        Self { line, visits: vec![idle; sessions as usize] }
    }
}

impl Lane<SlobOperation> for SlobLane<'_> {
    fn start(
        &mut self,
        session: u32,
        operation: &SlobOperation,
        now: u64,
        _: &mut LaneRecorder,
    ) -> Result<(), TargetError> {
        let table = u64::from(operation.schema).wrapping_mul(SCHEMA_BLOCKS);
        // A scan's table lies in the upper half of the schema's blocks.
        let (touches, first_block) = match operation.keys {
            0 => (SCAN_TOUCHES, SCHEMA_BLOCKS / 2),
            keys => (u64::from(keys), operation.first_key),
        };
        let visit = &mut self.visits[session as usize];
        let next_block = table.wrapping_add(first_block);
        *visit = Visit { touches, left: touches, next_block, sent_ns: now, result: OperationResult::Done };
        self.line.send(session, now, visit.next_read(now));
        Ok(())
    }

    fn poll(
        &mut self,
        until_ns: u64,
        recorder: &mut LaneRecorder,
        finished: &mut Vec<Finished>,
    ) -> Result<(), TargetError> {
        let now = self.line.sleep(until_ns);
        while let Some((at_ns, session, result)) = self.line.done(now) {
            let visit = &mut self.visits[session as usize];
            if result == OperationResult::Failed {
                visit.result = result;
            } else {
                // The simulated instant counts, not the one when this thread woke up.
                recorder.advance(at_ns);
                recorder.wait(WaitEvent::DbFileSequentialRead, at_ns - visit.sent_ns);
                recorder.count(Counter::LogicalReads, 1);
                recorder.count(Counter::PhysicalReads, 1);
            }
            visit.left -= 1;
            if visit.left == 0 || visit.result == OperationResult::Failed {
                let block_touches = visit.touches - visit.left;
                finished.push(Finished {
                    session,
                    at_ns,
                    paused_ns: 0,
                    connecting_ns: 0,
                    block_touches,
                    result: visit.result,
                });
            } else {
                let request = visit.next_read(at_ns);
                self.line.send(session, at_ns, request);
            }
        }
        Ok(())
    }

    fn abandon(&mut self) -> Result<(), TargetError> {
        self.line.abandon();
        Ok(())
    }
}

/// A request and when it was sent.
#[derive(Debug, Clone, Copy)]
struct Sent {
    event: WaitEvent,
    requests: Counter,
    request_bytes: Counter,
    bytes: u32,
    moves_data: bool,
    at_ns: u64,
}

impl Sent {
    fn new(operation: &IoOperation, at_ns: u64) -> Self {
        let bytes = operation.bytes;
        let (event, requests, request_bytes) = if operation.kind.is_write() {
            (WaitEvent::DirectPathWrite, Counter::PhysicalWrites, Counter::PhysicalWriteBytes)
        } else {
            (WaitEvent::of_read(bytes), Counter::PhysicalReads, Counter::PhysicalReadBytes)
        };
        Self { event, requests, request_bytes, bytes, moves_data: operation.kind.moves_data(), at_ns }
    }
}

pub(super) struct IoLane<'t> {
    line: Line<'t>,
    sent: Vec<Option<Sent>>,
}

impl<'t> IoLane<'t> {
    pub(super) fn new(line: Line<'t>, sessions: u32) -> Self {
        Self { line, sent: vec![None; sessions as usize] }
    }
}

impl Lane<IoOperation> for IoLane<'_> {
    fn start(
        &mut self,
        session: u32,
        operation: &IoOperation,
        now: u64,
        _: &mut LaneRecorder,
    ) -> Result<(), TargetError> {
        let IoOperation { kind, offset_bytes, bytes, .. } = *operation;
        self.sent[session as usize] = Some(Sent::new(operation, now));
        if !kind.moves_data() {
            // Nothing is written here that could be made durable or given back.
            self.line.under_way.push(Reverse((now, session, OperationResult::Done)));
            return Ok(());
        }
        self.line.send(session, now, SimulatedRequest { offset_bytes, bytes, is_write: kind.is_write() });
        Ok(())
    }

    fn poll(
        &mut self,
        until_ns: u64,
        recorder: &mut LaneRecorder,
        finished: &mut Vec<Finished>,
    ) -> Result<(), TargetError> {
        let now = self.line.sleep(until_ns);
        while let Some((at_ns, session, result)) = self.line.done(now) {
            let sent = self.sent[session as usize].expect("only what was sent is done");
            if result == OperationResult::Done && sent.moves_data {
                recorder.advance(at_ns);
                recorder.wait(sent.event, at_ns - sent.at_ns);
                recorder.count(sent.requests, 1);
                recorder.count(sent.request_bytes, u64::from(sent.bytes));
            }
            finished.push(Finished { session, at_ns, paused_ns: 0, connecting_ns: 0, block_touches: 1, result });
        }
        Ok(())
    }

    fn abandon(&mut self) -> Result<(), TargetError> {
        self.line.abandon();
        Ok(())
    }
}
