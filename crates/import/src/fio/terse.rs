//! `fio --minimal` and `--output-format=terse`, versions 2 to 5: a row of fields between semicolons for each job.
//!
//! Fields as `show_thread_status_terse_all` in fio's `stat.c` writes them. Rows have more digits of latency than normal output,
//! and no count of requests, no time and no options; where both stand in one file, each job takes what the other has more of.

use super::latency::shares_of_labels;
use super::{Direction, Invocation, Job, Latency, Measure, Way, assemble, figure_of, text};
use crate::draft::{reported_figure, whole};
use crate::numbers::number;
use crate::{Draft, ImportError, Notes, Source};
use model::record::ReportedFigure;

/// Fields of one direction, without those that version 5 adds.
const DIRECTION: usize = 41;
/// Fields that version 5 adds to each direction: samples of bandwidth, and requests per second.
const MORE_OF_5: usize = 6;
/// Fields of a direction before its percentiles.
const BEFORE_PERCENTILES: usize = 12;
/// Percentiles in each direction.
const PERCENTILES: usize = 20;
/// Fields of a direction before its total latency.
const TOTAL: usize = BEFORE_PERCENTILES + PERCENTILES;
/// Fields of a direction before its completion latency.
const COMPLETION: usize = 8;
/// Share by which a percentile may be above what it stands for: fio prints the middle of a bucket.
const BUCKET: f64 = 0.01;
/// Fields of the processor, of depths and of the tables of latency.
const AFTER_DIRECTIONS: usize = 5 + 7 + 10 + 12;
/// Fields of a disk.
const DISK: usize = 9;
/// Share by which a job must have run longer in a later report of its sums.
const LONGER: f64 = 0.01;

const US_LABELS: [&str; 10] = ["2", "4", "10", "20", "50", "100", "250", "500", "750", "1000"];
const MS_LABELS: [&str; 12] = ["2", "4", "10", "20", "50", "100", "250", "500", "750", "1000", "2000", ">=2000"];
const DEPTH_LABELS: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];

/// Whether it holds a row.
pub fn recognises(head: &str) -> bool {
    !super::json::recognises(head) && head.lines().any(|line| Row::read(line).is_some())
}

/// The runs in it.
pub fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut rows = Vec::new();
    for (number, line) in source.lines() {
        match Row::read(line) {
            Some(row) => rows.push(row),
            None if begins_as_row(line) => {
                return Err(ImportError::damaged(source, number, "a terse row of fio that is not whole"));
            }
            None => {}
        }
    }
    if rows.is_empty() {
        return Err(ImportError::damaged(source, None, "there is no whole terse row of fio"));
    }
    let mut printed = text::invocations(source, notes)?.into_iter().peekable();
    let mut drafts = Vec::new();
    for Rows { rows, left_out_rows, .. } in invocations(rows) {
        let left_out = left_out_rows.div_ceil(rows.len().max(1));
        let is_the_same = |normal: &Invocation| {
            let same = |(job, row): (&Job, &Row)| job.name == row.job.name && job.group == row.job.group;
            normal.jobs.len() == rows.len() && normal.jobs.iter().zip(&rows).all(same)
        };
        let normal = printed.next_if(is_the_same);
        let mut invocation = invocation(rows, normal);
        invocation.notes.extend(super::of_earlier_reports(left_out));
        drafts.push(assemble::draft(invocation));
    }
    for normal in printed {
        let name = normal.jobs.first().map_or("", |job| job.name.as_str());
        notes.not_understood(None, format!("normal output of job `{name}`, which has no terse row in its place"));
    }
    Ok(drafts)
}

/// One row.
#[derive(Debug)]
struct Row {
    version: String,
    job: Job,
    disks: String,
    figures_of_disks: Vec<ReportedFigure>,
}

/// The fields of a row, behind whatever a log puts before them, and the version of their order.
fn fields(line: &str) -> Option<(u32, Vec<&str>)> {
    let (at, order) = match line.find(";fio-") {
        Some(at) => (at.checked_sub(1)?, line.get(at.checked_sub(1)?..at)?),
        None => {
            let begin = line.len() - line.trim_start().len();
            (begin, line.get(begin..)?.strip_prefix("2;").map(|_| "2")?)
        }
    };
    let order = order.parse::<u32>().ok().filter(|order| (2..=5).contains(order))?;
    Some((order, line.get(at..)?.trim_end().split(';').collect()))
}

/// Whether a line looks like a row without being one that is whole: percentiles stand where they should.
fn begins_as_row(line: &str) -> bool {
    fields(line).is_some_and(|(order, fields)| {
        let first = if order == 2 { 4 } else { 5 };
        order != 2
            && fields.len() > first + 3
            && fields.get(3..first + 3).is_some_and(|fields| {
                fields.iter().all(|field| field.chars().all(|c| c.is_ascii_digit()) && !field.is_empty())
            })
    })
}

impl Row {
    fn read(line: &str) -> Option<Self> {
        let (order, fields) = fields(line)?;
        let first = if order == 2 { 4 } else { 5 };
        let length = if order == 5 { DIRECTION + MORE_OF_5 } else { DIRECTION };
        let ways = ways(&fields, order, first, length)?;
        let rest = fields.get(first + ways.len() * length..).filter(|rest| rest.len() >= AFTER_DIRECTIONS)?;
        if !rest.first().is_some_and(|usr_cpu| usr_cpu.ends_with('%')) {
            return None;
        }
        let version = if order == 2 { "" } else { fields.get(1)?.strip_prefix("fio-")? };
        let mut job = Job {
            name: (*fields.get(first - 3)?).to_owned(),
            group: fields.get(first - 2)?.trim().parse().ok()?,
            error: fields.get(first - 1)?.trim().parse().ok(),
            counts_from_rate: true,
            ..Job::default()
        };
        job.failure = job.error.filter(|error| *error != 0).map(|error| format!("fio says error {error}"));
        for (at, way) in ways.iter().enumerate() {
            let from = first + at * length;
            let part = fields.get(from..from + length)?;
            let direction = direction(part, *way, &mut job)?;
            job.directions.extend(direction);
        }
        for (name, unit, value) in
            [("usr_cpu", "%", 0), ("sys_cpu", "%", 1), ("ctx", "", 2), ("majf", "", 3), ("minf", "", 4)]
                .map(|(name, unit, at)| (name, unit, rest.get(at)))
        {
            job.reported
                .extend(value.and_then(|text| percent(text)).map(|value| reported_figure("client", name, unit, value)));
        }
        let shares = |from: usize, labels: &'static [&'static str]| -> Vec<(&str, f64)> {
            let of = |(at, label): (usize, &&'static str)| {
                Some((*label, rest.get(from + at).and_then(|text| percent(text))?))
            };
            labels.iter().enumerate().filter_map(of).collect()
        };
        let depths = shares(5, &DEPTH_LABELS).into_iter().filter(|(_, share)| *share > 0.0);
        job.reported.extend(
            depths.map(|(label, share)| reported_figure("client", format!("iodepth_level {label}"), "%", share)),
        );
        if let [direction] = job.directions.as_mut_slice()
            && let Some(latency) = direction.latency.as_mut().filter(|latency| !latency.is_distribution())
        {
            latency.shares = shares_of_labels(&shares(12, &US_LABELS), 1_000);
            latency.shares.extend(shares_of_labels(&shares(22, &MS_LABELS), 1_000_000));
        }
        let after = rest.get(AFTER_DIRECTIONS..).unwrap_or(&[]);
        let (disks, figures_of_disks) = disks(after);
        Some(Self { version: version.to_owned(), job, disks, figures_of_disks })
    }
}

/// The directions of a row, by how many there are: `unified_rw_reporting` puts their sum in place of all, or behind them.
fn ways(fields: &[&str], order: u32, first: usize, length: usize) -> Option<&'static [Way]> {
    const OF_3: &[Way] = &[Way::Read, Way::Write, Way::Mixed];
    const OF_OTHERS: &[Way] = &[Way::Read, Way::Write, Way::Trim, Way::Mixed];
    let all = if order == 3 { OF_3 } else { OF_OTHERS };
    let is_direction = |at: &usize| {
        let from = first + at * length + BEFORE_PERCENTILES;
        let percentiles = fields.get(from..from + PERCENTILES);
        percentiles.is_some_and(|pairs| pairs.iter().all(|pair| pair.contains("%=")))
    };
    match (0..all.len()).take_while(is_direction).count() {
        1 => Some(&[Way::Mixed]),
        several if several + 1 >= all.len() => all.get(..several),
        _ => None,
    }
}

fn percent(text: &str) -> Option<f64> {
    number(text.trim().trim_end_matches('%'))
}

/// One direction, in KiB, KiB/s, milliseconds and microseconds; `None` if these are not its fields, and an empty one if the
/// job did nothing in it.
fn direction(fields: &[&str], way: Way, job: &mut Job) -> Option<Option<Direction>> {
    let Job { reported: figures, doubts, .. } = job;
    let at = |place: usize| fields.get(place).and_then(|text| percent(text));
    let percentiles = fields.get(BEFORE_PERCENTILES..TOTAL)?;
    let (kib, bw, iops, runtime_ms) = (at(0)?, at(1)?, at(2)?, at(3)?);
    if kib == 0.0 && iops == 0.0 && at(11).is_none_or(|max| max == 0.0) {
        return Some(None);
    }
    let mut push = |figure: &str, unit: &str, value: Option<f64>| {
        figures.extend(value.map(|value| figure_of(way, figure, (unit, 1_024.0), value)));
    };
    push("iops", "1/s", Some(iops));
    push("bw", "KiB/s", Some(bw));
    push("runtime", "ms", Some(runtime_ms));
    for (latency, place) in [("slat", 4), ("clat", COMPLETION), ("lat", TOTAL)] {
        if at(place + 1).is_some_and(|max| max > 0.0) {
            push(&format!("{latency} mean"), "us", at(place + 2));
            push(&format!("{latency} stddev"), "us", at(place + 3));
        }
    }
    let rates = TOTAL + 4;
    for (figure, place) in [("bw_min", 0), ("bw_max", 1), ("bw_mean", 3), ("bw_dev", 4)] {
        push(figure, "KiB/s", at(rates + place));
    }
    for (figure, place) in [("iops_min", 6), ("iops_max", 7), ("iops_mean", 8), ("iops_stddev", 9)] {
        push(figure, "1/s", at(rates + place));
    }
    let mut pairs: Vec<(f64, f64)> = percentiles
        .iter()
        .filter_map(|pair| pair.split_once("%="))
        .filter_map(|(percentage, us)| Some((number(percentage)?, number(us)? * 1e3)))
        .filter(|(percentage, ns)| *percentage > 0.0 && *percentage <= 100.0 && *ns >= 0.0)
        .collect();
    pairs.sort_by(|one, other| one.0.total_cmp(&other.0));
    if pairs.iter().all(|(_, ns)| *ns == 0.0) {
        pairs.clear();
    }
    let ns = |place: usize| at(place).and_then(|us| whole(us * 1e3));
    // With `lat_percentiles` they are those of the total. No row says so, but one that is longer than any completion is.
    let longest_ns = ns(COMPLETION + 1).unwrap_or(0) as f64;
    let is_total = pairs.last().is_some_and(|(_, percentile_ns)| *percentile_ns > longest_ns * (1.0 + BUCKET) + 1e3);
    let (measure, name, place) =
        if is_total { (Measure::Total, "lat", TOTAL) } else { (Measure::Completion, "clat", COMPLETION) };
    let latency = |measure, place: usize, percentiles| Latency {
        measure: Some(measure),
        mean_ns: at(place + 2).map(|us| us * 1e3),
        min_ns: ns(place),
        max_ns: ns(place + 1),
        percentiles,
        ..Latency::default()
    };
    // A row distributes one of both, which counts where it can be.
    let (one, total) = (latency(measure, place, pairs), latency(Measure::Total, TOTAL, Vec::new()));
    let latency = Latency::chosen(one, total, false, way, doubts);
    let exactly = latency.percentiles.iter().find(|(percentage, _)| *percentage == 99.0);
    push(&format!("{name} percentile 99"), "us", exactly.map(|(_, ns)| ns / 1e3));
    let latency = Some(latency).filter(|latency| latency.mean_ns.is_some_and(|mean_ns| mean_ns > 0.0));
    Some(Some(Direction {
        way,
        requests: whole(iops * runtime_ms / 1e3).filter(|requests| *requests > 0),
        bytes: whole(kib * 1_024.0),
        runtime_ms: Some(runtime_ms).filter(|ms| *ms > 0.0),
        latency,
    }))
}

/// What follows the tables: disks, each with a name and numbers, and after them errors and a description, if at all.
fn disks(fields: &[&str]) -> (String, Vec<ReportedFigure>) {
    const NAMES: [(&str, &str); DISK - 1] = [
        ("read_ios", ""),
        ("write_ios", ""),
        ("read_merges", ""),
        ("write_merges", ""),
        ("read_ticks", "ms"),
        ("write_ticks", "ms"),
        ("in_queue", "ms"),
        ("util", "%"),
    ];
    let (mut all, mut figures) = (String::new(), Vec::new());
    for disk in fields.chunks_exact(DISK) {
        let Some((name, numbers)) = disk.split_first().filter(|_| disk.last().is_some_and(|util| util.ends_with('%')))
        else {
            break;
        };
        for ((figure, unit), value) in NAMES.into_iter().zip(numbers) {
            figures
                .extend(percent(value).map(|value| reported_figure("device", format!("{name} {figure}"), unit, value)));
        }
        all.push_str(&disk.join(";"));
        all.push(';');
    }
    (all, figures)
}

/// The rows of one invocation, and how many rows of earlier reports were left out.
#[derive(Debug, Default)]
struct Rows {
    rows: Vec<Row>,
    left_out_rows: usize,
    /// The row that comes next if this is another report of the same jobs.
    next: usize,
}

/// Rows of one invocation after another. All rows of one repeat the same figures of disks, and groups rise. A job whose figures
/// all went on from those of a row before is reported again: the last report counts.
fn invocations(rows: Vec<Row>) -> Vec<Rows> {
    let mut each: Vec<Rows> = Vec::new();
    for row in rows {
        let Some(now) = each.last_mut() else {
            each.push(Rows { rows: vec![row], ..Rows::default() });
            continue;
        };
        let is_amid_report = now.next > 0;
        let place = now.next;
        if let Some(before) = now.rows.get_mut(place).filter(|before| is_later_report(before, &row, is_amid_report)) {
            *before = row;
            now.left_out_rows += 1;
            now.next = (place + 1) % now.rows.len();
            continue;
        }
        let goes_on = now.rows.last().is_some_and(|last| {
            (&last.version, &last.disks) == (&row.version, &row.disks) && last.job.group <= row.job.group
        });
        if goes_on && now.left_out_rows == 0 {
            now.rows.push(row);
        } else {
            each.push(Rows { rows: vec![row], ..Rows::default() });
        }
    }
    each
}

/// Whether a row reports the same job later. Sums, and the extremes of latency, only grow; jobs that ran beside each other for a
/// time that was asked ran equally long, and those that did the same work did equally much.
fn is_later_report(before: &Row, after: &Row, is_amid_report: bool) -> bool {
    let (one, other) = (&before.job, &after.job);
    if (&before.version, &one.name, one.group) != (&after.version, &other.name, other.group) {
        return false;
    }
    if !one.did_something() && !other.did_something() {
        return is_amid_report;
    }
    let went_on = |earlier: &Direction| {
        let Some(later) = other.direction(earlier.way) else { return false };
        let [short, long] = [earlier, later].map(|direction| direction.latency.clone().unwrap_or_default());
        later.bytes >= earlier.bytes
            && later.runtime_ms >= earlier.runtime_ms
            && long.max_ns >= short.max_ns
            && short.min_ns.zip(long.min_ns).is_none_or(|(short, long)| long <= short)
    };
    let switches = |job: &Job| job.reported.iter().find(|figure| figure.name == "ctx").map(|figure| figure.value);
    if !one.directions.iter().all(went_on) || switches(other) < switches(one) {
        return false;
    }
    let sums = |job: &Job| {
        let bytes = job.directions.iter().filter_map(|direction| direction.bytes).fold(0, u64::saturating_add);
        (bytes, job.directions.iter().filter_map(|direction| direction.runtime_ms).fold(0.0, f64::max))
    };
    let ((bytes, ms), (later_bytes, later_ms)) = (sums(one), sums(other));
    let is_longer = later_ms > ms * (1.0 + LONGER) && later_bytes > bytes;
    // A job that had ended stays as it was.
    is_longer || (later_bytes, later_ms) == (bytes, ms)
}

fn invocation(rows: Vec<Row>, normal: Option<Invocation>) -> Invocation {
    let version = rows.first().map_or_else(String::new, |row| row.version.clone());
    let disks = rows.first().map_or_else(Vec::new, |row| row.figures_of_disks.clone());
    let mut jobs: Vec<Job> = rows.into_iter().map(|row| row.job).collect();
    let Some(normal) = normal else { return Invocation { version, jobs, disks, ..Invocation::default() } };
    for (job, printed) in jobs.iter_mut().zip(normal.jobs) {
        complete(job, printed);
    }
    let version = if version.is_empty() { normal.version } else { version };
    let disks = if disks.is_empty() { normal.disks } else { disks };
    Invocation { version, jobs, disks, ..normal }
}

/// Takes what normal output has more of: counts, options, syncs, the words of an error.
fn complete(job: &mut Job, printed: Job) {
    job.pid = printed.pid;
    job.processes = printed.processes;
    job.options = printed.options;
    job.failure = printed.failure.or(job.failure.take());
    job.errors = printed.errors;
    if printed.counts_from_rate {
        return;
    }
    job.counts_from_rate = false;
    for direction in printed.directions {
        match job.directions.iter_mut().find(|own| own.way == direction.way) {
            Some(own) => {
                own.requests = direction.requests;
                if !printed.bytes_rounded {
                    own.bytes = direction.bytes;
                }
            }
            None => job.directions.push(direction),
        }
    }
    job.reported.extend(printed.reported.into_iter().filter(|figure| figure.name.starts_with("sync ")));
}
