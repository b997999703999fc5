//! What a server that restarts takes with it: answers that are owed, and writes that were not durable.
//!
//! Requests of an earlier life of a server cannot be done any more, since it lost them with its connections. So a write without an answer
//! is sent again where a COMMIT that was sent afterwards shows another verifier than the connection had, and nowhere else. Writes that
//! were answered and lost are sent again by [`send_again`], once no other is in flight.

use super::calls::{Call, Doubt, NONE, What};
use super::links::Links;
use super::replies::{QueueFile, Work};
use crate::measure::monotonic_ns;
use crate::targets::nfs::error::{NfsError, OTHERS_WRITE};
use crate::targets::nfs::resend::send_again;

impl Work {
    /// Whether a file can be read: not while the server may have lost what was written to it.
    pub(super) fn may_read(&mut self, file: u32) -> bool {
        let QueueFile { file: open, lost_ns, .. } = &self.files[file as usize];
        let is_sound = open.writes.is_sound(open.mount.made());
        if !is_sound && lost_ns.is_none() && !open.writes.is_held() {
            self.ask(file, false);
        }
        is_sound
    }

    /// Whether a call that is to be sent again can be.
    pub(super) fn may_go_again(&mut self, call: u32) -> bool {
        let Call { what, file, waits, .. } = *self.calls.get(call);
        match what {
            What::Read => self.may_read(file),
            What::Commit => !waits || !self.files[file as usize].file.writes.is_held(),
            What::Write | What::Null | What::Probe => true,
        }
    }

    /// A COMMIT that was sent as number `order` was answered in the life that `verifier` names: writes without an answer from an
    /// earlier life are sent again, others end the run.
    pub(super) fn resolve(&mut self, file: u32, order: u64, verifier: u64) {
        let mut at = 0;
        while let Some(place) = self.doubtful.get(at).copied() {
            let call = self.calls.get_mut(place);
            match call.doubt.filter(|doubt| call.file == file && doubt.since < order) {
                Some(doubt) if doubt.verifier != verifier => {
                    (call.doubt, call.was_owed) = (None, true);
                    self.doubtful.swap_remove(at);
                    self.again.push((0, place));
                }
                Some(doubt) => {
                    self.unanswered = Some(doubt.connection);
                    return;
                }
                None => at += 1,
            }
        }
    }

    /// Asks the server in which life it is, where writes have no answer.
    pub(super) fn ask_of_doubts(&mut self, file: u32) {
        if self.doubtful.iter().any(|place| self.calls.get(*place).file == file) {
            self.ask(file, false);
        }
    }
}

impl Links {
    /// Whether a write to a file can be sent, which then counts as in flight.
    pub(super) fn may_write(&mut self, file: u32) -> bool {
        let open = &self.work.files[file as usize].file;
        let (kept, most) = (open.writes.kept_bytes(), open.mount.limits().kept_bytes);
        if kept >= most / 2 && open.writes.may_ask_for_room(self.now_ns) {
            self.work.ask(file, true);
        }
        let QueueFile { file: open, writer, .. } = &self.work.files[file as usize];
        kept < most && open.writes.begin(writer)
    }

    /// Whether nothing wakes this thread when it may go on.
    pub(super) fn waits_for_others(&self) -> bool {
        self.work.files.iter().any(|QueueFile { file, lost_ns, .. }| {
            lost_ns.is_some() || file.writes.is_held() || file.writes.kept_bytes() >= file.mount.limits().kept_bytes
        })
    }

    /// Keeps the writes that a lost connection has not answered, until the server says in which life it is. False where nothing is known of
    /// its life before.
    pub(super) fn doubt(&mut self, number: usize) -> bool {
        let verifier = self.connections[number].verifier.take();
        let owed: Vec<u32> = self
            .work
            .calls
            .in_flight()
            .filter(|(_, call)| call.connection == number as u32)
            .map(|(place, _)| place)
            .collect();
        for place in &owed {
            let Some(verifier) = verifier else { return false };
            self.loads[number].calls = self.loads[number].calls.saturating_sub(1);
            self.connections[number].writer.failed(self.now_ns);
            let call = self.work.calls.get_mut(*place);
            let since = self.work.files[call.file as usize].file.writes.number();
            call.doubt = Some(Doubt { verifier, since, connection: number as u32 });
            call.connection = NONE;
            let file = call.file;
            self.work.doubtful.push(*place);
            self.work.ask(file, false);
        }
        true
    }

    /// Sends again what servers have lost, of files to which nobody writes any more.
    pub(super) fn heal(&mut self) {
        if let Some(connection) = self.work.unanswered.take() {
            let connection = &self.connections[connection as usize];
            let why = connection.why.clone().unwrap_or_else(|| "the connection broke".to_owned());
            self.work.fail(NfsError::WriteUnanswered { path: connection.route.to, why });
        }
        for number in 0..self.work.files.len() {
            let of = &mut self.work.files[number];
            let Some(lost_ns) = of.lost_ns else { continue };
            let (file, writes) = (&of.file, &of.file.writes);
            of.is_held = of.is_held || writes.hold();
            if !of.is_held {
                // Another thread does it; COMMITs wait for that.
                of.lost_ns = None;
                continue;
            }
            let done = if writes.is_quiet() {
                send_again(file)
            } else if self.now_ns.saturating_sub(lost_ns) > file.mount.limits().give_up.as_nanos() as u64 {
                Err(NfsError::LostWrites { name: file.path.clone(), why: OTHERS_WRITE })
            } else {
                continue;
            };
            writes.let_go();
            (of.is_held, of.lost_ns) = (false, None);
            done.err().into_iter().for_each(|error| self.work.fail(error));
            self.now_ns = monotonic_ns();
            // Nobody listened meanwhile.
            self.connections.iter_mut().for_each(|connection| connection.heard_ns = self.now_ns);
        }
    }
}
