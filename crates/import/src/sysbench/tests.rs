use model::record::Workload;
use proptest::prelude::*;

use super::{read, recognises};
use crate::specimens::{damaged, source, survives};
use crate::{Draft, ImportError, Notes};
use model::record::Outcome;

const NEW: &str = "$ /usr/bin/sysbench --threads=4 --mysql-password=hush --pgsql-password hush /x/oltp_read_only.lua run\n\
sysbench 1.0.18 (using system LuaJIT 2.1.0)\n\nRunning the test with following options:\nNumber of threads: 4\n\
Target transaction rate: 50/sec\nReport intermediate results every 10 second(s)\n\nThreads started!\n\n\
[ 10s ] thds: 4 tps: 40.00 qps: 800.00 (r/w/o: 560.00/160.00/80.00) lat (ms,99%): 12.50 err/s: 0.20 reconn/s: 0.00\n\
[ 10s ] queue length: 3, concurrency: 2\n\
[ 20s ] thds: 4 tps: 60.00 qps: 1200.00 (r/w/o: 840.00/240.00/120.00) lat (ms,99%): 11.50 err/s: 0.00 reconn/s: 0.00\n\
Latency histogram (values are in milliseconds)\n       value  ------------- distribution ------------- count\n\
       4.000 |****************************************  600\n       8.000 |**********                                399\n      20.000 |                                          1\n \n\
SQL statistics:\n    queries performed:\n        read:                            14000\n        write:                           4000\n\
        other:                           2000\n        total:                           20000\n    transactions:                        1000   (50.00 per sec.)\n\
    queries:                             20000  (1000.00 per sec.)\n    ignored errors:                      2      (0.10 per sec.)\n\
    reconnects:                          0      (0.00 per sec.)\n\nGeneral statistics:\n    total time:                          20.0000s\n\
    total number of events:              1000\n\nLatency (ms):\n         min:                                    3.90\n         avg:                                    5.60\n\
         max:                                   20.10\n         99th percentile:                       11.90\n         sum:                                 5600.00\n\n\
Threads fairness:\n    events (avg/stddev):           250.0000/3.00\n    execution time (avg/stddev):   19.9000/0.01\n";

const OLD_FILES: &str = "sysbench 0.4.12:  multi-threaded system evaluation benchmark\n\nRunning the test with following options:\nNumber of threads: 2\n\n\
Extra file open flags: 0\n16 files, 64Mb each\n1Gb total file size\nBlock size 16Kb\nDoing random r/w test\nThreads started!\nDone.\n\n\
Operations performed:  600 Read, 400 Write, 1280 Other = 2280 Total\nRead 9.375Mb  Written 6.25Mb  Total transferred 15.625Mb  (1.5625Mb/sec)\n\
  100.00 Requests/sec executed\n\nTest execution summary:\n    total time:                          10.0000s\n    total number of events:              1000\n\
    total time taken by event execution: 4.0000\n    per-request statistics:\n         min:                                  0.01ms\n\
         avg:                                  4.00ms\n         max:                                 60.00ms\n         approx.  95 percentile:              21.00ms\n";

const NEW_FILES: &str = "sysbench 1.1.0 (using bundled LuaJIT)\nRunning the test with following options:\nNumber of threads: 1\n\
Extra file open flags: directio\n[ 1s ] reads: 10.00 MiB/s writes: 5.00 MiB/s fsyncs: 26.10/s latency (ms,95%): 1.500\n\
Throughput:\n         read:  IOPS=640.00 10.00 MiB/s (10.49 MB/s)\n         write: IOPS=320.00 5.00 MiB/s (5.24 MB/s)\n         fsync: IOPS=26.10\n\n\
Latency (ms):\n         min:                                    0.10\n         avg:                                    1.00\n         max:                                    9.00\n\
         95th percentile:                        1.50\n         sum:                                  986.10\n\nThroughput:\n    events/s (eps):                      986.1\n    time elapsed:                        1.0000s\n    total number of events:              986\n";

const MEMORY: &str = "sysbench 1.0.20\nRunning the test with following options:\nNumber of threads: 1\nRunning memory speed test with the following options:\n\
  block size: 1KiB\n  operation: write\nThreads started!\n[ 1s ] 5960.47 MiB/sec\nTotal operations: 1000 (500.00 per second)\n\n0.98 MiB transferred (0.49 MiB/sec)\n\n\
General statistics:\n    total time:                          2.0000s\n    total number of events:              1000\n\nLatency (ms):\n         min:  0.00\n         avg:  0.00\n         max:  0.03\n         95th percentile: 0.00\n         sum:  1.20\n";

fn one(text: &str) -> Draft {
    assert!(recognises(text), "{text}");
    let mut notes = Notes::default();
    let draft = read(&source(text), &mut notes).unwrap().remove(0);
    assert!(notes.is_empty(), "{:?}", notes.into_list());
    draft
}

fn figure_value(draft: &Draft, name: &str) -> f64 {
    draft.steps[0].reported.iter().find(|figure| figure.name == name).unwrap_or_else(|| panic!("no {name}")).value
}

#[test]
fn transactions_with_their_histogram_and_intervals() {
    let draft = one(NEW);
    let step = &draft.steps[0];
    assert_eq!(
        (draft.workload, draft.title.as_str(), draft.version.as_str()),
        (Workload::Transactions, "oltp_read_only", "1.0.18")
    );
    assert_eq!((step.load.sessions, step.load.rate_operations_per_s), (Some(4), Some(50.0)));
    assert_eq!(
        (step.counters.operations, step.counters.errors, step.window.duration_ns),
        (Some(1_000), Some(2), 20_000_000_000)
    );
    let response = &step.operations[0].response;
    let buckets: Vec<(u64, u64, u64)> = response.buckets_ns().collect();
    assert_eq!(buckets.iter().map(|bucket| bucket.2).collect::<Vec<_>>(), [600, 399, 1]);
    assert!(
        buckets
            .iter()
            .zip([4.0, 8.0, 20.0])
            .all(|(bucket, ms)| bucket.0 as f64 <= ms * 1e6 && bucket.1 as f64 >= ms * 1e6)
    );
    assert!(buckets.iter().all(|bucket| bucket.1 as f64 / (bucket.0 as f64) < 1.019), "{buckets:?}");
    assert_eq!((response.total_ns(), response.max_ns()), (Some(5_600_000_000), Some(20_100_000)));
    assert_eq!(
        (figure_value(&draft, "queries performed: read"), figure_value(&draft, "queries per sec.")),
        (14_000.0, 1_000.0)
    );
    assert_eq!(figure_value(&draft, "latency 99th percentile"), 11.9);
    let first = &step.intervals[0];
    assert_eq!((step.intervals.len(), first.counters.operations, first.counters.errors), (2, Some(400), Some(2)));
    assert_eq!(["r", "w", "o", "queue length"].map(|name| first.reported[name]), [560.0, 160.0, 80.0, 3.0]);
    assert_eq!(first.response.quantile_ns(0.99), Some(12_500_000));
}

#[test]
fn a_histogram_that_lost_events_is_left_out() {
    let draft = one(&NEW
        .replace("                                 399", "                                 300")
        .replace("  399\n", "  300\n"));
    assert!(draft.notes.iter().any(|note| note.contains("holds 901 events")), "{:?}", draft.notes);
    assert_eq!(draft.steps[0].operations[0].response.quantile_ns(0.99), Some(11_900_000));
    assert_eq!(draft.steps[0].operations[0].service.total_ns(), None, "an open loop adds the time in its queue");
}

#[test]
fn passwords_of_the_command_are_hidden() {
    let draft = one(NEW);
    assert!(!format!("{draft:?}").contains("hush"), "{:?}", draft.command);
    assert!(draft.command.contains(&"--mysql-password=***".to_owned()) && draft.command.contains(&"***".to_owned()));
}

#[test]
fn files_of_old_and_new_versions_are_read() {
    let draft = one(OLD_FILES);
    let step = &draft.steps[0];
    assert_eq!((draft.workload, draft.title.as_str(), draft.version.as_str()), (Workload::Io, "fileio", "0.4.12"));
    assert_eq!((step.counters.physical_reads, step.counters.physical_writes), (Some(600), Some(400)));
    assert_eq!(
        (step.counters.physical_read_bytes, figure_value(&draft, "Total transferred")),
        (Some(9_830_400), 16_384_000.0)
    );
    let response = &step.operations[0].response;
    assert_eq!((response.total_ns(), response.quantile_ns(0.95)), (Some(4_000_000_000), Some(21_000_000)));

    let draft = one(NEW_FILES);
    let step = &draft.steps[0];
    assert_eq!((step.counters.physical_reads, step.counters.physical_write_bytes), (Some(640), Some(5 << 20)));
    assert_eq!((step.operations[0].count, step.window.duration_ns), (986, 1_000_000_000));
    assert_eq!(step.intervals[0].counters.physical_read_bytes, Some(10 << 20));
    assert_eq!(step.intervals[0].reported["lat 95%"], 1.5);
}

#[test]
fn memory_is_a_test_of_the_processor() {
    let draft = one(MEMORY);
    assert_eq!((draft.workload, draft.title.as_str()), (Workload::Processor, "memory"));
    assert_eq!((figure_value(&draft, "transferred"), figure_value(&draft, "transferred per second")), (0.98, 0.49));
    assert_eq!(
        (draft.steps[0].counters.operations, draft.steps[0].intervals[0].reported["MiB/sec"]),
        (Some(1_000), 5_960.47)
    );
}

#[test]
fn memory_behind_prefixes_and_of_several_machines_is_distinguished() {
    let behind = |prefix: &str| MEMORY.lines().map(|line| format!("{prefix}{line}\n")).collect::<String>();
    for prefix in
        ["[db-1] ", "[16:21:53] ", "2026-04-23 16:21:53 [db-1] ", "Apr 23 16:21:53 db-1 sysbench[17]: ", "a-1  | "]
    {
        let draft = one(&behind(prefix));
        assert_eq!((draft.workload, draft.title.as_str()), (Workload::Processor, "memory"), "{prefix}");
        assert_eq!(
            (figure_value(&draft, "transferred"), figure_value(&draft, "Total operations per sec.")),
            (0.98, 500.0),
            "{prefix}"
        );
        assert_eq!(draft.steps[0].intervals[0].reported["MiB/sec"], 5_960.47, "{prefix}");
    }
    let (one, other) = (behind("[db-1] "), behind("[db-2] ").replace("0.98 MiB", "1.96 MiB"));
    let mixed: String = one.lines().zip(other.lines()).map(|(one, other)| format!("{one}\n{other}\n")).collect();
    let drafts = read(&source(&mixed), &mut Notes::default()).unwrap();
    assert_eq!(drafts.iter().map(|draft| figure_value(draft, "transferred")).collect::<Vec<_>>(), [0.98, 1.96]);
}

#[test]
fn statistics_after_a_checkpoint_are_of_the_time_since_then() {
    let at = NEW.find("SQL statistics").unwrap();
    let first =
        format!("[ 15s ] Checkpoint report:\n{}", &NEW[at..]).replace("20.0000s", "15.0000s").replace("1000 ", "700 ");
    let text = format!("{}{first}\n{}", &NEW[..NEW.find("Latency histogram").unwrap()], &NEW[at..]);
    let draft = one(&text);
    let step = &draft.steps[0];
    assert_eq!((step.counters.operations, step.window.duration_ns), (Some(1_000), 5_000_000_000));
    assert_eq!((step.load.rate_operations_per_s, step.intervals.len()), (Some(50.0), 1));
    assert_eq!((step.intervals[0].offset_ns, step.intervals[0].duration_ns), (0, 5_000_000_000));
    assert_eq!(step.reported.iter().filter(|figure| figure.name == "transactions per sec.").count(), 1);
    assert!(draft.notes.iter().any(|note| note.contains("after 15 s")), "{:?}", draft.notes);
}

#[test]
fn percentiles_that_are_switched_off_are_not_known() {
    let text = NEW
        .replace("(ms,99%): 12.50", "(ms,0%): 0.00")
        .replace("99th percentile:                       11.90", "percentile stats:               disabled");
    let draft = one(&text);
    let first = &draft.steps[0].intervals[0];
    assert!(
        !first.reported.keys().any(|name| name.starts_with("lat")) && !first.response.is_distribution(),
        "{:?}",
        first.reported
    );
    let idle = NEW.replace("tps: 40.00", "tps: 0.00").replace("12.50 err", "0.00 err");
    assert!(!one(&idle).steps[0].intervals[0].reported.contains_key("lat 99%"));
}

#[test]
fn latencies_too_short_to_be_printed_are_not_nothing() {
    let step = one(MEMORY).steps.remove(0);
    let response = &step.operations[0].response;
    assert_eq!((response.min_ns(), response.max_ns(), response.total_ns()), (None, Some(30_000), Some(1_200_000)));
    assert_eq!(response.quantile_ns(0.5), Some(30_000), "no more is known than the maximum");
    let names: Vec<&str> =
        step.reported.iter().map(|figure| figure.name.as_str()).filter(|name| name.starts_with("latency")).collect();
    assert_eq!(names, ["latency max", "latency sum"]);
}

#[test]
fn settings_that_begin_alike_are_all_kept() {
    let text = OLD_FILES.replace("Doing random", "Using synchronous I/O mode\nUsing two threads\nDoing random");
    assert_eq!(one(&text).parameters["Using"], "synchronous I/O mode; two threads");
}

#[test]
fn several_runs_in_a_file_are_several() {
    let text = format!("{NEW}{OLD_FILES}\n{MEMORY}");
    let drafts = read(&source(&text), &mut Notes::default()).unwrap();
    assert_eq!(
        drafts.iter().map(|draft| draft.title.as_str()).collect::<Vec<_>>(),
        ["oltp_read_only", "fileio", "memory"]
    );
}

#[test]
fn a_run_that_was_killed_has_its_intervals_and_one_cut_in_its_statistics_is_damaged() {
    let killed = &NEW[..NEW.find("Latency histogram").unwrap()];
    let draft = one(killed);
    assert_eq!((&draft.steps[0].outcome, draft.steps[0].counters.operations), (&Outcome::Unfinished, None));
    assert_eq!(draft.steps[0].window.duration_ns, 20_000_000_000);
    let cut = &NEW[..NEW.find("General statistics").unwrap()];
    assert!(matches!(read(&source(cut), &mut Notes::default()), Err(ImportError::Damaged { .. })));
}

#[test]
fn preparing_tables_is_no_result() {
    let text =
        "sysbench 1.0.20 (using bundled LuaJIT)\n\nCreating table 'sbtest1'...\nInserting 100 records into 'sbtest1'\n";
    assert!(!recognises(text));
    assert!(read(&source(text), &mut Notes::default()).is_err());
    assert!(!recognises("We ran sysbench 1.0.20. Threads started! Latency (ms): 3\n"));
}

#[test]
fn a_line_of_progress_that_is_cut_is_noted() {
    let mut notes = Notes::default();
    let text = NEW.replace("[ 20s ] thds: 4 tps: 60.00", "[ 20s ] thds\n[ 21s ] thds: 4 tps: 60.00");
    read(&source(&text), &mut notes).unwrap();
    assert_eq!(notes.places().len(), 1);
}

proptest! {
    #[test]
    fn damaged_files_give_runs_or_errors(file in damaged(&[NEW, OLD_FILES, NEW_FILES, MEMORY])) {
        survives(file);
    }
}
