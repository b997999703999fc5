//! Pages for a browser: one file that carries everything it needs, and loads nothing.
//!
//! A page reads well without its script, on paper too: charts are drawn here, as SVG between labels in HTML, and the script
//! only adds values under the pointer and series that can be put away.

mod chart;
mod comparison;
mod distribution;
mod experiment;
mod interference;
mod load_line;
mod made;
mod over_time;
mod page;
mod picture;
mod run;
mod sheets;
pub(super) mod table;
mod throughput;
mod timeline;
mod trend;

use std::io::{self, Write};

use maud::{Markup, PreEscaped, html};
use serde_json::Value;

pub use comparison::comparison;
pub use experiment::experiment;
pub use interference::interference;
pub use page::{Follow, Head, Kept, is_ours, page, policy};
pub use picture::Picture;
pub use trend::trend;

use analysis::Finding;
use model::record::Run;

/// Values of one line of a chart where the page has one run. Several runs share what a page may weigh.
const MAX_VALUES: usize = 1_600;
const MIN_VALUES: usize = 60;
/// What a page may weigh. Where runs have so many steps, events or devices that it would be more, lines are drawn more coarsely.
pub const MAX_BYTES: usize = 1_500_000;

/// A run and what is to be said about it.
#[derive(Debug, Clone, Copy)]
pub struct Reported<'a> {
    /// The run, its intervals attached.
    pub run: &'a Run,
    /// What the analysis has to say.
    pub findings: &'a [Finding],
}

/// Writes the report of one run or several as one page, of at most [`MAX_BYTES`] if that can be: a page of very many runs or
/// steps may be larger.
///
/// # Errors
/// If `out` fails.
pub fn report(out: &mut dyn Write, runs: &[Reported<'_>], kept: &Kept<'_>) -> io::Result<()> {
    let mut max_values = (MAX_VALUES / runs.len().max(1)).max(MIN_VALUES);
    loop {
        let page = of_runs(runs, kept, max_values);
        if page.len() <= MAX_BYTES || max_values == MIN_VALUES {
            return out.write_all(page.as_bytes());
        }
        max_values = (max_values / 4).max(MIN_VALUES);
    }
}

fn of_runs(runs: &[Reported<'_>], kept: &Kept<'_>, max_values: usize) -> String {
    let title = runs.iter().map(|reported| reported.run.id.as_str()).collect::<Vec<_>>().join(", ");
    let (mut articles, mut data) = (Vec::new(), Vec::new());
    for (number, reported) in runs.iter().enumerate() {
        let prefix = if runs.len() == 1 { String::new() } else { format!("run{number}-") };
        let parts = run::parts(reported, &prefix, max_values);
        articles.push(parts.article);
        data.extend(parts.data);
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
