//! What iperf3, oratcptest and stress-ng measured on other people's networks and processors.

use super::read;
use crate::{Began, Draft};
use model::record::Step;
use model::record::Workload;

fn only(kind: &str, file: &str) -> Option<Draft> {
    let mut drafts = read(kind, file)?;
    assert_eq!((drafts.len(), drafts[0].steps.len()), (1, 1), "{file}");
    Some(drafts.remove(0))
}

fn figure_value(step: &Step, name: &str) -> Option<f64> {
    step.reported.iter().find(|figure| figure.name == name).map(|figure| figure.value)
}

/// Whether the bytes of all streams add up to those of their sum, and no interval has a stream less.
fn of_streams(step: &Step, sent_bytes: f64) -> bool {
    let of = |end: &str| {
        let is_one = |name: &str| name.starts_with("stream ") && name.ends_with(end);
        step.reported.iter().filter(|figure| is_one(&figure.name)).map(|figure| figure.value).collect::<Vec<_>>()
    };
    let streams = |names: &mut dyn Iterator<Item = &String>| {
        names.filter(|name| name.starts_with("stream ") && name.ends_with("bits/s")).count()
    };
    let in_intervals = step.intervals.iter().all(|interval| streams(&mut interval.reported.keys()) == 10);
    of("sent bytes").len() == 10 && of("sent bytes").iter().sum::<f64>() == sent_bytes && in_intervals
}

#[test]
fn iperf3_texts_of_tcp_give_both_sides() {
    for (file, sent, received, length_s) in [
        ("alexsockz_iperf3.txt", 54.3e9, 54.1e9, 10),
        ("alexsockz_iperf3_bridge.txt", 49.8e9, 49.6e9, 10),
        ("rac_interconnect_3.1_tcp.txt", 19.9e9, 19.9e9, 10),
        ("vladger_iperf3.txt", 45.2e6, 43.6e6, 10),
    ] {
        let Some(draft) = only("iperf3-text", &format!("iperf3/{file}")) else { return };
        let step = &draft.steps[0];
        assert_eq!(
            (figure_value(step, "sent bits/s"), figure_value(step, "received bits/s")),
            (Some(sent), Some(received)),
            "{file}"
        );
        assert_eq!((figure_value(step, "retransmits"), step.load.sessions), (Some(0.0), Some(1)), "{file}");
        assert_eq!((step.window.duration_ns, step.intervals.len()), (length_s * 1_000_000_000, 10), "{file}");
    }
}

#[test]
fn iperf3_servers_of_udp_tell_what_they_received() {
    let Some(whole) = only("iperf3-text", "iperf3/tinoslr_1UE5G.txt") else { return };
    let step = &whole.steps[0];
    let figures = ["received bits/s", "jitter", "lost datagrams", "datagrams", "sent bits/s"]
        .map(|name| figure_value(step, name));
    assert_eq!(figures, [Some(225e6), Some(0.079), Some(996.0), Some(11_653_989.0), None]);
    assert_eq!((step.window.duration_ns, step.intervals.len()), (599_990_000_000, 600));
    // The summary says that the server sent nothing, which is no rate.
    let old = only("iperf3-text", "iperf3/tinoslr_15mWi.txt").unwrap();
    let step = &old.steps[0];
    let figures = ["jitter", "lost datagrams", "datagrams", "out of order datagrams", "transferred bits/s"]
        .map(|name| figure_value(step, name));
    assert_eq!(figures, [Some(0.137), Some(1_562.0), Some(3_861_100.0), Some(30.0), None]);
    let received = figure_value(step, "received bits/s").unwrap();
    assert!((received - 150.2e6).abs() < 0.1e6, "{received}");
    assert!(old.notes[0].contains("average of the intervals"));
}

#[test]
fn iperf3_json_gives_exact_figures() {
    for (file, version, streams, sent, sent_bytes, received, received_bytes, retransmits) in [
        (
            "crvallance_laptop_reverse.json",
            "3.1.3",
            10,
            101_728_963.435345,
            762_970_112.0,
            101_728_963.435345,
            762_970_112.0,
            None,
        ),
        (
            "crvallance_laptop_send.json",
            "3.1.3",
            10,
            91_082_758.568397,
            683_147_264.0,
            90_840_431.462064,
            681_329_740.0,
            None,
        ),
        ("thiezn_results.json", "3.0.11", 1, 935_992_000.0, 1_520_994_808.0, 934_268_000.0, 1_518_193_248.0, Some(0.0)),
    ] {
        let Some(draft) = only("iperf3-json", &format!("iperf3/{file}")) else { return };
        let step = &draft.steps[0];
        let figures = ["sent bits/s", "sent bytes", "received bits/s", "received bytes", "retransmits"]
            .map(|name| figure_value(step, name));
        assert_eq!(
            figures,
            [Some(sent), Some(sent_bytes), Some(received), Some(received_bytes), retransmits],
            "{file}"
        );
        assert_eq!((draft.version.as_str(), step.load.sessions), (version, Some(streams)), "{file}");
        assert!(streams == 1 || of_streams(step, sent_bytes), "{file}: {:?}", step.reported);
        let way = if file.contains("reverse") { "received bits/s" } else { "sent bits/s" };
        assert!(step.intervals.iter().all(|interval| interval.reported.contains_key(way)), "{file}");
    }
}

#[test]
fn oratcptest_gives_throughput_and_latency() {
    let Some(draft) = only("oratcptest", "oratcptest/oci_async_1M_10s.txt") else { return };
    let step = &draft.steps[0];
    let mbytes_per_s: Vec<f64> =
        step.intervals.iter().map(|interval| interval.reported["throughput"] / 1_048_576.0).collect();
    assert_eq!(mbytes_per_s, [151.234, 151.423, 151.387, 150.368, 142.243]);
    assert_eq!((figure_value(step, "throughput"), figure_value(step, "latency")), (Some(149.284 * 1_048_576.0), None));
    assert_eq!(draft.parameters["Socket send buffer (used)"], "898560 bytes");
    let draft = only("oratcptest", "oratcptest/oci_sync_0len_1s.txt").unwrap();
    let step = &draft.steps[0];
    assert_eq!(
        (figure_value(step, "throughput"), figure_value(step, "latency")),
        (Some(0.046 * 1_048_576.0), Some(0.25))
    );
    assert_eq!(draft.parameters["Socket send buffer (used)"], "166400 bytes");
}

#[test]
fn stress_ng_gives_bogus_operations() {
    const FIGURES: [&str; 6] =
        ["bogo ops", "real time", "usr time", "sys time", "bogo ops/s (real time)", "bogo ops/s (usr+sys time)"];
    for (file, sessions, values) in [
        ("close192_metrics_times_misc.txt", 192, [1_568_702.0, 60.08, 171.29, 9_524.58, 26_108.29, 161.79]),
        ("cpu8_metrics_brief_recent.txt", 8, [7_925.0, 60.69, 480.26, 0.06, 130.58, 16.5]),
        ("pkb_context_metrics_brief.txt", 2, [22_429.0, 5.0, 5.49, 4.48, 4_485.82, 2_249.65]),
    ] {
        let Some(draft) = only("stress-ng-text", &format!("stress-ng/{file}")) else { return };
        let step = &draft.steps[0];
        assert_eq!(FIGURES.map(|name| figure_value(step, name)), values.map(Some), "{file}");
        assert_eq!((step.load.sessions, draft.workload), (Some(sessions), Workload::Processor), "{file}");
    }
    let close = only("stress-ng-text", "stress-ng/close192_metrics_times_misc.txt").unwrap();
    let more = ["CPU used per instance", "RSS Max", "close calls per sec (harmonic mean of 192 instances)"];
    assert_eq!(more.map(|name| figure_value(&close.steps[0], name)), [84.05, 1_548.0, 600_923.8].map(Some));
    let yaml = only("stress-ng-yaml", "stress-ng/vc_0925_cpu.yaml").unwrap();
    let values = [31_532.0, 10.045186, 160.51, 0.0, 3_239.115687, 196.448819];
    assert_eq!(FIGURES.map(|name| figure_value(&yaml.steps[0], name)), values.map(Some));
    assert_eq!((yaml.version.as_str(), yaml.began), ("0.09.25", Began::epoch_s(1_651_263_236)));
}
