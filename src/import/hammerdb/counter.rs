//! The log of HammerDB's transaction counter: the rate of the whole database, a line a refresh.

use crate::import::console::plain;
use crate::import::draft::{self, count_of, told};
use crate::import::interval;
use crate::import::numbers::number;
use crate::import::unix_date;
use crate::import::{Began, Draft, ImportError, Notes, Source};

const HEADER: &str = "Hammerdb Transaction Counter Log";

/// Whether it begins with the heading of such a log, or with its lines.
pub(in crate::import) fn recognises(head: &str) -> bool {
    let is_one = |line: &str| line.trim_start().starts_with(HEADER) || row(&plain(line)).is_some();
    head.lines().find(|line| !line.trim().is_empty()).is_some_and(is_one)
}

/// `324540 PostgreSQL tpm @ Thu Jun 30 22:43:41 UTC 2022`: the rate, the database, and when.
fn row(line: &str) -> Option<(f64, &str, Began)> {
    let (left, time) = line.split_once(" tpm @ ")?;
    let (tpm, database) = left.trim().split_once(' ')?;
    Some((number(tpm)?, database.trim(), unix_date::parse(time)?))
}

/// The runs in it, one for each heading.
pub(in crate::import) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut runs: Vec<Vec<(f64, String, Began)>> = vec![Vec::new()];
    for (number, line) in source.lines() {
        let line = plain(line);
        if line.trim_start().starts_with(HEADER) {
            runs.push(Vec::new());
        } else if let Some((tpm, database, at)) = row(&line) {
            if let Some(run) = runs.last_mut() {
                run.push((tpm, database.to_owned(), at));
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

/// Each line tells the rate since the line before; the first tells nothing that can be placed.
fn draft(rows: &[(f64, String, Began)]) -> Draft {
    let database = rows.first().map_or("", |(_, database, _)| database.as_str());
    let mut draft = Draft::new("transactions", "HammerDB", format!("{database} transaction counter"));
    draft.target.kind = super::target_kind(database);
    draft.began = rows.first().map(|(.., at)| *at);
    draft.ended = rows.last().map(|(.., at)| at.timestamp());
    draft.notes.push("TPM counts commits and rollbacks of the whole database, a minute.".to_owned());
    let mut step = draft::step(0, "all", 0);
    let second = |at: Began| at.timestamp().0.as_second();
    let mut before: Option<i64> = None;
    let mut offset_ns = 0_u64;
    for (tpm, _, at) in rows {
        let Some(last) = before.replace(second(*at)) else { continue };
        let Ok(length_s) = u64::try_from(second(*at).saturating_sub(last)) else { continue };
        let length_ns = length_s.saturating_mul(1_000_000_000);
        let mut interval = interval::of(&step, offset_ns, length_ns);
        interval.told.insert("TPM".to_owned(), *tpm);
        interval.counters.operations = count_of(tpm / 60.0, length_ns).filter(|_| length_ns > 0);
        offset_ns = offset_ns.saturating_add(length_ns);
        step.intervals.push(interval);
    }
    step.window.duration_ns = offset_ns;
    let highest = rows.iter().map(|(tpm, ..)| *tpm).max_by(f64::total_cmp);
    step.told.extend(highest.map(|tpm| told("server", "highest TPM", "/min", tpm)));
    draft.steps.push(step);
    draft
}
