//! The sections of a report on a run: text has them in this order, a page has those of each of its parts in this order.

use std::io;

use super::{failure, fleet, host, imported, map, replay, reported, requests, servers, stalls, transactions};
use crate::grid::{Column, Grid};
use crate::paper::Paper;
use crate::text::Detail;
use crate::trace;
use crate::words::{NONE, UNKNOWN, duration, mean, number, quantile, share};
use analysis::check::{Kind, Reached, steps};
use analysis::{
    ConnectionPoint, ConnectionSweep, Counted, LikeRow, Measured, Together, TogetherPoint, Vocabulary, is_host_load,
    is_on_servers, like_rows,
};
use model::record::{
    CachePoint, ChannelKind, ChannelStats, Histogram, Like, NetworkEnd, NetworkSide, ProcessorTime, Run, Step, TcpStats,
};
use model::units::{Bytes, group_thousands, percent};

/// Where a page has a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Question,
    Load,
    Parts,
    Time,
    Histograms,
    Percentiles,
    Waits,
    Profile,
    Tiers,
    Network,
    Channels,
    Nodes,
    Devices,
    Processors,
    Traces,
    Generator,
    Reported,
    Source,
    /// Only text has it.
    Nowhere,
}

/// What decides which sections there are.
pub(crate) struct About<'a> {
    run: &'a Run,
    words: Vocabulary,
    on_servers: bool,
    is_host: bool,
}

/// Where a page has it, which runs have it, whether text does, and what writes it.
type Section = (Part, fn(&About<'_>) -> bool, fn(&About<'_>, Detail) -> bool, Writer);
type Writer = fn(&mut dyn Paper, &Run, Detail) -> io::Result<()>;

fn all(_: &About<'_>) -> bool {
    true
}

fn host(at: &About<'_>) -> bool {
    at.is_host
}

fn foreign(at: &About<'_>) -> bool {
    at.words == Vocabulary::Sessions && at.run.imported.is_some() && !at.is_host
}

fn users(at: &About<'_>) -> bool {
    at.words == Vocabulary::Users && !at.is_host
}

fn slob_on_servers(at: &About<'_>) -> bool {
    at.words == Vocabulary::Sessions && at.run.imported.is_none() && at.on_servers && !at.is_host
}

fn slob_in_engine(at: &About<'_>) -> bool {
    at.words == Vocabulary::Sessions && at.run.imported.is_none() && !at.on_servers && !at.is_host
}

fn sent(at: &About<'_>) -> bool {
    at.words == Vocabulary::Requests && !at.is_host
}

fn operated(at: &About<'_>) -> bool {
    !host(at) && !sent(at)
}

fn served(at: &About<'_>) -> bool {
    at.on_servers || users(at)
}

fn in_engine(at: &About<'_>) -> bool {
    !at.on_servers
}

fn always(_: &About<'_>, _: Detail) -> bool {
    true
}

fn never(_: &About<'_>, _: Detail) -> bool {
    false
}

fn full(_: &About<'_>, detail: Detail) -> bool {
    detail == Detail::Full
}

fn full_of_slob(at: &About<'_>, detail: Detail) -> bool {
    detail == Detail::Full && slob_on_servers(at)
}

fn full_or_served(at: &About<'_>, detail: Detail) -> bool {
    detail == Detail::Full || at.on_servers
}

const SECTIONS: [Section; 52] = [
    (Part::Question, all, always, |paper, run, _| write_check(paper, run)),
    (Part::Question, all, always, |paper, run, _| write_like(paper, run)),
    (Part::Question, all, always, |paper, run, _| failure::write(paper, run)),
    (Part::Question, all, always, |paper, run, _| replay::write(paper, run)),
    (Part::Question, all, always, |paper, run, _| map::write(paper, run)),
    (Part::Parts, all, always, fleet::write),
    (Part::Load, host, always, |paper, run, _| host::write(paper, run)),
    (Part::Load, foreign, always, |paper, run, _| imported::throughput(paper, run)),
    (Part::Load, users, always, |paper, run, _| transactions::rates(paper, run)),
    (Part::Load, users, always, |paper, run, _| transactions::kinds(paper, run)),
    (Part::Load, users, always, |paper, run, _| super::write_connects(paper, run)),
    (Part::Load, slob_on_servers, always, |paper, run, _| servers::operations(paper, run)),
    (Part::Load, slob_in_engine, always, |paper, run, _| super::throughput(paper, run)),
    (Part::Load, slob_in_engine, always, |paper, run, _| super::reads_and_processors(paper, run)),
    (Part::Load, sent, always, |paper, run, _| write_together(paper, run)),
    (Part::Load, sent, always, |paper, run, _| write_connections(paper, run)),
    (Part::Load, sent, always, |paper, run, _| requests::throughput(paper, run)),
    (Part::Load, sent, always, |paper, run, _| requests::kinds(paper, run)),
    (Part::Generator, sent, always, requests::generator),
    (Part::Profile, operated, never, |paper, run, _| super::profile(paper, run)),
    (Part::Tiers, served, always, |paper, run, _| servers::blocks(paper, run)),
    (Part::Tiers, in_engine, never, |paper, run, _| super::caches(paper, run)),
    (Part::Profile, served, always, |paper, run, _| servers::log(paper, run)),
    (Part::Profile, served, always, |paper, run, _| servers::commit_latency(paper, run)),
    (Part::Profile, served, always, |paper, run, _| servers::locks(paper, run)),
    (Part::Profile, all, full_of_slob, |paper, run, _| super::of_run(paper, run)),
    (Part::Network, all, always, |paper, run, _| write_network(paper, run)),
    (Part::Channels, all, always, write_channels),
    (Part::Load, all, always, |paper, run, _| imported::instances(paper, run)),
    (Part::Time, all, always, super::write_rounds),
    (Part::Time, all, full, |paper, run, _| stalls::write(paper, run)),
    (Part::Waits, all, full, |paper, run, _| super::waits(paper, run)),
    (Part::Waits, all, always, imported::waits_of_instances),
    (Part::Histograms, all, always, super::histograms),
    (Part::Histograms, sent, always, requests::response_histograms),
    (Part::Traces, all, always, |paper, run, _| trace::of_run(paper, run)),
    (Part::Percentiles, all, full, |paper, run, _| super::operations(paper, run)),
    (Part::Percentiles, all, full, |paper, run, _| super::ends::write(paper, run)),
    (Part::Tiers, all, full, |paper, run, _| super::write_flash(paper, run)),
    (Part::Tiers, all, full, |paper, run, _| write_cache_sizes(paper, run)),
    (Part::Profile, served, always, |paper, run, _| servers::shape(paper, run)),
    (Part::Profile, served, always, |paper, run, _| servers::sessions(paper, run)),
    (Part::Processors, served, always, |paper, run, _| servers::processors(paper, run)),
    (Part::Nodes, all, always, |paper, run, _| servers::nodes(paper, run)),
    (Part::Profile, all, always, servers::own_reports),
    (Part::Nowhere, served, full, |paper, run, _| servers::own(paper, run)),
    (Part::Devices, all, full_or_served, |paper, run, _| super::devices(paper, run)),
    (Part::Devices, all, never, |paper, run, _| super::whole_machine(paper, run)),
    (Part::Reported, all, always, reported::tables),
    (Part::Reported, all, full, |paper, run, _| reported::snapshots(paper, run)),
    (Part::Source, all, always, imported::reported_figures),
    (Part::Source, all, always, imported::not_understood),
];

impl<'a> About<'a> {
    pub(crate) fn new(run: &'a Run) -> Self {
        Self { run, words: Vocabulary::of(run), on_servers: is_on_servers(run), is_host: is_host_load(run) }
    }

    /// Writes the one section of text that comes first: what came of the requested load, or the rates and times of each step.
    /// Returns its place; none if the run has neither.
    pub(crate) fn first(&self, paper: &mut dyn Paper, detail: Detail) -> io::Result<Option<usize>> {
        for (place, section) in SECTIONS.iter().enumerate() {
            let (part, is_of, in_text, write) = section;
            if matches!(part, Part::Question | Part::Load) && is_of(self) && in_text(self, detail) {
                let mut watched = Watched { paper: &mut *paper, has_written: false };
                write(&mut watched, self.run, detail)?;
                if watched.has_written {
                    return Ok(Some(place));
                }
            }
        }
        Ok(None)
    }

    /// Writes the other sections that text has; `first` came before.
    pub(crate) fn others(&self, paper: &mut dyn Paper, detail: Detail, first: Option<usize>) -> io::Result<()> {
        let mut sections = SECTIONS
            .iter()
            .enumerate()
            .filter(|(place, (_, is_of, in_text, _))| Some(*place) != first && is_of(self) && in_text(self, detail));
        sections.try_for_each(|(_, (.., write))| write(paper, self.run, detail))
    }

    /// Writes those of a part of a page.
    pub(crate) fn part(&self, paper: &mut dyn Paper, part: Part) -> io::Result<()> {
        self.write(paper, Detail::Full, |(of, ..)| *of == part)
    }

    fn write(&self, paper: &mut dyn Paper, detail: Detail, is_wanted: impl Fn(&Section) -> bool) -> io::Result<()> {
        let mut sections = SECTIONS.iter().filter(|section| (section.1)(self) && is_wanted(section));
        sections.try_for_each(|(.., write)| write(paper, self.run, detail))
    }
}

/// A paper that knows whether anything was written on it.
struct Watched<'a> {
    paper: &'a mut dyn Paper,
    has_written: bool,
}

impl Paper for Watched<'_> {
    fn title(&mut self, title: &str) -> io::Result<()> {
        self.has_written = true;
        self.paper.title(title)
    }

    fn grid(&mut self, grid: &Grid) -> io::Result<()> {
        self.has_written = true;
        self.paper.grid(grid)
    }

    fn next_grid(&mut self, caption: &str, grid: &Grid) -> io::Result<()> {
        self.has_written = true;
        self.paper.next_grid(caption, grid)
    }

    fn aside(&mut self, text: &str) -> io::Result<()> {
        self.has_written = true;
        self.paper.aside(text)
    }

    fn remark(&mut self, text: &str) -> io::Result<()> {
        self.has_written = true;
        self.paper.remark(text)
    }
}

/// One row a depth; nothing of a run that did not compare volumes.
pub(crate) fn write_together(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let Some(found) = Together::of(run).filter(|found| !found.points.is_empty()) else { return Ok(()) };
    let (unit, scale) = match found.counted {
        Counted::Requests => ("requests/s", 1.0),
        Counted::Bytes => ("MB/s", 1e6),
    };
    let alone = found.volumes.iter().map(|(letter, _)| format!("{letter} alone"));
    let names = ["sum", "together", "% of sum", "+/- %", "s left out"].map(str::to_owned);
    let mut grid = Grid::new(0, ["outstanding each".to_owned()].into_iter().chain(alone).chain(names));
    for point in &found.points {
        let TogetherPoint { depth, alone, together, share, share_error, .. } = point;
        let number = |per_s: f64| group_thousands(per_s / scale);
        let (out, all) = point.left_out();
        let mut row = vec![group_thousands(f64::from(*depth))];
        row.extend(alone.iter().map(|Measured { per_s, .. }| number(*per_s)));
        row.extend([number(point.sum_per_s()), number(together.per_s), percent(*share), percent(*share_error)]);
        row.push(format!("{out} of {all}"));
        grid.push(row);
    }
    paper.table(&format!("Volumes alone and together ({unit}, from medians of undisturbed seconds)"), &grid)
}

/// A table of each kind of work in each step, in the order in which they ran; nothing of a run that was no check.
pub(crate) fn write_check(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let mut grid = Grid::new(2, ["step", "work", "target/s", "done/s", "percentile", "reached", "once sent", "limit"]);
    for (label, kinds) in steps(run) {
        kinds.iter().for_each(|kind| grid.push(row(&label, kind)));
    }
    if grid.is_empty() { Ok(()) } else { paper.table("Requested load, and what came of it", &grid) }
}

fn row(label: &str, kind: &Reached) -> Vec<String> {
    let (scale, unit) = if kind.kind == Kind::Scan { (1e6, " MB") } else { (1.0, "") };
    let rate = |per_s: Option<f64>| number(per_s.map(|per_s| per_s / scale)) + unit;
    let value = |value: Option<analysis::QuantileValue>, absent: &str| {
        value.map_or_else(|| absent.to_owned(), |value| value.to_string())
    };
    vec![
        label.to_owned(),
        kind.kind.noun().to_owned(),
        rate(Some(kind.asked_per_s)),
        rate(kind.per_s),
        kind.quantile_name(),
        value(kind.value, UNKNOWN),
        value(kind.service, NONE),
        kind.within.map_or_else(|| NONE.to_owned(), |within| within.limit.to_string()),
    ]
}

/// Sizes of a table.
const MAX_SIZES: usize = 10;
/// Doublings below the cache of the run that are shown.
const BELOW: u32 = 3;

/// Hit ratios over the size of the cache, a row each step; nothing where no step has them.
pub(crate) fn write_cache_sizes(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let points = |step: &Step| step.cache_curve.as_ref().map(|curve| curve.points.clone()).unwrap_or_default();
    let own = run.target.cache_bytes.unwrap_or(0);
    let is_shown = |point: &CachePoint| point.cache_bytes.is_power_of_two() && point.cache_bytes >= own >> BELOW;
    let mut sizes: Vec<u64> =
        run.steps.iter().flat_map(points).filter(is_shown).map(|point| point.cache_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes.truncate(MAX_SIZES);
    if sizes.is_empty() {
        return Ok(());
    }
    let names = sizes.iter().map(|size| Bytes(*size).to_string());
    let mut grid = Grid::new(1, ["step".to_owned()].into_iter().chain(names));
    for step in &run.steps {
        let known = points(step);
        if known.is_empty() {
            continue;
        }
        let ratio = |size: &u64| {
            let point = known.iter().find(|point| point.cache_bytes == *size);
            point.map_or_else(|| UNKNOWN.to_owned(), |point| share(Some(point.hit_ratio)))
        };
        grid.push([step.label.clone()].into_iter().chain(sizes.iter().map(ratio)).collect());
    }
    paper.table("Hit % of a buffer cache of another size (layer: engine; by how soon blocks were touched again)", &grid)
}

/// One row for each number of connections; nothing of a run that did not vary them.
pub(crate) fn write_connections(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let Some(found) = ConnectionSweep::of(run) else { return Ok(()) };
    let (unit, scale) = match found.counted {
        Counted::Requests => ("IOPS", 1.0),
        Counted::Bytes => ("MB/s", 1e6),
    };
    let least = found.points.first().map_or(1.0, |first| first.measured.per_s);
    let mut grid =
        Grid::new(1, ["connections", "in all", unit, "+/- %", "x first", "mean", "CPU us each", "full", "s left out"]);
    for point in &found.points {
        let ConnectionPoint { each, all, measured, mean, processor_us, full, .. } = point;
        let known = |text: Option<String>| text.unwrap_or_else(|| UNKNOWN.to_owned());
        grid.push(vec![
            each.to_string(),
            all.to_string(),
            group_thousands(measured.per_s / scale),
            percent(2.0 * measured.error_per_s / measured.per_s),
            format!("{:.2}", measured.per_s / least),
            known(mean.map(|mean| mean.to_string())),
            number(*processor_us),
            if full.is_some() { "yes" } else { "no" }.to_owned(),
            format!("{} of {}", measured.left_out, measured.left_out + measured.seconds),
        ]);
    }
    let depth = group_thousands(found.depth.into());
    let title = format!(
        "Connections of each thread to each path, with {depth} outstanding (medians of undisturbed seconds; CPU: of this process; \
         full: no room for more calls)"
    );
    paper.table(&title, &grid)
}

/// A table of each figure in each step; nothing of a run that is like no production.
pub(crate) fn write_like(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    let Some(like) = &run.like else { return Ok(()) };
    let rows = like_rows(run);
    let mut grid = Grid::new(2, ["step", "figure", "production", "times", "target", "reached", "difference"]);
    // Of what is neither asked for nor counted there is nothing to compare.
    rows.iter().filter(|row| row.asked.or(row.reached).is_some()).for_each(|row| grid.push(cells(row)));
    if grid.is_empty() {
        return Ok(());
    }
    paper.table(&title(like), &grid)?;
    let gaps = like.aspects.iter().filter_map(|aspect| Some((aspect.figure, aspect.gap.as_ref()?)));
    for (figure, gap) in gaps {
        paper.remark(&format!("{}: {gap}.", figure.name()))?;
    }
    paper.remark(
        "Difference: reached compared with that multiple of production. Target is `-` where a metric is not reproduced, and reached \
         `?` where the database does not count it.",
    )
}

fn title(like: &Like) -> String {
    let moment = match like.moments.as_slice() {
        [only] => only.words.clone(),
        hours => format!("{} hours of its day", hours.len()),
    };
    format!("Like {}, {moment}", like.database)
}

fn cells(row: &LikeRow) -> Vec<String> {
    let scale = row.figure.scale();
    let scaled = |value: f64| number(Some(value / scale));
    vec![
        row.step.clone(),
        row.figure.name().to_owned(),
        scaled(row.production),
        ((row.times * 100.0).round() / 100.0).to_string(),
        row.asked.map_or_else(|| NONE.to_owned(), scaled),
        row.reached.map_or_else(|| UNKNOWN.to_owned(), scaled),
        row.difference().map_or_else(|| NONE.to_owned(), |share| format!("{:+.1} %", share * 100.0)),
    ]
}

const TITLE: &str = "Both ends of the network (% of the time in which connections had something to send; 100 % = one thread, one processor)";

/// Whether anything is known of the ends of a network.
pub(crate) fn is_known(run: &Run) -> bool {
    run.steps.iter().any(|step| !step.network.is_empty())
}

/// One row for each end of each step; nothing without any.
pub(crate) fn write_network(paper: &mut dyn Paper, run: &Run) -> io::Result<()> {
    if !is_known(run) {
        return Ok(());
    }
    let mut ends = Vec::new();
    for step in &run.steps {
        for side in [NetworkSide::Client, NetworkSide::Server] {
            for end in step.network.iter().filter(|end| end.side == side) {
                let server = end.server.as_ref().map_or_else(String::new, |server| format!(", {server}"));
                ends.push(([step.label.clone(), format!("{}{server}", side.name())], end));
            }
        }
    }
    let grid = Grid::of(["step", "end"], &NETWORK, ends);
    paper.table(TITLE, &grid.with_known_columns())
}

const NETWORK: [Column<NetworkEnd>; 14] = [
    ("flows", |end| known_count(end.tcp.as_ref().map(|tcp| f64::from(tcp.flows)))),
    ("sends Gbit/s", |end| number(end.sent_bits_per_s().map(|bits| bits / 1e9))),
    ("receives", |end| number(end.received_bits_per_s().map(|bits| bits / 1e9))),
    ("RTT", |end| known_time(end.tcp.as_ref().and_then(|tcp| tcp.rtt_ns.mean()))),
    ("least RTT", |end| known_time(end.tcp.as_ref().and_then(|tcp| tcp.min_rtt_ns).map(|ns| ns as f64))),
    ("by window %", |end| share(sends(end).and_then(|tcp| tcp.share_of_busy(tcp.rwnd_limited_ns)))),
    ("by buffer %", |end| share(sends(end).and_then(|tcp| tcp.share_of_busy(tcp.sndbuf_limited_ns)))),
    ("sent again %", |end| share(sends(end).and_then(TcpStats::resent_share))),
    ("window", |end| known_count(sends(end).and_then(|tcp| tcp.cwnd_segments.mean()))),
    ("path MTU", |end| {
        let lowest = end.tcp.as_ref().and_then(|tcp| tcp.path_mtu_bytes.lowest());
        known_count(lowest.map(|bytes| bytes as f64))
    }),
    ("thread %", |end| of_time(end, end.busiest_thread.map(|thread| thread.running_ns))),
    ("waits %", |end| of_time(end, end.busiest_thread.map(|thread| thread.waiting_ns))),
    ("processor %", |end| of_time(end, busiest(end).map(|processor| processor.busy_ns))),
    ("softirq %", |end| of_time(end, busiest(end).map(|processor| processor.softirq_ns))),
];

/// An end that only acknowledges has nothing to be held back from.
fn sends(end: &NetworkEnd) -> Option<&TcpStats> {
    end.tcp.as_ref().filter(|tcp| tcp.bytes_sent > tcp.bytes_received / 100)
}

fn busiest(end: &NetworkEnd) -> Option<&ProcessorTime> {
    end.processors.iter().max_by_key(|processor| processor.busy_ns)
}

fn of_time(end: &NetworkEnd, ns: Option<u64>) -> String {
    share(ns.and_then(|ns| of(ns, end.elapsed_ns)))
}

fn known_time(ns: Option<f64>) -> String {
    ns.map_or_else(|| UNKNOWN.to_owned(), |ns| duration(Some(ns as u64)))
}

fn known_count(value: Option<f64>) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), group_thousands)
}

const PATHS: &str = "Paths (times from sent on a path to answered; NULL: an empty call; %: of requests, or of the time with data to send)";
const CONNECTIONS: &str = "Connections of each path (those of the same number of all threads together)";
const MEMBERS: &str =
    "Members of disk groups (times from sent to a member to answered; a mirrored write counts on each)";

/// What has a channel's figures per second.
type ChannelColumn = (&'static str, fn(&(ChannelStats, &Step)) -> String);

const COLUMNS: [ChannelColumn; 25] = [
    (
        "connections",
        |(it, _)| if it.kind == ChannelKind::Member { UNKNOWN.to_owned() } else { count(it.channels.into()) },
    ),
    ("reads/s", |(it, step)| per_s(Some(it.reads), step, 1.0)),
    ("writes/s", |(it, step)| per_s(Some(it.writes), step, 1.0)),
    ("read MB/s", |(it, step)| per_s(Some(it.read_bytes), step, 1e6)),
    ("write MB/s", |(it, step)| per_s(Some(it.write_bytes), step, 1e6)),
    ("read mean", |(it, _)| known(&it.read, mean)),
    ("p99", |(it, _)| known(&it.read, |times| quantile(times, 0.99))),
    ("write mean", |(it, _)| known(&it.write, mean)),
    ("p99", |(it, _)| known(&it.write, |times| quantile(times, 0.99))),
    ("NULL mean", |(it, _)| known(&it.nothing, mean)),
    ("outstanding", |(it, step)| number(mean_outstanding(it, step))),
    ("most", |(it, _)| count(it.most_outstanding.into())),
    ("errors", |(it, _)| number(Some(it.errors as f64))),
    ("queued %", |(it, _)| share(it.queued.and_then(|queued| of(queued, it.reads + it.writes)))),
    ("queued mean", |(it, _)| {
        let mean_ns = it.queued.zip(it.queued_ns).map(|(queued, ns)| ns.checked_div(queued));
        mean_ns.map_or_else(|| UNKNOWN.to_owned(), duration)
    }),
    ("sent again", |(it, _)| counted(it.retries)),
    ("reconnects", |(it, _)| counted(it.reconnects)),
    ("TCP resent", |(it, _)| counted(it.segments_resent)),
    ("by window %", |(it, _)| share(it.rwnd_limited_ns.zip(it.busy_ns).and_then(|(limited, busy)| of(limited, busy)))),
    // Shown where there were any.
    ("COMMITs for room", |(it, _)| counted(it.room_commits.filter(|count| *count > 0))),
    ("resent after restart", |(it, _)| counted(it.resent_writes.filter(|count| *count > 0))),
    ("MB", |(it, _)| number(it.resent_bytes.filter(|bytes| *bytes > 0).map(|bytes| bytes as f64 / 1e6))),
    ("repairs", |(it, _)| counted(it.repairs)),
    ("drops", |(it, _)| counted(it.drops)),
    ("resynced MB", |(it, _)| number(it.resynced_bytes.map(|bytes| bytes as f64 / 1e6))),
];

fn per_s(value: Option<u64>, step: &Step, unit: f64) -> String {
    let seconds = step.window.duration_ns as f64 / 1e9;
    number(value.filter(|_| seconds > 0.0).map(|value| value as f64 / unit / seconds))
}

fn known(times: &Histogram, show: fn(&Histogram) -> String) -> String {
    if times.count() == 0 { UNKNOWN.to_owned() } else { show(times) }
}

fn mean_outstanding(channel: &ChannelStats, step: &Step) -> Option<f64> {
    of(channel.outstanding_ns, step.window.duration_ns)
}

fn of(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn count(value: u64) -> String {
    group_thousands(value as f64)
}

fn counted(value: Option<u64>) -> String {
    number(value.map(|value| value as f64))
}

/// The tables of paths and of members, and in full that of connections; nothing where there are none.
pub(crate) fn write_channels(paper: &mut dyn Paper, run: &Run, detail: Detail) -> io::Result<()> {
    let is_member = |channel: &ChannelStats| channel.kind == ChannelKind::Member;
    let several = run.steps.iter().flat_map(|step| &step.channels).filter(|one| !is_member(one));
    let are_apart = several.clone().any(|one| one.kind == ChannelKind::Connection && one.name != "1");
    table(paper, run, PATHS, ["step", "server", "path"], |step| {
        let all: Vec<ChannelStats> = step.channels.iter().filter(|one| !is_member(one)).cloned().collect();
        let named = |path: ChannelStats| ([path.of.clone(), path.name.clone()], path);
        ChannelStats::groups(&all).into_iter().map(named).collect()
    })?;
    if detail == Detail::Full && are_apart {
        table(paper, run, CONNECTIONS, ["step", "path", "connection"], |step| {
            let apart = step.channels.iter().filter(|one| one.kind == ChannelKind::Connection);
            let named = |one: &ChannelStats| {
                let path = one.within.as_ref().unwrap_or(&one.of);
                ([path.clone(), one.name.clone()], one.clone())
            };
            apart.map(named).collect()
        })?;
    }
    table(paper, run, MEMBERS, ["step", "group", "member"], |step| {
        let named = |one: &ChannelStats| {
            let group = one.within.as_ref().map_or_else(|| one.of.clone(), |within| format!("{} {within}", one.of));
            ([group, one.name.clone()], one.clone())
        };
        step.channels.iter().filter(|one| is_member(one)).map(named).collect()
    })
}

fn table(
    paper: &mut dyn Paper,
    run: &Run,
    title: &str,
    keys: [&'static str; 3],
    channels: impl Fn(&Step) -> Vec<([String; 2], ChannelStats)>,
) -> io::Result<()> {
    let rows = run.steps.iter().flat_map(|step| {
        let of_step = channels(step).into_iter();
        of_step.map(move |([of, name], channel)| ([step.label.clone(), of, name], (channel, step)))
    });
    paper.table(title, &Grid::of(keys, &COLUMNS[..], rows).with_known_columns())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::Terminal;
    use model::record::{Spread, Step, ThreadTime, sample};

    fn rendered(run: &Run) -> String {
        let mut out = Vec::new();
        write_network(&mut Terminal { out: &mut out, width: 300 }, run).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_end_has_a_row_and_what_is_unknown_no_column() {
        let mut run = sample::sweep(5);
        assert_eq!(rendered(&run), "", "no network was tested");
        let mut step = Step::new(0, "c8");
        let end = |side, sent: u64, received: u64| NetworkEnd {
            side,
            elapsed_ns: 1_000_000_000,
            sent_bytes: Some(sent),
            received_bytes: Some(received),
            tcp: Some(TcpStats {
                flows: 8,
                busy_ns: 8_000_000_000,
                rwnd_limited_ns: 2_000_000_000,
                bytes_sent: sent,
                bytes_received: received,
                rtt_ns: Spread { count: 1, sum: 41_000_000, least: 1, most: 1 },
                ..TcpStats::default()
            }),
            busiest_thread: Some(ThreadTime { running_ns: 310_000_000, waiting_ns: 0 }),
            ..NetworkEnd::default()
        };
        step.network = vec![end(NetworkSide::Server, 0, 1_176_250_000), end(NetworkSide::Client, 1_176_250_000, 0)];
        run.steps = vec![step];
        let text = rendered(&run);
        let rows: Vec<&str> = text.lines().filter(|line| line.contains("c8")).collect();
        assert!(rows[0].contains("client") && rows[0].contains("9.4") && rows[0].contains("25"), "{text}");
        assert!(rows[1].contains("server") && rows[1].contains("41") && rows[1].contains("31"), "{text}");
        assert!(!text.contains("least RTT") && !text.contains("processor %"), "{text}");
    }

    fn run() -> Run {
        let mut run = sample::sweep(10);
        let mut times = Histogram::default();
        times.record_n(400_000, 1_000);
        let step = &mut run.steps[0];
        let seconds = step.window.duration_ns / 1_000_000_000;
        let channel = |kind, within: &str, name: &str, reads| ChannelStats {
            kind,
            of: "filer".to_owned(),
            within: Some(within.to_owned()),
            name: name.to_owned(),
            channels: 2,
            reads,
            read: times.clone(),
            outstanding_ns: step.window.duration_ns * 3 / 2,
            most_outstanding: 64,
            ..ChannelStats::default()
        };
        let connections = [("10.0.0.1", "1", 1_000), ("10.0.0.1", "2", 500), ("10.0.0.2", "1", 7)];
        let paths = connections.map(|(path, name, rate)| channel(ChannelKind::Connection, path, name, rate * seconds));
        let member = ChannelStats { repairs: Some(3), ..channel(ChannelKind::Member, "fg1", "/u01/a", 250 * seconds) };
        step.channels = paths.into_iter().chain([member]).collect();
        run
    }

    fn text(run: &Run, detail: Detail) -> String {
        let mut out = Vec::new();
        write_channels(&mut Terminal { out: &mut out, width: 200 }, run, detail).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn paths_are_the_sum_of_their_connections_and_members_stand_alone() {
        let text = text(&run(), Detail::Brief);
        let row = |name: &str| text.lines().find(|line| line.contains(name)).unwrap_or_default().to_owned();
        let words = |name: &str| row(name).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert!(words("10.0.0.1")[3..5] == ["4", "1,500"] && words("10.0.0.1").contains(&"3.0".to_owned()), "{text}");
        assert!(words("10.0.0.2")[3..5] == ["2", "7.0"], "{text}");
        assert!(words("/u01/a").contains(&"250".to_owned()) && row("/u01/a").contains("fg1"), "{text}");
        assert!(text.contains("repairs") && !text.contains("TCP resent"), "{text}");
    }

    #[test]
    fn connections_have_rows_of_their_own_in_full_only() {
        let run = run();
        assert!(!text(&run, Detail::Brief).contains("Connections of"));
        assert!(text(&run, Detail::Full).contains("Connections of"));
    }

    #[test]
    fn a_run_without_channels_has_no_table() {
        assert_eq!(text(&sample::sweep(10), Detail::Full), "");
    }
}
