//! Caps that cloud vendors publish for single volumes, as of 2025: to say what a measured cap looks like, not to prove it.

use super::traffic::Counted;

const MIB: f64 = 1_048_576.0;

const REQUESTS_PER_S: &[(f64, &str)] = &[
    (500.0, "Azure P10"),
    (1_100.0, "Azure P15"),
    (2_300.0, "Azure P20"),
    (3_000.0, "AWS gp3 and the burst of gp2"),
    (3_500.0, "the burst of Azure Premium SSD up to P20"),
    (5_000.0, "Azure P30"),
    (7_500.0, "Azure P40 and P50"),
    (16_000.0, "the largest AWS gp2 and Azure P60"),
    (18_000.0, "Azure P70"),
    (20_000.0, "Azure P80"),
    (30_000.0, "the on-demand burst of Azure Premium SSD"),
    (64_000.0, "the largest AWS io1"),
    (256_000.0, "the largest AWS io2 Block Express"),
];

const BYTES_PER_S: &[(f64, &str)] = &[
    (100e6, "Azure P10"),
    (125e6, "Azure P15"),
    (125.0 * MIB, "AWS gp3"),
    (128.0 * MIB, "AWS gp2 up to 170 GiB"),
    (150e6, "Azure P20"),
    (170e6, "the burst of Azure Premium SSD up to P20"),
    (200e6, "Azure P30"),
    (250e6, "Azure P40 and P50"),
    (250.0 * MIB, "AWS gp2 from 334 GiB on"),
    (500e6, "Azure P60"),
    (500.0 * MIB, "the burst of AWS st1"),
    (750e6, "Azure P70"),
    (900e6, "Azure P80"),
    (1_000.0 * MIB, "the largest AWS gp3 and io1"),
];

/// Whose published cap lies nearest to `per_s`, if one does within a share `tolerance`.
pub(super) fn like(counted: Counted, per_s: f64, tolerance: f64) -> Option<&'static str> {
    let caps = match counted {
        Counted::Requests => REQUESTS_PER_S,
        Counted::Bytes => BYTES_PER_S,
    };
    let distance = |cap: f64| (per_s / cap - 1.0).abs();
    let nearest = caps.iter().min_by(|left, right| distance(left.0).total_cmp(&distance(right.0)))?;
    (distance(nearest.0) <= tolerance).then_some(nearest.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_like_the_nearest_published_cap_or_like_none() {
        assert_eq!(like(Counted::Requests, 5_020.0, 0.01), Some("Azure P30"));
        assert_eq!(like(Counted::Requests, 5_100.0, 0.01), None);
        assert_eq!(like(Counted::Bytes, 131.5e6, 0.01), Some("AWS gp3"));
        assert_eq!(like(Counted::Bytes, 134.0e6, 0.01), Some("AWS gp2 up to 170 GiB"));
    }
}
