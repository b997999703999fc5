use model::record::Workload;
use proptest::prelude::*;

use crate::specimens::{damaged, drafts, source, survives};
use crate::{importers, read, recognise};
use model::record::{Ending, Outcome};

const SYNC: &str = "\
$ java -jar /tmp/oratcptest.jar db4-priv -mode=sync -duration=6s -interval=3s -port=5566 > out
[Requesting a test]
\tMessage payload        = 64 kbytes
\tNumber of connections  = 4
\tSocket send buffer     = (system default)
\tTransport mode         = SYNC
\tDisk write             = NO
\tStatistics interval    = 3 seconds
\tTest duration          = 6 seconds
\t(1 Mbyte = 1024x1024 bytes)

(23:59:57) The server is ready.
                        Throughput                 Latency
(00:00:00)         40.000 Mbytes/s                1.500 ms
(00:00:03)        512.000 Kbytes/s                2.500 ms
(00:00:03) Test finished.
\t       Socket send buffer = 166400 bytes
\t          Avg. throughput = 20.250 Mbytes/s
\t             Avg. latency = 2.000 ms

";

#[test]
fn a_synchronous_test_has_throughput_and_latency() {
    let draft = drafts("oratcptest", SYNC).remove(0);
    let step = &draft.steps[0];
    assert_eq!(
        (draft.workload, draft.title.as_str(), draft.target.address.as_str()),
        (Workload::Network, "SYNC to db4-priv", "db4-priv:5566")
    );
    assert_eq!(
        (step.load.sessions, step.window.duration_ns, step.window.ending),
        (Some(4), 6_000_000_000, Ending::Time)
    );
    let figures: Vec<(&str, &str, f64)> =
        step.reported.iter().map(|figure| (figure.name.as_str(), figure.unit.as_str(), figure.value)).collect();
    assert_eq!(figures, [("throughput", "bytes/s", 20.25 * 1_048_576.0), ("latency", "ms", 2.0)]);
    let last = &step.intervals[1];
    assert_eq!((last.offset_ns, last.duration_ns), (3_000_000_000, 3_000_000_000), "midnight lies before it");
    assert_eq!((last.reported["throughput"], last.reported["latency"]), (524_288.0, 2.5));
    assert_eq!(draft.parameters["Message payload"], "64 kbytes");
    assert_eq!(draft.parameters["Socket send buffer (used)"], "166400 bytes");
    assert_eq!(draft.command.last().map(String::as_str), Some(">").map(|_| "out"));
}

#[test]
fn an_asynchronous_test_has_no_latency_and_repeated_tests_are_steps() {
    let line = |line: &str| {
        line.split("                1.").next().unwrap().split("                2.").next().unwrap().to_owned() + "\r\n"
    };
    let text: String = SYNC.lines().filter(|line| !line.contains("latency")).map(line).collect();
    let repeated =
        format!("{text}(00:01:00) The server is ready.\n(00:01:03) 10.000 Mbytes/s\n(00:01:05) 1.000 Mbytes/s\n");
    let draft = drafts("oratcptest", &repeated).remove(0);
    assert!(draft.steps[0].reported.iter().all(|figure| figure.name == "throughput"));
    let second = &draft.steps[1];
    assert_eq!(
        (second.label.as_str(), second.outcome.clone(), second.intervals.len()),
        ("oratcptest 2", Outcome::Interrupted, 2)
    );
    assert!(second.reported.is_empty(), "no average was reported");
    assert!(draft.notes.iter().any(|note| note.contains("no summary")));
}

#[test]
fn several_requests_are_several_runs() {
    assert_eq!(drafts("oratcptest", &format!("{SYNC}{SYNC}")).len(), 2);
}

#[test]
fn what_is_not_understood_is_noted_and_nothing_is_an_error() {
    let (_, _, notes) = read(&source(&SYNC.replace("512.000 Kbytes/s", "512.000 Xbytes/s"))).unwrap();
    assert_eq!(notes.into_list()[0].line, Some(15));
    let refused = &SYNC[..SYNC.find("(23:59:57)").unwrap()];
    assert!(read(&source(refused)).unwrap_err().to_string().contains("no result"));
    assert!(recognise("OraTcpTest server started.\n[A test was requested.]\n\tTransport mode = SYNC\n").is_none());
}

#[test]
fn no_other_importer_claims_it() {
    assert_eq!(importers().iter().filter(|importer| (importer.recognises)(SYNC)).count(), 1);
}

proptest! {
    #[test]
    fn damaged_text_never_panics(file in damaged(&[SYNC])) {
        survives(file);
    }
}

#[test]
fn a_rate_beyond_all_numbers_is_none() {
    assert_eq!(super::rate_of("1e308", "Mbytes/s"), None);
    assert_eq!(super::rate_of("2", "kbytes/s"), Some(2_048.0));
}
