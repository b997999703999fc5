//! A control connection, whose handshake is over.

use std::io::Read;
use std::marker::PhantomData;
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::hand::{Session, prove_control, write_by};
use super::{FromClient, FromServer, Key, Version, WireError, left};

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

    /// Says nothing more, and reads on until the other end has gone, at most until `deadline`: what is closed with something unread takes
    /// away what was said last.
    pub fn leave(&mut self, deadline: Instant) {
        let _ = self.stream.shutdown(Shutdown::Write);
        while let Ok(Some(_)) = self.receive(deadline) {}
        self.close();
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

/// Longest message.
pub const MAX_FRAME_BYTES: usize = 64 << 10;
const LENGTH_BYTES: usize = 4;

/// A message as it is sent.
///
/// # Errors
/// When it is too long.
fn frame_of(message: &impl Serialize) -> Result<Vec<u8>, WireError> {
    let mut frame = vec![0; LENGTH_BYTES];
    serde_json::to_writer(&mut frame, message).map_err(|error| WireError::malformed("a message of ours", error))?;
    let bytes = frame.len() - LENGTH_BYTES;
    let length = u32::try_from(bytes).ok().filter(|_| bytes <= MAX_FRAME_BYTES).ok_or(too_long(bytes as u64))?;
    frame[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    Ok(frame)
}

fn too_long(bytes: u64) -> WireError {
    WireError::TooLong { what: "a message", bytes, most: MAX_FRAME_BYTES as u64 }
}

/// Bytes that came, until they are messages. Holds no more than has come.
#[derive(Debug)]
pub struct Frames<M> {
    bytes: Vec<u8>,
    of: PhantomData<M>,
}

impl<M> Default for Frames<M> {
    fn default() -> Self {
        Self { bytes: Vec::new(), of: PhantomData }
    }
}

impl<M: DeserializeOwned> Frames<M> {
    /// Takes in what came; call [`next_message`](Self::next_message) until it has nothing more before the next bytes are taken in.
    pub fn take_in(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message that has wholly come.
    ///
    /// # Errors
    /// When what came is no message; nothing after it can be read.
    pub fn next_message(&mut self) -> Result<Option<M>, WireError> {
        let Some((length, rest)) = self.bytes.split_first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length);
        let bytes = usize::try_from(length).unwrap_or(usize::MAX);
        if bytes > MAX_FRAME_BYTES {
            return Err(too_long(length.into()));
        }
        let Some(text) = rest.get(..bytes) else { return Ok(None) };
        let message = serde_json::from_slice(text).map_err(|error| WireError::malformed("a message", error))?;
        self.bytes.drain(..LENGTH_BYTES + bytes);
        Ok(Some(message))
    }
}
