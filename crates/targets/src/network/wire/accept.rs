//! Who comes in to a server: connections that have not yet shown the token.

use std::fmt::Display;
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::Scope;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::error::WireError;
use measure::os::TcpInfo;

/// What a server does with those who come.
pub trait Acceptor: Sync {
    /// Whether nobody is let in any more.
    fn is_closing(&self) -> bool;

    /// Attends to somebody until they go. `known` is said as soon as they have shown the token, or cannot.
    ///
    /// # Errors
    /// Why they were turned away.
    fn attend(&self, stream: Arc<TcpStream>, from: IpAddr, known: &Known) -> Result<(), WireError>;

    /// Somebody was turned away.
    fn turned_away(&self, from: IpAddr, why: &dyn Display);
}

/// Says that a connection needs no place among the unproven any more.
#[derive(Debug)]
pub struct Known(Arc<AtomicBool>);

impl Known {
    /// It has shown the token, or cannot.
    pub fn say(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        self.say();
    }
}

/// Most connections that are looked at before they have shown the token.
const MAX_UNPROVEN: usize = 4;
/// How long one may take for that.
pub const PROVES_IN: Duration = Duration::from_secs(5);
/// After so long, and some round trips, it makes room for the next one, so that many who say nothing keep nobody out for long.
const MAKES_ROOM_AFTER: Duration = Duration::from_millis(15);
const ROUND_TRIPS: u32 = 4;
/// The most that round trips add.
const MAX_ROUND_TRIPS: Duration = Duration::from_millis(300);
/// How often is looked whether one may make room.
const WAITS_FOR_ROOM: Duration = Duration::from_millis(1);
/// How often the server looks whether it is to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Threads hold little on their stacks.
const STACK_BYTES: usize = 256 << 10;

struct Unproven {
    /// Held by the thread that looks at it.
    stream: Weak<TcpStream>,
    since: Instant,
    /// How long it has if others wait.
    keeps_room: Duration,
    is_known: Arc<AtomicBool>,
}

impl Unproven {
    fn new(stream: &Arc<TcpStream>, is_known: &Arc<AtomicBool>) -> Self {
        // The kernel has measured one when the connection was made.
        let round_trip = TcpInfo::of(stream).map_or(0, |info| info.rtt_ns);
        let round_trips = Duration::from_nanos(round_trip).saturating_mul(ROUND_TRIPS).min(MAX_ROUND_TRIPS);
        Self {
            stream: Arc::downgrade(stream),
            since: Instant::now(),
            keeps_room: MAKES_ROOM_AFTER + round_trips,
            is_known: Arc::clone(is_known),
        }
    }

    fn has_time(&self) -> bool {
        self.since.elapsed() < self.keeps_room
    }

    fn close(&self) {
        if let Some(stream) = self.stream.upgrade() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Lets in whoever comes, until the server is to end.
///
/// # Errors
/// When the kernel has no more connections to give.
pub fn accept_connections<'s>(
    keeper: &'s dyn Acceptor,
    listener: &TcpListener,
    scope: &'s Scope<'s, '_>,
) -> std::io::Result<()> {
    let mut unproven: Vec<Unproven> = Vec::new();
    while !keeper.is_closing() {
        unproven.retain(|one| !one.is_known.load(Ordering::Relaxed));
        if unproven.len() >= MAX_UNPROVEN && unproven[0].has_time() {
            std::thread::sleep(WAITS_FOR_ROOM);
            continue;
        }
        if !comes(listener) {
            continue;
        }
        let (stream, from) = match listener.accept() {
            Ok(came) => came,
            Err(error) if goes_on(&error) => continue,
            Err(error) => return Err(error),
        };
        if unproven.len() >= MAX_UNPROVEN {
            unproven.remove(0).close();
        }
        let (stream, is_known) = (Arc::new(stream), Arc::new(AtomicBool::new(false)));
        let one = Unproven::new(&stream, &is_known);
        let attend = move || {
            let plain = stream.set_nonblocking(false).and_then(|()| stream.set_nodelay(true));
            let prepared = plain.map_err(|source| WireError::Io { action: "prepare a connection", source });
            if let Err(error) = prepared.and_then(|()| keeper.attend(stream, from.ip(), &Known(is_known))) {
                keeper.turned_away(from.ip(), &error.of_stranger());
            }
        };
        let thread = std::thread::Builder::new().name("serve".to_owned()).stack_size(STACK_BYTES);
        match thread.spawn_scoped(scope, attend) {
            Ok(_) => unproven.push(one),
            Err(error) => keeper.turned_away(from.ip(), &format_args!("no thread for it: {error}")),
        }
    }
    unproven.iter().for_each(Unproven::close);
    Ok(())
}

/// Waits for somebody, for as long as the server need not look at anything else.
fn comes(listener: &TcpListener) -> bool {
    let mut fds = [PollFd::new(listener, PollFlags::IN)];
    let patience = Timespec { tv_sec: 0, tv_nsec: LOOK_EVERY.subsec_nanos().into() };
    matches!(poll(&mut fds, Some(&patience)), Ok(ready) if ready > 0)
}

/// Errors after which others can still come. Without free descriptors, that takes some time.
fn goes_on(error: &std::io::Error) -> bool {
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => {
            std::thread::sleep(LOOK_EVERY);
            true
        }
        Some(libc::ECONNABORTED | libc::EINTR | libc::EAGAIN | libc::EPROTO | libc::EPERM) => true,
        _ => false,
    }
}
