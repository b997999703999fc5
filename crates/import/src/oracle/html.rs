//! AWR reports in HTML, as tables.
//!
//! Tokens are looked at one by one and no tree is built, so that a report of any size and any nesting costs no more than its
//! text. Tables that nobody asks for (SQL texts, segments, latches, parameters) are left out as they go by.

use std::borrow::Cow;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};

use super::grid::Grid;
use super::is_read;
use super::table::{HEADER, Report, ReportKind, SNAPSHOTS, Table, plain};
use crate::{ImportError, Notes, Source};

/// The first heading and its tags take no more.
const LONGEST_HEADING: usize = 1_000;
/// A longer title is a remark.
const LONGEST_TITLE: usize = 120;
/// A longer remark, or more of them, says nothing that is asked for.
const MAX_REMARK: usize = 400;
const MAX_REMARKS: usize = 16;
/// More text outside of all elements is none of a report.
const MAX_STRAY: usize = 1_000;
/// More cells than any report has; what follows is left out, and noted. Spans make many columns of few letters.
const MAX_CELLS: usize = 4 << 20;
/// Whether a file is an AWR report in HTML: its first heading says so, and its first tables have the headings of the database's
/// identity. Reports that compare two periods, and those of one SQL statement, have other tables; other databases have scripts
/// that borrow the heading.
pub(crate) fn recognises(head: &str) -> bool {
    let head = head.to_ascii_lowercase();
    let is_report = |(at, words): (usize, &str)| {
        // Most are no heading, and need no look at what follows.
        if !is_heading(head.get(..at).unwrap_or_default()) {
            return false;
        }
        let rest = head.get(at + words.len()..).unwrap_or_default();
        let end = ["</h", "<table", "<p"].iter().filter_map(|tag| rest.find(tag)).min().unwrap_or(rest.len());
        let title = rest.get(..end.min(LONGEST_HEADING)).unwrap_or_default();
        let identity = ["db id", "snapshot ids"].iter().any(|words| rest.contains(words));
        identity && is_of_report(&collapsed(&format!("workload{}", without_tags(title))))
    };
    head.match_indices("workload").any(is_report)
}

/// Whether what stands before a text makes a first heading of it. Word processors put tags of their own between.
fn is_heading(mut before: &str) -> bool {
    const MAX_TAGS: usize = 8;
    for _ in 0..MAX_TAGS {
        let Some(inner) = before.trim_end().strip_suffix('>') else { return false };
        let Some((rest, tag)) = inner.rsplit_once('<') else { return false };
        if tag.starts_with("h1") {
            return true;
        }
        if !["span", "a ", "/a", "b", "strong", "font", "o:p", "/o:p"].iter().any(|inline| tag.starts_with(inline)) {
            return false;
        }
        before = rest;
    }
    false
}

/// Whether a heading in small letters is that of a report, not of a comparison or of one statement.
fn is_of_report(heading: &str) -> bool {
    heading
        .split_once("workload repository")
        .is_some_and(|(_, title)| title.contains("report") && !title.contains("compare") && !title.contains("sql"))
}

fn without_tags(text: &str) -> String {
    let mut parts = text.split('<');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(part.split_once('>').map_or("", |(_, after)| after));
    }
    plain
}

/// The tables of the reports in a file, which may follow one another.
///
/// # Errors
/// If one of them has none.
pub(super) fn reports(source: &Source, notes: &mut Notes) -> Result<Vec<Report>, ImportError> {
    let text = undoubled(source.text());
    let mut reader = Reader::new(&text);
    let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, span: Span<usize>| -> Option<()> {
        reader.event(&event, span.start);
        None
    });
    // So that what stands in styles and scripts is no HTML.
    emitter.naively_switch_states(true);
    Tokenizer::new_with_emitter(text.as_ref(), emitter).for_each(drop);
    if reader.within == Within::Table {
        reader.grid.drop_last_row();
    }
    reader.count_lines(text.len());
    reader.finish_report();
    if let Some(line) = reader.left_out {
        notes.not_understood(line, "here the report becomes longer than any report; what follows is left out");
    }
    for (line, text) in &reader.stray {
        notes.unknown(*line, text);
    }
    for report in &reader.reports {
        if report.tables.iter().all(|table| table.rows.is_empty()) {
            let what = "it is headed as an AWR report and has no table of one";
            return Err(ImportError::damaged(source, report.last_line, what));
        }
        if !report.ended {
            let what = "the report ends here; expected was more of it, up to `End of Report`";
            notes.not_understood(report.last_line, what);
        }
    }
    if reader.reports.is_empty() {
        return Err(ImportError::damaged(source, None, "the heading of its report is missing"));
    }
    Ok(reader.reports)
}

/// A report that was kept as a cell of a CSV file has all its quotes twice.
fn undoubled(text: &str) -> Cow<'_, str> {
    let is_csv = text.contains("class=\"\"awr\"\"") || text.contains("border=\"\"0\"\"");
    if is_csv { Cow::Owned(text.replace("\"\"", "\"")) } else { Cow::Borrowed(text) }
}

/// What text belongs to.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Within {
    /// The page, where a line of its own may be a title.
    Page,
    /// The first heading.
    Heading,
    /// The heading of a section.
    Title,
    /// A list, a link or a listing.
    Aside,
    /// A table that is kept.
    Table,
    /// One that is not.
    Unwanted,
}

struct Reader<'a> {
    text: &'a str,
    /// Byte up to which lines are counted, and their number so far.
    counted: usize,
    line: u64,
    within: Within,
    /// The tag that ends an aside.
    aside: Vec<u8>,
    /// Text that may become a title, or the name of a tag's attribute.
    words: String,
    attribute: Vec<u8>,
    heading: String,
    title: String,
    /// The list below the title, for the table that follows.
    remarks: Vec<String>,
    grid: Grid,
    tables: Vec<Table>,
    /// Cells of all tables so far, and the line from which on they were too many.
    cells: usize,
    left_out: Option<u64>,
    ended: bool,
    reports: Vec<Report>,
    /// Text on the page and between the cells of tables that are read, with its line.
    stray: Vec<(u64, String)>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            counted: 0,
            line: 1,
            within: Within::Page,
            aside: Vec::new(),
            words: String::new(),
            attribute: Vec::new(),
            heading: String::new(),
            title: String::new(),
            remarks: Vec::new(),
            grid: Grid::default(),
            tables: Vec::new(),
            cells: 0,
            left_out: None,
            ended: false,
            reports: Vec::new(),
            stray: Vec::new(),
        }
    }

    fn event(&mut self, event: &CallbackEvent<'_>, at: usize) {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                if matches!(*name, b"table" | b"tr" | b"h1") {
                    self.count_lines(at);
                }
                self.start(name);
            }
            CallbackEvent::AttributeName { name } => {
                self.attribute.clear();
                self.attribute.extend_from_slice(name.get(..name.len().min(16)).unwrap_or_default());
            }
            CallbackEvent::AttributeValue { value } if self.within == Within::Table => {
                let span = || str::from_utf8(value).ok().and_then(|text| text.trim().parse::<usize>().ok());
                match self.attribute.as_slice() {
                    b"colspan" => self.grid.spans_columns(span().unwrap_or(1)),
                    b"rowspan" => self.grid.spans_rows(span().unwrap_or(1)),
                    _ => {}
                }
            }
            CallbackEvent::EndTag { name } => self.end(name),
            CallbackEvent::String { value } => {
                let is_between = self.within == Within::Table && !self.grid.is_in_cell();
                if (is_between || self.within == Within::Page) && self.is_in_report() && value.len() <= MAX_REMARK {
                    self.stray(value, at);
                }
                self.string(value);
            }
            _ => {}
        }
    }

    /// Keeps text that no element says anything of.
    fn stray(&mut self, value: &[u8], at: usize) {
        let text = String::from_utf8_lossy(value);
        if text.contains(|char: char| char.is_ascii_digit()) && self.stray.len() < MAX_STRAY {
            self.count_lines(at + (text.len() - text.trim_start().len()));
            self.stray.push((self.line, collapsed(&text)));
        }
    }

    fn count_lines(&mut self, to: usize) {
        let passed = self.text.as_bytes().get(self.counted..to).unwrap_or_default();
        self.line += passed.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.counted = self.counted.max(to);
    }

    fn start(&mut self, name: &[u8]) {
        let in_table = matches!(self.within, Within::Table | Within::Unwanted);
        if matches!(name, b"table" | b"h1" | b"h2" | b"h3" | b"h4" | b"ul" | b"p" | b"hr") {
            self.finish_heading();
        }
        match name {
            b"table" => {
                self.page_words();
                self.finish_table();
                self.within = if self.is_wanted() { Within::Table } else { Within::Unwanted };
                // The title of a section that is read.
                if self.within == Within::Table {
                    self.stray.pop_if(|(_, text)| *text == self.title);
                }
            }
            b"tr" if self.within == Within::Table => self.grid.start_row(self.line),
            b"td" | b"th" if self.within == Within::Table => self.grid.start_cell(name == b"th"),
            b"br" if self.within == Within::Table => self.grid.text(" "),
            b"li" if self.within == Within::Aside => self.end_remark(),
            b"h1" | b"h2" | b"h3" | b"h4" => {
                self.page_words();
                self.finish_table();
                self.words.clear();
                self.within = if name == b"h1" { Within::Heading } else { Within::Title };
            }
            b"li" | b"ul" | b"a" | b"pre" | b"style" | b"script" | b"title" | b"textarea"
                if self.within == Within::Page =>
            {
                self.page_words();
                self.within = Within::Aside;
                self.aside = name.to_vec();
            }
            b"p" | b"br" | b"hr" if !in_table => self.page_words(),
            _ => {}
        }
    }

    fn end(&mut self, name: &[u8]) {
        match name {
            b"table" => {
                self.finish_table();
                self.within = Within::Page;
            }
            b"tr" if self.within == Within::Table => self.grid.end_row(),
            b"td" | b"th" if self.within == Within::Table => self.grid.end_cell(),
            b"h1" | b"h2" | b"h3" | b"h4" => self.finish_heading(),
            _ if self.within == Within::Aside && name == self.aside => {
                self.end_remark();
                self.within = Within::Page;
            }
            b"p" if self.within == Within::Page => self.page_words(),
            b"body" | b"html" => self.ended = true,
            _ => {}
        }
    }

    /// A heading ends, closed or not.
    fn finish_heading(&mut self) {
        let words = collapsed(&self.words);
        match self.within {
            Within::Heading => {
                let heading = words.to_lowercase();
                let ends_report = ["workload repository", "ash report", "addm report"];
                if ends_report.iter().any(|begin| heading.contains(begin)) {
                    self.finish_report();
                    // Reports of other kinds may follow in the same file; they have tables of the same names.
                    self.heading = if is_of_report(&heading) { heading } else { String::new() };
                }
            }
            Within::Title if !words.is_empty() => self.begin_section(words),
            Within::Title => {}
            _ => return,
        }
        self.words.clear();
        self.within = Within::Page;
    }

    /// What stood in a list is a remark; what stood in a link or a script is nothing.
    fn end_remark(&mut self) {
        let remark = collapsed(&self.words);
        self.words.clear();
        if !remark.is_empty() && self.remarks.len() < MAX_REMARKS {
            self.remarks.push(remark);
        }
    }

    fn begin_section(&mut self, title: String) {
        self.title = title;
        self.remarks.clear();
    }

    /// A report ends, if one has begun.
    fn finish_report(&mut self) {
        self.finish_table();
        let tables = std::mem::take(&mut self.tables);
        let heading = std::mem::take(&mut self.heading);
        let ended = std::mem::take(&mut self.ended);
        self.begin_section(String::new());
        if heading.is_empty() {
            return;
        }
        let summary = tables.iter().any(|table| plain(&table.title) == "databasesummary");
        let kind = if summary || heading.contains("(rac)") { ReportKind::AwrGlobal } else { ReportKind::AwrSingle };
        let is_on_pdb = heading.contains("repository pdb");
        self.reports.push(Report { kind, is_on_pdb, tables, ended, last_line: self.line });
    }

    fn string(&mut self, value: &[u8]) {
        match self.within {
            Within::Table => self.grid.text(&String::from_utf8_lossy(value)),
            Within::Page | Within::Heading | Within::Title if self.words.len() <= LONGEST_TITLE => {
                let more = String::from_utf8_lossy(value.get(..value.len().min(4 * LONGEST_TITLE)).unwrap_or_default());
                self.words.push_str(&more);
            }
            Within::Aside if matches!(self.aside.as_slice(), b"li" | b"ul") && self.words.len() <= MAX_REMARK => {
                self.words
                    .push_str(&String::from_utf8_lossy(value.get(..value.len().min(MAX_REMARK)).unwrap_or_default()));
            }
            _ => {}
        }
    }

    /// What stood on the page by itself is the title of what follows.
    fn page_words(&mut self) {
        if self.within == Within::Page {
            let words = collapsed(&self.words);
            let is_title = words.len() <= LONGEST_TITLE && words.contains(char::is_alphabetic);
            if words.eq_ignore_ascii_case("end of report") {
                self.ended = true;
            } else if is_title && self.is_in_report() && !words.starts_with("No data exists") {
                self.begin_section(words);
            }
        }
        self.words.clear();
    }

    /// Whether the first heading was there: what stands before it is no part of the report.
    fn is_in_report(&self) -> bool {
        !self.heading.is_empty()
    }

    fn is_wanted(&self) -> bool {
        self.is_in_report() && (plain(&self.title).is_empty() || is_read(&self.title))
    }

    fn finish_table(&mut self) {
        let wanted = self.within == Within::Table;
        if matches!(self.within, Within::Table | Within::Unwanted) {
            self.within = Within::Page;
        }
        if !wanted {
            return;
        }
        let grid = std::mem::take(&mut self.grid);
        if grid.has_left_out() || self.cells > MAX_CELLS {
            self.left_out.get_or_insert(self.line);
        }
        if self.cells > MAX_CELLS {
            return;
        }
        let Some(mut table) = grid.into_table() else { return };
        self.cells = self.cells.saturating_add(table.columns.len() * (table.rows.len() + 1));
        let has = |name| table.column(name).is_some();
        table.title = if has("Snap Id") && has("Snap Time") {
            SNAPSHOTS.to_owned()
        } else if self.title.is_empty() {
            HEADER.to_owned()
        } else {
            self.title.clone()
        };
        table.remarks = std::mem::take(&mut self.remarks);
        super::grid::as_form(&mut table);
        self.tables.push(table);
    }
}

fn collapsed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
