//! Where load lands.
//!
//! A [`Target`] is opened once for a run. Each thread of the load gets its own [`Lane`], on which it keeps many sessions
//! busy: it starts an operation for a session, polls, and learns which operations have finished and when. Whether a lane
//! overlaps its sessions with io_uring, with threads or with a server's connections is its own affair.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod block;
mod crew;
pub mod database;
pub mod durable;
pub mod embedded;
pub mod ending;
mod error;
pub mod group;
mod group_directory;
pub mod host;
pub mod io;
pub mod network;
pub mod nfs;
pub mod orders;
mod own_report;
pub mod places;
pub mod simulated;
mod watch;

pub use crew::Progress;
pub use error::{DatabaseError, FileContext, MORE_FILES, TargetError, io_hint};
pub use own_report::{OwnReportKind, OwnReporter, OwnReports};

use measure::{Clock, Counter, LaneRecorder, Recorded};
use model::record;

/// The sessions that one lane drives, out of all sessions of a step.
#[derive(Debug, Clone, Copy)]
pub struct SessionRange {
    /// Number of the lane, from 0.
    pub lane: u32,
    /// Number of its first session, from 0.
    pub first_session: u32,
    /// How many sessions it drives.
    pub sessions: u32,
    /// The clock of the run.
    pub clock: Clock,
}

/// An operation that has finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    /// Session, counted from the lane's first.
    pub session: u32,
    /// When, on the run's clock.
    pub at_ns: u64,
    /// How long it paused between its steps, as its user asked for: no part of its time.
    pub paused_ns: u64,
    /// How long it waited for a connection to be sent over: part of its response time, and not of its service time.
    pub connecting_ns: u64,
    /// Blocks that it touched.
    pub block_touches: u64,
    /// How it ended.
    pub result: OperationResult,
}

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OperationResult {
    /// As asked.
    Done,
    /// In an error that leaves the target able to go on. Its duration is no latency: it is counted and not timed.
    Failed,
}

/// What happened in a target besides its lanes, between two calls.
#[derive(Debug, Default)]
pub struct Background {
    /// What the target's own writers recorded.
    pub recorded: Recorded,
    /// Counts that somebody else keeps, such as the server that load lands on, where they could be had.
    pub counters: record::Counters,
    /// What each database server reported on itself.
    pub servers: Vec<record::ServerStats>,
    /// What kernel tracing timed.
    pub traces: Vec<record::TraceStats>,
    /// What the processors did, where the load is on them.
    pub host: Option<record::HostStats>,
    /// What each end of a network test saw of itself.
    pub network: Vec<record::NetworkEnd>,
    /// What each way to storage carried.
    pub channels: Vec<record::ChannelStats>,
    /// Looks at each database server.
    pub looks: Vec<ServerLooks>,
}

/// Looks at one server, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerLooks {
    /// Its name, as in [`record::ServerStats::node`].
    pub node: String,
    /// Each with its instant on the kernel's monotonic clock, in nanoseconds.
    pub looks: Vec<(u64, record::Look)>,
}

impl From<Recorded> for Background {
    fn from(recorded: Recorded) -> Self {
        Self { recorded, ..Self::default() }
    }
}

/// Where load lands: one open database, device or server.
pub trait Target: Sync {
    /// What it is, for the record.
    fn describe(&self) -> record::Target;

    /// What the user should know about how it was opened: fallbacks, repairs.
    fn notes(&self) -> Vec<String>;

    /// The layer at which it times waits: `engine`, `os file`, …
    fn layer(&self) -> &'static str;

    /// The counters that its lanes and its own writers keep; the others are unknown, or in [`Background::counters`].
    fn known_counters(&self) -> &'static [Counter];

    /// What happened besides the lanes since the last call. Called at the edge of every interval, so it must not take long:
    /// what cannot be had soon is unknown.
    fn take_background(&self) -> Background;

    /// What a buffer cache of another size would have answered of the load since the last call. Called when the lanes of a step are
    /// gone; `None` where nobody measures that.
    fn take_cache_curve(&self) -> Option<record::CacheCurve> {
        None
    }

    /// Looks whether what is loaded is still there: called many times a second while load runs.
    ///
    /// # Errors
    /// When files vanished or shrank, or a writer failed.
    fn check_health(&self) -> Result<(), TargetError>;

    /// What ended the target, where that says more than the error of a session that lost it. Called once a load has failed.
    fn why_gone(&self) -> Option<TargetError> {
        None
    }

    /// Whoever has the target report on windows by itself, if anybody does.
    fn own_reporter(&self) -> Option<&dyn OwnReporter> {
        None
    }
}

/// A target that can be asked for operations of one workload.
pub trait TargetFor<O>: Target {
    /// Makes a lane. Called on the thread that will drive it.
    ///
    /// # Errors
    /// When the sessions cannot be connected.
    fn open_lane(&self, range: SessionRange) -> Result<Box<dyn Lane<O> + '_>, TargetError>;

    /// Makes a lane whose sessions take many operations at a time, where the user asked for that; `None` means that
    /// [`open_lane`](Self::open_lane) is to be used. Never asked for where operations fall due at a rate: a batch cannot
    /// wait for its operations.
    ///
    /// # Errors
    /// As [`open_lane`](Self::open_lane).
    fn open_batch_lane(&self, _range: SessionRange) -> Result<Option<Box<dyn BatchLane<O> + '_>>, TargetError> {
        Ok(None)
    }

    /// Makes a lane that does everything but move data, to learn what the load generator itself can do; `None` where that
    /// means nothing.
    ///
    /// # Errors
    /// As [`open_lane`](Self::open_lane).
    fn open_idle_lane(&self, _range: SessionRange) -> Result<Option<Box<dyn Lane<O> + '_>>, TargetError> {
        Ok(None)
    }
}

/// One thread's private line to a target, shared by its sessions.
pub trait Lane<O> {
    /// Begins an operation for an idle session. `sent_ns` is now: what an operation took counts from there. It may finish at
    /// once; that is reported by the next poll.
    ///
    /// # Errors
    /// When the target can no longer work.
    fn start(
        &mut self,
        session: u32,
        operation: &O,
        sent_ns: u64,
        recorder: &mut LaneRecorder,
    ) -> Result<(), TargetError>;

    /// Makes progress and appends finished operations to `finished`. Returns at the latest soon after `until_ns`, and as
    /// soon as anything has finished; `until_ns` in the past means not to sleep.
    ///
    /// # Errors
    /// When the target can no longer work; a bad block is such an error.
    fn poll(
        &mut self,
        until_ns: u64,
        recorder: &mut LaneRecorder,
        finished: &mut Vec<Finished>,
    ) -> Result<(), TargetError>;

    /// Gives up all operations under way. Changes already made stay, unacknowledged.
    ///
    /// # Errors
    /// When requests in flight cannot be awaited. After [`TargetError::StillAtWork`] it may be called again.
    fn abandon(&mut self) -> Result<(), TargetError>;

    /// Makes ready for what is to come, so that the first operation of a kind costs no more than the next one. Called once,
    /// before load starts. `upcoming` reports the first operations of a session, which is counted from the lane's first.
    ///
    /// # Errors
    /// When the target cannot do such operations.
    fn prepare(&mut self, _upcoming: &mut dyn FnMut(u32) -> Vec<O>) -> Result<(), TargetError> {
        Ok(())
    }
}

/// One of the operations of a batch, as the target itself timed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchedOperation {
    /// When it ended, on the run's clock as nearly as the target's clock can be laid over it.
    pub ended_ns: u64,
    /// How long it took, its commit included.
    pub service_ns: u64,
    /// How long its commit took, where it had one that was timed.
    pub commit_ns: Option<u64>,
    /// Blocks that it touched.
    pub block_touches: u64,
    /// Of these, how many it changed.
    pub block_changes: u64,
}

/// A batch that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedBatch {
    /// Session, counted from the lane's first.
    pub session: u32,
    /// Its operations in their order, as many as were sent. A batch that failed has none: what it did before is not known.
    pub operations: Vec<BatchedOperation>,
    /// How it ended.
    pub result: OperationResult,
}

/// One thread's private line to a target that does many operations of a session at a time and times each itself.
pub trait BatchLane<O> {
    /// How long a batch should take: long enough that sending it costs nothing beside it, short enough that a second is
    /// known soon after it has passed.
    fn batch_ns(&self) -> u64;

    /// Most operations of a batch, however short they are.
    fn max_operations(&self) -> usize;

    /// Sends operations, one after the other, for an idle session. `sent_ns` is now.
    ///
    /// # Errors
    /// When the target can no longer work.
    fn send(&mut self, session: u32, operations: &[O], sent_ns: u64) -> Result<(), TargetError>;

    /// Appends batches that have ended to `finished`. Returns at the latest soon after `until_ns`, and as soon as one has
    /// ended.
    ///
    /// # Errors
    /// When the target can no longer work.
    fn poll(&mut self, until_ns: u64, finished: &mut Vec<FinishedBatch>) -> Result<(), TargetError>;

    /// Asks the target to break off what is under way; it still ends through [`poll`](Self::poll), as failed.
    fn break_off(&mut self);

    /// Gives up all batches under way.
    ///
    /// # Errors
    /// When they cannot be given up. After [`TargetError::StillAtWork`] it may be called again.
    fn abandon(&mut self) -> Result<(), TargetError>;

    /// Makes ready for what is to come, as [`Lane::prepare`] does.
    ///
    /// # Errors
    /// When the target cannot do such operations.
    fn prepare(&mut self, _upcoming: &mut dyn FnMut(u32) -> Vec<O>) -> Result<(), TargetError> {
        Ok(())
    }
}
