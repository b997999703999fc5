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

/// Gigabits per second that vendors let one flow have, by what the firmware calls their machines. Of AWS:
/// <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-network-bandwidth.html>, as read in 2026. What is received is less
/// than that by the headers of packets, and never more.
const FLOW_GBIT_PER_S: &[(&str, f64, &str)] = &[
    ("Amazon EC2", 5.0, "one flow between AWS instances that are not in the same cluster placement group"),
    ("Amazon EC2", 10.0, "one flow within a cluster placement group of AWS"),
    ("Amazon EC2", 25.0, "one flow between AWS instances with ENA Express"),
];
/// Share of a flow's limit that headers take at an MTU of 1500 with IPv6 and all options, and what measuring may be off by.
const HEADERS: f64 = 0.08;
const OFF: f64 = 0.01;

/// Whose published limit of a flow this rate is at, on such a machine (`Environment::machine`): gigabits per second, and of what.
pub(super) fn flow_like(machine: Option<&str>, bits_per_s: f64) -> Option<(f64, &'static str)> {
    let machine = machine?;
    let is_near = |limit: f64| (limit * (1.0 - HEADERS)..=limit * (1.0 + OFF)).contains(&(bits_per_s / 1e9));
    let mut limits = FLOW_GBIT_PER_S.iter().filter(|(maker, limit, _)| machine.contains(maker) && is_near(*limit));
    limits.next().map(|(_, limit, what)| (*limit, *what))
}

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
    fn a_flow_is_at_a_limit_of_its_own_vendor_alone() {
        let like = |machine, gbit| flow_like(machine, gbit * 1e9).map(|(limit, _)| limit);
        assert_eq!(like(Some("Amazon EC2 m7i.large"), 4.96), Some(5.0));
        assert_eq!(like(Some("Amazon EC2 m7i.large"), 9.41), Some(10.0));
        assert_eq!(like(Some("Amazon EC2 m7i.large"), 7.0), None);
        assert_eq!(like(Some("Amazon EC2 m7i.large"), 5.2), None);
        assert_eq!(like(Some("Dell Inc. PowerEdge"), 9.41), None);
        assert_eq!(like(None, 4.96), None);
    }

    #[test]
    fn a_rate_is_like_the_nearest_published_cap_or_like_none() {
        assert_eq!(like(Counted::Requests, 5_020.0, 0.01), Some("Azure P30"));
        assert_eq!(like(Counted::Requests, 5_100.0, 0.01), None);
        assert_eq!(like(Counted::Bytes, 131.5e6, 0.01), Some("AWS gp3"));
        assert_eq!(like(Counted::Bytes, 134.0e6, 0.01), Some("AWS gp2 up to 170 GiB"));
    }
}
