//! Results that were misread once, each as it came and with the values that stand in it.

use crate::specimens::{drafts, only, source};
use crate::{Draft, read};

/// A figure by its program's name in a step of a run.
fn figure(draft: &Draft, step: usize, name: &str) -> Option<f64> {
    draft.steps[step].reported.iter().find(|figure| figure.name == name).map(|figure| figure.value)
}

fn figures<const N: usize>(draft: &Draft, names: [&str; N]) -> [Option<f64>; N] {
    names.map(|name| figure(draft, 0, name))
}

#[test]
fn awr_miner_of_a_session_with_decimal_commas_loses_nothing() {
    let draft = only("awr-miner", include_str!("specimens/awr_miner_decimal_comma.out"));
    let names = ["read_iops", "aas", "l_reads_s", "AVG_SESS DB CPU", "SGA (instance 1)", "PGA (instance 1)"];
    assert_eq!(figures(&draft, names), [247.3, 0.9, 8_634.3, 0.52, 29.9, 0.3].map(Some));
    assert_eq!(draft.began.unwrap().timestamp().0.to_string(), "2013-04-23T08:24:00Z");
    assert_eq!(draft.environment.memory_bytes, Some((252.28 * f64::from(1 << 30)).round() as u64));
    assert_eq!(draft.steps.len(), 2);
}

#[test]
fn a_note_of_calibrate_io_stands_at_the_result_that_it_was_printed_for() {
    let drafts = drafts("calibrate-io", include_str!("specimens/calibrate_note_of_first.txt"));
    let noted = drafts.iter().map(|draft| draft.notes.iter().any(|note| note.contains("mostly from disk")));
    assert_eq!(noted.collect::<Vec<_>>(), [true, false, false]);
    assert_eq!(figure(&drafts[0], 0, "max_iops"), Some(154.0));
}

#[test]
fn a_completion_longer_than_the_whole_is_doubted() {
    let draft = only("fio-text", include_str!("specimens/fio_clat_beyond_lat.txt"));
    let response = &draft.steps[0].operations[0].response;
    assert_eq!(
        (response.total_ns(), response.quantile_ns(0.99)),
        (Some(18_000_000_000), Some(700_000)),
        "at most the longest"
    );
    let doubt = draft.notes.iter().find(|note| note.contains("cannot be")).unwrap();
    assert!(doubt.contains("`read clat mean` cannot be 5,") && doubt.contains("(rule `part-within-whole`)"), "{doubt}");
    let good = only("fio-text", include_str!("specimens/fio_text_depth_line.txt"));
    assert_eq!(good.steps[0].load.sessions, Some(2), "depth=2 of one job");
    assert_eq!(good.steps[0].operations[0].response.quantile_ns(0.99), Some(40_000));
}

#[test]
fn mixed_directions_of_fio_have_their_bytes() {
    let json = include_str!("specimens/fio_mixed_bytes.json");
    let megabytes = |draft: &Draft| {
        draft.steps[0].reported.iter().find_map(|figure| figure.value_of(model::record::Metric::Megabytes))
    };
    assert_eq!(megabytes(&only("fio-json", json)), Some(81.92));
    let text = include_str!("specimens/fio_text_depth_line.txt").replace("  read: IOPS=100k", "  mixed: IOPS=100k");
    let of_text = megabytes(&only("fio-text", &text)).unwrap();
    assert!((of_text - 391.0 * 1.048_576).abs() < 1e-6, "{of_text}");
}

#[test]
fn a_clock_that_is_put_forward_makes_no_sample_longer() {
    let text = include_str!("specimens/iostat_clock_forward.txt");
    let lengths_min = |text: &str| -> Vec<u64> {
        only("iostat", text).steps[0].intervals.iter().map(|one| one.duration_ns / 60_000_000_000).collect()
    };
    assert_eq!(lengths_min(text), [30, 30, 30]);
    let back = text.replace(" 03:00:00", " 01:00:00").replace(" 03:30:00", " 01:30:00");
    assert_eq!(lengths_min(&back), [30, 30, 30], "in autumn");
}

#[test]
fn a_clock_that_is_put_makes_no_interval_of_a_counter_longer() {
    let counter = |times: [&str; 5]| {
        let rows: String = times.iter().map(|time| format!("6000 Oracle tpm @ Sun Oct 25 {time} CET 2026\n")).collect();
        let draft = only(
            "hammerdb-tcount",
            &format!("Hammerdb Transaction Counter Log @ Sun Oct 25 00:00:00 CET 2026\n+-+\n{rows}"),
        );
        let intervals = &draft.steps[0].intervals;
        intervals.iter().map(|one| (one.duration_ns / 1_000_000_000, one.counters.operations)).collect::<Vec<_>>()
    };
    assert_eq!(counter(["02:59:40", "02:59:50", "02:00:00", "02:00:10", "02:00:20"]), [(10, Some(1_000)); 4]);
    assert_eq!(counter(["01:59:40", "01:59:50", "03:00:00", "03:00:10", "03:00:20"]), [(10, Some(1_000)); 4]);
}

#[test]
fn numbers_that_are_none_hide_nothing_of_iperf3() {
    let text = include_str!("specimens/iperf3_bidir_double_keys.json")
        .replace("\"remote_total\": 5", "\"remote_total\":\t-nan");
    let draft = only("iperf3-json", &text);
    assert_eq!(figures(&draft, ["sent bits/s", "remote total CPU"]), [Some(400e6), None]);
}

#[test]
fn rates_of_memory_stand_at_their_stressor() {
    let line = |text: &str| format!("stress-ng: info:  [7] {text}\n");
    let text: String = [
        "dispatching hogs: 2 memrate",
        "stress-ng-memrate: write64: 1000.00 MB/sec",
        "stress-ng-memrate:  read64: 3000.50 MB/sec",
        "stress-ng-memrate: write64: 1500.00 MB/sec",
        "stress-ng-memrate:  read64: 0.00 MB/sec",
        "successful run completed in 10.00s",
        "stressor       bogo ops real time  usr time  sys time   bogo ops/s   bogo ops/s",
        "                          (secs)    (secs)    (secs)   (real time) (usr+sys time)",
        "memrate              20     10.00     20.00      0.00         2.00         1.00",
    ]
    .map(line)
    .concat();
    let draft = only("stress-ng-text", &text);
    assert_eq!(figures(&draft, ["write64 MB/sec", "read64 MB/sec"]), [2_500.0, 3_000.5].map(Some));
}

#[test]
fn a_fence_cuts_no_sample_off() {
    let draft = only("iostat", include_str!("specimens/iostat_in_fence.md"));
    assert_eq!(figures(&draft, ["sda tps", "sdb tps"]), [900.0, 500.0].map(Some));
}

#[test]
fn a_comma_before_the_first_sample_is_that_of_an_option() {
    let draft = only("iostat-json", include_str!("specimens/iostat_json_leading_comma.json"));
    let step = &draft.steps[0];
    assert_eq!((step.intervals.len(), step.window.duration_ns), (3, 3_000_000_000));
    assert_eq!(step.intervals[0].reported["%idle"], 98.0, "the first is a sample, and no average since boot");
    assert_eq!(draft.began.unwrap().timestamp().0.to_string(), "2024-05-06T09:59:59Z");
}

#[test]
fn counters_that_ran_over_are_in_no_mean() {
    let draft = only("iostat", include_str!("specimens/iostat_wrapped_sample.txt"));
    assert_eq!(figures(&draft, ["dm-3 w/s", "dm-3 wkB/s", "dm-3 %util"]), [1.0, 1_024.0, 0.5].map(Some));
    let (first, second) = (&draft.steps[0].intervals[0], &draft.steps[0].intervals[1]);
    assert!(!first.reported.contains_key("dm-3 w/s") && second.reported["dm-3 w/s"] == 1.0);
    assert!(draft.steps[0].devices.is_empty(), "unknown in part is unknown in all");
    assert!(draft.notes.iter().any(|note| note.contains("(rule `counter-wrapped`)")), "{:?}", draft.notes);
}

#[test]
fn both_ways_of_iperf3_37_are_read_in_order() {
    let draft = only("iperf3-json", include_str!("specimens/iperf3_bidir_double_keys.json"));
    let names = ["sent bits/s", "received bits/s", "retransmits"];
    assert_eq!(figures(&draft, names), [400e6, 396e6, 5.0].map(Some));
    let names = ["reverse sent bits/s", "reverse received bits/s", "reverse retransmits"];
    assert_eq!(figures(&draft, names), [804e6, 800e6, 9.0].map(Some));
}

#[test]
fn iperf3_is_read_out_of_a_log_and_in_colours() {
    for text in [include_str!("specimens/iperf3_syslog.txt"), include_str!("specimens/iperf3_colours.txt")] {
        let draft = only("iperf3-text", text);
        assert_eq!(figures(&draft, ["sent bits/s", "received bits/s", "retransmits"]), [400e6, 396e6, 3.0].map(Some));
    }
}

#[test]
fn what_somebody_wrote_behind_a_heading_of_sysbench_hides_nothing() {
    let draft = only("sysbench", include_str!("specimens/sysbench_annotated.txt"));
    let names = ["latency min", "latency max", "latency 99th percentile"];
    assert_eq!(figures(&draft, names), [4.27, 13.8, 9.88].map(Some));
}

#[test]
fn three_programs_on_one_page_are_three_runs() {
    let (_, drafts, notes) = read(&source(include_str!("specimens/two_programs_in_one.md"))).unwrap();
    assert!(notes.is_empty(), "{:?}", notes.into_list());
    let tps = "tps (including connections establishing)";
    let found = [(0, tps), (1, "us"), (2, "transactions per sec.")].map(|(run, name)| figure(&drafts[run], 0, name));
    assert_eq!((drafts.len(), found), (3, [3_270.779_946, 90.0, 1_116.83].map(Some)));
}
