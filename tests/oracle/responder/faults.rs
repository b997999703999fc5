//! What goes wrong before a session is logged on, and how a session ends.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// What goes wrong while a client connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The listener refuses with this code: 12514 is a service that it does not know, 12516 no handler, 12520 no dedicated server.
    Refuse(u32),
    /// The listener sends the client to another one.
    Redirect(SocketAddr),
    /// The server is as old as 11.2.
    OldServer,
    /// The server wants Oracle's native network encryption.
    NativeEncryption,
    /// The user's password was kept by an old release only: verifiers of 10G and 11G.
    OldVerifier,
    /// The logon fails with this code, such as 28000 for an account that is locked.
    Logon { code: u32, message: String },
    /// The client is kept waiting before the stage, then all is well.
    Delay(Stage, Duration),
    /// Nothing is said from this stage on.
    Silence(Stage),
    /// An answer in the middle of the logon ends half way, and nothing follows.
    StopInTheMiddle,
    /// The connection is closed at this stage.
    Close(Stage),
    /// These bytes, from something that is no listener.
    Bytes(Vec<u8>),
}

/// How far connecting gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The connect packet was read.
    Connect,
    /// The connection was accepted, nothing was agreed upon.
    Accepted,
    /// The password is next.
    Password,
}

/// Why a session's thread ends.
#[derive(Debug)]
pub enum Ended {
    /// The client is gone, or the responder cut the connection.
    ByClient,
    /// A test wanted that.
    ByFault,
    /// The client sent what the responder does not understand: a gap in the responder, which fails the test when it is dropped.
    Nonsense(&'static str),
}

impl From<io::Error> for Ended {
    fn from(_: io::Error) -> Ended {
        Ended::ByClient
    }
}
