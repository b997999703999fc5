//! Sections that a database administrator looks for and for which the record has no field of its own: each becomes one table of
//! the step, with names and units that are the same whatever release or form of the report it comes from.
//!
//! A figure whose unit is not certain is left out, and a remark says so.

mod caches;
mod cells;
mod cluster;
mod data_files;
mod wait_classes;

use super::header::Header;
use super::table::{Report, ReportKind, Row, Table, plain};
use crate::numbers::{duration_ns, scaled};
use crate::oracle::header::bytes;
use crate::oracle::times;
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

/// A kind of figure, and how its cells are read.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Measure {
    /// A number of something, with `K`, `M` and so on for thousands and millions.
    Count,
    /// The same per second.
    PerSecond,
    /// A share of a hundred.
    Percent,
    /// A time in the unit of so many nanoseconds, kept in milliseconds.
    Time(f64),
    /// A time whose cells have a unit each; those that have none are not known.
    TimeWithUnit,
    /// A sum of times in seconds.
    Seconds,
    /// Data in the unit of so many bytes.
    Data(f64),
    /// Data whose cells may have a unit each, such as `292M`.
    DataWithUnit,
    /// In the unit that the source reports, such as `MB/s`: how many bytes an MB of it has is not known.
    As(&'static str),
}

const KIB: f64 = 1_024.0;

impl Measure {
    /// Times of a column: in the unit that its heading reports, or with one in each cell.
    fn time(heading: &str) -> Self {
        times::unit_of_column(heading).map_or(Self::TimeWithUnit, Self::Time)
    }

    /// The unit in which figures are kept.
    fn unit(self) -> &'static str {
        match self {
            Self::Count => "",
            Self::PerSecond => "/s",
            Self::Percent => "%",
            Self::Time(_) | Self::TimeWithUnit => "ms",
            Self::Seconds => "s",
            Self::Data(_) | Self::DataWithUnit => "B",
            Self::As(unit) => unit,
        }
    }

    /// The figure in a cell, in that unit; nothing for blanks, `N/A` and what is rounded beyond use.
    fn value(self, cell: &str) -> Option<f64> {
        let cell = cell.trim();
        // `1.E+03` stands where a number is too wide for its column.
        let number = || scaled(cell).filter(|_| !cell.contains(['E', 'e']));
        let value = match self {
            Self::Percent => scaled(cell.trim_end_matches('%')).filter(|_| !cell.contains(['E', 'e']))?,
            Self::Count | Self::PerSecond | Self::Seconds | Self::As(_) => number()?,
            Self::Time(unit_ns) => number()? * unit_ns / 1e6,
            Self::TimeWithUnit => duration_ns(cell)? / 1e6,
            Self::Data(unit_bytes) => number()? * unit_bytes,
            Self::DataWithUnit => bytes(cell)? as f64,
        };
        // Sizes of memory with one decimal of a megabyte are whole bytes all the same.
        let value = if matches!(self, Self::Data(_)) { value.round() } else { value };
        value.is_finite().then_some(value)
    }

    /// What a heading or the name of a row says of its figures; nothing if it does not.
    fn of_heading(heading: &str) -> Option<Self> {
        let lower = heading.to_lowercase();
        if lower.contains('%') {
            return Some(Self::Percent);
        }
        if let Some(unit_ns) = times::unit_of_column(heading) {
            return Some(if unit_ns >= 1e9 { Self::Seconds } else { Self::Time(unit_ns) });
        }
        let rates = [("mb", "MB/s"), ("mbytes", "MB/s"), ("megabytes", "MB/s"), ("gb", "GB/s"), ("kb", "KB/s")];
        let is_rate = ["/s", "per sec", "/sec"].iter().any(|words| lower.contains(words));
        let words = || lower.split(|c: char| !c.is_alphanumeric());
        let data = rates.iter().find(|(word, _)| words().any(|one| one == *word)).map(|(_, unit)| *unit);
        if is_rate || words().any(|word| word == "mbps") {
            let data = data.or_else(|| words().any(|word| word == "mbps").then_some("MB/s"));
            return Some(data.map_or(Self::PerSecond, Self::As));
        }
        if words().any(|word| word == "iops") {
            return Some(Self::PerSecond);
        }
        let bracket = lower.rsplit_once('(').and_then(|(_, rest)| rest.split(')').next()).unwrap_or_default();
        match bracket.trim() {
            "bytes" => return Some(Self::Data(1.0)),
            "kb" | "k" => return Some(Self::Data(KIB)),
            "mb" | "m" => return Some(Self::Data(KIB * KIB)),
            "gb" | "g" => return Some(Self::Data(KIB * KIB * KIB)),
            "tb" | "t" => return Some(Self::Data(KIB * KIB * KIB * KIB)),
            _ => {}
        }
        let counts = ["requests", "reqs", "count", "waits", "errors", "packets", "ios", "misses", "hits"];
        (data.is_none() && words().any(|word| counts.contains(&word))).then_some(Self::Count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_tell_what_figures_are_or_nothing_is_known() {
        let mib = KIB * KIB;
        for (heading, expected) in [
            ("Buffer Hit %", Some(Measure::Percent)),
            ("Avg global enqueue get time (us)", Some(Measure::Time(1e3))),
            ("CR Avg Time (us): All", Some(Measure::Time(1e3))),
            ("Host Mem (MB)", Some(Measure::Data(mib))),
            ("Begin Size (Bytes)", Some(Measure::Data(1.0))),
            ("Send Mbytes/sec", Some(Measure::As("MB/s"))),
            ("Read Requests per Second: OLTP", Some(Measure::PerSecond)),
            ("Reads MB per Second", Some(Measure::As("MB/s"))),
            ("IOPs", Some(Measure::PerSecond)),
            ("Total Requests", Some(Measure::Count)),
            ("DB CPU (s)", Some(Measure::Seconds)),
            ("Std Dev", None),
            ("OLTP", None),
        ] {
            assert_eq!(Measure::of_heading(heading), expected, "{heading}");
        }
    }

    #[test]
    fn figures_are_kept_in_one_unit() {
        assert_eq!(Measure::Time(1e3).value("1,113.0"), Some(1.113));
        assert_eq!(Measure::TimeWithUnit.value(".96ms"), Some(0.96));
        assert_eq!(Measure::TimeWithUnit.value("7"), None, "its unit is reported nowhere");
        assert_eq!(Measure::Data(KIB * KIB).value("2,006.9"), Some(2_104_387_174.0));
        assert_eq!(Measure::DataWithUnit.value("3,692K"), Some(3_780_608.0));
        assert_eq!(Measure::Percent.value("1.E+03"), None, "it is rounded to one digit");
        assert_eq!(Measure::Count.value("N/A"), None);
    }
}
