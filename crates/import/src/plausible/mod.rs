//! Figures that cannot be. Every program may print one, so that all drafts pass here and no importer checks by itself.
//!
//! A figure of ours that cannot be is left unknown, and a rate that contradicts the counts it is made of is left out; a figure by
//! its program's own name stays. Either way a note of the run has its name, its value and the reason.

use model::record::Workload;
use std::collections::BTreeSet;

use super::Draft;
use model::record::{Counters, Histogram, ReportedBucket, ReportedFigure, Step};
use model::units::{Nanos, group_thousands};

/// Doubts of one run that are reported; the rest is counted.
const MAX_DOUBTS: usize = 12;
/// By how much a latency may be longer than the load, as a share and in nanoseconds: programs round both, and wait for the last
/// request.
const LATE: f64 = 1.05;
const LATE_NS: f64 = 1e9;
/// By how much a rate may differ from its counts over the time, which is often reported in whole seconds.
const RATE_TOLERANCE: f64 = 0.05;
/// Below this rate, rounding to whole numbers is more than the tolerance.
const MIN_RATE: f64 = 20.0;
/// By how much times of operations may add up to more than the time of all sessions.
const BUSY_TOLERANCE: f64 = 1.1;

/// A rate by the name that its program prints, and what it is made of: its program, its name or how that begins, the count that it
/// is a rate of, and what that is called.
type Headline = (&'static str, &'static str, fn(&Counters) -> Option<u64>, &'static str);

const HEADLINES: [Headline; 8] = [
    ("pgio", "RIOPS", |counters| counters.physical_reads, "blks_read"),
    ("pgio", "CACHE_HITS/s", |counters| counters.cache_hits, "blks_hit"),
    // That without connections of old versions is of a shorter time.
    ("pgbench", "tps (including", |counters| counters.operations, "transactions"),
    ("pgbench", "tps (without", |counters| counters.operations, "transactions"),
    ("sysbench", "transactions per sec.", |counters| counters.operations, "transactions"),
    ("sysbench", "events per second", |counters| counters.operations, "events"),
    ("sysbench", "events/s (eps)", |counters| counters.operations, "events"),
    ("sysbench", "Total operations per sec.", |counters| counters.operations, "operations"),
];

/// Notes, each once.
#[derive(Debug, Default)]
struct Doubts {
    reported: BTreeSet<String>,
    in_order: Vec<String>,
    more: usize,
}

impl Doubts {
    fn add(&mut self, doubt: String) {
        if self.in_order.len() == MAX_DOUBTS {
            self.more += usize::from(!self.reported.contains(&doubt));
        } else if self.reported.insert(doubt.clone()) {
            self.in_order.push(doubt);
        }
    }
}

/// Looks for figures of `draft` that cannot be.
pub(super) fn check(draft: &mut Draft) {
    let mut doubts = Doubts::default();
    let several = draft.steps.len() > 1;
    for step in &mut draft.steps {
        let of = if several { format!("Step {}: ", step.label) } else { String::new() };
        let mut in_step = Doubts::default();
        // A wait of a database, and a request that a tool for machines saw, may have begun long before.
        let load_ns = match draft.workload {
            Workload::Database | Workload::Host => None,
            _ => Some(step.window.warmup_ns.saturating_add(step.window.duration_ns))
                .filter(|_| step.window.duration_ns > 0),
        };
        latencies(step, load_ns, &mut in_step);
        own_latencies(step, load_ns, &mut in_step);
        means(&step.reported, &mut in_step);
        headlines(draft.program, step, &mut in_step);
        transfers(step, &mut in_step);
        busy(step, &mut in_step);
        in_step.in_order.into_iter().for_each(|doubt| doubts.add(format!("{of}{doubt}")));
        doubts.more += in_step.more;
    }
    draft.notes.append(&mut doubts.in_order);
    if doubts.more > 0 {
        draft.notes.push(format!("{} more figures cannot be.", doubts.more));
    }
}

fn latencies(step: &mut Step, load_ns: Option<u64>, doubts: &mut Doubts) {
    for operation in &mut step.operations {
        let what = format!("latency of {}", operation.kind);
        histogram(&mut operation.response, load_ns, &what, doubts);
        histogram(&mut operation.service, load_ns, &what, doubts);
    }
    for wait in &mut step.waits {
        histogram(&mut wait.waits, load_ns, &format!("time of {}", wait.event), doubts);
    }
    for interval in &mut step.intervals {
        let at = Nanos(interval.offset_ns);
        histogram(&mut interval.response, load_ns, &format!("latency in the interval that begins at {at}"), doubts);
    }
}

/// The longest duration that fits into a load, programs' rounding included.
fn limit(load_ns: u64) -> f64 {
    load_ns as f64 * LATE + LATE_NS
}

fn histogram(of: &mut Histogram, load_ns: Option<u64>, what: &str, doubts: &mut Doubts) {
    let count = of.count();
    if count == 0 {
        return;
    }
    let (was_max, mut total_ns, mut min_ns, mut max_ns) = (of.max_ns(), of.total_ns(), of.min_ns(), of.max_ns());
    if let Some(load_ns) = load_ns {
        let mut too_long = |which: &str, ns: f64, ending: &str| {
            let is_so = ns > limit(load_ns);
            if is_so {
                let (value, load) = (Nanos(ns as u64), Nanos(load_ns));
                doubts.add(format!(
                    "The {which} {what} is reported as {value}, longer than the load of {load}: {ending}."
                ));
            }
            is_so
        };
        let unknown = "it is left unknown";
        max_ns = max_ns.filter(|ns| !too_long("longest", *ns as f64, unknown));
        min_ns = min_ns.filter(|ns| !too_long("shortest", *ns as f64, unknown));
        total_ns = total_ns.filter(|ns| !too_long("mean", *ns as f64 / count as f64, unknown));
        let beyond = |(from_ns, ..): &(u64, u64, u64)| *from_ns as f64 > limit(load_ns) && Some(*from_ns) != was_max;
        if max_ns == was_max
            && let Some((from_ns, ..)) = of.buckets_ns().find(beyond)
        {
            too_long("highest bucket of the", from_ns as f64, "it is kept");
        }
    }
    if let Some(total) = total_ns {
        let mean_ns = total as f64 / count as f64;
        let is_below = min_ns.is_some_and(|min_ns| mean_ns + last_digit(min_ns) < min_ns as f64);
        let is_above = max_ns.is_some_and(|max_ns| mean_ns > max_ns as f64 + last_digit(max_ns));
        if is_below || is_above {
            let (which, bound) = if is_below { ("shortest", min_ns) } else { ("longest", max_ns) };
            doubts.add(format!(
                "The mean {what} is reported as {}, {} the {which}, {}: the mean is left unknown.",
                Nanos(mean_ns as u64),
                if is_below { "below" } else { "above" },
                Nanos(bound.unwrap_or(0))
            ));
            total_ns = None;
        }
    }
    if (total_ns, min_ns, max_ns) != (of.total_ns(), of.min_ns(), of.max_ns()) {
        // The last of buckets that were made of percentiles ends at the maximum.
        let without_end = |bucket: ReportedBucket| ReportedBucket {
            to_ns: bucket.to_ns.filter(|to_ns| max_ns.is_some() || Some(*to_ns) != was_max),
            ..bucket
        };
        *of = Histogram::reported(of.reported_buckets().into_iter().map(without_end), total_ns, min_ns, max_ns);
    }
}

/// What the last digit of a duration may stand for: one that ends in zeros was rounded to the digits before them.
fn last_digit(ns: u64) -> f64 {
    let zeros = (1..=9).take_while(|zeros| ns.is_multiple_of(10_u64.pow(*zeros))).last();
    1.01 * 10_f64.powi(zeros.map_or(0, |zeros| zeros as i32))
}

/// Latencies by their programs' names.
fn own_latencies(step: &Step, load_ns: Option<u64>, doubts: &mut Doubts) {
    let Some(load_ns) = load_ns else { return };
    let is_latency = |name: &str| {
        let is_one = |word: &str| {
            ["clat", "slat", "lat", "latency", "rtt", "jitter"].iter().any(|known| word.starts_with(known))
        };
        // A sum is one of all requests.
        !name.ends_with("sum") && name.split([' ', '_']).any(is_one)
    };
    for ReportedFigure { name, unit, value, .. } in &step.reported {
        let unit_ns = match unit.as_str() {
            "ns" => 1.0,
            "us" => 1e3,
            "ms" => 1e6,
            _ => continue,
        };
        if is_latency(name) && value * unit_ns > limit(load_ns) {
            doubts.add(format!(
                "`{name}` is reported as {} {unit}, longer than the load of {}: it is kept as reported.",
                group_thousands(*value),
                Nanos(load_ns)
            ));
        }
    }
}

/// Means outside their minimum and maximum, of figures by their programs' names.
fn means(reported: &[ReportedFigure], doubts: &mut Doubts) {
    for mean in reported {
        let stem = |name: &str| Some(name.strip_suffix(" mean").or_else(|| name.strip_suffix(" avg"))?.to_owned());
        let Some(stem) = stem(&mean.name) else { continue };
        let of = |end: &str| {
            let name = format!("{stem} {end}");
            reported.iter().find(|figure| figure.layer == mean.layer && figure.name == name && figure.unit == mean.unit)
        };
        let is_beyond = |bound: &&ReportedFigure, above: f64| {
            above * (mean.value - bound.value) > rounding(mean.value) + rounding(bound.value)
        };
        let below = of("min").filter(|min| is_beyond(min, -1.0)).map(|min| ("below", min));
        let above = || of("max").filter(|max| is_beyond(max, 1.0)).map(|max| ("above", max));
        if let Some((side, bound)) = below.or_else(above) {
            doubts.add(format!(
                "`{}` is reported as {} {}, {side} `{}` of {}: both are kept as reported.",
                mean.name, mean.value, mean.unit, bound.name, bound.value
            ));
        }
    }
}

/// What the last decimal that is printed of a value may stand for.
fn rounding(value: f64) -> f64 {
    let text = value.to_string();
    let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    10_f64.powi(-i32::try_from(decimals).unwrap_or(0))
}

/// Rates that their own counts do not allow. The counts are kept.
fn headlines(program: &str, step: &mut Step, doubts: &mut Doubts) {
    let seconds = step.window.duration_ns as f64 / 1e9;
    if seconds <= 0.0 {
        return;
    }
    for (_, name, count, counted) in HEADLINES.iter().filter(|(of, ..)| *of == program) {
        let Some(count) = count(&step.counters) else { continue };
        let rate = count as f64 / seconds;
        let is_so = |figure: &ReportedFigure| {
            figure.name.starts_with(name) && (figure.value - rate).abs() > RATE_TOLERANCE * rate.max(MIN_RATE)
        };
        step.reported.retain(|figure| {
            let doubted = is_so(figure);
            if doubted {
                doubts.add(format!(
                    "{} is reported as {} {}, and is not believed: {} {counted} in {} are {}/s. The counts are kept.",
                    figure.name,
                    group_thousands(figure.value),
                    figure.unit,
                    group_thousands(count as f64),
                    Nanos(step.window.duration_ns),
                    group_thousands(rate.round())
                ));
            }
            !doubted
        });
    }
}

/// Rates of a network that the bytes over the time do not allow. Which of both is wrong is not known.
fn transfers(step: &Step, doubts: &mut Doubts) {
    let seconds = step.window.duration_ns as f64 / 1e9;
    for rate in step.reported.iter().filter(|figure| figure.unit == "bits/s" && seconds > 0.0) {
        let Some(stem) = rate.name.strip_suffix("bits/s") else { continue };
        let name = format!("{stem}bytes");
        let Some(bytes) = step.reported.iter().find(|figure| figure.name == name && figure.layer == rate.layer) else {
            continue;
        };
        let by_bytes = bytes.value * 8.0 / seconds;
        // One side may have counted longer than the other, by the time that a packet takes.
        if (by_bytes - rate.value).abs() > 2.0 * RATE_TOLERANCE * by_bytes.max(rate.value) && seconds > 1.0 {
            doubts.add(format!(
                "`{}` is reported as {}, and `{name}` over {} are {}: both are kept as reported.",
                rate.name,
                group_thousands(rate.value),
                Nanos(step.window.duration_ns),
                group_thousands(by_bytes.round())
            ));
        }
    }
}

/// Operations of a closed loop cannot take longer than all sessions have time.
fn busy(step: &Step, doubts: &mut Doubts) {
    let Some(sessions) = step.load.sessions.filter(|_| step.load.arrival.is_none() && step.window.duration_ns > 0)
    else {
        return;
    };
    let times: Option<Vec<f64>> =
        step.operations.iter().map(|one| one.service.total_ns().map(|ns| ns as f64)).collect();
    let Some(taken_ns) = times.map(|times| times.iter().sum::<f64>()) else { return };
    let had_ns = limit(step.window.warmup_ns.saturating_add(step.window.duration_ns)) * f64::from(sessions);
    if taken_ns > had_ns * BUSY_TOLERANCE {
        doubts.add(format!(
            "Operations are reported to have taken {} in all, more than {sessions} sessions have in the load: counts or latencies are \
             too high, or more sessions were at work. All are kept.",
            Nanos(taken_ns as u64)
        ));
    }
}

#[cfg(test)]
mod tests;
