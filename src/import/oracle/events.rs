//! Waits: what the tables of events tell exactly, joined with the histograms.

use std::collections::{BTreeMap, BTreeSet};

use super::header::last_part;
use super::histogram::{self, Buckets, Total};
use super::table::{Report, Table, plain};
use super::{classes, times, top};
use crate::import::Notes;
use crate::import::draft::{told, whole};
use crate::import::numbers::whole_number;
use crate::record::{Histogram, Step, ToldFigure, WaitStats};

/// Oracle keeps numbers of waits and histograms apart, and they seldom agree to the last wait. Where they differ by no more than
/// one in so many, the exact number stands with the shares of the histogram.
const ALMOST: u64 = 10;

/// Waits of an event in the foreground or the background.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Waits {
    count: u64,
    /// Their sum, by the more precise of total and average; absent where both were rounded to nothing.
    total_ns: Option<u64>,
}

/// All that is told of one event.
#[derive(Debug, Default)]
struct Event<'a> {
    class: &'a str,
    foreground: Option<Waits>,
    background: Option<Waits>,
    /// All waits: reports of before 11g have these instead of those in the foreground.
    all: Option<Waits>,
    /// What histograms tell, the table of the whole range first: place of their table, and their row.
    histograms: Vec<(usize, histogram::Row)>,
    /// Whether a table has the name twice: text reports cut names, and nobody knows which is which.
    is_twice: bool,
    /// The same of a table of histograms.
    has_two_histograms: bool,
}

impl Event<'_> {
    /// Foreground and background waits together, as the tables of events have them.
    fn both(&self) -> Option<Waits> {
        if let Some(all) = self.all {
            return Some(all);
        }
        match (self.foreground, self.background) {
            (Some(one), Some(other)) => Some(Waits {
                count: one.count.saturating_add(other.count),
                total_ns: one.total_ns.zip(other.total_ns).map(|(one, other)| one.saturating_add(other)),
            }),
            (one, other) => one.or(other),
        }
    }

    fn is_foreground(&self) -> bool {
        match (self.all, self.background) {
            (Some(all), Some(background)) => all.count > background.count,
            (Some(_), None) => true,
            // Of an event that only histograms have, nobody knows; sessions wait in most.
            (None, _) => self.foreground.is_some() || self.background.is_none(),
        }
    }
}

/// Fills in the waits of a step.
pub(super) fn read(report: &Report, step: &mut Step, remarks: &mut Vec<String>, notes: &mut Notes) {
    let mut events: BTreeMap<String, Event<'_>> = BTreeMap::new();
    let stand_in = top::tables(report);
    remarks.extend(top::remark(&stand_in));
    for table in report.tables.iter().chain(&stand_in) {
        let title = plain(&table.title);
        if title.contains("histogram") || title.contains("class") {
            continue;
        }
        let place: fn(&mut Event<'_>, Waits) = if title.starts_with("foregroundwaitevents") {
            |event, waits| event.foreground = event.foreground.or(Some(waits))
        } else if title.starts_with("backgroundwaitevents") {
            |event, waits| event.background = event.background.or(Some(waits))
        } else if title.starts_with("waitevents") {
            |event, waits| event.all = event.all.or(Some(waits))
        } else {
            continue;
        };
        add_waits(table, &mut events, place, notes);
    }
    let tables = histogram::bucket_tables(report, notes);
    for (at, buckets) in tables.iter().enumerate() {
        add_histograms(at, buckets, &mut events, notes);
    }
    let told_classes = told_classes(report);
    for (name, event) in &mut events {
        if event.class.is_empty() {
            event.class = told_classes.get(name.as_str()).copied().unwrap_or_else(|| classes::class(name));
        }
    }
    let mut joined = Joined::default();
    for (name, event) in &events {
        joined.add(name, event, &tables, notes);
    }
    remarks.extend(joined.remarks());
    step.waits = joined.waits;
    step.told.extend(joined.figures);
}

/// Wait classes that the tables of the top events and of a cluster's events tell.
fn told_classes(report: &Report) -> BTreeMap<&str, &str> {
    let mut classes = BTreeMap::new();
    for table in &report.tables {
        let class = table.columns.iter().position(|name| {
            let last = plain(last_part(name));
            last == "waitclass" || last == "class" || last == "eventclass"
        });
        let (Some(class), Some(event)) = (class, column(table, |name| name == "event")) else { continue };
        for row in &table.rows {
            let (class, event) = (row.cell(class), row.cell(event));
            if !class.is_empty() && !event.is_empty() {
                classes.insert(event, class);
            }
        }
    }
    classes
}

/// The first column whose own heading passes.
fn column(table: &Table, passes: impl Fn(&str) -> bool) -> Option<usize> {
    table.columns.iter().position(|name| passes(&plain(last_part(name))))
}

fn add_waits<'a>(
    table: &'a Table,
    events: &mut BTreeMap<String, Event<'a>>,
    place: fn(&mut Event<'_>, Waits),
    notes: &mut Notes,
) {
    let event = column(table, |name| name == "event");
    let waits = column(table, |name| name == "waits");
    let (Some(event), Some(waits)) = (event, waits) else {
        if !table.rows.is_empty() {
            notes.not_understood(table.line, format!("`{}` has no columns `Event` and `Waits`", table.title));
        }
        return;
    };
    let total = column(table, |name| name.starts_with("total") && !name.contains("waits"));
    let average = column(table, |name| name.starts_with("avg") || name == "waitavgms");
    let unit = |at: Option<usize>, otherwise| {
        at.and_then(|at| table.columns.get(at)).map_or(otherwise, |name| times::unit_of_column(name).or(otherwise))
    };
    let mut seen = BTreeSet::new();
    let (total_unit, average_unit) = (unit(total, Some(1e9)), unit(average, None));
    for row in &table.rows {
        let name = row.cell(event);
        if name.is_empty() {
            continue;
        }
        let Some(count) = waits_in(row.cell(waits)) else {
            // Processor time stands among the events of a cluster's report and waits for nothing.
            if !row.cell(waits).is_empty() {
                notes.not_understood(
                    row.line,
                    format!("{:?} waits of `{name}`; a number was expected", row.cell(waits)),
                );
            }
            continue;
        };
        let total = total.and_then(|at| times::rounded_ns(row.cell(at), total_unit));
        let average = average
            .and_then(|at| times::rounded_ns(row.cell(at), average_unit))
            .map(|one| times::Rounded { value: one.value * count as f64, off: one.off * count as f64 });
        // Of a total in whole seconds and an average in hundredths of a millisecond, either may be the more precise.
        let best = [total, average].into_iter().flatten().min_by(|one, other| one.off.total_cmp(&other.off));
        let total_ns = best.filter(|best| best.value > best.off || count == 0).and_then(|best| whole(best.value));
        let event = events.entry(name.to_owned()).or_default();
        event.is_twice |= !seen.insert(name);
        place(event, Waits { count, total_ns });
    }
}

/// A number of waits that is exact.
fn waits_in(text: &str) -> Option<u64> {
    let text = text.trim();
    if text.ends_with(|c: char| c.is_ascii_digit()) { whole_number(text) } else { None }
}

fn add_histograms<'a>(at: usize, buckets: &Buckets<'a>, events: &mut BTreeMap<String, Event<'a>>, notes: &mut Notes) {
    let table = buckets.table;
    let event = column(table, |name| name == "event").unwrap_or(0);
    for row in &table.rows {
        let name = row.cell(event);
        if name.is_empty() {
            continue;
        }
        let Some(read) = buckets.row(row) else {
            notes.not_understood(
                row.line,
                format!("a row of `{}` that is not all percentages, of `{name}`", table.title),
            );
            continue;
        };
        let event = events.entry(name.to_owned()).or_default();
        if event.histograms.last().is_some_and(|(last, _)| *last == at) {
            event.has_two_histograms = true;
        } else {
            event.histograms.push((at, read));
        }
    }
}

/// Whether an event is of a class that waits for storage.
fn is_io(class: &str) -> bool {
    matches!(class, "User I/O" | "System I/O" | "Commit")
}

#[derive(Default)]
struct Joined {
    waits: Vec<WaitStats>,
    figures: Vec<ToldFigure>,
    /// I/O events whose foreground and background waits are one.
    together: u64,
    /// I/O events of which histograms and tables of events tell quite different numbers.
    apart: u64,
    /// Names of I/O events that are of several.
    left_out: u64,
}

impl Joined {
    fn add(&mut self, name: &str, event: &Event<'_>, tables: &[Buckets<'_>], notes: &mut Notes) {
        if event.is_twice {
            self.left_out += u64::from(is_io(event.class));
            return;
        }
        if event.has_two_histograms {
            self.counted(name, event);
            return;
        }
        let known = event.both();
        let (count, total_ns) = match (event.printed(tables), known) {
            // Exact in the histogram, or rounded there to what the tables of events have exactly.
            (Some(printed), Some(known))
                if printed.waits.abs_diff(known.count) <= printed.off.max(printed.waits / ALMOST) =>
            {
                (known.count, known.total_ns)
            }
            (None, Some(known)) => (known.count, known.total_ns),
            (Some(printed), _) => (printed.waits, None),
            (None, None) => return,
        };
        let waits = self.histogram(name, event, tables, count, total_ns, notes);
        let Some(waits) = waits else {
            self.counted(name, event);
            return;
        };
        let is_apart = known.is_some_and(|known| known.count != count);
        let is_both = event.foreground.is_some() && event.background.is_some();
        if is_io(event.class) && (is_apart || is_both) {
            self.together += u64::from(is_both);
            self.apart += u64::from(is_apart);
            // The background has the rest, where the sum is right.
            let background = event.background.filter(|_| is_apart);
            for (which, waits) in [("foreground", event.foreground), ("background", background)] {
                let Some(waits) = waits else { continue };
                self.figures.push(told("engine", format!("{name}: {which} waits"), "", waits.count as f64));
                if let Some(ns) = waits.total_ns {
                    self.figures.push(told("engine", format!("{name}: {which} wait time"), "s", ns as f64 / 1e9));
                }
            }
        }
        self.push(name, event.class, event.is_foreground(), waits);
    }

    /// What the reader of the waits must know, of events of I/O.
    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.together + self.apart > 0 {
            let apart = match self.apart {
                0 => String::new(),
                n => format!("; of {n} I/O events these differ by over a tenth, and the histogram's number stands"),
            };
            remarks.push(format!(
                "Waits are foreground and background together, as in the histograms, and numbered as in the tables of \
                 events{apart}."
            ));
        }
        if self.left_out > 0 {
            remarks.push(format!("I/O events that the report cut to one name are left out: {} names.", self.left_out));
        }
        remarks
    }

    fn histogram(
        &self,
        name: &str,
        event: &Event<'_>,
        tables: &[Buckets<'_>],
        count: u64,
        total_ns: Option<u64>,
        notes: &mut Notes,
    ) -> Option<Histogram> {
        // A table of a part of the range alone says nothing of the rest.
        let whole = event.histograms.first().and_then(|(at, _)| tables.get(*at)).is_some_and(|table| table.is_whole);
        let rows: Vec<(&Buckets<'_>, &histogram::Row)> =
            event.histograms.iter().filter_map(|(at, row)| Some((tables.get(*at)?, row))).collect();
        if !whole || count == 0 {
            return None;
        }
        let buckets = histogram::join(&rows, count);
        if buckets.is_none() {
            notes.not_understood(
                None,
                format!("the percentages in the histogram of `{name}` are not those of {count} waits"),
            );
        }
        Some(Histogram::told(buckets?, total_ns, None, None)).filter(|waits| waits.count() == count)
    }

    /// An event without a histogram: the foreground and the background apart.
    fn counted(&mut self, name: &str, event: &Event<'_>) {
        let mut apart = [(event.foreground, true), (event.background, false)];
        if event.all.is_some() {
            apart = [(event.all, event.is_foreground()), (None, false)];
        }
        for (waits, foreground) in apart {
            if let Some(waits) = waits.filter(|waits| waits.count > 0) {
                self.push(name, event.class, foreground, Histogram::counted(waits.count, waits.total_ns));
            }
        }
    }

    fn push(&mut self, event: &str, class: &str, foreground: bool, waits: Histogram) {
        let event = classes::whole_name(event).unwrap_or(event).to_owned();
        self.waits.push(WaitStats { event, class: class.to_owned(), layer: "engine".to_owned(), foreground, waits });
    }
}

impl Event<'_> {
    /// All waits of the event as the histogram of the whole range has them.
    fn printed(&self, tables: &[Buckets<'_>]) -> Option<Total> {
        let (at, row) = self.histograms.first()?;
        if tables.get(*at)?.is_whole { row.total } else { None }
    }
}
