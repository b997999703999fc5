//! What more connections bring at equal depth: whether one is the limit, and if not, what they cost.
//!
//! Judged by medians of undisturbed seconds, as volumes beside each other are. Measured in rounds, forth and back, what only drifted is
//! not taken for a limit.

use crate::{Figures, MIN_SECONDS, Measured, Message, Rule, measured};
use model::config::io::IoLevel;
use model::record::{Level, Run, Step, known_sum};
use std::collections::BTreeMap;

use super::quota::Plateau;
use super::{SlotsFull, bound, ways};
use crate::message::list;
use crate::together::{error_of_ratio, is_generators};
use crate::traffic::{Counted, LARGE_REQUEST_BYTES, operations_are_requests, request_bytes, requests};
use model::units::{Nanos, group_thousands, percent};

/// More connections carry more where they carry this much more: what noise brings is less.
const RISE: f64 = 1.1;
/// A rate within this share of the highest one is the same.
const FLAT: f64 = 0.05;
/// Processor time of a request that grows by this is what connections cost.
const COSTS: f64 = 1.1;

/// What came of all of them.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SweepVerdict {
    /// More connections carry more.
    Rises {
        /// How many times as much the best number carries as the least.
        times: f64,
        /// Two standard errors of that on either side.
        error: f64,
        /// The least number that carries as much as any.
        enough: u32,
    },
    /// The least number carries as much as any.
    Flat,
    /// The same rate, but the load generator had no time left for more.
    GeneratorBound,
    /// A number carried clearly more in one round than in another.
    Changed {
        /// Connections.
        each: u32,
        /// Rate in its first round and in its last one.
        per_s: (f64, f64),
    },
    /// Too few undisturbed seconds with one of them.
    TooFewSeconds {
        /// Connections.
        each: u32,
        /// Seconds that count, and those that were measured.
        seconds: (usize, usize),
    },
    /// The scatter is too large to say.
    Unclear,
}

/// Different numbers of connections at one depth.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ConnectionSweep {
    /// Requests outstanding over all connections.
    pub depth: u32,
    /// What rates count.
    pub counted: Counted,
    /// Each number, the least first.
    pub points: Vec<ConnectionPoint>,
    /// How often each was measured.
    pub rounds: usize,
    /// What came of it.
    pub verdict: SweepVerdict,
    /// Where the rate stays the same however many connections there are; absent where it does so nowhere.
    pub plateau: Option<Plateau>,
}

impl ConnectionSweep {
    /// Of a run that varied connections; absent where it did not, or less than two numbers were measured.
    pub fn of(run: &Run) -> Option<Self> {
        if !operations_are_requests(run) || run.imported.is_some() {
            return None;
        }
        let mut by_number: BTreeMap<u32, Vec<&Step>> = BTreeMap::new();
        for step in measured(run) {
            let Some(Level::Io(IoLevel::Connections { each, .. })) = step.level else { continue };
            by_number.entry(each).or_default().push(step);
        }
        let first = *by_number.values().next()?.first()?;
        let counted = match request_bytes(first) {
            Some(bytes) if bytes >= LARGE_REQUEST_BYTES => Counted::Bytes,
            _ => Counted::Requests,
        };
        let points: Vec<ConnectionPoint> =
            by_number.iter().filter_map(|(each, steps)| ConnectionPoint::of(run, counted, *each, steps)).collect();
        if points.len() < 2 {
            return None;
        }
        let depth = first.load.sessions?;
        let rounds = by_number.values().map(Vec::len).max().unwrap_or(1);
        let verdict = verdict(&points);
        let mut found = Self { depth, counted, points, rounds, verdict, plateau: None };
        found.plateau = found.find_plateau(run);
        Some(found)
    }

    /// The numbers from the least that is enough on, if the generator was not what held them and there is more than one.
    fn find_plateau(&self, run: &Run) -> Option<Plateau> {
        let from = match self.verdict {
            SweepVerdict::Rises { enough, .. } => enough,
            SweepVerdict::Flat => self.points.first()?.each,
            _ => return None,
        };
        let best = best(&self.points)?.measured.per_s;
        let is_on = |point: &&ConnectionPoint| point.each >= from && point.measured.per_s >= (1.0 - FLAT) * best;
        let on: Vec<&ConnectionPoint> = self.points.iter().filter(is_on).collect();
        if on.len() < 2 || on.iter().any(|point| point.is_generators) {
            return None;
        }
        Plateau::of_connections(run, self.depth, self.counted, &on)
    }

    fn first(&self) -> Option<&ConnectionPoint> {
        self.points.first()
    }

    /// The answer in few words, such as `4 connections carry 2.8 × one; more than 4 add nothing: the volume's quota of …`.
    pub fn phrase(&self) -> String {
        let Some(first) = self.first() else { return String::new() };
        match &self.verdict {
            SweepVerdict::Rises { times, enough, .. } => {
                let carry = format!("{enough} connections reach {times:.1} × the rate of {}", small(first.each));
                if self.still_rises(*enough) {
                    return format!("{carry}, and more may reach still more");
                }
                let why = self.plateau.as_ref().map_or_else(String::new, |plateau| format!(": {}", plateau.phrase()));
                format!("{carry}; more than {enough} add nothing{why}")
            }
            SweepVerdict::Flat => {
                let why = self.plateau.as_ref().map_or_else(String::new, |plateau| format!(": {}", plateau.phrase()));
                format!("{} enough, more add nothing{why}", is_or_are(first.each))
            }
            _ => format!("whether {} enough is unknown", is_or_are(first.each)),
        }
    }

    fn still_rises(&self, enough: u32) -> bool {
        self.points.last().is_some_and(|last| last.each == enough)
    }

    fn rate(&self, point: &ConnectionPoint) -> String {
        self.counted.rate_words(point.measured.per_s)
    }

    /// What connections cost, where they do.
    fn cost(&self) -> Option<String> {
        let (first, last) = (self.points.first()?, self.points.last()?);
        let (before, after) = first.processor_us.zip(last.processor_us)?;
        (after > COSTS * before).then(|| {
            format!(
                " Each request takes {before:.1} us of this machine's processors over {}, and {after:.1} us over {}.",
                small(first.each),
                last.each
            )
        })
    }

    /// The least and the most connections are each all that there are of one thread to one path.
    fn are_single(&self) -> bool {
        self.points.iter().all(|point| point.all == point.each)
    }
}

/// The first words of a sentence on so many connections.
fn is_or_are(each: u32) -> String {
    if each == 1 { "one connection is".to_owned() } else { format!("{each} connections are") }
}

fn small(each: u32) -> String {
    if each == 1 { "one".to_owned() } else { each.to_string() }
}

fn best(points: &[ConnectionPoint]) -> Option<&ConnectionPoint> {
    points.iter().max_by(|one, other| one.measured.per_s.total_cmp(&other.measured.per_s))
}

fn verdict(points: &[ConnectionPoint]) -> SweepVerdict {
    if let Some(few) = points.iter().find(|point| !point.measured.has_enough()) {
        let Measured { seconds, left_out, .. } = few.measured;
        return SweepVerdict::TooFewSeconds { each: few.each, seconds: (seconds, seconds + left_out) };
    }
    if let Some(changed) = points.iter().find(|point| point.measured.has_changed()) {
        let rounds = &changed.measured.rounds_per_s;
        let per_s = rounds.first().copied().zip(rounds.last().copied()).unwrap_or_default();
        return SweepVerdict::Changed { each: changed.each, per_s };
    }
    let (Some(first), Some(best)) = (points.first(), best(points)) else { return SweepVerdict::Unclear };
    let times = best.measured.per_s / first.measured.per_s;
    let relative = |point: &ConnectionPoint| point.measured.error_per_s / point.measured.per_s;
    let error = error_of_ratio(times, relative(best), relative(first));
    if times - error > RISE {
        let is_enough = |point: &&ConnectionPoint| point.measured.per_s >= (1.0 - FLAT) * best.measured.per_s;
        let enough = points.iter().find(is_enough).map_or(best.each, |point| point.each);
        return SweepVerdict::Rises { times, error, enough };
    }
    match times + error < RISE {
        true if first.is_generators => SweepVerdict::GeneratorBound,
        true => SweepVerdict::Flat,
        false => SweepVerdict::Unclear,
    }
}

impl Message for ConnectionSweep {
    fn rule(&self) -> Rule {
        Rule::NfsConnections
    }

    fn sentence(&self) -> String {
        let Some((first, last)) = self.points.first().zip(self.points.last()) else { return String::new() };
        let (depth, cost) = (group_thousands(self.depth.into()), self.cost().unwrap_or_default());
        let unknown = format!("Whether {} enough is unknown", is_or_are(first.each));
        match &self.verdict {
            SweepVerdict::Rises { times, error, enough } => {
                let limit = match (&first.full, first.all) {
                    (Some(SlotsFull { bound, .. }), _) => {
                        format!(
                            "The {bound} calls that a connection may have in flight are the limit, or the connection itself"
                        )
                    }
                    (None, 1) => "One TCP connection is the limit".to_owned(),
                    (None, _) => format!(
                        "The connections are the limit where each thread has {} to each path",
                        small(first.each)
                    ),
                };
                let at = self.points.iter().find(|point| point.each == *enough).unwrap_or(last);
                let of_each = if self.are_single() { "" } else { " of each thread to each path" };
                let then = match () {
                    () if self.still_rises(*enough) => " The rate still rises there.".to_owned(),
                    () if at.is_generators => {
                        " More add nothing, but this machine had no processor time left for more.".to_owned()
                    }
                    () => format!(" More than {enough} add nothing."),
                };
                format!(
                    "{limit}: with {depth} outstanding, {enough} connections{of_each} reach {times:.2} times (+/- {error:.2}) the rate of \
                     {}, {} instead of {}.{then}{cost}",
                    small(first.each),
                    self.rate(at),
                    self.rate(first)
                )
            }
            SweepVerdict::Flat => {
                let rates: Vec<String> =
                    self.points.iter().map(|point| format!("{}: {}", point.each, self.rate(point))).collect();
                let mut words = is_or_are(first.each);
                words[..1].make_ascii_uppercase();
                format!(
                    "{words} enough: with {depth} outstanding, no number up to {} reaches more ({}).{cost}",
                    last.each,
                    rates.join(", ")
                )
            }
            SweepVerdict::GeneratorBound => format!(
                "{unknown}: no number up to {} reaches more than {}, but this machine had no processor time left for more.{cost}",
                last.each,
                self.rate(first)
            ),
            SweepVerdict::Changed { each, per_s } => format!(
                "{unknown}: with {each} the rate went from {} in the first round to {} in the last.",
                self.counted.rate_words(per_s.0),
                self.counted.rate_words(per_s.1)
            ),
            SweepVerdict::TooFewSeconds { each, seconds: (kept, all) } => format!(
                "{unknown}: not enough undisturbed seconds; with {each} there are {kept} among {all}, and {MIN_SECONDS} are needed."
            ),
            SweepVerdict::Unclear => {
                let scatter = self.points.iter().map(|point| point.measured.error_per_s / point.measured.per_s);
                format!(
                    "{unknown}: {} reach {} and {} {}, and the rates are only known to +/- {} %.",
                    first.each,
                    self.rate(first),
                    last.each,
                    self.rate(last),
                    percent(2.0 * scatter.fold(0.0, f64::max))
                )
            }
        }
    }

    fn advice(&self) -> Option<String> {
        let advice = match &self.verdict {
            SweepVerdict::Rises { enough, .. } if self.still_rises(*enough) => {
                "Add larger numbers until the rate stops rising.".to_owned()
            }
            SweepVerdict::Rises { enough, .. } => format!(
                "Use {enough}: `connections={enough}` in the address here, as many `nconnect` for a mount of the kernel's client; Direct NFS \
                 has one for each process."
            ),
            SweepVerdict::Flat => {
                "Look for the limit at the server, the volume's quota or the network, not at the connections.".to_owned()
            }
            SweepVerdict::GeneratorBound => {
                "Use larger requests, or a machine with more processors: what connections cost is counted here too.".to_owned()
            }
            SweepVerdict::Changed { .. } => {
                "A cache of the server that warmed, a credit or a neighbour may be the reason. Run longer (`--duration`), with more `--rounds`."
                    .to_owned()
            }
            SweepVerdict::TooFewSeconds { .. } | SweepVerdict::Unclear => {
                "Use a longer `--duration`, or more `--rounds`, when storage is quieter.".to_owned()
            }
        };
        let once = match self.verdict {
            SweepVerdict::Rises { .. } if self.rounds == 1 => {
                " Each number was measured once, the least first. `--rounds 2` alternates the order, to distinguish \
                 this from a server whose cache warms."
            }
            _ => "",
        };
        Some(advice + once)
    }

    fn steps(&self) -> Option<&[String]> {
        None
    }
}

/// What came of one number of connections.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ConnectionPoint {
    /// Connections of each thread to each path.
    pub each: u32,
    /// All connections of all threads.
    pub all: u32,
    /// How much they carried.
    pub measured: Measured,
    /// Mean time of a request.
    #[serde(rename = "mean_ns")]
    pub mean: Option<Nanos>,
    /// Processor time of this process for each request, in microseconds.
    pub processor_us: Option<f64>,
    /// Whether no connection had room for more calls.
    pub full: Option<SlotsFull>,
    /// Whether the load generator had no time left for more.
    pub is_generators: bool,
}

impl ConnectionPoint {
    pub(super) fn of(run: &Run, counted: Counted, each: u32, steps: &[&Step]) -> Option<Self> {
        let measured = Measured::of(counted, each.to_string(), steps)?;
        let sum = |of: &dyn Fn(&Step) -> Option<u64>| known_sum(steps.iter().map(|step| of(step)));
        let done = sum(&|step| requests(&step.counters)).filter(|done| *done > 0);
        let processor_ns = sum(&|step| step.process_cpu.map(|cpu| cpu.busy_ns()));
        let total_ns = sum(&|step| Figures(step).service_in_window()?.total_ns());
        let of_each = |total: Option<u64>| Some(total? as f64 / done? as f64);
        let all = steps.iter().map(|step| ways(step).map(|way| way.channels).sum()).max().unwrap_or(0);
        let full = bound(run).and_then(|bound| steps.iter().find_map(|step| super::of_step(step, bound)));
        Some(Self {
            each,
            all,
            measured,
            mean: of_each(total_ns).map(|ns| Nanos(ns as u64)),
            processor_us: of_each(processor_ns).map(|ns| ns / 1e3),
            full,
            is_generators: steps.iter().any(|step| is_generators(run, step)),
        })
    }
}

/// Steps of several points.
pub(super) fn steps_of(points: &[&ConnectionPoint]) -> Vec<String> {
    points.iter().flat_map(|point| point.measured.steps.clone()).collect()
}

/// The first and the last number, in words.
pub(super) fn from_to(points: &[&ConnectionPoint]) -> String {
    let numbers: Vec<String> = points.iter().map(|point| point.each.to_string()).collect();
    match numbers.as_slice() {
        [first, .., last] => format!("{first} to {last} connections"),
        other => format!("{} connections", list(other)),
    }
}
