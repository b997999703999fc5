//! Oracle's own reports: AWR in text and HTML, and Statspack.
//!
//! Each form is read into the tables of a [`table::Report`]; what they mean is reported once, in [`map`].

mod activity;
pub(super) mod classes;
mod containers;
mod cross_checks;
mod events;
mod files;
mod grid;
mod header;
mod histogram;
mod html;
mod map;
mod snapshots;
mod statspack;
mod subjects;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod times;
mod top;
mod window;

use super::{Draft, ImportError, Notes, Source};

/// Whether a file is an AWR report in HTML.
pub(super) fn recognises_awr_html(head: &str) -> bool {
    html::recognises(head)
}

/// The runs that AWR reports in HTML report on, of which a file may hold several.
///
/// # Errors
/// If one of them has no snapshots.
pub(super) fn read_awr_html(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    drafts(&html::reports(source, notes)?, source, notes)
}

/// Whether a file holds AWR reports as text.
pub(super) fn recognises_awr_text(head: &str) -> bool {
    text::recognises(head)
}

/// The runs that AWR reports report on, of which a file of text may hold several.
///
/// # Errors
/// If one of them has no snapshots.
pub(super) fn read_awr_text(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    drafts(&text::reports(source, notes)?, source, notes)
}

/// Whether a file holds Statspack reports.
pub(super) fn recognises_statspack(head: &str) -> bool {
    statspack::recognises(head)
}

/// The runs that Statspack reports report on.
///
/// # Errors
/// If one of them has no snapshots.
pub(super) fn read_statspack(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    drafts(&statspack::reports(source, notes)?, source, notes)
}

fn drafts(reports: &[table::Report], source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut drafts = Vec::new();
    for report in reports {
        drafts.extend(map::drafts(report, source, notes)?);
    }
    Ok(drafts)
}
