//! Steps as fio's JSON (`--output-format=json+`), for what reads that: fio-plot, `fio_jsonplus_clat2csv`, scripts.
//!
//! Names, units, and bins are those of fio 3.33. A job stands for a step; its latencies are the times from sent to finished. What fio has
//! and a run has not is absent.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use analysis::{Figures, measured, operations_are_requests};
use model::record::{Histogram, Load, Run, Step};
use model::shown::shown;

/// What every file begins with.
pub const BEGINNING: &str = "{\"fio version\":\"fio-3.33-plimsoll-";

/// Percentages whose times fio reports unless it is told otherwise.
const PERCENTAGES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];
/// Bins of fio are this power of two in each doubling.
const BIN_BITS: u32 = 6;
/// Doublings of which fio has bins; longer times are in the last bin.
const DOUBLINGS: u64 = 29;
/// Kinds of operations that are reads, writes, and so on.
const READS: [&str; 2] = ["read", "large read"];
const WRITES: [&str; 2] = ["write", "large write"];
const TRIMS: [&str; 2] = ["trim", "discard"];
const SYNCS: [&str; 1] = ["flush"];
/// What fio calls operations whose direction it does not distinguish.
const MIXED: [&str; 1] = ["mixed"];

#[derive(Serialize)]
struct Document<'a> {
    #[serde(rename = "fio version")]
    version: String,
    timestamp: i64,
    jobs: Vec<Job<'a>>,
}

#[derive(Serialize)]
struct Job<'a> {
    jobname: String,
    groupid: usize,
    error: u32,
    total_err: u64,
    elapsed: u64,
    #[serde(rename = "job options")]
    options: BTreeMap<&'a str, String>,
    read: Direction,
    write: Direction,
    trim: Direction,
    sync: Direction,
    #[serde(skip_serializing_if = "Option::is_none")]
    mixed: Option<Direction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usr_cpu: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sys_cpu: Option<f64>,
}

#[derive(Serialize)]
struct Direction {
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    bytes: Option<Bytes>,
    iops: f64,
    runtime: u64,
    total_ios: u64,
    clat_ns: Latency,
    lat_ns: Latency,
}

#[derive(Serialize)]
struct Bytes {
    io_bytes: u64,
    io_kbytes: u64,
    bw_bytes: u64,
    bw: u64,
}

#[derive(Serialize, Clone)]
struct Latency {
    #[serde(skip_serializing_if = "Option::is_none")]
    min: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mean: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stddev: Option<f64>,
    #[serde(rename = "N")]
    count: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    percentile: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    bins: BTreeMap<u64, u64>,
}

/// Whether a run has what a job of fio is: requests of raw storage that were counted in each step.
pub fn is_of_requests(run: &Run) -> bool {
    operations_are_requests(run)
        && measured(run).next().is_some()
        && measured(run).all(|step| step.operations.iter().any(|kind| kind.service.count() > 0))
}

/// Writes the measured steps of a run.
///
/// # Errors
/// If `out` fails.
pub fn write(run: &Run, out: &mut dyn Write) -> io::Result<()> {
    let document = Document {
        version: format!("fio-3.33-plimsoll-{}", run.tool.version),
        timestamp: run.started_at.0.as_second(),
        jobs: measured(run).enumerate().map(|(number, step)| job(run, number, step)).collect(),
    };
    serde_json::to_writer(&mut *out, &document)?;
    writeln!(out)
}

fn job<'a>(run: &Run, number: usize, step: &Step) -> Job<'a> {
    let counters = &step.counters;
    let percent = |ns: fn(&model::record::CpuTime) -> u64| {
        let cpu = step.process_cpu.as_ref()?;
        (step.window.duration_ns > 0).then(|| ns(cpu) as f64 / step.window.duration_ns as f64 * 100.0)
    };
    Job {
        jobname: shown(&step.label).into_owned(),
        groupid: number,
        // The number of the first error is not kept.
        error: 0,
        total_err: counters.errors.unwrap_or(0),
        elapsed: step.window.duration_ns.saturating_add(step.window.warmup_ns).div_ceil(1_000_000_000),
        options: options(run, step),
        read: direction(step, &READS, counters.physical_read_bytes),
        write: direction(step, &WRITES, counters.physical_write_bytes),
        trim: direction(step, &TRIMS, None),
        sync: direction(step, &SYNCS, None),
        mixed: Some(direction(step, &MIXED, None)).filter(|mixed| mixed.total_ios > 0),
        usr_cpu: percent(|cpu| cpu.user_ns),
        sys_cpu: percent(|cpu| cpu.system_ns),
    }
}

fn options<'a>(run: &Run, step: &Step) -> BTreeMap<&'a str, String> {
    let mut options = BTreeMap::from([("name", shown(&step.label).into_owned()), ("numjobs", "1".to_owned())]);
    if let Load::Io(load) = &run.load {
        options.insert("rw", load.pattern.name().to_owned());
        options.insert("bs", load.block.to_string());
        load.read_pct.iter().for_each(|pct| _ = options.insert("rwmixread", pct.to_string()));
    }
    step.load.sessions.iter().for_each(|depth| _ = options.insert("iodepth", depth.to_string()));
    step.load.rate_operations_per_s.iter().for_each(|rate| _ = options.insert("rate_iops", format!("{rate:.0}")));
    options
}

fn direction(step: &Step, kinds: &[&str], bytes: Option<u64>) -> Direction {
    let mut times = Histogram::default();
    for kind in step.operations.iter().filter(|kind| kinds.contains(&kind.kind.as_str())) {
        match times.count() {
            0 => times = kind.service.clone(),
            _ => times.merge(&kind.service),
        }
    }
    let seconds = Figures(step).seconds();
    let per_s = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    let latency = Latency::of(&times);
    Direction {
        bytes: bytes.map(|bytes| Bytes {
            io_bytes: bytes,
            io_kbytes: bytes >> 10,
            bw_bytes: per_s(bytes) as u64,
            bw: per_s(bytes) as u64 >> 10,
        }),
        iops: per_s(times.count()),
        runtime: step.window.duration_ns / 1_000_000,
        total_ios: times.count(),
        clat_ns: latency.clone(),
        lat_ns: Latency { percentile: BTreeMap::new(), bins: BTreeMap::new(), ..latency },
    }
}

impl Latency {
    fn of(times: &Histogram) -> Self {
        let percentile = PERCENTAGES
            .iter()
            .filter_map(|percentage| Some((format!("{percentage:.6}"), times.quantile_ns(percentage / 100.0)?)));
        // Of nothing at all fio has zeros.
        let none = times.count() == 0;
        let mut bins = BTreeMap::new();
        // Of a run whose report had percentiles alone there are no such bins.
        for (low, high, count) in times.buckets_ns().filter(|_| !times.is_reported()) {
            *bins.entry(bin_middle(low.midpoint(high))).or_insert(0) += count;
        }
        Self {
            min: times.min_ns().or(none.then_some(0)),
            max: times.max_ns().or(none.then_some(0)),
            mean: times.mean_ns().or(none.then_some(0.0)),
            stddev: times.standard_deviation_ns().or(none.then_some(0.0)),
            count: times.count(),
            percentile: percentile.collect(),
            bins,
        }
    }
}

/// The middle of fio's bin that a time is in, by which fio names the bin: 64 bins in each doubling, and one for each nanosecond below 128.
fn bin_middle(ns: u64) -> u64 {
    let bits = ns.checked_ilog2().unwrap_or(0);
    if bits <= BIN_BITS {
        return ns;
    }
    let last = (1 << (u64::from(BIN_BITS) + DOUBLINGS - 1)) - 1;
    let ns = ns.min(last);
    let width = 1_u64 << (ns.ilog2() - BIN_BITS);
    ns / width * width + width / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::sample::requests;
    use model::workload::Operation as _;
    use model::workload::io::IoOperation;

    #[test]
    fn bins_are_those_of_fio() {
        // As fio 3.33 names them in its own files.
        for (ns, middle) in [(0, 0), (127, 127), (128, 129), (129, 129), (1_000, 1_004), (10_000, 10_048)] {
            assert_eq!(bin_middle(ns), middle, "{ns}");
        }
        assert_eq!(bin_middle(u64::MAX), bin_middle(17_179_869_183));
    }

    #[test]
    fn no_kind_of_request_is_left_out() {
        let known = [&READS[..], &WRITES, &TRIMS, &SYNCS, &MIXED].concat();
        let unknown = |kind: &&&str| !known.contains(*kind);
        assert_eq!(IoOperation::KINDS.iter().find(unknown), None);
    }

    #[test]
    fn each_step_is_a_job_with_its_figures() {
        let run = requests::sweep();
        assert!(is_of_requests(&run));
        let mut out = Vec::new();
        write(&run, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with(BEGINNING), "{text}");
        let found: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(found["jobs"].as_array().unwrap().len(), run.steps.len());
        for (job, step) in found["jobs"].as_array().unwrap().iter().zip(&run.steps) {
            let read = &step.operations[0].service;
            assert_eq!(job["jobname"], step.label);
            assert_eq!(job["read"]["clat_ns"]["percentile"]["99.000000"], read.quantile_ns(0.99).unwrap());
            let bins = job["read"]["clat_ns"]["bins"].as_object().unwrap();
            assert_eq!(bins.values().map(|count| count.as_u64().unwrap()).sum::<u64>(), read.count());
            assert_eq!(job["job options"]["iodepth"], step.load.sessions.unwrap().to_string());
            assert_eq!(job["write"]["total_ios"], 0);
        }
        assert!(!is_of_requests(&model::record::sample::sweep(10)));
    }
}
