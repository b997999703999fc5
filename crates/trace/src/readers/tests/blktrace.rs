use model::trace::TraceKind::{Discard, Flush, Read, Write};

use super::{drained, read, read_path, request};
use crate::TraceError;
use crate::readers::open_all;

const READ: u32 = 1 << 16;
const WRITE: u32 = 1 << 17;
const FLUSH: u32 = 1 << 18;
const QUEUE: u32 = 1 << 20 | 1;
const ISSUE: u32 = 1 << 22 | 7;
const COMPLETE: u32 = 1 << 23 | 8;
const COMMAND: u32 = 1 << 25;
const DISCARD: u32 = 1 << 29;
const FUA: u32 = 1 << 31;
const CGROUP: u32 = 1 << 8;
const SDB: u32 = 8 << 20 | 16;

#[derive(Clone, Copy)]
pub(super) struct Writer {
    pub(super) is_big_endian: bool,
}

impl Writer {
    fn u32(self, value: u32) -> [u8; 4] {
        if self.is_big_endian { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn u64(self, value: u64) -> [u8; 8] {
        if self.is_big_endian { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn u16(self, value: u16) -> [u8; 2] {
        if self.is_big_endian { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn record(self, time: u64, sector: u64, bytes: u32, action: u32, payload: &[u8]) -> Vec<u8> {
        self.record_of(0, time, sector, bytes, action, payload)
    }

    fn record_of(self, cpu: u32, time: u64, sector: u64, bytes: u32, action: u32, payload: &[u8]) -> Vec<u8> {
        let length = u16::try_from(payload.len()).expect("a short payload");
        let mut record = Vec::new();
        record.extend(self.u32(0x6561_7407));
        record.extend(self.u32(1));
        record.extend(self.u64(time));
        record.extend(self.u64(sector));
        for word in [bytes, action, 4_711, SDB, cpu] {
            record.extend(self.u32(word));
        }
        record.extend(self.u16(0));
        record.extend(self.u16(length));
        record.extend(payload);
        record
    }

    /// What two CPUs write of one trace.
    pub(super) fn cpus(self) -> [Vec<u8>; 2] {
        let mut wall = self.u32(1_700_000_000).to_vec();
        wall.extend(self.u32(250_000_000));
        let first = [
            self.record(1_000, 0, 0, 1 << 26 | 1, &wall),
            self.record(1_100, 0, 0, 1 << 26, b"reader\0\0\0\0\0\0\0\0\0\0"),
            self.record(1_900, 8, 4_096, QUEUE | READ, &[]),
            self.record(2_000, 8, 4_096, ISSUE | READ | CGROUP, &7_u64.to_ne_bytes()),
            self.record(4_000, 16, 512, ISSUE | WRITE | FUA, &[]),
            self.record(5_000, u64::MAX, 0, ISSUE | READ | FLUSH, &[]),
            self.record(5_500, 0, 36, ISSUE | READ | COMMAND, &[0x12, 1, 0, 0, 0x24, 0]),
            self.record(9_000, 16, 512, COMPLETE | WRITE | FUA, &[]),
        ];
        let second = [
            self.record_of(1, 3_000, 2_048, 1 << 20, ISSUE | WRITE | DISCARD, &[]),
            self.record_of(1, 3_500, 8, 4_096, COMPLETE | READ | CGROUP, &7_u64.to_ne_bytes()),
            self.record_of(1, 7_000, 0, 0, COMPLETE | READ | FLUSH, &[]),
            self.record_of(1, 8_000, 99, 512, COMPLETE | READ, &[]),
        ];
        [first.concat(), second.concat()]
    }
}

fn check(is_big_endian: bool) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut paths = Vec::new();
    let cpus = Writer { is_big_endian }.cpus();
    for (number, content) in cpus.into_iter().chain([Vec::new()]).enumerate() {
        let path = directory.path().join(format!("sdb.blktrace.{number}"));
        std::fs::write(&path, content).expect("the trace is written");
        paths.push(path);
    }
    paths.rotate_right(1);
    let trace = drained(open_all(&paths).expect("a trace")).expect("requests");
    assert_eq!(trace.header.source, "blktrace");
    assert_eq!(trace.header.clock.as_deref(), Some("CLOCK_MONOTONIC"));
    assert_eq!(trace.began().as_deref(), Some("2023-11-14T22:13:20.250001Z"));
    assert_eq!(trace.devices(), ["8,16"]);
    let mut fua = request(2_000, 0, Write, (8_192, 512), Some(5_000));
    fua.is_fua = true;
    assert_eq!(
        trace.requests,
        [
            request(0, 0, Read, (4_096, 4_096), Some(1_500)),
            request(1_000, 0, Discard, (1_048_576, 1_048_576), None),
            fua,
            request(3_000, 0, Flush, (0, 0), Some(2_000)),
        ]
    );
    assert_eq!(
        trace.end.notes,
        [
            "requests without a completion, with unknown latency: 1",
            "completions of requests that the trace did not see issued, left out: 1",
            "commands that move no sectors, left out: 1"
        ]
    );
    let first = read_path(&paths[1]).expect("a trace");
    assert_eq!(first.requests.len(), 3);
    // `cat` made one file of them.
    let content: Vec<u8> = Writer { is_big_endian }.cpus().concat();
    let one = read(content).expect("a trace");
    assert_eq!((one.requests, one.header, one.end), (trace.requests, trace.header, trace.end));
}

#[test]
fn files_of_two_cpus() {
    check(false);
}

#[test]
fn files_of_a_machine_of_the_other_order() {
    check(true);
}

#[test]
fn requests_begin_in_the_queue_where_the_trace_has_no_issue() {
    let writer = Writer { is_big_endian: false };
    let trace = [writer.record(5, 8, 4_096, QUEUE | WRITE, &[]), writer.record(7, 8, 4_096, COMPLETE | WRITE, &[])];
    let trace = read(trace.concat()).expect("a trace");
    assert_eq!(trace.requests, [request(0, 0, Write, (4_096, 4_096), Some(2))]);
}

#[test]
fn the_beginning_of_what_blkparse_merged_is_not_known() {
    let writer = Writer { is_big_endian: false };
    let trace =
        [writer.record(9_000_000_000, 0, 0, 1 << 26 | 1, &[0; 8]), writer.record(5, 8, 4_096, ISSUE | WRITE, &[])];
    assert_eq!(read(trace.concat()).expect("a trace").began(), None);
}

#[test]
fn a_file_that_was_cut_off_is_used_up_to_its_end() {
    let [first, _] = Writer { is_big_endian: false }.cpus();
    for missing in [1, 47] {
        let trace = read(&first[..first.len() - missing]).expect("a trace");
        assert_eq!(trace.requests.len(), 3);
        let note = trace.end.notes.last().expect("a note");
        assert!(note.ends_with(&format!("within the record at byte {}: it is left out", first.len() - 48)), "{note}");
    }
    // Within the payload of the record of the process.
    let trace = read(&first[..56 + 48 + 10]);
    assert!(matches!(trace, Err(TraceError::Empty { .. })));
}

#[test]
fn what_is_not_of_blktrace_is_damage() {
    let [mut first, _] = Writer { is_big_endian: false }.cpus();
    first.extend([0; 48]);
    assert!(matches!(read(&first), Err(TraceError::Damaged { .. })));
    let [mut newer, _] = Writer { is_big_endian: false }.cpus();
    newer[0] = 8;
    let error = read(&newer).expect_err("another version");
    assert!(error.to_string().contains("version 8"), "{error}");
}

#[test]
fn only_files_of_blktrace_are_read_as_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let (one, other) = (directory.path().join("one"), directory.path().join("other"));
    let [first, _] = Writer { is_big_endian: false }.cpus();
    std::fs::write(&one, first).expect("written");
    std::fs::write(&other, super::csv::MSR).expect("written");
    assert!(matches!(open_all(&[&one, &other]), Err(TraceError::Damaged { .. })));
    assert!(matches!(open_all(&[&other, &other]), Err(TraceError::Damaged { .. })));
    assert!(matches!(open_all::<&str>(&[]), Err(TraceError::Empty { .. })));
}
