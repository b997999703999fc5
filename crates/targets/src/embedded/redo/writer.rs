//! The log writer: one durable write at a time, each for all commits that wait.

use std::sync::Arc;
use std::time::Duration;

use super::log::Batch;
use super::{HEADER_BYTES, MAX_WRITE_BYTES, Redo, WriteHeader};
use crate::embedded::destination::Placed;
use crate::error::TargetError;
use crate::io::{Arena, Completion, Direction, Durability, IoEngine, Patience, Queue, Request, StorageFile};
use crate::watch;
use measure::{Clock, Counter, SharedRecorder, WaitEvent};

/// The log writer's files. Runs on a thread of its own.
pub(in super::super) struct LogWriter {
    files: Vec<Arc<StorageFile>>,
}

impl LogWriter {
    /// Opens the log files for durable writes.
    ///
    /// # Errors
    /// When one is missing, too short, or cannot be opened.
    pub(in super::super) fn open(files: &[Placed]) -> Result<Self, TargetError> {
        let open = |file: &Placed| file.open(Durability::EachWrite).map(Arc::new);
        Ok(Self { files: files.iter().map(open).collect::<Result<_, _>>()? })
    }

    /// The open files, for health checks.
    pub(in super::super) fn files(&self) -> &[Arc<StorageFile>] {
        &self.files
    }

    /// Writes what sessions append until the log closes. `durable_moved` is called after each write.
    ///
    /// # Errors
    /// When a write fails. Then nothing more becomes durable, and [`Redo::make_durable`] says so.
    pub(in super::super) fn run(
        self,
        redo: &Redo,
        engine: IoEngine,
        clock: Clock,
        recorder: &SharedRecorder,
        durable_moved: impl Fn(),
    ) -> Result<(), TargetError> {
        let result = self.write_all(redo, engine, clock, recorder, durable_moved);
        if result.is_err() {
            redo.fail();
        }
        result
    }

    fn write_all(
        self,
        redo: &Redo,
        engine: IoEngine,
        clock: Clock,
        recorder: &SharedRecorder,
        durable_moved: impl Fn(),
    ) -> Result<(), TargetError> {
        let kernel = |action| move |source| TargetError::Kernel { action, source };
        let arena = Arc::new(Arena::new(MAX_WRITE_BYTES).map_err(kernel("map memory for redo writes"))?);
        let queue = Queue::new(engine, &self.files, Arc::clone(&arena), 1)
            .map_err(kernel("set up the log writer's requests"))?;
        let mut flusher =
            Flusher { files: &self.files, redo, queue, arena, done: Vec::with_capacity(1), clock, recorder };
        let mut spare = Vec::with_capacity(redo.buffer_bytes());
        while let Some(Batch { start, bytes }) = redo.next_batch(spare) {
            let mut position = start;
            for payload in bytes.chunks(MAX_WRITE_BYTES - HEADER_BYTES) {
                flusher.write(position, payload)?;
                position += payload.len() as u64;
                redo.advance_durable(position);
                durable_moved();
            }
            spare = bytes;
        }
        Ok(())
    }
}

/// What the log writer needs for one write, kept from one to the next.
struct Flusher<'a> {
    files: &'a [Arc<StorageFile>],
    redo: &'a Redo,
    queue: Queue,
    arena: Arc<Arena>,
    done: Vec<Completion>,
    clock: Clock,
    recorder: &'a SharedRecorder,
}

impl Flusher<'_> {
    /// Makes `payload`, whose first byte has redo position `position`, durable.
    fn write(&mut self, position: u64, payload: &[u8]) -> Result<(), TargetError> {
        let shape = self.redo.shape();
        let mut header =
            WriteHeader { database: shape.database, payload_bytes: payload.len() as u32, log_number: 0, position };
        let bytes = header.write_bytes(shape.sector_bytes);
        let slot = self.redo.place(bytes, position).expect("records are refused before the log files are full");
        header.log_number = slot.number;
        {
            // SAFETY: the arena is this thread's own, and no request is in flight.
            let write = unsafe { self.arena.bytes_mut(0, bytes as usize) };
            write[HEADER_BYTES..HEADER_BYTES + payload.len()].copy_from_slice(payload);
            write[HEADER_BYTES + payload.len()..].fill(0);
            header.seal(write);
        }
        let request = Request {
            direction: Direction::Write,
            file: shape.file_of(slot.number),
            file_offset: slot.offset,
            arena_offset: 0,
            bytes: bytes as u32,
            token: 0,
        };
        let begin = self.clock.now_ns();
        let written = self.run(request).map_err(|source| {
            let file = &self.files[request.file as usize];
            let (path, offset, bytes) = (file.path().to_owned(), slot.offset, bytes as u32);
            // Why storage is of no use says more than which request met that.
            let known = watch::known(file).err();
            known.unwrap_or(TargetError::Request { action: "write", path, offset, bytes, source })
        })?;
        debug_assert_eq!(u64::from(written), bytes);
        let took = self.clock.now_ns() - begin;
        self.recorder.with(|recorded| {
            recorded.wait(WaitEvent::LogFileParallelWrite, took);
            recorded.count(Counter::RedoBytes, payload.len() as u64);
            recorded.count(Counter::RedoWrites, 1);
            recorded.count(Counter::RedoWriteBytes, bytes);
            recorded.count(Counter::LogSwitches, u64::from(slot.switched));
        });
        Ok(())
    }

    fn run(&mut self, request: Request) -> std::io::Result<u32> {
        self.done.clear();
        self.queue.push(request)?;
        while self.done.is_empty() {
            self.queue.wait(Patience::Until(Duration::from_secs(1)), &mut self.done)?;
        }
        match self.done[0].bytes()? {
            written if written == request.bytes => Ok(written),
            _ => Err(std::io::ErrorKind::WriteZero.into()),
        }
    }
}
