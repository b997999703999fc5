//! What charbench prints while it runs: a header and one row a refresh, whose columns are those that were asked for.

use model::record::Workload;
use std::collections::BTreeMap;

use super::report::{self, Report};
use super::results;
use crate::console::{plain, unprefixed};
use crate::draft::{self, whole};
use crate::interval;
use crate::numbers::{number, whole_number};
use crate::osstat::without_jumps;
use crate::{Began, Draft, ImportError, Notes, Source};
use model::record::{Ending, Outcome, Step};

const S: u64 = 1_000_000_000;
const DAY_S: u64 = 86_400;

/// Whether a header of rows stands in it and Swingbench has signed it, or a row follows the header.
pub(crate) fn recognises(head: &str) -> bool {
    let mut header = Header::None;
    let mut signed = false;
    for line in head.lines() {
        let line = plain(line);
        let text = unprefixed(line);
        let is_row =
            |(_, cells): &(u64, Vec<&str>)| header == Header::Sure || cells.iter().any(|cell| users(cell).is_some());
        if header != Header::None && row(text).as_ref().is_some_and(is_row) {
            return true;
        }
        header = header.max(columns(text).map_or(Header::None, |names| sure(&names)));
        signed |= text.starts_with("Swingbench") || text.contains("Dominic Giles");
        if header != Header::None && signed {
            return true;
        }
    }
    false
}

/// The runs in it. A run begins with its header and ends at `Completed Run.`; without that it was cut off.
pub(crate) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut runs: Vec<Log> = Vec::new();
    let mut version = String::new();
    let mut expected = None;
    let mut config = BTreeMap::new();
    let mut date = None;
    // Without `-v` each row is written over the one before.
    let lines =
        source.timed_lines().flat_map(|(number, timed, line)| line.split('\r').map(move |part| (number, timed, part)));
    for (number, timed, line) in lines {
        let line = plain(line);
        date = date_before(timed.unwrap_or(line)).or(date);
        let text = unprefixed(line);
        let open = runs.last_mut().filter(|run| !run.completed);
        if let Some(columns) = columns(text) {
            // The header comes again every screenful.
            if open.is_none_or(|run| run.columns != columns) {
                let expected = std::mem::take(&mut expected);
                let parameters = std::mem::take(&mut config);
                runs.push(Log { version: version.clone(), columns, expected, parameters, date, ..Log::default() });
            }
        } else if let Some((time_s, cells)) = row(text) {
            let Some(run) = open else { continue };
            if cells.len() + 1 == run.columns.len() {
                run.rows.push((time_s, cells.into_iter().map(str::to_owned).collect()));
            } else {
                notes.not_understood(
                    number,
                    format!("a row of {} columns below a header of {}", cells.len() + 1, run.columns.len()),
                );
            }
        } else if let Some(cells) = report::cells(text)
            && let Some(run) = open
        {
            run.report.line(&cells);
        } else if text.trim_end_matches(['.', ' ']) == "Completed Run" {
            if let Some(run) = open {
                run.completed = true;
            }
        } else if let Some(reported) = value_of(text, "Version") {
            version = reported;
        } else if let Some(reported) = text.strip_prefix("Expected Benchmark Runtime is set to") {
            expected = Some(reported.trim().trim_end_matches('.').to_owned());
        } else if let Some(reported) = text.strip_prefix("Config file:") {
            config.insert("config file".to_owned(), reported.trim().to_owned());
        } else {
            notes.unknown(number, text);
        }
    }
    if runs.is_empty() {
        return Err(ImportError::no_result(source, "it holds no run"));
    }
    runs.into_iter().map(|run| run.draft(source, notes)).collect()
}

/// The date that a wrapper put before a line; rows themselves have none.
fn date_before(line: &str) -> Option<jiff::civil::DateTime> {
    let text = line.trim_start().trim_start_matches('[').get(..19)?;
    jiff::civil::DateTime::strptime("%Y-%m-%d %H:%M:%S", text.replace('T', " ")).ok()
}

/// `Version :  2.7`.
fn value_of(text: &str, name: &str) -> Option<String> {
    let value = text.strip_prefix(name)?.trim_start().strip_prefix(':')?.trim();
    value.starts_with(|char: char| char.is_ascii_digit()).then(|| value.to_owned())
}

/// How sure it is that a header of charbench was seen. Others have a column of users or of a rate, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Header {
    None,
    Likely,
    Sure,
}

fn is_known(name: &str) -> bool {
    matches!(name.to_ascii_lowercase().as_str(), "users" | "tpm" | "tps")
}

fn sure(names: &[String]) -> Header {
    if names.iter().filter(|name| is_known(name)).count() >= 2 { Header::Sure } else { Header::Likely }
}

/// The names of the columns, if this is a header: `Time` and two others, of which charbench always calls one so.
fn columns(text: &str) -> Option<Vec<String>> {
    let names: Vec<&str> = text.split_whitespace().take(200).collect();
    let is_time = matches!(names.first(), Some(&("Time" | "TIME" | "time")));
    (is_time && names.len() > 2 && names.iter().any(|name| is_known(name)) && !text.contains('|'))
        .then(|| names.into_iter().map(str::to_owned).collect())
}

/// A row: its time of day in seconds and the cells after it.
fn row(text: &str) -> Option<(u64, Vec<&str>)> {
    let (time, rest) = text.split_once(char::is_whitespace)?;
    let mut cells: Vec<&str> = rest.split_whitespace().take(200).collect();
    if matches!(cells.first(), Some(&("AM" | "PM"))) {
        let half = cells.remove(0);
        return Some((time_of_day(time, Some(half))?, cells));
    }
    let looks_right = cells.iter().all(|cell| cell.starts_with('[') || number(cell).is_some() || *cell == "-");
    (!cells.is_empty() && looks_right).then_some((time_of_day(time, None)?, cells))
}

fn time_of_day(text: &str, half: Option<&str>) -> Option<u64> {
    let parts: Vec<u64> = text.split(':').take(4).map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [hours, minutes, seconds] = parts[..] else { return None };
    let hours = match half {
        Some("PM") if hours < 12 => hours + 12,
        Some("AM") if hours == 12 => 0,
        _ => hours,
    };
    (hours < 24 && minutes < 60 && seconds < 61).then_some(hours * 3_600 + minutes * 60 + seconds)
}

/// One run of charbench.
#[derive(Debug, Default)]
struct Log {
    version: String,
    columns: Vec<String>,
    expected: Option<String>,
    /// When something else wrote into the log before the run began.
    date: Option<jiff::civil::DateTime>,
    parameters: BTreeMap<String, String>,
    rows: Vec<(u64, Vec<String>)>,
    report: Report,
    completed: bool,
}

/// Seconds that passed, where the clock did not go back.
fn whole_seconds(step_s: f64) -> Option<u64> {
    crate::draft::whole(step_s).filter(|_| step_s >= 0.0)
}

impl Log {
    fn draft(self, source: &Source, notes: &mut Notes) -> Result<Draft, ImportError> {
        if let Some(fields) = self.report.fields() {
            let mut draft = results::draft(source, notes, None, fields)?;
            draft.version.clone_from(&self.version);
            draft.parameters.extend(self.parameters.clone());
            for step in &mut draft.steps {
                // The totals are those of the report; rows are of the seconds.
                let mut of_rows = draft::step(0, "", 0);
                self.fill(&mut of_rows);
                step.load.sessions = of_rows.load.sessions;
                step.label = step.load.sessions.map_or_else(|| "all".to_owned(), |users| format!("u{users}"));
                step.intervals = of_rows.intervals;
            }
            return Ok(draft);
        }
        if self.rows.is_empty() {
            return Err(ImportError::damaged(source, None, "a header of charbench has no rows"));
        }
        let mut draft = Draft::new(Workload::Transactions, "Swingbench", "charbench");
        draft.version = self.version.clone();
        draft.parameters = self.parameters.clone();
        if let Some(expected) = &self.expected {
            draft.parameters.insert("expected runtime".to_owned(), expected.clone());
        }
        draft.notes.push(
            "charbench prints no totals: transactions were added up from its rows, which it prints about once a second."
                .to_owned(),
        );
        draft.notes.push("Response times in its columns are means in whole milliseconds.".to_owned());
        if !self.completed {
            draft.notes.push("The log ends before `Completed Run.`".to_owned());
        }
        draft.began = self.began();
        let mut step = draft::step(0, "", 0);
        self.fill(&mut step);
        // Without a run time it may have ended after a number of transactions.
        let by_time = self.completed && self.expected.is_some();
        step.window.ending = if by_time { Ending::Time } else { Ending::Unknown };
        step.outcome = if self.completed { Outcome::Completed } else { Outcome::Unfinished };
        step.label = step.load.sessions.map_or_else(|| "all".to_owned(), |users| format!("u{users}"));
        draft.steps.push(step);
        Ok(draft)
    }

    /// The time of the first row, on the day that the log reported last before it or on the next.
    fn began(&self) -> Option<Began> {
        let (time_s, _) = self.rows.first()?;
        let time =
            jiff::civil::Time::midnight().checked_add(jiff::SignedDuration::from_secs((*time_s).cast_signed())).ok()?;
        let date = self.date?;
        let same_day = date.date().to_datetime(time);
        let earlier = date.duration_since(same_day) > jiff::SignedDuration::from_hours(12);
        Began::wall(if earlier { same_day.checked_add(jiff::Span::new().days(1)).ok()? } else { same_day })
    }

    fn fill(&self, step: &mut Step) {
        let mut before: Option<u64> = None;
        let mut offset_s: u64 = 0;
        // The time of one row alone is that of its print, and not of what it counted.
        let alone = self.rows.len() == 1;
        // After midnight the clock begins anew.
        let between = |before: u64, after: u64| (after + DAY_S - before.min(DAY_S)) % DAY_S;
        let mut steps_s: Vec<f64> = self
            .rows
            .windows(2)
            .filter_map(|pair| {
                let (before, after) = (pair.first()?.0, pair.get(1)?.0);
                let back_s = before.saturating_sub(after);
                Some(if back_s > 0 && back_s < DAY_S / 2 { -(back_s as f64) } else { between(before, after) as f64 })
            })
            .collect();
        without_jumps(&mut steps_s);
        let mut steps_s = steps_s.into_iter().map(whole_seconds);
        let refresh_s = steps_s.clone().flatten().min();
        let (mut transactions, mut highest) = (Some(0_u64), None::<f64>);
        let (mut max_users, mut asked_users) = (None::<u32>, None::<u32>);
        for (time_s, cells) in &self.rows {
            let mut interval = interval::of(step, 0, 0);
            for (name, cell) in self.columns.iter().skip(1).zip(cells) {
                if let Some((connected, asked)) = users(cell) {
                    max_users = max_users.max(Some(connected));
                    asked_users = asked_users.max(asked);
                    interval.reported.insert("Users".to_owned(), f64::from(connected));
                } else if let Some(value) = number(cell) {
                    // Old versions report the users that are connected alone.
                    let connected = whole_number(cell).filter(|_| name.eq_ignore_ascii_case("users"));
                    max_users = max_users.max(connected.and_then(|users| u32::try_from(users).ok()));
                    interval.reported.insert(name.clone(), value);
                }
            }
            if alone {
                continue;
            }
            let of = |name: &str| {
                let same = |(known, _): &(&String, &f64)| known.eq_ignore_ascii_case(name);
                interval.reported.iter().find(same).map(|(_, value)| *value)
            };
            highest = of("TPM").into_iter().chain(highest).max_by(f64::total_cmp);
            let per_s = of("TPS");
            let passed_s = match before.replace(*time_s) {
                // The first row is printed when the run begins, before anything ran.
                None if per_s == Some(0.0) => continue,
                None => 1,
                Some(before) => steps_s.next().flatten().unwrap_or_else(|| between(before, *time_s)),
            };
            interval.offset_ns = offset_s.saturating_mul(S);
            interval.duration_ns = passed_s.saturating_mul(S);
            // Of rows a second each is what was counted since the one before, also where that comes late; of
            // slower ones it is a rate.
            let seconds = if refresh_s.is_none_or(|refresh_s| refresh_s <= 1) { 1 } else { passed_s };
            let count = per_s.and_then(|per_s| whole(per_s * seconds as f64));
            transactions = transactions.zip(count).map(|(sum, count)| sum.saturating_add(count));
            interval.counters.operations = count;
            offset_s = offset_s.saturating_add(passed_s);
            step.intervals.push(interval);
        }
        step.load.sessions = asked_users.filter(|asked| *asked > 0).or(max_users);
        step.window.duration_ns = offset_s.saturating_mul(S);
        step.counters.operations = transactions.filter(|_| !step.intervals.is_empty());
        step.reported.extend(highest.map(|highest| draft::reported_figure("client", "highest TPM", "/min", highest)));
    }
}

/// `[connected/asked]`, or one number in the column of users.
fn users(cell: &str) -> Option<(u32, Option<u32>)> {
    let inside = cell.strip_prefix('[')?.strip_suffix(']')?;
    let of = |text: &str| whole_number(text).and_then(|users| u32::try_from(users).ok());
    match inside.split_once('/') {
        Some((connected, asked)) => Some((of(connected)?, of(asked))),
        None => Some((of(inside)?, None)),
    }
}
