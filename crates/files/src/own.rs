//! Files that we keep.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Stat, Uid, fchmod, fcntl_setfl, fstat, lstat, open, stat, unlinkat};
use rustix::io::Errno;

use crate::names::sync_directory;
use crate::place::{Place, kind_of};
use crate::{Kind, Refusal};

/// How a file is opened. It is always closed when another program is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct How {
    /// Bits of the mode that a new file gets, less those of the process's mask.
    pub mode: u32,
    /// Whether the page cache is bypassed (`O_DIRECT`).
    pub direct: bool,
    /// Whether each write is durable when it returns (`O_DSYNC`).
    pub durable: bool,
    /// Whether all is written at the end.
    pub append: bool,
    /// A user whose files are ours as well: the one who runs a private server.
    pub also: Option<u32>,
}

impl Default for How {
    fn default() -> Self {
        Self { mode: 0o666, direct: false, durable: false, append: false, also: None }
    }
}

impl How {
    fn flags(self) -> OFlags {
        let mut flags = if self.append { OFlags::WRONLY | OFlags::APPEND } else { OFlags::RDWR };
        flags.set(OFlags::DIRECT, self.direct);
        flags.set(OFlags::DSYNC, self.durable);
        flags
    }

    fn mode(self) -> Mode {
        Mode::from_raw_mode(self.mode)
    }

    fn judge(self, found: &Stat) -> Result<(), Refusal> {
        let ours = rustix::process::geteuid().as_raw();
        let kind = kind_of(found);
        if kind != Kind::Plain {
            return Err(Refusal::NotPlain(kind));
        }
        if found.st_nlink > 1 {
            return Err(Refusal::ManyNames);
        }
        let owner = found.st_uid;
        if ![0, ours].contains(&owner) && self.also != Some(owner) {
            return Err(Refusal::Stranger { owner, ours });
        }
        Ok(())
    }
}

/// Makes a file that is not there yet, and opens it for reading and writing.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`] when anything has the name, be it a link that leads nowhere; [`Refusal::KernelsOwn`]; or the system's error.
pub fn make_new(path: &Path, how: How) -> io::Result<File> {
    make_at(&Place::of(path)?, how)
}

fn make_at(place: &Place, how: How) -> io::Result<File> {
    place.judge_new()?;
    Ok(place.open(how.flags() | OFlags::CREATE | OFlags::EXCL, how.mode())?.into())
}

/// Opens a file that we keep, for reading and writing.
///
/// # Errors
/// A [`Refusal`] unless it is a plain file with one name, of this user or of root, on the file system of its directory; or the system's error.
pub fn open_own(path: &Path, how: How) -> io::Result<File> {
    open_at(&Place::of(path)?, how)
}

fn open_at(place: &Place, how: How) -> io::Result<File> {
    // Judged before it is opened: opening a tape or a watchdog for writing is an act in itself.
    let found = place.stat()?.ok_or(ErrorKind::NotFound)?;
    how.judge(&found)?;
    // What has taken its place meanwhile may be a pipe that nobody reads.
    let opened = place.open(how.flags() | OFlags::NONBLOCK, Mode::empty())?;
    how.judge(&fstat(&opened)?)?;
    fcntl_setfl(&opened, how.flags())?;
    Ok(opened.into())
}

/// Opens a file that we keep, or makes it.
///
/// # Errors
/// As [`open_own`] and [`make_new`].
pub fn open_or_make_own(path: &Path, how: How) -> io::Result<File> {
    let place = Place::of(path)?;
    loop {
        match open_at(&place, how) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            opened => return opened,
        }
        match make_at(&place, how) {
            // Somebody was faster; what he made is judged.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return made,
        }
    }
}

/// Opens a file or device for reading and writing that the caller has judged: links are followed, as the user typed them.
///
/// # Errors
/// The system's error. Nothing is made.
pub fn open_judged(path: &Path, how: How) -> io::Result<File> {
    let flags = how.flags() & (OFlags::DIRECT | OFlags::DSYNC);
    File::options().read(true).write(true).custom_flags(flags.bits() as i32).open(path)
}

/// Opens a file or device that is only read.
///
/// # Errors
/// The system's error.
pub fn open_to_read(path: &Path, how: How) -> io::Result<File> {
    let flags = how.flags() & (OFlags::DIRECT | OFlags::DSYNC);
    File::options().read(true).custom_flags(flags.bits() as i32).open(path)
}

/// What a link at the path itself means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// What it leads to is opened: the user named it.
    Followed,
    /// It is refused: the file belongs to a folder that others may have filled, and must not lead out of it.
    Refused,
    /// It is refused, and so is a file with a second name or of another user than this one and root: what it says is acted upon.
    Ours,
}

/// Opens a plain file that somebody else may have made, for reading. A pipe that nobody writes to is not waited for.
///
/// # Errors
/// A [`Refusal`], or the system's error.
pub fn open_plain(path: &Path, links: Links) -> io::Result<File> {
    let must_be_plain = |found: &Stat| match kind_of(found) {
        Kind::Plain if links == Links::Ours => How::default().judge(found),
        Kind::Plain => Ok(()),
        kind => Err(Refusal::NotPlain(kind)),
    };
    // Looked at first, since opening a device can move a tape, and again afterwards, since it may have been exchanged meanwhile.
    must_be_plain(&if links == Links::Followed { stat(path) } else { lstat(path) }?)?;
    let no_follow = if links == Links::Followed { OFlags::empty() } else { OFlags::NOFOLLOW };
    let opened =
        open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | no_follow, Mode::empty())?;
    must_be_plain(&fstat(&opened)?)?;
    Ok(opened.into())
}

/// Gives a file or directory that we made to another user, who is to work with it.
///
/// # Errors
/// A [`Refusal`] when it is a link, has more than one name, or is neither ours nor that user's; or the system's error.
pub fn give(path: &Path, user: u32, group: u32) -> io::Result<()> {
    let place = Place::of(path)?;
    let held = place.open(OFlags::PATH, Mode::empty())?;
    let found = fstat(&held)?;
    if kind_of(&found) == Kind::Directory {
        let ours = rustix::process::geteuid().as_raw();
        if ![0, ours, user].contains(&found.st_uid) {
            return Err(Refusal::Stranger { owner: found.st_uid, ours }.into());
        }
    } else {
        How { also: Some(user), ..How::default() }.judge(&found)?;
    }
    let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
    Ok(rustix::fs::chownat(&held, "", Some(user), Some(group), AtFlags::EMPTY_PATH)?)
}

/// Takes a block device for this process alone, as a mount does (`O_EXCL`); it is opened for reading, so that asking changes nothing.
///
/// # Errors
/// [`ErrorKind::ResourceBusy`] when it is mounted or somebody else has it so, or the system's error.
pub fn claim_device(path: &Path) -> io::Result<File> {
    File::options().read(true).custom_flags(OFlags::EXCL.bits() as i32).open(path)
}

/// Writes a document whole or not at all, and durably: first under `temporary`, a name in the same directory, then under its own. What an
/// earlier attempt left there is cleared away; anything else there is refused.
///
/// # Errors
/// A [`Refusal`] when either name stands for something that is not ours, or the system's error; the old document is kept.
pub fn replace_own(path: &Path, temporary: &str, text: &[u8]) -> io::Result<()> {
    let place = Place::of(path)?;
    let unfinished = Place::of(&path.with_file_name(temporary))?;
    let existing = place.stat()?;
    if let Some(found) = &existing {
        How::default().judge(found)?;
    }
    if let Some(found) = unfinished.stat()? {
        let in_the_way = |why| Refusal::InTheWay { name: temporary.to_owned(), why: Box::new(why) };
        How::default().judge(&found).map_err(in_the_way)?;
    }
    match unlinkat(unfinished.directory(), &unfinished.name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let mut file = make_at(&unfinished, How::default())?;
    let as_before = existing.as_ref().map_or(Ok(()), |before| like(before, &file));
    let written = as_before.and_then(|()| file.write_all(text)).and_then(|()| file.sync_all()).and_then(|()| {
        Ok(rustix::fs::renameat(unfinished.directory(), &unfinished.name, place.directory(), &place.name)?)
    });
    if written.is_err() {
        let _ = unlinkat(unfinished.directory(), &unfinished.name, AtFlags::empty());
    }
    written?;
    sync_directory(&place.real)
}

/// Gives a new file the permissions of the one that it replaces, if that was this user's. What was somebody else's becomes this user's
/// with the usual permissions: it is not given away.
pub(crate) fn like(before: &Stat, new: &File) -> io::Result<()> {
    let made = fstat(new)?;
    if made.st_uid != before.st_uid {
        return Ok(());
    }
    // What one group may do is no right of another.
    let kept = if made.st_gid == before.st_gid { 0o777 } else { 0o707 };
    Ok(fchmod(new, Mode::from_raw_mode(before.st_mode & kept))?)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    type Open = fn(&Path, How) -> io::Result<File>;

    fn refusal<T>(result: io::Result<T>) -> Option<Refusal> {
        result.err()?.downcast::<Refusal>().ok()
    }

    /// Everything that may lie in the place of a file of ours, each by what is refused about it.
    #[test]
    fn what_is_acted_upon_is_read_only_if_it_is_ours() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("file"), "text").unwrap();
        assert!(open_plain(&at("file"), Links::Ours).is_ok());
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        let refused = |name: &str| open_plain(&at(name), Links::Ours).expect_err("refused").to_string();
        assert!(refused("link").contains("symbolic link"), "{}", refused("link"));
        fs::hard_link(at("file"), at("second")).unwrap();
        assert!(open_plain(&at("file"), Links::Refused).is_ok() && !refused("file").is_empty());
        if rustix::process::geteuid().is_root() {
            fs::write(at("strangers"), "text").unwrap();
            std::os::unix::fs::chown(at("strangers"), Some(65_534), None).unwrap();
            assert!(refused("strangers").contains("belongs to user 65534"), "{}", refused("strangers"));
        }
    }

    #[test]
    fn only_a_plain_file_of_ours_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let victim = at("victim");
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, at("link")).unwrap();
        symlink(at("nowhere"), at("dangling")).unwrap();
        fs::hard_link(&victim, at("second")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        fs::create_dir(at("directory")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        for open in [open_own as Open, open_or_make_own] {
            let refused = |name: &str| refusal(open(&at(name), How::default()));
            assert_eq!(refused("link"), Some(Refusal::NotPlain(Kind::Link)));
            assert_eq!(refused("dangling"), Some(Refusal::NotPlain(Kind::Link)));
            assert_eq!(refused("second"), Some(Refusal::ManyNames));
            assert_eq!(refused("pipe"), Some(Refusal::NotPlain(Kind::Pipe)));
            assert_eq!(refused("directory"), Some(Refusal::NotPlain(Kind::Directory)));
            assert_eq!(refused("socket"), Some(Refusal::NotPlain(Kind::Socket)));
        }
        for name in ["link", "dangling", "second", "pipe", "directory", "socket"] {
            let made = make_new(&at(name), How::default());
            assert_eq!(made.unwrap_err().kind(), ErrorKind::AlreadyExists, "{name}");
            assert!(refusal(replace_own(&at(name), "new", b"text")).is_some(), "{name} as the document");
            assert!(refusal(replace_own(&at("new"), name, b"text")).is_some(), "{name} as the unfinished document");
        }
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert!(!at("nowhere").exists() && !at("new").exists());
    }

    #[test]
    fn files_of_others_are_refused() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can give a file away");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "").unwrap();
        chown(&path, Some(65534), None).unwrap();
        assert_eq!(refusal(open_own(&path, How::default())), Some(Refusal::Stranger { owner: 65534, ours: 0 }));
        open_own(&path, How { also: Some(65534), ..How::default() }).unwrap();
    }

    #[test]
    fn what_an_earlier_attempt_left_is_cleared_away() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("document");
        fs::write(dir.path().join("document.new"), "half of a very long text").unwrap();
        replace_own(&path, "document.new", b"first").unwrap();
        replace_own(&path, "document.new", b"second").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "second");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing unfinished is left");
    }

    #[test]
    fn a_file_that_is_opened_blocks_and_appends_as_asked() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        open_or_make_own(&path, How { append: true, ..How::default() }).unwrap().write_all(b"one").unwrap();
        open_or_make_own(&path, How { append: true, ..How::default() }).unwrap().write_all(b"two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "onetwo");
        let flags = rustix::fs::fcntl_getfl(open_own(&path, How::default()).unwrap()).unwrap();
        assert!(!flags.contains(OFlags::NONBLOCK));
    }
}
