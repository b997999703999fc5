//! Which files of a server hold its data and which its log: directories and files as the kernel numbers them.
//!
//! All knowledge of names is here; in the kernel only numbers are compared.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::family;
use crate::os::Root;
use crate::os::mounts::{self, Mount, holding};
use crate::os::proc::DeviceNumber;

/// More places than this would make the program slow to load. Directories come first, so that it is single files which are then
/// called `other`.
const MAX_PLACES: usize = 500;
/// Names of a directory that are looked at.
const MAX_LISTED: usize = 20_000;

/// What a file is to its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Anything else, or unknown.
    Other,
    /// Tables and indexes.
    Data,
    /// The write-ahead log of PostgreSQL.
    Wal,
    /// Redo logs of any other server.
    Redo,
}

/// How files lie to a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reach {
    /// The place is the directory above the directory that holds them.
    Grandchildren,
    /// The place is the directory that holds them.
    Children,
    /// The place is the file itself.
    Itself,
}

/// A directory or file that says what files are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClassifiedPath {
    /// Its path without symbolic links.
    pub(super) path: PathBuf,
    /// Which files it reports on.
    pub(super) reach: Reach,
    /// What they are.
    pub(super) kind: Kind,
    /// The device of its file system, as the kernel numbers it.
    pub(super) device: DeviceNumber,
    /// Its number there.
    pub(super) inode: u64,
}

/// The places of the servers that the process and its children work for. Empty where none is known, or where this user may
/// not look.
pub(super) fn of_process(root: &Root, pid: u32) -> Vec<ClassifiedPath> {
    let mounts = mounts::all(root);
    let mut places: Vec<ClassifiedPath> = Vec::new();
    for claim in claims_of(root, pid) {
        if let Some(place) = claim.numbered(&mounts).filter(|place| places.iter().all(|known| !known.is_same(place))) {
            places.push(place);
        }
    }
    places.truncate(MAX_PLACES);
    places
}

/// What the working directories and open files of a process and its children report.
fn claims_of(root: &Root, pid: u32) -> BTreeSet<Claim> {
    let processes = family(root, pid);
    let mut claims = of_directories(root, &processes);
    for pid in processes {
        for descriptor in children(&root.path(format!("/proc/{pid}/fd"))) {
            let Ok(path) = fs::read_link(descriptor) else { continue };
            claims.extend(of_file(&path));
        }
    }
    claims
}

/// What the working directories of processes report.
fn of_directories(root: &Root, processes: &[u32]) -> BTreeSet<Claim> {
    let directory = |pid: &u32| fs::read_link(root.path(format!("/proc/{pid}/cwd"))).ok();
    // The children of a server work where it does.
    let directories: BTreeSet<PathBuf> = processes.iter().filter_map(directory).collect();
    directories.iter().flat_map(|directory| of_data_directory(directory)).collect()
}

/// A place by its path alone. They are ordered by reach, those that reach farthest first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    reach: Reach,
    path: PathBuf,
    kind: Kind,
}

impl Claim {
    fn new(path: impl Into<PathBuf>, reach: Reach, kind: Kind) -> Self {
        Self { reach, path: path.into(), kind }
    }

    fn numbered(self, mounts: &[Mount]) -> Option<ClassifiedPath> {
        let Self { reach, path, kind } = self;
        let path = path.canonicalize().ok()?;
        let metadata = path.metadata().ok()?;
        let number = |raw: u64| DeviceNumber { major: libc::major(raw), minor: libc::minor(raw) };
        // What `stat` reports on btrfs is the number of a subvolume; the mount table has the kernel's own.
        let device = holding(mounts, &path, number(metadata.dev()))?.device;
        Some(ClassifiedPath { path, reach, kind, device, inode: metadata.ino() })
    }
}

/// What a file is to its database, for others than the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileClass {
    /// Tables and indexes.
    Data,
    /// The log that makes commits durable.
    Log,
    /// Anything else, or unknown.
    Other,
}

/// How often directories are looked at again for a file of which nothing is known: a tablespace may be new.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// The share of the time that looking takes is at most one in so many.
const LOOKS_ONE_IN: u32 = 50;

/// The files of the database that a process and its children work on, those that come later too.
#[derive(Debug)]
pub struct DatabaseFiles {
    root: Root,
    pid: u32,
    /// Those that reach farthest come last.
    claims: Vec<Claim>,
    looked: Instant,
    /// How long that took.
    took: Duration,
}

impl DatabaseFiles {
    /// Those of a process as this machine numbers it.
    pub fn of(pid: u32) -> Self {
        let mut files =
            Self { root: Root::default(), pid, claims: Vec::new(), looked: Instant::now(), took: Duration::ZERO };
        files.look();
        files
    }

    fn look(&mut self) {
        let begun = Instant::now();
        self.claims = claims_by_path(&self.root, self.pid);
        self.looked = Instant::now();
        self.took = self.looked - begun;
    }

    /// What a file is, by its path without symbolic links.
    pub fn class(&mut self, path: &Path) -> FileClass {
        let known = class_of(&self.claims, path);
        if known != FileClass::Other || self.looked.elapsed() < look_again(self.took) {
            return known;
        }
        self.look();
        class_of(&self.claims, path)
    }
}

/// How long after a look that took so long the next one may come.
fn look_again(took: Duration) -> Duration {
    took.saturating_mul(LOOKS_ONE_IN).max(LOOK_AGAIN)
}

/// The directories of a process and its children without symbolic links, those that reach farthest last. Open files are left out: a file
/// is known by its name when it is classified.
fn claims_by_path(root: &Root, pid: u32) -> Vec<Claim> {
    let real = |claim: Claim| Claim { path: claim.path.canonicalize().unwrap_or(claim.path), ..claim };
    let mut claims: Vec<Claim> = of_directories(root, &family(root, pid)).into_iter().map(real).collect();
    claims.sort_by_key(|claim| std::cmp::Reverse(claim.reach));
    claims.truncate(MAX_PLACES);
    claims
}

fn class_of(claims: &[Claim], path: &Path) -> FileClass {
    // What a name says is of the file itself, so it is nearer than any directory.
    let named = of_file(path).map(|claim| claim.kind);
    let holder = path.parent();
    let above = holder.and_then(Path::parent);
    let known = claims.iter().find(|claim| match claim.reach {
        Reach::Itself => claim.path == path,
        Reach::Children => Some(claim.path.as_path()) == holder,
        Reach::Grandchildren => Some(claim.path.as_path()) == above,
    });
    match named.or_else(|| known.map(|claim| claim.kind)) {
        Some(Kind::Data) => FileClass::Data,
        Some(Kind::Wal | Kind::Redo) => FileClass::Log,
        Some(Kind::Other) | None => FileClass::Other,
    }
}

impl ClassifiedPath {
    fn is_same(&self, other: &Self) -> bool {
        (self.reach, self.device, self.inode) == (other.reach, other.device, other.inode)
    }
}

/// What a server's working directory reports. PostgreSQL, MySQL and MariaDB work in their data directory.
fn of_data_directory(directory: &Path) -> Vec<Claim> {
    let has = |name: &str| directory.join(name).exists();
    if has("PG_VERSION") && has("global") {
        let mut claims = vec![
            Claim::new(directory.join("base"), Reach::Grandchildren, Kind::Data),
            Claim::new(directory.join("global"), Reach::Children, Kind::Data),
            // Often a symbolic link to another device. Before version 10 it was called `pg_xlog`.
            Claim::new(directory.join("pg_wal"), Reach::Children, Kind::Wal),
            Claim::new(directory.join("pg_xlog"), Reach::Children, Kind::Wal),
        ];
        // A tablespace is a link to a directory in which each version has a directory of its own.
        let versions = children(&directory.join("pg_tblspc")).flat_map(|space| children(&space)).take(MAX_PLACES);
        claims.extend(versions.map(|version| Claim::new(version, Reach::Grandchildren, Kind::Data)));
        return claims;
    }
    if has("ibdata1") {
        let mut claims = vec![
            Claim::new(directory, Reach::Grandchildren, Kind::Data),
            Claim::new(directory.join("#innodb_redo"), Reach::Children, Kind::Redo),
        ];
        claims.extend(children(directory).filter_map(|file| of_file(&file)).take(MAX_PLACES));
        return claims;
    }
    Vec::new()
}

fn children(directory: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(directory).into_iter().flatten().take(MAX_LISTED).flatten().map(|entry| entry.path())
}

/// What the name of a file reports, whoever has it open: InnoDB's, Oracle's, and those of the embedded engine.
fn of_file(path: &Path) -> Option<Claim> {
    let name = path.file_name()?.to_str()?;
    let directory = path.parent()?;
    let holder = directory.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if holder == "#innodb_redo" {
        return Some(Claim::new(directory, Reach::Children, Kind::Redo));
    }
    let ends = |ending: &str| name.len() > ending.len() && name.to_ascii_lowercase().ends_with(ending);
    let is_log = name.starts_with("ib_logfile")
        // `redo01.log`; Oracle names logs itself only in a directory of this name.
        || (name.starts_with("redo") && ends(".log"))
        || (holder == "onlinelog" && ends(".log"));
    let is_data =
        name.starts_with("ibdata") || name.starts_with("undo_0") || [".ibd", ".ibu", ".dbf"].into_iter().any(ends);
    let kind = if is_log {
        Kind::Redo
    } else if is_data {
        Kind::Data
    } else {
        return None;
    };
    Some(Claim::new(path, Reach::Itself, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relative_claims(directory: &Path, claims: Vec<Claim>) -> Vec<(String, Reach, Kind)> {
        let relative = |path: &Path| path.strip_prefix(directory).unwrap().display().to_string();
        claims.iter().map(|claim| (relative(&claim.path), claim.reach, claim.kind)).collect()
    }

    #[test]
    fn the_directories_of_postgresql_are_known_its_tablespaces_too() {
        let directory = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        for name in ["base/5", "global", "pg_wal", "pg_tblspc"] {
            fs::create_dir_all(directory.path().join(name)).unwrap();
        }
        fs::write(directory.path().join("PG_VERSION"), "15\n").unwrap();
        fs::create_dir(elsewhere.path().join("PG_15_202209061")).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), directory.path().join("pg_tblspc/16400")).unwrap();
        let claims = relative_claims(directory.path(), of_data_directory(directory.path()));
        let expected = [
            ("base", Reach::Grandchildren, Kind::Data),
            ("global", Reach::Children, Kind::Data),
            ("pg_wal", Reach::Children, Kind::Wal),
            ("pg_xlog", Reach::Children, Kind::Wal),
            ("pg_tblspc/16400/PG_15_202209061", Reach::Grandchildren, Kind::Data),
        ];
        assert_eq!(claims, expected.map(|(path, reach, kind)| (path.to_owned(), reach, kind)));
    }

    #[test]
    fn a_data_directory_of_innodb_tells_logs_from_data() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["ibdata1", "ib_logfile0", "undo_001", "mysql.ibd", "binlog.000001"] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        let mut claims = relative_claims(directory.path(), of_data_directory(directory.path()));
        claims.sort();
        let expected = [
            ("", Reach::Grandchildren, Kind::Data),
            ("#innodb_redo", Reach::Children, Kind::Redo),
            ("ib_logfile0", Reach::Itself, Kind::Redo),
            ("ibdata1", Reach::Itself, Kind::Data),
            ("mysql.ibd", Reach::Itself, Kind::Data),
            ("undo_001", Reach::Itself, Kind::Data),
        ];
        assert_eq!(claims, expected.map(|(path, reach, kind)| (path.to_owned(), reach, kind)));
    }

    #[test]
    fn files_of_other_databases_are_known_by_their_names() {
        let kind = |path: &str| of_file(Path::new(path)).map(|claim| (claim.reach, claim.kind));
        for (path, expected) in [
            ("/u02/oradata/DB/users01.dbf", Some((Reach::Itself, Kind::Data))),
            ("/u02/DB/onlinelog/o1_mf_1_abc_.log", Some((Reach::Itself, Kind::Redo))),
            ("/u01/plimsoll/redo-01.log", Some((Reach::Itself, Kind::Redo))),
            ("/u01/plimsoll/data-0001.dbf", Some((Reach::Itself, Kind::Data))),
            ("/var/lib/mysql/#innodb_redo/#ib_redo7", Some((Reach::Children, Kind::Redo))),
            ("/var/log/redo/messages.log", None),
            ("socket:[123]", None),
            ("/tmp/x.dbf.txt", None),
        ] {
            assert_eq!(kind(path), expected, "{path}");
        }
    }

    #[test]
    fn a_path_is_classified_by_the_claim_that_is_nearest() {
        let claims = [
            Claim::new("/d/mine/ib_logfile0", Reach::Itself, Kind::Redo),
            Claim::new("/d/pg_wal", Reach::Children, Kind::Wal),
            Claim::new("/d", Reach::Grandchildren, Kind::Data),
        ];
        for (path, expected) in [
            ("/d/pg_wal/000000010000000000000001", FileClass::Log),
            ("/d/mine/ib_logfile0", FileClass::Log),
            ("/d/mine/t", FileClass::Data),
            ("/d/mine/below/t", FileClass::Other),
            ("/d/postmaster.pid", FileClass::Other),
            // By its name alone.
            ("/e/users01.dbf", FileClass::Data),
            ("/e/redo01.log", FileClass::Log),
        ] {
            assert_eq!(class_of(&claims, Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn looking_costs_little_and_lists_no_more_than_it_uses() {
        assert_eq!(look_again(Duration::from_millis(1)), LOOK_AGAIN);
        assert_eq!(look_again(Duration::from_secs(2)), Duration::from_secs(100));
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("ibdata1"), "").unwrap();
        (0..MAX_PLACES).for_each(|number| fs::write(directory.path().join(format!("{number}.ibd")), "").unwrap());
        assert_eq!(of_data_directory(directory.path()).len(), 2 + MAX_PLACES);
    }

    #[test]
    fn a_directory_of_anything_else_tells_nothing() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("base")).unwrap();
        assert!(of_data_directory(directory.path()).is_empty());
    }
}
