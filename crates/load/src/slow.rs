//! What goes into the record of slow operations and of what the system did meanwhile.
//!
//! Of short operations few are kept in each interval, of long ones as many as fit, and each says for how many it stands.

use std::collections::{BTreeMap, VecDeque};

use measure::os::moments::{MOMENT_NS, MomentWatch};
use measure::{EndedOperation, Recorded, Reservoir, SlowOnes};
use model::record::{Interval, LONG_NS, Look, Looks, Moment, Moments, SlowOperation, SlowOperations};
use targets::ServerLooks;

/// Most long operations of a step that are kept, and other slow ones: about a megabyte of text together.
const MAX_LONG: usize = 6_000;
const MAX_SHORT: usize = 4_000;
/// A single interval takes no more of what is left for long ones than one part in so many.
const SHARE: usize = 4;
/// Short ones that were not taken may be taken later, up to so many.
const MAX_CREDIT: f64 = 64.0;

/// How many may still be kept.
#[derive(Debug)]
pub(super) struct SlowBudget {
    long_left: usize,
    short_left: usize,
    intervals_left: u64,
    /// Short ones that may be kept by now; a fraction in each interval of a long load.
    credit: f64,
}

impl SlowBudget {
    /// For a step of so many intervals, as far as that is known.
    pub(super) fn new(intervals: u64) -> Self {
        Self { long_left: MAX_LONG, short_left: MAX_SHORT, intervals_left: intervals, credit: 0.0 }
    }

    /// Takes what the lanes kept of an interval, and chooses; nothing where nothing was slow.
    pub(super) fn choose(&mut self, parts: &mut [Recorded], kinds: &[&str], start_ns: u64) -> Option<SlowOperations> {
        let ones = parts.iter_mut().map(|part| std::mem::take(&mut part.slow)).collect();
        self.choose_of(ones, kinds, start_ns)
    }

    /// The same of what each lane kept besides of the time after the window.
    pub(super) fn choose_late(
        &mut self,
        late: impl Iterator<Item = Reservoir>,
        kinds: &[&str],
        start_ns: u64,
    ) -> Option<SlowOperations> {
        let ones = late.map(|long| SlowOnes { long, ..SlowOnes::default() }).collect();
        self.choose_of(ones, kinds, start_ns)
    }

    fn choose_of(&mut self, ones: Vec<SlowOnes>, kinds: &[&str], start_ns: u64) -> Option<SlowOperations> {
        self.credit += self.short_left as f64 / self.intervals_left.max(1) as f64;
        self.credit = self.credit.min(MAX_CREDIT);
        self.intervals_left = self.intervals_left.saturating_sub(1);
        let may = (self.credit as usize).min(self.short_left);
        let long = drawn(ones.iter().map(|ones| &ones.long), self.long_left.div_ceil(SHARE));
        let short = drawn(ones.iter().map(|ones| &ones.short), may);
        self.long_left -= long.len();
        self.short_left -= short.len();
        self.credit -= short.len() as f64;
        let count = ones.iter().map(|ones| ones.long.count + ones.short.count).sum();
        let slow = |(ended, stands_for): (EndedOperation, f64)| SlowOperation {
            kind: (*kinds.get(ended.kind).unwrap_or(&"")).to_owned(),
            session: ended.session,
            ended_ns: ended.at_ns.saturating_sub(start_ns),
            service_ns: ended.service_ns,
            response_ns: ended.response_ns,
            stands_for,
        };
        let mut kept: Vec<SlowOperation> = long.into_iter().chain(short).map(slow).collect();
        kept.sort_by_key(|slow| slow.ended_ns);
        (count > 0).then_some(SlowOperations { count, kept })
    }
}

/// At most so many of all lanes' operations, each with how many it stands for; together they stand for all.
fn drawn<'a>(lanes: impl Iterator<Item = &'a Reservoir> + Clone, most: usize) -> Vec<(EndedOperation, f64)> {
    let all: f64 = lanes.clone().map(|lane| lane.count as f64).sum();
    // An operation of a lane that kept only some of its own stands for more of them.
    let weighted = |lane: &'a Reservoir| {
        let weight = lane.count as f64 / lane.kept.len().max(1) as f64;
        lane.kept.iter().map(move |ended| (*ended, weight))
    };
    let mut chosen: Vec<(EndedOperation, f64)> = lanes.flat_map(weighted).collect();
    if chosen.len() > most {
        // The bits of an instant in nanoseconds are as good as chance, and the same load draws the same again.
        chosen.sort_by_key(|(ended, _)| (ended.at_ns ^ u64::from(ended.session)).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        chosen.truncate(most);
    }
    let kept: f64 = chosen.iter().map(|(_, weight)| weight).sum();
    chosen.iter_mut().for_each(|(_, weight)| *weight *= all / kept.max(f64::MIN_POSITIVE));
    chosen
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
/// So many intervals of the window keep their moments in any case, since they say what is usual,
const USUAL: u32 = 60;
/// and of those that follow one in so many.
const USUAL_EVERY: u32 = 10;

/// What was seen at an instant or during a short span.
pub(super) trait Seen: Clone {
    /// How long after its beginning it is over.
    fn length_ns(&self) -> u64;
}

impl Seen for Moment {
    fn length_ns(&self) -> u64 {
        self.length_us.saturating_mul(1_000)
    }
}

impl Seen for Look {
    /// An instant, and the next one comes soon.
    fn length_ns(&self) -> u64 {
        1
    }
}

/// Which intervals say what is usual.
#[derive(Debug, Default)]
pub(super) struct UsualIntervals {
    /// Intervals of the window so far.
    intervals: u32,
}

impl UsualIntervals {
    /// Takes the next interval.
    pub(super) fn next(&mut self, is_warmup: bool) -> bool {
        let is_usual = !is_warmup && (self.intervals < USUAL || self.intervals.is_multiple_of(USUAL_EVERY));
        self.intervals = self.intervals.saturating_add(u32::from(!is_warmup));
        is_usual
    }
}

/// Which moments or looks go into the record: those in which a long operation was under way, and a sample of the others. A load of days would
/// not fit otherwise.
#[derive(Debug)]
pub(super) struct Choice<T> {
    /// Those of the last minute without a gap, each with whether it is in the record.
    recent: VecDeque<(u64, T, bool)>,
}

impl<T> Default for Choice<T> {
    fn default() -> Self {
        Self { recent: VecDeque::new() }
    }
}

impl<T: Seen> Choice<T> {
    /// What is still known of the time from then on, whether it is in the record or not.
    fn since(&self, from_ns: u64) -> Vec<(u64, T)> {
        let known = self.recent.iter().filter(|(begin_ns, one, _)| begin_ns.saturating_add(one.length_ns()) > from_ns);
        known.map(|(begin_ns, one, _)| (*begin_ns, one.clone())).collect()
    }

    /// Takes what was seen in an interval and chooses, of this and of what was before. Where some of those before are in the record already, they
    /// come again, for there is no gap in a list.
    pub(super) fn choose(
        &mut self,
        is_usual: bool,
        seen: Vec<(u64, T)>,
        slow: Option<&SlowOperations>,
    ) -> Vec<(u64, T)> {
        let own_ns = seen.first().map(|(begin_ns, _)| *begin_ns).filter(|_| is_usual);
        self.recent.extend(seen.into_iter().map(|(begin_ns, one)| (begin_ns, one, false)));
        let long = slow.iter().flat_map(|slow| &slow.kept).filter(|slow| slow.response_ns >= LONG_NS);
        let due_ns = long.map(SlowOperation::due_ns).min();
        let from_ns = due_ns.into_iter().chain(own_ns).min();
        let ends_after = |begin_ns: u64, one: &T, at_ns: u64| begin_ns.saturating_add(one.length_ns()) > at_ns;
        let newest_ns = self.recent.back().map_or(0, |(begin_ns, ..)| *begin_ns);
        let is_old =
            |(begin_ns, one, _): &(u64, T, bool)| !ends_after(*begin_ns, one, newest_ns.saturating_sub(REMEMBERED_NS));
        while self.recent.front().is_some_and(is_old) {
            self.recent.pop_front();
        }
        let Some(from_ns) = from_ns else { return Vec::new() };
        let is_new = |(begin_ns, one, is_written): &(u64, T, bool)| !is_written && ends_after(*begin_ns, one, from_ns);
        let first = self.recent.iter().position(is_new).unwrap_or(self.recent.len());
        let chosen = self.recent.iter_mut().skip(first).map(|(begin_ns, one, is_written)| {
            *is_written = true;
            (*begin_ns, one.clone())
        });
        chosen.collect()
    }
}

/// Which of what was seen besides operations goes into the record.
#[derive(Debug, Default)]
pub(super) struct SeenChoice {
    usual: UsualIntervals,
    moments: Choice<Moment>,
    looks: BTreeMap<String, Choice<Look>>,
}

impl SeenChoice {
    /// Adds to the last interval of a window what was under way when that closed and took long, with what was seen until then.
    pub(super) fn add_late(&self, last: &mut Interval, late: SlowOperations) {
        let due_ns = late.kept.iter().map(SlowOperation::due_ns).min().unwrap_or(u64::MAX);
        let from_ns = last.moments.as_ref().map_or(due_ns, |moments| moments.begin_ns.min(due_ns));
        let moments = self.moments.since(from_ns);
        if let Some((begin_ns, _)) = moments.first() {
            let plain: Vec<Moment> = moments.iter().map(|(_, moment)| *moment).collect();
            last.moments = Some(Moments::of(*begin_ns, &plain));
        }
        let looks = self.looks.iter().map(|(node, choice)| (node, choice.since(from_ns)));
        last.looks = looks.filter(|(_, seen)| !seen.is_empty()).map(|(node, seen)| Looks::of(node, &seen)).collect();
        let slow = last.slow.get_or_insert_default();
        slow.count += late.count;
        slow.kept.extend(late.kept);
    }

    /// Takes what was seen in an interval: moments of the system, and looks at servers. The load began at `start_ns` on the clock.
    pub(super) fn choose(
        &mut self,
        is_warmup: bool,
        moments: Vec<(u64, Moment)>,
        looks: Vec<ServerLooks>,
        slow: Option<&SlowOperations>,
        since_start_ns: impl Fn(u64) -> Option<u64>,
    ) -> (Option<Moments>, Vec<Looks>) {
        let is_usual = self.usual.next(is_warmup);
        let moments = self.moments.choose(is_usual, moments, slow);
        let first_ns = moments.first().map(|(begin_ns, _)| *begin_ns);
        let plain: Vec<Moment> = moments.into_iter().map(|(_, moment)| moment).collect();
        let of_server = |ServerLooks { node, looks }: ServerLooks| {
            let since_start = |(at_ns, look)| Some((since_start_ns(at_ns)?, look));
            let seen = looks.into_iter().filter_map(since_start).collect();
            let chosen = self.looks.entry(node.clone()).or_default().choose(is_usual, seen, slow);
            (!chosen.is_empty()).then(|| Looks::of(&node, &chosen))
        };
        let looks = looks.into_iter().filter_map(of_server).collect();
        (first_ns.map(|begin_ns| Moments::of(begin_ns, &plain)), looks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(number: u64, response_ns: u64) -> EndedOperation {
        EndedOperation { kind: 1, session: 7, at_ns: 1_000 + number, block_touches: 1, service_ns: 5, response_ns }
    }

    /// What a lane recorded that saw so many slow operations, of which so many were long.
    fn part(short: u64, long: u64) -> Recorded {
        let of = |count: u64, most: u64, response_ns| Reservoir {
            count,
            kept: (0..count.min(most)).map(|number| ended(number, response_ns)).collect(),
        };
        let slow = SlowOnes { long: of(long, 256, LONG_NS), short: of(short, 32, 9) };
        Recorded { slow, ..Recorded::default() }
    }

    /// How many were slow, how many are recorded, and for how many these stand.
    fn kept(budget: &mut SlowBudget, slow: &[(u64, u64)]) -> Option<(u64, usize, u64)> {
        let mut parts: Vec<Recorded> = slow.iter().map(|(short, long)| part(*short, *long)).collect();
        let chosen = budget.choose(&mut parts, &["update", "read"], 900)?;
        let stand_for: f64 = chosen.kept.iter().map(|slow| slow.stands_for).sum();
        Some((chosen.count, chosen.kept.len(), stand_for.round() as u64))
    }

    #[test]
    fn few_are_all_kept_with_their_names_and_instants() {
        let mut budget = SlowBudget::new(10);
        assert_eq!(kept(&mut budget, &[(0, 0), (0, 0)]), None);
        let slow = budget.choose(&mut [part(2, 0), part(1, 0)], &["update", "read"], 900).unwrap();
        let first = SlowOperation {
            kind: "read".to_owned(),
            session: 7,
            ended_ns: 100,
            service_ns: 5,
            response_ns: 9,
            stands_for: 1.0,
        };
        assert_eq!((slow.count, slow.kept.len(), &slow.kept[0]), (3, 3, &first));
    }

    #[test]
    fn a_load_of_hours_keeps_few_of_each_second_to_its_end_and_all_long_ones_of_a_stall() {
        let mut budget = SlowBudget::new(3_600);
        let lanes = vec![(40, 0); 64];
        for second in 0..3_600 {
            let (count, kept, stand_for) = kept(&mut budget, &lanes).unwrap();
            assert!(count == 2_560 && kept <= 2, "{kept} in second {second}");
            assert!(kept == 0 || stand_for == 2_560, "{stand_for}");
        }
        assert!(budget.short_left < 10, "{}", budget.short_left);
        let (count, kept, stand_for) = kept(&mut budget, &[(100, 8), (0, 2_000)]).unwrap();
        assert!(count == 2_108 && kept >= 264 && (2_008..=2_108).contains(&stand_for), "{kept} {stand_for}");
    }

    #[test]
    fn never_too_many_are_kept() {
        let mut budget = SlowBudget::new(60);
        let all: usize = (0..5_000).filter_map(|_| kept(&mut budget, &[(500, 900)])).map(|(_, kept, _)| kept).sum();
        assert!((5_000..=MAX_LONG + MAX_SHORT).contains(&all), "{all}");
        assert_eq!(kept(&mut budget, &[(1, 1)]), Some((2, 0, 0)), "counted all the same");
    }

    fn second(id: u64) -> Vec<(u64, Moment)> {
        let moment =
            |at: u64| (id * 1_000_000_000 + at * 50_000_000, Moment { length_us: 50_000, ..Moment::default() });
        (0..20).map(moment).collect()
    }

    fn slow(ended_ms: u64, response_ms: u64) -> SlowOperations {
        let kept = vec![SlowOperation {
            kind: "read".to_owned(),
            session: 0,
            ended_ns: ended_ms * 1_000_000,
            service_ns: 0,
            response_ns: response_ms * 1_000_000,
            stands_for: 1.0,
        }];
        SlowOperations { count: 1, kept }
    }

    #[test]
    fn moments_stay_while_a_long_operation_was_under_way_and_now_and_then() {
        let mut choice = SeenChoice::default();
        let mut chosen = |id: u64, slow: Option<SlowOperations>| {
            let looks: Vec<(u64, Look)> = second(id).iter().map(|(at_ns, _)| (at_ns + 77, Look::default())).collect();
            let looks = vec![ServerLooks { node: "db1".to_owned(), looks }];
            let since_start = |at_ns: u64| at_ns.checked_sub(77);
            let (moments, looks) = choice.choose(id < 2, second(id), looks, slow.as_ref(), since_start);
            let of_looks = looks.first().map(|looks| (looks.at_us[0] / 1_000, looks.at_us.len()));
            let chosen = moments.map(|moments| (moments.begin_ns / 1_000_000, moments.length_us.len()));
            // A moment ends after its beginning, and a look is an instant.
            let late =
                |chosen: (u64, usize)| of_looks == Some(chosen) || of_looks == Some((chosen.0 + 50, chosen.1 - 1));
            assert!(chosen.map_or(of_looks.is_none(), late), "{chosen:?} {of_looks:?}");
            chosen
        };
        assert_eq!((chosen(0, None), chosen(1, None)), (None, None), "of a warm-up nothing is usual");
        for id in 2..62 {
            assert_eq!(chosen(id, None), Some((id * 1_000, 20)), "what is usual");
        }
        assert_eq!(chosen(62, None), Some((62_000, 20)));
        assert_eq!(chosen(63, Some(slow(63_500, 20))), None, "too short for an episode");
        assert_eq!(chosen(64, None), None);
        assert_eq!(chosen(65, Some(slow(65_200, 1_000))), Some((64_200, 36)), "from when it was due");
        assert_eq!(chosen(66, Some(slow(66_100, 700))), Some((66_000, 20)), "nothing twice");
        (67..72).for_each(|id| assert_eq!(chosen(id, None), None));
        assert_eq!(chosen(72, None), Some((72_000, 20)));
        let after_usual = chosen(73, Some(slow(73_900, 4_000)));
        assert_eq!(after_usual, Some((69_900, 82)), "from when it was due, what is usual among it again");
        (74..82).for_each(|id| assert_eq!(chosen(id, None), None));
        assert_eq!(chosen(150, Some(slow(150_900, 80_000))), Some((150_000, 20)), "no more than a minute");
    }
}
