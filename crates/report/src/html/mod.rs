//! Pages for a browser: one file that carries everything it needs, and loads nothing.
//!
//! A page reads well without its script, on paper too: charts are drawn here, as SVG between labels in HTML, and the script
//! only adds values under the pointer and series that can be put away.

mod chart;
mod comparison;
mod distribution;
mod experiment;
mod history;
mod load_line;
mod made;
mod map;
mod over_time;
mod picture;
mod run;
mod stalls;
pub(super) mod table;
mod time_parts;
mod trend;

use std::borrow::Cow;
use std::io::{self, Write};

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;
use sha2::{Digest, Sha256};

pub use comparison::comparison;
pub use experiment::experiment;
pub use history::history;
pub use picture::Picture;
pub use trend::trend;

use crate::grid::Grid;
use crate::interference::{headline, write};
use crate::paper::Paper;
use crate::words::DOUBTED;
use analysis::{ConnectionSweep, Counted, Figures, Finding, Interference, LoadBeside, Series};
use chart::{Across, Drawn, First, Frame, Line, Lines, Quantity, Scale};
use distribution::{Heights, Named, bars, percentiles};
use load_line::{rate_name, rate_of};
use model::record::{Histogram, Run, Step};
use model::shown::shown_lines;
use model::units::group_thousands;

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
    /// Reads and writes per second of a database's windows, which a map shows as dots; empty without a demand.
    pub windows: &'a [(f64, f64)],
}

impl<'a> Reported<'a> {
    /// Without a demand.
    pub fn new(run: &'a Run, findings: &'a [Finding]) -> Self {
        Self { run, findings, windows: &[] }
    }
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

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
const FOLLOW_SCRIPT: &str = include_str!("follow.js");
const GENERATOR: &str = concat!("plimsoll ", env!("CARGO_PKG_VERSION"));

/// Whether the beginning of a file is that of a page or a picture which this program, in any version, wrote.
pub fn is_ours(beginning: &str) -> bool {
    let is_page = beginning.contains("<meta name=\"generator\" content=\"plimsoll ");
    is_page || picture::MADE_BY.iter().any(|mark| beginning.contains(mark))
}

/// Where a page is read.
#[derive(Debug, Clone, Default)]
pub enum Kept<'a> {
    /// In a file of its own.
    #[default]
    File,
    /// On the local server, with a way back to the list of runs.
    Served {
        /// Set while the run goes on.
        follow: Option<Follow<'a>>,
    },
}

/// How a page keeps up with a run that goes on.
#[derive(Debug, Clone, Copy)]
pub struct Follow<'a> {
    /// Where the page is read again, on the same server.
    pub path: &'a str,
    /// Seconds between two looks.
    pub seconds: u32,
}

/// What stands in the head of a page.
#[derive(Debug)]
pub struct Head<'a> {
    /// Title in the browser's tab.
    pub title: &'a str,
    /// Where it is read.
    pub kept: &'a Kept<'a>,
}

/// Our scripts as a policy names them. A script that somebody's text brought into a page has another hash, and does not run.
static HASHES: LazyLock<[String; 2]> = LazyLock::new(|| [SCRIPT, FOLLOW_SCRIPT].map(hash));

fn hash(script: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(script)))
}

/// What a browser may load for a page: style that stands in it, the scripts of this program and no others. A page of the server
/// may ask that server again, and send its own forms there.
pub fn policy(kept: &Kept<'_>) -> String {
    let [own, follow] = &*HASHES;
    let (place, scripts) = match kept {
        Kept::File => ("'none'", own.clone()),
        Kept::Served { .. } => ("'self'", format!("{own} {follow}")),
    };
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src {scripts}; connect-src {place}; form-action {place}; \
         base-uri 'none'"
    )
}

/// A whole document around `body`, which becomes the content of its `main`.
pub fn page(head: &Head<'_>, body: &Markup) -> String {
    let (is_served, follow) = match head.kept {
        Kept::File => (false, None),
        Kept::Served { follow } => (true, *follow),
    };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy(head.kept));
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content=(GENERATOR);
                meta name="color-scheme" content="light dark";
                title { (head.title) " - Plimsoll" }
                style { (PreEscaped(STYLE)) }
            }
            body data-follow=[follow.map(|follow| follow.path)] data-follow-seconds=[follow.map(|it| it.seconds)] {
                a.skip href="#content" { "To the content" }
                header.top {
                    @if is_served { nav { a href="/" { "All runs" } } }
                    span.brand { "Plimsoll" }
                }
                main #content { (body) }
                script { (PreEscaped(SCRIPT)) }
                @if follow.is_some() { script { (PreEscaped(FOLLOW_SCRIPT)) } }
            }
        }
    };
    shown_lines(&page.into_string()).into_owned()
}

/// Cells longer than this may be broken, so that the columns beside them stay in sight.
const LONG_CELL: usize = 40;

/// A sentence for a page: what stands between backticks is code there.
fn marked(text: &str) -> Markup {
    html! {
        @for (at, part) in text.split('`').enumerate() {
            @if at % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// Takes tables and remarks, and gives them back as markup.
#[derive(Default)]
struct Sheets {
    parts: Vec<Markup>,
}

impl Sheets {
    /// What `fill` writes.
    fn of(fill: impl FnOnce(&mut Self) -> io::Result<()>) -> Markup {
        let mut sheets = Self::default();
        fill(&mut sheets).expect("memory takes every part");
        html! { @for part in &sheets.parts { (part) } }
    }

    fn push(&mut self, part: Markup) {
        self.parts.push(part);
    }
}

impl Paper for Sheets {
    fn title(&mut self, title: &str) -> io::Result<()> {
        self.push(html! { h3 { (marked(title)) } });
        Ok(())
    }

    fn grid(&mut self, grid: &Grid) -> io::Result<()> {
        self.push(table(None, grid));
        Ok(())
    }

    fn next_grid(&mut self, caption: &str, grid: &Grid) -> io::Result<()> {
        self.push(table(Some(caption), grid));
        Ok(())
    }

    fn table(&mut self, title: &str, grid: &Grid) -> io::Result<()> {
        let grid = grid.with_known_columns();
        if !grid.is_empty() {
            self.push(table(Some(title), &grid));
        }
        Ok(())
    }

    fn aside(&mut self, text: &str) -> io::Result<()> {
        self.remark(text)
    }

    fn remark(&mut self, text: &str) -> io::Result<()> {
        self.push(html! { p.remark { (marked(text)) } });
        Ok(())
    }
}

/// The box can be scrolled, by keyboard too, where the table is wider than the page.
fn table(caption: Option<&str>, grid: &Grid) -> Markup {
    let keys = grid.keys();
    html! {
        div.sheet tabindex="0" role="region" aria-label=[caption] {
            table {
                @if let Some(caption) = caption { caption { (marked(caption)) } }
                thead {
                    tr { @for (at, name) in grid.header().iter().enumerate() { th scope="col" .key[at < keys] { (name) } } }
                }
                tbody {
                    @for row in grid.rows() {
                        tr {
                            @for (at, cell) in row.iter().enumerate() {
                                @let is_long = cell.chars().count() > LONG_CELL;
                                @if at < keys { th scope="row" { (cell) } }
                                @else if let Some(value) = cell.strip_suffix(DOUBTED) { td { s title="doubted: see the notes" { (value) } } }
                                @else { td.text[is_long] { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Writes what loads cost each other as one page.
///
/// # Errors
/// If `out` fails.
pub fn interference(out: &mut dyn Write, found: &Interference, kept: &Kept<'_>) -> io::Result<()> {
    let (figures, data): (Vec<Markup>, Vec<Value>) =
        found.loads.iter().flat_map(charts).map(|drawn| (drawn.figure, drawn.data)).unzip();
    let sheets = Sheets::of(|sheets| write(sheets, found));
    let is_worse = found.loads.iter().any(|load| load.compared.has_regression());
    let body = html! {
        article.run aria-labelledby="beside" {
            h1 #beside { "Loads beside each other" }
            p.under-title { (marked(&headline(found))) }
            p.opening.doubtful[is_worse] { (marked(&found.sentence())) }
            section.sheets { h2 { "In figures" } (sheets) }
            @if !figures.is_empty() {
                section { h2 { "Alone and together" } @for figure in &figures { (figure) } }
            }
        }
        (for_script(&data))
    };
    let title = format!("Loads beside each other, {}", found.group);
    out.write_all(page(&Head { title: &title, kept }, &body).as_bytes())
}

/// The response times of a load alone and together, over each other.
fn charts(load: &LoadBeside) -> Vec<Drawn> {
    let series: Vec<Named<'_>> = [("alone", 0), ("together", 1)]
        .map(|(name, side): (&str, usize)| {
            let mut all = Histogram::default();
            load.runs[side]
                .steps
                .iter()
                .filter_map(|step| Figures(step).response())
                .for_each(|times| all.merge(&times));
            Named { name: name.to_owned(), times: Cow::Owned(all) }
        })
        .into();
    if series.iter().any(|named| named.times.count() == 0) {
        return Vec::new();
    }
    let LoadBeside { letter, command, .. } = load;
    let (number, note) =
        (letter.to_lowercase(), format!("Response times of `{command}`, in the measured windows of all rounds."));
    let title = format!("Percentiles of {letter}");
    let curves = percentiles(format!("percentiles-{number}"), &title, &note, &series);
    let title = format!("Histogram of {letter}");
    let histogram = bars(format!("histogram-{number}"), &title, &note, "operations", Heights::Shares, &series);
    curves.into_iter().chain(histogram.draw()).collect()
}

// How much is carried, over what was varied: connections to a server, or how many wait at the same time.

/// Labels below the chart.
const LABELS: usize = 8;

/// Throughput over connections; `None` of a run that did not vary them.
fn over_connections(run: &Run, prefix: &str) -> Option<Lines> {
    let found = ConnectionSweep::of(run)?;
    let (unit, scale) = match found.counted {
        Counted::Requests => (rate_name(run), 1.0),
        Counted::Bytes => ("MB/s (layer: client)", 1e6),
    };
    let curve = found.points.iter().map(|point| (f64::from(point.each), point.measured.per_s / scale)).collect();
    let lines = vec![Line { name: "throughput".to_owned(), pieces: vec![curve], dots: true }];
    let frame = Frame {
        id: format!("{prefix}connections"),
        title: "Throughput over connections".to_owned(),
        note: format!(
            "With {} requests outstanding over all connections; medians of undisturbed seconds.",
            group_thousands(found.depth.into())
        ),
        y_title: unit.to_owned(),
        y_quantity: Quantity::PerSecond,
        first: First::Linear,
        words: format!("{}.", capital(found.phrase())),
    };
    drawn(frame, "connections of each thread to each path", lines)
}

/// Throughput of several runs over how many requests or sessions each had at the same time; `None` where none has two loads.
fn over_load(runs: &[(&Run, &str)]) -> Option<Lines> {
    let (mut lines, mut words) = (Vec::new(), Vec::new());
    for (run, name) in runs {
        for series in Series::of(run).iter().filter(|series| series.is_closed_loop()) {
            let curve = mean_by_load(run, &series.steps);
            let most = curve.iter().copied().reduce(|one, other| if other.1 > one.1 { other } else { one });
            let name = if series.name.is_empty() { (*name).to_owned() } else { format!("{name}, {}", series.name) };
            let said = most.map(|(load, rate)| format!("{name}: at most {}/s, with {load}", group_thousands(rate)));
            words.extend(said);
            lines.push(Line { name, pieces: vec![curve], dots: true });
        }
    }
    if lines.iter().all(|line| line.pieces[0].len() < 2) {
        return None;
    }
    let mut rates: Vec<&str> = runs.iter().map(|(run, _)| rate_name(run)).collect();
    rates.dedup();
    let slots = Series::of(runs.first()?.0).first().map_or("sessions", |series| series.words.slots());
    let frame = Frame {
        id: "throughput".to_owned(),
        title: format!("Throughput over {slots}"),
        note: "Means over each measured window, and over the repeats of a load. Higher is better.".to_owned(),
        y_title: rates.join(" or "),
        y_quantity: Quantity::PerSecond,
        first: First::Linear,
        words: format!("{}.", words.join("; ")),
    };
    drawn(frame, slots, lines)
}

/// Load and mean rate of the steps with that load, least load first.
fn mean_by_load(run: &Run, steps: &[&Step]) -> Vec<(f64, f64)> {
    let of_load = |repeats: &[&Step]| {
        let rates: Vec<f64> = repeats.iter().filter_map(|step| rate_of(run, step)).collect();
        let load = repeats.first()?.load.sessions?;
        (!rates.is_empty()).then(|| (f64::from(load), rates.iter().sum::<f64>() / rates.len() as f64))
    };
    steps.chunk_by(|one, other| one.load.sessions == other.load.sessions).filter_map(of_load).collect()
}

fn drawn(frame: Frame, across: &str, lines: Vec<Line>) -> Option<Lines> {
    let most = lines.iter().flat_map(|line| line.pieces.iter().flatten().map(|(x, _)| *x)).fold(0.0, f64::max);
    let across = Across {
        title: across.to_owned(),
        quantity: Quantity::Count,
        range: (0.0, most * 1.06),
        ticks: Scale::from_zero(std::iter::once(most))?.ticks(LABELS),
    };
    Some(Lines { frame, across, lines, bands: Vec::new(), marks: Vec::new(), labels: Vec::new() })
}

fn capital(mut words: String) -> String {
    if let Some(first) = words.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    words
}

#[cfg(test)]
mod tests;
