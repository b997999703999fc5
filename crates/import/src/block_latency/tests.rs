use proptest::prelude::*;

use crate::specimens::{damaged, drafts, only, source, survives};
use crate::{Began, Draft, read, recognise};

const PLAIN: &str = "# ./biolatency
Tracing block device I/O... Hit Ctrl-C to end.
^C
     usecs           : count     distribution
       0 -> 1        : 0        |                                      |
       2 -> 3        : 0        |                                      |
       4 -> 7        : 1        |*                                     |
      64 -> 127      : 30       |************************************* |
     128 -> 255      : 31       |**************************************|
";

const TIMED: &str = "# ./biolatency -mTD 2 3
Tracing block device I/O... Hit Ctrl-C to end.

23:59:59
Bucket disk = 'sda'
     msecs               : count     distribution
         0 -> 1          : 7        |****************************************|

disk = 'sdb'
     msecs               : count     distribution
         0 -> 1          : 0        |                                        |
         2 -> 3          : 2        |****************************************|

00:00:01
disk = 'sda'
     msecs               : count     distribution
         0 -> 1          : 5        |****************************************|

00:00:03
disk = 'sda'
     msecs               : count     distribution
         0 -> 1          : 3        |****************************************|
         2 -> 3          : 1        |****************************************|
avg = 0 msecs, total: 3 msecs, count: 4
";

const FLAGS: &str = "$ sudo biolatency-bpfcc -QF
Tracing block device I/O... Hit Ctrl-C to end.

flags = Sync-Write
     usecs               : count     distribution
         8 -> 15         : 4        |****************************************|
flags = Read
     usecs               : count     distribution
        16 -> 31         : 6        |****************************************|
";

const DICTIONARIES: &str = "\
{'ts': '2020-12-30 14:40:00', 'val_type': 'usecs', 'data': [{'interval-start': 0, 'interval-end': 1, 'count': 0}, \
{'interval-start': 2, 'interval-end': 3, 'count': 8}], 'Bucket ptr': b'sda'}
{'ts': '2020-12-30 14:40:05', 'val_type': 'usecs', 'data': [{'interval-start': 4, 'interval-end': 7, 'count': 2}], 'Bucket ptr': b'sda'}
";

const MAPS: &str = "Attaching 4 probes...
Tracing block device I/O... Hit Ctrl-C to end.
^C

@usecs:
[0]                    3 |@@@                                                 |
[2, 4)                 0 |                                                    |
[512, 1K)              5 |@@@@@@                                              |
[1K, 2K)              40 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
[1M, 2M)               1 |@                                                   |

";

const FTRACE: &str = "# ./iolatency 5
Tracing block I/O. Output every 5 seconds. Ctrl-C to end.

  >=(ms) .. <(ms)   : I/O      |Distribution                          |
       0 -> 1       : 2104     |######################################|
       1 -> 2       : 280      |######                                |

  >=(ms) .. <(ms)   : I/O      |Distribution                          |
       0 -> 1       : 1000     |######################################|
       1 -> 2       : 0        |                                      |
       2 -> 4       : 16       |#                                     |
^C
Ending tracing...
";

/// An event, its layer, and its buckets in microseconds with their counts.
type Wait = (String, String, Vec<(u64, u64, u64)>);

fn waits(draft: &Draft) -> Vec<Wait> {
    let of = |wait: &model::record::WaitStats| {
        let buckets = wait.waits.reported_buckets();
        let buckets =
            buckets.iter().map(|bucket| (bucket.from_ns / 1_000, bucket.to_ns.unwrap() / 1_000, bucket.count));
        (wait.event.clone(), wait.layer.clone(), buckets.collect())
    };
    draft.steps[0].waits.iter().map(of).collect()
}

#[test]
fn a_table_of_bcc_has_ranges_that_end_with_their_last_microsecond() {
    let draft = only("biolatency", PLAIN);
    assert_eq!(waits(&draft), [("block I/O".into(), "device".into(), vec![(4, 8, 1), (64, 128, 30), (128, 256, 31)])]);
    let step = &draft.steps[0];
    assert_eq!((step.window.duration_ns, step.intervals.len(), step.waits[0].waits.total_ns()), (0, 0, None));
    assert!(draft.notes.iter().any(|note| note.contains("no rates")), "{:?}", draft.notes);
}

#[test]
fn disks_are_distinguished_and_prints_are_intervals_also_over_midnight() {
    let draft = only("biolatency", TIMED);
    let sda = vec![(0, 2_000, 15), (2_000, 4_000, 1)];
    let expected = [("block I/O of sda", sda), ("block I/O of sdb", vec![(2_000, 4_000, 2)])];
    assert_eq!(waits(&draft), expected.map(|(event, buckets)| (event.into(), "device".into(), buckets)));
    let step = &draft.steps[0];
    assert_eq!((step.window.duration_ns, step.intervals.len()), (6_000_000_000, 3));
    let counts: Vec<(u64, u64, u64)> = step
        .intervals
        .iter()
        .map(|one| {
            (one.offset_ns / 1_000_000_000, one.duration_ns / 1_000_000_000, one.waits["block I/O of sda"].count())
        })
        .collect();
    assert_eq!(counts, [(0, 2, 7), (2, 2, 5), (4, 2, 4)]);
    assert_eq!(step.intervals[2].waits["block I/O of sda"].total_ns(), Some(3_000_000));
    assert_eq!(step.intervals[0].waits.len(), 2);
    assert_eq!(draft.command, ["./biolatency", "-mTD", "2", "3"]);
}

#[test]
fn kinds_of_requests_are_distinguished_and_the_queue_is_said() {
    let draft = only("biolatency", FLAGS);
    let events: Vec<_> = waits(&draft).into_iter().map(|(event, layer, _)| (event, layer)).collect();
    let expected = ["block I/O of Read with its queue", "block I/O of Sync-Write with its queue"];
    assert_eq!(events, expected.map(|event| (event.to_owned(), "OS file".to_owned())));
    let written_in_c = "Tracing block device I/O... Hit Ctrl-C to end.\n\ndisk = nvme0n1\tflags = Read\n     usecs               : count    distribution\n         8 -> 15         : 4        |****|\n";
    assert_eq!(waits(&only("biolatency", written_in_c))[0].0, "block I/O of nvme0n1 Read");
}

#[test]
fn what_other_tools_trace_is_no_block_io() {
    let other = PLAIN.replace("block device I/O", "run queue latency").replace("# ./biolatency\n", "");
    assert!(recognise(&other).is_none());
    let both = format!("{PLAIN}{other}");
    assert_eq!(waits(&only("biolatency", &both)), waits(&only("biolatency", PLAIN)));
    assert!(recognise(&MAPS.replace("block device I/O", "TCP")).is_none());
    assert!(recognise("We ran biolatency yesterday.\n usecs : count distribution\n 0 -> 1 : 3 |*|\n").is_none());
}

#[test]
fn dictionaries_of_python_and_json_are_the_same() {
    let draft = only("biolatency-json", DICTIONARIES);
    assert_eq!(waits(&draft), [("block I/O of sda".into(), "device".into(), vec![(2, 4, 8), (4, 8, 2)])]);
    let step = &draft.steps[0];
    assert_eq!((step.window.duration_ns, step.intervals.len()), (10_000_000_000, 2));
    assert_eq!(draft.began.map(Began::timestamp).unwrap().0.to_string(), "2020-12-30T14:39:55Z");
    let json = DICTIONARIES.replace("b'", "'").replace('\'', "\"");
    assert_eq!(waits(&only("biolatency-json", &json)), waits(&draft));
    let other = DICTIONARIES.replace("sda", "sdb");
    assert_eq!(
        waits(&only("biolatency-json", &other))[0].0,
        "block I/O of sdb",
        "its last letter is no mark of Python"
    );
    let cut = DICTIONARIES.get(..DICTIONARIES.len() - 40).unwrap();
    let (_, drafts, notes) = read(&source(cut)).unwrap();
    assert_eq!((drafts[0].steps[0].waits[0].waits.count(), notes.into_list().len()), (8, 1));
}

#[test]
fn maps_of_bpftrace_count_by_1024() {
    let draft = only("biolatency-bt", MAPS);
    let expected = vec![(0, 1, 3), (512, 1_024, 5), (1_024, 2_048, 40), (1 << 20, 2 << 20, 1)];
    assert_eq!(waits(&draft), [("block I/O".into(), "device".into(), expected)]);
    let of_disks = MAPS.replace("@usecs:", "@usecs[sda]:") + "@usecs[sdb]:\n[2, 4)   4 |@@|\n";
    let events: Vec<_> = waits(&only("biolatency-bt", &of_disks)).into_iter().map(|(event, ..)| event).collect();
    assert_eq!(events, ["block I/O of sda", "block I/O of sdb"]);
}

#[test]
fn a_map_that_is_not_cleared_counts_once() {
    let print = |time: &str, count: u64| format!("{time}\n@usecs:\n[2, 4)   {count} |@@|\n");
    let begin = "Tracing block device I/O... Hit Ctrl-C to end.\n";
    let of = |counts: [u64; 3]| {
        let times = ["10:00:00", "10:00:01", "10:00:02"];
        let prints: String = times.iter().zip(counts).map(|(time, count)| print(time, count)).collect();
        let draft = only("biolatency-bt", &format!("{begin}{prints}"));
        (draft.steps[0].waits[0].waits.count(), draft.notes.iter().any(|note| note.contains("not cleared")))
    };
    assert_eq!(of([5, 7, 20]), (20, true));
    assert_eq!(of([5, 7, 6]), (18, false));
}

#[test]
fn iolatency_tells_its_interval() {
    let draft = only("iolatency", FTRACE);
    let expected = vec![(0, 1_000, 3_104), (1_000, 2_000, 280), (2_000, 4_000, 16)];
    assert_eq!(waits(&draft), [("block I/O".into(), "device".into(), expected)]);
    let step = &draft.steps[0];
    assert_eq!((step.window.duration_ns, step.intervals.len()), (10_000_000_000, 2));
    assert_eq!(step.intervals[1].waits["block I/O"].count(), 1_016);
    assert_eq!(drafts("iolatency", &FTRACE.repeat(2)).len(), 2);
}

#[test]
fn what_counted_nothing_is_no_result() {
    let nothing = "Tracing block device I/O... Hit Ctrl-C to end.\n     usecs           : count     distribution\n";
    assert!(read(&source(nothing)).unwrap_err().to_string().contains("counted anything"));
}

proptest! {
    #[test]
    fn damaged_files_give_runs_or_errors(file in damaged(&[PLAIN, TIMED, FLAGS, DICTIONARIES, MAPS, FTRACE])) {
        survives(file);
    }
}
