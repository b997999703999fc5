//! Where the time of one operation went, and that of sessions, as `--json` prints them.

use serde::Serialize;

use analysis::{OperationTime, TimeParts};
use model::record::{Run, Step};

/// Where the time of one operation went, on average over a step. Its parts and the rest add up to the mean, unless they exceed it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct OperationParts<'a> {
    /// Label of the step.
    step: &'a str,
    /// From sent to finished.
    mean_ns: f64,
    /// Waiting for blocks that were not in the buffer cache.
    reads_ns: Option<f64>,
    /// Whether that is at most what reads took.
    reads_is_bound: bool,
    /// Waiting for the log.
    log_ns: Option<f64>,
    /// Waiting for anything else.
    waits_ns: Option<f64>,
    /// Using a processor, and on a server waiting for one.
    processor_ns: Option<f64>,
    /// What is left, such as the way to a server and back; `null` if a part is not known.
    rest_ns: Option<f64>,
    /// By how much the parts exceed the mean; `null` if they do not.
    excess_ns: Option<f64>,
}

impl<'a> OperationParts<'a> {
    /// Of a step; absent where operations were not timed.
    pub(crate) fn of(run: &Run, step: &'a Step) -> Option<Self> {
        let OperationTime { mean_ns, reads, cache_hits: _, log, waits, processor, rest_ns, excess_ns } =
            OperationTime::of(run, step)?;
        Some(Self {
            step: &step.label,
            mean_ns,
            reads_ns: reads.ns,
            reads_is_bound: reads.is_bound,
            log_ns: log.ns,
            waits_ns: waits.ns,
            processor_ns: processor.ns,
            rest_ns,
            excess_ns,
        })
    }
}

/// Where the sessions of a step were, on average over its window.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct StepParts<'a> {
    /// Label of the step.
    step: &'a str,
    /// Sessions and their parts.
    #[serde(flatten)]
    parts: TimeParts,
}

impl<'a> StepParts<'a> {
    /// Of a step; absent where nothing says where its sessions were.
    pub(crate) fn of(run: &Run, step: &'a Step) -> Option<Self> {
        Some(Self { step: &step.label, parts: TimeParts::of(run, step)? })
    }
}
