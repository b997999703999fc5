//! How long waits and operations took: bars by power of two, percentile curves, and where reads came from.

use std::borrow::Cow;

use super::chart::{Across, Band, Bars, Drawn, First, Frame, Group, Line, Lines, Quantity};
use crate::buckets::{Columns, Counts, cell};
use crate::trace;
use crate::words::quantile;
use analysis::check::first_limit;
use analysis::{
    Finding, LatencyTarget, SINGLE_BLOCK_READ, Served, Subject, Vocabulary, is_timed_from_sent,
    operations_are_requests, response_words, wait,
};
use model::record::{Activity, Histogram, Metric, Run, Step, TraceStats, WaitStats};
use model::units::{Nanos, group_thousands, percent};

/// Steps of one chart: more cannot be distinguished.
const MAX_STEPS: usize = 8;
/// Events with a chart of their own.
const MAX_EVENTS: usize = 8;
/// Fewer waits than this, over all steps, are reported in the tables only.
const MIN_WAITS: u64 = 20;
/// Points of a percentile curve for each nine. The first is p17: the shortest of all would press the others together.
const POINTS_PER_NINE: usize = 12;
/// Points of a density for each doubling of the duration.
const POINTS_PER_DOUBLING: f64 = 12.0;

/// Durations of one series, with its name.
pub(super) struct Named<'a> {
    pub(super) name: String,
    pub(super) times: Cow<'a, Histogram>,
}

/// At most [`MAX_STEPS`] of the steps, the first and the last among them.
pub(super) fn shown(steps: &[Step]) -> Vec<&Step> {
    if steps.len() <= MAX_STEPS {
        return steps.iter().collect();
    }
    (0..MAX_STEPS).map(|at| &steps[at * (steps.len() - 1) / (MAX_STEPS - 1)]).collect()
}

fn shown_of(run: &Run) -> String {
    match run.steps.len() {
        few if few <= MAX_STEPS => String::new(),
        many => format!(" {MAX_STEPS} of {many} steps are shown; the tables have all."),
    }
}

/// What the height of a bar is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heights {
    /// How many there were.
    Counts,
    /// Which share of all, so that windows of different length stand beside each other.
    Shares,
}

/// Bars over power-of-two buckets.
pub(super) fn bars(id: String, title: &str, note: &str, things: &str, heights: Heights, series: &[Named<'_>]) -> Bars {
    let counted = series.iter().filter(|named| named.times.is_distribution()).map(|named| Counted {
        name: named.name.clone(),
        counts: named.times.power_of_two_us(),
        all: named.times.count(),
    });
    let counted: Vec<Counted> = counted.collect();
    bars_of_counts(id, title, note, things, heights, &counted)
}

/// Waits by their power-of-two buckets.
struct Counted {
    name: String,
    counts: Counts,
    all: u64,
}

fn bars_of_counts(id: String, title: &str, note: &str, things: &str, heights: Heights, series: &[Counted]) -> Bars {
    let columns = Columns::covering_counts(series.iter().map(|series| series.counts));
    let places = columns.headings();
    let group = |Counted { name, counts, all }: &Counted| {
        let shares = columns.shares_of_counts(counts, *all);
        let each: Vec<Option<f64>> =
            shares.iter().map(|share| share.map(|share| (share * *all as f64).round())).collect();
        let in_words = |(count, share): (&Option<f64>, &Option<f64>)| match count {
            None => "not known".to_owned(),
            Some(0.0) => "none".to_owned(),
            Some(count) => format!("{} ({} %)", group_thousands(*count), cell(*share)),
        };
        let words = each.iter().zip(&shares).map(in_words).collect();
        let values = match heights {
            Heights::Counts => each,
            Heights::Shares => shares.iter().map(|share| share.map(|share| share * 100.0)).collect(),
        };
        Group { name: name.clone(), values, words }
    };
    let sentences = series.iter().map(|Counted { name, counts, all }| {
        let shares = columns.shares_of_counts(counts, *all);
        let most = most_of(&shares);
        let most = most
            .map_or_else(String::new, |(at, share)| format!(", most of them ({} %) {}", percent(share), places[at]));
        format!("{name}: {} {things}{most}", group_thousands(*all as f64))
    });
    let words = format!("{}.", sentences.collect::<Vec<_>>().join("; "));
    let frame = Frame {
        id,
        title: title.to_owned(),
        note: note.to_owned(),
        y_title: match heights {
            Heights::Counts => things.to_owned(),
            Heights::Shares => format!("% of {things}"),
        },
        y_quantity: match heights {
            Heights::Counts => Quantity::Count,
            Heights::Shares => Quantity::Percent,
        },
        first: First::Linear,
        words,
    };
    let x_title = "time of each, by upper bound of its bucket (1 ms is 1024 us)".to_owned();
    Bars { frame, x_title, places: places.clone(), groups: series.iter().map(group).collect() }
}

/// The column that more than half of all lie in, and their share.
fn most_of(shares: &[Option<f64>]) -> Option<(usize, f64)> {
    shares.iter().enumerate().find_map(|(at, share)| Some((at, share.filter(|share| *share > 0.5)?)))
}

/// One chart for each kind of call or request that kernel tracing timed, the steps side by side.
pub(super) fn traces(run: &Run, prefix: &str) -> Vec<Drawn> {
    let mut kinds: Vec<&TraceStats> = Vec::new();
    for trace in run.steps.iter().flat_map(|step| &step.traces).filter(|trace| trace.count >= MIN_WAITS) {
        if !kinds.iter().any(|known| known.is_same_kind(trace)) {
            kinds.push(trace);
        }
    }
    let chart = |(number, kind): (usize, &&TraceStats)| {
        let of_step = |step: &&Step| {
            let found = step.traces.iter().find(|trace| trace.is_same_kind(kind));
            let counts = found.map_or([0; _], trace::counts);
            Counted { name: step.label.clone(), counts: counts.map(Some), all: counts.iter().sum() }
        };
        let series: Vec<Counted> = shown(&run.steps).iter().map(of_step).collect();
        let note = format!("Layer: {}, timed in the kernel, in the measured window.{}", kind.layer, shown_of(run));
        let title = format!("{}: {}", kind.layer, trace::name(kind));
        bars_of_counts(format!("{prefix}trace-{number}"), &title, &note, "calls", Heights::Counts, &series).draw()
    };
    kinds.iter().take(MAX_EVENTS).enumerate().filter_map(chart).collect()
}

/// Where the blocks of a server came from, step by step.
pub(super) fn sources(run: &Run, prefix: &str) -> Option<Drawn> {
    type Source = (&'static str, fn(&Served<'_>) -> Option<f64>);
    // The second only of servers that read through the page cache.
    const SOURCES: [Source; 3] = [
        ("buffer hits", |served| served.value(Metric::CacheHits)),
        ("page-cache hits", |served| served.value(Metric::PageCacheHits)),
        ("device reads", |served| served.value(Metric::Reads)),
    ];
    let steps: Vec<&Step> = shown(&run.steps).into_iter().filter(|step| !step.servers.is_empty()).collect();
    let group = |(name, rate): &Source| rates_of(name, steps.iter().map(|step| rate(&Served::of(run, step))).collect());
    let is_direct = run.target.counts_device_reads();
    let of_device = if is_direct { "" } else { "; device reads: OS" };
    let frame = Frame {
        id: format!("{prefix}sources"),
        title: "Where blocks came from".to_owned(),
        note: format!("Layer: server{of_device}. In the measured window of each step.{}", shown_of(run)),
        y_title: "blocks/s".to_owned(),
        y_quantity: Quantity::PerSecond,
        first: First::Linear,
        words: "The table below has the same in figures.".to_owned(),
    };
    let places = steps.iter().map(|step| step.label.clone()).collect();
    let groups = SOURCES.iter().enumerate().filter(|(place, _)| !(is_direct && *place == 1));
    let groups = groups.map(|(_, source)| group(source)).collect();
    Bars { frame, x_title: "step".to_owned(), places, groups }.draw()
}

/// Rates, each with its words.
fn rates_of(name: &str, values: Vec<Option<f64>>) -> Group {
    let words =
        |rate: &Option<f64>| rate.map_or_else(|| "not known".to_owned(), |rate| format!("{}/s", group_thousands(rate)));
    Group { name: name.to_owned(), words: values.iter().map(words).collect(), values }
}

/// One chart for each wait event, the steps side by side.
pub(super) fn waits(run: &Run, prefix: &str) -> Vec<Drawn> {
    let chart = |(number, first): (usize, &&WaitStats)| {
        // A step without such a wait keeps its place, so that each step has one colour in all charts.
        let of_step = |step: &&Step| {
            let times = wait(step, &first.event).map(|wait| wait.waits.clone()).unwrap_or_default();
            Named { name: step.label.clone(), times: Cow::Owned(times) }
        };
        let series: Vec<Named<'_>> = shown(&run.steps).iter().map(of_step).collect();
        let whose = if first.foreground { "sessions waited" } else { "the engine's own writers waited" };
        let note =
            format!("Layer: {}; {whose}. Every wait that ended in the measured window.{}", first.layer, shown_of(run));
        bars(format!("{prefix}wait-{number}"), &first.event, &note, "waits", Heights::Counts, &series).draw()
    };
    drawn(run).iter().enumerate().filter_map(chart).take(MAX_EVENTS).collect()
}

/// The first row of each event with a chart. That by which databases judge storage comes first, then what sessions waited for, then
/// the engine's own; what took longest by the source's own totals is before the others, and who was idle comes last.
fn drawn(run: &Run) -> Vec<&WaitStats> {
    let mut events: Vec<(&WaitStats, u64, u64)> = Vec::new();
    for wait in run.steps.iter().flat_map(|step| &step.waits).filter(|wait| wait.waits.count() > 0) {
        let (count, total_ns) = (wait.waits.count(), wait.sum().total_ns.unwrap_or(0));
        match events.iter_mut().find(|(first, ..)| first.event == wait.event) {
            Some((_, waits, all_ns)) => {
                *waits = waits.saturating_add(count);
                *all_ns = all_ns.saturating_add(total_ns);
            }
            None => events.push((wait, count, total_ns)),
        }
    }
    events.retain(|(_, waits, _)| *waits >= MIN_WAITS);
    events.sort_by_key(|(first, _, all_ns)| {
        (first.event != SINGLE_BLOCK_READ, first.class == "Idle", !first.foreground, std::cmp::Reverse(*all_ns))
    });
    events.into_iter().map(|(first, ..)| first).collect()
}

/// Response times of each step as bars, where they are not the same as a wait event's.
pub(super) fn responses(run: &Run, prefix: &str) -> Option<Drawn> {
    if operations_are_requests(run) && run.steps.iter().all(|step| step.load.rate_operations_per_s.is_none()) {
        return None;
    }
    let series = of_steps(run, &Subject::Response(None));
    let note = format!("Layer: client; {}, in the measured window.{}", response_words(run), shown_of(run));
    let work = Vocabulary::of(run).work();
    let title = capital_first(&timed(run, &format!("response time of {work}")));
    bars(format!("{prefix}responses"), &title, &note, work, Heights::Counts, &series).draw()
}

/// What a run is judged by as bars, and where on their axis the limit and the value that it is held against lie, with names.
pub(super) struct Judged {
    pub(super) chart: Bars,
    pub(super) limit: Option<(f64, String)>,
    pub(super) reached: Option<(f64, String)>,
}

/// The histogram of what the run is judged by, or else of what sessions waited for most; `None` where nothing is known of
/// either. The limit is one that the findings judge by.
pub(super) fn judged(run: &Run, target: &LatencyTarget, findings: &[Finding]) -> Option<Judged> {
    let by_event = || drawn(run).first().map(|wait| Subject::Event(wait.event.clone()));
    let known = |subject: &Subject| of_steps(run, subject).iter().any(|named| named.times.is_distribution());
    let subjects = [target.subject.clone(), by_event(), Some(Subject::Response(None))];
    let subject = subjects.into_iter().flatten().find(known)?;
    let series = of_steps(run, &subject);
    let things = if matches!(subject, Subject::Event(_)) { "waits" } else { Vocabulary::of(run).work() };
    let (title, note) = match &subject {
        Subject::Event(event) => (event.clone(), "Every wait that ended in the measured window"),
        other => (capital_first(&timed(run, &other.to_string())), "Every operation of the measured window"),
    };
    let note = format!("{}. {note}.{}", capital(run, &subject), shown_of(run));
    let chart = bars("judged".to_owned(), &title, &note, things, Heights::Shares, &series);
    let columns = Columns::covering(series.iter().map(|named| &*named.times));
    let is_judged = target.subject.as_ref() == Some(&subject);
    let has_limit = first_limit(run).is_some() || findings.iter().any(Finding::is_load_line);
    let limit = has_limit.then(|| (target.limit.0, format!("limit {}", target.limit)));
    let only = if let [only] = series.as_slice() { Some(only) } else { None };
    let reached = only.and_then(|named| Some((named.times.quantile_ns(target.quantile)?, &named.times)));
    let reached =
        reached.map(|(ns, times)| (ns, format!("{} {}", target.quantile_name(), quantile(times, target.quantile))));
    let place = |(ns, name): (u64, String)| Some((columns.share_of_ns(ns)?, name));
    Some(Judged { limit: limit.filter(|_| is_judged).and_then(place), reached: reached.and_then(place), chart })
}

/// What is called response time where it is counted from when requests were sent.
fn timed(run: &Run, words: &str) -> String {
    if is_timed_from_sent(run) { words.replace("response time", "service time") } else { words.to_owned() }
}

fn capital_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn of_steps<'a>(run: &'a Run, subject: &Subject) -> Vec<Named<'a>> {
    let of_step = |step: &&'a Step| Some(Named { name: step.label.clone(), times: subject.times(step)? });
    shown(&run.steps).iter().filter_map(of_step).collect()
}

/// Latency by percentile, further out the further right.
pub(super) fn percentiles(id: String, title: &str, note: &str, series: &[Named<'_>]) -> Option<Drawn> {
    let most = series.iter().map(|named| named.times.count()).max().filter(|count| *count > 0)?;
    // Beyond one in all that were counted there is only the maximum.
    let nines = (most as f64).log10().clamp(1.0, 6.0);
    let points = (nines * POINTS_PER_NINE as f64).ceil() as usize;
    let line = |named: &Named<'_>| {
        let own = (named.times.count() as f64).log10();
        let places = (1..=points).map(|point| point as f64 / POINTS_PER_NINE as f64);
        let places: Vec<f64> = places.filter(|nines| *nines <= own.max(0.5)).collect();
        let quantiles: Vec<f64> = places.iter().map(|nines| 1.0 - 10_f64.powf(-nines)).collect();
        let values = named.times.quantiles_ns(&quantiles);
        let piece = places.iter().zip(values).filter_map(|(x, ns)| Some((*x, ns? as f64 / 1e3))).collect();
        Line { name: named.name.clone(), pieces: vec![piece], dots: false }
    };
    let sentences = series.iter().map(|named| {
        let at = |q: f64| quantile(&named.times, q);
        format!("{}: p50 {}, p99 {}, p99.9 {}", named.name, at(0.5), at(0.99), at(0.999))
    });
    let words = format!("{}.", sentences.collect::<Vec<_>>().join("; "));
    let frame = Frame {
        id,
        title: title.to_owned(),
        note: note.to_owned(),
        y_title: "time".to_owned(),
        y_quantity: Quantity::Microseconds,
        first: First::Logarithmic,
        words,
    };
    let across = Across {
        title: "percentile".to_owned(),
        quantity: Quantity::Nines,
        range: (1.0 / POINTS_PER_NINE as f64, nines),
        ticks: [0.301, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0].into_iter().filter(|tick| *tick <= nines).collect(),
    };
    let (lines, marks) = (series.iter().map(line).collect(), Vec::new());
    Lines { frame, across, lines, bands: Vec::new(), marks, labels: Vec::new() }.draw()
}

/// The percentile curve of what the run is judged by.
pub(super) fn percentile_curve(run: &Run, prefix: &str) -> Option<Drawn> {
    let subject = LatencyTarget::default().of_run(run).subject?;
    let note = format!("{}, in the measured window of each step.{}", capital(run, &subject), shown_of(run));
    percentiles(format!("{prefix}percentiles"), "Percentile curve", &note, &of_steps(run, &subject))
}

/// What is judged, at the head of a sentence, with its layer.
pub(super) fn capital(run: &Run, subject: &Subject) -> String {
    match subject {
        Subject::Event(event) => format!("Waits in {event} (layer: engine)"),
        Subject::Response(_) => format!("Operations, {} (layer: client)", response_words(run)),
        Subject::Service(_) => "Operations, from sent to finished (layer: client)".to_owned(),
    }
}

/// The density of single-block reads where they fall into groups, with the groups marked.
pub(super) fn tiers(run: &Run, findings: &[Finding], prefix: &str) -> Vec<Drawn> {
    let tiers = findings.iter().filter_map(|finding| match finding {
        Finding::Tiers(tiers) => Some(tiers),
        _ => None,
    });
    let chart = |(number, tiers): (usize, &analysis::Tiers)| {
        let step = run.steps.iter().find(|step| step.label == tiers.step)?;
        let reads = wait(step, SINGLE_BLOCK_READ)?;
        let (line, range) = density(&tiers.step, &reads.waits)?;
        let bands = tiers.modes.iter().map(|mode| {
            let log = |ns: u64| (ns as f64 / 1e3).log2();
            let name = format!("{:.0} %, {}", mode.share * 100.0, Nanos(mode.median_ns));
            Band { range: (log(mode.p10_ns), log(mode.p90_ns)), shaded_to: log(mode.p90_ns), name }
        });
        let frame = Frame {
            id: format!("{prefix}tiers-{number}"),
            title: format!("Groups of single-block reads in {}", tiers.step),
            note: format!(
                "Layer: {}. Share of reads by time; shaded: the middle 80 % of each group, with its share and median.",
                reads.layer
            ),
            y_title: "share of reads in a twelfth of a doubling".to_owned(),
            y_quantity: Quantity::Percent,
            first: First::Linear,
            words: Finding::Tiers(tiers.clone()).sentence(),
        };
        let across = Across {
            title: "time of a read".to_owned(),
            quantity: Quantity::LogMicroseconds,
            range,
            ticks: (range.0.ceil() as i64..=range.1.floor() as i64).map(|power| power as f64).collect(),
        };
        let (bands, lines) = (bands.collect(), vec![line]);
        Lines { frame, across, lines, bands, marks: Vec::new(), labels: Vec::new() }.draw()
    };
    tiers.enumerate().filter_map(chart).collect()
}

/// Percent of all durations in each step of the axis, which is the binary logarithm of microseconds.
fn density(name: &str, times: &Histogram) -> Option<(Line, (f64, f64))> {
    let (shortest, longest) = (times.quantile_ns(0.0005)?, times.quantile_ns(0.9995)?);
    let log = |ns: u64| (ns.max(1) as f64 / 1e3).log2();
    let range = (log(shortest).floor(), log(longest).ceil().max(log(shortest).floor() + 1.0));
    let mut shares = vec![0.0; ((range.1 - range.0) * POINTS_PER_DOUBLING) as usize + 1];
    for (lowest, highest, count) in times.buckets_ns() {
        let place = (log(lowest.midpoint(highest)) - range.0) * POINTS_PER_DOUBLING;
        if let Some(share) = shares.get_mut(place.max(0.0) as usize) {
            *share += count as f64 * 100.0 / times.count() as f64;
        }
    }
    let place = |at: usize| range.0 + (at as f64 + 0.5) / POINTS_PER_DOUBLING;
    let piece = shares.into_iter().enumerate().map(|(at, share)| (place(at), share)).collect();
    Some((Line { name: name.to_owned(), pieces: vec![piece], dots: false }, range))
}

/// How evenly nodes work: the rates of each in every step.
pub(super) fn nodes(run: &Run, prefix: &str) -> Option<Drawn> {
    let steps: Vec<&Step> = shown(&run.steps).into_iter().filter(|step| step.servers.len() > 1).collect();
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in steps.iter().flat_map(|step| Served::each(run, step)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let group = |name: &&str| {
        let rate =
            |step: &&Step| Served::each(run, step).find(|(node, _)| node == name)?.1.activity_per_s(Activity::Commits);
        rates_of(name, steps.iter().map(rate).collect())
    };
    let groups: Vec<Group> = names.iter().map(group).collect();
    let frame = Frame {
        id: format!("{prefix}node-rates"),
        title: "Transactions of each node".to_owned(),
        note: format!("Layer: server; everybody's, in the measured window of each step.{}", shown_of(run)),
        y_title: "transactions/s".to_owned(),
        y_quantity: Quantity::PerSecond,
        first: First::Linear,
        words: "The table below has the same in figures, and how far the nodes lie apart.".to_owned(),
    };
    let places = steps.iter().map(|step| step.label.clone()).collect();
    Bars { frame, x_title: "step".to_owned(), places, groups }.draw()
}
