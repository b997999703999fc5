use model::trace::TraceKind::{Read, Write};

use super::{read, request};
use crate::TraceError;

pub(super) const MSR: &str = "\
128166372003061629,usr,0,Read,7014609920,24576,41286
128166372003061630,usr,1,Write,4096,512,1
128166372016382155,src1,0,Write,1317441536,8192,1963
128166372026382245,usr,0,Read,2436440064,4096,1835
";

pub(super) const ALIBABA: &str = "\
419,W,8792731648,16384,1577808000000046
725,R,59110326272,360448,1577808000000051
419,W,0,4096,1577808000000001
";

pub(super) const TENCENT: &str = "\
1538323200,12910952,128,0,1063
1538323200,6338688,8,1,1627
1538323203,8,8,1,1063
";

#[test]
fn rows_of_microsoft_research() {
    let trace = read(MSR).expect("a trace");
    assert_eq!(trace.header.source, "MSR Cambridge CSV");
    assert_eq!(trace.began().as_deref(), Some("2007-02-22T17:00:00.3061629Z"));
    assert_eq!(trace.devices(), ["usr_0", "usr_1", "src1_0"]);
    assert_eq!(
        trace.requests,
        [
            request(0, 0, Read, (7_014_609_920, 24_576), Some(4_128_600)),
            request(100, 1, Write, (4_096, 512), Some(100)),
            request(1_332_052_600, 2, Write, (1_317_441_536, 8_192), Some(196_300)),
            request(2_332_061_600, 0, Read, (2_436_440_064, 4_096), Some(183_500)),
        ]
    );
    assert!(trace.end.notes.is_empty());
    let with_heading =
        format!("Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\r\n{}", MSR.replace('\n', "\r\n"));
    let with_heading = read(with_heading).expect("a trace");
    assert_eq!(with_heading.requests, trace.requests);
    assert!(with_heading.end.notes.is_empty());
}

#[test]
fn rows_of_alibaba() {
    let trace = read(ALIBABA).expect("a trace");
    assert_eq!(trace.header.source, "Alibaba block traces CSV");
    assert_eq!(trace.began().as_deref(), Some("2019-12-31T16:00:00.000001Z"));
    assert_eq!(trace.devices(), ["419", "725"]);
    assert_eq!(
        trace.requests,
        [
            request(0, 0, Write, (0, 4_096), None),
            request(45_000, 0, Write, (8_792_731_648, 16_384), None),
            request(50_000, 1, Read, (59_110_326_272, 360_448), None),
        ]
    );
    assert!(trace.end.notes.is_empty());
}

#[test]
fn rows_of_tencent() {
    let trace = read(TENCENT).expect("a trace");
    assert_eq!(trace.header.source, "Tencent CBS CSV");
    assert_eq!(trace.began().as_deref(), Some("2018-09-30T16:00:00Z"));
    assert_eq!(trace.devices(), ["1063", "1627"]);
    assert_eq!(
        trace.requests,
        [
            request(0, 0, Read, (12_910_952 * 512, 65_536), None),
            request(0, 1, Write, (6_338_688 * 512, 4_096), None),
            request(3_000_000_000, 0, Write, (4_096, 4_096), None),
        ]
    );
    assert_eq!(trace.end.notes, ["times are whole seconds: requests of one second have the order of the file"]);
}

#[test]
fn impossible_numbers_are_lines_that_could_not_be_parsed() {
    for line in [
        "128166372003061629,usr,0,Read,18446744073709551615,512,1",
        "128166372003061629,usr,0,Read,9223372036854775807,512,1",
        "128166372003061629,usr,0,Read,-512,512,1",
        "128166372003061629,usr,0,Read,0,0,1",
        "128166372003061629,usr,0,Read,0,4294967296,1",
        "128166372003061629,usr,0,Read,0,512,18446744073709551615",
        "128166372003061629,usr,0,Read,0,512,99999999999999",
        "128166372003061629,usr,0,Trim,0,512,1",
        "128166372003061629,usr,x,Read,0,512,1",
        "128166372003061629,,0,Read,0,512,1",
        "128166372003061629,usr,0,Read,0,512",
        "128166372003061629,usr,0,Read,0,512,1,1",
        // These are not 100 ns after 1601.
        "1577808000000046,usr,0,Read,0,512,1",
        "18446744073709551615,usr,0,Read,0,512,1",
    ] {
        let trace = read(format!("{MSR}{line}\n")).expect("a trace");
        assert_eq!(trace.requests.len(), 4, "{line}");
        assert_eq!(trace.end.notes, [format!("lines that could not be parsed: 1; the first is line 5: `{line}`")]);
    }
}

#[test]
fn times_of_another_unit_are_no_trace() {
    for content in [
        ALIBABA.replace("15778080000000", "15778080000"),
        TENCENT.replace("15383232", "15383232000"),
        MSR.replace("1281663720", "11"),
    ] {
        assert!(matches!(read(content), Err(TraceError::NotRecognised { .. })));
    }
}

#[test]
fn a_line_that_was_cut_off_is_left_out() {
    let cut = MSR.strip_suffix("835\n").expect("its end");
    let trace = read(cut).expect("a trace");
    assert_eq!(trace.requests.len(), 3);
    assert_eq!(trace.end.notes, ["the file ends within line 4: that line is left out"]);
}
