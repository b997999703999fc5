//! Whether volumes share a limit: what all of them carry together, beside the sum of what each carries alone.
//!
//! Judged by medians of undisturbed seconds. Each load was measured in several rounds, forth and back, and how far the rounds
//! differ is part of the uncertainty: what only drifted is not taken for a limit.

mod point;
#[cfg(test)]
mod tests;

use super::traffic::{Counted, LARGE_REQUEST_BYTES, operations_are_requests, request_bytes};
use super::{Message, measured};
use crate::Rule;
use model::config::io::{IoLevel, VOLUMES_JOIN};
use model::record::Level;
use model::record::facts::{DEVICES_SHARED, VOLUME_PATH};
use model::record::{Run, Step};
use model::units::{group_thousands, percent};

pub use point::{MIN_SECONDS, Measured, TogetherPoint};
pub(crate) use point::{error_of_ratio, is_generators};

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
        let of_path =
            |(name, path): (&String, &String)| Some((name.strip_prefix(VOLUME_PATH)?.to_owned(), path.clone()));
        // Not from the steps, of which a run that was cut short has only the first.
        let volumes: Vec<(String, String)> = run.target.facts.iter().filter_map(of_path).collect();
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
        let shared = run.target.facts.get(DEVICES_SHARED);
        let devices_shared = shared.map(|names| names.split(' ').map(str::to_owned).collect()).unwrap_or_default();
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
            "together they carry {} % (+/- {}) of the {} that they carry alone ({}) with {} outstanding on each",
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
