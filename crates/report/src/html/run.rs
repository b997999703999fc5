//! The page of one run: the answer first, then what shows it, then what it rests on.

use maud::{Markup, html};
use serde_json::Value;

use super::chart::{Across, At, Drawn, First, Frame, Line, Lines, Mark, Quantity, Scale};
use super::over_time::OverTime;
use super::{Reported, Sheets, distribution, load_line, made, map, marked, stalls, time_parts};
use crate::calibration;
use crate::facts::{clock, facts};
use crate::first_screen::mark;
use crate::sections::list::{About, Part};
use crate::text::Detail;
use analysis::{Finding, FirstScreen, LimitAnswer, Opening, Severity, is_host_load, is_one_load};
use model::record::{Outcome, Run, Step};
use model::units::Bytes;

/// Labels below the chart of the hit ratio over the size of the cache.
const CACHE_LABELS: usize = 6;
/// Steps that are drawn there, the last ones: the curve is one of what was asked for, and hardly one of the load.
const MAX_CACHE_LINES: usize = 4;

/// A run as markup, and what the script needs of its charts.
pub(super) struct ReportedParts {
    pub(super) article: Markup,
    pub(super) data: Vec<Value>,
}

/// A part of the page: its heading, and what stands under it.
struct Filled {
    id: String,
    title: &'static str,
    content: Markup,
}

/// Collects parts and the data of their charts.
struct Parts<'a> {
    prefix: &'a str,
    /// The chart that shows the answer: it stands before the findings.
    first: Option<Drawn>,
    parts: Vec<Filled>,
    data: Vec<Value>,
}

impl Parts<'_> {
    /// Adds a part; nothing where it has neither a chart nor a table.
    fn add(&mut self, id: &str, title: &'static str, charts: Vec<Drawn>, sheets: Markup) {
        let mut charts = charts;
        if self.first.is_none() && FIRST.contains(&id) && !charts.is_empty() {
            self.first = Some(charts.remove(0));
        }
        if charts.is_empty() && sheets.0.is_empty() {
            return;
        }
        let (figures, data): (Vec<Markup>, Vec<Value>) =
            charts.into_iter().map(|drawn| (drawn.figure, drawn.data)).unzip();
        self.data.extend(data);
        let content = html! {
            @for figure in &figures { (figure) }
            (sheets)
        };
        self.parts.push(Filled { id: format!("{}part-{id}", self.prefix), title, content });
    }
}

/// Parts of which one has the chart that shows the answer.
const FIRST: [&str; 3] = ["load", "histograms", "time"];

/// Tells a run. `prefix` begins every id, so that several runs can stand in one page; `max_values` is for each line of a chart.
pub(super) fn parts(reported: &Reported<'_>, prefix: &str, max_values: usize) -> ReportedParts {
    let Reported { run, findings, windows } = *reported;
    let mut parts = Parts { prefix, first: None, parts: Vec::new(), data: Vec::new() };
    let over_time = OverTime::of(run, prefix, max_values);

    let about = About::new(run);
    let sheets = |part: Part| Sheets::of(|sheets| about.part(sheets, part));
    parts.add("question", "Requested load", Vec::new(), sheets(Part::Question));

    let is_host = is_host_load(run);
    // Steps of different work make no line.
    let is_map = run.load.map().is_some();
    let curve = load_line::draw(run, findings, prefix).filter(|_| !is_host && !is_map);
    let curve = map::chart(run, prefix, windows).and_then(Lines::draw).or(curve);
    // A single load has no line.
    let over_connections = super::over_connections(run, prefix).and_then(Lines::draw);
    let title = match over_connections {
        Some(_) => "Connections",
        None if is_map => "Map",
        None if is_one_load(run) || is_host => "Load",
        None => "Load line",
    };
    let parts_of_time = time_parts::over_load(run, prefix).filter(|_| !is_map);
    let charts = over_connections.into_iter().chain(curve).chain(parts_of_time).collect();
    parts.add("load", title, charts, sheets(Part::Load));

    parts.add("parts", "Parts", Vec::new(), sheets(Part::Parts));

    if over_time.has_seconds() {
        let charts = [
            over_time.throughput(),
            over_time.per_minute(),
            over_time.bytes(),
            over_time.latency(),
            over_time.heat(),
            over_time.heat_of_reads(),
            time_parts::over_time(run, findings, prefix, max_values),
            stalls::over_time(run, prefix, max_values),
        ];
        parts.add("time", "Over time", charts.into_iter().flatten().collect(), sheets(Part::Time));
    }

    let mut charts = distribution::waits(run, prefix);
    charts.extend(distribution::responses(run, prefix));
    charts.extend(distribution::traces(run, prefix));
    parts.add("histograms", "Wait histograms", charts, sheets(Part::Histograms));

    let curve = distribution::percentile_curve(run, prefix).into_iter().collect();
    parts.add("percentiles", "Percentiles", curve, sheets(Part::Percentiles));

    let charts = over_time.waits().into_iter().chain(over_time.doing()).collect();
    parts.add("waits", "Wait events", charts, sheets(Part::Waits));

    parts.add("profile", "Load profile", Vec::new(), sheets(Part::Profile));

    let charts = distribution::sources(run, prefix).into_iter().chain(distribution::tiers(run, findings, prefix));
    let charts = charts.chain(hits_over_cache_sizes(run, prefix));
    parts.add("tiers", "Cache tiers", charts.collect(), sheets(Part::Tiers));

    parts.add("network", "Both ends", over_time.both_ends(), sheets(Part::Network));
    parts.add("channels", "Paths and members", Vec::new(), sheets(Part::Channels));
    parts.add("nodes", "Nodes", distribution::nodes(run, prefix).into_iter().collect(), sheets(Part::Nodes));

    let charts = over_time.processors().into_iter().chain(over_time.devices()).collect();
    let tables = html! { (sheets(Part::Devices)) (sheets(Part::Processors)) (sheets(Part::Traces)) };
    parts.add("system", "Operating system", charts, tables);

    parts.add("generator", "Load generator", Vec::new(), sheets(Part::Generator));
    parts.add("reported", "Sections of the source", Vec::new(), sheets(Part::Reported));
    parts.add("source", "As the source reports", over_time.reported_charts(), sheets(Part::Source));
    parts.add("configuration", "Configuration and environment", Vec::new(), configuration(run));
    parts.add("made", "How each number was made", Vec::new(), made::words(run));

    let Parts { first, parts, mut data, .. } = parts;
    let first = first.map(|drawn| {
        data.insert(0, drawn.data);
        drawn.figure
    });
    let opening = Opening::of(run, findings);
    let answer = FirstScreen::with(&opening, run, findings);
    let article = html! {
        article.run aria-labelledby=(format!("{prefix}run")) {
            h1.doubtful[answer.is_doubtful] #(format!("{prefix}run")) { (marked(&answer.headline())) }
            (under_title(run))
            (tiles(&answer))
            (lines(&answer))
            (calibrated(run))
            @if let Some(figure) = &first { section { h2.hidden { "The answer as a chart" } (figure) } }
            (noticed(findings, &opening))
            nav.parts aria-label="Parts of this report" {
                @for part in &parts { a href=(format!("#{}", part.id)) { (part.title) } }
            }
            @for part in &parts {
                section #(part.id) {
                    h2 { (part.title) }
                    (part.content)
                }
            }
        }
    };
    ReportedParts { article, data }
}

/// Draws the hit ratio of the buffer cache over its size, a curve for each step; `None` where there is none.
fn hits_over_cache_sizes(run: &Run, prefix: &str) -> Option<Drawn> {
    let steps: Vec<&Step> = run.steps.iter().filter(|step| step.cache_curve.is_some()).collect();
    let line = |step: &&Step| {
        let points = step.cache_curve.iter().flat_map(|curve| &curve.points);
        let points = points.map(|point| (mebibytes(point.cache_bytes), point.hit_ratio * 100.0)).collect();
        Line { name: step.label.clone(), pieces: vec![points], dots: true }
    };
    let lines: Vec<Line> = steps.iter().skip(steps.len().saturating_sub(MAX_CACHE_LINES)).map(line).collect();
    let most = lines.iter().flat_map(|line| line.pieces.iter().flatten().map(|(x, _)| *x)).fold(0.0, f64::max);
    let scale = Scale::from_zero(std::iter::once(most))?;
    let own = run
        .target
        .cache_bytes
        .map(|bytes| Mark { at: At::X(mebibytes(bytes)), name: format!("this run: {}", Bytes(bytes)) });
    let frame = Frame {
        id: format!("{prefix}cache-sizes"),
        title: "Hit ratio over the size of the buffer cache".to_owned(),
        note: "Layer: engine. Estimated from how soon randomly drawn blocks were touched again, for a warm cache with LRU replacement. \
               A line ends where the load was too short to say more."
            .to_owned(),
        y_title: "hits, % of logical reads".to_owned(),
        y_quantity: Quantity::Percent,
        first: First::Linear,
        words: "The table below has the same in figures.".to_owned(),
    };
    let across = Across {
        title: "buffer cache (--cache)".to_owned(),
        quantity: Quantity::Mebibytes,
        range: (0.0, most * 1.03),
        ticks: scale.ticks(CACHE_LABELS),
    };
    Lines { frame, across, lines, bands: Vec::new(), marks: own.into_iter().collect(), labels: Vec::new() }.draw()
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1_u32 << 20)
}

fn under_title(run: &Run) -> Markup {
    let outcome = match &run.outcome {
        Outcome::Unfinished => "not finished",
        Outcome::Completed => "completed",
        Outcome::Interrupted => "ended early",
        Outcome::Failed { .. } => "failed",
    };
    // Another program may not have reported what it measured.
    let target = format!("{} {}", run.target.kind_name(), run.target.address);
    let target = target.trim();
    html! {
        p.under-title {
            @if !run.name.is_empty() { (run.name) " · " }
            (run.id) " · "
            time datetime=(run.started_at.0.to_string()) { (run.started_at.0.strftime("%Y-%m-%d %H:%M:%S")) " " (clock(run)) }
            " · " (run.workload())
            @if !target.is_empty() { " on " (target) }
            " · " (outcome)
            @for (name, value) in &run.tags { " " span.tag { (name) "=" (value) } }
        }
    }
}

/// Rate, latency, limit and headroom.
fn tiles(answer: &FirstScreen) -> Markup {
    html! {
        @if !answer.tiles.is_empty() {
            dl.tiles {
                @for tile in &answer.tiles {
                    div { dt { (tile.name) } dd { strong { (tile.value) } " " span { (marked(&tile.note)) } } }
                }
            }
        }
    }
}

/// The other lines of the answer, and the limits that were requested.
fn lines(answer: &FirstScreen) -> Markup {
    let named = [
        ("Warning", &answer.before),
        ("Limited", &answer.limited_by),
        ("Expected", &answer.expected),
        ("Plan for", &answer.plan_for),
        ("Waits", &answer.waits),
        ("Stalls", &answer.stalls),
        ("Next", &answer.next),
    ];
    let named: Vec<(&str, &String)> =
        named.into_iter().filter_map(|(name, text)| Some((name, text.as_ref()?))).collect();
    html! {
        @if !answer.limits.is_empty() {
            ul.limits {
                @for limit in &answer.limits {
                    li.met[limit.answer == LimitAnswer::Yes].exceeded[limit.answer == LimitAnswer::No] {
                        strong { (mark(limit.answer)) } " " (marked(&limit.what)) ": "
                        (limit.measured.as_deref().unwrap_or("not known")) ", limit " (limit.limit)
                        @if let Some(because) = &limit.because { " (" (because) ")" }
                    }
                }
            }
        }
        @if !named.is_empty() || !answer.also.is_empty() {
            dl.facts.lines {
                @for (name, text) in named { dt { (name) } dd { (marked(text)) } }
                @for text in &answer.also { dt { "Also" } dd { (marked(text)) } }
            }
        }
    }
}

fn calibrated(run: &Run) -> Markup {
    let answers = calibration::answers(run);
    html! {
        @if !answers.is_empty() {
            dl.facts { @for (name, text) in &answers { dt { (name) } dd { (text) } } }
        }
    }
}

fn noticed(findings: &[Finding], opening: &Opening) -> Markup {
    // A verdict is the headline; here it is only with what to do about it.
    let is_headline = |finding: &&Finding| matches!(finding, Finding::Verdict(_)) && finding.advice().is_none();
    let findings: Vec<&Finding> = findings.iter().filter(|finding| !is_headline(finding)).collect();
    html! {
        @if !findings.is_empty() {
            section.noticed {
                h2 { "Findings" }
                ul {
                    @for finding in findings {
                        @let word = match finding.severity() {
                            Severity::Doubt => "warning",
                            Severity::Answer => "answer",
                            Severity::Note => "note",
                        };
                        li.(word) {
                            strong { (word) } " " (marked(&finding.sentence()))
                            @if let Some(advice) = opening.advice(finding) { p.advice { (marked(&advice)) } }
                        }
                    }
                }
            }
        }
    }
}

fn configuration(run: &Run) -> Markup {
    let facts = facts(run, Detail::Full);
    html! {
        dl.facts { @for (name, text) in &facts { dt { (name) } dd { (text) } } }
        @if !run.parameters.is_empty() {
            div.sheet tabindex="0" role="region" aria-label="Parameters" {
                table {
                    caption { "Parameters in force" }
                    thead { tr { th.key scope="col" { "parameter" } th.key scope="col" { "value" } } }
                    tbody {
                        @for (name, value) in &run.parameters { tr { th scope="row" { (name) } td.text { (value) } } }
                    }
                }
            }
        }
    }
}
