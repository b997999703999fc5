//! What a comparison comes to, in words.

use super::change::MAX_BOUND;
use super::{Compared, ComparedLoad, Comparison, Difference, Evidence, Measure, Pair, signed_percent};
use model::units::percent;

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
            " Intervals from seconds know how seconds differ within one run, not how one run differs from the next: before \
             acting on a difference, make three runs of each in turns and compare them together (`a,b,c d,e,f`)."
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
