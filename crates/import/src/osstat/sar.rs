//! sar of sysstat as text: processors, devices, memory and what else has one row a sample.

use std::collections::HashMap;

use super::clock::{self, Day, Stamp};
use super::devices::{Invocation, Row, Sample, draft, human};
use super::header;
use super::iostat::{cell, shown};
use crate::{Draft, ImportError, Notes, Source, console};
use jiff::civil::Time;

/// Lines that may stand before the first table.
const LINES_BEFORE: usize = 30;
/// What sar writes where the machine was started anew.
const RESTART: &str = "LINUX RESTART";

/// Whether a table of sar comes first.
pub(crate) fn recognises(head: &str) -> bool {
    let mut lines = head.lines().filter(|line| !line.trim().is_empty()).take(LINES_BEFORE);
    lines.any(|line| begins(console::plain(line))) && header::tool_of(head).is_none()
}

/// A table that is being read.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Table {
    /// Shares of processors, of which the row of all counts.
    Processors(Vec<String>),
    Devices(Vec<String>),
    /// One row a sample.
    Host(Vec<String>),
    /// One of other things, by what they are.
    Other(String),
}

/// Whether a table of sar begins at a line.
pub(super) fn begins(line: &str) -> bool {
    Table::of(line).is_some_and(|(.., table)| !matches!(table, Table::Other(_)))
}

impl Table {
    /// The table that a line begins, with its time and whether that has halves of the day.
    fn of(line: &str) -> Option<(Time, bool, Self)> {
        const FIRST: [&str; 8] =
            ["kbmemfree", "kbswpfree", "runq-sz", "proc/s", "pgpgin/s", "pswpin/s", "cswch/s", "dentunusd"];
        let (time, rest, half_day) = clock::time_of(line, true).filter(|_| !line.contains(RESTART))?;
        let words: Vec<&str> = rest.split_whitespace().take(header::MAX_COLUMNS).collect();
        // A zone may stand before.
        let has_zone = words.get(1).is_some_and(|word| ["CPU", "DEV"].contains(word));
        let (first, columns) = words.get(usize::from(has_zone)..)?.split_first()?;
        let names = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let table = match *first {
            "CPU" if columns.contains(&"%idle") => Self::Processors(names(columns)),
            "DEV" if columns.contains(&"tps") => Self::Devices(names(columns)),
            "tps" if columns.contains(&"rtps") => Self::Host(names(&words)),
            first if FIRST.contains(&first) => Self::Host(names(&words)),
            first if first.len() > 2 && first.bytes().all(|byte| byte.is_ascii_uppercase()) && !columns.is_empty() => {
                Self::Other(first.to_owned())
            }
            _ => return None,
        };
        Some((time, half_day, table))
    }
}

/// What one file of sar, or one start of it, holds.
#[derive(Debug, Default)]
struct Reader {
    now: Invocation,
    /// The sample of each time: tables of one time follow one another, each for the whole day.
    places: HashMap<Time, usize>,
    half_days: bool,
    left_out: Vec<String>,
    done: Vec<Draft>,
}

/// Its runs: one for each first line of sysstat.
pub(crate) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut reader = Reader::default();
    let mut table: Option<Table> = None;
    for (number, line) in source.lines() {
        let line = console::plain(line);
        if let Some(header) = header::header(line) {
            reader.finish();
            (reader.now.header, table) = (Some(header), None);
        } else if let Some((time, half_day, begun)) = Table::of(line) {
            reader.half_days |= half_day;
            reader.now.began = reader.now.began.or(Some(stamp(time)));
            if let Table::Other(what) = &begun
                && !reader.left_out.contains(what)
            {
                reader.left_out.push(what.clone());
            }
            table = Some(begun);
        } else if let (Some((time, rest, _)), Some(table)) = (clock::time_of(line, true), &table) {
            if line.contains(RESTART) {
                reader.now.notes.push(format!("The machine was started anew at {time}."));
            } else if !reader.row(time, rest, table, notes) {
                notes.not_understood(number, format!("{}; a row of sar was expected", shown(line)));
            }
        } else if let Some((command, pace_s)) = header::command(line, "sar") {
            reader.finish();
            (reader.now.command, reader.now.pace_s) = (command, pace_s);
        } else if table.is_none() || !super::mpstat::is_average(line) {
            // Below a table stand averages, whatever the language calls them.
            notes.unknown(number, line);
        }
    }
    reader.finish();
    if reader.done.is_empty() {
        return Err(ImportError::no_result(source, "it holds no sample of sar; averages alone say nothing of when"));
    }
    Ok(reader.done)
}

fn stamp(time: Time) -> Stamp {
    Stamp { day: Day::Unreported, time, utc: false, month_first: None }
}

impl Reader {
    /// Takes a row; whether it was understood.
    fn row(&mut self, time: Time, rest: &str, table: &Table, notes: &mut Notes) -> bool {
        let words: Vec<&str> = rest.split_whitespace().take(header::MAX_COLUMNS + 1).collect();
        let (key, columns, values) = match (table, words.split_first()) {
            (Table::Other(_), _) => return true,
            (Table::Host(columns), _) => ("", columns, &words[..]),
            (Table::Processors(columns) | Table::Devices(columns), Some((key, values))) => (*key, columns, values),
            (_, None) => return false,
        };
        // `-h` writes sizes with their units.
        let of_unit =
            |value: &str, column: &str| human(value, if column.starts_with("kb") { "kB_read" } else { column });
        let of_cell = |(value, column): (&&str, &String)| cell(value).or_else(|| of_unit(value, column));
        let values: Option<Vec<f64>> =
            if values.len() == columns.len() { values.iter().zip(columns).map(of_cell).collect() } else { None };
        let Some(values) = values else { return false };
        if matches!(table, Table::Processors(_)) && key != "all" {
            return true;
        }
        let at = *self.places.entry(time).or_insert_with(|| {
            self.now.samples.push(Sample { stamp: Some(stamp(time)), ..Sample::default() });
            self.now.samples.len() - 1
        });
        let Some(sample) = self.now.samples.get_mut(at) else { return false };
        if !matches!(table, Table::Devices(_)) {
            sample.host.extend(columns.iter().cloned().zip(values));
            return true;
        }
        let Some(device) = self.now.devices.number(key) else {
            notes.not_understood(None, "one more device than can be distinguished");
            return true;
        };
        let numbers = columns.iter().filter_map(|column| self.now.columns.number(column));
        sample.rows.push(Row { device, group: false, values: numbers.zip(values).collect() });
        true
    }

    fn finish(&mut self) {
        let Self { mut now, half_days, left_out, done, .. } = std::mem::take(self);
        self.done = done;
        if now.samples.is_empty() {
            // A command stands before what it prints.
            (self.now.command, self.now.pace_s) = (now.command, now.pace_s);
            return;
        }
        if let Some(header) = now.header.as_mut().filter(|header| half_days && header.long_year) {
            // As in en_US; see [`clock::leading`].
            header.month_first = header.month_first.or(Some(true));
        }
        if !left_out.is_empty() {
            now.notes.push(format!("Tables of {} are left out.", left_out.join(", ")));
        }
        (now.program, now.begins_with_sample) = ("sar", true);
        self.done.push(draft(now));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::osstat::tests::{figure_value, wall};
    use crate::specimens::{damaged, drafts, only, survives};

    const DAY: &str = "Linux 5.14.0 (db7) \t11/30/2026 \t_x86_64_\t(8 CPU)\n\n\
11:40:01 PM     CPU     %user     %nice   %system   %iowait    %steal     %idle\n\
11:50:01 PM     all     10.00      0.00      2.00      4.00      0.00     84.00\n\
11:50:01 PM       0     20.00      0.00      2.00      4.00      0.00     74.00\n\
12:00:01 AM     all     30.00      0.00      6.00      8.00      0.00     56.00\n\
Average:        all     20.00      0.00      4.00      6.00      0.00     70.00\n\n\
11:40:01 PM       DEV       tps     rkB/s     wkB/s     dkB/s   areq-sz    aqu-sz     await     %util\n\
11:50:01 PM       sda    100.00    800.00    400.00      0.00     12.00      0.50      2.00     10.00\n\
12:00:01 AM       sda    300.00   2400.00   1200.00      0.00     12.00      1.50      4.00     30.00\n\n\
11:40:01 PM kbmemfree   kbavail kbmemused  %memused\n\
11:50:01 PM      1000      5000      3000     30.00\n\
12:00:01 AM      2000      6000      2000     20.00\n\n\
11:40:01 PM     IFACE   rxpck/s   txpck/s\n11:50:01 PM      eth0      1.00      2.00\n";

    #[test]
    fn tables_of_one_day_are_one_run_of_its_samples() {
        let draft = only("sar", DAY);
        let step = &draft.steps[0];
        assert_eq!((draft.program, draft.began), ("sar", wall("2026-11-30T23:40:01Z")));
        assert_eq!((step.window.duration_ns, step.intervals.len()), (1_200_000_000_000, 2), "across midnight");
        let names = ["%user", "%idle", "sda tps", "sda rkB/s", "sda await", "sda %util", "kbmemfree", "%memused"];
        let means = [20.0, 70.0, 200.0, 1_600.0, 3.5, 20.0, 1_500.0, 25.0];
        assert_eq!(names.map(|name| figure_value(step, name)), means);
        assert_eq!(step.intervals[1].reported["sda tps"], 300.0);
        assert_eq!(step.host_cpu.map(|cpu| cpu.user_ns), Some(8 * 240_000_000_000));
        assert!(draft.notes.contains(&"Tables of IFACE are left out.".to_owned()), "{:?}", draft.notes);
        let unit = |name: &str| step.reported.iter().find(|figure| figure.name == name).unwrap().unit.clone();
        assert_eq!(["kbmemfree", "%memused", "sda rkB/s"].map(unit), ["KiB", "%", "KiB/s"]);
    }

    #[test]
    fn sar_of_other_ages_and_languages_is_read() {
        let old = "$ sar -d 2 2\nLinux 2.6.32 (db7)      28/07/22        _x86_64_        (4 CPU)\n\n\
19:03:12          DEV       tps  rd_sec/s  wr_sec/s  avgrq-sz  avgqu-sz     await     svctm     %util\n\
19:03:14       dev8-0    100,00   1000,00      0,00     10,00      0,10      1,00      0,50      5,00\n\
19:03:16       dev8-0    200,00   2000,00      0,00     10,00      0,20      1,00      0,50     10,00\n\
Moyenne :      dev8-0    150,00   1500,00      0,00     10,00      0,15      1,00      0,50      7,50\n";
        let draft = only("sar", old);
        let step = &draft.steps[0];
        assert_eq!((draft.began, step.window.duration_ns), (wall("2022-07-28T19:03:12Z"), 4_000_000_000));
        let read = step.reported.iter().find(|figure| figure.name == "dev8-0 rd_sec/s").unwrap();
        assert_eq!((read.value, read.unit.as_str()), (1_500.0, "sectors/s"));
        let chinese = "Linux 4.19.118 (pi)      2020年10月03日  _armv7l_        (4 CPU)\n\n\
03时32分26秒 kbmemfree   kbavail\n03时32分28秒     89612    642628\n03时32分30秒     89614    642630\n";
        let draft = only("sar", chinese);
        assert_eq!((draft.began, draft.steps[0].intervals.len()), (wall("2020-10-03T03:32:26Z"), 2));
    }

    #[test]
    fn a_restart_is_said_and_each_start_is_a_run() {
        let twice = format!("{DAY}\n11:59:00 PM  LINUX RESTART\t(8 CPU)\n{DAY}");
        let found = drafts("sar", &twice);
        assert_eq!(found.len(), 2);
        assert!(found[0].notes.iter().any(|note| note.contains("started anew at 23:59")), "{:?}", found[0].notes);
    }

    proptest! {
        #[test]
        fn damaged_files_give_runs_or_errors(file in damaged(&[DAY])) {
            survives(file);
        }
    }
}
