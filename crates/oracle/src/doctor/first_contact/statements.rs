//! What the first contact sends, and the same as a script for SQL*Plus.

use std::fmt::Write as _;

use crate::doctor::questions::OWN_WAITS;
use crate::sql::{CONTAINER, PRODUCT, Sql};

/// The table that is made, and its index.
pub(super) const TABLE: &str = "plimsoll_try";
pub(super) const INDEX: &str = "plimsoll_try_key";
/// Its rows, and how many one transaction loads. Each fills a block of 8 KiB.
pub(super) const ROWS: u64 = 4_096;
pub(super) const PIECE_ROWS: u64 = 64;
/// Keys follow each other in steps of so many, which has no divisor in common with the number of rows.
const STEP: u64 = 1_597;
/// Commits of either kind.
pub(super) const COMMITS: u64 = 100;

/// What the first step asks: the last edge of histograms. Wants `v$event_histogram_micro`.
pub(super) const LAST_EDGE: &str = "SELECT MAX(wait_time_micro) AS edge FROM v$event_histogram_micro";
/// Which names it takes, and how commits are done where a session does not say. Wants `v$parameter`.
const COMPATIBLE: &str = "SELECT name, value FROM v$parameter WHERE name IN ('commit_logging', 'commit_wait', 'compatible', 'db_block_size')";
/// What this session has counted. Wants `v$mystat` and `v$statname`.
pub(super) const COUNTED: &str = "SELECT n.name, s.value FROM v$mystat s JOIN v$statname n ON n.statistic# = s.statistic# \
    WHERE n.name IN ('Commit SCN cached', 'cleanouts only - consistent read gets', 'redo size', 'redo synch writes', 'user commits')";
/// What the pluggable database has counted of its own writes, and the whole instance of all. Wants `v$con_sysstat` and `v$sysstat`.
pub(super) const WRITTEN: &str = "SELECT 'own ' || name AS name, value FROM v$con_sysstat \
    WHERE con_id = TO_NUMBER(SYS_CONTEXT('USERENV', 'CON_ID')) \
    AND name IN ('physical writes', 'physical writes direct', 'physical writes from cache', 'redo writes') UNION ALL \
    SELECT 'all ' || name, value FROM v$sysstat WHERE name IN ('physical writes', 'physical writes from cache', 'redo writes')";
/// Wants the privilege ALTER SYSTEM.
pub(super) const CHECKPOINT: &str = "ALTER SYSTEM CHECKPOINT";

/// Makes the table, with one row so far: what it pins is as in SLOB's.
pub(super) fn create(table: &str) -> String {
    format!(
        "CREATE TABLE {table} (custid NUMBER(15), c2 VARCHAR2(2400 BYTE), c20 VARCHAR2(9 BYTE)) PCTFREE 99 PCTUSED 1 NOCOMPRESS \
         NOPARALLEL"
    )
}

/// Has a block take one row, by one that is committed by the next statement and goes again, and gives the table its index.
pub(super) fn pin(table: &str, index: &str) -> [String; 4] {
    [
        format!("INSERT INTO {table} (custid, c2, c20) VALUES (0, RPAD('x', 2400, 'x'), 'x')"),
        Sql::minimize(table),
        Sql::truncate(table),
        format!("CREATE UNIQUE INDEX {index} ON {table} (custid) NOPARALLEL"),
    ]
}

/// Loads all rows past the buffer cache, in as many transactions as there are pieces.
pub(super) fn load(table: &str) -> String {
    let pieces = ROWS / PIECE_ROWS;
    format!(
        "DECLARE
  TYPE numbers IS TABLE OF NUMBER INDEX BY PLS_INTEGER;
  keys numbers;
BEGIN
  FOR piece IN 1 .. {pieces} LOOP
    FOR place IN 1 .. {PIECE_ROWS} LOOP
      keys(place) := MOD(((piece - 1) * {PIECE_ROWS} + place - 1) * {STEP}, {ROWS});
    END LOOP;
    FORALL place IN 1 .. {PIECE_ROWS}
      INSERT /*+ APPEND_VALUES */ INTO {table} (custid, c2, c20) VALUES (keys(place), RPAD('x', 2400, 'x'), 'x');
    COMMIT;
  END LOOP;
END;"
    )
}

/// Rows, blocks in which they lie, and rows that are not the first of their block.
pub(super) fn layout(table: &str) -> String {
    format!(
        "SELECT /*+ INDEX_FFS(t {INDEX}) NO_PARALLEL(t) */ COUNT(*) AS all_rows, \
         COUNT(DISTINCT SUBSTR(ROWIDTOCHAR(t.ROWID), 7, 9)) AS all_blocks, \
         COUNT(CASE WHEN SUBSTR(ROWIDTOCHAR(t.ROWID), 16) <> 'AAA' THEN 1 END) AS followers FROM {table} t \
         WHERE t.custid IS NOT NULL"
    )
}

/// Reads all rows once, by ranges of the index as a load does.
pub(super) fn read(table: &str) -> String {
    format!(
        "DECLARE
  found NUMBER;
  first_key NUMBER := 0;
BEGIN
  WHILE first_key < {ROWS} LOOP
    SELECT /*+ INDEX(t {INDEX}) NO_BATCH_TABLE_ACCESS_BY_ROWID(t) NO_RESULT_CACHE */ COUNT(t.c2) INTO found
      FROM {table} t WHERE t.custid >= first_key AND t.custid < first_key + {PIECE_ROWS};
    first_key := first_key + {PIECE_ROWS};
  END LOOP;
END;"
    )
}

/// Changes rows one by one, each with this commit.
pub(super) fn commits(table: &str, commit: &str) -> String {
    format!(
        "BEGIN
  FOR at_key IN 1 .. {COMMITS} LOOP
    UPDATE {table} t SET t.c20 = 'y' WHERE t.custid = at_key;
    {commit}
  END LOOP;
END;"
    )
}

/// Both kinds of commit.
pub(super) const WAITING: &str = "COMMIT WRITE IMMEDIATE WAIT;";
pub(super) const PLAIN: &str = "COMMIT;";

/// Changes all rows.
pub(super) fn change_all(table: &str) -> String {
    format!("UPDATE {table} SET c20 = 'w'")
}

/// All of it for SQL*Plus, which asks for the login itself and writes what it sees into a file.
pub(super) fn script() -> String {
    let mut text = String::from(
        "-- The first contact of Plimsoll with an Oracle database, in ten minutes: sqlplus /nolog @first-contact.sql
-- It makes one table of 32 MiB and drops it at the end. It needs no pack. Log in to the pluggable database that is to be
-- tested, as a user whose default tablespace is not SYSTEM. It asks for the password twice.
-- Send us plimsoll-first-contact.txt: no password is in it.
ACCEPT login CHAR PROMPT 'Log in as user@service: '
SET LINESIZE 200 PAGESIZE 100 TAB OFF
COLUMN name FORMAT A50
SPOOL plimsoll-first-contact.txt
CONNECT &login
",
    );
    let counted = || [COUNTED.to_owned(), OWN_WAITS.to_owned()];
    let drop = Sql::drop_table(TABLE);
    write(
        &mut text,
        "release, longest names, container, last edge",
        [PRODUCT, COMPATIBLE, CONTAINER, LAST_EDGE].map(str::to_owned),
    );
    // Whatever has this name already is not ours, and must not be dropped.
    text.push_str("WHENEVER SQLERROR EXIT FAILURE\n");
    write(&mut text, "the table", [create(TABLE)]);
    text.push_str("WHENEVER SQLERROR CONTINUE\n");
    write(&mut text, "rows past the buffer cache, and where they lie", pin(TABLE, INDEX));
    write(&mut text, "4,096 rows, 4,096 blocks, no follower?", [load(TABLE), layout(TABLE)]);
    // What the session before has learned of these rows must not help.
    text.push_str("\nCONNECT &login\n");
    write(&mut text, "before reading", counted());
    for pass in ["after the first pass", "after the second pass"] {
        write(&mut text, pass, [read(TABLE)].into_iter().chain(counted()));
    }
    for (kind, commit) in [("after commits that wait", WAITING), ("after plain commits", PLAIN)] {
        write(&mut text, kind, [commits(TABLE, commit)].into_iter().chain(counted()));
    }
    write(&mut text, "writes before the checkpoint", [WRITTEN.to_owned()]);
    let change = [change_all(TABLE), "COMMIT".to_owned(), CHECKPOINT.to_owned(), WRITTEN.to_owned()];
    write(&mut text, "writes after the checkpoint", change);
    write(&mut text, "the table goes", [drop]);
    text.push_str("\nSPOOL OFF\nEXIT\n");
    text
}

/// Writes statements and blocks, each as SQL*Plus has it end, after words about them.
fn write(text: &mut String, words: &str, statements: impl IntoIterator<Item = String>) {
    let _ = write!(text, "\nPROMPT == {words}\n");
    for statement in statements {
        let is_block = ["DECLARE", "BEGIN"].iter().any(|begin| statement.starts_with(begin));
        let _ = writeln!(text, "{statement}{}", if is_block { "\n/" } else { ";" });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sql_plus_takes_every_line() {
        let text = script();
        for line in text.lines() {
            assert!(line.len() <= 2_000 && line.is_ascii(), "{line}");
            assert!(!line.starts_with("--") || !line.ends_with([';', '-']), "{line}");
            assert!(!line.contains('&') || line == "CONNECT &login", "{line}");
            assert!(!line.replace(":=", "").contains(" :"), "nothing is bound: {line}");
        }
        let lines = |wanted: &str| text.lines().filter(|line| *line == wanted).count();
        assert_eq!((lines("END;"), lines("/")), (5, 5), "each block is executed once");
    }

    #[test]
    fn the_table_is_ours_before_it_is_dropped_and_goes_last() {
        let text = script();
        let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("`{words}` is missing"));
        assert!(at("SQLERROR EXIT FAILURE") < at("CREATE TABLE plimsoll_try"));
        assert!(at("CREATE TABLE") < at("SQLERROR CONTINUE") && at("SQLERROR CONTINUE") < at("DROP TABLE"));
        assert!(text.ends_with("DROP TABLE plimsoll_try PURGE;\n\nSPOOL OFF\nEXIT\n"), "{text}");
        assert_eq!(text.matches("DROP TABLE").count(), 1);
    }

    #[test]
    fn each_row_has_a_key_of_its_own() {
        let mut keys: Vec<u64> = (0..ROWS).map(|place| place * STEP % ROWS).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len() as u64, ROWS);
        assert!(TABLE.len() <= 30 && INDEX.len() <= 30);
    }
}
