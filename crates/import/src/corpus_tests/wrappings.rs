//! Every result that people published, in everything that loggers, terminals, mail and pages put around a text: it is read as if
//! it stood alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{folder, plausible::files};
use crate::console::after_prompt;
use crate::{Draft, Source, read, recognise};
use model::record::Timestamp;

fn each(text: &str, mut of: impl FnMut(&str) -> String) -> String {
    text.lines().fold(String::with_capacity(text.len() * 2), |mut made, line| {
        made.push_str(&of(line));
        made.push('\n');
        made
    })
}

fn before(text: &str, prefix: &str) -> String {
    each(text, |line| format!("{prefix}{line}"))
}

type Wrapping = (&'static str, fn(&str) -> String);

const WRAPPINGS: [Wrapping; 24] = [
    ("syslog", |text| before(text, "Jan 08 10:00:01 host1 bench[123]: ")),
    ("syslog with priorities", |text| before(text, "<134>Jan  8 10:00:01 host1 bench: ")),
    ("journal", |text| {
        format!("-- Logs begin at Thu 2026-01-08 --\n{}", before(text, "Jan 08 10:00:01.123456 host1 bench[1]: "))
    }),
    ("journal, ISO times", |text| before(text, "2026-01-08T10:00:01+0100 host1 bench[123]: ")),
    ("compose", |text| format!("Attaching to bench-1\n{}", before(text, "bench-1  | "))),
    ("compose with times", |text| before(text, "bench-1  | 2026-01-08T10:00:01.5Z ")),
    ("kube", |text| before(text, "2026-01-08T10:00:01.123456789Z ")),
    ("kube with names", |text| before(text, "[pod/bench-x2b/main] ")),
    ("containers", |text| before(text, "2026-01-08T10:00:01.123456789-05:00 stdout F ")),
    ("Docker's records", |text| {
        each(text, |line| {
            let line = serde_json::to_string(&format!("{line}\n")).unwrap();
            format!("{{\"log\":{line},\"stream\":\"stdout\",\"time\":\"2026-01-08T10:00:01.1Z\"}}")
        })
    }),
    ("host", |text| before(text, "[db-1.example] ")),
    ("parallel shell", |text| before(text, "db1: ")),
    ("times in brackets", |text| before(text, "[2026-01-08 10:00:01] ")),
    ("times", |text| before(text, "2026-01-08 10:00:01,123 ")),
    ("ts", |text| before(text, "Jan 08 10:00:01 ")),
    ("seconds", |text| before(text, "1767866401.516946 ")),
    ("colours", |text| each(text, |line| format!("\u{1b}[1;32m{line}\u{1b}[0m"))),
    ("line ends", |text| each(text, |line| format!("{line}\r"))),
    ("byte order mark", |text| format!("\u{feff}{text}")),
    ("fence", |text| format!("Here it is:\n\n```text\n{text}\n```\n\nWhat do you think?\n")),
    ("quotation", |text| format!("Ann wrote:\n{}", before(text, "> "))),
    ("indentation", |text| before(text, "    ")),
    ("prompts", |text| format!("[root@db1 ~]# cat out\n{text}\n[root@db1 ~]# \n")),
    ("a fence in a quotation of a log, twice", |text| {
        let fenced = format!("```\n{}```\n", before(text, "Jan 08 10:00:01 host1 bench[123]: "));
        each(&before(&fenced, "> "), |line| format!("{line}\r"))
    }),
];

pub(super) fn source(text: &str) -> Result<Source, crate::ImportError> {
    Source::new("specimen", text.as_bytes().to_vec(), Timestamp(jiff::Timestamp::UNIX_EPOCH))
}

/// What is kept of a result.
pub(super) fn record(text: &str) -> Result<String, String> {
    record_of(text, true)
}

/// The same, with or without when it was and what is said of that: a log may know a time that a program does not report.
fn record_of(text: &str, with_times: bool) -> Result<String, String> {
    let (importer, drafts, notes) = source(text).and_then(|source| read(&source)).map_err(|error| error.to_string())?;
    let of = |draft: &Draft| {
        let mut shown = String::new();
        let Draft { title, program, parameters, target, environment, steps, began, ended, notes, .. } = draft;
        write!(shown, "{title} {program} {parameters:?} {target:?} {environment:?} {steps:?}").unwrap();
        if with_times {
            write!(shown, " {began:?} {ended:?} {notes:?}").unwrap();
        }
        shown
    };
    let drafts: Vec<String> = drafts.iter().map(of).collect();
    // A prompt before the text moves its lines.
    let notes: Vec<String> = notes.into_list().into_iter().map(|note| note.what).collect();
    Ok(format!("{} {drafts:?} {notes:?}", importer.kind))
}

/// Where two records begin to differ.
pub(super) fn difference(one: &Result<String, String>, other: &Result<String, String>) -> Option<String> {
    let [one, other] = [one, other].map(|record| record.as_ref().unwrap_or_else(|error| error));
    let at = one.bytes().zip(other.bytes()).position(|(one, other)| one != other).unwrap_or(one.len().min(other.len()));
    let around = |text: &str| {
        String::from_utf8_lossy(&text.as_bytes()[at.saturating_sub(120)..(at + 120).min(text.len())]).into_owned()
    };
    (one != other).then(|| format!("{}\nand not\n{}", around(one), around(other)))
}

/// The text without blank lines around it, and without the command before it, which readers keep.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let is_none = |line: &&str| line.trim().is_empty() || after_prompt(line).is_some();
    text.trim_end().lines().skip_while(is_none).map(str::trim_end)
}

/// Programs whose readers take the time of a log where they have none of their own: with times they are read, whatever the lines.
const WITHOUT_CLOCKS: [&str; 4] = ["iostat", "vmstat", "mpstat", "charbench"];

/// Bytes of a long text that are wrapped, where a reader knows it by them: what is taken off is decided by the first lines, and taken
/// off line by line.
const ENOUGH: usize = 8 << 10;

/// So many specimens of each kind meet each wrapping, and so many kinds each other one, unless time is given for all: what is taken off is
/// the same for all of one grammar.
pub(super) const ENOUGH_OF_KIND: usize = 2;
const ENOUGH_PAIRS: usize = 6;

/// Whether all of a product are to be tried.
pub(super) fn tries_all() -> bool {
    std::env::var_os("PLIMSOLL_TORTURE_SECONDS").is_some()
}

/// Whether the element `at` of so many is tried with the element `with` of another list, so that each of these is tried with `enough`.
fn is_tried(at: usize, of: usize, with: usize, enough: usize) -> bool {
    let stride = (of / enough).max(1);
    tries_all() || at % stride == with % stride
}

/// Every specimen: of the corpus, of the cases beside it, and of this crate.
fn specimens() -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/specimens"), &mut found);
    if let Some(corpus) = folder() {
        files(&corpus, &mut found);
        files(&corpus.join("../cases"), &mut found);
    }
    found.sort();
    found
}

/// Specimens with their place among those of their kind, and how many these are.
fn by_kind(found: Vec<PathBuf>) -> Vec<(PathBuf, usize, usize)> {
    let kind = |path: &Path| Source::open(path).ok().and_then(|source| Some(recognise(source.head())?.kind));
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut placed = Vec::new();
    for path in found {
        let Some(kind) = kind(&path) else { continue };
        let count = counts.entry(kind).or_default();
        placed.push((path, kind, *count));
        *count += 1;
    }
    placed.into_iter().map(|(path, kind, at)| (path, at, counts[kind])).collect()
}

/// Wrappings that change what is read of a file, the one at this place of so many of its kind.
fn changed(path: &Path, at: usize, of: usize) -> Vec<String> {
    let Ok(found) = Source::open(path) else { return Vec::new() };
    let Some(importer) = recognise(found.head()) else { return Vec::new() };
    // As it is without what may stand around it there.
    let whole = found.text();
    let begin = whole.get(..ENOUGH).and_then(|begin| begin.rsplit_once('\n')).map(|(lines, _)| lines);
    let begin = begin.filter(|begin| recognise(begin).is_some_and(|one| one.kind == importer.kind));
    let is_without_clock = WITHOUT_CLOCKS.contains(&importer.kind);
    let bare = begin.filter(|_| !is_without_clock).unwrap_or(whole);
    let is_read = |name: &str| is_without_clock && name == "ts";
    let of_bare = std::cell::LazyCell::new(|| record_of(bare, !is_without_clock));
    let differs = |(name, wrap): &Wrapping| {
        let wrapped = wrap(bare);
        match source(&wrapped) {
            // The same lines are read the same.
            Ok(unwrapped) if !is_read(name) && lines(unwrapped.text()).eq(lines(bare)) => None,
            _ => {
                let of_wrapped = record_of(&wrapped, !is_without_clock);
                (of_wrapped != *of_bare).then(|| {
                    let what = of_wrapped.err().unwrap_or_else(|| "another record".to_owned());
                    format!("{} in {name}: {what}", path.display())
                })
            }
        }
    };
    let tried = WRAPPINGS.iter().enumerate().filter(|(with, _)| is_tried(at, of, *with, ENOUGH_OF_KIND));
    tried.filter_map(|(_, wrapping)| differs(wrapping)).collect()
}

/// The smallest specimen of each kind, cut by nothing.
fn smallest() -> Vec<(&'static str, String)> {
    let Some(folder) = folder() else { return Vec::new() };
    let mut found = Vec::new();
    files(&folder, &mut found);
    let mut of_kinds: BTreeMap<&'static str, String> = BTreeMap::new();
    for path in found {
        let Ok(source) = Source::open(&path) else { continue };
        let Some(importer) = recognise(source.head()) else { continue };
        let text = source.text();
        if of_kinds.get(importer.kind).is_none_or(|known| text.len() < known.len()) && read(&source).is_ok() {
            of_kinds.insert(importer.kind, text.to_owned());
        }
    }
    of_kinds.into_iter().collect()
}

#[test]
fn two_results_in_one_text_are_both_read_or_named() {
    // Rows of numbers and a number alone have no beginning, and what SLOB prints of itself is no load.
    let bare = ["pgbench-aggregate", "pgbench-log", "fio-hist-log", "slob-tm", "slob-conf", "slob-console"];
    let is_one = |(kind, text): &(&'static str, String)| text.len() < 100_000 && !bare.contains(kind);
    let all: Vec<_> = smallest().into_iter().filter(is_one).collect();
    let programs = |text: &str| -> (Vec<&'static str>, Vec<String>) {
        match source(text).and_then(|source| read(&source)) {
            Ok((_, drafts, notes)) => {
                let mut programs: Vec<_> = drafts.iter().map(|draft| draft.program).collect();
                programs.dedup();
                (programs, notes.into_list().into_iter().map(|note| note.what).collect())
            }
            Err(error) => (Vec::new(), vec![error.to_string()]),
        }
    };
    let each: Vec<(&str, Vec<&'static str>)> = all.iter().map(|(kind, text)| (*kind, programs(text).0)).collect();
    let alone =
        |kind: &str| each.iter().find(|(known, _)| *known == kind).map(|(_, programs)| programs.clone()).unwrap();
    let mut wrong = Vec::new();
    for (at, (first, one)) in all.iter().enumerate() {
        for (with, (second, other)) in all.iter().enumerate() {
            let (of_one, of_other) = (alone(first), alone(second));
            if of_one == of_other || !is_tried(at, all.len(), with, ENOUGH_PAIRS) {
                continue;
            }
            let (found, notes) = programs(&format!("{one}\n\n{other}"));
            let has = |wanted: &[&'static str]| wanted.iter().all(|program| found.contains(program));
            if !(has(&of_one) && has(&of_other)) && notes.is_empty() {
                wrong.push(format!("{first} and {second}: {found:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), all.len() * all.len());
}

#[test]
fn what_stands_around_a_result_changes_nothing_of_it() {
    let found = specimens();
    let found = by_kind(found);
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((path, at, of)) = found.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let changed = changed(path, *at, *of);
                    wrong.lock().unwrap().extend(changed);
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn prose_before_and_after_a_result_changes_nothing_of_it() {
    let found = specimens();
    let mut wrong = Vec::new();
    for (path, at, _) in by_kind(found) {
        let Ok(found) = Source::open(&path) else { continue };
        // A number alone says nothing within prose.
        let kind = recognise(found.head()).map_or("", |importer| importer.kind);
        if kind == "slob-tm" || (at > 0 && !tries_all()) {
            continue;
        }
        let text = found.text();
        let mail = format!("Hi Bob,\n\nhere it is, of this morning.\n\n{text}\n\nWhat do you think?\nAnn\n");
        let differs = difference(&record(text), &record(&mail));
        wrong.extend(differs.map(|differs| format!("{}: {differs}", path.display())));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
