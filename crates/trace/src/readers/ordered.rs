//! Requests by the time of their issue, from files that have them in another order.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use model::trace::TraceRequest;

/// Requests that wait for an earlier one: some 60 MB.
const WAITING: usize = if cfg!(test) { 10_000 } else { 1_000_000 };

/// How much later than a request another one has to be until that request is passed on.
const WINDOW_NS: u64 = 10_000_000_000;

/// How many requests of the queue make place for an earlier one. Moving some is cheaper than the heap.
const NEAR: usize = 64;

/// Sorts requests within a window of time, and lets the time begin at 0.
///
/// Most files are in order but for a few requests. Those in order or nearly so go through a queue, which costs far less than a heap.
#[derive(Default)]
pub(super) struct Ordered {
    run: VecDeque<Waiting>,
    rest: BinaryHeap<Reverse<Waiting>>,
    next: u64,
    newest: u64,
    began: Option<u64>,
    last: u64,
    late: u64,
    is_draining: bool,
}

struct Waiting {
    /// Its place in the file, which decides between requests of one time.
    place: u64,
    /// With the time of the file.
    request: TraceRequest,
}

impl Waiting {
    fn key(&self) -> (u64, u64) {
        (self.request.at_ns, self.place)
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl Ordered {
    /// Takes a request with the time of the file.
    pub(super) fn push(&mut self, request: TraceRequest) {
        let waiting = Waiting { place: self.next, request };
        self.next += 1;
        self.newest = self.newest.max(request.at_ns);
        let later = self.run.iter().rev().take(NEAR + 1).take_while(|last| last.request.at_ns > request.at_ns).count();
        match later {
            0 => self.run.push_back(waiting),
            1..=NEAR => self.run.insert(self.run.len() - later, waiting),
            _ => self.rest.push(Reverse(waiting)),
        }
    }

    /// No request follows: what waits is passed on.
    pub(super) fn drain(&mut self) {
        self.is_draining = true;
    }

    /// Whether a request was ever pushed.
    pub(super) fn is_unused(&self) -> bool {
        self.next == 0
    }

    /// The time of the file of the next request.
    pub(super) fn oldest(&self) -> Option<u64> {
        let run = self.run.front().map(|waiting| waiting.request.at_ns);
        let rest = self.rest.peek().map(|waiting| waiting.0.request.at_ns);
        run.into_iter().chain(rest).min()
    }

    /// Whether a request can be passed on.
    pub(super) fn is_ready(&self) -> bool {
        self.oldest().is_some_and(|oldest| {
            self.is_draining || self.run.len() + self.rest.len() >= WAITING || self.newest - oldest > WINDOW_NS
        })
    }

    /// Passes on what can be, until `batch` has `full` requests.
    pub(super) fn pop_into(&mut self, batch: &mut Vec<TraceRequest>, full: usize) {
        while batch.len() < full && self.is_ready() {
            let from_rest = match (self.run.front(), self.rest.peek()) {
                (Some(run), Some(Reverse(rest))) => rest < run,
                (None, Some(_)) => true,
                _ => false,
            };
            let next = if from_rest { self.rest.pop().map(|Reverse(waiting)| waiting) } else { self.run.pop_front() };
            let Some(Waiting { mut request, .. }) = next else { return };
            let began = *self.began.get_or_insert(request.at_ns);
            if request.at_ns < self.last {
                self.late += 1;
                request.at_ns = self.last;
            }
            self.last = request.at_ns;
            request.at_ns -= began;
            batch.push(request);
        }
    }

    /// What a reader has to know of it.
    pub(super) fn note(&self) -> Option<String> {
        (self.late > 0).then(|| {
            format!(
                "requests more than {} s too late in the file, which have the time of the request before them: {}",
                WINDOW_NS / 1_000_000_000,
                self.late
            )
        })
    }
}
