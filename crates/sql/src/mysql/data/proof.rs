//! The proof that rows lie as the SLOB method needs them: one addressed row a leaf, scattered, read one by one through the index.
//!
//! It is made before every run. Data that do not lie so would still give numbers, but of something else; so a run on them is
//! refused, with the reason and the cure.

use std::collections::BTreeMap;

use mysql_async::Value;
use serde_json::Value as Json;

use super::{Access, Session};
use crate::data::streams::Halt;
use crate::data::{ALLOWED_PART, DataSet, Fault, SAMPLE_KEYS, TableId, TableKind, index_name, refuse, wrong_ends};
use crate::mysql::sql::{Keys, ROWS_OF_A_LEAF, quoted};
use crate::{ServerError, StatementKind};
use model::units::percent;
use model::workload::mix64;
use targets::TargetError;

/// Where leaves cannot be counted by themselves, a table has the pages above them and some in reserve.
const RESERVED_PART: u64 = 4;
const RESERVED_PAGES: u64 = 128;

/// What was proven of the tables that load will use.
#[derive(Debug, Clone, PartialEq)]
pub struct Proof {
    /// Rows that operations address, of all of them.
    pub rows: u64,
    /// Leaves of all of them; unknown where the user may not read `mysql.innodb_index_stats`.
    pub leaves: Option<u64>,
    /// What the user should know, such as tables that grew a little.
    pub notes: Vec<String>,
}

impl Proof {
    /// For the record.
    pub fn facts(&self) -> BTreeMap<String, String> {
        let mut facts = BTreeMap::from([
            ("layout.rows".to_owned(), self.rows.to_string()),
            ("layout.plan".to_owned(), "index range scan".to_owned()),
        ]);
        if let Some(leaves) = self.leaves {
            facts.insert("layout.pages".to_owned(), leaves.to_string());
        }
        facts
    }
}

/// Proves how the tables of the first `schemas` schemas lie, in a session as the load's are.
///
/// # Errors
/// The reason and the cure if they lie otherwise; or why the server cannot be asked.
pub(crate) fn prove(access: &Access<'_>, data: &DataSet, schemas: u32) -> Result<Proof, TargetError> {
    let mut looking = Session::open(*access)?;
    let mut loading = Session::open_as_load(*access)?;
    let schemas = schemas.min(data.schemas);
    let mut proof = Proof { rows: data.scale_blocks * u64::from(schemas), leaves: Some(0), notes: Vec::new() };
    let mut faults = Vec::new();
    for schema in 0..schemas {
        let table = access.sql(data.block_bytes).table(schema);
        let mut found = shape(&mut looking, data, schema, &table)?;
        if found.is_empty() {
            found.extend(leaves(&mut looking, data, schema, &table, &mut proof)?);
        }
        if found.is_empty() {
            found.extend(sample(&mut loading, data, schema, &table)?);
            found.extend(plans(&mut loading, data, schema, &table)?);
        }
        faults.extend(found);
    }
    if proof.leaves.is_none() {
        proof.notes.push(
            "leaves are not counted, only pages: the user may not read them (`GRANT SELECT ON mysql.innodb_index_stats`)"
                .to_owned(),
        );
    }
    let grown = proof.leaves.map_or(0, |leaves| leaves.saturating_sub(proof.rows));
    if grown > 0 {
        let share = percent(grown as f64 / proof.rows as f64);
        proof.notes.push(format!("the tables have {grown} leaves more than addressed rows ({share}%)"));
    }
    refuse(access, &faults)?;
    Ok(proof)
}

/// Has the server count the leaves of a table and learn its shape.
pub(super) fn analyze(session: &mut Session<'_>, table: &str, halt: Halt<'_>) -> Result<(), TargetError> {
    let doing = format!("analyze {table}");
    let said: Vec<(String, String, String, String)> =
        session.query(&doing, &format!("ANALYZE NO_WRITE_TO_BINLOG TABLE {table}"), (), halt)?;
    match said.iter().find(|(_, _, kind, _)| kind.eq_ignore_ascii_case("error")) {
        None => Ok(()),
        Some((_, _, _, why)) => {
            let what = format!("`{}` cannot {doing}: {why}", session.access().node_name());
            Err(session.access().unfit(what, "look into the server's own log"))
        }
    }
}

/// Kind, columns, indexes and triggers of a table.
fn shape(session: &mut Session<'_>, data: &DataSet, schema: u32, table: &str) -> Result<Vec<Fault>, TargetError> {
    let database = session.access().namespace;
    let name = TableId { kind: TableKind::Rows, schema }.name();
    let doing = format!("look how {table} lies");
    let ask = "SELECT engine, row_format, create_options FROM information_schema.tables \
               WHERE table_schema = ? AND table_name = ?";
    let there: Option<(Option<String>, Option<String>, Option<String>)> =
        session.first(&doing, ask, (database, &name))?;
    let Some((engine, format, options)) = there else {
        return Ok(vec![Fault::beyond_repair(format!("the table {table} is missing"))]);
    };
    let mut faults = Vec::new();
    if engine.as_deref() != Some("InnoDB") {
        faults.push(Fault::beyond_repair(format!("{table} is not a table of InnoDB")));
    }
    let options = options.unwrap_or_default().to_ascii_lowercase();
    if format.as_deref() != Some("Dynamic") || ["compress", "encrypt"].iter().any(|word| options.contains(word)) {
        faults.push(Fault::beyond_repair(format!("{table} is not stored as set-up made it")));
    }
    let ask = "SELECT COUNT(*), CAST(COALESCE(SUM(column_type = ?), 0) AS UNSIGNED) FROM information_schema.columns \
               WHERE table_schema = ? AND table_name = ?";
    let column = format!("binary({})", data.column_bytes);
    let columns: Option<(u64, u64)> = session.first(&doing, ask, (column, database, &name))?;
    let filling = u64::from(crate::COLUMNS);
    if columns != Some((filling + 2, filling)) {
        faults.push(Fault::beyond_repair(format!("{table} has other columns than set-up gave it")));
    }
    let ask = "SELECT index_name, column_name, non_unique FROM information_schema.statistics \
               WHERE table_schema = ? AND table_name = ? ORDER BY index_name, seq_in_index";
    let mut indexes: Vec<(String, String, u64)> = session.query(&doing, ask, (database, &name), Halt::NEVER)?;
    for (index, column) in [("PRIMARY".to_owned(), "place"), (index_name(schema), "custid")] {
        let found = indexes.iter().position(|found| *found == (index.clone(), column.to_owned(), 0));
        match found {
            Some(at) => drop(indexes.remove(at)),
            None => faults.push(Fault::beyond_repair(format!("the index {} of {table} is missing", quoted(&index)))),
        }
    }
    if let Some((other, ..)) = indexes.first() {
        let reason = format!("{table} has another index, {}, which updates would have to maintain", quoted(other));
        faults.push(Fault::new(reason, format!("ALTER TABLE {table} DROP INDEX {}", quoted(other))));
    }
    let ask =
        "SELECT trigger_name FROM information_schema.triggers WHERE event_object_schema = ? AND event_object_table = ?";
    if let Some(trigger) = session.first::<String>(&doing, ask, (database, &name))? {
        faults.push(Fault::new(format!("{table} has a trigger, {}", quoted(&trigger)), "drop the trigger"));
    }
    Ok(faults)
}

/// Counts leaves, as they are now.
fn leaves(
    session: &mut Session<'_>,
    data: &DataSet,
    schema: u32,
    table: &str,
    proof: &mut Proof,
) -> Result<Option<Fault>, TargetError> {
    let database = session.access().namespace;
    let name = TableId { kind: TableKind::Rows, schema }.name();
    if let Err(error) = analyze(session, table, Halt::NEVER) {
        let Some((_, message)) = ServerError::refusal_in(&error) else { return Err(error) };
        proof.notes.push(format!("{table} was not analyzed, so its leaves are those of an earlier time: {message}"));
    }
    let doing = format!("count the leaves of {table}");
    let ask = "SELECT stat_value FROM mysql.innodb_index_stats WHERE database_name = ? AND table_name = ? \
               AND index_name = 'PRIMARY' AND stat_name = 'n_leaf_pages'";
    let wanted = data.scale_blocks;
    let counted = match session.first::<u64>(&doing, ask, (database, &name)) {
        Err(error) if ServerError::refusal_in(&error).is_some() => None,
        counted => counted?,
    };
    proof.leaves = proof.leaves.zip(counted).map(|(sum, leaves)| sum + leaves);
    let (pages, most) = match counted {
        Some(leaves) => (leaves, wanted + (wanted / ALLOWED_PART).max(2)),
        None => {
            let ask = "SELECT CAST(data_length AS UNSIGNED) FROM information_schema.tables \
                       WHERE table_schema = ? AND table_name = ?";
            let bytes: Option<u64> = session.first(&doing, ask, (database, &name))?;
            (bytes.unwrap_or(0) / u64::from(data.block_bytes), wanted + wanted / RESERVED_PART + RESERVED_PAGES)
        }
    };
    Ok(if pages < wanted {
        Some(Fault::beyond_repair(format!("{table} has {pages} leaves for {wanted} addressed rows: some share a leaf")))
    } else if pages > most {
        let reason = format!("{table} has grown to {pages} leaves for {wanted} addressed rows");
        Some(Fault::beyond_repair(reason))
    } else {
        None
    })
}

/// Looks at the ends and at some neighbours somewhere in the table: whether the keys are those that operations draw, and
/// whether each is where set-up put it.
fn sample(session: &mut Session<'_>, data: &DataSet, schema: u32, table: &str) -> Result<Option<Fault>, TargetError> {
    let doing = format!("look at rows of {table}");
    let ends: Option<(Option<i64>, Option<i64>)> =
        session.first(&doing, &format!("SELECT MIN(custid), MAX(custid) FROM {table}"), ())?;
    let (ends, last) = (ends.unwrap_or_default(), data.scale_blocks * ROWS_OF_A_LEAF - 1);
    if ends != (Some(0), Some(last as i64)) {
        return Ok(Some(Fault::beyond_repair(wrong_ends(table, ends, [0, last]))));
    }
    let keys = data.scale_blocks.min(SAMPLE_KEYS);
    // Always the same place, so that repeated proofs warm no more leaves than one.
    let first = mix64(data.seed ^ u64::from(schema)) % (data.scale_blocks - keys + 1);
    let ask = format!(
        "SELECT custid, place, c2 IS NOT NULL FROM {table} FORCE INDEX ({}) WHERE custid >= ? AND custid < ? ORDER BY custid",
        quoted(&index_name(schema))
    );
    let rows: Vec<(u64, i64, bool)> = session.query(&doing, &ask, (first, first + keys), Halt::NEVER)?;
    let permutation = data.permutation(schema);
    let is_right =
        |(key, place, filled): &(u64, i64, bool)| *place == (ROWS_OF_A_LEAF * permutation.map(*key)) as i64 && *filled;
    Ok(if rows.len() as u64 != keys {
        let reason = format!(
            "{} rows of {table} have keys from {first} to {} where {keys} belong",
            rows.len(),
            first + keys - 1
        );
        Some(Fault::beyond_repair(reason))
    } else {
        let wrong = rows.iter().find(|row| !is_right(row));
        wrong.map(|(key, place, _)| {
            Fault::beyond_repair(format!(
                "the row of {table} with key {key} lies at place {place}, where set-up did not put it"
            ))
        })
    })
}

/// Asks how the server would execute operations.
fn plans(session: &mut Session<'_>, data: &DataSet, schema: u32, table: &str) -> Result<Option<Fault>, TargetError> {
    let sql = session.access().sql(data.block_bytes);
    let doing = format!("explain how {table} is read");
    let filling = [const { Value::Bytes(Vec::new()) }; 2];
    for (keys, values) in [(Keys::Range, vec![Value::Int(0), Value::Int(64)]), (Keys::One, vec![Value::Int(0)])] {
        let update: Vec<Value> = filling.iter().cloned().chain(values.clone()).collect();
        let statements =
            [(sql.read(schema, keys), values), (sql.update(StatementKind::UpdateLite, schema, keys), update)];
        for (statement, values) in statements {
            let answer: Option<String> = session.first(&doing, &format!("EXPLAIN FORMAT=JSON {statement}"), values)?;
            let plan = read_plan(&answer.unwrap_or_default());
            if let Some(other) = other_than_the_index(&plan, &index_name(schema), keys) {
                let cure = "see which setting of the server or the user changes plans (`optimizer_switch`)";
                return Ok(Some(Fault::new(
                    format!("the server would use {other} on {table}, not a range of its index"),
                    cure,
                )));
            }
        }
    }
    Ok(None)
}

/// MariaDB leaves a backslash in a name as it is, which no text of JSON has.
fn read_plan(text: &str) -> Json {
    let read = serde_json::from_str(text).or_else(|_| serde_json::from_str(&text.replace('\\', "\\\\")));
    read.unwrap_or_default()
}

/// What a plan does instead of one range scan of this index that fetches each row, or where there is one key, of fetching its
/// row through the index. MySQL and MariaDB nest the table differently, and name what they do alike; an update by one key is a
/// range to both.
fn other_than_the_index(plan: &Json, index: &str, keys: Keys) -> Option<String> {
    let mut tables = Vec::new();
    collect(plan, &mut tables);
    let table = match tables.as_slice() {
        [table] => table,
        [] => return Some("a plan that cannot be read".to_owned()),
        several => return Some(format!("{} tables", several.len())),
    };
    let access = table["access_type"].as_str().unwrap_or("nothing known");
    let key = table["key"].as_str().unwrap_or("no index");
    if !(access == "range" || access == "const" && keys == Keys::One) || key != index {
        return Some(format!("`{access}` on {key}"));
    }
    if ["using_index", "using_MRR", "mrr_type", "rowid_filter"]
        .iter()
        .any(|word| !table[*word].is_null() && table[*word] != Json::Bool(false))
    {
        return Some("the index alone, or rows in another order,".to_owned());
    }
    None
}

/// Objects that read a table.
fn collect<'a>(plan: &'a Json, tables: &mut Vec<&'a Json>) {
    match plan {
        Json::Object(fields) if fields.contains_key("table_name") => tables.push(plan),
        Json::Object(fields) => fields.values().for_each(|inner| collect(inner, tables)),
        Json::Array(all) => all.iter().for_each(|inner| collect(inner, tables)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_range_of_the_index_that_fetches_rows_is_the_plan() {
        let table = |access: &str, key: &str| json!({ "table_name": "slob_1", "access_type": access, "key": key });
        let mysql = |table: Json| json!({ "query_block": { "select_id": 1, "table": table } });
        let mariadb = |table: Json| json!({ "query_block": { "select_id": 1, "nested_loop": [{ "table": table }] } });
        let other = |plan: Json| other_than_the_index(&plan, "slob_1_key", Keys::Range);
        for plan in [mysql(table("range", "slob_1_key")), mariadb(table("range", "slob_1_key"))] {
            assert_eq!(other(plan), None);
        }
        assert_eq!(other(mysql(table("range", "PRIMARY"))).as_deref(), Some("`range` on PRIMARY"));
        assert_eq!(other(mariadb(table("ALL", ""))).as_deref(), Some("`ALL` on "));
        let mut covered = table("range", "slob_1_key");
        covered["using_index"] = json!(true);
        assert_eq!(other(mysql(covered)).as_deref(), Some("the index alone, or rows in another order,"));
        assert_eq!(other(json!({ "query_block": {} })).as_deref(), Some("a plan that cannot be read"));
        let backslash =
            r#"{ "table": { "table_name": "slob_1", "access_type": "range", "key": "slob_1_key", "rows": "`a\ b`" } }"#;
        assert_eq!(other(read_plan(backslash)), None);
        let of_one = |table: Json| other_than_the_index(&mysql(table), "slob_1_key", Keys::One);
        assert_eq!(of_one(table("const", "slob_1_key")), None);
        assert_eq!(of_one(table("range", "slob_1_key")), None);
        assert_eq!(of_one(table("const", "PRIMARY")).as_deref(), Some("`const` on PRIMARY"));
        assert_eq!(other(mariadb(table("const", "slob_1_key"))).as_deref(), Some("`const` on slob_1_key"));
    }
}
