//! What is followed over time.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::{Figures, SINGLE_BLOCK_READ, is_on_server, operations_are_requests, wait};
use model::record::{Histogram, Metric, Run, Step, WaitStats};

/// Reads that take longer are what [`Metric::SlowReads`] counts.
const SLOW_NS: u64 = 10_000_000;

/// The metrics that are followed over time, in the order in which they are reported.
pub const MEASURES: [Metric; 13] = [
    Metric::Io,
    Metric::Reads,
    Metric::Writes,
    Metric::Megabytes,
    Metric::ReadMegabytes,
    Metric::WriteMegabytes,
    Metric::RedoMegabytes,
    Metric::Commits,
    Metric::ReadTime,
    Metric::ReadTimeP99,
    Metric::SlowReads,
    Metric::HostBusy,
    Metric::ActiveSessions,
];

/// Rates of what storage and its log have to do: so many of [`MEASURES`], which begin with them.
pub(super) const OF_STORAGE: usize = 8;

/// A value of one window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowValue {
    /// The value, in the unit of its metric.
    pub value: f64,
    /// What it counts for in a mean: the seconds of its window, or the number of reads. Absent where a mean of values is
    /// nothing, as of percentiles.
    pub weight: Option<f64>,
}

/// The value of one of [`MEASURES`] in one step, where that is known.
pub fn measured(metric: Metric, run: &Run, step: &Step) -> Option<f64> {
    read(metric, run, step).map(|reading| reading.value)
}

/// What a step reports on one of [`MEASURES`]. Unknown is never taken for zero: a sum is known where both its parts are.
pub(super) fn read(metric: Metric, run: &Run, step: &Step) -> Option<WindowValue> {
    let figures = Figures(step);
    let distribution = || single_reads(run, step).filter(|reads| reads.is_distribution());
    let over_time = |value: Option<f64>| value.map(|value| WindowValue { value, weight: Some(figures.seconds()) });
    match metric {
        Metric::Io if is_on_server(step) => over_time(figures.physical_io_per_s()),
        Metric::Io => {
            over_time(figures.physical_reads_per_s().zip(figures.physical_writes_per_s()).map(|(r, w)| r + w))
        }
        Metric::ReadTime => {
            let reads = single_reads(run, step)?;
            Some(WindowValue { value: reads.mean_ns()? / 1e6, weight: Some(reads.count() as f64) })
        }
        Metric::ReadTimeP99 => {
            Some(WindowValue { value: distribution()?.quantile_ns(0.99)? as f64 / 1e6, weight: None })
        }
        Metric::SlowReads => {
            let reads = distribution()?;
            let (_, perhaps_faster) = reads.below_ns(SLOW_NS);
            let all = reads.count() as f64;
            Some(WindowValue { value: 100.0 * (1.0 - perhaps_faster as f64 / all), weight: Some(all) })
        }
        Metric::HostBusy => over_time(host_busy_percent(step)),
        Metric::ActiveSessions => over_time(active_sessions(&figures)),
        other => over_time(figures.value(other)),
    }
    .filter(|reading| reading.value.is_finite())
}

/// Reads of one block, as the database timed them; of raw storage the reads as they were sent.
fn single_reads<'a>(run: &Run, step: &'a Step) -> Option<Cow<'a, Histogram>> {
    if operations_are_requests(run) {
        let read = step.operations.iter().find(|operation| operation.kind == "read")?;
        return Some(Cow::Borrowed(&read.service)).filter(|times| times.count() > 0);
    }
    wait(step, SINGLE_BLOCK_READ).map(WaitStats::times)
}

/// Busy is what code of users and of the system used: a processor that waits for storage is not busy.
fn host_busy_percent(step: &Step) -> Option<f64> {
    if let Some(cpu) = step.host_cpu {
        let busy = (cpu.user_ns + cpu.system_ns) as f64;
        let rest = cpu.idle_ns? + cpu.iowait_ns.unwrap_or(0) + cpu.steal_ns.unwrap_or(0);
        let all = busy + rest as f64;
        return (all > 0.0).then(|| 100.0 * busy / all);
    }
    busy_of_instances(step).or_else(|| reported_busy(step)).filter(|busy| (0.0..=100.5).contains(busy))
}

/// From the processor time of every instance's machine.
fn busy_of_instances(step: &Step) -> Option<f64> {
    let (mut busy, mut all) = (0.0, 0.0);
    for instance in &step.instances {
        let of = |name: &str| instance.own.get(name).map(|ns| *ns as f64);
        let (used, idle) = of("BUSY_TIME_ns").zip(of("IDLE_TIME_ns"))?;
        (busy, all) = (busy + used, all + used + idle);
    }
    (all > 0.0).then(|| 100.0 * busy / all)
}

/// From shares in percent that other programs report of the whole, or of the only machine that they name: of those of a cluster it
/// is not known how many processors each of them has.
fn reported_busy(step: &Step) -> Option<f64> {
    let parts = |metric| step.reported.iter().filter_map(move |figure| figure.part_of(metric));
    let all = [Metric::HostUser, Metric::HostSystem, Metric::HostIdle, Metric::HostBusy];
    let machines: BTreeSet<Option<&str>> = all.into_iter().flat_map(parts).map(|(machine, _)| machine).collect();
    let machine = *machines.first()?;
    if machine.is_some() && machines.len() > 1 {
        return None;
    }
    let shares = |metric| parts(metric).filter(|(of, _)| *of == machine).map(|(_, value)| value);
    let share = |metric| shares(metric).next();
    // Of both there may be parts: nice code, interrupts.
    let sum = |metric| shares(metric).reduce(|sum, more| sum + more);
    let used = || Some(sum(Metric::HostUser)? + sum(Metric::HostSystem)?);
    let waited = || share(Metric::HostIowait).unwrap_or(0.0) + share(Metric::HostSteal).unwrap_or(0.0);
    used().or_else(|| share(Metric::HostIdle).map(|idle| 100.0 - idle - waited())).or_else(|| share(Metric::HostBusy))
}

/// From the database's time or sessions as a report has them, or from what the load itself timed.
fn active_sessions(figures: &Figures<'_>) -> Option<f64> {
    let from_time = figures.reported(Metric::DbTime).map(|seconds| seconds / figures.seconds());
    from_time
        .or_else(|| figures.reported(Metric::ActiveSessions))
        .or_else(|| figures.busy_sessions())
        .filter(|sessions| *sessions >= 0.0)
}
