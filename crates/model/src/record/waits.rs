//! Numbers and times of waits that a report states beside its histograms.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{Histogram, WaitStats};

/// A session that came about while load ran: the client times it, even where the server times all other waits.
pub const CONNECT: &str = "connect";

/// Who waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Waiters {
    /// Sessions of users.
    Foreground,
    /// The database's own processes.
    Background,
    /// Both, where the report does not keep them apart.
    All,
}

/// What a table of events in an imported report, or a view of a server, states of waits, where the histogram holds others too or
/// another number of them.
/// Its window is that of the step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ReportedWaits {
    /// Who waited.
    pub by: Waiters,
    /// How often.
    pub count: u64,
    /// Sum of the waits; absent where it is rounded to nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_ns: Option<u64>,
    /// Layer that timed them, such as `engine`.
    pub layer: String,
    /// Title of the table that states it.
    pub source: String,
}

/// A number of waits and their sum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waited {
    /// How many waits.
    pub count: u64,
    /// Their sum, where it is known.
    pub total_ns: Option<u64>,
}

impl Waited {
    /// The mean wait, where it is known.
    pub fn mean_ns(&self) -> Option<f64> {
        let total_ns = self.total_ns.filter(|_| self.count > 0)?;
        Some(total_ns as f64 / self.count as f64)
    }

    /// Both together; the sum is unknown if either is.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_add(other.count),
            total_ns: self.total_ns.zip(other.total_ns).map(|(one, other)| one.saturating_add(other)),
        }
    }
}

impl WaitStats {
    /// Adds waits of the same event.
    pub fn add(&mut self, other: &Self) {
        let Self { event: _, class: _, layer: _, foreground, waits, reported } = other;
        self.foreground |= foreground;
        self.waits.merge(waits);
        for more in reported {
            match self.reported.iter_mut().find(|sum| sum.by == more.by) {
                Some(sum) => {
                    sum.count = sum.count.saturating_add(more.count);
                    sum.total_ns = sum.total_ns.zip(more.total_ns).map(|(sum, more)| sum.saturating_add(more));
                }
                None => self.reported.push(more.clone()),
            }
        }
    }

    /// Adds each of `more` to the one of `sums` that is of the same event.
    pub fn add_to(sums: &mut Vec<Self>, more: &[Self]) {
        for more in more {
            match sums.iter_mut().find(|sum| sum.event == more.event) {
                Some(sum) => sum.add(more),
                None => sums.push(more.clone()),
            }
        }
    }

    fn counted(&self) -> Waited {
        Waited { count: self.waits.count(), total_ns: self.waits.total_ns() }
    }

    fn reported_by(&self, by: Waiters) -> Option<Waited> {
        let of = |reported: &ReportedWaits| Waited { count: reported.count, total_ns: reported.total_ns };
        self.reported.iter().filter(|reported| reported.by == by).map(of).reduce(Waited::and)
    }

    /// Waits as tables of events report them, of foreground and background together as far as they do; else as the histogram
    /// counts them.
    pub fn sum(&self) -> Waited {
        let all = self.reported_by(Waiters::All);
        let parts = || {
            let parts = [Waiters::Foreground, Waiters::Background].into_iter().filter_map(|by| self.reported_by(by));
            parts.reduce(Waited::and)
        };
        all.or_else(parts).unwrap_or_else(|| self.counted())
    }

    /// The histogram, with the mean of [`Self::sum`] where its own sum is not known: its shares and their mean may be of
    /// slightly different waits.
    pub fn times(&self) -> Cow<'_, Histogram> {
        let mean_ns = self.sum().mean_ns().filter(|_| self.waits.total_ns().is_none() && self.waits.count() > 0);
        mean_ns.map_or(Cow::Borrowed(&self.waits), |mean_ns| {
            Cow::Owned(self.waits.clone().with_total_ns((mean_ns * self.waits.count() as f64).round() as u64))
        })
    }

    /// Whether the report keeps waits of the foreground and the background apart.
    fn are_apart(&self) -> bool {
        self.reported.iter().any(|reported| reported.by != Waiters::All)
    }

    /// Waits of sessions; nothing if only the background waited.
    pub fn of_sessions(&self) -> Option<Waited> {
        if self.are_apart() { self.reported_by(Waiters::Foreground) } else { self.foreground.then(|| self.sum()) }
    }

    /// Waits of the database's own processes; nothing if only sessions waited.
    pub fn of_background(&self) -> Option<Waited> {
        if self.are_apart() { self.reported_by(Waiters::Background) } else { (!self.foreground).then(|| self.sum()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(foreground: bool, reported: &[(Waiters, u64, Option<u64>)]) -> WaitStats {
        let reported = reported.iter().map(|(by, count, total_ns)| ReportedWaits {
            by: *by,
            count: *count,
            total_ns: *total_ns,
            layer: "engine".to_owned(),
            source: "Wait Events".to_owned(),
        });
        WaitStats {
            event: "tape read".to_owned(),
            class: "User I/O".to_owned(),
            layer: "engine".to_owned(),
            foreground,
            waits: Histogram::counted(100, None),
            reported: reported.collect(),
        }
    }

    #[test]
    fn what_tables_of_events_report_stands_before_what_a_histogram_counts() {
        let both = wait(true, &[(Waiters::Foreground, 30, Some(60)), (Waiters::Background, 10, Some(100))]);
        assert_eq!(both.sum(), Waited { count: 40, total_ns: Some(160) });
        assert_eq!(both.of_sessions().and_then(|waited| waited.mean_ns()), Some(2.0));
        assert_eq!(both.of_background().and_then(|waited| waited.mean_ns()), Some(10.0));
        let all = wait(true, &[(Waiters::All, 90, Some(9))]);
        assert_eq!((all.of_sessions(), all.of_background()), (Some(all.sum()), None));
        assert_eq!(all.times().mean_ns(), Some(0.1), "its shares are of 100 waits, its mean of 90");
        let with_sum = wait(true, &[(Waiters::All, 90, Some(9)), (Waiters::Foreground, 80, Some(8))]);
        assert_eq!((with_sum.sum().count, with_sum.of_sessions().map(|waited| waited.count)), (90, Some(80)));
        let background = wait(true, &[(Waiters::Background, 10, None)]);
        assert_eq!((background.of_sessions(), background.sum().total_ns), (None, None));
    }

    #[test]
    fn waits_of_the_next_second_and_of_the_next_server_are_added_to_those_of_the_same_event() {
        let first = wait(true, &[(Waiters::Foreground, 90, Some(900)), (Waiters::Background, 10, Some(70))]);
        let second = wait(false, &[(Waiters::Background, 100, Some(30))]);
        let other = WaitStats { event: "tape write".to_owned(), ..second.clone() };
        let mut sums = vec![first];
        WaitStats::add_to(&mut sums, &[second, other.clone()]);
        let [reads, writes] = sums.as_slice() else { panic!("{sums:?}") };
        assert_eq!(reads.of_sessions(), Some(Waited { count: 90, total_ns: Some(900) }));
        assert_eq!(reads.of_background(), Some(Waited { count: 110, total_ns: Some(100) }));
        assert!(reads.foreground && reads.waits.count() == 200 && *writes == other);
    }

    #[test]
    fn without_a_report_the_histogram_is_all_there_is() {
        let alone = wait(false, &[]);
        assert_eq!((alone.sum().count, alone.of_sessions(), alone.of_background()), (100, None, Some(alone.sum())));
    }
}
