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
    let Some(size) = window.rates.request_bytes() else { return unknown(same.times(), NotPlaced::NotReported) };
    let relative = size / f64::from(map.block_bytes);
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
        let left_out = match share {
            Share::Peak => 0.0,
            Share::Quantile(quantile) => (1.0 - quantile) * seconds(&[0, 1, 2]),
        };
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
