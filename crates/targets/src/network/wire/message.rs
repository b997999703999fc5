//! What both ends say to each other on a control connection.

use serde::{Deserialize, Serialize};

use super::error::{WireError, short};
use model::record::{Environment, NetworkEnd};

/// Number of the protocol; goes up with every change that another end would not understand.
pub const PROTOCOL: u32 = 1;

/// The first message of each end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Version {
    /// Number of the protocol.
    pub protocol: u32,
    /// Version of the program.
    pub program: String,
}

impl Version {
    /// That of this program.
    pub fn ours() -> Self {
        Self { protocol: PROTOCOL, program: env!("CARGO_PKG_VERSION").to_owned() }
    }

    /// Looks whether both ends understand each other. Messages have no room for the unknown, so programs must be the same.
    ///
    /// # Errors
    /// When they may not.
    pub fn check(&self) -> Result<(), WireError> {
        if *self == Self::ours() {
            return Ok(());
        }
        let program = short(&self.program);
        Err(WireError::OtherProtocol { theirs: format!("{} (plimsoll {program})", self.protocol), ours: PROTOCOL })
    }
}

/// What a client says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromClient {
    /// Said first.
    Version(Version),
    /// Asks for a test. Answered by [`FromServer::Opened`] or [`FromServer::Refused`], perhaps after
    /// [`FromServer::Preparing`].
    Open(Open),
    /// Load begins: from now on the server sends every 100 ms what it saw, and time counts.
    Begin,
    /// Asks what the server saw until now; the number comes back with it.
    Snapshot(u64),
    /// The client is there still. Whoever says nothing for 10 s is taken for gone.
    Alive,
    /// Ends the test. Answered by [`FromServer::Ended`]; another test may follow on the same connection.
    End,
}

/// A test that a client asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// What it is, in a few words for the server's log.
    pub what: String,
    /// Data connections that it will have at most; sockets of datagrams count too.
    pub connections: u32,
    /// Longest request, its head included.
    pub max_request_bytes: u32,
    /// Longest answer, its head included.
    pub max_answer_bytes: u32,
    /// Some requests shall be written durably.
    pub is_durable: bool,
    /// Some exchanges are datagrams.
    pub has_datagrams: bool,
    /// How long load will go on, where that is known.
    pub duration_ms: Option<u64>,
    /// Most that the server sends over [`Carries::Down`](super::Carries::Down) connections, all of them together.
    pub down_bytes_per_s: Option<u64>,
    /// How the server's sockets shall be.
    pub sockets: SocketOptions,
}

/// How sockets shall be; what is absent is left to the system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SocketOptions {
    /// Send buffer. The kernel doubles what it is given.
    pub send_buffer_bytes: Option<u64>,
    /// Receive buffer, likewise.
    pub receive_buffer_bytes: Option<u64>,
    /// Congestion control, such as `cubic`.
    pub congestion: Option<String>,
}

/// What a server says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromServer {
    /// Said first.
    Version(Version),
    /// The test will be opened when files have been filled so far; said once a second.
    Preparing {
        /// Bytes that were written.
        done_bytes: u64,
        /// Bytes to be written.
        of_bytes: u64,
    },
    /// Data connections may come.
    Opened(Box<Opened>),
    /// The test is not opened.
    Refused(Refused),
    /// What the server saw until now.
    Seen(Box<Seen>),
    /// The test has ended, asked by its client or not.
    Ended(Box<Ended>),
}

/// A test that was opened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opened {
    /// Its number, which data connections prove that they know.
    pub test: u64,
    /// Where datagrams go; absent where none were asked for.
    pub datagrams: Option<UdpPort>,
    /// The server's host.
    pub host: Environment,
    /// What the server allows.
    pub limits: Limits,
}

/// Where datagrams go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UdpPort {
    /// Port, on the address of the control connection.
    pub port: u16,
    /// What each socket introduces itself with.
    pub nonce: [u8; 16],
}

/// What a server allows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Bytes per second, each way.
    pub bytes_per_s: Option<u64>,
    /// Longest test.
    pub duration_ms: u64,
    /// Bytes of files that durable writes go around in; absent where the server writes nothing.
    pub write_bytes: Option<u64>,
}

/// Why a test is not opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refused {
    /// The reason.
    pub why: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// What a server saw since the test was opened.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seen {
    /// The number of the snapshot that was asked for.
    pub snapshot: Option<u64>,
    /// When, since load began, on the server's clock.
    pub at_ns: u64,
    /// Data connections that are open.
    pub connections: u32,
    /// Requests that were answered, datagrams included.
    pub requests: u64,
    /// Datagrams that were answered.
    pub datagrams: u64,
    /// Datagrams that were thrown away: malformed, or of a socket that had not introduced itself.
    pub strange_datagrams: u64,
    /// Durable writes.
    pub writes: u64,
    /// Bytes of these.
    pub written_bytes: u64,
    /// Time that they took.
    pub write_ns: u64,
    /// What went wrong so far on data connections, the first of it.
    pub trouble: Option<String>,
    /// Its sockets, kernel and processors.
    pub end: NetworkEnd,
}

/// A test that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ended {
    /// Why, where its client did not ask for it.
    pub why: Option<String>,
    /// What the server saw until then.
    pub seen: Seen,
}
