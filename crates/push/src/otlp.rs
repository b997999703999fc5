//! OpenTelemetry's protocol over HTTP (<https://opentelemetry.io/docs/specs/otlp/>): metrics, and a span for each step below one of the run.
//!
//! Messages are those fields of `opentelemetry/proto` that are sent, by its numbers.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use prost::{Enumeration, Message, Oneof};
use sha2::{Digest, Sha256};

use super::destination::Part;
use super::{About, Batch, Finished};
use model::record::Outcome;
use report::openmetrics::{Family, Kind, Label, Times, Value};

#[derive(Clone, PartialEq, Message)]
struct MetricsRequest {
    #[prost(message, repeated, tag = "1")]
    resource_metrics: Vec<ResourceMetrics>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceMetrics {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_metrics: Vec<ScopeMetrics>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeMetrics {
    #[prost(message, optional, tag = "1")]
    scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    metrics: Vec<Metric>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(oneof = "Any", tags = "1, 4")]
    value: Option<Any>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Any {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(double, tag = "4")]
    Number(f64),
}

#[derive(Clone, PartialEq, Message)]
struct Metric {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    description: String,
    #[prost(string, tag = "3")]
    unit: String,
    #[prost(oneof = "Data", tags = "5, 7, 9")]
    data: Option<Data>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Data {
    #[prost(message, tag = "5")]
    Gauge(Gauge),
    #[prost(message, tag = "7")]
    Sum(Sum),
    #[prost(message, tag = "9")]
    Histogram(Histogram),
}

#[derive(Clone, PartialEq, Message)]
struct Gauge {
    #[prost(message, repeated, tag = "1")]
    points: Vec<NumberPoint>,
}

#[derive(Clone, PartialEq, Message)]
struct Sum {
    #[prost(message, repeated, tag = "1")]
    points: Vec<NumberPoint>,
    #[prost(enumeration = "Temporality", tag = "2")]
    temporality: i32,
    #[prost(bool, tag = "3")]
    is_monotonic: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Histogram {
    #[prost(message, repeated, tag = "1")]
    points: Vec<HistogramPoint>,
    #[prost(enumeration = "Temporality", tag = "2")]
    temporality: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
enum Temporality {
    Unspecified = 0,
    Cumulative = 2,
}

#[derive(Clone, PartialEq, Message)]
struct NumberPoint {
    #[prost(fixed64, tag = "2")]
    start_unix_ns: u64,
    #[prost(fixed64, tag = "3")]
    at_unix_ns: u64,
    #[prost(double, optional, tag = "4")]
    value: Option<f64>,
    #[prost(message, repeated, tag = "7")]
    attributes: Vec<KeyValue>,
    #[prost(uint32, tag = "8")]
    flags: u32,
}

#[derive(Clone, PartialEq, Message)]
struct HistogramPoint {
    #[prost(fixed64, tag = "2")]
    start_unix_ns: u64,
    #[prost(fixed64, tag = "3")]
    at_unix_ns: u64,
    #[prost(fixed64, tag = "4")]
    count: u64,
    #[prost(double, optional, tag = "5")]
    sum: Option<f64>,
    #[prost(fixed64, repeated, tag = "6")]
    counts: Vec<u64>,
    #[prost(double, repeated, tag = "7")]
    bounds: Vec<f64>,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
    #[prost(uint32, tag = "10")]
    flags: u32,
}

#[derive(Clone, PartialEq, Message)]
struct TraceRequest {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    spans: Vec<Span>,
}

#[derive(Clone, PartialEq, Message)]
struct Span {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(enumeration = "SpanKind", tag = "6")]
    kind: i32,
    #[prost(fixed64, tag = "7")]
    from_unix_ns: u64,
    #[prost(fixed64, tag = "8")]
    to_unix_ns: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
    #[prost(message, optional, tag = "15")]
    status: Option<Status>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
enum SpanKind {
    Unspecified = 0,
    Internal = 1,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
    #[prost(enumeration = "Code", tag = "3")]
    code: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
enum Code {
    Unset = 0,
    Ok = 1,
    Error = 2,
}

/// The answer to a request that was accepted, in part or wholly: of both kinds.
#[derive(Clone, PartialEq, Message)]
struct Answer {
    #[prost(message, optional, tag = "1")]
    partial: Option<Partial>,
}

#[derive(Clone, PartialEq, Message)]
struct Partial {
    #[prost(int64, tag = "1")]
    rejected: i64,
    #[prost(string, tag = "2")]
    why: String,
}

/// What an answer says was rejected: how much, and why.
pub(crate) fn rejected(answer: &[u8]) -> Option<(i64, String)> {
    // Another answer accepts it, too: the status said so.
    let Partial { rejected, why } = Answer::decode(answer).ok()?.partial?;
    (rejected > 0).then_some((rejected, why))
}

/// A name and a text as an attribute.
pub(crate) fn text(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

/// Metrics of a batch: what the run counts now, each result of a step at the end of its window, or that the former have ended. Empty where
/// there is nothing to send.
pub(crate) fn metrics(batch: &Batch<'_>, part: Part, of_resource: &[Label]) -> Vec<u8> {
    let Batch { about, now_unix_ns, .. } = batch;
    let began = about.began_unix_ns;
    let mut metrics: BTreeMap<String, Metric> = BTreeMap::new();
    let mut add = |families: &[Family], from: u64, to: u64| {
        for family in families.iter().filter(|family| !family.points.is_empty()) {
            let metric = metric(family, from, to, part == Part::Ends);
            match metrics.entry(metric.name.clone()) {
                Entry::Vacant(new) => drop(new.insert(metric)),
                Entry::Occupied(mut known) => known.get_mut().add(metric),
            }
        }
    };
    match part {
        Part::Current | Part::Ends => add(batch.current, began, *now_unix_ns),
        Part::Results => {
            batch.finished.iter().for_each(|step| add(&step.results, step.from_unix_ns, step.to_unix_ns));
        }
    }
    if metrics.is_empty() {
        return Vec::new();
    }
    let scope_metrics = vec![ScopeMetrics { scope: Some(scope(about)), metrics: metrics.into_values().collect() }];
    let resource = Some(resource(about, of_resource));
    MetricsRequest { resource_metrics: vec![ResourceMetrics { resource, scope_metrics }] }.encode_to_vec()
}

/// Spans of a batch: finished steps, and the run once it has ended if `with_run`. Empty where there is none.
pub(crate) fn spans(batch: &Batch<'_>, with_run: bool, of_resource: &[Label]) -> Vec<u8> {
    let about = batch.about;
    let run = batch.end.filter(|_| with_run).map(|end| Span {
        parent_span_id: Vec::new(),
        span_id: id(about, "run", 8),
        ..span(about, about.name.clone(), about.began_unix_ns, end.unix_ns, &end.outcome)
    });
    let spans: Vec<Span> = batch.finished.iter().map(|step| of_step(about, step)).chain(run).collect();
    if spans.is_empty() {
        return Vec::new();
    }
    let scope_spans = vec![ScopeSpans { scope: Some(scope(about)), spans }];
    let resource = Some(resource(about, of_resource));
    TraceRequest { resource_spans: vec![ResourceSpans { resource, scope_spans }] }.encode_to_vec()
}

fn of_step(about: &About, step: &Finished) -> Span {
    let numbers = step.results.iter().flat_map(|family| {
        let name = family.name.trim_start_matches("plimsoll_step_");
        family.points.iter().filter_map(move |(labels, value)| {
            let Value::Number(value) = value else { return None };
            let quantile = labels.iter().find(|(name, _)| name == "quantile");
            let key = match quantile {
                Some((_, quantile)) => format!("plimsoll.{name}.p{}", percent(quantile)),
                None => format!("plimsoll.{name}"),
            };
            Some(KeyValue { key, value: Some(AnyValue { value: Some(Any::Number(*value)) }) })
        })
    });
    let named = span(about, format!("step {}", step.label), step.from_unix_ns, step.to_unix_ns, &step.outcome);
    let own = attributes(&[text("plimsoll.step", &step.label)]);
    let attributes = named.attributes.iter().cloned().chain(own).chain(numbers).collect();
    Span { span_id: id(about, &format!("step {}", step.label), 8), attributes, ..named }
}

/// `0.999` as `99.9`.
fn percent(quantile: &str) -> String {
    quantile.parse::<f64>().map_or_else(|_| quantile.to_owned(), |share| ((share * 1e5).round() / 1e3).to_string())
}

fn span(about: &About, name: String, from_unix_ns: u64, to_unix_ns: u64, outcome: &Outcome) -> Span {
    let (code, message) = match outcome {
        Outcome::Completed => (Code::Ok, String::new()),
        Outcome::Failed { error } => (Code::Error, error.clone()),
        Outcome::Interrupted => (Code::Unset, "it was cut short".to_owned()),
        Outcome::Unfinished => (Code::Unset, String::new()),
    };
    let of_run = about.identity.labels.iter().map(|(name, value)| text(&format!("plimsoll.{name}"), value));
    let labels: Vec<Label> = [text("plimsoll.run", &about.identity.key)].into_iter().chain(of_run).collect();
    Span {
        trace_id: id(about, "trace", 16),
        span_id: Vec::new(),
        parent_span_id: id(about, "run", 8),
        name,
        kind: SpanKind::Internal.into(),
        from_unix_ns,
        to_unix_ns: to_unix_ns.max(from_unix_ns),
        attributes: attributes(&labels),
        status: Some(Status { message, code: code.into() }),
    }
}

/// An id that follows from the run, so that what is sent twice is the same: a part of a hash, which is never all zeros in practice.
fn id(about: &About, of: &str, bytes: usize) -> Vec<u8> {
    let mut hash = Sha256::new();
    for part in [about.identity.key.as_str(), "\0", &about.began_unix_ns.to_string(), "\0", of] {
        hash.update(part.as_bytes());
    }
    hash.finalize()[..bytes].to_vec()
}

/// A point that says that its series has ended, without a value.
const NO_RECORDED_VALUE: u32 = 1;

impl Metric {
    /// Adds the points of another one of the same name.
    fn add(&mut self, other: Self) {
        match (&mut self.data, other.data) {
            (Some(Data::Gauge(own)), Some(Data::Gauge(more))) => own.points.extend(more.points),
            (Some(Data::Sum(own)), Some(Data::Sum(more))) => own.points.extend(more.points),
            (Some(Data::Histogram(own)), Some(Data::Histogram(more))) => own.points.extend(more.points),
            // A name has one kind.
            _ => {}
        }
    }
}

fn metric(family: &Family, start_unix_ns: u64, at_unix_ns: u64, ends: bool) -> Metric {
    let at_unix_ns = at_unix_ns.max(start_unix_ns) + u64::from(ends);
    let flags = if ends { NO_RECORDED_VALUE } else { 0 };
    let number = |(labels, value): &(Vec<Label>, Value)| match value {
        Value::Number(value) => {
            let (value, attributes) = (Some(*value).filter(|_| !ends), attributes(labels));
            Some(NumberPoint { start_unix_ns, at_unix_ns, value, attributes, flags })
        }
        Value::Times(_) => None,
    };
    let times = |(labels, value): &(Vec<Label>, Value)| match value {
        Value::Times(_) if ends => Some(HistogramPoint {
            start_unix_ns,
            at_unix_ns,
            attributes: attributes(labels),
            flags,
            ..Default::default()
        }),
        Value::Times(times) => Some(HistogramPoint {
            start_unix_ns,
            at_unix_ns,
            count: times.count(),
            sum: times.sum_s,
            counts: times.counts.to_vec(),
            bounds: Times::bounds_s().to_vec(),
            attributes: attributes(labels),
            flags,
        }),
        Value::Number(_) => None,
    };
    let temporality = Temporality::Cumulative.into();
    let numbers = || family.points.iter().filter_map(number).collect();
    let (name, data) = match family.kind {
        Kind::Info => (format!("{}_info", family.name), Data::Gauge(Gauge { points: numbers() })),
        Kind::Gauge => (family.name.clone(), Data::Gauge(Gauge { points: numbers() })),
        Kind::Counter => (family.name.clone(), Data::Sum(Sum { points: numbers(), temporality, is_monotonic: true })),
        Kind::Histogram => {
            let points = family.points.iter().filter_map(times).collect();
            (family.name.clone(), Data::Histogram(Histogram { points, temporality }))
        }
    };
    // A unit that does not end the name would be put behind it by who translates it for Prometheus.
    let unit = match family.unit() {
        Some("seconds") => "s",
        Some("bytes") => "By",
        _ => "",
    };
    Metric { name, description: format!("{}.", family.help), unit: unit.to_owned(), data: Some(data) }
}

fn attributes(labels: &[Label]) -> Vec<KeyValue> {
    let text = |value: &str| Some(AnyValue { value: Some(Any::Text(value.to_owned())) });
    labels.iter().map(|(name, value)| KeyValue { key: name.clone(), value: text(value) }).collect()
}

fn scope(about: &About) -> Scope {
    Scope { name: "plimsoll".to_owned(), version: about.version.clone() }
}

/// Who sends: this program on this machine, unless the environment has other names.
fn resource(about: &About, given: &[Label]) -> Resource {
    let host = about.host.as_deref().map(|host| text("host.name", host));
    // Two machines may begin a run in the same second.
    let instance = format!("{}-{}", about.host.as_deref().unwrap_or("host"), about.identity.key);
    let service = [("name", "plimsoll"), ("version", &about.version), ("instance.id", &instance)];
    let service = service.map(|(name, value)| text(&format!("service.{name}"), value));
    let own = service.into_iter().chain(host);
    let own = own.filter(|(name, _)| given.iter().all(|(other, _)| other != name));
    let all: Vec<Label> = own.chain(given.iter().cloned()).collect();
    Resource { attributes: attributes(&all) }
}
