//! The counts of a histogram, spread out for counting or packed for keeping.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::counts::{Counts, duration_in, longest_beside, number_of};

/// Counts per bucket.
#[derive(Debug, Clone)]
pub(super) enum Buckets {
    /// One counter a bucket, used or not: 36 KiB.
    Spread(Counts<u64>),
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
    fn of(buckets: &Counts<u64>) -> Self {
        let mut pairs = Vec::new();
        let mut last = 0;
        for (ns, count) in buckets.iter() {
            let number = number_of(ns);
            push(&mut pairs, number - last);
            push(&mut pairs, count);
            last = number;
        }
        Self { count: buckets.count(), pairs: pairs.into_boxed_slice() }
    }

    /// Memory that the counts take.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.pairs.len()
    }

    /// The shortest duration of each bucket, and its count.
    fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let (mut rest, mut number) = (&*self.pairs, 0);
        std::iter::from_fn(move || {
            let (further, count) = (pull(&mut rest)?, pull(&mut rest)?);
            number += further;
            Some((duration_in(number), count))
        })
    }

    fn spread(&self) -> Counts<u64> {
        let mut buckets = Counts::default();
        self.iter().for_each(|(ns, count)| buckets.record_n(ns, count));
        buckets
    }
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
            Self::Spread(buckets) => buckets.count(),
            Self::Packed(packed) => packed.count,
            Self::Reported(buckets) => buckets.iter().fold(0, |sum, bucket| sum.saturating_add(bucket.count)),
        }
    }

    /// The counts to read from; reported buckets have none.
    pub(super) fn spread(&self) -> Option<Cow<'_, Counts<u64>>> {
        match self {
            Self::Spread(buckets) => Some(Cow::Borrowed(buckets)),
            Self::Packed(packed) => Some(Cow::Owned(packed.spread())),
            Self::Reported(_) => None,
        }
    }

    /// The counts to add to; packed ones are spread out, and reported ones cannot be.
    pub(super) fn spread_mut(&mut self) -> Option<&mut Counts<u64>> {
        if let Self::Packed(packed) = self {
            *self = Self::Spread(packed.spread());
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
        let used = |(ns, count)| (ns, longest_beside(ns), count);
        match self {
            Self::Spread(buckets) => buckets.iter().map(used).collect(),
            Self::Packed(packed) => packed.iter().map(used).collect(),
            Self::Reported(buckets) => {
                let last = |bucket: &ReportedBucket| {
                    bucket.to_ns.map_or(u64::MAX, |to_ns| to_ns.saturating_sub(1).max(bucket.from_ns))
                };
                buckets.iter().map(|bucket| (bucket.from_ns, last(bucket), bucket.count)).collect()
            }
        }
    }

    /// Adds these counts to others.
    pub(super) fn add_to(&self, sum: &mut Counts<u64>) {
        match self {
            Self::Spread(buckets) => sum.merge(buckets),
            Self::Packed(packed) => packed.iter().for_each(|(ns, count)| sum.record_n(ns, count)),
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
        fn numbers_come_back_as_they_were(numbers in prop::collection::vec(any::<u64>(), 0..50)) {
            let mut bytes = Vec::new();
            numbers.iter().for_each(|number| push(&mut bytes, *number));
            let mut rest = bytes.as_slice();
            let back: Vec<u64> = std::iter::from_fn(|| pull(&mut rest)).collect();
            prop_assert_eq!(back, numbers);
        }
    }
}
