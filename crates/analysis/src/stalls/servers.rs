//! What database servers were seen doing while operations were slow, from looks many times a second.

use std::collections::BTreeMap;

use model::record::{Look, ServerWork, SessionState, Step};

/// A look stands for the time until the next one, and for no longer than this.
const LONGEST_NS: u64 = 150_000_000;
/// A server is silent if it takes so many times as long as usual to answer.
const SILENT_TIMES: f64 = 4.0;

/// Looks at all servers of a step.
#[derive(Debug, Default)]
pub(super) struct ServersSeen {
    /// Those at each server, in their order: from the start of the load, for how long it stands, and what was seen.
    servers: Vec<Vec<(u64, u64, Look)>>,
    /// What the servers' words for their sessions mean.
    states: BTreeMap<String, SessionState>,
}

/// What was seen over some time, as averages.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Average {
    /// For how much of the time servers were looked at, at least.
    pub(super) covered_ns: u64,
    /// How many looks that were, of the server with fewest.
    pub(super) looks: usize,
    /// How long the server took to answer, in microseconds; of several the longest.
    took_us: f64,
    /// Sessions by what they did.
    sessions: BTreeMap<String, f64>,
    /// Sessions that were held up, by whom.
    blockers: BTreeMap<String, f64>,
    /// Share of the time in which the server did this, 0 to 1; absent where that was not seen.
    work: Option<BTreeMap<ServerWork, f64>>,
}

/// Sessions in some states.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found<'a> {
    /// How many on average.
    pub(super) sessions: f64,
    /// What most of them did, in the server's words.
    pub(super) event: &'a str,
}

impl ServersSeen {
    pub(super) fn of(step: &Step) -> Self {
        let mut by_node: BTreeMap<&str, Vec<(u64, Look)>> = BTreeMap::new();
        for looks in step.intervals.iter().flat_map(|interval| &interval.looks) {
            by_node.entry(&looks.node).or_default().extend(looks.iter());
        }
        let of_server = |mut looks: Vec<(u64, Look)>| {
            // Those of an interval may be in the record once more, with others around them.
            looks.sort_by_key(|(at_ns, _)| *at_ns);
            looks.dedup_by_key(|(at_ns, _)| *at_ns);
            let next: Vec<u64> = looks.iter().skip(1).map(|(at_ns, _)| *at_ns).chain([u64::MAX]).collect();
            let lasting =
                |((at_ns, look), next_ns): ((u64, Look), u64)| (at_ns, (next_ns - at_ns).min(LONGEST_NS), look);
            looks.into_iter().zip(next).map(lasting).collect()
        };
        let named = step.servers.iter().flat_map(|server| &server.session_states);
        let states = named.map(|(event, state)| (event.clone(), state_of(event, *state))).collect();
        Self { servers: by_node.into_values().map(of_server).collect(), states }
    }

    /// Each server over spans of time, from the start of the load: `wanted` gives how much of a look counts.
    pub(super) fn over(&self, wanted: impl Fn(u64, u64) -> u64) -> Vec<Average> {
        self.servers.iter().map(|looks| average(looks, &wanted)).collect()
    }

    /// Each server over one span.
    pub(super) fn during(&self, (from_ns, until_ns): (u64, u64)) -> Vec<Average> {
        self.over(|at_ns, for_ns| {
            let end_ns = at_ns.saturating_add(for_ns).min(until_ns);
            end_ns.saturating_sub(at_ns.max(from_ns))
        })
    }

    /// For how much of a span the server that was silent longest answered nothing, in nanoseconds. One that usually takes that long is not
    /// silent.
    pub(super) fn silent_ns(&self, (from_ns, until_ns): (u64, u64), usual: &Average) -> u64 {
        let of_look = |(at_ns, _, look): &(u64, u64, Look)| {
            let half_ns = look.took_us.saturating_mul(500);
            let (begun_ns, ended_ns) = (at_ns.saturating_sub(half_ns), at_ns.saturating_add(half_ns));
            ended_ns.min(until_ns).saturating_sub(begun_ns.max(from_ns))
        };
        let is_silent = |look: &Look| look.is_late() && look.took_us as f64 >= SILENT_TIMES * usual.took_us;
        let late = |looks: &Vec<(u64, u64, Look)>| looks.iter().filter(|(.., look)| is_silent(look)).map(of_look).max();
        self.servers.iter().filter_map(late).max().unwrap_or(0)
    }

    /// Sessions in any of these states.
    pub(super) fn found<'a>(&self, average: &'a Average, wanted: &[SessionState]) -> Option<Found<'a>> {
        let of_state = |event: &str| self.states.get(event).is_some_and(|state| wanted.contains(state));
        let all = || average.sessions.iter().filter(|(event, _)| of_state(event));
        let (event, _) = all().max_by(|one, other| one.1.total_cmp(other.1))?;
        Some(Found { sessions: all().map(|(_, sessions)| sessions).sum(), event })
    }
}

/// Of one server. `wanted` gives how much of a look counts.
fn average(looks: &[(u64, u64, Look)], wanted: &impl Fn(u64, u64) -> u64) -> Average {
    let mut sum = Average { work: Some(BTreeMap::new()), ..Average::default() };
    let (mut asked, mut took_us) = (0.0_f64, 0.0_f64);
    for (at_ns, for_ns, look) in looks {
        let weight_ns = wanted(*at_ns, *for_ns);
        if weight_ns == 0 {
            continue;
        }
        (asked, took_us) = (asked + 1.0, took_us + look.took_us as f64);
        if look.is_late() {
            continue;
        }
        sum.looks += 1;
        sum.covered_ns = sum.covered_ns.saturating_add(weight_ns);
        let weight = weight_ns as f64;
        let add = |sums: &mut BTreeMap<String, f64>, counts: &BTreeMap<String, u32>| {
            counts
                .iter()
                .for_each(|(name, count)| *sums.entry(name.clone()).or_default() += f64::from(*count) * weight);
        };
        add(&mut sum.sessions, &look.sessions);
        add(&mut sum.blockers, &look.blockers);
        match (&mut sum.work, &look.work) {
            (Some(sums), Some(work)) => {
                work.keys().for_each(|work| *sums.entry(*work).or_default() += weight);
            }
            (work, _) => *work = None,
        }
    }
    sum.took_us = took_us / asked.max(1.0);
    let covered = sum.covered_ns.max(1) as f64;
    sum.sessions.values_mut().chain(sum.blockers.values_mut()).for_each(|value| *value /= covered);
    sum.work.iter_mut().flat_map(BTreeMap::values_mut).for_each(|value| *value /= covered);
    sum
}

/// What a state means for a stall: everything that PostgreSQL calls `IO` is storage, and what waits for room in the log waits for it to be
/// written. A standby that is waited for is not storage.
pub(super) fn state_of(event: &str, state: SessionState) -> SessionState {
    match state {
        SessionState::Other if event.starts_with("IO:") => SessionState::Read,
        SessionState::Log if !event.contains("SyncRep") => SessionState::LogWrite,
        state => state,
    }
}

impl Average {
    /// All servers together: their sessions, and what is known of each. `None` where no server was looked at.
    pub(super) fn of_all(servers: &[Self]) -> Option<Self> {
        servers.iter().cloned().reduce(Self::with).filter(|all| all.covered_ns > 0)
    }

    fn with(mut self, other: Self) -> Self {
        let Self { covered_ns, looks, took_us, sessions, blockers, work: _ } = other;
        self.covered_ns = self.covered_ns.min(covered_ns);
        (self.looks, self.took_us) = (self.looks.min(looks), self.took_us.max(took_us));
        sessions.into_iter().for_each(|(name, count)| *self.sessions.entry(name).or_default() += count);
        blockers.into_iter().for_each(|(name, count)| *self.blockers.entry(name).or_default() += count);
        // What one server did says nothing of sessions on another.
        self.work = None;
        self
    }

    /// Share of the time in which the server did any of these, 0 to 1: at least that of the one that it did most.
    pub(super) fn work(&self, wanted: &[ServerWork]) -> Option<f64> {
        let work = self.work.as_ref()?;
        // One checkpoint goes on at a time, so that its parts never coincide.
        Some(wanted.iter().filter_map(|wanted| work.get(wanted)).sum::<f64>().min(1.0))
    }

    /// Who held up most sessions that waited for a lock, and at least half of them; absent where that was not seen.
    pub(super) fn blocker(&self) -> Option<&str> {
        let all: f64 = self.blockers.values().sum();
        let most = self.blockers.iter().max_by(|one, other| one.1.total_cmp(other.1));
        most.filter(|(_, count)| **count >= 0.5 * all).map(|(who, _)| who.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::{Interval, Looks, ServerStats};

    const MS: u64 = 1_000_000;

    fn look(sessions: &[(&str, u32)], work: Option<&[ServerWork]>) -> Look {
        Look {
            took_us: 500,
            sessions: sessions.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
            blockers: BTreeMap::new(),
            work: work.map(|work| work.iter().map(|work| (*work, 1)).collect()),
        }
    }

    fn seen(lists: &[&[(u64, Look)]]) -> ServersSeen {
        let states = BTreeMap::from([("Lock:tuple".to_owned(), SessionState::Lock)]);
        let server = ServerStats { session_states: states, ..ServerStats::default() };
        let intervals = lists.iter().map(|looks| {
            let ns: Vec<(u64, Look)> = looks.iter().map(|(ms, look)| (ms * MS, look.clone())).collect();
            Interval { looks: vec![Looks::of("db1", &ns)], ..Interval::default() }
        });
        ServersSeen::of(&Step { intervals: intervals.collect(), servers: vec![server], ..Step::new(0, "step") })
    }

    fn only(seen: &ServersSeen, span: (u64, u64)) -> Average {
        Average::of_all(&seen.during(span)).unwrap()
    }

    #[test]
    fn a_look_stands_for_the_time_until_the_next_one_and_long_gaps_are_not_seen() {
        let waits = |count| look(&[("Lock:tuple", count)], Some(&[ServerWork::CheckpointSync]));
        let idle = || look(&[], Some(&[]));
        let first = [(0, idle()), (50, waits(8)), (60, waits(8)), (70, waits(4))];
        let seen = seen(&[&first, &[(70, waits(4)), (80, idle()), (1_000, idle())]]);
        let during = only(&seen, (50 * MS, 80 * MS));
        assert_eq!(during.covered_ns, 30 * MS);
        let found = seen.found(&during, &[SessionState::Lock]).unwrap();
        assert!((found.sessions - 20.0 / 3.0).abs() < 1e-9 && found.event == "Lock:tuple", "{found:?}");
        assert_eq!(seen.found(&during, &[SessionState::Read]), None);
        assert_eq!(during.work(&[ServerWork::CheckpointSync, ServerWork::CheckpointWrite]), Some(1.0));
        let later = only(&seen, (80 * MS, 1_000 * MS));
        assert_eq!((later.covered_ns, later.work(&[ServerWork::CheckpointSync])), (150 * MS, Some(0.0)));
        assert_eq!((during.looks, Average::of_all(&seen.during((300 * MS, 900 * MS)))), (3, None));
        assert_eq!(Average::of_all(&ServersSeen::default().during((0, MS))), None);
    }

    #[test]
    fn a_look_that_was_answered_late_says_only_that_the_server_was_silent() {
        let late = Look { took_us: 600_000, ..look(&[("Lock:tuple", 9)], Some(&[])) };
        let seen = seen(&[&[(0, look(&[], Some(&[]))), (400, late), (710, look(&[], Some(&[])))]]);
        let usual = Average { took_us: 500.0, ..Average::default() };
        assert_eq!(seen.silent_ns((200 * MS, 900 * MS), &usual), 500 * MS);
        assert_eq!(seen.silent_ns((720 * MS, 900 * MS), &usual), 0);
        let slow = Average { took_us: 200_000.0, ..Average::default() };
        assert_eq!(seen.silent_ns((200 * MS, 900 * MS), &slow), 0, "it is never faster");
        assert_eq!(Average::of_all(&seen.during((400 * MS, 500 * MS))), None);
    }

    #[test]
    fn what_one_look_does_not_show_of_the_server_is_unknown() {
        let seen = seen(&[&[(0, look(&[], Some(&[ServerWork::Autovacuum]))), (50, look(&[], None))]]);
        assert_eq!(only(&seen, (0, 100 * MS)).work(&[ServerWork::Autovacuum]), None);
    }
}
