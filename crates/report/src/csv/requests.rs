//! The steps of raw storage, where an operation is one request.

use std::io::{self, Write};

use super::{durations, field, line, microseconds, optional};
use analysis::{Figures, GeneratorVerdict};
use model::record::{Histogram, Metric, Run, Step};

const COLUMNS: [Metric; 13] = [
    Metric::Sessions,
    Metric::Asked,
    Metric::Window,
    Metric::Operations,
    Metric::Reads,
    Metric::Writes,
    Metric::ReadMegabytes,
    Metric::WriteMegabytes,
    Metric::Queued,
    Metric::BusySessions,
    Metric::UserProcessors,
    Metric::SystemProcessors,
    Metric::IoPerCpuSecond,
];

const GENERATOR: [&str; 8] = [
    "generator_limited_by",
    "generator_busiest_share",
    "slots_in_generator",
    "lag_p50_us",
    "lag_p99_us",
    "lag_max_us",
    "ceiling_per_s",
    "headroom",
];

/// One row a step: rates, response and service time of all requests, and the load generator's verdict on itself.
pub(super) fn steps(out: &mut dyn Write, run: &Run) -> io::Result<()> {
    let times: Vec<String> = ["response", "service"]
        .iter()
        .flat_map(|time| super::DURATION_COLUMNS.map(|name| format!("{time}_{name}")))
        .collect();
    let names = COLUMNS.map(|metric| metric.key());
    let header = ["run", "step"].into_iter().chain(names).chain(times.iter().map(String::as_str)).chain(GENERATOR);
    line(out, header)?;
    for step in &run.steps {
        let figures = Figures(step);
        let mut row = vec![field(&run.id), field(&step.label)];
        row.extend(COLUMNS.map(|metric| optional(figures.value(metric))));
        row.extend(all_times(figures.response()));
        row.extend(all_times(figures.service()));
        row.extend(generator(step));
        line(out, row)?;
    }
    Ok(())
}

fn all_times(times: Option<Histogram>) -> [String; super::DURATION_COLUMNS.len()] {
    times.map_or_else(|| super::DURATION_COLUMNS.map(|_| String::new()), |times| durations(&times))
}

fn generator(step: &Step) -> [String; GENERATOR.len()] {
    let Some(verdict) = GeneratorVerdict::of(step) else { return GENERATOR.map(|_| String::new()) };
    [
        verdict.limited_by.word().to_owned(),
        verdict.busiest_share.to_string(),
        optional(verdict.slots_in_generator),
        microseconds(verdict.lag_p50_ns),
        microseconds(verdict.lag_p99_ns),
        microseconds(verdict.lag_max_ns),
        optional(verdict.ceiling_operations_per_s),
        optional(verdict.headroom),
    ]
}
