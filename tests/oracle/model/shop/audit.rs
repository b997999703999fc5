//! What set-up and audit ask about rows.

use super::{Cell, Shop, ShopTable, between, name_in, numbers};
use crate::responder::{Answer, Column, Value};

/// Hundredths as the number that they are.
fn money(cents: i128) -> String {
    let sign = if cents < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", cents.unsigned_abs() / 100, cents.unsigned_abs() % 100)
}

impl ShopTable {
    fn numbers(&self, column: &str) -> Vec<i64> {
        let at = self.column(column).unwrap_or_else(|| panic!("no column {column}"));
        self.rows.values().filter_map(|row| row[at].number()).collect()
    }

    /// An aggregate of all rows.
    fn aggregate(&self, expression: &str) -> Value {
        let inner = |function: &str| expression.strip_prefix(function)?.strip_suffix(')');
        let ratio = |of: f64| Value::Number(format!("{:.12}", of));
        let rows = self.rows.len() as f64;
        if expression == "count(*)" {
            return Value::from(self.rows.len());
        }
        if let Some(least) = inner("min(").map(|column| self.numbers(column).into_iter().min()) {
            return Value::from(least);
        }
        if let Some(rest) = expression.strip_prefix("count(*) / ") {
            let by = if rest == "1000.0" { 1000.0 } else { *self.numbers("order_id").iter().max().unwrap() as f64 };
            return ratio(rows / by);
        }
        if let Some(most) = inner("max(").map(|column| self.numbers(column).into_iter().max()) {
            return Value::from(most);
        }
        if let Some(condition) = between(expression, "avg(CASE WHEN ", " THEN ") {
            let is_true = |row: &[Cell]| {
                let cell = |name: &str| &row[self.column(name).unwrap_or_else(|| panic!("no column {name}"))];
                if let Some(column) = condition.strip_suffix(" IS NULL") {
                    return *cell(column) == Cell::Null;
                }
                let (column, other) = condition.split_once(" = ").unwrap();
                match other.strip_prefix('\'') {
                    Some(word) => cell(column).text() == Some(word.trim_end_matches('\'')),
                    None => cell(column) == cell(other),
                }
            };
            let yes = self.rows.values().filter(|row| is_true(row)).count() as f64;
            let counts_no = expression.contains("THEN 0.0");
            return ratio(if counts_no { rows - yes } else { yes } / rows);
        }
        if let Some(column) = inner("avg(") {
            let all = self.numbers(column);
            let by = if self.columns.iter().any(|(name, is_money)| name == column && *is_money) { 100.0 } else { 1.0 };
            return ratio(all.iter().map(|number| *number as f64).sum::<f64>() / by / all.len() as f64);
        }
        let factors: Vec<Vec<i64>> = inner("sum(")
            .unwrap_or_else(|| panic!("{expression}"))
            .split(" * ")
            .map(|column| self.numbers(column))
            .collect();
        let product = |at: usize| factors.iter().map(|column| i128::from(column[at])).product::<i128>();
        Value::Number(money((0..factors[0].len()).map(product).sum()))
    }
}

impl Shop {
    pub(super) fn audit(&self, text: &str) -> Option<Answer> {
        // `SELECT … AS a0, … AS a1 FROM t`
        if text.contains(" AS a0") {
            let (asked, from) = text.strip_prefix("SELECT ")?.rsplit_once(" FROM ")?;
            let table = self.tables.get(name_in(from)?)?;
            let mut row = Vec::new();
            for (at, part) in asked.split(" AS a").enumerate().take(asked.matches(" AS a").count()) {
                let part = if at == 0 { part } else { part.split_once(", ")?.1 };
                row.push(table.aggregate(part));
            }
            let columns = (0..row.len()).map(|at| Column::number(&format!("A{at}"))).collect();
            return Some(Answer::Rows { columns, rows: vec![row] });
        }
        let (query, counts) = match text.strip_prefix("SELECT COUNT(*) FROM (") {
            Some(inner) => (inner.strip_suffix(") broken")?, true),
            None => (text, false),
        };
        if let Some(broken) = self.broken(query) {
            let limit =
                between(query, "FETCH FIRST ", " ").and_then(|number| number.parse().ok()).unwrap_or(usize::MAX);
            return Some(if counts {
                numbers(vec![[broken.len() as i64]])
            } else {
                numbers(broken.into_iter().take(limit).collect())
            });
        }
        let table = || self.tables.get(name_in(text)?);
        if let Some(range) = text.strip_prefix("SELECT COUNT(*) FROM ").and(between(text, " BETWEEN ", "\u{0}")) {
            let (first, last) = range.split_once(" AND ")?;
            let range = [first.parse().ok()?, i64::MIN]..=[last.parse().ok()?, i64::MAX];
            return Some(numbers(vec![[table()?.rows.range(range).count() as i64]]));
        }
        if let Some(keys) = text.strip_prefix("SELECT order_id FROM ").and(between(text, " IN (", ")")) {
            let orders = table()?;
            let is_processed = |key: [i64; 2]| orders.get(key, "order_status").and_then(Cell::number) >= Some(5);
            let keys = keys.split(", ").map(|key| [key.parse::<i64>().unwrap(), 0]);
            let found = keys.filter(|key| {
                orders.rows.contains_key(key) && (!text.contains("order_status >= 5") || is_processed(*key))
            });
            return Some(numbers(found.map(|[key, _]| [key]).collect()));
        }
        None
    }

    /// Rows that break one of the rules.
    fn broken(&self, query: &str) -> Option<Vec<[i64; 3]>> {
        let (orders, items) = (|| self.tables.get("orders"), || self.tables.get("order_items"));
        let number = |table: &ShopTable, key: [i64; 2], column: &str| table.get(key, column).and_then(Cell::number);
        if query.contains("SUM(unit_price * quantity) AS total") {
            let (orders, items) = (orders()?, items()?);
            let mut sums = std::collections::BTreeMap::<i64, i64>::new();
            for key in items.rows.keys() {
                *sums.entry(key[0]).or_default() +=
                    number(items, *key, "unit_price")? * number(items, *key, "quantity")?;
            }
            let total = |key: [i64; 2]| number(orders, key, "order_total");
            let sum = |key: [i64; 2]| sums.get(&key[0]).copied().unwrap_or(0);
            let wrong = orders.rows.keys().filter(|key| total(**key) != Some(sum(**key)));
            return Some(wrong.map(|key| [key[0], total(*key).unwrap_or(-1), sum(*key)]).collect());
        }
        if query.contains("quantity_on_hand < 0") {
            let stocks = self.tables.get("inventories")?;
            let below = |key: &&[i64; 2]| number(stocks, **key, "quantity_on_hand") < Some(0);
            return Some(stocks.rows.keys().filter(below).map(|key| [key[0], key[1], -1]).collect());
        }
        if query.contains("WHERE o.order_id IS NULL") {
            let (orders, items) = (orders()?, items()?);
            let lonely = items.rows.keys().filter(|key| !orders.rows.contains_key(&[key[0], 0]));
            return Some(lonely.map(|key| [key[0], key[1], 0]).collect());
        }
        if query.contains("WHERE c.customer_id IS NULL") {
            let (orders, customers) = (orders()?, self.tables.get("customers")?);
            let customer = |key: [i64; 2]| number(orders, key, "customer_id").unwrap_or(0);
            let lonely = orders.rows.keys().filter(|key| !customers.rows.contains_key(&[customer(**key), 0]));
            return Some(lonely.map(|key| [key[0], customer(*key), 0]).collect());
        }
        // Each row has a key of its own here.
        query.contains("HAVING COUNT(*) > 1").then(Vec::new)
    }
}
