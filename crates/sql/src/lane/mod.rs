//! The sessions of one thread: each a connection of its own, all driven by one small runtime on that thread.
//!
//! [`Line`](line::Line) asks and hears the answers; what is asked is one statement for each operation
//! ([`StatementLane`]), a batch for a procedure on the server ([`BatchesLane`]) or a transaction of several statements
//! ([`TransactionLane`]).

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

mod batch;
mod line;

pub(super) use batch::BatchesLane;

use super::session::StatementKind;
use crate::ServerError;
use crate::filling::Filling;
use crate::orders::load::{Alarm, OrdersSession, OrdersSetting, Performed, Room, Rules, perform, statements_of};
use crate::session::{SessionId, SlobSession, SqlServers, SqlSession as _};
use crate::target::{SlobTables, SqlTarget};
use line::{Answer, Job, Line};
use measure::{ConnectFailure, Counter, FailedConnects, LaneRecorder, WaitEvent};
use model::workload::orders::{OrderTransaction, TransactionKind};
use model::workload::{Operation as _, OperationKind, SlobOperation};
use targets::{BatchedOperation, Finished, Lane, OperationResult, SessionRange, TargetError};

/// Something that a lane's runtime is to do beside the others.
type SideJob = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The first of each sort of operation, by what has to be prepared for them.
fn one_of_each(operations: Vec<SlobOperation>) -> Vec<SlobOperation> {
    let mut one_of_each: Vec<SlobOperation> = Vec::new();
    for operation in operations {
        let sort = |operation: &SlobOperation| (StatementKind::of(operation), operation.schema);
        if !one_of_each.iter().any(|known| sort(known) == sort(&operation)) {
            one_of_each.push(operation);
        }
    }
    one_of_each
}

// The server's clock, mapped to ours.
//
// A server times the operations of a batch by its wall clock, in microseconds. All of them lie between the moment when the
// batch was sent and that when its answer came. What is left between the two is taken to be way there and back in equal
// parts, as far as it is a way: a server that hangs before it begins, or before its answer leaves, times none of that,
// while statements sent one by one would show it. A wall clock can be set while a batch runs; that shows when its
// operations take longer than we waited for them all, or end before they began.

/// The server's clock may run so much faster than ours within a batch without having been set.
const TOLERANCE_NS: u64 = 1_000_000;

/// A way there and back that is longer than the shortest of its session by more than this holds a wait.
const LONGER_WAY_NS: u64 = 100_000_000;

/// The longest way that is believed of the first batches of a session, with which there is none to compare.
const FIRST_WAY_NS: u64 = 1_000_000_000;

/// The ways of so many batches are remembered: one that is longer for good is believed after them.
const WAYS: usize = 8;

/// How long a session's last batches took beside what its server timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ways {
    last_ns: [u64; WAYS],
    next: usize,
}

impl Default for Ways {
    fn default() -> Self {
        Self { last_ns: [FIRST_WAY_NS; WAYS], next: 0 }
    }
}

impl Ways {
    /// Takes one in; the shortest of the last ones, with it.
    fn learn(&mut self, way_ns: u64) -> u64 {
        let shortest_ns = self.shortest_ns().min(way_ns);
        self.last_ns[self.next] = way_ns.min(FIRST_WAY_NS);
        self.next = (self.next + 1) % WAYS;
        shortest_ns
    }

    fn shortest_ns(&self) -> u64 {
        self.last_ns.iter().copied().min().unwrap_or(FIRST_WAY_NS)
    }
}

/// What a server reported on a batch that it executed and timed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerTimes {
    /// When its first operation began, in microseconds of the server's clock since any instant.
    pub began_us: i64,
    /// Its operations in their order. Each began when the one before it ended.
    pub operations: Vec<TimedOperation>,
}

/// One operation of such a batch, in microseconds of the same clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedOperation {
    /// When its commit began, if it had one.
    pub committing_us: Option<i64>,
    /// When it ended.
    pub ended_us: i64,
    /// Rows that it read or changed.
    pub touched: u64,
}

impl ServerTimes {
    /// Leaves the operations between the two instants of our clock, and says whether the server's clock was set meanwhile, so
    /// that what they took is only an estimate. What they changed is not known here. `ways` are those there and back of
    /// late, and learn. Where this one is longer by more than [`LONGER_WAY_NS`], all beyond the shortest is the first operation's;
    /// so is what this machine was late to read the answer, as with statements.
    fn lay_between(&self, sent_ns: u64, received_ns: u64, ways: &mut Ways) -> (Vec<BatchedOperation>, bool) {
        let available_ns = received_ns.saturating_sub(sent_ns);
        let mut was_set = false;
        let mut before_us = self.began_us;
        let mut placed: Vec<BatchedOperation> = self
            .operations
            .iter()
            .map(|&TimedOperation { committing_us, ended_us, touched }| {
                let service_us = ended_us.saturating_sub(std::mem::replace(&mut before_us, ended_us));
                was_set |= service_us < 0;
                let service_ns = nanos(service_us);
                let commit_ns = committing_us.map(|begun_us| nanos(ended_us.saturating_sub(begun_us)).min(service_ns));
                BatchedOperation { ended_ns: 0, service_ns, commit_ns, block_touches: touched, block_changes: 0 }
            })
            .collect();
        let took_ns = sum_ns(&placed);
        if took_ns > available_ns.saturating_add(TOLERANCE_NS) {
            was_set = true;
            // A clock is set in one moment, so within one operation: the longest.
            if let Some(longest) = placed.iter_mut().max_by_key(|placed| placed.service_ns) {
                longest.service_ns = longest.service_ns.saturating_sub(took_ns - available_ns);
            }
        }
        let took_ns = sum_ns(&placed);
        if took_ns > available_ns {
            for placed in &mut placed {
                placed.service_ns =
                    (u128::from(placed.service_ns) * u128::from(available_ns) / u128::from(took_ns)) as u64;
            }
        }
        let rest_ns = available_ns.saturating_sub(took_ns);
        let mut at_ns = sent_ns + rest_ns / 2;
        // Where the clock was set, the rest is more than a way, or less.
        let shortest_ns = if was_set { ways.shortest_ns() } else { ways.learn(rest_ns) };
        let waited_ns = rest_ns.saturating_sub(shortest_ns);
        // Where the clock was set, the rest may be what one of them took, and which one is unknown.
        if let Some(first) = placed.first_mut().filter(|_| waited_ns > LONGER_WAY_NS && !was_set) {
            first.service_ns += waited_ns;
            at_ns = sent_ns + shortest_ns / 2;
        }
        for placed in &mut placed {
            at_ns += placed.service_ns;
            placed.ended_ns = at_ns;
            placed.commit_ns = placed.commit_ns.map(|commit_ns| commit_ns.min(placed.service_ns));
        }
        (placed, was_set)
    }
}

fn sum_ns(placed: &[BatchedOperation]) -> u64 {
    placed.iter().fold(0, |sum, placed| sum.saturating_add(placed.service_ns))
}

fn nanos(us: i64) -> u64 {
    u64::try_from(us).unwrap_or(0).saturating_mul(1_000)
}

/// A server that refuses a connection for a reason that may pass is asked again after so long, then after twice as long, and so on.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// The longest of these pauses.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// A session that got no connection for so long ends the load.
const PATIENCE: Duration = if cfg!(test) { Duration::from_secs(2) } else { Duration::from_secs(10) };

/// What connecting came to.
#[derive(Debug, Clone, Copy, Default)]
struct Connecting {
    /// How long the attempt took that succeeded; `None` where none did, or none was needed.
    took_ns: Option<u64>,
    /// Attempts that failed.
    failed: FailedConnects,
    /// All attempts, and the pauses between them.
    all_ns: u64,
}

/// One session's place at a server.
struct Slot<D: SqlServers> {
    servers: Arc<D>,
    node: usize,
    /// Nobody, where the last connection was left and no other was needed yet.
    session: Mutex<Option<Arc<D::Session>>>,
    /// Ends what goes on here.
    alarm: Alarm,
}

impl<D: SqlServers> Slot<D> {
    /// The slot of a session that is connected to server number `node`.
    fn new(servers: &Arc<D>, node: usize, session: D::Session) -> Self {
        let session = Mutex::new(Some(Arc::new(session)));
        Self { servers: Arc::clone(servers), node, session, alarm: Alarm::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<D::Session>>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server that it is at.
    fn node(&self) -> usize {
        self.node
    }

    /// Who is connected here, if anybody is.
    fn taken(&self) -> Option<Arc<D::Session>> {
        self.lock().clone()
    }

    /// The server's number of the session, if there is one.
    fn id(&self) -> Option<SessionId> {
        self.lock().as_ref().map(|session| session.id())
    }

    /// Leaves the connection, which closes once nobody uses it any more.
    fn leave(&self) {
        self.lock().take();
    }

    /// Who is connected here; whoever is not is connected now.
    ///
    /// # Errors
    /// As [`connected`](Self::connected).
    async fn session(&self) -> Result<Arc<D::Session>, ServerError> {
        self.connected(&mut Connecting::default()).await
    }

    /// The same, with what it came to. Attempts are repeated where an application would.
    ///
    /// # Errors
    /// When no connection comes about, or the load ends meanwhile.
    async fn connected(&self, connecting: &mut Connecting) -> Result<Arc<D::Session>, ServerError> {
        if let Some(session) = self.taken() {
            return Ok(session);
        }
        let begun = Instant::now();
        let outcome = self.connect(begun, connecting).await;
        connecting.all_ns = slot_nanos(begun.elapsed());
        outcome
    }

    async fn connect(&self, begun: Instant, connecting: &mut Connecting) -> Result<Arc<D::Session>, ServerError> {
        let mut pause = FIRST_PAUSE;
        loop {
            let attempt = Instant::now();
            let Some(outcome) = self.alarm.unless_rung(self.servers.open_session(self.node)).await else {
                return Err(self.ended());
            };
            let error = match outcome {
                Ok(session) => {
                    connecting.took_ns = Some(slot_nanos(attempt.elapsed()));
                    let session = Arc::new(session);
                    *self.lock() = Some(Arc::clone(&session));
                    // Whoever rang before that found nobody to cancel.
                    return if self.alarm.has_rung() { Err(self.ended()) } else { Ok(session) };
                }
                Err(error) => error,
            };
            let failure = error.connect_failure().unwrap_or(ConnectFailure::Other);
            connecting.failed.count(failure);
            if !failure.is_worth_another_attempt() || begun.elapsed() + pause > PATIENCE {
                return Err(error);
            }
            if self.alarm.unless_rung(tokio::time::sleep(pause)).await.is_none() {
                return Err(self.ended());
            }
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }

    fn ended(&self) -> ServerError {
        ServerError::unfit("the load ended before a session was connected".to_owned(), None)
    }

    /// What ends the pauses of who is connected here.
    fn alarm(&self) -> &Alarm {
        &self.alarm
    }

    /// Asks the server to cancel what goes on here, and connects nobody any more.
    async fn cancel(&self) {
        self.alarm.ring();
        if let Some(session) = self.taken() {
            session.cancel().await;
        }
    }
}

fn slot_nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

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
        let operation = self.operations[session as usize].expect("only sessions with a request answer");
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
        let kind = self.kinds[session as usize].expect("only sessions with a request answer");
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Product;
    use crate::session::SqlSession;

    fn times(began_us: i64, ended_us: &[i64]) -> ServerTimes {
        let timed = |&ended_us| TimedOperation { committing_us: None, ended_us, touched: 1 };
        ServerTimes { began_us, operations: ended_us.iter().map(timed).collect() }
    }

    fn given(times: &ServerTimes, sent_us: u64, received_us: u64) -> (Vec<(u64, u64)>, bool) {
        given_after(times, sent_us, received_us, &mut Ways::default())
    }

    fn given_after(times: &ServerTimes, sent_us: u64, received_us: u64, ways: &mut Ways) -> (Vec<(u64, u64)>, bool) {
        let (placed, was_set) = times.lay_between(sent_us * 1_000, received_us * 1_000, ways);
        (placed.iter().map(|placed| (placed.ended_ns / 1_000, placed.service_ns / 1_000)).collect(), was_set)
    }

    #[test]
    fn a_batch_is_laid_into_the_middle_of_the_time_it_was_waited_for() {
        let times = times(1_000_000, &[1_000_300, 1_000_400, 1_001_000]);
        assert_eq!(given(&times, 50, 1_250), (vec![(450, 300), (550, 100), (1_150, 600)], false));
    }

    #[test]
    fn a_commit_is_the_end_of_its_operation_and_others_have_none() {
        let mut times = times(0, &[500, 900]);
        times.operations[1].committing_us = Some(650);
        let (placed, _) = times.lay_between(0, 900_000, &mut Ways::default());
        assert_eq!((placed[0].commit_ns, placed[1].commit_ns), (None, Some(250_000)));
    }

    #[test]
    fn a_server_clock_a_little_fast_is_slowed_down_and_nothing_is_said() {
        assert_eq!(given(&times(0, &[500, 2_000]), 0, 1_000), (vec![(250, 250), (1_000, 750)], false));
    }

    #[test]
    fn a_clock_set_forward_within_an_operation_costs_only_that_one_its_time() {
        let hour = 3_600_000_000;
        assert_eq!(
            given(&times(0, &[500, hour + 900, hour + 1_500]), 0, 2_000),
            (vec![(500, 500), (1_400, 900), (2_000, 600)], true)
        );
    }

    #[test]
    fn a_clock_set_back_leaves_no_operation_that_ended_before_it_began() {
        let hour = 3_600_000_000;
        let (placed, was_set) = given(&times(hour, &[hour + 500, 900, 1_500]), 0, 2_000);
        assert_eq!((placed, was_set), (vec![(950, 500), (950, 0), (1_550, 600)], true));
    }

    #[test]
    fn what_a_server_did_not_begin_is_waited_for_by_the_first_operation() {
        let (times, mut ways) = (times(0, &[300, 400]), Ways::default());
        assert_eq!(given_after(&times, 0, 600, &mut ways), (vec![(400, 300), (500, 100)], false));
        // A way that varies is a way; a server that was stopped is not.
        let varied = (vec![(50_300, 300), (50_400, 100)], false);
        assert_eq!(given_after(&times, 0, 100_400, &mut ways), varied);
        let stopped = (vec![(2_500_400, 2_500_300), (2_500_500, 100)], false);
        assert_eq!(given_after(&times, 0, 2_500_600, &mut ways), stopped);
        // A clock that was set says nothing of the way.
        let before = ways;
        assert!(given_after(&super::tests::times(0, &[9_000_000]), 0, 2_000, &mut ways).1);
        assert_eq!(ways, before);
    }

    #[test]
    fn a_way_that_becomes_longer_for_good_is_believed_soon() {
        let (times, mut ways) = (times(0, &[300]), Ways::default());
        ways.learn(200_000);
        let waited: Vec<u64> = (0..9).map(|_| given_after(&times, 0, 530_300, &mut ways).0[0].1).collect();
        assert_eq!((&waited[..8], waited[8]), (&[530_100; 8][..], 300));
    }

    #[test]
    fn a_first_batch_waits_for_what_is_longer_than_any_way() {
        let first = |received_us| given(&times(0, &[300]), 0, received_us).0;
        assert_eq!(first(900_300), [(450_300, 300)], "a way to the moon is nearer than that");
        assert_eq!(first(2_500_300), [(2_000_300, 1_500_300)]);
    }

    #[test]
    fn absurd_times_break_nothing() {
        for ended in [[i64::MIN, i64::MAX], [i64::MAX, i64::MIN], [i64::MAX, i64::MAX]] {
            for began in [i64::MIN, 0, i64::MAX] {
                let (placed, _) = times(began, &ended).lay_between(5, 10, &mut Ways::default());
                assert!(
                    placed.iter().all(|placed| (5..=10).contains(&placed.ended_ns)),
                    "{began} {ended:?} {placed:?}"
                );
            }
        }
    }

    const DOOR: &Product = &Product {
        name: "door",
        kind: model::record::TargetKind::Other(String::new()),
        code: "error",
        meaning: |_| unreachable!("it only refuses connections"),
    };

    fn no_connection(failure: ConnectFailure) -> ServerError {
        let (node, reason) = ("door".to_owned(), "no".to_owned());
        ServerError::Connect { product: DOOR, node, reason, hint: None, failure }
    }

    /// A session with the number of its connection.
    struct Numbered(u64);

    impl SqlSession for Numbered {
        fn id(&self) -> SessionId {
            self.0.into()
        }

        async fn cancel(&self) {}
    }

    /// A server that lets nobody in for so many attempts, and never answers after so many connections.
    #[derive(Debug)]
    struct Door {
        refuses: Mutex<Vec<ConnectFailure>>,
        made: Mutex<u64>,
        most: u64,
    }

    impl SqlServers for Door {
        type Session = Numbered;

        async fn open_session(&self, _: usize) -> Result<Numbered, ServerError> {
            if let Some(failure) = self.refuses.lock().unwrap().pop() {
                return Err(no_connection(failure));
            }
            let made = {
                let mut made = self.made.lock().unwrap();
                *made += 1;
                *made
            };
            if made > self.most {
                std::future::pending::<()>().await;
            }
            Ok(Numbered(made))
        }

        async fn at_work(&self, _: usize, _: Vec<SessionId>) -> Option<Vec<SessionId>> {
            None
        }
    }

    fn slot(refuses: &[ConnectFailure], most: u64) -> Arc<Slot<Door>> {
        let door = Door { refuses: Mutex::new(refuses.to_vec()), made: Mutex::default(), most };
        Arc::new(Slot::new(&Arc::new(door), 0, Numbered(0)))
    }

    fn on_runtime<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
    }

    #[test]
    fn a_slot_that_was_left_is_taken_again_by_another_connection() {
        on_runtime(async {
            let slot = slot(&[], 9);
            let mut connecting = Connecting::default();
            assert_eq!(slot.connected(&mut connecting).await.unwrap().id(), 0.into());
            assert_eq!((connecting.took_ns, connecting.all_ns), (None, 0), "nothing was needed");
            slot.leave();
            assert_eq!(slot.id(), None);
            assert_eq!(slot.connected(&mut connecting).await.unwrap().id(), 1.into());
            assert!(connecting.took_ns.is_some_and(|took_ns| took_ns <= connecting.all_ns));
            assert_eq!((slot.id(), connecting.failed.total()), (Some(1.into()), 0));
        });
    }

    #[test]
    fn a_server_that_is_full_for_a_while_is_asked_again_and_what_it_refused_is_counted() {
        on_runtime(async {
            let slot = slot(&[ConnectFailure::Refused, ConnectFailure::OutOfConnections], 9);
            slot.leave();
            let mut connecting = Connecting::default();
            slot.connected(&mut connecting).await.unwrap();
            let reasons = connecting.failed.by_reason();
            assert_eq!(reasons, [("out of connections".to_owned(), 1), ("refused".to_owned(), 1)].into());
            let pauses_ns = slot_nanos(3 * FIRST_PAUSE);
            let took_ns = connecting.took_ns.unwrap();
            assert!(connecting.all_ns >= pauses_ns + took_ns, "{connecting:?}");
        });
    }

    #[test]
    fn a_server_that_is_still_busy_with_an_earlier_step_is_waited_for_and_no_other() {
        on_runtime(async {
            let full = |times: usize| Door {
                refuses: Mutex::new(vec![ConnectFailure::OutOfConnections; times]),
                made: Mutex::default(),
                most: 9,
            };
            assert!(line::open_session(&full(3), 0, PATIENCE).await.is_ok());
            assert!(line::open_session(&full(3), 0, Duration::ZERO).await.is_err());
            let gone = Door { refuses: Mutex::new(vec![ConnectFailure::Refused]), made: Mutex::default(), most: 9 };
            assert!(line::open_session(&gone, 0, PATIENCE).await.is_err(), "who refuses has gone");
        });
    }

    #[test]
    fn a_refused_login_is_final_and_so_is_a_server_that_stays_full() {
        on_runtime(async {
            for (refusal, least) in [(ConnectFailure::Login, 1), (ConnectFailure::OutOfConnections, 3)] {
                let slot = slot(&[refusal; 1_000], 9);
                slot.leave();
                let mut connecting = Connecting::default();
                let Err(error) = slot.connected(&mut connecting).await else { panic!("{refusal:?}") };
                assert_eq!(error.connect_failure(), Some(refusal));
                let attempts = connecting.failed.total();
                assert!(attempts >= least && (least > 1 || attempts == 1), "{refusal:?}: {attempts}");
                assert!(connecting.took_ns.is_none() && connecting.all_ns < slot_nanos(2 * PATIENCE), "{connecting:?}");
            }
        });
    }

    #[test]
    fn whoever_is_cancelled_while_connecting_waits_no_longer() {
        on_runtime(async {
            let slot = slot(&[], 0);
            slot.leave();
            let waiting = tokio::spawn({
                let slot = Arc::clone(&slot);
                async move { slot.session().await.map(drop) }
            });
            tokio::task::yield_now().await;
            slot.cancel().await;
            let ended = tokio::time::timeout(Duration::from_secs(60), waiting).await;
            assert!(ended.unwrap().unwrap().is_err());
            assert!(slot.session().await.is_err(), "nor does anybody who comes later");
        });
    }
}
