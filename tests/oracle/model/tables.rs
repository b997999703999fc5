//! Statements that make tables, and those that fill them.

use super::{Change, Database, Mark, Table, table_in};
use crate::responder::{Answer, Call, Value};

impl Database {
    /// What changes the data dictionary: it commits before.
    pub(super) fn define(&mut self, text: &str, call: &Call) -> Option<Answer> {
        let name = table_in(text).unwrap_or_default();
        let is_there = self.tables.contains_key(&name);
        let missing = Answer::error(942, "table or view does not exist");
        if text.starts_with("ALTER SESSION SET ") {
            return Some(Answer::Ok);
        }
        if text.starts_with("DECLARE") && text.contains("DBMS_STATS.GATHER_TABLE_STATS") {
            let name = call.binds[0][0].as_text()?.to_lowercase();
            return Some(if self.tables.contains_key(&name) { Answer::Ok } else { missing });
        }
        let verb = ["CREATE TABLE ", "CREATE UNIQUE INDEX ", "DROP TABLE ", "TRUNCATE TABLE ", "ALTER TABLE "]
            .into_iter()
            .find(|verb| text.starts_with(verb))?;
        self.commit(call.session);
        Some(match verb {
            "CREATE TABLE " if is_there => Answer::error(955, "name is already used by an existing object"),
            "CREATE TABLE " => {
                if self.locked_by.is_none() && !name.starts_with("plimsoll_") {
                    self.unlocked.push(name.clone());
                }
                self.tables.insert(name, Table::default());
                Answer::Ok
            }
            "CREATE UNIQUE INDEX " => {
                let table = text.split(" ON ").nth(1).and_then(table_in)?;
                match (self.tables.contains_key(&table), self.indexes.insert(name)) {
                    (false, _) => missing,
                    (true, false) => Answer::error(955, "name is already used by an existing object"),
                    (true, true) => Answer::Ok,
                }
            }
            _ if !is_there => missing,
            "DROP TABLE " if name == "plimsoll_lock" && self.locked_by.is_some() => {
                Answer::error(54, "resource busy and acquire with NOWAIT specified or timeout expired")
            }
            "DROP TABLE " => {
                self.tables.remove(&name);
                self.indexes.remove(&format!("{name}_key"));
                match name.as_str() {
                    "plimsoll_data" => self.descriptor = None,
                    "plimsoll_load" => self.marks.clear(),
                    _ => {}
                }
                Answer::Ok
            }
            "TRUNCATE TABLE " => {
                self.tables.get_mut(&name)?.rows.clear();
                Answer::Ok
            }
            _ if text.ends_with("MINIMIZE RECORDS_PER_BLOCK") => {
                let table = self.tables.get_mut(&name)?;
                if table.rows.is_empty() {
                    return Some(Answer::error(28_603, "statement not permitted on empty tables"));
                }
                table.is_minimized = true;
                Answer::Ok
            }
            _ => return None,
        })
    }

    /// What changes rows.
    pub(super) fn change(&mut self, text: &str, call: &Call) -> Option<Answer> {
        let verb = ["INSERT ", "DELETE FROM ", "UPDATE "].into_iter().find(|verb| text.starts_with(verb))?;
        let name = table_in(text)?;
        if !self.tables.contains_key(&name) {
            return Some(Answer::error(942, "table or view does not exist"));
        }
        let number = |row: &[Value], at: usize| row.get(at).and_then(Value::as_i64);
        let word = |row: &[Value], at: usize| row.get(at).and_then(Value::as_text).map(str::to_owned);
        let row = call.binds.first().map(Vec::as_slice).unwrap_or_default();
        let session = call.session;
        let changes: Vec<Change> = match (verb, name.as_str()) {
            ("INSERT ", "plimsoll_lock") => {
                let lock = self.tables.get_mut(&name)?;
                if lock.rows.insert(1, super::Row::default()).is_some() {
                    return Some(Answer::error(1, "unique constraint violated"));
                }
                Vec::new()
            }
            ("INSERT ", "plimsoll_data") => {
                vec![Change::Describe(number(row, 0)? as u32, word(row, 1)?, word(row, 2)?)]
            }
            ("INSERT ", "plimsoll_load") => vec![Change::Mark(Mark {
                is_scan: number(row, 0)? as u32,
                schema: number(row, 1)? as u32,
                first: number(row, 2)?,
                places: number(row, 3)? as u64,
            })],
            ("INSERT ", _) => {
                let rows = call.binds.iter().map(|row| {
                    let columns: Option<Vec<String>> = (1..row.len()).map(|at| word(row, at)).collect();
                    Some(Change::Row(name.clone(), number(row, 0)? as u64, columns?))
                });
                rows.collect::<Option<_>>()?
            }
            ("DELETE FROM ", "plimsoll_load") if row.len() == 2 => {
                vec![Change::Forget(number(row, 0)? as u32, number(row, 1)? as u32)]
            }
            ("DELETE FROM ", "plimsoll_load") => vec![Change::ForgetAll],
            ("DELETE FROM ", "plimsoll_data") => vec![Change::Undescribe],
            ("UPDATE ", "plimsoll_data") => vec![Change::Stage(word(row, 0)?)],
            _ => return None,
        };
        let count = changes.len() as u64;
        changes.into_iter().for_each(|change| self.later(session, change));
        Some(Answer::Changed(count))
    }
}
