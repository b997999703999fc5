//! One recorded experiment.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{CheckRequest, Environment, FleetPart, Imported, Like, Load, Merged, MergedPart, Outcome, Step, Workload};

/// Version of the document. Every version that was released stays readable.
pub const FORMAT: u32 = 1;

/// One recorded experiment: what was asked, where it ran, and what was seen at each load level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Run {
    /// Version of this document's format.
    pub format: u32,
    /// Unique name of the run and of its directory, such as `20260301-101500-slob-7f3a`.
    pub id: String,
    /// Name built from the tags and the load, such as `p30x2_d8s_s64_t1_wu64`.
    pub name: String,
    /// Which program made it.
    pub tool: Tool,
    /// What load it puts on, as it was asked for.
    pub load: Load,
    /// The command line, secrets removed.
    pub command: Vec<String>,
    /// When the run began.
    pub started_at: Timestamp,
    /// When it ended; absent while it goes on, or when it was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// How it ended.
    pub outcome: Outcome,
    /// What the user calls the things that vary: `vm=d8s disk=p30x2`.
    pub tags: BTreeMap<String, String>,
    /// Seed of every random choice in the run, where its program reports one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The parameters that all steps have in common, as text for display: made from the load, or as another program names them. Secrets
    /// are not among them.
    pub parameters: BTreeMap<String, String>,
    /// Where load landed.
    pub target: Target,
    /// The machine.
    pub environment: Environment,
    /// What the user should know about how the run was made: fallbacks taken, parameters ignored.
    pub notes: Vec<String>,
    /// The files that it was made from, if another program measured it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Imported>,
    /// Whether the platform carries what: the question that it answers, if it is a check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckRequest>,
    /// What its load was made like; absent where nobody asked for a production's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub like: Option<Like>,
    /// Which part of a fleet's experiment it is; absent where it was the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<FleetPart>,
    /// How parts of a fleet became this run; absent where it is no merged one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<Merged>,
    /// These parts, by their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<MergedPart>,
    /// One element for each load level, in the order in which they ran.
    pub steps: Vec<Step>,
}

impl Run {
    /// Which kind of load it has.
    pub const fn workload(&self) -> Workload {
        self.load.workload()
    }

    /// A parameter of a step, or of the whole run.
    pub fn parameter<'a>(&'a self, step: &'a Step, name: &str) -> Option<&'a str> {
        step.parameters.get(name).or_else(|| self.parameters.get(name)).map(String::as_str)
    }

    /// Whether it is one of several parts of a fleet's experiment: what others did meanwhile is the other parts' load, or may be.
    pub fn is_one_of_many(&self) -> bool {
        self.part.as_ref().is_some_and(|part| part.parts > 1)
    }
}

/// A program and its version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Tool {
    /// Name, such as `plimsoll`.
    pub name: String,
    /// Version.
    pub version: String,
}

impl Tool {
    /// Name of this program.
    pub const OWN: &str = "plimsoll";

    /// Whether it is this program, in whichever version.
    pub fn is_own(&self) -> bool {
        self.name == Self::OWN
    }
}

/// Where load landed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Target {
    /// `embedded`, `simulated`, later `block`, `postgres`, …
    pub kind: String,
    /// Address without secrets, such as `dir:/u01/plimsoll`.
    pub address: String,
    /// Block size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_bytes: Option<u64>,
    /// Data that operations can touch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_bytes: Option<u64>,
    /// Memory given to the buffer cache, its headers included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_bytes: Option<u64>,
    /// Blocks that the cache holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_blocks: Option<u64>,
    /// Everything else worth knowing, by name: `io_engine`, `direct_io`, `workers`, `redo_bytes`, …
    pub facts: BTreeMap<String, String>,
}

/// An instant, written as RFC 3339 text in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Timestamp(#[schemars(with = "String")] pub jiff::Timestamp);
