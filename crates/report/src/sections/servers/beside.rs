//! What went on in the servers beside the figures of the load: tables, sessions, processors, nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use super::{Column, Seen, count, seen, steps};
use crate::grid::Grid;
use crate::paper::Paper;
use crate::words::{NONE, UNKNOWN, number, share};
use analysis::{Processors, Served, imbalance, is_on_server};
use model::record::facts::Term;
use model::record::{Run, Step};
use model::units::percent;

const SHAPE: [Column; 6] = [
    ("rows updated", |seen| count(seen.served.rows_updated())),
    ("HOT %", hot),
    ("pages grown", |seen| count(seen.served.pages_grown())),
    ("grown %", |seen| grown(seen.served.grown_share())),
    ("vacuums", |seen| count(seen.served.vacuums())),
    ("analyzes", |seen| count(seen.served.analyses())),
];

fn grown(share: Option<f64>) -> String {
    if share == Some(0.0) { NONE.to_owned() } else { super::share(share) }
}

fn hot(seen: &Seen<'_>) -> String {
    if seen.served.rows_updated() == Some(0) { NONE.to_owned() } else { share(seen.served.hot_share()) }
}

/// Whether the tables kept their shape; nothing where nothing was written to them.
pub(crate) fn shape(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let is_reported = |seen: &Seen<'_>| {
        let Seen { served, .. } = seen;
        let counts = [served.rows_updated(), served.pages_grown(), served.vacuums(), served.analyses()];
        // Rows of some servers are written over in place: then there is no shape to lose.
        let has_shape = served.pages_grown().is_some() || served.hot_share().is_some();
        has_shape && counts.into_iter().flatten().any(|count| count > 0)
    };
    let title = "Shape of the tables (layer: server; HOT: new versions that stayed on their row's page)";
    steps(paper, run, title, &SHAPE, is_reported)
}

/// Columns of what sessions were doing; the rest is one more.
const MAX_DOING: usize = 6;

/// What sessions were doing, by samples.
pub(crate) fn sessions(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let mut all: BTreeMap<&str, f64> = BTreeMap::new();
    for (what, sessions) in seen(run).flat_map(|seen| seen.served.doing()) {
        *all.entry(what).or_default() += sessions;
    }
    let mut order: Vec<(&str, f64)> = all.into_iter().collect();
    order.sort_by(|left, right| right.1.total_cmp(&left.1).then(left.0.cmp(right.0)));
    let shown: Vec<&str> = order.iter().take(MAX_DOING).map(|(what, _)| *what).collect();
    let other = (order.len() > MAX_DOING).then_some("other");
    let mut grid = Grid::new(1, ["step", "looks"].into_iter().chain(shown.iter().copied()).chain(other));
    for seen in seen(run).filter(|seen| seen.served.looks() > 0) {
        let doing = seen.served.doing();
        let mut row = vec![seen.step.label.clone(), count(Some(seen.served.looks()))];
        row.extend(shown.iter().map(|what| number(Some(doing.get(what).copied().unwrap_or(0.0)))));
        let rest = doing.iter().filter(|(what, _)| !shown.contains(what)).map(|(_, sessions)| sessions).sum();
        row.extend(other.map(|_| number(Some(rest))));
        grid.push(row);
    }
    let title = format!(
        "What sessions were doing: sessions on average (layer: server; sampled, by looks at {})",
        run.target.term(Term::Sessions)
    );
    paper.table(&title, &grid)
}

/// Whose processor time was used on this machine.
pub(crate) fn processors(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let header =
        ["step", "server", "user", "system", "generator", "all", "busy %", "I/O wait %", "generator % of used"];
    let mut grid = Grid::new(1, header);
    for seen in seen(run).filter(|seen| is_on_server(seen.step)) {
        let machine = Processors::of(run, seen.step);
        let of_machine = |value: fn(&Processors) -> Option<f64>| machine.as_ref().and_then(value);
        let two = |value: Option<f64>| value.map_or_else(|| UNKNOWN.to_owned(), |value| format!("{value:.2}"));
        let mut row = vec![seen.step.label.clone()];
        row.extend([seen.served.processors(), seen.served.user_processors(), seen.served.system_processors()].map(two));
        row.extend([seen.figures.processors_busy(), of_machine(|machine| Some(machine.used))].map(two));
        row.push(share(of_machine(|machine| machine.busy)));
        row.push(share(of_machine(|machine| machine.io_wait)));
        row.push(share(of_machine(|machine| machine.generator)));
        grid.push(row);
    }
    let title =
        "Processors of this machine, 1.00 = one of them (layer: OS; `?`: the server runs elsewhere, or hides it)";
    paper.table(title, &grid)
}

/// What the servers counted by their own names, those left out that stood still: sums over the nodes, unknown where one of them
/// has no such counter.
pub(crate) fn own(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let steps: Vec<&Step> = run.steps.iter().filter(|step| !step.servers.is_empty()).collect();
    let all = steps.iter().flat_map(|step| &step.servers).flat_map(|server| &server.own);
    let names: BTreeSet<&String> = all.filter(|(_, count)| **count > 0).map(|(name, _)| name).collect();
    let mut grid = Grid::new(1, ["counter"].into_iter().chain(steps.iter().map(|step| step.label.as_str())));
    for name in names {
        let counted = |step: &&Step| count(step.servers.iter().map(|server| server.own.get(name).copied()).sum());
        grid.push([name.clone()].into_iter().chain(steps.iter().map(counted)).collect());
    }
    paper.table("Counters by the server's own names (layer: server; everybody's; times in ns)", &grid)
}

/// A rate of one node.
type NodeRate = (&'static str, fn(&Served<'_>) -> Option<f64>);

const NODES: [NodeRate; 5] = [
    ("transactions/s", |node| node.transactions_per_s()),
    ("logical reads/s", |node| node.logical_reads_per_s()),
    ("buffer misses/s", |node| node.buffer_misses_per_s()),
    ("device reads/s", |node| node.device_reads_per_s()),
    ("WAL MB/s", |node| node.wal_megabytes_per_s()),
];
/// What the last is called where the log is one of redo.
const REDO: &str = "redo MB/s";

/// Each node by itself, and how far they lie apart; nothing where there is one.
pub(crate) fn nodes(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let is_redo = seen(run).any(|seen| seen.served.keeps_redo());
    let heading = |name: &'static str| if is_redo && name == NODES[4].0 { REDO } else { name };
    let mut grid = Grid::new(2, ["step", "node"].into_iter().chain(NODES.map(|(name, _)| heading(name))));
    for step in run.steps.iter().filter(|step| step.servers.len() > 1) {
        for (name, node) in Served::each(run, step) {
            let rates = NODES.map(|(_, rate)| number(rate(&node)));
            grid.push([step.label.clone(), name.to_owned()].into_iter().chain(rates).collect());
        }
        let apart = NODES.map(|(_, rate)| apart(run, step, rate));
        grid.push([step.label.clone(), "imbalance %".to_owned()].into_iter().chain(apart).collect());
    }
    let title = "Nodes (layer: server; imbalance: largest less smallest, of their mean)";
    paper.table(title, &grid)
}

fn apart(run: &Run, step: &Step, rate: fn(&Served<'_>) -> Option<f64>) -> String {
    let rates: Option<Vec<f64>> = Served::each(run, step).map(|(_, node)| rate(&node)).collect();
    match rates {
        None => UNKNOWN.to_owned(),
        Some(rates) => imbalance(&rates).map_or_else(|| NONE.to_owned(), percent),
    }
}
