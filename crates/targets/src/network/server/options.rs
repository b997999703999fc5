//! How a server shall be.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::event::Event;
use crate::network::wire::{Limits, Token};

/// Most control connections at a time.
pub(super) const MAX_CONTROLS: u32 = 16;

/// Who hears what happens.
pub type Report<'a> = &'a (dyn Fn(&Event) + Sync);

/// How a server shall be.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Address and port; port 0 takes any free one.
    pub listen: SocketAddr,
    /// What clients must know.
    pub token: Token,
    /// Maximum number of data connections of a test.
    pub max_connections: u32,
    /// Maximum bytes per second, each way, of all connections together.
    pub max_bytes_per_s: Option<u64>,
    /// Longest test.
    pub max_duration: Duration,
    /// Where durable writes go; without it there are none.
    pub write: Option<WriteTo>,
    /// The server ends when nobody has had a test for so long.
    pub idle: Option<Duration>,
    /// The server ends after one test.
    pub once: bool,
}

/// Where durable writes go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteTo {
    /// A directory that exists.
    pub directory: PathBuf,
    /// Size of all files that are written to together.
    pub max_bytes: u64,
}

/// Maximum number of data connections of a test unless more are allowed.
pub const DEFAULT_MAX_CONNECTIONS: u32 = 512;
/// Longest test unless longer ones are allowed.
pub const DEFAULT_MAX_DURATION: Duration = Duration::from_secs(3_600);
/// Size of the files that are written to unless another is given.
pub const DEFAULT_WRITE_MAX: u64 = 256 << 20;

impl ServerOptions {
    /// On loopback and any free port, with limits as they are by default, and until it is asked to end: for both ends in one process.
    pub fn own(token: Token) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            token,
            max_connections: DEFAULT_MAX_CONNECTIONS,
            max_bytes_per_s: None,
            max_duration: DEFAULT_MAX_DURATION,
            write: None,
            idle: None,
            once: false,
        }
    }
}

impl ServerOptions {
    /// What clients hear of it.
    pub(super) fn limits(&self) -> Limits {
        Limits {
            bytes_per_s: self.max_bytes_per_s,
            duration_ms: u64::try_from(self.max_duration.as_millis()).unwrap_or(u64::MAX),
            write_bytes: self.write.as_ref().map(|write| write.max_bytes),
        }
    }
}
