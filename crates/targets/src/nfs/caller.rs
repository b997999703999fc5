//! Calls one at a time over a connection that blocks: for everything but load.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::net::RecvFlags;

use super::NfsError;
use super::connect::{Route, connect};
use super::wire::{Credential, Fault, Program, Reader, begin_call, end_call, reply_head};

/// Bytes of a reply beside the data of a READ at most.
const MAX_REPLY_BYTES: usize = 64 << 10;
/// Data of a READ or WRITE of this caller at most.
pub const MAX_COLD_BYTES: u32 = 1 << 20;

/// A connection to one program of a server.
#[derive(Debug)]
pub struct Caller {
    socket: TcpStream,
    path: SocketAddr,
    program: Program,
    credential: Arc<Credential>,
    patience: Duration,
    xid: u32,
    call: Vec<u8>,
    reply: Vec<u8>,
}

impl Caller {
    /// Connects to the `service` at `route` and gives each call so long for its answer.
    ///
    /// # Errors
    /// Why no connection is made.
    pub fn connect(
        service: &'static str,
        route: Route,
        program: Program,
        credential: Arc<Credential>,
        (connecting, patience): (Duration, Duration),
    ) -> Result<Self, NfsError> {
        let first = measure::monotonic_ns() as u32;
        let failed = |source: io::Error| NfsError::Connect { service, path: route.to, source: Arc::new(source) };
        let socket = connect(route, connecting).map_err(failed)?;
        socket.set_read_timeout(Some(patience)).map_err(failed)?;
        socket.set_write_timeout(Some(patience)).map_err(failed)?;
        let (call, reply) = (Vec::new(), Vec::new());
        Ok(Self { socket, path: route.to, program, credential, patience, xid: first, call, reply })
    }

    /// Where it is connected.
    pub fn path(&self) -> SocketAddr {
        self.path
    }

    /// Sends a call with the arguments that `put` writes, and reads its results by `read`.
    ///
    /// # Errors
    /// Why there are none. After that the connection is of no use.
    pub fn call<T>(
        &mut self,
        (procedure, name): (u32, &'static str),
        put: impl FnOnce(&mut Vec<u8>),
        read: impl FnOnce(Reader<'_>) -> Result<T, Fault>,
    ) -> Result<T, NfsError> {
        self.xid = self.xid.wrapping_add(1);
        self.call.clear();
        let begin = begin_call(&mut self.call, self.xid, self.program, procedure, &self.credential);
        put(&mut self.call);
        end_call(&mut self.call, begin);
        let path = self.path;
        self.exchange().map_err(|source| match source.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                NfsError::Silent { path, call: name, waited_ns: self.patience.as_nanos() as u64 }
            }
            io::ErrorKind::InvalidData => NfsError::garbage(path, name, Fault::Wrong("a record over its limit")),
            _ => NfsError::Broken { path, call: name, source: Arc::new(source) },
        })?;
        let garbage = |fault| NfsError::garbage(path, name, fault);
        let mut reader = Reader::new(&self.reply);
        let head = reply_head(&mut reader).map_err(garbage)?;
        if head.xid != self.xid {
            return Err(garbage(Fault::Wrong("the number of another call")));
        }
        head.accepted.map_err(|rejection| NfsError::Rejected { path, call: name, rejection })?;
        read(reader).map_err(garbage)
    }

    fn exchange(&mut self) -> io::Result<()> {
        let deadline = Instant::now() + self.patience;
        self.socket.write_all(&self.call)?;
        self.reply.clear();
        loop {
            self.receive(4, deadline)?;
            let at = self.reply.len() - 4;
            let mark = self.reply[at..].try_into().map_or(0, u32::from_be_bytes);
            self.reply.truncate(at);
            let length = (mark & (u32::MAX >> 1)) as usize;
            let before = self.reply.len();
            if length == 0 || before + length > MAX_COLD_BYTES as usize + MAX_REPLY_BYTES {
                return Err(io::ErrorKind::InvalidData.into());
            }
            self.receive(length, deadline)?;
            if mark >> 31 != 0 {
                return Ok(());
            }
        }
    }

    /// Appends so many bytes to the reply. Memory is taken as bytes come, not as they are announced.
    fn receive(&mut self, bytes: usize, deadline: Instant) -> io::Result<()> {
        let end = self.reply.len() + bytes;
        let mut piece = [0; 16 << 10];
        while self.reply.len() < end {
            if Instant::now() >= deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let missing = (end - self.reply.len()).min(piece.len());
            match self.socket.read(&mut piece[..missing]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => self.reply.extend_from_slice(&piece[..bytes]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits no longer than this for answers from now on.
    pub fn hurry(&mut self, patience: Duration) {
        self.patience = patience;
        // Where the kernel refuses, the patience of each call is looked at as well.
        let _ = (self.socket.set_read_timeout(Some(patience)), self.socket.set_write_timeout(Some(patience)));
    }

    /// Whether the server has not closed the connection, as servers do with those that are idle for minutes.
    pub fn is_open(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        matches!(rustix::net::recv(&self.socket, &mut [0; 1], flags), Err(rustix::io::Errno::AGAIN))
    }
}
