//! The log buffer: where sessions put records and the log writer takes them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Change, LogShape, write_change, write_commit};

/// Largest log buffer. Two of them exist: one that sessions fill while the other is written.
const MAX_BUFFER_BYTES: u64 = 4 << 20;

/// Where a record was put, as redo positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Appended {
    /// Its first byte.
    pub(in super::super) start: u64,
    /// The byte after its last.
    pub(in super::super) end: u64,
}

/// Why a record was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Refusal {
    /// The buffer is full until the log writer catches up.
    BufferFull,
    /// The log files are full until a checkpoint frees one.
    CheckpointIncomplete,
}

/// The redo log in memory, shared by sessions and writers.
#[derive(Debug)]
pub(in super::super) struct Redo {
    shape: LogShape,
    buffer_bytes: usize,
    state: Mutex<State>,
    /// The log writer waits here for work.
    work: Condvar,
    /// Database writers wait here for redo to become durable.
    durable_moved: Condvar,
    durable: AtomicU64,
    /// The log files are nearly full: no record is taken.
    full: AtomicBool,
}

#[derive(Debug)]
struct State {
    filling: Vec<u8>,
    /// Redo position of the first byte of `filling`.
    start: u64,
    /// Somebody wants everything before this position durable.
    wanted: u64,
    /// The writer sleeps.
    idle: bool,
    closing: bool,
    failed: bool,
    files: Files,
}

/// Which log files are in use.
#[derive(Debug)]
struct Files {
    /// Number of the log being written.
    number: u64,
    /// Bytes of it that are used.
    used: u64,
    /// For each log still needed, oldest first: its number and the redo position of its first byte.
    needed: Vec<(u64, u64)>,
}

/// Where the log writer may put a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) number: u64,
    pub(super) offset: u64,
    /// Whether a new log was begun for it.
    pub(super) switched: bool,
}

/// What the log writer takes at a time.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) start: u64,
    pub(super) bytes: Vec<u8>,
}

impl Redo {
    /// An empty log that goes on at `position` in a fresh log file `number`.
    pub(in super::super) fn new(shape: LogShape, position: u64, number: u64) -> Self {
        let buffer_bytes = (shape.file_bytes / 8).min(MAX_BUFFER_BYTES) as usize;
        Self {
            shape,
            buffer_bytes,
            state: Mutex::new(State {
                filling: Vec::with_capacity(buffer_bytes),
                start: position,
                wanted: position,
                idle: false,
                closing: false,
                failed: false,
                files: Files { number, used: 0, needed: vec![(number, position)] },
            }),
            work: Condvar::new(),
            durable_moved: Condvar::new(),
            durable: AtomicU64::new(position),
            full: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The log files.
    pub(super) fn shape(&self) -> LogShape {
        self.shape
    }

    /// Size of each of the two buffers.
    pub(super) fn buffer_bytes(&self) -> usize {
        self.buffer_bytes
    }

    /// Appends a change of a block whose latch the caller holds.
    #[inline]
    pub(in super::super) fn append_change(&self, change: &Change<'_>) -> Result<Appended, Refusal> {
        let mut state = self.lock();
        self.admit(&mut state)?;
        let start = state.end();
        write_change(&mut state.filling, change);
        Ok(Appended { start, end: state.end() })
    }

    /// Appends a session's next commit, counts it in `made`, and asks the log writer to make it durable. A commit whose
    /// record lies before [`Redo::position`] is counted: a checkpoint that begins there need not read it.
    pub(in super::super) fn append_commit(&self, session: u32, made: &AtomicU64) -> Result<Appended, Refusal> {
        let mut state = self.lock();
        self.admit(&mut state)?;
        let start = state.end();
        let number = made.load(Ordering::Relaxed) + 1;
        write_commit(&mut state.filling, session, number);
        made.store(number, Ordering::Relaxed);
        let end = state.end();
        self.want(&mut state, end);
        Ok(Appended { start, end })
    }

    /// Whether the next record would be refused, as far as can be seen without the lock's queue.
    pub(in super::super) fn refuses(&self) -> bool {
        self.admit(&mut self.lock()).is_err()
    }

    fn admit(&self, state: &mut State) -> Result<(), Refusal> {
        // The largest record is far smaller than what is kept free here, so a buffer never grows beyond its capacity.
        const LARGEST_RECORD: usize = 4096;
        if self.full.load(Ordering::Relaxed) {
            return Err(Refusal::CheckpointIncomplete);
        }
        if state.filling.len() + LARGEST_RECORD > self.buffer_bytes {
            let end = state.end();
            self.want(state, end);
            return Err(Refusal::BufferFull);
        }
        Ok(())
    }

    fn want(&self, state: &mut State, position: u64) {
        state.wanted = state.wanted.max(position);
        if state.idle {
            self.work.notify_one();
        }
    }

    /// Everything before this position is on stable storage.
    #[inline]
    pub(in super::super) fn durable(&self) -> u64 {
        self.durable.load(Ordering::SeqCst)
    }

    /// The position that the next record will have.
    pub(in super::super) fn position(&self) -> u64 {
        self.lock().end()
    }

    /// Waits until everything before `position` is durable. Returns false when the log has failed.
    pub(in super::super) fn make_durable(&self, position: u64) -> bool {
        let mut state = self.lock();
        self.want(&mut state, position);
        while self.durable() < position && !state.failed {
            state = self.durable_moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.failed
    }

    /// Share of the log files that a recovery would have to read, 0 to 1.
    pub(in super::super) fn used_share(&self) -> f64 {
        let state = self.lock();
        let free = state.files.free_bytes(self.shape) as f64;
        1.0 - free / (self.shape.file_bytes * u64::from(self.shape.files)) as f64
    }

    /// Number of the log file that holds `position`.
    pub(in super::super) fn log_number_of(&self, position: u64) -> u64 {
        let state = self.lock();
        let holder = state.files.needed.iter().rev().find(|(_, first)| *first <= position);
        holder.expect("logs that hold needed positions are kept").0
    }

    /// Tells that recovery would begin with log `number`, so that those before it may be used again. Returns whether
    /// sessions that were refused may try again.
    pub(in super::super) fn release_before(&self, number: u64) -> bool {
        let mut state = self.lock();
        state.files.needed.retain(|(needed, _)| *needed >= number);
        self.update_full(&state)
    }

    /// Returns whether the log was full and is not any more.
    fn update_full(&self, state: &State) -> bool {
        // What is buffered already must find room whatever happens: database writers wait for it, and checkpoints wait
        // for them. Two buffers, and the unused ends of files.
        let reserve = 2 * self.buffer_bytes as u64 + (256 << 10);
        let full = state.files.free_bytes(self.shape) < reserve;
        self.full.swap(full, Ordering::Relaxed) && !full
    }

    /// Takes everything buffered, when somebody wants it durable or much has gathered. None when the log closes.
    pub(super) fn next_batch(&self, mut spare: Vec<u8>) -> Option<Batch> {
        let mut state = self.lock();
        loop {
            let enough = state.filling.len() >= self.buffer_bytes / 3;
            if !state.filling.is_empty() && (state.wanted > state.start || enough || state.closing) {
                let start = state.start;
                state.start = state.end();
                spare.clear();
                return Some(Batch { start, bytes: std::mem::replace(&mut state.filling, spare) });
            }
            if state.closing {
                return None;
            }
            state.idle = true;
            // Records that nobody waits for are written within a second all the same.
            let waited = self.work.wait_timeout(state, Duration::from_secs(1));
            let timeout;
            (state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state.idle = false;
            if timeout.timed_out() {
                state.wanted = state.wanted.max(state.end());
            }
        }
    }

    /// Reserves room for a write of `bytes` bytes whose first record byte is at `position`. None when the log files are
    /// full, which [`Redo::admit`] prevents.
    pub(super) fn place(&self, bytes: u64, position: u64) -> Option<Slot> {
        let mut state = self.lock();
        let files = &mut state.files;
        let mut switched = false;
        if files.used + bytes > self.shape.file_bytes {
            let oldest = files.needed.first().map_or(files.number, |(number, _)| *number);
            if files.number + 1 - oldest >= u64::from(self.shape.files) {
                return None;
            }
            files.number += 1;
            files.used = 0;
            files.needed.push((files.number, position));
            switched = true;
        }
        let slot = Slot { number: files.number, offset: files.used, switched };
        files.used += bytes;
        Some(slot)
    }

    /// Tells that everything before `position` is durable now.
    pub(super) fn advance_durable(&self, position: u64) {
        self.durable.store(position, Ordering::SeqCst);
        let state = self.lock();
        self.update_full(&state);
        self.durable_moved.notify_all();
    }

    /// Tells that the log writer cannot go on.
    pub(in super::super) fn fail(&self) {
        self.lock().failed = true;
        self.durable_moved.notify_all();
    }

    /// Lets the log writer end when it has written everything.
    pub(in super::super) fn close(&self) {
        self.lock().closing = true;
        self.work.notify_all();
    }
}

impl State {
    fn end(&self) -> u64 {
        self.start + self.filling.len() as u64
    }
}

impl Files {
    fn free_bytes(&self, shape: LogShape) -> u64 {
        let oldest = self.needed.first().map_or(self.number, |(number, _)| *number);
        let unused = u64::from(shape.files).saturating_sub(self.number - oldest + 1);
        unused * shape.file_bytes + (shape.file_bytes - self.used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: LogShape = LogShape { files: 3, file_bytes: 8 << 20, sector_bytes: 512, database: 1 };

    fn change(columns: &[u8]) -> Change<'_> {
        Change { session: 1, block: 2, changes: 3, all_columns: false, columns }
    }

    #[test]
    fn positions_follow_each_other() {
        let redo = Redo::new(SHAPE, 1000, 0);
        let first = redo.append_change(&change(&[0; 100])).unwrap();
        let second = redo.append_commit(1, &AtomicU64::new(0)).unwrap();
        assert_eq!(first.start, 1000);
        assert_eq!(second.start, first.end);
        assert_eq!(redo.position(), second.end);
        let batch = redo.next_batch(Vec::new()).unwrap();
        assert_eq!((batch.start, batch.bytes.len() as u64), (1000, second.end - 1000));
    }

    #[test]
    fn a_commit_is_counted_as_soon_as_its_record_has_a_position() {
        let (redo, made) = (Redo::new(SHAPE, 0, 0), AtomicU64::new(0));
        let each = redo.append_commit(1, &AtomicU64::new(0)).unwrap().end;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..20_000 {
                    redo.append_commit(1, &made).unwrap();
                }
            });
            let mut counted = 0;
            while counted < 20_000 {
                let before = redo.position() / each - 1;
                counted = made.load(Ordering::Relaxed);
                assert!(counted >= before, "{before} records and only {counted} commits counted");
            }
        });
    }

    #[test]
    fn a_full_buffer_refuses_until_it_is_taken() {
        let redo = Redo::new(SHAPE, 0, 0);
        let mut taken = 0;
        while redo.append_change(&change(&[0; 1000])).is_ok() {
            taken += 1;
        }
        assert_eq!(redo.append_commit(1, &AtomicU64::new(0)), Err(Refusal::BufferFull));
        assert!(taken > 900, "a buffer of 1 MiB took only {taken} records of 1 KiB");
        let batch = redo.next_batch(Vec::new()).unwrap();
        assert!(batch.bytes.len() <= redo.buffer_bytes());
        redo.append_commit(1, &AtomicU64::new(0)).unwrap();
    }

    #[test]
    fn full_files_refuse_records_before_the_writer_runs_out_of_room() {
        let redo = Redo::new(SHAPE, 0, 7);
        let mut position = 0;
        let refused = loop {
            match redo.append_change(&change(&[0; 1000])) {
                Ok(_) => {}
                Err(Refusal::CheckpointIncomplete) => break true,
                Err(Refusal::BufferFull) => {
                    let batch = redo.next_batch(Vec::new()).unwrap();
                    let Some(slot) = redo.place(batch.bytes.len() as u64, batch.start) else { break false };
                    assert!(slot.offset + batch.bytes.len() as u64 <= SHAPE.file_bytes);
                    position = batch.start + batch.bytes.len() as u64;
                    redo.advance_durable(position);
                }
            }
        };
        assert!(refused, "the writer ran out of room first");
        assert!(redo.used_share() > 0.8);
        assert!(!redo.release_before(redo.log_number_of(100)), "nothing is free before a whole log is unneeded");
        assert!(redo.release_before(redo.log_number_of(position)), "a checkpoint frees the logs");
        redo.append_commit(1, &AtomicU64::new(0)).unwrap();
    }

    #[test]
    fn the_log_of_a_position_is_known_while_it_is_needed() {
        let redo = Redo::new(SHAPE, 0, 5);
        redo.place(8 << 20, 0).unwrap();
        redo.place(100, 3000).unwrap();
        assert_eq!((redo.log_number_of(2999), redo.log_number_of(3000)), (5, 6));
    }

    #[test]
    fn the_log_that_a_checkpoint_names_is_kept_although_the_next_one_begins_at_its_position() {
        let redo = Redo::new(SHAPE, 0, 5);
        redo.place(8 << 20, 0).unwrap();
        let named = redo.log_number_of(3000);
        redo.place(100, 3000).unwrap();
        redo.release_before(named);
        assert_eq!(redo.log_number_of(0), named);
        for _ in 0..2 {
            redo.place(8 << 20, 4000);
        }
        assert_eq!(redo.place(8 << 20, 5000), None, "its file must not be used again");
    }

    #[test]
    fn closing_gives_out_what_is_left_and_then_ends() {
        let redo = Redo::new(SHAPE, 0, 0);
        redo.append_change(&change(&[1])).unwrap();
        redo.close();
        assert!(redo.next_batch(Vec::new()).is_some());
        assert!(redo.next_batch(Vec::new()).is_none());
    }
}
