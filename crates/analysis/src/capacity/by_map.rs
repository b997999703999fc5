//! A demand held against a map: each of its windows lies inside of the line, outside, or where nothing is known.

use super::demand::Window;
use super::{Demand, Rates, Share};
use crate::{MapAnswer, MapPlace};

/// What the windows of a demand come to on a map.
#[derive(Debug, Clone, PartialEq)]
pub struct MapFit {
    /// The windows: those outside, then those that are not known, then those inside, of each the one with the least headroom first.
    pub windows: Vec<PlacedWindow>,
}

/// A window on a map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlacedWindow {
    /// When it began; absent where the demand is the sum of several databases.
    pub from: Option<jiff::Timestamp>,
    /// Its length, in seconds.
    pub seconds: f64,
    /// Its rates.
    pub rates: Rates,
    /// Where it lies. Of requests larger than the map's each counts as so many more where it is to be inside, of smaller ones as so much
    /// less where it is to be outside.
    pub place: MapPlace,
    /// Why that is not known; absent where it is.
    pub not_placed: Option<NotPlaced>,
}

/// Why it is not known where a window lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NotPlaced {
    /// It does not report reads, writes or bytes.
    NotReported,
    /// No mix of reads and writes near it was measured.
    NotMeasured,
    /// It would be one or the other with requests of the map's size.
    OtherSize,
    /// It is the sum of what several databases need at different times, and beyond the line.
    Sum,
    /// It is too close to the line.
    TooClose,
}

impl NotPlaced {
    /// All.
    pub const ALL: [Self; 5] = [Self::TooClose, Self::NotMeasured, Self::OtherSize, Self::NotReported, Self::Sum];
}

impl PlacedWindow {
    fn of(window: &Window, map: &MapAnswer) -> Self {
        let (place, not_placed) = placed(window, map);
        Self { from: window.from, seconds: window.seconds, rates: window.rates, place, not_placed }
    }

    /// In which order windows are listed.
    fn rank(&self) -> (u8, f64) {
        let kind = match self.place {
            MapPlace::Outside { .. } => 0,
            MapPlace::Unknown { .. } => 1,
            MapPlace::Inside { .. } => 2,
        };
        (kind, self.place.times().unwrap_or(f64::INFINITY))
    }
}

fn placed(window: &Window, map: &MapAnswer) -> (MapPlace, Option<NotPlaced>) {
    let unknown = |times, why| (MapPlace::Unknown { times }, Some(why));
    let Rates { reads: Some(reads), writes: Some(writes), .. } = window.rates else {
        return unknown(None, NotPlaced::NotReported);
    };
    if reads + writes <= 0.0 {
        return (MapPlace::Inside { times: None }, None);
    }
    let same = map.place_of(reads, writes);
    let (Some(size), Some(block_bytes)) = (window.rates.request_bytes(), map.block_bytes) else {
        return unknown(same.times(), NotPlaced::NotReported);
    };
    let relative = size / f64::from(block_bytes);
    let as_many = |times: f64| map.place_of(reads * times, writes * times);
    if let MapPlace::Inside { times } = as_many(relative.max(1.0)) {
        // What was measured to meet the limit is inside, wherever the line between points is drawn.
        return (MapPlace::Inside { times: times.map(|times| times.max(1.0)) }, None);
    }
    if let MapPlace::Outside { times } = as_many(relative.min(1.0)) {
        // Several databases need not ask for all that at one time.
        return match window.from {
            Some(_) => (MapPlace::Outside { times: times.map(|times| times.min(1.0)) }, None),
            None => unknown(times, NotPlaced::Sum),
        };
    }
    match same {
        MapPlace::Unknown { times: None } => unknown(None, NotPlaced::NotMeasured),
        MapPlace::Unknown { times } => unknown(times, NotPlaced::TooClose),
        MapPlace::Inside { times } | MapPlace::Outside { times } => unknown(times, NotPlaced::OtherSize),
    }
}

impl MapFit {
    pub(super) fn of(demand: &Demand, map: &MapAnswer) -> Self {
        let mut windows: Vec<PlacedWindow> =
            demand.windows_of().iter().map(|window| PlacedWindow::of(window, map)).collect();
        windows.sort_by(|one, other| {
            let ((kind, times), (other_kind, other_times)) = (one.rank(), other.rank());
            kind.cmp(&other_kind).then(times.total_cmp(&other_times))
        });
        Self { windows }
    }

    /// How many windows are inside, outside, and not known.
    pub fn counts(&self) -> [usize; 3] {
        let of = |kind| self.windows.iter().filter(|window| window.rank().0 == kind).count();
        [of(2), of(0), of(1)]
    }

    /// The line as a multiple of the window inside of it that comes closest, or of the one that lies farthest outside.
    pub fn times(&self, is_inside: bool) -> Option<f64> {
        let kind = if is_inside { 2 } else { 0 };
        self.windows.iter().find(|window| window.rank().0 == kind)?.place.times()
    }

    /// Whether what is to be carried is inside (`Some(true)`), or so much outside that it is not (`Some(false)`).
    pub(super) fn answer(&self, share: Share) -> Option<bool> {
        let seconds = |kinds: &[u8]| -> f64 {
            self.windows.iter().filter(|window| kinds.contains(&window.rank().0)).map(|window| window.seconds).sum()
        };
        let left_out = share.left_out_s(seconds(&[0, 1, 2]));
        if self.windows.is_empty() {
            return None;
        }
        let (outside, not_inside) = (seconds(&[0]), seconds(&[0, 1]));
        if not_inside <= left_out {
            return Some(true);
        }
        (outside > left_out).then_some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LatencyTarget;
    use crate::capacity::{Answer, Basis, Fit, NotKnown, Platform};
    use crate::map::tests::mapped;
    use crate::trend::Trends;
    use model::record::sample;
    use model::record::sample::windows::{Hour, QUICK, report};

    /// A window of an hour with requests of so many KiB.
    fn window(reads: f64, writes: f64, kib: f64) -> Window {
        let io = reads + writes;
        let rates = Rates {
            reads: Some(reads),
            writes: Some(writes),
            io: Some(io),
            megabytes: Some(io * kib * 1_024.0 / 1e6),
            ..Rates::default()
        };
        Window { from: Some(jiff::Timestamp::UNIX_EPOCH), seconds: 3_600.0, rates }
    }

    #[test]
    fn a_window_is_inside_outside_or_unknown_for_a_reason() {
        let map = mapped(0);
        let of = |window: Window| PlacedWindow::of(&window, &map);
        let why = |window: Window| {
            let placed = of(window);
            assert!(matches!(placed.place, MapPlace::Unknown { .. }), "{placed:?}");
            placed.not_placed.unwrap()
        };
        let is_inside = |window| matches!(of(window).place, MapPlace::Inside { .. });
        let is_outside = |window| matches!(of(window).place, MapPlace::Outside { .. });

        assert!(is_inside(window(5_000.0, 2_000.0, 8.0)) && is_outside(window(11_000.0, 5_000.0, 8.0)));
        assert!(is_inside(window(0.0, 0.0, 8.0)), "what is idle");
        assert_eq!(why(window(10_000.0, 0.0, 8.0)), NotPlaced::TooClose);
        // Larger requests count as several, smaller ones as less.
        assert!(is_inside(window(2_000.0, 500.0, 32.0)) && is_outside(window(22_000.0, 10_000.0, 4.0)));
        assert_eq!(why(window(5_000.0, 2_000.0, 32.0)), NotPlaced::OtherSize);
        assert_eq!(why(window(11_000.0, 5_000.0, 4.0)), NotPlaced::OtherSize);
        // A smaller request is no less load than one of the map's where it is to be inside.
        assert!(is_inside(window(5_000.0, 2_000.0, 2.0)));

        let sum = |window| Window { from: None, ..window };
        assert_eq!(why(sum(window(11_000.0, 5_000.0, 8.0))), NotPlaced::Sum);
        assert!(is_inside(sum(window(5_000.0, 2_000.0, 8.0))));
        let unreported = |change: fn(&mut Rates)| {
            let mut window = window(5_000.0, 2_000.0, 8.0);
            change(&mut window.rates);
            why(window)
        };
        assert_eq!(unreported(|rates| rates.writes = None), NotPlaced::NotReported);
        assert_eq!(unreported(|rates| rates.megabytes = None), NotPlaced::NotReported);

        let reading = mapped(50);
        let placed = PlacedWindow::of(&window(1_000.0, 4_500.0, 8.0), &reading);
        assert_eq!(placed.not_placed, Some(NotPlaced::NotMeasured), "{placed:?}");
    }

    #[test]
    fn a_quantile_leaves_out_as_much_time_as_it_says_and_no_more() {
        let map = mapped(0);
        let fit = |inside: usize, outside: usize, close: usize| MapFit {
            windows: [(inside, 2_000.0), (outside, 20_000.0), (close, 10_000.0)]
                .into_iter()
                .flat_map(|(count, reads)| vec![PlacedWindow::of(&window(reads, 0.0, 8.0), &map); count])
                .collect(),
        };
        let p95 = Share::Quantile(0.95);
        assert_eq!(fit(100, 0, 0).answer(Share::Peak), Some(true));
        assert_eq!(fit(99, 1, 0).answer(Share::Peak), Some(false));
        assert_eq!(fit(99, 0, 1).answer(Share::Peak), None);
        assert_eq!(fit(96, 4, 0).answer(p95), Some(true));
        for (quantile, outside) in [(0.9, 10), (0.95, 5), (0.99, 1)] {
            let share = Share::Quantile(quantile);
            assert_eq!(fit(100 - outside, outside, 0).answer(share), Some(true), "exactly what {quantile} leaves out");
            assert_eq!(
                fit(99 - outside, outside + 1, 0).answer(share),
                Some(false),
                "one more than {quantile} leaves out"
            );
        }
        assert_eq!(fit(94, 6, 0).answer(p95), Some(false));
        assert_eq!(fit(92, 4, 4).answer(p95), None, "if those close to the line are outside, too much is");
        assert_eq!(fit(0, 0, 0).answer(Share::Peak), None);
    }

    #[test]
    fn a_map_of_storage_that_changed_answers_nothing() {
        let target = LatencyTarget::default();
        let run = sample::sweep(60);
        let hour = report(Hour { at: 9, minutes: 60, reads_per_s: 2_000, writes_per_s: 500, within_ms: QUICK });
        let runs = [&hour];
        let demand = Demand::of(&Trends::of(&runs).trends[0], &runs, Share::Peak, &target);
        let answer = |map: MapAnswer| {
            let platform = Platform { map: Some(map), ..Platform::of(&run, &target) };
            let fit = Fit::of(&demand, &platform, &run, &target);
            assert_eq!(fit.basis, Basis::Map);
            fit.answer
        };
        assert_eq!(answer(mapped(0)), Answer::Carries);
        let mut changed = mapped(0);
        (changed.anchors, changed.anchors_missed) = (2, 1);
        assert_eq!(answer(changed), Answer::Unknown(NotKnown::MapChanged));
    }
}
