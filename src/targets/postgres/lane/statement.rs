//! Each operation a prepared statement of its own; what it took is what the client waited for it.

use std::sync::Arc;

use super::check::check_rows;
use super::filling::Filling;
use super::line::{Answer, Line};
use super::session::{kind_of, one_of_each};
use crate::measure::{Counter, LaneRecorder};
use crate::targets::postgres::sql::{BatchKind, COLUMNS};
use crate::targets::postgres::target::Postgres;
use crate::targets::{Finished, Lane, OperationResult, SessionRange, TargetError};
use crate::workload::{OperationKind, SlobOperation};

/// Columns that a light update changes.
const LITE_COLUMNS: u32 = 2;

/// Sends operations one by one.
pub(in crate::targets::postgres) struct StatementLane<'t> {
    line: Line<'t, u64>,
    /// What each session does, or did last.
    operations: Vec<Option<SlobOperation>>,
    filling: Filling,
    answers: Vec<Answer<u64>>,
}

impl<'t> StatementLane<'t> {
    pub(in crate::targets::postgres) fn open(target: &'t Postgres, range: SessionRange) -> Result<Self, TargetError> {
        let line = Line::open(target, range)?;
        let operations = vec![None; range.sessions as usize];
        Ok(Self { line, operations, filling: Filling::new(range), answers: Vec::new() })
    }

    fn settle(&self, answer: Answer<u64>, recorder: &mut LaneRecorder) -> Result<Finished, TargetError> {
        let Answer { session, at_ns, result } = answer;
        let operation = self.operations[session as usize].expect("only sessions that were asked answer");
        let target = self.line.target;
        let block_touches = match result {
            Ok(rows) => {
                check_rows(target.sql(), &operation, rows, || self.line.node_of(session))?;
                rows
            }
            Err(error) => {
                if error.ends_the_load() {
                    return Err(error.into());
                }
                target.note_failure(error);
                return Ok(Finished { session, at_ns, block_touches: 0, result: OperationResult::Failed });
            }
        };
        if operation.kind == OperationKind::Update {
            recorder.advance(at_ns);
            recorder.count(Counter::Commits, 1);
            recorder.count(Counter::BlockChanges, block_touches);
        }
        Ok(Finished { session, at_ns, block_touches, result: OperationResult::Done })
    }
}

impl Lane<SlobOperation> for StatementLane<'_> {
    fn start(
        &mut self,
        session: u32,
        operation: &SlobOperation,
        sent_ns: u64,
        _: &mut LaneRecorder,
    ) -> Result<(), TargetError> {
        let operation = *operation;
        self.operations[session as usize] = Some(operation);
        let sql = Arc::clone(self.line.target.sql());
        let filling = match kind_of(&operation) {
            BatchKind::Read | BatchKind::Scan => Vec::new(),
            BatchKind::UpdateLite => self.filling.make(LITE_COLUMNS * sql.column_bytes()),
            BatchKind::UpdateHeavy => self.filling.make(COLUMNS * sql.column_bytes()),
        };
        let asked = Arc::clone(&self.line.sessions()[session as usize]);
        self.line.ask(session, sent_ns, async move { asked.execute(operation, &filling, &sql).await });
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
        let sql = self.line.target.sql();
        self.line.with_each(|number, session| {
            let (sql, kinds) = (Arc::clone(sql), one_of_each(upcoming(number)));
            async move {
                for operation in kinds {
                    session.rehearse(operation, &sql).await?;
                }
                Ok(())
            }
        })
    }
}
