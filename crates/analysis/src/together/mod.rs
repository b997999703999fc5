//! Whether volumes share a limit: what all of them carry together, beside the sum of what each carries alone.
//!
//! Judged by medians of undisturbed seconds. Each load was measured in several rounds, forth and back, and how far the rounds
//! differ is part of the uncertainty: what only drifted is not taken for a limit.

#[cfg(test)]
mod tests;

use super::traffic::{Counted, LARGE_REQUEST_BYTES, operations_are_requests, request_bytes};
use super::{Message, measured};
use crate::levels::{median, spread};
use crate::traffic::{bytes, inside, requests};
use crate::{GeneratorVerdict, LimitedBy, Rule, rate, sending};
use model::config::io::{IoLevel, VOLUMES_JOIN, letter};
use model::record::{Level, Run, Step, VolumeFacts};
use model::units::{group_thousands, percent};

/// Depths at which the volumes alone carry at least this share of the most that they carry alone show the limit.
const AT_TOP: f64 = 0.95;
/// A rate that grows by no more than this from one depth to the next has stopped growing.
const FLAT: f64 = 0.05;

/// What came of one depth, and of all.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TogetherVerdict {
    /// All together carry less than the sum of each alone.
    Shared,
    /// All together carry the sum.
    NotShared,
    /// All together carry less, but the load generator had no time left to send more.
    GeneratorBound,
    /// A load carried clearly more in one round than in another, so that which one counts decides the answer.
    Changed {
        /// The volumes of that load, such as `A`.
        volumes: String,
        /// Rate in its first round.
        first_per_s: f64,
        /// Rate in its last round.
        last_per_s: f64,
    },
    /// Too few undisturbed seconds of some load.
    TooFewSeconds {
        /// The volumes of that load.
        volumes: String,
        /// Seconds that count, and those that were measured.
        seconds: (usize, usize),
    },
    /// The scatter is too large to say.
    Unclear,
}

/// Volumes that were loaded alone and all together.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Together {
    /// Letter and path of each volume.
    pub volumes: Vec<(String, String)>,
    /// What rates count.
    pub counted: Counted,
    /// What was seen at each depth, least first; none where the run ended before the first was complete.
    pub points: Vec<TogetherPoint>,
    /// Index of the point that decides.
    pub decisive: Option<usize>,
    /// What came of all points.
    pub verdict: TogetherVerdict,
    /// Devices below several of the volumes.
    pub devices_shared: Vec<String>,
}

impl Together {
    /// What a run found whose steps loaded some of several volumes; absent if it is not such a run.
    pub fn of(run: &Run) -> Option<Self> {
        if !operations_are_requests(run) || run.imported.is_some() {
            return None;
        }
        let chosen: Vec<(&Step, u32, String)> = measured(run)
            .filter_map(|step| match step.level {
                Some(Level::Io(IoLevel::Volumes { depth, chosen, .. })) => Some((step, depth, chosen.to_string())),
                _ => None,
            })
            .collect();
        // Not from the steps, of which a run that was cut short has only the first.
        let VolumeFacts { paths, devices_shared } = run.target.facts.volumes.clone();
        let volumes: Vec<(String, String)> =
            paths.into_iter().enumerate().map(|(volume, path)| (letter(volume).to_string(), path)).collect();
        if volumes.len() < 2 {
            return None;
        }
        let all = volumes.iter().map(|(letter, _)| letter.as_str()).collect::<Vec<_>>().join(VOLUMES_JOIN);
        let (first, ..) = chosen.first()?;
        let counted = match request_bytes(first) {
            Some(bytes) if bytes >= LARGE_REQUEST_BYTES => Counted::Bytes,
            _ => Counted::Requests,
        };
        let mut depths: Vec<u32> = chosen.iter().map(|(_, depth, _)| *depth).collect();
        depths.sort_unstable();
        depths.dedup();
        let point = |depth_wanted: u32| {
            let of = |wanted: &str| -> Vec<&Step> {
                let is_it = |(_, depth, volumes): &&(&Step, u32, String)| volumes == wanted && *depth == depth_wanted;
                chosen.iter().filter(is_it).map(|(step, ..)| *step).collect()
            };
            let alone = volumes.iter().map(|(letter, _)| (letter.clone(), of(letter))).collect();
            TogetherPoint::of(run, counted, depth_wanted, alone, (all.clone(), of(&all)))
        };
        let points: Vec<TogetherPoint> = depths.into_iter().filter_map(point).collect();
        let decisive = decisive(&points);
        let verdict = match decisive {
            Some(at) => points[at].verdict.clone(),
            None => TogetherVerdict::TooFewSeconds { volumes: all, seconds: (0, 0) },
        };
        Some(Self { volumes, counted, points, decisive, verdict, devices_shared })
    }
}

/// The point that decides: the deepest one with an answer among those where the volumes alone come near the most that they
/// carry.
fn decisive(points: &[TogetherPoint]) -> Option<usize> {
    let most = points.iter().map(TogetherPoint::sum_per_s).fold(0.0, f64::max);
    let weight = |verdict: &TogetherVerdict| match verdict {
        TogetherVerdict::Shared | TogetherVerdict::NotShared => 2,
        TogetherVerdict::GeneratorBound => 1,
        _ => 0,
    };
    let at_top = points.iter().enumerate().filter(|(_, point)| point.sum_per_s() >= AT_TOP * most);
    at_top.max_by_key(|(at, point)| (weight(&point.verdict), *at)).map(|(at, _)| at)
}

impl Together {
    /// The point that decides.
    pub fn point(&self) -> Option<&TogetherPoint> {
        self.points.get(self.decisive?)
    }

    /// The answer in few words, such as `A and B share a limit of 2,000 requests/s`.
    pub fn phrase(&self) -> String {
        let names = self.names();
        let rate = |point: &TogetherPoint| self.counted.rate_words(point.together.per_s);
        match (&self.verdict, self.point()) {
            (TogetherVerdict::Shared, Some(_)) if self.still_grows() => {
                format!("{names} take from each other, and the limit that they share was not reached")
            }
            (TogetherVerdict::Shared, Some(point)) => format!("{names} share a limit of {}", rate(point)),
            (TogetherVerdict::NotShared, Some(point)) => format!("{names} share no limit up to {}", rate(point)),
            _ => format!("whether {names} share a limit is unknown"),
        }
    }

    /// Whether the volumes take from each other, and more load still brings more.
    fn still_grows(&self) -> bool {
        self.growth().is_some_and(|(growth, _)| growth > FLAT)
    }

    /// `A and B`, `A, B and C`.
    fn names(&self) -> String {
        let letters: Vec<String> = self.volumes.iter().map(|(letter, _)| letter.clone()).collect();
        super::message::list(&letters)
    }

    /// Growth of the rate together from the next smaller depth, if the volumes take from each other there too, to the one that
    /// decides, as a share; and that smaller depth.
    fn growth(&self) -> Option<(f64, u32)> {
        let before = self.points.get(self.decisive?.checked_sub(1)?)?;
        (before.verdict == TogetherVerdict::Shared).then_some(())?;
        Some((self.point()?.together.per_s / before.together.per_s - 1.0, before.depth))
    }

    fn seen(&self, point: &TogetherPoint) -> String {
        let number = |measured: &Measured| match self.counted {
            Counted::Requests => group_thousands(measured.per_s),
            Counted::Bytes => group_thousands(measured.per_s / 1e6),
        };
        let alone: Vec<String> =
            point.alone.iter().map(|measured| format!("{} {}", measured.load, number(measured))).collect();
        format!(
            "together they sustain {} % (+/- {}) of the sum of each alone, {} ({}), with {} outstanding on each",
            percent(point.share),
            percent(point.share_error),
            self.counted.rate_words(point.sum_per_s()),
            alone.join(", "),
            group_thousands(f64::from(point.depth))
        )
    }
}

impl Message for Together {
    fn rule(&self) -> Rule {
        Rule::CeilingTogether
    }

    fn sentence(&self) -> String {
        let names = self.names();
        let unknown = format!("Whether {names} share a limit is unknown");
        let Some(point) = self.point() else {
            return format!(
                "{unknown}: the run ended before each alone and all together had been measured at one depth."
            );
        };
        let (seen, together) = (self.seen(point), self.counted.rate_words(point.together.per_s));
        match &self.verdict {
            TogetherVerdict::Shared => {
                let whose = match self.devices_shared.as_slice() {
                    [] => "of the machine, or of what lies between it and them".to_owned(),
                    devices => {
                        format!("of `{}`, which lies below several of them, or of the machine", devices.join("`, `"))
                    }
                };
                match self.growth() {
                    Some((growth, before)) if growth > FLAT => format!(
                        "{names} take from each other: {seen}. That is {together}, and still {} % more than with {before}: the \
                         limit that they share, {whose}, was not reached.",
                        percent(growth)
                    ),
                    Some((_, before)) => {
                        format!("{names} share a limit of {together}, {whose}: {seen}, and no more than with {before}.")
                    }
                    None => format!("{names} share a limit of {together}, {whose}: {seen}."),
                }
            }
            TogetherVerdict::NotShared => {
                format!("{names} share no limit up to {together}: {seen}. Each volume keeps its own rate.")
            }
            TogetherVerdict::GeneratorBound => format!(
                "{unknown}: {seen}, but the load generator had no processor time left for more. This is its limit, not that of \
                 storage."
            ),
            TogetherVerdict::Changed { volumes, first_per_s, last_per_s } => format!(
                "{unknown}: {seen}, but {volumes} went from {} in the first round to {} in the last.",
                self.counted.rate_words(*first_per_s),
                self.counted.rate_words(*last_per_s)
            ),
            TogetherVerdict::TooFewSeconds { volumes, seconds: (kept, all) } => format!(
                "{unknown}: not enough undisturbed seconds; of {volumes} there are {kept} among {all} with {} outstanding on \
                 each, and {MIN_SECONDS} are needed.",
                point.depth
            ),
            TogetherVerdict::Unclear => format!("{unknown}: {seen}, which may be all of it or less."),
        }
    }

    fn advice(&self) -> Option<String> {
        let advice = match &self.verdict {
            TogetherVerdict::Shared if self.still_grows() => {
                "Add larger depths until the rate of all together stops growing."
            }
            TogetherVerdict::Shared if self.points.len() == 1 => {
                "Compare with the limits published for this machine. With more depths it shows whether it is a fixed limit: the \
                 rate stays where it is."
            }
            TogetherVerdict::Shared => {
                "Compare with the limits published for this machine; larger or more volumes bring nothing beyond it."
            }
            TogetherVerdict::NotShared => {
                "A limit of the machine, if there is one, lies higher; add volumes or depth to look further."
            }
            TogetherVerdict::GeneratorBound => "Use larger requests, fewer of them, or a machine with more processors.",
            TogetherVerdict::Changed { .. } => {
                "A burst credit or a neighbour may be the reason. Run longer (`--duration`), with more `--rounds`, once the \
                 credit is used up."
            }
            TogetherVerdict::TooFewSeconds { .. } => {
                "Use a longer `--duration`, or more `--rounds`, when storage is quieter."
            }
            TogetherVerdict::Unclear => "Use more `--rounds`, or a longer `--duration`.",
        };
        Some(advice.to_owned())
    }
}

/// Undisturbed seconds of a load that its rate is judged by, at least.
pub const MIN_SECONDS: usize = 5;
/// With more than this share of its seconds disturbed, nobody knows which of them are the undisturbed ones.
const MAX_DISTURBED: f64 = 0.4;
/// A second is disturbed if it lies farther from the median of its window than this many standard deviations, as the median
/// distance reports them, and than this share of the median: what a device scatters by is no disturbance.
const FAR: f64 = 4.0;
const NEAR: f64 = 0.03;
/// All together carry less than the sum where they carry less than this share of it.
const WHOLE: f64 = 0.95;
/// Standard errors on either side of a share.
const CONFIDENCE: f64 = 2.0;
/// Standard error of a median, in standard deviations over the square root of the number of values.
const OF_MEDIAN: f64 = 1.2533;
/// A load whose rounds differ by more than this share was not the same load.
const CHANGED: f64 = 0.15;
/// Processors of the whole machine, if requests also wait for them: slots that sit in the generator for this share of their time.
const PROCESSORS_BUSY: f64 = 0.9;
const SLOTS_WAIT: f64 = 0.1;

/// The rate of one load over all of its rounds.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Measured {
    /// What was loaded, such as the volumes `A` or `A+B`, or how many connections were used.
    pub load: String,
    /// Labels of its steps, one a round.
    pub steps: Vec<String>,
    /// Requests or bytes per second: the mean over the rounds of the median of the undisturbed seconds.
    pub per_s: f64,
    /// Its standard error: from the seconds' scatter, or from the rounds' if that is larger.
    pub error_per_s: f64,
    /// Each round by itself, in the order in which they ran.
    pub rounds_per_s: Vec<f64>,
    /// Undisturbed seconds.
    pub seconds: usize,
    /// Seconds that were left out because they were disturbed.
    pub left_out: usize,
}

/// What was seen at one depth.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct TogetherPoint {
    /// Requests outstanding on each volume.
    pub depth: u32,
    /// Each volume alone.
    pub alone: Vec<Measured>,
    /// All at once.
    pub together: Measured,
    /// What they carry together, as a share of the sum.
    pub share: f64,
    /// On either side of that share, two standard errors.
    pub share_error: f64,
    /// What came of it.
    pub verdict: TogetherVerdict,
}

impl Measured {
    /// Of the steps of one load; absent where one has no seconds.
    pub(crate) fn of(counted: Counted, load: String, steps: &[&Step]) -> Option<Self> {
        let count = match counted {
            Counted::Requests => requests,
            Counted::Bytes => bytes,
        };
        let (mut rounds_per_s, mut variance, mut seconds, mut all) = (Vec::new(), 0.0, 0, 0);
        for step in steps {
            let rates: Vec<f64> =
                inside(step).filter_map(|second| rate(count(&second.counters), second.duration_ns)).collect();
            let (middle, deviation) = (median(&rates), spread(&rates));
            let reach = (FAR * deviation).max(NEAR * middle);
            let kept: Vec<f64> = rates.iter().copied().filter(|rate| (rate - middle).abs() <= reach).collect();
            if kept.is_empty() {
                continue;
            }
            rounds_per_s.push(median(&kept));
            variance += (OF_MEDIAN * spread(&kept)).powi(2) / kept.len() as f64;
            (seconds, all) = (seconds + kept.len(), all + rates.len());
        }
        let count = rounds_per_s.len() as f64;
        let per_s = rounds_per_s.iter().sum::<f64>() / count;
        // Absent, too, where nothing was done.
        (per_s > 0.0).then(|| {
            let of_seconds = variance.sqrt() / count;
            let squares: f64 = rounds_per_s.iter().map(|round| (round - per_s).powi(2)).sum();
            let of_rounds = if count > 1.0 { (squares / (count - 1.0) / count).sqrt() } else { 0.0 };
            Self {
                load,
                steps: steps.iter().map(|step| step.label.clone()).collect(),
                per_s,
                error_per_s: of_seconds.max(of_rounds),
                rounds_per_s,
                seconds,
                left_out: all - seconds,
            }
        })
    }

    pub(crate) fn has_enough(&self) -> bool {
        let all = (self.seconds + self.left_out) as f64;
        self.seconds >= MIN_SECONDS && self.left_out as f64 <= MAX_DISTURBED * all
    }

    fn least_and_most(&self) -> (f64, f64) {
        self.rounds_per_s
            .iter()
            .fold((f64::MAX, f64::MIN), |(least, most), round| (least.min(*round), most.max(*round)))
    }

    pub(crate) fn has_changed(&self) -> bool {
        let (least, most) = self.least_and_most();
        most - least > CHANGED * most
    }
}

impl TogetherPoint {
    /// Of the steps at one depth; absent unless each load was measured at least once.
    fn of(
        run: &Run,
        counted: Counted,
        depth: u32,
        alone: Vec<(String, Vec<&Step>)>,
        (all, all_steps): (String, Vec<&Step>),
    ) -> Option<Self> {
        let measured = alone.into_iter().map(|(volumes, steps)| Measured::of(counted, volumes, &steps));
        let alone: Vec<Measured> = measured.collect::<Option<_>>()?;
        let together = Measured::of(counted, all, &all_steps)?;
        let sum: f64 = alone.iter().map(|measured| measured.per_s).sum();
        let sum_variance: f64 = alone.iter().map(|measured| measured.error_per_s.powi(2)).sum();
        let share = together.per_s / sum;
        let share_error = error_of_ratio(share, together.error_per_s / together.per_s, sum_variance.sqrt() / sum);
        let is_generators = all_steps.iter().any(|step| is_generators(run, step));
        let verdict = verdict(&alone, &together, share, share_error, is_generators);
        Some(Self { depth, alone, together, share, share_error, verdict })
    }

    /// What the volumes carry alone, added up.
    pub fn sum_per_s(&self) -> f64 {
        self.alone.iter().map(|measured| measured.per_s).sum()
    }

    /// Seconds of all loads that were left out, and all seconds.
    pub fn left_out(&self) -> (usize, usize) {
        let all = || self.alone.iter().chain([&self.together]);
        let out: usize = all().map(|measured| measured.left_out).sum();
        (out, out + all().map(|measured| measured.seconds).sum::<usize>())
    }
}

/// Two standard errors on either side of a ratio, from the relative standard errors of both of its parts.
pub(crate) fn error_of_ratio(ratio: f64, above: f64, below: f64) -> f64 {
    CONFIDENCE * above.hypot(below) * ratio
}

fn verdict(
    alone: &[Measured],
    together: &Measured,
    share: f64,
    share_error: f64,
    is_generators: bool,
) -> TogetherVerdict {
    let mut all = alone.iter().chain([together]);
    if let Some(few) = all.clone().find(|measured| !measured.has_enough()) {
        let seconds = (few.seconds, few.seconds + few.left_out);
        return TogetherVerdict::TooFewSeconds { volumes: few.load.clone(), seconds };
    }
    if let Some(changed) = all.find(|measured| measured.has_changed())
        && rounds_disagree(alone, together)
    {
        let at = |round: Option<&f64>| round.copied().unwrap_or(changed.per_s);
        return TogetherVerdict::Changed {
            volumes: changed.load.clone(),
            first_per_s: at(changed.rounds_per_s.first()),
            last_per_s: at(changed.rounds_per_s.last()),
        };
    }
    let (low, high) = (share - share_error, share + share_error);
    if high < WHOLE {
        return if is_generators { TogetherVerdict::GeneratorBound } else { TogetherVerdict::Shared };
    }
    // What may still be missing is no more than twice what counts as whole.
    let is_whole = share >= WHOLE && low >= 1.0 - 2.0 * (1.0 - WHOLE);
    if is_whole { TogetherVerdict::NotShared } else { TogetherVerdict::Unclear }
}

/// Whether the answer depends on which round of each load is taken.
fn rounds_disagree(alone: &[Measured], together: &Measured) -> bool {
    let sums = alone.iter().map(Measured::least_and_most);
    let (least, most) = sums.fold((0.0, 0.0), |(low, high), (least, most)| (low + least, high + most));
    let (together_least, together_most) = together.least_and_most();
    together_least / most < WHOLE && together_most / least >= WHOLE
}

/// Whether the load generator, or the machine that it runs on, had no processor time left for more. Processors that others keep
/// busy are no limit while requests do not wait for them.
pub(crate) fn is_generators(run: &Run, step: &Step) -> bool {
    let verdict = GeneratorVerdict::of(step);
    let is_bound = verdict.as_ref().is_some_and(|verdict| verdict.limited_by == LimitedBy::Generator);
    let waits = verdict.and_then(|verdict| verdict.slots_in_generator_counted).is_none_or(|share| share > SLOTS_WAIT);
    let is_busy = busy_share(step).is_some_and(|share| share > PROCESSORS_BUSY);
    is_bound || sending::is_saturated(run, step) || (is_busy && waits)
}

/// Share of all processors that were not idle, whoever used them.
fn busy_share(step: &Step) -> Option<f64> {
    let cpu = step.host_cpu?;
    let free = cpu.free_ns()? as f64;
    let all = cpu.busy_ns() as f64 + cpu.steal_ns.unwrap_or(0) as f64 + free;
    (all > 0.0).then(|| 1.0 - free / all)
}
