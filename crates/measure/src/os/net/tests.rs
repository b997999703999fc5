use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use super::*;

fn connection() -> (Arc<TcpStream>, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (far, _) = listener.accept().unwrap();
    (Arc::new(near), far)
}

fn send(near: &Arc<TcpStream>, far: &mut TcpStream, bytes: usize) {
    std::thread::scope(|scope| {
        scope.spawn(|| (&mut near.as_ref()).write_all(&vec![1; bytes]).unwrap());
        far.read_exact(&mut vec![0; bytes]).unwrap();
    });
}

fn begin() -> EndWatch {
    EndWatch::begin(NetworkSide::Client, "here", Some("127.0.0.1".parse().unwrap()), "", 1_000)
}

#[test]
fn readings_hold_what_went_over_connections_that_are_there_and_that_are_gone() {
    let mut watch = begin();
    let first = watch.read(1_000, Some(0), None);
    assert_eq!((first.tcp, first.elapsed_ns), (None, 0), "nothing is known of no connections");
    let (near, mut far) = connection();
    send(&near, &mut far, 1_000);
    watch.add(&near);
    send(&near, &mut far, 50_000);
    let read = watch.read(2_000, Some(50_000), Some(0));
    let tcp = read.tcp.clone().unwrap();
    // What is acknowledged may lag behind what was read, and what was acknowledged of the first bytes may be in it.
    assert!((1..=51_000).contains(&tcp.bytes_acked) && tcp.bytes_sent >= 49_000, "{tcp:?}");
    assert_eq!((tcp.flows, tcp.readings, read.elapsed_ns, read.sent_bytes), (1, 1, 1_000, Some(50_000)));
    assert!(tcp.path_mtu_bytes.lowest().unwrap() >= 1_500, "{tcp:?}");
    drop((near, far));
    let (near, mut far) = connection();
    watch.add(&near);
    send(&near, &mut far, 10_000);
    let later = watch.read(3_000, Some(60_000), Some(0));
    let both = later.tcp.clone().unwrap();
    assert!(both.bytes_sent >= tcp.bytes_sent + 10_000, "{both:?}");
    let difference = later.since(&read);
    let tcp = difference.tcp.unwrap();
    assert_eq!((tcp.readings, difference.sent_bytes), (1, Some(10_000)));
    assert!((10_000..20_000).contains(&tcp.bytes_sent), "{tcp:?}");
    assert_eq!(tcp.cwnd_segments.least, tcp.cwnd_segments.most, "of one look");
}

#[test]
fn facts_name_the_interface_and_the_buffers() {
    let mut watch = begin();
    let (near, far) = connection();
    watch.add(&near);
    drop(far);
    let facts = watch.read(2_000, None, None).facts.unwrap();
    assert_eq!(facts.interface.as_deref(), Some("lo"));
    assert!(facts.send_buffer_bytes.unwrap() > 0 && facts.congestion_control.is_some(), "{facts:?}");
}

#[test]
fn segments_are_counted_past_the_wrap_and_older_kernels_leave_bytes_to_be_reckoned() {
    let mut tcp = TcpStats::default();
    let past =
        TcpInfo { segments_resent: u32::MAX, segments_duplicate: Some(3), bytes_acked: 100, ..TcpInfo::default() };
    let now = TcpInfo {
        segments_resent: 1,
        segments_duplicate: Some(4),
        bytes_acked: 600,
        mss_bytes: 50,
        rtt_ns: 7,
        ..TcpInfo::default()
    };
    note(&mut tcp, &past, &now, Some(1_400));
    assert_eq!((tcp.segments_resent, tcp.bytes_resent, tcp.bytes_sent), (2, 100, 600));
    assert_eq!((tcp.path_mtu_bytes.lowest(), tcp.pacing_bytes_per_s.count), (Some(1_400), 0));
    assert_eq!((tcp.segments_out_of_order, tcp.segments_duplicate), (None, Some(1)));
}

#[test]
fn this_machine_says_what_its_processors_did() {
    let mut watch = begin();
    let end = watch.read(2_000, None, None);
    // A kernel without /proc is possible.
    if Root::default().exists("/proc/stat") {
        assert!(!end.processors.is_empty() && end.host_cpu.is_some() && end.counters.contains_key("tcp.OutSegs"));
    }
    assert!(end.process_cpu.is_some());
}

#[test]
fn settings_are_in_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let root = Root::at(directory.path());
    std::fs::create_dir_all(root.path("/proc/sys/net/ipv4")).unwrap();
    std::fs::write(root.path("/proc/sys/net/ipv4/tcp_wmem"), "4096\t16384\t4194304\n").unwrap();
    assert_eq!(setting(&root, "net.ipv4.tcp_wmem").as_deref(), Some("4096 16384 4194304"));
    assert_eq!(setting(&root, "net.ipv4.none"), None);
}

#[test]
fn loopback_has_a_discipline_and_what_is_not_there_has_none() {
    let found = qdisc_of("lo").unwrap();
    assert!(!found.is_empty() && found.is_ascii(), "{found}");
    assert_eq!(qdisc_of("no-such-link"), None);
}

#[test]
fn an_answer_that_is_cut_short_says_nothing() {
    let mut bytes = question("eth0");
    bytes[4..6].copy_from_slice(&NEW_LINK.to_ne_bytes());
    bytes[34..36].copy_from_slice(&QDISC.to_ne_bytes());
    assert_eq!(answer(&bytes).as_deref(), Some("eth0"));
    for cut in 0..bytes.len() - 4 {
        assert_eq!(answer(&bytes[..cut]), None, "{cut}");
    }
    bytes[32..34].copy_from_slice(&0_u16.to_ne_bytes());
    assert_eq!(answer(&bytes), None, "an attribute without a length");
}

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
    assert_eq!((counters["veth0.rx_dropped"], counters["veth0.tx_bytes"], counters["veth0.tx_dropped"]), (4, 9, 12));
    assert_eq!(counters.len(), 9);
}

#[test]
fn this_kernel_counts_segments() {
    let counters = read_counters(&Root::default(), Some("lo"));
    // A kernel without /proc is possible.
    if Root::default().exists("/proc/net/snmp") {
        assert!(
            counters.contains_key("tcp.RetransSegs") && counters.contains_key("tcpext.ListenDrops"),
            "{counters:?}"
        );
    }
}
