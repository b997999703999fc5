//! The chart that answers the question, as a file for a mail: what pages draw, once more, with its head, axes and text in one
//! drawing on a light ground.
//!
//! Why not a library that turns SVG into pixels: text is all it would add, and with it forty crates and a search for fonts that
//! a server does not have. A drawing here is rectangles, lines, dots and text; each of them is an element of SVG, and one path
//! for `tiny-skia`.

mod bars;
mod drawing;
mod font;
mod lines;
mod png;
mod sheet;
mod svg;
#[cfg(test)]
mod tests;

use std::io;

use self::bars::Mark;
use self::drawing::Drawing;
use self::sheet::Head;
use super::Reported;
use super::distribution::{self, Judged};
use super::{comparison, load_line, throughput};
use crate::comparison::headline;
use crate::facts::clock;
use analysis::{Compared, Opening, Overall, is_of_jobs};
use model::record::Run;

/// How the files that this makes are known again.
pub(super) const MADE_BY: [&str; 2] = [svg::MADE_BY, png::MADE_BY];

/// A chart as a picture.
#[derive(Debug, Clone)]
pub struct Picture(Drawing);

impl Picture {
    /// Of a run that varied connections throughput over them; of another with several steps latency against throughput, with limit and load line; of a single one the histogram of what
    /// it is judged by. `None` where the run has neither.
    pub fn of_run(reported: &Reported<'_>) -> Option<Self> {
        let Reported { run, findings } = *reported;
        // Jobs that ran at the same time are one load, and no curve leads from one to the other.
        let of_steps = || if is_of_jobs(run) { None } else { load_line::chart(run, findings, "") };
        let curve = throughput::over_connections(run, "").or_else(of_steps);
        let drawn = curve.and_then(|chart| lines::draw(&head(reported, &chart.frame.title), &chart));
        let histogram = || {
            let Judged { chart, limit, reached } =
                distribution::judged(run, &load_line::judged_by(run, findings), findings)?;
            let mark = |(at, name), is_limit| Mark { at, name, is_limit };
            let limit = limit.map(|limit| mark(limit, true));
            let marks: Vec<Mark> = limit.into_iter().chain(reached.map(|reached| mark(reached, false))).collect();
            bars::draw(&head(reported, &chart.frame.title), &chart, &marks)
        };
        drawn.or_else(histogram).map(Self)
    }

    /// Of runs with several steps their curves over each other; of single ones the histograms of the first load that they have
    /// in common. `None` where there is neither.
    pub fn of_comparison(compared: &Compared, runs: &[&Run]) -> Option<Self> {
        let head = |title: &str| {
            let verdicts = compared.pairs.iter().map(|pair| compared.verdict(pair));
            Head {
                title: format!("{title}: {}", compared.names.join(", ")),
                answer: verdicts.collect::<Vec<_>>().join(" "),
                is_doubtful: compared
                    .pairs
                    .iter()
                    .any(|pair| matches!(pair.overall(), Overall::Worse | Overall::Mixed)),
                under: headline(compared),
            }
        };
        let curves = load_line::overlay(&comparison::named(compared, runs));
        let drawn = curves.and_then(|chart| lines::draw(&head(&chart.frame.title), &chart));
        let histogram = || {
            let chart = comparison::first_histogram(compared, runs)?;
            bars::draw(&head(&chart.frame.title), &chart, &[])
        };
        drawn.or_else(histogram).map(Self)
    }

    /// As SVG.
    pub fn svg(&self) -> String {
        svg::svg(&self.0)
    }

    /// As PNG.
    ///
    /// # Errors
    /// If there is not enough memory for its pixels.
    pub fn png(&self) -> io::Result<Vec<u8>> {
        png::png(&self.0)
    }
}

fn head(reported: &Reported<'_>, title: &str) -> Head {
    let run = reported.run;
    let opening = Opening::of(run, reported.findings);
    let name = if run.name.is_empty() { &run.id } else { &run.name };
    let target = format!("{} {}", run.target.kind, run.target.address);
    let mut under =
        vec![format!("{} {}", run.started_at.0.strftime("%Y-%m-%d %H:%M:%S"), clock(run)), run.workload().to_string()];
    if !run.name.is_empty() {
        under.insert(0, run.id.clone());
    }
    if !target.trim().is_empty() {
        under.push(target.trim().to_owned());
    }
    Head {
        title: format!("{title}: {name}"),
        answer: opening.sentence(),
        is_doubtful: opening.doubt.is_some(),
        under: under.join(" · "),
    }
}
