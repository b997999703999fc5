//! What a server says of who comes and what happens. Nothing of a secret is in it.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use serde::Serialize;

use model::units::{Bytes, Nanos};

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A connection did not show that it knows the token.
    TurnedAway {
        /// Where it came from.
        from: IpAddr,
        /// Why.
        why: String,
        /// How many more there were that were not reported.
        more: u64,
    },
    /// A test was not opened.
    Refused {
        /// Who asked.
        from: SocketAddr,
        /// Why not.
        why: String,
    },
    /// A test was opened.
    Opened {
        /// Who asked.
        from: SocketAddr,
        /// Its number.
        test: u64,
        /// What it is, in its client's words.
        what: String,
    },
    /// A data connection ended otherwise than it should.
    Trouble {
        /// Whose.
        from: SocketAddr,
        /// Of which test.
        test: u64,
        /// What went wrong.
        what: String,
    },
    /// A test has ended.
    Ended {
        /// Whose.
        from: SocketAddr,
        /// Its number.
        test: u64,
        /// Why, where its client did not ask for it.
        why: Option<String>,
        /// Time since it was opened.
        elapsed_ns: u64,
        /// Bytes received.
        received_bytes: u64,
        /// Bytes sent.
        sent_bytes: u64,
        /// Requests answered.
        requests: u64,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TurnedAway { from, why, more } => {
                write!(f, "{from} turned away: {why}")?;
                if *more > 0 { write!(f, " (and {more} more before)") } else { Ok(()) }
            }
            Self::Refused { from, why } => write!(f, "{from} refused: {why}"),
            Self::Opened { from, test, what } => write!(f, "{from} begins test {test}: {what}"),
            Self::Trouble { from, test, what } => write!(f, "{from} in test {test}: {what}"),
            Self::Ended { from, test, why, elapsed_ns, received_bytes, sent_bytes, requests } => {
                let (received, sent) = (Bytes(*received_bytes), Bytes(*sent_bytes));
                let elapsed = Nanos(*elapsed_ns);
                write!(f, "{from} ends test {test} after {elapsed}: received {received}, sent {sent}")?;
                if *requests > 0 {
                    write!(f, ", {requests} requests")?;
                }
                why.iter().try_for_each(|why| write!(f, "; {why}"))
            }
        }
    }
}
