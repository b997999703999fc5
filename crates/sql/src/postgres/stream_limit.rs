//! How much of what a server says is listened to: nothing may grow by what a server chooses to send.

use std::io;

/// Longest message. The rows that are asked for are a thousandth of that.
const MAX_MESSAGE_BYTES: usize = 16 << 20;
/// Most that may come, rows that are copied apart, until something is sent again: notices, parameters and rows are kept by whoever
/// asked, or by the client's library while it logs in.
const MAX_ANSWER_BYTES: usize = 64 << 20;
/// The type of a message and its length.
const HEAD_BYTES: usize = 5;
/// Rows that are copied are read one by one.
const COPIED: u8 = b'd';

/// Where in the messages a stream is, and how much has come.
#[derive(Debug)]
pub(super) enum Limit {
    /// Bytes that are no messages, as encrypted ones are.
    None,
    /// The server's answer to the question whether it encrypts comes first, a single byte that may be.
    Undecided,
    /// Messages.
    Messages {
        head: [u8; HEAD_BYTES],
        /// How much of the head has come.
        head_bytes: usize,
        /// How much of the body has not.
        body_bytes: usize,
        came_bytes: usize,
    },
}

impl Limit {
    /// Where messages begin.
    pub(super) fn messages() -> Self {
        Self::Messages { head: [0; HEAD_BYTES], head_bytes: 0, body_bytes: 0, came_bytes: 0 }
    }

    /// Something was sent: what comes answers that.
    pub(super) fn was_sent(&mut self) {
        if let Self::Messages { came_bytes, .. } = self {
            *came_bytes = 0;
        }
    }

    /// Takes note of what came.
    ///
    /// # Errors
    /// When a message is announced, or an answer goes on, that is longer than any may be.
    pub(super) fn came(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        if let (Self::Undecided, Some(first)) = (&self, bytes.first()) {
            match first {
                b'S' => *self = Self::None,
                b'N' => {
                    *self = Self::messages();
                    bytes = &bytes[1..];
                }
                _ => *self = Self::messages(),
            }
        }
        let Self::Messages { head, head_bytes, body_bytes, came_bytes } = self else { return Ok(()) };
        while !bytes.is_empty() {
            if *body_bytes > 0 {
                let part = bytes.len().min(*body_bytes);
                *body_bytes -= part;
                bytes = &bytes[part..];
                continue;
            }
            let part = bytes.len().min(HEAD_BYTES - *head_bytes);
            head[*head_bytes..*head_bytes + part].copy_from_slice(&bytes[..part]);
            *head_bytes += part;
            bytes = &bytes[part..];
            if *head_bytes < HEAD_BYTES {
                continue;
            }
            *head_bytes = 0;
            let [kind, length @ ..] = *head;
            // It counts itself.
            let length = u32::from_be_bytes(length) as usize;
            *body_bytes = length.saturating_sub(HEAD_BYTES - 1);
            if length > MAX_MESSAGE_BYTES {
                return Err(too_much(format!("a message of {length} bytes")));
            }
            if kind != COPIED {
                *came_bytes += length;
                if *came_bytes > MAX_ANSWER_BYTES {
                    return Err(too_much(format!("more than {MAX_ANSWER_BYTES} bytes in one answer")));
                }
            }
        }
        Ok(())
    }
}

fn too_much(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the server sends {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, bytes: usize) -> Vec<u8> {
        let mut message = vec![kind];
        message.extend_from_slice(&(bytes as u32 + 4).to_be_bytes());
        message.resize(HEAD_BYTES + bytes, b'x');
        message
    }

    #[test]
    fn answers_end_however_their_bytes_are_cut() {
        for piece in [1, 3, 7, 1 << 20] {
            let mut limit = Limit::messages();
            let notice = message(b'N', 1 << 20);
            let mut answers = 0;
            while notice.chunks(piece).all(|bytes| limit.came(bytes).is_ok()) {
                answers += 1;
            }
            assert_eq!(answers, 63, "{piece}");
        }
    }

    #[test]
    fn what_is_sent_begins_another_answer_and_copied_rows_are_none() {
        let mut limit = Limit::messages();
        for _ in 0..100 {
            limit.came(&message(b'D', 8 << 20)).unwrap();
            limit.was_sent();
        }
        for _ in 0..100 {
            limit.came(&message(COPIED, 8 << 20)).unwrap();
        }
        limit.came(&message(b'C', 10)).unwrap();
    }

    #[test]
    fn no_message_is_longer_than_its_limit() {
        for kind in [b'D', b'N', COPIED, 0] {
            let head = [&[kind][..], &0x7fff_fff0_u32.to_be_bytes()].concat();
            let error = Limit::messages().came(&head).unwrap_err();
            assert_eq!(error.to_string(), "the server sends a message of 2147483632 bytes");
        }
        Limit::messages().came(&message(b'D', MAX_MESSAGE_BYTES - 4)).unwrap();
    }

    #[test]
    fn what_comes_before_messages_is_none() {
        let head = [b'D', 0x7f, 0xff, 0xff, 0xff];
        let mut encrypted = Limit::Undecided;
        encrypted.came(b"S").unwrap();
        encrypted.came(&head).unwrap();
        let mut plain = Limit::Undecided;
        plain.came(b"").unwrap();
        plain.came(b"N").unwrap();
        plain.came(&message(b'R', 4)).unwrap();
        assert!(plain.came(&head).is_err());
        let mut refused = Limit::Undecided;
        refused.came(&message(b'E', 4)).unwrap();
        assert!(refused.came(&head).is_err());
    }
}
