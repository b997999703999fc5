//! What this program and an NFS server say to each other, as pure code: XDR (RFC 4506), remote procedure calls with AUTH_SYS (RFC
//! 5531), the mount protocol and NFS version 3 (RFC 1813), NFS version 4.1 (RFC 8881), and the port mapper (RFC 1833).
//!
//! What comes from the wire is hostile until proven otherwise: no length is believed that is over its limit, nothing is allocated by
//! a number of the other end, and what cannot be read is a [`Fault`].

mod answers;
pub mod nfs3;
pub mod nfs4;
mod operations;

use std::fmt;

pub use answers::{
    Attributes, CommitDone, Committed, Created, FileHandle, FileKind, FsInfo, FsStat, ReadHead, Stable, StateId,
    Status, WriteDone,
};
pub use nfs3::{MAX_READ_HEAD_BYTES, NFS3, Procedure};
pub use operations::{
    Commit, Create, GetAttributes, GetServer, GetSpace, LookUp, Operation, Read, Remove, Rename, Write,
};

#[cfg(test)]
mod tests;

/// The port mapper (RFC 1833, version 2).
pub const PORT_MAPPER: Program = Program { number: 100_000, version: 2 };
/// The mount service that belongs to NFS version 3 (RFC 1813, appendix I).
pub const MOUNT3: Program = Program { number: 100_005, version: 3 };
/// TCP, as the port mapper calls it.
const TCP: u32 = 6;
/// Flavours of authentication that are read at most.
const MAX_FLAVOURS: u32 = 64;
const AUTH_SYS: u32 = 1;

/// Arguments of the port mapper's GETPORT (3).
pub fn put_get_port(to: &mut Vec<u8>, program: Program) {
    [program.number, program.version, TCP, 0].into_iter().for_each(|word| put_u32(to, word));
}

/// Result of GETPORT: the port, or `None` where no such program is registered.
///
/// # Errors
/// What is no port.
pub fn port(mut reader: Reader<'_>) -> Result<Option<u16>, Fault> {
    let port = reader.u32()?;
    match u16::try_from(port) {
        Ok(port) => Ok((port > 0).then_some(port)),
        Err(_) => Err(Fault::Wrong("a port over 65535")),
    }
}

/// Arguments of the mount service's MNT (1).
pub fn put_mount_path(to: &mut Vec<u8>, path: &str) {
    put_bytes(to, path.as_bytes());
}

/// What may be mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mounted {
    /// Its root.
    pub handle: FileHandle,
    /// Whether the server takes AUTH_SYS for it, or says nothing of what it takes.
    pub takes_auth_sys: bool,
}

/// Result of MNT.
///
/// # Errors
/// What is none.
pub fn mounted(mut reader: Reader<'_>) -> Result<Result<Mounted, Status>, Fault> {
    match reader.u32()? {
        0 => {}
        status => return Ok(Err(Status(status))),
    }
    let handle = FileHandle::read(&mut reader)?;
    let flavours = reader.u32()?;
    if flavours > MAX_FLAVOURS {
        return Err(Fault::Wrong("more kinds of authentication than there are"));
    }
    let mut takes_auth_sys = flavours == 0;
    for _ in 0..flavours {
        takes_auth_sys |= reader.u32()? == AUTH_SYS;
    }
    Ok(Ok(Mounted { handle, takes_auth_sys }))
}

// XDR: big-endian words of four bytes, and bytes padded to a multiple of them.

/// Why bytes are not what they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// They end too early; with more of them it may be right.
    Short,
    /// They cannot be right: what is wrong.
    Wrong(&'static str),
}

/// Reads values one after the other. What follows the last one is ignored.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// From the first byte on.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// What was not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    /// The next bytes, as many as asked.
    ///
    /// # Errors
    /// Where there are fewer.
    #[inline]
    pub fn fixed(&mut self, bytes: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.bytes.split_at_checked(bytes).ok_or(Fault::Short)?;
        self.bytes = rest;
        Ok(taken)
    }

    /// An unsigned number.
    ///
    /// # Errors
    /// Where the bytes end.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, Fault> {
        let (word, rest) = self.bytes.split_first_chunk().ok_or(Fault::Short)?;
        self.bytes = rest;
        Ok(u32::from_be_bytes(*word))
    }

    /// An unsigned number of eight bytes.
    ///
    /// # Errors
    /// Where the bytes end.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, Fault> {
        let (word, rest) = self.bytes.split_first_chunk().ok_or(Fault::Short)?;
        self.bytes = rest;
        Ok(u64::from_be_bytes(*word))
    }

    /// Yes or no.
    ///
    /// # Errors
    /// Where it is neither, or the bytes end.
    #[inline]
    pub fn bool(&mut self) -> Result<bool, Fault> {
        match self.u32()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Fault::Wrong("neither true nor false")),
        }
    }

    /// Bytes with their length before them and padding behind them, at most `most`.
    ///
    /// # Errors
    /// Where there are said to be more, or the bytes end.
    #[inline]
    pub fn bytes(&mut self, most: usize) -> Result<&'a [u8], Fault> {
        let length = self.u32()? as usize;
        if length > most {
            return Err(Fault::Wrong("a length over its limit"));
        }
        let bytes = self.fixed(length)?;
        self.fixed(padding(length))?;
        Ok(bytes)
    }
}

/// Bytes that follow so many, up to a whole word.
#[inline]
const fn padding(length: usize) -> usize {
    length.wrapping_neg() & 3
}

/// Writes a number.
#[inline]
pub fn put_u32(to: &mut Vec<u8>, value: u32) {
    to.extend_from_slice(&value.to_be_bytes());
}

/// Writes a number of eight bytes.
#[inline]
fn put_u64(to: &mut Vec<u8>, value: u64) {
    to.extend_from_slice(&value.to_be_bytes());
}

/// Writes bytes with their length before them and padding behind them.
#[inline]
pub fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    put_u32(to, bytes.len() as u32);
    to.extend_from_slice(bytes);
    to.extend_from_slice(&[0; 3][..padding(bytes.len())]);
}

const RPC_VERSION: u32 = 2;
const CALL: u32 = 0;
const REPLY: u32 = 1;
const AUTH_NONE: u32 = 0;
const RPC_AUTH_SYS: u32 = 1;
/// Bytes of a credential or verifier at most (RFC 5531, 8.2).
const MAX_AUTH_BYTES: usize = 400;
/// Groups that AUTH_SYS carries at most, and bytes of a machine's name (RFC 5531, appendix A).
const MAX_GROUPS: usize = 16;
const MAX_MACHINE_BYTES: usize = 255;
/// A fragment's mark has this bit where it is the last of its record.
const LAST_FRAGMENT: u32 = 1 << 31;

/// A program that is called, by its number and version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program {
    /// Number.
    pub number: u32,
    /// Version.
    pub version: u32,
}

/// Who sends the calls: credential and verifier as they stand in every call. AUTH_SYS is an assertion that nobody proves.
#[derive(Debug, Clone)]
pub struct Credential(Vec<u8>);

impl Credential {
    /// The real user and groups of this process. Of the groups the first 16 are sent, as there is no room for more.
    pub fn of_this_process() -> Self {
        let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        let groups = rustix::process::getgroups().unwrap_or_default();
        let groups: Vec<u32> =
            groups.into_iter().map(rustix::process::Gid::as_raw).filter(|other| *other != group).collect();
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Self::new(host.trim().as_bytes(), user, group, &groups)
    }

    /// A user of a machine with a group and others.
    pub fn new(machine: &[u8], user: u32, group: u32, groups: &[u32]) -> Self {
        let mut body = Vec::new();
        put_u32(&mut body, 0);
        put_bytes(&mut body, &machine[..machine.len().min(MAX_MACHINE_BYTES)]);
        put_u32(&mut body, user);
        put_u32(&mut body, group);
        let groups = &groups[..groups.len().min(MAX_GROUPS)];
        put_u32(&mut body, groups.len() as u32);
        groups.iter().for_each(|group| put_u32(&mut body, *group));
        let mut credential = Vec::new();
        put_u32(&mut credential, RPC_AUTH_SYS);
        put_bytes(&mut credential, &body);
        put_u32(&mut credential, AUTH_NONE);
        put_bytes(&mut credential, &[]);
        Self(credential)
    }
}

/// Writes the head of a call behind room for the fragment's mark. Returns where it begins, for [`end_call`].
#[inline]
pub fn begin_call(to: &mut Vec<u8>, xid: u32, program: Program, procedure: u32, credential: &Credential) -> usize {
    let begin = to.len();
    let mut head = [0; 28];
    let words = [0, xid, CALL, RPC_VERSION, program.number, program.version, procedure];
    head.chunks_exact_mut(4).zip(words).for_each(|(place, word)| place.copy_from_slice(&word.to_be_bytes()));
    to.extend_from_slice(&head);
    to.extend_from_slice(&credential.0);
    begin
}

/// Writes the mark of a call that is complete.
#[inline]
pub fn end_call(to: &mut [u8], begin: usize) {
    let bytes = (to.len() - begin - 4) as u32;
    to[begin..begin + 4].copy_from_slice(&(bytes | LAST_FRAGMENT).to_be_bytes());
}

/// Why a server did not even look at a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejection {
    /// It has no such program.
    NoProgram,
    /// It has other versions of the program, from the first to the second.
    OtherVersion(u32, u32),
    /// The program has no such procedure.
    NoProcedure,
    /// It could not read the arguments.
    Arguments,
    /// It failed.
    System,
    /// It speaks other versions of RPC.
    OtherRpc,
    /// It does not accept who we are, for this reason (RFC 5531, `auth_stat`).
    Credential(u32),
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoProgram => f.write_str("it has no such program"),
            Self::OtherVersion(least, most) => write!(f, "it speaks versions {least} to {most} of the program"),
            Self::NoProcedure => f.write_str("the program has no such procedure"),
            Self::Arguments => f.write_str("it could not read the arguments"),
            Self::System => f.write_str("it reports a failure of its own"),
            Self::OtherRpc => f.write_str("it speaks another version of RPC"),
            Self::Credential(5) => {
                f.write_str("it wants a stronger authentication than AUTH_SYS, or a port below 1024")
            }
            Self::Credential(why) => write!(f, "it does not accept AUTH_SYS from here (reason {why})"),
        }
    }
}

/// What a reply begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyHead {
    /// Number of the call.
    pub xid: u32,
    /// Whether results follow.
    pub accepted: Result<(), Rejection>,
}

/// Reads the head of a reply; the results follow in `reader`.
///
/// # Errors
/// What is no reply.
#[inline]
pub fn reply_head(reader: &mut Reader<'_>) -> Result<ReplyHead, Fault> {
    let xid = reader.u32()?;
    if reader.u32()? != REPLY {
        return Err(Fault::Wrong("a message that is not a reply"));
    }
    let accepted = match reader.u32()? {
        0 => {
            reader.u32()?;
            reader.bytes(MAX_AUTH_BYTES)?;
            match reader.u32()? {
                0 => Ok(()),
                1 => Err(Rejection::NoProgram),
                2 => Err(Rejection::OtherVersion(reader.u32()?, reader.u32()?)),
                3 => Err(Rejection::NoProcedure),
                4 => Err(Rejection::Arguments),
                5 => Err(Rejection::System),
                _ => return Err(Fault::Wrong("a reply that is neither accepted nor refused")),
            }
        }
        1 => match reader.u32()? {
            0 => Err(Rejection::OtherRpc),
            1 => Err(Rejection::Credential(reader.u32()?)),
            _ => return Err(Fault::Wrong("a reply that is denied for no known reason")),
        },
        _ => return Err(Fault::Wrong("a reply that is neither accepted nor denied")),
    };
    Ok(ReplyHead { xid, accepted })
}

/// Bytes that a record may have beside data.
const MAX_HEAD_BYTES: usize = 1024;
const _: () = assert!(MAX_READ_HEAD_BYTES <= MAX_HEAD_BYTES);

/// Takes what records hold.
pub trait Sink {
    /// Looks at the first bytes of a record, which are all of it if `is_whole`.
    ///
    /// # Errors
    /// [`Fault::Short`] asks for more bytes; any other fault ends the connection.
    fn head(&mut self, bytes: &[u8], is_whole: bool) -> Result<Take, Fault>;

    /// Takes the next data of the record.
    fn data(&mut self, bytes: &[u8]);

    /// All data of the record have come.
    fn data_end(&mut self);
}

/// What a record holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Take {
    /// Nothing more that is of use.
    Nothing,
    /// So many bytes of head, and then so many of data.
    Data {
        /// Bytes of the head.
        head_bytes: usize,
        /// Bytes of the data.
        data_bytes: u32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Looking for the end of the head.
    Head,
    /// So many bytes of data are to come.
    Data(u32),
    /// The rest of the record is of no use.
    Rest,
}

/// Cuts the stream of one connection into records.
#[derive(Debug)]
pub struct Records {
    mark: [u8; 4],
    mark_bytes: usize,
    fragment_left: usize,
    is_last: bool,
    state: State,
    /// The head of a record that has come in pieces.
    head: Vec<u8>,
    /// Bytes that the present record may still have.
    room: usize,
    record_max: usize,
}

impl Records {
    /// For records with at most `data_max` bytes of data.
    pub fn new(data_max: u32) -> Self {
        let record_max = data_max as usize + MAX_HEAD_BYTES;
        Self {
            mark: [0; 4],
            mark_bytes: 0,
            fragment_left: 0,
            is_last: false,
            state: State::Head,
            head: Vec::with_capacity(MAX_HEAD_BYTES),
            room: record_max,
            record_max,
        }
    }

    /// Bytes of data that come next without anything between: they may be read to where they belong and reported to
    /// [`Records::took_data`] instead of being fed.
    pub fn data_next(&self) -> usize {
        match self.state {
            State::Data(left) => self.fragment_left.min(left as usize),
            State::Head | State::Rest => 0,
        }
    }

    /// So many of [`Records::data_next`] were taken already.
    ///
    /// # Errors
    /// When the record ends before its data.
    pub fn took_data(&mut self, bytes: usize, sink: &mut impl Sink) -> Result<(), Fault> {
        self.advance_data(bytes, sink);
        self.consumed(bytes)
    }

    /// Takes the next bytes of the stream, any number of them.
    ///
    /// # Errors
    /// What cannot be a record of replies; the connection is of no use any more.
    pub fn feed(&mut self, mut bytes: &[u8], sink: &mut impl Sink) -> Result<(), Fault> {
        while !bytes.is_empty() {
            if self.fragment_left == 0 {
                let missing = (4 - self.mark_bytes).min(bytes.len());
                self.mark[self.mark_bytes..self.mark_bytes + missing].copy_from_slice(&bytes[..missing]);
                self.mark_bytes += missing;
                bytes = &bytes[missing..];
                if self.mark_bytes == 4 {
                    self.begin_fragment()?;
                }
                continue;
            }
            let (now, _) = bytes.split_at(bytes.len().min(self.fragment_left));
            let used = self.take(now, sink)?;
            bytes = &bytes[used..];
            self.consumed(used)?;
        }
        Ok(())
    }

    fn begin_fragment(&mut self) -> Result<(), Fault> {
        let mark = u32::from_be_bytes(self.mark);
        let length = (mark & !LAST_FRAGMENT) as usize;
        if length == 0 {
            return Err(Fault::Wrong("an empty fragment"));
        }
        self.room = self.room.checked_sub(length).ok_or(Fault::Wrong("a record over its limit"))?;
        (self.mark_bytes, self.fragment_left, self.is_last) = (0, length, mark & LAST_FRAGMENT != 0);
        Ok(())
    }

    /// Bytes of `now` that were used, at least one.
    fn take(&mut self, now: &[u8], sink: &mut impl Sink) -> Result<usize, Fault> {
        match self.state {
            State::Rest => Ok(now.len()),
            State::Data(left) => {
                let bytes = now.len().min(left as usize);
                sink.data(&now[..bytes]);
                self.advance_data(bytes, sink);
                Ok(bytes)
            }
            State::Head => {
                let before = self.head.len();
                let added = if before == 0 { now.len() } else { now.len().min(MAX_HEAD_BYTES - before) };
                let is_whole = self.is_last && added == self.fragment_left;
                let found = if before == 0 {
                    sink.head(now, is_whole)
                } else {
                    self.head.extend_from_slice(&now[..added]);
                    sink.head(&self.head, is_whole)
                };
                match found {
                    Ok(Take::Nothing) => {
                        self.head.clear();
                        self.state = State::Rest;
                        Ok(added)
                    }
                    Ok(Take::Data { head_bytes, data_bytes }) => {
                        self.head.clear();
                        self.state = State::Data(data_bytes);
                        self.advance_data(0, sink);
                        // A head that ended in bytes seen before would have been found then.
                        let used = head_bytes.checked_sub(before).filter(|used| (1..=added).contains(used));
                        used.ok_or(Fault::Wrong("a reply whose head ends nowhere"))
                    }
                    Err(Fault::Short) if is_whole => Err(Fault::Wrong("a reply that ends too early")),
                    Err(Fault::Short) if before + added >= MAX_HEAD_BYTES => {
                        Err(Fault::Wrong("a reply with too long a head"))
                    }
                    Err(Fault::Short) => {
                        if before == 0 {
                            self.head.extend_from_slice(now);
                        }
                        Ok(added)
                    }
                    Err(fault) => Err(fault),
                }
            }
        }
    }

    fn advance_data(&mut self, bytes: usize, sink: &mut impl Sink) {
        let State::Data(left) = self.state else { return };
        let left = left - (bytes as u32).min(left);
        self.state = if left == 0 { State::Rest } else { State::Data(left) };
        if left == 0 {
            sink.data_end();
        }
    }

    fn consumed(&mut self, bytes: usize) -> Result<(), Fault> {
        self.fragment_left -= bytes;
        if self.fragment_left > 0 || !self.is_last {
            return Ok(());
        }
        let ended = std::mem::replace(&mut self.state, State::Head);
        self.room = self.record_max;
        match ended {
            State::Rest => Ok(()),
            State::Data(_) | State::Head => Err(Fault::Wrong("a record that ends within its data")),
        }
    }
}
