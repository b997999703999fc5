//! Recordings of nmon (`nmon -f`), of Linux and AIX: processors, memory, disks and networks of each snapshot.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::clock::{self, Day, Stamp};
use super::devices::{Invocation, Row, Sample, draft};
use super::header::Header;
use super::iostat::{cell, shown};
use crate::{Draft, ImportError, Notes, Source, calendar};
use model::record::Environment;

/// Lines of `AAA` that may stand before the one with the name of the program; sorted files have them in the order of their names.
const LINES_BEFORE: usize = 60;
/// Columns of a table, and words of a line, that are looked at.
const MAX_COLUMNS: usize = 4_096;

/// Tables with a column for each disk, and the column of iostat that each is.
const DISKS: [(&str, &str); 6] = [
    ("DISKBUSY", "%util"),
    ("DISKREAD", "rkB/s"),
    ("DISKWRITE", "wkB/s"),
    ("DISKXFER", "tps"),
    ("DISKBSIZE", "areq-sz"),
    ("DISKRXFER", "r/s"),
];
/// Facts that commands print, single processors, and processes.
const NAMELESS: [&str; 5] = ["BBB", "CPU", "TOP", "UARG", "ERROR"];
/// Tables of the whole machine.
const HOST: [&str; 4] = ["CPU_ALL", "MEM", "NET", "NETPACKET"];

/// Whether it begins as nmon does.
pub(crate) fn recognises(head: &str) -> bool {
    let mut lines = head.lines().filter(|line| !line.trim().is_empty()).take(LINES_BEFORE).peekable();
    let is_nmon = |line: &str| line.strip_prefix("AAA,progname,").is_some_and(|name| name.contains("nmon"));
    lines.peek().is_some_and(|line| line.starts_with("AAA,")) && lines.any(is_nmon)
}

/// What one start of nmon wrote.
#[derive(Debug, Default)]
struct Recording {
    now: Invocation,
    version: String,
    environment: Environment,
    /// When it began: day and time are on lines of their own.
    day: Option<Day>,
    time: Option<jiff::civil::Time>,
    tables: HashMap<String, Vec<String>>,
    /// By the numbers of the snapshots: a sorted file has all of one table together, and the times last.
    samples: BTreeMap<u64, Sample>,
    left_out: Vec<String>,
    /// Tables that have headings and are not read.
    others: HashSet<String>,
}

/// Its runs: one for each start.
pub(crate) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut found = Vec::new();
    let mut recording = Recording::default();
    for (number, line) in source.lines() {
        let mut words = line.trim_end().split(',').map(str::trim);
        let (Some(table), Some(second)) = (words.next(), words.next()) else {
            notes.unknown(number, line);
            continue;
        };
        let rest: Vec<&str> = words.take(MAX_COLUMNS).collect();
        // Headings are names, of which some may be numbers.
        let is_heading =
            || snapshot(second).is_none() && (rest.is_empty() || rest.iter().any(|name| cell(name).is_none()));
        if table == "AAA" {
            // Notes of nmon itself come last, and a second recording begins anew.
            if second == "progname" && !recording.samples.is_empty() {
                found.extend(std::mem::take(&mut recording).draft());
            }
            recording.fact(second, &rest);
        } else if table == "ZZZZ" {
            match (snapshot(second), stamp(&rest)) {
                (Some(at), Some(stamp)) => recording.samples.entry(at).or_default().stamp = Some(stamp),
                _ => notes.not_understood(number, format!("{}; a snapshot and its time were expected", shown(line))),
            }
        } else if !recording.is_table(table) {
            if !recording.is_left_out(table, is_heading(), snapshot(second).is_some()) {
                notes.unknown(number, line);
            }
        } else if let Some(at) = snapshot(second) {
            if !recording.row(table, at, &rest) {
                notes.not_understood(
                    number,
                    format!("{}; values under the headings of {table} were expected", shown(line)),
                );
            }
        } else if !is_heading() {
            notes.unknown(number, line);
        } else {
            let unit = if second.contains(" MB") { " (MB)" } else { "" };
            let names = rest.iter().map(|name| if name.is_empty() { String::new() } else { format!("{name}{unit}") });
            recording.tables.insert(table.to_owned(), names.collect());
        }
    }
    found.extend(recording.draft());
    if found.is_empty() {
        return Err(ImportError::no_result(source, "it holds no snapshot of nmon"));
    }
    Ok(found)
}

/// `T0001`.
fn snapshot(word: &str) -> Option<u64> {
    word.strip_prefix('T').filter(|digits| digits.len() >= 4)?.parse().ok()
}

/// `14:51:34` or `14:51.34`.
fn time_of(text: &str) -> Option<jiff::civil::Time> {
    clock::time_of(&text.replace('.', ":"), true).map(|(time, ..)| time)
}

/// `24-SEP-2012`; versions of AIX have `03/03/11` too.
fn day_of(text: &str) -> Option<Day> {
    let named = || {
        let mut parts = text.split('-');
        let (day, month, year) = (parts.next()?, calendar::month(parts.next()?)?, parts.next()?);
        jiff::civil::Date::new(year.parse().ok()?, month, day.parse().ok()?).ok().map(Day::Known)
    };
    named().or_else(|| clock::date_in(text).map(|(day, ..)| day))
}

/// The time of a snapshot and, in most versions, its date.
fn stamp(words: &[&str]) -> Option<Stamp> {
    let (time, date) = words.split_first()?;
    let day = date.first().and_then(|date| day_of(date)).unwrap_or(Day::Unreported);
    Some(Stamp { day, time: time_of(time)?, utc: false, month_first: None })
}

/// The column of iostat that a table of disks is. Where there are very many disks, `DISKBUSY1` and so on have the rest.
fn of_disks(table: &str) -> Option<&'static str> {
    let table = table.trim_end_matches(|char: char| char.is_ascii_digit());
    DISKS.iter().find(|(name, _)| *name == table).map(|(_, column)| *column)
}

impl Recording {
    /// A line of `AAA`: what is known of nmon and its machine.
    fn fact(&mut self, name: &str, words: &[&str]) {
        let first = words.first().copied().unwrap_or_default();
        let text = || Some(first.to_owned()).filter(|text| !text.is_empty());
        match name {
            // In this order, in whichever the tables come.
            "progname" => DISKS.iter().for_each(|(_, column)| _ = self.now.columns.number(column)),
            "version" => first.clone_into(&mut self.version),
            "host" => self.environment.hostname = text(),
            "OS" => {
                self.environment.os = text();
                self.environment.kernel = words.get(1).map(|kernel| (*kernel).to_owned());
                self.environment.architecture = words.last().map(|last| (*last).to_owned());
            }
            "AIX" => self.environment.os = Some(format!("AIX {first}")),
            "cpus" => self.environment.cpus = first.parse().ok(),
            "interval" => self.now.pace_s = first.parse::<u32>().ok().map(f64::from).filter(|pace_s| *pace_s > 0.0),
            "command" => self.now.command = words.join(",").split_whitespace().take(64).map(str::to_owned).collect(),
            "time" => self.time = time_of(first),
            "date" => self.day = day_of(first),
            _ => {}
        }
    }

    /// Whether a line is of a table that is not read: its headings, or a row below them.
    fn is_left_out(&mut self, table: &str, is_heading: bool, is_row: bool) -> bool {
        let is_known = NAMELESS.iter().any(|start| table.starts_with(start))
            || self.left_out.iter().any(|known| known == table)
            || self.others.contains(table);
        if is_heading && !is_known && self.others.len() < MAX_COLUMNS {
            self.others.insert(table.to_owned());
        }
        is_heading || (is_row && is_known) || NAMELESS.iter().any(|start| table.starts_with(start))
    }

    /// Whether a table is read; of others the first few are named.
    fn is_table(&mut self, table: &str) -> bool {
        let is_read = HOST.contains(&table) || of_disks(table).is_some();
        let is_name = table.len() > 2 && table.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
        if !is_read && is_name && !NAMELESS.iter().any(|start| table.starts_with(start)) {
            let known = self.left_out.iter().any(|known| known == table);
            if !known && self.left_out.len() < 40 {
                self.left_out.push(table.to_owned());
            }
        }
        is_read
    }

    /// Takes a row of values; whether it was understood.
    fn row(&mut self, table: &str, at: u64, cells: &[&str]) -> bool {
        let Some(names) = self.tables.get_mut(table) else { return false };
        // One cell more stands at the end of some lines. Where headings were left out, all rows are like the first.
        if !names.is_empty() && cells.iter().skip(names.len()).filter(|value| !value.is_empty()).count() > 1 {
            names.clear();
            return false;
        }
        let named = || names.iter().zip(cells).filter(|(name, value)| !name.is_empty() && !value.is_empty());
        let Some(values) = named().map(|(name, value)| Some((name, cell(value)?))).collect::<Option<Vec<_>>>() else {
            return false;
        };
        let sample = self.samples.entry(at).or_default();
        let Some(column) = of_disks(table) else {
            // What a kernel does not report of memory is below zero.
            let is_known = |value: f64| table != "MEM" || !value.is_sign_negative();
            // `CPUs` and `PhysicalCPUs` are no shares.
            let is_one = |name: &str| table != "CPU_ALL" || name.ends_with('%');
            let taken = values.iter().filter(|(name, value)| is_known(*value) && is_one(name));
            sample.host.extend(taken.map(|(name, value)| ((*name).clone(), *value)));
            return true;
        };
        let Some(column) = self.now.columns.number(column) else { return false };
        for (place, (name, value)) in values.into_iter().enumerate() {
            let Some(device) = self.now.devices.number(name) else { return false };
            match sample.rows.get_mut(place).filter(|row| row.device == device) {
                Some(row) => row.values.push((column, value)),
                None => sample.rows.push(Row { device, group: false, values: vec![(column, value)] }),
            }
        }
        true
    }

    fn draft(self) -> Option<Draft> {
        let Self { mut now, version, environment, day, time, samples, left_out, .. } = self;
        now.samples = samples.into_values().filter(|one| !one.host.is_empty() || !one.rows.is_empty()).collect();
        let first = now.samples.first()?.stamp;
        // The first snapshot may be of the second in which nmon began.
        let time = time.filter(|time| first.is_some_and(|first| first.time != *time));
        let day = day.unwrap_or(Day::Unreported);
        // Times without dates are counted from the first day on.
        let is_dated = first.is_some_and(|first| first.day != Day::Unreported);
        let of_time = if is_dated { day } else { Day::Unreported };
        now.began = time.map(|time| Stamp { day: of_time, time, utc: false, month_first: None });
        now.header = Some(Header { environment, day, month_first: None, long_year: false });
        if !left_out.is_empty() {
            now.notes.push(format!("Tables of {} are left out.", left_out.join(", ")));
        }
        (now.program, now.begins_with_sample) = ("nmon", true);
        Some(Draft { version, ..draft(now) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::osstat::tests::{figure_value, wall};
    use crate::specimens::{damaged, drafts, only, survives};

    // Made after recordings that people published: of nmon 13g, 15g and 16g on Linux (madmaze/pyNmonAnalyzer,
    // NeverMoreLyh/nmonAnalyza, chenxizhinan/nmon_analysis_tools), of v8b and topas_nmon on AIX 5.3 and 6.1
    // (FJplant/Nmon-Appliance, sahanabhagavan/NmonLogParser, zrf666/NmonJmeter).
    const LINUX: &str = include_str!("../specimens/nmon_linux.nmon");
    const AIX: &str = include_str!("../specimens/nmon_aix.nmon");

    #[test]
    fn a_recording_of_linux_is_a_run_of_its_snapshots() {
        let draft = only("nmon", LINUX);
        let step = &draft.steps[0];
        assert_eq!((draft.program, draft.version.as_str(), draft.began), ("nmon", "16g", wall("2026-06-04T10:47:38Z")));
        assert_eq!((step.window.duration_ns, step.intervals.len()), (11_000_000_000, 3));
        assert_eq!(draft.environment.cpus, Some(2));
        let at = |interval: usize, name: &str| step.intervals[interval].reported[name];
        assert_eq!([at(0, "User%"), at(1, "vda rkB/s"), at(2, "eth0-write-KB/s")], [2.2, 40.0, 3.5]);
        // Means over 1, 5 and 5 seconds.
        let mean = |values: [f64; 3]| (values[0] + 5.0 * (values[1] + values[2])) / 11.0;
        assert!((figure_value(step, "vda %util") - mean([5.1, 10.0, 20.0])).abs() < 1e-9);
        let of = |name: &str| step.reported.iter().find(|figure| figure.name == name);
        let units =
            ["vda wkB/s", "memfree (MB)", "eth0-read-KB/s", "Wait%"].map(|name| of(name).unwrap().unit.as_str());
        assert_eq!(units, ["KiB/s", "MiB", "KiB/s", "%"]);
        assert!(of("bigfree (MB)").is_none(), "it is reported as -1");
        assert!(draft.notes.contains(&"Tables of PROC, JFSFILE are left out.".to_owned()), "{:?}", draft.notes);
        assert_eq!(step.host_cpu.map(|cpu| cpu.idle_ns.is_some()), Some(true));
    }

    #[test]
    fn a_recording_of_aix_without_dates_in_its_times_is_read() {
        let draft = only("nmon", AIX);
        let step = &draft.steps[0];
        assert_eq!((draft.began, draft.environment.os.as_deref()), (wall("2026-08-29T23:55:05Z"), Some("AIX 6.1.6.4")));
        assert_eq!((step.window.duration_ns, step.intervals.len()), (608_000_000_000, 2), "across midnight");
        assert_eq!((step.intervals[0].reported["Idle%"], step.intervals[1].reported["hdisk0 tps"]), (96.4, 30.0));
        assert_eq!(step.intervals[1].reported["Real free(MB)"], 27_000.0);
    }

    #[test]
    fn a_sorted_recording_is_the_same() {
        let mut lines: Vec<&str> = LINUX.lines().collect();
        lines.sort_unstable();
        let sorted = lines.join("\n");
        assert_eq!(only("nmon", &sorted).steps, only("nmon", LINUX).steps);
        assert_eq!(drafts("nmon", &format!("{LINUX}{LINUX}")).len(), 2, "each start is a run");
    }

    #[test]
    fn a_snapshot_that_lacks_a_table_does_not_know_it() {
        let lines = LINUX.lines().filter(|line| !line.starts_with("DISKREAD,T0002"));
        let draft = only("nmon", &lines.map(|line| format!("{line}\n")).collect::<String>());
        let step = &draft.steps[0];
        assert!(!step.intervals[1].reported.contains_key("vda rkB/s"));
        let (first, third) = (187.0, 60.0);
        let mean = figure_value(step, "vda rkB/s");
        assert!((mean - (first + 5.0 * third) / 6.0).abs() < 1e-5, "{mean}: and not 0 there");
    }

    #[test]
    fn a_table_whose_headings_run_into_each_other_is_noted_once() {
        let text = AIX.replace("Real Free %,Virtual free %,Real free(MB),", "Real Free Virtual free Real free(MB),");
        let (_, drafts, notes) = crate::read(&crate::specimens::source(&text)).unwrap();
        let notes = notes.into_list();
        assert!(notes.len() == 1 && notes[0].what.contains("headings of MEM"), "{notes:?}");
        assert_eq!(drafts[0].steps[0].intervals[1].reported["hdisk0 tps"], 30.0);
    }

    proptest! {
        #[test]
        fn damaged_files_give_runs_or_errors(file in damaged(&[LINUX, AIX])) {
            survives(file);
        }
    }
}
