//! Whether data of order entry keep their rules.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::OrdersDialect;
use super::descriptor::OrdersData;
use super::load::Ledger;
use crate::ServerError;
use crate::data::access::Access;
use crate::data::catalog;
use crate::data::streams::Halt;
use targets::TargetError;
use targets::orders::{Acknowledgements, Audit, Audited, Auditor, Indexes};

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
pub fn audit<D: OrdersDialect>(
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
            let what = format!("the server's answer to an audit is no number: `{statement}`");
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
mod tests {
    use super::*;

    #[test]
    fn an_order_that_was_processed_twice_is_found() {
        assert_eq!(twice(&[1, 2, 3]).violations, 0);
        let found = twice(&[4, 2, 4, 4]);
        assert_eq!((found.violations, found.rows), (1, vec!["order 4, 3 times".to_owned()]));
    }
}
