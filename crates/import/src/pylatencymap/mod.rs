//! Records of PyLatencyMap: counters of a latency histogram that are read again and again, of Oracle's wait events or of kernel
//! tracing.
//!
//! Each record has counts since the counters began; what happened between two records is their difference, which becomes an
//! interval. Buckets of Oracle are named by their upper edge, those of tracing by their lower one. Records that do not say where
//! they come from are Oracle's, unless they have the form or the words of a tracing tool. The instances of a cluster follow each
//! other in a record, each beginning with the lowest bucket again, and in any order: only their sum can be followed.

use model::record::Workload;
use std::collections::BTreeMap;

use super::draft::step;
use super::evhist::{edges_ns, kind_of_event};
use super::numbers::whole_number;
use super::oracle_time;
use super::spool::clean;
use super::{Began, Draft, ImportError, Notes, Source};
use model::record::{Histogram, Interval, ReportedBucket, Target, WaitStats};

const DAY_US: u64 = 86_400_000_000;
/// Records of one file: a week of them, one every three seconds.
const MAX_RECORDS: u64 = 200_000;
/// Labels of one file.
const MAX_LABELS: usize = 1_000;

/// One reading of the counters.
#[derive(Debug, Clone, Default)]
struct Record {
    line: u64,
    /// Microseconds since some instant, often since midnight.
    at_us: Option<u64>,
    began: Option<Began>,
    label: String,
    unit: String,
    source: String,
    is_quantized: bool,
    /// Counts by bucket, of all instances.
    counts: BTreeMap<u64, u64>,
    /// How often each bucket stands in it.
    times: BTreeMap<u64, usize>,
    /// The most of these: a query of the workload repository prints buckets in any order.
    instances: usize,
}

/// What is known of one label.
#[derive(Debug, Default)]
struct Series {
    first: Record,
    last: Record,
    records: u64,
    /// Offset and length of each interval, and its counts.
    intervals: Vec<(u64, u64, BTreeMap<u64, u64>)>,
    elapsed_ns: u64,
    notes: Vec<String>,
}

/// Whether there are records.
pub(super) fn recognises(head: &str) -> bool {
    let has = |word: &str| head.lines().any(|line| line.trim_start().starts_with(word));
    has("<begin record>") && has("latencyunit")
}

/// A run for each label of the file.
pub(super) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut series: BTreeMap<String, Series> = BTreeMap::new();
    let mut open: Option<Record> = None;
    let mut records = 0_u64;
    for (line, text) in source.lines() {
        let text = clean(text);
        let text = text.trim();
        if text.starts_with("<begin record>") {
            if let Some(cut) = open.replace(Record { line, ..Record::default() }) {
                notes.not_understood(cut.line, "a record without its end; it is left out");
            }
        } else if text.starts_with("<end record>") {
            if let Some(record) = open.take() {
                if series.len() == MAX_LABELS && !series.contains_key(&record.label) {
                    return Err(ImportError::damaged(source, line, format!("it has more than {MAX_LABELS} labels")));
                }
                records += 1;
                if records > MAX_RECORDS {
                    return Err(ImportError::damaged(source, line, format!("it has more than {MAX_RECORDS} records")));
                }
                series.entry(record.label.clone()).or_default().add(record);
            }
        } else if let Some(record) = &mut open
            && !record.take(text)
        {
            notes.not_understood(
                line,
                format!("`{}`: a bucket and its count were expected", text.chars().take(80).collect::<String>()),
            );
        }
    }
    if let Some(cut) = open {
        notes.not_understood(cut.line, "a record without its end, since the file ends there; it is left out");
    }
    let drafts: Vec<Draft> = series.into_values().filter_map(Series::draft).collect();
    if drafts.is_empty() {
        return Err(ImportError::damaged(source, None, "it has no whole record with counts"));
    }
    Ok(drafts)
}

/// The instant of microseconds since 1970, as SystemTap and BPF count them; Oracle's scripts count from midnight or from 2010.
fn since_1970(at_us: u64) -> Option<Began> {
    let at_s = i64::try_from(at_us / 1_000_000).ok()?;
    (1_000_000_000..10_000_000_000).contains(&at_s).then(|| Began::epoch_s(at_s)).flatten()
}

impl Record {
    /// Whether a line was understood, or says nothing.
    fn take(&mut self, text: &str) -> bool {
        if let Some((bucket, rest)) = text.split_once('|') {
            // DTrace draws its own histograms.
            self.is_quantized = true;
            let bucket = bucket.trim();
            let count = rest.split_whitespace().next_back().and_then(whole_number);
            return match (whole_number(bucket), count) {
                (Some(bucket), Some(count)) => self.count(bucket, count),
                // `< 0` and negative values: no time is that short.
                (None, Some(0)) => true,
                // SystemTap draws its headings so.
                (None, None) => bucket == "value",
                _ => false,
            };
        }
        let (name, value) = text.split_once(',').unwrap_or((text, ""));
        let (name, value) = (name.trim(), value.trim());
        match name {
            "timestamp" => {
                let mut fields = value.splitn(3, ',').map(str::trim);
                let scale = match fields.next() {
                    Some("nanosec") => 1e-3,
                    Some("millisec") => 1e3,
                    Some("sec") => 1e6,
                    _ => 1.0,
                };
                let at = fields.next().and_then(super::numbers::number);
                self.at_us = at.and_then(|at| super::draft::whole(at * scale));
                let written = fields.next().and_then(oracle_time::began);
                self.began = self.at_us.and_then(since_1970).or(written);
                true
            }
            "label" => {
                value.clone_into(&mut self.label);
                true
            }
            "latencyunit" => {
                self.unit = value.to_ascii_lowercase();
                true
            }
            "datasource" => {
                self.source = value.to_ascii_lowercase();
                true
            }
            name if name.starts_with(|c: char| c.is_ascii_digit()) => match (whole_number(name), whole_number(value)) {
                (Some(bucket), Some(count)) => self.count(bucket, count),
                _ => false,
            },
            _ => true,
        }
    }

    fn count(&mut self, bucket: u64, count: u64) -> bool {
        let sum = self.counts.entry(bucket).or_default();
        *sum = sum.saturating_add(count);
        let times = self.times.entry(bucket).or_default();
        *times += 1;
        self.instances = self.instances.max(*times);
        true
    }

    /// Whether buckets are named by their lower edges.
    fn has_lower_edges(&self) -> bool {
        let words = format!("{} {}", self.source, self.label.to_ascii_lowercase());
        let is_tracing = ["dtrace", "systemtap", "stap", "bpf", "bcc"].iter().any(|tool| words.contains(tool));
        self.source != "oracle" && (is_tracing || self.is_quantized)
    }

    fn reported_bucket(&self, bucket: u64, count: u64) -> Option<ReportedBucket> {
        let (unit_ns, overflow) = match self.unit.as_str() {
            unit if unit.starts_with("nano") => (1, u64::MAX),
            unit if unit.starts_with("micro") => (1_000, 4_294_967_295),
            unit if unit.starts_with("milli") => (1_000_000, 4_194_304),
            _ => return None,
        };
        let (from_ns, to_ns) = if self.has_lower_edges() {
            let to = bucket.max(1).checked_mul(if bucket == 0 { 1 } else { 2 })?;
            (bucket.checked_mul(unit_ns)?, to.checked_mul(unit_ns))
        } else {
            edges_ns(bucket, unit_ns, overflow)?
        };
        Some(ReportedBucket { from_ns, to_ns, count })
    }

    fn histogram(&self, counts: &BTreeMap<u64, u64>) -> Histogram {
        Histogram::reported(
            counts.iter().filter_map(|(bucket, count)| self.reported_bucket(*bucket, *count)),
            None,
            None,
            None,
        )
    }
}

impl Series {
    fn add(&mut self, record: Record) {
        self.records += 1;
        if self.records == 1 {
            (self.first, self.last) = (record.clone(), record);
            return;
        }
        let last = std::mem::replace(&mut self.last, record);
        let record = &self.last;
        let elapsed_us = match (last.at_us, record.at_us) {
            (Some(before), Some(now)) if now >= before => now - before,
            // Since midnight.
            (Some(before), Some(now)) if before < DAY_US => now + DAY_US - before,
            _ => 0,
        };
        let (offset_ns, duration_ns) = (self.elapsed_ns, elapsed_us.saturating_mul(1_000));
        self.elapsed_ns = self.elapsed_ns.saturating_add(duration_ns);
        let line = record.line;
        let mut left_out = |why: &str| {
            if self.notes.len() < 20 {
                self.notes.push(format!("what came before the record at line {line} is left out: {why}"));
            }
        };
        if record.instances != last.instances {
            return left_out("the number of instances is another");
        }
        let falls = |(bucket, count): (&u64, &u64)| record.counts.get(bucket).copied().unwrap_or(0) < *count;
        if last.counts.iter().any(falls) {
            return left_out("counts fall, so an instance was restarted");
        }
        let more = |(bucket, count): (&u64, &u64)| {
            (*bucket, count.saturating_sub(last.counts.get(bucket).copied().unwrap_or(0)))
        };
        let counts = record.counts.iter().map(more).collect();
        self.intervals.push((offset_ns, duration_ns, counts));
    }

    fn draft(self) -> Option<Draft> {
        let Self { first, records, intervals, elapsed_ns, notes, .. } = self;
        let is_tracing = first.has_lower_edges();
        let event = match first.label.split(" latency").next().unwrap_or_default().trim() {
            "" => "event that the records do not name".to_owned(),
            event => event.to_owned(),
        };
        let mut draft =
            Draft::new(if is_tracing { Workload::Io } else { Workload::Database }, "PyLatencyMap", first.label.clone());
        draft.began = first.began;
        draft.notes = notes;
        if !is_tracing {
            draft.target = Target { kind: "oracle".to_owned(), ..Target::default() };
        }
        if first.source.is_empty() && !is_tracing {
            draft.notes.push(
                "The records do not say where they come from; their buckets are taken for Oracle's, upper edges."
                    .into(),
            );
        }
        if first.instances > 1 {
            draft.notes.push(format!("A record has {} instances; they are added up.", first.instances));
            draft.target.facts.insert("instances".to_owned(), first.instances.to_string());
        }
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        let mut sum = |more: &BTreeMap<u64, u64>| {
            for (bucket, count) in more {
                let sum = counts.entry(*bucket).or_default();
                *sum = sum.saturating_add(*count);
            }
        };
        if records == 1 {
            draft.notes.push(
                "there is one record: its counts go up from when the counters began, so there are no rates".into(),
            );
            sum(&first.counts);
        } else {
            intervals.iter().for_each(|(_, _, counts)| sum(counts));
        }
        if let Some(bucket) = counts.keys().find(|bucket| first.reported_bucket(**bucket, 1).is_none()) {
            draft.notes.push(format!("buckets such as {bucket} are left out: they are no powers of two"));
        }
        let waits = first.histogram(&counts);
        if waits.count() == 0 {
            return None;
        }
        let mut step = step(0, "records", elapsed_ns);
        step.intervals = intervals
            .iter()
            .map(|(offset_ns, duration_ns, counts)| Interval {
                offset_ns: *offset_ns,
                duration_ns: *duration_ns,
                waits: [(event.clone(), first.histogram(counts))].into(),
                ..Interval::default()
            })
            .collect();
        let (class, foreground) = if is_tracing { ("", true) } else { kind_of_event(&event) };
        let label = first.label.to_ascii_lowercase();
        let is_device = ["biolatency", "block i/o", "block io"].iter().any(|word| label.contains(word));
        let layer = match (is_tracing, is_device) {
            (false, _) => "engine",
            (true, true) => "device",
            (true, false) => "OS file",
        };
        let (class, layer) = (class.to_owned(), layer.to_owned());
        step.waits.push(WaitStats { event, class, layer, foreground, waits, reported: Vec::new() });
        draft.steps.push(step);
        Some(draft)
    }
}

#[cfg(test)]
mod tests;
