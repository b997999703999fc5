//! Whether the speed fell while the same work went on, when, and why.

use crate::Rule;
use crate::{Message, rate, steadiness, two_levels};
use model::record::{HostStats, Interval, Step};
use model::units::{Nanos, percent};

/// A fall of less than this share does not matter.
const FELL: f64 = 0.05;
/// Parts that a load is cut into to see a slow fall, and the fewest seconds of each.
const PARTS: usize = 5;
const SECONDS_PER_PART: usize = 6;
/// By how much a share of time has to grow to be the cause of a fall: a good part of the smallest fall that is reported.
const GREW: f64 = 0.02;
/// By how much a clock has to fall.
const CLOCK_FELL: f64 = 0.03;
/// From this temperature on processors slow themselves, or are about to: limits are from 95 to 105 degrees.
const HOT_CELSIUS: f64 = 90.0;

/// The speed fell.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct SpeedFell {
    /// Label of the step.
    pub steps: Vec<String>,
    /// Slices per second before.
    pub before_per_s: f64,
    /// Slices per second after.
    pub after_per_s: f64,
    /// Measured time until it fell; of a slow fall until the last part began.
    #[serde(rename = "after_ns")]
    pub after: Nanos,
    /// Whether it fell bit by bit rather than at once.
    pub is_slow: bool,
    /// Why, where that was seen.
    pub cause: FallCause,
}

/// Why a speed fell.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FallCause {
    /// The kernel counted that processors were slowed for their heat, or they were as hot as that when their clock fell.
    Heat {
        /// The highest temperature, where it is known.
        celsius: Option<f64>,
    },
    /// The hypervisor took more: the credits of a burstable machine are used up, or a neighbour woke up.
    Steal {
        /// Share of time that it took after the fall, 0 to 1.
        share: f64,
    },
    /// Other processes came.
    Others {
        /// Share of time that they took after the fall, 0 to 1.
        share: f64,
    },
    /// The clock fell, and nothing says why: many processors lower it when all of them are busy for long.
    Clock {
        /// Before the fall.
        from_hz: u64,
        /// After it.
        to_hz: u64,
    },
    /// Nothing that is counted changed.
    Unknown,
}

impl SpeedFell {
    pub(super) fn of(step: &Step) -> Option<Self> {
        let seconds = steadiness::seconds_inside(step);
        let per_s: Vec<f64> =
            seconds.iter().map(|second| rate(second.counters.operations, second.duration_ns)).collect::<Option<_>>()?;
        let (at, before_per_s, after_per_s, is_slow) = at_once(&per_s).or_else(|| slowly(&per_s))?;
        let (before, after) = seconds.split_at(at);
        let elapsed = before.iter().map(|second| second.duration_ns).sum();
        let cause = cause(step, before, after);
        let steps = vec![step.label.clone()];
        Some(Self { steps, before_per_s, after_per_s, after: Nanos(elapsed), is_slow, cause })
    }

    fn share(&self) -> f64 {
        1.0 - self.after_per_s / self.before_per_s
    }

    pub(super) fn phrase(&self) -> String {
        let why = match self.cause {
            FallCause::Heat { .. } => ": it was hot",
            FallCause::Steal { .. } => ": the hypervisor took the rest",
            FallCause::Others { .. } => ": other processes came",
            FallCause::Clock { .. } => ": its clock fell",
            FallCause::Unknown => "",
        };
        format!("the speed fell by {} % after {}{why}", percent(self.share()), self.after)
    }
}

fn at_once(per_s: &[f64]) -> Option<(usize, f64, f64, bool)> {
    let levels = two_levels(per_s).filter(|levels| levels.after < levels.before * (1.0 - FELL))?;
    Some((levels.at, levels.before, levels.after, false))
}

/// Every part is slower than the one before it.
fn slowly(per_s: &[f64]) -> Option<(usize, f64, f64, bool)> {
    if per_s.len() < PARTS * SECONDS_PER_PART {
        return None;
    }
    let begin = |part: usize| part * per_s.len() / PARTS;
    let median = |part: usize| {
        let mut values = per_s[begin(part)..begin(part + 1)].to_vec();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let medians: [f64; PARTS] = std::array::from_fn(median);
    let falls = medians.windows(2).all(|pair| pair[1] < pair[0]);
    let (first, last) = (medians[0], medians[PARTS - 1]);
    (falls && last < first * (1.0 - FELL)).then(|| (begin(PARTS - 1), first, last, true))
}

fn cause(step: &Step, before: &[&Interval], after: &[&Interval]) -> FallCause {
    let sum = |seconds: &[&Interval]| {
        let mut hosts = seconds.iter().filter_map(|second| second.host.as_ref());
        let mut sum: HostStats = hosts.next()?.clone();
        hosts.for_each(|host| sum.add(host));
        Some(sum)
    };
    let Some((before, after)) = sum(before).zip(sum(after)) else { return FallCause::Unknown };
    let processors = f64::from(step.load.sessions.unwrap_or(1).max(1));
    let of_time = |host: &HostStats, ns: u64| ns as f64 / (host.elapsed_ns.max(1) as f64 * processors);
    let clocks = before.frequency_hz.zip(after.frequency_hz);
    let clock_fell = clocks.is_some_and(|(from, to)| (to as f64) < from as f64 * (1.0 - CLOCK_FELL));
    let is_hot = after.temperature_celsius.is_some_and(|celsius| celsius >= HOT_CELSIUS);
    if after.thermal_throttles.is_some_and(|count| count > 0) || clock_fell && is_hot {
        return FallCause::Heat { celsius: after.temperature_celsius };
    }
    let grown = |of: fn(&HostStats) -> Option<u64>| {
        let share = |host: &HostStats| of(host).map(|ns| of_time(host, ns));
        let (earlier, later) = (share(&before)?, share(&after)?);
        (later - earlier >= GREW).then_some(later)
    };
    let others = |host: &HostStats| host.loaded.busy_ns.map(|busy| busy.saturating_sub(host.loaded.own_ns));
    match (grown(|host| host.loaded.steal_ns), grown(others), clocks) {
        (Some(share), ..) => FallCause::Steal { share },
        (None, Some(share), _) => FallCause::Others { share },
        (None, None, Some((from_hz, to_hz))) if clock_fell => FallCause::Clock { from_hz, to_hz },
        _ => FallCause::Unknown,
    }
}

impl Message for SpeedFell {
    fn rule(&self) -> Rule {
        Rule::HostSpeedFell
    }

    fn sentence(&self) -> String {
        let how = if self.is_slow { "bit by bit, most of all" } else { "at once" };
        let why = match self.cause {
            FallCause::Heat { celsius: Some(celsius) } => {
                format!("; processors slowed themselves, at {celsius:.0} degrees")
            }
            FallCause::Heat { celsius: None } => "; processors slowed themselves because they were hot".to_owned(),
            FallCause::Steal { share } => {
                format!("; from then on the hypervisor took {} % of the time", percent(share))
            }
            FallCause::Others { share } => {
                format!("; from then on other processes took {} % of the time", percent(share))
            }
            FallCause::Clock { from_hz, to_hz } => {
                format!("; the clock fell from {:.2} to {:.2} GHz", from_hz as f64 / 1e9, to_hz as f64 / 1e9)
            }
            FallCause::Unknown => "; nothing that the kernel shows changed then".to_owned(),
        };
        format!(
            "The speed of {} fell by {} % after {}, {how}: from {:.0} to {:.0} slices/s{why}.",
            self.steps.join(", "),
            percent(self.share()),
            self.after,
            self.before_per_s,
            self.after_per_s
        )
    }

    fn advice(&self) -> Option<String> {
        Some(match self.cause {
            FallCause::Heat { .. } => "Size by the speed after the fall; look at cooling and at the power limit.".to_owned(),
            FallCause::Steal { .. } => {
                "Size by the speed after the fall. A burstable machine type that has used its credits up behaves so; so does a \
                 host that is shared with others."
                    .to_owned()
            }
            FallCause::Others { .. } => "See which with `top`, and repeat without them.".to_owned(),
            FallCause::Clock { .. } | FallCause::Unknown => {
                "Size by the speed after the fall, and repeat for longer: `--duration 1h`.".to_owned()
            }
        })
    }

    fn steps(&self) -> Option<&[String]> {
        Some(&self.steps)
    }
}
