//! Transactions of order entry: each a job that a session does to its end.

use super::desk::Job;
use super::line::{Answer, Line};
use crate::measure::LaneRecorder;
use crate::targets::sql::orders::load::{OrdersServers, OrdersSession, Performed, Room, Rules, perform, statements_of};
use crate::targets::sql::target::SqlTarget;
use crate::targets::{Finished, Lane, OperationResult, SessionRange, TargetError};
use crate::workload::Operation as _;
use crate::workload::orders::{OrderTransaction, TransactionKind};

/// A transaction, and what it needs.
#[derive(Debug, Default)]
struct OneTransaction {
    /// None before the first.
    asked: Option<(OrderTransaction, Rules)>,
    /// Room for choices and answers.
    room: Room,
}

impl<S: OrdersSession> Job<S> for OneTransaction {
    type Answer = Performed<S::Error>;

    async fn done_by(&mut self, session: &S) -> Result<Performed<S::Error>, S::Error> {
        let (transaction, rules) = self.asked.as_ref().expect("a job is laid with a transaction");
        perform(session, *transaction, rules, &mut self.room).await
    }
}

/// Has sessions do transactions.
pub(in crate::targets::sql) struct TransactionLane<'t, D: OrdersServers> {
    line: Line<'t, D, OneTransaction>,
    rules: Rules,
    /// What each session does, or did last.
    kinds: Vec<Option<TransactionKind>>,
    answers: Vec<Answer<Performed<D::Error>, D::Error>>,
}

impl<'t, D: OrdersServers> TransactionLane<'t, D> {
    pub(in crate::targets::sql) fn open(target: &'t SqlTarget<D>, range: SessionRange) -> Result<Self, TargetError> {
        let line = Line::open(target, range)?;
        let (rules, kinds) = (target.servers().setting().rules, vec![None; range.sessions as usize]);
        Ok(Self { line, rules, kinds, answers: Vec::new() })
    }

    fn settle(
        &self,
        answer: Answer<Performed<D::Error>, D::Error>,
        recorder: &mut LaneRecorder,
    ) -> Result<Finished, TargetError> {
        let Answer { session, at_ns, result } = answer;
        let kind = self.kinds[session as usize].expect("only sessions that were asked answer");
        let Performed { tally, result } = result.map_err(Into::into)?;
        recorder.advance(at_ns);
        recorder.transaction(kind.index(), &tally);
        let result = match result {
            Ok(acknowledged) => {
                self.line.target.servers().setting().ledger.add(&acknowledged);
                OperationResult::Done
            }
            Err(error) => {
                self.line.target.note_failure(error);
                OperationResult::Failed
            }
        };
        Ok(Finished { session, at_ns, paused_ns: tally.paused_ns, block_touches: 0, result })
    }
}

impl<D: OrdersServers> Lane<OrderTransaction> for TransactionLane<'_, D> {
    fn start(
        &mut self,
        session: u32,
        transaction: &OrderTransaction,
        sent_ns: u64,
        _: &mut LaneRecorder,
    ) -> Result<(), TargetError> {
        self.kinds[session as usize] = Some(transaction.kind);
        let asked = Some((*transaction, self.rules));
        self.line.ask(session, sent_ns, |job| job.asked = asked);
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

    /// Prepares the statements of the kinds that are to come.
    fn prepare(&mut self, upcoming: &mut dyn FnMut(u32) -> Vec<OrderTransaction>) -> Result<(), TargetError> {
        let sending = self.rules.sending;
        self.line.with_each(|number, session| {
            let mut kinds = [false; OrderTransaction::KINDS.len()];
            upcoming(number).iter().for_each(|transaction| kinds[transaction.kind_index()] = true);
            async move {
                for kind in TransactionKind::ALL.into_iter().filter(|kind| kinds[kind.index()]) {
                    for statement in statements_of(kind, sending) {
                        session.prepare(statement).await?;
                    }
                }
                Ok(())
            }
        })
    }
}
