//! Data that SLOB's method can be run on, whoever keeps them: the embedded engine, a simulation, a database server.
//!
//! A [`Database`] is an address that was understood, and nothing is done before it is asked for something. Every command finds
//! one in `databases` of the program. What a database says about itself is a
//! [`Sheet`]: rows for a reader and one document for a program, so that whoever prints it needs to know no database.

mod setup;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use serde::Serialize;
use serde_json::Value;

use super::{TargetError, TargetFor};
use crate::OwnReportKind;
use crate::block::safety::Permission;
use crate::embedded::FlashOptions;
use crate::io::IoEngine;
use measure::Clock;
use measure::doctor::{Check, Status};
use model::units::Bytes;
use model::workload::SlobOperation;

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

    /// The least memory in which a private server here carries so many sessions; `None` where no server is ours.
    fn least_memory(&self, sessions: u32) -> Option<Bytes> {
        let _ = sessions;
        None
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

    /// Has commits of sessions that begin from now on wait for the log, or not: on a private server, to prove that this wait is what
    /// stops a load. Names the setting that has them not wait; `None` where it is not ours to change, or unknown.
    ///
    /// # Errors
    /// When the server refuses.
    fn have_commits_wait(&self, _wait: bool) -> Result<Option<&'static str>, TargetError> {
        Ok(None)
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
    /// Whether all that could be looked at is as it must be.
    pub is_sound: bool,
    /// Whether that was all that is promised: where what was acknowledged is not known, nothing is proven.
    pub is_proven: bool,
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

/// How operations reach a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sending {
    /// One prepared statement for each, timed by the client.
    Statement,
    /// In batches that a procedure on the server executes and times, so that the client costs next to nothing.
    Batch,
}

/// Whose tables are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// Those of `plimsoll slob setup`, with keys from 0 on.
    #[default]
    Plimsoll,
    /// Those of SLOB's own `setup.sh` on Oracle: `cf1` of `user1`, `user2`, …, with keys from 1 on.
    Slob,
}

/// How updates in batches are committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Commits {
    /// Each waits until its redo is on storage.
    #[default]
    Wait,
    /// As SLOB's on Oracle, by a plain `COMMIT`: within PL/SQL the server goes on at once, and waits when the batch ends.
    Slob,
}

/// How a range of keys is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reads {
    /// By one statement on the range, as SLOB does. The server may read several blocks ahead at once.
    #[default]
    Range,
    /// By a statement for each key, in a loop on the server: no statement has more than one block to ask for.
    KeyByKey,
}

/// How load is put on Oracle, where there is a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Method {
    /// Whose tables are used.
    pub layout: Layout,
    /// How updates are committed.
    pub commits: Commits,
    /// How ranges are read.
    pub reads: Reads,
}

/// What the user said about a database. Whoever reads the command line has refused what means nothing to the kind of database
/// that was named, so each takes what it knows.
#[derive(Debug, Clone)]
pub struct DatabaseOptions {
    /// How requests reach the kernel, of the embedded engine.
    pub io_engine: Option<IoEngine>,
    /// Buffer cache of the embedded engine.
    pub cache: Bytes,
    /// Second level of that cache, on flash.
    pub flash: Option<FlashOptions>,
    /// Size of each redo log file of the embedded engine.
    pub redo_file: Bytes,
    /// Number of its redo log files.
    pub redo_files: u32,
    /// Where its data files lie, if not in its directory: an absolute path, or what `targets::places` knows.
    pub data_dest: Option<String>,
    /// Where its redo log files lie.
    pub redo_dest: Option<String>,
    /// Where its ledger of acknowledged commits lies: an absolute path.
    pub ledger: Option<String>,
    /// What may be overwritten where they lie on a disk group that is to be made.
    pub permission: Permission,
    /// Whether verifying also compares all copies of its files that a disk group keeps.
    pub scrub: bool,
    /// Schema of a server's database that holds the data.
    pub schema: String,
    /// Buffers of a private server.
    pub db_cache: Bytes,
    /// Most memory of a private server, page cache included.
    pub host_memory: Option<Bytes>,
    /// Whether a private server keeps its pages whole over a power cut, by full-page writes or the doublewrite buffer.
    pub page_protection: bool,
    /// Whether a private server outlives the command.
    pub keep_running: bool,
    /// Where the programs of a private server are; the newest that are installed where `None`.
    pub programs: Option<PathBuf>,
    /// How operations are sent; batches in a closed loop and statements in an open one where `None`.
    pub sending: Option<Sending>,
    /// How load is put on Oracle; the others have no choice.
    pub method: Method,
    /// Whether operations fall due at a rate.
    pub is_open_loop: bool,
    /// Whether the hosts of an address are servers of their own, over which sessions are spread.
    pub per_node: bool,
    /// Whether a server's reads and writes are traced in the kernel where that is allowed.
    pub trace: bool,
    /// Which reports a server is asked to make of itself on the measured windows, if any.
    pub own_report: Option<OwnReportKind>,
    /// Whether only what would be done is asked for: no private server is made for it.
    pub dry_run: bool,
    /// Hears what takes long.
    pub say: fn(&str),
}

impl DatabaseOptions {
    /// How operations are sent to a server: as asked, else in batches, and as statements where they fall due at a rate.
    ///
    /// # Errors
    /// [`TargetError::SendingAtRate`] when batches were asked for at a rate.
    pub fn sending(&self) -> Result<Sending, TargetError> {
        match (self.sending, self.is_open_loop) {
            (Some(Sending::Batch), true) => Err(TargetError::SendingAtRate),
            (Some(sending), _) => Ok(sending),
            (None, true) => Ok(Sending::Statement),
            (None, false) => Ok(Sending::Batch),
        }
    }
}

/// What matters about a database, as far as it could be seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Examination {
    /// Its address.
    pub target: String,
    /// What was looked at, in an order that does not depend on how it came out.
    pub checks: Vec<Check>,
    /// What the checks come from, as the database says it.
    pub facts: BTreeMap<String, String>,
}

impl Examination {
    /// Whether something stands against measuring there.
    pub fn has_problem(&self) -> bool {
        self.checks.iter().any(|check| check.status == Status::Problem)
    }

    /// The same with `host-1`, `host-2`, … in the place of the names and addresses of these machines, wherever they stand. A
    /// machine is also known by the first part of its name.
    #[must_use]
    pub fn masked(self, hosts: &[String]) -> Self {
        let masks = masks(hosts);
        let mask = |text: &str| masked(text, &masks);
        let checks = self.checks.into_iter().map(|check| Check {
            finding: mask(&check.finding),
            advice: check.advice.as_deref().map(mask),
            ..check
        });
        Self {
            target: mask(&self.target),
            checks: checks.collect(),
            facts: self.facts.into_iter().map(|(name, value)| (name, mask(&value))).collect(),
        }
    }
}

/// Each name of a machine in small letters, and what stands in its place; longer names before what they begin with.
fn masks(hosts: &[String]) -> Vec<(String, String)> {
    let mut masks: Vec<(String, String)> = Vec::new();
    let mut count = 0;
    for host in hosts.iter().map(|host| host.trim().to_ascii_lowercase()).filter(|host| !host.is_empty()) {
        let is_address = host.contains(':') || host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let short = host.split('.').next().filter(|_| !is_address).unwrap_or(&host).to_owned();
        let known = masks.iter().find(|(name, _)| *name == host || *name == short).map(|(_, mask)| mask.clone());
        let mask = known.unwrap_or_else(|| {
            count += 1;
            format!("host-{count}")
        });
        for name in [host, short] {
            if !masks.iter().any(|(known, _)| *known == name) {
                masks.push((name, mask.clone()));
            }
        }
    }
    masks.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    masks
}

fn masked(text: &str, masks: &[(String, String)]) -> String {
    let lower = text.to_ascii_lowercase();
    let is_of_name = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(byte));
    let (mut shown, mut at) = (String::with_capacity(text.len()), 0);
    while at < text.len() {
        let begins = at == 0 || !is_of_name(lower.as_bytes().get(at - 1));
        let found = masks.iter().find(|(name, _)| {
            begins && lower[at..].starts_with(name.as_str()) && !is_of_name(lower.as_bytes().get(at + name.len()))
        });
        let step = match found {
            Some((name, mask)) => {
                shown.push_str(mask);
                name.len()
            }
            None => {
                let next = text[at..].chars().next().map_or(1, char::len_utf8);
                shown.push_str(&text[at..at + next]);
                next
            }
        };
        at += step;
    }
    shown
}

/// What a database is asked that can calibrate its own storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoCalibrationRequest {
    /// Disks behind it, about.
    pub disks: u32,
    /// Longest mean latency of small reads, in milliseconds.
    pub max_latency_ms: u32,
}

/// What a database says that its storage carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct IoCalibration {
    /// Most reads of a block a second.
    pub max_iops: u64,
    /// Most megabytes a second, in reads of 1 MiB.
    pub max_mb_per_s: u64,
    /// Mean latency at the most reads, in whole milliseconds, as the database rounds it: 0 is less than one.
    pub latency_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked_by(hosts: &[&str], text: &str) -> String {
        masked(text, &masks(&hosts.iter().map(|host| (*host).to_owned()).collect::<Vec<_>>()))
    }

    #[test]
    fn machines_are_masked_by_whatever_name_they_are_called() {
        let hosts = ["db1.example.com", "10.0.0.7", "DB1", "scan.example.com", ""];
        let text = "oracle://slob@DB1.example.com:1521/db1x; 10.0.0.7 and db1 (10.0.0.71), scan,db1-vip é db1";
        assert_eq!(
            masked_by(&hosts, text),
            "oracle://slob@host-1:1521/db1x; host-2 and host-1 (10.0.0.71), host-3,db1-vip é host-1"
        );
        assert_eq!(masked_by(&[], "db1"), "db1");
    }

    #[test]
    fn nothing_of_an_examination_is_left_out() {
        let found = Examination {
            target: "oracle://u@h9/s".to_owned(),
            checks: vec![Check::advice("data", "none at h9", "ask h9")],
            facts: BTreeMap::from([("session".to_owned(), "from h9".to_owned())]),
        };
        assert!(!found.has_problem());
        let text = format!("{:?}", found.masked(&["h9".to_owned()]));
        assert!(!text.contains("h9") && text.matches("host-1").count() == 4, "{text}");
    }
}
