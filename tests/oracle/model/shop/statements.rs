//! The statements of transactions.

use super::{Cell, Shop, ShopTable, Undo, between, name_in};
use crate::responder::{Answer, Call, Column, Value, Way};

/// Rows of one query, each of which is a row of some tables under the names that the query has for them.
type Joined<'a> = Vec<(&'static str, &'a ShopTable, [i64; 2])>;

impl Shop {
    pub(super) fn transaction(&mut self, text: &str, call: &Call) -> Option<Answer> {
        let binds = call.binds.first().map(Vec::as_slice).unwrap_or_default();
        let number = |at: usize| binds.get(at).and_then(Value::as_i64);
        if let Some(block) = text.strip_prefix("BEGIN INSERT INTO ") {
            let key = self.insert(block, call)?;
            let mut ways = vec![Way::In; binds.len() - 1];
            ways.push(Way::Out);
            return Some(Answer::Block { ways, out: vec![vec![key.into()]] });
        }
        if let Some(insert) = text.strip_prefix("INSERT INTO ") {
            return self.insert(insert, call).map(|_| Answer::Changed(1));
        }
        if text.starts_with("UPDATE ") {
            return self.update(text, call, &number).map(Answer::Changed);
        }
        let rows = self.rows_of(text, call.session, &number)?;
        Some(rows)
    }

    /// Inserts one row, and gives its key.
    pub(super) fn insert(&mut self, text: &str, call: &Call) -> Option<i64> {
        let name = name_in(text)?.to_owned();
        let (columns, rest) = text.split_once(" (")?.1.split_once(") VALUES (")?;
        // What follows the list of values ends with a key or with nothing.
        let values = rest.split_once(" RETURNING ").map_or(rest, |(values, _)| values);
        let values = values.strip_suffix(')')?;
        let binds = call.binds.first()?;
        let bound = |text: &str| -> Option<Cell> {
            let number: usize = text.strip_prefix(":v")?.split(' ').next()?.parse().ok()?;
            Some(Cell::of(binds.get(number - 1)?))
        };
        let mut given = Vec::new();
        for (column, value) in columns.split(", ").zip(values.split(", ")) {
            let cell = if let Some(cell) = bound(value) {
                cell
            } else if let Some(days) = value.strip_prefix("TRUNC(SYS_EXTRACT_UTC(SYSTIMESTAMP)) + ") {
                let days = bound(days).map_or_else(|| days.parse().ok(), |cell| cell.number())?;
                Cell::Int(20_454 + days)
            } else if value == "SYS_EXTRACT_UTC(SYSTIMESTAMP)" {
                Cell::Int(1_800_000_000_000_000)
            } else if value.ends_with(".NEXTVAL") {
                Cell::Int(self.next(name_in(value)?)?)
            } else if value == "NULL" {
                Cell::Null
            } else if let Some(word) = value.strip_prefix('\'') {
                Cell::Text(word.trim_end_matches('\'').into())
            } else {
                Cell::Int(value.parse().ok()?)
            };
            given.push((column.to_owned(), cell));
        }
        let numbered = self.tables.get(&name)?.numbered.clone();
        if let Some((column, sequence)) = numbered.filter(|(column, _)| given.iter().all(|(name, _)| name != column)) {
            let next = self.next(&sequence)?;
            given.push((column, Cell::Int(next)));
        }
        let table = self.tables.get_mut(&name)?;
        let mut row = vec![Cell::Null; table.columns.len()];
        for (column, cell) in given {
            row[table.column(&column)?] = cell;
        }
        let mut key = [0; 2];
        let keys = ShopTable::key_columns(&name);
        for (part, column) in key.iter_mut().zip(keys) {
            *part = row[table.column(column)?].number()?;
        }
        if keys.is_empty() {
            key[0] = table.rows.keys().next_back().map_or(1, |last| last[0] + 1);
        }
        assert!(table.rows.insert(key, row.into()).is_none(), "{key:?} comes twice into {name}");
        table.open.insert(key, call.session);
        self.undo.entry(call.session).or_default().push(Undo::Insert(name, key));
        Some(key[0])
    }

    fn next(&mut self, sequence: &str) -> Option<i64> {
        let next = self.sequences.get_mut(sequence)?;
        *next += 1;
        Some(*next - 1)
    }

    /// Changes rows, and says how many.
    fn update(&mut self, text: &str, call: &Call, number: &dyn Fn(usize) -> Option<i64>) -> Option<u64> {
        let name = name_in(text)?.to_owned();
        let undo = self.undo.entry(call.session).or_default();
        let table = self.tables.get_mut(&name)?;
        let mut add = |key: [i64; 2], column: &'static str, by: i64| {
            let now = table.get(key, column).and_then(Cell::number)?;
            table.set(key, column, Cell::Int(now + by));
            undo.push(Undo::Add(name.clone(), key, column, by));
            Some(1)
        };
        if text.contains("quantity_on_hand = quantity_on_hand - 1") {
            let key = [number(0)?, number(1)?];
            let has_any = self.tables.get("inventories")?.get(key, "quantity_on_hand").and_then(Cell::number) > Some(0);
            if !has_any {
                return Some(0);
            }
            let table = self.tables.get_mut(&name)?;
            let now = table.get(key, "quantity_on_hand").and_then(Cell::number)?;
            table.set(key, "quantity_on_hand", Cell::Int(now - 1));
            let undo = self.undo.entry(call.session).or_default();
            undo.push(Undo::Add(name, key, "quantity_on_hand", -1));
            return Some(1);
        }
        if text.contains("quantity = quantity + 1") {
            return Some(add([number(0)?, number(1)?], "quantity", 1).unwrap_or(0));
        }
        if text.contains("order_total = order_total + ") {
            return Some(add([number(1)?, 0], "order_total", number(0)?).unwrap_or(0));
        }
        let mut set = |key: [i64; 2], column: &'static str, to: i64| {
            if let Some(before) = table.set(key, column, Cell::Int(to)) {
                undo.push(Undo::Set(name.clone(), key, column, before));
            }
        };
        if text.contains("SET preferred_address = :v1, preferred_card") {
            set([number(2)?, 0], "preferred_address", number(0)?);
            set([number(2)?, 0], "preferred_card", number(1)?);
        } else if text.contains("SET preferred_address = :v1 WHERE") {
            set([number(1)?, 0], "preferred_address", number(0)?);
        } else if text.contains("SET order_status = :v1, order_total") {
            set([number(2)?, 0], "order_status", number(0)?);
            set([number(2)?, 0], "order_total", number(1)?);
        } else if text.contains("AND order_status <= 4") {
            let key = [number(1)?, 0];
            let waits = self.tables.get("orders")?.get(key, "order_status").and_then(Cell::number) <= Some(4);
            if !waits {
                return Some(0);
            }
            let before = self.tables.get_mut(&name)?.set(key, "order_status", Cell::Int(number(0)?))?;
            self.undo.entry(call.session).or_default().push(Undo::Set(name, key, "order_status", before));
        } else {
            return None;
        }
        Some(1)
    }

    fn rows_of(&self, text: &str, session: u32, number: &dyn Fn(usize) -> Option<i64>) -> Option<Answer> {
        let table = |name: &str| self.tables.get(name);
        let is = |table: &ShopTable, key: [i64; 2], column: &str, wanted: i64| {
            table.get(key, column).and_then(Cell::number) == Some(wanted)
        };
        let with = |name: &'static str, column: &str, wanted: i64| -> Option<Vec<Joined<'_>>> {
            let table = table(name)?;
            let found = table.seen(session).filter(|key| is(table, *key, column, wanted));
            Some(found.map(|key| vec![("", table, key)]).collect())
        };
        let rows: Vec<Joined<'_>> = if text.contains("customers WHERE customer_id = :v1") {
            with("customers", "customer_id", number(0)?)?
        } else if text.contains("LOWER(cust_last_name) = :v1") {
            let _ = number;
            let customers = table("customers")?;
            customers.seen(session).map(|key| vec![("", customers, key)]).collect()
        } else if text.contains("product_information p JOIN") {
            let (products, stocks, key) = (table("product_information")?, table("inventories")?, number(0)?);
            let found = stocks.rows.range([key, i64::MIN]..=[key, i64::MAX]);
            found.map(|(stock, _)| vec![("p", products, [key, 0]), ("i", stocks, *stock)]).collect()
        } else if text.contains("addresses WHERE customer_id") {
            with("addresses", "customer_id", number(0)?)?
        } else if text.contains("card_details WHERE customer_id") {
            with("card_details", "customer_id", number(0)?)?
        } else if text.contains("p.category_id = :v1 AND i.warehouse_id = :v2") {
            let (products, descriptions, stocks) =
                (table("product_information")?, table("product_descriptions")?, table("inventories")?);
            let (category, warehouse) = (number(0)?, number(1)?);
            let found = products.rows.keys().filter(|key| is(products, **key, "category_id", category));
            let found = found.filter(|key| stocks.rows.contains_key(&[key[0], warehouse]));
            found
                .map(|key| vec![("p", products, *key), ("d", descriptions, *key), ("i", stocks, [key[0], warehouse])])
                .collect()
        } else if text.starts_with("SELECT quantity_on_hand FROM") {
            let (stocks, key) = (table("inventories")?, [number(0)?, number(1)?]);
            stocks.rows.contains_key(&key).then(|| vec![("", stocks, key)]).into_iter().collect()
        } else if text.contains("o.order_status <= 4") {
            let (orders, customers, items, warehouse) =
                (table("orders")?, table("customers")?, table("order_items")?, number(0)?);
            let waits = |key: &[i64; 2]| {
                is(orders, *key, "warehouse_id", warehouse)
                    && orders.get(*key, "order_status").and_then(Cell::number) <= Some(4)
            };
            let with_items = |key: [i64; 2]| {
                let customer = orders.get(key, "customer_id").and_then(Cell::number).unwrap_or(0);
                let all = items.rows.range([key[0], i64::MIN]..=[key[0], i64::MAX]).map(|(item, _)| *item);
                all.map(move |item| vec![("o", orders, key), ("c", customers, [customer, 0]), ("i", items, item)])
            };
            orders.seen(session).filter(waits).flat_map(with_items).collect()
        } else if text.contains("orders WHERE customer_id") {
            with("orders", "customer_id", number(0)?)?
        } else if text.contains("order_items WHERE order_id") {
            with("order_items", "order_id", number(0)?)?
        } else if text.contains("o.sales_rep_id = :v1") {
            let (orders, customers, rep) = (table("orders")?, table("customers")?, number(0)?);
            let found = orders.seen(session).filter(|key| is(orders, *key, "sales_rep_id", rep));
            let customer = |key: [i64; 2]| orders.get(key, "customer_id").and_then(Cell::number).unwrap_or(0);
            let mut found: Vec<[i64; 2]> = found.collect();
            found.sort_by_key(|key| std::cmp::Reverse(orders.get(*key, "order_total").and_then(Cell::number)));
            found.into_iter().map(|key| vec![("o", orders, key), ("c", customers, [customer(key), 0])]).collect()
        } else if text.contains("GROUP BY CUBE") || text.contains("GROUP BY FLOOR(") {
            let orders = table("orders")?;
            let count =
                orders.seen(session).filter(|key| is(orders, *key, "warehouse_id", number(0).unwrap_or(0))).count();
            let columns = ["A", "B", "C", "D"].map(Column::number);
            let rows = vec![vec![Value::Null, 1_i64.into(), 1_i64.into(), Value::from(count)]];
            return Some(Answer::Rows { columns: columns.into(), rows });
        } else {
            return None;
        };
        let most = between(text, "FETCH FIRST ", " ").and_then(|number| number.parse().ok()).unwrap_or(usize::MAX);
        // Rows lie in the order of their keys already.
        let asked = text.strip_prefix("SELECT ")?.split_once(" FROM ")?.0.split(", ");
        let asked: Vec<&str> = asked.map(|name| name.trim_end_matches(" AS cents")).collect();
        let is_text = |name: &str| {
            !rows.iter().flatten().any(|(alias, table, key)| {
                let bare = name.strip_prefix(alias).and_then(|rest| rest.strip_prefix('.')).unwrap_or(name);
                matches!(table.get(*key, bare), Some(Cell::Int(_)))
            })
        };
        let column = |name: &&str| {
            let bare = name.trim_end_matches(" * 100");
            if is_text(bare) { Column::text(name) } else { Column::number(name) }
        };
        let columns = asked.iter().map(column).collect();
        let value = |name: &str, joined: &Joined<'_>| -> Value {
            let (bare, in_cents) = name.strip_suffix(" * 100").map_or((name, false), |bare| (bare, true));
            for (alias, table, key) in joined {
                let own = if alias.is_empty() {
                    Some(bare)
                } else {
                    bare.strip_prefix(alias).and_then(|rest| rest.strip_prefix('.'))
                };
                let Some(place) = own.and_then(|own| table.column(own)) else { continue };
                let is_money = table.columns[place].1;
                return match &table.rows[key][place] {
                    Cell::Int(cents) if is_money && !in_cents => {
                        Value::Number(format!("{}.{:02}", cents / 100, cents % 100))
                    }
                    Cell::Int(number) => Value::from(*number),
                    Cell::Text(text) => Value::from(&**text),
                    Cell::Null => Value::Null,
                };
            }
            panic!("no table has {name}: {text}")
        };
        let rows =
            rows.iter().take(most).map(|joined| asked.iter().map(|name| value(name, joined)).collect()).collect();
        Some(Answer::Rows { columns, rows })
    }
}
