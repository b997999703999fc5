//! A name in a directory that is held open, and what may be said of both.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat, openat2, stat, statat, statfs,
};
use rustix::io::Errno;

use crate::{Kind, Refusal};

/// Where the kernel shows itself. What is made there is no file on a disk, and a mistyped device would become one in memory.
const KERNELS_OWN: [&str; 4] = ["/dev", "/proc", "/sys", "/run"];
/// Links that lead to links; the kernel follows as many.
pub(crate) const MAX_LINKS: u32 = 40;
/// A path lookup that ran into a rename elsewhere is tried again this often.
const ATTEMPTS: u32 = 8;

/// A name in a directory that is held open: whoever renames the directory or its parents does not change what is meant.
pub(crate) struct Place {
    directory: OwnedFd,
    /// Path of the directory without links.
    pub(crate) real: PathBuf,
    pub(crate) name: OsString,
}

impl Place {
    /// Looks the directory up. Links on the way to it are followed: where data lie is the user's choice.
    ///
    /// # Errors
    /// The system's error, or that `path` ends with no name.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let named =
            path.file_name().ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "the path ends with no name"))?;
        let real = fs::canonicalize(folder_of(path))?;
        // Resolved once: a link that takes the place of a part of the path meanwhile is refused.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = look_up(CWD, real.as_os_str(), flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
        Ok(Self { directory, real, name: named.to_owned() })
    }

    /// The path without links.
    pub(crate) fn path(&self) -> PathBuf {
        self.real.join(&self.name)
    }

    /// Refuses to make something among the kernel's own files.
    pub(crate) fn judge_new(&self) -> Result<(), Refusal> {
        judge_real(&self.real)
    }

    pub(crate) fn directory(&self) -> impl AsFd {
        self.directory.as_fd()
    }

    /// What has the name, without following a link; none if nothing has.
    pub(crate) fn stat(&self) -> io::Result<Option<Stat>> {
        match statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(None),
            found => Ok(Some(found?)),
        }
    }

    /// Opens the name in the directory: neither a link nor a mount point is crossed.
    pub(crate) fn open(&self, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        match look_up(&self.directory, &self.name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, mode, resolve) {
            Err(Errno::LOOP) => Err(Refusal::NotPlain(Kind::Link).into()),
            Err(Errno::XDEV) => Err(Refusal::OtherFileSystem.into()),
            opened => Ok(opened?),
        }
    }

    /// Whose the directory is, and who may write to it.
    pub(crate) fn directory_stat(&self) -> io::Result<Stat> {
        Ok(fstat(&self.directory)?)
    }
}

/// `openat2`, or `openat` where the kernel (before 5.6) or a container's filter does not know it.
fn look_up(at: impl AsFd, name: &OsStr, flags: OFlags, mode: Mode, resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
    for _ in 0..ATTEMPTS {
        match openat2(&at, name, flags, mode, resolve) {
            // Something was renamed meanwhile, and the kernel cannot say whether that mattered.
            Err(Errno::AGAIN) => {}
            Err(Errno::NOSYS | Errno::PERM) => return look_up_without_openat2(at, name, flags, mode, resolve),
            opened => return opened,
        }
    }
    Err(Errno::AGAIN)
}

fn look_up_without_openat2(
    at: impl AsFd,
    name: &OsStr,
    flags: OFlags,
    mode: Mode,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    let opened = openat(&at, name, flags | OFlags::NOFOLLOW, mode)?;
    let crosses = || Ok::<_, Errno>(fstat(&opened)?.st_dev != fstat(&at)?.st_dev);
    if resolve.contains(ResolveFlags::NO_XDEV) && crosses()? { Err(Errno::XDEV) } else { Ok(opened) }
}

/// The directory that a path lies in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Below these directories a disk may be mounted, as desktops do in `/run/media`; what has a file system in memory is the system's.
fn judge_real(real: &Path) -> Result<(), Refusal> {
    /// `TMPFS_MAGIC`, which `/dev` has too, and `RAMFS_MAGIC`: see statfs(2).
    const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58f6];
    /// `PROC_SUPER_MAGIC`, `SYSFS_MAGIC`, `DEVPTS_SUPER_MAGIC`, `CGROUP_SUPER_MAGIC`, `CGROUP2_SUPER_MAGIC`.
    const OF_THE_KERNEL: [i64; 5] = [0x9fa0, 0x6265_6572, 0x1cd1, 0x0027_e0eb, 0x6367_7270];
    let own = KERNELS_OWN.into_iter().find(|own| real.starts_with(own));
    // What cannot be looked at is taken for the kernel's where its name says so.
    let kind = real.ancestors().find_map(|there| statfs(there).ok()).map(|found| found.f_type);
    let is_kernels = kind.is_some_and(|kind| OF_THE_KERNEL.contains(&kind));
    match own {
        Some(own) if is_kernels || is_same_mount(real, own) || kind.is_none_or(|kind| IN_MEMORY.contains(&kind)) => {
            Err(Refusal::KernelsOwn(own))
        }
        None if is_kernels => Err(Refusal::MadeUp),
        _ => Ok(()),
    }
}

/// Whether the nearest directory that is there lies on the file system of `own`, which in a container may be the root's.
fn is_same_mount(real: &Path, own: &str) -> bool {
    let device = |path: &Path| stat(path).map(|found| found.st_dev);
    let there = real.ancestors().find_map(|there| device(there).ok());
    there.is_none() || there == device(Path::new(own)).ok()
}

/// Says whether something may be made at `path`, of which neither the last parts nor any need to be there yet. Changes nothing.
///
/// # Errors
/// [`Refusal::KernelsOwn`] below `/dev`, `/proc`, `/sys` and `/run`, wherever links and `..` lead, or the system's error.
pub fn judge_new(path: &Path) -> io::Result<()> {
    let absolute = std::path::absolute(path)?;
    for ancestor in absolute.ancestors() {
        match fs::canonicalize(ancestor) {
            Ok(real) => {
                // `..` behind a name that is not there is taken as it will be once the name is.
                let rest = absolute.strip_prefix(ancestor).unwrap_or(Path::new(""));
                return Ok(judge_real(&plainly(&real, rest))?);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                // A link that leads nowhere is made where it leads.
                if let Ok(target) = fs::read_link(ancestor) {
                    let folder = ancestor.parent().unwrap_or(Path::new("/"));
                    judge_real(&plainly(folder, &target))?;
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// `rest` behind `real`, with `..` carried out by words alone.
fn plainly(real: &Path, rest: &Path) -> PathBuf {
    let mut found = real.to_owned();
    for part in rest.components() {
        match part {
            std::path::Component::ParentDir => {
                found.pop();
            }
            std::path::Component::CurDir => {}
            part => found.push(part),
        }
    }
    found
}

/// Says whether root may keep files in a directory, and anybody else his own. Others may neither own it nor write to it when root works
/// there: they could exchange its files at any instant. With the sticky bit they can only make new ones, which are judged one by one.
///
/// # Errors
/// [`Refusal::OpenToOthers`], or the system's error.
pub fn judge_directory(path: &Path) -> io::Result<()> {
    const STICKY: u32 = 0o1000;
    let place = Place::of(&fs::canonicalize(path)?.join("name"))?;
    let found = place.directory_stat()?;
    let (mode, owner, group) = (found.st_mode, found.st_uid, found.st_gid);
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    judge_links(path, MAX_LINKS)?;
    if owner != 0 {
        return Err(Refusal::OpenToOthers(format!("`{}` belongs to user {owner}", place.real.display())).into());
    }
    let others = mode & 0o002 != 0 || (mode & 0o020 != 0 && group != 0);
    if others && mode & STICKY == 0 {
        let mode = mode & 0o7777;
        return Err(Refusal::OpenToOthers(format!("`{}` has mode {mode:04o}", place.real.display())).into());
    }
    Ok(())
}

/// Refuses links that somebody else made, in every part of a path and in what they lead to. Those of root are the system's.
pub(crate) fn judge_links(path: &Path, links: u32) -> io::Result<()> {
    let ours = rustix::process::geteuid().as_raw();
    for part in path.ancestors() {
        let Ok(found) = part.symlink_metadata() else { continue };
        if !found.is_symlink() {
            continue;
        }
        let owner = found.uid();
        if ![0, ours].contains(&owner) {
            return Err(Refusal::LinkOfOthers { link: part.to_owned(), owner }.into());
        }
        if links == 0 {
            return Err(rustix::io::Errno::LOOP.into());
        }
        judge_links(&folder_of(part).join(fs::read_link(part)?), links - 1)?;
    }
    Ok(())
}

/// What a `Stat` describes.
pub(crate) fn kind_of(stat: &Stat) -> Kind {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Kind::Plain,
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Link,
        FileType::BlockDevice => Kind::BlockDevice,
        FileType::CharacterDevice => Kind::CharacterDevice,
        FileType::Fifo => Kind::Pipe,
        FileType::Socket => Kind::Socket,
        FileType::Unknown => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn refused(result: io::Result<()>) -> String {
        result.expect_err("refused").to_string()
    }

    #[test]
    fn a_kernel_without_openat2_refuses_links_and_other_file_systems_too() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "a").unwrap();
        symlink("file", dir.path().join("link")).unwrap();
        let at = fs::File::open(dir.path()).unwrap();
        let look_up = |at: &fs::File, name: &str, resolve| {
            look_up_without_openat2(at, name.as_ref(), OFlags::RDONLY, Mode::empty(), resolve).map(drop)
        };
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        assert_eq!(look_up(&at, "file", resolve), Ok(()));
        assert_eq!(look_up(&at, "link", resolve), Err(Errno::LOOP));
        let root = fs::File::open("/").unwrap();
        assert_eq!(look_up(&root, "proc", resolve), Err(Errno::XDEV));
        assert_eq!(look_up(&root, "proc", ResolveFlags::NO_SYMLINKS), Ok(()));
    }

    #[test]
    fn nothing_is_made_among_the_kernels_files_whichever_way_leads_there() {
        let dir = tempfile::tempdir().unwrap();
        symlink("/dev", dir.path().join("to-dev")).unwrap();
        symlink("/dev/sdq", dir.path().join("to-nothing")).unwrap();
        symlink("../../../../../../../../dev/sdq", dir.path().join("relative")).unwrap();
        for path in [
            "/dev/sdq".into(),
            "/dev/mapper/new/deeper".into(),
            "/tmp/../dev/sdq".into(),
            "/tmp/no-such-directory-here/../../dev/sdq".into(),
            "/run/x".into(),
            "/var/run/x".into(),
            "/proc/x".into(),
            "/sys/block/x".into(),
            "//dev//sdq".into(),
            dir.path().join("to-dev/sdq"),
            dir.path().join("to-nothing"),
            dir.path().join("relative"),
        ] {
            assert!(refused(judge_new(&path)).starts_with("nothing is made below"), "{}", path.display());
        }
        for path in [dir.path().join("new"), dir.path().join("new/deeper"), dir.path().join("dev/x"), "/device".into()]
        {
            judge_new(&path).unwrap();
        }
    }

    #[test]
    fn root_keeps_no_files_where_others_may_exchange_them() {
        let dir = tempfile::tempdir().unwrap();
        let mode = |mode| fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
        let is_root = rustix::process::geteuid().is_root();
        mode(0o777);
        assert_eq!(judge_directory(dir.path()).is_err(), is_root);
        mode(0o1777);
        judge_directory(dir.path()).unwrap();
        mode(0o700);
        judge_directory(dir.path()).unwrap();
        if is_root {
            std::os::unix::fs::chown(dir.path(), Some(65534), None).unwrap();
            assert!(refused(judge_directory(dir.path())).contains("belongs to user 65534"));
        }
    }
}
