//! Threads that are started only where memory is left for them.
//!
//! A thread that was started maps memory for itself before its first line: a stack for signals, an arena of the allocator.
//! Where that fails, the standard library ends the whole process, and nobody is reported why. So room is made sure of before.

use std::hint::black_box;
use std::io;
use std::sync::mpsc;

use super::kernel::map_for_a_moment;

/// Address space that must be free: an arena (64 MiB), a stack (2 MiB by default), what else the thread maps for itself (tens
/// of KiB), and enough to end in order if no other thread can be started.
const ROOM_BYTES: usize = 80 << 20;

/// Makes sure that this process may still map enough for one more thread. Nothing of it is touched, and nothing kept.
///
/// # Errors
/// `EAGAIN`, as `pthread_create(3)` has it, where a limit (`ulimit -v`, `vm.overcommit_memory`) leaves less.
pub fn room_for_thread() -> io::Result<()> {
    map_for_a_moment(ROOM_BYTES).map_err(|_| io::Error::from_raw_os_error(libc::EAGAIN))
}

/// What a thread has to say as the first thing that it does.
#[derive(Debug)]
pub struct Begun {
    sender: mpsc::Sender<()>,
}

impl Begun {
    /// Says that the thread has all that it maps for itself.
    pub fn say(self) {
        // The first allocation of a thread looks for an arena, and maps 128 MiB for a moment to make one (`M_ARENA_MAX` in
        // `mallopt(3)`): had the thread begun before, it might take what the next one needs.
        drop(black_box(Box::new(0_u8)));
        drop(self.sender);
    }
}

/// Starts a thread with `start`, which moves what it is given into the thread; returns when the thread has said it.
/// So of many threads that are started in a row only one at a time maps memory for itself.
///
/// # Errors
/// When there is no room for a thread, or `start` fails.
pub fn start_thread<H>(start: impl FnOnce(Begun) -> io::Result<H>) -> io::Result<H> {
    room_for_thread()?;
    // Nothing is ever sent: the channel ends when the thread drops its sender.
    let (sender, begun) = mpsc::channel();
    let handle = start(Begun { sender })?;
    let _ = begun.recv();
    Ok(handle)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_thread_has_begun_when_its_start_returns() {
        let has_begun = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..50 {
                has_begun.store(false, Ordering::SeqCst);
                let body = |begun: Begun| {
                    std::thread::Builder::new().spawn_scoped(scope, {
                        let has_begun = &has_begun;
                        move || {
                            has_begun.store(true, Ordering::SeqCst);
                            begun.say();
                        }
                    })
                };
                start_thread(body).unwrap();
                assert!(has_begun.load(Ordering::SeqCst));
            }
        });
    }

    #[test]
    fn a_start_that_fails_is_reported_and_waits_for_nobody() {
        let failed = start_thread(|begun| {
            drop(begun);
            Err::<(), _>(io::Error::from_raw_os_error(libc::EAGAIN))
        });
        assert_eq!(failed.unwrap_err().raw_os_error(), Some(libc::EAGAIN));
    }
}
