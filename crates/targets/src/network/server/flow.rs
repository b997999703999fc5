//! Data connections, each on a thread of its own: nothing is nearer to the wire.

use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;
use std::sync::LazyLock;
use std::sync::atomic::Ordering;
use std::time::Instant;

use rustix::net::{RecvFlags, recv, sockopt};

use super::test::{Held, Test, add};
use crate::network::wire::{
    ANSWER_HEAD_BYTES, Answer, Carries, Flow, REQUEST_HEAD_BYTES, RequestHead, SocketOptions, Status, WireError,
};
use model::workload::Rng;

/// Requests are read by so much, and answers up to this length are gathered while more requests wait.
const GATHERED_BYTES: usize = 64 << 10;
/// Bytes that are sent over and over.
const FILLING_BYTES: usize = 256 << 10;
/// Piece by which a long request is taken in.
const PIECE_BYTES: usize = 1 << 20;

/// What answers are filled with: no device on the way can make it smaller.
pub(super) static FILLING: LazyLock<Vec<u8>> = LazyLock::new(|| {
    const SEED: u64 = 7018;
    let mut filling = vec![0; FILLING_BYTES];
    Rng::new(SEED, 1).fill(&mut filling);
    filling
});

/// Does what a connection is for, until its client closes it or the test ends.
///
/// # Errors
/// When the client does not keep to what it asked for.
pub(super) fn attend(test: &Test, flow: Flow, stream: &TcpStream) -> Result<(), WireError> {
    prepare(test, stream);
    let ended = match flow.carries {
        Carries::Up => take(test, stream),
        Carries::Down => give(test, stream),
        Carries::Exchanges => Exchanges::new(test, flow.number, stream).answer_all(),
    };
    match ended {
        Ok(()) => Ok(()),
        Err(Broken::Lied(error)) => Err(error),
        // Its client has gone, which is how a test ends.
        Err(Broken::Gone(_)) if test.is_over() => Ok(()),
        Err(Broken::Gone(error)) => match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => Ok(()),
            _ => Err(WireError::Io { action: "use a data connection", source: error }),
        },
    }
}

/// Why a connection ended.
enum Broken {
    Gone(io::Error),
    Lied(WireError),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Gone(error)
    }
}

/// Sets what the client asked for; what cannot be set is trouble and no end.
fn prepare(test: &Test, stream: &TcpStream) {
    let SocketOptions { send_buffer_bytes, receive_buffer_bytes, congestion } = &test.open.sockets;
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let note = |what: &str, set: io::Result<()>| {
        if let Err(error) = set {
            test.has_trouble(&format!("cannot {what}: {error}"));
        }
    };
    // The handshake had deadlines; from here on the test's end closes the connection.
    note("wait without end", stream.set_read_timeout(None).and_then(|()| stream.set_write_timeout(None)));
    if let Some(bytes) = send_buffer_bytes {
        note("set the send buffer", sockopt::set_socket_send_buffer_size(stream, size(*bytes)).map_err(Into::into));
    }
    if let Some(bytes) = receive_buffer_bytes {
        note("set the receive buffer", sockopt::set_socket_recv_buffer_size(stream, size(*bytes)).map_err(Into::into));
    }
    if let Some(name) = congestion {
        note("use that congestion control", sockopt::set_tcp_congestion(stream, name).map_err(Into::into));
    }
}

/// Throws away what is received: the kernel need not even copy it.
fn discard(stream: &TcpStream, room: &mut [u8]) -> io::Result<usize> {
    loop {
        match recv(stream, &mut *room, RecvFlags::TRUNC) {
            Ok((_, bytes)) => return Ok(bytes),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Counts what the client sends.
fn take(test: &Test, stream: &TcpStream) -> Result<(), Broken> {
    // Never touched, so it takes no memory.
    let mut room = vec![0; test.up.piece_bytes()];
    loop {
        let bytes = discard(stream, &mut room)?;
        if bytes == 0 {
            return Ok(());
        }
        add(&test.counts.received_bytes, bytes as u64);
        test.up.pass(bytes, || test.is_over());
    }
}

/// Sends until the client or the test ends.
fn give(test: &Test, mut stream: &TcpStream) -> Result<(), Broken> {
    let piece = &FILLING[..test.down.piece_bytes().min(FILLING_BYTES)];
    while !test.is_over() {
        match stream.write(piece) {
            Ok(bytes) => {
                add(&test.counts.sent_bytes, bytes as u64);
                test.down.pass(bytes, || test.is_over());
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Requests and answers of one connection.
struct Exchanges<'t> {
    test: &'t Test,
    number: u32,
    stream: &'t TcpStream,
    /// What came and was not looked at yet is `from..to`.
    inbox: Vec<u8>,
    from: usize,
    to: usize,
    /// Answers that were not sent yet.
    outbox: Vec<u8>,
    /// A request that is to be written.
    request: Vec<u8>,
    held: Held<'t>,
    room: Vec<u8>,
}

impl<'t> Exchanges<'t> {
    fn new(test: &'t Test, number: u32, stream: &'t TcpStream) -> Self {
        Self {
            test,
            number,
            stream,
            inbox: vec![0; GATHERED_BYTES],
            from: 0,
            to: 0,
            outbox: Vec::with_capacity(GATHERED_BYTES),
            request: Vec::new(),
            held: Held::nothing(&test.held_bytes),
            room: vec![0; PIECE_BYTES],
        }
    }

    fn answer_all(&mut self) -> Result<(), Broken> {
        while let Some(head) = self.next_head()? {
            let open = &self.test.open;
            let request =
                RequestHead::read(&head, open.max_request_bytes, open.max_answer_bytes).map_err(Broken::Lied)?;
            if request.is_durable {
                if self.test.files.is_none() {
                    let why = "it is to be written, and the test was not opened for that".to_owned();
                    return Err(Broken::Lied(WireError::Malformed { what: "a request", why }));
                }
                self.held.grow_to(request.request_bytes.into()).map_err(Broken::Lied)?;
                self.request.clear();
                self.request.reserve_exact(request.request_bytes as usize);
            }
            self.take_in(&head, &request)?;
            let came = Instant::now();
            let (status, durable_ns) = if request.is_durable { self.write()? } else { (Status::Done, 0) };
            let server_ns = u64::try_from(came.elapsed().as_nanos()).unwrap_or(u64::MAX);
            let answer = Answer {
                answer_bytes: request.answer_bytes,
                status,
                sequence: request.sequence,
                server_ns,
                durable_ns: durable_ns.min(server_ns),
            };
            self.put(&answer)?;
            add(&self.test.counts.requests, 1);
            self.test.up.pass(request.request_bytes as usize, || self.test.is_over());
            self.test.down.pass(request.answer_bytes as usize, || self.test.is_over());
        }
        self.flush()?;
        Ok(())
    }

    /// The next head; none where the client closed between requests.
    fn next_head(&mut self) -> Result<Option<[u8; REQUEST_HEAD_BYTES]>, Broken> {
        loop {
            let waiting = &self.inbox[self.from..self.to];
            if let Some(head) = waiting.first_chunk::<REQUEST_HEAD_BYTES>() {
                let head = *head;
                self.from += REQUEST_HEAD_BYTES;
                return Ok(Some(head));
            }
            self.inbox.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
            self.flush()?;
            let bytes = read(self.stream, &mut self.inbox[self.to..])?;
            if bytes == 0 {
                return if self.to == 0 { Ok(None) } else { Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()) };
            }
            self.received(bytes);
            self.to += bytes;
        }
    }

    /// Takes in the rest of a request, and keeps it if it is to be written.
    fn take_in(&mut self, head: &[u8; REQUEST_HEAD_BYTES], request: &RequestHead) -> Result<(), Broken> {
        let mut left = request.request_bytes as usize - REQUEST_HEAD_BYTES;
        let here = left.min(self.to - self.from);
        self.request.clear();
        if request.is_durable {
            self.request.extend_from_slice(head);
            self.request.extend_from_slice(&self.inbox[self.from..self.from + here]);
        }
        self.from += here;
        left -= here;
        if left > 0 {
            self.flush()?;
        }
        while left > 0 {
            let piece = left.min(PIECE_BYTES);
            let bytes = if request.is_durable {
                let bytes = read(self.stream, &mut self.room[..piece])?;
                self.request.extend_from_slice(&self.room[..bytes]);
                bytes
            } else {
                discard(self.stream, &mut self.room[..piece])?
            };
            if bytes == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            self.received(bytes);
            left -= bytes;
        }
        Ok(())
    }

    fn received(&self, bytes: usize) {
        add(&self.test.counts.received_bytes, bytes as u64);
    }

    /// Writes the request durably; says how long that took.
    fn write(&mut self) -> Result<(Status, u64), Broken> {
        // Answers before this one do not wait for the disk.
        self.flush()?;
        let Some(files) = &self.test.files else { return Ok((Status::NotWritten, 0)) };
        let begun = Instant::now();
        let written = files.write(self.number, &self.request);
        let took = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        match written {
            Ok(()) => {
                let counts = &self.test.counts;
                add(&counts.writes, 1);
                add(&counts.written_bytes, self.request.len() as u64);
                add(&counts.write_ns, took);
                Ok((Status::Done, took))
            }
            Err(error) => {
                self.test.has_trouble(&format!("cannot write what was sent: {error}"));
                Ok((Status::NotWritten, took))
            }
        }
    }

    /// Lays an answer out to be sent; a long one is sent at once.
    fn put(&mut self, answer: &Answer) -> Result<(), Broken> {
        let body = answer.answer_bytes as usize - ANSWER_HEAD_BYTES;
        if ANSWER_HEAD_BYTES + body > GATHERED_BYTES {
            self.flush()?;
            return self.send_long(&answer.bytes(), body);
        }
        if self.outbox.len() + ANSWER_HEAD_BYTES + body > GATHERED_BYTES {
            self.flush()?;
        }
        self.outbox.extend_from_slice(&answer.bytes());
        self.outbox.extend_from_slice(&FILLING[..body]);
        Ok(())
    }

    fn send_long(&mut self, head: &[u8], body: usize) -> Result<(), Broken> {
        let (mut head_left, mut left) = (head, body);
        while !head_left.is_empty() || left > 0 {
            let piece = &FILLING[..left.min(FILLING_BYTES)];
            let bytes = match (&mut &*self.stream).write_vectored(&[IoSlice::new(head_left), IoSlice::new(piece)]) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero).into()),
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            let of_head = bytes.min(head_left.len());
            head_left = &head_left[of_head..];
            left -= bytes - of_head;
            add(&self.test.counts.sent_bytes, bytes as u64);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Broken> {
        if self.outbox.is_empty() {
            return Ok(());
        }
        (&mut &*self.stream).write_all(&self.outbox)?;
        self.test.counts.sent_bytes.fetch_add(self.outbox.len() as u64, Ordering::Relaxed);
        self.outbox.clear();
        Ok(())
    }
}

fn read(mut stream: &TcpStream, room: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(room) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
