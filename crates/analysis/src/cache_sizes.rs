//! What a buffer cache of another size would have answered.

use super::{Figures, Finding, Message, measured};
use crate::Rule;
use model::record::{CachePoint, Run, Step};
use model::units::{Bytes, group_thousands, percent};

/// Samples below which a curve says nothing: then it may be off by some five points.
const FEWEST_SAMPLES: u64 = 100;
/// Sizes that a sentence names.
const NAMED: usize = 3;
/// A larger cache that answers so little more of the reads is not worth its memory.
const WORTH: f64 = 0.01;
/// The run and its curve may lie so far apart: what chance and the policy of the cache account for.
const AGREES: f64 = 0.05;

/// What a buffer cache of another size would have answered.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct CacheSizes {
    /// The step by which it is known.
    pub step: String,
    /// The cache that there was.
    #[serde(rename = "cache_bytes")]
    pub cache: Bytes,
    /// Share of logical reads that it answered, 0 to 1.
    pub hit_ratio: f64,
    /// What the curve has for it, where it has anything.
    pub expected: Option<f64>,
    /// Larger sizes and their hit ratios, as far as they make a difference.
    pub larger: Vec<(Bytes, f64)>,
    /// The smallest size that would have answered as much, where there is one of half the size or less.
    #[serde(rename = "enough_bytes")]
    pub enough: Option<Bytes>,
    /// Touches by which the curve is known.
    pub samples: u64,
}

pub(super) fn find(run: &Run) -> Option<Finding> {
    let cache = run.target.cache_bytes?;
    let samples = |step: &Step| step.cache_curve.as_ref().map_or(0, |curve| curve.samples);
    let step = measured(run).filter(|step| samples(step) >= FEWEST_SAMPLES).max_by_key(|step| samples(step))?;
    let curve = step.cache_curve.as_ref()?;
    let own = curve.points.iter().find(|point| point.cache_bytes == cache);
    let base = own.map(|point| point.hit_ratio)?;
    let is_round = |point: &&CachePoint| point.cache_bytes.is_power_of_two();
    let mut larger: Vec<(Bytes, f64)> = Vec::new();
    for point in curve.points.iter().filter(is_round).filter(|point| point.cache_bytes > cache) {
        let before = larger.last().map_or(base, |(_, ratio)| *ratio);
        if point.hit_ratio >= before + WORTH {
            larger.push((Bytes(point.cache_bytes), point.hit_ratio));
        }
    }
    larger.truncate(NAMED);
    let enough = curve.points.iter().filter(is_round).find(|point| point.hit_ratio + WORTH > base);
    let enough = enough.map(|point| Bytes(point.cache_bytes)).filter(|bytes| bytes.0 <= cache / 2);
    Some(Finding::CacheSizes(CacheSizes {
        step: step.label.clone(),
        cache: Bytes(cache),
        hit_ratio: Figures(step).hit_ratio()?,
        expected: own.map(|point| point.hit_ratio),
        larger,
        enough,
        samples: curve.samples,
    }))
}

impl CacheSizes {
    /// How far the run lies from its own curve, if that is too far.
    fn apart(&self) -> Option<f64> {
        self.expected.filter(|expected| (expected - self.hit_ratio).abs() > AGREES)
    }
}

impl Message for CacheSizes {
    fn rule(&self) -> Rule {
        Rule::CacheSizes
    }

    fn sentence(&self) -> String {
        let Self { step, cache, samples, .. } = self;
        let each = |(bytes, ratio): &(Bytes, f64)| format!("{} % with {bytes}", percent(*ratio));
        let larger: Vec<String> = self.larger.iter().map(each).collect();
        let mut sentence =
            format!("The buffer cache of {cache} answered {} % of logical reads", percent(self.hit_ratio));
        match (larger.as_slice(), self.enough) {
            ([], Some(enough)) => sentence.push_str(&format!("; {enough} would have answered as many")),
            ([], None) => sentence
                .push_str("; this load was too short to tell what a larger one would answer, or that is not more"),
            (larger, _) => sentence.push_str(&format!("; it would have been {}", larger.join(", "))),
        }
        sentence.push_str(&format!(
            ", by how soon blocks were touched again in {step} ({} samples).",
            group_thousands(*samples as f64)
        ));
        if let Some(expected) = self.apart() {
            sentence.push_str(&format!(
                " By the same measure it should have been {} % with {cache}. The cache was not warm in all of the \
                 window, or the load changed.",
                percent(expected)
            ));
        }
        sentence
    }

    fn advice(&self) -> Option<String> {
        self.apart().map(|_| "Repeat with a longer `--warmup` before you trust the other sizes.".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LatencyTarget, analyse};
    use model::record::{CacheCurve, sample};

    fn found(ratios: &[(u64, f64)], hits: f64) -> Option<CacheSizes> {
        let mut run = sample::sweep(60);
        run.target.cache_bytes = Some(64 << 20);
        let step = run.steps.last_mut().unwrap();
        let logical = step.counters.logical_reads.unwrap();
        step.counters.cache_hits = Some((logical as f64 * hits) as u64);
        let point = |(mib, hit_ratio): &(u64, f64)| CachePoint {
            cache_bytes: mib << 20,
            cache_blocks: mib * 126,
            hit_ratio: *hit_ratio,
        };
        let points = ratios.iter().map(point).collect();
        step.cache_curve = Some(CacheCurve { samples: 5_000, reused: 4_000, points });
        analyse(&run, &LatencyTarget::default()).into_iter().find_map(|finding| match finding {
            Finding::CacheSizes(sizes) => Some(sizes),
            _ => None,
        })
    }

    #[test]
    fn larger_sizes_are_named_as_far_as_they_help() {
        let sizes = found(&[(32, 0.13), (64, 0.25), (96, 0.3), (128, 0.43), (256, 0.61), (512, 0.614)], 0.26).unwrap();
        let sentence = sizes.sentence();
        assert!(sentence.contains("of 64 MiB answered 26.0 %"), "{sentence}");
        assert!(sentence.contains("would have been 43.0 % with 128 MiB, 61.0 % with 256 MiB, by how"), "{sentence}");
        assert!(sizes.advice().is_none());
    }

    #[test]
    fn a_cache_larger_than_it_need_be_is_named() {
        let sentence = found(&[(8, 0.5), (16, 0.995), (64, 1.0), (128, 1.0)], 1.0).unwrap().sentence();
        assert!(sentence.contains("16 MiB would have answered as many"), "{sentence}");
    }

    #[test]
    fn a_run_that_its_own_curve_contradicts_says_so() {
        let sizes = found(&[(64, 0.25), (128, 0.43)], 0.15).unwrap();
        assert!(sizes.sentence().contains("should have been 25.0 %"), "{}", sizes.sentence());
        assert!(sizes.advice().is_some());
    }

    #[test]
    fn a_run_without_a_curve_says_nothing() {
        assert!(find(&sample::sweep(60)).is_none());
    }
}
