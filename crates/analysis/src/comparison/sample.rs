//! A figure of one side, and how much it would scatter if it were measured again.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::scatter::Scatter;
use model::record::Histogram;

/// Quantiles are read from buckets that are at most this wide, as a share.
pub(super) const BUCKET: f64 = 0.008;

/// A figure with its scatter.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    /// The figure as reports have it.
    pub(super) value: f64,
    spread: Spread,
    /// How finely the figure is known even without scatter, in its logarithm.
    resolution: f64,
}

#[derive(Debug, Clone)]
enum Spread {
    /// The scatter of the logarithm.
    Even(Scatter),
    /// The scatter of the share (as its logit) of durations that the quantile leaves below it.
    Quantile { share: f64, scatter: Scatter, curve: Rc<Curve> },
    /// Every value was zero.
    None,
}

impl Sample {
    /// A rate or a mean: what is counted in each second over what it is divided by, such as operations and nanoseconds.
    /// `value` is the figure of the whole, `resolution` the share of it that one count is. Absent with fewer than eight
    /// seconds, or where nothing is divided by.
    ///
    /// The variance of the ratio of two sums is that of the mean of `above - ratio * below` (the linearisation of survey
    /// statistics), so that seconds weigh by what happened in them, and empty ones are no trouble.
    pub(super) fn of_ratio(value: f64, seconds: &[(f64, f64)], resolution: f64) -> Option<Self> {
        let (above, below) =
            seconds.iter().fold((0.0, 0.0), |(above, below), second| (above + second.0, below + second.1));
        let residuals =
            |ratio: f64| -> Vec<f64> { seconds.iter().map(|(above, below)| above - ratio * below).collect() };
        if below <= 0.0 {
            return None;
        }
        let scatter = Scatter::of_series(&residuals(above / below))?;
        if above <= 0.0 || value <= 0.0 {
            return (value == 0.0).then_some(Self { value, spread: Spread::None, resolution: 0.0 });
        }
        let mean = above / seconds.len() as f64;
        let variance = scatter.variance / (mean * mean);
        Some(Self { value, spread: Spread::Even(Scatter { variance, ..scatter }), resolution })
    }

    /// A quantile of the durations of seconds: what Woodruff (1952) found for samples that are no simple draw. The share
    /// of durations below the quantile is a ratio of two sums and has an interval; the quantiles at the ends of that
    /// interval are the ends of the interval of the quantile. Shares near one are kept below it by their logit. Absent
    /// with fewer than eight seconds.
    pub(super) fn of_quantile(value: f64, seconds: &Durations, quantile: f64) -> Option<Self> {
        let (index, part) = seconds.curve.place(quantile);
        let (_, highest, _) = seconds.curve.buckets[index];
        let residual = |second: &Vec<Bucket>| {
            let place = second.partition_point(|(_, top, _)| *top < highest);
            let whole: u64 = second[..place].iter().map(|(.., count)| count).sum();
            let rest: u64 = second[place..].iter().map(|(.., count)| count).sum();
            let edge = second.get(place).filter(|(_, top, _)| *top == highest).map_or(0, |(.., count)| *count);
            whole as f64 + part * edge as f64 - quantile * (whole + rest) as f64
        };
        let scatter = Scatter::of_series(&seconds.seconds.iter().map(residual).collect::<Vec<f64>>())?;
        let mean = seconds.curve.count / seconds.seconds.len() as f64;
        let slope = quantile * (1.0 - quantile);
        let variance = scatter.variance / (mean * mean) / (slope * slope);
        let curve = Rc::clone(&seconds.curve);
        let spread = Spread::Quantile { share: quantile, scatter: Scatter { variance, ..scatter }, curve };
        Some(Self { value, spread, resolution: BUCKET })
    }

    /// Repeats of a figure that is above zero; their geometric mean is the figure.
    pub(super) fn of_repeats(values: &[f64], resolution: f64) -> Option<Self> {
        let logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
        let scatter = Scatter::of_repeats(&logarithms)?;
        let mean = logarithms.iter().sum::<f64>() / logarithms.len() as f64;
        Some(Self { value: mean.exp(), spread: Spread::Even(scatter), resolution })
    }

    /// Whether every value was zero.
    pub(super) fn is_nothing(&self) -> bool {
        matches!(self.spread, Spread::None)
    }

    pub(super) fn resolution(&self) -> f64 {
        self.resolution
    }

    /// Degrees of freedom of the scatter.
    pub(super) fn freedom(&self) -> f64 {
        match &self.spread {
            Spread::Even(scatter) | Spread::Quantile { scatter, .. } => scatter.freedom,
            Spread::None => 1.0,
        }
    }

    /// Variance of the logarithm of the figure.
    pub(super) fn variance(&self) -> f64 {
        match &self.spread {
            Spread::Even(scatter) => scatter.variance,
            Spread::Quantile { .. } => {
                let (down, up) = self.reach(1.0);
                ((down + up) / 2.0).powi(2)
            }
            Spread::None => 0.0,
        }
    }

    /// How far the logarithm of the figure may lie below and above, `errors` standard errors away.
    pub(super) fn reach(&self, errors: f64) -> (f64, f64) {
        match &self.spread {
            Spread::Even(scatter) => {
                let away = errors * scatter.variance.sqrt();
                (away, away)
            }
            Spread::Quantile { share, scatter, curve } => {
                let (logit, away) = ((share / (1.0 - share)).ln(), errors * scatter.variance.sqrt());
                let at = |logit: f64| curve.at(1.0 / (1.0 + (-logit).exp())).ln();
                let middle = at(logit);
                ((middle - at(logit - away)).max(0.0), (at(logit + away) - middle).max(0.0))
            }
            Spread::None => (0.0, 0.0),
        }
    }
}

/// Lowest and highest duration of a bucket, and how many durations are in it.
type Bucket = (u64, u64, u64);

/// Durations of many seconds, read once for all quantiles.
#[derive(Debug, Clone)]
pub(super) struct Durations {
    /// Buckets of each second in rising order; those without durations are left out.
    seconds: Vec<Vec<Bucket>>,
    /// All of them together.
    curve: Rc<Curve>,
}

impl Durations {
    /// Absent without any duration. A second without a histogram has none.
    pub(super) fn of(seconds: &[Option<&Histogram>]) -> Option<Self> {
        let buckets = |second: &Option<&Histogram>| {
            second.map_or_else(
                Vec::new,
                |second| if second.count() > 0 { second.buckets_ns().collect() } else { Vec::new() },
            )
        };
        let seconds: Vec<Vec<Bucket>> = seconds.iter().map(buckets).collect();
        let mut together: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        for (lowest, highest, count) in seconds.iter().flatten() {
            *together.entry((*lowest, *highest)).or_default() += count;
        }
        let mut below = 0.0;
        let buckets = together.into_iter().map(|((lowest, highest), count)| {
            below += count as f64;
            (lowest, highest, below)
        });
        let buckets: Vec<_> = buckets.collect();
        (!buckets.is_empty()).then(|| Self { seconds, curve: Rc::new(Curve { buckets, count: below }) })
    }
}

/// Durations as a rising curve.
#[derive(Debug)]
struct Curve {
    /// Lowest and highest duration of each bucket, and how many durations are in it or below.
    buckets: Vec<(u64, u64, f64)>,
    count: f64,
}

impl Curve {
    /// Index of the bucket in which a share of the durations is reached, and the part of it that belongs to the share.
    fn place(&self, share: f64) -> (usize, f64) {
        let wanted = share.clamp(0.0, 1.0) * self.count;
        let index = self.buckets.partition_point(|(_, _, upto)| *upto < wanted).min(self.buckets.len() - 1);
        let before = index.checked_sub(1).map_or(0.0, |before| self.buckets[before].2);
        let within = self.buckets[index].2 - before;
        (index, if within > 0.0 { ((wanted - before) / within).clamp(0.0, 1.0) } else { 1.0 })
    }

    /// The duration that a share of all does not exceed, with those of one bucket laid evenly over it. At least 1 ns.
    fn at(&self, share: f64) -> f64 {
        let (index, part) = self.place(share);
        let (lowest, highest, _) = self.buckets[index];
        (lowest as f64 + part * (highest - lowest) as f64).max(1.0)
    }
}
