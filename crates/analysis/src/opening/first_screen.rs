//! The first screen of a report: the answer in short lines, each of which stands by itself.

use serde::Serialize;

use super::words::{at_ceiling, calibrated, caps, multiple, number};
use super::{Carried, Claim, HowKnown, Latency, Opening, StoppedBy, Unit};
use crate::ceiling::Confidence;
use crate::check::{Carries, Check, Reached};
use crate::message::of_series;
use crate::{
    Because, Expected, FailureCost, Figures, Finding, Knee, LimitAnswer, LimitVerdict, Multiple, Pause, QuantileValue,
    RunVerdict, Series, Served, Stalls, StepLine, Tagged, foreground_waits, is_on_server, measured,
    operations_are_requests, tagged_platform,
};
use model::platforms::Catalogue;
use model::record::{ASKED, Metric, Run, Step};
use model::units::{Nanos, group_thousands, percent};

/// Waits that the first screen names.
const TOP_WAITS: usize = 3;
/// What is measured within this share of what was expected is as expected.
const AS_EXPECTED: f64 = 0.1;
/// No wait takes a larger share of the time that it is a part of; both are sampled at instants that differ a little.
const WHOLE: f64 = 1.05;
/// A knee this close above what is carried lies there as well.
const AS_HIGH: f64 = 1.02;

/// The answer of a run in short lines.
#[derive(Debug, Clone, PartialEq)]
pub struct FirstScreen {
    /// The answer to the limits that were requested, or to a check; absent where nothing was requested.
    pub verdict: Option<&'static str>,
    /// How much, within which latency; after the verdict what decided.
    pub result: String,
    /// Whether a model of storage was measured.
    pub is_simulated: bool,
    /// What must be known before the result is used.
    pub warnings: Vec<String>,
    /// The one of them that no finding says in these words: that commits may be lost, or that parts of a fleet are missing.
    pub before: Option<String>,
    /// Whether the result may be invalid.
    pub is_doubtful: bool,
    /// What limited the load; absent where nothing was seen to.
    pub limited_by: Option<String>,
    /// What that rests on; absent where no cause is named.
    pub how_known: Option<HowKnown>,
    /// What published limits let expect; absent where the tags of the run name no platform.
    pub expected: Option<String>,
    /// Up to which load to plan; absent where no knee was found.
    pub plan_for: Option<String>,
    /// What else belongs to the answer.
    pub also: Vec<String>,
    /// What sessions of a database waited for most.
    pub waits: Option<String>,
    /// Why operations were slow for a while, where the limits were not met.
    pub stalls: Option<String>,
    /// What to do next.
    pub next: Option<String>,
    /// The limits that were requested, each with what was measured.
    pub limits: Vec<LimitLine>,
    /// The four figures of a page; empty where there is no rate.
    pub tiles: Vec<Tile>,
}

/// A requested limit beside what was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LimitLine {
    /// What is limited, such as `p99 of response time`.
    pub what: String,
    /// The limit.
    pub limit: String,
    /// What was measured; absent where it is not known.
    pub measured: Option<String>,
    /// Whether the limit was met.
    pub answer: LimitAnswer,
    /// What decided, where it was not the measured value.
    pub because: Option<String>,
}

/// One figure of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tile {
    /// What it is.
    pub name: &'static str,
    /// The figure.
    pub value: String,
    /// What belongs to it.
    pub note: String,
}

fn failure_tiles(cost: &FailureCost) -> Vec<Tile> {
    let tile = |name, value: Option<String>, note: &str| Tile {
        name,
        value: value.unwrap_or_else(|| "not known".to_owned()),
        note: note.to_owned(),
    };
    let time = |ns: Option<u64>| ns.map(|ns| Nanos(ns).to_string());
    let pause = match cost.pause {
        Pause::None => "none seen".to_owned(),
        Pause::Seen { length_ns, .. } => Nanos(length_ns).to_string(),
        Pause::AtLeast { length_ns } => format!("at least {}", Nanos(length_ns)),
    };
    let (as_before, since) = match cost.as_before_ns.map(|at_ns| cost.since(at_ns)) {
        Some(words) => words.split_once(" after ").map(|(time, since)| (time.to_owned(), format!("after {since}"))),
        None => None,
    }
    .unzip();
    vec![
        tile("Pause", Some(pause), "without a completed operation"),
        tile("Longest wait", time(cost.longest_ns), "of one operation of the window"),
        tile("As before", as_before, since.as_deref().unwrap_or("within the window")),
        tile("Failed", Some(group_thousands(cost.lost() as f64)), "operations, or not sent or ended"),
    ]
}

impl FirstScreen {
    /// Of a run, from its opening and its findings.
    pub fn of(run: &Run, findings: &[Finding]) -> Self {
        Self::with(&Opening::of(run, findings), run, findings)
    }

    /// The same where the opening is known.
    pub fn with(opening: &Opening, run: &Run, findings: &[Finding]) -> Self {
        let limits = match (&opening.verdict, &opening.check) {
            (Some(verdict), _) => of_verdict(run, verdict),
            (None, Some(check)) => of_check(check),
            (None, None) => Vec::new(),
        };
        let value = opening.carries.as_ref().and_then(|carried| line_value(findings, carried));
        let expected = expected(run);
        let before = opening.before.as_ref().map(|words| words.trim().trim_end_matches(':').to_owned());
        let mut warnings: Vec<String> = before.iter().cloned().collect();
        warnings.extend(opening.doubt.as_ref().map(|doubt| doubt.sentence.clone()));
        // What may be invalid is nothing to plan by.
        let plan_for = opening.carries.as_ref().filter(|_| opening.doubt.is_none() && opening.check.is_none());
        let screen = Self {
            verdict: match (&opening.verdict, &opening.check) {
                (Some(verdict), _) => Some(verdict.answer.word()),
                (None, Some(check)) => Some(match check.answer {
                    Carries::Yes => "Yes",
                    Carries::No(_) => "No",
                    Carries::Unknown(_) => "Not measurable",
                }),
                (None, None) => None,
            },
            result: opening.result(value, run.steps.iter().any(|step| step.window.duration_ns > 0)),
            is_simulated: run.target.is_simulated(),
            warnings,
            before,
            is_doubtful: opening.doubt.is_some(),
            limited_by: opening.limited_by(run.target.is_simulated() || expected.is_some()),
            how_known: opening.how_known(),
            expected,
            plan_for: plan_for.and_then(|carried| plan_for_words(run, findings, carried)),
            also: opening.also(),
            waits: top_waits(run, answered_in(run, opening)),
            stalls: stalls(run, opening, findings),
            next: next(opening, findings),
            tiles: tiles(opening, &limits, value),
            limits,
        };
        match FailureCost::of(run) {
            // What limited the load says nothing of one whose target failed, nor can be planned by it.
            Some(cost) => {
                let answer = screen.verdict.map(|word| format!("{word}: ")).unwrap_or_default();
                let doubt = opening.doubt.as_ref().map(|doubt| format!("not reliable ({}): ", doubt.phrase));
                Self {
                    result: format!("{answer}{}{}", doubt.unwrap_or_default(), cost.result()),
                    tiles: failure_tiles(&cost),
                    limited_by: None,
                    how_known: None,
                    plan_for: None,
                    waits: None,
                    stalls: None,
                    next: screen.next.filter(|_| screen.is_doubtful),
                    ..screen
                }
            }
            None => screen,
        }
    }

    /// The verdict and the result in one sentence without a full stop, as a heading has it.
    pub fn headline(&self) -> String {
        if self.is_simulated {
            return format!("Simulated: {}", self.result);
        }
        let mut letters = self.result.chars();
        letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
    }
}

/// A cause of stalls stands on the first screen from this share of the slow time on.
const LARGE_CAUSE: f64 = 0.3;

/// Where the slow time of the step went that missed its limit, if stalls with a cause had a good part of it.
fn stalls(run: &Run, opening: &Opening, findings: &[Finding]) -> Option<String> {
    let has_missed: Box<dyn Fn(&str) -> bool + '_> = match (&opening.verdict, &opening.check) {
        (Some(verdict), _) if verdict.answer != LimitAnswer::Yes => {
            let missed = verdict.limits.iter().filter(|limit| limit.answer != LimitAnswer::Yes);
            let missed: Vec<&str> = missed.filter_map(|limit| limit.step.as_deref()).collect();
            Box::new(move |label| missed.is_empty() || missed.contains(&label))
        }
        (None, Some(check)) if !matches!(check.answer, Carries::Yes) => Box::new(|label| label.starts_with(ASKED)),
        _ => return None,
    };
    let worst = findings.iter().find_map(|finding| match finding {
        Finding::Stalls(stalls) => Some(stalls),
        _ => None,
    })?;
    // The worst of all may be of a step that was not judged, such as one of a sweep beyond the load line.
    let found = match has_missed(&worst.step) {
        true => worst,
        false => &Stalls::worst(run, |step| has_missed(&step.label))?,
    };
    (found.explained_share() >= LARGE_CAUSE).then(|| format!("in {}, {}", found.step, found.phrase()))
}

impl Opening {
    /// How much, within which latency. `value` is that of the judged percentile in the step that is reported; `has_begun` if any step
    /// has a window, even where none is whole.
    fn result(&self, value: Option<QuantileValue>, has_begun: bool) -> String {
        let nothing = if has_begun { "no step is complete" } else { "nothing was measured" };
        if let Some(verdict) = &self.verdict {
            let word = verdict.answer.word();
            if !self.is_measured {
                return format!("{word}: {nothing}{}", self.why_nothing());
            }
            let line = self.carries.as_ref().filter(|carried| {
                verdict.load.is_none() && (verdict.answer != LimitAnswer::NoVerdict || carried.claim == Claim::Unclear)
            });
            let words = line.map_or_else(|| verdict.words(self.carries.as_ref()), |carried| carried.result(value));
            return format!("{word}: {words}");
        }
        if let Some(check) = &self.check {
            return check.sentence();
        }
        if !self.is_measured && (self.reported.is_none() || self.doubt.is_some()) {
            return format!("{nothing}{}", self.why_nothing());
        }
        let unreliable =
            self.doubt.as_ref().map_or_else(String::new, |doubt| format!("not reliable ({}): ", doubt.phrase));
        let answer = match (&self.host, &self.carries, &self.calibration) {
            _ if let Some(reported) = &self.reported => reported.clone(),
            (Some(host), ..) => host.sentence().trim_end_matches('.').to_owned(),
            (_, Some(carried), _) => carried.result(value),
            (_, None, Some(calibration)) => calibrated(calibration).trim_start_matches("Sustains ").to_owned(),
            (_, None, None) => match (&self.survey, &self.matrix, &self.bulk) {
                (Some(survey), ..) => survey.phrase(),
                (None, Some(matrix), _) => matrix.phrase(),
                (None, None, Some(bulk)) => bulk.phrase(),
                (None, None, None) => "the sustained load is not known".to_owned(),
            },
        };
        format!("{unreliable}{answer}")
    }

    fn why_nothing(&self) -> String {
        self.doubt.as_ref().map_or_else(String::new, |doubt| format!(": {}", doubt.phrase))
    }

    /// What limited the load. A limit is not likened to a published one where the platform is known, or a model.
    fn limited_by(&self, is_known: bool) -> Option<String> {
        if self.check.is_some() || self.host.is_some() {
            return None;
        }
        let Some(by) = &self.stopped_by else { return self.together.as_ref().map(crate::Together::phrase) };
        let not_per_s = self.carries.as_ref().and_then(|carried| match carried.claim {
            Claim::Most { not_per_s: Some(not), .. } => Some(format!(" at {} {}", number(not), carried.unit.words())),
            _ => None,
        });
        let there = not_per_s.unwrap_or_default();
        let words = match by {
            StoppedBy::Ceiling(ceiling) => {
                let sure = ceiling.confidence().map(|it| it.in_brackets());
                let tested = (ceiling.how_known() == HowKnown::Tested).then_some("tested");
                let sure: Vec<&str> = sure.into_iter().chain(tested).collect();
                let sure = if sure.is_empty() { String::new() } else { format!(" ({})", sure.join(", ")) };
                let like = ceiling.like.filter(|_| !is_known);
                format!("by {}{sure}", at_ceiling(&crate::Ceiling { like, ..ceiling.clone() }))
            }
            StoppedBy::Caps(limits) => format!("by {}", caps(limits)),
            StoppedBy::Queue => format!("a queue grew{there}"),
            StoppedBy::Errors => format!("too many operations failed{there}"),
            StoppedBy::Missed(why) => why.clone(),
            StoppedBy::Hung(longest) => format!("nothing was answered for {longest}{there}"),
            StoppedBy::Unsteady => format!("throughput was not steady{there}"),
            StoppedBy::Nothing => "no limit was reached".to_owned(),
            StoppedBy::MostOfTime(..) | StoppedBy::MostOfRequests(_) => {
                let is_too_much = self.carries.as_ref().is_some_and(|it| matches!(it.claim, Claim::LessThan { .. }));
                format!("{}{}", if is_too_much { "unknown; " } else { "unknown from one load; " }, by.words())
            }
            StoppedBy::OneHost => by.words(),
            _ => by.words().trim_start_matches("stopped ").to_owned(),
        };
        let beyond = self.beyond.as_ref().map_or_else(String::new, |found| format!(", then by {}", at_ceiling(found)));
        let next = match self.processors_next {
            Some(times) if times < 1.05 => "; the CPUs are saturated as well".to_owned(),
            Some(times) => format!("; CPUs come next, at up to {times:.1} times that"),
            None => String::new(),
        };
        let checkpoints = self.log_checkpoints.as_ref().map_or_else(String::new, |words| format!("; {words}"));
        Some(format!("{words}{}{beyond}{next}{checkpoints}", self.and_spent()))
    }

    /// What else belongs to the answer.
    fn also(&self) -> Vec<String> {
        if let Some(check) = &self.check {
            return check.lines().split_off(1);
        }
        let alone = self.log_checkpoints.clone().filter(|_| self.stopped_by.is_none());
        let from_cache = self.from_cache.as_ref().map(super::FromCache::words).filter(|_| self.likeness.is_none());
        // Where nothing else stopped it, that is what did.
        let together = self.together.as_ref().filter(|_| self.stopped_by.is_some()).map(crate::Together::phrase);
        let connections = self.connections.as_ref().map(crate::ConnectionSweep::phrase);
        [together, connections, alone, from_cache, self.likeness.clone()].into_iter().flatten().collect()
    }

    /// Whether something stopped the load, so that more of it brings nothing.
    fn is_stopped(&self) -> bool {
        match &self.stopped_by {
            None | Some(StoppedBy::Nothing | StoppedBy::MostOfTime(..) | StoppedBy::MostOfRequests(_)) => {
                self.verdict.as_ref().is_some_and(|verdict| verdict.answer == LimitAnswer::No)
            }
            Some(_) => true,
        }
    }

    /// What a finding advises, unless that contradicts the answer: where something stopped the load, advice for more of it is left out.
    pub fn advice(&self, finding: &Finding) -> Option<String> {
        if !self.is_stopped() {
            return finding.advice();
        }
        match finding {
            Finding::StepLine(StepLine::AllMeet { .. }) => None,
            Finding::Ceiling(ceiling) if matches!(ceiling.limit, crate::Limit::NotReached { .. }) => None,
            Finding::RateNotReached(_) => Some("Request a lower rate; response times include the queue.".to_owned()),
            other => other.advice(),
        }
    }
}

impl Confidence {
    /// As it stands in brackets.
    pub(super) fn in_brackets(self) -> &'static str {
        match self {
            Self::Uncertain => "uncertain",
            Self::Likely => "likely",
            Self::AlmostCertain => "near certain",
        }
    }
}

impl Carried {
    /// The rate first, then the latency that it is within, then the load.
    fn result(&self, value: Option<QuantileValue>) -> String {
        let series = of_series(&self.series);
        let rate = self.rate_of_production();
        let within = self.latency.as_ref().map_or_else(String::new, Latency::in_result);
        let seen = value.map(|value| format!("{}{value}", self.quantile()));
        let load = match (&self.load, seen) {
            (Some(load), Some(seen)) => format!(" ({load}: {seen})"),
            (Some(load), None) => format!(" ({load})"),
            (None, Some(seen)) => format!(" ({seen})"),
            (None, None) => String::new(),
        };
        match &self.claim {
            Claim::Most { not_per_s: Some(not), .. } => {
                let not = match &self.multiple {
                    Some(Multiple { not_times: Some(not_times), .. }) => format!("{} times", multiple(*not_times)),
                    _ => number(*not),
                };
                format!("{rate}{within}{load}{series}, but not {not}")
            }
            Claim::Most { missed_below, .. } if missed_below.is_empty() => format!("{rate}{within}{load}{series}"),
            Claim::Most { missed_below, .. } => {
                format!("{rate}{within}{load}{series}, although {} did not", crate::message::list(missed_below))
            }
            Claim::AtLeast => format!("at least {rate}{within}{load}{series}"),
            Claim::LessThan { value, why } => {
                let at = self.load.as_ref().map_or_else(String::new, |load| format!(" with {load}"));
                let value = value.map(|value| format!("it is {value}")).or_else(|| why.clone());
                let why = value.map_or_else(String::new, |value| format!(": {value}{at} already"));
                format!("less than {rate}{within}{series}{why}")
            }
            Claim::Unclear => format!("not clear: {rate}{load}{series} was{within}, smaller loads were not"),
            Claim::Sustained { burst, lasted, may_be_write_cache } => {
                let cache = if *may_be_write_cache { " or a full write cache" } else { "" };
                format!("{rate} sustained, after {burst} for {lasted}: exhausted burst credit{cache}")
            }
            Claim::Steady { from: Nanos(0) } => format!("{rate}{within}{load}, steady from the start"),
            Claim::Steady { from } => format!("{rate}{within}{load}, steady after {from}"),
            Claim::Seen => format!("{rate}{within}{load}{series}"),
        }
    }

    /// The percentile that its latency is of, such as `p99 `; empty where there are several.
    fn quantile(&self) -> String {
        match &self.latency {
            Some(Latency::Within { what, .. }) => format!("{} ", what.split(' ').next().unwrap_or_default()),
            _ => String::new(),
        }
    }
}

impl Latency {
    /// As it stands behind a rate.
    fn in_result(&self) -> String {
        match self {
            // The percentile of all operations goes without saying.
            Self::Within { what, limit } => match what.trim_end_matches(" of response time") {
                what if what.contains(' ') => format!(" with {what} within {limit}"),
                what => format!(" within {what} {limit}"),
            },
            Self::WithinAll(limits) => {
                let limits: Vec<String> = limits.iter().map(|(what, limit)| format!("{what} within {limit}")).collect();
                format!(" with {}", limits.join(" and "))
            }
            other => other.words(),
        }
    }
}

/// The judged percentile in the step that is reported.
fn line_value(findings: &[Finding], carried: &Carried) -> Option<QuantileValue> {
    if !matches!(carried.latency, Some(Latency::Within { .. })) || matches!(carried.claim, Claim::LessThan { .. }) {
        return None;
    }
    findings.iter().find_map(|finding| {
        let (step, value) = match finding {
            Finding::StepLine(StepLine::Between { passing: point, .. })
            | Finding::StepLine(StepLine::OnlyAbove { passing: point, .. })
            | Finding::StepLine(StepLine::AllMeet { most: point, .. }) => (&point.step, Some(point.value)),
            Finding::OpenLoadLine(line) => {
                let point = line.passing.as_ref()?;
                (&point.step, point.value)
            }
            _ => return None,
        };
        value.filter(|_| Some(step) == carried.step.as_ref())
    })
}

/// Up to which load to plan: below the knee, if that comes before what is carried.
fn plan_for_words(run: &Run, findings: &[Finding], carried: &Carried) -> Option<String> {
    if !matches!(carried.claim, Claim::Most { .. } | Claim::AtLeast) {
        return None;
    }
    findings.iter().find_map(|finding| match finding {
        Finding::RateKnee(knee) if knee.series == carried.series && knee.per_s <= carried.per_s * AS_HIGH => {
            Some(format!("less than {}: near the knee, small bursts make long queues", knee.words.rate(knee.per_s)))
        }
        Finding::Knee(Knee { series, bound, words, .. }) if *series == carried.series => {
            let rate = rate_at(run, series, *bound, carried.unit).filter(|rate| *rate <= carried.per_s)?;
            let (rate, unit) = (number(in_three_digits(rate)), carried.unit.words());
            Some(format!("up to {rate} {unit} (knee at {bound:.1} {}); beyond it, mainly latency grows", words.slots()))
        }
        _ => None,
    })
}

/// The rate of a closed loop at so many sessions, on a straight line between the loads on either side, as charts mark the knee.
fn rate_at(run: &Run, series: &str, sessions: f64, unit: Unit) -> Option<f64> {
    let series = Series::of(run).into_iter().find(|known| known.name == series)?;
    let rate = |step: &Step| match unit {
        Unit::Reads => Figures(step).value(Metric::Reads),
        Unit::Requests | Unit::Operations | Unit::Transactions => Figures(step).operations_per_s(),
        Unit::BufferMisses | Unit::Megabytes => None,
    };
    let point = |step: &&Step| Some((f64::from(step.load.sessions?), rate(step)?));
    let points: Vec<(f64, f64)> = series.steps.iter().filter_map(point).collect();
    let above = points.iter().position(|(at, _)| *at >= sessions)?;
    let (at, rate) = points[above];
    let below = above.checked_sub(1).map(|below| points[below]).filter(|(below, _)| *below < at);
    Some(below.map_or(rate, |(below, least)| least + (rate - least) * (sessions - below) / (at - below)))
}

/// As finely as a rate between two loads is known.
fn in_three_digits(value: f64) -> f64 {
    let unit = 10_f64.powf(value.abs().max(1.0).log10().floor() - 2.0);
    (value / unit).floor() * unit
}

/// What published limits let expect, and how what was measured compares.
fn expected(run: &Run) -> Option<String> {
    let Tagged::Platform(platform) = tagged_platform(run, Catalogue::in_reports()) else { return None };
    let found = Expected::of_run(run, &platform)?;
    let sustained = found.cold.sustained()?.per_s;
    let (all, name) = (group_thousands(sustained.floor()), platform.name());
    let measured = group_thousands(found.per_s);
    let most =
        found.warm.as_ref().and_then(|warm| warm.sustained()).map_or(sustained, |warm| warm.per_s.max(sustained));
    let most = found.cold.burst().map_or(most, |burst| burst.per_s.max(most));
    let times = found.per_s / sustained;
    let compared = match () {
        () if (times - 1.0).abs() <= AS_EXPECTED => format!("measured {measured}, as expected"),
        () if times < 1.0 => format!("measured {measured}, {} % of that", percent(times)),
        () if found.per_s <= most * (1.0 + AS_EXPECTED) => {
            format!("measured {measured}, {times:.1} times that, as its cache or burst credit allows")
        }
        () => format!("measured {measured}, {times:.1} times that: check the tags"),
    };
    Some(format!("{all} requests/s for {name} as published: {compared}"))
}

/// The step that the answer rests on.
fn answered_in<'a>(run: &'a Run, opening: &'a Opening) -> Option<&'a str> {
    if opening.check.is_some() {
        let asked = run.steps.iter().find(|step| step.label.starts_with(ASKED));
        return asked.map(|step| step.label.as_str());
    }
    opening.carries.as_ref()?.step.as_deref()
}

/// What sessions of a database waited for most in the step that is reported, else in the largest load.
fn top_waits(run: &Run, label: Option<&str>) -> Option<String> {
    if operations_are_requests(run) {
        return None;
    }
    let largest = || measured(run).max_by_key(|step| step.load.sessions);
    let step = measured(run).find(|step| Some(step.label.as_str()) == label).or_else(largest)?;
    let named = |(what, share): (String, Option<f64>)| match share {
        Some(share) => format!("{what} {} %", percent(share)),
        None => what,
    };
    let shown = |waits: Vec<(String, Option<f64>)>, of: &str| {
        let waits: Vec<String> = waits.into_iter().take(TOP_WAITS).map(named).collect();
        (!waits.is_empty()).then(|| format!("{}{of}", waits.join(", ")))
    };
    let figures = Figures(step);
    if is_on_server(step) && figures.db_time_ns().is_none() {
        let served = Served::of(run, step);
        let doing = served.doing();
        let all: f64 = doing.values().sum();
        let mut order: Vec<(&str, f64)> = doing.iter().map(|(what, sessions)| (&**what, *sessions)).collect();
        order.sort_by(|left, right| right.1.total_cmp(&left.1).then(left.0.cmp(right.0)));
        let order = order.into_iter().filter(|(_, sessions)| *sessions > 0.0);
        let shares = order.map(|(what, sessions)| (what.to_owned(), Some(sessions / all)));
        return shown(shares.collect(), " of session samples");
    }
    let is_of_db_time = figures.db_time_ns().is_some();
    let share = |event: &str| match is_of_db_time {
        true => figures.share_of_db_time(event),
        false => figures.share_of_waiting(event),
    };
    let cpu = figures.cpu_share_of_db_time().map(|share| ("DB CPU".to_owned(), Some(share)));
    let waits = foreground_waits(step).into_iter().map(|wait| (wait.event.clone(), share(&wait.event)));
    let mut waits: Vec<(String, Option<f64>)> = waits.chain(cpu).collect();
    // Shares of what was not wholly counted mean nothing.
    if waits.iter().any(|(_, share)| share.is_some_and(|share| share > WHOLE)) {
        return None;
    }
    waits.retain(|(_, share)| share.is_none_or(|share| share > 0.0));
    waits.sort_by(|left, right| right.1.unwrap_or(0.0).total_cmp(&left.1.unwrap_or(0.0)));
    shown(waits, if is_of_db_time { " of DB time" } else { " of waiting time" })
}

/// What to do next: about what makes the result invalid, about what was not met, or about what limits the load.
fn next(opening: &Opening, findings: &[Finding]) -> Option<String> {
    let of_doubt = opening.doubt.as_ref().and_then(|doubt| {
        findings.iter().find(|finding| finding.sentence() == doubt.sentence).and_then(|it| opening.advice(it))
    });
    let of_verdict =
        || findings.iter().find(|finding| matches!(finding, Finding::Verdict(_))).and_then(|it| opening.advice(it));
    let of_stop = || match opening.stopped_by.as_ref()? {
        StoppedBy::Ceiling(ceiling) => crate::Message::advice(ceiling),
        StoppedBy::Sessions(stops, _) => Some(stops.advice()),
        _ => None,
    };
    let of_answer = || {
        let answers = findings.iter().filter(|finding| finding.severity() == crate::Severity::Answer);
        answers.filter(|finding| !matches!(finding, Finding::RateKnee(_))).find_map(|finding| opening.advice(finding))
    };
    if opening.check.is_some() {
        return None;
    }
    of_doubt.or_else(of_verdict).or_else(of_stop).or_else(of_answer)
}

fn of_verdict(run: &Run, verdict: &RunVerdict) -> Vec<LimitLine> {
    let mut lines: Vec<LimitLine> = verdict.limits.iter().map(LimitVerdict::line).collect();
    let label = verdict.limits.iter().find_map(|limit| limit.step.as_ref());
    let step = measured(run).find(|step| Some(&step.label) == label);
    let share = step.and_then(|step| Figures(step).failed_share());
    let allowed = verdict.limits.iter().filter_map(|limit| limit.target.errors).reduce(f64::min);
    if let (Some(share), Some(allowed)) = (share, allowed)
        && (share > 0.0 || allowed > 0.0)
    {
        let answer = if share <= allowed { LimitAnswer::Yes } else { LimitAnswer::No };
        let in_percent = |share: f64| format!("{} %", percent(share).trim_end_matches(".0"));
        lines.push(LimitLine {
            what: "failed operations".to_owned(),
            limit: in_percent(allowed),
            measured: Some(in_percent(share)),
            answer,
            because: None,
        });
    }
    lines
}

impl LimitVerdict {
    fn line(&self) -> LimitLine {
        let because = match self.because {
            Because::Latency | Because::Nothing | Because::Errors(_) => None,
            Because::FellBehind => Some("the requested rate was not reached".to_owned()),
            Because::NotEnded { operations, .. } => {
                Some(format!("{} operations did not end", group_thousands(operations as f64)))
            }
            Because::NotSteady => Some("it was not steady".to_owned()),
            Because::SentLate { .. } => Some("this machine sent late".to_owned()),
            Because::Crowded(by) => Some(by.words()),
            Because::GeneratorBusy => Some("the load generator was the limit".to_owned()),
            Because::TooWide => Some("reported in buckets too wide to judge".to_owned()),
            Because::Part => Some("jobs ran at the same time".to_owned()),
        };
        // What failed has no latency that meets anything.
        let failed = matches!(self.because, Because::Errors(_));
        let is_within = self.value.is_some_and(|value| value.ns <= self.target.limit);
        LimitLine {
            what: self.target.what(),
            limit: self.target.limit.to_string(),
            measured: self.value.map(|value| value.to_string()),
            answer: if failed && is_within { LimitAnswer::Yes } else { self.answer },
            because,
        }
    }
}

fn of_check(check: &Check) -> Vec<LimitLine> {
    let is_known = !matches!(check.answer, Carries::Unknown(_));
    let of = |kind: &Reached| {
        let within = kind.within?;
        let answer = match kind.value {
            Some(_) if !is_known => LimitAnswer::NoVerdict,
            Some(_) if kind.is_late() => LimitAnswer::No,
            Some(_) => LimitAnswer::Yes,
            None => LimitAnswer::NoVerdict,
        };
        Some(LimitLine {
            what: format!("{} of {}", kind.quantile_name(), kind.kind.noun()),
            limit: within.limit.to_string(),
            measured: kind.value.map(|value| value.to_string()),
            answer,
            because: None,
        })
    };
    let mut lines: Vec<LimitLine> = check.kinds.iter().filter_map(of).collect();
    if let Carries::No(crate::check::Shortfall::Errors { count }) = &check.answer {
        lines.push(LimitLine {
            what: "failed operations".to_owned(),
            limit: "0".to_owned(),
            measured: Some(group_thousands(*count as f64)),
            answer: LimitAnswer::No,
            because: None,
        });
    }
    lines
}

/// Rate, latency, limit and headroom.
fn tiles(opening: &Opening, limits: &[LimitLine], value: Option<QuantileValue>) -> Vec<Tile> {
    let tile = |name, value: String, note: String| Tile { name, value, note };
    let unknown = || "not known".to_owned();
    let (rate, latency) = match (&opening.carries, &opening.check) {
        (_, Some(check)) => {
            let Some(first) = check.kinds.first() else { return Vec::new() };
            let rate = first.per_s.unwrap_or(first.asked_per_s);
            let rate = match first.kind {
                crate::check::Kind::Scan => tile("Rate", number(rate / 1e6), "MB/s of scans".to_owned()),
                kind => tile("Rate", number(rate), format!("{}/s", kind.noun())),
            };
            let limit = first.within.map_or_else(String::new, |within| format!(", limit {}", within.limit));
            let value = first.value.map_or_else(unknown, |value| value.to_string());
            (rate, tile("Latency", value, format!("{} of {}{limit}", first.quantile_name(), first.kind.noun())))
        }
        (Some(carried), None) => {
            let claim = match carried.claim {
                Claim::AtLeast => "at least ",
                Claim::LessThan { .. } => "less than ",
                _ => "",
            };
            let load = carried.load.as_ref().map_or_else(String::new, |load| format!(", {load}"));
            let rate =
                tile("Rate", format!("{claim}{}", number(carried.per_s)), format!("{}{load}", carried.unit.words()));
            let latency = match (&carried.latency, value, limits.first()) {
                (_, None, Some(LimitLine { what, limit, measured: Some(measured), .. })) => {
                    tile("Latency", measured.clone(), format!("{what}, limit {limit}"))
                }
                (Some(Latency::Within { what, limit }), Some(value), _) => {
                    tile("Latency", value.to_string(), format!("{what}, limit {limit}"))
                }
                (Some(Latency::Within { what, limit }), None, _) => match &carried.claim {
                    Claim::LessThan { value: Some(value), .. } => {
                        tile("Latency", value.to_string(), format!("{what}, limit {limit}"))
                    }
                    _ => tile("Latency", unknown(), format!("{what}, limit {limit}")),
                },
                (Some(Latency::Seen { what, value, .. }), ..) => tile("Latency", value.to_string(), what.clone()),
                _ => tile("Latency", unknown(), String::new()),
            };
            (rate, latency)
        }
        (None, None) => return Vec::new(),
    };
    let limit = match opening.check.as_ref().map(Check::stopped_words) {
        Some(stopped) => tile("Limit", stopped, String::new()),
        None => match &opening.stopped_by {
            None => tile("Limit", unknown(), String::new()),
            Some(by) => {
                let (value, note) = by.in_tile();
                tile("Limit", value, note)
            }
        },
    };
    let room = opening.check.as_ref().and_then(|check| check.room.as_ref());
    let headroom = match (room.and_then(|room| Some((room.carried?, room.above))), room) {
        (Some((times, above)), _) => {
            let least = if above.is_none() { "at least " } else { "" };
            tile("Headroom", format!("{least}{:.1} times", times), "the requested load".to_owned())
        }
        (None, Some(_)) => tile("Headroom", "none".to_owned(), "the requested load was not sustained".to_owned()),
        (None, None) => headroom(opening, limits, value),
    };
    vec![rate, latency, limit, headroom]
}

/// What is left of a latency limit.
fn headroom(opening: &Opening, limits: &[LimitLine], value: Option<QuantileValue>) -> Tile {
    let of_verdict = || {
        let verdict = opening.verdict.as_ref()?;
        let shares = verdict.limits.iter().filter_map(|limit| Some((limit.value?.ns, limit.target.limit)));
        shares.max_by(|a, b| share(*a).total_cmp(&share(*b)))
    };
    let of_line = || match &opening.carries.as_ref()?.latency {
        Some(Latency::Within { limit, .. }) => Some((value?.ns, *limit)),
        _ => None,
    };
    let is_missed = limits.iter().any(|line| line.answer == LimitAnswer::No);
    match of_verdict().or_else(of_line) {
        _ if is_missed => Tile { name: "Headroom", value: "none".to_owned(), note: "a limit was exceeded".to_owned() },
        Some(pair) if share(pair) <= 1.0 => Tile {
            name: "Headroom",
            value: format!("{:.0} %", (1.0 - share(pair)) * 100.0),
            note: "of the latency limit is left".to_owned(),
        },
        _ => Tile { name: "Headroom", value: "not known".to_owned(), note: "no limit to compare with".to_owned() },
    }
}

fn share((value, limit): (Nanos, Nanos)) -> f64 {
    value.0 as f64 / limit.0.max(1) as f64
}
