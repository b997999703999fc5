//! Records of PyLatencyMap: counters of a latency histogram that are read again and again, of Oracle's wait events or of kernel
//! tracing.
//!
//! Each record has counts since the counters began; what happened between two records is their difference, which becomes an
//! interval. Buckets of Oracle are named by their upper edge, those of tracing by their lower one. Records that do not say where
//! they come from are Oracle's, unless they have the form or the words of a tracing tool. The instances of a cluster follow each
//! other in a record, each beginning with the lowest bucket again, and in any order: only their sum can be followed.

use model::record::{Histogram, Interval, ReportedBucket, Target, TargetKind, WaitStats, Workload};
use std::collections::BTreeMap;

use super::draft::step;
use super::evhist::{edges_ns, kind_of_event};
use super::numbers::whole_number;
use super::spool::clean;
use super::{Began, Draft, ImportError, Notes, Source, oracle_time};

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
        } else {
            match open.as_mut().and_then(|record| record.take(text)) {
                Some(true) => {}
                Some(false) => notes.not_understood(
                    line,
                    format!("`{}`: a bucket and its count were expected", text.chars().take(80).collect::<String>()),
                ),
                None => notes.unknown(line, text),
            }
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
    /// Whether a line was understood; nothing if it is of no known form.
    fn take(&mut self, text: &str) -> Option<bool> {
        if let Some((bucket, rest)) = text.split_once('|') {
            // DTrace draws its own histograms.
            self.is_quantized = true;
            let bucket = bucket.trim();
            let count = rest.split_whitespace().next_back().and_then(whole_number);
            return Some(match (whole_number(bucket), count) {
                (Some(bucket), Some(count)) => self.count(bucket, count),
                // `< 0` and negative values: no time is that short.
                (None, Some(0)) => true,
                // SystemTap draws its headings so.
                (None, None) => bucket == "value",
                _ => false,
            });
        }
        let (name, value) = text.split_once(',').unwrap_or((text, ""));
        let (name, value) = (name.trim(), value.trim());
        let is_understood = match name {
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
            _ => return None,
        };
        Some(is_understood)
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
            draft.target = Target { kind: Some(TargetKind::Oracle), ..Target::default() };
        }
        if first.source.is_empty() && !is_tracing {
            draft.notes.push(
                "The records do not say where they come from; their buckets are taken for Oracle's, upper edges."
                    .into(),
            );
        }
        if first.instances > 1 {
            draft.notes.push(format!("A record has {} instances; they are added up.", first.instances));
            draft.target.facts.other.insert("instances".to_owned(), first.instances.to_string());
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
mod tests {
    use model::record::{Timestamp, Workload};
    use proptest::prelude::*;

    use super::super as import;
    use super::*;
    use crate::specimens::source;

    fn read_all(text: &str) -> (Vec<Draft>, usize) {
        let source = source(text);
        let (importer, drafts, notes) = import::read(&source).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(importer.kind, "pylatencymap");
        (drafts, notes.into_list().len())
    }

    fn record(at_us: u64, unit: &str, lines: &str) -> String {
        format!(
            "<begin record>\ntimestamp, microsec, {at_us},05-MAY-21 11.59.59.000000 PM +01:00\nlabel,log file sync latency data from \
         gv$event_histogram\nlatencyunit, {unit}\n{lines}\n<end record>\n\n9 rows selected.\n\n"
        )
    }

    fn counts(waits: &Histogram) -> Vec<(u64, u64, u64)> {
        let document = serde_json::to_value(waits).unwrap();
        let of = |bucket: &serde_json::Value, key: &str| bucket[key].as_u64().unwrap_or(0);
        let buckets = document["reported"].as_array().unwrap();
        buckets.iter().map(|bucket| (of(bucket, "from_ns"), of(bucket, "to_ns"), of(bucket, "count"))).collect()
    }

    #[test]
    fn what_happened_between_records_is_their_difference_over_both_instances() {
        let text = record(86_399_000_000, "millisec", "1, 100\n2, 50\n1, 10\n2, 5")
            + &record(1_000_000, "millisec", "1, 11\n2, 5\n8, 2\n1, 130\n2, 51")
            + &record(4_000_000, "millisec", "1, 130\n2, 60\n1, 11\n2, 5\n8, 2");
        let (drafts, notes) = read_all(&text);
        let [draft] = drafts.as_slice() else { panic!("{} drafts", drafts.len()) };
        let step = &draft.steps[0];
        assert_eq!((notes, step.window.duration_ns, step.waits[0].event.as_str()), (0, 5_000_000_000, "log file sync"));
        assert_eq!(
            counts(&step.waits[0].waits),
            [(0, 1_000_000, 31), (1_000_000, 2_000_000, 10), (4_000_000, 8_000_000, 2)]
        );
        let intervals: Vec<(u64, u64, u64)> = step
            .intervals
            .iter()
            .map(|one| (one.offset_ns, one.duration_ns, one.waits["log file sync"].count()))
            .collect();
        assert_eq!(intervals, [(0, 2_000_000_000, 34), (2_000_000_000, 3_000_000_000, 9)]);
        assert_eq!(draft.began, Some(Began::Utc("2021-05-05T22:59:59Z".parse().map(Timestamp).unwrap())));
    }

    #[test]
    fn a_restart_leaves_its_interval_out() {
        let text = record(1_000_000, "microsec", "4, 100")
            + &record(2_000_000, "microsec", "4, 7")
            + &record(3_000_000, "microsec", "4, 9");
        let (drafts, _) = read_all(&text);
        assert_eq!(counts(&drafts[0].steps[0].waits[0].waits), [(2_000, 4_000, 2)]);
        assert!(drafts[0].notes.iter().any(|note| note.contains("an instance was restarted")));
    }

    #[test]
    fn tracing_names_buckets_by_their_lower_edges() {
        let with = |source: &str, lines: &str| record(5, "nanosec", &format!("datasource, {source}\n{lines}"));
        let text = with("bpf", "1024, 0\n2048, 7") + &with("bpf", "1024, 3\n2048, 9");
        let (drafts, _) = read_all(&text);
        assert_eq!(counts(&drafts[0].steps[0].waits[0].waits), [(1_024, 2_048, 3), (2_048, 4_096, 2)]);
        assert_eq!((drafts[0].workload, drafts[0].steps[0].waits[0].layer.as_str()), (Workload::Io, "OS file"));
        let drawn =
            |count| format!("   value  ---- Distribution ---- count\n  4096 |@@@@      {count}\n  8192 |          0");
        let text = record(5, "nanosec", &drawn(4)) + &record(9, "nanosec", &drawn(10));
        assert_eq!(counts(&read_all(&text).0[0].steps[0].waits[0].waits), [(4_096, 8_192, 6)]);
    }

    #[test]
    fn a_bucket_that_is_no_power_of_two_is_left_out_and_reported() {
        let (drafts, _) = read_all(&record(1, "millisec", "3, 9\n4, 5"));
        assert_eq!(counts(&drafts[0].steps[0].waits[0].waits), [(2_000_000, 4_000_000, 5)]);
        assert!(drafts[0].notes.iter().any(|note| note.starts_with("buckets such as 3 are left out")));
    }

    #[test]
    fn a_record_that_is_cut_is_left_out_and_reported() {
        let whole = record(1, "millisec", "1, 5");
        let (drafts, notes) = read_all(&format!("{whole}<begin record>\nlabel,log file sync latency\n1, 9\n"));
        assert_eq!((counts(&drafts[0].steps[0].waits[0].waits), notes), (vec![(0, 1_000_000, 5)], 1));
        assert_eq!(drafts[0].steps[0].window.duration_ns, 0);
        assert!(import::read(&source("<begin record>\nlatencyunit, millisec\n1, 2\n")).is_err());
    }

    #[test]
    fn buckets_of_two_instances_may_stand_in_any_order() {
        let text = record(1_000_000, "millisec", "1, 100\n2, 50\n1, 10\n2, 5")
            + &record(2_000_000, "millisec", "2, 6\n1, 120\n2, 50\n1, 10")
            + &record(3_000_000, "millisec", "1, 10\n1, 121\n2, 6\n2, 50");
        let (drafts, _) = read_all(&text);
        assert_eq!(counts(&drafts[0].steps[0].waits[0].waits), [(0, 1_000_000, 21), (1_000_000, 2_000_000, 1)]);
        assert_eq!(drafts[0].steps[0].intervals.len(), 2, "{:?}", drafts[0].notes);
    }

    #[test]
    fn what_systemtap_draws_is_read_with_its_time() {
        let drawn = |at_us: u64, count: u32| {
            format!(
                "<begin record>\ntimestamp, microsec, {at_us}, Thu Jul  2 10:00:00 2015 CEST\n\
             label, Latency of block I/O requests measured with SystemTap\nlatencyunit, microsec\n\
             datasource, systemtap\nvalue |-------------------------------------------------- count\n  \
             32 |                                                    0\n  64 |@@@@            {count}\n      ~\n\n\
             <end record>\n"
            )
        };
        let (drafts, notes) = read_all(&(drawn(1_435_824_000_500_000, 4) + &drawn(1_435_824_003_500_000, 10)));
        assert_eq!((notes, counts(&drafts[0].steps[0].waits[0].waits)), (0, vec![(64_000, 128_000, 6)]));
        assert_eq!(drafts[0].began, Some(Began::Utc("2015-07-02T08:00:00Z".parse().map(Timestamp).unwrap())));
        assert_eq!(drafts[0].steps[0].waits[0].layer, "device");
    }

    proptest! {
        #[test]
        fn nothing_that_is_cut_or_changed_makes_it_fall(from in 0usize..600, length in 0usize..90, byte in 1u8..127, times in 0usize..90) {
            let mut text = record(1, "millisec", "1, 5\n18446744073709551615, 3") + &record(2, "nanosec", "1, 6\n  8192 |@@  7");
            let from = from % text.len();
            let to = (from + length).min(text.len());
            text.replace_range(from..to, &char::from(byte).to_string().repeat(times));
            let source = source(&text);
            let _ = recognises(source.head());
            let _ = read(&source, &mut Notes::new(&source));
        }
    }
}
