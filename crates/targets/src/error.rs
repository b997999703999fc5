//! Why a target cannot do what was asked.

use std::io;
use std::path::PathBuf;

use super::block::BlockError;
use super::embedded::BlockFault;
use super::group::GroupError;
use super::network::NetError;
use miette::Diagnostic;
use model::units::Bytes;

const FIND_WHAT_CHANGED: &str = "the storage or another program changed it; find out which before trusting this storage, then \
                                 `plimsoll slob verify` lists all damage and `plimsoll slob setup --replace` makes the data again";
/// What to do where a process may open no more files or connections.
pub const MORE_FILES: &str = "raise the limit of open files: `ulimit -n 65536`";
const STILL_ANSWERS: &str = "look whether the server and the network to it still answer";

/// Why a target could not be set up, opened or driven.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum TargetError {
    /// A system call on a file failed.
    #[error("cannot {action} `{path}`: {source}", path = .path.display())]
    #[diagnostic(help("{}", io_hint(source).unwrap_or_default()))]
    File {
        /// What was tried, such as `open`.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A request for one range of a file failed.
    #[error("cannot {action} {bytes} bytes at offset {offset} of `{path}`: {source}", path = .path.display())]
    #[diagnostic(help("{}", io_hint(source).unwrap_or_default()))]
    Request {
        /// `read`, `write`, `flush` or `discard`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Where in the file.
        offset: u64,
        /// How much.
        bytes: u32,
        /// The system's reason.
        source: io::Error,
    },
    /// The kernel refused something that is not about one file.
    #[error("cannot {action}: {source}")]
    #[diagnostic(help("{}", kernel_hint(source).unwrap_or_default()))]
    Kernel {
        /// What was tried.
        action: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// So many operations failed that going on would measure the failing.
    #[error("{errors} operations of one thread failed one after the other, so the load was ended")]
    #[diagnostic(help("the kernel log (`dmesg`) says what the device reported"))]
    TooManyErrors {
        /// Operations that failed.
        errors: u64,
    },
    /// Sessions got no answer.
    #[error("{sessions} sessions had no answer for {} after the window had closed", model::units::Nanos(*waited_ns))]
    #[diagnostic(help("{STILL_ANSWERS}"))]
    Silent {
        /// Sessions that still waited.
        sessions: u64,
        /// How long after the window had closed.
        waited_ns: u64,
    },
    /// Sessions got no answer, and their server reports that it still works on what they asked for.
    #[error(
        "a server still worked for {sessions} sessions {} after Plimsoll requested to cancel",
        model::units::Nanos(*waited_ns)
    )]
    #[diagnostic(help("{STILL_ANSWERS}"))]
    StillAtWork {
        /// Sessions that still waited.
        sessions: u64,
        /// How long after it was asked to cancel.
        waited_ns: u64,
    },
    /// A block is not what was written.
    #[error("bad block {block} at offset {offset} of `{path}`: {fault}", path = .path.display())]
    #[diagnostic(help("{FIND_WHAT_CHANGED}"))]
    BadBlock {
        /// The data file.
        path: PathBuf,
        /// Number of the block in the data set.
        block: u64,
        /// Offset in the file.
        offset: u64,
        /// What is wrong with it.
        fault: BlockFault,
    },
    /// A file is shorter than it was made.
    #[error("`{path}` was truncated: it has {length} bytes where {expected} belong", path = .path.display())]
    #[diagnostic(help(
        "find out what cut it before trusting this storage, then have it made again: `plimsoll slob setup --replace`, \
         or `--size` with a new path for `plimsoll io`"
    ))]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Its length now.
        length: u64,
        /// Its length when it was made.
        expected: u64,
    },
    /// A device was removed from the machine.
    #[error("the device `{path}` was removed while it was in use", path = .path.display())]
    #[diagnostic(help("the kernel log says why: `dmesg`"))]
    Unplugged {
        /// Its path.
        path: PathBuf,
    },
    /// A file has no name any more.
    #[error("`{path}` was deleted while it was in use", path = .path.display())]
    #[diagnostic(help(
        "find out what removed it, then have it made again: `plimsoll slob setup`, or `--size` for `plimsoll io`"
    ))]
    Vanished {
        /// The path it had.
        path: PathBuf,
    },
    /// Another process works on the directory.
    #[error("`{path}` is in use by another process{holder}", path = .path.display())]
    #[diagnostic(help("wait until it ends, or use another directory: `--target dir:PATH`"))]
    Locked {
        /// The directory.
        path: PathBuf,
        /// Who holds it, as far as it is known, with a leading blank.
        holder: String,
    },
    /// There is no data set.
    #[error("no SLOB data in `{path}`", path = .path.display())]
    #[diagnostic(help("make some: `plimsoll slob setup -s 1 SCALE=1G --target dir:{}`", path.display()))]
    NotSetUp {
        /// The directory.
        path: PathBuf,
    },
    /// A set-up was begun and never finished.
    #[error("the set-up of `{path}` was never finished", path = .path.display())]
    #[diagnostic(help("run `plimsoll slob setup` again; it starts over"))]
    HalfSetUp {
        /// The directory.
        path: PathBuf,
    },
    /// The ledger of acknowledged commits is not where it is kept.
    #[error("`{directory}` has no ledger of the data in `{data}`", directory = .directory.display(), data = .data.display())]
    #[diagnostic(help("mount that directory, or name the one that has the ledger: `--ledger DIR`"))]
    NoLedger {
        /// Where it is kept.
        directory: PathBuf,
        /// The directory of the data.
        data: PathBuf,
    },
    /// A ledger of acknowledged commits is that of other data.
    #[error("`{path}` is the ledger of other data than `{data}`", path = .path.display(), data = .data.display())]
    #[diagnostic(help(
        "name the directory that `plimsoll slob setup --ledger` was given for these data: `--ledger DIR`"
    ))]
    ForeignLedger {
        /// The ledger.
        path: PathBuf,
        /// The directory of the data.
        data: PathBuf,
    },
    /// A data set exists already and differs from the one asked for.
    #[error("`{path}` already holds other SLOB data: {difference}", path = .path.display())]
    #[diagnostic(help("ask for the same data, use another directory, or replace it: `plimsoll slob setup --replace`"))]
    DifferentData {
        /// The directory.
        path: PathBuf,
        /// What differs.
        difference: String,
    },
    /// The directory holds files that are not ours.
    #[error("`{path}` is not empty and was not made by Plimsoll: it holds `{file}`", path = .path.display())]
    #[diagnostic(help("name an empty or a new directory: `--target dir:PATH`"))]
    NotOurs {
        /// The directory.
        path: PathBuf,
        /// One of the foreign files.
        file: String,
    },
    /// A place elsewhere cannot be used for files.
    #[error("cannot use `{place}`: {why}", place = .place.display())]
    Place {
        /// As the user named it.
        place: PathBuf,
        /// Why.
        why: String,
        /// What to do about it.
        #[help]
        hint: String,
    },
    /// The data set was written by another version.
    #[error("`{path}` has format version {found}; this program reads version {supported}", path = .path.display())]
    #[diagnostic(help("use the version of Plimsoll that made it, or replace it: `plimsoll slob setup --replace`"))]
    FormatVersion {
        /// The descriptor file.
        path: PathBuf,
        /// Version found.
        found: u32,
        /// Version that this program reads.
        supported: u32,
    },
    /// One of the engine's own files cannot be understood.
    #[error("`{path}` is damaged: {what}", path = .path.display())]
    #[diagnostic(help("{FIND_WHAT_CHANGED}"))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// Redo that was durable cannot be read any more.
    #[error("redo is damaged in `{path}` at offset {offset}: {what}", path = .path.display())]
    #[diagnostic(help("{FIND_WHAT_CHANGED}"))]
    DamagedRedo {
        /// The log file.
        path: PathBuf,
        /// Where in it.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// Commits that were acknowledged to sessions are not in the data.
    #[error("acknowledged commits are missing from `{path}`: session {session} had {acknowledged} acknowledged, but only {found} are present", path = .path.display())]
    #[diagnostic(help("{FIND_WHAT_CHANGED}"))]
    LostCommits {
        /// The directory.
        path: PathBuf,
        /// First session that lost commits, from 1.
        session: u32,
        /// Commits that were acknowledged to it.
        acknowledged: u64,
        /// Commits that are there.
        found: u64,
    },
    /// The file system is too small.
    #[error("`{path}` has {available} free and {needed} are needed", path = .path.display())]
    #[diagnostic(help(
        "lower SCALE, the number of schemas or `--redo-size`, or use another directory: `--target dir:PATH`"
    ))]
    NoSpace {
        /// The directory.
        path: PathBuf,
        /// Space needed.
        needed: Bytes,
        /// Space left.
        available: Bytes,
    },
    /// The cache cannot hold its own bookkeeping and the buffers that the load pins.
    #[error("a cache of {cache} is too small for this load: it needs at least {needed}")]
    #[diagnostic(help("give it more with `--cache`, or use fewer sessions"))]
    CacheTooSmall {
        /// Cache asked for.
        cache: Bytes,
        /// Smallest that works.
        needed: Bytes,
    },
    /// A flash cache cannot be had as it was asked for.
    #[error("the flash cache `{path}` {what}", path = .path.display())]
    FlashCache {
        /// Its file or device.
        path: PathBuf,
        /// What forbids it, to be read after its name.
        what: String,
        /// What to do.
        #[help]
        hint: &'static str,
    },
    /// A server's monitor gets no answers, on connections that are still open.
    #[error("the server has not reported its counters for {waited_s} s")]
    #[diagnostic(help("{STILL_ANSWERS}"))]
    ServerSilent {
        /// For how long, in seconds.
        waited_s: u64,
    },
    /// Operations in batches cannot start when they are due.
    #[error(
        "`--rate` and `--send batch` contradict each other: operations that are sent in batches cannot start when they are due"
    )]
    #[diagnostic(help("leave out one of them; with `--rate`, operations are sent as statements"))]
    SendingAtRate,
    /// There is no private server of ours.
    #[error("there is no private server in `{path}`", path = .path.display())]
    #[diagnostic(help("name the directory that `plimsoll slob setup` was given"))]
    NoPrivateServer {
        /// The directory.
        path: PathBuf,
    },
    /// The address is one of a simulation, which keeps nothing.
    #[error("`{address}` is simulated and holds no data")]
    #[diagnostic(help("name a directory: `--target dir:PATH`"))]
    NoData {
        /// The address.
        address: String,
    },
    /// A value cannot be used to make a data set.
    #[error("{0}")]
    Shape(String),
    /// Files or devices cannot be used as a volume.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Block(#[from] BlockError),
    /// A disk group cannot be made, opened or used.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Group(#[from] GroupError),
    /// A database server cannot do it, or a private one cannot be had.
    #[error("{0}")]
    #[diagnostic(transparent)]
    Database(Box<dyn DatabaseError>),
    /// A network cannot be measured.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Net(#[from] NetError),
    /// Nothing keeps order entry at such an address.
    #[error("`{address}` cannot hold order entry")]
    #[diagnostic(help(
        "name a PostgreSQL, MySQL, MariaDB or Oracle database: `--target pg:DIR`, `my:DIR`, \
         `postgres://USER@HOST/DATABASE`, `mysql://USER@HOST/DATABASE` or `oracle://USER@HOST/SERVICE`"
    ))]
    NoOrders {
        /// As it is shown.
        address: String,
    },
    /// This program was built without what reaches Oracle.
    #[error("`{address}` cannot be reached: this program was built without the driver for Oracle")]
    #[diagnostic(help("use a release, or build it with its default features: `cargo build --release`"))]
    NoOracleDriver {
        /// As it is shown.
        address: String,
    },
    /// Nothing looks at such a database, or has it calibrate its storage, yet.
    #[error("{what} supports Oracle only so far, not `{address}`")]
    #[diagnostic(help(
        "name an Oracle database: `--target oracle://USER@HOST/SERVICE`; `plimsoll doctor` looks at this machine, and \
         `plimsoll io calibrate --path PATH` measures storage"
    ))]
    OracleOnly {
        /// What was asked for, such as `slob doctor`.
        what: &'static str,
        /// As it is shown.
        address: String,
    },
    /// Another thread of the target has failed; its error says why.
    #[error("the target has stopped")]
    Stopped,
    /// The user ended it.
    #[error("interrupted")]
    Interrupted,
}

/// Why a database server cannot do what was asked: what its crate says of it, which this one does not know.
pub trait DatabaseError: Diagnostic + Send + Sync {
    /// What to do about it.
    fn hint(&self) -> Option<String> {
        model::hint(self)
    }

    /// Whether it says that stored data are not what was written, as opposed to a request that could not be done.
    fn is_data_fault(&self) -> bool {
        false
    }
}

impl TargetError {
    /// The error of a database server, where it is one of this kind.
    pub fn database<E: DatabaseError + 'static>(&self) -> Option<&E> {
        let Self::Database(error) = self else { return None };
        let error: &(dyn std::error::Error + 'static) = &**error;
        error.downcast_ref()
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        model::hint(self)
    }

    /// Whether it says that stored data are not what was written, as opposed to a request that could not be done.
    pub fn is_data_fault(&self) -> bool {
        match self {
            Self::Database(error) => error.is_data_fault(),
            Self::BadBlock { .. }
            | Self::Truncated { .. }
            | Self::DamagedRedo { .. }
            | Self::LostCommits { .. }
            | Self::Vanished { .. }
            | Self::Block(BlockError::BadData { .. })
            | Self::Group(GroupError::Lost { .. } | GroupError::Gone { .. } | GroupError::Diverged { .. }) => true,
            _ => false,
        }
    }
}

/// Only io_uring, threads and memory can be refused outside of any file.
fn kernel_hint(source: &io::Error) -> Option<String> {
    let hint = match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES | libc::ENOSYS) => {
            "allow io_uring (kernel.io_uring_disabled, or the container's seccomp profile), or do without it: `--io-engine \
             psync`, for `plimsoll io` `--engine psync`"
        }
        Some(libc::EAGAIN) => {
            "use fewer `--lanes` (for `plimsoll io` fewer `--jobs`), or raise the limits of threads and memory (`ulimit -u`, `ulimit -v`)"
        }
        _ => return io_hint(source),
    };
    Some(hint.to_owned())
}

/// What to do about an error of the operating system on a file.
pub fn io_hint(source: &io::Error) -> Option<String> {
    // What a virtual directory passed on knows best itself.
    if let Some(error) = source.get_ref().and_then(|inner| inner.downcast_ref::<TargetError>()) {
        return error.hint();
    }
    if let Some(hint) = files::hint(source) {
        return Some(hint.to_owned());
    }
    use io::ErrorKind as Kind;
    let hint = match source.kind() {
        Kind::StorageFull | Kind::QuotaExceeded => "free some space, or use another file system",
        Kind::PermissionDenied => "use a path that this user may use so, or run as a user who may",
        Kind::ReadOnlyFilesystem => "the file system is mounted read-only; use another one",
        Kind::NotFound => "check the path; a mount may be missing",
        Kind::NotADirectory => "a part of the path is a file; check the path",
        Kind::InvalidFilename => "use a shorter path",
        _ => match source.raw_os_error() {
            Some(libc::EFBIG) => {
                "the file size limit of this process, or of the file system, is reached: `ulimit -f unlimited`"
            }
            Some(libc::EMFILE | libc::ENFILE) => MORE_FILES,
            Some(libc::ENOMEM) => {
                "use a smaller `--cache` or `--depth`, or raise the memory limit (`ulimit -l`, the container's limit)"
            }
            Some(libc::EOPNOTSUPP) => "this storage cannot do that; use another, or do without",
            Some(libc::EIO) => "the device failed the request; look at the kernel log: `dmesg`",
            _ => return None,
        },
    };
    Some(hint.to_owned())
}

/// Adds the file and the action to a system error.
pub trait FileContext<T> {
    /// `action` is the verb, such as `open`.
    fn of_file(self, action: &'static str, path: &std::path::Path) -> Result<T, TargetError>;
}

impl<T> FileContext<T> for io::Result<T> {
    fn of_file(self, action: &'static str, path: &std::path::Path) -> Result<T, TargetError> {
        self.map_err(|source| TargetError::File { action, path: path.to_owned(), source })
    }
}
