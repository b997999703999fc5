//! Which packets reach the other end uncut.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};

use super::NetTarget;
use super::datagrams::introduced;
use super::test::ask;
use crate::TargetError;
use crate::network::wire::{
    ANSWER_HEAD_BYTES, Answer, FromClient, FromServer, MAX_DATAGRAM_BYTES, Open, REQUEST_HEAD_BYTES, RequestHead,
};
use measure::monotonic_ns;
use measure::os::{EndWatch, path_mtu};
use model::record::{NetworkSide, PathMtu};

/// How long an answer may take, and how often a size is tried.
const PATIENCE: Duration = Duration::from_millis(150);
const TRIES: u32 = 3;
/// What every path has to carry (RFC 791 and RFC 8200), and sizes that networks are made for: tried before others.
const LEAST: [u32; 2] = [576, 1_280];
const USUAL: [u32; 4] = [9_000, 8_500, 1_500, 1_400];

/// The longest packet of IP.
const LONGEST_PACKET: u32 = 65_535;

/// Looks at the path to the server.
pub(super) fn look(target: &NetTarget) -> Result<PathMtu, TargetError> {
    let kernel_bytes = path_mtu(target.control().stream());
    let local = target.local().map(|address| address.ip());
    let end = EndWatch::begin(NetworkSide::Client, "", local, "", monotonic_ns()).read(monotonic_ns(), None, None);
    // Loopback has one byte more than IP can count.
    let interface_bytes = end.facts.and_then(|facts| facts.mtu_bytes).map(|bytes| bytes.min(LONGEST_PACKET));
    let most = interface_bytes.or(kernel_bytes);
    let mut found = PathMtu { interface_bytes, kernel_bytes, ..PathMtu::default() };
    let open = Open {
        what: "path MTU".to_owned(),
        connections: 1,
        max_request_bytes: MAX_DATAGRAM_BYTES,
        max_answer_bytes: MAX_DATAGRAM_BYTES,
        has_datagrams: true,
        ..Open::default()
    };
    let opened = ask(target, &mut target.control(), open)?;
    if let (Some(door), Some(most)) = (opened.datagrams, most)
        && let Ok(socket) = introduced(target.address, door, 0)
        && never_cut(&socket, target.address).is_ok()
    {
        let mut probe = Probe { socket, heads: heads(target.address), sequence: 0 };
        found.up_bytes = probe.largest(most, Way::Up);
        found.down_bytes = probe.largest(most, Way::Down);
    }
    close(target)?;
    Ok(found)
}

/// Ends the test.
fn close(target: &NetTarget) -> Result<(), TargetError> {
    let mut control = target.control();
    control.send(&FromClient::End).map_err(|source| target.wire(source))?;
    let deadline = target.deadline();
    loop {
        if let FromServer::Ended(_) = control.expect(deadline).map_err(|source| target.wire(source))? {
            return Ok(());
        }
    }
}

/// Bytes of a packet besides what a datagram holds.
fn heads(address: SocketAddr) -> u32 {
    if address.is_ipv4() { 20 + 8 } else { 40 + 8 }
}

/// Has packets sent whole or not at all, whatever the kernel knows of the path.
fn never_cut(socket: &UdpSocket, address: SocketAddr) -> io::Result<()> {
    let set = match address {
        SocketAddr::V4(_) => sockopt::set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::PROBE),
        SocketAddr::V6(_) => sockopt::set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::PROBE),
    };
    Ok(set?)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

struct Probe {
    socket: UdpSocket,
    heads: u32,
    sequence: u64,
}

impl Probe {
    /// The largest packet up to `most` that goes through; absent where not even the least does.
    fn largest(&mut self, most: u32, way: Way) -> Option<u32> {
        let most = most.min(MAX_DATAGRAM_BYTES + self.heads);
        let least = if self.heads == heads(([0, 0, 0, 0], 0).into()) { LEAST[0] } else { LEAST[1] };
        largest(least, most, &mut |bytes| self.goes_through(bytes, way))
    }

    fn goes_through(&mut self, packet_bytes: u32, way: Way) -> bool {
        let bytes = packet_bytes.saturating_sub(self.heads).max(ANSWER_HEAD_BYTES as u32);
        let (request_bytes, answer_bytes) = match way {
            Way::Up => (bytes, ANSWER_HEAD_BYTES as u32),
            Way::Down => (REQUEST_HEAD_BYTES as u32, bytes),
        };
        (0..TRIES).any(|_| self.ask(request_bytes, answer_bytes).unwrap_or(false))
    }

    /// Whether an answer comes back whole.
    fn ask(&mut self, request_bytes: u32, answer_bytes: u32) -> io::Result<bool> {
        self.sequence += 1;
        let sequence = self.sequence;
        let request = RequestHead { request_bytes, answer_bytes, sequence, is_durable: false, is_whole: true };
        let mut bytes = request.bytes().to_vec();
        bytes.resize(request_bytes as usize, 0);
        self.socket.send(&bytes)?;
        let mut came = vec![0; MAX_DATAGRAM_BYTES as usize];
        let until = Instant::now() + PATIENCE;
        while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            self.socket.set_read_timeout(Some(left))?;
            let length = self.socket.recv(&mut came)?;
            let head = came[..length].first_chunk::<ANSWER_HEAD_BYTES>();
            let answer = head.and_then(|head| Answer::read(head, MAX_DATAGRAM_BYTES).ok());
            if answer.is_some_and(|answer| answer.sequence == sequence && length == answer_bytes as usize) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The largest number from `least` to `most` that goes through, where all below it do.
fn largest(least: u32, most: u32, goes_through: &mut dyn FnMut(u32) -> bool) -> Option<u32> {
    if goes_through(most) {
        return Some(most);
    }
    let mut fails = most;
    let mut goes = least;
    for usual in USUAL.into_iter().filter(|usual| (least..most).contains(usual)) {
        if goes_through(usual) {
            goes = usual;
            break;
        }
        fails = usual;
    }
    if goes == least && !goes_through(least) {
        return None;
    }
    while fails - goes > 1 {
        let middle = goes + (fails - goes) / 2;
        if goes_through(middle) {
            goes = middle;
        } else {
            fails = middle;
        }
    }
    Some(goes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_packet_is_found_with_few_that_are_lost() {
        for (path, most) in
            [(1_500, 1_500), (1_500, 9_001), (1_499, 9_001), (8_999, 9_001), (576, 1_500), (65_535, 65_535)]
        {
            let mut lost = 0;
            let found = largest(576, most, &mut |bytes| {
                lost += u32::from(bytes > path);
                bytes <= path
            });
            assert_eq!(found, Some(path), "{path} of {most}");
            assert!(lost <= 16, "{lost} lost for {path} of {most}");
        }
        assert_eq!(largest(576, 1_500, &mut |_| false), None);
    }
}
