//! Order entry in the model: tables of rows, what has been loaded, keys, sequences, and transactions that can be taken back.
//!
//! What one session has inserted and not committed no other one sees; what it has changed the others see at once, as there are no
//! locks on rows here. That is enough for statements which look at what they change.

mod audit;
mod procedures;
mod statements;

use std::collections::{BTreeMap, BTreeSet};

use crate::responder::{Answer, Call, Column, Kind, Value};

/// A value of a row: money in hundredths, days and instants as numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Null,
    Int(i64),
    Text(Box<str>),
}

impl Cell {
    pub fn number(&self) -> Option<i64> {
        if let Cell::Int(number) = self { Some(*number) } else { None }
    }

    fn text(&self) -> Option<&str> {
        if let Cell::Text(text) = self { Some(text) } else { None }
    }

    fn of(value: &Value) -> Cell {
        match value {
            Value::Number(digits) => Cell::Int(digits.parse().expect("whole numbers alone are bound")),
            Value::Text(text) => Cell::Text(text.as_str().into()),
            _ => Cell::Null,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct ShopTable {
    /// Names, and whether they hold money.
    columns: Vec<(String, bool)>,
    /// By the numbers that keep them apart.
    pub rows: BTreeMap<[i64; 2], Box<[Cell]>>,
    /// Rows whose transaction goes on, and whose it is.
    open: BTreeMap<[i64; 2], u32>,
    /// The column that a sequence numbers.
    numbered: Option<(String, String)>,
}

impl ShopTable {
    fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|(column, _)| column == name)
    }

    /// Columns whose numbers keep rows apart.
    fn key_columns(name: &str) -> &'static [&'static str] {
        match name {
            "customers" => &["customer_id"],
            "addresses" => &["address_id"],
            "card_details" => &["card_id"],
            "warehouses" => &["warehouse_id"],
            "product_information" | "product_descriptions" => &["product_id"],
            "inventories" => &["product_id", "warehouse_id"],
            "orders" => &["order_id"],
            "order_items" => &["order_id", "line_item_id"],
            _ => &[],
        }
    }

    pub fn get(&self, key: [i64; 2], column: &str) -> Option<&Cell> {
        Some(&self.rows.get(&key)?[self.column(column)?])
    }

    fn set(&mut self, key: [i64; 2], column: &str, cell: Cell) -> Option<Cell> {
        let at = self.column(column)?;
        Some(std::mem::replace(&mut self.rows.get_mut(&key)?[at], cell))
    }

    /// Keys of the rows that a session sees.
    fn seen(&self, session: u32) -> impl Iterator<Item = [i64; 2]> + '_ {
        self.rows.keys().copied().filter(move |key| self.open.get(key).is_none_or(|owner| *owner == session))
    }
}

/// How to take something back.
#[derive(Clone, Debug)]
enum Undo {
    /// A row that was inserted.
    Insert(String, [i64; 2]),
    /// A number that was changed by so much.
    Add(String, [i64; 2], &'static str, i64),
    /// A value that was another one.
    Set(String, [i64; 2], &'static str, Cell),
}

#[derive(Clone, Debug, Default)]
pub struct Shop {
    pub tables: BTreeMap<String, ShopTable>,
    /// Kind and name of keys, indexes, foreign keys, checks and sequences.
    pub parts: BTreeSet<(&'static str, String)>,
    pub sequences: BTreeMap<String, i64>,
    /// Format, stage and text.
    pub descriptor: Option<(i64, String, String)>,
    /// Table, first unit, units, rows.
    pub marks: Vec<(String, i64, i64, i64)>,
    pending_marks: BTreeMap<u32, Vec<(String, i64, i64, i64)>>,
    pending_rows: BTreeMap<u32, Vec<(String, [i64; 2])>>,
    undo: BTreeMap<u32, Vec<Undo>>,
    /// Tables whose statistics were gathered.
    pub gathered: BTreeSet<String>,
    /// Bytes that the user has in the tablespace and may have at most, where a quota was granted.
    pub quota: Option<(i64, i64)>,
    /// Room in the tablespace, for whoever may see it.
    pub room: Option<i64>,
    /// Commits and rollbacks of sessions that had changed something.
    pub commits: u64,
    pub rollbacks: u64,
    /// Procedures by their names, as they were made.
    pub procedures: BTreeMap<String, String>,
    /// Those that cannot be executed, and why.
    pub broken: Vec<(String, String)>,
    /// Calls of procedures.
    pub calls: u64,
}

fn missing() -> Answer {
    Answer::error(942, "table or view does not exist")
}

/// The bare name behind the user's, from the first place where one stands.
fn name_in(text: &str) -> Option<&str> {
    let after = text.split_once("\".")?.1;
    Some(&after[..after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len())])
}

/// What stands between this and the next of that.
fn between<'a>(text: &'a str, from: &str, to: &str) -> Option<&'a str> {
    let rest = text.split_once(from)?.1;
    Some(rest.split_once(to).map_or(rest, |(part, _)| part))
}

fn numbers<const N: usize>(rows: Vec<[i64; N]>) -> Answer {
    let columns = (0..N).map(|at| Column::number(&format!("C{at}"))).collect();
    Answer::Rows { columns, rows: rows.into_iter().map(|row| row.map(Value::from).into()).collect() }
}

impl Shop {
    /// The answer to a call about order entry; `None` where it is not about that.
    pub fn answer(&mut self, text: &str, call: &Call) -> Option<Answer> {
        self.procedure(text, call)
            .or_else(|| self.define(text))
            .or_else(|| self.own(text, call))
            .or_else(|| self.load(text, call))
            .or_else(|| self.question(text))
            .or_else(|| self.audit(text))
            .or_else(|| self.transaction(text, call))
    }

    /// A transaction ends, or its session.
    pub fn end(&mut self, session: u32, kind: Kind) {
        let undo = self.undo.remove(&session).unwrap_or_default();
        let (rows, marks) = (self.pending_rows.remove(&session), self.pending_marks.remove(&session));
        if kind == Kind::Commit {
            self.commits += u64::from(!undo.is_empty());
            self.marks.extend(marks.unwrap_or_default());
            for table in self.tables.values_mut() {
                table.open.retain(|_, owner| *owner != session);
            }
            return;
        }
        self.rollbacks += u64::from(!undo.is_empty());
        for (table, key) in rows.unwrap_or_default() {
            self.tables.get_mut(&table).unwrap().rows.remove(&key);
        }
        for step in undo.into_iter().rev() {
            match step {
                Undo::Insert(name, key) => {
                    let table = self.tables.get_mut(&name).unwrap();
                    table.rows.remove(&key);
                    table.open.remove(&key);
                }
                Undo::Add(name, key, column, by) => {
                    let table = self.tables.get_mut(&name).unwrap();
                    if let Some(now) = table.get(key, column).and_then(Cell::number) {
                        table.set(key, column, Cell::Int(now - by));
                    }
                }
                Undo::Set(name, key, column, cell) => {
                    self.tables.get_mut(&name).unwrap().set(key, column, cell);
                }
            }
        }
    }

    /// All sessions are gone without a goodbye: what they had not committed is taken back.
    pub fn take_back_all(&mut self) {
        let open = self.undo.keys().chain(self.pending_rows.keys()).chain(self.pending_marks.keys());
        let open: BTreeSet<u32> = open.copied().collect();
        open.into_iter().for_each(|session| self.end(session, Kind::Rollback));
    }

    /// What changes the data dictionary.
    fn define(&mut self, text: &str) -> Option<Answer> {
        if text.starts_with("BEGIN DBMS_STATS.GATHER_TABLE_STATS") {
            let table = between(text, "tabname => '", "'")?.to_lowercase();
            if !self.tables.contains_key(&table) {
                return Some(missing());
            }
            self.gathered.insert(table);
            return Some(Answer::Ok);
        }
        let (verb, rest) = [
            "CREATE TABLE ",
            "CREATE UNIQUE INDEX ",
            "CREATE INDEX ",
            "CREATE SEQUENCE ",
            "ALTER TABLE ",
            "DROP TABLE ",
            "DROP SEQUENCE ",
        ]
        .into_iter()
        .find_map(|verb| Some((verb, text.strip_prefix(verb)?)))?;
        let name = name_in(rest)?.to_owned();
        let is_shop = verb.contains("SEQUENCE")
            || !name.starts_with("slob_") && !name.starts_with("scan_") && !name.starts_with("plimsoll_");
        if !is_shop && !name.starts_with("plimsoll_orders") {
            return None;
        }
        let used = || Some(Answer::error(955, "name is already used by an existing object"));
        match verb {
            "CREATE TABLE " => {
                if self.tables.contains_key(&name) {
                    return used();
                }
                let columns = between(rest, " (", "\u{0}")?
                    .split(", ")
                    .take_while(|part| !part.starts_with("CONSTRAINT") && !part.starts_with("PRIMARY"));
                let columns = columns.map(|part| {
                    let (name, kind) = part.split_once(' ').unwrap();
                    (name.to_owned(), kind.contains(",2)"))
                });
                let table = ShopTable { columns: columns.collect(), ..ShopTable::default() };
                for rule in rest.split("CONSTRAINT ").skip(1) {
                    self.parts.insert(("check", rule.split(' ').next()?.to_owned()));
                }
                self.tables.insert(name, table);
            }
            "CREATE UNIQUE INDEX " | "CREATE INDEX " => {
                let table = name_in(rest.split_once(" ON ")?.1)?;
                if !self.tables.contains_key(table) {
                    return Some(missing());
                }
                if !self.parts.insert(("index", name)) {
                    return used();
                }
            }
            "CREATE SEQUENCE " => {
                let start = between(rest, "START WITH ", " ")?.parse().ok()?;
                if !self.parts.insert(("sequence", name.clone())) {
                    return used();
                }
                self.sequences.insert(name, start);
            }
            "DROP SEQUENCE " => {
                if !self.parts.remove(&("sequence", name.clone())) {
                    return Some(Answer::error(2289, "sequence does not exist"));
                }
                self.sequences.remove(&name);
            }
            _ if !self.tables.contains_key(&name) => return Some(missing()),
            "DROP TABLE " => {
                self.tables.remove(&name);
                match name.as_str() {
                    "plimsoll_orders" => self.descriptor = None,
                    "plimsoll_orders_load" => self.marks.clear(),
                    // Its keys and indexes go with it, and the model knows nobody else's.
                    _ if self.tables.keys().all(|name| name.starts_with("plimsoll_")) => {
                        self.parts.retain(|(kind, _)| *kind == "sequence");
                    }
                    _ => {}
                }
            }
            _ => {
                if let Some(column) = between(rest, "MODIFY (", " DEFAULT ") {
                    let sequence = name_in(rest.split_once(" DEFAULT ")?.1)?.to_owned();
                    if !self.sequences.contains_key(&sequence) {
                        return Some(Answer::error(2289, "sequence does not exist"));
                    }
                    self.tables.get_mut(&name)?.numbered = Some((column.to_owned(), sequence));
                    return Some(Answer::Ok);
                }
                let rule = between(rest, "ADD CONSTRAINT ", " ")?.to_owned();
                let kind = if rest.contains(" PRIMARY KEY ") { "key" } else { "foreign_key" };
                if kind == "key" && !self.parts.contains(&("index", rule.clone())) {
                    return Some(Answer::error(1418, "specified index does not exist"));
                }
                if !self.parts.insert((kind, rule)) {
                    return Some(Answer::error(2264, "name already used by an existing constraint"));
                }
            }
        }
        Some(Answer::Ok)
    }

    /// Our own two tables.
    fn own(&mut self, text: &str, call: &Call) -> Option<Answer> {
        let verb = ["INSERT ", "DELETE FROM ", "UPDATE ", "SELECT "].into_iter().find(|verb| text.starts_with(verb))?;
        let name = name_in(text).filter(|name| name.starts_with("plimsoll_orders"))?;
        if !self.tables.contains_key(name) {
            return Some(missing());
        }
        let row = call.binds.first().map(Vec::as_slice).unwrap_or_default();
        let number = |at: usize| row.get(at).and_then(Value::as_i64);
        let word = |at: usize| row.get(at).and_then(Value::as_text).map(str::to_owned);
        Some(match (verb, name) {
            ("INSERT ", "plimsoll_orders") => {
                self.descriptor = Some((number(0)?, word(1)?, word(2)?));
                Answer::Changed(1)
            }
            ("INSERT ", _) => {
                let mark = (word(0)?, number(1)?, number(2)?, number(3)?);
                self.pending_marks.entry(call.session).or_default().push(mark);
                Answer::Changed(1)
            }
            ("DELETE FROM ", "plimsoll_orders") => {
                self.descriptor = None;
                Answer::Changed(0)
            }
            ("DELETE FROM ", _) => {
                match between(text, "table_name = '", "'") {
                    Some(table) => self.marks.retain(|(name, ..)| name != table),
                    None => self.marks.clear(),
                }
                Answer::Changed(0)
            }
            ("UPDATE ", "plimsoll_orders") => {
                self.descriptor.as_mut()?.1 = word(0)?;
                Answer::Changed(1)
            }
            ("SELECT ", "plimsoll_orders") => {
                let row = |(format, stage, text): &(i64, String, String)| {
                    [Value::from(*format), stage.as_str().into(), text.as_str().into()]
                };
                let rows = self.descriptor.iter().map(row).collect();
                Answer::rows([Column::number("FORMAT"), Column::text("STAGE"), Column::text("TEXT")], rows)
            }
            ("SELECT ", _) => {
                let mut marks = self.marks.clone();
                marks.sort();
                let row = |(table, first, units, rows): &(String, i64, i64, i64)| {
                    [table.as_str().into(), Value::from(*first), (*units).into(), (*rows).into()]
                };
                let number = Column::number;
                let columns =
                    [Column::text("TABLE_NAME"), number("FIRST_UNIT"), number("UNITS"), number("ROWS_LOADED")];
                Answer::rows(columns, marks.iter().map(row).collect())
            }
            _ => return None,
        })
    }

    /// Arrays of rows.
    fn load(&mut self, text: &str, call: &Call) -> Option<Answer> {
        let rest = text.strip_prefix("INSERT /*+ APPEND_VALUES */ INTO ")?;
        let name = name_in(rest)?.to_owned();
        let columns: Vec<&str> = between(rest, " (", ") VALUES")?.split(", ").collect();
        let Some(table) = self.tables.get_mut(&name) else {
            return (!name.starts_with("slob_") && !name.starts_with("scan_")).then(missing);
        };
        assert_eq!(columns, table.columns.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>());
        let keys = ShopTable::key_columns(&name);
        let places: Vec<usize> = keys.iter().map(|key| table.column(key).unwrap()).collect();
        let pending = self.pending_rows.entry(call.session).or_default();
        for row in &call.binds {
            let cells: Box<[Cell]> = row.iter().map(Cell::of).collect();
            let mut key = [0; 2];
            for (part, place) in key.iter_mut().zip(&places) {
                *part = cells[*place].number().unwrap();
            }
            if places.is_empty() {
                key[0] = table.rows.keys().next_back().map_or(1, |last| last[0] + 1);
            }
            assert!(table.rows.insert(key, cells).is_none(), "{key:?} comes twice into {name}");
            pending.push((name.clone(), key));
        }
        Some(Answer::Changed(call.binds.len() as u64))
    }

    /// Questions about what is there.
    fn question(&mut self, text: &str) -> Option<Answer> {
        if text.contains("table_name = 'PLIMSOLL_ORDERS' AND column_name IN") {
            return Some(numbers(vec![[if self.tables.contains_key("plimsoll_orders") { 3 } else { 0 }]]));
        }
        if text.contains("FROM user_objects o") {
            let texts = |name: &str| vec![Value::from(name), 8192_i64.into()];
            let others =
                self.parts.iter().filter(|(kind, _)| ["index", "sequence"].contains(kind)).map(|(_, name)| name);
            let rows = self.tables.keys().chain(others).map(|name| texts(name)).collect();
            return Some(Answer::Rows { columns: vec![Column::text("NAME"), Column::number("BYTES")], rows });
        }
        if text.contains("'ROWS_LOADED'") {
            let columns = |name: &str| if name == "plimsoll_orders" { 3 } else { 4_i64 };
            let own = self.tables.keys().filter(|name| name.starts_with("plimsoll_orders"));
            let rows = own.map(|name| vec![Value::from(name.as_str()), columns(name).into(), columns(name).into()]);
            let columns = vec![Column::text("NAME"), Column::number("ALL"), Column::number("KNOWN")];
            return Some(Answer::Rows { columns, rows: rows.collect() });
        }
        if text.contains("FROM user_constraints WHERE") {
            let tables = self.tables.keys().map(|name| vec!["table".into(), Value::from(name.as_str())]);
            let parts = self.parts.iter().map(|(kind, name)| vec![(*kind).into(), Value::from(name.as_str())]);
            let columns = vec![Column::text("KIND"), Column::text("NAME")];
            return Some(Answer::Rows { columns, rows: tables.chain(parts).collect() });
        }
        if text.contains("dba_free_space") {
            return Some(match self.room {
                Some(room) => numbers(vec![[room]]),
                None => missing(),
            });
        }
        if text.contains("FROM user_ts_quotas") {
            return Some(numbers(self.quota.map(|(taken, most)| [taken, most]).into_iter().collect()));
        }
        None
    }
}
