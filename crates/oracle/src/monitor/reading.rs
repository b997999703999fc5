//! What rows of the views mean, and what happened between two readings of them. Nothing here asks a server.

use std::collections::BTreeMap;

use super::super::meanings;
use super::views::{Form, OF_FUNCTIONS, Part, Reach, Row, SESSIONS, Scope};
use super::waits::{self, Event, Waits};
use model::record::ServerStats;

/// An instance's counters at one instant. What it does not show, or cannot be right, is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstanceReading {
    scope: Scope,
    /// By the names that the record has for them, which say what is a time: those of one view each.
    named: BTreeMap<Part, Counts>,
    events: Option<BTreeMap<String, Event>>,
    /// By event and upper edge in microseconds, which waits did not reach.
    histograms: Option<BTreeMap<(String, u64), u64>>,
    /// Reads that the load's sessions waited for, by event, and how many sessions that are. Not read every time.
    ours: Option<Counts>,
    /// The same of an earlier reading, where it was not read this time.
    ours_before: Option<Counts>,
}

type Counts = BTreeMap<String, u64>;

/// The largest number of 32 bits stands for a counter that has none, and for one that stopped there.
const NO_COUNT: u64 = u32::MAX as u64;
/// Hundredths of a second, milliseconds and microseconds in nanoseconds.
const CENTISECOND_NS: u64 = 10_000_000;
const MICROSECOND_NS: u64 = 1_000;

impl InstanceReading {
    /// Of which nothing has been read yet.
    pub(super) fn new(scope: Scope) -> Self {
        Self { scope, ..Self::default() }
    }

    /// Whether a pluggable database counts what the database writers write of it. Sessions that load or sort past the cache raise
    /// every other count of writes, and nothing but the writers raises this one.
    fn counts_writers(&self) -> bool {
        let statistics = self.named.get(&Part::Statistics);
        statistics.and_then(|counts| counts.get(meanings::WRITTEN_BY_WRITERS)).is_some_and(|count| *count > 0)
    }

    /// Takes the rows that `form` of `part` was answered with.
    pub(super) fn take(&mut self, part: Part, form: &Form, rows: &[Row]) {
        let count = |row: &Row, at: usize| row.numbers.get(at).copied().flatten().filter(|count| *count != NO_COUNT);
        let first = |unit: u64, suffix: &str| -> Counts {
            let named = |row: &Row| Some((format!("{}{suffix}", row.name), count(row, 0)?.saturating_mul(unit)));
            rows.iter().filter_map(named).collect()
        };
        match part {
            Part::Statistics => drop(self.named.insert(part, first(1, ""))),
            Part::Times => drop(self.named.insert(part, first(MICROSECOND_NS, "_ns"))),
            Part::Machine => drop(self.named.insert(part, first(CENTISECOND_NS, "_ns"))),
            Part::Functions => {
                let of_row = |row: &Row| {
                    let named = OF_FUNCTIONS.iter().enumerate().filter_map(|(at, (_, words, unit))| {
                        Some((format!("function {}: {words}", row.name), count(row, at)?.saturating_mul(*unit)))
                    });
                    named.collect::<Vec<_>>()
                };
                self.named.insert(part, rows.iter().flat_map(of_row).collect());
            }
            Part::Events => {
                let waits = |row: &Row, at: usize| {
                    let ns = count(row, at + 1).map(|us| us.saturating_mul(MICROSECOND_NS));
                    Some(Waits { count: count(row, at)?, ns })
                };
                let event = |row: &Row| {
                    let (all, sessions) = (waits(row, 0)?, waits(row, 2));
                    Some((row.name.clone(), Event { class: row.class.clone(), all, sessions }))
                };
                self.events = Some(rows.iter().filter_map(event).collect());
            }
            Part::Histograms => {
                let mut histograms = BTreeMap::new();
                for row in rows {
                    // An edge is none of the counters: the largest number of 32 bits stands for no edge at all.
                    let edge = row.numbers.first().copied().flatten();
                    if let (Some(edge), Some(waits)) = (edge, count(row, 1)) {
                        *histograms.entry((row.name.clone(), waits::edge_us(edge, form.edge_us))).or_default() += waits;
                    }
                }
                self.histograms = Some(histograms);
            }
            Part::Ours => self.ours = Some(first(1, "")),
            Part::Doing => {}
        }
    }
}

/// Writes into `stats` what happened between two readings. Gives the views whose counters were set back meanwhile.
pub(super) fn compare(earlier: &InstanceReading, later: &mut InstanceReading, stats: &mut ServerStats) -> Vec<String> {
    let scope = later.scope;
    let has_writers = scope == Scope::Instance || later.counts_writers();
    let mut set_back = Vec::new();
    for (part, now) in &later.named {
        let Some(then) = earlier.named.get(part) else { continue };
        let (grown, was_set_back) = grown(then, now);
        let of_all = |name: &str| scope == Scope::Container && meanings::BACKGROUND.contains(&name);
        // Where the server's own processes work for all databases, what one does not show of theirs stands still for ever.
        stats.own.extend(grown.into_iter().filter(|(name, _)| !of_all(name) || has_writers && now[name] > 0));
        if was_set_back {
            set_back.push(view_of(*part, scope));
        }
    }
    if let (Some(then), Some(now)) = (&earlier.events, &later.events) {
        let histograms = earlier.histograms.as_ref().zip(later.histograms.as_ref());
        let (waits, were_set_back) = waits::between((then, now), histograms);
        stats.waits = waits;
        if were_set_back {
            set_back.push(view_of(Part::Events, scope));
        }
    }
    let ours = take_ours(earlier, later);
    meanings::explain(ours.as_ref(), stats);
    set_back
}

/// What the load's sessions waited for since that was read the last time; `later` remembers when that was. Nothing where fewer
/// sessions are left: what the others did is gone with them.
fn take_ours(earlier: &InstanceReading, later: &mut InstanceReading) -> Option<Counts> {
    let before = earlier.ours.as_ref().or(earlier.ours_before.as_ref());
    let Some(now) = &later.ours else {
        later.ours_before = before.cloned();
        return None;
    };
    let before = before?;
    let sessions = |counts: &Counts| counts.get(SESSIONS).copied().unwrap_or(0);
    if sessions(now) < sessions(before) {
        return None;
    }
    // An event that nobody had waited for is not among them.
    let mut ours = Counts::new();
    for (event, count) in now.iter().filter(|(event, _)| event.as_str() != SESSIONS) {
        ours.insert(event.clone(), count.checked_sub(before.get(event).copied().unwrap_or(0))?);
    }
    Some(ours)
}

/// What each counter grew by, and whether any of them shrank, which is then left out.
fn grown(then: &Counts, now: &Counts) -> (Counts, bool) {
    let mut was_set_back = false;
    let mut grown = Counts::new();
    for (name, now) in now {
        match then.get(name).map(|then| now.checked_sub(*then)) {
            Some(Some(difference)) => drop(grown.insert(name.clone(), difference)),
            Some(None) => was_set_back = true,
            None => {}
        }
    }
    (grown, was_set_back)
}

fn view_of(part: Part, scope: Scope) -> String {
    part.forms(scope, Reach::One).first().map_or_else(String::new, |form| form.view.clone())
}
