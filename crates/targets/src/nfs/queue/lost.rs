//! What a server that restarts takes with it: answers that are owed, and writes that were not durable.
//!
//! Requests of an earlier life of a server cannot be done any more, since it lost them with its connections. So a write without an answer
//! is sent again where a COMMIT that was sent afterwards shows another verifier than the connection had, and nowhere else. Writes that
//! were answered and lost are sent again by [`send_again`], once no other is in flight.

use super::calls::{Call, Doubt, NONE, What};
use super::links::Links;
use super::replies::{QueueFile, Work};
use super::{Backoff, Slots, Stuck};
use crate::nfs::client::MAX_SESSIONS;
use crate::nfs::ways::is_of_path;
use crate::nfs::{NfsError, OTHERS_WRITE, send_again};
use measure::monotonic_ns;

impl Work {
    /// Whether a file can be read: not while the server may have lost what was written to it.
    pub(super) fn may_read(&mut self, file: u32) -> bool {
        let QueueFile { file: open, lost_ns, .. } = &self.files[file as usize];
        let is_sound = open.writes.is_sound(open.mount.ways().made());
        if !is_sound && lost_ns.is_none() && !open.writes.is_held() {
            self.ask(file, false);
        }
        is_sound
    }

    /// Whether a call that is to be sent again can be.
    pub(super) fn may_go_again(&mut self, call: u32) -> bool {
        let Call { what, file, waits, held, .. } = *self.calls.get(call);
        match what {
            // A session does not outlive the server's life, so what is answered in one is sound.
            What::Read => held.is_some() || self.may_read(file),
            What::Commit => !waits || !self.files[file as usize].file.writes.is_held(),
            What::Write | What::Null | What::Probe | What::Renew => true,
        }
    }

    /// A write has no answer: whether it was done is found out by a COMMIT.
    pub(super) fn doubt(&mut self, place: u32, verifier: u64, connection: u32) {
        let call = self.calls.get_mut(place);
        let since = self.files[call.file as usize].file.writes.number();
        (call.connection, call.doubt) = (NONE, Some(Doubt { verifier, since, connection }));
        let file = call.file;
        self.doubtful.push(place);
        self.ask(file, false);
    }

    /// The session in which a call was sent is no more. Whether a write was done in it is not known where that `may_be`.
    pub(super) fn leave_session(&mut self, place: u32, may_be: bool) {
        let call = self.calls.get_mut(place);
        let Some(held) = call.held.take() else { return };
        (call.connection, call.was_owed) = (NONE, true);
        if call.what != What::Write || !may_be {
            self.again.push((0, place));
            return;
        }
        let verifier = self.sessions[held.session as usize].as_ref().and_then(|slots| slots.verifier_of(held));
        match verifier {
            Some(verifier) => self.doubt(place, verifier, held.session),
            None => self.fail_of(held.session),
        }
    }

    /// A write over this connection is lost to us.
    fn fail_of(&mut self, connection: u32) {
        (self.unanswered, self.is_hurt) = (Some(connection), true);
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
                    return self.fail_of(doubt.connection);
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

    /// Makes sessions anew that servers do not know any more, and opens files again.
    fn renew(&mut self) {
        if self.stuck.as_ref().is_some_and(|stuck| self.now_ns < stuck.retry_ns) {
            self.work.is_hurt = true;
            return;
        }
        for number in 0..self.work.sessions.len() {
            let Some(slots) = &self.work.sessions[number] else { continue };
            let Some((group, status)) = self.group_of(number).zip(slots.lost) else { continue };
            let mount = &self.groups[group].mount;
            if slots.useless >= MAX_SESSIONS {
                let (server, sessions) = (mount.ways().server.clone(), slots.useless);
                return self.work.fail(NfsError::NoSession { server, call: "a call of the load", sessions, status });
            }
            let session = match mount.open_session() {
                Ok(session) => session.map(|session| Slots::new(&session, Some(slots))),
                Err(error) => return self.stuck(group, error),
            };
            self.left.push((group, *slots.id()));
            self.work.sessions[number] = session;
            let of_session = |call: &Call| call.held.is_some_and(|held| held.session == number as u32);
            let (left, again): (Vec<_>, Vec<_>) =
                self.work.again.iter().copied().partition(|(_, place)| of_session(self.work.calls.get(*place)));
            self.work.again = again;
            left.into_iter().for_each(|(_, place)| {
                let may_be = self.work.calls.get(place).sends > 0;
                self.work.leave_session(place, may_be);
            });
            self.listen_anew();
            self.work.files.iter_mut().filter(|of| of.group == group).for_each(|of| of.state = of.file.state());
        }
        for number in 0..self.work.files.len() {
            let of = &mut self.work.files[number];
            if of.has_lost_state {
                let (opened, group) = (of.file.open_again(of.state), of.group);
                (of.state, of.has_lost_state) = (of.file.state(), opened.is_err());
                self.listen_anew();
                if let Err(error) = opened {
                    return self.stuck(group, error);
                }
            }
        }
        self.stuck = None;
    }

    /// What servers have forgotten is not made good. Where no way leads to one just now, that is tried for as long as any call is.
    fn stuck(&mut self, group: usize, error: NfsError) {
        self.listen_anew();
        let give_up_ns = self.groups[group].mount.limits().give_up.as_nanos() as u64;
        let now_ns = self.now_ns;
        let new = || Stuck { since_ns: now_ns, retry_ns: now_ns, backoff: Backoff::default() };
        let stuck = self.stuck.get_or_insert_with(new);
        if is_of_path(&error) && now_ns.saturating_sub(stuck.since_ns) < give_up_ns {
            stuck.retry_ns = stuck.backoff.retry_ns(now_ns).min(stuck.since_ns + give_up_ns);
            self.work.is_hurt = true;
        } else {
            self.work.fail(error);
        }
    }

    /// After calls that block: nobody listened to connections meanwhile.
    fn listen_anew(&mut self) {
        self.now_ns = monotonic_ns();
        self.connections.iter_mut().for_each(|connection| connection.heard_ns = self.now_ns);
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
            self.work.doubt(*place, verifier, number as u32);
        }
        true
    }

    /// Makes good what went with servers: sessions, open files, and writes that were lost, of files to which nobody writes any more.
    pub(super) fn heal(&mut self) {
        if !std::mem::take(&mut self.work.is_hurt) {
            return;
        }
        self.renew();
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
                self.work.is_hurt = true;
                continue;
            };
            writes.let_go();
            (of.is_held, of.lost_ns) = (false, None);
            done.err().into_iter().for_each(|error| self.work.fail(error));
            self.listen_anew();
        }
    }
}
