//! Connections to a server, proved.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketType, sockopt};

use super::{NetError, TICK};
use crate::ending::EndSignal;
use crate::network::wire::{ClientControl, Flow, Key, Session, SocketOptions, prove_data};

/// The control connection to the first address that takes one.
pub(super) fn control(
    server: &str,
    addresses: &[SocketAddr],
    token: &Key,
    timeout: Duration,
) -> Result<(SocketAddr, ClientControl, Session), NetError> {
    let (mut first_error, end) = (None, EndSignal::from_now_on());
    for address in addresses {
        match end.connect(*address, timeout) {
            Ok(stream) => {
                let socket = |action| move |source| NetError::Socket { action, source };
                stream.set_nodelay(true).map_err(socket("send without delay"))?;
                let watched = stream.try_clone().map_err(socket("name it twice"))?;
                let proved = end.during(&watched, || ClientControl::prove(stream, token, Instant::now() + timeout));
                let (control, session) =
                    proved.map_err(|source| NetError::Wire { server: server.to_owned(), source })?;
                return Ok((*address, control, session));
            }
            Err(error) => {
                first_error.get_or_insert(error);
            }
        }
    }
    let source = first_error.unwrap_or_else(|| std::io::Error::from(std::io::ErrorKind::AddrNotAvailable));
    Err(NetError::Connect { server: server.to_owned(), source })
}

/// A data connection of a test.
pub(super) fn data(
    server: &str,
    address: SocketAddr,
    session: &Session,
    test: u64,
    flow: Flow,
    options: &SocketOptions,
    timeout: Duration,
) -> Result<TcpStream, NetError> {
    let lost = |source| NetError::Connect { server: server.to_owned(), source };
    let end = EndSignal::from_now_on();
    let stream = end.connect(address, timeout).map_err(lost)?;
    prepare(&stream, options)?;
    let proved = end.during(&stream, || prove_data(&stream, session, test, flow, Instant::now() + timeout));
    proved.map_err(|source| NetError::Wire { server: server.to_owned(), source })?;
    let socket = |source| NetError::Socket { action: "set a timeout", source };
    stream.set_read_timeout(Some(TICK)).map_err(socket)?;
    stream.set_write_timeout(Some(TICK)).map_err(socket)?;
    Ok(stream)
}

/// Sets what was asked for.
pub(super) fn prepare(stream: &TcpStream, options: &SocketOptions) -> Result<(), NetError> {
    let socket = |action| move |source: std::io::Error| NetError::Socket { action, source };
    stream.set_nodelay(true).map_err(socket("send without delay"))?;
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    if let Some(bytes) = options.send_buffer_bytes {
        let set = sockopt::set_socket_send_buffer_size(stream, size(bytes));
        set.map_err(|error| socket("set the send buffer")(error.into()))?;
    }
    if let Some(bytes) = options.receive_buffer_bytes {
        let set = sockopt::set_socket_recv_buffer_size(stream, size(bytes));
        set.map_err(|error| socket("set the receive buffer")(error.into()))?;
    }
    if let Some(name) = &options.congestion {
        set_congestion(stream, name)?;
    }
    Ok(())
}

fn set_congestion(socket: impl AsFd, name: &str) -> Result<(), NetError> {
    let set = sockopt::set_tcp_congestion(socket, name);
    set.map_err(|error| NetError::Socket { action: "use that congestion control", source: error.into() })
}

/// Whether this kernel has a congestion control, before anything is recorded.
pub(super) fn check_congestion(name: &str) -> Result<(), NetError> {
    let tried = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None);
    let tried = tried.map_err(|error| NetError::Socket { action: "make a socket", source: error.into() })?;
    set_congestion(&tried, name)
}
