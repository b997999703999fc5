//! One connection: records, remote procedure calls, and the faults that are theirs.

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::faults::{Fate, Faults, Kind, Loss};
use super::{Shared, State, lock, v3, v4};
use crate::nfs::wire::{Fault, Reader, put_bytes, put_u32};

/// What a call comes to.
pub struct Answer {
    /// Behind the head of the reply.
    pub body: Vec<u8>,
    /// What was asked for.
    pub kind: Kind,
    /// It was refused before it was looked at.
    pub is_refused: bool,
}

/// See the module.
pub struct Service {
    socket: TcpStream,
    to: IpAddr,
    shared: Arc<Shared>,
    kept: Vec<Vec<u8>>,
}

const NFS: u32 = 100_003;

impl Service {
    pub fn of(socket: TcpStream, shared: Arc<Shared>) -> Self {
        socket.set_nodelay(true).unwrap();
        lock(&shared.state).connections.push(socket.try_clone().unwrap());
        Self { to: socket.local_addr().unwrap().ip(), socket, shared, kept: Vec::new() }
    }

    /// Until the client goes, or a fault ends it.
    pub fn serve(mut self) -> Option<()> {
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
            self.reply(&call).ok()??;
            if self.kept.len() >= lock(&self.shared.faults).reorders {
                self.send_kept()?;
            }
        }
    }

    fn send_kept(&mut self) -> Option<()> {
        for reply in std::mem::take(&mut self.kept).iter().rev() {
            self.send(reply)?;
        }
        Some(())
    }

    fn send(&mut self, reply: &[u8]) -> Option<()> {
        let most = lock(&self.shared.faults).fragment_bytes;
        let mut record = Vec::new();
        let pieces = reply.chunks(most.min(reply.len()));
        let last = pieces.len() - 1;
        for (number, piece) in pieces.enumerate() {
            put_u32(&mut record, piece.len() as u32 | if number == last { 1 << 31 } else { 0 });
            record.extend_from_slice(piece);
        }
        self.socket.write_all(&record).ok()
    }

    /// `None` ends the connection.
    fn reply(&mut self, call: &[u8]) -> Result<Option<()>, Fault> {
        let mut reader = Reader::new(call);
        let xid = reader.u32()?;
        reader.fixed(8)?;
        let (program, version, procedure) = (reader.u32()?, reader.u32()?, reader.u32()?);
        for _ in 0..2 {
            reader.u32()?;
            reader.bytes(400)?;
        }
        let mut reply = Vec::new();
        [xid, 1, 0, 0, 0, 0].into_iter().for_each(|word| put_u32(&mut reply, word));
        if program != NFS {
            v3::mount(&mut reader, &mut reply)?;
            self.kept.push(reply);
            return Ok(Some(()));
        }
        let faults = self.faults();
        if faults.rejects > 0 {
            reply.truncate(8);
            [1, 1, faults.rejects].into_iter().for_each(|word| put_u32(&mut reply, word));
            self.kept.push(reply);
            return Ok(Some(()));
        }
        if let Some(garbage) = faults.garbage {
            self.socket.write_all(&garbage).ok();
            self.kept.push(reply);
            return Ok(Some(()));
        }
        if faults.hangs_up == Some(self.to) {
            return Ok(None);
        }
        let answer = {
            let shared = Arc::clone(&self.shared);
            let mut state = lock(&shared.state);
            match (procedure, version) {
                (0, _) => {
                    *state.calls.entry(0).or_default() += 1;
                    Some(Answer { body: Vec::new(), kind: Kind::Other, is_refused: false })
                }
                (_, 3) => v3::answer(self, &mut state, procedure, &mut reader)?,
                _ => v4::answer(self, &mut state, reader)?,
            }
        };
        let Some(Answer { body, kind, is_refused }) = answer else { return Ok(None) };
        reply.extend(body);
        match self.loses(kind) {
            Some(Loss::HangUp) => return Ok(None),
            Some(Loss::Silence) => return Ok(Some(())),
            None => {}
        }
        if is_refused && lock(&self.shared.faults).refusals_overtake {
            return Ok(self.send(&reply));
        }
        self.kept.push(reply);
        Ok(Some(()))
    }

    /// Faults as they are for one call.
    pub fn faults_now(&self) -> Faults {
        lock(&self.shared.faults).clone()
    }

    /// What becomes of a call of this kind before it is done.
    pub fn fate(&self, state: &mut State, kind: Kind) -> Fate {
        let faults = &mut *lock(&self.shared.faults);
        if kind == Kind::Write && faults.hangs_up_at_write.take_if(|at| *at == self.to).is_some() {
            return Fate::HangUp;
        }
        if kind == Kind::Write && faults.restarts_at_write > 0 {
            faults.restarts_at_write -= 1;
            state.restart(true);
            return Fate::HangUp;
        }
        if kind == Kind::Commit && faults.restarts_at_commit {
            state.files.forget();
        }
        Fate::Done
    }

    /// Changes faults that happen so often.
    pub fn with_faults<T>(&self, take: impl FnOnce(&mut Faults) -> T) -> T {
        take(&mut lock(&self.shared.faults))
    }

    /// How the reply to such a call is lost now.
    fn loses(&self, kind: Kind) -> Option<Loss> {
        let mut faults = lock(&self.shared.faults);
        let (_, loss) = faults.loses_reply.take_if(|(of, _)| *of == kind)?;
        if loss == Loss::Silence {
            faults.stalled = Some(self.to);
        }
        Some(loss)
    }

    /// Waits while calls are not answered here, and takes the faults that happen once.
    fn faults(&self) -> Faults {
        let mut faults = lock(&self.shared.faults);
        let patience = Instant::now() + Duration::from_secs(20);
        while faults.stalled == Some(self.to) && Instant::now() < patience {
            faults = self.shared.changed.wait_timeout(faults, Duration::from_secs(1)).unwrap().0;
        }
        let now = faults.clone();
        faults.garbage = None;
        faults.hangs_up = faults.hangs_up.filter(|at| *at != self.to);
        now
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // The server keeps a second handle of it.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

/// Writes numbers of eight bytes.
pub fn put_longs(to: &mut Vec<u8>, longs: &[u64]) {
    longs.iter().for_each(|long| to.extend_from_slice(&long.to_be_bytes()));
}

/// Writes words.
pub fn put_words(to: &mut Vec<u8>, words: &[u32]) {
    words.iter().for_each(|word| put_u32(to, *word));
}

/// A name, or the number of a file as a handle.
pub fn name(reader: &mut Reader<'_>) -> Result<String, Fault> {
    Ok(String::from_utf8_lossy(reader.bytes(255)?).into_owned())
}

/// A file's handle.
pub fn put_handle(to: &mut Vec<u8>, file: u64) {
    put_bytes(to, &file.to_be_bytes());
}

/// The file of a handle.
pub fn file_of(handle: &[u8]) -> Result<u64, Fault> {
    Ok(u64::from_be_bytes(handle.try_into().map_err(|_| Fault::Wrong("handle"))?))
}
