//! Packets of TNS on a socket, and the encodings of TTC inside them.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::faults::Ended;

/// Kinds of packets.
pub const CONNECT: u8 = 1;
pub const ACCEPT: u8 = 2;
pub const REFUSE: u8 = 4;
pub const REDIRECT: u8 = 5;
pub const DATA: u8 = 6;
pub const RESEND: u8 = 11;
pub const MARKER: u8 = 12;

/// What a marker packet asks for.
pub const MARKER_BREAK: u8 = 1;
pub const MARKER_RESET: u8 = 2;

const HEADER_BYTES: usize = 8;
const FLAGS_BYTES: usize = 2;
const END_OF_FILE: u16 = 0x0040;
const END_OF_RESPONSE_FLAG: u16 = 0x2000;
const END_OF_RESPONSE: u8 = 0x1d;
/// A text or a RAW up to this length has one byte of length, a longer one comes in chunks.
const MAX_SHORT: usize = 252;
const LONG: u8 = 254;
const NULL: u8 = 255;
const CHUNK_BYTES: usize = 32_767;

/// What was read from the other side.
pub struct Packet {
    pub kind: u8,
    /// Without the header of eight bytes.
    pub body: Vec<u8>,
}

/// The server's end of one connection.
pub struct Link {
    stream: Arc<TcpStream>,
    reader: BufReader<Socket>,
    /// Packets have a length of four bytes once the connection was accepted.
    pub has_wide_lengths: bool,
    /// The client knows how answers end and waits for that.
    pub marks_ends: bool,
    /// How much of an answer is put in a packet at most.
    pub packet_bytes: usize,
    /// How much is given to the socket at once, if not all.
    pub write_bytes: Option<usize>,
}

/// Reads from a stream that others may shut down.
struct Socket(Arc<TcpStream>);

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self.0).read(buffer)
    }
}

impl Link {
    pub fn new(stream: Arc<TcpStream>, packet_bytes: usize, write_bytes: Option<usize>) -> Link {
        let reader = BufReader::with_capacity(8192, Socket(Arc::clone(&stream)));
        Link { stream, reader, has_wide_lengths: false, marks_ends: false, packet_bytes, write_bytes }
    }

    pub fn packet(&mut self) -> Result<Packet, Ended> {
        let mut header = [0; HEADER_BYTES];
        self.reader.read_exact(&mut header)?;
        let length = match self.has_wide_lengths {
            true => u32::from_be_bytes([header[0], header[1], header[2], header[3]]) as usize,
            false => u16::from_be_bytes([header[0], header[1]]).into(),
        };
        let body = length.checked_sub(HEADER_BYTES).ok_or(Ended::Nonsense("a packet shorter than its header"))?;
        let mut body = vec![0; body];
        self.reader.read_exact(&mut body)?;
        Ok(Packet { kind: header[4], body })
    }

    /// The next packet, or none when nothing came for that long.
    pub fn packet_within(&mut self, wait: Duration) -> Result<Option<Packet>, Ended> {
        let until = Instant::now() + wait;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.stream.set_read_timeout(Some(left))?;
            let came = self.reader.fill_buf().map(|bytes| !bytes.is_empty());
            self.stream.set_read_timeout(None)?;
            match came {
                Ok(true) => return self.packet().map(Some),
                Ok(false) => return Err(Ended::ByClient),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The next request, read by `parse` as soon as enough packets of it have come: nothing in a request says where it ends.
    pub fn request<T>(&mut self, parse: impl Fn(&mut Reader<'_>) -> Result<T, Short>) -> Result<T, Interrupted> {
        let mut bytes = Vec::new();
        loop {
            let packet = self.packet()?;
            match packet.kind {
                DATA if packet.body.len() >= FLAGS_BYTES => {}
                MARKER => return Err(Interrupted::Marker(packet)),
                _ => return Err(Ended::Nonsense("a packet that is no data").into()),
            }
            if u16::from_be_bytes([packet.body[0], packet.body[1]]) & END_OF_FILE != 0 {
                return Err(Ended::ByClient.into());
            }
            bytes.extend_from_slice(&packet.body[FLAGS_BYTES..]);
            match parse(&mut Reader::new(&bytes)) {
                Ok(parsed) => return Ok(parsed),
                Err(Short::OutOfBytes) => {}
                Err(Short::Unknown(what)) => return Err(Ended::Nonsense(what).into()),
            }
        }
    }

    /// Sends a packet of its own: no data.
    pub fn send(&mut self, kind: u8, body: &[u8]) -> Result<(), Ended> {
        let mut packet = Vec::with_capacity(HEADER_BYTES + body.len());
        self.add_packet(&mut packet, kind, body);
        self.write(&packet)
    }

    pub fn send_data(&mut self, answer: Vec<u8>) -> Result<(), Ended> {
        let packets = self.data(answer);
        self.write(&packets)
    }

    /// An answer as the packets in which it travels.
    pub fn data(&self, mut answer: Vec<u8>) -> Vec<u8> {
        if self.marks_ends {
            answer.push(END_OF_RESPONSE);
        }
        let mut packets = Vec::with_capacity(answer.len() + 64);
        let parts = answer.chunks(self.packet_bytes.max(1));
        let last = parts.len() - 1;
        for (number, part) in parts.enumerate() {
            let flags = if self.marks_ends && number == last { END_OF_RESPONSE_FLAG } else { 0 };
            let mut body = flags.to_be_bytes().to_vec();
            body.extend_from_slice(part);
            self.add_packet(&mut packets, DATA, &body);
        }
        packets
    }

    fn add_packet(&self, packets: &mut Vec<u8>, kind: u8, body: &[u8]) {
        let length = HEADER_BYTES + body.len();
        match self.has_wide_lengths {
            true => packets.extend_from_slice(&(length as u32).to_be_bytes()),
            false => packets.extend_from_slice(&[(length >> 8) as u8, length as u8, 0, 0]),
        }
        packets.extend_from_slice(&[kind, 0, 0, 0]);
        packets.extend_from_slice(body);
    }

    /// Bytes as they are, in as many writes as was asked for.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Ended> {
        for part in bytes.chunks(self.write_bytes.unwrap_or(bytes.len()).max(1)) {
            (&*self.stream).write_all(part)?;
        }
        Ok(())
    }

    pub fn cut(&self) {
        // It may be cut already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Why no request came.
pub enum Interrupted {
    Marker(Packet),
    Ended(Ended),
}

impl From<Ended> for Interrupted {
    fn from(ended: Ended) -> Interrupted {
        Interrupted::Ended(ended)
    }
}

/// Why bytes could not be read as what they ought to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Short {
    /// The rest is in a later packet.
    OutOfBytes,
    /// This is nothing that the responder knows.
    Unknown(&'static str),
}

/// Reads TTC.
pub struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes }
    }

    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Short> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or(Short::OutOfBytes)?;
        self.bytes = rest;
        Ok(taken)
    }

    pub fn skip(&mut self, count: usize) -> Result<(), Short> {
        self.take(count).map(drop)
    }

    pub fn byte(&mut self) -> Result<u8, Short> {
        Ok(self.take(1)?[0])
    }

    pub fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), Short> {
        if self.byte()? == byte { Ok(()) } else { Err(Short::Unknown(what)) }
    }

    pub fn two_bytes(&mut self) -> Result<u16, Short> {
        Ok(u16::from_be_bytes([self.byte()?, self.byte()?]))
    }

    /// A number behind the count of its bytes.
    pub fn number(&mut self) -> Result<u64, Short> {
        let count = self.byte()? & 0x7f;
        if count > 8 {
            return Err(Short::Unknown("a number of more than eight bytes"));
        }
        Ok(self.take(count.into())?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    pub fn count(&mut self) -> Result<usize, Short> {
        usize::try_from(self.number()?).map_err(|_| Short::Unknown("a count beyond memory"))
    }

    /// Bytes behind their length, which may come in chunks.
    pub fn bytes(&mut self) -> Result<Vec<u8>, Short> {
        match self.byte()? {
            NULL => Ok(Vec::new()),
            LONG => {
                let mut whole = Vec::new();
                loop {
                    match self.count()? {
                        0 => return Ok(whole),
                        chunk => whole.extend_from_slice(self.take(chunk)?),
                    }
                }
            }
            length => self.take(length.into()).map(<[u8]>::to_vec),
        }
    }

    /// Bytes whose length is said twice.
    pub fn long_bytes(&mut self) -> Result<Vec<u8>, Short> {
        if self.count()? == 0 { Ok(Vec::new()) } else { self.bytes() }
    }

    pub fn text(&mut self) -> Result<String, Short> {
        String::from_utf8(self.bytes()?).map_err(|_| Short::Unknown("a text that is not UTF-8"))
    }

    pub fn long_text(&mut self) -> Result<String, Short> {
        String::from_utf8(self.long_bytes()?).map_err(|_| Short::Unknown("a text that is not UTF-8"))
    }
}

/// Writes TTC. Each method gives itself back, so that a message reads as one line.
#[derive(Default)]
pub struct Writer {
    pub bytes: Vec<u8>,
}

impl Writer {
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    pub fn byte(&mut self, byte: u8) -> &mut Self {
        self.raw(&[byte])
    }

    /// A number behind the count of its bytes: 0, 1, 2, 4 or 8 of them.
    pub fn number(&mut self, number: u64) -> &mut Self {
        let bytes = number.to_be_bytes();
        let count = match number {
            0 => 0,
            1..=0xff => 1,
            0x100..=0xffff => 2,
            0x1_0000..=0xffff_ffff => 4,
            _ => 8,
        };
        self.byte(count as u8).raw(&bytes[8 - count..])
    }

    pub fn zeros(&mut self, count: usize) -> &mut Self {
        self.bytes.resize(self.bytes.len() + count, 0);
        self
    }

    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        if bytes.len() <= MAX_SHORT {
            return self.byte(bytes.len() as u8).raw(bytes);
        }
        self.byte(LONG);
        for chunk in bytes.chunks(CHUNK_BYTES) {
            self.number(chunk.len() as u64).raw(chunk);
        }
        self.byte(0)
    }

    pub fn long_bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.number(bytes.len() as u64);
        if bytes.is_empty() { self } else { self.bytes(bytes) }
    }

    pub fn pair(&mut self, key: &str, value: &str, flags: u64) -> &mut Self {
        self.long_bytes(key.as_bytes()).long_bytes(value.as_bytes()).number(flags)
    }
}
