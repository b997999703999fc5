//! Oracle's own reports: AWR in text and HTML, and Statspack.
//!
//! Each form is read into the tables of a [`table::Report`]; what they mean is reported once, in [`map`].

mod activity;
pub(super) mod classes;
mod cross_checks;
mod events;
mod files;
mod grid;
mod header;
mod histogram;
pub(super) mod html;
mod map;
mod snapshots;
mod statspack;
mod subjects;
mod table;
#[cfg(test)]
mod tests;
pub(super) mod text;
mod times;
mod top;

use super::{Draft, ImportError, Notes, Source};
use header::last_part;
use table::{HEADER, Report, ReportKind, Row, SNAPSHOTS, Table, plain};

/// The runs that AWR reports in HTML report on, of which a file may hold several.
///
/// # Errors
/// If one of them has no snapshots.
pub(super) fn read_html(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    drafts(&html::reports(source, notes)?, source, notes)
}

/// The runs that reports of AWR or Statspack as text report on, of which a file may hold several.
///
/// # Errors
/// If one of them has no snapshots.
pub(super) fn read_text(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    drafts(&text::reports(source, notes)?, source, notes)
}

fn drafts(reports: &[table::Report], source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut drafts = Vec::new();
    for report in reports {
        drafts.extend(map::drafts(report, source, notes)?);
    }
    Ok(drafts)
}

/// Beginnings of the titles of sections that are read.
const WANTED: [&str; 17] = [
    "backgroundwaitevents",
    "cachesizes",
    "databaseinstances",
    "databaseresourcelimits",
    "databasesummary",
    "foregroundwaitevents",
    "hostcpu",
    "instancecpu",
    "ioprofile",
    "iostatby",
    "loadprofile",
    "operatingsystemstatistics",
    "osstatistics",
    "systemstatistics",
    "timemodel",
    "waitevent",
    "memorystatistics",
];

/// Whether anything is read from a section: others are left out on purpose, whatever stands in them.
fn is_read(title: &str) -> bool {
    let plain = plain(title);
    let events = plain.starts_with("top") && plain.contains("events") && !plain.contains("sql");
    [HEADER, SNAPSHOTS].contains(&title)
        || events
        || plain.contains("instanceactivity")
        || WANTED.iter().any(|wanted| plain.starts_with(wanted))
        || subjects::is_title(&plain)
}

// Which containers of a database a report is on: all of them, or one pluggable database.
//
// A report from the root lists all containers that were open, one that was made within a pluggable database only that one, beside
// the number and the name of the database that holds it.

/// What stands for a name that was blanked out.
const UNNAMED: &str = "unnamed";
/// Text reports cut names at so many characters; then only the number says which container it is.
const LONGEST_IN_TEXT: usize = 15;

/// Fills in what a report reports on containers.
fn read_containers(report: &Report, draft: &mut Draft) {
    let mut names: Vec<String> = Vec::new();
    for table in &report.tables {
        let Some(at) = column(table, "containername") else { continue };
        let number = column(table, "containerdbid");
        // Sections on statements name the container of each.
        let is_list = table.title == HEADER || report.kind == ReportKind::AwrGlobal && number.is_some();
        if !is_list {
            continue;
        }
        for row in &table.rows {
            let name = name(row, at, number);
            // Reports of a cluster may list those of each instance.
            if name == UNNAMED || !names.contains(&name) {
                names.push(name);
            }
        }
    }
    if report.is_on_pdb {
        if names.iter().all(|name| name == UNNAMED) {
            names = vec![UNNAMED.to_owned()];
            draft.notes.push(
                "The report is on a pluggable database that it does not name: it may be any of its database."
                    .to_owned(),
            );
        }
        // An application container and those in it; a list with commas is that of a whole database.
        draft.target.facts.database.containers = vec![names.join(" and ")];
    } else if names.iter().any(|name| name != UNNAMED) {
        draft.target.facts.database.containers = names;
    }
}

fn column(table: &Table, name: &str) -> Option<usize> {
    table.columns.iter().position(|column| plain(last_part(column)) == name)
}

fn name(row: &Row, at: usize, number: Option<usize>) -> String {
    let is_named = |text: &str| !text.is_empty() && !text.contains(['<', '>']);
    let name = row.cell(at);
    let number = number.map(|at| row.cell(at)).filter(|number| is_named(number) && number.parse::<u64>().is_ok());
    match number {
        Some(number) if !is_named(name) => number.to_owned(),
        Some(number) if name.chars().count() == LONGEST_IN_TEXT => format!("{name} ({number})"),
        _ if is_named(name) => name.to_owned(),
        _ => UNNAMED.to_owned(),
    }
}
