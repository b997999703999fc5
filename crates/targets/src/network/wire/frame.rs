//! Messages as frames: a length of four bytes, then JSON.

use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::WireError;

/// Longest message.
pub const MAX_FRAME_BYTES: usize = 64 << 10;
const LENGTH_BYTES: usize = 4;

/// A message as it is sent.
///
/// # Errors
/// When it is too long.
pub(super) fn frame_of(message: &impl Serialize) -> Result<Vec<u8>, WireError> {
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
