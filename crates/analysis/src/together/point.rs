//! One depth: each volume alone, and all of them.

use super::TogetherVerdict;
use crate::levels::{median, spread};
use crate::traffic::{Counted, bytes, inside, requests};
use crate::{GeneratorVerdict, LimitedBy, rate, sending};
use model::record::{CpuTime, Run, Step};

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
    pub(super) fn of(
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
    let CpuTime { user_ns, system_ns, iowait_ns, steal_ns, idle_ns } = step.host_cpu?;
    let free = idle_ns? + iowait_ns.unwrap_or(0);
    let all = user_ns + system_ns + steal_ns.unwrap_or(0) + free;
    (all > 0).then(|| 1.0 - free as f64 / all as f64)
}
