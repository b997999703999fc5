//! What a trace is as a run, and before limits.

use super::*;
use model::record::{Clock, TargetKind, Timestamp};
use model::trace::{TraceDevice, TraceKind, TraceRequest};

const SECOND_NS: u64 = 1_000_000_000;

/// Three seconds: four reads of 8 KiB, nothing, then a write of 64 KiB and a flush; latencies of the reads are known.
fn requests() -> Vec<TraceRequest> {
    let request = |at_ns, kind, bytes, latency_ns| TraceRequest {
        at_ns,
        device: 0,
        kind,
        is_fua: false,
        offset_bytes: 0,
        bytes,
        latency_ns,
    };
    let mut all: Vec<TraceRequest> =
        (0..4).map(|at| request(at * 1_000, TraceKind::Read, 8_192, Some(1_000_000))).collect();
    all.push(request(2 * SECOND_NS, TraceKind::Write, 65_536, None));
    all.push(request(2 * SECOND_NS + 1, TraceKind::Flush, 0, None));
    all
}

fn header(began: Option<Timestamp>) -> TraceHeader {
    let devices = vec![TraceDevice { name: "sda".to_owned(), bytes: Some(1 << 30) }];
    TraceHeader { source: "plimsoll record".to_owned(), began, devices, ..TraceHeader::default() }
}

fn profiled(header: &TraceHeader, end: &TraceEnd) -> Profile {
    let mut profiler = Profiler::new(ProfileOptions::default());
    requests().iter().for_each(|request| profiler.add(request));
    profiler.finish(header, end)
}

#[test]
fn a_trace_is_a_step_with_rates_of_each_second() {
    let end = TraceEnd { duration_ns: Some(5 * SECOND_NS / 2), lost: Some(7), notes: Vec::new() };
    let began = Timestamp(jiff::Timestamp::from_second(1_793_577_600).unwrap());
    let header = header(Some(began));
    let made = draft("monday", &header, &end, &profiled(&header, &end));
    assert_eq!(
        (made.program, made.began, made.target.address.as_str()),
        ("plimsoll record", Some(import::Began::Utc(began)), "sda")
    );
    let step = &made.steps[0];
    assert_eq!((step.label.as_str(), step.window.duration_ns), ("observed", 5 * SECOND_NS / 2));
    let kinds: Vec<(&str, u64, Option<u64>)> = step
        .operations
        .iter()
        .map(|kind| (kind.kind.as_str(), kind.count, kind.service.quantile_ns(0.5).map(|ns| ns / 100_000)))
        .collect();
    assert_eq!(
        kinds.iter().map(|kind| (kind.0, kind.1)).collect::<Vec<_>>(),
        [("read", 4), ("write", 1), ("flush", 1)]
    );
    assert!(kinds[0].2.is_some_and(|tenths| (9..=11).contains(&tenths)), "{kinds:?}");
    let seconds: Vec<_> = step
        .intervals
        .iter()
        .map(|it| {
            (it.duration_ns, it.counters.operations, it.counters.physical_reads, it.counters.physical_write_bytes)
        })
        .collect();
    let half = SECOND_NS / 2;
    assert_eq!(
        seconds,
        [
            (SECOND_NS, Some(4), Some(4), Some(0)),
            (SECOND_NS, Some(0), Some(0), Some(0)),
            (half, Some(2), Some(0), Some(65_536))
        ]
    );
    let notes = made.notes.join("\n");
    assert!(notes.contains("Up to 7 requests are missing") && notes.contains("latency of 2 of 6"), "{notes}");
}

#[test]
fn without_a_time_the_run_has_that_of_its_file_or_of_1970() {
    let (header, end) = (header(None), TraceEnd::default());
    let profile = profiled(&header, &end);
    assert_eq!(draft("monday", &header, &end, &profile).began, None);
    let run = run(Path::new("dir/monday.trace"), &header, &end, &profile).unwrap();
    assert_eq!((run.id.as_str(), run.name.as_str()), ("monday.trace", "monday"));
    assert_eq!(run.started_at.0, jiff::Timestamp::UNIX_EPOCH);
    assert_eq!(run.imported.unwrap().clock, Clock::Utc);
}

#[test]
fn limits_see_the_rates_of_each_interval() {
    let (header, end) = (header(None), TraceEnd { duration_ns: Some(5 * SECOND_NS / 2), ..TraceEnd::default() });
    let profile = profiled(&header, &end);
    let recorded = recorded(&profile);
    // The last half of a second is not one of them.
    assert_eq!((recorded.interval_s(), recorded.intervals(), left_over_ns(&profile)), (1.0, 2, SECOND_NS / 2));
    let busiest = recorded.busiest().unwrap();
    assert_eq!((busiest.reads_per_s, busiest.read_bytes, busiest.writes_per_s), (4.0, 8_192.0, 0.0));
    // Three of four reads find what the first one brought.
    assert_eq!(hit_share(&profile, 1.0), Some(0.75));
}

#[test]
fn calls_are_neither_of_a_device_nor_physical() {
    let (header, end) = (header(None), TraceEnd::default());
    let target = super::draft::target(&header, true);
    assert_eq!((target.kind_name(), target.address.as_str()), ("files", ""));
    let step = super::draft::step(&profiled(&header, &end), true);
    let counters = std::iter::once(&step.counters).chain(step.intervals.iter().map(|interval| &interval.counters));
    for counters in counters {
        assert!(counters.operations.is_some());
        assert_eq!((counters.physical_reads, counters.physical_write_bytes), (None, None));
    }
    assert!(step.reported.iter().all(|reported| reported.layer != "device"), "{:?}", step.reported);
}

#[test]
fn long_names_and_many_notes_are_cut() {
    let mut header = header(None);
    header.source = "é".repeat(1_000);
    header.devices[0].name = "é".repeat(1_000);
    let end = TraceEnd { notes: vec!["é".repeat(5_000); 1_000], ..TraceEnd::default() };
    let made = draft("monday", &header, &end, &profiled(&header, &end));
    assert_eq!(made.environment.devices[0].name.chars().count(), 257);
    assert_eq!((made.target.address.chars().count(), made.parameters["SOURCE"].chars().count()), (257, 257));
    assert!(made.notes.len() < 70 && made.notes.iter().all(|note| note.chars().count() <= 1_025));
    assert!(made.notes.contains(&"The trace has 936 more notes.".to_owned()), "{:?}", made.notes.last());
}

#[test]
fn what_a_process_asked_of_its_files_is_no_load_of_devices() {
    let header = TraceHeader { layer: model::trace::TraceLayer::File, ..header(None) };
    let draft = draft("calls", &header, &TraceEnd::default(), &profiled(&header, &TraceEnd::default()));
    assert!(is_of_calls(&header));
    assert_ne!(draft.target.kind, Some(TargetKind::Block));
    assert_eq!((draft.target.address.as_str(), draft.environment.devices.len()), ("", 0));
    assert_eq!(draft.steps[0].counters.physical_reads, None);
}
