use proptest::prelude::*;

use super::blktrace::Writer;
use super::{csv, drained, read, text};
use crate::TraceError;
use crate::readers::{Known, claims, open};

/// One file of each format.
fn specimens() -> Vec<(Known, Vec<u8>)> {
    let [little, _] = Writer { is_big_endian: false }.cpus();
    let [big, _] = Writer { is_big_endian: true }.cpus();
    vec![
        (Known::Blktrace, little),
        (Known::Blktrace, big),
        (Known::Blktrace, Writer { is_big_endian: false }.cpus().concat()),
        (Known::Blkparse, text::BLKPARSE.into()),
        (Known::Iolog(2), text::IOLOG_2.into()),
        (Known::Iolog(3), text::IOLOG_3.into()),
        (Known::Biosnoop, text::BIOSNOOP.into()),
        (Known::Biosnoop, text::BIOSNOOP_LIBBPF.into()),
        (Known::Msr, csv::MSR.into()),
        (Known::Alibaba, csv::ALIBABA.into()),
        (Known::Tencent, csv::TENCENT.into()),
    ]
}

#[test]
fn one_format_claims_each_file() {
    for (known, content) in specimens() {
        assert_eq!(claims(&content), [known]);
    }
    for other in ["", "\n", "a,b\n1,2\n", "{\"fio version\": \"fio-3.36\"}\n", "1,2,3,4,5\n", "0,536870912000\n"] {
        assert!(claims(other.as_bytes()).is_empty(), "{other}");
    }
}

#[test]
fn an_empty_file_has_no_requests() {
    assert!(matches!(read(""), Err(TraceError::Empty { .. })));
    assert!(matches!(read("fio version 3 iolog\n"), Err(TraceError::Empty { .. })));
    assert!(matches!(read("something else\n"), Err(TraceError::NotRecognised { .. })));
}

#[test]
fn a_file_that_is_mostly_of_another_format_is_damage() {
    let mut content = String::from("fio version 3 iolog\n");
    content.push_str(&"1 /a read 0 512\n".repeat(400));
    content.push_str(&"something else\n".repeat(700));
    let error = read(&content).expect_err("damage");
    assert!(matches!(error, TraceError::Damaged { line: Some(402), .. }), "{error}");
    // After the first thousand lines it is a note.
    let content = format!("{}{}", csv::MSR.repeat(300), "something else\n".repeat(5_000));
    let trace = read(content).expect("a trace");
    assert_eq!(trace.requests.len(), 1_200);
    assert_eq!(
        trace.end.notes.last().map(String::as_str),
        Some("lines that could not be parsed: 5000; the first is line 1201: `something else`")
    );
}

#[test]
fn a_line_without_end_is_damage() {
    for length in [65_000, 65_537, 1_000_000] {
        let content = format!("{}{}\n", csv::MSR.repeat(10_000), "x".repeat(length));
        let result = read(content);
        if length > 65_536 {
            assert!(matches!(result, Err(TraceError::Damaged { line: Some(40_001), .. })));
        } else {
            assert_eq!(result.expect("a trace").requests.len(), 40_000);
        }
    }
}

#[test]
fn there_are_as_many_devices_as_have_a_number() {
    let rows = (0..65_600).map(|device| format!("{device},R,0,512,{}\n", 1_577_808_000_000_000_u64 + device));
    let trace = read(rows.collect::<String>()).expect("a trace");
    assert_eq!((trace.header.devices.len(), trace.requests.len()), (65_535, 65_535));
    assert_eq!(trace.end.notes, ["requests of devices after the first 65535, left out: 65"]);
}

#[test]
fn long_names_are_cut_and_remain_apart() {
    let long = "ä".repeat(200);
    let content = format!("fio version 3 iolog\n1 {long}1 read 0 512\n2 {long}2 read 0 512\n");
    let trace = read(content).expect("a trace");
    assert_eq!(trace.devices(), ["ä".repeat(100), "ä".repeat(100)]);
}

#[test]
fn reading_on_after_damage_ends() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("trace");
    let rows = (0..60_000_u64).map(|row| format!("1,R,0,512,{}\n", 1_577_808_000_000_000 + row * 1_000));
    std::fs::write(&path, format!("{}{}", rows.collect::<String>(), "x".repeat(70_000))).expect("written");
    let mut source = open(&path).expect("a trace");
    let mut requests = Vec::new();
    while source.next_batch(&mut requests).is_ok() {}
    assert!(requests.len() > 40_000);
    source.next_batch(&mut requests).expect("no second error");
}

#[test]
fn requests_that_never_complete_are_passed_on() {
    use std::fmt::Write as _;

    let mut content = String::new();
    for at in 0..11_000_u64 {
        writeln!(content, "8,0 0 {at} 0.{at:09} 1 D R {at} + 8 [x]").expect("text");
    }
    let trace = read(content).expect("a trace");
    assert_eq!(trace.requests.len(), 11_000);
    assert!(trace.end.notes[0].ends_with("unknown latency: 11000"));
}

/// Opens and reads it; whether it is a trace does not matter.
fn survives(content: &[u8]) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("trace");
    std::fs::write(&path, content).expect("written");
    if let Ok(source) = open(&path) {
        let _ = drained(source);
    }
    let at_most_one = claims(content);
    assert!(at_most_one.len() <= 1, "{at_most_one:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn random_bytes(content in proptest::collection::vec(any::<u8>(), 0..2_000)) {
        survives(&content);
    }

    #[test]
    fn random_text(content in "(fio version [23] iolog\n)?([0-9a-zA-Z/+(\\[., -]{0,40}\n){0,20}") {
        survives(content.as_bytes());
    }

    #[test]
    fn mutations(
        place in 0_usize..11,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_u8..4), 0..12),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let mut content = specimens().swap_remove(place).1;
        for (at, byte, how) in changes {
            if content.is_empty() {
                break;
            }
            let at = at.index(content.len());
            match how {
                0 => content[at] = byte,
                1 => content[at] = b'9',
                2 => content.insert(at, byte),
                _ => {
                    content.remove(at);
                }
            }
        }
        if let Some(cut) = cut {
            content.truncate(cut.index(content.len() + 1));
        }
        survives(&content);
    }

    #[test]
    fn digits_become_huge(place in 0_usize..11, digits in "[0-9]{15,25}", at in any::<prop::sample::Index>()) {
        let content = specimens().swap_remove(place).1;
        let places: Vec<usize> = (0..content.len()).filter(|at| content[*at].is_ascii_digit()).collect();
        let mut changed = content.clone();
        if !places.is_empty() {
            let at = places[at.index(places.len())];
            changed.splice(at..=at, digits.bytes());
        }
        survives(&changed);
    }
}
