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

use super::numbers::whole_number;
use super::spool::{self, Found, Kind, rows_selected};
use super::{Draft, ImportError, Notes, Source};
use model::record::{Target, TargetKind, Workload};
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
/// Names of parameters that are as long fill their column.
const LONGEST_NAME: usize = 30;
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
    draft.target = Target { kind: Some(TargetKind::Oracle), ..Target::default() };
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
                Some("OS-INFORMATION") if fact(text, &mut draft) => {}
                Some("DATABASE-PARAMETERS") if parameter(text, &mut draft) => {}
                Some(name) if Snapshots::reads(name) && rows_selected(text).is_none() => {
                    let what =
                        format!("`{}` in {name}: a row was expected", text.trim().chars().take(60).collect::<String>());
                    notes.not_understood(line, what);
                }
                Some("OS-INFORMATION" | "DATABASE-PARAMETERS") | None => notes.unknown(line, text),
                // Sections that nothing is read from.
                Some(_) => {}
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
    let fact = |name: &str| draft.target.facts.other.get(name).cloned();
    let (database, number) = (fact("DB_NAME"), fact("DBID"));
    let (first, last) = snapshots.range();
    draft.title = format!("{} snapshots {first} to {last}", database.as_deref().unwrap_or("database"));
    draft.version = fact("AWR_MINER_VER").unwrap_or_default();
    // As reports of the same repository report them, so that both are known to be of one database.
    draft.target.address = database.unwrap_or_default();
    draft.target.facts.database.id = number.and_then(|number| number.parse().ok());
    draft.notes.push(LEFT_OUT.to_owned());
    snapshots.into_steps(&mut draft);
    Ok(vec![draft])
}

/// `NUM_CPUS       4`; whether it is such a line.
fn fact(line: &str, draft: &mut Draft) -> bool {
    let (name, value) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
    let value: String = value.trim().chars().take(LONGEST_VALUE).collect();
    if !name.bytes().all(|byte| byte.is_ascii_uppercase() || b"!_".contains(&byte)) {
        return false;
    }
    if value.is_empty() || name == "STAT_NAME" {
        return true;
    }
    match name {
        "NUM_CPUS" => draft.environment.cpus = whole_number(&value).and_then(|cpus| u32::try_from(cpus).ok()),
        "PHYSICAL_MEMORY_GB" => {
            let bytes = super::numbers::ungrouped(&value).map(|gb| gb * (1_u64 << 30) as f64);
            draft.environment.memory_bytes = bytes.and_then(super::draft::whole);
        }
        "HOSTS" | "HOST_NAME" => draft.environment.hostname = Some(value.clone()),
        // Later readings of a name, which begin with an exclamation mark, are those of all instances.
        _ => {}
    }
    draft.target.facts.other.insert(name.to_owned(), value);
    true
}

/// `db_block_size   8192`; later releases have the number of the instance before it. Whether it is such a line: a sentence has no
/// gap behind its first word.
fn parameter(line: &str, draft: &mut Draft) -> bool {
    let mut words = line.split_whitespace();
    let mut name = words.next().unwrap_or_default();
    if whole_number(name).is_some() {
        name = words.next().unwrap_or_default();
    }
    let behind = line.split_once(name).map_or("", |(_, behind)| behind);
    let value = words.collect::<Vec<_>>().join(" ");
    if !value.is_empty() && !behind.starts_with("  ") && name.len() < LONGEST_NAME {
        return false;
    }
    if value.is_empty() || !PARAMETERS.contains(&name) {
        return true;
    }
    if name == "db_block_size" {
        draft.target.block_bytes = whole_number(&value);
    }
    draft.parameters.insert(name.to_owned(), value.chars().take(LONGEST_VALUE).collect());
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super as import;
    use super::*;
    use crate::specimens::source;

    const FILE: &str = "\
~~BEGIN-OS-INFORMATION~~
STAT_NAME            STAT_VALUE
-------------------- --------------------
NUM_CPUS             6
PHYSICAL_MEMORY_GB   3.5
DB_NAME              ORA
DBID                 4711
INSTANCES            2
AWR_MINER_VER        9.9.1
~~END-OS-INFORMATION~~

~~BEGIN-MEMORY-SGA-ADVICE~~

   SNAP_ID INSTANCE_NUMBER SIZE_FACTOR
---------- --------------- -----------
        60               2          .5
~~END-MEMORY-SGA-ADVICE~~

~~BEGIN-MAIN-METRICS~~

      snap      dur_m end                  inst     os_cpu        aas  read_iops  l_reads_s read_mb_s_max
---------- ---------- -------------- ---------- ---------- ---------- ---------- ---------- -------------
        60         30 21/05/05 10:30          1       18.9        1.5        100       2000           1.2
        60         31 21/05/05 10:30          2        8.9         .5        300         .4            .2
        61         60 21/05/05 11:30          1        8.9         .5         50         12            .2

~~END-MAIN-METRICS~~

~~BEGIN-DATABASE-PARAMETERS~~

INSTANCE_NUMBER PARAMETER_NAME                   VALUE
--------------- -------------------------------- ------------------------------
              1 db_block_size                    16384
              1 db_domain                        secret.example.org
~~END-DATABASE-PARAMETERS~~

~~BEGIN-IO-WAIT-HISTOGRAM~~

   SNAP_ID WAIT_CLASS           EVENT_NAME                            WAIT_TIME_MILLI WAIT_COUNT
---------- -------------------- ------------------------------------- --------------- ----------
        60 User I/O             db file sequential read                             1         30
        60 User I/O             db file sequential read                             8         70
        61 Commit               log file sync                                       2          5

~~END-IO-WAIT-HISTOGRAM~~

~~BEGIN-TOP-N-TIMED-EVENTS~~

   SNAP_ID WAIT_CLASS           EVENT_NAME                               PCTDBT TOTAL_TIME_S
---------- -------------------- ------------------------------------ ---------- ------------
        60 User I/O             db file sequential read                   62.07       400000
        61 Commit               log file sync                              5.07     99000000

~~END-TOP-N-TIMED-EVENTS~~
";

    fn draft(text: &str) -> Draft {
        let source = source(text);
        let (importer, mut drafts, notes) = import::read(&source).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((importer.kind, drafts.len(), notes.into_list()), ("awr-miner", 1, vec![]));
        drafts.remove(0)
    }

    fn figure_value(draft: &Draft, step: usize, name: &str) -> Option<f64> {
        draft.steps[step].reported.iter().find(|figure| figure.name == name).map(|figure| figure.value)
    }

    #[test]
    fn snapshots_are_steps_with_their_time_and_place() {
        let draft = draft(FILE);
        assert_eq!((draft.title.as_str(), draft.version.as_str()), ("ORA snapshots 60 to 61", "9.9.1"));
        assert_eq!((draft.target.address.as_str(), draft.target.facts.database.id), ("ORA", Some(4711)));
        assert_eq!((draft.environment.cpus, draft.environment.memory_bytes), (Some(6), Some(7 << 29)));
        assert_eq!(draft.target.block_bytes, Some(16_384));
        assert!(!draft.parameters.contains_key("db_domain"));
        let steps: Vec<(&str, u64, u64)> = draft
            .steps
            .iter()
            .map(|step| {
                (step.label.as_str(), step.window.offset_ns / 60_000_000_000, step.window.duration_ns / 60_000_000_000)
            })
            .collect();
        assert_eq!(steps, [("snapshot 60", 0, 31), ("snapshot 61", 31, 60)]);
        assert_eq!(draft.began.map(|began| began.timestamp().0.to_string()), Some("2021-05-05T09:59:00Z".to_owned()));
    }

    #[test]
    fn metrics_are_reported_by_instance_and_added_up_where_that_means_something() {
        let draft = draft(FILE);
        assert_eq!(
            (figure_value(&draft, 0, "read_iops"), figure_value(&draft, 0, "read_iops (instance 2)")),
            (Some(400.0), Some(300.0))
        );
        assert_eq!(
            (figure_value(&draft, 0, "os_cpu"), figure_value(&draft, 0, "os_cpu (instance 1)")),
            (None, Some(18.9))
        );
        assert_eq!((figure_value(&draft, 0, "aas"), figure_value(&draft, 0, "read_mb_s_max")), (Some(2.0), None));
        let step = &draft.steps[0];
        assert_eq!(step.counters.physical_reads, Some(100 * 1_800 + 300 * 1_860));
        assert_eq!(step.counters.logical_reads, None, "0.4 a second is too coarse to count with");
        assert_eq!(step.instances[0].counters.logical_reads, Some(3_600_000));
        assert_eq!(step.load.sessions, None);
    }

    #[test]
    fn waits_have_their_total_time_where_it_can_be_theirs() {
        let draft = draft(FILE);
        let wait = &draft.steps[0].waits[0];
        assert_eq!(
            (wait.event.as_str(), wait.class.as_str(), wait.waits.count()),
            ("db file sequential read", "User I/O", 100)
        );
        assert_eq!(wait.waits.total_ns(), Some(400_000_000));
        let wait = &draft.steps[1].waits[0];
        assert_eq!((wait.waits.count(), wait.waits.total_ns()), (5, None), "five waits below 2 ms are not 99 s");
        assert_eq!(figure_value(&draft, 1, "log file sync TOTAL_TIME_S"), Some(99.0));
    }

    #[test]
    fn a_file_that_is_cut_is_refused_and_a_script_is_none() {
        let cut = FILE.split("~~END-IO-WAIT").next().unwrap();
        let error = import::read(&source(cut)).unwrap_err().to_string();
        assert!(error.contains("section IO-WAIT-HISTOGRAM has no end"), "{error}");
        assert!(import::recognise("REPHEADER PAGE LEFT '~~BEGIN-MAIN-METRICS~~'").is_none());
    }

    #[test]
    fn a_line_that_is_no_row_is_reported() {
        let source = source(&FILE.replace(
            "        61 Commit               log file sync                                       2",
            "ORA-01555",
        ));
        let (_, _, notes) = import::read(&source).unwrap();
        assert!(notes.into_list()[0].what.starts_with("`ORA-01555"));
    }

    proptest! {
        #[test]
        fn nothing_that_is_cut_or_changed_makes_it_fall(from in 0usize..3_000, length in 0usize..200, byte in 1u8..127, times in 0usize..300) {
            let mut text = FILE.to_owned();
            let from = from % text.len();
            let to = (from + length).min(text.len());
            text.replace_range(from..to, &char::from(byte).to_string().repeat(times));
            let source = source(&text);
            let _ = recognises(source.head());
            let _ = read(&source, &mut Notes::new(&source));
        }
    }
}
