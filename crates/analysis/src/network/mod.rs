//! Why a network carries no more: what both ends saw of themselves, and what follows of it.
//!
//! docs/workloads/host-network.md says what each figure means, and where thresholds come from.

mod cause;
mod matrix;
mod survey;
#[cfg(test)]
mod tests;
mod words;

use std::net::IpAddr;

use super::Finding;
use super::measured::measured;
use crate::levels::{median, spread};
use crate::traffic::inside;
use model::platforms;
use model::record::{Interval, NetworkEnd, NetworkSide, Run, Step, TcpStats, Workload};
use model::units::Nanos;

pub use cause::{NetworkBurst, NetworkCause, NoProcessor};
pub use matrix::{MatrixLink, NetworkMatrix, SlowLink};
pub use survey::{Bulk, BulkAnswer, NetworkSurvey, RoundTrip};

/// Several flows that come to this many times what one does show that something holds each of them.
const MORE_THAN_ONE: f64 = 1.5;
/// As many are several.
const SEVERAL: u32 = 4;

/// What is to be said of a network.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum NetworkFinding {
    /// Where bulk data stopped, and why.
    Stop(NetworkStop),
    /// What both ends saw besides.
    Seen(NetworkSeen),
    /// A link of several that is slower than the others.
    SlowLink(SlowLink),
    /// What a survey answers besides its first sentence, in a sentence.
    Survey {
        /// That sentence.
        answer: String,
    },
}

impl NetworkFinding {}

/// All that is to be said of the network of a run.
pub(super) fn find(run: &Run) -> Vec<Finding> {
    let mut stops: Vec<NetworkStop> = Vec::new();
    for stop in measured(run).flat_map(stops_of) {
        let is_same = |known: &&mut NetworkStop| {
            (known.from, &known.server, known.flows) == (stop.from, &stop.server, stop.flows)
                && std::mem::discriminant(&known.cause) == std::mem::discriminant(&stop.cause)
        };
        match stops.iter_mut().find(is_same) {
            Some(known) => {
                known.steps.extend(stop.steps);
                known.bits_per_s = known.bits_per_s.min(stop.bits_per_s);
                known.most_bits_per_s = known.most_bits_per_s.max(stop.most_bits_per_s);
            }
            None => stops.push(stop),
        }
    }
    // On one host no network holds a flow, but the processor that its threads share.
    let sides = [NetworkSide::Client, NetworkSide::Server].into_iter().filter(|_| !is_one_host(run));
    let one_flow = sides.filter_map(|from| one_flow(run, from));
    let seen: Vec<NetworkSeen> = one_flow.chain(find_seen(run)).collect();
    let is_one_host = is_one_host(run);
    let stops = stops.into_iter().map(|stop| NetworkFinding::Stop(NetworkStop { is_one_host, ..stop }));
    let slow = NetworkMatrix::of(run).map(|matrix| matrix.slow).unwrap_or_default();
    let survey = NetworkSurvey::of(run).map(|survey| survey.lines()).unwrap_or_default();
    let seen = seen.into_iter().map(NetworkFinding::Seen);
    let slow = slow.into_iter().map(NetworkFinding::SlowLink);
    slow.chain(stops)
        .chain(survey.into_iter().map(|answer| NetworkFinding::Survey { answer }))
        .chain(seen)
        .map(Finding::Network)
        .collect()
}

/// One flow against several in the same direction. What stops a single one at its ends has been said: a processor, a window, a buffer.
fn one_flow(run: &Run, from: NetworkSide) -> Option<NetworkSeen> {
    let ways: Vec<Way<'_>> = measured(run)
        .flat_map(|step| if let [_] = Way::all(step).as_slice() { Way::all(step) } else { Vec::new() })
        .filter(|way| way.from == from)
        .collect();
    let rate = |way: &&Way<'_>| way.bits_per_s();
    let alone = ways.iter().find(|way| way.flows() == 1)?;
    let several = ways
        .iter()
        .filter(|way| way.flows() >= SEVERAL)
        .max_by(|left, right| rate(left).unwrap_or(0.0).total_cmp(&rate(right).unwrap_or(0.0)))?;
    let (one_bits_per_s, several_bits_per_s) = (alone.bits_per_s()?, several.bits_per_s()?);
    let is_held_outside = matches!(
        NetworkCause::of(alone),
        None | Some(
            NetworkCause::Shaper { .. }
                | NetworkCause::Policer { .. }
                | NetworkCause::Loss { .. }
                | NetworkCause::TokenBucket(_)
        )
    );
    (is_held_outside && several_bits_per_s >= MORE_THAN_ONE * one_bits_per_s).then(|| NetworkSeen::OneFlow {
        one: alone.step.label.clone(),
        one_bits_per_s,
        several: several.step.label.clone(),
        flows: several.flows(),
        several_bits_per_s,
        like: platforms::flow_like(run.environment.machine.as_deref(), one_bits_per_s),
    })
}

/// Whether every server that a run had is of the host that it was made on, as far as its name says: `self`, or an address of loopback.
pub(crate) fn is_one_host(run: &Run) -> bool {
    run.workload() == Workload::Network && run.imported.is_none() && run.target.address.split(", ").all(is_this_host)
}

fn is_this_host(server: &str) -> bool {
    let host = match server.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => server.rsplit_once(':').map_or(server, |(host, _)| host),
    };
    matches!(host, "self" | "localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A rate of bits as networks are sold: `9.41 Gbit/s`, `94.1 Mbit/s`.
fn rate(bits_per_s: f64) -> String {
    match bits_per_s {
        bits if bits >= 999.5e6 => format!("{:.2} Gbit/s", bits / 1e9),
        bits if bits >= 99.95e6 => format!("{:.0} Mbit/s", bits / 1e6),
        bits if bits >= 0.95e6 => format!("{:.1} Mbit/s", bits / 1e6),
        bits => format!("{:.0} kbit/s", bits / 1e3),
    }
}

/// `to the server`, or of several `from db2:7018`.
fn direction(from: NetworkSide, server: Option<&str>) -> String {
    let server = server.unwrap_or("the server");
    match from {
        NetworkSide::Client => format!("to {server}"),
        NetworkSide::Server => format!("from {server}"),
    }
}

/// Where bulk data stopped in one direction, and why.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct NetworkStop {
    /// Labels of the steps that were stopped by the same.
    pub steps: Vec<String>,
    /// The server, where the run has several.
    pub server: Option<String>,
    /// Who sent.
    pub from: NetworkSide,
    /// Connections.
    pub flows: u32,
    /// What was received, in bits per second: in the slowest of the steps.
    pub bits_per_s: f64,
    /// The same in the fastest.
    pub most_bits_per_s: f64,
    /// Why it was not more.
    pub cause: NetworkCause,
    /// Whether both ends are known to be one host, whose processors they share.
    pub is_one_host: bool,
}

/// Why bulk data stopped in a step, in each direction in which it went; absent where nothing can be known.
pub fn stops_of(step: &Step) -> Vec<NetworkStop> {
    let stop = |way: &Way<'_>| {
        let bits_per_s = way.bits_per_s()?;
        Some(NetworkStop {
            steps: vec![step.label.clone()],
            server: way.server.map(str::to_owned),
            from: way.from,
            flows: way.flows(),
            bits_per_s,
            most_bits_per_s: bits_per_s,
            cause: NetworkCause::of(way)?,
            is_one_host: false,
        })
    };
    Way::all(step).iter().filter_map(stop).collect()
}

/// Kinds of operation that are bulk data, and who sends it.
const BULK: [(&str, NetworkSide); 2] = [("send", NetworkSide::Client), ("receive", NetworkSide::Server)];

/// One direction of bulk data.
struct Way<'a> {
    step: &'a Step,
    /// The server, where the run has several.
    server: Option<&'a str>,
    from: NetworkSide,
    sender: &'a NetworkEnd,
    receiver: &'a NetworkEnd,
    /// The sender's connections.
    tcp: &'a TcpStats,
}

/// One of `side`, if it was watched; `server` is which of several.
fn end<'a>(ends: &'a [NetworkEnd], side: NetworkSide, server: Option<&str>) -> Option<&'a NetworkEnd> {
    ends.iter().find(|end| end.side == side && end.server.as_deref() == server)
}

impl<'a> Way<'a> {
    /// Those of a step; none where no bulk data was sent over TCP, or an end was not watched.
    fn all(step: &'a Step) -> Vec<Self> {
        let is_asked = |kind: &str| step.operations.iter().any(|operation| operation.kind == kind);
        let mut servers: Vec<Option<&str>> = step.network.iter().map(|end| end.server.as_deref()).collect();
        servers.sort_unstable();
        servers.dedup();
        let way = |server: Option<&'a str>, from: NetworkSide| {
            let to = if from == NetworkSide::Client { NetworkSide::Server } else { NetworkSide::Client };
            let (sender, receiver) = (end(&step.network, from, server)?, end(&step.network, to, server)?);
            let tcp = sender.tcp.as_ref()?;
            Some(Self { step, server, from, sender, receiver, tcp })
        };
        let asked = BULK.iter().filter(|(kind, _)| is_asked(kind));
        asked.flat_map(|(_, from)| servers.iter().filter_map(move |server| way(*server, *from))).collect()
    }

    /// Connections that carry it: all of the step, or half of them where the step measures both directions. At least 1.
    fn flows(&self) -> u32 {
        let ways = if self.step.operations.iter().filter(|it| BULK.iter().any(|(kind, _)| it.kind == *kind)).count() > 1
        {
            2
        } else {
            1
        };
        (self.tcp.flows / ways).max(1)
    }

    /// What was received; where the receiver did not count, what it acknowledged.
    fn bits_per_s(&self) -> Option<f64> {
        let acknowledged = || self.sender.per_s(self.tcp.bytes_acked).map(|bytes| bytes * 8.0);
        self.receiver.received_bits_per_s().or_else(acknowledged)
    }

    /// The same of each whole second of the window.
    fn seconds(&self) -> Vec<f64> {
        inside(self.step).filter_map(|interval| self.of_interval(interval)).collect()
    }

    /// The same of each second under load, warm-up included.
    fn seconds_from_the_start(&self) -> Vec<f64> {
        let longest = self.step.intervals.iter().map(|interval| interval.duration_ns).max().unwrap_or(0);
        let whole = self.step.intervals.iter().filter(|interval| interval.duration_ns > longest / 2);
        whole.filter_map(|interval| self.of_interval(interval)).collect()
    }

    fn of_interval(&self, interval: &Interval) -> Option<f64> {
        let (sender, receiver) =
            (end(&interval.network, self.from, self.server), end(&interval.network, self.receiver.side, self.server));
        let received = receiver.and_then(NetworkEnd::received_bits_per_s);
        received.or_else(|| {
            let sender = sender?;
            sender.per_s(sender.tcp.as_ref()?.bytes_acked).map(|bytes| bytes * 8.0)
        })
    }

    /// How far its seconds stray from their middle.
    fn stray(&self) -> Option<f64> {
        stray(&self.seconds())
    }

    /// Share of the time in which its connections had something to send.
    fn busy_share(&self) -> f64 {
        let possible = self.sender.elapsed_ns as f64 * f64::from(self.flows());
        if possible > 0.0 { (self.tcp.busy_ns as f64 / possible).min(1.0) } else { 0.0 }
    }

    /// Mean round trip and the least one.
    fn round_trip_ns(&self) -> Option<(f64, u64)> {
        Some((self.tcp.rtt_ns.mean()?, self.tcp.min_rtt_ns?))
    }

    /// Segments that were lost: sent again, and new to the other end when they came.
    fn segments_lost(&self) -> u64 {
        self.tcp.segments_resent.saturating_sub(self.tcp.segments_duplicate.unwrap_or(0))
    }

    /// Share of its bytes that were lost and sent again.
    fn lost(&self) -> f64 {
        let needed = self.segments_lost() as f64 / self.tcp.segments_resent.max(1) as f64;
        self.tcp.resent_share().unwrap_or(0.0) * needed
    }
}

/// How far values stray from their middle, as a share of it, by their median distance: some that were disturbed leave it as it is.
/// Unknown of fewer than three.
fn stray(values: &[f64]) -> Option<f64> {
    let middle = median(values);
    (values.len() >= 3 && middle > 0.0).then(|| spread(values) / middle)
}

// What else both ends saw that costs a database time: queues, packets that are lost, small packets, full buffers, allowances of clouds.

/// A round trip that bulk data makes this much longer is worth a word: a commit that is sent to a standby beside it waits for it.
const BLOAT_NS: f64 = 5e6;
const BLOAT: f64 = 4.0;
/// A share of bytes sent again that is worth one: a ten-thousandth.
const RESENT: f64 = 0.0001;
/// Fewer segments sent again than these happen on any network at the beginning of a flow.
const MIN_RESENT: u64 = 20;

/// The longest packet of IP.
const LONGEST_PACKET: u32 = 65_535;

/// Counters of the kernel that say that packets were lost here, whatever else went on, and why.
const LOSSES: &[(&str, CountedLoss)] = &[
    ("ip.ReasmFails", CountedLoss::Reassembly),
    ("udp.RcvbufErrors", CountedLoss::UdpBuffer),
    ("tcpext.ListenDrops", CountedLoss::Listen),
    ("softnet.dropped", CountedLoss::Backlog),
];
/// What the counters of a cloud's allowances end in (ENA of AWS).
const ALLOWANCE: &str = "_allowance_exceeded";

/// Why the kernel of an end dropped what had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CountedLoss {
    /// A datagram of several packets of which one was missing.
    Reassembly,
    /// Nobody took datagrams from a socket soon enough.
    UdpBuffer,
    /// Nobody accepted connections soon enough.
    Listen,
    /// A processor could not take packets from its queue soon enough.
    Backlog,
    /// The cloud held back or dropped what was more than the machine's allowance.
    Allowance,
}

/// What both ends saw besides.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(tag = "seen", rename_all = "snake_case")]
pub enum NetworkSeen {
    /// Bulk data makes the round trip longer.
    Bloat {
        /// Labels of steps.
        steps: Vec<String>,
        /// Round trip beside it.
        #[serde(rename = "round_trip_ns")]
        round_trip: Nanos,
        /// Without.
        #[serde(rename = "least_ns")]
        least: Nanos,
    },
    /// Packets were sent again.
    Resent {
        /// Labels of steps.
        steps: Vec<String>,
        /// Who sent them.
        side: NetworkSide,
        /// The largest share of bytes.
        share: f64,
    },
    /// The path carries smaller packets than the interface.
    PathMtu {
        /// Who found it.
        side: NetworkSide,
        /// Largest packet of the path, in bytes.
        path_bytes: u64,
        /// Of the interface.
        interface_bytes: u32,
    },
    /// The kernel of an end dropped packets.
    Counted {
        /// Labels of steps.
        steps: Vec<String>,
        /// Which end.
        side: NetworkSide,
        /// Why.
        why: CountedLoss,
        /// The counter's name.
        name: String,
        /// How many in all steps.
        count: u64,
    },
    /// What became of blocks that were asked for over UDP.
    Datagrams {
        /// Labels of steps.
        steps: Vec<String>,
        /// Blocks that were asked for.
        asked: u64,
        /// Those that did not come in time.
        lost: u64,
        /// Of these, those that came afterwards.
        late: u64,
        /// Those that came before one that was asked for earlier.
        reordered: u64,
        /// Those that came more than once.
        duplicated: u64,
        /// Fragments that the client's kernel received in that time, if it counts them.
        fragments: Option<u64>,
    },
    /// One flow comes to less than several together, and nothing at the two ends stops it.
    OneFlow {
        /// Label of the step with one flow.
        one: String,
        /// What it came to, in bits per second.
        one_bits_per_s: f64,
        /// Label of the step with more.
        several: String,
        /// How many those were.
        flows: u32,
        /// What they came to.
        several_bits_per_s: f64,
        /// What a vendor publishes at such a rate: gigabits per second, and of what.
        like: Option<(f64, &'static str)>,
    },
}

/// All of that but flows against each other.
fn find_seen(run: &Run) -> Vec<NetworkSeen> {
    let mut found = Vec::new();
    found.extend(bloat(run));
    found.extend(datagrams(run));
    for side in [NetworkSide::Client, NetworkSide::Server] {
        found.extend(resent(run, side));
        found.extend(path_mtu(run, side));
        found.extend(counted(run, side));
    }
    found
}

fn bloat(run: &Run) -> Option<NetworkSeen> {
    let mut steps = Vec::new();
    let mut longest: Option<(f64, u64)> = None;
    for step in measured(run) {
        for (mean_ns, least_ns) in Way::all(step).iter().filter_map(Way::round_trip_ns) {
            if mean_ns - least_ns as f64 >= BLOAT_NS && mean_ns >= BLOAT * least_ns as f64 {
                name_once(&mut steps, &step.label);
                longest = longest.filter(|(longest, _)| *longest >= mean_ns).or(Some((mean_ns, least_ns)));
            }
        }
    }
    let (mean_ns, least_ns) = longest?;
    Some(NetworkSeen::Bloat { steps, round_trip: Nanos(mean_ns as u64), least: Nanos(least_ns) })
}

fn datagrams(run: &Run) -> Option<NetworkSeen> {
    let ends: Vec<_> =
        ends(run, NetworkSide::Client).filter(|(_, end)| end.counters.contains_key("udp.asked")).collect();
    let counted =
        |name: &str| ends.iter().filter_map(|(_, end)| end.counters.get(name)).copied().reduce(|sum, more| sum + more);
    let mut steps = Vec::new();
    ends.iter().for_each(|(step, _)| name_once(&mut steps, &step.label));
    let count = |name: &str| counted(name).unwrap_or(0);
    Some(NetworkSeen::Datagrams {
        steps,
        asked: counted("udp.asked")?,
        lost: count("udp.lost"),
        late: count("udp.late"),
        reordered: count("udp.reordered"),
        duplicated: count("udp.duplicated"),
        fragments: counted("ip.ReasmReqds"),
    })
}

/// Names a step of which there is more than one thing to say once.
fn name_once(steps: &mut Vec<String>, label: &String) {
    if !steps.contains(label) {
        steps.push(label.clone());
    }
}

fn ends(run: &Run, side: NetworkSide) -> impl Iterator<Item = (&Step, &NetworkEnd)> {
    measured(run)
        .flat_map(move |step| step.network.iter().filter(move |end| end.side == side).map(move |end| (step, end)))
}

fn resent(run: &Run, side: NetworkSide) -> Option<NetworkSeen> {
    let (mut steps, mut largest) = (Vec::new(), None::<f64>);
    for (step, end) in ends(run, side) {
        let tcp = end.tcp.as_ref().filter(|tcp| tcp.segments_resent >= MIN_RESENT);
        if let Some(share) = tcp.and_then(TcpStats::resent_share).filter(|share| *share >= RESENT) {
            name_once(&mut steps, &step.label);
            largest = Some(largest.unwrap_or(0.0).max(share));
        }
    }
    let share = largest?;
    Some(NetworkSeen::Resent { steps, side, share })
}

fn path_mtu(run: &Run, side: NetworkSide) -> Option<NetworkSeen> {
    let smallest = ends(run, side).filter_map(|(_, end)| {
        // Loopback has one byte more than IP can count.
        let interface_bytes = end.facts.as_ref()?.mtu_bytes?.min(LONGEST_PACKET);
        let path_bytes = end.tcp.as_ref()?.path_mtu_bytes.lowest()?;
        (path_bytes < u64::from(interface_bytes)).then_some((path_bytes, interface_bytes))
    });
    let (path_bytes, interface_bytes) = smallest.min()?;
    Some(NetworkSeen::PathMtu { side, path_bytes, interface_bytes })
}

fn counted(run: &Run, side: NetworkSide) -> Vec<NetworkSeen> {
    let mut found: Vec<NetworkSeen> = Vec::new();
    // Several ends of one host have one kernel.
    let mut hosts: Vec<(&str, &str)> = Vec::new();
    for (step, end) in ends(run, side) {
        let host = (step.label.as_str(), end.node.as_str());
        if hosts.contains(&host) {
            continue;
        }
        hosts.push(host);
        for (name, count) in end.counters.iter().filter(|(_, count)| **count > 0) {
            let known = LOSSES.iter().find(|(known, _)| known == name).map(|(_, why)| *why);
            let is_allowance = name.ends_with(ALLOWANCE);
            let Some(why) = known.or_else(|| is_allowance.then_some(CountedLoss::Allowance)) else { continue };
            let before =
                found.iter_mut().find(|seen| matches!(seen, NetworkSeen::Counted { name: known, .. } if known == name));
            match before {
                Some(NetworkSeen::Counted { steps, count: sum, .. }) => {
                    name_once(steps, &step.label);
                    *sum += count;
                }
                _ => found.push(NetworkSeen::Counted {
                    steps: vec![step.label.clone()],
                    side,
                    why,
                    name: name.clone(),
                    count: *count,
                }),
            }
        }
    }
    found
}
