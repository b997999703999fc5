//! Two levels in one load: a burst credit that ran out, a cache that warmed, and credit that the run was too short to see.

use super::levels::two_levels;
use super::message::list;
use super::proof::others_share;
use super::traffic::{Counted, LARGE_REQUEST_BYTES, about, bytes, inside, requests};
use super::{Figures, Message, Vocabulary, is_on_server, known_credits, measured, replay};
use crate::Rule;
use model::record::Workload;
use model::record::{Counters, Environment, Interval, Run, Step};
use model::units::{Nanos, group_thousands, percent};

/// Windows shorter than this show nothing of a limit that sets in later, whatever the rate.
const SHORT_WINDOW: Nanos = Nanos::seconds(30);
/// Share of the fall of requests that operations must fall by too; else a cache has warmed, and fewer were needed.
const OPERATIONS_FELL: f64 = 0.5;
/// Where others took this share of what was lost, no credit is known to have ended.
const OTHERS_TOOK: f64 = 0.5;
/// Intervals around the joint of two steps.
const JOINT: usize = 2;
/// Share of writes from which a write cache can be what filled.
const WRITES: f64 = 0.3;

/// The load ran on two flat levels, the second one lower.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct BurstFound {
    /// Labels of the steps, one after another with the same load, over which it was seen.
    pub steps: Vec<String>,
    /// What is flat, and what the credit is counted in.
    pub counted: Counted,
    /// Rate of storage requests or of their bytes until the change.
    pub burst_per_s: f64,
    /// Rate from the change on.
    pub base_per_s: f64,
    /// Measured time until the change.
    #[serde(rename = "after_ns")]
    pub after: Nanos,
    /// Measured time on the lower level.
    #[serde(rename = "base_seen_ns")]
    pub base_seen: Nanos,
    /// What was used above the base rate until the change, the warm-up of these steps included: the least that the
    /// credit can have been.
    pub credit: f64,
    /// Bytes written until the change, where writes are a good part of the load.
    pub written_bytes: Option<f64>,
    /// Volume with such published rates and credit.
    pub like: Option<String>,
}

/// The load ran on two flat levels, the second one higher.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct RateRose {
    /// Labels of the steps over which it was seen.
    pub steps: Vec<String>,
    /// Operations per second until the change.
    pub before_per_s: f64,
    /// Operations per second from the change on.
    pub after_per_s: f64,
    /// Measured time until the change.
    #[serde(rename = "after_ns")]
    pub after: Nanos,
    /// What work is called.
    #[serde(skip)]
    pub words: Vocabulary,
}

/// No credit was seen to end, because the run was too short for it or for anything else that sets in late.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct CreditNotSeen {
    /// Labels of the steps that it is about.
    pub steps: Vec<String>,
    /// Shortest window of any step.
    #[serde(rename = "shortest_ns")]
    pub shortest: Nanos,
    /// Longest window of any step.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
    /// The fastest step, if volumes are known that give its rate from credit only.
    pub outlasted: Option<Outlasted>,
    /// Whether it is of a network: then credits are of its bandwidth.
    pub is_network: bool,
}

/// Known credits that would have lasted longer than the load did.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Outlasted {
    /// Label of the fastest step.
    pub step: String,
    /// Longest time under that step's load without a pause, warm-up left out.
    #[serde(rename = "seen_ns")]
    pub seen: Nanos,
    /// What its rate is counted in.
    pub counted: Counted,
    /// Its rate.
    pub per_s: f64,
    /// Kind of volume whose full credit ends first at this rate, and the seconds that it lasts. This is the shortest run
    /// that could have shown a credit.
    pub first: (&'static str, f64),
    /// Kind whose full credit lasts longest, and its seconds.
    pub last: (&'static str, f64),
}

/// Consecutive steps with one and the same load, laid end to end.
struct Stretch<'a>(Vec<&'a Step>);

impl<'a> Stretch<'a> {
    fn all(run: &'a Run) -> Vec<Self> {
        let mut stretches: Vec<Self> = Vec::new();
        for step in measured(run) {
            match stretches.last_mut() {
                Some(Self(steps)) if steps.last().is_some_and(|last| continues(last, step)) => steps.push(step),
                _ => stretches.push(Self(vec![step])),
            }
        }
        stretches
    }

    /// Whether the target alone can change its rate: a trace changes it as well.
    fn is_free(&self) -> bool {
        !self.0.iter().any(|step| replay::is_of_trace(step))
    }

    fn labels(&self) -> Vec<String> {
        self.0.iter().map(|step| step.label.clone()).collect()
    }

    fn seconds(&self) -> f64 {
        self.0.iter().map(|step| Figures(step).seconds()).sum()
    }

    fn intervals(&self) -> Vec<&'a Interval> {
        self.0.iter().flat_map(|step| inside(step)).collect()
    }

    /// Whether one step gives way to the next near interval `at`. What happened between steps is not known, so a change
    /// there is none within one load.
    fn is_joint(&self, at: usize) -> bool {
        let mut joint = 0;
        self.0[..self.0.len() - 1].iter().any(|step| {
            joint += inside(step).count();
            joint.abs_diff(at) <= JOINT
        })
    }

    /// Large requests are limited by their bytes, small ones by their number.
    fn counted(&self) -> Counted {
        let mut all = Counters::default();
        self.0.iter().for_each(|step| all.add(&step.counters));
        match (requests(&all), bytes(&all)) {
            (Some(requests), Some(bytes)) if bytes as f64 >= LARGE_REQUEST_BYTES * requests as f64 && requests > 0 => {
                Counted::Bytes
            }
            _ => Counted::Requests,
        }
    }
}

fn continues(last: &Step, next: &Step) -> bool {
    last.load == next.load && last.parameters == next.parameters && last.index + 1 == next.index
}

/// Rate in each interval, if all of them know it.
fn rates(intervals: &[&Interval], count: impl Fn(&Counters) -> Option<u64>) -> Option<Vec<f64>> {
    intervals.iter().map(|interval| super::rate(count(&interval.counters), interval.duration_ns)).collect()
}

fn amount(counted: Counted, counters: &Counters) -> Option<u64> {
    match counted {
        Counted::Requests => requests(counters),
        Counted::Bytes => bytes(counters),
    }
}

fn length(intervals: &[&Interval]) -> Nanos {
    Nanos(intervals.iter().map(|interval| interval.duration_ns).sum())
}

/// Every burst in the run, in the order in which they happened.
pub(super) fn bursts(run: &Run) -> Vec<BurstFound> {
    Stretch::all(run).iter().filter(|stretch| stretch.is_free()).filter_map(|stretch| burst(run, stretch)).collect()
}

/// Every rise in the run.
pub(super) fn rises(run: &Run) -> Vec<RateRose> {
    let words = Vocabulary::of(run);
    Stretch::all(run).iter().filter(|stretch| stretch.is_free()).filter_map(|stretch| rise(stretch, words)).collect()
}

fn burst(run: &Run, stretch: &Stretch<'_>) -> Option<BurstFound> {
    // A server's checkpoint takes from the device what reads had before, and is no credit that ran out.
    let is_checkpoint = |step: &&Step| is_on_server(step) && step.counters.checkpoints.is_none_or(|count| count > 0);
    if stretch.0.iter().any(is_checkpoint) {
        return None;
    }
    let intervals = stretch.intervals();
    let counted = stretch.counted();
    let per_s = rates(&intervals, |counters| amount(counted, counters))?;
    let levels = two_levels(&per_s).filter(|levels| levels.after < levels.before && !stretch.is_joint(levels.at))?;
    if let Some(operations) = rates(&intervals, |counters| counters.operations) {
        let middle = super::levels::robust_mean;
        let fell = |before: f64, after: f64| 1.0 - after / before;
        let operations_fell = fell(middle(&operations[..levels.at]), middle(&operations[levels.at..]));
        if operations_fell < OPERATIONS_FELL * fell(levels.before, levels.after) {
            return None;
        }
    }
    if others_took(run, stretch, levels.at).is_some_and(|share| share >= OTHERS_TOOK) {
        return None;
    }
    let (bursting, based) = intervals.split_at(levels.at);
    let above = |interval: &Interval| {
        let seconds = interval.duration_ns as f64 / 1e9;
        Some(amount(counted, &interval.counters)? as f64 - levels.after * seconds)
    };
    // A credit does not grow beyond full, so a warm-up that used less than the base rate added nothing.
    let warmup =
        stretch.0[0].intervals.iter().filter(|interval| interval.warmup).filter_map(above).map(|used| used.max(0.0));
    let credit = bursting.iter().filter_map(|interval| above(interval)).sum::<f64>() + warmup.sum::<f64>();
    let mut used = Counters::default();
    bursting.iter().for_each(|interval| used.add(&interval.counters));
    let writes = used.physical_writes.unwrap_or(0) as f64 / requests(&used).unwrap_or(0).max(1) as f64;
    Some(BurstFound {
        steps: stretch.labels(),
        counted,
        burst_per_s: levels.before,
        base_per_s: levels.after,
        after: length(bursting),
        base_seen: length(based),
        credit,
        written_bytes: used.physical_write_bytes.filter(|_| writes >= WRITES).map(|bytes| bytes as f64),
        like: known_credits::recognise(counted, levels.before, levels.after, credit),
    })
}

/// Share of the bytes that were lost from an interval on which others moved more from then on; absent where they are not seen.
fn others_took(run: &Run, stretch: &Stretch<'_>, at: usize) -> Option<f64> {
    let moved = |step: &Step, interval: &Interval| {
        let ours = super::rate(bytes(&interval.counters), interval.duration_ns)?;
        Some((ours, ours * others_share(run, step, interval)?))
    };
    let all = stretch.0.iter().flat_map(|step| inside(step).map(|interval| moved(step, interval)));
    let all: Vec<(f64, f64)> = all.collect::<Option<_>>()?;
    let (before, after) = all.split_at_checked(at).filter(|(before, after)| !before.is_empty() && !after.is_empty())?;
    let mean = |part: &[(f64, f64)], of: fn(&(f64, f64)) -> f64| part.iter().map(of).sum::<f64>() / part.len() as f64;
    let lost = mean(before, |both| both.0) - mean(after, |both| both.0);
    let gained = mean(after, |both| both.1) - mean(before, |both| both.1);
    (lost > 0.0).then_some(gained / lost)
}

fn rise(stretch: &Stretch<'_>, words: Vocabulary) -> Option<RateRose> {
    let intervals = stretch.intervals();
    let per_s = rates(&intervals, |counters| counters.operations)?;
    let levels = two_levels(&per_s).filter(|levels| levels.after > levels.before && !stretch.is_joint(levels.at))?;
    Some(RateRose {
        steps: stretch.labels(),
        before_per_s: levels.before,
        after_per_s: levels.after,
        after: length(&intervals[..levels.at]),
        words,
    })
}

/// What the windows were too short to show; nothing where a credit was seen to end.
pub(super) fn not_seen(run: &Run) -> Option<CreditNotSeen> {
    let windows = || measured(run).map(|step| step.window.duration_ns);
    let (shortest, longest) = (windows().min()?, windows().max()?);
    let outlasted = outlasted(run);
    let short = |step: &&Step| step.window.duration_ns < SHORT_WINDOW.0;
    let short: Vec<String> = measured(run).filter(short).map(|step| step.label.clone()).collect();
    let steps = match &outlasted {
        _ if !short.is_empty() => short,
        Some(outlasted) => vec![outlasted.step.clone()],
        None => return None,
    };
    Some(CreditNotSeen {
        steps,
        shortest: Nanos(shortest),
        longest: Nanos(longest),
        outlasted,
        is_network: run.workload() == Workload::Network,
    })
}

fn outlasted(run: &Run) -> Option<Outlasted> {
    let per_s = |stretch: &Stretch<'_>| {
        let step = stretch.0[0];
        match stretch.counted() {
            Counted::Requests => Figures(step).requests_per_s(),
            Counted::Bytes => super::rate(bytes(&step.counters), step.window.duration_ns),
        }
    };
    let stretches = Stretch::all(run);
    let fastest = stretches
        .iter()
        .filter_map(|stretch| Some((stretch, Figures(stretch.0[0]).requests_per_s()?)))
        .max_by(|left, right| left.1.total_cmp(&right.1))?
        .0;
    let (counted, rate) = (fastest.counted(), per_s(fastest)?);
    // Simulated storage may be any, whatever machine simulates it.
    let any = Environment::default();
    let environment = if run.target.is_simulated() { &any } else { &run.environment };
    let [first, last] = known_credits::unseen(environment, counted, rate, fastest.seconds())?;
    Some(Outlasted {
        step: fastest.0[0].label.clone(),
        seen: Nanos((fastest.seconds() * 1e9) as u64),
        counted,
        per_s: rate,
        first,
        last,
    })
}

impl Message for BurstFound {
    fn rule(&self) -> Rule {
        Rule::CreditSpent
    }

    fn sentence(&self) -> String {
        let cache = self.written_bytes.map_or(String::new(), |bytes| {
            format!(", or a write cache that was full after {}", Counted::Bytes.amount_words(bytes))
        });
        let like = self.like.as_ref().map_or(String::new(), |kind| format!(" These are the rates of {kind}."));
        format!(
            "Storage gave {} for {} of {}, then {}: this looks like a burst credit of at least {} that ran out{cache}.{like}",
            self.counted.rate_words(self.burst_per_s),
            self.after,
            list(&self.steps),
            self.counted.rate_words(self.base_per_s),
            self.counted.amount_words(self.credit)
        )
    }

    fn advice(&self) -> Option<String> {
        let base = self.counted.rate_words(self.base_per_s);
        Some(format!("Size by {base}, which is what it sustains; means over this window mix both rates."))
    }

    fn steps(&self) -> Option<&[String]> {
        Some(&self.steps)
    }
}

impl Message for RateRose {
    fn rule(&self) -> Rule {
        Rule::SteadinessRise
    }

    fn sentence(&self) -> String {
        format!(
            "The rate rose from {} to {} (+{} %) after {} of {}: a cache warmed, or something that held it back ended.",
            group_thousands(self.before_per_s),
            self.words.rate(self.after_per_s),
            percent(self.after_per_s / self.before_per_s - 1.0),
            self.after,
            list(&self.steps)
        )
    }

    fn advice(&self) -> Option<String> {
        Some("Repeat with a warm-up longer than this.".to_owned())
    }

    fn steps(&self) -> Option<&[String]> {
        Some(&self.steps)
    }
}

impl Message for CreditNotSeen {
    fn rule(&self) -> Rule {
        Rule::CreditUnseen
    }

    fn sentence(&self) -> String {
        let credits =
            if self.is_network { "bandwidth credits of cloud machines" } else { "burst credits of cloud volumes" };
        let Some(Outlasted { step, seen, counted, per_s, first, last }) = &self.outlasted else {
            let (shortest, longest) = (self.shortest.to_string(), self.longest.to_string());
            let range = if shortest == longest { shortest } else { format!("{shortest} to {longest}") };
            return format!(
                "Windows of {} last only {range}: no limit that sets in later was seen, and {credits} last longer.",
                list(&self.steps)
            );
        };
        let longest =
            if first.0 == last.0 { String::new() } else { format!(", that of {} for {}", last.0, about(last.1)) };
        format!(
            "No burst credit was seen to end in {seen} at {} ({step}); a full credit of {} would last for {} at this rate{longest}.",
            counted.rate_words(*per_s),
            first.0,
            about(first.1)
        )
    }

    fn advice(&self) -> Option<String> {
        Some(match &self.outlasted {
            Some(outlasted) => format!(
                "Do not call this rate sustained: the shortest run that could show a credit end is {}.",
                about(outlasted.first.1)
            ),
            None if self.is_network => "For a verdict on a cloud's network, run 30 minutes or more.".to_owned(),
            None => "For a verdict on a cloud volume, run 30 minutes or more.".to_owned(),
        })
    }
}
