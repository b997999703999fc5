//! Pages for a browser: one file that carries everything it needs, and loads nothing.
//!
//! A page reads well without its script, on paper too: charts are drawn here, as SVG between labels in HTML, and the script
//! only adds values under the pointer and series that can be put away.

mod chart;
mod comparison;
mod distribution;
mod load_line;
mod made;
mod over_time;
mod page;
mod picture;
mod run;
mod sheets;
pub(super) mod table;
mod timeline;
mod trend;

use std::io::{self, Write};

use maud::{Markup, PreEscaped, html};
use serde_json::Value;

pub use comparison::comparison;
pub use page::{Follow, Head, Kept, is_ours, page, policy};
pub use picture::Picture;
pub use trend::trend;

use crate::analysis::Finding;
use crate::record::Run;

/// Values of one line of a chart where the page has one run. Several runs share what a page may weigh.
const MOST_VALUES: usize = 1_600;
const LEAST_VALUES: usize = 60;
/// What a page may weigh. Where runs have so many steps, events or devices that it would be more, lines are drawn more coarsely.
pub const MOST_BYTES: usize = 1_500_000;

/// A run and what is to be said about it.
#[derive(Debug, Clone, Copy)]
pub struct Reported<'a> {
    /// The run, its intervals attached.
    pub run: &'a Run,
    /// What the analysis has to say.
    pub findings: &'a [Finding],
}

/// Writes the report of one run or several as one page, of at most [`MOST_BYTES`] if that can be: a page of very many runs or
/// steps may be larger.
///
/// # Errors
/// If `out` fails.
pub fn report(out: &mut dyn Write, runs: &[Reported<'_>], kept: &Kept<'_>) -> io::Result<()> {
    let mut most_values = (MOST_VALUES / runs.len().max(1)).max(LEAST_VALUES);
    loop {
        let page = of_runs(runs, kept, most_values);
        if page.len() <= MOST_BYTES || most_values == LEAST_VALUES {
            return out.write_all(page.as_bytes());
        }
        most_values = (most_values / 4).max(LEAST_VALUES);
    }
}

fn of_runs(runs: &[Reported<'_>], kept: &Kept<'_>, most_values: usize) -> String {
    let title = runs.iter().map(|reported| reported.run.id.as_str()).collect::<Vec<_>>().join(", ");
    let (mut articles, mut data) = (Vec::new(), Vec::new());
    for (number, reported) in runs.iter().enumerate() {
        let prefix = if runs.len() == 1 { String::new() } else { format!("run{number}-") };
        let told = run::tell(reported, &prefix, most_values);
        articles.push(told.article);
        data.extend(told.data);
    }
    let body = html! {
        @for article in &articles { (article) }
        (for_script(&data))
    };
    page(&Head { title: &title, kept }, &body)
}

/// What the script reads. `<` is written so that no text in it can end the element.
fn for_script(data: &[Value]) -> Markup {
    let text = Value::from(data).to_string().replace('<', "\\u003c");
    html! { script #charts type="application/json" { (PreEscaped(text)) } }
}

#[cfg(test)]
mod tests;
