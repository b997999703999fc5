//! Calls of version 3, and of the mount service.

use super::State;
use super::faults::{Fate, Faults, Kind};
use super::service::{Answer, Service, file_of, name, put_handle, put_longs, put_words};
use super::store::{EXPORT, Files};
use crate::nfs::wire::{Fault, Reader, put_bytes, put_u32};

const ROOT: &[u8] = b"root of /export";

/// MNT.
pub fn mount(reader: &mut Reader<'_>, reply: &mut Vec<u8>) -> Result<(), Fault> {
    put_u32(reply, 0);
    match reader.bytes(1024)? {
        b"/export" => {
            put_bytes(reply, ROOT);
            put_words(reply, &[2, 6, 1]);
        }
        _ => {
            reply.truncate(24);
            put_u32(reply, 13);
        }
    }
    Ok(())
}

/// `None` ends the connection.
pub fn answer(
    service: &Service,
    state: &mut State,
    procedure: u32,
    reader: &mut Reader<'_>,
) -> Result<Option<Answer>, Fault> {
    let kind = match procedure {
        6 => Kind::Read,
        7 => Kind::Write,
        8 => Kind::Open,
        21 => Kind::Commit,
        _ => Kind::Other,
    };
    *state.calls.entry(procedure).or_default() += 1;
    if service.fate(state, kind) == Fate::HangUp {
        return Ok(None);
    }
    let faults = service.faults_now();
    let mut body = Vec::new();
    if faults.not_ready > 0 {
        service.with_faults(|faults| faults.not_ready = faults.not_ready.saturating_sub(1));
        put_words(&mut body, &[10008, 0]);
    } else {
        done(&mut state.files, procedure, reader, &mut body, &faults)?;
    }
    Ok(Some(Answer { body, kind, is_refused: false }))
}

fn put_attributes(files: &Files, file: u64, reply: &mut Vec<u8>) {
    let (size, kind) = (files.size(file), if file == EXPORT { 2 } else { 1 });
    put_words(reply, &[kind, 0o640, 1, 0, 0]);
    put_longs(reply, &[size, size, 0, 99, file, 0, 0, 0]);
}

fn done(
    files: &mut Files,
    procedure: u32,
    reader: &mut Reader<'_>,
    reply: &mut Vec<u8>,
    faults: &Faults,
) -> Result<(), Fault> {
    let handle = reader.bytes(64)?;
    let file = if handle == ROOT { EXPORT } else { file_of(handle)? };
    let refused = |reply: &mut Vec<u8>, status: u32| put_words(reply, &[status, 0, 0]);
    match procedure {
        // GETATTR, LOOKUP, READ, WRITE, CREATE, REMOVE, RENAME, FSSTAT, FSINFO, COMMIT.
        1 => {
            put_u32(reply, 0);
            put_attributes(files, file, reply);
        }
        3 => match files.find(&name(reader)?) {
            Some(found) => {
                put_u32(reply, 0);
                put_handle(reply, found);
                put_words(reply, &[0, 0]);
            }
            None => refused(reply, 2),
        },
        6 | 7 if faults.status > 0 => refused(reply, faults.status),
        6 => {
            let (data, is_end) = files.read(file, reader.u64()?, reader.u32()?.min(faults.moves_bytes));
            put_words(reply, &[0, 1]);
            put_attributes(files, file, reply);
            put_words(reply, &[data.len() as u32, u32::from(is_end)]);
            put_bytes(reply, &data);
        }
        7 => {
            let (offset, bytes, stable) = (reader.u64()?, reader.u32()?, reader.u32()?);
            let data = &reader.bytes(1 << 20)?[..bytes.min(faults.moves_bytes) as usize];
            files.write(file, offset, data, stable != 0);
            let committed = if faults.never_durable { 0 } else { stable };
            put_words(reply, &[0, 0, 0, data.len() as u32, committed]);
            put_longs(reply, &[files.verifier]);
        }
        8 => {
            let name = name(reader)?;
            assert_eq!(reader.u32()?, 1, "not GUARDED");
            let Some(made) = files.create(&name) else {
                refused(reply, 17);
                return Ok(());
            };
            put_u32(reply, 0);
            if faults.says_little {
                put_words(reply, &[0, 0, 0, 0]);
                return Ok(());
            }
            put_u32(reply, 1);
            put_handle(reply, made);
            put_u32(reply, 1);
            put_attributes(files, made, reply);
            put_words(reply, &[0, 0]);
        }
        12 => refused(reply, if files.remove(&name(reader)?).is_some() { 0 } else { 2 }),
        14 => {
            let from = name(reader)?;
            reader.bytes(64)?;
            match files.remove(&from) {
                Some(file) => {
                    files.name(&name(reader)?, file);
                    put_words(reply, &[0, 0, 0, 0, 0]);
                }
                None => refused(reply, 2),
            }
        }
        18 => {
            put_words(reply, &[0, 0]);
            put_longs(reply, &[1 << 40, 1 << 39, 1 << 38, 0, 0, 0]);
        }
        19 => {
            let most = faults.most_bytes;
            put_words(reply, &[0, 0, most, most, 512, most, most, 512, 4096]);
            put_longs(reply, &[u64::MAX]);
        }
        21 => {
            files.commit(file);
            put_words(reply, &[0, 0, 0]);
            put_longs(reply, &[files.verifier]);
        }
        _ => panic!("a procedure that is not used: {procedure}"),
    }
    Ok(())
}
