//! The counts of a histogram, spread out for counting or packed for keeping.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Counts per bucket.
#[derive(Debug, Clone)]
pub(super) enum Buckets {
    /// One counter a bucket, used or not: 36 KiB.
    Spread(hdrhistogram::Histogram<u64>),
    /// Used buckets only: 2 or 3 bytes for each, of which a second of I/O fills a few hundred.
    Packed(Packed),
    /// Those that another program reported, by their upper edge.
    Reported(Vec<ReportedBucket>),
}

/// A bucket of a histogram that another program reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ReportedBucket {
    /// Its durations are not shorter than this.
    pub from_ns: u64,
    /// And shorter than this; a program that reports percentiles means not longer. Absent where only the other edge is reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_ns: Option<u64>,
    /// How many.
    pub count: u64,
}

/// Pairs of numbers in rising order of durations: how many buckets further a used one lies, and its count; each in as many bytes of seven bits as it needs, the last of which has its top bit clear.
#[derive(Debug, Clone, Default)]
pub(super) struct Packed {
    count: u64,
    pairs: Box<[u8]>,
}

impl Packed {
    fn of(buckets: &hdrhistogram::Histogram<u64>) -> Self {
        let mut pairs = Vec::new();
        let mut last = 0;
        for bucket in buckets.iter_recorded() {
            let number = number_of(bucket.value_iterated_to());
            push(&mut pairs, number - last);
            push(&mut pairs, bucket.count_at_value());
            last = number;
        }
        Self { count: buckets.len(), pairs: pairs.into_boxed_slice() }
    }

    /// Memory that the counts take.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.pairs.len()
    }

    /// A duration of each bucket, and its count.
    fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let (mut rest, mut number) = (&*self.pairs, 0);
        std::iter::from_fn(move || {
            let (further, count) = (pull(&mut rest)?, pull(&mut rest)?);
            number += further;
            Some((duration_in(number), count))
        })
    }
}

/// Bits that report durations within a power of two apart: two significant digits.
const LINEAR_BITS: u32 = 7;

/// The place of the bucket of a duration among all buckets: below 256 ns each has its own, above that 128 of equal
/// width share each power of two.
fn number_of(ns: u64) -> u64 {
    let dropped = (u64::BITS - ns.leading_zeros()).saturating_sub(LINEAR_BITS + 1);
    (u64::from(dropped) << LINEAR_BITS) + (ns >> dropped)
}

/// The shortest duration of a bucket by its place.
fn duration_in(number: u64) -> u64 {
    let dropped = (number >> LINEAR_BITS).saturating_sub(1);
    (number - (dropped << LINEAR_BITS)) << dropped
}

fn push(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn pull(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some(number)
}

impl Buckets {
    /// How many durations were counted.
    pub(super) fn count(&self) -> u64 {
        match self {
            Self::Spread(buckets) => buckets.len(),
            Self::Packed(packed) => packed.count,
            Self::Reported(buckets) => buckets.iter().fold(0, |sum, bucket| sum.saturating_add(bucket.count)),
        }
    }

    /// The counts to read from. `empty` makes what they are spread out in; reported buckets cannot be, and it stays empty.
    pub(super) fn spread(&self, empty: fn() -> hdrhistogram::Histogram<u64>) -> Cow<'_, hdrhistogram::Histogram<u64>> {
        match self {
            Self::Spread(buckets) => Cow::Borrowed(buckets),
            Self::Packed(packed) => {
                let mut buckets = empty();
                packed.iter().for_each(|(value, count)| buckets.saturating_record_n(value, count));
                Cow::Owned(buckets)
            }
            Self::Reported(_) => Cow::Owned(empty()),
        }
    }

    /// The counts to add to; packed ones are spread out, and reported ones cannot be.
    pub(super) fn spread_mut(
        &mut self,
        empty: fn() -> hdrhistogram::Histogram<u64>,
    ) -> Option<&mut hdrhistogram::Histogram<u64>> {
        if let Self::Packed(_) = self {
            *self = Self::Spread(self.spread(empty).into_owned());
        }
        match self {
            Self::Spread(buckets) => Some(buckets),
            Self::Packed(_) | Self::Reported(_) => None,
        }
    }

    /// Keeps the same counts in as little memory as they need.
    pub(super) fn pack(&mut self) {
        if let Self::Spread(buckets) = self {
            *self = Self::Packed(Packed::of(buckets));
        }
    }

    /// Every used bucket as (shortest duration in it, longest duration in it, count), in rising order.
    pub(super) fn used(&self) -> Vec<(u64, u64, u64)> {
        match self {
            Self::Spread(buckets) => {
                let reported = buckets.iter_recorded().map(|bucket| {
                    let value = bucket.value_iterated_to();
                    let edges = (buckets.lowest_equivalent(value), buckets.highest_equivalent(value));
                    (edges.0, edges.1, bucket.count_at_value())
                });
                reported.collect()
            }
            Self::Packed(packed) => {
                packed.iter().map(|(value, count)| (value, duration_in(number_of(value) + 1) - 1, count)).collect()
            }
            Self::Reported(buckets) => {
                let last = |bucket: &ReportedBucket| {
                    bucket.to_ns.map_or(u64::MAX, |to_ns| to_ns.saturating_sub(1).max(bucket.from_ns))
                };
                buckets.iter().map(|bucket| (bucket.from_ns, last(bucket), bucket.count)).collect()
            }
        }
    }

    /// Adds these counts to others of the same layout.
    pub(super) fn add_to(&self, sum: &mut hdrhistogram::Histogram<u64>) {
        match self {
            Self::Spread(buckets) => sum.add(buckets).expect("both sides have the same constant bounds"),
            Self::Packed(packed) => packed.iter().for_each(|(value, count)| sum.saturating_record_n(value, count)),
            Self::Reported(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_bucket_is_found_by_its_number(ns in 0u64..1 << 42) {
            let layout = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 1 << 43, 2).unwrap();
            prop_assert_eq!(duration_in(number_of(ns)), layout.lowest_equivalent(ns));
            prop_assert_eq!(number_of(layout.highest_equivalent(ns)), number_of(ns));
            prop_assert_eq!(number_of(layout.highest_equivalent(ns) + 1), number_of(ns) + 1);
        }

        #[test]
        fn numbers_come_back_as_they_were(numbers in prop::collection::vec(any::<u64>(), 0..50)) {
            let mut bytes = Vec::new();
            numbers.iter().for_each(|number| push(&mut bytes, *number));
            let mut rest = bytes.as_slice();
            let back: Vec<u64> = std::iter::from_fn(|| pull(&mut rest)).collect();
            prop_assert_eq!(back, numbers);
        }
    }
}
