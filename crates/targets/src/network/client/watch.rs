//! Waiting for sockets, many at a time, until an instant.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::error::NetError;
use measure::Clock;

/// Nobody waits longer than this, so that whoever is silent is noticed.
pub(super) const TICK_NS: u64 = 20_000_000;
/// `epoll_wait` counts in milliseconds, rounded up; what is due sooner than this is waited for in nanoseconds.
const FINE_NS: u64 = 5_000_000;
/// Most sockets that are reported as ready at once.
const EVENTS: usize = 64;

/// What a socket is ready for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ready {
    /// Number by which it was added.
    pub(super) number: u32,
    /// Something can be taken, or the other end has gone.
    pub(super) can_receive: bool,
    /// Something can be sent.
    pub(super) can_send: bool,
}

/// Sockets that are waited for.
#[derive(Debug)]
pub(super) struct Watch {
    epoll: OwnedFd,
}

impl Watch {
    pub(super) fn new() -> Result<Self, NetError> {
        Ok(Self { epoll: epoll::create(CreateFlags::CLOEXEC).map_err(cannot)? })
    }

    /// Waits for a socket from now on.
    pub(super) fn add(&self, socket: impl AsFd, number: u32, receives: bool) -> Result<(), NetError> {
        let flags = if receives { EventFlags::IN } else { EventFlags::empty() };
        epoll::add(&self.epoll, socket, EventData::new_u64(u64::from(number)), flags).map_err(cannot)
    }

    /// Says whether it is waited for until something can be sent too.
    pub(super) fn sends(&self, socket: impl AsFd, number: u32, receives: bool, sends: bool) -> Result<(), NetError> {
        let mut flags = if receives { EventFlags::IN } else { EventFlags::empty() };
        flags.set(EventFlags::OUT, sends);
        epoll::modify(&self.epoll, socket, EventData::new_u64(u64::from(number)), flags).map_err(cannot)
    }

    /// Appends what is ready. Returns at the latest soon after `until_ns`, and after [`TICK_NS`].
    pub(super) fn wait(&self, clock: Clock, until_ns: u64, ready: &mut Vec<Ready>) -> Result<(), NetError> {
        let left_ns = until_ns.saturating_sub(clock.now_ns()).min(TICK_NS);
        let mut coarse_ns = 0;
        if left_ns >= FINE_NS {
            coarse_ns = left_ns - left_ns % 1_000_000;
        } else if left_ns > 0 {
            let patience = Timespec { tv_sec: 0, tv_nsec: left_ns as _ };
            match poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], Some(&patience)) {
                Ok(0) | Err(Errno::INTR) => return Ok(()),
                Ok(_) => {}
                Err(error) => return Err(cannot(error)),
            }
        }
        let patience = Timespec { tv_sec: 0, tv_nsec: coarse_ns as _ };
        let mut events = [const { MaybeUninit::<Event>::uninit() }; EVENTS];
        match epoll::wait(&self.epoll, &mut events, Some(&patience)) {
            Ok((events, _)) => ready.extend(events.iter().map(|event| {
                let flags = event.flags;
                let gone = EventFlags::HUP | EventFlags::ERR;
                Ready {
                    number: event.data.u64() as u32,
                    can_receive: flags.intersects(EventFlags::IN | gone),
                    can_send: flags.intersects(EventFlags::OUT | gone),
                }
            })),
            Err(Errno::INTR) => {}
            Err(error) => return Err(cannot(error)),
        }
        Ok(())
    }
}

fn cannot(source: Errno) -> NetError {
    NetError::Socket { action: "wait for sockets", source: source.into() }
}

/// How long a blocking call may take.
pub(super) const TICK: Duration = Duration::from_nanos(TICK_NS);

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn what_has_come_is_reported_at_once_and_nothing_at_its_time() {
        let (mut near, far) = UnixStream::pair().unwrap();
        let (watch, clock) = (Watch::new().unwrap(), Clock::start());
        watch.add(&far, 7, true).unwrap();
        let mut ready = Vec::new();
        for wait_ns in [0, 300_000, 9_000_000] {
            let until_ns = clock.now_ns() + wait_ns;
            while clock.now_ns() < until_ns {
                watch.wait(clock, until_ns, &mut ready).unwrap();
            }
            assert!(ready.is_empty(), "{wait_ns}");
        }
        near.write_all(b"!").unwrap();
        watch.wait(clock, clock.now_ns() + 10 * TICK_NS, &mut ready).unwrap();
        assert_eq!(ready, [Ready { number: 7, can_receive: true, can_send: false }]);
        watch.sends(&far, 7, false, true).unwrap();
        ready.clear();
        watch.wait(clock, 0, &mut ready).unwrap();
        assert_eq!(ready, [Ready { number: 7, can_receive: false, can_send: true }]);
    }
}
