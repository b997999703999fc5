//! What breaks a rule of [`model::record::invariants`] is doubted: it leaves its field, so that no first line and no mean has it, and is
//! shown struck through by its name. A note of the run has the value, the rule, and what it contradicts.

use model::record::invariants::{At, Measured, Times, Violation, violations};
use model::record::{Histogram, ReportedBucket, Step, Workload};
use std::collections::BTreeSet;

use super::Draft;
use super::draft::reported_figure;

/// Doubts of one run that are reported; the rest is counted.
const MAX_DOUBTS: usize = 12;

/// Notes, each once.
#[derive(Debug, Default)]
pub(super) struct Doubts {
    reported: BTreeSet<String>,
    in_order: Vec<String>,
    more: usize,
}

impl Doubts {
    pub(super) fn add(&mut self, doubt: String) {
        if self.in_order.len() == MAX_DOUBTS {
            self.more += usize::from(!self.reported.contains(&doubt));
        } else if self.reported.insert(doubt.clone()) {
            self.in_order.push(doubt);
        }
    }

    /// Puts them among the notes of a run.
    pub(super) fn into_notes(self, notes: &mut Vec<String>) {
        notes.extend(self.in_order);
        if self.more > 0 {
            notes.push(format!("{} more values cannot be.", self.more));
        }
    }
}

/// Doubts what cannot be of `draft`.
pub(super) fn check(draft: &mut Draft) {
    let mut doubts = Doubts::default();
    let several = draft.steps.len() > 1;
    let is_io = draft.workload == Workload::Io;
    for step in &mut draft.steps {
        // A wait of a database, and a request that a tool for machines saw, may have begun long before.
        let load_ns = match draft.workload {
            Workload::Database | Workload::Host => None,
            _ => Some(step.window.warmup_ns.saturating_add(step.window.duration_ns))
                .filter(|_| step.window.duration_ns > 0),
        };
        let measured = Measured {
            program: draft.program,
            load_ns,
            cpus: draft.environment.cpus,
            request_bytes: draft.target.block_bytes.filter(|_| is_io),
        };
        for found in violations(step, measured) {
            doubts.add(if several { format!("Step {}: {found}", step.label) } else { found.to_string() });
            doubt(step, &found);
        }
    }
    doubts.into_notes(&mut draft.notes);
}

/// Takes a value that cannot be out of its field.
fn doubt(step: &mut Step, found: &Violation) {
    let rule = found.rule.id();
    for at in &found.at {
        match *at {
            At::Reported(place) => {
                if let Some(figure) = step.reported.get_mut(place) {
                    figure.doubted = Some(rule.to_owned());
                }
            }
            At::ReadBytes => step.counters.physical_read_bytes = None,
            At::WriteBytes => step.counters.physical_write_bytes = None,
            At::HostCpu => step.host_cpu = None,
            At::Shortest(times) | At::Mean(times) | At::Longest(times) | At::Percentiles(times) => {
                let Some(histogram) = times_of(step, times) else { continue };
                let (name, ns) = match at {
                    At::Shortest(_) => ("shortest", histogram.min_ns()),
                    At::Mean(_) => ("mean", histogram.mean_ns().map(|ns| ns as u64)),
                    At::Longest(_) => ("longest", histogram.max_ns()),
                    _ => ("p99", histogram.quantile_ns(0.99)),
                };
                take_out(histogram, *at);
                let layer = step.reported.first().map_or("client", |figure| &figure.layer).to_owned();
                // One of each operation is enough, and intervals are many.
                let of = match times {
                    Times::Response(at) => step.operations.get(at).map(|operation| operation.kind.clone()),
                    Times::Wait(at) => step.waits.get(at).map(|wait| wait.event.clone()),
                    Times::Service(_) | Times::Interval(_) => None,
                };
                if let (Some(of), Some(ns)) = (of, ns) {
                    let mut figure = reported_figure(&layer, format!("{of} {name}"), "ms", ns as f64 / 1e6);
                    figure.doubted = Some(rule.to_owned());
                    step.reported.push(figure);
                }
            }
        }
    }
}

fn times_of(step: &mut Step, times: Times) -> Option<&mut Histogram> {
    match times {
        Times::Response(at) => step.operations.get_mut(at).map(|operation| &mut operation.response),
        Times::Service(at) => step.operations.get_mut(at).map(|operation| &mut operation.service),
        Times::Wait(at) => step.waits.get_mut(at).map(|wait| &mut wait.waits),
        Times::Interval(at) => step.intervals.get_mut(at).map(|interval| &mut interval.response),
    }
}

/// The same times without one of their statistics.
fn take_out(of: &mut Histogram, at: At) {
    let (count, total_ns, min_ns, max_ns) = (of.count(), of.total_ns(), of.min_ns(), of.max_ns());
    *of = match at {
        At::Percentiles(_) => {
            Histogram::reported([ReportedBucket { from_ns: 0, to_ns: None, count }], total_ns, min_ns, max_ns)
        }
        At::Longest(_) => {
            // The last of buckets that were made of percentiles ends at the maximum.
            let without_end = |bucket: ReportedBucket| ReportedBucket {
                to_ns: bucket.to_ns.filter(|to_ns| Some(*to_ns) != max_ns),
                ..bucket
            };
            Histogram::reported(of.reported_buckets().into_iter().map(without_end), total_ns, min_ns, None)
        }
        At::Mean(_) => Histogram::reported(of.reported_buckets(), None, min_ns, max_ns),
        _ => Histogram::reported(of.reported_buckets(), total_ns, None, max_ns),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::{self, step};
    use crate::percentiles;

    const MS: u64 = 1_000_000;
    const S: u64 = 1_000 * MS;

    /// A run of 10 s with four sessions, whose reads took so long.
    fn run(response: Histogram) -> Draft {
        let mut draft = Draft::new(Workload::Io, "program", "run");
        let mut step = step(0, "all", 10 * S);
        step.load.sessions = Some(4);
        step.operations.push(draft::operations("read", response.clone(), response));
        draft.steps.push(step);
        draft
    }

    fn checked(mut draft: Draft) -> (Step, Vec<String>) {
        check(&mut draft);
        (draft.steps.remove(0), draft.notes)
    }

    /// Values by own names that are struck through, with the rule.
    fn doubted(step: &Step) -> Vec<(&str, f64, &str)> {
        let of = |figure: &'_ model::record::ReportedFigure| figure.doubted.is_some();
        let shown = step.reported.iter().filter(|figure| of(figure));
        shown.map(|figure| (figure.name.as_str(), figure.value, figure.doubted.as_deref().unwrap_or(""))).collect()
    }

    #[test]
    fn what_may_be_is_left_as_it_is() {
        let known = [(0.5, 2 * MS), (0.99, 3 * MS)];
        let before = run(percentiles::histogram(100, Some(200 * MS), Some(MS), Some(10 * S + S / 2), &known));
        assert_eq!(checked(before.clone()), (before.steps[0].clone(), vec![]));
    }

    #[test]
    fn a_latency_longer_than_the_load_leaves_its_field_and_stays_with_its_rule() {
        let response = percentiles::histogram(100, Some(200 * MS), Some(MS), Some(3_600 * S), &[(0.5, 2 * MS)]);
        let (step, notes) = checked(run(response));
        assert_eq!((notes.len(), doubted(&step)), (1, vec![("read longest", 3_600_000.0, "within-load")]));
        let response = &step.operations[0].response;
        assert_eq!((response.count(), response.max_ns(), response.mean_ns()), (100, None, Some(2.0 * MS as f64)));
        let quantiles = response.quantiles_ns(&[0.5, 0.99]);
        assert_eq!(quantiles, [Some(2 * MS), None], "the last percentile ended at the maximum");
        let mut database = run(percentiles::histogram(100, None, None, Some(3_600 * S), &[]));
        database.workload = Workload::Database;
        assert!(checked(database).1.is_empty(), "a wait may have begun long before");
    }

    #[test]
    fn buckets_beyond_the_load_are_kept_and_named() {
        let bucket = ReportedBucket { from_ns: 60 * S, to_ns: None, count: 1 };
        let (step, notes) = checked(run(Histogram::reported([bucket], None, None, None)));
        assert!(notes[0].starts_with("The highest bucket of the latency of read cannot be 1m00s"), "{notes:?}");
        assert_eq!(step.operations[0].response.count(), 1);
    }

    #[test]
    fn a_mean_outside_its_extremes_is_unknown() {
        let (step, _) = checked(run(percentiles::histogram(10, Some(100 * MS), Some(MS), Some(8 * MS), &[])));
        assert_eq!(step.operations[0].response.total_ns(), None);
        assert_eq!(doubted(&step), [("read mean", 10.0, "mean-within-extremes")]);
    }

    #[test]
    fn a_percentile_beyond_the_longest_leaves_all_of_them_unknown() {
        let known = [(0.5, MS), (0.9, 2 * MS), (0.99, 3 * MS)];
        let (step, _) = checked(run(percentiles::histogram(100, Some(150 * MS), Some(MS), Some(MS + MS / 2), &known)));
        let response = &step.operations[0].response;
        assert_eq!((response.quantile_ns(0.5), response.total_ns()), (None, Some(150 * MS)));
    }

    #[test]
    fn a_value_by_its_own_name_is_no_metric_where_it_is_doubted() {
        let mut draft = run(Histogram::counted(1_000, None));
        draft.program = "pgbench";
        draft.steps[0].counters.operations = Some(1_000);
        let rate = reported_figure("client", "tps (without initial connection time)", "1/s", 200.0);
        draft.steps[0].reported.push(rate.is(model::record::Metric::Transactions, 1.0));
        let (step, notes) = checked(draft);
        assert_eq!((notes.len(), step.counters.operations), (1, Some(1_000)), "the count is kept");
        assert_eq!(step.reported[0].value_of(model::record::Metric::Transactions), None);
    }

    #[test]
    fn latencies_are_unknown_where_sessions_have_no_time_for_them() {
        let (step, notes) = checked(run(Histogram::counted(1_000, Some(90 * S))));
        let response = &step.operations[0].response;
        assert_eq!((notes.len(), response.count(), response.total_ns()), (1, 1_000, None), "{notes:?}");
    }

    #[test]
    fn doubts_without_end_are_counted() {
        let mut draft = run(Histogram::counted(1, None));
        draft.steps[0].reported =
            (0..50).map(|at| reported_figure("client", format!("latency {at}"), "ms", 1e9)).collect();
        let (_, notes) = checked(draft);
        assert_eq!((notes.len(), notes[MAX_DOUBTS].as_str()), (MAX_DOUBTS + 1, "38 more values cannot be."));
    }
}
