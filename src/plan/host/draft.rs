//! What is asked of a load on processors, what is known of the machine, and a step before it has its place.

use model::config::Tag;
use model::record::{HostLoad, Topology};
use model::units::{Bytes, Nanos};
use model::workload::HostKind;

/// What was asked for.
#[derive(Debug, Clone)]
pub struct HostRequest {
    /// The work, and on which processors.
    pub load: HostLoad,
    /// Length of each measured window.
    pub duration: Option<Nanos>,
    /// Load before each window.
    pub warmup: Option<Nanos>,
    /// Seed of every random choice.
    pub seed: u64,
    /// What the user calls the things that vary between runs.
    pub tags: Vec<Tag>,
}

/// What is known about the machine.
#[derive(Debug, Clone, Default)]
pub struct HostFacts {
    /// Processors that this process may run on.
    pub allowed: Vec<u32>,
    /// How they lie, if the kernel says so.
    pub topology: Option<Topology>,
    /// Memory that can be taken, if it is known.
    pub available_memory: Option<Bytes>,
}

/// A step before it is put into its place.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    /// What distinguishes it besides the number of its processors.
    pub(super) label: String,
    pub(super) kinds: Vec<HostKind>,
    pub(super) processors: Vec<u32>,
    pub(super) size: Bytes,
    pub(super) memory_of: Option<u32>,
    pub(super) wake_on: Option<u32>,
    pub(super) warmup: Nanos,
    pub(super) duration: Nanos,
}

/// The first hardware thread of each core.
pub(super) fn cores(processors: &[u32], facts: &HostFacts) -> Vec<u32> {
    facts.topology.as_ref().map_or_else(|| processors.to_vec(), |topology| topology.one_of_each_core(processors))
}
