//! Names of events that were cut to the width of their column.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::oracle::classes::WAIT_CLASSES;
use crate::oracle::table::Table;

/// Where names of events stand in a table, and how many characters its column has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventColumn {
    /// The table.
    pub(super) table: usize,
    /// The column.
    pub(super) column: usize,
    /// Its width.
    pub(super) width: usize,
}

/// Events, from `V$EVENT_NAME`, that matter to storage or are in every report, have names longer than columns are wide, and
/// are distinguished from all others by their first 25 characters.
const KNOWN: [&str; 29] = [
    "ASM IO for non-blocking poll",
    "ASM file metadata operation",
    "IMR slave acknowledgement msg",
    "KJC: Wait for msg sends to complete",
    "PX Deq: Slave Session Stats",
    "SQL*Net break/reset to client",
    "SQL*Net message from client",
    "SQL*Net message from dblink",
    "SQL*Net more data from client",
    "SQL*Net more data from dblink",
    "control file parallel write",
    "control file sequential read",
    "enq: CR - block range reuse ckpt",
    "enq: KO - fast object checkpoint",
    "enq: RO - fast object reuse",
    "enq: TX - allocate ITL entry",
    "enq: TX - row lock contention",
    "gc current grant read-mostly invalidation",
    "gc current multi block request",
    "kjctssqmg: quick message send wait",
    "latch: cache buffers chains",
    "latch: cache buffers lru chain",
    "latch: checkpoint queue latch",
    "latch: ges resource hash list",
    "latch: object queue header operation",
    "libcache interrupt action by LCK",
    "log file switch (archiving needed)",
    "log file switch (checkpoint incomplete)",
    "log file switch (private strand flush incomplete)",
];

/// Functions and kinds of files in `IOStat` whose names are longer than a column of 15 characters.
const FUNCTIONS: [&str; 2] = ["Buffer Cache Reads", "Inmemory Populate"];
const FILES: [&str; 3] = ["Archive Log Backup", "Data File Backup", "Data File Incremental Backup"];

/// Platforms of `V$DATABASE` whose names are distinguished from all others by their first 15 characters.
const PLATFORMS: [&str; 3] = ["AIX-Based Systems (64-bit)", "HP-UX IA (64-bit)", "Linux x86 64-bit"];

/// The names that a column can hold, or those of them that may be cut, if they are few.
pub(super) fn of_column(name: &str) -> Option<&'static [&'static str]> {
    match name {
        "Wait Class" | "Wait: Class" => Some(&WAIT_CLASSES),
        "Function Name" | "Function" => Some(&FUNCTIONS),
        "Filetype Name" => Some(&FILES),
        "Platform" => Some(&PLATFORMS),
        _ => None,
    }
}

/// The only one of these names that `cut` is the beginning of, if it is not whole.
pub(super) fn whole(names: &[&'static str], cut: &str) -> Option<&'static str> {
    const SHORTEST: usize = 8;
    if cut.len() < SHORTEST || names.contains(&cut) {
        return None;
    }
    let mut matching = names.iter().filter(|name| name.starts_with(cut));
    let name = matching.next()?;
    matching.next().is_none().then_some(*name)
}

/// Puts whole names where a column was too narrow for them, if the same report has them elsewhere: exactly one name, or several
/// of which each is the beginning of the next, begins with what stands there. The report counts as having those of [`KNOWN`] that it has cut.
pub(super) fn complete(tables: &mut [Table], places: &[EventColumn]) {
    let mut names = BTreeSet::new();
    for place in places {
        let rows = tables.get(place.table).map_or(&[][..], |table| &table.rows);
        for name in rows.iter().map(|row| row.cell(place.column)).filter(|name| !name.is_empty()) {
            names.extend(known(name, place.width));
            names.insert(name.to_owned());
        }
    }
    for place in places {
        let Some(table) = tables.get_mut(place.table) else { continue };
        // Their rows stand in the order of their whole names.
        let is_ordered = table.title.contains("Histogram");
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        for row in &table.rows {
            if row.cell(place.column).chars().count() + 1 >= place.width {
                *times.entry(row.cell(place.column).to_owned()).or_default() += 1;
            }
        }
        let mut whole: BTreeMap<String, VecDeque<String>> = BTreeMap::new();
        for (cut, times) in times {
            let found = whole_names(&names, &cut, place.width);
            if found.len() == 1 || (is_ordered && found.len() == times) {
                whole.insert(cut, found);
            }
        }
        for row in &mut table.rows {
            let Some(cell) = row.cells.get_mut(place.column) else { continue };
            let Some(names) = whole.get_mut(cell.as_str()) else { continue };
            let name = if names.len() > 1 { names.pop_front() } else { names.front().cloned() };
            if let Some(name) = name {
                *cell = name;
            }
        }
    }
}

fn known(cut: &str, width: usize) -> Option<String> {
    let mut matching = KNOWN.into_iter().filter(|name| name.starts_with(cut) && is_cut_at(cut, name, width));
    let name = matching.next()?;
    matching.next().is_none().then(|| name.to_owned())
}

/// Whether a column of this width makes `cut` of a longer name.
fn is_cut_at(cut: &str, name: &str, width: usize) -> bool {
    let length = cut.chars().count();
    // Names that are cut at a blank seem one character shorter than their column.
    length == width || (length + 1 == width && name.get(cut.len()..).is_some_and(|rest| rest.starts_with(' ')))
}

/// The names that a column may have cut to `cut`, without those that are only the beginning of another.
fn whole_names(names: &BTreeSet<String>, cut: &str, width: usize) -> VecDeque<String> {
    // A few are enough to see that it may be many.
    const MAX: usize = 16;
    let longer = names
        .range(cut.to_owned()..)
        .skip_while(|name| *name == cut)
        .take_while(|name| name.starts_with(cut))
        .filter(|name| is_cut_at(cut, name, width));
    let mut whole: VecDeque<String> = VecDeque::new();
    // In their order, a name comes directly after its own beginnings.
    for name in longer.take(MAX) {
        if whole.back().is_some_and(|shorter| name.starts_with(shorter.as_str())) {
            whole.pop_back();
        }
        whole.push_back(name.clone());
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::table::Row;

    fn found(names: &[&str], cut: &str, width: usize) -> Vec<String> {
        whole_names(&names.iter().map(|name| (*name).to_owned()).collect(), cut, width).into()
    }

    #[test]
    fn a_cut_name_becomes_the_only_one_that_begins_so() {
        let names =
            ["disk tape parallel writ", "disk tape parallel write", "disk tape par", "disk tape parallel write x"];
        assert_eq!(found(&names, "disk tape par", 13), ["disk tape parallel write x"]);
        assert!(found(&names, "disk tape par", 20).is_empty(), "a name that does not fill its column is whole");
        assert_eq!(
            found(&["disk tape read", "disk tape write", "disk tape"], "disk tape", 10).len(),
            2,
            "it may be either"
        );
        assert_eq!(found(&["disk tape read", "disk tape"], "disk tape", 10), ["disk tape read"]);
        assert!(found(&["disk tapes", "disk tape"], "disk tape", 10).is_empty(), "no blank was cut off");
    }

    #[test]
    fn what_no_report_tells_may_be_known() {
        assert_eq!(known("control file parallel wri", 25).as_deref(), Some("control file parallel write"));
        assert_eq!(known("control file parallel wri", 30), None, "it does not fill its column");
        assert_eq!(known("log file switch (", 17), None, "it may be any of three");
        let classes = of_column("Wait Class").unwrap();
        assert_eq!(["Concurrenc", "Other", "Con"].map(|cut| whole(classes, cut)), [Some("Concurrency"), None, None]);
        let platforms = of_column("Platform").unwrap();
        let cut = ["Linux x86 64-bi", "Linux x86 64-bit", "Microsoft Windo", "Solaris", "Linux IA (64-bi"];
        let found = [Some("Linux x86 64-bit"), None, None, None, None];
        assert_eq!(cut.map(|cut| whole(platforms, cut)), found);
        assert_eq!(whole(&["Data File Backup", "Data File"], "Data File"), None, "it is whole");
    }

    #[test]
    fn rows_of_two_names_cut_to_one_are_distinguished_by_their_order_where_they_have_one() {
        let table = |title: &str, names: &[&str]| Table {
            title: title.to_owned(),
            columns: vec!["Event".to_owned()],
            rows: names.iter().map(|name| Row { line: 0, cells: vec![(*name).to_owned()] }).collect(),
            ..Table::default()
        };
        let mut tables = [
            table("Events", &["tape drive two", "tape drive one"]),
            table("Histogram", &["tape drive", "tape drive"]),
            table("Other", &["tape drive", "tape drive"]),
        ];
        let column = |table: usize, width: usize| EventColumn { table, column: 0, width };
        complete(&mut tables, &[column(0, 40), column(1, 11), column(2, 11)]);
        let names = |table: &Table| table.rows.iter().map(|row| row.cell(0).to_owned()).collect::<Vec<_>>();
        assert_eq!(names(&tables[1]), ["tape drive one", "tape drive two"]);
        assert_eq!(names(&tables[2]), ["tape drive", "tape drive"]);
    }
}
