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

pub mod accept;
mod control;
mod error;
mod frame;
mod hand;
mod head;
mod key;
mod message;

pub use control::{ClientControl, Control, ServerControl};
pub use error::WireError;
pub(in crate::network) use error::short;
pub use frame::{Frames, MAX_FRAME_BYTES};
pub use hand::{
    Carries, Challenge, Flow, GREETING_BYTES, HELLO_BYTES, HelloRead, Role, Session, VERDICT_BYTES, greet,
    prove_control, prove_data, prove_part,
};
pub use head::{
    ANSWER_HEAD_BYTES, Answer, INTRODUCTION_BYTES, Introduction, MAX_BODY_BYTES, MAX_DATAGRAM_BYTES,
    REQUEST_HEAD_BYTES, RequestHead, Status,
};
pub(in crate::network) use key::fresh_nonce;
pub use key::{Key, MIN_TOKEN_CHARS, Token};
pub use message::{
    Ended, FromClient, FromServer, Limits, Open, Opened, PROTOCOL, Refused, Seen, SocketOptions, UdpPort, Version,
};
