//! Which numbers of outstanding requests are tried.

/// What a search looks for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchRule {
    /// Most requests that may be outstanding.
    pub most: u32,
    /// Growth of the rate, as a share, that two doublings together must bring for the search to go on.
    pub growth: f64,
    /// How far below the highest rate, as a share, a smaller depth still counts as reaching it.
    pub near: f64,
}

/// What one depth brought.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DepthMeasurement {
    /// Requests outstanding.
    pub depth: u32,
    /// Requests or bytes per second.
    pub rate: f64,
    /// Whether latency stayed within its limit.
    pub keeps_limit: bool,
}

/// Why a search found no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// More outstanding requests bring no higher rate.
    RateFlat,
    /// The next larger depth that was tried breaks the limit of latency.
    LatencyLimit {
        /// That depth.
        depth: u32,
    },
    /// There may not be more outstanding, and the rate was still growing.
    MostOutstanding,
    /// It did not come to an end.
    CutShort,
}

/// Finds the depth with the highest rate whose latency stays within a limit: doubling until the rate does not grow any more
/// or latency breaks the limit, then halving the distance between the depths that keep and break it.
#[derive(Debug, Clone)]
pub struct DepthSearch {
    rule: SearchRule,
    /// One for each depth, least first.
    readings: Vec<DepthMeasurement>,
}

/// Depths and rates on both sides of the limit that lie so near to each other need no depth between them.
const CLOSE_DEPTHS: u32 = 100;
const CLOSE_RATES: f64 = 0.005;

impl DepthSearch {
    /// Nothing is known yet.
    pub fn new(rule: SearchRule) -> Self {
        Self { rule, readings: Vec::new() }
    }

    /// The depth to try next; `None` when the answer is known.
    pub fn next(&self) -> Option<u32> {
        match (self.keeping().last(), self.breaking(), self.readings.last()) {
            (None, None, _) => Some(1),
            (None, Some(breaking), _) => (breaking.depth > 1).then_some(breaking.depth / 2),
            (Some(keeps), Some(breaks), _) => {
                let between = breaks.depth - keeps.depth;
                let close = between <= (keeps.depth / CLOSE_DEPTHS).max(1);
                let same_rate = breaks.rate <= keeps.rate * (1.0 + CLOSE_RATES);
                (!close && !same_rate).then_some(keeps.depth + between / 2)
            }
            (Some(keeps), None, _) => {
                let more = keeps.depth.saturating_mul(2).min(self.rule.most);
                (more > keeps.depth && !self.is_flat()).then_some(more)
            }
        }
    }

    /// Takes in what a depth brought; a later reading of a depth replaces the earlier one.
    pub fn record(&mut self, reading: DepthMeasurement) {
        match self.readings.binary_search_by_key(&reading.depth, |known| known.depth) {
            Ok(place) => self.readings[place] = reading,
            Err(place) => self.readings.insert(place, reading),
        }
    }

    /// The least depth that comes near the highest rate within the limit; `None` if no depth keeps it.
    pub fn best(&self) -> Option<DepthMeasurement> {
        let highest = self.keeping().map(|reading| reading.rate).reduce(f64::max)?;
        self.keeping().find(|reading| reading.rate >= highest * (1.0 - self.rule.near)).copied()
    }

    /// Why it ended.
    pub fn stopped(&self) -> Stopped {
        match (self.next(), self.best(), self.breaking()) {
            (Some(_), ..) | (None, None, None) => Stopped::CutShort,
            (None, Some(best), Some(breaking)) if breaking.rate <= best.rate * (1.0 + self.rule.growth) => {
                Stopped::RateFlat
            }
            (None, _, Some(DepthMeasurement { depth, .. })) => Stopped::LatencyLimit { depth: *depth },
            // Deeper loops were tried and are no faster.
            (None, Some(best), None) if self.readings.last().is_some_and(|last| last.depth > best.depth) => {
                Stopped::RateFlat
            }
            (None, Some(_), None) => Stopped::MostOutstanding,
        }
    }

    /// The least depth that breaks the limit. What lies above is not looked at, whatever it brought.
    fn breaking(&self) -> Option<&DepthMeasurement> {
        self.readings.iter().find(|reading| !reading.keeps_limit)
    }

    fn keeping(&self) -> impl Iterator<Item = &DepthMeasurement> {
        self.readings.iter().take_while(|reading| reading.keeps_limit)
    }

    /// Whether the last two depths brought no growth. One alone may have had bad luck.
    fn is_flat(&self) -> bool {
        let rates: Vec<f64> = self.keeping().map(|reading| reading.rate).collect();
        let Some((earlier, last)) = rates.split_at_checked(rates.len().saturating_sub(2)) else { return false };
        let highest = |rates: &[f64]| rates.iter().copied().reduce(f64::max);
        match (highest(earlier), highest(last)) {
            (Some(before), Some(after)) => after <= before * (1.0 + self.rule.growth),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RULE: SearchRule = SearchRule { most: 1024, growth: 0.01, near: 0.005 };

    /// Storage that serves so many requests a second at most, each in a second's fraction.
    fn search(cap: f64, service_s: f64, limit_s: f64, rule: SearchRule) -> DepthSearch {
        let mut search = DepthSearch::new(rule);
        for _ in 0..40 {
            let Some(depth) = search.next() else { return search };
            let rate = (f64::from(depth) / service_s).min(cap);
            search.record(DepthMeasurement {
                depth,
                rate,
                keeps_limit: f64::from(depth) / rate <= limit_s * 1.000_001,
            });
        }
        panic!("the search does not end");
    }

    #[test]
    fn a_cap_is_found_at_the_least_depth_that_reaches_it() {
        let search = search(5_000.0, 0.000_5, 0.01, RULE);
        let best = search.best().unwrap();
        assert_eq!((best.depth, best.rate), (4, 5_000.0));
        assert_eq!(search.stopped(), Stopped::RateFlat);
    }

    #[test]
    fn where_nothing_keeps_the_limit_there_is_no_answer() {
        let search = search(5_000.0, 0.02, 0.01, RULE);
        assert_eq!(search.best(), None);
        assert_eq!(search.stopped(), Stopped::LatencyLimit { depth: 1 });
    }

    #[test]
    fn what_still_grows_at_the_most_that_may_be_outstanding_is_no_ceiling() {
        let search = search(1e9, 0.000_5, 0.01, RULE);
        assert_eq!((search.best().unwrap().depth, search.stopped()), (1024, Stopped::MostOutstanding));
    }

    #[test]
    fn a_reading_that_is_taken_back_brings_the_next_one_below() {
        let mut search = search(5_000.0, 0.000_5, 0.01, RULE);
        search.record(DepthMeasurement { depth: 4, rate: 5_000.0, keeps_limit: false });
        assert_eq!(search.best().unwrap().depth, 2);
    }

    proptest! {
        #[test]
        fn the_highest_rate_within_the_limit_is_found(
            cap in 500.0..200_000.0_f64, service_us in 50.0..20_000.0_f64, limit_ms in 1.0..40.0_f64,
        ) {
            let (service_s, limit_s) = (service_us / 1e6, limit_ms / 1e3);
            let rule = SearchRule { most: 1 << 20, ..RULE };
            let found = search(cap, service_s, limit_s, rule).best().map(|best| best.rate);
            // The deepest loop within the limit; one request at a time is the least there is.
            let depth = (cap * limit_s * 1.000_001).floor();
            let planted = if service_s > limit_s * 1.000_001 || depth < 1.0 {
                None
            } else {
                Some(cap.min(depth / service_s))
            };
            match (found, planted) {
                (Some(found), Some(planted)) => prop_assert!((found / planted - 1.0).abs() < 0.011, "{found} {planted}"),
                (found, planted) => prop_assert!(found.is_none() && planted.is_none(), "{found:?} {planted:?}"),
            }
        }
    }
}
