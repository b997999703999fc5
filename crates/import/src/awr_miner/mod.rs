//! Files of AWR Miner (`awr-hist-DBID-NAME-FROM-TO.out`): what a database's workload repository holds, snapshot by snapshot.
//!
//! Each snapshot is a step: the interval that ends with it. What is read: the facts of the machine and the database, the main
//! metrics, the histograms and totals of wait events, I/O by function, statistics, memory and average sessions. Advice, object
//! types and SQL are left out.
//!
//! The script takes differences itself, by instance, and adds instances up, except in the main metrics and the memory, which it
//! prints for each instance. What it calls `TOTAL_TIME_S` is in microseconds in every release: it is the sum of
//! `time_waited_micro`.

mod metrics;
mod snapshots;
#[cfg(test)]
mod tests;

use super::numbers::whole_number;
use super::spool::{self, Found, Kind, rows_selected};
use super::{Draft, ImportError, Notes, Source};
use model::record::Target;
use model::record::Workload;
use model::record::facts::DATABASE_ID;
use snapshots::Snapshots;

/// Parameters of the database that say how it does its I/O or how large it is.
const PARAMETERS: [&str; 20] = [
    "cluster_database",
    "commit_logging",
    "commit_wait",
    "compatible",
    "cpu_count",
    "db_block_checking",
    "db_block_checksum",
    "db_block_size",
    "db_cache_size",
    "db_file_multiblock_read_count",
    "db_writer_processes",
    "disk_asynch_io",
    "filesystemio_options",
    "log_buffer",
    "memory_target",
    "parallel_max_servers",
    "pga_aggregate_target",
    "processes",
    "sga_max_size",
    "sga_target",
];
/// A value is not longer.
const LONGEST_VALUE: usize = 500;
/// Snapshots of one file: five years of them, one an hour.
const MAX_SNAPSHOTS: usize = 50_000;
/// Sections that nothing is read from.
const LEFT_OUT: &str = "advice on memory, I/O by type of object and SQL statements of the file are left out";

/// The section that begins or ends here.
fn section_mark(line: &str) -> Option<(bool, &str)> {
    let name = line.trim().strip_prefix("~~")?.strip_suffix("~~")?;
    let (is_begin, name) = match name.strip_prefix("BEGIN-") {
        Some(name) => (true, name),
        None => (false, name.strip_prefix("END-")?),
    };
    let is_name = name.len() < 64 && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-');
    is_name.then_some((is_begin, name))
}

/// Whether a section begins that AWR Miner alone has.
pub(super) fn recognises(head: &str) -> bool {
    let sections = ["OS-INFORMATION", "MAIN-METRICS", "IO-WAIT-HISTOGRAM"];
    head.lines().any(|line| section_mark(line).is_some_and(|(is_begin, name)| is_begin && sections.contains(&name)))
}

fn kind(heading: &str) -> Kind {
    match heading {
        "END" => Kind::Time,
        "WAIT_CLASS" => Kind::WaitClass,
        "EVENT_NAME" | "FUNCTION_NAME" => Kind::Text,
        _ => Kind::Number,
    }
}

fn is_of_snapshots(headings: &[String]) -> bool {
    let has = |name: &str| headings.iter().any(|heading| heading == name);
    (has("SNAP_ID") || has("SNAP")) && !has("SQL_ID") && !has("OBJECT_TYPE") && !has("SIZE_FACTOR")
}

/// The file's snapshots, as one run.
pub(super) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut draft = Draft::new(Workload::Database, "AWR Miner", "AWR Miner");
    draft.target = Target { kind: "oracle".to_owned(), ..Target::default() };
    let mut snapshots = Snapshots::default();
    let mut section: Option<(String, u64)> = None;
    let mut headings: Vec<String> = Vec::new();
    spool::scan(source.text(), is_of_snapshots, kind, |found| match found {
        Found::Blank => {}
        Found::Headings(names) => headings = names.to_vec(),
        Found::Row(line, cells) => {
            let name = section.as_ref().map_or("", |(name, _)| name);
            snapshots.row(name, line, &headings, &cells, notes);
        }
        Found::Other(line, text) => match section_mark(text) {
            Some((true, name)) => section = Some((name.to_owned(), line)),
            Some((false, _)) => section = None,
            None => match section.as_ref().map(|(name, _)| name.as_str()) {
                Some("OS-INFORMATION") => fact(text, &mut draft),
                Some("DATABASE-PARAMETERS") => parameter(text, &mut draft),
                Some(name) if Snapshots::reads(name) && rows_selected(text).is_none() => {
                    let what =
                        format!("`{}` in {name}: a row was expected", text.trim().chars().take(60).collect::<String>());
                    notes.not_understood(line, what);
                }
                _ => {}
            },
        },
    });
    if let Some((name, line)) = section {
        return Err(ImportError::damaged(source, line, format!("section {name} has no end: the file is cut")));
    }
    if snapshots.len() > MAX_SNAPSHOTS {
        return Err(ImportError::damaged(source, None, format!("it holds more than {MAX_SNAPSHOTS} snapshots")));
    }
    if snapshots.is_empty() {
        return Err(ImportError::no_result(source, "it holds no snapshot"));
    }
    let fact = |name: &str| draft.target.facts.get(name).cloned();
    let (database, number) = (fact("DB_NAME"), fact("DBID"));
    let (first, last) = snapshots.range();
    draft.title = format!("{} snapshots {first} to {last}", database.as_deref().unwrap_or("database"));
    draft.version = fact("AWR_MINER_VER").unwrap_or_default();
    // As reports of the same repository report them, so that both are known to be of one database.
    draft.target.address = database.unwrap_or_default();
    draft.target.facts.extend(number.map(|number| (DATABASE_ID.to_owned(), number)));
    draft.notes.push(LEFT_OUT.to_owned());
    snapshots.into_steps(&mut draft);
    Ok(vec![draft])
}

/// `NUM_CPUS       4`
fn fact(line: &str, draft: &mut Draft) {
    let (name, value) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
    let value: String = value.trim().chars().take(LONGEST_VALUE).collect();
    if value.is_empty()
        || name == "STAT_NAME"
        || !name.bytes().all(|byte| byte.is_ascii_uppercase() || b"!_".contains(&byte))
    {
        return;
    }
    match name {
        "NUM_CPUS" => draft.environment.cpus = whole_number(&value).and_then(|cpus| u32::try_from(cpus).ok()),
        "PHYSICAL_MEMORY_GB" => {
            let bytes = super::numbers::number(&value).map(|gb| gb * (1_u64 << 30) as f64);
            draft.environment.memory_bytes = bytes.and_then(super::draft::whole);
        }
        "HOSTS" | "HOST_NAME" => draft.environment.hostname = Some(value.clone()),
        // Later readings of a name, which begin with an exclamation mark, are those of all instances.
        _ => {}
    }
    draft.target.facts.insert(name.to_owned(), value);
}

/// `db_block_size   8192`; later releases have the number of the instance before it.
fn parameter(line: &str, draft: &mut Draft) {
    let mut words = line.split_whitespace();
    let mut name = words.next().unwrap_or_default();
    if whole_number(name).is_some() {
        name = words.next().unwrap_or_default();
    }
    let value = words.collect::<Vec<_>>().join(" ");
    if value.is_empty() || !PARAMETERS.contains(&name) {
        return;
    }
    if name == "db_block_size" {
        draft.target.block_bytes = whole_number(&value);
    }
    draft.parameters.insert(name.to_owned(), value.chars().take(LONGEST_VALUE).collect());
}
