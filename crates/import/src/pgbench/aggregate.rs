//! The log of `pgbench --log --aggregate-interval`: one line an interval, of whole numbers in microseconds.

use super::{EPOCH_S, ONE_THREAD, numbers};
use crate::draft::{self, reported_figure};
use crate::interval;
use crate::{Began, Draft, ImportError, Notes, Source};
use model::record::{Histogram, Interval, OperationStats, ReportedBucket, Timestamp};
use model::record::{TargetKind, Workload};

const S: u64 = 1_000_000_000;
const US: u64 = 1_000;
/// Columns after the first six, in their order. Before version 15 those of the lag are there with `--rate`, and `skipped` with
/// `--latency-limit`; since then all are there and hold 0 where nothing is measured.
const MORE: [&str; 10] = [
    "sum_lag",
    "sum_lag_2",
    "min_lag",
    "max_lag",
    "skipped",
    "retried",
    "retries",
    "serialization_failures",
    "deadlock_failures",
    "other_sql_failures",
];

/// Where in [`MORE`] those begin that count failed transactions.
const FAILURES_AT: usize = 7;

/// One line.
struct Row {
    start_s: u64,
    count: u64,
    sum_us: u64,
    min_us: u64,
    max_us: u64,
    more: Vec<u64>,
}

/// A line whose numbers can be those of an interval: the sum of the latencies lies where least and most let it lie.
fn row(line: &str) -> Option<Row> {
    let numbers = numbers(line)?;
    let [start_s, counted, sum_us, _, min_us, max_us, ref more @ ..] = numbers[..] else { return None };
    // Before version 15, whose lines have more columns, those that were skipped are among the transactions.
    let count = match more {
        [_, _, _, _, skipped] => counted.checked_sub(*skipped)?,
        _ => counted,
    };
    let within = min_us <= max_us && count.checked_mul(min_us)? <= sum_us && sum_us <= count.checked_mul(max_us)?;
    let columns = more.len() <= MORE.len();
    (EPOCH_S.contains(&start_s) && within && columns).then(|| Row {
        start_s,
        count,
        sum_us,
        min_us,
        max_us,
        more: more.to_vec(),
    })
}

/// Whether all of its first lines are such, in rising order. The last one may be cut off.
pub(crate) fn recognises(head: &str) -> bool {
    let lines: Vec<&str> = head.lines().filter(|line| !line.trim().is_empty()).take(20).collect();
    let rows: Vec<Row> = lines.iter().map_while(|line| row(line)).collect();
    let rising = rows.windows(2).all(|pair| matches!(pair, [before, after] if before.start_s < after.start_s));
    !rows.is_empty()
        && rising
        && rows.iter().any(|row| row.count > 0)
        && rows.len() + 1 >= lines.len()
        && (rows.len() == lines.len() || rows.len() > 1)
}

/// The run in it.
pub(crate) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut rows: Vec<Row> = Vec::new();
    // What has no number is what somebody wrote.
    for (number, line) in source.lines().filter(|(_, line)| line.contains(|char: char| char.is_ascii_digit())) {
        match row(line) {
            Some(row) if rows.last().is_none_or(|last| last.start_s < row.start_s) => rows.push(row),
            _ => notes.not_understood(
                number,
                "this interval does not follow the one before; whole numbers were \
                expected",
            ),
        }
    }
    let Some(first) = rows.first() else {
        return Err(ImportError::no_result(source, "it holds no interval"));
    };
    if !matches!(first.more.len(), 0 | 4 | 5 | 9 | 10) {
        notes.not_understood(1, format!("{} columns; 6, 10, 11, 15 or 16 were expected", first.more.len() + 6));
    }
    let mut draft = Draft::new(Workload::Transactions, "pgbench", "pgbench aggregated log");
    draft.target.kind = Some(TargetKind::Postgres);
    draft.notes.push(ONE_THREAD.to_owned());
    draft.notes.push("The last interval may be shorter than the others; pgbench does not report.".to_owned());
    // Intervals are all as long as the shortest distance between two.
    let starts = rows.windows(2).filter_map(|pair| pair.get(1)?.start_s.checked_sub(pair.first()?.start_s));
    let length_s = starts.min().unwrap_or(0);
    let began_s = first.start_s;
    let ended_s = rows.last().map_or(began_s, |last| last.start_s.saturating_add(length_s));
    draft.began = i64::try_from(began_s).ok().and_then(Began::epoch_s);
    draft.ended = i64::try_from(ended_s).ok().and_then(Began::epoch_s).map(|ended| ended.timestamp());
    draft.ended = draft.ended.filter(|ended: &Timestamp| Some(*ended) != draft.began.map(Began::timestamp));
    let mut step = draft::step(0, "all", ended_s.saturating_sub(began_s).saturating_mul(S));
    let mut sums = [0_u64; MORE.len()];
    for row in &rows {
        let offset_ns = row.start_s.saturating_sub(began_s).saturating_mul(S);
        let interval = row.interval(interval::of(&step, offset_ns, length_s.saturating_mul(S)));
        step.intervals.push(interval);
        sums.iter_mut().zip(&row.more).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
    }
    for (name, sum) in MORE.iter().zip(sums) {
        let sums_up = !name.starts_with("m") && !name.ends_with("_2");
        if sum > 0 && sums_up {
            let unit = if name.ends_with("lag") { "us" } else { "" };
            step.reported.push(reported_figure("client", *name, unit, sum as f64));
        }
    }
    let response = Row::together(&rows);
    step.counters.operations = Some(response.count());
    let failed = rows.iter().filter_map(Row::failures);
    step.counters.errors = failed.reduce(u64::saturating_add);
    let errors = step.counters.errors.unwrap_or(0);
    let count = response.count().saturating_add(errors);
    let service = service(&response, sums.first().copied().unwrap_or(0));
    step.operations.push(OperationStats { count, errors, ..draft::operations("transaction", service, response) });
    draft.steps.push(step);
    Ok(vec![draft])
}

/// With a rate limit latencies begin when a transaction was due; the lag is the time until it was sent.
fn service(response: &Histogram, lag_us: u64) -> Histogram {
    match lag_us {
        0 => response.clone(),
        lag_us => {
            let total_ns = response.total_ns().and_then(|ns| ns.checked_sub(lag_us.saturating_mul(US)));
            Histogram::counted(response.count(), total_ns)
        }
    }
}

impl Row {
    fn histogram(&self) -> Histogram {
        if self.count == 0 {
            return Histogram::reported([], None, None, None);
        }
        let (min_ns, max_ns) = (self.min_us.saturating_mul(US), self.max_us.saturating_mul(US));
        let bucket = ReportedBucket { from_ns: min_ns, to_ns: Some(max_ns), count: self.count };
        Histogram::reported([bucket], Some(self.sum_us.saturating_mul(US)), Some(min_ns), Some(max_ns))
    }

    fn interval(&self, mut interval: Interval) -> Interval {
        interval.response = self.histogram();
        interval.counters.operations = Some(self.count);
        interval.counters.errors = self.failures();
        let known = MORE.iter().zip(&self.more).filter(|(_, value)| **value > 0);
        interval.reported = known.map(|(name, value)| ((*name).to_owned(), *value as f64)).collect();
        interval
    }

    /// Transactions that failed, where the line has columns for them: since version 15.
    fn failures(&self) -> Option<u64> {
        (self.more.len() > FAILURES_AT)
            .then(|| self.more.iter().skip(FAILURES_AT).copied().fold(0, u64::saturating_add))
    }

    /// All of them in one bucket: merging theirs would leave thousands that lie across each other.
    fn together(rows: &[Self]) -> Histogram {
        let used = || rows.iter().filter(|row| row.count > 0);
        let sum = |of: fn(&Self) -> u64| used().fold(0_u64, |sum, row| sum.saturating_add(of(row)));
        let all = Self {
            start_s: 0,
            count: sum(|row| row.count),
            sum_us: sum(|row| row.sum_us),
            min_us: used().map(|row| row.min_us).min().unwrap_or(0),
            max_us: used().map(|row| row.max_us).max().unwrap_or(0),
            more: Vec::new(),
        };
        all.histogram()
    }
}
