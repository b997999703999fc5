//! Messages of NFS version 4.1 (RFC 8881).

mod attributes;

use super::answers::{CommitDone, Committed, Created, FileHandle, ReadHead, Stable, StateId, Status, WriteDone};
use super::{Fault, Program, Reader, put_bytes, put_u32, put_u64};
use attributes::{OF_A_FILE, attribute, file_attributes};

pub use attributes::{
    attributes, looked_up, put_get_attributes, put_look_up, put_root, put_server, put_space, root, server, space,
};
#[cfg(test)]
mod tests;

/// READ.
#[inline]
pub fn put_read(compound: &mut Compound<'_>, (handle, state): (&FileHandle, StateId), offset: u64, bytes: u32) {
    compound.put_handle(handle);
    let to = compound.op(Op::Read);
    put_state(to, state);
    put_u64(to, offset);
    put_u32(to, bytes);
}

/// Result of READ, before its data; these follow in the results' rest.
///
/// # Errors
/// The server's refusal, and what is none.
#[inline]
pub fn read_head(results: &mut Results<'_>) -> Result<ReadHead, Problem> {
    results.op(Op::PutFh)?;
    results.op(Op::Read)?;
    let is_end = results.reader.bool()?;
    Ok(ReadHead { bytes: results.reader.u32()?, is_end })
}

/// WRITE before its data, which follow with padding.
#[inline]
pub fn put_write_head<'a>(
    compound: &'a mut Compound<'_>,
    (handle, state): (&FileHandle, StateId),
    offset: u64,
    bytes: u32,
    stable: Stable,
) -> &'a mut Vec<u8> {
    compound.put_handle(handle);
    let to = compound.op(Op::Write);
    put_state(to, state);
    put_u64(to, offset);
    put_u32(to, stable as u32);
    put_u32(to, bytes);
    to
}

/// Result of WRITE.
///
/// # Errors
/// The server's refusal, and what is none.
#[inline]
pub fn write_done(results: &mut Results<'_>) -> Result<WriteDone, Problem> {
    results.op(Op::PutFh)?;
    results.op(Op::Write)?;
    let reader = &mut results.reader;
    let bytes = reader.u32()?;
    let committed = match reader.u32()? {
        0 => Committed::Not,
        1 | 2 => Committed::Data,
        _ => return Err(Fault::Wrong("a WRITE of no known durability").into()),
    };
    Ok(WriteDone { bytes, committed, verifier: reader.u64()? })
}

/// COMMIT of the whole file.
#[inline]
pub fn put_commit(compound: &mut Compound<'_>, handle: &FileHandle) {
    compound.put_handle(handle);
    let to = compound.op(Op::Commit);
    put_u64(to, 0);
    put_u32(to, 0);
}

/// Result of COMMIT.
///
/// # Errors
/// The server's refusal, and what is none.
#[inline]
pub fn commit_done(results: &mut Results<'_>) -> Result<CommitDone, Problem> {
    results.op(Op::PutFh)?;
    results.op(Op::Commit)?;
    Ok(CommitDone { verifier: results.reader.u64()? })
}

/// A session's name.
pub type SessionId = [u8; 16];

/// A place in a session: the server does at most once what is sent in it under one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// The session.
    pub session: SessionId,
    /// Its number, from 0.
    pub slot: u32,
    /// Number of the request in it.
    pub sequence: u32,
    /// The highest slot that may be in use.
    pub highest: u32,
}

/// SEQUENCE, with which each compound of a session begins. The server is asked to keep its answer if `is_kept`.
#[inline]
pub fn put_sequence(compound: &mut Compound<'_>, slot: &Slot, is_kept: bool) {
    let to = compound.op(Op::Sequence);
    to.extend_from_slice(&slot.session);
    [slot.sequence, slot.slot, slot.highest, u32::from(is_kept)].into_iter().for_each(|word| put_u32(to, word));
}

/// Result of SEQUENCE.
///
/// # Errors
/// The server's refusal, and what is none, or that of another slot.
#[inline]
pub fn sequenced(results: &mut Results<'_>, slot: &Slot) -> Result<(), Problem> {
    results.op(Op::Sequence)?;
    let session = results.reader.fixed(16)?;
    let (sequence, number) = (results.reader.u32()?, results.reader.u32()?);
    results.reader.fixed(12)?;
    if session != slot.session || sequence != slot.sequence || number != slot.slot {
        return Err(Fault::Wrong("the answer of another slot").into());
    }
    Ok(())
}

/// Who this client is, for as long as it is.
pub fn put_exchange_id(compound: &mut Compound<'_>, owner: &[u8], verifier: u64) {
    const NO_PARALLEL_NFS: u32 = 0x0001_0000;
    let to = compound.op(Op::ExchangeId);
    put_u64(to, verifier);
    put_bytes(to, owner);
    // No protection of state, no name of an implementation.
    [NO_PARALLEL_NFS, 0, 0].into_iter().for_each(|word| put_u32(to, word));
}

/// Result of EXCHANGE_ID: the server's number of this client, and that of its first CREATE_SESSION.
///
/// # Errors
/// The server's refusal, and what is none.
pub fn exchanged_id(results: &mut Results<'_>) -> Result<(u64, u32), Problem> {
    results.op(Op::ExchangeId)?;
    Ok((results.reader.u64()?, results.reader.u32()?))
}

/// What a session is to be, or is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channel {
    /// Bytes of a request at most.
    pub request_bytes: u32,
    /// Bytes of a reply at most.
    pub reply_bytes: u32,
    /// Bytes of a reply that is kept at most.
    pub kept_bytes: u32,
    /// Operations of a compound at most.
    pub operations: u32,
    /// Requests at once at most: slots.
    pub slots: u32,
}

/// CREATE_SESSION, by its number among those of the client. The server is not to call back.
pub fn put_create_session(compound: &mut Compound<'_>, (client, number): (u64, u32), channel: Channel) {
    const CALLBACK_PROGRAM: u32 = 0x4000_0000;
    let to = compound.op(Op::CreateSession);
    put_u64(to, client);
    [number, 0].into_iter().for_each(|word| put_u32(to, word));
    let back = Channel { request_bytes: 4096, reply_bytes: 4096, kept_bytes: 0, operations: 2, slots: 1 };
    for Channel { request_bytes, reply_bytes, kept_bytes, operations, slots } in [channel, back] {
        [0, request_bytes, reply_bytes, kept_bytes, operations, slots, 0]
            .into_iter()
            .for_each(|word| put_u32(to, word));
    }
    [CALLBACK_PROGRAM, 1, 0].into_iter().for_each(|word| put_u32(to, word));
}

/// Result of CREATE_SESSION.
///
/// # Errors
/// The server's refusal, and what is none, or a session in which nothing can be asked.
pub fn created_session(results: &mut Results<'_>) -> Result<(SessionId, Channel), Problem> {
    results.op(Op::CreateSession)?;
    let reader = &mut results.reader;
    let mut session = [0; 16];
    session.copy_from_slice(reader.fixed(16)?);
    reader.fixed(12)?;
    let (request_bytes, reply_bytes, kept_bytes) = (reader.u32()?, reader.u32()?, reader.u32()?);
    let channel = Channel { request_bytes, reply_bytes, kept_bytes, operations: reader.u32()?, slots: reader.u32()? };
    if channel.slots == 0 {
        return Err(Fault::Wrong("a session without slots").into());
    }
    Ok((session, channel))
}

/// DESTROY_SESSION.
pub fn put_destroy_session(compound: &mut Compound<'_>, session: &SessionId) {
    compound.op(Op::DestroySession).extend_from_slice(session);
}

/// DESTROY_CLIENTID.
pub fn put_destroy_client(compound: &mut Compound<'_>, client: u64) {
    put_u64(compound.op(Op::DestroyClientId), client);
}

/// RECLAIM_COMPLETE: nothing of an earlier life is asked for any more.
pub fn put_reclaim_complete(compound: &mut Compound<'_>) {
    put_u32(compound.op(Op::ReclaimComplete), 0);
}

/// Its result.
///
/// # Errors
/// The server's refusal, and what is none.
pub fn completed(results: &mut Results<'_>) -> Result<(), Problem> {
    results.op(Op::ReclaimComplete)
}

/// How a file is to be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// To be read.
    Read = 1,
    /// To be read and written.
    Both = 3,
}

/// What of a file that is there is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// The file itself.
    File,
    /// The same as before the server restarted.
    Before,
}

/// The server is asked for no delegation: nobody would hear it called back.
const NO_DELEGATION: u32 = 0x400;

fn put_open<'a>(compound: &'a mut Compound<'_>, owner: u64, access: Access) -> &'a mut Vec<u8> {
    let to = compound.op(Op::Open);
    [0, access as u32 | NO_DELEGATION, 0].into_iter().for_each(|word| put_u32(to, word));
    // The session says which client it is.
    put_u64(to, 0);
    put_bytes(to, &owner.to_be_bytes());
    to
}

/// OPEN of a name that must not be taken, with these rights (GUARDED).
pub fn put_create(compound: &mut Compound<'_>, directory: &FileHandle, name: &str, mode: u32, owner: u64) {
    const CREATE: u32 = 1;
    const GUARDED: u32 = 1;
    const CLAIM_NULL: u32 = 0;
    compound.put_handle(directory);
    let to = put_open(compound, owner, Access::Both);
    [CREATE, GUARDED, 2, 0, 1 << (attribute::MODE - 32), 4, mode, CLAIM_NULL]
        .into_iter()
        .for_each(|word| put_u32(to, word));
    put_bytes(to, name.as_bytes());
    compound.op(Op::GetFh);
    compound.get_attributes(&OF_A_FILE);
}

/// Its result.
///
/// # Errors
/// The server's refusal, and what is none.
pub fn created(results: &mut Results<'_>) -> Result<Created, Problem> {
    let state = opened(results)?;
    let handle = results.handle()?;
    Ok(Created { handle: Some(handle), attributes: Some(file_attributes(results)?), state: Some(state) })
}

/// OPEN of a file that is there.
pub fn put_open_file(compound: &mut Compound<'_>, handle: &FileHandle, owner: u64, access: Access, claim: Claim) {
    const NO_CREATE: u32 = 0;
    const CLAIM_PREVIOUS: u32 = 1;
    const CLAIM_FH: u32 = 4;
    compound.put_handle(handle);
    let to = put_open(compound, owner, access);
    put_u32(to, NO_CREATE);
    match claim {
        Claim::File => put_u32(to, CLAIM_FH),
        // Nothing was delegated before either.
        Claim::Before => [CLAIM_PREVIOUS, 0].into_iter().for_each(|word| put_u32(to, word)),
    }
}

/// Result of OPEN.
///
/// # Errors
/// The server's refusal, and what is none.
pub fn opened(results: &mut Results<'_>) -> Result<StateId, Problem> {
    results.op(Op::PutFh)?;
    results.op(Op::Open)?;
    let state = read_state(&mut results.reader)?;
    results.change()?;
    results.reader.u32()?;
    results.bitmap()?;
    const NONE: u32 = 0;
    const NONE_AND_WHY: u32 = 3;
    match results.reader.u32()? {
        NONE => {}
        // Contention and resources come with one word more.
        NONE_AND_WHY => {
            if matches!(results.reader.u32()?, 1 | 2) {
                results.reader.bool()?;
            }
        }
        _ => return Err(Fault::Wrong("a delegation that was not requested").into()),
    }
    Ok(state)
}

/// CLOSE.
pub fn put_close(compound: &mut Compound<'_>, handle: &FileHandle, state: StateId) {
    compound.put_handle(handle);
    let to = compound.op(Op::Close);
    put_u32(to, 0);
    put_state(to, state);
}

/// Its result.
///
/// # Errors
/// The server's refusal, and what is none.
pub fn closed(results: &mut Results<'_>) -> Result<(), Problem> {
    results.op(Op::PutFh)?;
    results.op(Op::Close)
}

/// REMOVE.
pub fn put_remove(compound: &mut Compound<'_>, directory: &FileHandle, name: &str) {
    compound.put_handle(directory);
    put_bytes(compound.op(Op::Remove), name.as_bytes());
}

/// Its result.
///
/// # Errors
/// The server's refusal, and what is none.
pub fn removed(results: &mut Results<'_>) -> Result<(), Problem> {
    results.op(Op::PutFh)?;
    results.op(Op::Remove)?;
    Ok(results.change()?)
}

/// RENAME.
pub fn put_rename(compound: &mut Compound<'_>, from: (&FileHandle, &str), new: (&FileHandle, &str)) {
    compound.put_handle(from.0);
    compound.op(Op::SaveFh);
    compound.put_handle(new.0);
    let to = compound.op(Op::Rename);
    put_bytes(to, from.1.as_bytes());
    put_bytes(to, new.1.as_bytes());
}

/// Its result.
///
/// # Errors
/// The server's refusal, and what is none.
pub fn renamed(results: &mut Results<'_>) -> Result<(), Problem> {
    for op in [Op::PutFh, Op::SaveFh, Op::PutFh, Op::Rename] {
        results.op(op)?;
    }
    results.change()?;
    Ok(results.change()?)
}

/// NFS version 4; the minor version stands in each compound.
pub const NFS4: Program = Program { number: 100_003, version: 4 };
/// The procedure that does everything.
pub const COMPOUND: u32 = 1;
const MINOR_VERSION: u32 = 1;
/// Bytes of a compound's tag at most; ours is empty, and servers give it back.
const MAX_TAG_BYTES: usize = 64;
/// Words of a bit map that are read at most.
const MAX_BITMAP_WORDS: usize = 8;

/// Operations, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
#[expect(missing_docs, reason = "the names are those of RFC 8881")]
pub enum Op {
    Close = 4,
    Commit = 5,
    GetAttr = 9,
    GetFh = 10,
    Lookup = 15,
    Open = 18,
    PutFh = 22,
    PutRootFh = 24,
    Read = 25,
    Remove = 28,
    Rename = 29,
    SaveFh = 32,
    Write = 38,
    ExchangeId = 42,
    CreateSession = 43,
    DestroySession = 44,
    Sequence = 53,
    DestroyClientId = 57,
    ReclaimComplete = 58,
}

/// Why results end: the server refused, or they are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// The server refused an operation.
    Refused(Status),
    /// What came is no result.
    Fault(Fault),
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// What the server says of an operation, apart from what it cannot have said.
///
/// # Errors
/// What is no result.
pub fn told<T>(read: Result<T, Problem>) -> Result<Result<T, Status>, Fault> {
    match read {
        Ok(answer) => Ok(Ok(answer)),
        Err(Problem::Refused(status)) => Ok(Err(status)),
        Err(Problem::Fault(fault)) => Err(fault),
    }
}

/// Writes the operations of one compound.
#[derive(Debug)]
pub struct Compound<'a> {
    to: &'a mut Vec<u8>,
    count_at: usize,
    count: u32,
}

impl<'a> Compound<'a> {
    /// Behind the head of a call.
    #[inline]
    pub fn begin(to: &'a mut Vec<u8>) -> Self {
        put_bytes(to, &[]);
        put_u32(to, MINOR_VERSION);
        let count_at = to.len();
        put_u32(to, 0);
        Self { to, count_at, count: 0 }
    }

    /// Another operation; its arguments follow.
    #[inline]
    pub fn op(&mut self, op: Op) -> &mut Vec<u8> {
        self.count += 1;
        self.to[self.count_at..self.count_at + 4].copy_from_slice(&self.count.to_be_bytes());
        put_u32(self.to, op as u32);
        self.to
    }

    /// What follows is about this file.
    #[inline]
    pub fn put_handle(&mut self, handle: &FileHandle) {
        put_bytes(self.op(Op::PutFh), handle.as_bytes());
    }

    /// Attributes are asked for.
    pub fn get_attributes(&mut self, asked: &[u32]) {
        let mut words = [0_u32; 2];
        for bit in asked {
            words[(bit / 32) as usize] |= 1 << (bit % 32);
        }
        let to = self.op(Op::GetAttr);
        [2, words[0], words[1]].into_iter().for_each(|word| put_u32(to, word));
    }
}

/// Reads results in the order of their operations.
#[derive(Debug, Clone, Copy)]
pub struct Results<'a> {
    reader: Reader<'a>,
}

impl<'a> Results<'a> {
    /// Behind the head of a reply.
    ///
    /// # Errors
    /// A compound that was refused as a whole, and what is none.
    #[inline]
    pub fn begin(mut reader: Reader<'a>) -> Result<Self, Problem> {
        let status = reader.u32()?;
        reader.bytes(MAX_TAG_BYTES)?;
        let count = reader.u32()?;
        match (count, status) {
            (0, 0) => Err(Fault::Wrong("a compound without results").into()),
            (0, _) => Err(Problem::Refused(Status(status))),
            _ => Ok(Self { reader }),
        }
    }

    /// The next result is that of `op`.
    ///
    /// # Errors
    /// The server's refusal, and what is no such result.
    #[inline]
    pub fn op(&mut self, op: Op) -> Result<(), Problem> {
        if self.reader.u32()? != op as u32 {
            return Err(Fault::Wrong("the result of another operation").into());
        }
        match self.reader.u32()? {
            0 => Ok(()),
            status => Err(Problem::Refused(Status(status))),
        }
    }

    /// What follows the results that were read.
    pub fn rest(&self) -> Reader<'a> {
        self.reader
    }

    fn handle(&mut self) -> Result<FileHandle, Problem> {
        self.op(Op::GetFh)?;
        Ok(FileHandle::read_longer(&mut self.reader)?)
    }

    /// Changes of a directory (`change_info4`).
    fn change(&mut self) -> Result<(), Fault> {
        self.reader.bool()?;
        self.reader.fixed(16).map(|_| ())
    }

    fn bitmap(&mut self) -> Result<[u32; 2], Fault> {
        let words = self.reader.u32()? as usize;
        if words > MAX_BITMAP_WORDS {
            return Err(Fault::Wrong("a bit map over its limit"));
        }
        let mut map = [0; 2];
        for at in 0..words {
            let word = self.reader.u32()?;
            match map.get_mut(at) {
                Some(place) => *place = word,
                None if word == 0 => {}
                None => return Err(Fault::Wrong("attributes that were not requested")),
            }
        }
        Ok(map)
    }
}

fn read_state(reader: &mut Reader<'_>) -> Result<StateId, Fault> {
    reader.u32()?;
    let mut other = [0; 12];
    other.copy_from_slice(reader.fixed(12)?);
    Ok(StateId(other))
}

/// The state as it is at present, whatever its number of changes: that of 0 says so.
#[inline]
fn put_state(to: &mut Vec<u8>, state: StateId) {
    put_u32(to, 0);
    to.extend_from_slice(&state.0);
}
