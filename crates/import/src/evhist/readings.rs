//! Tables of buckets, as they stand in a file.

use std::collections::{HashMap, HashSet};

use super::super::numbers::{count, whole_number};
use super::super::spool::{Found, Kind, release_of, rows_selected};
use super::super::{Began, Notes, oracle_time};
use super::{Role, role};
use model::record::ReportedBucket;

/// The last bucket of `v$event_histogram_micro` and all that may follow it: it has no upper edge.
const OVERFLOW_US: u64 = 4_294_967_295;
/// The last bucket of `v$event_histogram`.
const OVERFLOW_MS: u64 = 4_194_304;

/// A wait event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    /// Its name.
    pub(super) name: String,
    /// Its class, empty where no column reports it.
    pub(super) class: String,
}

/// A row: waits of an event in one bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// Which of the file's events.
    pub(super) event: usize,
    /// Which instance counted them.
    pub(super) instance: Option<u64>,
    /// The pluggable database in which they waited.
    pub(super) container: Option<u64>,
    /// Which of the table's snapshots, where they are distinguished.
    pub(super) snapshot: usize,
    /// Lower edge of the bucket.
    pub(super) from_ns: u64,
    /// Its upper edge, which is exclusive; the last bucket has none.
    pub(super) to_ns: Option<u64>,
    /// How many.
    pub(super) count: u64,
}

impl Row {
    /// Its bucket, as a histogram has it.
    pub(super) fn bucket(&self) -> ReportedBucket {
        ReportedBucket { from_ns: self.from_ns, to_ns: self.to_ns, count: self.count }
    }
}

/// A snapshot of the counters.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Snapshot {
    /// Its number.
    pub(super) id: Option<u64>,
    /// When its interval began.
    pub(super) begin: Option<Began>,
    /// When its interval ended, at which its counters were read.
    pub(super) end: Option<Began>,
    /// What columns of no known name say of it.
    pub(super) group: String,
    /// When it was taken, by a column that says neither begin nor end.
    pub(super) at: Option<Began>,
}

/// One table, however many pages it has.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// What stands above it, if that is a caption.
    pub(super) caption: Option<String>,
    /// Snapshots in the order in which they appear; one, of which nothing is known, where none are distinguished.
    pub(super) snapshots: Vec<Snapshot>,
    /// Its rows.
    pub(super) rows: Vec<Row>,
    /// What makes it read otherwise than it seems.
    pub(super) notes: Vec<String>,
}

type Key = (usize, Option<u64>, Option<u64>, usize, u64, Option<u64>);

fn key(row: &Row) -> Key {
    (row.event, row.instance, row.container, row.snapshot, row.from_ns, row.to_ns)
}

/// Takes tables from what a file holds.
#[derive(Default)]
pub(super) struct Readings {
    tables: Vec<Table>,
    events: Vec<Event>,
    event_numbers: HashMap<String, usize>,
    snapshot_numbers: HashMap<String, usize>,
    roles: Vec<Role>,
    /// Buckets of the table that is being read.
    seen: HashSet<Key>,
    /// Its histograms: [`Key`]s without buckets.
    histograms: HashSet<(usize, Option<u64>, Option<u64>, usize)>,
    /// Whether the next row is the first below its headings.
    begins_page: bool,
    /// Whether text came after its last row.
    is_closed: bool,
    /// Whether SQL*Plus has counted its rows, so that it is whole.
    is_counted: bool,
    /// Whether it has several rows of one bucket.
    is_mixed: bool,
    /// What the last row had in the columns that `break on` prints once.
    last: Last,
    caption: Option<String>,
    /// The event that a query names, for a table that does not.
    asked: Option<String>,
    /// Rows since the last count of them.
    rows_to_count: u64,
    release: String,
}

#[derive(Default, Clone)]
struct Last {
    event: String,
    class: String,
    instance: String,
    container: String,
    /// Number, begin, end, time of reading.
    snapshot: [String; 4],
    groups: Vec<String>,
}

impl Readings {
    /// Takes the next of what the file holds.
    pub(super) fn take(&mut self, found: Found<'_>, notes: &mut Notes) {
        match found {
            Found::Blank => {}
            Found::Headings(headings) => self.begin_page(headings),
            Found::Row(line, cells) => self.row(line, &cells, notes),
            Found::Other(line, text) => self.other(line, text, notes),
        }
    }

    /// The release of the database, as SQL*Plus prints it at its beginning.
    pub(super) fn release(&self) -> &str {
        &self.release
    }

    /// The tables that hold rows, and the events of all of them.
    pub(super) fn finish(self) -> (Vec<Table>, Vec<Event>) {
        (self.tables.into_iter().filter(|table| !table.rows.is_empty()).collect(), self.events)
    }

    fn begin_page(&mut self, headings: &[String]) {
        let mut roles: Vec<Role> = headings.iter().map(|heading| role(heading)).collect();
        let is_bucket = |role: &Role| matches!(role, Role::Milliseconds | Role::Microseconds);
        let before = roles.iter().position(is_bucket).unwrap_or(0);
        for role in roles.iter_mut().take(before).filter(|role| **role == Role::Other(Kind::Text)) {
            *role = Role::Group;
        }
        if self.tables.is_empty() || self.is_counted || roles != self.roles {
            self.begin_table();
        }
        self.roles = roles;
        self.begins_page = true;
    }

    fn begin_table(&mut self) {
        self.tables.push(Table { caption: self.caption.clone(), ..Table::default() });
        self.seen.clear();
        self.histograms.clear();
        self.snapshot_numbers.clear();
        (self.is_closed, self.is_counted, self.is_mixed) = (false, false, false);
        self.last = Last::default();
    }

    /// Whether a table goes on with this row though text stands before it: the title that stands on each page, and a bucket
    /// above the last or an event that was not there.
    fn goes_on_below_title(&self, event: &str, from_ns: u64) -> bool {
        let Some((table, last)) = self.tables.last().and_then(|table| Some((table, table.rows.last()?))) else {
            return false;
        };
        let is_title = self.caption.is_some() && self.caption == table.caption;
        let is_same = event.is_empty() || event == self.last.event;
        is_title && if is_same { from_ns > last.from_ns } else { !self.event_numbers.contains_key(event) }
    }

    fn other(&mut self, line: u64, text: &str, notes: &mut Notes) {
        let is_row = !self.is_counted && !self.last.event.is_empty() && text.contains(&self.last.event);
        if is_row && text.trim_end().ends_with(|c: char| c.is_ascii_digit()) {
            notes.not_understood(line, format!("`{}`: a row was expected", shortened(text.trim())));
        }
        // Words above a table say what it is; within one they do not.
        let is_within = !self.is_counted && !self.is_closed && self.rows_to_count > 0;
        let is_known = rows_selected(text).is_some()
            || release_of(text).is_some()
            || asked_event(text).is_some()
            || (is_caption(text) && !is_within);
        if !is_row && !is_known {
            notes.unknown(line, text);
        }
        self.is_closed = true;
        if let Some(selected) = rows_selected(text) {
            self.is_counted = true;
            if self.rows_to_count > 0 && selected != self.rows_to_count {
                let read = self.rows_to_count;
                notes.not_understood(line, format!("`{}` stands here, but {read} were understood", text.trim()));
            }
            self.rows_to_count = 0;
            return;
        }
        if let Some(release) = release_of(text) {
            release.clone_into(&mut self.release);
        }
        if begins_query(text) {
            self.asked = None;
        }
        if let Some(event) = asked_event(text) {
            self.asked = Some(event.to_owned());
        }
        if is_caption(text) {
            self.caption = Some(text.trim().to_owned());
        }
    }

    fn row(&mut self, line: u64, cells: &[String], notes: &mut Notes) {
        let of = |role: Role| cell_of(&self.roles, cells, role);
        let (milliseconds, microseconds, waits) = (of(Role::Milliseconds), of(Role::Microseconds), of(Role::Count));
        let edges = match microseconds {
            "" => count(milliseconds).and_then(|ms| edges_ns(ms, 1_000_000, OVERFLOW_MS)),
            us => count(us).and_then(|us| edges_ns(us, 1_000, OVERFLOW_US)),
        };
        let goes_on = edges.is_some_and(|(from_ns, _)| self.goes_on_below_title(of(Role::Event), from_ns));
        if self.is_closed && !goes_on {
            self.begin_table();
        }
        self.is_closed = false;
        let cell = |role: Role| cell_of(&self.roles, cells, role);
        let carried = |wanted: Role, last: &str| match cell(wanted) {
            "" => last.to_owned(),
            text => text.to_owned(),
        };
        let last = &self.last;
        let [id, begin, end, at] = &last.snapshot;
        let grouped = self.roles.iter().zip(cells).filter(|(role, _)| **role == Role::Group);
        let groups = grouped.enumerate().map(|(at, (_, cell))| match cell.as_str() {
            "" => last.groups.get(at).cloned().unwrap_or_default(),
            cell => cell.to_owned(),
        });
        let row = Last {
            groups: groups.collect(),
            event: carried(Role::Event, &last.event),
            class: carried(Role::Class, &last.class),
            instance: carried(Role::Instance, &last.instance),
            container: carried(Role::Container, &last.container),
            snapshot: [
                carried(Role::Snapshot, id),
                carried(Role::Begin, begin),
                carried(Role::End, end),
                carried(Role::At, at),
            ],
        };
        if milliseconds.is_empty() && microseconds.is_empty() {
            // A sum over the rows above it.
            return;
        }
        self.rows_to_count += 1;
        self.caption = None;
        if waits.contains(['E', 'e']) {
            self.note("counts are rounded: they had no room in their column");
        }
        let (Some((from_ns, to_ns)), Some(count)) = (edges, count(waits)) else {
            let stands = cells.join(" ");
            notes.not_understood(line, format!("`{}`: a bucket and a count were expected", shortened(&stands)));
            return;
        };
        let (name, class) = (row.event.clone(), row.class.clone());
        self.last = row;
        let event = self.event(name, class);
        let snapshot = self.snapshot();
        let number = |text: &str| whole_number(text);
        let (instance, container) = (number(&self.last.instance), number(&self.last.container));
        self.add(Row { event, instance, container, snapshot, from_ns, to_ns, count });
    }

    fn event(&mut self, name: String, class: String) -> usize {
        let name = match (name.is_empty(), &self.asked) {
            (false, _) => name,
            (true, Some(asked)) => asked.clone(),
            (true, None) => "event that the file does not name".to_owned(),
        };
        *self.event_numbers.entry(name.clone()).or_insert_with(|| {
            self.events.push(Event { name, class });
            self.events.len() - 1
        })
    }

    fn snapshot(&mut self) -> usize {
        let [id, begin, end, at] = &self.last.snapshot;
        // The instances of a cluster take one snapshot at times that differ a little.
        let key = if id.is_empty() { [begin.as_str(), end, at].join("|") } else { id.clone() };
        let group = self.last.groups.join(" ");
        let key = format!("{key}|{group}");
        let Some(table) = self.tables.last_mut() else { return 0 };
        *self.snapshot_numbers.entry(key).or_insert_with(|| {
            table.snapshots.push(Snapshot {
                id: whole_number(id),
                begin: oracle_time::began(begin),
                end: oracle_time::began(end),
                at: oracle_time::began(at),
                group,
            });
            table.snapshots.len() - 1
        })
    }

    fn add(&mut self, mut row: Row) {
        let begins_page = std::mem::take(&mut self.begins_page);
        if begins_page && self.begins_reading(&row) {
            row = self.begin_reading(row);
        } else if !self.seen.insert(key(&row)) {
            self.is_mixed = true;
            self.note(
                "a table has several rows of one bucket, such as of instances or containers that it does not distinguish; they \
                 are added up",
            );
        }
        self.histograms.insert((row.event, row.instance, row.container, row.snapshot));
        if let Some(table) = self.tables.last_mut() {
            table.rows.push(row);
        }
    }

    /// Whether the first row of a page is that of another reading of the same counters: it does not go up from the row before.
    /// The first bucket that has waits may be a lower one than before. In a table that has several rows of one bucket anyway
    /// nobody can tell.
    fn begins_reading(&self, row: &Row) -> bool {
        let Some(rows) = self.tables.last().map(|table| table.rows.as_slice()).filter(|_| !self.is_mixed) else {
            return false;
        };
        let goes_down = match rows {
            [.., before, last] if before.event == last.event && before.from_ns > last.from_ns => false,
            [.., last] => row.from_ns < last.from_ns,
            [] => false,
        };
        let is_there = self.histograms.contains(&(row.event, row.instance, row.container, row.snapshot));
        self.seen.contains(&key(row)) || (is_there && goes_down)
    }

    /// Begins a table with a row of the one before.
    fn begin_reading(&mut self, row: Row) -> Row {
        let snapshot = self.tables.last().and_then(|table| table.snapshots.get(row.snapshot)).cloned();
        let numbers = std::mem::take(&mut self.snapshot_numbers);
        let last = std::mem::take(&mut self.last);
        self.begin_table();
        self.last = last;
        self.snapshot_numbers =
            numbers.into_iter().filter(|(_, number)| *number == row.snapshot).map(|(name, _)| (name, 0)).collect();
        if let Some(table) = self.tables.last_mut() {
            table.snapshots.extend(snapshot);
        }
        let row = Row { snapshot: 0, ..row };
        self.seen.insert(key(&row));
        row
    }

    fn note(&mut self, note: &str) {
        if let Some(table) = self.tables.last_mut()
            && !table.notes.iter().any(|so_far| so_far == note)
        {
            table.notes.push(note.to_owned());
        }
    }
}

/// The edges of the bucket below `upper`, in nanoseconds: down to half of it, as all edges are powers of two. Nothing for what is
/// none.
pub(crate) fn edges_ns(upper: u64, unit_ns: u64, overflow: u64) -> Option<(u64, Option<u64>)> {
    let lower = match upper {
        0 => return None,
        1 => 0,
        upper if upper >= overflow => upper.checked_next_power_of_two()? / 2,
        upper if upper.is_power_of_two() => upper / 2,
        _ => return None,
    };
    let to_ns = if upper >= overflow { None } else { Some(upper.checked_mul(unit_ns)?) };
    Some((lower.checked_mul(unit_ns)?, to_ns))
}

/// The cell in the column of a role; blank where there is none.
fn cell_of<'a>(roles: &[Role], cells: &'a [String], wanted: Role) -> &'a str {
    let at = roles.iter().position(|role| *role == wanted);
    at.and_then(|at| cells.get(at)).map_or("", String::as_str)
}

fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

/// A line that is longer is no caption.
const LONGEST_CAPTION: usize = 60;

/// The event of `where event = 'log file sync'`; nothing where others are asked for too, or all but this one.
fn asked_event(text: &str) -> Option<&str> {
    let (before, rest) = text.split_once('\'')?;
    let (event, rest) = rest.split_once('\'')?;
    let before = before.get(before.to_ascii_lowercase().rfind("event")?..)?.to_ascii_lowercase();
    let excludes = before.contains(['<', '>', '!', '|', ',']) || before.contains(" not ");
    let has_others = rest.contains('\'') && rest.to_ascii_lowercase().contains("event");
    let is_one = !excludes && !has_others && !rest.trim_start().starts_with(',');
    (is_one && !event.is_empty() && event.len() <= 64 && !event.contains(['%', '&'])).then_some(event)
}

/// Whether a query begins here, of which nothing is known yet.
fn begins_query(text: &str) -> bool {
    let text = text.trim_start();
    let text = text.strip_prefix("SQL>").unwrap_or(text).trim_start();
    text.get(..7).is_some_and(|word| word.eq_ignore_ascii_case("select ")) || text.eq_ignore_ascii_case("select")
}

/// Lines that SQL*Plus prints by itself begin so, and statements.
const NO_CAPTIONS: [&str; 36] = [
    "alter",
    "and",
    "break",
    "btitle",
    "col",
    "column",
    "compute",
    "conn",
    "connect",
    "connected",
    "define",
    "disconnected",
    "elapsed:",
    "enter",
    "error",
    "exec",
    "from",
    "group",
    "last",
    "no",
    "order",
    "prompt",
    "rem",
    "repheader",
    "select",
    "set",
    "show",
    "spool",
    "sql>",
    "sqlplus",
    "ttitle",
    "undefine",
    "version",
    "where",
    "with",
    "~~",
];

/// A few words without a full stop above a table say what it is; statements, prompts and what SQL*Plus prints by itself do not.
fn is_caption(text: &str) -> bool {
    let text = text.trim();
    let lower = text.to_ascii_lowercase();
    let mut words = lower.split_whitespace();
    let first = words.next().unwrap_or_default();
    // `old   3: where event = '&event'`
    let is_substituted = matches!(first, "old" | "new") && words.next().is_some_and(|word| word.ends_with(':'));
    let is_oracle = first.starts_with("ora-") || first.starts_with("sp2-");
    text.len() <= LONGEST_CAPTION
        && !NO_CAPTIONS.contains(&first)
        && !is_substituted
        && !is_oracle
        // A connect string would be a secret.
        && !text.contains(['>', ';', '\'', '=', ',', '$', '/', '@'])
        && !text.ends_with(['.', ':', '?', '!', ')', '/'])
        && text.chars().next().is_some_and(char::is_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_begins_at_the_power_of_two_below_it() {
        assert_eq!(edges_ns(1, 1_000, OVERFLOW_US), Some((0, Some(1_000))));
        assert_eq!(edges_ns(1_024, 1_000, OVERFLOW_US), Some((512_000, Some(1_024_000))));
        assert_eq!(edges_ns(OVERFLOW_US, 1_000, OVERFLOW_US), Some((2_147_483_648_000, None)));
        assert_eq!(edges_ns(4, 1_000_000, OVERFLOW_MS), Some((2_000_000, Some(4_000_000))));
        assert_eq!(edges_ns(4_194_304, 1_000_000, OVERFLOW_MS), Some((2_097_152_000_000, None)));
        assert_eq!([0, 12].map(|us| edges_ns(us, 1_000, OVERFLOW_US)), [None, None]);
    }

    #[test]
    fn captions_are_no_statements() {
        assert!(["Before the change", "New storage", "Test 1: on flash"].iter().all(|text| is_caption(text)));
        assert!(
            ["select event", "It was fast.", "SQL> @hist", "19", "order by 1"].iter().all(|text| !is_caption(text))
        );
        assert_eq!(asked_event("where event = 'log file sync' order by 1"), Some("log file sync"));
        let among_others =
            "select event#, wait_count from v$event_histogram where event = 'log file sync' order by event";
        assert_eq!(asked_event(among_others), Some("log file sync"));
        let not_one = [
            "where event like 'db file%'",
            "where event in ('log file sync', 'log file parallel write')",
            "where event = 'log file sync' or event = 'buffer busy waits'",
            "where event <> 'log file sync'",
            "where event not in ('log file sync')",
            "where event = '&event'",
        ];
        assert_eq!(not_one.map(asked_event), [None; 6]);
        assert!(begins_query("SQL> select wait_count") && begins_query("SELECT") && !begins_query("selection"));
    }

    #[test]
    fn what_sqlplus_says_by_itself_is_no_caption() {
        let said = [
            "Version 19.3.0.0.0",
            "no rows selected",
            "Elapsed: 00:00:00.01",
            "old   3: where event",
            "Enter value for event: log file sync",
            "Last Successful login time: Mon Sep 07 2020 10:00:00",
            "ORA-00942 table or view does not exist",
        ];
        assert_eq!(said.into_iter().find(|text| is_caption(text)), None);
    }
}
