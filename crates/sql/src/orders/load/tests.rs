//! What transactions ask of a session, and what becomes of refusals: on a session that only notes what it was asked.

use std::sync::Mutex;

use super::*;
use crate::{Meaning, Product, SessionId, SqlSession};
use model::workload::orders::{Pauses, Reconnect, Sizes};

/// Servers whose codes are the numbers of classes.
const NOTED: &Product = &Product { name: "noted", kind: "noted", code: "class", meaning };

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
        let known: Vec<String> =
            statements_of(kind, OrdersSending::Statement).iter().map(|statement| format!("{statement:?}")).collect();
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
