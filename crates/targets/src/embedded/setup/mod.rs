//! Making a data set: decide first, then write.
//!
//! [`plan`] looks and decides without writing anything, so it also serves a dry run. [`run()`] writes; until the last
//! moment a mark in the directory says that the data are unfinished, and whoever is interrupted or fails removes what was
//! made.

mod loader;
mod run;

use std::path::{Path, PathBuf};

use super::block::BlockShape;
use super::changes::{self, ChangeMap};
use super::descriptor::{Descriptor, FORMAT_VERSION, FORMAT_WITH_DESTINATIONS};
use super::destination::{Destinations, Files};
use super::directory::{Directory, DirectoryState};
use super::engine::choose_io;
use super::layout::Layout;
use super::redo;
use crate::block::safety::Permission;
use crate::database::{Replace, SetupRequest, difference};
use crate::error::{FileContext, TargetError};
use crate::io::IoEngine;
use measure::os;
use model::units::Bytes;

pub use run::run;

/// Blocks that one data set can have.
const MAX_BLOCKS: u64 = 1 << 40;
/// Smallest redo log file.
const MIN_REDO_FILE_BYTES: u64 = 8 << 20;
/// Log files are whole multiples of this, so that any usual device can write them.
const REDO_FILE_UNIT_BYTES: u64 = 4096;
/// Fewest log files: one is written while another is still needed by a checkpoint.
const MIN_REDO_FILES: u32 = 3;
/// Room for the control file, the ledger, the descriptor, the lock and the headers of the change maps.
const SMALL_FILES_BYTES: u64 = 1 << 20;
/// File systems need some room for themselves: one part in this many.
const SLACK_PART: u64 = 50;

/// What data are wanted of the engine.
#[derive(Debug, Clone)]
pub struct EngineRequest {
    /// The data. Blocks have a power of two from 2 to 32 KiB.
    pub data: SetupRequest,
    /// Size of each redo log file: at least 8 MiB and a multiple of 4 KiB.
    pub redo_file_bytes: u64,
    /// Number of redo log files, at least 3.
    pub redo_files: u32,
    /// Where its files lie, if not in its directory.
    pub destinations: Destinations,
    /// What may be overwritten where they lie on a disk group that is to be made.
    pub permission: Permission,
    /// How to write; none for the best that this machine has.
    pub io_engine: Option<IoEngine>,
}

/// What is in the directory already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// No data.
    Nothing,
    /// The data asked for.
    SameData,
    /// A set-up that never came to its end, or the rest of data that were being removed.
    Unfinished,
    /// Other data.
    OtherData,
}

/// What [`run()`] will do.
#[derive(Debug, Clone)]
pub struct EnginePlan {
    /// Where.
    pub directory: PathBuf,
    /// Names and sizes of the large files.
    pub files: Vec<(String, u64)>,
    /// Size of the data files.
    pub data_bytes: u64,
    /// Size of everything.
    pub total_bytes: u64,
    /// What is there already.
    pub existing: Existing,
    /// How data will be written.
    pub io_engine: IoEngine,
    /// What the user should know, such as fallbacks.
    pub notes: Vec<String>,
    pub(super) request: EngineRequest,
}

impl EnginePlan {
    /// Whether anything is to be written: not when the same data are there and were not to be replaced.
    pub fn has_work(&self) -> bool {
        makes_data(self.existing, self.request.data.replace)
    }
}

/// What [`run()`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Bytes of blocks and of redo log files written.
    pub bytes_written: u64,
    /// How long it took, until everything was durable.
    pub elapsed_ns: u64,
    /// Whether data were made: not when the same data were there already.
    pub created: bool,
    /// What the user should know, such as fallbacks.
    pub notes: Vec<String>,
}

/// Decides everything, and writes nothing.
///
/// # Errors
/// [`TargetError::Shape`] when the request makes no sense, [`TargetError::NotOurs`], [`TargetError::DifferentData`],
/// [`TargetError::Locked`], [`TargetError::NoSpace`], what is wrong with data that are there, or the system's error.
pub fn plan(path: &Path, request: &EngineRequest) -> Result<EnginePlan, TargetError> {
    request.check()?;
    let layout = request.layout(0);
    let mut files: Vec<(String, u64)> =
        (0..layout.files()).map(|file| (Layout::file_name(file), layout.file_bytes(file))).collect();
    let data_bytes = files.iter().map(|(_, bytes)| bytes).sum();
    let data_files = files.len();
    for index in 0..request.redo_files {
        files.push((redo::file_name(index), request.redo_file_bytes));
    }
    let of =
        |own: bool, files: &[(String, u64)]| if own { 0 } else { files.iter().map(|(_, bytes)| bytes).sum::<u64>() };
    let elsewhere_bytes = of(request.destinations.data.is_none(), &files[..data_files])
        + of(request.destinations.redo.is_none(), &files[data_files..]);
    for name in changes::FILE_NAMES {
        files.push((name.to_owned(), ChangeMap::bytes(layout.row_blocks())));
    }
    let total_bytes = files.iter().map(|(_, bytes)| bytes).sum::<u64>() + SMALL_FILES_BYTES;

    let existing = find_existing(path, request)?;
    if makes_data(existing, request.data.replace) {
        let own_bytes = total_bytes - elsewhere_bytes;
        check_ground(path, own_bytes + own_bytes / SLACK_PART)?;
        if !request.destinations.are_own() {
            let redo = (request.redo_files, request.redo_file_bytes);
            Files::of(path, &request.destinations, 0, &layout, redo, &request.permission)?.check_room()?;
        }
    }
    let (io_engine, mut notes) = choose_io(request.io_engine, &[]);
    notes.extend(note_on_ledger(path, request).filter(|_| makes_data(existing, request.data.replace)));
    let (directory, request) = (path.to_owned(), request.clone());
    Ok(EnginePlan { directory, files, data_bytes, total_bytes, existing, io_engine, notes, request })
}

/// What the ledger can prove where it is kept.
fn note_on_ledger(path: &Path, request: &EngineRequest) -> Option<String> {
    let Some(ledger) = &request.destinations.ledger else {
        return Some(
            "the ledger of acknowledged commits is on the disk of the data. `--ledger DIR` keeps it on another disk or machine, so \
             that `slob verify` proves commits after a power loss"
                .to_owned(),
        );
    };
    let device = |path: &Path| {
        let there = path.ancestors().find_map(|path| std::fs::metadata(path).ok())?;
        Some(std::os::unix::fs::MetadataExt::dev(&there))
    };
    let is_same = device(path).is_some_and(|found| Some(found) == device(Path::new(ledger)));
    is_same.then(|| {
        format!("`{ledger}` is on the file system of the data, so the ledger is lost with it: name a directory on another disk")
    })
}

fn makes_data(existing: Existing, replace: Replace) -> bool {
    existing != Existing::SameData || replace == Replace::Replace
}

impl EngineRequest {
    /// Refuses what cannot be a data set.
    fn check(&self) -> Result<(), TargetError> {
        let refuse = |why: String| Err(TargetError::Shape(why));
        self.data.check()?;
        let SetupRequest { schemas, scale_blocks, scan_blocks, block_bytes, .. } = self.data;
        if BlockShape::new(block_bytes as usize).is_none() {
            return refuse(format!("a block has 2 KiB, 4 KiB, 8 KiB, 16 KiB or 32 KiB, not {block_bytes} bytes"));
        }
        let blocks = scale_blocks.checked_add(scan_blocks);
        if blocks.and_then(|blocks| blocks.checked_mul(u64::from(schemas))).is_none_or(|all| all >= MAX_BLOCKS) {
            return refuse(format!("a data set has less than {MAX_BLOCKS} blocks; lower the scale or the schemas"));
        }
        if self.redo_file_bytes < MIN_REDO_FILE_BYTES || !self.redo_file_bytes.is_multiple_of(REDO_FILE_UNIT_BYTES) {
            return refuse(format!(
                "a redo log file has at least {} and whole pages of {}, not {} bytes",
                Bytes(MIN_REDO_FILE_BYTES),
                Bytes(REDO_FILE_UNIT_BYTES),
                self.redo_file_bytes
            ));
        }
        if self.redo_files < MIN_REDO_FILES {
            return refuse(format!("at least {MIN_REDO_FILES} redo log files are needed, not {}", self.redo_files));
        }
        let redo_bytes = self.redo_file_bytes.checked_mul(u64::from(self.redo_files));
        if redo_bytes.is_none_or(|bytes| bytes >= MAX_BLOCKS << 12) {
            return refuse(format!(
                "{} redo log files of {} are too many",
                self.redo_files,
                Bytes(self.redo_file_bytes)
            ));
        }
        Ok(())
    }

    /// Where blocks lie. The request was checked.
    fn layout(&self, database: u32) -> Layout {
        let shape = BlockShape::new(self.data.block_bytes as usize).expect("the request was checked");
        let SetupRequest { seed, schemas, scale_blocks, scan_blocks, .. } = self.data;
        Layout::new(shape, database, seed, schemas, scale_blocks, scan_blocks)
    }

    fn descriptor(&self, database: u32, created_at: String, redo_sector_bytes: u32) -> Descriptor {
        Descriptor {
            made_by: Descriptor::made_by(),
            format_version: if self.destinations.are_own() { FORMAT_VERSION } else { FORMAT_WITH_DESTINATIONS },
            database,
            created_at,
            seed: self.data.seed,
            block_bytes: self.data.block_bytes,
            schemas: self.data.schemas,
            scale_blocks: self.data.scale_blocks,
            scan_blocks: self.data.scan_blocks,
            filling: self.data.filling,
            redo_files: self.redo_files,
            redo_file_bytes: self.redo_file_bytes,
            redo_sector_bytes,
            destinations: self.destinations.clone(),
        }
    }

    /// What is there and differs from what is asked for, in words; none if nothing does.
    fn difference(&self, there: &Descriptor) -> Option<String> {
        let asked = &self.data;
        let figures = [
            ("the number of schemas", there.schemas.into(), asked.schemas.into()),
            ("the number of blocks of a schema", there.scale_blocks, asked.scale_blocks),
            ("the number of blocks of a scan table", there.scan_blocks, asked.scan_blocks),
            ("the block size in bytes", there.block_bytes.into(), asked.block_bytes.into()),
            ("the seed", there.seed, asked.seed),
            ("the number of redo log files", there.redo_files.into(), self.redo_files.into()),
            ("the size of a redo log file in bytes", there.redo_file_bytes, self.redo_file_bytes),
        ];
        let (here, there_lie) = (&self.destinations, &there.destinations);
        // Data that are there keep their ledger where it is, unless another place is named.
        let ledger = if here.ledger.is_some() { &here.ledger } else { &there_lie.ledger };
        let places = [
            ("data files", &there_lie.data, &here.data),
            ("redo log files", &there_lie.redo, &here.redo),
            ("acknowledged commits", &there_lie.ledger, ledger),
        ];
        let shown = |place: &Option<String>| place.clone().unwrap_or_else(|| "the directory".to_owned());
        let differ = places.into_iter().filter(|(_, there, here)| there != here);
        let differ = differ
            .map(|(what, there, here)| format!("the {what} lie in {} there and in {} here", shown(there), shown(here)));
        let all: Vec<String> = difference(&figures, (there.filling, asked.filling)).into_iter().chain(differ).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// Finds out what is in the directory, and refuses what the request may not touch.
fn find_existing(path: &Path, request: &EngineRequest) -> Result<Existing, TargetError> {
    if Directory::look(path)? == DirectoryState::Free {
        return Ok(Existing::Nothing);
    }
    if Directory::is_half_set_up_at(path) {
        return Ok(Existing::Unfinished);
    }
    let there = match (Descriptor::load(path), request.data.replace) {
        (Ok(there), _) => there,
        (Err(TargetError::NotSetUp { .. }), _) => {
            // The lock file alone is no data.
            let files = Directory::files_at(path)?.len();
            return Ok(if files > 1 { Existing::Unfinished } else { Existing::Nothing });
        }
        (Err(_), Replace::Replace) => return Ok(Existing::OtherData),
        (Err(error), Replace::Refuse) => return Err(error),
    };
    match (request.difference(&there), request.data.replace) {
        (Some(difference), Replace::Refuse) => Err(TargetError::DifferentData { path: path.to_owned(), difference }),
        (Some(_), Replace::Replace) => Ok(Existing::OtherData),
        (None, Replace::Refuse) => check_lengths(path, &there).map(|()| Existing::SameData),
        (None, Replace::Replace) => Ok(Existing::SameData),
    }
}

/// Data of which a file is missing or cut are not there already.
fn check_lengths(path: &Path, there: &Descriptor) -> Result<(), TargetError> {
    let layout = there.layout(path)?;
    for file in there.files(path, &layout)?.all() {
        let (path, expected) = (file.path(), file.bytes);
        let missing = || std::io::Error::from(std::io::ErrorKind::NotFound);
        let length = file.store.length(&file.name)?.ok_or_else(missing).of_file("find", &path)?;
        if length < expected {
            return Err(TargetError::Truncated { path, length, expected });
        }
    }
    Ok(())
}

/// Refuses a directory that somebody works on, or whose file system has less room than `needed` bytes.
fn check_ground(path: &Path, needed: u64) -> Result<(), TargetError> {
    let mut freed = 0;
    if Directory::look(path)? == DirectoryState::Ours {
        if let Some(holder) = Directory::holder(path)? {
            return Err(TargetError::Locked { path: path.to_owned(), holder: format!(" ({holder})") });
        }
        freed = Directory::files_at(path)?.iter().map(|(_, metadata)| super::info::allocated_bytes(metadata)).sum();
    }
    let there = path.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(Path::new("."));
    // A file system that does not report is believed to have room; writing would fail and be undone.
    let Some(space) = os::space(there) else { return Ok(()) };
    let available = space.available_bytes + freed;
    if available < needed {
        let (needed, available) = (Bytes(needed), Bytes(available));
        return Err(TargetError::NoSpace { path: path.to_owned(), needed, available });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
