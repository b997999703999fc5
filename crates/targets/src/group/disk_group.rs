//! A disk group: made, opened, its files.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::buffer::Buffer;
use super::document::{Document, FileEntry, Shape, check_name};
use super::map::{FileMap, Range};
use super::member::{self, CHANGE_WORDS, FIRST_UNIT, FORMAT, Header};
use super::opening::{Agreed, MemberOffer, agree};
use super::state::{Durable, Member, State};
use super::stripe::Striping;
use super::{GroupError, GroupFile};
use crate::io::{IoEngine, StorageFile};
use measure::ChannelCounter;
use model::config::group::{GroupRedundancy, GroupSpec};
use model::units::Bytes;

/// Allocation unit of a group for which none was asked, as disk groups of databases have it.
pub const DEFAULT_UNIT: Bytes = Bytes::mib(4);

/// What a group is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupAccess {
    /// Reads: nothing on the members is changed. Copies that may differ are read from the one that a resynchronisation would
    /// take.
    Read,
    /// Reads and writes: copies are made alike first.
    Write,
}

/// What is known of a member of an open group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberInfo {
    /// As the user named it.
    pub name: String,
    /// Failure group, from 1.
    pub failure_group: u32,
    /// Size of its allocation units together.
    pub size: Bytes,
    /// Whether it is there and current.
    pub online: bool,
    /// Copies that were written again since the group was opened.
    pub repairs: u64,
}

/// A file of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileInfo {
    /// Its name.
    pub name: String,
    /// Length in bytes.
    pub bytes: u64,
    /// How its data go over its extents.
    pub striping: Striping,
    /// The group and what no other file of it has or had.
    pub identity: (u64, u64),
}

/// An open disk group. It is closed when it and all its files and queues are dropped; one that was not closed is resynchronised
/// when it is opened the next time.
#[derive(Debug)]
pub struct DiskGroup {
    state: Arc<State>,
    open: Mutex<Vec<Weak<FileMap>>>,
    resynced: Resynced,
}

/// The shape of a new group of members of so many bytes, in the order of `spec`.
fn shape(spec: &GroupSpec, sizes: &[u64]) -> Result<Shape, GroupError> {
    let unit = spec.unit.unwrap_or(DEFAULT_UNIT);
    let units_of = |((_, name), size): ((u32, &str), &u64)| match size.saturating_sub(FIRST_UNIT) / unit.0 {
        0 => {
            let needed = Bytes(FIRST_UNIT + unit.0);
            Err(GroupError::TooSmall { member: name.to_owned(), size: Bytes(*size), needed })
        }
        units => Ok(u32::try_from(units).unwrap_or(u32::MAX)),
    };
    let units = spec.members().zip(sizes).map(units_of).collect::<Result<Vec<u32>, _>>()?;
    let groups = match spec.redundancy {
        GroupRedundancy::External => (0..sizes.len() as u16).collect(),
        _ => spec.members().map(|(group, _)| group as u16).collect(),
    };
    Ok(Shape { name: spec.name.clone(), unit_bytes: unit.0, copies: spec.redundancy.copies(), groups, units })
}

impl DiskGroup {
    /// Room that a new group of members of so many bytes would have for files.
    ///
    /// # Errors
    /// [`GroupError::TooSmall`].
    pub fn room(spec: &GroupSpec, sizes: &[u64]) -> Result<Bytes, GroupError> {
        Ok(Bytes(Document::new(shape(spec, sizes)?).free_bytes()))
    }

    /// Makes a group of members whose data may be lost, be they those of another group: the caller has made sure of that.
    ///
    /// # Errors
    /// [`GroupError::TooSmall`], or the system's error. All members are looked at before the first is written.
    pub fn create(spec: &GroupSpec, members: &[Arc<StorageFile>]) -> Result<(), GroupError> {
        let names: Vec<&str> = spec.members().map(|(_, name)| name).collect();
        let error = |action, number: usize| {
            let member = names[number].to_owned();
            move |source| GroupError::Member { action, member, source }
        };
        let mut sizes = Vec::new();
        for (number, file) in members.iter().enumerate() {
            sizes.push(file.length().map_err(error("find the size of", number))?);
        }
        let shape = shape(spec, &sizes)?;
        let units = shape.units.clone();
        let document = Document::new(shape);
        let id = RandomState::new().build_hasher().finish();
        let changes = member::seal_changes(&[0; CHANGE_WORDS], id, 1);
        let page = member::seal_document(&document, id, 1).expect("a group without files is short");
        for (number, file) in members.iter().enumerate() {
            member::erase_header(file)
                .and_then(|()| member::write_changes(file, &changes, 1))
                .and_then(|()| member::write_document(file, &page, 1))
                .map_err(error("write to", number))?;
        }
        for (number, (file, units)) in members.iter().zip(units).enumerate() {
            let header = Header { format: FORMAT, name: spec.name.clone(), member: number as u16, units };
            member::write_header(file, id, &header).map_err(error("write the header of", number))?;
        }
        Ok(())
    }

    /// Opens a group. For writing, members that were dropped and are there again, and copies that may differ after a crash, are
    /// resynchronised before this returns; `progress` has bytes done and in all.
    ///
    /// # Errors
    /// See [`GroupError`]. A group that lacks members is opened as long as some copy of everything is there and sure to be the
    /// newest.
    pub fn open(
        spec: &GroupSpec,
        offers: Vec<MemberOffer>,
        access: GroupAccess,
        io_engine: IoEngine,
        progress: &dyn Fn(u64, u64),
        stop: &AtomicBool,
    ) -> Result<Self, GroupError> {
        let agreed = agree(spec, &offers)?;
        let mut map: (u64, Vec<u64>) = (0, vec![0; CHANGE_WORDS]);
        for (number, offer) in offers.iter().enumerate() {
            let is_current = agreed.document.online() & 1 << number != 0 && agreed.is_usable(number);
            if let Some(file) = offer.file.as_ref().ok().filter(|_| is_current)
                && let Ok(Some(found)) = member::read_changes(file, agreed.id)
                && found.0 > map.0
            {
                map = found;
            }
        }
        let group = Self::new(spec, offers, access, io_engine, &agreed, map);
        match access {
            GroupAccess::Write => group.bring_up(&agreed, progress, stop),
            GroupAccess::Read => Ok(group),
        }
    }

    fn new(
        spec: &GroupSpec,
        offers: Vec<MemberOffer>,
        access: GroupAccess,
        io_engine: IoEngine,
        agreed: &Agreed,
        map: (u64, Vec<u64>),
    ) -> Self {
        let mut document = agreed.document.clone();
        let unit = document.shape.unit_bytes;
        let members = offers.into_iter().zip(&document.shape.units).enumerate().map(|(number, (offer, units))| {
            let file = offer.file.ok().filter(|_| agreed.comes_back(number));
            Member { name: offer.name, file, needed_bytes: FIRST_UNIT + u64::from(*units) * unit }
        });
        let members = members.collect();
        let mut notes = Vec::new();
        for (number, why, whole) in &agreed.losses {
            let state = &mut document.members[*number];
            if !state.dropped {
                state.since = agreed.generation + 1;
                notes.push(format!(
                    "member `{}` was dropped: {why}",
                    spec.members().nth(*number).map_or("", |(_, name)| name)
                ));
            }
            state.dropped = true;
            state.whole |= whole;
        }
        let writable = access == GroupAccess::Write;
        // Where copies may differ, all reads are of the one that the next resynchronisation takes.
        let may_differ = !writable && !agreed.document.clean;
        let preferred =
            spec.preferred.filter(|_| !may_differ && document.shape.copies > 1).map(|group| group as u16 - 1);
        let was_clean = document.clean;
        document.clean = !writable && was_clean;
        let state = State::new(agreed.id, members, preferred, io_engine, writable, document, agreed.generation, map);
        state.lock().notes = notes;
        Self { state: Arc::new(state), open: Mutex::default(), resynced: Resynced::default() }
    }

    /// Lets everybody know that the group is open, and makes copies alike.
    fn bring_up(mut self, agreed: &Agreed, progress: &dyn Fn(u64, u64), stop: &AtomicBool) -> Result<Self, GroupError> {
        let state = Arc::clone(&self.state);
        let page = member::seal_document(&agreed.document, agreed.id, agreed.generation);
        for (number, file) in state.current() {
            // One that missed the last writing gets it first, so that no member ever lacks two.
            if let (Some(page), Some(own)) = (&page, agreed.generations[number])
                && own < agreed.generation
                && let Err(source) = member::write_document(file, page, agreed.generation)
            {
                let member = state.members[number].name.clone();
                return Err(GroupError::Member { action: "write to", member, source });
            }
        }
        state.persist(&mut state.lock())?;
        let whole = |number: usize| state.lock().document.members[number].whole;
        let is_back = |number: &usize| state.members[*number].file.is_some() && !state.is_online(*number as u16);
        let behind: Vec<(usize, bool)> =
            (0..state.members.len()).filter(is_back).map(|number| (number, whole(number))).collect();
        let after_crash = !agreed.document.clean && state.shape.copies > 1;
        if after_crash || !behind.is_empty() {
            let files: Vec<Arc<FileMap>> =
                self.entries().iter().map(|entry| Arc::new(FileMap::new(&state, entry))).collect();
            let resync = Resync { state: &state, after_crash, behind, progress, stop };
            let (resynced, current) = resync.run(&files)?;
            self.resynced = resynced;
            self.readmit(agreed, &current)?;
        }
        state
            .sync()
            .map_err(|source| GroupError::Lost { group: state.shape.name.clone(), what: source.to_string() })?;
        let mut durable = state.lock();
        let all_current = durable.document.members.iter().all(|member| !member.dropped);
        // With all copies alike, only what is changed from here on may differ after a crash.
        let words = if all_current { vec![0; CHANGE_WORDS] } else { state.changes() };
        state.write_map(&mut durable, &words)?;
        state.settled.store(true, Ordering::Relaxed);
        drop(durable);
        Ok(self)
    }

    /// Takes members back that have everything now.
    fn readmit(&self, agreed: &Agreed, current: &[usize]) -> Result<(), GroupError> {
        let state = &self.state;
        for number in current {
            let error =
                |source| GroupError::Member { action: "write to", member: state.members[*number].name.clone(), source };
            let file = state.file(*number).map_err(error)?;
            file.sync().map_err(error)?;
            if agreed.blank.contains(number) {
                let units = state.shape.units[*number];
                let header = Header { format: FORMAT, name: state.shape.name.clone(), member: *number as u16, units };
                member::write_header(file, state.id, &header).map_err(error)?;
            }
        }
        if current.is_empty() {
            return Ok(());
        }
        let mut durable = state.lock();
        for number in current {
            state.readmit(&mut durable, *number);
            durable.notes.push(format!("member `{}` was resynchronised", state.members[*number].name));
        }
        state.persist(&mut durable)
    }

    fn entries(&self) -> Vec<FileEntry> {
        self.state.lock().document.files.clone()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.state.shape.name
    }

    /// Copies of each byte.
    pub fn copies(&self) -> u32 {
        self.state.shape.copies
    }

    /// Allocation unit.
    pub fn unit(&self) -> Bytes {
        Bytes(self.state.shape.unit_bytes)
    }

    /// Length of the longest file that can be made.
    pub fn free(&self) -> Bytes {
        Bytes(self.state.lock().document.free_bytes())
    }

    /// The members, in the order in which they were written.
    pub fn members(&self) -> Vec<MemberInfo> {
        let state = &self.state;
        let info = |(number, member): (usize, &Member)| MemberInfo {
            name: member.name.clone(),
            failure_group: u32::from(state.shape.groups[number]) + 1,
            size: Bytes(u64::from(state.shape.units[number]) * state.shape.unit_bytes),
            online: state.is_online(number as u16),
            repairs: state.repairs(number),
        };
        state.members.iter().enumerate().map(info).collect()
    }

    /// What happened to members since it was opened, in sentences for the user.
    pub fn notes(&self) -> Vec<String> {
        self.state.lock().notes.clone()
    }

    /// What was done to make copies alike when it was opened.
    pub fn resynced(&self) -> Resynced {
        self.resynced
    }

    /// How often load had to wait until the map of changes was durable.
    pub fn map_writes(&self) -> u64 {
        self.state.map_writes.load(Ordering::Relaxed)
    }

    /// Pieces that should have been repaired and were not, because load wrote there all the time.
    pub fn unrepaired(&self) -> u64 {
        self.state.unrepaired.load(Ordering::Relaxed)
    }

    /// The files, in the order of their making.
    pub fn files(&self) -> Vec<FileInfo> {
        let info = |file: FileEntry| FileInfo {
            name: file.name,
            bytes: file.bytes,
            striping: file.striping,
            identity: (self.state.id, file.serial),
        };
        self.entries().into_iter().map(info).collect()
    }

    /// Makes a file. Its contents are what stood there before, until they are written.
    ///
    /// # Errors
    /// When there is no room, or the name is bad or taken; nothing is changed then.
    pub fn create_file(&self, name: &str, bytes: u64, striping: Striping) -> Result<StorageFile, GroupError> {
        let state = &self.state;
        let mut durable = state.lock();
        let before = durable.document.files.clone();
        let made = self.put_file(&mut durable, name, bytes, striping);
        if made.is_err() {
            durable.document.files = before;
        }
        drop(durable);
        made?;
        self.open_file(name)
    }

    fn put_file(&self, durable: &mut Durable, name: &str, bytes: u64, striping: Striping) -> Result<(), GroupError> {
        let state = &self.state;
        if !state.writable {
            return Err(GroupError::ReadOnly { group: self.name().to_owned() });
        }
        let entry = durable.document.add_file(name, bytes, striping)?.clone();
        if durable.document.members.iter().any(|member| member.dropped) {
            // A member that is away has other data in these units.
            let parts = FileMap::new(state, &entry).parts();
            state.mark_file(durable, entry.slot, parts)?;
        }
        state.persist(durable)
    }

    /// Opens a file.
    ///
    /// # Errors
    /// [`GroupError::NoFile`].
    pub fn open_file(&self, name: &str) -> Result<StorageFile, GroupError> {
        let map = self.map(name)?;
        let address = PathBuf::from(format!("+{}/{name}", self.name()));
        Ok(StorageFile::virtual_at(address, Arc::new(GroupFile(map))))
    }

    fn open_maps(&self) -> MutexGuard<'_, Vec<Weak<FileMap>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn map(&self, name: &str) -> Result<Arc<FileMap>, GroupError> {
        let mut open = self.open_maps();
        open.retain(|map| map.strong_count() > 0);
        let entry = self.entries().into_iter().find(|entry| entry.name == name);
        let missing = || GroupError::NoFile { group: self.name().to_owned(), file: name.to_owned() };
        let entry = entry.ok_or_else(missing)?;
        if let Some(map) = open.iter().filter_map(Weak::upgrade).find(|map| map.serial == entry.serial) {
            return Ok(map);
        }
        let map = Arc::new(FileMap::new(&self.state, &entry));
        open.push(Arc::downgrade(&map));
        Ok(map)
    }

    /// Removes a file that nobody has open.
    ///
    /// # Errors
    /// [`GroupError::NoFile`], [`GroupError::FileInUse`], or that it could not be made durable.
    pub fn remove_file(&self, name: &str) -> Result<(), GroupError> {
        let open = self.open_maps();
        let mut durable = self.state.lock();
        let entry = self.unused(&open, &durable.document, name)?;
        let missing = || GroupError::NoFile { group: self.name().to_owned(), file: name.to_owned() };
        let serial = entry.ok_or_else(missing)?;
        self.change_files(&mut durable, |files| files.retain(|entry| entry.serial != serial))
    }

    /// Gives a file another name, also while it is open. One that had it is gone then; nobody may have it open.
    ///
    /// # Errors
    /// [`GroupError::NoFile`], [`GroupError::FileInUse`], [`GroupError::FileName`], or that it could not be made durable.
    pub fn rename_file(&self, from: &str, to: &str) -> Result<(), GroupError> {
        check_name(to)?;
        let open = self.open_maps();
        let mut durable = self.state.lock();
        let (group, file) = (self.name().to_owned(), from.to_owned());
        if !durable.document.files.iter().any(|entry| entry.name == from) {
            return Err(GroupError::NoFile { group, file });
        }
        let replaced = if from == to { None } else { self.unused(&open, &durable.document, to)? };
        self.change_files(&mut durable, |files| {
            files.retain(|entry| Some(entry.serial) != replaced);
            files.iter_mut().filter(|entry| entry.name == from).for_each(|entry| to.clone_into(&mut entry.name));
        })
    }

    /// The serial of a file that nobody has open, if there is one of this name.
    fn unused(&self, open: &[Weak<FileMap>], document: &Document, name: &str) -> Result<Option<u64>, GroupError> {
        let Some(entry) = document.files.iter().find(|entry| entry.name == name) else { return Ok(None) };
        if open.iter().filter_map(Weak::upgrade).any(|map| map.serial == entry.serial) {
            return Err(GroupError::FileInUse { group: self.name().to_owned(), file: name.to_owned() });
        }
        Ok(Some(entry.serial))
    }

    /// Changes the list of files, or leaves it as it was.
    fn change_files(&self, durable: &mut Durable, change: impl FnOnce(&mut Vec<FileEntry>)) -> Result<(), GroupError> {
        let before = durable.document.files.clone();
        change(&mut durable.document.files);
        let changed = self.state.persist(durable);
        if changed.is_err() {
            durable.document.files = before;
        }
        changed
    }
}

/// Length of what is compared at once.
const STEP_BYTES: u32 = 1 << 20;

/// What was done to make copies alike.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resynced {
    /// Bytes of copies that were compared.
    pub compared_bytes: u64,
    /// Bytes of copies that differed and were written again.
    pub copied_bytes: u64,
    /// Bytes of which no copy could be read.
    pub unreadable_bytes: u64,
}

/// What is to be made alike.
struct Resync<'a> {
    /// The group.
    pub state: &'a State,
    /// Whether copies on current members may differ, too.
    pub after_crash: bool,
    /// Members that were away, and whether each needs everything.
    pub behind: Vec<(usize, bool)>,
    /// Reported after each step: bytes of files done, and in all.
    pub progress: &'a dyn Fn(u64, u64),
    /// Ends it early.
    pub stop: &'a AtomicBool,
}

impl Resync<'_> {
    /// Goes through all files. Members of `behind` that could not be brought up to date are left out of the list that comes
    /// back with the figures.
    ///
    /// # Errors
    /// [`GroupError::Interrupted`]; or when current members fail and the redundancy does not bear it.
    pub fn run(mut self, files: &[Arc<FileMap>]) -> Result<(Resynced, Vec<usize>), GroupError> {
        let mut done = Resynced::default();
        let unit = self.state.shape.unit_bytes;
        let total: u64 = files.iter().map(|file| u64::from(file.extents()) * unit).sum();
        let mut walked = 0;
        for file in files {
            for extent in 0..file.extents() {
                if self.stop.load(Ordering::Relaxed) {
                    return Err(GroupError::Interrupted);
                }
                self.extent(file, extent, &mut done)?;
                walked += unit;
                (self.progress)(walked, total);
            }
        }
        Ok((done, self.behind.into_iter().map(|(member, _)| member).collect()))
    }

    /// Copies that have to be compared with the others.
    fn targets(&self, file: &FileMap, extent: u32) -> Vec<usize> {
        let changed = self.state.is_changed(file.slot, file.part(extent));
        let is_target = |member: u16| match self.behind.iter().find(|(behind, _)| *behind == usize::from(member)) {
            Some((_, whole)) => *whole || changed,
            None => self.after_crash && changed && self.state.is_online(member),
        };
        let places = file.places(extent);
        (0..places.len()).filter(|copy| is_target(places[*copy].member)).collect()
    }

    fn extent(&mut self, file: &FileMap, extent: u32, done: &mut Resynced) -> Result<(), GroupError> {
        let targets = self.targets(file, extent);
        if targets.is_empty() {
            return Ok(());
        }
        let unit = self.state.shape.unit_bytes as u32;
        for within in (0..unit).step_by(STEP_BYTES as usize) {
            self.step(file, Range { extent, within, bytes: STEP_BYTES.min(unit - within) }, &targets, done)?;
        }
        Ok(())
    }

    fn step(&mut self, file: &FileMap, range: Range, targets: &[usize], done: &mut Resynced) -> Result<(), GroupError> {
        let places = file.places(range.extent);
        let (mut right, mut other) = (Buffer::new(range.bytes as usize), Buffer::new(range.bytes as usize));
        // The first copy that can be read is right: after a crash any is, as long as all are alike afterwards.
        let source = (0..places.len()).find(|copy| file.read_copy(range, *copy, &mut right).is_ok());
        let Some(source) = source else {
            done.unreadable_bytes += u64::from(range.bytes);
            // What cannot be read now was not lost by those that were away: they stay so, and may have it still.
            self.behind.retain(|(member, _)| !places.iter().any(|place| usize::from(place.member) == *member));
            return Ok(());
        };
        for copy in targets.iter().copied().filter(|copy| *copy != source) {
            let member = usize::from(places[copy].member);
            let is_behind = self.behind.iter().any(|(behind, _)| *behind == member);
            if !is_behind && !self.state.is_online(member as u16) {
                continue;
            }
            done.compared_bytes += u64::from(range.bytes);
            let read = self
                .state
                .file(member)
                .and_then(|at| at.read_exact_at(&mut other, file.offset(places[copy], range.within)));
            if read.is_ok() && right[..] == other[..] {
                continue;
            }
            match file.write_copy(range, copy, &right) {
                Ok(()) => {
                    done.copied_bytes += u64::from(range.bytes);
                    self.state.count(member, ChannelCounter::ResyncedBytes, u64::from(range.bytes));
                }
                Err(error) if is_behind => {
                    let name = &self.state.members[member].name;
                    self.state.lock().notes.push(format!("member `{name}` cannot be resynchronised: {error}"));
                    self.behind.retain(|(behind, _)| *behind != member);
                }
                Err(error) => self.state.drop_member(member, &format!("a write failed: {error}"), false)?,
            }
        }
        Ok(())
    }
}
