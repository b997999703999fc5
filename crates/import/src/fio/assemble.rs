//! From what fio reports to a draft.

use model::record::{Counters, Ending, OperationStats, Outcome, Step, Target, TargetKind, WaitStats, Workload};
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::options::{self, Options};
use super::{Direction, Invocation, Job, Measure, Way, at_once, latency};
use crate::Draft;
use crate::draft::{self, step, whole};

/// Layer of what a job measures: it calls the operating system's files and devices.
pub const LAYER: &str = "OS file";

/// Engines that do not read or write files and block devices of this machine.
const OTHER_TARGETS: [&str; 12] =
    ["net", "netsplice", "rbd", "rados", "http", "null", "cpuio", "libiscsi", "nbd", "gfapi", "libhdfs", "nfs"];

/// Share by which runtimes of directions may differ before a note says so.
const RUNTIMES_AGREE: f64 = 0.01;

/// Shorter runtimes are too near to the time that starting takes.
const SURE_MS: f64 = 500.0;

/// The draft of one invocation, which has at least one job.
pub fn draft(invocation: Invocation) -> Draft {
    let mut draft = Draft::new(Workload::Io, "fio", title(&invocation.jobs));
    draft.notes = notes(&invocation);
    let labels = labels(&invocation.jobs);
    let parameters: Vec<BTreeMap<String, String>> =
        invocation.jobs.iter().map(|job| parameters(job, &invocation)).collect();
    let shown = |(name, value): (&String, &String)| (name.to_lowercase(), options::shown(name, value));
    draft.parameters = invocation.globals.iter().map(shown).collect();
    draft.parameters.extend(in_common(&parameters));
    draft.target = target(&invocation);
    draft.environment.hostname = invocation.jobs.first().and_then(|job| job.host.clone());
    if invocation.jobs.iter().any(|job| job.host != draft.environment.hostname) {
        draft.environment.hostname = None;
    }
    let interrupted = interrupted_group(&invocation);
    let first_start_ms = invocation.jobs.iter().filter_map(|job| job.start_ms).min_by(f64::total_cmp);
    for (index, (job, label)) in invocation.jobs.iter().zip(labels).enumerate() {
        let mut step = step_of(index, label, job, &invocation);
        let own = parameters.get(index).into_iter().flatten();
        let differs = |(name, value): &(&String, &String)| draft.parameters.get(*name) != Some(*value);
        step.parameters = own.filter(differs).map(|(name, value)| (name.clone(), value.clone())).collect();
        let after_ms = job.start_ms.zip(first_start_ms).map(|(start_ms, first_ms)| start_ms - first_ms);
        step.window.offset_ns = after_ms.and_then(|ms| whole(ms * 1e6)).unwrap_or(0);
        if let Some(failure) = &job.failure {
            step.outcome = Outcome::Failed { error: failure.clone() };
            step.window.ending = Ending::Failure;
        } else if interrupted.is_some_and(|group| job.group >= group) {
            step.outcome = Outcome::Interrupted;
            step.window.ending = Ending::Interrupt;
        }
        draft.steps.push(step);
    }
    if at_once::are_groups_beside(&invocation, &draft.steps) {
        draft
            .notes
            .push("Groups of jobs ran at the same time, since nothing made them wait for each other.".to_owned());
    }
    draft.target.facts.jobs_at_once = at_once::jobs(&invocation, &draft.steps);
    // What is reported on all jobs together has no place of its own: it stands with the first.
    if let Some(first) = draft.steps.first_mut() {
        first.reported.extend(invocation.sums);
        first.reported.extend(invocation.disks);
    }
    draft.version = invocation.version;
    draft.command = invocation.command;
    draft.began = invocation.began;
    draft.ended = invocation.ended;
    draft
}

fn title(jobs: &[Job]) -> String {
    let names: BTreeSet<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    let first = jobs.first().map_or("", |job| job.name.as_str());
    match names.len() {
        0 | 1 => first.to_owned(),
        several => format!("{first} and {} more", several - 1),
    }
}

/// Names of jobs, made unique: clones of a job have its name.
fn labels(jobs: &[Job]) -> Vec<String> {
    let hosts: BTreeSet<Option<&str>> = jobs.iter().map(|job| job.host.as_deref()).collect();
    let mut taken: HashMap<String, u32> = HashMap::new();
    let named = |job: &Job| match &job.host {
        Some(host) if hosts.len() > 1 => format!("{host} {}", job.name),
        _ => job.name.clone(),
    };
    let names: BTreeSet<String> = jobs.iter().map(named).collect();
    let mut labels = Vec::with_capacity(jobs.len());
    for name in jobs.iter().map(named) {
        let count = taken.entry(name.clone()).or_default();
        *count += 1;
        let mut label = name.clone();
        while *count > 1 {
            label = format!("{name} #{count}");
            // A job may be called so.
            if !names.contains(&label) {
                break;
            }
            *count += 1;
        }
        labels.push(label);
    }
    labels
}

fn options_of<'a>(job: &'a Job, invocation: &'a Invocation, none: &'a BTreeMap<String, String>) -> Options<'a> {
    let are_all = invocation.has_all_options && job.options.is_some();
    Options { own: job.options.as_ref().unwrap_or(none), globals: &invocation.globals, are_all }
}

/// What was set for a job itself, by fio's names, and what follows of all that holds for it, by ours.
fn parameters(job: &Job, invocation: &Invocation) -> BTreeMap<String, String> {
    let none = BTreeMap::new();
    let options = options_of(job, invocation, &none);
    let own = options.own.iter().filter(|(name, _)| *name != "name");
    let mut parameters: BTreeMap<String, String> =
        own.map(|(name, value)| (name.to_lowercase(), options::shown(name, value))).collect();
    if is_of_several_jobs(job, &options) {
        return parameters;
    }
    parameters.extend(options.ours());
    if let Some(sessions) = sessions(job, &options) {
        parameters.insert("DEPTH".to_owned(), sessions.to_string());
        parameters.extend(job.processes.map(|jobs| ("JOBS".to_owned(), jobs.to_string())));
    }
    parameters
}

fn in_common(each: &[BTreeMap<String, String>]) -> BTreeMap<String, String> {
    let Some((first, others)) = each.split_first() else { return BTreeMap::new() };
    let everywhere =
        |(name, value): &(&String, &String)| others.iter().all(|parameters| parameters.get(*name) == Some(*value));
    first.iter().filter(everywhere).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Requests that the job, or the group that is reported as one, had outstanding at most.
fn sessions(job: &Job, options: &Options<'_>) -> Option<u32> {
    if job.options.is_none() {
        // Where several processes are reported as one, the depth is that of one of them.
        return job.depth.filter(|_| job.processes == Some(1)).and_then(|depth| u32::try_from(depth).ok());
    }
    if is_of_several_jobs(job, options) {
        return None;
    }
    let sessions = options.depth()?.checked_mul(job.processes?)?;
    u32::try_from(sessions).ok()
}

/// Whether a group's figures show that other jobs are in them than the one whose options stand there: fio prints the options of
/// one only.
fn is_of_several_jobs(job: &Job, options: &Options<'_>) -> bool {
    if has_more_processes(job, options) {
        return true;
    }
    if !options.are_groups_summed() && job.processes.is_none_or(|processes| processes <= 1) {
        return false;
    }
    let read_pct = options.ours().get("READ_PCT").and_then(|pct| pct.parse::<u64>().ok());
    let against = |way: Way| match way {
        Way::Read => read_pct == Some(0) && !options.verifies(),
        Way::Write => read_pct == Some(100),
        _ => false,
    };
    let blocks = options.blocks();
    job.directions.iter().any(|direction| {
        let block = direction.way.place().and_then(|place| blocks.get(place).copied().flatten());
        let other_size = match (block, direction.requests, direction.bytes) {
            (Some(block), Some(requests), Some(bytes)) if !job.counts_from_rate => {
                let expected = block as f64 * requests as f64;
                (bytes as f64 - expected).abs() > expected * 0.01 + block as f64
            }
            _ => false,
        };
        against(direction.way) || other_size
    })
}

/// Whether more processes ran than `numjobs` has: the time of all of them is as many times the runtime. A process that verifies
/// reads when it has written.
fn has_more_processes(job: &Job, options: &Options<'_>) -> bool {
    let (Some(all_ms), Some(processes)) = (job.processes_ms, job.processes) else { return false };
    let runtimes = job.directions.iter().filter_map(|direction| direction.runtime_ms);
    let one_ms = if options.verifies() { Some(runtimes.sum()) } else { runtimes.max_by(f64::total_cmp) };
    one_ms.is_some_and(|one_ms| one_ms >= SURE_MS && all_ms > one_ms * (processes as f64 + 0.5))
}

fn target(invocation: &Invocation) -> Target {
    let none = BTreeMap::new();
    let same = |read: &dyn Fn(&Options<'_>) -> Option<String>| {
        let mut each = invocation.jobs.iter().map(|job| read(&options_of(job, invocation, &none)));
        let first = each.next().flatten()?;
        each.all(|other| other.as_ref() == Some(&first)).then_some(first)
    };
    let option = |names: &'static [&'static str]| {
        same(&|options: &Options<'_>| options.get(names).map(|value| options::shown("", value)))
    };
    let engine = option(&["ioengine"]);
    let mut target = Target {
        kind: Some(match engine.as_deref() {
            Some(other) if OTHER_TARGETS.contains(&other) => other.into(),
            _ => TargetKind::Block,
        }),
        address: option(&["filename"]).or_else(|| option(&["directory"])).unwrap_or_default(),
        block_bytes: same(&|options| {
            let [read, write, _] = options.blocks();
            read.filter(|_| read == write).map(|bytes| bytes.to_string())
        })
        // Options of one job are not those of a sum of several.
        .filter(|_| !invocation.jobs.iter().any(|job| is_of_several_jobs(job, &options_of(job, invocation, &none))))
        .and_then(|bytes| bytes.parse().ok()),
        ..Target::default()
    };
    target.facts.files.io_engine = engine;
    if invocation.has_all_options && invocation.jobs.iter().all(|job| job.options.is_some()) {
        let mut each = invocation.jobs.iter().map(|job| is_direct(&options_of(job, invocation, &none)));
        let first = each.next();
        target.facts.files.direct_io = first.filter(|first| each.all(|other| other == *first));
    }
    target
}

/// Whether the page cache was passed by; fio's default is not.
fn is_direct(options: &Options<'_>) -> bool {
    options.switch("direct").or_else(|| options.switch("buffered").map(|buffered| !buffered)).unwrap_or(false)
}

/// The group that was running as a signal ended it: the last that did anything, and all that had not begun.
fn interrupted_group(invocation: &Invocation) -> Option<u64> {
    invocation.signal.as_ref()?;
    let active = invocation.jobs.iter().filter(|job| job.did_something()).map(|job| job.group).max();
    Some(active.unwrap_or(0))
}

fn step_of(index: usize, label: String, job: &Job, invocation: &Invocation) -> Step {
    let duration_ns = window_ms(job, invocation).and_then(|ms| whole(ms * 1e6)).unwrap_or(0);
    let mut step = step(index, label, duration_ns);
    let none = BTreeMap::new();
    step.load.sessions = sessions(job, &options_of(job, invocation, &none));
    // With `unified_rw_reporting=both` the sum stands beside its parts.
    let in_parts = job.directions.iter().any(|direction| direction.way.place().is_some());
    let mut known = Some(0_u64);
    for direction in &job.directions {
        if direction.way == Way::Sync {
            step.waits.extend(sync_waits(direction));
            continue;
        }
        if direction.way == Way::Mixed && in_parts {
            continue;
        }
        known = known.zip(direction.requests).map(|(sum, more)| sum.saturating_add(more));
        step.operations.extend(operations(direction));
    }
    step.counters =
        Counters { operations: known.filter(|_| longest_ms(job).is_some()), errors: job.errors, ..Counters::default() };
    let is_mixed = job.direction(Way::Mixed).is_some() && !in_parts;
    let of = |way: Way| {
        // Nothing was read where a job wrote only: that is known.
        let nothing = (!is_mixed && !job.is_partial && job.did_something()).then_some(0);
        job.direction(way).map_or((nothing, nothing), |direction| (direction.requests, direction.bytes))
    };
    (step.counters.physical_reads, step.counters.physical_read_bytes) = of(Way::Read);
    (step.counters.physical_writes, step.counters.physical_write_bytes) = of(Way::Write);
    step.reported.clone_from(&job.reported);
    step
}

fn longest_ms(job: &Job) -> Option<f64> {
    job.directions.iter().filter_map(|direction| direction.runtime_ms).max_by(f64::total_cmp).filter(|ms| *ms > 0.0)
}

/// How long a job ran: as long as in the direction that took longest, since directions run at the same time; but what was only
/// written is read afterwards to verify it.
fn window_ms(job: &Job, invocation: &Invocation) -> Option<f64> {
    let longest_ms = longest_ms(job)?;
    if !is_read_afterwards(job, invocation) {
        return Some(longest_ms);
    }
    let of_each = job.processes_ms.zip(job.processes).map(|(all_ms, processes)| all_ms / processes as f64);
    let sum = || job.directions.iter().filter_map(|direction| direction.runtime_ms).sum();
    Some(of_each.filter(|ms| *ms >= longest_ms).unwrap_or_else(sum))
}

/// Whether a job was to write only and read when it had written. Normal output does not report `verify`; there a job of one process
/// had no other reason to read.
fn is_read_afterwards(job: &Job, invocation: &Invocation) -> bool {
    let none = BTreeMap::new();
    let options = options_of(job, invocation, &none);
    let wrote_only = options.ours().get("READ_PCT").is_some_and(|pct| pct == "0");
    let verifies = options.verifies() || (!invocation.has_all_options && job.processes == Some(1));
    wrote_only && verifies && job.direction(Way::Read).is_some()
}

fn operations(direction: &Direction) -> Option<OperationStats> {
    let samples = direction.latency.as_ref().and_then(|latency| latency.samples);
    let count = direction.requests.or(samples).filter(|count| *count > 0)?;
    let histogram = match &direction.latency {
        Some(latency) => latency::histogram(latency, direction.requests),
        None => model::record::Histogram::counted(count, None),
    };
    let timed = draft::operations(direction.way.name(), histogram.clone(), histogram);
    Some(OperationStats { count, block_touches: count, ..timed })
}

fn sync_waits(direction: &Direction) -> Option<WaitStats> {
    let waits = latency::histogram(direction.latency.as_ref()?, direction.requests);
    (waits.count() > 0).then(|| WaitStats {
        event: "sync".to_owned(),
        class: "User I/O".to_owned(),
        layer: LAYER.to_owned(),
        foreground: true,
        waits,
        reported: Vec::new(),
    })
}

fn notes(invocation: &Invocation) -> Vec<String> {
    let jobs = &invocation.jobs;
    let mut notes = invocation.notes.clone();
    let latencies = || {
        let each = jobs.iter().flat_map(|job| &job.directions);
        each.filter(|direction| direction.way != Way::Sync).filter_map(|direction| direction.latency.as_ref())
    };
    let mut note = |applies: bool, text: &str| {
        if applies {
            notes.push(text.to_owned());
        }
    };
    note(
        latencies().any(|latency| latency.measure == Some(Measure::Completion)),
        "Latency is fio's clat, from submission to completion; the time that submitting took is not in it.",
    );
    note(
        latencies().any(|latency| latency.measure == Some(Measure::Total)),
        "Latency is fio's lat, with the time that submitting took: of completion alone there is none, or none with percentiles.",
    );
    note(
        latencies().any(|latency| latency.bins.is_empty() && !latency.percentiles.is_empty()),
        "Latency is known at the percentiles that fio printed. Each is up to 0.8 % off, or more where few digits are \
        printed. Those in between are the next above.",
    );
    note(
        latencies().any(|latency| !latency.is_distribution() && !latency.shares.is_empty()),
        "Latency is known in the wide buckets of fio's tables of latency only: it printed no percentiles.",
    );
    note(
        jobs.iter().any(|job| job.counts_from_rate && job.did_something()),
        "This form of output has no count of requests. It is computed from whole requests per second and the \
        runtime: up to one request per second too low.",
    );
    note(jobs.iter().any(|job| job.bytes_rounded), "Bytes are rounded to the digits that fio printed.");
    let is_verified = |job: &Job| is_read_afterwards(job, invocation);
    note(
        jobs.iter().any(is_verified),
        "fio read again what it wrote, to verify it. The window is the time of both, so rates computed from it are \
        lower than those that fio reported on each.",
    );
    let differ = |job: &Job| {
        let times = || job.directions.iter().filter_map(|direction| direction.runtime_ms).filter(|ms| *ms > 0.0);
        let least = times().min_by(f64::total_cmp);
        least.zip(longest_ms(job)).is_some_and(|(least, most)| most - least > most * RUNTIMES_AGREE)
    };
    note(
        jobs.iter().any(|job| differ(job) && !is_verified(job)),
        "Reads and writes of a job did not run equally long. Its window is the longer time, so rates are lower than \
        those that fio reported for the shorter one.",
    );
    let groups: BTreeSet<u64> = jobs.iter().map(|job| job.group).collect();
    note(
        groups.len() < jobs.len(),
        "Steps are jobs; those of one group ran at the same time, so that what the platform sustained is their sum.",
    );
    let none = BTreeMap::new();
    note(
        jobs.iter().any(|job| is_of_several_jobs(job, &options_of(job, invocation, &none))),
        "fio summed up jobs of different kinds under the name and options of one of them: how many requests were outstanding \
         is not known.",
    );
    notes.extend(jobs.iter().flat_map(|job| &job.doubts).cloned());
    if let Some(signal) = &invocation.signal {
        notes.push(format!("It was ended early: `{signal}`."));
    }
    notes
}
