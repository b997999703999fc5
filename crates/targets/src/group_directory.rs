//! A disk group as a place for files: its members found, kept from others, opened, made.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::TargetError;
use super::block::safety::Permission;
use super::block::{Member, MemberLocation, VirtualPlace};
use super::error::FileContext;
use super::group::{DiskGroup, GroupAccess, MemberOffer, Striping, read_header};
use super::io::{
    Access, Claim, Durability, FileUse, FoundFile, IoEngine, Opening, StorageFile, VirtualDirectory, VirtualFile,
};
use super::nfs::NfsDirectory;
use files::How;
use model::config::group::GroupSpec;
use model::config::nfs::NfsAddress;
use model::record::{FileFacts, TargetFacts};
use model::units::Bytes;

/// A disk group that is open for reads until something is to be written, and made when the first file is, if it is new.
pub struct GroupDirectory {
    spec: GroupSpec,
    places: Vec<MemberLocation>,
    permission: Permission,
    /// When writes to members count as done: for all files of the group.
    durability: Durability,
    io_engine: IoEngine,
    opened: Mutex<Opened>,
}

impl fmt::Debug for GroupDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GroupDirectory({})", self.spec)
    }
}

enum Opened {
    /// No path holds a member of any group.
    New,
    /// Open for this, with what keeps others away from the members.
    Group { group: DiskGroup, access: GroupAccess, _members: Vec<Member> },
    /// It could not be opened again.
    Lost,
}

fn elsewhere(name: &str) -> Result<MemberLocation, TargetError> {
    let wrong = |why: String, hint: String| TargetError::Place { place: PathBuf::from(name), why, hint };
    let address: NfsAddress = name
        .parse()
        .map_err(|problem: model::config::ServerAddressProblem| wrong(problem.to_string(), problem.hint()))?;
    let directory = NfsDirectory::of_file(&address).map_err(|error| wrong(error.to_string(), error.hint()))?;
    Ok(MemberLocation::Virtual(VirtualPlace::new(Arc::new(directory), address.directory_and_name().1.to_owned())))
}

impl GroupDirectory {
    /// Looks at a group. Nothing is written. `permission` has what the user said about data that may be lost, for members of a new group.
    ///
    /// # Errors
    /// That it cannot be opened, or what a new one lacks.
    pub fn look(
        spec: &GroupSpec,
        permission: &Permission,
        durability: Durability,
        io_engine: IoEngine,
    ) -> Result<Self, TargetError> {
        let place = |(_, name): (u32, &str)| {
            if name.starts_with("nfs://") { elsewhere(name) } else { Ok(MemberLocation::Local(PathBuf::from(name))) }
        };
        let places = spec.members().map(place).collect::<Result<Vec<_>, _>>()?;
        let permission = permission.clone();
        let mut this =
            Self { spec: spec.clone(), places, permission, durability, io_engine, opened: Mutex::new(Opened::New) };
        let headers = this.places.iter().map(|place| this.has_header(place)).collect::<Vec<_>>();
        if headers.iter().any(|has| matches!(has, Ok(true))) {
            this.opened = Mutex::new(this.open_for(GroupAccess::Read)?);
            return Ok(this);
        }
        this.places.iter().try_for_each(MemberLocation::refuse_new_among_devices)?;
        // What cannot be read may be a member: no group is made over it.
        for (place, has) in this.places.iter().zip(headers) {
            if let Err(source) = has {
                return Err(TargetError::File {
                    action: "look for a disk group on",
                    path: place.path().to_owned(),
                    source,
                });
            }
            let is_there = place.is_there()?;
            if !is_there && this.spec.size.is_none() {
                let why = format!("`{}` is not there", place.path().display());
                let hint = "check the path, or have files made in this size: `data=normal,size=16G:a|b`".to_owned();
                return Err(TargetError::Place { place: this.shown(), why, hint });
            }
        }
        Ok(this)
    }

    fn shown(&self) -> PathBuf {
        PathBuf::from(format!("+{}", self.spec.name))
    }

    /// Whether a place holds a member of some group.
    fn has_header(&self, place: &MemberLocation) -> io::Result<bool> {
        if !place.is_there().map_err(io::Error::other)? {
            return Ok(false);
        }
        let file = place.open().map_err(io::Error::other)?;
        Ok(read_header(&file)?.is_some_and(|(_, header)| header.name == self.spec.name))
    }

    /// Opens a member for reads, or for writes if it is the group's already or may be written to.
    fn member(&self, place: &MemberLocation, access: GroupAccess) -> Result<Member, TargetError> {
        let mut permission = self.permission.clone();
        if matches!(self.has_header(place), Ok(true)) {
            permission
                .destroy
                .push(fs::canonicalize(place.path()).unwrap_or(place.path().to_owned()).display().to_string());
        }
        let writes = access == GroupAccess::Write;
        let checked = place.check(writes.then_some(&permission))?;
        let access = if writes { Access::ReadWrite } else { Access::Read };
        Member::open(checked, Opening { access, durability: self.durability, ..Opening::READ })
    }

    fn open_for(&self, access: GroupAccess) -> Result<Opened, TargetError> {
        let (mut offers, mut members) = (Vec::new(), Vec::new());
        for (place, (_, name)) in self.places.iter().zip(self.spec.members()) {
            let file = match self.member(place, access) {
                Ok(member) => {
                    let file = Arc::clone(member.file());
                    members.push(member);
                    Ok(file)
                }
                // Somebody who uses a member is no reason to go on without it.
                Err(error @ TargetError::Block(_)) if place.is_there().unwrap_or(false) => return Err(error),
                Err(error) => Err(error.to_string()),
            };
            offers.push(MemberOffer { name: name.to_owned(), file });
        }
        let stop = AtomicBool::new(false);
        let group = DiskGroup::open(&self.spec, offers, access, self.io_engine, &|_, _| {}, &stop)?;
        Ok(Opened::Group { group, access, _members: members })
    }

    /// Makes files of members that are not there, and the group.
    fn make(&self) -> Result<(), TargetError> {
        let mut made: Vec<&MemberLocation> = Vec::new();
        let result = (|| {
            for place in &self.places {
                if !place.is_there()? {
                    made.push(place);
                    self.make_member(place)?;
                }
            }
            let mut permission = self.permission.clone();
            permission.destroy.extend(
                made.iter().filter_map(|place| Some(fs::canonicalize(place.local()?).ok()?.display().to_string())),
            );
            permission.destroy.extend(
                made.iter().filter(|place| place.local().is_none()).map(|place| place.path().display().to_string()),
            );
            let mut members = Vec::new();
            for place in &self.places {
                let checked = place.check(Some(&permission))?;
                members.push(Member::open(checked, Opening { durability: self.durability, ..Opening::WRITE })?);
            }
            let files: Vec<Arc<StorageFile>> = members.iter().map(|member| Arc::clone(member.file())).collect();
            // The check has passed members of other groups only where their names were typed: no mark of ours is on them that it knows.
            Ok(DiskGroup::create(&self.spec, &files)?)
        })();
        if result.is_err() {
            for place in made {
                // Why it was not made is what matters.
                let _ = place.remove();
            }
        }
        result
    }

    fn make_member(&self, place: &MemberLocation) -> Result<(), TargetError> {
        let bytes = self.spec.size.unwrap_or(Bytes(0)).0;
        let failed = |source| TargetError::File { action: "make", path: place.path().to_owned(), source };
        let file = match place {
            MemberLocation::Local(path) => {
                has_space(path, Bytes(bytes))?;
                StorageFile::create(path, Durability::OnSync).map_err(failed)?
            }
            MemberLocation::Virtual(place) => place.create(bytes)?,
        };
        file.reserve(bytes).map_err(failed)?;
        if file.length().map_err(failed)? < bytes {
            // Where space cannot be reserved it has its length all the same; files of the group are written as a whole.
            match place {
                MemberLocation::Local(path) => {
                    let lengthened = files::open_own(path, How::default()).and_then(|file| file.set_len(bytes));
                    lengthened.map_err(failed)?;
                }
                MemberLocation::Virtual(_) => file.write_all_at(&[0; 4096], bytes - 4096).map_err(failed)?,
            }
        }
        file.sync().map_err(failed)
    }

    fn lock(&self) -> MutexGuard<'_, Opened> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the group open for writing: made if it is new, and its copies alike.
    fn with_writable<T>(&self, use_it: impl FnOnce(&DiskGroup) -> Result<T, TargetError>) -> io::Result<T> {
        let mut opened = self.lock();
        if !matches!(&*opened, Opened::Group { access: GroupAccess::Write, .. }) {
            if matches!(&*opened, Opened::New) {
                self.make().map_err(io::Error::other)?;
            }
            // The members' locks for reads go before those for writes are taken.
            *opened = Opened::Lost;
            *opened = self.open_for(GroupAccess::Write).map_err(io::Error::other)?;
        }
        match &*opened {
            Opened::Group { group, .. } => use_it(group).map_err(io::Error::other),
            Opened::New | Opened::Lost => Err(io::Error::other("the disk group could not be opened")),
        }
    }

    fn with_open<T>(&self, use_it: impl FnOnce(Option<&DiskGroup>) -> Result<T, TargetError>) -> io::Result<T> {
        match &*self.lock() {
            Opened::Group { group, .. } => use_it(Some(group)).map_err(io::Error::other),
            Opened::New => use_it(None).map_err(io::Error::other),
            Opened::Lost => Err(io::Error::other("the disk group could not be opened again")),
        }
    }

    /// What it is, in words.
    pub fn words(&self) -> String {
        let GroupSpec { name, redundancy, failure_groups, .. } = &self.spec;
        let is_new = if matches!(&*self.lock(), Opened::New) { ", which will be made" } else { "" };
        let members = self.places.len();
        format!(
            "disk group `{name}` with {redundancy} redundancy: {members} members in {} failure groups{is_new}",
            failure_groups.len()
        )
    }
}

/// Refuses a directory that is not there, and a file system that has no room for a file of so many bytes.
fn has_space(path: &Path, needed: Bytes) -> Result<(), TargetError> {
    let directory = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::metadata(directory).of_file("find", directory)?;
    match measure::os::space(directory).filter(|space| space.available_bytes < needed.0) {
        Some(space) => {
            let available = Bytes(space.available_bytes);
            Err(TargetError::NoSpace { path: path.to_owned(), needed, available })
        }
        None => Ok(()),
    }
}

fn virtual_of(file: StorageFile) -> io::Result<Arc<dyn VirtualFile>> {
    file.virtual_file().cloned().ok_or_else(|| io::ErrorKind::Unsupported.into())
}

impl VirtualDirectory for GroupDirectory {
    fn kind(&self) -> &'static str {
        "disk group"
    }

    fn address_of(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("+{}/{name}", self.spec.name))
    }

    fn find(&self, name: &str) -> io::Result<Option<FoundFile>> {
        self.with_open(|group| {
            let files = group.map(DiskGroup::files).unwrap_or_default();
            let found = files.into_iter().find(|file| file.name == name);
            // Its members are this process's, so a name leads to one file.
            Ok(found.map(|file| FoundFile { length_bytes: file.bytes, identity: (0, 0) }))
        })
    }

    fn open(&self, name: &str, access: Access, _: Durability) -> io::Result<Arc<dyn VirtualFile>> {
        let file = match access {
            Access::Read => self.with_open(|group| {
                let missing = || io::Error::from(io::ErrorKind::NotFound);
                let missing = || TargetError::File { action: "open", path: self.address_of(name), source: missing() };
                Ok(group.ok_or_else(missing)?.open_file(name)?)
            }),
            Access::ReadWrite => self.with_writable(|group| Ok(group.open_file(name)?)),
        };
        virtual_of(file?)
    }

    fn create(&self, name: &str, bytes: u64, of: FileUse, _: Durability) -> io::Result<Arc<dyn VirtualFile>> {
        let striping = match of {
            FileUse::Data => Striping::Coarse,
            FileUse::Redo => Striping::Fine,
        };
        virtual_of(self.with_writable(|group| Ok(group.create_file(name, bytes, striping)?))?)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.with_writable(|group| Ok(group.rename_file(from, to)?))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        if self.find(name)?.is_none() {
            return Ok(());
        }
        self.with_writable(|group| Ok(group.remove_file(name)?))
    }

    fn check_writable(&self) -> io::Result<()> {
        if !matches!(&*self.lock(), Opened::New) {
            return Ok(());
        }
        for place in &self.places {
            if place.is_there().map_err(io::Error::other)? {
                place.check(Some(&self.permission)).map_err(io::Error::other)?;
            } else if let Some(path) = place.local() {
                has_space(path, self.spec.size.unwrap_or(Bytes(0))).map_err(io::Error::other)?;
            }
        }
        Ok(())
    }

    fn free_bytes(&self) -> io::Result<Option<u64>> {
        self.with_open(|group| match group {
            Some(group) => Ok(Some(group.free().0)),
            None => {
                let size_of = |place: &MemberLocation| match place.is_there()? {
                    true => place.length(),
                    false => Ok(self.spec.size.unwrap_or(Bytes(0)).0),
                };
                let sizes = self.places.iter().map(size_of).collect::<Result<Vec<_>, _>>()?;
                Ok(Some(DiskGroup::room(&self.spec, &sizes)?.0))
            }
        })
    }

    fn claim(&self, _: &str, _: &str) -> io::Result<Claim> {
        // The members are this process's alone once the group is open for writing.
        Ok(Box::new(()))
    }

    fn is_claimed(&self, _: &str) -> io::Result<bool> {
        Ok(false)
    }

    fn notes(&self) -> Vec<String> {
        match &*self.lock() {
            Opened::Group { group, .. } => {
                let mut notes = group.notes();
                let missing: Vec<String> = group
                    .members()
                    .into_iter()
                    .filter(|member| !member.online)
                    .map(|member| format!("`{}`", member.name))
                    .collect();
                if !missing.is_empty() {
                    notes.push(format!("disk group `{}` is degraded: without {}", self.spec.name, missing.join(", ")));
                }
                notes
            }
            Opened::New | Opened::Lost => Vec::new(),
        }
    }

    fn facts(&self) -> TargetFacts {
        TargetFacts {
            files: FileFacts { protocol: Some("disk group".to_owned()), ..FileFacts::default() },
            other: [("disk_group".to_owned(), self.spec.to_string())].into(),
            ..TargetFacts::default()
        }
    }
}
