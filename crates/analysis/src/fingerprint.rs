//! The fingerprint of a limiter: seconds in which the rate is the same to within a few requests.
//!
//! Nothing that moves a head, reads flash or crosses a network is so even. A limiter counts, and lets the same number
//! through in each second; what disturbs it makes single seconds smaller, and the next ones larger by no more than what
//! was owed. So the fingerprint is a sharp upper edge that many seconds touch, however many lie below it.
//!
//! *How probable is it by chance?* The most even device that is thought of serves requests whose times stray by a quarter of
//! their mean, independently: by the theory of renewals its count in a second strays by a quarter of the square root of the
//! count. In practice nothing is more even than 0.2 %, and disks measured stray by percents. The chance that so many of so many
//! seconds of such a device fall into a window as narrow is a tail of the binomial distribution, times the number of places
//! where the window could have been.

use super::seconds::{LeftOut, Seconds};

/// Half the width of the window: this many requests, or this share of the rate.
const NEAR_REQUESTS: f64 = 1.0;
const NEAR: f64 = 0.000_2;
/// How the most even device strays: this much of the square root of a second's count, at least this share of it.
const EVEN_SERVICE: f64 = 0.25;
const EVEN_DEVICE: f64 = 0.002;
/// A step shows the edge with at least this many seconds, and this share of those in which nobody else was at work.
const MIN_EXACT: usize = 2;
const MIN_SHARE: f64 = 0.4;
/// Of the densest windows, so many are looked at.
const CANDIDATES: usize = 6;
/// Share of all seconds that may lie above the edge without anything being owed, for the odd burst of a bucket.
const MAX_ABOVE: f64 = 0.1;
/// What is owed is known to this share of a second's requests: a limiter that works in slices owes up to a slice more.
const SLICE: f64 = 0.1;

/// Rates this near to an edge lie on it.
pub(super) fn half_width(per_s: f64) -> f64 {
    NEAR_REQUESTS.max(NEAR * per_s)
}

/// A sharp upper edge of the seconds of several steps.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Edge {
    /// Where it is.
    pub(super) per_s: f64,
    /// Places, among the steps, of those that show it by more than a single second.
    pub(super) steps: Vec<usize>,
    /// Seconds that lie on it.
    pub(super) exact: usize,
    /// Chance that the most even device shows as many on such an edge; an upper bound.
    pub(super) chance: f64,
    /// How many seconds the steps have of which any lie on it, and how many of them lie elsewhere.
    pub(super) left_out: LeftOut,
}

/// How the seconds of one step lie to an edge.
#[derive(Debug, Clone, Copy, Default)]
struct Lie {
    exact: usize,
    /// Sum of those.
    exact_per_s: f64,
    /// Elsewhere, though neither one of two or three that are on it together, nor one in which requests that were owed came
    /// through, nor near others' work on the device: such seconds say nothing.
    off: usize,
    /// Above it without being owed.
    above: usize,
    disturbed: usize,
    by_others: usize,
}

fn lie(seconds: &Seconds, edge: f64) -> Lie {
    let near = half_width(edge);
    let mut lie = Lie::default();
    // What the limiter did not give yet, in requests.
    let owe = |owed: f64, rate: f64| (owed + edge - rate).max(0.0);
    let mut owed = seconds.warmup_per_s.iter().fold(0.0, |owed, rate| owe(owed, *rate));
    let rates = &seconds.per_s;
    let mut at = 0;
    while at < rates.len() {
        // At the edges of seconds a slice's requests may fall into the one or the other: then the sum is what is let through.
        let on_edge = |length: &usize| {
            let sum: f64 = rates.get(at..at + length).map_or(f64::MAX, |few| few.iter().sum());
            (sum - *length as f64 * edge).abs() <= near * (*length as f64).sqrt()
        };
        let length = (1..=3).find(on_edge);
        for (second, rate) in rates.iter().copied().enumerate().skip(at).take(length.unwrap_or(1)) {
            let with_others = seconds.is_near_others(second);
            if length == Some(1) {
                lie.exact += 1;
                lie.exact_per_s += rate;
            } else {
                lie.disturbed += 1;
                lie.by_others += usize::from(with_others);
            }
            if length.is_none() && rate > edge {
                let is_owed = owed > near && rate - edge <= owed + SLICE * edge;
                lie.above += usize::from(!is_owed);
                lie.off += usize::from(!is_owed);
            } else if length.is_none() {
                lie.off += usize::from(!with_others);
            }
            owed = owe(owed, rate);
        }
        at += length.unwrap_or(1);
    }
    lie
}

/// The most telling edge that seconds of `steps` lie on, if any do; its chance is for the caller to judge.
pub(super) fn find(steps: &[Seconds]) -> Option<Edge> {
    let mut rates: Vec<f64> = steps.iter().flat_map(|step| step.per_s.iter().copied()).collect();
    rates.sort_by(f64::total_cmp);
    let edges = densest(&rates).into_iter().filter_map(|edge| judge(steps, edge, rates.len()));
    edges.min_by(|left, right| left.chance.total_cmp(&right.chance))
}

/// The middles of the windows that most values lie in, none in another.
fn densest(sorted: &[f64]) -> Vec<f64> {
    let mut windows: Vec<(usize, f64)> = Vec::new();
    let mut from = 0;
    for (to, high) in sorted.iter().enumerate() {
        while high - sorted[from] > 2.0 * half_width(*high) {
            from += 1;
        }
        // The values that most are equal to, rather than the middle between the outermost: one slice's rest is no middle.
        windows.push((to + 1 - from, sorted[from.midpoint(to)]));
    }
    windows.sort_by(|left, right| right.0.cmp(&left.0).then(right.1.total_cmp(&left.1)));
    let mut chosen: Vec<f64> = Vec::new();
    for (count, edge) in windows {
        if count < MIN_EXACT || chosen.len() == CANDIDATES {
            break;
        }
        if edge > 0.0 && chosen.iter().all(|other| (other - edge).abs() > 2.0 * half_width(edge)) {
            chosen.push(edge);
        }
    }
    chosen
}

fn judge(steps: &[Seconds], edge: f64, places: usize) -> Option<Edge> {
    let lies: Vec<Lie> = steps.iter().map(|step| lie(step, edge)).collect();
    let above: usize = lies.iter().map(|lie| lie.above).sum();
    let touches =
        |lie: &Lie| lie.exact > 0 && lie.exact as f64 >= MIN_SHARE * (lie.exact + lie.disturbed - lie.by_others) as f64;
    let showing: Vec<usize> =
        (0..lies.len()).filter(|at| touches(&lies[*at]) && lies[*at].exact >= MIN_EXACT).collect();
    if showing.is_empty() || above as f64 > MAX_ABOVE * places as f64 {
        return None;
    }
    let mut left_out = LeftOut::default();
    let (mut exact, mut off, mut exact_per_s) = (0, 0, 0.0);
    for (step, lie) in steps.iter().zip(&lies).filter(|(_, lie)| touches(lie)) {
        (exact, off, exact_per_s) = (exact + lie.exact, off + lie.off, exact_per_s + lie.exact_per_s);
        left_out.add(LeftOut { seconds: step.per_s.len(), disturbed: lie.disturbed, by_others: lie.by_others });
    }
    let deviation = (EVEN_SERVICE * edge.sqrt()).max(EVEN_DEVICE * edge);
    let share = ((2.0 * half_width(edge) + 1.0) / (deviation * std::f64::consts::TAU.sqrt())).min(1.0);
    let chance = places as f64 * binomial_tail(exact + off - 1, exact - 1, share);
    Some(Edge { per_s: exact_per_s / exact as f64, steps: showing, exact, chance: chance.min(1.0), left_out })
}

/// The chance that of `n` trials, each with the chance `p`, at least `k` succeed.
fn binomial_tail(n: usize, k: usize, p: f64) -> f64 {
    if k == 0 || p >= 1.0 {
        return 1.0;
    }
    // The logarithm of each term from the one before: factorials of an hour's seconds are beyond floating point.
    let odds = p.ln() - (1.0 - p).ln();
    let mut term = n as f64 * (1.0 - p).ln();
    let mut tail = 0.0;
    for i in 0..=n {
        if i >= k {
            tail += term.exp();
        }
        term += ((n - i) as f64).ln() - ((i + 1) as f64).ln() + odds;
    }
    tail
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(rates: &[&[f64]]) -> Vec<Seconds> {
        rates.iter().map(|per_s| Seconds { per_s: per_s.to_vec(), ..Seconds::default() }).collect()
    }

    #[test]
    fn the_tail_of_the_binomial_distribution_is_that_of_the_tables() {
        for (n, k, p, tail) in
            [(10, 8, 0.5, 0.054_687_5), (5, 5, 0.1, 1e-5), (20, 1, 0.1, 0.878_423_3), (7, 0, 0.3, 1.0)]
        {
            assert!((binomial_tail(n, k, p) - tail).abs() < 1e-6, "{n} {k} {p}");
        }
        assert!(binomial_tail(100_000, 50_000, 0.1) < 1e-100);
    }

    #[test]
    fn seconds_below_an_edge_and_what_is_caught_up_do_not_count_against_it() {
        let found = find(&steps(&[
            &[14_974.0, 17_391.0, 14_145.0, 13_777.0, 15_572.0, 11_801.0],
            &[11_579.0, 16_903.0, 15_952.0, 12_321.0, 17_288.0, 16_000.0],
            &[16_000.0, 16_000.0, 14_518.0, 16_878.0, 16_000.0, 16_000.0],
        ]))
        .unwrap();
        assert_eq!((found.per_s, found.exact, found.steps.as_slice()), (16_000.0, 4, [2].as_slice()));
        assert!((1e-4..0.1).contains(&found.chance), "{found:?}");
        assert_eq!(found.left_out, LeftOut { seconds: 6, disturbed: 2, by_others: 0 });
    }

    #[test]
    fn what_falls_into_the_next_second_is_no_evidence_either_way() {
        let even = find(&steps(&[&[5_000.0; 6]])).unwrap();
        let slices =
            find(&steps(&[&[5_000.0, 5_000.0, 4_500.0, 5_500.0, 5_000.0, 5_000.0, 5_000.0, 5_000.0]])).unwrap();
        assert_eq!((even.exact, slices.exact), (6, 6));
        assert!(slices.chance < 2.0 * even.chance && even.chance < 1e-4, "{even:?} {slices:?}");
    }

    #[test]
    fn seconds_above_refute_an_edge() {
        let above: Vec<f64> =
            (0..12).map(|second| if second % 3 == 0 { 5_000.0 } else { 7_000.0 + 40.0 * f64::from(second) }).collect();
        assert_eq!(find(&steps(&[&above])), None);
    }
}
