//! Keeps what all connections move together below a rate.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What may be made up for after a pause.
const BURST_NS: u64 = 10_000_000;
/// Shortest and longest piece that is moved at once.
const PIECE_BYTES: (u64, u64) = (4 << 10, 1 << 20);
/// A pause that is longer looks in between whether the test is over.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A rate, or none.
#[derive(Debug)]
pub(super) struct Pace {
    bytes_per_s: Option<u64>,
    begun: Instant,
    /// When what has been moved so far is paid for.
    paid_ns: AtomicU64,
}

impl Pace {
    /// The lower of two rates; of none, none.
    pub(super) fn lowest(rates: [Option<u64>; 2]) -> Self {
        let bytes_per_s = rates.into_iter().flatten().min().map(|rate| rate.max(1));
        Self { bytes_per_s, begun: Instant::now(), paid_ns: AtomicU64::new(0) }
    }

    /// How much is moved at once, so that connections share fairly.
    pub(super) fn piece_bytes(&self) -> usize {
        let (least, most) = PIECE_BYTES;
        let piece = self.bytes_per_s.map_or(most, |rate| (rate / 50).clamp(least, most));
        usize::try_from(piece).unwrap_or(usize::MAX)
    }

    /// Books `bytes` that were moved, and waits until they are paid for or `is_over`.
    pub(super) fn pass(&self, bytes: usize, is_over: impl Fn() -> bool) {
        let Some(rate) = self.bytes_per_s else { return };
        let cost_ns = (bytes as u128 * 1_000_000_000 / u128::from(rate)).try_into().unwrap_or(u64::MAX);
        let now = self.now_ns();
        let paid = |paid: u64| paid.max(now.saturating_sub(BURST_NS)).saturating_add(cost_ns);
        let before = self.paid_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |before| Some(paid(before)));
        let until = before.map_or(now, paid);
        while !is_over() {
            let left = until.saturating_sub(self.now_ns());
            if left == 0 {
                return;
            }
            std::thread::sleep(LOOK_EVERY.min(Duration::from_nanos(left)));
        }
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_faster_than_the_lower_rate_and_nobody_waits_without_one() {
        let begun = Instant::now();
        let pace = Pace::lowest([Some(50_000_000), Some(1_000_000)]);
        assert_eq!(pace.piece_bytes(), 20_000);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..5).for_each(|_| pace.pass(10_000, || false)));
            }
        });
        assert!(begun.elapsed() >= Duration::from_millis(190), "{:?}", begun.elapsed());
        // Waits for a year, and is over.
        Pace::lowest([Some(1), None]).pass(1 << 30, || true);
        Pace::lowest([None, None]).pass(usize::MAX, || false);
    }
}
