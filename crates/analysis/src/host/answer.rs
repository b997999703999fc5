//! What a report on processors opens with.

use super::finding::HostFinding;
use super::speed::{Speed, WorkUnit, is_across, is_host_load, is_near, time_words};
use crate::{Figures, Finding, measured};
use model::record::Run;
use model::units::{Nanos, percent};

/// The answer of a run on processors, in a sentence that may be repeated alone.
#[derive(Debug, Clone, PartialEq)]
pub struct HostAnswer {
    parts: Vec<String>,
}

impl HostAnswer {
    /// Of `run`, from the findings on it; `None` if it is no load on processors or nothing was measured.
    pub fn of(run: &Run, findings: &[Finding]) -> Option<Self> {
        if !is_host_load(run) {
            return None;
        }
        let speeds = Speed::of_run(run);
        let mut parts = match measured(run).count() {
            0 => return None,
            1 => of_one(&speeds),
            _ => of_many(run, &speeds),
        };
        let is_told = findings.iter().any(|finding| matches!(finding, Finding::Host(HostFinding::Stolen(_))));
        parts.extend(steal(run).filter(|_| !is_told));
        parts.extend(findings.iter().filter_map(|finding| match finding {
            Finding::Host(found) => HostFinding::phrase(found),
            _ => None,
        }));
        Some(Self { parts })
    }

    /// The sentence.
    pub fn sentence(&self) -> String {
        format!("{}.", self.parts.join("; "))
    }
}

fn processors(count: u32) -> String {
    if count == 1 { "One processor".to_owned() } else { format!("{count} processors") }
}

/// One load: what each kind of work came to.
fn of_one(speeds: &[Speed<'_>]) -> Vec<String> {
    let Some(first) = speeds.first() else { return vec!["Nothing was finished".to_owned()] };
    let who = processors(first.threads);
    let lasted = Nanos(first.step.window.duration_ns);
    let words: Vec<String> = speeds.iter().map(|speed| each(speed)).collect();
    vec![format!("{who}: {}, for {lasted}", words.join(", "))]
}

/// A speed in the middle of a sentence.
fn each(speed: &Speed<'_>) -> String {
    let of_one = if speed.threads > 1 { " each" } else { "" };
    match speed.unit {
        WorkUnit::Loads => {
            speed.load_time().map_or_else(String::new, |ns| format!("a load in {}{of_one}", time_words(ns)))
        }
        WorkUnit::RoundTrips => {
            let across = if is_across(speed.step) { " across processors" } else { "" };
            format!("a wake-up and its answer{across} in {}", quantile(speed, 0.5))
        }
        WorkUnit::Sleeps => format!("sleeps of 1 ms {} late (p99)", quantile(speed, 0.99)),
        unit => {
            let done = match speed.kind {
                "checksum" => " of checksums",
                "compare" => " compared",
                "sort" => " sorted",
                "hash-join" => " joined",
                "memory-copy" => " copied",
                "memory-triad" => " of triads",
                _ => "",
            };
            format!("{}{done}{of_one}", unit.words(speed.per_processor_s))
        }
    }
}

fn quantile(speed: &Speed<'_>, quantile: f64) -> String {
    speed.times.quantile_ns(quantile).map_or_else(|| "an unknown time".to_owned(), |ns| Nanos(ns).to_string())
}

/// Several steps: one processor, all of them, memory, wake-ups and timers.
fn of_many(run: &Run, speeds: &[Speed<'_>]) -> Vec<String> {
    let mut parts = Vec::new();
    let is_work = |speed: &&Speed<'_>| speed.unit.is_busy() && speed.size.is_none();
    let of_work: Vec<&Speed<'_>> = speeds.iter().filter(is_work).collect();
    let mut kinds: Vec<&str> = Vec::new();
    of_work.iter().for_each(|speed| {
        if !kinds.contains(&speed.kind) {
            kinds.push(speed.kind);
        }
    });
    let least = of_work.iter().map(|speed| speed.threads).min().unwrap_or(0);
    let at = |kind: &str, threads: u32| of_work.iter().find(|speed| speed.kind == kind && speed.threads == threads);
    let alone: Vec<String> = kinds.iter().filter_map(|kind| Some(each(at(kind, least)?))).collect();
    if !alone.is_empty() {
        parts.push(
            format!("{} does {}", processors(least), alone.join(", ")).replace("processors does", "processors do"),
        );
    }
    let most = of_work.iter().map(|speed| speed.threads).max().unwrap_or(0);
    let times = |kind: &&str| Some(at(kind, most)?.per_s? / at(kind, least)?.per_s?);
    let scaling: Vec<f64> = kinds.iter().filter(|_| most > least).filter_map(times).collect();
    if let Some((low, high)) = range(&scaling) {
        let words = if format!("{low:.1}") == format!("{high:.1}") {
            format!("{low:.1}")
        } else {
            format!("{low:.1} to {high:.1}")
        };
        parts.push(format!("all {most} do {words} times that"));
    }
    parts.extend(of_memory(speeds));
    let waiting = |kind: &str| speeds.iter().find(|speed| speed.kind == kind);
    parts.extend(waiting("wake").map(|speed| each(speed)));
    parts.extend(waiting("timer").map(|speed| each(speed)));
    if parts.is_empty() {
        let most = measured(run).filter_map(|step| Figures(step).operations_per_s()).reduce(f64::max);
        parts.push(format!("At most {:.0} slices/s", most.unwrap_or(0.0)));
    }
    parts
}

fn of_memory(speeds: &[Speed<'_>]) -> Option<String> {
    let near = |speed: &&Speed<'_>| is_near(speed.step);
    let largest = |unit: WorkUnit| {
        let of_unit = speeds.iter().filter(near).filter(move |speed| speed.unit == unit && speed.threads == 1);
        of_unit.max_by_key(|speed| speed.size)
    };
    let triads = || speeds.iter().filter(near).filter(|speed| speed.unit == WorkUnit::Bytes);
    let one = largest(WorkUnit::Bytes).and_then(|speed| speed.per_s);
    let most_threads = triads().map(|speed| speed.threads).max()?;
    let all = triads().filter(|speed| speed.threads == most_threads).max_by_key(|speed| speed.size)?.per_s?;
    let latency = largest(WorkUnit::Loads).and_then(Speed::load_time);
    let bandwidth = match one {
        Some(one) if most_threads > 1 => {
            format!(
                "memory moves {} with one and {} with {most_threads}",
                WorkUnit::Bytes.words(one),
                WorkUnit::Bytes.words(all)
            )
        }
        _ => format!("memory moves {} with {most_threads}", WorkUnit::Bytes.words(all)),
    };
    let latency = latency.map_or_else(String::new, |ns| format!(", a load from it takes {}", time_words(ns)));
    Some(format!("{bandwidth}{latency}"))
}

fn range(values: &[f64]) -> Option<(f64, f64)> {
    Some((values.iter().copied().reduce(f64::min)?, values.iter().copied().reduce(f64::max)?))
}

/// How much the hypervisor took at most; nothing where the kernel does not say.
fn steal(run: &Run) -> Option<String> {
    let share = measured(run).filter_map(super::held::stolen).reduce(f64::max)?;
    Some(format!("steal at most {} %", percent(share)))
}
