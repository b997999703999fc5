//! Oracle's reports as text: from `awrrpt.sql`, `awrgrpt.sql` (all instances of a cluster), and Statspack's `spreport.sql`.
//!
//! All of them are made by SQL*Plus, so that their tables look alike: headings, a rule of dashes that says where columns lie,
//! rows. What a section is called is reported by a line with `DB/Inst:` in it, or by a line with `~~~~` below it. On a new page the
//! title and the headings stand once more.

mod forms;
mod layout;
mod misfits;
mod names;
mod sections;
#[cfg(test)]
mod tests;
mod words;

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};

use super::table::{Report, ReportKind, SNAPSHOTS};
use crate::{ImportError, Notes, Source};
use layout::Rule;
use sections::Sections;

/// Lines after a report's first one in which the rule of its first table must stand.
const LINES_TO_RULE: usize = 12;

/// Whether a text holds a report of AWR.
pub(crate) fn recognises(head: &str) -> bool {
    holds(head, |kind| kind != ReportKind::Statspack)
}

/// Whether a text holds a report of Statspack.
pub(crate) fn recognises_statspack(head: &str) -> bool {
    holds(head, |kind| kind == ReportKind::Statspack)
}

fn holds(head: &str, is_asked: impl Fn(ReportKind) -> bool) -> bool {
    let mut lines = Lines::new(head);
    while let Some(line) = lines.next() {
        if let Some(kind) = begins(&line, &mut lines) {
            return is_asked(kind);
        }
    }
    false
}

/// The reports in a file, one after the other.
///
/// # Errors
/// If one of them ends before it reports its snapshots.
pub(super) fn reports(source: &Source, notes: &mut Notes) -> Result<Vec<Report>, ImportError> {
    let mut lines = Lines::new(source.text());
    let mut reports = Vec::new();
    let mut open: Option<(Sections, u64)> = None;
    let mut last = 0;
    let mut misfits = BTreeSet::new();
    while let Some(line) = lines.next() {
        last = line.number;
        if let Some(kind) = begins(&line, &mut lines) {
            if let Some((sections, began)) = open.take() {
                reports.push(finish(sections, began, line.number - 1, End::Missing, source, (notes, &mut misfits))?);
            }
            open = Some((Sections::new(kind, is_on_pdb(&line.text)), line.number));
            continue;
        }
        let Some((sections, _)) = &mut open else {
            notes.unknown(line.number, &line.text);
            continue;
        };
        if is_end(&line.text) {
            if let Some((sections, began)) = open.take() {
                reports.push(finish(sections, began, line.number, End::Found, source, (notes, &mut misfits))?);
            }
            continue;
        }
        sections.line(line, &mut lines);
    }
    if let Some((sections, began)) = open {
        let end = if source.text().ends_with('\n') { End::Missing } else { End::WithinLine };
        reports.push(finish(sections, began, last, end, source, (notes, &mut misfits))?);
    }
    if reports.is_empty() {
        return Err(ImportError::damaged(source, None, "there is no report in it"));
    }
    // Once for all reports: their lines are known by number alone.
    for (line, text) in source.lines().filter(|(line, _)| misfits.contains(line)) {
        notes.unknown(line, text);
    }
    Ok(reports)
}

/// How a report ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// With its last line.
    Found,
    /// Before its last line.
    Missing,
    /// Before its last line, and the line that is the last may be cut.
    WithinLine,
}

/// Gives back the report, and adds its lines that no section knows.
fn finish(
    sections: Sections,
    began: u64,
    last_line: u64,
    end: End,
    source: &Source,
    (notes, misfits): (&mut Notes, &mut BTreeSet<u64>),
) -> Result<Report, ImportError> {
    if let Some((line, length)) = sections.broken() {
        let what = format!("its lines are broken after {length} characters: print it again with `set linesize 400`");
        return Err(ImportError::damaged(source, line, what));
    }
    let (report, unknown) = sections.finish(last_line, end == End::Found, end == End::WithinLine, notes);
    misfits.extend(unknown);
    let needed = match report.kind {
        ReportKind::AwrGlobal => report.tables.iter().any(|table| !table.rows.is_empty()),
        ReportKind::AwrSingle | ReportKind::Statspack => {
            let rows = report.table(SNAPSHOTS).map_or(0, |table| table.rows.len());
            rows >= 2
        }
    };
    if !needed {
        let what = format!("the report that begins at line {began} ends before it reports its snapshots");
        return Err(ImportError::damaged(source, last_line, what));
    }
    if !report.ended {
        notes
            .not_understood(last_line, "the report ends here; `End of Report` was expected, and what stands before it");
    }
    Ok(report)
}

/// Which report begins at a line: it says so, and a table follows.
fn begins(line: &Line<'_>, lines: &mut Lines<'_>) -> Option<ReportKind> {
    let kind = begins_by_its_words(without_margin(&line.text))?;
    let mut has_rule = |margin: String| {
        let before = lines.set_margin(margin);
        let is_rule = |ahead| {
            let line = lines.peek(ahead).filter(|line| Rule::of(&line.text).is_some()).cloned();
            line.is_some_and(|line| lines.has_margin(&line))
        };
        let found = (0..LINES_TO_RULE).any(is_rule);
        if !found {
            lines.set_margin(before);
        }
        found
    };
    // The first line alone may stand in the middle.
    (has_rule(line.margin()) || has_rule(String::new())).then_some(kind)
}

fn begins_by_its_words(text: &str) -> Option<ReportKind> {
    const MAX: usize = 80;
    // Cheap for all other lines.
    if !text.starts_with(['W', 'w', 'S', 's']) || text.len() > MAX {
        return None;
    }
    let text = text.to_ascii_uppercase();
    // The second is that of releases 8 and 9.
    if text.starts_with("STATSPACK REPORT FOR") || text.starts_with("STATSPACK STATISTICS REPORT FOR") {
        return Some(ReportKind::Statspack);
    }
    let rest = text.strip_prefix("WORKLOAD REPOSITORY ")?;
    let report = rest.trim_start_matches("PDB ");
    if report.starts_with("REPORT (RAC") || report.starts_with("REPORT (GLOBAL") {
        return Some(ReportKind::AwrGlobal);
    }
    (rest.starts_with("REPORT FOR") || rest.starts_with("PDB REPORT")).then_some(ReportKind::AwrSingle)
}

/// Whether the first line of a report says that it is on a pluggable database.
fn is_on_pdb(text: &str) -> bool {
    text.to_ascii_uppercase().contains("REPOSITORY PDB")
}

fn is_end(text: &str) -> bool {
    text.trim_start().strip_prefix("End of Report").is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '<']))
}

/// Lines longer than that are not a report's: the widest tables of a cluster have 300 characters.
const MAX_BYTES: usize = 8 << 10;
/// Where SQL*Plus puts its tab stops, where it writes tabs for blanks.
const TAB_STOP: usize = 8;

/// A line.
#[derive(Debug, Clone)]
struct Line<'a> {
    /// Its number, from 1.
    number: u64,
    /// Its text without blanks at its end; empty if it is too long to be a report's.
    text: Cow<'a, str>,
    /// All of it, as it stands in the file.
    whole: &'a str,
}

/// The lines, in their order.
struct Lines<'a> {
    rest: std::iter::Zip<std::str::Lines<'a>, std::ops::RangeFrom<u64>>,
    ahead: VecDeque<Line<'a>>,
    /// What stands before each line and is none of it.
    margin: String,
}

impl<'a> Lines<'a> {
    /// Those of a text.
    fn new(text: &'a str) -> Self {
        Self { rest: text.lines().zip(1..), ahead: VecDeque::new(), margin: String::new() }
    }

    /// The next one.
    fn next(&mut self) -> Option<Line<'a>> {
        self.ahead.pop_front().or_else(|| self.rest.next().map(|(text, number)| line(text, number, &self.margin)))
    }

    /// The line `ahead` lines after the next one, which has 0.
    fn peek(&mut self, ahead: usize) -> Option<&Line<'a>> {
        while self.ahead.len() <= ahead {
            let (text, number) = self.rest.next()?;
            self.ahead.push_back(line(text, number, &self.margin));
        }
        self.ahead.get(ahead)
    }

    /// Takes what stands before a line for a margin that all lines after it have: blanks of a listing in a document, or the `> `
    /// of a reply. What stood before it so far, to be given back.
    fn set_margin(&mut self, margin: String) -> String {
        for ahead in &mut self.ahead {
            *ahead = line(ahead.whole, ahead.number, &margin);
        }
        std::mem::replace(&mut self.margin, margin)
    }

    /// Whether a line has the margin.
    fn has_margin(&self, line: &Line<'a>) -> bool {
        clean(line.whole).starts_with(&self.margin)
    }
}

impl Line<'_> {
    /// Blanks and marks of a reply that it begins with.
    fn margin(&self) -> String {
        let whole = clean(self.whole);
        let length = whole.len() - without_margin(&whole).len();
        whole.get(..length).unwrap_or_default().to_owned()
    }
}

/// What remains of a line without blanks and marks of a reply at its beginning.
fn without_margin(text: &str) -> &str {
    text.trim_start_matches([' ', '>'])
}

fn line<'a>(whole: &'a str, number: u64, margin: &str) -> Line<'a> {
    let text = match clean(whole) {
        text if margin.is_empty() => text,
        text if text == margin.trim_end() => Cow::Borrowed(""),
        Cow::Borrowed(text) => Cow::Borrowed(text.strip_prefix(margin).unwrap_or(text)),
        Cow::Owned(text) => Cow::Owned(text.strip_prefix(margin).map(str::to_owned).unwrap_or(text)),
    };
    Line { number, text, whole }
}

fn clean(text: &str) -> Cow<'_, str> {
    // A page begins with a form feed where the report was spooled for a printer.
    let text = text.trim_start_matches('\u{c}').trim_end();
    match text {
        _ if text.len() > MAX_BYTES => Cow::Borrowed(""),
        _ if text.contains('\t') => Cow::Owned(without_tabs(text)),
        _ => Cow::Borrowed(text),
    }
}

fn without_tabs(text: &str) -> String {
    let mut plain = String::with_capacity(text.len() * 2);
    let mut at = 0;
    for c in text.chars() {
        let blanks = if c == '\t' { TAB_STOP - at % TAB_STOP } else { 0 };
        plain.extend(std::iter::repeat_n(' ', blanks));
        if blanks == 0 {
            plain.push(c);
        }
        at += blanks.max(1);
    }
    plain
}
