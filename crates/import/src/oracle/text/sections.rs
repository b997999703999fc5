//! The sections of one report, line by line.

use std::collections::{BTreeSet, VecDeque};
use std::mem::take;
use std::ops::Range;

use super::forms::{self, Pair};
use super::layout::{Columns, Groups, Placed, Rule, underline};
use super::names::{self, EventColumn};
use super::{Line, Lines, misfits, words};
use crate::Notes;
use crate::oracle::table::{HEADER, Report, ReportKind, Row, SNAPSHOTS, Table};
use crate::oracle::{is_read, statspack};

/// More cells than any report has; what follows is left out, and noted.
const MAX_CELLS: usize = 4 << 20;
/// Lines without a rule that are kept: the longest form of pairs has half as many.
const MAX_HEADING_LINES: usize = 64;
/// Rules that go on in the next line are at least that long: SQL*Plus has 80 columns unless it is asked otherwise.
const SHORTEST_BROKEN: usize = 70;
/// Sections that hold statements: any text at all, no figures that are asked for, and often most of the report.
const STATEMENTS: [&str; 3] = ["SQL ordered by", "Complete List of SQL", "Top SQL"];

/// What was read of a report so far.
pub(super) struct Sections {
    kind: ReportKind,
    is_on_pdb: bool,
    tables: Vec<Table>,
    events: Vec<EventColumn>,
    cells: usize,
    left_out: Option<u64>,
    /// The first rule that goes on in the next line, and what it is long.
    broken: Option<(u64, usize)>,
    title: Title,
    /// Lines that may be headings, or pairs of names and values.
    heading: VecDeque<(u64, String)>,
    groups: Vec<Groups>,
    open: Option<Open>,
    /// `CPUs`, `Cores` and `Sockets` where the title of `Host CPU` reports them.
    beside_title: Vec<Pair>,
    skips: bool,
    /// Name of the database, where titles have it.
    database: String,
    /// Lines within sections that are read, in no form that these have.
    unknown: BTreeSet<u64>,
}

#[derive(Default)]
struct Title {
    text: String,
    line: u64,
    remarks: Vec<String>,
    /// Whether the last line was a remark, which may go on.
    in_remarks: bool,
    /// Whether a blank line ends the table, because no rule does.
    ends_at_blank: bool,
}

impl Sections {
    /// A report that begins, and whether its first line says that it is on a pluggable database.
    pub(super) fn new(kind: ReportKind, is_on_pdb: bool) -> Self {
        let title = Title { text: HEADER.to_owned(), ends_at_blank: true, ..Title::default() };
        Self {
            kind,
            is_on_pdb,
            tables: Vec::new(),
            events: Vec::new(),
            cells: 0,
            left_out: None,
            broken: None,
            title,
            heading: VecDeque::new(),
            groups: Vec::new(),
            open: None,
            beside_title: Vec::new(),
            skips: false,
            database: String::new(),
            unknown: BTreeSet::new(),
        }
    }

    /// Takes a line; those that follow it may be looked at, and the next one taken.
    pub(super) fn line(&mut self, line: Line<'_>, lines: &mut Lines<'_>) {
        let text = line.text.as_ref();
        if let Some((title, database)) = section_title(text) {
            self.begin(title, line.number, false);
            self.skips = STATEMENTS.iter().any(|statements| title.starts_with(statements));
            if self.database.is_empty() {
                database.clone_into(&mut self.database);
            }
            return;
        }
        if self.skips && !(text.starts_with(|c: char| c.is_ascii_uppercase()) && is_underlined(lines)) {
            return;
        }
        if text.is_empty() {
            self.blank_line();
            return;
        }
        if let Some(remark) = remark(text) {
            self.title.remarks.push(remark.to_owned());
            self.title.in_remarks = true;
            return;
        }
        if let Some(rule) = Rule::of(text) {
            let length = rule.runs.last().map_or(0, |run| run.end);
            if length >= SHORTEST_BROKEN && !rule.first_is_tilde && goes_on(lines) {
                self.broken.get_or_insert((line.number, length));
            }
            self.rule(&rule, lines);
            return;
        }
        if self.title.in_remarks && is_remark_that_goes_on(text) {
            if let Some(remark) = self.title.remarks.last_mut() {
                remark.push(' ');
                remark.push_str(text.trim());
            }
            return;
        }
        if self.is_title(line.number, text, lines) {
            return self.underlined(line.number, text, lines);
        }
        self.title.in_remarks = false;
        match &mut self.open {
            Some(_) => self.row(line.number, text),
            None => push_at_most(&mut self.heading, line.number, text, MAX_HEADING_LINES),
        }
    }

    /// Whether a line is a title without `DB/Inst:`; remarks follow it, or an underline.
    fn is_title(&self, number: u64, text: &str, lines: &mut Lines<'_>) -> bool {
        let Some(next) = lines.peek(0) else { return false };
        if remark(&next.text).is_some() {
            // Between a title and its remarks, or among these, stands no other title.
            let is_within = self.title.in_remarks || (self.title.line > 0 && self.title.line + 1 == number);
            return !text.starts_with(' ') && !is_within;
        }
        let begins = text.len() - text.trim_start().len();
        underline(&next.text).is_some_and(|run| begins < run.end)
    }

    fn underlined(&mut self, number: u64, text: &str, lines: &mut Lines<'_>) {
        let run = lines.peek(0).and_then(|next| underline(&next.text));
        let Some(run) = run else {
            self.begin(text.trim(), number, true);
            return;
        };
        let Some(below) = lines.next() else { return };
        let placed = Placed::new(text);
        let end = end_of_title(&placed, &run);
        let title = placed.between(0..end).trim().to_owned();
        self.begin(&title, number, true);
        self.skips = STATEMENTS.iter().any(|statements| title.starts_with(statements));
        let rest = placed.between(end..placed.len());
        if rest.trim_start().starts_with('(') {
            self.beside_title = forms::pairs(rest.trim().trim_start_matches('(').trim_end_matches(')'));
        } else if !rest.trim().is_empty() {
            let rest = format!("{}{rest}", " ".repeat(end));
            push_at_most(&mut self.heading, number, &rest, MAX_HEADING_LINES);
        }
        let after: String = below.text.chars().skip(run.end).collect();
        if let Some(rule) = Rule::of(&below.text).filter(|rule| !rule.all_tilde) {
            self.rule(&rule, lines);
            // `Host Name` is longer than the underline below it.
            let unnamed =
                self.open.as_mut().and_then(|open| open.table.columns.get_mut(1)).filter(|_| end > run.end + 1);
            if let Some(name) = unnamed
                && name.is_empty()
            {
                *name = title;
            }
        } else if !after.trim().is_empty() {
            push_at_most(
                &mut self.heading,
                below.number,
                &format!("{}{after}", " ".repeat(run.end)),
                MAX_HEADING_LINES,
            );
        }
    }

    fn blank_line(&mut self) {
        self.title.in_remarks = false;
        match &mut self.open {
            Some(open) if !self.title.ends_at_blank || open.table.rows.is_empty() => {
                open.blank_line();
            }
            _ => self.close(),
        }
    }

    /// Begins a section.
    fn begin(&mut self, title: &str, number: u64, ends_at_blank: bool) {
        self.close();
        self.beside_title.clear();
        let text = forms::joined(title);
        self.title = Title { text, line: number, ends_at_blank, ..Title::default() };
        self.skips = false;
    }

    fn rule(&mut self, rule: &Rule, lines: &mut Lines<'_>) {
        self.title.in_remarks = false;
        // Above sums; or it belongs to a title that stands before its remarks.
        if rule.all_tilde {
            return;
        }
        let is_over_groups = rule_below(lines).is_some_and(|below| rule.spans(&below));
        if !is_over_groups && rule.ends_a_section() {
            return self.close();
        }
        // Tables of the header have one line of headings each, even where the blank lines between them were lost.
        if self.title.text == HEADER
            && !is_over_groups
            && let Some(mut open) = self.open.take()
        {
            self.heading.extend(open.take_last_heading());
            self.keep(open);
        }
        if let Some(open) = self.open.as_mut().filter(|open| !is_over_groups && open.has_only_headings()) {
            let groups = take(&mut self.groups);
            self.cells = self.cells.saturating_sub(open.add_rule(rule, groups));
            return;
        }
        if self.open.as_ref().is_some_and(|open| open.is_above_sum(rule)) {
            return;
        }
        if let Some(mut open) = self.open.take() {
            self.heading = open.take_headings();
            self.keep(open);
        }
        if is_read(&self.title.text) {
            let unknown = &mut self.unknown;
            self.heading.retain(|(number, text)| !has_decimals(text) || !unknown.insert(*number));
        }
        let from = self.heading.len().saturating_sub(HEADING_LINES);
        if is_read(&self.title.text) {
            self.unknown.extend(self.heading.iter().take(from).map(|(number, _)| *number));
        }
        let line = self.heading.get(from).map(|(number, _)| *number);
        let headings: Vec<String> = self.heading.drain(..).skip(from).map(|(_, text)| text).collect();
        if is_over_groups {
            self.groups.push(Groups::new(rule, &headings));
            if self.groups.len() > HEADING_LINES {
                self.groups.clear();
            }
            return;
        }
        let columns = Columns::new(rule, &headings, take(&mut self.groups));
        let mut title = self.title.text.clone();
        let has = |name: &str| columns.names.iter().any(|column| column == name);
        if columns.form && has("Snap Id") && has("Snap Time") {
            SNAPSHOTS.clone_into(&mut title);
        } else if columns.form && rule.first_is_tilde && !self.knows_snapshots() && self.kind == ReportKind::Statspack {
            HEADER.clone_into(&mut title);
        } else if columns.form && !rule.first_is_tilde && !columns.form_title.is_empty() {
            // The remarks of another section would be wrong here.
            title.clone_from(&columns.form_title);
        }
        if self.kind == ReportKind::Statspack && title == HEADER && self.title.text != HEADER {
            self.title.ends_at_blank = true;
        }
        let mut names: Vec<String> = columns.names.iter().map(|name| words::column(&title, name).to_owned()).collect();
        names.extend(self.beside_title.iter().map(|pair| pair.name.clone()));
        let line = if self.title.line == 0 { line.unwrap_or_default() } else { self.title.line };
        let table = Table { title, line, columns: names, rows: Vec::new(), remarks: self.title.remarks.clone() };
        self.open = Some(Open::new(table, columns));
    }

    fn knows_snapshots(&self) -> bool {
        self.tables.iter().take(8).any(|table| table.title == SNAPSHOTS)
    }

    fn row(&mut self, line: u64, text: &str) {
        let Some(open) = &mut self.open else { return };
        if self.cells >= MAX_CELLS {
            self.left_out.get_or_insert(line);
        } else {
            self.cells += open.line(line, text, &self.beside_title);
        }
    }

    /// Ends what is open, whatever it is.
    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            self.keep(open);
        }
        self.groups.clear();
        self.keep_pairs();
    }

    /// Lines without a rule: a form of names and values, or nothing.
    fn keep_pairs(&mut self) {
        let mut table = Table {
            title: self.title.text.clone(),
            line: self.title.line,
            columns: vec![String::new(), "Value".to_owned()],
            rows: Vec::new(),
            remarks: Vec::new(),
        };
        let is_read = is_read(&table.title);
        for (line, text) in self.heading.drain(..) {
            let title = &table.title;
            let row = |pair: Pair| Row { line, cells: vec![words::row(title, &pair.name).to_owned(), pair.value] };
            let rows: Vec<Row> = forms::pairs(&text).into_iter().map(row).collect();
            if is_read && rows.is_empty() {
                self.unknown.insert(line);
            }
            table.rows.extend(rows);
        }
        if table.rows.is_empty() {
            return;
        }
        if self.cells >= MAX_CELLS {
            self.left_out.get_or_insert(table.rows.first().map_or(0, |row| row.line));
            return;
        }
        self.cells += table.rows.len() * 2;
        table.remarks = take(&mut self.title.remarks);
        self.add(table);
    }

    fn keep(&mut self, mut open: Open) {
        open.complete();
        if is_read(&open.table.title) {
            self.unknown.append(&mut open.unknown);
            self.unknown.extend(misfits::lines(&open.table));
        }
        let event = open.columns.names.iter().position(|name| name == "Event" || name.ends_with(": Event"));
        let width = event.and_then(|column| open.columns.places.get(column)).map(Range::len);
        let added = self.add(open.table);
        if let (Some(table), Some(column), Some(width)) = (added, event, width) {
            self.events.push(EventColumn { table, column, width });
        }
    }

    /// Adds a table, or its rows to the one before if that goes on; its place if it is a new one.
    fn add(&mut self, mut table: Table) -> Option<usize> {
        match self.tables.last_mut() {
            Some(last) if last.title == table.title && last.columns == table.columns => {
                last.rows.append(&mut table.rows);
                None
            }
            _ => {
                self.tables.push(table);
                Some(self.tables.len() - 1)
            }
        }
    }

    /// Where lines are broken because SQL*Plus had too few columns, and how many.
    pub(super) fn broken(&self) -> Option<(u64, usize)> {
        self.broken
    }

    /// The report, that ended at `last_line`; what may be half a line is left out.
    ///
    /// With it the lines that are in no form of the sections that are read.
    pub(super) fn finish(
        mut self,
        last_line: u64,
        ended: bool,
        last_is_cut: bool,
        notes: &mut Notes,
    ) -> (Report, BTreeSet<u64>) {
        self.close();
        if last_is_cut && let Some(table) = self.tables.last_mut() {
            table.rows.retain(|row| row.line != last_line);
        }
        if let Some(line) = self.left_out {
            notes.not_understood(line, "here the report becomes longer than any report; what follows is left out");
        }
        names::complete(&mut self.tables, &self.events);
        if self.kind == ReportKind::Statspack {
            statspack::name_database(&mut self.tables, &self.database);
        }
        let report = Report { kind: self.kind, is_on_pdb: self.is_on_pdb, tables: self.tables, ended, last_line };
        (report, self.unknown)
    }
}

/// Adds a line, and forgets the first one if there are more than `most`.
pub(super) fn push_at_most(lines: &mut VecDeque<(u64, String)>, number: u64, text: &str, most: usize) {
    if lines.len() == most {
        lines.pop_front();
    }
    lines.push_back((number, text.to_owned()));
}

/// Title of a section and name of the database, if a line is such as `Wait Events  DB/Inst: ORCL/orcl1  Snaps: 7-8` or, in old
/// versions of Statspack, `Wait Events for DB: ORCL  Instance: orcl1  Snaps: 7 -8`.
fn section_title(text: &str) -> Option<(&str, &str)> {
    if let Some((title, rest)) = text.split_once("DB/Inst: ") {
        let name = rest.split('/').next().unwrap_or_default();
        return Some((title.trim(), name.trim()));
    }
    if !text.contains("  Snaps: ") {
        return None;
    }
    let (title, rest) = text.split_once(" for DB: ")?;
    let (name, _) = rest.split_once(" Instance: ")?;
    Some((title.trim(), name.trim()))
}

/// What a line with `->` remarks.
fn remark(text: &str) -> Option<&str> {
    text.trim_start().strip_prefix("->").map(str::trim)
}

/// Remarks go on with a little indent; headings stand further to the right, or at the margin.
fn is_remark_that_goes_on(text: &str) -> bool {
    let indent = text.len() - text.trim_start().len();
    (2..=4).contains(&indent)
}

/// Whether a line has a number with decimals, which no heading has.
fn has_decimals(text: &str) -> bool {
    text.split_whitespace().any(|word| {
        let number = word.trim_end_matches(|char: char| char.is_ascii_alphabetic());
        number.contains('.') && number.parse::<f64>().is_ok()
    })
}

/// The next rule, if no blank line stands before it.
fn rule_below(lines: &mut Lines<'_>) -> Option<Rule> {
    for ahead in 0..HEADING_LINES {
        let text = &lines.peek(ahead).filter(|line| !line.text.is_empty())?.text;
        if let Some(rule) = Rule::of(text) {
            return Some(rule);
        }
    }
    None
}

/// Whether the next line is the underline of a title.
fn is_underlined(lines: &mut Lines<'_>) -> bool {
    lines.peek(0).is_some_and(|next| underline(&next.text).is_some())
}

/// Whether a line begins with a name, whatever its case.
pub(super) fn begins_with(text: &str, name: &str) -> bool {
    text.trim_start().get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name))
}

/// Where a title ends that has an underline: titles may be longer than theirs, up to the next two blanks or a bracket.
fn end_of_title(text: &Placed<'_>, run: &Range<usize>) -> usize {
    let rest = text.between(run.end..text.len());
    let open = rest.find(" (").filter(|_| text.between(0..run.end).find('(').is_none());
    let blanks = if text.between(run.end.saturating_sub(1)..run.end) == " " { Some(0) } else { rest.find("  ") };
    let ends = [open, blanks].into_iter().flatten().min();
    // Counted in characters, as places are.
    ends.map_or(text.len(), |at| run.end + rest.get(..at).map_or(0, |before| before.chars().count()))
}

/// Whether the next line is a rule of dashes too.
fn goes_on(lines: &mut Lines<'_>) -> bool {
    let next = lines.peek(0).and_then(|next| Rule::of(&next.text));
    next.is_some_and(|rule| !rule.first_is_tilde && !rule.ends_a_section())
}

/// Lines of headings below each other, at most.
const HEADING_LINES: usize = 6;

/// A table whose rows are being read.
struct Open {
    /// What is known of it.
    pub(super) table: Table,
    /// Columns of the first line of each row.
    pub(super) columns: Columns,
    /// Columns of the second and further lines of each row, where rows have several.
    below: Vec<Columns>,
    /// The cells of a row of which lines are missing, and how many lines it has so far.
    partial: (Vec<String>, usize),
    /// Whether no blank line came since the rule.
    is_fresh: bool,
    /// Lines since the last blank one, which are headings if a rule follows.
    block: VecDeque<(u64, String)>,
    /// Rows before them.
    rows_before: usize,
    /// Lines that are no part of a row.
    unknown: BTreeSet<u64>,
}

impl Open {
    /// One without rows.
    pub(super) fn new(table: Table, columns: Columns) -> Self {
        Self {
            table,
            columns,
            below: Vec::new(),
            partial: (Vec::new(), 0),
            is_fresh: true,
            block: VecDeque::new(),
            rows_before: 0,
            unknown: BTreeSet::new(),
        }
    }

    /// Takes a line; how many cells that made.
    pub(super) fn line(&mut self, line: u64, text: &str, beside_title: &[Pair]) -> usize {
        push_at_most(&mut self.block, line, text, HEADING_LINES);
        let placed = Placed::new(text);
        if self.table.title == SNAPSHOTS && ["elapsed:", "db time:"].iter().any(|name| begins_with(text, name)) {
            // Names and values, with no respect for the columns.
            let pairs = forms::pairs(text);
            return pairs.into_iter().map(|pair| self.add(line, vec![pair.name, String::new(), pair.value])).sum();
        }
        if !self.below.is_empty() {
            return self.part_of_row(line, &placed);
        }
        let mut cells = self.columns.cells(&placed);
        cells.extend(beside_title.iter().map(|pair| pair.value.clone()));
        if !self.columns.form {
            return self.add(line, cells);
        }
        if let Some(name) = cells.first_mut() {
            let plain = forms::joined(name.strip_suffix(':').unwrap_or(name));
            words::row(&self.table.title, &plain).clone_into(name);
        }
        let beside = forms::pairs(placed.between(self.columns.end()..placed.len()));
        let made = self.add(line, cells);
        made + beside.into_iter().map(|pair| self.add(line, vec![pair.name, pair.value])).sum::<usize>()
    }

    fn part_of_row(&mut self, line: u64, placed: &Placed<'_>) -> usize {
        let (partial, at) = &mut self.partial;
        let columns = if *at == 0 { &self.columns } else { self.below.get(*at - 1).unwrap_or(&self.columns) };
        let cells = columns.cells(placed);
        let has_figure = |cell: &String| cell.starts_with(|c: char| c.is_ascii_digit() || c == '.') || cell == "N/A";
        if *at > 0 && !cells.iter().any(has_figure) {
            // The rest of a long name.
            self.unknown.insert(line);
            return 0;
        }
        partial.extend(cells);
        *at += 1;
        if *at <= self.below.len() {
            return 0;
        }
        *at = 0;
        let cells = take(partial);
        self.add(line, cells)
    }

    fn add(&mut self, line: u64, mut cells: Vec<String>) -> usize {
        let width = self.table.columns.len();
        cells.resize(width, String::new());
        self.table.rows.push(Row { line, cells });
        width
    }

    /// Takes a blank line within the table.
    pub(super) fn blank_line(&mut self) {
        self.block.clear();
        self.rows_before = self.table.rows.len();
        self.partial = (Vec::new(), 0);
        self.is_fresh = false;
    }

    /// Whether nothing but headings came since the rule: if another one follows, each row has a line for each of them.
    pub(super) fn has_only_headings(&self) -> bool {
        const MAX_LINES: usize = 3;
        let is_figure =
            |word: &str| word.len() > MAX_LINES && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b',');
        let mut words = self.block.iter().flat_map(|(_, text)| text.split_whitespace());
        self.is_fresh && (1..=MAX_LINES).contains(&self.block.len()) && !words.any(is_figure)
    }

    /// Whether a rule stands below figures and above their sum: it is below columns of the table, but not below their first one,
    /// which names the rows.
    pub(super) fn is_above_sum(&self, rule: &Rule) -> bool {
        let of_figures = self.columns.places.get(1..).unwrap_or_default();
        let has_rows = self.rows_before < self.table.rows.len();
        has_rows && !self.columns.form && rule.runs.iter().all(|run| of_figures.contains(run))
    }

    /// Takes another rule, with the headings that looked like rows; how many cells are none.
    pub(super) fn add_rule(&mut self, rule: &Rule, groups: Vec<Groups>) -> usize {
        let headings: Vec<String> = self.block.drain(..).map(|(_, text)| text).collect();
        let columns = Columns::new(rule, &headings, groups);
        let cells = self.table.rows.len() * self.table.columns.len();
        self.table.rows.clear();
        self.partial = (Vec::new(), 0);
        // More lines than that no row has.
        if self.below.len() < HEADING_LINES {
            self.table.columns.extend(columns.names.iter().cloned());
            self.below.push(columns);
        }
        cells
    }

    /// The lines since the last blank one, which were headings and no rows.
    pub(super) fn take_headings(&mut self) -> VecDeque<(u64, String)> {
        self.table.rows.truncate(self.rows_before);
        take(&mut self.block)
    }

    /// The last line, which was a heading and no row.
    pub(super) fn take_last_heading(&mut self) -> Option<(u64, String)> {
        let (number, text) = self.block.pop_back()?;
        self.table.rows.retain(|row| row.line != number);
        Some((number, text))
    }

    /// Puts back what columns were too narrow for, where it can be known.
    pub(super) fn complete(&mut self) {
        if ["IOStat", "IO Stat"].iter().any(|begin| self.table.title.starts_with(begin)) {
            for (index, place) in self.columns.places.iter().enumerate() {
                complete_units(&mut self.table.rows, index, place.len());
            }
        }
        for (index, name) in self.table.columns.iter().enumerate() {
            let Some(names) = names::of_column(name) else { continue };
            for cell in self.table.rows.iter_mut().filter_map(|row| row.cells.get_mut(index)) {
                if let Some(whole) = names::whole(names, cell) {
                    whole.clone_into(cell);
                }
            }
        }
    }
}

/// Puts units back that did not fit into their column: `110.718` stands for `110.718M` in one of seven characters. It is the
/// unit that all others in the column have; if they have several, nothing is known.
fn complete_units(rows: &mut [Row], column: usize, width: usize) {
    let unit = |cell: &str| cell.chars().last().filter(char::is_ascii_uppercase);
    let mut units: Vec<char> = rows.iter().filter_map(|row| unit(row.cell(column))).collect();
    units.sort_unstable();
    units.dedup();
    let is_cut = |cell: &str| {
        cell.len() == width && cell.contains('.') && cell.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    for cell in rows.iter_mut().filter_map(|row| row.cells.get_mut(column)).filter(|cell| is_cut(cell)) {
        match units.as_slice() {
            [] => {}
            [unit] => cell.push(*unit),
            _ => cell.clear(),
        }
    }
}
