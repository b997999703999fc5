//! Why the slow operations of a step were slow.
//!
//! Operations that took far longer than most are joined to *episodes*: those that overlap, or follow each other within 20 ms. An
//! episode's cause is looked for in what the system did meanwhile ([`cause`]), and stays unknown where the evidence fits none, or does
//! not exclude others.

mod cause;
mod servers;
mod watched;
mod words;

use std::collections::BTreeSet;

use cause::Usual;
pub use cause::{Blame, StallCause};
use servers::ServersSeen;
pub use watched::{WatchedEpisode, WatchedStalls, WatchedSum};

use super::traffic::operations_are_requests;
use super::{Figures, LogCheckpoints};
use model::record::{Histogram, Interval, LONG_NS, Moment, Run, SlowOperation, Step};
use model::units::Nanos;

/// Slow is what takes longer than this quantile of a usual second, which is that of the lower quartile of seconds: stalls in most of a short
/// window must not make themselves usual,
const QUANTILE: f64 = 0.999;
/// and than so many times the median.
const TIMES_MEDIAN: u64 = 2;
/// An episode has operations that took so many times as long as the least slow one, and [`LONG_NS`].
const EPISODE_TIMES: u64 = 3;
/// Operations that follow each other within this time are of one episode.
const GAP_NS: u64 = 20_000_000;
/// An episode is of more than one session, if the step has several: a request that alone takes long is the tail of its device.
const SESSIONS: usize = 2;
/// Most episodes of a step.
const MAX_EPISODES: usize = 1_000;

/// Why operations of one step were slow.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct Stalls {
    /// The step.
    pub step: String,
    /// Its place among the run's steps: repeats have the same label.
    #[serde(skip)]
    pub place: usize,
    /// Slow is what took longer, from due to finished: than the slowest thousandth of a usual second, and twice its median.
    #[serde(rename = "threshold_ns")]
    pub threshold: Nanos,
    /// Operations of the window that took longer.
    pub operations: u64,
    /// Time that they took beyond the threshold, together.
    #[serde(rename = "beyond_ns")]
    pub beyond: Nanos,
    /// The causes, the largest share first; that which is unexplained stands where its share puts it.
    pub causes: Vec<CauseShare>,
    /// Share of that time in operations that are part of no episode, 0 to 1: single ones, as every device has them.
    pub scattered_share: f64,
    /// Share of that time in operations of which no instant is recorded, 0 to 1.
    pub unrecorded_share: f64,
    /// The episodes in the order in which they began.
    pub episodes: Vec<Episode>,
    /// Whether the record says what the system did meanwhile: otherwise there is no cause.
    #[serde(skip)]
    pub were_moments_seen: bool,
    /// Checkpoints that a small log requested, whether or not they were in the way.
    #[serde(skip)]
    pub log_checkpoints: Option<LogCheckpoints>,
    /// The slow operations that were recorded, in the order in which they were due.
    #[serde(skip)]
    pub points: Vec<SlowPoint>,
}

/// A slow operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlowPoint {
    /// From the start of the step's load to its end.
    pub ended: Nanos,
    /// From due to finished.
    pub response: Nanos,
    /// The place of its episode among all; `None` of a single one.
    pub episode: Option<usize>,
}

/// Episodes of one cause.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct CauseShare {
    /// The cause; absent where it is unexplained.
    pub cause: Option<StallCause>,
    /// Share of the time beyond the threshold, 0 to 1.
    pub share: f64,
    /// How many episodes.
    pub episodes: usize,
    /// How long they were, together.
    #[serde(rename = "length_ns")]
    pub length: Nanos,
    /// The longest.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
}

/// Slow operations that belong together.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct Episode {
    /// From the start of the window to the instant at which the first of them was due.
    #[serde(rename = "from_ns")]
    pub from: Nanos,
    /// From there until the last one had ended.
    #[serde(rename = "length_ns")]
    pub length: Nanos,
    /// How many operations there were, as far as is known: of many, only some are recorded.
    pub operations: u64,
    /// The longest time of one of them, from due to finished.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
    /// Their share of the time beyond the threshold, 0 to 1.
    pub share: f64,
    /// Why; absent where it is unexplained.
    pub blame: Option<Blame>,
}

/// An operation, and how many it stands for.
struct Weighted<'a> {
    slow: &'a SlowOperation,
    weight: f64,
}

impl Stalls {
    /// Of the step at this place; nothing if no episode is in it, or slow operations were not recorded.
    pub fn of(run: &Run, place_of_step: usize) -> Option<Self> {
        let step = run.steps.get(place_of_step).filter(|step| step.window.duration_ns > 0)?;
        let inside = || step.intervals.iter().filter(|interval| !interval.warmup);
        // What was under way when the window closed is part of it.
        let response = Figures(step).response()?;
        let threshold_ns = threshold_ns(inside())?;
        let (operations, beyond_ns) = beyond(&response, threshold_ns);
        let mut slow: Vec<Weighted<'_>> = inside().flat_map(|interval| weighted(interval, threshold_ns)).collect();
        slow.sort_by_key(|one| one.slow.due_ns());
        let sessions = step.load.sessions.unwrap_or(1).max(1) as usize;
        let stretches = stretches(&slow, threshold_ns, SESSIONS.min(sessions));
        if stretches.is_empty() || beyond_ns == 0 {
            return None;
        }
        let mut members: Vec<Vec<&Weighted<'_>>> = stretches.iter().map(|_| Vec::new()).collect();
        let mut points = Vec::with_capacity(slow.len());
        for one in &slow {
            let episode = place(&stretches, one.slow);
            if let Some(of) = episode.and_then(|place| members.get_mut(place)) {
                of.push(one);
            }
            let (ended, response) = (Nanos(one.slow.ended_ns), Nanos(one.slow.response_ns));
            points.push(SlowPoint { ended, response, episode });
        }
        // Moments of the warm-up are left out of what is usual; an episode may have begun in it.
        let moments = moments_of(step);
        let window_start_ns = step.window.warmup_ns;
        let quiet =
            moments.iter().filter(|(at_ns, _)| *at_ns >= window_start_ns && holding(&stretches, *at_ns).is_none());
        let usual = Usual::of(quiet.map(|(_, moment)| moment));
        let is_direct = run.target.facts.files.direct_io != Some(false) && !super::is_on_servers(run);
        let servers = ServersSeen::of(step);
        let is_quiet = |at_ns| at_ns >= window_start_ns && holding(&stretches, at_ns).is_none();
        let usual_looks = servers.over(|at_ns, for_ns| if is_quiet(at_ns) { for_ns } else { 0 });
        let is_raw = operations_are_requests(run);
        let about = cause::About::new((&usual, usual_looks), (is_direct, is_raw), (step, &servers));
        let recorded: f64 = slow.iter().map(|one| one.beyond_ns(threshold_ns)).sum();
        let time = recorded.max(beyond_ns as f64);
        let episode = |(stretch, members): (&Stretch, &Vec<&Weighted<'_>>)| Episode {
            from: Nanos(stretch.from_ns.saturating_sub(window_start_ns)),
            length: Nanos(stretch.until_ns - stretch.from_ns),
            operations: members.iter().map(|one| one.weight).sum::<f64>().round() as u64,
            longest: Nanos(stretch.longest_ns),
            share: members.iter().map(|one| one.beyond_ns(threshold_ns)).sum::<f64>() / time,
            blame: about.blame(stretch.evidence(members), stretch.sessions(members, sessions), &moments),
        };
        let episodes: Vec<Episode> = stretches.iter().zip(&members).map(episode).collect();
        let in_episodes: f64 = episodes.iter().map(|episode| episode.share).sum();
        Some(Self {
            step: step.label.clone(),
            place: place_of_step,
            threshold: Nanos(threshold_ns),
            operations,
            beyond: Nanos(beyond_ns),
            causes: causes(&episodes),
            scattered_share: (recorded / time - in_episodes).max(0.0),
            unrecorded_share: (1.0 - recorded / time).max(0.0),
            episodes,
            were_moments_seen: !moments.is_empty(),
            log_checkpoints: LogCheckpoints::of(run, step),
            points,
        })
    }

    /// Of each step that was measured.
    pub fn all(run: &Run) -> Vec<Self> {
        Self::of_steps(run, |_| true).collect()
    }

    fn of_steps(run: &Run, is_wanted: impl Fn(&Step) -> bool) -> impl Iterator<Item = Self> {
        let places = (0..run.steps.len()).filter(move |place| is_wanted(&run.steps[*place]));
        places.filter_map(|place| Self::of(run, place))
    }

    /// Of the step that lost most time to them, among those that are wanted.
    pub fn worst(run: &Run, is_wanted: impl Fn(&Step) -> bool) -> Option<Self> {
        Self::of_steps(run, is_wanted).max_by_key(|stalls| stalls.beyond)
    }

    /// Share of the time beyond the threshold in episodes that have a cause, 0 to 1.
    pub fn explained_share(&self) -> f64 {
        self.causes.iter().filter(|share| share.cause.is_some()).map(|share| share.share).sum()
    }
}

/// What takes longer is slow.
fn threshold_ns<'a>(intervals: impl Iterator<Item = &'a Interval>) -> Option<u64> {
    let of_second = |interval: &Interval| match interval.response.quantiles_ns(&[0.5, QUANTILE])[..] {
        [Some(median_ns), Some(high_ns)] => Some(high_ns.max(median_ns.saturating_mul(TIMES_MEDIAN))),
        _ => None,
    };
    let mut all: Vec<u64> = intervals.filter_map(of_second).collect();
    all.sort_unstable();
    all.get(all.len() / 4).copied()
}

/// Shares by cause, the largest first.
fn causes(episodes: &[Episode]) -> Vec<CauseShare> {
    let mut shares: Vec<CauseShare> = Vec::new();
    for episode in episodes {
        let cause = episode.blame.as_ref().map(|blame| blame.cause.clone());
        let place = shares.iter().position(|share| share.cause == cause).unwrap_or_else(|| {
            let (length, longest) = (Nanos(0), Nanos(0));
            shares.push(CauseShare { cause, share: 0.0, episodes: 0, length, longest });
            shares.len() - 1
        });
        let share = &mut shares[place];
        share.share += episode.share;
        share.episodes += 1;
        share.length = Nanos(share.length.0.saturating_add(episode.length.0));
        share.longest = share.longest.max(episode.length);
    }
    shares.sort_by(|one, other| other.share.total_cmp(&one.share));
    shares
}

/// How many operations took longer, and how much longer together.
fn beyond(response: &Histogram, threshold_ns: u64) -> (u64, u64) {
    let buckets = response.buckets_ns().filter(|(lowest_ns, ..)| *lowest_ns > threshold_ns);
    buckets.fold((0, 0), |(count, ns), (lowest_ns, highest_ns, more): (u64, u64, u64)| {
        let beyond_ns = lowest_ns.midpoint(highest_ns).saturating_sub(threshold_ns).saturating_mul(more);
        (count.saturating_add(more), ns.saturating_add(beyond_ns))
    })
}

/// Operations of an interval that were slow, and how many each of them stands for: of no more than there were.
fn weighted(interval: &Interval, threshold_ns: u64) -> impl Iterator<Item = Weighted<'_>> {
    let most = |count: u64| (count as f64).max(1.0);
    let kept = interval.slow.iter().flat_map(move |slow| slow.kept.iter().map(move |one| (one, most(slow.count))));
    kept.filter(move |(one, _)| one.response_ns > threshold_ns).map(|(slow, most)| {
        let weight = if slow.stands_for.is_finite() { slow.stands_for.clamp(0.0, most) } else { 1.0 };
        Weighted { slow, weight }
    })
}

impl Weighted<'_> {
    fn beyond_ns(&self, threshold_ns: u64) -> f64 {
        self.slow.response_ns.saturating_sub(threshold_ns) as f64 * self.weight
    }
}

/// Moments of an interval, each with the instant at which it began, from the start of the load.
fn moments(interval: &Interval) -> Vec<(u64, Moment)> {
    let Some(moments) = &interval.moments else { return Vec::new() };
    let mut begin_ns = moments.begin_ns;
    let each = |moment: Moment| {
        let at_ns = begin_ns;
        begin_ns = begin_ns.saturating_add(moment.length_us.saturating_mul(1_000));
        (at_ns, moment)
    };
    moments.iter().map(each).collect()
}

/// Moments of a step in their order. Those of an interval may be in the record once more, with others around them.
fn moments_of(step: &Step) -> Vec<(u64, Moment)> {
    let mut all: Vec<(u64, Moment)> = step.intervals.iter().flat_map(moments).collect();
    all.sort_by_key(|(begin_ns, _)| *begin_ns);
    all.dedup_by(|next, kept| next.0 < kept.0.saturating_add(kept.1.length_us.saturating_mul(500)));
    all
}

/// A span of time in which slow operations overlap, from the start of the load.
#[derive(Debug, Clone, PartialEq)]
struct Stretch {
    from_ns: u64,
    until_ns: u64,
    longest_ns: u64,
    sessions: BTreeSet<u32>,
}

impl Stretch {
    /// How many of the step's sessions had operations in it. Where not all are recorded, there may be as many as operations.
    fn sessions(&self, members: &[&Weighted<'_>], all: usize) -> usize {
        let operations = members.iter().map(|one| one.weight).sum::<f64>().round() as usize;
        let is_sampled = members.iter().any(|one| one.weight > 1.0);
        if is_sampled { operations.min(all).max(self.sessions.len()) } else { self.sessions.len() }
    }

    /// When what held its operations up must have happened: while the one was under way that took longest once it was sent. Where they were sent late
    /// instead, until then.
    fn evidence(&self, members: &[&Weighted<'_>]) -> (u64, u64) {
        let Some(longest) = members.iter().map(|one| one.slow).max_by_key(|slow| slow.service_ns) else {
            return (self.from_ns, self.until_ns);
        };
        if longest.service_ns.saturating_mul(3) >= self.longest_ns {
            return (longest.ended_ns.saturating_sub(longest.service_ns), longest.ended_ns);
        }
        // They are in the order in which they were due; one before the episode is of it by its middle alone.
        let first = members.iter().find(|one| one.slow.due_ns() >= self.from_ns);
        let sent = |one: &&Weighted<'_>| one.slow.ended_ns.saturating_sub(one.slow.service_ns);
        let until_ns = first.map_or(self.until_ns, sent);
        (self.from_ns, until_ns.max(self.from_ns + 1))
    }
}

/// The place of the stretch that holds an instant.
fn holding(stretches: &[Stretch], at_ns: u64) -> Option<usize> {
    let place = stretches.partition_point(|stretch| stretch.from_ns <= at_ns).checked_sub(1)?;
    (at_ns < stretches[place].until_ns).then_some(place)
}

/// The place of the stretch in which most of an operation's time lies: it holds the middle of it.
fn place(stretches: &[Stretch], slow: &SlowOperation) -> Option<usize> {
    holding(stretches, slow.ended_ns.saturating_sub(slow.response_ns / 2))
}

/// Spans in which operations were slow enough for an episode, of at least so many sessions. `slow` is in the order in which they were due.
fn stretches(slow: &[Weighted<'_>], threshold_ns: u64, sessions: usize) -> Vec<Stretch> {
    let least_ns = threshold_ns.saturating_mul(EPISODE_TIMES).max(LONG_NS);
    let mut found: Vec<Stretch> = Vec::new();
    for Weighted { slow, .. } in slow.iter().filter(|one| one.slow.response_ns >= least_ns) {
        match found.last_mut().filter(|last| slow.due_ns() <= last.until_ns.saturating_add(GAP_NS)) {
            Some(last) => {
                last.until_ns = last.until_ns.max(slow.ended_ns);
                last.longest_ns = last.longest_ns.max(slow.response_ns);
                last.sessions.insert(slow.session);
            }
            None => found.push(Stretch {
                from_ns: slow.due_ns(),
                until_ns: slow.ended_ns,
                longest_ns: slow.response_ns,
                sessions: BTreeSet::from([slow.session]),
            }),
        }
    }
    found.retain(|stretch| stretch.sessions.len() >= sessions);
    // Of too many the longest.
    found.sort_by_key(|stretch| std::cmp::Reverse(stretch.longest_ns));
    found.truncate(MAX_EPISODES);
    found.sort_by_key(|stretch| stretch.from_ns);
    found
}

#[cfg(test)]
mod server_tests;
#[cfg(test)]
mod tests;
