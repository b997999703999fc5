//! Commits in files of ours: one file for each session, written past the page cache.
//!
//! Before the load every file is written full of zeroes and made durable, and so are their names. So a commit changes blocks alone, and a
//! flush has nothing to do with the file system's own records. A file of its own says which run they are of. It comes first, and is locked
//! while the load goes on.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use files::{How, LockedFile};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use crate::blocks::{Session, Slots, is_of_the_media, whole};
use crate::kept::{Heading, Kept, Named, Problem};
use crate::opening::{FileCommits, Means};
use measure::os;
use model::plain::{self, Links};
use model::units::Bytes;
use targets::database::DropPlan;
use targets::durable::{
    CommitTarget, Committer, Committers, FileSystem, Found, Made, Place, Presence, Shape, whereabouts,
};
use targets::{FileContext as _, TargetError};

/// The file that says whose the others are.
const OPENING: &str = "plimsoll-durable.json";
/// The file that says that the load has ended.
const ENDED: &str = "plimsoll-durable.ended";
/// The file that says that the others are being removed.
const DROPPING: &str = "plimsoll-durable.dropping";
/// Longest of them.
const MAX_OPENING: Bytes = Bytes::kib(4);
/// Room that a load leaves.
const SLACK_BYTES: u64 = 1 << 20;
/// Commits in the files of a directory.
#[derive(Debug)]
pub struct CommitDirectory {
    path: PathBuf,
    commits: FileCommits,
    made: Option<OwnDirectory>,
}

/// A directory that this process has made a load in.
#[derive(Debug)]
struct OwnDirectory {
    shape: Shape,
    made_directory: bool,
    /// Locked as long as this lives; none where not even that was made.
    opening: Option<LockedFile>,
}

impl CommitDirectory {
    /// The directory at `path`. Nothing is looked at yet.
    pub fn new(path: PathBuf, commits: FileCommits) -> Self {
        Self { path, commits, made: None }
    }

    fn named(&self) -> Named {
        named(&self.path)
    }

    /// The slots of a session in its file.
    fn slots(&self, path: &Path) -> Slots {
        Slots { path: path.to_owned(), start: 0, block_bytes: self.commits.block_bytes as usize }
    }

    fn file(&self, session: u32) -> PathBuf {
        self.path.join(file_name(session))
    }

    /// Takes an empty or a new directory.
    fn take(&self, shape: &Shape) -> Result<OwnDirectory, TargetError> {
        let path = &self.path;
        let own = |made_directory| OwnDirectory { shape: *shape, made_directory, opening: None };
        match names_in(path) {
            Ok(names) => {
                if names.iter().any(|name| is_ours(name)) {
                    // A load under way is named as such.
                    drop(hold(path)?);
                    return Err(Problem::Left { at: self.named() }.into());
                }
                if let Some(file) = names.into_iter().next() {
                    return Err(TargetError::NotOurs { path: path.clone(), file });
                }
                files::judge_directory(path).of_file("use", path)?;
                Ok(own(false))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let folder = parent_of(path);
                files::judge_directory(folder).of_file("make a directory in", folder)?;
                files::make_directory(path, 0o755).of_file("make", path)?;
                Ok(own(true))
            }
            Err(error) => Err(error).of_file("list", path),
        }
    }

    fn fill(&mut self, shape: &Shape, stop: &AtomicBool) -> Result<Made, TargetError> {
        let path = self.path.clone();
        let found = FileSystem::of(&path).of_file("look at", &path)?;
        let file_system = found.words();
        if found.is_in_memory() {
            return Err(Problem::InMemory { at: self.named(), on: file_system }.into());
        }
        if found.is_remote() {
            return Err(Problem::Remote { at: self.named(), on: file_system }.into());
        }
        // With room for what the file system itself needs, and for the mark at the end.
        let needed = Bytes(shape.slots() * u64::from(self.commits.block_bytes) + SLACK_BYTES);
        if let Some(space) = os::space(&path).filter(|space| space.available_bytes < needed.0) {
            return Err(Problem::NoSpace { at: self.named(), needed, available: Bytes(space.available_bytes) }.into());
        }
        self.write_opening(shape)?;
        for session in 0..shape.sessions {
            let file_path = self.file(session);
            let no_direct = |source: io::Error| match source.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::INVAL | Errno::OPNOTSUPP) => {
                    Problem::NoDirect { at: named(&path), on: file_system.clone(), source }.into()
                }
                _ => TargetError::File { action: "write", path: file_path.clone(), source },
            };
            let file = files::make_new(&file_path, How { direct: true, ..How::default() }).map_err(no_direct)?;
            self.slots(&file_path).blank(&file, shape.blocks, stop, no_direct)?;
            file.sync_all().of_file("make durable", &file_path)?;
        }
        files::sync_directory(&path).of_file("make durable", &path)?;
        let folder = parent_of(&path);
        files::sync_directory(folder).of_file("make durable", folder)?;
        let at = whereabouts(&path);
        Ok(Made {
            place: Place::Files(found),
            at,
            words: file_system,
            is_here: true,
            started_s: None,
            loses: Vec::new(),
            whole: whole(&path, self.commits.block_bytes),
        })
    }

    fn write_opening(&mut self, shape: &Shape) -> Result<(), TargetError> {
        let path = self.path.join(OPENING);
        let Some(own) = &mut self.made else { return Ok(()) };
        let file = files::make_new(&path, How { mode: 0o644, ..How::default() }).of_file("make", &path)?;
        let kept = Kept::new(shape, own.made_directory);
        // From here on what is there is ours, and goes where the rest cannot be made.
        let file = own.opening.insert(file.into());
        file.try_lock().map_err(io::Error::from).of_file("lock", &path)?;
        let text = serde_json::to_string(&kept).map_err(io::Error::from).of_file("write", &path)?;
        writeln!(file, "{text}").and_then(|()| file.sync_all()).of_file("write", &path)
    }

    /// Reads the file of a session. Returns what is missing of it besides commits.
    fn read_session(
        &self,
        shape: &Shape,
        session: u32,
        stop: &AtomicBool,
        visit: &mut dyn FnMut(u32, u32, Found),
    ) -> Result<Option<String>, TargetError> {
        let path = self.file(session);
        let file = match open_to_read(&path) {
            Ok(file) => file,
            Err(error) if error.kind() != ErrorKind::NotFound && !is_of_the_media(&error) => {
                return Err(error).of_file("open", &path);
            }
            Err(error) => {
                let is_gone = error.kind() == ErrorKind::NotFound;
                let fault = |slot| match is_gone {
                    true => visit(session, slot, Found::Blank),
                    false => visit(session, slot, Found::Unreadable(error.to_string())),
                };
                (0..shape.blocks).for_each(fault);
                return Ok(is_gone.then(|| format!("`{}` is gone", path.display())));
            }
        };
        let ends_early = self.slots(&path).read(&file, (shape, session), stop, visit)?;
        Ok(ends_early.then(|| format!("`{}` is shorter than it was made", path.display())))
    }

    /// Where nothing of the load is there: gone, or elsewhere. `at` is the directory, or what is left of the way to it.
    fn nothing_there(&self, made: &Made) -> Result<Presence, TargetError> {
        let now = whereabouts(&self.path);
        Ok(match elsewhere(&self.path, made)? {
            Some(elsewhere) => elsewhere,
            None if now != made.at => Presence::Elsewhere { made: made.at.clone(), now },
            None => Presence::Gone { what: format!("everything in `{}`", self.path.display()), started_s: None },
        })
    }
}

/// The place where the target was made, if the one at `path` is another.
fn elsewhere(path: &Path, made: &Made) -> Result<Option<Presence>, TargetError> {
    let now = FileSystem::of(path).of_file("look at", path)?;
    Ok(match &made.place {
        Place::Files(then) if then.is_same(&now) => None,
        _ => Some(Presence::Elsewhere { made: made.words.clone(), now: now.words() }),
    })
}

impl CommitTarget for CommitDirectory {
    fn make(&mut self, shape: &Shape, stop: &AtomicBool) -> Result<Made, TargetError> {
        self.made = Some(self.take(shape)?);
        let made = self.fill(shape, stop);
        if made.is_err() {
            // The first error is the one to report.
            let _ = self.unmake();
        }
        made
    }

    fn committers(&self) -> Box<dyn Committers + '_> {
        Box::new(Files(self))
    }

    fn end(&mut self) -> Result<(), TargetError> {
        let Some(own) = &self.made else { return Ok(()) };
        let path = self.path.join(ENDED);
        let mut file = files::make_new(&path, How { mode: 0o644, ..How::default() }).of_file("make", &path)?;
        writeln!(file, "{}", own.shape.run).and_then(|()| file.sync_all()).of_file("write", &path)?;
        files::sync_directory(&self.path).of_file("make durable", &self.path)
    }

    fn unmake(&mut self) -> Result<(), TargetError> {
        let Some(own) = self.made.take() else { return Ok(()) };
        // Without an opening of ours, what is there is of another load that was faster.
        if own.opening.is_none() {
            if own.made_directory {
                let _ = files::remove_directory(&self.path);
            }
            return Ok(());
        }
        remove_all(&self.path, own.made_directory)
    }

    fn read(
        &mut self,
        shape: &Shape,
        made: &Made,
        stop: &AtomicBool,
        visit: &mut dyn FnMut(u32, u32, Found),
    ) -> Result<Presence, TargetError> {
        let path = self.path.clone();
        let names = match names_in(&path) {
            Ok(names) => names,
            Err(error) if error.kind() == ErrorKind::NotFound => return self.nothing_there(made),
            Err(error) => return Err(error).of_file("list", &path),
        };
        if let Some(elsewhere) = elsewhere(&path, made)? {
            return Ok(elsewhere);
        }
        // A snapshot or a copy at another place is of another time.
        let now = whereabouts(&path);
        if now != made.at {
            return Ok(Presence::Elsewhere { made: made.at.clone(), now });
        }
        if names.iter().any(|name| name == DROPPING) {
            return Err(Problem::HalfRemoved { at: self.named() }.into());
        }
        if !names.iter().any(|name| is_ours(name)) {
            return self.nothing_there(made);
        }
        let mut missing = Vec::new();
        let _hold = hold(&path)?;
        match opening_in(&path) {
            Ok(Heading::OfVersion(format)) => return Err(Problem::OtherVersion { at: self.named(), format }.into()),
            Ok(Heading::Kept(kept)) if kept.shape.run != shape.run => {
                return Ok(Presence::OtherRun { run: kept.shape.run });
            }
            Ok(Heading::Kept(kept)) if kept.shape == *shape => {}
            Ok(_) => missing.push(format!("`{OPENING}` is damaged")),
            Err(error) if error.kind() == ErrorKind::NotFound => missing.push(format!("`{OPENING}` is gone")),
            // It may be there once its path is up again.
            Err(error) => return Err(error).of_file("read", &path.join(OPENING)),
        }
        for session in 0..shape.sessions {
            missing.extend(self.read_session(shape, session, stop, visit)?);
        }
        // Whatever is left of it: the load made it in a directory without one.
        let has_ended = names.iter().any(|name| name == ENDED);
        Ok(Presence::There { has_ended, started_s: None, missing, loses: Vec::new() })
    }

    fn plan_drop(&mut self, _: &AtomicBool) -> Result<Box<dyn DropPlan + '_>, TargetError> {
        let path = self.path.clone();
        let names = names_in(&path).of_file("list", &path)?;
        let mut items: Vec<(u64, String)> = Vec::new();
        for name in names.into_iter().filter(|name| is_ours(name)) {
            let found = path.join(&name).symlink_metadata().of_file("look at", &path)?;
            items.push((found.len(), name));
        }
        if items.is_empty() {
            return Err(Problem::Nothing { at: self.named() }.into());
        }
        items.sort();
        let hold = hold(&path)?;
        let made_directory = matches!(opening_in(&path), Ok(Heading::Kept(kept)) if kept.made_directory);
        Ok(Box::new(FilesToRemove { path, items, made_directory, _hold: hold }))
    }

    fn close(self: Box<Self>) -> Result<(), TargetError> {
        Ok(())
    }
}

struct FilesToRemove {
    path: PathBuf,
    items: Vec<(u64, String)>,
    made_directory: bool,
    _hold: Option<LockedFile>,
}

impl DropPlan for FilesToRemove {
    fn what(&self) -> String {
        let bytes = Bytes(self.items.iter().map(|(bytes, _)| bytes).sum());
        format!("{} files of a load of commits, {bytes}, in `{}`", self.items.len(), self.path.display())
    }

    fn items(&self) -> Vec<(u64, String)> {
        self.items.clone()
    }

    fn run(self: Box<Self>, _: &AtomicBool) -> Result<Option<String>, TargetError> {
        remove_all(&self.path, self.made_directory)?;
        Ok((self.made_directory && !self.path.exists()).then(|| "the directory itself".to_owned()))
    }
}

/// Removes what is ours in a directory, with a mark that goes last, so that a removal that is cut off is known for one. Then the directory,
/// if it was made with them and nothing else is in it.
fn remove_all(path: &Path, made_directory: bool) -> Result<(), TargetError> {
    let mark = path.join(DROPPING);
    match files::make_new(&mark, How { mode: 0o644, ..How::default() }) {
        // Where no file fits any more, a removal is what helps.
        Err(error) if ![ErrorKind::AlreadyExists, ErrorKind::StorageFull].contains(&error.kind()) => {
            return Err(error).of_file("make", &mark);
        }
        _ => files::sync_directory(path).of_file("make durable", path)?,
    }
    let mut names = names_in(path).of_file("list", path)?;
    names.retain(|name| is_ours(name));
    names.sort_by_key(|name| name == DROPPING);
    for name in names {
        let file = path.join(name);
        files::remove(&file).of_file("remove", &file)?;
    }
    if made_directory {
        match files::remove_directory(path) {
            Err(error) if error.kind() != ErrorKind::DirectoryNotEmpty => return Err(error).of_file("remove", path),
            _ => {}
        }
    }
    Ok(())
}

/// The sessions of a directory.
struct Files<'a>(&'a CommitDirectory);

impl Committers for Files<'_> {
    fn open(&self, session: u32) -> Result<Box<dyn Committer + '_>, TargetError> {
        let CommitDirectory { commits: FileCommits { means, .. }, made, .. } = self.0;
        let shape = made.as_ref().map(|own| own.shape).ok_or(TargetError::Stopped)?;
        let path = self.0.file(session);
        let how = How { direct: true, durable: *means == Means::Dsync, ..How::default() };
        let file = files::open_own(&path, how).of_file("open", &path)?;
        Ok(Box::new(Session::new(file, self.0.slots(&path), *means, shape, session)))
    }
}

fn opening_in(path: &Path) -> io::Result<Heading> {
    match plain::read_text(&path.join(OPENING), Links::Refused, MAX_OPENING) {
        Ok(text) => Ok(Heading::read(&text)),
        Err(error) if [ErrorKind::InvalidData, ErrorKind::FileTooLarge].contains(&error.kind()) => Ok(Heading::Damaged),
        Err(error) => Err(error),
    }
}

fn file_name(session: u32) -> String {
    format!("plimsoll-durable-{:04}.blocks", session + 1)
}

/// Whether a file has a name that is made here.
fn is_ours(name: &str) -> bool {
    let number = || name.strip_prefix("plimsoll-durable-")?.strip_suffix(".blocks");
    let is_number = |text: &str| text.len() >= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    [OPENING, ENDED, DROPPING].contains(&name) || number().is_some_and(is_number)
}

fn named(path: &Path) -> Named {
    Named { kind: "dir", path: path.to_owned() }
}

fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn names_in(path: &Path) -> io::Result<Vec<String>> {
    fs::read_dir(path)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

/// Takes the lock of a directory, so that no load begins or goes on in it; none where there is nothing to lock.
fn hold(path: &Path) -> Result<Option<LockedFile>, TargetError> {
    let Ok(file) = plain::open(&path.join(OPENING), Links::Refused).map(LockedFile::from) else { return Ok(None) };
    match file.try_lock_shared() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => {
            let holder = opening_in(path).unwrap_or(Heading::Damaged).holder();
            Err(Problem::InUse { at: named(path), holder }.into())
        }
        // A file system without locks has no load that holds one.
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

/// Opens a file of ours past the page cache, or through it where that is not possible any more.
fn open_to_read(path: &Path) -> io::Result<File> {
    let file = plain::open(path, Links::Refused)?;
    let flags = fcntl_getfl(&file)?;
    match fcntl_setfl(&file, flags | OFlags::DIRECT) {
        Ok(()) | Err(Errno::INVAL) => Ok(file),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
#[path = "directory_tests.rs"]
mod tests;
