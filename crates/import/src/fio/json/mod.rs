//! `fio --output-format=json` and `json+`, 2.1 to 3.42: one or more documents, with whatever stands around them.

mod figures;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::options::Options;
use super::text::{failure_text, job_name_of, signal_text};
use super::{Invocation, Job, assemble};
use crate::{Began, Draft, ImportError, Notes, Source};
use model::record::{ReportedFigure, Timestamp};

/// The first key of a document. fio writes its version first; a program that sorts keys writes one of the others.
const FIRST_KEYS: [&str; 8] = [
    "\"fio version\"",
    "\"client_stats\"",
    "\"disk_util\"",
    "\"global options\"",
    "\"jobs\"",
    "\"time\"",
    "\"timestamp\"",
    "\"timestamp_ms\"",
];

/// Seconds by which the beginnings of two reports of one invocation may seem to differ: each is the whole second at which it was
/// printed, less the whole seconds that had passed.
const SAME_BEGINNING_S: f64 = 2.0;

/// Whether this is a document of fio: the version, as only fio writes it, and a place for results or options.
pub fn recognises(head: &str) -> bool {
    let Some((before, after)) = head.split_once("\"fio version\"") else { return false };
    let value = after.trim_start().strip_prefix(':').map(str::trim_start);
    let is_version = value.is_some_and(|value| value.starts_with("\"fio-"));
    is_version && before.contains('{')
}

/// The runs in it. Of one invocation that reported its status again and again the last report counts.
pub fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let text = source.text();
    let nothing = || ImportError::no_result(source, "it names fio's version and holds no result");
    let found = find(source, text).and_then(|found| if found.is_empty() { Err(nothing()) } else { Ok(found) });
    let documents = match found {
        Ok(documents) => documents,
        Err(error) => match without_prefixes(text).map(|plain| find(source, &plain)) {
            Some(Ok(documents)) if !documents.is_empty() => documents,
            _ => return Err(error),
        },
    };
    let mut kept: Vec<Document> = Vec::new();
    let named: HashSet<&str> =
        documents.iter().flat_map(|document| &document.jobs).map(|job| job.name.as_str()).collect();
    for (line, name) in documents.iter().flat_map(|document| &document.other_jobs) {
        if !named.contains(name.as_str()) {
            notes.not_understood(*line, format!("normal output of job `{name}`, which no document here has"));
        }
    }
    for document in documents {
        for what in &document.not_understood {
            notes.not_understood(document.line, what.clone());
        }
        match kept.last_mut() {
            Some(before) if is_same_invocation(before, &document) => {
                let left_out = before.left_out + 1;
                *before = Document { left_out, ..document };
            }
            _ => kept.push(document),
        }
    }
    kept.into_iter().map(|document| Ok(assemble::draft(invocation(source, document)?))).collect()
}

/// The documents, with what stands before each.
fn find(source: &Source, text: &str) -> Result<Vec<Document>, ImportError> {
    let mut documents: Vec<Document> = Vec::new();
    let (mut at, mut before, mut line) = (0, 0, 1);
    // What begins as a document may be another program's, and hold others that begin so: reading ends where it would no longer
    // take a time in proportion to the text.
    let mut vain_bytes = text.len().saturating_mul(4);
    while let Some(offset) = text.get(at..).and_then(|rest| rest.find('{')) {
        let start = at + offset;
        let rest = text.get(start..).unwrap_or("");
        let key = rest.get(1..).unwrap_or("").trim_start();
        if !FIRST_KEYS.iter().any(|first| key.starts_with(first)) {
            at = start + 1;
            continue;
        }
        let parsed = parse_document(rest);
        let is_surely = key.starts_with(FIRST_KEYS[0]);
        let around = text.get(before..start).unwrap_or("");
        let vain = match parsed {
            Ok((mut document, length)) if document.is_of_fio() => {
                let first_line = line;
                line += lines_in(around);
                document.line = line;
                documents.push(document.after(around, first_line));
                line += lines_in(rest.get(..length).unwrap_or(""));
                at = start + length.max(1);
                before = at;
                continue;
            }
            Ok((_, length)) => length,
            Err(problem) if is_surely => {
                let line = line + lines_in(around) + problem.line.saturating_sub(1);
                return Err(ImportError::damaged(source, line, problem.what));
            }
            // How far it came is not reported in bytes; what is of fio ends well before this.
            Err(problem) => rest.lines().take(problem.line as usize).map(str::len).sum(),
        };
        match vain_bytes.checked_sub(vain) {
            Some(left) => vain_bytes = left,
            None => break,
        }
        at = start + 1;
    }
    if let Some(last) = documents.last_mut() {
        last.is_followed_by(text.get(before..).unwrap_or(""), line);
    }
    Ok(documents)
}

fn lines_in(text: &str) -> u64 {
    text.matches('\n').count() as u64
}

/// Lines without what a log put before each of them: as many words as stand before the first brace.
fn without_prefixes(text: &str) -> Option<String> {
    let first = text.lines().find(|line| line.trim_end().ends_with('{') && line.trim() != "{")?;
    let words = first.split_whitespace().count().checked_sub(1).filter(|words| (1..=8).contains(words))?;
    let mut plain = String::with_capacity(text.len());
    for line in text.lines() {
        let mut rest = line.trim_start();
        for _ in 0..words {
            rest = rest.find(char::is_whitespace).map_or("", |at| rest.get(at..).unwrap_or("").trim_start());
        }
        plain.push_str(rest);
        plain.push('\n');
    }
    Some(plain)
}

/// Whether two documents that follow each other are reports of one invocation: the same jobs of the same beginning. fio 2.1
/// reports no time; its documents are taken for invocations of their own.
fn is_same_invocation(before: &Document, after: &Document) -> bool {
    let names = |document: &Document| -> Vec<(String, u64, Option<String>)> {
        document.jobs.iter().map(|job| (job.name.clone(), job.group, job.host.clone())).collect()
    };
    let began = |document: &Document| Some(document.ended_ms()? / 1e3 - elapsed_s(&document.jobs)?);
    let same_beginning = began(before)
        .zip(began(after))
        .is_some_and(|(one, other)| (one - other).abs() <= SAME_BEGINNING_S && before.ended_ms() <= after.ended_ms());
    same_beginning
        && before.version == after.version
        && names(before) == names(after)
        && (ramps(after) || before.jobs.iter().zip(&after.jobs).all(|(one, other)| went_on(one, other)))
}

/// Whether a job had a ramp, at whose end fio forgets what it had counted and reported.
fn ramps(document: &Document) -> bool {
    let of_jobs = document.jobs.iter().filter_map(|job| job.options.as_ref());
    std::iter::once(&document.globals).chain(of_jobs).any(|options| options.contains_key("ramp_time"))
}

/// Whether a job may be the other one later on: none of its sums is less, and the extremes of its latency are none the nearer.
/// Invocations of a second or two that follow each other can be distinguished by that alone.
fn went_on(one: &Job, other: &Job) -> bool {
    one.start_ms == other.start_ms
        && one.directions.iter().all(|earlier| {
            let Some(later) = other.direction(earlier.way) else { return false };
            let [short, long] = [earlier, later].map(|direction| direction.latency.clone().unwrap_or_default());
            later.bytes >= earlier.bytes
                && later.requests >= earlier.requests
                && long.max_ns >= short.max_ns
                && short.min_ns.zip(long.min_ns).is_none_or(|(short, long)| long <= short)
        })
}

fn elapsed_s(jobs: &[Job]) -> Option<f64> {
    jobs.iter().filter_map(|job| job.elapsed_s).max_by(f64::total_cmp)
}

fn invocation(source: &Source, document: Document) -> Result<Invocation, ImportError> {
    if document.jobs.is_empty() {
        return Err(ImportError::damaged(source, document.line, "the document of fio holds no job"));
    }
    let ended_ms = document.ended_ms();
    let start_ms = document.jobs.iter().filter_map(|job| job.start_ms).min_by(f64::total_cmp);
    let began_ms = start_ms.or_else(|| Some(ended_ms? - elapsed_s(&document.jobs)? * 1e3));
    let instant = |ms: f64| jiff::Timestamp::from_millisecond(ms as i64).ok().map(Timestamp);
    let has_all_options = document.jobs.iter().any(|job| job.options.is_some());
    let mut jobs = document.jobs;
    number_processes(&mut jobs, &document.globals);
    for job in &mut jobs {
        if let Some(said) = job.error.and_then(|code| document.failures.get(&code)) {
            job.failure = job.failure.take().map(|failure| format!("{failure}: {said}"));
        }
    }
    let mut notes: Vec<String> = super::of_earlier_reports(document.left_out).into_iter().collect();
    if start_ms.is_none() && began_ms.is_some() {
        notes.push(
            "fio says when it printed its results and for how many whole seconds it had run; it began up to a second later."
                .to_owned(),
        );
    }
    Ok(Invocation {
        notes,
        version: document.version.trim_start_matches("fio-").to_owned(),
        globals: document.globals,
        jobs,
        began: began_ms.and_then(instant).map(Began::Utc),
        ended: ended_ms.and_then(instant),
        disks: document.disks,
        sums: document.sums,
        signal: document.signal,
        has_all_options,
        ..Invocation::default()
    })
}

/// Of how many processes each job is. Options that were set without a value, as most people set `group_reporting`, are not
/// printed; but with it a group has one place in the list of jobs, and without it every clone of `numjobs` has its own.
fn number_processes(jobs: &mut [Job], globals: &BTreeMap<String, String>) {
    let mut places = HashMap::<(Option<String>, u64), u32>::new();
    for job in jobs.iter() {
        *places.entry((job.host.clone(), job.group)).or_default() += 1;
    }
    for job in jobs {
        let Some(own) = &job.options else { continue };
        let is_alone = places.get(&(job.host.clone(), job.group)) == Some(&1);
        job.processes = if is_alone { Options { own, globals, are_all: true }.processes() } else { Some(1) };
    }
}

impl Document {
    /// With what the text before it, which begins at `first_line`, says of it.
    fn after(mut self, before: &str, first_line: u64) -> Self {
        self.heed_lines(before, first_line);
        self
    }

    /// Heeds what stands after the last one.
    fn is_followed_by(&mut self, after: &str, first_line: u64) {
        self.heed_lines(after, first_line);
    }

    fn heed_lines(&mut self, lines: &str, first_line: u64) {
        for (line, number) in lines.lines().zip(first_line..) {
            self.heed(line);
            self.other_jobs.extend(job_name_of(line).map(|name| (number, name)));
        }
    }

    fn heed(&mut self, line: &str) {
        if let Some(signal) = signal_text(line) {
            self.signal = Some(signal);
        }
        if let Some((code, failure)) = failure_text(line) {
            self.failures.entry(code).or_insert(failure);
        }
    }
}

// One document, job by job, so that a large one takes little more memory than its text.

/// A document of fio.
#[derive(Debug, Default)]
pub struct Document {
    /// The line at which it begins.
    pub line: u64,
    /// `fio-3.36`.
    pub version: String,
    /// Options of all jobs.
    pub globals: BTreeMap<String, String>,
    /// Its jobs, or those of all its clients.
    pub jobs: Vec<Job>,
    /// What it reports on disks.
    pub disks: Vec<ReportedFigure>,
    /// What it reports on all clients together.
    pub sums: Vec<ReportedFigure>,
    /// What stands there and could not be understood.
    pub not_understood: Vec<String>,
    /// Jobs whose normal output stands before it, with their lines.
    pub other_jobs: Vec<(u64, String)>,
    /// What was said as a signal ended it.
    pub signal: Option<String>,
    /// What was printed before it of errors, by their codes.
    pub failures: BTreeMap<i64, String>,
    /// How many earlier reports of the same jobs there were.
    pub left_out: usize,
    /// When it was printed, in seconds since 1970.
    pub timestamp_s: Option<f64>,
    /// The same in milliseconds, from 2.16 on.
    pub timestamp_ms: Option<f64>,
}

impl Document {
    /// Whether it is one of fio.
    pub fn is_of_fio(&self) -> bool {
        self.version.starts_with("fio-")
    }

    /// When it was printed, in milliseconds since 1970.
    pub fn ended_ms(&self) -> Option<f64> {
        self.timestamp_ms.or(self.timestamp_s.map(|seconds| seconds * 1e3)).filter(|ms| *ms > 0.0)
    }
}

/// Why a document could not be read.
struct Problem {
    /// Its line, from 1 at the beginning of the document.
    pub line: u64,
    /// What is wrong.
    pub what: String,
}

/// The document at the beginning of `text`, and how long it is.
fn parse_document(text: &str) -> Result<(Document, usize), Problem> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Document>();
    let problem = match stream.next() {
        Some(Ok(document)) => return Ok((document, stream.byte_offset())),
        Some(Err(error)) => error,
        None => return Err(Problem { line: 1, what: "a document of fio was expected".to_owned() }),
    };
    // Numbers that are none are printed as C prints them, which JSON does not know.
    if let Some(plain) = with_nulls_for_nan(text) {
        let mut stream = serde_json::Deserializer::from_str(&plain).into_iter::<Document>();
        if let Some(Ok(document)) = stream.next() {
            return Ok((document, stream.byte_offset()));
        }
    }
    let what = if problem.is_eof() {
        "the file ends in the middle of a document of fio".to_owned()
    } else {
        format!("the document of fio cannot be read: {problem}")
    };
    Err(Problem { line: problem.line() as u64, what })
}

/// `nan`, `-nan`, `inf` and `-inf` where values stand become `null`, as long as before.
pub(crate) fn with_nulls_for_nan(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    let mut found = false;
    while let Some(at) = rest.find(':') {
        let (before, after) = rest.split_at(at + 1);
        plain.push_str(before);
        let value = after.trim_start_matches([' ', '\t']);
        let word = ["-nan", "nan", "-inf", "inf"].into_iter().find(|word| value.starts_with(word));
        match word {
            // The colon and blanks that fio writes leave room for a fourth letter.
            Some(word) if after.len() - value.len() + word.len() >= 4 => {
                found = true;
                let length = after.len() - value.len() + word.len();
                plain.push_str(&format!("{:>length$}", "null"));
                rest = value.get(word.len()..).unwrap_or("");
            }
            _ => rest = after,
        }
    }
    plain.push_str(rest);
    found.then_some(plain)
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(DocumentVisitor)
    }
}

struct DocumentVisitor;

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = Document;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a document of fio")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document, A::Error> {
        let mut document = Document::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "fio version" => document.version = figures::text(&map.next_value()?).unwrap_or_default(),
                "timestamp" => document.timestamp_s = figures::number(&map.next_value()?),
                "timestamp_ms" => document.timestamp_ms = figures::number(&map.next_value()?),
                "global options" => document.globals = figures::options(&map.next_value()?),
                "jobs" | "client_stats" => {
                    let Jobs { jobs, sums, not_understood } = map.next_value()?;
                    document.jobs.extend(jobs);
                    document.sums.extend(sums);
                    document.not_understood.extend(not_understood);
                }
                "disk_util" => document.disks = figures::disks(&map.next_value()?),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(document)
    }
}

/// Jobs, each made of its own part of the document before the next is read.
#[derive(Default)]
struct Jobs {
    jobs: Vec<Job>,
    sums: Vec<ReportedFigure>,
    not_understood: Vec<String>,
}

impl<'de> Deserialize<'de> for Jobs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(JobsVisitor)
    }
}

struct JobsVisitor;

impl<'de> Visitor<'de> for JobsVisitor {
    type Value = Jobs;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of jobs")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Jobs, A::Error> {
        let mut read = Jobs::default();
        let mut all_clients = None;
        while let Some(value) = list.next_element::<Value>()? {
            let (job, not_understood) = figures::job(&value);
            read.not_understood.extend(not_understood);
            // With several clients fio adds a sum of all of them under this name.
            if job.name == "All clients" {
                all_clients = Some(job);
            } else {
                read.jobs.push(job);
            }
        }
        match all_clients {
            // Somebody kept the sum alone.
            Some(sum) if read.jobs.is_empty() => read.jobs.push(sum),
            Some(sum) => {
                let named = |figure: ReportedFigure| {
                    ReportedFigure { name: format!("All clients {}", figure.name), ..figure }.of("All clients")
                };
                read.sums.extend(sum.reported.into_iter().map(named));
            }
            None => {}
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_none_leave_all_else_in_its_place() {
        let text = "{\"a\" : -nan, \"b\":  inf}";
        assert_eq!(with_nulls_for_nan(text).unwrap(), "{\"a\" : null, \"b\": null}");
        assert_eq!(with_nulls_for_nan("{\"a\" : 1}"), None);
    }
}
