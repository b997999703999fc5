//! pgbench: what it prints, and the logs that it writes with `--log`.

pub(super) mod aggregate;
mod progress;
pub(super) mod summary;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::draft::reported_figure;
use crate::{Began, Draft, ImportError, Notes, Source, draft, interval};
use model::record::{Histogram, OperationStats, Step, TargetKind, Timestamp, Workload};

/// What a log of transactions leaves out.
const ONE_THREAD: &str =
    "pgbench writes one log for each of its threads (`-j`): this one holds the transactions of a single thread.";
/// Seconds since 1970 that a benchmark of a database can have: 2001 to 2286.
const EPOCH_S: std::ops::Range<u64> = 1_000_000_000..10_000_000_000;

/// The whole numbers of a line; nothing if it holds anything else.
fn numbers(line: &str) -> Option<Vec<u64>> {
    line.split_ascii_whitespace().take(32).map(|word| word.parse().ok()).collect()
}

const US: u64 = 1_000;
const US_PER_S: u64 = 1_000_000;
/// pgbench takes no more scripts.
const MAX_SCRIPTS: usize = 128;
/// Days of seconds; more would only be a broken clock.
const MAX_INTERVALS: u64 = 1_000_000;

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    After { us: u64 },
    Failed,
    Skipped,
}

struct Row {
    client: u64,
    ended: Ended,
    script: u64,
    /// When it ended, in microseconds since 1970.
    at_us: u64,
    began_late: Late,
}

/// How long after it was due a transaction began, which is part of its latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Late {
    /// There is no rate limit.
    No,
    By {
        us: u64,
    },
    /// The seventh of seven columns is this time with `--rate`, or a number of retries with `--max-tries`.
    Unknown,
}

fn row(line: &str) -> Option<Row> {
    let words: Vec<&str> = line.split_ascii_whitespace().take(10).collect();
    let [client, transaction, time, script, epoch_s, us, ref more @ ..] = words[..] else { return None };
    let ended = match time {
        "skipped" => Ended::Skipped,
        "failed" | "serialization" | "deadlock" | "other" => Ended::Failed,
        time => Ended::After { us: time.parse().ok()? },
    };
    let number = |word: &str| word.parse::<u64>().ok();
    let (epoch_s, us) = (number(epoch_s).filter(|s| EPOCH_S.contains(s))?, number(us).filter(|us| *us < US_PER_S)?);
    let (client, script) = (number(client)?, number(script)?);
    let plausible = client < 10_000_000 && script < MAX_SCRIPTS as u64 && more.len() <= 2;
    let others = number(transaction).is_some() && more.iter().all(|word| number(word).is_some());
    let began_late = match more {
        [] => Late::No,
        [lag, _] => Late::By { us: number(lag)? },
        _ => Late::Unknown,
    };
    (plausible && others).then(|| Row { client, ended, script, at_us: epoch_s * US_PER_S + us, began_late })
}

/// Whether all of its first lines are such. The last one may be cut off.
pub(crate) fn recognises_transactions(head: &str) -> bool {
    let lines: Vec<&str> = head.lines().filter(|line| !line.trim().is_empty()).take(20).collect();
    let good = lines.iter().take_while(|line| row(line).is_some()).count();
    good > 0 && (good == lines.len() || good > 1 && good + 1 == lines.len())
}

/// The run in it.
pub(crate) fn read_transactions(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut rows = Vec::new();
    for (number, line) in source.lines().filter(|(_, line)| !line.trim().is_empty()) {
        match row(line) {
            Some(row) => rows.push(row),
            None => notes.not_understood(number, "this is not a transaction; six to eight columns were expected"),
        }
    }
    rows.sort_by_key(|row| row.at_us);
    let began = rows.iter().map(|row| row.at_us.saturating_sub(row.latency_us().unwrap_or(0))).min();
    let (Some(began_us), Some(ended_us)) = (began, rows.last().map(|row| row.at_us)) else {
        return Err(ImportError::no_result(source, "it holds no transaction"));
    };
    let mut draft = Draft::new(Workload::Transactions, "pgbench", "pgbench transaction log");
    draft.target.kind = Some(TargetKind::Postgres);
    draft.notes.push(ONE_THREAD.to_owned());
    draft.notes.push("With `--sampling-rate` it holds only a part of them; the log does not report.".to_owned());
    let time = |us: u64| jiff::Timestamp::from_microsecond(i64::try_from(us).ok()?).ok().map(Timestamp);
    (draft.began, draft.ended) = (time(began_us).map(Began::Utc), time(ended_us));
    let mut step = draft::step(0, "all", ended_us.saturating_sub(began_us).saturating_mul(US));
    operations(&mut step, &rows);
    if (ended_us - began_us) / US_PER_S < MAX_INTERVALS {
        intervals(&mut step, &rows, began_us, ended_us);
    } else {
        draft.notes.push("Its transactions lie more than ten days apart, so none are shown by the second.".to_owned());
    }
    draft.steps.push(step);
    Ok(vec![draft])
}

impl Row {
    fn latency_us(&self) -> Option<u64> {
        match self.ended {
            Ended::After { us } => Some(us),
            Ended::Failed | Ended::Skipped => None,
        }
    }
}

fn operations(step: &mut Step, rows: &[Row]) {
    let mut scripts: BTreeMap<u64, (Histogram, Histogram, u64)> = BTreeMap::new();
    let mut skipped = 0_u64;
    for row in rows {
        let (service, response, errors) = scripts.entry(row.script).or_default();
        match row.ended {
            Ended::After { us } => {
                response.record(us.saturating_mul(US));
                match row.began_late {
                    Late::No => service.record(us.saturating_mul(US)),
                    Late::By { us: late_us } => service.record(us.saturating_sub(late_us).saturating_mul(US)),
                    Late::Unknown => {}
                }
            }
            Ended::Failed => *errors += 1,
            Ended::Skipped => skipped += 1,
        }
    }
    step.counters.operations = Some(scripts.values().map(|(_, response, _)| response.count()).sum());
    step.counters.errors = Some(scripts.values().map(|(_, _, errors)| errors).sum());
    let clients: BTreeSet<u64> = rows.iter().map(|row| row.client).collect();
    step.reported.push(reported_figure("client", "clients in this log", "", clients.len() as f64));
    if skipped > 0 {
        step.reported.push(reported_figure("client", "skipped", "", skipped as f64));
    }
    for (script, (service, response, errors)) in scripts {
        let all = service.count() == response.count();
        let service = if all { service } else { Histogram::counted(response.count(), None) };
        let count = response.count().saturating_add(errors);
        let timed = draft::operations(format!("script {script}"), service, response);
        step.operations.push(OperationStats { count, errors, ..timed });
    }
}

/// Seconds from the first transaction's beginning, each with those that ended in it; the last is as long as is left.
fn intervals(step: &mut Step, rows: &[Row], began_us: u64, ended_us: u64) {
    let second = |row: &Row| (row.at_us - began_us) / US_PER_S;
    for rows in rows.chunk_by(|left, right| second(left) == second(right)) {
        let Some(first) = rows.first() else { continue };
        let offset_us = second(first) * US_PER_S;
        let length_us = (ended_us - began_us - offset_us).min(US_PER_S);
        let mut interval = interval::of(step, offset_us * US, length_us * US);
        let mut response = Histogram::default();
        rows.iter().filter_map(Row::latency_us).for_each(|us| response.record(us.saturating_mul(US)));
        response.pack();
        interval.counters.operations = Some(response.count());
        interval.counters.errors = Some(rows.iter().filter(|row| row.ended == Ended::Failed).count() as u64);
        interval.response = response;
        step.intervals.push(interval);
    }
}
