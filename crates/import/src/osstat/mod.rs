//! What iostat, vmstat, mpstat, sar and nmon say of a machine.

mod clock;
mod devices;
mod header;
pub(super) mod iostat;
pub(super) mod iostat_json;
pub(super) mod mpstat;
pub(super) mod nmon;
pub(super) mod sar;
pub(super) mod vmstat;

use crate::draft::{reported_figure, step, whole};
use crate::interval;
use crate::plausible::Doubts;
use clock::Timeline;
use model::record::invariants::{ALL, wrapped};
use model::record::{CpuTime, Metric, ReportedFigure, Step};

pub(super) use clock::without_jumps;
pub(super) use devices::{Over, add, over};

#[cfg(test)]
mod tests;

/// The time that a line holds alone, if it does; nothing where it is not known which number of the date is the month.
#[cfg(test)]
pub(super) fn written(line: &str) -> Option<Option<jiff::civil::DateTime>> {
    match clock::leading(line).filter(|(_, rest)| rest.trim().is_empty()) {
        Some((stamp, _)) => match stamp.day {
            clock::Day::Known(day) => Some(Some(day.to_datetime(stamp.time))),
            _ => None,
        },
        None => Some(None),
    }
}

/// The tool whose table begins at a line.
pub(super) fn begins(line: &str) -> Option<&'static str> {
    let tool = header::tool_of_line(line, false).map(|tool| match tool {
        header::Tool::Iostat => "iostat",
        header::Tool::Mpstat => "mpstat",
        header::Tool::Vmstat => "vmstat",
    });
    tool.or_else(|| sar::begins(line).then_some("sar"))
}

/// Whether a line is what these tools write before a table: the first line of sysstat, the banner of vmstat, a time.
pub(super) fn clock_line(line: &str) -> bool {
    header::header(line).is_some()
        || header::is_vmstat_banner(line)
        || clock::snapshot(line).is_some()
        || clock::leading(line).is_some_and(|(_, rest)| rest.trim().is_empty())
}

/// What a column of iostat, mpstat, vmstat or nmon is of the machine. Guests run in user code; interrupts belong to the kernel.
fn metric(column: &str) -> Option<Metric> {
    Some(match column {
        "%user" | "%usr" | "%nice" | "%guest" | "%gnice" | "us" | "gu" | "User%" => Metric::HostUser,
        "%system" | "%sys" | "%irq" | "%soft" | "sy" | "Sys%" => Metric::HostSystem,
        "%iowait" | "wa" | "Wait%" => Metric::HostIowait,
        "%steal" | "st" | "Steal%" => Metric::HostSteal,
        "%idle" | "id" | "Idle%" => Metric::HostIdle,
        "r" => Metric::RunQueue,
        _ => return None,
    })
}

/// A weighted average in the making.
#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    sum: f64,
    weight: f64,
}

impl Mean {
    fn add(&mut self, value: f64, weight: f64) {
        if value.is_finite() && weight.is_finite() {
            self.sum += value * weight;
            self.weight += weight;
        }
    }

    /// A value is unknown: so is the average.
    fn spoil(&mut self) {
        self.sum = f64::NAN;
    }

    /// The sum of all values, each by its weight.
    fn sum(self) -> f64 {
        self.sum
    }

    /// Nothing if nothing had weight.
    fn value(self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / self.weight).filter(|mean| mean.is_finite())
    }
}

/// Where the time of all processors went, in percent.
#[derive(Debug, Clone, Copy, Default)]
struct Shares {
    user: f64,
    system: f64,
    iowait: Option<f64>,
    steal: Option<f64>,
    idle: Option<f64>,
}

impl Shares {
    /// The shares as reported by the columns of iostat and mpstat.
    fn of(named: impl Iterator<Item = (impl AsRef<str>, f64)>) -> Option<Self> {
        let (mut shares, mut user, mut system) = (Self::default(), None, None);
        for (name, percent) in named.filter(|(_, percent)| percent.is_finite()) {
            match metric(name.as_ref()) {
                Some(Metric::HostUser) => *user.get_or_insert(0.0) += percent,
                Some(Metric::HostSystem) => *system.get_or_insert(0.0) += percent,
                Some(Metric::HostIowait) => shares.iowait = Some(percent),
                Some(Metric::HostSteal) => shares.steal = Some(percent),
                Some(Metric::HostIdle) => shares.idle = Some(percent),
                _ => {}
            }
        }
        (shares.user, shares.system) = (user?, system?);
        Some(shares)
    }

    /// The same as time, where the number of processors and the length of the window are known.
    fn over(self, cpus: Option<u32>, duration_ns: u64) -> Option<CpuTime> {
        let cpus = cpus.filter(|_| duration_ns > 0)?;
        let all_ns = f64::from(cpus) * duration_ns as f64;
        let part = |percent: f64| whole(percent / 100.0 * all_ns);
        Some(CpuTime {
            user_ns: part(self.user)?,
            system_ns: part(self.system)?,
            iowait_ns: self.iowait.and_then(part),
            steal_ns: self.steal.and_then(part),
            idle_ns: self.idle.and_then(part),
        })
    }
}

/// What each sample weighs: its length, or the same where lengths are unknown.
fn weights(timeline: &Timeline) -> impl Iterator<Item = f64> {
    let known = timeline.duration_ns() > 0;
    timeline.spans.iter().map(move |(_, length_ns)| if known { *length_ns as f64 } else { 1.0 })
}

/// A step of figures with the same names in every sample; `rows` has one element a sample, as long as `names`, NaN where a
/// figure is missing. Its figures are averages over the samples, without those that cannot be.
fn step_of(
    label: &str,
    names: &[(String, &str)],
    rows: &[Vec<f64>],
    timeline: &Timeline,
    notes: &mut Vec<String>,
) -> Step {
    let mut made = step(0, label, timeline.duration_ns());
    let mut means = vec![Mean::default(); names.len()];
    let mut doubts = Doubts::default();
    for ((number, row), (weight, span)) in (1..).zip(rows).zip(weights(timeline).zip(&timeline.spans)) {
        let mut interval = interval::of(&made, span.0, span.1);
        for ((mean, (name, unit)), value) in means.iter_mut().zip(names).zip(row).filter(|(_, value)| value.is_finite())
        {
            if let Some(found) = wrapped(&format!("`{name}` of sample {number}"), unit, *value, ALL) {
                doubts.add(found.to_string());
                continue;
            }
            mean.add(*value, weight);
            interval.reported.insert(name.clone(), *value);
        }
        made.intervals.push(interval);
    }
    made.reported = figures(names, means.into_iter().map(Mean::value));
    doubts.into_notes(notes);
    made
}

/// Figures of the host, where they are known.
fn figures(names: &[(String, &str)], values: impl Iterator<Item = Option<f64>>) -> Vec<ReportedFigure> {
    names
        .iter()
        .zip(values)
        .filter_map(|((name, unit), value)| {
            Some(reported_figure("host", name.clone(), unit, value?).is(metric(name), 1.0))
        })
        .collect()
}

/// What must be said where lengths of samples are unknown.
fn note_on_time(timeline: &Timeline, notes: &mut Vec<String>) {
    if timeline.duration_ns() == 0 && !timeline.spans.is_empty() {
        notes.push(
            "The file does not report how long a sample is: there are rates and shares, and no counts.".to_owned(),
        );
    }
    if timeline.ambiguous_date {
        notes.push("The date can be read with the month or the day first: it is left out.".to_owned());
    }
}
