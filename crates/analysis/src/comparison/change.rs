//! How one figure changed from one measurement to another: is the difference real, and does it matter?

use std::f64::consts::FRAC_PI_2;

use super::{Compared, ComparedLoad, Durations, Measure, Pair, Sample};
use crate::measured;
use model::record::{Better, Histogram, Run};
use model::units::percent;

/// The share of comparisons of equal things in which some difference is called real.
pub const ERROR_RATE: f64 = 0.05;
/// Intervals that end at more than this change, as a share, bound nothing that anybody asks about: eleven times as much.
pub(super) const MAX_BOUND: f64 = 10.0;

/// What says how much a figure scatters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// Repeats of the load: this many in the baseline, and in the other run. Contains how one repeat differs from the next.
    Repeats(usize, usize),
    /// Seconds inside the windows: this many in the baseline, and in the other run. Contains how seconds differ within
    /// one run, and not how one run differs from the next.
    Seconds(usize, usize),
    /// Nothing: too few repeats and too few seconds, or none were kept.
    Nothing,
}

/// A run against the baseline: the relative change of one figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// The figure of the baseline, above zero.
    pub baseline: f64,
    /// The figure of the other run.
    pub other: f64,
    /// `other / baseline - 1`.
    pub change: f64,
    /// Lower and upper end of the interval of the change; absent where nothing says how much the figure scatters.
    pub interval: Option<(f64, f64)>,
    /// Where the interval comes from.
    pub evidence: Evidence,
    /// Change from which it matters, as a share.
    pub threshold: f64,
    /// Which way the figure gets better.
    pub better: Better,
}

/// The answer to both questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// The interval excludes no change at all, and the change is beyond the threshold, in the bad direction.
    Worse,
    /// The same in the good direction.
    Better,
    /// The interval excludes no change at all, but the change is within the threshold.
    RealButSmall,
    /// The interval includes no change at all and nothing beyond the threshold.
    NoneThatMatters,
    /// The interval includes both no change at all and changes beyond the threshold.
    NotShown,
    /// There is no interval, so nothing is known but the figures.
    Unknown,
}

impl Difference {
    /// As tables have it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Worse => "worse",
            Self::Better => "better",
            Self::RealButSmall => "small",
            Self::NoneThatMatters => "same",
            Self::NotShown => "?",
            Self::Unknown => "unknown",
        }
    }
}

impl Comparison {
    /// Compares means of values in the order in which they were measured, such as operations per second of each second,
    /// with an interval that holds the true change with 95 % confidence. `threshold` is the change that matters, as a
    /// share. Absent with fewer than eight values on a side, or where a mean is not above zero.
    pub fn of(baseline: &[f64], other: &[f64], threshold: f64, better: Better) -> Option<Self> {
        let side = |values: &[f64]| {
            let pairs: Vec<(f64, f64)> = values.iter().map(|value| (*value, 1.0)).collect();
            Sample::of_ratio(values.iter().sum::<f64>() / values.len().max(1) as f64, &pairs, 0.0)
        };
        let samples = [side(baseline)?, side(other)?];
        let plain = Self::without_interval([samples[0].value, samples[1].value], threshold, better)?;
        Some(plain.with_interval(&samples, Evidence::Seconds(baseline.len(), other.len()), ERROR_RATE))
    }

    /// The same of a quantile (0 to 1) of the durations of intervals, such as the response times of each second.
    pub fn of_quantile(baseline: &[&Histogram], other: &[&Histogram], quantile: f64, threshold: f64) -> Option<Self> {
        let side = |seconds: &[&Histogram]| {
            let mut all = Histogram::default();
            seconds.iter().for_each(|second| all.merge(second));
            let seconds: Vec<Option<&Histogram>> = seconds.iter().map(|second| Some(*second)).collect();
            Sample::of_quantile(all.quantile_ns(quantile)? as f64, &Durations::of(&seconds)?, quantile)
        };
        let samples = [side(baseline)?, side(other)?];
        let plain = Self::without_interval([samples[0].value, samples[1].value], threshold, Better::Less)?;
        Some(plain.with_interval(&samples, Evidence::Seconds(baseline.len(), other.len()), ERROR_RATE))
    }

    /// Two figures of which nothing more is known; absent where the first is not above zero or the second is below it.
    pub(super) fn without_interval([baseline, other]: [f64; 2], threshold: f64, better: Better) -> Option<Self> {
        let change = other / baseline - 1.0;
        let can_be_reported = baseline > 0.0 && other >= 0.0 && change.is_finite();
        let (interval, evidence) = (None, Evidence::Nothing);
        can_be_reported.then_some(Self {
            baseline,
            other,
            change,
            interval,
            evidence,
            threshold: threshold.abs(),
            better,
        })
    }

    /// With an interval that misses the true change in a share `error_rate` of all comparisons. The ends of two sides are
    /// put together as Zou and Donner (2008) do it for two figures that know nothing of each other; where both scatter
    /// evenly that is Welch's interval.
    pub(super) fn with_interval(self, samples: &[Sample; 2], evidence: Evidence, error_rate: f64) -> Self {
        let [baseline, other] = samples;
        let interval = if other.is_nothing() {
            (-1.0, -1.0)
        } else {
            let errors = reach_student(error_rate, freedom(samples));
            let ((baseline_down, baseline_up), (other_down, other_up)) = (baseline.reach(errors), other.reach(errors));
            let middle = (other.value / baseline.value).ln();
            // Rounding differs from side to side by one step at most.
            let step = baseline.resolution().max(other.resolution());
            let low = middle - other_down.hypot(baseline_up) - step;
            let high = middle + other_up.hypot(baseline_down) + step;
            (low.exp() - 1.0, high.exp() - 1.0)
        };
        // So wide that it overflows, it says nothing.
        let is_bounded = interval.0.is_finite() && interval.1.is_finite();
        if is_bounded { Self { interval: Some(interval), evidence, ..self } } else { self }
    }

    /// Whether the interval excludes no change at all.
    pub fn is_real(&self) -> bool {
        self.interval.is_some_and(|(low, high)| low > 0.0 || high < 0.0)
    }

    /// Whether the change is beyond the threshold, real or not.
    pub fn matters(&self) -> bool {
        self.change.abs() > self.threshold
    }

    /// Whether a real change is for the worse and beyond the threshold.
    pub fn is_regression(&self) -> bool {
        self.difference() == Difference::Worse
    }

    /// The largest change, either way, that the interval leaves possible, as a share.
    pub fn largest_hidden(&self) -> Option<f64> {
        self.interval.map(|(low, high)| low.abs().max(high.abs()))
    }

    /// The answer to both questions.
    pub fn difference(&self) -> Difference {
        let is_worse = (self.change < 0.0) == (self.better == Better::More);
        match (self.largest_hidden(), self.is_real(), self.matters()) {
            (None, ..) => Difference::Unknown,
            (_, true, true) if is_worse => Difference::Worse,
            (_, true, true) => Difference::Better,
            (_, true, false) => Difference::RealButSmall,
            (Some(hidden), false, _) if hidden <= self.threshold => Difference::NoneThatMatters,
            (Some(_), false, _) => Difference::NotShown,
        }
    }

    /// The interval in percent without its sign: `-1.2 to +3.4`; or that it is too wide to say anything.
    pub fn interval_words(&self) -> Option<String> {
        self.interval.map(|(low, high)| match high {
            high if high > MAX_BOUND => "too scattered to bound".to_owned(),
            _ => format!("{} to {}", signed(low), signed(high)),
        })
    }

    /// The answer in a sentence. `what` is the figure, such as `p99 of response time`; the names are those of the
    /// baseline and the other run.
    pub fn sentence(&self, what: &str, [baseline, other]: [&str; 2]) -> String {
        let (change, threshold) = (signed_percent(self.change), percent(self.threshold));
        let hidden = percent(self.largest_hidden().unwrap_or(0.0));
        let is_bounded = self.interval.is_some_and(|(_, high)| high <= MAX_BOUND);
        let interval = self.interval_words().map_or(String::new(), |words| match is_bounded {
            true => format!(" (interval {words} %)"),
            false => format!(" ({words})"),
        });
        let begin = format!("{what} of `{other}` is {change} against `{baseline}`{interval}");
        match self.difference() {
            Difference::Worse => format!("{begin}: a real difference, and worse by more than {threshold} %."),
            Difference::Better => format!("{begin}: a real difference, and better by more than {threshold} %."),
            Difference::RealButSmall => format!("{begin}: a real difference, but within {threshold} %."),
            Difference::NoneThatMatters => {
                format!("{begin}: no difference is shown, and there is none of more than {threshold} %.")
            }
            Difference::NotShown if !is_bounded => {
                format!("{begin}: no difference is shown, and these data could hide one of any size.")
            }
            Difference::NotShown => {
                format!("{begin}: no difference is shown, but these data could hide one of up to {hidden} %.")
            }
            Difference::Unknown => {
                format!("{begin}: nothing says how much these figures scatter, so it may be chance or not.")
            }
        }
    }

    /// What the user can do to learn more.
    pub fn advice(&self, [baseline, other]: [&str; 2], grounds: Grounds) -> Option<String> {
        match self.difference() {
            Difference::NotShown if matches!(self.evidence, Evidence::Repeats(..)) => {
                Some("Add repeats of each, made in turns.".to_owned())
            }
            Difference::NotShown if grounds == Grounds::Reports => Some(MORE_REPORTS.to_owned()),
            Difference::NotShown => {
                Some(format!("Measure both for longer, or repeat them in turns: `{baseline}`, `{other}`, and again."))
            }
            Difference::Unknown if grounds == Grounds::Reports => Some(MORE_REPORTS.to_owned()),
            Difference::Unknown => {
                let longer = if grounds == Grounds::ShortRuns { ", or windows of ten seconds or more" } else { "" };
                Some(format!(
                    "Make three runs or more of each in turns and compare them together (`a,b,c d,e,f`){longer}."
                ))
            }
            _ => None,
        }
    }
}

const MORE_REPORTS: &str = "Import three results or more of each, such as reports of the same hour on several days, and compare them \
                            together (`a,b,c d,e,f`).";

/// What there is of two runs, and so what more could be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Grounds {
    /// Our own runs, with windows that are long enough to have seconds that scatter.
    Runs,
    /// Our own, one of them with windows of less than ten seconds.
    ShortRuns,
    /// One of them was imported: it cannot be made again.
    Reports,
}

impl Grounds {
    pub(super) fn of(runs: [&Run; 2]) -> Self {
        let mut lengths = runs.iter().flat_map(|run| measured(run)).map(|step| step.window.duration_ns);
        if runs.iter().any(|run| run.imported.is_some() || !run.tool.is_own()) {
            Self::Reports
        } else if lengths.any(|ns| ns < 10_000_000_000) {
            Self::ShortRuns
        } else {
            Self::Runs
        }
    }
}

/// A share as a percentage with its sign: `+12.3 %`.
pub fn signed_percent(share: f64) -> String {
    format!("{} %", signed(share))
}

fn signed(share: f64) -> String {
    let text = percent(share);
    // A rounded zero has no direction.
    let text = if text == "-0.0" { "0.0".to_owned() } else { text };
    format!("{}{text}", if text.starts_with('-') || text == "0.0" { "" } else { "+" })
}

/// Degrees of freedom of the difference of two figures (Welch, 1947; Satterthwaite, 1946).
fn freedom(samples: &[Sample; 2]) -> f64 {
    let [(a, a_freedom), (b, b_freedom)] = [0, 1].map(|side| (samples[side].variance(), samples[side].freedom()));
    let divisor = a * a / a_freedom + b * b / b_freedom;
    if divisor > 0.0 { (a + b).powi(2) / divisor } else { a_freedom + b_freedom }
}

/// Cells of the angle from nothing to a right angle.
const CELLS: u32 = 4_096;
/// From so many degrees of freedom on, more of them change nothing that matters.
const NEARLY_NORMAL: f64 = 2_000.0;

/// The distance in standard errors that Student's t with `freedom` degrees of freedom (at least 1) exceeds, on either side
/// together, with probability `beyond` (0 to 1, both excluded).
///
/// With t = sqrt(freedom) tan(angle) the density of the angle is proportional to cos(angle)^(freedom - 1), so that the
/// answer is the angle beyond which this share of the area lies.
pub(crate) fn reach_student(beyond: f64, freedom: f64) -> f64 {
    let freedom = freedom.clamp(1.0, NEARLY_NORMAL);
    let width = FRAC_PI_2 / f64::from(CELLS);
    let density = |angle: f64| angle.cos().max(0.0).powf(freedom - 1.0);
    // From the right angle downwards: the tail comes first, so that small shares of it are not lost in large sums.
    let area = |cell: u32| {
        let upper = FRAC_PI_2 - f64::from(cell) * width;
        (density(upper) + 4.0 * density(upper - width / 2.0) + density(upper - width)) * width / 6.0
    };
    let wanted = beyond * (0..CELLS).map(area).sum::<f64>();
    let mut below = 0.0;
    for cell in 0..CELLS {
        let more = area(cell);
        if below + more >= wanted {
            let part = if more > 0.0 { (wanted - below) / more } else { 0.0 };
            return freedom.sqrt() * (FRAC_PI_2 - (f64::from(cell) + part) * width).tan();
        }
        below += more;
    }
    0.0
}

/// So many figures are named in a verdict; the others are in the tables.
const NAMED: usize = 3;

/// What the figures of a pair come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overall {
    /// Some figures are worse, none is better.
    Worse,
    /// Some are better, none is worse.
    Better,
    /// Some are worse and some are better.
    Mixed,
    /// Every figure was shown to differ by no more than the threshold, or differs really but by less.
    Same,
    /// No difference that matters was shown, but one could be hidden, or nothing says how much some figures scatter.
    NotShown,
    /// No figure has an interval.
    Unknown,
    /// There is nothing to compare.
    Nothing,
}

impl Overall {
    /// As tables and documents have it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Worse => "worse",
            Self::Better => "better",
            Self::Mixed => "mixed",
            Self::Same => "same",
            Self::NotShown => "not shown",
            Self::Unknown => "unknown",
            Self::Nothing => "nothing to compare",
        }
    }
}

/// A figure of a load.
type ReportedChange<'a> = (&'a ComparedLoad, &'a Measure, &'a Comparison);

impl Pair {
    /// What its figures come to.
    pub fn overall(&self) -> Overall {
        let all = self.comparisons().count();
        let is_any = |answer| self.count(answer) > 0;
        match (is_any(Difference::Worse), is_any(Difference::Better)) {
            (true, true) => Overall::Mixed,
            (true, false) => Overall::Worse,
            (false, true) => Overall::Better,
            _ if all == 0 => Overall::Nothing,
            _ if self.count(Difference::Unknown) == all => Overall::Unknown,
            _ if is_any(Difference::NotShown) || is_any(Difference::Unknown) => Overall::NotShown,
            _ => Overall::Same,
        }
    }

    /// The figure whose interval leaves the largest change possible, among those of which no difference was shown.
    pub fn largest_hidden(&self) -> Option<(&ComparedLoad, &Measure, f64)> {
        let hidden = self.comparisons().filter(|(.., comparison)| !comparison.is_real());
        let sized =
            hidden.filter_map(|(load, measure, comparison)| Some((load, measure, comparison.largest_hidden()?)));
        sized.max_by(|a, b| a.2.total_cmp(&b.2))
    }

    /// Figures with this answer, the largest change first.
    pub fn with_answer(&self, answer: Difference) -> Vec<(&ComparedLoad, &Measure, &Comparison)> {
        let mut changes: Vec<ReportedChange<'_>> =
            self.comparisons().filter(|(.., comparison)| comparison.difference() == answer).collect();
        changes.sort_by(|a, b| b.2.change.abs().total_cmp(&a.2.change.abs()));
        changes
    }

    /// Whether intervals come from seconds only, so that they know one run of each and not how runs differ.
    pub fn is_by_seconds(&self) -> bool {
        self.comparisons().any(|(.., comparison)| matches!(comparison.evidence, Evidence::Seconds(..)))
    }
}

impl Compared {
    /// The verdict on a pair in a few sentences.
    pub fn verdict(&self, pair: &Pair) -> String {
        let [baseline, other] = self.names_of(pair);
        let threshold = percent(self.threshold);
        let all = pair.comparisons().count();
        let side = |answer: Difference, word: &str| {
            let changes = pair.with_answer(answer);
            let verb = if changes.len() == 1 { "is" } else { "are" };
            format!("{} of {all} figures {verb} {word} by more than {threshold} %: {}", changes.len(), named(&changes))
        };
        let mut verdict = match pair.overall() {
            Overall::Worse => format!("`{other}` is worse than `{baseline}`: {}.", side(Difference::Worse, "worse")),
            Overall::Better => {
                format!("`{other}` is better than `{baseline}`: {}.", side(Difference::Better, "better"))
            }
            Overall::Mixed => format!(
                "`{other}` is worse than `{baseline}` in some figures and better in others. {}. {}.",
                side(Difference::Worse, "worse"),
                side(Difference::Better, "better")
            ),
            Overall::Same => {
                let small = match pair.count(Difference::RealButSmall) {
                    0 => String::new(),
                    count => format!("; {count} differ really, but by less"),
                };
                format!(
                    "No figure of `{other}` was found to differ from that of `{baseline}` by more than {threshold} %, of \
                     {all} compared{small}."
                )
            }
            Overall::NotShown => format!(
                "No difference of more than {threshold} % between `{baseline}` and `{other}` is shown, of {all} figures \
                 compared."
            ),
            Overall::Unknown => format!(
                "Nothing says how much the figures of `{baseline}` and `{other}` scatter: their differences may be chance or \
                 not."
            ),
            Overall::Nothing => format!("`{baseline}` and `{other}` have nothing in common that could be compared."),
        };
        let is_worse = matches!(pair.overall(), Overall::Worse | Overall::Mixed);
        if let Some(grown) = pair.grown.as_ref().filter(|_| is_worse) {
            verdict = format!("{verdict} {}", grown.sentence(other));
        }
        if let Some(grown) = &pair.grown_stalls {
            verdict = format!("{verdict} {}", grown.sentence(other));
        }
        let hidden = pair.largest_hidden().filter(|(.., share)| *share > self.threshold);
        if let (Overall::NotShown, Some((load, measure, share))) = (pair.overall(), hidden) {
            verdict += &match share {
                share if share > MAX_BOUND => {
                    format!(
                        " {measure} at {} is too scattered to bound: these data could hide one of any size.",
                        load.name
                    )
                }
                share => {
                    format!(" These data could hide one of up to {} %, in {measure} at {}.", percent(share), load.name)
                }
            };
        }
        let unknown = pair.count(Difference::Unknown);
        if unknown > 0 && unknown < all {
            verdict += &format!(" Of {unknown} figures nothing says how much they scatter.");
        }
        match pair.loads.iter().filter(|load| load.is_doubtful).count() {
            0 => {}
            count if count == pair.loads.len() => verdict += " This rests on doubtful steps: read the doubts first.",
            _ => verdict += " This rests in part on doubtful steps: read the doubts first.",
        }
        verdict
    }

    /// What the intervals mean, where there are any.
    pub fn confidence(&self) -> Option<String> {
        let seconds = self.pairs.iter().any(Pair::is_by_seconds);
        let sure = percent(1.0 - super::ERROR_RATE);
        let sure = sure.trim_end_matches(".0");
        let together = match self.intervals {
            0 => return None,
            1 => format!("The interval holds the true change with {sure} % confidence."),
            count => format!("The intervals hold all {count} true changes together with {sure} % confidence."),
        };
        let limits = if seconds {
            " Intervals from seconds show how seconds differ within one run, not how one run differs from the next. \
             Before acting on a difference, make three alternating runs of each, and compare them together (`a,b,c \
             d,e,f`)."
        } else {
            " They come from repeats, and contain how one repeat differs from the next."
        };
        Some(together + limits)
    }
}

fn named(reported: &[ReportedChange<'_>]) -> String {
    let one = |(load, measure, comparison): &ReportedChange<'_>| {
        format!("{measure} at {} {}", load.name, signed_percent(comparison.change))
    };
    let mut words: Vec<String> = reported.iter().take(NAMED).map(one).collect();
    if reported.len() > NAMED {
        words.push(format!("and {} more", reported.len() - NAMED));
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::scatter::tests::series;
    use super::*;
    use crate::chance::Chance;

    /// How many of 400 pairs of equal series are called different, for each of some error rates.
    fn called_real<const N: usize>(count: usize, memory: f64, error_rates: [f64; N]) -> [usize; N] {
        let mut chance = Chance::new(7);
        let mut real = [0; N];
        for _ in 0..400 {
            let samples = [0, 1].map(|_| {
                let values = series(&mut chance, count, 1_000.0, 0.05, memory);
                let seconds: Vec<(f64, f64)> = values.iter().map(|value| (*value, 1.0)).collect();
                Sample::of_ratio(values.iter().sum::<f64>() / count as f64, &seconds, 0.0).unwrap()
            });
            let values = samples.each_ref().map(|sample| sample.value);
            let plain = Comparison::without_interval(values, 0.05, Better::More).unwrap();
            for (real, error_rate) in real.iter_mut().zip(error_rates) {
                let change = plain.with_interval(&samples, Evidence::Seconds(count, count), error_rate);
                *real += usize::from(change.is_real());
            }
        }
        real
    }

    #[test]
    fn equal_storage_is_called_different_no_more_often_than_stated_far_out_too() {
        // 20 of 400 are stated; three standard deviations of chance are 13 more. For one of fifty figures 0.4 are, and 1.9.
        for (count, memory) in [(10, 0.0), (20, 0.3), (60, 0.5), (150, 0.7)] {
            let [alone, one_of_fifty] = called_real(count, memory, [ERROR_RATE, ERROR_RATE / 50.0]);
            let what = format!("of 400 with {count} values of memory {memory}");
            assert!(alone <= 33 && one_of_fifty <= 2, "{alone} and {one_of_fifty} {what}");
        }
    }

    #[test]
    fn a_planted_difference_is_found_and_its_interval_holds_it() {
        let mut chance = Chance::new(3);
        let (mut found, mut held) = (0, 0);
        for _ in 0..200 {
            let a = series(&mut chance, 60, 1_000.0, 0.05, 0.5);
            let b = series(&mut chance, 60, 1_100.0, 0.05, 0.5);
            let comparison = Comparison::of(&a, &b, 0.05, Better::More).unwrap();
            found += usize::from(comparison.difference() == Difference::Better);
            held += usize::from(comparison.interval.is_some_and(|(low, high)| low <= 0.1 && 0.1 <= high));
        }
        assert!(found >= 195 && held >= 180, "{found} found, {held} held of 200");
    }

    #[test]
    fn each_answer_has_its_sentence() {
        let with = |change: f64, interval: Option<(f64, f64)>| Comparison {
            baseline: 100.0,
            other: 100.0 * (1.0 + change),
            change,
            interval,
            evidence: Evidence::Seconds(60, 60),
            threshold: 0.05,
            better: Better::More,
        };
        let names = ["old", "new"];
        for (comparison, answer, words) in [
            (
                with(0.1, Some((0.08, 0.12))),
                Difference::Better,
                "throughput of `new` is +10.0 % against `old` (interval +8.0 to +12.0 %): a real difference, and better \
                 by more than 5.0 %.",
            ),
            (with(-0.1, Some((-0.12, -0.08))), Difference::Worse, "a real difference, and worse by more than 5.0 %."),
            (with(-0.02, Some((-0.03, -0.01))), Difference::RealButSmall, "a real difference, but within 5.0 %."),
            (
                with(0.0, Some((-0.01, 0.02))),
                Difference::NoneThatMatters,
                "is 0.0 % against `old` (interval -1.0 to +2.0 %): no difference is shown, and there is none of more",
            ),
            (with(0.07, Some((-0.01, 0.12))), Difference::NotShown, "could hide one of up to 12.0 %."),
            (
                with(-0.6, Some((-1.0, 1_829.0))),
                Difference::NotShown,
                "(too scattered to bound): no difference is shown, and",
            ),
            (with(-0.5, None), Difference::Unknown, "is -50.0 % against `old`: nothing says how much"),
        ] {
            assert_eq!(comparison.difference(), answer);
            let sentence = comparison.sentence("throughput", names);
            assert!(sentence.contains(words), "{sentence}");
            let wants_more = matches!(answer, Difference::NotShown | Difference::Unknown);
            assert_eq!(comparison.advice(names, Grounds::Runs).is_some(), wants_more);
            assert_eq!(comparison.is_regression(), answer == Difference::Worse);
        }
        let times = Comparison { better: Better::Less, ..with(0.1, Some((0.08, 0.12))) };
        assert_eq!(times.difference(), Difference::Worse, "longer times are worse");
    }

    #[test]
    fn too_little_to_compare_is_not_compared() {
        let of = |a: &[f64], b: &[f64]| Comparison::of(a, b, 0.05, Better::More);
        assert_eq!(of(&[1.0; 7], &[1.0; 60]), None);
        assert_eq!(of(&[0.0; 60], &[1.0; 60]), None);
        assert_eq!(of(&[f64::NAN; 60], &[1.0; 60]), None);
        assert_eq!(of(&[], &[]), None);
        let same = of(&[5.0; 60], &[5.0; 60]).unwrap();
        assert_eq!((same.change, same.interval), (0.0, Some((0.0, 0.0))));
        assert_eq!(same.difference(), Difference::NoneThatMatters);
    }

    #[test]
    fn a_rate_that_fell_to_nothing_is_worse() {
        let dead = Comparison::of(&[5.0; 60], &[0.0; 60], 0.05, Better::More).unwrap();
        assert_eq!((dead.change, dead.difference()), (-1.0, Difference::Worse));
    }

    /// Seconds of lognormal durations around `median_us`, whose median wanders by 3 % from second to second.
    fn seconds(chance: &mut Chance, count: usize, median_us: f64) -> Vec<Histogram> {
        let wander = series(chance, count, 1.0, 0.03, 0.5);
        let second = |factor: &f64| {
            let mut histogram = Histogram::default();
            (0..100).for_each(|_| histogram.record((median_us * 1e3 * factor * (0.3 * chance.normal()).exp()) as u64));
            histogram
        };
        wander.iter().map(second).collect()
    }

    #[test]
    fn quantiles_of_equal_storage_seldom_differ_and_planted_ones_do() {
        let mut chance = Chance::new(11);
        let (mut false_alarms, mut found) = ([0; 2], [0; 2]);
        for _ in 0..40 {
            let [a, b, slow] = [100.0, 100.0, 115.0].map(|us| seconds(&mut chance, 20, us));
            let [a, b, slow]: [Vec<&Histogram>; 3] = [&a, &b, &slow].map(|side| side.iter().collect());
            for (index, quantile) in [0.5, 0.95].into_iter().enumerate() {
                let alike = Comparison::of_quantile(&a, &b, quantile, 0.05).unwrap();
                let planted = Comparison::of_quantile(&a, &slow, quantile, 0.05).unwrap();
                let holds = planted.interval.is_some_and(|(_, high)| high > 0.15);
                false_alarms[index] += usize::from(alike.is_real());
                found[index] += usize::from(planted.is_regression() && holds);
            }
        }
        // 2 of 40 are stated; three standard deviations of chance are 4 more.
        assert!(false_alarms.iter().all(|count| *count <= 6), "{false_alarms:?} false alarms of 40");
        assert!(found.iter().all(|count| *count >= 36), "{found:?} found of 40");
    }

    #[test]
    fn durations_that_fall_into_neighbouring_buckets_are_not_called_different() {
        let seconds = |ns: u64| -> Vec<Histogram> {
            let mut second = Histogram::default();
            second.record_n(ns, 1_000);
            vec![second; 20]
        };
        for ns in (100_000..200_000).step_by(1_999) {
            let [a, b] = [seconds(ns), seconds(ns + 1)];
            let [a, b]: [Vec<&Histogram>; 2] = [&a, &b].map(|side| side.iter().collect());
            let comparison = Comparison::of_quantile(&a, &b, 0.5, 0.05).unwrap();
            assert_eq!(comparison.difference(), Difference::NoneThatMatters, "{ns}: {comparison:?}");
        }
    }

    #[test]
    fn it_is_as_in_the_tables() {
        for (beyond, freedom, expected) in [
            (0.05, 1.0, 12.706),
            (0.05, 2.0, 4.303),
            (0.05, 4.0, 2.776),
            (0.01, 4.0, 4.604),
            (0.001, 4.0, 8.610),
            (0.001, 10.0, 4.587),
            (0.002, 3.0, 10.215),
            (0.05, 30.0, 2.042),
            (0.001, 120.0, 3.373),
            (0.05, 1e9, 1.960),
            (0.0001, 1e9, 3.891),
        ] {
            let quantile = reach_student(beyond, freedom);
            assert!((quantile / expected - 1.0).abs() < 0.002, "{beyond} with {freedom}: {quantile}, not {expected}");
        }
    }
}
