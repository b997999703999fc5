//! Requests that wait for those before them, so that a trace has them in the order of their issue.

use std::collections::VecDeque;

use model::trace::TraceRequest;

/// Requests that wait: some 80 MB.
const WAITING: usize = if cfg!(test) { 100 } else { 1_000_000 };
/// How long they wait for one that has not ended.
const PATIENCE_NS: u64 = 120_000_000_000;

#[derive(Debug)]
enum Slot {
    UnderWay { since_ns: u64 },
    Done(TraceRequest),
    Withdrawn,
}

/// Requests in the order of their issue.
#[derive(Debug, Default)]
pub(super) struct Queue {
    slots: VecDeque<Slot>,
    /// The number of the first slot.
    first: u64,
    /// Requests that were not waited for any longer.
    given_up: u64,
}

impl Queue {
    /// A place for a request that begins now, later than all before.
    pub(super) fn begin(&mut self, at_ns: u64) -> u64 {
        self.slots.push_back(Slot::UnderWay { since_ns: at_ns });
        self.first + self.slots.len() as u64 - 1
    }

    /// The request of a place has ended; nothing if it is to be left out. False if it was not waited for any longer.
    pub(super) fn end(&mut self, number: u64, request: Option<TraceRequest>) -> bool {
        let place = number.checked_sub(self.first).and_then(|place| usize::try_from(place).ok());
        let slot = place.and_then(|place| self.slots.get_mut(place));
        let is_there = slot.is_some();
        if let Some(slot) = slot {
            *slot = request.map_or(Slot::Withdrawn, Slot::Done);
        }
        is_there
    }

    /// Passes on what has ended, and gives up what is not waited for any longer.
    pub(super) fn pass_on(&mut self, now_ns: u64, into: &mut Vec<TraceRequest>) {
        while let Some(slot) = self.slots.front() {
            match slot {
                Slot::UnderWay { since_ns } => {
                    if now_ns.saturating_sub(*since_ns) <= PATIENCE_NS && self.slots.len() <= WAITING {
                        return;
                    }
                    self.given_up += 1;
                }
                Slot::Done(request) => into.push(*request),
                Slot::Withdrawn => {}
            }
            self.slots.pop_front();
            self.first += 1;
        }
    }

    /// Passes on all, and returns how many never ended.
    pub(super) fn finish(&mut self, into: &mut Vec<TraceRequest>) -> u64 {
        self.pass_on(u64::MAX, into);
        self.given_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::trace::TraceKind;

    fn request(at_ns: u64) -> TraceRequest {
        let (kind, bytes) = (TraceKind::Read, 512);
        TraceRequest { at_ns, device: 0, kind, is_fua: false, offset_bytes: 0, bytes, latency_ns: Some(1) }
    }

    #[test]
    fn requests_come_in_the_order_of_their_issue() {
        let (mut queue, mut out) = (Queue::default(), Vec::new());
        let places: Vec<u64> = (0..3).map(|at_ns| queue.begin(at_ns)).collect();
        queue.end(places[2], Some(request(2)));
        queue.pass_on(10, &mut out);
        assert!(out.is_empty());
        queue.end(places[0], Some(request(0)));
        queue.end(places[1], None);
        queue.pass_on(10, &mut out);
        assert_eq!(out, [request(0), request(2)]);
    }

    #[test]
    fn one_that_never_ends_does_not_keep_the_others() {
        let (mut queue, mut out) = (Queue::default(), Vec::new());
        let stuck = queue.begin(0);
        for at_ns in 1..=2 * WAITING as u64 {
            let place = queue.begin(at_ns);
            queue.end(place, Some(request(at_ns)));
            queue.pass_on(at_ns, &mut out);
        }
        queue.end(stuck, Some(request(0)));
        let old = queue.begin(1_000);
        queue.pass_on(1_001 + PATIENCE_NS, &mut out);
        queue.end(old, Some(request(1_000)));
        assert_eq!((queue.finish(&mut out), out.len()), (2, 2 * WAITING));
    }
}
