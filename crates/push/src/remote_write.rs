//! Prometheus remote write, version 1 (<https://prometheus.io/docs/specs/prw/remote_write_spec/>).

use prost::Message;

use super::Batch;
use super::destination::Part;
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

/// A request of a batch: what the run counts now, each result of a step at the end of its window, or that the series of the former have
/// ended. Empty where there is nothing to send.
pub(crate) fn request(batch: &Batch<'_>, part: Part) -> Vec<u8> {
    let now_ms = ms(batch.now_unix_ns);
    let instance = batch.about.host.as_deref();
    let all = |families: &[Family], at_ms, ends| {
        families.iter().flat_map(|family| series(family, at_ms, instance, ends)).collect::<Vec<_>>()
    };
    let timeseries = match part {
        Part::Current => all(batch.current, now_ms, false),
        Part::Ends => all(batch.current, now_ms + 1, true),
        Part::Results => {
            batch.finished.iter().flat_map(|step| all(&step.results, ms(step.to_unix_ns), false)).collect()
        }
    };
    WriteRequest { timeseries }.encode_to_vec()
}

fn series(family: &Family, at_ms: i64, instance: Option<&str>, ends: bool) -> Vec<TimeSeries> {
    let own = [("job", Some("plimsoll")), ("instance", instance)];
    let one = |(name, labels, value): (String, Vec<(String, String)>, f64)| {
        let given = own.iter().filter_map(|(name, value)| Some(((*name).to_owned(), (*value)?.to_owned())));
        let all = labels.into_iter().chain(given).chain([("__name__".to_owned(), name)]);
        // One that is empty is one that is not there, and order is by name.
        let mut labels: Vec<Label> =
            all.filter(|(_, value)| !value.is_empty()).map(|(name, value)| Label { name, value }).collect();
        labels.sort_by(|one, other| one.name.cmp(&other.name));
        let value = if ends { STALE } else { value };
        TimeSeries { labels, samples: vec![Sample { value, timestamp_ms: at_ms }] }
    };
    family.samples().into_iter().map(one).collect()
}

fn ms(unix_ns: u64) -> i64 {
    i64::try_from(unix_ns / NS_PER_MS).unwrap_or(i64::MAX)
}
