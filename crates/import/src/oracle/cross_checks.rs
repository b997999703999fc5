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
            "The report has {processors} s of DB CPU in {all} s of DB time, though DB CPU is a part of it. One of \
            both is wrong, so no share is shown."
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
mod tests {
    use super::*;
    use crate::oracle::table::ReportKind;
    use model::record::Step;

    fn report(tables: Vec<Table>) -> Report {
        Report { kind: ReportKind::AwrSingle, is_on_pdb: false, tables, ended: true, last_line: 9 }
    }

    fn load_profile(reads: &str, megabytes: &str) -> Table {
        Table::of("Load Profile", &["", "Per Second"], &[&["Read IO requests", reads], &["Read IO (MB)", megabytes]])
    }

    fn io_profile(reads: &str, megabytes: &str) -> Table {
        let columns = ["", "Read+Write Per Second", "Read per Second", "Write Per Second"];
        Table::of(
            "IO Profile",
            &columns,
            &[&["Database Requests", "", reads, ""], &["Database (MB)", "", megabytes, ""]],
        )
    }

    fn notes_of(tables: Vec<Table>) -> Vec<String> {
        notes(&report(tables), &Step::new(0, "step"))
    }

    #[test]
    fn figures_that_agree_within_their_rounding_need_no_note() {
        assert!(notes_of(vec![load_profile("1,000.5", "7.8"), io_profile("1,000.5", "7.8")]).is_empty());
        assert!(notes_of(vec![load_profile("1,000.5", "7.8"), io_profile("1,000", "7.82")]).is_empty(), "fewer digits");
        assert!(notes_of(vec![load_profile("1,000.5", "7.8")]).is_empty(), "it is stated once");
        assert!(notes_of(vec![load_profile("N/A", "7.8"), io_profile("1,000", "7.8")]).is_empty());
    }

    #[test]
    fn what_contradicts_another_table_is_reported_with_both_figures_and_tables() {
        let notes = notes_of(vec![load_profile("1,000.5", "7.8"), io_profile("1,100.5", "7.9")]);
        let first = "The report states one figure in two ways. Read requests per second: 1,000.5 in `Load Profile` (`Read IO \
                 requests`), and 1,100.5 in `IO Profile` (`Database Requests`).";
        assert_eq!((notes.len(), notes[0].as_str()), (1, first), "7.8 and 7.9 may both be 7.85: {notes:?}");
    }

    #[test]
    fn figures_that_were_rounded_before_they_were_summed_need_no_note() {
        // 8,331,291.36 bytes are 7.945 MB, which some profiles print as 8.0.
        let rows: [&[&str]; 1] = [&["physical read total bytes", "1", "8,331,291.36", "1"]];
        let activity = Table::of("Instance Activity Stats", &["Statistic", "Total", "per Second", "per Trans"], &rows);
        let profile = |megabytes: &str| {
            let columns = ["", "Read+Write Per Second", "Read per Second", "Write Per Second"];
            Table::of("IO Profile", &columns, &[&["Total (MB)", "", megabytes, ""]])
        };
        assert!(notes_of(vec![profile("8.0"), activity.clone()]).is_empty());
        assert_eq!(notes_of(vec![profile("8.3"), activity]).len(), 1);
    }

    #[test]
    fn more_processor_time_than_db_time_is_doubted() {
        let with = |processors: f64| {
            let mut step = Step::new(0, "step");
            let figure = |name: &str, value| crate::draft::reported_figure("engine", name, "s", value);
            step.reported = vec![figure("DB time", 617.8), figure("DB CPU", processors)];
            notes(&report(Vec::new()), &step)
        };
        assert!(with(620.0).is_empty(), "both are sampled a little apart");
        assert!(with(1186.7)[0].starts_with("The report has 1186.7 s of DB CPU in 617.8 s of DB time"));
    }

    #[test]
    fn totals_of_bytes_and_megabytes_are_held_against_each_other() {
        let activity = |bytes: &str| {
            let rows: [&[&str]; 1] = [&["physical read bytes", "9,000,000,000", bytes, "1"]];
            Table::of("Other Instance Activity Stats", &["Statistic", "Total", "per Second", "per Trans"], &rows)
        };
        assert!(notes_of(vec![load_profile("1", "7.8"), activity("8,178,892.80")]).is_empty(), "7.8 x 2^20");
        let decimal = notes_of(vec![load_profile("1", "7.8"), activity("7,800,000.00")]);
        assert!(decimal[0].contains("Bytes read per second: 7.8 in `Load Profile`"), "{decimal:?}");
    }

    #[test]
    fn functions_whose_unit_is_not_printed_are_held_against_the_profile() {
        let mut step = Step::new(0, "step");
        let total =
            |mb: f64| crate::draft::reported_figure("engine", "function TOTAL:: Reads: Data per sec", "B/s", mb * MB);
        let profile = || {
            let columns = ["", "Read+Write Per Second", "Read per Second", "Write Per Second"];
            report(vec![Table::of("IO Profile", &columns, &[&["Total (MB)", "", "20.1", ""]])])
        };
        step.reported = vec![total(19.9)];
        assert!(notes(&profile(), &step).is_empty());
        step.reported = vec![total(19.9 / 1_024.0)];
        assert!(
            notes(&profile(), &step)[0].contains("All bytes read per second: 0.019 MB in `IOStat by Function summary`")
        );
    }

    #[test]
    fn snapshots_and_times_are_held_against_each_other() {
        let snapshots = |end: &str, elapsed: &str, db_time: &str| {
            let rows: [&[&str]; 4] = [
                &["Begin Snap", "11", "03-May-21 09:00:10"],
                &["End Snap", "12", end],
                &["Elapsed", "", elapsed],
                &["DB Time", "", db_time],
            ];
            Table::of(SNAPSHOTS, &["", "Snap Id", "Snap Time"], &rows)
        };
        let model = || Table::of("Time Model Statistics", &["Statistic Name", "Time (s)"], &[&["DB time", "6,030.12"]]);
        assert!(notes_of(vec![snapshots("03-May-21 09:20:30", "20.33 (mins)", "100.50 (mins)"), model()]).is_empty());
        let notes = notes_of(vec![snapshots("03-May-21 10:20:30", "20.33 (mins)", "90.50 (mins)"), model()]);
        assert!(notes[0].contains("4820 s in `snapshots`") && notes[0].contains("20.33 (mins)"), "{notes:?}");
        assert!(notes[1].contains("DB time: 90.50 (mins) in `snapshots` (`DB Time`), and 6,030.12 s"), "{notes:?}");
    }

    #[test]
    fn top_events_are_held_against_all_events() {
        let all = Table::of(
            "Foreground Wait Events",
            &["Event", "Waits", "Total Wait Time (s)"],
            &[&["tape read", "6,904,693", "26,366"], &["tape write", "5", "1"]],
        );
        let top = |waits: &str, time: &str| {
            Table::of(
                "Top 10 Foreground Events by Total Wait Time",
                &["Event", "Waits", "Total Wait Time (sec)"],
                &[&["tape read", waits, time], &["DB CPU", "", "489.7"]],
            )
        };
        assert!(notes_of(vec![top("6,904,693", "26.4K"), all.clone()]).is_empty());
        let notes = notes_of(vec![top("6,904,600", "27.4K"), all]);
        assert!(notes[0].contains("Waits: 6,904,600 in `Top 10 Foreground Events by Total Wait Time` (`tape read`)"));
        assert!(notes[1].contains("Seconds waited: 27.4K") && notes[1].contains("26,366"), "{notes:?}");
    }

    #[test]
    fn of_very_many_the_rest_is_counted() {
        let rows: Vec<Vec<String>> = (0..20).map(|n| vec![format!("event {n}"), "1".to_owned()]).collect();
        let other: Vec<Vec<String>> = (0..20).map(|n| vec![format!("event {n}"), "2".to_owned()]).collect();
        let of = |title: &str, rows: &[Vec<String>]| {
            let rows: Vec<Vec<&str>> = rows.iter().map(|row| row.iter().map(String::as_str).collect()).collect();
            let rows: Vec<&[&str]> = rows.iter().map(Vec::as_slice).collect();
            Table::of(title, &["Event", "Waits"], &rows)
        };
        let notes = notes_of(vec![of("Top 20 Timed Foreground Events", &rows), of("Foreground Wait Events", &other)]);
        assert_eq!(notes.len(), MAX_NOTES + 1);
        assert_eq!(notes[MAX_NOTES], "The report states 12 more figures in two ways.");
    }
}
