//! Headings of histogram tables: the durations of their columns.

/// More columns than any such table has (22 are known): a longer row is no histogram.
const MAX_BUCKETS: usize = 64;
/// The exponent of the highest edge that is believed: 2^40 us are twelve days.
const HIGHEST: i32 = 40;

/// A duration range of a column: from, and up to or open.
pub(in super::super) type Range = (u64, Option<u64>);

/// Whether a column heading is that of a bucket: `<8us`, `<=1s`, `>=2m`.
pub(in super::super) fn is_bucket(label: &str) -> bool {
    let rest = label.trim().trim_start_matches(['<', '>', '=']).trim_start();
    rest.len() < label.trim().len() && rest.starts_with(|c: char| c.is_ascii_digit())
}

/// Whether a bucket is reported in microseconds. Then all edges of the report are powers of two of these, so that its millisecond
/// is 1,024 us; reports of releases before 12.1.0.2 know milliseconds only, and powers of two of them.
pub(in super::super) fn is_micro(label: &str) -> bool {
    is_bucket(label) && label.trim_end().trim_end_matches('s').ends_with('u')
}

/// The ranges of a table's bucket columns, which cover all durations; nothing if the headings are not understood.
pub(in super::super) fn ranges(labels: &[&str], micro: bool) -> Option<Vec<Range>> {
    if labels.len() < 2 || labels.len() > MAX_BUCKETS {
        return None;
    }
    let (last, below) = labels.split_last()?;
    if !last.trim_start().starts_with('>') {
        return None;
    }
    let candidates: Vec<Vec<i32>> = below.iter().map(|label| exponents(label, micro)).collect();
    let only = |at: usize| candidates.get(at).and_then(|all| if let [one] = all[..] { Some(one) } else { None });
    let mut edges: Vec<i32> = Vec::with_capacity(below.len());
    for (at, all) in candidates.iter().enumerate() {
        let before = edges.last().copied();
        // Headings that were cut (`<512`, `<2m`) mean what makes the next power of two.
        let fits = |edge: &&i32| before.map(|one| one + 1) == Some(**edge) || only(at + 1) == Some(**edge + 1);
        let rises = |edge: &&i32| before.is_none_or(|one| one < **edge);
        let edge = all.iter().filter(rises).find(fits).or_else(|| all.iter().find(rises))?;
        edges.push(*edge);
    }
    let unit_ns: u64 = if micro { 1_000 } else { 1_000_000 };
    let edges: Vec<u64> = edges.into_iter().map(|exponent| unit_ns << exponent).collect();
    let from = std::iter::once(0).chain(edges.iter().copied());
    let to = edges.iter().copied().map(Some).chain([None]);
    Some(from.zip(to).collect())
}

/// The powers of two of the base unit that a heading may mean.
fn exponents(label: &str, micro: bool) -> Vec<i32> {
    let Some(text) = label.trim().strip_prefix('<') else { return Vec::new() };
    let text = text.trim_start_matches('=').trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '/' && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let value: Option<f64> = match number.split_once('/') {
        Some((above, below)) => above.parse::<f64>().ok().zip(below.parse::<f64>().ok()).map(|(a, b)| a / b),
        None => number.parse().ok(),
    };
    let seconds: &[f64] = match unit.trim() {
        "u" | "us" | "usec" => &[1e-6],
        "ms" | "msec" => &[1e-3],
        "s" | "sec" => &[1.0],
        "m" => &[60.0, 1e-3],
        "min" => &[60.0],
        "h" | "hr" => &[3_600.0],
        "" => &[1e-6, 1e-3, 1.0],
        _ => &[],
    };
    let base_s = if micro { 1e-6 } else { 1e-3 };
    let exponent = |unit_s: &f64| {
        let edge = (value? * unit_s / base_s).log2().round();
        (0.0..=f64::from(HIGHEST)).contains(&edge).then_some(edge as i32)
    };
    seconds.iter().filter_map(exponent).collect()
}

/// The durations that the number of waits in a detail table is of: `Waits 64ms to 2s` counts the waits of the columns `<64ms` to
/// `<2s`, those from 32 ms to 2 s. Nothing of the number of all waits, or if the columns do not have these edges.
pub(in super::super) fn counted_range(heading: &str, ranges: &[Range], micro: bool) -> Option<Range> {
    let edges: Vec<u64> = ranges.iter().filter_map(|(_, to)| *to).collect();
    let (first, last) = (*edges.first()?, *edges.last()?);
    let unit_ns: u64 = if micro { 1_000 } else { 1_000_000 };
    let is = |text: &str, edge_ns: u64| {
        exponents(&format!("<{text}"), micro).into_iter().any(|exponent| unit_ns << exponent == edge_ns)
    };
    let words = heading.split(|c: char| c.is_whitespace() || c == '-');
    let mut edge_texts = words.filter(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    let (from, to) = (edge_texts.next()?, edge_texts.next()?);
    let from_ns = match edges.get(1) {
        _ if is(from, first) => 0,
        Some(second) if is(from, *second) => first,
        _ => return None,
    };
    (is(to, last) && from_ns < last).then_some((from_ns, Some(last)))
}
