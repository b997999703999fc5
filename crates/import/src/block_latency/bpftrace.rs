//! `biolatency.bt` of bpftrace.

use std::collections::BTreeMap;

use super::{Table, Trace, bucket, command, time_of_day, traces_block_io, unit_ns};
use crate::console::plain;
use crate::numbers::whole_number;
use crate::{Draft, ImportError, Notes, Source};
use model::record::ReportedBucket;

/// Whether it has a map of times as bpftrace prints it, below a line that says that block I/O was traced.
pub(crate) fn recognises(head: &str) -> bool {
    let mut of_block_io = false;
    for line in head.lines() {
        let line = plain(line);
        of_block_io = traces_block_io(&line).unwrap_or(of_block_io);
        if of_block_io && map(&line).is_some() {
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
fn row(line: &str) -> Option<(u64, u64, u64)> {
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
pub(crate) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut traces: Vec<Trace> = vec![Trace::new("biolatency.bt")];
    let (mut commanded, mut at_s, mut unit) = (None, None, None);
    let mut of_block_io = true;
    for (number, text) in source.lines() {
        let line = plain(text);
        if let Some(is_so) = traces_block_io(&line) {
            (of_block_io, unit, at_s) = (is_so, None, None);
            match command(&line) {
                Some(words) => commanded = Some(words),
                None => {
                    let command = commanded.take().unwrap_or_default();
                    traces.push(Trace { command, ..Trace::new("biolatency.bt") });
                }
            }
        } else if let Some(seconds) = time_of_day(&line) {
            (at_s, unit) = (Some(seconds), None);
        } else if let Some((unit_ns, of)) = map(&line).filter(|_| of_block_io) {
            unit = Some(unit_ns);
            if !traces.last_mut().is_some_and(|trace| trace.add(Table { at_s, of, ..Table::default() })) {
                return Err(ImportError::damaged(source, number, "it has too many tables"));
            }
        } else if line.starts_with('@') {
            // Another map, of which nothing is known.
            unit = None;
        } else if let Some(unit_ns) = unit.filter(|_| line.contains('|')) {
            let known = row(&line).and_then(|(from, to, count)| bucket(from, to, unit_ns, count));
            match known.zip(traces.last_mut().and_then(|trace| trace.tables.last_mut())) {
                Some((bucket, table)) => table.buckets.push(bucket),
                None => notes.not_understood(number, "a range such as `[4, 8)`, a count and its bar were expected"),
            }
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
        "Counts never fall from one print to the next: they are taken for a map that was not cleared, of which each print holds \
         those before."
            .to_owned(),
    );
}
