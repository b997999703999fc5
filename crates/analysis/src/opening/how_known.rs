//! What a cause rests on.

use super::{Opening, StoppedBy};
use crate::Ceiling;
use crate::ceiling::PulseVerdict;
use crate::check::{Check, Stopped};

/// What a cause rests on, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HowKnown {
    /// It was seen while the load ran.
    Seen,
    /// An experiment told it from what looks the same: a pause, or requests of another size.
    Tested,
    /// It was relieved, and the load rose.
    Proven,
}

impl Ceiling {
    /// Whether an experiment says the same. One that says neither leaves it seen.
    pub fn how_known(&self) -> HowKnown {
        let is_by_pulses = self.pulsed.is_some_and(|pulsed| pulsed.verdict != PulseVerdict::Unknown);
        if is_by_pulses || self.other_size.is_some() { HowKnown::Tested } else { HowKnown::Seen }
    }
}

impl Check {
    fn how_known(&self) -> Option<HowKnown> {
        if self.relief.as_ref().is_some_and(crate::check::Relief::is_proven) {
            return Some(HowKnown::Proven);
        }
        match self.room.as_ref()?.stopped_by.as_ref()? {
            Stopped::Ceiling(ceiling) => Some(ceiling.how_known()),
            Stopped::Server(_) | Stopped::Generator => Some(HowKnown::Seen),
            Stopped::Missed(_) | Stopped::Schedule | Stopped::Slots(_) | Stopped::GivenUp(_) => None,
        }
    }
}

impl Opening {
    /// What the cause rests on; absent where none is named.
    pub fn how_known(&self) -> Option<HowKnown> {
        if let Some(check) = &self.check {
            return check.how_known();
        }
        match self.stopped_by.as_ref()? {
            StoppedBy::Ceiling(ceiling) => Some(ceiling.how_known()),
            // Steps of several sizes are that experiment.
            StoppedBy::Caps(_) => Some(HowKnown::Tested),
            StoppedBy::LoadGenerator
            | StoppedBy::SentLate(_)
            | StoppedBy::Crowded(_)
            | StoppedBy::Sessions(..)
            | StoppedBy::Network(_)
            | StoppedBy::OneHost => Some(HowKnown::Seen),
            StoppedBy::MostOfTime(..)
            | StoppedBy::MostOfRequests(_)
            | StoppedBy::Latency { .. }
            | StoppedBy::Queue
            | StoppedBy::Errors
            | StoppedBy::Missed(_)
            | StoppedBy::Hung(_)
            | StoppedBy::Unsteady
            | StoppedBy::Nothing => None,
        }
    }
}
