//! Event histograms, AWR Miner, ORION and calibrations.

use super::read;
use model::record::{Histogram, Step};

fn waits<'a>(step: &'a Step, event: &str) -> &'a Histogram {
    &step.waits.iter().find(|wait| wait.event == event).unwrap_or_else(|| panic!("there is no {event}")).waits
}

/// Count and upper edge in microseconds.
fn bucket(waits: &Histogram, upper_us: u64) -> Option<u64> {
    let document = serde_json::to_value(waits).unwrap();
    let of = |key: &str, bucket: &serde_json::Value| bucket[key].as_u64();
    let buckets = document["reported"].as_array().unwrap();
    buckets.iter().find(|bucket| of("to_ns", bucket) == Some(upper_us * 1_000)).and_then(|bucket| of("count", bucket))
}

#[test]
fn the_histogram_of_a_snapshot_is_read_though_its_blanks_were_lost() {
    let Some(drafts) = read("event-histogram", "evhist/dba_hist_event_histogram_gc_cr_2way.txt") else { return };
    let waits = waits(&drafts[0].steps[0], "gc cr block 2-way");
    let expected =
        [(1, 110_970), (2, 3_620_790), (4, 1_708_432), (8, 15_685), (16, 340), (32, 26), (64, 8), (128, 1), (256, 1)];
    for (ms, count) in expected {
        assert_eq!(bucket(waits, ms * 1_000), Some(count), "{ms} ms");
    }
    assert_eq!((bucket(waits, 2_048_000), bucket(waits, 512_000)), (Some(1), None));
    assert_eq!(drafts[0].began.unwrap().timestamp().0.to_string(), "2012-11-01T17:00:15.638Z");
}

#[test]
fn three_spools_within_an_article_are_three_steps() {
    let Some(drafts) = read("event-histogram", "../seeds/001_ed0fe847ad05b651.txt") else { return };
    let steps: Vec<(&str, Option<u64>, Option<u64>)> = drafts[0]
        .steps
        .iter()
        .map(|step| {
            let waits = waits(step, "db file sequential read");
            (step.label.as_str(), bucket(waits, 512), bucket(waits, 262_144))
        })
        .collect();
    assert_eq!(
        steps,
        [
            ("Optimized for latency", Some(390_619), Some(1)),
            ("Default storage", Some(285_811), Some(10)),
            ("Filesystem cache", Some(126_705), Some(1)),
        ]
    );
}

#[test]
fn orion_summaries_give_their_best_points() {
    let expected = [
        ("sdb", 362.46, (0, 2), 22_817.0, 5, 190.0, 2),
        ("vdb", 1_554.54, (0, 2), 19_019.0, 5, 260.0, 5),
        ("vdd", 90.25, (0, 1), 2_401.0, 4, 440.0, 1),
    ];
    for (device, mbps, (_, large), iops, small, latency_us, small_of_latency) in expected {
        let Some(drafts) = read("orion-summary", &format!("orion/orion_11.1_simple_{device}.txt")) else { return };
        let draft = &drafts[0];
        assert_eq!(draft.version, "11.1.0.7.0");
        let figure = |label: &str, name: &str| {
            let step = draft.steps.iter().find(|step| step.label == label)?;
            step.reported.iter().find(|figure| figure.name == name).map(|figure| figure.value)
        };
        assert_eq!(figure(&format!("small0_large{large}"), "Maximum Large MBPS"), Some(mbps));
        assert_eq!(figure(&format!("small{small}_large0"), "Maximum Small IOPS"), Some(iops));
        let latency = figure(&format!("small{small_of_latency}_large0"), "Minimum Small Latency").unwrap();
        assert!((latency - latency_us).abs() < 1e-6, "{latency}");
        assert_eq!(draft.target.address, format!("/dev/{device}"));
    }
}

#[test]
fn three_lines_of_orion_are_enough() {
    let Some(drafts) = read("orion-summary", "orion/orion_11.2_windows_simple_results.txt") else { return };
    let figures: Vec<(f64, &str)> = drafts[0]
        .steps
        .iter()
        .flat_map(|step| &step.reported)
        .map(|figure| (figure.value, figure.unit.as_str()))
        .collect();
    assert_eq!(figures, [(32.78, "MB/s"), (84.0, "/s"), (20_349.84, "us")]);
}

#[test]
fn what_orion_19c_prints_is_read_with_its_histogram() {
    let Some(drafts) = read("orion-console", "orion/orion_19.3_simple_acfs_console_histogram.txt") else { return };
    let draft = &drafts[0];
    assert_eq!(draft.version, "19.3.0.0.0DBRU_LINUX.X64_190417");
    assert_eq!(draft.began.unwrap().timestamp().0.to_string(), "2021-11-13T18:09:00Z");
    let step = draft.steps.iter().find(|step| step.label == "small2_large0").unwrap();
    let reads = &step.operations[0].service;
    assert_eq!((bucket(reads, 128), bucket(reads, 256), reads.count()), (Some(1_112_243), Some(102_320), 1_220_664));
    assert_eq!((reads.min_ns(), reads.max_ns()), (Some(63_652), Some(2_133_198)));
    let most = draft.steps.iter().find(|step| step.label == "small10_large0").unwrap();
    let figures: Vec<(&str, f64)> = most.reported.iter().map(|figure| (figure.name.as_str(), figure.value)).collect();
    assert_eq!(figures[..2], [("Maximum Small IOPS", 58_778.0), ("read latency avg", 169.594)]);
    assert!(figures.contains(&("read latency max", 1_924.721)));
}

#[test]
fn calibrations_are_read_from_the_view_and_from_what_is_printed() {
    let Some(drafts) = read("calibrate-io", "calibrate_io/rac_19c_dba_rsrc_io_calibrate.txt") else { return };
    let figures = |draft: &crate::Draft| -> Vec<(String, f64)> {
        draft.steps[0].reported.iter().map(|figure| (figure.name.clone(), figure.value)).collect()
    };
    let expected = |name: &str, value: f64| (name.to_owned(), value);
    let [iops, mbps, latency] =
        [expected("max_iops", 24_002.0), expected("max_mbps", 175.0), expected("latency", 10.868)];
    assert_eq!(figures(&drafts[0]), [iops.clone(), mbps.clone(), expected("max_pmbps", 186.0), latency.clone()]);
    assert_eq!(drafts[0].parameters["NUM_PHYSICAL_DISKS"], "1");
    let drafts = read("calibrate-io", "calibrate_io/rac_19c_dbms_output_with_note.txt").unwrap();
    assert_eq!((drafts.len(), figures(&drafts[0])), (1, vec![iops, mbps, latency]));
    assert!(
        drafts[0].notes.iter().any(|note| note.starts_with("Oracle: The high I/O latencies")),
        "{:?}",
        drafts[0].notes
    );
}

#[test]
fn records_of_two_instances_are_differenced_and_added_up() {
    let Some(drafts) = read("pylatencymap", "evhist/pylatencymap_example_latency_data.txt") else { return };
    let [draft] = drafts.as_slice() else { panic!("{} drafts", drafts.len()) };
    assert_eq!(draft.began.unwrap().timestamp().0.to_string(), "2013-08-26T14:26:51.653754Z");
    let step = &draft.steps[0];
    let first = &step.intervals[0];
    assert_eq!(first.duration_ns, 3_017_710_000);
    let waits_of_first = &first.waits["db file sequential read"];
    // 4131014 - 4129312, 4877809 - 4875183 and 3314223 - 3307878; the second instance stood still.
    let counts = [1, 2, 16].map(|ms| bucket(waits_of_first, ms * 1_000));
    assert_eq!(counts, [Some(1_702), Some(2_626), Some(6_345)]);
    let all = waits(step, "db file sequential read");
    // From the first record to the last: 4286252 - 4129312 and 2681470 - 2681431.
    assert_eq!(bucket(all, 1_000), Some(156_940 + 39));
}

#[test]
fn drawn_histograms_of_dtrace_have_lower_edges() {
    let Some(drafts) = read("pylatencymap", "evhist/pylatencymap_test_DTrace_data.txt") else { return };
    let first = &drafts[0].steps[0].intervals[0].waits["pread"];
    let document = serde_json::to_value(first).unwrap();
    let buckets = document["reported"].as_array().unwrap();
    let most = buckets.iter().find(|bucket| bucket["from_ns"] == 524_288).unwrap();
    assert_eq!((most["to_ns"].as_u64(), most["count"].as_u64()), (Some(1_048_576), Some(48_677 - 23_806)));
}

#[test]
fn snapshots_of_a_cluster_are_steps() {
    let Some(drafts) = read("awr-miner", "evhist/awrminer_4.0.11_flavia_rac_11203.out") else { return };
    let draft = &drafts[0];
    assert_eq!((draft.title.as_str(), draft.version.as_str()), ("FLAVIA snapshots 800 to 804", "4.0.11"));
    let facts = draft.target.facts.shown();
    let fact = |name: &str| facts.get(name).map(String::as_str);
    assert_eq!(
        (fact("db_id"), fact("HOSTS"), fact("VERSION")),
        (Some("1836093013"), Some("rac1,rac2"), Some("11.2.0.3.0"))
    );
    assert_eq!(draft.steps.iter().map(|step| step.instances.len()).collect::<Vec<_>>(), [1, 2, 2, 2, 2]);
    let value_of =
        |name: &str| draft.steps[1].reported.iter().find(|figure| figure.name == name).map(|figure| figure.value);
    assert_eq!((value_of("read_iops (instance 1)"), value_of("read_iops (instance 2)")), (Some(3.5), Some(5.8)));
    assert_eq!((value_of("LGWR SM_W_REQS"), value_of("SYSSTAT read_iops")), (Some(1_402.0), Some(9.4)));
    let reads = waits(&draft.steps[1], "db file sequential read");
    assert_eq!(
        (bucket(reads, 1_000), bucket(reads, 64_000), bucket(reads, 2_048_000)),
        (Some(475), Some(4_031), Some(1))
    );
    assert_eq!(reads.total_ns(), Some(638_541_210_000));
    assert_eq!(draft.steps[1].window.duration_ns, 61 * 60_000_000_000);
}
