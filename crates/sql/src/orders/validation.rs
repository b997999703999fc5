//! Whether a set-up made what it was to make: all parts, all rows, and values as they are generated.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use super::descriptor::OrdersData;
use super::dialect::{OrdersDialect, parts_there};
use super::source::Source;
use crate::data::setup::Work;
use crate::data::streams::Halt;
use model::units::group_thousands;
use model::workload::orders::Table;
use model::workload::orders::tables::{Expected, expected_of};
use targets::TargetError;
use targets::database::Phase;

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
pub fn validate<C: OrdersDialect>(
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
