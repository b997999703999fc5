//! Everything that would be sent to an Oracle server, as a script for SQL*Plus: for an administrator who wants to read first, and
//! for the check that a parser understands it all.

mod load;
mod orders;
mod setup;
#[cfg(test)]
mod tests;

use std::fmt::Write;

pub use orders::order_entry;

use super::sql::{Layout, Need, Sql, grants};
use ::sql::StatementKind;
use ::sql::data::DataSet;
use ::sql::data::catalog::FORMAT_VERSION;
use model::config::{RedoStress, SlobParameters};
use targets::database::SetupRequest;

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
            "Nobody has run it on a real server yet: a parser has read every statement, and that is all. Try it on a server that \
             may break.",
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
