//! An HTML table on its way to a [`Table`]: headings that span columns and rows, cells that are never closed, and the forms
//! that text reports print as names and values.

use super::table::{Row, Table, plain};

/// More columns than any table has.
const MAX_COLUMNS: usize = 128;
/// More rows than any table has.
const MAX_ROWS: usize = 16 << 10;
/// More columns than any heading spans: those of the widest histogram are 22.
const MAX_SPANNED: usize = 64;
/// A longer cell is none that is asked for.
const LONGEST_CELL: usize = 400;
/// Forms whose names end in a colon.
const FORMS: [&str; 9] = [
    "loadprofile",
    "ioprofile",
    "memorystatistics",
    "cachesizes",
    "snapshots",
    "globalcacheloadprofile",
    PAIRS[0],
    PAIRS[1],
    PAIRS[2],
];
/// Forms without headings, of pairs of a name and a value beside each other.
const PAIRS: [&str; 3] = ["instanceefficiency", "globalcacheandenqueueservices", "globalcacheefficiency"];

/// A heading and where it stands.
#[derive(Debug, Clone, Default)]
struct Heading {
    column: usize,
    columns: usize,
    rows: usize,
    text: String,
}

/// A table while it is read.
#[derive(Debug, Default)]
pub(super) struct Grid {
    line: u64,
    /// Whether any cell is marked as a heading.
    has_headings: bool,
    /// Rows of headings before the first row of figures.
    headings: Vec<Vec<Heading>>,
    rows: Vec<Row>,
    /// Whether there were too many of them.
    left_out: bool,
    /// The row that is read: its cells, and whether each is a heading.
    cells: Vec<(Heading, bool)>,
    row_line: u64,
    in_cell: bool,
    /// Rows that a cell above still covers, by column.
    covered: Vec<usize>,
}

impl Grid {
    /// A row begins; one that was not closed ends.
    pub(super) fn start_row(&mut self, line: u64) {
        self.end_row();
        self.row_line = line;
        if self.line == 0 {
            self.line = line;
        }
    }

    /// A cell begins; one that was not closed ends.
    pub(super) fn start_cell(&mut self, is_heading: bool) {
        self.in_cell = false;
        let mut column = self.cells.last().map_or(0, |(cell, _)| cell.column + cell.columns);
        while self.covered.get(column).is_some_and(|rows| *rows > 0) {
            column += 1;
        }
        if column < MAX_COLUMNS {
            self.cells.push((Heading { column, columns: 1, rows: 1, text: String::new() }, is_heading));
            self.in_cell = true;
        }
    }

    /// How many columns the cell spans that has just begun.
    pub(super) fn spans_columns(&mut self, columns: usize) {
        if let Some((cell, _)) = self.cells.last_mut().filter(|(cell, _)| self.in_cell && cell.text.is_empty()) {
            cell.columns = columns.clamp(1, MAX_SPANNED.min(MAX_COLUMNS - cell.column));
        }
    }

    /// How many rows it spans.
    pub(super) fn spans_rows(&mut self, rows: usize) {
        if let Some((cell, _)) = self.cells.last_mut().filter(|(cell, _)| self.in_cell && cell.text.is_empty()) {
            cell.rows = rows.clamp(1, MAX_COLUMNS);
        }
    }

    /// Text of the cell that is open.
    pub(super) fn text(&mut self, text: &str) {
        let Some((cell, _)) = self.cells.last_mut().filter(|_| self.in_cell) else { return };
        for part in text.split_inclusive(char::is_whitespace) {
            if cell.text.len() > LONGEST_CELL {
                return;
            }
            let word = part.trim_end();
            cell.text.push_str(word.get(..word.len().min(LONGEST_CELL)).unwrap_or_default());
            if word.len() < part.len() && !cell.text.ends_with(' ') && !cell.text.is_empty() {
                cell.text.push(' ');
            }
        }
    }

    /// Whether a cell is open.
    pub(super) fn is_in_cell(&self) -> bool {
        self.in_cell
    }

    /// The open cell ends.
    pub(super) fn end_cell(&mut self) {
        self.in_cell = false;
    }

    /// The open row ends.
    pub(super) fn end_row(&mut self) {
        self.in_cell = false;
        for rows in &mut self.covered {
            *rows = rows.saturating_sub(1);
        }
        let mut cells = std::mem::take(&mut self.cells);
        if cells.is_empty() {
            return;
        }
        for (cell, _) in &mut cells {
            cell.text.truncate(cell.text.trim_end().len());
            if cell.rows > 1 {
                let until = cell.column + cell.columns;
                self.covered.resize(self.covered.len().max(until), 0);
                self.covered.iter_mut().take(until).skip(cell.column).for_each(|rows| *rows = cell.rows - 1);
            }
        }
        self.has_headings |= cells.iter().any(|(_, heading)| *heading);
        let marked = cells.iter().any(|(_, heading)| *heading)
            && cells.iter().all(|(cell, heading)| *heading || cell.text.is_empty());
        // Converters make plain cells of headings; a first row that spans columns is one, and so is that below it.
        let spans = |mut row: std::slice::Iter<'_, Heading>| row.any(|cell| cell.columns > 1);
        let above_spans = match self.headings.as_slice() {
            [] => cells.iter().any(|(cell, _)| cell.columns > 1),
            [above] => spans(above.iter()),
            _ => false,
        };
        let is_heading = marked || !self.has_headings && self.rows.is_empty() && above_spans;
        if is_heading {
            // Headings that come again further down say nothing new.
            if self.rows.is_empty() {
                self.headings.push(cells.into_iter().map(|(cell, _)| cell).collect());
            }
        } else if cells.iter().any(|(cell, _)| !cell.text.is_empty()) {
            let width = cells.last().map_or(0, |(cell, _)| cell.column + cell.columns);
            let mut texts = vec![String::new(); width.min(MAX_COLUMNS)];
            for (cell, _) in cells {
                if let Some(text) = texts.get_mut(cell.column) {
                    *text = cell.text;
                }
            }
            self.left_out |= self.rows.len() >= MAX_ROWS;
            if !self.left_out {
                self.rows.push(Row { line: self.row_line, cells: texts });
            }
        }
    }

    /// The row that is open was cut off.
    pub(super) fn drop_last_row(&mut self) {
        self.cells.clear();
    }

    /// Whether rows were left out because there were too many.
    pub(super) fn has_left_out(&self) -> bool {
        self.left_out
    }

    /// The table; nothing if it is empty.
    pub(super) fn into_table(mut self) -> Option<Table> {
        self.end_row();
        // Without any heading, the first row is one.
        let columns = match self.headings.last() {
            Some(_) => columns(&self.headings),
            None if self.rows.len() > 1 => self.rows.remove(0).cells,
            None => vec![String::new(); self.rows.first()?.cells.len()],
        };
        for row in &mut self.rows {
            row.cells.resize(columns.len(), String::new());
        }
        Some(Table { title: String::new(), line: self.line, columns, rows: self.rows, remarks: Vec::new() })
    }
}

/// The names of the columns: the last row of headings, and what spans it above where that fits.
fn columns(headings: &[Vec<Heading>]) -> Vec<String> {
    let end = |row: &[Heading]| row.iter().map(|heading| heading.column + heading.columns).max().unwrap_or(0);
    let Some((last, above)) = headings.split_last() else { return Vec::new() };
    // Headings of the rows above that reach down to the last one stand for themselves.
    let depth = above.len();
    let reaches = |(at, row): (usize, &Vec<Heading>)| {
        row.iter().filter(move |heading| at + heading.rows > depth).map(Heading::clone).collect::<Vec<_>>()
    };
    let own: Vec<Heading> = last.iter().cloned().chain(above.iter().enumerate().flat_map(reaches)).collect();
    let width = end(&own);
    let mut names = vec![String::new(); width];
    for heading in &own {
        if let Some(name) = names.get_mut(heading.column) {
            name.clone_from(&heading.text);
        }
    }
    // Where the widths of the upper row cannot be read, it does not end where the last one does.
    let Some(spanning) = above.last().filter(|row| end(row) == width) else { return names };
    for heading in spanning.iter().filter(|heading| heading.rows == 1 && !heading.text.is_empty()) {
        for name in names.iter_mut().skip(heading.column).take(heading.columns) {
            *name = format!("{}: {name}", heading.text);
        }
    }
    names
}

/// Makes a form of it that text reports have: names without their colon, and several pairs on a line taken apart.
pub(super) fn as_form(table: &mut Table) {
    let title = plain(&table.title);
    if PAIRS.iter().any(|form| title.starts_with(form)) && table.column("I#").is_none() {
        take_pairs_apart(table);
    }
    if FORMS.iter().any(|form| title.starts_with(form)) {
        for cell in table.rows.iter_mut().flat_map(|row| row.cells.iter_mut()) {
            if let Some(name) = cell.strip_suffix(':') {
                *cell = name.trim_end().to_owned();
            }
        }
    }
    let pairs = |row: &Row, from: usize, width: usize| {
        let cells: Vec<String> = (from..from + width).map(|at| row.cell(at).to_owned()).collect();
        (!row.cell(from).is_empty()).then_some(Row { line: row.line, cells })
    };
    if title == "cachesizes" && table.columns.len() == 5 && table.column("I#").is_none() {
        let split = |row: &Row| {
            let mut second = pairs(row, 3, 2);
            if let Some(row) = &mut second {
                row.cells.push(String::new());
            }
            [pairs(row, 0, 3), second]
        };
        table.rows = table.rows.iter().flat_map(split).flatten().collect();
        table.columns.truncate(3);
    } else if title == "instancecpu" && table.rows.len() == 1 {
        let rows = table.rows.pop().into_iter().flat_map(|row| {
            let line = row.line;
            row.cells.into_iter().map(move |cell| (line, cell)).collect::<Vec<_>>()
        });
        let names = std::mem::replace(&mut table.columns, vec![String::new(), "Value".to_owned()]);
        table.rows =
            names.into_iter().zip(rows).map(|(name, (line, cell))| Row { line, cells: vec![name, cell] }).collect();
    }
}

/// A row for each name. What was taken for headings, as there are none, is the first line.
fn take_pairs_apart(table: &mut Table) {
    let first = std::mem::replace(&mut table.columns, vec![String::new(), "Value".to_owned()]);
    let first = Row { line: table.line, cells: first };
    let lines = std::iter::once(first).chain(std::mem::take(&mut table.rows));
    table.rows = lines
        .flat_map(|row| {
            let line = row.line;
            let mut cells = row.cells.into_iter();
            std::iter::from_fn(move || Some(vec![cells.next()?, cells.next().unwrap_or_default()]))
                .filter(|pair| pair.iter().any(|cell| !cell.is_empty()))
                .map(move |cells| Row { line, cells })
        })
        .collect();
}
