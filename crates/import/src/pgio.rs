//! What `runit.sh` of pgio prints: counters of the database before and after, and the rates that it makes of them.

use super::console::{plain, unprefixed};
use super::draft::{self, reported_figure};
use super::numbers::{number, whole_number};
use super::{Began, Draft, ImportError, Notes, Source, unix_date};
use model::record::{Ending, Metric, Step, TargetKind, Workload};

const S: u64 = 1_000_000_000;
/// `blks_hit` to `tup_updated`, as both lines have them.
const COLUMNS: [&str; 5] = ["blks_hit", "blks_read", "tup_returned", "tup_fetched", "tup_updated"];

/// Whether it is what pgio prints when it runs, or when it loads.
pub(super) fn recognises(head: &str) -> bool {
    head.lines().any(|line| {
        let line = plain(line);
        let text = unprefixed(line);
        text.starts_with("DBNAME:") && text.contains("RIOPS >")
            || text.starts_with("Testing ") && text.contains(" thread(s) accessing ")
            || text.starts_with("Job info:") && text.contains("pgio.conf->")
            || text.starts_with("Batching info:") && text.contains("pgio.conf->")
    })
}

/// The runs in it.
pub(super) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut runs = vec![Printed::default()];
    let mut loads = false;
    for (line, text) in source.lines() {
        let text = plain(text);
        let text = unprefixed(text);
        loads |= text.contains("pgio.conf->");
        let next = runs.last().is_some_and(|run| run.result.is_some());
        let begins = text.starts_with("Date:") || text.starts_with("Testing ") || text.starts_with("BEFORE:");
        if next && begins {
            runs.push(Printed::default());
        }
        if let Some(run) = runs.last_mut() {
            run.line(notes, line, text);
        }
    }
    let runs: Vec<Printed> = runs.into_iter().filter(|run| run.schemas.is_some() || run.result.is_some()).collect();
    if runs.is_empty() {
        let what = if loads { "it holds no result: pgio loaded its tables" } else { "it holds no result of pgio" };
        return Err(ImportError::no_result(source, what));
    }
    runs.into_iter().map(|run| run.draft(source)).collect()
}

/// The last line of a run.
#[derive(Debug)]
struct Outcome {
    seconds: u64,
    riops: f64,
    cache_hits: Option<f64>,
}

/// What was printed of one run.
#[derive(Debug, Default)]
struct Printed {
    began: Option<Began>,
    database: String,
    shared_buffers: Option<u64>,
    schemas: Option<u32>,
    threads: Option<u32>,
    /// Bytes and blocks of each schema.
    scale: Option<(u64, u64)>,
    before: Option<Vec<u64>>,
    after: Option<Vec<u64>>,
    result: Option<(u64, Outcome)>,
}

impl Printed {
    fn line(&mut self, notes: &mut Notes, line: u64, text: &str) {
        if let Some(date) = text.strip_prefix("Date:") {
            self.began = unix_date::parse(date);
        } else if let Some(connect) = text.strip_prefix("Database connect string:") {
            self.database = without_secrets(connect.trim().trim_end_matches('.').trim_matches('"'));
        } else if let Some(size) = text.strip_prefix("Shared buffers:") {
            self.shared_buffers = binary_bytes(size.trim().trim_end_matches('.'));
        } else if text.starts_with("Testing ") {
            self.asked(text);
        } else if let Some(row) = text.strip_prefix("BEFORE:") {
            self.before = counters(row);
        } else if let Some(row) = text.strip_prefix("AFTER:") {
            self.after = counters(row);
        } else if text.starts_with("DBNAME:") {
            match self.rates(text) {
                Some(outcome) => self.result = Some((line, outcome)),
                None => notes.not_understood(line, "a run time and RIOPS were expected"),
            }
        } else {
            notes.unknown(line, text);
        }
    }

    /// `Testing 16 schemas with 8 thread(s) accessing 8G (1048576 blocks) of each schema.`
    fn asked(&mut self, text: &str) {
        let words: Vec<&str> = text.split_whitespace().take(20).collect();
        let before = |unit: &str| {
            let at = words.iter().position(|word| word.trim_matches(['(', ')', ',']).starts_with(unit))?;
            words.get(at.checked_sub(1)?).map(|word| word.trim_start_matches('('))
        };
        let count = |unit: &str| before(unit).and_then(whole_number).and_then(|count| u32::try_from(count).ok());
        (self.schemas, self.threads) = (count("schema"), count("thread"));
        let size = words.iter().position(|word| *word == "accessing").and_then(|at| words.get(at + 1));
        self.scale = size.and_then(|size| binary_bytes(size)).zip(before("blocks").and_then(whole_number));
    }

    /// `DBNAME:  pg10. 16 schemas, 8 threads(each). Run time: 120 seconds. RIOPS >492306< CACHE_HITS/s >8989<`
    fn rates(&mut self, text: &str) -> Option<Outcome> {
        let after = |name: &str| text.split_once(name).map(|(_, rest)| rest.trim_start());
        let marked = |name: &str| number(after(name)?.trim_start_matches('>').split('<').next()?);
        let count = |unit: &str| {
            let (before, _) = text.split_once(unit)?;
            before.split_whitespace().next_back().and_then(|word| word.parse().ok())
        };
        self.schemas = self.schemas.or_else(|| count(" schema"));
        self.threads = self.threads.or_else(|| count(" thread"));
        let seconds = after("Run time:")?.split_whitespace().next().and_then(whole_number)?;
        Some(Outcome { seconds, riops: marked("RIOPS")?, cache_hits: marked("CACHE_HITS/s") })
    }

    fn draft(self, source: &Source) -> Result<Draft, ImportError> {
        let Some((line, outcome)) = &self.result else {
            return Err(ImportError::damaged(source, None, "the output of pgio ends before its result"));
        };
        let mut draft = Draft::new(Workload::Slob, "pgio", self.database.clone());
        draft.began = self.began;
        draft.target.kind = Some(TargetKind::Postgres);
        draft.target.address.clone_from(&self.database);
        draft.target.cache_bytes = self.shared_buffers;
        if let Some((bytes, blocks)) = self.scale {
            draft.target.block_bytes = bytes.checked_div(blocks).filter(|size| *size > 0);
            draft.target.data_bytes = self.schemas.map(|schemas| bytes.saturating_mul(u64::from(schemas)));
            draft.parameters.insert("SCALE".to_owned(), format!("{blocks} blocks"));
        }
        let label = format!("s{}_t{}", self.schemas.unwrap_or(0), self.threads.unwrap_or(0));
        let known = self.schemas.is_some() && self.threads.is_some();
        let mut step = draft::step(0, if known { label } else { "all".to_owned() }, outcome.seconds.saturating_mul(S));
        step.load.schemas = self.schemas;
        step.load.threads_per_schema = self.threads;
        step.load.sessions = self.schemas.zip(self.threads).and_then(|(schemas, threads)| schemas.checked_mul(threads));
        step.window.ending = Ending::Time;
        step.reported.push(reported_figure("server", "RIOPS", "/s", outcome.riops).is(Metric::BufferMisses, 1.0));
        let hits = |hits| reported_figure("server", "CACHE_HITS/s", "/s", hits).is(Metric::CacheHits, 1.0);
        step.reported.extend(outcome.cache_hits.map(hits));
        self.differences(&mut step, source, *line)?;
        draft.notes.push(
            "Reads are `blks_read` of PostgreSQL, RIOPS too: blocks requested from the operating system, whose page cache may have had them."
                .to_owned(),
        );
        draft.notes.push(
            "The first counters are read before the sessions start, so that their start is in the window.".to_owned(),
        );
        draft.steps.push(step);
        Ok(draft)
    }

    /// What the counters rose by. That is more than the rates report, which are whole numbers a second.
    fn differences(&self, step: &mut Step, source: &Source, line: u64) -> Result<(), ImportError> {
        let (Some(before), Some(after)) = (&self.before, &self.after) else { return Ok(()) };
        let mut rose = Vec::new();
        for ((name, before), after) in COLUMNS.iter().zip(before).zip(after) {
            let Some(by) = after.checked_sub(*before) else {
                return Err(ImportError::damaged(source, line, format!("{name} is lower after the run than before")));
            };
            step.reported.push(reported_figure("server", *name, "", by as f64));
            rose.push(by);
        }
        let [hits, reads, ..] = rose[..] else { return Ok(()) };
        step.counters.cache_hits = Some(hits);
        step.counters.buffer_misses = Some(reads);
        step.counters.physical_reads = Some(reads);
        step.counters.logical_reads = hits.checked_add(reads);
        Ok(())
    }
}

/// ` pg10    | 792845449 | 1708568898 | …`: all five.
fn counters(row: &str) -> Option<Vec<u64>> {
    let cells: Vec<u64> = row.split('|').skip(1).take(COLUMNS.len()).map(whole_number).collect::<Option<_>>()?;
    (cells.len() == COLUMNS.len()).then_some(cells)
}

/// `8G`, `1GB`, `128MB`, in 1,024s; a bare number counts blocks, whose size is not reported.
fn binary_bytes(text: &str) -> Option<u64> {
    let at = text.find(|char: char| char.is_ascii_alphabetic())?;
    let factor: u64 = match text.get(at..)?.trim_end_matches(['B', 'b']) {
        "k" | "K" => 1 << 10,
        "M" | "m" => 1 << 20,
        "G" | "g" => 1 << 30,
        "T" | "t" => 1 << 40,
        _ => return None,
    };
    draft::whole(number(text.get(..at)?)? * factor as f64)
}

/// A connect string without user and password; nothing of it where it names a password.
fn without_secrets(connect: &str) -> String {
    if connect.to_ascii_lowercase().contains("password") {
        return String::new();
    }
    connect.rsplit_once('@').map_or(connect, |(_, address)| address).to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{read, recognises};
    use crate::specimens::{damaged, only, source, survives};
    use crate::{Began, Draft, ImportError, Notes};

    const RUN: &str = "Date: Sat Mar  7 08:09:10 CET 2020\nDatabase connect string: \"postgresql://bob:hush@db7/pgio\".\nShared buffers: 512MB.\n\
Testing 4 schemas with 2 thread(s) accessing 64M (8192 blocks) of each schema.\npg_stat_database stats:\n\
          datname| blks_hit| blks_read|tup_returned|tup_fetched|tup_updated\nBEFORE:  pgio    | 1000 | 5000 |   10 |  20 |     30\n\
AFTER:   pgio    | 4000 | 65000 |   110 |  220 |     30\nDBNAME:  pgio. 4 schemas, 2 threads(each). Run time: 60 seconds. RIOPS >1000< CACHE_HITS/s >50<\n";

    fn one(text: &str) -> Result<Draft, ImportError> {
        assert!(recognises(text), "{text}");
        read(&source(text), &mut Notes::default()).map(|mut drafts| drafts.remove(0))
    }

    #[test]
    fn counters_are_what_they_rose_by() {
        let draft = one(RUN).unwrap();
        let step = &draft.steps[0];
        assert_eq!(
            (step.label.as_str(), step.load.sessions, step.window.duration_ns),
            ("s4_t2", Some(8), 60_000_000_000)
        );
        let counters = &step.counters;
        assert_eq!((counters.physical_reads, counters.buffer_misses), (Some(60_000), Some(60_000)));
        assert_eq!((counters.cache_hits, counters.logical_reads), (Some(3_000), Some(63_000)));
        assert_eq!((draft.target.cache_bytes, draft.target.data_bytes), (Some(512 << 20), Some(256 << 20)));
        assert!(matches!(draft.began, Some(Began::Wall(_))));
        assert!(step.reported.iter().any(|figure| figure.name == "tup_fetched" && figure.value == 200.0));
    }

    #[test]
    fn passwords_are_not_kept() {
        let draft = one(RUN).unwrap();
        assert!(!format!("{draft:?}").contains("hush"));
        assert_eq!(draft.target.address, "db7/pgio");
    }

    #[test]
    fn a_headline_that_its_counters_contradict_is_not_believed() {
        let draft = only("pgio", &RUN.replace("RIOPS >1000<", "RIOPS >4000<"));
        let step = &draft.steps[0];
        assert_eq!(step.counters.physical_reads, Some(60_000));
        let doubted: Vec<&str> =
            step.reported.iter().filter(|one| one.doubted.is_some()).map(|one| one.name.as_str()).collect();
        assert_eq!(doubted, ["RIOPS"]);
        let doubt = "`RIOPS` cannot be 4,000 /s: 60,000 blks_read in 1m00s are 1,000/s (rule `rate-times-time`).";
        assert!(draft.notes.iter().any(|note| note == doubt), "{:?}", draft.notes);
        assert!(only("pgio", RUN).notes.iter().all(|note| !note.contains("cannot be")));
    }

    #[test]
    fn counters_that_go_back_are_damaged() {
        let back = one(&RUN.replace("| 65000 |", "| 4999 |")).unwrap_err().to_string();
        assert!(back.contains("blks_read is lower after the run"), "{back}");
        assert!(one(&RUN[..RUN.find("DBNAME").unwrap()]).unwrap_err().to_string().contains("ends before its result"));
    }

    #[test]
    fn a_result_without_counters_has_its_rates_alone() {
        let draft = one(&RUN[RUN.find("DBNAME").unwrap()..]).unwrap();
        assert_eq!((draft.steps[0].counters.physical_reads, draft.steps[0].load.sessions), (None, Some(8)));
        assert_eq!(draft.steps[0].reported[0].value, 1_000.0);
    }

    #[test]
    fn several_runs_are_several() {
        assert_eq!(read(&source(&RUN.repeat(3)), &mut Notes::default()).unwrap().len(), 3);
    }

    proptest! {
        #[test]
        fn damaged_files_give_runs_or_errors(file in damaged(&[RUN])) {
            survives(file);
        }
    }
}
