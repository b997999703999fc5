//! Sections that a database administrator looks for and for which the record has no field of its own: each becomes one table of
//! the step, with names and units that are the same whatever release or form of the report it comes from.
//!
//! A figure whose unit is not certain is left out, and a remark says so.

mod caches;
mod cells;
mod cluster;
mod data_files;
mod measures;
mod wait_classes;

use super::header::Header;
use super::table::{Report, ReportKind, Row, Table, plain};
use measures::Measure;
use model::record::{Covers, ReportedColumn, ReportedRow, ReportedTable, Step};

/// Beginnings of the titles of these sections, as [`plain`] makes them: HTML holds many tables that nobody asks for.
const TITLES: [&str; 13] = [
    "instanceefficiency",
    "waitclassesbytotalwaittime",
    "foregroundwaitclass",
    "sgamemorysummary",
    "memorydynamiccomponents",
    "tablespaceiostats",
    "fileiostats",
    "globalcache",
    "globallatencycharacteristics",
    "globalmessagingstatistics",
    "ping",
    "interconnect",
    "osstatisticsdetail",
];

const EFFICIENCY: Subject = subject("Instance efficiency", "engine", Covers::Window);

/// More tables than any report has of these subjects.
const MAX_TABLES: usize = 256;
/// A longer name in front of a row is none of an instance, and is not repeated in the rows below.
const MAX_REPEATED: usize = 32;

/// Whether a title, as [`plain`] makes it, is that of one of these sections.
pub(super) fn is_title(plain: &str) -> bool {
    TITLES.iter().any(|begin| plain.starts_with(begin)) || cells::is_title(plain)
}

/// Fills in the tables of a step, in the order in which a reader of such reports looks for them.
pub(super) fn read(report: &Report, header: &Header, step: &mut Step) {
    let mut tables: Vec<ReportedTable> = efficiency(report).into_iter().collect();
    tables.extend(wait_classes::tables(report));
    tables.extend(caches::tables(report));
    tables.extend(data_files::tables(report, header.window_ns));
    tables.extend(cluster::tables(report));
    tables.extend(cells::tables(report));
    if report.kind != ReportKind::AwrGlobal {
        let node = header.instances.first().map(super::header::Instance::node);
        tables.iter_mut().for_each(|table| table.node.clone_from(&node));
    }
    tables.truncate(MAX_TABLES);
    step.tables = tables;
}

/// Instance efficiency: ratios in percent, several on a line.
fn efficiency(report: &Report) -> Option<ReportedTable> {
    let table = report.tables.iter().find(|table| plain(&table.title).starts_with("instanceefficiency"))?;
    // Every one of them is a percentage; a name that does not say so is another form's.
    let ratios = table.rows.iter().filter(|line| line.cell(0).contains('%'));
    let rows = ratios.map(|line| row(line.cell(0), Measure::Percent, &[line.cell(1)])).collect();
    table_of_names(EFFICIENCY, &table.title, "ratio", &["value"], rows)
}

/// What a table is about.
#[derive(Debug, Clone, Copy)]
struct Subject {
    name: &'static str,
    layer: &'static str,
    covers: Covers,
}

const fn subject(name: &'static str, layer: &'static str, covers: Covers) -> Subject {
    Subject { name, layer, covers }
}

/// A column of a section, by what its heading may be.
struct ColumnRule {
    /// Whether a heading, as [`plain`] makes it, is that of the column.
    is: fn(&str) -> bool,
    name: &'static str,
    /// What its figures are; where absent, heading or cell must say.
    measure: Option<Measure>,
}

const fn wanted(is: fn(&str) -> bool, name: &'static str, measure: Measure) -> ColumnRule {
    ColumnRule { is, name, measure: Some(measure) }
}

/// A column of times, whose unit its heading reports, or each cell.
const fn time(is: fn(&str) -> bool, name: &'static str) -> ColumnRule {
    ColumnRule { is, name, measure: None }
}

/// A table of the record from one of the report; nothing if no figure of it is known.
///
/// `keys` are the columns that name a row: what they are called here, and where they stand. Where rows of one instance follow one
/// another, text reports name it in the first of them alone.
fn table_of(
    subject: Subject,
    table: &Table,
    keys: &[(&str, usize)],
    columns: &[(ReportedColumn, usize, Measure)],
    is_row: impl Fn(&Row) -> bool,
) -> Option<ReportedTable> {
    let mut above = vec![String::new(); keys.len()];
    let mut rows = Vec::new();
    for row in table.rows.iter().filter(|row| is_row(row)) {
        for (index, (name, (_, at))) in above.iter_mut().zip(keys).enumerate() {
            if index > 0 || !row.cell(*at).is_empty() || name.len() > MAX_REPEATED {
                row.cell(*at).clone_into(name);
            }
        }
        let values: Vec<Option<f64>> = columns.iter().map(|(_, at, measure)| measure.value(row.cell(*at))).collect();
        if values.iter().any(Option::is_some) {
            rows.push(ReportedRow { names: above.clone(), unit: String::new(), values });
        }
    }
    if rows.is_empty() {
        return None;
    }
    let is_known = |column: usize| rows.iter().any(|row| row.values.get(column).is_some_and(Option::is_some));
    let known: Vec<usize> = (0..columns.len()).filter(|column| is_known(*column)).collect();
    for row in &mut rows {
        row.values = known.iter().map(|at| row.values.get(*at).copied().flatten()).collect();
    }
    Some(ReportedTable {
        keys: keys.iter().map(|(name, _)| (*name).to_owned()).collect(),
        columns: known.iter().filter_map(|at| columns.get(*at)).map(|(column, ..)| column.clone()).collect(),
        ..empty(subject, &table.title, rows)
    })
}

/// The columns of a table that are wanted, each by the first heading that is its own.
fn columns_of(table: &Table, wanted: &[ColumnRule]) -> Vec<(ReportedColumn, usize, Measure)> {
    let find = |wanted: &ColumnRule| {
        let at = table.columns.iter().position(|heading| (wanted.is)(&plain(heading)))?;
        let heading = table.columns.get(at)?;
        let measure = wanted.measure.unwrap_or_else(|| Measure::time(heading));
        Some((ReportedColumn { name: wanted.name.to_owned(), unit: measure.unit().to_owned() }, at, measure))
    };
    wanted.iter().filter_map(find).collect()
}

/// A table whose rows have a unit each, of names and their values in columns without one.
fn table_of_names(
    subject: Subject,
    source: &str,
    key: &str,
    columns: &[&str],
    rows: Vec<ReportedRow>,
) -> Option<ReportedTable> {
    let rows: Vec<ReportedRow> = rows.into_iter().filter(|row| row.values.iter().any(Option::is_some)).collect();
    let column = |name: &&str| ReportedColumn { name: (*name).to_owned(), unit: String::new() };
    (!rows.is_empty()).then(|| ReportedTable {
        keys: vec![key.to_owned()],
        columns: columns.iter().map(column).collect(),
        ..empty(subject, source, rows)
    })
}

fn empty(subject: Subject, source: &str, rows: Vec<ReportedRow>) -> ReportedTable {
    ReportedTable {
        subject: subject.name.to_owned(),
        source: source.to_owned(),
        node: None,
        layer: subject.layer.to_owned(),
        covers: subject.covers,
        keys: Vec::new(),
        columns: Vec::new(),
        rows,
        remarks: Vec::new(),
    }
}

/// A row of a table of names.
fn row(name: &str, measure: Measure, cells: &[&str]) -> ReportedRow {
    let values = cells.iter().map(|cell| measure.value(cell)).collect();
    ReportedRow { names: vec![name.to_owned()], unit: measure.unit().to_owned(), values }
}

/// Whether a row is of an instance, and not what such tables have below them: sums, means, deviations, extremes.
fn is_of_instance(row: &Row) -> bool {
    !["sum", "avg", "std", "min", "max", "total"].iter().any(|name| row.cell(0).eq_ignore_ascii_case(name))
}
