//! What iostat reports on devices becomes a step.

use model::record::invariants::{ALL, DEVICE, wrapped};
use model::record::{DeviceStats, Metric, Step, Workload};
use std::collections::HashMap;

use super::clock::{Stamp, Timeline};
use super::header::Header;
use super::{Mean, Shares, figures, note_on_time, weights};
use crate::draft::{count_of, reported_figure, step, whole};
use crate::plausible::Doubts;
use crate::{Draft, interval};
use model::units::Nanos;

/// Devices, or columns, that are distinguished at most.
const MAX_NAMES: usize = 1 << 16;
/// Figures of devices that all samples of an invocation keep at most.
const MAX_FIGURES: usize = 2_000_000;

/// One invocation of iostat, as it was read.
#[derive(Debug, Default)]
pub(super) struct Invocation {
    /// The program; empty of iostat.
    pub(super) program: &'static str,
    /// When the first sample began, where that is reported.
    pub(super) began: Option<Stamp>,
    pub(super) header: Option<Header>,
    pub(super) command: Vec<String>,
    pub(super) pace_s: Option<f64>,
    pub(super) devices: Names,
    pub(super) columns: Names,
    pub(super) samples: Vec<Sample>,
    /// Whether the first is no average since boot, whatever the command says.
    pub(super) begins_with_sample: bool,
    pub(super) notes: Vec<String>,
}

/// One report.
#[derive(Debug, Default)]
pub(super) struct Sample {
    pub(super) stamp: Option<Stamp>,
    /// Shares of the processors in percent, and what else is of the whole machine, by column.
    pub(super) host: Vec<(String, f64)>,
    pub(super) rows: Vec<Row>,
}

/// Figures of one device.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) device: usize,
    /// Whether it sums up other rows.
    pub(super) group: bool,
    /// Values by column; NaN where one could not be read.
    pub(super) values: Vec<(usize, f64)>,
}

/// Names and their numbers.
#[derive(Debug, Default)]
pub(super) struct Names {
    list: Vec<String>,
    known: HashMap<String, usize>,
}

impl Names {
    /// The number of a name; nothing for a new one when there are more than any machine has.
    pub(super) fn number(&mut self, name: &str) -> Option<usize> {
        if let Some(number) = self.known.get(name) {
            return Some(*number);
        }
        if self.list.len() == MAX_NAMES {
            return None;
        }
        self.list.push(name.to_owned());
        self.known.insert(name.to_owned(), self.list.len() - 1);
        Some(self.list.len() - 1)
    }

    /// Whether a device is a partition of another one that is here too, whose figures hold its own: `sda1` of `sda`, `nvme0n1p1`
    /// of `nvme0n1`.
    fn is_partition(&self, name: &str) -> bool {
        const DISKS: [&str; 10] = ["sd", "hd", "vd", "xvd", "nvme", "mmcblk", "md", "nbd", "dasd", "loop"];
        let disk = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let ends_in_digit = |disk: &str| disk.ends_with(|c: char| c.is_ascii_digit());
        let of = disk.strip_suffix('p').filter(|disk| ends_in_digit(disk)).unwrap_or(disk);
        disk.len() < name.len() && DISKS.iter().any(|start| name.starts_with(start)) && self.known.contains_key(of)
    }

    pub(super) fn name(&self, number: usize) -> &str {
        self.list.get(number).map_or("", String::as_str)
    }
}

/// The figures of one device in one sample, by column.
struct Cells {
    value: Vec<f64>,
    set: Vec<usize>,
}

impl Cells {
    fn get(&self, column: Option<usize>) -> Option<f64> {
        self.value.get(column?).copied().filter(|value| value.is_finite())
    }

    fn fill(&mut self, rows: &[&Row]) {
        for number in self.set.drain(..) {
            if let Some(cell) = self.value.get_mut(number) {
                *cell = f64::NAN;
            }
        }
        for (number, value) in rows.iter().flat_map(|row| &row.values) {
            if let Some(cell) = self.value.get_mut(*number) {
                if cell.is_nan() {
                    self.set.push(*number);
                }
                *cell = *value;
            }
        }
    }
}

/// What each column is good for.
struct Columns {
    over: Vec<(Over, Vec<usize>)>,
    known: HashMap<String, usize>,
}

impl Columns {
    fn new(names: &Names) -> Self {
        let ways = |name: &String| {
            let over = over(name);
            let counts = match &over {
                Over::Counts(counts) => counts.iter().filter_map(|count| names.known.get(*count).copied()).collect(),
                _ => Vec::new(),
            };
            (over, counts)
        };
        Self { over: names.list.iter().map(ways).collect(), known: names.known.clone() }
    }

    fn value(&self, cells: &Cells, column: &str) -> Option<f64> {
        cells.get(self.known.get(column).copied())
    }

    fn bytes_per_s(&self, cells: &Cells, letter: char) -> Option<f64> {
        [("kB/s", 1_024.0), ("MB/s", 1_048_576.0), ("sec/s", 512.0)]
            .into_iter()
            .find_map(|(rest, bytes)| Some(self.value(cells, &format!("{letter}{rest}"))? * bytes))
    }

    /// Counts of a device: only where every column that they need is reported, and the length of the sample is. They are as exact
    /// as the two decimals of iostat.
    fn stats(&self, cells: &Cells, name: &str, elapsed_ns: u64) -> Option<DeviceStats> {
        if elapsed_ns == 0 {
            return None;
        }
        let seconds = elapsed_ns as f64 / 1e9;
        let (reads_per_s, writes_per_s) = (self.value(cells, "r/s")?, self.value(cells, "w/s")?);
        let (r_await, w_await) = (self.value(cells, "r_await")?, self.value(cells, "w_await")?);
        let queue = self.value(cells, "aqu-sz").or_else(|| self.value(cells, "avgqu-sz"))?;
        Some(DeviceStats {
            name: name.to_owned(),
            elapsed_ns,
            reads: count_of(reads_per_s, elapsed_ns)?,
            read_bytes: count_of(self.bytes_per_s(cells, 'r')?, elapsed_ns)?,
            read_time_ns: whole(reads_per_s * seconds * r_await * 1e6)?,
            writes: count_of(writes_per_s, elapsed_ns)?,
            write_bytes: count_of(self.bytes_per_s(cells, 'w')?, elapsed_ns)?,
            write_time_ns: whole(writes_per_s * seconds * w_await * 1e6)?,
            flushes: self.value(cells, "f/s").and_then(|flushes_per_s| count_of(flushes_per_s, elapsed_ns)),
            busy_ns: whole(self.value(cells, "%util")?.min(100.0) / 100.0 * elapsed_ns as f64)?,
            weighted_ns: whole(queue * elapsed_ns as f64)?,
        })
    }
}

/// Adds the counts of a later sample.
pub(crate) fn add(sum: &mut DeviceStats, more: &DeviceStats) {
    let pairs = [
        (&mut sum.reads, more.reads),
        (&mut sum.read_bytes, more.read_bytes),
        (&mut sum.read_time_ns, more.read_time_ns),
        (&mut sum.writes, more.writes),
        (&mut sum.write_bytes, more.write_bytes),
        (&mut sum.write_time_ns, more.write_time_ns),
        (&mut sum.busy_ns, more.busy_ns),
        (&mut sum.weighted_ns, more.weighted_ns),
    ];
    for (mine, theirs) in pairs {
        *mine = mine.saturating_add(theirs);
    }
    sum.flushes = sum.flushes.zip(more.flushes).map(|(mine, theirs)| mine.saturating_add(theirs));
}

/// The run of an invocation that has at least one sample.
pub(super) fn draft(invocation: Invocation) -> Draft {
    let Invocation {
        program,
        began,
        header,
        command,
        mut pace_s,
        devices,
        columns,
        mut samples,
        begins_with_sample,
        mut notes,
    } = invocation;
    let host = header.as_ref().and_then(|header| header.environment.hostname.clone());
    let program = if program.is_empty() { "iostat" } else { program };
    let mut draft = Draft::new(Workload::Host, program, host.unwrap_or_else(|| program.to_owned()));
    let mut stamps: Vec<Option<Stamp>> = samples.iter().map(|sample| sample.stamp).collect();
    let month_first = stamps
        .iter()
        .flatten()
        .find_map(|stamp| stamp.month_first)
        .or(header.as_ref().and_then(|header| header.month_first));
    let day = header.as_ref().map_or(super::clock::Day::Unreported, |header| header.day);
    let is_first_real = begins_with_sample || super::header::omits_since_boot(&command, pace_s);
    if is_first_real {
        // The first is as long as those that follow it.
        let next_ns = Timeline::new(&stamps, day, month_first, pace_s).spans.first().map(|(_, length_ns)| *length_ns);
        pace_s = pace_s.or(next_ns.filter(|ns| *ns > 0).map(|ns| ns as f64 / 1e9));
        let first = stamps.first().copied().flatten();
        let before = || first.zip(pace_s).and_then(|(first, pace_s)| first.before(pace_s, month_first));
        stamps.insert(0, began.or_else(before));
    }
    let mut timeline = Timeline::new(&stamps, day, month_first, pace_s);
    if !is_first_real && samples.len() > 1 {
        notes.push(
            "The first sample is left out: it is the average since the machine started, unless iostat ran with -y."
                .to_owned(),
        );
        samples.remove(0);
    } else if !is_first_real {
        notes.push("The only sample is the average since the machine started, unless iostat ran with -y.".to_owned());
        timeline.spans = vec![(0, 0)];
    }
    let cpus = header.as_ref().and_then(|header| header.environment.cpus);
    let busy = busy(&samples, devices.list.len());
    let partitions = devices.list.iter().filter(|name| devices.is_partition(name)).count();
    if partitions > 0 {
        notes.push(format!("{partitions} partitions have figures by their names, and are left out of counts of devices: their disks have them."));
    }
    let doubted = take_out(&mut samples, &devices, &columns, &timeline, &mut notes);
    let mut step = step_of(&samples, &devices, &columns, &timeline, cpus, &busy, &doubted);
    program.clone_into(&mut step.label);
    note_on_time(&timeline, &mut notes);
    if !is_small(&samples, &busy) {
        notes.push("There are so many samples that rates of devices are kept for the whole window only.".to_owned());
    }
    (draft.began, draft.ended) = (timeline.began, timeline.ended);
    draft.command = command;
    draft.environment = header.map(|header| header.environment).unwrap_or_default();
    draft.notes = notes;
    draft.steps = vec![step];
    draft
}

/// Takes out what cannot be: figures of a device whose counters went back or ran over in a sample, and shares of processors that are
/// none. Returns what the samples weigh that each device lost so.
fn take_out(
    samples: &mut [Sample],
    devices: &Names,
    columns: &Names,
    timeline: &Timeline,
    notes: &mut Vec<String>,
) -> HashMap<usize, f64> {
    let mut doubted: HashMap<usize, f64> = HashMap::new();
    let mut doubts = Doubts::default();
    for ((sample, weight), (number, span)) in samples.iter_mut().zip(weights(timeline)).zip((1..).zip(&timeline.spans))
    {
        let place = if span.1 > 0 { format!("after {}", Nanos(span.0)) } else { format!("{number}") };
        let cannot_be = |name: &str, unit: &str, value: f64, all: f64| {
            wrapped(&format!("`{name}` of the sample {place}"), unit, value, all).map(|found| found.to_string())
        };
        // Other shares, as that of memory that was promised, may be of more than all.
        let is_of_processors = |name: &str| super::metric(name).is_some();
        let of_processors =
            |(name, value): &(String, f64)| is_of_processors(name).then(|| cannot_be(name, "%", *value, ALL)).flatten();
        if let Some(doubt) = sample.host.iter().find_map(of_processors) {
            doubts.add(doubt);
            sample.host.retain(|(name, _)| !is_of_processors(name));
        }
        let mut lost: Vec<usize> = Vec::new();
        for row in &sample.rows {
            let of_column = |(column, value): &(usize, f64)| {
                let (name, device) = (columns.name(*column), devices.name(row.device));
                let unit = if matches!(over(name), Over::Sum) { "" } else { unit(name) };
                cannot_be(&format!("{device} {name}"), unit, *value, DEVICE)
            };
            if let Some(doubt) = row.values.iter().find_map(of_column)
                && !lost.contains(&row.device)
            {
                doubts.add(doubt);
                lost.push(row.device);
            }
        }
        if !lost.is_empty() {
            sample.rows.retain(|row| !lost.contains(&row.device));
            lost.into_iter().for_each(|device| *doubted.entry(device).or_default() += weight);
        }
    }
    doubts.into_notes(notes);
    doubted
}

/// A device that is missing in a sample did nothing in it: iostat leaves out what was never used, and with `-z` what was idle.
/// Devices that did nothing in the whole window have figures for the window, and none for each sample.
fn step_of(
    samples: &[Sample],
    devices: &Names,
    columns: &Names,
    timeline: &Timeline,
    cpus: Option<u32>,
    busy: &[bool],
    doubted: &HashMap<usize, f64>,
) -> Step {
    let mut made = step(0, "", timeline.duration_ns());
    let ways = Columns::new(columns);
    let mut cells = Cells { value: vec![f64::NAN; columns.list.len()], set: Vec::new() };
    let mut means: HashMap<(usize, usize), Mean> = HashMap::new();
    // What the samples weigh that have each device, whatever columns they have of it.
    let mut present: HashMap<usize, f64> = HashMap::new();
    let mut order: Vec<(usize, usize)> = Vec::new();
    let mut sums: HashMap<usize, Option<DeviceStats>> = HashMap::new();
    let mut cpu_names = Names::default();
    let mut cpu_means: Vec<Mean> = Vec::new();
    let reported_in_samples = is_small(samples, busy);
    let whole_weight: f64 = weights(timeline).sum();
    // Unknown in part is unknown in all.
    sums.extend(doubted.keys().map(|device| (*device, None)));
    for ((sample, weight), span) in samples.iter().zip(weights(timeline)).zip(&timeline.spans) {
        let mut interval = interval::of(&made, span.0, span.1);
        for (name, percent) in &sample.host {
            let Some(number) = cpu_names.number(name) else { continue };
            cpu_means.resize(cpu_means.len().max(number + 1), Mean::default());
            if let Some(mean) = cpu_means.get_mut(number) {
                mean.add(*percent, weight);
            }
            interval.reported.insert(name.clone(), *percent);
        }
        for rows in by_device(&sample.rows, devices.list.len()) {
            let Some(row) = rows.first() else { continue };
            cells.fill(&rows);
            *present.entry(row.device).or_default() += weight;
            let name = devices.name(row.device);
            for number in &cells.set {
                let Some((over, counts)) = ways.over.get(*number) else { continue };
                let key = (row.device, *number);
                let mean = means.entry(key).or_insert_with(|| {
                    order.push(key);
                    Mean::default()
                });
                let Some(value) = cells.get(Some(*number)) else {
                    mean.spoil();
                    continue;
                };
                let counted: f64 = counts.iter().filter_map(|count| cells.get(Some(*count))).sum();
                let weight = match over {
                    Over::Counts(_) if !counts.is_empty() => counted * weight,
                    Over::Sum => 1.0,
                    _ => weight,
                };
                let nothing = matches!(over, Over::Counts(_)) && value == 0.0 && counted == 0.0 && !counts.is_empty();
                // The rate may have been rounded to nothing while there is a time: a hair's weight keeps it if it is alone.
                mean.add(value, if weight == 0.0 && !nothing { f64::MIN_POSITIVE } else { weight });
                if reported_in_samples && busy.get(row.device) == Some(&true) && !nothing {
                    interval.reported.insert(format!("{name} {}", columns.name(*number)), value);
                }
            }
            let stats = ways.stats(&cells, name, span.1).filter(|_| !row.group && !devices.is_partition(name));
            match (sums.get_mut(&row.device), &stats) {
                (None, _) => {
                    sums.insert(row.device, stats.clone());
                }
                (Some(Some(sum)), Some(more)) => add(sum, more),
                // Unknown in part is unknown in all.
                (Some(sum), _) => *sum = None,
            }
            if busy.get(row.device) == Some(&true) {
                interval.devices.extend(stats);
            }
        }
        made.intervals.push(interval);
    }
    let names: Vec<(String, &str)> = cpu_names.list.iter().map(|name| (name.clone(), unit_of_host(name))).collect();
    made.host_cpu =
        Shares::of(cpu_names.list.iter().zip(&cpu_means).filter_map(|(name, mean)| Some((name, mean.value()?))))
            .and_then(|shares| shares.over(cpus, timeline.duration_ns()));
    made.reported = figures(&names, cpu_means.into_iter().map(Mean::value));
    order.sort_unstable();
    for (device, column) in order {
        let (name, mean) = (columns.name(column), means.get(&(device, column)).copied().unwrap_or_default());
        let value = match ways.over.get(column) {
            // A column that a sample leaves out of its device is unknown there, and not zero.
            Some((Over::Time, _)) => {
                let of = |weights: &HashMap<usize, f64>| weights.get(&device).copied().unwrap_or(0.0);
                Some(mean.sum() / (whole_weight - of(doubted) - (of(&present) - mean.weight)))
            }
            Some((Over::Sum, _)) => Some(mean.sum()),
            _ => mean.value(),
        };
        let Some(value) = value.filter(|value| value.is_finite()) else { continue };
        let device = devices.name(device);
        let figure = reported_figure("device", format!("{device} {name}"), unit(name), value);
        made.reported.push(match metric(name) {
            Some((metric, factor)) => figure.is(metric, factor).of(device),
            None => figure,
        });
    }
    let mut counted: Vec<(usize, DeviceStats)> =
        sums.into_iter().filter_map(|(device, sum)| Some((device, sum?))).collect();
    counted.sort_unstable_by_key(|(device, _)| *device);
    made.devices =
        counted.into_iter().map(|(_, sum)| DeviceStats { elapsed_ns: timeline.duration_ns(), ..sum }).collect();
    made
}

/// The rows of each device: `-x` may spread its columns over several tables.
fn by_device(rows: &[Row], devices: usize) -> Vec<Vec<&Row>> {
    let mut places: HashMap<usize, usize> = HashMap::with_capacity(rows.len().min(devices));
    let mut found: Vec<Vec<&Row>> = Vec::new();
    for row in rows {
        let place = *places.entry(row.device).or_insert(found.len());
        match found.get_mut(place) {
            Some(rows) => rows.push(row),
            None => found.push(vec![row]),
        }
    }
    found
}

/// Whether the figures of all samples are few enough to be kept by name. Hours of many devices are not: of these, samples have
/// counts only.
fn is_small(samples: &[Sample], busy: &[bool]) -> bool {
    let rows = samples.iter().flat_map(|sample| &sample.rows).filter(|row| busy.get(row.device) == Some(&true));
    rows.map(|row| row.values.len()).sum::<usize>() <= MAX_FIGURES
}

/// Which devices did anything.
fn busy(samples: &[Sample], devices: usize) -> Vec<bool> {
    let mut busy = vec![false; devices];
    for row in samples.iter().flat_map(|sample| &sample.rows) {
        if let Some(busy) = busy.get_mut(row.device) {
            *busy |= row.values.iter().any(|(_, value)| *value > 0.0);
        }
    }
    busy
}

/// The unit of a column that is of the whole machine.
fn unit_of_host(column: &str) -> &'static str {
    match column {
        _ if column.starts_with('%') || column.ends_with('%') => "%",
        _ if column.starts_with("kb") => "KiB",
        _ if column.ends_with("(MB)") => "MiB",
        _ if column.ends_with("-KB/s") => "KiB/s",
        _ if column.ends_with("/s") || column.ends_with("tps") => "1/s",
        _ => "",
    }
}

/// The unit of a column. kB and MB of iostat are 1024 and 1024 x 1024 bytes, sectors and blocks 512 bytes.
fn unit(column: &str) -> &'static str {
    match column {
        _ if column.starts_with('%') => "%",
        "rkB/s" | "wkB/s" | "dkB/s" | "kB/s" => "KiB/s",
        "rMB/s" | "wMB/s" | "dMB/s" | "MB/s" => "MiB/s",
        "rsec/s" | "wsec/s" | "rd_sec/s" | "wr_sec/s" => "sectors/s",
        "avgrq-sz" => "sectors",
        "rareq-sz" | "wareq-sz" | "dareq-sz" | "areq-sz" => "KiB",
        "svctm" => "ms",
        _ if column.ends_with("await") => "ms",
        "aqu-sz" | "avgqu-sz" => "",
        "tps" => "1/s",
        _ => match (column.split('_').next(), column.ends_with("/s")) {
            (Some("kB" | "rkB" | "wkB" | "ops"), true) if !column.starts_with("ops") => "KiB/s",
            (Some("MB" | "rMB" | "wMB"), true) => "MiB/s",
            (Some("Blk" | "rBlk" | "wBlk"), true) => "blocks/s",
            (_, true) => "1/s",
            (Some("kB"), false) => "KiB",
            (Some("MB"), false) => "MiB",
            (Some("Blk"), false) => "blocks",
            _ => "",
        },
    }
}

/// What a column is of its device: the metric, and how many of its unit one of the column's is.
fn metric(column: &str) -> Option<(Metric, f64)> {
    let megabytes = match unit(column) {
        "KiB/s" => 1_024.0 / 1e6,
        "MiB/s" => 1_048_576.0 / 1e6,
        _ => 512.0 / 1e6,
    };
    Some(match column {
        "r/s" => (Metric::DeviceReads, 1.0),
        "w/s" => (Metric::DeviceWrites, 1.0),
        "rkB/s" | "rMB/s" | "rsec/s" | "rd_sec/s" => (Metric::DeviceReadMegabytes, megabytes),
        "wkB/s" | "wMB/s" | "wsec/s" | "wr_sec/s" => (Metric::DeviceWriteMegabytes, megabytes),
        "await" => (Metric::DeviceAwait, 1.0),
        "r_await" => (Metric::DeviceReadAwait, 1.0),
        "w_await" => (Metric::DeviceWriteAwait, 1.0),
        "%util" => (Metric::DeviceBusy, 1.0),
        _ => return None,
    })
}

/// A size with its unit, as `--human` writes it, in the unit of its column.
pub(super) fn human(text: &str, column: &str) -> Option<f64> {
    let suffix = text.chars().last()?;
    let number = super::iostat::cell(text.strip_suffix(suffix)?)?;
    let bytes = match suffix {
        's' => 512.0,
        'B' => 1.0,
        'k' => 1_024.0,
        'M' => 1_048_576.0,
        'G' => 1_073_741_824.0,
        'T' => 1_099_511_627_776.0,
        'P' => 1_125_899_906_842_624.0,
        _ => return None,
    };
    let of_column = match unit(column) {
        "KiB" | "KiB/s" => 1_024.0,
        "MiB" | "MiB/s" => 1_048_576.0,
        "sectors" | "sectors/s" | "blocks" | "blocks/s" => 512.0,
        _ => return None,
    };
    Some(number * bytes / of_column)
}

/// How the figures of several samples become one.
pub(crate) enum Over {
    /// Averaged over time.
    Time,
    /// Averaged over what was counted in these columns.
    Counts(&'static [&'static str]),
    /// Added.
    Sum,
}

/// How the figures of this column become one.
pub(crate) fn over(column: &str) -> Over {
    match column {
        "r_await" | "rareq-sz" => Over::Counts(&["r/s"]),
        "w_await" | "wareq-sz" => Over::Counts(&["w/s"]),
        "d_await" | "dareq-sz" => Over::Counts(&["d/s"]),
        "f_await" => Over::Counts(&["f/s"]),
        "%rrqm" => Over::Counts(&["r/s", "rrqm/s"]),
        "%wrqm" => Over::Counts(&["w/s", "wrqm/s"]),
        "%drqm" => Over::Counts(&["d/s", "drqm/s"]),
        "await" | "areq-sz" | "avgrq-sz" | "svctm" => Over::Counts(&["r/s", "w/s", "d/s", "tps"]),
        _ if column.contains('_') && !column.contains('/') => Over::Sum,
        _ => Over::Time,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_with_units_are_reported_in_the_unit_of_their_column() {
        let read = [("1.0P", "kB_read"), ("2.0M", "MB_wrtn/s"), ("3s", "avgrq-sz"), ("4.0k", "r/s")];
        let petabyte_kib = 1_099_511_627_776.0;
        assert_eq!(read.map(|(text, column)| human(text, column)), [Some(petabyte_kib), Some(2.0), Some(3.0), None]);
    }
}
