//! Files on NFS servers, without a mount of the kernel: this program speaks NFS versions 3 and 4.1 itself, as Oracle's Direct NFS does, so
//! that each thread has connections of its own, as many as asked, over several paths.
//!
//! `wire/` is the protocol as pure code. [`NfsMount`] and [`NfsFile`] do everything beside load by calls that block; `queue/` is
//! what load goes through. `docs/workloads/storage.md` says what is sent, counted, and done when paths fail.

mod caller;
mod client;
mod connect;
mod file;
mod mount;
mod queue;
mod unstable;
mod ways;
pub mod wire;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::{fmt, io};

use crate::io::{Access, Claim, Durability, FileUse, FoundFile, VirtualDirectory, VirtualFile};
use client::Open;
use model::config::ServerAddressProblem;
use model::config::nfs::{DEFAULT_CONNECTIONS, DEFAULT_OUTSTANDING, NfsAddress};
use model::record::{FileFacts, NfsFacts, TargetFacts};
use model::units::Nanos;
use unstable::{Writer, Writes};
use ways::{Pauses, is_of_path};
use wire::{
    Attributes, Commit, CommitDone, Fault, FileHandle, FileKind, Procedure, Read, Rejection, Stable, StateId, Status,
    Write, WriteDone,
};

pub use file::NfsFile;
pub use mount::NfsMount;
pub use queue::NfsQueue;
pub use ways::Limits;
#[cfg(test)]
mod test_server;
#[cfg(test)]
mod tests;

// Writes that a server lost are sent to it again: by calls that block, since that is rare, while nobody else writes to the file.
//
// What reaches the server late must not overwrite what is sent here. Nothing else is on its way: whoever calls this has waited for all
// writes to the file. A write of this file itself that has no answer is sent once more only if the server has begun another life since:
// requests of an earlier life went with it.

/// Sends all again that the file keeps. For whoever holds its writes.
fn send_again(file: &OpenFile) -> Result<(), NfsError> {
    let mut life = file.writes.last_verifier();
    while file.writes.may_begin_round() {
        let (count, pieces) = file.writes.latest(file.mount.cold_bytes() as usize);
        let (mut is_one_life, mut bytes) = (true, 0);
        for piece in &pieces {
            is_one_life = is_one_life && write(file, piece.offset, &piece.data, &mut life)?;
            bytes += piece.data.len() as u64;
        }
        if let Some(verifier) = life.filter(|_| is_one_life) {
            file.writes.taken_again(verifier);
            file.mount.resent().add(count, bytes);
            return Ok(());
        }
    }
    let why = "it restarted again each time before a COMMIT, or its paths lead to different servers";
    Err(NfsError::LostWrites { name: file.path.clone(), why })
}

/// Writes one piece. False where the server turns out to be in another life than `life`, which that becomes.
fn write(file: &OpenFile, mut offset: u64, mut data: &[u8], life: &mut Option<u64>) -> Result<bool, NfsError> {
    while !data.is_empty() {
        let most = data.len().min(file.mount.cold_bytes() as usize);
        let done = match patiently(file, || file.write_once(Stable::Unstable, offset, &data[..most])) {
            Ok(done) => done,
            Err(error @ NfsError::WriteUnanswered { .. }) => {
                let now = patiently(file, || file.commit_once())?.verifier;
                let restarted = life.replace(now).is_some_and(|life| life != now);
                return if restarted { Ok(false) } else { Err(error) };
            }
            Err(error) => return Err(error),
        };
        if life.replace(done.verifier).is_some_and(|life| life != done.verifier) {
            return Ok(false);
        }
        let bytes = done.bytes as usize;
        (offset, data) = (offset + bytes as u64, &data[bytes..]);
    }
    Ok(true)
}

/// Tries until a server that restarts is there again.
fn patiently<T>(file: &OpenFile, mut ask: impl FnMut() -> Result<T, NfsError>) -> Result<T, NfsError> {
    let mut pauses = Pauses::begin();
    loop {
        match ask() {
            Err(error) if is_of_path(&error) && pauses.rest(file.mount.limits().give_up) => {}
            answer => return answer,
        }
    }
}

// What an open file is to those who send calls about it.

/// How often a file is opened again for one call.
const MAX_OPENS: u32 = 3;

/// What makes a file itself, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileIdentity {
    /// The server's number of its file system.
    pub fsid: u64,
    /// Its number there.
    pub fileid: u64,
}

impl From<&Attributes> for FileIdentity {
    fn from(attributes: &Attributes) -> Self {
        Self { fsid: attributes.fsid, fileid: attributes.fileid }
    }
}

/// An open file.
#[derive(Debug)]
struct OpenFile {
    mount: Arc<NfsMount>,
    handle: FileHandle,
    /// From the server's root.
    path: String,
    durability: Durability,
    identity: FileIdentity,
    /// What the server calls it by while it is open; version 3 knows no open files.
    open: Option<Arc<Open>>,
    writes: Writes,
    /// What cold calls write.
    cold: Arc<Writer>,
}

impl OpenFile {
    /// Its open state at present.
    fn state(&self) -> StateId {
        self.open.as_ref().map(|open| open.state()).unwrap_or_default()
    }

    /// Opens it again, if its state is still `lost`.
    fn open_again(&self, lost: StateId) -> Result<(), NfsError> {
        self.open.as_ref().map_or(Ok(()), |open| self.mount.open_again(open, lost, &self.path))
    }

    /// Asks with the open state, and once more with another one where the server does not know it any more.
    fn with_state<T>(&self, ask: impl Fn(StateId) -> Result<T, NfsError>) -> Result<T, NfsError> {
        let mut opens = 0;
        loop {
            let state = self.state();
            match ask(state) {
                Err(NfsError::Refused { status, .. }) if status.is_of_state() && opens < MAX_OPENS => {
                    opens += 1;
                    self.open_again(state)?;
                }
                answer => return answer,
            }
        }
    }

    /// One READ, of `bytes` at most, by a call that blocks.
    fn read_once(&self, offset: u64, bytes: u32) -> Result<Vec<u8>, NfsError> {
        self.with_state(|state| self.mount.ask(&Read { file: (&self.handle, state), offset, bytes }, &self.path))
    }

    /// One WRITE, of as much as fits into it, by a call that blocks.
    fn write_once(&self, stable: Stable, offset: u64, data: &[u8]) -> Result<WriteDone, NfsError> {
        let answer = self.with_state(|state| {
            self.mount.ask(&Write { file: (&self.handle, state), offset, data, stable }, &self.path)
        });
        let done = answer.map_err(|error| match error {
            NfsError::Silent { path, .. } | NfsError::Broken { path, .. } | NfsError::Garbage { path, .. } => {
                NfsError::WriteUnanswered { path, why: error.to_string() }
            }
            NfsError::DoneOrNot { .. } => {
                let why = error.to_string();
                self.mount.ways().first().map_or(error, |path| NfsError::WriteUnanswered { path, why })
            }
            error => error,
        })?;
        if done.bytes == 0 || done.bytes as usize > data.len() {
            return Err(self.mount.garbage(Procedure::Write, "a WRITE of more than was sent, or of nothing"));
        }
        Ok(done)
    }

    /// One COMMIT of the whole file, by a call that blocks.
    fn commit_once(&self) -> Result<CommitDone, NfsError> {
        self.mount.ask(&Commit(&self.handle), &self.path)
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        self.open.iter().for_each(|open| self.mount.close(open));
    }
}

/// What a server is asked for with each write.
const fn stable(durability: Durability) -> Stable {
    match durability {
        Durability::OnSync => Stable::Unstable,
        Durability::EachWrite => Stable::DataSync,
    }
}

/// Why lost writes were not sent again: nobody may write meanwhile.
const OTHERS_WRITE: &str = "other writes to it have no answer, or others were sending it again for too long";

/// Why a server or a file on it cannot be used. A path is an address of the server that connections go to.
#[derive(Debug, Clone, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what its fields are")]
pub enum NfsError {
    /// The host has no address.
    #[error("cannot find the address of the host `{host}`: {source}")]
    Resolve { host: String, source: Arc<io::Error> },

    /// No connection is made.
    #[error("cannot connect to the {service} at {path}: {source}")]
    Connect { service: &'static str, path: SocketAddr, source: Arc<io::Error> },

    /// A connection failed.
    #[error("the connection to {path} failed during {call}: {source}")]
    Broken { path: SocketAddr, call: &'static str, source: Arc<io::Error> },

    /// The server does not answer.
    #[error("the server at {path} did not answer {call} within {}", Nanos(*.waited_ns))]
    Silent { path: SocketAddr, call: &'static str, waited_ns: u64 },

    /// What came is no reply.
    #[error("the server at {path} sent an invalid reply to {call}: {what}")]
    Garbage { path: SocketAddr, call: &'static str, what: &'static str },

    /// The server did not look at a call.
    #[error("the server at {path} rejected {call}: {rejection}")]
    Rejected { path: SocketAddr, call: &'static str, rejection: Rejection },

    /// The server refused what was asked for.
    #[error("the server refused {call} of `{name}`: {status}")]
    Refused { call: &'static str, name: String, status: Status },

    /// The server is not ready for long.
    #[error("the server was still not ready for {call} of `{name}` after {}", Nanos(*.waited_ns))]
    NotReady { call: &'static str, name: String, waited_ns: u64 },

    /// The port mapper knows no mount service.
    #[error("the port mapper of {path} knows no mount service of version 3 over TCP")]
    NoMountService { path: SocketAddr },

    /// No directory above the file can be mounted.
    #[error("the server at {path} lets nothing be mounted above `{name}`: {status}")]
    NotExported { path: SocketAddr, name: String, status: Status },

    /// The export wants Kerberos.
    #[error("the server at {path} wants another authentication than AUTH_SYS for `{export}`")]
    OtherSecurity { path: SocketAddr, export: String },

    /// The name is of no file.
    #[error("`{name}` on the server is not a regular file")]
    NotAFile { name: String },

    /// The name is of another file than before.
    #[error("`{name}` is another file now than the one that was opened: its number was {before} and is {now}")]
    OtherFile { name: String, before: u64, now: u64 },

    /// Somebody else uses the file.
    #[error("`{name}` is in use: its claim file `{claim}` says {holder}")]
    Claimed { name: String, claim: String, holder: String },

    /// The server lost data.
    #[error("the server restarted before `{name}` was committed, and what it lost could not be sent again: {why}")]
    LostWrites { name: String, why: &'static str },

    /// The server did not do what was asked.
    #[error("the server answered a write of `{name}` as not durable, although durability was requested")]
    NotDurable { name: String },

    /// The answer to a write is missing.
    #[error(
        "a write over the path {path} has no answer ({why}). The server may still do it, so sending it again could \
        overwrite newer data"
    )]
    WriteUnanswered { path: SocketAddr, why: String },

    /// Sessions are lost before they are of use.
    #[error("the server `{server}` refused {call} in each of {sessions} sessions: {status}")]
    NoSession { server: String, call: &'static str, sessions: u32, status: Status },

    /// The session that knew whether something was done is lost.
    #[error("{call} was sent again to the server `{server}`, which did not say whether it was done before: {status}")]
    DoneOrNot { server: String, call: &'static str, status: Status },

    /// No path is left.
    #[error("no path to the server answers; the last one, {path}, failed: {why}")]
    NoPath { path: SocketAddr, why: String },

    /// A part of a path cannot be written in an address.
    #[error(transparent)]
    Address(#[from] ServerAddressProblem),

    /// The kernel refused something.
    #[error("cannot {action}: {source}")]
    Kernel { action: &'static str, source: Arc<io::Error> },
}

impl NfsError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Resolve { .. } => "check the name, or write the IP address".to_owned(),
            Self::Connect { service: "port mapper", .. } => {
                "name the port of the mount service in the address (`mountport=635`), which the server's administrator knows".to_owned()
            }
            Self::Connect { .. } | Self::Silent { .. } | Self::NoPath { .. } => {
                "check that the server runs, that its port is right, and that no firewall is between".to_owned()
            }
            Self::Broken { .. } => "look into the server's log, and check the network between".to_owned(),
            Self::Garbage { .. } => "check that an NFS server of the requested version is at this address and port".to_owned(),
            Self::Rejected { rejection: Rejection::Credential(_), .. } => {
                "run as root, so that connections leave from a port below 1024, or have the server export with `insecure` and `sys`".to_owned()
            }
            Self::Rejected { rejection: Rejection::NoProgram | Rejection::OtherVersion(..), .. } => {
                "have the server export with this version of NFS over TCP, or name another one (`version=3`, `version=4.1`)".to_owned()
            }
            Self::Rejected { .. } => "look into the server's log".to_owned(),
            Self::Refused { status: Status::PERM | Status::ACCES, .. } | Self::NotExported { status: Status::PERM | Status::ACCES, .. } => {
                "have the server export to this machine and this user; it may squash root, or want a port below 1024".to_owned()
            }
            Self::Refused { status: Status::MINOR_VERS_MISMATCH, .. } => {
                "the server does not speak version 4.1: write `version=3` in the address".to_owned()
            }
            Self::Refused { status: Status::WRONGSEC, .. } => "have the server export with `sec=sys`".to_owned(),
            Self::Refused { status: Status::EXIST, .. } => "name a file that does not exist yet, or remove it first".to_owned(),
            Self::Refused { status: Status::NOENT, .. } | Self::NotExported { .. } => {
                "check the path: it begins at the server's root, as in `nfs://SERVER/EXPORT/FILE`".to_owned()
            }
            Self::Refused { status: Status::STALE, .. } | Self::OtherFile { .. } => {
                "no other program may remove or replace the file during a run".to_owned()
            }
            Self::Refused { .. } | Self::NotReady { .. } | Self::NotDurable { .. } => "look into the server's log".to_owned(),
            Self::NoMountService { .. } => "have the server export with NFS version 3, or name `mountport` in the address".to_owned(),
            Self::OtherSecurity { .. } => "have the server export with `sec=sys`".to_owned(),
            Self::NotAFile { .. } => "name a file, below the export".to_owned(),
            Self::Claimed { .. } => {
                "wait until that run has ended; if it is certainly gone, remove the claim file".to_owned()
            }
            Self::LostWrites { .. } => "the contents of the file cannot be trusted: lay it out again, and look into the server's log".to_owned(),
            Self::WriteUnanswered { .. } => {
                "the contents of the file cannot be trusted: create it again once the path works. `timeout` in the \
                address says how long a path may be silent"
                    .to_owned()
            }
            Self::NoSession { .. } => "see that the server does not keep restarting, and that one address does not \
                alternate between servers. `version=3` in the address needs no sessions"
                .to_owned(),
            Self::DoneOrNot { .. } => "see whether it was done, and run it again once the server stays up".to_owned(),
            Self::Address(problem) => problem.hint(),
            Self::Kernel { .. } => "raise the limit of open files (`ulimit -n`), or use fewer connections".to_owned(),
        }
    }

    /// Whether the server said that there is no such file.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { status: Status::NOENT, .. })
    }

    /// Whether the server said that there is such a file already.
    pub fn is_already_there(&self) -> bool {
        matches!(self, Self::Refused { status: Status::EXIST, .. })
    }

    /// For what a fault in a reply means.
    fn garbage(path: SocketAddr, call: &'static str, fault: Fault) -> Self {
        let what = match fault {
            Fault::Short => "a reply that ends too early",
            Fault::Wrong(what) => what,
        };
        Self::Garbage { path, call, what }
    }
}

impl From<NfsError> for io::Error {
    fn from(error: NfsError) -> Self {
        let kind = match &error {
            NfsError::Refused { status, .. } => io::Error::from_raw_os_error(status.errno()).kind(),
            NfsError::Silent { .. } | NfsError::NotReady { .. } => io::ErrorKind::TimedOut,
            NfsError::Claimed { .. } => io::ErrorKind::ResourceBusy,
            NfsError::Garbage { .. } => io::ErrorKind::InvalidData,
            NfsError::Connect { source, .. } | NfsError::Broken { source, .. } => source.kind(),
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

/// A directory of a server. All files in it share a mount.
#[derive(Clone)]
pub struct NfsDirectory {
    mount: Arc<NfsMount>,
    /// From the server's root, without a slash at its end.
    path: String,
    address: NfsAddress,
}

impl fmt::Debug for NfsDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NfsDirectory({} {})", self.path, self.address)
    }
}

impl NfsDirectory {
    /// Mounts the directory that the file of `address` lies in.
    ///
    /// # Errors
    /// Why no path answers, or why the server refuses.
    pub fn of_file(address: &NfsAddress) -> Result<Self, NfsError> {
        let (directory, _) = address.directory_and_name();
        let path = directory.trim_end_matches('/').to_owned();
        Ok(Self { mount: NfsMount::connect(address)?, path, address: address.clone() })
    }

    /// Mounts the directory that `address` itself names.
    ///
    /// # Errors
    /// As [`NfsDirectory::of_file`].
    pub fn of_directory(address: &NfsAddress) -> Result<Self, NfsError> {
        let path = address.path.trim_end_matches('/').to_owned();
        // What is looked for is an export at or above the directory of a file.
        let file = NfsAddress { path: format!("{path}/file"), ..address.clone() };
        Ok(Self { mount: NfsMount::connect(&file)?, path, address: address.clone() })
    }

    fn path_of(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// What connections there are, in words.
    pub fn words(&self) -> String {
        let NfsAddress { server, connections, outstanding, .. } = &self.address;
        let paths: Vec<String> =
            self.address.routes().map(|(path, _)| path.shown(self.address.port_of(path))).collect();
        let (connections, outstanding) =
            (connections.unwrap_or(DEFAULT_CONNECTIONS), outstanding.unwrap_or(DEFAULT_OUTSTANDING));
        format!(
            "NFS version {} of this program itself to {}: paths {}, for each thread {connections} connections to each, at most \
             {} requests outstanding on one{}",
            self.address.version.name(),
            server.shown(model::config::nfs::DEFAULT_PORT),
            paths.join(", "),
            self.mount.slots().map_or(outstanding, |slots| slots.min(outstanding)),
            match self.mount.slots().filter(|slots| *slots < outstanding) {
                Some(slots) => format!(", since the server grants a session {slots} slots of the {outstanding} asked"),
                None => String::new(),
            }
        )
    }
}

impl VirtualDirectory for NfsDirectory {
    fn kind(&self) -> &'static str {
        "NFS file"
    }

    fn address_of(&self, name: &str) -> PathBuf {
        let path = self.path_of(name);
        // A name that no address can have is refused by whatever is done with it.
        self.address.with_path(&path).map_or_else(|_| PathBuf::from(path), |address| PathBuf::from(address.to_string()))
    }

    fn find(&self, name: &str) -> io::Result<Option<FoundFile>> {
        let path = self.path_of(name);
        match self.mount.look_up(&path) {
            Ok((_, Attributes { kind: FileKind::Regular, size_bytes, fsid, fileid, .. })) => {
                Ok(Some(FoundFile { length_bytes: size_bytes, identity: (fsid, fileid) }))
            }
            Ok(_) => Err(NfsError::NotAFile { name: path }.into()),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn open(&self, name: &str, _: Access, durability: Durability) -> io::Result<Arc<dyn VirtualFile>> {
        Ok(Arc::new(NfsFile::open(&self.mount, &self.path_of(name), durability)?))
    }

    fn create(&self, name: &str, _: u64, _: FileUse, durability: Durability) -> io::Result<Arc<dyn VirtualFile>> {
        Ok(Arc::new(NfsFile::create(&self.mount, &self.path_of(name), durability)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(self.mount.rename(&self.path_of(from), &self.path_of(to))?)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match self.mount.remove(&self.path_of(name)) {
            Err(error) if error.is_not_found() => Ok(()),
            removed => Ok(removed?),
        }
    }

    fn free_bytes(&self) -> io::Result<Option<u64>> {
        Ok(Some(self.mount.space()?.available_bytes))
    }

    fn claim(&self, name: &str, holder: &str) -> io::Result<Claim> {
        Ok(Box::new(NfsClaim::take(&self.mount, &self.path_of(name), holder)?))
    }

    fn is_claimed(&self, name: &str) -> io::Result<bool> {
        Ok(self.find(&format!(".{name}{SUFFIX}"))?.is_some())
    }

    fn facts(&self) -> TargetFacts {
        let NfsAddress { connections, outstanding, .. } = &self.address;
        let paths: Vec<String> =
            self.address.routes().map(|(path, _)| path.shown(self.address.port_of(path))).collect();
        let info = self.mount.info();
        TargetFacts {
            files: FileFacts { protocol: Some(format!("nfs{}", self.address.version.name())), ..FileFacts::default() },
            nfs: NfsFacts {
                volume_bytes: self.mount.space().ok().map(|space| space.total_bytes),
                connections: vec![connections.unwrap_or(DEFAULT_CONNECTIONS)],
                outstanding: Some(outstanding.unwrap_or(DEFAULT_OUTSTANDING)),
                slots: self.mount.slots(),
                kernel_client: None,
            },
            other: [
                ("nfs_paths".to_owned(), paths.join(" ")),
                ("nfs_read_max".to_owned(), info.read_max_bytes.to_string()),
                ("nfs_write_max".to_owned(), info.write_max_bytes.to_string()),
            ]
            .into(),
            ..TargetFacts::default()
        }
    }
}

// Who uses a file: a file beside it that whoever writes creates and removes again. The server's locks would want another protocol
// (NLM) and a daemon; this is advice, and only for this program's runs.

/// What the claim's name ends in.
const SUFFIX: &str = ".plimsoll-claim";
/// What is read of another claim at most, in bytes.
const MAX_HOLDER_BYTES: u64 = 200;

/// That this process uses a file, until it is dropped.
#[derive(Debug)]
pub struct NfsClaim {
    mount: Arc<NfsMount>,
    path: String,
}

impl NfsClaim {
    /// Claims the file at `path` for `holder`, one line that says who that is.
    ///
    /// # Errors
    /// [`NfsError::Claimed`] with what the other one says of itself, and the server's answer.
    pub fn take(mount: &Arc<NfsMount>, path: &str, holder: &str) -> Result<Self, NfsError> {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let claim = format!("{directory}/.{name}{SUFFIX}");
        let file = match NfsFile::create(mount, &claim, Durability::EachWrite) {
            Ok(file) => file,
            Err(error) if error.is_already_there() => {
                let holder = holder_of(mount, &claim).unwrap_or_else(|| "nothing of who".to_owned());
                return Err(NfsError::Claimed { name: path.to_owned(), claim, holder });
            }
            Err(error) => return Err(error),
        };
        let taken = Self { mount: Arc::clone(mount), path: claim };
        // A claim that says nothing is one all the same.
        let _ = file.write_all_at(holder.as_bytes(), 0);
        Ok(taken)
    }

    /// Path of the claim's file.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl Drop for NfsClaim {
    fn drop(&mut self) {
        // Whoever finds it later is told what to do.
        let _ = self.mount.remove(&self.path);
    }
}

/// What another claim says, as far as it is printable.
fn holder_of(mount: &Arc<NfsMount>, claim: &str) -> Option<String> {
    let file = NfsFile::open(mount, claim, Durability::OnSync).ok()?;
    let mut said = vec![0; file.length().ok()?.min(MAX_HOLDER_BYTES) as usize];
    file.read_exact_at(&mut said, 0).ok()?;
    let said: String = String::from_utf8_lossy(&said).chars().filter(|sign| !sign.is_control()).collect();
    (!said.is_empty()).then(|| format!("`{said}`"))
}
