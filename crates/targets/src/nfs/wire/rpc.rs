//! Remote procedure calls over TCP: heads of calls and replies, and who we say that we are.

use std::fmt;

use super::xdr::{Fault, Reader, put_bytes, put_u32};

const RPC_VERSION: u32 = 2;
const CALL: u32 = 0;
const REPLY: u32 = 1;
const AUTH_NONE: u32 = 0;
const AUTH_SYS: u32 = 1;
/// Bytes of a credential or verifier at most (RFC 5531, 8.2).
const MAX_AUTH_BYTES: usize = 400;
/// Groups that AUTH_SYS carries at most, and bytes of a machine's name (RFC 5531, appendix A).
const MAX_GROUPS: usize = 16;
const MAX_MACHINE_BYTES: usize = 255;
/// A fragment's mark has this bit where it is the last of its record.
pub(super) const LAST_FRAGMENT: u32 = 1 << 31;

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
        put_u32(&mut credential, AUTH_SYS);
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
        return Err(Fault::Wrong("a message that is no reply"));
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
