//! Event histograms of Oracle: spools of `v$event_histogram`, `v$event_histogram_micro`, their `gv$` forms and
//! `dba_hist_event_histogram`.
//!
//! Columns may stand in any order; their headings say which they are. A bucket is named by its upper edge, which is exclusive, and begins
//! at the power of two below it: rows of buckets that hold nothing may be missing.
//!
//! Counts go up from the start of an instance. Differences are taken only where snapshots are distinguished by their numbers or
//! times; every other table is kept as it stands, in a step of its own with no window.

mod bare;
mod readings;
mod steps;
#[cfg(test)]
mod tests;

pub(super) use readings::edges_ns;

use super::spool::{self, Found, Kind};
use super::{Draft, ImportError, Notes, Source};
use bare::Bare;
use model::record::{Target, TargetKind, Workload};
use readings::Readings;

/// Readings of one file: five years of snapshots, one an hour.
const MAX_READINGS: usize = 50_000;

/// What a column says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Event,
    Class,
    Milliseconds,
    Microseconds,
    Count,
    Instance,
    Container,
    Snapshot,
    Begin,
    End,
    At,
    /// Something that distinguishes rows, such as a day: a column of no known name before the buckets.
    Group,
    Other(Kind),
}

/// Names that SQL*Plus cuts to the width of their columns, and how much of them there must be.
const CUT: [(&str, usize); 6] = [
    ("EVENT_NAME", 6),
    ("WAIT_CLASS", 6),
    ("BEGIN_INTERVAL_TIME", 9),
    ("END_INTERVAL_TIME", 7),
    ("LAST_UPDATE_TIME", 8),
    ("WAIT_TIME_FORMAT", 11),
];

fn role(heading: &str) -> Role {
    let heading = heading.trim().replace(' ', "_");
    let whole = CUT.iter().find(|(name, least)| heading.len() >= *least && name.starts_with(heading.as_str()));
    match whole.map_or(heading.as_str(), |(name, _)| *name) {
        "EVENT" | "EVENT_NAME" | "WAIT_EVENT" => Role::Event,
        "WAIT_CLASS" => Role::Class,
        "WAIT_TIME_MILLI" | "WAIT_TIME_MS" => Role::Milliseconds,
        "WAIT_TIME_MICRO" | "WAIT_TIME_US" => Role::Microseconds,
        "WAIT_COUNT" | "SUM(WAIT_COUNT)" => Role::Count,
        "INST_ID" | "INSTANCE_NUMBER" | "INST" | "INST#" | "INSTANCE" => Role::Instance,
        "CON_ID" => Role::Container,
        "SNAP_ID" | "SNAP" => Role::Snapshot,
        "BEGIN_INTERVAL_TIME" | "BEGIN_TIME" => Role::Begin,
        "END_INTERVAL_TIME" | "END_TIME" => Role::End,
        "SNAP_TIME" | "SAMPLE_TIME" | "SYSDATE" | "SYSTIMESTAMP" | "CURRENT_TIMESTAMP" => Role::At,
        "LAST_UPDATE_TIME" => Role::Other(Kind::Time),
        "WAIT_TIME_FORMAT" => Role::Other(Kind::Duration),
        "EVENT#" | "EVENT_ID" | "WAIT_CLASS#" | "WAIT_CLASS_ID" | "DBID" | "CON_DBID" => Role::Other(Kind::Number),
        _ => Role::Other(Kind::Text),
    }
}

fn kind(heading: &str) -> Kind {
    match role(heading) {
        Role::Event => Kind::Text,
        Role::Class => Kind::WaitClass,
        Role::Begin | Role::End | Role::At => Kind::Time,
        Role::Other(kind) => kind,
        _ => Kind::Number,
    }
}

fn is_histogram(headings: &[String]) -> bool {
    let has = |wanted: &dyn Fn(Role) -> bool| headings.iter().any(|heading| wanted(role(heading)));
    has(&|role| role == Role::Count) && has(&|role| matches!(role, Role::Milliseconds | Role::Microseconds))
}

/// Whether there is a table of buckets; AWR Miner and others print such tables within their own files.
pub(super) fn recognises(head: &str) -> bool {
    let has = |word: &str| head.contains(word) || head.contains(&word.to_ascii_lowercase());
    // Rows without headings are known by the statement, or by the words for their edges.
    let is_named = has("WAIT_COUNT") || has("EVENT_HISTOGRAM") || head.contains("microsecond");
    if !is_named || head.contains("~~BEGIN-") || head.contains("<begin record>") {
        return false;
    }
    let head = spool::unmarked(head);
    let mut rows = 0_u32;
    spool::scan(&head, is_histogram, kind, |found| rows += u32::from(matches!(found, Found::Row(..))));
    rows > 0 || bare::columns_of(&head) != Bare::None
}

/// The steps of all tables in the file, as one run.
pub(super) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut readings = Readings::default();
    let text = spool::unmarked(source.text());
    let mut has_headings = false;
    spool::scan(&text, is_histogram, kind, |found| has_headings |= matches!(found, Found::Headings(_)));
    match bare::columns_of(if has_headings { "" } else { &text }) {
        Bare::Columns(columns) => bare::scan(&text, &columns, |found| readings.take(found, notes)),
        Bare::Unreported => {
            let what = "its rows have no headings, and nothing says what their columns are: spool it with `set heading on` \
                        and `set pagesize 50000`";
            return Err(ImportError::no_result(source, what));
        }
        Bare::None => spool::scan(&text, is_histogram, kind, |found| readings.take(found, notes)),
    }
    let mut draft = Draft::new(Workload::Database, "Oracle Database", "event histogram");
    draft.version = readings.release().to_owned();
    let (tables, events) = readings.finish();
    draft.target = Target { kind: Some(TargetKind::Oracle), ..Target::default() };
    if tables.iter().map(|table| table.snapshots.len()).sum::<usize>() > MAX_READINGS {
        return Err(ImportError::damaged(
            source,
            None,
            format!("it holds more than {MAX_READINGS} readings of histograms"),
        ));
    }
    for table in &tables {
        steps::add(table, &events, &mut draft);
    }
    if draft.steps.is_empty() {
        return Err(ImportError::damaged(source, None, "there is no bucket with a count in its tables"));
    }
    draft.title = match events.as_slice() {
        [event] => format!("event histogram of {}", event.name),
        events => format!("event histograms of {} events", events.len()),
    };
    let mut notes: Vec<String> = tables.into_iter().flat_map(|table| table.notes).collect();
    notes.append(&mut draft.notes);
    for note in notes {
        if !draft.notes.contains(&note) {
            draft.notes.push(note);
        }
    }
    Ok(vec![draft])
}

/// The class of an event, empty if it is not known here, and whether sessions of users wait in it: these others are waited for
/// by the writers alone.
pub(crate) fn kind_of_event(event: &str) -> (&'static str, bool) {
    const USER_IO: [&str; 14] = [
        "db file sequential read",
        "db file scattered read",
        "db file parallel read",
        "db file single write",
        "direct path read",
        "direct path read temp",
        "direct path write",
        "direct path write temp",
        "read by other session",
        "cell single block physical read",
        "cell multiblock physical read",
        "cell list of blocks physical read",
        "cell smart table scan",
        "Disk file operations I/O",
    ];
    const WRITERS: [&str; 5] = [
        "log file parallel write",
        "db file parallel write",
        "db file async I/O submit",
        "control file parallel write",
        "log file single write",
    ];
    match event {
        "log file sync" => ("Commit", true),
        "free buffer waits" | "log buffer space" | "log file switch completion" => ("Configuration", true),
        "control file sequential read" => ("System I/O", true),
        "buffer busy waits" => ("Concurrency", true),
        event if USER_IO.contains(&event) => ("User I/O", true),
        event if WRITERS.contains(&event) => ("System I/O", false),
        event if event.starts_with("gc ") => ("Cluster", true),
        _ => ("", true),
    }
}
