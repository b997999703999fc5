//! Issues and completions become requests.

use std::collections::{HashMap, VecDeque};

use super::events::{Does, SECTOR_BYTES, Seen};
use model::trace::{TraceKind, TraceRequest};

/// A request is waited for so long; what takes longer keeps those after it waiting, in memory.
const MAX_WAIT_NS: u64 = 60_000_000_000;
/// Requests that are kept until the earliest of them has completed.
const MAX_KEPT: usize = 1 << 20;

/// An issue or a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) at_ns: u64,
    pub(super) is_issue: bool,
    pub(super) device: u16,
    pub(super) seen: Seen,
    pub(super) does: Does,
}

/// What a completion is recognised by.
type Key = (u16, u64, TraceKind);

/// Requests whose completion is not known yet.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    /// In the order of their issue, each with whether it is complete.
    kept: VecDeque<(TraceRequest, bool)>,
    /// The number of the first of them.
    first: u64,
    under_way: HashMap<Key, u64>,
    /// Requests that were handed over without a latency.
    pub(super) untimed: u64,
}

impl Pairs {
    /// Takes the next event; they come in the order of their times. `began_ns` is when the trace began.
    pub(super) fn take(&mut self, event: &Event, began_ns: u64) {
        let Event { at_ns, device, seen, does: Does { kind, is_fua }, .. } = *event;
        let is_flush = kind == TraceKind::Flush;
        // A flush has no place, and drivers fill in what they like.
        let sector = if is_flush { 0 } else { seen.sector };
        let key = (device, sector, kind);
        let since = at_ns.saturating_sub(began_ns);
        if event.is_issue {
            let bytes = if is_flush { 0 } else { seen.sectors.saturating_mul(SECTOR_BYTES) };
            let offset_bytes = sector.saturating_mul(SECTOR_BYTES);
            let number = self.first + self.kept.len() as u64;
            let request = TraceRequest { at_ns: since, device, kind, is_fua, offset_bytes, bytes, latency_ns: None };
            self.kept.push_back((request, false));
            // One that is issued anew (requeued, or its completion was lost) leaves the earlier one without a latency.
            if let Some(earlier) = self.under_way.insert(key, number) {
                self.complete(earlier, None);
            }
        } else if let Some(number) = self.under_way.remove(&key) {
            self.complete(number, Some(since));
        }
    }

    fn complete(&mut self, number: u64, at_ns: Option<u64>) {
        let place = number.checked_sub(self.first).and_then(|place| usize::try_from(place).ok());
        if let Some((request, is_complete)) = place.and_then(|place| self.kept.get_mut(place)) {
            request.latency_ns = at_ns.map(|at_ns| at_ns.saturating_sub(request.at_ns));
            *is_complete = true;
        }
    }

    /// Hands over what is complete, in the order of issue, and what is not waited for any longer.
    pub(super) fn hand_over(&mut self, now_ns: u64, into: &mut Vec<TraceRequest>) {
        while let Some((request, is_complete)) = self.kept.front().copied() {
            let is_late = now_ns.saturating_sub(request.at_ns) >= MAX_WAIT_NS || self.kept.len() > MAX_KEPT;
            if !is_complete && !is_late {
                break;
            }
            self.kept.pop_front();
            self.leave(request, into);
        }
    }

    /// Hands over everything: nothing more comes.
    pub(super) fn end(&mut self, into: &mut Vec<TraceRequest>) {
        while let Some((request, _)) = self.kept.pop_front() {
            self.leave(request, into);
        }
    }

    fn leave(&mut self, request: TraceRequest, into: &mut Vec<TraceRequest>) {
        if request.latency_ns.is_none() {
            self.untimed += 1;
            let key = (request.device, request.offset_bytes / SECTOR_BYTES, request.kind);
            if self.under_way.get(&key) == Some(&self.first) {
                self.under_way.remove(&key);
            }
        }
        self.first += 1;
        into.push(request);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at_ns: u64, is_issue: bool, sector: u64, kind: TraceKind) -> Event {
        let does = Does { kind, is_fua: false };
        Event {
            at_ns,
            is_issue,
            device: 0,
            seen: Seen { device: 1, pid: 1, sector, sectors: 16, does: Some(does) },
            does,
        }
    }

    fn handed(pairs: &mut Pairs, now_ns: u64) -> Vec<(u64, Option<u64>)> {
        let mut into = Vec::new();
        pairs.hand_over(now_ns, &mut into);
        into.iter().map(|request| (request.at_ns, request.latency_ns)).collect()
    }

    #[test]
    fn requests_come_in_the_order_of_their_issue_with_their_own_latency() {
        let mut pairs = Pairs::default();
        for (at_ns, is_issue, sector) in [(1_100, true, 8), (1_200, true, 64), (1_250, false, 64), (1_400, false, 8)] {
            pairs.take(&event(at_ns, is_issue, sector, TraceKind::Read), 1_000);
            if at_ns == 1_250 {
                assert_eq!(handed(&mut pairs, 250), []);
            }
        }
        assert_eq!(handed(&mut pairs, 400), [(100, Some(300)), (200, Some(50))]);
        assert_eq!(pairs.untimed, 0);
    }

    #[test]
    fn a_read_and_a_write_of_one_place_are_two() {
        let mut pairs = Pairs::default();
        pairs.take(&event(10, true, 8, TraceKind::Read), 0);
        pairs.take(&event(11, true, 8, TraceKind::Write), 0);
        pairs.take(&event(15, false, 8, TraceKind::Write), 0);
        pairs.take(&event(19, false, 8, TraceKind::Read), 0);
        assert_eq!(handed(&mut pairs, 20), [(10, Some(9)), (11, Some(4))]);
    }

    #[test]
    fn what_never_completes_is_handed_over_without_a_latency() {
        let mut pairs = Pairs::default();
        pairs.take(&event(5, true, 8, TraceKind::Read), 0);
        pairs.take(&event(6, true, 16, TraceKind::Read), 0);
        pairs.take(&event(9, false, 16, TraceKind::Read), 0);
        assert_eq!(handed(&mut pairs, 1_000), []);
        assert_eq!(handed(&mut pairs, MAX_WAIT_NS + 5), [(5, None), (6, Some(3))]);
        // Its completion, at last, belongs to nothing, and the next request of its place has its own.
        pairs.take(&event(MAX_WAIT_NS + 6, false, 8, TraceKind::Read), 0);
        pairs.take(&event(MAX_WAIT_NS + 7, true, 8, TraceKind::Read), 0);
        pairs.take(&event(MAX_WAIT_NS + 9, false, 8, TraceKind::Read), 0);
        assert_eq!(handed(&mut pairs, MAX_WAIT_NS + 10), [(MAX_WAIT_NS + 7, Some(2))]);
        assert_eq!(pairs.untimed, 1);
    }

    #[test]
    fn a_request_that_is_issued_anew_is_timed_from_there() {
        let mut pairs = Pairs::default();
        pairs.take(&event(5, true, 8, TraceKind::Write), 0);
        pairs.take(&event(7, true, 8, TraceKind::Write), 0);
        pairs.take(&event(8, false, 8, TraceKind::Write), 0);
        assert_eq!(handed(&mut pairs, 9), [(5, None), (7, Some(1))]);
    }
}
