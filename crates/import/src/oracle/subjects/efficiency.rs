//! Instance efficiency: ratios in percent, several on a line.

use super::measures::Measure;
use super::{Subject, row, subject, table_of_names};
use crate::oracle::table::{Report, plain};
use model::record::{Covers, ReportedTable};

const EFFICIENCY: Subject = subject("Instance efficiency", "engine", Covers::Window);

/// The ratios that a report reports.
pub(super) fn tables(report: &Report) -> Option<ReportedTable> {
    let table = report.tables.iter().find(|table| plain(&table.title).starts_with("instanceefficiency"))?;
    // Every one of them is a percentage; a name that does not say so is another form's.
    let ratios = table.rows.iter().filter(|line| line.cell(0).contains('%'));
    let rows = ratios.map(|line| row(line.cell(0), Measure::Percent, &[line.cell(1)])).collect();
    table_of_names(EFFICIENCY, &table.title, "ratio", &["value"], rows)
}
