//! The list of what a load on processors can show.

use super::falls::SpeedFell;
use super::held::{Competition, QuotaHeld, Stolen};
use super::machine::{FarMemory, MemorySaturated, SharedCores, SlowProcessor};
use super::waiting::LateTimers;
use crate::Rule;
use crate::{Message, Severity};

/// One thing that a load on processors shows.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "each variant is documented at its type")]
pub enum HostFinding {
    Quota(QuotaHeld),
    Stolen(Stolen),
    Competition(Competition),
    Fell(SpeedFell),
    Slow(SlowProcessor),
    SharedCores(SharedCores),
    Memory(MemorySaturated),
    Far(FarMemory),
    Late(LateTimers),
}

impl HostFinding {
    /// In few words, as they stand in the opening sentence; nothing for what is a property of the machine.
    pub(super) fn phrase(&self) -> Option<String> {
        match self {
            Self::Quota(it) => Some(it.phrase()),
            Self::Stolen(it) => Some(it.phrase()),
            Self::Competition(it) => Some(it.phrase()),
            Self::Fell(it) => Some(it.phrase()),
            Self::Slow(it) => Some(it.phrase()),
            Self::SharedCores(_) | Self::Memory(_) | Self::Far(_) | Self::Late(_) => None,
        }
    }

    fn message(&self) -> &dyn Message {
        match self {
            Self::Quota(it) => it,
            Self::Stolen(it) => it,
            Self::Competition(it) => it,
            Self::Fell(it) => it,
            Self::Slow(it) => it,
            Self::SharedCores(it) => it,
            Self::Memory(it) => it,
            Self::Far(it) => it,
            Self::Late(it) => it,
        }
    }
}

impl Message for HostFinding {
    fn rule(&self) -> Rule {
        self.message().rule()
    }

    fn severity(&self) -> Severity {
        self.message().severity()
    }

    fn sentence(&self) -> String {
        self.message().sentence()
    }

    fn advice(&self) -> Option<String> {
        self.message().advice()
    }

    fn steps(&self) -> Option<&[String]> {
        self.message().steps()
    }
}
