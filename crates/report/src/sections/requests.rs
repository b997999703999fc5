//! The tables of raw storage, where an operation is one request.

use std::io;

use super::{sessions, spread};
use crate::buckets::Columns;
use crate::grid::Grid;
use crate::paper::Paper;
use crate::text::Detail;
use crate::words::{NONE, UNKNOWN, duration, longest, mean, number, quantile, share};
use analysis::{Figures, GeneratorVerdict, is_through_page_cache, is_timed_from_sent, rate, response_words};
use model::record::{Histogram, Metric, OperationStats, Run, Step};
use model::units::{awr_count, group_thousands, percent};

const TIMES: [&str; 6] = ["mean", "p50", "p95", "p99", "p99.9", "max"];

/// One row a step: how many requests, how many bytes, and how long they took.
pub(crate) fn throughput(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let mixes = run.steps.iter().any(|step| Figures(step).reads_and_writes());
    let is_open = is_open_loop(run);
    let mut header = vec!["step", if is_open { "target/s" } else { "outstanding" }, "IOPS"];
    if mixes {
        header.extend(["reads/s", "writes/s"]);
    }
    header.push("MB/s");
    header.extend(TIMES);
    if is_open {
        header.extend(["service", "queued %"]);
    }
    let mut grid = Grid::new(1, header);
    for step in run.steps.iter().filter(|step| has_figures(run, step)) {
        let figures = Figures(step);
        let asked = step.load.rate_operations_per_s.map(|rate| number(Some(rate)));
        let load = asked.unwrap_or_else(|| sessions(step));
        let mut row = vec![step.label.clone(), load, number(figures.operations_per_s())];
        if mixes {
            row.extend([figures.value(Metric::Reads), figures.value(Metric::Writes)].map(number));
        }
        row.push(number(figures.megabytes_per_s()));
        let response = figures.response();
        let untimed = untimed(run, step);
        row.extend(response.as_ref().map_or_else(|| TIMES.map(|_| untimed.to_owned()).into(), times));
        if is_open {
            row.push(figures.service().map_or_else(|| untimed.to_owned(), |service| mean(&service)));
            row.push(figures.queued_share().map_or_else(|| untimed.to_owned(), percent));
        }
        grid.push(row);
    }
    if grid.is_empty() {
        return Ok(());
    }
    let grid = grid.without_same("service", "mean");
    let times = match grid.header().iter().any(|name| name == "service") {
        true if !is_timed_from_sent(run) => "times from due to finished; service: mean from sent to finished",
        // They are the same: nothing waited before it was sent.
        false if is_open && !is_timed_from_sent(run) => "times from due to finished",
        _ => "times from sent to finished",
    };
    paper.table(&labelled(run, &format!("Requests ({times})")), &grid)?;
    spread::write(paper, run)
}

/// Whether a step has anything of what the table shows; of an imported one its program may report other figures only.
fn has_figures(run: &Run, step: &Step) -> bool {
    let figures = Figures(step);
    run.imported.is_none()
        || figures.operations_per_s().or_else(|| figures.megabytes_per_s()).is_some()
        || figures.response().is_some()
}

/// A title that says so where the page cache answers.
fn labelled(run: &Run, title: &str) -> String {
    if is_through_page_cache(run) { format!("{title}, through the page cache") } else { title.to_owned() }
}

fn is_open_loop(run: &Run) -> bool {
    run.steps.iter().any(|step| step.load.rate_operations_per_s.is_some())
}

/// What stands for times that a step has not: every request of ours is timed, so there was none; another program may have
/// timed none of its own, or reported on none.
fn untimed(run: &Run, step: &Step) -> &'static str {
    let is_known = run.imported.is_none() || step.counters.operations == Some(0);
    if is_known { NONE } else { UNKNOWN }
}

fn times(times: &Histogram) -> Vec<String> {
    let quantiles = [0.5, 0.95, 0.99, 0.999].map(|q| quantile(times, q));
    [mean(times)].into_iter().chain(quantiles).chain([longest(times)]).collect()
}

/// Reads and writes, small and large, each by themselves; nothing where only one kind was sent.
pub(crate) fn kinds(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    if !run.steps.iter().any(|step| sent(step).count() > 1) {
        return Ok(());
    }
    let is_open = is_open_loop(run);
    let have_failed = run.steps.iter().flat_map(sent).any(|operation| operation.errors > 0);
    let mut header = vec!["step", "type", "IOPS", "MB/s"];
    header.extend(have_failed.then_some("failed"));
    header.extend(TIMES);
    if is_open {
        header.push("service");
    }
    let mut grid = Grid::new(2, header);
    for step in &run.steps {
        for operation in sent(step) {
            let mut row = vec![step.label.clone(), operation.kind.clone()];
            row.push(number(rate(Some(done(operation)), step.window.duration_ns)));
            row.push(number(megabytes_per_s(run, step, operation)));
            row.extend(have_failed.then(|| group_thousands(operation.errors as f64)));
            row.extend(times(&operation.response));
            if is_open {
                row.push(mean(&operation.service));
            }
            grid.push(row);
        }
    }
    paper.table(&labelled(run, "Requests by type"), &grid.without_same("service", "mean"))
}

/// Those that did what they were asked for.
fn done(operation: &OperationStats) -> u64 {
    operation.count.saturating_sub(operation.errors)
}

fn sent(step: &Step) -> impl Iterator<Item = &OperationStats> {
    step.operations.iter().filter(|operation| operation.count > 0)
}

/// Of one kind. Bytes are counted by direction only; where small and large requests share it, the small ones have their
/// known size and the large ones the rest.
fn megabytes_per_s(run: &Run, step: &Step, operation: &OperationStats) -> Option<f64> {
    let direction = operation.kind.rsplit(' ').next().unwrap_or_default();
    let bytes = match direction {
        "read" => step.counters.physical_read_bytes,
        "write" => step.counters.physical_write_bytes,
        // A flush moves nothing.
        _ => None,
    }?;
    let others: Vec<_> = sent(step).filter(|it| it.kind != operation.kind && it.kind.ends_with(direction)).collect();
    let small_bytes = |count: u64| run.target.block_bytes.map(|size| count.saturating_mul(size));
    let of_kind = match others.as_slice() {
        [] => bytes,
        _ if operation.kind == direction => small_bytes(done(operation))?,
        [small] => bytes.saturating_sub(small_bytes(done(small))?),
        _ => return None,
    };
    rate(Some(of_kind), step.window.duration_ns).map(|bytes| bytes / 1e6)
}

/// The load generator's verdict on itself.
pub(crate) fn generator(paper: &mut dyn Paper, run: &Run, detail: Detail) -> io::Result<()> {
    let is_open = is_open_loop(run);
    let mut header = vec!["step", "limited by", "busiest %"];
    if is_open {
        header.extend(["lag p50", "lag p99", "lag max"]);
    } else {
        header.push("generator wait %");
    }
    header.extend(["no device/s", "headroom", "user %", "system %", "I/O per CPU s"]);
    if detail == Detail::Full {
        header.push("memory MB");
    }
    let mut grid = Grid::new(1, header);
    for step in &run.steps {
        let figures = Figures(step);
        let unknown = || UNKNOWN.to_owned();
        let verdict = GeneratorVerdict::of(step);
        let verdict = verdict.as_ref();
        // Processor time says nothing beside time that is only simulated.
        let busiest = verdict.filter(|_| step.process_cpu.is_some()).map(|verdict| verdict.busiest_share);
        let mut row = vec![
            step.label.clone(),
            verdict.map_or_else(unknown, |verdict| verdict.limited_by.word().to_owned()),
            share(busiest),
        ];
        if is_open {
            let lags = |verdict: &GeneratorVerdict| [verdict.lag_p50_ns, verdict.lag_p99_ns, verdict.lag_max_ns];
            row.extend(verdict.map(lags).unwrap_or_default().map(duration));
        } else {
            row.push(share(verdict.and_then(|verdict| verdict.slots_in_generator)));
        }
        row.push(number(verdict.and_then(|verdict| verdict.ceiling_operations_per_s)));
        let headroom = verdict.and_then(|verdict| verdict.headroom);
        row.push(headroom.map_or_else(unknown, |times| format!("{times:.1}x")));
        row.extend([share(figures.user_processors()), share(figures.system_processors())]);
        row.push(number(figures.io_per_cpu_second()));
        if detail == Detail::Full {
            row.push(number(step.peak_memory_bytes.map(|bytes| bytes as f64 / 1e6)));
        }
        grid.push(row);
    }
    paper.table("Load generator (what limited each step; 100 % = one CPU)", &grid)
}

/// Response times of an open loop: all requests together, and in full each kind.
pub(crate) fn response_histograms(paper: &mut dyn Paper, run: &Run, detail: Detail) -> io::Result<()> {
    if !is_open_loop(run) {
        return Ok(());
    }
    let rows = |of: &dyn Fn(&Step) -> Option<Histogram>| -> Vec<(String, Histogram)> {
        run.steps.iter().filter_map(|step| Some((step.label.clone(), of(step)?))).collect()
    };
    let all = rows(&|step| Figures(step).response());
    histogram(paper, &format!("Response time of all requests, {}: % of requests", response_words(run)), &all)?;
    if detail == Detail::Brief || !run.steps.iter().any(|step| sent(step).count() > 1) {
        return Ok(());
    }
    let mut kinds: Vec<&str> = Vec::new();
    for operation in run.steps.iter().flat_map(sent) {
        if !kinds.contains(&operation.kind.as_str()) {
            kinds.push(&operation.kind);
        }
    }
    for kind in kinds {
        let of = |step: &Step| sent(step).find(|operation| operation.kind == kind).map(|it| it.response.clone());
        histogram(paper, &format!("Response time of each {kind}: % of requests"), &rows(&of))?;
    }
    Ok(())
}

fn histogram(paper: &mut dyn Paper, title: &str, rows: &[(String, Histogram)]) -> io::Result<()> {
    let columns = Columns::covering(rows.iter().map(|(_, times)| times));
    let mut grid = Grid::new(1, ["step", "requests"].map(str::to_owned).into_iter().chain(columns.headings()));
    for (label, times) in rows {
        let count = awr_count(times.count() as f64);
        grid.push([label.clone(), count].into_iter().chain(columns.cells(times)).collect());
    }
    paper.table(title, &grid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::{Clock, Imported, Level, Metric, OrionLevel, ReportedFigure, sample};

    #[test]
    fn of_imported_runs_steps_that_tell_nothing_of_requests_are_left_out() {
        let mut run = sample::requests::sweep();
        run.steps.truncate(2);
        run.steps[1] = Step::new(1, "small0_large2");
        let is_shown = |run: &Run| run.steps.iter().map(|step| has_figures(run, step)).collect::<Vec<_>>();
        assert_eq!(is_shown(&run), [true, true], "all of ours are");
        run.imported = Some(Imported { files: Vec::new(), clock: Clock::Utc, not_understood: Vec::new() });
        assert_eq!(is_shown(&run), [true, false]);

        let figure = ReportedFigure::new("OS file", "Maximum Large MBPS", "MB/s", 362.0);
        run.steps[1].reported = vec![figure.clone()];
        assert_eq!(is_shown(&run), [true, false], "of all its requests or of some?");
        run.steps[1].level = Some(Level::Orion(OrionLevel { small: 0, large: 1 }));
        run.steps[1].reported = vec![figure.is(Metric::Megabytes, 1.0)];
        assert_eq!(is_shown(&run), [true, true]);
    }
}
