//! READ, WRITE and COMMIT.

use super::super::answers::{CommitDone, Committed, FileHandle, ReadHead, Stable, StateId, WriteDone};
use super::super::xdr::{Fault, put_u32, put_u64};
use super::compound::{Compound, Op, Problem, Results, put_state};

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
