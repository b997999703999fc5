//! The latency that a load must not exceed.

use model::record::{Histogram, Interval, OperationStats, Outstanding, Run, Step, WaitStats, Workload};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::{SINGLE_BLOCK_READ, is_on_server, measured};
use model::units::{Nanos, UnitError, percent};

/// A limit on one quantile of what it judges, its subject. Parsed from
///
/// - `p99=5ms`: what the workload is usually judged by, see [`LatencyTarget::of_step`];
/// - `response:p99=5ms` or `service:p99=5ms`: the time of operations, all kinds together;
/// - `read response:p99=5ms`, `large read service:p99=20ms`: the time of operations of one kind;
/// - `log file sync:p99.9=20ms`: a wait event by its name.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct LatencyTarget {
    /// What is judged; absent means what the workload is usually judged by.
    pub subject: Option<Subject>,
    /// 0 to 1, both excluded.
    pub quantile: f64,
    /// Longest duration that still meets the target.
    #[serde(rename = "limit_ns")]
    pub limit: Nanos,
    /// Largest share of operations that may fail, 0 to below 1: what failed is not fast. Absent in the usual limit: there a stray error
    /// does not decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<f64>,
}

/// What a latency target judges.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// The waits of one event.
    Event(String),
    /// Operations from due to finished: of one kind, or of all.
    Response(Option<String>),
    /// Operations from sent to finished: of one kind, or of all.
    Service(Option<String>),
}

/// The value of a quantile, in words `5.00 ms` or `at most 5.00 ms`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct QuantileValue {
    /// The value.
    pub ns: Nanos,
    /// Whether it is no more than an upper bound, as of times that another program reported in wide buckets.
    pub is_bound: bool,
}

impl QuantileValue {
    /// Of durations; absent if there are none, or if nothing bounds it.
    pub(crate) fn of(times: &Histogram, quantile: f64) -> Option<Self> {
        let ns = times.quantile_ns(quantile).map(Nanos)?;
        Some(Self { ns, is_bound: !times.knows_quantile(quantile) })
    }
}

impl fmt::Display for QuantileValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.is_bound { "at most " } else { "" }, self.ns)
    }
}

/// Waits that should lie beyond a quantile before it means anything.
const WAITS_BEYOND: f64 = 10.0;
impl Subject {
    /// What steps of a workload are judged by where nothing else is asked for: in a SLOB closed loop the single-block
    /// read, else the response time of all operations, which contains the wait behind the schedule. A server does not
    /// time its reads for its clients, so operations are judged there too.
    fn usual(workload: Workload, step: &Step) -> Self {
        if workload.is_judged_by_reads() && step.load.rate_operations_per_s.is_none() && !is_on_server(step) {
            Self::Event(SINGLE_BLOCK_READ.to_owned())
        } else {
            Self::Response(None)
        }
    }

    /// The durations judged in a step; absent if there are none.
    pub fn times<'a>(&self, step: &'a Step) -> Option<Cow<'a, Histogram>> {
        if let Self::Event(event) = self {
            return crate::wait(step, event).map(WaitStats::times);
        }
        let mut parts = self.parts(step);
        let first = parts.next()?;
        Some(parts.fold(Cow::Borrowed(first), |mut all, more| {
            all.to_mut().merge(more);
            all
        }))
    }

    /// The durations of each kind of operations that it judges; none of an event. What was under way when the window closed counts with
    /// the time that it took in the end, and what never ended with how long it was waited for.
    fn parts<'a>(&self, step: &'a Step) -> impl Iterator<Item = &'a Histogram> {
        type Time<T> = fn(&T) -> &Histogram;
        let (kind, ended, late): (_, Time<OperationStats>, Time<Outstanding>) = match self {
            Self::Event(_) | Self::Response(None) => (None, |operation| &operation.response, |late| &late.response),
            Self::Response(kind) => (kind.as_ref(), |operation| &operation.response, |late| &late.response),
            Self::Service(kind) => (kind.as_ref(), |operation| &operation.service, |late| &late.service),
        };
        let is_asked = move |name: &String| kind.is_none_or(|kind| kind == name);
        let is_event = matches!(self, Self::Event(_));
        let operations = step.operations.iter().filter(move |operation| is_asked(&operation.kind)).map(ended);
        let outstanding = step.outstanding.iter().filter(move |late| is_asked(&late.kind));
        let outstanding = outstanding.flat_map(move |operation| [late(operation), &operation.unended]);
        operations.chain(outstanding).filter(move |times| times.count() > 0 && !is_event)
    }

    /// How long operations that it judges were waited for and never ended, by their kind.
    pub(crate) fn unended<'a>(&self, step: &'a Step) -> impl Iterator<Item = &'a Histogram> {
        let kind = match self {
            Self::Event(_) => None,
            Self::Response(kind) | Self::Service(kind) => Some(kind.as_ref()),
        };
        let is_judged = move |late: &&Outstanding| kind.is_some_and(|kind| kind.is_none_or(|kind| *kind == late.kind));
        step.outstanding.iter().filter(is_judged).map(|late| &late.unended)
    }

    /// What one second of a step reports on it; absent where seconds are not kept that finely.
    pub fn times_of_interval<'a>(&self, interval: &'a Interval) -> Option<&'a Histogram> {
        match self {
            Self::Event(event) => interval.waits.get(event),
            Self::Response(None) => Some(&interval.response),
            Self::Response(Some(_)) | Self::Service(_) => None,
        }
    }

    /// What the durations are called.
    pub(crate) fn things(&self) -> &'static str {
        match self {
            Self::Event(_) => "waits",
            Self::Response(_) | Self::Service(_) => "operations",
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(event) => write!(f, "`{event}`"),
            Self::Response(None) => f.write_str("response time"),
            Self::Service(None) => f.write_str("service time"),
            Self::Response(Some(kind)) => write!(f, "{kind} response time"),
            Self::Service(Some(kind)) => write!(f, "{kind} service time"),
        }
    }
}

/// From the words before the colon of a latency target. Every text names an event, unless it ends in one of the two
/// times.
impl From<&str> for Subject {
    fn from(words: &str) -> Self {
        let (kind, last) = match words.rsplit_once(char::is_whitespace) {
            Some((kind, last)) => (Some(kind.trim_end().to_owned()), last),
            None => (None, words),
        };
        match last.to_ascii_lowercase().as_str() {
            "response" => Self::Response(kind),
            "service" => Self::Service(kind),
            _ => Self::Event(words.to_owned()),
        }
    }
}

impl LatencyTarget {
    /// The quantile as users write it: `p99`, `p99.9`.
    pub fn quantile_name(&self) -> String {
        // Rounded, because 0.999 * 100 is 99.9 only nearly.
        format!("p{}", (self.quantile * 1e6).round() / 1e4)
    }

    /// The same target with its subject said. Without one it judges single-block reads in closed loops of `slob`, and
    /// the response time of all operations in every other workload, in every open loop and on every server.
    pub fn of_step(&self, workload: Workload, step: &Step) -> Self {
        let subject = self.subject.clone().unwrap_or_else(|| Subject::usual(workload, step));
        Self { subject: Some(subject), ..self.clone() }
    }

    /// The same target with its subject said, as the first step of a run is judged; unchanged for a run without steps.
    pub fn of_run(&self, run: &Run) -> Self {
        run.steps.first().map_or_else(|| self.clone(), |step| self.of_step(run.workload(), step))
    }

    /// The quantile of a step of `workload`; absent if nothing of what is judged happened.
    pub fn value(&self, workload: Workload, step: &Step) -> Option<Nanos> {
        Some(self.quantile_value(workload, step)?.ns)
    }

    /// The same with whether it is known or only bounded.
    pub(crate) fn quantile_value(&self, workload: Workload, step: &Step) -> Option<QuantileValue> {
        QuantileValue::of(&*self.times(workload, step)?, self.quantile)
    }

    /// Whether a step of `workload` meets the target; absent if nothing of what is judged happened, or if another program reported
    /// it in buckets too wide to say.
    pub fn is_met(&self, workload: Workload, step: &Step) -> Option<bool> {
        let subject = self.subject.clone().unwrap_or_else(|| Subject::usual(workload, step));
        self.is_met_by(&subject, step)
    }

    /// The same of what `subject` judges. Of several kinds of operations, whose buckets together may be too wide, each may say
    /// the same by itself: if more than the share that is allowed took longer in each, so it did in all.
    pub(crate) fn is_met_by(&self, subject: &Subject, step: &Step) -> Option<bool> {
        let times = subject.times(step)?;
        self.is_met_in(&times).or_else(|| {
            let verdicts: Vec<bool> = subject.parts(step).map(|times| self.is_met_in(times)).collect::<Option<_>>()?;
            let first = *verdicts.first()?;
            verdicts.iter().all(|verdict| *verdict == first).then_some(first)
        })
    }

    fn is_met_in(&self, times: &Histogram) -> Option<bool> {
        let by_value = || times.quantile_ns(self.quantile).map(|ns| ns <= self.limit.0);
        if !times.is_reported() {
            return by_value();
        }
        // As many must not exceed the limit, which is what shorter than a nanosecond more means.
        let wanted = times.rank(self.quantile);
        match times.below_ns(self.limit.0.saturating_add(1)) {
            (surely, _) if surely >= wanted => Some(true),
            (_, perhaps) if perhaps < wanted => Some(false),
            // A bucket made of percentiles may begin below the limit and end beyond it, at the very quantile.
            _ if times.knows_quantile(self.quantile) => by_value(),
            _ => None,
        }
    }

    /// How wide the bucket of the value of a step is, as [`Histogram::quantile_width`] has it.
    pub(crate) fn width(&self, workload: Workload, step: &Step) -> Option<f64> {
        self.times(workload, step)?.quantile_width(self.quantile)
    }

    /// Whether the step has durations, but too few for the quantile to mean anything.
    pub(crate) fn has_few(&self, workload: Workload, step: &Step) -> bool {
        self.times(workload, step).is_some_and(|times| times.count() < self.durations_wanted())
    }

    /// How many durations the quantile needs to mean anything.
    pub(crate) fn durations_wanted(&self) -> u64 {
        (WAITS_BEYOND / (1.0 - self.quantile)).round() as u64
    }

    /// The judged quantile in words: `p99 of response time`.
    pub fn what(&self) -> String {
        match &self.subject {
            Some(subject) => format!("{} of {subject}", self.quantile_name()),
            None => self.quantile_name(),
        }
    }

    fn times<'a>(&self, workload: Workload, step: &'a Step) -> Option<Cow<'a, Histogram>> {
        match &self.subject {
            Some(subject) => subject.times(step),
            None => Subject::usual(workload, step).times(step),
        }
    }
}

/// 99 of 100 within 5 ms.
impl Default for LatencyTarget {
    fn default() -> Self {
        Self { subject: None, quantile: 0.99, limit: Nanos::millis(5), errors: None }
    }
}

impl fmt::Display for LatencyTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} within {}", self.what(), self.limit)?;
        match self.errors {
            Some(errors) if errors > 0.0 => write!(f, ", up to {} % of errors", percent(errors)),
            _ => Ok(()),
        }
    }
}

/// A latency from its words, unit included: a bare number would be seconds.
pub(crate) fn latency(words: &str) -> Option<Nanos> {
    let words = words.trim();
    words.parse().ok().filter(|_| words.ends_with(|last: char| last.is_ascii_alphabetic()))
}

impl FromStr for LatencyTarget {
    type Err = UnitError;

    fn from_str(input: &str) -> Result<Self, Self::Err> {
        let fail = |reason| UnitError {
            input: input.to_owned(),
            wanted: "a latency target such as `p99=5ms` or `log file sync:p99.9=20ms`",
            reason,
        };
        let (subject, rest) = match input.rsplit_once(':') {
            Some((subject, rest)) => (Some(subject.trim()), rest),
            None => (None, input),
        };
        if subject.is_some_and(str::is_empty) {
            return Err(fail("what is judged is missing before `:`"));
        }
        let (quantile, limit) = rest.split_once('=').ok_or_else(|| fail("there is no `=`"))?;
        let percentile: f64 = quantile
            .trim()
            .strip_prefix(['p', 'P'])
            .and_then(|digits| digits.parse().ok())
            .ok_or_else(|| fail("what stands before `=` is not `p` and a number"))?;
        if !(percentile > 0.0 && percentile < 100.0) {
            return Err(fail("the percentile is not between 0 and 100"));
        }
        let limit = latency(limit).ok_or_else(|| fail("its time is not a number with a unit"))?;
        if limit == Nanos(0) {
            return Err(fail("no wait is shorter than zero"));
        }
        Ok(Self { subject: subject.map(Subject::from), quantile: percentile / 100.0, limit, errors: None })
    }
}

/// Names beyond these are counted rather than listed: a report of a database has hundreds of events.
const MAX_LISTED: usize = 16;

/// The names of what a run times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgeable {
    whose: String,
    kinds: Vec<String>,
    events: Vec<String>,
}

/// A limit on something that a run does not time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the limit {limit} judges nothing: {missing}")]
pub struct NotJudgeable {
    limit: String,
    missing: String,
    hint: String,
}

impl Judgeable {
    /// Kinds of operations, and wait events, that a run is going to have.
    pub fn new(kinds: &[&str], events: &[&str]) -> Self {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self { whose: "this run".to_owned(), kinds: owned(kinds), events: owned(events) }
    }

    /// What a run has, events with the most waits first.
    pub fn of_run(run: &Run) -> Self {
        let kinds: BTreeSet<&str> = measured(run)
            .flat_map(|step| &step.operations)
            .filter(|operation| operation.response.count() > 0)
            .map(|operation| operation.kind.as_str())
            .collect();
        let mut events: Vec<(&str, u64)> = Vec::new();
        for wait in measured(run).flat_map(|step| &step.waits).filter(|wait| wait.waits.count() > 0) {
            match events.iter_mut().find(|(event, _)| *event == wait.event) {
                Some((_, count)) => *count = count.saturating_add(wait.waits.count()),
                None => events.push((&wait.event, wait.waits.count())),
            }
        }
        events.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        Self {
            whose: format!("run `{}`", run.id),
            kinds: kinds.into_iter().map(str::to_owned).collect(),
            events: events.into_iter().map(|(event, _)| event.to_owned()).collect(),
        }
    }

    /// Refuses a limit on what is not there.
    ///
    /// # Errors
    /// With the names that are.
    pub fn check(&self, limit: &LatencyTarget) -> Result<(), NotJudgeable> {
        let missing = match &limit.subject {
            Some(Subject::Event(event)) if !self.events.contains(event) => format!("no waits for `{event}`"),
            Some(Subject::Response(Some(kind)) | Subject::Service(Some(kind))) if !self.kinds.contains(kind) => {
                format!("no operations of the kind `{kind}`")
            }
            Some(Subject::Response(None) | Subject::Service(None)) if self.kinds.is_empty() => {
                "no operations".to_owned()
            }
            _ => return Ok(()),
        };
        let missing = format!("{} has {missing}", self.whose);
        Err(NotJudgeable { limit: limit.to_string(), missing, hint: self.hint(limit) })
    }

    fn hint(&self, limit: &LatencyTarget) -> String {
        let quoted = |names: Vec<String>| {
            let more = names.len().saturating_sub(MAX_LISTED);
            let listed = names.iter().take(MAX_LISTED).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            if more > 0 { format!("{listed} and {more} more") } else { listed }
        };
        let mut times = Vec::new();
        if !self.kinds.is_empty() {
            times.extend(["response".to_owned(), "service".to_owned()]);
            times.extend(self.kinds.iter().flat_map(|kind| [format!("{kind} response"), format!("{kind} service")]));
        }
        let there: Vec<String> = times.into_iter().chain(self.events.iter().cloned()).collect();
        let meant = match &limit.subject {
            Some(Subject::Event(event)) if self.kinds.contains(event) => {
                let (quantile, time) = (limit.quantile_name(), limit.limit.to_string().replace(' ', ""));
                format!("the time of a {event} from due to finished is `{event} response:{quantile}={time}`; ")
            }
            _ => String::new(),
        };
        if there.is_empty() {
            "it has nothing that was timed".to_owned()
        } else {
            format!("{meant}it has {}", quoted(there))
        }
    }
}

impl NotJudgeable {
    /// What there is instead.
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::{ReportedBucket, sample};
    use proptest::prelude::*;

    #[test]
    fn buckets_of_another_program_are_judged_only_where_they_decide() {
        let mut step = sample::sweep(1).steps.remove(0);
        let bucket = |from_ns, to_ns, count| ReportedBucket { from_ns, to_ns: Some(to_ns), count };
        let buckets = [bucket(0, 4_096_000, 95), bucket(4_096_000, 8_192_000, 5)];
        step.waits.retain(|wait| wait.event == SINGLE_BLOCK_READ);
        step.waits[0].waits = Histogram::reported(buckets, None, None, None);
        let met = ["p95=5ms", "p99=5ms", "p99=4ms", "p99=8192us"]
            .map(|target| target.parse::<LatencyTarget>().unwrap().is_met(Workload::Database, &step));
        assert_eq!(met, [Some(true), None, Some(false), Some(true)]);
    }

    #[test]
    fn a_percentile_that_another_program_reported_is_judged_and_the_last_of_few_durations_is_not() {
        let bucket = |from_ns, to_ns, count| ReportedBucket { from_ns, to_ns: Some(to_ns), count };
        let of = |buckets: &[ReportedBucket]| {
            let mut step = sample::sweep(1).steps.remove(0);
            step.operations.truncate(1);
            step.operations[0].response = Histogram::reported(buckets.to_vec(), None, None, None);
            step
        };
        let met = |step: &Step, target: &str| target.parse::<LatencyTarget>().unwrap().is_met(Workload::Io, step);
        // p95, p99 and the maximum of 1,000 requests.
        let percentiles = |p95, p99, most| [bucket(9, p95, 950), bucket(p95, p99, 40), bucket(p99, most, 10)];
        let summarized = of(&percentiles(3_000_000, 5_210_000, 9_000_000));
        assert_eq!(
            (met(&summarized, "p99=5ms"), met(&summarized, "p99=5210us"), met(&summarized, "p98=5ms")),
            (Some(false), Some(true), None)
        );
        // A table of powers of two ends somewhere too: the one wait beyond 8 ms may have taken 8.1 ms.
        let few = of(&[bucket(0, 8_192_000, 99), bucket(8_192_000, 16_384_000, 1)]);
        assert_eq!((met(&few, "p99.5=10ms"), met(&few, "p99=5ms")), (None, None));
        // Reads and writes have percentiles of their own: together none is known, and each missed.
        let mut mixed = summarized.clone();
        let mut writes = of(&percentiles(2_000_000, 6_000_000, 7_000_000)).operations.remove(0);
        writes.kind = "write".to_owned();
        mixed.operations.push(writes);
        assert_eq!(
            (met(&mixed, "p99=5ms"), met(&mixed, "p99=5500us"), met(&mixed, "p99=6ms")),
            (Some(false), None, Some(true))
        );
    }

    #[test]
    fn reads_what_users_write() {
        assert_eq!("p99=5ms".parse(), Ok(LatencyTarget::default()));
        let commit: LatencyTarget = "log file sync : p99.9 = 20ms".parse().unwrap();
        assert_eq!((commit.subject.clone(), commit.limit), (Some("log file sync".into()), Nanos::millis(20)));
        assert_eq!(commit.to_string(), "p99.9 of `log file sync` within 20.0 ms");
        assert_eq!("p99.99=1s".parse::<LatencyTarget>().unwrap().quantile_name(), "p99.99");
    }

    #[test]
    fn the_time_of_operations_is_reported_from_an_event() {
        for (text, subject, reported) in [
            ("response:p99=5ms", Subject::Response(None), "p99 of response time within 5.00 ms"),
            ("Service : p99=5ms", Subject::Service(None), "p99 of service time within 5.00 ms"),
            (
                "read response:p99=5ms",
                Subject::Response(Some("read".into())),
                "p99 of read response time within 5.00 ms",
            ),
            (
                "large read service:p50=20ms",
                Subject::Service(Some("large read".into())),
                "p50 of large read service time within 20.0 ms",
            ),
            ("responses:p99=5ms", Subject::Event("responses".into()), "p99 of `responses` within 5.00 ms"),
        ] {
            let target: LatencyTarget = text.parse().unwrap();
            assert_eq!(target.subject, Some(subject), "{text}");
            assert_eq!(target.to_string(), reported);
        }
    }

    #[test]
    fn without_a_subject_the_workload_and_the_loop_decide() {
        let target = LatencyTarget::default();
        let mut step = sample::sweep(60).steps.swap_remove(3);
        let what = |workload, step: &Step| target.of_step(workload, step).what();
        assert_eq!(what(Workload::Slob, &step), "p99 of `db file sequential read`");
        assert_eq!(what(Workload::Io, &step), "p99 of response time");
        step.load.rate_operations_per_s = Some(560.0);
        assert_eq!(what(Workload::Slob, &step), "p99 of response time");
    }

    #[test]
    fn kinds_are_judged_alone_or_together() {
        let mut step = sample::updates(60).steps.swap_remove(0);
        for (operation, (response, service)) in step.operations.iter_mut().zip([(1, 1), (20, 7)]) {
            operation.response.clear();
            operation.response.record_n(response * 1_000_000, 1_000);
            operation.service.clear();
            operation.service.record_n(service * 1_000_000, 1_000);
        }
        for (text, wanted) in [
            ("response:p99=5ms", Some(20)),
            ("response:p40=5ms", Some(1)),
            ("read response:p99=5ms", Some(1)),
            ("update service:p99=5ms", Some(7)),
            ("scan service:p99=5ms", None),
        ] {
            let target: LatencyTarget = text.parse().unwrap();
            let value = target.value(Workload::Slob, &step).map(|value| value.0 / 1_000_000);
            assert_eq!(value, wanted, "{text}");
            assert_eq!(target.is_met(Workload::Slob, &step), wanted.map(|ms| ms <= 5), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_not_a_target() {
        for text in
            ["", "p99", "99=5ms", "p0=5ms", "p100=5ms", "pNaN=5ms", "p99=fast", "p99=0ms", "p99=5", ":p99=5ms", "p=1ms"]
        {
            assert!(text.parse::<LatencyTarget>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn never_panics_on_any_text(text in ".*") {
            let _ = text.parse::<LatencyTarget>();
        }
    }
}

#[cfg(test)]
mod judgeable_tests {
    use super::*;
    use model::record::sample;

    fn refused(judgeable: &Judgeable, limit: &str) -> Option<(String, String)> {
        let refused = judgeable.check(&limit.parse().unwrap()).err()?;
        Some((refused.to_string(), refused.hint().to_owned()))
    }

    #[test]
    fn what_is_not_timed_is_refused_with_the_names_of_what_is() {
        let reads = Judgeable::new(&["read"], &["db file sequential read"]);
        for limit in ["p99=5ms", "response:p99=5ms", "read service:p99=5ms", "db file sequential read:p99=5ms"] {
            assert_eq!(refused(&reads, limit), None, "{limit}");
        }
        let (what, names) = refused(&reads, "write:p99=10ms").unwrap();
        assert_eq!(what, "the limit p99 of `write` within 10.0 ms judges nothing: this run has no waits for `write`");
        assert_eq!(names, "it has `response`, `service`, `read response`, `read service`, `db file sequential read`");
        assert!(refused(&reads, "write response:p99=10ms").unwrap().0.ends_with("no operations of the kind `write`"));
        let (_, names) = refused(&reads, "read:p99=10ms").unwrap();
        assert!(
            names.starts_with("the time of a read from due to finished is `read response:p99=10.0ms`; "),
            "{names}"
        );
    }

    #[test]
    fn a_run_that_is_kept_has_what_happened_in_it_and_long_lists_end() {
        let mut run = sample::updates(12);
        let judgeable = Judgeable::of_run(&run);
        assert_eq!(refused(&judgeable, "log file sync:p99=10ms"), None);
        assert_eq!(refused(&judgeable, "update response:p99=10ms"), None);
        assert!(refused(&judgeable, "foo:p99=1ms").unwrap().1.contains("`update response`"));
        let wait = run.steps[0].waits[0].clone();
        run.steps[0]
            .waits
            .extend((0..40).map(|n| model::record::WaitStats { event: format!("event {n}"), ..wait.clone() }));
        let (_, names) = refused(&Judgeable::of_run(&run), "foo:p99=1ms").unwrap();
        assert!(names.ends_with(" more") && names.len() < 600, "{names}");
        run.steps.clear();
        assert_eq!(refused(&Judgeable::of_run(&run), "response:p99=1ms").unwrap().1, "it has nothing that was timed");
    }
}
