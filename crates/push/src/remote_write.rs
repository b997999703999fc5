//! Prometheus remote write, version 1 (<https://prometheus.io/docs/specs/prw/remote_write_spec/>).

use prost::Message;

use super::{Batch, Finished};
use report::openmetrics::Family;

/// Headers of each request.
pub(crate) const HEADERS: [(&str, &str); 1] = [("X-Prometheus-Remote-Write-Version", "0.1.0")];
/// A value that ends a series, so that it does not seem to go on for five minutes more: a NaN of its own.
const STALE: f64 = f64::from_bits(0x7ff0_0000_0000_0002);
const NS_PER_MS: u64 = 1_000_000;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    pub(crate) timeseries: Vec<TimeSeries>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    pub(crate) labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) samples: Vec<Sample>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Label {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) value: String,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Sample {
    #[prost(double, tag = "1")]
    pub(crate) value: f64,
    #[prost(int64, tag = "2")]
    pub(crate) timestamp_ms: i64,
}

/// The request of a batch: what the run counts now, and each result of a step at the end of its window.
pub(crate) fn request(batch: &Batch<'_>) -> Vec<u8> {
    let now_ms = ms(batch.now_unix_ns);
    let instance = batch.about.host.as_deref();
    let is_last = batch.end.is_some();
    let current = batch.current.iter().flat_map(|family| series(family, now_ms, instance, is_last));
    let of_step = |step: &Finished| {
        let at_ms = ms(step.to_unix_ns);
        step.results.iter().flat_map(move |family| series(family, at_ms, instance, false)).collect::<Vec<_>>()
    };
    let results = batch.finished.iter().flat_map(of_step);
    WriteRequest { timeseries: current.chain(results).collect() }.encode_to_vec()
}

fn series(family: &Family, at_ms: i64, instance: Option<&str>, is_last: bool) -> Vec<TimeSeries> {
    let own = [("job", Some("plimsoll")), ("instance", instance)];
    let one = |(name, labels, value): (String, Vec<(String, String)>, f64)| {
        let given = own.iter().filter_map(|(name, value)| Some(((*name).to_owned(), (*value)?.to_owned())));
        let all = labels.into_iter().chain(given).chain([("__name__".to_owned(), name)]);
        // One that is empty is one that is not there, and order is by name.
        let mut labels: Vec<Label> =
            all.filter(|(_, value)| !value.is_empty()).map(|(name, value)| Label { name, value }).collect();
        labels.sort_by(|one, other| one.name.cmp(&other.name));
        let stale = is_last.then_some(Sample { value: STALE, timestamp_ms: at_ms + 1 });
        let samples = [Sample { value, timestamp_ms: at_ms }].into_iter().chain(stale).collect();
        TimeSeries { labels, samples }
    };
    family.samples().into_iter().map(one).collect()
}

fn ms(unix_ns: u64) -> i64 {
    i64::try_from(unix_ns / NS_PER_MS).unwrap_or(i64::MAX)
}
