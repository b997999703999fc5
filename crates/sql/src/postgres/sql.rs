//! The SQL that everything about PostgreSQL shares: names of tables, their shape, and what operations are there.
//!
//! A schema of SLOB's is a table of one row a block. Each row has a key and nineteen columns of filling, as SLOB's has, but
//! narrower: about an eighth of a block, so that several versions of a row fit into its block and updates stay there (HOT).
//! The rest of the block is kept free by the fill factor, which alone would not stop a second row of less than a
//! twentieth of a block from moving in. Columns are stored plain: neither compressed nor moved to a TOAST table.

use std::fmt::Write;

use crate::data::{index_name, procedure_name};
use crate::{COLUMNS, FILLING_PLACES, FILLING_STEP, StatementKind};

/// The first filling column, `c2`; the last is `c20`.
pub(super) const FIRST_COLUMN: u32 = 2;
/// Bytes of each in a block of 8 KiB; other blocks in proportion.
const COLUMN_BYTES: u32 = 48;
const DEFAULT_BLOCK_BYTES: u32 = 8192;
/// Settings of a session that executes operations: an index range scan that visits its blocks one by one, as SLOB does.
/// Each is a setting that every role may change.
pub const SESSION_SETTINGS: &[(&str, &str)] = &[
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("enable_indexonlyscan", "off"),
    ("jit", "off"),
    ("max_parallel_workers_per_gather", "0"),
    ("plan_cache_mode", "force_generic_plan"),
    ("synchronize_seqscans", "off"),
];

/// `name` as an identifier, whatever stands in it.
pub fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// `text` as a literal, whatever stands in it and whatever `standard_conforming_strings` says.
pub fn literal(text: &str) -> String {
    if text.contains('\\') {
        format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

/// Names and statements of the data in one schema of the database.
#[derive(Debug, Clone)]
pub struct Sql {
    schema: String,
    column_bytes: u32,
}

impl Sql {
    /// For data in the schema of this name (not quoted), on a server with blocks of this size.
    pub fn new(schema: &str, block_bytes: u32) -> Self {
        let column_bytes = (COLUMN_BYTES * block_bytes / DEFAULT_BLOCK_BYTES).max(4);
        Self { schema: identifier(schema), column_bytes }
    }

    /// The schema, quoted.
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// Bytes of each filling column.
    pub fn column_bytes(&self) -> u32 {
        self.column_bytes
    }

    /// The bare name of the table of SLOB's schema number `schema`, from 0.
    pub fn table_name(schema: u32) -> String {
        format!("slob_{}", schema + 1)
    }

    /// The bare name of its scan table.
    pub fn scan_table_name(schema: u32) -> String {
        format!("scan_{}", schema + 1)
    }

    /// A bare name, qualified and quoted.
    pub fn qualified(&self, name: &str) -> String {
        format!("{}.{}", self.schema, identifier(name))
    }

    /// The table of SLOB's schema number `schema`, from 0, qualified and quoted.
    pub fn table(&self, schema: u32) -> String {
        self.qualified(&Self::table_name(schema))
    }

    /// Its scan table.
    pub fn scan_table(&self, schema: u32) -> String {
        self.qualified(&Self::scan_table_name(schema))
    }

    /// The procedure that executes batches of it.
    pub fn procedure(&self, schema: u32) -> String {
        self.qualified(&procedure_name(schema))
    }

    /// Makes a table, empty and without an index: `table` is qualified and quoted.
    pub fn create_table(&self, table: &str) -> String {
        let mut statement = format!("CREATE TABLE {table} (custid bigint NOT NULL");
        for column in columns() {
            let _ = write!(statement, ", {column} bytea NOT NULL");
        }
        statement.push_str(") WITH (fillfactor = 10); ALTER TABLE ");
        statement.push_str(table);
        for (place, column) in columns().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            let _ = write!(statement, "{comma} ALTER COLUMN {column} SET STORAGE PLAIN");
        }
        statement
    }

    /// Makes the index on the keys of a table.
    pub fn create_index(&self, schema: u32) -> String {
        format!("CREATE UNIQUE INDEX {} ON {} (custid)", identifier(&index_name(schema)), self.table(schema))
    }

    /// Takes rows in PostgreSQL's binary form: the key, then the columns.
    pub fn copy_in(table: &str) -> String {
        let columns: Vec<String> = columns().collect();
        format!("COPY {table} (custid, {}) FROM STDIN (FORMAT binary)", columns.join(", "))
    }

    /// Reads the keys from `$1` to before `$2`; gives how many rows there were.
    pub fn read(&self, schema: u32) -> String {
        format!("SELECT count(c2) FROM {} WHERE custid >= $1 AND custid < $2", self.table(schema))
    }

    /// Changes the first and the last column of the keys from `$1` to before `$2`, to parts of `$3`.
    pub fn update_lite(&self, schema: u32) -> String {
        self.update(schema, [FIRST_COLUMN, FIRST_COLUMN + COLUMNS - 1].into_iter(), "$1", "$2", "$3::bytea", "1")
    }

    /// Changes every column of the keys from `$1` to before `$2`, to parts of `$3`.
    pub fn update_heavy(&self, schema: u32) -> String {
        self.update(schema, FIRST_COLUMN..FIRST_COLUMN + COLUMNS, "$1", "$2", "$3::bytea", "1")
    }

    fn update(
        &self,
        schema: u32,
        columns: impl Iterator<Item = u32>,
        first: &str,
        beyond: &str,
        filling: &str,
        at: &str,
    ) -> String {
        let width = self.column_bytes;
        let set: Vec<String> = (0..)
            .zip(columns)
            .map(|(place, column)| format!("c{column} = substr({filling}, {at} + {}, {width})", place * width))
            .collect();
        let (table, set) = (self.table(schema), set.join(", "));
        format!("UPDATE {table} SET {set} WHERE custid >= {first} AND custid < {beyond}")
    }

    /// Reads the whole scan table; gives how many rows there were.
    pub fn scan(&self, schema: u32) -> String {
        format!("SELECT count(c2) FROM {}", self.scan_table(schema))
    }

    /// Makes the procedure that executes operations on the table of one schema, or where `hot` says so on that of the first,
    /// one after the other.
    ///
    /// It is a procedure, not a function, so that each update can commit by itself. Each operation's time counts from the end
    /// of the one before, so that none of the time between is lost.
    pub fn create_procedure(&self, schema: u32) -> String {
        let (procedure, lite, heavy) = (self.procedure(schema), 0, 1);
        let reads = |schema| {
            let table = self.table(schema);
            format!("SELECT count(c2) INTO n FROM {table} WHERE custid >= first_key AND custid < beyond_key;")
        };
        let scans = |schema| format!("SELECT count(c2) INTO n FROM {};", self.scan_table(schema));
        let updates = |schema, how| {
            let (first, last) = (FIRST_COLUMN, FIRST_COLUMN + COLUMNS - 1);
            let columns: Vec<u32> = if how == lite { vec![first, last] } else { (first..=last).collect() };
            self.update(schema, columns.into_iter(), "first_key", "beyond_key", "filling", "at_byte") + ";"
        };
        let either = |hot: String, home: String| match schema {
            0 => home,
            _ => format!("IF hot[i] THEN {hot} ELSE {home} END IF;"),
        };
        // Scan tables may not be there; a statement is only looked at when it is executed.
        let body = format!(
            "DECLARE
  first_key bigint;
  beyond_key bigint;
  at_byte integer;
  n bigint;
BEGIN
  committing := array_fill('-infinity'::timestamptz, ARRAY[cardinality(kinds)]);
  ended := committing;
  touched := array_fill(0::bigint, ARRAY[cardinality(kinds)]);
  began := clock_timestamp();
  FOR i IN 1..cardinality(kinds) LOOP
    first_key := first_keys[i];
    beyond_key := first_key + keys[i];
    IF kinds[i] = {read} THEN
      {reads}
    ELSIF kinds[i] = {scan} THEN
      {scans}
    ELSE
      at_byte := 1 + (i % {FILLING_PLACES}) * {FILLING_STEP};
      IF kinds[i] = {update_lite} THEN
        {updates_lite}
      ELSE
        {updates_heavy}
      END IF;
      GET DIAGNOSTICS n = ROW_COUNT;
      committing[i] := clock_timestamp();
      COMMIT;
    END IF;
    touched[i] := n;
    ended[i] := clock_timestamp();
  END LOOP;
END",
            read = StatementKind::Read as i16,
            scan = StatementKind::Scan as i16,
            update_lite = StatementKind::UpdateLite as i16,
            reads = either(reads(0), reads(schema)),
            scans = either(scans(0), scans(schema)),
            updates_lite = either(updates(0, lite), updates(schema, lite)),
            updates_heavy = either(updates(0, heavy), updates(schema, heavy)),
        );
        // A literal, since the schema's name may hold whatever would end a dollar quote.
        format!(
            "CREATE OR REPLACE PROCEDURE {procedure}(kinds smallint[], hot boolean[], first_keys bigint[], keys integer[], \
             filling bytea, INOUT began timestamptz, INOUT committing timestamptz[], INOUT ended timestamptz[], \
             INOUT touched bigint[]) LANGUAGE plpgsql AS {}",
            literal(&body)
        )
    }

    /// Has a batch executed: `$1` kinds ([`StatementKind`]), `$2` whether on the first schema instead, `$3` first keys, `$4` how
    /// many keys, `$5` [`batch_filling_bytes`](crate::batch_filling_bytes) of filling. Gives when it began, and for each
    /// operation when its commit began (`-infinity` without one), when it ended, and how many rows it touched.
    pub fn call_procedure(&self, schema: u32) -> String {
        format!("CALL {}($1, $2, $3, $4, $5, NULL, NULL, NULL, NULL)", self.procedure(schema))
    }
}

fn columns() -> impl Iterator<Item = String> {
    (FIRST_COLUMN..FIRST_COLUMN + COLUMNS).map(|column| format!("c{column}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_are_only_names() {
        assert_eq!(identifier("a\"; DROP TABLE x; --"), "\"a\"\"; DROP TABLE x; --\"");
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(literal("a\\'b"), "E'a\\\\''b'");
        assert_eq!(Sql::new("x\"y", 8192).table(0), "\"x\"\"y\".\"slob_1\"");
    }

    #[test]
    fn a_row_takes_an_eighth_of_a_block() {
        for block_bytes in [4096, 8192, 16384, 32768_u32] {
            // 24 bytes of header, 8 of key; plain columns have 4 bytes of length each.
            let row = 32 + COLUMNS * (Sql::new("s", block_bytes).column_bytes() + 4);
            assert!((block_bytes / 9..block_bytes / 7).contains(&row), "{row} of {block_bytes}");
        }
    }
}
