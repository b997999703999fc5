//! `biolatency` of bcc as text, in Python or C.

use super::{Table, Trace, bucket, command, time_of_day, traces_block_io, unit_ns};
use crate::console::plain;
use crate::numbers::whole_number;
use crate::{Draft, ImportError, Notes, Source};

/// Whether it has a table as bcc prints it, below a line that says that block I/O was traced, or of a disk.
pub(crate) fn recognises(head: &str) -> bool {
    let mut of_block_io = false;
    for line in head.lines() {
        let line = plain(line);
        match traces_block_io(&line) {
            Some(is_so) => of_block_io = is_so,
            None if section(&line).is_some_and(|(key, _)| key == "disk") => of_block_io = true,
            None => {}
        }
        if of_block_io && heading(&line).is_some() {
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
fn row(line: &str) -> Option<(u64, u64, u64)> {
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
pub(crate) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut traces: Vec<Trace> = Vec::new();
    let (mut of_block_io, mut unit, mut at_s, mut of) = (true, None, None, String::new());
    let mut commanded = None;
    for (number, text) in source.lines() {
        let line = plain(text);
        if let Some(is_so) = traces_block_io(&line) {
            (of_block_io, unit, at_s) = (is_so, None, None);
            of.clear();
            match command(&line) {
                Some(words) => commanded = Some(words),
                None => {
                    let command = commanded.take().unwrap_or_default();
                    traces.push(Trace { command, ..Trace::new("biolatency") });
                }
            }
        } else if let Some((_, value)) = section(&line) {
            of = value;
        } else if let Some(reported) = heading(&line) {
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
        } else if let Some(seconds) = time_of_day(&line) {
            (at_s, unit) = (Some(seconds), None);
        } else if let Some(sum) = sum(&line) {
            if let Some(table) = traces.last_mut().and_then(|trace| trace.tables.last_mut()) {
                table.sum = Some(sum);
            }
        } else if line.contains("->") && line.contains(':') && of_block_io {
            let known = row(&line)
                .zip(unit)
                .and_then(|((from, to, count), unit_ns)| bucket(from, to.checked_add(1)?, unit_ns, count));
            let table = traces.last_mut().and_then(|trace| trace.tables.last_mut());
            match known.zip(table) {
                Some((bucket, table)) => table.buckets.push(bucket),
                None => notes.not_understood(number, "a range, a count and its bar were expected, below a heading"),
            }
        }
    }
    let drafts: Vec<Draft> = traces.into_iter().filter_map(Trace::draft).collect();
    if drafts.is_empty() {
        return Err(ImportError::no_result(source, "it holds no table of biolatency that counted anything"));
    }
    Ok(drafts)
}
