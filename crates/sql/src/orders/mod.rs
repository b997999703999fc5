//! Order entry on SQL servers: what its data are, making them, holding them against what was to be made, removing them; and in
//! [`load`] the transactions on them.
//!
//! A server's own folder says what of that is SQL of its dialect, by [`SqlText`](crate::SqlText) and [`OrdersDialect`].

pub mod ddl;
mod dialect;
pub mod load;
pub mod procedures;
pub(crate) mod setup;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::ServerError;
use crate::data::streams::Halt;
use crate::data::{Access, Content, catalog};
use load::Ledger;
use model::workload::orders::rows::{Fields, Rows};
use model::workload::orders::tables::{INDEXES, SEQUENCES};
use model::workload::orders::{MAX_SCALE, MIN_SCALE, Sizes, Table};
use targets::TargetError;
use targets::orders::{Acknowledgements, Audit, Audited, Auditor, Indexes, OrdersRequest};

pub use dialect::{BuiltIndex, Job, KeyStatements, Lacking, OrdersDialect, PartKind, Parts, Sizing, Step, parts_of};

/// Units of a table that are looked at.
const SAMPLE_UNITS: u64 = 400;

/// Rows of a data set, and about how large those of each table are.
#[derive(Debug, Clone)]
pub struct Source {
    /// The rows.
    pub rows: Rows,
    measured: [Measured; Table::ALL.len()],
}

/// How large the rows of a table are, in the mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Measured {
    /// Rows of a unit.
    pub rows: f64,
    /// Bytes of the values of a row: 4 or 8 of a number, and those of a text.
    pub(crate) row_bytes: f64,
}

/// Adds up bytes of values.
#[derive(Default)]
struct Bytes(u64);

impl Fields for Bytes {
    fn begin_row(&mut self) {}
    fn null(&mut self) {}
    fn whole(&mut self, _: i64) {
        self.0 += 6;
    }
    fn money(&mut self, _: i64) {
        self.0 += 8;
    }
    fn text(&mut self, parts: &[&str]) {
        self.0 += 1 + parts.iter().map(|part| part.len() as u64).sum::<u64>();
    }
    fn day(&mut self, _: i32) {
        self.0 += 4;
    }
    fn instant(&mut self, _: i64) {
        self.0 += 8;
    }
    fn end_row(&mut self) {}
}

impl Source {
    /// The rows of this seed, in tables of these sizes.
    pub fn new(seed: u64, sizes: Sizes) -> Self {
        let rows = Rows::new(seed, sizes);
        let measured = Table::ALL.map(|table| {
            let units = table.units(&sizes).min(SAMPLE_UNITS);
            let mut bytes = Bytes::default();
            let count = rows.each(table, 0..units, &mut bytes).max(1);
            Measured { rows: count as f64 / units.max(1) as f64, row_bytes: bytes.0 as f64 / count as f64 }
        });
        Self { rows, measured }
    }

    /// The rows of a data set.
    pub(crate) fn of(data: &OrdersData) -> Self {
        Self::new(data.seed, data.sizes)
    }

    /// How large rows of a table are.
    pub(crate) fn measured(&self, table: Table) -> Measured {
        self.measured[table as usize]
    }

    /// About how many rows a table has.
    pub(crate) fn rows_of(&self, table: Table) -> f64 {
        table.units(self.rows.sizes()) as f64 * self.measured(table).rows
    }

    /// About how many bytes the values of so many units have.
    pub fn bytes_of_units(&self, table: Table, units: u64) -> u64 {
        let Measured { rows, row_bytes } = self.measured(table);
        (units as f64 * rows * row_bytes) as u64
    }

    /// About how many bytes the values of a table have.
    pub(crate) fn bytes_of(&self, table: Table) -> u64 {
        self.bytes_of_units(table, table.units(self.rows.sizes()))
    }

    /// The same of all tables.
    pub(crate) fn bytes(&self) -> u64 {
        Table::ALL.into_iter().map(|table| self.bytes_of(table)).sum()
    }

    /// Bytes of the values of a row of any table, in the mean.
    pub(crate) fn mean_row_bytes(&self) -> f64 {
        let rows: f64 = Table::ALL.into_iter().map(|table| self.rows_of(table)).sum();
        self.bytes() as f64 / rows.max(1.0)
    }
}

/// Version of everything that set-up makes.
pub(crate) const FORMAT_VERSION: u32 = 1;

/// Bare name of a partition, from 0.
pub(crate) fn partition_name(table: Table, number: u32) -> String {
    format!("{}_p{}", table.name(), number + 1)
}

/// A data set of order entry, as its descriptor says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OrdersData {
    /// Version of the format of everything in the namespace.
    pub format_version: u32,
    /// Version of Plimsoll that began to make it.
    pub plimsoll_version: String,
    /// When it was begun, RFC 3339 in UTC.
    pub created_at: String,
    /// Seed of all rows.
    pub seed: u64,
    /// Scale: 1 is a million customers.
    pub scale: f64,
    /// Hash partitions of each table that has any; 0 without.
    pub partitions: u32,
    /// Which indexes it has.
    pub indexes: Indexes,
    /// Rows that it began with.
    pub sizes: Sizes,
}

impl Content for OrdersData {
    const NOUN: &'static str = "order entry data";
    const COMMAND: &'static str = "plimsoll orders";
    const DATA_TABLE: &'static str = "plimsoll_orders";
    const LOAD_TABLE: &'static str = "plimsoll_orders_load";
    const LOAD_COLUMNS: &'static [(&'static str, &'static str)] =
        &[("table_name", "varchar(40)"), ("first_unit", "bigint"), ("units", "bigint"), ("rows_loaded", "bigint")];
    const LOAD_KEY: usize = 2;
    const TABLES: &'static str = "`customers`, `orders`, …";
    const DROPPED: &'static str = "tables of order entry";
    const FORMAT_VERSION: u32 = FORMAT_VERSION;

    fn names() -> String {
        let tables = Table::ALL.map(|table| match table.partitioned_by() {
            Some(_) => format!("{}(_p[0-9]+)?", table.name()),
            None => table.name().to_owned(),
        });
        let keys = Table::ALL.into_iter().filter_map(|table| table.key().map(|key| key.name));
        let indexes = INDEXES.iter().map(|index| index.name);
        let sequences = SEQUENCES.iter().map(|sequence| sequence.name);
        let others: Vec<&str> = keys.chain(indexes).chain(sequences).collect();
        format!("^(plimsoll_orders(_load)?(_pkey)?|{}|{})$", tables.join("|"), others.join("|"))
    }

    fn objects(&self) -> Vec<String> {
        let partitions =
            |table: Table| (0..self.partitions_of(table).unwrap_or(0)).map(move |number| partition_name(table, number));
        Table::ALL
            .into_iter()
            .flat_map(|table| std::iter::once(table.name().to_owned()).chain(partitions(table)))
            .collect()
    }

    fn is_sensible(&self) -> bool {
        (MIN_SCALE..=MAX_SCALE).contains(&self.scale) && self.sizes.are_of(self.scale)
    }
}

impl OrdersData {
    /// The data that a request asks for.
    pub fn wanted(request: &OrdersRequest) -> Self {
        // To the second: fractions would only make the descriptor harder to read.
        let now = jiff::Timestamp::now().round(jiff::Unit::Second).unwrap_or_else(|_| jiff::Timestamp::now());
        Self {
            format_version: FORMAT_VERSION,
            plimsoll_version: env!("CARGO_PKG_VERSION").to_owned(),
            created_at: now.to_string(),
            seed: request.seed,
            scale: request.scale,
            partitions: request.partitions,
            indexes: request.indexes,
            sizes: Sizes::of(request.scale),
        }
    }

    /// How these data differ from what is asked for, in words; none if they do not.
    pub(crate) fn difference(&self, asked: &OrdersRequest) -> Option<String> {
        // Another scale says it all; alone, their number is that of data by a version before.
        let warehouses = match Sizes::of(asked.scale).warehouses {
            _ if asked.scale != self.scale => self.sizes.warehouses,
            warehouses => warehouses,
        };
        let figures = [
            ("the scale", self.scale.to_string(), asked.scale.to_string()),
            ("the number of warehouses", self.sizes.warehouses.to_string(), warehouses.to_string()),
            ("the number of partitions", self.partitions.to_string(), asked.partitions.to_string()),
            ("the requirements on indexes", self.indexes.word().to_owned(), asked.indexes.word().to_owned()),
            ("the seed", self.seed.to_string(), asked.seed.to_string()),
        ];
        let differ = figures.iter().filter(|(_, there, asked)| there != asked);
        let words: Vec<String> =
            differ.map(|(what, there, asked)| format!("{what} is {there} there and {asked} here")).collect();
        (!words.is_empty()).then(|| words.join("; "))
    }

    /// The partitions of a table; none where it has no parts.
    pub fn partitions_of(&self, table: Table) -> Option<u32> {
        (self.partitions > 0 && table.partitioned_by().is_some()).then_some(self.partitions)
    }

    /// The columns of the key of a table: with partitions, the column that decides on the partition is always among them.
    pub(crate) fn key_columns(&self, table: Table) -> Vec<&'static str> {
        let mut columns = table.key().map_or_else(Vec::new, |key| key.columns.to_vec());
        if let Some(by) = table.partitioned_by().filter(|by| self.partitions > 0 && !columns.contains(by)) {
            columns.push(by);
        }
        columns
    }
}

/// A small data set, for tests.
#[cfg(any(test, feature = "test-servers"))]
pub fn sample() -> OrdersData {
    OrdersData {
        format_version: 1,
        plimsoll_version: "0".to_owned(),
        created_at: "2026-01-01T00:00:00Z".to_owned(),
        seed: 42,
        scale: 0.001,
        partitions: 0,
        indexes: Indexes::All,
        sizes: Sizes::of(0.001),
    }
}

/// Rows that break a rule and are shown.
const SHOWN: usize = 10;
/// Keys that are looked for at a time: no server has shorter lists than Oracle.
const KEYS_AT_ONCE: usize = 1_000;
/// From this status on an order is processed.
const PROCESSED: i64 = 5;

/// Audits the data in a namespace of servers.
pub(crate) struct SqlAuditor<D> {
    pub(crate) connector: D,
    pub(crate) namespace: String,
    pub(crate) ledger: Arc<Ledger>,
}

impl<D: OrdersDialect> Auditor for SqlAuditor<D> {
    fn take_acknowledged(&self) -> Acknowledgements {
        self.ledger.take()
    }

    fn audit(&self, acknowledged: &Acknowledgements, stop: &AtomicBool) -> Result<Audit, TargetError> {
        audit(Access::new(&self.connector, &self.namespace), acknowledged, stop)
    }
}

/// Audits the data, which must be whole.
///
/// # Errors
/// When the server cannot be asked.
pub(crate) fn audit<D: OrdersDialect>(
    access: Access<'_, D>,
    acknowledged: &Acknowledgements,
    stop: &AtomicBool,
) -> Result<Audit, TargetError> {
    let began = Instant::now();
    let mut session = D::open(access)?;
    let data: OrdersData = catalog::whole(access, D::look(&mut session)?.found)?;
    let mut questions = Questions::<D> { session, namespace: access.namespace, halt: Halt::on(stop) };
    let mut rules = Vec::new();
    for rule in ROWS {
        rules.push(questions.rows(rule)?);
    }
    for (table, key, count) in keys(&data) {
        rules.push(questions.whole(table, key, count)?);
        if data.indexes == Indexes::None {
            rules.push(questions.once(table, key)?);
        }
    }
    if !acknowledged.is_empty() {
        rules.push(questions.there(&acknowledged.orders)?);
        rules.push(questions.processed(&acknowledged.processed)?);
        rules.push(twice(&acknowledged.processed));
    }
    Ok(Audit { rules, elapsed_ns: began.elapsed().as_nanos() as u64 })
}

/// Tables whose first keys all stay, with their keys and how many there were at first.
fn keys(data: &OrdersData) -> [(&'static str, &'static str, u64); 4] {
    let sizes = &data.sizes;
    [
        ("customers", "customer_id", sizes.customers),
        ("addresses", "address_id", sizes.addresses),
        ("card_details", "card_id", sizes.cards),
        ("orders", "order_id", sizes.orders),
    ]
}

/// A rule, and the query that gives the rows that break it. `{name}` is a table.
struct RowRule {
    rule: &'static str,
    query: &'static str,
}

const ROWS: [RowRule; 4] = [
    RowRule {
        rule: "each order's total is the sum of its items",
        query: "SELECT o.order_id, o.order_total, s.total FROM {orders} o LEFT JOIN (SELECT order_id, SUM(unit_price * quantity) \
                AS total FROM {order_items} GROUP BY order_id) s ON s.order_id = o.order_id \
                WHERE o.order_total IS NULL OR o.order_total <> COALESCE(s.total, 0)",
    },
    RowRule {
        rule: "no stock is below zero",
        query: "SELECT product_id, warehouse_id, quantity_on_hand FROM {inventories} WHERE quantity_on_hand < 0",
    },
    RowRule {
        rule: "each item has its order",
        query: "SELECT i.order_id, i.line_item_id, i.product_id FROM {order_items} i LEFT JOIN {orders} o \
                ON o.order_id = i.order_id WHERE o.order_id IS NULL",
    },
    RowRule {
        rule: "each order has its customer",
        query: "SELECT o.order_id, o.customer_id FROM {orders} o LEFT JOIN {customers} c ON c.customer_id = o.customer_id \
                WHERE c.customer_id IS NULL",
    },
];

/// What a server is asked.
struct Questions<'a, D: OrdersDialect> {
    session: D::Session<'a>,
    namespace: &'a str,
    halt: Halt<'a>,
}

impl<D: OrdersDialect> Questions<'_, D> {
    fn table(&self, name: &str) -> String {
        D::qualified(self.namespace, name)
    }

    fn ask(&mut self, statement: &str) -> Result<Vec<Vec<Option<String>>>, TargetError> {
        D::ask(&mut self.session, "audit the data", statement, self.halt)
    }

    fn number(&mut self, statement: &str) -> Result<u64, TargetError> {
        let rows = self.ask(statement)?;
        // A count that cannot be read is no count of nothing: the audit would call data sound that it has not looked at.
        rows.first().and_then(|row| row.first()?.as_ref()?.parse().ok()).ok_or_else(|| {
            let what = format!("the server's answer to an audit is not a number: `{statement}`");
            ServerError::unfit(what, Some("send us this message with the server's version".to_owned())).into()
        })
    }

    /// Counts the rows of a query, and shows the first.
    fn broken(&mut self, rule: String, query: &str) -> Result<Audited, TargetError> {
        let violations = self.number(&format!("SELECT COUNT(*) FROM ({query}) broken"))?;
        let mut rows = Vec::new();
        if violations > 0 {
            for row in self.ask(&format!("{query}{}", D::limit(SHOWN)))? {
                let values: Vec<String> =
                    row.into_iter().map(|value| value.unwrap_or_else(|| "null".to_owned())).collect();
                rows.push(values.join(", "));
            }
        }
        Ok(Audited { rule, violations, rows })
    }

    fn rows(&mut self, rule: RowRule) -> Result<Audited, TargetError> {
        let tables = ["order_items", "orders", "inventories", "customers"];
        let query = tables
            .iter()
            .fold(rule.query.to_owned(), |query, table| query.replace(&format!("{{{table}}}"), &self.table(table)));
        self.broken(rule.rule.to_owned(), &query)
    }

    /// Keys 1 to `count` are there.
    fn whole(&mut self, table: &str, key: &str, count: u64) -> Result<Audited, TargetError> {
        let name = self.table(table);
        let found = self.number(&format!("SELECT COUNT(*) FROM {name} WHERE {key} BETWEEN 1 AND {count}"))?;
        let rule = format!("`{table}` has the keys 1 to {count} that it was made with");
        let rows = if found == count { Vec::new() } else { vec![format!("{found} of {count} rows have such keys")] };
        Ok(Audited { rule, violations: found.abs_diff(count), rows })
    }

    /// No key is there twice, which no index sees to.
    fn once(&mut self, table: &str, key: &str) -> Result<Audited, TargetError> {
        let query =
            format!("SELECT {key}, COUNT(*) AS times FROM {} GROUP BY {key} HAVING COUNT(*) > 1", self.table(table));
        self.broken(format!("each key of `{table}` is there once"), &query)
    }

    /// Orders that were acknowledged are there.
    fn there(&mut self, orders: &[i64]) -> Result<Audited, TargetError> {
        let rule = "each order that was acknowledged is there".to_owned();
        self.missing(rule, orders, "")
    }

    /// Orders whose processing was acknowledged are processed.
    fn processed(&mut self, orders: &[i64]) -> Result<Audited, TargetError> {
        let rule = "each order whose processing was acknowledged is processed".to_owned();
        self.missing(rule, orders, &format!(" AND order_status >= {PROCESSED}"))
    }

    fn missing(&mut self, rule: String, orders: &[i64], condition: &str) -> Result<Audited, TargetError> {
        let table = self.table("orders");
        let (mut violations, mut rows) = (0, Vec::new());
        for keys in orders.chunks(KEYS_AT_ONCE) {
            let list: Vec<String> = keys.iter().map(i64::to_string).collect();
            let ask = format!("SELECT order_id FROM {table} WHERE order_id IN ({}){condition}", list.join(", "));
            let found = self.ask(&ask)?;
            let found: BTreeSet<i64> = found.iter().filter_map(|row| row.first()?.as_ref()?.parse().ok()).collect();
            for missing in keys.iter().filter(|key| !found.contains(key)) {
                violations += 1;
                if rows.len() < SHOWN {
                    rows.push(format!("order {missing}"));
                }
            }
        }
        Ok(Audited { rule, violations, rows })
    }
}

/// No order was processed twice.
fn twice(processed: &[i64]) -> Audited {
    let mut times: BTreeMap<i64, u64> = BTreeMap::new();
    processed.iter().for_each(|order| *times.entry(*order).or_default() += 1);
    let again: Vec<(i64, u64)> = times.into_iter().filter(|(_, times)| *times > 1).collect();
    Audited {
        rule: "no order was acknowledged as processed twice".to_owned(),
        violations: again.len() as u64,
        rows: again.iter().take(SHOWN).map(|(order, times)| format!("order {order}, {times} times")).collect(),
    }
}

#[cfg(test)]
mod descriptor_tests {
    use super::*;
    use targets::database::Replace;

    #[test]
    fn small_data_of_versions_before_are_loaded_as_they_are_and_never_gone_on_with() {
        let now = sample();
        let mut document = serde_json::to_value(&now).unwrap();
        document["sizes"].as_object_mut().unwrap().remove("warehouses");
        let before: OrdersData = serde_json::from_value(document).unwrap();
        assert!(before.is_sensible() && before.sizes.warehouses == 1_000);
        let OrdersData { scale, partitions, indexes, seed, .. } = now;
        let same = OrdersRequest {
            scale,
            partitions,
            indexes,
            seed,
            streams: 1,
            is_seed_asked: true,
            replace: Replace::Refuse,
        };
        assert_eq!(now.difference(&same), None);
        assert_eq!(before.difference(&same).unwrap(), "the number of warehouses is 1000 there and 10 here");
        let other = OrdersRequest { scale: 0.002, ..same };
        assert_eq!(now.difference(&other).unwrap(), "the scale is 0.001 there and 0.002 here");
    }
}
