//! The tables of a report, in a terminal and on a page alike.

pub(super) mod ends;
pub(super) mod failure;
pub(super) mod fleet;
pub(super) mod host;
pub(super) mod imported;
pub(super) mod list;
mod map;
pub(super) mod replay;
pub(super) mod reported;
pub(super) mod requests;
pub(super) mod servers;
mod spread;
mod stalls;
pub(super) mod transactions;

use std::io;

use super::text::Detail;
use crate::buckets::Columns;
use crate::grid::{self, Grid};
use crate::paper::Paper;
use crate::words::{NONE, UNKNOWN, duration, longest, mean, number, quantile, share};
use analysis::{
    Bulk, FLASH_READ, Figures, MatrixLink, NetworkMatrix, NetworkStop, OperationTime, Part, Round, SINGLE_BLOCK_READ,
    Vocabulary, is_on_server, is_on_servers, is_timed_from_sent, left_out, operations_are_requests, rate, rounds,
    shares_of_levels, wait,
};
use model::record::{
    CONNECT, DeviceStats, Histogram, Metric, MetricUnit, NetworkEnd, NetworkSide, Run, Step, WaitStats, Waited,
    Waiters, Workload,
};
use model::units::{Nanos, awr_count, group_thousands};

/// Heading and value of a column of figures.
type Column = (&'static str, fn(&Figures<'_>) -> String);

/// A metric's value as tables show it.
fn show(metric: Metric, figures: &Figures<'_>) -> String {
    let value = figures.value(metric);
    if matches!(metric.unit(), MetricUnit::Share | MetricUnit::Processors) { share(value) } else { number(value) }
}

/// The column of a metric.
macro_rules! column {
    ($metric:ident) => {
        (Metric::$metric.heading(), |f| $crate::sections::show(Metric::$metric, f))
    };
}
use column;

const THROUGHPUT: [Column; 10] = [
    ("sessions", |f| sessions(f.0)),
    ("operations/s", |f| show(Metric::Operations, f)),
    column!(LogicalReads),
    column!(Reads),
    column!(Writes),
    column!(ReadMegabytes),
    column!(WriteMegabytes),
    column!(RedoMegabytes),
    column!(Commits),
    column!(Hits),
];

const READS_AND_PROCESSORS: [Column; 10] = [
    ("sessions", |f| sessions(f.0)),
    ("read mean", |f| reads(f, mean)),
    ("p50", |f| reads(f, |waits| quantile(waits, 0.5))),
    ("p99", |f| reads(f, |waits| quantile(waits, 0.99))),
    ("p99.9", |f| reads(f, |waits| quantile(waits, 0.999))),
    ("max", |f| reads(f, longest)),
    column!(UserProcessors),
    column!(SystemProcessors),
    column!(IoPerCpuSecond),
    ("memory MB", |f| number(f.0.peak_memory_bytes.map(|bytes| bytes as f64 / 1e6))),
];

/// How many worked at the same time, where that is known.
pub(super) fn sessions(step: &Step) -> String {
    step.load.sessions.map_or_else(|| UNKNOWN.to_owned(), |sessions| group_thousands(f64::from(sessions)))
}

fn reads(figures: &Figures<'_>, show: fn(&Histogram) -> String) -> String {
    wait(figures.0, SINGLE_BLOCK_READ).map_or_else(|| NONE.to_owned(), |wait| show(&wait.times()))
}

pub(crate) fn throughput(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    if is_of(run) {
        return write_net_load(paper, run);
    }
    steps(paper, run, "Throughput", &THROUGHPUT)?;
    spread::write(paper, run)
}

pub(crate) fn reads_and_processors(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    if is_of(run) {
        return Ok(());
    }
    let title = "Single-block reads (db file sequential read), and CPU time of this process (100 % = one CPU)";
    steps(paper, run, title, &READS_AND_PROCESSORS)
}

fn steps(paper: &mut dyn Paper, run: &Run, title: &str, columns: &[Column]) -> io::Result<()> {
    let grid = Grid::of(["step"], columns, run.steps.iter().map(|step| ([step.label.clone()], Figures(step))));
    paper.table(title, &grid)
}

pub(crate) fn waits(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let title = match Vocabulary::of(run) {
        Vocabulary::Sessions if is_of_db_time(run) => {
            "Wait events (% of DB time; foreground and background apart where both are known; quantiles by histogram)"
        }
        Vocabulary::Sessions | Vocabulary::Users if is_on_servers(run) => {
            "Wait events that the server timed (layer: server; % of the time that operations took)"
        }
        Vocabulary::Sessions | Vocabulary::Users => {
            "Wait events (% of the time that sessions waited; the engine's own writers have none)"
        }
        Vocabulary::Requests => {
            "Wait events (what a database would call these requests; % of the time that requests took)"
        }
    };
    let of_what = if is_of_db_time(run) { "% DB time" } else { "% waited" };
    let grid_columns = 13;
    let mut grid = Grid::new(
        3,
        ["step", "event", "class", "waits", "total", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max", of_what],
    );
    for step in &run.steps {
        // Connections have a table of their own: who timed them is not who timed the rest.
        for wait in in_order(step).into_iter().filter(|wait| wait.event != CONNECT) {
            let mut row = vec![step.label.clone(), wait.event.clone(), wait.class.clone()];
            row.extend(waited(wait.sum()));
            row.extend(latencies(&wait.times()).into_iter().skip(1));
            row.push(match share_of_time(step, wait) {
                Some(value) if wait.of_sessions().is_some() => share(Some(value)),
                _ => NONE.to_owned(),
            });
            grid.push(row);
            let parts = wait.reported.iter().filter(|part| part.by != Waiters::All && wait.reported.len() > 1);
            for part in parts {
                let by = if part.by == Waiters::Background { "background" } else { "foreground" };
                let mut row = vec![step.label.clone(), format!("  of these, {by}"), wait.class.clone()];
                row.extend(waited(Waited { count: part.count, total_ns: part.total_ns }));
                row.resize(grid_columns, NONE.to_owned());
                grid.push(row);
            }
        }
    }
    paper.table(title, &grid)
}

/// Number, sum and mean.
fn waited(waited: Waited) -> [String; 3] {
    let known = |ns: Option<u64>| ns.map_or_else(|| UNKNOWN.to_owned(), |ns| duration(Some(ns)));
    [awr_count(waited.count as f64), known(waited.total_ns), known(waited.mean_ns().map(|ns| ns.round() as u64))]
}

/// Whether shares of waits are of DB time, as reports of Oracle have them.
fn is_of_db_time(run: &Run) -> bool {
    run.steps.iter().any(|step| Figures(step).db_time_ns().is_some())
}

/// What an event takes of the time that sessions waited. A server times few of its waits, so there it is of the time that
/// operations took; a report of Oracle has it of DB time.
fn share_of_time(step: &Step, wait: &WaitStats) -> Option<f64> {
    if Figures(step).db_time_ns().is_some() {
        return Figures(step).share_of_db_time(&wait.event);
    }
    if !is_on_server(step) {
        return Figures(step).share_of_waiting(&wait.event);
    }
    let all = Figures(step).service()?.total_ns().filter(|ns| *ns > 0)?;
    Some(wait.waits.total_ns()? as f64 / all as f64)
}

/// What sessions waited for first, then the engine's writers; the longest total first.
fn in_order(step: &Step) -> Vec<&WaitStats> {
    let mut waits: Vec<_> = step.waits.iter().filter(|wait| wait.waits.count() > 0).collect();
    let of_sessions = |wait: &WaitStats| wait.of_sessions().map(|waited| waited.total_ns);
    // `Some` is above `None`: what sessions waited for comes first, and there what is known.
    waits.sort_by_key(|wait| std::cmp::Reverse((wait.class != "Idle", of_sessions(wait), wait.sum().total_ns)));
    waits
}

fn latencies(histogram: &Histogram) -> Vec<String> {
    let quantiles = [0.5, 0.9, 0.99, 0.999, 0.9999].map(|q| quantile(histogram, q));
    [mean(histogram)].into_iter().chain(quantiles).chain([longest(histogram)]).collect()
}

/// Events of an imported run that a brief report shows: nobody knows which of them its reader cares for.
const FIRST_EVENTS: usize = 3;

/// Whether sessions waited for the event, and how long they did is reported in buckets.
fn is_waited_for(run: &Run, event: &str) -> bool {
    let mut waits = run.steps.iter().flat_map(|step| &step.waits).filter(|wait| wait.event == event);
    waits.any(|wait| wait.foreground && wait.class != "Idle" && wait.waits.is_distribution())
}

/// One table an event, so that the steps of a sweep stand under each other.
pub(crate) fn histograms(paper: &mut dyn Paper, run: &Run, detail: Detail) -> io::Result<()> {
    let mut events: Vec<&str> = Vec::new();
    // The heaviest load decides which event comes first.
    let instances = run.steps.iter().flat_map(|step| &step.instances);
    for wait in run.steps.iter().rev().flat_map(in_order).chain(instances.flat_map(|instance| &instance.waits)) {
        if !events.contains(&wait.event.as_str()) {
            events.push(&wait.event);
        }
    }
    let mut events_reported = 0;
    for event in events {
        let mut rows: Vec<(String, &Histogram)> = Vec::new();
        for step in &run.steps {
            rows.extend(wait(step, event).map(|wait| (step.label.clone(), &wait.waits)));
        }
        if detail == Detail::Full {
            rows.extend(run.steps.iter().flat_map(|step| imported::histograms_of_instances(step, event)));
        }
        // A database is judged by its reads, a server also by its commits; raw storage by whatever was sent to it.
        let is_judged = [SINGLE_BLOCK_READ, servers::COMMIT].contains(&event);
        let comes_first = run.imported.is_some() && events_reported < FIRST_EVENTS && is_waited_for(run, event);
        let is_reported = detail == Detail::Full || is_judged || comes_first || operations_are_requests(run);
        if !is_reported {
            continue;
        }
        events_reported += 1;
        if rows.is_empty() {
            continue;
        }
        let columns = Columns::covering(rows.iter().map(|(_, waits)| *waits));
        let names = ["step", "waits"].map(str::to_owned);
        let mut grid = Grid::new(1, names.into_iter().chain(columns.headings()));
        for (label, waits) in rows {
            let count = awr_count(waits.count() as f64);
            grid.push([label, count].into_iter().chain(columns.cells(waits)).collect());
        }
        paper.table(&format!("{event}: % of waits"), &grid)?;
    }
    Ok(())
}

pub(crate) fn operations(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let names = ["step", "type", "time", "count", "errors", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"];
    let mut grid = Grid::new(3, names);
    for step in &run.steps {
        for operation in &step.operations {
            let both = [("service", &operation.service), ("response", &operation.response)];
            for (time, histogram) in &both[..if is_timed_from_sent(run) { 1 } else { 2 }] {
                let names = [&step.label, &operation.kind, *time].map(str::to_owned);
                let counts = [operation.count, operation.errors].map(|count| number(Some(count as f64)));
                grid.push(names.into_iter().chain(counts).chain(latencies(histogram)).collect());
            }
        }
    }
    let response = if is_timed_from_sent(run) { "" } else { "; response: from due to finished" };
    let work = if Vocabulary::of(run) == Vocabulary::Users { "Transactions" } else { "Operations" };
    paper.table(&format!("{work} (service: from sent to finished{response})"), &grid)
}

const DEVICES: [grid::Column<DeviceStats>; 8] = [
    ("reads/s", |device| number(of_device(device, device.reads, 1.0))),
    ("writes/s", |device| number(of_device(device, device.writes, 1.0))),
    ("read MB/s", |device| number(of_device(device, device.read_bytes, 1e6))),
    ("write MB/s", |device| number(of_device(device, device.write_bytes, 1e6))),
    ("read mean", |device| duration(device.read_time_ns.checked_div(device.reads))),
    ("write mean", |device| duration(device.write_time_ns.checked_div(device.writes))),
    ("in flight", |device| number(of_device(device, device.weighted_ns, 1e9))),
    ("busy %", |device| {
        let busy = of_device(device, device.busy_ns, 1e9);
        busy.map_or_else(|| UNKNOWN.to_owned(), |share| group_thousands(share * 100.0))
    }),
];

fn of_device(device: &DeviceStats, count: u64, unit: f64) -> Option<f64> {
    rate(Some(count), device.elapsed_ns).map(|per_s| per_s / unit)
}

pub(crate) fn devices(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let all = run.steps.iter().flat_map(|step| step.devices.iter().map(move |device| (step, device)));
    let rows = all.map(|(step, device)| ([step.label.clone(), device.name.clone()], device));
    let grid = Grid::of(["step", "device"], &DEVICES, rows);
    paper.table("Devices (/proc/diskstats, everybody's I/O)", &grid)
}

/// What each operation asked for on average, as the load profile of an AWR report has it per transaction.
const PER_OPERATION: [Column; 7] = [
    column!(Operations),
    ("logical reads each", |f| per_operation(f, f.value(Metric::LogicalReads))),
    ("physical reads each", |f| per_operation(f, f.value(Metric::Reads))),
    ("writes each", |f| per_operation(f, f.value(Metric::Writes))),
    ("redo KB each", |f| per_operation(f, f.value(Metric::RedoMegabytes).map(|megabytes| megabytes * 1e3))),
    ("commits each", |f| per_operation(f, f.commits_per_s())),
    ("time each", |f| f.service().map_or_else(|| NONE.to_owned(), |times| mean(&times))),
];

fn per_operation(figures: &Figures<'_>, per_s: Option<f64>) -> String {
    let operations = figures.operations_per_s().filter(|rate| *rate > 0.0);
    match per_s.zip(operations).map(|(per_s, operations)| per_s / operations) {
        None => UNKNOWN.to_owned(),
        Some(0.0) => NONE.to_owned(),
        Some(each) if each < 0.1 => format!("{each:.3}"),
        Some(each) => number(Some(each)),
    }
}

/// What an operation consists of.
pub(crate) fn profile(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    if Vocabulary::of(run) == Vocabulary::Users {
        let columns: Vec<Column> = PER_OPERATION
            .into_iter()
            .map(|(name, of)| (if name == "operations/s" { "transactions/s" } else { name }, of))
            .collect();
        return steps(paper, run, "Load profile, for each transaction", &columns);
    }
    steps(paper, run, "Load profile, for each operation", &PER_OPERATION)
}

const CACHES: [Column; 4] = [
    column!(LogicalReads),
    ("from the buffer cache %", |f| show(Metric::Hits, f)),
    ("physical reads/s", |f| show(Metric::Reads, f)),
    column!(DirectReads),
];

/// Where blocks came from, as far as the engine knows; nothing where it has no cache.
pub(crate) fn caches(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    if run.steps.iter().all(|step| Figures(step).hit_ratio().is_none()) {
        return Ok(());
    }
    steps(
        paper,
        run,
        "Where blocks came from (layer: engine; tiers below it are reported by the time of reads)",
        &CACHES,
    )
}

/// Processors of the whole machine.
pub(crate) fn whole_machine(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let mut grid = Grid::new(1, ["step", "user %", "system %", "I/O wait %", "stolen %", "idle %"]);
    for step in &run.steps {
        // Without idle time nobody knows what all of it is.
        let Some(cpu) = step.host_cpu.filter(|cpu| cpu.idle_ns.is_some()) else { continue };
        let known = [Some(cpu.user_ns), Some(cpu.system_ns), cpu.iowait_ns, cpu.steal_ns, cpu.idle_ns];
        let all: u64 = known.iter().flatten().sum();
        let shares = known.map(|ns| share(ns.filter(|_| all > 0).map(|ns| ns as f64 / all as f64)));
        grid.push([step.label.clone()].into_iter().chain(shares).collect());
    }
    paper.table("Processors of the whole machine (layer: OS; 100 % = all of them)", &grid)
}

const LEVELS: [Column; 9] = [
    ("buffer cache %", |f| level(f, 0)),
    ("flash %", |f| level(f, 1)),
    ("data files %", |f| level(f, 2)),
    ("flash reads/s", |f| per_s(f, f.0.counters.flash_cache_reads)),
    ("flash mean", |f| wait(f.0, FLASH_READ).map_or_else(|| NONE.to_owned(), |wait| mean(&wait.times()))),
    ("flash p99", |f| wait(f.0, FLASH_READ).map_or_else(|| NONE.to_owned(), |wait| quantile(&wait.times(), 0.99))),
    ("data file mean", |f| reads(f, mean)),
    ("blocks to flash/s", |f| per_s(f, f.0.counters.flash_cache_writes)),
    ("left out %", |f| share(left_out(f.0))),
];

fn level(figures: &Figures<'_>, level: usize) -> String {
    share(shares_of_levels(figures.0).map(|shares| shares[level]))
}

fn per_s(figures: &Figures<'_>, count: Option<u64>) -> String {
    number(rate(count, figures.0.window.duration_ns))
}

/// A row each step; nothing where no step had a flash cache.
pub(crate) fn write_flash(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    if run.steps.iter().all(|step| step.counters.flash_cache_reads.is_none()) {
        return Ok(());
    }
    steps(
        paper,
        run,
        "Levels of the cache (layer: engine; % of logical reads; left out: of the blocks for flash)",
        &LEVELS,
    )
}

/// Rows of a brief report; more rounds than that are joined.
const MAX_ROWS: usize = 30;

/// A table of the rounds of each step, if the run says how long its rounds are.
pub(crate) fn write_rounds(paper: &mut dyn Paper, run: &Run, detail: Detail) -> io::Result<()> {
    let most = rounds(run, 1).iter().map(|(_, rounds)| rounds.len()).max().unwrap_or(0);
    let join = match detail {
        Detail::Full => 1,
        Detail::Brief => most.div_ceil(MAX_ROWS),
    };
    for (step, rounds) in rounds(run, join) {
        let Some(first) = rounds.first() else { continue };
        let length = first.length;
        let joined = if join > 1 { format!(", {join} rounds a line (all of them with --full)") } else { String::new() };
        let columns = ["after", "operations/s", "least s", "most s", "MB/s", "mean", "p50", "p99", "p99.9", "max"];
        let mut grid = Grid::new(1, columns);
        rounds.iter().for_each(|round| grid.push(row(round)));
        paper.table(&format!("Rounds of {}, {length} each{joined}", step.label), &grid)?;
    }
    Ok(())
}

fn row(round: &Round) -> Vec<String> {
    let Round { begins, operations_per_s, seconds_range, megabytes_per_s, response, length: _ } = round;
    let (least, most) = seconds_range.unzip();
    let mut row = vec![if *begins == Nanos(0) { "0 s".to_owned() } else { begins.to_string() }];
    row.extend([*operations_per_s, least, most, *megabytes_per_s].map(number));
    row.push(mean(response));
    row.extend([0.5, 0.99, 0.999].map(|q| quantile(response, q)));
    row.push(duration(response.max_ns()));
    row
}

/// How many there were, how long they took, and what stood against others. Nothing where none was made.
pub(crate) fn write_connects(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let mut grid = Grid::new(1, ["step", "connections", "/s", "failed", "mean", "p50", "p99", "p99.9", "max"]);
    for step in &run.steps {
        let made = wait(step, CONNECT).map(|wait| &wait.waits);
        let failed: u64 = step.failed_connects.values().sum();
        if made.is_none() && failed == 0 {
            continue;
        }
        let some = |count: u64| if count == 0 { NONE.to_owned() } else { group_thousands(count as f64) };
        let count = made.map_or(0, |times| times.count());
        let per_s = number(rate(Some(count), step.window.duration_ns));
        let times = made.map_or_else(
            || vec![NONE.to_owned(); 5],
            |times| {
                let quantiles = [0.5, 0.99, 0.999].map(|q| quantile(times, q));
                [mean(times)].into_iter().chain(quantiles).chain([duration(times.max_ns())]).collect()
            },
        );
        grid.push([step.label.clone(), some(count), per_s, some(failed)].into_iter().chain(times).collect());
    }
    paper.table("Connections made anew, and how long each took until it could be used (layer: client)", &grid)?;
    for step in run.steps.iter().filter(|step| !step.failed_connects.is_empty()) {
        let reasons = step.failed_connects.iter();
        let reasons: Vec<String> =
            reasons.map(|(reason, count)| format!("{reason} {}", group_thousands(*count as f64))).collect();
        paper.remark(&format!(
            "{}: attempts at a connection that failed and were repeated: {}",
            step.label,
            reasons.join(", ")
        ))?;
    }
    Ok(())
}

const TITLE: &str = "Where the time of one operation went (mean; in brackets how often it happens in one)";
const COLUMNS: [&str; 7] = ["mean", "reads", "cache hits", "log", "waits", "CPU", "rest"];
const LEGEND: &str = "Reads: blocks that were not in the buffer cache; on a server this includes its page cache. Cache hits are part of CPU time. \
                      On a server: from samples of its sessions, or from its own read times where samples do not show them. CPU there: \
                      using or waiting for one. In the engine: from its wait events. CPU there: of the whole process. \
                      Rest: not in any part, such as the network.";

/// One row of the table: what it is of, in the words of its first columns, and the step.
pub(crate) type Row<'a> = (Vec<String>, &'a Run, &'a Step);

/// One row for each step, of runs on servers alone: an engine's own waits have a table.
pub(crate) fn of_run(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    if !is_on_servers(run) {
        return Ok(());
    }
    write_operation_time(paper, &["step"], run.steps.iter().map(|step| (vec![step.label.clone()], run, step)))
}

/// The table, with `keys` as the headings of the first columns; nothing where no operation was timed.
pub(crate) fn write_operation_time<'a>(
    paper: &mut dyn Paper,
    keys: &[&str],
    rows: impl Iterator<Item = Row<'a>>,
) -> io::Result<()> {
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

/// Waits that an answer is cut into, and the headings of their means.
const PARTS: [(&str, &str); 3] =
    [("network round trip", "network"), ("remote service", "server"), ("RFS write", "disk")];
const LINKS: &str = "Links (Gbit/s that were received; each server by itself, and all of them at once)";

/// Whether a run is a load of ours on a network.
pub(crate) fn is_of(run: &Run) -> bool {
    run.imported.is_none() && run.workload() == Workload::Network
}

/// One row for each step and kind of operation.
fn write_net_load(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let is_open = run.steps.iter().any(|step| step.load.rate_operations_per_s.is_some());
    let part = |(event, _): &&(&str, &str)| {
        run.steps.iter().any(|step| step.waits.iter().any(|wait| wait.event == *event && wait.waits.count() > 0))
    };
    let parts: Vec<&(&str, &str)> = PARTS.iter().filter(part).collect();
    let mut header =
        vec!["step", "kind", if is_open { "target/s" } else { "under way" }, "operations/s", "Gbit/s up", "down"];
    header.extend(["mean", "p50", "p99", "p99.9", "max"]);
    header.extend(parts.iter().map(|(_, heading)| *heading));
    let mut grid = Grid::new(2, header);
    let mut failed = Grid::new(2, ["step", "kind", "errors", "% of operations"]);
    for step in &run.steps {
        for operations in step.operations.iter().filter(|operations| operations.count > 0) {
            let load = match step.load.rate_operations_per_s {
                Some(rate) => number(Some(rate)),
                None => step.load.sessions.map_or_else(|| UNKNOWN.to_owned(), |it| group_thousands(f64::from(it))),
            };
            let finished = operations.count - operations.errors;
            let mut row = vec![step.label.clone(), operations.kind.clone(), load];
            row.push(number(rate(Some(finished), step.window.duration_ns)));
            row.extend(gigabits(step));
            let times = &operations.response;
            row.push(mean(times));
            row.extend([0.5, 0.99, 0.999].map(|part| quantile(times, part)));
            row.push(longest(times));
            // Waits are those of all kinds that are answered; bulk flows have none.
            let is_answered = !matches!(operations.kind.as_str(), "send" | "receive");
            row.extend(parts.iter().map(|(event, _)| {
                let wait = step.waits.iter().find(|wait| wait.event == *event).filter(|_| is_answered);
                wait.map_or_else(|| NONE.to_owned(), |wait| mean(&wait.times()))
            }));
            if operations.errors > 0 {
                let (errors, all) = (operations.errors as f64, operations.count as f64);
                let counts = [group_thousands(errors), share(Some(errors / all))];
                failed.push([step.label.clone(), operations.kind.clone()].into_iter().chain(counts).collect());
            }
            grid.push(row);
        }
    }
    if grid.is_empty() {
        return Ok(());
    }
    links(paper, run)?;
    let due = if is_open { "from due to finished" } else { "from sent to finished" };
    paper.table(&format!("Load (times {due}; network, server and disk: means of the parts of an answer)"), &grid)?;
    if !failed.is_empty() {
        paper.table("Operations that ended in errors", &failed)?;
    }
    spread::write(paper, run)
}

/// Of all operations of a step together.
fn gigabits(step: &Step) -> [String; 2] {
    let of = |side, rate| NetworkEnd::sum_of(&step.network, side, rate);
    let shown = |bits: Option<f64>| bits.map_or_else(|| UNKNOWN.to_owned(), |bits| format!("{:.3}", bits / 1e9));
    let up = of(NetworkSide::Server, NetworkEnd::received_bits_per_s)
        .or_else(|| of(NetworkSide::Client, NetworkEnd::sent_bits_per_s));
    [shown(up), shown(of(NetworkSide::Client, NetworkEnd::received_bits_per_s))]
}

/// Links from one host to several servers, beside each other: one row for each server; nothing where a run has only one.
fn links(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let Some(matrix) = NetworkMatrix::of(run) else { return Ok(()) };
    let header = ["server", "round trip", "p99", "to", "from", "% of best", "all: to", "all: from", "stopped by"];
    let mut grid = Grid::new(1, header);
    for link in &matrix.links {
        grid.push(link_row(&matrix, link));
    }
    paper.table(LINKS, &grid)
}

fn link_row(matrix: &NetworkMatrix, link: &MatrixLink) -> Vec<String> {
    let time = |time: Option<Nanos>| time.map_or_else(|| UNKNOWN.to_owned(), |time| time.to_string());
    let gigabits = |bits: Option<f64>| match bits.map(|bits| bits / 1e9) {
        Some(rate) if rate < 10.0 => format!("{rate:.3}"),
        rate => number(rate),
    };
    let ways = |bulk: &Bulk| [gigabits(bulk.up), gigabits(bulk.down)];
    let mut row = vec![link.server.clone()];
    row.push(time(link.idle.map(|idle| idle.median)));
    row.push(time(link.idle.map(|idle| idle.p99)));
    row.extend(ways(&link.alone));
    row.push(share(matrix.share_of_best(link)));
    row.extend(ways(&link.together));
    row.push(stopped_by(&link.stops));
    row
}

/// `to: receive window; from: loss`, or once what is the same for both.
fn stopped_by(stops: &[NetworkStop]) -> String {
    let of = |from: NetworkSide| stops.iter().find(|stop| stop.from == from).map(NetworkStop::name);
    match (of(NetworkSide::Client), of(NetworkSide::Server)) {
        (Some(to), Some(from)) if to == from => to,
        (Some(to), Some(from)) => format!("to: {to}; from: {from}"),
        (Some(to), None) => format!("to: {to}"),
        (None, Some(from)) => format!("from: {from}"),
        (None, None) => NONE.to_owned(),
    }
}
