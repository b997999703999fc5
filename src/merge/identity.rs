//! Who saw the same thing twice: a server that all parts load, a device of a host with several parts.

use std::collections::{BTreeMap, BTreeSet};

use super::part::{Part, widest};
use model::record::{ServerStats, Step, WaitStats};

/// What a part says for all that saw the same; the rest of what it says of shared things is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Voice {
    /// Servers that it speaks for.
    pub(super) nodes: BTreeSet<String>,
    /// Devices that it speaks for, with their names in the merged run.
    pub(super) devices: BTreeMap<String, String>,
    /// Whether it speaks for its host: processors, and what kernel tracing saw.
    pub(super) host: bool,
    /// Whether it speaks for the waits that servers timed.
    pub(super) waits: bool,
    /// What stands before the names of things of its host, where there are several hosts.
    pub(super) before: String,
}

/// The voice of each part in one step. Of those that saw the same the one with the widest reading speaks, of equals the first.
pub(super) fn voices(parts: &[(&Part, &Step)]) -> Vec<Voice> {
    let hosts: BTreeSet<&str> = parts.iter().map(|(part, _)| part.host()).collect();
    let mut voices = vec![Voice::default(); parts.len()];
    let numbered = || parts.iter().enumerate();
    for (place, (part, step)) in numbered() {
        let of_host = numbered().filter(|(_, (other, _))| other.host() == part.host());
        let speaker = widest(of_host, |(_, (_, step))| step.window.duration_ns);
        let before = if hosts.len() > 1 { format!("{}:", part.host()) } else { String::new() };
        let nodes = step.servers.iter().filter(|server| {
            let seen = numbered().flat_map(|(at, (other, step))| {
                let same = |candidate: &&ServerStats| node_key(other, candidate) == node_key(part, server);
                step.servers.iter().filter(same).map(move |server| (at, server.elapsed_ns))
            });
            widest(seen, |(_, elapsed_ns)| *elapsed_ns).is_some_and(|(at, _)| at == place)
        });
        let devices = step.devices.iter().filter(|device| {
            let seen = numbered().filter(|(_, (other, _))| other.host() == part.host()).flat_map(|(at, (_, step))| {
                let same = |candidate: &&model::record::DeviceStats| candidate.name == device.name;
                step.devices.iter().filter(same).map(move |device| (at, device.elapsed_ns))
            });
            widest(seen, |(_, elapsed_ns)| *elapsed_ns).is_some_and(|(at, _)| at == place)
        });
        if let Some(voice) = voices.get_mut(place) {
            voice.nodes = nodes.map(|server| server.node.clone()).collect();
            voice.devices = devices.map(|device| (device.name.clone(), format!("{before}{}", device.name))).collect();
            voice.host = speaker.is_some_and(|(at, _)| at == place);
            voice.before = before;
        }
    }
    // Those of one server alone stand in the step: whoever speaks for the first server speaks for them.
    if let Some(first) = voices.iter_mut().find(|voice| !voice.nodes.is_empty()) {
        first.waits = true;
    }
    voices
}

/// A server in the directory of a host, or on its loopback, is another one than that of the same name on another host.
fn node_key<'a>(part: &'a Part, server: &'a ServerStats) -> (&'a str, &'a str) {
    let (host, _) = server.node.rsplit_once(':').unwrap_or((&server.node, ""));
    let is_local = !server.node.contains(|letter: char| letter.is_ascii_alphanumeric())
        || server.node.starts_with(['/', '.', '@'])
        || host.starts_with("127.")
        || ["localhost", "[::1]", "::1"].contains(&host);
    (if is_local { part.host() } else { "" }, &server.node)
}

/// Whether a server timed these waits by its own counters, which everybody's sessions are in. Those that sessions of the load timed
/// one by one are a distribution of ours.
pub(super) fn is_of_server(wait: &WaitStats) -> bool {
    wait.layer == "server" && wait.waits.is_reported()
}
