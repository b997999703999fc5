//! What is Statspack's own. Its reports have the form of AWR's as text.

use super::table::{HEADER, Report, Table};
use super::text;
use crate::import::{ImportError, Notes, Source};

/// Whether a text holds a report of Statspack.
pub(super) fn recognises(head: &str) -> bool {
    text::recognises_statspack(head)
}

/// Those in a file, one after the other.
///
/// # Errors
/// If one of them ends before it tells its snapshots.
pub(super) fn reports(source: &Source, notes: &mut Notes) -> Result<Vec<Report>, ImportError> {
    text::reports(source, notes)
}

/// Puts the name of the database into the header, which has none: only titles of sections have it.
pub(super) fn name_database(tables: &mut [Table], database: &str) {
    let is_header = |table: &&mut Table| table.title == HEADER && table.column("DB Id").is_some();
    let Some(table) = tables.iter_mut().find(is_header) else { return };
    let Some(name) = table.columns.first_mut().filter(|name| name.is_empty()) else { return };
    "DB Name".clone_into(name);
    for row in &mut table.rows {
        if let Some(cell) = row.cells.first_mut().filter(|cell| cell.is_empty()) {
            database.clone_into(cell);
        }
    }
}
