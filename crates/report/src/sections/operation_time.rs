//! Where the time of one operation went.

use std::io;

use crate::grid::Grid;
use crate::paper::Paper;
use crate::words::{UNKNOWN, duration, number};
use analysis::{OperationTime, Part, is_on_server, is_on_servers};
use model::record::{Run, Step};

const TITLE: &str = "Where the time of one operation went (mean; in brackets how often it happens in one)";
const COLUMNS: [&str; 7] = ["mean", "reads", "cache hits", "log", "waits", "processor", "rest"];
const LEGEND: &str = "Reads: blocks that were not in the buffer cache, on a server those of its page cache too. Cache hits are timed by \
                      nobody, and are in the processor's time. On a server: from looks at its sessions, and from its own times of reads \
                      where those do not show them; processor: using or wanting one. In the engine: from its wait events; processor: of the whole process. Rest: what no part has, \
                      such as the way to a server.";

/// One row of the table: what it is of, in the words of its first columns, and the step.
pub(crate) type Row<'a> = (Vec<String>, &'a Run, &'a Step);

/// One row for each step, of runs on servers alone: an engine's own waits have a table.
pub(crate) fn of_run(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    if !is_on_servers(run) {
        return Ok(());
    }
    write(paper, &["step"], run.steps.iter().map(|step| (vec![step.label.clone()], run, step)))
}

/// The table, with `keys` as the headings of the first columns; nothing where no operation was timed.
pub(crate) fn write<'a>(paper: &mut dyn Paper, keys: &[&str], rows: impl Iterator<Item = Row<'a>>) -> io::Result<()> {
    let mut grid = Grid::new(keys.len(), keys.iter().chain(&COLUMNS).copied());
    let mut exceeding = Vec::new();
    for (names, run, step) in rows {
        let Some(time) = OperationTime::of(run, step) else { continue };
        if let Some(excess) = time.excess_ns {
            exceeding.push((format!("{} by {}", names.join(" of "), ns(Some(excess))), is_on_server(step)));
        }
        let parts = [time.reads, time.cache_hits, time.log, time.waits, time.processor].map(cell);
        let over = time.excess_ns.map(|excess| format!("over by {}", ns(Some(excess))));
        let rest = over.unwrap_or_else(|| ns(time.rest_ns));
        grid.push(names.into_iter().chain([ns(Some(time.mean_ns))]).chain(parts).chain([rest]).collect());
    }
    if grid.is_empty() {
        return Ok(());
    }
    paper.table(TITLE, &grid)?;
    if !exceeding.is_empty() {
        let mut why = Vec::new();
        if exceeding.iter().any(|(_, on_server)| !on_server) {
            why.push("the engine waits for several blocks of an operation at once, so its reads are at most what log and waits leave");
        }
        if exceeding.iter().any(|(_, on_server)| *on_server) {
            why.push("looks at a server's sessions are a sample");
        }
        let of: Vec<&str> = exceeding.iter().map(|(of, _)| of.as_str()).collect();
        paper.remark(&format!("Parts exceed the mean: {}. That is because {}.", of.join("; "), why.join(", and ")))?;
    }
    paper.remark(LEGEND)
}

fn cell(part: Part) -> String {
    let time = format!("{}{}", if part.is_bound { "<=" } else { "" }, ns(part.ns));
    match part.each {
        Some(each) if each >= 0.05 => format!("{time} ({})", number(Some(each))),
        _ => time,
    }
}

fn ns(ns: Option<f64>) -> String {
    match ns {
        None => UNKNOWN.to_owned(),
        Some(ns) if ns < 0.5 => "-".to_owned(),
        Some(ns) => duration(Some(ns.round() as u64)),
    }
}
