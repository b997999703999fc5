//! Histograms of block I/O that kernel tracing made: `biolatency` of bcc and of its C version, as text and as dictionaries
//! (`-j`), `biolatency.bt` of bpftrace, and `iolatency` of perf-tools.
//!
//! Each prints tables of counts, one for each disk or kind of request if asked, once or every few seconds. bcc and perf-tools begin to
//! count anew with each print; a map of bpftrace goes on unless its script clears it.

use model::record::{Histogram, Interval, ReportedBucket, WaitStats, Workload};
use std::collections::BTreeMap;

use serde_json::Value;

use super::draft::step;
use super::{Began, Draft};
use crate::console::plain;
use crate::numbers::whole_number;
use crate::{ImportError, Notes, Source};

/// How the traced requests are called, without the queue before the device.
const EVENT: &str = "block I/O";
/// Tables of one file: four disks every second for a day.
const MAX_TABLES: usize = 400_000;
/// Disks or kinds of requests of one file.
const MAX_EVENTS: usize = 1_000;
const DAY_S: i64 = 86_400;

/// What a line says that begins a trace of block I/O, of all these programs.
const BEGINS: [&str; 2] = ["Tracing block device I/O", "Tracing block I/O"];

/// Whether a line says what is traced, and whether that is block I/O.
fn traces_block_io(line: &str) -> Option<bool> {
    if line.trim_start().starts_with("Tracing ") {
        return Some(BEGINS.iter().any(|begin| line.contains(begin)));
    }
    command(line).is_some().then_some(true)
}

/// The words of a command that runs one of these programs, as a shell shows it.
fn command(line: &str) -> Option<Vec<String>> {
    let line = line.trim_start().trim_start_matches(['#', '$', '+', '>', ' ']);
    let words: Vec<&str> = line.split_whitespace().take(24).collect();
    let is_tool = |word: &&str| {
        let name = word.rsplit('/').next().unwrap_or(word);
        ["biolatency", "iolatency"].iter().any(|tool| name.strip_prefix(tool).is_some_and(is_ending))
    };
    let at = words.iter().take(3).position(is_tool)?;
    // A sentence about it has other words before or after it.
    let are_options = |word: &&str| word.starts_with('-') || word.bytes().all(|byte| byte.is_ascii_digit());
    let before = words.get(..at)?.iter().all(|word| ["sudo", "bpftrace"].contains(word));
    (before && words.get(at + 1..)?.iter().all(are_options))
        .then(|| words.iter().map(|word| (*word).to_owned()).collect())
}

fn is_ending(rest: &str) -> bool {
    ["", ".py", ".bt", "-bpfcc"].contains(&rest)
}

/// One table of counts.
#[derive(Debug, Default)]
struct Table {
    /// When it was printed, in seconds of some clock.
    at_s: Option<i64>,
    /// The disk or the kind of requests, if it is of one.
    of: String,
    buckets: Vec<ReportedBucket>,
    /// The sum of all durations, where it is reported, and of how many.
    sum: Option<(u64, u64)>,
}

impl Table {
    fn histogram(&self) -> Histogram {
        let histogram = Histogram::reported(self.buckets.iter().copied(), None, None, None);
        match self.sum {
            Some((total_ns, count)) if count == histogram.count() => {
                Histogram::reported(self.buckets.iter().copied(), Some(total_ns), None, None)
            }
            _ => histogram,
        }
    }
}

/// What was printed of one trace.
#[derive(Debug, Default)]
struct Trace {
    program: &'static str,
    command: Vec<String>,
    tables: Vec<Table>,
    /// The time between two prints, where it is reported.
    every_s: Option<u64>,
    /// Date and time of the first print, where they are reported.
    first_at: Option<Began>,
    notes: Vec<String>,
}

/// Everything that was printed at one time.
#[derive(Debug, Default)]
struct Print {
    at_s: Option<i64>,
    tables: BTreeMap<String, Histogram>,
}

impl Trace {
    fn new(program: &'static str) -> Self {
        Self { program, ..Self::default() }
    }

    /// Adds a table; false if there are too many.
    fn add(&mut self, table: Table) -> bool {
        let fits = self.tables.len() < MAX_TABLES;
        if fits {
            self.tables.push(table);
        }
        fits
    }

    /// The run that it was; nothing if it counted nothing.
    fn draft(self) -> Option<Draft> {
        let Self { program, command, tables, every_s, first_at, notes } = self;
        let mut draft = Draft::new(Workload::Io, program, format!("{EVENT} by {program}"));
        // `-Q` begins to count when a request enters the queue of the kernel.
        let is_queued =
            command.iter().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains('Q'))
                || command.iter().any(|word| word == "--queued");
        let layer = if is_queued { "OS file" } else { "device" };
        let event = |of: &str| match (is_queued, of) {
            (true, "") => format!("{EVENT} with its queue"),
            (false, "") => EVENT.to_owned(),
            (true, of) => format!("{EVENT} of {of} with its queue"),
            (false, of) => format!("{EVENT} of {of}"),
        };
        draft.command = command;
        draft.notes = notes;
        draft.notes.push("All block I/O of the machine is counted, of every process.".to_owned());
        let mut prints: Vec<Print> = Vec::new();
        let mut all: BTreeMap<String, Histogram> = BTreeMap::new();
        for table in &tables {
            let histogram = table.histogram();
            let is_next = |print: &Print| print.at_s != table.at_s || print.tables.contains_key(&table.of);
            if prints.last().is_none_or(is_next) {
                prints.push(Print { at_s: table.at_s, ..Print::default() });
            }
            if all.len() < MAX_EVENTS || all.contains_key(&table.of) {
                all.entry(table.of.clone())
                    .or_insert_with(|| Histogram::reported([], None, None, None))
                    .merge(&histogram);
                if let Some(print) = prints.last_mut() {
                    print.tables.insert(table.of.clone(), histogram);
                }
            }
        }
        if all.values().all(|histogram| histogram.count() == 0) {
            return None;
        }
        let mut step = step(0, "all", 0);
        let between = |before: i64, now: i64| if now < before { now + DAY_S - before } else { now - before };
        let mut lengths: Vec<Option<u64>> = vec![every_s];
        lengths.extend(prints.iter().zip(prints.iter().skip(1)).map(|(before, now)| {
            let between_prints =
                before.at_s.zip(now.at_s).and_then(|(before, now)| u64::try_from(between(before, now)).ok());
            between_prints.filter(|length_s| *length_s > 0).or(every_s)
        }));
        if prints.len() > 1 && every_s.is_none() {
            // The first print has none before it; all are as far apart.
            lengths[0] = lengths.get(1).copied().flatten();
        }
        let lengths: Option<Vec<u64>> = lengths.into_iter().collect();
        match lengths {
            Some(lengths) => {
                for (print, length_s) in prints.into_iter().zip(&lengths) {
                    let (offset_ns, duration_ns) = (step.window.duration_ns, length_s.saturating_mul(1_000_000_000));
                    step.window.duration_ns = offset_ns.saturating_add(duration_ns);
                    let counted = print.tables.into_iter().filter(|(_, histogram)| histogram.count() > 0);
                    let waits = counted.map(|(of, histogram)| (event(&of), histogram)).collect();
                    step.intervals.push(Interval { offset_ns, duration_ns, waits, ..Interval::default() });
                }
                let first_s = lengths.first().copied().and_then(|length_s| i64::try_from(length_s).ok()).unwrap_or(0);
                draft.began = first_at.and_then(|at| before(at, first_s));
            }
            None if prints.len() > 1 => draft.notes.push(format!(
                "Its {} prints are added up: how far they lie apart is not reported, so there are no rates.",
                prints.len()
            )),
            None => draft.notes.push("How long it traced is not reported, so there are no rates.".to_owned()),
        }
        let waits = all.into_iter().filter(|(_, histogram)| histogram.count() > 0).map(|(of, waits)| WaitStats {
            event: event(&of),
            class: String::new(),
            layer: layer.to_owned(),
            foreground: true,
            waits,
            reported: Vec::new(),
        });
        step.waits = waits.collect();
        draft.steps.push(step);
        Some(draft)
    }
}

/// The same clock, `seconds` earlier.
fn before(at: Began, seconds: i64) -> Option<Began> {
    let earlier = at.timestamp().0.checked_sub(jiff::SignedDuration::from_secs(seconds)).ok()?;
    Some(match at {
        Began::Utc(_) => Began::Utc(model::record::Timestamp(earlier)),
        Began::Wall(_) => Began::Wall(model::record::Timestamp(earlier)),
    })
}

/// `06:20:16` as seconds since midnight.
fn time_of_day(text: &str) -> Option<i64> {
    let time = jiff::civil::Time::strptime("%H:%M:%S", text.trim()).ok()?;
    Some(i64::from(time.hour()) * 3_600 + i64::from(time.minute()) * 60 + i64::from(time.second()))
}

/// The unit of a table in nanoseconds.
fn unit_ns(unit: &str) -> Option<u64> {
    Some(match unit {
        "nsecs" => 1,
        "usecs" => 1_000,
        "msecs" => 1_000_000,
        _ => return None,
    })
}

/// The bucket from `from` up to, not including, `to`, in a unit.
fn bucket(from: u64, to: u64, unit_ns: u64, count: u64) -> Option<ReportedBucket> {
    (from < to).then(|| ReportedBucket { from_ns: from.saturating_mul(unit_ns), to_ns: to.checked_mul(unit_ns), count })
}

const MS: u64 = 1_000_000;

/// Whether it has the heading that only this program prints.
pub(crate) fn recognises_iolatency(head: &str) -> bool {
    head.lines().any(is_heading)
}

/// `  >=(ms) .. <(ms)   : I/O      |Distribution     |`
fn is_heading(line: &str) -> bool {
    let words: Vec<&str> = line.split([' ', '\t', ':', '|']).filter(|word| !word.is_empty()).take(6).collect();
    words == [">=(ms)", "..", "<(ms)", "I/O", "Distribution"]
}

/// `       2 -> 4       : 9        |#    |`
fn row(line: &str) -> Option<(u64, u64, u64)> {
    let (range, rest) = line.split_once(':')?;
    let (from, to) = range.split_once("->")?;
    Some((whole_number(from)?, whole_number(to)?, whole_number(rest.split('|').next()?)?))
}

/// The runs in it: one for each start of the program.
pub(crate) fn read_iolatency(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut traces: Vec<Trace> = vec![Trace::new("iolatency")];
    let (mut commanded, mut at_s, mut in_table) = (None, None, false);
    for (number, text) in source.lines() {
        let line = plain(text);
        let text = line.trim();
        if let Some(words) = command(text) {
            (commanded, in_table) = (Some(words), false);
        } else if let Some(rest) = text.strip_prefix("Tracing block I/O. Output every ") {
            let every_s = rest.split_whitespace().next().and_then(whole_number).filter(|seconds| *seconds > 0);
            traces.push(Trace { command: commanded.take().unwrap_or_default(), every_s, ..Trace::new("iolatency") });
            (at_s, in_table) = (None, false);
        } else if let Some(seconds) = time_of_day(text.trim_end_matches(':')) {
            (at_s, in_table) = (Some(seconds), false);
        } else if is_heading(text) {
            in_table = true;
            let table = Table { at_s, ..Table::default() };
            if !traces.last_mut().is_some_and(|trace| trace.add(table)) {
                return Err(ImportError::damaged(source, number, "it has too many tables"));
            }
        } else if in_table && text.contains("->") {
            let known = row(text).and_then(|(from, to, count)| bucket(from, to, MS, count));
            match known.zip(traces.last_mut().and_then(|trace| trace.tables.last_mut())) {
                Some((bucket, table)) => table.buckets.push(bucket),
                None => notes.not_understood(number, "a range in milliseconds, a count and its bar were expected"),
            }
        } else {
            in_table = false;
            if !text.starts_with(BEGINS[1]) {
                notes.unknown(number, text);
            }
        }
    }
    let drafts: Vec<Draft> = traces.into_iter().filter_map(Trace::draft).collect();
    if drafts.is_empty() {
        return Err(ImportError::no_result(source, "it holds no table of iolatency that counted anything"));
    }
    Ok(drafts)
}

/// Whether a line is such a dictionary.
pub(crate) fn recognises_dictionary(head: &str) -> bool {
    head.lines().take(400).any(|line| {
        let line = line.trim_start();
        let begins = ["{'ts':", "{\"ts\":"].iter().any(|begin| line.starts_with(begin));
        begins && line.contains("val_type") && line.contains("interval-start")
    })
}

/// A dictionary as JSON: Python has other quotes, and `b` before those of bytes. No name of a disk or a flag has quotes.
fn json(line: &str) -> Option<Value> {
    let text = match line.contains('"') {
        true => line.to_owned(),
        false => line.replace(": b'", ": '").replace('\'', "\""),
    };
    serde_json::from_str(&text).ok()
}

/// Its table, and when it was printed.
fn table(value: &Value) -> Option<(Table, Option<Began>)> {
    let unit_ns = unit_ns(value.get("val_type")?.as_str()?)?;
    let mut table = Table::default();
    for row in value.get("data")?.as_array()? {
        let of = |key: &str| row.get(key).and_then(Value::as_u64);
        let to = of("interval-end")?.checked_add(1)?;
        table.buckets.push(bucket(of("interval-start")?, to, unit_ns, of("count")?)?);
    }
    // Of disks bcc names no key of its own.
    let of = ["flags", "disk", "Bucket ptr"].iter().find_map(|key| value.get(key)?.as_str());
    table.of = of.unwrap_or_default().chars().take(120).collect();
    let written = value.get("ts").and_then(Value::as_str);
    let time = written.and_then(|text| jiff::civil::DateTime::strptime("%Y-%m-%d %H:%M:%S", text).ok());
    let at = time.and_then(Began::wall);
    table.at_s = at.map(|at| at.timestamp().0.as_second());
    Some((table, at))
}

/// The run in it.
pub(crate) fn read_dictionary(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut trace = Trace::new("biolatency");
    for (number, line) in source.lines() {
        let line = line.trim();
        if let Some(words) = command(line) {
            trace.command = words;
            continue;
        }
        if !line.starts_with('{') {
            notes.unknown(number, line);
            continue;
        }
        let Some((table, at)) = json(line).as_ref().and_then(table) else {
            notes.not_understood(number, "a dictionary with val_type and data was expected");
            continue;
        };
        if trace.tables.is_empty() {
            trace.first_at = at;
        }
        if !trace.add(table) {
            return Err(ImportError::damaged(source, number, "it has too many tables"));
        }
    }
    trace
        .draft()
        .map(|draft| vec![draft])
        .ok_or_else(|| ImportError::no_result(source, "it holds no dictionary of biolatency that counted anything"))
}

/// Whether it has a table as bcc prints it, below a line that says that block I/O was traced, or of a disk.
pub(crate) fn recognises_bcc(head: &str) -> bool {
    let mut of_block_io = false;
    for line in head.lines() {
        let line = plain(line);
        match traces_block_io(line) {
            Some(is_so) => of_block_io = is_so,
            None if section(line).is_some_and(|(key, _)| key == "disk") => of_block_io = true,
            None => {}
        }
        if of_block_io && heading(line).is_some() {
            return true;
        }
    }
    false
}

/// `     usecs           : count     distribution`: its unit.
fn heading(line: &str) -> Option<&str> {
    let (unit, rest) = line.split_once(':')?;
    let mut words = rest.split_whitespace();
    (words.next() == Some("count") && words.next() == Some("distribution") && words.next().is_none())
        .then(|| unit.trim())
}

/// `disk = 'xvdb'`, `Bucket disk = 'xvdb'`, `flags = Sync-Read`, and both in one line as the C version prints them: what the first
/// key is, and all values.
fn section(line: &str) -> Option<(&str, String)> {
    let line = line.trim();
    let line = line.strip_prefix("Bucket ").unwrap_or(line);
    let (key, _) = line.split_once(" = ")?;
    if !["disk", "flags"].contains(&key) {
        return None;
    }
    let value = |part: &str| {
        let (key, value) = part.split_once(" = ")?;
        let value = value.trim().trim_start_matches("b'").trim_matches('\'').to_owned();
        (["disk", "flags"].contains(&key.trim()) && value.len() <= 120).then_some(value)
    };
    let values: Vec<String> = line.split('\t').take(4).filter_map(value).filter(|value| !value.is_empty()).collect();
    Some((key, values.join(" ")))
}

/// `     128 -> 255      : 12       |********     |`
fn bcc_row(line: &str) -> Option<(u64, u64, u64)> {
    let (range, rest) = line.split_once(':')?;
    let (from, to) = range.split_once("->")?;
    let count = rest.split('|').next()?;
    Some((whole_number(from)?, whole_number(to)?, whole_number(count)?))
}

/// `avg = 253 usecs, total: 1299 usecs, count: 5`: the sum in nanoseconds, and the count.
fn sum(line: &str) -> Option<(u64, u64)> {
    let (_, rest) = line.trim().strip_prefix("avg = ")?.split_once("total: ")?;
    let (total, count) = rest.split_once(", count: ")?;
    let (total, unit) = total.split_once(' ')?;
    Some((whole_number(total)?.checked_mul(unit_ns(unit.trim())?)?, whole_number(count)?))
}

/// The runs in it: one for each start of the program.
pub(crate) fn read_bcc(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut traces: Vec<Trace> = Vec::new();
    let (mut of_block_io, mut unit, mut at_s, mut of) = (true, None, None, String::new());
    let mut commanded = None;
    for (number, text) in source.lines() {
        let line = plain(text);
        if let Some(is_so) = traces_block_io(line) {
            (of_block_io, unit, at_s) = (is_so, None, None);
            of.clear();
            match command(line) {
                Some(words) => commanded = Some(words),
                None => {
                    let command = commanded.take().unwrap_or_default();
                    traces.push(Trace { command, ..Trace::new("biolatency") });
                }
            }
        } else if let Some((_, value)) = section(line) {
            of = value;
        } else if let Some(reported) = heading(line) {
            unit = unit_ns(reported);
            if unit.is_none() {
                notes.not_understood(number, "a unit of time was expected: nsecs, usecs or msecs");
            }
            if traces.is_empty() {
                traces.push(Trace::new("biolatency"));
            }
            let table = Table { at_s, of: std::mem::take(&mut of), ..Table::default() };
            let fits = !of_block_io || unit.is_none() || traces.last_mut().is_some_and(|trace| trace.add(table));
            if !fits {
                return Err(ImportError::damaged(source, number, "it has too many tables"));
            }
        } else if let Some(seconds) = time_of_day(line) {
            (at_s, unit) = (Some(seconds), None);
        } else if let Some(sum) = sum(line) {
            if let Some(table) = traces.last_mut().and_then(|trace| trace.tables.last_mut()) {
                table.sum = Some(sum);
            }
        } else if line.contains("->") && line.contains(':') && of_block_io {
            let known = bcc_row(line)
                .zip(unit)
                .and_then(|((from, to, count), unit_ns)| bucket(from, to.checked_add(1)?, unit_ns, count));
            let table = traces.last_mut().and_then(|trace| trace.tables.last_mut());
            match known.zip(table) {
                Some((bucket, table)) => table.buckets.push(bucket),
                None => notes.not_understood(number, "a range, a count and its bar were expected, below a heading"),
            }
        } else if of_block_io {
            notes.unknown(number, line);
        }
    }
    let drafts: Vec<Draft> = traces.into_iter().filter_map(Trace::draft).collect();
    if drafts.is_empty() {
        return Err(ImportError::no_result(source, "it holds no table of biolatency that counted anything"));
    }
    Ok(drafts)
}

/// Whether it has a map of times as bpftrace prints it, below a line that says that block I/O was traced.
pub(crate) fn recognises_bpftrace(head: &str) -> bool {
    let mut of_block_io = false;
    for line in head.lines() {
        let line = plain(line);
        of_block_io = traces_block_io(line).unwrap_or(of_block_io);
        if of_block_io && map(line).is_some() {
            return true;
        }
    }
    false
}

/// `@usecs:`, `@usecs[nvme0n1]:`, `@usecs[259, 0]: `: the unit in nanoseconds, and the key.
fn map(line: &str) -> Option<(u64, String)> {
    let name = line.trim().strip_prefix('@')?.strip_suffix(':')?;
    let (name, key) = match name.split_once('[') {
        Some((name, key)) => (name, key.strip_suffix(']')?),
        None => (name, ""),
    };
    let name = name.rsplit('_').next()?;
    Some((unit_ns(name)?, key.trim_matches('"').chars().take(120).collect()))
}

/// `[256, 512)   2 |@@   |`, `[1K, 2K)`, `[0]`: where it begins and ends, and its count.
fn bpftrace_row(line: &str) -> Option<(u64, u64, u64)> {
    let range = line.trim().strip_prefix('[')?;
    let at = range.find([')', ']'])?;
    let (range, rest) = range.split_at_checked(at)?;
    let count = whole_number(rest.get(1..)?.split('|').next()?)?;
    match range.split_once(',') {
        Some((from, to)) => Some((binary(from)?, binary(to)?, count)),
        None => binary(range).and_then(|from| Some((from, from.checked_add(1)?, count))),
    }
}

/// `4`, `16K`, `1M`, by 1,024.
fn binary(text: &str) -> Option<u64> {
    let text = text.trim();
    let factor: u64 = match text.chars().last()? {
        'K' => 1 << 10,
        'M' => 1 << 20,
        'G' => 1 << 30,
        'T' => 1 << 40,
        _ => return whole_number(text),
    };
    whole_number(text.get(..text.len() - 1)?)?.checked_mul(factor)
}

/// The runs in it: one for each start of the program.
pub(crate) fn read_bpftrace(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut traces: Vec<Trace> = vec![Trace::new("biolatency.bt")];
    let (mut commanded, mut at_s, mut unit) = (None, None, None);
    let (mut of_block_io, mut in_other_map) = (true, false);
    for (number, text) in source.lines() {
        let line = plain(text);
        if let Some(is_so) = traces_block_io(line) {
            (of_block_io, unit, at_s, in_other_map) = (is_so, None, None, false);
            match command(line) {
                Some(words) => commanded = Some(words),
                None => {
                    let command = commanded.take().unwrap_or_default();
                    traces.push(Trace { command, ..Trace::new("biolatency.bt") });
                }
            }
        } else if let Some(seconds) = time_of_day(line) {
            (at_s, unit) = (Some(seconds), None);
        } else if let Some((unit_ns, of)) = map(line).filter(|_| of_block_io) {
            (unit, in_other_map) = (Some(unit_ns), false);
            if !traces.last_mut().is_some_and(|trace| trace.add(Table { at_s, of, ..Table::default() })) {
                return Err(ImportError::damaged(source, number, "it has too many tables"));
            }
        } else if line.starts_with('@') {
            // Another map, of which nothing is known.
            (unit, in_other_map) = (None, true);
        } else if let Some(unit_ns) = unit.filter(|_| line.contains('|')) {
            let known = bpftrace_row(line).and_then(|(from, to, count)| bucket(from, to, unit_ns, count));
            match known.zip(traces.last_mut().and_then(|trace| trace.tables.last_mut())) {
                Some((bucket, table)) => table.buckets.push(bucket),
                None => notes.not_understood(number, "a range such as `[4, 8)`, a count and its bar were expected"),
            }
        } else if of_block_io && !in_other_map {
            notes.unknown(number, line);
        }
    }
    traces.iter_mut().for_each(follow);
    let drafts: Vec<Draft> = traces.into_iter().filter_map(Trace::draft).collect();
    if drafts.is_empty() {
        return Err(ImportError::no_result(source, "it holds no histogram of biolatency.bt"));
    }
    Ok(drafts)
}

/// Where no count of a map ever falls from one print to the next, it was printed without being cleared: then what happened between
/// two prints is their difference.
fn follow(trace: &mut Trace) {
    let mut last: BTreeMap<&str, BTreeMap<u64, u64>> = BTreeMap::new();
    let (mut is_printed_again, mut falls) = (false, false);
    let counts = |buckets: &[ReportedBucket]| -> BTreeMap<u64, u64> {
        buckets.iter().map(|bucket| (bucket.from_ns, bucket.count)).collect()
    };
    for table in &trace.tables {
        let now = counts(&table.buckets);
        if let Some(before) = last.get(table.of.as_str()) {
            is_printed_again = true;
            falls |= before.iter().any(|(from, count)| now.get(from).copied().unwrap_or(0) < *count);
        }
        last.insert(&table.of, now);
    }
    if !is_printed_again || falls {
        return;
    }
    let mut last: BTreeMap<String, BTreeMap<u64, u64>> = BTreeMap::new();
    for table in &mut trace.tables {
        let now = counts(&table.buckets);
        let before = last.insert(table.of.clone(), now).unwrap_or_default();
        for bucket in &mut table.buckets {
            bucket.count -= before.get(&bucket.from_ns).copied().unwrap_or(0).min(bucket.count);
        }
    }
    trace.notes.push(
        "Counts never fall from one print to the next. They are read as a map that was not cleared: each print \
        includes those before."
            .to_owned(),
    );
}

#[cfg(test)]
mod tests;
