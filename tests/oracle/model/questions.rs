//! Questions about the server, the user, and how tables lie.

use super::{Database, Row, USER, table_in};
use crate::responder::{Answer, Call, Column, Value, Way};

impl Database {
    pub(super) fn question(&mut self, text: &str, call: &Call) -> Option<Answer> {
        if let Some(about) = text.strip_prefix("EXPLAIN PLAN SET STATEMENT_ID = 'plimsoll' FOR ") {
            self.explained = about.to_owned();
            return Some(Answer::Ok);
        }
        if text.contains("IS_CLUSTER_DATABASE") {
            let out = vec![vec![i64::from(self.is_cluster).into()]];
            return Some(Answer::Block { ways: vec![Way::Out], out });
        }
        if !text.starts_with("SELECT ") && !text.starts_with("WITH ") {
            return None;
        }
        let number = |at: usize| call.binds.first()?.get(at)?.as_i64();
        let word = |at: usize| call.binds.first()?.get(at)?.as_text();
        let source = text.split(" FROM ").skip(1).map(|from| from.split(' ').next().unwrap_or_default());
        let view = source.clone().find(|name| name.starts_with("v$") || name.starts_with("gv$"));
        if let Some(view) = view {
            let counted = || self.counters.answer(view, text).filter(|_| self.counts);
            let answer = self.views.get(view).cloned().or_else(counted);
            let answer = answer.or_else(|| self.cluster_view(view, text));
            return Some(answer.unwrap_or_else(|| Answer::error(942, "table or view does not exist")));
        }
        Some(match text {
            _ if text.contains("FROM product_component_version") => {
                texts(["PRODUCT", "VERSION"], vec![["Oracle Database 19c Enterprise Edition", "19.0.0.0.0"]])
            }
            _ if text.contains("TO_NUMBER(SYS_CONTEXT('USERENV', 'INSTANCE')) FROM dual") => {
                numbers(["INSTANCE"], vec![[1]])
            }
            _ if text.contains("SYS_CONTEXT('USERENV', '") => {
                let names: Vec<&str> =
                    text.split("SYS_CONTEXT('USERENV', '").skip(1).filter_map(|rest| rest.split('\'').next()).collect();
                let value = |name: &&str| -> Value {
                    match *name {
                        "SESSION_USER" | "CURRENT_SCHEMA" => USER.into(),
                        "CON_NAME" if self.is_alone => "CDB$ROOT".into(),
                        "CON_NAME" => "ORCLPDB".into(),
                        "CON_ID" => self.container().to_string().into(),
                        "SERVICE_NAME" => "orcl".into(),
                        "INSTANCE_NAME" => "ONE1".into(),
                        "DB_UNIQUE_NAME" => "ONE".into(),
                        "SERVER_HOST" => "one-host".into(),
                        "DATABASE_ROLE" if self.role.is_empty() => "PRIMARY".into(),
                        "DATABASE_ROLE" => self.role.as_str().into(),
                        "SID" => i64::from(call.session).to_string().into(),
                        _ => Value::Null,
                    }
                };
                let columns = names.iter().map(|name| Column::text(name)).collect();
                Answer::Rows { columns, rows: vec![names.iter().map(value).collect()] }
            }
            _ if text.contains("FROM user_users u JOIN user_tablespaces t") => {
                let mut columns =
                    ["NAME", "BLOCK", "STATUS", "CONTENTS", "SEGMENTS", "BIG", "ENCRYPTED"].map(Column::text);
                columns[1] = Column::number("BLOCK");
                let word = |text: &str| Value::from(text);
                let place = ["DATA", "", "ONLINE", "PERMANENT", "AUTO", "NO", "NO"].map(word);
                let mut place = place;
                place[1] = 8192_i64.into();
                Answer::rows(columns, vec![place])
            }
            _ if text.contains("IN ('PLIMSOLL_DATA', 'PLIMSOLL_ORDERS')") => {
                let slob = i64::from(self.tables.contains_key("plimsoll_data"));
                numbers(["N"], vec![[slob + i64::from(self.shop.tables.contains_key("plimsoll_orders"))]])
            }
            _ if text.contains("FROM user_tables t WHERE REGEXP_LIKE") => {
                let rows = self.tables.iter().map(|(name, table)| {
                    [Value::from(name.as_str()), Value::from((table.rows.len() as i64 + 8) * 8192)]
                });
                Answer::rows([Column::text("NAME"), Column::number("BYTES")], rows.collect())
            }
            _ if text.contains("FROM user_tab_columns WHERE table_name IN") => {
                let of_ours = [("plimsoll_data", 3_i64), ("plimsoll_load", 4), ("plimsoll_lock", 1)];
                let there = of_ours.into_iter().filter(|(name, _)| self.tables.contains_key(*name));
                let rows = there.map(|(name, columns)| [Value::from(name), columns.into(), columns.into()]).collect();
                Answer::rows([Column::text("TABLE"), Column::number("ALL"), Column::number("KNOWN")], rows)
            }
            _ if text.contains("FROM user_tab_columns WHERE table_name = 'PLIMSOLL_DATA'") => {
                numbers(["N"], vec![[if self.tables.contains_key("plimsoll_data") { 3 } else { 0 }]])
            }
            _ if text.contains("t.table_name = 'CF1'") => {
                let owners = self.tables.keys().filter_map(|name| name.strip_suffix(".cf1"));
                let rows = owners.map(|owner| [Value::from(owner.to_uppercase()), 1_i64.into()]).collect();
                Answer::rows([Column::text("OWNER"), Column::number("SCANS")], rows)
            }
            _ if text.contains("FROM all_tables WHERE owner") => {
                let names = ["FREE", "COMPRESSION", "PARTITIONED", "IOT", "CLUSTER", "DEGREE", "ROWS", "BLOCKS"];
                let mut columns = names.map(Column::text);
                columns[0] = Column::number("FREE");
                let is_there = self.tables.contains_key(&word(1)?.to_lowercase());
                let row = || {
                    let text = |text: &str| if text.is_empty() { Value::Null } else { text.into() };
                    let mut row = ["", "DISABLED", "NO", "", "", "1", "", ""].map(text);
                    row[0] = 99_i64.into();
                    row
                };
                Answer::rows(columns, is_there.then(row).into_iter().collect())
            }
            _ if text.contains("FROM all_tab_columns WHERE owner") => numbers(["ALL", "FILLING"], vec![[20, 19]]),
            _ if text.contains("FROM all_ind_columns c JOIN all_indexes i") => {
                let index = format!("{}_KEY", word(1)?);
                let is_there = self.indexes.contains(&index.to_lowercase());
                let names = ["INDEX", "COLUMN", "PLACE", "UNIQUE", "STATUS", "VISIBLE"];
                let mut columns = names.map(Column::text);
                columns[2] = Column::number("PLACE");
                let row =
                    [index.into(), "CUSTID".into(), 1_i64.into(), "UNIQUE".into(), "VALID".into(), "VISIBLE".into()];
                Answer::rows(columns, is_there.then_some(row).into_iter().collect())
            }
            _ if text.contains("FROM all_triggers WHERE") => texts(["NAME"], Vec::new()),
            _ if text.contains("FROM plan_table WHERE") => self.plan_of_explained(),
            _ if text.contains("FOR UPDATE NOWAIT") && !self.tables.contains_key("plimsoll_lock") => {
                Answer::error(942, "table or view does not exist")
            }
            _ if text.contains("FOR UPDATE NOWAIT") => match self.locked_by {
                _ if self.tables["plimsoll_lock"].rows.is_empty() => numbers::<1>(["ID"], Vec::new()),
                Some(holder) if holder != call.session => {
                    Answer::error(54, "resource busy and acquire with NOWAIT specified or timeout expired")
                }
                _ => {
                    self.locked_by = Some(call.session);
                    numbers(["ID"], vec![[1]])
                }
            },
            _ if text.contains("plimsoll_data") => {
                let rows = self.descriptor.iter().map(|(format, stage, text)| {
                    [Value::from(i64::from(*format)), stage.as_str().into(), text.as_str().into()]
                });
                Answer::rows([Column::number("FORMAT"), Column::text("STAGE"), Column::text("TEXT")], rows.collect())
            }
            _ if text.contains("plimsoll_load") => {
                let mark = |mark: &super::Mark| {
                    [i64::from(mark.is_scan), i64::from(mark.schema), mark.first, mark.places as i64]
                };
                let mut rows: Vec<[i64; 4]> = self.marks.iter().map(mark).collect();
                rows.sort_unstable();
                numbers(["IS_SCAN", "SLOB_SCHEMA", "FIRST_PLACE", "PLACES"], rows)
            }
            _ if text.contains("MIN(t.custid)") => {
                let rows = &self.tables.get(&table_in(text)?)?.rows;
                let end = |key: Option<&u64>| key.map_or(Value::Null, |key| (*key as i64).into());
                let ends = [end(rows.keys().next()), end(rows.keys().next_back())];
                Answer::rows([Column::number("MIN"), Column::number("MAX")], vec![ends])
            }
            _ if text.contains("COUNT(DISTINCT SUBSTR(ROWIDTOCHAR(t.ROWID), 7, 9))") => {
                let rows = &self.tables.get(&table_in(text)?)?.rows;
                let blocks: std::collections::BTreeSet<u64> = rows.values().map(|row| row.block).collect();
                numbers(["ROWS", "BLOCKS"], vec![[rows.len() as i64, blocks.len() as i64]])
            }
            _ if text.contains("SUBSTR(ROWIDTOCHAR(t.ROWID), 16) <> 'AAA'") => {
                let rows = &self.tables.get(&table_in(text)?)?.rows;
                let blocks: std::collections::BTreeSet<u64> = rows.values().map(|row| row.block).collect();
                numbers(["ROWS", "FOLLOWERS"], vec![[rows.len() as i64, (rows.len() - blocks.len()) as i64]])
            }
            _ if text.contains("ROWIDTOCHAR(t.ROWID)") => {
                let (first, beyond) = (number(0)? as u64, number(1)? as u64);
                let rows = &self.tables.get(&table_in(text)?)?.rows;
                let third = |row: &Row| match text.contains("LENGTHB") {
                    true => row.columns.iter().map(String::len).sum::<usize>() as i64,
                    false => i64::from(!row.columns.is_empty()),
                };
                let rows = rows
                    .range(first..beyond)
                    .map(|(key, row)| [Value::from(*key as i64), rowid(row.block).into(), third(row).into()]);
                let columns = [Column::number("KEY"), Column::text("ROWID"), Column::number("FILLED")];
                Answer::rows(columns, rows.collect())
            }
            _ if text.contains("t.custid IS NULL") => {
                let (lowest, beyond) = (number(0)? as u64, number(1)? as u64);
                let rows = &self.tables.get(&table_in(text)?)?.rows;
                let strange = rows.keys().filter(|key| **key < lowest || **key >= beyond).count();
                numbers(["N"], vec![[strange as i64]])
            }
            _ => return None,
        })
    }

    fn plan_of_explained(&self) -> Answer {
        let name = table_in(&self.explained).unwrap_or_default().to_uppercase();
        let (table, index) = match name.rsplit_once('.') {
            Some((_, table)) => (table.to_owned(), format!("I_{table}")),
            None => (name.clone(), format!("{name}_KEY")),
        };
        let own = |lines: &[(&str, &str, &str)]| -> Vec<(String, String, String)> {
            lines.iter().map(|(a, b, c)| ((*a).to_owned(), (*b).to_owned(), (*c).to_owned())).collect()
        };
        let lines = match self.explained.starts_with("UPDATE") {
            _ if !self.plan.is_empty() => self.plan.clone(),
            true => own(&[("UPDATE STATEMENT", "", ""), ("UPDATE", "", &table), ("INDEX", "RANGE SCAN", &index)]),
            false => own(&[
                ("SELECT STATEMENT", "", ""),
                ("SORT", "AGGREGATE", ""),
                ("TABLE ACCESS", "BY INDEX ROWID", &table),
                ("INDEX", "RANGE SCAN", &index),
            ]),
        };
        let text = |text: &String| if text.is_empty() { Value::Null } else { text.as_str().into() };
        let rows = lines.iter().map(|(operation, options, object)| [text(operation), text(options), text(object)]);
        Answer::rows(["OPERATION", "OPTIONS", "OBJECT"].map(Column::text), rows.collect())
    }
}

fn texts<const N: usize>(names: [&str; N], rows: Vec<[&str; N]>) -> Answer {
    Answer::rows(names.map(Column::text), rows.into_iter().map(|row| row.map(Value::from)).collect())
}

fn numbers<const N: usize>(names: [&str; N], rows: Vec<[i64; N]>) -> Answer {
    Answer::rows(names.map(Column::number), rows.into_iter().map(|row| row.map(Value::from)).collect())
}

/// The address of the only row of a block, as text.
fn rowid(block: u64) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits: String = (0..6).rev().map(|place| char::from(DIGITS[(block >> (6 * place)) as usize & 63])).collect();
    format!("AAAR3sAAE{digits}AAA")
}
