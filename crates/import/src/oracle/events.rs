//! Waits: what the tables of events report exactly, joined with the histograms.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::header::last_part;
use super::histogram::{self, Buckets, Total};
use super::table::{Report, Table, plain};
use super::{classes, times, top};
use crate::Notes;
use crate::draft::whole;
use crate::numbers::whole_number;
use model::record::{Histogram, ReportedWaits, Step, WaitStats, Waiters};
use model::units::group_thousands;

/// Oracle keeps numbers of waits and histograms apart, and they seldom agree to the last wait. Events of which they differ by more
/// than one in so many are named.
const ALMOST: u64 = 10;
/// What shares in tables of events are of.
const SHARES: [&str; 3] = ["dbtime", "bgtime", "calltime"];
/// Waits below which an event is counted and not named: of a few, a tenth is next to nothing.
const MIN_WAITS_NAMED: u64 = 50;
/// Events named in a note.
const MAX_NAMED: usize = 5;

/// Waits of an event in the foreground or the background.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Waits<'a> {
    count: u64,
    /// Their sum, by the more precise of total and average; absent where both were rounded to nothing.
    total_ns: Option<u64>,
    /// Title of the table.
    source: &'a str,
}

impl Waits<'_> {
    fn reported_waits(&self, by: Waiters) -> ReportedWaits {
        let Self { count, total_ns, source } = *self;
        ReportedWaits { by, count, total_ns, layer: LAYER.to_owned(), source: source.to_owned() }
    }
}

/// Where Oracle times waits.
const LAYER: &str = "engine";
/// Class of waits of those that have nothing to do.
const IDLE: &str = "Idle";

/// All that is reported on one event.
#[derive(Debug, Default)]
struct Event<'a> {
    class: &'a str,
    foreground: Option<Waits<'a>>,
    background: Option<Waits<'a>>,
    /// All waits: reports of before 11g have these instead of those in the foreground.
    all: Option<Waits<'a>>,
    /// What histograms report, the table of the whole range first: place of their table, and their row.
    histograms: Vec<(usize, histogram::Row)>,
    /// Whether those that wait in it have nothing to do: tables of events give these no share of DB time.
    is_idle: Option<bool>,
    /// Waits of further rows of that name in one table: text reports cut names, and nobody knows which is which.
    namesakes: Vec<(Waiters, Waits<'a>)>,
    /// The same of a table of histograms.
    has_two_histograms: bool,
}

impl<'a> Event<'a> {
    /// Takes a row of a table of events.
    fn take(&mut self, by: Waiters, waits: Waits<'a>) {
        let place = match by {
            Waiters::Foreground => &mut self.foreground,
            Waiters::Background => &mut self.background,
            Waiters::All => &mut self.all,
        };
        // Of two tables with one title, as those of before and after a page break, either may have it.
        place.get_or_insert(waits);
    }

    /// What the tables of events state of it: Statspack has all waits beside those of the foreground and the background.
    fn stated(&self) -> Vec<(Waiters, Waits<'a>)> {
        let all =
            [(Waiters::All, self.all), (Waiters::Foreground, self.foreground), (Waiters::Background, self.background)];
        all.into_iter().filter_map(|(by, waits)| Some((by, waits?))).collect()
    }

    /// The same with each wait in it once: all of them, or those of the foreground and of the background.
    fn parts(&self) -> Vec<(Waiters, Waits<'a>)> {
        let are_both = self.foreground.is_some() && self.background.is_some();
        let mut stated = self.stated();
        stated.retain(|(by, _)| self.all.is_none() || (*by == Waiters::All) != are_both);
        stated
    }

    /// Foreground and background waits together, as the tables of events have them.
    fn both(&self) -> Option<Waits<'a>> {
        let add = |one: Waits<'a>, other: Waits<'a>| Waits {
            count: one.count.saturating_add(other.count),
            total_ns: one.total_ns.zip(other.total_ns).map(|(one, other)| one.saturating_add(other)),
            ..one
        };
        self.all.or_else(|| self.parts().into_iter().map(|(_, waits)| waits).reduce(add))
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
        let by = if title.starts_with("foregroundwaitevents") {
            Waiters::Foreground
        } else if title.starts_with("backgroundwaitevents") {
            Waiters::Background
        } else if title.starts_with("waitevents") {
            Waiters::All
        } else {
            continue;
        };
        add_waits(table, &mut events, by, notes);
    }
    let tables = histogram::bucket_tables(report, notes);
    for (at, buckets) in tables.iter().enumerate() {
        add_histograms(at, buckets, &mut events, notes);
    }
    let reported_classes = reported_classes(report);
    for (name, event) in &mut events {
        if event.class.is_empty() {
            let known = reported_classes.get(name.as_str()).copied().unwrap_or_else(|| classes::class(name));
            event.class = match event.is_idle {
                Some(true) if known.is_empty() => IDLE,
                // Releases differ in what they take for idle, and the report knows its own.
                Some(false) if known == IDLE => "",
                _ => known,
            };
        }
    }
    let mut joined = Joined::default();
    for (name, event) in &events {
        joined.add(name, event, &tables, notes);
    }
    remarks.extend(joined.remarks());
    step.waits = joined.waits;
}

/// Wait classes that the tables of the top events and of a cluster's events report.
fn reported_classes(report: &Report) -> BTreeMap<&str, &str> {
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

fn add_waits<'a>(table: &'a Table, events: &mut BTreeMap<String, Event<'a>>, by: Waiters, notes: &mut Notes) {
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
    let share = column(table, |name| name.starts_with('%') && SHARES.iter().any(|of| name.contains(of)));
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
        // The less precise one still bounds it, so that no total rounds to another figure than the report prints.
        let best = match (best, total) {
            (Some(best), Some(total)) if (best.value - total.value).abs() <= best.off + total.off => {
                Some(times::Rounded {
                    value: best.value.clamp(total.value - total.off, total.value + total.off),
                    ..best
                })
            }
            (best, _) => best,
        };
        let total_ns = best.filter(|best| best.value > best.off || count == 0).and_then(|best| whole(best.value));
        let waits = Waits { count, total_ns, source: &table.title };
        let event = events.entry(name.to_owned()).or_default();
        if seen.insert(name) {
            event.take(by, waits);
        } else {
            event.namesakes.push((by, waits));
        }
        if let Some(at) = share.filter(|_| total_ns > Some(0)) {
            event.is_idle = Some(row.cell(at).is_empty());
        }
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

#[derive(Default)]
struct Joined {
    waits: Vec<WaitStats>,
    /// Events whose foreground and background waits are in one histogram.
    together: u64,
    /// Events of which histograms and tables of events have different numbers: name, the table's and the histogram's.
    apart: Vec<(String, u64, u64)>,
    /// Names that are of several events.
    namesakes: Vec<String>,
}

impl Joined {
    fn add(&mut self, name: &str, event: &Event<'_>, tables: &[Buckets<'_>], notes: &mut Notes) {
        if !event.namesakes.is_empty() || event.has_two_histograms {
            self.namesakes.push(name.to_owned());
            return self.counted(name, event);
        }
        let known = event.both();
        let (count, total_ns) = match (event.printed(tables), known) {
            // Rounded in the histogram to what the tables of events have exactly.
            (Some(printed), Some(known)) if printed.waits.abs_diff(known.count) <= printed.off => {
                (known.count, known.total_ns)
            }
            (None, Some(known)) => (known.count, known.total_ns),
            (Some(printed), _) => (printed.waits, None),
            (None, None) => return,
        };
        let Some(waits) = self.histogram(name, event, tables, count, total_ns, notes) else {
            if known.is_none() && count > 0 {
                self.push(name, event, event.is_foreground(), Histogram::counted(count, None), Vec::new());
            }
            return self.counted(name, event);
        };
        let stated = event.stated();
        let apart = known.filter(|known| known.count != count);
        if let Some(known) = apart {
            self.apart.push((name.to_owned(), known.count, count));
        }
        self.together += u64::from(stated.len() > 1);
        let reported = if apart.is_some() || stated.len() > 1 {
            stated.iter().map(|(by, waits)| waits.reported_waits(*by)).collect()
        } else {
            Vec::new()
        };
        self.push(name, event, event.is_foreground(), waits, reported);
    }

    /// What the reader of the waits must know.
    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.together > 0 {
            remarks.push(
                "Histograms have waits of the foreground and background together; numbers and times of each are those of the \
                 tables of events."
                    .to_owned(),
            );
        }
        let named = |all: Vec<String>| {
            let more = all.len().saturating_sub(MAX_NAMED);
            let first = all.into_iter().take(MAX_NAMED).collect::<Vec<_>>().join(", ");
            if more > 0 { format!("{first}, and {more} more") } else { first }
        };
        if !self.apart.is_empty() {
            let mut far: Vec<_> = self
                .apart
                .iter()
                .filter(|(_, table, histogram)| {
                    *table.max(histogram) >= MIN_WAITS_NAMED && table.abs_diff(*histogram) > histogram / ALMOST
                })
                .collect();
            far.sort_by_key(|(_, table, histogram)| Reverse(table.abs_diff(*histogram)));
            let far = far.into_iter().map(|(name, table, histogram)| {
                format!(
                    "`{name}` ({} there, {} here)",
                    group_thousands(*table as f64),
                    group_thousands(*histogram as f64)
                )
            });
            let far: Vec<String> = far.collect();
            let far = if far.is_empty() { String::new() } else { format!(" By more than a tenth: {}.", named(far)) };
            remarks.push(format!(
                "Of {} events the tables of events and the histograms have different numbers of waits. Both are kept: numbers, \
                 times and ranks are those of the tables, shares and quantiles those of the histograms.{far}",
                self.apart.len()
            ));
        }
        if !self.namesakes.is_empty() {
            let names = self.namesakes.iter().map(|name| format!("`{name}`")).collect();
            remarks.push(format!(
                "The report cut names of several events to one: {}. Each of their rows is kept, without a histogram: it does not \
                 tell which one is of which.",
                named(names)
            ));
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
        Some(Histogram::reported(buckets?, total_ns, None, None)).filter(|waits| waits.count() == count)
    }

    /// An event without a histogram: the foreground and the background apart, and events of the same name.
    fn counted(&mut self, name: &str, event: &Event<'_>) {
        for (by, waits) in event.parts().iter().chain(&event.namesakes).filter(|(_, waits)| waits.count > 0) {
            let foreground = match by {
                Waiters::Foreground => true,
                Waiters::Background => false,
                Waiters::All => event.is_foreground(),
            };
            self.push(name, event, foreground, Histogram::counted(waits.count, waits.total_ns), Vec::new());
        }
    }

    fn push(
        &mut self,
        name: &str,
        event: &Event<'_>,
        foreground: bool,
        waits: Histogram,
        reported: Vec<ReportedWaits>,
    ) {
        let (class, layer) = (event.class.to_owned(), LAYER.to_owned());
        let event = classes::whole_name(name).unwrap_or(name).to_owned();
        self.waits.push(WaitStats { event, class, layer, foreground, waits, reported });
    }
}

impl Event<'_> {
    /// All waits of the event as the histogram of the whole range has them.
    fn printed(&self, tables: &[Buckets<'_>]) -> Option<Total> {
        let (at, row) = self.histograms.first()?;
        if tables.get(*at)?.is_whole { row.total } else { None }
    }
}
