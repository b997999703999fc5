//! What several sessions did, put into one order: each session's own is known already, so only their heads are compared.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};

/// Something that happened at an instant.
pub(super) trait Happened {
    /// When, in nanoseconds of the run's clock.
    fn at_ns(&self) -> u64;
}

/// Lists of many sessions. Within a session everything is in its order, from list to list as well.
#[derive(Debug)]
pub(super) struct InOrder<T> {
    sessions: Vec<VecDeque<std::vec::IntoIter<T>>>,
    /// The first instant of each session that has any.
    heads: BinaryHeap<Reverse<(u64, u32)>>,
}

impl<T: Happened> InOrder<T> {
    /// Of so many sessions, and nothing of any yet.
    pub(super) fn new(sessions: u32) -> Self {
        Self { sessions: (0..sessions).map(|_| VecDeque::new()).collect(), heads: BinaryHeap::new() }
    }

    /// Adds what a session did after everything that is known of it.
    pub(super) fn add(&mut self, session: u32, list: Vec<T>) {
        debug_assert!(list.is_sorted_by_key(T::at_ns), "what a session did is in its order");
        let Some(first) = list.first() else { return };
        let lists = &mut self.sessions[session as usize];
        if lists.is_empty() {
            self.heads.push(Reverse((first.at_ns(), session)));
        }
        lists.push_back(list.into_iter());
    }

    /// Takes everything until `until_ns` inclusive, in its order.
    pub(super) fn take_until(&mut self, until_ns: u64, mut each: impl FnMut(T)) {
        while let Some(mut head) = self.heads.peek_mut() {
            let Reverse((at_ns, session)) = *head;
            if at_ns > until_ns {
                return;
            }
            let lists = &mut self.sessions[session as usize];
            // A head stands for a list that is not at its end.
            if let Some(next) = lists.front_mut().and_then(Iterator::next) {
                each(next);
            }
            if lists.front().is_some_and(|list| list.as_slice().is_empty()) {
                lists.pop_front();
            }
            match lists.front().and_then(|list| list.as_slice().first()) {
                Some(following) => *head = Reverse((following.at_ns(), session)),
                None => drop(PeekMut::pop(head)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Happened for (u64, u32) {
        fn at_ns(&self) -> u64 {
            self.0
        }
    }

    proptest! {
        #[test]
        fn everything_comes_once_in_its_order_and_nothing_before_its_time(
            lists in prop::collection::vec((0..4_u32, prop::collection::vec(0..9_u64, 0..5)), 0..12),
            looks in prop::collection::vec(0..200_u64, 0..6),
        ) {
            let mut known = InOrder::new(4);
            let (mut ended, mut all, mut taken) = ([0; 4], Vec::new(), Vec::new());
            for (session, steps) in lists {
                let at = &mut ended[session as usize];
                let list: Vec<(u64, u32)> = steps.iter().map(|step| { *at += step; (*at, session) }).collect();
                all.extend_from_slice(&list);
                known.add(session, list);
            }
            all.sort_unstable();
            let mut until = 0;
            for look in looks {
                until = look.max(until);
                known.take_until(until, |one| taken.push(one));
                prop_assert_eq!(taken.len(), all.iter().filter(|(at, _)| *at <= until).count());
            }
            known.take_until(u64::MAX, |one| taken.push(one));
            prop_assert!(taken.is_sorted_by_key(|(at, _)| *at));
            taken.sort_unstable();
            prop_assert_eq!(taken, all);
        }
    }
}
