//! Requests to storage: one queue, and several ways for what is in it.
//!
//! A [`Queue`] belongs to one thread. It takes reads and writes of [`Arena`] memory, keeps them in flight, and hands back
//! completions. It runs on io_uring where the kernel allows that, and otherwise on plain `pread` and `pwrite` calls with
//! one helper thread for each outstanding request. Files on servers ([`VirtualFile`]) have queues of their own.

mod arena;
mod event;
mod file;
mod pool;
mod uring;

use std::any::Any;
use std::ops::AddAssign;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use std::{fmt, io};

use serde::Serialize;

use model::record::{self, TargetFacts};

pub use arena::{Arena, prefetch};
pub use event::EventFd;
#[cfg(test)]
pub(crate) use file::lock_description;
pub use file::{Access, Caching, Durability, Opening, RecordLock, StorageFile, Written, record_lock};

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
    /// Nothing is moved: a range is given back, a block device's by `BLKDISCARD` and a file's by punching a hole. Storage that no
    /// descriptor of this machine leads to refuses it.
    Discard,
    /// Nothing is done at all, by the same way as everything else: what the way itself costs.
    Nothing,
}

/// One request: `bytes` bytes between `file` at `file_offset` and the queue's arena at `arena_offset`.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// What it does.
    pub direction: Direction,
    /// Index into the files that the queue was made with.
    pub file: u32,
    /// Offset in the file, in bytes.
    pub file_offset: u64,
    /// Offset in the arena, in bytes, of what moves data. The range must not cross a multiple of 1 GiB, where the kernel's registered buffers
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
            IoEngine::Psync => QueueKind::Psync(pool::PoolQueue::new(files, arena, depth, None)?),
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

// What is asked of storage that keeps several copies, when all of them are compared.

/// What a scrub found and did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Scrubbed {
    /// Bytes of the file that were compared.
    pub bytes: u64,
    /// Copies that were compared, in bytes.
    pub copies_bytes: u64,
    /// Grains whose copies were not all readable, right and alike.
    pub faulty: u64,
    /// Copies of grains that were written again.
    pub repaired: u64,
    /// Grains whose copies differed and were equally right: the primary was taken.
    pub unsure: u64,
    /// Grains of which no copy is right.
    pub lost: u64,
    /// Grains that could not be repaired, because the group is open for reads only, a member failed, or load wrote there all
    /// the time.
    pub left: u64,
}

/// How a scrub compares.
pub struct Scrub<'a> {
    /// What is compared and written as a whole: whole pages of 4 KiB that divide 128 KiB.
    pub grain_bytes: u32,
    /// What is judged by itself, and may be sound in another copy than its neighbour: a grain, or a part of one.
    pub block_bytes: u32,
    /// How right the data at an offset are: none where they are wrong, and of two the higher is the newer.
    pub judge: &'a dyn Fn(u64, &[u8]) -> Option<u64>,
    /// Reported after each step: bytes done, and in all.
    pub progress: &'a dyn Fn(u64, u64),
    /// Ends it early.
    pub stop: &'a AtomicBool,
}

impl AddAssign for Scrubbed {
    fn add_assign(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.copies_bytes += other.copies_bytes;
        self.faulty += other.faulty;
        self.repaired += other.repaired;
        self.unsure += other.unsure;
        self.lost += other.lost;
        self.left += other.left;
    }
}

// Where virtual files lie: a directory of a server, or a disk group.

/// What is known of a file without opening it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundFile {
    /// Length in bytes.
    pub length_bytes: u64,
    /// What makes it itself, whatever its name.
    pub identity: (u64, u64),
}

/// What a file is made for: where its pieces lie may depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileUse {
    /// Blocks at any place.
    Data,
    /// A log, written from its beginning to its end.
    Redo,
}

/// That nobody else writes to a file, until it is dropped.
pub type Claim = Box<dyn Any + Send + Sync>;

/// Where files can be found, made, renamed and removed by name. All calls block. Errors say what was asked and what the answer was.
pub trait VirtualDirectory: fmt::Debug + Send + Sync {
    /// What a file in it is, for the record: `NFS file`.
    fn kind(&self) -> &'static str;

    /// Address of a file in it, for messages and the record. Two with the same address are the same file.
    fn address_of(&self, name: &str) -> PathBuf;

    /// Looks for a file. That there is none is no error.
    ///
    /// # Errors
    /// The answer, or why there is none.
    fn find(&self, name: &str) -> io::Result<Option<FoundFile>>;

    /// Opens a file that exists.
    ///
    /// # Errors
    /// The answer, or why there is none.
    fn open(&self, name: &str, access: Access, durability: Durability) -> io::Result<Arc<dyn VirtualFile>>;

    /// Creates a file that must not exist, which is to have `bytes` bytes; until they are written it may be shorter.
    ///
    /// # Errors
    /// `AlreadyExists`, and whatever the answer was.
    fn create(&self, name: &str, bytes: u64, of: FileUse, durability: Durability) -> io::Result<Arc<dyn VirtualFile>>;

    /// Gives a file another name; one that had it is gone then.
    ///
    /// # Errors
    /// The answer, or why there is none.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file. That there is none is no error.
    ///
    /// # Errors
    /// The answer, or why there is none.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Refuses where nothing may be written, before anything is. Nothing is written.
    ///
    /// # Errors
    /// What the user has not allowed.
    fn check_writable(&self) -> io::Result<()> {
        Ok(())
    }

    /// Space that is free, in bytes; `None` where that is not known.
    ///
    /// # Errors
    /// The answer, or why there is none.
    fn free_bytes(&self) -> io::Result<Option<u64>>;

    /// Keeps other runs of this program from writing to a file, whether or not it is there yet. `holder` says who asks.
    ///
    /// # Errors
    /// That somebody else has it, and who; or the answer.
    fn claim(&self, name: &str, holder: &str) -> io::Result<Claim>;

    /// Whether somebody has a claim on a file.
    ///
    /// # Errors
    /// The answer, or why there is none.
    fn is_claimed(&self, name: &str) -> io::Result<bool>;

    /// What the user should know about it, such as members that are missing.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Facts of its own for the record: its protocol, connections, …
    fn facts(&self) -> TargetFacts {
        TargetFacts::default()
    }
}

// Storage that no descriptor of this machine leads to, such as a file on an NFS server that this program speaks to itself.
//
// A `StorageFile` is a local file or one of these. The queue, long work and checks of health ask a `StorageFile` and do not
// care which it is.

/// An open file on a server. Cold calls block; load goes through a [`VirtualQueue`].
pub trait VirtualFile: Any + fmt::Debug + Send + Sync {
    /// How requests travel, for the record, such as `nfs3`.
    fn protocol(&self) -> &'static str;

    /// Present length in bytes, as the server has it.
    ///
    /// # Errors
    /// The server's answer, or why there is none.
    fn length(&self) -> io::Result<u64>;

    /// Whether the file still has a name on the server.
    ///
    /// # Errors
    /// Why the server did not answer. That it knows no such file is none.
    fn is_linked(&self) -> io::Result<bool>;

    /// Why the storage is of no use any more, where it has found that out itself. Asks nobody, and does not wait.
    fn known_failure(&self) -> Option<io::Error> {
        None
    }

    /// Smallest unit in which it can be read and written without anybody reading the rest first, in bytes.
    fn unit_bytes(&self) -> u32;

    /// Whether a page cache of this machine stands before it.
    fn is_page_cached(&self) -> bool {
        false
    }

    /// Makes all earlier writes durable, those of queues that have finished included.
    ///
    /// # Errors
    /// The server's answer; data written since the last success may be lost.
    fn sync(&self) -> io::Result<()>;

    /// Reads exactly `buffer.len()` bytes at `offset`.
    ///
    /// # Errors
    /// The server's answer, or `UnexpectedEof` when the file is shorter.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all of `buffer` at `offset`.
    ///
    /// # Errors
    /// The server's answer.
    fn write_all_at(&self, buffer: &[u8], offset: u64) -> io::Result<()>;

    /// What each of its ways to storage carried since the last call: connections, members. Called at the edge of every interval, so it
    /// must not take long. Files that share their connections report them once. A queue counts by a `ChannelWriter` for each
    /// channel of `measure`, which it opens from the file's `Channels`; this is then `Channels::take`.
    fn take_channels(&self) -> Vec<record::ChannelStats> {
        Vec::new()
    }

    /// Has queues that are opened from now on make so many connections to each path of a server. Files without connections do nothing.
    fn use_connections(&self, each: u32) {
        let _ = each;
    }

    /// Looks among all copies of `buffer.len()` bytes at `offset` for one that passes `is_sound`, reads it into `buffer`, and
    /// writes those copies again that do not pass. Gives whether there is one; storage that has a single copy, as far as is
    /// known here, has none. Blocks.
    ///
    /// # Errors
    /// When looking for it failed as such. That a copy cannot be read is none.
    fn read_sound(&self, buffer: &mut [u8], offset: u64, is_sound: &dyn Fn(&[u8]) -> bool) -> io::Result<bool> {
        let _ = (buffer, offset, is_sound);
        Ok(false)
    }

    /// Compares all copies of the file, and repairs those that are wrong where the file is open for writes. Load may go on beside it.
    /// `None` from storage that has a single copy, as far as is known here. Blocks until the end, or until it is stopped.
    fn scrub(&self, scrub: &Scrub<'_>) -> Option<Scrubbed> {
        let _ = scrub;
        None
    }

    /// A queue of the calling thread for `files` and memory of `arena` that can hold `depth` requests in flight.
    /// Requests name the files by their place in the list.
    ///
    /// # Errors
    /// When a file is of another kind of server than this one, or a connection cannot be made.
    fn open_queue(
        &self,
        files: &[Arc<dyn VirtualFile>],
        arena: Arc<Arena>,
        depth: u32,
    ) -> io::Result<Box<dyn VirtualQueue>>;
}

/// Requests in flight of one thread to servers: what [`Queue`] is for files of this machine.
///
/// Memory of the arena that a request names belongs to the queue until the request has finished; a queue that is dropped
/// leaves none that anybody may still write to.
pub trait VirtualQueue {
    /// Queues a request; it is sent at the latest by the next wait.
    ///
    /// # Errors
    /// When nothing can be sent any more. The request's own failure comes with its completion.
    fn push(&mut self, request: Request) -> io::Result<()>;

    /// Sends everything queued, as far as connections take it.
    ///
    /// # Errors
    /// When nothing can be sent any more.
    fn flush(&mut self) -> io::Result<()>;

    /// Sends everything queued and appends finished requests to `done`; see [`Queue::wait`].
    ///
    /// # Errors
    /// When the kernel refuses to wait, or nothing can be sent any more.
    fn wait(&mut self, patience: Patience, done: &mut Vec<Completion>) -> io::Result<()>;

    /// Requests queued or in flight.
    fn in_flight(&self) -> u32;

    /// What makes the present or next wait return. A queue that waits for a descriptor of its own makes one of an
    /// [`EventFd`]; one that waits in other queues gives theirs.
    fn waker(&self) -> Waker;
}

#[cfg(test)]
mod tests;
