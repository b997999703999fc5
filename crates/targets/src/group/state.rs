//! A group that is open: which members are current, what was changed, and who may change it now.
//!
//! Two things are durable before load may rely on them. Before a part of a file is written for the first time, the map of
//! changes says so on all current members: after a crash the copies of those parts, and of no others, may differ. Before a
//! write that failed on a member is acknowledged, the others remember that the member is dropped: it is not read again before
//! it has got everything that the map says was changed.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::document::{Document, PARTS_OF_FILE, Shape};
use super::{GroupError, member};
use crate::io::{IoEngine, StorageFile};
use crate::watch::is_another_file;
use measure::{ChannelCounter, ChannelName, ChannelWriter, Channels};
use model::record::ChannelKind;

/// Words of the map of changes for one file.
const WORDS_OF_FILE: usize = PARTS_OF_FILE as usize / 64;

/// A member of an open group.
#[derive(Debug)]
pub struct Member {
    /// As the user named it.
    pub name: String,
    /// Open; none where it is absent.
    pub file: Option<Arc<StorageFile>>,
    /// Smallest length that it must have, in bytes.
    pub needed_bytes: u64,
}

/// What stands on the members.
#[derive(Debug)]
pub struct Durable {
    /// What the group remembers.
    pub document: Document,
    /// Its number: grows with each writing.
    pub generation: u64,
    /// Number of the map of changes: grows with each writing.
    pub changes: u64,
    /// What happened, for the user.
    pub notes: Vec<String>,
}

/// An open group.
#[derive(Debug)]
pub struct State {
    /// How it was made.
    pub shape: Shape,
    /// Its number, drawn when it was made.
    pub id: u64,
    /// The members.
    pub members: Vec<Member>,
    /// Failure group that is read; primaries are where there is none.
    pub preferred: Option<u16>,
    /// How requests to local members reach the kernel.
    pub io_engine: IoEngine,
    /// Whether it may be changed.
    pub writable: bool,
    /// What each member was asked for.
    pub channels: Channels,
    /// What is counted of members beside the queues; none before the first.
    beside: Mutex<Vec<ChannelWriter>>,
    /// Who may change an extent.
    pub gates: Gates,
    /// Pieces that were written again because a copy could not be read or was wrong, by member.
    repairs: Box<[AtomicU64]>,
    /// Pieces that should have been and were not, because load wrote there all the time.
    pub unrepaired: AtomicU64,
    /// How often the map of changes was written.
    pub map_writes: AtomicU64,
    /// Whether copies were made alike after it was opened: only then it can be closed cleanly.
    pub settled: AtomicBool,
    /// Members that are there and current, as bits.
    online: AtomicU64,
    failed: AtomicBool,
    /// What is marked in the durable map.
    changed: Box<[AtomicU64]>,
    durable: Mutex<Durable>,
}

impl State {
    /// An open group. `changed` is what the map on the members says.
    #[expect(
        clippy::too_many_arguments,
        reason = "called where a group is opened; a builder would only repeat the fields"
    )]
    pub fn new(
        id: u64,
        members: Vec<Member>,
        preferred: Option<u16>,
        io_engine: IoEngine,
        writable: bool,
        document: Document,
        generation: u64,
        changes: (u64, Vec<u64>),
    ) -> Self {
        let present = |(member, at): (usize, &Member)| if at.file.is_some() { 1 << member } else { 0 };
        let present: u64 = members.iter().enumerate().map(present).sum();
        Self {
            shape: document.shape.clone(),
            id,
            preferred,
            io_engine,
            writable,
            channels: Channels::default(),
            beside: Mutex::default(),
            gates: Gates::default(),
            repairs: members.iter().map(|_| AtomicU64::new(0)).collect(),
            unrepaired: AtomicU64::new(0),
            map_writes: AtomicU64::new(0),
            settled: AtomicBool::new(false),
            online: AtomicU64::new(document.online() & present),
            failed: AtomicBool::new(false),
            changed: changes.1.into_iter().map(AtomicU64::new).collect(),
            durable: Mutex::new(Durable { document, generation, changes: changes.0, notes: Vec::new() }),
            members,
        }
    }

    /// Writers for a queue, one for each member.
    pub fn channel_writers(&self) -> Vec<ChannelWriter> {
        let keeps = &[ChannelCounter::Repairs, ChannelCounter::Drops, ChannelCounter::ResyncedBytes];
        let named = |(number, member): (usize, &Member)| ChannelName {
            kind: ChannelKind::Member,
            of: self.shape.name.clone(),
            within: (self.shape.copies > 1).then(|| format!("failure group {}", self.shape.groups[number] + 1)),
            name: member.name.clone(),
            keeps,
        };
        self.members.iter().enumerate().map(|member| self.channels.open(named(member))).collect()
    }

    /// Counts what happens to a member beside the queues.
    pub fn count(&self, member: usize, counter: ChannelCounter, by: u64) {
        if counter == ChannelCounter::Repairs {
            self.repairs[member].fetch_add(by, Ordering::Relaxed);
        }
        let mut writers = self.beside.lock().unwrap_or_else(PoisonError::into_inner);
        if writers.is_empty() {
            *writers = self.channel_writers();
        }
        writers[member].count(counter, by);
    }

    /// Copies of a member that were written again.
    pub fn repairs(&self, member: usize) -> u64 {
        self.repairs[member].load(Ordering::Relaxed)
    }

    /// Members that may be read, as bits.
    #[inline]
    pub fn online(&self) -> u64 {
        self.online.load(Ordering::Acquire)
    }

    /// Whether a member may be read.
    #[inline]
    pub fn is_online(&self, member: u16) -> bool {
        self.online() & 1 << member != 0
    }

    /// Whether more members were lost than the redundancy bears.
    #[inline]
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// The error of a group that has failed.
    pub fn failure(&self) -> GroupError {
        GroupError::Lost { group: self.shape.name.clone(), what: self.lock().notes.join("; ") }
    }

    /// What stands on the members. Held while they are written, so never on the way of load but for its first write to a part.
    pub fn lock(&self) -> MutexGuard<'_, Durable> {
        // No code panics while it holds the lock.
        self.durable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The open file of a member that is there.
    ///
    /// # Errors
    /// `NotFound` for one that is absent.
    pub fn file(&self, member: usize) -> io::Result<&Arc<StorageFile>> {
        let Member { name, file, .. } = &self.members[member];
        file.as_ref().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("member `{name}` is absent")))
    }

    /// Members that are current, with their files.
    pub fn current(&self) -> impl Iterator<Item = (usize, &Arc<StorageFile>)> {
        let online = self.online();
        let members = self.members.iter().enumerate().filter(move |(member, _)| online & 1 << member != 0);
        members.filter_map(|(member, at)| Some((member, at.file.as_ref()?)))
    }

    /// Writes what the group remembers to all current members. Those that fail are dropped.
    ///
    /// # Errors
    /// When it grew too long, or too few members are left.
    pub fn persist(&self, durable: &mut Durable) -> Result<(), GroupError> {
        let group = || self.shape.name.clone();
        if !self.writable {
            return Err(GroupError::ReadOnly { group: group() });
        }
        loop {
            let generation = durable.generation + 1;
            let page = member::seal_document(&durable.document, self.id, generation);
            let why = || "its files lie in too many pieces".to_owned();
            let page = page.ok_or_else(|| GroupError::Directory { group: group(), why: why() })?;
            let online = durable.document.online() & self.online();
            let mut lost = Vec::new();
            for (member, file) in self.current().filter(|(member, _)| online & 1 << member != 0) {
                if let Err(error) = member::write_document(file, &page, generation) {
                    lost.push((member, error));
                }
            }
            durable.generation = generation;
            if lost.is_empty() {
                self.online.store(online, Ordering::Release);
                return Ok(());
            }
            for (member, error) in lost {
                self.forget(durable, member, &error.to_string(), false)?;
            }
        }
    }

    /// Puts down that a member is dropped, to be persisted.
    ///
    /// # Errors
    /// [`GroupError::Lost`] when the redundancy does not bear it.
    pub fn forget(&self, durable: &mut Durable, member: usize, why: &str, whole: bool) -> Result<(), GroupError> {
        let name = &self.members[member].name;
        let states = &mut durable.document.members;
        states[member].whole |= whole;
        if !states[member].dropped {
            states[member].dropped = true;
            states[member].since = durable.generation + 1;
            durable.notes.push(format!("member `{name}` was dropped: {why}"));
            self.count(member, ChannelCounter::Drops, 1);
        }
        let dropped = states.iter().enumerate().filter(|(_, state)| state.dropped).map(|(member, _)| member);
        if self.shape.groups_of(dropped) >= self.shape.copies as usize {
            self.failed.store(true, Ordering::Relaxed);
            let what = durable.notes.join("; ");
            return Err(GroupError::Lost { group: self.shape.name.clone(), what });
        }
        Ok(())
    }

    /// Drops a member that failed. When this returns, the others remember it, and what was written without it may be
    /// acknowledged. `whole` where it may have lost what it had, too.
    ///
    /// # Errors
    /// [`GroupError::Lost`] when the redundancy does not bear it; the group then takes no requests any more.
    pub fn drop_member(&self, member: usize, why: &str, whole: bool) -> Result<(), GroupError> {
        let mut durable = self.lock();
        let state = durable.document.members[member];
        if self.has_failed() {
            return Err(GroupError::Lost { group: self.shape.name.clone(), what: durable.notes.join("; ") });
        }
        if state.dropped && (state.whole || !whole) && !self.is_online(member as u16) {
            return Ok(());
        }
        if !self.writable {
            return Err(GroupError::ReadOnly { group: self.shape.name.clone() });
        }
        self.forget(&mut durable, member, why, whole)?;
        self.persist(&mut durable)
    }

    /// A write to a member failed: whether the group goes on without it.
    ///
    /// # Errors
    /// The error of the write where there is no other copy, or the group's failure.
    pub fn write_failed(&self, member: usize, error: io::Error) -> io::Result<()> {
        if self.shape.copies == 1 {
            return Err(error);
        }
        if !self.has_failed() && !self.is_online(member as u16) {
            return Ok(());
        }
        let whole = self.has_shrunk(member);
        self.drop_member(member, &format!("a write failed: {error}"), whole).map_err(io::Error::other)
    }

    /// Whether a member is shorter than its units need: then reads of what it lost may succeed again once it grows, with zeroes. One
    /// on a server that does not answer is not known to be.
    pub fn has_shrunk(&self, member: usize) -> bool {
        let Member { file, needed_bytes, .. } = &self.members[member];
        file.as_ref().is_none_or(|file| match file.length() {
            Ok(length) => length < *needed_bytes,
            Err(_) => file.virtual_file().is_none(),
        })
    }

    /// Looks whether all current members are still there and as long as they were, and drops those that are not. A server that does not
    /// answer is none of that: the load's own queue asks again, with more patience, and gives up in the end.
    ///
    /// # Errors
    /// [`GroupError::Lost`] when the redundancy does not bear it, and [`GroupError::Gone`] where nobody could be dropped.
    pub fn check_health(&self) -> Result<(), GroupError> {
        if self.has_failed() {
            return Err(self.failure());
        }
        let mut gone = Vec::new();
        for (member, file) in self.current() {
            match file.is_linked() {
                Ok(true) if self.has_shrunk(member) => gone.push((member, "it was truncated".to_owned(), true)),
                Ok(true) => {}
                Ok(false) => gone.push((member, "it was deleted".to_owned(), true)),
                Err(error) if is_another_file(&error) => gone.push((member, error.to_string(), true)),
                Err(_) if file.virtual_file().is_some() => {}
                Err(error) => gone.push((member, format!("no answer: {error}"), false)),
            }
        }
        for (member, why, whole) in gone {
            if self.shape.copies == 1 || !self.writable {
                let (group, member) = (self.shape.name.clone(), self.members[member].name.clone());
                return Err(GroupError::Gone { group, member, why });
            }
            self.drop_member(member, &why, whole)?;
        }
        Ok(())
    }

    /// Whether a part of a file is marked as changed.
    #[inline]
    pub fn is_changed(&self, slot: u16, part: u32) -> bool {
        let word = usize::from(slot) * WORDS_OF_FILE + part as usize / 64;
        self.changed[word].load(Ordering::Acquire) & 1 << (part % 64) != 0
    }

    /// Marks a part of a file as changed, durably, before it is written for the first time. So that load over all of a file does
    /// not wait for each part, every fourth of what is marked already is marked ahead.
    ///
    /// # Errors
    /// When the redundancy does not bear the members that fail.
    #[cold]
    pub fn mark_changed(&self, slot: u16, part: u32, parts: u32) -> io::Result<()> {
        let mut durable = self.lock();
        if self.is_changed(slot, part) {
            return Ok(());
        }
        let marked = (0..parts).filter(|part| self.is_changed(slot, *part)).count() as u32;
        let ahead = (part..parts).chain(0..part).take(1 + marked as usize / 4);
        let wanted: Vec<u32> = ahead.collect();
        self.write_marks(&mut durable, slot, &wanted).map_err(io::Error::other)
    }

    /// Marks all of a file's parts.
    ///
    /// # Errors
    /// When the redundancy does not bear the members that fail.
    pub fn mark_file(&self, durable: &mut Durable, slot: u16, parts: u32) -> Result<(), GroupError> {
        self.write_marks(durable, slot, &(0..parts).collect::<Vec<_>>())
    }

    /// The map of changes.
    pub fn changes(&self) -> Vec<u64> {
        self.changed.iter().map(|word| word.load(Ordering::Relaxed)).collect()
    }

    fn write_marks(&self, durable: &mut Durable, slot: u16, parts: &[u32]) -> Result<(), GroupError> {
        let mut words = self.changes();
        for part in parts {
            words[usize::from(slot) * WORDS_OF_FILE + *part as usize / 64] |= 1 << (part % 64);
        }
        self.write_map(durable, &words)
    }

    /// Writes a map of changes to all current members; those that fail are dropped.
    ///
    /// # Errors
    /// When too few members are left.
    pub fn write_map(&self, durable: &mut Durable, words: &[u64]) -> Result<(), GroupError> {
        let sequence = durable.changes + 1;
        let page = member::seal_changes(words, self.id, sequence);
        let written = self.current().map(|(member, file)| (member, member::write_changes(file, &page, sequence)));
        let lost: Vec<_> = written.filter_map(|(member, done)| Some((member, done.err()?))).collect();
        durable.changes = sequence;
        self.map_writes.fetch_add(1, Ordering::Relaxed);
        for (member, error) in &lost {
            self.forget(durable, *member, &format!("the map of changes cannot be written: {error}"), false)?;
        }
        if !lost.is_empty() {
            self.persist(durable)?;
        }
        for (cell, word) in self.changed.iter().zip(words) {
            cell.store(*word, Ordering::Release);
        }
        Ok(())
    }

    /// A member has everything that the others have: it is read again.
    pub fn readmit(&self, durable: &mut Durable, member: usize) {
        durable.document.members[member] = Default::default();
        self.online.fetch_or(1 << member, Ordering::Release);
    }

    /// Makes everything that was written durable on all current members; those that fail are dropped.
    ///
    /// # Errors
    /// When the redundancy does not bear it.
    pub fn sync(&self) -> io::Result<()> {
        let failed: Vec<_> = self.current().filter_map(|(member, file)| Some((member, file.sync().err()?))).collect();
        failed.into_iter().try_for_each(|(member, error)| self.write_failed(member, error))
    }
}

impl Drop for State {
    fn drop(&mut self) {
        // The last file and queue are gone: nobody writes any more. What cannot be written now is found unclean, and compared.
        let settled = self.settled.load(Ordering::Relaxed);
        if !self.writable || !settled || self.has_failed() || self.sync().is_err() {
            return;
        }
        let mut durable = self.lock();
        durable.document.clean = true;
        let _ = self.persist(&mut durable);
    }
}

// Who may change an extent: any number of writes of load at once, or one repair alone.
//
// A repair copies what it reads. A write between its read and its write would be undone by it, without any trace. So writes
// pass a gate, and a repair closes it while none is inside.

/// Extents share gates: two that are written at once meet rarely.
const GATES: usize = 1024;
const CLOSED: u32 = 1 << 31;
/// How often a repair looks whether it may close the gate, and how long it waits between.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_micros(200);

/// The gates of a group.
#[derive(Debug)]
pub struct Gates(Box<[AtomicU32]>);

impl Default for Gates {
    fn default() -> Self {
        Self((0..GATES).map(|_| AtomicU32::new(0)).collect())
    }
}

impl Gates {
    #[inline]
    fn gate(&self, slot: u16, extent: u32) -> &AtomicU32 {
        &self.0[(usize::from(slot) * 97 + extent as usize) % GATES]
    }

    /// A write of an extent begins. Waits while it is being repaired.
    #[inline]
    pub fn enter(&self, slot: u16, extent: u32) {
        let gate = self.gate(slot, extent);
        while gate.fetch_add(1, Ordering::Acquire) & CLOSED != 0 {
            gate.fetch_sub(1, Ordering::Release);
            std::thread::sleep(PAUSE);
        }
    }

    /// A write has ended.
    #[inline]
    pub fn leave(&self, slot: u16, extent: u32) {
        self.gate(slot, extent).fetch_sub(1, Ordering::Release);
    }

    /// Keeps writes away from an extent as long as the result lives. None where writes were in flight all the while, those of
    /// this very thread perhaps.
    pub fn close(&self, slot: u16, extent: u32) -> Option<Closed<'_>> {
        let gate = self.gate(slot, extent);
        for _ in 0..TRIES {
            if gate.compare_exchange(0, CLOSED, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return Some(Closed(gate));
            }
            std::thread::sleep(PAUSE);
        }
        None
    }
}

/// A closed gate.
pub struct Closed<'a>(&'a AtomicU32);

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(CLOSED, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repair_waits_for_writes_and_writes_for_it() {
        let gates = Gates::default();
        gates.enter(1, 5);
        assert!(gates.close(1, 5).is_none(), "a write is in flight");
        gates.leave(1, 5);
        let closed = gates.close(1, 5).unwrap();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| gates.enter(1, 5));
            std::thread::sleep(Duration::from_millis(5));
            assert!(!writer.is_finished());
            drop(closed);
        });
        gates.leave(1, 5);
        assert!(gates.close(1, 5).is_some());
    }
}
