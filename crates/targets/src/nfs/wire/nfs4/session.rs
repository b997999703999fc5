//! Clients, their sessions, and the slots of these.

use super::super::xdr::{Fault, put_bytes, put_u32, put_u64};
use super::compound::{Compound, Op, Problem, Results};

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
