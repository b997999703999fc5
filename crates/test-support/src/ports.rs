//! Ports of this machine for servers of tests. One helper for the tests of all crates and for all test programs.

#![allow(clippy::unwrap_used, reason = "a helper of a test may fail as the test itself may")]

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener};
use std::os::fd::IntoRawFd as _;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with};

/// The kernel itself gives ports from 32768 on to connections and to servers that name none, so one of them may be taken a moment later.
const FIRST: u32 = 20_000;
const PORTS: u32 = 12_000;
/// Of each process. Those that run at the same time begin at other ports.
const EACH: u32 = 48;

/// A port at which nothing listens now, for a server that is started next. None is given twice.
pub fn free() -> u16 {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    let own = std::process::id() % (PORTS / EACH) * EACH;
    loop {
        let tried = TRIED.fetch_add(1, Ordering::Relaxed);
        assert!(tried < PORTS, "no port from {FIRST} on is free");
        let port = u16::try_from(FIRST + (own + tried) % PORTS).unwrap();
        if TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok() {
            return port;
        }
    }
}

/// A port of 127.0.0.1 that refuses connections for as long as this process lives: it is taken, and nothing listens there.
pub fn closed() -> u16 {
    let taken = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    bind(&taken, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = SocketAddr::try_from(getsockname(&taken).unwrap()).unwrap().port();
    // Nothing closes it.
    let _ = taken.into_raw_fd();
    port
}
