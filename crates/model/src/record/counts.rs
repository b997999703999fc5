//! Counters of durations by bucket, in HdrHistogram's layout of two significant digits.

use std::ops::Range;

/// What durations beyond 2^42 ns (73 minutes) count as: one hour. Up to there each has its bucket.
pub(super) const HIGHEST_NS: u64 = 3_600 * 1_000_000_000;

/// Bits that report durations within a power of two apart. Two significant digits need 128 linear buckets per power of two, so a
/// quantile is at most 0.8 % off. The lower bound of every power-of-two-microsecond wait bucket (1000 x 2^k ns = 250 x 2^(k+2)) is
/// also the lower bound of one of these, which is why the fold into such tables loses nothing.
const LINEAR_BITS: u32 = 7;

/// HdrHistogram counts up to the next power of two beyond the longest duration, which is 2^42 ns.
const BUCKETS: usize = number_of((1 << 42) - 1) as usize + 1;

/// The place of the bucket of a duration among all buckets: below 256 ns each has its own, above that 128 of equal
/// width share each power of two.
pub(super) const fn number_of(ns: u64) -> u64 {
    let dropped = (u64::BITS - ns.leading_zeros()).saturating_sub(LINEAR_BITS + 1);
    ((dropped as u64) << LINEAR_BITS) + (ns >> dropped)
}

/// The shortest duration of a bucket by its place.
pub(super) const fn duration_in(number: u64) -> u64 {
    let dropped = (number >> LINEAR_BITS).saturating_sub(1);
    (number - (dropped << LINEAR_BITS)) << dropped
}

/// The longest duration of the bucket that begins with `ns`.
pub(super) const fn longest_beside(ns: u64) -> u64 {
    duration_in(number_of(ns) + 1) - 1
}

/// A number that counts.
pub trait Counter: Copy + Default + PartialEq + Into<u64> {
    /// The sum, or the greatest number if that is less.
    #[must_use]
    fn plus(self, more: Self) -> Self;
}

impl Counter for u32 {
    #[inline]
    fn plus(self, more: Self) -> Self {
        self.saturating_add(more)
    }
}

impl Counter for u64 {
    #[inline]
    fn plus(self, more: Self) -> Self {
        self.saturating_add(more)
    }
}

/// One counter a bucket, used or not.
///
/// It knows the range in which buckets were used. Durations of one kind lie within a few powers of two, so reading passes over a
/// small part of the counters; a histogram is read several times for each interval in which it was filled.
#[derive(Debug, Clone)]
pub struct Counts<C> {
    counters: Box<[C]>,
    used: Range<usize>,
    count: u64,
}

impl<C: Counter> Default for Counts<C> {
    fn default() -> Self {
        Self { counters: vec![C::default(); BUCKETS].into_boxed_slice(), used: 0..0, count: 0 }
    }
}

impl<C: Counter> PartialEq for Counts<C> {
    fn eq(&self, other: &Self) -> bool {
        let Self { counters, used, count } = other;
        // No counter outside of the range is used.
        (self.count, &self.used) == (*count, used) && self.counters[used.clone()] == counters[used.clone()]
    }
}

impl<C: Counter> Counts<C> {
    /// Counts one duration `n` times, which is not zero.
    #[inline]
    pub fn record_n(&mut self, ns: u64, n: C) {
        let mut number = number_of(ns) as usize;
        if number >= BUCKETS {
            number = number_of(HIGHEST_NS) as usize;
        }
        self.add(number, n);
    }

    #[inline]
    fn add(&mut self, number: usize, n: C) {
        let counter = &mut self.counters[number];
        *counter = counter.plus(n);
        if self.used.is_empty() {
            self.used = number..number + 1;
        } else if number < self.used.start {
            self.used.start = number;
        } else if number >= self.used.end {
            self.used.end = number + 1;
        }
        self.count = self.count.saturating_add(n.into());
    }

    /// How many durations were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The shortest duration of each used bucket, in rising order, and its count.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let Range { start: mut number, end } = self.used;
        std::iter::from_fn(move || {
            // Most counters in the range are zero: passed over here, and not by adapters, they cost little without optimization too.
            while number < end {
                let counter = self.counters[number];
                number += 1;
                if counter != C::default() {
                    return Some((duration_in(number as u64 - 1), counter.into()));
                }
            }
            None
        })
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.counters[std::mem::take(&mut self.used)].fill(C::default());
        self.count = 0;
    }
}

impl Counts<u64> {
    /// Adds what others counted, in counters of whatever width.
    pub fn merge<C: Counter>(&mut self, other: &Counts<C>) {
        for (ns, count) in other.iter() {
            self.add(number_of(ns) as usize, count);
        }
    }

    /// What another HdrHistogram tool counted.
    pub fn of_hdr(hdr: &hdrhistogram::Histogram<u64>) -> Self {
        let mut counts = Self::default();
        for bucket in hdr.iter_recorded() {
            counts.record_n(bucket.value_iterated_to(), bucket.count_at_value());
        }
        counts
    }

    /// The same as other HdrHistogram tools have it.
    pub fn to_hdr(&self) -> hdrhistogram::Histogram<u64> {
        let mut hdr = empty_hdr();
        self.iter().for_each(|(ns, count)| hdr.saturating_record_n(ns, count));
        hdr
    }
}

const DIGITS: u8 = 2;

/// HdrHistogram's with the same buckets.
fn empty_hdr() -> hdrhistogram::Histogram<u64> {
    hdrhistogram::Histogram::new_with_bounds(1, HIGHEST_NS, DIGITS)
        .expect("constant bounds and digits are within HdrHistogram's limits")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn there_are_as_many_buckets_as_hdr_histogram_has() {
        assert_eq!(BUCKETS, empty_hdr().distinct_values());
    }

    fn of(values: &[(u64, u64)]) -> Counts<u64> {
        let mut counts = Counts::default();
        values.iter().for_each(|(ns, n)| counts.record_n(*ns, *n));
        counts
    }

    /// Of every magnitude, those too that are longer than any bucket's.
    fn durations() -> impl Strategy<Value = Vec<(u64, u64)>> {
        let duration = (any::<u64>(), 0u32..64).prop_map(|(ns, shift)| ns >> shift);
        prop::collection::vec(
            (duration, prop_oneof![9 => 1u64..1_000, 1 => any::<u64>().prop_map(|n| n.max(1))]),
            0..60,
        )
    }

    proptest! {
        #[test]
        fn a_bucket_is_found_by_its_number(ns in 0u64..1 << 42) {
            let layout = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 1 << 43, 2).unwrap();
            prop_assert_eq!(duration_in(number_of(ns)), layout.lowest_equivalent(ns));
            prop_assert_eq!(longest_beside(duration_in(number_of(ns))), layout.highest_equivalent(ns));
            prop_assert_eq!(number_of(layout.highest_equivalent(ns)), number_of(ns));
            prop_assert_eq!(number_of(layout.highest_equivalent(ns) + 1), number_of(ns) + 1);
        }

        #[test]
        fn it_counts_as_hdr_histogram_does(values in durations()) {
            let mut hdr = empty_hdr();
            values.iter().for_each(|(ns, n)| hdr.saturating_record_n(*ns, *n));
            let counts = of(&values);
            prop_assert_eq!(counts.count(), hdr.len());
            let used: Vec<_> = hdr
                .iter_recorded()
                .map(|bucket| (hdr.lowest_equivalent(bucket.value_iterated_to()), bucket.count_at_value()))
                .collect();
            prop_assert_eq!(counts.iter().collect::<Vec<_>>(), used);
            prop_assert_eq!(counts.to_hdr(), hdr);
        }

        #[test]
        fn merged_ones_have_counted_both(mine in durations(), theirs in durations()) {
            let mut merged = of(&mine);
            merged.merge(&of(&theirs));
            let both: Vec<_> = mine.iter().chain(&theirs).copied().collect();
            prop_assert!(merged == of(&both));
        }

        #[test]
        fn nothing_is_left_of_what_was_forgotten(before in durations(), after in durations()) {
            let mut counts = of(&before);
            counts.clear();
            prop_assert!(counts == Counts::default() && counts.iter().next().is_none());
            after.iter().for_each(|(ns, n)| counts.record_n(*ns, *n));
            prop_assert!(counts == of(&after));
        }
    }
}
