//! Connections to the addresses of a server.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, sockopt};

use super::NfsError;
use measure::monotonic_ns;
use model::config::ServerNode;
use model::config::nfs::NfsAddress;

/// The last of the ports from which servers believe that root of a machine sends; the first is 512.
const MAX_RESERVED_PORT: u16 = 1023;
/// How many they are; all are tried for a connection before any other port is taken.
const RESERVED_COUNT: u32 = 512;
/// Ports that are tried one after the other lie so far apart; it has no factor in common with their count.
const STRIDE: u32 = 7;
/// Where the search of the process's next connection begins.
static NEXT_PORT: AtomicU32 = AtomicU32::new(0);
/// When the last of all ports was tried for a connection; 0 where that never was.
static NONE_FREE_NS: AtomicU64 = AtomicU64::new(0);
/// A thousand connections are not made to look at all ports each.
const SEARCHED_AGAIN_AFTER_NS: u64 = 1_000_000_000;

/// A way to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// Where connections go.
    pub to: SocketAddr,
    /// Where they leave from; of the kernel's choice where that is `None`.
    pub from: Option<IpAddr>,
}

impl Route {
    /// The same to another port.
    pub fn with_port(self, port: u16) -> Self {
        Self { to: SocketAddr::new(self.to.ip(), port), ..self }
    }
}

/// All ways to the server of an address.
pub fn routes(address: &NfsAddress) -> Result<Vec<Route>, NfsError> {
    let route = |(path, local): (&ServerNode, Option<&ServerNode>)| {
        let local = local.map(|local| resolve(&local.host, 0)).transpose()?;
        let found = resolve_all(&path.host, address.port_of(path))?;
        let is_near = |to: &&SocketAddr| local.is_none_or(|local| local.is_ipv4() == to.is_ipv4());
        let to = found.iter().find(is_near).or(found.first());
        to.map(|to| Route { to: *to, from: local.map(|local| local.ip()) }).ok_or_else(|| no_address(&path.host))
    };
    address.routes().map(route).collect()
}

fn no_address(host: &str) -> NfsError {
    NfsError::Resolve { host: host.to_owned(), source: Arc::new(io::ErrorKind::NotFound.into()) }
}

fn resolve(host: &str, port: u16) -> Result<SocketAddr, NfsError> {
    resolve_all(host, port)?.first().copied().ok_or_else(|| no_address(host))
}

fn resolve_all(host: &str, port: u16) -> Result<Vec<SocketAddr>, NfsError> {
    let found = (host, port).to_socket_addrs();
    found.map(Iterator::collect).map_err(|source| NfsError::Resolve { host: host.to_owned(), source: Arc::new(source) })
}

/// The port that is tried as number `count` of this process.
fn reserved_port(count: u32) -> u16 {
    MAX_RESERVED_PORT - (count.wrapping_mul(STRIDE) % RESERVED_COUNT) as u16
}

/// Whether a port that servers believe may be free: not right after a search for one that found none.
fn may_be_free() -> bool {
    let none_free_ns = NONE_FREE_NS.load(Ordering::Relaxed);
    none_free_ns == 0 || monotonic_ns().saturating_sub(none_free_ns) > SEARCHED_AGAIN_AFTER_NS
}

/// A connection that is being made, where root may choose from a port that servers believe.
///
/// # Errors
/// What the kernel says at once.
pub fn begin(route: Route) -> io::Result<TcpStream> {
    let family = if route.to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let any = if route.to.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
    let from = route.from.unwrap_or(any);
    let new = || rustix::net::socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP));
    let mut socket = new()?;
    let mut tries = if rustix::process::geteuid().is_root() && may_be_free() { RESERVED_COUNT } else { 0 };
    while tries > 0 {
        tries -= 1;
        if tries == 0 {
            NONE_FREE_NS.store(monotonic_ns(), Ordering::Relaxed);
        }
        let port = reserved_port(NEXT_PORT.fetch_add(1, Ordering::Relaxed));
        match rustix::net::bind(&socket, &SocketAddr::new(from, port)) {
            Err(rustix::io::Errno::ADDRINUSE | rustix::io::Errno::ACCESS) => continue,
            bound => bound?,
        }
        sockopt::set_tcp_nodelay(&socket, true)?;
        match rustix::net::connect(&socket, &route.to) {
            Ok(()) | Err(rustix::io::Errno::INPROGRESS) => return Ok(TcpStream::from(socket)),
            // A connection from this port may not be forgotten yet.
            Err(rustix::io::Errno::ADDRINUSE | rustix::io::Errno::ADDRNOTAVAIL) => socket = new()?,
            Err(error) => return Err(error.into()),
        }
    }
    if route.from.is_some() {
        rustix::net::bind(&socket, &SocketAddr::new(from, 0))?;
    }
    sockopt::set_tcp_nodelay(&socket, true)?;
    match rustix::net::connect(&socket, &route.to) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(TcpStream::from(socket)),
        Err(error) => Err(error.into()),
    }
}

/// Whether a connection that has become writable was made.
///
/// # Errors
/// Why it was not.
pub fn made(socket: &TcpStream) -> io::Result<()> {
    match socket.take_error()? {
        None => socket.peer_addr().map(|_| ()),
        Some(error) => Err(error),
    }
}

/// A connection that blocks, made within `patience`.
///
/// # Errors
/// Why it is not made.
pub fn connect(route: Route, patience: Duration) -> io::Result<TcpStream> {
    let socket = begin(route)?;
    let mut waiting = [rustix::event::PollFd::new(&socket, rustix::event::PollFlags::OUT)];
    let patience = rustix::time::Timespec::try_from(patience).map_err(|_| io::ErrorKind::InvalidInput)?;
    if rustix::event::poll(&mut waiting, Some(&patience))? == 0 {
        return Err(io::ErrorKind::TimedOut.into());
    }
    made(&socket)?;
    socket.set_nonblocking(false)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ports_that_servers_believe_are_tried_wherever_the_search_begins() {
        for begin in [0, 1, 511, u32::MAX - 100] {
            let tried: std::collections::BTreeSet<u16> =
                (0..RESERVED_COUNT).map(|count| reserved_port(begin.wrapping_add(count))).collect();
            assert!(tried.into_iter().eq(512..=1023), "from {begin}");
        }
        // Others may have taken them all; then any port does.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let route = Route { to: listener.local_addr().unwrap(), from: Some(Ipv4Addr::LOCALHOST.into()) };
        NONE_FREE_NS.store(monotonic_ns(), Ordering::Relaxed);
        let made = connect(route, Duration::from_secs(60)).unwrap();
        assert!(made.local_addr().unwrap().port() > 1023);
    }
}
