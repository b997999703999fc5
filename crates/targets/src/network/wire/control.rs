//! A control connection, whose handshake is over.

use std::io::Read;
use std::marker::PhantomData;
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::{WireError, left};
use super::frame::{Frames, frame_of};
use super::hand::{Session, prove_control, write_by};
use super::key::Key;
use super::message::{FromClient, FromServer, Version};

/// How long the other end may take to take a message.
const SEND_PATIENCE: Duration = Duration::from_secs(5);
/// Bytes that are read at once.
const PIECE_BYTES: usize = 4 << 10;

const CONTROLLED: &str = "on the control connection";

/// One end of a control connection: receives `I`, sends `O`.
#[derive(Debug)]
pub struct Control<I, O> {
    stream: TcpStream,
    frames: Frames<I>,
    sends: PhantomData<fn(&O)>,
}

/// The client's end.
pub type ClientControl = Control<FromServer, FromClient>;
/// The server's end.
pub type ServerControl = Control<FromClient, FromServer>;

impl<I: DeserializeOwned, O: Serialize> Control<I, O> {
    /// One end of a connection whose handshake is over.
    pub fn new(stream: TcpStream) -> Self {
        Self { stream, frames: Frames::default(), sends: PhantomData }
    }

    /// The connection itself.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends a message.
    ///
    /// # Errors
    /// When the other end has gone, or does not take it for 5 s.
    pub fn send(&self, message: &O) -> Result<(), WireError> {
        write_by(&self.stream, &frame_of(message)?, Instant::now() + SEND_PATIENCE, CONTROLLED)
    }

    /// The next message, or none if `until` comes first; what had come by then of a longer one is kept.
    ///
    /// # Errors
    /// When the other end has gone, or sends what is no message.
    pub fn receive(&mut self, until: Instant) -> Result<Option<I>, WireError> {
        loop {
            if let Some(message) = self.frames.next_message()? {
                return Ok(Some(message));
            }
            let Ok(patience) = left(until, CONTROLLED) else { return Ok(None) };
            let mut piece = [0; PIECE_BYTES];
            let set = self.stream.set_read_timeout(Some(patience));
            match set.and_then(|()| self.stream.read(&mut piece)) {
                Ok(0) => return Err(WireError::Closed { during: CONTROLLED }),
                Ok(read) => self.frames.take_in(&piece[..read]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => match WireError::of("receive", CONTROLLED, error) {
                    WireError::Silent { .. } => return Ok(None),
                    error => return Err(error),
                },
            }
        }
    }

    /// The next message.
    ///
    /// # Errors
    /// As [`receive`](Self::receive), and when none comes until `deadline`.
    pub fn expect(&mut self, deadline: Instant) -> Result<I, WireError> {
        self.receive(deadline)?.ok_or(WireError::Silent { during: CONTROLLED })
    }

    /// Closes both ways; whoever waits for a message learns of it.
    pub fn close(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl ClientControl {
    /// Shows a server that listens that we know its token, and has it show the same; then both say their versions.
    ///
    /// # Errors
    /// When the server does not answer until `deadline`, is none of ours, does not take the token, or is another version.
    pub fn prove(stream: TcpStream, token: &Key, deadline: Instant) -> Result<(Self, Session), WireError> {
        let session = prove_control(&stream, token, deadline)?;
        let mut control = Self::new(stream);
        control.send(&FromClient::Version(Version::ours()))?;
        match control.expect(deadline)? {
            FromServer::Version(version) => version.check()?,
            _ => return Err(WireError::malformed("the server's first message", "it is not its version")),
        }
        Ok((control, session))
    }
}

impl ServerControl {
    /// Goes on after [`greet`](super::greet) with both versions.
    ///
    /// # Errors
    /// When the client does not say its own until `deadline`, or is another version; it has ours by then.
    pub fn accepted(stream: TcpStream, deadline: Instant) -> Result<Self, WireError> {
        let mut control = Self::new(stream);
        control.send(&FromServer::Version(Version::ours()))?;
        match control.expect(deadline)? {
            FromClient::Version(version) => version.check()?,
            _ => return Err(WireError::malformed("the client's first message", "it is not its version")),
        }
        Ok(control)
    }
}
