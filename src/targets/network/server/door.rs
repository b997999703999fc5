//! Who comes in: connections that have not yet shown the token.

use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::Scope;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::error::ServeError;
use super::event::Event;
use super::house::House;
use super::test::Test;
use super::{control, flow};
use crate::measure::os::TcpInfo;
use crate::targets::network::wire::{Flow, Role, Session, WireError, greet};

/// Most connections that are looked at before they have shown the token.
const MAX_UNPROVEN: usize = 4;
/// How long one may take for that.
const PROVES_IN: Duration = Duration::from_secs(5);
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
pub(super) fn attend<'s>(
    house: &'s House<'_>,
    listener: &TcpListener,
    scope: &'s Scope<'s, '_>,
) -> Result<(), ServeError> {
    let mut unproven: Vec<Unproven> = Vec::new();
    while !house.is_ending() && !house.is_idle() {
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
            Err(source) => return Err(ServeError::Accept { address: house.address, source }),
        };
        if unproven.len() >= MAX_UNPROVEN {
            unproven.remove(0).close();
        }
        let (stream, is_known) = (Arc::new(stream), Arc::new(AtomicBool::new(false)));
        let one = Unproven::new(&stream, &is_known);
        let attend = move || {
            let met = meet(house, &stream);
            is_known.store(true, Ordering::Relaxed);
            if let Err(error) = met.and_then(|met| met.attend(house, stream)) {
                house.turned_away(from.ip(), &words(&error));
            }
        };
        let thread = std::thread::Builder::new().name("serve".to_owned()).stack_size(STACK_BYTES);
        match thread.spawn_scoped(scope, attend) {
            Ok(_) => unproven.push(one),
            Err(error) => house.turned_away(from.ip(), &format_args!("no thread for it: {error}")),
        }
    }
    unproven.iter().for_each(Unproven::close);
    Ok(())
}

/// What a server says of somebody who was turned away.
fn words(error: &WireError) -> String {
    match error {
        WireError::TokenRefused => "it did not prove that it knows the token".to_owned(),
        WireError::NoTest => "it came for a test that does not go on".to_owned(),
        error => error.to_string(),
    }
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

/// Somebody who has shown the token.
enum Met {
    Control(Session),
    Data(Flow, Arc<Test>),
}

fn meet(house: &House<'_>, stream: &TcpStream) -> Result<Met, WireError> {
    let plain = |error| WireError::Io { action: "prepare a connection", source: error };
    stream.set_nonblocking(false).and_then(|()| stream.set_nodelay(true)).map_err(plain)?;
    let test = house.test();
    let of = || test.as_ref().map(|test| (test.session.clone(), test.number));
    match greet(stream, &house.key, of, Instant::now() + PROVES_IN)? {
        (Role::Data(flow), _) => Ok(Met::Data(flow, test.ok_or(WireError::NoTest)?)),
        (Role::Control, session) => Ok(Met::Control(session.ok_or(WireError::NoTest)?)),
    }
}

impl Met {
    fn attend(self, house: &House<'_>, stream: Arc<TcpStream>) -> Result<(), WireError> {
        match self {
            Self::Control(session) => {
                // It may just have been closed, to make room.
                let stream = Arc::into_inner(stream).ok_or(WireError::NoTest)?;
                control::attend(house, stream, session)
            }
            Self::Data(flow, test) => {
                let Some(attending) = test.attend(flow, &stream) else {
                    return Err(WireError::Malformed {
                        what: "a data connection",
                        why: "its number is taken, or beyond what was asked for".to_owned(),
                    });
                };
                if let Err(error) = flow::attend(&test, flow, &stream) {
                    let what = format!("connection {}: {error}", flow.number + 1);
                    test.has_trouble(&what);
                    house.tell(&Event::Trouble { from: test.from, test: test.number, what });
                }
                let _ = stream.shutdown(Shutdown::Both);
                drop(attending);
                Ok(())
            }
        }
    }
}
