//! An experiment in five sentences that somebody can read who does not read tables.

use super::{Against, Bound, Case, CaseRate, ExperimentFound};
use model::platforms::allowed_by;
use model::units::{group_thousands, percent};

/// A platform reaches what is published from this share of it on: measuring takes some.
const REACHED: f64 = 0.9;
/// Above what is published by more than measuring is off.
const ABOVE: f64 = 1.02;
/// A factor below which nothing that was varied made a difference.
const FACTOR: f64 = 1.05;

impl ExperimentFound {
    /// What was measured; what carries most and least; what made the difference; what published limits say; and how far it can be
    /// trusted.
    pub fn summary(&self) -> [String; 5] {
        [self.measured(), self.most_and_least(), self.difference(), self.against(), self.trust()]
    }

    fn measured(&self) -> String {
        let Some(most) = self.cases.iter().map(|case| case.readings.len()).max() else {
            return "Nothing was measured.".to_owned();
        };
        let cases = match (self.cases.len(), self.varied.is_empty()) {
            (1, _) => "1 combination".to_owned(),
            (count, true) => format!("{count} loads"),
            (count, false) => format!("{count} combinations of {}", joined(&self.varied)),
        };
        let loads: Vec<String> = self.loads().iter().map(|load| format!("`{load}`")).collect();
        let least = self.cases.iter().map(|case| case.readings.len()).min().unwrap_or(most);
        let times = match (least, most) {
            (1, 1) => "once each".to_owned(),
            (least, most) if least == most => format!("{most} times each"),
            (least, most) => format!("{least} to {most} times each"),
        };
        let verb = if self.cases.len() == 1 { "was" } else { "were" };
        let missing = match self.asked.saturating_sub(self.runs()) {
            0 => String::new(),
            missing => format!("; {missing} of {} runs that were asked for are missing", self.asked),
        };
        format!("{cases} {verb} measured by {}, {times}{missing}.", joined(&loads))
    }

    /// Cases of the load that has most of them with a rate of one kind: what can be ranked.
    fn ranked(&self) -> Vec<(&Case, CaseRate)> {
        let of_load = |load: &&str| {
            let rated = self.cases.iter().filter(|case| case.load == **load);
            let rated: Vec<(&Case, CaseRate)> = rated.filter_map(|case| Some((case, case.rate()?))).collect();
            let Some(unit) = rated.first().map(|(_, rate)| rate.unit) else { return Vec::new() };
            rated.into_iter().filter(|(_, rate)| rate.unit == unit).collect::<Vec<_>>()
        };
        let loads = self.loads();
        let mut ranked: Vec<Vec<(&Case, CaseRate)>> = loads.iter().map(of_load).collect();
        // Of equals the first.
        let most = ranked.iter().map(Vec::len).max().unwrap_or(0);
        let place = ranked.iter().position(|cases| cases.len() == most);
        let mut best = place.map(|place| ranked.swap_remove(place)).unwrap_or_default();
        // Those that miss the limit with every load carry least.
        let misses = |rate: CaseRate| rate.carried_per_s().is_none();
        best.sort_by(|a, b| misses(a.1).cmp(&misses(b.1)).then(b.1.per_s.total_cmp(&a.1.per_s)));
        best
    }

    fn most_and_least(&self) -> String {
        let ranked = self.ranked();
        let said = |case: &Case| format!("`{}`", self.name(case));
        match ranked[..] {
            [] => "None of it is a rate by which platforms could be ranked: each run says what it found.".to_owned(),
            [(case, rate)] => format!("{} carries {}.", said(case), carried(case, rate)),
            [(best, most), ..] if most.bound == Bound::LessThan => {
                format!(
                    "None keeps its limit with any load that was tried; {} carries {}.",
                    said(best),
                    carried(best, most)
                )
            }
            [(best, most), .., (worst, least)] => {
                let factor = most.times(least).map_or_else(String::new, |(factor, is_least)| {
                    format!(", {}{} times less", if is_least { "at least " } else { "" }, times(factor))
                });
                let open = match ranked.iter().filter(|(_, rate)| rate.bound == Bound::AtLeast).count() {
                    0 => String::new(),
                    1 => "; one of them may carry more: it kept its limit with the highest load".to_owned(),
                    open => format!("; {open} of them may carry more: they kept their limit with the highest load"),
                };
                format!(
                    "Most is carried by {}, {}; least by {}, {}{factor}{open}.",
                    said(best),
                    carried(best, most),
                    said(worst),
                    least.words()
                )
            }
        }
    }

    /// Of each thing that varies, the pair that differs in it alone and most.
    fn difference(&self) -> String {
        let ranked = self.ranked();
        if ranked.len() < 2 {
            return "With fewer than two combinations to compare nothing says what makes a difference.".to_owned();
        }
        let mut effects: Vec<(&String, (f64, bool), &Case, &Case)> = Vec::new();
        for name in &self.varied {
            let pairs = ranked.iter().enumerate().flat_map(|(at, more)| {
                ranked[at + 1..]
                    .iter()
                    .filter(move |less| differ_only_in(name, more.0, less.0))
                    .map(move |less| (more, less))
            });
            let factors = pairs.filter_map(|(more, less)| Some((name, more.1.times(less.1)?, more.0, less.0)));
            effects.extend(factors.max_by(|a, b| a.1.0.total_cmp(&b.1.0)));
        }
        effects.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
        let Some((name, (factor, is_least), more, less)) = effects.first().copied() else {
            return format!(
                "No two combinations differ in one thing alone and by a known factor, so nothing says which of {} makes the difference.",
                joined(&self.varied)
            );
        };
        if factor < FACTOR {
            return format!("Nothing that was varied makes a difference of more than {} %.", percent(FACTOR - 1.0));
        }
        let value =
            |case: &Case| case.tags.get(name).map_or_else(|| format!("without {name}"), |value| format!("`{value}`"));
        let others: Vec<String> = self
            .varied
            .iter()
            .filter(|other| *other != name)
            .filter_map(|other| Some(format!("{other}={}", more.tags.get(other)?)))
            .collect();
        let with = if others.is_empty() { String::new() } else { format!(" with `{}`", others.join(" ")) };
        let next = effects.get(1).filter(|(_, (factor, _), ..)| *factor >= FACTOR);
        let next = next.map_or_else(String::new, |(name, (factor, is_least), ..)| {
            format!("; next is {name}, with {} {} times", if *is_least { "at least" } else { "up to" }, times(*factor))
        });
        format!(
            "What makes the largest difference by itself is {name}:{with} {} carries {}{} times what {} does{next}.",
            value(more),
            if is_least { "at least " } else { "" },
            times(factor),
            value(less)
        )
    }

    fn against(&self) -> String {
        let known: Vec<(&Case, &Against)> =
            self.cases.iter().filter_map(|case| Some((case, case.against.as_ref()?))).collect();
        let count = |holds: &dyn Fn(&Against) -> bool| known.iter().filter(|(_, against)| holds(against)).count();
        let Some((furthest, least)) = known.iter().copied().min_by(|a, b| a.1.share().total_cmp(&b.1.share())) else {
            return "No tags name a machine and volumes whose limits are published, so nothing was expected."
                .to_owned();
        };
        let on_credit = count(&Against::may_be_credit);
        let is_above = |against: &Against| against.share() > ABOVE && !against.may_be_credit();
        let above = count(&is_above);
        let cached = count(&|against| is_above(against) && against.has_cache);
        let reached = count(&|against| (REACHED..=ABOVE).contains(&against.share()));
        let mut parts = vec![format!(
            "Of {} whose limits are published, {reached} {} {} % of them or more",
            known.len(),
            if reached == 1 { "reaches" } else { "reach" },
            percent(REACHED).trim_end_matches(".0")
        )];
        let does = |count: usize| if count == 1 { "does" } else { "do" };
        if on_credit > 0 {
            parts.push(format!("{on_credit} {} more than lasts, as burst credits allow for a time", does(on_credit)));
        }
        if above > 0 {
            let why = if cached == above { ", perhaps from the host's cache" } else { "" };
            parts.push(format!("{above} {} more than volumes and machines allow past a cache{why}", does(above)));
        }
        if least.share() < REACHED {
            parts.push(format!(
                "furthest below is `{}` with {} of {} requests/s that {}",
                self.name(furthest),
                group_thousands(least.per_s),
                group_thousands(least.allowed_per_s.floor()),
                allowed_by(least.whose)
            ));
        }
        format!("{}.", parts.join("; "))
    }

    fn trust(&self) -> String {
        let spreads = self.cases.iter().filter_map(|case| Some((case, case.spread()?)));
        let widest = spreads.max_by(|a, b| a.1.total_cmp(&b.1));
        let repeats = match widest {
            Some((case, spread)) => format!(
                "Repeats of one combination differ by {} % at most (`{}`), and what differs by less between combinations may be chance",
                percent(spread),
                self.name(case)
            ),
            None if self.cases.iter().all(|case| case.readings.len() < 2) => {
                "No combination was measured more than once, so what differs by a few percent may be chance".to_owned()
            }
            None => "Repeats have no rate by which they could be compared".to_owned(),
        };
        let doubtful = self.cases.iter().flat_map(|case| &case.readings).filter(|reading| reading.is_doubtful).count();
        let doubts = match doubtful {
            0 => String::new(),
            1 => "; 1 run should not be relied on as it stands".to_owned(),
            count => format!("; {count} runs should not be relied on as they stand"),
        };
        format!("{repeats}{doubts}.")
    }
}

impl Against {
    /// Whether it is more than the platform allows in the long run, and no more than it allows on credit.
    fn may_be_credit(&self) -> bool {
        self.share() > ABOVE && self.burst_per_s.is_some_and(|burst| self.per_s <= burst * ABOVE)
    }
}

fn carried(case: &Case, rate: CaseRate) -> String {
    format!("{}{}", rate.words(), case.first().map_or("", |reading| reading.latency.as_str()))
}

/// Whether two cases have the same value of everything but `name`, and not of that.
fn differ_only_in(name: &str, one: &Case, other: &Case) -> bool {
    let rest = |case: &Case| {
        let mut tags = case.tags.clone();
        tags.remove(name);
        tags
    };
    one.tags.get(name) != other.tags.get(name) && rest(one) == rest(other)
}

/// `a, b and c`.
fn joined(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// A factor as people say it.
fn times(factor: f64) -> String {
    if factor < 9.95 { format!("{factor:.1}") } else { group_thousands(factor) }
}
