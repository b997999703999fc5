//! What differs in how runs were made.

use std::collections::BTreeSet;

use crate::{Vocabulary, measured};
use model::record::{BlockDevice, Run};
use model::units::Bytes;

/// What a difference in configuration means for a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bearing {
    /// It says what was measured: figures of runs that differ here are answers to different questions.
    Work,
    /// It is what people vary on purpose, to see what comes of it.
    Varied,
    /// It differs between any two runs, and seldom changes figures.
    Incidental,
}

/// One thing that is not the same in all runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingDifference {
    /// Its name, such as `UPDATE_PCT`, `tag disk`, `kernel` or `nvme0n1 scheduler`.
    pub name: String,
    /// What it means for the comparison.
    pub bearing: Bearing,
    /// As each run has it, in the order in which the runs were given; absent where a run does not report.
    pub values: Vec<Option<String>>,
}

/// Parameters that say what one operation does, rather than how many there are at once.
const WORK: [&str; 17] = [
    "UPDATE_PCT",
    "SCAN_PCT",
    "WORK_UNIT",
    "REDO_STRESS",
    "DO_HOTSPOT",
    "HOTSPOT_MB",
    "HOTSPOT_OFFSET_MB",
    "HOTSPOT_FREQUENCY",
    "HOT_SCHEMA_FREQUENCY",
    "THINK_TM_FREQUENCY",
    "THINK_TM_MIN",
    "THINK_TM_MAX",
    "PATTERN",
    "BLOCK_SIZE",
    "READ_PCT",
    "DISTRIBUTION",
    "DURABLE",
];
/// Facts about the target that say the same of it.
const WORK_FACTS: [&str; 4] = ["direct_io", "durable", "layout", "commits"];
/// Reported of every run anew.
const INCIDENTAL_FACTS: [&str; 6] = ["seed", "started_by_us", "snapshots", "startup", "sessions_begin", "sessions_end"];

/// Whether a parameter or fact says what was measured.
pub(super) fn is_work(name: &str) -> bool {
    WORK.contains(&name)
}

/// Whether blocks are checked as they are read. Only the command line reports.
pub(super) fn verifies(run: &Run) -> bool {
    run.command.iter().any(|word| word == "--verify")
}

/// What differs, what matters most first. The command line, notes, names and times are left out: the first says again what
/// parameters say, and the others always differ. So are the label and number of steps, which loads are matched without.
pub(crate) fn differences(runs: &[&Run]) -> Vec<SettingDifference> {
    let listed: Vec<Vec<Setting>> = runs.iter().map(|run| settings(run)).collect();
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for (name, bearing, _) in listed.iter().flatten() {
        if !seen.insert(name.clone()) {
            continue;
        }
        let value =
            |list: &Vec<Setting>| list.iter().find(|setting| setting.0 == *name).and_then(|setting| setting.2.clone());
        let values: Vec<Option<String>> = listed.iter().map(value).collect();
        if values.iter().any(|value| *value != values[0]) {
            found.push(SettingDifference { name: name.clone(), bearing: *bearing, values });
        }
    }
    found.sort_by_key(|difference| difference.bearing);
    found
}

/// A name, what it means, and the value in words.
pub(crate) type Setting = (String, Bearing, Option<String>);

/// All that is recorded of how a run was made.
pub(crate) fn settings(run: &Run) -> Vec<Setting> {
    use Bearing::{Incidental, Varied, Work};
    let mut list: Vec<Setting> = Vec::new();
    let mut add = |name: &str, bearing, value: Option<String>| list.push((name.to_owned(), bearing, value));
    let target = &run.target;
    let bytes = |bytes: Option<u64>| bytes.map(|bytes| Bytes(bytes).to_string());
    add("workload", Work, Some(run.workload().to_string()));
    add("target", Work, Some(target.kind_name().to_owned()));
    add("block size", Work, bytes(target.block_bytes));
    add("data", Work, bytes(target.data_bytes));
    add("cache", Work, bytes(target.cache_bytes));
    add("made by", Work, Some(run.tool.name.clone()));
    add("verification", Work, Some(if verifies(run) { "on" } else { "off" }.to_owned()));
    let marks = run.steps.iter().find_map(|step| Some((step.window.warmup_ns, step.failure?)));
    add("failure", Work, Some(if marks.is_some() { "one, marked" } else { "none" }.to_owned()));
    // It takes a little longer each time.
    let whole = |ns: u64| format!("{} s", ns / 1_000_000_000);
    let failed = marks.map(|(warmup_ns, marks)| whole(marks.failed_ns.saturating_sub(warmup_ns)));
    add("failure after", Incidental, failed);
    let recovery = marks.and_then(|(_, marks)| Some(marks.recovered_ns?.saturating_sub(marks.failed_ns)));
    add("recovery after the failure", Incidental, recovery.map(whole));
    for (name, value) in &run.tags {
        let is_incidental = model::record::INCIDENTAL.contains(&name.as_str()) || model::record::is_mark(name);
        let bearing = if is_incidental { Incidental } else { Varied };
        add(&format!("tag {name}"), bearing, Some(value.clone()));
    }
    add("load", Varied, Some(loads(run)));
    add("window", Varied, seconds(run, |step| step.window.duration_ns));
    add("warm-up", Varied, seconds(run, |step| step.window.warmup_ns));
    for (name, value) in &run.parameters {
        add(name, if is_work(name) { Work } else { Varied }, Some(value.clone()));
    }
    add("address", Varied, Some(target.address.clone()));
    for (name, value) in target.facts.shown() {
        let bearing = match name.as_str() {
            name if WORK_FACTS.contains(&name) => Work,
            name if INCIDENTAL_FACTS.contains(&name) => Incidental,
            _ => Varied,
        };
        add(&name, bearing, Some(value));
    }
    let machine = &run.environment;
    for (name, value) in [
        ("machine", &machine.machine),
        ("processor", &machine.cpu_model),
        ("architecture", &machine.architecture),
        ("virtualization", &machine.virtualization),
        ("operating system", &machine.os),
        ("kernel", &machine.kernel),
        ("processor governor", &machine.cpu_governor),
        ("huge pages", &machine.transparent_huge_pages),
        ("clock source", &machine.clocksource),
    ] {
        add(name, Varied, value.clone());
    }
    add("processors", Varied, machine.cpus.map(|cpus| cpus.to_string()));
    add("memory", Varied, bytes(machine.memory_bytes));
    add("memory limit", Varied, bytes(machine.memory_limit_bytes));
    if let Some(files) = &machine.file_system {
        add("file system", Varied, Some(files.kind.clone()));
        add("mounted with", Varied, Some(files.options.clone()));
        add("mounted from", Varied, Some(files.source.clone()));
        add("written in place", Varied, files.writes_in_place.map(|yes| if yes { "yes" } else { "no" }.to_owned()));
        add("file system size", Varied, bytes(files.size_bytes));
    }
    for (place, device) in machine.devices.iter().enumerate() {
        let changes = changing(device).map(|(name, value)| (name, Incidental, value));
        for (name, bearing, value) in
            queue(device).map(|(name, value)| (name, Varied, value)).into_iter().chain(changes)
        {
            add(&format!("device {} {name}", place + 1), bearing, value.filter(|words| !words.is_empty()));
        }
    }
    let limits: Vec<String> = machine.group_limits.iter().map(model::record::GroupLimit::words).collect();
    add("control group", Varied, Some(limits.join("; ")).filter(|limits| !limits.is_empty()));
    add("version", Varied, Some(run.tool.version.clone()));
    add("host name", Incidental, machine.hostname.clone());
    add("seed", Incidental, run.seed.map(|seed| seed.to_string()));
    add("memory available", Incidental, bytes(machine.memory_available_bytes));
    add("load average", Incidental, machine.load_average_1m.map(|load| format!("{load:.1}")));
    add("waiting for storage before", Incidental, machine.io_pressure_percent.map(|share| format!("{share:.1} %")));
    add("space left", Incidental, machine.file_system.as_ref().and_then(|files| bytes(files.available_bytes)));
    list
}

fn queue(device: &BlockDevice) -> [(&'static str, Option<String>); 17] {
    let bytes = |bytes: Option<u64>| bytes.map(|bytes| Bytes(bytes).to_string());
    let word = |on: Option<bool>| on.map(|on| if on { "yes" } else { "no" }.to_owned());
    [
        ("name", Some(device.name.clone())),
        ("built as", device.layer.clone()),
        ("model", device.model.clone()),
        ("size", bytes(device.size_bytes)),
        ("spins", word(device.rotational)),
        ("scheduler", device.scheduler.clone()),
        ("queue", device.queue_requests.map(|requests| requests.to_string())),
        ("read-ahead", bytes(device.read_ahead_bytes)),
        ("largest request", bytes(device.max_request_bytes)),
        ("physical block", bytes(device.physical_block_bytes.map(u64::from))),
        ("write cache", device.write_cache.clone()),
        ("forced unit access", word(device.forced_unit_access)),
        ("array", device.array.as_ref().map(model::record::ArrayState::words)),
        ("paths", device.paths.as_ref().map(model::record::PathState::words)),
        ("thin pool", device.pool.as_ref().map(model::record::PoolState::words)),
        ("NVMe", device.nvme.as_ref().map(model::record::NvmeState::words)),
        ("trouble", device.nvme.as_ref().and_then(model::record::NvmeState::trouble)),
    ]
}

/// What any run changes.
fn changing(device: &BlockDevice) -> [(&'static str, Option<String>); 2] {
    [
        ("thin pool used", device.pool.as_ref().map(model::record::PoolState::used)),
        ("health", device.nvme.as_ref().map(model::record::NvmeState::health)),
    ]
}

/// Loads in the order in which they first ran, each once: `1, 2, 4 sessions`.
fn loads(run: &Run) -> String {
    let words = Vocabulary::of(run);
    let mut found: Vec<(String, String)> = Vec::new();
    for step in measured(run) {
        let load = words.load(step);
        let (number, unit) = load.split_once(' ').unwrap_or((&load, ""));
        let unit = if unit == "session" { "sessions" } else { unit };
        match found.last_mut() {
            Some((numbers, known)) if known == unit => {
                if !numbers.split("; ").any(|known| known == number) {
                    *numbers += &format!("; {number}");
                }
            }
            _ => found.push((number.to_owned(), unit.to_owned())),
        }
    }
    let words: Vec<String> =
        found.iter().map(|(numbers, unit)| format!("{} {unit}", numbers.replace("; ", ", "))).collect();
    words.join(", ")
}

/// Lengths to the second, each once.
fn seconds(run: &Run, length_ns: impl Fn(&model::record::Step) -> u64) -> Option<String> {
    let lengths: BTreeSet<u64> =
        measured(run).map(|step| length_ns(step).saturating_add(500_000_000) / 1_000_000_000).collect();
    let words: Vec<String> = lengths.iter().map(|seconds| format!("{seconds} s")).collect();
    (!words.is_empty()).then(|| words.join(", "))
}
