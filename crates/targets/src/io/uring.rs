//! Requests through io_uring.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use io_uring::{IoUring, opcode, squeue, types};

use super::file::fds;
use super::pool::PoolQueue;
use super::{Arena, Completion, Direction, EventFd, Features, Patience, Request, StorageFile};

/// Token of the request that waits for a wake-up; never seen by callers.
const WAKE: u64 = u64::MAX;
/// The kernel takes registered buffers of at most 1 GiB each.
const REGISTERED_CHUNK: usize = 1 << 30;
/// Submission entries: more requests than this are sent in several batches.
const SUBMISSIONS: u32 = 256;

/// Queues that a small run has at once.
const DEFAULT_QUEUES: usize = 8;
/// How long a ring that lacks memory is asked for again: the kernel gives that of closed rings back a moment later.
const PATIENCE_FOR_MEMORY: Duration = Duration::from_millis(500);

/// Whether this process may use io_uring at all.
///
/// # Errors
/// The kernel's reason for refusing: no support, a container's filter, or `kernel.io_uring_disabled`.
pub(super) fn probe() -> io::Result<()> {
    // Rings are locked memory, and a limit that lets one be made may not let a run have all of its own.
    let rings = (0..DEFAULT_QUEUES).map(|_| build_ring(0)).collect::<io::Result<Vec<_>>>()?;
    let ring = &rings[0];
    let mut probe = io_uring::Probe::new();
    ring.submitter().register_probe(&mut probe)?;
    let needed = [opcode::Read::CODE, opcode::Write::CODE, opcode::Fsync::CODE, opcode::PollAdd::CODE];
    if !needed.iter().all(|code| probe.is_supported(*code)) || !ring.params().is_feature_ext_arg() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "this kernel's io_uring lacks needed operations"));
    }
    Ok(())
}

pub(super) struct UringQueue {
    ring: IoUring,
    /// Discards: no kernel before 6.12 discards a part of a block device by a ring, and those of files go the same way. Absent until the
    /// first.
    aside: Option<PoolQueue>,
    depth: u32,
    /// Keeps `fds` open, and has them for `aside`.
    files: Vec<Arc<StorageFile>>,
    fds: Vec<RawFd>,
    arena: Arc<Arena>,
    event: Arc<EventFd>,
    wake_armed: bool,
    features: Features,
    in_flight: u32,
    /// Pushed to the submission ring and not yet taken by the kernel.
    unsent: u32,
}

impl UringQueue {
    pub(super) fn new(files: &[Arc<StorageFile>], arena: Arc<Arena>, depth: u32) -> io::Result<Self> {
        let begun = Instant::now();
        let ring = loop {
            match build_ring(depth) {
                Err(error) if is_lack_of_memory(&error) && begun.elapsed() < PATIENCE_FOR_MEMORY => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                built => break built?,
            }
        };
        let fds = fds(files)?;
        let registered_files = !fds.is_empty() && ring.submitter().register_files(&fds).is_ok();
        let registered_buffers = register_arena(&ring, &arena).is_ok();
        let mut queue = Self {
            ring,
            aside: None,
            depth,
            files: files.to_vec(),
            fds,
            arena,
            event: Arc::new(EventFd::new()?),
            wake_armed: false,
            features: Features { registered_buffers, registered_files },
            in_flight: 0,
            unsent: 0,
        };
        queue.arm_wake()?;
        Ok(queue)
    }

    pub(super) fn event(&self) -> Arc<EventFd> {
        Arc::clone(&self.event)
    }

    pub(super) fn features(&self) -> Features {
        self.features
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight + self.aside.as_ref().map_or(0, PoolQueue::in_flight)
    }

    fn arm_wake(&mut self) -> io::Result<()> {
        let entry = opcode::PollAdd::new(types::Fd(self.event.as_raw_fd()), libc::POLLIN as u32).build();
        self.push_entry(&entry.user_data(WAKE))?;
        self.wake_armed = true;
        Ok(())
    }

    #[inline]
    pub(super) fn push(&mut self, request: Request) -> io::Result<()> {
        if request.direction == Direction::Discard {
            return self.push_aside(request);
        }
        let entry = self.entry(request).user_data(request.token);
        self.push_entry(&entry)?;
        self.in_flight += 1;
        Ok(())
    }

    #[cold]
    fn push_aside(&mut self, request: Request) -> io::Result<()> {
        let aside = match &mut self.aside {
            Some(aside) => aside,
            none => {
                let (arena, event) = (Arc::clone(&self.arena), Arc::clone(&self.event));
                none.insert(PoolQueue::new(&self.files, arena, self.depth, Some(event))?)
            }
        };
        aside.push(request)
    }

    #[inline]
    fn entry(&self, request: Request) -> squeue::Entry {
        let Request { direction, file, file_offset, arena_offset, bytes, token } = request;
        debug_assert_ne!(token, WAKE, "this token is reserved");
        match direction {
            Direction::Read | Direction::Write => {}
            Direction::Sync => return self.sync_entry(file),
            Direction::Discard | Direction::Nothing => return opcode::Nop::new().build(),
        }
        let address = self.arena.address(arena_offset, bytes as usize);
        let buffer = (arena_offset as usize / REGISTERED_CHUNK) as u16;
        debug_assert_eq!((arena_offset as usize + bytes as usize - 1) / REGISTERED_CHUNK, usize::from(buffer));
        let fixed = self.features.registered_buffers;
        // The four shapes differ only in types, so they are spelled out.
        macro_rules! build {
            ($fd:expr) => {
                match (direction == Direction::Read, fixed) {
                    (true, true) => opcode::ReadFixed::new($fd, address, bytes, buffer).offset(file_offset).build(),
                    (true, false) => opcode::Read::new($fd, address, bytes).offset(file_offset).build(),
                    (false, true) => opcode::WriteFixed::new($fd, address, bytes, buffer).offset(file_offset).build(),
                    (false, false) => opcode::Write::new($fd, address, bytes).offset(file_offset).build(),
                }
            };
        }
        if self.features.registered_files {
            build!(types::Fixed(file))
        } else {
            build!(types::Fd(self.fds[file as usize]))
        }
    }

    fn sync_entry(&self, file: u32) -> squeue::Entry {
        let flags = types::FsyncFlags::DATASYNC;
        if self.features.registered_files {
            opcode::Fsync::new(types::Fixed(file)).flags(flags).build()
        } else {
            opcode::Fsync::new(types::Fd(self.fds[file as usize])).flags(flags).build()
        }
    }

    #[inline]
    fn push_entry(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        loop {
            // SAFETY: the entry points into the arena, which this queue keeps alive until every request has finished
            // (see `drop`), or at nothing; its descriptors are kept open by `files` and `event`.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                self.unsent += 1;
                return Ok(());
            }
            self.submit()?;
        }
    }

    fn submit(&mut self) -> io::Result<()> {
        match self.ring.submit() {
            Ok(sent) => self.unsent -= sent as u32,
            Err(error) => tolerate(error)?,
        }
        Ok(())
    }

    #[inline]
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.unsent > 0 { self.submit() } else { Ok(()) }
    }

    #[inline]
    pub(super) fn wait(&mut self, patience: Patience, done: &mut Vec<Completion>) -> io::Result<()> {
        let before = done.len();
        match patience {
            Patience::Now => {
                if self.unsent > 0 || self.ring.submission().taskrun() {
                    self.submit()?;
                }
                self.reap(done)
            }
            Patience::Until(time) => {
                // What has finished already must not wait for what has not.
                self.reap(done)?;
                if done.len() > before {
                    return if self.unsent > 0 { self.submit() } else { Ok(()) };
                }
                let time = types::Timespec::new().sec(time.as_secs()).nsec(time.subsec_nanos());
                let args = types::SubmitArgs::new().timespec(&time);
                match self.ring.submitter().submit_with_args(1, &args) {
                    Ok(sent) => self.unsent -= sent as u32,
                    // The time was over; the kernel has taken all entries before it began to wait.
                    Err(error) if error.raw_os_error() == Some(libc::ETIME) => {
                        self.unsent = self.ring.submission().len() as u32;
                    }
                    Err(error) => {
                        tolerate(error)?;
                        self.unsent = self.ring.submission().len() as u32;
                    }
                }
                self.reap(done)
            }
        }
    }

    #[inline]
    fn reap(&mut self, done: &mut Vec<Completion>) -> io::Result<()> {
        for entry in self.ring.completion() {
            if entry.user_data() == WAKE {
                self.wake_armed = false;
            } else {
                self.in_flight -= 1;
                done.push(Completion { token: entry.user_data(), result: entry.result() });
            }
        }
        if !self.wake_armed {
            self.event.reset();
            self.arm_wake()?;
        }
        // After the reset: what ends from now on is notified again.
        match &mut self.aside {
            Some(aside) => aside.wait(Patience::Now, done),
            None => Ok(()),
        }
    }
}

impl Drop for UringQueue {
    fn drop(&mut self) {
        // The kernel may write to the arena until every request has finished.
        let mut done = Vec::new();
        while self.in_flight > 0 {
            if self.wait(Patience::Until(std::time::Duration::from_secs(1)), &mut done).is_err() {
                // Freeing memory that the kernel may still write to would corrupt us: leak it instead.
                std::mem::forget(Arc::clone(&self.arena));
                return;
            }
            done.clear();
        }
    }
}

/// Errors after which the same call can simply be made again.
fn tolerate(error: io::Error) -> io::Result<()> {
    match error.raw_os_error() {
        Some(libc::EINTR | libc::EAGAIN | libc::EBUSY) => Ok(()),
        _ => Err(error),
    }
}

/// Whether the kernel had no memory for it, or not as much as the limit of locked memory allows.
fn is_lack_of_memory(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOMEM)
}

/// Asks for the flags that save interrupts and locking, newest kernel first, and does without what is refused.
fn build_ring(depth: u32) -> io::Result<IoUring> {
    let completions = depth.saturating_add(8).next_power_of_two().max(2 * SUBMISSIONS);
    let basic = || {
        let mut builder = IoUring::builder();
        builder.setup_clamp().setup_cqsize(completions);
        builder
    };
    let mut newest = basic();
    newest.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag().setup_submit_all();
    let mut older = basic();
    older.setup_coop_taskrun().setup_taskrun_flag();
    let mut refused = None;
    for builder in [newest, older, basic()] {
        match builder.build(SUBMISSIONS) {
            Ok(ring) => return Ok(ring),
            Err(error) => refused = Some(error),
        }
    }
    Err(refused.expect("at least one attempt was made"))
}

fn register_arena(ring: &IoUring, arena: &Arena) -> io::Result<()> {
    let chunks: Vec<libc::iovec> = (0..arena.len())
        .step_by(REGISTERED_CHUNK)
        .map(|start| {
            let bytes = REGISTERED_CHUNK.min(arena.len() - start);
            libc::iovec { iov_base: arena.address(start as u64, bytes).cast(), iov_len: bytes }
        })
        .collect();
    // SAFETY: the arena outlives the ring: the queue drops the ring with itself and holds the arena.
    unsafe { ring.submitter().register_buffers(&chunks) }
}
