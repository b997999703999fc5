//! How large the tables are.

use super::descriptor::DataSet;
use super::session::{Access, Halt, Session};
use crate::data::{Shape, TableShape, index_name};
use crate::postgres::sql::{Sql, identifier};
use targets::TargetError;

/// Reads the sizes of the tables of the first `schemas` schemas, without touching a block.
///
/// # Errors
/// When a table is missing, or the server cannot be asked.
pub fn read(access: &Access<'_>, data: &DataSet, schemas: u32) -> Result<Shape, TargetError> {
    read_in(&Session::open(*access)?, data, schemas)
}

pub(super) fn read_in(session: &Session<'_>, data: &DataSet, schemas: u32) -> Result<Shape, TargetError> {
    let namespace = identifier(session.access().namespace);
    let qualified = |name: String| format!("{namespace}.{}", identifier(&name));
    let names = |name: fn(u32) -> String| -> Vec<String> { (0..schemas).map(|n| qualified(name(n))).collect() };
    let ask = "SELECT pg_relation_size(t.name::regclass), pg_relation_size(t.index::regclass) \
               FROM unnest($1::text[], $2::text[]) WITH ORDINALITY t(name, index, place) ORDER BY place";
    let values = (names(Sql::table_name), names(index_name));
    let rows = session.query("read the sizes of the tables", ask, &[&values.0, &values.1], Halt::NEVER)?;
    let pages = |bytes: i64| bytes.unsigned_abs() / u64::from(data.block_bytes);
    let tables =
        rows.iter().map(|row| TableShape { pages: pages(row.get(0)), index_pages: pages(row.get(1)) }).collect();
    Ok(Shape { tables })
}
