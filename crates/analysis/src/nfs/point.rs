//! One number of connections, and what came of it.

use super::slots::{self, SlotsFull};
use super::ways::{bound, ways};
use crate::Measured;
use crate::message::list;
use crate::together::is_generators;
use crate::traffic::{Counted, requests, service};
use model::record::{Run, Step};
use model::units::Nanos;

/// What came of one number of connections.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ConnectionPoint {
    /// Connections of each thread to each path.
    pub each: u32,
    /// All connections of all threads.
    pub all: u32,
    /// How much they carried.
    pub measured: Measured,
    /// Mean time of a request.
    #[serde(rename = "mean_ns")]
    pub mean: Option<Nanos>,
    /// Processor time of this process for each request, in microseconds.
    pub processor_us: Option<f64>,
    /// Whether no connection had room for more calls.
    pub full: Option<SlotsFull>,
    /// Whether the load generator had no time left for more.
    pub is_generators: bool,
}

impl ConnectionPoint {
    pub(super) fn of(run: &Run, counted: Counted, each: u32, steps: &[&Step]) -> Option<Self> {
        let measured = Measured::of(counted, each.to_string(), steps)?;
        let sum = |of: &dyn Fn(&Step) -> Option<u64>| steps.iter().map(|step| of(step)).sum::<Option<u64>>();
        let done = sum(&|step| requests(&step.counters)).filter(|done| *done > 0);
        let processor_ns = sum(&|step| step.process_cpu.map(|cpu| cpu.user_ns.saturating_add(cpu.system_ns)));
        let total_ns = sum(&|step| service(step)?.total_ns());
        let of_each = |total: Option<u64>| Some(total? as f64 / done? as f64);
        let all = steps.iter().map(|step| ways(step).map(|way| way.channels).sum()).max().unwrap_or(0);
        let full = bound(run).and_then(|bound| steps.iter().find_map(|step| slots::of_step(step, bound)));
        Some(Self {
            each,
            all,
            measured,
            mean: of_each(total_ns).map(|ns| Nanos(ns as u64)),
            processor_us: of_each(processor_ns).map(|ns| ns / 1e3),
            full,
            is_generators: steps.iter().any(|step| is_generators(run, step)),
        })
    }
}

/// Steps of several points.
pub(super) fn steps_of(points: &[&ConnectionPoint]) -> Vec<String> {
    points.iter().flat_map(|point| point.measured.steps.clone()).collect()
}

/// The first and the last number, in words.
pub(super) fn from_to(points: &[&ConnectionPoint]) -> String {
    let numbers: Vec<String> = points.iter().map(|point| point.each.to_string()).collect();
    match numbers.as_slice() {
        [first, .., last] => format!("{first} to {last} connections"),
        other => format!("{} connections", list(other)),
    }
}
