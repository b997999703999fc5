//! Charts over the time of a run: throughput, bytes, latency, waits, processors, devices, sessions.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::chart::{Across, At, Band, Drawn, First, Frame, Heat, Line, Lines, Mark, Quantity, thin, time_ticks};
use analysis::{
    LastMinute, LatencyTarget, SINGLE_BLOCK_READ, Subject, Vocabulary, counted_per_s, is_host_load, is_on_servers,
    operations_are_requests, rate, response_words,
};
use model::record::{
    CONNECT, Counters, DeviceStats, Histogram, Interval, NetworkEnd, NetworkSide, Run, ServerStats, Step, TcpStats,
};
use model::units::group_thousands;

/// Columns of a heat map; more seconds than that are joined.
const HEAT_COLUMNS: usize = 240;
/// Rows of a heat map for each doubling of the duration.
const ROWS_PER_DOUBLING: f64 = 2.0;
const THINNED: &str = "There are more seconds than values drawn: of each stretch the least and the largest.";
/// Lines of one chart that is by device, by event or by node.
const MAX_LINES: usize = 8;
/// Charts of figures by the names of the program that measured them, one for each layer and unit.
const MAX_REPORTED_CHARTS: usize = 8;

/// Makes the charts of one run. `prefix` keeps their ids apart from those of other runs in the page.
pub(super) struct OverTime<'a> {
    run: &'a Run,
    timeline: Timeline<'a>,
    prefix: &'a str,
}

/// Layer and unit.
type Kind<'a> = (&'a str, &'a str);
/// Names with the sums of their figures.
type Names<'a> = Vec<(&'a str, f64)>;
type Count = fn(&Counters) -> Option<u64>;

impl<'a> OverTime<'a> {
    pub(super) fn of(run: &'a Run, prefix: &'a str, max_values: usize) -> Self {
        Self { run, timeline: Timeline::of(run, max_values), prefix }
    }

    /// Whether there is anything to draw.
    pub(super) fn has_seconds(&self) -> bool {
        self.timeline.has_seconds()
    }

    fn counted(&self, name: &str, scale: f64, count: Count) -> Line {
        let line = self.timeline.line(name, |interval| {
            let per_s = counted_per_s(&interval.counters, &interval.servers, interval.duration_ns, count);
            per_s.map(|per_s| per_s / scale)
        });
        // What never happened would be a line on the axis.
        if line.pieces.iter().flatten().all(|(_, y)| *y == 0.0) { Line::default() } else { line }
    }

    fn lines(&self, frame: Frame, lines: Vec<Line>) -> Option<Drawn> {
        let (across, bands) = (self.timeline.across(), self.timeline.bands());
        Lines { frame, across, lines, bands, marks: self.timeline.marks(), labels: Vec::new() }.draw()
    }

    fn frame(&self, id: &str, title: &str, note: &str, y: (&str, Quantity), words: String) -> Frame {
        Frame {
            id: format!("{}{id}", self.prefix),
            title: title.to_owned(),
            note: if self.timeline.is_thinned() { format!("{note} {THINNED}") } else { note.to_owned() },
            y_title: y.0.to_owned(),
            y_quantity: y.1,
            first: First::Linear,
            words,
        }
    }

    /// Operations and what they asked of storage.
    pub(super) fn throughput(&self) -> Option<Drawn> {
        let mut lines = Vec::new();
        if operations_are_requests(self.run) {
            lines.push(self.counted("requests", 1.0, |c| c.operations));
            // One kind alone is the same line again.
            let kinds =
                [self.counted("reads", 1.0, |c| c.physical_reads), self.counted("writes", 1.0, |c| c.physical_writes)];
            lines.extend(if kinds.iter().all(|line| !line.pieces.is_empty()) { kinds.to_vec() } else { Vec::new() });
        } else {
            let users = Vocabulary::of(self.run) == Vocabulary::Users;
            lines.push(self.counted(if users { "transactions" } else { "operations" }, 1.0, |c| c.operations));
            lines.push(self.counted("logical reads", 1.0, |c| c.logical_reads));
            lines.push(self.counted("buffer misses", 1.0, |c| c.buffer_misses));
            // A server writes to the page cache; what of it reaches storage, and when, is not its doing.
            let names = if self.run.target.counts_device_reads() {
                ["device reads", "device writes"]
            } else if is_on_servers(self.run) {
                ["device reads", "writes to the page cache"]
            } else {
                ["physical reads", "physical writes"]
            };
            lines.push(self.counted(names[0], 1.0, |c| c.physical_reads));
            lines.push(self.counted(names[1], 1.0, |c| c.physical_writes));
            lines.push(self.counted("commits", 1.0, |c| c.commits));
        }
        lines
            .push(self.timeline.line("connections", |interval| {
                rate(Some(interval.waits.get(CONNECT)?.count()), interval.duration_ns)
            }));
        lines.push(self.counted("errors", 1.0, |c| c.errors));
        let words = in_words(&lines, |value| format!("{}/s", group_thousands(value)));
        let note = format!("Layer: {}. Each second of the load; warm-up is shaded.", self.layer());
        self.lines(
            self.frame("throughput", "Throughput over time", &note, ("per second", Quantity::PerSecond), words),
            lines,
        )
    }

    /// Transactions of the last sixty seconds, second by second.
    pub(super) fn per_minute(&self) -> Option<Drawn> {
        if Vocabulary::of(self.run) != Vocabulary::Users {
            return None;
        }
        let minute = RefCell::new(LastMinute::default());
        let line = self
            .timeline
            .line("transactions per minute", |interval| minute.borrow_mut().add(interval).map(|ended| ended as f64));
        let lines = vec![line];
        let words = in_words(&lines, |value| format!("{} per minute", group_thousands(value)));
        let note = "Layer: client. Transactions that ended well in the sixty seconds up to each; not known before a minute of \
                    load has passed.";
        let y = ("per minute", Quantity::PerSecond);
        self.lines(self.frame("per-minute", "Transactions per minute", note, y, words), lines)
    }

    fn layer(&self) -> &'static str {
        match Vocabulary::of(self.run) {
            _ if is_host_load(self.run) => "processor, slices of work",
            _ if crate::sections::is_of(self.run) => "client, requests and their answers",
            Vocabulary::Requests => "client, requests to storage",
            Vocabulary::Users => "transactions: client; the rest: server",
            Vocabulary::Sessions if is_on_servers(self.run) => "operations: client; the rest: server",
            Vocabulary::Sessions => "engine",
        }
    }

    /// Bytes read, written and logged.
    pub(super) fn bytes(&self) -> Option<Drawn> {
        let is_cached = is_on_servers(self.run) && !self.run.target.counts_device_reads();
        let written = if is_cached { "written to the page cache" } else { "written" };
        let lines = vec![
            self.counted("read", 1e6, |c| c.physical_read_bytes),
            self.counted(written, 1e6, |c| c.physical_write_bytes),
            self.counted("redo", 1e6, |c| c.redo_bytes),
        ];
        let words = in_words(&lines, |value| format!("{} MB/s", group_thousands(value)));
        let note = format!("Layer: {}. MB: 1,000,000 bytes.", self.layer());
        self.lines(self.frame("bytes", "Bytes over time", &note, ("MB/s", Quantity::PerSecond), words), lines)
    }

    /// Response times, and those of single-block reads.
    pub(super) fn latency(&self) -> Option<Drawn> {
        let quantile = |name: &str, of: &dyn Fn(&Interval) -> Option<&Histogram>, q: f64| {
            self.timeline.line(name, |interval| of(interval)?.quantile_ns(q).map(|ns| ns as f64 / 1e3))
        };
        let longest = |name: &str, of: &dyn Fn(&Interval) -> Option<&Histogram>| {
            self.timeline.line(name, |interval| of(interval)?.max_ns().map(|ns| ns as f64 / 1e3))
        };
        let of_response: &dyn Fn(&Interval) -> Option<&Histogram> = &|interval| Some(&interval.response);
        let of_reads: &dyn Fn(&Interval) -> Option<&Histogram> = &|interval| interval.waits.get(SINGLE_BLOCK_READ);
        let mut lines = vec![
            quantile("response p50", of_response, 0.5),
            quantile("response p99", of_response, 0.99),
            longest("response max", of_response),
        ];
        if !operations_are_requests(self.run) {
            lines.push(quantile("single-block read p50", of_reads, 0.5));
            lines.push(quantile("single-block read p99", of_reads, 0.99));
            lines.push(longest("single-block read max", of_reads));
            lines.push(quantile("connecting p99", &|interval| interval.waits.get(CONNECT), 0.99));
        }
        let words = in_words(&lines, |us| Quantity::Microseconds.tick(us));
        let reads = if lines.iter().any(|line| line.name.starts_with("single-block") && !line.pieces.is_empty()) {
            format!(" Single-block reads: layer: {}.", self.timed_by())
        } else {
            String::new()
        };
        let note = format!("Response: {}, layer: client.{reads} Each second of the load.", response_words(self.run));
        let frame = self.frame("latency", "Latency over time", &note, ("time", Quantity::Microseconds), words);
        self.lines(Frame { first: First::Logarithmic, ..frame }, lines)
    }

    /// Who times waits.
    fn timed_by(&self) -> &'static str {
        if is_on_servers(self.run) { "server" } else { "engine" }
    }

    /// How long each took, second by second.
    pub(super) fn heat(&self) -> Option<Drawn> {
        let step = self.run.steps.first()?;
        let subject = LatencyTarget::default().of_step(self.run.workload(), step).subject?;
        self.heat_of(&subject, "heat", "Latency heat map")
    }

    /// The same of single-block reads, where a server times them and operations are judged.
    pub(super) fn heat_of_reads(&self) -> Option<Drawn> {
        let subject = Subject::Event(SINGLE_BLOCK_READ.to_owned());
        let is_judged = !is_on_servers(self.run);
        if is_judged { None } else { self.heat_of(&subject, "heat-reads", "Latency heat map of single-block reads") }
    }

    fn heat_of(&self, subject: &Subject, id: &str, title: &str) -> Option<Drawn> {
        let groups = self.timeline.groups(HEAT_COLUMNS);
        let row = |ns: u64| ((ns.max(1) as f64 / 1e3).log2() * ROWS_PER_DOUBLING).floor() as i64;
        let mut columns: Vec<((f64, f64), BTreeMap<i64, u64>)> = Vec::new();
        for (range, seconds) in &groups {
            let mut rows = BTreeMap::new();
            for times in seconds.iter().filter_map(|interval| subject.times_of_interval(interval)) {
                for (lowest, highest, count) in times.buckets_ns() {
                    *rows.entry(row(lowest.midpoint(highest))).or_default() += count;
                }
            }
            columns.push((*range, rows));
        }
        let rows = || columns.iter().flat_map(|(_, rows)| rows.keys().copied());
        let (lowest, highest) = (rows().min()?, rows().max()?);
        let shares = |rows: &BTreeMap<i64, u64>| {
            let all = rows.values().sum::<u64>().max(1) as f64;
            (lowest..=highest).map(|row| rows.get(&row).map_or(0.0, |count| *count as f64 / all)).collect::<Vec<_>>()
        };
        let columns = columns.iter().map(|(range, rows)| (*range, shares(rows))).collect();
        let what = match subject {
            Subject::Event(event) => format!("waits in {event} (layer: {})", self.timed_by()),
            Subject::Response(_) | Subject::Service(_) => {
                format!("{}, {} (layer: client)", Vocabulary::of(self.run).work(), response_words(self.run))
            }
        };
        let note = format!("Each column, a second or several: the share of its {what} that took so long.");
        let edge = |row: i64| Quantity::LogMicroseconds.tick(row as f64 / ROWS_PER_DOUBLING);
        let words = format!(
            "All {what} lie between {} and {}. The table of wait histograms has the same in figures.",
            edge(lowest),
            edge(highest + 1)
        );
        let frame = self.frame(id, title, &note, ("time", Quantity::Microseconds), words);
        // Here seconds are joined and none is left out.
        let frame = Frame { note, ..frame };
        let rows = (lowest as f64 / ROWS_PER_DOUBLING, 1.0 / ROWS_PER_DOUBLING);
        Heat { frame, across: self.timeline.across(), columns, rows, bands: self.timeline.bands() }.draw()
    }

    /// What sessions waited for: time waited in a second, which is sessions waiting on average.
    pub(super) fn waits(&self) -> Option<Drawn> {
        let mut totals: BTreeMap<&str, u64> = BTreeMap::new();
        let waits = self.run.steps.iter().flat_map(|step| &step.waits);
        for wait in waits.filter(|wait| wait.foreground && wait.event != CONNECT) {
            *totals.entry(&wait.event).or_default() += wait.sum().total_ns.unwrap_or(0);
        }
        if operations_are_requests(self.run) {
            return None;
        }
        let lines = largest(totals).into_iter().map(|event| {
            self.timeline.line(event, |interval| {
                let total = interval.waits.get(event).map_or(Some(0), Histogram::total_ns)?;
                Some(total as f64 / interval.duration_ns as f64)
            })
        });
        let lines: Vec<Line> = lines.collect();
        let words = in_words(&lines, |sessions| format!("{sessions:.2} sessions"));
        let (title, timed) = if is_on_servers(self.run) {
            ("Waits that the server timed", "Layer: server, which may time few of its waits.")
        } else {
            ("What sessions waited for", "Layer: engine.")
        };
        let note = format!(
            "{timed} Sessions waiting on average: time waited for an event in each second, over that second. A wait counts in \
             the second in which it ended."
        );
        self.lines(self.frame("waits", title, &note, ("sessions", Quantity::Count), words), lines)
    }

    /// What the sessions of servers were seen doing.
    pub(super) fn doing(&self) -> Option<Drawn> {
        let mut totals: BTreeMap<&str, u64> = BTreeMap::new();
        for server in self.run.steps.iter().flat_map(|step| &step.servers) {
            for (what, samples) in server.session_samples.iter().filter(|(_, samples)| **samples > 0) {
                *totals.entry(what).or_default() += samples;
            }
        }
        let lines = largest(totals).into_iter().map(|what| {
            self.timeline.line(what, |interval| {
                let of_server = |server: &ServerStats| {
                    let samples = server.session_samples.get(what).copied().unwrap_or(0);
                    (server.sampled_times > 0).then(|| samples as f64 / server.sampled_times as f64)
                };
                let known: Vec<f64> = interval.servers.iter().filter_map(of_server).collect();
                (!known.is_empty()).then(|| known.iter().sum())
            })
        });
        let lines: Vec<Line> = lines.collect();
        let words = in_words(&lines, |sessions| format!("{sessions:.2} sessions"));
        let note = "Layer: server. Sessions on average, by looks at what each was doing.";
        self.lines(self.frame("doing", "What sessions were doing", note, ("sessions", Quantity::Count), words), lines)
    }

    /// Processors that were busy.
    pub(super) fn processors(&self) -> Option<Drawn> {
        let of = |name: &str, ns: fn(&Interval) -> Option<u64>| {
            self.timeline.line(name, |interval| Some(ns(interval)? as f64 / interval.duration_ns as f64))
        };
        let lines = vec![
            of("this process, user code", |interval| Some(interval.process_cpu?.user_ns)),
            of("this process, kernel", |interval| Some(interval.process_cpu?.system_ns)),
            of("servers", |interval| {
                let cpu = |server: &ServerStats| Some(server.cpu?.busy_ns());
                if interval.servers.is_empty() { None } else { interval.servers.iter().map(cpu).sum() }
            }),
        ];
        let words = in_words(&lines, |busy| format!("{busy:.2} processors"));
        let cpus = self.run.environment.cpus.map_or_else(String::new, |cpus| format!(" This machine has {cpus}."));
        let note = format!(
            "Layer: OS. 1 is one whole processor.{cpus} This process: load generator, and the embedded engine where it is the target."
        );
        self.lines(self.frame("processors", "Processors busy", &note, ("processors", Quantity::Count), words), lines)
    }

    /// Charts of the devices below the target: requests, bytes, time of each, how many in flight.
    pub(super) fn devices(&self) -> Vec<Drawn> {
        let mut totals: BTreeMap<&str, u64> = BTreeMap::new();
        for device in self.run.steps.iter().flat_map(|step| &step.devices) {
            *totals.entry(&device.name).or_default() += device.reads + device.writes + 1;
        }
        let names: Vec<&str> = largest(totals).into_iter().take(MAX_LINES / 2).collect();
        type Value = fn(&DeviceStats) -> Option<f64>;
        let chart = |id: &str, title: &str, y: (&str, Quantity), note: &str, values: &[(&str, Value)]| {
            let lines = names.iter().flat_map(|name| {
                values.iter().map(move |(what, value)| {
                    self.timeline.line(&format!("{name} {what}"), |interval| {
                        value(interval.devices.iter().find(|device| device.name == *name)?)
                    })
                })
            });
            let lines: Vec<Line> = lines.filter(|line| line.pieces.iter().flatten().any(|(_, y)| *y > 0.0)).collect();
            let words = in_words(&lines, |value| y.1.tick(value));
            let note = format!("Layer: device, /proc/diskstats, everybody's I/O. {note}");
            self.lines(self.frame(id, title, &note, y, words), lines)
        };
        let charts = [
            chart(
                "device-requests",
                "Device: requests",
                ("per second", Quantity::PerSecond),
                "Completed in each second.",
                &[("reads", |d| rate(Some(d.reads), d.elapsed_ns)), ("writes", |d| rate(Some(d.writes), d.elapsed_ns))],
            ),
            chart(
                "device-bytes",
                "Device: bytes",
                ("MB/s", Quantity::PerSecond),
                "MB: 1,000,000 bytes.",
                &[
                    ("read", |d| rate(Some(d.read_bytes), d.elapsed_ns).map(|bytes| bytes / 1e6)),
                    ("written", |d| rate(Some(d.write_bytes), d.elapsed_ns).map(|bytes| bytes / 1e6)),
                ],
            ),
            chart(
                "device-time",
                "Device: time of a request",
                ("mean time", Quantity::Microseconds),
                "Mean over a second, queue and device together.",
                &[
                    ("reads", |d| (d.reads > 0).then(|| d.read_time_ns as f64 / d.reads as f64 / 1e3)),
                    ("writes", |d| (d.writes > 0).then(|| d.write_time_ns as f64 / d.writes as f64 / 1e3)),
                ],
            ),
            chart(
                "device-queue",
                "Device: requests in flight",
                ("requests", Quantity::Count),
                "Mean over a second.",
                &[("in flight", |d| (d.elapsed_ns > 0).then(|| d.weighted_ns as f64 / d.elapsed_ns as f64))],
            ),
        ];
        charts.into_iter().flatten().collect()
    }

    /// One chart for each layer and unit of an imported run's figures over time, those with the most figures first; of each the
    /// figures with the largest means.
    pub(super) fn reported_charts(&self) -> Vec<Drawn> {
        let intervals = || self.run.steps.iter().flat_map(|step| &step.intervals);
        // Names with their sums: over all intervals, as the lines are drawn.
        let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
        for (name, value) in intervals().flat_map(|interval| &interval.reported) {
            *sums.entry(name).or_default() += value.abs();
        }
        let mut kinds: BTreeMap<Kind<'_>, Names<'_>> = BTreeMap::new();
        for figure in self.run.steps.iter().flat_map(|step| &step.reported) {
            if let Some(sum) = sums.remove(figure.name.as_str()) {
                kinds.entry((&figure.layer, &figure.unit)).or_default().push((&figure.name, sum));
            }
        }
        // What no step sums up has neither layer nor unit.
        kinds.entry(("", "")).or_default().extend(sums);
        let mut kinds: Vec<_> =
            kinds.into_iter().filter(|(_, names)| names.iter().any(|(_, sum)| *sum > 0.0)).collect();
        kinds.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
        let chart = |(number, (kind, mut names)): (usize, (Kind<'_>, Names<'_>))| {
            let (layer, unit) = kind;
            names.retain(|(_, sum)| *sum > 0.0);
            names.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
            let more = names.len().saturating_sub(MAX_LINES);
            let lines: Vec<Line> = names
                .iter()
                .take(MAX_LINES)
                .map(|(name, _)| self.timeline.line(name, |interval| interval.reported.get(*name).copied()))
                .collect();
            let quantity = if unit == "%" { Quantity::Percent } else { Quantity::Count };
            let words = in_words(&lines, |value| quantity.tick(value));
            let layer = if layer.is_empty() { "not reported" } else { layer };
            let left_out = if more > 0 { format!(" {more} smaller ones are not drawn.") } else { String::new() };
            let note = format!("Layer: {layer}. As {} reports, by its own names.{left_out}", self.run.tool.name);
            let unit = if unit.is_empty() { "value" } else { unit };
            let title = format!("As the source reports: {unit}, {layer}");
            self.lines(self.frame(&format!("reported-{number}"), &title, &note, (unit, quantity), words), lines)
        };
        kinds.into_iter().take(MAX_REPORTED_CHARTS).enumerate().filter_map(chart).collect()
    }
}

/// The names with the largest totals, largest first.
fn largest(totals: BTreeMap<&str, u64>) -> Vec<&str> {
    let mut all: Vec<(&str, u64)> = totals.into_iter().filter(|(_, total)| *total > 0).collect();
    all.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    all.into_iter().take(MAX_LINES).map(|(name, _)| name).collect()
}

/// From where to where each line goes.
fn in_words(lines: &[Line], show: impl Fn(f64) -> String) -> String {
    let ranges = lines.iter().filter_map(|line| {
        let values = || line.pieces.iter().flatten().map(|(_, y)| *y);
        let (least, most) = (values().reduce(f64::min)?, values().reduce(f64::max)?);
        Some(format!("{}: {} to {}", line.name, show(least), show(most)))
    });
    let ranges: Vec<String> = ranges.collect();
    if ranges.is_empty() { String::new() } else { format!("{}.", ranges.join("; ")) }
}

/// What one end counted, of a second.
type Seen = fn(&NetworkEnd) -> Option<f64>;

const ENDS: [NetworkSide; 2] = [NetworkSide::Client, NetworkSide::Server];

impl OverTime<'_> {
    /// Rates, round trips and what was sent again, second by second.
    pub(super) fn both_ends(&self) -> Vec<Drawn> {
        [self.network_rates(), self.round_trips(), self.sent_again()].into_iter().flatten().collect()
    }

    fn sum(&self, name: &str, side: NetworkSide, scale: f64, seen: Seen) -> Line {
        self.timeline.line(name, |interval| Some(NetworkEnd::sum_of(&interval.network, side, seen)? / scale))
    }

    fn network_rates(&self) -> Option<Drawn> {
        let ways: [(&str, NetworkSide, Seen); 4] = [
            ("up, sent by the client", NetworkSide::Client, NetworkEnd::sent_bits_per_s),
            ("up, received by the server", NetworkSide::Server, NetworkEnd::received_bits_per_s),
            ("down, sent by the server", NetworkSide::Server, NetworkEnd::sent_bits_per_s),
            ("down, received by the client", NetworkSide::Client, NetworkEnd::received_bits_per_s),
        ];
        let ends = || self.run.steps.iter().flat_map(|step| &step.intervals).map(|interval| &interval.network);
        let rates =
            ends().flat_map(|ends| ways.iter().filter_map(|(_, side, of)| NetworkEnd::sum_of(ends, *side, *of)));
        let (unit, scale) = if rates.fold(0.0, f64::max) < 1e9 { ("Mbit/s", 1e6) } else { ("Gbit/s", 1e9) };
        let lines = ways.map(|(name, side, seen)| self.sum(name, side, scale, seen));
        // A direction in which nothing was sent would be a line on the axis.
        let lines: Vec<Line> = lines.into_iter().filter(is_above_zero).collect();
        let words = in_words(&lines, |rate| format!("{} {unit}", Quantity::PerSecond.tick(rate)));
        let note = "Layer: the programs at both ends. What one end has sent and the other has not yet received is on its way or in \
                    buffers.";
        let y = (unit, Quantity::PerSecond);
        self.lines(self.frame("network-rates", "Network: rate", note, y, words), lines)
    }

    fn round_trips(&self) -> Option<Drawn> {
        let of = |side: NetworkSide| {
            self.timeline.line(side.name(), |interval| {
                let mut all = TcpStats::default();
                let ends = interval.network.iter().filter(|end| end.side == side);
                ends.filter_map(|end| end.tcp.as_ref()).for_each(|tcp| all.add(tcp));
                Some(all.rtt_ns.mean()? / 1e3)
            })
        };
        let lines = ENDS.map(of).to_vec();
        let words = in_words(&lines, |us| Quantity::Microseconds.tick(us));
        let note = "Layer: TCP of each end, which smooths it; mean over connections and looks of a second. Where the other end answers \
                    late, it is longer than the network's.";
        let y = ("time", Quantity::Microseconds);
        let frame = self.frame("network-round-trip", "Network: round trip", note, y, words);
        self.lines(Frame { first: First::Logarithmic, ..frame }, lines)
    }

    fn sent_again(&self) -> Option<Drawn> {
        let resent: Seen = |end| end.per_s(end.tcp.as_ref()?.segments_resent);
        let lines: Vec<Line> =
            ENDS.map(|side| self.sum(side.name(), side, 1.0, resent)).into_iter().filter(is_above_zero).collect();
        let words = in_words(&lines, |segments| format!("{}/s", Quantity::PerSecond.tick(segments)));
        let note = "Layer: TCP of each end. Segments that were sent again in each second.";
        let y = ("segments per second", Quantity::PerSecond);
        self.lines(self.frame("network-resent", "Network: sent again", note, y, words), lines)
    }
}

fn is_above_zero(line: &Line) -> bool {
    line.pieces.iter().flatten().any(|(_, y)| *y > 0.0)
}

/// Labels along a time axis.
const LABELS: usize = 8;

/// The steps of a run along its time, in seconds since the first load began.
struct Timeline<'a> {
    steps: Vec<(f64, &'a Step)>,
    /// Most values of a line, all pieces together.
    max_values: usize,
}

impl<'a> Timeline<'a> {
    /// Places each step where the run says, or after the one before where it does not say, as imported runs may not.
    pub(super) fn of(run: &'a Run, max_values: usize) -> Self {
        let mut end = f64::NEG_INFINITY;
        let mut steps: Vec<(f64, &Step)> = Vec::new();
        for step in &run.steps {
            let began = step.window.offset_ns.saturating_sub(step.window.warmup_ns) as f64 / 1e9;
            let began = began.max(end);
            end = began + length_s(step);
            steps.push((began, step));
        }
        let first = steps.first().map_or(0.0, |(began, _)| *began);
        steps.iter_mut().for_each(|(began, _)| *began -= first);
        Self { steps, max_values }
    }

    /// Whether any second was recorded.
    pub(super) fn has_seconds(&self) -> bool {
        self.steps.iter().any(|(_, step)| !step.intervals.is_empty())
    }

    /// Whether there are more seconds than values of a line.
    pub(super) fn is_thinned(&self) -> bool {
        self.steps.iter().map(|(_, step)| step.intervals.len()).sum::<usize>() > self.max_values
    }

    fn end(&self) -> f64 {
        self.steps.last().map_or(0.0, |(began, step)| began + length_s(step)).max(1.0)
    }

    /// The axis.
    pub(super) fn across(&self) -> Across {
        let end = self.end();
        Across {
            title: "time since the load began".to_owned(),
            quantity: Quantity::Elapsed,
            range: (0.0, end),
            ticks: time_ticks(0.0, end, LABELS),
        }
    }

    /// The steps, with their warm-up shaded.
    pub(super) fn bands(&self) -> Vec<Band> {
        let band = |(began, step): &(f64, &Step)| {
            let warm = step.intervals.iter().filter(|interval| interval.warmup);
            let warm_s: f64 = warm.map(|interval| interval.duration_ns as f64 / 1e9).sum();
            Band { range: (*began, began + length_s(step)), shaded_to: began + warm_s, name: step.label.clone() }
        };
        self.steps.iter().map(band).collect()
    }

    /// When failures were caused, and when they were ended.
    pub(super) fn marks(&self) -> Vec<Mark> {
        let mark = |at_s: f64, name: &str| Mark { at: At::X(at_s), name: name.to_owned() };
        let of_step = |(began, step): &(f64, &Step)| {
            let marks = step.failure?;
            let at = |ns: u64| began + ns as f64 / 1e9;
            let recovery = marks.recovered_ns.map(|ns| mark(at(ns), "recovery"));
            Some(std::iter::once(mark(at(marks.failed_ns), "failure")).chain(recovery))
        };
        let end_s = self.end();
        let is_drawn = |mark: &Mark| matches!(mark.at, At::X(at_s) if at_s <= end_s);
        self.steps.iter().filter_map(of_step).flatten().filter(is_drawn).collect()
    }

    /// A line of one value a second; seconds without it are gaps.
    pub(super) fn line(&self, name: &str, value: impl Fn(&Interval) -> Option<f64>) -> Line {
        let middle = |interval: &Interval| (interval.offset_ns + interval.duration_ns / 2) as f64 / 1e9;
        let mut pieces: Vec<Vec<(f64, f64)>> = Vec::new();
        for (began, step) in &self.steps {
            pieces.push(Vec::new());
            for interval in step.intervals.iter().filter(|interval| interval.duration_ns > 0) {
                match (value(interval).filter(|value| value.is_finite()), pieces.last_mut()) {
                    (Some(value), Some(piece)) => piece.push((began + middle(interval), value)),
                    (None, Some(piece)) if !piece.is_empty() => pieces.push(Vec::new()),
                    _ => {}
                }
            }
        }
        pieces.retain(|piece| !piece.is_empty());
        let all: usize = pieces.iter().map(Vec::len).sum();
        let share = |piece: &Vec<(f64, f64)>| (piece.len() * self.max_values).div_ceil(all.max(1));
        let pieces = pieces.iter().map(|piece| thin(piece, share(piece))).collect();
        Line { name: name.to_owned(), pieces, dots: false }
    }

    /// Neighbouring seconds of a step together, in at most about `most` groups over all steps, with when each begins and ends.
    pub(super) fn groups(&self, most: usize) -> Vec<((f64, f64), Vec<&'a Interval>)> {
        let all: usize = self.steps.iter().map(|(_, step)| step.intervals.len()).sum();
        let length = all.div_ceil(most).max(1);
        let mut groups = Vec::new();
        for (began, step) in &self.steps {
            for chunk in step.intervals.chunks(length) {
                let (Some(first), Some(last)) = (chunk.first(), chunk.last()) else { continue };
                let from = began + first.offset_ns as f64 / 1e9;
                let to = began + last.offset_ns.saturating_add(last.duration_ns) as f64 / 1e9;
                groups.push(((from, to), chunk.iter().collect()));
            }
        }
        groups
    }
}

fn length_s(step: &Step) -> f64 {
    let last = step
        .intervals
        .iter()
        .map(|interval| interval.offset_ns.saturating_add(interval.duration_ns))
        .max()
        .unwrap_or(0);
    last.max(step.window.warmup_ns.saturating_add(step.window.duration_ns)) as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record::sample;

    #[test]
    fn steps_follow_each_other_even_where_nobody_says_when() {
        let mut run = sample::sweep(10);
        run.steps.iter_mut().for_each(|step| step.window.offset_ns = 0);
        let bands = Timeline::of(&run, 100).bands();
        assert_eq!(bands.len(), run.steps.len());
        assert!(bands.windows(2).all(|pair| pair[0].range.1 <= pair[1].range.0 + 1e-9), "{bands:?}");
        assert_eq!(bands[0].range.0, 0.0);
    }

    #[test]
    fn a_second_without_a_value_is_a_gap_and_no_line_across() {
        let run = sample::sweep(20);
        let timeline = Timeline::of(&run, 1_000);
        let stalled =
            |interval: &Interval| interval.step == 1 && (5_000_000_000..9_000_000_000).contains(&interval.offset_ns);
        let line = timeline.line("p99", |interval| (!stalled(interval)).then_some(1.0));
        assert_eq!(line.pieces.len(), run.steps.len() + 1);
        let whole = timeline.line("p99", |_| Some(1.0));
        let count = |line: &Line| line.pieces.iter().map(Vec::len).sum::<usize>();
        assert_eq!(count(&whole) - count(&line), 4);
    }

    #[test]
    fn a_line_has_one_piece_a_step_and_no_more_values_than_asked_for() {
        let run = sample::sweep(60);
        let timeline = Timeline::of(&run, 40);
        let line = timeline.line("operations/s", |interval| interval.counters.operations.map(|count| count as f64));
        assert_eq!(line.pieces.len(), run.steps.len());
        let count: usize = line.pieces.iter().map(Vec::len).sum();
        assert!((run.steps.len()..=40 + run.steps.len()).contains(&count), "{count}");
        let groups = timeline.groups(50);
        assert!(groups.len() <= 50 + run.steps.len() && groups.len() > 25, "{}", groups.len());
    }
}
