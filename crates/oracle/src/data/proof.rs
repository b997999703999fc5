//! Why rows do not lie as the SLOB method needs them on Oracle: one in each block, read one by one through the index.

use super::catalog::sql_of;
use std::collections::BTreeMap;

use super::{Access, Session};
use crate::driver::{Error, Row, ToDbValue};
use crate::sql::{self, Address, Layout, PlanLine, Sql, plan_fault};
use ::sql::data::{DataSet, Fault, Proven, SAMPLE_KEYS, refuse, wrong_ends};
use ::sql::{COLUMNS, ServerError, StatementKind};
use model::workload::mix64;
use targets::TargetError;

/// What is free in a block at least, so that no second row goes there.
const FREE_PERCENT: u32 = 99;
/// By whom SLOB's own tables are made.
const SLOBS_CURE: &str = "make the data again by SLOB's own `setup.sh`";

/// Proves how the tables of the first `schemas` schemas lie, in a session as the load's are.
///
/// # Errors
/// The reason and the cure if they lie otherwise; or why the server cannot be asked.
pub(crate) fn prove(access: &Access<'_>, data: &DataSet, schemas: u32) -> Result<Proven, TargetError> {
    let sql = &sql_of(*access, data.block_bytes);
    let session = Session::open(*access)?;
    let schemas = schemas.min(data.schemas);
    let (mut faults, mut rows, mut blocks) = (Vec::new(), 0, 0);
    let (mut notes, mut counts_continued) = (Vec::new(), true);
    for schema in 0..schemas {
        let mut found = Vec::new();
        if sql.layout() == Layout::Plimsoll {
            found.extend(shape(&session, data, schema, sql)?);
        }
        if found.is_empty() {
            found.extend(sample(&session, data, schema, sql, &mut counts_continued)?);
            found.extend(distinct_blocks(&session, data, schema, sql, (&mut rows, &mut blocks))?);
            found.extend(plans(&session, schema, sql, &mut notes)?);
        }
        faults.extend(found);
    }
    refuse(access, &faults)?;
    let facts = [
        ("layout.rows", rows.to_string()),
        ("layout.blocks", blocks.to_string()),
        ("layout.plan", plan_words(&notes)),
        ("layout.continued_rows", if counts_continued { "none" } else { "not known" }.to_owned()),
    ];
    let facts = BTreeMap::from(facts.map(|(name, value)| (name.to_owned(), value)));
    notes.dedup();
    Ok(Proven { facts, notes })
}

fn plan_words(notes: &[String]) -> String {
    if notes.is_empty() { "index range scan".to_owned() } else { "not known".to_owned() }
}

/// What only making the data again helps against.
fn beyond_repair(sql: &Sql, reason: String) -> Fault {
    match sql.layout() {
        Layout::Plimsoll => Fault::beyond_repair(reason),
        Layout::Slob => Fault::new(reason, SLOBS_CURE),
    }
}

/// Kind, columns, indexes and triggers of a table.
fn shape(session: &Session<'_>, data: &DataSet, schema: u32, sql: &Sql) -> Result<Vec<Fault>, TargetError> {
    let table = sql.table(schema);
    let doing = format!("look how {table} lies");
    let (owner, name) = (sql.owner(), table.rsplit('.').next().unwrap_or_default().to_uppercase());
    let named: [&dyn ToDbValue; 2] = [&owner, &name];
    let read = |row: &Row| {
        let text = |column: usize| Ok::<_, Error>(row.get::<Option<String>>(column)?.unwrap_or_default());
        Ok((row.get::<Option<u32>>(0)?, text(1)?, text(2)?, text(3)?, text(4)?))
    };
    let Some((free, compression, partitioned, organized, cluster)) =
        session.first(&doing, sql::SHAPE_OF, &named, read)?
    else {
        return Ok(vec![Fault::beyond_repair(format!("the table {table} is missing"))]);
    };
    let mut faults = Vec::new();
    let is_plain = free == Some(FREE_PERCENT)
        && compression != "ENABLED"
        && partitioned == "NO"
        && organized.is_empty()
        && cluster.is_empty();
    if !is_plain {
        faults.push(Fault::beyond_repair(format!("{table} is not stored as set-up made it")));
    }
    let columns: Option<(u32, u32)> =
        session.first(&doing, sql::COLUMNS_OF, &[&data.column_bytes, &owner, &name], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    if columns != Some((COLUMNS + 1, COLUMNS)) {
        faults.push(Fault::beyond_repair(format!("{table} has other columns than set-up gave it")));
    }
    let indexes = session.query(&doing, sql::INDEXES_OF, &named, |row| {
        let texts: [String; 5] = [row.get(0)?, row.get(1)?, row.get(3)?, row.get(4)?, row.get(5)?];
        Ok(texts)
    })?;
    let index = sql.index(schema).to_uppercase();
    match indexes.iter().find(|[name, ..]| *name == index) {
        Some([_, column, unique, status, visible])
            if column == "CUSTID" && unique == "UNIQUE" && status == "VALID" && visible == "VISIBLE" => {}
        Some(_) => faults.push(Fault::beyond_repair(format!("the index {index} of {table} is not as set-up made it"))),
        None => faults.push(Fault::beyond_repair(format!("the index {index} of {table} is missing"))),
    }
    if let Some([other, ..]) = indexes.iter().find(|[name, ..]| *name != index) {
        let reason = format!("{table} has another index, {other}, which updates would have to maintain");
        faults.push(Fault::new(reason, format!("DROP INDEX {other}")));
    }
    if let Some(trigger) = session.first::<String>(&doing, sql::TRIGGERS_OF, &named, |row| row.get(0))? {
        faults.push(Fault::new(format!("{table} has a trigger, {trigger}"), "drop the trigger"));
    }
    Ok(faults)
}

/// Looks at the ends and at some neighbours somewhere in the table: whether the keys are those that operations draw, each in a
/// block of its own and in no other, and with its columns filled. Whether rows go on in another block is asked as long as the views
/// are to be read that show it.
fn sample(
    session: &Session<'_>,
    data: &DataSet,
    schema: u32,
    sql: &Sql,
    counts_continued: &mut bool,
) -> Result<Option<Fault>, TargetError> {
    let table = sql.table(schema);
    let doing = format!("look at rows of {table}");
    let ends: Option<(Option<i64>, Option<i64>)> =
        session.first(&doing, &sql.ends(schema), &[], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let ends = ends.unwrap_or_default();
    let wanted = [0, data.scale_blocks - 1].map(|key| sql.custid(key));
    if ends != (Some(wanted[0] as i64), Some(wanted[1] as i64)) {
        return Ok(Some(beyond_repair(sql, wrong_ends(&table, ends, wanted))));
    }
    let keys = data.scale_blocks.min(SAMPLE_KEYS);
    // Always the same place, so that repeated proofs warm no more blocks than these.
    let first = mix64(data.seed ^ u64::from(schema)) % (data.scale_blocks - keys + 1);
    let (from, beyond) = (sql.custid(first), sql.custid(first + keys));
    let rows: Vec<(u64, String, u32)> = session
        .query(&doing, &sql.sample(schema), &[&from, &beyond], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    if rows.len() as u64 != keys || rows.iter().map(|(key, ..)| *key).ne(from..beyond) {
        let reason =
            format!("{} rows of {table} have keys from {from} to {} where {keys} belong", rows.len(), beyond - 1);
        return Ok(Some(beyond_repair(sql, reason)));
    }
    if let Some((key, ..)) = rows.iter().find(|(.., filled)| *filled == 0) {
        return Ok(Some(beyond_repair(sql, format!("the row of {table} with key {key} is not filled"))));
    }
    let blocks: Option<std::collections::BTreeSet<Address>> =
        rows.iter().map(|(_, rowid, _)| Address::of(rowid)).collect();
    Ok(match blocks {
        None => Some(Fault::new(format!("rows of {table} have addresses of another kind"), "use an ordinary table")),
        Some(blocks) if (blocks.len() as u64) < keys => {
            Some(beyond_repair(sql, format!("{keys} neighbours of {table} lie in {} blocks", blocks.len())))
        }
        Some(_) if *counts_continued => {
            // Read once more: to make a statement ready, the server reads rows of its own that may go on elsewhere.
            let reading = || {
                let read = session.query(&doing, &sql.sample(schema), &[&from, &beyond], |_| Ok(()));
                read.map(drop)
            };
            match continued_rows(session, reading)? {
                None => {
                    *counts_continued = false;
                    None
                }
                Some(0) => None,
                Some(some) => Some(beyond_repair(
                    sql,
                    format!("{some} of {keys} rows of {table} go on in another block, so reading one takes two"),
                )),
            }
        }
        Some(_) => None,
    })
}

/// How many rows that go on in another block this session reads meanwhile, where it may see that.
fn continued_rows(
    session: &Session<'_>,
    reading: impl FnOnce() -> Result<(), TargetError>,
) -> Result<Option<u64>, TargetError> {
    let count = || match session.first::<u64>("count continued rows", sql::CONTINUED_ROWS, &[], |row| row.get(0)) {
        Err(error) if ServerError::refusal_in(&error).is_some() => Ok(None),
        count => count,
    };
    let Some(before) = count()? else { return Ok(None) };
    reading()?;
    Ok(count()?.and_then(|after| after.checked_sub(before)))
}

/// Counts the blocks in which rows lie, from the index alone: as many as rows where each is the first of its block.
fn distinct_blocks(
    session: &Session<'_>,
    data: &DataSet,
    schema: u32,
    sql: &Sql,
    (rows, blocks): (&mut u64, &mut u64),
) -> Result<Option<Fault>, TargetError> {
    let table = sql.table(schema);
    let doing = format!("count the blocks of {table}");
    let count = |question: &str| -> Result<(u64, u64), TargetError> {
        let counted = session.first(&doing, question, &[], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(counted.unwrap_or_default())
    };
    let (there, lie_in) = match count(&sql.rows_and_followers(schema))? {
        (rows, 0) => (rows, rows),
        _ => count(&sql.rows_and_blocks(schema))?,
    };
    *rows += there;
    *blocks += lie_in;
    Ok(if there != data.scale_blocks {
        Some(beyond_repair(sql, format!("{table} has {there} rows instead of {}", data.scale_blocks)))
    } else if lie_in != there {
        Some(beyond_repair(sql, format!("the {there} rows of {table} lie in {lie_in} blocks: some share a block")))
    } else {
        None
    })
}

/// Asks how the server would execute operations. Who may not make use of the table of plans learns nothing, which is said.
fn plans(session: &Session<'_>, schema: u32, sql: &Sql, notes: &mut Vec<String>) -> Result<Option<Fault>, TargetError> {
    let table = sql.table(schema);
    let doing = format!("explain how {table} is read");
    let updates: &[StatementKind] = match sql.layout() {
        Layout::Plimsoll => &[StatementKind::UpdateLite, StatementKind::UpdateHeavy],
        // There may be no right to change them.
        Layout::Slob => &[],
    };
    for statement in sql.to_explain(schema, updates) {
        let explained = session.execute(&doing, &sql::explain(&statement), &[]);
        if let Err(error) = &explained
            && let Some((_, message)) = ServerError::refusal_in(error)
        {
            session.connected()?.rollback();
            notes.push(format!("how the server reads the tables is not known: it explains no plan ({message})"));
            return Ok(None);
        }
        explained?;
        let plan = session.query(&doing, sql::PLAN, &[], |row| {
            Ok(PlanLine { operation: row.get(0)?, options: row.get(1)?, object: row.get(2)? })
        })?;
        // The table of plans belongs to this transaction alone.
        session.connected()?.rollback();
        if let Some(other) = plan_fault(&plan, &sql.index(schema)) {
            let cure = "see which parameter of the database or the user changes plans (`optimizer_…`)";
            let reason = format!("the server would use {other} on {table}, not a range of its index");
            return Ok(Some(Fault::new(reason, cure)));
        }
    }
    Ok(None)
}
