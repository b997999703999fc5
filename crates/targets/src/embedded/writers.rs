//! Database writers: when to write which dirty buffers, and checkpoints.
//!
//! Each writer has a part of the frames to itself. It writes for two reasons. *Demand*: sessions must find clean buffers,
//! so when many are dirty, or a session found none, it writes those that the clock hand will reach next. *Checkpoint*:
//! redo must not pile up, so it sweeps all its frames and writes what was dirty when the sweep began. When all writers
//! have swept, everything before the redo position of the sweep's start is in the data files, and that position becomes
//! the new start of recovery (a fuzzy checkpoint: sessions go on all the while).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::control::{Checkpoint, Control};
use super::shared::Shared;
use super::wakers::LOG;
use crate::error::{FileContext, TargetError};
use measure::Counter;

/// A checkpoint begins when this share of the log files is in use.
const CHECKPOINT_AT_LOG_SHARE: f64 = 0.5;
/// Writers begin to clean buffers for sessions when this share of them is dirty, and stop at [`DIRTY_ENOUGH`].
const DIRTY_TOO_MANY: f64 = 0.25;
const DIRTY_ENOUGH: f64 = 0.20;
/// How often an idle writer looks around unasked.
const LOOK_AROUND: Duration = Duration::from_millis(20);

/// What a writer should do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    /// Clean one batch of buffers ahead of the clock hand.
    Clean,
    /// Go on with the checkpoint's sweep: write what was first changed before this redo position.
    Sweep {
        /// Which sweep.
        number: u64,
        /// Redo position of its start.
        start: u64,
    },
    /// End.
    Stop,
}

/// What the writers know together.
pub(super) struct Writers {
    count: u32,
    state: Mutex<State>,
    /// Apart from the state: sessions that ask for clean buffers must not wait until it is written.
    control: Mutex<Control>,
    /// Writers wait here.
    work: Condvar,
    /// Who asked for a checkpoint waits here.
    checkpointed: Condvar,
    batches_cleaned: AtomicU64,
}

struct State {
    /// Sessions found no clean buffer.
    demand: bool,
    cleaning: bool,
    stopping: bool,
    /// Somebody wants a checkpoint even though the log has room.
    checkpoint_asked: bool,
    sweep: Option<Sweep>,
    sweeps_begun: u64,
    sweeps_done: u64,
    newest: Checkpoint,
}

#[derive(Debug, Clone, Copy)]
struct Sweep {
    number: u64,
    start: u64,
    writers_left: u32,
}

impl Writers {
    /// `count` writers that go on from checkpoint `newest`.
    pub(super) fn new(count: u32, control: Control, newest: Checkpoint) -> Self {
        let state = State {
            demand: false,
            cleaning: false,
            stopping: false,
            checkpoint_asked: false,
            sweep: None,
            sweeps_begun: 0,
            sweeps_done: 0,
            newest,
        };
        Self {
            count,
            state: Mutex::new(state),
            control: Mutex::new(control),
            work: Condvar::new(),
            checkpointed: Condvar::new(),
            batches_cleaned: AtomicU64::new(0),
        }
    }

    /// How many writers there are.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn save(&self, checkpoint: &Checkpoint) -> Result<(), TargetError> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner).save(checkpoint)
    }

    /// Batches of buffers that were made clean since the engine was opened.
    pub(super) fn batches_cleaned(&self) -> u64 {
        self.batches_cleaned.load(Ordering::SeqCst)
    }

    /// A batch of buffers is clean now.
    pub(super) fn count_batch(&self) {
        self.batches_cleaned.fetch_add(1, Ordering::SeqCst);
    }

    /// A session found no clean buffer.
    pub(super) fn demand_clean_buffers(&self) {
        self.lock().demand = true;
        self.work.notify_all();
    }

    /// What a writer should do next; waits until there is something. `swept` is the number of the last sweep that this
    /// writer has finished.
    pub(super) fn next_task(&self, shared: &Shared, swept: u64) -> Task {
        let mut state = self.lock();
        loop {
            let dirty = shared.cache.dirty() as f64 / shared.cache.len() as f64;
            state.cleaning = dirty > DIRTY_TOO_MANY || (state.cleaning && dirty > DIRTY_ENOUGH);
            if shared.has_failed() {
                return Task::Stop;
            }
            if (state.demand || state.cleaning) && dirty > 0.0 {
                state.demand = false;
                return Task::Clean;
            }
            if let Some(task) = self.sweep_task(&mut state, shared, swept) {
                return task;
            }
            if state.stopping {
                return Task::Stop;
            }
            state = self.work.wait_timeout(state, LOOK_AROUND).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The sweep that this writer has to go on with, if any; begins one when it is time.
    pub(super) fn sweep_in_progress(&self, shared: &Shared, swept: u64) -> Option<Task> {
        self.sweep_task(&mut self.lock(), shared, swept)
    }

    fn sweep_task(&self, state: &mut State, shared: &Shared, swept: u64) -> Option<Task> {
        let due = state.checkpoint_asked || shared.redo.used_share() > CHECKPOINT_AT_LOG_SHARE;
        if state.sweep.is_none() && due {
            state.checkpoint_asked = false;
            state.sweeps_begun += 1;
            let (number, start) = (state.sweeps_begun, shared.redo.position());
            state.sweep = Some(Sweep { number, start, writers_left: self.count });
            self.work.notify_all();
        }
        let sweep = state.sweep.filter(|sweep| sweep.number > swept)?;
        Some(Task::Sweep { number: sweep.number, start: sweep.start })
    }

    /// A writer has finished its part of the sweep; the last one completes the checkpoint.
    ///
    /// # Errors
    /// When the data files, the change map or the control file cannot be made durable.
    pub(super) fn finish_sweep(&self, shared: &Shared, directory: &std::path::Path) -> Result<(), TargetError> {
        let mut state = self.lock();
        let sweep = state.sweep.as_mut().expect("a sweep is in progress until its last writer is here");
        sweep.writers_left -= 1;
        if sweep.writers_left > 0 {
            return Ok(());
        }
        let start = sweep.start;
        let change_map = 1 - state.newest.change_map;
        drop(state);

        // The order is what makes it right: blocks, then the map of their change numbers, then the redo of every change
        // that map or commit counts may already know of, and only then the control file that makes them count.
        for file in &shared.data_files {
            file.sync().of_file("sync", file.path())?;
        }
        shared.changes.save(directory, change_map)?;
        let commits = shared.commits.iter().map(|made| made.load(Ordering::SeqCst)).collect();
        if !shared.redo.make_durable(shared.redo.position()) {
            return Ok(());
        }
        let log_number = shared.redo.log_number_of(start);
        let checkpoint = Checkpoint {
            database: shared.layout.identity(0).database,
            redo_position: start,
            log_number,
            change_map,
            clean: false,
            commits,
        };
        self.save(&checkpoint)?;
        let mut state = self.lock();
        state.newest = checkpoint;
        state.sweeps_done = state.sweeps_begun;
        state.sweep = None;
        drop(state);
        shared.background.with(|recorded| recorded.count(Counter::Checkpoints, 1));
        if shared.redo.release_before(log_number) {
            shared.wakers.ring(LOG);
        }
        self.checkpointed.notify_all();
        Ok(())
    }

    /// Writes everything that is dirty now and completes a checkpoint. Returns false when the engine failed meanwhile.
    pub(super) fn checkpoint(&self, shared: &Shared) -> bool {
        let mut state = self.lock();
        // A sweep under way began too early: wait for the one after it.
        let wanted = state.sweeps_begun + 1;
        while state.sweeps_done < wanted && !shared.has_failed() {
            state.checkpoint_asked = state.sweeps_begun < wanted;
            self.work.notify_all();
            let waited = self.checkpointed.wait_timeout(state, Duration::from_millis(100));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.sweeps_done >= wanted
    }

    /// Marks the data set as closed: nothing to recover. Only after a checkpoint with no session at work.
    ///
    /// # Errors
    /// When the control file cannot be written.
    pub(super) fn mark_clean(&self) -> Result<(), TargetError> {
        let clean = Checkpoint { clean: true, ..self.lock().newest.clone() };
        self.save(&clean)
    }

    /// Lets the writers end.
    pub(super) fn stop(&self) {
        self.lock().stopping = true;
        self.work.notify_all();
    }
}
