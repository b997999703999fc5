//! Operations in batches, each executed and timed by a procedure on the server.

use std::sync::Arc;

use super::check::check_rows;
use super::filling::Filling;
use super::line::{Answer, Line};
use super::session::{kind_of, one_of_each};
use super::times::ServerTimes;
use crate::targets::postgres::error::PostgresError;
use crate::targets::postgres::target::Postgres;
use crate::targets::{BatchLane, BatchedOperation, FinishedBatch, OperationResult, SessionRange, TargetError};
use crate::workload::{OperationKind, SlobOperation};

/// How long a batch should take. Sending and reading one costs about 0.2 ms of the client's time; and where all processors
/// are busy, its session stands idle for some milliseconds until the client has its turn, which is then a hundredth.
const BATCH_NS: u64 = 500_000_000;
/// Where the server limits how long statements take, a batch takes so small a part of that. It must not fail when storage
/// becomes a few times as slow while it runs: all of its operations would count as failed.
const OF_THE_TIMEOUT: u64 = 10;

/// What the procedure is given of the operations of a batch.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Arrays {
    pub(super) kinds: Vec<i16>,
    pub(super) hot: Vec<bool>,
    pub(super) first_keys: Vec<i64>,
    pub(super) keys: Vec<i32>,
    pub(super) filling: Vec<u8>,
}

impl Arrays {
    /// The schema whose procedure executes these operations, and what it is given but the filling.
    ///
    /// # Errors
    /// When they are of more schemas than a procedure knows: those of one session are of its home or of the first.
    fn of(operations: &[SlobOperation]) -> Result<(u32, Self), TargetError> {
        let schema = operations.iter().map(|operation| operation.schema).max().unwrap_or(0);
        let mut arrays = Self::default();
        for operation in operations {
            if ![0, schema].contains(&operation.schema) {
                return Err(TargetError::Shape(format!(
                    "a session works on schemas {} and {schema}: in batches it can only work on one beside the first",
                    operation.schema
                )));
            }
            arrays.kinds.push(kind_of(operation) as i16);
            arrays.hot.push(operation.schema != schema);
            arrays.first_keys.push(operation.first_key as i64);
            arrays.keys.push(operation.keys as i32);
        }
        Ok((schema, arrays))
    }
}

/// What is under way in a session, or was last.
#[derive(Debug, Default)]
struct Sent {
    operations: Vec<SlobOperation>,
    at_ns: u64,
}

/// Sends operations in batches.
pub(in crate::targets::postgres) struct BatchesLane<'t> {
    line: Line<'t, ServerTimes>,
    batch_ns: u64,
    sent: Vec<Sent>,
    filling: Filling,
    answers: Vec<Answer<ServerTimes>>,
    /// What is under way was asked to end: that it was cancelled is then no news.
    broken_off: bool,
}

impl<'t> BatchesLane<'t> {
    pub(in crate::targets::postgres) fn open(target: &'t Postgres, range: SessionRange) -> Result<Self, TargetError> {
        let line = Line::open(target, range)?;
        let timeouts_ms = line.sessions().iter().filter_map(|session| session.statement_timeout_ms);
        let limit_ns = timeouts_ms.min().map(|ms| ms.saturating_mul(1_000_000) / OF_THE_TIMEOUT);
        Ok(Self {
            line,
            batch_ns: limit_ns.map_or(BATCH_NS, |limit_ns| limit_ns.clamp(1, BATCH_NS)),
            sent: (0..range.sessions).map(|_| Sent::default()).collect(),
            filling: Filling::new(range),
            answers: Vec::new(),
            broken_off: false,
        })
    }

    fn settle(&self, answer: Answer<ServerTimes>) -> Result<FinishedBatch, TargetError> {
        let Answer { session, at_ns, result } = answer;
        let Sent { operations, at_ns: sent_ns } = &self.sent[session as usize];
        let node = || self.line.node_of(session);
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
        if !times.is_of(operations.len()) {
            let what = format!("the procedures of {} on `{}` are not Plimsoll's own", target.sql().schema(), node());
            let hint = Some("make them anew: `plimsoll slob setup --replace`".to_owned());
            return Err(PostgresError::Unfit { what, hint }.into());
        }
        let (placed, clock_was_set) = times.lay_between(*sent_ns, at_ns);
        if clock_was_set {
            target.note_set_clock();
        }
        let mut done = Vec::with_capacity(operations.len());
        for ((operation, placed), touched) in operations.iter().zip(placed).zip(times.touched) {
            let block_touches = u64::try_from(touched).unwrap_or(0);
            check_rows(target.sql(), operation, block_touches, node)?;
            done.push(BatchedOperation {
                ended_ns: placed.ended_ns,
                service_ns: placed.service_ns,
                commit_ns: placed.commit_ns,
                block_touches,
                block_changes: if operation.kind == OperationKind::Update { block_touches } else { 0 },
            });
        }
        Ok(FinishedBatch { session, operations: done, result: OperationResult::Done })
    }
}

impl BatchLane<SlobOperation> for BatchesLane<'_> {
    fn batch_ns(&self) -> u64 {
        self.batch_ns
    }

    fn send(&mut self, session: u32, operations: &[SlobOperation], sent_ns: u64) -> Result<(), TargetError> {
        let (schema, mut arrays) = Arrays::of(operations)?;
        let sql = Arc::clone(self.line.target.sql());
        if operations.iter().any(|operation| operation.kind == OperationKind::Update) {
            arrays.filling = self.filling.make(sql.batch_filling_bytes());
        }
        let sent = &mut self.sent[session as usize];
        sent.operations.clear();
        sent.operations.extend_from_slice(operations);
        sent.at_ns = sent_ns;
        let asked = Arc::clone(&self.line.sessions()[session as usize]);
        self.line.ask(session, sent_ns, async move { asked.execute_batch(schema, &arrays, &sql).await });
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
        let mut rehearsals = Vec::new();
        for session in 0..self.line.range.sessions {
            let mut kinds = one_of_each(upcoming(session));
            // There is no scan of nothing.
            kinds.retain(|operation| operation.kind != OperationKind::Scan);
            kinds.iter_mut().for_each(|operation| operation.keys = 0);
            rehearsals.push(Arrays::of(&kinds)?);
        }
        let sql = self.line.target.sql();
        self.line.with_each(|number, session| {
            let (schema, mut arrays) = std::mem::take(&mut rehearsals[number as usize]);
            arrays.filling = vec![0; sql.batch_filling_bytes() as usize];
            let sql = Arc::clone(sql);
            async move { session.execute_batch(schema, &arrays, &sql).await.map(drop) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::RedoStress;

    fn read(schema: u32) -> SlobOperation {
        SlobOperation { kind: OperationKind::Read, schema, first_key: 7, keys: 3, redo_stress: RedoStress::Lite }
    }

    #[test]
    fn a_batch_goes_to_its_sessions_home_and_says_which_operations_are_on_the_first_schema() {
        let update = SlobOperation { kind: OperationKind::Update, redo_stress: RedoStress::Heavy, ..read(0) };
        let (schema, arrays) = Arrays::of(&[read(4), update, read(4)]).unwrap();
        assert_eq!((schema, arrays.hot, arrays.kinds), (4, vec![false, true, false], vec![0, 2, 0]));
        assert_eq!((arrays.first_keys, arrays.keys), (vec![7; 3], vec![3; 3]));
        let (schema, arrays) = Arrays::of(&[read(0), update]).unwrap();
        assert_eq!((schema, arrays.hot), (0, vec![false, false]));
    }

    #[test]
    fn operations_of_two_homes_are_refused_instead_of_done_elsewhere() {
        assert!(Arrays::of(&[read(1), read(2)]).is_err());
    }
}
