//! What is followed over time.

use crate::metric;
use std::borrow::Cow;

use crate::{Figures, SINGLE_BLOCK_READ, is_on_server, operations_are_requests, wait};
use model::record::{Histogram, ReportedFigure, Run, Step, WaitStats};

/// Reads that take longer are what `slow reads` counts.
const SLOW_NS: u64 = 10_000_000;

/// What is followed over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// Read and write requests to storage per second, both known.
    Io,
    /// Read requests per second.
    Reads,
    /// Write requests for data blocks per second.
    Writes,
    /// Megabytes (10^6) read and written per second, both known.
    Megabytes,
    /// Megabytes read per second.
    ReadMegabytes,
    /// Megabytes of data blocks written per second.
    WriteMegabytes,
    /// Megabytes of redo per second.
    RedoMegabytes,
    /// Commits per second.
    Commits,
    /// Mean time of a single-block read, in milliseconds.
    ReadTime,
    /// p99 of single-block reads, in milliseconds: the upper edge of its bucket.
    ReadTimeP99,
    /// Single-block reads that surely took longer than 10 ms, in percent.
    SlowReads,
    /// Processor time of the host that was used, in percent of what it has.
    HostBusy,
    /// Sessions that were active on average: the database's time over the clock's.
    ActiveSessions,
}

/// What a measure is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bearing {
    /// Requests or commits in a second.
    Rate,
    /// Megabytes in a second.
    Megabytes,
    /// A duration in milliseconds.
    Milliseconds,
    /// A share in percent.
    Percent,
    /// A plain number.
    Count,
}

/// A value of one window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowValue {
    /// The value, in the unit of its measure.
    pub value: f64,
    /// What it counts for in a mean: the seconds of its window, or the number of reads. Absent where a mean of values is
    /// nothing, as of percentiles.
    pub weight: Option<f64>,
}

impl Measure {
    /// All of them, in the order in which they are reported.
    pub const ALL: [Self; 13] = [
        Self::Io,
        Self::Reads,
        Self::Writes,
        Self::Megabytes,
        Self::ReadMegabytes,
        Self::WriteMegabytes,
        Self::RedoMegabytes,
        Self::Commits,
        Self::ReadTime,
        Self::ReadTimeP99,
        Self::SlowReads,
        Self::HostBusy,
        Self::ActiveSessions,
    ];

    /// Rates of what storage and its log have to do.
    pub(super) const OF_STORAGE: [Self; 8] = [
        Self::Io,
        Self::Reads,
        Self::Writes,
        Self::Megabytes,
        Self::ReadMegabytes,
        Self::WriteMegabytes,
        Self::RedoMegabytes,
        Self::Commits,
    ];

    /// What it is called, with its unit.
    pub fn name(self) -> &'static str {
        match self {
            Self::Io => "IOPS",
            Self::Reads => metric::READS.heading,
            Self::Writes => metric::WRITES.heading,
            Self::Megabytes => metric::MEGABYTES.heading,
            Self::ReadMegabytes => metric::READ_MEGABYTES.heading,
            Self::WriteMegabytes => metric::WRITE_MEGABYTES.heading,
            Self::RedoMegabytes => metric::REDO_MEGABYTES.heading,
            Self::Commits => metric::COMMITS.heading,
            Self::ReadTime => "read ms",
            Self::ReadTimeP99 => "read p99 ms",
            Self::SlowReads => "reads > 10 ms %",
            Self::HostBusy => "host busy %",
            Self::ActiveSessions => "active sessions",
        }
    }

    /// What it is called in files for programs.
    pub fn key(self) -> &'static str {
        match self {
            Self::Io => "io_per_s",
            Self::Reads => metric::READS.key,
            Self::Writes => metric::WRITES.key,
            Self::Megabytes => metric::MEGABYTES.key,
            Self::ReadMegabytes => metric::READ_MEGABYTES.key,
            Self::WriteMegabytes => metric::WRITE_MEGABYTES.key,
            Self::RedoMegabytes => metric::REDO_MEGABYTES.key,
            Self::Commits => metric::COMMITS.key,
            Self::ReadTime => "read_mean_ms",
            Self::ReadTimeP99 => "read_p99_at_most_ms",
            Self::SlowReads => "reads_surely_above_10ms_percent",
            Self::HostBusy => "host_busy_percent",
            Self::ActiveSessions => "active_sessions",
        }
    }

    /// What its values are.
    pub fn bearing(self) -> Bearing {
        match self {
            Self::Io | Self::Reads | Self::Writes | Self::Commits => Bearing::Rate,
            Self::Megabytes | Self::ReadMegabytes | Self::WriteMegabytes | Self::RedoMegabytes => Bearing::Megabytes,
            Self::ReadTime | Self::ReadTimeP99 => Bearing::Milliseconds,
            Self::SlowReads | Self::HostBusy => Bearing::Percent,
            Self::ActiveSessions => Bearing::Count,
        }
    }

    /// Its place in [`Self::ALL`].
    pub(super) fn place(self) -> usize {
        Self::ALL.iter().position(|measure| *measure == self).unwrap_or(0)
    }

    /// The value of one step, where that is known.
    pub fn value(self, run: &Run, step: &Step) -> Option<f64> {
        self.read(run, step).map(|reading| reading.value)
    }

    /// What a step reports on it. Unknown is never taken for zero: a sum is known where both its parts are.
    pub(super) fn read(self, run: &Run, step: &Step) -> Option<WindowValue> {
        let figures = Figures(step);
        let seconds = figures.seconds();
        let over_time = |value: Option<f64>| value.map(|value| WindowValue { value, weight: Some(seconds) });
        match self {
            Self::Io if is_on_server(step) => over_time(figures.physical_io_per_s()),
            Self::Io => {
                over_time(figures.physical_reads_per_s().zip(figures.physical_writes_per_s()).map(|(r, w)| r + w))
            }
            Self::Reads => over_time((metric::READS.value)(&figures)),
            Self::Writes => over_time((metric::WRITES.value)(&figures)),
            Self::Megabytes => over_time((metric::MEGABYTES.value)(&figures)),
            Self::ReadMegabytes => over_time((metric::READ_MEGABYTES.value)(&figures)),
            Self::WriteMegabytes => over_time((metric::WRITE_MEGABYTES.value)(&figures)),
            Self::RedoMegabytes => over_time((metric::REDO_MEGABYTES.value)(&figures)),
            Self::Commits => over_time((metric::COMMITS.value)(&figures)),
            Self::ReadTime => {
                let reads = single_reads(run, step)?;
                Some(WindowValue { value: reads.mean_ns()? / 1e6, weight: Some(reads.count() as f64) })
            }
            Self::ReadTimeP99 => {
                let reads = single_reads(run, step).filter(|reads| reads.is_distribution())?;
                Some(WindowValue { value: reads.quantile_ns(0.99)? as f64 / 1e6, weight: None })
            }
            Self::SlowReads => {
                let reads = single_reads(run, step).filter(|reads| reads.is_distribution())?;
                let (_, perhaps_faster) = reads.below_ns(SLOW_NS);
                let all = reads.count() as f64;
                Some(WindowValue { value: 100.0 * (1.0 - perhaps_faster as f64 / all), weight: Some(all) })
            }
            Self::HostBusy => over_time(host_busy_percent(step)),
            Self::ActiveSessions => over_time(active_sessions(step, seconds)),
        }
        .filter(|reading| reading.value.is_finite())
    }
}

/// Reads of one block, as the database timed them; of raw storage the reads as they were sent.
fn single_reads<'a>(run: &Run, step: &'a Step) -> Option<Cow<'a, Histogram>> {
    if operations_are_requests(run) {
        let read = step.operations.iter().find(|operation| operation.kind == "read")?;
        return Some(Cow::Borrowed(&read.service)).filter(|times| times.count() > 0);
    }
    wait(step, SINGLE_BLOCK_READ).map(WaitStats::times)
}

/// Letters and digits of a name, small: `%Idle` and `% idle` are one.
fn bare(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect()
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

/// From shares in percent, in the words of Oracle, iostat, mpstat or vmstat, all of them by the one that is reported first.
fn reported_busy(step: &Step) -> Option<f64> {
    // `db1: %Idle`, `iostat %idle`: what stands before the sign reports whose it is.
    let of_host = |figure: &&ReportedFigure| figure.layer == "host" && figure.unit.trim() == "%";
    let parts = step.reported.iter().filter(of_host).map(|figure| {
        let (whose, part) =
            figure.name.rsplit_once('%').or_else(|| figure.name.rsplit_once(' ')).unwrap_or(("", &figure.name));
        (whose.trim(), bare(part), figure.value)
    });
    let parts: Vec<(&str, String, f64)> = parts.collect();
    let first =
        |names: &[&str]| parts.iter().find(|(_, part, _)| names.contains(&part.as_str())).map(|(whose, ..)| *whose);
    let whose = first(&["user", "usr", "us"]).or_else(|| first(&["idle", "id"]))?;
    if whose.ends_with(':') && parts.iter().any(|(other, ..)| other.ends_with(':') && *other != whose) {
        // Machines of a cluster: how many processors each of them has is not known here.
        return None;
    }
    let share = |names: &[&str]| {
        parts.iter().find(|(of, part, _)| *of == whose && names.contains(&part.as_str())).map(|(_, _, value)| *value)
    };
    let others = || ["nice", "irq", "soft", "guest", "gnice"].iter().filter_map(|name| share(&[name])).sum::<f64>();
    let used = || Some(share(&["user", "usr", "us"])? + share(&["system", "sys", "sy"])? + others());
    // Oracle's `%Idle` holds its `%WIO`; that of sysstat and vmstat does not hold the time that storage was waited for.
    let waited = || share(&["iowait", "wa"]).unwrap_or(0.0) + share(&["steal", "st"]).unwrap_or(0.0);
    used().or_else(|| share(&["idle", "id"]).map(|idle| 100.0 - idle - waited()))
}

/// From `DB time` in the words of Oracle's reports, in its unit, or from what the load itself timed.
fn active_sessions(step: &Step, seconds: f64) -> Option<f64> {
    let figures = || step.reported.iter().map(|figure| (bare(&figure.name), figure));
    let of_time = |figure: &ReportedFigure| match bare(&figure.unit).as_str() {
        "ss" | "spers" | "persecond" | "pers" => Some(figure.value),
        // `DB Time(s)` by the second.
        "s" if figure.unit.trim() == "/s" => figure.name.contains("(s)").then_some(figure.value),
        "s" | "sec" | "secs" | "seconds" => Some(figure.value / seconds),
        "min" | "mins" | "minutes" => Some(figure.value * 60.0 / seconds),
        _ => None,
    };
    let from_time = figures().filter(|(name, _)| name.starts_with("dbtime")).find_map(|(_, figure)| of_time(figure));
    let direct =
        || figures().find(|(name, _)| name.starts_with("averageactivesessions")).map(|(_, figure)| figure.value);
    from_time.or_else(direct).or_else(|| Figures(step).busy_sessions()).filter(|sessions| *sessions >= 0.0)
}
