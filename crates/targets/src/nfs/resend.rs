//! Writes that a server lost are sent to it again: by calls that block, since that is rare, while nobody else writes to the file.
//!
//! What reaches the server late must not overwrite what is sent here. Nothing else is on its way: whoever calls this has waited for all
//! writes to the file. A write of this file itself that has no answer is sent once more only if the server has begun another life since:
//! requests of an earlier life went with it.

use super::error::NfsError;
use super::open_file::OpenFile;
use super::ways::{Pauses, is_of_path};
use super::wire::Stable;

/// Sends all again that the file keeps. For whoever holds its writes.
pub(super) fn send_again(file: &OpenFile) -> Result<(), NfsError> {
    let mut life = file.writes.last_verifier();
    while file.writes.may_begin_round() {
        let (count, pieces) = file.writes.latest(file.mount.cold_bytes() as usize);
        let (mut is_one_life, mut bytes) = (true, 0);
        for piece in &pieces {
            is_one_life = is_one_life && write(file, piece.offset, &piece.data, &mut life)?;
            bytes += piece.data.len() as u64;
        }
        if let Some(verifier) = life.filter(|_| is_one_life) {
            file.writes.taken_again(verifier);
            file.mount.resent().add(count, bytes);
            return Ok(());
        }
    }
    let why = "it restarted again each time before a COMMIT, or its paths lead to different servers";
    Err(NfsError::LostWrites { name: file.path.clone(), why })
}

/// Writes one piece. False where the server turns out to be in another life than `life`, which that becomes.
fn write(file: &OpenFile, mut offset: u64, mut data: &[u8], life: &mut Option<u64>) -> Result<bool, NfsError> {
    while !data.is_empty() {
        let most = data.len().min(file.mount.cold_bytes() as usize);
        let done = match patiently(file, || file.write_once(Stable::Unstable, offset, &data[..most])) {
            Ok(done) => done,
            Err(error @ NfsError::WriteUnanswered { .. }) => {
                let now = patiently(file, || file.commit_once())?.verifier;
                let restarted = life.replace(now).is_some_and(|life| life != now);
                return if restarted { Ok(false) } else { Err(error) };
            }
            Err(error) => return Err(error),
        };
        if life.replace(done.verifier).is_some_and(|life| life != done.verifier) {
            return Ok(false);
        }
        let bytes = done.bytes as usize;
        (offset, data) = (offset + bytes as u64, &data[bytes..]);
    }
    Ok(true)
}

/// Tries until a server that restarts is there again.
fn patiently<T>(file: &OpenFile, mut ask: impl FnMut() -> Result<T, NfsError>) -> Result<T, NfsError> {
    let mut pauses = Pauses::begin();
    loop {
        match ask() {
            Err(error) if is_of_path(&error) && pauses.rest(file.mount.limits().give_up) => {}
            answer => return answer,
        }
    }
}
