//! Directories and names: made, given and removed.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, RenameFlags, fstat, linkat, mkdirat, renameat, renameat_with, unlinkat};
use rustix::io::Errno;

use crate::place::{MAX_LINKS, Place, judge_links, judge_new, kind_of};
use crate::{Kind, Refusal};

/// Makes a directory that is not there yet, with these bits of the mode.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`] when anything has the name, [`Refusal::KernelsOwn`], or the system's error.
pub fn make_directory(path: &Path, mode: u32) -> io::Result<()> {
    let place = Place::of(path)?;
    place.judge_new()?;
    Ok(mkdirat(place.directory(), &place.name, Mode::from_raw_mode(mode))?)
}

/// Makes a directory and those on the way to it, where they are not there yet.
///
/// # Errors
/// [`Refusal::KernelsOwn`]; as root [`Refusal::LinkOfOthers`]; that something else has one of the names; or the system's error.
pub fn make_directories(path: &Path) -> io::Result<()> {
    // Of a bare name the directory is the current one.
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    judge_new(path)?;
    if rustix::process::geteuid().is_root() {
        judge_links(path, MAX_LINKS)?;
    }
    fs::create_dir_all(path)
}

/// Gives something that we made another name, in place of what has it.
///
/// # Errors
/// [`Refusal::KernelsOwn`], or the system's error.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let (from, to) = (Place::of(from)?, Place::of(to)?);
    to.judge_new()?;
    Ok(renameat(from.directory(), &from.name, to.directory(), &to.name)?)
}

/// Gives a file that we made a name that nothing has yet.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`] when anything has it; [`Refusal::KernelsOwn`]; or the system's error.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    let (from, to) = (Place::of(from)?, Place::of(to)?);
    to.judge_new()?;
    match renameat_with(from.directory(), &from.name, to.directory(), &to.name, RenameFlags::NOREPLACE) {
        // NFS among others does not know that; a second name is as good, where there are any.
        Err(Errno::INVAL | Errno::NOSYS) => {}
        renamed => return Ok(renamed?),
    }
    match linkat(from.directory(), &from.name, to.directory(), &to.name, AtFlags::empty()) {
        Ok(()) => Ok(unlinkat(from.directory(), &from.name, AtFlags::empty())?),
        Err(Errno::EXIST) => Err(ErrorKind::AlreadyExists.into()),
        Err(_) if to.stat()?.is_some() => Err(ErrorKind::AlreadyExists.into()),
        Err(_) => Ok(renameat(from.directory(), &from.name, to.directory(), &to.name)?),
    }
}

/// Removes a file that we made, or a link in its place; never what a link leads to.
///
/// # Errors
/// The system's error; [`ErrorKind::NotFound`] when nothing has the name.
pub fn remove(path: &Path) -> io::Result<()> {
    let place = Place::of(path)?;
    Ok(unlinkat(place.directory(), &place.name, AtFlags::empty())?)
}

/// Removes an empty directory.
///
/// # Errors
/// The system's error.
pub fn remove_directory(path: &Path) -> io::Result<()> {
    let place = Place::of(path)?;
    Ok(unlinkat(place.directory(), &place.name, AtFlags::REMOVEDIR)?)
}

/// Removes a directory that we made with all that is in it. Links in it are removed and not followed.
///
/// # Errors
/// [`Refusal::NoDirectory`] when a link or something else has its name, [`Refusal::OtherFileSystem`] when something is mounted there or
/// below; or the system's error. Nothing is removed then.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    let place = Place::of(path)?;
    let found = place.stat()?.ok_or(ErrorKind::NotFound)?;
    let kind = kind_of(&found);
    if kind != Kind::Directory {
        return Err(Refusal::NoDirectory(kind).into());
    }
    if found.st_dev != place.directory_stat()?.st_dev {
        return Err(Refusal::OtherFileSystem.into());
    }
    let path = place.path();
    if is_mounted_below(&path)? {
        return Err(Refusal::OtherFileSystem.into());
    }
    fs::remove_dir_all(path)
}

/// Whether something is mounted at `path`, which has no links in it, or below: removing would go on in it. A bind mount has the same
/// number of a device as what is around it.
fn is_mounted_below(path: &Path) -> io::Result<bool> {
    let mounts = fs::read("/proc/self/mountinfo")?;
    let path = as_listed(path);
    let place_of =
        |line: &'_ [u8]| line.split(|byte| *byte == b' ').nth(4).map(|place| OsStr::from_bytes(place).to_owned());
    Ok(mounts.split(|byte| *byte == b'\n').filter_map(place_of).any(|place| Path::new(&place).starts_with(&path)))
}

/// A path as the kernel lists it among mounts: a space, a tab, a newline and a backslash are octal numbers.
fn as_listed(path: &Path) -> PathBuf {
    let listed = path.as_os_str().as_bytes().iter().flat_map(|byte| match byte {
        b' ' | b'\t' | b'\n' | b'\\' => format!("\\{byte:03o}").into_bytes(),
        plain => vec![*plain],
    });
    PathBuf::from(OsString::from_vec(listed.collect()))
}

/// Removes a directory of user `owner` with the files in it, but no directories: where one is in it, both stay.
///
/// # Errors
/// [`Refusal::NoDirectory`] when a link or something else has its name, [`Refusal::Stranger`] when it is another user's; or the system's error.
pub fn remove_flat(path: &Path, owner: u32) -> io::Result<()> {
    let place = Place::of(path)?;
    let found = place.stat()?.ok_or(ErrorKind::NotFound)?;
    match kind_of(&found) {
        Kind::Directory => {}
        kind => return Err(Refusal::NoDirectory(kind).into()),
    }
    let held = place.open(OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
    let held_owner = fstat(&held)?.st_uid;
    if held_owner != owner {
        return Err(Refusal::Stranger { owner: held_owner, ours: owner }.into());
    }
    for entry in Dir::read_from(&held)? {
        let entry = entry?;
        if ![c".", c".."].contains(&entry.file_name()) {
            let _ = unlinkat(&held, entry.file_name(), AtFlags::empty());
        }
    }
    Ok(unlinkat(place.directory(), &place.name, AtFlags::REMOVEDIR)?)
}

/// Makes the names in a directory durable.
///
/// # Errors
/// The system's error.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path).and_then(|directory| directory.sync_all())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn refused(result: io::Result<()>) -> String {
        result.expect_err("refused").to_string()
    }

    #[test]
    fn a_tree_in_which_something_is_mounted_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("our tree/mounted here")).unwrap();
        fs::create_dir(at("victims")).unwrap();
        fs::write(at("victims/victim"), "precious").unwrap();
        fs::write(at("our tree/file"), "ours").unwrap();
        let (from, to) = (at("victims"), at("our tree/mounted here"));
        let mount = |program: &str, words: &[&Path]| {
            std::process::Command::new(program).args(words).status().is_ok_and(|status| status.success())
        };
        // Only root may, and not in every container.
        if mount("mount", &[Path::new("--bind"), &from, &to]) {
            let refusal = refused(remove_tree(&at("our tree")));
            assert!(mount("umount", &[&to]));
            assert!(refusal.contains("another file system"), "{refusal}");
            assert!(at("our tree/file").exists() && at("victims/victim").exists());
        } else {
            eprintln!("nothing could be mounted, so that a tree with a mount was not tried");
        }
        assert_eq!(as_listed(Path::new("/a b\\c")), Path::new("/a\\040b\\134c"));
        remove_tree(&at("our tree")).unwrap();
        assert!(!at("our tree").exists() && at("victims/victim").exists());
    }

    #[test]
    fn what_is_removed_is_never_what_a_link_leads_to() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("victims")).unwrap();
        fs::write(at("victims/victim"), "precious").unwrap();
        let owner = rustix::process::geteuid().as_raw();
        symlink(at("victims"), at("link")).unwrap();
        assert!(refused(remove_tree(&at("link"))).contains("a symbolic link"));
        assert!(refused(remove_flat(&at("link"), owner)).contains("a symbolic link"));
        assert!(refused(remove_flat(&at("victims"), owner + 1)).contains("belongs to user"));
        fs::create_dir(at("ours")).unwrap();
        symlink(at("victims"), at("ours/link")).unwrap();
        symlink(at("victims/victim"), at("ours/file")).unwrap();
        remove_flat(&at("ours"), owner).unwrap();
        fs::create_dir_all(at("tree/deeper")).unwrap();
        symlink(at("victims"), at("tree/deeper/link")).unwrap();
        remove_tree(&at("tree")).unwrap();
        remove(&at("link")).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "only what is precious is left");
        assert_eq!(fs::read_to_string(at("victims/victim")).unwrap(), "precious");
    }

    #[test]
    fn a_name_that_is_taken_is_not_given_again() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("new"), "new").unwrap();
        fs::write(at("taken"), "taken").unwrap();
        assert_eq!(rename_new(&at("new"), &at("taken")).unwrap_err().kind(), ErrorKind::AlreadyExists);
        rename_new(&at("new"), &at("free")).unwrap();
        assert_eq!(fs::read_to_string(at("free")).unwrap(), "new");
        assert_eq!(fs::read_to_string(at("taken")).unwrap(), "taken");
        assert!(refused(rename(&at("free"), Path::new("/dev/free"))).contains("below `/dev`"));
        assert!(refused(make_directory(Path::new("/dev/directory"), 0o700)).contains("below `/dev`"));
        assert!(refused(make_directories(Path::new("/dev/directory/deeper"))).contains("below `/dev`"));
    }
}
