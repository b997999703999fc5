//! The log writer: one durable write at a time, each for all commits that wait.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::log::Batch;
use super::{HEADER_BYTES, LogShape, MAX_WRITE_BYTES, Redo, WriteHeader};
use crate::measure::{Clock, Counter, SharedRecorder, WaitEvent};
use crate::target::error::{FileContext, TargetError};
use crate::target::io::{Arena, Direction, Durability, IoEngine, Patience, Queue, Request, StorageFile};

/// The log writer's files. Runs on a thread of its own.
pub(in super::super) struct LogWriter {
    files: Vec<Arc<StorageFile>>,
}

impl LogWriter {
    /// Opens the log files for durable writes.
    ///
    /// # Errors
    /// When one is missing, too short, or cannot be opened.
    pub(in super::super) fn open(directory: &Path, shape: LogShape) -> Result<Self, TargetError> {
        let open = |index| {
            let path = LogShape::path(directory, index);
            let file = StorageFile::open(&path, Durability::EachWrite).of_file("open", &path)?;
            let length = file.length().of_file("inspect", &path)?;
            if length < shape.file_bytes {
                return Err(TargetError::Truncated { path, length, expected: shape.file_bytes });
            }
            Ok(Arc::new(file))
        };
        Ok(Self { files: (0..shape.files).map(open).collect::<Result<_, _>>()? })
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
        let mut queue = Queue::new(engine, &self.files, Arc::clone(&arena), 1)
            .map_err(kernel("set up the log writer's requests"))?;
        let mut spare = Vec::with_capacity(redo.buffer_bytes());
        while let Some(Batch { start, bytes }) = redo.next_batch(spare) {
            let mut position = start;
            for payload in bytes.chunks(MAX_WRITE_BYTES - HEADER_BYTES) {
                self.write(redo, &mut queue, &arena, clock, recorder, position, payload)?;
                position += payload.len() as u64;
                redo.advance_durable(position);
                durable_moved();
            }
            spare = bytes;
        }
        Ok(())
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "all of it is the state of one loop, kept out of a struct on purpose"
    )]
    fn write(
        &self,
        redo: &Redo,
        queue: &mut Queue,
        arena: &Arena,
        clock: Clock,
        recorder: &SharedRecorder,
        position: u64,
        payload: &[u8],
    ) -> Result<(), TargetError> {
        let shape = redo.shape();
        let mut header =
            WriteHeader { database: shape.database, payload_bytes: payload.len() as u32, log_number: 0, position };
        let bytes = header.write_bytes(shape.sector_bytes);
        let slot = redo.place(bytes, position).expect("records are refused before the log files are full");
        header.log_number = slot.number;
        {
            // SAFETY: the arena is this thread's own, and no request is in flight.
            let write = unsafe { arena.bytes_mut(0, bytes as usize) };
            write[HEADER_BYTES..HEADER_BYTES + payload.len()].copy_from_slice(payload);
            write[HEADER_BYTES + payload.len()..].fill(0);
            header.seal(write);
        }
        let file = shape.file_of(slot.number);
        let failed = |source| TargetError::Request {
            action: "write",
            path: self.files[file as usize].path().to_owned(),
            offset: slot.offset,
            bytes: bytes as u32,
            source,
        };
        let begin = clock.now_ns();
        queue
            .push(Request {
                direction: Direction::Write,
                file,
                file_offset: slot.offset,
                arena_offset: 0,
                bytes: bytes as u32,
                token: 0,
            })
            .map_err(failed)?;
        let mut done = Vec::with_capacity(1);
        while done.is_empty() {
            queue.wait(Patience::Until(Duration::from_secs(1)), &mut done).map_err(failed)?;
        }
        let written = done[0].bytes().map_err(failed)?;
        if u64::from(written) != bytes {
            return Err(failed(std::io::ErrorKind::WriteZero.into()));
        }
        let took = clock.now_ns() - begin;
        recorder.with(|recorded| {
            recorded.wait(WaitEvent::LogFileParallelWrite, took);
            recorded.count(Counter::RedoBytes, payload.len() as u64);
            recorded.count(Counter::RedoWrites, 1);
            recorded.count(Counter::RedoWriteBytes, bytes);
            recorded.count(Counter::LogSwitches, u64::from(slot.switched));
        });
        Ok(())
    }
}
