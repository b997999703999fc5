//! One document, job by job, so that a large one takes little more memory than its text.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::figures;
use crate::fio::job::Job;
use model::record::ReportedFigure;

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
pub struct Problem {
    /// Its line, from 1 at the beginning of the document.
    pub line: u64,
    /// What is wrong.
    pub what: String,
}

/// The document at the beginning of `text`, and how long it is.
pub fn parse(text: &str) -> Result<(Document, usize), Problem> {
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
fn with_nulls_for_nan(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    let mut found = false;
    while let Some(at) = rest.find(':') {
        let (before, after) = rest.split_at(at + 1);
        plain.push_str(before);
        let value = after.trim_start_matches(' ');
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
