//! The queueing discipline of an interface, as the kernel's routing socket names it: `/sys` does not have it.

use std::time::Duration;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, recv, sendto, socket};

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
pub(super) fn of(interface: &str) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_a_discipline_and_what_is_not_there_has_none() {
        let found = of("lo").unwrap();
        assert!(!found.is_empty() && found.is_ascii(), "{found}");
        assert_eq!(of("no-such-link"), None);
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
}
