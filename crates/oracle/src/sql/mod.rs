//! The SQL and PL/SQL that is sent to Oracle, as text, and how operations are packed for it. Nothing here talks to a server.
//!
//! A schema of SLOB's is a table of one row a block, with SLOB's own columns: `custid`, and nineteen columns of filling. Our own
//! layout has all tables in the schema of one Oracle user; SLOB's has a user for each. Versions from 12.1 on understand all of
//! it, no privilege of a DBA is needed, and no hidden parameter is set. Values are bound, each placeholder stands once in a text,
//! and placeholders are named in the order in which they are bound. What is no column has a name: a query of several rows is asked
//! as a view (`Connected::query`), in which long expressions could be taken for each other.

mod batch;
mod catalog;
mod grants;
mod names;
mod proof;
mod slob;

use ::sql::data::catalog::LOAD_TABLE;
use ::sql::{COLUMNS, StatementKind};
use names::{FIRST_COLUMN, columns};

pub use batch::{Kinds, MAX_BATCH, pack, unpack};
pub(crate) use catalog::TABLES;
pub use catalog::{
    AT_WORK, BUFFER_CACHE, CONTAINER, DATABASE, DESCRIBED, IS_CLUSTER, Kind, LOCK_HOLDER, LOCK_TABLE, ORDERS,
    OWN_TABLESPACES, PLACE, PRIVILEGES, PRODUCT, QUOTAS, SESSION, SLOB, only_reads,
};
pub use grants::{Grant, Need, PUBLIC_PACKAGES, grants};
pub use names::{Commits, Layout, Method, Reads, Sql, column_bytes, dictionary_name, printable, quoted, slob_owner};
pub use proof::{
    Address, COLUMNS_OF, CONTINUED_ROWS, EXECUTED_PLANS, INDEXES_OF, PLAN, PlanLine, SHAPE_OF, TRIGGERS_OF, explain,
    plan_fault,
};
pub use slob::{SLOB_BLOCK_BYTES, SLOB_OWNERS, slob_schemas};

/// One operation as it is sent by itself, and what is bound, in this order. Each costs one round trip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// What is sent: a query of one row and one column, which is the count of rows; or a block.
    pub text: String,
    /// Filling columns that are bound before all else, each a text of [`Sql::column_bytes`].
    pub columns: u32,
    /// Whether `custid` of the first key, and of the one after the last, are bound then.
    pub has_keys: bool,
    /// Whether it is a block, which has the count of rows as its last bind, OUT, a number.
    pub is_block: bool,
}

/// Which keys a statement is about, by expressions for values of `custid`.
#[derive(Clone, Copy)]
enum Keys<'a> {
    /// From the first to before the second.
    Range(&'a str, &'a str),
    /// One.
    One(&'a str),
}

impl Keys<'_> {
    fn condition(self) -> String {
        match self {
            Self::Range(first, beyond) => format!("t.custid >= {first} AND t.custid < {beyond}"),
            Self::One(key) => format!("t.custid = {key}"),
        }
    }
}

impl Sql {
    /// Reads a range of keys and gives how many rows there were, or has it read key by key.
    pub fn read(&self, schema: u32) -> Statement {
        match self.reads() {
            Reads::Range => Statement {
                text: self.reading(schema, "", Keys::Range(":first_key", ":beyond_key")),
                columns: 0,
                has_keys: true,
                is_block: false,
            },
            Reads::KeyByKey => {
                let body = indented(&self.reads_into_touched(schema), 2);
                let text = format!(
                    "DECLARE\n  first_key NUMBER := :first_key;\n  beyond_key NUMBER := :beyond_key;\n  touched NUMBER;\n\
                     {loop_variables}BEGIN\n{body}\n  :touched := touched;\nEND;",
                    loop_variables = self.loop_variables(),
                );
                Statement { text, columns: 0, has_keys: true, is_block: true }
            }
        }
    }

    /// Changes the first and the last column ([`UpdateLite`](StatementKind::UpdateLite)) or every column of a range of keys,
    /// commits, and gives how many rows there were. It is a block, so that change and commit are one round trip; a commit of the
    /// only operation of a block is waited for, also where [`Commits`] are SLOB's. What failed is rolled back.
    pub fn update(&self, kind: StatementKind, schema: u32) -> Statement {
        let columns: Vec<u32> = changed(kind).collect();
        let binds: String = (1..)
            .zip(&columns)
            .fold(String::new(), |text, (place, column)| text + &format!("  parts({place}) := :c{column};\n"));
        let body = indented(&self.updates_into_touched(schema, kind), 2);
        let text = format!(
            "DECLARE\n{types}  first_key NUMBER;\n  beyond_key NUMBER;\n  touched NUMBER;\n{loop_variables}BEGIN\n{binds}  \
             first_key := :first_key;\n  beyond_key := :beyond_key;\n{body}\n  {commit}\n  :touched := touched;\nEXCEPTION\n  \
             WHEN OTHERS THEN\n    ROLLBACK;\n    RAISE;\nEND;",
            types = self.parts_declaration(),
            loop_variables = self.loop_variables(),
            commit = self.commit(),
        );
        Statement { text, columns: columns.len() as u32, has_keys: true, is_block: true }
    }

    /// Reads the whole scan table, by this session alone, and gives how many rows there were.
    pub fn scan(&self, schema: u32) -> Statement {
        Statement { text: self.scanning(schema, ""), columns: 0, has_keys: false, is_block: false }
    }

    /// The statement of one kind.
    pub fn statement(&self, kind: StatementKind, schema: u32) -> Statement {
        match kind {
            StatementKind::Read => self.read(schema),
            StatementKind::Scan => self.scan(schema),
            StatementKind::UpdateLite | StatementKind::UpdateHeavy => self.update(kind, schema),
        }
    }

    /// A count of `c2`, which may be null, so the index alone does not answer it; nor does the result of the same question before,
    /// which a database keeps where `result_cache_mode` is `FORCE`.
    fn reading(&self, schema: u32, into: &str, keys: Keys<'_>) -> String {
        let (index, table, condition) = (self.index(schema), self.table(schema), keys.condition());
        format!(
            "SELECT /*+ {} NO_RESULT_CACHE */ COUNT(t.c2){into} FROM {table} t WHERE {condition}",
            row_by_row(&index)
        )
    }

    fn scanning(&self, schema: u32, into: &str) -> String {
        let table = self.scan_table(schema);
        format!("SELECT /*+ FULL(t) NO_PARALLEL(t) NO_RESULT_CACHE */ COUNT(t.c2){into} FROM {table} t")
    }

    /// With `values` for the columns that this kind changes.
    fn updating(&self, schema: u32, kind: StatementKind, values: &[String], keys: Keys<'_>) -> String {
        let (hints, table, condition) = (self.hints(schema), self.table(schema), keys.condition());
        let set: Vec<String> =
            changed(kind).zip(values).map(|(column, value)| format!("t.c{column} = {value}")).collect();
        format!("UPDATE {hints} {table} t SET {} WHERE {condition}", set.join(", "))
    }

    /// PL/SQL that reads the keys from `first_key` to before `beyond_key` and has their count in `touched`.
    fn reads_into_touched(&self, schema: u32) -> String {
        match self.reads() {
            Reads::Range => self.reading(schema, " INTO touched", Keys::Range("first_key", "beyond_key")) + ";",
            Reads::KeyByKey => {
                let reading = self.reading(schema, " INTO found", Keys::One("at_key"));
                each_key(&format!("{reading};\n  touched := touched + found;"))
            }
        }
    }

    /// PL/SQL that changes them to `parts(1)`, `parts(2)`, … and has their count in `touched`.
    fn updates_into_touched(&self, schema: u32, kind: StatementKind) -> String {
        let values: Vec<String> = (1..=changed(kind).count()).map(|place| format!("parts({place})")).collect();
        match self.reads() {
            Reads::Range => {
                let updating = self.updating(schema, kind, &values, Keys::Range("first_key", "beyond_key"));
                format!("{updating};\ntouched := SQL%ROWCOUNT;")
            }
            Reads::KeyByKey => {
                let updating = self.updating(schema, kind, &values, Keys::One("at_key"));
                each_key(&format!("{updating};\n  touched := touched + SQL%ROWCOUNT;"))
            }
        }
    }

    /// The statement that ends an update.
    fn commit(&self) -> &'static str {
        match self.commits() {
            Commits::Wait => "COMMIT WRITE IMMEDIATE WAIT;",
            Commits::Slob => "COMMIT;",
        }
    }

    /// What an update writes, column by column.
    fn parts_declaration(&self) -> String {
        let bytes = self.column_bytes();
        format!("  TYPE texts IS TABLE OF VARCHAR2({bytes}) INDEX BY PLS_INTEGER;\n  parts texts;\n")
    }

    /// What a loop over keys uses.
    fn loop_variables(&self) -> &'static str {
        match self.reads() {
            Reads::Range => "",
            Reads::KeyByKey => "  at_key NUMBER;\n  found NUMBER;\n",
        }
    }

    /// Rows are found by a range of the index and fetched one by one, as far as a hint decides that.
    fn hints(&self, schema: u32) -> String {
        format!("/*+ {} */", row_by_row(&self.index(schema)))
    }
}

fn row_by_row(index: &str) -> String {
    format!("INDEX(t {index}) NO_BATCH_TABLE_ACCESS_BY_ROWID(t)")
}

fn each_key(what: &str) -> String {
    format!(
        "touched := 0;\nat_key := first_key;\nWHILE at_key < beyond_key LOOP\n  {what}\n  at_key := at_key + 1;\nEND LOOP;"
    )
}

/// The columns that an update changes.
fn changed(kind: StatementKind) -> impl Iterator<Item = u32> {
    let last = FIRST_COLUMN + COLUMNS - 1;
    (FIRST_COLUMN..=last)
        .filter(move |column| kind == StatementKind::UpdateHeavy || [FIRST_COLUMN, last].contains(column))
}

/// `text` with so many spaces before each line.
fn indented(text: &str, spaces: usize) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("{:spaces$}{line}", "")).collect();
    lines.join("\n")
}

/// The names that are bound, in order.
#[cfg(test)]
fn placeholders(text: &str) -> Vec<&str> {
    let begins = text.match_indices(':').filter(|(at, _)| text[at + 1..].starts_with(|c: char| c.is_ascii_lowercase()));
    begins
        .map(|(at, _)| {
            let name = &text[at + 1..];
            &name[..name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len())]
        })
        .collect()
}

// Making tables and loading rows.
//
// Statements that change the data dictionary commit by themselves, before and after, so the marks of a set-up are what holds it
// together: what they do not name is made again.

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
    /// free by `PCTFREE`, and are neither compressed nor read by several processes, whatever the tablespace has as its default. Where
    /// segment space is managed by hand, `PCTUSED` would be 40, and both together are 100 at most; elsewhere it has no effect.
    pub fn create_table(&self, table: &str) -> String {
        let bytes = self.column_bytes();
        let columns: Vec<String> = columns().map(|column| format!("{column} VARCHAR2({bytes} BYTE)")).collect();
        format!(
            "CREATE TABLE {table} (custid NUMBER(15), {}) PCTFREE 99 PCTUSED 1 NOCOMPRESS NOPARALLEL",
            columns.join(", ")
        )
    }

    /// Puts one row into a table: `:custid`, then the columns, `:c2` to `:c20`.
    pub fn insert_row(&self, table: &str) -> String {
        inserting(table, "")
    }

    /// The same for many rows at once, in the order of their places. They are written behind all others, past the buffer cache,
    /// without the time of their commit: the first read of a block may have to look that up, and to log and write it. One session at
    /// a time does that in a table, and must commit before it does it again (ORA-12838).
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
fn literal(name: &str) -> String {
    format!("'{}'", quoted(name).replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::names::Layout;
    use super::*;

    const KINDS: [StatementKind; 4] =
        [StatementKind::Read, StatementKind::UpdateLite, StatementKind::UpdateHeavy, StatementKind::Scan];

    fn own() -> Sql {
        Sql::new("PLIMSOLL", 8192)
    }

    #[test]
    fn a_read_is_one_range_of_the_index_row_by_row() {
        assert_eq!(
            own().read(2).text,
            "SELECT /*+ INDEX(t slob_3_key) NO_BATCH_TABLE_ACCESS_BY_ROWID(t) NO_RESULT_CACHE */ COUNT(t.c2) \
             FROM \"PLIMSOLL\".slob_3 t WHERE t.custid >= :first_key AND t.custid < :beyond_key"
        );
        let slob = own().with_layout(Layout::Slob).read(0).text;
        assert!(slob.contains("INDEX(t i_cf1)") && slob.contains("FROM \"USER1\".cf1 t"), "{slob}");
    }

    #[test]
    fn no_read_is_answered_by_the_result_of_another() {
        for reads in [Reads::Range, Reads::KeyByKey] {
            for kind in [StatementKind::Read, StatementKind::Scan] {
                let text = own().with_reads(reads).statement(kind, 0).text;
                assert!(text.contains(" NO_RESULT_CACHE */ COUNT(t.c2)"), "{text}");
            }
        }
    }

    #[test]
    fn every_placeholder_stands_once_and_in_the_order_in_which_it_is_bound() {
        for reads in [Reads::Range, Reads::KeyByKey] {
            for kind in KINDS {
                let statement = own().with_reads(reads).statement(kind, 0);
                let mut bound: Vec<String> = Vec::new();
                if statement.columns > 0 {
                    bound.extend(changed(kind).map(|column| format!("c{column}")));
                }
                assert_eq!(bound.len(), statement.columns as usize);
                if statement.has_keys {
                    bound.extend(["first_key", "beyond_key"].map(str::to_owned));
                }
                if statement.is_block {
                    bound.push("touched".to_owned());
                }
                assert_eq!(placeholders(&statement.text), bound, "{}", statement.text);
            }
        }
    }

    #[test]
    fn key_by_key_no_statement_names_a_range() {
        let sql = own().with_reads(Reads::KeyByKey);
        for kind in KINDS {
            let text = sql.statement(kind, 0).text;
            assert!(!text.contains("t.custid >="), "{text}");
            assert_eq!(text.contains("t.custid = at_key"), kind != StatementKind::Scan, "{text}");
        }
    }

    #[test]
    fn an_update_waits_for_its_commit_unless_slob_s_way_was_asked_for() {
        let text = |commits| own().with_commits(commits).update(StatementKind::UpdateLite, 0).text;
        assert!(text(Commits::Wait).contains("COMMIT WRITE IMMEDIATE WAIT;"));
        assert!(text(Commits::Slob).contains("  COMMIT;") && !text(Commits::Slob).contains("WRITE"));
    }

    #[test]
    fn a_light_update_changes_the_first_and_the_last_column_and_a_heavy_one_all() {
        let lite = own().update(StatementKind::UpdateLite, 0);
        assert!(lite.text.contains("SET t.c2 = parts(1), t.c20 = parts(2) WHERE"), "{}", lite.text);
        let heavy = own().update(StatementKind::UpdateHeavy, 0);
        assert_eq!((lite.columns, heavy.columns), (2, COLUMNS));
        assert!(heavy.text.contains("t.c20 = parts(19) WHERE"), "{}", heavy.text);
    }
}

#[cfg(test)]
mod setup_tests {
    use super::placeholders;
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
        assert!(create.ends_with("PCTFREE 99 PCTUSED 1 NOCOMPRESS NOPARALLEL"), "{create}");
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
