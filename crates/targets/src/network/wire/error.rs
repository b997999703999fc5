//! What can go wrong between two ends, in words.

use std::io;
use std::time::Duration;

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
    #[diagnostic(help("somebody else answers at that address, or a program between changed what was sent"))]
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
    #[error("the token has {chars} characters, and at least {least} are asked for")]
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
    pub(super) fn of(action: &'static str, during: &'static str, source: io::Error) -> Self {
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
pub(super) const HANDSHAKE: &str = "in the handshake";

/// What is left until `deadline`, for a system call that takes no zero.
pub(super) fn left(deadline: std::time::Instant, during: &'static str) -> Result<Duration, WireError> {
    let left = deadline.saturating_duration_since(std::time::Instant::now());
    if left.is_zero() { Err(WireError::Silent { during }) } else { Ok(left) }
}

/// Longest text of the other end that is shown.
const SHOWN_CHARS: usize = 200;

/// Text of the other end without what a terminal would obey, and no longer than it is worth.
pub(in crate::network) fn short(text: &str) -> String {
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().take(SHOWN_CHARS).map(printable).collect()
}
