//! fio's normal output, of 1.x to 3.x: one or more invocations, with whatever stands around them.

mod block;
mod command;
mod header;
mod line;

use std::collections::BTreeMap;

pub use self::line::without_colours;

use self::block::Block;
use self::command::Command;
use self::header::{Header, JobOptions};
use self::line::{after, bytes, value};
use super::assemble::{self, LAYER};
use super::job::Invocation;
use super::options::Options;
use crate::draft::{Began, reported_figure};
use crate::{Draft, ImportError, Notes, Source, numbers};
use model::record::ReportedFigure;

/// Whether this is normal output: the line that begins a job's results, or those that say what will be done. Files that hold
/// another form too are read in that.
pub fn recognises(head: &str) -> bool {
    if super::json::recognises(head) || super::terse::recognises(head) {
        return false;
    }
    let begins_results = |line: &str| {
        line.split_once(": (groupid=").is_some_and(|(_, rest)| rest.contains(", jobs=") && rest.contains("): err="))
            // A table that quotes results has more than one of them in a line.
            && !line.contains('\t')
    };
    head.lines().any(|line| begins_results(line) || Header::read(line).is_some())
}

/// The runs in it.
pub fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let invocations = invocations(source, notes)?;
    if invocations.is_empty() {
        return Err(ImportError::no_result(source, "fio says what it will do, and no result follows"));
    }
    Ok(invocations.into_iter().map(assemble::draft).collect())
}

/// What fio says as a signal ends it.
pub fn signal_text(line: &str) -> Option<String> {
    // A terminal shows `^C` before it.
    let (_, rest) = line.split_once("fio: terminating on signal")?;
    Some(format!("fio: terminating on signal {}", rest.trim()).trim_end().to_owned())
}

/// The code and words of an error, as they are printed where it happens: `fio: pid=7, err=5/file:io_u.c:1, func=x, error=y`.
pub fn failure_text(line: &str) -> Option<(i64, String)> {
    let (_, rest) = line.split_once("fio: pid=")?;
    let (_, rest) = rest.split_once("err=")?;
    let (code, what) = rest.split_once('/')?;
    Some((code.trim().parse().ok()?, what.trim().to_owned()))
}

/// The name of the job whose results begin at a line.
pub fn job_name_of(line: &str) -> Option<String> {
    Block::begin(line, 0).map(|block| block.name(0).trim().to_owned())
}

/// An invocation, as its lines come.
#[derive(Debug, Default)]
struct Building {
    line: u64,
    version: String,
    headers: Vec<Header>,
    started: Option<u64>,
    blocks: Vec<Block>,
    sums: Vec<(u64, ReportedFigure)>,
    disks: Vec<ReportedFigure>,
    signal: Option<String>,
    command: Vec<String>,
    options: Option<BTreeMap<String, String>>,
    /// Earlier reports of the same jobs.
    left_out: usize,
    /// Whether all jobs of a report were reported: what follows is another report, or another invocation.
    is_reported: bool,
    /// Servers that work for this client, each of which reports its own jobs.
    servers: u32,
    /// Reports that were read.
    reports: u32,
    /// The server that is reporting.
    server: Option<String>,
}

/// With several servers fio adds a sum of all of them under this name.
const ALL_CLIENTS: &str = "All clients";

/// What the lines below are about.
#[derive(Debug, Clone, Copy, PartialEq)]
enum TextSection {
    Elsewhere,
    Job,
    Group(u64),
    Disks,
}

/// The invocations that have results.
pub fn invocations(source: &Source, notes: &mut Notes) -> Result<Vec<Invocation>, ImportError> {
    let text = without_colours(source.text());
    let mut done: Vec<Building> = Vec::new();
    let mut now = Building::default();
    let mut command = Command::default();
    let mut place = TextSection::Elsewhere;
    let mut words_before = 0;
    let mut is_foreign = false;
    // A line of progress is overwritten by what follows it.
    let lines = text.lines().zip(1..).flat_map(|(line, number)| line.split('\r').map(move |line| (number, line)));
    for (number, line) in lines {
        if let Some(header) = Header::read(line) {
            if !now.blocks.is_empty() {
                done.push(std::mem::take(&mut now));
            }
            if now.headers.is_empty() {
                now.line = number;
                (now.command, now.options) = command.finish();
            }
            now.headers.push(header);
            place = TextSection::Elsewhere;
        } else if let Some(mut block) = Block::begin(line, number) {
            place = TextSection::Job;
            is_foreign = false;
            if now.is_reported && block.name(words_before).trim() != ALL_CLIENTS {
                now.reports += 1;
                let is_again = now.blocks.iter().any(|known| known.identity() == block.identity());
                // Otherwise the next server reports, whose processes may have the same numbers.
                let have_all_reported = now.reports.is_multiple_of(now.servers.max(1));
                if have_all_reported && is_again {
                    // The same jobs again: a later report of their sums.
                    (now.blocks, now.sums, now.disks) = (Vec::new(), Vec::new(), Vec::new());
                    now.left_out += 1;
                } else if have_all_reported {
                    done.push(std::mem::take(&mut now));
                }
                now.is_reported = false;
            }
            if now.line == 0 {
                now.line = number;
            }
            block.server.clone_from(&now.server);
            now.blocks.push(block);
        } else if let Some((_, rest)) = line.split_once("Run status group ") {
            now.is_reported = true;
            place =
                TextSection::Group(rest.split_whitespace().next().and_then(|group| group.parse().ok()).unwrap_or(0));
        } else if line.contains("Disk stats (read/write):") {
            place = TextSection::Disks;
        } else if let Some(signal) = signal_text(line) {
            now.signal = Some(signal);
        } else if let Some(version) = version_of(line).or_else(|| now.bare_version(line)) {
            if !now.blocks.is_empty() {
                done.push(std::mem::take(&mut now));
            }
            now.version = version.to_owned();
        } else if let Some(version) = value(line, "fio").and_then(|version| version.strip_prefix("fio-")) {
            // What a client says of each server.
            if !now.blocks.is_empty() {
                done.push(std::mem::take(&mut now));
            }
            version.clone_into(&mut now.version);
            now.servers += 1;
        } else if let Some(rest) = after(line, "Starting ")
            && (rest.contains("process") || rest.contains("thread"))
        {
            let sum = rest.split_whitespace().filter_map(numbers::whole_number).fold(0, u64::saturating_add);
            now.started = Some(sum).filter(|sum| *sum > 0);
        } else {
            match place {
                TextSection::Job => {
                    let Some(block) = now.blocks.last_mut() else { continue };
                    if let Err(what) = block.take(line) {
                        notes.not_understood(number, what);
                    }
                    words_before = block.words_before.unwrap_or(words_before);
                    // Lines of a job have figures; prose below what was copied of it has none.
                    is_foreign = if line.contains('=') { false } else { is_foreign || !is_of_job(line) };
                }
                TextSection::Group(group) => {
                    let sums = sums(line, group).into_iter();
                    now.sums.extend(sums.map(|(group, figure)| (group, of_server(now.server.as_deref(), figure))));
                }
                TextSection::Disks => match disk(line) {
                    Some(figures) => {
                        now.disks.extend(figures.into_iter().map(|figure| of_server(now.server.as_deref(), figure)));
                    }
                    None => place = TextSection::Elsewhere,
                },
                TextSection::Elsewhere => {}
            }
            if now.servers > 1
                && let Some((_, server)) = line.trim_end().strip_suffix('>').and_then(|line| line.rsplit_once('<'))
            {
                now.server = Some(server.to_owned());
            }
            command.take(line);
        }
    }
    let last_is_open = place == TextSection::Job && !is_foreign;
    done.push(now);
    finish(source, done, words_before, last_is_open, notes)
}

/// A figure that a server reported on itself, where there are several.
fn of_server(server: Option<&str>, figure: ReportedFigure) -> ReportedFigure {
    match server {
        Some(server) => ReportedFigure { name: format!("{server} {}", figure.name), ..figure }.of(server),
        None => figure,
    }
}

/// Whether a line without figures may stand among those of a job, of which it may be the beginning.
fn is_of_job(line: &str) -> bool {
    let is_indented = line.starts_with([' ', '\t']) || line.trim().is_empty();
    is_indented || line.contains('|') || line.contains("percentiles (") || line.contains("fsync/")
}

fn finish(
    source: &Source,
    done: Vec<Building>,
    words_before: usize,
    last_is_open: bool,
    notes: &mut Notes,
) -> Result<Vec<Invocation>, ImportError> {
    let count = done.len();
    let mut invocations = Vec::new();
    for (at, building) in done.into_iter().enumerate() {
        let is_open = at + 1 == count && last_is_open;
        if building.blocks.is_empty() {
            if !building.headers.is_empty() && !invocations.is_empty() {
                notes.not_understood(building.line, "fio says what it will do, and no result follows");
            }
            continue;
        }
        let with_results = building.blocks.iter().fold(0_u64, |sum, block| sum.saturating_add(block.processes()));
        let is_short = building.started.is_some_and(|started| with_results < started) && !building.is_reported;
        for block in &building.blocks {
            let is_last = building.blocks.last().is_some_and(|last| std::ptr::eq(last, block));
            let name = block.name(words_before).trim();
            if is_open && is_last && !block.is_counted {
                return Err(ImportError::damaged(
                    source,
                    block.line,
                    format!("the file ends amid the results of `{name}`"),
                ));
            }
            if !block.is_counted {
                notes.not_understood(
                    block.line,
                    format!("job `{name}`, of which the number of requests is not reported"),
                );
            }
        }
        if is_short {
            let started = building.started.unwrap_or(0);
            let what = format!("fio started {started} processes, and results of {with_results} are here");
            if is_open {
                return Err(ImportError::damaged(source, building.line, what));
            }
            notes.not_understood(building.line, what);
        }
        let invocation = building.finish(words_before);
        if !invocation.jobs.is_empty() {
            invocations.push(invocation);
        }
    }
    Ok(invocations)
}

impl Building {
    /// The version as fio before 2.1 prints it below what it will do: `2.0.8` or `fio 1.59`.
    fn bare_version<'a>(&self, line: &'a str) -> Option<&'a str> {
        if self.headers.is_empty() || !self.version.is_empty() || !self.blocks.is_empty() {
            return None;
        }
        let version = line.trim().trim_start_matches("fio").trim_start();
        let is_version = version.contains('.') && version.chars().all(|c| c.is_ascii_digit() || c == '.');
        is_version.then_some(version)
    }

    fn finish(self, words_before: usize) -> Invocation {
        let printed = self.blocks.iter().filter_map(|block| block.printed).max();
        let ran_ms = self.ran_ms();
        let ended = printed.and_then(Began::wall);
        let began = printed.zip(ran_ms).and_then(|(printed, ms)| {
            let span = jiff::Span::new().try_milliseconds(ms as i64).ok()?;
            Began::wall(printed.checked_sub(span).ok()?)
        });
        let globals = self.options.clone().unwrap_or_default();
        let mut several = BTreeMap::<u64, u32>::new();
        for block in self.blocks.iter().filter(|block| block.name(words_before).trim() != ALL_CLIENTS) {
            *several.entry(block.identity().0).or_default() += 1;
        }
        let mut sums: Vec<ReportedFigure> = Vec::new();
        let of_groups = self.sums.into_iter().filter(|(group, _)| several.get(group).is_some_and(|jobs| *jobs > 1));
        let mut jobs = Vec::with_capacity(self.blocks.len());
        let asked = JobOptions::new(self.headers, words_before);
        for block in self.blocks {
            let options = asked.of(&block, words_before);
            let none = BTreeMap::new();
            let own = options.as_ref().unwrap_or(&none);
            let blocks = Options { own, globals: &globals, are_all: self.options.is_some() }.blocks();
            let mut job = block.finish(words_before, blocks);
            if job.name == ALL_CLIENTS {
                let named = |figure: ReportedFigure| {
                    ReportedFigure { name: format!("{ALL_CLIENTS} {}", figure.name), ..figure }.of(ALL_CLIENTS)
                };
                sums.extend(job.reported.into_iter().map(named));
                continue;
            }
            job.options = options;
            jobs.push(job);
        }
        let mut notes = Vec::new();
        if began.is_some() {
            notes.push(
                "fio's normal output says when it was printed, at the end; the beginning is that, less the time that jobs ran."
                    .to_owned(),
            );
        }
        notes.extend(super::of_earlier_reports(self.left_out));
        Invocation {
            version: self.version,
            command: self.command,
            has_all_options: self.options.is_some(),
            globals,
            jobs,
            began,
            ended: ended.map(Began::timestamp),
            disks: self.disks,
            sums: of_groups.map(|(_, figure)| figure).chain(sums).collect(),
            signal: self.signal,
            notes,
        }
    }

    /// How long groups ran one after another.
    fn ran_ms(&self) -> Option<f64> {
        let mut longest = BTreeMap::<u64, f64>::new();
        for block in &self.blocks {
            let ms = longest.entry(block.identity().0).or_default();
            *ms = ms.max(block.runtime_ms().unwrap_or(0.0));
        }
        Some(longest.values().sum()).filter(|ms| *ms > 0.0 && *ms < 1e15)
    }
}

/// The version on a line of its own, after whatever a log puts before it.
fn version_of(line: &str) -> Option<&str> {
    let word = line.split_whitespace().next_back()?;
    let version = word.strip_prefix("fio-")?;
    let is_version = version.starts_with(|c: char| c.is_ascii_digit()) && version.contains('.');
    (is_version && line.split_whitespace().count() <= 6 && !line.contains(';')).then_some(version)
}

/// `READ: bw=40.5MiB/s (42.4MB/s), ...` or `READ: io=32708KB, aggrb=544KB/s, ...`: what a group did together.
fn sums(line: &str, group: u64) -> Vec<(u64, ReportedFigure)> {
    let Some(way) = ["READ", "WRITE", "TRIM", "MIXED"].into_iter().find(|way| after(line, way).is_some()) else {
        return Vec::new();
    };
    let is_old = value(line, "aggrb").is_some();
    let figures = ["bw", "aggrb"].into_iter().filter_map(|name| {
        let (rate, unit, _) = bytes(value(line, name)?, is_old)?;
        Some((
            group,
            reported_figure(LAYER, format!("Run status group {group} {way} {name}"), &format!("{unit}/s"), rate),
        ))
    });
    figures.collect()
}

/// `sda: ios=0/7593, merge=0/53, ticks=0/39522, in_queue=39559, util=97.10%`, by the names that JSON has.
fn disk(line: &str) -> Option<Vec<ReportedFigure>> {
    let (name, rest) = line.split_once(": ios=")?;
    let name = name.split_whitespace().next_back()?;
    let rest = format!("ios={rest}");
    let mut figures = Vec::new();
    for (key, value) in rest.split(',').filter_map(|pair| pair.trim().split_once('=')) {
        let (before, key) = key.strip_prefix("aggr").map_or(("", key), |key| ("aggr_", key));
        let key = if key == "merge" { "merges" } else { key };
        let unit = match key {
            "ticks" | "in_queue" => "ms",
            "util" => "%",
            _ => "",
        };
        let mut push = |name: String, value: &str| {
            figures.extend(
                numbers::number(value.trim_end_matches('%')).map(|value| reported_figure("device", name, unit, value)),
            );
        };
        match value.split_once('/') {
            Some((read, write)) => {
                push(format!("{name} {before}read_{key}"), read);
                push(format!("{name} {before}write_{key}"), write);
            }
            None => push(format!("{name} {before}{key}"), value),
        }
    }
    Some(figures)
}
