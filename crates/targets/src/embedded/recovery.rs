//! Bringing data files up to date after a process was killed.
//!
//! Redo is read from the last checkpoint on. Every change in it is held against its block: a block that lacks the change
//! gets it; a block that has it is left alone; a block that lacks even the change before it has lost a write, which is an
//! error. So recovery can itself be killed and begun again.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};

use super::block::{self, BlockFault, COLUMNS};
use super::changes::ChangeMap;
use super::control::{Checkpoint, Control};
use super::descriptor::Descriptor;
use super::directory::Directory;
use super::layout::Layout;
use super::ledger::Ledger;
use super::redo::{Change, NotARecord, Record, RecordReader, RedoReader};
use super::shared::open_data_files;
use crate::error::{FileContext, TargetError};
use crate::io::{Arena, StorageFile};

/// Redo that is gathered before it is applied.
const GATHERED_BYTES: usize = 32 << 20;
/// Threads that read, change and write blocks: so many requests are in flight.
const APPLIERS: usize = 16;

/// What a recovery did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    /// Redo read after the last checkpoint.
    pub redo_bytes: u64,
    /// Changes in it.
    pub changes: u64,
    /// Commits in it.
    pub commits: u64,
    /// Changes that were missing in their blocks and were made again.
    pub changes_made_again: u64,
    /// Where the last write before the crash had not become whole, if it had not: log file and offset. It was acknowledged
    /// to nobody.
    pub torn_tail: Option<(PathBuf, u64)>,
    /// Sessions that miss commits of which they were reported. Empty, or the storage or this program is broken.
    pub lost: Vec<LostCommits>,
}

/// A session that misses commits of which it was reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostCommits {
    /// Session, from 1.
    pub session: u32,
    /// Commits of which it was reported.
    pub acknowledged: u64,
    /// Commits that are there.
    pub found: u64,
}

/// Brings the data of `directory` up to date if its last user was killed. `progress` is called with the redo bytes read so far.
///
/// # Errors
/// When files are missing or damaged, or blocks have lost writes.
pub fn recover(
    directory: &Directory,
    descriptor: &Descriptor,
    progress: &dyn Fn(u64),
) -> Result<Option<Recovery>, TargetError> {
    let path = directory.path();
    let layout = descriptor.layout(path)?;
    let (mut control, checkpoint) = Control::open(path, descriptor.database)?;
    if checkpoint.clean {
        return Ok(None);
    }
    let map = ChangeMap::load(path, checkpoint.change_map, layout.row_blocks())?;
    let all = descriptor.files(path, &layout)?;
    let files = open_data_files(&all)?;
    let reader = RedoReader::open(&all.redo, descriptor.log_shape())?;

    let mut recovery = Recovery::default();
    let mut commits = checkpoint.commits.clone();
    let mut gathered = Gathered::default();
    let mut records = RecordReader::default();
    let mut position = checkpoint.redo_position;
    let tail = reader.read(checkpoint.log_number, checkpoint.redo_position, |start, payload| {
        // The log file may begin before the checkpoint, in the middle of a record. The checkpoint is between records.
        let skip = checkpoint.redo_position.saturating_sub(start).min(payload.len() as u64);
        recovery.redo_bytes += payload.len() as u64 - skip;
        let pushed: Result<(), StreamError> = records.push(&payload[skip as usize..], |record| {
            position += record.bytes();
            match record {
                Record::Change(change) => {
                    if change.block >= layout.row_blocks() || change.changes == 0 {
                        return Err(StreamError);
                    }
                    recovery.changes += 1;
                    gathered.add(&change, position);
                }
                Record::Commit { session, number } => {
                    recovery.commits += 1;
                    let made = commits.get_mut(session as usize).ok_or(StreamError)?;
                    *made = number.max(*made);
                }
            }
            Ok(())
        });
        if pushed.is_err() {
            let path = all.redo[0].path();
            let what = format!("redo position {position} holds no record of this data set");
            return Err(TargetError::Damaged { path, what });
        }
        if gathered.bytes() > GATHERED_BYTES {
            recovery.changes_made_again += gathered.apply(&layout, &files, &map)?;
        }
        progress(recovery.redo_bytes);
        Ok(())
    })?;
    recovery.changes_made_again += gathered.apply(&layout, &files, &map)?;
    recovery.torn_tail = tail.torn.then_some((tail.path, tail.offset));

    for file in &files {
        file.sync().of_file("sync", file.path())?;
    }
    let change_map = 1 - checkpoint.change_map;
    map.save(path, change_map)?;
    recovery.lost = lost_commits(&Ledger::open(&descriptor.ledger(path))?.read()?.commits, &commits);
    control.save(&Checkpoint {
        database: descriptor.database,
        redo_position: tail.position,
        log_number: tail.log_number + 1,
        change_map,
        clean: true,
        commits,
    })?;
    Ok(Some(recovery))
}

/// Holds what sessions were reported against what is there.
pub fn lost_commits(acknowledged: &[u64], found: &[u64]) -> Vec<LostCommits> {
    let both = acknowledged.iter().zip(found).enumerate();
    both.filter(|(_, (acknowledged, found))| acknowledged > found)
        .map(|(index, (acknowledged, found))| LostCommits {
            session: index as u32 + 1,
            acknowledged: *acknowledged,
            found: *found,
        })
        .collect()
}

/// The redo stream is not what it must be.
struct StreamError;

impl From<NotARecord> for StreamError {
    fn from(_: NotARecord) -> Self {
        Self
    }
}

/// Changes read and not yet applied.
#[derive(Default)]
struct Gathered {
    entries: Vec<Entry>,
    columns: Vec<u8>,
}

/// One change, its columns kept elsewhere.
#[derive(Debug, Clone, Copy)]
struct Entry {
    block: u64,
    changes: u64,
    /// Redo position after the change.
    position: u64,
    session: u32,
    all_columns: bool,
    from: usize,
    to: usize,
}

impl Gathered {
    fn add(&mut self, change: &Change<'_>, position: u64) {
        let Change { session, block, changes, all_columns, columns } = *change;
        let from = self.columns.len();
        self.columns.extend_from_slice(columns);
        self.entries.push(Entry { block, changes, position, session, all_columns, from, to: self.columns.len() });
    }

    fn bytes(&self) -> usize {
        self.columns.len() + self.entries.len() * size_of::<Entry>()
    }

    /// Makes the gathered changes in their blocks where they are missing, and forgets them. Returns how many were missing.
    fn apply(
        &mut self,
        layout: &Layout,
        files: &[std::sync::Arc<StorageFile>],
        map: &ChangeMap,
    ) -> Result<u64, TargetError> {
        self.entries.sort_unstable_by_key(|entry| (entry.block, entry.changes));
        let groups: Vec<&[Entry]> = self.entries.chunk_by(|left, right| left.block == right.block).collect();
        let (next, made) = (AtomicUsize::new(0), AtomicU64::new(0));
        let failure = Mutex::new(None);
        std::thread::scope(|scope| {
            for _ in 0..APPLIERS.min(groups.len()) {
                let fail = |error| {
                    // The others find nothing more to do.
                    next.store(usize::MAX / 2, Ordering::Relaxed);
                    failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(error);
                };
                let columns = &self.columns;
                let (next, made, groups) = (&next, &made, &groups);
                let spawned = std::thread::Builder::new().spawn_scoped(scope, move || {
                    let result = Applier::new(layout, files, columns).and_then(|mut applier| {
                        while let Some(group) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
                            made.fetch_add(applier.apply(group, map)?, Ordering::Relaxed);
                        }
                        Ok(())
                    });
                    if let Err(error) = result {
                        fail(error);
                    }
                });
                if let Err(source) = spawned {
                    fail(TargetError::Kernel { action: "start a thread", source });
                    break;
                }
            }
        });
        match failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
            Some(error) => Err(error),
            None => {
                self.entries.clear();
                self.columns.clear();
                Ok(made.into_inner())
            }
        }
    }
}

/// One thread's buffer for a block.
struct Applier<'a> {
    layout: &'a Layout,
    files: &'a [std::sync::Arc<StorageFile>],
    columns: &'a [u8],
    buffer: Arena,
}

impl<'a> Applier<'a> {
    fn new(
        layout: &'a Layout,
        files: &'a [std::sync::Arc<StorageFile>],
        columns: &'a [u8],
    ) -> Result<Self, TargetError> {
        let buffer = Arena::new(layout.shape().bytes())
            .map_err(|source| TargetError::Kernel { action: "map memory for recovery", source })?;
        Ok(Self { layout, files, columns, buffer })
    }

    /// Makes the missing ones of a block's changes.
    fn apply(&mut self, group: &[Entry], map: &ChangeMap) -> Result<u64, TargetError> {
        let shape = self.layout.shape();
        let first = group[0];
        let place = self.layout.place(first.block);
        let file = &self.files[place.file as usize];
        let bad = |fault| TargetError::BadBlock {
            path: file.path().to_owned(),
            block: first.block,
            offset: place.offset,
            fault,
        };
        let request = |action| {
            let (path, bytes) = (file.path().to_owned(), shape.bytes() as u32);
            move |source| TargetError::Request { action, path, offset: place.offset, bytes, source }
        };
        // SAFETY: the buffer is this thread's own, and the blocking calls below leave nothing in flight.
        let block = unsafe { self.buffer.bytes_mut(0, shape.bytes()) };
        file.read_exact_at(block, place.offset).map_err(request("read"))?;
        let is_sound = |copy: &[u8]| block::check(copy, self.layout.identity(first.block), None);
        if let Err(fault) = is_sound(block)
            && !file.read_sound(block, place.offset, &|copy| is_sound(copy).is_ok()).map_err(request("read"))?
        {
            return Err(bad(fault));
        }

        let mut made = 0;
        for entry in group {
            let present = block::changes(block);
            if entry.changes <= present {
                continue;
            }
            if entry.changes > present + 1 {
                return Err(bad(BlockFault::Stale { changes: present, expected_low: (entry.changes - 1) as u8 }));
            }
            let columns = &self.columns[entry.from..entry.to];
            let width = shape.column_bytes();
            let expected = width * if entry.all_columns { COLUMNS } else { 2 };
            if columns.len() != expected {
                return Err(bad(BlockFault::NotABlock));
            }
            let start = shape.column_offset(0);
            if entry.all_columns {
                block[start..start + expected].copy_from_slice(columns);
            } else {
                let last = shape.column_offset(COLUMNS - 1);
                block[start..start + width].copy_from_slice(&columns[..width]);
                block[last..last + width].copy_from_slice(&columns[width..]);
            }
            block::note_change_in(block, entry.changes, entry.position, entry.session);
            made += 1;
        }
        map.set(first.block, block::changes(block));
        if made > 0 {
            block::seal(block);
            file.write_all_at(block, place.offset).map_err(request("write"))?;
        }
        Ok(made)
    }
}
