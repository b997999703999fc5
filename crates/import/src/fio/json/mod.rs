//! `fio --output-format=json` and `json+`, 2.1 to 3.42: one or more documents, with whatever stands around them.

mod document;
mod figures;

use std::collections::{BTreeMap, HashMap, HashSet};

use self::document::Document;
use super::assemble;
use super::job::{Invocation, Job};
use super::options::Options;
use super::text::{failure_text, job_name_of, signal_text};
use crate::{Began, Draft, ImportError, Notes, Source};
use model::record::Timestamp;

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
    let cleaned = super::text::without_colours(source.text());
    let text = cleaned.as_ref();
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
        let parsed = document::parse(rest);
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
