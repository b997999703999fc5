//! Which load a report opens with: what remains of a burst, the load line, a load that settled, or else the fastest step.

use super::words::number;
use super::{Carried, Claim, Latency, StoppedBy, Unit, leading};
use crate::measured::is_one_load;
use crate::traffic::Counted;
use crate::{
    BurstFound, BusiestDevice, Figures, Finding, LatencyTarget, MapAnswer, OpenLoadLine, Point, Processors, Reached,
    SINGLE_BLOCK_READ, SteadyState, StepLine, Stops, Subject, Vocabulary, at_once, is_on_servers, measured, wait,
};
use model::record::{Metric, Run, Step, TargetKind, WaitStats, Workload};
use model::units::group_thousands;

pub(super) fn find(run: &Run, findings: &[Finding]) -> Option<Carried> {
    // Points of a map lie on both sides of its line, which is the answer.
    if run.load.map().is_some() {
        return None;
    }
    let line = || of_lines(run, findings, &[]).filter(|_| !is_one_load(run));
    of_burst(findings).or_else(line).or_else(|| of_steady(run, findings)).or_else(|| seen(run, findings))
}

/// The highest rate that outlasted a burst, if bursts touch what a report would say.
fn of_burst(findings: &[Finding]) -> Option<Carried> {
    let bursts = leading(findings).filter_map(|finding| match finding {
        Finding::Burst(burst) => Some(burst),
        _ => None,
    });
    let burst: &BurstFound = bursts.max_by(|a, b| a.base_per_s.total_cmp(&b.base_per_s))?;
    let (unit, per_s) = match burst.counted {
        Counted::Requests => (Unit::Requests, burst.base_per_s),
        Counted::Bytes => (Unit::Megabytes, burst.base_per_s / 1e6),
    };
    let claim = Claim::Sustained {
        burst: burst.counted.rate_words(burst.burst_per_s),
        lasted: burst.after,
        may_be_write_cache: burst.written_bytes.is_some(),
    };
    Some(Carried {
        claim,
        unit,
        per_s,
        megabytes_per_s: None,
        misses_per_s: None,
        // Times over the whole window mix both rates.
        latency: None,
        load: None,
        multiple: None,
        series: String::new(),
        step: burst.steps.first().filter(|_| burst.steps.len() == 1).cloned(),
    })
}

/// The load line, of several series that of the one which carries most. With `limits`, it keeps all of them, and `None` where
/// one of them is not judged.
pub(crate) fn of_lines(run: &Run, findings: &[Finding], limits: &[LatencyTarget]) -> Option<Carried> {
    let most = |lines: Vec<Carried>| {
        lines.into_iter().max_by(|a, b| firmness(a).cmp(&firmness(b)).then(a.per_s.total_cmp(&b.per_s)))
    };
    if limits.is_empty() {
        return most(findings.iter().filter_map(|finding| of_line(run, finding)).collect());
    }
    let limits: Vec<LatencyTarget> = limits.iter().map(|limit| limit.of_run(run)).collect();
    let of_limit = |limit: &LatencyTarget| -> Vec<Carried> {
        let judged = findings.iter().filter(|finding| target_of(finding) == Some(limit));
        let judged = judged.filter_map(|finding| of_line(run, finding));
        // Whoever asked for it is reported in full what is judged.
        let latency = Some(Latency::Within { what: limit.what(), limit: limit.limit });
        judged.map(|line| Carried { latency: latency.clone(), ..line }).collect()
    };
    let lines: Vec<Vec<Carried>> = limits.iter().map(of_limit).collect();
    let of_series = |first: &Carried| {
        let same = |lines: &Vec<Carried>| lines.iter().find(|line| line.series == first.series).cloned();
        Some(keeping_all(run, lines.iter().map(same).collect::<Option<_>>()?, &limits))
    };
    most(lines.first()?.iter().filter_map(of_series).collect())
}

fn firmness(carried: &Carried) -> u8 {
    match carried.claim {
        Claim::Most { .. } | Claim::AtLeast => 2,
        Claim::Unclear => 1,
        _ => 0,
    }
}

/// Of the lines that each limit draws through one series, the one that keeps all limits: the least.
fn keeping_all(run: &Run, lines: Vec<Carried>, limits: &[LatencyTarget]) -> Carried {
    let load = |line: &Carried| {
        let step = measured(run).find(|step| Some(&step.label) == line.step.as_ref());
        step.and_then(|step| step.load.rate_operations_per_s.or(step.load.sessions.map(f64::from))).unwrap_or(0.0)
    };
    let is_missed_at = |label: &Option<String>| {
        let missed = lines.iter().filter_map(|line| match &line.claim {
            Claim::Most { missed_below, .. } => Some(missed_below),
            _ => None,
        });
        missed.flatten().any(|missed| Some(missed) == label.as_ref())
    };
    let least = lines.iter().min_by(|a, b| firmness(a).cmp(&firmness(b)).then(load(a).total_cmp(&load(b))));
    let mut least = least.expect("there is a limit, and a line for each").clone();
    if firmness(&least) > 0 && is_missed_at(&least.step) {
        least.claim = Claim::Unclear;
    }
    if limits.len() > 1 && firmness(&least) > 0 {
        least.latency = Some(Latency::WithinAll(limits.iter().map(|limit| (limit.what(), limit.limit)).collect()));
    }
    least
}

fn of_line(run: &Run, finding: &Finding) -> Option<Carried> {
    match finding {
        Finding::StepLine(StepLine::Between { series, target, passing, failing }) => {
            let claim = Claim::Most { not_per_s: None, missed_below: failing.below.clone() };
            of_point(run, series, target, passing, claim)
        }
        Finding::StepLine(StepLine::AllMeet { series, target, most, .. }) => {
            of_point(run, series, target, most, Claim::AtLeast)
        }
        Finding::StepLine(StepLine::OnlyAbove { series, target, passing, .. }) => {
            of_point(run, series, target, passing, Claim::Unclear)
        }
        Finding::StepLine(StepLine::NoneMeets { series, target, least }) => {
            // What missed it by failing has a latency that says nothing.
            let value = Some(least.value).filter(|value| value.ns > target.limit);
            of_point(run, series, target, least, Claim::LessThan { value, why: least.missed.clone() })
        }
        Finding::OpenLoadLine(line) => of_open_line(run, line),
        _ => None,
    }
}

fn of_point(run: &Run, series: &str, target: &LatencyTarget, point: &Point, claim: Claim) -> Option<Carried> {
    let same = |step: &&Step| step.label == point.step && Figures(step).operations_per_s() == point.operations_per_s;
    let step = measured(run).find(same);
    let (unit, per_s) = counted(run, point.reads_per_s, point.operations_per_s)?;
    // A rate that was asked for is the answer itself, and of a load that nobody reported there is nothing to say.
    let has_load = step.is_none_or(|step| step.load.rate_operations_per_s.is_none() && step.load.sessions.is_some());
    Some(Carried {
        claim,
        unit,
        per_s,
        megabytes_per_s: point.megabytes_per_s.filter(|_| unit == Unit::Requests),
        misses_per_s: step.and_then(|step| misses_per_s(run, step)),
        latency: Some(Latency::Within { what: what(target, unit), limit: target.limit }),
        load: has_load.then(|| point.load.clone()),
        multiple: None,
        series: series.to_owned(),
        step: Some(point.step.clone()),
    })
}

fn of_open_line(run: &Run, line: &OpenLoadLine) -> Option<Carried> {
    let unit = unit_of(line.words);
    let above = line.ceiling();
    let (point, claim) = match (&line.passing, above) {
        (Some(passing), None) => (passing, Claim::AtLeast),
        (Some(passing), Some(above)) if above.why.is_of_this_machine() => (passing, Claim::AtLeast),
        (Some(passing), Some(above)) => {
            let not_per_s = Some(above.asked_operations_per_s);
            (passing, Claim::Most { not_per_s, missed_below: Vec::new() })
        }
        (None, Some(above)) if line.is_missed() => {
            let value = above.value.filter(|value| value.ns > line.target.limit);
            let why = value.is_none().then(|| above.outcome_words(line.words));
            (above, Claim::LessThan { value, why })
        }
        (None, _) => return None,
    };
    let step = measured(run).find(|step| step.label == point.step);
    Some(Carried {
        claim,
        unit,
        per_s: point.asked_operations_per_s,
        megabytes_per_s: None,
        misses_per_s: step.and_then(|step| misses_per_s(run, step)),
        latency: Some(Latency::Within { what: what(&line.target, unit), limit: line.target.limit }),
        load: None,
        multiple: None,
        series: line.series.clone(),
        step: Some(point.step.clone()),
    })
}

fn of_steady(run: &Run, findings: &[Finding]) -> Option<Carried> {
    let (state, from, per_s): (&SteadyState, _, _) = findings.iter().find_map(|finding| match finding {
        Finding::Steady(state) => match state.reached {
            Reached::From { from, operations_per_s } => Some((state, from, operations_per_s)),
            _ => None,
        },
        _ => None,
    })?;
    if !is_one_load(run) {
        return None;
    }
    let step = measured(run).find(|step| state.on.contains(&step.label))?;
    let words = Vocabulary::of(run);
    let unit = unit_of(words);
    let is_alone = state.on.len() == 1;
    Some(Carried {
        claim: Claim::Steady { from },
        unit,
        per_s,
        megabytes_per_s: None,
        misses_per_s: None,
        latency: if is_alone { seen_latency(run, findings, step, unit) } else { None },
        load: load(step, words),
        multiple: None,
        series: String::new(),
        step: is_alone.then(|| step.label.clone()),
    })
}

/// What one load did, as it stands after what its limits say.
pub(crate) fn at_load(run: &Run, step: &Step) -> String {
    let (figures, words) = (Figures(step), Vocabulary::of(run));
    let beside =
        |rate: Option<f64>, unit: &str| rate.map_or_else(String::new, |rate| format!(" ({} {unit})", number(rate)));
    let (reads, operations) = (figures.value(Metric::Reads), figures.operations_per_s());
    let rate = counted(run, reads, operations).map(|(unit, per_s)| match (unit, operations) {
        // A rate is one of operations, whatever storage they need.
        (Unit::Reads, Some(operations)) if step.load.rate_operations_per_s.is_some() => {
            format!("{}{}", words.rate(operations), beside(reads, "reads/s"))
        }
        _ => {
            let megabytes = figures.megabytes_per_s().filter(|_| unit == Unit::Requests);
            format!("{} {}{}", number(per_s), unit.words(), beside(megabytes, "MB/s"))
        }
    });
    let load = match (step.load.rate_operations_per_s, step.load.sessions) {
        (Some(asked), _) => Some(format!("{} requested", words.rate(asked))),
        (None, Some(sessions)) => Some(words.closed_load(sessions)),
        (None, None) => None,
    };
    match (rate, load) {
        (Some(rate), Some(load)) => format!(", at {rate} with {load}"),
        (Some(rate), None) => format!(", at {rate}"),
        (None, Some(load)) => format!(", with {load}"),
        (None, None) => String::new(),
    }
}

/// The fastest step.
pub(super) fn seen(run: &Run, findings: &[Finding]) -> Option<Carried> {
    let of = |step: &Step| counted(run, Figures(step).value(Metric::Reads), Figures(step).operations_per_s());
    let fastest = |a: &(&Step, (Unit, f64)), b: &(&Step, (Unit, f64))| a.1.1.total_cmp(&b.1.1);
    let (step, (unit, per_s)) = measured(run).filter_map(|step| Some((step, of(step)?))).max_by(fastest)?;
    Some(Carried {
        claim: Claim::Seen,
        unit,
        per_s,
        megabytes_per_s: Figures(step).megabytes_per_s().filter(|_| unit == Unit::Requests),
        misses_per_s: misses_per_s(run, step),
        latency: seen_latency(run, findings, step, unit),
        load: load(step, Vocabulary::of(run)),
        multiple: None,
        series: String::new(),
        step: Some(step.label.clone()),
    })
}

/// The unit that fits the layer, and the rate in it: requests of raw storage, operations of a server, which does not report
/// its clients of its reads, and physical reads of an engine that did any.
fn counted(run: &Run, reads_per_s: Option<f64>, operations_per_s: Option<f64>) -> Option<(Unit, f64)> {
    if Vocabulary::of(run) == Vocabulary::Requests {
        return operations_per_s.map(|rate| (Unit::Requests, rate));
    }
    let reads = reads_per_s.filter(|rate| *rate > 0.0 && !is_on_servers(run));
    // What another program counted in a server are its buffer misses.
    let is_of_server = run.imported.is_some() && run.target.kind == Some(TargetKind::Postgres);
    let unit = if is_of_server { Unit::BufferMisses } else { Unit::Reads };
    reads.map(|rate| (unit, rate)).or_else(|| operations_per_s.map(|rate| (unit_of(Vocabulary::of(run)), rate)))
}

/// What finished work is counted in.
fn unit_of(words: Vocabulary) -> Unit {
    match words {
        Vocabulary::Requests => Unit::Requests,
        Vocabulary::Sessions => Unit::Operations,
        Vocabulary::Users => Unit::Transactions,
    }
}

/// Of a server that storage is judged by; transactions are what they are with the cache that they have.
fn misses_per_s(run: &Run, step: &Step) -> Option<f64> {
    let is_of_storage = is_on_servers(run) && Vocabulary::of(run) != Vocabulary::Users;
    Figures(step).value(Metric::BufferMisses).filter(|_| is_of_storage)
}

fn load(step: &Step, words: Vocabulary) -> Option<String> {
    Some(match step.load.rate_operations_per_s {
        Some(asked) => format!("{} requested", words.rate(asked)),
        None => words.closed_load(step.load.sessions?),
    })
}

/// Buckets no wider than this, as upper over lower edge, bound their quantile well enough to say.
const WIDEST: f64 = 2.1;

/// The quantile that the run was judged by, or the usual one.
fn seen_latency(run: &Run, findings: &[Finding], step: &Step, unit: Unit) -> Option<Latency> {
    let target = findings.iter().find_map(target_of).cloned().unwrap_or_default().of_step(run.workload(), step);
    if unit == Unit::Reads
        && matches!(&target.subject, Some(Subject::Event(event)) if event == SINGLE_BLOCK_READ)
        && let Some(event) = mostly_read_by(step)
    {
        return Some(Latency::OfFew { event: event.to_owned() });
    }
    let value = target.quantile_value(run.workload(), step)?;
    let is_asked = findings.iter().any(|finding| target_of(finding).is_some());
    let missed = (is_asked && target.is_met(run.workload(), step) == Some(false)).then_some(target.limit);
    // A bucket wider than Oracle's reports little more than the maximum, which is no percentile.
    target.width(run.workload(), step).filter(|width| *width <= WIDEST)?;
    Some(Latency::Seen { what: what(&target, unit), value, missed })
}

/// The event that sessions waited in for more reads than in that of single blocks, such as `direct path read`: a percentile of the few
/// says nothing about the rate of all.
fn mostly_read_by(step: &Step) -> Option<&str> {
    let single = wait(step, SINGLE_BLOCK_READ)?.waits.count();
    let is_read = |wait: &&WaitStats| wait.foreground && wait.class == "User I/O" && wait.event.contains(" read");
    let most = step.waits.iter().filter(is_read).max_by_key(|wait| wait.waits.count())?;
    (most.waits.count() > single).then_some(&most.event)
}

/// The target by which a finding says how much is carried.
fn target_of(finding: &Finding) -> Option<&LatencyTarget> {
    match finding {
        Finding::StepLine(line) => line.judged_target(),
        Finding::OpenLoadLine(line) => Some(&line.target),
        Finding::Verdict(verdict) => verdict.limits.first().map(|limit| &limit.target),
        _ => None,
    }
}

/// The quantile, and of what, unless that goes without saying beside the rate.
fn what(target: &LatencyTarget, unit: Unit) -> String {
    let goes_without_saying = match (&target.subject, unit) {
        (None, _) => true,
        (Some(Subject::Event(event)), Unit::Reads) => event == SINGLE_BLOCK_READ,
        (Some(Subject::Response(None)), Unit::Requests | Unit::Operations | Unit::Transactions) => true,
        _ => false,
    };
    if goes_without_saying { target.quantile_name() } else { target.what() }
}

/// What an imported run found by its own names: the first figure that its program reports, the largest over its steps.
pub(super) fn first_figure_words(run: &Run) -> Option<String> {
    let tool = &run.tool.name;
    if run.workload() == Workload::Host {
        if let Some(device) = busiest_device(run) {
            return Some(format!("{tool} saw {device}"));
        }
        return Some(format!("What {tool} saw of a machine: of load it says nothing"));
    }
    if let Some(answers) = of_storage(run) {
        return Some(format!("{tool} reports {answers}"));
    }
    let believed = || run.steps.iter().flat_map(|step| &step.reported).filter(|figure| figure.doubted.is_none());
    if let Some(first) = believed().next() {
        let same = believed().filter(|figure| figure.name == first.name);
        let largest = same.map(|figure| figure.value).fold(f64::NEG_INFINITY, f64::max);
        let value =
            if largest.fract() == 0.0 || largest >= 1e3 { group_thousands(largest) } else { format!("{largest:.2}") };
        let most = if run.steps.len() > 1 { " at most" } else { "" };
        return Some(format!("{tool} reports {}{most} {value} {}", first.name, first.unit).trim_end().to_owned());
    }
    let waits = run.steps.iter().flat_map(|step| &step.waits);
    let (event, count) = waits.map(|wait| (&wait.event, wait.waits.count())).max_by_key(|(_, count)| *count)?;
    Some(format!("{tool} reports {} waits for {event}", group_thousands(count as f64)))
}

/// Of the device that was busiest on average in any step: its share of time, and what it did, as far as iostat reports them.
fn busiest_device(run: &Run) -> Option<String> {
    let device = BusiestDevice::of(&run.steps)?;
    let metrics = [
        (Metric::DeviceReads, "reads/s"),
        (Metric::DeviceWrites, "writes/s"),
        (Metric::DeviceReadMegabytes, "MB/s read"),
        (Metric::DeviceWriteMegabytes, "MB/s written"),
        (Metric::DeviceAwait, "ms await"),
        (Metric::DeviceReadAwait, "ms r_await"),
        (Metric::DeviceWriteAwait, "ms w_await"),
    ];
    let known = |metric| device.value(metric).filter(|value| *value >= 0.0);
    let words: Vec<String> =
        metrics.into_iter().filter_map(|(metric, unit)| Some(format!("{} {unit}", number(known(metric)?)))).collect();
    let BusiestDevice { name, busy_pct, .. } = device;
    Some(format!("{name} busiest, {} % of the time, with {}", number(busy_pct), words.join(", ")))
        .filter(|_| !words.is_empty())
}

/// What ORION and CALIBRATE_IO are asked for: the most small requests a second, and the most bytes a second of large ones.
fn of_storage(run: &Run) -> Option<String> {
    let steps = || run.steps.iter();
    let most = |of: fn(&Step) -> Option<f64>| {
        let rates = steps().filter_map(|step| Some((step, of(step)?)));
        rates.reduce(|most, other| if other.1 > most.1 { other } else { most })
    };
    let reported = |metric| steps().find_map(|step| Figures(step).reported(metric));
    let (requests, bytes) = match run.workload() {
        Workload::Orion => {
            let beside = |step: &Step| match step.load.sessions {
                Some(sessions) => format!(" with {sessions} outstanding"),
                None => format!(" at {}", step.label),
            };
            let requests = most(|step| Figures(step).operations_per_s());
            // Bytes of small requests are theirs, and no answer to how much large ones bring.
            let bytes = most(|step| Figures(step).megabytes_per_s().filter(|_| step.counters.operations.is_none()));
            let most_words =
                |unit: &str, (step, rate): (&Step, f64)| format!("{} {unit}{}", group_thousands(rate), beside(step));
            (requests.map(|most| most_words("requests/s", most)), bytes.map(|most| most_words("MB/s", most)))
        }
        Workload::Calibrate => {
            let took = reported(Metric::RequestTime).map_or_else(String::new, |ms| format!(" in {ms} ms on average"));
            let requests = reported(Metric::Reads).map(|rate| format!("{} reads/s{took}", group_thousands(rate)));
            (requests, reported(Metric::ReadMegabytes).map(|rate| format!("{} MB/s", group_thousands(rate))))
        }
        _ => (None, None),
    };
    let both: Vec<String> = requests.into_iter().chain(bytes).collect();
    (!both.is_empty()).then(|| format!("at most {}", both.join(", and ")))
}

/// What a map shows, or an imported run reports in the words of its program.
pub(super) fn reported(run: &Run, is_imported: bool) -> Option<String> {
    let own_words = || of_jobs(run).or_else(|| first_figure_words(run)).filter(|_| is_imported);
    MapAnswer::of(run).map(|map| map.sentence()).or_else(own_words)
}

/// What steps carried together that were jobs at the same time, as those of one group of fio are; of several groups that which
/// did most.
pub(super) fn of_jobs(run: &Run) -> Option<String> {
    let levels = at_once::levels(run);
    let together = levels.iter().filter(|level| level.is_whole && level.jobs > 1);
    let rate = |level: &at_once::Level<'_>| Figures(&level.step).operations_per_s();
    let (most, requests) = together
        .filter_map(|level| Some((level, rate(level)?)))
        .reduce(|most, level| if level.1 > most.1 { level } else { most })?;
    let megabytes = Figures(&most.step)
        .megabytes_per_s()
        .map_or_else(String::new, |megabytes| format!(" ({} MB/s)", group_thousands(megabytes)));
    Some(format!(
        "{} jobs at the same time did {} requests/s{megabytes} together",
        most.jobs,
        group_thousands(requests)
    ))
}

/// Processors that carry more than so many times the load are not what comes next.
const FAR_OFF: f64 = 10.0;

/// By the law of utilisation: a transaction needs as much of processors at any load, so that they are at their end at the rate divided by
/// the share of them that is busy. Only of servers whose processors can be seen from here.
pub(super) fn processors_next(run: &Run, carried: &Carried, stopped_by: &StoppedBy) -> Option<f64> {
    let is_other = match stopped_by {
        StoppedBy::Sessions(stops, _) => !matches!(stops, Stops::Processors { .. }),
        StoppedBy::Ceiling(ceiling) => ceiling.is_cap(),
        _ => false,
    };
    let step = measured(run).find(|step| is_other && Some(&step.label) == carried.step.as_ref())?;
    let processors = Processors::of(run, step).filter(|processors| processors.server.is_some())?;
    processors.busy.filter(|busy| *busy > 0.0).map(|busy| 1.0 / busy).filter(|times| *times <= FAR_OFF)
}
