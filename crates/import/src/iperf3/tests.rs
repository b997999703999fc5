use proptest::prelude::*;

use crate::specimens::{damaged, drafts, only, source, survives};
use crate::{Began, importers, read, recognise};
use model::record::{Ending, Outcome, Step};

fn figure_value(step: &Step, name: &str) -> Option<f64> {
    step.reported.iter().find(|figure| figure.name == name).map(|figure| figure.value)
}

const TCP: &str = r#"{
	"start": {
		"connected": [{"socket": 5, "local_host": "10.1.1.1", "local_port": 40000, "remote_host": "10.1.1.2", "remote_port": 5201}],
		"version": "iperf 3.9",
		"system_info": "Linux net1 5.4.0-1 #1 SMP x86_64",
		"timestamp": {"time": "Tue, 14 Nov 2023 22:13:20 GMT", "timesecs": 1700000000},
		"connecting_to": {"host": "net2", "port": 5201},
		"test_start": {"protocol": "TCP", "num_streams": 1, "omit": 1, "duration": 2, "reverse": 0}
	},
	"intervals": [
		{"streams": [{"socket": 5, "rtt": 9000}], "sum": {"start": 0, "end": 1.0, "seconds": 1.0, "bytes": 900, "bits_per_second": 7200, "retransmits": 9, "omitted": true, "sender": true}},
		{"streams": [{"socket": 5, "rtt": 500, "snd_cwnd": 4096}], "sum": {"start": 0, "end": 1.0, "seconds": 1.0, "bytes": 1000, "bits_per_second": 8000, "retransmits": 1, "omitted": false, "sender": true}},
		{"streams": [{"socket": 5, "rtt": 700, "snd_cwnd": 8192}], "sum": {"start": 1.0, "end": 2.0, "seconds": 1.0, "bytes": 3000, "bits_per_second": 24000, "retransmits": 2, "omitted": false, "sender": true}}
	],
	"end": {
		"streams": [{"sender": {"socket": 5, "max_snd_cwnd": 8192, "max_rtt": 700, "min_rtt": 500, "mean_rtt": 600}, "receiver": {"socket": 5}}],
		"sum_sent": {"start": 0, "end": 2.0, "seconds": 2.0, "bytes": 4000, "bits_per_second": 16000, "retransmits": 3, "sender": true},
		"sum_received": {"start": 0, "end": 2.1, "seconds": 2.1, "bytes": 3990, "bits_per_second": 15200, "sender": true},
		"cpu_utilization_percent": {"host_total": 12.5, "remote_total": 25.0}
	}
}
"#;

#[test]
fn a_json_of_tcp_tells_both_sides_and_its_intervals() {
    let draft = only("iperf3-json", TCP);
    assert_eq!(
        (draft.title.as_str(), draft.version.as_str(), draft.began),
        ("TCP to net2", "3.9", Began::epoch_s(1_700_000_000))
    );
    assert_eq!((draft.target.address.as_str(), draft.environment.hostname.as_deref()), ("net2:5201", Some("net1")));
    let step = &draft.steps[0];
    assert_eq!(
        (step.load.sessions, step.window.duration_ns, step.window.warmup_ns),
        (Some(1), 2_000_000_000, 1_000_000_000)
    );
    let figures = ["sent bits/s", "sent bytes", "received bits/s", "retransmits", "rtt mean", "rtt max", "cwnd max"]
        .map(|name| figure_value(step, name));
    assert_eq!(figures, [16_000.0, 4_000.0, 15_200.0, 3.0, 0.6, 0.7, 8_192.0].map(Some));
    let cpu = step.reported.iter().find(|figure| figure.name == "remote total CPU").unwrap();
    assert_eq!((cpu.layer.as_str(), cpu.value), ("server", 25.0));
    let (warmup, last) = (&step.intervals[0], &step.intervals[2]);
    assert_eq!((warmup.warmup, last.warmup, last.offset_ns), (true, false, 2_000_000_000));
    assert_eq!(
        (last.reported["sent bits/s"], last.reported["rtt mean"], last.reported["cwnd"]),
        (24_000.0, 0.7, 8_192.0)
    );
}

#[test]
fn streams_are_distinguished_where_there_are_several() {
    let text = "Connecting to host net2, port 5201\n[  5] local 10.0.0.1 port 1 connected to 10.0.0.2 port 5201\n\
[  7] local 10.0.0.1 port 2 connected to 10.0.0.2 port 5201\n[ ID] Interval           Transfer     Bitrate         Retr  Cwnd\n\
[  5]   0.00-2.00   sec  1.00 MBytes  4.19 Mbits/sec    3    64.0 KBytes\n[  7]   0.00-2.00   sec  3.00 MBytes  12.6 Mbits/sec    0    128 KBytes\n\
[SUM]   0.00-2.00   sec  4.00 MBytes  16.8 Mbits/sec    3\n- - - - - - - - - - -\n[ ID] Interval           Transfer     Bitrate         Retr\n\
[  5]   0.00-2.00   sec  1.00 MBytes  4.19 Mbits/sec    3             sender\n[  5]   0.00-2.00   sec   900 KBytes  3.69 Mbits/sec                  receiver\n\
[  7]   0.00-2.00   sec  3.00 MBytes  12.6 Mbits/sec    0             sender\n[  7]   0.00-2.00   sec  2.90 MBytes  12.2 Mbits/sec                  receiver\n\
[SUM]   0.00-2.00   sec  4.00 MBytes  16.8 Mbits/sec    3             sender\n[SUM]   0.00-2.00   sec  3.78 MBytes  15.9 Mbits/sec                  receiver\n\niperf Done.\n";
    let draft = only("iperf3-text", text);
    let step = &draft.steps[0];
    let names = [
        "stream 5 sent bits/s",
        "stream 5 retransmits",
        "stream 5 received bits/s",
        "stream 7 sent bytes",
        "sent bits/s",
    ];
    let values = [4.19e6, 3.0, 3.69e6, 3.0 * 1_048_576.0, 16.8e6];
    assert_eq!(names.map(|name| figure_value(step, name)), values.map(Some), "{:?}", step.reported);
    assert_eq!((step.intervals.len(), step.window.duration_ns, step.load.sessions), (1, 2_000_000_000, Some(2)));
    let first = &step.intervals[0].reported;
    let names = ["stream 5 sent bits/s", "stream 7 cwnd", "sent bits/s", "retransmits"];
    assert_eq!(names.map(|name| first[name]), [4.19e6, 131_072.0, 16.8e6, 3.0]);
    assert!(draft.notes.iter().all(|note| !note.contains("kept as reported")), "{:?}", draft.notes);
}

#[test]
fn what_the_other_side_did_not_tell_is_unknown() {
    let server = TCP
        .replace("\"connecting_to\": {\"host\": \"net2\"", "\"accepted_connection\": {\"host\": \"net2\"")
        .replace(", \"sender\": true", "")
        .replace("\"bytes\": 4000, \"bits_per_second\": 16000", "\"bytes\": 0, \"bits_per_second\": 0");
    let draft = only("iperf3-json", &server);
    let step = &draft.steps[0];
    assert_eq!((figure_value(step, "sent bits/s"), figure_value(step, "received bits/s")), (None, Some(15_200.0)));
    assert!(step.intervals[1].reported.contains_key("received bits/s"), "a server receives");
    assert_eq!((draft.title.as_str(), draft.target.address.as_str()), ("TCP from net2", "net2"));
}

#[test]
fn a_json_of_udp_has_jitter_and_loss() {
    let udp = r#"{"start": {"connected": [{}, {}], "version": "iperf 3.1.3", "connecting_to": {"host": "net2", "port": 1}, "test_start": {"protocol": "UDP", "num_streams": 2}},
"intervals": [{"streams": [{}, {}], "sum": {"start": 0, "end": 1, "seconds": 1, "bytes": 500, "bits_per_second": 4000, "packets": 5, "omitted": false}}],
"end": {"streams": [{"udp": {"out_of_order": 1}}, {"udp": {"out_of_order": 2}}], "sum": {"start": 0, "end": 1, "seconds": 1, "bytes": 500, "bits_per_second": 4000, "jitter_ms": 0.25, "lost_packets": 1, "packets": 5, "lost_percent": 20}}}"#;
    let step = only("iperf3-json", udp).steps.remove(0);
    let figures =
        ["sent bits/s", "jitter", "lost datagrams", "datagrams", "lost", "out of order datagrams", "received bits/s"]
            .map(|name| figure_value(&step, name));
    assert_eq!(figures, [Some(4_000.0), Some(0.25), Some(1.0), Some(5.0), Some(20.0), Some(3.0), None]);
    assert_eq!((step.load.sessions, step.intervals[0].reported["sent bits/s"]), (Some(2), 4_000.0));
}

#[test]
fn both_ways_at_once_are_distinguished() {
    let text = TCP
        .replace("\"cpu_utilization_percent\"", "\"sum_sent_bidir_reverse\": {\"seconds\": 2.0, \"bytes\": 80, \"bits_per_second\": 320, \"retransmits\": 7}, \"sum_received_bidir_reverse\": {\"seconds\": 2.0, \"bytes\": 78, \"bits_per_second\": 312}, \"cpu_utilization_percent\"")
        .replace("\"omitted\": false, \"sender\": true}", "\"omitted\": false, \"sender\": true}, \"sum_bidir_reverse\": {\"seconds\": 1, \"bytes\": 40, \"bits_per_second\": 310, \"sender\": false}");
    let step = only("iperf3-json", &text).steps.remove(0);
    let figures =
        ["sent bits/s", "reverse sent bits/s", "reverse received bits/s", "reverse retransmits", "retransmits"]
            .map(|name| figure_value(&step, name));
    assert_eq!(figures, [16_000.0, 320.0, 312.0, 7.0, 3.0].map(Some));
    assert_eq!(step.intervals[1].reported["reverse received bits/s"], 310.0);
}

#[test]
fn errors_and_several_documents_are_several_runs() {
    let error = "{\n\t\"start\":\t{\"connected\": [], \"version\": \"iperf 3.7\", \"test_start\": {}},\n\t\"intervals\":\t[],\n\t\"end\":\t{},\n\t\"error\":\t\"unable to connect\"\n}\n";
    let found = drafts("iperf3-json", &format!("{TCP}some text\n{error}"));
    assert_eq!(found[1].steps[0].outcome, Outcome::Failed { error: "unable to connect".to_owned() });
    assert_eq!((found.len(), found[1].steps[0].load.sessions), (2, None));
    let cut = &TCP[..TCP.len() / 2];
    assert!(read(&source(cut)).unwrap_err().to_string().contains("ends in the middle"));
    assert!(
        read(&source(&format!("{TCP}\n\n{}", TCP.replace("\"end\": {", "\"end\": {{"))))
            .unwrap_err()
            .to_string()
            .contains("not JSON")
    );
}

#[test]
fn a_stream_of_events_is_read_as_the_document_is() {
    let document: serde_json::Value = serde_json::from_str(TCP).unwrap();
    let event = |event: &str, data: &serde_json::Value| format!("{{\"event\":\"{event}\",\"data\":{data}}}\n");
    let intervals: String =
        document["intervals"].as_array().unwrap().iter().map(|interval| event("interval", interval)).collect();
    let stream = format!("{}{intervals}{}", event("start", &document["start"]), event("end", &document["end"]));
    assert_eq!(only("iperf3-json", &stream).steps, only("iperf3-json", TCP).steps);
    // `--json-stream-full-output` has the document behind its events.
    let with_cookie = |text: &str| text.replace("\"version\"", "\"cookie\": \"abc\", \"version\"");
    let full = format!("{}{}", with_cookie(&stream), with_cookie(TCP));
    assert_eq!(only("iperf3-json", &full).steps, only("iperf3-json", TCP).steps);
    let killed = format!("{}{intervals}", event("start", &document["start"]));
    let draft = only("iperf3-json", &killed);
    assert_eq!(
        (figure_value(&draft.steps[0], "sent bits/s"), figure_value(&draft.steps[0], "sent bytes")),
        (Some(16_000.0), Some(4_000.0))
    );
    assert!(draft.notes[0].contains("summary is missing"));
}

const CLIENT: &str = "\
iperf 3.6
Linux net1 5.4.0 #1 SMP x86_64
Time: Tue, 14 Nov 2023 22:13:20 GMT
Connecting to host net2, port 5201
[  5] local 10.1.1.1 port 40000 connected to 10.1.1.2 port 5201
[  7] local 10.1.1.1 port 40001 connected to 10.1.1.2 port 5201
Starting Test: protocol: TCP, 2 streams, 131072 byte blocks, omitting 1 seconds, 2 second test
[ ID] Interval           Transfer     Bitrate         Retr  Cwnd
[  5]   0.00-1.00   sec  9.00 MBytes  75.5 Mbits/sec    9    100 KBytes       (omitted)
[  7]   0.00-1.00   sec  9.00 MBytes  75.5 Mbits/sec    9    100 KBytes       (omitted)
[SUM]   0.00-1.00   sec  18.0 MBytes   151 Mbits/sec   18             (omitted)
- - - - - - - - - - - - - - - - - - - - - - - - -
[  5]   0.00-1.00   sec  1.00 MBytes  8.39 Mbits/sec    0    100 KBytes
[  7]   0.00-1.00   sec  1.00 MBytes  8.39 Mbits/sec    1    100 KBytes
[SUM]   0.00-1.00   sec  2.00 MBytes  16.8 Mbits/sec    1
- - - - - - - - - - - - - - - - - - - - - - - - -
[  5]   1.00-2.00   sec  2.00 MBytes  16.8 Mbits/sec    2    100 KBytes
[  7]   1.00-2.00   sec  2.00 MBytes  16.8 Mbits/sec    3    100 KBytes
[SUM]   1.00-2.00   sec  4.00 MBytes  33.6 Mbits/sec    5
- - - - - - - - - - - - - - - - - - - - - - - - -
Test Complete. Summary Results:
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-2.00   sec  3.00 MBytes  12.6 Mbits/sec    2             sender
[  5]   0.00-2.04   sec  2.90 MBytes  11.9 Mbits/sec                  receiver
[  7]   0.00-2.00   sec  3.00 MBytes  12.6 Mbits/sec    4             sender
[  7]   0.00-2.04   sec  2.90 MBytes  11.9 Mbits/sec                  receiver
[SUM]   0.00-2.00   sec  6.00 MBytes  25.2 Mbits/sec    6             sender
[SUM]   0.00-2.04   sec  5.80 MBytes  23.8 Mbits/sec                  receiver
CPU Utilization: local/sender 1.5% (0.5%u/1.0%s), remote/receiver 4.2% (0.2%u/4.0%s)

iperf Done.
";

#[test]
fn the_text_of_parallel_streams_is_read_by_its_sums() {
    let draft = only("iperf3-text", CLIENT);
    assert_eq!((draft.version.as_str(), draft.began), ("3.6", Began::epoch_s(1_700_000_000)));
    let step = &draft.steps[0];
    assert_eq!(
        (step.load.sessions, step.window.duration_ns, step.window.warmup_ns),
        (Some(2), 2_000_000_000, 1_000_000_000)
    );
    let figures = ["sent bits/s", "received bits/s", "retransmits", "sent bytes", "host user CPU", "remote total CPU"]
        .map(|name| figure_value(step, name));
    assert_eq!(figures, [25.2e6, 23.8e6, 6.0, 6.0 * 1_048_576.0, 0.5, 4.2].map(Some));
    let rates: Vec<(bool, u64, f64)> = step
        .intervals
        .iter()
        .map(|interval| (interval.warmup, interval.offset_ns / 1_000_000_000, interval.reported["sent bits/s"]))
        .collect();
    assert_eq!(rates, [(true, 0, 151e6), (false, 1, 16.8e6), (false, 2, 33.6e6)]);
    assert_eq!(step.intervals[2].reported["retransmits"], 5.0);
}

#[test]
fn times_before_lines_and_other_units_change_nothing() {
    let timed: String = CLIENT.lines().map(|line| format!("[2026-01-05 10:00:00] {line}\r\n")).collect();
    assert_eq!(figure_value(&only("iperf3-text", &timed).steps[0], "sent bits/s"), Some(25.2e6));
    let bytes = CLIENT.replace("25.2 Mbits/sec", "3.00 MBytes/sec");
    assert_eq!(figure_value(&only("iperf3-text", &bytes).steps[0], "sent bits/s"), Some(24.0 * 1_048_576.0));
}

#[test]
fn reversed_tests_and_servers_receive() {
    let reversed = "Connecting to host net2, port 5201\nReverse mode, remote host net2 is sending\n[  5] local 10.1.1.1 port 4 connected to 10.1.1.2 port 5201\n\
                    [ ID] Interval           Transfer     Bitrate\n[  5]   0.00-1.00   sec  1.00 MBytes  8.39 Mbits/sec\n- - - - - -\n\
                    [ ID] Interval           Transfer     Bitrate         Retr\n[  5]   0.00-1.04   sec  1.10 MBytes  8.87 Mbits/sec    3             sender\n[  5]   0.00-1.00   sec  1.00 MBytes  8.39 Mbits/sec                  receiver\n";
    let step = only("iperf3-text", reversed).steps.remove(0);
    assert!(step.intervals[0].reported.contains_key("received bits/s"));
    assert_eq!((figure_value(&step, "sent bits/s"), figure_value(&step, "retransmits")), (Some(8.87e6), Some(3.0)));
    let server = "-----------\nServer listening on 5201\n-----------\nAccepted connection from 10.1.1.1, port 4\n[  5] local 10.1.1.2 port 5201 connected to 10.1.1.1 port 5\n\
                  [ ID] Interval           Transfer     Bandwidth\n[  5]   0.00-1.00   sec  1.00 MBytes  8.39 Mbits/sec\n- - - - -\n\
                  [ ID] Interval           Transfer     Bandwidth\n[  5]   0.00-1.04   sec  0.00 Bytes  0.00 bits/sec                  sender\n[  5]   0.00-1.04   sec  1.00 MBytes  8.07 Mbits/sec                  receiver\n";
    let again = server.split_once("Accepted").unwrap().1;
    let found = drafts(
        "iperf3-text",
        &format!(
            "{server}-----------\nServer listening on 5201\nAccepted{again}iperf3: interrupt - the server has terminated\n"
        ),
    );
    assert_eq!((found.len(), found[1].steps[0].outcome.clone()), (2, Outcome::Completed));
    let step = &found[0].steps[0];
    assert_eq!(
        (figure_value(step, "sent bits/s"), figure_value(step, "received bits/s")),
        (None, Some(8.07e6)),
        "the server was not reported what was sent"
    );
    assert_eq!((step.window.duration_ns, step.intervals[0].reported["received bits/s"]), (1_040_000_000, 8.39e6));
}

#[test]
fn the_text_of_udp_and_of_both_ways_is_read() {
    let udp = "Connecting to host net2, port 5201\n[  5] local 10.1.1.1 port 4 connected to 10.1.1.2 port 5201\n\
               [ ID] Interval           Transfer     Bitrate         Total Datagrams\n[  5]   0.00-1.00   sec   128 KBytes  1.05 Mbits/sec  91\n- - - - -\n\
               [ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams\n[  5]   0.00-1.00   sec   128 KBytes  1.05 Mbits/sec  0.000 ms  0/91 (0%)  sender\n\
               [  5]   0.00-1.04   sec   120 KBytes   945 Kbits/sec  0.035 ms  4/80 (5%)  receiver\n\niperf Done.\n";
    let step = only("iperf3-text", udp).steps.remove(0);
    assert_eq!((step.intervals[0].reported["datagrams"], step.intervals[0].reported["sent bits/s"]), (91.0, 1.05e6));
    let figures = ["sent bits/s", "received bits/s", "jitter", "lost datagrams", "datagrams", "lost"]
        .map(|name| figure_value(&step, name));
    assert_eq!(figures, [1.05e6, 945e3, 0.035, 4.0, 80.0, 5.0].map(Some));
    let both = "Connecting to host net2, port 5201\n[  5] local 10.1.1.1 port 4 connected to 10.1.1.2 port 5201\n[  7] local 10.1.1.1 port 6 connected to 10.1.1.2 port 5201\n\
                [ ID][Role] Interval           Transfer     Bitrate         Retr  Cwnd\n[  5][TX-C]   0.00-1.00   sec  1.00 MBytes  8.39 Mbits/sec    0    100 KBytes\n[  7][RX-C]   0.00-1.00   sec  2.00 MBytes  16.8 Mbits/sec\n- - - - -\n\
                [ ID][Role] Interval           Transfer     Bitrate         Retr\n[  5][TX-C]   0.00-1.00   sec  1.00 MBytes  8.39 Mbits/sec    2             sender\n[  5][TX-C]   0.00-1.04   sec  0.90 MBytes  7.26 Mbits/sec                  receiver\n\
                [  7][RX-C]   0.00-1.00   sec  2.10 MBytes  17.6 Mbits/sec    5             sender\n[  7][RX-C]   0.00-1.04   sec  2.00 MBytes  16.1 Mbits/sec                  receiver\n";
    let step = only("iperf3-text", both).steps.remove(0);
    let figures =
        ["sent bits/s", "received bits/s", "reverse sent bits/s", "reverse received bits/s", "reverse retransmits"]
            .map(|name| figure_value(&step, name));
    assert_eq!(figures, [8.39e6, 7.26e6, 17.6e6, 16.1e6, 5.0].map(Some));
    assert_eq!((step.intervals.len(), step.intervals[0].reported["reverse received bits/s"]), (1, 16.8e6));
}

#[test]
fn tests_that_failed_or_have_no_end_say_so() {
    let failed = "Connecting to host net2, port 5201\n[  5] local a port 4 connected to b port 5201\n[ ID] Interval           Transfer     Bitrate         Retr  Cwnd\n[  5]   0.00-1.00   sec  1.00 MBytes  8.39 Mbits/sec    0    100 KBytes\niperf3: error - control socket has closed unexpectedly\n";
    let step = only("iperf3-text", failed).steps.remove(0);
    assert_eq!(step.outcome, Outcome::Failed { error: "control socket has closed unexpectedly".to_owned() });
    assert_eq!(figure_value(&step, "sent bits/s"), Some(8.39e6));
    let cut = &CLIENT[..CLIENT.find("- - -\nTest Complete").unwrap()];
    let draft = only("iperf3-text", cut);
    assert_eq!(draft.steps[0].outcome, Outcome::Interrupted);
    assert!(draft.notes.iter().any(|note| note.contains("no summary")));
    assert_eq!(figure_value(&draft.steps[0], "sent bits/s"), Some((16.8e6 + 33.6e6) / 2.0));
    let (_, _, notes) =
        read(&source(&CLIENT.replace("4.00 MBytes  33.6 Mbits/sec", "4.00 QBytes  33.6 Mbits/sec"))).unwrap();
    assert_eq!(notes.into_list()[0].line, Some(19));
}

#[test]
fn a_client_that_was_stopped_knows_only_its_own_side() {
    let lines = "Connecting to host net2, port 5201\n[  5] local 10.1.1.1 port 4 connected to 10.1.1.2 port 5201\n\
               [ ID] Interval           Transfer     Bitrate         Total Datagrams\n[  5]   0.00-1.00   sec   128 KBytes  1.05 Mbits/sec  91\n- - - - -\n\
               [ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams\n[  5]   0.00-1.00   sec   128 KBytes  1.05 Mbits/sec  0.000 ms  0/91 (0%)  sender\n\
               [  5]   0.00-1.00   sec  0.00 Bytes  0.00 bits/sec  0.000 ms  0/0 (0%)  receiver\n";
    // Into a file what was buffered comes after the error.
    let stopped = "iperf3: interrupt - the client has terminated\n";
    for text in [format!("{lines}{stopped}"), format!("{stopped}{lines}")] {
        let step = only("iperf3-text", &text).steps.remove(0);
        assert_eq!(step.outcome, Outcome::Interrupted);
        let figures = ["sent bits/s", "received bits/s", "jitter", "datagrams", "lost datagrams", "lost"]
            .map(|name| figure_value(&step, name));
        assert_eq!(figures, [Some(1.05e6), None, None, None, None, None]);
    }
    let json = TCP.replace("\"end\": {", "\"error\": \"interrupt - the client has terminated\", \"end\": {");
    let json = json.replace("\"remote_total\": 25.0", "\"remote_total\": 0");
    let step = only("iperf3-json", &json).steps.remove(0);
    assert_eq!((&step.outcome, step.window.ending), (&Outcome::Interrupted, Ending::Interrupt));
    assert_eq!((figure_value(&step, "remote total CPU"), figure_value(&step, "host total CPU")), (None, Some(12.5)));
}

#[test]
fn a_server_whose_client_was_stopped_has_one_summary() {
    let text = "Accepted connection from 10.1.1.1, port 4\n[  5] local 10.1.1.2 port 5201 connected to 10.1.1.1 port 5\n\
                [ ID] Interval           Transfer     Bitrate\n[  5]   0.00-1.00   sec  1.00 MBytes  8.39 Mbits/sec\n\
                [ ID] Interval           Transfer     Bitrate\n[  5]   0.00-1.00   sec  1.00 MBytes  8.39 Mbits/sec\n\
                iperf3: the client has terminated\n- - - - - -\n\
                [ ID] Interval           Transfer     Bitrate\n[  5]   0.00-1.00   sec  1.20 MBytes  10.1 Mbits/sec                  receiver\n\
                Server listening on 5201 (test #2)\niperf3: interrupt - the server has terminated\n";
    let step = only("iperf3-text", text).steps.remove(0);
    assert_eq!((step.intervals.len(), &step.outcome), (1, &Outcome::Interrupted));
    assert_eq!(
        (figure_value(&step, "received bits/s"), figure_value(&step, "transferred bits/s")),
        (Some(10.1e6), None)
    );
}

#[test]
fn what_the_client_repeats_of_its_server_is_no_test_of_its_own() {
    let server = "Server output:\niperf 3.7\nTime: Tue, 14 Nov 2023 23:13:20 GMT\nAccepted connection from 10.1.1.1, port 4\n[  5] local 10.1.1.2 port 5201 connected to 10.1.1.1 port 5\n\
                  [ ID] Interval           Transfer     Bitrate\n[  5]   0.00-2.00   sec  6.00 MBytes  25.2 Mbits/sec\n";
    let (before, done) = CLIENT.split_at(CLIENT.find("iperf Done.").unwrap());
    let text = format!("{before}{server}\n{done}");
    let found = drafts("iperf3-text", &format!("{text}{text}"));
    let alone = only("iperf3-text", CLIENT);
    for draft in &found {
        assert_eq!((&draft.steps, draft.began), (&alone.steps, alone.began));
    }
    assert_eq!(found.len(), 2);
}

#[test]
fn a_server_knows_neither_jitter_of_what_it_sends_nor_the_processors_of_its_client() {
    let text = r#"{"start": {"connected": [{}], "version": "iperf 3.12", "accepted_connection": {"host": "net1", "port": 1}, "test_start": {"protocol": "UDP", "num_streams": 1, "reverse": 1}},
"intervals": [],
"end": {"sum": {"seconds": 1, "bytes": 500, "bits_per_second": 4000, "jitter_ms": 0, "lost_packets": 0, "packets": 5, "lost_percent": 0, "sender": true},
"sum_sent": {"seconds": 1, "bytes": 500, "bits_per_second": 4000, "jitter_ms": 0, "lost_packets": 0, "packets": 5, "lost_percent": 0, "sender": true},
"sum_received": {"seconds": 1, "bytes": 0, "bits_per_second": 0, "jitter_ms": 0, "lost_packets": 0, "packets": 0, "lost_percent": 0, "sender": false},
"cpu_utilization_percent": {"host_total": 12.5, "remote_total": 25.0}}}
{"start": {"connected": [], "version": "iperf 3.12"}, "intervals": [], "end": {}, "error": "interrupt - the server has terminated"}"#;
    let step = only("iperf3-json", text).steps.remove(0);
    let figures = ["sent bits/s", "datagrams", "jitter", "lost datagrams", "lost", "remote total CPU"]
        .map(|name| figure_value(&step, name));
    assert_eq!(figures, [Some(4_000.0), Some(5.0), None, None, None, None]);
}

#[test]
fn iperf_2_and_other_texts_are_not_claimed() {
    let two = "------------------------------------------------------------\nClient connecting to net2, TCP port 5001\nTCP window size: 85.0 KByte (default)\n------------------------------------------------------------\n\
               [  3] local 10.1.1.1 port 4 connected with 10.1.1.2 port 5001\n[ ID] Interval       Transfer     Bandwidth\n[  3]  0.0-10.0 sec  1.10 GBytes   941 Mbits/sec\n";
    for text in
        [two, "Connecting to host net2, port 22\n", "{\"start\": 1, \"end\": 2}", "see iperf 3 [ ID] Interval\n"]
    {
        assert!(!recognise(text).is_some_and(|importer| importer.kind.starts_with("iperf3")), "{text}");
    }
    for text in [TCP, CLIENT] {
        assert_eq!(importers().iter().filter(|importer| (importer.recognises)(text)).count(), 1);
    }
}

proptest! {
    #[test]
    fn damaged_text_never_panics(file in damaged(&[TCP, CLIENT])) {
        survives(file);
    }
}
