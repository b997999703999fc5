//! iperf3 with `--json` or `--json-stream`.

use std::borrow::Cow;
use std::fmt;

use model::record::Workload;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::{Side, ended_by, figure, name, ns, of_stream, rate};
use crate::draft::{reported_figure, step};
use crate::fio::json::with_nulls_for_nan;
use crate::interval;
use crate::{Began, Draft, ImportError, Notes, Source};
use model::record::{Ending, Environment, Interval, Outcome, ReportedFigure, Step, Target, TargetKind};

/// Bytes of other lines that may stand before the first document.
const MAX_BEFORE: usize = 4_096;

/// Whether a text is of iperf3 with `--json`.
pub(crate) fn recognises(head: &str) -> bool {
    let Some((_, text)) = documents(head, 0).filter(|(at, _)| *at < MAX_BEFORE) else { return false };
    let stream = text.starts_with("{\"event\"") && text.contains("\"data\"");
    let own = ["\"version\":", "\"tcp_mss_default\"", "\"test_start\"", "\"connecting_to\"", "\"connected\""];
    let first = text.get(1..).map_or("", str::trim_start);
    // A title stands before all else.
    let begins = first.starts_with("\"start\"") || (first.starts_with("\"title\"") && text.contains("\"start\""));
    (begins || stream)
        && own.iter().any(|key| text.contains(key))
        && (text.contains("iperf 3") || text.contains("\"test_start\""))
}

/// Where the next document begins, and the text from there: at a brace that begins a line, since other lines may stand between.
fn documents(text: &str, from: usize) -> Option<(usize, &str)> {
    let mut at = from;
    for line in text.get(from..)?.split_inclusive('\n') {
        let blanks = line.len() - line.trim_start().len();
        if line.trim_start().starts_with('{') {
            return Some((at + blanks, text.get(at + blanks..)?));
        }
        at += line.len();
    }
    None
}

/// Its runs: one for each test.
pub(crate) fn read(source: &Source, notes: &mut Notes) -> Result<Vec<Draft>, ImportError> {
    let mut found = Vec::new();
    let mut stream = Stream::default();
    let mut from = 0;
    // Old versions print numbers that are none as C does.
    let whole = with_nulls_for_nan(source.text()).map_or(Cow::Borrowed(source.text()), Cow::Owned);
    let mut lines_before = Lines { text: &whole, at: 0, line: 1 };
    while let Some((at, text)) = documents(&whole, from) {
        let mut read = serde_json::Deserializer::from_str(text).into_iter::<InOrder>();
        let line = lines_before.line(at);
        match read.next() {
            Some(Ok(InOrder(document))) => {
                from = at + read.byte_offset().max(1);
                match document.get("event").and_then(Value::as_str) {
                    Some(event) => found.extend(stream.event(event, &document, notes)),
                    None => {
                        stream.forget(&document);
                        found.push(draft(&document, notes));
                    }
                }
            }
            Some(Err(error)) => {
                let what = if error.is_eof() { "the file ends in the middle of a result" } else { "this is not JSON" };
                let within = u64::try_from(error.line()).unwrap_or(1).saturating_sub(1);
                return Err(ImportError::damaged(source, line + within, format!("{what}: {error}")));
            }
            None => break,
        }
    }
    found.extend(stream.end(notes));
    // A server that is stopped between tests ends with a document that says nothing else.
    found.retain(|draft| {
        let reports = |step: &Step| !step.reported.is_empty() || step.outcome != Outcome::Interrupted;
        draft.steps.iter().any(reports)
    });
    let reports = |draft: &Draft| {
        draft.steps.iter().any(|step| !step.reported.is_empty() || matches!(step.outcome, Outcome::Failed { .. }))
    };
    if !found.iter().any(reports) {
        return Err(ImportError::no_result(source, "it holds no result of iperf3"));
    }
    Ok(found)
}

/// A value in which what stands twice under one name in an object is both: version 3.7 writes the sums of the way back under the
/// names of those before, and later ones with this ending.
struct InOrder(Value);

impl<'de> Deserialize<'de> for InOrder {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = InOrder;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value of JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<InOrder, E> {
        Ok(InOrder(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<InOrder, E> {
        Ok(InOrder(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<InOrder, E> {
        Ok(InOrder(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<InOrder, E> {
        Ok(InOrder(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<InOrder, E> {
        Ok(InOrder(value.into()))
    }

    fn visit_unit<E>(self) -> Result<InOrder, E> {
        Ok(InOrder(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<InOrder, A::Error> {
        let mut values = Vec::new();
        while let Some(InOrder(value)) = list.next_element()? {
            values.push(value);
        }
        Ok(InOrder(values.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<InOrder, A::Error> {
        let mut values = Map::new();
        while let Some((mut name, InOrder(value))) = object.next_entry::<String, InOrder>()? {
            if values.contains_key(&name) {
                name.push_str(WAY_BACK);
            }
            values.insert(name, value);
        }
        Ok(InOrder(values.into()))
    }
}

/// How names of the way back end.
const WAY_BACK: &str = "_bidir_reverse";

/// Line numbers of rising places in a text.
struct Lines<'a> {
    text: &'a str,
    at: usize,
    line: u64,
}

impl Lines<'_> {
    fn line(&mut self, at: usize) -> u64 {
        let passed = self.text.get(self.at..at).unwrap_or("");
        self.line += passed.bytes().filter(|byte| *byte == b'\n').count() as u64;
        self.at = at;
        self.line
    }
}

fn number(value: &Value, key: &str) -> Option<f64> {
    value.get(key).and_then(Value::as_f64)
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The run that a document reports on.
fn draft(document: &Value, notes: &mut Notes) -> Draft {
    let null = Value::Null;
    let start = document.get("start").unwrap_or(&null);
    let test = start.get("test_start").unwrap_or(&null);
    let protocol = text(test, "protocol").unwrap_or("");
    let peer = start.get("connecting_to").or_else(|| start.get("accepted_connection")).unwrap_or(&null);
    let is_server = start.get("connecting_to").is_none() && start.get("accepted_connection").is_some();
    let host = text(peer, "host").unwrap_or("");
    let title = [protocol, if is_server { "from" } else { "to" }, host].into_iter().filter(|word| !word.is_empty());
    let mut draft = Draft::new(
        Workload::Network,
        "iperf3",
        if host.is_empty() { "iperf3".to_owned() } else { title.collect::<Vec<_>>().join(" ") },
    );
    draft.version = text(start, "version").unwrap_or("").trim_start_matches("iperf ").to_owned();
    let began_s = start.get("timestamp").and_then(|at| at.get("timesecs")).and_then(Value::as_i64);
    draft.began = began_s.and_then(Began::epoch_s);
    draft.environment = environment(text(start, "system_info").unwrap_or(""));
    for (key, value) in test.as_object().into_iter().flatten() {
        draft.parameters.insert(key.clone(), plain(value));
    }
    for key in ["tcp_mss_default", "tcp_mss", "sock_bufsize", "sndbuf_actual", "rcvbuf_actual"] {
        if let Some(value) = start.get(key) {
            draft.parameters.insert(key.to_owned(), plain(value));
        }
    }
    if let Some(tag) = text(document, "title").or_else(|| text(start, "title")) {
        draft.tags.insert("title".to_owned(), tag.to_owned());
    }
    if !host.is_empty() {
        let address = number(peer, "port")
            .filter(|_| !is_server)
            .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        draft.target = Target { kind: Some(TargetKind::Network), address, ..Target::default() };
    }
    let reversed = number(test, "reverse").is_some_and(|reverse| reverse != 0.0);
    let local = if is_server == reversed { Side::Sent } else { Side::Received };
    let mut step = step(0, "iperf3", 0);
    let streams = Some(list(start, "connected").len()).filter(|streams| *streams > 0);
    let reported_streams = number(test, "num_streams").and_then(crate::draft::whole);
    step.load.sessions = streams
        .and_then(|streams| u32::try_from(streams).ok())
        .or(reported_streams.and_then(|n| u32::try_from(n).ok()));
    step.intervals = intervals(document, local, &mut step);
    if list(start, "connected").is_empty() && step.intervals.is_empty() {
        step.load.sessions = None;
    }
    results(document.get("end").unwrap_or(&null), protocol, is_server, &mut step);
    if step.reported.is_empty() && !step.intervals.is_empty() {
        draft.notes.push("The summary is missing: figures are those of the intervals.".to_owned());
        of_intervals(&mut step);
    }
    if let Some(error) = document.get("error") {
        (step.outcome, step.window.ending) = ended_by(&plain(error));
    } else if step.reported.is_empty() {
        notes.not_understood(
            None,
            "a test without intervals and without a summary; `end` with `sum_sent` or `sum` was expected",
        );
    }
    if number(test, "duration").is_some_and(|seconds| seconds > 0.0)
        && step.outcome == Outcome::Completed
        && step.window.duration_ns > 0
    {
        step.window.ending = Ending::Time;
    }
    draft.steps = vec![step];
    draft
}

/// A value as text; text without its quotes and line ends.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), |text| text.trim_end().to_owned())
}

/// `Linux host 4.4.0-79-generic #100-Ubuntu … x86_64 GNU/Linux`.
fn environment(system: &str) -> Environment {
    let mut words = system.split_whitespace();
    let (kind, host, kernel) = (words.next(), words.next(), words.next());
    let architecture = words.find(|word| ["x86_64", "aarch64", "arm64", "ppc64le", "s390x", "amd64"].contains(word));
    Environment {
        hostname: host.map(str::to_owned),
        kernel: kernel.map(str::to_owned),
        os: kind.filter(|kind| *kind != "Linux").map(str::to_owned),
        architecture: architecture.map(str::to_owned),
        ..Environment::default()
    }
}

/// One interval each; omitted ones are the warm-up. The clock begins anew after these.
fn intervals(document: &Value, local: Side, step: &mut Step) -> Vec<Interval> {
    let mut made = Vec::new();
    let mut offset_ns = 0_u64;
    let null = Value::Null;
    for reported in list(document, "intervals") {
        let streams = list(reported, "streams");
        let sum = reported.get("sum").or_else(|| streams.first().filter(|_| streams.len() == 1)).unwrap_or(&null);
        let Some(duration_ns) = number(sum, "seconds").map(ns) else { continue };
        let warmup = sum.get("omitted").and_then(Value::as_bool).unwrap_or(false);
        let mut of = interval::of(step, offset_ns, duration_ns);
        of.warmup = warmup;
        offset_ns = offset_ns.saturating_add(duration_ns);
        let window = &mut step.window;
        if warmup {
            window.warmup_ns = window.warmup_ns.saturating_add(duration_ns);
            window.offset_ns = window.warmup_ns;
        } else {
            window.duration_ns = window.duration_ns.saturating_add(duration_ns);
        }
        for (sum, reverse) in [(Some(sum), false), (reported.get("sum_bidir_reverse"), true)] {
            let Some(sum) = sum else { continue };
            // Since 3.7 each sum says which side it is of.
            let side = match sum.get("sender").and_then(Value::as_bool) {
                Some(true) => Side::Sent,
                Some(false) => Side::Received,
                None => local,
            };
            let reverse = reverse && side != Side::Unreported;
            let mut push = |figure: &str, value: Option<f64>| {
                if let Some(value) = value.filter(|value| *value >= 0.0) {
                    of.reported.insert(figure.to_owned(), value);
                }
            };
            push(&name(reverse, side, "bits/s"), number(sum, "bits_per_second"));
            push(&name(reverse, side, "bytes"), number(sum, "bytes"));
            for (key, figure) in PER_WAY {
                push(&of_way(reverse, figure), number(sum, key));
            }
        }
        for stream in streams.iter().filter(|_| streams.len() > 1) {
            let Some((id, reverse, side)) = which(stream, local) else { continue };
            let figures = [(name(reverse, side, "bits/s"), "bits_per_second"), (name(reverse, side, "bytes"), "bytes")];
            let figures = figures.into_iter().chain(PER_WAY.map(|(key, figure)| (of_way(reverse, figure), key)));
            let known = figures.filter_map(|(figure, key)| Some((of_stream(id, &figure), number(stream, key)?)));
            of.reported.extend(known.filter(|(_, value)| *value >= 0.0));
        }
        let mean_rtt_us = mean(streams.iter().filter_map(|stream| number(stream, "rtt")).filter(|rtt| *rtt > 0.0));
        of.reported.extend(mean_rtt_us.map(|us| ("rtt mean".to_owned(), us / 1e3)));
        if let [stream] = streams {
            of.reported.extend(
                number(stream, "snd_cwnd").filter(|bytes| *bytes > 0.0).map(|bytes| ("cwnd".to_owned(), bytes)),
            );
        }
        made.push(of);
    }
    made
}

/// How a figure is called that both sides of one way of the data have in common.
fn of_way(reverse: bool, figure: &str) -> String {
    format!("{}{figure}", if reverse { "reverse " } else { "" })
}

/// The number of a stream, whether it is one of the way back, and the side that its figures are of: with `--bidir` those that
/// receive where the others send.
fn which(stream: &Value, local: Side) -> Option<(u64, bool, Side)> {
    let id = stream.get("socket")?.as_u64()?;
    let side = match stream.get("sender").and_then(Value::as_bool) {
        Some(true) => Side::Sent,
        Some(false) => Side::Received,
        None => local,
    };
    Some((id, side != local, side))
}

/// Figures of one way of the data, by key, and their names.
const PER_WAY: [(&str, &str); 5] = [
    ("retransmits", "retransmits"),
    ("jitter_ms", "jitter"),
    ("lost_packets", "lost datagrams"),
    ("packets", "datagrams"),
    ("lost_percent", "lost"),
];

fn unit_of(figure: &str) -> &'static str {
    match figure.trim_start_matches("reverse ") {
        "jitter" | "rtt mean" => "ms",
        "lost" => "%",
        "cwnd" => "bytes",
        figure if figure.ends_with("bits/s") => "bits/s",
        figure if figure.ends_with("bytes") => "bytes",
        _ => "",
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// What the end of the document reports. Of a side that reports nothing while the other one does, nothing is known: a server and a
/// client that were not reported each other's results print zeros.
fn results(end: &Value, protocol: &str, is_server: bool, step: &mut Step) {
    let is_udp = protocol.eq_ignore_ascii_case("udp") || end.get("sum").is_some();
    let mut window_ns = None;
    for reverse in [false, true] {
        let key = |key: &str| if reverse { format!("{key}{WAY_BACK}") } else { key.to_owned() };
        let sum = end.get(key("sum"));
        // Before 3.7 UDP had one sum, of what was sent.
        let sent = end.get(key("sum_sent")).or(sum);
        let received = end.get(key("sum_received"));
        let bytes = |sum: Option<&Value>| sum.and_then(|sum| number(sum, "bytes")).unwrap_or(0.0);
        let nothing = bytes(sent) == 0.0 && bytes(received) == 0.0;
        let datagrams = sum.and_then(|sum| number(sum, "packets")).unwrap_or(0.0);
        for (side, of) in [(Side::Sent, sent), (Side::Received, received)] {
            let Some(of) = of.filter(|of| bytes(Some(of)) > 0.0 || (nothing && datagrams == 0.0)) else { continue };
            window_ns = window_ns.or(number(of, "seconds").map(ns).filter(|ns| *ns > 0));
            step.reported.extend(number(of, "bits_per_second").map(|value| rate(reverse, side, value)));
            let bytes = number(of, "bytes");
            step.reported.extend(bytes.map(|value| figure(name(reverse, side, "bytes"), "bytes", value)));
        }
        if let Some(retransmits) =
            end.get(key("sum_sent")).and_then(|sum| number(sum, "retransmits")).filter(|count| *count >= 0.0)
        {
            step.reported.push(figure(of_way(reverse, "retransmits"), "", retransmits));
        }
        let by_receiver = received.filter(|sum| number(sum, "jitter_ms").is_some() && bytes(Some(sum)) > 0.0);
        if let Some(sum) = by_receiver.or(sum).filter(|_| is_udp) {
            window_ns = window_ns.or(number(sum, "seconds").map(ns).filter(|ns| *ns > 0));
            let of_receiver = by_receiver.is_some() || !is_of_sender(sum);
            for (key, name) in PER_WAY.into_iter().skip(1).filter(|(key, _)| of_receiver || *key == "packets") {
                step.reported.extend(number(sum, key).map(|value| figure(of_way(reverse, name), unit_of(name), value)));
            }
        }
    }
    if let Some(window_ns) = window_ns {
        step.window.duration_ns = window_ns;
    }
    of_streams(list(end, "streams"), step);
    let streams: Vec<&Value> = list(end, "streams")
        .iter()
        .map(|stream| stream.get("sender").or_else(|| stream.get("udp")).unwrap_or(stream))
        .collect();
    let all =
        |key: &'static str| streams.iter().filter_map(move |stream| number(stream, key)).filter(|value| *value > 0.0);
    let extreme = |key, pick: fn(f64, f64) -> f64| all(key).reduce(pick);
    let us = |name: &str, value: Option<f64>| value.map(|us| figure(name, "ms", us / 1e3));
    step.reported.extend(us("rtt mean", mean(all("mean_rtt"))));
    step.reported.extend(us("rtt min", extreme("min_rtt", f64::min)));
    step.reported.extend(us("rtt max", extreme("max_rtt", f64::max)));
    step.reported.extend(extreme("max_snd_cwnd", f64::max).map(|bytes| figure("cwnd max", "bytes", bytes)));
    let out_of_order: Option<f64> = all("out_of_order").reduce(|sum, more| sum + more);
    step.reported.extend(out_of_order.map(|count| figure("out of order datagrams", "", count)));
    let cpu = end.get("cpu_utilization_percent").and_then(Value::as_object);
    let is_remote = |key: &str| key.starts_with("remote");
    // A server prints before its client has reported: zeros in its first test, figures of the test before in the others.
    let reported_by_remote = !is_server
        && cpu.is_some_and(|cpu| cpu.iter().any(|(key, value)| is_remote(key) && value.as_f64() != Some(0.0)));
    for (key, value) in cpu.into_iter().flatten().filter(|(key, _)| reported_by_remote || !is_remote(key)) {
        let (layer, name) =
            (if is_remote(key) { "server" } else { "client" }, format!("{} CPU", key.replace('_', " ")));
        step.reported.extend(value.as_f64().map(|percent| reported_figure(layer, name, "%", percent)));
    }
}

/// What the end of the document reports on each stream, where there are several.
fn of_streams(streams: &[Value], step: &mut Step) {
    for stream in streams.iter().filter(|_| streams.len() > 1) {
        let parts = [("sender", Side::Sent), ("receiver", Side::Received), ("udp", Side::Unreported)];
        for (part, side) in parts.into_iter().filter_map(|(key, side)| Some((stream.get(key)?, side))) {
            let Some(id) = part.get("socket").and_then(Value::as_u64) else { continue };
            // One that was reported nothing by the other side has zeros.
            if number(part, "bytes").is_none_or(|bytes| bytes <= 0.0) {
                continue;
            }
            let mut push = |name: &str, unit: &str, value: Option<f64>| {
                step.reported
                    .extend(value.filter(|value| *value >= 0.0).map(|value| figure(of_stream(id, name), unit, value)));
            };
            push(&name(false, side, "bits/s"), "bits/s", number(part, "bits_per_second"));
            push(&name(false, side, "bytes"), "bytes", number(part, "bytes"));
            push("rtt mean", "ms", number(part, "mean_rtt").filter(|us| *us > 0.0).map(|us| us / 1e3));
            let of_receiver = side != Side::Unreported || !is_of_sender(part);
            for (key, name) in PER_WAY.into_iter().filter(|(key, _)| of_receiver || *key == "packets") {
                push(name, unit_of(name), number(part, key));
            }
        }
    }
}

/// Whether a sum of UDP is of a sender that was not reported what arrived: its zeros mean nothing, while the jitter of what arrived is
/// never exactly zero.
fn is_of_sender(sum: &Value) -> bool {
    ["jitter_ms", "lost_packets"].iter().all(|key| number(sum, key) == Some(0.0))
}

/// Averages over the intervals of the window, weighted by their lengths; counts are added.
fn of_intervals(step: &mut Step) {
    let mut sums: std::collections::BTreeMap<&str, (f64, f64)> = std::collections::BTreeMap::new();
    for interval in step.intervals.iter().filter(|interval| !interval.warmup) {
        for (name, value) in &interval.reported {
            let seconds = interval.duration_ns as f64 / 1e9;
            let (sum, weight) = sums.entry(name).or_default();
            let is_count = ["bytes", "retransmits", "datagrams"].iter().any(|end| name.ends_with(end));
            let weighs = if is_count { 1.0 } else { seconds };
            (*sum, *weight) = (*sum + value * weighs, if is_count { 1.0 } else { *weight + seconds });
        }
    }
    let made: Vec<ReportedFigure> = sums
        .into_iter()
        .filter(|(_, (_, weight))| *weight > 0.0)
        .map(|(name, (sum, weight))| figure(name, unit_of(name), sum / weight))
        .collect();
    step.reported = made;
}

/// The events of `--json-stream`, one a line, as the document that they would have been.
#[derive(Default)]
struct Stream {
    document: Map<String, Value>,
    intervals: Vec<Value>,
}

impl Stream {
    /// Takes an event; the one that begins a test ends that before it.
    fn event(&mut self, event: &str, line: &Value, notes: &mut Notes) -> Option<Draft> {
        let data = line.get("data").cloned().unwrap_or(Value::Null);
        match event {
            "start" => {
                let before = self.end(notes);
                self.document.insert("start".to_owned(), data);
                return before;
            }
            "interval" => self.intervals.push(data),
            "end" | "error" => {
                self.document.insert(event.to_owned(), data);
            }
            _ => {}
        }
        None
    }

    /// Leaves out the test that is being read if `document` reports on the same, as it does with `--json-stream-full-output`.
    fn forget(&mut self, document: &Value) {
        let cookie = self.document.get("start").and_then(|start| start.get("cookie"));
        if cookie.is_some() && cookie == document.pointer("/start/cookie") {
            *self = Self::default();
        }
    }

    /// The test that is being read, at the end of it.
    fn end(&mut self, notes: &mut Notes) -> Option<Draft> {
        let mut document = std::mem::take(&mut self.document);
        let intervals = std::mem::take(&mut self.intervals);
        if document.is_empty() && intervals.is_empty() {
            return None;
        }
        document.insert("intervals".to_owned(), Value::Array(intervals));
        Some(draft(&Value::Object(document), notes))
    }
}
