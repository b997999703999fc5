//! Looking what there is, making data, reading all of them and removing them.

use super::{Part, Script, Section, Value};
use crate::sql::{
    Fill, Layout, PLACE, PRIVILEGES, PRODUCT, QUOTAS, READY_PLACE, SESSION, SLOB, SLOB_BLOCK_BYTES, SLOB_OWNERS, Sql,
    WAIT_FOR_TABLES,
};
use ::sql::data::catalog::{FORMAT_VERSION, LOAD_TABLE};
use ::sql::data::{DATA_TABLE, Stage, TableId, TableKind};
use targets::database::Filling;

/// Rows that a script reads where a set-up would read all.
const SHOWN_ROWS: i64 = 10;

impl Script {
    pub(super) fn looking(&self) -> Section {
        let mut parts = vec![
            Part::new("Which product, and which version of it", PRODUCT),
            Part::new("Where the session has landed", SESSION),
            Part::new("What the user may do", PRIVILEGES),
        ];
        match self.sql.layout() {
            Layout::Plimsoll => parts.extend([
                Part::new("Where tables are made, and how large a block is there", PLACE),
                Part::new("How much of it the user may have", QUOTAS)
                    .with("tablespace_name", Value::Text(text_of(&self.tablespace))),
                Part::new("Which of our tables there are", SLOB.objects()),
                Part::new("Whether tables with names of our own are ours, by their columns", SLOB.own_columns()),
                Part::new(
                    "Whether data are described there, which is so if the answer is 3",
                    SLOB.descriptor_columns(),
                ),
            ]),
            Layout::Slob => parts.extend([
                Part::new("Whose tables of SLOB's can be seen", SLOB_OWNERS),
                Part::new("How large a block is", SLOB_BLOCK_BYTES),
            ]),
        }
        Section { title: "Looking", words: vec!["Nothing is changed.".to_owned()], parts }
    }

    pub(super) fn making(&self) -> Section {
        let sql = &self.sql;
        let own = sql.create_own_tables(&SLOB);
        let descriptor = serde_json::to_string(&self.data).expect("a descriptor has no value that JSON lacks");
        let mut parts: Vec<Part> = own
            .into_iter()
            .map(|(name, statement)| {
                Part::new(format!("Our own table {name}; ORA-00955 says that it is there already"), statement)
            })
            .collect();
        parts.extend([
            Part::new("What is locked by whoever makes or removes data; ORA-00001 says that it is there", sql.insert_lock()),
            Part::new("Before others see it", "COMMIT"),
            Part::new(
                "The lock, in a session that does nothing else: here it ends with the next statement on the data dictionary",
                sql.lock(),
            ),
            Part::new("What data these are to become", sql.insert_descriptor(&SLOB))
                .with("format", Value::Number(FORMAT_VERSION.into()))
                .with("stage", stage(Stage::Loading))
                .with("descriptor", Value::Text(text_of(&descriptor))),
            Part::new("Before tables are made", "COMMIT"),
        ]);
        for table in self.data.tables() {
            let name = self.name_of(table);
            let mut row =
                Part::new("One row, so that the next statement has something to count", sql.insert_row(&name))
                    .with("custid", Value::Number(0));
            for column in 2..=20 {
                row = row.with(&format!("c{column}"), Value::Text(self.repeated(self.data.column_bytes)));
            }
            parts.extend([
                Part::new(format!("The table {}, whose blocks are kept free", table.name()), sql.create_table(&name)),
                row,
                Part::new("Before the server counts it", "COMMIT"),
                Part::new("No block takes more rows than the fullest has now", Sql::minimize(&name)),
                Part::new("That stays when the row goes", Sql::truncate(&name)),
                self.mark("The table is ready for rows", table, READY_PLACE, 0),
                Part::new("Before rows come", "COMMIT"),
            ]);
        }
        Section { title: "Making tables", words: Vec::new(), parts }
    }

    pub(super) fn loading(&self) -> Section {
        let (sql, data) = (&self.sql, &self.data);
        let mut parts = Vec::new();
        for table in data.tables() {
            let name = self.name_of(table);
            let rows = data.rows_of(table);
            let first = self.name_of(TableId { schema: 0, ..table });
            let seed = data.seed.wrapping_add(u64::from(table.schema));
            let fill = match data.filling {
                _ if table.schema > 0 => Fill::CopyOf { table: &first, seed },
                Filling::Incompressible => Fill::Random { rows, seed },
                Filling::Compressible => Fill::Repeated { rows, seed },
            };
            parts.extend([
                Part::new(
                    format!("Sent with arrays of rows until there are {rows}: keys in an order that scatters them"),
                    sql.insert_rows(&name),
                )
                .shown_only(),
                Part::new("In its place here, rows that the server makes", sql.fill(&name, fill)),
                self.mark("In the same transaction, that they are there", table, 0, rows as i64),
                Part::new("Both or neither", "COMMIT"),
            ]);
        }
        for schema in 0..data.schemas {
            parts.push(Part::new("The index on the keys", sql.create_index(schema)));
        }
        for table in data.tables() {
            parts.push(
                Part::new("Statistics, which are then kept as they are", sql.gather_statistics())
                    .with("table_name", Value::Text(text_of(&table.name().to_uppercase()))),
            );
        }
        parts.extend([
            Part::new("The data are whole", sql.set_stage(&SLOB)).with("stage", stage(Stage::Ready)),
            Part::new("Before the marks go", "COMMIT"),
            Part::new("Nobody needs them any more", Sql::drop_table(&sql.qualified(LOAD_TABLE))),
        ]);
        let words = vec![
            "Plimsoll sends rows with their contents. A script cannot, so here the server makes them: with the same keys in \
             another order, and with contents that take it milliseconds a row unless they are to repeat."
                .to_owned(),
        ];
        Section { title: "Loading rows", words, parts }
    }

    pub(super) fn verifying(&self) -> Section {
        let mut parts = Vec::new();
        for table in self.data.tables() {
            let name = self.name_of(table);
            let rows = self.data.rows_of(table) as i64;
            parts.extend([
                Part::new("Which rows there are, and how much filling each has", self.sql.filled_rows(&name))
                    .with("first_key", Value::Number(0))
                    .with("beyond_key", Value::Number(SHOWN_ROWS.min(rows))),
                Part::new("How many are there that do not belong", self.sql.strange_rows(&name))
                    .with("lowest_key", Value::Number(0))
                    .with("beyond_key", Value::Number(rows)),
            ]);
        }
        let words =
            vec![format!("`plimsoll slob verify` reads all rows; here are the first {SHOWN_ROWS} of each table.")];
        Section { title: "Verifying", words, parts }
    }

    pub(super) fn removing(&self) -> Section {
        let sql = &self.sql;
        let tables = self.data.tables().map(|table| self.name_of(table));
        let own = SLOB.own_tables().into_iter().map(|name| sql.qualified(name));
        let drop = |table: String| Part::new("ORA-00942 says that it is gone already", Sql::drop_table(&table));
        let first = [
            Part::new("Whoever uses a table is waited for, for five seconds", WAIT_FOR_TABLES),
            Part::new("From here on the data are no more", sql.set_stage(&SLOB)).with("stage", stage(Stage::Dropping)),
        ];
        let parts = first.into_iter().chain(tables.chain(own).map(drop)).map(Part::shown_only).collect();
        let words =
            vec![format!("What `plimsoll slob drop` sends, shown only. The table {DATA_TABLE} goes after the data.")];
        Section { title: "Removing", words, parts }
    }

    pub(super) fn name_of(&self, table: TableId) -> String {
        match table.kind {
            TableKind::Rows => self.sql.table(table.schema),
            TableKind::Scan => self.sql.scan_table(table.schema),
        }
    }

    pub(super) fn repeated(&self, characters: u32) -> String {
        format!("RPAD('PLIMSOLL', {characters}, 'PLIMSOLL')")
    }

    fn mark(&self, why: &str, table: TableId, first_place: i64, places: i64) -> Part {
        Part::new(why, self.sql.insert_mark(&SLOB))
            .with("is_scan", Value::Number((table.kind == TableKind::Scan).into()))
            .with("slob_schema", Value::Number(table.schema.into()))
            .with("first_place", Value::Number(first_place))
            .with("places", Value::Number(places))
    }
}

fn stage(stage: Stage) -> Value {
    Value::Text(text_of(stage.word()))
}

/// As a literal.
fn text_of(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
