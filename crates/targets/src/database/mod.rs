//! Data that SLOB's method can be run on, whoever keeps them: the embedded engine, a simulation, a database server.
//!
//! A [`Database`] is an address that was understood, and nothing is done before it is asked for something. Every command finds
//! one in `databases` of the program. What a database says about itself is a
//! [`Sheet`]: rows for a reader and one document for a program, so that whoever prints it needs to know no database.

mod examination;
mod options;
mod setup;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use serde_json::Value;

use super::{TargetError, TargetFor};
use measure::Clock;
use model::units::Bytes;
use model::workload::SlobOperation;

pub use examination::{Examination, IoCalibration, IoCalibrationRequest};
pub use options::{Commits, DatabaseOptions, Layout, Method, Reads, Sending};
pub use setup::{
    Filling, MAX_SESSIONS, Phase, Progress, Replace, SetupPlan, SetupReport, SetupRequest, data_words, difference,
};

/// Data for the SLOB method that may be there or not.
///
/// Methods that take `stop` end soon with [`TargetError::Interrupted`] once it is set.
pub trait Database {
    /// What there is now. A private server is not started for it where its directory says enough.
    ///
    /// # Errors
    /// When that cannot be found out, or belongs to somebody else.
    fn there(&mut self, stop: &AtomicBool) -> Result<There, TargetError>;

    /// What a plan needs to know about the data; `None` where there are none to know, and all is as large as it is asked to be.
    ///
    /// # Errors
    /// When there are no data, or they are not whole.
    fn facts(&mut self, stop: &AtomicBool) -> Result<Option<DataFacts>, TargetError>;

    /// Who times operations.
    ///
    /// # Errors
    /// When operations cannot be sent in the way that was asked for.
    fn timing(&self) -> Result<Timing, TargetError>;

    /// Refuses load that there is no room for, and says what of it there may be too little for.
    ///
    /// # Errors
    /// When the load cannot be carried by what was configured.
    fn check_load(&mut self, load: &PlannedLoad, stop: &AtomicBool) -> Result<Vec<String>, TargetError> {
        let _ = (load, stop);
        Ok(Vec::new())
    }

    /// Size of the blocks, in bytes, of data that are made here by `streams` at a time, where `asked` is what the user wants.
    ///
    /// # Errors
    /// When the server cannot be asked for its own.
    fn block_bytes(&mut self, asked: Option<Bytes>, streams: u32, stop: &AtomicBool) -> Result<u64, TargetError>;

    /// Decides everything about a set-up, and writes nothing.
    ///
    /// # Errors
    /// When the request makes no sense, or something there stands against it.
    fn plan_setup(&mut self, request: &SetupRequest, stop: &AtomicBool)
    -> Result<Box<dyn SetupPlan + '_>, TargetError>;

    /// Reads all data and says whether they are what was written.
    ///
    /// # Errors
    /// When that cannot be found out.
    fn verify(&mut self, progress: &(dyn Fn(Progress) + Sync), stop: &AtomicBool) -> Result<Verified, TargetError>;

    /// What is known of the data without reading them; changes nothing, and works while load runs.
    ///
    /// # Errors
    /// When there are none, or they cannot be looked at.
    fn info(&mut self, stop: &AtomicBool) -> Result<Sheet, TargetError>;

    /// Lists what would be removed, and removes nothing.
    ///
    /// # Errors
    /// When there is nothing to remove, or it is not ours.
    fn plan_drop(&mut self, scope: DropScope, stop: &AtomicBool) -> Result<Box<dyn DropPlan + '_>, TargetError>;

    /// Opens the data for load.
    ///
    /// # Errors
    /// When they cannot be opened, or lie otherwise than a measurement needs; then everything is left as it was found.
    fn open(self: Box<Self>, request: &OpenRequest<'_>) -> Result<Box<dyn OpenDatabase>, TargetError>;

    /// What the user should know about how it was reached.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Leaves it as it was found: ends a private server, unless it is to go on.
    ///
    /// # Errors
    /// When that cannot be done.
    fn close(self: Box<Self>) -> Result<(), TargetError> {
        Ok(())
    }
}

/// Data that are open for load of one workload.
pub trait OpenDatabase<O = SlobOperation> {
    /// What load is put on.
    fn target(&self) -> &dyn TargetFor<O>;

    /// The clock on which load runs.
    fn clock(&self) -> Clock;

    /// Files and directories whose devices are watched.
    fn paths(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// What the user should know now that the load has ended.
    fn notes_of_the_load(&self) -> Vec<String> {
        Vec::new()
    }

    /// Closes the data so that nothing has to be recovered, and leaves everything as it was found.
    ///
    /// # Errors
    /// When that cannot be done.
    fn close(self: Box<Self>) -> Result<(), TargetError>;
}

/// What there is at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum There {
    /// Nothing: what is made there is wholly ours.
    Nothing,
    /// A place without data for the SLOB method.
    NoData,
    /// Data, whole or not.
    Data,
}

/// What is known about the data that operations choose from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataFacts {
    /// Schemas that are there.
    pub schemas: u32,
    /// Blocks of each.
    pub scale_blocks: u64,
    /// Blocks of each schema's scan table.
    pub scan_blocks: u64,
    /// Size of a block, in bytes.
    pub block_bytes: u32,
    /// How rows were filled.
    pub filling: Filling,
    /// Memory that a buffer cache can take; `None` if it is not known, or if the database has a cache of its own.
    pub available_memory: Option<Bytes>,
    /// What lies between the load and storage.
    pub caching: Caching,
    /// Redo that updates make, where that is known beforehand.
    pub redo: Option<RedoSizes>,
}

/// Bytes of redo, without padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedoSizes {
    /// Of a change of two columns of a block.
    pub lite_bytes: u64,
    /// Of a change of all of them.
    pub heavy_bytes: u64,
    /// Of a commit.
    pub commit_bytes: u64,
}

/// What lies between the load and storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caching {
    /// The buffer cache that is asked for.
    Asked,
    /// A cache that is there.
    There(Cache),
    /// Nothing, or nothing that is known.
    Unknown,
}

/// A cache between the load and storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    /// Its size.
    pub bytes: Bytes,
    /// What it is, to be read after "less than four times".
    pub what: String,
    /// What makes it smaller, if anything does: to be read after "or".
    pub cure: Option<&'static str>,
}

/// Who times the operations of the SLOB method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timing {
    /// The embedded engine.
    Engine,
    /// A simulation.
    Simulated,
    /// A server that times operations one by one in lists of them.
    ServerInBatches,
    /// Our own end of a connection.
    Client,
}

/// What load will be put on, as far as it matters for room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedLoad {
    /// Sessions of the largest step.
    pub sessions: u32,
    /// Schemas of the largest step; all that are there where `None`.
    pub schemas: Option<u32>,
    /// Whether anything is changed.
    pub has_updates: bool,
}

/// What data are opened for.
pub struct OpenRequest<'a> {
    /// The load that comes.
    pub load: PlannedLoad,
    /// Is called with the bytes of redo that are read again, where the last user was killed.
    pub recovering: &'a dyn Fn(u64),
    /// Ends opening.
    pub stop: &'a AtomicBool,
}

/// Facts in rows of a label and a text, and the same as one document.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sheet {
    /// For a reader. A row without a label goes on with the one above it.
    pub rows: Vec<(&'static str, String)>,
    /// For a program.
    pub document: Value,
}

impl Sheet {
    /// Without a row yet.
    pub fn of(document: Value) -> Self {
        Self { rows: Vec::new(), document }
    }

    /// Adds a row.
    pub fn add(&mut self, label: &'static str, text: impl Into<String>) {
        self.rows.push((label, text.into()));
    }
}

/// What a verification found.
#[derive(Debug, Clone, PartialEq)]
pub struct Verified {
    /// What was read, and what is wrong.
    pub sheet: Sheet,
    /// What the user should know about how it was done.
    pub notes: Vec<String>,
    /// Whether all is as it must be.
    pub is_sound: bool,
}

/// How much is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropScope {
    /// The data, and a private server with them.
    Everything,
    /// The data alone.
    Data,
}

/// A removal that was decided on.
pub trait DropPlan {
    /// All of it in words, to be read after "remove".
    fn what(&self) -> String;

    /// Each thing that goes, and its bytes.
    fn items(&self) -> Vec<(u64, String)>;

    /// Removes it, and says in words what else went with it.
    ///
    /// # Errors
    /// When some of it cannot be removed; the rest can be removed later.
    fn run(self: Box<Self>, stop: &AtomicBool) -> Result<Option<String>, TargetError>;
}
