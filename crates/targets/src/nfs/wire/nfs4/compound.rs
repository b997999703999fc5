//! Compounds are written operation by operation, and their results read in the same order.

use super::super::answers::{FileHandle, StateId, Status};
use super::super::rpc::Program;
use super::super::xdr::{Fault, Reader, put_bytes, put_u32};

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
    pub(super) reader: Reader<'a>,
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

    pub(super) fn handle(&mut self) -> Result<FileHandle, Problem> {
        self.op(Op::GetFh)?;
        Ok(FileHandle::read_longer(&mut self.reader)?)
    }

    /// Changes of a directory (`change_info4`).
    pub(super) fn change(&mut self) -> Result<(), Fault> {
        self.reader.bool()?;
        self.reader.fixed(16).map(|_| ())
    }

    pub(super) fn bitmap(&mut self) -> Result<[u32; 2], Fault> {
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
                None => return Err(Fault::Wrong("attributes that nobody asked for")),
            }
        }
        Ok(map)
    }
}

pub(super) fn read_state(reader: &mut Reader<'_>) -> Result<StateId, Fault> {
    reader.u32()?;
    let mut other = [0; 12];
    other.copy_from_slice(reader.fixed(12)?);
    Ok(StateId(other))
}

/// The state as it is at present, whatever its number of changes: that of 0 says so.
#[inline]
pub(super) fn put_state(to: &mut Vec<u8>, state: StateId) {
    put_u32(to, 0);
    to.extend_from_slice(&state.0);
}
