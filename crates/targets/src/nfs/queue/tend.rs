//! Connections are looked after: those that are silent, those that are to be made again, and what the kernel counts.

use super::calls::{NONE, What};
use super::connection::Life;
use super::links::{Group, Links};
use crate::nfs::error::NfsError;
use measure::ChannelCounter;

/// How often that is, at least.
const TICK_NS: u64 = 250_000_000;

impl Links {
    /// Looks after all of them. Returns when to do it again.
    pub(super) fn tend(&mut self) -> u64 {
        let now_ns = self.now_ns;
        let shortest = self.groups.iter().map(|group| group.mount.limits().silent.as_nanos() as u64 / 4).min();
        for group in 0..self.groups.len() {
            let limits = self.groups[group].mount.limits();
            let (silent_ns, connect_ns) = (limits.silent.as_nanos() as u64, limits.connect.as_nanos() as u64);
            for number in self.groups[group].connections.clone() {
                match self.connections[number].life {
                    Life::Up => {
                        self.connections[number].count_tcp();
                        self.groups[group].up_ns = now_ns;
                        let quiet_ns = now_ns.saturating_sub(self.connections[number].heard_ns);
                        if self.loads[number].calls > 0 && quiet_ns > silent_ns {
                            self.silent(group, number);
                        }
                    }
                    Life::Silent => {}
                    Life::Connecting { until_ns } if now_ns >= until_ns => {
                        self.lose(number, "no connection was made in time".to_owned());
                    }
                    Life::Connecting { .. } => {}
                    Life::Down { retry_ns } if now_ns >= retry_ns => {
                        let begun = self.connections[number].begin_again(now_ns + connect_ns);
                        let watched = begun
                            .map_err(|error| error.to_string())
                            .and_then(|()| self.watch(number).map_err(|error| error.to_string()));
                        if let Err(why) = watched {
                            self.lose(number, why);
                        }
                    }
                    Life::Down { .. } => {}
                }
            }
            self.count_resent(group);
            self.stay(group);
            self.give_up(group, limits.give_up.as_nanos() as u64);
        }
        now_ns + shortest.unwrap_or(TICK_NS).clamp(1_000_000, TICK_NS)
    }

    /// Has the server remember this client, where nothing else was sent for long.
    fn stay(&mut self, group: usize) {
        let Group { mount, sent_ns, .. } = &mut self.groups[group];
        let Some(lease) = mount.lease() else { return };
        let file = (0..).zip(&self.work.files).find(|(_, file)| file.group == group);
        if let Some((file, _)) = file.filter(|_| self.now_ns.saturating_sub(*sent_ns) > lease.as_nanos() as u64 / 3) {
            *sent_ns = self.now_ns;
            let renew = self.work.calls.add(What::Renew, NONE, file, 0, 0, 0);
            self.work.again.push((0, renew));
        }
    }

    /// Counts what was sent again after a restart, whoever sent it.
    fn count_resent(&mut self, group: usize) {
        let (writes, bytes) = self.groups[group].mount.resent().take();
        if let Some(connection) = self.connections[self.groups[group].connections.clone()].first_mut() {
            connection.writer.count(ChannelCounter::ResentWrites, writes);
            connection.writer.count(ChannelCounter::ResentBytes, bytes);
        }
    }

    /// A connection owes answers and has been silent: reads go elsewhere, if there is anywhere.
    fn silent(&mut self, group: usize, number: usize) {
        let is_other = |other: usize| other != number && self.loads[other].is_usable;
        if !self.groups[group].connections.clone().any(is_other) {
            return;
        }
        let why = "it was silent".to_owned();
        if self.groups[group].mount.lease().is_some() {
            // Nothing is sent again in a session before the connection is given up.
            return self.lose(number, why);
        }
        self.take_back(number, &why);
        if self.loads[number].calls == 0 {
            self.lose(number, why);
        } else {
            // Writes may still be answered. Until then nothing new goes there.
            self.loads[number].is_usable = false;
            self.connections[number].life = Life::Silent;
        }
    }

    /// Ends the run where nothing has answered for long.
    fn give_up(&mut self, group: usize, give_up_ns: u64) {
        let now_ns = self.now_ns;
        let Group { connections, up_ns, .. } = &self.groups[group];
        let is_old = |owed_ns: u64| now_ns.saturating_sub(owed_ns) > give_up_ns;
        let of_group = |file: u32| self.work.files[file as usize].group == group;
        // Whoever goes from one silent connection to the next, or is cut off again and again, has no answer either.
        let old = self.work.calls.owed().find(|(call, owed_ns)| is_old(*owed_ns) && of_group(call.file));
        let error = if let Some((call, owed_ns)) = old {
            let last = connections.end - 1;
            let number = Some(call.connection as usize).filter(|number| connections.contains(number)).unwrap_or(last);
            let path = self.connections[number].route.to;
            let silent = NfsError::Silent { path, call: call.what.name(), waited_ns: now_ns - owed_ns };
            match call.what {
                What::Write => NfsError::WriteUnanswered { path, why: silent.to_string() },
                _ => silent,
            }
        } else if now_ns.saturating_sub(*up_ns) > give_up_ns {
            let last = &self.connections[connections.end - 1];
            let why = last.why.clone().unwrap_or_else(|| "it was silent".to_owned());
            NfsError::NoPath { path: last.route.to, why }
        } else {
            return;
        };
        self.work.fail(error);
    }
}
