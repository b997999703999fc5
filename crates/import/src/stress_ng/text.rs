//! stress-ng with `--metrics` or `--metrics-brief`, as text.

use model::record::Workload;
use std::collections::HashMap;

use super::{NOTE, Stressor, steps};
use crate::console;
use crate::draft::reported_figure;
use crate::numbers::ungrouped as number;
use crate::{Draft, ImportError, Notes, Source};
use model::record::{Outcome, ReportedFigure};

/// Whether a text is of stress-ng: it begins with what stress-ng logs.
pub(crate) fn recognises(head: &str) -> bool {
    head.lines().filter(|line| !line.trim().is_empty()).take(200).any(|line| {
        Line::of(console::plain(line)).is_some_and(|line| {
            is_header(line.message) || (line.pid.is_some() && line.message.starts_with("dispatching hogs:"))
        })
    })
}

/// `stressor       bogo ops real time  usr time  sys time   bogo ops/s     bogo ops/s`.
fn is_header(message: &str) -> bool {
    message.starts_with("stressor ") && message.contains(" bogo ops ") && message.contains(" real time ")
}

/// `$ stress-ng --cpu 4 …` after a prompt.
fn is_prompt(line: &Line<'_>) -> bool {
    line.pid.is_none() && (line.message.contains("$ stress-ng ") || line.message.contains("# stress-ng "))
}

/// One line of the log.
#[derive(Debug, Clone, Copy)]
struct Line<'a> {
    pid: Option<&'a str>,
    message: &'a str,
}

impl<'a> Line<'a> {
    /// `stress-ng: info:  [6268] message`, with a time in it by `--timestamp`, behind whatever logged it; the message alone by
    /// `--log-brief`.
    fn of(line: &'a str) -> Option<Self> {
        let line = line.trim();
        let Some((_, rest)) = line.split_once("stress-ng: ") else {
            return Some(Self { pid: None, message: line });
        };
        let mut rest = rest.trim_start();
        for _ in 0..2 {
            let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            let is_time = word.starts_with(|c: char| c.is_ascii_digit()) && word.contains(':');
            let level = ["info:", "metrc:", "warn:", "fail:", "error:", "debug:", "pass:", "stats:"].contains(&word);
            if is_time || level {
                rest = after.trim_start();
            }
        }
        let pid = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        match pid.filter(|(pid, _)| !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit())) {
            Some((pid, message)) => Some(Self { pid: Some(pid), message: message.trim_start() }),
            None => Some(Self { pid: None, message: rest }),
        }
    }
}

/// Its runs: one for each time that stress-ng was started.
pub(crate) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut runs: Vec<StressNgParser> = vec![StressNgParser::default()];
    let mut lines = source.lines().peekable();
    let last_line_whole = source.text().ends_with('\n');
    while let Some((line_number, line)) = lines.next() {
        let plain = console::plain(line);
        let Some(line) = Line::of(plain) else {
            notes.unknown(line_number, plain);
            continue;
        };
        let is_cut = lines.peek().is_none() && !last_line_whole;
        let is_new = runs.last().is_some_and(|run| run.is_ended_by(&line));
        if is_new {
            runs.push(StressNgParser::default());
        }
        if let Some(run) = runs.last_mut() {
            if run.is_unknown(&line) {
                notes.unknown(line_number, plain);
            }
            if let Err(what) = run.line(&line, plain, is_cut) {
                notes.not_understood(line_number, what);
            }
        }
    }
    let failed = runs.iter().find_map(|run| run.error.clone());
    let found: Vec<Draft> = runs.into_iter().filter_map(StressNgParser::draft).collect();
    match failed {
        _ if !found.is_empty() => Ok(found),
        Some(error) => Err(ImportError::no_result(source, format!("it holds no metrics; stress-ng says: {error}"))),
        None => Err(ImportError::no_result(source, "it holds no metrics of stress-ng: run it with --metrics")),
    }
}

/// What is being read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Table {
    #[default]
    None,
    Metrics {
        cpu_used: bool,
        resident: bool,
    },
    Miscellaneous,
    Times,
}

#[derive(Debug, Default)]
struct StressNgParser {
    pid: Option<String>,
    version: String,
    command: Vec<String>,
    /// Instances by stressor.
    hogs: HashMap<String, u32>,
    /// Where the last stressor of a name stands.
    places: HashMap<String, usize>,
    table: Table,
    stressors: Vec<Stressor>,
    times: Vec<ReportedFigure>,
    /// What `memrate` measured with accesses of each size, all instances together, in MB/s.
    memory_rates: Vec<(String, f64)>,
    notes: Vec<String>,
    error: Option<String>,
    failed: bool,
}

/// `stress-ng-memrate: write64: 5120.00 MB/sec`, as one instance of it says.
fn memory_rate(message: &str) -> Option<(&str, f64)> {
    let rest = message.strip_prefix("stress-ng-memrate: ").or_else(|| message.strip_prefix("memrate: "))?;
    let (what, rate) = rest.split_once(':')?;
    let value = number(rate.trim().strip_suffix("MB/sec")?)?;
    (value > 0.0).then_some((what.trim(), value))
}

impl StressNgParser {
    /// A prompt, a line of another process, or the beginning of a run after metrics.
    fn is_ended_by(&self, line: &Line<'_>) -> bool {
        if is_prompt(line) {
            return self.pid.is_some() || !self.stressors.is_empty();
        }
        let begins = line.message.starts_with("dispatching hogs:") || line.message.starts_with("setting to a ");
        let other = self.pid.is_some() && line.pid.is_some() && self.pid.as_deref() != line.pid;
        begins && (other || !self.stressors.is_empty())
    }

    fn line(&mut self, line: &Line<'_>, whole: &str, is_cut: bool) -> Result<(), String> {
        let message = line.message;
        if self.pid.is_none() {
            self.pid = line.pid.map(str::to_owned);
        } else if line.pid.is_none() {
            // The kernel and other programs write between lines of stress-ng where both go to one log.
            return Ok(());
        }
        if let Some((_, hogs)) = message.split_once("dispatching hogs:") {
            self.hogs.extend(hogs.split(',').filter_map(|hog| {
                let (count, name) = hog.trim().split_once(' ')?;
                Some((name.trim().to_owned(), count.parse().ok()?))
            }));
        } else if is_header(message) {
            self.table =
                Table::Metrics { cpu_used: message.contains("CPU used"), resident: message.contains("RSS Max") };
        } else if message.starts_with("miscellaneous metrics") {
            self.table = Table::Miscellaneous;
        } else if message.starts_with("for a ") && message.contains("run time") {
            self.table = Table::Times;
        } else if let Some((what, value)) = memory_rate(message) {
            // Every instance says so of itself; a rate of none was not measured.
            match self.memory_rates.iter_mut().find(|(known, _)| known == what) {
                Some((_, sum)) => *sum += value,
                None => self.memory_rates.push((what.to_owned(), value)),
            }
        } else if let Some(count) = message.strip_prefix("metrics untrustworthy:") {
            if count.split(':').next().and_then(number).is_some_and(|count| count > 0.0) {
                self.notes.push(format!("stress-ng does not trust its metrics of {}.", count.trim()));
            }
        } else if let Some(count) = message.strip_prefix("failed:").or_else(|| message.strip_prefix("skipped:")) {
            if count.split(':').next().and_then(number).is_some_and(|count| count > 0.0) {
                self.notes.push(format!("stress-ng says: {message}."));
                self.failed |= message.starts_with("failed");
            }
        } else if message.contains("run completed in") {
            self.failed |= message.starts_with("unsuccessful");
            self.table = Table::None;
        } else if whole.contains("error:") && line.pid.is_some() {
            self.error = self.error.take().or_else(|| Some(message.to_owned()));
        } else if let Some((_, command)) = message.split_once("invoked with '") {
            self.command = command.split('\'').next().unwrap_or("").split_whitespace().map(str::to_owned).collect();
        } else if let Some(version) = message.strip_prefix("stress-ng ").filter(|_| line.pid.is_some()) {
            self.version = version.split_whitespace().next().unwrap_or("").to_owned();
        } else if is_prompt(line) {
            let command = message.split_whitespace().skip_while(|word| *word != "stress-ng").take(60);
            self.command = command.map(str::to_owned).collect();
        } else {
            return self.row(line, is_cut);
        }
        Ok(())
    }

    /// Whether a line is none of stress-ng, and no row of a table. Behind its own lines a log may have those of other programs.
    fn is_unknown(&self, line: &Line<'_>) -> bool {
        let known = ["dispatching hogs:", " run completed in", "setting to a ", "defaulting to a "];
        let is_known = known.iter().any(|words| line.message.contains(words));
        let is_other = match self.table {
            // Other programs write between lines of stress-ng where all go to one log.
            _ if self.pid.is_some() => true,
            Table::None => true,
            // Messages without `[pid]` follow the rows.
            Table::Metrics { .. } => {
                let is_row = line.message.split_whitespace().nth(1).is_some_and(|word| number(word).is_some());
                !is_row && !line.message.contains([':', '(']) && !is_header(line.message)
            }
            Table::Miscellaneous | Table::Times => false,
        };
        line.pid.is_none() && is_other && !is_known
    }

    fn row(&mut self, line: &Line<'_>, is_cut: bool) -> Result<(), String> {
        let message = line.message;
        match self.table {
            Table::None => {}
            Table::Metrics { cpu_used, resident } => {
                // The second line of the header, in whose place units stand.
                if message.starts_with('(') || message.is_empty() {
                    return Ok(());
                }
                let mut words = message.split_whitespace();
                let name = words.next().unwrap_or("");
                let values: Vec<Option<f64>> = words.take(20).map(number).collect();
                let expected = 6 + usize::from(cpu_used) + usize::from(resident);
                if values.len() < expected || values.iter().take(expected).any(Option::is_none) {
                    // Another message, unless it begins as a row does.
                    if values.first().is_some_and(Option::is_some) && !is_cut {
                        let shown: String = message.chars().take(60).collect();
                        return Err(format!("{shown:?}; a stressor and {expected} figures were expected"));
                    }
                    if !is_cut {
                        self.table = Table::None;
                    }
                    return Ok(());
                }
                let at = |index: usize| values.get(index).copied().flatten();
                self.places.insert(name.to_owned(), self.stressors.len());
                self.stressors.push(Stressor {
                    name: name.to_owned(),
                    instances: self.hogs.get(name).copied(),
                    bogo_ops: at(0),
                    real_s: at(1),
                    user_s: at(2),
                    system_s: at(3),
                    per_s_real: at(4),
                    per_s_cpu: at(5),
                    cpu_percent: at(6).filter(|_| cpu_used),
                    max_resident_kib: at(6 + usize::from(cpu_used)).filter(|_| resident),
                    more: Vec::new(),
                });
            }
            Table::Miscellaneous => {
                let mut words = message.splitn(2, char::is_whitespace);
                let (name, rest) = (words.next().unwrap_or(""), words.next().unwrap_or("").trim_start());
                let Some((value, what)) =
                    rest.split_once(char::is_whitespace).and_then(|(value, what)| Some((number(value)?, what)))
                else {
                    self.table = Table::None;
                    return Ok(());
                };
                if let Some(stressor) = self.places.get(name).and_then(|place| self.stressors.get_mut(*place)) {
                    stressor.more.push((what.trim().to_owned(), value));
                }
            }
            Table::Times => {
                let time = message.split_once("s ").and_then(|(seconds, what)| Some((number(seconds)?, what)));
                if let Some((seconds, what)) = time {
                    let what = what.split('(').next().unwrap_or("").trim();
                    self.times.push(reported_figure("client", format!("all stressors: {what}"), "s", seconds));
                } else {
                    self.table = Table::None;
                }
            }
        }
        Ok(())
    }

    fn draft(mut self) -> Option<Draft> {
        if self.stressors.is_empty() {
            return None;
        }
        if let Some(stressor) = self.places.get("memrate").and_then(|place| self.stressors.get_mut(*place)) {
            stressor.more.extend(self.memory_rates.into_iter().map(|(what, rate)| (format!("{what} MB/sec"), rate)));
        }
        let names: Vec<&str> = self.stressors.iter().map(|stressor| stressor.name.as_str()).take(6).collect();
        let mut draft = Draft::new(Workload::Processor, "stress-ng", names.join(" "));
        draft.version = self.version;
        draft.command = self.command;
        draft.notes = self.notes;
        draft.notes.push(NOTE.to_owned());
        draft.steps = steps(self.stressors);
        for step in draft.steps.iter_mut().filter(|_| self.failed) {
            step.outcome = Outcome::Failed { error: "stress-ng says that the run was not successful".to_owned() };
        }
        if let Some(step) = draft.steps.first_mut() {
            step.reported.extend(self.times);
        }
        Some(draft)
    }
}
