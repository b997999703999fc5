//! Private servers: what it takes to make, hold and remove a server of any kind in a directory of its own.
//!
//! A server that a command has started ends with that command, whatever ends it, unless it is to be kept. One command at a
//! time works on a directory. A server's own folder says how its data are made and with which parameters it is started.

mod files;
mod memory;

mod server;
mod supervisor;

use std::convert::Infallible;
use std::fmt::Debug;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::marker::PhantomData;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{env, fmt, fs, io, thread};

use ::files::How;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use memory::MemoryLimit;
use model::plain::{self, Links};
use model::record::TargetFacts;
use model::units::Bytes;
use server::{Sockets, not_ours};
use targets::{DatabaseError, TargetError, io_hint};

pub(crate) use files::{DirectoryState, damaged, file_error};
pub use files::{Files, OurFile};

pub(crate) use memory::MemoryKills;
pub use server::{Dropped, drop_page_cache};
pub(crate) use server::{PrivateServer, check_memory};

#[cfg(test)]
pub(crate) use server::tests as server_tests;

/// What distinguishes private servers of one kind from those of others.
#[derive(Debug)]
pub struct ServerKind {
    /// Its product, such as `PostgreSQL`.
    pub(crate) product: &'static str,
    /// What a server with its data is called, such as `cluster`. Files of ours are named after it.
    pub(crate) noun: &'static str,
    /// The user that packages make for it.
    pub(crate) user: &'static str,
    /// How variables begin by which the environment speaks to its programs, perhaps of passwords.
    pub(crate) environment: &'static [&'static str],
    /// A file in the data of such servers.
    pub(crate) data_file: &'static str,
    /// How addresses of servers and of private servers begin, such as `postgres://` and `pg:`.
    pub(crate) schemes: [&'static str; 2],
    /// Name of its socket.
    pub(crate) socket: &'static str,
    /// What its buffers are called, and by which setting.
    pub(crate) buffers: &'static str,
    pub(crate) buffers_setting: &'static str,
    /// The least of them that it takes.
    pub(crate) min_db_cache: Bytes,
    /// What its server's file is called, one of these.
    pub(crate) programs: &'static [&'static str],
    /// The signals that ask it to shut down in order, and then at once.
    pub(crate) stop: [Signal; 2],
}

/// As the tests of this folder know servers.
#[cfg(test)]
const TESTED: ServerKind = ServerKind {
    product: "PostgreSQL",
    noun: "cluster",
    user: "postgres",
    programs: &["postgres"],
    environment: &["PG"],
    data_file: "PG_VERSION",
    schemes: ["postgres://", "pg:"],
    socket: ".s.PGSQL.5432",
    buffers: "shared buffers",
    buffers_setting: "shared_buffers",
    min_db_cache: Bytes::kib(128),
    stop: [Signal::INT, Signal::QUIT],
};

// The process of a private server, as the kernel reports on it.

/// The longest of the small files that a server keeps, or we beside it.
pub(crate) const MAX_FILE: Bytes = Bytes::kib(64);

/// How long a server may take to write out what it holds in memory and end. On slow storage that is minutes; what a
/// server leaves behind that is not given the time, the next one recovers.
const FAST_PATIENCE: Duration = Duration::from_secs(120);
/// How long it may take to end when it does nothing more than that.
const IMMEDIATE_PATIENCE: Duration = Duration::from_secs(30);

/// Whether a process runs; one that has ended and that nobody has asked about yet does not.
pub(crate) fn is_alive(pid: u32) -> bool {
    // See proc(5): the state follows the name, which stands in parentheses and may hold any.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Whether a process may be the server of `data`: one of `programs`, working in that directory. The number stands in a file that anybody
/// may have left or written; where we may not look, it may be the server.
pub(crate) fn may_serve(programs: &[&str], pid: u32, data: &Path) -> bool {
    serves(programs, pid, data).unwrap_or_else(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

fn serves(programs: &[&str], pid: u32, data: &Path) -> io::Result<bool> {
    let works_in = fs::read_link(format!("/proc/{pid}/cwd"))?;
    let program = fs::read_link(format!("/proc/{pid}/exe"))?;
    // The kernel adds this where an update has replaced the file.
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(" (deleted)").unwrap_or(&name);
    Ok(programs.contains(&name) && data.canonicalize()? == works_in)
}

/// Ends a server that has no supervisor: asks it to shut down, then to drop everything, and kills it if it does neither.
/// Returns whether it wrote everything out. A process that is not the server of `data` is sent nothing.
fn end(kind: &ServerKind, pid: u32, data: &Path) -> bool {
    let [in_order, at_once] = kind.stop;
    let stages = [(in_order, FAST_PATIENCE), (at_once, IMMEDIATE_PATIENCE), (Signal::KILL, IMMEDIATE_PATIENCE)];
    let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // Held from before it is looked at, so that no other process can have come by its number when a signal is sent.
    let Some(Ok(process)) = process.map(|process| pidfd_open(process, PidfdFlags::empty())) else { return false };
    if !serves(kind.programs, pid, data).is_ok_and(|serves| serves) {
        return false;
    }
    for (signal, patience) in stages {
        let begun = Instant::now();
        // A signal that fails found nobody, or somebody who is not ours to end; the loop sees which.
        let _ = pidfd_send_signal(&process, signal);
        while is_alive(pid) && begun.elapsed() < patience {
            thread::sleep(Duration::from_millis(20));
        }
        if !is_alive(pid) {
            return signal == in_order;
        }
    }
    false
}

const LET_IN: &str = "the server's user must have access to its directory and all above it. If root runs this \
    command, that is the server's own user, such as `mysql`";

/// Why a private server, or something in its directory, cannot be had.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum PrivateError {
    /// Something about the directory or this machine stands against it.
    #[error("{what}")]
    Unfit {
        /// What and where, in one sentence.
        what: String,
        /// What to do about it.
        #[help]
        hint: Option<String>,
    },
    /// A program of the server's failed.
    #[error("`{program}` failed: {reason}", program = .program.display())]
    Program {
        /// The program.
        program: PathBuf,
        /// What it said, or the system's reason.
        reason: String,
        /// What to do about it.
        #[help]
        hint: Option<String>,
    },
    /// A file cannot be used.
    #[error("cannot {action} `{path}`: {source}", path = .path.display())]
    #[diagnostic(help("{}", hint_for_file(action, source).unwrap_or_default()))]
    File {
        /// What was tried, such as `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl PrivateError {
    /// Something stands against it.
    pub(crate) fn unfit(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Unfit { what: what.into(), hint: Some(hint.into()) }
    }
}

impl DatabaseError for PrivateError {}

fn hint_for_file(action: &str, source: &io::Error) -> Option<String> {
    if action == "run" && source.kind() == io::ErrorKind::PermissionDenied {
        return Some(LET_IN.to_owned());
    }
    io_hint(source)
}

impl From<PrivateError> for TargetError {
    fn from(error: PrivateError) -> Self {
        Self::Database(Box::new(error))
    }
}

/// A private server as it lies there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundServer<A> {
    /// Its server, if it runs.
    pub(crate) running: Option<Running<A>>,
    /// The command that works on it, if one does: `process 123`.
    pub(crate) in_use_by: Option<String>,
    /// All that Plimsoll made there.
    pub(crate) files: Vec<OurFile>,
}

/// Looks what server `directory` holds, also while a command works on it, and changes nothing. `None` where nothing is,
/// and one may be made.
///
/// # Errors
/// When it holds anything that Plimsoll did not make, or belongs to somebody else.
pub(crate) fn inspect<P: Programs>(directory: &Path) -> Result<Option<FoundServer<P::Address>>, PrivateError> {
    let files = Files::new(P::KIND, directory)?;
    if files.look()? == DirectoryState::Free {
        return Ok(None);
    }
    Owner::of(P::KIND, &files.data())?;
    Ok(Some(FoundServer {
        running: P::running(&files.data())?,
        in_use_by: files.holder().map(|holder| holder.to_string()),
        files: files.ours()?,
    }))
}

/// Removes the server in `directory` with all that is in it, and the directory if nothing else is in that. A kept server
/// of ours is ended first. Gives what was removed.
///
/// # Errors
/// When there is no private server, a command works on it, a server runs on it that Plimsoll has not started, or the
/// system refuses; [`TargetError::Interrupted`] when it was stopped before it began.
pub(crate) fn remove<P: Programs>(
    directory: &Path,
    notify: &dyn Fn(&str),
    stop: &AtomicBool,
) -> Result<Vec<OurFile>, TargetError> {
    let files = Files::new(P::KIND, directory)?;
    if files.look()? == DirectoryState::Free {
        return Err(files.nothing_there().into());
    }
    let owner = Owner::of(P::KIND, &files.data())?;
    let _hold = files.take(&owner, notify, stop)?;
    if let Some(running) = P::running(&files.data())? {
        if !running.is_ours {
            return Err(not_ours::<P>(&files, running.pid).into());
        }
        notify("stopping the server");
        // Both are known only while it runs, and go when it has ended.
        let _sockets = running.sockets.as_deref().map(|directory| Sockets::of_running(directory, &owner));
        let _memory = MemoryLimit::take_over(running.pid);
        end(P::KIND, running.pid, &files.data());
        if is_alive(running.pid) && may_serve(P::KIND.programs, running.pid, &files.data()) {
            let what =
                format!("the server in `{}` (process {}) does not end", files.directory().display(), running.pid);
            return Err(PrivateError::unfit(what, "nothing was removed; end it, then remove it again").into());
        }
    }
    let ours = files.ours()?;
    notify("removing its files");
    files.remove()?;
    Ok(ours)
}

/// The programs of servers that are only reached by an address `A`: there are none, so nothing here is ever asked.
#[derive(Debug)]
pub struct NoPrograms<A>(Infallible, PhantomData<A>);

const NONE: ServerKind = ServerKind {
    product: "no server",
    noun: "server",
    user: "",
    programs: &[],
    environment: &[],
    data_file: "",
    schemes: ["", ""],
    socket: "",
    buffers: "",
    buffers_setting: "",
    min_db_cache: Bytes(0),
    stop: [Signal::TERM, Signal::KILL],
};

impl<A: Clone + Debug + PartialEq> Programs for NoPrograms<A> {
    const KIND: &'static ServerKind = &NONE;
    type Address = A;

    fn find(_: Option<&Path>, _: &Files) -> Result<Self, PrivateError> {
        Err(PrivateError::unfit("there are no private servers of this kind", "name a server that runs"))
    }

    fn version(&self) -> String {
        match self.0 {}
    }

    fn initializing(&self, _: &Path) -> (PathBuf, Vec<String>) {
        match self.0 {}
    }

    fn starting(&self, _: &Starting<'_>) -> Result<(PathBuf, Vec<String>), PrivateError> {
        match self.0 {}
    }

    fn server(&self) -> PathBuf {
        match self.0 {}
    }

    fn running(_: &Path) -> Result<Option<Running<A>>, PrivateError> {
        Ok(None)
    }

    fn address(_: &str) -> A {
        unreachable!("a server without programs is never started, so it has no sockets")
    }

    fn facts(_: &A, _: bool) -> Result<TargetFacts, TargetError> {
        Ok(TargetFacts::default())
    }

    fn needed_memory(_: Bytes, _: u32) -> Bytes {
        Bytes(0)
    }
}

/// Connections beyond those of the load: set-up, monitoring, and a person who looks.
const SPARE_CONNECTIONS: u32 = 20;

/// The programs of one server on this machine, and what a private server of its kind is made of.
pub trait Programs: Debug + Sized {
    /// What distinguishes such servers.
    const KIND: &'static ServerKind;
    /// Where a server is reached.
    type Address: Clone + Debug + PartialEq;

    /// The programs in the directory `chosen`, else those that are installed; they must suit the data that `files` hold, if any.
    ///
    /// # Errors
    /// When there are none, with the package to install.
    fn find(chosen: Option<&Path>, files: &Files) -> Result<Self, PrivateError>;

    /// Version of the programs, in their own words.
    fn version(&self) -> String;

    /// The program that makes data in an empty directory, and its parameters.
    fn initializing(&self, data: &Path) -> (PathBuf, Vec<String>);

    /// The server and the parameters that it is started with.
    ///
    /// # Errors
    /// When something about this machine cannot be found out.
    fn starting(&self, start: &Starting<'_>) -> Result<(PathBuf, Vec<String>), PrivateError>;

    /// The server itself.
    fn server(&self) -> PathBuf;

    /// The server that runs on `data`; none after a crash, which leaves its file and no such process.
    ///
    /// # Errors
    /// When that cannot be found out.
    fn running(data: &Path) -> Result<Option<Running<Self::Address>>, PrivateError>;

    /// How a server is reached whose socket is in the directory `sockets`.
    fn address(sockets: &str) -> Self::Address;

    /// Whether a server that says that it runs takes connections.
    fn answers(_address: &Self::Address) -> bool {
        true
    }

    /// What is worth knowing of a server: `server_version`, and the settings that matter. `is_new` says that it
    /// was started just now, so what connections need may have to be made.
    ///
    /// # Errors
    /// When it cannot be connected to, or refuses.
    fn facts(address: &Self::Address, is_new: bool) -> Result<TargetFacts, TargetError>;

    /// The least memory in which a server can live with so many sessions, in whole MiB: with less it would be killed.
    fn needed_memory(db_cache: Bytes, sessions: u32) -> Bytes;

    /// What just these programs need beyond that.
    fn more_memory(&self) -> Bytes {
        Bytes(0)
    }

    /// What to do about what a program said when it failed.
    fn hint(_said: &str) -> Option<String> {
        None
    }
}

/// What a server is started with.
pub struct Starting<'a> {
    pub(crate) owner: &'a Owner,
    pub(crate) files: &'a Files,
    /// Directory of its socket.
    pub(crate) sockets: &'a str,
    pub(crate) db_cache: Bytes,
    pub(crate) page_protection: bool,
    pub(crate) max_connections: u32,
}

/// A private server that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running<A> {
    /// Number of its first process.
    pub(crate) pid: u32,
    /// Whether Plimsoll has started it.
    pub(crate) is_ours: bool,
    /// Directory of its socket, as far as it is known.
    pub(crate) sockets: Option<PathBuf>,
    /// Where it is reached; none while it starts.
    pub(crate) address: Option<A>,
}

/// What a private server is asked for.
#[derive(Debug, Clone)]
pub(crate) struct ServerRequest {
    /// Its directory.
    pub(crate) directory: PathBuf,
    /// Whether it may be made if it is not there.
    pub(crate) create: bool,
    /// Its buffers.
    pub(crate) db_cache: Bytes,
    /// Most memory that the server may use, page cache of its files included; `None` for no limit.
    pub(crate) host_memory: Option<Bytes>,
    /// Sessions for which there is to be room.
    pub(crate) max_sessions: u32,
    /// Sessions that are known to come: the memory must do for them.
    pub(crate) sessions: u32,
    /// Whether pages are kept whole over a power cut, by full-page writes or the doublewrite buffer.
    pub(crate) page_protection: bool,
    /// Whether the server goes on running when we end.
    pub(crate) keep_running: bool,
    /// Directory of the server's programs; those that are found where `None`.
    pub(crate) binaries: Option<PathBuf>,
}

impl ServerRequest {
    /// What the server must take, a person who looks included.
    fn max_connections(&self) -> u32 {
        self.max_sessions.saturating_add(SPARE_CONNECTIONS)
    }
}

/// How often who holds it is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// A lock that this process itself seems to hold is waited for so long: what shares it may need seconds to end on a busy machine.
const OWN_LOCK_PATIENCE: Duration = Duration::from_secs(10);

impl Files {
    /// Takes the directory. A server that a killed command has left is still being ended: that is waited for.
    ///
    /// # Errors
    /// When another command works on it, or the system refuses; [`TargetError::Interrupted`] when `stop` ended the wait.
    pub(crate) fn take(&self, owner: &Owner, notify: &dyn Fn(&str), stop: &AtomicBool) -> Result<Hold, TargetError> {
        let mut reported = false;
        let begun = Instant::now();
        loop {
            let holder = match self.lock(owner)? {
                Ok(hold) => return Ok(hold),
                Err(holder) => holder,
            };
            // What this process has let go of is held for a little longer by its server's supervisor, and by each program that another of
            // its threads starts.
            if holder.pid == Some(std::process::id()) && begun.elapsed() < OWN_LOCK_PATIENCE {
                thread::sleep(LOOK_EVERY);
                continue;
            }
            if !holder.has_ended() {
                return Err(self.in_use(&holder.to_string()).into());
            }
            if stop.load(Ordering::Relaxed) {
                return Err(TargetError::Interrupted);
            }
            if !reported {
                notify("waiting for the end of a server that an earlier command has left");
                reported = true;
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Takes the directory for this process.
    ///
    /// # Errors
    /// The system's error. A directory that somebody else holds is no error but `Err` inside, with who it is.
    fn lock(&self, owner: &Owner) -> Result<Result<Hold, Holder>, PrivateError> {
        let path = self.lock_path();
        let how = How { mode: 0o644, also: Some(owner.uid), ..How::default() };
        let mut file = loop {
            let mut file = ::files::open_or_make_own(&path, how).map_err(file_error("open", &path))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(Err(Holder::read(&mut file))),
                Err(TryLockError::Error(error)) => return Err(file_error("lock", &path)(error)),
            }
            // Whoever held it may have removed it together with the server: then this is nobody's lock any more.
            let held = file.metadata().map_err(file_error("look at", &path))?;
            if fs::metadata(&path).is_ok_and(|named| (named.dev(), named.ino()) == (held.dev(), held.ino())) {
                break file;
            }
        };
        owner.adopt(&path)?;
        let named = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| write!(file, "{}", std::process::id()));
        named.map_err(file_error("write", &path))?;
        Ok(Ok(Hold { file, path }))
    }

    /// Who holds the directory; nobody if none.
    pub(crate) fn holder(&self) -> Option<Holder> {
        let mut file = plain::open(&self.lock_path(), Links::Refused).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Some(Holder::read(&mut file)),
            _ => None,
        }
    }
}

/// The lock of a directory. It goes with the value and with every process that was given a share in it.
#[derive(Debug)]
pub(crate) struct Hold {
    file: File,
    path: PathBuf,
}

impl Hold {
    /// Lets a process that we start hold the lock with us, as one of its three standard files, which it should not use:
    /// should we be killed, nobody works on the directory before that process has ended too.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn share(&self) -> Result<Stdio, PrivateError> {
        let shared = self.file.try_clone();
        shared.map(Stdio::from).map_err(file_error("share", &self.path))
    }
}

/// Who holds a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Holder {
    /// The command's process number, as far as it is known.
    pub(crate) pid: Option<u32>,
}

impl Holder {
    fn read(lock: &mut File) -> Self {
        let mut text = String::new();
        let _ = lock.take(MAX_FILE.0).read_to_string(&mut text);
        Self { pid: text.trim().parse().ok() }
    }

    /// Whether the command has ended, and only what it has left holds the directory: a server that is being stopped.
    pub(crate) fn has_ended(self) -> bool {
        self.pid.is_some_and(|pid| !is_alive(pid))
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            Some(pid) => write!(f, "process {pid}"),
            None => f.write_str("another process"),
        }
    }
}

/// The user that a private server runs as, and that owns its files.
#[derive(Debug, Clone)]
pub(crate) struct Owner {
    kind: &'static ServerKind,
    /// Name where it is known, else the number.
    pub(crate) name: String,
    uid: u32,
    gid: u32,
    /// Whether that is another than the one we are.
    other: bool,
}

impl Owner {
    /// Who the server of `data` has to run as: the owner of data that exist; for new data ourselves, or the user
    /// that packages make if we are root.
    ///
    /// # Errors
    /// When we are neither that user nor root, or root finds no user for it.
    pub(crate) fn of(kind: &'static ServerKind, data: &Path) -> Result<Self, PrivateError> {
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let existing = match fs::metadata(data) {
            Ok(metadata) => Some((metadata.uid(), metadata.gid())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(file_error("open", data)(error)),
        };
        let me = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        Self::choose(kind, existing, me, &users, data)
    }

    /// `existing` and `me` are numbers of user and group.
    fn choose(
        kind: &'static ServerKind,
        existing: Option<(u32, u32)>,
        me: (u32, u32),
        users: &str,
        data: &Path,
    ) -> Result<Self, PrivateError> {
        let ServerKind { product, noun, user, .. } = kind;
        let (uid, gid) = match existing {
            Some(owner) if owner.0 != 0 => owner,
            _ if me.0 != 0 => me,
            _ => user_named(users, user).ok_or_else(|| PrivateError::Unfit {
                what: format!("{product} does not run as root, and there is no user `{user}` to run it as"),
                hint: Some(format!("make one (`useradd --system {user}`), or run as an ordinary user")),
            })?,
        };
        let name = user_numbered(users, uid).unwrap_or_else(|| uid.to_string());
        if me.0 != 0 && me.0 != uid {
            return Err(PrivateError::Unfit {
                what: format!("the {noun} in `{}` belongs to the user `{name}`", data.display()),
                hint: Some(format!("run as `{name}` or as root, or name another directory")),
            });
        }
        Ok(Self { kind, name, uid, gid, other: me.0 != uid })
    }

    /// A command that runs as this user, in `/`, in English, and without what the environment says to its programs, which may be
    /// a password.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir("/").stdin(Stdio::null()).env("LC_ALL", "C");
        for (name, _) in env::vars_os() {
            let shown = name.to_string_lossy();
            if self.kind.environment.iter().any(|beginning| shown.starts_with(beginning)) {
                command.env_remove(&name);
            }
        }
        if self.other {
            command.gid(self.gid).uid(self.uid);
        }
        command
    }

    /// Makes this user the owner of a file or directory that we have made. Never follows a symbolic link.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn adopt(&self, path: &Path) -> Result<(), PrivateError> {
        if !self.other {
            return Ok(());
        }
        ::files::give(path, self.uid, self.gid).map_err(file_error("change the owner of", path))
    }

    /// Looks whether this user can enter all that exists of `directory`.
    ///
    /// # Errors
    /// When it cannot, with the directory that keeps it out.
    pub(crate) fn check_reach(&self, directory: &Path) -> Result<(), PrivateError> {
        let mut levels: Vec<&Path> = directory.ancestors().filter(|level| level.is_dir()).collect();
        levels.reverse();
        let shell = Path::new("/bin/sh");
        let mut looking = self.command(shell);
        looking.args(["-c", r#"for d do [ -x "$d" ] || { printf %s "$d"; exit 1; }; done"#, "sh"]).args(&levels);
        let seen = looking.output().map_err(file_error("run", shell))?;
        if seen.status.success() {
            return Ok(());
        }
        let closed = String::from_utf8_lossy(&seen.stdout).into_owned();
        Err(PrivateError::Unfit {
            what: format!(
                "the server runs as user `{}`, who may not enter `{closed}`, a part of `{}`",
                self.name,
                directory.display()
            ),
            hint: Some(format!("use a directory that it can reach, or let it in: `chmod o+x {closed}`")),
        })
    }
}

/// Fields of passwd(5): name, password, user, group, …
fn user_named(users: &str, name: &str) -> Option<(u32, u32)> {
    let fields = |line: &str| -> Option<(u32, u32)> {
        let mut fields = line.strip_prefix(name)?.strip_prefix(':')?.split(':').skip(1);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    users.lines().find_map(fields)
}

fn user_numbered(users: &str, uid: u32) -> Option<String> {
    let line = users.lines().find(|line| line.split(':').nth(2) == Some(&uid.to_string()))?;
    line.split(':').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use targets::DatabaseError as _;

    use super::TESTED;
    use super::*;

    const USERS: &str = "root:x:0:0:root:/root:/bin/sh\npostgresql:x:7:7::/:/bin/sh\npostgres:x:102:105:,,,:/var/lib/postgresql:/bin/bash\nann:x:1000:1000::/home/ann:/bin/sh\n";

    fn choose(existing: Option<(u32, u32)>, me: u32, users: &str) -> Result<Owner, PrivateError> {
        Owner::choose(&TESTED, existing, (me, me), users, Path::new("/u01/pg/data"))
    }

    #[test]
    fn root_hands_the_server_to_its_user_or_to_the_owner_of_the_data() {
        let owner = choose(None, 0, USERS).unwrap();
        assert_eq!((owner.name.as_str(), owner.uid, owner.gid, owner.other), ("postgres", 102, 105, true));
        assert_eq!(choose(Some((1000, 1000)), 0, USERS).unwrap().name, "ann");
        let error = choose(None, 0, "root:x:0:0::/:/bin/sh\n").unwrap_err();
        assert!(error.hint().unwrap().contains("useradd"), "{error}");
    }

    #[test]
    fn an_ordinary_user_runs_its_own_server_and_nobody_elses() {
        let owner = choose(None, 1000, USERS).unwrap();
        assert_eq!((owner.name.as_str(), owner.other), ("ann", false));
        let error = choose(Some((102, 105)), 1000, USERS).unwrap_err();
        assert!(error.to_string().contains("belongs to the user `postgres`"), "{error}");
    }

    #[test]
    fn a_directory_that_the_servers_user_cannot_enter_is_named() {
        use std::os::unix::fs::PermissionsExt;

        let outer = tempfile::tempdir().unwrap();
        let owner = Owner::of(&TESTED, &outer.path().join("inner/data")).unwrap();
        if !owner.other {
            return; // Only root has a server of another user.
        }
        fs::create_dir(outer.path().join("inner")).unwrap();
        fs::set_permissions(outer.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let error = owner.check_reach(&outer.path().join("inner/new")).unwrap_err();
        let reported = format!("{error}; {}", error.hint().unwrap());
        assert!(reported.contains(&format!("`chmod o+x {}`", outer.path().display())), "{reported}");
        fs::set_permissions(outer.path(), fs::Permissions::from_mode(0o711)).unwrap();
        owner.check_reach(&outer.path().join("inner/new")).unwrap();
    }
}
