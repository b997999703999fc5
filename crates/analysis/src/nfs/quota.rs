//! A rate that stays where it is, however many connections or requests there are: whether that is the quota that a volume is sold with.

use super::connections::{ConnectionPoint, from_to, steps_of};
use crate::levels::{median, spread};
use crate::traffic::{Counted, inside, request_bytes, requests};
use crate::{Ceiling, Finding, Message, Rule, measured, rate, volumes_by_tag};
use model::platforms::{Catalogue, VolumeKind, Volumes};
use model::record::{Run, Step};
use model::units::{Nanos, group_thousands, percent};

/// From second to second only something that counts holds a rate so even.
const HELD: f64 = 0.02;
/// What a volume that the user named is sold with is reached from this share of it on, and left by this much at most: heads of calls
/// may count, and seconds of two clocks differ.
const REACHED: (f64, f64) = (0.93, 1.03);
/// What would be sold with a volume of the size that the server reports, where nobody named it, is it within this share.
const OF_SIZE: f64 = 0.03;
/// Time of requests that differs by less from what depth and rate make of it follows Little's law.
const IN_PROPORTION: f64 = 0.1;

/// A rate that stays.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Plateau {
    /// Labels of the steps.
    pub steps: Vec<String>,
    /// Over which loads, in words: `4 to 16 connections`.
    pub over: String,
    /// Requests per second.
    pub per_s: f64,
    /// Megabytes (10^6) per second.
    pub megabytes_per_s: Option<f64>,
    /// How far seconds stray from each other, as a share, where it is known.
    pub deviation: Option<f64>,
    /// Mean time of a request, and what depth over rate makes of it, where connections were varied.
    pub time: Option<(Nanos, Nanos)>,
    /// What the volume is sold with, if that is what is seen.
    pub published: Option<Published>,
}

/// What a volume is sold with.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Published {
    /// The volume, such as `ANF Ultra of 8 TiB x 1`.
    pub name: String,
    /// What is counted.
    pub counted: Counted,
    /// Requests or bytes per second that it allows.
    pub allows_per_s: f64,
    /// The share of that which was seen.
    pub share: f64,
    /// Whether a tag names it; else it is what a volume of the size that the server reports would be.
    pub is_tagged: bool,
}

/// A cap of a sweep of depths that a quota explains.
pub(super) fn of_depths(run: &Run, found: &[Finding]) -> Option<Plateau> {
    found.iter().find_map(|finding| match finding {
        Finding::Ceiling(ceiling) => Plateau::of_ceiling(run, ceiling),
        _ => None,
    })
}

/// Largest scatter of the seconds of these steps.
fn deviation(steps: &[&Step]) -> Option<f64> {
    let of = |step: &&Step| {
        let rates: Vec<f64> =
            inside(step).filter_map(|second| rate(requests(&second.counters), second.duration_ns)).collect();
        let middle = median(&rates);
        (middle > 0.0).then(|| spread(&rates) / middle)
    };
    steps.iter().filter_map(of).reduce(f64::max)
}

impl Plateau {
    pub(super) fn of_connections(run: &Run, depth: u32, counted: Counted, points: &[&ConnectionPoint]) -> Option<Self> {
        let labels = steps_of(points);
        let steps: Vec<&Step> = measured(run).filter(|step| labels.contains(&step.label)).collect();
        let bytes = request_bytes(steps.first()?)?;
        let mean_of = |of: &dyn Fn(&ConnectionPoint) -> Option<f64>| {
            points.iter().map(|point| of(point)).sum::<Option<f64>>().map(|sum| sum / points.len() as f64)
        };
        let per_s = mean_of(&|point| Some(point.measured.per_s))?;
        let (requests, bytes_per_s) = match counted {
            Counted::Requests => (per_s, per_s * bytes),
            Counted::Bytes => (per_s / bytes, per_s),
        };
        let taken = mean_of(&|point| Some(point.mean?.0 as f64));
        Some(Self {
            over: from_to(points),
            per_s: requests,
            megabytes_per_s: Some(bytes_per_s / 1e6),
            deviation: deviation(&steps),
            time: taken.map(|ns| (Nanos(ns as u64), Nanos((f64::from(depth) / requests * 1e9) as u64))),
            published: published(run, requests, Some(bytes_per_s)),
            steps: labels,
        })
    }

    /// A cap that a sweep of depths found and no table of fixed rates explains.
    fn of_ceiling(run: &Run, ceiling: &Ceiling) -> Option<Self> {
        if !ceiling.is_cap() || ceiling.like.is_some() {
            return None;
        }
        let bytes_per_s = ceiling.megabytes_per_s.map(|megabytes| megabytes * 1e6);
        let published = published(run, ceiling.per_s, bytes_per_s)?;
        let steps: Vec<&Step> = measured(run).filter(|step| ceiling.steps.contains(&step.label)).collect();
        let over = if ceiling.loads.0 == ceiling.loads.1 {
            ceiling.loads.0.clone()
        } else {
            format!("{} to {}", ceiling.loads.0, ceiling.loads.1)
        };
        Some(Self {
            steps: ceiling.steps.clone(),
            over,
            per_s: ceiling.per_s,
            megabytes_per_s: ceiling.megabytes_per_s,
            deviation: deviation(&steps),
            time: None,
            published: Some(published),
        })
    }

    /// Whether a quota explains it: a published one, or one that shows in how even the rate is.
    pub fn is_quota(&self) -> bool {
        self.published.is_some() || self.is_held()
    }

    fn is_held(&self) -> bool {
        let follows = self.time.is_none_or(|(is, would)| (is.0 as f64 / would.0 as f64 - 1.0).abs() < IN_PROPORTION);
        self.deviation.is_some_and(|deviation| deviation < HELD) && follows
    }

    fn rate(&self) -> String {
        let bytes = self.megabytes_per_s.map_or_else(String::new, |mb| format!(" ({} MB/s)", group_thousands(mb)));
        format!("{} requests/s{bytes}", group_thousands(self.per_s))
    }

    /// Why nothing more comes of more, in few words.
    pub(super) fn phrase(&self) -> String {
        match &self.published {
            Some(published) => format!("the volume's quota is reached, {}", published.words()),
            None if self.is_held() => format!("something holds the rate at {}", self.rate()),
            None => "the server or the network gives no more".to_owned(),
        }
    }
}

impl Published {
    fn words(&self) -> String {
        let sold = self.counted.rate_words(self.allows_per_s);
        format!("{} % of the {sold} of {}", percent(self.share), self.name)
    }
}

/// What the volume is sold with, if `per_s` requests or as many bytes are that: of the volume that a tag names, or else of the kinds
/// whose rate follows from their size, if they had the size that the server reports.
fn published(run: &Run, per_s: f64, bytes_per_s: Option<f64>) -> Option<Published> {
    let catalogue = Catalogue::built_in();
    if let Some(volumes) = volumes_by_tag(run, catalogue) {
        let is_reached = |found: &Published| (REACHED.0..=REACHED.1).contains(&found.share);
        return limits(&volumes, per_s, bytes_per_s, true).into_iter().find(is_reached);
    }
    let gib = run.target.facts.nfs.volume_bytes? as f64 / f64::from(1 << 30);
    let by_size =
        |kind: &&VolumeKind| kind.over_network && kind.throughput.as_ref().is_some_and(|rule| rule.per_gib.is_some());
    let sold = catalogue.volumes().iter().filter(by_size).filter_map(|kind| {
        let volumes = Volumes::parse(&format!("{}:{gib}G", kind.name), catalogue).ok()?;
        limits(&volumes, per_s, bytes_per_s, false).into_iter().find(|found| (found.share - 1.0).abs() <= OF_SIZE)
    });
    sold.min_by(|one, other| (one.share - 1.0).abs().total_cmp(&(other.share - 1.0).abs()))
}

fn limits(volumes: &Volumes, per_s: f64, bytes_per_s: Option<f64>, is_tagged: bool) -> Vec<Published> {
    let count = f64::from(volumes.count);
    let name = if volumes.count == 1 { volumes.name().trim_end_matches(" x 1").to_owned() } else { volumes.name() };
    let of = |counted: Counted, seen: Option<f64>, each: Option<f64>| {
        let (seen, allows_per_s) = (seen?, each? * count);
        let share = seen / allows_per_s;
        Some(Published { name: name.clone(), counted, allows_per_s, share, is_tagged })
    };
    let bytes = of(Counted::Bytes, bytes_per_s, volumes.each.mb_per_s.map(|mb| mb * 1e6));
    bytes.into_iter().chain(of(Counted::Requests, Some(per_s), volumes.each.iops)).collect()
}

impl Message for Plateau {
    fn rule(&self) -> Rule {
        Rule::NfsQuota
    }

    fn sentence(&self) -> String {
        let even = self
            .deviation
            .map_or_else(String::new, |deviation| format!(", within {} % from second to second", percent(deviation)));
        let time = self.time.map_or_else(String::new, |(is, would)| {
            format!(", while a request takes {is}, as the depth makes it at that rate ({would}, by Little's law)")
        });
        let seen = format!("from {} the rate stays at {}{even}{time}", self.over, self.rate());
        match &self.published {
            Some(published) if published.is_tagged => {
                format!("The volume's quota is the limit: {seen}. That is {}.", published.words())
            }
            Some(published) => format!(
                "The volume's quota seems to be the limit: {seen}. That is {}, which a volume would be sold with that has the size which \
                 the server reports.",
                published.words()
            ),
            None => format!(
                "Something that counts holds the rate, such as a quota of the volume or a network that is held to a rate: {seen}."
            ),
        }
    }

    fn advice(&self) -> Option<String> {
        let advice = match &self.published {
            Some(published) if published.is_tagged => {
                "More connections or requests bring nothing: a larger volume, a higher level or a second volume does."
            }
            Some(_) => {
                "Name the volume by a tag to be sure, as in `--tag volume='ANF Ultra:8T'`; a larger volume or a higher level brings more."
            }
            None => {
                "Compare it with what the volume and the machine's network are sold with; a tag such as `--tag volume='ANF Ultra:8T'` \
                 has it done here."
            }
        };
        Some(advice.to_owned())
    }
}
