//! A trace becomes a run: one step, with the rates of each second.

use super::is_of_calls;
use import::{Began, Draft};
use model::record::{
    BlockDevice, Counters, Ending, Histogram, Interval, Metric, OperationStats, Outcome, ReportedFigure, Step, Target,
    TargetKind, Workload,
};
use model::trace::{TraceEnd, TraceHeader, TraceKind};
use model::units::{Nanos, group_thousands};
use model::workload::Arrival;
use trace::profile::{DeviceProfile, Point, Profile};
use trace::readers::FORMATS;

/// Label of the only step.
const OBSERVED: &str = "observed";
/// Devices whose rates are kept by their names, and named in the run's address.
const MAX_DEVICES: usize = 32;
/// Characters of a name that a run keeps: a trace may have been made by others.
const MAX_NAME: usize = 256;
/// Notes that a run keeps, and the characters of each.
const MAX_NOTES: usize = 64;
const MAX_NOTE: usize = 1 << 10;
/// The target of a trace of calls: the page cache answers some of them, so no device is measured.
const FILES: &str = "files";
const OF_CALLS: &str =
    "The requests are calls of a process on its files, before the page cache. They do not show the load of a device.";
/// What records traces itself.
const RECORDER: &str = "plimsoll record";

/// The run of a trace in the making.
pub fn draft(title: &str, header: &TraceHeader, end: &TraceEnd, profile: &Profile) -> Draft {
    let mut draft = Draft::new(Workload::Io, program(&header.source), title);
    draft.began = header.began.map(Began::Utc);
    let length = jiff::SignedDuration::from_nanos(i64::try_from(profile.duration_ns).unwrap_or(i64::MAX));
    draft.ended = header.began.and_then(|began| Some(model::record::Timestamp(began.0.checked_add(length).ok()?)));
    let is_of_calls = is_of_calls(header);
    draft.target = target(header, is_of_calls);
    let device = |device: &model::trace::TraceDevice| BlockDevice {
        name: cut(&device.name, MAX_NAME),
        size_bytes: device.bytes,
        ..BlockDevice::default()
    };
    let devices = header.devices.iter().filter(|_| !is_of_calls);
    draft.environment.devices = devices.take(MAX_DEVICES).map(device).collect();
    draft.parameters.insert("SOURCE".to_owned(), cut(&header.source, MAX_NAME));
    draft.notes = notes(end, profile);
    if is_of_calls {
        draft.notes.insert(0, OF_CALLS.to_owned());
    }
    draft.steps = vec![step(profile, is_of_calls)];
    draft
}

/// A trace of calls has no address: its files have numbers for names, which are of other files in the next recording.
pub(super) fn target(header: &TraceHeader, is_of_calls: bool) -> Target {
    match is_of_calls {
        true => Target { kind: Some(TargetKind::Other(FILES.to_owned())), ..Target::default() },
        false => Target { kind: Some(TargetKind::Block), address: address(header), ..Target::default() },
    }
}

/// At most so many characters of a text.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Names of the devices: by them, traces of several days are of one and the same storage.
fn address(header: &TraceHeader) -> String {
    let names: Vec<String> =
        header.devices.iter().map(|device| cut(&device.name, MAX_NAME)).take(MAX_DEVICES).collect();
    let more = header.devices.len().saturating_sub(names.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.join(","))
}

fn program(source: &str) -> &'static str {
    if source.starts_with(RECORDER) {
        return RECORDER;
    }
    FORMATS.iter().map(|format| format.name).find(|name| source.contains(name)).unwrap_or("trace")
}

/// What a reader of the trace has to know: what it notes itself, and what it lacks.
pub fn notes(end: &TraceEnd, profile: &Profile) -> Vec<String> {
    let mut notes: Vec<String> = end.notes.iter().take(MAX_NOTES).map(|note| cut(note, MAX_NOTE)).collect();
    let more = end.notes.len().saturating_sub(MAX_NOTES);
    if more > 0 {
        notes.push(format!("The trace has {} more notes.", group_thousands(more as f64)));
    }
    if let Some(lost) = end.lost.filter(|lost| *lost > 0) {
        notes.push(format!("Up to {} requests are missing: rates are too low.", group_thousands(lost as f64)));
    }
    if profile.out_of_order_requests > 0 {
        notes.push(format!(
            "{} requests were issued before the one that precedes them; they count as issued with it.",
            group_thousands(profile.out_of_order_requests as f64)
        ));
    }
    if profile.series.interval_ns > 1_000_000_000 {
        notes.push(format!(
            "The trace is long: each interval is the mean over {}, which can hide a busier second.",
            Nanos(profile.series.interval_ns)
        ));
    }
    let timed: u64 = TraceKind::ALL.iter().filter_map(|kind| Some(profile.latency.get(*kind).as_ref()?.count())).sum();
    if timed < profile.requests {
        notes.push(format!(
            "The latency of {} of {} requests is not known.",
            group_thousands((profile.requests - timed) as f64),
            group_thousands(profile.requests as f64)
        ));
    }
    notes
}

/// Calls are not counted as physical requests: some of them end in the page cache.
pub(super) fn step(profile: &Profile, is_of_calls: bool) -> Step {
    let mut step = Step::new(0, OBSERVED);
    (step.window.duration_ns, step.window.ending) = (profile.duration_ns, Ending::Time);
    step.outcome = Outcome::Completed;
    step.load.arrival = Some(Arrival::Recorded);
    let (reads, writes) = (profile.counted.read, profile.counted.write);
    step.counters = Counters {
        operations: Some(profile.requests),
        physical_reads: (!is_of_calls).then_some(reads.requests),
        physical_read_bytes: (!is_of_calls).then_some(reads.bytes),
        physical_writes: (!is_of_calls).then_some(writes.requests),
        physical_write_bytes: (!is_of_calls).then_some(writes.bytes),
        ..Counters::default()
    };
    step.operations = TraceKind::ALL.into_iter().filter_map(|kind| operations(profile, kind)).collect();
    let several = profile.devices.len() > 1 && !is_of_calls;
    for device in profile.devices.iter().filter(|_| several).take(MAX_DEVICES) {
        step.reported.extend(of_device(device, profile.duration_ns));
    }
    if let Some(depth) = &profile.depth {
        let layer = if is_of_calls { "OS file" } else { "device" };
        let figure = |name: &str, value: f64| ReportedFigure::new(layer, name, "", value);
        step.reported.extend([
            figure("in flight, mean", depth.mean),
            figure("in flight, p99", depth.p99 as f64),
            figure("in flight, max", depth.max as f64),
        ]);
    }
    let interval_ns = profile.series.interval_ns;
    for (point, at) in profile.series.points.iter().zip(0_u64..) {
        let offset_ns = at.saturating_mul(interval_ns);
        let duration_ns = interval_ns.min(profile.duration_ns.saturating_sub(offset_ns));
        let interval = interval(point, (offset_ns, duration_ns), is_of_calls);
        match step.intervals.last_mut() {
            // The last request may be the end of the trace.
            Some(last) if duration_ns == 0 => last.counters.add(&interval.counters),
            _ => step.intervals.push(interval),
        }
    }
    step
}

/// What a trace knows of an interval; latencies are known for the whole only.
fn interval(point: &Point, (offset_ns, duration_ns): (u64, u64), is_of_calls: bool) -> Interval {
    Interval {
        offset_ns,
        duration_ns,
        counters: Counters {
            operations: Some(point.transfers().saturating_add(point.others)),
            physical_reads: (!is_of_calls).then_some(point.reads),
            physical_read_bytes: (!is_of_calls).then_some(point.read_bytes),
            physical_writes: (!is_of_calls).then_some(point.writes),
            physical_write_bytes: (!is_of_calls).then_some(point.write_bytes),
            ..Counters::default()
        },
        response: Histogram::reported([], None, None, None),
        ..Interval::default()
    }
}

/// Requests of one kind: from issue to completion, as far as the trace times them.
fn operations(profile: &Profile, kind: TraceKind) -> Option<OperationStats> {
    let count = profile.counted.get(kind).requests;
    let known = profile.latency.get(kind).clone();
    let times = known.unwrap_or_else(|| Histogram::counted(count, None));
    (count > 0).then(|| OperationStats {
        kind: kind.name().to_owned(),
        count,
        errors: 0,
        block_touches: 0,
        service: times.clone(),
        response: times,
        failed: Histogram::default(),
        transactions: None,
    })
}

/// What one of several devices did.
fn of_device(device: &DeviceProfile, duration_ns: u64) -> Vec<ReportedFigure> {
    let name = device.name.as_deref().map_or_else(|| device.number.to_string(), |name| cut(name, MAX_NAME));
    let seconds = duration_ns as f64 / 1e9;
    let (reads, writes) = (device.counted.read, device.counted.write);
    let rates = [
        ("reads", Metric::DeviceReads, reads.requests as f64, "1/s"),
        ("writes", Metric::DeviceWrites, writes.requests as f64, "1/s"),
        ("read", Metric::DeviceReadMegabytes, reads.bytes as f64 / 1e6, "MB/s"),
        ("written", Metric::DeviceWriteMegabytes, writes.bytes as f64 / 1e6, "MB/s"),
    ];
    let figure =
        |what: &str, unit: &str, value: f64| ReportedFigure::new("device", format!("{name} {what}"), unit, value);
    let rates = rates.into_iter().filter(|_| seconds > 0.0);
    let mut figures: Vec<ReportedFigure> = rates
        .map(|(what, metric, count, unit)| figure(what, unit, count / seconds).is(metric, 1.0).of(&name))
        .collect();
    if let Some(depth) = &device.depth {
        figures.push(figure("busy", "%", depth.busy_share * 100.0).is(Metric::DeviceBusy, 1.0).of(&name));
        figures.push(figure("in flight, mean", "", depth.mean));
    }
    figures
}
