//! What the statistics of a run of sysbench say, as a step.

use super::{Printed, Test};
use crate::draft::{count_of, reported_figure, whole};
use crate::percentiles::{self, sum_of_mean};
use model::record::{Histogram, Metric, OperationStats, ReportedBucket, Step};

/// sysbench counts latencies in 1,024 buckets whose values grow by one ratio, from 1 us to 100 s.
const BUCKETS: f64 = 1_023.0;
const HIGHEST_OVER_LOWEST: f64 = 1e8;

impl Printed {
    /// Adds what its statistics say.
    pub(super) fn fill(&self, step: &mut Step) {
        let layer = if self.test == Some(Test::Files) { "OS file" } else { "client" };
        for (name, unit, value) in &self.figures {
            let metric = (name == "transactions per sec.").then_some(Metric::Transactions);
            step.reported.push(reported_figure(layer, name, unit, *value).is(metric, 1.0));
        }
        // With two decimals 0.00 ms is anything below 5 us, so what it is is not known.
        if let Some((share, value_ms)) = self.percentile.filter(|(_, value_ms)| *value_ms > 0.0) {
            step.reported.push(reported_figure(
                layer,
                format!("latency {}th percentile", share * 100.0),
                "ms",
                value_ms,
            ));
        }
        for (name, value_ms) in self.latencies.iter().filter(|(_, value_ms)| *value_ms > 0.0) {
            step.reported.push(reported_figure(layer, format!("latency {name}"), "ms", *value_ms));
        }
        let count = self.events.or(self.transactions);
        step.counters.operations = count;
        step.counters.errors = self.errors;
        if self.test == Some(Test::Files) {
            let ns = step.window.duration_ns;
            let counted = |name: &str| {
                let known =
                    |(reported, ..): &&(String, &str, f64)| reported.strip_suffix('s').unwrap_or(reported) == name;
                self.figures.iter().find(known).and_then(|(.., value)| whole(*value))
            };
            let in_window = |rate: Option<f64>| rate.filter(|_| ns > 0).and_then(|rate| count_of(rate, ns));
            let bytes = |name: &str| {
                self.figures
                    .iter()
                    .find(|(reported, unit, _)| reported == name && *unit == "bytes")
                    .and_then(|(.., value)| whole(*value))
            };
            let counters = &mut step.counters;
            counters.physical_reads = in_window(self.reads).or_else(|| counted("operations performed: read"));
            counters.physical_writes = in_window(self.writes).or_else(|| counted("operations performed: write"));
            counters.physical_read_bytes = in_window(self.read_bytes).or_else(|| bytes("Read"));
            counters.physical_write_bytes = in_window(self.write_bytes).or_else(|| bytes("Written"));
        }
        let Some(count) = count else { return };
        let response = self.response(count);
        // With a rate the time in the queue is part of the latency.
        let service = match step.load.rate_operations_per_s {
            Some(_) => Histogram::counted(count, None),
            None => response.clone(),
        };
        let kind = if self.test == Some(Test::Database) { "transaction" } else { "event" };
        step.operations.push(OperationStats {
            kind: kind.to_owned(),
            count,
            errors: self.errors.unwrap_or(0),
            block_touches: 0,
            service,
            response,
            transactions: None,
        });
    }

    fn response(&self, count: u64) -> Histogram {
        let of = |name: &str| self.latencies.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
        let ns = |name: &str| of(name).filter(|value| count > 0 && *value > 0.0).and_then(percentiles::ms);
        let sum_s = self.busy_s.filter(|_| count > 0).and_then(|seconds| whole(seconds * 1e9));
        let mean = || of("avg").filter(|mean| *mean > 0.0).and_then(|mean| sum_of_mean(mean * 1e6, count));
        let total_ns = ns("sum").or(sum_s).or_else(mean);
        let held = self.histogram.iter().fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
        if held == count && held > 0 {
            // A value stands for the middle of its bucket, on the scale of logarithms.
            let half = (HIGHEST_OVER_LOWEST.ln() / BUCKETS / 2.0).exp();
            let edge = |value: f64| whole(value * 1e6).unwrap_or(u64::MAX);
            let buckets = self.histogram.iter().map(|(value, count)| ReportedBucket {
                from_ns: edge(value / half),
                to_ns: Some(edge(value * half)),
                count: *count,
            });
            return Histogram::reported(buckets, total_ns, ns("min"), ns("max"));
        }
        let percentile = self.percentile.and_then(|(share, value)| Some((share, percentiles::ms(value)?)));
        let known: Vec<(f64, u64)> = percentile.into_iter().filter(|(_, ns)| count > 0 && *ns > 0).collect();
        percentiles::histogram(count, total_ns, ns("min"), ns("max"), &known)
    }
}
