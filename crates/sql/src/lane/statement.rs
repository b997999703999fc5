//! Each operation a prepared statement of its own; what it took is what the client waited for it.

use super::inbox::Job;
use super::line::{Answer, Line};
use super::one_of_each;
use super::slot::Slot;
use crate::ServerError;
use crate::filling::Filling;
use crate::session::{SlobSession, SqlServers, StatementKind};
use crate::target::{SlobTables, SqlTarget};
use measure::{Counter, LaneRecorder};
use model::workload::{OperationKind, SlobOperation};
use targets::{Finished, Lane, OperationResult, SessionRange, TargetError};

/// An operation, and what it writes.
#[derive(Debug, Default)]
struct OneOperation {
    /// None before the first.
    operation: Option<SlobOperation>,
    filling: Vec<u8>,
}

impl<D: SqlServers<Session: SlobSession>> Job<D> for OneOperation {
    type Work = SlobTables;
    type Answer = u64;

    async fn run_on(&mut self, slot: &Slot<D>) -> Result<u64, ServerError> {
        let operation = self.operation.expect("a job is given with an operation");
        slot.session().await?.execute(operation, &self.filling).await
    }
}

/// Sends operations one by one.
pub(crate) struct StatementLane<'t, D: SqlServers<Session: SlobSession>> {
    line: Line<'t, D, OneOperation>,
    /// What each session does, or did last.
    operations: Vec<Option<SlobOperation>>,
    filling: Filling,
    answers: Vec<Answer<u64>>,
}

impl<'t, D: SqlServers<Session: SlobSession>> StatementLane<'t, D> {
    pub(crate) fn open(target: &'t SqlTarget<D>, range: SessionRange) -> Result<Self, TargetError> {
        let line = Line::open(target, range)?;
        let operations = vec![None; range.sessions as usize];
        let filling = Filling::new(range, target.work().column_bytes);
        Ok(Self { line, operations, filling, answers: Vec::new() })
    }

    fn settle(&self, answer: Answer<u64>, recorder: &mut LaneRecorder) -> Result<Finished, TargetError> {
        let Answer { session, at_ns, result } = answer;
        let operation = self.operations[session as usize].expect("only sessions that were asked answer");
        let (block_touches, result) = match result {
            Ok(rows) => (self.line.checked(session, &operation, rows)?, OperationResult::Done),
            Err(error) if error.ends_the_load() => return Err(error.into()),
            Err(error) => {
                self.line.target.note_failure(error);
                (0, OperationResult::Failed)
            }
        };
        if operation.kind == OperationKind::Update && result == OperationResult::Done {
            recorder.advance(at_ns);
            recorder.count(Counter::Commits, 1);
            recorder.count(Counter::BlockChanges, block_touches);
        }
        Ok(Finished { session, at_ns, paused_ns: 0, connecting_ns: 0, block_touches, result })
    }
}

impl<D: SqlServers<Session: SlobSession>> Lane<SlobOperation> for StatementLane<'_, D> {
    fn start(
        &mut self,
        session: u32,
        operation: &SlobOperation,
        sent_ns: u64,
        _: &mut LaneRecorder,
    ) -> Result<(), TargetError> {
        self.operations[session as usize] = Some(*operation);
        let filling = &mut self.filling;
        self.line.ask(session, sent_ns, |job| {
            job.operation = Some(*operation);
            filling.of_statement(StatementKind::of(operation), &mut job.filling);
        });
        Ok(())
    }

    fn poll(
        &mut self,
        until_ns: u64,
        recorder: &mut LaneRecorder,
        finished: &mut Vec<Finished>,
    ) -> Result<(), TargetError> {
        let mut answers = std::mem::take(&mut self.answers);
        self.line.wait(until_ns, &mut answers)?;
        for answer in answers.drain(..) {
            finished.push(self.settle(answer, recorder)?);
        }
        self.answers = answers;
        Ok(())
    }

    fn abandon(&mut self) -> Result<(), TargetError> {
        self.line.abandon()
    }

    /// Prepares what is to come and executes it once on no rows, since a statement is planned when it is first executed.
    fn prepare(&mut self, upcoming: &mut dyn FnMut(u32) -> Vec<SlobOperation>) -> Result<(), TargetError> {
        self.line.with_each(|number, session| {
            let kinds = one_of_each(upcoming(number));
            async move {
                for operation in kinds {
                    session.rehearse(operation).await?;
                }
                Ok(())
            }
        })
    }
}
