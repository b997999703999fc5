//! How calls and replies of load look in either version.

use super::calls::{Call, What};
use super::memory::Memory;
use crate::nfs::wire::nfs4::{self, COMPOUND, Compound, NFS4, Problem, Results, Slot};
use crate::nfs::wire::{
    CommitDone, Credential, Fault, NFS3, Procedure, ReadHead, Reader, StateId, Status, WriteDone, begin_call, end_call,
    nfs3,
};
use crate::nfs::{OpenFile, stable};
use model::config::nfs::NfsVersion;

/// Which form, and in which slot.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    pub(super) version: NfsVersion,
    /// Of version 4.1, for calls that are in a session.
    pub(super) slot: Option<Slot>,
}

/// Writes a call.
#[inline]
pub(super) fn put(
    out: &mut Vec<u8>,
    (xid, credential, form): (u32, &Credential, Form),
    call: &Call,
    (file, state): (&OpenFile, StateId),
    memory: &Memory,
) {
    let stable = stable(file.durability);
    let put_data = |to: &mut Vec<u8>| {
        memory.show(call.arena_offset, call.bytes, |data| to.extend_from_slice(data));
        to.extend_from_slice(&[0; 3][..call.bytes.wrapping_neg() as usize & 3]);
    };
    let procedure = match (call.what, form.version) {
        (What::Null | What::Probe, _) => Procedure::Null as u32,
        (_, NfsVersion::V41) => COMPOUND,
        (What::Read, NfsVersion::V3) => Procedure::Read as u32,
        (What::Write, NfsVersion::V3) => Procedure::Write as u32,
        // There is no client to be remembered, so nothing is renewed.
        (What::Commit | What::Renew, NfsVersion::V3) => Procedure::Commit as u32,
    };
    let program = match form.version {
        NfsVersion::V3 => NFS3,
        NfsVersion::V41 => NFS4,
    };
    let begin = begin_call(out, xid, program, procedure, credential);
    match (call.what, form.slot) {
        (What::Null | What::Probe, _) => {}
        (What::Read, None) => nfs3::put_read(out, &file.handle, call.offset, call.bytes),
        (What::Write, None) => {
            nfs3::put_write_head(out, &file.handle, call.offset, call.bytes, stable);
            put_data(out);
        }
        (What::Commit | What::Renew, None) => nfs3::put_commit(out, &file.handle),
        (what, Some(slot)) => {
            let mut compound = Compound::begin(out);
            let of_file = (&file.handle, state);
            nfs4::put_sequence(&mut compound, &slot, matches!(what, What::Write | What::Commit));
            match what {
                What::Read => nfs4::put_read(&mut compound, of_file, call.offset, call.bytes),
                What::Write => {
                    put_data(nfs4::put_write_head(&mut compound, of_file, call.offset, call.bytes, stable));
                }
                What::Commit => nfs4::put_commit(&mut compound, &file.handle),
                What::Renew | What::Null | What::Probe => {}
            }
        }
    }
    end_call(out, begin);
}

/// What a reply says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// Data follow.
    Read(ReadHead),
    Wrote(WriteDone),
    Synced(CommitDone),
    Nothing,
    /// The server refused what was asked.
    Refused(Status),
    /// The server did not look at it, for a reason of its session or slot.
    NotInSession(Status),
}

/// Reads a reply behind its head; data follow in `reader`.
#[inline]
pub(super) fn hear(what: What, slot: Option<&Slot>, reader: &mut Reader<'_>) -> Result<Heard, Fault> {
    let Some(slot) = slot else {
        return Ok(match what {
            What::Read => nfs3::read_head(reader)?.map_or_else(Heard::Refused, Heard::Read),
            What::Write => nfs3::write_done(*reader)?.map_or_else(Heard::Refused, Heard::Wrote),
            What::Commit => nfs3::commit_done(*reader)?.map_or_else(Heard::Refused, Heard::Synced),
            What::Null | What::Probe | What::Renew => Heard::Nothing,
        });
    };
    let begun = Results::begin(*reader).and_then(|mut results| nfs4::sequenced(&mut results, slot).map(|()| results));
    let mut results = match begun {
        Ok(results) => results,
        Err(Problem::Refused(status)) => return Ok(Heard::NotInSession(status)),
        Err(Problem::Fault(fault)) => return Err(fault),
    };
    let heard = match what {
        What::Read => nfs4::read_head(&mut results).map(Heard::Read),
        What::Write => nfs4::write_done(&mut results).map(Heard::Wrote),
        What::Commit => nfs4::commit_done(&mut results).map(Heard::Synced),
        What::Null | What::Probe | What::Renew => Ok(Heard::Nothing),
    };
    *reader = results.rest();
    Ok(nfs4::told(heard)?.unwrap_or_else(Heard::Refused))
}
