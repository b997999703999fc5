//! Where the level of a series of figures changed, looked for anew after each of them as a pipeline does.
//!
//! A split of the runs since the last change is judged by how far the levels of its two sides lie apart, in standard errors of that
//! distance. How much single runs scatter is read from the runs before the split alone, and from those before earlier changes: a change must
//! not hide in its own noise. Neighbouring runs are alike (a Markov process of the first order): levels are those of least squares after the
//! common part of neighbours was taken away (Cochrane and Orcutt 1949, Prais and Winsten 1954). How much they have in common, a few runs do
//! not say: the least certain of all that is possible counts.
//!
//! A few wild runs are no change. Values are limited to some deviations from the middle, a change needs [`FEWEST_AFTER`] runs, and nearly all
//! runs of a short side must lie beyond half of it.

use crate::comparison::reach_student;
use crate::levels::median;
use std::collections::BTreeMap;

/// Runs before a change, from which their scatter is known well enough.
pub const FEWEST_BEFORE: usize = 12;
/// Runs from a change on.
pub const FEWEST_AFTER: usize = 4;
/// Probability that one look finds one split of runs that are all alike beyond the limit. A history of 100 runs is looked at 85 times at up
/// to 38 splits each, which are much alike: together they find something in about 1 % of such histories (`figures history-made-up`).
const ERROR_RATE: f64 = 0.25e-4;
/// Deviations from the middle to which values are limited: of runs before a split and of many after it, and of few after it.
const LIMITS: [f64; 2] = [3.0, 20.0];
/// Runs that are looked at, at least and at most: what lies further back says nothing more about the level of today.
const MOST: [usize; 2] = [150, 200];
/// Runs after a split up to which each place is looked at, and how far apart they are beyond.
const CLOSELY: usize = 30;
const APART: usize = 5;
/// Runs after a split that are few: so many of them that lie elsewhere by accident would not be noticed in their mean.
const FEW: usize = 15;
/// Of a few runs one in so many may lie on the other side of half the change.
const ASTRAY: usize = 5;
/// Correlations of neighbours that are thought of. Beyond the largest no number of runs would do.
const CORRELATIONS: [f64; 5] = [0.0, 0.2, 0.4, 0.6, 0.8];
/// Standard errors by which the correlation may be larger than it looks: one side of 95 %.
const CORRELATION_REACH: f64 = 1.64;
/// Figures that a line is free to choose, and each step: its level, and its place, which is the best of many.
const FREE_OF_LINE: usize = 2;
const FREE_OF_STEP: usize = 3;
/// Deviations of a normal distribution in one median of absolute deviations.
const DEVIATIONS_OF_MEDIAN: f64 = 1.4826;
/// Deviation that rounding alone may make, of logarithms.
const ROUNDING: f64 = 1e-6;

/// A change of the level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Found {
    /// Index of the first value after the change; of a drift after the half of it that was seen first.
    pub(super) at: usize,
    /// Index of the value at which it was first certain.
    pub(super) seen_at: usize,
    /// Indices of the first value of the level before, and of the first behind the level after.
    pub(super) stretch: [usize; 2],
    /// The level before and after; of a drift at either end of the line.
    pub(super) levels: [f64; 2],
    /// Whether a straight line explains all values of the stretch better than levels do.
    pub(super) is_drift: bool,
}

/// Distances in standard errors beyond which a split is certain, by the values that say how much single ones scatter.
pub(super) struct Limits {
    error_rate: f64,
    known: BTreeMap<u32, f64>,
}

impl Limits {
    /// Of `series` that are looked at together, at least one, a change where there is none is as rare as of one alone.
    pub(super) fn of(series: usize) -> Self {
        Self { error_rate: ERROR_RATE / series.max(1) as f64, known: BTreeMap::new() }
    }

    fn of_freedom(&mut self, freedom: f64) -> f64 {
        let freedom = freedom.clamp(1.0, 1_000.0) as u32;
        // More of them change little.
        let freedom = if freedom < 30 { freedom } else { freedom / 10 * 10 };
        *self.known.entry(freedom).or_insert_with(|| reach_student(self.error_rate, f64::from(freedom)))
    }
}

/// All changes of `values`, which are logarithms of figures in the order in which they were measured. Where changes are never depends on
/// later values; how far they reach does.
pub(super) fn changes(values: &[f64], limits: &mut Limits) -> Vec<Found> {
    let places = places(values, limits);
    let ends = places.iter().skip(1).map(|place| place.at).chain([values.len()]);
    let steps = places.iter().zip(ends).map(|(&Place { from, at, seen_at, is_slope }, end)| {
        let level = |from: usize, to: usize| median(values.get(from..to).unwrap_or_default());
        Found { at, seen_at, stretch: [from, end], levels: [level(from, at), level(at, end)], is_drift: is_slope }
    });
    let steps: Vec<Found> = steps.collect();
    // Steps that go on in one direction may be one drift, and slopes that do are.
    let same_way = |one: &Found, other: &Found| (one.levels[1] > one.levels[0]) == (other.levels[1] > other.levels[0]);
    let mut found = Vec::new();
    for steps in steps.chunk_by(same_way) {
        match drift(values, steps) {
            Some((one, true)) => found.push(one),
            _ => {
                for parts in steps.chunk_by(|one, other| one.is_drift && other.is_drift) {
                    let whole = drift(values, parts).filter(|_| parts.len() > 1).map(|(one, _)| vec![one]);
                    found.extend(whole.unwrap_or_else(|| parts.to_vec()));
                }
            }
        }
    }
    found
}

/// Where a change is, and where it was seen.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// Index of the first value that was looked at.
    from: usize,
    at: usize,
    seen_at: usize,
    /// Whether the values go up or down all along, so that the place is only the middle of them.
    is_slope: bool,
}

fn places(values: &[f64], limits: &mut Limits) -> Vec<Place> {
    let mut found = Vec::new();
    let (mut from, mut earlier, mut sides) = (0, Scatter::default(), Vec::new());
    for seen_at in 0..values.len() {
        if seen_at + 1 - from > MOST[1] {
            (from, sides) = (seen_at + 1 - MOST[0], Vec::new());
        }
        let Some(stretch) = values.get(from..=seen_at) else { break };
        let step = best_split(stretch, &mut sides, earlier, limits);
        let slope = if step.is_none() { slope_of_drift(stretch, limits) } else { None };
        let Some(split) = step.or(slope.map(|_| stretch.len() / 2)) else { continue };
        if let Some(before) = stretch.get(..split) {
            // What a slope is has no part in how much values scatter about it.
            earlier = earlier.with(Side::of(&without(before, slope.unwrap_or_default())).scatter);
        }
        let at = from + split;
        found.push(Place { from, at, seen_at, is_slope: slope.is_some() });
        (from, sides) = (at, Vec::new());
    }
    found
}

/// The number of values before a split of `stretch` whose sides lie certainly apart. Which of all splits it is, is for how little they leave
/// unexplained: of a large change many are certain. `sides` are those before each split, which later looks at the same stretch find again.
fn best_split(stretch: &[f64], sides: &mut Vec<Side>, earlier: Scatter, limits: &mut Limits) -> Option<usize> {
    let most = stretch.len().checked_sub(FEWEST_BEFORE)?;
    for split in FEWEST_BEFORE + sides.len()..=stretch.len().checked_sub(FEWEST_AFTER)? {
        sides.push(Side::of(&stretch[..split]));
    }
    let mut places = (FEWEST_AFTER..=most).filter(|after| *after <= CLOSELY || after.is_multiple_of(APART));
    let is_certain = places.any(|after| {
        let split = stretch.len() - after;
        let side = sides.get(split - FEWEST_BEFORE);
        side.and_then(|side| beyond(side, &stretch[split..], earlier, limits)).is_some_and(|beyond| beyond >= 1.0)
    });
    let left = |split: usize| {
        let (before, after) = stretch.split_at(split);
        [before, after].map(|side| distances(side, median(side)).iter().sum::<f64>()).iter().sum::<f64>()
    };
    let all = FEWEST_BEFORE..=stretch.len() - FEWEST_AFTER;
    if is_certain { all.min_by(|one, other| left(*one).total_cmp(&left(*other))) } else { None }
}

/// How much `stretch` rises from value to value, if it rises or falls all along. A slope that is steep looks like scatter to a split, so that none is found.
///
/// Each pair of runs has a vote (Mann 1945, Kendall 1975), which neighbours that are alike cast alike (Hamed and Rao 1998).
fn slope_of_drift(stretch: &[f64], limits: &mut Limits) -> Option<f64> {
    if stretch.len() < FEWEST_BEFORE + FEWEST_AFTER {
        return None;
    }
    let pairs = || {
        let later = |place: usize| (place + 1..stretch.len()).map(move |at| (place, at));
        (0..stretch.len()).flat_map(later).map(|(place, at)| (stretch[at] - stretch[place], (at - place) as f64))
    };
    let votes = pairs().map(|(rise, _)| if rise == 0.0 { 0.0 } else { rise.signum() }).sum::<f64>();
    let count = stretch.len() as f64;
    let error = (count * (count - 1.0) * (2.0 * count + 5.0) / 18.0).sqrt();
    // Nothing that follows makes it more certain.
    if votes.abs() - 1.0 < error * limits.of_freedom(count) {
        return None;
    }
    let slopes: Vec<f64> = pairs().map(|(rise, apart)| rise / apart).collect();
    let slope = median(&slopes);
    let scatter = Side::of(&without(stretch, slope)).scatter;
    let correlation = scatter.correlation().clamp(0.0, CORRELATIONS[CORRELATIONS.len() - 1]);
    let alike = (1.0 + correlation) / (1.0 - correlation);
    let is_certain = (votes.abs() - 1.0) / (error * alike.sqrt()) >= limits.of_freedom(scatter.freedom / alike);
    is_certain.then_some(slope)
}

fn without(stretch: &[f64], slope: f64) -> Vec<f64> {
    stretch.iter().enumerate().map(|(place, value)| value - slope * place as f64).collect()
}

/// How far the two sides lie apart, in limits: from 1 on it is certain. Absent where a few runs after it do not agree.
fn beyond(before: &Side, after: &[f64], earlier: Scatter, limits: &mut Limits) -> Option<f64> {
    let scatter = earlier.with(before.scatter);
    let is_few = after.len() < FEW;
    let reach = LIMITS[usize::from(is_few)] * scatter.deviation();
    let after: Vec<f64> = after.iter().map(|value| (value - before.middle).clamp(-reach, reach)).collect();
    if is_few {
        let mean_after = mean(after.iter().copied());
        let half = (before.mean + mean_after) / 2.0;
        let is_astray = |value: &&f64| (**value > half) != (mean_after > before.mean);
        if after.iter().filter(is_astray).count() > after.len() / ASTRAY {
            return None;
        }
    }
    let highest = scatter.correlation();
    // The next above the highest bounds all that are possible.
    let possible = CORRELATIONS.iter().position(|one| *one >= highest).unwrap_or(CORRELATIONS.len() - 1);
    let least = (0..=possible).map(|place| before.apart(place, &after, &scatter)).min_by(f64::total_cmp)?;
    Some(least / limits.of_freedom(scatter.freedom))
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len().max(1) as f64;
    values.sum::<f64>() / count
}

fn distances(values: &[f64], middle: f64) -> Vec<f64> {
    values.iter().map(|value| (value - middle).abs()).collect()
}

/// How much values scatter about their levels, added up over stretches of one level.
#[derive(Debug, Clone, Copy, Default)]
struct Scatter {
    /// Sum of squares.
    squares: f64,
    /// Sum of products of neighbours.
    products: f64,
    /// Sum of squares of what is left of values without what they have in common with the one before, for each of [`CORRELATIONS`].
    left: [f64; CORRELATIONS.len()],
    /// Values less one for each stretch.
    freedom: f64,
}

impl Scatter {
    fn with(mut self, other: Self) -> Self {
        self.left.iter_mut().zip(other.left).for_each(|(left, more)| *left += more);
        self.squares += other.squares;
        self.products += other.products;
        self.freedom += other.freedom;
        self
    }

    fn deviation(&self) -> f64 {
        (self.squares / self.freedom.max(1.0)).sqrt().max(ROUNDING)
    }

    /// The upper end of what neighbours may have in common. What a few values show is less than what there is, by one part in their number
    /// and four more of it (Kendall 1954).
    fn correlation(&self) -> f64 {
        let (seen, count) = (self.products / self.squares.max(f64::MIN_POSITIVE), self.freedom + 1.0);
        let likely = seen + (1.0 + 4.0 * seen) / count;
        let error = ((1.0 - likely * likely).max(0.0) / count).sqrt();
        likely + CORRELATION_REACH * error
    }
}

/// Values of one level, relative to their middle.
struct Side {
    middle: f64,
    mean: f64,
    last: f64,
    /// The weight of the level, and the weighed sum of what is left, for each of [`CORRELATIONS`].
    sums: [(f64, f64); CORRELATIONS.len()],
    scatter: Scatter,
}

impl Side {
    fn of(values: &[f64]) -> Self {
        let middle = median(values);
        let distances = distances(values, middle);
        // Of figures that are counted in few steps more than half may be the same: the others are not wild for that.
        let typical = match DEVIATIONS_OF_MEDIAN * median(&distances) {
            0.0 => mean(distances.iter().map(|distance| distance * distance)).sqrt(),
            typical => typical,
        };
        let reach = LIMITS[0] * typical.max(ROUNDING);
        let limited: Vec<f64> = values.iter().map(|value| (value - middle).clamp(-reach, reach)).collect();
        let mean = mean(limited.iter().copied());
        let squares = limited.iter().map(|value| (value - mean).powi(2)).sum();
        let products = limited.windows(2).map(|pair| pair.iter().map(|value| value - mean).product::<f64>()).sum();
        let (mut sums, mut left) = ([(0.0, 0.0); CORRELATIONS.len()], [0.0; CORRELATIONS.len()]);
        for ((correlation, sums), left) in CORRELATIONS.into_iter().zip(&mut sums).zip(&mut left) {
            let first = (1.0 - correlation * correlation).sqrt();
            let terms = || {
                let own = limited.windows(2).map(move |pair| (1.0 - correlation, pair[1] - correlation * pair[0]));
                limited.first().map(|value| (first, first * value)).into_iter().chain(own)
            };
            let add = |(weight, sum), (share, own): (f64, f64)| (weight + share * share, sum + share * own);
            *sums = terms().fold((0.0, 0.0), add);
            let level = sums.1 / sums.0.max(f64::MIN_POSITIVE);
            *left = terms().map(|(share, own)| (own - share * level).powi(2)).sum();
        }
        let scatter = Scatter { squares, products, left, freedom: values.len() as f64 - 1.0 };
        Self { middle, mean, last: limited.last().copied().unwrap_or_default(), sums, scatter }
    }

    /// Distance between this level and that of the values that follow, in standard errors, with the correlation at `place`.
    fn apart(&self, place: usize, after: &[f64], scatter: &Scatter) -> f64 {
        let correlation = CORRELATIONS[place];
        let first = after.first().map_or(0.0, |value| value - correlation * self.last);
        let others = after.windows(2).map(|pair| pair[1] - correlation * pair[0]).sum::<f64>();
        let share = 1.0 - correlation;
        // Normal equations of both levels: the first value after the split has a part of the level before it.
        let (weight, sum) = self.sums[place];
        let (before, after_weight) =
            (weight + correlation * correlation, 1.0 + (after.len() as f64 - 1.0) * share * share);
        let (sum_before, sum_after) = (sum - correlation * first, first + share * others);
        let determinant = before * after_weight - correlation * correlation;
        let levels = [
            (sum_before * after_weight + sum_after * correlation) / determinant,
            (sum_after * before + sum_before * correlation) / determinant,
        ];
        let variance = (scatter.left[place] / scatter.freedom.max(1.0)).max(ROUNDING * ROUNDING);
        let error = (variance * (before + after_weight - 2.0 * correlation) / determinant).sqrt();
        (levels[1] - levels[0]).abs() / error
    }
}

/// Steps as one drift, and whether a straight line explains their stretch better by Schwarz's criterion (1978), which charges each figure that
/// a model is free to choose.
fn drift(values: &[f64], steps: &[Found]) -> Option<(Found, bool)> {
    let (first, last) = (steps.first()?, steps.last()?);
    let stretch = [first.stretch[0], last.stretch[1]];
    let values = values.get(stretch[0]..stretch[1])?;
    let begins = steps.iter().map(|step| step.at - stretch[0]);
    let edges: Vec<usize> = [0].into_iter().chain(begins).chain([values.len()]).collect();
    let of_level = |edge: &[usize]| {
        let level = values.get(edge[0]..edge[1]).unwrap_or_default();
        let middle = median(level);
        squares_about(level, |_| middle)
    };
    let of_steps = edges.windows(2).map(of_level).sum::<f64>();
    let centre = (values.len() as f64 - 1.0) / 2.0;
    let level = mean(values.iter().copied());
    let (mut along, mut across) = (0.0, 0.0);
    for (place, value) in values.iter().enumerate() {
        let place = place as f64 - centre;
        (along, across) = (along + place * place, across + place * (value - level));
    }
    let slope = across / along.max(f64::MIN_POSITIVE);
    let of_line = squares_about(values, |place| level + slope * (place as f64 - centre));
    let count = values.len() as f64;
    let weighed = |left: f64, free: usize| count * left.max(f64::MIN_POSITIVE).ln() + free as f64 * count.ln();
    let is_line = weighed(of_line, FREE_OF_LINE) < weighed(of_steps, 1 + FREE_OF_STEP * steps.len());
    let levels = [level - slope * centre, level + slope * centre];
    Some((Found { stretch, levels, is_drift: true, ..*first }, is_line))
}

fn squares_about(values: &[f64], line: impl Fn(usize) -> f64) -> f64 {
    values.iter().enumerate().map(|(place, value)| (value - line(place)).powi(2)).sum()
}
