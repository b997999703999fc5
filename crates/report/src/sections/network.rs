//! What both ends of a network saw of themselves.

use std::io;

use crate::grid::Grid;
use crate::paper::Paper;
use crate::words::{UNKNOWN, duration, number, share};
use model::record::{NetworkEnd, NetworkSide, Run, TcpStats};
use model::units::group_thousands;

const TITLE: &str = "Both ends of the network (% of the time in which connections had something to send; 100 % = one thread, one processor)";

/// Whether anything is known of the ends of a network.
pub(crate) fn is_known(run: &Run) -> bool {
    run.steps.iter().any(|step| !step.network.is_empty())
}

/// One row for each end of each step; nothing without any.
pub(crate) fn write(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    if !is_known(run) {
        return Ok(());
    }
    let header = [
        "step",
        "end",
        "flows",
        "sends Gbit/s",
        "receives",
        "RTT",
        "least RTT",
        "by window %",
        "by buffer %",
        "sent again %",
        "window",
        "path MTU",
        "thread %",
        "waits %",
        "processor %",
        "softirq %",
    ];
    let mut grid = Grid::new(2, header);
    for step in &run.steps {
        for side in [NetworkSide::Client, NetworkSide::Server] {
            for end in step.network.iter().filter(|end| end.side == side) {
                let server = end.server.as_ref().map_or_else(String::new, |server| format!(", {server}"));
                let names = [step.label.clone(), format!("{}{server}", side.name())];
                grid.push(names.into_iter().chain(row(end)).collect());
            }
        }
    }
    paper.table(TITLE, &grid.with_known_columns())
}

fn row(end: &NetworkEnd) -> Vec<String> {
    let tcp = end.tcp.as_ref();
    // An end that only acknowledges has nothing to be held back from.
    let sends = tcp.filter(|tcp| tcp.bytes_sent > tcp.bytes_received / 100);
    let of = |part: fn(&TcpStats) -> Option<f64>| share(sends.and_then(part));
    let time = |ns: Option<f64>| ns.map_or_else(|| UNKNOWN.to_owned(), |ns| duration(Some(ns as u64)));
    let count = |value: Option<f64>| value.map_or_else(|| UNKNOWN.to_owned(), group_thousands);
    let of_time =
        |ns: Option<u64>| share(ns.filter(|_| end.elapsed_ns > 0).map(|ns| ns as f64 / end.elapsed_ns as f64));
    let busiest = end.processors.iter().max_by_key(|processor| processor.busy_ns);
    let gigabits = |bits: Option<f64>| number(bits.map(|bits| bits / 1e9));
    vec![
        count(tcp.map(|tcp| f64::from(tcp.flows))),
        gigabits(end.sent_bits_per_s()),
        gigabits(end.received_bits_per_s()),
        time(tcp.and_then(|tcp| tcp.rtt_ns.mean())),
        time(tcp.and_then(|tcp| tcp.min_rtt_ns).map(|ns| ns as f64)),
        of(|tcp| tcp.share_of_busy(tcp.rwnd_limited_ns)),
        of(|tcp| tcp.share_of_busy(tcp.sndbuf_limited_ns)),
        of(TcpStats::resent_share),
        count(sends.and_then(|tcp| tcp.cwnd_segments.mean())),
        count(tcp.and_then(|tcp| tcp.path_mtu_bytes.lowest()).map(|bytes| bytes as f64)),
        of_time(end.busiest_thread.map(|thread| thread.running_ns)),
        of_time(end.busiest_thread.map(|thread| thread.waiting_ns)),
        of_time(busiest.map(|processor| processor.busy_ns)),
        of_time(busiest.map(|processor| processor.softirq_ns)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::Terminal;
    use model::record::{Spread, Step, ThreadTime, sample};

    fn rendered(run: &Run) -> String {
        let mut out = Vec::new();
        write(&mut Terminal { out: &mut out, width: 300 }, run).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_end_has_a_row_and_what_is_unknown_no_column() {
        let mut run = sample::sweep(5);
        assert_eq!(rendered(&run), "", "no network was tested");
        let mut step = Step::new(0, "c8");
        let end = |side, sent: u64, received: u64| NetworkEnd {
            side,
            elapsed_ns: 1_000_000_000,
            sent_bytes: Some(sent),
            received_bytes: Some(received),
            tcp: Some(TcpStats {
                flows: 8,
                busy_ns: 8_000_000_000,
                rwnd_limited_ns: 2_000_000_000,
                bytes_sent: sent,
                bytes_received: received,
                rtt_ns: Spread { count: 1, sum: 41_000_000, least: 1, most: 1 },
                ..TcpStats::default()
            }),
            busiest_thread: Some(ThreadTime { running_ns: 310_000_000, waiting_ns: 0 }),
            ..NetworkEnd::default()
        };
        step.network = vec![end(NetworkSide::Server, 0, 1_176_250_000), end(NetworkSide::Client, 1_176_250_000, 0)];
        run.steps = vec![step];
        let text = rendered(&run);
        let rows: Vec<&str> = text.lines().filter(|line| line.contains("c8")).collect();
        assert!(rows[0].contains("client") && rows[0].contains("9.4") && rows[0].contains("25"), "{text}");
        assert!(rows[1].contains("server") && rows[1].contains("41") && rows[1].contains("31"), "{text}");
        assert!(!text.contains("least RTT") && !text.contains("processor %"), "{text}");
    }
}
