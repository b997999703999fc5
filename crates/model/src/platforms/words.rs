//! An expectation in words.

use super::combination::{Asked, Cache, Combination};
use super::expectation::Expectation;
use super::limits::Whose;
use super::unpublished::Unpublished;
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
        "A test that shall see what lasts asks for all that there is for more than {}, with full credits at its start.",
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
            "The machines' network bursts from {} to {} MB/s for a time that nobody publishes. That is not counted here: a test may see \
             more until it ends, and sees what lasts only after it.",
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
            None => "of a size that nobody says".to_owned(),
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
    Some(format!("{compared}{next}{unknown}"))
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
