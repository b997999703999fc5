//! Yes or no: whether a run kept the latency limits that were asked of it.

use crate::Rule;
use serde::Serialize;

use super::at_once::{is_of_jobs, levels};
use super::load_line::Verdicts;
use super::load_line::judge::{
    Crowd, crowd, deciding_lateness_ns, ends_too_seldom, fails_too_often, is_generator_busy, leaves_open, outcome,
};
use super::load_line::open_line::NOT_SHARED;
use super::measured::is_one_load;
use super::opening::{Carried, Claim, at_load, of_lines};
use super::sending::OUT_OF_QUOTA;
use super::{
    Figures, Finding, LatencyTarget, Message, QuantileValue, Series, Subject, ThreadsFlag, VerdictOutcome, Vocabulary,
    is_measured, measured, sending,
};
use model::record::{Run, Step};
use model::units::{Nanos, group_thousands, percent};

/// The answer to a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LimitAnswer {
    /// It was kept.
    Yes,
    /// It was not kept.
    No,
    /// What was measured does not say.
    NoVerdict,
}

/// Whether a run kept its limits.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct RunVerdict {
    /// Yes only if one and the same load kept all of them.
    pub answer: LimitAnswer,
    /// Each limit by itself, in the order in which they were asked for.
    pub limits: Vec<LimitVerdict>,
    /// The load in words, after `at` or `with`, of a run of one load.
    pub load: Option<String>,
    /// Of a run of several loads, the largest that keeps every limit.
    pub carries: Option<Carried>,
    /// By which flag the load generator is given more threads.
    #[serde(skip)]
    pub threads: ThreadsFlag,
}

/// Whether one limit was kept.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct LimitVerdict {
    /// The limit, its subject said.
    pub target: LatencyTarget,
    /// The answer.
    pub answer: LimitAnswer,
    /// Label of the step that shows it; absent where none does.
    pub step: Option<String>,
    /// The judged quantile in that step.
    pub value: Option<QuantileValue>,
    /// What decided.
    pub because: Because,
}

/// What decided over a limit.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Because {
    /// The quantile itself.
    Latency,
    /// The rate was not carried: less was finished than fell due, or a queue grew.
    FellBehind,
    /// Too many operations failed: a share, 0 to 1.
    Errors(f64),
    /// Too many operations never ended. Whether they missed the limit is known only where they were waited for longer than it.
    NotEnded {
        /// How many.
        operations: u64,
        /// How long after the window they were waited for.
        #[serde(rename = "waited_ns")]
        waited: Nanos,
    },
    /// Throughput or latency changed too much within the window.
    NotSteady,
    /// The load generator sent late although it had slots free.
    SentLate {
        /// 99th percentile of the time from due to sent.
        #[serde(rename = "lag_p99_ns")]
        lag_p99: Nanos,
        /// The judged quantile of service times, which the lateness is not in, where that keeps the limit.
        service: Option<QuantileValue>,
    },
    /// The machine had no idle processor, and not by the load generator.
    Crowded(Crowd),
    /// The load generator had no processor time left, or was near what it reaches without a device.
    GeneratorBusy,
    /// Nothing of what is judged happened.
    Nothing,
    /// Another program reported it in buckets too wide to say.
    TooWide,
    /// Jobs of another program ran at the same time, and what they did together is not known.
    Part,
}

impl RunVerdict {
    /// The verdict on `limits`, from the run and the `findings` that were made by them; absent where there is no limit.
    pub(super) fn of(run: &Run, findings: &[Finding], limits: &[LatencyTarget]) -> Option<Self> {
        if limits.is_empty() {
            return None;
        }
        if !is_one_load(run) {
            return Some(Self::of_lines(run, findings, limits));
        }
        let limits: Vec<LimitVerdict> = limits.iter().map(|limit| LimitVerdict::of_one_load(run, limit)).collect();
        let has = |answer| limits.iter().any(|limit| limit.answer == answer);
        let answer = match () {
            () if has(LimitAnswer::No) => LimitAnswer::No,
            () if has(LimitAnswer::NoVerdict) => LimitAnswer::NoVerdict,
            () => LimitAnswer::Yes,
        };
        let shown = limits.iter().find_map(|limit| limit.step.as_ref());
        let step = measured(run).find(|step| Some(&step.label) == shown).or_else(|| measured(run).next());
        let mut load = step.map_or_else(String::new, |step| at_load(run, step));
        let failed = step.and_then(|step| Figures(step).failed_share()).filter(|share| *share > 0.0);
        if answer == LimitAnswer::Yes
            && let Some(share) = failed
        {
            load.push_str(&format!("; {} % failed", percent(share)));
        }
        Some(Self { answer, load: Some(load), limits, carries: None, threads: ThreadsFlag::of(run) })
    }

    /// Of several loads the answer is what the load line says.
    fn of_lines(run: &Run, findings: &[Finding], limits: &[LatencyTarget]) -> Self {
        let carries = of_lines(run, findings, limits);
        let limits: Vec<LimitVerdict> = limits
            .iter()
            .map(|limit| LimitVerdict::of_line(run, of_lines(run, findings, std::slice::from_ref(limit)), limit))
            .collect();
        let is_missed = limits.iter().any(|limit| limit.answer == LimitAnswer::No);
        let answer = match carries.as_ref().map(|carries| &carries.claim) {
            Some(Claim::Most { .. } | Claim::AtLeast) => LimitAnswer::Yes,
            Some(Claim::LessThan { .. }) if is_missed => LimitAnswer::No,
            _ => LimitAnswer::NoVerdict,
        };
        Self { answer, limits, load: None, carries, threads: ThreadsFlag::of(run) }
    }

    /// The answer without its full stop, as it stands after `Yes: `. `carries` is what a run of several loads carries.
    pub(super) fn words(&self, carries: Option<&Carried>) -> String {
        if let Some(load) = &self.load {
            // What decided comes first.
            let (decisive, others): (Vec<_>, Vec<_>) =
                self.limits.iter().partition(|limit| limit.answer == self.answer);
            let clauses: Vec<String> = decisive.into_iter().chain(others).map(LimitVerdict::words).collect();
            return format!("{}{load}", clauses.join("; "));
        }
        let unknown = self.limits.iter().find(|limit| limit.answer == LimitAnswer::NoVerdict);
        match (carries, unknown) {
            (Some(carries), _) if self.answer != LimitAnswer::NoVerdict || carries.claim == Claim::Unclear => {
                carries.judged_words()
            }
            (_, Some(limit)) if matches!(limit.because, Because::Nothing | Because::TooWide) => limit.words(),
            (_, Some(limit)) => format!("at the least load already, {}", limit.words()),
            (..) => "no load was seen to keep every limit".to_owned(),
        }
    }

    /// Whether a doubt has been taken into account: it is why there is no answer, or the very answer.
    pub(super) fn says(&self, doubt: &Finding) -> bool {
        if self.load.is_none() {
            return false;
        }
        let because = |wanted: fn(&Because) -> bool| self.limits.iter().any(|limit| wanted(&limit.because));
        match doubt {
            // A limit that is kept is kept in spite of them: response times contain the lateness.
            Finding::SentLate(_) | Finding::ClientSaturated(_) => true,
            Finding::RateNotReached(_) => because(|why| {
                matches!(
                    why,
                    Because::FellBehind | Because::SentLate { .. } | Because::Crowded(_) | Because::GeneratorBusy
                )
            }),
            Finding::OperationErrors(_) => {
                let may_fail = |limit: &LimitVerdict| limit.target.errors.is_some_and(|share| share > 0.0);
                because(|why| matches!(why, Because::Errors(_))) || self.limits.iter().all(may_fail)
            }
            Finding::NotEnded(_) => because(|why| matches!(why, Because::NotEnded { .. })),
            // A step of a load line whose rate swings may still keep the limit.
            Finding::NotSteady(_) => {
                let is_why = |limit: &LimitVerdict| {
                    matches!(limit.because, Because::NotSteady) && limit.answer == LimitAnswer::NoVerdict
                };
                self.limits.iter().any(is_why)
            }
            _ => false,
        }
    }
}

impl LimitVerdict {
    /// By the load line that one limit draws; where it draws none, by the least load.
    fn of_line(run: &Run, line: Option<Carried>, limit: &LatencyTarget) -> Self {
        let least = Series::of(run).first().and_then(|series| series.steps.first().copied());
        let label = line.as_ref().and_then(|line| line.step.as_ref());
        let shown: Vec<&Step> = match label {
            Some(label) => measured(run).filter(|step| step.label == *label).collect(),
            None => least.into_iter().collect(),
        };
        let judged = Self::of_steps(run, &shown, limit);
        let answer = match line.map(|line| line.claim) {
            Some(Claim::Most { .. } | Claim::AtLeast) => LimitAnswer::Yes,
            Some(Claim::LessThan { .. }) => judged.answer,
            _ => LimitAnswer::NoVerdict,
        };
        Self { answer, ..judged }
    }

    /// Of one load, be it in several steps.
    fn of_one_load(run: &Run, limit: &LatencyTarget) -> Self {
        if !is_of_jobs(run) {
            return Self::of_steps(run, &measured(run).collect::<Vec<_>>(), limit);
        }
        // Jobs at the same time are no repeats that vote: what the limit asks for is what they did together.
        let levels = levels(run);
        let is_known = levels.iter().all(|level| level.is_whole);
        let steps: Vec<&Step> = levels.iter().map(|level| &*level.step).filter(|step| is_measured(step)).collect();
        let judged = Self::of_steps(run, &steps, limit);
        if is_known { judged } else { Self { answer: LimitAnswer::NoVerdict, because: Because::Part, ..judged } }
    }

    /// Repeats of one load are decided by majority.
    fn of_steps(run: &Run, steps: &[&Step], limit: &LatencyTarget) -> Self {
        let target = limit.of_run(run);
        let judged: Vec<(&Step, VerdictOutcome)> =
            steps.iter().filter_map(|step| Some((*step, outcome(run.workload(), step, &target)?))).collect();
        let mut verdicts = Verdicts::default();
        judged.iter().for_each(|(step, outcome)| verdicts.add_step(1.0, *outcome, step));
        let passes = verdicts.passes(1.0);
        let count = |outcome| judged.iter().filter(|(_, known)| *known == outcome).count();
        let mut wanted = vec![VerdictOutcome::Failed, VerdictOutcome::GeneratorBound, VerdictOutcome::Unsteady];
        wanted.sort_by_key(|outcome| std::cmp::Reverse(count(*outcome)));
        if passes == Some(true) {
            wanted = vec![VerdictOutcome::Passed];
        }
        let shown = wanted.iter().find_map(|wanted| judged.iter().find(|(_, outcome)| outcome == wanted));
        let Some((step, outcome)) = shown else {
            let is_reported = steps.iter().any(|step| target.quantile_value(run.workload(), step).is_some());
            let because = if is_reported { Because::TooWide } else { Because::Nothing };
            return Self { target, answer: LimitAnswer::NoVerdict, step: None, value: None, because };
        };
        let value = target.quantile_value(run.workload(), step);
        let is_within = value.is_some_and(|value| value.ns <= target.limit);
        let because = Because::of(step, &target, *outcome, is_within);
        let answer = match outcome {
            VerdictOutcome::Passed => LimitAnswer::Yes,
            VerdictOutcome::GeneratorBound => LimitAnswer::NoVerdict,
            VerdictOutcome::Failed if because.is_unknown(target.limit) => LimitAnswer::NoVerdict,
            VerdictOutcome::Failed => LimitAnswer::No,
            // Beyond the limit over the whole window is beyond it, steady or not.
            VerdictOutcome::Unsteady if is_within => LimitAnswer::NoVerdict,
            VerdictOutcome::Unsteady => LimitAnswer::No,
        };
        Self { target, answer, step: Some(step.label.clone()), value, because }
    }

    /// What is to be said about it, without a full stop.
    pub fn words(&self) -> String {
        let (what, limit) = (self.target.what(), self.target.limit);
        let is_within = |value: QuantileValue| match (self.answer, self.because) {
            (LimitAnswer::Yes, _) => true,
            (LimitAnswer::No, Because::Latency) => false,
            _ => value.ns <= limit,
        };
        let value = match self.value {
            Some(value) if is_within(value) => format!("{what} is {value}, within {limit}"),
            Some(value) => format!("{what} is {value}, beyond {limit}"),
            None => format!("{what} is not known, limit {limit}"),
        };
        match self.because {
            Because::Latency => value,
            Because::FellBehind => format!("the rate was not reached: {value}"),
            Because::Errors(share) => match self.target.errors {
                Some(allowed) if allowed > 0.0 => {
                    format!("{} % failed, {} % may: {value}", percent(share), percent(allowed))
                }
                _ => format!("{} % failed: {value}", percent(share)),
            },
            Because::NotEnded { operations, waited } => {
                format!("{} had not ended {waited} after the window: {value}", group_thousands(operations as f64))
            }
            Because::NotSteady => format!("it was not steady: {value} over the whole window"),
            Because::SentLate { lag_p99, service } => {
                let service = service.map_or_else(String::new, |service| {
                    let quantile = self.target.quantile_name();
                    format!("; {quantile} of service time, without that, is {service}")
                });
                format!("this machine sent late (p99 {lag_p99}): {value}{service}")
            }
            Because::Crowded(by) => format!("{}: {value}", by.words()),
            Because::GeneratorBusy => format!("the load generator was at its own limit: {value}"),
            Because::Nothing => match &self.target.subject {
                Some(Subject::Event(event)) => format!("no session waited for `{event}`, limit {limit}"),
                Some(subject) => format!("nothing finished that has a {subject}, limit {limit}"),
                None => format!("nothing finished, limit {limit}"),
            },
            Because::Part => format!("jobs ran at the same time, and what they did together is not known: {value}"),
            Because::TooWide => format!("times were reported in buckets too wide to judge {}", self.target),
        }
    }
}

impl Because {
    fn of(step: &Step, target: &LatencyTarget, outcome: VerdictOutcome, is_within: bool) -> Self {
        match outcome {
            VerdictOutcome::Passed => Self::Latency,
            VerdictOutcome::GeneratorBound => by_the_generator(step, target),
            VerdictOutcome::Failed => why_failed(step, target, is_within),
            VerdictOutcome::Unsteady => Self::NotSteady,
        }
    }

    /// Whether it says nothing of a limit: what was waited for no longer than that may have missed it or not.
    fn is_unknown(&self, limit: Nanos) -> bool {
        matches!(self, Self::NotEnded { waited, .. } if *waited <= limit)
    }

    /// What decided, as a clause; `None` where that is the value itself.
    fn clause(&self, work: &str) -> Option<String> {
        Some(match self {
            Self::Latency | Self::Nothing | Self::TooWide | Self::Part => return None,
            Self::FellBehind => "the rate was not reached".to_owned(),
            Self::Errors(share) => format!("{} % of {work} failed", percent(*share)),
            Self::NotEnded { operations, waited } => {
                format!("{} {work} had not ended {waited} after the window", group_thousands(*operations as f64))
            }
            Self::NotSteady => "it was not steady".to_owned(),
            Self::SentLate { lag_p99, .. } => format!("this machine sent late (p99 {lag_p99})"),
            Self::Crowded(by) => by.words(),
            Self::GeneratorBusy => "the load generator was at its own limit".to_owned(),
        })
    }
}

/// Why a step that came out so misses a limit that its value is within; `None` where the value is what decides.
pub(super) fn missed_within(
    step: &Step,
    target: &LatencyTarget,
    outcome: VerdictOutcome,
    value: QuantileValue,
    work: &str,
) -> Option<String> {
    let is_missed = outcome != VerdictOutcome::Passed && value.ns <= target.limit;
    is_missed.then(|| Because::of(step, target, outcome, true).clause(work)).flatten()
}

fn by_the_generator(step: &Step, target: &LatencyTarget) -> Because {
    match (crowd(step), deciding_lateness_ns(step, target)) {
        _ if is_generator_busy(step) => Because::GeneratorBusy,
        (Some(by), _) => Because::Crowded(by),
        (None, Some(lag)) => {
            let times = Subject::Service(kind_of(target)).times(step).filter(|_| judges_response(target));
            let service = times.and_then(|times| QuantileValue::of(&times, target.quantile));
            Because::SentLate { lag_p99: Nanos(lag), service: service.filter(|value| value.ns <= target.limit) }
        }
        (None, None) => Because::GeneratorBusy,
    }
}

fn judges_response(target: &LatencyTarget) -> bool {
    matches!(target.subject, Some(Subject::Response(_)) | None)
}

fn kind_of(target: &LatencyTarget) -> Option<String> {
    match &target.subject {
        Some(Subject::Response(kind) | Subject::Service(kind)) => kind.clone(),
        Some(Subject::Event(_)) | None => None,
    }
}

fn why_failed(step: &Step, target: &LatencyTarget, is_within: bool) -> Because {
    match Figures(step).failed_share().filter(|_| fails_too_often(step, target)) {
        Some(share) if sending::behind(step).is_none() => Because::Errors(share),
        _ if sending::behind(step).is_some() => Because::FellBehind,
        _ => match step.unended.filter(|_| is_within && (ends_too_seldom(step, target) || leaves_open(step, target))) {
            Some(late) => Because::NotEnded { operations: late.operations, waited: Nanos(late.waited_ns) },
            None if is_within => Because::FellBehind,
            None => Because::Latency,
        },
    }
}

impl LimitAnswer {
    /// As sentences begin.
    pub fn word(self) -> &'static str {
        match self {
            Self::Yes => "Yes",
            Self::No => "No",
            Self::NoVerdict => "No verdict",
        }
    }
}

impl Message for RunVerdict {
    fn rule(&self) -> Rule {
        Rule::LimitsVerdict
    }

    fn sentence(&self) -> String {
        format!("{}: {}.", self.answer.word(), self.words(self.carries.as_ref()))
    }

    fn advice(&self) -> Option<String> {
        let (because, words) = self.limits.iter().find(|limit| limit.answer == self.answer).map(|limit| {
            let is_sessions = matches!(limit.target.subject, Some(Subject::Event(_)));
            (limit.because, if is_sessions { Vocabulary::Sessions } else { Vocabulary::Requests })
        })?;
        let advice = match (self.answer, because) {
            (LimitAnswer::NoVerdict, Because::Crowded(Crowd::Hypervisor)) => NOT_SHARED,
            (LimitAnswer::NoVerdict, Because::SentLate { .. } | Because::Crowded(_) | Because::GeneratorBusy)
                if self.threads == ThreadsFlag::Quota =>
            {
                OUT_OF_QUOTA
            }
            (LimitAnswer::NoVerdict, Because::SentLate { .. } | Because::Crowded(_) | Because::GeneratorBusy) => {
                return Some(format!(
                    "Run it again when nothing else uses this machine{}.",
                    self.threads.or(", or with ")
                ));
            }
            (LimitAnswer::No, Because::Errors(_)) => {
                "See why they failed; if so many may, say so with `--errors PERCENT`."
            }
            (LimitAnswer::NoVerdict, Because::NotEnded { .. }) => {
                "Wait longer for them after the window (`--drain`); batches are given up after 2 s (`--send statement`)."
            }
            (LimitAnswer::NoVerdict, Because::NotSteady) => "Run longer, or with more warm-up, and judge that.",
            (LimitAnswer::NoVerdict, Because::Nothing) if words == Vocabulary::Sessions => {
                "Make sure that it happens, or judge something else, such as `response:p99=5ms`."
            }
            _ => return None,
        };
        Some(advice.to_owned())
    }
}

#[cfg(test)]
mod tests;
