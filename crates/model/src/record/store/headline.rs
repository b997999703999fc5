//! What a list of runs shows of one load of each, the largest or what was asked: how much, and how fast. Read from what documents say beside each histogram, so that
//! none is decoded.

use crate::record::Workload;
use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::reader::OutlineStep;
use crate::record::{Outcome, at_once};
use crate::units::{Nanos, group_thousands};

/// By this event databases are judged whose reads are timed.
const SINGLE_BLOCK_READ: &str = "db file sequential read";

/// The figures of one step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Headline {
    /// Operations finished per second: of raw storage requests, of SLOB operations of many blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations_per_s: Option<f64>,
    /// Read requests sent to storage per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads_per_s: Option<f64>,
    /// The 99th percentile of what `p99_of` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<u64>,
    /// Whether it is at most that.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub p99_is_bound: bool,
    /// `read` for single-block reads of a database, `response` for the response time of all operations.
    pub p99_of: &'static str,
    /// The limit that the command had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
}

/// A limit, and whether this latency is within it. That is no verdict on the run: a report has that.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Limit {
    /// As it was given, such as `p99=5ms`.
    pub limit: String,
    /// Absent where it is a limit on something else than this 99th percentile, or where that is only bounded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_within: Option<bool>,
}

impl Limit {
    /// The first of a command.
    fn of(command: &[String], p99: Option<(u64, bool)>) -> Option<Self> {
        const FLAGS: [&str; 2] = ["--limit", "--target-latency"];
        let value = |(place, word): (usize, &String)| match word.split_once('=') {
            Some((flag, value)) if FLAGS.contains(&flag) => Some(value.to_owned()),
            _ if FLAGS.contains(&word.as_str()) => command.get(place + 1).cloned(),
            _ => None,
        };
        let limit = command.iter().enumerate().find_map(value)?;
        let longest: Option<Nanos> = limit.strip_prefix("p99=").and_then(|time| time.parse().ok());
        let is_within = longest.zip(p99).and_then(|(longest, (ns, is_bound))| match ns <= longest.0 {
            false if is_bound => None,
            is_within => Some(is_within),
        });
        Some(Self { limit, is_within })
    }
}

impl Headline {
    /// The percentile in words: `read 1.20 ms`, `<=5.00 ms`, or `?`.
    pub fn p99_words(&self) -> String {
        let of = if self.p99_of == "read" { "read " } else { "" };
        let bound = if self.p99_is_bound { "<=" } else { "" };
        self.p99_ns.map_or_else(|| "?".to_owned(), |ns| format!("{of}{bound}{}", Nanos(ns)))
    }

    /// The limit in words: `p99=5ms kept`, `p99=5ms exceeded`; nothing where none was given.
    pub fn limit_words(&self) -> String {
        let words = |limit: &Limit| match limit.is_within {
            Some(true) => format!("{} kept", limit.limit),
            Some(false) => format!("{} exceeded", limit.limit),
            None => format!("{} ?", limit.limit),
        };
        self.limit.as_ref().map(words).unwrap_or_default()
    }

    /// A rate in words.
    pub fn rate_words(rate: Option<f64>) -> String {
        rate.map_or_else(
            || "?".to_owned(),
            |rate| match rate {
                rate if rate < 99.95 => format!("{rate:.1}"),
                rate => group_thousands(rate),
            },
        )
    }
}

/// Length of a step's window.
#[derive(Default, Deserialize)]
pub(super) struct OutlineWindow {
    #[serde(default)]
    offset_ns: u64,
    #[serde(default)]
    duration_ns: u64,
}

/// Counts of a step.
#[derive(Default, Deserialize)]
pub(super) struct OutlineCounters {
    #[serde(default)]
    operations: Option<u64>,
    #[serde(default)]
    physical_reads: Option<u64>,
}

/// Operations of one kind.
#[derive(Deserialize)]
pub(super) struct OutlineOperation {
    #[serde(default)]
    count: u64,
    response: OutlineTimes,
}

/// Waits in one event.
#[derive(Deserialize)]
pub(super) struct OutlineWait {
    event: String,
    #[serde(default)]
    class: String,
    #[serde(default)]
    layer: String,
    #[serde(default)]
    foreground: bool,
    waits: OutlineTimes,
}

/// What stands beside a histogram.
#[derive(Deserialize)]
struct OutlineTimes {
    #[serde(default)]
    count: u64,
    #[serde(default)]
    p99_ns: Option<u64>,
    /// There where another program reported it, in buckets that may be wide.
    #[serde(default)]
    reported: Option<serde::de::IgnoredAny>,
}

impl Headline {
    /// Of a step of `workload`; absent if it has no figure.
    pub(super) fn of(workload: Workload, step: &OutlineStep, command: &[String]) -> Option<Self> {
        let per_s = |count: Option<u64>| {
            let seconds = step.window.duration_ns as f64 / 1e9;
            count.filter(|_| seconds > 0.0).map(|count| count as f64 / seconds)
        };
        // As latency targets judge where nobody says what.
        let is_on_server = !step.servers.is_empty() || step.waits.iter().any(|wait| wait.layer == "server");
        let is_by_reads = workload.is_judged_by_reads() && step.load.rate_operations_per_s.is_none() && !is_on_server;
        let reads = step.waits.iter().find(|wait| is_by_reads && wait.event == SINGLE_BLOCK_READ);
        let (p99_ns, p99_is_bound) = match reads {
            // A percentile of few reads says nothing about the rate of all.
            Some(wait) if step.waits.iter().any(|other| other.is_read() && other.waits.count > wait.waits.count) => {
                (None, false)
            }
            Some(wait) => (wait.waits.p99_ns, wait.waits.reported.is_some()),
            None => of_all(&step.operations),
        };
        let headline = Self {
            operations_per_s: per_s(step.counters.operations),
            reads_per_s: per_s(step.counters.physical_reads),
            p99_ns,
            p99_is_bound: p99_is_bound && p99_ns.is_some(),
            p99_of: if reads.is_some() { "read" } else { "response" },
            limit: Limit::of(command, p99_ns.map(|ns| (ns, p99_is_bound))),
        };
        let has_figures = headline.operations_per_s.or(headline.reads_per_s).is_some() || headline.p99_ns.is_some();
        has_figures.then_some(headline)
    }
}

impl OutlineWait {
    /// Whether sessions waited in it for reads of any kind.
    fn is_read(&self) -> bool {
        self.foreground && self.class == "User I/O" && self.event.contains(" read")
    }
}

impl Headline {
    /// What jobs of one group did together, of several groups of that which did most, as reports open with it; absent where no
    /// jobs are known to have run at the same time. `fact` says which did.
    pub(super) fn of_jobs(fact: &str, steps: &[OutlineStep]) -> Option<Self> {
        let group = |(places, is_reported): (Vec<usize>, bool)| {
            let jobs: Vec<&OutlineStep> = places.into_iter().filter_map(|place| steps.get(place)).collect();
            let are_whole = is_reported && jobs.iter().all(|job| job.outcome == Some(Outcome::Completed));
            let windows: Vec<(u64, u64)> =
                jobs.iter().map(|job| (job.window.offset_ns, job.window.duration_ns)).collect();
            let (from_ns, to_ns) = at_once::together(&windows).filter(|_| are_whole && jobs.len() > 1)?;
            let per_s = |count: fn(&OutlineCounters) -> Option<u64>| {
                let sum = jobs.iter().map(|job| count(&job.counters)).sum::<Option<u64>>()?;
                Some(sum as f64 / (to_ns.saturating_sub(from_ns) as f64 / 1e9))
            };
            let (p99_ns, p99_is_bound) = of_all(jobs.iter().flat_map(|job| &job.operations));
            Some(Self {
                operations_per_s: Some(per_s(|counters| counters.operations)?),
                reads_per_s: per_s(|counters| counters.physical_reads),
                p99_ns,
                p99_is_bound: p99_is_bound && p99_ns.is_some(),
                p99_of: "response",
                limit: None,
            })
        };
        let groups = at_once::groups(Some(fact), steps.len()).into_iter().filter_map(group);
        groups.max_by(|one, other| one.operations_per_s.partial_cmp(&other.operations_per_s).unwrap_or(Ordering::Equal))
    }
}

/// Of several kinds the longest of their percentiles bounds that of all: in each, no more than a hundredth took longer.
pub(super) fn of_all<'a>(operations: impl IntoIterator<Item = &'a OutlineOperation>) -> (Option<u64>, bool) {
    let kinds: Vec<&OutlineTimes> =
        operations.into_iter().filter(|operation| operation.count > 0).map(|operation| &operation.response).collect();
    let known: Option<Vec<u64>> = kinds.iter().map(|times| times.p99_ns).collect();
    let is_bound = kinds.len() > 1 || kinds.iter().any(|times| times.reported.is_some());
    (known.and_then(|known| known.into_iter().max()), is_bound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::sample;
    use crate::record::store::Store;

    fn headline(run: &crate::record::Run) -> Headline {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path());
        store.save(run).unwrap();
        store.list().0.remove(0).headline.unwrap()
    }

    #[test]
    fn the_largest_load_tells_its_rates_and_the_percentile_by_which_it_is_judged() {
        let run = sample::sweep(3);
        let largest = run.steps.last().unwrap();
        let found = headline(&run);
        assert_eq!(found.reads_per_s, Some(40_320.0));
        assert_eq!((found.p99_ns, found.p99_of), (largest.waits[0].waits.quantile_ns(0.99), "read"));
        assert!(!found.p99_is_bound && found.limit.is_none());
        let raw = headline(&sample::requests::sweep());
        assert_eq!((raw.operations_per_s, raw.p99_of), (Some(5_000.0), "response"));
    }

    #[test]
    fn on_a_server_the_response_time_is_listed_as_a_report_judges_it() {
        let mut run = sample::servers::innodb();
        let mut wait = sample::sweep(1).steps[0].waits[0].clone();
        assert_eq!(wait.event, SINGLE_BLOCK_READ);
        wait.layer = "server".to_owned();
        run.steps.iter_mut().for_each(|step| step.waits.push(wait.clone()));
        run.command.extend(["--limit", "p99=100s"].map(str::to_owned));
        let listed = headline(&run);
        let limit = listed.limit.as_ref().unwrap();
        assert_eq!((listed.p99_of, limit.is_within), ("response", Some(true)));
    }

    #[test]
    fn jobs_at_the_same_time_are_listed_with_what_they_did_together() {
        let mut run = requests_twice();
        let one = headline(&run);
        run.imported = Some(imported());
        run.target.facts.insert(crate::record::facts::JOBS_AT_ONCE.to_owned(), "2".to_owned());
        let both = headline(&run);
        assert_eq!(both.operations_per_s, one.operations_per_s.map(|rate| 2.0 * rate));
        assert_eq!(both.reads_per_s, one.reads_per_s.map(|rate| 2.0 * rate));
        assert!(both.p99_is_bound && both.p99_ns == one.p99_ns);
    }

    fn imported() -> crate::record::Imported {
        crate::record::Imported { files: Vec::new(), clock: crate::record::Clock::Wall, not_understood: Vec::new() }
    }

    fn requests_twice() -> crate::record::Run {
        let mut run = sample::requests::mixed();
        run.steps.truncate(1);
        let again = run.steps[0].clone();
        run.steps.push(again);
        run
    }

    #[test]
    fn a_percentile_of_few_reads_is_not_listed_beside_the_rate_of_all() {
        let mut run = sample::sweep(3);
        run.steps.drain(..run.steps.len() - 1);
        assert!(headline(&run).p99_ns.is_some());
        let single = run.steps[0].waits[0].clone();
        let count = single.waits.count() + 1;
        let waits = crate::record::Histogram::counted(count, None);
        run.steps[0].waits.push(crate::record::WaitStats {
            event: "direct path read".to_owned(),
            class: "User I/O".to_owned(),
            foreground: true,
            waits,
            ..single
        });
        assert_eq!(headline(&run).p99_words(), "?");
    }

    #[test]
    fn of_reads_and_writes_the_longer_bounds_both() {
        let run = sample::requests::mixed();
        let found = headline(&run);
        assert_eq!(found.p99_ns, run.steps[0].operations[1].response.quantile_ns(0.99));
        assert!(found.p99_is_bound && found.p99_words().starts_with("<="));
    }

    #[test]
    fn a_limit_is_only_reported_of_what_is_known() {
        let mut run = sample::requests::sweep();
        let mut limit = |words: &str| {
            run.command = words.split(' ').map(str::to_owned).collect();
            headline(&run).limit_words()
        };
        assert_eq!(limit("plimsoll io sweep --limit p99=1s"), "p99=1s kept");
        assert_eq!(limit("plimsoll io sweep --target-latency=p99=1us"), "p99=1us exceeded");
        assert_eq!(limit("plimsoll io sweep --limit p90=1s"), "p90=1s ?");
        assert_eq!(limit("plimsoll io sweep"), "");
        let mut mixed = sample::requests::mixed();
        mixed.command = ["--limit", "p99=1us"].map(str::to_owned).to_vec();
        assert_eq!(headline(&mixed).limit_words(), "p99=1us ?", "a bound exceeds nothing");
    }
}
