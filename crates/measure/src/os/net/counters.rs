//! The kernel's own counters of a network, by their names. What is malformed is left out.

use std::collections::BTreeMap;

use crate::os::Root;

/// Of `/proc/net/snmp` and `/proc/net/netstat`, those that say that something was lost, refused or done again, and how much
/// there was in all. A kernel that does not have one leaves it out.
const WANTED: &[(&str, &[&str])] = &[
    (
        "Ip",
        &[
            "InReceives",
            "InDiscards",
            "OutRequests",
            "OutDiscards",
            "ReasmReqds",
            "ReasmOKs",
            "ReasmFails",
            "ReasmTimeout",
            "FragOKs",
            "FragFails",
            "FragCreates",
        ],
    ),
    ("Tcp", &["InSegs", "OutSegs", "RetransSegs", "InErrs", "AttemptFails", "EstabResets"]),
    ("Udp", &["InDatagrams", "OutDatagrams", "NoPorts", "InErrors", "RcvbufErrors", "SndbufErrors", "InCsumErrors"]),
    (
        "TcpExt",
        &[
            "ListenOverflows",
            "ListenDrops",
            "TCPTimeouts",
            "TCPLossProbes",
            "TCPFastRetrans",
            "TCPLostRetransmit",
            "PruneCalled",
            "RcvPruned",
            "OfoPruned",
            "TCPRcvCollapsed",
            "TCPBacklogDrop",
            "TCPZeroWindowDrop",
            "TCPRcvQDrop",
            "TCPMTUPFail",
            "TCPMTUPSuccess",
            "TCPToZeroWindowAdv",
            "TCPMemoryPressures",
            "TCPAbortOnTimeout",
            "TCPAbortOnMemory",
            "TCPSpuriousRtxHostQueues",
            "TCPDSACKRecv",
        ],
    ),
];

/// Directory of the network that the calling thread is in; that of the process is another where a thread has gone into a
/// namespace of its own.
const OF_THREAD: &str = "/proc/thread-self/net";
/// The same before Linux 3.17.
const OF_PROCESS: &str = "/proc/net";

fn text(root: &Root, file: &str) -> Option<String> {
    root.text(format!("{OF_THREAD}/{file}")).or_else(|| root.text(format!("{OF_PROCESS}/{file}")))
}

/// All counters of the kernel, and those of `interface`.
pub(super) fn read(root: &Root, interface: Option<&str>) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    for file in ["snmp", "netstat"] {
        pairs(&text(root, file).unwrap_or_default(), &mut counters);
    }
    softnet(&text(root, "softnet_stat").unwrap_or_default(), &mut counters);
    if let Some(name) = interface {
        device(&text(root, "dev").unwrap_or_default(), name, &mut counters);
    }
    counters
}

/// Two lines for each group: its names, and its values. A value may be negative (a limit that is off), which is no count.
fn pairs(text: &str, counters: &mut BTreeMap<String, u64>) {
    let mut lines = text.lines();
    while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        let (Some((group, names)), Some((other, values))) = (names.split_once(':'), values.split_once(':')) else {
            continue;
        };
        let Some((_, wanted)) = WANTED.iter().find(|(name, _)| *name == group && *name == other) else { continue };
        for (name, value) in names.split_ascii_whitespace().zip(values.split_ascii_whitespace()) {
            if let (true, Ok(count)) = (wanted.contains(&name), value.parse()) {
                counters.insert(format!("{}.{name}", group.to_ascii_lowercase()), count);
            }
        }
    }
}

/// One line for each processor, in hexadecimal: packets, packets dropped since its queue was full, and times that it had no
/// time left for the rest of its queue.
fn softnet(text: &str, counters: &mut BTreeMap<String, u64>) {
    for line in text.lines() {
        for (name, word) in ["processed", "dropped", "time_squeeze"].iter().zip(line.split_ascii_whitespace()) {
            if let Ok(count) = u64::from_str_radix(word, 16) {
                *counters.entry(format!("softnet.{name}")).or_default() += count;
            }
        }
    }
}

/// The line of one interface.
fn device(text: &str, interface: &str, counters: &mut BTreeMap<String, u64>) {
    const COLUMNS: [&str; 12] = [
        "rx_bytes",
        "rx_packets",
        "rx_errors",
        "rx_dropped",
        "rx_fifo_errors",
        "",
        "",
        "",
        "tx_bytes",
        "tx_packets",
        "tx_errors",
        "tx_dropped",
    ];
    let mut rows = text.lines().filter_map(|line| line.split_once(':'));
    let Some((_, values)) = rows.find(|(name, _)| name.trim() == interface) else { return };
    for (name, value) in COLUMNS.iter().zip(values.split_ascii_whitespace()) {
        if let (false, Ok(count)) = (name.is_empty(), value.parse()) {
            counters.insert(format!("{interface}.{name}"), count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_taken_by_the_names_in_the_line_above_them() {
        let mut counters = BTreeMap::new();
        let text = "Ip: Forwarding ReasmFails ReasmOKs\nIp: 2 7 9\nTcp: MaxConn RetransSegs\nTcp: -1 30\n\
                    TcpExt: ListenDrops Later\nTcpExt: 4 5\nIpExt: InOctets\nIpExt: 1\nbroken\n";
        pairs(text, &mut counters);
        softnet("0000000a 00000001 00000002 00\nffffffff 00000001 00000000 00\n", &mut counters);
        let expected = [
            ("ip.ReasmFails", 7),
            ("ip.ReasmOKs", 9),
            ("softnet.dropped", 2),
            ("softnet.processed", 0x1_0000_0009),
            ("softnet.time_squeeze", 2),
            ("tcp.RetransSegs", 30),
            ("tcpext.ListenDrops", 4),
        ];
        assert_eq!(counters, expected.map(|(name, count)| (name.to_owned(), count)).into());
    }

    #[test]
    fn an_interface_is_found_by_its_whole_name() {
        let mut counters = BTreeMap::new();
        let text = "Inter-| Receive\n face |bytes\n  veth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n\
                    veth01: 9 9 9 9 9 9 9 9 9 9 9 9\n";
        device(text, "veth0", &mut counters);
        assert_eq!(
            (counters["veth0.rx_dropped"], counters["veth0.tx_bytes"], counters["veth0.tx_dropped"]),
            (4, 9, 12)
        );
        assert_eq!(counters.len(), 9);
    }

    #[test]
    fn this_kernel_counts_segments() {
        let counters = read(&Root::default(), Some("lo"));
        // A kernel without /proc is possible.
        if Root::default().exists("/proc/net/snmp") {
            assert!(
                counters.contains_key("tcp.RetransSegs") && counters.contains_key("tcpext.ListenDrops"),
                "{counters:?}"
            );
        }
    }
}
