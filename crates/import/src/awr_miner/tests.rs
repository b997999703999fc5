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
    assert_eq!((draft.target.address.as_str(), draft.target.facts["db_id"].as_str()), ("ORA", "4711"));
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
    assert_eq!((figure_value(&draft, 0, "os_cpu"), figure_value(&draft, 0, "os_cpu (instance 1)")), (None, Some(18.9)));
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
    let source =
        source(&FILE.replace(
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
