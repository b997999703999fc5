//! Threads that carry a long row of large pieces to or from files, in order and with several requests in flight each.
//!
//! Data sets and files are laid out with it, and `verify` reads with it. Pieces are handed out by one counter, so the files are walked from
//! their beginning to their end however many threads there are.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use crate::error::TargetError;
use crate::io::{Arena, Completion, Direction, IoEngine, Patience, Queue, Request, StorageFile};
use measure::os::start_thread;

/// Requests in flight of one thread.
const BUFFERS: usize = 4;
/// How often progress is reported, and how soon a thread that waits for storage notices that it should end.
const LOOK_AROUND: Duration = Duration::from_millis(100);

/// How far long work has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes done.
    pub done_bytes: u64,
    /// Bytes to be done.
    pub total_bytes: u64,
}

/// One request's worth of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    /// Index into the crew's files.
    pub(super) file: u32,
    /// Offset in the file.
    pub(super) offset: u64,
    /// Length, at most [`Job::BUFFER_BYTES`].
    pub(super) bytes: u32,
}

/// What a crew does with each piece.
pub(super) trait Job: Sync {
    /// To storage or from it.
    const DIRECTION: Direction;
    /// Longest piece.
    const BUFFER_BYTES: usize;

    /// Piece `number`, from 0; none behind the last.
    fn piece(&self, number: u64) -> Option<Piece>;

    /// Fills the buffer before its request is sent.
    fn prepare(&self, number: u64, buffer: &mut [u8]);

    /// Looks at the buffer of a finished request. `moved` is how many bytes were moved.
    ///
    /// # Errors
    /// What ends the whole job.
    fn finish(&self, piece: &Piece, number: u64, buffer: &mut [u8], moved: io::Result<u32>) -> Result<(), TargetError>;
}

/// Who does it.
pub(super) struct Crew<'a> {
    /// Files that pieces name.
    pub(super) files: &'a [Arc<StorageFile>],
    /// How requests reach the kernel.
    pub(super) io_engine: IoEngine,
    /// How many threads.
    pub(super) threads: u32,
    /// Ends the job early.
    pub(super) stop: &'a AtomicBool,
    /// Reported of progress at most ten times a second, on the calling thread.
    pub(super) progress: &'a dyn Fn(Progress),
    /// What the job comes to, for progress.
    pub(super) total_bytes: u64,
}

struct Shared {
    next: AtomicU64,
    done_bytes: AtomicU64,
    failed: AtomicBool,
    failure: Mutex<Option<TargetError>>,
}

impl Crew<'_> {
    /// Runs a job to its end. Requests in flight have finished when this returns.
    ///
    /// # Errors
    /// The first failure of any thread; [`TargetError::Interrupted`] when it was stopped before its end.
    pub(super) fn run<E: Job>(&self, job: &E) -> Result<(), TargetError> {
        let shared = Shared {
            next: AtomicU64::new(0),
            done_bytes: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            failure: Mutex::new(None),
        };
        let report_progress = || {
            let done_bytes = shared.done_bytes.load(Ordering::Relaxed);
            (self.progress)(Progress { done_bytes, total_bytes: self.total_bytes });
        };
        // Nothing is ever sent: the channel ends when the last thread drops its sender.
        let (sender, ended) = mpsc::channel::<()>();
        let (files, io_engine, stop) = (self.files, self.io_engine, self.stop);
        std::thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                let (shared, sender) = (&shared, sender.clone());
                let fail = |error| {
                    shared.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                    shared.failed.store(true, Ordering::Relaxed);
                };
                let spawned = start_thread(|begun| {
                    std::thread::Builder::new().spawn_scoped(scope, move || {
                        begun.say();
                        if let Err(error) = serve(job, files, io_engine, shared, stop) {
                            fail(error);
                        }
                        drop(sender);
                    })
                });
                if let Err(source) = spawned {
                    fail(TargetError::Kernel { action: "start a thread", source });
                    break;
                }
            }
            drop(sender);
            while ended.recv_timeout(LOOK_AROUND) == Err(mpsc::RecvTimeoutError::Timeout) {
                report_progress();
            }
        });
        report_progress();
        match shared.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None if stop.load(Ordering::Relaxed) => Err(TargetError::Interrupted),
            None => Ok(()),
        }
    }
}

/// One thread's part of a job.
fn serve<E: Job>(
    job: &E,
    files: &[Arc<StorageFile>],
    io_engine: IoEngine,
    shared: &Shared,
    stop: &AtomicBool,
) -> Result<(), TargetError> {
    let kernel = |action| move |source| TargetError::Kernel { action, source };
    let arena = Arena::new(BUFFERS * E::BUFFER_BYTES).map_err(kernel("map memory for large requests"))?;
    let arena = Arc::new(arena);
    let mut queue =
        Queue::new(io_engine, files, Arc::clone(&arena), BUFFERS as u32).map_err(kernel("make a request queue"))?;
    let borrow = |buffer: usize, bytes: u32| {
        // SAFETY: a buffer is borrowed only by this thread and only while no request names it: before its request is
        // queued, or after that request has finished.
        unsafe { arena.bytes_mut((buffer * E::BUFFER_BYTES) as u64, bytes as usize) }
    };
    let mut idle: Vec<usize> = (0..BUFFERS).collect();
    let mut sent: [Option<(u64, Piece)>; BUFFERS] = [None; BUFFERS];
    let mut done: Vec<Completion> = Vec::new();
    let mut more = true;
    // Whoever leaves early drops the queue, which waits for what is in flight.
    while !shared.failed.load(Ordering::Relaxed) && !stop.load(Ordering::Relaxed) {
        if more && let Some(buffer) = idle.pop() {
            let number = shared.next.fetch_add(1, Ordering::Relaxed);
            if let Some(piece) = job.piece(number) {
                job.prepare(number, borrow(buffer, piece.bytes));
                sent[buffer] = Some((number, piece));
                let request = Request {
                    direction: E::DIRECTION,
                    file: piece.file,
                    file_offset: piece.offset,
                    arena_offset: (buffer * E::BUFFER_BYTES) as u64,
                    bytes: piece.bytes,
                    token: buffer as u64,
                };
                queue.push(request).map_err(kernel("send requests"))?;
            } else {
                more = false;
                idle.push(buffer);
            }
        }
        if !more && queue.in_flight() == 0 {
            return Ok(());
        }
        let patience = if more && !idle.is_empty() { Patience::Now } else { Patience::Until(LOOK_AROUND) };
        queue.wait(patience, &mut done).map_err(kernel("wait for requests"))?;
        for completion in done.drain(..) {
            let buffer = completion.token as usize;
            let (number, piece) = sent[buffer].take().expect("each completion is that of a request sent");
            job.finish(&piece, number, borrow(buffer, piece.bytes), completion.bytes())?;
            shared.done_bytes.fetch_add(u64::from(piece.bytes), Ordering::Relaxed);
            idle.push(buffer);
        }
    }
    Ok(())
}
