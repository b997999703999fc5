//! What `bpftrace` prints, and the difference of two readings of it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::program::Event;
use model::record::TraceStats;

/// The sums since the start at one instant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TraceSample {
    /// The kernel's clock when they were printed.
    pub(super) at_ns: u64,
    sums: BTreeMap<u64, Sums>,
}

/// The sums of one event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Sums {
    bytes: u64,
    total_ns: u64,
    buckets: Vec<u64>,
}

impl TraceSample {
    /// What happened to one event since `earlier`.
    pub(super) fn since(&self, earlier: &Self, event: &Event) -> TraceStats {
        let none = Sums::default();
        let [later, before] = [self, earlier].map(|reading| reading.sums.get(&event.number).unwrap_or(&none));
        let before_in = |bucket: usize| before.buckets.get(bucket).copied().unwrap_or(0);
        // Sums only grow.
        let counts = later.buckets.iter().enumerate().map(|(bucket, count)| count.saturating_sub(before_in(bucket)));
        let mut buckets: Vec<u64> = counts.collect();
        buckets.truncate(buckets.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1));
        TraceStats {
            layer: event.layer.to_owned(),
            event: event.name.clone(),
            device: event.device.clone(),
            elapsed_ns: self.at_ns.saturating_sub(earlier.at_ns),
            count: buckets.iter().sum(),
            counted_by_kernel: None,
            bytes: later.bytes.saturating_sub(before.bytes),
            total_ns: later.total_ns.saturating_sub(before.total_ns),
            buckets,
        }
    }
}

/// Puts readings together from lines.
#[derive(Debug, Default)]
pub(super) struct Reader(Option<TraceSample>);

impl Reader {
    /// Takes the next line; gives a reading when it was the last of one. What is not known is passed over.
    pub(super) fn line(&mut self, line: &str) -> Option<TraceSample> {
        let line: Value = serde_json::from_str(line).ok()?;
        let data = line.get("data")?;
        if line.get("type")?.as_str()? == "printf" {
            let words = data.as_str()?.trim();
            if words == "end" {
                return self.0.take();
            }
            let at_ns = words.strip_prefix("begin ")?.parse().ok()?;
            self.0 = Some(TraceSample { at_ns, sums: BTreeMap::new() });
            return None;
        }
        let sums = &mut self.0.as_mut()?.sums;
        for (map, events) in data.as_object()? {
            for (event, value) in events.as_object().into_iter().flatten() {
                let Ok(event) = event.parse() else { continue };
                let of_event: &mut Sums = sums.entry(event).or_default();
                match map.as_str() {
                    "@us" => of_event.buckets = buckets(value),
                    "@ns" => of_event.total_ns = value.as_u64().unwrap_or(0),
                    "@bytes" => of_event.bytes = value.as_u64().unwrap_or(0),
                    _ => {}
                }
            }
        }
        None
    }
}

/// The counts of a histogram: element `k` those from 2^(k-1) up to 2^k, element 0 those below 1.
fn buckets(histogram: &Value) -> Vec<u64> {
    let mut counts = Vec::new();
    for bucket in histogram.as_array().into_iter().flatten() {
        // Only a bucket below zero has no lower bound, and no time is below zero.
        let number = |name: &str| bucket.get(name).and_then(Value::as_u64);
        let (Some(least), Some(count)) = (number("min"), number("count")) else { continue };
        let element = (u64::BITS - least.leading_zeros()) as usize;
        if counts.len() <= element {
            counts.resize(element + 1, 0);
        }
        counts[element] += count;
    }
    counts
}
