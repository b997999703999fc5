//! Datagrams: blocks as a cluster's nodes send them to each other.
//!
//! Answers go to nobody but the host of the proven control connection, and there only to sockets that sent a nonce which was sent on
//! that connection: no address that somebody made up is ever answered.

use std::collections::BTreeSet;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use rustix::net::sockopt::{Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover};

use super::flow::FILLING;
use super::test::{Test, add};
use crate::network::wire::{
    ANSWER_HEAD_BYTES, Answer, Introduction, MAX_DATAGRAM_BYTES, REQUEST_HEAD_BYTES, RequestHead, Status,
};
use measure::Clock;

/// How often the thread looks whether the test is over.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A socket on the address of a control connection: on the server's own port if it is free for datagrams, so that one rule of a
/// firewall lets both through.
///
/// # Errors
/// When there is none to be had.
pub(super) fn open(mut local: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(local).or_else(|_| {
        local.set_port(0);
        UdpSocket::bind(local)
    })?;
    socket.set_read_timeout(Some(LOOK_EVERY))?;
    Ok(socket)
}

/// Answers until the test is over.
pub(super) fn attend(test: &Test, socket: &UdpSocket, nonce: &[u8; 16]) {
    let clock = Clock::start();
    let mut known = BTreeSet::new();
    let mut is_whole = false;
    let mut came = vec![0; MAX_DATAGRAM_BYTES as usize + 1];
    let mut answer = vec![0; MAX_DATAGRAM_BYTES as usize];
    while !test.is_over() {
        let Ok((bytes, from)) = socket.recv_from(&mut came) else { continue };
        let begun = clock.now_ns();
        let came = &came[..bytes];
        let is_peer = from.ip().to_canonical() == test.from.ip().to_canonical();
        if let Some(first) = Introduction::read(came).filter(|_| is_peer) {
            let has_room = known.len() < test.open.connections as usize || known.contains(&from);
            if first.bears(nonce) && has_room {
                known.insert(from);
                let _ = socket.send_to(came, from);
                continue;
            }
        }
        let request = (is_peer && known.contains(&from)).then(|| request(test, came)).flatten();
        let Some(request) = request else {
            add(&test.counts.strange_datagrams, 1);
            continue;
        };
        if request.is_whole != is_whole {
            is_whole = request.is_whole;
            keep_whole(socket, is_whole);
        }
        let whole = request.answer_bytes as usize;
        let head = Answer {
            answer_bytes: request.answer_bytes,
            status: Status::Done,
            sequence: request.sequence,
            server_ns: clock.now_ns() - begun,
            durable_ns: 0,
        };
        answer[..ANSWER_HEAD_BYTES].copy_from_slice(&head.bytes());
        answer[ANSWER_HEAD_BYTES..whole].copy_from_slice(&FILLING[..whole - ANSWER_HEAD_BYTES]);
        add(&test.counts.received_bytes, bytes as u64);
        // One that does not go out is lost, as one that is lost on the way.
        if let Ok(sent) = socket.send_to(&answer[..whole], from) {
            add(&test.counts.sent_bytes, sent as u64);
            add(&test.counts.requests, 1);
            add(&test.counts.datagrams, 1);
        }
        test.up.pass(bytes, || test.is_over());
        test.down.pass(whole, || test.is_over());
    }
}

fn request(test: &Test, came: &[u8]) -> Option<RequestHead> {
    let head = came.first_chunk::<REQUEST_HEAD_BYTES>()?;
    let most = |bytes: u32| bytes.min(MAX_DATAGRAM_BYTES);
    let request = RequestHead::read(head, most(test.open.max_request_bytes), most(test.open.max_answer_bytes)).ok()?;
    (request.request_bytes as usize == came.len() && !request.is_durable).then_some(request)
}

/// Whether answers may be cut in fragments on the way.
fn keep_whole(socket: &UdpSocket, is_whole: bool) {
    let four = if is_whole { Ipv4PathMtuDiscovery::PROBE } else { Ipv4PathMtuDiscovery::WANT };
    let six = if is_whole { Ipv6PathMtuDiscovery::PROBE } else { Ipv6PathMtuDiscovery::WANT };
    // A socket of both kinds takes both; one of them is refused by the others.
    let _ = set_ip_mtu_discover(socket, four);
    let _ = set_ipv6_mtu_discover(socket, six);
}
