//! The page of one run: the answer first, then what shows it, then what it rests on.

use maud::{Markup, html};
use serde_json::Value;

use super::chart::{Across, At, Drawn, First, Frame, Line, Lines, Mark, Quantity, Scale};
use super::over_time::OverTime;
use super::sheets::{Sheets, marked};
use super::{Reported, distribution, load_line, made, throughput};
use crate::facts::{clock, facts};
use crate::sections::{
    self, connections, connects, imported, network, operation_time, reported, requests, rounds, servers, together,
    transactions,
};
use crate::text::Detail;
use crate::{calibration, trace};
use analysis::{Finding, Opening, Severity, Vocabulary, is_host_load, is_on_servers, is_one_load};
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
struct Part {
    id: String,
    title: &'static str,
    content: Markup,
}

/// Collects parts and the data of their charts.
struct Parts<'a> {
    prefix: &'a str,
    parts: Vec<Part>,
    data: Vec<Value>,
}

impl Parts<'_> {
    /// Adds a part; nothing where it has neither a chart nor a table.
    fn add(&mut self, id: &str, title: &'static str, charts: Vec<Drawn>, sheets: Markup) {
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
        self.parts.push(Part { id: format!("{}part-{id}", self.prefix), title, content });
    }
}

/// Tells a run. `prefix` begins every id, so that several runs can stand in one page; `max_values` is for each line of a chart.
pub(super) fn parts(reported: &Reported<'_>, prefix: &str, max_values: usize) -> ReportedParts {
    let Reported { run, findings } = *reported;
    let mut parts = Parts { prefix, parts: Vec::new(), data: Vec::new() };
    let over_time = OverTime::of(run, prefix, max_values);
    let words = Vocabulary::of(run);
    let on_servers = is_on_servers(run);

    let question = Sheets::of(|sheets| {
        sections::check::write(sheets, run)?;
        sections::like::write(sheets, run)
    });
    parts.add("question", "What was asked", Vec::new(), question);

    let is_host = is_host_load(run);
    let profile = Sheets::of(|sheets| match words {
        _ if is_host => sections::host::write(sheets, run),
        Vocabulary::Sessions if run.imported.is_some() => {
            imported::throughput(sheets, run)?;
            imported::instances(sheets, run)
        }
        Vocabulary::Users => {
            transactions::rates(sheets, run)?;
            transactions::kinds(sheets, run)?;
            connects::write(sheets, run)
        }
        Vocabulary::Sessions if on_servers => servers::operations(sheets, run),
        Vocabulary::Sessions => {
            sections::throughput(sheets, run)?;
            sections::reads_and_processors(sheets, run)
        }
        Vocabulary::Requests => {
            together::write(sheets, run)?;
            connections::write(sheets, run)?;
            requests::throughput(sheets, run)?;
            requests::kinds(sheets, run)
        }
    });
    // Steps of different work make no line.
    let curve = load_line::draw(run, findings, prefix).filter(|_| !is_host);
    // A single load has no line.
    let over_connections = throughput::over_connections(run, prefix).and_then(Lines::draw);
    let title = match over_connections {
        Some(_) => "Connections",
        None if is_one_load(run) || is_host => "Load",
        None => "Load line",
    };
    parts.add("load", title, over_connections.into_iter().chain(curve).collect(), profile);

    let tables = Sheets::of(|sheets| sections::fleet::write(sheets, run, Detail::Full));
    parts.add("parts", "Parts", Vec::new(), tables);

    if over_time.has_seconds() {
        let charts = [
            over_time.throughput(),
            over_time.per_minute(),
            over_time.bytes(),
            over_time.latency(),
            over_time.heat(),
            over_time.heat_of_reads(),
        ];
        let table = Sheets::of(|sheets| rounds::write(sheets, run, Detail::Full));
        parts.add("time", "Over time", charts.into_iter().flatten().collect(), table);
    }

    let mut charts = distribution::waits(run, prefix);
    charts.extend(distribution::responses(run, prefix));
    charts.extend(distribution::traces(run, prefix));
    let tables = Sheets::of(|sheets| {
        sections::histograms(sheets, run, Detail::Full)?;
        if words == Vocabulary::Requests { requests::response_histograms(sheets, run, Detail::Full) } else { Ok(()) }
    });
    parts.add("histograms", "Wait histograms", charts, tables);

    let tables = Sheets::of(|sheets| sections::operations(sheets, run));
    parts.add("percentiles", "Percentiles", distribution::percentile_curve(run, prefix).into_iter().collect(), tables);

    let tables = Sheets::of(|sheets| {
        sections::waits(sheets, run)?;
        imported::waits_of_instances(sheets, run, Detail::Full)
    });
    parts.add("waits", "Wait events", over_time.waits().into_iter().chain(over_time.doing()).collect(), tables);

    let tables = Sheets::of(|sheets| {
        if words != Vocabulary::Requests && !is_host {
            sections::profile(sheets, run)?;
        }
        if on_servers {
            servers::log(sheets, run)?;
            servers::commit_latency(sheets, run)?;
            servers::locks(sheets, run)?;
            operation_time::of_run(sheets, run)?;
            servers::shape(sheets, run)?;
            servers::sessions(sheets, run)?;
        }
        servers::own_reports(sheets, run, Detail::Full)
    });
    parts.add("profile", "Load profile", Vec::new(), tables);

    let tables = Sheets::of(|sheets| {
        if on_servers { servers::blocks(sheets, run) } else { sections::caches(sheets, run) }?;
        sections::flash::write(sheets, run)?;
        sections::cache_sizes::write(sheets, run)
    });
    let charts = distribution::sources(run, prefix).into_iter().chain(distribution::tiers(run, findings, prefix));
    let charts = charts.chain(hits_over_cache_sizes(run, prefix));
    parts.add("tiers", "Cache tiers", charts.collect(), tables);

    let tables = Sheets::of(|sheets| network::write(sheets, run));
    parts.add("network", "Both ends", over_time.both_ends(), tables);

    let tables = Sheets::of(|sheets| sections::channels::write(sheets, run, Detail::Full));
    parts.add("channels", "Paths and members", Vec::new(), tables);

    let tables = Sheets::of(|sheets| servers::nodes(sheets, run));
    parts.add("nodes", "Nodes", distribution::nodes(run, prefix).into_iter().collect(), tables);

    let charts = over_time.processors().into_iter().chain(over_time.devices()).collect();
    let tables = Sheets::of(|sheets| {
        sections::devices(sheets, run)?;
        sections::whole_machine(sheets, run)?;
        if on_servers {
            servers::processors(sheets, run)?
        }
        for step in &run.steps {
            let of_what = if run.steps.len() > 1 { format!(", in {}", step.label) } else { String::new() };
            trace::write(sheets, &step.traces, &of_what)?;
        }
        Ok(())
    });
    parts.add("system", "Operating system", charts, tables);

    if words == Vocabulary::Requests {
        let tables = Sheets::of(|sheets| requests::generator(sheets, run, Detail::Full));
        parts.add("generator", "Load generator", Vec::new(), tables);
    }
    let tables = Sheets::of(|sheets| {
        reported::tables(sheets, run, Detail::Full)?;
        reported::snapshots(sheets, run)
    });
    parts.add("reported", "Sections of the source", Vec::new(), tables);
    let tables = Sheets::of(|sheets| {
        imported::reported_figures(sheets, run, Detail::Full)?;
        imported::not_understood(sheets, run, Detail::Full)
    });
    parts.add("source", "As the source reports", over_time.reported_charts(), tables);
    parts.add("configuration", "Configuration and environment", Vec::new(), configuration(run));
    parts.add("made", "How each number was made", Vec::new(), made::words(run));

    let Parts { parts, data, .. } = parts;
    let article = html! {
        article.run aria-labelledby=(format!("{prefix}run")) {
            h1 #(format!("{prefix}run")) { @if run.name.is_empty() { (run.id) } @else { (run.name) } }
            (under_title(run))
            (opening(reported))
            (calibrated(run))
            (noticed(findings))
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
        note: "Layer: engine. By how soon the blocks of touches drawn at random were touched again, for a cache that replaces what \
               was used least recently and is warm. A line ends where the load was too short to say more."
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
    let target = format!("{} {}", run.target.kind, run.target.address);
    let target = target.trim();
    html! {
        p.under-title {
            @if !run.name.is_empty() { (run.id) " · " }
            time datetime=(run.started_at.0.to_string()) { (run.started_at.0.strftime("%Y-%m-%d %H:%M:%S")) " " (clock(run)) }
            " · " (run.workload())
            @if !target.is_empty() { " on " (target) }
            " · " (outcome)
            @for (name, value) in &run.tags { " " span.tag { (name) "=" (value) } }
        }
    }
}

/// What a manager can repeat, or why nothing may be.
fn opening(reported: &Reported<'_>) -> Markup {
    let opening = Opening::of(reported.run, reported.findings);
    html! { p.opening.doubtful[opening.doubt.is_some()] { (marked(&opening.sentence())) } }
}

fn calibrated(run: &Run) -> Markup {
    let answers = calibration::answers(run);
    html! {
        @if !answers.is_empty() {
            dl.facts { @for (name, text) in &answers { dt { (name) } dd { (text) } } }
        }
    }
}

fn noticed(findings: &[Finding]) -> Markup {
    // A verdict is the headline; here it is only with what to do about it.
    let is_headline = |finding: &&Finding| matches!(finding, Finding::Verdict(_)) && finding.advice().is_none();
    let findings: Vec<&Finding> = findings.iter().filter(|finding| !is_headline(finding)).collect();
    html! {
        @if !findings.is_empty() {
            section.noticed {
                h2 { "What was noticed" }
                ul {
                    @for finding in findings {
                        @let word = match finding.severity() {
                            Severity::Doubt => "doubt",
                            Severity::Answer => "answer",
                            Severity::Note => "note",
                        };
                        li.(word) {
                            strong { (word) } " " (marked(&finding.sentence()))
                            @if let Some(advice) = finding.advice() { p.advice { (marked(&advice)) } }
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
