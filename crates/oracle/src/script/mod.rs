//! Everything that would be sent to an Oracle server, as a script for SQL*Plus: for an administrator who wants to read first, and
//! for the check that a parser understands it all.

mod load;
#[cfg(test)]
mod tests;

use std::fmt::Write;

use super::sql::{Layout, Need, Sql, grants};
use crate::Connector;
use crate::data::orders::{ROOM, ddl};
use crate::orders::texts;
use crate::sql::{
    DESCRIBED, Fill, ORDERS, PLACE, PRIVILEGES, PRODUCT, QUOTAS, READY_PLACE, SESSION, SLOB, SLOB_BLOCK_BYTES,
    SLOB_OWNERS, WAIT_FOR_TABLES,
};
use ::sql::StatementKind;
use ::sql::data::catalog::{FORMAT_VERSION, LOAD_TABLE};
use ::sql::data::{DATA_TABLE, DataSet, Stage, TableId, TableKind};
use ::sql::orders::load::procedure::Procedure;
use ::sql::orders::{OrdersData, OrdersDialect as _, Parts};
use model::config::{RedoStress, SlobParameters};
use model::workload::orders::Table;
use targets::database::{Filling, Replace, SetupRequest};
use targets::orders::{Indexes, OrdersRequest};

/// What a script is for.
#[derive(Debug, Clone)]
pub struct Script {
    sql: Sql,
    tablespace: String,
    data: DataSet,
    /// How updates change rows, if there are any.
    updates: Option<StatementKind>,
    has_scans: bool,
    work_unit: u32,
}

/// One thing that is sent, or a group of its like of which this is the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What it is for.
    pub why: String,
    /// What is bound, in order.
    pub values: Vec<(String, Value)>,
    /// The statement or block, without what ends it.
    pub text: String,
    /// Whether it is a block of PL/SQL.
    pub is_block: bool,
    /// Whether the script executes it, or only shows it.
    pub is_shown_only: bool,
}

/// A value that is bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A number.
    Number(i64),
    /// An expression that is a text, or a RAW as hexadecimal digits.
    Text(String),
    /// A number that comes back.
    OutNumber,
    /// A RAW that comes back, as hexadecimal digits.
    OutText,
}

/// Some parts that belong together, with what to know of them all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// What they do.
    pub title: &'static str,
    /// What to know.
    pub words: Vec<String>,
    /// The parts.
    pub parts: Vec<Part>,
}

impl Part {
    fn new(why: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let is_block = text.starts_with("DECLARE") || text.starts_with("BEGIN");
        Self { why: why.into(), values: Vec::new(), text, is_block, is_shown_only: false }
    }

    fn with(mut self, name: &str, value: Value) -> Self {
        self.values.push((name.to_owned(), value));
        self
    }

    fn shown_only(self) -> Self {
        Self { is_shown_only: true, ..self }
    }
}

impl Script {
    /// For the data of a request and a load with these parameters. `sql` says in whose schema, and in which way.
    pub fn new(sql: Sql, tablespace: &str, request: &SetupRequest, parameters: &SlobParameters) -> Self {
        let updates = (parameters.update_pct > 0).then_some(match parameters.redo_stress {
            RedoStress::Lite => StatementKind::UpdateLite,
            RedoStress::Heavy => StatementKind::UpdateHeavy,
        });
        Self {
            data: DataSet::wanted(request, FORMAT_VERSION, sql.column_bytes()),
            sql,
            tablespace: tablespace.to_owned(),
            updates,
            has_scans: parameters.scan_pct > 0 && request.scan_blocks > 0,
            work_unit: parameters.work_unit,
        }
    }

    /// All of it, in the order in which it is sent.
    pub fn sections(&self) -> Vec<Section> {
        let has_own_tables = self.sql.layout() == Layout::Plimsoll;
        let mut sections = vec![self.looking()];
        if has_own_tables {
            sections.extend([self.making(), self.loading()]);
        }
        sections.extend([self.proving(), self.operating()]);
        if has_own_tables {
            sections.extend([self.verifying(), self.removing()]);
        }
        sections
    }

    /// As SQL*Plus reads it.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.write_head(&mut text);
        for section in self.sections() {
            let _ = write!(text, "\n-- == {}\n", section.title);
            section.words.iter().for_each(|words| comment(&mut text, words));
            section.parts.iter().for_each(|part| write_part(&mut text, part));
        }
        text.push_str("\nEXIT SUCCESS COMMIT\n");
        text
    }

    fn write_head(&self, text: &mut String) {
        let user = self.sql.owner();
        comment(
            text,
            &format!("What Plimsoll {} sends to Oracle, to be read and tried in SQL*Plus.", self.data.plimsoll_version),
        );
        comment(
            text,
            "It was never tried on a real server: a parser has read every statement, and that is all. Try it on a \
            server that may break.",
        );
        comment(text, &format!("Log in as {user}. An administrator grants what is needed first, and no role:"));
        text.push('\n');
        let mut last = None;
        for grant in grants(user, &self.tablespace) {
            if last != Some(grant.need) {
                comment(text, words_of(grant.need));
                last = Some(grant.need);
            }
            // Without a semicolon, which SQL*Plus would see at the end of a line whatever stands before it.
            let _ = writeln!(text, "--     {}   -- {}", grant.statement, grant.why);
        }
        if self.sql.layout() == Layout::Slob {
            comment(text, "For SLOB's own tables, granted by their users or an administrator:");
            for schema in 0..self.data.schemas {
                for grant in Sql::slob_grants(user, schema, self.updates.is_some()) {
                    let _ = writeln!(text, "--     {grant}");
                }
            }
        }
        text.push_str(
            "\nSET DEFINE OFF\nSET SQLBLANKLINES ON\nSET LINESIZE 200\nWHENEVER SQLERROR EXIT FAILURE ROLLBACK\n",
        );
    }
}

fn words_of(need: Need) -> &'static str {
    match need {
        Need::Load => "For any load:",
        Need::Setup => "For data that set-up makes:",
        Need::Orders => "Only for order entry that set-up makes:",
        Need::Figures => "For figures of the server; without one, what it shows is unknown:",
        Need::Container => "For figures of a pluggable database by itself:",
        Need::Cluster => "For figures of each instance of a cluster over one address:",
        Need::ClusterContainer => "For those of a pluggable database on each instance:",
        Need::Awr => "Only with an AWR report, and only where the Diagnostics Pack is licensed:",
        Need::Statspack => "Only with a Statspack report:",
    }
}

/// Writes words as lines of a comment. None ends with what SQL*Plus takes for an end or for going on.
fn comment(text: &mut String, words: &str) {
    let mut line = String::from("--");
    for word in words.split(' ') {
        if line.len() + word.len() > 110 {
            let _ = writeln!(text, "{line}");
            line = String::from("--");
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(text, "{line}");
}

fn write_part(text: &mut String, part: &Part) {
    text.push('\n');
    comment(text, &part.why);
    if part.is_shown_only {
        part.text.lines().for_each(|line| {
            let _ = writeln!(text, "--     {line}");
        });
        return;
    }
    for (name, value) in &part.values {
        let kind = match value {
            Value::Number(_) | Value::OutNumber => "NUMBER",
            Value::Text(_) | Value::OutText => "VARCHAR2(4000)",
        };
        let _ = writeln!(text, "VARIABLE {name} {kind}");
        match value {
            Value::Number(number) => {
                let _ = writeln!(text, "EXEC :{name} := {number}");
            }
            Value::Text(expression) => {
                let _ = writeln!(text, "EXEC :{name} := {expression}");
            }
            Value::OutNumber | Value::OutText => {}
        }
    }
    let end = if part.is_block { "\n/" } else { ";" };
    let _ = writeln!(text, "{}{end}", part.text);
    for (name, value) in &part.values {
        if matches!(value, Value::OutNumber | Value::OutText) {
            let _ = writeln!(text, "PRINT {name}");
        }
    }
}

/// Each statement and block of set-up, load and removal for data of this user, as it is sent; what is no block ends without a
/// semicolon.
pub fn order_entry(user: &str) -> Vec<String> {
    let sql = Sql::new(user, 0);
    let mut all: Vec<String> = sql.create_own_tables(&ORDERS).into_iter().map(|(_, statement)| statement).collect();
    all.extend([
        DESCRIBED.to_owned(),
        ROOM.to_owned(),
        ORDERS.own_columns(),
        ORDERS.descriptor_columns(),
        sql.insert_descriptor(&ORDERS),
        sql.read_descriptor(&ORDERS),
        sql.insert_mark(&ORDERS),
        sql.set_stage(&ORDERS),
        ddl::parts_there(),
        ddl::procedures_there(user),
        ddl::broken_procedures(),
    ]);
    for partitions in [0, 32] {
        let data = OrdersData::wanted(&OrdersRequest {
            scale: 1.0,
            partitions,
            indexes: Indexes::All,
            streams: 1,
            seed: 42,
            is_seed_asked: true,
            replace: Replace::Refuse,
        });
        let made = |table| Connector::create_orders_table(user, &data, table, String::new()).remove(1);
        all.extend(Table::ALL.map(made));
        let jobs = Connector::steps(user, &data, &Parts::new()).into_iter().flat_map(|step| step.jobs);
        all.extend(jobs.flat_map(|job| job.statements));
    }
    all.extend(Table::ALL.map(|table| crate::data::orders::insert_rows(user, table)));
    all.extend(Table::ALL.map(|table| ddl::gather_statistics(user, table)));
    all.extend(texts(user));
    all.extend(Procedure::all::<Connector>(user).into_iter().map(|procedure| procedure.text));
    all.extend(ddl::drops(user));
    all
}

/// Rows that a script reads where a set-up would read all.
const SHOWN_ROWS: i64 = 10;

impl Script {
    fn looking(&self) -> Section {
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
                Part::new("Whether a data set is described there (if the answer is 3)", SLOB.descriptor_columns()),
            ]),
            Layout::Slob => parts.extend([
                Part::new("Whose tables of SLOB's can be seen", SLOB_OWNERS),
                Part::new("How large a block is", SLOB_BLOCK_BYTES),
            ]),
        }
        Section { title: "Looking", words: vec!["Nothing is changed.".to_owned()], parts }
    }

    fn making(&self) -> Section {
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
            Part::new("The row that setup and drop lock; ORA-00001 says that it exists", sql.insert_lock()),
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

    fn loading(&self) -> Section {
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
            Part::new("The data is whole", sql.set_stage(&SLOB)).with("stage", stage(Stage::Ready)),
            Part::new("Before the marks go", "COMMIT"),
            Part::new("They are not needed any more", Sql::drop_table(&sql.qualified(LOAD_TABLE))),
        ]);
        let words = vec![
            "Plimsoll sends rows with their contents. A script cannot, so here the server makes them. Keys are the \
            same in another order. Contents take milliseconds a row, unless they repeat."
                .to_owned(),
        ];
        Section { title: "Loading rows", words, parts }
    }

    fn verifying(&self) -> Section {
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

    fn removing(&self) -> Section {
        let sql = &self.sql;
        let tables = self.data.tables().map(|table| self.name_of(table));
        let own = SLOB.own_tables().into_iter().map(|name| sql.qualified(name));
        let drop = |table: String| Part::new("ORA-00942 says that it is gone already", Sql::drop_table(&table));
        let first = [
            Part::new("Waits five seconds for sessions that use a table", WAIT_FOR_TABLES),
            Part::new("From here on the data is gone", sql.set_stage(&SLOB)).with("stage", stage(Stage::Dropping)),
        ];
        let parts = first.into_iter().chain(tables.chain(own).map(drop)).map(Part::shown_only).collect();
        let words =
            vec![format!("What `plimsoll slob drop` sends, shown only. The table {DATA_TABLE} goes after the data.")];
        Section { title: "Removing", words, parts }
    }

    fn name_of(&self, table: TableId) -> String {
        match table.kind {
            TableKind::Rows => self.sql.table(table.schema),
            TableKind::Scan => self.sql.scan_table(table.schema),
        }
    }

    fn repeated(&self, characters: u32) -> String {
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
