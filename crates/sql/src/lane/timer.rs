//! Waking up on time: the runtime's own timers only know milliseconds, which operations that fall due at a rate would feel.

use std::io;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::net::unix::pipe::Receiver;

use measure::Clock;

/// A timer of the kernel that a runtime waits for as for a socket.
pub(super) struct Timer {
    clock: Clock,
    /// To the runtime it is like a pipe: something to read comes out of it when it rings.
    descriptor: Receiver,
    /// What it is set to.
    until_ns: u64,
}

impl Timer {
    /// A timer that is not set. Must be made in the runtime that waits for it.
    pub(super) fn new(clock: Clock) -> io::Result<Self> {
        let descriptor = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        Ok(Self { clock, descriptor: Receiver::from_owned_fd_unchecked(descriptor)?, until_ns: u64::MAX })
    }

    /// Waits until an instant of the clock. May be given up at any time; costs no system call where it is set to that instant
    /// already.
    pub(super) async fn wait_until(&mut self, until_ns: u64) -> io::Result<()> {
        if until_ns != self.until_ns {
            // Nothing at all would unset it.
            let left_ns = until_ns.saturating_sub(self.clock.now_ns()).max(1);
            let it_value =
                Timespec { tv_sec: (left_ns / 1_000_000_000) as i64, tv_nsec: (left_ns % 1_000_000_000) as _ };
            let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
            timerfd_settime(&self.descriptor, TimerfdTimerFlags::empty(), &once)?;
            self.until_ns = until_ns;
        }
        loop {
            self.descriptor.readable().await?;
            match self.descriptor.try_read(&mut [0; 8]) {
                // It may have rung for what it was set to before.
                Ok(_) if self.clock.now_ns() < until_ns => {}
                Ok(_) => {
                    self.until_ns = u64::MAX;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;

    use super::*;

    #[test]
    fn it_rings_at_its_instant_and_not_for_an_earlier_one() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let clock = Clock::start();
            let mut timer = Timer::new(clock).unwrap();
            // It rings while nobody waits for it any more.
            let mut given_up = Box::pin(timer.wait_until(clock.now_ns() + 500_000));
            assert!(poll_fn(|task| Poll::Ready(given_up.as_mut().poll(task).is_pending())).await);
            drop(given_up);
            std::thread::sleep(std::time::Duration::from_millis(2));
            let mut soonest = u64::MAX;
            for _ in 0..50 {
                let until_ns = clock.now_ns() + 300_000;
                timer.wait_until(until_ns).await.unwrap();
                let now = clock.now_ns();
                assert!(now >= until_ns, "{} ns too soon", until_ns - now);
                soonest = soonest.min(now - until_ns);
            }
            assert!(soonest < 300_000, "at best {soonest} ns late");
        });
    }
}
