//! Figures that cannot be. Every program may print one, so that all drafts pass here and no importer checks by itself.
//!
//! A figure of ours that cannot be is left unknown, and a rate that contradicts the counts it is made of is left out; a figure by
//! its program's own name stays. Either way a note of the run has its name, its value and the reason.

use model::record::{Counters, Histogram, Interval, ReportedBucket, ReportedFigure, Step, Workload};
use std::collections::BTreeSet;

use super::Draft;
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

/// Up to what a share of a whole may be printed, in percent: it is rounded, and read at another instant than the whole.
pub(super) const ALL: f64 = 101.0;
/// The same of a device that serves several requests at once, whose busy time some kernels count for each.
pub(super) const DEVICE: f64 = 1_000.0;

/// Whether no machine has such a figure: below zero, a share above `all` percent, or more than any device does. What is found so are
/// counters of 32 or 64 bits that ran over, or went back.
pub(super) fn cannot_be(unit: &str, value: f64, all: f64) -> bool {
    let most = match unit {
        "%" => all,
        "1/s" => 1e8,
        "KiB/s" => 1e9,
        "MiB/s" => 1e6,
        "sectors/s" | "blocks/s" => 2e9,
        "ms" => 1e8,
        "KiB" | "sectors" => 1e8,
        // Sums since a machine began.
        _ => 9e18,
    };
    // A share that is rounded may be printed as a hair less than nothing.
    value < -0.5 || value > most
}

/// Whether a mean is that of more than the whole it is a part of, by more than rounding.
pub(super) fn is_beyond_whole(part: f64, whole: f64) -> bool {
    part > whole * (1.0 + RATE_TOLERANCE)
}

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
            notes.push(format!("{} more figures cannot be.", self.more));
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
        courses(step, &mut in_step);
        in_step.in_order.into_iter().for_each(|doubt| doubts.add(format!("{of}{doubt}")));
        doubts.more += in_step.more;
    }
    doubts.into_notes(&mut draft.notes);
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
    // Percentiles are the middles of buckets, and programs round both.
    let is_beyond =
        |max_ns: u64| of.buckets_ns().find(|(from_ns, ..)| *from_ns as f64 > max_ns as f64 * LATE + last_digit(max_ns));
    if let Some((max_ns, (from_ns, ..))) = max_ns.and_then(|max_ns| Some((max_ns, is_beyond(max_ns)?))) {
        let (from, max) = (Nanos(from_ns), Nanos(max_ns));
        doubts.add(format!(
            "A percentile of the {what} is reported as {from}, above the longest, {max}: neither is believed, and all percentiles are \
             left unknown."
        ));
        *of = Histogram::counted(count, total_ns);
        return;
    }
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

/// Intervals that cover the whole window add up to its counts, and to the bytes that both report by one name.
fn courses(step: &Step, doubts: &mut Doubts) {
    let in_window = || step.intervals.iter().filter(|interval| !interval.warmup);
    let covered_ns: u64 = in_window().map(|interval| interval.duration_ns).fold(0, u64::saturating_add);
    let window_ns = step.window.duration_ns;
    if in_window().nth(1).is_none() || covered_ns.abs_diff(window_ns) as f64 > 0.01 * window_ns as f64 {
        return;
    }
    let mut compare = |what: &str, whole: f64, sum: Option<f64>| {
        if let Some(sum) = sum.filter(|sum| (sum - whole).abs() > 2.0 * RATE_TOLERANCE * sum.max(whole)) {
            let [whole, sum] = [whole, sum].map(|value| group_thousands(value.round()));
            doubts.add(format!(
                "{what} are reported as {whole}, and those of all intervals are {sum}: both are kept as reported."
            ));
        }
    };
    if let Some(operations) = step.counters.operations {
        let of = |interval: &Interval| interval.counters.operations.map(|count| count as f64);
        compare("Operations", operations as f64, in_window().map(of).sum());
    }
    for figure in step.reported.iter().filter(|figure| figure.unit == "bytes" && figure.name.ends_with(" bytes")) {
        let of = |interval: &Interval| interval.reported.get(&figure.name).copied();
        compare(&format!("`{}`", figure.name), figure.value, in_window().map(of).sum());
    }
}

/// Operations of a closed loop cannot take longer than all sessions have time.
fn busy(step: &mut Step, doubts: &mut Doubts) {
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
             too high, or more sessions were at work. Counts are kept, and latencies are left unknown.",
            Nanos(taken_ns as u64)
        ));
        for operation in &mut step.operations {
            for times in [&mut operation.service, &mut operation.response] {
                *times = Histogram::counted(times.count(), None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::{self, reported_figure, step};
    use crate::percentiles;
    use model::record::Workload;
    use model::workload::Arrival;

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

    fn checked(mut draft: Draft) -> (Draft, Vec<String>) {
        check(&mut draft);
        let notes = draft.notes.clone();
        (draft, notes)
    }

    #[test]
    fn what_may_be_is_left_as_it_is() {
        let response = percentiles::histogram(
            100,
            Some(100 * 2 * MS),
            Some(MS),
            Some(10 * S + S / 2),
            &[(0.5, 2 * MS), (0.99, 3 * MS)],
        );
        let before = run(response);
        let (after, notes) = checked(before.clone());
        assert!(notes.is_empty(), "{notes:?}");
        assert_eq!(after.steps, before.steps);
    }

    #[test]
    fn a_latency_longer_than_the_load_is_left_unknown_with_its_value() {
        let response = percentiles::histogram(100, Some(200 * MS), Some(MS), Some(3_600 * S), &[(0.5, 2 * MS)]);
        let (draft, notes) = checked(run(response));
        assert_eq!(
            notes,
            ["The longest latency of read is reported as 1h00m, longer than the load of 10.0 s: it is left unknown."]
        );
        let response = &draft.steps[0].operations[0].response;
        assert_eq!((response.count(), response.max_ns(), response.mean_ns()), (100, None, Some(2.0 * MS as f64)));
        assert_eq!(
            response.quantiles_ns(&[0.5, 0.99]),
            [Some(2 * MS), None],
            "the last percentile ended at the maximum"
        );
        let mut database = run(percentiles::histogram(100, None, None, Some(3_600 * S), &[]));
        database.workload = Workload::Database;
        assert!(checked(database).1.is_empty(), "a wait may have begun long before");
    }

    #[test]
    fn buckets_beyond_the_load_are_kept_and_reported() {
        let bucket = ReportedBucket { from_ns: 60 * S, to_ns: None, count: 1 };
        let (draft, notes) = checked(run(Histogram::reported([bucket], None, None, None)));
        assert_eq!(
            notes,
            [
                "The highest bucket of the latency of read is reported as 1m00s, longer than the load of 10.0 s: it is kept."
            ]
        );
        assert_eq!(draft.steps[0].operations[0].response.count(), 1);
    }

    #[test]
    fn a_mean_outside_its_extremes_is_left_unknown() {
        let of = |mean_ns: u64, min_ns: u64, max_ns: u64| {
            let (draft, notes) =
                checked(run(percentiles::histogram(10, Some(10 * mean_ns), Some(min_ns), Some(max_ns), &[])));
            (draft.steps[0].operations[0].response.total_ns().is_some(), notes)
        };
        let (is_known, notes) = of(9_123_456, 123_456, 8_765_432);
        assert!(!is_known);
        assert_eq!(
            notes,
            ["The mean latency of read is reported as 9.12 ms, above the longest, 8.77 ms: the mean is left unknown."]
        );
        assert!(of(100_001, 123_456, 8_765_432).1[0].contains("below the shortest, 123 us"));
        // Extremes in whole milliseconds are rounded.
        assert_eq!(of(8_400_000, MS, 8 * MS), (true, vec![]));
        assert_eq!(of(600_000, MS, 8 * MS), (true, vec![]));
    }

    #[test]
    fn figures_by_other_names_stay_and_are_reported() {
        let mut draft = run(Histogram::counted(1, None));
        draft.steps[0].reported = vec![
            reported_figure("client", "latency min", "ms", 1.5),
            reported_figure("client", "latency avg", "ms", 1.25),
            reported_figure("client", "latency max", "ms", 20_000.0),
            reported_figure("client", "latency sum", "ms", 900_000.0),
        ];
        let (draft, notes) = checked(draft);
        assert_eq!(
            notes,
            [
                "`latency max` is reported as 20,000 ms, longer than the load of 10.0 s: it is kept as reported.",
                "`latency avg` is reported as 1.25 ms, below `latency min` of 1.5: both are kept as reported."
            ]
        );
        assert_eq!(draft.steps[0].reported.len(), 4);
    }

    #[test]
    fn a_rate_that_its_counts_do_not_allow_is_not_believed() {
        let of = |program: &'static str, name: &str, rate: f64| {
            let mut draft = run(Histogram::counted(1_000, None));
            draft.program = program;
            draft.steps[0].counters.operations = Some(1_000);
            draft.steps[0].reported.push(reported_figure("client", name, "/s", rate));
            let (draft, notes) = checked(draft);
            (draft.steps[0].reported.len(), notes)
        };
        assert_eq!(of("pgbench", "tps (without initial connection time)", 101.0), (1, vec![]));
        let (left, notes) = of("pgbench", "tps (without initial connection time)", 200.0);
        assert_eq!((left, notes.len()), (0, 1));
        assert!(
            notes[0].ends_with("is not believed: 1,000 transactions in 10.0 s are 100/s. The counts are kept."),
            "{notes:?}"
        );
        assert_eq!(of("sysbench", "events per second", 10.0).0, 0);
        assert_eq!(of("pgbench", "tps (excluding connections establishing)", 200.0).0, 1, "it is of a shorter time");
    }

    #[test]
    fn a_rate_and_its_bytes_that_contradict_each_other_are_reported() {
        let of = |bits_per_s: f64| {
            let mut draft = run(Histogram::counted(1, None));
            let figures = [("stream 5 sent bits/s", "bits/s", bits_per_s), ("stream 5 sent bytes", "bytes", 1e9)];
            draft.steps[0].reported =
                figures.map(|(name, unit, value)| reported_figure("network", name, unit, value)).into();
            checked(draft).1
        };
        assert!(of(0.81e9).is_empty());
        assert!(of(8e9)[0].contains("`stream 5 sent bytes` over 10.0 s are 800,000,000"), "{:?}", of(8e9));
    }

    #[test]
    fn operations_do_not_take_longer_than_their_sessions_have() {
        assert!(checked(run(Histogram::counted(1_000, Some(40 * S)))).1.is_empty());
        let (draft, notes) = checked(run(Histogram::counted(1_000, Some(90 * S))));
        assert!(
            notes[0].starts_with("Operations are reported to have taken 1m30s in all, more than 4 sessions have"),
            "{notes:?}"
        );
        let response = &draft.steps[0].operations[0].response;
        assert_eq!((response.count(), response.total_ns()), (1_000, None), "which of both is wrong is not known");
        let mut open = run(Histogram::counted(1_000, Some(90 * S)));
        open.steps[0].load.arrival = Some(Arrival::Poisson);
        assert!(checked(open).1.is_empty(), "in an open loop they wait without a session");
    }

    #[test]
    fn a_percentile_beyond_the_longest_leaves_all_of_them_unknown() {
        let known = [(0.5, MS), (0.99, 3 * MS)];
        let of = |max_ns| checked(run(percentiles::histogram(100, Some(200 * MS), Some(MS), Some(max_ns), &known)));
        assert!(of(3 * MS).1.is_empty());
        let known = [(0.5, MS), (0.9, 2 * MS), (0.99, 3 * MS)];
        let (draft, notes) =
            checked(run(percentiles::histogram(100, Some(150 * MS), Some(MS), Some(MS + MS / 2), &known)));
        assert!(notes[0].contains("above the longest, 1.50 ms"), "{notes:?}");
        let response = &draft.steps[0].operations[0].response;
        assert_eq!((response.quantile_ns(0.5), response.total_ns()), (None, Some(150 * MS)));
    }

    #[test]
    fn intervals_that_do_not_add_up_are_reported() {
        let of = |each: u64| {
            let mut draft = run(Histogram::counted(1_000, None));
            let step = &mut draft.steps[0];
            step.counters.operations = Some(1_000);
            for second in 0..10 {
                let mut interval = crate::interval::of(step, second * S, S);
                interval.counters.operations = Some(each);
                step.intervals.push(interval);
            }
            checked(draft).1
        };
        assert!(of(101).is_empty());
        assert_eq!(
            of(50),
            ["Operations are reported as 1,000, and those of all intervals are 500: both are kept as reported."]
        );
    }

    #[test]
    fn doubts_without_end_are_counted() {
        let mut draft = run(Histogram::counted(1, None));
        draft.steps[0].reported =
            (0..50).map(|at| reported_figure("client", format!("latency {at}"), "ms", 1e9)).collect();
        let (_, notes) = checked(draft);
        assert_eq!((notes.len(), notes[MAX_DOUBTS].as_str()), (MAX_DOUBTS + 1, "38 more figures cannot be."));
    }
}
