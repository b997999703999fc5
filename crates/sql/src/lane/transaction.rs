//! Transactions of order entry: each a job that a session does to its end.

use super::inbox::Job;
use super::line::{Answer, Line};
use super::slot::{Connecting, Slot};
use crate::ServerError;
use crate::orders::load::{OrdersSession, OrdersSetting, Performed, Room, Rules, perform, statements_of};
use crate::session::SqlServers;
use crate::target::SqlTarget;
use measure::{LaneRecorder, WaitEvent};
use model::workload::Operation as _;
use model::workload::orders::{OrderTransaction, TransactionKind};
use targets::{Finished, Lane, OperationResult, SessionRange, TargetError};

/// A transaction, and what it needs.
#[derive(Debug, Default)]
struct OneTransaction {
    /// None before the first.
    asked: Option<(OrderTransaction, Rules)>,
    /// The connection is left after it.
    leaves: bool,
    /// Room for choices and answers.
    room: Room,
}

/// What came of a transaction, and of the connection that it needed first.
#[derive(Debug)]
struct Came {
    connecting: Connecting,
    result: Result<Performed, ServerError>,
}

impl<D: SqlServers<Session: OrdersSession>> Job<D> for OneTransaction {
    type Work = OrdersSetting;
    type Answer = Came;

    async fn run_on(&mut self, slot: &Slot<D>) -> Result<Came, ServerError> {
        let (transaction, rules) = self.asked.as_ref().expect("a job is given with a transaction");
        let mut connecting = Connecting::default();
        let result = match slot.connected(&mut connecting).await {
            Ok(session) => perform(&*session, *transaction, rules, &mut self.room, slot.alarm()).await,
            Err(error) => Err(error),
        };
        if self.leaves {
            slot.leave();
        }
        Ok(Came { connecting, result })
    }
}

/// Has sessions do transactions.
pub(crate) struct TransactionLane<'t, D: SqlServers<Session: OrdersSession>> {
    line: Line<'t, D, OneTransaction>,
    rules: Rules,
    /// What each session does, or did last.
    kinds: Vec<Option<TransactionKind>>,
    /// How many transactions the connection of each session still serves; without end where none is made anew.
    left: Vec<u64>,
    answers: Vec<Answer<Came>>,
}

impl<'t, D: SqlServers<Session: OrdersSession>> TransactionLane<'t, D> {
    pub(crate) fn open(target: &'t SqlTarget<D, OrdersSetting>, range: SessionRange) -> Result<Self, TargetError> {
        let line = Line::open(target, range)?;
        let (rules, kinds) = (target.work().rules, vec![None; range.sessions as usize]);
        let numbers = range.first_session..range.first_session + range.sessions;
        let left = numbers.map(|number| rules.reconnect.first_lasts(number)).collect();
        Ok(Self { line, rules, kinds, left, answers: Vec::new() })
    }

    fn settle(&self, answer: Answer<Came>, recorder: &mut LaneRecorder) -> Result<Finished, TargetError> {
        let Answer { session, at_ns, result } = answer;
        let kind = self.kinds[session as usize].expect("only sessions that were asked answer");
        let Came { connecting, result } = result?;
        recorder.advance(at_ns);
        if let Some(took_ns) = connecting.took_ns {
            recorder.wait(WaitEvent::Connect, took_ns);
        }
        recorder.failed_connects(&connecting.failed);
        let Performed { tally, result } = result?;
        recorder.transaction(kind.index(), &tally);
        let result = match result {
            Ok(acknowledged) => {
                self.line.target.work().ledger.add(&acknowledged);
                OperationResult::Done
            }
            Err(error) => {
                self.line.target.note_failure(error);
                OperationResult::Failed
            }
        };
        let connecting_ns = connecting.all_ns;
        Ok(Finished { session, at_ns, paused_ns: tally.paused_ns, connecting_ns, block_touches: 0, result })
    }
}

impl<D: SqlServers<Session: OrdersSession>> Lane<OrderTransaction> for TransactionLane<'_, D> {
    fn start(
        &mut self,
        session: u32,
        transaction: &OrderTransaction,
        sent_ns: u64,
        _: &mut LaneRecorder,
    ) -> Result<(), TargetError> {
        self.kinds[session as usize] = Some(transaction.kind);
        let asked = Some((*transaction, self.rules));
        let left = &mut self.left[session as usize];
        *left = left.saturating_sub(1);
        let leaves = *left == 0;
        if leaves {
            *left = self.rules.reconnect.lasts();
        }
        self.line.ask(session, sent_ns, |job| (job.asked, job.leaves) = (asked, leaves));
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
                // Before the load, these belong to no transaction.
                session.take_preparing();
                Ok(())
            }
        })
    }
}
