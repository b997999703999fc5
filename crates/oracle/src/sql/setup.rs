//! Making tables and loading rows.
//!
//! Statements that change the data dictionary commit by themselves, before and after, so the marks of a set-up are what holds it
//! together: what they do not name is made again.

use super::catalog::{Kind, LOCK_TABLE};
use super::names::{Sql, columns, quoted};
use ::sql::COLUMNS;
use ::sql::data::catalog::LOAD_TABLE;

/// `first_place` of the mark of a table that is made and ready for rows; it has no places.
pub const READY_PLACE: i64 = -1;
/// Has statements that need a table for themselves wait so long, in seconds, for those who use it; then it is in use.
pub const WAIT_FOR_TABLES: &str = "ALTER SESSION SET DDL_LOCK_TIMEOUT = 5";

impl Sql {
    /// Makes our own three tables, by their bare names: lock, marks and descriptor. Versions before 23 have no `IF NOT EXISTS`;
    /// one that is there already is an error that says so (ORA-00955).
    pub fn create_own_tables(&self, kind: &Kind) -> [(&'static str, String); 3] {
        let create = |name, columns: &str| (name, format!("CREATE TABLE {} ({columns})", self.qualified(name)));
        let columns = kind.load_columns.map(|(name, kind)| format!("{name} {kind} NOT NULL")).join(", ");
        let key: Vec<&str> = kind.load_columns[..kind.load_key].iter().map(|(name, _)| *name).collect();
        [
            create(LOCK_TABLE, "id NUMBER(1) NOT NULL PRIMARY KEY"),
            create(kind.load_table, &format!("{columns}, PRIMARY KEY ({})", key.join(", "))),
            create(
                kind.data_table,
                "format NUMBER(10) NOT NULL, stage VARCHAR2(16 BYTE) NOT NULL, descriptor VARCHAR2(4000 BYTE) NOT NULL",
            ),
        ]
    }

    /// Puts the row there that is locked; then commit. Where it is already, that is an error (ORA-00001).
    pub fn insert_lock(&self) -> String {
        format!("INSERT INTO {} (id) VALUES (1)", self.qualified(LOCK_TABLE))
    }

    /// Locks the data, or fails with ORA-00054 if somebody has. The lock lasts until the session commits, which every statement
    /// on the data dictionary does too: so a session that holds it is asked nothing else.
    pub fn lock(&self) -> String {
        format!("SELECT id FROM {} WHERE id = 1 FOR UPDATE NOWAIT", self.qualified(LOCK_TABLE))
    }

    /// Describes the data: `:format`, `:stage`, `:descriptor`.
    pub fn insert_descriptor(&self, kind: &Kind) -> String {
        format!(
            "INSERT INTO {} (format, stage, descriptor) VALUES (:format, :stage, :descriptor)",
            self.qualified(kind.data_table)
        )
    }

    /// What data are described: format, stage, descriptor.
    pub fn read_descriptor(&self, kind: &Kind) -> String {
        format!("SELECT format, stage, descriptor FROM {}", self.qualified(kind.data_table))
    }

    /// Notes how far they have come: `:stage`.
    pub fn set_stage(&self, kind: &Kind) -> String {
        format!("UPDATE {} SET stage = :stage", self.qualified(kind.data_table))
    }

    /// Marks something as loaded, in the transaction that loads it: a value for each column, by its name. Of SLOB's data, places of
    /// a table: `:is_scan` (0 or 1), `:slob_schema` from 0, `:first_place`, `:places`; with [`READY_PLACE`] and no places the table is
    /// ready for rows.
    pub fn insert_mark(&self, kind: &Kind) -> String {
        let columns = kind.load_columns.map(|(name, _)| name);
        format!(
            "INSERT INTO {} ({}) VALUES ({})",
            self.qualified(kind.load_table),
            columns.join(", "),
            columns.map(|name| format!(":{name}")).join(", ")
        )
    }

    /// All marks in their order: is_scan, slob_schema, first_place, places.
    pub fn marks(&self) -> String {
        format!(
            "SELECT is_scan, slob_schema, first_place, places FROM {} ORDER BY is_scan, slob_schema, first_place",
            self.qualified(LOAD_TABLE)
        )
    }

    /// Forgets those of one table: `:is_scan`, `:slob_schema`.
    pub fn forget_marks(&self) -> String {
        format!("DELETE FROM {} WHERE is_scan = :is_scan AND slob_schema = :slob_schema", self.qualified(LOAD_TABLE))
    }

    /// Makes a table for one row a block, as SLOB does: `table` is qualified. It is not ready before
    /// [`insert_row`](Self::insert_row), [`minimize`](Self::minimize) and [`truncate`](Self::truncate) have pinned that.
    ///
    /// Columns may be null, though none is: a count of a column that cannot be is answered by the index alone. Blocks are kept
    /// free by `PCTFREE`, and are neither compressed nor read by several processes, whatever the tablespace has as its default.
    pub fn create_table(&self, table: &str) -> String {
        let bytes = self.column_bytes();
        let columns: Vec<String> = columns().map(|column| format!("{column} VARCHAR2({bytes} BYTE)")).collect();
        format!("CREATE TABLE {table} (custid NUMBER(15), {}) PCTFREE 99 NOCOMPRESS NOPARALLEL", columns.join(", "))
    }

    /// Puts one row into a table: `:custid`, then the columns, `:c2` to `:c20`.
    pub fn insert_row(&self, table: &str) -> String {
        inserting(table, "")
    }

    /// The same for many rows at once, in the order of their places. They are written behind all others, past the buffer cache,
    /// so that a later read finds blocks with nothing left to clean up. One session at a time does that in a table, and must
    /// commit before it does it again (ORA-12838).
    pub fn insert_rows(&self, table: &str) -> String {
        inserting(table, "/*+ APPEND_VALUES */ ")
    }

    /// Has no block take more rows than the fullest has now, which is one. Needs a row (ORA-28603).
    pub fn minimize(table: &str) -> String {
        format!("ALTER TABLE {table} MINIMIZE RECORDS_PER_BLOCK")
    }

    /// Takes all rows out of a table; what [`minimize`](Self::minimize) pinned stays.
    pub fn truncate(table: &str) -> String {
        format!("TRUNCATE TABLE {table}")
    }

    /// Makes the index on the keys of a table.
    pub fn create_index(&self, schema: u32) -> String {
        let index = self.qualified(&self.index(schema));
        format!("CREATE UNIQUE INDEX {index} ON {} (custid) PCTFREE 0 NOPARALLEL", self.table(schema))
    }

    /// Has the server learn the shape of a table, by its bare name in `:table_name` as the data dictionary has it, and of its
    /// index; and keep that, so that plans do not change in the middle of a run.
    pub fn gather_statistics(&self) -> String {
        let owner = literal(self.owner());
        format!(
            "DECLARE
  table_name VARCHAR2(128) := :table_name;
BEGIN
  DBMS_STATS.UNLOCK_TABLE_STATS(ownname => {owner}, tabname => table_name);
  DBMS_STATS.GATHER_TABLE_STATS(
    ownname => {owner},
    tabname => table_name,
    estimate_percent => 5,
    block_sample => TRUE,
    method_opt => 'FOR ALL COLUMNS SIZE 1',
    degree => 1,
    cascade => TRUE,
    no_invalidate => FALSE);
  DBMS_STATS.LOCK_TABLE_STATS(ownname => {owner}, tabname => table_name);
END;"
        )
    }

    /// Removes a table with its index, for good. Versions before 23 have no `IF EXISTS`; one that is not there is an error that
    /// says so (ORA-00942).
    pub fn drop_table(table: &str) -> String {
        format!("DROP TABLE {table} PURGE")
    }

    /// Loads a table on the server alone, for whoever reads along without us: rows with keys from 0 on, in an order that follows
    /// from `seed`. It takes its number of rows and its seed as they stand: such a statement is executed once.
    pub fn fill(&self, table: &str, fill: Fill<'_>) -> String {
        let names = columns().collect::<Vec<_>>().join(", ");
        let bytes = self.column_bytes();
        let (values, source, seed) = match fill {
            Fill::Random { rows, seed } => (random(bytes), keys(rows), seed),
            Fill::Repeated { rows, seed } => {
                (vec![format!("RPAD('PLIMSOLL', {bytes}, 'PLIMSOLL')"); COLUMNS as usize], keys(rows), seed)
            }
            Fill::CopyOf { table, seed } => {
                (columns().map(|column| format!("n.{column}")).collect(), table.to_owned(), seed)
            }
        };
        format!(
            "INSERT /*+ APPEND */ INTO {table} (custid, {names})\nSELECT n.custid,\n  {}\nFROM {source} n\n\
             ORDER BY ORA_HASH(n.custid, 4294967295, {}), n.custid",
            values.join(",\n  "),
            seed % (1 << 32),
        )
    }
}

/// What a table is loaded with on the server alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill<'a> {
    /// Text that storage cannot compress by more than a fifth. It takes milliseconds a row.
    Random {
        /// How many.
        rows: u64,
        /// Of their order.
        seed: u64,
    },
    /// Text that repeats.
    Repeated {
        /// How many.
        rows: u64,
        /// Of their order.
        seed: u64,
    },
    /// The rows of another table, as SLOB copies the first user's to all others.
    CopyOf {
        /// Qualified.
        table: &'a str,
        /// Of their order.
        seed: u64,
    },
}

fn inserting(table: &str, hint: &str) -> String {
    let (names, binds): (Vec<String>, Vec<String>) =
        columns().map(|column| (column.clone(), format!(":{column}"))).unzip();
    format!("INSERT {hint}INTO {table} (custid, {}) VALUES (:custid, {})", names.join(", "), binds.join(", "))
}

fn random(bytes: u32) -> Vec<String> {
    vec![format!("DBMS_RANDOM.STRING('p', {bytes})"); COLUMNS as usize]
}

/// The keys from 0 on. A product of two short lists, since a long one by `CONNECT BY` takes memory for each of its rows.
fn keys(rows: u64) -> String {
    const AT_ONCE: u64 = 10_000;
    let parts = rows.div_ceil(AT_ONCE);
    format!(
        "(SELECT part.n * {AT_ONCE} + rest.n AS custid\n  FROM (SELECT LEVEL - 1 AS n FROM dual CONNECT BY LEVEL <= {parts}) part\n  \
         CROSS JOIN (SELECT LEVEL - 1 AS n FROM dual CONNECT BY LEVEL <= {AT_ONCE}) rest\n  \
         WHERE part.n * {AT_ONCE} + rest.n < {rows})"
    )
}

/// A name, quoted, as a text.
pub(super) fn literal(name: &str) -> String {
    format!("'{}'", quoted(name).replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::super::operations::placeholders;
    use super::*;

    fn sql() -> Sql {
        Sql::new("PLIMSOLL", 8192)
    }

    #[test]
    fn a_table_has_slob_s_columns_and_keeps_its_blocks_free() {
        let create = sql().create_table(&sql().table(0));
        assert!(
            create.starts_with("CREATE TABLE \"PLIMSOLL\".slob_1 (custid NUMBER(15), c2 VARCHAR2(128 BYTE), "),
            "{create}"
        );
        assert_eq!(create.matches("VARCHAR2(128 BYTE)").count(), COLUMNS as usize);
        assert!(create.ends_with("PCTFREE 99 NOCOMPRESS NOPARALLEL"), "{create}");
        assert!(!create.contains("NOT NULL"));
    }

    #[test]
    fn a_row_is_bound_column_by_column() {
        let insert = sql().insert_rows("t");
        let bound: Vec<String> = std::iter::once("custid".to_owned()).chain(columns()).collect();
        assert_eq!(placeholders(&insert), bound);
        assert!(insert.starts_with("INSERT /*+ APPEND_VALUES */ INTO t (custid, c2, "), "{insert}");
        assert_eq!(placeholders(&sql().insert_row("t")), bound);
    }

    #[test]
    fn whoever_makes_data_waits_for_nobody_and_for_no_grant() {
        assert!(sql().lock().ends_with("FOR UPDATE NOWAIT"));
        let hostile = Sql::new("A'; DROP", 8192).gather_statistics();
        assert!(hostile.contains("ownname => '\"A''; DROP\"'"), "{hostile}");
    }

    #[test]
    fn keys_of_a_filled_table_are_as_many_as_rows() {
        let fill = sql().fill("t", Fill::Random { rows: 20_001, seed: (1 << 32) + 7 });
        assert!(fill.contains("LEVEL <= 3)") && fill.contains("rest.n < 20001)"), "{fill}");
        assert!(fill.ends_with("ORDER BY ORA_HASH(n.custid, 4294967295, 7), n.custid"), "{fill}");
        let copy = sql().fill("t", Fill::CopyOf { table: "s", seed: 1 });
        assert!(copy.contains("n.c20\nFROM s n\n"), "{copy}");
    }
}
