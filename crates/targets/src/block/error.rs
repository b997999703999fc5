//! Why files and devices cannot be used as a volume.

use std::path::{Path, PathBuf};

use super::signature::Signature;
use super::usage::Usage;
use super::users::Process;
use model::units::Bytes;

const LARGER: &str = "use a larger file or device; `--size` lays out a new file";
const LARGER_OR_NARROWER: &str = "use larger files or devices, or a smaller `--stripe`; `--size` lays out new files";

/// Why files and devices cannot be used as a volume.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum BlockError {
    /// The number of paths does not fit the layout.
    #[error("a {layout} volume needs {needed}, and {found} were given")]
    #[diagnostic(help("name other paths, or choose another layout"))]
    Members {
        /// The layout asked for.
        layout: String,
        /// What it needs, such as `at least 2 paths`.
        needed: &'static str,
        /// Paths given.
        found: usize,
    },
    /// The unit of a stripe or mirror cannot be used.
    #[error("a unit of {unit} cannot be used: it must be a multiple of 4 KiB, more than 0 and at most 1 GiB")]
    #[diagnostic(help("databases use 1M, which is also what disk groups use"))]
    Unit {
        /// The unit asked for.
        unit: Bytes,
    },
    /// Two paths that are to be compared have everything in common.
    #[error("`{first}` and `{second}` lie on one device ({place}), which gives both together what it gives one", first = .first.display(), second = .second.display())]
    #[diagnostic(help("name paths on devices of their own, or leave `--together` out and load them as one volume"))]
    OneDevice {
        /// One path.
        first: PathBuf,
        /// The other.
        second: PathBuf,
        /// The device or file system.
        place: String,
    },
    /// Nothing is there, in a directory of devices.
    #[error("there is no device `{path}`", path = .path.display())]
    #[diagnostic(help("`lsblk` lists the devices that are there"))]
    NoDevice {
        /// The path.
        path: PathBuf,
    },
    /// Nothing is there, and nobody said how large it should be.
    #[error("`{path}` is not there", path = .path.display())]
    #[diagnostic(help("check the path, or lay the file out: `--size 16G`"))]
    Missing {
        /// The path.
        path: PathBuf,
    },
    /// Reads would reach no device.
    #[error("reading `{path}` would measure nothing: only {} % of it was ever written", per_cent_below(*written_share), path = .path.display())]
    #[diagnostic(help(
        "what was never written comes from no device; remove the file and let it be laid out: `--size 16G`"
    ))]
    NothingPhysical {
        /// The file.
        path: PathBuf,
        /// Share of it that was written, from 0 to 1.
        written_share: f64,
    },
    /// What is there does not carry our stamps.
    #[error("`{path}` cannot be checked: Plimsoll did not lay it out", path = .path.display())]
    #[diagnostic(help(
        "name a new file with `--size`, or have this one overwritten first: `--destroy NAME --prefill`"
    ))]
    NotLaidOut {
        /// The file or device.
        path: PathBuf,
    },
    /// Every block has a write in flight, or had one that failed.
    #[error("none of the {blocks} blocks is free to be written: each is being written, or its write failed")]
    #[diagnostic(help("use more of the volume (`--size`) or a smaller `--depth`, or leave `--verify` out"))]
    NoBlockFree {
        /// Blocks that there are.
        blocks: u64,
    },
    /// Data are not what was written.
    #[error("bad data in `{}`: {why}", path.display())]
    #[diagnostic(help("the storage or another program changed it; find out which before trusting this storage"))]
    BadData {
        /// The file or device.
        path: PathBuf,
        /// What is wrong, and where.
        why: String,
    },
    /// The smallest member does not hold a single unit.
    #[error("the smallest path has {smallest}, and each must hold at least {needed}")]
    #[diagnostic(help("{}", if *needed > Bytes::kib(4) { LARGER_OR_NARROWER } else { LARGER }))]
    TooSmall {
        /// Size of the smallest member.
        smallest: Bytes,
        /// What each member must hold.
        needed: Bytes,
    },
    /// A file cannot be laid out in this size.
    #[error("`{path}` cannot be laid out with {size}: it must be a multiple of 4 KiB and more than 0", path = .path.display())]
    #[diagnostic(help("give a size such as `10G`"))]
    Size {
        /// The file.
        path: PathBuf,
        /// Size asked for.
        size: Bytes,
    },
    /// The file system is too small.
    #[error("`{path}` needs {needed} and its file system has {available} free", path = .path.display())]
    #[diagnostic(help("ask for less (`--size`), free some space, or use another file system"))]
    NoSpace {
        /// The file.
        path: PathBuf,
        /// Space needed.
        needed: Bytes,
        /// Space left.
        available: Bytes,
    },
    /// The path led to one file when it was checked and to another when it was opened.
    #[error("`{path}` was replaced by another file meanwhile", path = .path.display())]
    #[diagnostic(help("find out what replaced it, then start again"))]
    Replaced {
        /// The path given.
        path: PathBuf,
    },
    /// Neither a regular file nor a block device.
    #[error("`{path}` is {kind}; load lands on regular files and block devices only", path = .path.display())]
    #[diagnostic(help("{}", hint_for_kind(kind, path)))]
    WrongKind {
        /// The path given.
        path: PathBuf,
        /// What it is, such as `a directory`.
        kind: &'static str,
    },
    /// Two paths lead to the same storage.
    #[error("`{first}` and `{second}` are {what}", first = .first.display(), second = .second.display())]
    #[diagnostic(help("name each file or device once"))]
    Same {
        /// The path given first.
        first: PathBuf,
        /// The other.
        second: PathBuf,
        /// What they are: `the same file`, or `a disk and its partition`.
        what: &'static str,
    },
    /// Somebody uses it.
    #[error("`{path}` cannot be written to: {uses}", path = .path.display(), uses = listed(.uses))]
    #[diagnostic(help("end its use first, or choose another file or device"))]
    InUse {
        /// The path given.
        path: PathBuf,
        /// By whom, at least one.
        uses: Vec<Usage>,
    },
    /// Other programs may write to it at any moment, and nobody has said that this does not matter.
    #[error("`{path}` is open for writing by {by}", path = .path.display(), by = listed(.by))]
    #[diagnostic(help("stop that program, or use another file; to write anyway, type the name: `--destroy {name}`"))]
    OpenElsewhere {
        /// The path given.
        path: PathBuf,
        /// By whom, at least one.
        by: Vec<Process>,
        /// What is to be typed.
        name: String,
    },
    /// Somebody whom the kernel does not name has it for himself alone.
    #[error("`{path}` is in use: another program or the kernel has `{device}` for itself alone", path = .path.display())]
    #[diagnostic(help("find its user with `lsblk` and `fuser -v`; reading it is always possible"))]
    Claimed {
        /// The path given.
        path: PathBuf,
        /// The device, the path itself or one of its partitions.
        device: String,
    },
    /// Whether it is in use is unknown.
    #[error("cannot tell whether `{path}` is in use: `{what}` cannot be read", path = .path.display())]
    #[diagnostic(help("run where /proc and /sys can be read, or use a file instead"))]
    Unseen {
        /// The path given.
        path: PathBuf,
        /// What is hidden.
        what: String,
    },
    /// Another Plimsoll works on the file.
    #[error("`{path}` is in use by another Plimsoll", path = .path.display())]
    #[diagnostic(help(
        "wait until it ends, or use another file; before parts of a fleet read one file, lay it out by one run without \
         `--part`"
    ))]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// Another Plimsoll has said on a server that it works on the file, or has crashed before it could take that back.
    #[error("`{path}` is in use by another Plimsoll, or was when that crashed", path = .path.display())]
    #[diagnostic(help(
        "wait until it ends. If no other program uses the file, remove what it left next to it: \
        `.{name}.plimsoll-claim`"
    ))]
    Held {
        /// The file.
        path: PathBuf,
        /// Its name in its directory.
        name: String,
    },
    /// Nobody has said that its data may be lost.
    #[error("writing to `{path}` destroys {what}", path = .path.display())]
    #[diagnostic(help("if you no longer need its data, type its name: `--destroy {name}`"))]
    NotAllowed {
        /// The path given.
        path: PathBuf,
        /// What would be lost.
        what: &'static str,
        /// What is to be typed.
        name: String,
    },
    /// It looks used.
    #[error("`{path}` holds data: {found}", path = .path.display(), found = listed(.found))]
    #[diagnostic(help("if none of this is needed any more, say so as well: `--destroy-signature`"))]
    Signed {
        /// The path given.
        path: PathBuf,
        /// What was found, at least one.
        found: Vec<Signature>,
    },
}

/// Never rounded up, so that what is not whole is not called 100 %.
fn per_cent_below(share: f64) -> f64 {
    (share * 1_000.0).floor() / 10.0
}

fn listed<T: ToString>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

fn hint_for_kind(kind: &str, path: &Path) -> String {
    match kind {
        "a directory" => format!("name a file in it: `{}`", path.join("plimsoll.dat").display()),
        _ => "name a regular file or a block device".to_owned(),
    }
}

impl BlockError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        model::hint(self)
    }
}
