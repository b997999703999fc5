//! Latency against throughput, with the load line, the knee and the limit.

use super::chart::{Across, At, Drawn, First, Frame, Line, Lines, Mark, Quantity, Scale};
use analysis::check::first_limit;
use analysis::{
    Figures, Finding, Knee, LatencyTarget, Limit, Series, StepLine, Vocabulary, is_on_servers, is_timed_from_sent,
    operations_are_requests,
};
use model::record::{Metric, Run, Step};
use model::units::group_thousands;

/// Labels below the chart.
const LABELS: usize = 7;
/// Series beyond which only the judged quantile is drawn of each.
const FEW_SERIES: usize = 2;
/// Share of the axis within which marks are one.
const NEAR: f64 = 0.02;
/// Times the largest value beyond which a limit is not drawn on a page, whose axis begins at zero.
const MAX_LIMIT_ABOVE: f64 = 4.0;

/// The rate that a step is placed at, and its name: what storage was asked for, or on a server, which does not report that of each
/// operation, what was done.
pub(super) fn rate_of(run: &Run, step: &Step) -> Option<f64> {
    let figures = Figures(step);
    if is_operations(run) { figures.operations_per_s() } else { figures.value(Metric::Reads) }
}

fn is_operations(run: &Run) -> bool {
    operations_are_requests(run)
        || is_on_servers(run)
        || run.steps.iter().any(|step| step.load.rate_operations_per_s.is_some())
}

pub(super) fn rate_name(run: &Run) -> &'static str {
    if Vocabulary::of(run) == Vocabulary::Users {
        return "transactions/s (layer: client)";
    }
    match (operations_are_requests(run), is_operations(run)) {
        (true, _) => "requests/s (layer: client)",
        (false, true) => "operations/s (layer: client)",
        (false, false) => "physical reads/s (layer: engine)",
    }
}

/// The load of a step: its rate, or else its sessions.
fn load(step: &Step) -> (Option<u64>, Option<u32>) {
    match step.load.rate_operations_per_s {
        Some(rate) => (Some(rate.to_bits()), None),
        None => (None, step.load.sessions),
    }
}

/// The points of a series, which are in order of load. Repeats of one load are points of one place: the curve leads through the
/// one in the middle, and the others stand by themselves. The curve comes first.
fn pieces(steps: &[&Step], point: &dyn Fn(&Step) -> Option<(f64, f64)>) -> Vec<Vec<(f64, f64)>> {
    let (mut curve, mut alone) = (Vec::new(), Vec::new());
    for repeats in steps.chunk_by(|one, other| load(one) == load(other)) {
        let mut points: Vec<(f64, f64)> = repeats.iter().filter_map(|step| point(step)).collect();
        points.sort_by(|one, other| one.1.total_cmp(&other.1));
        if points.is_empty() {
            continue;
        }
        curve.push(points.remove(points.len() / 2));
        alone.extend(points.into_iter().map(|point| vec![point]));
    }
    [vec![curve], alone].concat()
}

/// What is said of them where there are any.
fn repeats_words<'a>(mut lines: impl Iterator<Item = &'a Line>) -> &'static str {
    let has_repeats = lines.any(|line| line.pieces.len() > 1);
    if has_repeats { " Repeats of a load are points by themselves; the line leads through the middle one." } else { "" }
}

/// Draws every series of the run; `None` with fewer than two steps to join.
pub(super) fn draw(run: &Run, findings: &[Finding], prefix: &str) -> Option<Drawn> {
    let mut chart = chart(run, findings, prefix)?;
    let largest = chart.lines.iter().flat_map(|line| line.pieces.iter().flatten().map(|(_, y)| *y)).fold(0.0, f64::max);
    // A limit far above everything would press the curve flat.
    chart.marks.retain(|mark| !matches!(mark.at, At::Y(limit) if limit > largest * MAX_LIMIT_ABOVE));
    chart.draw()
}

/// Every series of the run, with its marks; `None` with fewer than two steps to join.
pub(super) fn chart(run: &Run, findings: &[Finding], prefix: &str) -> Option<Lines> {
    let target = judged_by(run, findings);
    let subject = target.subject.clone()?;
    let all = Series::of(run);
    let loads = |series: &Series<'_>| series.steps.chunk_by(|one, other| load(one) == load(other)).count();
    if all.iter().map(loads).max().unwrap_or(0) < 2 {
        return None;
    }
    let quantile = target.quantile_name();
    let common = all.first().map(|series| series.common.clone()).unwrap_or_default();
    let mut lines = Vec::new();
    let mut labels = Vec::new();
    for series in &all {
        let named =
            |what: &str| if series.name.is_empty() { what.to_owned() } else { format!("{what}, {}", series.name) };
        let along = |value: &dyn Fn(&Step) -> Option<f64>| {
            pieces(&series.steps, &|step| Some((rate_of(run, step)?, value(step)?)))
        };
        let judged = |step: &Step| subject.times(step)?.quantile_ns(target.quantile).map(|ns| ns as f64 / 1e3);
        let mean = |step: &Step| subject.times(step)?.mean_ns().map(|ns| ns / 1e3);
        lines.push(Line { name: named(&quantile), pieces: along(&judged), dots: true });
        if all.len() <= FEW_SERIES {
            lines.push(Line { name: named("mean"), pieces: along(&mean), dots: true });
        }
        let label = |step: &&Step| Some((rate_of(run, step)?, judged(step)?, step.label.clone()));
        labels.extend(series.steps.iter().filter_map(label));
    }
    let marks = marks(run, &target, findings);
    let most = lines.iter().flat_map(|line| line.pieces.iter().flatten().map(|(x, _)| *x)).fold(0.0, f64::max);
    let most = marks.iter().fold(most, |most, mark| if let At::X(x) = mark.at { most.max(x) } else { most });
    let scale = Scale::from_zero(std::iter::once(most))?;
    let range = (0.0, most * 1.06);
    let frame = Frame {
        id: format!("{prefix}load-line"),
        title: "Latency against throughput".to_owned(),
        note: format!(
            "{}: one point a step, joined by rising load.{}{}{}",
            super::distribution::capital(run, &subject),
            repeats_words(lines.iter()),
            if common.is_empty() { String::new() } else { format!(" All with {common}.") },
            if has_limit(run, findings) { format!(" The limit is {target}.") } else { String::new() }
        ),
        y_title: "time".to_owned(),
        y_quantity: Quantity::Microseconds,
        first: First::Linear,
        words: spans(&lines),
    };
    let across =
        Across { title: rate_name(run).to_owned(), quantity: Quantity::PerSecond, range, ticks: scale.ticks(LABELS) };
    Some(Lines { frame, across, lines, bands: Vec::new(), marks, labels })
}

/// From where to where each line leads, in words: what findings say of them stands among the findings.
fn spans(lines: &[Line]) -> String {
    let point =
        |(rate, us): &(f64, f64)| format!("{} at {}/s", Quantity::Microseconds.tick(*us), group_thousands(*rate));
    let span = |line: &Line| {
        let curve = line.pieces.first()?;
        Some(format!("{}: {} to {}", line.name, point(curve.first()?), point(curve.last()?)))
    };
    format!("{}.", lines.iter().filter_map(span).collect::<Vec<_>>().join("; "))
}

/// Several runs in one chart, one line each; `None` where none has two steps to join.
pub(super) fn overlay(runs: &[(&Run, &str)]) -> Option<Lines> {
    let mut lines = Vec::new();
    for (run, name) in runs {
        let target = LatencyTarget::default().of_run(run);
        let subject = target.subject.clone()?;
        let judged = |step: &Step| subject.times(step)?.quantile_ns(target.quantile).map(|ns| ns as f64 / 1e3);
        for series in Series::of(run) {
            let of_series = if series.name.is_empty() { String::new() } else { format!(", {}", series.name) };
            let pieces = pieces(&series.steps, &|step| Some((rate_of(run, step)?, judged(step)?)));
            lines.push(Line { name: format!("{name}{of_series}"), pieces, dots: true });
        }
    }
    if lines.iter().all(|line| line.pieces[0].len() < 2) {
        return None;
    }
    let most = lines.iter().flat_map(|line| line.pieces.iter().flatten().map(|(x, _)| *x)).fold(0.0, f64::max);
    let mut rates: Vec<&str> = runs.iter().map(|(run, _)| rate_name(run)).collect();
    rates.dedup();
    let target = runs.first().map(|(run, _)| LatencyTarget::default().of_run(run))?;
    let are_from_sent = runs.iter().all(|(run, _)| is_timed_from_sent(run));
    let sentences = lines.iter().filter_map(|line| {
        let (rate, us) = line.pieces[0].iter().copied().reduce(|a, b| if b.0 > a.0 { b } else { a })?;
        Some(format!("{}: at most {}/s, at {}", line.name, group_thousands(rate), Quantity::Microseconds.tick(us)))
    });
    let frame = Frame {
        id: "load-line".to_owned(),
        title: "Latency against throughput".to_owned(),
        note: format!(
            "{} of each step{}, joined by rising load.{} Further right and lower is better.",
            target.what(),
            if are_from_sent { ", from sent to finished" } else { "" },
            repeats_words(lines.iter())
        ),
        y_title: "time".to_owned(),
        y_quantity: Quantity::Microseconds,
        first: First::Linear,
        words: format!("{}.", sentences.collect::<Vec<_>>().join("; ")),
    };
    let across = Across {
        title: rates.join(" or "),
        quantity: Quantity::PerSecond,
        range: (0.0, most * 1.06),
        ticks: Scale::from_zero(std::iter::once(most))?.ticks(LABELS),
    };
    Some(Lines { frame, across, lines, bands: Vec::new(), marks: Vec::new(), labels: Vec::new() })
}

/// The target that the findings were made with, or else the usual one.
pub(super) fn judged_by(run: &Run, findings: &[Finding]) -> LatencyTarget {
    if let Some(limit) = first_limit(run) {
        return limit;
    }
    let target = findings.iter().find_map(|finding| match finding {
        Finding::StepLine(line) => line.judged_target().cloned(),
        Finding::OpenLoadLine(line) => Some(line.target.clone()),
        Finding::Verdict(verdict) => verdict.limits.first().map(|limit| limit.target.clone()),
        _ => None,
    });
    target.unwrap_or_default().of_run(run)
}

fn has_limit(run: &Run, findings: &[Finding]) -> bool {
    first_limit(run).is_some()
        || findings.iter().any(|finding| finding.is_load_line() || matches!(finding, Finding::Verdict(_)))
}

fn marks(run: &Run, target: &LatencyTarget, findings: &[Finding]) -> Vec<Mark> {
    let (mut marks, mut found) = (Vec::new(), Vec::new());
    if has_limit(run, findings) {
        marks.push(Mark { at: At::Y(target.limit.0 as f64 / 1e3), name: format!("limit {}", target.limit) });
    }
    for finding in findings {
        let (at, name) = match finding {
            Finding::StepLine(StepLine::Between { passing, .. })
            | Finding::StepLine(StepLine::OnlyAbove { passing, .. }) => {
                (if is_operations(run) { passing.operations_per_s } else { passing.reads_per_s }, "load line")
            }
            Finding::OpenLoadLine(line) => {
                (line.passing.as_ref().and_then(|passing| passing.reached_operations_per_s), "load line")
            }
            Finding::Knee(Knee { series, bound, .. }) => (rate_at(run, series, *bound), "knee"),
            Finding::RateKnee(knee) => (Some(knee.per_s), "knee"),
            Finding::Ceiling(ceiling) => match ceiling.limit {
                Limit::NotReached { .. } | Limit::Neighbour { .. } | Limit::Unclear => continue,
                // A ceiling of buffer misses, or of a part of all requests, lies on another axis.
                _ if matches!(ceiling.what, "reads" | "writes") => continue,
                _ if is_operations(run) != operations_are_requests(run) => continue,
                _ => (Some(ceiling.per_s), "ceiling"),
            },
            _ => continue,
        };
        if let Some(x) = at {
            found.push((x, name));
        }
    }
    marks.extend(joined(found));
    marks
}

/// The rate of a curve at so many sessions, on a straight line between the steps on either side: what words call the knee seldom
/// falls on a step.
fn rate_at(run: &Run, series: &str, sessions: f64) -> Option<f64> {
    let series = Series::of(run).into_iter().find(|known| known.name == series)?;
    let point = |step: &&Step| Some((f64::from(step.load.sessions?), rate_of(run, step)?));
    let points: Vec<(f64, f64)> = series.steps.iter().filter_map(point).collect();
    let above = points.iter().position(|(at, _)| *at >= sessions)?;
    let (at, rate) = points[above];
    let below = above.checked_sub(1).map(|below| points[below]).filter(|(below, _)| *below < at);
    Some(below.map_or(rate, |(below, least)| least + (rate - least) * (sessions - below) / (at - below)))
}

/// Marks so near to each other that their names would lie on each other are one.
fn joined(mut found: Vec<(f64, &'static str)>) -> Vec<Mark> {
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    let most = found.last().map_or(0.0, |(x, _)| *x);
    let mut groups: Vec<(f64, Vec<&str>)> = Vec::new();
    for (x, name) in found {
        match groups.last_mut() {
            Some((at, names)) if x - *at < NEAR * most => names.extend((!names.contains(&name)).then_some(name)),
            _ => groups.push((x, vec![name])),
        }
    }
    let mark = |(x, names): (f64, Vec<&str>)| Mark {
        at: At::X(x),
        name: format!("{} {}", names.join(", "), group_thousands(x)),
    };
    groups.into_iter().map(mark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::sample;

    #[test]
    fn repeats_of_one_load_are_no_curve() {
        let mut run = sample::sweep(5);
        assert!(overlay(&[(&run, "a"), (&run, "b")]).is_some());
        let loads = run.steps.len();
        let mut fast = run.steps[2].clone();
        fast.waits[0].waits = sample::latencies(100, 1_000);
        let slow = model::record::Step { waits: run.steps[4].waits.clone(), ..fast.clone() };
        run.steps.extend([fast, slow]);
        let [chart, over] = [chart(&run, &[], ""), overlay(&[(&run, "a")])].map(|chart| chart.unwrap());
        for (line, note) in [(&chart.lines[0], &chart.frame.note), (&over.lines[0], &over.frame.note)] {
            assert_eq!(line.pieces.iter().map(Vec::len).collect::<Vec<_>>(), [loads, 1, 1]);
            let middle = line.pieces[0][2].1;
            assert!(line.pieces[1][0].1 < middle && middle < line.pieces[2][0].1, "{:?}", line.pieces);
            assert!(note.contains("Repeats of a load"), "{note}");
        }
        run.steps.truncate(loads);
        let first = run.steps[0].clone();
        run.steps = vec![first.clone(), first.clone(), first];
        assert!(overlay(&[(&run, "a"), (&run, "b")]).is_none());
        assert!(super::chart(&run, &[], "").is_none());
    }

    #[test]
    fn the_knee_is_drawn_where_words_have_it() {
        let run = sample::sweep(20);
        let findings = analysis::analyse_asked(&run, None);
        let bound = findings.iter().find_map(|finding| match finding {
            Finding::Knee(Knee { bound, .. }) => Some(*bound),
            _ => None,
        });
        let bound = bound.unwrap();
        let rates = |keep: &dyn Fn(f64) -> bool| -> Vec<f64> {
            let steps = run.steps.iter().filter(|step| step.load.sessions.is_some_and(|it| keep(f64::from(it))));
            steps.filter_map(|step| rate_of(&run, step)).collect()
        };
        let below = rates(&|sessions| sessions < bound).into_iter().fold(0.0, f64::max);
        let above = rates(&|sessions| sessions > bound).into_iter().fold(f64::INFINITY, f64::min);
        let at = rate_at(&run, "", bound).unwrap();
        assert!(below < at && at < above, "{below} {at} {above} at {bound}");
        let [four, eight] = [4.0, 8.0].map(|sessions| rate_at(&run, "", sessions).unwrap());
        let between = rate_at(&run, "", 5.0).unwrap();
        assert!((between - (four + (eight - four) / 4.0)).abs() < 1e-6, "{four} {between} {eight}");
        let marks = marks(&run, &LatencyTarget::default().of_run(&run), &findings);
        assert!(marks.iter().any(|mark| mark.name.contains("knee") && matches!(mark.at, At::X(x) if x <= at)), "{at}");
        assert_eq!(rate_at(&run, "", 1.0), rate_of(&run, &run.steps[0]), "a step that has so many");
    }
}
