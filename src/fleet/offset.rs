//! Another host's clock, from questions and answers.

use model::record::ClockOffset;

/// A question for the time and its answer, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// When it was sent, by our monotonic clock.
    pub sent_ns: u64,
    /// When the answer came, by the same.
    pub received_ns: u64,
    /// When it was answered, by the other's monotonic clock.
    pub answered_ns: u64,
    /// The same since 1970 by the other host's clock.
    pub answered_utc_ns: u64,
    /// When the answer came, since 1970 by our clock.
    pub received_utc_ns: u64,
}

/// What has to be added to our clocks to have the other's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offset {
    /// To the monotonic clock, in nanoseconds.
    pub monotonic_ns: i128,
    /// To the time since 1970.
    pub utc_ns: i64,
    /// Half of the round trip: the true offset is no farther away, whatever the two ways were.
    pub bound_ns: u64,
}

impl Offset {
    /// By the exchange of the least round trip, whose answer can have been given at no other time than between its two ends: the
    /// rule of NTP's clock filter (RFC 5905, section 10). None of no exchanges.
    pub fn of(exchanges: &[Exchange]) -> Option<Self> {
        let round_trip = |exchange: &Exchange| exchange.received_ns.saturating_sub(exchange.sent_ns);
        let best = exchanges.iter().min_by_key(|exchange| round_trip(exchange))?;
        let half_ns = round_trip(best) / 2;
        let between =
            |answered: u64, received: u64| i128::from(answered) - (i128::from(received) - i128::from(half_ns));
        let utc_ns = between(best.answered_utc_ns, best.received_utc_ns);
        Some(Self {
            monotonic_ns: between(best.answered_ns, best.received_ns),
            utc_ns: i64::try_from(utc_ns).unwrap_or(if utc_ns < 0 { i64::MIN } else { i64::MAX }),
            bound_ns: half_ns.max(1),
        })
    }

    /// The reading of our monotonic clock when the other's reads `theirs_ns`; none before our clock began.
    pub fn ours(&self, theirs_ns: u64) -> Option<u64> {
        u64::try_from(i128::from(theirs_ns) - self.monotonic_ns).ok()
    }

    /// For the record, before a load.
    pub fn recorded(&self) -> ClockOffset {
        ClockOffset { before_ns: self.utc_ns, after_ns: None, bound_ns: self.bound_ns }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn exchange(offset_ns: i64, sent_ns: u64, there_ns: u64, back_ns: u64) -> Exchange {
        let answered = (sent_ns + there_ns).saturating_add_signed(offset_ns);
        Exchange {
            sent_ns,
            received_ns: sent_ns + there_ns + back_ns,
            answered_ns: answered,
            answered_utc_ns: answered + 5_000,
            received_utc_ns: sent_ns + there_ns + back_ns + 5_000,
        }
    }

    #[test]
    fn nothing_is_known_without_an_exchange() {
        assert_eq!(Offset::of(&[]), None);
    }

    proptest! {
        #[test]
        fn the_truth_is_within_the_bound(
            truth in -1_000_000_000_i64..1_000_000_000,
            ways in prop::collection::vec((0..5_000_000_u64, 0..5_000_000_u64), 1..50),
        ) {
            let exchanges: Vec<Exchange> =
                ways.iter().zip(1_u64..).map(|((there, back), at)| exchange(truth, at * 10_000_000_000, *there, *back)).collect();
            let offset = Offset::of(&exchanges).unwrap();
            let least = ways.iter().map(|(there, back)| there + back).min().unwrap();
            prop_assert_eq!(offset.bound_ns, (least / 2).max(1));
            let error = (offset.monotonic_ns - i128::from(truth)).unsigned_abs();
            prop_assert!(error <= u128::from(least.div_ceil(2)), "{error} {least}");
            prop_assert!((i128::from(offset.utc_ns) - offset.monotonic_ns).abs() <= 1);
            let theirs = 20_000_000_000_u64;
            let ours = i128::from(offset.ours(theirs).unwrap());
            prop_assert_eq!(ours + offset.monotonic_ns, i128::from(theirs));
        }
    }
}
