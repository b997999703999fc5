//! Spools with `set heading off` or `set pagesize 0`: rows that no headings stand above.
//!
//! They are read only where the file itself reports its columns: by the statement that stands there too, or by the words for the
//! edge of each bucket (`WAIT_TIME_FORMAT`), which only microseconds have.

use super::super::numbers::count;
use super::super::spool::{self, Found};
use super::{Role, is_histogram, kind, role};

/// Rows that make a table of buckets.
const MIN_ROWS: usize = 2;
/// The most of a statement that is read.
const LONGEST_STATEMENT: usize = 4_096;

/// What a text without headings says of its columns.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Bare {
    /// These are its columns.
    Columns(Vec<String>),
    /// It holds buckets, and does not report what they are.
    Unreported,
    /// It holds no buckets.
    None,
}

/// What a text without headings says of its columns.
pub(super) fn columns_of(text: &str) -> Bare {
    let seed = ["EVENT", "WAIT_TIME_MICRO", "WAIT_COUNT", "WAIT_TIME_FORMAT"].map(str::to_owned).to_vec();
    let in_effect = match statements(text).as_slice() {
        [] => Some(seed.clone()).filter(|columns| rows(text, columns) >= MIN_ROWS),
        [first, others @ ..] => {
            let is_one = others.iter().all(|other| other == first);
            let columns = Some(first).filter(|columns| is_one && is_reported(columns));
            columns.filter(|columns| rows(text, columns) >= MIN_ROWS).cloned()
        }
    };
    let asks = || text.to_ascii_lowercase().contains("event_histogram");
    match in_effect {
        Some(columns) => Bare::Columns(columns),
        None if asks() && buckets(text) >= MIN_ROWS => Bare::Unreported,
        None => Bare::None,
    }
}

/// Reads the rows of these columns. A reading of counters ends where text stands, and where buckets begin anew.
pub(super) fn scan(text: &str, columns: &[String], mut found: impl FnMut(Found<'_>)) {
    let place = |wanted: &dyn Fn(Role) -> bool| columns.iter().position(|column| wanted(role(column)));
    let (event, bucket) = (place(&|role| role == Role::Event), place(&is_bucket));
    let mut last: Option<(String, Option<u64>)> = None;
    spool::scan_bare(text, columns, kind, |next| {
        let Found::Row(line, cells) = next else {
            last = None;
            return found(next);
        };
        if !is_sound(columns, &cells) {
            last = None;
            return found(Found::Other(line, &cells.join(" ")));
        }
        let cell = |at: Option<usize>| at.and_then(|at| cells.get(at)).map_or("", String::as_str);
        let (event, bucket) = (cell(event).to_owned(), count(cell(bucket)));
        let begins = last.as_ref().is_none_or(|(before, edge)| *before == event && bucket <= *edge);
        if begins {
            found(Found::Headings(columns));
        }
        last = Some((event, bucket));
        found(Found::Row(line, cells));
    });
}

fn is_bucket(role: Role) -> bool {
    matches!(role, Role::Milliseconds | Role::Microseconds)
}

/// Whether each of the columns is known, and those that make a histogram are there.
fn is_reported(columns: &[String]) -> bool {
    let is_known = |column: &String| !matches!(role(column), Role::Other(spool::Kind::Text) | Role::Group);
    is_histogram(columns) && columns.iter().all(is_known)
}

/// Rows of these columns.
fn rows(text: &str, columns: &[String]) -> usize {
    let mut rows = 0;
    spool::scan_bare(text, columns, kind, |found| {
        rows += usize::from(matches!(found, Found::Row(_, cells) if is_sound(columns, &cells)));
    });
    rows
}

/// Whether the edge of the bucket is one, and its words say the same.
fn is_sound(columns: &[String], cells: &[String]) -> bool {
    let of = |heading: &str| columns.iter().position(|column| column == heading).and_then(|at| cells.get(at));
    let edge = columns.iter().position(|column| is_bucket(role(column))).and_then(|at| cells.get(at));
    let Some(edge) = edge.and_then(|edge| count(edge)) else { return false };
    let is_edge = edge.is_power_of_two() || edge == u64::from(u32::MAX);
    is_edge && of("WAIT_TIME_FORMAT").is_none_or(|words| says(words, edge))
}

/// Whether `65 milliseconds` is what is said of so many microseconds: whole units, the rest left off.
fn says(words: &str, us: u64) -> bool {
    let words: Vec<&str> = words.split_whitespace().collect();
    let mut value = 0_u64;
    let mut unit = 0_u64;
    for pair in words.chunks(2) {
        let [number, name] = pair else { return false };
        unit = match name.trim_end_matches('s') {
            "microsecond" => 1,
            "millisecond" => 1_000,
            "second" => 1_000_000,
            "minute" => 60_000_000,
            "hour" => 3_600_000_000,
            _ => return false,
        };
        let Some(part) = count(number).and_then(|number| number.checked_mul(unit)) else { return false };
        value = value.saturating_add(part);
    }
    unit > 0 && us >= value && us - value < unit
}

/// Lines that hold the edge of a bucket and a count, and end with a number: such as no script has.
fn buckets(text: &str) -> usize {
    let is_row = |line: &&str| {
        if line.contains(['(', ')', '=', '<', '>', '*']) {
            return false;
        }
        let line = line.replace(['|', ',', ';', '"'], " ");
        let words: Vec<&str> = line.split_whitespace().take(32).collect();
        let number = |word: &str| word.parse::<u64>().ok();
        let has_bucket = words.windows(2).any(|pair| match pair {
            [edge, waits] => number(edge).is_some_and(u64::is_power_of_two) && number(waits).is_some(),
            _ => false,
        });
        has_bucket && words.last().is_some_and(|last| number(last).is_some())
    };
    text.lines().filter(is_row).count()
}

/// The columns of each statement that asks for a histogram of events, in capitals.
fn statements(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut statement: Option<String> = None;
    for line in text.lines() {
        let line = spool::clean(line);
        let line = line.trim();
        let line = line.strip_prefix("SQL>").unwrap_or(line).trim_start();
        // `  2  from v$event_histogram`
        let line = line.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
        let lower = line.to_ascii_lowercase();
        if lower == "select" || lower.starts_with("select ") {
            statement = Some(String::new());
        }
        let Some(so_far) = &mut statement else { continue };
        so_far.push_str(&lower);
        so_far.push(' ');
        let ends = line.ends_with(';') || line == "/" || so_far.len() > LONGEST_STATEMENT;
        if let Some((columns, of)) = so_far.split_once(" from ") {
            if of.contains("event_histogram") {
                let columns = columns.trim_start_matches("select").split(',');
                // An alias stands last.
                let name = |column: &str| column.split_whitespace().next_back().unwrap_or("").to_uppercase();
                let bare = |name: String| name.rsplit_once('.').map_or(name.clone(), |(_, name)| name.to_owned());
                found.push(columns.map(|column| bare(name(column))).collect());
                statement = None;
            } else if ends {
                statement = None;
            }
        } else if ends {
            statement = None;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_an_edge_leave_off_what_is_no_whole_unit() {
        let good =
            [("1 microsecond", 1), ("1 millisecond", 1_024), ("65 milliseconds", 65_536), ("1 second", 1_048_576)];
        assert!(good.into_iter().all(|(words, us)| says(words, us)));
        assert!(says("1 minute 7 seconds", 67_108_864) && !says("1 microsecond", 2) && !says("1", 1) && !says("", 0));
    }

    #[test]
    fn columns_are_those_of_the_statement() {
        let text =
            "SQL> select inst_id, event,\n  2  h.wait_time_milli ms, h.wait_count\n  3  from gv$event_histogram h;\n";
        assert_eq!(statements(text), [["INST_ID", "EVENT", "MS", "WAIT_COUNT"]]);
        let star = "select * from v$event_histogram;\n 5 a 1 7\n 5 a 2 7\n";
        assert_eq!(columns_of(star), Bare::Unreported);
        assert_eq!(columns_of("a text on event_histogram"), Bare::None);
        let script =
            "select decode(wait_time_milli, 1, 2,\n 4, 5) from v$event_histogram\nwhere wait_time_milli in (1, 2)\n";
        assert_eq!(columns_of(script), Bare::None);
    }
}
