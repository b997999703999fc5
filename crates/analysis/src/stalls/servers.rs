//! What database servers were seen doing while operations were slow, from looks many times a second.

use std::collections::BTreeMap;

use model::record::{Look, ServerWork, SessionState, Step};

/// A look stands for the time until the next one, and for no longer than this.
const LONGEST_NS: u64 = 150_000_000;

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
        let states = named.map(|(event, state)| (event.clone(), *state)).collect();
        Self { servers: by_node.into_values().map(of_server).collect(), states }
    }

    /// Over spans of time, from the start of the load; `None` where no server was looked at.
    pub(super) fn over(&self, is_wanted: impl Fn(u64, u64) -> u64) -> Option<Average> {
        let mut sum: Option<Average> = None;
        for looks in &self.servers {
            let average = average(looks, &is_wanted);
            sum = Some(match sum {
                Some(before) => before.with(average),
                None => average,
            });
        }
        sum.filter(|sum| sum.covered_ns > 0)
    }

    /// Over one span.
    pub(super) fn during(&self, (from_ns, until_ns): (u64, u64)) -> Option<Average> {
        self.over(|at_ns, for_ns| {
            let end_ns = at_ns.saturating_add(for_ns).min(until_ns);
            end_ns.saturating_sub(at_ns.max(from_ns))
        })
    }

    /// For how much of a span the server that was silent longest answered nothing, in nanoseconds.
    pub(super) fn silent_ns(&self, (from_ns, until_ns): (u64, u64)) -> u64 {
        let of_look = |(at_ns, _, look): &(u64, u64, Look)| {
            let half_ns = look.took_us.saturating_mul(500);
            let (begun_ns, ended_ns) = (at_ns.saturating_sub(half_ns), at_ns.saturating_add(half_ns));
            ended_ns.min(until_ns).saturating_sub(begun_ns.max(from_ns))
        };
        let late = |looks: &Vec<(u64, u64, Look)>| looks.iter().filter(|(.., look)| look.is_late()).map(of_look).max();
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
    for (at_ns, for_ns, look) in looks {
        let weight_ns = wanted(*at_ns, *for_ns);
        if weight_ns == 0 || look.is_late() {
            continue;
        }
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
    let covered = sum.covered_ns.max(1) as f64;
    sum.sessions.values_mut().chain(sum.blockers.values_mut()).for_each(|value| *value /= covered);
    sum.work.iter_mut().flat_map(BTreeMap::values_mut).for_each(|value| *value /= covered);
    sum
}

impl Average {
    /// Of two servers: their sessions together, and of their own work the larger share.
    fn with(mut self, other: Self) -> Self {
        let Self { covered_ns, sessions, blockers, work } = other;
        self.covered_ns = self.covered_ns.min(covered_ns);
        sessions.into_iter().for_each(|(name, count)| *self.sessions.entry(name).or_default() += count);
        blockers.into_iter().for_each(|(name, count)| *self.blockers.entry(name).or_default() += count);
        self.work = self.work.zip(work).map(|(mut mine, theirs)| {
            for (work, share) in theirs {
                let most = mine.entry(work).or_default();
                *most = most.max(share);
            }
            mine
        });
        self
    }

    /// Share of the time in which the server did any of these, 0 to 1: at least that of the one that it did most.
    pub(super) fn work(&self, wanted: &[ServerWork]) -> Option<f64> {
        let work = self.work.as_ref()?;
        // One checkpoint goes on at a time, so that its parts never coincide.
        Some(wanted.iter().filter_map(|wanted| work.get(wanted)).sum::<f64>().min(1.0))
    }

    /// Who held up most sessions that waited for a lock; absent where that was not seen.
    pub(super) fn blocker(&self) -> Option<&str> {
        let most = self.blockers.iter().max_by(|one, other| one.1.total_cmp(other.1));
        most.map(|(who, _)| who.as_str())
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

    #[test]
    fn a_look_stands_for_the_time_until_the_next_one_and_long_gaps_are_not_seen() {
        let waits = |count| look(&[("Lock:tuple", count)], Some(&[ServerWork::CheckpointSync]));
        let idle = || look(&[], Some(&[]));
        let first = [(0, idle()), (50, waits(8)), (60, waits(8)), (70, waits(4))];
        let seen = seen(&[&first, &[(70, waits(4)), (80, idle()), (1_000, idle())]]);
        let during = seen.during((50 * MS, 80 * MS)).unwrap();
        assert_eq!(during.covered_ns, 30 * MS);
        let found = seen.found(&during, &[SessionState::Lock]).unwrap();
        assert!((found.sessions - 20.0 / 3.0).abs() < 1e-9 && found.event == "Lock:tuple", "{found:?}");
        assert_eq!(seen.found(&during, &[SessionState::Read]), None);
        assert_eq!(during.work(&[ServerWork::CheckpointSync, ServerWork::CheckpointWrite]), Some(1.0));
        let later = seen.during((80 * MS, 1_000 * MS)).unwrap();
        assert_eq!((later.covered_ns, later.work(&[ServerWork::CheckpointSync])), (150 * MS, Some(0.0)));
        assert_eq!(seen.during((300 * MS, 900 * MS)), None);
        assert_eq!(ServersSeen::default().during((0, MS)), None);
    }

    #[test]
    fn a_look_that_was_answered_late_says_only_that_the_server_was_silent() {
        let late = Look { took_us: 600_000, ..look(&[("Lock:tuple", 9)], Some(&[])) };
        let seen = seen(&[&[(0, look(&[], Some(&[]))), (400, late), (710, look(&[], Some(&[])))]]);
        assert_eq!(seen.silent_ns((200 * MS, 900 * MS)), 500 * MS);
        assert_eq!(seen.silent_ns((720 * MS, 900 * MS)), 0);
        assert_eq!(seen.during((400 * MS, 500 * MS)), None);
    }

    #[test]
    fn what_one_look_does_not_show_of_the_server_is_unknown() {
        let seen = seen(&[&[(0, look(&[], Some(&[ServerWork::Autovacuum]))), (50, look(&[], None))]]);
        assert_eq!(seen.during((0, 100 * MS)).unwrap().work(&[ServerWork::Autovacuum]), None);
    }
}
