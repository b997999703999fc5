use std::io::Write;

use proptest::prelude::*;

use super::{TraceFile, TraceWriter, rounded};
use crate::{TraceError, TraceSource};
use model::record::Timestamp;
use model::trace::{TraceDevice, TraceEnd, TraceHeader, TraceKind, TraceRequest};
use model::workload::Rng;

fn header() -> TraceHeader {
    let device = |name: &str, bytes| TraceDevice { name: name.to_owned(), bytes };
    TraceHeader {
        source: "a test".to_owned(),
        began: "2026-11-30T10:00:00Z".parse().ok().map(Timestamp),
        devices: vec![device("sdb", Some(1 << 40)), device("sdc", None)],
        ..TraceHeader::default()
    }
}

/// Requests of a database at 20,000/s: reads of 8 KiB from 16 GiB, some writes, a log with flushes.
fn requests(count: usize) -> Vec<TraceRequest> {
    let (mut rng, mut at_ns, mut log) = (Rng::new(1, 1), 0_u64, 0_u64);
    let one = |_| {
        at_ns += (-(1.0 - rng.unit_f64()).ln() * 50_000.0) as u64;
        let kind = match rng.below(100) {
            0..70 => TraceKind::Read,
            70..99 => TraceKind::Write,
            _ => TraceKind::Flush,
        };
        let is_log = kind == TraceKind::Write && rng.below(3) == 0;
        let latency_ns = Some(80_000 + rng.below(40_000) + if rng.below(10) == 0 { rng.below(900_000) } else { 0 });
        let (device, offset_bytes, bytes) = match (kind, is_log) {
            (TraceKind::Flush, _) => (1, 0, 0),
            (_, true) => {
                log += 8_192;
                (1, log, 8_192)
            }
            _ => (0, rng.below(1 << 21) * 8_192, 8_192),
        };
        TraceRequest { at_ns, device, kind, is_fua: is_log, offset_bytes, bytes, latency_ns }
    };
    (0..count).map(one).collect()
}

fn written(requests: &[TraceRequest]) -> (tempfile::NamedTempFile, u64) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut writer = TraceWriter::begin("test", file.reopen().unwrap()).unwrap();
    writer.write(requests, &header()).unwrap();
    let end = TraceEnd { duration_ns: Some(77), lost: Some(0), notes: Vec::new() };
    writer.finish(&header(), &end).unwrap();
    let bytes = file.as_file().metadata().unwrap().len();
    (file, bytes)
}

fn read(path: &std::path::Path) -> Result<(Vec<TraceRequest>, TraceFile), TraceError> {
    let mut file = TraceFile::open(path)?;
    let mut all = Vec::new();
    loop {
        let before = all.len();
        file.next_batch(&mut all)?;
        if all.len() == before {
            return Ok((all, file));
        }
    }
}

#[test]
fn what_was_written_is_read_and_latencies_are_near() {
    let requests = requests(20_000);
    let (file, _) = written(&requests);
    let (found, reader) = read(file.path()).unwrap();
    assert_eq!(found.len(), requests.len());
    for (found, written) in found.iter().zip(&requests) {
        let (near, exact) = (found.latency_ns.unwrap() as f64, written.latency_ns.unwrap() as f64);
        assert!((near / exact - 1.0).abs() <= 1.0 / 128.0, "{near} {exact}");
        assert_eq!(TraceRequest { latency_ns: None, ..*found }, TraceRequest { latency_ns: None, ..*written });
    }
    assert_eq!((reader.header(), reader.end().duration_ns), (&header(), Some(77)));
    let summary = reader.summary();
    assert_eq!(summary.total(), 20_000);
    assert_eq!((summary.timed, summary.largest_bytes, summary.extents_bytes.len()), (20_000, 8_192, 2));
    let end = requests.iter().filter(|request| request.device == 0).map(|request| request.offset_bytes + 8_192).max();
    assert_eq!(Some(summary.extents_bytes[0]), end);
}

#[test]
fn an_hour_at_20000_a_second_takes_less_than_500_megabytes() {
    let count = 300_000;
    let (_, bytes) = written(&requests(count));
    let each = bytes as f64 / count as f64;
    assert!(each * 3_600.0 * 20_000.0 < 500e6, "{each} bytes a request");
}

#[test]
fn latencies_that_are_not_known_stay_so() {
    let unknown: Vec<TraceRequest> = requests(500)
        .into_iter()
        .enumerate()
        .map(|(at, request)| TraceRequest { latency_ns: request.latency_ns.filter(|_| at % 3 == 0), ..request })
        .collect();
    let (file, _) = written(&unknown);
    let (found, _) = read(file.path()).unwrap();
    assert!(found.iter().zip(&unknown).all(|(one, other)| one.latency_ns.is_some() == other.latency_ns.is_some()));
}

#[test]
fn a_file_that_was_cut_off_is_read_up_to_its_last_part() {
    // Eight groups and a table of contents, and a ninth.
    let requests = requests((8 << 18) + 300_000);
    let (file, bytes) = written(&requests);
    file.as_file().set_len(bytes - 1).unwrap();
    let (found, reader) = read(file.path()).unwrap();
    assert_eq!(found.len(), 8 << 18);
    assert_eq!(found.last().map(|last| last.at_ns), Some(requests[(8 << 18) - 1].at_ns));
    let end = reader.end();
    assert!(end.duration_ns.is_none() && end.notes[0].starts_with("the file was cut off"), "{end:?}");
    file.as_file().set_len(1 << 20).unwrap();
    assert!(read(file.path()).is_err_and(|error| error.to_string().contains("cut off before its first part")));
}

#[test]
fn another_table_is_not_a_trace() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"PAR1 nothing").unwrap();
    assert!(matches!(TraceFile::open(file.path()), Err(TraceError::Damaged { .. })));
}

#[test]
fn rounding_keeps_what_a_histogram_shows() {
    assert_eq!((rounded(0), rounded(127), rounded(128)), (0, 127, 128));
    assert_eq!(rounded(u64::MAX), u64::MAX >> 57 << 57);
    for value in [129_u64, 1_000, 123_456, 987_654_321, 1 << 50] {
        assert!((rounded(value) as f64 / value as f64 - 1.0).abs() <= 1.0 / 128.0, "{value}");
    }
}

#[test]
fn zeroes_at_any_place_are_an_error_or_requests() {
    let (file, length) = written(&requests(50));
    let content = std::fs::read(file.path()).unwrap();
    let mut undecoded = 0;
    for place in 0..length as usize - 16 {
        let mut damaged = content.clone();
        damaged[place..place + 16].fill(0);
        std::fs::write(file.path(), damaged).unwrap();
        let found = read(file.path());
        undecoded += u32::from(found.is_err_and(|error| error.to_string().contains("cannot be decoded")));
    }
    // Without the place of its dictionary, a column's pages make the library panic.
    assert!(undecoded > 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_damaged_file_is_an_error_or_requests(at in 0.0..1.0_f64, bytes in proptest::collection::vec(any::<u8>(), 1..20), cut in 0.0..1.0_f64, cuts: bool) {
        let (file, length) = written(&requests(50));
        let mut content = std::fs::read(file.path()).unwrap();
        let place = (at * (length as f64 - bytes.len() as f64)) as usize;
        content[place..place + bytes.len()].copy_from_slice(&bytes);
        if cuts {
            content.truncate((cut * length as f64) as usize);
        }
        std::fs::write(file.path(), content).unwrap();
        let _ = read(file.path());
    }
}
