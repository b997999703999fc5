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
    let answer = format!("HTTP/1.1 {}\r\nConnection: close\r\n\r\n", answer(*number));
    (&stream).write_all(answer.as_bytes()).unwrap();
    // Nobody looks at requests any more once a test is over.
    tell.send(Request { path, head, body }).ok()
}

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
    let push = Push::begin(destinations, &run).unwrap();
    for step in &whole.steps {
        step.intervals.iter().for_each(|interval| push.interval(interval));
        run.steps.push(step.clone());
        push.step(&run);
    }
    run.ended_at = Some(run.started_at);
    let notes = push.end(&run);
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
    let last = requests.iter().rfind(|request| request.path == "/v1/metrics").unwrap();
    let message = ExportMetricsServiceRequest::decode(&last.body[..]).unwrap();
    let resource = message.resource_metrics[0].resource.as_ref().unwrap();
    assert_eq!(text(&resource.attributes, "service.name"), "plimsoll");
    let metrics = &message.resource_metrics[0].scope_metrics[0].metrics;
    let find = |name: &str| metrics.iter().find(|metric| metric.name == name).unwrap_or_else(|| panic!("{name}"));
    let intervals = || run.steps.iter().flat_map(|step| &step.intervals);
    let operations: u64 = intervals().filter_map(|interval| interval.counters.operations).sum();
    assert!(operations > 0);
    assert_eq!(number(find("plimsoll_operations")), operations as f64);
    let Some(Data::Histogram(responses)) = &find("plimsoll_response_seconds").data else { panic!("{metrics:?}") };
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
        assert_eq!(text(&span.attributes, "plimsoll.step"), step.label);
        assert!(span.attributes.iter().any(|attribute| attribute.key == "plimsoll.response_seconds.p99.9"));
    }
}

#[test]
fn remote_write_has_sorted_series_that_end_and_each_result_once() {
    let (address, told) = receiver(|number| if number == 2 { BUSY } else { OK });
    let url = format!("{address}/api/v1/write");
    let secret = [("PLIMSOLL_REMOTE_WRITE_HEADERS", "X-Scope-OrgID=team")];
    let (run, notes) = send(&to(None, Some(&url), &secret).unwrap());
    assert_eq!(notes, Vec::<String>::new(), "what failed once was sent again");
    let requests: Vec<Request> = told.try_iter().collect();
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
    let last = series.iter().rfind(is("plimsoll_operations_total")).unwrap();
    assert_eq!(last.samples[0].value, operations as f64);
    assert_eq!(last.samples[1].value.to_bits(), 0x7ff0_0000_0000_0002, "the series ends");
    let results = series.iter().filter(is("plimsoll_step_operations_per_s")).count();
    assert_eq!(results, run.steps.len(), "each step once");
}

#[test]
fn what_is_not_delivered_is_said_without_secrets() {
    let (address, _told) = receiver(|_| "401 Unauthorized\r\nContent-Length: 24\r\n\r\nbad token: hush\u{1b}[31m hush");
    let secret = [("PLIMSOLL_REMOTE_WRITE_HEADERS", "Authorization=hush")];
    let destinations = to(None, Some(&address), &secret).unwrap();
    assert!(!format!("{destinations:?}").contains("hush"));
    let (run, notes) = send(&destinations);
    let [note] = notes.as_slice() else { panic!("{notes:?}") };
    assert!(note.contains("answered 401") && !note.contains("hush"), "{note}");
    assert!(note.contains(&format!("the results of {} steps are not there", run.steps.len())), "{note}");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let (_, notes) = send(&to(Some(&nobody), None, &[]).unwrap());
    assert!(notes.len() == 2 && notes.iter().all(|note| note.contains("refused")), "{notes:?}");
}

#[test]
fn text_of_an_answer_cannot_act_on_a_terminal() {
    let (address, _told) = receiver(|_| "400 Bad Request\r\nContent-Length: 12\r\n\r\nno \u{1b}[31m good");
    let (_, notes) = send(&to(None, Some(&address), &[]).unwrap());
    assert!(notes[0].contains("answered 400: no ") && !notes[0].contains('\u{1b}'), "{notes:?}");
}

#[test]
fn who_never_answers_holds_the_end_up_for_ten_seconds_at_most() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let began = Instant::now();
    let run = sample::sweep(7);
    let push = Push::begin(&to(Some(&address), None, &[]).unwrap(), &run).unwrap();
    let interval = &run.steps[0].intervals[0];
    // Load adds seconds meanwhile and never waits for the network.
    (0..1_000).for_each(|_| push.interval(interval));
    assert!(began.elapsed() < END, "adding waited for the network");
    let notes = push.end(&run);
    assert!(notes[0].contains("was not delivered"), "{notes:?}");
    assert!(began.elapsed() >= END, "{:?}", began.elapsed());
}

#[test]
fn addresses_are_those_of_flags_and_the_environment() {
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://traces:9/own"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "60000"),
    ];
    let by_variable = to(Some(""), None, &variables).unwrap();
    assert_eq!(by_variable.addresses(), ["http://collector:4318/v1/metrics", "https://traces:9/own"]);
    assert_eq!(by_variable.every(), Some(Duration::from_secs(60)));
    let by_flag = to(Some("http://other:1/base"), None, &variables).unwrap();
    assert_eq!(by_flag.addresses(), ["http://other:1/base/v1/metrics", "http://other:1/base/v1/traces"]);
    let usual = to(Some(""), None, &[]).unwrap();
    assert_eq!(usual.addresses(), ["http://localhost:4318/v1/metrics", "http://localhost:4318/v1/traces"]);
    assert!(to(None, None, &variables).unwrap().is_empty(), "no variable sends anything by itself");
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
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
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
