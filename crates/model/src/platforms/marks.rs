//! Rates that volumes are limited to, to say what a measured cap looks like: not to prove it.

use std::sync::LazyLock;

use super::catalogue::Catalogue;
use super::entry::VolumeKind;

/// Share of a flow's limit that headers take at an MTU of 1500 with IPv6 and all options, and what measuring may be off by.
const HEADERS: f64 = 0.08;
const OFF: f64 = 0.01;

/// Rates that some volumes of the built-in catalogue are limited to, each once, with what they are.
type Marks = LazyLock<Vec<(f64, String)>>;

static REQUESTS: Marks = LazyLock::new(|| marks(false));
static BYTES: Marks = LazyLock::new(|| marks(true));

fn marks(is_bytes: bool) -> Vec<(f64, String)> {
    let mut marks: Vec<(f64, Vec<String>)> = Vec::new();
    for (rate, words) in Catalogue::built_in().volumes().iter().flat_map(|kind| of(kind, is_bytes)) {
        match marks.iter_mut().find(|(known, _)| *known == rate) {
            Some((_, known)) if known.contains(&words) => {}
            Some((_, known)) => known.push(words),
            None => marks.push((rate, vec![words])),
        }
    }
    let words = |mut words: Vec<String>| {
        // What a volume has by itself comes before the largest of a kind and before bursts.
        words.sort_by_key(|words| words.starts_with("the "));
        joined(&words)
    };
    marks.into_iter().map(|(rate, of)| (rate, words(of))).collect()
}

/// What volumes of the built-in catalogue are limited to `per_s`, if some are within a share `tolerance`: requests per second, or bytes
/// per second where `is_bytes`. The nearest counts.
pub fn like(is_bytes: bool, per_s: f64, tolerance: f64) -> Option<&'static str> {
    let marks: &'static [(f64, String)] = if is_bytes { &BYTES } else { &REQUESTS };
    let distance = |mark: f64| (per_s / mark - 1.0).abs();
    let (mark, words) = marks.iter().min_by(|a, b| distance(a.0).total_cmp(&distance(b.0)))?;
    (distance(*mark) <= tolerance).then_some(words.as_str())
}

/// Rates of a kind that a cap may be at, with what they are: that of its one size, what is included, the most, and bursts.
fn of(kind: &VolumeKind, is_bytes: bool) -> Vec<(f64, String)> {
    let name = format!("{} {}", kind.cloud, kind.name.trim_start_matches(&format!("{} ", kind.cloud)));
    let in_bytes = |rate: f64| if is_bytes { kind.unit.in_megabytes(rate) * 1e6 } else { rate };
    let mut marks = Vec::new();
    let mut add = |rate: Option<f64>, words: String| marks.extend(rate.map(|rate| (in_bytes(rate), words)));
    let rule = if is_bytes { &kind.throughput } else { &kind.iops };
    if let Some(rule) = rule {
        add(rule.fixed, name.clone());
        add(rule.included, name.clone());
        add(rule.max, format!("the largest {name}"));
        for (index, (size, rate)) in rule.up_to.iter().enumerate() {
            let words = match index.checked_sub(1).and_then(|before| rule.up_to.get(before)) {
                None => format!("{name} up to {size} GiB"),
                Some((before, _)) => format!("{name} above {before} GiB"),
            };
            add(Some(*rate), words);
        }
    }
    // Bursts of all sizes of one kind are one.
    let of_kind = format!("{} {}", kind.cloud, kind.kind);
    if let Some(burst) = &kind.burst {
        let rule = if is_bytes { &burst.throughput } else { &burst.iops };
        add(rule.as_ref().and_then(|rule| rule.fixed.or(rule.max)), format!("the burst of {of_kind}"));
    }
    if let Some(burst) = kind.on_demand_burst {
        add(Some(if is_bytes { burst.throughput } else { burst.iops }), format!("the on-demand burst of {of_kind}"));
    }
    marks
}

/// `Azure P40 and P50`: of names in a row that begin with the same cloud, it stands once.
fn joined(words: &[String]) -> String {
    let mut text = String::new();
    for (index, word) in words.iter().enumerate() {
        let cloud = |word: &str| word.split_once(' ').map(|(cloud, rest)| (cloud.to_owned(), rest.to_owned()));
        let before = index.checked_sub(1).and_then(|before| cloud(&words[before]));
        let own = match (before, cloud(word)) {
            (Some((before, _)), Some((cloud, rest))) if before == cloud && cloud != "the" => rest,
            _ => word.clone(),
        };
        let between = match index {
            0 => "",
            _ if index + 1 == words.len() => " and ",
            _ => ", ",
        };
        text.push_str(between);
        text.push_str(&own);
    }
    text
}

/// Whose published limit of a flow this rate is at, on a machine whose firmware calls itself so: gigabits per second, and of what.
pub fn flow_like(machine: Option<&str>, bits_per_s: f64) -> Option<(f64, &'static str)> {
    let machine = machine?;
    let is_near = |limit: f64| (limit * (1.0 - HEADERS)..=limit * (1.0 + OFF)).contains(&(bits_per_s / 1e9));
    let mut flows = Catalogue::built_in().flows().iter();
    let flow = flows.find(|flow| machine.contains(&flow.firmware) && is_near(flow.gbit_per_s))?;
    Some((flow.gbit_per_s, flow.what.as_str()))
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
        let requests = |per_s| like(false, per_s, 0.01);
        let bytes = |per_s| like(true, per_s, 0.01);
        assert_eq!(requests(5_020.0), Some("Azure P30"));
        assert_eq!(requests(5_100.0), None);
        assert_eq!(requests(7_500.0), Some("Azure P40 and P50"));
        assert_eq!(requests(3_000.0), Some("Azure Premium SSD v2, AWS gp3 and the burst of AWS gp2"));
        assert_eq!(requests(3_500.0), Some("the burst of Azure Premium SSD"));
        assert_eq!(requests(30_000.0), Some("the on-demand burst of Azure Premium SSD"));
        assert_eq!(bytes(131.5e6), Some("AWS gp3"));
        assert_eq!(bytes(134.0e6), Some("AWS gp2 up to 170 GiB"));
    }
}
