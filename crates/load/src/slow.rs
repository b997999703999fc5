//! What goes into the record of slow operations and of what the system did meanwhile.
//!
//! Few operations of an interval are kept where nothing happened, more where much did, and no more in all than fit.

use std::collections::VecDeque;

use measure::os::moments::{MOMENT_NS, MomentWatch};
use measure::{IntervalId, Recorded};
use model::record::{Moment, Moments, SlowOperation, SlowOperations};

/// Most slow operations of a step that are kept, about a megabyte of text.
const MAX_KEPT: usize = 10_000;
/// Of an interval with as many slow operations as any before, at least so many are kept.
const MIN_KEPT: usize = 4;
/// A single interval takes no more of what is left than one part in so many.
const SHARE: usize = 4;

/// How many may still be kept.
#[derive(Debug)]
pub(super) struct SlowBudget {
    left: usize,
    intervals_left: u64,
    seen: u64,
    seen_in: u64,
}

impl SlowBudget {
    /// For a step of so many intervals, as far as that is known.
    pub(super) fn new(intervals: u64) -> Self {
        Self { left: MAX_KEPT, intervals_left: intervals, seen: 0, seen_in: 0 }
    }

    /// Takes what the lanes kept of an interval, and chooses; nothing where nothing was slow.
    pub(super) fn choose(&mut self, parts: &mut [Recorded], kinds: &[&str], start_ns: u64) -> Option<SlowOperations> {
        let count: u64 = parts.iter().map(|part| part.slow_count).sum();
        let may = self.allow(count);
        if count == 0 {
            return None;
        }
        // A lane that kept only some of its own stands for all of them.
        let mut kept = Vec::new();
        for part in parts {
            let share = (part.slow_count as f64 / count as f64 * may as f64).ceil() as usize;
            let of_part = std::mem::take(&mut part.slow);
            let every = of_part.len().div_ceil(share.max(1)).max(1);
            kept.extend(of_part.into_iter().step_by(every).map(|ended| SlowOperation {
                kind: (*kinds.get(ended.kind).unwrap_or(&"")).to_owned(),
                session: ended.session,
                ended_ns: ended.at_ns.saturating_sub(start_ns),
                service_ns: ended.service_ns,
                response_ns: ended.response_ns,
            }));
        }
        kept.truncate(self.left);
        self.left -= kept.len();
        kept.sort_by_key(|slow| slow.ended_ns);
        Some(SlowOperations { count, kept })
    }

    /// How many of so many may be kept.
    fn allow(&mut self, count: u64) -> usize {
        let usual = self.left as f64 / self.intervals_left.max(1) as f64;
        let mean = self.seen as f64 / self.seen_in.max(1) as f64;
        let times = if mean > 0.0 { (count as f64 / mean).max(1.0) } else { 1.0 };
        self.intervals_left = self.intervals_left.saturating_sub(1);
        (self.seen, self.seen_in) = (self.seen.saturating_add(count), self.seen_in + 1);
        ((usual * times) as usize).max(MIN_KEPT).min(self.left.div_ceil(SHARE))
    }
}

/// Moments of the interval that has not ended yet.
pub(super) struct MomentsSoFar {
    /// Absent where time is only simulated.
    watch: Option<MomentWatch>,
    begin_ns: u64,
    seen: Vec<Moment>,
    /// By how much the coordinator woke too late since it looked last.
    overslept_ns: u64,
}

impl MomentsSoFar {
    pub(super) fn new(watch: Option<MomentWatch>) -> Self {
        Self { watch, begin_ns: 0, seen: Vec::new(), overslept_ns: 0 }
    }

    /// Looks at the system, and at these threads, if it did so long enough ago. The coordinator has just woken so much too late.
    pub(super) fn look(&mut self, now_ns: u64, start_ns: u64, threads: impl Iterator<Item = i32>, late_ns: u64) {
        self.overslept_ns += late_ns;
        let Some(watch) = &mut self.watch else { return };
        let last_ns = watch.looked_at_ns();
        if last_ns.is_some_and(|last_ns| now_ns < last_ns + MOMENT_NS) {
            return;
        }
        let threads: Vec<i32> = threads.collect();
        if let Some(moment) = watch.look(now_ns, &threads, std::mem::take(&mut self.overslept_ns)) {
            if self.seen.is_empty() {
                self.begin_ns = last_ns.unwrap_or(now_ns).saturating_sub(start_ns);
            }
            self.seen.push(moment);
        }
    }

    /// Takes those of an interval that has ended, each with the instant at which it began, from the start of the load.
    pub(super) fn take(&mut self) -> Vec<(u64, Moment)> {
        let mut begin_ns = self.begin_ns;
        let begun = |moment: Moment| {
            let at_ns = begin_ns;
            begin_ns = begin_ns.saturating_add(moment.length_us.saturating_mul(1_000));
            (at_ns, moment)
        };
        std::mem::take(&mut self.seen).into_iter().map(begun).collect()
    }
}

/// So long ago moments are still to be had, if an operation ends that was due then.
const REMEMBERED_NS: u64 = 60_000_000_000;
/// An operation that took less is of no episode, and needs no moments.
const LONG_NS: u64 = 25_000_000;
/// So many intervals keep their moments in any case, since they say what is usual,
const USUAL: u32 = 60;
/// and of those that follow one in so many.
const USUAL_EVERY: u32 = 10;

/// Which moments go into the record: those in which a long operation was under way, and a sample of the others. A load of days would not fit
/// otherwise.
#[derive(Debug, Default)]
pub(super) struct MomentChoice {
    /// Moments that were not chosen, or not yet, without a gap.
    recent: VecDeque<(u64, Moment)>,
}

impl MomentChoice {
    /// Takes the moments of interval `id` and chooses, of these and of those before.
    pub(super) fn choose(
        &mut self,
        id: IntervalId,
        seen: Vec<(u64, Moment)>,
        slow: Option<&SlowOperations>,
    ) -> Option<Moments> {
        let own_ns = seen.first().map(|(begin_ns, _)| *begin_ns);
        self.recent.extend(seen);
        let long = slow.iter().flat_map(|slow| &slow.kept).filter(|slow| slow.response_ns >= LONG_NS);
        let due_ns = long.map(SlowOperation::due_ns).min();
        let from_ns = due_ns.or(own_ns.filter(|_| id < USUAL || id.is_multiple_of(USUAL_EVERY)));
        let ends_after = |(begin_ns, moment): &(u64, Moment), at_ns: u64| begin_ns + moment.length_us * 1_000 > at_ns;
        let Some(from_ns) = from_ns else {
            let newest_ns = self.recent.back().map_or(0, |(begin_ns, _)| *begin_ns);
            while self.recent.front().is_some_and(|oldest| !ends_after(oldest, newest_ns.saturating_sub(REMEMBERED_NS)))
            {
                self.recent.pop_front();
            }
            return None;
        };
        let chosen: Vec<(u64, Moment)> = self.recent.drain(..).filter(|one| ends_after(one, from_ns)).collect();
        let begin_ns = chosen.first()?.0;
        Some(Moments::of(begin_ns, &chosen.into_iter().map(|(_, moment)| moment).collect::<Vec<_>>()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use measure::EndedOperation;

    fn part(slow: u64) -> Recorded {
        let ended = |number| EndedOperation {
            kind: 1,
            session: 7,
            at_ns: 1_000 + number,
            block_touches: 1,
            service_ns: 5,
            response_ns: 9,
        };
        Recorded { slow_count: slow, slow: (0..slow.min(256)).map(ended).collect(), ..Recorded::default() }
    }

    fn kept(budget: &mut SlowBudget, slow: &[u64]) -> Option<(u64, usize)> {
        let mut parts: Vec<Recorded> = slow.iter().map(|slow| part(*slow)).collect();
        budget.choose(&mut parts, &["update", "read"], 900).map(|slow| (slow.count, slow.kept.len()))
    }

    #[test]
    fn few_are_all_kept_with_their_names_and_instants() {
        let mut budget = SlowBudget::new(10);
        assert_eq!(kept(&mut budget, &[0, 0]), None);
        let slow = budget.choose(&mut [part(2), part(1)], &["update", "read"], 900).unwrap();
        let first = SlowOperation { kind: "read".to_owned(), session: 7, ended_ns: 100, service_ns: 5, response_ns: 9 };
        assert_eq!((slow.count, slow.kept.len(), &slow.kept[0]), (3, 3, &first));
    }

    #[test]
    fn a_long_load_keeps_few_of_each_second_more_of_one_in_which_much_happened_and_never_too_many() {
        let mut budget = SlowBudget::new(3_600);
        let usual: Vec<usize> = (0..100).map(|_| kept(&mut budget, &[40, 40]).unwrap().1).collect();
        assert!(usual.iter().all(|kept| (4..=6).contains(kept)), "{usual:?}");
        let (count, much) = kept(&mut budget, &[20_000, 10]).unwrap();
        assert!(count == 20_010 && (200..=600).contains(&much), "{much}");
        let all: usize = (0..20_000).filter_map(|_| kept(&mut budget, &[200, 300])).map(|(_, kept)| kept).sum();
        assert!(all <= MAX_KEPT, "{all}");
        assert_eq!(kept(&mut budget, &[1]), Some((1, 0)), "counted all the same");
    }

    #[test]
    fn moments_stay_while_a_long_operation_was_under_way_and_now_and_then() {
        let mut choice = MomentChoice::default();
        let second = |id: u64| -> Vec<(u64, Moment)> {
            (0..20)
                .map(|at| (id * 1_000_000_000 + at * 50_000_000, Moment { length_us: 50_000, ..Moment::default() }))
                .collect()
        };
        let ended = |ended_ms: u64, response_ms: u64| SlowOperations {
            count: 1,
            kept: vec![SlowOperation {
                kind: "read".to_owned(),
                session: 0,
                ended_ns: ended_ms * 1_000_000,
                service_ns: 0,
                response_ns: response_ms * 1_000_000,
            }],
        };
        let mut chosen = |id: u32, slow: Option<SlowOperations>| {
            let moments = choice.choose(id, second(id.into()), slow.as_ref());
            moments.map(|moments| (moments.begin_ns / 1_000_000, moments.length_us.len()))
        };
        assert_eq!(chosen(0, None), Some((0, 20)), "what is usual");
        assert_eq!(chosen(59, None), Some((59_000, 20)));
        assert_eq!(chosen(61, None), None);
        assert_eq!(chosen(62, Some(ended(62_500, 20))), None, "too short for an episode");
        assert_eq!(chosen(63, None), None);
        assert_eq!(chosen(64, Some(ended(64_200, 2_000))), Some((62_200, 56)), "from when it was due");
        assert_eq!(chosen(65, Some(ended(65_100, 1_500))), Some((65_000, 20)), "nothing twice");
        (66..70).for_each(|id| assert_eq!(chosen(id, None), None));
        assert_eq!(chosen(70, None), Some((70_000, 20)));
    }
}
