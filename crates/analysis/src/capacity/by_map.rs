//! A demand held against a map: each of its windows lies inside of the line, outside, or where nothing is known.

use super::demand::Window;
use super::{Demand, Rates, SAME_SIZE};
use crate::map::limit_of;
use crate::{LatencyTarget, MapAnswer, MapPlace};
use model::record::Run;

/// What the windows of a demand come to on a map.
#[derive(Debug, Clone, PartialEq)]
pub struct MapFit {
    /// The windows, the one with the least headroom first. What is not known stands where its headroom does, or at the end.
    pub windows: Vec<PlacedWindow>,
}

/// A window on a map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlacedWindow {
    /// When it began; absent where the demand is the sum of several databases.
    pub from: Option<jiff::Timestamp>,
    /// Its rates.
    pub rates: Rates,
    /// Where it lies. A window of larger requests than those of the map is never inside, and one of smaller requests never outside.
    pub place: MapPlace,
}

impl PlacedWindow {
    fn of(window: &Window, map: &MapAnswer) -> Self {
        let Rates { reads, writes, .. } = window.rates;
        let place =
            reads.zip(writes).map_or(MapPlace::Unknown { times: None }, |(reads, writes)| map.place_of(reads, writes));
        let (size, block) = (window.rates.request_bytes(), f64::from(map.block_bytes));
        let is_proven = match place {
            MapPlace::Inside { .. } => size.is_some_and(|size| size <= SAME_SIZE * block),
            // Several databases need not ask for all that at one time.
            MapPlace::Outside { .. } => window.from.is_some() && size.is_some_and(|size| block <= SAME_SIZE * size),
            MapPlace::Unknown { .. } => true,
        };
        let place = if is_proven { place } else { MapPlace::Unknown { times: place.times() } };
        Self { from: window.from, rates: window.rates, place }
    }
}

impl MapFit {
    /// Absent where there are no windows.
    pub(super) fn of(demand: &Demand, map: &MapAnswer) -> Option<Self> {
        let mut windows: Vec<PlacedWindow> = demand.windows_of().map(|window| PlacedWindow::of(&window, map)).collect();
        let headroom = |window: &PlacedWindow| window.place.times().unwrap_or(f64::INFINITY);
        windows.sort_by(|one, other| headroom(one).total_cmp(&headroom(other)));
        (!windows.is_empty()).then_some(Self { windows })
    }

    /// How many windows are inside, outside, and where nothing is known.
    pub fn counts(&self) -> [usize; 3] {
        let of = |is: fn(&MapPlace) -> bool| self.windows.iter().filter(|window| is(&window.place)).count();
        [
            of(|place| matches!(place, MapPlace::Inside { .. })),
            of(|place| matches!(place, MapPlace::Outside { .. })),
            of(|place| matches!(place, MapPlace::Unknown { .. })),
        ]
    }
}

/// Whether each window that is to be carried is inside (`Some(true)`), or so many are outside that it is not (`Some(false)`).
pub(super) fn answer(demand: &Demand, map: &MapAnswer) -> Option<bool> {
    let place = |window: &Window| PlacedWindow::of(window, map).place;
    if demand.is_covered_by(|window| matches!(place(window), MapPlace::Inside { .. })) {
        return Some(true);
    }
    demand.is_reached_by(|window| matches!(place(window), MapPlace::Outside { .. })).then_some(false)
}

/// The map of a run, if it was made by this limit and storage stayed what it was.
pub(super) fn map_of(run: &Run, target: &LatencyTarget) -> Option<MapAnswer> {
    let limit = limit_of(run)?;
    let is_same = limit.quantile == target.quantile && limit.limit == target.limit && target.subject.is_none();
    MapAnswer::of(run).filter(|map| is_same && !map.has_changed())
}
