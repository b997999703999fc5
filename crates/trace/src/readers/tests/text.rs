use model::trace::TraceKind::{Discard, Flush, Read, Write};

use super::{read, request};
use crate::TraceError;

pub(super) const BLKPARSE: &str = "\
Input file sda.blktrace.0 added
  8,0    1        1     0.000000000   697  Q   R 223490 + 8 [reader]
  8,0    1        2     0.000001000   697  G   R 223490 + 8 [reader]
  8,0    1        3     0.000002000   697  P   N [reader]
  8,0    1        4     0.000003000   697  U   N [reader] 1
  8,0    1        5     0.000010000   697  D   R 223490 + 8 [reader]
  8,16   0        1     0.000020000   698  D WFS 2048 + 16 [writer name]
  8,0    0        2     0.000030000     0  C   R 223490 + 8 [0]
  8,0    1        0     0.000031000     0  m   N cfq698 Not idling.
  8,0    1        6     0.000040000   699  D  FN [kworker/1:1H]
  8,0    1        7     0.000050000   699  D   D 4096 + 8192 [trimmer]
  8,0    1        8     0.000055000   699  D   R 36 (12 01 00 00 24 00 ..) [udev]
  8,0    1        9     0.000060000     0  C  FN 0 [0]
  8,16   0        3     0.000220000     0  C WFS 2048 + 16 [0]
  8,0    1       10     1.000000000   700  D   R 9 + 1 (     120) [reader]
CPU0 (sda):
 Reads Queued:           1,        4KiB\t Writes Queued:           0,        0KiB

Total (sda):
 Read depth:             1        \t Write depth:             1
Throughput (R/W): 0KiB/s / 0KiB/s
Events (sda): 13 entries
Skips: 0 forward (0 -   0.0%)
";

pub(super) const IOLOG_2: &str = "\
fio version 2 iolog
/dev/sdb add
/dev/sdb open
/data/a file add
/dev/sdb write 4096 8192
/dev/sdb wait 250 0
/dev/sdb read 0 512
/dev/sdb wait 1000
/data/b sync
/dev/sdb datasync 0 0
/dev/sdb trim 1048576 65536
/dev/sdb close
";

pub(super) const IOLOG_3: &str = "\
fio version 3 iolog
0 /data/x.0.0 add
3 /data/x.0.0 open
120 /data/x.0.0 read 40960 4096
125 /data/x.0.0 write 0 4096
130 /data/x.0.0 sync_file_range 0 4096
130 /data/x.0.0 sync 0 0
200 /data/x.0.0 trim 4096 4096
201 /data/x.0.0 close
fio version 3 iolog
9 /data/x.0.0 read 0 4096
";

pub(super) const BIOSNOOP: &str = "\
TIME(s)     COMM           PID    DISK    T SECTOR     BYTES   LAT(ms)
0.000000    supervise      1950   xvda1   W 13092560   4096       0.74
0.000178    Web Content    1956   xvdb    R 8          512        0.05
0.001469    supervise      1956   xvda1   W 13092440   1048576    1.24
0.002000    ?              0      <unknown> R 0          0          0.01
";

pub(super) const BIOSNOOP_LIBBPF: &str = "\
TIME(s)     COMM           PID     DISK    T    SECTOR     BYTES   QUE(ms) LAT(ms)
0.000000    jbd2/vda1-8    77      vda     FWFS 2048       8192      0.010   1.500
0.000100    kworker/0:1H   90      vda     FF   -1         0        -1.000   0.250
0.000200    fstrim         91      vda     DS   4096       1048576   0.000   0.100
0.000300    cat            92      vda     RA   8          131072    0.000   0.125
";

#[test]
fn text_of_blkparse() {
    let trace = read(BLKPARSE).expect("a trace");
    assert_eq!(trace.header.source, "blkparse");
    assert_eq!(trace.header.clock.as_deref(), Some("CLOCK_MONOTONIC"));
    assert_eq!(trace.began(), None);
    assert_eq!(trace.devices(), ["8,0", "8,16"]);
    let mut fua = request(10_000, 1, Write, (1_048_576, 8_192), Some(200_000));
    fua.is_fua = true;
    assert_eq!(
        trace.requests,
        [
            request(0, 0, Read, (223_490 * 512, 4_096), Some(20_000)),
            fua,
            request(30_000, 0, Flush, (0, 0), Some(20_000)),
            request(40_000, 0, Discard, (4_096 * 512, 8_192 * 512), None),
            request(999_990_000, 0, Read, (9 * 512, 512), None),
        ]
    );
    assert_eq!(trace.end.notes, ["requests without a completion, with unknown latency: 2"]);
}

#[test]
fn requests_begin_in_the_queue_where_the_trace_has_no_issue() {
    let queued: String = BLKPARSE
        .replace("D WFS", "Q WFS")
        .lines()
        .filter(|line| !line.contains("  D "))
        .map(|line| format!("{line}\n"))
        .collect();
    let merged = "\
  8,0    1       10     0.100000000   700  Q   W 100 + 8 [writer]
  8,0    1       11     0.100001000   700  Q   W 108 + 8 [writer]
  8,0    1       12     0.100002000   700  M   W 108 + 8 [writer]
  8,0    1       13     0.100900000     0  C   W 100 + 16 [0]
";
    let events = queued.split("CPU0").next().expect("the events");
    let trace = read(format!("{events}{merged}")).expect("a trace");
    let kinds: Vec<_> = trace.requests.iter().map(|request| (request.kind, request.latency_ns)).collect();
    assert_eq!(kinds, [(Read, Some(30_000)), (Write, Some(200_000)), (Write, Some(900_000)), (Write, None)]);
    assert_eq!(
        trace.end.notes,
        [
            "the trace has no events D: requests begin when a program queued them",
            "completions of requests that the trace did not see issued, left out: 1"
        ]
    );
}

#[test]
fn a_request_that_the_driver_gave_back_is_counted_once() {
    let trace = read(
        "\
  8,0    1        1     0.000000000   697  D   R 8 + 8 [reader]
  8,0    1        2     0.000001000   697  R   R 8 + 8 [0]
  8,0    1        3     0.000100000   697  D   R 8 + 8 [reader]
  8,0    1        4     0.000101000   697  D   R 8 + 8 [other]
  8,0    1        5     0.000200000   697  C   R 8 + 8 [0]
  8,0    1        6     0.000300000   697  C   R 8 + 8 [0]
",
    )
    .expect("a trace");
    // Which of two that overlap completes first is not in the trace.
    assert_eq!(
        trace.requests,
        [request(0, 0, Read, (4_096, 4_096), Some(200_000)), request(1_000, 0, Read, (4_096, 4_096), Some(99_000)),]
    );
    assert_eq!(trace.end.notes, ["requests that the driver gave back, which begin when issued again: 1"]);
}

#[test]
fn logs_of_fio_without_times() {
    let trace = read(IOLOG_2).expect("a trace");
    assert_eq!(trace.header.source, "fio iolog version 2");
    assert_eq!(trace.devices(), ["/dev/sdb", "/data/b"]);
    assert_eq!(
        trace.requests,
        [
            request(0, 0, Write, (4_096, 8_192), None),
            request(250_000, 0, Read, (0, 512), None),
            request(1_250_000, 1, Flush, (0, 0), None),
            request(1_250_000, 0, Flush, (0, 0), None),
            request(1_250_000, 0, Discard, (1_048_576, 65_536), None),
        ]
    );
    assert_eq!(trace.end.notes.len(), 2);
    assert!(trace.end.notes[0].starts_with("the log has waits only"));
    assert_eq!(trace.end.notes[1], "lines that could not be parsed: 1; the first is line 4: `/data/a file add`");
    let without: String =
        IOLOG_2.lines().filter(|line| !line.contains("wait")).map(|line| format!("{line}\n")).collect();
    let without = read(without).expect("a trace");
    assert_eq!(without.requests.iter().map(|request| request.at_ns).max(), Some(0));
    assert_eq!(without.end.notes[0], "the log has no times: all requests are at its beginning");
}

#[test]
fn logs_of_fio_with_times() {
    let trace = read(IOLOG_3).expect("a trace");
    assert_eq!(trace.header.source, "fio iolog version 3");
    assert_eq!(trace.devices(), ["/data/x.0.0"]);
    assert_eq!(
        trace.requests,
        [
            request(0, 0, Read, (40_960, 4_096), None),
            request(5_000, 0, Write, (0, 4_096), None),
            request(10_000, 0, Flush, (0, 0), None),
            request(80_000, 0, Discard, (4_096, 4_096), None),
            request(90_000, 0, Read, (0, 4_096), None),
        ]
    );
    assert_eq!(
        trace.end.notes,
        ["runs in the log, each of which begins when the one before ended: 2", "calls of sync_file_range, left out: 1"]
    );
}

#[test]
fn text_of_biosnoop() {
    let trace = read(BIOSNOOP).expect("a trace");
    assert_eq!(trace.header.source, "biosnoop");
    assert_eq!(trace.devices(), ["xvda1", "xvdb"]);
    assert_eq!(
        trace.requests,
        [
            request(0, 0, Write, (13_092_560 * 512, 4_096), Some(740_000)),
            // 0.74 ms before 0, and 1.24 ms before 1.469 ms.
            request(868_000, 1, Read, (4_096, 512), Some(50_000)),
            request(969_000, 0, Write, (13_092_440 * 512, 1_048_576), Some(1_240_000)),
        ]
    );
    assert_eq!(trace.end.notes, ["requests without a length, left out as their type is unknown: 1"]);
}

#[test]
fn text_of_biosnoop_with_the_letters_of_the_kernel() {
    let trace = read(BIOSNOOP_LIBBPF).expect("a trace");
    assert_eq!(trace.devices(), ["vda"]);
    let mut fua = request(0, 0, Write, (1_048_576, 8_192), Some(1_500_000));
    fua.is_fua = true;
    assert_eq!(
        trace.requests,
        [
            fua,
            request(1_350_000, 0, Flush, (0, 0), Some(250_000)),
            request(1_600_000, 0, Discard, (2_097_152, 1_048_576), Some(100_000)),
            request(1_675_000, 0, Read, (4_096, 131_072), Some(125_000)),
        ]
    );
    assert!(trace.end.notes.is_empty());
}

#[test]
fn text_of_biosnoop_with_patterns() {
    let trace = read(
        "\
TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  P QUE(ms) LAT(ms)
0.000000    dd             7       vda       W 0          1048576S    0.00    1.00
0.001000    dd             7       vda       W 2048       4096   R    0.00    1.00
",
    )
    .expect("a trace");
    assert_eq!(
        trace.requests,
        [
            request(0, 0, Write, (0, 1_048_576), Some(1_000_000)),
            request(1_000_000, 0, Write, (1_048_576, 4_096), Some(1_000_000)),
        ]
    );
}

#[test]
fn biosnoop_of_bpftrace_says_too_little() {
    let error = read(
        "TIME(ms)     DISK    COMM             PID    LAT(ms)\n611          nvme0n1 bash             4179        10\n",
    );
    assert!(matches!(error, Err(TraceError::Damaged { line: Some(1), .. })));
}
