//! How rows lie and how they would be read: questions, and what answers mean; and reading a whole data set.

use super::names::{Reads, Sql, columns};
use super::{Keys, changed};
use ::sql::StatementKind;

/// The shape of a table, `:table_owner` and `:table_name`, in one row: free percent, compression, partitioned, kind of
/// index-organised table, cluster, degree of parallel reading, rows and blocks as the server has learned them.
pub const SHAPE_OF: &str = "SELECT pct_free, compression, partitioned, iot_type, cluster_name, TRIM(degree), num_rows, blocks \
    FROM all_tables WHERE owner = :table_owner AND table_name = :table_name";

/// Its columns: how many, and how many of them are filling of the bytes in `:column_bytes`.
pub const COLUMNS_OF: &str = "SELECT COUNT(*), COUNT(CASE WHEN data_type = 'VARCHAR2' AND data_length = :column_bytes THEN 1 END) \
    FROM all_tab_columns WHERE owner = :table_owner AND table_name = :table_name";

/// Its indexes, a row for each column of each: name, column, place of the column, `UNIQUE` or not, status (`VALID`), visibility.
pub const INDEXES_OF: &str = "SELECT c.index_name, c.column_name, c.column_position, i.uniqueness, i.status, i.visibility \
    FROM all_ind_columns c JOIN all_indexes i ON i.owner = c.index_owner AND i.index_name = c.index_name \
    WHERE c.table_owner = :table_owner AND c.table_name = :table_name ORDER BY c.index_name, c.column_position";

/// Its triggers that are switched on.
pub const TRIGGERS_OF: &str = "SELECT trigger_name FROM all_triggers WHERE table_owner = :table_owner \
    AND table_name = :table_name AND status = 'ENABLED'";

/// How often this session has read a row that goes on in another block, so far. Wants `v$mystat` and `v$statname`.
pub const CONTINUED_ROWS: &str = "SELECT s.value FROM v$mystat s JOIN v$statname n ON n.statistic# = s.statistic# \
    WHERE n.name = 'table fetch continued row'";

/// What the server would do with the statement that was explained last, in order: operation, options, name of the object.
pub const PLAN: &str =
    "SELECT operation, options, object_name FROM plan_table WHERE statement_id = 'plimsoll' ORDER BY id";

/// What the server really did with reads and updates of sessions with the module `:module` on tables of ours or SLOB's: statement and
/// the number of its plan, operation, options, name of the object, in order. They are known by the hint that nothing else has: a
/// proof asks the same tables other questions, with other plans. Wants `v$sql` and `v$sql_plan`.
pub const EXECUTED_PLANS: &str = "SELECT q.sql_id || '/' || q.child_number AS statement, p.operation, p.options, p.object_name \
    FROM v$sql q \
    JOIN v$sql_plan p ON p.sql_id = q.sql_id AND p.child_number = q.child_number \
    WHERE q.module = :module AND REGEXP_LIKE(q.sql_text, '(slob_[0-9]+|cf1) t', 'i') \
    AND REGEXP_LIKE(q.sql_text, 'NO_BATCH_TABLE_ACCESS_BY_ROWID', 'i') ORDER BY q.sql_id, q.child_number, p.id";

/// Has a statement explained, in which nothing is bound.
pub fn explain(statement: &str) -> String {
    format!("EXPLAIN PLAN SET STATEMENT_ID = 'plimsoll' FOR {statement}")
}

/// One line of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanLine {
    /// Such as `TABLE ACCESS`.
    pub operation: String,
    /// Such as `BY INDEX ROWID`; none for some.
    pub options: Option<String>,
    /// What it is done on, as the data dictionary calls it.
    pub object: Option<String>,
}

/// What a plan does instead of fetching rows one by one by a scan of this index, in words.
pub fn plan_fault(plan: &[PlanLine], index: &str) -> Option<String> {
    let words = |line: &PlanLine| {
        let parts = [Some(line.operation.as_str()), line.options.as_deref()];
        let what = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
        line.object.as_ref().map_or_else(|| what.clone(), |object| format!("{what} on {object}"))
    };
    let reads = |line: &&PlanLine| {
        ["TABLE ACCESS", "INDEX", "PX", "BITMAP"].iter().any(|word| line.operation.starts_with(word))
    };
    let is_index = |line: &PlanLine| {
        line.operation == "INDEX"
            && line.options.as_deref().is_some_and(|how| ["RANGE SCAN", "UNIQUE SCAN"].contains(&how))
            && line.object.as_deref().is_some_and(|object| object.eq_ignore_ascii_case(index))
    };
    let is_fetch =
        |line: &PlanLine| line.operation == "TABLE ACCESS" && line.options.as_deref() == Some("BY INDEX ROWID");
    // An update that changes no column of the index finds its rows by the index alone: it fetches them when it changes them.
    let is_update = plan.iter().any(|line| line.operation == "UPDATE");
    let reading: Vec<&PlanLine> = plan.iter().filter(reads).collect();
    match reading.as_slice() {
        [fetch, scan] if is_fetch(fetch) && is_index(scan) => None,
        [scan] if is_update && is_index(scan) => None,
        [] => Some("a plan that reads nothing".to_owned()),
        all => {
            let other = all.iter().find(|line| !is_index(line) && !is_fetch(line));
            Some(other.map_or_else(|| format!("only {}", words(all[0])), |line| words(line)))
        }
    }
}

/// The block in which a row lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// Number of its file in the tablespace.
    pub file: u32,
    /// Number of the block in the file.
    pub block: u64,
}

impl Address {
    /// Of a ROWID as text: six digits of the object, three of the file, six of the block and three of the row, each worth 64.
    pub fn of(rowid: &str) -> Option<Self> {
        let digits = rowid.as_bytes();
        if digits.len() != 18 {
            return None;
        }
        let number = |digits: &[u8]| digits.iter().try_fold(0_u64, |sum, digit| Some(sum * 64 + worth(*digit)?));
        number(&digits[..6])?;
        number(&digits[15..])?;
        Some(Self { file: u32::try_from(number(&digits[6..9])?).ok()?, block: number(&digits[9..15])? })
    }
}

fn worth(digit: u8) -> Option<u64> {
    let worth = match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u64::from(worth))
}

impl Sql {
    /// The lowest and the highest value of `custid`, one from each end of the index.
    pub fn ends(&self, schema: u32) -> String {
        let (table, index) = (self.table(schema), self.index(schema));
        format!(
            "SELECT (SELECT /*+ INDEX(t {index}) */ MIN(t.custid) FROM {table} t) AS lowest, \
             (SELECT /*+ INDEX(t {index}) */ MAX(t.custid) FROM {table} t) AS highest FROM dual"
        )
    }

    /// Some rows, from `:first_key` to before `:beyond_key` in the order of keys: `custid`, ROWID as text and whether the first and
    /// the last column are there (1 or 0), for which the whole row is read.
    pub fn sample(&self, schema: u32) -> String {
        format!(
            "SELECT {} t.custid, ROWIDTOCHAR(t.ROWID) AS address, NVL2(t.c2, NVL2(t.c20, 1, 0), 0) AS filled FROM {} t \
             WHERE t.custid >= :first_key AND t.custid < :beyond_key ORDER BY t.custid",
            self.hints(schema),
            self.table(schema)
        )
    }

    /// Rows of a whole table, and those of them that are not the first of their block, from the index alone. Where none is, each lies
    /// in a block of its own: no two rows of a block have the same number in it, and counting them sorts nothing.
    pub fn rows_and_followers(&self, schema: u32) -> String {
        format!(
            "SELECT /*+ INDEX_FFS(t {}) NO_PARALLEL(t) */ COUNT(*), COUNT(CASE WHEN SUBSTR(ROWIDTOCHAR(t.ROWID), 16) <> 'AAA' THEN 1 END) \
             FROM {} t WHERE t.custid IS NOT NULL",
            self.index(schema),
            self.table(schema)
        )
    }

    /// The same rows, and blocks in which they lie, which sorts all of their addresses: where some are not the first of their block,
    /// they may still be its only ones. The middle of a ROWID is file and block, what
    /// `DBMS_ROWID.ROWID_RELATIVE_FNO` and `ROWID_BLOCK_NUMBER` give, without two calls of PL/SQL for each row.
    pub fn rows_and_blocks(&self, schema: u32) -> String {
        format!(
            "SELECT /*+ INDEX_FFS(t {}) NO_PARALLEL(t) */ COUNT(*), COUNT(DISTINCT SUBSTR(ROWIDTOCHAR(t.ROWID), 7, 9)) \
             FROM {} t WHERE t.custid IS NOT NULL",
            self.index(schema),
            self.table(schema)
        )
    }

    /// The statements whose plans are looked at: reading, and each kind of update that is asked for, as the server executes them, but
    /// with values in the place of what is bound.
    pub fn to_explain(&self, schema: u32, updates: &[StatementKind]) -> Vec<String> {
        let keys = match self.reads() {
            Reads::Range => Keys::Range("0", "64"),
            Reads::KeyByKey => Keys::One("0"),
        };
        let updating = |kind: &StatementKind| {
            let values: Vec<String> = changed(*kind).map(|_| "'x'".to_owned()).collect();
            self.updating(schema, *kind, &values, keys)
        };
        std::iter::once(self.reading(schema, "", keys)).chain(updates.iter().map(updating)).collect()
    }

    /// Rows with keys from `:first_key` to before `:beyond_key`, in their order: `custid`, ROWID as text, and the bytes of all
    /// filling. `table` is qualified. The scan table has no index, so there it reads all of it each time: ask once.
    pub fn filled_rows(&self, table: &str) -> String {
        let bytes: Vec<String> = columns().map(|column| format!("NVL(LENGTHB(t.{column}), 0)")).collect();
        format!(
            "SELECT t.custid, ROWIDTOCHAR(t.ROWID) AS address, {} AS filling FROM {table} t \
             WHERE t.custid >= :first_key AND t.custid < :beyond_key ORDER BY t.custid",
            bytes.join(" + ")
        )
    }

    /// Rows that set-up did not put there: with keys below `:lowest_key` or from `:beyond_key` on, or without one.
    pub fn strange_rows(&self, table: &str) -> String {
        format!(
            "SELECT COUNT(*) FROM {table} t WHERE t.custid < :lowest_key OR t.custid >= :beyond_key OR t.custid IS NULL"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::placeholders;
    use super::*;

    fn line(operation: &str, options: &str, object: &str) -> PlanLine {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        PlanLine { operation: operation.to_owned(), options: some(options), object: some(object) }
    }

    #[test]
    fn only_rows_one_by_one_by_the_index_are_accepted() {
        let select = line("SELECT STATEMENT", "", "");
        let fetch = line("TABLE ACCESS", "BY INDEX ROWID", "SLOB_1");
        let scan = line("INDEX", "RANGE SCAN", "SLOB_1_KEY");
        let fault = |lines: &[&PlanLine]| {
            let plan: Vec<PlanLine> = lines.iter().map(|line| (*line).clone()).collect();
            plan_fault(&plan, "slob_1_key")
        };
        let rest = [&line("SORT", "AGGREGATE", ""), &line("FILTER", "", "")];
        assert_eq!(fault(&[&select, rest[0], rest[1], &fetch, &scan]), None);
        assert_eq!(fault(&[&select, &fetch, &line("INDEX", "UNIQUE SCAN", "SLOB_1_KEY")]), None);
        assert_eq!(fault(&[&line("UPDATE STATEMENT", "", ""), &line("UPDATE", "", "SLOB_1"), &scan]), None);
        let others = [
            (vec![&select], "a plan that reads nothing"),
            (vec![&select, &scan], "only INDEX RANGE SCAN on SLOB_1_KEY"),
        ];
        for (plan, words) in others {
            assert_eq!(fault(&plan).as_deref(), Some(words));
        }
        for other in [
            line("TABLE ACCESS", "FULL", "SLOB_1"),
            line("TABLE ACCESS", "BY INDEX ROWID BATCHED", "SLOB_1"),
            line("PX COORDINATOR", "", ""),
            line("INDEX", "RANGE SCAN", "MINE"),
            line("INDEX", "FAST FULL SCAN", "SLOB_1_KEY"),
        ] {
            let words = fault(&[&select, &other, &scan]).unwrap();
            assert!(words.starts_with(&other.operation), "{words}");
        }
    }

    #[test]
    fn a_rowid_names_its_block() {
        assert_eq!(Address::of("AAAR3sAAEAAAACXAAA"), Some(Address { file: 4, block: 151 }));
        assert_eq!(Address::of("AAAR3sAAEAAAACX+/9").map(|address| address.block), Some(151), "whichever row of it");
        for text in ["", "AAAR3sAAEAAAACXAA", "AAAR3sAAEAAAACXAA*", "AAAR3sAAE.AAACXAAA", "äAAR3sAAEAAAACXAA"] {
            assert_eq!(Address::of(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_explained_is_what_is_executed() {
        let sql = Sql::new("PLIMSOLL", 8192);
        let explained = sql.to_explain(0, &[StatementKind::UpdateLite, StatementKind::UpdateHeavy]);
        assert_eq!(explained[0], sql.read(0).text.replace(":first_key", "0").replace(":beyond_key", "64"));
        assert!(
            explained[1].starts_with("UPDATE /*+ INDEX(t slob_1_key)") && explained[1].contains("t.c20 = 'x' WHERE")
        );
        assert!(explained.iter().all(|text| !text.contains(':')), "nothing is bound: {explained:?}");
        let by_key = sql.with_reads(Reads::KeyByKey).to_explain(0, &[]);
        assert!(by_key.len() == 1 && by_key[0].ends_with("t.custid = 0"), "{by_key:?}");
    }

    #[test]
    fn plans_that_were_executed_are_those_of_the_load_and_one_each() {
        let sql = Sql::new("PLIMSOLL", 8192);
        let hint = "NO_BATCH_TABLE_ACCESS_BY_ROWID";
        assert!(EXECUTED_PLANS.contains(&format!("'{hint}'")));
        assert!(sql.to_explain(0, &[StatementKind::UpdateLite]).iter().all(|text| text.contains(hint)));
        for other in [
            sql.ends(0),
            sql.rows_and_followers(0),
            sql.rows_and_blocks(0),
            sql.filled_rows("t"),
            sql.strange_rows("t"),
        ] {
            assert!(!other.contains(hint), "{other}");
        }
        assert!(
            EXECUTED_PLANS.starts_with("SELECT q.sql_id || '/' || q.child_number AS "),
            "a statement may have several"
        );
    }

    #[test]
    fn every_column_counts() {
        let rows = Sql::new("PLIMSOLL", 8192).filled_rows("t");
        assert_eq!(rows.matches("LENGTHB(t.c").count(), 19);
        assert_eq!(placeholders(&rows), ["first_key", "beyond_key"]);
    }
}
