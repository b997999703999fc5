//! Operations in batches, each executed and timed by a procedure on the server.

use std::sync::Arc;

use super::line::{Answer, Job, Line};
use super::{ServerTimes, Slot, Ways, one_of_each};
use crate::ServerError;
use crate::filling::Filling;
use crate::session::{SlobSession, SqlServers, home_schema};
use crate::target::{SlobTables, SqlTarget};
use model::workload::{OperationKind, SlobOperation};
use targets::{BatchLane, FinishedBatch, OperationResult, SessionRange, TargetError};

/// Where the server limits how long statements take, a batch takes so small a part of that. It must not fail when storage
/// becomes a few times as slow while it runs: all of its operations would count as failed.
const OF_THE_TIMEOUT: u64 = 10;

/// Most operations of a batch, and where sessions are so many that a lane would have more than `LANE_OPERATIONS` under way, each of
/// which takes some 200 bytes until it is recorded, fewer; but never less than this.
const MAX_OPERATIONS: usize = 10_000;
const LANE_OPERATIONS: usize = 400_000;
const MIN_OPERATIONS: usize = 250;

/// Checks that a procedure can execute these operations.
///
/// # Errors
/// When they are of more schemas than a procedure knows: those of one session are of its home or of the first.
fn check_homes(operations: &[SlobOperation]) -> Result<(), TargetError> {
    let home = home_schema(operations);
    match operations.iter().find(|operation| ![0, home].contains(&operation.schema)) {
        Some(stray) => Err(TargetError::Shape(format!(
            "a session works on schemas {} and {home}: in batches it can only work on one beside the first",
            stray.schema
        ))),
        None => Ok(()),
    }
}

/// Operations, and what their updates write parts of.
#[derive(Debug, Default)]
struct List {
    operations: Arc<[SlobOperation]>,
    filling: Vec<u8>,
}

impl<D: SqlServers<Session: SlobSession>> Job<D> for List {
    type Work = SlobTables;
    type Answer = ServerTimes;

    async fn run_on(&mut self, slot: &Slot<D>) -> Result<ServerTimes, ServerError> {
        // Not kept until the next: lists are long, and sessions many.
        let operations = std::mem::take(&mut self.operations);
        slot.session().await?.execute_batch(&operations, &self.filling).await
    }
}

/// What is under way in a session, or was last.
#[derive(Debug, Clone)]
struct Sent {
    operations: Arc<[SlobOperation]>,
    at_ns: u64,
    /// The way to its server and back.
    ways: Ways,
}

/// Sends operations in batches.
pub(crate) struct BatchesLane<'t, D: SqlServers<Session: SlobSession>> {
    line: Line<'t, D, List>,
    batch_ns: u64,
    sent: Vec<Sent>,
    filling: Filling,
    answers: Vec<Answer<ServerTimes>>,
    /// What is under way was asked to end: that it was cancelled is then no news.
    broken_off: bool,
}

impl<'t, D: SqlServers<Session: SlobSession>> BatchesLane<'t, D> {
    pub(crate) fn open(target: &'t SqlTarget<D>, range: SessionRange) -> Result<Self, TargetError> {
        let line = Line::open(target, range)?;
        let timeouts_ms = line.sessions().filter_map(|session| session.statement_timeout_ms());
        let limit_ns = timeouts_ms.min().map(|ms| ms.saturating_mul(1_000_000) / OF_THE_TIMEOUT);
        Ok(Self {
            line,
            batch_ns: limit_ns.map_or(D::Session::BATCH_NS, |limit_ns| limit_ns.clamp(1, D::Session::BATCH_NS)),
            sent: vec![Sent { operations: Arc::default(), at_ns: 0, ways: Ways::default() }; range.sessions as usize],
            filling: Filling::new(range, target.work().column_bytes),
            answers: Vec::new(),
            broken_off: false,
        })
    }

    fn settle(&mut self, answer: Answer<ServerTimes>) -> Result<FinishedBatch, TargetError> {
        let Answer { session, at_ns, result } = answer;
        let Sent { operations, at_ns: sent_ns, ways } = &mut self.sent[session as usize];
        let target = self.line.target;
        let times = match result {
            Ok(times) => times,
            Err(error) => {
                if error.ends_the_load() {
                    return Err(error.into());
                }
                if !self.broken_off {
                    target.note_failure(error);
                }
                return Ok(FinishedBatch { session, operations: Vec::new(), result: OperationResult::Failed });
            }
        };
        if times.operations.len() != operations.len() {
            let (namespace, node) = (&target.work().namespace, self.line.node_of(session));
            let what = format!("the procedures of {namespace} on `{node}` are not Plimsoll's own");
            let hint = Some("make them again: `plimsoll slob setup --replace`".to_owned());
            return Err(ServerError::unfit(what, hint).into());
        }
        let (mut placed, clock_was_set) = times.lay_between(*sent_ns, at_ns, ways);
        if clock_was_set {
            target.note_set_clock();
        }
        for (operation, placed) in operations.iter().zip(&mut placed) {
            self.line.checked(session, operation, placed.block_touches)?;
            if operation.kind == OperationKind::Update {
                placed.block_changes = placed.block_touches;
            }
        }
        Ok(FinishedBatch { session, operations: placed, result: OperationResult::Done })
    }
}

impl<D: SqlServers<Session: SlobSession>> BatchLane<SlobOperation> for BatchesLane<'_, D> {
    fn batch_ns(&self) -> u64 {
        self.batch_ns
    }

    fn max_operations(&self) -> usize {
        (LANE_OPERATIONS / self.line.range.sessions.max(1) as usize).clamp(MIN_OPERATIONS, MAX_OPERATIONS)
    }

    fn send(&mut self, session: u32, operations: &[SlobOperation], sent_ns: u64) -> Result<(), TargetError> {
        check_homes(operations)?;
        let has_updates = operations.iter().any(|operation| operation.kind == OperationKind::Update);
        let operations: Arc<[SlobOperation]> = operations.into();
        let sent = &mut self.sent[session as usize];
        (sent.operations, sent.at_ns) = (Arc::clone(&operations), sent_ns);
        let filling = &mut self.filling;
        self.line.ask(session, sent_ns, |job| {
            job.operations = operations;
            match has_updates {
                true => filling.of_batch(&mut job.filling),
                false => job.filling.clear(),
            }
        });
        Ok(())
    }

    fn poll(&mut self, until_ns: u64, finished: &mut Vec<FinishedBatch>) -> Result<(), TargetError> {
        let mut answers = std::mem::take(&mut self.answers);
        self.line.wait(until_ns, &mut answers)?;
        for answer in answers.drain(..) {
            finished.push(self.settle(answer)?);
        }
        self.answers = answers;
        Ok(())
    }

    fn break_off(&mut self) {
        self.broken_off = true;
        self.line.cancel();
    }

    fn abandon(&mut self) -> Result<(), TargetError> {
        self.line.abandon()
    }

    /// Has the procedure execute what is to come on no rows, since it is compiled, and each of its statements planned, when it
    /// is first executed.
    fn prepare(&mut self, upcoming: &mut dyn FnMut(u32) -> Vec<SlobOperation>) -> Result<(), TargetError> {
        let mut rehearsals: Vec<Arc<[SlobOperation]>> = Vec::new();
        for session in 0..self.line.range.sessions {
            let mut kinds = one_of_each(upcoming(session));
            // There is no scan of nothing.
            kinds.retain(|operation| operation.kind != OperationKind::Scan);
            kinds.iter_mut().for_each(|operation| operation.keys = 0);
            check_homes(&kinds)?;
            rehearsals.push(kinds.into());
        }
        let mut filling = Vec::new();
        self.filling.of_batch(&mut filling);
        let filling: Arc<[u8]> = filling.into();
        self.line.with_each(|number, session| {
            let (kinds, filling) = (std::mem::take(&mut rehearsals[number as usize]), Arc::clone(&filling));
            async move { session.execute_batch(&kinds, &filling).await.map(drop) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::workload::RedoStress;

    #[test]
    fn operations_of_two_homes_are_refused_instead_of_done_elsewhere() {
        let redo_stress = RedoStress::Lite;
        let read = |schema| SlobOperation { kind: OperationKind::Read, schema, first_key: 7, keys: 3, redo_stress };
        assert!(check_homes(&[read(1), read(2)]).is_err());
        assert!(check_homes(&[read(2), read(0), read(2)]).is_ok() && check_homes(&[]).is_ok());
    }
}
