use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{Metric, number_data_point};
use prost::Message;

use super::*;
use crate::remote_write::{Label, TimeSeries, WriteRequest};
use model::record::sample;

/// A request as a receiver has it.
#[derive(Debug)]
struct Request {
    path: String,
    head: String,
    body: Vec<u8>,
}

/// Receives requests and answers each by what `answer` gives for its number.
fn receiver(answer: impl Fn(usize) -> &'static str + Send + 'static) -> (String, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let mut number = 0;
        for stream in listener.incoming() {
            receive(stream.unwrap(), &mut number, &answer, &tell);
        }
    });
    (address, told)
}

fn receive(
    stream: TcpStream,
    number: &mut usize,
    answer: &impl Fn(usize) -> &'static str,
    tell: &Sender<Request>,
) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if lines.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let field = |name: &str| head.lines().find_map(|line| line.to_lowercase().strip_prefix(name)?.trim().parse().ok());
    let mut body = vec![0; field("content-length:").unwrap_or(0)];
    lines.read_exact(&mut body).unwrap();
    let path = head.split(' ').nth(1).unwrap().to_owned();
    *number += 1;
    // Known before it is answered, so that it is found once a request has returned; a test that is over looks no more.
    let known = tell.send(Request { path, head, body }).ok();
    let (head, text) = answer(*number).split_once("\r\n\r\n").unwrap_or((answer(*number), ""));
    let answer = format!("HTTP/1.1 {head}\r\nConnection: close\r\n\r\n{text}");
    (&stream).write_all(answer.as_bytes()).ok()?;
    known
}

/// Longer than any answer of a test takes.
const END: Duration = Duration::from_secs(60);

const OK: &str = "200 OK\r\nContent-Length: 0";
const BUSY: &str = "503 Service Unavailable\r\nContent-Length: 0";

fn to(otlp: Option<&str>, remote_write: Option<&str>, variables: &[(&str, &str)]) -> Result<Destinations, PushError> {
    let variables = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, it)| (*it).to_owned());
    Destinations::of(otlp, remote_write, &variables)
}

/// Sends a sample run as it would be recorded.
fn send(destinations: &Destinations) -> (Run, Vec<String>) {
    let whole = sample::sweep(7);
    let mut run = Run { steps: Vec::new(), ended_at: None, ..whole.clone() };
    let push = Push::begin(destinations, &run, false).unwrap();
    for step in &whole.steps {
        step.intervals.iter().for_each(|interval| push.interval(interval));
        run.steps.push(step.clone());
        push.step(&run);
    }
    run.ended_at = Some(run.started_at);
    let notes = push.end(&run, END, &|| ());
    (whole, notes)
}

fn number(metric: &Metric) -> f64 {
    let points = match metric.data.as_ref().unwrap() {
        Data::Sum(sum) => &sum.data_points,
        Data::Gauge(gauge) => &gauge.data_points,
        other => panic!("{other:?}"),
    };
    match points[0].value.unwrap() {
        number_data_point::Value::AsDouble(value) => value,
        number_data_point::Value::AsInt(value) => panic!("{value} is no double"),
    }
}

fn text(attributes: &[KeyValue], key: &str) -> String {
    let known = attributes.iter().find(|attribute| attribute.key == key);
    match known.and_then(|known| known.value.clone()?.value) {
        Some(any_value::Value::StringValue(text)) => text,
        other => panic!("{key}: {other:?} in {attributes:?}"),
    }
}

#[test]
fn otlp_has_what_the_run_counted_and_a_span_for_each_step() {
    let (address, told) = receiver(|_| OK);
    let headers = [("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20abc, x-scope=a")];
    let (run, notes) = send(&to(Some(&address), None, &headers).unwrap());
    assert_eq!(notes, Vec::<String>::new());
    let requests: Vec<Request> = told.try_iter().collect();
    assert!(requests.iter().all(|request| request.head.to_lowercase().contains("authorization: bearer abc")));
    let sent: Vec<Metric> = requests
        .iter()
        .filter(|request| request.path == "/v1/metrics")
        .flat_map(|request| ExportMetricsServiceRequest::decode(&request.body[..]).unwrap().resource_metrics)
        .inspect(|of_resource| {
            let attributes = &of_resource.resource.as_ref().unwrap().attributes;
            assert_eq!(text(attributes, "service.name"), "plimsoll");
            assert!(text(attributes, "service.instance.id").ends_with(&run.id), "{attributes:?}");
        })
        .flat_map(|of_resource| of_resource.scope_metrics)
        .flat_map(|of_scope| of_scope.metrics)
        .collect();
    // The last values, before those that say that there are no more.
    let all = |name: &str| sent.iter().filter(|metric| metric.name == name).collect::<Vec<_>>();
    let find = |name: &str| *all(name).iter().rev().nth(1).unwrap_or_else(|| panic!("{name}"));
    let intervals = || run.steps.iter().flat_map(|step| &step.intervals);
    let operations: u64 = intervals().filter_map(|interval| interval.counters.operations).sum();
    assert!(operations > 0);
    assert_eq!(number(find("plimsoll_operations")), operations as f64);
    let Some(Data::Histogram(responses)) = &find("plimsoll_response_seconds").data else { panic!("{sent:?}") };
    let Some(Data::Sum(ended)) = &all("plimsoll_operations").last().unwrap().data else { panic!("{sent:?}") };
    assert_eq!((ended.data_points[0].flags, ended.data_points[0].value), (1, None), "the series has ended");
    let units = |name: &str| all(name)[0].unit.as_str();
    assert_eq!((units("plimsoll_response_seconds"), units("plimsoll_step_operations_per_s")), ("s", ""));
    let results: usize = all("plimsoll_step_operations_per_s")
        .iter()
        .map(|metric| match &metric.data {
            Some(Data::Gauge(gauge)) => gauge.data_points.len(),
            other => panic!("{other:?}"),
        })
        .sum();
    assert_eq!(results, run.steps.len(), "each step once");
    let point = &responses.data_points[0];
    assert_eq!(point.count, intervals().map(|interval| interval.response.count()).sum::<u64>());
    assert_eq!(point.bucket_counts.iter().sum::<u64>(), point.count);
    assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
    assert_eq!(responses.aggregation_temporality, 2, "cumulative");
    let spans: Vec<_> = requests
        .iter()
        .filter(|request| request.path == "/v1/traces")
        .flat_map(|request| ExportTraceServiceRequest::decode(&request.body[..]).unwrap().resource_spans)
        .flat_map(|of_resource| of_resource.scope_spans)
        .flat_map(|of_scope| of_scope.spans)
        .collect();
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    let wanted: Vec<String> = run.steps.iter().map(|step| format!("step {}", step.label)).collect();
    assert_eq!(names[..names.len() - 1], wanted, "each step once, and the run at the end");
    let of_run = spans.last().unwrap();
    assert!(of_run.name == run.name && of_run.parent_span_id.is_empty() && of_run.span_id.len() == 8);
    for (span, step) in spans.iter().zip(&run.steps) {
        assert_eq!((&span.trace_id, &span.parent_span_id), (&of_run.trace_id, &of_run.span_id));
        assert_eq!(span.trace_id.len(), 16);
        let time_ns = span.end_time_unix_nano - span.start_time_unix_nano;
        assert_eq!(time_ns, step.window.duration_ns + step.window.warmup_ns);
        let began = unix_ns(run.started_at.0.into());
        assert_eq!(span.end_time_unix_nano, began + step.window.offset_ns + step.window.duration_ns);
        assert_eq!(text(&span.attributes, "plimsoll.run"), run.id);
        assert_eq!(text(&span.attributes, "plimsoll.step"), step.label);
        assert!(span.attributes.iter().any(|attribute| attribute.key == "plimsoll.response_seconds.p99.9"));
    }
}

#[test]
fn remote_write_has_sorted_series_that_end_and_each_result_once() {
    // Results come second; they are sent again.
    let (address, told) = receiver(|number| if number == 2 { BUSY } else { OK });
    let url = format!("{address}/api/v1/write");
    let secret = [("PLIMSOLL_REMOTE_WRITE_HEADERS", "X-Scope-OrgID=team")];
    let (run, notes) = send(&to(None, Some(&url), &secret).unwrap());
    assert_eq!(notes, Vec::<String>::new(), "what failed once was sent again");
    let requests: Vec<Request> = told.try_iter().collect();
    assert!(requests.len() >= 5, "values, results, both again, and an end: {}", requests.len());
    let mut series: Vec<TimeSeries> = Vec::new();
    for (number, request) in requests.iter().enumerate() {
        let head = request.head.to_lowercase();
        assert!(head.contains("content-encoding: snappy") && head.contains("x-scope-orgid: team"), "{head}");
        assert!(head.contains("x-prometheus-remote-write-version: 0.1.0"), "{head}");
        let body = snap::raw::Decoder::new().decompress_vec(&request.body).unwrap();
        if number != 1 {
            series.extend(WriteRequest::decode(&body[..]).unwrap().timeseries);
        }
    }
    let is = |name: &'static str| {
        move |series: &&TimeSeries| series.labels.iter().any(|label| label.name == "__name__" && label.value == name)
    };
    for one in &series {
        let names: Vec<&str> = one.labels.iter().map(|Label { name, .. }| name.as_str()).collect();
        assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "{names:?}");
        assert!(names.contains(&"run") && names.contains(&"job"), "{names:?}");
    }
    let operations: u64 =
        run.steps.iter().flat_map(|step| &step.intervals).filter_map(|interval| interval.counters.operations).sum();
    let values: Vec<_> =
        series.iter().filter(is("plimsoll_operations_total")).map(|series| series.samples[0]).collect();
    let [.., last, end] = values.as_slice() else { panic!("{values:?}") };
    assert_eq!(last.value, operations as f64);
    assert_eq!(end.value.to_bits(), 0x7ff0_0000_0000_0002, "the series ends");
    assert!(values.windows(2).all(|pair| pair[0].timestamp_ms < pair[1].timestamp_ms), "{values:?}");
    let results = series.iter().filter(is("plimsoll_step_operations_per_s")).count();
    assert_eq!(results, run.steps.len(), "each step once");
}

#[test]
fn what_is_not_delivered_is_said_without_secrets() {
    let (address, _told) = receiver(|_| "401 Unauthorized\r\nContent-Length: 16\r\n\r\nbad token: hush.");
    let secret = [("PLIMSOLL_REMOTE_WRITE_HEADERS", "Authorization=Bearer%20hush")];
    let destinations = to(None, Some(&address), &secret).unwrap();
    assert!(!format!("{destinations:?}").contains("hush"));
    let (run, notes) = send(&destinations);
    let [note] = notes.as_slice() else { panic!("{notes:?}") };
    assert!(note.contains("answered 401") && !note.contains("hush"), "{note}");
    assert!(note.contains(&format!("the results of {} steps are not there", run.steps.len())), "{note}");
    // Nothing listens at the first port.
    let (_, notes) = send(&to(Some("http://127.0.0.1:1"), None, &[]).unwrap());
    assert!(notes.len() == 2 && notes.iter().all(|note| note.contains("requests failed")), "{notes:?}");
}

#[test]
fn who_hangs_keeps_nothing_from_others() {
    let hangs = TcpListener::bind("127.0.0.1:0").unwrap();
    let hung = format!("http://{}", hangs.local_addr().unwrap());
    let (address, told) = receiver(|_| OK);
    let run = sample::sweep(7);
    let push = Push::begin(&to(Some(&hung), Some(&address), &[]).unwrap(), &run, false).unwrap();
    push.interval(&run.steps[0].intervals[0]);
    push.step(&run);
    let notes = push.end(&run, Duration::from_secs(4), &|| ());
    assert!(notes.iter().all(|note| note.starts_with(&hung)), "{notes:?}");
    assert!(told.try_iter().count() >= 3, "values, results and the end");
}

#[test]
fn results_of_a_simulated_run_are_not_of_the_future() {
    let (address, told) = receiver(|_| OK);
    let mut run = sample::sweep(7);
    // An hour in an instant.
    run.steps.last_mut().unwrap().window.offset_ns = 3_600_000_000_000;
    let push = Push::begin(&to(None, Some(&address), &[]).unwrap(), &run, true).unwrap();
    push.interval(&run.steps[0].intervals[0]);
    push.step(&run);
    assert_eq!(push.end(&run, END, &|| ()), Vec::<String>::new());
    let now_ms = (unix_ns(SystemTime::now()) / 1_000_000) as i64;
    for request in told.try_iter() {
        let body = snap::raw::Decoder::new().decompress_vec(&request.body).unwrap();
        for series in WriteRequest::decode(&body[..]).unwrap().timeseries {
            assert!((now_ms - 600_000..=now_ms + 1_000).contains(&series.samples[0].timestamp_ms), "{series:?}");
        }
    }
}

#[test]
fn text_of_an_answer_cannot_act_on_a_terminal() {
    let (address, _told) = receiver(|_| "400 Bad Request\r\nContent-Length: 12\r\n\r\nno \u{1b}[31m good");
    let (_, notes) = send(&to(None, Some(&address), &[]).unwrap());
    assert!(notes[0].contains("answered 400: no ") && !notes[0].contains('\u{1b}'), "{notes:?}");
}

#[test]
fn who_never_answers_holds_neither_load_nor_end_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let began = Instant::now();
    let run = sample::sweep(7);
    let push = Push::begin(&to(Some(&address), None, &[]).unwrap(), &run, false).unwrap();
    let interval = &run.steps[0].intervals[0];
    // Load adds seconds meanwhile and never waits for the network.
    (0..1_000).for_each(|_| push.interval(interval));
    assert!(began.elapsed() < END, "adding waited for the network");
    let patience = Duration::from_secs(2);
    let said = std::cell::Cell::new(0);
    let notes = push.end(&run, patience, &|| said.set(said.get() + 1));
    assert!(notes.len() == 2 && notes.iter().all(|note| note.starts_with(&address)), "{notes:?}");
    assert_eq!(said.get(), 1, "that it waits is said once");
    assert!(began.elapsed() < END, "{:?}", began.elapsed());
}

#[test]
fn addresses_are_those_of_flags_and_the_environment() {
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces:9/own"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "60000"),
    ];
    let by_variable = to(Some(""), None, &variables).unwrap();
    assert_eq!(by_variable.check().unwrap(), ["http://collector:4318/v1/metrics", "http://traces:9/own"]);
    assert_eq!(by_variable.every(), Some(Duration::from_secs(60)));
    let by_flag = to(Some("http://other:1/base"), None, &variables).unwrap();
    assert_eq!(by_flag.check().unwrap(), ["http://other:1/base/v1/metrics", "http://other:1/base/v1/traces"]);
    let usual = to(Some(""), None, &[]).unwrap();
    assert_eq!(usual.check().unwrap(), ["http://localhost:4318/v1/metrics", "http://localhost:4318/v1/traces"]);
    let whole = to(Some("http://other:1/v1/metrics"), None, &[]).unwrap();
    assert_eq!(whole.check().unwrap(), ["http://other:1/v1/metrics", "http://other:1/v1/traces"]);
    let azure = to(None, Some("http://host/write?api-version=2023"), &[]).unwrap();
    assert_eq!(azure.check().unwrap(), ["http://host/write?api-version=2023"]);
    let grpc = [("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")];
    assert!(to(Some("http://other:1"), None, &grpc).is_ok(), "an address that is typed is one of HTTP");
    let of_signals = ["OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"];
    let http = of_signals.map(|variable| (variable, "http/protobuf"));
    assert!(to(Some(""), None, &[&grpc[..], &http].concat()).is_ok(), "a kind of signals has its own");
    assert!(to(None, None, &variables).unwrap().is_empty(), "no variable sends anything by itself");
    let bad = [("OTEL_METRIC_EXPORT_INTERVAL", "x"), ("OTEL_EXPORTER_OTLP_ENDPOINT", "x")];
    assert!(to(None, Some("http://host"), &bad).is_ok(), "nor is one looked at that nothing needs");
}

#[test]
fn what_cannot_be_used_is_refused_without_its_secrets() {
    let bad = |otlp: &str, variables: &[(&str, &str)]| to(Some(otlp), None, variables).unwrap_err().to_string();
    for url in ["localhost:4318", "ftp://a", "http://", "http:///x", "http://a:b", "http://a:99999", "http://a b", "x"]
    {
        assert!(bad(url, &[]).contains("is not an address"), "{url}: {}", bad(url, &[]));
    }
    for url in ["http://me:hush@host", "https://host/x?token=hush", "http://host#hush", "me:hush@host"] {
        let error = bad(url, &[]);
        assert!(error.contains("may be secret") && !error.contains("hush"), "{error}");
    }
    for (variable, value) in [
        ("OTEL_EXPORTER_OTLP_HEADERS", "hush"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a b=hush"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "hush"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "hush"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "0"),
        ("OTEL_RESOURCE_ATTRIBUTES", "hush"),
    ] {
        let error = bad("http://host", &[(variable, value)]);
        assert!(error.contains(variable) && !error.contains("hush"), "{error}");
    }
    let grpc = [("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")];
    assert!(bad("", &grpc).contains("`grpc` is not spoken here"), "{}", bad("", &grpc));
    let missing = [("OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere/ca.pem")];
    let error = to(Some("https://host"), None, &missing).unwrap().open().unwrap_err();
    assert!(error.to_string().contains("/nowhere/ca.pem"), "{error}");
}

#[test]
fn a_compressed_body_is_the_same_message() {
    let (address, told) = receiver(|_| OK);
    let gzip = [
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
        ("OTEL_SERVICE_NAME", "nightly"),
        ("OTEL_RESOURCE_ATTRIBUTES", "team=a%2Cb,service.name=x"),
    ];
    let (_, notes) = send(&to(Some(&address), None, &gzip).unwrap());
    assert_eq!(notes, Vec::<String>::new());
    let request = told.try_iter().find(|request| request.path == "/v1/metrics").unwrap();
    assert!(request.head.to_lowercase().contains("content-encoding: gzip"));
    let mut body = Vec::new();
    flate2::read::GzDecoder::new(&request.body[..]).read_to_end(&mut body).unwrap();
    let message = ExportMetricsServiceRequest::decode(&body[..]).unwrap();
    let attributes = &message.resource_metrics[0].resource.as_ref().unwrap().attributes;
    assert_eq!((text(attributes, "service.name").as_str(), text(attributes, "team").as_str()), ("nightly", "a,b"));
    assert_eq!(attributes.iter().filter(|attribute| attribute.key == "service.name").count(), 1);
}
