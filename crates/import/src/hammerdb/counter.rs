//! The log of HammerDB's transaction counter: the rate of the whole database, a line a refresh.

use crate::console::plain;
use crate::draft::{self, reported_figure, whole};
use crate::interval;
use crate::numbers::number;
use crate::unix_date;
use crate::{Began, Draft, ImportError, Notes, Source};
use model::record::Workload;

const HEADER: &str = "Hammerdb Transaction Counter Log";

/// Whether it begins with the heading of such a log, or with its lines.
pub(crate) fn recognises(head: &str) -> bool {
    let is_row = |line: &str| row(&plain(line)).is_some_and(|row| row.at.is_some());
    let is_one = |line: &str| line.trim_start().starts_with(HEADER) || is_row(line);
    head.lines().find(|line| !line.trim().is_empty()).is_some_and(is_one)
}

/// What is counted, for how many seconds, and what that counts.
const RATES: [(&str, u64, &str); 2] = [
    ("TPM", 60, "TPM counts commits and rollbacks of the whole database, a minute."),
    ("QPH", 3_600, "QPH counts queries of the whole database, an hour."),
];

/// One line.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    rate: f64,
    /// Where in [`RATES`] it stands.
    of: usize,
    database: String,
    at: Option<Began>,
}

/// `324540 PostgreSQL tpm @ Thu Jun 30 22:43:41 UTC 2022`: the rate, the database, and when, unless timestamps were switched off.
fn row(line: &str) -> Option<Row> {
    let (left, time) = match line.split_once(" @ ") {
        Some((left, time)) => (left, Some(unix_date::parse(time)?)),
        None => (line, None),
    };
    let (left, unit) = left.trim().rsplit_once(' ')?;
    let of = RATES.iter().position(|(name, ..)| name.eq_ignore_ascii_case(unit))?;
    let (rate, database) = left.split_once(' ')?;
    Some(Row { rate: number(rate)?, of, database: database.trim().to_owned(), at: time })
}

/// The runs in it, one for each heading.
pub(crate) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut runs: Vec<Vec<Row>> = vec![Vec::new()];
    for (number, line) in source.lines() {
        let line = plain(line);
        if line.trim_start().starts_with(HEADER) {
            runs.push(Vec::new());
        } else if let Some(row) = row(&line) {
            if let Some(run) = runs.last_mut() {
                run.push(row);
            }
        } else if !line.trim_matches(['+', '-', ' ']).is_empty() {
            notes.not_understood(number, "a rate, `tpm @` and a time were expected");
        }
    }
    let drafts: Vec<Draft> = runs.iter().filter(|rows| !rows.is_empty()).map(|rows| draft(rows)).collect();
    if drafts.is_empty() {
        return Err(ImportError::damaged(source, None, "a transaction counter that counted nothing"));
    }
    Ok(drafts)
}

/// Each line reports the rate since the line before; the first says nothing that can be placed.
fn draft(rows: &[Row]) -> Draft {
    let (database, of) = rows.first().map_or(("", 0), |row| (row.database.as_str(), row.of));
    let (name, rate_s, note) = RATES.get(of).copied().unwrap_or(RATES[0]);
    let mut draft = Draft::new(Workload::Transactions, "HammerDB", format!("{database} transaction counter"));
    draft.target.kind = super::target_kind(database);
    draft.began = rows.first().and_then(|row| row.at);
    draft.ended = rows.last().and_then(|row| row.at).map(Began::timestamp);
    draft.notes.push(note.to_owned());
    let times: Vec<i64> = rows.iter().filter_map(|row| Some(row.at?.timestamp().0.as_second())).collect();
    if times.len() < rows.len() {
        draft.notes.push("Lines without a time are not shown: it is not reported how far they lie apart.".to_owned());
    }
    // The rate is what was counted, times how often a refresh fits into a minute as it was asked for, however long it took.
    let between = |pair: &[i64]| u64::try_from(pair.get(1)?.checked_sub(*pair.first()?)?).ok();
    let refresh_s = times.windows(2).filter_map(between).filter(|s| *s > 0).min();
    let factor = refresh_s.and_then(|refresh_s| rate_s.checked_div(refresh_s)).filter(|factor| *factor > 0);
    let mut step = draft::step(0, "all", 0);
    let mut offset_ns = 0_u64;
    let timed: Vec<&Row> = rows.iter().filter(|row| row.at.is_some()).collect();
    for (row, pair) in timed.iter().skip(1).zip(times.windows(2)) {
        let Some(length_s) = between(pair) else { continue };
        let length_ns = length_s.saturating_mul(1_000_000_000);
        let mut interval = interval::of(&step, offset_ns, length_ns);
        interval.reported.insert(name.to_owned(), row.rate);
        interval.counters.operations =
            factor.filter(|_| length_s > 0).and_then(|factor| whole(row.rate / factor as f64));
        offset_ns = offset_ns.saturating_add(length_ns);
        step.intervals.push(interval);
    }
    step.window.duration_ns = offset_ns;
    let highest = rows.iter().map(|row| row.rate).max_by(f64::total_cmp);
    let unit = if rate_s == 60 { "/min" } else { "/h" };
    step.reported.extend(highest.map(|rate| reported_figure("server", format!("highest {name}"), unit, rate)));
    draft.steps.push(step);
    draft
}
