//! Operations of the load: statements of their own, and blocks that execute lists of them.

use super::{Database, table_in};
use crate::responder::{Answer, Call, Value, Way};

/// What an operation does to its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    Read,
    UpdateLite,
    UpdateHeavy,
    Scan,
}

/// An operation that was executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executed {
    pub touch: Touch,
    pub table: String,
    pub first_key: u64,
    pub keys: u64,
    /// Whether it came in a list.
    pub in_batch: bool,
}

/// Microseconds that an operation takes here, and its commit.
const OPERATION_US: i64 = 150;
const COMMIT_US: i64 = 40;

/// Whether a statement is an operation of the load or a list of them, by what only those have in them.
pub fn is_operation(text: &str) -> bool {
    [":operations", ":touched", "COUNT(t.c2)"].iter().any(|part| text.contains(part))
}

impl Database {
    pub(super) fn operation(&mut self, text: &str, call: &Call) -> Option<Answer> {
        let binds = call.binds.first().map(Vec::as_slice).unwrap_or_default();
        if text.contains(":operations") {
            return self.batch(text, binds);
        }
        let number = |at: usize| binds.get(at).and_then(Value::as_i64).map(|key| key as u64);
        let table = table_in(text)?;
        if text.starts_with("SELECT ") && text.contains("COUNT(t.c2)") {
            let executed = match text.contains("WHERE") {
                true => Executed {
                    touch: Touch::Read,
                    table,
                    first_key: number(0)?,
                    keys: number(1)? - number(0)?,
                    in_batch: false,
                },
                false => Executed { touch: Touch::Scan, table, first_key: 0, keys: 0, in_batch: false },
            };
            let touched = self.touch(executed, &[]);
            return Some(Answer::rows([crate::responder::Column::number("N")], vec![[touched.into()]]));
        }
        if text.starts_with("DECLARE ") && text.contains(":touched") {
            let columns: Vec<String> = binds.iter().filter_map(Value::as_text).map(str::to_owned).collect();
            let (touch, at) = match columns.len() {
                0 => (Touch::Read, 0),
                2 => (Touch::UpdateLite, 2),
                _ => (Touch::UpdateHeavy, columns.len()),
            };
            let (first_key, beyond) = (number(at)?, number(at + 1)?);
            let executed = Executed { touch, table, first_key, keys: beyond - first_key, in_batch: false };
            let touched = self.touch(executed, &columns);
            let mut ways = vec![Way::In; at + 2];
            ways.push(Way::Out);
            return Some(Answer::Block { ways, out: vec![vec![touched.into()]] });
        }
        None
    }

    /// Sixteen bytes an operation in, sixteen out, as numbers of four bytes with the most significant first.
    fn batch(&mut self, text: &str, binds: &[Value]) -> Option<Answer> {
        let has_updates = text.contains(":filling");
        let filling = if has_updates { binds.get(1).and_then(Value::as_text)?.to_owned() } else { String::new() };
        let packed = match binds.first()? {
            Value::Raw(bytes) => bytes.clone(),
            Value::Null => Vec::new(),
            _ => return None,
        };
        // The tables that it names: the first schema's stands in it too where a session has one of its own.
        let mut tables: Vec<String> = Vec::new();
        for (at, _) in text.match_indices('"').step_by(2) {
            let name = table_in(&text[at..])?;
            if (name.starts_with("slob_") || name.ends_with(".cf1")) && !tables.contains(&name) {
                tables.push(name);
            }
        }
        let (hot, home) = (tables.first()?.clone(), tables.last()?.clone());
        let word = |entry: &[u8], place: usize| {
            let bytes: [u8; 4] = entry[4 * place..4 * place + 4].try_into().unwrap();
            i32::from_be_bytes(bytes)
        };
        let mut times = Vec::new();
        let mut at_us = 0;
        for (number, entry) in packed.chunks_exact(16).enumerate() {
            let which = word(entry, 0);
            let touch = match which / 2 {
                0 => Touch::Read,
                1 => Touch::UpdateLite,
                2 => Touch::UpdateHeavy,
                3 if text.contains("scan_") || text.contains(".cf2") => Touch::Scan,
                _ => return Some(Answer::error(6501, "PL/SQL: program error")),
            };
            if !has_updates && [Touch::UpdateLite, Touch::UpdateHeavy].contains(&touch) {
                return Some(Answer::error(6501, "PL/SQL: program error"));
            }
            let mut table = if which % 2 == 1 { hot.clone() } else { home.clone() };
            if touch == Touch::Scan {
                table = table.replace("slob_", "scan_").replace(".cf1", ".cf2");
            }
            let first_key = (word(entry, 2) as u64) << 30 | word(entry, 3) as u64;
            let executed = Executed { touch, table, first_key, keys: word(entry, 1) as u64, in_batch: true };
            let columns = match touch {
                Touch::UpdateLite => 2,
                Touch::UpdateHeavy => 19,
                Touch::Read | Touch::Scan => 0,
            };
            let parts: Vec<String> = (0..columns)
                .map(|column| {
                    format!("{number:08}{column:02}{:.118}", filling.get(16 * (number % 64)..).unwrap_or_default())
                })
                .collect();
            let touched = self.touch(executed, &parts);
            at_us += OPERATION_US;
            let commit_us = if columns > 0 { COMMIT_US } else { -1 };
            for value in [at_us / 1_000_000, at_us % 1_000_000, commit_us, touched] {
                times.extend_from_slice(&(value as i32).to_be_bytes());
            }
        }
        let ways = if has_updates { vec![Way::In, Way::In, Way::Out] } else { vec![Way::In, Way::Out] };
        let times = if times.is_empty() { Value::Null } else { Value::Raw(times) };
        Some(Answer::Block { ways, out: vec![vec![times]] })
    }

    /// How many rows it touched. An update has to change something each time.
    fn touch(&mut self, executed: Executed, columns: &[String]) -> i64 {
        let Some(table) = self.tables.get_mut(&executed.table) else { return -1 };
        let touched = match executed.touch {
            Touch::Scan => table.rows.len(),
            _ => table.rows.range(executed.first_key..executed.first_key + executed.keys).count(),
        };
        if !columns.is_empty() {
            for (_, row) in table.rows.range_mut(executed.first_key..executed.first_key + executed.keys) {
                let ends = [0, row.columns.len() - 1];
                let places: Vec<usize> = if columns.len() == 2 { ends.to_vec() } else { (0..columns.len()).collect() };
                for (place, text) in places.into_iter().zip(columns) {
                    assert_ne!(row.columns[place], *text, "an update that changes nothing");
                    row.columns[place].clone_from(text);
                }
            }
        }
        if executed.keys > 0 || executed.touch == Touch::Scan {
            if self.counts {
                self.counters.executed(touched as u64, !columns.is_empty());
            }
            self.executed.push(executed);
        }
        touched as i64
    }
}
