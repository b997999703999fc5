//! The first line of sysstat's tools, and which of the tools a text is by.

use super::clock::{self, Day};
use crate::console;
use model::record::Environment;

/// The tool whose output a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    Iostat,
    Mpstat,
    Vmstat,
}

/// Columns that a table has at most; the widest known has 24.
pub(super) const MAX_COLUMNS: usize = 48;
/// How many lines may stand before a table: prompts, the first line of sysstat, times.
const LINES_BEFORE: usize = 12;

/// The tool whose table comes first in a text, if little else stands before it. So no text belongs to two of them.
pub(super) fn tool_of(head: &str) -> Option<Tool> {
    let lines = head.lines().filter(|line| !line.trim().is_empty()).take(LINES_BEFORE);
    let mut procs = false;
    for line in lines {
        let line = console::plain(line);
        let rest = clock::leading(line).map_or(line, |(_, rest)| rest);
        let tool = tool_of_line(rest, procs);
        if tool.is_some() {
            return tool;
        }
        procs = is_vmstat_banner(rest) || is_vmstat_banner(after_time(rest));
    }
    None
}

pub(super) fn tool_of_line(line: &str, after_banner: bool) -> Option<Tool> {
    let timed = after_time(line);
    // `Average:`, in any language.
    let averaged = line.split_once(':').map_or("", |(_, rest)| rest);
    if [line, timed].into_iter().any(|line| is_cpu_header(line) || is_device_header(line)) {
        Some(Tool::Iostat)
    } else if is_mpstat_header(line) || is_mpstat_header(timed) || is_mpstat_header(averaged) {
        Some(Tool::Mpstat)
    } else if is_vmstat_columns(line) || (after_banner && is_vmstat_columns(timed)) {
        Some(Tool::Vmstat)
    } else {
        None
    }
}

/// What follows the time of day, if one stands first.
fn after_time(line: &str) -> &str {
    clock::time_of(line, true).map_or(line, |(_, rest, _)| rest)
}

/// `avg-cpu:  %user   %nice %system %iowait  %steal   %idle`.
pub(super) fn is_cpu_header(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.next() == Some("avg-cpu:")
        && words.next().is_some_and(|word| word.starts_with('%'))
        && words.nth(MAX_COLUMNS).is_none()
}

/// The header of a table of devices, whose name stands first or, with `--pretty`, last.
pub(super) fn is_device_header(line: &str) -> bool {
    let (Some(first), Some(last)) = (line.split_whitespace().next(), line.split_whitespace().next_back()) else {
        return false;
    };
    let names = |word: &str| matches!(word, "Device" | "Device:" | "Filesystem" | "Filesystem:");
    let known = |word: &str| {
        let sized =
            ["kB_read", "MB_read", "Blk_read", "GB_read", "kB/s", "MB/s", "rkB_nor/s", "rMB_nor/s", "rBlk_nor/s"];
        matches!(word, "r/s" | "w/s" | "d/s" | "f/s" | "rrqm/s" | "f_await" | "%util")
            || sized.iter().any(|start| word.starts_with(start))
    };
    // Anything may follow `Device` in prose; a table has figures per second, and not very many.
    (names(first) || last == "Device")
        && line.split_whitespace().nth(MAX_COLUMNS).is_none()
        && line.split_whitespace().any(known)
        && line
            .split_whitespace()
            .filter(|word| !names(word))
            .all(|word| word.contains(['/', '_', '-', '%']) || word == "await" || word == "tps" || word == "svctm")
}

/// The header of mpstat's table of shares. sar's has `%system`.
pub(super) fn is_mpstat_header(line: &str) -> bool {
    let mut words = line.split_whitespace().take(16);
    matches!(words.next(), Some("CPU"))
        && line.split_whitespace().take(16).any(|word| word == "%idle")
        && line.split_whitespace().take(16).any(|word| word == "%sys")
}

/// `procs -----------memory---------- ---swap-- -----io---- …`, in any language.
pub(super) fn is_vmstat_banner(line: &str) -> bool {
    let dashes = line.bytes().filter(|byte| *byte == b'-').count();
    dashes >= 30
        && line.split("---").count() > 4
        && line.contains(char::is_alphabetic)
        && !line.bytes().any(|byte| byte.is_ascii_digit())
}

/// Whether a line names the columns of vmstat.
pub(super) fn is_vmstat_columns(line: &str) -> bool {
    vmstat_columns(line).is_some()
}

/// The columns of ` r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st`, with what follows them, such
/// as the zone of times. Some languages have their own words for the first ten, whose order never changes; the fifth and the sixth
/// depend on an option and keep their words.
pub(super) fn vmstat_columns(line: &str) -> Option<(Vec<&str>, Option<&str>)> {
    const FIRST: [&str; 10] = ["r", "b", "swpd", "free", "buff", "cache", "si", "so", "bi", "bo"];
    const LAST: [&str; 5] = ["in", "cs", "us", "sy", "id"];
    let words: Vec<&str> = line.split_whitespace().take(MAX_COLUMNS).collect();
    if !words.starts_with(&["r", "b"]) {
        return None;
    }
    let all = |names: &[&str]| names.iter().all(|name| words.contains(name));
    let by_place = words.get(FIRST.len()..).is_some_and(|words| words.starts_with(&LAST));
    let by_name = words.starts_with(&["r", "b", "swpd", "free"]) && all(&["si", "so", "bi", "bo", "us", "id"]);
    if !(by_place || by_name) {
        return None;
    }
    let named = if by_place { FIRST.len() } else { 0 };
    let known = |word: &str| word.len() <= 6 && word.bytes().all(|byte| byte.is_ascii_lowercase());
    let count = named + words.iter().skip(named).take_while(|word| known(word)).count();
    let zone = words.get(count).copied();
    let mut names = words;
    names.truncate(count);
    if by_place {
        let places = names.iter_mut().zip(FIRST).enumerate();
        places.filter(|(place, _)| !(4..6).contains(place)).for_each(|(_, (word, name))| *word = name);
    }
    Some((names, zone))
}

/// The first line: `Linux 3.10.0-1062.el7.x86_64 (host) 02/10/2020 _x86_64_ (8 CPU)`. Old versions report neither architecture
/// nor processors.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) environment: Environment,
    pub(super) day: Day,
    pub(super) month_first: Option<bool>,
    /// Whether the year of the date has four digits.
    pub(super) long_year: bool,
}

/// Reads it.
pub(super) fn header(line: &str) -> Option<Header> {
    let (system, rest) = clock::word(line)?;
    if system != "Linux" {
        return None;
    }
    let (kernel, rest) = clock::word(rest)?;
    let (host, rest) = rest.trim_start().strip_prefix('(')?.split_once(')')?;
    let (day, long_year, date, rest) = match clock::date_in(rest) {
        Some(date) => date,
        None => clock::word(rest).map(|(word, rest)| (Day::Unreported, false, word, rest))?,
    };
    let architecture = rest.split_whitespace().find_map(|word| word.strip_prefix('_')?.strip_suffix('_'));
    let cpus = rest.split_once('(').and_then(|(_, cpus)| cpus.split_whitespace().next()?.parse().ok());
    let environment = Environment {
        hostname: Some(host.to_owned()).filter(|host| !host.is_empty()),
        kernel: Some(kernel.to_owned()),
        architecture: architecture.map(str::to_owned),
        cpus,
        ..Environment::default()
    };
    Some(Header { environment, day, month_first: clock::day_order(date), long_year })
}

/// The command after a prompt, such as `$ iostat -xmt 3`, and the interval in seconds that it asks for.
pub(super) fn command(line: &str, tool: &str) -> Option<(Vec<String>, Option<f64>)> {
    let mut words = line.split_whitespace().skip_while(|word| word.rsplit('/').next() != Some(tool));
    let name = words.next()?;
    let arguments: Vec<&str> =
        words.take(40).take_while(|word| !matches!(*word, "|" | ">" | ">>" | "&" | ";" | "2>&1")).collect();
    let interval_s = arguments.iter().find_map(|word| word.parse::<u32>().ok()).map(f64::from);
    Some((std::iter::once(name).chain(arguments).map(str::to_owned).collect(), interval_s))
}

/// Whether the command leaves out the report since boot, so that the first one is a sample: `-y` among its options. Without an
/// interval that option does nothing.
pub(super) fn omits_since_boot(command: &[String], pace_s: Option<f64>) -> bool {
    let is_option = |word: &String| {
        let letters = word.strip_prefix('-').filter(|letters| letters.bytes().all(|byte| byte.is_ascii_alphabetic()));
        word == "--no-first" || letters.is_some_and(|letters| letters.contains('y'))
    };
    pace_s.is_some() && command.iter().skip(1).any(is_option)
}
