//! Waits between two readings: how many, how long, and whose.

use std::collections::BTreeMap;

use model::record::{Histogram, ReportedBucket, ReportedWaits, WaitStats, Waiters};

/// Number and time of waits since the instance was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Waits {
    pub(super) count: u64,
    /// `None` where it is not known.
    pub(super) ns: Option<u64>,
}

/// A wait event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) class: String,
    /// Everybody's waits.
    pub(super) all: Waits,
    /// Those of sessions; `None` where they are not counted apart.
    pub(super) sessions: Option<Waits>,
}

/// Where a server times waits.
const LAYER: &str = "server";
/// The view that counts them, as the record names it.
const SOURCE: &str = "v$system_event";
/// An edge that is none.
const NO_EDGE: u64 = u64::MAX;
/// So many waits cannot all have taken less than a microsecond.
const ENOUGH_WAITS: u64 = 10;
/// Nanoseconds in a microsecond.
const MICROSECOND_NS: u64 = 1_000;

/// An upper edge in microseconds. All are powers of two of their unit, but for one that stands where there is none.
pub(super) fn edge_us(edge: u64, unit_us: u64) -> u64 {
    if edge.is_power_of_two() { edge.saturating_mul(unit_us) } else { NO_EDGE }
}

impl Waits {
    /// What came on top of `then`; nothing if it was set back. The time alone may be unknown.
    fn since(self, then: Self) -> Option<Self> {
        let ns = self.ns.zip(then.ns).and_then(|(now, then)| now.checked_sub(then));
        Some(Self { count: self.count.checked_sub(then.count)?, ns })
    }

    /// What is left without a part of it. Both stand in one row, which a server may change while it is read: so the part may be a
    /// little more, and then nothing is left.
    fn less(self, part: Self) -> Self {
        let ns = self.ns.zip(part.ns).map(|(all, part)| all.saturating_sub(part));
        Self { count: self.count.saturating_sub(part.count), ns }
    }

    fn into_record(self, by: Waiters) -> ReportedWaits {
        ReportedWaits { by, count: self.count, total_ns: self.ns, layer: LAYER.to_owned(), source: SOURCE.to_owned() }
    }
}

type Events = BTreeMap<String, Event>;
type Histograms = BTreeMap<(String, u64), u64>;

/// Waits that ended between two readings, and whether any counter was set back meanwhile: what it counts is left out.
pub(super) fn between(
    (then, now): (&Events, &Events),
    histograms: Option<(&Histograms, &Histograms)>,
) -> (Vec<WaitStats>, bool) {
    let mut was_set_back = false;
    let mut buckets = histograms.map(|histograms| buckets(histograms, &mut was_set_back)).unwrap_or_default();
    let mut all = Vec::new();
    let is_untimed = is_untimed(then, now);
    let timed = |waited: Waits| Waits { ns: waited.ns.filter(|_| !is_untimed), ..waited };
    for (name, event) in now {
        // One that nobody had waited for is not shown.
        let none = Waits { count: 0, ns: Some(0) };
        let before = then.get(name);
        let Some(waited) = event.all.since(before.map_or(none, |before| before.all)) else {
            was_set_back = true;
            continue;
        };
        let waited = timed(waited);
        let buckets = buckets.remove(name).unwrap_or_default();
        if waited.count == 0 && buckets.is_empty() {
            continue;
        }
        let of_sessions = event
            .sessions
            .and_then(|sessions| sessions.since(before.map_or(Some(none), |before| before.sessions)?))
            .map(timed);
        let parts = match of_sessions {
            Some(sessions) => {
                vec![(Waiters::Foreground, sessions), (Waiters::Background, waited.less(sessions))]
            }
            None => vec![(Waiters::All, waited)],
        };
        all.push(WaitStats {
            event: name.clone(),
            class: event.class.clone(),
            layer: LAYER.to_owned(),
            foreground: event.sessions.is_none_or(|sessions| sessions.count > 0),
            waits: histogram(buckets, waited),
            reported: parts
                .into_iter()
                .filter(|(_, part)| part.count > 0)
                .map(|(by, part)| part.into_record(by))
                .collect(),
        });
    }
    (all, was_set_back)
}

/// Whether waits were counted and not timed, as with `timed_statistics=FALSE`: then all of them together took no time at all.
fn is_untimed(then: &Events, now: &Events) -> bool {
    let none = Waits { count: 0, ns: Some(0) };
    let waited =
        now.iter().filter_map(|(name, event)| event.all.since(then.get(name).map_or(none, |before| before.all)));
    let (count, ns) = waited.fold((0, 0), |(count, ns), waited| (count + waited.count, ns + waited.ns.unwrap_or(1)));
    ns == 0 && count >= ENOUGH_WAITS
}

/// The two views are read one after the other, so that the histogram of an event which happens often has a few waits more.
fn histogram(buckets: Vec<ReportedBucket>, waited: Waits) -> Histogram {
    if buckets.is_empty() {
        return Histogram::counted(waited.count, waited.ns);
    }
    let histogram = Histogram::reported(buckets, None, None, None);
    match waited.ns.filter(|_| histogram.count() == waited.count) {
        Some(ns) => histogram.with_total_ns(ns),
        None => histogram,
    }
}

/// What was added to each event's buckets; of an event with one that shrank, nothing.
fn buckets((then, now): (&Histograms, &Histograms), was_set_back: &mut bool) -> BTreeMap<String, Vec<ReportedBucket>> {
    let mut events: BTreeMap<String, Option<Vec<ReportedBucket>>> = BTreeMap::new();
    for (key, count) in now {
        let (event, edge_us) = key;
        let added = events.entry(event.clone()).or_insert_with(|| Some(Vec::new()));
        match (count.checked_sub(then.get(key).copied().unwrap_or(0)), added) {
            (Some(0), _) | (_, None) => {}
            (Some(count), Some(buckets)) => buckets.push(bucket(*edge_us, count)),
            (None, added) => {
                *was_set_back = true;
                *added = None;
            }
        }
    }
    events.into_iter().filter_map(|(event, buckets)| Some((event, buckets?))).collect()
}

/// Waits shorter than an edge and not shorter than half of it, but for the first edges of either unit; without an edge, longer than
/// all others.
fn bucket(edge_us: u64, count: u64) -> ReportedBucket {
    let to_ns = (edge_us != NO_EDGE).then(|| edge_us.saturating_mul(MICROSECOND_NS));
    let from_us = match edge_us {
        NO_EDGE => LAST_EDGE_US,
        1 | 1_000 => 0,
        edge_us => edge_us / 2,
    };
    ReportedBucket { from_ns: from_us.saturating_mul(MICROSECOND_NS), to_ns, count }
}

/// The last bucket that has an edge ends here at the earliest: at 2^31 us.
const LAST_EDGE_US: u64 = 1 << 31;
