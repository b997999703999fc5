//! Windows along time: which of them count, and what lies between them.

use std::collections::BTreeMap;

use super::super::at_once;
use super::{MEASURES, OF_STORAGE, Scope, WindowValue, read, work};
use model::record::{Clock, Interval, Metric, Outcome, ReportedFigure, Run, Step, Work};
use model::workload::Arrival;

/// Intervals of a step that are at least so long are windows by themselves: snapshots of a history, not seconds of a load.
const LONG_INTERVAL_NS: u64 = 300_000_000_000;
/// Windows may overlap by so many seconds, or by this share of the shorter one, since begin and end are often reported to the minute;
/// never by half of it.
const OVERLAP_S: f64 = 60.0;
const OVERLAP_SHARE: f64 = 0.01;

/// One window: what was counted between two points in time.
#[derive(Debug, Clone, PartialEq)]
pub struct TrendWindow {
    /// When it began.
    pub from: jiff::Timestamp,
    /// When it ended.
    pub to: jiff::Timestamp,
    /// Its length, in seconds.
    pub seconds: f64,
    /// Id of the run.
    pub run: String,
    /// Label of the step.
    pub step: String,
    /// What a load can be made like.
    pub work: Work,
    /// One for each of [`MEASURES`].
    readings: Vec<Option<WindowValue>>,
}

/// A window that does not count.
#[derive(Debug, Clone, PartialEq)]
pub struct SetAside {
    /// Id of the run.
    pub run: String,
    /// Label of the step.
    pub step: String,
    /// Why.
    pub why: Why,
}

/// Why a window does not count.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// It is the time of another window again.
    Again {
        /// Run that has the window which counts.
        of: String,
    },
    /// It lies over shorter windows, or partly over others, which count.
    Overlaps {
        /// Run of one of them.
        of: String,
    },
    /// It is of one instance, in the time of a report on all of them, which counts.
    InWhole {
        /// Run of that report.
        of: String,
    },
    /// How long it was is not reported.
    NoLength,
    /// When it was is not reported.
    NoTime,
    /// It is of a job beside others, of which it is not reported what all of them did together.
    Part,
    /// It failed, or was not finished.
    NotFinished,
}

/// A stretch between two windows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gap {
    /// End of the window before.
    pub from: jiff::Timestamp,
    /// Beginning of the next one.
    pub to: jiff::Timestamp,
}

impl Gap {
    /// Its length.
    pub fn seconds(&self) -> f64 {
        seconds_between(self.from, self.to)
    }
}

impl TrendWindow {
    /// What it reports on a measure.
    pub fn reading(&self, measure: Metric) -> Option<WindowValue> {
        let at = MEASURES.iter().position(|known| *known == measure)?;
        self.readings.get(at).copied().flatten()
    }

    /// Whether this window reports what storage or its log had to do, and none of its `parts` does: those of a report over several
    /// snapshots often have the host's processors alone, and must not stand for the whole.
    fn alone_reports_storage(&self, parts: &[Self]) -> bool {
        let reports = |window: &Self| window.readings.iter().take(OF_STORAGE).any(Option::is_some);
        reports(self) && !parts.iter().any(reports)
    }

    fn known_readings(&self) -> usize {
        self.readings.iter().flatten().count()
    }

    /// Seconds since 1970 in the clock that the window is reported in.
    pub(super) fn edges_s(&self) -> (f64, f64) {
        let from = second(self.from);
        (from, from + self.seconds)
    }
}

/// Seconds since 1970.
pub(super) fn second(time: jiff::Timestamp) -> f64 {
    time.as_millisecond() as f64 / 1e3
}

pub(super) fn seconds_between(from: jiff::Timestamp, to: jiff::Timestamp) -> f64 {
    second(to) - second(from)
}

/// The windows of a run, with what they are of. Those that have no place in time go to `left_out`.
pub(super) fn of_run(run: &Run, left_out: &mut Vec<SetAside>) -> Vec<(Scope, TrendWindow)> {
    let mut windows = Vec::new();
    let has_time = run.imported.as_ref().is_none_or(|imported| imported.clock != Clock::FileTime);
    let has_time = has_time && !at_once::has_no_order(run);
    for level in at_once::levels(run) {
        let step = &*level.step;
        let mut leave = |why| left_out.push(SetAside { run: run.id.clone(), step: step.label.clone(), why });
        if !matches!(step.outcome, Outcome::Completed | Outcome::Interrupted) {
            leave(Why::NotFinished);
        } else if !has_time {
            leave(Why::NoTime);
        } else if !level.is_whole {
            leave(Why::Part);
        } else {
            let snapshots: Vec<&Interval> =
                step.intervals.iter().filter(|interval| is_snapshot(run, step, interval)).collect();
            let began = step.window.offset_ns.saturating_sub(step.window.warmup_ns);
            let of =
                |interval: &&Interval| window(run, &alone(step, interval), began.saturating_add(interval.offset_ns));
            let whole = window(run, step, step.window.offset_ns);
            let mut found: Vec<TrendWindow> = snapshots.iter().filter_map(of).collect();
            if found.len() < 2 || whole.as_ref().is_some_and(|whole| whole.alone_reports_storage(&found)) {
                found = whole.into_iter().collect();
            }
            if found.is_empty() {
                leave(Why::NoLength);
            }
            windows.extend(found.into_iter().map(|window| (Scope::of(run, step), window)));
        }
    }
    windows
}

/// What was recorded of requests is production itself, second by second; its last second is rarely whole, and no rate for a peak.
fn is_snapshot(run: &Run, step: &Step, interval: &Interval) -> bool {
    let is_second = || {
        run.imported.is_some()
            && step.load.arrival == Some(Arrival::Recorded)
            && step.intervals.first().is_some_and(|it| it.duration_ns == interval.duration_ns)
    };
    !interval.warmup && (interval.duration_ns >= LONG_INTERVAL_NS || is_second())
}

/// An interval as a step of its own, so that its figures are made as those of steps are.
fn alone(step: &Step, interval: &Interval) -> Step {
    let mut alone = Step::new(step.index, step.label.clone());
    alone.outcome = Outcome::Completed;
    alone.load = step.load.clone();
    alone.window.duration_ns = interval.duration_ns;
    alone.counters = interval.counters.clone();
    alone.servers = interval.servers.clone();
    alone.waits = step
        .waits
        .iter()
        .filter_map(|wait| {
            Some(model::record::WaitStats { waits: interval.waits.get(&wait.event)?.clone(), ..wait.clone() })
        })
        .collect();
    let of_interval = |figure: &ReportedFigure| {
        Some(ReportedFigure { value: *interval.reported.get(&figure.name)?, ..figure.clone() })
    };
    alone.reported = step.reported.iter().filter_map(of_interval).collect();
    alone
}

/// `None` where its length is not known, or where its time cannot be written.
fn window(run: &Run, step: &Step, offset_ns: u64) -> Option<TrendWindow> {
    let length_ns = step.window.duration_ns;
    if length_ns == 0 {
        return None;
    }
    let after = |ns: u64| jiff::SignedDuration::from_nanos(i64::try_from(ns).unwrap_or(i64::MAX));
    let from = run.started_at.0.checked_add(after(offset_ns)).ok()?;
    let to = from.checked_add(after(length_ns)).ok()?;
    Some(TrendWindow {
        from,
        to,
        seconds: length_ns as f64 / 1e9,
        run: run.id.clone(),
        step: step.label.clone(),
        work: work(run, step),
        readings: MEASURES.iter().map(|measure| read(*measure, run, step)).collect(),
    })
}

fn may_overlap_s(a: &TrendWindow, b: &TrendWindow) -> f64 {
    let shorter = a.seconds.min(b.seconds);
    OVERLAP_S.max(OVERLAP_SHARE * shorter).min(shorter / 2.0)
}

/// Whether two windows share more time than clocks explain.
fn overlap(a: &TrendWindow, b: &TrendWindow) -> bool {
    let ((a_from, a_to), (b_from, b_to)) = (a.edges_s(), b.edges_s());
    a_to.min(b_to) - a_from.max(b_from) > may_overlap_s(a, b)
}

/// Whether they are one and the same stretch of time.
fn is_same_time(a: &TrendWindow, b: &TrendWindow) -> bool {
    let ((a_from, a_to), (b_from, b_to)) = (a.edges_s(), b.edges_s());
    let near = may_overlap_s(a, b);
    (a_from - b_from).abs() <= near && (a_to - b_to).abs() <= near
}

/// Windows that hardly overlap each other, by their beginning.
#[derive(Default)]
struct Apart(BTreeMap<(i64, usize), TrendWindow>);

impl Apart {
    /// One of them that shares time with `window`.
    fn sharing(&self, window: &TrendWindow) -> Option<&TrendWindow> {
        let at = |time: jiff::Timestamp| (time.as_millisecond(), 0);
        // They hardly overlap, so that of those which begin earlier only the last ones can reach so far.
        let before = self.0.range(..at(window.from)).rev().take(2);
        let within = self.0.range(at(window.from)..at(window.to));
        before.chain(within).map(|(_, other)| other).find(|other| overlap(window, other))
    }

    fn insert(&mut self, window: TrendWindow) {
        self.0.insert((window.from.as_millisecond(), self.0.len()), window);
    }
}

/// Each stretch of time once: of windows that overlap the shorter ones count, since they report more of time; of equally long
/// ones that which says more measures, and else the one that was named first.
pub(super) fn without_overlaps(mut windows: Vec<TrendWindow>) -> (Vec<TrendWindow>, Vec<SetAside>) {
    // Lengths are given to the minute or to the second: those alike within that are equally long.
    let length = |window: &TrendWindow| (window.seconds / 60.0).round() as i64;
    windows.sort_by_key(|window| (length(window), std::cmp::Reverse(window.known_readings())));
    let (mut apart, mut set_aside) = (Apart::default(), Vec::new());
    for window in windows {
        match apart.sharing(&window) {
            None => apart.insert(window),
            Some(other) => {
                let of = other.run.clone();
                let why = if is_same_time(&window, other) { Why::Again { of } } else { Why::Overlaps { of } };
                set_aside.push(SetAside { run: window.run, step: window.step, why });
            }
        }
    }
    (apart.0.into_values().collect(), set_aside)
}

/// Windows of an instance that share no time with those of the whole, and those that do.
pub(super) fn outside(windows: Vec<TrendWindow>, whole: &[TrendWindow]) -> (Vec<TrendWindow>, Vec<SetAside>) {
    let mut apart = Apart::default();
    whole.iter().cloned().for_each(|window| apart.insert(window));
    let (mut kept, mut set_aside) = (Vec::new(), Vec::new());
    for window in windows {
        match apart.sharing(&window) {
            None => kept.push(window),
            Some(other) => {
                let why = Why::InWhole { of: other.run.clone() };
                set_aside.push(SetAside { run: window.run, step: window.step, why });
            }
        }
    }
    (kept, set_aside)
}

/// Every stretch between two windows, however short.
pub(super) fn holes(windows: &[TrendWindow]) -> impl Iterator<Item = Gap> + '_ {
    windows.windows(2).filter_map(|pair| match pair {
        [before, after] if after.from > before.to => Some(Gap { from: before.to, to: after.from }),
        _ => None,
    })
}

/// Those that are longer than clocks explain.
pub(super) fn gaps(windows: &[TrendWindow]) -> Vec<Gap> {
    holes(windows).filter(|gap| gap.seconds() > OVERLAP_S).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn window((from_s, seconds): (i64, i64)) -> TrendWindow {
        let from = jiff::Timestamp::from_second(1_793_577_600 + from_s).unwrap();
        let to = from + jiff::SignedDuration::from_secs(seconds);
        let run = format!("{from_s}+{seconds}");
        TrendWindow {
            from,
            to,
            seconds: seconds as f64,
            run,
            step: String::new(),
            work: Work::new(),
            readings: Vec::new(),
        }
    }

    proptest! {
        /// Held against every pair: no two that count overlap, and each that does not count overlaps one that does.
        #[test]
        fn windows_that_count_lie_apart_and_no_other_could_be_added(
            given in prop::collection::vec((0_i64..6_000, prop_oneof![1_i64..90, 60_i64..1_500]), 0..40),
        ) {
            let windows: Vec<TrendWindow> = given.into_iter().map(window).collect();
            let count = windows.len();
            let (kept, set_aside) = without_overlaps(windows.clone());
            prop_assert_eq!(kept.len() + set_aside.len(), count);
            prop_assert!(kept.windows(2).all(|pair| pair[0].from <= pair[1].from));
            for (at, one) in kept.iter().enumerate() {
                prop_assert!(kept[at + 1..].iter().all(|other| !overlap(one, other)), "{} overlaps", one.run);
            }
            for aside in &set_aside {
                let window = windows.iter().find(|window| window.run == aside.run).unwrap();
                prop_assert!(kept.iter().any(|other| overlap(window, other)), "{} was left for nothing", aside.run);
            }
        }
    }
}
