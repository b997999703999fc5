//! The load of order entry: what each transaction does, once for all servers.
//!
//! A server's own folder gives sessions that execute [`Statement`]s ([`OrdersSession`]) and the words in which it says them
//! ([`SqlText`]). Which statements a transaction sends, with which values and in which order, is its [`program`]. It is performed
//! statement by statement, or written as a procedure ([`procedure`]) in the words of a server and called.

mod perform;
pub mod procedure;
pub mod program;
mod statements;

use std::future::poll_fn;
use std::mem;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::Notify;

pub use perform::Room;
pub use program::Program;
pub use statements::{ANSWERS, Gives, Statement};

use self::perform::Attempt;
use self::program::procedure_name;
use crate::{ServerError, SqlSession, SqlText};
use measure::{RefusalClass, Tally};
use model::workload::orders::{OrderTransaction, Pauses, Reconnect, Sizes, TransactionKind};
use targets::orders::{Acknowledgements, OrdersSending};

/// What came of a transaction that did not end the load.
#[derive(Debug)]
pub(crate) struct Performed {
    /// What it came to, with all attempts.
    pub(crate) tally: Tally,
    /// What the server acknowledged, or why it did not do it.
    pub(crate) result: Result<Acknowledged, ServerError>,
}

/// Does a transaction, and does it again where an application would. `alarm` ends its pauses.
///
/// # Errors
/// When the load cannot go on: the connection, the data or the right to them are gone.
pub(crate) async fn perform<S: OrdersSession>(
    session: &S,
    transaction: OrderTransaction,
    rules: &Rules,
    room: &mut Room,
    alarm: &Alarm,
) -> Result<Performed, ServerError> {
    let mut tally = Tally::default();
    room.choose(transaction, rules);
    for attempt in 0.. {
        // Nobody thinks again about what is only tried again.
        let pauses = if attempt == 0 { rules.inside } else { Pauses::None };
        let mut doing = Attempt::new(session, alarm, pauses, &mut tally, room);
        let done = match rules.sending {
            OrdersSending::Statement => doing.perform(Program::of(transaction.kind)).await,
            OrdersSending::Procedure => doing.call(transaction).await,
        };
        let (acknowledged, is_open) = (doing.acknowledged(), doing.is_open());
        tally.round_trips += session.take_preparing();
        let Err(error) = done else { return Ok(Performed { tally, result: Ok(acknowledged) }) };
        if error.ends_the_load() {
            return Err(error);
        }
        if is_open {
            tally.round_trips += 1;
            session.end(End::RollBack).await?;
        }
        let class = error.refusal().unwrap_or(RefusalClass::Other);
        if !class.is_worth_another_attempt() || attempt >= rules.max_retries {
            tally.failures[class as usize] += 1;
            return Ok(Performed { tally, result: Err(error) });
        }
        tally.retries[class as usize] += 1;
    }
    unreachable!("attempts are counted")
}

/// The statements that a kind of transaction sends.
pub(crate) fn statements_of(kind: TransactionKind, sending: OrdersSending) -> Vec<Statement> {
    match sending {
        OrdersSending::Statement => Program::of(kind).statements(),
        OrdersSending::Procedure => vec![Statement::call(kind)],
    }
}

impl Statement {
    /// What is sent for it, for data in a namespace.
    pub fn text<W: SqlText>(self, namespace: &str) -> String {
        match self.called() {
            Some(kind) => {
                let values = 1..=Program::of(kind).parameters().count();
                W::call(namespace, &procedure_name(kind), &values.map(W::value).collect::<Vec<_>>())
            }
            None => self.written::<W>(namespace, &W::value, &W::returning),
        }
    }
}

/// What all transactions of a run have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Rows that there were when the data were made.
    pub sizes: Sizes,
    /// Pauses between the steps of a transaction.
    pub inside: Pauses,
    /// How often a transaction is tried again after a deadlock, a serialization failure or a lock timeout.
    pub max_retries: u32,
    /// How long connections last.
    pub reconnect: Reconnect,
    /// How transactions are sent.
    pub sending: OrdersSending,
}

/// What a transaction changed and the server acknowledged: an audit looks for it afterwards.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Acknowledged {
    /// An order that was made.
    pub order: Option<i64>,
    /// An order that was marked as processed.
    pub processed: Option<i64>,
}

// What servers acknowledged, kept so that an audit can look for it.

/// Keys of what was acknowledged, 8 bytes each.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<Acknowledgements>);

impl Ledger {
    fn lock(&self) -> MutexGuard<'_, Acknowledgements> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds what a transaction had acknowledged.
    pub fn add(&self, acknowledged: &Acknowledged) {
        let Acknowledged { order, processed } = acknowledged;
        if order.is_some() || processed.is_some() {
            let mut entries = self.lock();
            entries.orders.extend(order);
            entries.processed.extend(processed);
        }
    }

    /// Takes everything out.
    pub fn take(&self) -> Acknowledgements {
        mem::take(&mut self.lock())
    }
}

// Pauses inside transactions: whoever pauses is not at work on the server, and yet not lost.

/// Ends the pauses of one session once it is cancelled.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    is_set: AtomicBool,
    is_resting: AtomicBool,
    rung: Notify,
}

impl Alarm {
    /// Ends the pause that goes on, and all to come.
    pub(crate) fn ring(&self) {
        self.is_set.store(true, Ordering::Release);
        self.rung.notify_waiters();
    }

    /// Whether it has rung.
    pub(crate) fn has_rung(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// Does something, unless it rings before that is done.
    pub(crate) async fn unless_rung<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        // Listens before it looks, so that no ringing in between is missed.
        let mut rung = pin!(self.rung.notified());
        rung.as_mut().enable();
        if self.has_rung() {
            return None;
        }
        let mut work = pin!(work);
        poll_fn(|task| match rung.as_mut().poll(task) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => work.as_mut().poll(task).map(Some),
        })
        .await
    }

    /// Whether its session pauses just now.
    pub(crate) fn is_resting(&self) -> bool {
        self.is_resting.load(Ordering::Acquire)
    }

    /// Pauses for so long, or until it rings. Returns how long that was, in nanoseconds.
    async fn rest(&self, ns: u64) -> u64 {
        let begun = std::time::Instant::now();
        self.is_resting.store(true, Ordering::Release);
        self.unless_rung(tokio::time::sleep(Duration::from_nanos(ns))).await;
        self.is_resting.store(false, Ordering::Release);
        begun.elapsed().as_nanos() as u64
    }
}

/// How the sessions of a run are to work.
#[derive(Debug, Clone)]
pub struct OrdersSetting {
    /// What all transactions have in common.
    pub rules: Rules,
    /// Level of transactions, as SQL has it; that of the server where `None`.
    pub isolation: Option<String>,
    /// Where what was acknowledged is kept for the audit.
    pub ledger: Arc<Ledger>,
}

/// A value of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Argument<'a> {
    /// A whole number.
    Int(i64),
    /// Text.
    Text(&'a str),
}

/// The whole numbers of the leading columns of the rows that a query gave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows {
    values: Vec<Option<i64>>,
    width: usize,
    count: usize,
}

impl Rows {
    /// Makes room for the answer of another query, which has so many columns of interest.
    pub fn begin(&mut self, width: usize) {
        self.values.clear();
        (self.width, self.count) = (width, 0);
    }

    /// Appends a row, whose columns of interest are `values`.
    pub fn push(&mut self, values: impl Iterator<Item = Option<i64>>) {
        self.values.extend(values.take(self.width));
        self.count += 1;
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// A number; `None` where it is null.
    pub fn get(&self, row: usize, column: usize) -> Option<i64> {
        *self.values.get(row * self.width + column)?
    }
}

/// How a transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// What was done stays.
    Commit,
    /// What was done since the last commit is taken back.
    RollBack,
}

impl End {
    /// The statement.
    pub fn sql(self) -> &'static str {
        match self {
            Self::Commit => "COMMIT",
            Self::RollBack => "ROLLBACK",
        }
    }
}

/// A session that executes the statements of order entry, one at a time.
pub trait OrdersSession: SqlSession {
    /// Begins a transaction, now or with the next statement, and says how many round trips that took; nothing where the first change
    /// does so by itself.
    fn begin(&self) -> impl Future<Output = Result<u64, ServerError>> + Send {
        async { Ok(0) }
    }

    /// Executes a statement. The rows of a query go into `into`, and their number is given; of a change how many rows it changed, of an
    /// insertion the key of the new row.
    fn execute(
        &self,
        statement: Statement,
        values: &[Argument<'_>],
        into: &mut Rows,
    ) -> impl Future<Output = Result<i64, ServerError>> + Send;

    /// Ends the transaction.
    fn end(&self, how: End) -> impl Future<Output = Result<(), ServerError>> + Send;

    /// Takes back what a call that failed has left open, where the server does not do so by itself. Says how many round trips that
    /// took.
    fn clear(&self) -> impl Future<Output = Result<u64, ServerError>> + Send {
        async { Ok(0) }
    }

    /// Prepares a statement, so that its first execution costs no more than the next.
    fn prepare(&self, _statement: Statement) -> impl Future<Output = Result<(), ServerError>> + Send {
        async { Ok(()) }
    }

    /// Round trips in which statements were prepared since this was last asked.
    fn take_preparing(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    //! What transactions ask of a session, and what becomes of refusals: on a session that only notes what it was asked.

    use std::sync::Mutex;

    use super::*;
    use crate::{Meaning, Product, SessionId, SqlSession};
    use model::workload::orders::{Pauses, Reconnect, Sizes};

    /// Servers whose codes are the numbers of classes.
    const NOTED: &Product =
        &Product { name: "noted", kind: model::record::TargetKind::Other(String::new()), code: "class", meaning };

    fn meaning(code: &str) -> Meaning {
        let class = RefusalClass::ALL.into_iter().find(|class| (*class as usize).to_string() == code);
        let class = class.unwrap_or(RefusalClass::Other);
        Meaning { is_lasting: false, is_corruption: false, lacks_procedure: false, class, hint: None }
    }

    fn refused(class: RefusalClass) -> ServerError {
        NOTED.refused("noted", "do a transaction", class as usize, "no")
    }

    /// A session on which every query finds five rows, of which some commits are refused.
    #[derive(Default)]
    struct Noted {
        asked: Mutex<Vec<String>>,
        /// Refusals of the commits to come, the last one first.
        refusals: Mutex<Vec<RefusalClass>>,
        /// What a change that takes stock says.
        taken: i64,
    }

    impl Noted {
        fn new(refusals: &[RefusalClass], taken: i64) -> Self {
            Self { refusals: Mutex::new(refusals.to_vec()), taken, ..Self::default() }
        }

        fn note(&self, what: String) {
            self.asked.lock().unwrap().push(what);
        }
    }

    impl SqlSession for Noted {
        fn id(&self) -> SessionId {
            7.into()
        }

        async fn cancel(&self) {}
    }

    impl OrdersSession for Noted {
        async fn begin(&self) -> Result<u64, ServerError> {
            self.note("begin".to_owned());
            Ok(0)
        }

        async fn execute(
            &self,
            statement: Statement,
            values: &[Argument<'_>],
            into: &mut Rows,
        ) -> Result<i64, ServerError> {
            self.note(format!("{statement:?} {values:?}"));
            let width = match statement.gives() {
                Gives::Rows(width) => width,
                Gives::Changes => return Ok(if statement == Statement::TakeStock { self.taken } else { 1 }),
                Gives::Key => return Ok(4_711),
            };
            into.begin(width);
            if width == ANSWERS {
                if let Some(class) = self.refusals.lock().unwrap().pop() {
                    return Err(refused(class));
                }
                into.push((1..).map(Some));
                return Ok(1);
            }
            (1..=5).for_each(|row| into.push((0..width).map(|column| Some(10 * row + column as i64))));
            Ok(5)
        }

        async fn end(&self, how: End) -> Result<(), ServerError> {
            if how == End::RollBack {
                self.note("roll back".to_owned());
                return Ok(());
            }
            self.note("commit".to_owned());
            self.refusals.lock().unwrap().pop().map_or(Ok(()), |class| Err(refused(class)))
        }

        async fn clear(&self) -> Result<u64, ServerError> {
            self.note("clear".to_owned());
            Ok(1)
        }

        async fn prepare(&self, _: Statement) -> Result<(), ServerError> {
            Ok(())
        }
    }

    fn done(session: &Noted, kind: TransactionKind, seed: u64, inside: Pauses) -> Performed {
        done_by(OrdersSending::Statement, session, kind, seed, inside)
    }

    fn done_by(sending: OrdersSending, session: &Noted, kind: TransactionKind, seed: u64, inside: Pauses) -> Performed {
        let rules = Rules { sizes: Sizes::of(0.01), inside, max_retries: 2, reconnect: Reconnect::Never, sending };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let transaction = OrderTransaction { kind, seed };
        runtime.block_on(perform(session, transaction, &rules, &mut Room::default(), &Alarm::default())).unwrap()
    }

    #[test]
    fn a_transaction_sends_only_statements_that_are_prepared_for_it() {
        for kind in TransactionKind::ALL {
            let known: Vec<String> = statements_of(kind, OrdersSending::Statement)
                .iter()
                .map(|statement| format!("{statement:?}"))
                .collect();
            for seed in 0..40 {
                let session = Noted::new(&[], 1);
                let Performed { tally, result } = done(&session, kind, seed, Pauses::None);
                assert!(result.is_ok() && tally.failures == [0; RefusalClass::ALL.len()]);
                let asked = session.asked.lock().unwrap();
                let words = asked.iter().filter_map(|what| what.split_once(' ').map(|(word, _)| word));
                let sent: Vec<&str> = words.filter(|word| *word != "roll").collect();
                assert!(sent.iter().all(|word| known.iter().any(|known| known == word)), "{kind:?}: {sent:?}");
                assert_eq!(tally.statements, sent.len() as u64);
            }
        }
    }

    #[test]
    fn pauses_and_another_attempt_leave_all_choices_as_they_were() {
        let asked = |session: Noted| session.asked.into_inner().unwrap();
        for seed in 0..20 {
            let (plain, paused) = (Noted::new(&[], 1), Noted::new(&[], 1));
            done(&plain, TransactionKind::OrderProducts, seed, Pauses::None);
            let Performed { tally, .. } =
                done(&paused, TransactionKind::OrderProducts, seed, Pauses::Uniform { min_ns: 1, max_ns: 3 });
            assert!(tally.paused_ns > 0);
            assert_eq!(asked(plain), asked(paused));
        }
        let refused = Noted::new(&[RefusalClass::Deadlock], 1);
        let Performed { tally, result } =
            done(&refused, TransactionKind::ProcessOrders, 3, Pauses::Uniform { min_ns: 1, max_ns: 3 });
        assert_eq!((tally.retries[RefusalClass::Deadlock as usize], tally.commits), (1, 1));
        assert!(result.unwrap().processed.is_some());
        let asked = asked(refused);
        let (first, second) = asked.split_at(asked.iter().position(|what| what == "roll back").unwrap() + 1);
        assert_eq!(first[..first.len() - 1], *second, "the same again");
    }

    #[test]
    fn what_is_refused_again_and_again_or_makes_no_sense_to_repeat_has_failed() {
        let stubborn = Noted::new(&[RefusalClass::Serialization; 5], 1);
        let Performed { tally, result } = done(&stubborn, TransactionKind::ProcessOrders, 3, Pauses::None);
        assert!(result.is_err());
        let class = RefusalClass::Serialization as usize;
        assert_eq!((tally.retries[class], tally.failures[class], tally.commits), (2, 1, 0));
        let wrong = Noted::new(&[RefusalClass::Constraint], 1);
        let Performed { tally, .. } = done(&wrong, TransactionKind::ProcessOrders, 3, Pauses::None);
        let class = RefusalClass::Constraint as usize;
        assert_eq!((tally.retries[class], tally.failures[class]), (0, 1));
    }

    #[test]
    fn an_order_whose_stock_is_gone_is_taken_back_and_not_acknowledged() {
        let session = Noted::new(&[], 0);
        let Performed { tally, result } = done(&session, TransactionKind::OrderProducts, 5, Pauses::None);
        assert_eq!((tally.rollbacks, result.unwrap().order), (1, None));
        assert_eq!(session.asked.lock().unwrap().last().unwrap(), "roll back");
        let session = Noted::new(&[], 1);
        let Performed { tally, result } = done(&session, TransactionKind::OrderProducts, 5, Pauses::None);
        assert_eq!((tally.rollbacks, result.unwrap().order), (0, Some(4_711)));
    }

    #[test]
    fn a_call_has_the_choices_of_the_transaction_and_answers_what_came_of_it() {
        let session = Noted::new(&[], 1);
        let inside = Pauses::Uniform { min_ns: 2_000_000, max_ns: 5_000_000 };
        let Performed { tally, result } =
            done_by(OrdersSending::Procedure, &session, TransactionKind::OrderProducts, 5, inside);
        let wanted = Tally {
            statements: 3,
            round_trips: 1,
            rows_read: 4,
            rows_changed: 5,
            commits: 6,
            rollbacks: 7,
            paused_ns: 8_000,
            ..Tally::default()
        };
        assert_eq!((tally, result.unwrap()), (wanted, Acknowledged { order: Some(1), processed: Some(2) }));
        let asked = session.asked.lock().unwrap();
        let [call] = asked.as_slice() else { panic!("{asked:?}") };
        let mut choices = program::Choices::default();
        let transaction = OrderTransaction { kind: TransactionKind::OrderProducts, seed: 5 };
        choices.draw(transaction, &Sizes::of(0.01));
        let (random, lengths) = (choices.random.state(), choices.lengths.state());
        let customer = choices.whole(program::Local::Customer);
        assert_eq!(
            *call,
            format!(
                "CallOrderProducts [Int({random}), Int({lengths}), Int(2000), Int(5000), Int(0), Int({customer}), Int(100)]"
            )
        );
    }

    #[test]
    fn a_call_that_is_refused_is_made_again_as_a_whole_and_without_pauses() {
        let session = Noted::new(&[RefusalClass::Deadlock], 1);
        let inside = Pauses::Exponential { mean_ns: 7_000 };
        let Performed { tally, result } =
            done_by(OrdersSending::Procedure, &session, TransactionKind::ProcessOrders, 3, inside);
        assert!(result.is_ok());
        assert_eq!((tally.retries[RefusalClass::Deadlock as usize], tally.round_trips), (1, 3));
        let asked = session.asked.lock().unwrap();
        let [first, clear, again] = asked.as_slice() else { panic!("{asked:?}") };
        assert_eq!(clear, "clear");
        assert_eq!(first.replace("Int(0), Int(0), Int(7), Int(100)]", "Int(0), Int(0), Int(0), Int(100)]"), *again);
        assert_ne!(first, again);
    }

    const HOUR_NS: u64 = 3_600_000_000_000;

    #[test]
    fn a_pause_ends_when_it_is_over_or_when_the_alarm_rings() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let alarm = Alarm::default();
        assert!(runtime.block_on(alarm.rest(2_000_000)) >= 2_000_000);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !alarm.is_resting() {
                    std::thread::yield_now();
                }
                alarm.ring();
            });
            assert!(runtime.block_on(alarm.rest(HOUR_NS)) < HOUR_NS);
        });
        assert!(!alarm.is_resting());
        assert!(runtime.block_on(alarm.rest(HOUR_NS)) < HOUR_NS, "it has rung before");
    }
}
