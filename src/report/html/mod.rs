//! Pages for a browser: one file that carries everything it needs, and loads nothing.
//!
//! A page reads well without its script, on paper too: charts are drawn here, as SVG between labels in HTML, and the script
//! only adds values under the pointer and series that can be put away.

mod page;

use std::io::{self, Write};

use maud::{Markup, html};

pub use page::{Follow, GENERATOR, Head, Kept, page, policy};

use crate::analysis::Finding;
use crate::record::Run;

/// A run and what is to be said about it.
#[derive(Debug, Clone, Copy)]
pub struct Reported<'a> {
    /// The run, its intervals attached.
    pub run: &'a Run,
    /// What the analysis has to say.
    pub findings: &'a [Finding],
}

/// Writes the report of one run or several as one page.
///
/// # Errors
/// If `out` fails.
pub fn report(out: &mut dyn Write, runs: &[Reported<'_>], kept: &Kept<'_>) -> io::Result<()> {
    let title = runs.iter().map(|reported| reported.run.id.as_str()).collect::<Vec<_>>().join(", ");
    let body = html! { @for reported in runs { (of_run(reported)) } };
    out.write_all(page(&Head { title: &title, kept }, &body).as_bytes())
}

fn of_run(reported: &Reported<'_>) -> Markup {
    html! {
        article.run {
            h1 { (reported.run.id) }
            @for finding in reported.findings { p { (finding.sentence()) } }
        }
    }
}
