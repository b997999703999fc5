use model::record::Workload;
use proptest::prelude::*;

use super::super as import;
use super::*;
use crate::specimens::source;
use model::record::Timestamp;

fn read_all(text: &str) -> (Vec<Draft>, usize) {
    let source = source(text);
    let (importer, drafts, notes) = import::read(&source).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(importer.kind, "pylatencymap");
    (drafts, notes.into_list().len())
}

fn record(at_us: u64, unit: &str, lines: &str) -> String {
    format!(
        "<begin record>\ntimestamp, microsec, {at_us},05-MAY-21 11.59.59.000000 PM +01:00\nlabel,log file sync latency data from \
         gv$event_histogram\nlatencyunit, {unit}\n{lines}\n<end record>\n\n9 rows selected.\n\n"
    )
}

fn counts(waits: &Histogram) -> Vec<(u64, u64, u64)> {
    let document = serde_json::to_value(waits).unwrap();
    let of = |bucket: &serde_json::Value, key: &str| bucket[key].as_u64().unwrap_or(0);
    let buckets = document["reported"].as_array().unwrap();
    buckets.iter().map(|bucket| (of(bucket, "from_ns"), of(bucket, "to_ns"), of(bucket, "count"))).collect()
}

#[test]
fn what_happened_between_records_is_their_difference_over_both_instances() {
    let text = record(86_399_000_000, "millisec", "1, 100\n2, 50\n1, 10\n2, 5")
        + &record(1_000_000, "millisec", "1, 11\n2, 5\n8, 2\n1, 130\n2, 51")
        + &record(4_000_000, "millisec", "1, 130\n2, 60\n1, 11\n2, 5\n8, 2");
    let (drafts, notes) = read_all(&text);
    let [draft] = drafts.as_slice() else { panic!("{} drafts", drafts.len()) };
    let step = &draft.steps[0];
    assert_eq!((notes, step.window.duration_ns, step.waits[0].event.as_str()), (0, 5_000_000_000, "log file sync"));
    assert_eq!(
        counts(&step.waits[0].waits),
        [(0, 1_000_000, 31), (1_000_000, 2_000_000, 10), (4_000_000, 8_000_000, 2)]
    );
    let intervals: Vec<(u64, u64, u64)> =
        step.intervals.iter().map(|one| (one.offset_ns, one.duration_ns, one.waits["log file sync"].count())).collect();
    assert_eq!(intervals, [(0, 2_000_000_000, 34), (2_000_000_000, 3_000_000_000, 9)]);
    assert_eq!(draft.began, Some(Began::Utc("2021-05-05T22:59:59Z".parse().map(Timestamp).unwrap())));
}

#[test]
fn a_restart_leaves_its_interval_out() {
    let text = record(1_000_000, "microsec", "4, 100")
        + &record(2_000_000, "microsec", "4, 7")
        + &record(3_000_000, "microsec", "4, 9");
    let (drafts, _) = read_all(&text);
    assert_eq!(counts(&drafts[0].steps[0].waits[0].waits), [(2_000, 4_000, 2)]);
    assert!(drafts[0].notes.iter().any(|note| note.contains("an instance was restarted")));
}

#[test]
fn tracing_names_buckets_by_their_lower_edges() {
    let with = |source: &str, lines: &str| record(5, "nanosec", &format!("datasource, {source}\n{lines}"));
    let text = with("bpf", "1024, 0\n2048, 7") + &with("bpf", "1024, 3\n2048, 9");
    let (drafts, _) = read_all(&text);
    assert_eq!(counts(&drafts[0].steps[0].waits[0].waits), [(1_024, 2_048, 3), (2_048, 4_096, 2)]);
    assert_eq!((drafts[0].workload, drafts[0].steps[0].waits[0].layer.as_str()), (Workload::Io, "OS file"));
    let drawn =
        |count| format!("   value  ---- Distribution ---- count\n  4096 |@@@@      {count}\n  8192 |          0");
    let text = record(5, "nanosec", &drawn(4)) + &record(9, "nanosec", &drawn(10));
    assert_eq!(counts(&read_all(&text).0[0].steps[0].waits[0].waits), [(4_096, 8_192, 6)]);
}

#[test]
fn a_bucket_that_is_no_power_of_two_is_left_out_and_reported() {
    let (drafts, _) = read_all(&record(1, "millisec", "3, 9\n4, 5"));
    assert_eq!(counts(&drafts[0].steps[0].waits[0].waits), [(2_000_000, 4_000_000, 5)]);
    assert!(drafts[0].notes.iter().any(|note| note.starts_with("buckets such as 3 are left out")));
}

#[test]
fn a_record_that_is_cut_is_left_out_and_reported() {
    let whole = record(1, "millisec", "1, 5");
    let (drafts, notes) = read_all(&format!("{whole}<begin record>\nlabel,log file sync latency\n1, 9\n"));
    assert_eq!((counts(&drafts[0].steps[0].waits[0].waits), notes), (vec![(0, 1_000_000, 5)], 1));
    assert_eq!(drafts[0].steps[0].window.duration_ns, 0);
    assert!(import::read(&source("<begin record>\nlatencyunit, millisec\n1, 2\n")).is_err());
}

#[test]
fn buckets_of_two_instances_may_stand_in_any_order() {
    let text = record(1_000_000, "millisec", "1, 100\n2, 50\n1, 10\n2, 5")
        + &record(2_000_000, "millisec", "2, 6\n1, 120\n2, 50\n1, 10")
        + &record(3_000_000, "millisec", "1, 10\n1, 121\n2, 6\n2, 50");
    let (drafts, _) = read_all(&text);
    assert_eq!(counts(&drafts[0].steps[0].waits[0].waits), [(0, 1_000_000, 21), (1_000_000, 2_000_000, 1)]);
    assert_eq!(drafts[0].steps[0].intervals.len(), 2, "{:?}", drafts[0].notes);
}

#[test]
fn what_systemtap_draws_is_read_with_its_time() {
    let drawn = |at_us: u64, count: u32| {
        format!(
            "<begin record>\ntimestamp, microsec, {at_us}, Thu Jul  2 10:00:00 2015 CEST\n\
             label, Latency of block I/O requests measured with SystemTap\nlatencyunit, microsec\n\
             datasource, systemtap\nvalue |-------------------------------------------------- count\n  \
             32 |                                                    0\n  64 |@@@@            {count}\n      ~\n\n\
             <end record>\n"
        )
    };
    let (drafts, notes) = read_all(&(drawn(1_435_824_000_500_000, 4) + &drawn(1_435_824_003_500_000, 10)));
    assert_eq!((notes, counts(&drafts[0].steps[0].waits[0].waits)), (0, vec![(64_000, 128_000, 6)]));
    assert_eq!(drafts[0].began, Some(Began::Utc("2015-07-02T08:00:00Z".parse().map(Timestamp).unwrap())));
    assert_eq!(drafts[0].steps[0].waits[0].layer, "device");
}

proptest! {
    #[test]
    fn nothing_that_is_cut_or_changed_makes_it_fall(from in 0usize..600, length in 0usize..90, byte in 1u8..127, times in 0usize..90) {
        let mut text = record(1, "millisec", "1, 5\n18446744073709551615, 3") + &record(2, "nanosec", "1, 6\n  8192 |@@  7");
        let from = from % text.len();
        let to = (from + length).min(text.len());
        text.replace_range(from..to, &char::from(byte).to_string().repeat(times));
        let source = source(&text);
        let _ = recognises(source.head());
        let _ = read(&source, &mut Notes::new(&source));
    }
}
