//! vmstat of procps as text.

use super::clock::{self, Day, Stamp, Timeline};
use super::header::{self, Tool};
use super::iostat::{is_shell, shown};
use super::samples::{note_on_time, step_of};
use crate::console;
use crate::numbers::number;
use crate::{Began, Draft, ImportError, Notes, Source};
use model::record::Workload;

/// Whether a text is of vmstat.
pub(crate) fn recognises(head: &str) -> bool {
    header::tool_of(head) == Some(Tool::Vmstat)
}

/// Its runs: one for each time that vmstat was started. vmstat does not say how many processors there are, so shares stay shares.
pub(crate) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut found: Vec<Draft> = Vec::new();
    let mut table = Table::default();
    let last_line_whole = source.text().ends_with('\n');
    let mut lines = source.lines().peekable();
    while let Some((line_number, line)) = lines.next() {
        let is_last = lines.peek().is_none();
        let line = console::plain(line);
        let (prefix, rest) = match clock::before(&line) {
            Some((stamp, rest)) => (Some(stamp), rest),
            None => (None, &*line),
        };
        if let Some(stamp) = clock::snapshot(rest) {
            found.extend(std::mem::replace(&mut table, Table { snapshot: stamp, ..Table::default() }).draft());
        } else if rest.trim().is_empty() || header::is_vmstat_banner(rest) {
        } else if let Some(columns) = Columns::of(rest) {
            found.extend(table.header(columns));
        } else if let Some(columns) = &table.columns {
            match columns.row(rest, prefix) {
                // The last figure of a line that was cut may lack digits.
                Some(_) if is_last && !last_line_whole && !table.rows.is_empty() => table.cut = true,
                Some(row) => table.row(row),
                None if is_last
                    && !table.rows.is_empty()
                    && rest.trim_start().starts_with(|c: char| c.is_ascii_digit()) =>
                {
                    table.cut = true;
                }
                None if is_shell(rest) => {
                    table.next_command = Some(header::command(rest, "vmstat").unwrap_or_default())
                }
                None => notes.not_understood(
                    line_number,
                    format!("{}; {} figures were expected", shown(rest), columns.names.len()),
                ),
            }
        } else if let Some((command, pace_s)) = header::command(rest, "vmstat") {
            (table.command, table.pace_s) = (command, pace_s);
        }
    }
    found.extend(table.draft());
    if found.is_empty() {
        return Err(ImportError::no_result(source, "it holds no line of figures of vmstat"));
    }
    Ok(found)
}

/// The columns, and the zone of the time stamps that may follow them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Columns {
    names: Vec<(String, &'static str)>,
    utc: bool,
}

#[derive(Debug)]
struct Row {
    stamp: Option<Stamp>,
    values: Vec<f64>,
}

impl Columns {
    /// Nothing if the line does not name them.
    fn of(line: &str) -> Option<Self> {
        let (names, zone) = header::vmstat_columns(line)?;
        let names = names.into_iter().map(|name| (name.to_owned(), unit(name))).collect();
        Some(Self { names, utc: matches!(zone, Some("UTC" | "GMT")) })
    }

    /// A row of figures; a time may stand behind them, or before them as `prefix`.
    fn row(&self, line: &str, prefix: Option<Stamp>) -> Option<Row> {
        let mut rest = line;
        let mut values = Vec::with_capacity(self.names.len());
        for _ in &self.names {
            let (word, after) = clock::word(rest)?;
            values.push(number(word)?);
            rest = after;
        }
        let behind = clock::leading(rest);
        let stamp = behind
            .map(|(stamp, zone)| Stamp { utc: stamp.utc || self.utc || matches!(zone.trim(), "UTC" | "GMT"), ..stamp });
        if stamp.is_none() && !rest.trim().is_empty() {
            return None;
        }
        Some(Row { stamp: stamp.or(prefix), values })
    }
}

/// Memory and swapping are in units that `-S` sets and that the output does not report.
fn unit(column: &str) -> &'static str {
    match column {
        "bi" | "bo" => "KiB/s",
        "in" | "cs" => "1/s",
        "us" | "sy" | "id" | "wa" | "st" | "gu" => "%",
        _ => "",
    }
}

/// Rows of the smallest terminal; vmstat repeats its header after as many as fit, and after 21 where there is none.
const MIN_PAGE: usize = 10;

/// What one invocation wrote.
#[derive(Debug, Default)]
struct Table {
    columns: Option<Columns>,
    rows: Vec<Row>,
    /// Rows since the last header, and between the first two.
    since_header: usize,
    page: Option<usize>,
    cut: bool,
    command: Vec<String>,
    pace_s: Option<f64>,
    /// The time of the snapshot that it is of.
    snapshot: Option<Stamp>,
    /// What a prompt behind the rows shows: the command that comes next, if it is vmstat, and its interval.
    next_command: Option<(Vec<String>, Option<f64>)>,
}

impl Table {
    /// Takes a header. Those of one invocation have the same columns and the same number of rows between them; any other one is
    /// of the next invocation, with a first line since boot of its own. Returns the run of the one before.
    fn header(&mut self, columns: Columns) -> Option<Draft> {
        let same = self.columns.as_ref().is_none_or(|before| *before == columns);
        let is_page = self.since_header >= MIN_PAGE && self.page.is_none_or(|page| page == self.since_header);
        let mut ended = None;
        if !self.rows.is_empty() && (!same || !is_page || self.next_command.is_some()) {
            let (command, pace_s) = self.next_command.take().unwrap_or_default();
            ended = std::mem::replace(self, Self { command, pace_s, ..Self::default() }).draft();
        } else if !self.rows.is_empty() {
            self.page = Some(self.since_header);
        }
        self.columns = Some(columns);
        self.since_header = 0;
        ended
    }

    fn row(&mut self, row: Row) {
        self.rows.push(row);
        self.since_header += 1;
    }

    fn draft(mut self) -> Option<Draft> {
        let columns = self.columns?;
        let mut stamps: Vec<Option<Stamp>> = self.rows.iter().map(|row| row.stamp).collect();
        let first = stamps.first_mut()?;
        let month_first = first.or(self.snapshot).and_then(|stamp| stamp.month_first);
        let is_first_real = header::omits_since_boot(&self.command, self.pace_s);
        if is_first_real {
            let before = first.zip(self.pace_s).and_then(|(first, pace_s)| first.before(pace_s, month_first));
            stamps.insert(0, before.or(self.snapshot));
        } else {
            *first = first.or(self.snapshot);
        }
        let mut draft = Draft::new(Workload::Host, "vmstat", "vmstat");
        let mut timeline = Timeline::new(&stamps, Day::Unreported, month_first, self.pace_s);
        if !is_first_real && self.rows.len() > 1 {
            draft.notes.push(
                "The first line is left out: it is the average since the machine started, unless vmstat ran with -y."
                    .to_owned(),
            );
            self.rows.remove(0);
        } else if !is_first_real {
            draft
                .notes
                .push("The only line is the average since the machine started, unless vmstat ran with -y.".to_owned());
            timeline.spans = vec![(0, 0)];
        }
        if self.cut {
            draft.notes.push("The last line was cut off: it is left out.".to_owned());
        }
        let rows: Vec<Vec<f64>> = self.rows.into_iter().map(|row| row.values).collect();
        draft.notes.push("Memory and swapping are in KiB, unless vmstat was reported another unit with -S.".to_owned());
        note_on_time(&timeline, &mut draft.notes);
        draft.steps = vec![step_of("vmstat", &columns.names, &rows, &timeline)];
        draft.began = timeline.began.filter(|began: &Began| began.timestamp().0 > jiff::Timestamp::UNIX_EPOCH);
        draft.ended = timeline.ended.filter(|_| draft.began.is_some());
        draft.command = self.command;
        Some(draft)
    }
}

#[cfg(test)]
mod tests;
