//! Compounds of version 4.1.

use super::State;
use super::faults::{Fate, Kind};
use super::service::{Answer, Service, file_of, name, put_handle, put_longs, put_words};
use super::sessions::Begun;
use super::store::{EXPORT, Files};
use crate::nfs::wire::nfs4::{Op, Slot};
use crate::nfs::wire::{Fault, Reader, Status, put_bytes, put_u32};

/// The directory that `export` lies in.
const ROOT: u64 = u64::MAX;
const OPS: [Op; 19] = [
    Op::Close,
    Op::Commit,
    Op::GetAttr,
    Op::GetFh,
    Op::Lookup,
    Op::Open,
    Op::PutFh,
    Op::PutRootFh,
    Op::Read,
    Op::Remove,
    Op::Rename,
    Op::SaveFh,
    Op::Write,
    Op::ExchangeId,
    Op::CreateSession,
    Op::DestroySession,
    Op::Sequence,
    Op::DestroyClientId,
    Op::ReclaimComplete,
];

/// Why a compound ends early.
enum End {
    Refused(Status),
    HangUp,
    Fault(Fault),
}

impl From<Fault> for End {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Status> for End {
    fn from(status: Status) -> Self {
        Self::Refused(status)
    }
}

/// One compound as it is done.
struct Compound<'a> {
    service: &'a Service,
    state: &'a mut State,
    /// Who asks, once SEQUENCE has said so.
    client: u64,
    file: u64,
    saved: u64,
}

/// `None` ends the connection.
pub fn answer(service: &Service, state: &mut State, mut reader: Reader<'_>) -> Result<Option<Answer>, Fault> {
    let request = reader.rest();
    assert_eq!((reader.bytes(64)?, reader.u32()?), (&[][..], 1), "tag and minor version");
    let count = reader.u32()?;
    let (mut kind, mut slot, mut is_kept) = (Kind::Other, None, false);
    let mut compound = Compound { service, state, client: 0, file: ROOT, saved: ROOT };
    let (mut results, mut done, mut status) = (Vec::new(), 0, 0);
    for at in 0..count {
        let number = reader.u32()?;
        let op = *OPS.iter().find(|op| **op as u32 == number).expect("an operation that is used");
        kind = match op {
            Op::Read => Kind::Read,
            Op::Write => Kind::Write,
            Op::Commit => Kind::Commit,
            Op::Open => Kind::Open,
            _ => kind,
        };
        let mut result = Vec::new();
        let refused = service.with_faults(|faults| faults.refuses(op));
        let ended = if service.with_faults(|faults| faults.hangs_up_at(op)) {
            Err(End::HangUp)
        } else if refused != 0 {
            Err(End::Refused(Status(refused)))
        } else if op == Op::Sequence {
            assert_eq!(at, 0, "SEQUENCE is the first");
            let asked = sequence(&mut reader)?;
            is_kept = asked.1;
            match compound.state.sessions.begin(&asked.0, request) {
                Begun::New(client) => {
                    compound.client = client;
                    let asked = *slot.insert(asked.0);
                    result.extend_from_slice(&asked.session);
                    put_words(&mut result, &[asked.sequence, asked.slot, 63, 63, 0]);
                    Ok(())
                }
                Begun::Again(body) => return Ok(Some(Answer { body, kind, is_refused: false })),
                Begun::Refused(status) => Err(End::Refused(status)),
            }
        } else {
            compound.one(op, &mut reader, &mut result)
        };
        status = match ended {
            Ok(()) => 0,
            Err(End::Refused(Status(status))) => status,
            Err(End::HangUp) => {
                slot.iter().for_each(|slot| compound.state.sessions.abandon(slot));
                return Ok(None);
            }
            Err(End::Fault(fault)) => return Err(fault),
        };
        done += 1;
        put_words(&mut results, &[number, status]);
        if status != 0 {
            break;
        }
        *compound.state.done.entry(number).or_default() += 1;
        results.extend(result);
    }
    let mut body = Vec::new();
    put_u32(&mut body, status);
    put_bytes(&mut body, &[]);
    put_u32(&mut body, done);
    body.extend(results);
    let is_refused = status != 0 && slot.is_none();
    if let Some(slot) = slot {
        if is_kept {
            state.sessions.keep(&slot, &body);
        }
        if count == 1 {
            state.sessions.renewed();
        }
    }
    Ok(Some(Answer { body, kind, is_refused }))
}

/// The slot, and whether the reply is to be kept.
fn sequence(reader: &mut Reader<'_>) -> Result<(Slot, bool), Fault> {
    let mut session = [0; 16];
    session.copy_from_slice(reader.fixed(16)?);
    let (sequence, slot, highest) = (reader.u32()?, reader.u32()?, reader.u32()?);
    Ok((Slot { session, slot, sequence, highest }, reader.bool()?))
}

fn bitmap(reader: &mut Reader<'_>) -> Result<Vec<u32>, Fault> {
    (0..reader.u32()?).map(|_| reader.u32()).collect()
}

/// What is asked of a file or of the server, as far as it is asked.
fn put_attributes(to: &mut Vec<u8>, files: &Files, file: u64, (most, lease): (u32, u32), asked: &[u32]) {
    let is_directory = file == ROOT || file == EXPORT;
    let mut values = Vec::new();
    let mut given = [0_u32; 2];
    for bit in 0..64 {
        let (word, mask) = ((bit / 32) as usize, 1 << (bit % 32));
        if asked.get(word).is_none_or(|asked| asked & mask == 0) {
            continue;
        }
        given[word] |= mask;
        match bit {
            // Kind, lease, links.
            1 => put_u32(&mut values, if is_directory { 2 } else { 1 }),
            10 => put_u32(&mut values, lease),
            35 => put_u32(&mut values, 1),
            // Length, file system, number, longest file, READ, WRITE, space.
            4 => put_longs(&mut values, &[files.size(file)]),
            8 => put_longs(&mut values, &[0, 99]),
            20 => put_longs(&mut values, &[file]),
            27 => put_longs(&mut values, &[u64::MAX]),
            30 | 31 => put_longs(&mut values, &[most.into()]),
            42 => put_longs(&mut values, &[1 << 38]),
            44 => put_longs(&mut values, &[1 << 40]),
            45 => put_longs(&mut values, &[files.size(file)]),
            _ => given[word] &= !mask,
        }
    }
    put_words(to, &[2, given[0], given[1]]);
    put_bytes(to, &values);
}

impl Compound<'_> {
    /// An operation other than SEQUENCE.
    fn one(&mut self, op: Op, reader: &mut Reader<'_>, to: &mut Vec<u8>) -> Result<(), End> {
        let faults = self.service.faults_now();
        let file = self.file;
        match op {
            Op::Read => {
                self.check(reader)?;
                let (offset, bytes) = (reader.u64()?, reader.u32()?);
                let (data, is_end) = self.state.files.read(file, offset, bytes.min(faults.moves_bytes));
                put_u32(to, is_end.into());
                put_bytes(to, &data);
            }
            Op::Write => {
                self.fate(Kind::Write)?;
                self.check(reader)?;
                let (offset, stable) = (reader.u64()?, reader.u32()?);
                let data = reader.bytes(1 << 20)?;
                let data = &data[..data.len().min(faults.moves_bytes as usize)];
                self.state.files.write(file, offset, data, stable != 0);
                put_words(to, &[data.len() as u32, if faults.never_durable { 0 } else { stable }]);
                put_longs(to, &[self.state.files.verifier]);
            }
            Op::Commit => {
                self.fate(Kind::Commit)?;
                reader.fixed(12)?;
                self.state.files.commit(file);
                put_longs(to, &[self.state.files.verifier]);
            }
            Op::PutRootFh => self.file = ROOT,
            Op::PutFh => self.file = file_of(reader.bytes(128)?)?,
            Op::SaveFh => self.saved = file,
            Op::GetFh => put_handle(to, file),
            Op::GetAttr => {
                put_attributes(to, &self.state.files, file, (faults.most_bytes, faults.lease_s), &bitmap(reader)?);
            }
            Op::Lookup => {
                let name = name(reader)?;
                let found = match file {
                    ROOT => (name == "export").then_some(EXPORT),
                    EXPORT => self.state.files.find(&name),
                    _ => None,
                };
                self.file = found.ok_or(Status::NOENT)?;
            }
            Op::Open => self.open(reader, to, &faults)?,
            Op::Close => {
                reader.u32()?;
                self.check(&mut reader.clone())?;
                let state = reader.fixed(16)?;
                self.state.sessions.close(&state[4..]);
                to.extend_from_slice(state);
            }
            Op::Remove => {
                self.state.files.remove(&name(reader)?).ok_or(Status::NOENT)?;
                put_words(to, &[0; 5]);
            }
            Op::Rename => {
                let moved = self.state.files.remove(&name(reader)?).ok_or(Status::NOENT)?;
                self.state.files.name(&name(reader)?, moved);
                put_words(to, &[0; 10]);
            }
            Op::ExchangeId => {
                let verifier = reader.u64()?;
                let (client, number) = self.state.sessions.exchange(reader.bytes(1024)?, verifier);
                put_longs(to, &[client]);
                // Flags, no protection, and no word of who the server is.
                put_words(to, &[number, 0, 0, 0, 0, 0, 0, 0]);
            }
            Op::CreateSession => {
                let (client, number, _) = (reader.u64()?, reader.u32()?, reader.u32()?);
                let mut channel = [0; 7];
                for word in &mut channel {
                    *word = reader.u32()?;
                }
                channel[5] = channel[5].min(faults.slots);
                to.extend_from_slice(&self.state.sessions.create(client, number, channel[5])?);
                put_words(to, &[number, 0]);
                put_words(to, &channel);
                put_words(to, &[0; 7]);
            }
            Op::DestroySession => {
                let mut session = [0; 16];
                session.copy_from_slice(reader.fixed(16)?);
                self.state.sessions.destroy_session(&session)?;
            }
            Op::DestroyClientId => self.state.sessions.destroy_client(reader.u64()?)?,
            Op::ReclaimComplete => {
                reader.u32()?;
                self.state.sessions.complete(self.client)?;
            }
            Op::Sequence => unreachable!("it is the first one"),
        }
        Ok(())
    }

    fn fate(&mut self, kind: Kind) -> Result<(), End> {
        match self.service.fate(self.state, kind) {
            Fate::Done => Ok(()),
            Fate::HangUp => Err(End::HangUp),
        }
    }

    /// Whether the file is open by the state that comes next.
    fn check(&self, reader: &mut Reader<'_>) -> Result<(), End> {
        reader.u32()?;
        Ok(self.state.sessions.check(self.client, self.file, reader.fixed(12)?)?)
    }

    fn open(&mut self, reader: &mut Reader<'_>, to: &mut Vec<u8>, faults: &super::Faults) -> Result<(), End> {
        reader.fixed(20)?;
        reader.bytes(64)?;
        let is_new = reader.u32()? == 1;
        if is_new {
            assert_eq!(reader.u32()?, 1, "not GUARDED");
            bitmap(reader)?;
            reader.bytes(64)?;
        }
        let claim = reader.u32()?;
        let is_reclaim = claim == 1;
        if faults.is_in_grace && !is_reclaim {
            return Err(Status::GRACE.into());
        }
        match claim {
            0 => {
                let name = name(reader)?;
                self.file = self.state.files.create(&name).ok_or(Status::EXIST)?;
            }
            1 => assert_eq!(reader.u32()?, 0, "a delegation is reclaimed"),
            _ => assert_eq!(claim, 4, "a claim that is not used"),
        }
        let state = self.state.sessions.open(self.client, self.file, is_reclaim, faults.takes_reclaims)?;
        put_u32(to, 1);
        to.extend_from_slice(&state);
        // Changes of the directory, flags, no attributes, no delegation.
        put_words(to, &[0, 0, 0, 0, 0, 0, 0, 0]);
        Ok(())
    }
}
