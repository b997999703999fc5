//! One job of a document.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::draft::{reported_figure, whole};
use crate::fio::assemble::LAYER;
use crate::fio::latency::{bin_of_index, bin_of_middle, shares_of_labels};
use crate::fio::{Direction, Job, Latency, Measure, Way, figure_of};
use model::record::ReportedFigure;

/// Bytes of a KiB, in which fio up to 2.20 counts `io_bytes`.
const KIB: f64 = 1_024.0;

/// A number, also where it was written as text.
pub fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => crate::numbers::number(text),
        _ => None,
    }
}

/// Text, also where it was written as a number.
pub fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Options by name; one without a value is on.
pub fn options(value: &Value) -> BTreeMap<String, String> {
    let pairs = value.as_object().into_iter().flatten();
    pairs.map(|(name, value)| (name.clone(), text(value).unwrap_or_else(|| "1".to_owned()))).collect()
}

/// What is reported on disks: a list, of one disk before 3.18 also the disk itself.
pub fn disks(value: &Value) -> Vec<ReportedFigure> {
    let disks = match value {
        Value::Array(disks) => disks.as_slice(),
        one => std::slice::from_ref(one),
    };
    let mut figures = Vec::new();
    for disk in disks.iter().filter_map(Value::as_object) {
        let name = disk.get("name").and_then(text).unwrap_or_default();
        for (key, value) in disk.iter().filter(|(key, _)| *key != "name") {
            let unit = match key.trim_start_matches("aggr_") {
                "read_ticks" | "write_ticks" | "in_queue" => "ms",
                "util" => "%",
                _ => "",
            };
            figures.extend(number(value).map(|value| reported_figure("device", format!("{name} {key}"), unit, value)));
        }
    }
    figures
}

/// One job, and what was not understood in it.
pub fn job(value: &Value) -> (Job, Vec<String>) {
    let mut not_understood = Vec::new();
    let at = |name: &str| value.get(name).and_then(number);
    // With `continue_on_error` the error is the first one that it went on after.
    let went_on = at("total_err").is_some_and(|errors| errors > 0.0) && at("first_error") == at("error");
    let mut job = Job {
        name: value.get("jobname").and_then(text).unwrap_or_default(),
        host: value.get("hostname").and_then(text).filter(|host| !host.is_empty()),
        group: at("groupid").and_then(whole).unwrap_or(0),
        failure: at("error").filter(|error| *error != 0.0 && !went_on).map(|error| format!("fio says error {error}")),
        error: at("error").map(|error| error as i64),
        errors: at("total_err").and_then(whole),
        options: value.get("job options").map(options),
        elapsed_s: at("elapsed").filter(|elapsed| *elapsed > 0.0),
        start_ms: at("job_start").filter(|start| *start > 0.0),
        processes_ms: at("job_runtime").filter(|ms| *ms > 0.0),
        ..Job::default()
    };
    for way in [Way::Read, Way::Write, Way::Trim, Way::Mixed] {
        let Some(part) = value.get(way.name()) else { continue };
        if let Some(direction) = direction(part, way, &mut job, &mut not_understood) {
            job.directions.push(direction);
        }
    }
    if let Some(sync) = value.get("sync") {
        let latency = latency(sync, "lat", None, &mut not_understood);
        let requests = sync.get("total_ios").and_then(number).and_then(whole).filter(|ios| *ios > 0);
        // The count may be 0 where latencies were counted: then that is the count.
        if latency.samples.or(requests).is_some_and(|count| count > 0) {
            push_latency(sync, "lat", Way::Sync, true, &mut job.reported);
            let direction =
                Direction { way: Way::Sync, requests, bytes: None, runtime_ms: None, latency: Some(latency) };
            job.directions.push(direction);
        }
    }
    add_shares(value, &mut job);
    for (name, unit) in [
        ("usr_cpu", "%"),
        ("sys_cpu", "%"),
        ("ctx", ""),
        ("majf", ""),
        ("minf", ""),
        ("job_runtime", "ms"),
        ("latency_depth", ""),
        ("total_err", ""),
        ("first_error", ""),
    ] {
        job.reported.extend(at(name).map(|value| reported_figure("client", name, unit, value)));
    }
    if let Some(levels) = value.get("iodepth_level").and_then(Value::as_object) {
        let share = |(level, share): (&String, &Value)| {
            let share = number(share).filter(|share| *share > 0.0)?;
            Some(reported_figure("client", format!("iodepth_level {level}"), "%", share))
        };
        job.reported.extend(levels.iter().filter_map(share));
    }
    if let Some(state) = value.get("steadystate").and_then(Value::as_object) {
        for name in ["attained", "slope", "max_deviation"] {
            let figure = state.get(name).or_else(|| state.get("data").and_then(|data| data.get(name)));
            job.reported.extend(
                figure
                    .and_then(number)
                    .map(|value| reported_figure("client", format!("steadystate {name}"), "", value)),
            );
        }
    }
    (job, not_understood)
}

/// What a job did in one direction; nothing if that is nothing.
fn direction(part: &Value, way: Way, job: &mut Job, not_understood: &mut Vec<String>) -> Option<Direction> {
    let at = |name: &str| part.get(name).and_then(number);
    // Up to 2.20 `io_bytes` is in KiB; with `io_kbytes` beside it, it is in bytes.
    let unit = if part.get("io_kbytes").is_some() { 1.0 } else { KIB };
    let bytes = at("io_bytes").and_then(|bytes| whole(bytes * unit));
    let runtime_ms = at("runtime").filter(|ms| *ms > 0.0);
    let completion = latency(part, "clat", Some(Measure::Completion), not_understood);
    let total = latency(part, "lat", Some(Measure::Total), not_understood);
    let total_ios = at("total_ios").and_then(whole);
    let sampled = |latency: &Latency| latency.samples.is_none_or(|samples| samples > 0) && latency.max_ns > Some(0);
    let did = [bytes, total_ios, completion.samples, total.samples].into_iter().flatten().any(|count| count > 0);
    if !did {
        return None;
    }
    let mut requests = total_ios;
    if total_ios.is_none() {
        job.counts_from_rate = true;
        let whole_seconds = at("iops").zip(runtime_ms).map(|(iops, ms)| iops * ms / 1e3);
        requests = whole_seconds.and_then(whole).filter(|requests| *requests > 0);
    }
    let mut push = |figure: &str, unit: &str| {
        job.reported.extend(at(figure).map(|value| figure_of(way, figure, (unit, KIB), value)));
    };
    push("iops", "1/s");
    push("bw", "KiB/s");
    push("bw_bytes", "B/s");
    // Runs too short for a sample of rates have zeros there.
    if at("iops_samples") != Some(0.0) {
        ["iops_min", "iops_max", "iops_mean", "iops_stddev"].into_iter().for_each(|figure| push(figure, "1/s"));
    }
    if at("bw_samples") != Some(0.0) && at("bw_max") != Some(0.0) {
        ["bw_min", "bw_max", "bw_mean", "bw_dev"].into_iter().for_each(|figure| push(figure, "KiB/s"));
    }
    push("runtime", "ms");
    for figure in ["short_ios", "drop_ios", "zone_resets"] {
        if at(figure).is_some_and(|count| count > 0.0) {
            push(figure, "");
        }
    }
    if way == Way::Trim {
        push("total_ios", "");
        job.reported.extend(bytes.map(|bytes| reported_figure(LAYER, "trim io_bytes", "B", bytes as f64)));
    }
    let takes_total = !completion.is_distribution() && total.is_distribution() || !sampled(&completion);
    push_latency(part, "slat", way, false, &mut job.reported);
    push_latency(part, "clat", way, !takes_total, &mut job.reported);
    push_latency(part, "lat", way, takes_total, &mut job.reported);
    let latency = Some(Latency::chosen(completion, total, takes_total, way, &mut job.doubts)).filter(sampled);
    Some(Direction { way, requests, bytes, runtime_ms, latency })
}

/// The object of a latency and what its unit is in nanoseconds: `clat_ns`, or up to 2.x `clat` in microseconds.
fn latency_object<'a>(part: &'a Value, name: &str) -> Option<(&'a Value, u64)> {
    let in_ns = part.get(format!("{name}_ns")).map(|value| (value, 1));
    in_ns.or_else(|| part.get(name).map(|value| (value, 1_000)))
}

fn latency(part: &Value, name: &str, measure: Option<Measure>, not_understood: &mut Vec<String>) -> Latency {
    let Some((object, unit_ns)) = latency_object(part, name) else { return Latency::default() };
    let ns = |figure: &str| object.get(figure).and_then(number).map(|value| value * unit_ns as f64);
    let mut latency = Latency {
        measure,
        samples: object.get("N").and_then(number).and_then(whole),
        mean_ns: ns("mean"),
        min_ns: ns("min").and_then(whole),
        max_ns: ns("max").and_then(whole),
        percentiles: percentiles(object, unit_ns),
        ..Latency::default()
    };
    if latency.percentiles.windows(2).any(|pair| pair[1].1 < pair[0].1) {
        not_understood.push(format!("percentiles of {name} that fall where they should rise"));
        latency.percentiles.clear();
    }
    if let Some(bins) = object.get("bins").and_then(Value::as_object) {
        // 2.10 to 2.19 number all bins and say how; later versions name those that hold something by their middles.
        let are_numbered = bins.contains_key("FIO_IO_U_PLAT_BITS");
        for (key, count) in bins {
            let (Ok(key), Some(count)) = (key.parse::<u64>(), number(count).and_then(whole)) else { continue };
            let bin = if are_numbered { bin_of_index(key, count) } else { Some(bin_of_middle(key, unit_ns, count)) };
            match bin {
                Some(bin) => latency.bins.extend((count > 0).then_some(bin)),
                None => not_understood.push(format!("bin {key} of {name}, of which fio has fewer")),
            }
        }
    }
    latency
}

/// Percentages and durations in nanoseconds, rising. Slots that were not used are `"0.00": 0`; nothing at all was measured where
/// all durations are 0.
fn percentiles(object: &Value, unit_ns: u64) -> Vec<(f64, f64)> {
    let pairs = object.get("percentile").and_then(Value::as_object).into_iter().flatten();
    let mut percentiles: Vec<(f64, f64)> = pairs
        .filter_map(|(key, value)| Some((key.parse::<f64>().ok()?, number(value)? * unit_ns as f64)))
        .filter(|(percentage, ns)| *percentage > 0.0 && *percentage <= 100.0 && *ns >= 0.0)
        .collect();
    percentiles.sort_by(|one, other| one.0.total_cmp(&other.0));
    if percentiles.iter().all(|(_, ns)| *ns == 0.0) { Vec::new() } else { percentiles }
}

/// Mean and deviation under fio's names. Of percentiles the histogram has those of one latency; the 99th is reported exactly, those
/// of other latencies all are.
fn push_latency(part: &Value, name: &str, way: Way, in_histogram: bool, figures: &mut Vec<ReportedFigure>) {
    let Some((object, unit_ns)) = latency_object(part, name) else { return };
    if object.get("max").and_then(number).is_none_or(|max| max <= 0.0) {
        return;
    }
    let (name, unit) = if unit_ns == 1 { (format!("{name}_ns"), "ns") } else { (name.to_owned(), "us") };
    for figure in ["mean", "stddev"] {
        let value = object.get(figure).and_then(number);
        figures
            .extend(value.map(|value| reported_figure(LAYER, format!("{} {name} {figure}", way.name()), unit, value)));
    }
    for (percentage, value) in percentiles(object, 1) {
        if !in_histogram || percentage == 99.0 {
            let name = format!("{} {name} percentile {percentage}", way.name());
            figures.push(reported_figure(LAYER, name, unit, value));
        }
    }
}

/// fio's tables of latency are of all directions together: where there was one only, and no percentiles, they are its.
fn add_shares(value: &Value, job: &mut Job) {
    let mut requests = job.directions.iter_mut().filter(|direction| direction.way != Way::Sync);
    let (Some(direction), None) = (requests.next(), requests.next()) else { return };
    let Some(latency) = direction.latency.as_mut().filter(|latency| !latency.is_distribution()) else { return };
    for (table, unit_ns) in [("latency_ns", 1), ("latency_us", 1_000), ("latency_ms", 1_000_000)] {
        let shares = value.get(table).and_then(Value::as_object).into_iter().flatten();
        let mut labels: Vec<(&str, f64)> =
            shares.filter_map(|(label, share)| Some((label.as_str(), number(share)?))).collect();
        labels.sort_by_key(|(label, _)| label.parse::<u64>().unwrap_or(u64::MAX));
        latency.shares.extend(shares_of_labels(&labels, unit_ns));
    }
}
