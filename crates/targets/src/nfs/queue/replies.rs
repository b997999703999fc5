//! What replies mean for calls and requests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::calls::{Call, Calls, NONE, Requests, What};
use super::form::{Heard, hear};
use super::memory::Memory;
use super::{ReadInProgress, Slots};
use crate::io::{Completion, Durability};
use crate::nfs::unstable::{Outcome, Writer};
use crate::nfs::ways::{FIRST_PAUSE, MAX_NOT_READY, MAX_PAUSE, patience};
use crate::nfs::wire::{CommitDone, Committed, Fault, Reader, Sink, StateId, Status, Take, WriteDone, reply_head};
use crate::nfs::{NfsError, OpenFile};
use measure::{ChannelWork, ChannelWriter};

/// A file of the queue.
pub(super) struct QueueFile {
    pub(super) file: Arc<OpenFile>,
    /// Its open state.
    pub(super) state: StateId,
    /// The server does not know this state any more.
    pub(super) has_lost_state: bool,
    /// What this queue writes to it.
    pub(super) writer: Arc<Writer>,
    /// Which group of connections leads to it.
    pub(super) group: usize,
    /// Whether a COMMIT that nobody asked this queue for has no answer.
    pub(super) is_asked: bool,
    /// Since when it is known that the server has lost writes that are still to be sent again.
    pub(super) lost_ns: Option<u64>,
    /// Whether nobody may write because of this queue.
    pub(super) is_held: bool,
}

impl QueueFile {
    pub(super) fn new(file: Arc<OpenFile>, group: usize) -> Self {
        Self {
            state: file.state(),
            has_lost_state: false,
            writer: file.writes.open(),
            file,
            group,
            is_asked: false,
            lost_ns: None,
            is_held: false,
        }
    }
}

impl Drop for QueueFile {
    fn drop(&mut self) {
        self.writer.go();
        if self.is_held {
            self.file.writes.let_go();
        }
    }
}

/// What all connections of a queue share.
pub(super) struct Work {
    pub(super) files: Vec<QueueFile>,
    pub(super) memory: Memory,
    pub(super) calls: Calls,
    pub(super) requests: Requests,
    pub(super) finished: Vec<Completion>,
    /// Calls to be sent again, with when that may be.
    pub(super) again: Vec<(u64, u32)>,
    /// The session of each connection, where the version has them.
    pub(super) sessions: Vec<Option<Slots>>,
    /// Writes whose connection broke.
    pub(super) doubtful: Vec<u32>,
    /// The connection of a write that has no answer and cannot be sent again.
    pub(super) unanswered: Option<u32>,
    /// Whether something of these, or of files, is to be made good.
    pub(super) is_hurt: bool,
    /// Why nothing can be sent any more.
    pub(super) failed: Option<NfsError>,
}

impl Work {
    /// The first failure counts.
    pub(super) fn fail(&mut self, error: NfsError) {
        self.failed.get_or_insert(error);
    }

    /// Asks the server whether it has all that is kept of a file, by a COMMIT of this queue's own.
    pub(super) fn ask(&mut self, file: u32, is_for_room: bool) {
        if !std::mem::replace(&mut self.files[file as usize].is_asked, true) {
            let commit = self.calls.add(What::Commit, NONE, file, 0, 0, 0);
            self.calls.get_mut(commit).is_for_room = is_for_room;
            self.again.push((0, commit));
        }
    }

    /// A part of a request has ended.
    fn end_part(&mut self, call: u32) {
        let Call { request, what, file, .. } = *self.calls.get(call);
        match (what, &mut self.files[file as usize]) {
            (What::Write, of) => of.writer.end(),
            (What::Commit, of) if request == NONE => {
                of.is_asked = false;
                of.file.writes.was_asked_for_room();
            }
            _ => {}
        }
        self.calls.end(call);
        if request != NONE
            && let Some(completion) = self.requests.part_ended(request)
        {
            self.finished.push(completion);
        }
    }

    /// So much of a call was done; the rest is asked for again, unless the file ends there.
    fn moved(&mut self, place: u32, bytes: u32, is_end: bool) {
        let call = self.calls.get_mut(place);
        if bytes < call.bytes && !is_end {
            call.offset += u64::from(bytes);
            call.arena_offset += u64::from(bytes);
            call.bytes -= bytes;
            call.connection = NONE;
            self.again.push((0, place));
            return;
        }
        if bytes < call.bytes {
            let pending = self.requests.get_mut(call.request);
            let end = call.offset + u64::from(bytes) - pending.request.file_offset;
            pending.moved_bytes = pending.moved_bytes.min(end as u32);
        }
        self.end_part(place);
    }

    /// A call is sent again after a pause, unless that goes on for longer than `patience`.
    fn wait_for(&mut self, place: u32, patience: Duration, now_ns: u64) -> bool {
        let call = self.calls.get_mut(place);
        let is_patient = || now_ns.saturating_sub(call.not_ready_ns.unwrap_or(now_ns)) < patience.as_nanos() as u64;
        if patience.is_zero() || !is_patient() {
            return false;
        }
        call.not_ready_ns.get_or_insert(now_ns);
        let pause_ns = call.pause_ns.clamp(FIRST_PAUSE.as_nanos() as u64, MAX_PAUSE.as_nanos() as u64);
        (call.connection, call.pause_ns) = (NONE, pause_ns * 2);
        self.again.push((now_ns + pause_ns, place));
        true
    }

    fn refused(&mut self, place: u32, status: Status, now_ns: u64) {
        let call = self.calls.get_mut(place);
        let has_lost_state = status.is_of_state();
        self.files[call.file as usize].has_lost_state |= has_lost_state;
        self.is_hurt |= has_lost_state;
        // The file is opened again meanwhile.
        let patience = if has_lost_state { MAX_NOT_READY } else { patience(status) };
        if self.wait_for(place, patience, now_ns) {
            return;
        }
        let call = self.calls.get_mut(place);
        if call.request == NONE {
            // Nobody else would learn that the server does not say what it has.
            let name = self.files[call.file as usize].file.path.clone();
            let call = call.what.name();
            self.fail(NfsError::Refused { call, name, status });
        } else {
            let pending = self.requests.get_mut(call.request);
            pending.errno = if pending.errno == 0 { status.errno() } else { pending.errno };
        }
        self.end_part(place);
    }
}

/// How long a server may not be ready for a slot. What was sent in it before may be what it is busy with: that long is waited for an
/// answer too.
fn slot_patience(sends: u32, give_up: Duration) -> Duration {
    if sends > 1 { give_up.max(MAX_NOT_READY) } else { MAX_NOT_READY }
}

/// The replies of one connection, as they come.
pub(super) struct Replies<'a> {
    pub(super) work: &'a mut Work,
    pub(super) writer: &'a mut ChannelWriter,
    pub(super) reading: &'a mut Option<ReadInProgress>,
    /// The server's last verifier on the connection.
    pub(super) verifier: &'a mut Option<u64>,
    /// Calls in flight on the connection.
    pub(super) load: &'a mut u32,
    pub(super) connection: u32,
    pub(super) path: SocketAddr,
    pub(super) now_ns: u64,
}

impl Replies<'_> {
    /// The call is not in flight any more: `bytes` were moved, or it failed.
    fn answered(&mut self, place: u32, moved: Option<u32>) {
        *self.load = self.load.saturating_sub(1);
        let Call { what, sent_ns, owed_ns, .. } = self.work.calls.get_mut(place);
        *owed_ns = None;
        let service_ns = self.now_ns.saturating_sub(*sent_ns);
        let work = match what {
            What::Read => ChannelWork::Read,
            What::Write => ChannelWork::Write,
            What::Null | What::Probe => ChannelWork::Nothing,
            What::Commit | What::Renew => {
                return if moved.is_some() { self.writer.ended(self.now_ns) } else { self.writer.failed(self.now_ns) };
            }
        };
        match moved {
            Some(bytes) => self.writer.finished(work, bytes.into(), service_ns, self.now_ns),
            None => self.writer.failed(self.now_ns),
        }
    }

    fn wrote(&mut self, place: u32, done: WriteDone) -> Result<(), Fault> {
        let call = self.work.calls.get(place);
        if done.bytes == 0 || done.bytes > call.bytes {
            return Err(Fault::Wrong("a WRITE of more than was sent, or of nothing"));
        }
        let number = call.file;
        let QueueFile { file, writer, .. } = &self.work.files[number as usize];
        *self.verifier = Some(done.verifier);
        let is_durable = done.committed == Committed::Data;
        if file.durability == Durability::EachWrite {
            if !is_durable {
                let error = NfsError::NotDurable { name: file.path.clone() };
                self.work.fail(error);
            }
        } else if !is_durable || file.writes.kept_bytes() > 0 {
            // What is durable is kept too where older writes that are not might be sent again over it.
            let keep = |data: &[u8]| file.writes.keep(writer, (call.order, call.offset), data, done.verifier);
            if !self.work.memory.show(call.arena_offset, done.bytes, keep) {
                self.work.ask(number, false);
            }
        }
        self.answered(place, Some(done.bytes));
        self.work.moved(place, done.bytes, false);
        Ok(())
    }

    fn synced(&mut self, place: u32, done: CommitDone) {
        *self.verifier = Some(done.verifier);
        self.answered(place, Some(0));
        let Call { file: number, order, made, request, .. } = *self.work.calls.get(place);
        self.work.resolve(number, order, done.verifier);
        let outcome = self.work.files[number as usize].file.writes.committed(order, made, done.verifier);
        if outcome == Outcome::Lost {
            self.work.files[number as usize].lost_ns.get_or_insert(self.now_ns);
            self.work.is_hurt = true;
        }
        if outcome == Outcome::Durable || request == NONE {
            self.work.end_part(place);
        } else {
            let call = self.work.calls.get_mut(place);
            (call.connection, call.waits) = (NONE, true);
            self.work.again.push((0, place));
        }
        self.work.ask_of_doubts(number);
    }

    /// The server did not look at a call, because of its session or slot.
    fn not_in_session(&mut self, place: u32, status: Status) {
        self.answered(place, None);
        let Call { sends, file, .. } = *self.work.calls.get(place);
        let give_up = self.work.files[file as usize].file.mount.limits().give_up;
        if status == Status::JUKEBOX && self.work.wait_for(place, slot_patience(sends, give_up), self.now_ns) {
            let call = self.work.calls.get_mut(place);
            // What was sent once was not done. What was sent before too may be what the server is busy with.
            call.sends = if call.sends > 1 { call.sends } else { 0 };
            return;
        }
        let Call { what, file, sends, held, .. } = *self.work.calls.get(place);
        let slots = held.and_then(|held| self.work.sessions.get_mut(held.session as usize)?.as_mut().zip(Some(held)));
        match slots {
            Some((slots, held)) if status.is_of_session() => {
                slots.lost = slots.lost.or(Some(status).filter(|_| slots.is_of(held)));
                self.work.is_hurt = true;
                // What was sent once was not done.
                self.work.leave_session(place, sends > 1);
            }
            // It was done, and brought nothing that cannot be asked for again.
            Some((slots, held)) if status == Status::RETRY_UNCACHED_REP && what != What::Write => {
                slots.give(held, None);
                let call = self.work.calls.get_mut(place);
                (call.connection, call.held) = (NONE, None);
                self.work.again.push((0, place));
            }
            _ => {
                let name = self.work.files[file as usize].file.path.clone();
                self.work.fail(NfsError::Refused { call: what.name(), name, status });
            }
        }
    }

    fn refused(&mut self, place: u32, status: Status) {
        self.answered(place, None);
        self.work.refused(place, status, self.now_ns);
    }
}

impl Sink for Replies<'_> {
    fn head(&mut self, bytes: &[u8], _is_whole: bool) -> Result<Take, Fault> {
        let mut reader = Reader::new(bytes);
        let head = reply_head(&mut reader)?;
        // What was given up, and sent elsewhere if it could be.
        let Some(place) = self.work.calls.find(head.xid, self.connection) else { return Ok(Take::Nothing) };
        let what = self.work.calls.get(place).what;
        if let Err(rejection) = head.accepted {
            self.work.fail(NfsError::Rejected { path: self.path, call: what.name(), rejection });
            return Ok(Take::Nothing);
        }
        let held = self.work.calls.get(place).held;
        let slots = held.and_then(|held| self.work.sessions.get_mut(held.session as usize)?.as_mut().zip(Some(held)));
        let slot = slots.as_ref().map(|(slots, held)| slots.slot(*held));
        let heard = hear(what, slot.as_ref(), &mut reader)?;
        if let Heard::NotInSession(status) = heard {
            self.not_in_session(place, status);
            return Ok(Take::Nothing);
        }
        // All was read, so this happens once.
        if let Some((slots, held)) = slots {
            let verifier = match heard {
                Heard::Wrote(WriteDone { verifier, .. }) | Heard::Synced(CommitDone { verifier }) => Some(verifier),
                _ => None,
            };
            slots.give(held, verifier);
            self.work.calls.get_mut(place).held = None;
        }
        match heard {
            Heard::Read(read) => {
                if read.bytes > self.work.calls.get(place).bytes || read.bytes == 0 && !read.is_end {
                    return Err(Fault::Wrong("a READ of more than requested, or of nothing"));
                }
                *self.reading = Some(ReadInProgress { call: place, done_bytes: 0, is_end: read.is_end });
                return Ok(Take::Data { head_bytes: bytes.len() - reader.rest().len(), data_bytes: read.bytes });
            }
            Heard::Wrote(done) => self.wrote(place, done)?,
            Heard::Synced(done) => self.synced(place, done),
            Heard::Refused(status) | Heard::NotInSession(status) => self.refused(place, status),
            Heard::Nothing => {
                self.answered(place, Some(0));
                self.work.end_part(place);
            }
        }
        Ok(Take::Nothing)
    }

    fn data(&mut self, bytes: &[u8]) {
        let Some(reading) = self.reading else { return };
        let call = self.work.calls.get(reading.call);
        self.work.memory.put(call.arena_offset + u64::from(reading.done_bytes), bytes);
        reading.done_bytes += bytes.len() as u32;
    }

    fn data_end(&mut self) {
        let Some(ReadInProgress { call, done_bytes, is_end }) = self.reading.take() else { return };
        self.answered(call, Some(done_bytes));
        self.work.moved(call, done_bytes, is_end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_that_a_call_was_sent_in_before_may_be_busy_for_as_long_as_an_answer_is_waited_for() {
        let [short, long] = [10, 360].map(Duration::from_secs);
        assert_eq!([1, 2].map(|sends| slot_patience(sends, long)), [MAX_NOT_READY, long]);
        assert_eq!(slot_patience(2, short), MAX_NOT_READY);
    }
}
