//! The middle form of Oracle's reports: what stands in text and in HTML, before anybody asks what it means.

/// A report as titles, headings and cells, in the order of the report.
///
/// Text and HTML of one report give the same tables as far as the text does not cut names to the width of their columns.
/// Nothing is filled down: where a report leaves the instance blank because the line above names it, the cell is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Report {
    /// Which program made it, of what.
    pub(super) kind: ReportKind,
    /// Whether its heading says that it is on a pluggable database: `PDB report (root snapshots)`, `PDB report (PDB snapshots)`.
    pub(super) is_on_pdb: bool,
    /// Its tables. A table that goes on after a page break, under its repeated title, is one table; two tables with other
    /// columns under one title are two with that title.
    pub(super) tables: Vec<Table>,
    /// Whether its end was found.
    pub(super) ended: bool,
    /// The last line of it, from 1.
    pub(super) last_line: u64,
}

/// Which program made a report, of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReportKind {
    /// `awrrpt.sql`: one instance. Reports on a pluggable database have this form too.
    AwrSingle,
    /// `awrgrpt.sql`: all instances of a cluster.
    AwrGlobal,
    /// `spreport.sql`: one instance.
    Statspack,
}

/// A table of a report, or a form of names and values, which becomes a table as well.
///
/// Column names are the headings over their lines, joined with single blanks: `Total Wait Time (sec)`. A heading that spans
/// several columns (they have a rule of dashes of their own below it) goes before the columns' own with a colon between:
/// `Wait Time: Total(s)`, `% DB time: % Total: DB time`. A column without heading has an empty name.
///
/// Forms:
/// - `Load Profile`, `IO Profile`, `Memory Statistics`, `Shared Pool Statistics`: first column without name, holding the names
///   as printed without the last colon (`DB Time(s)`, `Read IO requests`), then `Per Second` and so on.
/// - `Instance CPU`, `Instance Efficiency Percentages`, `Cache Sizes`: the same with several pairs on a line taken apart, one
///   row a name; columns are `` and `Value`, or `` `Begin` `End`.
/// - Snapshots (title [`SNAPSHOTS`]): one row each for `Begin Snap`, `End Snap`, `Elapsed`, `DB Time` (Statspack also has
///   `Av Act Sess` and `DB CPU`, as names of rows); columns ``, `Snap Id`, `Snap Time`, `Sessions`, …; `Elapsed` and `DB Time`
///   have theirs, such as `10.08 (mins)`, in the column `Snap Time`.
/// - The header's tables, which have no title of their own, have the title [`HEADER`]; each with its columns (`DB Name` …,
///   `Instance` …, `Host Name` …).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Table {
    /// Title of its section, without what follows it (`DB/Inst: …  Snaps: …`).
    pub(super) title: String,
    /// The line of the title or heading, from 1; 0 where there are no lines.
    pub(super) line: u64,
    /// Names of its columns; also the number of cells in each row.
    pub(super) columns: Vec<String>,
    /// What stands in it.
    pub(super) rows: Vec<Row>,
    /// Remarks below the title, without their `->`, such as `% of Waits: value of .0 indicates value was <.05%; null is truly 0`.
    pub(super) remarks: Vec<String>,
}

#[cfg(test)]
impl Table {
    /// A table as tests write it.
    pub(super) fn of(title: &str, columns: &[&str], rows: &[&[&str]]) -> Self {
        let owned = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<String>>();
        let rows = rows.iter().map(|cells| Row { line: 1, cells: owned(cells) }).collect();
        Self { title: title.to_owned(), columns: owned(columns), rows, ..Self::default() }
    }
}

/// Title of the tables before the first section.
pub(super) const HEADER: &str = "Header";
/// Title of the table of snapshots.
pub(super) const SNAPSHOTS: &str = "Snapshots";

/// A row of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Row {
    /// Its line, from 1.
    pub(super) line: u64,
    /// As many cells as the table has columns, without blanks around them; `""` where nothing stands.
    pub(super) cells: Vec<String>,
}

/// A name without what differs between versions and between text and HTML: case, blanks and punctuation other than `%`, `<`,
/// `>`, `=`, `#`, `*` and `+`.
pub(super) fn plain(name: &str) -> String {
    letters(name).collect()
}

/// Whether [`plain`] makes the same of two names. Names are compared for every cell, so that nothing is built for it.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    one == other || letters(one).eq(letters(other))
}

fn letters(name: &str) -> impl Iterator<Item = char> + '_ {
    let counts =
        |c: &char| if c.is_ascii() { c.is_ascii_alphanumeric() || "%<>=#*+".contains(*c) } else { c.is_alphanumeric() };
    name.chars().filter(counts).flat_map(char::to_lowercase)
}

impl Report {
    /// The first table of that title that has rows, or else the first.
    pub(super) fn table(&self, title: &str) -> Option<&Table> {
        self.tables(title).find(|table| !table.rows.is_empty()).or_else(|| self.tables(title).next())
    }

    /// Every table of that title.
    pub(super) fn tables(&self, title: &str) -> impl Iterator<Item = &Table> {
        self.tables.iter().filter(move |table| is_same(&table.title, title))
    }
}

impl Table {
    /// Which column has that name, give or take case and blanks.
    pub(super) fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| is_same(column, name))
    }

    /// The first row whose first cell is `name`, give or take case and blanks.
    pub(super) fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| is_same(row.cell(0), name))
    }

    /// What stands in a row in the column of that name; nothing if there is no such column or the cell is empty.
    pub(super) fn cell<'a>(&self, row: &'a Row, column: &str) -> Option<&'a str> {
        Some(row.cell(self.column(column)?)).filter(|text| !text.is_empty())
    }
}

impl Row {
    /// What stands in a column, by its position; empty where there is none.
    pub(super) fn cell(&self, column: usize) -> &str {
        self.cells.get(column).map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_whatever_their_case_and_blanks() {
        let row = Row { line: 3, cells: vec!["DB Time(s)".to_owned(), "1.5".to_owned()] };
        let table =
            Table { columns: vec![String::new(), "Per  Second".to_owned()], rows: vec![row], ..Table::default() };
        let row = table.row("db time (s)").unwrap();
        assert_eq!((table.cell(row, "per second"), table.cell(row, "Per Call")), (Some("1.5"), None));
        assert_ne!(plain("<8ms"), plain(">8ms"));
        assert_eq!(row.cell(7), "");
    }
}
