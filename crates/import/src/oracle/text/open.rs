//! A table whose rows are being read.

use std::collections::VecDeque;
use std::mem::take;

use super::forms::{self, Pair};
use super::layout::{Columns, Groups, Placed, Rule};
use super::marks::begins_with;
use super::sections::push_at_most;
use super::{names, words};
use crate::oracle::table::{Row, SNAPSHOTS, Table};

/// Lines of headings below each other, at most.
pub(super) const HEADING_LINES: usize = 6;

/// A table whose rows are being read.
pub(super) struct Open {
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
