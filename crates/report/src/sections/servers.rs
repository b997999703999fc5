//! What was done on database servers: operations, where blocks came from, the write-ahead log and commits.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use crate::grid::Grid;
use crate::paper::Paper;
use crate::text::Detail;
use crate::words::{NONE, UNKNOWN, duration, mean, number, quantile, share};
use analysis::{
    Beside, BesideUnit, Figures, MAX_AGREEING, Processors, Served, imbalance, is_on_server, signed_percent, wait,
};
use model::record::facts::SETTING;
use model::record::{Activity, Gauge, Histogram, Metric, OwnReport, Run, SentAs, Step, Term};
use model::units::{Nanos, group_thousands, percent};

/// Name of the wait in which an update's commit is timed.
pub(crate) const COMMIT: &str = "commit";

/// One step and what its servers reported.
struct Seen<'a> {
    step: &'a Step,
    figures: Figures<'a>,
    served: Served<'a>,
}

/// Heading and value of a column.
type Column = (&'static str, fn(&Seen<'_>) -> String);

/// What was seen in each step, for a table of them.
fn seen(run: &Run) -> impl Iterator<Item = Seen<'_>> {
    run.steps.iter().map(|step| Seen { step, figures: Figures(step), served: Served::of(run, step) })
}

/// One row a step, of the steps that `is_reported` of; nothing if there are none.
fn steps(
    paper: &mut dyn Paper,
    run: &Run,
    title: &str,
    columns: &[Column],
    is_reported: fn(&Seen<'_>) -> bool,
) -> io::Result<()> {
    paper.table(title, &grid(run, columns, is_reported))
}

fn grid(run: &Run, columns: &[Column], is_reported: fn(&Seen<'_>) -> bool) -> Grid {
    Grid::of(["step"], columns, seen(run).filter(is_reported).map(|seen| ([seen.step.label.clone()], seen)))
}

/// A count; `-` for none.
fn count(count: Option<u64>) -> String {
    number_of(count, |count| group_thousands(count as f64))
}

fn number_of(count: Option<u64>, show: impl Fn(u64) -> String) -> String {
    match count {
        None => UNKNOWN.to_owned(),
        Some(0) => NONE.to_owned(),
        Some(count) => show(count),
    }
}

fn response(seen: &Seen<'_>, show: fn(&Histogram) -> String) -> String {
    seen.figures.response().map_or_else(|| NONE.to_owned(), |times| show(&times))
}

const OPERATIONS: [Column; 9] = [
    ("sessions", |seen| super::sessions(seen.step)),
    ("operations/s", |seen| number(seen.figures.operations_per_s())),
    ("updates/s", |seen| number(Some(updates_per_s(seen)))),
    ("commits/s", |seen| number(seen.figures.commits_per_s())),
    ("mean", |seen| response(seen, mean)),
    ("p50", |seen| response(seen, |times| quantile(times, 0.5))),
    ("p99", |seen| response(seen, |times| quantile(times, 0.99))),
    ("p99.9", |seen| response(seen, |times| quantile(times, 0.999))),
    ("max", |seen| response(seen, |times| duration(times.max_ns()))),
];

fn updates_per_s(seen: &Seen<'_>) -> f64 {
    let updates = seen.step.operations.iter().filter(|operation| operation.kind == "update");
    let updates: u64 = updates.map(|operation| operation.count).sum();
    analysis::rate(Some(updates), seen.step.window.duration_ns).unwrap_or(0.0)
}

/// How many operations, and how long they took.
pub(crate) fn operations(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let by = run.target.facts.other.get("timed_by").map_or(String::new(), |who| format!("; timed by the {who}"));
    let title = format!("Operations and their response times (layer: operation{by})");
    steps(paper, run, &title, &OPERATIONS, |_| true)?;
    super::spread::write(paper, run)
}

const BLOCKS: [Column; 7] = [
    ("logical reads", |seen| number(seen.served.value(Metric::LogicalReads))),
    ("buffer hits", |seen| number(seen.served.value(Metric::CacheHits))),
    ("hit %", |seen| share(seen.served.hit_ratio())),
    ("buffer misses", |seen| number(seen.served.value(Metric::BufferMisses))),
    ("page-cache hits", |seen| number(seen.served.value(Metric::PageCacheHits))),
    ("device reads", |seen| number(seen.served.value(Metric::Reads))),
    ("device MB/s", |seen| number(seen.served.value(Metric::ReadMegabytes))),
];

/// Of a database that reads past the page cache and counts that itself.
const DIRECT_BLOCKS: [Column; 5] = [BLOCKS[0], BLOCKS[1], BLOCKS[2], BLOCKS[5], BLOCKS[6]];

/// Reads that sessions waited for, by how many blocks they were of, where the server counts that.
const READS: [Column; 5] = [
    ("single-block", |seen| number(seen.served.activity_per_s(Activity::SingleBlockReads))),
    ("of several blocks", |seen| number(seen.served.activity_per_s(Activity::BatchedReads))),
    ("of neighbours", |seen| number(seen.served.activity_per_s(Activity::MultiBlockReads))),
    ("past the cache", |seen| number(seen.served.activity_per_s(Activity::ReadsPastCache))),
    ("single-block %", |seen| {
        let share_of = |reads: [u64; 3]| {
            let all = reads.iter().sum::<u64>() + seen.served.activity(Activity::ReadsPastCache).unwrap_or(0);
            (all > 0).then(|| reads[0] as f64 / all as f64)
        };
        share(seen.served.reads_by_blocks().and_then(share_of))
    }),
];

const SPLIT_UNKNOWN: &str = "Which buffer misses the page cache answered is not known. That takes /proc/PID/io of the server's \
                             sessions: only its own user and root can read it, on its machine.";

const SPLIT_UNKNOWN_OF: &str = "Which buffer misses the page cache answered is not known";

const SEEN_BY_TIMES: &str = " Read times below still show them: reads of microseconds came from memory.";
const READ_AHEAD: &str = "More blocks came from the device than the server missed: the kernel reads ahead.";

/// Where blocks came from, side by side, and how many at once.
pub(crate) fn blocks(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    sources(paper, run)?;
    let title = "Reads that the load's sessions waited for, per second (layer: server)";
    let grid = grid(run, &READS, |seen| seen.served.reads_by_blocks().is_some());
    // Older runs do not know reads past the cache.
    paper.table(title, &grid)
}

fn sources(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let is_reported = |seen: &Seen<'_>| !seen.step.servers.is_empty();
    if run.target.counts_device_reads() {
        let whence = match run.target.reads_directly() {
            true => "past the page cache",
            false => "some of which a page cache may have answered",
        };
        let title = format!(
            "Where blocks came from, per second (layer: server; device reads: its own count of them, {whence})"
        );
        return steps(paper, run, &title, &DIRECT_BLOCKS, is_reported);
    }
    let title = "Where blocks came from, per second (layer: server; device reads: OS, blocks fetched for its sessions)";
    steps(paper, run, title, &BLOCKS, is_reported)?;
    let is_unknown =
        |seen: &Seen<'_>| seen.served.buffer_misses().is_some() && seen.served.value(Metric::PageCacheHits).is_none();
    if seen(run).any(|seen| is_unknown(&seen)) {
        let is_timed = run.steps.iter().any(|step| !step.traces.is_empty());
        let unknown = match run.target.facts.server.terms.get(&Term::DirectReads) {
            Some(setting) => format!("{SPLIT_UNKNOWN_OF}: the server reads through it. With `{setting}` it does not."),
            None => SPLIT_UNKNOWN.to_owned(),
        };
        paper.remark(&format!("{unknown}{}", if is_timed { SEEN_BY_TIMES } else { "" }))?;
    }
    let reads_ahead = |seen: Seen<'_>| {
        let fetched = seen.served.value(Metric::Reads).zip(seen.served.value(Metric::BufferMisses));
        fetched.is_some_and(|(reads, misses)| reads > misses)
    };
    if seen(run).any(reads_ahead) { paper.remark(READ_AHEAD) } else { Ok(()) }
}

const LOG: [Column; 5] = [
    ("WAL MB/s", |seen| number(seen.served.value(Metric::RedoMegabytes))),
    ("records/s", |seen| number(seen.served.activity_per_s(Activity::LogRecords))),
    ("bytes/update", bytes_for_each_update),
    ("full-page images/s", |seen| number(seen.served.activity_per_s(Activity::LogBlockImages))),
    ("images %", images),
];

/// The log of a server that writes changed blocks in place later, as far as its redo covers them.
const REDO: [Column; 4] = [
    ("redo MB/s", |seen| number(seen.served.value(Metric::RedoMegabytes))),
    ("bytes/update", bytes_for_each_update),
    ("log writes/s", |seen| number(seen.served.activity_per_s(Activity::LogWrites))),
    ("log syncs/s", |seen| number(seen.served.activity_per_s(Activity::LogSyncs))),
];

const HELD_BACK: [Column; 4] = [
    ("blocks written/s", |seen| number(seen.served.value(Metric::BlocksWritten))),
    ("dirty blocks", |seen| count(seen.served.level(Gauge::DirtyBlocks))),
    ("checkpoint age MB", |seen| number(seen.served.level(Gauge::CheckpointAgeBytes).map(|bytes| bytes as f64 / 1e6))),
    ("purge backlog", |seen| count(seen.served.level(Gauge::PurgeBacklog))),
];

const LOCKS: [Column; 4] = [
    ("lock waits", |seen| count(seen.served.activity(Activity::LockWaits))),
    ("mean wait", |seen| {
        // Without waits there is no mean; and servers count them in whole milliseconds.
        let shown = |ns: f64| if ns < 1e6 { "<1 ms".to_owned() } else { duration(Some(ns as u64)) };
        let mean = seen.served.mean_lock_wait_ns().map(shown);
        mean.unwrap_or_else(|| {
            if seen.served.activity(Activity::LockWaits) == Some(0) { NONE } else { UNKNOWN }.to_owned()
        })
    }),
    ("deadlocks", |seen| count(seen.served.activity(Activity::Deadlocks))),
    ("updates done again", |seen| count(seen.served.activity(Activity::UpdatesRepeated))),
];

const WRITES: [Column; 5] = [
    ("timed checkpoints", |seen| count(seen.served.activity(Activity::CheckpointsTimed))),
    ("requested", |seen| count(seen.served.activity(Activity::CheckpointsRequested))),
    ("blocks/s by checkpoints", |seen| number(seen.served.activity_per_s(Activity::BlocksWrittenByCheckpoints))),
    ("by background writer", |seen| number(seen.served.activity_per_s(Activity::BlocksWrittenInBackground))),
    ("by sessions", |seen| number(seen.served.session_writes_per_s())),
];

fn bytes_for_each_update(seen: &Seen<'_>) -> String {
    let updates = updates_per_s(seen);
    if updates > 0.0 { number(seen.served.wal_bytes_for_each(updates)) } else { NONE.to_owned() }
}

/// None is known where there are none; their share is at most this, since holes are left out of them.
fn images(seen: &Seen<'_>) -> String {
    match seen.served.activity_per_s(Activity::LogBlockImages) {
        Some(0.0) => NONE.to_owned(),
        _ => {
            seen.served.page_image_share().map_or_else(|| UNKNOWN.to_owned(), |most| format!("<={}", share(Some(most))))
        }
    }
}

const LOG_LEGEND: &str = "Full-page images: whole pages in the WAL, one for each page that changes first after a checkpoint. Images %: \
                          their share of the WAL, counted as full blocks, so at most that.";

fn keep_redo(run: &Run) -> bool {
    seen(run).any(|seen| seen.served.keeps_redo())
}

/// The log alone.
pub(crate) fn log_rates(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let is_reported = |seen: &Seen<'_>| seen.served.value(Metric::RedoMegabytes).is_some_and(|rate| rate > 0.0);
    if keep_redo(run) {
        return steps(paper, run, REDO_TITLE, &REDO, is_reported);
    }
    steps(paper, run, "Write-ahead log (layer: server; everybody's on it, not only this load's)", &LOG, is_reported)
}

const REDO_TITLE: &str = "Redo log (layer: server; everybody's, not only this load's)";

/// The log, and who writes changed blocks; nothing where the servers wrote nothing.
pub(crate) fn log(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let wrote = |seen: Seen<'_>| seen.served.value(Metric::RedoMegabytes).is_some_and(|rate| rate > 0.0);
    if !seen(run).any(wrote) {
        return Ok(());
    }
    let is_reported = |seen: &Seen<'_>| !seen.step.servers.is_empty();
    if keep_redo(run) {
        steps(paper, run, REDO_TITLE, &REDO, is_reported)?;
        let title = "Changed blocks (layer: server; everybody's; all but what was written: the largest seen)";
        // Not every such server reports how much it holds back.
        return paper.table(title, &grid(run, &HELD_BACK, is_reported).with_known_columns());
    }
    let title = "Write-ahead log (layer: server; everybody's on it, not only this load's)";
    steps(paper, run, title, &LOG, is_reported)?;
    paper.remark(LOG_LEGEND)?;
    let title = "Checkpoints begun, and blocks written to the page cache (layer: server; everybody's)";
    steps(paper, run, title, &WRITES, is_reported)
}

/// Sessions in each other's way; nothing where none was, or the servers do not count that.
pub(crate) fn locks(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let is_reported = |seen: &Seen<'_>| {
        [seen.served.activity(Activity::LockWaits), seen.served.activity(Activity::UpdatesRepeated)]
            .into_iter()
            .flatten()
            .any(|count| count > 0)
    };
    let title = "Locks of rows (layer: server; everybody's; updates done again: client, this load's)";
    steps(paper, run, title, &LOCKS, is_reported)
}

const COMMITS: [Column; 6] = [
    ("commits", |seen| commits(seen, |waits| group_thousands(waits.count() as f64))),
    ("mean", |seen| commits(seen, mean)),
    ("p50", |seen| commits(seen, |waits| quantile(waits, 0.5))),
    ("p99", |seen| commits(seen, |waits| quantile(waits, 0.99))),
    ("p99.9", |seen| commits(seen, |waits| quantile(waits, 0.999))),
    ("max", |seen| commits(seen, |waits| duration(waits.max_ns()))),
];

fn commits(seen: &Seen<'_>, show: fn(&Histogram) -> String) -> String {
    wait(seen.step, COMMIT).map_or_else(|| NONE.to_owned(), |wait| show(&wait.waits))
}

/// How long commits took, or why that is not known.
pub(crate) fn commit_latency(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let has_commits = |seen: &Seen<'_>| wait(seen.step, COMMIT).is_some();
    steps(paper, run, "Commits (layer: server; part of the update's time)", &COMMITS, has_commits)?;
    let untimed = seen(run).any(|seen| updates_per_s(&seen) > 0.0 && !has_commits(&seen));
    if !untimed {
        return Ok(());
    }
    let why =
        if run.target.facts.server.sent_as == Some(SentAs::Statement) { " (`--send batch` times them)" } else { "" };
    paper.aside(&format!("Commits were not timed apart: they are part of the update's time{why}."))
}

/// Facts that a brief report reports; the others are reported in full.
const BRIEF_FACTS: [&str; 5] = ["server_version", "connection", "send", "host_memory", "nodes"];

/// Facts and settings of the server, as `name=value`.
pub(crate) fn facts(run: &Run, detail: Detail) -> (String, String) {
    let buffer_cache = run.target.term(Term::BufferCache);
    let is_brief = |name: &str| BRIEF_FACTS.contains(&name) || name.strip_prefix(SETTING) == Some(buffer_cache);
    let shown = run.target.facts.shown().into_iter().filter(|(name, _)| detail == Detail::Full || is_brief(name));
    let (settings, facts): (Vec<_>, Vec<_>) = shown.partition(|(name, _)| name.starts_with(SETTING));
    let pairs = |pairs: Vec<(String, String)>| {
        let pair = |(name, value): &(String, String)| format!("{}={value}", name.trim_start_matches(SETTING));
        pairs.iter().map(pair).collect::<Vec<_>>().join(" ")
    };
    (pairs(facts), pairs(settings))
}

/// A table for each report; in a brief one, how many lines agree.
pub(crate) fn own_reports(paper: &mut dyn Paper, run: &Run, detail: Detail) -> io::Result<()> {
    let all = run.steps.iter().flat_map(|step| Beside::of(step).into_iter().map(move |beside| (step, beside)));
    if detail == Detail::Full {
        return all.into_iter().try_for_each(|(step, beside)| table(paper, &beside, &step.label));
    }
    let mut grid = Grid::new(2, ["step", "report", "figures that both have", "agree or are explained", "differ"]);
    for (step, beside) in all {
        let (agreeing, known) = beside.agreeing();
        if known == 0 {
            continue;
        }
        let counts = [known, agreeing, known - agreeing].map(|lines| count(Some(lines as u64)));
        grid.push([step.label.clone(), beside.report.kind.clone()].into_iter().chain(counts).collect());
    }
    let within = percent(MAX_AGREEING);
    paper.table(
        &format!(
            "The database's own report beside what was counted here ({within} % apart at most, or of a longer time)"
        ),
        &grid,
    )
}

fn table(paper: &mut dyn Paper, beside: &Beside<'_>, label: &str) -> io::Result<()> {
    let kind = beside.report.kind.as_str();
    let mut grid = Grid::new(1, ["figure", kind, "counted here", "difference", "why"]);
    for line in &beside.lines {
        let values = [line.reported, line.counted].map(|value| show(value, line.unit));
        let difference = line.difference().map_or_else(|| UNKNOWN.to_owned(), signed_percent);
        let why = line.why.map_or("", |why| why.words()).to_owned();
        grid.push([line.what.clone()].into_iter().chain(values).chain([difference, why]).collect());
    }
    let title = format!(
        "{kind} beside what was counted here, in {label} (snapshots {} to {}, instance {})",
        beside.report.begin_snapshot, beside.report.end_snapshot, beside.report.instance
    );
    paper.table(&title, &grid)?;
    paper.remark(&times(beside))?;
    for remark in &beside.report.remarks {
        paper.remark(remark)?;
    }
    Ok(())
}

/// How the times of both lie.
fn times(beside: &Beside<'_>) -> String {
    let OwnReport { kind, lead_ns, overlap_ns, lag_ns, file, .. } = beside.report;
    let (reported, ours) = beside.elapsed_ns;
    let of = |ns: u64| if ns == 0 { "an unknown time".to_owned() } else { duration(Some(ns)) };
    let file = file.as_ref().map(|file| format!(" The report is `{file}` beside the run.")).unwrap_or_default();
    let late = match *overlap_ns {
        0 => String::new(),
        late => format!(" and was complete only {} into it", Nanos(late)),
    };
    format!(
        "{kind} covers {}, the window here {}. Its first snapshot was requested {} before the window{late}. Its second was complete \
         {} after it.{file}",
        of(reported),
        of(ours),
        Nanos(*lead_ns),
        Nanos(*lag_ns),
    )
}

fn show(value: Option<f64>, unit: BesideUnit) -> String {
    match (value, unit) {
        (None, _) => UNKNOWN.to_owned(),
        (Some(count), BesideUnit::Count) => group_thousands(count),
        (Some(bytes), BesideUnit::Bytes) => format!("{} MB", number(Some(bytes / 1e6))),
        (Some(ns), BesideUnit::Time) => duration(Some(ns.round() as u64)),
    }
}

const SHAPE: [Column; 6] = [
    ("rows updated", |seen| count(seen.served.activity(Activity::RowsUpdated))),
    ("HOT %", hot),
    ("pages grown", |seen| count(seen.served.activity(Activity::TableBlocksGrown))),
    ("grown %", |seen| grown(seen.served.grown_share())),
    ("vacuums", |seen| count(seen.served.activity(Activity::Vacuums))),
    ("analyzes", |seen| count(seen.served.activity(Activity::Analyses))),
];

fn grown(share: Option<f64>) -> String {
    if share == Some(0.0) { NONE.to_owned() } else { self::share(share) }
}

fn hot(seen: &Seen<'_>) -> String {
    if seen.served.activity(Activity::RowsUpdated) == Some(0) {
        NONE.to_owned()
    } else {
        share(seen.served.hot_share())
    }
}

/// Whether the tables kept their shape; nothing where nothing was written to them.
pub(crate) fn shape(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let is_reported = |seen: &Seen<'_>| {
        let Seen { served, .. } = seen;
        let counts = [
            served.activity(Activity::RowsUpdated),
            served.activity(Activity::TableBlocksGrown),
            served.activity(Activity::Vacuums),
            served.activity(Activity::Analyses),
        ];
        // Rows of some servers are written over in place: then there is no shape to lose.
        let has_shape = served.activity(Activity::TableBlocksGrown).is_some() || served.hot_share().is_some();
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
    let title = "CPUs of this machine, 1.00 = one of them (layer: OS; `?`: the server runs elsewhere, or hides it)";
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
    ("transactions/s", |node| node.activity_per_s(Activity::Commits)),
    ("logical reads/s", |node| node.value(Metric::LogicalReads)),
    ("buffer misses/s", |node| node.value(Metric::BufferMisses)),
    ("device reads/s", |node| node.value(Metric::Reads)),
    ("WAL MB/s", |node| node.value(Metric::RedoMegabytes)),
];
/// What the last is called where the log is one of redo.
const BESIDE_REDO: &str = "redo MB/s";

/// Each node by itself, and how far they lie apart; nothing where there is one.
pub(crate) fn nodes(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let is_redo = seen(run).any(|seen| seen.served.keeps_redo());
    let heading = |name: &'static str| if is_redo && name == NODES[4].0 { BESIDE_REDO } else { name };
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
