//! `iolatency` of perf-tools.

use super::{Table, Trace, bucket, command, time_of_day};
use crate::console::plain;
use crate::numbers::whole_number;
use crate::{Draft, ImportError, Notes, Source};

const MS: u64 = 1_000_000;

/// Whether it has the heading that only this program prints.
pub(crate) fn recognises(head: &str) -> bool {
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
pub(crate) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
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
        }
    }
    let drafts: Vec<Draft> = traces.into_iter().filter_map(Trace::draft).collect();
    if drafts.is_empty() {
        return Err(ImportError::no_result(source, "it holds no table of iolatency that counted anything"));
    }
    Ok(drafts)
}
