//! An IOPS cap distinguished from a throughput cap by steps that differ in their request size.

use crate::Rule;
use std::collections::BTreeMap;

use super::ceiling::is_even;
use super::seconds::Seconds;
use super::series::LOAD_PARAMETERS;
use super::traffic::{operations_are_requests, request_bytes, requests};
use super::{Figures, Message, measured};
use model::record::{Run, Step};
use model::units::{Bytes, group_thousands};

/// Parameters that say how large requests are.
const SIZE_PARAMETERS: [&str; 3] = ["BLOCK_SIZE", "SMALL_SIZE", "LARGE_SIZE"];
/// A rate capped by a counter lies this near the cap, as a share.
const NEAR: f64 = 0.02;
/// How evenly such a rate is held from second to second, and by how many requests in the queue at least; with fewer,
/// latency may be what limits a loop, and hardly differ between sizes.
const EVEN: f64 = 0.015;
const MIN_QUEUE: u32 = 4;
/// Request sizes that caps must explain, and sizes that a cap must limit to be one.
const MIN_SIZES: usize = 3;
const MIN_AT_CAP: usize = 2;

/// Caps that together explain the rates of all request sizes: `rate(size) = min(requests, bytes / size)`.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct SizeLimits {
    /// Labels of the steps, by request size.
    pub steps: Vec<String>,
    /// The request sizes, smallest first, in bytes.
    pub sizes: Vec<u64>,
    /// Requests per second that no size exceeds, if a size reaches them.
    pub requests_per_s: Option<f64>,
    /// Bytes per second that no size exceeds, if a size reaches them.
    pub bytes_per_s: Option<f64>,
}

impl SizeLimits {
    /// Request size from which throughput limits rather than the number of requests, where both caps are seen.
    pub fn break_bytes(&self) -> Option<f64> {
        Some(self.bytes_per_s? / self.requests_per_s?)
    }
}

/// The caps of each group of steps that differ in load and request size only, and show them.
pub(super) fn find(run: &Run) -> Vec<SizeLimits> {
    if !operations_are_requests(run) {
        return Vec::new();
    }
    let mut groups: BTreeMap<Vec<(&str, &str)>, Vec<&Step>> = BTreeMap::new();
    for step in measured(run) {
        let key = step.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let differs = |name: &str| LOAD_PARAMETERS.contains(&name) || SIZE_PARAMETERS.contains(&name);
        groups.entry(key.filter(|(name, _)| !differs(name)).collect()).or_default().push(step);
    }
    groups.values().filter_map(|steps| of_group(run, steps)).collect()
}

fn of_group(run: &Run, steps: &[&Step]) -> Option<SizeLimits> {
    let mut fastest: BTreeMap<u64, (&Step, f64)> = BTreeMap::new();
    let level = |step: &Step| Seconds::of(run, step, requests).level();
    for step in steps {
        let rate = level(step).map(|level| level.per_s).or_else(|| Figures(step).requests_per_s())?;
        let best = fastest.entry(request_bytes(step)?.round() as u64).or_insert((step, rate));
        if rate > best.1 {
            *best = (step, rate);
        }
    }
    let queued =
        |step: &Step| step.load.sessions >= Some(MIN_QUEUE) && level(step).is_some_and(|level| is_even(level, EVEN));
    if !fastest.values().all(|(step, _)| queued(step)) {
        return None;
    }
    let points: Vec<(f64, f64)> = fastest.iter().map(|(size, (_, rate))| (*size as f64, *rate)).collect();
    let (requests_per_s, bytes_per_s) = caps(&points)?;
    Some(SizeLimits {
        steps: fastest.values().map(|(step, _)| step.label.clone()).collect(),
        sizes: fastest.keys().copied().collect(),
        requests_per_s,
        bytes_per_s,
    })
}

/// The caps on requests and on bytes that explain `points` of (size, rate), sizes rising. Of all places where the one
/// may give way to the other, the best explains most sizes by a cap that two of them reach.
fn caps(points: &[(f64, f64)]) -> Option<(Option<f64>, Option<f64>)> {
    if points.len() < MIN_SIZES {
        return None;
    }
    let level = |values: Vec<f64>| {
        let mean = (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp();
        (values.len() >= MIN_AT_CAP && values.iter().all(|value| (value / mean - 1.0).abs() <= NEAR)).then_some(mean)
    };
    (0..=points.len())
        .filter_map(|at| {
            let (small, large) = points.split_at(at);
            let requests = level(small.iter().map(|(_, rate)| *rate).collect());
            let bytes = level(large.iter().map(|(size, rate)| size * rate).collect());
            let explained = requests.map_or(0, |_| small.len()) + bytes.map_or(0, |_| large.len());
            let within = |(size, rate): &(f64, f64)| {
                rate <= &(requests.unwrap_or(f64::MAX) * (1.0 + NEAR))
                    && size * rate <= bytes.unwrap_or(f64::MAX) * (1.0 + NEAR)
            };
            // One size may lie on the way from one cap to the other, or be the only one at its cap.
            (explained >= MIN_SIZES && explained + 1 >= points.len() && points.iter().all(within))
                .then_some((explained, (requests, bytes)))
        })
        .max_by_key(|(explained, _)| *explained)
        .map(|(_, caps)| caps)
}

impl Message for SizeLimits {
    fn rule(&self) -> Rule {
        Rule::CeilingSizes
    }

    fn sentence(&self) -> String {
        let (first, last) = (self.sizes.first().copied().unwrap_or(0), self.sizes.last().copied().unwrap_or(0));
        let range = format!("Over request sizes from {} to {}", Bytes(first), Bytes(last));
        let requests = self.requests_per_s.map(|cap| format!("{} requests/s", group_thousands(cap)));
        let bytes = self.bytes_per_s.map(|cap| format!("{} MB/s", group_thousands(cap / 1e6)));
        match (requests, bytes, self.break_bytes()) {
            (Some(requests), Some(bytes), Some(at)) => format!(
                "{range} storage stops at {requests} or {bytes}, whichever comes first; the one gives way to the other at {:.0} KiB: two limits.",
                at / 1_024.0
            ),
            (Some(requests), _, _) => format!("{range} storage stops at {requests} whatever the size: an IOPS limit."),
            (_, bytes, _) => {
                let bytes = bytes.unwrap_or_else(|| "one throughput".to_owned());
                format!("{range} storage stops at {bytes} whatever the size: a throughput limit.")
            }
        }
    }

    fn advice(&self) -> Option<String> {
        Some(
            "Compare with the limits of the volume and of the machine; two volumes at once show whose they are."
                .to_owned(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: f64 = 1_024.0;

    fn sweep(cap: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        [4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 1_024.0].map(|kib| (kib * KIB, cap(kib * KIB))).to_vec()
    }

    #[test]
    fn both_caps_and_their_break_are_found() {
        let (requests, bytes) = caps(&sweep(|size| f64::min(3_000.0, 131_072_000.0 / size))).unwrap();
        assert!((requests.unwrap() / 3_000.0 - 1.0).abs() < 0.01);
        assert!((bytes.unwrap() / 131_072_000.0 - 1.0).abs() < 0.01);
    }

    #[test]
    fn one_cap_is_reported_where_one_is_seen() {
        assert!(matches!(caps(&sweep(|_| 3_000.0)), Some((Some(_), None))));
        assert!(matches!(caps(&sweep(|size| 2e8 / size)), Some((None, Some(_)))));
    }

    #[test]
    fn a_device_that_serves_larger_requests_gradually_slower_has_no_cap() {
        assert_eq!(caps(&sweep(|size| 16.0 / (80e-6 + size / 2e9))), None);
        assert_eq!(caps(&[(4_096.0, 3_000.0), (8_192.0, 3_000.0)]), None, "two sizes are too few");
    }
}
