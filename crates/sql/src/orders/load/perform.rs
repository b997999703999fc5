//! Performs programs on a session, statement by statement or as one call each.

use super::program::{Bank, Choices, Condition, Local, Parameter, Program, Step, Value, Whole, procedure_name};
use super::statements::{Gives, Statement};
use super::{Acknowledged, Alarm, Argument, End, OrdersSession, Rows, Rules};
use crate::ServerError;
use measure::Tally;
use model::workload::MinimalStandard;
use model::workload::orders::{OrderTransaction, Pauses};

/// What a session needs for one transaction, and keeps for the next, so that none of its steps allocates.
#[derive(Debug, Default)]
pub struct Room {
    choices: Choices,
    banks: [Rows; Bank::ALL.len()],
}

impl Room {
    /// Chooses what a transaction needs.
    pub(super) fn choose(&mut self, transaction: OrderTransaction, rules: &Rules) {
        self.choices.draw(transaction, &rules.sizes);
    }
}

/// Steps that are under way.
#[derive(Clone, Copy)]
struct Frame {
    steps: &'static [Step],
    /// The one that comes next.
    next: usize,
    /// How often they are done in all, where they count in [`Local::Counter`].
    times: Option<i64>,
}

/// Steps that contain each other, at most.
const MAX_DEPTH: usize = 8;

/// One attempt at a transaction.
pub(super) struct Attempt<'a, S> {
    session: &'a S,
    /// Ends its pauses.
    alarm: &'a Alarm,
    /// The choices, which are the same in each attempt.
    random: MinimalStandard,
    /// The lengths of pauses.
    lengths: MinimalStandard,
    /// Nobody thinks again about what is only tried again.
    pauses: Pauses,
    locals: [i64; Local::ALL.len()],
    tally: &'a mut Tally,
    room: &'a mut Room,
    /// Something is not committed yet.
    is_open: bool,
}

impl<'a, S: OrdersSession> Attempt<'a, S> {
    /// Begins with what was chosen in `room`.
    pub(super) fn new(
        session: &'a S,
        alarm: &'a Alarm,
        pauses: Pauses,
        tally: &'a mut Tally,
        room: &'a mut Room,
    ) -> Self {
        let Choices { random, lengths, .. } = room.choices;
        let locals = [0; Local::ALL.len()];
        Self { session, alarm, random, lengths, pauses, locals, tally, room, is_open: false }
    }

    /// Whether something was begun and neither committed nor taken back.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// What the server acknowledged so far.
    pub(super) fn acknowledged(&self) -> Acknowledged {
        let key = |local: Local| Some(self.locals[local as usize]).filter(|key| *key > 0);
        Acknowledged { order: key(Local::Made), processed: key(Local::Processed) }
    }

    /// Performs it statement by statement.
    pub(super) async fn perform(&mut self, program: &Program) -> Result<(), ServerError> {
        for local in program.wholes {
            self.set(*local, self.room.choices.whole(*local));
        }
        self.room.banks.iter_mut().for_each(|bank| bank.begin(Bank::WIDTH));
        let mut frames = [Frame { steps: program.steps, next: 0, times: None }; MAX_DEPTH];
        let mut depth = 0;
        loop {
            let frame = &mut frames[depth];
            let Some(step) = frame.steps.get(frame.next) else {
                match frame.times {
                    Some(times) if self.locals[Local::Counter as usize] < times => {
                        self.locals[Local::Counter as usize] += 1;
                        frame.next = 0;
                    }
                    _ if depth == 0 => return Ok(()),
                    _ => depth -= 1,
                }
                continue;
            };
            frame.next += 1;
            let (steps, times) = match step {
                Step::Do(steps) => (*steps, None),
                Step::If(condition, steps) if self.holds(*condition) => (*steps, None),
                Step::Times(times, steps) if self.whole(*times) > 0 => {
                    self.set(Local::Counter, 1);
                    (*steps, Some(self.whole(*times)))
                }
                Step::GiveUp => return self.give_up().await,
                step => {
                    self.step(step).await?;
                    continue;
                }
            };
            depth += 1;
            frames[depth] = Frame { steps, next: 0, times };
        }
    }

    #[inline]
    async fn step(&mut self, step: &Step) -> Result<(), ServerError> {
        match step {
            Step::Begin => {
                self.tally.round_trips += self.session.begin().await?;
                self.is_open = true;
            }
            Step::Commit => {
                self.tally.round_trips += 1;
                self.session.end(End::Commit).await?;
                self.is_open = false;
                self.tally.commits += 1;
            }
            Step::Pause => self.pause().await,
            Step::Draw { into, least, most } => {
                let drawn = self.random.between(*least, self.whole(*most));
                self.set(*into, drawn);
            }
            Step::Set(into, to) => self.set(*into, self.whole(*to)),
            Step::Add(to, what) => self.locals[*to as usize] += self.whole(*what),
            Step::Pick { from, row, column, into } => {
                let row = usize::try_from(self.whole(*row) - 1).ok();
                let found = row.and_then(|row| self.room.banks[*from as usize].get(row, *column));
                self.set(*into, found.unwrap_or(0));
            }
            Step::Keep(into, locals) => {
                let row = locals.map(|local| Some(self.locals[local as usize]));
                self.room.banks[*into as usize].push(row.into_iter());
            }
            Step::Query(statement, values, into) => {
                debug_assert!(matches!(statement.gives(), Gives::Rows(_)), "{statement:?}");
                self.tally.round_trips += 1;
                let mut rows = std::mem::take(&mut self.room.banks[*into as usize]);
                let asked = self.session.execute(*statement, &self.arguments(values)[..values.len()], &mut rows).await;
                self.tally.rows_read += asked?.unsigned_abs();
                self.room.banks[*into as usize] = rows;
                self.tally.statements += 1;
            }
            Step::Change(statement, values) => {
                debug_assert_eq!(statement.gives(), Gives::Changes, "{statement:?}");
                let changed = self.change(*statement, values).await?;
                self.set(Local::Changed, changed);
                self.tally.rows_changed += changed.unsigned_abs();
            }
            Step::Insert(statement, values, key) => {
                debug_assert_eq!(statement.gives(), Gives::Key, "{statement:?}");
                let inserted = self.change(*statement, values).await?;
                self.set(*key, inserted);
                self.tally.rows_changed += 1;
            }
            // What decides which steps come next.
            Step::GiveUp | Step::If(..) | Step::Times(..) | Step::Do(_) => {}
        }
        Ok(())
    }

    /// Executes a statement without rows.
    #[inline]
    async fn change(&mut self, statement: Statement, values: &'static [Value]) -> Result<i64, ServerError> {
        self.tally.round_trips += 1;
        let mut none = Rows::default();
        let given = self.session.execute(statement, &self.arguments(values)[..values.len()], &mut none).await?;
        self.tally.statements += 1;
        Ok(given)
    }

    fn set(&mut self, local: Local, to: i64) {
        self.locals[local as usize] = to;
    }

    fn whole(&self, whole: Whole) -> i64 {
        match whole {
            Whole::Number(number) => number,
            Whole::Of(local) => self.locals[local as usize],
            Whole::Rows(bank) => self.room.banks[bank as usize].len() as i64,
        }
    }

    fn holds(&self, condition: Condition) -> bool {
        match condition {
            Condition::Exceeds(one, other) => self.whole(one) > self.whole(other),
            Condition::Is(one, other) => self.whole(one) == self.whole(other),
        }
    }

    /// Values as a session takes them; those that are not there are of no matter.
    fn arguments(&self, values: &'static [Value]) -> [Argument<'_>; MAX_VALUES] {
        std::array::from_fn(|place| match values.get(place) {
            Some(Value::Whole(whole)) => Argument::Int(self.whole(*whole)),
            Some(Value::Word(word)) => Argument::Text(word),
            Some(Value::Chosen(text)) => Argument::Text(self.room.choices.text(*text)),
            None => Argument::Int(0),
        })
    }

    /// Pauses, as its user asked for.
    async fn pause(&mut self) {
        if self.pauses.is_none() {
            return;
        }
        let ns = self.pauses.at(self.lengths.unit_f64());
        self.tally.paused_ns += self.alarm.rest(ns).await;
    }

    /// Takes back what was done, since it can no longer be done as asked.
    async fn give_up(&mut self) -> Result<(), ServerError> {
        self.tally.round_trips += 1;
        self.session.end(End::RollBack).await?;
        self.is_open = false;
        self.tally.rollbacks += 1;
        Ok(())
    }

    /// Has the server's procedure do it in one call. What a call that fails had done is not known.
    pub(super) async fn call(&mut self, transaction: OrderTransaction) -> Result<(), ServerError> {
        let program = Program::of(transaction.kind);
        let mut arguments = [Argument::Int(0); Program::MAX_PARAMETERS];
        let choices = &self.room.choices;
        let mut count = 0;
        for (argument, parameter) in arguments.iter_mut().zip(program.parameters()) {
            *argument = self.argument(choices, parameter);
            count += 1;
        }
        let mut answer = std::mem::take(&mut self.room.banks[Bank::Rows as usize]);
        let called = Statement::call(transaction.kind);
        self.tally.round_trips += 1;
        let asked = self.session.execute(called, &arguments[..count], &mut answer).await;
        if let Err(error) = asked {
            if error.ends_the_load() {
                return Err(if error.lacks_procedure() { gone(transaction, &error) } else { error });
            }
            self.tally.round_trips += self.session.clear().await?;
            return Err(error);
        }
        let mut numbers = (0..).map_while(|column| answer.get(0, column));
        let mut next = || numbers.next();
        let (
            Some(made),
            Some(processed),
            Some(statements),
            Some(rows_read),
            Some(rows_changed),
            Some(commits),
            Some(rollbacks),
            Some(paused_us),
        ) = (next(), next(), next(), next(), next(), next(), next(), next())
        else {
            return Err(ServerError::unfit(
                format!("the procedure `{}` did not answer as ours does", procedure_name(transaction.kind)),
                Some("another program replaced it; drop it, and run again".to_owned()),
            ));
        };
        self.set(Local::Made, made);
        self.set(Local::Processed, processed);
        self.tally.statements += statements.unsigned_abs();
        self.tally.rows_read += rows_read.unsigned_abs();
        self.tally.rows_changed += rows_changed.unsigned_abs();
        self.tally.commits += commits.unsigned_abs();
        self.tally.rollbacks += rollbacks.unsigned_abs();
        self.tally.paused_ns += 1_000 * paused_us.unsigned_abs();
        self.room.banks[Bank::Rows as usize] = answer;
        Ok(())
    }

    fn argument<'c>(&self, choices: &'c Choices, parameter: Parameter) -> Argument<'c> {
        let bounds = self.pauses.bounds();
        let us = |ns: u64| Argument::Int((ns / 1_000) as i64);
        match parameter {
            Parameter::Random => Argument::Int(self.random.state()),
            Parameter::Lengths => Argument::Int(self.lengths.state()),
            Parameter::LeastPause => us(bounds.least_ns),
            Parameter::MostPause => us(bounds.most_ns),
            Parameter::MeanPause => us(bounds.mean_ns),
            Parameter::Whole(local) => Argument::Int(choices.whole(local)),
            Parameter::Text(text) => Argument::Text(choices.text(text)),
        }
    }
}

/// The procedure was there when the load began.
fn gone(transaction: OrderTransaction, error: &ServerError) -> ServerError {
    ServerError::unfit(
        format!("the procedure `{}` is gone: {error}", procedure_name(transaction.kind)),
        Some("another program dropped it under the load; run again, and it is made anew".to_owned()),
    )
}

/// Values of one statement, at most: calls apart.
const MAX_VALUES: usize = 10;
