//! One run of sysbench.

use super::interval::{self, Line};
use crate::draft::{self, count_of, reported_figure, whole};
use crate::interval::seconds_ns;
use crate::numbers::{duration_ns, number, whole_number};
use crate::percentiles::sum_of_mean;
use crate::{Draft, ImportError, Notes, Source, percentiles};
use model::record::{Ending, Histogram, Metric, OperationStats, Outcome, ReportedBucket, Step, Workload};
use model::workload::Arrival;

const MIB: f64 = 1_048_576.0;

/// Which test it was, as far as that shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Test {
    Database,
    Files,
    Processor,
}

/// What was printed of one run.
#[derive(Debug, Default)]
pub(super) struct Printed {
    version: String,
    command: Vec<String>,
    /// `Running the test with following options:` was seen.
    pub has_options: bool,
    test: Option<Test>,
    title: Option<&'static str>,
    threads: Option<u32>,
    rate: Option<f64>,
    lines: Vec<Line>,
    started: bool,
    /// Its statistics have begun.
    statistics: bool,
    section: String,
    figures: Vec<(String, &'static str, f64)>,
    settings: Vec<(String, String)>,
    /// In milliseconds, by the names of sysbench.
    latencies: Vec<(String, f64)>,
    percentile: Option<(f64, f64)>,
    time_s: Option<f64>,
    /// There are checkpoints (`--report-checkpoints`).
    checkpoints: bool,
    /// When the last of them was: statistics count from there.
    since_s: f64,
    busy_s: Option<f64>,
    events: Option<u64>,
    transactions: Option<u64>,
    errors: Option<u64>,
    reads: Option<f64>,
    writes: Option<f64>,
    read_bytes: Option<f64>,
    write_bytes: Option<f64>,
    /// Value of a bucket in milliseconds and its count.
    histogram: Vec<(f64, u64)>,
    fatal: Option<String>,
}

/// What each test prints of itself, and what it is called.
const TESTS: [(&str, Test, &str); 13] = [
    ("SQL statistics:", Test::Database, "oltp"),
    ("OLTP test statistics:", Test::Database, "oltp"),
    ("Doing OLTP test", Test::Database, "oltp"),
    ("Extra file open flags:", Test::Files, "fileio"),
    ("File operations:", Test::Files, "fileio"),
    ("Prime numbers limit:", Test::Processor, "cpu"),
    ("Doing CPU performance benchmark", Test::Processor, "cpu"),
    ("CPU speed:", Test::Processor, "cpu"),
    ("Running memory speed test", Test::Processor, "memory"),
    ("Doing memory operations speed test", Test::Processor, "memory"),
    ("Total operations:", Test::Processor, "memory"),
    ("Doing thread subsystem performance test", Test::Processor, "threads"),
    ("Doing mutex performance test", Test::Processor, "mutex"),
];
/// Lines that are kept as they are.
const SETTINGS: [&str; 12] = [
    "Block size ",
    "Warmup time:",
    "Read/Write ratio for combined random IO test:",
    "Number of IO requests:",
    "Using ",
    "Doing ",
    "Prime numbers limit:",
    "Maximum prime number checked in CPU test:",
    "block size:",
    "total size:",
    "operation:",
    "scope:",
];

impl Printed {
    /// One of which only the version and the command that ran it are known.
    pub fn begun(version: String, command: Vec<String>) -> Self {
        Self { version, command, ..Self::default() }
    }

    /// Whether there is anything to import.
    pub fn has_results(&self) -> bool {
        self.statistics || !self.lines.is_empty()
    }

    pub fn line(&mut self, notes: &mut Notes, number_of_line: u64, text: &str) {
        if let Some((_, test, title)) = TESTS.iter().find(|(start, ..)| text.starts_with(start)) {
            (self.test, self.title) = (Some(*test), Some(*title));
        }
        let heads = TESTS.iter().any(|(start, ..)| text.starts_with(start)) || text.starts_with("General statistics:");
        if text.starts_with('[') && text.ends_with("Checkpoint report:") {
            return self.begin_anew();
        } else if self.checkpoints && heads && self.section == "Threads fairness" {
            self.begin_anew();
        }
        if let Some(line) = interval::parse(text) {
            if line.figures.iter().any(|(name, _)| name == "tps") {
                self.test = Some(Test::Database);
            }
            self.lines.push(line);
        } else if text.starts_with("[ ") && text.contains("s ]") {
            notes.not_understood(
                number_of_line,
                "a line of progress that is not whole; rates and a latency were expected",
            );
        } else if text.starts_with("Threads started!") {
            self.started = true;
        } else if text.starts_with("FATAL:") && self.has_options {
            self.fatal.get_or_insert_with(|| text.to_owned());
        } else if let Some(bucket) = self.bucket(text) {
            self.histogram.push(bucket);
        } else if text.starts_with("Latency histogram") {
            "histogram".clone_into(&mut self.section);
        } else if let Some(setting) = SETTINGS.iter().find(|start| text.starts_with(**start)) {
            let name = setting.trim_end_matches([':', ' ']);
            let value = text.get(setting.len()..).unwrap_or_default().trim();
            self.settings.push((name.to_owned(), value.to_owned()));
        } else {
            let is_known = match text.split_once(':') {
                Some((name, value)) => self.named(name.trim(), value.trim()),
                None => self.totals(text),
            };
            if !is_known {
                notes.unknown(number_of_line, text);
            }
        }
    }

    /// Every checkpoint says what was counted since the one before, and sets the counters back.
    fn begin_anew(&mut self) {
        self.checkpoints = true;
        self.since_s = self.time_s.take().unwrap_or(self.since_s);
        (self.figures, self.latencies, self.histogram) = (Vec::new(), Vec::new(), Vec::new());
        (self.percentile, self.busy_s) = (None, None);
        (self.events, self.transactions, self.errors) = (None, None, None);
        (self.reads, self.writes, self.read_bytes, self.write_bytes) = (None, None, None, None);
        self.section.clear();
    }

    /// `       1.857 |****              123` below the heading of a histogram.
    fn bucket(&self, text: &str) -> Option<(f64, u64)> {
        if self.section != "histogram" {
            return None;
        }
        let (value, bar) = text.split_once('|')?;
        Some((number(value)?, whole_number(bar.trim().trim_start_matches('*'))?))
    }

    fn named(&mut self, name: &str, value: &str) -> bool {
        // Somebody may have written what a line means behind it.
        let value = if value.starts_with("-- ") { "" } else { value };
        if value.is_empty() {
            self.statistics |= matches!(
                name,
                "SQL statistics"
                    | "OLTP test statistics"
                    | "General statistics"
                    | "Test execution summary"
                    | "File operations"
                    | "CPU speed"
                    | "Throughput"
                    | "Latency (ms)"
            );
            name.clone_into(&mut self.section);
            return true;
        }
        let first = value.split_whitespace().next().unwrap_or_default();
        let in_latency = matches!(self.section.as_str(), "Latency (ms)" | "response time" | "per-request statistics");
        match (self.section.as_str(), name) {
            (_, "Number of threads") => {
                self.threads = whole_number(first).and_then(|threads| u32::try_from(threads).ok())
            }
            (_, "Target transaction rate") => self.rate = value.split('/').next().and_then(number),
            (_, "min" | "avg" | "max" | "sum") if in_latency => {
                self.latencies.extend(milliseconds(first).map(|value| (name.to_owned(), value)));
            }
            _ if in_latency && name.ends_with("percentile") => {
                let percent = name.trim_start_matches("approx.").trim().trim_end_matches("percentile").trim();
                let percent = number(percent.trim_end_matches(|char: char| char.is_ascii_alphabetic()));
                self.percentile = percent.map(|percent| percent / 100.0).zip(milliseconds(first));
            }
            (_, "total time" | "time elapsed") if self.statistics => {
                self.time_s = number(first.trim_end_matches('s'));
            }
            (_, "total number of events") => self.events = whole_number(first),
            (_, "total time taken by event execution") => self.busy_s = number(first.trim_end_matches('s')),
            _ if self.statistics || name == "Operations performed" || name == "Total operations" => {
                self.figure(name, value, first);
            }
            _ => return false,
        }
        true
    }

    fn figure(&mut self, name: &str, value: &str, first: &str) {
        match (self.section.as_str(), name) {
            ("queries performed", "read" | "write" | "other" | "total") => {
                self.figures.extend(number(first).map(|value| (format!("queries performed: {name}"), "", value)));
                return;
            }
            (_, "transactions") => self.transactions = whole_number(first),
            (_, "deadlocks" | "ignored errors") => self.errors = whole_number(first),
            ("File operations", "reads/s") => self.reads = number(first),
            ("File operations", "writes/s") => self.writes = number(first),
            ("Throughput", "read, MiB/s") => self.read_bytes = number(first).map(|mib| mib * MIB),
            ("Throughput", "written, MiB/s") => self.write_bytes = number(first).map(|mib| mib * MIB),
            ("Throughput", "read" | "write" | "fsync") => return self.throughput(name, value),
            // Version 0.4 and 0.5: `60000 Read, 40000 Write, 128000 Other = 228000 Total`.
            (_, "Operations performed") if value.contains(',') => return self.operations_performed(value),
            ("Threads fairness", _) => {
                let mut both = value.split('/').map(number);
                let pair = both.next().flatten().zip(both.next().flatten());
                if let Some((mean, deviation)) = pair {
                    let name = name.trim_end_matches("(avg/stddev)").trim();
                    let unit = if name.contains("time") { "s" } else { "" };
                    self.figures.push((format!("{name} per thread (avg)"), unit, mean));
                    self.figures.push((format!("{name} per thread (stddev)"), unit, deviation));
                }
                return;
            }
            _ => {}
        }
        let Some(count) = number(first) else { return };
        let unit = match name {
            "events per second" | "events/s (eps)" | "reads/s" | "writes/s" | "fsyncs/s" => "/s",
            "read, MiB/s" | "written, MiB/s" => "MiB/s",
            _ => "",
        };
        self.figures.push((name.to_owned(), unit, count));
        // `29611  (986.49 per sec.)`, of memory `(6103520.16 per second)` or `ops/sec`.
        let rate = value.split_once('(').and_then(|(_, rate)| number(rate.split_whitespace().next()?));
        self.figures.extend(rate.map(|rate| (format!("{name} per sec."), "/s", rate)));
    }

    /// Version 1.1: `read: IOPS=1234.5 19.3 MiB/s (20.2 MB/s)`.
    fn throughput(&mut self, name: &str, value: &str) {
        let rate = value.split_whitespace().find_map(|word| number(word.strip_prefix("IOPS=")?));
        let words: Vec<&str> = value.split_whitespace().take(8).collect();
        let mib = words.windows(2).find_map(|pair| match pair {
            [value, "MiB/s"] => number(value),
            _ => None,
        });
        self.figures.extend(rate.map(|rate| (format!("{name} IOPS"), "/s", rate)));
        self.figures.extend(mib.map(|mib| (format!("{name} throughput"), "MiB/s", mib)));
        let bytes = mib.map(|mib| mib * MIB);
        match name {
            "read" => (self.reads, self.read_bytes) = (rate, bytes),
            "write" => (self.writes, self.write_bytes) = (rate, bytes),
            _ => {}
        }
    }

    fn operations_performed(&mut self, value: &str) {
        (self.test, self.title, self.statistics) = (Some(Test::Files), Some("fileio"), true);
        for part in value.split([',', '=']).take(8) {
            let mut words = part.split_whitespace();
            let (Some(count), Some(what)) = (words.next().and_then(number), words.next()) else { continue };
            self.figures.push((format!("operations performed: {}", what.to_ascii_lowercase()), "", count));
        }
    }

    /// Lines without a colon: of files in old versions, and of memory.
    fn totals(&mut self, text: &str) -> bool {
        let words: Vec<&str> = text.split_whitespace().take(12).collect();
        match words[..] {
            ["Read", read, "Written", written, "Total", "transferred", total, rate] => {
                self.test = Some(Test::Files);
                for (name, bytes) in [("Read", read), ("Written", written), ("Total transferred", total)] {
                    self.figures.extend(binary_bytes(bytes).map(|bytes| (name.to_owned(), "bytes", bytes)));
                }
                let rate = rate.trim_matches(['(', ')']).strip_suffix("/sec").and_then(binary_bytes);
                self.figures.extend(rate.map(|rate| ("transferred per second".to_owned(), "bytes/s", rate)));
            }
            [rate, "Requests/sec", "executed"] => {
                self.figures.extend(number(rate).map(|rate| ("Requests/sec executed".to_owned(), "/s", rate)));
            }
            [total, unit, "transferred", rate, ..] if matches!(unit, "MiB" | "MB") => {
                (self.test, self.title, self.statistics) = (Some(Test::Processor), Some("memory"), true);
                let (name, per_s) = if unit == "MiB" { ("MiB", "MiB/s") } else { ("MB", "MB/s") };
                self.figures.extend(number(total).map(|total| ("transferred".to_owned(), name, total)));
                let rate = number(rate.trim_start_matches('('));
                self.figures.extend(rate.map(|rate| ("transferred per second".to_owned(), per_s, rate)));
            }
            _ => return false,
        }
        true
    }

    pub fn draft(mut self, source: &Source) -> Result<Draft, ImportError> {
        if self.statistics && self.events.is_none() && self.latencies.is_empty() {
            return Err(ImportError::damaged(source, None, "the statistics of sysbench end before they are whole"));
        }
        let workload = match self.test {
            Some(Test::Database) => Workload::Transactions,
            Some(Test::Files) => Workload::Io,
            Some(Test::Processor) | None => Workload::Processor,
        };
        let script = self.script();
        let title = script.clone().or(self.title.map(str::to_owned)).unwrap_or_else(|| "sysbench".to_owned());
        let mut draft = Draft::new(workload, "sysbench", title);
        draft.version.clone_from(&self.version);
        draft.command.clone_from(&self.command);
        for (name, value) in &self.settings {
            // Several lines begin with `Using`.
            let setting = draft.parameters.entry(name.clone()).or_default();
            if !setting.is_empty() {
                setting.push_str("; ");
            }
            setting.push_str(value);
        }
        let label = self.threads.map_or_else(|| "all".to_owned(), |threads| format!("t{threads}"));
        let last_s = self.lines.last().map_or(0.0, |line| line.at_s);
        let mut step = draft::step(0, label, seconds_ns(self.time_s.unwrap_or(last_s) - self.since_s));
        step.load.sessions = self.threads;
        step.load.rate_operations_per_s = self.rate.filter(|rate| *rate > 0.0);
        step.load.arrival = step.load.rate_operations_per_s.map(|_| Arrival::Poisson);
        step.window.ending = Ending::Unknown;
        if !self.statistics {
            step.outcome = Outcome::Unfinished;
            draft.notes.push("sysbench ended before its statistics: there are only its lines of progress.".to_owned());
        }
        if let Some(error) = &self.fatal {
            step.outcome = Outcome::Failed { error: error.clone() };
        }
        if self.since_s > 0.0 {
            self.lines.retain(|line| line.at_s > self.since_s);
            draft.notes.push(format!(
                "sysbench sets its counters back at each checkpoint: this is what it counted after {} s.",
                self.since_s
            ));
        }
        interval::fill(&mut step, &self.lines, self.since_s);
        self.fill(&mut step);
        if self.histogram.is_empty() && self.percentile.is_some() {
            draft
                .notes
                .push("sysbench counts latencies in buckets 1.8 % wide and reports the middle of one.".to_owned());
        }
        if self.errors.is_some_and(|errors| errors > 0) {
            draft.notes.push(
                "Errors were ignored and their transactions begun again; they are not among those counted.".to_owned(),
            );
        }
        let held = self.histogram.iter().fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
        if held > 0 && self.events.is_some_and(|events| events != held) {
            draft
                .notes
                .push(format!("The histogram holds {held} events, not as many as were counted; it is left out."));
        }
        draft.target.block_bytes =
            draft.parameters.get("Block size").and_then(|size| binary_bytes(size)).and_then(whole);
        draft.steps.push(step);
        Ok(draft)
    }

    /// The name of the test in the command: the word before `run` that is no option.
    fn script(&self) -> Option<String> {
        let before_run = self.command.iter().skip(1).take_while(|word| *word != "run");
        let test = before_run.filter(|word| !word.starts_with('-')).last()?;
        let name = test.rsplit('/').next().unwrap_or(test);
        Some(name.trim_end_matches(".lua").to_owned())
    }
}

/// A latency in milliseconds, with the unit that old versions write or without one.
fn milliseconds(text: &str) -> Option<f64> {
    match duration_ns(text) {
        Some(ns) => Some(ns / 1e6),
        None => number(text),
    }
}

/// `937.5Mb`, `1.5259Gb`: old versions mean bytes, by 1,024.
fn binary_bytes(text: &str) -> Option<f64> {
    let at = text.find(|char: char| char.is_ascii_alphabetic())?;
    let factor = match text.get(at..)? {
        "b" | "B" => 1.0,
        "Kb" | "KB" | "KiB" => 1_024.0,
        "Mb" | "MB" | "MiB" => MIB,
        "Gb" | "GB" | "GiB" => MIB * 1_024.0,
        "Tb" | "TB" | "TiB" => MIB * MIB,
        _ => return None,
    };
    Some(number(text.get(..at)?)? * factor)
}

/// sysbench counts latencies in 1,024 buckets whose values grow by one ratio, from 1 us to 100 s.
const BUCKETS: f64 = 1_023.0;
const HIGHEST_OVER_LOWEST: f64 = 1e8;

impl Printed {
    /// Adds what its statistics say.
    fn fill(&self, step: &mut Step) {
        let layer = if self.test == Some(Test::Files) { "OS file" } else { "client" };
        for (name, unit, value) in &self.figures {
            let metric = (name == "transactions per sec.").then_some(Metric::Transactions);
            step.reported.push(reported_figure(layer, name, unit, *value).is(metric, 1.0));
        }
        // With two decimals 0.00 ms is anything below 5 us, so what it is is not known.
        if let Some((share, value_ms)) = self.percentile.filter(|(_, value_ms)| *value_ms > 0.0) {
            step.reported.push(reported_figure(
                layer,
                format!("latency {}th percentile", share * 100.0),
                "ms",
                value_ms,
            ));
        }
        for (name, value_ms) in self.latencies.iter().filter(|(_, value_ms)| *value_ms > 0.0) {
            step.reported.push(reported_figure(layer, format!("latency {name}"), "ms", *value_ms));
        }
        let count = self.events.or(self.transactions);
        step.counters.operations = count;
        step.counters.errors = self.errors;
        if self.test == Some(Test::Files) {
            let ns = step.window.duration_ns;
            let counted = |name: &str| {
                let known =
                    |(reported, ..): &&(String, &str, f64)| reported.strip_suffix('s').unwrap_or(reported) == name;
                self.figures.iter().find(known).and_then(|(.., value)| whole(*value))
            };
            let in_window = |rate: Option<f64>| rate.filter(|_| ns > 0).and_then(|rate| count_of(rate, ns));
            let bytes = |name: &str| {
                self.figures
                    .iter()
                    .find(|(reported, unit, _)| reported == name && *unit == "bytes")
                    .and_then(|(.., value)| whole(*value))
            };
            let counters = &mut step.counters;
            counters.physical_reads = in_window(self.reads).or_else(|| counted("operations performed: read"));
            counters.physical_writes = in_window(self.writes).or_else(|| counted("operations performed: write"));
            counters.physical_read_bytes = in_window(self.read_bytes).or_else(|| bytes("Read"));
            counters.physical_write_bytes = in_window(self.write_bytes).or_else(|| bytes("Written"));
        }
        let Some(count) = count else { return };
        let response = self.response(count);
        // With a rate the time in the queue is part of the latency.
        let service = match step.load.rate_operations_per_s {
            Some(_) => Histogram::counted(count, None),
            None => response.clone(),
        };
        let kind = if self.test == Some(Test::Database) { "transaction" } else { "event" };
        let errors = self.errors.unwrap_or(0);
        step.operations.push(OperationStats { count, errors, ..draft::operations(kind, service, response) });
    }

    fn response(&self, count: u64) -> Histogram {
        let of = |name: &str| self.latencies.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
        let ns = |name: &str| of(name).filter(|value| count > 0 && *value > 0.0).and_then(percentiles::ms);
        let sum_s = self.busy_s.filter(|_| count > 0).and_then(|seconds| whole(seconds * 1e9));
        let mean = || of("avg").filter(|mean| *mean > 0.0).and_then(|mean| sum_of_mean(mean * 1e6, count));
        let total_ns = ns("sum").or(sum_s).or_else(mean);
        let held = self.histogram.iter().fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
        if held == count && held > 0 {
            // A value stands for the middle of its bucket, on the scale of logarithms.
            let half = (HIGHEST_OVER_LOWEST.ln() / BUCKETS / 2.0).exp();
            let edge = |value: f64| whole(value * 1e6).unwrap_or(u64::MAX);
            let buckets = self.histogram.iter().map(|(value, count)| ReportedBucket {
                from_ns: edge(value / half),
                to_ns: Some(edge(value * half)),
                count: *count,
            });
            return Histogram::reported(buckets, total_ns, ns("min"), ns("max"));
        }
        let percentile = self.percentile.and_then(|(share, value)| Some((share, percentiles::ms(value)?)));
        let known: Vec<(f64, u64)> = percentile.into_iter().filter(|(_, ns)| count > 0 && *ns > 0).collect();
        percentiles::histogram(count, total_ns, ns("min"), ns("max"), &known)
    }
}
