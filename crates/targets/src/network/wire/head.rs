//! Heads of requests, answers and datagrams.

use super::WireError;

/// Largest request or answer, its head included.
pub const MAX_BODY_BYTES: u32 = 16 << 20;
/// Largest datagram that IPv4 carries, without the heads of IP and UDP.
pub const MAX_DATAGRAM_BYTES: u32 = 65_507;
/// Head of a request.
pub const REQUEST_HEAD_BYTES: usize = 32;
/// Head of an answer.
pub const ANSWER_HEAD_BYTES: usize = 32;
/// The first datagram of a socket.
pub const INTRODUCTION_BYTES: usize = 32;

const DURABLE: u32 = 1;
const WHOLE: u32 = 2;

/// Asks for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestHead {
    /// Bytes of the request, this head included.
    pub request_bytes: u32,
    /// Bytes of the answer, its head included.
    pub answer_bytes: u32,
    /// Number that the answer bears.
    pub sequence: u64,
    /// What came is to be written durably before the answer.
    pub is_durable: bool,
    /// A datagram that answers is not to be cut in fragments.
    pub is_whole: bool,
}

impl RequestHead {
    /// As it is sent.
    pub fn bytes(&self) -> [u8; REQUEST_HEAD_BYTES] {
        let flags = u32::from(self.is_durable) * DURABLE + u32::from(self.is_whole) * WHOLE;
        let mut bytes = [0; REQUEST_HEAD_BYTES];
        bytes[..4].copy_from_slice(&self.request_bytes.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.answer_bytes.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[16..20].copy_from_slice(&flags.to_le_bytes());
        bytes
    }

    /// Reads a head; neither length is more than its limit or less than a head.
    ///
    /// # Errors
    /// When the head lies.
    pub fn read(bytes: &[u8; REQUEST_HEAD_BYTES], most_asked: u32, most_answered: u32) -> Result<Self, WireError> {
        let flags = u32_at(bytes, 16);
        if flags & !(DURABLE | WHOLE) != 0 || bytes[20..].iter().any(|byte| *byte != 0) {
            return Err(WireError::malformed("the head of a request", "it has bits that mean nothing"));
        }
        let request = Self {
            request_bytes: u32_at(bytes, 0),
            answer_bytes: u32_at(bytes, 4),
            sequence: u64_at(bytes, 8),
            is_durable: flags & DURABLE != 0,
            is_whole: flags & WHOLE != 0,
        };
        within("a request", request.request_bytes, REQUEST_HEAD_BYTES, most_asked)?;
        within("an answer", request.answer_bytes, ANSWER_HEAD_BYTES, most_answered)?;
        Ok(request)
    }
}

/// How the server did what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// As asked.
    Done,
    /// What came could not be written.
    NotWritten,
}

/// Answers a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Bytes of the answer, this head included.
    pub answer_bytes: u32,
    /// How it went.
    pub status: Status,
    /// The number of the request.
    pub sequence: u64,
    /// From when the request had wholly come to when the answer began, on the server's clock.
    pub server_ns: u64,
    /// Of that, how long it was written durably.
    pub durable_ns: u64,
}

impl Answer {
    /// As it is sent.
    pub fn bytes(&self) -> [u8; ANSWER_HEAD_BYTES] {
        let status: u32 = match self.status {
            Status::Done => 0,
            Status::NotWritten => 1,
        };
        let mut bytes = [0; ANSWER_HEAD_BYTES];
        bytes[..4].copy_from_slice(&self.answer_bytes.to_le_bytes());
        bytes[4..8].copy_from_slice(&status.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.server_ns.to_le_bytes());
        bytes[24..].copy_from_slice(&self.durable_ns.to_le_bytes());
        bytes
    }

    /// Reads a head; its length is no more than `most` and no less than a head.
    ///
    /// # Errors
    /// When the head lies.
    pub fn read(bytes: &[u8; ANSWER_HEAD_BYTES], most: u32) -> Result<Self, WireError> {
        let status = match u32_at(bytes, 4) {
            0 => Status::Done,
            1 => Status::NotWritten,
            other => return Err(WireError::malformed("the head of an answer", format_args!("its status is {other}"))),
        };
        let answer = Self {
            answer_bytes: u32_at(bytes, 0),
            status,
            sequence: u64_at(bytes, 8),
            server_ns: u64_at(bytes, 16),
            durable_ns: u64_at(bytes, 24),
        };
        within("an answer", answer.answer_bytes, ANSWER_HEAD_BYTES, most)?;
        if answer.durable_ns > answer.server_ns {
            return Err(WireError::malformed("the head of an answer", "it wrote for longer than it took"));
        }
        Ok(answer)
    }
}

/// The first datagram of a client's socket; the server sends it back as it came, and from then on answers that socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Introduction {
    /// What the client was given on its control connection.
    pub nonce: [u8; 16],
    /// Number of the session that the socket is of.
    pub number: u32,
}

/// Begins an introduction. As the length of a request it would be over every limit.
const INTRODUCES: &[u8; 8] = b"PLIMUDP1";

impl Introduction {
    /// As it is sent.
    pub fn bytes(&self) -> [u8; INTRODUCTION_BYTES] {
        let mut bytes = [0; INTRODUCTION_BYTES];
        bytes[..8].copy_from_slice(INTRODUCES);
        bytes[8..12].copy_from_slice(&self.number.to_le_bytes());
        bytes[16..].copy_from_slice(&self.nonce);
        bytes
    }

    /// Reads a datagram; absent where it is something else.
    pub fn read(datagram: &[u8]) -> Option<Self> {
        let bytes: &[u8; INTRODUCTION_BYTES] = datagram.try_into().ok()?;
        let (begin, rest) = bytes.split_at(8);
        let mut nonce = [0; 16];
        nonce.copy_from_slice(&rest[8..]);
        (begin == INTRODUCES && rest[4..8] == [0; 4]).then_some(Self { nonce, number: u32_at(bytes, 8) })
    }

    /// Whether it bears `nonce`; takes as long whichever byte is wrong.
    pub fn bears(&self, nonce: &[u8; 16]) -> bool {
        self.nonce.iter().zip(nonce).fold(0, |differ, (one, other)| differ | (one ^ other)) == 0
    }
}

fn within(what: &'static str, bytes: u32, head: usize, most: u32) -> Result<(), WireError> {
    if (bytes as usize) < head {
        return Err(WireError::malformed(
            what,
            format_args!("it is said to have {bytes} bytes, and its head has {head}"),
        ));
    }
    if bytes > most {
        return Err(WireError::TooLong { what, bytes: bytes.into(), most: most.into() });
    }
    Ok(())
}

fn u32_at(bytes: &[u8; 32], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

fn u64_at(bytes: &[u8; 32], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: RequestHead =
        RequestHead { request_bytes: 200, answer_bytes: 8_192, sequence: 7, is_durable: true, is_whole: false };

    #[test]
    fn heads_are_read_as_they_were_written() {
        assert_eq!(RequestHead::read(&ASKED.bytes(), 200, 8_192).unwrap(), ASKED);
        let whole = RequestHead { is_durable: false, is_whole: true, sequence: u64::MAX, ..ASKED };
        assert_eq!(RequestHead::read(&whole.bytes(), 200, 8_192).unwrap(), whole);
        let answer =
            Answer { answer_bytes: 8_192, status: Status::NotWritten, sequence: 7, server_ns: 90, durable_ns: 80 };
        assert_eq!(Answer::read(&answer.bytes(), 8_192).unwrap(), answer);
        let first = Introduction { nonce: *b"0123456789abcdef", number: 3 };
        assert_eq!(Introduction::read(&first.bytes()), Some(first));
        assert!(first.bears(b"0123456789abcdef") && !first.bears(b"0123456789abcdeF"));
    }

    #[test]
    fn a_head_that_lies_is_refused() {
        let refused = |request: RequestHead| RequestHead::read(&request.bytes(), 200, 8_192).unwrap_err().to_string();
        assert_eq!(
            refused(RequestHead { request_bytes: 201, ..ASKED }),
            "a request of 201 bytes was announced, and at most 200 are taken"
        );
        assert!(refused(RequestHead { answer_bytes: u32::MAX, ..ASKED }).contains("an answer of 4294967295 bytes"));
        assert!(refused(RequestHead { request_bytes: 31, ..ASKED }).contains("31 bytes, and its head has 32"));
        let mut bits = ASKED.bytes();
        bits[19] = 1;
        assert!(RequestHead::read(&bits, 200, 8_192).is_err());
        bits = ASKED.bytes();
        bits[31] = 1;
        assert!(RequestHead::read(&bits, 200, 8_192).is_err());
        let answer = Answer { answer_bytes: 32, status: Status::Done, sequence: 1, server_ns: 5, durable_ns: 6 };
        assert!(Answer::read(&answer.bytes(), 32).unwrap_err().to_string().contains("wrote for longer"));
        let mut strange = Answer { durable_ns: 5, ..answer }.bytes();
        strange[4] = 9;
        assert!(Answer::read(&strange, 32).unwrap_err().to_string().contains("status is 9"));
    }

    #[test]
    fn an_introduction_is_no_request_and_the_other_way_round() {
        let first = Introduction { nonce: [9; 16], number: 0 };
        assert!(RequestHead::read(&first.bytes(), MAX_BODY_BYTES, MAX_BODY_BYTES).is_err());
        assert_eq!(Introduction::read(&ASKED.bytes()), None);
        assert_eq!(Introduction::read(&first.bytes()[..31]), None);
    }
}
