//! What the machine did between the snapshots of a report: those within its window become intervals.

use jiff::civil::DateTime;

use super::table::{Report, Row, Table, plain};
use super::times;
use crate::draft::reported_figure;
use crate::numbers::number;
use model::record::{Interval, Metric, Step};

/// More snapshots than a report spans: a year of hours.
const MAX_SNAPSHOTS: usize = 10_000;
/// The first snapshot is that at which the report begins, give or take its rounding.
const MAX_OFF_S: i64 = 90;

/// Columns, as [`plain`] makes them, and the figures of the step that have their layers and units.
const FIGURES: [(&str, &str); 8] = [
    ("load", "Load Average End"),
    ("%busy", "%Busy"),
    ("%user", "%User"),
    ("%sys", "%System"),
    ("%system", "%System"),
    ("%idle", "%Idle"),
    ("%iowait", "%WIO"),
    ("%wio", "%WIO"),
];

/// Fills in the intervals of a step that began then, by the clock on the wall. With two snapshots alone there is one interval, of
/// which the step itself reports the same.
pub(super) fn read(report: &Report, began: Option<DateTime>, step: &mut Step) {
    let is_detail = |title: &str| ["operatingsystemstatisticsdetail", "osstatisticsdetail"].contains(&title);
    let Some(table) = report.tables.iter().find(|table| is_detail(&plain(&table.title))) else { return };
    let Some((began, at)) = began.zip(table.columns.iter().position(|name| plain(name).contains("time"))) else {
        return;
    };
    let mut intervals = Vec::new();
    let mut last = began;
    for (index, row) in table.rows.iter().take(MAX_SNAPSHOTS).enumerate() {
        let Some(time) = time_after(row.cell(at), last) else { return };
        let seconds = time.duration_since(last).as_secs();
        if index == 0 {
            if seconds.abs() > MAX_OFF_S {
                return;
            }
        } else if let Some(duration_ns) = nanoseconds(seconds).filter(|ns| *ns > 0) {
            let offset_ns = nanoseconds(last.duration_since(began).as_secs()).unwrap_or(0);
            let figures = figures(table, row);
            intervals.push(Interval {
                step: step.index,
                offset_ns,
                duration_ns,
                reported: figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
                ..Interval::default()
            });
        } else {
            // The clock was set back: nobody knows how long what follows took.
            return;
        }
        last = if index == 0 { began } else { time };
    }
    if intervals.len() < 2 {
        return;
    }
    set_busy(&intervals, step);
    step.intervals = intervals;
}

/// Figures of the step have layers and units, which those of its intervals take from there. It has no `%Busy`, but `%Idle`.
fn set_busy(intervals: &[Interval], step: &mut Step) {
    let is_busy_reported = intervals.iter().any(|interval| interval.reported.contains_key("%Busy"));
    let idle =
        step.reported.iter().find(|figure| figure.name == "%Idle" && figure.layer == "host").map(|figure| figure.value);
    if let Some(idle) = idle.filter(|_| is_busy_reported) {
        step.reported.push(reported_figure("host", "%Busy", "%", 100.0 - idle).is(Metric::HostBusy, 1.0));
    }
}

fn nanoseconds(seconds: i64) -> Option<u64> {
    u64::try_from(seconds).ok()?.checked_mul(1_000_000_000)
}

fn figures(table: &Table, row: &Row) -> Vec<(&'static str, f64)> {
    let figure = |(heading, cell): (&String, &String)| {
        let heading = plain(heading);
        let (_, name) = FIGURES.iter().find(|(column, _)| *column == heading)?;
        Some((*name, number(cell)?))
    };
    table.columns.iter().zip(&row.cells).filter_map(figure).collect()
}

/// A time without its year (`11-Feb 12:14:15`) or without month and year (`Sun 31 00:00:03`), as the first one that is not
/// before `last`, or shortly before it.
fn time_after(text: &str, last: DateTime) -> Option<DateTime> {
    let (date, clock) = text.trim().rsplit_once(' ')?;
    let not_before = |time: &DateTime| time.duration_since(last).as_secs() >= -MAX_OFF_S;
    if date.contains('-') {
        let in_year = |year: i16| times::time(&format!("{date}-{year} {clock}")).map(|(time, _)| time);
        return [last.year(), last.year().checked_add(1)?].into_iter().filter_map(in_year).find(not_before);
    }
    let day: i8 = date.rsplit(' ').next()?.parse().ok()?;
    let time: jiff::civil::Time = clock.parse().ok()?;
    // A day that this month does not have is one of the next.
    let in_month = |months: i32| {
        let first = last.date().first_of_month().checked_add(jiff::Span::new().months(months)).ok()?;
        Some(first.with().day(day).build().ok()?.to_datetime(time))
    };
    (0..=2).filter_map(in_month).find(not_before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_without_their_year_follow_one_another() {
        let last: DateTime = "2019-12-31T23:00:05".parse().unwrap();
        let read = |text: &str| time_after(text, last).map(|time| time.to_string());
        let time = |text: &str| Some(text.to_owned());
        assert_eq!(read("31-Dec 23:30:00"), time("2019-12-31T23:30:00"));
        assert_eq!(read("01-Jan 00:00:02"), time("2020-01-01T00:00:02"));
        assert_eq!(read("Wed 01 00:00:02"), time("2020-01-01T00:00:02"));
        assert_eq!(read("Tue 31 23:00:05"), time("2019-12-31T23:00:05"));
        for wrong in ["", "31-Dec", "Tue 32 00:00:00", "99-Xyz 00:00:00", "Tue 31 24:99:00", "\u{2014} 1 00:00:00x"] {
            assert_eq!(time_after(wrong, last), None, "{wrong}");
        }
    }
}
