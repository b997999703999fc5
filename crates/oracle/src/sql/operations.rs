//! What an operation is, as a statement of its own and as part of a batch.

use super::names::{Commits, FIRST_COLUMN, Reads, Sql};
use ::sql::{COLUMNS, StatementKind};

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
pub(super) enum Keys<'a> {
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
    pub(super) fn reading(&self, schema: u32, into: &str, keys: Keys<'_>) -> String {
        let (index, table, condition) = (self.index(schema), self.table(schema), keys.condition());
        format!(
            "SELECT /*+ {} NO_RESULT_CACHE */ COUNT(t.c2){into} FROM {table} t WHERE {condition}",
            row_by_row(&index)
        )
    }

    pub(super) fn scanning(&self, schema: u32, into: &str) -> String {
        let table = self.scan_table(schema);
        format!("SELECT /*+ FULL(t) NO_PARALLEL(t) NO_RESULT_CACHE */ COUNT(t.c2){into} FROM {table} t")
    }

    /// With `values` for the columns that this kind changes.
    pub(super) fn updating(&self, schema: u32, kind: StatementKind, values: &[String], keys: Keys<'_>) -> String {
        let (hints, table, condition) = (self.hints(schema), self.table(schema), keys.condition());
        let set: Vec<String> =
            changed(kind).zip(values).map(|(column, value)| format!("t.c{column} = {value}")).collect();
        format!("UPDATE {hints} {table} t SET {} WHERE {condition}", set.join(", "))
    }

    /// PL/SQL that reads the keys from `first_key` to before `beyond_key` and has their count in `touched`.
    pub(super) fn reads_into_touched(&self, schema: u32) -> String {
        match self.reads() {
            Reads::Range => self.reading(schema, " INTO touched", Keys::Range("first_key", "beyond_key")) + ";",
            Reads::KeyByKey => {
                let reading = self.reading(schema, " INTO found", Keys::One("at_key"));
                each_key(&format!("{reading};\n  touched := touched + found;"))
            }
        }
    }

    /// PL/SQL that changes them to `parts(1)`, `parts(2)`, … and has their count in `touched`.
    pub(super) fn updates_into_touched(&self, schema: u32, kind: StatementKind) -> String {
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
    pub(super) fn commit(&self) -> &'static str {
        match self.commits() {
            Commits::Wait => "COMMIT WRITE IMMEDIATE WAIT;",
            Commits::Slob => "COMMIT;",
        }
    }

    /// What an update writes, column by column.
    pub(super) fn parts_declaration(&self) -> String {
        let bytes = self.column_bytes();
        format!("  TYPE texts IS TABLE OF VARCHAR2({bytes}) INDEX BY PLS_INTEGER;\n  parts texts;\n")
    }

    /// What a loop over keys uses.
    pub(super) fn loop_variables(&self) -> &'static str {
        match self.reads() {
            Reads::Range => "",
            Reads::KeyByKey => "  at_key NUMBER;\n  found NUMBER;\n",
        }
    }

    /// Rows are found by a range of the index and fetched one by one, as far as a hint decides that.
    pub(super) fn hints(&self, schema: u32) -> String {
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
pub(super) fn changed(kind: StatementKind) -> impl Iterator<Item = u32> {
    let last = FIRST_COLUMN + COLUMNS - 1;
    (FIRST_COLUMN..=last)
        .filter(move |column| kind == StatementKind::UpdateHeavy || [FIRST_COLUMN, last].contains(column))
}

/// `text` with so many spaces before each line.
pub(super) fn indented(text: &str, spaces: usize) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("{:spaces$}{line}", "")).collect();
    lines.join("\n")
}

/// The names that are bound, in order.
#[cfg(test)]
pub(super) fn placeholders(text: &str) -> Vec<&str> {
    let begins = text.match_indices(':').filter(|(at, _)| text[at + 1..].starts_with(|c: char| c.is_ascii_lowercase()));
    begins
        .map(|(at, _)| {
            let name = &text[at + 1..];
            &name[..name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len())]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::names::Layout;
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
