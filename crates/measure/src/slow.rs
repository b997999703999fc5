//! Which operations of a thread were slow, and a sample of them: bounded in memory, at one comparison an operation.

use std::collections::VecDeque;

use model::record::{Histogram, LONG_NS};

/// Long operations of one interval that a thread keeps, and other slow ones.
pub const KEPT_LONG: usize = 256;
/// The same of other slow operations.
pub const KEPT_SHORT: usize = 32;
/// An operation is slow beyond this quantile of an interval,
const QUANTILE: f64 = 0.999;
/// and beyond so many times its median.
const TIMES_MEDIAN: u64 = 2;
/// The least threshold of so many intervals holds: a stall of less than a minute must not make the rest of itself usual.
const REMEMBERED: usize = 60;
/// Before anything is known of what is usual, operations beyond this are slow: shorter ones are of no episode.
const FIRST_NS: u64 = 10_000_000;

/// Some of many operations, each with the same chance (Vitter 1985, algorithm R).
#[derive(Debug, Clone, Default)]
pub struct Reservoir {
    /// How many there were.
    pub count: u64,
    /// Those that are kept.
    pub kept: Vec<EndedOperation>,
}

impl Reservoir {
    /// Takes an operation; `chance` is any number, by which it is decided whether it displaces one of `most`.
    pub fn add(&mut self, ended: EndedOperation, most: usize, chance: u64) {
        self.count += 1;
        if self.kept.len() < most {
            self.kept.push(ended);
        } else if let Some(place) = self.kept.get_mut((chance % self.count) as usize) {
            *place = ended;
        }
    }
}

/// Slow operations of an interval.
#[derive(Debug, Clone, Default)]
pub struct SlowOnes {
    /// Those of [`LONG_NS`] or more.
    pub long: Reservoir,
    /// The others.
    pub short: Reservoir,
}

/// What is slow so far, and those that were.
#[derive(Debug, Clone)]
pub struct SlowSample {
    /// Slow is what takes longer.
    above_ns: u64,
    thresholds: VecDeque<u64>,
    seen: SlowOnes,
    chance: u64,
}

/// An operation that has ended well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedOperation {
    /// Its type's number.
    pub kind: usize,
    /// The session whose it was: its number in the step.
    pub session: u32,
    /// When it ended, on the clock of the process.
    pub at_ns: u64,
    /// Blocks that it touched.
    pub block_touches: u64,
    /// From sent to finished.
    pub service_ns: u64,
    /// From due to finished.
    pub response_ns: u64,
}

impl Default for SlowSample {
    fn default() -> Self {
        let (thresholds, seen) = (VecDeque::new(), SlowOnes::default());
        Self { above_ns: FIRST_NS, thresholds, seen, chance: 0x9E37_79B9_7F4A_7C15 }
    }
}

impl SlowSample {
    /// Looks at an operation.
    #[inline]
    pub fn see(&mut self, ended: &EndedOperation) {
        if ended.response_ns > self.above_ns {
            self.keep(*ended);
        }
    }

    #[cold]
    fn keep(&mut self, ended: EndedOperation) {
        // xorshift64 (Marsaglia 2003): which ones are kept need not be hard to guess.
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        if ended.response_ns >= LONG_NS {
            self.seen.long.add(ended, KEPT_LONG, self.chance);
        } else {
            self.seen.short.add(ended, KEPT_SHORT, self.chance);
        }
    }

    /// Ends an interval in which all operations took `response`: gives the slow ones, and learns from it what is slow from now on.
    pub fn end_interval(&mut self, response: &Histogram) -> SlowOnes {
        if let [Some(median_ns), Some(high_ns)] = response.quantiles_ns(&[0.5, QUANTILE])[..] {
            if self.thresholds.len() == REMEMBERED {
                self.thresholds.pop_front();
            }
            self.thresholds.push_back(high_ns.max(median_ns.saturating_mul(TIMES_MEDIAN)));
        }
        self.above_ns = self.thresholds.iter().copied().min().unwrap_or(FIRST_NS);
        std::mem::take(&mut self.seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(response_ns: u64) -> EndedOperation {
        EndedOperation { kind: 0, session: 1, at_ns: 5, block_touches: 1, service_ns: response_ns, response_ns }
    }

    fn interval(sample: &mut SlowSample, times: &[(u64, u64)]) -> (u64, usize, u64) {
        let mut response = Histogram::default();
        for (ns, count) in times {
            (0..*count).for_each(|_| sample.see(&ended(*ns)));
            response.record_n(*ns, *count);
        }
        let SlowOnes { long, short } = sample.end_interval(&response);
        let kept: Vec<u64> = long.kept.iter().chain(&short.kept).map(|kept| kept.response_ns).collect();
        (long.count + short.count, kept.len(), kept.iter().copied().min().unwrap_or(0))
    }

    #[test]
    fn what_is_slow_follows_from_the_intervals_before_and_a_stall_does_not_make_itself_usual() {
        let mut sample = SlowSample::default();
        const USUAL: (u64, u64) = (100_000, 9_999);
        let first = interval(&mut sample, &[USUAL, (900_000, 1), (30_000_000, 2)]);
        assert_eq!(first, (2, 2, 30_000_000), "at first nothing is usual");
        for _ in 0..20 {
            let stall = [(80_000, 100), (500_000_000, 32)];
            assert_eq!(interval(&mut sample, &stall), (32, 32, 500_000_000));
        }
        assert_eq!(interval(&mut sample, &[USUAL, (900_000, 1)]), (1, 1, 900_000));
        assert_eq!(interval(&mut sample, &[(150_000, 50)]), (0, 0, 0), "less than twice the median");
        assert_eq!(interval(&mut sample, &[]), (0, 0, 0));
    }

    #[test]
    fn many_are_counted_and_a_fair_sample_of_them_is_kept() {
        let mut sample = SlowSample::default();
        let mut seen = 0;
        for round in 0..40_u64 {
            sample.see(&ended(FIRST_NS + 1));
            for number in 0..10_000 {
                sample.see(&ended(LONG_NS + 1 + round * 10_000 + number));
            }
            let SlowOnes { long, short } = sample.end_interval(&Histogram::default());
            assert_eq!((long.count, long.kept.len()), (10_000, KEPT_LONG));
            assert_eq!((short.count, short.kept.len()), (1, 1), "many long ones do not displace it");
            seen += long.kept.iter().filter(|kept| kept.response_ns - LONG_NS - round * 10_000 <= 5_000).count();
        }
        // Half of 10,240 on average, and by chance 2 % off at most once in 10,000 times; the sequence is fixed.
        assert!((4_900..5_340).contains(&seen), "{seen}");
    }
}
