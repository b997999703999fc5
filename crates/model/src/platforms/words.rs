//! An expectation in words.

use super::Unpublished;
use super::combination::{Asked, Cache, Combination};
use super::limits::{self, Limit, Whose};
use crate::units::{Bytes, group_thousands, percent};

/// A rate is above a ceiling if it is by more than this: measuring is not exact.
const ABOVE: f64 = 1.02;

/// What a platform should reach, what binds, how bursts go, how long a test must be, and what is not known.
pub fn sentences(platform: &Combination, expectation: &Expectation) -> Vec<String> {
    let name = platform.name();
    let Some(sustained) = expectation.sustained() else {
        return vec![format!("No limit of {name} is published that this load touches.")];
    };
    let asked = &expectation.asked;
    let unpublished = Unpublished::of(platform, asked);
    // Without the other limits this one is a bound and nothing to hope for.
    let at_most = if unpublished.is_empty() { "" } else { "at most " };
    let rate = match unpublished.has_no_bytes {
        true => format!("{} requests/s", group_thousands(sustained.per_s.floor())),
        false => rate(sustained.per_s, asked.block_bytes),
    };
    let hits = match platform.cache {
        Cache::Read => format!(" of which the host's cache serves {} %", whole_percent(asked.hit_share)),
        Cache::None => String::new(),
    };
    let mut sentences = vec![format!(
        "{name} should reach {at_most}{rate} of {} with {} % reads{hits}: {} bind{}.",
        Bytes(asked.block_bytes as u64),
        whole_percent(asked.read_share),
        sustained.whose.words(),
        if sustained.whose.is_of_requests() { "" } else { "s" }
    )];
    sentences.extend(next(expectation));
    sentences.extend(bursts(platform, expectation));
    sentences.extend(unknown(platform, asked, &unpublished));
    sentences
}

fn whole_percent(share: f64) -> String {
    percent(share).trim_end_matches(".0").to_owned()
}

fn rate(per_s: f64, bytes: f64) -> String {
    format!("{} requests/s ({} MB/s)", group_thousands(per_s.floor()), group_thousands((per_s * bytes / 1e6).floor()))
}

/// The limit that would bind next, of another owner than the first.
fn next(expectation: &Expectation) -> Option<String> {
    let binding = expectation.sustained()?.whose;
    let others = expectation.limits.iter().filter(|limit| owner(limit.whose) != owner(binding));
    let next = others.min_by(|a, b| a.binds_at(false).total_cmp(&b.binds_at(false)))?;
    let per_s = next.binds_at(false);
    Some(format!("Next, at {} requests/s, would be {}.", group_thousands(per_s.floor()), next.whose.words()))
}

fn owner(whose: Whose) -> u8 {
    match whose {
        Whose::VolumesIops | Whose::VolumesBytes => 0,
        Whose::MachineIops | Whose::MachineBytes | Whose::Network => 1,
        Whose::CacheIops | Whose::CacheBytes => 2,
        Whose::LocalReads | Whose::LocalWrites | Whose::LocalBytes | Whose::LocalWriteBytes => 3,
    }
}

fn bursts(platform: &Combination, expectation: &Expectation) -> Vec<String> {
    let sustained_s = expectation.seconds_to_sustained();
    let Some(sustained) = expectation.sustained().filter(|_| sustained_s > 0.0) else {
        return vec![match network_burst(platform, expectation) {
            Some(network) => network,
            None => "None of these limits is on credit: a test sees them from its first minute.".to_owned(),
        }];
    };
    let mut text = "With full credits it gives ".to_owned();
    for phase in &expectation.phases {
        let (Some(seconds), Some(ends)) = (phase.seconds, phase.ends) else { continue };
        text.push_str(&format!(
            "{} requests/s for {} (until the credit of {} is spent), then ",
            group_thousands(phase.per_s.floor()),
            length(seconds),
            ends.words()
        ));
    }
    text.push_str(&format!("{} requests/s.", group_thousands(sustained.per_s.floor())));
    let mut sentences = vec![text];
    sentences.push(format!(
        "To see what lasts, a test must apply full load for more than {}, with full credits at its start.",
        length(sustained_s)
    ));
    for limit in &expectation.limits {
        let Some(credit) = limit.credit else { continue };
        let unit = if limit.whose.is_of_requests() { "requests" } else { "MB" };
        let refill = credit.refill_s.map_or_else(String::new, |seconds| {
            format!(", which are there again after {} without load", length(seconds))
        });
        sentences.push(format!(
            "The credit of {}: {} {unit} beyond the base{refill}.",
            limit.whose.words(),
            group_thousands(credit.full)
        ));
    }
    sentences.extend(network_burst(platform, expectation));
    sentences
}

/// A network's burst is on a credit of which nothing is published but its rate, so it is in no phase.
fn network_burst(platform: &Combination, expectation: &Expectation) -> Option<String> {
    let limit = expectation.limits.iter().find(|limit| limit.whose == Whose::Network)?;
    let burst = platform.machine.network_burst_mbit? / 8.0 * f64::from(platform.nodes);
    (burst > limit.per_s).then(|| {
        format!(
            "The machines' network bursts from {} to {} MB/s for an unpublished time. That is not counted here: a \
            test may see more until the burst ends.",
            group_thousands(limit.per_s.floor()),
            group_thousands(burst.floor())
        )
    })
}

/// What is left out of the answer because nothing is published of it.
fn unknown(platform: &Combination, asked: &Asked, unpublished: &Unpublished) -> Vec<String> {
    if unpublished.is_empty() {
        return Vec::new();
    }
    let mut sentences = vec![format!("No limit is known of {}: the ceiling may be lower.", unpublished.words())];
    if unpublished.has_no_bytes {
        let of = match unpublished.smaller_kib {
            Some(kib) => format!("of {}", Bytes((kib * 1024.0) as u64)),
            None => "of an unpublished size".to_owned(),
        };
        sentences.push(format!(
            "What is published of the storage in {} are requests per second {of}. Of {} it gives no more, and by its bytes \
             perhaps far fewer: measure it.",
            platform.machine.name,
            Bytes(asked.block_bytes as u64)
        ));
    }
    sentences
}

/// A measured rate beside what is allowed: `61,000 of 80,000 requests/s that the volumes allow; the machine allows 51,200 a node`. A rate
/// that is above the ceiling says so.
pub fn measured_against(per_s: f64, platform: &Combination, expectation: &Expectation) -> Option<String> {
    let sustained = expectation.sustained()?;
    let ceiling =
        format!("{} requests/s that {}", group_thousands(sustained.per_s.floor()), allowed_by(sustained.whose));
    let measured = group_thousands(per_s);
    let compared = if per_s <= sustained.per_s * ABOVE {
        format!("{measured} of {ceiling}")
    } else {
        let burst = expectation.burst().map_or_else(String::new, |burst| {
            format!(" in the long run ({} with full credits)", group_thousands(burst.per_s.floor()))
        });
        format!("{measured}, more than the {ceiling}{burst}")
    };
    let others = expectation.limits.iter().filter(|limit| owner(limit.whose) != owner(sustained.whose));
    let next = others.min_by(|a, b| a.binds_at(false).total_cmp(&b.binds_at(false)));
    let next =
        next.map_or_else(String::new, |next| format!("; {}", next_allows(next.whose, next.binds_at(false), platform)));
    let unpublished = Unpublished::of(platform, &expectation.asked);
    let unknown = match unpublished.is_empty() {
        true => String::new(),
        false => format!("; no limit is known of {}, so it may allow less", unpublished.words()),
    };
    let is_copied = platform.standings().any(|(_, standing)| standing.secondary);
    let copied = if is_copied { "; some of these limits are from a secondary copy" } else { "" };
    Some(format!("{compared}{next}{copied}{unknown}"))
}

/// Who sets a limit, as it stands behind the limit: `the volumes allow`.
pub fn allowed_by(whose: Whose) -> &'static str {
    match whose {
        Whose::VolumesIops | Whose::VolumesBytes => "the volumes allow",
        Whose::MachineIops | Whose::MachineBytes => "the machines allow",
        Whose::CacheIops | Whose::CacheBytes => "the machines' caches allow",
        Whose::Network => "the network allows",
        Whose::LocalReads | Whose::LocalWrites | Whose::LocalBytes | Whose::LocalWriteBytes => {
            "the storage that is built in allows"
        }
    }
}

fn next_allows(whose: Whose, per_s: f64, platform: &Combination) -> String {
    let (all, each) = (per_s.floor(), (per_s / f64::from(platform.nodes)).floor());
    let of_each = if platform.nodes > 1 { " a node" } else { "" };
    match whose {
        Whose::MachineIops | Whose::MachineBytes => format!("the machine allows {}{of_each}", group_thousands(each)),
        Whose::CacheIops | Whose::CacheBytes => {
            format!("the machine's cache allows {}{of_each}", group_thousands(each))
        }
        _ => format!("{} {}", allowed_by(whose), group_thousands(all)),
    }
}

/// A time that bursts last: `31 min 2 s`, `15 h`.
pub fn length(seconds: f64) -> String {
    let whole = seconds.round().max(0.0) as u64;
    let (hours, minutes, rest) = (whole / 3600, whole % 3600 / 60, whole % 60);
    match (hours, minutes, rest) {
        (0, 0, rest) => format!("{rest} s"),
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, rest) => format!("{minutes} min {rest} s"),
        (hours, 0, _) => format!("{hours} h"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// Rates nearer to each other than this are one: a phase that ends in no other rate is none.
const SAME: f64 = 1e-9;

/// A time during which the ceiling is the same, under a load that takes all that there is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phase {
    /// Requests of the load per second.
    pub per_s: f64,
    /// What binds.
    pub whose: Whose,
    /// How long it lasts, in seconds; absent where it lasts.
    pub seconds: Option<f64>,
    /// Whose credit is spent at its end.
    pub ends: Option<Whose>,
}

/// What a platform should reach under a load.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    /// The load.
    pub asked: Asked,
    /// Every published limit that the load touches.
    pub limits: Vec<Limit>,
    /// How the ceiling falls, from full credits to none. Empty where no limit is published.
    pub phases: Vec<Phase>,
}

impl Expectation {
    /// Of `platform` under a load of `asked`.
    pub fn of(platform: &Combination, asked: Asked) -> Self {
        Self::with_redo(platform, asked, 0.0)
    }

    /// The same where so many bytes of redo come with each request, on volumes of their own: they pass the machines all the same.
    pub fn with_redo(platform: &Combination, asked: Asked, redo_bytes: f64) -> Self {
        let asked = if platform.cache == Cache::None { Asked { hit_share: 0.0, ..asked } } else { asked };
        let mut limits = limits::of(platform, &asked, redo_bytes);
        limits.retain(|limit| limit.use_of_one > 0.0);
        let phases = phases(&limits);
        Self { asked, limits, phases }
    }

    /// The ceiling in the long run: requests of the load per second, and whose it is.
    pub fn sustained(&self) -> Option<Phase> {
        self.phases.last().copied()
    }

    /// The ceiling with full credits, where that is another.
    pub fn burst(&self) -> Option<Phase> {
        self.phases.first().copied().filter(|phase| phase.seconds.is_some())
    }

    /// How many seconds of all that there is until every credit that is touched is spent; 0 where there are none.
    pub fn seconds_to_sustained(&self) -> f64 {
        self.phases.iter().filter_map(|phase| phase.seconds).sum()
    }

    /// The limit in the long run that this is of, in requests of the load per second.
    pub fn at(&self, whose: Whose) -> Option<f64> {
        self.limits.iter().find(|limit| limit.whose == whose).map(|limit| limit.binds_at(false))
    }
}

fn phases(limits: &[Limit]) -> Vec<Phase> {
    let mut phases = Vec::new();
    // What is left of each credit; none where there is no credit or it is spent.
    let mut left: Vec<Option<f64>> = limits.iter().map(|limit| limit.credit.map(|credit| credit.full)).collect();
    // Each turn spends one credit, so there are no more of them than limits.
    for _ in 0..=limits.len() {
        let at = |index: usize| limits[index].binds_at(left[index].is_some());
        let Some(binding) = (0..limits.len()).min_by(|a, b| at(*a).total_cmp(&at(*b))) else { break };
        let per_s = at(binding);
        let spent_in = |index: usize| {
            let beyond = per_s * limits[index].use_of_one - limits[index].per_s;
            left[index].filter(|_| beyond > SAME * limits[index].per_s).map(|left| left / beyond)
        };
        let next = (0..limits.len()).filter_map(|index| Some((index, spent_in(index)?)));
        let next = next.min_by(|a, b| a.1.total_cmp(&b.1));
        let whose = limits[binding].whose;
        let Some((ends, seconds)) = next else {
            phases.push(Phase { per_s, whose, seconds: None, ends: None });
            break;
        };
        for index in 0..limits.len() {
            let beyond = per_s * limits[index].use_of_one - limits[index].per_s;
            // What is saved up meanwhile by those that are not touched is left out: they are full already or of no help.
            left[index] = left[index].map(|left| (left - seconds * beyond.max(0.0)).max(0.0));
        }
        left[ends] = None;
        phases.push(Phase { per_s, whose, seconds: Some(seconds), ends: Some(limits[ends].whose) });
    }
    phases
}
