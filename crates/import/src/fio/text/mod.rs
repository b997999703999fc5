//! fio's normal output, of 1.x to 3.x: one or more invocations, with whatever stands around them.

mod block;
mod command;

use std::collections::BTreeMap;
use std::collections::hash_map::{Entry, HashMap};

use self::block::Block;
use self::command::Command;
use super::Invocation;
use super::assemble::{self, LAYER};
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
    head.lines().any(begins_results)
}

/// Whether a line begins what fio says of a job, before it or after.
pub fn begins_results(line: &str) -> bool {
    let is_result =
        line.split_once(": (groupid=").is_some_and(|(_, rest)| rest.contains(", jobs=") && rest.contains("): err="));
    // A table that quotes results has more than one of them in a line.
    (is_result && !line.contains('\t')) || Header::read(line).is_some()
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
    let mut done: Vec<Building> = Vec::new();
    let mut now = Building::default();
    let mut command = Command::default();
    let mut place = TextSection::Elsewhere;
    let mut words_before = 0;
    let mut is_foreign = false;
    // A line of progress is overwritten by what follows it.
    let lines = source.lines().flat_map(|(number, line)| line.split('\r').map(move |line| (number, line)));
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
                    if !line.contains('=') && !is_of_job(line) {
                        notes.unknown(number, line);
                    }
                    // Lines of a job have figures; prose below what was copied of it has none.
                    is_foreign = if line.contains('=') { false } else { is_foreign || !is_of_job(line) };
                }
                TextSection::Group(group) => {
                    let sums = sums(line, group).into_iter();
                    if sums.len() == 0 {
                        notes.unknown(number, line);
                    }
                    now.sums.extend(sums.map(|(group, figure)| (group, of_server(now.server.as_deref(), figure))));
                }
                TextSection::Disks => match disk(line) {
                    Some(figures) => {
                        now.disks.extend(figures.into_iter().map(|figure| of_server(now.server.as_deref(), figure)));
                    }
                    None => {
                        notes.unknown(number, line);
                        place = TextSection::Elsewhere;
                    }
                },
                TextSection::Elsewhere => notes.unknown(number, line),
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

/// What fio says of a job before it begins: `name: (g=0): rw=read, bs=4K-4K/4K-4K/4K-4K, ioengine=libaio, iodepth=32`.
#[derive(Debug)]
struct Header {
    raw_name: String,
    group: u64,
    options: BTreeMap<String, String>,
}

impl Header {
    /// That of a line.
    pub fn read(line: &str) -> Option<Self> {
        let (name, rest) = line.split_once(": (g=")?;
        let (group, rest) = rest.split_once("): rw=")?;
        let (rw, rest) = rest.split_once(", bs=")?;
        let mut options = BTreeMap::from([("rw".to_owned(), rw.trim().to_owned())]);
        let sizes = rest.split(", ioengine=").next().unwrap_or("");
        options.extend(block_sizes(sizes).map(|sizes| ("bs".to_owned(), sizes)));
        for name in ["ioengine", "iodepth"] {
            options.extend(value(rest, name).map(|value| (name.to_owned(), value.to_owned())));
        }
        // A client of `--client` writes the server's name before the job's.
        let name = match name.trim_start().strip_prefix('<').and_then(|rest| rest.split_once("> ")) {
            Some((_, name)) => name,
            None => name,
        };
        Some(Self { raw_name: name.to_owned(), group: group.trim().parse().ok()?, options })
    }
}

/// `(R) 4096B-4096B, (W) 16.0KiB-16.0KiB, (T) 4096B-4096B`, or `4K-4K/4K-4K/4K-4K`, as the option `bs` would have them.
fn block_sizes(text: &str) -> Option<String> {
    let is_old = text.contains('/');
    let ranges: Vec<&str> = if is_old { text.split('/').collect() } else { text.split(',').collect() };
    let size = |text: &str| -> Option<u64> {
        let text = text.trim();
        if text.chars().all(|c| c.is_ascii_digit()) {
            return text.parse().ok();
        }
        // Up to 2.x, `4K` is of 1024.
        let (number, _, scale) = bytes(text, is_old || !text.contains('B'))?;
        crate::draft::whole(number * scale)
    };
    let sizes = ranges.iter().map(|range| {
        let range = range.trim().trim_start_matches(['(', 'R', 'W', 'T', ')', ' ']);
        let (least, most) = range.split_once('-')?;
        let (least, most) = (size(least)?, size(most)?);
        Some(if least == most { least.to_string() } else { format!("{least}-{most}") })
    });
    Some(sizes.collect::<Option<Vec<String>>>()?.join(","))
}

/// What jobs were asked to do alike, by their group, and by group and name.
#[derive(Debug, Default)]
struct JobOptions {
    of_groups: HashMap<u64, BTreeMap<String, String>>,
    of_names: HashMap<(u64, String), BTreeMap<String, String>>,
}

impl JobOptions {
    /// Of what fio said before it began; a log puts `words_before` words before each line.
    pub fn new(headers: Vec<Header>, words_before: usize) -> Self {
        let mut asked = Self::default();
        for Header { raw_name, group, options } in headers {
            let name = without_words(&raw_name, words_before).trim().to_owned();
            keep_common(asked.of_names.entry((group, name)), options.clone());
            keep_common(asked.of_groups.entry(group), options);
        }
        asked
    }

    /// What all jobs that may be in a block were asked to do alike: those of its name, or of its group if it sums up several.
    pub fn of(&self, block: &Block, words_before: usize) -> Option<BTreeMap<String, String>> {
        let (group, _) = block.identity();
        let common = if block.processes() > 1 {
            self.of_groups.get(&group)
        } else {
            self.of_names.get(&(group, block.name(words_before).trim().to_owned()))
        };
        // A depth that differs is not the default.
        common.filter(|options| options.contains_key("iodepth")).cloned()
    }
}

fn keep_common<K>(entry: Entry<'_, K, BTreeMap<String, String>>, options: BTreeMap<String, String>) {
    match entry {
        Entry::Vacant(vacant) => drop(vacant.insert(options)),
        Entry::Occupied(mut occupied) => occupied.get_mut().retain(|name, value| options.get(name) == Some(value)),
    }
}

/// What stands before a word of a line and what follows it; the word begins where no letter or digit stands before it.
fn around<'a>(line: &'a str, word: &str) -> Option<(&'a str, &'a str)> {
    line.match_indices(word).find_map(|(at, _)| {
        let before = line.get(..at)?;
        let is_word = !before.chars().next_back().is_some_and(char::is_alphanumeric);
        is_word.then(|| Some((before, line.get(at + word.len()..)?))).flatten()
    })
}

/// What follows a word of a line.
fn after<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    around(line, word).map(|(_, after)| after)
}

/// The value of `name=value` in a line, up to a comma or blank; blanks after `=` are for alignment.
fn value<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let rest = after(line, name)?.strip_prefix('=')?.trim_start();
    let end = rest.find([',', ' ', '\t', ')', ';']).unwrap_or(rest.len());
    rest.get(..end)
}

/// The number of `name=12.3k` in a line.
fn figure(line: &str, name: &str) -> Option<f64> {
    numbers::scaled(value(line, name)?.trim_end_matches('%'))
}

/// The name of a job, whose line begins with `words` words of a log.
fn without_words(text: &str, words: usize) -> &str {
    let mut rest = text.trim_start();
    for _ in 0..words {
        match rest.find(char::is_whitespace) {
            Some(at) => rest = rest.get(at..).unwrap_or("").trim_start(),
            None => return rest,
        }
    }
    rest
}

/// A number with a unit of bytes: `1969MiB`, `119MB`, `557417B`, or of bits, as rates have it with `unit_base=1`: `15.4Mibit`;
/// the unit by which fio names it now, and how many bytes one is. Up to 2.17 fio wrote `KB` for what it calls `KiB` now.
fn bytes(text: &str, is_old: bool) -> Option<(f64, String, f64)> {
    let text = text.trim();
    let at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (digits, unit) = text.split_at(at);
    let number = numbers::number(digits)?;
    let unit = unit.trim().trim_end_matches("/s");
    let (prefix, name, bytes) = match unit.strip_suffix("bit") {
        Some(prefix) => (prefix, "bit", 1.0 / 8.0),
        None => (unit.trim_end_matches(['B', 'b']), "B", 1.0),
    };
    let letter = prefix.chars().next().map(|c| c.to_ascii_uppercase());
    let power = letter.map_or(Some(0), |letter| "KMGTP".find(letter).map(|power| power + 1))?;
    let is_iec = prefix.contains('i') || (is_old && !prefix.starts_with('k'));
    let scale = if is_iec { 1_024_f64 } else { 1_000.0 }.powi(power as i32) * bytes;
    let name = match letter {
        None => name.to_owned(),
        Some(letter) if is_iec => format!("{letter}i{name}"),
        Some('K') => format!("k{name}"),
        Some(letter) => format!("{letter}{name}"),
    };
    Some((number, name, scale))
}

/// A unit of time as fio's normal output names it, in nanoseconds, and its short name.
fn time_unit(text: &str) -> Option<(f64, &'static str)> {
    match text.trim() {
        "nsec" => Some((1.0, "ns")),
        "usec" => Some((1e3, "us")),
        "msec" => Some((1e6, "ms")),
        "sec" => Some((1e9, "s")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_requests_are_bytes_in_every_age() {
        let read = |text: &str| block_sizes(text).unwrap();
        assert_eq!(read("4K-4K/8K-8K/4K-64K"), "4096,8192,4096-65536");
        assert_eq!(read("(R) 512B-512B, (W) 16.0KiB-16.0KiB, (T) 1024KiB-1024KiB"), "512,16384,1048576");
        assert_eq!(read("512-512/512-512"), "512,512");
        assert_eq!(block_sizes("(R) x"), None);
    }

    #[test]
    fn jobs_of_a_name_share_what_they_were_asked_alike() {
        let header =
            |depth| Header::read(&format!("log: a b: (g=1): rw=read, bs=4K-4K/4K-4K, ioengine=sync, iodepth={depth}"));
        let of = |headers: Vec<Option<Header>>| {
            let block = Block::begin("log: a b: (groupid=1, jobs=1): err= 0: pid=1", 1).unwrap();
            JobOptions::new(headers.into_iter().flatten().collect(), 1).of(&block, 1)
        };
        assert_eq!(of(vec![header(4), header(4)]).unwrap()["iodepth"], "4");
        assert_eq!(of(vec![header(4), header(8)]), None, "depths that differ are not known");
        assert_eq!(of(vec![]), None);
    }

    #[test]
    fn words_are_found_behind_whatever_stands_before() {
        assert_eq!(after("vm1 |   clat (usec): min=1", "clat ("), Some("usec): min=1"));
        assert_eq!(after("  clat (usec): min=1", "lat ("), None);
        assert_eq!(value("min=   17, max=1474.2K, avg=7", "max"), Some("1474.2K"));
        assert_eq!(figure("min=   17, max=1474.2K, avg=7", "min"), Some(17.0));
        assert_eq!(without_words("2026-01-01T00:00:00Z  my job", 1), "my job");
    }

    #[test]
    fn units_of_bytes_have_changed() {
        let read = |text, is_old| bytes(text, is_old).map(|(number, unit, scale)| (number * scale, unit));
        assert_eq!(read("2KB", true), Some((2_048.0, "KiB".to_owned())));
        assert_eq!(read("2kB", false), Some((2_000.0, "kB".to_owned())));
        assert_eq!(read("1.5MiB/s", false), Some((1_572_864.0, "MiB".to_owned())));
        assert_eq!(read("7B/s", true), Some((7.0, "B".to_owned())));
        assert_eq!(read("x", true), None);
        assert_eq!(read("8.0Mibit/s", false), Some((1_048_576.0, "Mibit".to_owned())), "unit_base=1");
        assert_eq!(read("8.0kbit/s", false), Some((1_000.0, "kbit".to_owned())));
        assert_eq!(read("16bit/s", false), Some((2.0, "bit".to_owned())));
    }
}
