//! Which limit stopped a series of steps: a cap, the device, the load generator, a neighbour on the device, or none yet.
//!
//! Judged are seconds, with disturbed ones left out ([`super::seconds`]). A cap is reported by its fingerprint
//! ([`super::fingerprint`]), which is all but certain, or else by a plateau that is flat, even and sharp. A device whose service is
//! even looks like that too, so what pulses say decides where they were sent ([`pulse`]).

mod named;
mod pulse;
mod size;
mod words;

use super::seconds::{LeftOut, Level, Seconds};
use super::traffic::{Counted, LARGE_REQUEST_BYTES, inside, operations_are_requests, request_bytes, requests};
use super::{
    Figures, GeneratorVerdict, LimitedBy, SINGLE_BLOCK_READ, Series, ThreadsFlag, is_on_server, is_on_servers, nfs,
    sending, server, volume_tag, wait,
};
use crate::fingerprint;
use crate::fingerprint::Edge;
use model::platforms;
use model::record::{Counters, GroupLimit, Histogram, Metric, Run, SizeTest, Step};
pub use pulse::{PulseVerdict, PulseWanted, Pulsed, pulse_wanted};
pub use size::{SizeWanted, other_size, size_wanted};

/// Rates this close are the same rate.
const FLAT: f64 = 0.05;
/// So close as only something that counts requests holds a rate over steps, and from second to second.
const CAPPED: f64 = 0.02;
const EVEN: f64 = 0.01;
/// Slow rates stray by more than that, though by no more than so many requests.
const FEW_REQUESTS: f64 = 6.0;
/// From second to second, for a step that is judged alone.
const CAPPED_ALONE: f64 = 0.01;
/// Least growth of load over a plateau, and the share of it by which latency must grow too.
const MORE_LOAD: f64 = 1.9;
const IN_PROPORTION: f64 = 0.7;
/// A cap lets requests queue in order, so that p99 over p50 stays; where it grows by this, a device is saturating.
const WIDENED: f64 = 1.5;
/// A limiter that lets requests through in slices of a fraction of a second serves most of them at once and makes the
/// others wait for the next slice: the mean is more than this many times the median.
const IN_SLICES: f64 = 3.0;
/// An open loop above the limit reaches less than this of its rate, and more load is this much more.
const RATE_REACHED: f64 = 0.97;
const MORE_RATE: f64 = 1.2;
/// A rate that grows by this power of its load grows with it.
const AS_THE_LOAD: f64 = 0.75;
/// From this share of its slots in use on, an open loop waits for one.
pub(super) const SLOTS_IN_USE: f64 = 0.8;
/// Requests that take no more than so many times as long as with the least load do not queue in the target.
const HARDLY_LONGER: f64 = 1.5;
/// Powers of the load: above the first, throughput still grows with it.
const STILL_GROWS: f64 = 0.1;
/// A step alone at a cap: this near a published number, this many requests queueing for this long, none much longer.
const AT_PUBLISHED: f64 = 0.005;
const MIN_QUEUE: u32 = 4;
const MIN_WAIT_NS: f64 = 1e6;
const NARROW: f64 = 2.0;
/// A plateau is like a published number within this.
const LIKE_PUBLISHED: f64 = 0.01;
/// A chance of false alarm up to which a verdict is almost certain.
const ALMOST_CERTAIN: f64 = 1e-4;
/// Others at work in more than this share of the seconds make a device's end theirs.
const MOSTLY_OTHERS: f64 = 0.5;
/// A server whose buffer misses are fetched from storage in more than this share is at the end of its storage.
const FROM_STORAGE: f64 = 0.9;

/// What stopped the rate from growing.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Something that counts requests.
    Requests,
    /// Something that counts bytes.
    Throughput,
    /// Something that counts; one request size does not report what.
    RequestsOrThroughput,
    /// A device, or a queue in front of it, that has no more to give.
    Device,
    /// A database server, or something below it, that has no more to give.
    Server,
    /// The storage that a database server reads from. Operations of many reads are timed, which hide how a single read queues: a
    /// limit is not distinguished from a device.
    ServerStorage,
    /// A server of files, the way to it, or what it reads from: who asks it cannot see which.
    FileServer,
    /// The calls that each connection to a server of files may have in flight, which take no longer than with room.
    CallsInFlight {
        /// How many.
        bound: u32,
    },
    /// The load generator, which reaches this many operations per second with no device at all.
    Generator {
        /// That rate.
        ceiling_per_s: f64,
        /// By which flag it is given more threads.
        #[serde(skip)]
        threads: ThreadsFlag,
    },
    /// Others that used the device in most seconds: what it gives alone is not known.
    Neighbour {
        /// Seconds in which they did, and all of these steps.
        seconds: (usize, usize),
        /// Whether the run is one part of a fleet: then the others are its other parts, or may be.
        is_part: bool,
    },
    /// Some seconds show a cap, too few to tell it from chance: there are not enough undisturbed ones.
    Unclear,
    /// Nothing yet: from the last step but one to the last, the rate grew by this share.
    NotReached {
        /// That share.
        growth: f64,
    },
}

/// How sure a verdict is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// It is the best guess.
    Uncertain,
    /// Rarely wrong.
    Likely,
    /// Wrong in fewer than one of 10,000 runs.
    AlmostCertain,
}

/// The seconds that a verdict rests on.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Grounds {
    /// Seconds that are the same to within a few requests.
    Exact {
        /// How many.
        seconds: usize,
        /// By how many requests they may differ.
        within: f64,
        /// Chance that the most even device shows so many; an upper bound.
        chance: f64,
        /// The others.
        left_out: LeftOut,
    },
    /// Seconds that are even, or not.
    Scatter {
        /// The largest standard deviation of a step's seconds, as a share of their mean, disturbed ones left out; absent
        /// where there are too few seconds.
        deviation: Option<f64>,
        /// Those left out.
        left_out: LeftOut,
    },
}

/// The limit of a series.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Ceiling {
    /// Name of the series.
    pub series: String,
    /// Labels of the steps that show it, least load first.
    pub steps: Vec<String>,
    /// Least and most load among them, in words.
    pub loads: (String, String),
    /// What is counted: `physical reads` of an engine, `buffer misses` of a server, or `requests` of raw I/O; `reads` or
    /// `writes` where one of them alone is held back.
    pub what: &'static str,
    /// The highest rate among these steps, in requests per second; of a cap, a device and a server disturbed seconds are
    /// left out.
    pub per_s: f64,
    /// Megabytes (10^6) per second of the same step.
    pub megabytes_per_s: Option<f64>,
    /// Range of the rate over these steps, or for one step its standard deviation from second to second, as a share.
    pub spread: f64,
    /// How many times as long requests take at the most load; only where load grows without the rate.
    pub slower: Option<f64>,
    /// What stopped it.
    pub limit: Limit,
    /// The seconds that say so; absent where the rates of whole steps do.
    pub grounds: Option<Grounds>,
    /// Whose published cap this rate is like.
    pub like: Option<&'static str>,
    /// What pulses after pauses say of it; absent where none were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pulsed: Option<Pulsed>,
    /// The same load with requests of another size, if it says what the limit counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_size: Option<SizeTest>,
    /// The limit of a control group that it is; absent where none of those that are known is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub named: Option<Box<GroupLimit>>,
}

type Count = fn(&Counters) -> Option<u64>;

/// What is judged. Engines answer many requests for an operation, and their writers write when they like: there, reads are
/// judged. Raw I/O is judged by all its requests. What a server asks of the operating system is always known, what of it
/// reached storage is not.
fn judged(run: &Run) -> Count {
    if operations_are_requests(run) { requests } else { |counters| counters.physical_reads }
}

/// Its rate over the whole window.
fn mean_rate(run: &Run, step: &Step) -> Option<f64> {
    if operations_are_requests(run) {
        Figures(step).requests_per_s()
    } else if is_on_servers(run) {
        Figures(step).value(Metric::BufferMisses)
    } else {
        Figures(step).value(Metric::Reads)
    }
}

fn level(run: &Run, step: &Step) -> Option<Level> {
    if is_on_servers(run) { None } else { Seconds::of(run, step, judged(run)).level() }
}

/// Its rate over undisturbed seconds; over the whole window where none is disturbed.
fn rate(run: &Run, step: &Step) -> Option<f64> {
    let level = level(run, step).filter(|level| level.left_out.disturbed > 0);
    level.map(|level| level.per_s).or_else(|| mean_rate(run, step))
}

fn megabytes(run: &Run, step: &Step) -> Option<f64> {
    if operations_are_requests(run) {
        Figures(step).megabytes_per_s()
    } else {
        Figures(step).value(Metric::ReadMegabytes).filter(|_| !is_on_server(step))
    }
}

fn latency(run: &Run, step: &Step) -> Option<Histogram> {
    if operations_are_requests(run) || is_on_server(step) {
        Figures(step).service()
    } else {
        wait(step, SINGLE_BLOCK_READ).map(|wait| wait.times().into_owned())
    }
}

/// p99 over p50, of undisturbed seconds where seconds of requests are left out.
fn tail(run: &Run, step: &Step) -> Option<f64> {
    let disturbed = Seconds::of(run, step, judged(run)).disturbed();
    let times = if operations_are_requests(run) && disturbed.contains(&true) {
        let mut times = Histogram::default();
        inside(step).zip(disturbed).filter(|(_, out)| !out).for_each(|(second, _)| times.merge(&second.response));
        Some(times).filter(|times| times.count() > 0)
    } else {
        None
    };
    let times = times.or_else(|| latency(run, step))?;
    Some(times.quantile_ns(0.99)? as f64 / times.quantile_ns(0.5)?.max(1) as f64)
}

/// Whether the middle of the latencies says that requests were let through in slices.
fn is_in_slices(run: &Run, step: &Step) -> bool {
    let sliced = |times: Histogram| Some(times.mean_ns()? > IN_SLICES * times.quantile_ns(0.5)? as f64);
    latency(run, step).and_then(sliced).unwrap_or(false)
}

/// The limit of a series, if its steps show one or show that there is none. Where the client has no processor left, the
/// rate says nothing about storage, and that is reported elsewhere.
pub(super) fn find(run: &Run, series: &Series<'_>) -> Option<Ceiling> {
    if let Some(named) = named::find(run, series) {
        return Some(named);
    }
    let found = by_steps(run, series).map(|found| size::decided(run, series, pulse::decided(run, series, found)))?;
    let is_no_limit = found.limit == Limit::Device || found.may_be_device();
    Some(if is_no_limit && nfs::is_on_nfs(run) {
        let calls = found.steps.last().and_then(|step| nfs::calls_in_flight(run, step));
        let limit = calls.map_or(Limit::FileServer, |bound| Limit::CallsInFlight { bound });
        Ceiling { limit, pulsed: None, ..found }
    } else {
        found
    })
}

/// The same by its steps alone.
fn by_steps(run: &Run, series: &Series<'_>) -> Option<Ceiling> {
    let last = *series.steps.last()?;
    if let Some(found) = at_generator(run, series) {
        return Some(found);
    }
    if sending::is_saturated(run, last) || server::are_exhausted(run, last) {
        return None;
    }
    if are_slots_full(run, series) {
        return None;
    }
    let mark = Mark::of(run, series);
    if let Some(cap) = mark.as_ref().and_then(|mark| mark.cap(run, series)) {
        return Some(cap);
    }
    let plateau = if series.is_closed_loop() { closed_plateau(run, series) } else { open_plateau(run, series) };
    let found = plateau.or_else(|| alone(run, series));
    if found.as_ref().is_some_and(Ceiling::is_cap) {
        return found;
    }
    let found = found.or_else(|| not_reached(run, series));
    let hint = || mark.and_then(|mark| mark.hint(run, series));
    hint().or_else(|| neighbour(run, series, found.as_ref())).or(found)
}

/// Whether the volumes may be what is published for `like`, such as `Azure P30`: where a tag names volumes, only if it names these.
fn may_be(run: &Run, like: &str) -> bool {
    let Some(tag) = volume_tag(run) else { return true };
    let is_named = |name: &str| {
        let rest = tag.to_ascii_lowercase().strip_prefix(&name.to_ascii_lowercase()).map(str::to_owned);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    like.split_whitespace().any(is_named)
}

/// What these steps have come to, which `rates` are their rates of.
fn ceiling_of_steps(run: &Run, series: &Series<'_>, steps: &[&Step], rates: &[f64], limit: Limit) -> Option<Ceiling> {
    let low = rates.iter().copied().fold(f64::MAX, f64::min);
    // Rate and throughput are those of one and the same step.
    let best = (0..rates.len()).max_by(|left, right| rates[*left].total_cmp(&rates[*right]))?;
    // What did nothing at all has come to no limit that could be named, whoever was in its way.
    if rates[best] <= 0.0 {
        return None;
    }
    let megabytes_per_s = megabytes(run, steps[best]).zip(mean_rate(run, steps[best]));
    let megabytes_per_s = megabytes_per_s.map(|(megabytes, mean)| megabytes * rates[best] / mean);
    let like = match limit {
        Limit::Requests | Limit::RequestsOrThroughput => platforms::like(false, rates[best], LIKE_PUBLISHED),
        Limit::Throughput => platforms::like(true, megabytes_per_s? * 1e6, LIKE_PUBLISHED),
        _ => None,
    };
    let like = like.filter(|like| may_be(run, like));
    Some(Ceiling {
        series: series.name.clone(),
        steps: steps.iter().map(|step| step.label.clone()).collect(),
        loads: (series.words.load(steps[0]), series.words.load(steps[steps.len() - 1])),
        what: match () {
            () if operations_are_requests(run) => "requests",
            () if is_on_servers(run) => "buffer misses",
            () => "physical reads",
        },
        per_s: rates[best],
        megabytes_per_s,
        spread: (rates[best] - low) / rates[best],
        slower: None,
        limit,
        grounds: None,
        like,
        pulsed: None,
        other_size: None,
        named: None,
    })
}

/// The same by undisturbed seconds, with what they say.
fn ceiling_by_seconds(run: &Run, series: &Series<'_>, steps: &[&Step], limit: Limit) -> Option<Ceiling> {
    let rates: Vec<f64> = steps.iter().map(|step| rate(run, step)).collect::<Option<_>>()?;
    let (mut deviation, mut left_out) = (None, LeftOut::default());
    for level in steps.iter().filter_map(|step| level(run, step)) {
        deviation = Some(level.deviation.max(deviation.unwrap_or(0.0)));
        left_out.add(level.left_out);
    }
    let grounds = Some(Grounds::Scatter { deviation, left_out }).filter(|_| !is_on_servers(run));
    Some(Ceiling { grounds, ..ceiling_of_steps(run, series, steps, &rates, limit)? })
}

/// Which limit it is that counts.
fn cap_of(step: Option<&&Step>) -> Limit {
    match step.and_then(|step| request_bytes(step)) {
        Some(size) if size >= LARGE_REQUEST_BYTES => Limit::Throughput,
        _ => Limit::RequestsOrThroughput,
    }
}

/// Others that used the device most of the time where it seems to have come to its end, or at the most load.
fn neighbour(run: &Run, series: &Series<'_>, found: Option<&Ceiling>) -> Option<Ceiling> {
    let steps: Vec<&Step> = match found {
        Some(found) if matches!(found.limit, Limit::Device | Limit::ServerStorage) => {
            series.steps.iter().copied().filter(|step| found.steps.contains(&step.label)).collect()
        }
        // A rate that seems to grow may do so because others left.
        _ => series.steps.last().copied().into_iter().collect(),
    };
    // A rate that was reached lacks nothing, and one that grows as its load does was not held back.
    let grows = matches!(found.map(|found| &found.limit), Some(Limit::NotReached { .. })) && is_growing(run, series);
    if grows || steps.last().is_some_and(|step| reached(step) == Some(true)) {
        return None;
    }
    // What the load generator had no time for, others did not take.
    if steps.iter().any(|step| GeneratorVerdict::of(step).is_some_and(|own| own.limited_by == LimitedBy::Generator)) {
        return None;
    }
    let (mut with_others, mut all) = (0, 0);
    for seconds in steps.iter().map(|step| Seconds::of(run, step, judged(run))) {
        (with_others, all) = (with_others + seconds.with_others(), all + seconds.per_s.len());
    }
    // What others took in a second did not change what we got in it: something else holds the rate.
    let is_held = steps.iter().all(|step| level(run, step).is_some_and(|level| is_even(level, CAPPED_ALONE)));
    if with_others as f64 <= MOSTLY_OTHERS * all as f64 || is_held {
        return None;
    }
    let rates: Vec<f64> = steps.iter().map(|step| mean_rate(run, step)).collect::<Option<_>>()?;
    ceiling_of_steps(
        run,
        series,
        &steps,
        &rates,
        Limit::Neighbour { seconds: (with_others, all), is_part: run.is_one_of_many() },
    )
}

/// Whether a step kept the rate that was requested; absent where none was, or nothing was counted.
fn reached(step: &Step) -> Option<bool> {
    Some(Figures(step).ended_per_s()? >= RATE_REACHED * step.load.rate_operations_per_s?)
}

/// Whether the largest load of a closed loop still found nearly as much more as it had sessions.
fn is_growing(run: &Run, series: &Series<'_>) -> bool {
    let [.., before, last] = series.steps.as_slice() else { return false };
    let power = || {
        let load = f64::from(last.load.sessions?) / f64::from(before.load.sessions.filter(|sessions| *sessions > 0)?);
        (load > 1.0).then_some((mean_rate(run, last)? / mean_rate(run, before)?).ln() / load.ln())
    };
    series.is_closed_loop() && power().is_some_and(|power| power >= AS_THE_LOAD)
}

/// Whether the slots of the largest load of an open loop were all in use while requests took hardly longer than with less load: then it is
/// their number over that time that the rate comes to.
fn are_slots_full(run: &Run, series: &Series<'_>) -> bool {
    let [below @ .., last] = series.steps.as_slice() else { return false };
    let mean = |step: &Step| latency(run, step)?.mean_ns();
    let is_busy = |step: &Step| {
        Figures(step).busy_sessions().is_some_and(|busy| busy >= SLOTS_IN_USE * f64::from(step.load.slots()))
    };
    // Only where slots were free is it known how long requests take by themselves.
    let least = below.iter().filter(|step| !is_busy(step)).filter_map(|step| mean(step)).reduce(f64::min);
    let is_as_fast = || mean(last).zip(least).is_some_and(|(mean, least)| mean <= HARDLY_LONGER * least);
    series.is_open_loop() && is_busy(last) && is_as_fast()
}

/// The fastest step came within a tenth of what its threads reach without a device.
fn at_generator(run: &Run, series: &Series<'_>) -> Option<Ceiling> {
    let is_bound = |step: &&Step| {
        let verdict = GeneratorVerdict::of(step);
        verdict.is_some_and(|verdict| verdict.is_at_ceiling()) && !sending::is_saturated(run, step)
    };
    let bound: Vec<&Step> = series.steps.iter().copied().filter(is_bound).collect();
    // The ceiling is measured before each step; the last of them is the one with the most load.
    let ceiling_per_s = bound.last()?.generator.as_ref()?.ceiling_operations_per_s?;
    let rates: Vec<f64> = bound.iter().map(|step| mean_rate(run, step)).collect::<Option<_>>()?;
    ceiling_of_steps(run, series, &bound, &rates, Limit::Generator { ceiling_per_s, threads: ThreadsFlag::of(run) })
}

/// Whether a rate is held as evenly as only a counter does; counts of a few are even within one.
pub(super) fn is_even(level: Level, limit: f64) -> bool {
    level.deviation <= limit.max(1.5 / level.per_s)
}

/// What limits the plateau that begins at step `first`, its rate being that of something that counts or not.
fn cap_or_device(run: &Run, series: &Series<'_>, first: usize, is_held: bool) -> Limit {
    let plateau = &series.steps[first..];
    if let Some(step) = plateau.last().filter(|step| is_on_server(step)) {
        let misses = Figures(step).value(Metric::BufferMisses).unwrap_or(0.0);
        let from_storage = Figures(step).value(Metric::Reads).is_some_and(|reads| reads >= FROM_STORAGE * misses);
        return if from_storage { Limit::ServerStorage } else { Limit::Server };
    }
    let even = is_held
        && plateau
            .iter()
            .filter_map(|step| level(run, step))
            .all(|level| is_even(level, EVEN.max(FEW_REQUESTS / level.per_s)));
    let unsliced = || series.steps[first.saturating_sub(1)..].iter().filter(|step| !is_in_slices(run, step));
    let tails = || unsliced().filter_map(|step| tail(run, step));
    let widened = tail(run, series.steps[0]).is_some_and(|least| tails().any(|tail| tail > WIDENED * least));
    // In an open loop above its limit the queue stands before the target, so nothing widens.
    if !even || (widened && series.is_closed_loop()) { Limit::Device } else { cap_of(plateau.last()) }
}

/// A rate that does not grow while sessions at least double and requests take longer in proportion. Within a few
/// percent that is a plateau. It is held, as by a counter, if it is flatter than that from twice the sessions on that
/// would reach it if none stood in another's way: a device comes near its end over a much wider range.
fn closed_plateau(run: &Run, series: &Series<'_>) -> Option<Ceiling> {
    let steps = &series.steps;
    let rates: Vec<f64> = steps.iter().map(|step| rate(run, step).unwrap_or(0.0)).collect();
    let top = rates.last().copied().filter(|top| *top > 0.0)?;
    let flat_from = |range: f64| {
        let first = rates.iter().rposition(|rate| (rate - top).abs() > range * top).map_or(0, |below| below + 1);
        let (from, to) = (steps[first], *steps.last()?);
        let more = f64::from(to.load.sessions?) / f64::from(from.load.sessions?.max(1));
        let slower = latency(run, to)?.mean_ns()? / latency(run, from)?.mean_ns()?;
        let saturated = steps[first..].iter().any(|step| sending::is_saturated(run, step));
        (more >= MORE_LOAD && slower > IN_PROPORTION * more && !saturated).then_some((first, slower))
    };
    let bound = top * f64::from(steps[0].load.sessions?) / rates[0];
    let below = |step: &&Step| step.load.sessions.is_some_and(|sessions| f64::from(sessions) < 2.0 * bound);
    let is_held = |first: usize| steps[..first].iter().all(below);
    let of = |(first, slower): (usize, f64), is_held: bool| {
        let limit = cap_or_device(run, series, first, is_held);
        Some(Ceiling { slower: Some(slower), ..ceiling_by_seconds(run, series, &steps[first..], limit)? })
    };
    flat_from(CAPPED)
        .filter(|(first, _)| is_held(*first))
        .and_then(|plateau| of(plateau, true))
        .filter(Ceiling::is_cap)
        .or_else(|| of(flat_from(FLAT)?, false))
}

/// A rate that does not grow while more is asked for, and less than that is reached.
fn open_plateau(run: &Run, series: &Series<'_>) -> Option<Ceiling> {
    let asked = |step: &Step| step.load.rate_operations_per_s;
    let first = series.steps.iter().rposition(|step| reached(step).unwrap_or(true)).map_or(0, |below| below + 1);
    let plateau = &series.steps[first..];
    let (from, to) = (plateau.first()?, plateau.last()?);
    let rough = ceiling_by_seconds(run, series, plateau, Limit::Device)?;
    if asked(to)? < MORE_RATE * asked(from)? || rough.spread > FLAT {
        return None;
    }
    ceiling_by_seconds(run, series, plateau, cap_or_device(run, series, first, rough.spread <= CAPPED))
}

/// One load that sits at a published number, evenly, with requests that queue for it. A loop limited by latency at
/// little depth can be as even, but seldom at such a number with such a queue; a sweep shows which it is. A simulated device is as even at
/// any number.
fn alone(run: &Run, series: &Series<'_>) -> Option<Ceiling> {
    if is_on_servers(run) || run.target.is_simulated() {
        return None;
    }
    let of = |step: &&&Step| rate(run, step).unwrap_or(0.0);
    let step = *series.steps.iter().max_by(|left, right| of(left).total_cmp(&of(right)))?;
    let is_sweep = series.steps.iter().any(|other| other.load.sessions != step.load.sessions);
    if series.is_closed_loop() && is_sweep {
        return None;
    }
    let level = level(run, step)?;
    let times = latency(run, step)?;
    let queues = match step.load.rate_operations_per_s {
        Some(asked) => Figures(step).ended_per_s()? < RATE_REACHED * asked,
        None => step.load.sessions >= Some(MIN_QUEUE) && times.mean_ns()? >= MIN_WAIT_NS && tail(run, step)? <= NARROW,
    };
    if !queues || level.deviation > CAPPED_ALONE || sending::is_saturated(run, step) {
        return None;
    }
    let (limit, counted, per_s) = match request_bytes(step)? {
        size if size >= LARGE_REQUEST_BYTES => (Limit::Throughput, Counted::Bytes, level.per_s * size),
        _ => (Limit::Requests, Counted::Requests, level.per_s),
    };
    let like = platforms::like(counted == Counted::Bytes, per_s, AT_PUBLISHED).filter(|like| may_be(run, like))?;
    Some(Ceiling { like: Some(like), spread: level.deviation, ..ceiling_by_seconds(run, series, &[step], limit)? })
}

fn not_reached(run: &Run, series: &Series<'_>) -> Option<Ceiling> {
    let [.., before, last] = series.steps.as_slice() else { return None };
    if !series.is_closed_loop() || series.steps.len() < 3 || last.load.sessions <= before.load.sessions {
        return None;
    }
    let rates = [mean_rate(run, before).filter(|rate| *rate > 0.0)?, mean_rate(run, last)?];
    let growth = rates[1] / rates[0];
    let load = f64::from(last.load.sessions?) / f64::from(before.load.sessions?.max(1));
    if growth.ln() < STILL_GROWS * load.ln() {
        return None;
    }
    ceiling_of_steps(run, series, &[before, last], &rates, Limit::NotReached { growth: growth - 1.0 })
}

impl Ceiling {
    /// Whether it is a cap, rather than a device or a generator at its end.
    pub(super) fn is_cap(&self) -> bool {
        matches!(self.limit, Limit::Requests | Limit::Throughput | Limit::RequestsOrThroughput)
    }

    /// Whether pulses say that it is the device, whatever its seconds look like.
    fn is_said_by_pulses(&self) -> bool {
        self.limit == Limit::Device && self.pulsed.is_some_and(|pulsed| pulsed.verdict == PulseVerdict::NoMore)
    }

    /// Whether pulses say that software sets it.
    pub(super) fn is_set_by_software(&self) -> bool {
        self.is_cap() && self.pulsed.is_some_and(|pulsed| pulsed.verdict == PulseVerdict::Burst)
    }

    /// Whether it looks like a limit, and no burst came through after a pause: a device whose service is as even shows the same.
    pub(super) fn may_be_device(&self) -> bool {
        self.is_cap() && self.pulsed.is_some_and(|pulsed| pulsed.verdict == PulseVerdict::NoMore)
    }

    /// How sure the verdict is; absent where it says what was seen and no more.
    pub fn confidence(&self) -> Option<Confidence> {
        let is_verdict = self.is_cap() || matches!(self.limit, Limit::Device | Limit::ServerStorage);
        if self.is_said_by_pulses() {
            return Some(Confidence::Likely);
        }
        match self.grounds.filter(|_| is_verdict)? {
            Grounds::Exact { chance, .. } if chance <= ALMOST_CERTAIN => Some(Confidence::AlmostCertain),
            Grounds::Exact { .. } => Some(Confidence::Likely),
            Grounds::Scatter { deviation: None, .. } => Some(Confidence::Uncertain),
            // A device that is even to this degree may be a cap that the plateau's other signs do not show.
            Grounds::Scatter { deviation: Some(deviation), .. } if !self.is_cap() && deviation <= EVEN => {
                Some(Confidence::Uncertain)
            }
            Grounds::Scatter { .. } => Some(Confidence::Likely),
        }
    }
}

/// A cap is reported where fewer than this share of the most even devices show as much by chance; of others, which stray more, far
/// fewer do. What more of them show, though not many, is a hint.
const FALSE_ALARM: f64 = 0.01;
const HINT: f64 = 0.1;
const MIN_EXACT: usize = 3;
/// Loads that differ by this much have one and the same rate only if that is limited, when it is the same to the request.
const OTHER_LOAD: f64 = 1.2;
/// Without the limit, the load would have reached this many times the rate.
const HELD_BACK: f64 = 1.5;

/// An edge that the seconds of a series lie on, as a limiter leaves.
struct Mark<'a> {
    /// The steps that can show one, least load first.
    steps: Vec<&'a Step>,
    edge: Edge,
    /// What has the edge, where that is a part of all requests.
    part: Option<&'static str>,
}

impl<'a> Mark<'a> {
    /// Steps of an open loop show an edge only where their rate is not reached, else it may be the rate that was asked for.
    /// Programs whose results were imported round.
    fn of(run: &Run, series: &Series<'a>) -> Option<Self> {
        if is_on_servers(run) || run.imported.is_some() {
            return None;
        }
        let can_show = |step: &&Step| match step.load.rate_operations_per_s {
            Some(asked) => Figures(step).ended_per_s().is_some_and(|ended| ended < RATE_REACHED * asked),
            None => step.load.sessions.is_some(),
        };
        let steps: Vec<&Step> = series.steps.iter().copied().filter(can_show).collect();
        let is_mixed = operations_are_requests(run)
            && steps
                .iter()
                .any(|step| step.counters.physical_reads > Some(0) && step.counters.physical_writes > Some(0));
        let reads: (Option<&'static str>, Count) = (Some("reads"), |counters| counters.physical_reads);
        let writes: (Option<&'static str>, Count) = (Some("writes"), |counters| counters.physical_writes);
        let parts = if is_mixed { vec![reads, writes] } else { Vec::new() };
        let edge = |count: Count| {
            let seconds: Vec<Seconds> = steps.iter().map(|step| Seconds::of(run, step, count)).collect();
            fingerprint::find(&seconds)
        };
        let all = edge(judged(run)).map(|edge| (None, edge));
        // A part has the edge only if the whole has none as clear: then it follows the part.
        let of_part = parts.into_iter().filter_map(|(part, count)| Some((part, edge(count)?)));
        let clearest = |left: (_, Edge), right: (_, Edge)| if right.1.chance < left.1.chance { right } else { left };
        let (part, edge) = all.into_iter().chain(of_part).reduce(clearest)?;
        Some(Self { steps, edge, part })
    }

    /// The steps between the least load that shows it and the most.
    fn between(&self) -> &[&'a Step] {
        match (self.edge.steps.first(), self.edge.steps.last()) {
            (Some(first), Some(last)) => &self.steps[*first..=*last],
            _ => &[],
        }
    }

    /// Whether more load would have come through, so that it is no loop that latency holds at one rate: another load comes
    /// to the same rate, or less load to nearly as much, or requests wait for slices.
    fn is_held_back(&self, run: &Run, series: &Series<'_>) -> bool {
        let (Some(from), Some(to)) = (self.between().first(), self.between().last()) else { return false };
        let more = match (from.load.rate_operations_per_s, to.load.rate_operations_per_s) {
            (Some(least), Some(most)) => most / least,
            _ => f64::from(to.load.slots()) / f64::from(from.load.slots().max(1)),
        };
        let is_other_load = more >= OTHER_LOAD && (series.is_open_loop() || is_queueing(run, from, to));
        let less =
            || series.steps.iter().filter(|less| series.is_closed_loop() && less.load.sessions < to.load.sessions);
        // What fell behind although its slots, at the latency of a lower rate, would have carried much more.
        let lower = || {
            let asked = |step: &Step| step.load.rate_operations_per_s;
            series.steps.iter().filter(move |less| series.is_open_loop() && asked(less) < asked(from))
        };
        is_other_load
            || lower().any(|less| slots_would_reach(less, to, run))
            || less().any(|less| would_reach(less, to, run) && is_queueing(run, less, to))
            || is_in_slices(run, to)
    }

    fn ceiling(&self, run: &Run, series: &Series<'_>, limit: Limit) -> Option<Ceiling> {
        let steps = self.between();
        let Edge { per_s, exact: seconds, chance, left_out, .. } = self.edge;
        let within = fingerprint::half_width(per_s);
        let grounds = Some(Grounds::Exact { seconds, within, chance, left_out });
        let found = Ceiling {
            grounds,
            spread: within / per_s,
            ..ceiling_of_steps(run, series, steps, &vec![per_s; steps.len()], limit)?
        };
        Some(match self.part {
            // Of a part's bytes only its share of all requests would be known.
            Some(what) => Ceiling { what, megabytes_per_s: None, ..found },
            None => found,
        })
    }

    /// The cap that it shows.
    fn cap(&self, run: &Run, series: &Series<'_>) -> Option<Ceiling> {
        let few = self.edge.chance > FALSE_ALARM || self.edge.exact < MIN_EXACT;
        if few || !self.is_held_back(run, series) {
            return None;
        }
        let found = self.ceiling(run, series, cap_of(self.between().last()))?;
        let slower = match self.between() {
            [from, .., to] if series.is_closed_loop() => latency(run, to).zip(latency(run, from)),
            _ => None,
        };
        Some(Ceiling { slower: slower.and_then(|(to, from)| Some(to.mean_ns()? / from.mean_ns()?)), ..found })
    }

    /// That there may be one.
    fn hint(&self, run: &Run, series: &Series<'_>) -> Option<Ceiling> {
        let is_hint = self.edge.chance <= HINT && self.edge.exact >= MIN_EXACT && self.is_held_back(run, series);
        if is_hint { self.ceiling(run, series, Limit::Unclear) } else { None }
    }
}

/// Whether the load of `to` would have reached much more than it did at the latency of `less`.
fn would_reach(less: &Step, to: &Step, run: &Run) -> bool {
    let bound = || {
        let sessions = f64::from(to.load.sessions?) / f64::from(less.load.sessions.filter(|sessions| *sessions > 0)?);
        Some(mean_rate(run, less)? * sessions >= HELD_BACK * mean_rate(run, to)?)
    };
    bound().unwrap_or(false)
}

/// Whether the slots of `to` would have carried much more than it did at the latency of `less`.
fn slots_would_reach(less: &Step, to: &Step, run: &Run) -> bool {
    let bound = || Some(f64::from(to.load.slots()) * 1e9 / latency(run, less)?.mean_ns()?);
    bound().zip(mean_rate(run, to)).is_some_and(|(bound, rate)| bound >= HELD_BACK * rate)
}

/// Whether requests take longer by as much as load grows more than its rate. Of raw I/O that is Little's law; an engine's
/// sessions may have waited for something else.
fn is_queueing(run: &Run, from: &Step, to: &Step) -> bool {
    let queues = || {
        let more = f64::from(to.load.sessions?) / f64::from(from.load.sessions?.max(1));
        let faster = mean_rate(run, to)? / mean_rate(run, from)?;
        Some(latency(run, to)?.mean_ns()? / latency(run, from)?.mean_ns()? > IN_PROPORTION * more / faster)
    };
    operations_are_requests(run) || queues().unwrap_or(false)
}
