//! What a user asked to have written somewhere.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{OFlags, Stat};
use rustix::process::geteuid;

use crate::own::{How, like};
use crate::place::{MAX_LINKS, Place, folder_of, judge_links, judge_new, kind_of};
use crate::{Kind, Refusal, make_new, remove, rename};

/// Where a result goes.
enum Where {
    /// A pipe or a character device, which is written to as it is.
    Stream(File),
    /// A file that is replaced when the new one is complete, or made: its path without links, and what is there.
    File(PathBuf, Option<Stat>),
}

/// Writes a result. A file is written whole or not at all: what was there before stays until the new one is complete. A link of this user
/// or of root stays one, and what it leads to is replaced. Pipes and character devices are written to.
///
/// # Errors
/// A [`Refusal`] for block devices, directories, sockets, links of other users and places among the kernel's own files; what `write` says; or the
/// system's error. Nothing new is left then.
pub fn write_result(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let (place, existing) = match find(path)? {
        Where::Stream(file) => {
            let mut out = BufWriter::new(file);
            return write(&mut out).and_then(|()| out.flush());
        }
        Where::File(place, existing) => (place, existing),
    };
    let mut temporary = place.clone().into_os_string();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = PathBuf::from(temporary);
    // A file of this user's keeps its permissions, from the first byte on.
    let own = existing.as_ref().filter(|before| before.st_uid == geteuid().as_raw());
    let how = own.map_or_else(How::default, |before| How { mode: before.st_mode & 0o600, ..How::default() });
    // Made new, so that nothing which lies there under this name is followed or written over.
    let file = make_new(&temporary, how)?;
    let as_before = existing.as_ref().map_or(Ok(()), |before| like(before, &file));
    let mut out = BufWriter::new(file);
    let written =
        as_before.and_then(|()| write(&mut out)).and_then(|()| out.flush()).and_then(|()| rename(&temporary, &place));
    if written.is_err() {
        let _ = remove(&temporary);
    }
    written
}

/// Says whether a result could be written there. Changes nothing.
///
/// # Errors
/// As [`write_result`].
pub fn judge_result(path: &Path) -> io::Result<()> {
    let found = judge(path)?;
    if found.is_none() { folder_of(path).metadata().map(drop) } else { Ok(()) }
}

/// What is there; none if nothing is.
fn judge(path: &Path) -> io::Result<Option<Kind>> {
    judge_links(path, MAX_LINKS)?;
    // Asked with the last link followed: what it leads to counts.
    let kind = match rustix::fs::stat(path) {
        Ok(found) => kind_of(&found),
        Err(rustix::io::Errno::NOENT) => {
            judge_new(path)?;
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    match kind {
        Kind::Plain | Kind::Pipe | Kind::CharacterDevice => Ok(Some(kind)),
        Kind::Directory => Err(ErrorKind::IsADirectory.into()),
        kind => Err(Refusal::NoPlaceForResults(kind).into()),
    }
}

fn find(path: &Path) -> io::Result<Where> {
    match judge(path)? {
        Some(Kind::Plain) => Ok(Where::File(fs::canonicalize(path)?, rustix::fs::stat(path).ok())),
        Some(_) => {
            let file = File::options().write(true).custom_flags(OFlags::NOCTTY.bits() as i32).open(path)?;
            // What has taken its place meanwhile is not written to.
            let kind = kind_of(&rustix::fs::fstat(&file)?);
            match kind {
                Kind::Pipe | Kind::CharacterDevice => Ok(Where::Stream(file)),
                kind => Err(Refusal::NoPlaceForResults(kind).into()),
            }
        }
        None => Ok(Where::File(Place::of(&led_to(path, MAX_LINKS)?)?.path(), None)),
    }
}

/// Where links lead whose end is not there yet.
fn led_to(path: &Path, links: u32) -> io::Result<PathBuf> {
    match fs::read_link(path) {
        Ok(_) if links == 0 => Err(rustix::io::Errno::LOOP.into()),
        Ok(target) => led_to(&folder_of(path).join(target), links - 1),
        Err(_) => Ok(path.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::io::Read;
    use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};

    use super::*;

    fn write(path: &Path, text: &str) -> io::Result<()> {
        write_result(path, |out| out.write_all(text.as_bytes()))
    }

    fn refused(path: &Path) -> String {
        assert!(judge_result(path).is_err(), "{}", path.display());
        write(path, "text").expect_err("refused").to_string()
    }

    #[test]
    fn a_link_of_ours_stays_one_and_what_it_leads_to_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("there")).unwrap();
        symlink("there/file", dir.path().join("link")).unwrap();
        for text in ["first", "second"] {
            write(&dir.path().join("link"), text).unwrap();
            assert_eq!(fs::read_to_string(dir.path().join("there/file")).unwrap(), text);
        }
        assert!(dir.path().join("link").is_symlink());
        assert_eq!(fs::read_dir(dir.path().join("there")).unwrap().count(), 1, "nothing unfinished is left");
    }

    #[test]
    fn what_is_replaced_keeps_who_may_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("table.csv");
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        for before in [0o600, 0o640, 0o444] {
            fs::write(&path, "before").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(before)).unwrap();
            write(&path, "after").unwrap();
            assert_eq!((mode(), fs::read_to_string(&path).unwrap().as_str()), (before, "after"));
            fs::remove_file(&path).unwrap();
        }
        if geteuid().is_root() {
            fs::write(&path, "a stranger's").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o602)).unwrap();
            std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
            write(&path, "ours").unwrap();
            assert_eq!((fs::metadata(&path).unwrap().uid(), mode() & 0o022), (0, 0), "it is not given away");
        }
    }

    #[test]
    fn what_cannot_be_written_to_its_end_leaves_what_was_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("table.csv");
        fs::write(&path, "before").unwrap();
        let failed = write_result(&path, |out| {
            out.write_all(b"half")?;
            Err(io::Error::other("the disk is full"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "the disk is full");
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing half-written is left");
    }

    #[test]
    fn pipes_and_character_devices_stay_what_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || {
                let mut text = String::new();
                File::open(pipe).unwrap().read_to_string(&mut text).unwrap();
                text
            }
        });
        write(&pipe, "text").unwrap();
        assert_eq!(reader.join().unwrap(), "text");
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
        write(Path::new("/dev/null"), "text").unwrap();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    }

    #[test]
    fn nothing_else_is_written_to() {
        let dir = tempfile::tempdir().unwrap();
        assert!(refused(dir.path()).contains("directory"));
        let socket = dir.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert!(refused(&socket).contains("a socket"));
        assert!(refused(Path::new("/dev/no-such-device")).contains("below `/dev`"));
        symlink("/dev/no-such-device", dir.path().join("link")).unwrap();
        assert!(refused(&dir.path().join("link")).contains("below `/dev`"));
        symlink("round", dir.path().join("round")).unwrap();
        refused(&dir.path().join("round"));
        assert!(refused(&dir.path().join("missing/file")).contains("No such file"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3, "nothing was made");
    }

    #[test]
    fn links_of_others_lead_nowhere() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can make a link that belongs to somebody else");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let (victim, link) = (dir.path().join("victim"), dir.path().join("link"));
        fs::write(&victim, "before").unwrap();
        symlink(&victim, &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(65534), None).unwrap();
        assert!(refused(&link).contains("symbolic link of user 65534"));
        let way = dir.path().join("way");
        symlink(dir.path(), &way).unwrap();
        std::os::unix::fs::lchown(&way, Some(65534), None).unwrap();
        assert!(refused(&way.join("new")).contains("symbolic link of user 65534"));
        assert_eq!(fs::read_to_string(&victim).unwrap(), "before");
    }
}
