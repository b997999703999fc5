//! Where requests to storage spent most of their time: no cause, but where to look for one.

use super::{Carried, Claim};
use crate::generator::wanted_share;
use crate::measured::is_one_load;
use crate::{Place, TimeParts, Vocabulary, measured, sending};
use model::record::{Run, Step};
use model::units::percent;

/// Where requests spend this share of their time, most of it went.
const MOST_OF_TIME: f64 = 0.5;

/// Where requests to storage spent most of their time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeSpent {
    /// [`Place::Device`], [`Place::BeforeDevice`], or [`Place::Target`] of a server of files; [`Place::Reads`] of an engine, which were held
    /// before the device.
    pub place: Place,
    /// Share of their time at least, 0.5 to 1.
    pub share: f64,
}

impl TimeSpent {
    /// Of the only load, or of the least where even that is too much: nothing else tells why.
    pub(super) fn of_answer(run: &Run, carried: &Carried) -> Option<Self> {
        let is_why = match carried.claim {
            Claim::Seen => is_one_load(run),
            // What failed or was not steady was not too slow.
            Claim::LessThan { why: None, .. } => true,
            _ => false,
        };
        let step = measured(run).find(|step| is_why && Some(&step.label) == carried.step.as_ref())?;
        // A rate that was requested and reached was stopped by nothing.
        let is_reached = step.load.rate_operations_per_s.is_some() && sending::behind(step).is_none();
        if is_reached && carried.claim == Claim::Seen { None } else { Self::of(run, step) }
    }

    /// Of a step, whatever the bounds of its parts, from when requests were due. A busy load generator takes what is finished late, so that
    /// nothing is known of what is before the device.
    pub(super) fn of(run: &Run, step: &Step) -> Option<Self> {
        let is_idle = wanted_share(step).is_some_and(|share| share < MOST_OF_TIME);
        if Vocabulary::of(run) != Vocabulary::Requests {
            let share = TimeParts::held_reads(run, step).filter(|share| *share >= MOST_OF_TIME && is_idle)?;
            return Some(Self { place: Place::Reads, share });
        }
        let parts = TimeParts::of(run, step)?;
        let of = |place| parts.part(place).map(|part| (part.least_sessions, part.most_sessions));
        let queue = of(Place::Queue).map_or(0.0, |(_, most)| most);
        if let Some((least, most)) = of(Place::Target).filter(|_| !run.target.facts.nfs.connections.is_empty()) {
            let share = Some(least / (most + queue)).filter(|share| *share >= MOST_OF_TIME && is_idle)?;
            return Some(Self { place: Place::Target, share });
        }
        let (device, before) = (of(Place::Device)?, of(Place::BeforeDevice)?);
        // Idle slots are not time of requests.
        let all = device.1.max(device.0 + before.1) + queue;
        let share = |(least, _): (f64, f64)| Some(least / all).filter(|share| *share >= MOST_OF_TIME);
        let (place, share) = match (share(device), share(before)) {
            (Some(share), _) => (Place::Device, share),
            (None, Some(share)) if is_idle => (Place::BeforeDevice, share),
            (None, _) => return None,
        };
        Some(Self { place, share: share.min(1.0) })
    }

    pub(super) fn words(self) -> String {
        let share = percent(self.share);
        match self.place {
            Place::Device => format!("requests spent {share} % of their time in the device and its queue"),
            Place::Reads => format!(
                "{share} % of waiting time went to reads held before the device, by a limiter such as the kernel's throttle or by the file \
                 system"
            ),
            Place::Target => format!("requests spent {share} % of their time on the way to the server, in it and back"),
            _ => format!(
                "requests spent {share} % of their time before the device, where a limiter such as the kernel's throttle, or the file \
                 system, keeps them"
            ),
        }
    }
}
