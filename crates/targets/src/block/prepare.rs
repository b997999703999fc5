//! From paths to an open volume: what must be laid out first, what must not be touched, and what cannot be measured.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use super::layout::{self, FileState};
use super::place::{self, MemberLocation};
use super::safety::{self, Checked, PathKind, Permission, Purpose};
use super::volume::{Volume, VolumeLayout};
use super::{BlockError, Member, VirtualPlace};
use crate::Progress;
use crate::error::{FileContext, TargetError};
use crate::io::{Access, Caching, Durability, IoEngine, Opening};
use measure::os;
use model::units::Bytes;

/// What the members of a volume start and end on.
const GRAIN_BYTES: u64 = 4096;

/// More than any file system holds, in bytes.
const MAX_BYTES: u64 = 1 << 62;

/// What is wanted of the paths.
#[derive(Debug, Clone)]
pub struct PrepareOptions {
    /// Files and block devices, and addresses of [`elsewhere`](Self::elsewhere).
    pub paths: Vec<PathBuf>,
    /// Those of the paths that are no paths of this machine.
    pub elsewhere: Vec<VirtualPlace>,
    /// How the volume lies on them.
    pub layout: VolumeLayout,
    /// How large it should be at least; as large as it is where nobody says.
    pub size: Option<Bytes>,
    /// Whether anything is read.
    pub reads: bool,
    /// What the user has said about data that may be lost; absent if nothing is written.
    pub permission: Option<Permission>,
    /// Whether what is read is checked, so that every block must carry our stamps.
    pub checked: bool,
    /// Whether everything is written once before the load.
    pub prefill: bool,
    /// Past the page cache, or through it.
    pub caching: Caching,
    /// When a write counts as done.
    pub durability: Durability,
    /// How requests reach the kernel.
    pub io_engine: IoEngine,
}

/// What has to be done before load.
#[derive(Debug)]
pub struct Preparation {
    wanted: PrepareOptions,
    /// Where each path leads.
    places: Vec<MemberLocation>,
    /// Bytes to write to each path; none where nothing is to be written.
    fills: Vec<Option<Fill>>,
    /// Length of each member once that is done.
    lengths: Vec<u64>,
    /// What the user should know.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
enum Fill {
    /// Makes the file.
    Make(u64),
    /// Writes over what is there.
    Over(u64),
}

impl Fill {
    const fn bytes(self) -> u64 {
        match self {
            Self::Make(bytes) | Self::Over(bytes) => bytes,
        }
    }
}

impl Preparation {
    /// Looks at all paths. Nothing is written.
    ///
    /// # Errors
    /// The first reason against it, room for the files to be made included.
    pub fn look(wanted: PrepareOptions) -> Result<Self, TargetError> {
        let elsewhere = |path: &PathBuf| wanted.elsewhere.iter().find(|place| place.address() == path).cloned();
        let place = |path: &PathBuf| {
            elsewhere(path).map_or_else(|| MemberLocation::Local(path.clone()), MemberLocation::Virtual)
        };
        let places: Vec<MemberLocation> = wanted.paths.iter().map(place).collect();
        places.iter().try_for_each(MemberLocation::refuse_new_among_devices)?;
        let is_there = places.iter().map(MemberLocation::is_there).collect::<Result<Vec<_>, _>>()?;
        let there: Vec<MemberLocation> =
            places.iter().zip(&is_there).filter(|(_, is)| **is).map(|(place, _)| place.clone()).collect();
        let mut checked = check(&there, wanted.permission.as_ref())?.into_iter();
        let each = wanted.size.map(|size| share(size, wanted.layout, wanted.paths.len()));
        let mut this = Self { places, fills: Vec::new(), lengths: Vec::new(), notes: Vec::new(), wanted };
        for (number, is_there) in is_there.iter().copied().enumerate() {
            let place = this.places[number].clone();
            let found = if is_there { checked.next() } else { None };
            for note in found.iter().flat_map(Checked::notes) {
                this.notes.push(note.clone());
            }
            let (fill, length) = match &found {
                None => {
                    let bytes = each.ok_or_else(|| BlockError::Missing { path: place.path().to_owned() })?;
                    (Some(Fill::Make(bytes)), bytes)
                }
                Some(found) => this.existing(&place, found, each)?,
            };
            this.fills.push(fill);
            this.lengths.push(length);
        }
        // Errors of what is replaced, of the names, of the layout and of the room are reported before anything is written.
        // What was checked for writing above is claimed as long as its check lives.
        drop(checked);
        let is_made = |fill: &Option<Fill>| matches!(fill, Some(Fill::Make(_)));
        for (place, _) in this.places.iter().zip(&this.fills).filter(|(_, fill)| is_made(fill)) {
            place.local().map_or(Ok(()), safety::refuse_system_place)?;
            drop(check_replaced(place, this.wanted.permission.as_ref())?);
        }
        this.check_names()?;
        this.check_replaced(&is_there)?;
        this.volume()?;
        this.check_room()?;
        Ok(this)
    }

    /// Whether files that are there and too small are free to be replaced. Where load only reads, nobody has asked yet.
    fn check_replaced(&self, is_there: &[bool]) -> Result<(), TargetError> {
        if self.wanted.permission.is_some() {
            return Ok(());
        }
        let is_made = |fill: &Option<Fill>| matches!(fill, Some(Fill::Make(_)));
        let all = self.places.iter().zip(&self.fills).zip(is_there);
        let replaced = all.filter(|((_, fill), is_there)| is_made(fill) && **is_there);
        let replaced: Vec<MemberLocation> = replaced.map(|((place, _), _)| place.clone()).collect();
        check(&replaced, Some(&Permission::default())).map(drop)
    }

    /// Whether no two files that will be made are the same one under two names.
    fn check_names(&self) -> Result<(), TargetError> {
        let mut first_by_place: BTreeMap<PathBuf, &Path> = BTreeMap::new();
        for (place, fill) in self.places.iter().zip(&self.fills) {
            // Of virtual ones two with one address are refused before.
            let Some(path) = place.local() else { continue };
            let (Some(Fill::Make(_)), Some(name)) = (fill, path.file_name()) else { continue };
            let folder = layout::folder_of(path).canonicalize().of_file("find the directory of", path)?;
            if let Some(first) = first_by_place.insert(folder.join(name), path) {
                let (first, second) = (first.to_owned(), path.to_owned());
                return Err(BlockError::Same { first, second, what: "the same file" }.into());
            }
        }
        Ok(())
    }

    /// Whether all files that will be made have room side by side.
    fn check_room(&self) -> Result<(), TargetError> {
        let mut needed_by_system: BTreeMap<u64, u64> = BTreeMap::new();
        for (place, fill) in self.places.iter().zip(&self.fills) {
            let Some(Fill::Make(bytes)) = fill else { continue };
            let Some(path) = place.local() else {
                check_virtual_room(place, *bytes)?;
                continue;
            };
            let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
            let folder = layout::folder_of(&real);
            let system = folder.metadata().of_file("find the directory of", path)?.dev();
            let needed = needed_by_system.entry(system).or_default();
            *needed = needed.saturating_add(*bytes);
            if let Some(space) = os::space(folder)
                && space.available_bytes < *needed
            {
                let (needed, available) = (Bytes(*needed), Bytes(space.available_bytes));
                return Err(BlockError::NoSpace { path: path.to_owned(), needed, available }.into());
            }
        }
        Ok(())
    }

    fn existing(
        &mut self,
        place: &MemberLocation,
        found: &Checked,
        each: Option<u64>,
    ) -> Result<(Option<Fill>, u64), TargetError> {
        let PrepareOptions { permission, checked, prefill, .. } = &self.wanted;
        let (path, writes) = (found.path(), permission.is_some());
        let length = place.length()?;
        // One member after the other is used as far as the size goes, so one that was there may hold all of it.
        let wanted = match self.wanted.layout {
            VolumeLayout::Single | VolumeLayout::Concat => self.wanted.size.map(|size| size.0),
            VolumeLayout::Separate | VolumeLayout::Stripe { .. } | VolumeLayout::Mirror { .. } => each,
        };
        let used = wanted.map_or(length, |wanted| wanted.min(length)) / GRAIN_BYTES * GRAIN_BYTES;
        if found.kind() == PathKind::BlockDevice {
            let unstamped = *checked && !layout::is_laid(path, used)?;
            if (unstamped || *prefill) && writes {
                return Ok((Some(Fill::Over(used)), length));
            }
            if unstamped {
                return Err(BlockError::NotLaidOut { path: path.to_owned() }.into());
            }
            if self.wanted.reads && found.id().is_none() {
                self.notes.push(format!(
                    "Plimsoll cannot see whether `{}` was ever written. A new or thin volume answers reads of \
                    unwritten blocks without touching a medium: `--prefill` writes everything first",
                    path.display()
                ));
            }
            return Ok((None, length));
        }
        // Ours, or one that the user has named.
        let may_replace = found.id().is_some() || writes;
        if let Some(each) = each.filter(|each| *each > length && may_replace) {
            return Ok((Some(Fill::Make(each)), each));
        }
        if *prefill && writes {
            return Ok((Some(Fill::Over(used)), length));
        }
        match place.inspect(used)? {
            FileState::Sparse { written_share } | FileState::NeverWritten { written_share } if self.wanted.reads => {
                Err(BlockError::NothingPhysical { path: path.to_owned(), written_share }.into())
            }
            FileState::Sparse { written_share } | FileState::NeverWritten { written_share } if !*checked => {
                let written = model::units::percent(written_share);
                self.notes.push(format!(
                    "only {written} % of `{}` was ever written. The first write of each block also makes the file \
                    system allocate space: `--prefill` writes everything first",
                    path.display()
                ));
                Ok((None, length))
            }
            FileState::Laid { .. } => Ok((None, length)),
            _ if *checked => Err(BlockError::NotLaidOut { path: path.to_owned() }.into()),
            _ => Ok((None, length)),
        }
    }

    /// Each path that will be written to before the load, and how much of it.
    pub fn fills(&self) -> impl Iterator<Item = (&Path, Bytes)> + '_ {
        let places = self.places.iter().zip(&self.fills);
        places.filter_map(|(place, fill)| Some((place.path(), Bytes(fill.as_ref()?.bytes()))))
    }

    /// Each path and how long it will be.
    pub fn members(&self) -> impl Iterator<Item = (&Path, Bytes)> + '_ {
        self.places.iter().map(MemberLocation::path).zip(self.lengths.iter().copied().map(Bytes))
    }

    /// The volume as it will be.
    ///
    /// # Errors
    /// When the paths do not fit the layout.
    pub fn volume(&self) -> Result<Volume, TargetError> {
        Ok(Volume::new(self.wanted.layout, &self.lengths)?)
    }

    /// Writes what has to be written, and opens the volume's members.
    ///
    /// # Errors
    /// [`TargetError::Interrupted`], or the first thing that failed.
    pub fn run(self, progress: &dyn Fn(Progress), stop: &AtomicBool) -> Result<(Volume, Vec<Member>), TargetError> {
        let Self { wanted, places, fills, .. } = &self;
        let total_bytes: u64 = self.fills().map(|(_, bytes)| bytes.0).sum();
        let mut before = 0;
        for (place, fill) in places.iter().zip(fills) {
            let Some(fill) = fill else { continue };
            let notify = |now: Progress| {
                progress(Progress { done_bytes: before + now.done_bytes, total_bytes });
            };
            match fill {
                Fill::Make(bytes) => {
                    let replaced = check_replaced(place, wanted.permission.as_ref())?;
                    place.lay_out(*bytes, replaced.as_ref(), wanted.io_engine, &notify, stop)?;
                }
                Fill::Over(bytes) => {
                    let checked = check(std::slice::from_ref(place), wanted.permission.as_ref())?.remove(0);
                    let member = Member::open(checked, Opening::WRITE)?;
                    layout::lay_over(member.file(), *bytes, wanted.io_engine, &notify, stop)?;
                }
            }
            before += fill.bytes();
        }
        let opening = Opening {
            access: if wanted.permission.is_some() { Access::ReadWrite } else { Access::Read },
            caching: wanted.caching,
            durability: wanted.durability,
        };
        let checked = check(places, wanted.permission.as_ref())?;
        let members = checked.into_iter().map(|one| Member::open(one, opening)).collect::<Result<Vec<_>, _>>()?;
        let lengths: Vec<u64> = members.iter().map(Member::length_bytes).collect();
        Ok((Volume::new(wanted.layout, &lengths)?, members))
    }
}

fn check(places: &[MemberLocation], permission: Option<&Permission>) -> Result<Vec<Checked>, TargetError> {
    place::check(places, permission.map_or(Purpose::Read, Purpose::Write))
}

/// Judges a file in whose place another will be laid out as one that is written to: its data go, so nobody may use it, not
/// even to read it. Others are kept away from it as long as the answer lives. None where nothing is there.
fn check_replaced(place: &MemberLocation, permission: Option<&Permission>) -> Result<Option<Checked>, TargetError> {
    if !place.is_there()? {
        return Ok(None);
    }
    let nothing_named = Permission::default();
    let purpose = Purpose::Write(permission.unwrap_or(&nothing_named));
    Ok(place::check(std::slice::from_ref(place), purpose)?.pop())
}

/// Whether one file has room where only its own directory knows the space.
fn check_virtual_room(place: &MemberLocation, bytes: u64) -> Result<(), TargetError> {
    let Some(directory) = place.directory() else { return Ok(()) };
    let free_bytes = directory.free_bytes().of_file("find the free space for", place.path())?;
    if let Some(available) = free_bytes.filter(|free_bytes| *free_bytes < bytes).map(Bytes) {
        let path = place.path().to_owned();
        return Err(BlockError::NoSpace { path, needed: Bytes(bytes), available }.into());
    }
    Ok(())
}

/// What each of so many members must hold for a volume of `size`.
fn share(size: Bytes, layout: VolumeLayout, members: usize) -> u64 {
    let (unit, copies) = match layout {
        // Each of them is a volume of that size.
        VolumeLayout::Separate => (GRAIN_BYTES, members as u64),
        VolumeLayout::Single | VolumeLayout::Concat => (GRAIN_BYTES, 1),
        VolumeLayout::Stripe { unit_bytes } => (unit_bytes, 1),
        VolumeLayout::Mirror { unit_bytes } => (2 * unit_bytes, 2),
    };
    // Sums of what members hold, their roundings included, stay numbers; that there is no room is reported elsewhere.
    let size = size.0.min(MAX_BYTES / copies);
    (size * copies).div_ceil(members.max(1) as u64).next_multiple_of(unit.max(GRAIN_BYTES))
}

#[cfg(test)]
mod tests {
    //! What is looked at, made and refused before load.

    use super::*;
    use test_support::scratch::scratch;

    fn wanted(paths: &[&Path]) -> PrepareOptions {
        PrepareOptions {
            paths: paths.iter().map(|path| path.to_path_buf()).collect(),
            elsewhere: Vec::new(),
            layout: if paths.len() == 1 { VolumeLayout::Single } else { VolumeLayout::Stripe { unit_bytes: 1 << 20 } },
            size: Some(Bytes::mib(4)),
            reads: true,
            permission: None,
            checked: false,
            prefill: false,
            caching: Caching::Direct,
            durability: Durability::OnSync,
            io_engine: IoEngine::best_available().0,
        }
    }

    fn prepare(wanted: PrepareOptions) -> Result<(Volume, Vec<Member>), TargetError> {
        Preparation::look(wanted)?.run(&|_| {}, &AtomicBool::new(false))
    }

    #[test]
    fn missing_files_are_laid_out_and_found_again() {
        let folder = scratch();
        let (first, second) = (folder.path().join("a"), folder.path().join("b"));
        let wanted = wanted(&[&first, &second]);
        let look = Preparation::look(wanted.clone()).unwrap();
        assert_eq!(look.fills().map(|(_, bytes)| bytes).collect::<Vec<_>>(), [Bytes::mib(2), Bytes::mib(2)]);
        let (volume, members) = prepare(wanted.clone()).unwrap();
        assert_eq!((volume.capacity_bytes(), members.len()), (4 << 20, 2));
        drop(members);
        assert_eq!(Preparation::look(wanted).unwrap().fills().count(), 0, "what is there is not written again");
    }

    #[test]
    fn files_that_have_no_room_or_no_directory_are_refused_before_any_is_made() {
        let folder = scratch();
        let (first, second) = (folder.path().join("a"), folder.path().join("b"));
        let available = os::space(folder.path()).unwrap().available_bytes;
        // Each by itself would fit.
        let each_fits =
            PrepareOptions { size: Some(Bytes(available / 4096 * 4096 * 3 / 2)), ..wanted(&[&first, &second]) };
        let error = Preparation::look(each_fits).unwrap_err();
        assert!(matches!(error, TargetError::Block(BlockError::NoSpace { .. })), "{error}");
        let nowhere = folder.path().join("nowhere/a");
        let said = Preparation::look(wanted(&[&nowhere])).unwrap_err().to_string();
        assert!(said.starts_with("cannot find the directory of `") && said.contains("nowhere/a"), "{said}");
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn a_file_without_data_is_refused_for_reads() {
        let folder = scratch();
        let path = folder.path().join("hole");
        std::fs::File::create(&path).unwrap().set_len(8 << 20).unwrap();
        let said = Preparation::look(wanted(&[&path])).unwrap_err().to_string();
        assert!(said.contains("hole") && said.contains("0 %"), "{said}");
    }

    #[test]
    fn a_file_without_data_is_written_to_with_a_note() {
        let folder = scratch();
        let path = folder.path().join("hole");
        std::fs::File::create(&path).unwrap().set_len(8 << 20).unwrap();
        let permission = Permission { destroy: vec!["hole".to_owned()], ..Permission::default() };
        let writes = PrepareOptions { reads: false, permission: Some(permission), ..wanted(&[&path]) };
        let notes = Preparation::look(writes.clone()).unwrap().notes;
        assert!(notes.len() == 1 && notes[0].contains("only 0.0 %") && notes[0].contains("--prefill"), "{notes:?}");
        let prefilled = Preparation::look(PrepareOptions { prefill: true, ..writes }).unwrap();
        assert_eq!((prefilled.notes.len(), prefilled.fills().count()), (0, 1));
    }

    #[test]
    fn a_file_that_somebody_uses_is_not_replaced_by_a_larger_one() {
        let folder = scratch();
        let path = folder.path().join("data");
        drop(prepare(wanted(&[&path])).unwrap());
        let larger = PrepareOptions { size: Some(Bytes::mib(8)), ..wanted(&[&path]) };
        let reader = check(&[MemberLocation::Local(path.clone())], None).unwrap();
        let error = Preparation::look(larger.clone()).unwrap_err();
        assert!(matches!(error, TargetError::Block(BlockError::Locked { .. })), "{error}");
        drop(reader);
        assert_eq!(Preparation::look(larger).unwrap().fills().count(), 1);
    }

    #[test]
    fn a_missing_file_under_two_names_is_refused_before_it_is_made() {
        let folder = scratch();
        let (first, second) = (folder.path().join("a"), folder.path().join(".").join("a"));
        std::os::unix::fs::symlink(folder.path(), folder.path().join("link")).unwrap();
        for other in [second, folder.path().join("link").join("a")] {
            let error = Preparation::look(wanted(&[&first, &other])).unwrap_err();
            assert!(matches!(error, TargetError::Block(BlockError::Same { .. })), "{error}");
        }
        assert_eq!(folder.path().read_dir().unwrap().count(), 1, "nothing but the link");
    }

    #[test]
    fn a_hole_that_a_row_of_files_would_read_is_found_wherever_it_is() {
        let folder = scratch();
        let (first, second) = (folder.path().join("a"), folder.path().join("b"));
        for path in [&first, &second] {
            std::fs::write(path, vec![7; 4 << 20]).unwrap();
            let file = std::fs::File::options().write(true).open(path).unwrap();
            file.set_len(8 << 20).unwrap();
            file.sync_all().unwrap();
        }
        // All of the 8 MiB would be read from the first file.
        let row =
            PrepareOptions { layout: VolumeLayout::Concat, size: Some(Bytes::mib(8)), ..wanted(&[&first, &second]) };
        let error = Preparation::look(row).unwrap_err();
        assert!(matches!(error, TargetError::Block(BlockError::NothingPhysical { .. })), "{error}");
    }

    #[test]
    fn somebody_elses_file_is_read_but_never_replaced() {
        let folder = scratch();
        let path = folder.path().join("theirs");
        std::fs::write(&path, vec![7; 1 << 20]).unwrap();
        std::fs::File::open(&path).unwrap().sync_all().unwrap();
        let (volume, members) = prepare(wanted(&[&path])).unwrap();
        assert_eq!(volume.capacity_bytes(), 1 << 20, "too small for what is wanted, and left as it is");
        drop(members);
        let write = PrepareOptions { permission: Some(Permission::default()), ..wanted(&[&path]) };
        assert!(matches!(Preparation::look(write), Err(TargetError::Block(BlockError::NotAllowed { .. }))));
        let checked = PrepareOptions { checked: true, ..wanted(&[&path]) };
        assert!(matches!(Preparation::look(checked), Err(TargetError::Block(BlockError::NotLaidOut { .. }))));
        assert!(std::fs::read(&path).unwrap().iter().all(|byte| *byte == 7));
    }

    #[test]
    fn a_file_that_somebody_reads_is_not_replaced_by_a_larger_one() {
        let folder = scratch();
        let path = folder.path().join("a");
        let (_, reader) = prepare(wanted(&[&path])).unwrap();
        let larger = || PrepareOptions { size: Some(Bytes::mib(8)), ..wanted(&[&path]) };
        assert!(matches!(Preparation::look(larger()), Err(TargetError::Block(BlockError::Locked { .. }))));
        drop(reader);
        let look = Preparation::look(larger()).unwrap();
        let (_, reader) = prepare(wanted(&[&path])).unwrap();
        let late = look.run(&|_| {}, &AtomicBool::new(false));
        let is_locked = matches!(late, Err(TargetError::Block(BlockError::Locked { .. })));
        assert!(is_locked, "a reader came after the look: {late:?}");
        reader[0].check_health().unwrap();
    }

    #[test]
    fn somebody_elses_file_that_came_after_the_look_is_not_replaced() {
        let folder = scratch();
        let path = folder.path().join("a");
        let look = Preparation::look(wanted(&[&path])).unwrap();
        std::fs::write(&path, b"theirs").unwrap();
        let late = look.run(&|_| {}, &AtomicBool::new(false));
        assert!(matches!(late, Err(TargetError::Block(BlockError::NotAllowed { .. }))));
        assert_eq!(std::fs::read(&path).unwrap(), b"theirs");
    }

    #[test]
    fn sizes_beyond_all_storage_are_refused() {
        let folder = scratch();
        let (first, second) = (folder.path().join("a"), folder.path().join("b"));
        for paths in [&[first.as_path()][..], &[&first, &second]] {
            for layout in [VolumeLayout::Concat, VolumeLayout::Stripe { unit_bytes: 1 << 20 }] {
                let huge = PrepareOptions { layout, size: Some(Bytes(u64::MAX)), ..wanted(paths) };
                assert!(matches!(Preparation::look(huge), Err(TargetError::Block(BlockError::NoSpace { .. }))));
            }
        }
    }

    #[test]
    fn no_file_is_made_among_devices_whatever_leads_there() {
        let folder = scratch();
        let name = "plimsoll-no-such-device";
        let (link, directory) = (folder.path().join("link"), folder.path().join("directory"));
        std::os::unix::fs::symlink(format!("/dev/{name}"), &link).unwrap();
        std::os::unix::fs::symlink("/dev", &directory).unwrap();
        let up = "../".repeat(folder.path().components().count());
        let up = folder.path().join(format!("{up}dev/{name}"));
        for path in [Path::new("/dev").join(name), Path::new("/dev/shm").join(name), link, directory.join(name), up] {
            let error = Preparation::look(wanted(&[&path])).unwrap_err();
            assert!(matches!(error, TargetError::Block(BlockError::NoDevice { .. })), "{}: {error}", path.display());
            assert!(error.hint().unwrap().contains("lsblk"));
            assert!(!path.exists());
        }
        for directory in ["/proc", "/sys", "/run"] {
            let path = Path::new(directory).join(name);
            let said = Preparation::look(wanted(&[&path])).unwrap_err().to_string();
            assert!(said.contains(&format!("nothing is made below `{directory}`")), "{said}");
            assert!(!path.exists());
        }
        // One of several names is enough, and then none is made.
        let good = folder.path().join("good");
        Preparation::look(wanted(&[&good, &Path::new("/dev").join(name)])).unwrap_err();
        assert!(!good.exists());
    }

    #[test]
    fn a_file_that_is_missing_needs_a_size() {
        let folder = scratch();
        let path = folder.path().join("none");
        let error = Preparation::look(PrepareOptions { size: None, ..wanted(&[&path]) }).unwrap_err();
        assert!(error.hint().unwrap().contains("--size"), "{error}");
        assert!(!path.exists());
    }
}
