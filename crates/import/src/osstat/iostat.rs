//! iostat of sysstat as text.

use super::clock::{self, Stamp};
use super::devices::{Invocation, Row, Sample, draft, human};
use super::header::{self, Tool};
use crate::{Draft, ImportError, Notes, Source, console};

/// Tables of one sample that are distinguished; no version writes more than five.
const MAX_TABLES: usize = 16;
/// The longest name of a device; Linux has none that is longer.
const MAX_NAME_BYTES: usize = 255;

/// Whether a text is of iostat.
pub(crate) fn recognises(head: &str) -> bool {
    header::tool_of(head) == Some(Tool::Iostat)
}

/// Its runs: one for each time that iostat was started.
pub(crate) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut reader = Reader::default();
    for (number, timed, line) in source.timed_lines() {
        let before = timed.and_then(clock::before).map(|(stamp, _)| stamp);
        reader.line(number, before, console::plain(line), notes);
    }
    let (before, last) = reader.decimals;
    reader.cut |= !source.text().ends_with('\n') && last < before;
    reader.finish();
    let found: Vec<Draft> = reader.done.into_iter().map(draft).collect();
    if found.is_empty() {
        return Err(ImportError::no_result(source, "it holds no whole sample of iostat"));
    }
    Ok(found)
}

/// A table that is being read.
#[derive(Debug, Default)]
enum Table {
    #[default]
    None,
    Cpu(Vec<String>),
    Devices {
        columns: Vec<usize>,
        /// `--pretty` writes the name of the device at the end.
        name_last: bool,
        /// A name that is too long for its column stands on a line of its own.
        name: Option<(String, bool)>,
    },
}

#[derive(Debug, Default)]
struct Reader {
    done: Vec<Invocation>,
    now: Invocation,
    table: Table,
    /// The time line before a sample.
    stamp: Option<Stamp>,
    /// Columns of the tables in the sample that is being read.
    tables: Vec<Vec<usize>>,
    /// Whether the file ends in the middle of a row.
    cut: bool,
    /// Digits after the point in the last figures of the two rows before.
    decimals: (usize, usize),
    /// Whether the last line ended a table.
    blank: bool,
}

impl Reader {
    fn line(&mut self, number: u64, prefix: Option<Stamp>, line: &str, notes: &mut Notes) {
        self.blank = line.trim().is_empty();
        if self.blank {
            self.table = Table::None;
            return;
        }
        self.cut = false;
        if let Some((command, pace_s)) = header::command(line, "iostat").filter(|_| matches!(self.table, Table::None)) {
            self.finish();
            (self.now.command, self.now.pace_s) = (command, pace_s);
        } else if let Some(stamp) = clock::snapshot(line) {
            self.finish();
            self.stamp = stamp;
        } else if let Some(header) = header::header(line) {
            let (command, pace_s) = (std::mem::take(&mut self.now.command), self.now.pace_s);
            if self.now.samples.is_empty() {
                self.now = Invocation { command, pace_s, ..Invocation::default() };
            } else {
                self.now.command = command;
                self.finish();
            }
            self.now.header = Some(header);
        } else if let Some(stamp) = stamp_line(line) {
            (self.stamp, self.table) = (Some(stamp), Table::None);
        } else if header::is_cpu_header(line) {
            self.sample(prefix);
            self.table = Table::Cpu(line.split_whitespace().skip(1).map(str::to_owned).collect());
        } else if header::is_device_header(line) {
            self.devices(line, prefix);
        } else {
            self.row(number, line, notes);
        }
    }

    /// Begins a sample.
    fn sample(&mut self, prefix: Option<Stamp>) {
        let stamp = self.stamp.take().or(prefix);
        self.now.samples.push(Sample { stamp, ..Sample::default() });
        self.tables.clear();
    }

    fn devices(&mut self, line: &str, prefix: Option<Stamp>) {
        let names = |word: &&str| !["Device", "Device:", "Filesystem", "Filesystem:"].contains(word);
        let name_last = line.split_whitespace().next().is_some_and(|first| names(&first));
        let columns: Vec<usize> =
            line.split_whitespace().filter(names).map_while(|name| self.now.columns.number(name)).collect();
        // The same table again belongs to the next sample; another one goes on with this sample.
        if self.now.samples.is_empty()
            || self.stamp.is_some()
            || self.tables.contains(&columns)
            || self.tables.len() == MAX_TABLES
        {
            self.sample(prefix);
        }
        self.tables.push(columns.clone());
        self.table = Table::Devices { columns, name_last, name: None };
    }

    fn row(&mut self, number: u64, line: &str, notes: &mut Notes) {
        let Some(sample) = self.now.samples.last_mut() else { return notes.unknown(number, line) };
        match &mut self.table {
            Table::None => notes.unknown(number, line),
            Table::Cpu(columns) => {
                let values: Vec<Option<f64>> = line.split_whitespace().map(cell).collect();
                if values.len() == columns.len() && values.iter().all(Option::is_some) {
                    sample.host = columns.drain(..).zip(values.into_iter().flatten()).collect();
                } else if !is_shell(line) {
                    self.cut = true;
                    notes.not_understood(
                        number,
                        format!("{}; a share of the processors for each column was expected", shown(line)),
                    );
                }
                self.table = Table::None;
            }
            Table::Devices { columns, name_last, name } => {
                let group = line.starts_with(' ') && !*name_last && name.is_none();
                let words: Vec<&str> = line.split_whitespace().collect();
                let count = columns.len();
                let of_name = words.len().saturating_sub(count);
                let at = if *name_last { count } else { of_name };
                let split = words.split_at_checked(at).filter(|_| words.len() >= count);
                let read = match (split, name.take()) {
                    (Some((_, values)), Some(device)) if of_name == 0 => Some((device, values)),
                    (Some((values, device)), _) if of_name > 0 && *name_last => {
                        Some(((device.join(" "), false), values))
                    }
                    (Some((device, values)), _) if of_name > 0 => Some(((device.join(" "), group), values)),
                    _ => None,
                };
                let Some((device, values)) = read.filter(|((device, _), _)| device.len() <= MAX_NAME_BYTES) else {
                    self.cut = true;
                    if let [alone] = words.as_slice()
                        && cell(alone).is_none()
                        && alone.len() <= MAX_NAME_BYTES
                    {
                        *name = Some(((*alone).to_owned(), group));
                    } else if !is_shell(line) {
                        let what = format!("{}; a device and {count} figures were expected", shown(line));
                        notes.not_understood(number, what);
                    }
                    return;
                };
                let names = &self.now.columns;
                let of_cell = |(text, column): (&&str, &usize)| cell(text).or_else(|| human(text, names.name(*column)));
                let read: Vec<Option<f64>> = values.iter().zip(&*columns).map(of_cell).collect();
                if read.iter().all(Option::is_none) && !values.is_empty() {
                    if !is_shell(line) {
                        notes
                            .not_understood(number, format!("{}; a device and its figures were expected", shown(line)));
                    }
                    return;
                }
                let last =
                    values.last().map_or(0, |value| value.split_once(['.', ',']).map_or(0, |(_, digits)| digits.len()));
                self.decimals = (self.decimals.1, last);
                let values =
                    columns.iter().zip(read).map(|(column, value)| (*column, value.unwrap_or(f64::NAN))).collect();
                match self.now.devices.number(&device.0) {
                    Some(number) => sample.rows.push(Row { device: number, group: device.1, values }),
                    None => notes.not_understood(number, "one more device than can be distinguished"),
                }
            }
        }
    }

    /// Ends an invocation. Its last sample is left out if it was cut off.
    fn finish(&mut self) {
        let mut now = std::mem::take(&mut self.now);
        (self.stamp, self.table) = (None, Table::None);
        let cut = now.samples.len() > 1
            && now.samples.last().is_some_and(|last| self.is_cut(last, now.samples.iter().rev().nth(1)));
        if cut {
            now.samples.pop();
            now.notes.push("The last sample was cut off: it is left out.".to_owned());
        }
        now.samples.retain(|sample| !sample.rows.is_empty() || !sample.host.is_empty());
        if !now.samples.is_empty() {
            self.done.push(now);
        }
        self.blank = false;
    }

    /// iostat ends every table with a blank line; one that lacks it and has fewer devices than the sample before was cut off.
    fn is_cut(&self, last: &Sample, before: Option<&Sample>) -> bool {
        let fewer = before.is_some_and(|before| {
            last.rows.len() < before.rows.len()
                && (last.rows.is_empty()
                    || last.rows.iter().zip(&before.rows).all(|(mine, theirs)| mine.device == theirs.device))
        });
        let no_cpu = before.is_some_and(|before| last.host.is_empty() && !before.host.is_empty());
        (self.cut && !self.blank) || no_cpu || (fewer && (!self.blank || last.rows.is_empty()))
    }
}

/// A line that holds a time and nothing else, as `-t` writes it before each sample; `Time: 08:32:26 PM` in old versions.
fn stamp_line(line: &str) -> Option<Stamp> {
    let blank = |rest: &str| rest.trim().is_empty();
    if let Some(time) = line.strip_prefix("Time:") {
        let (time, rest, _) = clock::time_of(time, false)?;
        return blank(rest).then_some(Stamp { day: clock::Day::Unreported, time, utc: false, month_first: None });
    }
    clock::leading(line).filter(|(_, rest)| blank(rest)).map(|(stamp, _)| stamp)
}

/// A number, whose decimals some locales divide by a comma, and to which `--human` adds a percent sign.
pub(super) fn cell(text: &str) -> Option<f64> {
    let text = text.strip_suffix('%').unwrap_or(text);
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '-');
    if text.is_empty() || !text.chars().all(is_number) {
        return None;
    }
    text.replace(',', ".").parse().ok().filter(|value: &f64| value.is_finite())
}

/// A prompt, or what the terminal showed as the user ended the program.
pub(super) fn is_shell(line: &str) -> bool {
    line.starts_with("^C") || line.contains("$ ") || line.contains("# ") || line.trim_end().ends_with(['$', '#'])
}

/// The beginning of a line, for a note.
pub(super) fn shown(line: &str) -> String {
    format!("{:?}", line.trim().chars().take(60).collect::<String>())
}
