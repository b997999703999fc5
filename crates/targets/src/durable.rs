//! The seam for commits that must outlast a power failure: what makes them durable, and what reads them back.
//!
//! A session has a ring of slots. Its commits are numbered from 1, and number `n` replaces what slot `(n - 1) % blocks` held. So the
//! space is bounded, and each slot says which commit reached it last.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use measure::doctor;
use measure::os::Root;
use measure::os::mounts::{self, ResolvedPath};
use serde::{Deserialize, Serialize};

use crate::TargetError;
use crate::database::DropPlan;

/// Most sessions of one load.
pub const MAX_SESSIONS: u32 = 1024;
/// Most slots of all sessions together: 32 GiB of blocks, or 32 MiB of times.
pub const MAX_SLOTS: u64 = 1 << 22;

/// Which commits there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// Number of the run, by which its commits are known from those of others.
    pub run: u64,
    /// Sessions, numbered from 0.
    pub sessions: u32,
    /// Slots of each session.
    pub blocks: u32,
}

impl Shape {
    /// Whether there can be such a load.
    pub fn is_sensible(&self) -> bool {
        (1..=MAX_SESSIONS).contains(&self.sessions) && self.blocks > 1 && self.slots() <= MAX_SLOTS
    }

    /// Slots of all sessions.
    pub fn slots(&self) -> u64 {
        u64::from(self.sessions) * u64::from(self.blocks)
    }

    /// The slot that commit number `seq` writes; that of number 1 for 0, which is none.
    pub fn slot_of(&self, seq: u64) -> u32 {
        u32::try_from(seq.saturating_sub(1) % u64::from(self.blocks.max(1))).unwrap_or(0)
    }
}

/// What a slot holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Nothing: no commit has reached it.
    Blank,
    /// Commit number `seq` of the slot's session, whole.
    Whole {
        /// Its number.
        seq: u64,
    },
    /// Parts of several commits, or what none wrote.
    Torn(Torn),
    /// A whole commit that belongs elsewhere.
    Foreign(Owner),
    /// It cannot be read, for this reason.
    Unreadable(String),
}

/// A slot that holds no one commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Torn {
    /// Lowest number of a commit of which a part is there, 0 where a part was never written; none where nothing of it is of this slot.
    pub oldest: Option<u64>,
    /// Highest number of a commit of which a part is there.
    pub newest: Option<u64>,
    /// Parts that none of this slot's commits wrote.
    pub strange: u32,
}

/// Whose a commit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// Its run.
    pub run: u64,
    /// Its session.
    pub session: u32,
    /// Its slot.
    pub slot: u32,
    /// Its number.
    pub seq: u64,
}

/// Where commits are kept, as it can be known again after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Files on this file system.
    Files(FileSystem),
    /// A block device.
    Device(DeviceIdentity),
    /// A server that calls itself so; empty where it does not say.
    Server(String),
}

impl Place {
    /// Its kind, for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Files(_) => "files",
            Self::Device(_) => "device",
            Self::Server(_) => "server",
        }
    }
}

/// What is to be known of a target once it has been made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Made {
    /// Where it is.
    pub place: Place,
    /// Which directory, schema or database there, as [`whereabouts`] has a directory.
    pub at: String,
    /// For a reader: `xfs on /dev/sdb1`, `PostgreSQL 15.4`.
    pub words: String,
    /// Whether it is on the machine of the load, as far as that is known: then that machine's power is its own.
    pub is_here: bool,
    /// When a server that others run was started, in seconds since 1970 by its own clock.
    pub started_s: Option<u64>,
    /// Settings by which commits may be lost, as `name=value`.
    pub loses: Vec<String>,
    /// What states that a power failure leaves a write of the load whole or undone, in words.
    pub whole: Option<String>,
}

/// What became of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// It is there, and every slot was visited.
    There {
        /// Whether the load said on the target that it had ended.
        has_ended: bool,
        /// When a server that others run was started, as [`Made::started_s`].
        started_s: Option<u64>,
        /// What is missing of it besides commits, in sentences.
        missing: Vec<String>,
        /// Settings by which commits may be lost, as [`Made::loses`], now.
        loses: Vec<String>,
    },
    /// Nothing of it is there, and the place is the same.
    Gone {
        /// What is gone, to be read before "is gone".
        what: String,
        /// As above.
        started_s: Option<u64>,
    },
    /// The place is not the one where it was made: another file system, server, directory or schema.
    Elsewhere {
        /// Where it was made.
        made: String,
        /// What is there now.
        now: String,
    },
    /// The place holds another run.
    OtherRun {
        /// Its number.
        run: u64,
    },
}

/// What keeps commits.
pub trait CommitTarget {
    /// Makes room for all commits of a load, durably, and says what is to be known of it. Where that fails, nothing that was made stays.
    ///
    /// # Errors
    /// When something of an earlier load is there, or the system or the server refuses; [`TargetError::Interrupted`].
    fn make(&mut self, shape: &Shape, stop: &AtomicBool) -> Result<Made, TargetError>;

    /// What opens sessions, once [`make`](Self::make) has succeeded.
    fn committers(&self) -> Box<dyn Committers + '_>;

    /// Notes on the target that the load has ended, so that a later power cut is not taken for one under load.
    ///
    /// # Errors
    /// When it cannot be written.
    fn end(&mut self) -> Result<(), TargetError>;

    /// Removes what [`make`](Self::make) made.
    ///
    /// # Errors
    /// When something of it stays.
    fn unmake(&mut self) -> Result<(), TargetError>;

    /// Reads every slot, in the order of sessions and slots, and changes nothing. `made` is what was known of it before.
    ///
    /// # Errors
    /// When it cannot be read at all, or a load is under way there; [`TargetError::Interrupted`].
    fn read(
        &mut self,
        shape: &Shape,
        made: &Made,
        stop: &AtomicBool,
        visit: &mut dyn FnMut(u32, u32, Found),
    ) -> Result<Presence, TargetError>;

    /// What a removal would remove: all that loads of commits made there, whole or not.
    ///
    /// # Errors
    /// When there is nothing, or a load is under way there.
    fn plan_drop(&mut self, stop: &AtomicBool) -> Result<Box<dyn DropPlan + '_>, TargetError>;

    /// What the user should know.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Leaves it.
    ///
    /// # Errors
    /// When a server of ours does not end.
    fn close(self: Box<Self>) -> Result<(), TargetError>;
}

/// Opens sessions, for several threads at once.
pub trait Committers: Sync {
    /// Session number `session`, to be used by the thread that opens it.
    ///
    /// # Errors
    /// When it cannot be opened.
    fn open(&self, session: u32) -> Result<Box<dyn Committer + '_>, TargetError>;
}

/// One session.
pub trait Committer {
    /// Makes commit number `seq` durable by the chosen means; it is acknowledged when this returns.
    ///
    /// # Errors
    /// When that is not known to have been done; [`TargetError::Interrupted`] once `stop` is set.
    fn commit(&mut self, seq: u64, stop: &AtomicBool) -> Result<(), TargetError>;
}

/// A path without links, as far as it is there, and as it would be where it is not.
pub fn whereabouts(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let found = absolute.ancestors().find_map(|part| Some((part, fs::canonicalize(part).ok()?)));
    let real = found.map(|(part, real)| real.join(absolute.strip_prefix(part).unwrap_or(Path::new(""))));
    // A path that is there whole is joined with nothing, which leaves a separator.
    let real: PathBuf = real.unwrap_or(absolute).components().collect();
    real.to_string_lossy().into_owned()
}

/// A mounted file system, as it can be known again after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSystem {
    /// Its own number, where `/dev/disk/by-uuid` has it.
    pub uuid: Option<String>,
    /// Its type, such as `xfs`.
    pub kind: String,
    /// What is mounted, such as `/dev/sdb1`.
    pub source: String,
    /// The number that `statvfs` gives.
    pub fsid: u64,
}

impl FileSystem {
    /// The one on which `path` is, or would be made.
    ///
    /// # Errors
    /// The system's error.
    pub fn of(path: &Path) -> std::io::Result<Self> {
        let root = Root::default();
        let there = ResolvedPath::nearest(&root, path).ok_or(std::io::ErrorKind::NotFound)?;
        let fsid = rustix::fs::statvfs(&there.path)?.f_fsid;
        let mounts = mounts::all(&root);
        let mount = mounts::holding(&mounts, &there.path, there.device);
        let (kind, source) = mount.map(|mount| (mount.kind.clone(), mount.source.clone())).unwrap_or_default();
        Ok(Self { uuid: uuid_of(&source), kind, source, fsid })
    }

    /// Whether it is the one that was seen as `other`: by its own number, else by its type and what `statvfs` says.
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.uuid, &other.uuid) {
            (Some(own), Some(theirs)) => own == theirs,
            // Some number themselves 0, all of them.
            _ => {
                let is_known = self.fsid != 0 || self.source == other.source;
                is_known && self.kind == other.kind && self.fsid == other.fsid
            }
        }
    }

    /// Whether its files are on another machine.
    pub fn is_remote(&self) -> bool {
        doctor::is_remote(&self.kind)
    }

    /// Whether its files are in memory.
    pub fn is_in_memory(&self) -> bool {
        doctor::is_in_memory(&self.kind)
    }

    /// For a reader.
    pub fn words(&self) -> String {
        match (self.kind.as_str(), self.source.as_str()) {
            ("", _) => "an unknown file system".to_owned(),
            (kind, source) => format!("{kind} on {source}"),
        }
    }
}

/// A block device, as it can be known again after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceIdentity {
    /// What `/dev/disk/by-id` calls it: by its serial number, or by that of its volume. Empty where nothing does.
    pub ids: Vec<String>,
    /// Its length.
    pub bytes: u64,
}

impl DeviceIdentity {
    /// That of the device at `path`.
    pub fn of(path: &Path, bytes: u64) -> Self {
        let mut ids = links_to("/dev/disk/by-id", path);
        ids.sort();
        Self { ids, bytes }
    }

    /// Whether it is the one that was seen as `other`; none where that cannot be told.
    pub fn is_same(&self, other: &Self) -> Option<bool> {
        if self.bytes != other.bytes {
            return Some(false);
        }
        let is_known = !self.ids.is_empty() && !other.ids.is_empty();
        is_known.then(|| self.ids.iter().any(|id| other.ids.contains(id)))
    }
}

fn uuid_of(source: &str) -> Option<String> {
    links_to("/dev/disk/by-uuid", Path::new(source)).into_iter().next()
}

/// Names in a folder of links that lead to a device.
fn links_to(folder: &str, device: &Path) -> Vec<String> {
    let Some(device) = fs::canonicalize(device).ok().filter(|device| device.starts_with("/dev")) else {
        return Vec::new();
    };
    let links = fs::read_dir(folder).into_iter().flatten().flatten();
    let own = links.filter(|link| fs::canonicalize(link.path()).is_ok_and(|leads_to| leads_to == device));
    own.map(|link| link.file_name().to_string_lossy().into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_is_not_there_is_on_the_file_system_above_it() {
        assert!(FileSystem::of(Path::new(".")).unwrap().is_same(&FileSystem::of(Path::new("./not/there")).unwrap()));
    }

    #[test]
    fn a_directory_is_found_at_the_same_place_whether_it_is_there_or_not() {
        let folder = tempfile::tempdir().unwrap();
        let real = fs::canonicalize(folder.path()).unwrap();
        let before = whereabouts(&folder.path().join("x"));
        assert_eq!(before, real.join("x").to_string_lossy());
        fs::create_dir(folder.path().join("x")).unwrap();
        assert_eq!(whereabouts(&folder.path().join("./x/")), before);
        std::os::unix::fs::symlink("x", folder.path().join("link")).unwrap();
        assert_eq!(whereabouts(&folder.path().join("link")), before);
    }

    #[test]
    fn a_file_system_is_known_by_its_own_number_where_both_have_one() {
        let one =
            FileSystem { uuid: Some("a".to_owned()), kind: "xfs".to_owned(), source: "/dev/sdb".to_owned(), fsid: 7 };
        let moved = FileSystem { source: "/dev/sdc".to_owned(), fsid: 8, ..one.clone() };
        assert!(one.is_same(&moved));
        let unnamed = FileSystem { uuid: None, ..one.clone() };
        assert!(one.is_same(&unnamed) && !moved.is_same(&unnamed));
        assert!(!one.is_same(&FileSystem { uuid: Some("b".to_owned()), ..one.clone() }));
        assert!(!one.is_remote() && FileSystem { kind: "9p".to_owned(), ..one }.is_remote());
    }

    #[test]
    fn a_device_is_known_by_its_names_and_never_by_its_length_alone() {
        let device = |ids: &[&str], bytes| DeviceIdentity { ids: ids.iter().map(|&id| id.to_owned()).collect(), bytes };
        assert_eq!(device(&["wwn-1", "scsi-1"], 8).is_same(&device(&["wwn-1"], 8)), Some(true));
        assert_eq!(device(&["wwn-1"], 8).is_same(&device(&["wwn-2"], 8)), Some(false));
        assert_eq!(device(&["wwn-1"], 8).is_same(&device(&["wwn-1"], 9)), Some(false));
        assert_eq!(device(&["wwn-1"], 8).is_same(&device(&[], 8)), None);
        assert_eq!(device(&[], 8).is_same(&device(&[], 8)), None);
    }

    #[test]
    fn commits_go_round_in_the_slots() {
        let shape = Shape { run: 1, sessions: 2, blocks: 4 };
        assert_eq!([1, 4, 5, 8, 9].map(|seq| shape.slot_of(seq)), [0, 3, 0, 3, 0]);
        assert!(shape.is_sensible() && shape.slots() == 8);
        for wrong in [
            Shape { sessions: 0, ..shape },
            Shape { blocks: 1, ..shape },
            Shape { sessions: MAX_SESSIONS + 1, ..shape },
            Shape { sessions: 1024, blocks: u32::MAX, ..shape },
        ] {
            assert!(!wrong.is_sensible(), "{wrong:?}");
        }
    }
}
