//! Requests to storage: one queue, and several ways for what is in it.
//!
//! A [`Queue`] belongs to one thread. It takes reads and writes of [`Arena`] memory, keeps them in flight, and hands back
//! completions. It runs on io_uring where the kernel allows that, and otherwise on plain `pread` and `pwrite` calls with
//! one helper thread for each outstanding request. Files on servers ([`VirtualFile`]) have queues of their own.

mod arena;
mod copies;
mod directory;
mod event;
mod extents;
mod file;
mod pool;
mod uring;
mod virtual_file;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

pub use arena::{Arena, prefetch};
pub use copies::{Scrub, Scrubbed};
pub use directory::{Claim, FileUse, FoundFile, VirtualDirectory};
pub use event::EventFd;
pub use extents::Written;
pub use file::{Access, Caching, Durability, Opening, StorageFile};
pub use virtual_file::{VirtualFile, VirtualQueue};

/// How requests reach the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoEngine {
    /// One io_uring per thread, registered buffers and files where permitted.
    Uring,
    /// `pread` and `pwrite`, one thread per outstanding request.
    Psync,
}

impl IoEngine {
    /// io_uring where a ring can be made, else the plain engine and the kernel's reason.
    pub fn best_available() -> (Self, Option<String>) {
        match uring::probe() {
            Ok(()) => (Self::Uring, None),
            Err(error) => (Self::Psync, Some(error.to_string())),
        }
    }

    /// Name as `fio` has it: `io_uring` or `psync`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uring => "io_uring",
            Self::Psync => "psync",
        }
    }
}

impl fmt::Display for IoEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Direction of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From storage into the arena.
    Read,
    /// From the arena to storage.
    Write,
    /// Nothing is moved: every write that has finished before is made durable (fdatasync).
    Sync,
    /// Nothing is done at all, by the same way as everything else: what the way itself costs.
    Nothing,
}

/// One request: `bytes` bytes between `file` at `file_offset` and the queue's arena at `arena_offset`.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// Read or write.
    pub direction: Direction,
    /// Index into the files that the queue was made with.
    pub file: u32,
    /// Offset in the file, in bytes.
    pub file_offset: u64,
    /// Offset in the arena, in bytes. The range must not cross a multiple of 1 GiB, where the kernel's registered buffers
    /// end.
    pub arena_offset: u64,
    /// Length in bytes.
    pub bytes: u32,
    /// Comes back with the completion. `u64::MAX` is reserved.
    pub token: u64,
}

/// A finished request.
#[derive(Debug, Clone, Copy)]
pub struct Completion {
    /// Token of the request.
    pub token: u64,
    /// Bytes moved, or the negative error number, as the kernel gives it.
    result: i32,
}

impl Completion {
    /// A request that moved so many bytes, or failed.
    pub fn new(token: u64, moved: io::Result<u32>) -> Self {
        let result = match moved {
            Ok(bytes) => i32::try_from(bytes).unwrap_or(i32::MAX),
            Err(error) => -error.raw_os_error().unwrap_or(libc::EIO),
        };
        Self { token, result }
    }

    /// Bytes moved, which may be fewer than asked at the end of a file.
    ///
    /// # Errors
    /// The kernel's error for this request.
    pub fn bytes(self) -> io::Result<u32> {
        u32::try_from(self.result).map_err(|_| io::Error::from_raw_os_error(-self.result))
    }
}

/// Wakes a thread that waits in [`Queue::wait`]. Cheap to clone; may be called from any thread.
#[derive(Clone)]
pub struct Waker(WakerKind);

#[derive(Clone)]
enum WakerKind {
    Event(Arc<EventFd>),
    Psync(Arc<pool::Shared>),
    All(Arc<[Waker]>),
}

impl Waker {
    /// Makes the present or next wait return.
    pub fn wake(&self) {
        match &self.0 {
            WakerKind::Event(event) => event.notify(),
            WakerKind::Psync(shared) => shared.wake(),
            WakerKind::All(wakers) => wakers.iter().for_each(Self::wake),
        }
    }

    /// One for whoever waits in several queues in turn: it wakes them all.
    pub fn of_all(wakers: impl IntoIterator<Item = Self>) -> Self {
        Self(WakerKind::All(wakers.into_iter().collect()))
    }
}

impl From<Arc<EventFd>> for Waker {
    fn from(event: Arc<EventFd>) -> Self {
        Self(WakerKind::Event(event))
    }
}

impl fmt::Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waker")
    }
}

/// Requests in flight of one thread. Must be made on the thread that uses it.
pub struct Queue(QueueKind);

enum QueueKind {
    Uring(Box<uring::UringQueue>),
    Psync(pool::PoolQueue),
    Virtual(Box<dyn VirtualQueue>),
}

impl Queue {
    /// A queue for `files` and memory of `arena` that can hold `depth` requests in flight. Files on servers need no engine of
    /// the kernel; they and files of this machine cannot be in one queue.
    ///
    /// # Errors
    /// When the kernel refuses the ring, the wake-up descriptor or a helper thread; when a server refuses the connection;
    /// `Unsupported` where some files are on servers and others are not.
    pub fn new(engine: IoEngine, files: &[Arc<StorageFile>], arena: Arc<Arena>, depth: u32) -> io::Result<Self> {
        if let Some(remote) = files.iter().find_map(|file| file.virtual_file()) {
            let remote_of = |file: &Arc<StorageFile>| file.virtual_file().cloned().ok_or(io::ErrorKind::Unsupported);
            let files = files.iter().map(remote_of).collect::<Result<Vec<_>, _>>()?;
            return Ok(Self(QueueKind::Virtual(remote.open_queue(&files, arena, depth)?)));
        }
        Ok(Self(match engine {
            IoEngine::Uring => QueueKind::Uring(Box::new(uring::UringQueue::new(files, arena, depth)?)),
            IoEngine::Psync => QueueKind::Psync(pool::PoolQueue::new(files, arena, depth)?),
        }))
    }

    /// Queues a request; it is sent at the latest by the next [`Queue::wait`].
    ///
    /// # Errors
    /// When the kernel refuses to take requests. The request's own failure comes with its completion.
    ///
    /// # Panics
    /// When the request reaches outside the arena or names an unknown file: a bug in the caller.
    #[inline]
    pub fn push(&mut self, request: Request) -> io::Result<()> {
        match &mut self.0 {
            QueueKind::Uring(queue) => queue.push(request),
            QueueKind::Psync(queue) => queue.push(request),
            QueueKind::Virtual(queue) => queue.push(request),
        }
    }

    /// Sends everything queued and appends finished requests to `done`. With [`Patience::Until`] it sleeps until at least one
    /// request has finished, the queue was woken, or the time is over; it may also return early.
    ///
    /// # Errors
    /// When the kernel refuses to take requests or to wait.
    #[inline]
    pub fn wait(&mut self, patience: Patience, done: &mut Vec<Completion>) -> io::Result<()> {
        match &mut self.0 {
            QueueKind::Uring(queue) => queue.wait(patience, done),
            QueueKind::Psync(queue) => queue.wait(patience, done),
            QueueKind::Virtual(queue) => queue.wait(patience, done),
        }
    }

    /// Sends everything queued, without looking for what has finished.
    ///
    /// # Errors
    /// When the kernel refuses to take requests.
    #[inline]
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            QueueKind::Uring(queue) => queue.flush(),
            QueueKind::Psync(_) => Ok(()),
            QueueKind::Virtual(queue) => queue.flush(),
        }
    }

    /// Requests queued or in flight.
    pub fn in_flight(&self) -> u32 {
        match &self.0 {
            QueueKind::Uring(queue) => queue.in_flight(),
            QueueKind::Psync(queue) => queue.in_flight(),
            QueueKind::Virtual(queue) => queue.in_flight(),
        }
    }

    /// A handle with which other threads interrupt [`Queue::wait`].
    pub fn waker(&self) -> Waker {
        Waker(match &self.0 {
            QueueKind::Uring(queue) => WakerKind::Event(queue.event()),
            QueueKind::Psync(queue) => WakerKind::Psync(queue.shared()),
            QueueKind::Virtual(queue) => return queue.waker(),
        })
    }

    /// Which optional kernel features are in use, for the run's notes.
    pub fn features(&self) -> Features {
        match &self.0 {
            QueueKind::Uring(queue) => queue.features(),
            QueueKind::Psync(_) | QueueKind::Virtual(_) => Features::default(),
        }
    }
}

/// How long [`Queue::wait`] may sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Not at all: collect what has finished.
    Now,
    /// At most this long.
    Until(Duration),
}

/// Optional kernel features that a queue has in use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Features {
    /// Arena memory is registered, so the kernel need not pin pages for each request.
    pub registered_buffers: bool,
    /// Files are registered.
    pub registered_files: bool,
}

#[cfg(test)]
mod tests;
