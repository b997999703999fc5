//! mpstat of sysstat as text.

use super::clock::{self, Day, Stamp, Timeline};
use super::header::{self, Header, Tool};
use super::iostat::{cell, shown};
use super::{Shares, note_on_time, step_of};
use crate::{Draft, ImportError, Notes, Source, console};
use model::record::Workload;

/// Whether a text is of mpstat.
pub(crate) fn recognises(head: &str) -> bool {
    header::tool_of(head) == Some(Tool::Mpstat)
}

/// Its runs: one for each time that mpstat was started. Read is the table of shares, the line of all processors; lines of single
/// processors, interrupts and nodes are left out.
pub(crate) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut found = Vec::new();
    let mut reading = MpstatParser::default();
    let mut table = Table::Other;
    let last_line_whole = source.text().ends_with('\n');
    let mut lines = source.timed_lines().peekable();
    while let Some((line_number, timed, line)) = lines.next() {
        let is_last = lines.peek().is_none();
        let line = console::plain(line);
        // A date or an epoch before the time of mpstat itself was put there by a wrapper.
        let (prefix, own) = match clock::leading(line) {
            Some((stamp, rest)) => (Some(stamp), rest),
            None => (timed.and_then(clock::leading).map(|(stamp, _)| stamp), line),
        };
        if let Some(header) = header::header(own) {
            found.extend(std::mem::take(&mut reading).draft());
            (reading.header, table) = (Some(header), Table::Other);
            continue;
        }
        let (stamp, rest) = match clock::time_of(own, true) {
            Some((time, rest, half_day)) => {
                reading.half_days |= half_day;
                (Some(Stamp { day: Day::Unreported, time, utc: false, month_first: None }), rest)
            }
            None => (prefix, own),
        };
        // `Average:`, in any language, stands where the time would.
        let average = stamp.is_none() && is_average(rest);
        let rest = if average { after_average(rest) } else { rest };
        if rest.trim().is_empty() {
            continue;
        }
        if header::is_mpstat_header(rest) {
            let columns: Vec<String> = rest
                .split_whitespace()
                .skip(1)
                .take(header::MAX_COLUMNS)
                .take_while(|word| is_name(word))
                .map(str::to_owned)
                .collect();
            reading.begin(&columns, stamp, average);
            table = Table::Shares;
        } else if ["CPU", "NODE"].contains(&clock::word(rest).map_or("", |(first, _)| first)) {
            table = if is_interrupts(rest) { Table::Interrupts } else { Table::Other };
        } else if let (Some(("all", values)), Table::Shares | Table::Interrupts) = (clock::word(rest), &table) {
            let values: Vec<Option<f64>> = values.split_whitespace().map(cell).collect();
            let shares = matches!(table, Table::Shares);
            let expected = if shares { reading.columns.len() } else { 1 };
            let whole = values.len() == expected && values.iter().all(Option::is_some);
            if is_last && (!whole || !last_line_whole) && !reading.rows.is_empty() {
                reading.cut = true;
            } else if !whole {
                notes.not_understood(line_number, format!("{}; {expected} figures were expected", shown(rest)));
            } else if shares {
                reading.shares(values.into_iter().flatten().collect(), stamp, average);
            } else if !average {
                reading.interrupts(values.into_iter().flatten().next());
            }
        } else if reading.rows.is_empty()
            && let Some((command, _)) = header::command(rest, "mpstat")
        {
            reading.command = command;
        } else if stamp.is_none() && !(average && rest.trim_start().starts_with(|char: char| char.is_ascii_digit())) {
            // Averages of single processors are left out.
            notes.unknown(line_number, rest);
        }
    }
    found.extend(reading.draft());
    if found.is_empty() {
        return Err(ImportError::no_result(source, "it holds no line of mpstat for all processors"));
    }
    Ok(found)
}

/// Whether a line begins with `Average:` or its translation.
pub(super) fn is_average(line: &str) -> bool {
    let is_word =
        |first: &str| !first.contains(|char: char| char.is_ascii_digit()) && first.split_whitespace().count() <= 2;
    line.split_once([':', '：']).is_some_and(|(first, _)| is_word(first))
}

/// What follows `Average:` or its translation, which may have two words, such as `Moyenne :`.
fn after_average(line: &str) -> &str {
    match line.split_once([':', '：']) {
        Some((first, rest)) if first.split_whitespace().count() <= 2 => rest,
        _ => line,
    }
}

fn is_name(word: &str) -> bool {
    word.starts_with('%') || word.ends_with("/s")
}

/// The table of all interrupts: `CPU    intr/s`.
fn is_interrupts(line: &str) -> bool {
    line.split_whitespace().skip(1).eq(["intr/s"])
}

/// The table that is being read.
#[derive(Debug)]
enum Table {
    Shares,
    Interrupts,
    Other,
}

#[derive(Debug, Default)]
struct MpstatParser {
    header: Option<Header>,
    command: Vec<String>,
    columns: Vec<String>,
    /// Whether times have AM and PM.
    half_days: bool,
    /// The time of the first table, at which the first sample began.
    began: Option<Stamp>,
    stamps: Vec<Option<Stamp>>,
    rows: Vec<Vec<f64>>,
    /// Interrupts per second, of samples that report them.
    interrupts: Vec<(usize, f64)>,
    average: Option<Vec<f64>>,
    cut: bool,
}

impl MpstatParser {
    fn begin(&mut self, columns: &[String], stamp: Option<Stamp>, average: bool) {
        if self.columns.is_empty() {
            self.columns = columns.to_vec();
        }
        if self.rows.is_empty() && !average {
            self.began = stamp;
        }
    }

    fn shares(&mut self, mut values: Vec<f64>, stamp: Option<Stamp>, average: bool) {
        values.resize(self.columns.len(), f64::NAN);
        if average {
            self.average = Some(values);
        } else {
            self.rows.push(values);
            self.stamps.push(stamp);
        }
    }

    fn interrupts(&mut self, per_s: Option<f64>) {
        self.interrupts.extend(self.rows.len().checked_sub(1).zip(per_s));
    }

    fn draft(mut self) -> Option<Draft> {
        let host = self.header.as_ref().and_then(|header| header.environment.hostname.clone());
        let mut draft = Draft::new(Workload::Host, "mpstat", host.unwrap_or_else(|| "mpstat".to_owned()));
        if self.rows.is_empty() {
            self.rows.push(self.average.take()?);
            self.stamps.push(None);
            draft.notes.push("Only the averages of mpstat are there, no samples.".to_owned());
        }
        let stamps: Vec<Option<Stamp>> = std::iter::once(self.began).chain(self.stamps).collect();
        // As in en_US; see [`clock::leading`].
        let by_halves = |header: &Header| (self.half_days && header.long_year).then_some(true);
        let month_first = self.header.as_ref().and_then(|header| header.month_first.or_else(|| by_halves(header)));
        let day = self.header.as_ref().map_or(Day::Unreported, |header| header.day);
        let mut timeline = Timeline::new(&stamps, day, month_first, None);
        // Without an interval mpstat reports the average since boot, under a header of the same time.
        if self.rows.len() == 1 && self.began.is_some() && stamps.get(1) == Some(&self.began) {
            draft.notes.push("The only sample is the average since the machine started.".to_owned());
            timeline.spans = vec![(0, 0)];
        }
        if self.cut {
            draft.notes.push("The last sample was cut off: it is left out.".to_owned());
        }
        let mut names: Vec<(String, &str)> =
            self.columns.iter().map(|name| (name.clone(), if name.starts_with('%') { "%" } else { "1/s" })).collect();
        if !self.interrupts.is_empty() && !self.columns.iter().any(|name| name == "intr/s") {
            names.push(("intr/s".to_owned(), "1/s"));
            self.rows.iter_mut().for_each(|row| row.push(f64::NAN));
            for (row, per_s) in self.interrupts {
                if let Some(cell) = self.rows.get_mut(row).and_then(|row| row.last_mut()) {
                    *cell = per_s;
                }
            }
        }
        let mut step = step_of("mpstat", &names, &self.rows, &timeline, &mut draft.notes);
        let cpus = self.header.as_ref().and_then(|header| header.environment.cpus);
        step.host_cpu = Shares::of(step.reported.iter().map(|figure| (&figure.name, figure.value)))
            .and_then(|shares| shares.over(cpus, step.window.duration_ns));
        note_on_time(&timeline, &mut draft.notes);
        (draft.began, draft.ended) = (timeline.began, timeline.ended);
        draft.command = self.command;
        draft.environment = self.header.map(|header| header.environment).unwrap_or_default();
        draft.steps = vec![step];
        Some(draft)
    }
}

#[cfg(test)]
mod tests {
    use crate::osstat::tests::{MPSTAT, figure_value, wall};
    use crate::specimens::only;

    #[test]
    fn mpstat_gives_shares_of_all_processors_across_midnight() {
        let draft = only("mpstat", MPSTAT);
        let step = &draft.steps[0];
        assert_eq!((draft.began, step.window.duration_ns), (wall("2026-02-01T23:59:58Z"), 4_000_000_000));
        assert_eq!(["%usr", "%sys", "%idle", "intr/s"].map(|name| figure_value(step, name)), [20.0, 9.0, 57.5, 200.0]);
        // 2 processors for 4 s; 20 + 1 + 1.5 % in user code, 9 + 0.5 + 0.5 % in the kernel.
        let cpu = step.host_cpu.unwrap();
        assert_eq!((cpu.user_ns, cpu.system_ns, cpu.iowait_ns), (1_800_000_000, 800_000_000, Some(800_000_000)));
        assert_eq!(
            (step.intervals.len(), step.intervals[0].reported["%guest"], step.intervals[1].reported["intr/s"]),
            (2, 3.0, 300.0)
        );
    }

    #[test]
    fn mpstat_of_other_clocks_and_languages_is_read() {
        let day = MPSTAT
            .replace("11:59:58 PM", "23:59:58")
            .replace("12:00:00 AM", "00:00:00")
            .replace("12:00:02 AM", "00:00:02");
        let draft = only("mpstat", &day.replace("Average:", "Moyenne :").replace('.', ",").replace("5,14", "5.14"));
        assert_eq!((draft.steps[0].window.duration_ns, figure_value(&draft.steps[0], "%usr")), (4_000_000_000, 20.0));
        assert_eq!(draft.began, None, "without halves of the day the month may stand second");
        for (before, after) in [(" PM  CPU", " PM IST  CPU"), (" AM ", " AM IST ")] {
            let indian = MPSTAT.replace(before, after);
            assert_eq!(only("mpstat", &indian).steps[0].window.duration_ns, 4_000_000_000);
        }
        let finnish = day.replace("23:59:58", "23.59.58").replace("00:00:0", "00.00.0");
        assert_eq!(only("mpstat", &finnish).steps[0].window.duration_ns, 4_000_000_000);
        let average: String = MPSTAT
            .lines()
            .filter(|line| line.starts_with("Average") || line.starts_with("Linux"))
            .map(|line| format!("{line}\n"))
            .collect();
        let draft = only("mpstat", &average);
        assert_eq!((draft.steps[0].window.duration_ns, figure_value(&draft.steps[0], "%usr")), (0, 20.0));
        for (date, times) in [
            ("2026年02月01日", ["23時59分58秒", "00時00分00秒", "00時00分02秒"]),
            ("2026년 02월 01일", ["23시 59분 58초", "00시 00분 00초", "00시 00분 02초"]),
            ("2026. 02. 01.", ["23:59:58", "00:00:00", "00:00:02"]),
            ("2026-02-01", ["下午 11:59:58", "上午 12:00:00", "上午 12:00:02"]),
        ] {
            let local = MPSTAT
                .replace("11:59:58 PM", times[0])
                .replace("12:00:00 AM", times[1])
                .replace("12:00:02 AM", times[2])
                .replace("02/01/2026", date);
            let draft = only("mpstat", &local);
            let window_ns = draft.steps[0].window.duration_ns;
            assert_eq!((draft.began, window_ns), (wall("2026-02-01T23:59:58Z"), 4_000_000_000), "{date}");
        }
        let boot = "Linux 5.14.0 (db9) \t02/13/2026 \t_x86_64_\t(2 CPU)\n\n10:00:00     CPU    %usr   %nice    %sys %iowait   %idle\n10:00:00     all    1.00    0.00    1.00    0.00   98.00\n";
        let draft = only("mpstat", boot);
        assert!(draft.notes[0].contains("since the machine started") && draft.steps[0].host_cpu.is_none());
    }
}
