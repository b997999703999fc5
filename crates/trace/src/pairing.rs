//! Requests from the block layer's events: the latency of one is from its issue to its completion.

use std::collections::{HashMap, VecDeque};

use model::trace::{TraceKind, TraceRequest};

use crate::readers::numbers::{SECTOR, request};

/// Where requests go.
pub(crate) trait Taker {
    /// Takes the next one.
    fn take(&mut self, request: TraceRequest);
}

impl Taker for Vec<TraceRequest> {
    fn take(&mut self, request: TraceRequest) {
        self.push(request);
    }
}

/// Requests that wait for their completion: some 150 MB.
const UNDER_WAY: usize = if cfg!(test) { 10_000 } else { 1_000_000 };

/// How long requests wait for the completion of one before them: a kernel gives up on a request earlier.
const PATIENCE_NS: u64 = 120_000_000_000;

/// No further slot.
const NONE: u64 = u64::MAX;

/// What happened to a request, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// A program gave it to the block layer.
    Queue,
    /// It became a part of another one.
    Merge,
    /// The block layer gave it to the driver.
    Issue,
    /// The driver gave it back.
    Requeue,
    /// The driver completed it.
    Complete,
}

/// An event of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    pub(crate) at_ns: u64,
    pub(crate) action: Action,
    pub(crate) kind: TraceKind,
    pub(crate) is_fua: bool,
    pub(crate) sector: u64,
    pub(crate) bytes: u64,
}

/// What an event and the event of its completion have in common. The sectors of flushes differ between kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    device: u16,
    is_flush: bool,
    place: u64,
}

impl Key {
    fn of(request: &TraceRequest) -> Self {
        let is_flush = request.kind == TraceKind::Flush;
        Self { device: request.device, is_flush, place: request.offset_bytes }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    UnderWay,
    Done,
    Withdrawn,
}

#[derive(Debug)]
struct Slot {
    request: TraceRequest,
    /// The request of the same key before it, if that is under way: several programs can read one sector at a time.
    before: u64,
    state: State,
}

/// Requests in the order of their issue, each with its latency if its completion comes.
#[derive(Debug)]
pub(crate) struct Pairing {
    /// What counts as the issue.
    issue: Action,
    slots: VecDeque<Slot>,
    /// The number of the first slot.
    first: u64,
    /// The last slot under way of each key.
    under_way: HashMap<Key, u64>,
    incomplete: u64,
    not_issued: u64,
    requeued: u64,
}

impl Pairing {
    /// `has_issue`: whether the trace has the events of requests that go to the driver.
    pub(crate) fn new(has_issue: bool) -> Self {
        Self {
            issue: if has_issue { Action::Issue } else { Action::Queue },
            slots: VecDeque::new(),
            first: 0,
            under_way: HashMap::new(),
            incomplete: 0,
            not_issued: 0,
            requeued: 0,
        }
    }

    /// Takes an event; absent if its numbers are impossible.
    pub(crate) fn event(&mut self, event: &Event, device: u16, out: &mut impl Taker) -> Option<()> {
        let place = match event.kind {
            TraceKind::Flush => (0, 0),
            _ => (event.sector.checked_mul(SECTOR)?, event.bytes),
        };
        let mut request = request(event.at_ns, device, event.kind, place, None)?;
        request.is_fua = event.is_fua;
        let key = Key::of(&request);
        match event.action {
            action if action == self.issue => self.issued(request, key),
            Action::Complete => match self.take(key) {
                Some(slot) => {
                    slot.request.latency_ns = event.at_ns.checked_sub(slot.request.at_ns);
                    slot.state = State::Done;
                }
                None => self.not_issued += 1,
            },
            // It will be issued once more.
            Action::Requeue if self.issue == Action::Issue => {
                if let Some(slot) = self.take(key) {
                    slot.state = State::Withdrawn;
                    self.requeued += 1;
                }
            }
            // What became a part of another request has no completion of its own.
            Action::Merge if self.issue == Action::Queue => {
                if let Some(slot) = self.take(key) {
                    slot.state = State::Done;
                }
            }
            _ => {}
        }
        self.pass_on(event.at_ns, out);
        Some(())
    }

    /// Passes on what is left.
    pub(crate) fn finish(&mut self, out: &mut impl Taker) {
        while self.pass_on_first(out) {}
    }

    /// Requests that the driver gave back, which begin when they are issued again.
    pub(crate) fn requeued(&self) -> u64 {
        self.requeued
    }

    /// Requests that were passed on without a latency.
    pub(crate) fn incomplete(&self) -> u64 {
        self.incomplete
    }

    /// What a reader has to know of it.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.issue == Action::Queue {
            notes.push("the trace has no events D: requests begin when a program queued them".to_owned());
        }
        if self.incomplete > 0 {
            notes.push(format!("requests without a completion, with unknown latency: {}", self.incomplete));
        }
        if self.not_issued > 0 {
            notes.push(format!(
                "completions of requests that the trace did not see issued, left out: {}",
                self.not_issued
            ));
        }
        if self.requeued > 0 {
            notes.push(format!("requests that the driver gave back, which begin when issued again: {}", self.requeued));
        }
        notes
    }

    fn issued(&mut self, request: TraceRequest, key: Key) {
        let number = self.first + self.slots.len() as u64;
        let before = self.under_way.insert(key, number).unwrap_or(NONE);
        self.slots.push_back(Slot { request, before, state: State::UnderWay });
    }

    fn slot(&mut self, number: u64) -> Option<&mut Slot> {
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.slots.get_mut(place)
    }

    /// The newest request under way of `key`, which is under way no longer. With the oldest, one completion that is missing would give each
    /// later request of its place the completion of the next one; so only requests that overlap can be taken for each other.
    fn take(&mut self, key: Key) -> Option<&mut Slot> {
        let number = self.under_way.remove(&key)?;
        let before = self.slot(number).map_or(NONE, |slot| slot.before);
        // What has been passed on is not waited for.
        if before != NONE && before >= self.first {
            self.under_way.insert(key, before);
        }
        self.slot(number)
    }

    /// Passes on what is complete, in the order of issue, and what is not waited for any longer.
    pub(crate) fn pass_on(&mut self, now: u64, out: &mut impl Taker) {
        while let Some(slot) = self.slots.front() {
            let is_settled = slot.state != State::UnderWay;
            let is_old = now.saturating_sub(slot.request.at_ns) > PATIENCE_NS;
            if !(is_settled || is_old || self.slots.len() > UNDER_WAY) {
                return;
            }
            self.pass_on_first(out);
        }
    }

    /// False if there is none.
    fn pass_on_first(&mut self, out: &mut impl Taker) -> bool {
        let Some(slot) = self.slots.front() else { return false };
        if slot.state == State::UnderWay {
            let key = Key::of(&slot.request);
            if self.under_way.get(&key) == Some(&self.first) {
                self.under_way.remove(&key);
            }
            self.incomplete += 1;
        }
        if let Some(slot) = self.slots.pop_front() {
            self.first += 1;
            if slot.state != State::Withdrawn {
                out.take(slot.request);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The requests of events at a millisecond each, with their latencies in milliseconds, and what was not complete.
    fn paired(events: &[(u64, Action, TraceKind, u64)]) -> (Vec<(u64, Option<u64>)>, u64) {
        let (mut pairing, mut out) = (Pairing::new(true), Vec::new());
        for (at_ms, action, kind, sector) in events {
            let at_ns = at_ms * 1_000_000;
            let event = Event { at_ns, action: *action, kind: *kind, is_fua: false, sector: *sector, bytes: 4_096 };
            assert!(pairing.event(&event, 0, &mut out).is_some());
        }
        pairing.finish(&mut out);
        let ms = |ns: u64| ns / 1_000_000;
        let found = out.iter().map(|request| (ms(request.at_ns), request.latency_ns.map(ms))).collect();
        (found, pairing.incomplete())
    }

    use Action::{Complete, Issue, Requeue};
    use TraceKind::{Flush, Read, Write};

    #[test]
    fn requests_come_in_the_order_of_their_issue_with_their_own_latency() {
        let events = [(1, Issue, Read, 8), (2, Issue, Read, 64), (3, Complete, Read, 64), (9, Complete, Read, 8)];
        assert_eq!(paired(&events), (vec![(1, Some(8)), (2, Some(1))], 0));
    }

    #[test]
    fn a_completion_that_is_missing_is_that_of_one_request() {
        let lost = [
            (1, Issue, Flush, 0),
            (10, Issue, Flush, 0),
            (11, Complete, Flush, 0),
            (20, Issue, Flush, 0),
            (22, Complete, Flush, 0),
        ];
        assert_eq!(paired(&lost), (vec![(1, None), (10, Some(1)), (20, Some(2))], 1));
    }

    #[test]
    fn what_the_driver_gave_back_is_one_request() {
        let events = [(1, Issue, Write, 8), (2, Requeue, Write, 8), (5, Issue, Write, 8), (7, Complete, Write, 8)];
        assert_eq!(paired(&events), (vec![(5, Some(2))], 0));
    }

    #[test]
    fn a_completion_of_what_is_not_waited_for_any_longer_belongs_to_nothing() {
        let late = PATIENCE_NS / 1_000_000 + 10;
        let events = [
            (1, Issue, Read, 8),
            (2, Issue, Read, 16),
            (3, Complete, Read, 16),
            (late, Complete, Read, 8),
            (late + 1, Issue, Read, 8),
            (late + 3, Complete, Read, 8),
        ];
        // The first one is passed on when the late event comes, which still finds it.
        let (found, _) = paired(&events);
        assert_eq!(found[1..], [(2, Some(1)), (late + 1, Some(2))]);
    }
}
