//! Requests at the instants at which a trace has them.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use super::io::{IoKind, IoOperation};
use super::{After, Drawn, DueNext, Shape, Stream};

/// A request and when it is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueOperation {
    /// Nanoseconds after the load begins.
    pub due_ns: u64,
    /// The request.
    pub operation: IoOperation,
    /// What it waits for besides.
    pub after: Option<After>,
}

/// Where requests come from.
pub trait ReplaySource: fmt::Debug + Send + Sync {
    /// Opens the requests of one of `streams` streams, from the first; for a rehearsal such that no other stream misses them.
    fn open(&self, stream: u32, streams: u32, is_rehearsal: bool) -> Box<dyn ReplayFeed>;
}

/// The requests of one stream.
pub trait ReplayFeed {
    /// Appends the next requests, by the instant at which they are due; nothing at the end.
    fn next_batch(&mut self, into: &mut VecDeque<DueOperation>);
}

/// Requests as a trace has them: each is due when it was issued, whatever became of those before it.
#[derive(Clone, Debug)]
pub struct ReplayShape {
    /// The requests.
    pub source: Arc<dyn ReplaySource>,
    /// How many streams share them; at least 1, one for each thread of the load.
    pub streams: u32,
    /// Requests outstanding at most.
    pub slots: u32,
    /// Whether the last request is repeated without end, for a load that moves nothing.
    pub is_rehearsal: bool,
}

impl Shape for ReplayShape {
    type Operation = IoOperation;
    type Stream = ReplayStream;

    fn stream_of(&self, session: u32) -> u32 {
        super::io::stream_of_slot(session, self.streams, self.slots)
    }

    fn stream(&self, _: u64, stream: u32) -> ReplayStream {
        let nothing = IoOperation { kind: IoKind::Flush, offset_bytes: 0, bytes: 0, is_durable: false };
        let feed = self.source.open(stream, self.streams.max(1), self.is_rehearsal);
        ReplayStream { feed, next: VecDeque::new(), last: nothing, is_endless: self.is_rehearsal }
    }

    fn rehearsal(&self) -> Self {
        Self { is_rehearsal: true, ..self.clone() }
    }
}

/// The requests of one stream of a trace.
pub struct ReplayStream {
    feed: Box<dyn ReplayFeed>,
    next: VecDeque<DueOperation>,
    last: IoOperation,
    is_endless: bool,
}

impl ReplayStream {
    fn pop(&mut self) -> Option<DueOperation> {
        if self.next.is_empty() {
            self.feed.next_batch(&mut self.next);
        }
        let next = self.next.pop_front()?;
        self.last = next.operation;
        Some(next)
    }
}

impl Stream for ReplayStream {
    type Operation = IoOperation;

    /// The next request without its instant; behind the end the last one again, since a load that goes as fast as it can has no end.
    fn draw(&mut self) -> Drawn<IoOperation> {
        let operation = self.pop().map_or(self.last, |next| next.operation);
        Drawn { operation, think_ns: 0 }
    }

    fn is_over(&mut self) -> bool {
        if self.next.is_empty() && !self.is_endless {
            self.feed.next_batch(&mut self.next);
        }
        self.next.is_empty() && !self.is_endless
    }

    fn draw_due(&mut self) -> Option<DueNext<IoOperation>> {
        let DueOperation { due_ns, operation, after } = self.pop()?;
        Some(DueNext { due_ns, drawn: Drawn { operation, think_ns: 0 }, after })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Three;

    struct Feed(u64, u32, u32);

    impl ReplaySource for Three {
        fn open(&self, stream: u32, streams: u32, _: bool) -> Box<dyn ReplayFeed> {
            Box::new(Feed(0, stream, streams))
        }
    }

    impl ReplayFeed for Feed {
        fn next_batch(&mut self, into: &mut VecDeque<DueOperation>) {
            let operation = IoOperation { kind: IoKind::Read, offset_bytes: self.0, bytes: 512, is_durable: false };
            if self.0 < 3 {
                let due_ns = self.0 * 10 + u64::from(self.1 * 100 + self.2);
                into.push_back(DueOperation { due_ns, operation, after: None });
                self.0 += 1;
            }
        }
    }

    #[test]
    fn requests_come_with_their_instants_and_end() {
        let shape = ReplayShape { source: Arc::new(Three), streams: 2, slots: 8, is_rehearsal: false };
        assert_eq!((0..8).map(|slot| shape.stream_of(slot)).collect::<Vec<_>>(), [0, 0, 0, 0, 1, 1, 1, 1]);
        let mut stream = shape.stream(7, 1);
        let due: Vec<u64> = std::iter::from_fn(|| stream.draw_due()).map(|next| next.due_ns).collect();
        assert_eq!(due, [102, 112, 122]);
        assert!(stream.is_over() && !shape.stream(7, 0).is_over());
        let mut endless = shape.rehearsal().stream(7, 0);
        let drawn: Vec<u64> = (0..5).map(|_| endless.draw().operation.offset_bytes).collect();
        assert!(drawn == [0, 1, 2, 2, 2] && !endless.is_over());
        assert_eq!(stream.draw().operation.offset_bytes, 2, "behind the end the last one again");
    }
}
