//! The SQL that everything about MySQL and MariaDB shares: names of tables, their shape, and what operations are there.
//!
//! InnoDB keeps rows in the leaves of their primary key and never builds a leaf with fewer than two. So each table has two
//! rows a leaf, of which one is addressed: `place` numbers all rows in their order on storage, those at even places have the
//! keys 0 to N-1, scattered, and the other half the keys from N on, which no operation names. A secondary index leads from a
//! key to its place.

use std::fmt::Write;

use crate::data::{index_name, procedure_name};
use crate::{COLUMNS, FILLING_PLACES, FILLING_STEP, StatementKind};
use model::workload::SlobOperation;

/// The first filling column, `c2`; the last is `c20`.
const FIRST_COLUMN: u32 = 2;
/// Bytes of each in a page of 16 KiB, as SLOB's own have; other pages in proportion. Two rows must be more than a tenth of a
/// page, which is what the fill factor leaves them, and one less than half of it.
const COLUMN_BYTES: u32 = 128;
const DEFAULT_PAGE_BYTES: u32 = 16_384;
/// Rows of a leaf.
pub(super) const ROWS_OF_A_LEAF: u64 = 2;
/// How often an update that met a deadlock or waited too long for a lock is done again.
pub(super) const MAX_ATTEMPTS: u32 = 4;
/// Characters of the parts of an operation, as the procedure is given them: kind, whether on the first schema, first key, keys.
const OPERATION_PARTS: [usize; 4] = [1, 1, 16, 10];
/// Characters of the parts of what it gives back: end, begin of the commit (all 0 without one), and what was touched.
pub(super) const TIME_PARTS: [usize; 3] = [13, 13, 10];
/// Added to each time, which is in microseconds since the batch began: so it is never negative, though a clock may be set.
pub(super) const TIME_BASE: i64 = 1_000_000_000_000;

/// The keys of an operation in the procedure.
const IN_PROCEDURE: &str = "custid >= first_key AND custid < beyond_key";

/// Which keys a statement works on. One that knows that it is a single key costs the server less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// One.
    One,
    /// From the first value to before the second.
    Range,
}

impl Keys {
    /// Those of an operation.
    pub(super) fn of(operation: &SlobOperation) -> Self {
        if operation.keys == 1 { Self::One } else { Self::Range }
    }

    fn condition(self) -> &'static str {
        match self {
            Self::One => "custid = ?",
            Self::Range => "custid >= ? AND custid < ?",
        }
    }
}

/// Text in its quotes.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// `name` as an identifier, whatever stands in it.
pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Names and statements of the data in one database.
#[derive(Debug, Clone)]
pub struct Sql {
    database: String,
    column_bytes: u32,
}

impl Sql {
    /// For data in the database of this name (not quoted), on a server with pages of this size.
    pub fn new(database: &str, page_bytes: u32) -> Self {
        Self { database: quoted(database), column_bytes: column_bytes(page_bytes) }
    }

    /// The database, quoted.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// Bytes of each filling column.
    pub fn column_bytes(&self) -> u32 {
        self.column_bytes
    }

    /// A bare name, qualified and quoted.
    pub fn qualified(&self, name: &str) -> String {
        format!("{}.{}", self.database, quoted(name))
    }

    /// The table of SLOB's schema number `schema`, from 0, qualified and quoted.
    pub fn table(&self, schema: u32) -> String {
        self.qualified(&format!("slob_{}", schema + 1))
    }

    /// Its scan table.
    pub fn scan_table(&self, schema: u32) -> String {
        self.qualified(&format!("scan_{}", schema + 1))
    }

    /// The procedure that executes batches of it.
    pub fn procedure(&self, schema: u32) -> String {
        self.qualified(&procedure_name(schema))
    }

    /// Makes a table, empty and with its primary key only: `table` is qualified and quoted. Its statistics stay as set-up
    /// made them, so that plans do not change in the middle of a run. Columns may be null, though none is: a count of a column
    /// that cannot be is a count of rows, which the index alone would answer.
    pub fn create_table(&self, table: &str) -> String {
        let mut statement = format!("CREATE TABLE {table} (place BIGINT NOT NULL PRIMARY KEY, custid BIGINT NOT NULL");
        for column in columns() {
            let _ = write!(statement, ", {column} BINARY({})", self.column_bytes);
        }
        statement.push_str(") ENGINE=InnoDB ROW_FORMAT=DYNAMIC STATS_PERSISTENT=1 STATS_AUTO_RECALC=0");
        statement
    }

    /// Writes a table anew, as full as the server's `innodb_fill_factor` says.
    pub fn rebuild(table: &str) -> String {
        format!("ALTER TABLE {table} FORCE, ALGORITHM=INPLACE, LOCK=EXCLUSIVE")
    }

    /// Makes the index on the keys of a table, which may be read meanwhile.
    pub fn create_index(&self, schema: u32) -> String {
        let (table, index) = (self.table(schema), quoted(&index_name(schema)));
        format!("ALTER TABLE {table} ADD UNIQUE KEY {index} (custid), ALGORITHM=INPLACE, LOCK=SHARED")
    }

    /// Takes rows as text: place, key, then the columns, each ended by a tab and the last by a line feed. A backslash takes
    /// their meaning from all three.
    pub fn load_data(table: &str) -> String {
        let columns = columns().collect::<Vec<_>>().join(", ");
        format!(
            "LOAD DATA LOCAL INFILE 'plimsoll' INTO TABLE {table} CHARACTER SET binary FIELDS TERMINATED BY '\\t' \
             ESCAPED BY '\\\\' LINES TERMINATED BY '\\n' (place, custid, {columns})"
        )
    }

    /// Reads these keys, which are the values; gives how many rows there were.
    pub fn read(&self, schema: u32, keys: Keys) -> String {
        self.reading(schema, keys.condition())
    }

    fn reading(&self, schema: u32, condition: &str) -> String {
        let (table, index) = (self.table(schema), quoted(&index_name(schema)));
        format!("SELECT COUNT(c2) FROM {table} FORCE INDEX ({index}) WHERE {condition}")
    }

    /// Changes the first and the last column ([`UpdateLite`](StatementKind::UpdateLite)) or every column of these keys: values
    /// are what is written, column after column, then as for [`read`](Self::read).
    pub fn update(&self, kind: StatementKind, schema: u32, keys: Keys) -> String {
        let set = changed(kind).map(|column| format!("c{column} = ?"));
        self.updating(schema, set, keys.condition())
    }

    fn updating(&self, schema: u32, set: impl Iterator<Item = String>, condition: &str) -> String {
        let (table, index) = (self.table(schema), quoted(&index_name(schema)));
        let set = set.collect::<Vec<_>>().join(", ");
        format!("UPDATE {table} FORCE INDEX ({index}) SET {set} WHERE {condition}")
    }

    /// Reads the whole scan table; gives how many rows there were.
    pub fn scan(&self, schema: u32) -> String {
        format!("SELECT COUNT(c2) FROM {} FORCE INDEX (PRIMARY)", self.scan_table(schema))
    }

    /// Makes the procedure that executes operations on the table of one schema, or where they say so on that of the first, one
    /// after the other. One text serves all versions of MySQL and MariaDB, none of which has arrays: operations come and
    /// times go as text of fixed width.
    ///
    /// Each update commits by itself. One that meets a deadlock, or waits for a lock longer than the server lets it, is done
    /// again. Each operation's time counts from the end of the one before, so that none of the time between is lost. What an
    /// update writes begins with the operation's number: so it always changes something, and the count of changed rows is
    /// that of the rows that were found.
    pub fn create_procedure(&self, schema: u32) -> String {
        let [kind, hot, first, keys] = OPERATION_PARTS;
        let width: usize = OPERATION_PARTS.iter().sum();
        let [end_digits, _, touched_digits] = TIME_PARTS;
        let reads = |schema| {
            let reading = self.reading(schema, IN_PROCEDURE);
            reading.replacen("SELECT COUNT(c2)", "SELECT COUNT(c2) INTO touched", 1) + ";"
        };
        let scans = |schema| self.scan(schema).replacen("SELECT COUNT(c2)", "SELECT COUNT(c2) INTO touched", 1) + ";";
        let bytes = self.column_bytes;
        let updates = |schema, kind| {
            let set = (0..).zip(changed(kind)).map(|(place, column)| match place {
                0 => format!("c{column} = CONCAT(LPAD(number, 8, '0'), SUBSTRING(filling, at_byte, {}))", bytes - 8),
                _ => format!("c{column} = SUBSTRING(filling, at_byte + {}, {bytes})", place * bytes),
            });
            self.updating(schema, set, IN_PROCEDURE) + ";"
        };
        let either = |hot: String, home: String| match schema {
            0 => home,
            _ => format!("IF is_hot = '1' THEN {hot} ELSE {home} END IF;"),
        };
        format!(
            "CREATE PROCEDURE {procedure}(IN operations LONGTEXT CHARACTER SET latin1, IN filling LONGBLOB)
SQL SECURITY INVOKER
BEGIN
  DECLARE began DATETIME(6) DEFAULT SYSDATE(6);
  DECLARE committing BIGINT;
  DECLARE number INT DEFAULT 0;
  DECLARE at_char INT DEFAULT 1;
  DECLARE at_byte INT;
  DECLARE total INT DEFAULT LENGTH(operations) DIV {width};
  DECLARE which CHAR(1);
  DECLARE is_hot CHAR(1);
  DECLARE first_key BIGINT;
  DECLARE beyond_key BIGINT;
  DECLARE touched BIGINT;
  DECLARE is_blocked INT;
  DECLARE attempts INT;
  DECLARE repeated INT DEFAULT 0;
  DECLARE part TEXT CHARACTER SET latin1 DEFAULT '';
  DECLARE times LONGTEXT CHARACTER SET latin1 DEFAULT '';
  DECLARE CONTINUE HANDLER FOR 1205, 1213
  BEGIN
    SET is_blocked = 1;
    IF attempts >= {MAX_ATTEMPTS} OR attempts = 0 THEN ROLLBACK; RESIGNAL; END IF;
  END;
  WHILE number < total DO
    SET which = SUBSTRING(operations, at_char, {kind});
    SET is_hot = SUBSTRING(operations, at_char + {at_hot}, {hot});
    SET first_key = SUBSTRING(operations, at_char + {at_first}, {first});
    SET beyond_key = first_key + SUBSTRING(operations, at_char + {at_keys}, {keys});
    SET committing = 0;
    SET attempts = 0;
    IF which = '{read}' THEN
      {reads}
    ELSEIF which = '{scan}' THEN
      {scans}
      SET touched = (touched + 1) DIV {ROWS_OF_A_LEAF};
    ELSE
      SET at_byte = 1 + (number % {FILLING_PLACES}) * {FILLING_STEP};
      REPEAT
        SET is_blocked = 0;
        SET attempts = attempts + 1;
        START TRANSACTION;
        IF which = '{lite}' THEN
          {updates_lite}
          SET touched = ROW_COUNT();
        ELSE
          {updates_heavy}
          SET touched = ROW_COUNT();
        END IF;
        IF is_blocked THEN
          ROLLBACK;
          SET repeated = repeated + 1;
        ELSE
          SET committing = {TIME_BASE} + TIMESTAMPDIFF(MICROSECOND, began, SYSDATE(6));
          COMMIT;
        END IF;
      UNTIL NOT is_blocked END REPEAT;
    END IF;
    SET part = CONCAT(part, LPAD({TIME_BASE} + TIMESTAMPDIFF(MICROSECOND, began, SYSDATE(6)), {end_digits}, '0'),
      LPAD(committing, {end_digits}, '0'), LPAD(touched, {touched_digits}, '0'));
    SET number = number + 1;
    SET at_char = at_char + {width};
    IF number % 64 = 0 THEN
      SET times = CONCAT(times, part);
      SET part = '';
    END IF;
  END WHILE;
  SELECT repeated, CONCAT(times, part);
END",
            procedure = self.procedure(schema),
            at_hot = kind,
            at_first = kind + hot,
            at_keys = kind + hot + first,
            read = StatementKind::Read as i16,
            scan = StatementKind::Scan as i16,
            lite = StatementKind::UpdateLite as i16,
            reads = either(reads(0), reads(schema)),
            scans = either(scans(0), scans(schema)),
            updates_lite = either(updates(0, StatementKind::UpdateLite), updates(schema, StatementKind::UpdateLite)),
            updates_heavy = either(updates(0, StatementKind::UpdateHeavy), updates(schema, StatementKind::UpdateHeavy)),
        )
    }

    /// Has a batch executed: values are its operations, each by `operation_text`, and the filling. Gives how many updates were
    /// done again, and for each operation its `TIME_PARTS`.
    pub fn call_procedure(&self, schema: u32) -> String {
        format!("CALL {}(?, ?)", self.procedure(schema))
    }
}

/// One operation as the procedure is given it.
pub(super) fn operation_text(kind: StatementKind, is_hot: bool, first_key: u64, keys: u32) -> String {
    let [_, _, first_digits, keys_digits] = OPERATION_PARTS;
    format!("{}{}{first_key:0first_digits$}{keys:0keys_digits$}", kind as i16, u8::from(is_hot))
}

/// Bytes of a filling column on a server with pages of this size.
pub(super) fn column_bytes(page_bytes: u32) -> u32 {
    // A binary column has 255 bytes at most; larger pages get rows that are still more than a twentieth of them.
    (COLUMN_BYTES * (page_bytes / 1024) / (DEFAULT_PAGE_BYTES / 1024)).clamp(16, 255)
}

/// Names of the filling columns.
pub(super) fn columns() -> impl Iterator<Item = String> {
    (FIRST_COLUMN..FIRST_COLUMN + COLUMNS).map(|column| format!("c{column}"))
}

/// The columns that an update changes.
fn changed(kind: StatementKind) -> impl Iterator<Item = u32> {
    let last = FIRST_COLUMN + COLUMNS - 1;
    (FIRST_COLUMN..=last)
        .filter(move |column| kind == StatementKind::UpdateHeavy || [FIRST_COLUMN, last].contains(column))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_are_only_names() {
        assert_eq!(quoted("a`; DROP TABLE x; --"), "`a``; DROP TABLE x; --`");
        assert_eq!(Sql::new("x`y", 16_384).table(0), "`x``y`.`slob_1`");
    }

    #[test]
    fn two_rows_are_more_than_the_fill_factor_leaves_and_fit_into_a_leaf() {
        for page_bytes in [4096, 8192, 16_384, 32_768, 65_536_u32] {
            // Header, two hidden columns, place and key, and a bit for each column that may be null.
            let row = 5 + 13 + 16 + 3 + COLUMNS * column_bytes(page_bytes);
            assert!(2 * row > page_bytes / 10 && row < page_bytes / 2 - 200, "{row} of {page_bytes}");
        }
    }

    #[test]
    fn an_operation_is_text_of_fixed_width() {
        let text = operation_text(StatementKind::UpdateHeavy, true, 4711, 64);
        assert_eq!(text, "2100000000000047110000000064");
        assert_eq!(text.len(), OPERATION_PARTS.iter().sum::<usize>());
    }

    #[test]
    fn an_update_writes_into_as_many_columns_as_there_are_values() {
        let sql = Sql::new("d", 16_384);
        let update = |kind, keys| sql.update(kind, 0, keys);
        assert_eq!(update(StatementKind::UpdateHeavy, Keys::Range).matches("= ?").count(), COLUMNS as usize + 1);
        assert!(
            update(StatementKind::UpdateLite, Keys::Range)
                .ends_with("SET c2 = ?, c20 = ? WHERE custid >= ? AND custid < ?")
        );
        assert!(update(StatementKind::UpdateLite, Keys::One).ends_with("SET c2 = ?, c20 = ? WHERE custid = ?"));
    }
}
