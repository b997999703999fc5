//! Tables that another program's report holds.

use serde::{Deserialize, Serialize};

/// A table of an imported report: figures of many things of one kind, such as tablespaces, or of a subject that no field of the
/// record has, such as the memory of an instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ReportedTable {
    /// What it is about. The same subject has the same name whatever release or form of the report it comes from.
    pub subject: String,
    /// Section of the source that it was read from, as it is titled there.
    pub source: String,
    /// Database instance that it is of; absent where it is of all of them, or names them in its rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Layer at which its figures were measured, as [`super::ReportedFigure::layer`] has it, or `storage cell`.
    pub layer: String,
    /// Which time its figures are of.
    pub covers: Covers,
    /// What the names of its rows are, such as `tablespace` and `file`.
    pub keys: Vec<String>,
    /// Its columns of figures.
    pub columns: Vec<ReportedColumn>,
    /// Its rows.
    pub rows: Vec<ReportedRow>,
    /// What its reader must know, such as which columns were left out, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// Which time the figures of a table are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Covers {
    /// The window of the step.
    Window,
    /// The instants at which the window begins and ends.
    Edges,
}

/// A column of a reported table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ReportedColumn {
    /// What it is called.
    pub name: String,
    /// Unit of its figures: `ms`, `s`, `B`, `/s`, `%`, or as the source has it (`MB/s`, whatever it calls so). Empty for plain
    /// numbers, and where each row has a unit of its own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
}

/// A row of a reported table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ReportedRow {
    /// Its names, one for each of the keys.
    pub names: Vec<String>,
    /// Unit of its figures, where it has one of its own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// Its figures, one for each column; `null` where the source does not report.
    pub values: Vec<Option<f64>>,
}

impl ReportedTable {
    /// The unit of a figure by the positions of its row and column: that of the row where it has one, else that of the column.
    pub fn unit<'a>(&'a self, row: &'a ReportedRow, column: usize) -> &'a str {
        if row.unit.is_empty() { self.columns.get(column).map_or("", |column| &column.unit) } else { &row.unit }
    }
}
