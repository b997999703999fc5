//! What can go wrong between this program and an NFS server.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use super::wire::{Fault, Rejection, Status};
use model::config::ServerAddressProblem;
use model::units::Nanos;

/// Why lost writes were not sent again: nobody may write meanwhile.
pub(super) const OTHERS_WRITE: &str = "other writes to it have no answer, or others were sending it again for too long";

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
    #[error("the server at {path} answered {call} with what is no reply: {what}")]
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
    #[error("the server answered a write of `{name}` as not durable, although durability was asked for")]
    NotDurable { name: String },

    /// The answer to a write is missing.
    #[error(
        "a write over the path {path} has no answer ({why}), and whether the server will still do it is not known: sending it again \
         could overwrite newer data"
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
            Self::Garbage { .. } => "check that an NFS server of the version asked for is at this address and port".to_owned(),
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
                "nobody else may remove or replace the file during a run".to_owned()
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
                "the contents of the file cannot be trusted: lay it out again once the path is sound; `timeout` in the address says how long \
                 a path may be silent"
                    .to_owned()
            }
            Self::NoSession { .. } => "see that the server does not restart again and again, and that one address does not lead to several \
                                       servers by turns; `version=3` in the address needs no sessions"
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
    pub(super) fn garbage(path: SocketAddr, call: &'static str, fault: Fault) -> Self {
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
