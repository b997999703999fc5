//! A small NFS server for tests, whose faults are switched on and off: it changes its verifier, answers late, in another order, in
//! pieces, with less, with nonsense, or not at all.

use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::mount::NfsMount;
use super::ways::Limits;
use super::wire::{Fault, Reader, put_bytes, put_u32};

/// What the server does wrong, and how it is set up.
#[derive(Debug, Clone)]
pub struct Faults {
    /// Data of a READ or WRITE at most, as FSINFO says.
    pub most_bytes: u32,
    /// Data that a READ or WRITE really moves at most.
    pub moves_bytes: u32,
    /// Replies are cut into fragments of so many bytes.
    pub fragment_bytes: usize,
    /// Answers to so many calls are kept and then sent in the opposite order.
    pub reorders: usize,
    /// So many calls are answered with "not ready".
    pub not_ready: u32,
    /// Calls that come to this address are not answered while this is set.
    pub stalled: Option<IpAddr>,
    /// Connections to this address are closed at the next call of NFS, once.
    pub hangs_up: Option<IpAddr>,
    /// Connections to this address are closed at the next WRITE, after the call was read, once.
    pub hangs_up_at_write: Option<IpAddr>,
    /// At the next WRITE it begins a new life, as [`TestServer::restart`] with connections closed, and so often.
    pub restarts_at_write: u32,
    /// It begins a new life before each COMMIT.
    pub restarts_at_commit: bool,
    /// This is sent instead of the next reply to a call of NFS.
    pub garbage: Option<Vec<u8>>,
    /// READ and WRITE are refused so.
    pub status: u32,
    /// Calls of NFS are rejected for this reason (`auth_stat`).
    pub rejects: u32,
    /// WRITE is answered as not durable whatever was asked for.
    pub never_durable: bool,
    /// CREATE answers without handle and attributes.
    pub says_little: bool,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            most_bytes: 1 << 20,
            moves_bytes: u32::MAX,
            fragment_bytes: usize::MAX,
            reorders: 1,
            not_ready: 0,
            stalled: None,
            hangs_up: None,
            hangs_up_at_write: None,
            restarts_at_write: 0,
            restarts_at_commit: false,
            garbage: None,
            status: 0,
            rejects: 0,
            never_durable: false,
            says_little: false,
        }
    }
}

#[derive(Debug, Default)]
struct Files {
    /// Number and durable contents, by name.
    by_name: BTreeMap<String, u64>,
    contents: HashMap<u64, Vec<u8>>,
    /// What COMMIT has not made durable: file, offset, data.
    uncommitted: Vec<(u64, usize, Vec<u8>)>,
    last: u64,
    verifier: u64,
    connections: Vec<TcpStream>,
    calls: HashMap<u32, u64>,
}

/// The server. It serves until the process ends.
#[derive(Debug, Clone)]
pub struct TestServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    faults: Mutex<Faults>,
    changed: Condvar,
    files: Mutex<Files>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TestServer {
    /// Begins to serve on all of 127.0.0.0/8.
    pub fn begin() -> Self {
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let server = Self { address: listener.local_addr().unwrap(), shared: Arc::default() };
        let shared = Arc::clone(&server.shared);
        thread::spawn(move || {
            for socket in listener.incoming() {
                let (socket, shared) = (socket.unwrap(), Arc::clone(&shared));
                thread::spawn(move || Service::of(socket, shared).serve());
            }
        });
        server
    }

    /// The address of a file on it.
    pub fn url(&self, name: &str, parameters: &str) -> String {
        let port = self.address.port();
        format!("nfs://127.0.0.1:{port}/export/{name}?mountport={port}{parameters}")
    }

    /// Mounts it with little patience.
    pub fn mount(&self, parameters: &str) -> Arc<NfsMount> {
        let (silent, give_up) = (Duration::from_millis(150), Duration::from_millis(900));
        let limits = Limits { silent, give_up, connect: Duration::from_secs(5), kept_bytes: 1 << 20 };
        self.mount_within(parameters, limits)
    }

    /// Mounts it with other limits.
    pub fn mount_within(&self, parameters: &str, limits: Limits) -> Arc<NfsMount> {
        NfsMount::connect_within(&self.url("data", parameters).parse().unwrap(), limits).unwrap()
    }

    /// Changes its faults.
    pub fn set(&self, change: impl FnOnce(&mut Faults)) {
        change(&mut lock(&self.shared.faults));
        self.shared.changed.notify_all();
    }

    /// Begins a new life: what was not committed is forgotten, and connections are closed where `hangs_up`.
    pub fn restart(&self, hangs_up: bool) {
        lock(&self.shared.files).restart(hangs_up);
    }

    /// Puts another file in the place of `name`.
    pub fn replace(&self, name: &str) {
        lock(&self.shared.files).by_name.insert(name.to_owned(), 4711);
    }

    /// Durable contents of a file.
    pub fn contents(&self, name: &str) -> Vec<u8> {
        let files = lock(&self.shared.files);
        files.by_name.get(name).and_then(|file| files.contents.get(file)).cloned().unwrap_or_default()
    }

    /// Calls of this procedure of NFS so far.
    pub fn calls(&self, procedure: u32) -> u64 {
        lock(&self.shared.files).calls.get(&procedure).copied().unwrap_or(0)
    }
}

/// One connection.
struct Service {
    socket: TcpStream,
    to: IpAddr,
    shared: Arc<Shared>,
    kept: Vec<Vec<u8>>,
}

const ROOT: &[u8] = b"root of /export";
const NFS: u32 = 100_003;

impl Service {
    fn of(socket: TcpStream, shared: Arc<Shared>) -> Self {
        socket.set_nodelay(true).unwrap();
        lock(&shared.files).connections.push(socket.try_clone().unwrap());
        Self { to: socket.local_addr().unwrap().ip(), socket, shared, kept: Vec::new() }
    }

    /// Until the client goes, or a fault ends it.
    fn serve(mut self) -> Option<()> {
        loop {
            let mut mark = [0; 4];
            // Answers that wait for others go out when nothing more comes.
            self.socket.set_read_timeout(Some(Duration::from_millis(20))).ok()?;
            while let Err(error) = self.socket.peek(&mut mark) {
                if !matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted) {
                    return None;
                }
                self.send_kept()?;
            }
            self.socket.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
            self.socket.read_exact(&mut mark).ok()?;
            let mut call = vec![0; (u32::from_be_bytes(mark) & (u32::MAX >> 1)) as usize];
            self.socket.read_exact(&mut call).ok()?;
            let reply = self.reply(&call).ok()??;
            self.kept.push(reply);
            if self.kept.len() >= lock(&self.shared.faults).reorders {
                self.send_kept()?;
            }
        }
    }

    fn send_kept(&mut self) -> Option<()> {
        let most = lock(&self.shared.faults).fragment_bytes;
        for reply in self.kept.drain(..).rev() {
            let mut record = Vec::new();
            let pieces = reply.chunks(most.min(reply.len()));
            let last = pieces.len() - 1;
            for (number, piece) in pieces.enumerate() {
                put_u32(&mut record, piece.len() as u32 | if number == last { 1 << 31 } else { 0 });
                record.extend_from_slice(piece);
            }
            self.socket.write_all(&record).ok()?;
        }
        Some(())
    }

    /// `None` ends the connection.
    fn reply(&mut self, call: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        let mut reader = Reader::new(call);
        let xid = reader.u32()?;
        reader.fixed(8)?;
        let (program, _, procedure) = (reader.u32()?, reader.u32()?, reader.u32()?);
        for _ in 0..2 {
            reader.u32()?;
            reader.bytes(400)?;
        }
        let mut reply = Vec::new();
        [xid, 1, 0, 0, 0, 0].into_iter().for_each(|word| put_u32(&mut reply, word));
        if program != NFS {
            put_u32(&mut reply, 0);
            match reader.bytes(1024)? {
                b"/export" => {
                    put_bytes(&mut reply, ROOT);
                    [2, 6, 1].into_iter().for_each(|word| put_u32(&mut reply, word));
                }
                _ => {
                    reply.truncate(24);
                    put_u32(&mut reply, 13);
                }
            }
            return Ok(Some(reply));
        }
        let faults = self.faults(procedure);
        if faults.rejects > 0 {
            reply.truncate(8);
            [1, 1, faults.rejects].into_iter().for_each(|word| put_u32(&mut reply, word));
            return Ok(Some(reply));
        }
        if let Some(garbage) = faults.garbage {
            self.socket.write_all(&garbage).ok();
            return Ok(Some(reply));
        }
        if faults.hangs_up == Some(self.to) || faults.hangs_up_at_write == Some(self.to) && procedure == 7 {
            return Ok(None);
        }
        let mut files = lock(&self.shared.files);
        *files.calls.entry(procedure).or_default() += 1;
        if faults.restarts_at_write > 0 && procedure == 7 {
            files.restart(true);
            return Ok(None);
        }
        if faults.restarts_at_commit && procedure == 21 {
            files.restart(false);
        }
        if faults.not_ready > 0 {
            put_u32(&mut reply, 10008);
            put_u32(&mut reply, 0);
            return Ok(Some(reply));
        }
        files.answer(procedure, &mut reader, &mut reply, &faults)?;
        Ok(Some(reply))
    }

    /// Waits while calls are not answered here, and takes the faults that happen once.
    fn faults(&self, procedure: u32) -> Faults {
        let mut faults = lock(&self.shared.faults);
        let patience = Instant::now() + Duration::from_secs(20);
        while faults.stalled == Some(self.to) && Instant::now() < patience {
            faults = self.shared.changed.wait_timeout(faults, Duration::from_secs(1)).unwrap().0;
        }
        let now = faults.clone();
        faults.not_ready = faults.not_ready.saturating_sub(1);
        faults.garbage = None;
        faults.restarts_at_write = faults.restarts_at_write.saturating_sub(u32::from(procedure == 7));
        faults.hangs_up = faults.hangs_up.filter(|at| *at != self.to);
        faults.hangs_up_at_write = faults.hangs_up_at_write.filter(|at| *at != self.to || procedure != 7);
        now
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // The server keeps a second handle of it.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

impl Files {
    fn restart(&mut self, hangs_up: bool) {
        self.uncommitted.clear();
        self.verifier += 1;
        for socket in self.connections.drain(..).filter(|_| hangs_up) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    fn attributes(&self, file: u64, reply: &mut Vec<u8>) {
        let size = self.contents.get(&file).map_or(0, Vec::len) as u64;
        let size = self
            .uncommitted
            .iter()
            .filter(|write| write.0 == file)
            .map(|write| (write.1 + write.2.len()) as u64)
            .fold(size, u64::max);
        let kind = if file == 0 { 2 } else { 1 };
        [kind, 0o640, 1, 0, 0].into_iter().for_each(|word| put_u32(reply, word));
        for long in [size, size, 0, 99, file, 0, 0, 0] {
            reply.extend_from_slice(&long.to_be_bytes());
        }
    }

    /// What a reader sees.
    fn seen(&self, file: u64) -> Vec<u8> {
        let mut seen = self.contents.get(&file).cloned().unwrap_or_default();
        for (_, offset, data) in self.uncommitted.iter().filter(|write| write.0 == file) {
            place(&mut seen, *offset, data);
        }
        seen
    }

    fn answer(
        &mut self,
        procedure: u32,
        reader: &mut Reader<'_>,
        reply: &mut Vec<u8>,
        faults: &Faults,
    ) -> Result<(), Fault> {
        if procedure == 0 {
            return Ok(());
        }
        let handle = reader.bytes(64)?;
        let file =
            if handle == ROOT { 0 } else { u64::from_be_bytes(handle.try_into().map_err(|_| Fault::Wrong("handle"))?) };
        let name = |reader: &mut Reader<'_>| Ok::<_, Fault>(String::from_utf8_lossy(reader.bytes(255)?).into_owned());
        let refused =
            |reply: &mut Vec<u8>, status: u32| [status, 0, 0].into_iter().for_each(|word| put_u32(reply, word));
        match procedure {
            // GETATTR, LOOKUP, READ, WRITE, CREATE, REMOVE, RENAME, FSSTAT, FSINFO, COMMIT.
            1 => {
                put_u32(reply, 0);
                self.attributes(file, reply);
            }
            3 => match self.by_name.get(&name(reader)?) {
                Some(found) => {
                    put_u32(reply, 0);
                    put_bytes(reply, &found.to_be_bytes());
                    [0, 0].into_iter().for_each(|word| put_u32(reply, word));
                }
                None => refused(reply, 2),
            },
            6 | 7 if faults.status > 0 => refused(reply, faults.status),
            6 => {
                let (offset, bytes) = (reader.u64()? as usize, reader.u32()?.min(faults.moves_bytes) as usize);
                let seen = self.seen(file);
                let data = seen.get(offset.min(seen.len())..(offset + bytes).min(seen.len())).unwrap_or_default();
                [0, 1].into_iter().for_each(|word| put_u32(reply, word));
                self.attributes(file, reply);
                put_u32(reply, data.len() as u32);
                put_u32(reply, u32::from(offset + data.len() >= seen.len()));
                put_bytes(reply, data);
            }
            7 => {
                let (offset, bytes, stable) = (reader.u64()? as usize, reader.u32()?, reader.u32()?);
                let data = reader.bytes(1 << 20)?;
                let data = &data[..bytes.min(faults.moves_bytes) as usize];
                if stable == 0 {
                    self.uncommitted.push((file, offset, data.to_vec()));
                } else {
                    place(self.contents.entry(file).or_default(), offset, data);
                }
                let committed = if faults.never_durable { 0 } else { stable };
                [0, 0, 0, data.len() as u32, committed].into_iter().for_each(|word| put_u32(reply, word));
                reply.extend_from_slice(&self.verifier.to_be_bytes());
            }
            8 => {
                let name = name(reader)?;
                assert_eq!(reader.u32()?, 1, "not GUARDED");
                if self.by_name.contains_key(&name) {
                    refused(reply, 17);
                    return Ok(());
                }
                self.last += 1;
                self.by_name.insert(name, self.last);
                self.contents.insert(self.last, Vec::new());
                put_u32(reply, 0);
                if faults.says_little {
                    [0, 0, 0, 0].into_iter().for_each(|word| put_u32(reply, word));
                    return Ok(());
                }
                put_u32(reply, 1);
                put_bytes(reply, &self.last.to_be_bytes());
                put_u32(reply, 1);
                self.attributes(self.last, reply);
                [0, 0].into_iter().for_each(|word| put_u32(reply, word));
            }
            12 => refused(reply, if self.by_name.remove(&name(reader)?).is_some() { 0 } else { 2 }),
            14 => {
                let from = name(reader)?;
                reader.bytes(64)?;
                match self.by_name.remove(&from) {
                    Some(file) => {
                        self.by_name.insert(name(reader)?, file);
                        [0, 0, 0, 0, 0].into_iter().for_each(|word| put_u32(reply, word));
                    }
                    None => refused(reply, 2),
                }
            }
            18 => {
                [0, 0].into_iter().for_each(|word| put_u32(reply, word));
                [1_u64 << 40, 1 << 39, 1 << 38, 0, 0, 0]
                    .into_iter()
                    .for_each(|long| reply.extend_from_slice(&long.to_be_bytes()));
            }
            19 => {
                let most = faults.most_bytes;
                [0, 0, most, most, 512, most, most, 512, 4096].into_iter().for_each(|word| put_u32(reply, word));
                reply.extend_from_slice(&u64::MAX.to_be_bytes());
            }
            21 => {
                let (now, later) = std::mem::take(&mut self.uncommitted).into_iter().partition(|write| write.0 == file);
                self.uncommitted = later;
                let now: Vec<(u64, usize, Vec<u8>)> = now;
                now.into_iter()
                    .for_each(|(file, offset, data)| place(self.contents.entry(file).or_default(), offset, &data));
                [0, 0, 0].into_iter().for_each(|word| put_u32(reply, word));
                reply.extend_from_slice(&self.verifier.to_be_bytes());
            }
            _ => panic!("a procedure that is not used: {procedure}"),
        }
        Ok(())
    }
}

fn place(contents: &mut Vec<u8>, offset: usize, data: &[u8]) {
    let end = offset + data.len();
    if contents.len() < end {
        contents.resize(end, 0);
    }
    contents[offset..end].copy_from_slice(data);
}
