//! What pgbench prints, from version 8.3 to 18: lines of progress and a summary, of which either may be missing.

use super::progress::{self, Progress};
use crate::console::{plain, unprefixed};
use crate::draft::{self, reported_figure, whole};
use crate::numbers::{ungrouped as number, whole_number};
use crate::percentiles::{ms, sum_of_mean};
use crate::{Began, Draft, ImportError, Notes, Source};
use model::record::{Ending, Histogram, Metric, OperationStats, Outcome, Step, TargetKind, Workload};
use model::workload::Arrival;

/// Share of the time asked for that a run lasts at least: clocks are read a little apart.
const MIN_OF_ASKED: f64 = 0.99;
/// Share by which a run may be longer than asked before a note says so.
const OTHER_THAN_ASKED: f64 = 0.01;
/// How much of a statement names its latency.
const MAX_NAME: usize = 120;

/// Whether it holds a line of progress, or the lines that begin a summary.
pub(crate) fn recognises(head: &str) -> bool {
    let (mut of_type, mut clients) = (false, false);
    for line in head.lines() {
        let line = plain(line);
        let text = unprefixed(line);
        if text.strip_prefix("progress:").is_some_and(|rest| progress::parse(rest).is_some()) {
            return true;
        }
        of_type |= text.starts_with("transaction type:");
        clients |= text.starts_with("number of clients:");
        if of_type && (clients || text.starts_with("tps = ")) {
            return true;
        }
    }
    false
}

/// The runs in it.
pub(crate) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut runs = vec![Printed::default()];
    for (line, text) in source.lines() {
        let text = plain(text);
        let bare = unprefixed(text);
        if runs.last().is_some_and(|run| run.is_over(bare)) {
            runs.push(Printed::default());
        }
        if let Some(run) = runs.last_mut() {
            // Blanks at the beginning say what a line of statement latencies is.
            run.line(notes, line, bare, text.trim_end());
        }
    }
    runs.retain(|run| run.summary_seen || !run.progress.is_empty());
    if runs.is_empty() {
        return Err(ImportError::no_result(source, "it holds no result of pgbench"));
    }
    runs.into_iter().map(|run| run.draft(source)).collect()
}

/// `pgbench (18beta3, server 13.22)`, `pgbench (PostgreSQL) 14.2`: its version and that of the server, if it is reported.
fn version(text: &str) -> Option<(String, Option<String>)> {
    let rest = text.strip_prefix("pgbench (")?;
    if let Some(version) = rest.strip_prefix("PostgreSQL)") {
        return Some((version.trim().to_owned(), None));
    }
    let (inside, _) = rest.rsplit_once(')')?;
    let (version, server) = match inside.split_once(", server ") {
        Some((version, server)) => (version, Some(server.trim().to_owned())),
        None => (inside, None),
    };
    version.starts_with(|char: char| char.is_ascii_digit()).then(|| (version.trim().to_owned(), server))
}

/// What was printed of one run.
#[derive(Debug, Default)]
struct Printed {
    version: Option<(String, Option<String>)>,
    progress: Vec<Progress>,
    summary_seen: bool,
    tps_seen: bool,
    aborted: Option<String>,
    asked: Option<u64>,
    clients: Option<u32>,
    duration_s: Option<f64>,
    tps: Option<f64>,
    parameters: Vec<(&'static str, String)>,
    all: Figures,
    scripts: Vec<Figures>,
    /// What stands between the latency of a statement and its text, below the heading of statements.
    in_statements: Option<&'static [&'static str]>,
    statements: u32,
}

/// Lines of the summary that say how the run was made.
const PARAMETERS: [&str; 8] = [
    "transaction type",
    "scaling factor",
    "partition method",
    "partitions",
    "query mode",
    "number of threads",
    "maximum number of tries",
    "number of transactions per client",
];
/// Counts of the summary and of its scripts; shares in brackets follow.
const COUNTS: [&str; 7] = [
    SKIPPED,
    "number of transactions retried",
    "total number of retries",
    "number of serialization failures",
    "number of deadlock failures",
    "number of other failures",
    "number of other SQL failures",
];

impl Printed {
    /// Whether a line is one of the next run: what comes first in a run, after a summary or after progress that has none.
    fn is_over(&self, text: &str) -> bool {
        if let Some(reported) = text.strip_prefix("progress:") {
            let goes_back = |last: &Progress| progress::parse(reported).is_some_and(|next| next.at_s <= last.at_s);
            return self.summary_seen || self.progress.last().is_some_and(goes_back);
        }
        let killed = !self.progress.is_empty();
        // Where standard error was put before standard output, the version follows the progress of its own run.
        version(text).is_some() && (self.summary_seen || killed && self.version.is_some())
            || text.starts_with("starting vacuum") && (self.summary_seen || killed)
            || text.starts_with("transaction type:") && self.summary_seen
    }

    fn line(&mut self, notes: &mut Notes, line: u64, text: &str, whole_line: &str) {
        if let Some(reported) = text.strip_prefix("progress:") {
            match progress::parse(reported) {
                Some(progress) => self.progress.push(progress),
                None => notes
                    .not_understood(line, "a line of progress that is not whole; a rate and a latency were expected"),
            }
        } else if let Some(reported) = version(text) {
            self.version = Some(reported);
        } else if text.starts_with("pgbench: fatal:") || without_level(text).starts_with("Run was aborted") {
            self.aborted = Some(text.to_owned());
        } else if let Some(name) = text.strip_prefix("SQL script ") {
            let (_, name) = name.split_once(':').unwrap_or(("", name));
            self.scripts.push(Figures { name: name.trim().to_owned(), ..Figures::default() });
            self.in_statements = None;
        } else if let Some(and) = text.trim_start_matches("- ").strip_prefix("statement latencies in milliseconds") {
            let between: &[&str] = match and.trim_end_matches(':') {
                " and failures" => &["failures"],
                ", failures and retries" => &["failures", "retries"],
                _ => &[],
            };
            (self.in_statements, self.statements) = (Some(between), 0);
        } else if whole_line.starts_with([' ', '\t'])
            && let Some(between) = self.in_statements
            && self.statement(text, between)
        {
        } else if text.starts_with("tps = ") {
            self.tps(text);
        } else if !self.named(text) {
            notes.unknown(line, text);
        }
    }

    /// `tps = 540.4 (including connections establishing)`.
    fn tps(&mut self, text: &str) {
        let (value, how) =
            text.trim_start_matches("tps = ").split_once(' ').unwrap_or((text.trim_start_matches("tps = "), ""));
        let Some(tps) = number(value) else { return };
        let how = how.trim().trim_matches(['(', ')']);
        let name = if how.is_empty() { "tps".to_owned() } else { format!("tps ({how})") };
        self.all.reported.push((name, "/s", tps));
        // Which of the two rates of old versions comes nearer to a duration: the one with connections.
        if self.tps.is_none() || how.starts_with("including") {
            self.tps = Some(tps);
        }
        (self.summary_seen, self.tps_seen) = (true, true);
    }

    /// `0.123  UPDATE …`, with the numbers `between`, which are named in their order.
    fn statement(&mut self, text: &str, between: &[&str]) -> bool {
        let Some((latency, mut statement)) = text.split_once(char::is_whitespace) else { return false };
        let Some(latency) = number(latency) else { return false };
        let mut figures = vec![(String::new(), "ms", latency)];
        for name in between {
            let Some((count, rest)) = statement.trim_start().split_once(char::is_whitespace) else { return false };
            let Some(count) = number(count) else { return false };
            figures.push((format!(" ({name})"), "", count));
            statement = rest;
        }
        self.statements = self.statements.saturating_add(1);
        let short: String = match statement.to_ascii_lowercase().contains("password") {
            true => "(left out)".to_owned(),
            false => statement.trim().chars().take(MAX_NAME).collect(),
        };
        for (what, unit, value) in figures {
            let name = format!("statement {}: {short}{what}", self.statements);
            self.current().reported.push((name, unit, value));
        }
        true
    }

    /// The script that is reported on, or the whole run.
    fn current(&mut self) -> &mut Figures {
        self.scripts.last_mut().unwrap_or(&mut self.all)
    }

    fn named(&mut self, text: &str) -> bool {
        let text = text.trim_start_matches("- ").trim();
        let in_script = !self.scripts.is_empty();
        if let Some((count, "transactions", rest)) = in_script.then(|| words_of_script(text)).flatten() {
            let figures = self.current();
            (figures.count, figures.with_skipped) = (Some(count), true);
            figures.reported.extend(rate_of_script(rest));
            return true;
        }
        let Some((name, value)) = text.split_once(" = ").or_else(|| text.split_once(':')) else { return false };
        let (name, value) = (name.trim(), value.trim());
        let first = value.split([' ', '/']).next().unwrap_or_default();
        let known = PARAMETERS.iter().find(|known| **known == name);
        if let Some(known) = known {
            self.summary_seen = true;
            self.parameters.push((known, value.to_owned()));
            return true;
        }
        match name {
            "number of clients" => self.clients = whole_number(value).and_then(|clients| u32::try_from(clients).ok()),
            "duration" => self.duration_s = value.strip_suffix('s').and_then(number),
            // Newer versions report it of each script as well, where the number before it counts failed and skipped ones too.
            "number of transactions actually processed" if in_script => {
                let figures = self.current();
                (figures.count, figures.with_skipped) = (whole_number(first), false);
                figures.reported.extend(rate_of_script(value));
            }
            "number of transactions actually processed" => {
                self.all.count = whole_number(first);
                self.asked = value.split_once('/').and_then(|(_, asked)| whole_number(asked));
            }
            "weight" => {
                let figures = self.current();
                figures.reported.extend(number(first).map(|weight| ("weight".to_owned(), "", weight)));
            }
            // Versions that report on failures count neither these nor what was skipped.
            "number of failed transactions" | "number of failures" => {
                let figures = self.current();
                (figures.failed, figures.with_skipped) = (whole_number(first), false);
            }
            "latency average" => {
                let figures = self.current();
                // Version 9.4 makes it of the time that was asked for, which is 0 where that is a number of transactions.
                figures.latency_ms = number(first).filter(|ms| *ms > 0.0);
                figures.with_failures = value.contains("including failures");
            }
            "rate limit schedule lag" => {
                let numbers: Vec<f64> = value.split([' ', '(', ')']).filter_map(number).take(2).collect();
                self.current().lag_ms = numbers.first().copied();
                for (name, value) in ["rate limit schedule lag avg", "rate limit schedule lag max"].iter().zip(numbers)
                {
                    self.current().reported.push(((*name).to_owned(), "ms", value));
                }
            }
            "latency stddev" | "initial connection time" | "average connection time" => {
                let name = name.to_owned();
                self.current().reported.extend(number(first).map(|value| (name, "ms", value)));
            }
            _ if name.starts_with("number of transactions above the ") => {
                let name = name.to_owned();
                self.current().reported.extend(number(first).map(|value| (name, "", value)));
            }
            _ => {
                let known = COUNTS.contains(&name).then(|| number(first)).flatten();
                self.current().reported.extend(known.map(|value| (name.to_owned(), "", value)));
                return known.is_some();
            }
        }
        true
    }

    fn draft(mut self, source: &Source) -> Result<Draft, ImportError> {
        let killed = !self.tps_seen && self.all.count.is_none();
        if killed && self.progress.is_empty() {
            return Err(ImportError::damaged(source, None, "a summary of pgbench ends before its results"));
        }
        let of_type =
            self.parameters.iter().find(|(name, _)| *name == "transaction type").map(|(_, value)| value.clone());
        let mut draft =
            Draft::new(Workload::Transactions, "pgbench", of_type.clone().unwrap_or_else(|| "pgbench".to_owned()));
        draft.target.kind = Some(TargetKind::Postgres);
        if let Some((version, server)) = self.version.take() {
            draft.version = version;
            draft.target.facts.other.extend(server.map(|server| ("server_version".to_owned(), server)));
        }
        draft.parameters = self.parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let mut step =
            draft::step(0, self.clients.map_or_else(|| "all".to_owned(), |clients| format!("c{clients}")), 0);
        step.load.sessions = self.clients;
        step.window.duration_ns = self.duration_ns();
        step.window.ending = match (killed, self.duration_s) {
            (false, Some(_)) if self.aborted.is_none() => Ending::Time,
            _ => Ending::Unknown,
        };
        progress::fill(&mut step, &self.progress);
        if progress::is_epoch(&self.progress) {
            draft.began = progress::began_s(&self.progress).and_then(|began_s| {
                let began = jiff::Timestamp::from_millisecond(whole(began_s * 1e3)?.try_into().ok()?).ok()?;
                Some(Began::Utc(model::record::Timestamp(began)))
            });
        }
        if let Some(error) = self.aborted.take() {
            step.outcome = Outcome::Failed { error };
        } else if killed {
            step.outcome = Outcome::Unfinished;
            draft.notes.push("pgbench ended before its summary: there are only its lines of progress.".to_owned());
        }
        self.figures(&mut step, of_type);
        draft.steps.push(step);
        self.remarks(&mut draft);
        Ok(draft)
    }

    /// How long it took: its transactions over their rate, which is how pgbench made the rate. The time asked for with `-T` is only
    /// when it stops beginning transactions, and connecting is no part of it. Of one that was killed, until the last line of
    /// progress.
    fn duration_ns(&self) -> u64 {
        let by_rate = self.all.count.zip(self.tps.filter(|tps| *tps > 0.0)).map(|(count, tps)| count as f64 / tps);
        // A run that was not ended early cannot have been shorter: then count and rate contradict each other.
        let min_s = self.duration_s.filter(|_| self.aborted.is_none()).unwrap_or(0.0) * MIN_OF_ASKED;
        let by_rate = by_rate.filter(|seconds| *seconds > 0.0 && *seconds >= min_s);
        let last = || {
            let last = self.progress.last()?;
            Some(last.at_s - progress::began_s(&self.progress)?)
        };
        crate::interval::seconds_ns(by_rate.or(self.duration_s).or_else(last).unwrap_or(0.0))
    }

    fn figures(&mut self, step: &mut Step, of_type: Option<String>) {
        for (name, unit, value) in &self.all.reported {
            // Older releases report the rate twice.
            let is_rate = name.starts_with("tps") && !name.contains("excluding");
            let figure = reported_figure("client", name, unit, *value);
            step.reported.push(figure.is(is_rate.then_some(Metric::Transactions), 1.0));
        }
        if let Some(average_ms) = self.all.latency_ms {
            step.reported.push(reported_figure("client", "latency average", "ms", average_ms));
        }
        step.counters.operations = self.all.count;
        step.counters.errors = self.all.failed;
        let limited = self.all.lag_ms.is_some() || self.progress.iter().any(Progress::is_limited);
        step.load.arrival = limited.then_some(Arrival::Poisson);
        for script in &self.scripts {
            for (name, unit, value) in &script.reported {
                step.reported.push(reported_figure("client", format!("{}: {name}", script.name), unit, *value));
            }
            step.operations.extend(script.operation(&script.name, limited));
        }
        if step.operations.is_empty() {
            step.operations.extend(self.all.operation(of_type.as_deref().unwrap_or("transaction"), limited));
        }
    }

    fn remarks(&self, draft: &mut Draft) {
        if let (Some(count), Some(asked)) = (self.all.count, self.asked)
            && count < asked
        {
            draft.notes.push(format!("{count} of {asked} transactions were processed."));
        }
        let took_s = draft.steps.first().map_or(0.0, |step| step.window.duration_ns as f64 / 1e9);
        if let Some(asked_s) = self.duration_s.filter(|asked_s| (took_s - asked_s).abs() > OTHER_THAN_ASKED * asked_s) {
            draft.notes.push(format!(
                "It was set to run for {asked_s} s and took {took_s:.2} s by its count and rate; results use the latter."
            ));
        }
        if self.all.failed.is_some_and(|failed| failed > 0) {
            draft.notes.push("Failed transactions are not among those that were processed.".to_owned());
        }
        let measured = self.all.reported.iter().any(|(name, ..)| name == "latency stddev");
        if self.all.latency_ms.is_some() && !measured {
            draft
                .notes
                .push("The mean latency was not measured: pgbench made it of time, clients and count.".to_owned());
        }
        if self.all.with_failures {
            draft.notes.push("The mean latency includes failed transactions.".to_owned());
        }
    }
}

/// A message without the name of the program and its level, which stand before it since version 12.
fn without_level(text: &str) -> &str {
    let levels = ["pgbench: error: ", "pgbench: fatal: ", "pgbench: "];
    levels.iter().find_map(|level| text.strip_prefix(level)).unwrap_or(text)
}

// What a summary of pgbench says of the whole run, or of one of its scripts.

/// The count of transactions that were too late to be begun.
const SKIPPED: &str = "number of transactions skipped";

/// Figures of the whole run, or of one of its scripts.
#[derive(Debug, Default)]
struct Figures {
    /// Of a script.
    pub name: String,
    /// Transactions that were processed.
    pub count: Option<u64>,
    /// Those that failed.
    pub failed: Option<u64>,
    /// Their mean.
    pub latency_ms: Option<f64>,
    /// Failed transactions are in the mean.
    pub with_failures: bool,
    /// `count` may hold those that were skipped, as that of a script did before version 15.
    pub with_skipped: bool,
    /// The rest, by its names.
    pub reported: Vec<(String, &'static str, f64)>,
    /// Mean time by which transactions began late, with a rate limit; the latency includes it.
    pub lag_ms: Option<f64>,
}

impl Figures {
    /// Nothing if it does not report how many there were. With a rate limit (`limited`) the latency begins when a transaction was
    /// due, and without the lag nobody knows when it was sent.
    pub fn operation(&self, kind: &str, limited: bool) -> Option<OperationStats> {
        let skipped = self.reported.iter().find(|(name, ..)| self.with_skipped && name == SKIPPED);
        let count = self.count?.saturating_sub(skipped.and_then(|(.., skipped)| whole(*skipped)).unwrap_or(0));
        let mean_ms = self.latency_ms.filter(|_| !self.with_failures);
        let total_ns = mean_ms.and_then(ms).and_then(|_| sum_of_mean(mean_ms? * 1e6, count));
        let response = Histogram::counted(count, total_ns);
        let service = match self.lag_ms {
            Some(lag_ms) => {
                Histogram::counted(count, mean_ms.and_then(|mean| sum_of_mean((mean - lag_ms) * 1e6, count)))
            }
            None if limited => Histogram::counted(count, None),
            None => response.clone(),
        };
        let errors = self.failed.unwrap_or(0);
        let count = count.saturating_add(errors);
        Some(OperationStats { count, errors, ..draft::operations(kind, service, response) })
    }
}

/// `1000 transactions (50.0% of total, tps = 123.4)`.
fn words_of_script(text: &str) -> Option<(u64, &str, &str)> {
    let (count, rest) = text.split_once(' ')?;
    let (what, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    Some((whole_number(count)?, what, rest))
}

/// The rate in `1000 transactions (50.0% of total, tps = 123.4)` or `1000 (tps = 123.4)`.
fn rate_of_script(text: &str) -> Option<(String, &'static str, f64)> {
    let (_, tps) = text.rsplit_once("tps = ")?;
    Some(("tps".to_owned(), "/s", number(tps.trim_end_matches([')', ' ']))?))
}
