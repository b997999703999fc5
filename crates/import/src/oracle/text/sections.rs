//! The sections of one report, line by line.

use std::collections::VecDeque;
use std::mem::take;
use std::ops::Range;

use super::forms::{self, Pair};
use super::layout::{Columns, Groups, Placed, Rule, underline};
use super::lines::{Line, Lines};
use super::marks::{end_of_title, goes_on, is_remark_that_goes_on, is_underlined, remark, rule_below, section_title};
use super::names::{self, EventColumn};
use super::open::{HEADING_LINES, Open};
use super::words;
use crate::Notes;
use crate::oracle::statspack;
use crate::oracle::table::{HEADER, Report, ReportKind, Row, SNAPSHOTS, Table};

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
        if self.is_title(text, lines) {
            return self.underlined(line.number, text, lines);
        }
        self.title.in_remarks = false;
        match &mut self.open {
            Some(_) => self.row(line.number, text),
            None => push_at_most(&mut self.heading, line.number, text, MAX_HEADING_LINES),
        }
    }

    /// Whether a line is a title without `DB/Inst:`; remarks follow it, or an underline.
    fn is_title(&self, text: &str, lines: &mut Lines<'_>) -> bool {
        let Some(next) = lines.peek(0) else { return false };
        if remark(&next.text).is_some() {
            return !text.starts_with(' ');
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
        let from = self.heading.len().saturating_sub(HEADING_LINES);
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
        for (line, text) in self.heading.drain(..) {
            let title = &table.title;
            let row = |pair: Pair| Row { line, cells: vec![words::row(title, &pair.name).to_owned(), pair.value] };
            let rows: Vec<Row> = forms::pairs(&text).into_iter().map(row).collect();
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
    pub(super) fn finish(mut self, last_line: u64, ended: bool, last_is_cut: bool, notes: &mut Notes) -> Report {
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
        Report { kind: self.kind, is_on_pdb: self.is_on_pdb, tables: self.tables, ended, last_line }
    }
}

/// Adds a line, and forgets the first one if there are more than `most`.
pub(super) fn push_at_most(lines: &mut VecDeque<(u64, String)>, number: u64, text: &str, most: usize) {
    if lines.len() == most {
        lines.pop_front();
    }
    lines.push_back((number, text.to_owned()));
}
