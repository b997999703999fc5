//! What goes over the wire between `plimsoll net serve` and its clients, as pure code and blocking helpers of both ends.
//!
//! One TCP port takes control connections and data connections. All numbers are little endian.
//!
//! ```text
//! server                                              client
//!   greeting, 40 bytes: magic, nonce            ─▶
//!                                               ◀─   hello, 64 bytes: magic, role, flow, nonce, proof
//!   verdict, 40 bytes: code, proof              ─▶
//! ```
//!
//! Nothing else is read before the proof: an HMAC-SHA256 over the greeting and what stands before it in the hello. Of a control
//! connection its key is the token. Both ends then make a key of the session of the token and both nonces, and data connections
//! prove that they have that one: neither the token nor a key is ever sent, and what was heard on the wire proves nothing
//! again. The server's proof comes back, so a client never talks to somebody else. What follows is neither encrypted nor
//! signed: it is filling, lengths and times.
//!
//! - A [`Control`] connection carries frames of at most [`MAX_FRAME_BYTES`]: a length of four bytes, then one message in JSON.
//!   A client says [`FromClient`], a server [`FromServer`]; the first message of each is a [`Version`].
//! - A data connection carries what its [`Flow`] says: bytes without a form, one way, or requests and answers with the heads in
//!   [`RequestHead`] and [`Answer`].
//! - Datagrams have the same heads. Before them a client names itself by an [`Introduction`] with a nonce that it was given on
//!   its control connection.
//!
//! No number from the wire is believed: each is checked against a limit before anything is allocated or waited for by it.

mod control;
mod hand;
mod head;

use std::fmt::{Display, Write as _};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::Scope;
use std::time::{Duration, Instant};
use std::{fmt, io};

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};

use measure::os::TcpInfo;
use model::config::Secret;
use model::record::{Environment, NetworkEnd};

pub use control::{ClientControl, Control, Frames, MAX_FRAME_BYTES, ServerControl};
pub use hand::{
    Carries, Challenge, Flow, GREETING_BYTES, HELLO_BYTES, HelloRead, Role, Session, VERDICT_BYTES, greet,
    prove_control, prove_data, prove_load, prove_part,
};
pub use head::{
    ANSWER_HEAD_BYTES, Answer, INTRODUCTION_BYTES, Introduction, MAX_BODY_BYTES, MAX_DATAGRAM_BYTES,
    REQUEST_HEAD_BYTES, RequestHead, Status,
};

/// Fewest characters of a token: whoever hears a handshake can try words at leisure.
pub const MIN_TOKEN_CHARS: usize = 8;

/// Random bytes in a token that is made here.
const TOKEN_BYTES: usize = 16;

const PROOF_BYTES: usize = 32;

/// What a client must know. It is never sent.
#[derive(Clone, Debug)]
pub struct Token(Secret);

impl Token {
    /// A token as its user wrote it; blanks and ends of lines around it do not count.
    ///
    /// # Errors
    /// When it is too short.
    pub fn new(text: &str) -> Result<Self, WireError> {
        let text = text.trim();
        let chars = text.chars().count();
        if chars < MIN_TOKEN_CHARS {
            return Err(WireError::ShortToken { chars, least: MIN_TOKEN_CHARS });
        }
        Ok(Self(Secret::new(text)))
    }

    /// A token that nobody had before.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn random() -> Result<Self, WireError> {
        let bytes: [u8; TOKEN_BYTES] = random()?;
        let mut text = String::with_capacity(2 * TOKEN_BYTES);
        for byte in bytes {
            let _ = write!(text, "{byte:02x}");
        }
        Ok(Self(Secret::new(text)))
    }

    /// The token itself, to be shown once to whoever started the server that made it.
    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    /// The key of control connections.
    pub fn key(&self) -> Key {
        Key::new(self.expose().as_bytes())
    }
}

/// What proofs are made with.
#[derive(Clone)]
pub struct Key(hmac::Key);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(***)")
    }
}

impl Key {
    fn new(bytes: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }

    /// A proof over `parts`, whose lengths are the same for each `label`.
    fn prove(&self, label: &str, parts: &[&[u8]]) -> [u8; PROOF_BYTES] {
        let mut proof = [0; PROOF_BYTES];
        proof.copy_from_slice(self.sign(label, parts).as_ref());
        proof
    }

    /// Whether `proof` is that of `parts`; takes as long whichever byte is wrong.
    fn is_proved(&self, label: &str, parts: &[&[u8]], proof: &[u8]) -> bool {
        hmac::verify(&self.0, self.sign_input(label, parts).as_slice(), proof).is_ok()
    }

    /// A key of its own for what `parts` name.
    fn derive(&self, label: &str, parts: &[&[u8]]) -> Self {
        Self::new(self.sign(label, parts).as_ref())
    }

    fn sign(&self, label: &str, parts: &[&[u8]]) -> hmac::Tag {
        hmac::sign(&self.0, &self.sign_input(label, parts))
    }

    fn sign_input(&self, label: &str, parts: &[&[u8]]) -> Vec<u8> {
        let mut input = label.as_bytes().to_vec();
        // Ends the label, so that none is the beginning of another.
        input.push(0);
        parts.iter().for_each(|part| input.extend_from_slice(part));
        input
    }
}

/// Random bytes of the system.
///
/// # Errors
/// When it has none to give.
fn random<const N: usize>() -> Result<[u8; N], WireError> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| WireError::NoRandomness)?;
    Ok(bytes)
}

/// What a client's socket of datagrams introduces itself with.
///
/// # Errors
/// When the system has no random bytes to give.
pub(super) fn fresh_nonce() -> Result<[u8; 16], WireError> {
    random()
}

const TRY_AGAIN: &str =
    "the server may have ended, or has too many connections that have not yet shown the token: try again";

/// Why a connection cannot be used, or not any more. The words do not say who the other end is: whoever reports it does.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum WireError {
    /// A system call on the connection failed.
    #[error("cannot {action}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The other end closed in the middle.
    #[error("the connection was closed {during}")]
    #[diagnostic(help("{}", if *during == HANDSHAKE { TRY_AGAIN } else { "" }))]
    Closed {
        /// What was under way, such as `in the handshake`.
        during: &'static str,
    },
    /// Nothing came, or nothing was taken, for too long.
    #[error("no answer {during}")]
    #[diagnostic(help("a firewall may drop what is sent, or the other host has no time"))]
    Silent {
        /// What was under way.
        during: &'static str,
    },
    /// The other end is no Plimsoll.
    #[error("what answers there does not speak as plimsoll does")]
    #[diagnostic(help("start `plimsoll net serve` on that host, and give its port: HOST:PORT"))]
    Stranger,
    /// The other end is a Plimsoll of another time.
    #[error("the other end speaks protocol {theirs}, this program speaks {ours}")]
    #[diagnostic(help("run the same version of plimsoll on both hosts"))]
    OtherProtocol {
        /// What the other end said, with the version of its program where it gave it.
        theirs: String,
        /// The protocol of this program.
        ours: u32,
    },
    /// The server did not take our proof.
    #[error("the server did not accept the token")]
    #[diagnostic(help(
        "set PLIMSOLL_NET_TOKEN, or name a file with --token-file, to the token of that server: it shows the one that \
         it made"
    ))]
    TokenRefused,
    /// A data connection of a test that has ended, or never was.
    #[error("the server has no such test any more")]
    NoTest,
    /// The server does not know the token either.
    #[error("the server could not prove that it knows the token")]
    #[diagnostic(help("another program answers at that address, or one between changed what was sent"))]
    Unproven,
    /// A length that is over its limit.
    #[error("{what} of {bytes} bytes was announced, and at most {most} are taken")]
    TooLong {
        /// What is that long.
        what: &'static str,
        /// As announced.
        bytes: u64,
        /// Limit.
        most: u64,
    },
    /// Bytes that mean nothing.
    #[error("{what} is not what it should be: {why}")]
    Malformed {
        /// What was read.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// The system has no randomness to give.
    #[error("the system gave no random bytes")]
    NoRandomness,
    /// A token that could be guessed.
    #[error("the token has {chars} characters, and needs at least {least}")]
    #[diagnostic(help("leave it out and the server makes one of its own, or use `openssl rand -hex 16`"))]
    ShortToken {
        /// How many it has.
        chars: usize,
        /// The fewest that are asked for.
        least: usize,
    },
}

impl WireError {
    /// What to do about it, where there is something.
    pub fn hint(&self) -> Option<String> {
        model::hint(self)
    }

    /// The error of a system call; a timeout and an end have their own.
    fn of(action: &'static str, during: &'static str, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Self::Silent { during },
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                Self::Closed { during }
            }
            _ => Self::Io { action, source },
        }
    }

    /// Bytes that mean nothing, and why: it may hold text of the other end.
    pub fn malformed(what: &'static str, why: impl ToString) -> Self {
        Self::Malformed { what, why: short(&why.to_string()) }
    }

    /// What a server says of somebody whom it turned away for this.
    pub fn of_stranger(&self) -> String {
        match self {
            Self::TokenRefused => "it did not prove that it knows the token".to_owned(),
            Self::NoTest => "it came for a test that does not go on".to_owned(),
            error => error.to_string(),
        }
    }

    /// Whether the other end simply went away.
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Closed { .. })
    }
}

/// What is under way before anybody has proved anything.
const HANDSHAKE: &str = "in the handshake";

/// What is left until `deadline`, for a system call that takes no zero.
fn left(deadline: std::time::Instant, during: &'static str) -> Result<Duration, WireError> {
    let left = deadline.saturating_duration_since(std::time::Instant::now());
    if left.is_zero() { Err(WireError::Silent { during }) } else { Ok(left) }
}

/// Longest text of the other end that is shown.
const SHOWN_CHARS: usize = 200;

/// Text of the other end without what a terminal would obey, and no longer than it is worth.
pub fn short(text: &str) -> String {
    model::shown::shown(&text.chars().take(SHOWN_CHARS).collect::<String>()).into_owned()
}

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
    /// Most that the server sends over [`Carries::Down`] connections, all of them together.
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

/// What a server does with those who come.
pub trait Acceptor: Sync {
    /// Whether nobody is let in any more.
    fn is_closing(&self) -> bool;

    /// Attends to somebody until they go. `known` is said as soon as they have shown the token, or cannot.
    ///
    /// # Errors
    /// Why they were turned away.
    fn attend(&self, stream: Arc<TcpStream>, from: IpAddr, known: &Known) -> Result<(), WireError>;

    /// Somebody was turned away.
    fn turned_away(&self, from: IpAddr, why: &dyn Display);

    /// Somebody waits who cannot be let in for now, as when this process has no descriptor left.
    fn could_not_take(&self, why: &std::io::Error);
}

/// Says that a connection needs no place among the unproven any more.
#[derive(Debug)]
pub struct Known(Arc<AtomicBool>);

impl Known {
    /// It has shown the token, or cannot.
    pub fn say(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        self.say();
    }
}

/// Most connections that are looked at before they have shown the token.
const MAX_UNPROVEN: usize = 4;
/// How long one may take for that.
pub const PROVES_IN: Duration = Duration::from_secs(5);
/// After so long, and some round trips, it makes room for the next one, so that many who say nothing keep nobody out for long.
const MAKES_ROOM_AFTER: Duration = Duration::from_millis(15);
const ROUND_TRIPS: u32 = 4;
/// The most that round trips add.
const MAX_ROUND_TRIPS: Duration = Duration::from_millis(300);
/// How often is looked whether one may make room.
const WAITS_FOR_ROOM: Duration = Duration::from_millis(1);
/// How often the server looks whether it is to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Threads hold little on their stacks.
const STACK_BYTES: usize = 256 << 10;

struct Unproven {
    /// Held by the thread that looks at it.
    stream: Weak<TcpStream>,
    since: Instant,
    /// How long it has if others wait.
    keeps_room: Duration,
    is_known: Arc<AtomicBool>,
}

impl Unproven {
    fn new(stream: &Arc<TcpStream>, is_known: &Arc<AtomicBool>) -> Self {
        // The kernel has measured one when the connection was made.
        let round_trip = TcpInfo::of(stream).map_or(0, |info| info.rtt_ns);
        let round_trips = Duration::from_nanos(round_trip).saturating_mul(ROUND_TRIPS).min(MAX_ROUND_TRIPS);
        Self {
            stream: Arc::downgrade(stream),
            since: Instant::now(),
            keeps_room: MAKES_ROOM_AFTER + round_trips,
            is_known: Arc::clone(is_known),
        }
    }

    fn has_time(&self) -> bool {
        self.since.elapsed() < self.keeps_room
    }

    fn close(&self) {
        if let Some(stream) = self.stream.upgrade() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Lets in whoever comes, until the server is to end.
///
/// # Errors
/// When the kernel has no more connections to give.
pub fn accept_connections<'s>(
    keeper: &'s dyn Acceptor,
    listener: &TcpListener,
    scope: &'s Scope<'s, '_>,
) -> std::io::Result<()> {
    let mut unproven: Vec<Unproven> = Vec::new();
    while !keeper.is_closing() {
        unproven.retain(|one| !one.is_known.load(Ordering::Relaxed));
        if unproven.len() >= MAX_UNPROVEN && unproven[0].has_time() {
            std::thread::sleep(WAITS_FOR_ROOM);
            continue;
        }
        if !comes(listener) {
            continue;
        }
        let (stream, from) = match listener.accept() {
            Ok(came) => came,
            Err(error) if goes_on(&error) => {
                keeper.could_not_take(&error);
                continue;
            }
            Err(error) => return Err(error),
        };
        if unproven.len() >= MAX_UNPROVEN {
            unproven.remove(0).close();
        }
        let (stream, is_known) = (Arc::new(stream), Arc::new(AtomicBool::new(false)));
        let one = Unproven::new(&stream, &is_known);
        let attend = move || {
            let plain = stream.set_nonblocking(false).and_then(|()| stream.set_nodelay(true));
            let prepared = plain.map_err(|source| WireError::Io { action: "prepare a connection", source });
            if let Err(error) = prepared.and_then(|()| keeper.attend(stream, from.ip(), &Known(is_known))) {
                keeper.turned_away(from.ip(), &error.of_stranger());
            }
        };
        let thread = std::thread::Builder::new().name("serve".to_owned()).stack_size(STACK_BYTES);
        match thread.spawn_scoped(scope, attend) {
            Ok(_) => unproven.push(one),
            Err(error) => keeper.turned_away(from.ip(), &format_args!("no thread for it: {error}")),
        }
    }
    unproven.iter().for_each(Unproven::close);
    Ok(())
}

/// Waits for somebody, for as long as the server need not look at anything else.
fn comes(listener: &TcpListener) -> bool {
    let mut fds = [PollFd::new(listener, PollFlags::IN)];
    let patience = Timespec { tv_sec: 0, tv_nsec: LOOK_EVERY.subsec_nanos().into() };
    matches!(poll(&mut fds, Some(&patience)), Ok(ready) if ready > 0)
}

/// Errors after which others can still come. Without free descriptors, that takes some time.
fn goes_on(error: &std::io::Error) -> bool {
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => {
            std::thread::sleep(LOOK_EVERY);
            true
        }
        Some(libc::ECONNABORTED | libc::EINTR | libc::EAGAIN | libc::EPROTO | libc::EPERM) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_long_enough_and_never_shown() {
        assert_eq!(Token::new("  tops3cret\n").unwrap().expose(), "tops3cret");
        let error = Token::new(" seven77 ").unwrap_err();
        assert_eq!(error.to_string(), "the token has 7 characters, and needs at least 8");
        let (one, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert!(one.expose().len() == 2 * TOKEN_BYTES && one.expose() != other.expose());
        assert!(!format!("{one:?} {:?}", one.key()).contains(one.expose()));
    }

    #[test]
    fn a_proof_is_of_one_key_one_label_and_all_bytes() {
        let key = Key::new(b"key");
        let proof = key.prove("a", &[b"bc", b"d"]);
        assert!(key.is_proved("a", &[b"bc", b"d"], &proof));
        let mut wrong = proof;
        wrong[31] ^= 1;
        assert!(!key.is_proved("a", &[b"bc", b"d"], &wrong) && !key.is_proved("a", &[b"bc", b"d"], &proof[..31]));
        assert!(!key.is_proved("ab", &[b"c", b"d"], &proof) && !key.is_proved("a", &[b"bc"], &proof));
        assert!(!Key::new(b"kez").is_proved("a", &[b"bc", b"d"], &proof));
        assert!(!key.derive("s", &[b"x"]).is_proved("a", &[b"bc", b"d"], &proof));
    }
}
