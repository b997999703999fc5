//! Requests through blocking `pread` and `pwrite` calls, one helper thread for each outstanding request.

use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::file::{discard, fds};
use super::{Arena, Completion, Direction, EventFd, Patience, Request, StorageFile};
use measure::os::{room_for_thread, start_thread};

/// Helper threads of one queue at most; deeper queues wait for a free one.
const MAX_THREADS: u32 = 512;
const STACK_BYTES: usize = 64 << 10;

/// What the owner and the helpers share.
pub(super) struct Shared {
    state: Mutex<State>,
    /// Helpers wait here for requests.
    work: Condvar,
    /// The owner waits here for completions and wake-ups.
    progress: Condvar,
    /// Notified as well where the owner waits for other things, too.
    event: Option<Arc<EventFd>>,
    /// Keeps `fds` open.
    _files: Vec<Arc<StorageFile>>,
    fds: Vec<RawFd>,
    arena: Arc<Arena>,
}

#[derive(Default)]
struct State {
    requests: VecDeque<Request>,
    done: Vec<Completion>,
    idle_helpers: u32,
    woken: bool,
    closing: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics while it holds the lock, and the state is valid between any two statements.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wake(&self) {
        self.lock().woken = true;
        self.progress.notify_one();
    }

    fn has_progressed(&self) {
        match &self.event {
            Some(event) => event.notify(),
            None => self.progress.notify_one(),
        }
    }

    fn serve(&self) {
        let mut state = self.lock();
        loop {
            if let Some(request) = state.requests.pop_front() {
                drop(state);
                let completion = self.run(request);
                state = self.lock();
                state.done.push(completion);
                self.has_progressed();
            } else if state.closing {
                return;
            } else {
                state.idle_helpers += 1;
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle_helpers -= 1;
            }
        }
    }

    fn run(&self, request: Request) -> Completion {
        let Request { direction, file, file_offset, arena_offset, bytes, token } = request;
        if direction == Direction::Nothing {
            return Completion { token, result: 0 };
        }
        let fd = self.fds[file as usize];
        let moves_data = matches!(direction, Direction::Read | Direction::Write);
        let address = if moves_data { self.arena.address(arena_offset, bytes as usize) } else { std::ptr::null_mut() };
        loop {
            // SAFETY: a range of data lies in the arena, which `self` keeps alive; the descriptor is kept open by `_files`.
            let result = unsafe {
                match direction {
                    Direction::Read => libc::pread64(fd, address.cast(), bytes as usize, file_offset as i64),
                    Direction::Write => libc::pwrite64(fd, address.cast(), bytes as usize, file_offset as i64),
                    Direction::Sync => libc::fdatasync(fd) as isize,
                    Direction::Discard => discard(fd, file_offset, bytes.into()) as isize,
                    Direction::Nothing => 0,
                }
            };
            if result >= 0 {
                return Completion { token, result: result as i32 };
            }
            let error = io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
            if error != libc::EINTR {
                return Completion { token, result: -error };
            }
        }
    }
}

pub(super) struct PoolQueue {
    shared: Arc<Shared>,
    helpers: Vec<thread::JoinHandle<()>>,
    max_helpers: u32,
    in_flight: u32,
}

impl PoolQueue {
    /// A queue that notifies `event`, if there is one, of completions.
    pub(super) fn new(
        files: &[Arc<StorageFile>],
        arena: Arc<Arena>,
        depth: u32,
        event: Option<Arc<EventFd>>,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            work: Condvar::new(),
            progress: Condvar::new(),
            event,
            _files: files.to_vec(),
            fds: fds(files)?,
            arena,
        });
        let mut queue = Self { shared, helpers: Vec::new(), max_helpers: depth.clamp(1, MAX_THREADS), in_flight: 0 };
        // Waited for, since no request is timed yet: of thousands of queues each would else begin its thread under the load.
        start_thread(|begun| {
            queue.spawn_helper(move |shared| {
                begun.say();
                shared.serve();
            })
        })?;
        Ok(queue)
    }

    pub(super) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    fn add_helper(&mut self) -> io::Result<()> {
        // Not waited for until it has begun: requests are being timed.
        room_for_thread()?;
        self.spawn_helper(Shared::serve)
    }

    fn spawn_helper(&mut self, serve: impl FnOnce(&Shared) + Send + 'static) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let helper = thread::Builder::new().name("psync".into()).stack_size(STACK_BYTES);
        self.helpers.push(helper.spawn(move || serve(&shared))?);
        Ok(())
    }

    pub(super) fn push(&mut self, request: Request) -> io::Result<()> {
        // Checked here, so that a caller's bug panics in the caller's thread.
        if matches!(request.direction, Direction::Read | Direction::Write) {
            let _ = self.shared.arena.address(request.arena_offset, request.bytes as usize);
        }
        let would_wait = {
            let state = self.shared.lock();
            state.requests.len() as u32 + 1 > state.idle_helpers
        };
        // Before the request is queued: one that was refused must not come back.
        if would_wait && (self.helpers.len() as u32) < self.max_helpers {
            self.add_helper()?;
        }
        self.shared.lock().requests.push_back(request);
        self.in_flight += 1;
        self.shared.work.notify_one();
        Ok(())
    }

    pub(super) fn wait(&mut self, patience: Patience, done: &mut Vec<Completion>) -> io::Result<()> {
        let mut state = self.shared.lock();
        if let Patience::Until(time) = patience
            && state.done.is_empty()
            && !state.woken
        {
            let idle = |state: &mut State| state.done.is_empty() && !state.woken;
            let waited = self.shared.progress.wait_timeout_while(state, time, idle);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.woken = false;
        self.in_flight -= state.done.len() as u32;
        done.append(&mut state.done);
        Ok(())
    }
}

impl Drop for PoolQueue {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.work.notify_all();
        for helper in self.helpers.drain(..) {
            // A helper has no result, and a panic in it was already reported by the panic hook.
            let _ = helper.join();
        }
    }
}
