//! Operations that wait for an earlier one: chains that a trace shows to be closed.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use model::workload::{After, DueNext};

/// Operations that wait, of all chains of a lane. With more, nothing else is drawn: memory is bounded, and the load is late.
pub(super) const MAX_WAITING: usize = if cfg!(test) { 1 << 7 } else { 1 << 20 };

/// The chains of one lane.
#[derive(Debug)]
pub(super) struct Order<O> {
    chains: HashMap<u64, Chain<O>>,
    /// Chains whose next operation is due at an instant: it is the first that waits.
    ready: BinaryHeap<Reverse<(u64, u64)>>,
    waiting: usize,
}

#[derive(Debug)]
struct Chain<O> {
    /// Whether an operation is under way, or stands in `ready`.
    is_busy: bool,
    /// When its last operation ended.
    ended_ns: u64,
    waiting: VecDeque<DueNext<O>>,
}

impl<O> Default for Order<O> {
    fn default() -> Self {
        Self { chains: HashMap::new(), ready: BinaryHeap::new(), waiting: 0 }
    }
}

impl<O> Order<O> {
    /// Takes an operation that is due by its own instant. It comes back at once, with when it is due by its chain, if it waits for nothing at
    /// `now`.
    pub(super) fn admit(&mut self, next: DueNext<O>, after: After, now: u64) -> Option<(u64, DueNext<O>)> {
        let chain = self.chains.entry(after.chain).or_insert_with(|| Chain {
            is_busy: false,
            ended_ns: 0,
            waiting: VecDeque::new(),
        });
        let due_ns = chain.due_ns(&next, after);
        if !chain.is_busy && due_ns <= now {
            chain.is_busy = true;
            return Some((due_ns, next));
        }
        chain.waiting.push_back(next);
        self.waiting += 1;
        if !chain.is_busy {
            chain.is_busy = true;
            self.ready.push(Reverse((due_ns, after.chain)));
        }
        None
    }

    /// Whether no more can be taken.
    pub(super) fn is_full(&self) -> bool {
        self.waiting >= MAX_WAITING
    }

    /// When the next operation of a chain is due, if one only waits for that.
    pub(super) fn next_due_ns(&self) -> u64 {
        self.ready.peek().map_or(u64::MAX, |Reverse((due_ns, _))| *due_ns)
    }

    /// The operation that is due then, and when it was due by the trace.
    pub(super) fn take(&mut self) -> Option<(u64, DueNext<O>)> {
        let Reverse((due_ns, chain)) = self.ready.pop()?;
        let next = self.chains.get_mut(&chain)?.waiting.pop_front()?;
        self.waiting -= 1;
        Some((due_ns, next))
    }

    /// The operation of a chain that was under way has ended.
    pub(super) fn ended(&mut self, number: u64, at_ns: u64) {
        let Some(chain) = self.chains.get_mut(&number) else { return };
        chain.ended_ns = at_ns;
        chain.is_busy = false;
        let next = chain.waiting.front().and_then(|next| Some((next, next.after?)));
        if let Some((next, after)) = next {
            self.ready.push(Reverse((chain.due_ns(next, after), number)));
            chain.is_busy = true;
        }
    }

    /// When all that still wait were due by the trace.
    pub(super) fn left(&self) -> impl Iterator<Item = u64> + '_ {
        self.chains.values().flat_map(|chain| &chain.waiting).map(|next| next.due_ns)
    }
}

impl<O> Chain<O> {
    /// Not before the trace had it, nor sooner after the one before.
    fn due_ns(&self, next: &DueNext<O>, after: After) -> u64 {
        next.due_ns.max(self.ended_ns.saturating_add(after.gap_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::workload::Drawn;

    fn next(due_ns: u64, operation: u32) -> (DueNext<u32>, After) {
        let after = After { chain: 7, gap_ns: 10 };
        (DueNext { due_ns, drawn: Drawn { operation, think_ns: 0 }, after: Some(after) }, after)
    }

    #[test]
    fn each_waits_for_the_one_before_and_keeps_its_gap() {
        let mut order = Order::default();
        let admit = |order: &mut Order<u32>, due_ns, operation, now| {
            let (next, after) = next(due_ns, operation);
            order.admit(next, after, now).map(|(due_ns, next)| (due_ns, next.drawn.operation))
        };
        assert_eq!(admit(&mut order, 100, 1, 100), Some((100, 1)));
        assert_eq!(admit(&mut order, 120, 2, 120), None, "the first is under way");
        assert_eq!(admit(&mut order, 130, 3, 130), None);
        assert_eq!((order.next_due_ns(), order.left().count()), (u64::MAX, 2));
        order.ended(7, 200);
        // Ten after the first ended, and the third still waits for the second.
        assert_eq!(order.next_due_ns(), 210);
        assert_eq!(order.take().map(|(due_ns, next)| (due_ns, next.due_ns, next.drawn.operation)), Some((210, 120, 2)));
        assert_eq!((order.next_due_ns(), order.take().is_none()), (u64::MAX, true));
        order.ended(7, 215);
        assert_eq!(order.take().map(|(due_ns, next)| (due_ns, next.due_ns, next.drawn.operation)), Some((225, 130, 3)));
        order.ended(7, 230);
        // Quick storage makes nothing earlier than the trace had it.
        assert_eq!(admit(&mut order, 400, 4, 400), Some((400, 4)));
        order.ended(7, 405);
        assert_eq!(admit(&mut order, 410, 5, 410), None, "its gap is not over");
        assert_eq!((order.next_due_ns(), order.left().collect::<Vec<_>>()), (415, vec![410]));
    }
}
