//! The page of an experiment: five sentences, then what each combination carries, the load lines, and every step.

use std::io::{self, Write};

use maud::{Markup, html};
use serde_json::Value;

use super::chart::{Drawn, Lines};
use super::{Head, Kept, Sheets, for_script, load_line, marked, page, table};
use crate::experiment::{NotMeasured, sheet, write};
use crate::table::Style;
use analysis::{Case, ExperimentFound};
use model::record::Run;

/// Lines of one chart: more cannot be told apart.
const MAX_LINES: usize = 6;

/// Writes what an experiment found as one page.
///
/// # Errors
/// If `out` fails.
pub fn experiment(
    out: &mut dyn Write,
    found: &ExperimentFound,
    missing: &[NotMeasured],
    kept: &Kept<'_>,
) -> io::Result<()> {
    let (figures, data): (Vec<Markup>, Vec<Value>) =
        charts(found).into_iter().map(|drawn| (drawn.figure, drawn.data)).unzip();
    let summary = found.summary();
    let doubtful = found.cases.iter().flat_map(|case| &case.readings).any(|reading| reading.is_doubtful);
    let body = html! {
        article.run aria-labelledby="experiment" {
            h1 #experiment { (found.title) }
            @for sentence in &summary { p.opening.doubtful[doubtful] { (marked(sentence)) } }
            section.sheets { h2 { "In figures" } (Sheets::of(|sheets| write(sheets, found, missing))) }
            @if !figures.is_empty() {
                section { h2 { "Load lines" } @for figure in &figures { (figure) } }
            }
            @if let Some(sheet) = sheet(found) {
                section.sheets {
                    h2 { "Every step" }
                    (table::part(&sheet, &table::Around { caption: Style::Matrix.title(), legend: Style::Matrix.legend() }))
                }
            }
        }
        (for_script(&data))
    };
    out.write_all(page(&Head { title: &found.title, kept }, &body).as_bytes())
}

/// The lines of each load over each other, in charts of a few.
fn charts(found: &ExperimentFound) -> Vec<Drawn> {
    let mut charts = Vec::new();
    for load in found.loads() {
        let cases: Vec<&Case> = found.cases.iter().filter(|case| case.load == load).collect();
        for few in cases.chunks(MAX_LINES) {
            let names: Vec<String> = few.iter().map(|case| found.name(case)).collect();
            let runs: Vec<(&Run, &str)> =
                few.iter().map(|case| &case.side.run).zip(names.iter().map(String::as_str)).collect();
            charts.extend(load_line::overlay(&runs).and_then(|lines| numbered(lines, load, charts.len())));
        }
    }
    charts
}

fn numbered(mut lines: Lines, load: &str, number: usize) -> Option<Drawn> {
    lines.frame.id = format!("load-line-{number}");
    lines.frame.title = format!("{} of {load}", lines.frame.title);
    lines.draw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::{ExperimentMark, sample};

    fn page_of(cases: usize) -> String {
        let runs = (1..=cases).map(|step| {
            let mut run = sample::sweep(10);
            let step = step as u32;
            run.tags.insert("disk".to_owned(), format!("p{step}<b>"));
            let (experiment, load) = ("e".to_owned(), "slob sweep".to_owned());
            run.tags.extend(ExperimentMark { experiment, load, step, round: 1 }.tags());
            (run, Vec::new())
        });
        let found = ExperimentFound::of("An <evening>".to_owned(), cases + 1, runs.collect());
        let missing = NotMeasured { step: "scan".to_owned(), round: 1, why: "no <disk>".to_owned() };
        let mut page = Vec::new();
        experiment(&mut page, &found, &[missing], &Kept::File).unwrap();
        String::from_utf8(page).unwrap()
    }

    #[test]
    fn the_summary_comes_first_then_what_each_carries_then_lines_and_every_step() {
        let page = page_of(2);
        let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}\n{page}"));
        assert!(
            at("An &lt;evening&gt;</h1>") < at("class=\"opening\"") && page.matches("class=\"opening\"").count() == 5
        );
        assert!(at("What each combination sustains") < at("id=\"load-line-0\""));
        assert!(at("Not measured") < at("id=\"load-line-0\"") && at("id=\"load-line-0\"") < at("IOPS_RESULT"));
        assert!(!page.contains("<evening>") && !page.contains("<disk>") && !page.contains("p1<b>"));
        assert!(!page.contains("EXPERIMENT"), "which experiment it is is no column");
    }

    #[test]
    fn many_lines_are_several_charts() {
        let page = page_of(MAX_LINES + 1);
        assert!(page.contains("id=\"load-line-0\"") && page.contains("id=\"load-line-1\""));
        assert!(page.len() < super::super::MAX_BYTES, "{} bytes", page.len());
    }
}
