//! How rows lie in their tables.

use tokio_postgres::Row;

use super::Proof;
use crate::data::{ALLOWED_PART, Fault, SAMPLE_KEYS, index_name, wrong_ends};
use crate::postgres::data::descriptor::DataSet;
use crate::postgres::data::session::{Halt, Session};
use crate::postgres::sql::Sql;
use model::units::percent;
use model::workload::mix64;
use targets::TargetError;

/// Largest correlation of keys and blocks that counts as none.
const MAX_CORRELATION: f64 = 0.05;
/// Smallest table whose correlation says anything.
const TELLING_ROWS: u64 = 1000;
/// Rows that the server learned the correlation from, at most, when set-up had it do so.
const SAMPLED_ROWS: u64 = 9000;
/// How many standard deviations from 0 chance may put a correlation: with thousands of tables none must be refused for it.
const CHANCE_DEVIATIONS: f64 = 5.0;
/// The share of rows by which the server's own estimate may be off.
const ESTIMATE_PART: u64 = 20;

/// What the catalogues say of one table and its index. Views may lack a row: then it is null.
const ASK: &str = "SELECT c.oid IS NOT NULL AND c.relkind = 'r', \
    pg_relation_size(c.oid), c.reltuples, coalesce(pg_relation_size(nullif(c.reltoastrelid, 0)), 0), \
    i.indexrelid IS NOT NULL AND i.indisvalid AND i.indisunique AND i.indkey::text = '1', \
    pg_relation_size(i.indexrelid), \
    (SELECT min(other.indexrelid::regclass::text) FROM pg_index other \
     WHERE other.indrelid = c.oid AND other.indexrelid IS DISTINCT FROM i.indexrelid), \
    (SELECT min(tgname::text) FROM pg_trigger WHERE tgrelid = c.oid), \
    (SELECT min(attname::text) FROM pg_attribute WHERE attrelid = c.oid AND attlen = -1 AND attnum > 0 \
     AND NOT attisdropped AND attstorage <> 'p'), \
    s.correlation, c.reltuples >= 0 AND c.relpages > 0 \
    FROM unnest($2::text[], $3::text[]) WITH ORDINALITY t(name, index, place) \
    JOIN pg_namespace n ON n.nspname = $1 \
    LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.name \
    LEFT JOIN pg_class ic ON ic.relnamespace = n.oid AND ic.relname = t.index \
    LEFT JOIN pg_index i ON i.indexrelid = ic.oid AND i.indrelid = c.oid \
    LEFT JOIN pg_stats s ON s.schemaname = n.nspname AND s.tablename = t.name AND s.attname = 'custid' ORDER BY t.place";

/// What [`ASK`] reported.
struct Reported {
    is_table: bool,
    pages: u64,
    estimated_rows: u64,
    toast_bytes: u64,
    has_index: bool,
    index_pages: u64,
    other_index: Option<String>,
    trigger: Option<String>,
    not_plain: Option<String>,
    correlation: Option<f64>,
    was_vacuumed: bool,
}

impl Reported {
    fn of(row: &Row, block_bytes: u64) -> Self {
        let bytes = |column: usize| row.get::<_, Option<i64>>(column).unwrap_or(0).unsigned_abs();
        let yes = |column: usize| row.get::<_, Option<bool>>(column) == Some(true);
        Self {
            is_table: yes(0),
            pages: bytes(1) / block_bytes,
            estimated_rows: row.get::<_, Option<f32>>(2).unwrap_or(0.0) as u64,
            toast_bytes: bytes(3),
            has_index: yes(4),
            index_pages: bytes(5) / block_bytes,
            other_index: row.get(6),
            trigger: row.get(7),
            not_plain: row.get(8),
            correlation: row.get::<_, Option<f32>>(9).map(f64::from),
            was_vacuumed: yes(10),
        }
    }
}

/// Looks at every table of the load, and sums up.
pub(super) fn prove(session: &Session<'_>, data: &DataSet, schemas: u32) -> Result<(Proof, Vec<Fault>), TargetError> {
    let names: Vec<String> = (0..schemas).map(Sql::table_name).collect();
    let indexes: Vec<String> = (0..schemas).map(index_name).collect();
    let doing = "look how the data is stored";
    let rows = session.query(doing, ASK, &[&session.access().namespace, &names, &indexes], Halt::NEVER)?;
    let reported: Vec<Reported> = rows.iter().map(|row| Reported::of(row, data.block_bytes.into())).collect();
    let mut proof = Proof {
        rows: data.scale_blocks * u64::from(schemas),
        pages: reported.iter().map(|reported| reported.pages).sum(),
        index_pages: reported.iter().map(|reported| reported.index_pages).sum(),
        correlation: None,
        notes: Vec::new(),
    };
    let mut faults = Vec::new();
    for (schema, reported) in (0..).zip(&reported) {
        let table = session.access().sql(data.block_bytes).table(schema);
        let found = faults_of(&table, reported, data.scale_blocks);
        if found.is_empty() {
            faults.extend(sample(session, data, schema, &table)?);
        }
        faults.extend(found);
        if data.scale_blocks >= TELLING_ROWS
            && let Some(correlation) = reported.correlation
            && proof.correlation.is_none_or(|most| correlation.abs() > most.abs())
        {
            proof.correlation = Some(correlation);
        }
    }
    let grown = proof.pages.saturating_sub(proof.rows);
    if grown > 0 {
        let share = percent(grown as f64 / proof.rows as f64);
        proof.notes.push(format!("the tables have {grown} blocks more than rows ({share}%)"));
    }
    Ok((proof, faults))
}

fn faults_of(table: &str, reported: &Reported, scale: u64) -> Vec<Fault> {
    if !reported.is_table {
        return vec![Fault::beyond_repair(format!("the table {table} is missing"))];
    }
    let mut faults = Vec::new();
    if !reported.has_index {
        faults.push(Fault::beyond_repair(format!("the index of {table} is missing or not valid")));
    }
    if reported.pages < scale {
        faults.push(Fault::beyond_repair(format!(
            "{table} has {} blocks for {scale} rows: some share a block",
            reported.pages
        )));
    }
    if reported.pages > scale + (scale / ALLOWED_PART).max(1) {
        let cure = format!("execute VACUUM FULL {table}, or make the data again: `plimsoll slob setup --replace`");
        let grown = percent((reported.pages - scale) as f64 / scale as f64);
        faults.push(Fault::new(
            format!("{table} has grown by {grown}% to {} blocks for {scale} rows", reported.pages),
            cure,
        ));
    }
    if reported.toast_bytes > 0 {
        faults.push(Fault::beyond_repair(format!("rows of {table} lie partly in its TOAST table")));
    }
    if let Some(column) = &reported.not_plain {
        faults.push(Fault::beyond_repair(format!(
            "the column {column} of {table} is not stored plain, so it may be compressed"
        )));
    }
    if let Some(index) = &reported.other_index {
        let cure = format!("DROP INDEX {index}");
        faults.push(Fault::new(
            format!("{table} has another index, {index}, which updates would have to maintain"),
            cure,
        ));
    }
    if let Some(trigger) = &reported.trigger {
        faults.push(Fault::new(format!("{table} has a trigger, `{trigger}`"), "drop the trigger"));
    }
    let analyze = || format!("execute VACUUM (ANALYZE) {table}");
    if !reported.was_vacuumed {
        faults.push(Fault::new(format!("{table} was never vacuumed, so reading it would write"), analyze()));
    } else if reported.estimated_rows.abs_diff(scale) > (scale / ESTIMATE_PART).max(1) {
        let reason = format!("the server estimates {} rows in {table} where {scale} belong", reported.estimated_rows);
        faults.push(Fault::new(reason, format!("{}; if that does not help, see `plimsoll slob verify`", analyze())));
    }
    match reported.correlation {
        _ if scale < TELLING_ROWS => {}
        None => faults.push(Fault::new(format!("the server has no statistics of {table}"), analyze())),
        Some(correlation) if correlation.abs() > max_correlation(scale) => {
            let reason = format!(
                "keys and blocks of {table} are correlated ({correlation:.2} where 0 belongs): neighbours lie side by side"
            );
            faults.push(Fault::beyond_repair(reason));
        }
        Some(_) => {}
    }
    faults
}

/// The largest correlation that rows scattered by chance may be seen with: it is estimated from a sample.
fn max_correlation(rows: u64) -> f64 {
    MAX_CORRELATION.max(CHANCE_DEVIATIONS / (rows.min(SAMPLED_ROWS) as f64).sqrt())
}

/// Looks at the ends and at some neighbours somewhere in the table: whether the keys are those that operations draw, and
/// whether each has a block of its own.
fn sample(session: &Session<'_>, data: &DataSet, schema: u32, table: &str) -> Result<Option<Fault>, TargetError> {
    let keys = data.scale_blocks.min(SAMPLE_KEYS);
    let last = data.scale_blocks - keys;
    // Always the same place, so that repeated proofs warm no more blocks than one.
    let first = mix64(data.seed ^ u64::from(schema)) % (last + 1);
    let ask = format!(
        "SELECT (SELECT min(custid) FROM {table}), (SELECT max(custid) FROM {table}), count(c2), \
         count(DISTINCT (ctid::text::point)[0]) FROM {table} WHERE custid >= $1 AND custid < $2"
    );
    let bounds = [first as i64, (first + keys) as i64];
    let doing = format!("look at rows of {table}");
    let row = session.query_one(&doing, &ask, &[&bounds[0], &bounds[1]])?;
    let (lowest, highest): (Option<i64>, Option<i64>) = (row.get(0), row.get(1));
    let (found, blocks): (i64, i64) = (row.get(2), row.get(3));
    if (lowest, highest) != (Some(0), Some(data.scale_blocks as i64 - 1)) {
        let wanted = [0, data.scale_blocks - 1];
        return Ok(Some(Fault::beyond_repair(wrong_ends(table, (lowest, highest), wanted))));
    }
    let reason = if found.unsigned_abs() != keys {
        format!("{found} rows of {table} have keys from {first} to {} where {keys} belong", first + keys - 1)
    } else if blocks != found {
        format!("{found} neighbouring rows of {table} lie in {blocks} blocks")
    } else {
        return Ok(None);
    };
    Ok(Some(Fault::beyond_repair(reason)))
}

#[cfg(test)]
mod tests {
    use super::max_correlation;

    #[test]
    fn small_tables_may_be_correlated_by_chance_and_large_ones_may_not() {
        assert!((0.15..0.17).contains(&max_correlation(1000)));
        assert!((0.05..0.053).contains(&max_correlation(1 << 30)));
    }
}
