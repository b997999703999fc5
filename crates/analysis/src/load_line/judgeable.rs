//! What the limits of a run can judge, so that one which judges nothing is refused before there is any load.

use std::collections::BTreeSet;
use std::fmt;

use crate::{LatencyTarget, Subject, measured};
use model::record::Run;

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
#[derive(Debug, Clone, PartialEq, Eq)]
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

impl fmt::Display for NotJudgeable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the limit {} judges nothing: {}", self.limit, self.missing)
    }
}

impl std::error::Error for NotJudgeable {}

#[cfg(test)]
mod tests {
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
