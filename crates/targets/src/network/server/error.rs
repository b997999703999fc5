//! Why a server cannot serve.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a server cannot be started, or not go on.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// Nothing can be written where durable writes shall go.
    #[error("cannot write to `{path}`: {source}", path = .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Connections cannot be taken any more.
    #[error("cannot take connections on {address}: {source}")]
    Accept {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
}

impl ServeError {
    /// What to do about it, where there is something.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Listen { source, .. } => match source.kind() {
                io::ErrorKind::AddrInUse => {
                    "another server listens there, perhaps of ours: `--listen ADDR:PORT` takes another port, and port 0 any free one"
                }
                io::ErrorKind::AddrNotAvailable => {
                    "this machine has no such address: `ip address` lists what it has, and 0.0.0.0 is all of them"
                }
                io::ErrorKind::PermissionDenied => "ports below 1024 are for root: take another one",
                _ => return None,
            },
            Self::Directory { .. } => "`--write DIR` names a directory that exists and can be written to by this user",
            Self::Accept { .. } => return None,
        })
    }
}
