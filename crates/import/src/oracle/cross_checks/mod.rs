//! Figures that a report states twice: where its tables contradict each other by more than they round, the reader must know.

use std::collections::BTreeMap;

use super::header::last_part;
use super::table::{Report, SNAPSHOTS, Table, plain};
use super::times::{self, Rounded};
use super::top;
use model::record::Step;

/// Notes of one report; the rest is counted.
const MAX_NOTES: usize = 8;
/// What two figures may differ beyond their rounding, as a share: rates of several tables are over times that differ a little, and
/// some are sums of figures that were rounded before.
const SLACK: f64 = 0.01;
/// The same of figures that two parts of the database count: those of processes and those of I/O functions.
const COUNTED_APART: f64 = 0.1;
const MB: f64 = 1_048_576.0;

/// Where a figure stands: in tables whose title contains a word, in a row and a column of one of these names.
struct CellSelector {
    title: &'static [&'static str],
    column: &'static [&'static str],
    row: &'static [&'static str],
    /// What one of it is in the unit of the pair.
    unit: f64,
}

const fn load(row: &'static [&'static str], unit: f64) -> CellSelector {
    CellSelector { title: &["loadprofile"], column: &["Per Second"], row, unit }
}

const fn statistic(row: &'static [&'static str]) -> CellSelector {
    CellSelector { title: &["instanceactivity", "systemstatisticsglobal"], column: &["per Second"], row, unit: 1.0 }
}

const fn profile(column: &'static [&'static str], row: &'static [&'static str], unit: f64) -> CellSelector {
    CellSelector { title: &["ioprofile"], column, row, unit }
}

const READ: &[&str] = &["Read per Second", "Reads/s"];
const WRITE: &[&str] = &["Write per Second", "Writes/s"];

/// What is stated twice, per second.
const PAIRS: [(&str, CellSelector, CellSelector); 18] = [
    ("read requests", load(&["Read IO requests"], 1.0), profile(READ, &["Database Requests"], 1.0)),
    ("write requests", load(&["Write IO requests"], 1.0), profile(WRITE, &["Database Requests"], 1.0)),
    ("read requests", load(&["Read IO requests"], 1.0), statistic(&["physical read IO requests"])),
    ("write requests", load(&["Write IO requests"], 1.0), statistic(&["physical write IO requests"])),
    ("read requests", profile(READ, &["Database Requests"], 1.0), statistic(&["physical read IO requests"])),
    ("all read requests", profile(READ, &["Total Requests"], 1.0), statistic(&["physical read total IO requests"])),
    ("all write requests", profile(WRITE, &["Total Requests"], 1.0), statistic(&["physical write total IO requests"])),
    ("bytes read", load(&["Read IO (MB)"], MB), profile(READ, &["Database (MB)"], MB)),
    ("bytes written", load(&["Write IO (MB)"], MB), profile(WRITE, &["Database (MB)"], MB)),
    ("bytes read", load(&["Read IO (MB)"], MB), statistic(&["physical read bytes"])),
    ("bytes written", load(&["Write IO (MB)"], MB), statistic(&["physical write bytes"])),
    ("all bytes read", profile(READ, &["Total (MB)"], MB), statistic(&["physical read total bytes"])),
    ("all bytes written", profile(WRITE, &["Total (MB)"], MB), statistic(&["physical write total bytes"])),
    ("redo", load(&["Redo size (bytes)", "Redo size"], 1.0), statistic(&["redo size"])),
    ("logical reads", load(&["Logical read (blocks)", "Logical reads"], 1.0), statistic(&["session logical reads"])),
    ("blocks read", load(&["Physical read (blocks)", "Physical reads"], 1.0), statistic(&["physical reads"])),
    ("blocks written", load(&["Physical write (blocks)", "Physical writes"], 1.0), statistic(&["physical writes"])),
    ("executions", load(&["Executes (SQL)", "Executes"], 1.0), statistic(&["execute count"])),
];

/// A figure as a table prints it.
struct Stated {
    table: String,
    name: String,
    text: String,
    figure: Rounded,
}

/// Something that two tables state.
struct Twice {
    what: String,
    one: Stated,
    other: Stated,
    slack: f64,
}

impl Twice {
    fn agrees(&self) -> bool {
        let (one, other) = (self.one.figure, self.other.figure);
        (one.value - other.value).abs() <= one.off + other.off + self.slack * one.value.abs().max(other.value.abs())
    }

    fn sentence(&self) -> String {
        let place = |stated: &Stated| format!("{} in `{}` (`{}`)", stated.text, stated.table, stated.name);
        format!("{}: {}, and {}.", self.what, place(&self.one), place(&self.other))
    }
}

/// What the reader must know of figures of a report that contradict each other.
pub(super) fn notes(report: &Report, step: &Step) -> Vec<String> {
    let twice = rates(report).chain(functions(report, step)).chain(times_of(report)).chain(waits(report));
    let differing: Vec<Twice> = twice.filter(|twice| !twice.agrees()).collect();
    let mut notes: Vec<String> = differing
        .iter()
        .take(MAX_NOTES)
        .map(|twice| format!("The report states one figure in two ways. {}", twice.sentence()))
        .collect();
    if differing.len() > MAX_NOTES {
        notes.push(format!("The report states {} more figures in two ways.", differing.len() - MAX_NOTES));
    }
    notes.extend(processor_time(step));
    notes
}

fn rates(report: &Report) -> impl Iterator<Item = Twice> + '_ {
    PAIRS.iter().filter_map(|(what, one, other)| {
        let what = capitalised(&format!("{what} per second"));
        Some(Twice { what, one: find(report, one)?, other: find(report, other)?, slack: SLACK })
    })
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The figure at a place; nothing if it is not there, or there twice and not the same.
fn find(report: &Report, place: &CellSelector) -> Option<Stated> {
    let mut found: Option<Stated> = None;
    for table in &report.tables {
        let title = plain(&table.title);
        let is_other = ["absolute", "thread", "pdb"].iter().any(|other| title.contains(other));
        if is_other || !place.title.iter().any(|wanted| title.contains(wanted)) {
            continue;
        }
        let Some(column) = place.column.iter().find_map(|name| table.column(name)) else { continue };
        for row in place.row.iter().filter_map(|name| table.row(name)) {
            let Some(figure) = times::rounded(row.cell(column)) else { continue };
            if found.as_ref().is_some_and(|known| known.text != row.cell(column)) {
                return None;
            }
            found = Some(Stated {
                table: table.title.clone(),
                name: row.cell(0).trim_end_matches(':').to_owned(),
                text: row.cell(column).to_owned(),
                figure: figure.scaled(place.unit),
            });
        }
    }
    found
}

/// Bytes per second of all functions together, whose units are not always reported, against the statistics.
fn functions<'a>(report: &'a Report, step: &'a Step) -> impl Iterator<Item = Twice> + 'a {
    let pairs = [("Reads", READ, "All bytes read per second"), ("Writes", WRITE, "All bytes written per second")];
    pairs.into_iter().filter_map(|(group, column, what)| {
        let name = format!("function TOTAL:: {group}: Data per sec");
        let total = step.reported.iter().find(|figure| figure.name == name && figure.unit == "B/s")?;
        let one = Stated {
            table: "IOStat by Function summary".to_owned(),
            name: format!("TOTAL, {group}: Data per sec"),
            text: format!("{:.3} MB", total.value / MB),
            // The third decimal of the megabyte is the last that is printed.
            figure: Rounded { value: total.value, off: MB / 1e3 },
        };
        let other = find(report, &profile(column, &["Total (MB)", "Total (MB):"], MB))?;
        Some(Twice { what: what.to_owned(), one, other, slack: COUNTED_APART })
    })
}

/// Processor time of sessions is a part of DB time.
fn processor_time(step: &Step) -> Option<String> {
    let seconds = |name: &str| step.reported.iter().find(|figure| figure.name == name && figure.unit == "s");
    let (all, processors) = (seconds("DB time")?.value, seconds("DB CPU")?.value);
    (processors > all * (1.0 + COUNTED_APART) && processors > all + 1.0).then(|| {
        format!(
            "The report has {processors} s of DB CPU in {all} s of DB time, though DB CPU is a part of it: one of both is wrong, and DB CPU \
             has no share of DB time here."
        )
    })
}

/// Elapsed time and DB time, in seconds.
fn times_of(report: &Report) -> impl Iterator<Item = Twice> {
    elapsed(report).into_iter().chain(db_time(report))
}

/// What the snapshots' line of that name has in minutes, as seconds.
fn minutes(report: &Report, name: &str) -> Option<Stated> {
    let snapshots = report.table(SNAPSHOTS)?;
    let row = snapshots.row(name)?;
    let (text, ns) = row.cells.iter().skip(1).find_map(|cell| Some((cell, times::minutes_ns(cell)?)))?;
    let figure = Rounded { value: ns as f64 / 1e9, off: 0.3 };
    Some(Stated { table: "snapshots".to_owned(), name: name.to_owned(), text: text.clone(), figure })
}

fn elapsed(report: &Report) -> Option<Twice> {
    let snapshots = report.table(SNAPSHOTS)?;
    let at = |name: &str| {
        let cell = snapshots.cell(snapshots.row(name)?, "Snap Time")?;
        times::time(cell).filter(|(_, has_seconds)| *has_seconds)
    };
    let seconds = at("End Snap")?.0.duration_since(at("Begin Snap")?.0).as_secs();
    let one = Stated {
        table: "snapshots".to_owned(),
        name: "Begin Snap, End Snap".to_owned(),
        text: format!("{seconds} s"),
        // Two snapshots, each up to a second away from the second that is printed.
        figure: Rounded { value: seconds as f64, off: 2.0 },
    };
    let what = "Elapsed time (a clock that was put forward or back shows so)".to_owned();
    Some(Twice { what, one, other: minutes(report, "Elapsed")?, slack: 0.0 })
}

fn db_time(report: &Report) -> Option<Twice> {
    let title = |table: &&Table| {
        let title = plain(&table.title);
        title.starts_with("timemodelsys") || title == "timemodelstatistics"
    };
    let table = report.tables.iter().find(title)?;
    let row = table.row("DB time")?;
    let at = table.columns.iter().position(|name| plain(name).starts_with("time"))?;
    let other = Stated {
        table: table.title.clone(),
        name: "DB time".to_owned(),
        text: format!("{} s", row.cell(at)),
        figure: times::rounded(row.cell(at))?,
    };
    Some(Twice { what: "DB time".to_owned(), one: minutes(report, "DB Time")?, other, slack: SLACK })
}

/// Waits of an event and their sum, as a table prints them.
struct Waits<'a> {
    count: (&'a str, Rounded),
    total: Option<(&'a str, Rounded)>,
}

/// Waits by event.
fn events(table: &Table) -> BTreeMap<&str, Waits<'_>> {
    let column = |passes: fn(&str) -> bool| table.columns.iter().position(|name| passes(&plain(last_part(name))));
    let (Some(event), Some(count)) = (column(|name| name == "event"), column(|name| name == "waits")) else {
        return BTreeMap::new();
    };
    let total = column(|name| name.starts_with("total") && !name.contains("waits"));
    let unit = total.and_then(|at| times::unit_of_column(table.columns.get(at)?)).unwrap_or(1e9);
    let mut events = BTreeMap::new();
    for row in &table.rows {
        let sum = total.and_then(|at| Some((row.cell(at), times::rounded_ns(row.cell(at), Some(unit))?)));
        if let Some(waits) = times::rounded(row.cell(count)) {
            // A number without a suffix is not rounded.
            let is_exact = row.cell(count).ends_with(|c: char| c.is_ascii_digit());
            let waits = if is_exact { Rounded { off: 0.0, ..waits } } else { waits };
            events.insert(row.cell(event), Waits { count: (row.cell(count), waits), total: sum });
        }
    }
    events
}

/// The tables of top events against those of all events.
fn waits(report: &Report) -> Vec<Twice> {
    let mut twice = Vec::new();
    for (top, itself) in top::of(report) {
        let all = report.tables.iter().filter(|table| plain(&table.title).starts_with(&plain(&top.title)));
        let all: BTreeMap<&str, (&Table, Waits<'_>)> =
            all.flat_map(|table| events(table).into_iter().map(move |(name, waits)| (name, (table, waits)))).collect();
        for (name, shown) in events(&top) {
            let Some((table, stated)) = all.get(name) else { continue };
            let in_table = |table: &Table, (text, figure): (&str, Rounded)| Stated {
                table: table.title.clone(),
                name: name.to_owned(),
                text: text.to_owned(),
                figure,
            };
            let both = |what: &str, shown, stated, slack| Twice {
                what: what.to_owned(),
                one: in_table(itself, shown),
                other: in_table(table, stated),
                slack,
            };
            twice.push(both("Waits", shown.count, stated.count, 0.0));
            let totals = shown.total.zip(stated.total);
            twice.extend(totals.map(|(shown, stated)| both("Seconds waited", shown, stated, SLACK)));
        }
    }
    twice
}

#[cfg(test)]
mod tests;
