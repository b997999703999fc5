//! Files are opened, closed, removed and renamed.

use super::super::answers::{Created, FileHandle, StateId};
use super::super::xdr::{Fault, put_bytes, put_u32, put_u64};
use super::attributes::{OF_A_FILE, attribute, file_attributes};
use super::compound::{Compound, Op, Problem, Results, put_state, read_state};

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
        _ => return Err(Fault::Wrong("a delegation that nobody asked for").into()),
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
