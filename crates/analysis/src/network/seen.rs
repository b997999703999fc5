//! What else both ends saw that costs a database time: queues, packets that are lost, small packets, full buffers, allowances of clouds.

use super::way::Way;
use crate::measured::measured;
use model::record::{NetworkEnd, NetworkSide, Run, Step, TcpStats};
use model::units::Nanos;

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
pub(super) fn find(run: &Run) -> Vec<NetworkSeen> {
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
