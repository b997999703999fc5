//! A database behind the responder, as far as the SLOB method asks for one: tables of rows with addresses, what has been loaded,
//! transactions, locks, plans. It reads statements by their shape, not by their text alone, and refuses whatever it does not know.

mod cluster;
mod counters;
mod operations;
mod questions;
mod shop;
mod snapshots;
mod tables;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::responder::{Answer, Answers, Call, Column, Fault, Kind};

pub use cluster::Instance;
use counters::Counters;
pub use operations::{Executed, Touch};
pub use shop::{Cell, Shop};
pub use snapshots::Snapshots;

/// Name of the only user, as the data dictionary has it.
pub const USER: &str = "SLOB";

/// How long an operation of the load, or a list of them, and a commit take at least. A load asks again at once, so one that was answered in no
/// time would keep the processors busy for as long as it runs, and that by operations that no test looks at.
const ANSWERED_IN: Duration = Duration::from_millis(5);

/// A database that a test can look into. Clones are the same.
#[derive(Clone, Default)]
pub struct Model(Arc<Mutex<Database>>);

#[derive(Default)]
pub struct Database {
    pub tables: BTreeMap<String, Table>,
    pub indexes: BTreeSet<String>,
    pub marks: Vec<Mark>,
    /// Format, stage and text.
    pub descriptor: Option<(u32, String, String)>,
    /// Operations in the order in which they were executed.
    pub executed: Vec<Executed>,
    /// Whether it counts what operations do, and its views show that.
    pub counts: bool,
    pub counters: Counters,
    /// What AWR and Statspack have kept.
    pub snapshots: Snapshots,
    /// Whether the user is in no pluggable database.
    pub is_alone: bool,
    /// `PRIMARY` where empty.
    pub role: String,
    /// The plan of any statement, if not the one that is right: operation, options, object.
    pub plan: Vec<(String, String, String)>,
    /// Statements that hold such a text are refused with this error.
    pub refused: Vec<(String, u32, String)>,
    /// Statements that hold such a text are answered so, one answer after the other; the last one stays.
    pub answered: Vec<(String, VecDeque<Answer>)>,
    /// The same, each for one statement alone.
    pub refused_once: Vec<(String, u32, String)>,
    /// Order entry.
    pub shop: Shop,
    /// Tables of data that were made while nobody held the lock.
    pub unlocked: Vec<String>,
    /// Views that this user may see, by their names in small letters; all that are known where empty.
    pub views: BTreeMap<String, Answer>,
    /// Whether it is one of a cluster.
    pub is_cluster: bool,
    /// Its instances, where its views are asked for, and how often they were.
    pub cluster: Vec<Instance>,
    readings: u64,
    pending: BTreeMap<u32, Vec<Change>>,
    locked_by: Option<u32>,
    explained: String,
    next_block: u64,
}

impl Database {
    /// Number of the user's container: 0 without any.
    fn container(&self) -> i64 {
        if self.is_alone { 0 } else { 3 }
    }
}

/// A table of one row a block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    pub rows: BTreeMap<u64, Row>,
    pub is_minimized: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Number of its block.
    pub block: u64,
    pub columns: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    pub is_scan: u32,
    pub schema: u32,
    pub first: i64,
    pub places: u64,
}

/// What a transaction does when it is committed.
enum Change {
    Row(String, u64, Vec<String>),
    Mark(Mark),
    Forget(u32, u32),
    ForgetAll,
    Describe(u32, String, String),
    Undescribe,
    Stage(String),
}

impl Model {
    /// Puts there what SLOB's own `setup.sh` makes: tables of so many rows for so many users.
    pub fn set_up_as_slob(&self, users: u32, rows: u64) {
        self.with(|database| {
            for user in 1..=users {
                for (name, rows) in [("cf1", rows), ("cf2", 10)] {
                    let mut table = Table::default();
                    for key in 1..=rows {
                        database.next_block += 1;
                        let row = Row { block: database.next_block, columns: vec!["x".repeat(128); 19] };
                        table.rows.insert(key, row);
                    }
                    database.tables.insert(format!("user{user}.{name}"), table);
                }
            }
        });
    }

    /// Looks into the database, or changes it.
    pub fn with<T>(&self, look: impl FnOnce(&mut Database) -> T) -> T {
        look(&mut self.0.lock().unwrap())
    }
}

impl Answers for Model {
    fn answer(&self, call: &Call) -> Answer {
        let answer = self.with(|database| database.answer(call));
        let is_of_load = match call.kind {
            Kind::Execute | Kind::Reexecute => operations::is_operation(&call.sql),
            kind => kind == Kind::Commit,
        };
        if is_of_load {
            thread::sleep(ANSWERED_IN);
        }
        answer
    }

    fn connecting(&self, _: u32, service: &str) -> Option<Fault> {
        service.eq_ignore_ascii_case("nosuch").then_some(Fault::Refuse(12_514))
    }
}

impl Database {
    fn answer(&mut self, call: &Call) -> Answer {
        match call.kind {
            Kind::Commit => {
                self.commit(call.session);
                self.shop.end(call.session, Kind::Commit);
            }
            Kind::Rollback | Kind::Logoff => {
                self.shop.end(call.session, call.kind);
                self.pending.remove(&call.session);
                self.unlock(call.session);
            }
            Kind::Execute | Kind::Reexecute => return self.execute(call),
            Kind::Fetch | Kind::Parse | Kind::Ping => {}
        }
        Answer::Ok
    }

    fn execute(&mut self, call: &Call) -> Answer {
        let refused = self.refused.iter().find(|(text, ..)| call.sql.contains(text.as_str()));
        if let Some((_, code, message)) = refused {
            return Answer::error(*code, message);
        }
        if let Some(at) = self.refused_once.iter().position(|(text, ..)| call.sql.contains(text.as_str())) {
            let (_, code, message) = self.refused_once.remove(at);
            return Answer::error(code, &message);
        }
        let mut text = call.sql.split_whitespace().collect::<Vec<_>>().join(" ");
        // A query of several rows comes with a column that is the same in all.
        let inner =
            text.strip_prefix("SELECT q.*, 1 FROM (").and_then(|rest| rest.strip_suffix(") q")).map(str::to_owned);
        if let Some(inner) = &inner {
            text.clone_from(inner);
        }
        let answers = self.answered.iter_mut().find(|(part, _)| text.contains(part.as_str()));
        let scripted = answers.map(|(_, answers)| {
            let last = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
            last.unwrap_or(Answer::Ok)
        });
        let known = scripted
            .or_else(|| self.snapshot(&text, call))
            .or_else(|| self.shop.answer(&text, call))
            .or_else(|| self.question(&text, call))
            .or_else(|| self.define(&text, call))
            .or_else(|| self.change(&text, call))
            .or_else(|| self.operation(&text, call));
        if let (true, Some(Answer::Rows { mut columns, mut rows })) = (inner.is_some(), known.clone()) {
            columns.push(Column::number("1"));
            rows.iter_mut().for_each(|row| row.push(1_i64.into()));
            return Answer::Rows { columns, rows };
        }
        known.unwrap_or_else(|| Answer::error(900, &format!("the model does not know: {text}")))
    }

    fn later(&mut self, session: u32, change: Change) {
        self.pending.entry(session).or_default().push(change);
    }

    fn unlock(&mut self, session: u32) {
        self.locked_by = self.locked_by.filter(|holder| *holder != session);
    }

    fn commit(&mut self, session: u32) {
        self.unlock(session);
        for change in self.pending.remove(&session).unwrap_or_default() {
            match change {
                Change::Row(table, key, columns) => {
                    self.next_block += 1;
                    let row = Row { block: self.next_block, columns };
                    self.tables.entry(table).or_default().rows.insert(key, row);
                }
                Change::Mark(mark) => self.marks.push(mark),
                Change::Forget(is_scan, schema) => {
                    self.marks.retain(|mark| (mark.is_scan, mark.schema) != (is_scan, schema));
                }
                Change::ForgetAll => self.marks.clear(),
                Change::Describe(format, stage, text) => self.descriptor = Some((format, stage, text)),
                Change::Undescribe => self.descriptor = None,
                Change::Stage(now) => {
                    if let Some((_, stage, _)) = &mut self.descriptor {
                        *stage = now;
                    }
                }
            }
        }
    }
}

/// The first table in a statement, in small letters: a bare name where it is ours, and `user1.cf1` where it is SLOB's.
fn table_in(text: &str) -> Option<String> {
    let (before, after) = text.split_once("\".")?;
    let owner = before.rsplit('"').next()?;
    let name = &after[..after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len())];
    Some(if owner == USER { name.to_owned() } else { format!("{}.{name}", owner.to_lowercase()) })
}
