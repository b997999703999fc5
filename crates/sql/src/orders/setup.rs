//! Making data of order entry: tables first, then rows in pieces, each committed with its mark, then indexes and keys.
//!
//! Each of its steps can be repeated, so whoever was interrupted goes on where it was.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use super::dialect::{OrdersDialect, Step, parts_there};
use super::{OrdersData, Source};
use crate::data::catalog::Keeps;
use crate::data::found::Estimate;
use crate::data::pieces::{Marks, Pieces, cut};
use crate::data::plan::DataRequest;
use crate::data::streams::Halt;
use crate::data::{Access, Content, Work};
use model::units::group_thousands;
use model::workload::orders::Table;
use model::workload::orders::tables::{Expected, expected_of};
use targets::TargetError;
use targets::database::{Phase, Replace};
use targets::orders::OrdersRequest;

/// Bytes of the values of a piece: it takes well under a second, which is what an interruption costs, and far longer than its commit.
pub(crate) const PIECE_BYTES: u64 = 8 << 20;

impl<C: OrdersDialect> DataRequest<C> for OrdersRequest {
    type Data = OrdersData;
    type Outcome = Validation;

    fn replace(&self) -> Replace {
        self.replace
    }

    fn streams(&self) -> u32 {
        self.streams
    }

    fn check(&self) -> Result<(), TargetError> {
        OrdersRequest::check(self)
    }

    fn beside(&self, there: Option<&OrdersData>) -> Self {
        OrdersRequest::beside(self, there.map(|data| data.seed))
    }

    fn data(&self, _: Access<'_, C>, _: u32) -> Result<OrdersData, TargetError> {
        Ok(OrdersData::wanted(self))
    }

    fn difference(&self, there: &OrdersData) -> Option<String> {
        there.difference(self)
    }

    fn lacks(
        access: Access<'_, C>,
        session: &mut C::Session<'_>,
        server: &C::Server,
        data: &OrdersData,
    ) -> Result<Option<String>, TargetError> {
        let there = parts_there::<C>(access, session)?;
        Ok(C::parts_of(server, data).into_iter().find(|part| !there.contains(part)).map(|(_, name)| name))
    }

    fn loaded_bytes(
        access: Access<'_, C>,
        session: &mut C::Session<'_>,
        data: &OrdersData,
    ) -> Result<u64, TargetError> {
        Ok(LoadedUnits::read(access, session)?.bytes(&Source::of(data)))
    }

    fn bytes(data: &OrdersData) -> u64 {
        Source::of(data).bytes()
    }

    fn estimate(data: &OrdersData) -> Estimate {
        C::SIZING.estimate(data, &Source::of(data))
    }

    fn make(work: &mut Work<'_, C, OrdersData>) -> Result<Validation, TargetError> {
        make(work)
    }
}

/// Units that are loaded already, and rows of each table that came of them.
#[derive(Debug, Clone, Default)]
pub(super) struct LoadedUnits {
    marks: Marks<Table>,
    pub(super) rows: BTreeMap<Table, u64>,
}

impl LoadedUnits {
    /// Reads what has been loaded.
    pub fn read<C: OrdersDialect>(access: Access<'_, C>, session: &mut C::Session<'_>) -> Result<Self, TargetError> {
        let table = C::qualified(access.namespace, OrdersData::LOAD_TABLE);
        let read = format!("SELECT table_name, first_unit, units, rows_loaded FROM {table} ORDER BY 1, 2");
        let mut loaded = Self::default();
        let read = C::after_commits(&table, &read);
        for row in C::ask(session, "read what has been loaded", &read, Halt::NEVER)? {
            let number = |at: usize| row.get(at)?.as_ref()?.parse::<u64>().ok();
            let table = row.first().and_then(|name| Table::named(name.as_deref()?));
            if let (Some(table), Some(first), Some(units), Some(rows)) = (table, number(1), number(2), number(3)) {
                loaded.marks.entry(table).or_default().push((first, units));
                *loaded.rows.entry(table).or_default() += rows;
            }
        }
        Ok(loaded)
    }

    fn bytes(&self, source: &Source) -> u64 {
        let units = |table: &Table| self.marks[table].iter().map(|(_, units)| units).sum();
        self.marks.keys().map(|table| source.bytes_of_units(*table, units(table))).sum()
    }

    fn row_count(&self) -> u64 {
        self.rows.values().sum()
    }
}

/// All phases; gives what was found in the end.
fn make<C: OrdersDialect>(work: &mut Work<'_, C, OrdersData>) -> Result<Validation, TargetError> {
    let (access, source) = (work.access, &Source::of(&work.data));
    work.report.notes.extend(C::remarks_on(&work.data));
    work.report.notes.extend(C::notes_on_loading(&work.server));
    make_tables(work)?;
    let found_rows = load_rows(work, source)?;
    let there = parts_there(access, &mut work.session)?;
    for step in C::steps(access.namespace, &work.data, &there) {
        do_step(work, &step, source)?;
    }
    let tables: Vec<(Table, u64)> = Table::ALL.map(|table| (table, source.bytes_of(table))).to_vec();
    let data = work.data.clone();
    work.side_by_side(
        C::SETTLING,
        &tables,
        |_| C::open(access),
        |session, table, halt| C::settle(session, &data, table, halt),
    )?;
    C::write_out_orders(work)?;
    let loaded = LoadedUnits::read(access, &mut work.session)?;
    let validation = validate(work, source, &loaded.rows)?;
    work.report.rows_written = loaded.row_count() - found_rows;
    Ok(validation)
}

/// Makes the tables that are not there yet. A table that somebody dropped in between is loaded again.
fn make_tables<C: OrdersDialect>(work: &mut Work<'_, C, OrdersData>) -> Result<(), TargetError> {
    let there = <C as Keeps<OrdersData>>::objects(&mut work.session)?;
    let missing = Table::ALL.into_iter().filter(|table| !there.contains_key(table.name()));
    work.phase(Phase::Create, 0, |work, _| {
        let (namespace, halt) = (work.access.namespace, work.halt());
        let marks = C::qualified(namespace, OrdersData::LOAD_TABLE);
        for table in missing {
            let forget = format!("DELETE FROM {marks} WHERE table_name = '{}'", table.name());
            for statement in C::create_orders_table(namespace, &work.data, table, forget) {
                C::execute(&mut work.session, "create the tables", &statement, halt)?;
            }
        }
        Ok(())
    })
}

/// Loads what is missing, in pieces, and gives the rows that were there before.
fn load_rows<C: OrdersDialect>(work: &mut Work<'_, C, OrdersData>, source: &Source) -> Result<u64, TargetError> {
    let loaded = LoadedUnits::read(work.access, &mut work.session)?;
    let (found, total) = (loaded.bytes(source), source.bytes());
    work.report.bytes_found = found;
    work.report.bytes_written = total.saturating_sub(found);
    let missing: Vec<_> = Table::ALL
        .into_iter()
        .map(|table| {
            let done = loaded.marks.get(&table).map_or(&[][..], Vec::as_slice);
            let rows_of_a_unit = source.measured(table).rows.ceil().max(1.0) as u64;
            let most = (C::MAX_PIECE_ROWS / rows_of_a_unit).max(1);
            let units = table.units(&work.data.sizes);
            let longest = match C::LOADS_SPARSE_WHOLE && table.is_sparse() {
                true => units,
                false => (PIECE_BYTES / source.bytes_of_units(table, 1).max(1)).clamp(1, most),
            };
            let room_of_piece = C::SIZING.room(table, source) * longest.min(units) as f64 / units as f64;
            (table, cut(table, units, done, longest, u64::MAX), room_of_piece as u64)
        })
        .filter(|(_, pieces, _)| !pieces.is_empty())
        .collect();
    let count = missing.iter().map(|(_, pieces, _)| pieces.len()).sum();
    let left = Pieces::weighed(missing);
    work.phase(Phase::Load, total, |work, notify| {
        let (access, server) = (work.access, &work.server);
        let notify_all = |done: u64| notify((found + done).min(total));
        work.streams(count, &notify_all).run(
            |halt| C::open_for_loading_orders(access, halt),
            |ended| left.next(ended),
            |session, piece, stream| C::load_orders(session, server, source, piece, stream),
        )
    })?;
    Ok(loaded.row_count())
}

fn do_step<C: OrdersDialect>(
    work: &mut Work<'_, C, OrdersData>,
    step: &Step,
    source: &Source,
) -> Result<(), TargetError> {
    let access = work.access;
    let execute = |session: &mut C::Session<'_>, at: usize, halt: Halt<'_>| {
        let job = &step.jobs[at];
        job.statements.iter().try_for_each(|statement| C::execute(session, &job.doing, statement, halt))
    };
    let mut jobs: Vec<(usize, u64)> =
        step.jobs.iter().enumerate().map(|(at, job)| (at, source.bytes_of(job.table))).collect();
    if step.is_parallel {
        // The longest first, so that none of them is left alone at the end.
        jobs.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        return work.side_by_side(step.phase, &jobs, |halt| C::open_for_building(access, halt), execute);
    }
    let total = jobs.iter().map(|(_, bytes)| bytes).sum();
    work.phase(step.phase, total, |work, notify| {
        let (mut done, halt) = (0, work.halt());
        for (at, bytes) in jobs {
            execute(&mut work.session, at, halt)?;
            done += bytes;
            notify(done);
        }
        Ok(())
    })
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Validation {
    /// Whether nothing is missing and nothing wrong.
    pub(crate) is_valid: bool,
    /// Each thing that was looked at.
    pub(crate) checks: Vec<Validated>,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Validated {
    /// What kind of thing: `table`, `index`, `rows`, `values`, ….
    pub(crate) what: &'static str,
    /// Its name.
    pub(crate) name: String,
    /// How it came out.
    pub(crate) state: State,
    /// What it was to be, where that is a figure.
    pub(crate) expected: Option<String>,
    /// What it is.
    pub(crate) found: Option<String>,
}

/// How something came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// As it was to be.
    Valid,
    /// It is not there.
    Missing,
    /// It is there, and otherwise than it was to be.
    Invalid,
}

impl State {
    fn of(is_valid: bool) -> Self {
        if is_valid { Self::Valid } else { Self::Invalid }
    }
}

/// Looks at everything. `rows` are those that were loaded into each table.
///
/// # Errors
/// [`TargetError::Interrupted`], or why the server cannot be asked.
pub(crate) fn validate<C: OrdersDialect>(
    work: &mut Work<'_, C, OrdersData>,
    source: &Source,
    rows: &BTreeMap<Table, u64>,
) -> Result<Validation, TargetError> {
    let access = work.access;
    let there = parts_there(access, &mut work.session)?;
    let mut checks: Vec<Validated> = C::parts_of(&work.server, &work.data)
        .into_iter()
        .map(|part| {
            let state = if there.contains(&part) { State::Valid } else { State::Missing };
            Validated { what: part.0.word(), name: part.1, state, expected: None, found: None }
        })
        .collect();
    let (answers, sizes) = (Mutex::new(BTreeMap::new()), work.data.sizes);
    let tables: Vec<(Table, u64)> = Table::ALL.map(|table| (table, source.bytes_of(table))).to_vec();
    work.side_by_side(
        Phase::Validate,
        &tables,
        |_| C::open(access),
        |session, table, halt| {
            let questions = Questions::of(table, expected_of(table, &sizes));
            let row = questions.ask::<C>(access.namespace, session, halt)?;
            answers.lock().unwrap_or_else(PoisonError::into_inner).insert(table, (questions, row));
            Ok(())
        },
    )?;
    let answers = answers.into_inner().unwrap_or_else(PoisonError::into_inner);
    for (table, (questions, row)) in &answers {
        questions.judge(row, rows.get(table).copied().unwrap_or(0), &mut checks);
    }
    let sum = |table: Table| answers.get(&table).and_then(|(_, row)| row.last().cloned().flatten());
    let (totals, items) = (sum(Table::Orders), sum(Table::OrderItems));
    checks.push(Validated {
        what: "values",
        name: "orders: all totals are all items".to_owned(),
        state: State::of(totals == items && totals.is_some()),
        expected: items,
        found: totals,
    });
    Ok(Validation { is_valid: checks.iter().all(|check| check.state == State::Valid), checks })
}

/// What is asked of one table, in one statement.
struct Questions {
    table: Table,
    /// The column whose values run from 1 to the number of rows.
    numbered: Option<&'static str>,
    expected: Vec<Expected>,
}

impl Questions {
    fn of(table: Table, expected: Vec<Expected>) -> Self {
        let key = table.key().map_or(&[][..], |key| key.columns);
        Self { table, numbered: if let [column] = key { Some(*column) } else { None }, expected }
    }

    /// The row of answers: rows, least and largest number, what is expected, and the sum of money.
    fn ask<C: OrdersDialect>(
        &self,
        namespace: &str,
        session: &mut C::Session<'_>,
        halt: Halt<'_>,
    ) -> Result<Vec<Option<String>>, TargetError> {
        let mut asked = vec!["count(*)".to_owned()];
        asked.extend(self.numbered.iter().flat_map(|column| {
            let column = C::quoted(column);
            [format!("min({column})"), format!("max({column})")]
        }));
        asked.extend(self.expected.iter().map(|expected| C::float(expected.expression)));
        asked.extend(match self.table {
            Table::Orders => Some("sum(order_total)".to_owned()),
            Table::OrderItems => Some("sum(unit_price * quantity)".to_owned()),
            _ => None,
        });
        let name = C::qualified(namespace, self.table.name());
        // Each has a name, since not every server makes one up that differs from the others.
        let asked: Vec<String> = asked.iter().enumerate().map(|(at, what)| format!("{what} AS a{at}")).collect();
        let statement = format!("SELECT {} FROM {name}", asked.join(", "));
        let rows = C::ask(session, &format!("look at the rows of {name}"), &statement, halt)?;
        Ok(rows.into_iter().next().unwrap_or_default())
    }

    fn judge(&self, row: &[Option<String>], loaded: u64, checks: &mut Vec<Validated>) {
        let name = self.table.name();
        let mut answers = row.iter();
        let mut next = || answers.next().cloned().flatten();
        let figure = |text: &Option<String>| text.as_ref().and_then(|text| text.parse::<f64>().ok());
        let grouped = |text: &Option<String>| figure(text).map(group_thousands);
        let count = next();
        checks.push(Validated {
            what: "rows",
            name: name.to_owned(),
            state: State::of(figure(&count) == Some(loaded as f64)),
            expected: Some(group_thousands(loaded as f64)),
            found: grouped(&count),
        });
        if let Some(column) = self.numbered {
            let (least, largest) = (next(), next());
            let is_whole = figure(&least) == Some(1.0) && figure(&largest) == figure(&count);
            checks.push(Validated {
                what: "rows",
                name: format!("{name}: {column} without gaps"),
                state: State::of(is_whole),
                expected: Some(format!("1 to {}", group_thousands(loaded as f64))),
                found: grouped(&least).zip(grouped(&largest)).map(|(least, largest)| format!("{least} to {largest}")),
            });
        }
        for expected in &self.expected {
            let found = figure(&next());
            let shown = |figure: f64| format!("{figure:.4}");
            checks.push(Validated {
                what: "values",
                name: format!("{name}: {}", expected.words),
                state: State::of(found.is_some_and(|found| expected.allows(found))),
                expected: Some(format!("{} ± {}", shown(expected.mean), shown(expected.allowed()))),
                found: found.map(shown),
            });
        }
    }
}
