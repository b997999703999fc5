//! What one end of a network test sees of itself: its sockets, its kernel's counters, its processors.

mod interface;
mod processors;

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::{Arc, Weak};
use std::time::Duration;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, recv, sendto, socket};

use interface::Interface;
pub use processors::EndedThreads;
use processors::Threads;

use super::kernel::{process_cpu, ticks_per_second};
use super::tcp::{SocketFacts, TcpInfo, path_mtu, unread_bytes};
use super::{Quota, Root, Throttling, mounts, proc};
use model::record::{NetworkEnd, NetworkFacts, NetworkSide, TcpStats};

/// Settings of the kernel that decide how much a connection may have on its way.
const SETTINGS: &[&str] = &[
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.core.default_qdisc",
    "net.core.netdev_budget",
    "net.core.netdev_max_backlog",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.ipfrag_high_thresh",
];

/// Whatever holds a socket.
trait Socket: AsFd + Send + Sync {}
impl<T: AsFd + Send + Sync> Socket for T {}

/// A connection that is looked at for as long as somebody holds it.
struct Flow {
    socket: Weak<dyn Socket>,
    last: TcpInfo,
}

impl fmt::Debug for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flow").field("last", &self.last).finish_non_exhaustive()
    }
}

/// Watches one end. Everything that it reports is counted since it was made; connections, since they were added.
///
/// Reading takes some tenths of a millisecond, and some microseconds for each connection: right for ten times a second.
#[derive(Debug)]
pub struct EndWatch {
    root: Root,
    begun_ns: u64,
    ticks_per_second: Option<u64>,
    interface: Option<Interface>,
    flows: Vec<Flow>,
    threads: Threads,
    quota: Quota,
    /// What limits had done when it began.
    throttled: Throttling,
    /// What was counted when it began.
    begin: NetworkEnd,
    /// What connections came to.
    tcp: TcpStats,
    facts: NetworkFacts,
}

impl EndWatch {
    /// Begins to watch. `node` is what the end's host is called, `local` its address in the test, by which its interface is
    /// found; `threads` is what the names of the threads begin with that do its work, empty for all of the process.
    /// `instant_ns` is the caller's monotonic clock. To be called on a thread that is in the same network as the sockets.
    pub fn begin(
        side: NetworkSide,
        node: impl Into<String>,
        local: Option<IpAddr>,
        threads: &'static str,
        instant_ns: u64,
    ) -> Self {
        let root = Root::default();
        let interface = local.and_then(Interface::holding);
        let setting = |name: &&str| Some(((*name).to_owned(), setting(&root, name)?));
        let facts = NetworkFacts {
            interface: interface.as_ref().map(|found| found.name.clone()),
            mtu_bytes: interface.as_ref().and_then(Interface::mtu_bytes),
            speed_mbit_per_s: interface.as_ref().and_then(Interface::speed_mbit_per_s),
            driver: interface.as_ref().and_then(Interface::driver_name),
            qdisc: interface.as_ref().and_then(|found| qdisc_of(&found.name)),
            settings: SETTINGS.iter().filter_map(setting).collect(),
            ..NetworkFacts::default()
        };
        let quota = Quota::of(&root, &mounts::all(&root), "self");
        let throttled = quota.throttled(&root);
        let mut watch = Self {
            root,
            begun_ns: instant_ns,
            ticks_per_second: ticks_per_second(),
            interface,
            flows: Vec::new(),
            threads: Threads::named(threads),
            throttled,
            quota,
            begin: NetworkEnd { side, node: node.into(), ..NetworkEnd::default() },
            tcp: TcpStats::default(),
            facts,
        };
        watch.begin = watch.counted(instant_ns);
        watch
    }

    /// Where a thread of this end leaves what it has done when it ends, so that the next reading has it.
    pub fn ended_threads(&self) -> EndedThreads {
        self.threads.ended()
    }

    /// Looks at a connection from now on. It is let go of when nobody else holds it; what happened on it between the last reading
    /// and its end is not seen, so read once more before.
    pub fn add<S: AsFd + Send + Sync + 'static>(&mut self, socket: &Arc<S>) {
        let last = TcpInfo::of(socket).unwrap_or_default();
        let socket: Weak<S> = Arc::downgrade(socket);
        self.flows.push(Flow { socket, last });
    }

    /// Looks at the connections, and at nothing else: what they have on their way changes from one millisecond to the next, so that
    /// several looks between two readings say more.
    pub fn look(&mut self) {
        let Self { flows, tcp, facts, .. } = self;
        flows.retain(|flow| flow.socket.strong_count() > 0);
        let mut looked_at = 0;
        let mut smallest = SocketFacts::default();
        for flow in flows.iter_mut() {
            let Some(socket) = flow.socket.upgrade() else { continue };
            let Ok(now) = TcpInfo::of(&socket) else { continue };
            note(tcp, &flow.last, &now, path_mtu(&socket));
            if let Some(bytes) = unread_bytes(&socket) {
                tcp.unread_bytes.note(bytes);
            }
            smallest.take_in(SocketFacts::of(&socket));
            flow.last = now;
            looked_at += 1;
        }
        if looked_at > 0 {
            tcp.flows = looked_at;
            facts.congestion_control = smallest.congestion_control;
            facts.send_buffer_bytes = smallest.send_buffer_bytes;
            facts.receive_buffer_bytes = smallest.receive_buffer_bytes;
        }
    }

    /// Everything since it began, connections being looked at once more; `sent_bytes` and `received_bytes` are what the program
    /// itself counted by now. The least and the most of what levels were seen are those since the reading before.
    pub fn read(&mut self, instant_ns: u64, sent_bytes: Option<u64>, received_bytes: Option<u64>) -> NetworkEnd {
        self.look();
        let NetworkEnd { counters, process_cpu, host_cpu, busiest_thread, processors, .. } =
            self.counted(instant_ns).since(&self.begin);
        let throttled = self.quota.throttled(&self.root).since(&self.throttled);
        let end = NetworkEnd {
            side: self.begin.side,
            node: self.begin.node.clone(),
            server: None,
            elapsed_ns: instant_ns.saturating_sub(self.begun_ns),
            sent_bytes,
            received_bytes,
            tcp: (self.tcp.readings > 0).then(|| self.tcp.clone()),
            counters,
            process_cpu,
            host_cpu,
            busiest_thread,
            throttled_ns: throttled.map(|held| held.throttled_ns),
            processors,
            facts: Some(self.facts.clone()),
        };
        self.tcp.forget_extremes();
        end
    }

    /// What kernel and processors have counted, since whenever they did.
    fn counted(&mut self, instant_ns: u64) -> NetworkEnd {
        let stat = self.root.text("/proc/stat").unwrap_or_default();
        let ticks = self.ticks_per_second;
        let mut counters = read_counters(&self.root, self.interface.as_ref().map(|found| found.name.as_str()));
        if let Some(interface) = &self.interface {
            interface.count(&mut counters);
        }
        NetworkEnd {
            side: self.begin.side,
            node: self.begin.node.clone(),
            elapsed_ns: instant_ns,
            counters,
            process_cpu: process_cpu(),
            host_cpu: ticks.and_then(|ticks| proc::host_cpu(&stat, ticks)),
            busiest_thread: self.threads.read(&self.root),
            processors: ticks.map_or_else(Vec::new, |ticks| processors::all(&stat, ticks)),
            ..NetworkEnd::default()
        }
    }
}

/// Takes a reading of a connection in, of which `past` was the one before.
fn note(tcp: &mut TcpStats, past: &TcpInfo, now: &TcpInfo, path_mtu_bytes: Option<u32>) {
    let more = |now: u64, past: u64| now.saturating_sub(past);
    // These wrap: the kernel counts segments in 32 bits.
    let segments = |now: u32, past: u32| u64::from(now.wrapping_sub(past));
    tcp.busy_ns += more(now.busy_ns, past.busy_ns);
    tcp.rwnd_limited_ns += more(now.rwnd_limited_ns, past.rwnd_limited_ns);
    tcp.sndbuf_limited_ns += more(now.sndbuf_limited_ns, past.sndbuf_limited_ns);
    tcp.segments_sent += segments(now.segments_sent, past.segments_sent);
    tcp.segments_resent += segments(now.segments_resent, past.segments_resent);
    let acked = more(now.bytes_acked, past.bytes_acked);
    tcp.bytes_acked += acked;
    tcp.bytes_received += more(now.bytes_received, past.bytes_received);
    // Older kernels count neither: then what arrived was sent, and what was sent again were whole segments.
    let resent = segments(now.segments_resent, past.segments_resent) * u64::from(now.mss_bytes);
    let resent = now.bytes_resent.zip(past.bytes_resent).map_or(resent, |(now, past)| more(now, past));
    tcp.bytes_resent += resent;
    tcp.bytes_sent += now.bytes_sent.zip(past.bytes_sent).map_or(acked + resent, |(now, past)| more(now, past));
    let of_newer_kernels = [
        (&mut tcp.segments_out_of_order, now.segments_out_of_order.zip(past.segments_out_of_order)),
        (&mut tcp.segments_duplicate, now.segments_duplicate.zip(past.segments_duplicate)),
    ];
    for (count, both) in of_newer_kernels {
        if let Some((now, past)) = both {
            *count.get_or_insert(0) += segments(now, past);
        }
    }
    tcp.readings += 1;
    tcp.app_limited_readings += u64::from(now.is_app_limited);
    if now.rtt_ns > 0 {
        tcp.rtt_ns.note(now.rtt_ns);
    }
    tcp.min_rtt_ns = tcp.min_rtt_ns.into_iter().chain(now.min_rtt_ns).min();
    tcp.cwnd_segments.note(now.cwnd_segments.into());
    tcp.delivery_bytes_per_s.note(now.delivery_bytes_per_s);
    if let Some(pace) = now.pacing_bytes_per_s {
        tcp.pacing_bytes_per_s.note(pace);
    }
    tcp.mss_bytes.note(now.mss_bytes.into());
    tcp.path_mtu_bytes.note(path_mtu_bytes.unwrap_or(now.path_mtu_bytes).into());
    if let Some(window) = now.peer_window_bytes {
        tcp.peer_window_bytes.note(window.into());
    }
    tcp.unsent_bytes.note(now.unsent_bytes.into());
}

/// A setting of the kernel, such as `net.ipv4.tcp_wmem`; white space between its numbers is one blank each.
fn setting(root: &Root, name: &str) -> Option<String> {
    let value = root.value(format!("/proc/sys/{}", name.replace('.', "/")))?;
    Some(value.split_ascii_whitespace().collect::<Vec<_>>().join(" "))
}

/// From `linux/netlink.h` and `linux/rtnetlink.h`.
const NEW_LINK: u16 = 16;
const GET_LINK: u16 = 18;
const IS_REQUEST: u16 = 1;
const NAME: u16 = 3;
const QDISC: u16 = 6;
/// Bytes of `struct nlmsghdr` and of `struct ifinfomsg` together, and of a head of an attribute.
const HEAD_BYTES: usize = 32;
const ATTRIBUTE_BYTES: usize = 4;
/// An answer about one interface is shorter, its statistics and those of its virtual functions included.
const ANSWER_BYTES: usize = 64 << 10;
/// The kernel answers at once.
const PATIENCE: Duration = Duration::from_millis(100);

/// The discipline of an interface of the network that the calling thread is in; `None` where the kernel does not say.
fn qdisc_of(interface: &str) -> Option<String> {
    // The first of netlink's protocols, which is meant where none is named, is that of routes.
    let socket = socket(AddressFamily::NETLINK, SocketType::DGRAM, None).ok()?;
    set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE)).ok()?;
    sendto(&socket, &question(interface), SendFlags::empty(), &SocketAddrNetlink::new(0, 0)).ok()?;
    let mut bytes = vec![0; ANSWER_BYTES];
    let (_, came) = recv(&socket, &mut bytes[..], RecvFlags::empty()).ok()?;
    answer(bytes.get(..came)?)
}

/// One interface by its name.
fn question(interface: &str) -> Vec<u8> {
    let attribute_bytes = ATTRIBUTE_BYTES + interface.len() + 1;
    let length = HEAD_BYTES + attribute_bytes.next_multiple_of(4);
    let mut bytes = Vec::with_capacity(length);
    bytes.extend((length as u32).to_ne_bytes());
    bytes.extend(GET_LINK.to_ne_bytes());
    bytes.extend(IS_REQUEST.to_ne_bytes());
    bytes.resize(HEAD_BYTES, 0);
    bytes.extend((attribute_bytes as u16).to_ne_bytes());
    bytes.extend(NAME.to_ne_bytes());
    bytes.extend(interface.bytes());
    bytes.resize(length, 0);
    bytes
}

/// What the answer says of it.
fn answer(bytes: &[u8]) -> Option<String> {
    let half = |bytes: &[u8], at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    if half(bytes, 4)? != NEW_LINK {
        return None;
    }
    let mut rest = bytes.get(HEAD_BYTES..)?;
    loop {
        let (length, kind) = (usize::from(half(rest, 0)?), half(rest, 2)?);
        let value = rest.get(ATTRIBUTE_BYTES..length)?;
        if kind == QDISC {
            let name = value.split(|byte| *byte == 0).next()?;
            return String::from_utf8(name.to_vec()).ok().filter(|name| !name.is_empty());
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
}

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
fn read_counters(root: &Root, interface: Option<&str>) -> BTreeMap<String, u64> {
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
mod tests;
