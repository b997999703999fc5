//! Storage that no descriptor of this machine leads to, such as a file on an NFS server that this program speaks to itself.
//!
//! A `StorageFile` is a local file or one of these. The queue, long work and checks of health ask a `StorageFile` and do not
//! care which it is.

use std::any::Any;
use std::fmt;
use std::io;
use std::sync::Arc;

use model::record;

use super::{Arena, Completion, Patience, Request, Scrub, Scrubbed, Waker};

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
    /// channel (`measure/channel.rs`), which it opens from the file's `Channels`; this is then `Channels::take`.
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

/// Requests in flight of one thread to servers: what [`super::Queue`] is for files of this machine.
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

    /// Sends everything queued and appends finished requests to `done`; see [`super::Queue::wait`].
    ///
    /// # Errors
    /// When the kernel refuses to wait, or nothing can be sent any more.
    fn wait(&mut self, patience: Patience, done: &mut Vec<Completion>) -> io::Result<()>;

    /// Requests queued or in flight.
    fn in_flight(&self) -> u32;

    /// What makes the present or next wait return. A queue that waits for a descriptor of its own makes one of an
    /// [`super::EventFd`]; one that waits in other queues gives theirs.
    fn waker(&self) -> Waker;
}
